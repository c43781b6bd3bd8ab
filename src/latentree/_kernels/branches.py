"""How well the nodes of a tree are seen, and how well the lengths of its edges are known.

Trees come as in :mod:`latentree._kernels.trees`: ``order`` lists every node after its parent.
All loops are linear in the number of nodes.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel


@kernel()
def _seen_through(length, signal, is_observed):
    """Squared correlation between the near end of an edge and the best combination behind it."""
    behind = 1.0 if is_observed else signal / (1.0 + signal)
    return min(math.exp(-2.0 * max(length, 0.0)) * behind, 1.0 - 1e-9)


@kernel()
def squared_sights(order, parent, length, n_observed):
    """For every edge (by lower node): squared correlations of each end with what lies beyond.

    ``down[v]`` is ρ² between the parent of v and the best linear combination of the observed
    nodes in v's subtree, ``up[v]`` that between v and those outside. In a tree of Gaussian
    variables a hidden node with independent views ρ_b has R² = s / (1 + s), s = Σ ρ_b²/(1 − ρ_b²).
    """
    n = parent.size
    signal = np.zeros(n)
    down = np.zeros(n)
    up = np.zeros(n)
    for position in range(n - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            down[v] = _seen_through(length[v], signal[v], v < n_observed)
            signal[p] += down[v] / (1.0 - down[v])
    for v in order:
        p = parent[v]
        if p >= 0:
            rest = max(signal[p] - down[v] / (1.0 - down[v]), 0.0)
            up[v] = _seen_through(length[v], rest, p < n_observed)
            signal[v] += up[v] / (1.0 - up[v])
    return down, up


@kernel()
def edge_errors(order, parent, length, n_observed, noise):
    """Standard error of every edge's length (by lower node), from the views at both its ends.

    An edge between u and v is half of what the cross distances exceed the distances within the
    two sides by. With x_b = ρ_b²/(1 − ρ_b⁴) for each view b, distances between views b and c have
    the precision n·x_b·x_c, so that
    variance · n = e^(2·length) / (A_u·A_v) + 1/(4·P_u) + 1/(4·P_v),
    A = Σ x_b and P = Σ_{b<c} x_b·x_c over the views that are not through the edge itself. An
    observed end is its own view: A = 1 and no third term.
    """
    n = parent.size
    down, up = squared_sights(order, parent, length, n_observed)
    first = np.zeros(n)
    second = np.zeros(n)
    for v in range(n):
        p = parent[v]
        if p >= 0:
            x = down[v] / (1.0 - down[v] ** 2)
            first[p] += x
            second[p] += x * x
            x = up[v] / (1.0 - up[v] ** 2)
            first[v] += x
            second[v] += x * x
    out = np.zeros(n)
    for v in range(n):
        p = parent[v]
        if p < 0:
            continue
        variance = 0.0
        through = math.exp(2.0 * min(max(length[v], 0.0), 50.0))
        for end, seen in ((p, down[v]), (v, up[v])):
            if end < n_observed:
                continue
            x = seen / (1.0 - seen * seen)
            a = max(first[end] - x, 1e-200)
            pairs = 0.5 * (a * a - max(second[end] - x * x, 0.0))
            variance += 0.25 / max(pairs, 1e-200)
            through /= a
        out[v] = noise * math.sqrt(variance + through)
    return out

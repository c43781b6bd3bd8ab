"""How well the nodes of a tree are seen, and how well the lengths of its edges are known.

Trees come as in :mod:`latentree._kernels.tree`: ``order`` lists every node after its parent.
All loops are linear in the number of nodes.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

_MOST = 1.0 - 1e-9  # a squared correlation of 1 would leave no noise to divide by


def squared_sights(order, parent, length, n_observed):
    """For every edge (by lower node): squared correlations of each end with what lies beyond.

    ``down[v]`` is ρ² between the parent of v and the best linear combination of the observed
    nodes in v's subtree, ``up[v]`` that between v and those outside. In a tree of Gaussian
    variables a hidden node with independent views ρ_b has R² = s / (1 + s), s = Σ ρ_b²/(1 − ρ_b²).
    """
    through = np.exp(-2.0 * np.maximum(length, 0.0))
    signal, down, up = np.zeros((3, parent.size))
    _see(order, parent, through, n_observed, signal, down, up)
    return down, up


@kernel()
def _see(order, parent, through, n_observed, signal, down, up):
    """Fill ``down`` and ``up``; ``through`` is ρ² of each edge, ``signal`` is s, all 0 before."""
    # Up: signal[v] = Σ ρ_b²/(1 − ρ_b²) over the children of v, so that R² = s/(1 + s) is how well
    # the subtree knows a hidden v; an observed v knows itself, R² = 1.
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            seen = through[v]
            if v >= n_observed:
                seen *= signal[v] / (1.0 + signal[v])
            seen = seen if seen < _MOST else _MOST
            down[v] = seen
            signal[p] += seen / (1.0 - seen)
    for v in order:
        p = parent[v]
        if p >= 0:
            seen = through[v]
            if p >= n_observed:
                # All views of p, that from above included by now, but the one through v.
                rest = signal[p] - down[v] / (1.0 - down[v])
                seen *= rest / (1.0 + rest) if rest > 0.0 else 0.0
            seen = seen if seen < _MOST else _MOST
            up[v] = seen
            signal[v] += seen / (1.0 - seen)


def edge_errors(order, parent, length, n_observed, noise):
    """Standard error of every edge's length (by lower node), from the views at both its ends.

    An edge between u and v is half of what the cross distances exceed the distances within the
    two sides by. With x_b = ρ_b²/(1 − ρ_b⁴) for each view b, distances between views b and c have
    the precision n·x_b·x_c, so that
    variance · n = e^(2·length) / (A_u·A_v) + 1/(4·P_u) + 1/(4·P_v),
    A = Σ x_b and P = Σ_{b<c} x_b·x_c over the views that are not through the edge itself. An
    observed end is its own view: A = 1 and no third term.
    """
    down, up = squared_sights(order, parent, length, n_observed)
    below = np.flatnonzero(parent >= 0)
    ends = np.concatenate([parent[below], below])
    seen = np.concatenate([down[below], up[below]])
    x = seen / (1.0 - seen**2)
    first = np.bincount(ends, x, parent.size)[ends] - x
    second = np.bincount(ends, x * x, parent.size)[ends] - x * x
    first = np.maximum(first, 1e-200)
    pairs = 0.5 * (first * first - np.maximum(second, 0.0))
    hidden = ends >= n_observed
    variance = np.where(hidden, 0.25 / np.maximum(pairs, 1e-200), 0.0).reshape(2, -1).sum(axis=0)
    views = np.where(hidden, first, 1.0).reshape(2, -1)
    through = np.exp(2.0 * np.clip(length[below], 0.0, 50.0)) / views[0] / views[1]
    out = np.zeros(parent.size)
    out[below] = noise * np.sqrt(variance + through)
    return out

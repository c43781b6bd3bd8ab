"""How well the nodes of a tree are seen, how well its lengths are known, and what is contracted.

Trees come as in :mod:`latentree._kernels.tree`: ``order`` lists every node after its parent.
All loops are linear in the number of nodes.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.tree import sorted_by

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
    signal, down, up = np.zeros(n), np.zeros(n), np.zeros(n)
    _see(order, parent, np.exp(-2.0 * np.maximum(length, 0.0)), n_observed, signal, down, up)
    first, second = np.zeros(n), np.zeros(n)  # Σ x_b and Σ x_b² over all views of a node
    for v in range(n):
        if parent[v] >= 0:
            x = down[v] / (1.0 - down[v] ** 2)
            first[parent[v]] += x
            second[parent[v]] += x * x
    for v in range(n):
        if parent[v] >= 0:
            x = up[v] / (1.0 - up[v] ** 2)
            first[v] += x
            second[v] += x * x
    out = np.zeros(n)
    for v in range(n):
        if parent[v] >= 0:
            through = math.exp(2.0 * min(max(length[v], 0.0), 50.0))
            variance = 0.0
            for end, seen in ((parent[v], down[v]), (v, up[v])):
                if end >= n_observed:
                    x = seen / (1.0 - seen**2)
                    views = max(first[end] - x, 1e-200)
                    pairs = 0.5 * (views * views - max(second[end] - x * x, 0.0))
                    through /= views
                    variance += 0.25 / max(pairs, 1e-200)
            out[v] = noise * math.sqrt(variance + through)
    return out


@kernel()
def weakest_edges(order, parent, length, n_observed, noise, threshold):
    """Edges (by lower node) that do not stand and are weaker than all such edges that they touch.

    The weakest come first. An edge between hidden nodes stands when its length is at least the
    threshold and √(log n + log m) standard errors, one between a hidden and an observed node when
    it reaches the threshold.
    """
    n = parent.size
    error = edge_errors(order, parent, length, n_observed, noise)
    z = math.sqrt(math.log(n_observed) - 2.0 * math.log(noise))  # √(log n + log m)
    score, lowest = np.full(n, np.inf), np.full(n, np.inf)
    for v in range(n):
        p = parent[v]
        if p < 0 or (v < n_observed and p < n_observed):
            continue
        is_hidden = v >= n_observed and p >= n_observed
        needed = max(threshold, z * error[v]) if is_hidden else threshold
        value = length[v] / max(needed, 1e-300)
        if value < 1.0:
            score[v] = value
            lowest[v] = min(lowest[v], value)
            lowest[p] = min(lowest[p], value)
    chosen = np.empty(n, np.int64)
    count = 0
    for v in range(n):
        if score[v] < 1.0 and score[v] <= lowest[v] and score[v] <= lowest[parent[v]]:
            chosen[count] = v
            count += 1
    return sorted_by(score, chosen[:count])


@kernel()
def greedy_groups(candidates, parent, n_observed):
    """Name every node by the lowest of its group when edges (by lower node) are contracted.

    They come in turn; an edge stays if two observed nodes would meet.
    """
    group = np.arange(parent.size)
    for v in candidates:
        a, b = v, parent[v]
        while group[a] != a:
            a = group[a]
        while group[b] != b:
            b = group[b]
        low, high = min(a, b), max(a, b)
        if high >= n_observed:  # the lowest node names a group, so an observed one does
            group[high] = low
    for v in range(group.size):  # no node is named by a higher one, so one pass is enough
        group[v] = group[group[v]]
    return group


@kernel()
def merge_groups(parent, length, group):
    """Parents and lengths of the tree in which each group is one node, numbered in their order.

    Returns the lowest node of every group too.
    """
    number = np.empty(parent.size, np.int64)
    kept = np.empty(parent.size, np.int64)
    count = 0
    for v in range(parent.size):
        if group[v] == v:
            number[v] = count
            kept[count] = v
            count += 1
    new_parent, new_length = np.full(count, -1), np.zeros(count)
    for v in range(parent.size):
        p = parent[v]
        if p >= 0 and group[v] != group[p]:
            new_parent[number[group[v]]] = number[group[p]]
            new_length[number[group[v]]] = length[v]
    return new_parent, new_length, kept[:count]

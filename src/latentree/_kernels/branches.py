"""What lies behind each edge of a tree: near observed nodes, and how well a hidden node is seen.

Trees come as in :mod:`latentree._kernels.trees`: ``order`` lists every node after its parent.
All loops are linear in the number of nodes.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel


@kernel()
def _offer(nodes, far, tags, node, distance, tag):
    """Insert into a short list sorted by distance, dropping the last; −1 marks a free place."""
    place = nodes.size
    while place > 0 and (
        nodes[place - 1] < 0
        or far[place - 1] > distance
        or (far[place - 1] == distance and nodes[place - 1] > node)
    ):
        place -= 1
    for q in range(nodes.size - 1, place, -1):
        nodes[q] = nodes[q - 1]
        far[q] = far[q - 1]
        tags[q] = tags[q - 1]
    if place < nodes.size:
        nodes[place] = node
        far[place] = distance
        tags[place] = tag


@kernel()
def nearest_around(order, parent, length, n_observed, count):
    """For every node the nearest observed nodes, at most ``count`` behind each neighbour.

    Returns, per node, up to 2·count observed nodes of the whole tree with distances, sorted, and
    for each the neighbour behind which it lies (the node itself for an observed one).
    """
    n = parent.size
    nodes = np.full((n, 2 * count), -1, np.int64)
    far = np.full((n, 2 * count), np.inf)
    tags = np.full((n, 2 * count), -1, np.int64)
    for v in range(n_observed):
        _offer(nodes[v], far[v], tags[v], v, 0.0, v)
    for position in range(n - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            for q in range(count):
                if nodes[v, q] >= 0:
                    _offer(nodes[p], far[p], tags[p], nodes[v, q], far[v, q] + length[v], v)
    for v in order:
        p = parent[v]
        if p >= 0:
            taken = 0
            for q in range(2 * count):
                if taken < count and nodes[p, q] >= 0 and tags[p, q] != v:
                    _offer(nodes[v], far[v], tags[v], nodes[p, q], far[p, q] + length[v], p)
                    taken += 1
    return nodes, far, tags


@kernel()
def pairs_around(order, parent, length, n_observed, count, crowd):
    """Pairs of observed nodes whose distances determine the lengths of all edges around.

    Around each node, the ``count`` nearest observed nodes behind each neighbour are paired across
    neighbours: all with all up to ``crowd`` of them, beyond that each with the ``crowd`` nearest.
    Pairs are returned with the smaller node first and may repeat.
    """
    n = parent.size
    nodes, far, tags = nearest_around(order, parent, length, n_observed, count)
    # Lists by neighbour: of v's own subtree as seen from its parent, and of the rest from v.
    degree = np.zeros(n, np.int64)
    for v in range(n):
        if parent[v] >= 0:
            degree[v] += 1
            degree[parent[v]] += 1
    starts = np.zeros(n + 1, np.int64)
    for v in range(n):
        starts[v + 1] = starts[v] + (degree[v] + 1) * count
    item = np.empty(starts[n], np.int64)
    item_far = np.empty(starts[n])
    item_tag = np.empty(starts[n], np.int64)
    fill = starts[:-1].copy()
    for v in range(n):
        if v < n_observed:
            item[fill[v]], item_far[fill[v]], item_tag[fill[v]] = v, 0.0, v
            fill[v] += 1
        p = parent[v]
        if p < 0:
            continue
        down = 0
        for q in range(2 * count):
            if down < count and nodes[v, q] >= 0 and tags[v, q] != p:
                f = fill[p]
                item[f], item_far[f], item_tag[f] = nodes[v, q], far[v, q] + length[v], v
                fill[p] += 1
                down += 1
        up = 0
        for q in range(2 * count):
            if up < count and nodes[p, q] >= 0 and tags[p, q] != v:
                f = fill[v]
                item[f], item_far[f], item_tag[f] = nodes[p, q], far[p, q] + length[v], p
                fill[v] += 1
                up += 1
    total = 0
    for v in range(n):
        size = fill[v] - starts[v]
        total += size * min(size, crowd)
    pairs = np.empty((total, 2), np.int64)
    n_pairs = 0
    for v in range(n):
        size = fill[v] - starts[v]
        here = slice(starts[v], fill[v])
        by_distance = np.argsort(item_far[here], kind="mergesort") + starts[v]
        for a in range(size):
            for b in range(min(a, crowd)):
                x, y = by_distance[a], by_distance[b]
                if item_tag[x] != item_tag[y]:
                    pairs[n_pairs, 0] = min(item[x], item[y])
                    pairs[n_pairs, 1] = max(item[x], item[y])
                    n_pairs += 1
    return pairs[:n_pairs]


@kernel()
def path_edges(pairs, parent, level):
    """Edges (by lower node) on the path between each pair, as a list of lists laid end to end."""
    starts = np.zeros(pairs.shape[0] + 1, np.int64)
    for row in range(pairs.shape[0]):
        a, b = pairs[row, 0], pairs[row, 1]
        count = 0
        while a != b:
            if level[a] >= level[b]:
                a = parent[a]
            else:
                b = parent[b]
            count += 1
        starts[row + 1] = starts[row] + count
    items = np.empty(starts[-1], np.int64)
    for row in range(pairs.shape[0]):
        a, b = pairs[row, 0], pairs[row, 1]
        place = starts[row]
        while a != b:
            if level[a] >= level[b]:
                items[place] = a
                a = parent[a]
            else:
                items[place] = b
                b = parent[b]
            place += 1
    return starts, items


@kernel()
def node_levels(order, parent):
    """Number of edges between every node and its root."""
    level = np.zeros(parent.size, np.int64)
    for v in order:
        if parent[v] >= 0:
            level[v] = level[parent[v]] + 1
    return level


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

"""Weighted least squares for the lengths of a tree's edges, from pairs of near observed nodes.

Trees come as in :mod:`latentree._kernels.trees`: ``order`` lists every node after its parent; an
edge is named by its lower node. A list of paths is ``starts``/``items``: the edges between pair p
are ``items[starts[p]:starts[p + 1]]``.
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
def _normal_product(x, free, starts, items, weight, out):
    """Set out = Aᵀ·W·A·x over the free edges, where A says which edges each path holds."""
    out[:] = 0.0
    for pair in range(starts.size - 1):
        path = items[starts[pair] : starts[pair + 1]]
        total = 0.0
        for e in path:
            total += x[e]
        total *= weight[pair]
        for e in path:
            out[e] += total
    for e in range(x.size):
        if not free[e]:
            out[e] = 0.0


@kernel()
def _solve_free(start, free, starts, items, weight, target, n_steps):
    """Conjugate gradients for min Σ w·(target − path length)² over the free edges, others 0."""
    n = start.size
    x = np.where(free, start, 0.0)
    diagonal = np.zeros(n)
    residual = np.zeros(n)
    for pair in range(starts.size - 1):
        path = items[starts[pair] : starts[pair + 1]]
        gap = target[pair]
        for e in path:
            gap -= x[e]
        gap *= weight[pair]
        for e in path:
            diagonal[e] += weight[pair]
            residual[e] += gap
    for e in range(n):
        diagonal[e] = 1.0 / diagonal[e] if free[e] and diagonal[e] > 0.0 else 0.0
    residual *= free
    direction = diagonal * residual
    product = np.empty(n)
    energy = (residual * direction).sum()
    enough = 1e-16 * energy
    for _ in range(n_steps):
        if energy <= enough:
            break
        _normal_product(direction, free, starts, items, weight, product)
        step = energy / (direction * product).sum()
        x += step * direction
        residual -= step * product
        scaled = diagonal * residual
        new_energy = (residual * scaled).sum()
        direction = scaled + (new_energy / energy) * direction
        energy = new_energy
    return x


@kernel()
def fit_edge_lengths(length, is_edge, starts, items, estimated, n_rounds, n_steps):
    """Gauss-Newton on the scale of correlations; lengths stay ≥ 0.

    ``estimated`` holds ρ̂ of each pair. A pair whose ρ̂ is below the path's ρ moves the path by
    (ρ − ρ̂)/ρ ≤ 1, one whose ρ̂ is above by log(ρ̂/ρ); its weight is ρ²/(1 − ρ²)².
    """
    n_pairs = starts.size - 1
    weight = np.empty(n_pairs)
    target = np.empty(n_pairs)
    length = length.copy()
    for _ in range(n_rounds):
        for pair in range(n_pairs):
            path = 0.0
            for e in items[starts[pair] : starts[pair + 1]]:
                path += length[e]
            path = min(path, 30.0)
            rho = math.exp(-path)
            ratio = estimated[pair] / rho
            target[pair] = path + (1.0 - ratio if ratio < 1.0 else -math.log(ratio))
            weight[pair] = (rho / max(1.0 - rho * rho, 1e-3)) ** 2
        free = is_edge.copy()
        for _ in range(4):
            fitted = _solve_free(length, free, starts, items, weight, target, n_steps)
            negative = fitted < 0.0
            if not negative.any():
                break
            free &= ~negative
        length = np.maximum(fitted, 0.0)
    return length

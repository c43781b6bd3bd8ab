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
    nodes = np.empty((n, 2 * count), np.int64)
    far = np.empty((n, 2 * count))
    tags = np.empty((n, 2 * count), np.int64)
    for v in range(n):
        for q in range(2 * count):
            nodes[v, q] = -1
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
def lists_around(order, parent, length, n_observed, count):
    """The nearest observed nodes around each node, at most ``count`` behind each neighbour.

    Returns for every entry the node in the middle, the observed node, the neighbour behind which
    it lies (the node itself for an observed one), and the distance.
    """
    n = parent.size
    nodes, far, tags = nearest_around(order, parent, length, n_observed, count)
    room = 2 * n * count + n_observed
    entry = np.empty((room, 3), np.int64)
    distance = np.empty(room)
    size = 0
    for v in range(n):
        if v < n_observed:
            entry[size, 0], entry[size, 1], entry[size, 2] = v, v, v
            distance[size] = 0.0
            size += 1
        p = parent[v]
        if p < 0:
            continue
        for centre, other in ((p, v), (v, p)):
            taken = 0
            for q in range(2 * count):
                if taken < count and nodes[other, q] >= 0 and tags[other, q] != centre:
                    entry[size, 0], entry[size, 1] = centre, nodes[other, q]
                    entry[size, 2] = other
                    distance[size] = far[other, q] + length[v]
                    size += 1
                    taken += 1
    return entry[:size], distance[:size]


@kernel()
def pairs_across(entry, crowd):
    """Pair the entries around each node across neighbours.

    ``entry`` is sorted by the node in the middle and by distance. Around a node all are paired
    with all up to ``crowd`` of them, beyond that each with the ``crowd`` nearest. The smaller
    node comes first; pairs may repeat.
    """
    n = entry.shape[0]
    pairs = np.empty((n * crowd, 2), np.int64)
    n_pairs = 0
    first = 0
    for x in range(n):
        if entry[x, 0] != entry[first, 0]:
            first = x
        for y in range(first, min(x, first + crowd)):
            if entry[x, 2] != entry[y, 2]:
                pairs[n_pairs, 0] = min(entry[x, 1], entry[y, 1])
                pairs[n_pairs, 1] = max(entry[x, 1], entry[y, 1])
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
    for e in range(x.size):
        out[e] = 0.0
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
def _solve_free(x, free, starts, items, weight, target, n_steps):
    """Conjugate gradients for min Σ w·(target − path length)² over the free edges, in place.

    Edges that are not free stay at 0.
    """
    n = x.size
    inverse = np.zeros(n)
    residual = np.zeros(n)
    direction = np.zeros(n)
    product = np.zeros(n)
    for e in range(n):
        x[e] = x[e] if free[e] else 0.0
    for pair in range(starts.size - 1):
        path = items[starts[pair] : starts[pair + 1]]
        gap = target[pair]
        for e in path:
            gap -= x[e]
        for e in path:
            inverse[e] += weight[pair]
            residual[e] += gap * weight[pair]
    energy = 0.0
    for e in range(n):
        inverse[e] = 1.0 / inverse[e] if free[e] and inverse[e] > 0.0 else 0.0
        direction[e] = inverse[e] * residual[e]
        energy += direction[e] * residual[e]
    enough = 1e-16 * energy
    for _ in range(n_steps):
        if energy <= enough:
            break
        _normal_product(direction, free, starts, items, weight, product)
        curvature = 0.0
        for e in range(n):
            curvature += direction[e] * product[e]
        step = energy / curvature
        new_energy = 0.0
        for e in range(n):
            x[e] += step * direction[e]
            residual[e] -= step * product[e]
            new_energy += inverse[e] * residual[e] * residual[e]
        for e in range(n):
            direction[e] = inverse[e] * residual[e] + new_energy / energy * direction[e]
        energy = new_energy


@kernel()
def _set_goals(length, starts, items, estimated, weight, target):
    """Weights and wanted path lengths of one Gauss-Newton step on the scale of correlations.

    A pair whose ρ̂ is below the path's ρ moves the path by (ρ − ρ̂)/ρ ≤ 1, one whose ρ̂ is above
    by log(ρ̂/ρ); its weight is ρ²/(1 − ρ²)².
    """
    for pair in range(starts.size - 1):
        path = 0.0
        for e in items[starts[pair] : starts[pair + 1]]:
            path += length[e]
        path = min(path, 30.0)
        rho = math.exp(-path)
        ratio = estimated[pair] / rho
        target[pair] = path + (1.0 - ratio if ratio < 1.0 else -math.log(ratio))
        weight[pair] = (rho / max(1.0 - rho * rho, 1e-3)) ** 2


@kernel()
def fit_edge_lengths(length, parent, starts, items, estimated, n_rounds, n_steps):
    """Fit lengths to ρ̂ of each pair in Gauss-Newton steps; ``length`` is overwritten.

    What comes out negative is set to 0 and the rest solved again, a few times over.
    """
    n = length.size
    weight = np.empty(starts.size - 1)
    target = np.empty(starts.size - 1)
    free = np.empty(n, np.bool_)
    for _ in range(n_rounds):
        _set_goals(length, starts, items, estimated, weight, target)
        for e in range(n):
            free[e] = parent[e] >= 0
        for _ in range(4):
            _solve_free(length, free, starts, items, weight, target, n_steps)
            n_negative = 0
            for e in range(n):
                if length[e] < 0.0:
                    length[e] = 0.0
                    free[e] = False
                    n_negative += 1
            if n_negative == 0:
                break

"""Pairs of near observed nodes, paths between them, and least squares for what paths sum up.

Trees come as in :mod:`latentree._kernels.tree`: ``order`` lists every node after its parent; an
edge is named by its lower node. A list of paths is ``starts``/``items``: the edges between pair p
are ``items[starts[p]:starts[p + 1]]``.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel


def nearest_around(order, parent, length, offset, count):
    """For every node the nearest observed nodes, at most ``count`` behind each neighbor.

    ``offset``, one number for each observed node, is added to all distances to that node. Returns,
    per node, up to 2·count observed nodes of the whole tree with distances, sorted, and for each
    the neighbor behind which it lies (the node itself for an observed one).
    """
    n_observed = offset.size
    width = 2 * count
    nodes, tags = np.full((2, parent.size, width), -1)
    far = np.zeros((parent.size, width))
    nodes[:n_observed, 0] = tags[:n_observed, 0] = np.arange(n_observed)
    far[:n_observed, 0] = offset
    below = order[parent[order] >= 0]
    below = np.concatenate([below[::-1], below])
    ends = np.stack([below, parent[below]])
    ends[:, below.size // 2 :] = ends[::-1, below.size // 2 :]  # up the tree, then down
    _spread(ends[0], ends[1], length[below], count, nodes, far, tags)
    return nodes, far, tags


@kernel()
def _spread(tails, heads, lengths, count, nodes, far, tags):
    """Offer what each tail has from elsewhere to its head, whose list stays sorted."""
    width = nodes.shape[1]
    for arc in range(lengths.size):
        a = tails[arc]
        b = heads[arc]
        taken = 0
        for q in range(width):
            node = nodes[a, q]
            if taken == count or node < 0 or tags[a, q] == b:
                continue
            taken += 1
            distance = far[a, q] + lengths[arc]
            # Insertion from the end of the sorted list; what is pushed off the end is forgotten.
            place = width
            while place > 0 and (
                nodes[b, place - 1] < 0
                or far[b, place - 1] > distance
                or (far[b, place - 1] == distance and nodes[b, place - 1] > node)
            ):
                place -= 1
                if place + 1 < width:
                    nodes[b, place + 1] = nodes[b, place]
                    far[b, place + 1] = far[b, place]
                    tags[b, place + 1] = tags[b, place]
            if place < width:
                nodes[b, place] = node
                far[b, place] = distance
                tags[b, place] = a


def lists_around(order, parent, length, offset, count):
    """The nearest observed nodes around each node, at most ``count`` behind each neighbor.

    Distances to an observed node count with its ``offset``. Returns for every entry the node in the
    middle, the observed node, the neighbor behind which it lies (the node itself for an observed
    one), and the distance.
    """
    nodes, far, tags = nearest_around(order, parent, length, offset, count)
    below = np.flatnonzero(parent >= 0)
    center = np.concatenate([parent[below], below])
    other = np.concatenate([below, parent[below]])
    elsewhere = (nodes[other] >= 0) & (tags[other] != center[:, None])
    row, place = np.nonzero(elsewhere & (np.cumsum(elsewhere, axis=1) <= count))
    own = np.arange(offset.size)
    entry = np.column_stack([center[row], nodes[other[row], place], other[row]])
    distance = far[other[row], place] + length[below][row % below.size]
    return (
        np.concatenate([np.column_stack([own, own, own]), entry]),
        np.concatenate([offset, distance]),
    )


def pairs_across(entry, crowd):
    """Pair the entries around each node across neighbors.

    ``entry`` is sorted by the node in the middle and by distance. Around a node all are paired
    with all up to ``crowd`` of them, beyond that each with the ``crowd`` nearest. The smaller
    node comes first; pairs may repeat.
    """
    pairs = np.empty((len(entry) * crowd, 2), np.int64)
    return pairs[: _pair_up(entry, crowd, pairs)]


@kernel()
def _pair_up(entry, crowd, pairs):
    """Fill ``pairs`` and return their number; ``first`` is where the entries of a node begin."""
    n_pairs = 0
    first = 0
    for x in range(entry.shape[0]):
        if entry[x, 0] != entry[first, 0]:
            first = x
        for y in range(first, x if x < first + crowd else first + crowd):
            if entry[x, 2] != entry[y, 2]:
                pairs[n_pairs, 0] = entry[x, 1]
                pairs[n_pairs, 1] = entry[y, 1]
                n_pairs += 1
    return n_pairs


def path_edges(pairs, order, parent):
    """Edges (by lower node) on the path between each pair, as a list of lists laid end to end."""
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    starts = np.zeros(len(pairs) + 1, np.int64)
    _climb(pairs, position, parent, starts, starts[:0])
    items = np.empty(starts[-1], np.int64)
    _climb(pairs, position, parent, starts, items)
    return starts, items


@kernel()
def _climb(pairs, position, parent, starts, items):
    """Fill ``items`` with the edges of each path; without room for any, ``starts``."""
    for row in range(pairs.shape[0]):
        a = pairs[row, 0]
        b = pairs[row, 1]
        place = starts[row]
        while a != b:
            # The later one in depth-first order is no ancestor of the other.
            late = a if position[a] > position[b] else b
            if items.size:
                items[place] = late
            place += 1
            if late == a:
                a = parent[a]
            else:
                b = parent[b]
        starts[row + 1] = place


@kernel()
def conjugate_gradients(x, starts, items, weight, inverse, residual, direction, product, n_steps):
    """Go on from x, in place, towards Aᵀ·W·(b − A·x) = 0, where A says what each path holds.

    ``residual`` is the left side at the start, ``inverse`` one over the diagonal of Aᵀ·W·A, 0 for
    what shall not move; ``direction`` and ``product`` are room.
    """
    # Preconditioned by the diagonal: z = M⁻¹·r, energy = rᵀ·z; it ends at 1e-8 of |r|.
    energy = 0.0
    for e in range(x.size):
        direction[e] = inverse[e] * residual[e]
        energy += direction[e] * residual[e]
    enough = 1e-16 * energy
    for _ in range(n_steps):
        if energy <= enough:
            break
        # product = Aᵀ·W·A·direction, path by path.
        for e in range(x.size):
            product[e] = 0.0
        for pair in range(weight.size):
            total = 0.0
            for place in range(starts[pair], starts[pair + 1]):
                total += direction[items[place]]
            total *= weight[pair]
            for place in range(starts[pair], starts[pair + 1]):
                product[items[place]] += total
        curvature = 0.0
        for e in range(x.size):
            curvature += direction[e] * product[e]
        step = energy / curvature  # rᵀ·z / dᵀ·N·d
        ratio = 1.0 / energy  # becomes β = new rᵀ·z / old rᵀ·z
        energy = 0.0
        for e in range(x.size):
            x[e] += step * direction[e]
            residual[e] -= step * product[e]
            energy += inverse[e] * residual[e] * residual[e]
        ratio *= energy
        for e in range(x.size):
            direction[e] = inverse[e] * residual[e] + ratio * direction[e]

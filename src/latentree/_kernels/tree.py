"""Loops over rooted forests given as parent arrays (−1 for a root).

Names used throughout: ``order`` lists every node after its parent, ``starts``/``items`` is a list
of lists laid end to end (the items of node v are ``items[starts[v]:starts[v + 1]]``). Everything
is linear in the number of nodes and free of recursion, because chains are deep.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

SMALL = 400  # numbers in the largest array: nodes, or pairs of nodes


@kernel(small=SMALL)
def preorder(tails, heads, roots, starts, items, stack, order, parent):
    """Visit all that arcs from ``tails`` to ``heads`` lead to, starting at each root in turn.

    ``order`` receives the nodes depth first, those behind the same tail in the order of the arcs;
    ``parent``, all −2 before, the node from which each was reached, −1 for a root. Returns how
    many were reached. ``starts`` (two longer than there are nodes, all 0), ``items`` (as long as
    there are arcs) and ``stack`` are overwritten.
    """
    # Heads behind each tail, laid end to end. While `items` is filled, starts[v + 1] is the next
    # free place of node v; when all are in, it is where the items of v end.
    for tail in tails:
        starts[tail + 2] += 1
    for v in range(2, starts.size):
        starts[v] += starts[v - 1]
    for arc in range(tails.size):
        items[starts[tails[arc] + 1]] = heads[arc]
        starts[tails[arc] + 1] += 1
    count = 0
    for root in roots:
        if parent[root] > -2:
            continue
        parent[root] = -1
        stack[0] = root
        height = 1
        while height:
            height -= 1
            v = stack[height]
            order[count] = v
            count += 1
            # Pushed last first, so that they are visited in the order of the arcs.
            for position in range(starts[v + 1] - 1, starts[v] - 1, -1):
                u = items[position]
                if parent[u] == -2:
                    parent[u] = v
                    stack[height] = u
                    height += 1
    return count


@kernel(small=SMALL)
def component_numbers(order, parent):
    """The number of the component of every node, counted in the order of the roots."""
    component = np.empty(parent.size, np.int64)
    count = 0
    for v in order:
        if parent[v] < 0:
            component[v] = count
            count += 1
        else:
            component[v] = component[parent[v]]
    return component


@kernel(small=SMALL)
def path_length_rows(sources, targets, order, parent, length, room, out):
    """Path lengths from each source to each target, one row a source; infinite between components.

    ``room`` has a place for each node and is overwritten.
    """
    for row in range(sources.size):
        for v in order:
            room[v] = np.inf
        # Ancestors of the source first; the way to any other node leaves their path at the one
        # that is its nearest ancestor there, and goes down.
        v = sources[row]
        room[v] = 0.0
        while parent[v] >= 0:
            room[parent[v]] = room[v] + length[v]
            v = parent[v]
        for v in order:
            if parent[v] >= 0 and room[v] == np.inf:
                room[v] = room[parent[v]] + length[v]
        for column in range(targets.size):
            out[row, column] = room[targets[column]]


@kernel(small=SMALL)
def path_signs(order, parent, sign):
    """Product of the edges' signs from the root of each component down to every node."""
    out = np.ones(parent.size)
    for v in order:
        if parent[v] >= 0:
            out[v] = out[parent[v]] * sign[v]
    return out


@kernel(small=SMALL)
def nearest_observed(order, parent, length, n_observed):
    """For every node the nearest observed one and its distance; ties go to the lowest index.

    An observed node is nearest to itself, even where another is at distance 0.
    """
    n = parent.size
    nearest = np.full(n, n, np.int64)
    distance = np.full(n, np.inf)
    for v in range(n_observed):
        nearest[v] = v
        distance[v] = 0.0
    # Up: the nearest below every hidden node. Down: it, or what is nearest to the parent, which
    # cannot be closer by a way through the node itself.
    for position in range(n - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= n_observed:
            d = distance[v] + length[v]
            if d < distance[p] or (d == distance[p] and nearest[v] < nearest[p]):
                distance[p] = d
                nearest[p] = nearest[v]
    for v in order:
        p = parent[v]
        if p >= 0 and v >= n_observed:
            d = distance[p] + length[v]
            if d < distance[v] or (d == distance[v] and nearest[p] < nearest[v]):
                distance[v] = d
                nearest[v] = nearest[p]
    return nearest, distance


@kernel(small=SMALL)
def diameter(order, parent, length):
    """The longest path in any component."""
    n = parent.size
    height = np.zeros(n)
    longest = 0.0
    for position in range(n - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            # height[p]: the longest way down through the children seen so far. The longest path
            # whose highest node is p joins the two longest.
            reach = height[v] + length[v]
            longest = max(longest, height[p] + reach)
            height[p] = max(height[p], reach)
    return longest


@kernel(small=SMALL)
def subtree_minimum(order, parent, values):
    """The smallest value in the subtree below every node."""
    out = values.copy()
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0 and out[v] < out[p]:
            out[p] = out[v]
    return out


@kernel(small=SMALL)
def subtree_ranges(order, parent):
    """Where the nodes below each node, and itself, begin and end in depth-first order."""
    begin, size = np.empty(parent.size, np.int64), np.ones(parent.size, np.int64)
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        begin[v] = position
        if parent[v] >= 0:
            size[parent[v]] += size[v]
    return begin, begin + size


@kernel(small=SMALL)
def subtree_xor(order, parent, keys):
    """Exclusive or of the keys below every node; ``keys`` has one row per node."""
    out = keys.copy()
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            for lane in range(keys.shape[1]):
                out[p, lane] ^= out[v, lane]
    return out


@kernel(small=SMALL)
def flip_path(parent, length, root):
    """Make ``root`` the root of its component, in place."""
    # Every edge on the way to the old root is named by its other end from now on, so that the
    # lengths move one node up.
    v = root
    above = parent[v]
    below_length = length[v]
    parent[v] = -1
    length[v] = 0.0
    while above >= 0:
        next_above = parent[above]
        next_length = length[above]
        parent[above] = v
        length[above] = below_length
        v = above
        above = next_above
        below_length = next_length


@kernel(small=SMALL)
def prune_and_splice(order, parent, length, n_observed, degree, anchor, climb):
    """Remove hidden nodes with fewer than three neighbors; every root must be observed.

    Hidden leaves go first (their neighbor may become a leaf in turn), then hidden nodes with two
    neighbors are replaced by an edge of the summed length. ``degree``, the number of neighbors
    of every node, becomes what is left of it; a hidden node stays when that is three or more.
    ``anchor``, all −1 before, and ``climb``, all 0, receive the new parent and length.
    """
    # Children before parents: a chain of hidden nodes with nothing observed below goes as a whole.
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        if v >= n_observed and degree[v] <= 1:
            degree[v] = 0
            if parent[v] >= 0:
                degree[parent[v]] -= 1
    # anchor[v] is the nearest ancestor that stays, climb[v] the distance to it.
    for v in order:
        p = parent[v]
        if p >= 0:
            if p < n_observed or degree[p] >= 3:
                anchor[v] = p
                climb[v] = length[v]
            else:
                anchor[v] = anchor[p]
                climb[v] = length[v] + climb[p]


@kernel(small=SMALL)
def sorted_by(keys, items):
    """Items in ascending order of their keys, ties by item (Shell's sort: quick to compile)."""
    out = items.copy()
    gap = 1  # 1, 4, 13, 40, …: Knuth's gaps
    while gap < out.size:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for i in range(gap, out.size):
            item = out[i]
            key = keys[item]
            j = i
            while j >= gap and (
                keys[out[j - gap]] > key or (keys[out[j - gap]] == key and out[j - gap] > item)
            ):
                out[j] = out[j - gap]
                j -= gap
            out[j] = item
    return out

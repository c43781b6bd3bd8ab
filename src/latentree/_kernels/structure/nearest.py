"""Lists of each node's nearest others, filled from blocks; Borůvka's algorithm on them.

``value[i]`` and ``node[i]`` are the list of node i: the k smallest values seen, ascending, and the
nodes at the other end; of equal values the lower node comes first. Places that are free hold inf
and −1. Nodes of the same ``label`` do not enter each other's lists.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

_CHUNK = 64
"""Distances that are compared at a time: one test for all, as nearly always none is near enough."""


@kernel()
def _insert(value, node, x, j):
    """Insert into one list, dropping its last entry."""
    # The list is sorted by (value, node); a free place holds (inf, −1) and gives way to anything.
    place = value.size - 1
    if x > value[place] or (x == value[place] and j > node[place] >= 0):
        return
    while place and (x < value[place - 1] or (x == value[place - 1] and j < node[place - 1])):
        value[place] = value[place - 1]
        node[place] = node[place - 1]
        place -= 1
    value[place] = x
    node[place] = j


@kernel()
def offer_to_rows(block, rows, columns, label, value, node):
    """Offer a block of values to the lists of its rows."""
    last = value.shape[1] - 1
    for a in range(block.shape[0]):
        i = rows[a]
        limit = block.dtype.type(value[i, last])
        for start in range(0, block.shape[1], _CHUNK):
            line = block[a, start : start + _CHUNK]
            found = np.int32(0)
            for b in range(line.size):  # vectorizes; nearly always nothing is near enough
                found |= np.int32(line[b] <= limit)
            if found:
                for b in range(line.size):
                    j = columns[start + b]
                    if line[b] <= limit and label[i] != label[j]:
                        _insert(value[i], node[i], line[b], j)
                        limit = block.dtype.type(value[i, last])


@kernel()
def offer_to_columns(block, start, stop, rows, columns, label, value, node):
    """Offer a block of values to the lists of its columns from ``start`` to ``stop``."""
    last = value.shape[1] - 1
    mine = columns[start:stop]
    limits = np.empty(mine.size, block.dtype)
    for b in range(mine.size):
        limits[b] = value[mine[b], last]
    for a in range(block.shape[0]):
        i = rows[a]
        for first in range(0, mine.size, _CHUNK):
            line = block[a, start + first : min(start + first + _CHUNK, stop)]
            limit = limits[first : first + _CHUNK]
            found = np.int32(0)
            for b in range(line.size):
                found |= np.int32(line[b] <= limit[b])
            if found:
                for b in range(line.size):
                    j = mine[first + b]
                    if line[b] <= limit[b] and label[i] != label[j]:
                        _insert(value[j], node[j], line[b], i)
                        limit[b] = value[j, last]


@kernel()
def sort_lists(rows, value, node):
    """Sort the lists of some nodes by (value, node), after their values have changed."""
    for i in rows:
        v, j = value[i], node[i]
        for place in range(1, v.size):
            x, other = v[place], j[place]
            q = place
            while q and (x < v[q - 1] or (x == v[q - 1] and other < j[q - 1])):
                v[q], j[q] = v[q - 1], j[q - 1]
                q -= 1
            v[q], j[q] = x, other


@kernel()
def _before(x, a, b, y, c, d):
    """Whether the edge (a, b) of value x comes before (c, d) of value y, ends in any order."""
    if x != y:
        return x < y
    low, high = min(a, b), max(a, b)
    low_other, high_other = min(c, d), max(c, d)
    return low < low_other or (low == low_other and high < high_other)


@kernel()
def _find(group, v):
    """The name of v's group: a root of the union-find forest, whose paths are halved."""
    while group[v] != v:
        group[v] = group[group[v]]
        v = group[v]
    return v


@kernel()
def shortest_leaving(label, value, node, cursor, radius, radius_node):
    """The shortest listed edge that leaves each component, and the shortest that may be unlisted.

    ``label`` is the component of each node, named by one of its nodes. An edge that leaves the
    component of i and is not in the list of i comes after (``radius[i]``, i, ``radius_node[i]``).
    Returns for every name the node inside whose list holds the edge (−1 for none), the node with
    the smallest radius, and whether the edge comes first, so that it is shortest of all.
    """
    m = label.size
    inside = np.full(m, -1, np.int64)
    weakest = np.full(m, -1, np.int64)
    for i in range(m):
        # Entries that have come into the own component are passed for good: it only grows.
        while cursor[i] < value.shape[1] and (
            node[i, cursor[i]] >= 0 and label[node[i, cursor[i]]] == label[i]
        ):
            cursor[i] += 1
        c = label[i]
        w = weakest[c]
        if w < 0 or _before(radius[i], i, radius_node[i], radius[w], w, radius_node[w]):
            weakest[c] = i
        if cursor[i] == value.shape[1] or node[i, cursor[i]] < 0:
            continue
        s = inside[c]
        if s < 0 or _before(
            value[i, cursor[i]], i, node[i, cursor[i]], value[s, cursor[s]], s, node[s, cursor[s]]
        ):
            inside[c] = i
    # The shortest listed edge is the shortest of all if no edge that is in no list can precede it.
    certain = np.zeros(m, np.bool_)
    for c in range(m):
        s, w = inside[c], weakest[c]
        if s >= 0:
            certain[c] = not _before(
                radius[w], w, radius_node[w], value[s, cursor[s]], s, node[s, cursor[s]]
            )
    return inside, certain


@kernel()
def join_components(label, value, node, cursor, radius, radius_node, edges, lengths, n_edges):
    """Borůvka's rounds: join components by edges that are certainly the shortest, while any is.

    ``label`` is brought up to date, edges and their values are appended. Returns their number, and
    from the last round the nodes inside at which the listed edges begin.
    """
    m = label.size
    group = np.arange(m)
    while True:
        inside, certain = shortest_leaving(label, value, node, cursor, radius, radius_node)
        before = n_edges
        for i in range(m):
            group[i] = label[i]
        for c in range(m):
            if not certain[c]:
                continue
            i = inside[c]
            j = node[i, cursor[i]]
            a, b = _find(group, label[i]), _find(group, label[j])
            if a != b:  # the other side may have chosen the same edge
                group[max(a, b)] = min(a, b)
                edges[n_edges, 0], edges[n_edges, 1] = i, j
                lengths[n_edges] = value[i, cursor[i]]
                n_edges += 1
        if n_edges == before:
            return n_edges, inside
        for i in range(m):
            label[i] = _find(group, label[i])


@kernel()
def unsettled(label, value, node, cursor, radius, radius_node, inside):
    """Nodes whose lists end too early to tell the shortest edge that leaves their component.

    The component with most of them is left out: all others will join it or one another.
    """
    m = label.size
    blocking = np.zeros(m, np.bool_)
    count = np.zeros(m, np.int64)
    for i in range(m):
        s = inside[label[i]]
        if s < 0 or _before(
            radius[i], i, radius_node[i], value[s, cursor[s]], s, node[s, cursor[s]]
        ):
            blocking[i] = True
            count[label[i]] += 1
    largest = np.argmax(count)
    for i in range(m):
        if label[i] == largest:
            blocking[i] = False
    return np.flatnonzero(blocking)

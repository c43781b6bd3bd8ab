"""Minimum spanning trees, by one total order of all edges.

An edge (i, j), i < j, of length d has the key (d + (shift[i] + shift[j]), i, j), compared in that
order. No two keys are equal, so there is one minimum spanning tree only, however it is found: by
Prim's algorithm in a dense matrix, or by Borůvka's from lists of near neighbors.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

# Sums must not be reordered: keys are compared for equality.
_SAFE = {"nnan", "ninf", "nsz"}
# No distance: the largest number that is finite, as infinities are ruled out above.
_HUGE = float(np.finfo(np.float64).max)
_CHUNK = 512  # nodes with one minimum: a search looks at m/512 minima and one chunk
_SMALL = 4096  # distances for which nothing is compiled
_SMALL_ROW = 64  # and those of a row


def minimum_spanning_tree(distance, shift):
    """Edges of the tree that minimizes the sum of ``distance[i, j] + shift[i] + shift[j]``.

    O(m²) time and O(m) space beside the matrix. ``shift`` breaks ties: it must be ≥ 0, and what
    it adds corresponds to an edge hung on every node, so that additive distances stay additive.
    Returns the two ends of each edge, in the order in which Prim's algorithm finds them.
    """
    m = distance.shape[0]
    ends = np.empty((2, max(m - 1, 0)), np.int64)
    best, source, lowest = _room(m)
    _prim(distance, shift, best, source, lowest, ends[0], ends[1])
    return ends[0], ends[1]


def spanning_tree_of_rows(row_of, shift):
    """Return the same from rows of distances that are asked for once each, in O(m) space.

    ``row_of(node)`` gives the distances of a node to all. Returns the values of the edges as well,
    ``distance + shift + shift``.
    """
    m = shift.size
    ends, values = np.empty((2, max(m - 1, 0)), np.int64), np.empty(max(m - 1, 0))
    best, source, lowest = _room(m)
    node = 0
    for step in range(m - 1):
        node = _come_in(node, row_of(node), shift, best, source, lowest)
        ends[:, step], values[step] = (source[node], node), best[node]
    return ends[0], ends[1], values


def _room(m):
    return np.full(m, _HUGE), np.zeros(m, np.int64), np.empty(-(-m // _CHUNK))


@kernel(fastmath=_SAFE, small=_SMALL)
def _prim(distance, shift, best, source, lowest, ends_a, ends_b):
    """Fill the ends; ``lowest`` is room for the smallest value in every chunk of nodes."""
    m = best.size
    node = source[0]  # 0, but not a constant, for which helpers would be compiled once more
    for step in range(m - 1):
        node = _come_in(node, distance[node], shift, best, source, lowest)
        ends_a[step] = source[node]
        ends_b[step] = node


@kernel(fastmath=_SAFE, small=_SMALL_ROW)
def _come_in(node, row, shift, best, source, lowest):
    """Take a node into the tree; returns the one that comes next.

    ``best[j]`` is the shortest edge from j into the tree so far, ``source[j]`` its other end. One
    pass offers the edges of the node and finds the minimum of every chunk.
    """
    best[node] = -1.0
    for start in range(0, best.size, _CHUNK):
        stop = start + _CHUNK
        lowest[start // _CHUNK] = _approach(
            node,
            shift[node],
            row[start:stop],
            shift[start:stop],
            best[start:stop],
            source[start:stop],
        )
    return _first_of_lowest(lowest, best, source)


@kernel(fastmath=_SAFE)
def _approach(node, here, row, shift, best, source):
    """Offer edges from a node that has just come in; returns the smallest value still open."""
    smallest = _HUGE
    for j in range(row.size):
        # A node that is in the tree already has best = −1, which nothing undercuts.
        candidate = row[j] + (here + shift[j])
        closer = (candidate < best[j]) | ((candidate == best[j]) & (node < source[j]))
        value = candidate if closer else best[j]
        source[j] = node if closer else source[j]
        best[j] = value
        open_value = value if value >= 0.0 else _HUGE
        smallest = open_value if open_value < smallest else smallest
    return smallest


@kernel()
def _first_of_lowest(lowest, best, source):
    """Of the open nodes with the smallest value, the one whose edge comes first."""
    m = best.size
    smallest = _HUGE
    for value in lowest:
        smallest = value if value < smallest else smallest
    chosen = 0
    first = m * m  # a·m + b of the edge (a, b)
    for chunk in range(lowest.size):
        if lowest[chunk] == smallest:
            stop = (chunk + 1) * _CHUNK
            for j in range(chunk * _CHUNK, stop if stop < m else m):
                if best[j] == smallest:
                    other = source[j]
                    key = other * m + j if other < j else j * m + other
                    if key < first:
                        chosen = j
                        first = key
    return chosen


def prim_order(n, ends_a, ends_b):
    """Edges of the minimum spanning tree of a connected graph, in the order Prim finds them.

    The edges of the graph come in ascending order of their keys. Returns both ends from node 0
    outwards, the one nearer to it first.
    """
    tails, heads = np.concatenate([ends_a, ends_b]), np.concatenate([ends_b, ends_a])
    by_tail = np.argsort(tails, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    out = np.empty((2, max(n - 1, 0)), np.int64)
    heap, inside = np.empty(ends_a.size + 1, np.int64), np.zeros(n, bool)
    edges = by_tail % max(ends_a.size, 1)
    _grow(starts, heads[by_tail], edges, ends_a, ends_b, heap, inside, out[0], out[1])
    return out[0], out[1]


@kernel()
def _grow(starts, neighbors, edges, ends_a, ends_b, heap, inside, out_a, out_b):
    """Fill ``out``; ``heap`` holds numbers of edges, the smallest on top."""
    node, size = 0, 0
    for step in range(out_a.size):
        inside[node] = True
        for position in range(starts[node], starts[node + 1]):
            if not inside[neighbors[position]]:
                size = _push(heap, size, edges[position])
        e = heap[0]
        size = _pop(heap, size)
        while inside[ends_a[e]] and inside[ends_b[e]]:  # closes a cycle
            e = heap[0]
            size = _pop(heap, size)
        first, node = ends_a[e], ends_b[e]
        if inside[node]:
            first, node = node, first
        out_a[step], out_b[step] = first, node


@kernel()
def _push(heap, size, item):
    """Put an item on a binary heap: entry p is at most entries 2·p + 1 and 2·p + 2."""
    place = size
    while place and heap[(place - 1) // 2] > item:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item
    return size + 1


@kernel()
def _pop(heap, size):
    """Take the smallest item off: the last one sinks from the top to where it belongs."""
    size -= 1
    item = heap[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item
    return size

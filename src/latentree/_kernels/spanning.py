"""Minimum spanning trees, by one total order of all edges.

An edge (i, j), i < j, of length d has the key (d + (shift[i] + shift[j]), i, j), compared in that
order. No two keys are equal, so there is one minimum spanning tree only, however it is found: by
Prim's algorithm in a dense matrix, or by Borůvka's from lists of near neighbours.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.trees import neighbour_lists

# Sums must not be reordered: keys are compared for equality.
_SAFE = {"nnan", "ninf", "nsz"}
_HUGE = 1e300
_CHUNK = 512


@kernel(fastmath=_SAFE)
def minimum_spanning_tree(distance, shift):
    """Edges of the tree that minimises the sum of ``distance[i, j] + shift[i] + shift[j]``.

    O(m²) time and O(m) space beside the matrix. ``shift`` breaks ties: it must be ≥ 0, and what
    it adds corresponds to an edge hung on every node, so that additive distances stay additive.
    Returns the two ends of each edge, in the order in which Prim's algorithm finds them.
    """
    m = distance.shape[0]
    best = np.full(m, _HUGE)
    source = np.zeros(m, np.int64)
    ends_a = np.empty(max(m - 1, 0), np.int64)
    ends_b = np.empty(max(m - 1, 0), np.int64)
    lowest = np.empty(-(-m // _CHUNK))  # smallest value in every chunk of nodes
    node = 0
    best[0] = -1.0
    for step in range(m - 1):
        row = distance[node]
        for start in range(0, m, _CHUNK):
            part = slice(start, min(start + _CHUNK, m))
            lowest[start // _CHUNK] = _approach(
                node, shift[node], row[part], shift[part], best[part], source[part]
            )
        node = _first_of_lowest(lowest, best, source)
        ends_a[step] = source[node]
        ends_b[step] = node
        best[node] = -1.0
    return ends_a, ends_b


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
    smallest = lowest.min()
    chosen, low, high = 0, m, m
    for chunk in range(lowest.size):
        if lowest[chunk] == smallest:
            for j in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, m)):
                if best[j] == smallest:
                    a, b = min(source[j], j), max(source[j], j)
                    if a < low or (a == low and b < high):
                        chosen, low, high = j, a, b
    return chosen


@kernel()
def prim_order(n, ends_a, ends_b):
    """Edges of a tree, which come in ascending order of their keys, in the order Prim finds them.

    Returns both ends from node 0 outwards, the one nearer to it first.
    """
    starts, neighbours, edges = neighbour_lists(n, ends_a, ends_b)
    heap = np.empty(ends_a.size + 1, np.int64)  # numbers of edges: the smallest on top
    inside = np.zeros(n, np.bool_)
    out_a = np.empty(ends_a.size, np.int64)
    out_b = np.empty(ends_a.size, np.int64)
    node, size = 0, 0
    for step in range(ends_a.size):
        inside[node] = True
        for position in range(starts[node], starts[node + 1]):
            if not inside[neighbours[position]]:
                size = _push(heap, size, edges[position])
        e = heap[0]
        size = _pop(heap, size)
        first, node = ends_a[e], ends_b[e]
        if inside[node]:
            first, node = node, first
        out_a[step], out_b[step] = first, node
    return out_a, out_b


@kernel()
def _push(heap, size, item):
    place = size
    while place and heap[(place - 1) // 2] > item:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item
    return size + 1


@kernel()
def _pop(heap, size):
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

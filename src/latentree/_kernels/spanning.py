"""Minimum spanning tree of a dense matrix, by Prim's algorithm."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel


@kernel(fastmath=True)
def minimum_spanning_tree(distance, shift):
    """Edges of the tree that minimises the sum of ``distance[i, j] + shift[i] + shift[j]``.

    O(m²) time and O(m) space beside the matrix. ``shift`` breaks ties: it must be ≥ 0, and what
    it adds corresponds to an edge hung on every node, so that additive distances stay additive.
    Returns the two ends of each edge, in the order in which Prim's algorithm finds them.
    """
    m = distance.shape[0]
    best = np.empty(m)
    source = np.zeros(m, np.int64)
    ends_a = np.empty(max(m - 1, 0), np.int64)
    ends_b = np.empty(max(m - 1, 0), np.int64)
    huge = 1e300
    for j in range(m):
        best[j] = huge
    node = 0
    best[0] = -1.0
    for step in range(m - 1):
        row = distance[node]
        here = shift[node]
        smallest = huge
        for j in range(m):
            # A node that is in the tree already has best = −1, which nothing undercuts.
            candidate = row[j] + here + shift[j]
            closer = candidate < best[j]
            value = candidate if closer else best[j]
            source[j] = node if closer else source[j]
            best[j] = value
            open_value = value if value >= 0.0 else huge
            smallest = open_value if open_value < smallest else smallest
        for j in range(m):
            if best[j] == smallest:
                node = j
                break
        ends_a[step] = source[node]
        ends_b[step] = node
        best[node] = -1.0
    return ends_a, ends_b

"""The growing tree of CLGrouping: neighborhoods are taken out, and put back as small trees.

The tree is a set of linked lists. Slot s is one direction of an edge: it leads to node
``target[s]`` at the distance ``length[s]``, slot s ^ 1 leads back, and ``following[s]`` is the next
slot at the same node. ``head[v]`` is the first slot of node v. −1 ends a list.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.structure.grouping import depth_above


@kernel()
def replace_star(i, ends, lengths, free, head, target, length, following, preceding):
    """Cut all edges at node i (none if i is −1) and link the nodes ``ends`` in their place.

    ``free`` is a stack of free pairs of slots whose height is in ``free[0]``.
    """
    # Take the way back of every edge out of the list of the other end, and free the pair of slots.
    s = head[i] if i >= 0 else -1
    while s >= 0:
        back = s ^ 1
        before = preceding[back]
        after = following[back]
        if before >= 0:
            following[before] = after
        else:
            head[target[s]] = after
        if after >= 0:
            preceding[after] = before
        free[0] += 1
        free[free[0]] = s & ~1
        s = following[s]
    if i >= 0:
        head[i] = -1
    # Each new edge takes a pair of slots, and comes first in the lists of both its ends.
    for e in range(lengths.size):
        slot = free[free[0]]
        free[0] -= 1
        for side in range(2):
            s = slot + side
            v = ends[e, side]
            after = head[v]
            target[s] = ends[e, 1 - side]
            length[s] = lengths[e]
            preceding[s] = -1
            following[s] = after
            if after >= 0:
                preceding[after] = s
            head[v] = s


@kernel()
def _search(n_observed, place, stop, head, target, length, following, seen, far, node, shut, reach):
    """Write the observed nodes nearest to ``node[0]`` from ``place`` on; return where they end.

    The slot ``shut[0]`` is closed. A best-first search that looks at no more nodes at a time than
    ``node`` has places, and stops at observed ones.
    """
    reach[0] = 0.0
    size = 1
    while size > 0 and place < stop:
        best = 0  # few nodes wait at a time: a scan is as quick as a heap
        for q in range(1, size):
            if reach[q] < reach[best]:
                best = q
        v = node[best]
        back = shut[best]
        so_far = reach[best]
        size -= 1
        node[best] = node[size]
        shut[best] = shut[size]
        reach[best] = reach[size]
        if v < n_observed:
            seen[place] = v
            far[place] = so_far
            place += 1
            continue
        s = head[v]
        while s >= 0:
            # `shut` is the way back, so that the search never turns round. When all places are
            # taken the last one gives way to a nearer node.
            distance = so_far + length[s]
            if s != back and (size < node.size or distance < reach[size - 1]):
                size += 1 if size < node.size else 0
                node[size - 1] = target[s]
                shut[size - 1] = s ^ 1
                reach[size - 1] = distance
            s = following[s]
    return place


@kernel()
def representatives(
    i, n_observed, count, head, target, length, following,
    members, starts, seen, far, node, shut, reach,
):  # fmt: skip
    """Members of the closed neighborhood of i, and observed nodes that stand for each.

    Fills the members (i first), where each one's representatives start, their nodes and their
    distances to the member, and returns the number of members. A hidden member is seen through
    the nearest observed nodes behind it, away from i, at most ``count``; an observed one stands
    for itself. ``node``, ``shut`` and ``reach`` are room to search in.
    """
    members[0] = i
    seen[0] = i
    far[0] = 0.0
    starts[0] = 0
    starts[1] = 1
    a = 1
    s = head[i]
    while s >= 0:
        members[a] = target[s]
        node[0] = target[s]
        shut[0] = s ^ 1
        stop = starts[a] + count
        starts[a + 1] = _search(
            n_observed,
            starts[a],
            stop,
            head,
            target,
            length,
            following,
            seen,
            far,
            node,
            shut,
            reach,
        )
        a += 1
        s = following[s]
    return a


@kernel()
def member_distances(starts, far, block, reach, weight, depth, out):
    """Distances and depths of the members, through those that represent them.

    d(x, y) is the mean of d(c, c′) − len(c, x) − len(c′, y), weighted by the precision e^(−2·len)
    of each representative (equal weights when ``reach`` is 0); the depth of x is −log R, as in
    :mod:`latentree._kernels.structure.grouping`. Both are 0 before.
    """
    n = depth.size
    for a in range(n):
        total = 0.0
        for q in range(starts[a], starts[a + 1]):
            near = far[q] if far[q] > 0.0 else 0.0
            weight[q] = math.exp(-2.0 * (near if near < reach else reach))
            total += weight[q]
        for q in range(starts[a], starts[a + 1]):
            weight[q] /= total
        if starts[a + 1] - starts[a] > 1 or far[starts[a]] != 0.0:
            depth[a] = depth_above(far[starts[a] : starts[a + 1]])
    for a in range(n):
        for b in range(a):
            mean = 0.0
            for q in range(starts[a], starts[a + 1]):
                for p in range(starts[b], starts[b + 1]):
                    mean += weight[q] * weight[p] * (block[q, p] - far[q] - far[p])
            out[a, b] = mean
            out[b, a] = mean


@kernel()
def contract_local(ends, lengths, n_members, n_nodes, limit):
    """Contract edges of at most ``limit``, the lowest node of each group staying.

    Members keep apart. Returns the remaining edges with new nodes numbered without gaps.
    """
    # group: a union-find forest in which the lowest node names a group. Two members, whose
    # numbers are below n_members, never come into the same group.
    group = np.arange(n_nodes)
    keep = np.ones(ends.shape[0], np.bool_)
    for e in range(ends.shape[0]):
        if lengths[e] > limit:
            continue
        a, b = ends[e, 0], ends[e, 1]
        while group[a] != a:
            a = group[a]
        while group[b] != b:
            b = group[b]
        low, high = min(a, b), max(a, b)
        if high >= n_members and low != high:
            group[high] = low
            keep[e] = False
    number = np.arange(n_nodes)
    count = n_members
    for v in range(n_members, n_nodes):
        if group[v] == v:
            number[v] = count
            count += 1
    out = np.empty((keep.sum(), 2), np.int64)
    out_lengths = np.empty(out.shape[0])
    place = 0
    for e in range(ends.shape[0]):
        if keep[e]:
            for side in range(2):
                v = ends[e, side]
                while group[v] != v:
                    v = group[v]
                out[place, side] = number[v]
            out_lengths[place] = lengths[e]
            place += 1
    return out, out_lengths, count

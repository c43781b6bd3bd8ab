"""The growing tree of CLGrouping: neighbourhoods are taken out, and put back as small trees.

The tree is a set of linked lists. Slot s is one direction of an edge: it leads to node
``target[s]`` at the distance ``length[s]``, slot s ^ 1 leads back, and ``following[s]`` is the next
slot at the same node. ``head[v]`` is the first slot of node v. −1 ends a list.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel


@kernel()
def add_edge(a, b, edge_length, slot, head, target, length, following, preceding):
    """Link two nodes through the free pair of slots ``slot`` and ``slot`` + 1."""
    for s, v, u in ((slot, a, b), (slot + 1, b, a)):
        target[s] = u
        length[s] = edge_length
        preceding[s] = -1
        following[s] = head[v]
        if head[v] >= 0:
            preceding[head[v]] = s
        head[v] = s


@kernel()
def remove_slot(s, v, head, following, preceding):
    """Take one direction of an edge out of the list of node v."""
    if preceding[s] >= 0:
        following[preceding[s]] = following[s]
    else:
        head[v] = following[s]
    if following[s] >= 0:
        preceding[following[s]] = preceding[s]


@kernel()
def nearest_behind(x, back, n_observed, count, head, target, length, following):
    """The nearest observed nodes that x sees when the slot ``back`` is closed, with distances.

    A best-first search that looks at no more than a few dozen nodes. An observed x sees itself.
    """
    found = np.empty(count, np.int64)
    found_far = np.empty(count)
    if x < n_observed:
        found[0] = x
        found_far[0] = 0.0
        return found[:1], found_far[:1]
    room = 64
    node = np.empty(room, np.int64)
    closed = np.empty(room, np.int64)
    far = np.empty(room)
    node[0], closed[0], far[0] = x, back, 0.0
    size = 1
    n_found = 0
    while size and n_found < count:
        best = 0
        for q in range(1, size):
            if far[q] < far[best]:
                best = q
        v, shut, so_far = node[best], closed[best], far[best]
        size -= 1
        node[best], closed[best], far[best] = node[size], closed[size], far[size]
        if v < n_observed:
            found[n_found] = v
            found_far[n_found] = so_far
            n_found += 1
            continue
        s = head[v]
        while s >= 0:
            if s != shut and (size < room or so_far + length[s] < far[size - 1]):
                place = min(size, room - 1)
                node[place], closed[place], far[place] = target[s], s ^ 1, so_far + length[s]
                size = place + 1
            s = following[s]
    return found[:n_found], found_far[:n_found]


@kernel()
def representatives(i, n_observed, count, head, target, length, following):
    """Members of the closed neighbourhood of i, and observed nodes that stand for each.

    Returns the members (i first), where each one's representatives start, their nodes and their
    distances to the member. A hidden member is seen through observed nodes behind it, away from
    i; an observed one stands for itself.
    """
    degree = 0
    s = head[i]
    while s >= 0:
        degree += 1
        s = following[s]
    members = np.empty(degree + 1, np.int64)
    starts = np.zeros(degree + 2, np.int64)
    seen = np.empty((degree + 1) * count, np.int64)
    far = np.empty((degree + 1) * count)
    members[0], seen[0], far[0], starts[1] = i, i, 0.0, 1
    a = 1
    s = head[i]
    while s >= 0:
        x = target[s]
        nodes, distances = nearest_behind(
            x, s ^ 1, n_observed, count, head, target, length, following
        )
        members[a] = x
        starts[a + 1] = starts[a] + nodes.size
        for q in range(nodes.size):
            seen[starts[a] + q] = nodes[q]
            far[starts[a] + q] = distances[q]
        a += 1
        s = following[s]
    return members, starts, seen[: starts[a]], far[: starts[a]]


@kernel()
def member_distances(starts, far, block, reach):
    """Distances and depths of the members, through those that represent them.

    d(x, y) is the mean of d(c, c′) − len(c, x) − len(c′, y), weighted by the precision e^(−2·len)
    of each representative (equal weights when ``reach`` is 0); the depth of x is −log R, as in
    :mod:`latentree._kernels.grouping`.
    """
    n = starts.size - 1
    weight = np.empty(far.size)
    depth = np.zeros(n)
    for a in range(n):
        total = 0.0
        signal = 0.0
        for q in range(starts[a], starts[a + 1]):
            weight[q] = math.exp(-2.0 * min(max(far[q], 0.0), reach))
            total += weight[q]
            rho2 = math.exp(-2.0 * max(far[q], 1e-6))
            signal += rho2 / (1.0 - rho2)
        for q in range(starts[a], starts[a + 1]):
            weight[q] /= total
        if starts[a + 1] - starts[a] > 1 or far[starts[a]] != 0.0:
            depth[a] = 0.5 * math.log1p(1.0 / signal)
    out = np.zeros((n, n))
    for a in range(n):
        for b in range(a):
            mean = 0.0
            for q in range(starts[a], starts[a + 1]):
                for p in range(starts[b], starts[b + 1]):
                    mean += weight[q] * weight[p] * (block[q, p] - far[q] - far[p])
            out[a, b] = mean
            out[b, a] = mean
    return out, depth


@kernel()
def contract_local(ends, lengths, n_members, n_nodes, limit):
    """Contract edges of at most ``limit``, the lowest node of each group staying.

    Members keep apart. Returns the remaining edges with new nodes numbered without gaps.
    """
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


@kernel()
def replace_neighbourhood(
    members, ends, lengths, next_hidden, free, head, target, length, following, preceding
):
    """Put a small tree over the members in place of the star around the first of them.

    ``ends`` numbers members by their position and new nodes from there on. ``free`` is a stack of
    free pairs of slots whose height is in ``free[0]``. Returns the next free hidden number.
    """
    i = members[0]
    s = head[i]
    while s >= 0:
        after = following[s]
        remove_slot(s ^ 1, target[s], head, following, preceding)
        free[0] += 1
        free[free[0]] = s & ~1
        s = after
    head[i] = -1
    most = 0
    for e in range(ends.shape[0]):
        a, b = ends[e, 0], ends[e, 1]
        most = max(most, a, b)
        a = members[a] if a < members.size else next_hidden + a - members.size
        b = members[b] if b < members.size else next_hidden + b - members.size
        slot = free[free[0]]
        free[0] -= 1
        add_edge(a, b, lengths[e], slot, head, target, length, following, preceding)
    return next_hidden + max(most - members.size + 1, 0)


@kernel()
def all_edges(n_nodes, head, target, length, following):
    """Ends and lengths of all edges."""
    ends = np.empty((max(n_nodes - 1, 0), 2), np.int64)
    lengths = np.empty(ends.shape[0])
    count = 0
    for v in range(n_nodes):
        s = head[v]
        while s >= 0:
            if v < target[s]:
                ends[count, 0], ends[count, 1] = v, target[s]
                lengths[count] = length[s]
                count += 1
            s = following[s]
    return ends[:count], lengths[:count]

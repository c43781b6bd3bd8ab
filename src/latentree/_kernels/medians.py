"""k medians on a tree: least costs from the leaves up, and the choices that gave them.

``cost`` holds, for every node v and every node u that may speak for its group, a table of j groups
below v and s observed nodes below v in the group of v (2 stands for more); see ``tree._cut``. That
of v and u begins at ``starts[v] + u·(most[v] + 1)·SIZES``, with ``most[v]`` groups below v at most.
``ended[v, j]`` is the least cost of v where its group ends there, above it.

Leaves that cannot speak for a group are in that of their parent: ``own[v, u]`` is the cost of v and
these, and ``size[v]`` their number. Orders and lists of children leave them out.

A subtree is a range of the order: u is below v if ``first[v] ≤ place[u] < last[v]``.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

SIZES = 3
"""Observed nodes of a piece: 0, 1, or 2 and more."""

_SMALL = 2_000  # costs for which nothing is compiled


@kernel()
def _begin(v, u, own, size, center, out):
    """Fill the costs of a node and its leaves alone; returns the groups that are counted there."""
    opened = 1 if center[v] == u else 0
    for j in range(opened + 1):
        for s in range(SIZES):
            out[j, s] = np.inf
    out[opened, size[v]] = own[v, u]
    return opened


@kernel()
def _added(child, u, j, t, cost, starts, most, ended, place, first, last):
    """Least cost of a child with j groups that brings t variables to the group above."""
    value = cost[starts[child] + (u * (most[child] + 1) + j) * SIZES + t]
    if t == 0 and not first[child] <= place[u] < last[child]:
        value = min(value, ended[child, j])
    return value


@kernel()
def _join(before, reach, child, u, k, cost, starts, most, ended, place, first, last, out):
    """Costs with one more child; returns the most groups that they know of."""
    further = min(k, reach + most[child])
    for j in range(further + 1):
        for s in range(SIZES):
            out[j, s] = np.inf
    for j in range(most[child] + 1):
        for t in range(SIZES):
            value = _added(child, u, j, t, cost, starts, most, ended, place, first, last)
            if value == np.inf:
                continue
            for i in range(min(reach, k - j) + 1):
                for s in range(SIZES):
                    total = before[i, s] + value
                    size = min(s + t, SIZES - 1)
                    if total < out[i + j, size]:
                        out[i + j, size] = total
    return further


@kernel(small=_SMALL)
def fill_costs(
    order,
    child_starts,
    children,
    center,
    own,
    size,
    k,
    least,
    cost,
    starts,
    most,
    ended,
    place,
    first,
    last,
):
    """Fill ``cost`` and ``ended`` of all nodes; a group has at least ``least`` variables."""
    table, other = np.empty((k + 1, SIZES)), np.empty((k + 1, SIZES))
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        ended[v] = np.inf
        for u in range(place.size):
            reach = _begin(v, u, own, size, center, table)
            for child in children[child_starts[v] : child_starts[v + 1]]:
                reach = _join(
                    table, reach, child, u, k, cost, starts, most, ended, place, first, last, other
                )
                table, other = other, table
            at = starts[v] + u * (most[v] + 1) * SIZES
            is_below = first[v] <= place[u] < last[v]
            for j in range(most[v] + 1):
                for s in range(SIZES):
                    value = table[j, s] if j <= reach else np.inf
                    cost[at + j * SIZES + s] = value
                    if is_below and s >= least and value < ended[v, j]:
                        ended[v, j] = value


@kernel()
def _speaker(v, j, least, cost, starts, most, place, first, last):
    """Who speaks for a group that ends at v, and how many variables it has: those of least cost."""
    best = np.inf
    speaker, size = -1, -1
    for u in range(place.size):
        if first[v] <= place[u] < last[v]:
            at = starts[v] + (u * (most[v] + 1) + j) * SIZES
            for s in range(least, SIZES):
                if cost[at + s] < best:
                    best = cost[at + s]
                    speaker, size = u, s
    return speaker, size


@kernel(small=_SMALL)
def assign_group(
    top,
    groups,
    child_starts,
    children,
    center,
    own,
    size,
    k,
    least,
    cost,
    starts,
    most,
    ended,
    place,
    first,
    last,
    owner,
):
    """Set ``owner`` below the top node of a group, which has so many groups below it."""
    widest = np.diff(child_starts).max() + 1
    steps, reaches = np.empty((widest, k + 1, SIZES)), np.empty(widest, np.int64)
    stack = np.empty((owner.size, 4), np.int64)  # node, who speaks if known, groups, variables
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = top, -1, groups, -1
    count = 1
    while count:
        count -= 1
        v, u, j, s = stack[count, 0], stack[count, 1], stack[count, 2], stack[count, 3]
        if u < 0:
            u, s = _speaker(v, j, least, cost, starts, most, place, first, last)
        owner[v] = u
        mine = children[child_starts[v] : child_starts[v + 1]]
        reaches[0] = _begin(v, u, own, size, center, steps[0])
        for c in range(mine.size):
            reaches[c + 1] = _join(
                steps[c], reaches[c], mine[c], u, k, cost, starts, most, ended, place, first, last,
                steps[c + 1],
            )  # fmt: skip
        for c in range(mine.size - 1, -1, -1):
            child, best = mine[c], np.inf
            theirs, brings, rest = 0, 0, 0
            for i in range(max(0, j - reaches[c]), min(j, most[child]) + 1):
                for t in range(SIZES):
                    value = _added(child, u, i, t, cost, starts, most, ended, place, first, last)
                    for r in range(SIZES):
                        if min(r + t, SIZES - 1) == s and steps[c, j - i, r] + value < best:
                            best = steps[c, j - i, r] + value
                            theirs, brings, rest = i, t, r
            value = _added(child, u, theirs, brings, cost, starts, most, ended, place, first, last)
            inside = cost[starts[child] + (u * (most[child] + 1) + theirs) * SIZES + brings]
            stack[count, 0], stack[count, 2] = child, theirs
            stack[count, 1] = u if inside <= value else -1
            stack[count, 3] = brings
            count += 1
            j, s = j - theirs, rest

"""Transfer distances between the splits of one tree and those of another.

A split A | B of the first tree and a cluster C, the observed nodes below a node of the second, are
|A △ C| moves of variables apart, or m − |A △ C| when C stands for the other side. Every variable
has a state s: +1 outside of A, −1 in A, 0 if it counts for either side. With d(v) = Σ s over the
variables below node v of the second tree, |A △ C_v| = |A| + d(v): so the distance to the nearest
split is min(|A| + min d, |B| − max d). A change of a variable's state is added to d along its way
to the root, which the heavy paths of the second tree cut into O(log m) ranges; minimum and maximum
are kept in a segment tree. The variables of A change O(m·log m) times in all, because the edges of
the first tree are visited along its heavy paths, from the bottom of each to its top.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

SMALL = 100  # nodes of a tree below which Python is quicker than to load the compiled code


@kernel(small=SMALL)
def heavy_paths(order, parent):
    """Cut a forest into heavy paths; ``order`` is depth first.

    Returns for every node: the number of nodes below it (itself included), its heavy child or −1,
    the top of its path, and its place, where the nodes of a path stand side by side, top first.
    """
    n = parent.size
    size = np.ones(n, np.int64)
    heavy = np.full(n, -1)
    top = np.empty(n, np.int64)
    place = np.empty(n, np.int64)
    for position in range(n - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            size[p] += size[v]
            if heavy[p] < 0 or size[v] > size[heavy[p]]:
                heavy[p] = v
    count = 0
    for v in order:
        if parent[v] < 0 or heavy[parent[v]] != v:
            u = v
            while u >= 0:
                top[u] = v
                place[u] = count
                count += 1
                u = heavy[u]
    return size, heavy, top, place


@kernel(small=SMALL)
def add_to_range(first, last, amount, added, low, high):
    """Add a number to the leaves first … last of a segment tree.

    Node k of n leaves has the children 2k and 2k + 1, leaf i is node n + i. ``low`` and ``high``
    are the extremes of what is below a node with all that was added there or below, not above.
    """
    n = added.size // 2
    left, right = first + n, last + n
    a, b = left, right
    while a <= b:
        if a & 1:
            added[a] += amount
            low[a] += amount
            high[a] += amount
            a += 1
        if not b & 1:
            added[b] += amount
            low[b] += amount
            high[b] += amount
            b -= 1
        a >>= 1
        b >>= 1
    # Only the ancestors of the two ends can have changed; both are equally deep.
    while left > 1:
        left >>= 1
        right >>= 1
        low[left] = min(low[2 * left], low[2 * left + 1]) + added[left]
        high[left] = max(high[2 * left], high[2 * left + 1]) + added[left]
        if right != left:
            low[right] = min(low[2 * right], low[2 * right + 1]) + added[right]
            high[right] = max(high[2 * right], high[2 * right + 1]) + added[right]


@kernel(small=SMALL)
def change_states(variables, n_observed, amount, second):
    """Add a number to d of every observed node among some, and of all nodes above it."""
    parent, top, place, added, low, high = second
    for variable in variables:
        v = variable if variable < n_observed else -1
        while v >= 0:
            add_to_range(place[top[v]], place[v], amount, added, low, high)
            v = parent[top[v]]


@kernel(small=SMALL)
def nearest_split(n_inside, n_outside, ends, second):
    """Fewest moves for an edge; ``ends``, lower and upper, count for either side; −1 for none."""
    low, high = second[4], second[5]
    for i in range(2):
        if ends[i] >= 0:  # the lower one is in A, the upper is not
            change_states(ends[i : i + 1], ends[i] + 1, 1 - 2 * i, second)
    best = min(n_inside + low[1], n_outside - high[1])
    for i in range(2):
        if ends[i] >= 0:
            change_states(ends[i : i + 1], ends[i] + 1, 2 * i - 1, second)
    # To move all but one of the smaller side leaves the edge of a single variable.
    return min(best, min(n_inside, n_outside) - 1)


@kernel(small=SMALL)
def climb_path(bottom, top, order, parent, place, size, n_observed, claims, second, out):
    """Measure the edges above the nodes of a heavy path, from its bottom to its top."""
    n_inside, n_outside, ends = claims
    v, below = bottom, -1
    while True:
        # All below v goes into A, except what is there already.
        first, last = place[v], place[v] + size[v]
        if below < 0:
            change_states(order[first:last], n_observed, -2, second)
        else:
            change_states(order[first : place[below]], n_observed, -2, second)
            change_states(order[place[below] + size[below] : last], n_observed, -2, second)
        if n_inside[v] >= 0:
            out[v] = nearest_split(n_inside[v], n_outside[v], ends[v], second)
        if v == top:
            break
        below, v = v, parent[v]
    change_states(order[place[top] : place[top] + size[top]], n_observed, 2, second)


@kernel(small=SMALL)
def transfer_distances(order, parent, n_observed, claims, other_order, other_parent):
    """Fewest variables to move so that a split of the first forest is one of the second.

    ``claims`` are, for the edge above each node: the number of variables below it that count, −1
    where no distance is wanted, that of the others of its component, and the two ends of the edge
    where they count for either side, −1 where not. Returns −1 where nothing was wanted.
    O(m·log³ m) for m variables.
    """
    n = parent.size
    size, heavy, path, _ = heavy_paths(order, parent)
    place = np.empty(n, np.int64)
    for position in range(n):
        place[order[position]] = position
    _, _, other_path, other_place = heavy_paths(other_order, other_parent)
    n_leaves = 1  # a power of 2, so that all leaves are equally deep; those without a node stay 0
    while n_leaves < other_parent.size:
        n_leaves *= 2
    added = np.zeros(2 * n_leaves, np.int64)
    low = np.zeros(2 * n_leaves, np.int64)
    high = np.zeros(2 * n_leaves, np.int64)
    second = (other_parent, other_path, other_place, added, low, high)
    n_inside = claims[0]
    out = np.full(n, -1)
    begin = 0
    while begin < n:
        # One component after another; variables of the others count for either side.
        end = begin + size[order[begin]]
        change_states(order[begin:end], n_observed, 1, second)
        for position in range(begin, end):
            top = order[position]
            if path[top] == top:
                bottom, is_wanted = top, n_inside[top] >= 0
                while heavy[bottom] >= 0:
                    bottom = heavy[bottom]
                    is_wanted = is_wanted or n_inside[bottom] >= 0
                if is_wanted:
                    climb_path(
                        bottom, top, order, parent, place, size, n_observed, claims, second, out
                    )
        change_states(order[begin:end], n_observed, -1, second)
        begin = end
    return out

"""Where two sides of a cut link correlate most."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.gaussian import fill_places, means, mix_places, variances


@kernel()
def estimates(side, parent, rho, own, data, number):
    """What is known of the nodes of a side, then of the middles of its edges, at variance 1.

    Nodes come after their parents, the top first; ``number`` receives their places. ``data`` has a
    row for every observed node, what is returned one for every place.
    """
    n, width = side.size, data.shape[1]
    below, above, h = np.zeros((n, width)), np.empty((n, width)), np.zeros((n, width))
    order, side_parent, side_rho, side_own = np.arange(n), np.full(n, -1), np.zeros(n), np.zeros(n)
    for i in range(n):
        v = side[i]
        number[v] = i
        side_rho[i], side_own[i] = rho[v], own[v]
        if i > 0:
            side_parent[i] = number[parent[v]]
        if own[v] >= 0.0:
            below[i] = data[v]
    u = variances(order, side_parent, side_rho, side_own)
    means(order, side_parent, side_rho, side_own, u, below, above, h, np.empty((0, 3)))
    mix, variance = np.empty((2, 2 * n - 1)), np.empty(2 * n - 1)
    mix_places(side_rho, np.full(n, 0.5), u, mix, variance)
    out = np.empty((2 * n - 1, width))
    fill_places(mix, below, above, 0, out)
    return out


@kernel()
def best_move(links, order, begin, end, parent, rho, own, degree, correlation):
    """Return the largest rise of the squared correlation of two sides, and how to get there.

    That is the link to cut (by lower node) and the ends of the one in its place: nodes, and n + v
    for the middle of the edge above v. A link may end on edges, at hidden and inner nodes, or at
    the only one of a side.
    """
    n = parent.size
    number = np.empty(n, np.int64)
    best = (0.0, -1, -1, -1)
    for v in links:
        inside = order[begin[v] : end[v]]
        outside = np.concatenate((order[: begin[v]], order[end[v] :]))
        is_smaller = inside.size <= outside.size
        small, large = (inside, outside) if is_smaller else (outside, inside)
        a, b = (v, parent[v]) if is_smaller else (parent[v], v)
        # Places of the smaller side take the place of its variables for the larger one.
        first = estimates(small, parent, rho, own, correlation, number)
        found = estimates(large, parent, rho, own, np.ascontiguousarray(first.T), number)
        present = found[number[b], number[a]] ** 2
        if small.size > 1:
            for i in range(small.size):
                if own[small[i]] >= 0.0 and degree[small[i]] - (small[i] == a) <= 1:
                    found[:, i] = 0.0
        if large.size > 1:
            for j in range(large.size):
                if own[large[j]] >= 0.0 and degree[large[j]] - (large[j] == b) <= 1:
                    found[j] = 0.0
        for i in range(found.shape[1]):
            for j in range(found.shape[0]):
                rise = found[j, i] * found[j, i] - present
                if rise > best[0]:
                    x = small[i] if i < small.size else n + small[i - small.size + 1]
                    y = large[j] if j < large.size else n + large[j - large.size + 1]
                    best = (rise, v, x, y)
    return best

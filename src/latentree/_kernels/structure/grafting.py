"""Where two sides of a cut link correlate most, by two sweeps over each side.

All nodes have variance 1, and ρ is the correlation of a node with its parent. What a part of the
tree says about a node is t, the precision that it adds to the node's own 1, and h, the precision
times its estimate: E = Σh / (1 + Σt), and q = Σt / (1 + Σt) is the variance of E. What a node with
E and q says about a neighbor at correlation ρ is t = ρ²q / (1 − ρ²q) and h = ρ·E·(1 + t). Observed
nodes have E = x and q = 1. The estimates are linear in x, so that many columns x go side by side.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel

LARGEST = 1.0 - 1e-6  # of ρ²q: duplicate columns would be known without any error


@kernel()
def told(q, rho):
    """T of a neighbor at correlation ρ, from a node whose estimate has variance q."""
    squared = min(rho * rho * q, LARGEST)
    return squared / (1.0 - squared)


@kernel()
def estimate_side(nodes, parent, rho, n_observed, n_columns, x, t, h, t_up, h_up, t_down, q):
    """Estimate all nodes of one side from its observed ones, for every column of ``x``.

    ``nodes`` come after their parents, the top of the side first. ``h`` becomes the estimates, with
    the variances ``q``; ``t`` all that is told to a node, ``t_up`` what it tells its parent,
    ``t_down`` what it hears from there. ``x`` and ``h`` have a row a node.
    """
    for v in nodes:
        t[v] = 0.0
        h[v, :n_columns] = 0.0
    for position in range(nodes.size - 1, 0, -1):
        v = nodes[position]
        p = parent[v]
        seen = 1.0 if v < n_observed else t[v] / (1.0 + t[v])
        t_up[v] = told(seen, rho[v])
        factor = rho[v] * (1.0 + t_up[v])
        if v >= n_observed:
            factor /= 1.0 + t[v]
        source = x[v] if v < n_observed else h[v]
        t[p] += t_up[v]
        for column in range(n_columns):
            h_up[v, column] = factor * source[column]
            h[p, column] += h_up[v, column]
    t_down[nodes[0]] = 0.0
    for position in range(1, nodes.size):
        v = nodes[position]
        p = parent[v]
        # What the parent knows without this child.
        other = t[p] - t_up[v]
        seen = 1.0 if p < n_observed else other / (1.0 + other)
        t_down[v] = told(seen, rho[v])
        factor = rho[v] * (1.0 + t_down[v])
        t[v] += t_down[v]
        if p < n_observed:
            for column in range(n_columns):
                h[v, column] += factor * x[p, column]
        else:
            factor /= 1.0 + other
            for column in range(n_columns):
                h[v, column] += factor * (h[p, column] - h_up[v, column])
    for v in nodes:
        if v < n_observed:
            q[v] = 1.0
            h[v, :n_columns] = x[v, :n_columns]
        else:
            q[v] = t[v] / (1.0 + t[v])
            h[v, :n_columns] /= 1.0 + t[v]


@kernel()
def middle_variance(v, parent, rho, n_observed, t, t_up, t_down, q):
    """Variance of the sum of the estimates of a node and its parent."""
    p = parent[v]
    shared = rho[v]  # Cov(E[v], E[p]) = ρ − Cov(v, p | all observed)
    if v >= n_observed and p >= n_observed:
        own, other = t[v] - t_down[v], t[p] - t_up[v]
        # The precision of both: (1, −ρ; −ρ, 1) / (1 − ρ²), and what each is told.
        rest = max(1.0 - rho[v] * rho[v], 1e-6)
        shared -= rho[v] / ((1.0 + rest * own) * (1.0 + rest * other) - rho[v] * rho[v]) * rest
    return max(q[v] + q[p] + 2.0 * shared, 1e-12)


@kernel()
def places_of(
    nodes, parent, rho, n_observed, n_columns, h, t, t_up, t_down, q, n_nodes, out, place
):
    """Write the estimates of all places of a side, scaled to variance 1; return their number.

    Places are the nodes, and the middles of edges: n + v for the edge above v among n nodes.
    """
    count = 0
    for v in nodes:
        scale = 1.0 / math.sqrt(max(q[v], 1e-12))
        place[count] = v
        for column in range(n_columns):
            out[count, column] = scale * h[v, column]
        count += 1
    for v in nodes[1:]:
        scale = 1.0 / math.sqrt(middle_variance(v, parent, rho, n_observed, t, t_up, t_down, q))
        place[count] = n_nodes + v
        for column in range(n_columns):
            out[count, column] = scale * (h[v, column] + h[parent[v], column])
        count += 1
    return count


@kernel()
def is_open(place, nodes, end, degree, n_observed):
    """Whether a link may end there: on edges, at hidden and inner nodes, or at the only one."""
    if place >= n_observed or nodes.size == 1:
        return True
    return degree[place] - (place == end) > 1


@kernel()
def correlate_places(small, large, parent, rho, n_observed, correlation, room, places):
    """Correlate all places of two sides of a cut link; return the numbers of their places.

    ``room`` and ``places`` are of :func:`make_room`. The third array of ``room`` then has the
    correlations, a row for every place of the large side.
    """
    x, first, second, h, h_up, told_to = room
    t, t_up, t_down, q = told_to
    count = 0
    for v in large:
        if v < n_observed:
            for u in small:
                if u < n_observed:
                    x[u, count] = correlation[u, v]
            count += 1
    estimate_side(small, parent, rho, n_observed, count, x, t, h, t_up, h_up, t_down, q)
    n_first = places_of(
        small, parent, rho, n_observed, count, h, t, t_up, t_down, q, parent.size, first, places[0]
    )
    count = 0
    for v in large:
        if v < n_observed:
            for place in range(n_first):
                x[v, place] = first[place, count]
            count += 1
    estimate_side(large, parent, rho, n_observed, n_first, x, t, h, t_up, h_up, t_down, q)
    n_second = places_of(
        large, parent, rho, n_observed, n_first, h, t, t_up, t_down, q, parent.size, second,
        places[1],
    )  # fmt: skip
    return n_first, n_second


@kernel()
def make_room(n):
    """Room to correlate the places of a tree with n nodes, and for the places of both sides."""
    x, h, h_up = np.empty((n, 2 * n)), np.empty((n, 2 * n)), np.empty((n, 2 * n))
    first, second = np.empty((2 * n, n)), np.empty((2 * n, 2 * n))
    return (x, first, second, h, h_up, np.zeros((4, n))), np.empty((2, 2 * n), np.int64)


@kernel()
def subtree_ranges(order, parent):
    """Where the nodes below each node, and itself, begin and end in depth-first order."""
    start, size = np.empty(parent.size, np.int64), np.ones(parent.size, np.int64)
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        start[v] = i
        if parent[v] >= 0:
            size[parent[v]] += size[v]
    return start, start + size


@kernel()
def best_link(
    small, large, ends, parent, rho, degree, n_observed, correlation, room, places
):  # fmt: skip
    """Return the best place of a cut link: z² there, z² at present, and its ends as places.

    z is the correlation of what the two sides say about their ends.
    """
    n_first, n_second = correlate_places(
        small, large, parent, rho, n_observed, correlation, room, places
    )
    second, first_place, second_place = room[2], places[0], places[1]
    best, present = 0.0, 0.0
    best_small, best_large = ends[0], ends[1]
    for u in range(n_first):
        own = first_place[u]
        open_here = is_open(own, small, ends[0], degree, n_observed)
        for w in range(n_second):
            z = second[w, u] * second[w, u]
            other = second_place[w]
            if own == ends[0] and other == ends[1]:
                present = z
            if z > best and open_here and is_open(other, large, ends[1], degree, n_observed):
                best, best_small, best_large = z, own, other
    return best, present, best_small, best_large


@kernel()
def best_move(links, order, parent, rho, degree, n_observed, correlation, noise):
    """Return the gain of the best move of a link, the link (by lower node), and its new ends."""
    begin, end = subtree_ranges(order, parent)
    room, places = make_room(parent.size)
    found = (0.0, -1, -1, -1)
    ends = np.empty(2, np.int64)
    for v in links:
        start, stop = begin[v], end[v]
        inside = order[start:stop]
        outside = np.concatenate((order[:start], order[stop:]))
        inside_is_small = inside.size <= outside.size
        small, large = (inside, outside) if inside_is_small else (outside, inside)
        ends[0], ends[1] = (v, parent[v]) if inside_is_small else (parent[v], v)
        best, present, own, other = best_link(
            small, large, ends, parent, rho, degree, n_observed, correlation, room, places
        )
        gain = 0.5 * (best - present) / (noise * noise)
        if gain > found[0]:
            found = (gain, v, own, other)
    return found

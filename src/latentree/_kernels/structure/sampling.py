"""Draw trees from their posterior: cut a link, and link its two sides again at random.

A hidden node at the end of the link that is cut has two neighbors left, whose links become one,
with ρ = ρ₁·ρ₂. Then both sides are linked anew: at a node of each, or at a point on a link. The two
places and the correlation of the new link are drawn from their distribution given all the rest
(Gibbs sampling). Of every link one point is drawn first, and the place that the link had before is
among all places, so that the posterior stays as it is.

The prior: correlations of links are uniform on (−1, 1). Of two links with ρ₁·ρ₂ = ρ, the share of
the first in log ρ then has the density −log|ρ|: a long link has more places. The number of
contracted links between hidden nodes is uniform, and so is that of cherries, hidden nodes with two
leaves; every leaf is contracted with the same probability. All trees with the same numbers are
alike. So neither bushes nor chains, neither stars nor binary trees, are improbable as such.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.structure.linking import (
    draw_correlation,
    slope_of,
    weigh_rows,
    worth_of_rows,
)
from latentree._kernels.structure.links import bypass, draw_link, is_contracted, join, part
from latentree._kernels.structure.sides import (
    LOWER,
    N_CLASSES,
    N_KINDS,
    UPPER,
    Side,
    estimate,
    fill_rows,
    list_places,
    make_side,
    measure_spread,
    show_others,
    show_rows,
    walk,
)
from latentree.typing import FloatArray, IntArray


class Data(NamedTuple):
    """What is known: correlations of n rows; K of columns with K states, 1 of numbers.

    0 means numbers whose variances are known to be 1.
    """

    correlation: FloatArray
    n_rows: float
    n_states: float


class Prior(NamedTuple):
    """−log of the prior of a tree, by its numbers."""

    by_cherries: FloatArray
    by_contracted: FloatArray
    by_inside: FloatArray


class Room(NamedTuple):
    """Room for a move. Arrays of two dimensions but x have a row of the large side a row."""

    first: Side
    second: Side
    parent: IntArray
    rho: FloatArray
    """Of every node with its parent."""
    x: FloatArray
    """What the observed nodes of a side show, for every column."""
    likely: FloatArray
    """Most likely c of all pairs of rows."""
    slab: FloatArray
    """Their weights as links that are not contracted."""
    spike: FloatArray
    """Their weights as contracted links."""
    of_slab: FloatArray
    """Prior of pairs of places by their classes, without a contracted link."""
    of_spike: FloatArray
    """The same with one."""
    total: FloatArray
    """Sums of the weights of the places of the large side."""


def make_room(n: int) -> Room:
    """Make room for moves of a tree with n nodes."""
    return Room(
        make_side(n),
        make_side(n),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty((n, 2 * n)),
        np.empty((2 * n, 2 * n)),
        np.empty((2 * n, 2 * n)),
        np.empty((2 * n, 2 * n)),
        np.empty((N_CLASSES, N_CLASSES)),
        np.empty((N_CLASSES, N_CLASSES)),
        np.empty(N_KINDS * n),
    )


@kernel()
def detach(links, node, m, contracted, inside):
    """Take a hidden node off its two links; return what they were, and what is contracted then."""
    ends = (-1, -1, 0.0, 0.0)
    if node >= m:
        ends = bypass(links, node)
        first, second, rho_first, rho_second = ends
        for other, rho in ((first, rho_first), (second, rho_second)):
            if is_contracted(rho):
                inside -= other < m
                contracted -= other >= m
        if is_contracted(rho_first) and is_contracted(rho_second):
            of_leaf = first < m or second < m
            inside += of_leaf
            contracted += not of_leaf
    return ends, contracted, inside


@kernel()
def draw_shares(side, size, parent, rho, ends, rng):
    """Draw a point of every link; the one that was cut there stays where it was."""
    first, second, rho_first, rho_second = ends
    for position in range(1, size):
        v = side.nodes[position]
        side.share[position] = rng.random()
        if is_contracted(rho_first) or is_contracted(rho_second):
            continue
        if v == first and parent[v] == second:
            share = math.log(abs(rho_first)) / math.log(abs(rho[v]))
        elif v == second and parent[v] == first:
            share = math.log(abs(rho_second)) / math.log(abs(rho[v]))
        else:
            continue
        side.share[position] = min(max(share, 1e-6), 1.0 - 1e-6)


@kernel()
def compare_sides(small, size, large, size_large, links, m, data, room):
    """Weigh links between all rows of two sides; return how many rows of data the cut is worth."""
    parent, rho, x = room.parent, room.rho, room.x
    measure_spread(small, size, links, parent, rho, m, data.correlation, x)
    measure_spread(large, size_large, links, parent, rho, m, data.correlation, x)
    # Covariances of the rows of the small side with the observed nodes of the large one …
    n_seen = show_others(small, size, large, size_large, m, data.correlation, x)
    estimate(small, size, links, parent, rho, m, n_seen, x)
    fill_rows(small, size, rho, m, n_seen)
    # … and by these with the rows of the large one.
    n_small, n_large = 2 * size - 1, 2 * size_large - 1
    show_rows(large, size_large, small, n_small, m, x)
    estimate(large, size_large, links, parent, rho, m, n_small, x)
    fill_rows(large, size_large, rho, m, n_small)
    n = worth_of_rows(small, large, n_small, n_large, data.n_rows, data.n_states)
    weigh_rows(small, large, n_small, n_large, n, room.likely, room.slab, room.spike)
    return n


def _plain_prior_factors(prior, cherries, contracted, inside, more_contracted, more_inside, out):
    own = np.arange(N_CLASSES)
    last = prior.by_cherries.size - 1
    reference = prior.by_cherries[min(max(cherries + 1, 2), last)]
    reference += prior.by_contracted[contracted] + prior.by_inside[inside]
    total = 0.0
    possible = True
    for costs, base, each in (
        (prior.by_cherries, cherries, own // 4),
        (prior.by_contracted, contracted + more_contracted, own % 2),
        (prior.by_inside, inside + more_inside, own // 2 % 2),
    ):
        number = base + each[:, None] + each
        possible = possible & (number >= 0) & (number < costs.size)
        total = total + costs[np.clip(number, 0, costs.size - 1)]
    out[:] = np.where(possible, np.exp(reference - total), 0.0)


@kernel(plain=_plain_prior_factors)
def prior_factors(prior, cherries, contracted, inside, more_contracted, more_inside, out):
    """Write the prior of a pair of places by their classes, up to a common factor.

    ``more_contracted`` and ``more_inside`` are the contracted links that the new link adds.
    """
    reference = prior.by_cherries[min(max(cherries + 1, 2), prior.by_cherries.size - 1)]
    reference += prior.by_contracted[contracted] + prior.by_inside[inside]
    for own in range(N_CLASSES):
        for other in range(N_CLASSES):
            c = cherries + own // 4 + other // 4
            k = contracted + own % 2 + other % 2 + more_contracted
            leaves = inside + own // 2 % 2 + other // 2 % 2 + more_inside
            out[own, other] = 0.0
            if (
                0 <= c < prior.by_cherries.size
                and k < prior.by_contracted.size
                and leaves < prior.by_inside.size
            ):
                cost = prior.by_cherries[c] + prior.by_contracted[k] + prior.by_inside[leaves]
                out[own, other] = math.exp(reference - cost)


def _plain_add_weights(small, n_small, large, n_large, room):
    own, other = large.place_class[:n_large], small.place_class[:n_small]
    rows = np.ix_(large.place_row[:n_large], small.place_row[:n_small])
    classes = np.ix_(own, other)
    weights = room.of_slab[classes] * room.slab[rows] + room.of_spike[classes] * room.spike[rows]
    sums = large.place_weight[:n_large] * (weights @ small.place_weight[:n_small])
    room.total[:n_large] = np.cumsum(sums)


@kernel(plain=_plain_add_weights)
def add_weights(small, n_small, large, n_large, room):
    """Add up the weights of the places of the large side, each with all places of the small one."""
    total = 0.0
    for j in range(n_large):
        if large.place_weight[j] > 0.0:
            own, row = large.place_class[j], large.place_row[j]
            total += large.place_weight[j] * weight_of(
                small, n_small, room.of_slab[own], room.of_spike[own], room.slab[row],
                room.spike[row],
            )  # fmt: skip
        room.total[j] = total


def _plain_weight_of(small, n_small, of_slab, of_spike, slab, spike):
    row, kind = small.place_row[:n_small], small.place_class[:n_small]
    return float(
        small.place_weight[:n_small] @ (of_slab[kind] * slab[row] + of_spike[kind] * spike[row])
    )


@kernel(plain=_plain_weight_of)
def weight_of(small, n_small, of_slab, of_spike, slab, spike):
    """Return the sum of the weights of all places of the small side, with one of the large side."""
    total = 0.0
    for i in range(n_small):
        row, kind = small.place_row[i], small.place_class[i]
        total += small.place_weight[i] * (of_slab[kind] * slab[row] + of_spike[kind] * spike[row])
    return total


@kernel()
def draw_places(small, n_small, large, n_large, room, rng):
    """Draw a place of each side, and whether their link is contracted."""
    add_weights(small, n_small, large, n_large, room)
    wanted = rng.random() * room.total[n_large - 1]
    j = 0
    while j < n_large - 1 and room.total[j] <= wanted:
        j += 1
    own, row = large.place_class[j], large.place_row[j]
    of_slab, of_spike = room.of_slab[own], room.of_spike[own]
    slab, spike = room.slab[row], room.spike[row]
    wanted = rng.random() * weight_of(small, n_small, of_slab, of_spike, slab, spike)
    chosen, is_one = -1, False
    for i in range(n_small):
        a, kind, weight = small.place_row[i], small.place_class[i], small.place_weight[i]
        for one in range(2):
            some = weight * (of_spike[kind] * spike[a] if one else of_slab[kind] * slab[a])
            if some > 0.0 and wanted >= 0.0:
                chosen, is_one = i, one == 1
            wanted -= some
        if wanted < 0.0:
            break
    return chosen, j, is_one


@kernel()
def link_at(links, side, place, node, parent):
    """Put a hidden node at a place; a single node is the place itself."""
    if side.nodes[0] == node:
        return
    position, kind = 1 + place // N_KINDS, place % N_KINDS
    v = side.nodes[position]
    p = parent[v]
    rho = part(links, v, p)
    lower = upper = 1.0
    if kind == LOWER:
        upper = rho
    elif kind == UPPER:
        lower = rho
    else:
        lower = abs(rho) ** side.share[position]
        upper = rho / lower
    join(links, node, v, lower)
    join(links, node, p, upper)


@kernel()
def move(links, m, data, prior, room, contracted, inside, rng):
    """Cut a link, and draw another; return the numbers of contracted links."""
    parent, rho = room.parent, room.rho
    u, w = draw_link(links, rng)
    of_leaf = 1 if u < m or w < m else 0
    if is_contracted(part(links, u, w)):
        inside -= of_leaf
        contracted -= 1 - of_leaf
    ends_u, contracted, inside = detach(links, u, m, contracted, inside)
    ends_w, contracted, inside = detach(links, w, m, contracted, inside)
    small, large = room.first, room.second
    size = walk(links, u if u < m else ends_u[0], small, parent, rho)
    size_large = walk(links, w if w < m else ends_w[0], large, parent, rho)
    if size > size_large:
        small, large, size, size_large = large, small, size_large, size
        u, w, ends_u, ends_w = w, u, ends_w, ends_u
    draw_shares(small, size, parent, rho, ends_u, rng)
    draw_shares(large, size_large, parent, rho, ends_w, rng)
    n = compare_sides(small, size, large, size_large, links, m, data, room)

    n_small, fewest = list_places(small, size, links, parent, rho, m, size_large == 1)
    n_large, fewest_large = list_places(large, size_large, links, parent, rho, m, size == 1)
    fewest += fewest_large
    prior_factors(prior, fewest, contracted, inside, 0, 0, room.of_slab)
    prior_factors(prior, fewest, contracted, inside, 1 - of_leaf, of_leaf, room.of_spike)
    i, j, is_one = draw_places(small, n_small, large, n_large, room, rng)

    a, b = small.place_row[i], large.place_row[j]
    r, c = large.rows[b, a], room.likely[b, a]
    new = math.copysign(1.0, r)
    if not is_one:
        sigma = (1.0 - c * c) / math.sqrt(
            n * slope_of(c, abs(r), 0.5 * (large.spread[b] + small.spread[a]))
        )
        largest = math.sqrt(large.variance[b] * small.variance[a])
        new = draw_correlation(math.copysign(c, r), sigma, largest, rng)
    link_at(links, small, i, u, parent)
    link_at(links, large, j, w, parent)
    join(links, u, w, new)
    for kind in (small.place_class[i], large.place_class[j]):
        contracted += kind % 2
        inside += kind // 2 % 2
    if is_one:
        inside += of_leaf
        contracted += 1 - of_leaf
    return contracted, inside

"""Draw trees from their posterior: cut a link, and link its two sides again at random.

A hidden node at the end of the link that is cut has two neighbors left, whose links become one,
with ρ = ρ₁·ρ₂. Then both sides are linked anew: at a node of each, or at a point on a link. The two
places and the correlation of the new link are drawn from their distribution given all the rest
(Gibbs sampling). Of every link one point is drawn first, and the place that the link had before is
among all places, so that the posterior stays as it is.

The prior: correlations of links have the density p(ρ) = ¾·(1 − ρ²). Of two links with ρ₁·ρ₂ = ρ,
the share of the first in log ρ then has the density −2·log|ρ|·p(ρ₁)·p(ρ₂)/p(ρ): a long link has
more places. The number of contracted links between hidden nodes is uniform, and so is that of
cherries, hidden nodes with two leaves; every leaf is contracted with the same probability. All
trees with the same numbers are alike. So neither bushes nor chains, neither stars nor binary trees,
are improbable as such.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.structure.linking import (
    STRONGEST,
    draw_correlation,
    odds_of_sign,
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
    mix_estimates,
    multiply,
    show_rows,
    show_variables,
    walk,
    weigh_estimates,
)
from latentree.typing import FloatArray


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
    """Room for a move. Pairs of rows are those of the small side with those of the large one."""

    first: Side
    second: Side
    covariance: FloatArray
    """Of all pairs of rows, in the data."""
    likely: FloatArray
    """Their most likely c."""
    slab: FloatArray
    """Their weights as links that are not contracted."""
    spike: FloatArray
    """Their weights as contracted links."""
    of_slab: FloatArray
    """Prior of pairs of places by their classes, without a contracted link."""
    of_spike: FloatArray
    """The same with one."""
    row_prior: FloatArray
    """Prior of all places of a row of the large side together, without a contracted link and with
    one."""
    weight: FloatArray
    """Weights of the places of the small side."""


def make_room(n: int) -> Room:
    """Make room for moves of a tree with n nodes."""
    return Room(
        make_side(n),
        make_side(n),
        np.empty((2 * n, 2 * n)),
        np.empty((2 * n, 2 * n)),
        np.empty((2 * n, 2 * n)),
        np.empty((2 * n, 2 * n)),
        np.empty((N_CLASSES, N_CLASSES)),
        np.empty((N_CLASSES, N_CLASSES)),
        np.empty((2, 2 * n)),
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
def attach(links, node, ends, m):
    """Put a hidden node back onto the link that its two links had become."""
    if node >= m:
        first, second, rho_first, rho_second = ends
        part(links, first, second)
        join(links, node, first, rho_first)
        join(links, node, second, rho_second)


@kernel()
def draw_shares(side, size, ends, rng):
    """Draw a point of every link; the one that was cut there stays where it was."""
    first, second, rho_first, rho_second = ends
    for position in range(1, size):
        v, above = side.nodes[position], side.nodes[side.above[position]]
        side.share[position] = rng.random()
        if is_contracted(rho_first) or is_contracted(rho_second):
            continue
        if v == first and above == second:
            share = math.log(abs(rho_first)) / math.log(abs(side.rho[position]))
        elif v == second and above == first:
            share = math.log(abs(rho_second)) / math.log(abs(side.rho[position]))
        else:
            continue
        side.share[position] = min(max(share, 1e-6), 1.0 - 1e-6)


@kernel()
def describe_side(side, size, m, correlation):
    """Find the weights of all estimates of a side, and how they vary and covary in the data."""
    weigh_estimates(side, size)
    mix_estimates(side, size)
    show_variables(side, size, m, correlation)
    estimate(side, size, 2 * m)
    measure_spread(side, size, m)


@kernel()
def compare_sides(small, size, large, size_large, m, data, room):
    """Weigh links between all rows of two sides; return how many rows of data the cut is worth."""
    describe_side(small, size, m, data.correlation)
    describe_side(large, size_large, m, data.correlation)
    # Covariances of the rows of the small side with all variables …
    fill_rows(small, size, m, m, small.rows)
    # … and by these with the rows of the large one.
    n_small, n_large = 2 * size - 1, 2 * size_large - 1
    show_rows(large, size_large, small, n_small, m)
    estimate(large, size_large, n_small)
    fill_rows(large, size_large, 0, n_small, room.covariance.T)
    between = small, large, n_small, n_large, room.covariance
    n = worth_of_rows(*between, data.n_rows, data.n_states)
    weigh_rows(*between, n, room.likely, room.slab, room.spike)
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


def _plain_weigh_places(small, n_small, large, n_large, n_rows, room):
    own, other = small.place_class[:n_small], large.place_class[:n_large]
    rows = np.ix_(small.place_row[:n_small], large.place_row[:n_large])
    classes = np.ix_(own, other)
    weights = room.of_slab[classes] * room.slab[rows] + room.of_spike[classes] * room.spike[rows]
    room.weight[:n_small] = small.place_weight[:n_small] * (weights @ large.place_weight[:n_large])


@kernel(plain=_plain_weigh_places)
def weigh_places(small, n_small, large, n_large, n_rows, room):
    """Add up the weights of every place of the small side with all places of the large one.

    Places of the small side with the same class go together: for them the places of every one of
    the ``n_rows`` rows of the large side have one prior.
    """
    room.weight[:n_small] = 0.0
    for own in range(N_CLASSES):
        is_known = False
        for i in range(n_small):
            if small.place_class[i] != own or small.place_weight[i] == 0.0:
                continue
            if not is_known:
                add_priors(large, n_large, room.of_slab[own], room.of_spike[own], room.row_prior)
                is_known = True
            row = small.place_row[i]
            weight = multiply(room.row_prior[0, :n_rows], room.slab[row, :n_rows])
            weight += multiply(room.row_prior[1, :n_rows], room.spike[row, :n_rows])
            room.weight[i] = small.place_weight[i] * weight


@kernel()
def add_priors(side, n_places, of_slab, of_spike, row_prior):
    """Add up the prior of the places of every row, given the class of the place to be linked."""
    for place in range(n_places):
        row_prior[0, side.place_row[place]] = row_prior[1, side.place_row[place]] = 0.0
    for place in range(n_places):
        row, kind, weight = side.place_row[place], side.place_class[place], side.place_weight[place]
        row_prior[0, row] += weight * of_slab[kind]
        row_prior[1, row] += weight * of_spike[kind]


@kernel()
def draw_places(small, n_small, large, n_large, n_rows, room, rng):
    """Draw a place of each side, and whether their link is contracted.

    The place of the large side is −1 where all weights are 0 by rounding.
    """
    weigh_places(small, n_small, large, n_large, n_rows, room)
    wanted = rng.random() * room.weight[:n_small].sum()
    i = 0
    while i < n_small - 1 and room.weight[i] <= wanted:
        wanted -= room.weight[i]
        i += 1
    own, row = small.place_class[i], small.place_row[i]
    wanted = rng.random() * room.weight[i] / small.place_weight[i]
    chosen, is_one = -1, False
    for j in range(n_large):
        b, kind, weight = large.place_row[j], large.place_class[j], large.place_weight[j]
        for one in range(2):
            if one:
                some = weight * room.of_spike[own, kind] * room.spike[row, b]
            else:
                some = weight * room.of_slab[own, kind] * room.slab[row, b]
            if some > 0.0 and wanted >= 0.0:
                chosen, is_one = j, one == 1
            wanted -= some
        if wanted < 0.0:
            break
    return i, chosen, is_one


@kernel()
def link_at(links, side, place, node):
    """Put a hidden node at a place; a single node is the place itself."""
    if side.nodes[0] == node:
        return
    position, kind = 1 + place // N_KINDS, place % N_KINDS
    v, above = side.nodes[position], side.nodes[side.above[position]]
    rho = part(links, v, above)
    lower = upper = 1.0
    if kind == LOWER:
        upper = rho
    elif kind == UPPER:
        lower = rho
    else:
        lower = abs(rho) ** side.share[position]
        upper = rho / lower
    join(links, node, v, lower)
    join(links, node, above, upper)


@kernel()
def move(links, m, data, prior, room, contracted, inside, rng):
    """Cut a link, and draw another; return the numbers of contracted links."""
    u, w = draw_link(links, rng)
    of_leaf = 1 if u < m or w < m else 0
    before = contracted, inside
    rho = part(links, u, w)
    if is_contracted(rho):
        inside -= of_leaf
        contracted -= 1 - of_leaf
    ends_u, contracted, inside = detach(links, u, m, contracted, inside)
    ends_w, contracted, inside = detach(links, w, m, contracted, inside)
    small, large = room.first, room.second
    size = walk(links, u if u < m else ends_u[0], m, small)
    size_large = walk(links, w if w < m else ends_w[0], m, large)
    if size > size_large:
        small, large, size, size_large = large, small, size_large, size
        u, w, ends_u, ends_w = w, u, ends_w, ends_u
    draw_shares(small, size, ends_u, rng)
    draw_shares(large, size_large, ends_w, rng)
    n = compare_sides(small, size, large, size_large, m, data, room)

    n_small, fewest = list_places(small, size, links, m, size_large == 1)
    n_large, fewest_large = list_places(large, size_large, links, m, size == 1)
    fewest += fewest_large
    prior_factors(prior, fewest, contracted, inside, 0, 0, room.of_slab)
    prior_factors(prior, fewest, contracted, inside, 1 - of_leaf, of_leaf, room.of_spike)
    i, j, is_one = draw_places(small, n_small, large, n_large, 2 * size_large - 1, room, rng)

    if j < 0:  # with 10⁷ rows or more all but one place may be out of reach: nothing moves
        attach(links, u, ends_u, m)
        attach(links, w, ends_w, m)
        join(links, u, w, rho)
        return before
    a, b = small.place_row[i], large.place_row[j]
    r, c = room.covariance[a, b], room.likely[a, b]
    largest = math.sqrt(large.variance[b] * small.variance[a])
    if is_one:
        odds = odds_of_sign(min(largest, STRONGEST), abs(r), n)
        new = math.copysign(1.0, r if rng.random() * (1.0 + odds) < 1.0 else -r)
    else:
        spread = 0.5 * (large.spread[b] + small.spread[a])
        sigma = (1.0 - c * c) / math.sqrt(n * slope_of(c, abs(r), spread))
        new = draw_correlation(math.copysign(c, r), sigma, largest, rng)
    link_at(links, small, i, u)
    link_at(links, large, j, w)
    join(links, u, w, new)
    for kind in (small.place_class[i], large.place_class[j]):
        contracted += kind % 2
        inside += kind // 2 % 2
    if is_one:
        inside += of_leaf
        contracted += 1 - of_leaf
    return contracted, inside

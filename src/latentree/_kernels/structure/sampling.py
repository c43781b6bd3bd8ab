"""Draw trees from their posterior: cut a link, and link its two sides again at random.

A hidden node at the end of the link that is cut has two neighbors left, whose links become one,
with ρ = ρ₁·ρ₂. Then both sides are linked anew: at a node of each, or at a point on a link. The two
places and the correlation of the new link are drawn from their distribution given all the rest
(Gibbs sampling). Of every link one point is drawn first, and the place that the link had before is
among all places, so that the posterior stays as it is.

Only places near to a center are looked at. On either side the center is drawn among the links at
most R steps from the present one, and places are those on links at most R steps from the center.
That a center z is drawn from a place x has the probability p(z|x) = 1/|links near to x|. A place
weighs its posterior times this, so that place and center are drawn from their joint distribution,
whose margin is the posterior.

Parts of the tree that are far from where they belong would take long to get there. So there is a
second pair of centers, drawn without regard to the present place, with a probability Q: where
variables of both sides correlate most, or, rarely, anywhere. Which of the two pairs was drawn from
the present place is forgotten. A place near to the first pair z weighs its posterior times
p(z|x)·Q(z′), one near to the second pair z′ its posterior times p(z′|x)·Q(z).

Links are visited along a walk around the tree that passes every link once in each direction, as if
a hand stayed on the wall of a maze. In a given tree this is a permutation of the directed links, so
that all stay equally probable. A link moves on the way from its lower number to its higher one. The
messages of all parts of the tree go toward the present link, and one changes with every step.

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
from latentree._kernels.gaussian import (
    fill_places,
    means,
    mix_places,
    multiply,
    scale,
    variances,
)
from latentree._kernels.structure.linking import (
    STRONGEST,
    draw_correlation,
    integrate,
    largest_of,
    odds_of_sign,
    rows_known_as_well,
    slope_of,
    weigh_rows,
)
from latentree._kernels.structure.links import (
    Links,
    bypass,
    count_cherries_beside,
    is_cherry,
    is_contracted,
    join,
    part,
)
from latentree._kernels.structure.messages import (
    Messages,
    collect,
    covariance_of,
    face,
)
from latentree._kernels.structure.sides import (
    LOWER,
    N_CLASSES,
    N_KINDS,
    UPPER,
    Near,
    Side,
    list_near,
    list_places,
    measure_spread,
    side_around,
)
from latentree.typing import FloatArray, IntArray

ANYWHERE = 0.2
"""Share of the far centers that are drawn among all links."""


class Data(NamedTuple):
    """What is known of the data: its number of rows; K of columns with K states, 1 of numbers.

    0 means numbers whose variances are known to be 1.
    """

    n_rows: float
    n_states: float


class Prior(NamedTuple):
    """−log of the prior of a tree, by its numbers."""

    by_cherries: FloatArray
    by_contracted: FloatArray
    by_inside: FloatArray


class State(NamedTuple):
    """A tree that changes, and where the walk around it is."""

    links: Links
    messages: Messages
    at: IntArray
    """The present link: the nodes that it comes from and goes to."""
    counts: IntArray
    """Contracted links of hidden nodes and of leaves, and cherries."""
    near: Near
    """Room for the links near to another."""
    strongest: IntArray
    """Pairs of variables that correlate most, across any cut."""


class Half(NamedTuple):
    """A side of the link that was cut."""

    node: int
    """Where the link ended."""
    a: int
    """One end of the link that the other two of this node became; −1 if the node is a leaf."""
    b: int
    rho_a: float
    """The node's correlations with both ends."""
    rho_b: float
    n_variables: int
    is_whole: bool
    """Whether all links of the side are near to each other."""


class Pairs(NamedTuple):
    """Links between the rows of two sides."""

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


@kernel(views=True)
def detach(state, node, m, radius, contracted, inside):
    """Take a node off its two links, if it is hidden; return its side, and what is contracted then.

    Messages go toward the link that its links become.
    """
    if node < m:
        return Half(node, -1, -1, 0.0, 0.0, 1, True), contracted, inside
    a, b, rho_a, rho_b = bypass(state.links, node)
    for other, rho in ((a, rho_a), (b, rho_b)):
        if is_contracted(rho):
            inside -= other < m
            contracted -= other >= m
    if is_contracted(rho_a) and is_contracted(rho_b):
        of_leaf = a < m or b < m
        inside += of_leaf
        contracted += not of_leaf
    messages = state.messages
    messages.toward[a], messages.toward[b] = b, a
    n_variables = messages.n_variables[a] + messages.n_variables[b]
    is_whole = 2 * n_variables - 3 <= radius
    return Half(node, a, b, rho_a, rho_b, n_variables, is_whole), contracted, inside


@kernel(views=True)
def attach(links, messages, node, a, b, rho_a, rho_b):
    """Put a hidden node onto the link of two others, and turn messages toward it."""
    face(links, messages, a, b)
    part(links, a, b)
    join(links, node, a, rho_a)
    join(links, node, b, rho_b)
    messages.toward[a] = messages.toward[b] = node


# Centers ------------------------------------------------------------------------------------------


@kernel(views=True)
def draw_center(state, half, radius, rng):
    """Draw a link near to the one that was cut there; where all are near, any will do."""
    if half.is_whole:
        return half.a, half.b
    n_listed = list_near(state.links, half.a, half.b, radius, state.near)[0]
    entry = 1 + int(rng.random() * (n_listed - 1))
    return state.near.node[entry], state.near.before[entry]


@kernel()
def list_crossing(state, half):
    """Return the strongest pairs with one variable in a side: that one, and the other."""
    near, n_listed = state.near, 1
    near.node[0] = half.node
    if half.a >= 0:
        n_listed = list_near(state.links, half.a, half.b, near.node.size, near)[0]
    for entry in range(n_listed):
        near.is_inner[near.node[entry]] = 1
    crossing = np.empty_like(state.strongest)
    count = 0
    for a, b in state.strongest:
        if near.is_inner[a] != near.is_inner[b]:
            crossing[count, 0], crossing[count, 1] = (a, b) if near.is_inner[a] else (b, a)
            count += 1
    for entry in range(n_listed):
        near.is_inner[near.node[entry]] = 0
    return crossing[:count]


@kernel(views=True)
def link_of_leaf(links, half, v):
    """Return the link of a variable of a side, as a center."""
    if half.is_whole:
        return half.a, half.b
    slot = 0
    while links.neighbor[v, slot] < 0:
        slot += 1
    return links.neighbor[v, slot], v


@kernel(views=True)
def is_same(one, other):
    """Whether two links are the same."""
    return (one[0] == other[0] and one[1] == other[1]) or (
        one[0] == other[1] and one[1] == other[0]
    )


@kernel(views=True)
def n_centers(half):
    """Return the number of centers that a side may have."""
    return 1 if half.is_whole else 2 * half.n_variables - 3


@kernel(views=True)
def chance_of(state, first, second, centers, crossing):
    """Return the probability that :func:`draw_far` draws two centers."""
    count = 0
    for a, b in crossing:
        if is_same(link_of_leaf(state.links, first, a), centers[0]):
            count += is_same(link_of_leaf(state.links, second, b), centers[1])
    n = n_centers(first) * n_centers(second)
    return ANYWHERE / n + (1.0 - ANYWHERE) * count / crossing.shape[0]


@kernel()
def draw_far(state, first, second, centers, rng):
    """Draw a center of each side, which may be far from the link that was cut.

    They are at the ends of one of the strongest correlations between the two sides, or, as all must
    be possible, anywhere. Returns them, and the chance of the given centers divided by theirs.
    """
    crossing = list_crossing(state, first)
    if rng.random() < ANYWHERE:
        everywhere = state.near.node.size
        far = (
            draw_center(state, first, everywhere, rng),
            draw_center(state, second, everywhere, rng),
        )
    else:
        pair = int(rng.random() * crossing.shape[0])
        far = (
            link_of_leaf(state.links, first, crossing[pair, 0]),
            link_of_leaf(state.links, second, crossing[pair, 1]),
        )
    odds = chance_of(state, first, second, centers, crossing)
    return far, odds / chance_of(state, first, second, far, crossing)


# Links between places near to two centers ---------------------------------------------------------


@kernel(views=True)
def draw_shares(side, half, is_near, rng):
    """Draw a point of every link; the one that was cut there stays where it was."""
    is_inside = not (is_contracted(half.rho_a) or is_contracted(half.rho_b))
    for position in range(1, side.nodes.size):
        side.share[position] = rng.random()
        link = side.nodes[position], side.nodes[side.above[position]]
        if is_near and is_inside and is_same(link, (half.a, half.b)):
            lower = half.rho_a if link[0] == half.a else half.rho_b
            share = math.log(abs(lower)) / math.log(abs(side.rho[position]))
            side.share[position] = min(max(share, 1e-6), 1.0 - 1e-6)


# The compiler works on a function and all that it calls together, once for every level of calls: so
# the functions below are few and long.


@kernel()
def compare_around(state, first, second, centers, m, radius, is_near, rng):
    """Compare the places of two sides near to their centers.

    ``is_near`` tells whether the places where the link was are among them.
    """
    links, messages = state.links, state.messages
    sides = (
        side_around(links, messages, first, centers[0], radius, state.near),
        side_around(links, messages, second, centers[1], radius, state.near),
    )
    one, other = sides
    draw_shares(one, first, is_near, rng)
    draw_shares(other, second, is_near, rng)
    list_places(one, links, m, first.n_variables, second.n_variables == 1)
    list_places(other, links, m, second.n_variables, first.n_variables == 1)

    # Covariances of what the leaves of both sides show.
    k, k_other, n_columns = one.leaves.size, other.leaves.size, other.variance.size
    shown = np.empty((k + k_other, k + k_other))
    for i in range(k + k_other):
        u = one.nodes[one.leaves[i]] if i < k else other.nodes[other.leaves[i - k]]
        for j in range(i + 1):
            w = one.nodes[one.leaves[j]] if j < k else other.nodes[other.leaves[j - k]]
            shown[i, j] = shown[j, i] = covariance_of(messages, u, w)
    rows, nothing = np.empty((n_columns, k)), np.empty((0, 3))
    u = variances(one.order, one.above, one.rho, one.own)
    u_other = variances(other.order, other.above, other.rho, other.own)
    begin = 0
    for side, known in ((one, u), (other, u_other)):
        mix_places(side.rho, side.share, known, side.mix, side.variance)
        # Columns are the weights of the own leaves, then the covariances with those of both sides.
        n_leaves = side.leaves.size
        below = np.zeros((side.nodes.size, n_leaves + k + k_other))
        above = np.zeros((side.nodes.size, n_leaves + k + k_other))
        for leaf in range(n_leaves):
            below[side.leaves[leaf], leaf] = 1.0
            scale(below[side.leaves[leaf], n_leaves:], 1.0, shown[begin + leaf])
        h = np.zeros(below.shape)
        means(side.order, side.above, side.rho, side.own, known, below, above, h, nothing)
        measure_spread(side, below, above, n_leaves + begin)
        if begin > 0:  # covariances of places of the second side with the leaves of the first …
            fill_places(side.mix, below, above, n_leaves, rows)
        begin = k
    # … and by these with its places.
    below, above = np.empty((one.nodes.size, n_columns)), np.empty((one.nodes.size, n_columns))
    for leaf in range(k):
        for column in range(n_columns):
            below[one.leaves[leaf], column] = rows[column, leaf]
    h = np.zeros(below.shape)
    means(one.order, one.above, one.rho, one.own, u, below, above, h, nothing)
    weights = np.empty((4, one.variance.size, n_columns))
    fill_places(one.mix, below, above, 0, weights[0])
    return Pairs(one, other, weights[0], weights[1], weights[2], weights[3])


def _plain_prior_factors(prior, contracted, inside, cherries, more_contracted, more_inside):
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
    return np.where(possible, np.exp(reference - total), 0.0)


@kernel(plain=_plain_prior_factors)
def prior_factors(prior, contracted, inside, cherries, more_contracted, more_inside):
    """Return the prior of a pair of places by their classes, up to a common factor.

    The numbers are those without a link. ``more_contracted`` and ``more_inside`` are the contracted
    links that the new link adds.
    """
    reference = prior.by_cherries[min(max(cherries + 1, 2), prior.by_cherries.size - 1)]
    reference += prior.by_contracted[contracted] + prior.by_inside[inside]
    factors = np.zeros((N_CLASSES, N_CLASSES))
    for own in range(N_CLASSES):
        for other in range(N_CLASSES):
            c = cherries + own // 4 + other // 4
            k = contracted + own % 2 + other % 2 + more_contracted
            leaves = inside + own // 2 % 2 + other // 2 % 2 + more_inside
            if (
                0 <= c < prior.by_cherries.size
                and k < prior.by_contracted.size
                and leaves < prior.by_inside.size
            ):
                cost = prior.by_cherries[c] + prior.by_contracted[k] + prior.by_inside[leaves]
                factors[own, other] = math.exp(reference - cost)
    return factors


def _plain_weigh_places(pairs, of_slab, of_spike):
    first, second = pairs.first, pairs.second
    rows = np.ix_(first.place_row, second.place_row)
    classes = np.ix_(first.place_class, second.place_class)
    weights = of_slab[classes] * pairs.slab[rows] + of_spike[classes] * pairs.spike[rows]
    return first.place_weight * (weights @ second.place_weight)


@kernel(plain=_plain_weigh_places)
def weigh_places(pairs, of_slab, of_spike):
    """Add up the weights of every place of the first side with all places of the second one.

    Places of the first side with the same class go together: for them the places of every row of
    the second side have one prior.
    """
    first = pairs.first
    weights = np.zeros(first.place_row.size)
    row_prior = np.empty((2, pairs.second.variance.size))
    for own in range(N_CLASSES):
        is_known = False
        for i in range(weights.size):
            if first.place_class[i] != own or first.place_weight[i] == 0.0:
                continue
            if not is_known:
                add_priors(pairs.second, of_slab[own], of_spike[own], row_prior)
                is_known = True
            row = first.place_row[i]
            weight = multiply(row_prior[0], pairs.slab[row])
            weight += multiply(row_prior[1], pairs.spike[row])
            weights[i] = first.place_weight[i] * weight
    return weights


@kernel(views=True)
def add_priors(side, of_slab, of_spike, row_prior):
    """Add up the prior of the places of every row, given the class of the place to be linked."""
    row_prior[:] = 0.0
    for place in range(side.place_row.size):
        row, kind, weight = side.place_row[place], side.place_class[place], side.place_weight[place]
        row_prior[0, row] += weight * of_slab[kind]
        row_prior[1, row] += weight * of_spike[kind]


@kernel(views=True)
def draw_places(pairs, weights, of_slab, of_spike, rng):
    """Draw a place of each side, and whether their link is contracted.

    ``weights`` are of the places of the first side. The place of the second one is −1 where all
    weights are 0 by rounding.
    """
    first, second = pairs.first, pairs.second
    wanted = rng.random() * weights.sum()
    i = 0
    while i < weights.size - 1 and weights[i] <= wanted:
        wanted -= weights[i]
        i += 1
    own, row = first.place_class[i], first.place_row[i]
    wanted = rng.random() * weights[i] / first.place_weight[i]
    chosen, is_one = -1, False
    for j in range(second.place_row.size):
        b, kind, weight = second.place_row[j], second.place_class[j], second.place_weight[j]
        for one in range(2):
            if one:
                some = weight * of_spike[own, kind] * pairs.spike[row, b]
            else:
                some = weight * of_slab[own, kind] * pairs.slab[row, b]
            if some > 0.0 and wanted >= 0.0:
                chosen, is_one = j, one == 1
            wanted -= some
        if wanted < 0.0:
            break
    return i, chosen, is_one


@kernel(views=True)
def draw_link(pairs, a, b, n, is_one, rng):
    """Draw the correlation of a link between two rows."""
    r, c = pairs.covariance[a, b], pairs.likely[a, b]
    largest = math.sqrt(pairs.first.variance[a] * pairs.second.variance[b])
    if is_one:
        odds = odds_of_sign(min(largest, STRONGEST), abs(r), n)
        return math.copysign(1.0, r if rng.random() * (1.0 + odds) < 1.0 else -r)
    spread = 0.5 * (pairs.first.spread[a] + pairs.second.spread[b])
    sigma = (1.0 - c * c) / math.sqrt(n * slope_of(c, abs(r), spread))
    return draw_correlation(math.copysign(c, r), sigma, largest, rng)


@kernel(views=True)
def link_at(state, side, place, node, rng):
    """Put a hidden node at a place; a single node is the place itself."""
    if side.nodes.size == 1:
        return
    position, kind = 1 + place // N_KINDS, place % N_KINDS
    v, above, rho = side.nodes[position], side.nodes[side.above[position]], side.rho[position]
    lower = upper = 1.0
    if kind == LOWER:
        upper = rho
    elif kind == UPPER:
        lower = rho
    else:
        lower = abs(rho) ** side.share[position]
        upper = rho / lower
    # Which comes first decides where the walk goes on; both must be equally probable.
    if rng.random() < 0.5:
        v, above, lower, upper = above, v, upper, lower
    attach(state.links, state.messages, node, v, above, lower, upper)


@kernel(views=True)
def step(state, m):
    """Go on to the next link of the walk around the tree; at a leaf it turns back."""
    u, w = state.at[0], state.at[1]
    ahead = u
    if w >= m:
        slot = 0
        while state.links.neighbor[w, slot] != u:
            slot += 1
        ahead = state.links.neighbor[w, (slot + 1) % 3]
        state.messages.toward[w] = ahead
        collect(state.links, state.messages, w)
    state.at[0], state.at[1] = w, ahead


@kernel()
def move(state, m, data, prior, radius, n_moves, rng):
    """Walk around the tree; cut some links on the way, and draw others."""
    links, messages, number = state.links, state.messages, state.counts
    for _ in range(n_moves):
        step(state, m)
        while state.at[0] > state.at[1]:
            step(state, m)
        u, w = state.at[0], state.at[1]
        of_leaf = 1 if u < m else 0
        contracted, inside, cherries = number[0], number[1], number[2]
        cherries -= count_cherries_beside(links, u, m) + count_cherries_beside(links, w, m)
        rho = part(links, u, w)
        if is_contracted(rho):
            inside -= of_leaf
            contracted -= 1 - of_leaf
        first, contracted, inside = detach(state, u, m, radius, contracted, inside)
        second, contracted, inside = detach(state, w, m, radius, contracted, inside)
        for half in (first, second):
            # One cherry less than without a link: places say how many there are with one.
            cherries += is_cherry(links, half.a, m) + is_cherry(links, half.b, m) - (half.a >= 0)

        centers = draw_center(state, first, radius, rng), draw_center(state, second, radius, rng)
        odds = 0.0
        for turn in range(1 if first.is_whole and second.is_whole else 2):
            if turn == 1:
                centers, odds = draw_far(state, first, second, centers, rng)
            pairs = compare_around(state, first, second, centers, m, radius, turn == 0, rng)
            if turn == 0:
                near = pairs
        c = max(largest_of(near), largest_of(pairs))
        n = rows_known_as_well(c, data.n_rows, data.n_states)
        best = weigh_rows(near, n)
        if odds > 0.0:
            best = max(best, weigh_rows(pairs, n))
        of_slab = prior_factors(prior, contracted, inside, cherries, 0, 0)
        of_spike = prior_factors(prior, contracted, inside, cherries, 1 - of_leaf, of_leaf)
        integrate(near, n, best)
        weights = weigh_places(near, of_slab, of_spike)
        if odds > 0.0:
            integrate(pairs, n, best)
            others = weigh_places(pairs, of_slab, of_spike)
            total = weights.sum()
            if rng.random() * (total + odds * others.sum()) >= total:
                near, weights = pairs, others
        i, j, is_one = draw_places(near, weights, of_slab, of_spike, rng)

        if j < 0:  # with 10⁷ rows or more all but one place may be out of reach: nothing moves
            for half in (first, second):
                if half.a >= 0:
                    attach(links, messages, half.node, half.a, half.b, half.rho_a, half.rho_b)
        else:
            one, other = near.first, near.second
            rho = draw_link(near, one.place_row[i], other.place_row[j], n, is_one, rng)
            link_at(state, one, i, u, rng)
            link_at(state, other, j, w, rng)
            for kind in (one.place_class[i], other.place_class[j]):
                contracted += kind % 2
                inside += kind // 2 % 2
                cherries += kind // 4
            if is_one:
                inside += of_leaf
                contracted += 1 - of_leaf
            number[0], number[1], number[2] = contracted, inside, cherries
        join(links, u, w, rho)
        for half in (first, second):
            if half.a >= 0:
                messages.toward[half.node] = w if half.node == u else u
                collect(links, messages, half.node)

"""What is known, on one side of a cut link, about the places where a link may end.

Places are nodes, and points on the links between a node and the one above. Only those near to some
link are looked at: what is beyond is known by the messages that arrive from there, so that a side
is a small tree whose leaves are variables or messages. It hangs from one of its leaves, so that
every inner node has two nodes below it. Estimates are linear in what the leaves show, so that many
columns go side by side (:mod:`latentree._kernels.gaussian` has the formulas).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.gaussian import multiply
from latentree._kernels.structure.links import is_contracted, n_leaves_at, prior_of
from latentree._kernels.structure.messages import face
from latentree.typing import FloatArray, IntArray

# Where a place is on its link: at the lower node, at the upper one, or in between.
LOWER, UPPER, BETWEEN = 0, 1, 2
N_KINDS = 3

# Contracted links that a place adds (0 or 1 of hidden nodes, 0 or 2 for one of a leaf), and 4 times
# the cherries beside the fewest, 0 to 2: the class of a place.
N_CLASSES = 12


class Near(NamedTuple):
    """Room for a list of links: the node at the far end of each, and the one before it."""

    node: IntArray
    before: IntArray
    is_inner: IntArray
    """By node: whether all its links are among those of a side; 0 between two uses."""


class Side(NamedTuple):
    """A part of one side. Arrays have an entry per position of its nodes, per row or per place.

    Rows are the nodes, then the points on the links above them (but the top).
    """

    nodes: IntArray
    """Its nodes by position, after the ones above them; a leaf, the top, comes first."""
    above: IntArray
    """Position of the node above."""
    order: IntArray
    """All positions."""
    leaves: IntArray
    """Positions of the leaves."""
    rho: FloatArray
    """Correlation with the node above."""
    reach: FloatArray
    """Number of links that are near to the link above."""
    share: FloatArray
    """The point on the link above, as a share of log ρ from below."""
    own: FloatArray
    """Posterior variances at the leaves, −1 at inner nodes."""
    mix: FloatArray
    """Weights of both sides of its link in every row, which has variance 1 in the model."""
    variance: FloatArray
    """What the variances of rows were in the model."""
    spread: FloatArray
    """Their variances in the data, where the model's are 1."""
    place_row: IntArray
    place_class: IntArray
    place_weight: FloatArray


@kernel()
def make_side(size):
    """Make room for a side of some nodes."""
    n_rows, n_places = 2 * size - 1, max(N_KINDS * (size - 1), 1)
    integers, numbers = np.empty((3, size), np.int64), np.empty((4, size))
    return Side(
        integers[0],
        integers[1],
        np.arange(size),
        integers[2, : size // 2 + 1],
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        np.empty((2, n_rows)),
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty(n_places, np.int64),
        np.empty(n_places, np.int64),
        np.empty(n_places),
    )


# Links that are near ------------------------------------------------------------------------------


@kernel(views=True)
def list_near(links, a, b, radius, near):
    """List the links at most some steps from the one of two nodes.

    The first two entries are its two ends; all others are a link each. Returns the number of
    entries, and that of those whose links are all listed.
    """
    near.node[0] = near.before[1] = a
    near.node[1] = near.before[0] = b
    begin, end = 0, 2
    for _ in range(radius):
        count = end
        for entry in range(begin, end):
            node, before = near.node[entry], near.before[entry]
            for slot in range(3):
                other = links.neighbor[node, slot]
                if other >= 0 and other != before:
                    near.node[count], near.before[count] = other, node
                    count += 1
        begin, end = end, count
        if begin == end:
            break
    return end, begin


@kernel(views=True)
def mean_reach(links, radius, near):
    """Return the mean number of links near to a link."""
    total, count = 0, 0
    for node in range(links.neighbor.shape[0]):
        for slot in range(3):
            if links.neighbor[node, slot] > node:
                total += list_near(links, node, links.neighbor[node, slot], radius, near)[0] - 1
                count += 1
    return total / count


@kernel()
def side_around(links, messages, half, center, radius, near):
    """Return the part of a side around a link, and for each of its links how many are near.

    It hangs from the last link of those that are near to the center. Messages are turned toward the
    center, so that they are known to it. A leaf is alone.
    """
    if half.a < 0:
        side = make_side(1)
        side.nodes[0], side.above[0], side.leaves[0] = half.node, -1, 0
        side.own[0] = messages.variance[half.node]
        return side
    face(links, messages, center[0], center[1])
    n_listed, n_inner = list_near(links, center[0], center[1], radius, near)
    side = make_side(n_listed)
    side.nodes[0], side.above[0] = near.node[n_listed - 1], -1
    side.nodes[1], side.above[1] = near.before[n_listed - 1], 0
    side.leaves[0] = 0
    hang(links, side, near, n_inner)
    for position in side.leaves:
        side.own[position] = messages.variance[side.nodes[position]]
    if not half.is_whole:
        for position in range(1, n_listed):
            a, b = side.nodes[position], side.nodes[side.above[position]]
            side.reach[position] = list_near(links, a, b, radius, near)[0] - 1
    return side


@kernel(views=True)
def hang(links, side, near, n_inner):
    """List all nodes of a part of a tree, whose first two are listed."""
    nodes, above = side.nodes, side.above
    for entry in range(n_inner):
        near.is_inner[near.node[entry]] = 1
    size, n_leaves = 2, 1
    for position in range(1, nodes.size):
        node, last = nodes[position], nodes[above[position]]
        side.reach[position] = 1.0
        side.own[position] = -1.0
        is_leaf = True
        for slot in range(3):
            other = links.neighbor[node, slot]
            if other == last:
                side.rho[position] = links.rho[node, slot]
            elif other >= 0 and near.is_inner[node]:
                nodes[size], above[size] = other, position
                size += 1
                is_leaf = False
        if is_leaf:
            side.leaves[n_leaves] = position
            n_leaves += 1
    for entry in range(n_inner):
        near.is_inner[near.node[entry]] = 0


# Places ---------------------------------------------------------------------------------------


def _plain_measure_spread(side, below, above, first):
    k, size = side.leaves.size, side.nodes.size
    if size == 1:
        side.spread[0] = below[0, first]
        return
    columns = slice(first, first + k)
    own = (below[1:, :k] * below[1:, columns]).sum(axis=1)
    other = (above[1:, :k] * above[1:, columns]).sum(axis=1)
    both = (below[1:, :k] * above[1:, columns]).sum(axis=1)
    edge = np.hstack([1, np.arange(1, size), np.arange(1, size)]) - 1
    a, b = side.mix
    side.spread[:] = a * a * own[edge] + b * b * other[edge] + 2.0 * a * b * both[edge]


@kernel(plain=_plain_measure_spread, views=True)
def measure_spread(side, below, above, first):
    """Measure the variances of all rows in the data.

    Estimates with the weights w and the covariances S·w have the covariance w′·S·w′′. Weights of
    the leaves are the first columns, covariances with them begin at column ``first``.
    """
    k, size = side.leaves.size, side.nodes.size
    end = first + k
    if size == 1:
        side.spread[0] = below[0, first]
    for position in range(1, size):
        own = multiply(below[position, :k], below[position, first:end])
        other = multiply(above[position, :k], above[position, first:end])
        both = multiply(below[position, :k], above[position, first:end])
        for row in (0, position, size + position - 1):
            if row > 0 or position == 1:
                a, b = side.mix[0, row], side.mix[1, row]
                side.spread[row] = a * a * own + b * b * other + 2.0 * a * b * both


@kernel(views=True)
def list_places(side, links, m, n_variables, other_is_leaf):
    """List the places of a side of some variables.

    A place is 3·(position − 1) + its kind, of the link above a position; a single node is one
    place. Its weight is the prior of a point there: −2·log|ρ|·p(ρ₁)·p(ρ₂)/p(ρ) between two nodes,
    with ρ₁·ρ₂ = ρ, 1 at a node, and 0 where there is no place; divided by the number of links near
    to this one.
    """
    side.place_row[0], side.place_class[0], side.place_weight[0] = 0, 0, 1.0
    for position in range(1, side.nodes.size):
        above = side.above[position]
        v, p = side.nodes[position], side.nodes[above]
        is_of_leaf = v < m or p < m
        extra = 1  # cherries beside those without a link there, less one
        if n_variables == 2:  # with the link they are a cherry
            extra = 2
        elif n_variables > 3 and is_of_leaf and n_leaves_at(links, p if v < m else v, m) >= 2:
            extra = 0  # the link parts a cherry
        if is_of_leaf and other_is_leaf and n_variables > 2:  # three leaves are one cherry
            extra += 1
        place = N_KINDS * (position - 1)
        for kind in range(N_KINDS):
            side.place_class[place + kind] = 4 * extra
        side.place_row[place + BETWEEN] = side.nodes.size + position - 1
        one = 1.0 / side.reach[position]
        if is_contracted(side.rho[position]):
            # One place, with one more contracted link: where the leaf is, if there is one.
            side.place_row[place] = above if p < m else position
            side.place_class[place] += 2 if v < m and p < m else 1
            side.place_weight[place] = one
            side.place_row[place + UPPER] = above
            side.place_weight[place + UPPER] = side.place_weight[place + BETWEEN] = 0.0
        else:
            side.place_row[place], side.place_row[place + UPPER] = position, above
            side.place_class[place] += 2 if v < m else 1
            side.place_class[place + UPPER] += 2 if p < m else 1
            side.place_weight[place] = side.place_weight[place + UPPER] = one
            rho = abs(side.rho[position])
            lower = rho ** side.share[position]
            weight = prior_of(lower) * prior_of(rho / lower) / prior_of(rho)
            side.place_weight[place + BETWEEN] = -math.log(rho) * weight * one

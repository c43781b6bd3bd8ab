"""What the observed nodes on one side of a cut link say about all places where a link may end.

Places are nodes, and points on the links between a node and the one above. All nodes have variance
1. A side hangs from one of its leaves, so that every hidden node has two nodes below it. What is
known of a place is an estimate with variance q, linear in what the observed nodes show, so that
many columns go side by side (:mod:`latentree._kernels.structure.grafting` has the formulas). Every
node is estimated from below it (``up``), and the node above it from everywhere else (``down``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.structure.grafting import LARGEST, told
from latentree._kernels.structure.links import is_contracted, n_leaves_at, prior_of
from latentree.typing import FloatArray, IntArray

LEAST = 1e-12  # of variances

# Where a place is on its link: at the lower node, at the upper one, or in between.
LOWER, UPPER, BETWEEN = 0, 1, 2
N_KINDS = 3

# Contracted links that a place adds (0 or 1 of hidden nodes, 0 or 2 for one of a leaf), and 4 times
# the cherries beside the fewest, 0 to 2: the class of a place.
N_CLASSES = 12


class Side(NamedTuple):
    """Room for one side. Arrays have an entry a position of its nodes, a row or a place.

    Rows are the nodes, then the points on the links above them (but the top).
    """

    nodes: IntArray
    """Its nodes by position, after the ones above them; a leaf, the top, comes first."""
    above: IntArray
    """Position of the node above."""
    below: IntArray
    """Positions of the two nodes below a hidden one, −1 where there is none."""
    rho: FloatArray
    """Correlation with the node above."""
    share: FloatArray
    """The point on the link above, as a share of log ρ from below."""
    told: FloatArray
    """Precision that a node adds to that of the node above, and that it gets from there."""
    known: FloatArray
    """Variances of the two estimates ``up`` and ``down``."""
    weight: FloatArray
    """Of ``up`` in that of the node above; of ``down`` above, and ``up`` of the other node below
    that one, in ``down``."""
    up: FloatArray
    """Estimates of every node from below it, for every column."""
    down: FloatArray
    """Estimates of the node above it from elsewhere."""
    mix: FloatArray
    """Weights of ``up`` and ``down`` in every row, which is scaled to variance 1 in the model."""
    rows: FloatArray
    """Covariances of the rows with all variables."""
    variance: FloatArray
    """What the variances of rows were in the model."""
    spread: FloatArray
    """Their variances in the data, where the model's are 1."""
    place_row: IntArray
    place_class: IntArray
    place_weight: FloatArray


def make_side(n: int) -> Side:
    """Make room for a side of a tree with n nodes."""
    return Side(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty((2, n), np.int64),
        np.empty(n),
        np.empty(n),
        np.empty((2, n)),
        np.empty((2, n)),
        np.empty((3, n)),
        np.empty((n, 2 * n)),
        np.empty((n, 2 * n)),
        np.empty((2, 2 * n)),
        np.empty((2 * n, n)),
        np.empty(2 * n),
        np.empty(2 * n),
        np.empty(N_KINDS * n, np.int64),
        np.empty(N_KINDS * n, np.int64),
        np.empty(N_KINDS * n),
    )


@kernel()
def walk(links, start, m, side):
    """List the nodes of the side of a node; return how many."""
    node, last = start, -1
    while node >= m:  # the first leaf on the way is the top
        slot = 0
        while links.neighbor[node, slot] < 0 or links.neighbor[node, slot] == last:
            slot += 1
        node, last = links.neighbor[node, slot], node
    side.nodes[0], side.above[0] = node, -1
    size, done = 1, 0
    while done < size:
        node = side.nodes[done]
        last = side.nodes[side.above[done]] if done > 0 else -1
        side.below[0, done] = side.below[1, done] = -1
        count = 0
        for slot in range(3):
            other = links.neighbor[node, slot]
            if other >= 0 and other != last:
                side.nodes[size], side.above[size] = other, done
                side.rho[size] = links.rho[node, slot]
                side.below[count, done] = size
                count += 1
                size += 1
        done += 1
    return size


# Weights of the estimates -----------------------------------------------------------------------


@kernel()
def weigh_estimates(side, size):
    """Find the variances of all estimates, and their weights in those that they go into."""
    rho, precision, known = side.rho, side.told, side.known
    for position in range(size - 1, 0, -1):
        first, second = side.below[0, position], side.below[1, position]
        known[0, position] = 1.0
        if first >= 0:
            t = precision[0, first] + precision[0, second]
            known[0, position] = t / (1.0 + t)
            for other in (first, second):
                side.weight[0, other] = rho[other] * (1.0 + precision[0, other]) / (1.0 + t)
        precision[0, position] = told(known[0, position], rho[position])
    for position in range(1, size):
        above = side.above[position]
        known[1, position] = 1.0
        if above > 0:
            other = side.below[0, above] + side.below[1, above] - position
            t = precision[1, above] + precision[0, other]
            known[1, position] = t / (1.0 + t)
            side.weight[1, position] = rho[above] * (1.0 + precision[1, above]) / (1.0 + t)
            side.weight[2, position] = rho[other] * (1.0 + precision[0, other]) / (1.0 + t)
        precision[1, position] = told(known[1, position], rho[position])


def _plain_mix_estimates(side, size):
    first, second = side.below[:, :size]
    t_below = np.where(first >= 0, side.told[0, first] + side.told[0, second], 1.0)
    rho = side.rho[1:size]
    lower = np.abs(rho) ** side.share[1:size]
    upper = rho / lower
    squared = np.minimum([lower**2, upper**2] * side.known[:, 1:size], LARGEST)
    t_below, t_above = np.hstack(
        [[t_below, np.append(0.0, side.told[1, 1:size])], squared / (1.0 - squared)]
    )
    total = t_below + t_above
    q = np.maximum(total / (1.0 + total), LEAST)
    factor = 1.0 / (np.sqrt(q) * (1.0 + total))
    side.mix[0, : 2 * size - 1] = factor * np.append(np.ones(size), lower) * (1.0 + t_below)
    side.mix[1, : 2 * size - 1] = factor * np.hstack([0.0, rho, upper]) * (1.0 + t_above)
    side.variance[: 2 * size - 1] = q
    leaves = np.flatnonzero(second < 0)
    side.mix[0, leaves], side.mix[1, leaves], side.variance[leaves] = 1.0, 0.0, 1.0


@kernel(plain=_plain_mix_estimates)
def mix_estimates(side, size):
    """Find the weights of the two estimates of a node in every row, and the variances of the rows.

    A hidden node is known from below and from above; an observed one shows itself.
    """
    for position in range(size):
        first, second = side.below[0, position], side.below[1, position]
        if second < 0:
            side.mix[0, position], side.mix[1, position] = 1.0, 0.0
            side.variance[position] = 1.0
        else:
            t = side.told[0, first] + side.told[0, second]
            mix(side, position, 1.0, t, side.rho[position], side.told[1, position])
    for position in range(1, size):
        lower = abs(side.rho[position]) ** side.share[position]
        upper = side.rho[position] / lower
        t_below, t_above = (
            told(side.known[0, position], lower),
            told(side.known[1, position], upper),
        )
        mix(side, size + position - 1, lower, t_below, upper, t_above)


@kernel()
def mix(side, row, lower, t_below, upper, t_above):
    """Mix what is known at two correlations; each adds t to the precision of the row."""
    total = t_below + t_above
    q = max(total / (1.0 + total), LEAST)
    factor = 1.0 / (math.sqrt(q) * (1.0 + total))
    side.mix[0, row] = factor * lower * (1.0 + t_below)
    side.mix[1, row] = factor * upper * (1.0 + t_above)
    side.variance[row] = q


# Estimates of columns ---------------------------------------------------------------------------


def _plain_copy(to, what):
    to[:] = what


@kernel(fastmath=True, views=True, plain=_plain_copy)
def copy(to, what):
    """Copy an array."""
    for column in range(to.size):
        to[column] = what[column]


def _plain_combine(to, a, x, b, y):
    to[:] = a * x + b * y


@kernel(fastmath=True, views=True, plain=_plain_combine)
def combine(to, a, x, b, y):
    """Write a·x + b·y."""
    for column in range(to.size):
        to[column] = a * x[column] + b * y[column]


@kernel()
def estimate(side, size, n_columns):
    """Estimate every node from below it, and the one above it from elsewhere, for every column.

    ``up`` of the leaves is what they show.
    """
    up, down, weight = side.up[:, :n_columns], side.down[:, :n_columns], side.weight
    for position in range(size - 1, 0, -1):
        first, second = side.below[0, position], side.below[1, position]
        if first >= 0:
            combine(up[position], weight[0, first], up[first], weight[0, second], up[second])
    for position in range(1, size):
        above = side.above[position]
        if above == 0:
            copy(down[position], up[0])
        else:
            other = side.below[0, above] + side.below[1, above] - position
            combine(
                down[position], weight[1, position], down[above], weight[2, position], up[other]
            )


def _plain_fill_rows(side, size, first, n_columns, out):
    columns, n_rows = slice(first, first + n_columns), 2 * size - 1
    position = np.append(np.arange(size), np.arange(1, size))
    below, above = side.mix[:, :n_rows, None]
    down = np.where(above == 0.0, 0.0, side.down[position, columns])  # there is none above the top
    out[:n_rows, :n_columns] = below * side.up[position, columns] + above * down


@kernel(fastmath=True, plain=_plain_fill_rows)
def fill_rows(side, size, first, n_columns, out):
    """Write the rows for some columns of the estimates."""
    for row in range(2 * size - 1):
        position = row if row < size else row - size + 1
        up = side.up[position, first : first + n_columns]
        if side.mix[1, row] == 0.0:  # there is nothing above the top
            copy(out[row, :n_columns], up)
        else:
            down = side.down[position, first : first + n_columns]
            combine(out[row, :n_columns], side.mix[0, row], up, side.mix[1, row], down)


# Columns that the observed nodes show -----------------------------------------------------------


def _plain_show_variables(side, size, m, correlation):
    leaves = np.flatnonzero(side.nodes[:size] < m)
    v = side.nodes[leaves]
    side.up[leaves, :m] = np.eye(m)[v]
    side.up[leaves, m : 2 * m] = correlation[v]


@kernel(plain=_plain_show_variables)
def show_variables(side, size, m, correlation):
    """Show unit vectors, then correlations with all m variables.

    The estimates then are the weights of the variables in them, and their covariances with these.
    """
    for position in range(size):
        v = side.nodes[position]
        if v < m:
            side.up[position, :m] = 0.0
            side.up[position, v] = 1.0
            copy(side.up[position, m : 2 * m], correlation[v])


def _plain_show_rows(side, size, other, n_rows, m):
    leaves = np.flatnonzero(side.nodes[:size] < m)
    side.up[leaves, :n_rows] = other.rows[:n_rows, side.nodes[leaves]].T


@kernel(plain=_plain_show_rows)
def show_rows(side, size, other, n_rows, m):
    """Show the covariances with the rows of the other side, whose columns are the variables."""
    for position in range(size):
        v = side.nodes[position]
        if v < m:
            for row in range(n_rows):
                side.up[position, row] = other.rows[row, v]


def _plain_measure_spread(side, size, m):
    up, down = side.up[:size], side.down[1:size]
    own = (up[:, :m] * up[:, m : 2 * m]).sum(axis=1)
    other = np.append(0.0, (down[:, :m] * down[:, m : 2 * m]).sum(axis=1))
    both = np.append(0.0, (up[1:, :m] * down[:, m : 2 * m]).sum(axis=1))
    position = np.append(np.arange(size), np.arange(1, size))
    a, b = side.mix[:, : 2 * size - 1]
    spread = a * a * own[position] + b * b * other[position] + 2.0 * a * b * both[position]
    side.spread[: 2 * size - 1] = spread


@kernel(plain=_plain_measure_spread)
def measure_spread(side, size, m):
    """Measure the variances of all rows in the data.

    Estimates with the weights w and the covariances S·w have the covariance w′·S·w′′.
    """
    side.spread[0] = 1.0
    for position in range(1, size):
        up, down = side.up[position], side.down[position]
        own = multiply(up[:m], up[m : 2 * m])
        other = multiply(down[:m], down[m : 2 * m])
        both = multiply(up[:m], down[m : 2 * m])
        for row in (position, size + position - 1):
            a, b = side.mix[0, row], side.mix[1, row]
            side.spread[row] = a * a * own + b * b * other + 2.0 * a * b * both


def _plain_multiply(x, y):
    return float(x @ y)


@kernel(fastmath=True, views=True, plain=_plain_multiply)
def multiply(x, y):
    """Return the inner product of two arrays."""
    total = 0.0
    for column in range(x.size):
        total += x[column] * y[column]
    return total


# Places ---------------------------------------------------------------------------------------


@kernel()
def list_places(side, size, links, m, other_is_leaf):
    """List the places of a side; return their number, and the fewest cherries with a link there.

    A place is 3·(position − 1) + its kind, of the link above a position; a single node is one
    place. Its weight is the prior of a point there: −2·log|ρ|·p(ρ₁)·p(ρ₂)/p(ρ) between two nodes,
    with ρ₁·ρ₂ = ρ, 1 at a node, and 0 where there is no place.
    """
    if size == 1:
        side.place_row[0], side.place_class[0], side.place_weight[0] = 0, 0, 1.0
        return 1, 0
    cherries = 0
    for v in side.nodes[:size]:
        if v >= m and n_leaves_at(links, v, m) >= 2:
            cherries += 1
    for position in range(1, size):
        above = side.above[position]
        v, p = side.nodes[position], side.nodes[above]
        is_of_leaf = v < m or p < m
        extra = 1  # cherries beside ``cherries − 1``
        if size <= 4:  # two or three leaves: with the link two of them are a cherry
            extra = 2 - cherries
        elif is_of_leaf and n_leaves_at(links, p if v < m else v, m) >= 2:
            extra = 0  # the link parts a cherry
        if is_of_leaf and other_is_leaf and size > 2:  # three leaves are one cherry
            extra += 1
        place = N_KINDS * (position - 1)
        for kind in range(N_KINDS):
            side.place_class[place + kind] = 4 * extra
        side.place_row[place + BETWEEN] = size + position - 1
        if is_contracted(side.rho[position]):
            # One place, with one more contracted link: where the leaf is, if there is one.
            side.place_row[place] = above if p < m else position
            side.place_class[place] += 2 if v < m and p < m else 1
            side.place_weight[place] = 1.0
            side.place_row[place + UPPER] = above
            side.place_weight[place + UPPER] = side.place_weight[place + BETWEEN] = 0.0
        else:
            side.place_row[place], side.place_row[place + UPPER] = position, above
            side.place_class[place] += 2 if v < m else 1
            side.place_class[place + UPPER] += 2 if p < m else 1
            side.place_weight[place] = side.place_weight[place + UPPER] = 1.0
            rho = abs(side.rho[position])
            lower = rho ** side.share[position]
            weight = prior_of(lower) * prior_of(rho / lower) / prior_of(rho)
            side.place_weight[place + BETWEEN] = -math.log(rho) * weight
    return N_KINDS * (size - 1), cherries - 1

"""What the observed nodes on one side of a cut link say about all places where a link may end.

Places are nodes, and points on the links between a node and its parent. All nodes have variance 1.
What is known of a place is an estimate with variance q, linear in what the observed nodes show, so
that many columns go side by side (:mod:`latentree._kernels.structure.grafting` has the formulas).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.structure.grafting import LARGEST, told
from latentree._kernels.structure.links import is_contracted, n_leaves_at
from latentree.typing import FloatArray, IntArray

LEAST = 1e-12  # of variances

# Where a place is on its link: at the lower node, at the upper one, or in between.
LOWER, UPPER, BETWEEN = 0, 1, 2
N_KINDS = 3

# Contracted links that a place adds (0 or 1 of hidden nodes, 0 or 2 for one of a leaf), and 4 times
# the cherries beside the fewest, 0 to 2: the class of a place.
N_CLASSES = 12


class Side(NamedTuple):
    """Room for one side. Arrays have an entry a node of the tree, a position, a row or a place."""

    nodes: IntArray
    """Its nodes by position, after their parents; the top comes first."""
    above: IntArray
    """Position of the parent of each."""
    known: FloatArray
    """Variances of the estimates of every node from below it, and of its parent from elsewhere."""
    up: FloatArray
    """The first of these estimates, for every column."""
    down: FloatArray
    """The second."""
    told: FloatArray
    """Precision that every node adds to its parent's, and that it gets from there."""
    share: FloatArray
    """The point on the link above each position, as a share of log ρ from below."""
    rows: FloatArray
    """Estimates of all nodes, then of the points above them (but the top), with variance 1."""
    variance: FloatArray
    """What their variances were in the model."""
    spread: FloatArray
    """Their variances in the rows of the data, where the model's are 1."""
    place_row: IntArray
    place_class: IntArray
    place_weight: FloatArray


def make_side(n: int) -> Side:
    """Make room for a side of a tree with n nodes."""
    return Side(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty((2, n)),
        np.empty((n, 2 * n)),
        np.empty((n, 2 * n)),
        np.empty((2, n)),
        np.empty(n),
        np.empty((2 * n, 2 * n)),
        np.empty(2 * n),
        np.empty(2 * n),
        np.empty(N_KINDS * n, np.int64),
        np.empty(N_KINDS * n, np.int64),
        np.empty(N_KINDS * n),
    )


@kernel()
def walk(links, top, side, parent, rho):
    """List the nodes of a side, with their parents and correlations to these; return how many."""
    nodes = side.nodes
    nodes[0] = top
    parent[top] = -1
    size, done = 1, 0
    while done < size:
        node = nodes[done]
        done += 1
        for slot in range(3):
            other = links.neighbor[node, slot]
            if other >= 0 and other != parent[node]:
                parent[other] = node
                rho[other] = links.rho[node, slot]
                nodes[size] = other
                side.above[size] = done - 1
                size += 1
    return size


# Estimates ------------------------------------------------------------------------------------


def _plain_copy(to, what, n_columns):
    to[:n_columns] = what[:n_columns]


@kernel(fastmath=True, views=True, plain=_plain_copy)
def copy(to, what, n_columns):
    """Copy an array."""
    for column in range(n_columns):
        to[column] = what[column]


def _plain_clear(values, n_columns):
    values[:n_columns] = 0.0


@kernel(fastmath=True, views=True, plain=_plain_clear)
def clear(values, n_columns):
    """Set an array to 0."""
    for column in range(n_columns):
        values[column] = 0.0


def _plain_add_scaled(to, factor, what, n_columns):
    to[:n_columns] += factor * what[:n_columns]


@kernel(fastmath=True, views=True, plain=_plain_add_scaled)
def add_scaled(to, factor, what, n_columns):
    """Add factor·what to an array."""
    for column in range(n_columns):
        to[column] += factor * what[column]


def _plain_scale(values, factor, n_columns):
    values[:n_columns] *= factor


@kernel(fastmath=True, views=True, plain=_plain_scale)
def scale(values, factor, n_columns):
    """Multiply an array by a number."""
    for column in range(n_columns):
        values[column] *= factor


@kernel(fastmath=True)
def estimate(side, size, links, parent, rho, m, n_columns, x):
    """Estimate every node from below it, and its parent from elsewhere, for every column of x."""
    up, down = side.up, side.down
    for position in range(size - 1, -1, -1):
        v = side.nodes[position]
        if v < m:
            side.known[0, v] = 1.0
            copy(up[v], x[v], n_columns)
        else:
            t = 0.0
            clear(up[v], n_columns)
            for slot in range(3):
                w = links.neighbor[v, slot]
                if w >= 0 and w != parent[v]:
                    t += side.told[0, w]
                    add_scaled(up[v], rho[w] * (1.0 + side.told[0, w]), up[w], n_columns)
            scale(up[v], 1.0 / (1.0 + t), n_columns)
            side.known[0, v] = t / (1.0 + t)
        if position > 0:
            side.told[0, v] = told(side.known[0, v], rho[v])
    for position in range(1, size):
        v = side.nodes[position]
        p = parent[v]
        if p < m:
            side.known[1, v] = 1.0
            copy(down[v], x[p], n_columns)
        else:
            t = 0.0
            clear(down[v], n_columns)
            for slot in range(3):
                w = links.neighbor[p, slot]
                if w >= 0 and w != v:
                    if w == parent[p]:
                        t += side.told[1, p]
                        add_scaled(down[v], rho[p] * (1.0 + side.told[1, p]), down[p], n_columns)
                    else:
                        t += side.told[0, w]
                        add_scaled(down[v], rho[w] * (1.0 + side.told[0, w]), up[w], n_columns)
            scale(down[v], 1.0 / (1.0 + t), n_columns)
            side.known[1, v] = t / (1.0 + t)
        side.told[1, v] = told(side.known[1, v], rho[v])


def _plain_fill_rows(side, size, rho, m, n_columns):
    v = side.nodes[:size]
    q, t_above, r = side.known[0, v], side.told[1, v], rho[v]
    t_below = q / np.maximum(1.0 - q, 1e-9)
    alone = (v < m) | (np.arange(size) == 0)  # known from below, or observed
    total = np.where(alone, 0.0, t_below + t_above)
    q = np.maximum(np.where(alone, q, total / (1.0 + total)), LEAST)
    factor = 1.0 / (np.sqrt(q) * (1.0 + total))
    below = np.where(alone, factor, factor * (1.0 + t_below))
    above = np.where(alone, 0.0, factor * r * (1.0 + t_above))
    v = np.append(v, v[1:])
    lower = np.abs(r[1:]) ** side.share[1:size]
    upper = r[1:] / lower
    squared = np.minimum([lower**2, upper**2] * side.known[:, v[size:]], LARGEST)
    told_lower, told_upper = squared / (1.0 - squared)
    total = told_lower + told_upper
    between = np.maximum(total / (1.0 + total), LEAST)
    factor = 1.0 / (np.sqrt(between) * (1.0 + total))
    below = np.append(below, factor * lower * (1.0 + told_lower))[:, None]
    above = np.append(above, factor * upper * (1.0 + told_upper))[:, None]
    down = np.where(above == 0.0, 0.0, side.down[v, :n_columns])  # nothing is written at the top
    side.rows[: v.size, :n_columns] = below * side.up[v, :n_columns] + above * down
    side.variance[: v.size] = np.append(q, between)


@kernel(fastmath=True, plain=_plain_fill_rows)
def fill_rows(side, size, rho, m, n_columns):
    """Estimate all nodes, and the points on the links above them, with variance 1.

    A node is known from below and from above; an observed one shows itself.
    """
    for position in range(size):
        v = side.nodes[position]
        q = side.known[0, v]
        t_below = t_above = above = 0.0
        if v >= m and position > 0:
            t_below = q / max(1.0 - q, 1e-9)
            t_above = side.told[1, v]
            q = (t_below + t_above) / (1.0 + t_below + t_above)
        q = max(q, LEAST)
        factor = 1.0 / (math.sqrt(q) * (1.0 + t_below + t_above))
        if v >= m and position > 0:
            above = factor * rho[v] * (1.0 + t_above)
        write_row(side, position, v, factor * (1.0 + t_below), above, n_columns)
        side.variance[position] = q
    for position in range(1, size):
        v = side.nodes[position]
        lower = abs(rho[v]) ** side.share[position]
        upper = rho[v] / lower
        t_below, t_above = told(side.known[0, v], lower), told(side.known[1, v], upper)
        q = max((t_below + t_above) / (1.0 + t_below + t_above), LEAST)
        factor = 1.0 / (math.sqrt(q) * (1.0 + t_below + t_above))
        below, above = factor * lower * (1.0 + t_below), factor * upper * (1.0 + t_above)
        write_row(side, size + position - 1, v, below, above, n_columns)
        side.variance[size + position - 1] = q


@kernel(fastmath=True)
def write_row(side, row, v, below, above, n_columns):
    """Write below·(what is known from below a node) + above·(what its parent knows else)."""
    out, up, down = side.rows[row], side.up[v], side.down[v]
    if above == 0.0:  # there may be nothing above
        for column in range(n_columns):
            out[column] = below * up[column]
    else:
        for column in range(n_columns):
            out[column] = below * up[column] + above * down[column]


# Columns that the observed nodes show -----------------------------------------------------------


def _plain_show_themselves(side, size, m, correlation, x):
    seen = side.nodes[:size]
    seen = seen[seen < m]
    x[seen, : seen.size] = np.eye(seen.size)
    x[seen, seen.size : 2 * seen.size] = correlation[np.ix_(seen, seen)]
    return seen.size


@kernel(plain=_plain_show_themselves)
def show_themselves(side, size, m, correlation, x):
    """Show unit vectors, then correlations among the observed nodes; return how many there are."""
    n_seen = 0
    for v in side.nodes[:size]:
        n_seen += v < m
    column = 0
    for v in side.nodes[:size]:
        if v < m:
            for a in side.nodes[:size]:
                if a < m:
                    x[a, column] = 0.0
                    x[a, n_seen + column] = correlation[a, v]
            x[v, column] = 1.0
            column += 1
    return n_seen


def _plain_show_others(side, size, other, size_other, m, correlation, x):
    own, others = side.nodes[:size], other.nodes[:size_other]
    own, others = own[own < m], others[others < m]
    x[own, : others.size] = correlation[np.ix_(own, others)]
    return others.size


@kernel(plain=_plain_show_others)
def show_others(side, size, other, size_other, m, correlation, x):
    """Show the correlations with the observed nodes of the other side; return their number."""
    column = 0
    for v in other.nodes[:size_other]:
        if v < m:
            for a in side.nodes[:size]:
                if a < m:
                    x[a, column] = correlation[a, v]
            column += 1
    return column


def _plain_show_rows(side, size, other, n_rows, m, x):
    own = side.nodes[:size]
    own = own[own < m]
    x[own, :n_rows] = other.rows[:n_rows, : own.size].T


@kernel(plain=_plain_show_rows)
def show_rows(side, size, other, n_rows, m, x):
    """Show the covariances with the rows of the other side, whose columns are these nodes."""
    column = 0
    for v in side.nodes[:size]:
        if v < m:
            for row in range(n_rows):
                x[v, row] = other.rows[row, column]
            column += 1


def _plain_multiply_halves(rows, n_rows, n_columns, out):
    halves = rows[:n_rows, :n_columns], rows[:n_rows, n_columns : 2 * n_columns]
    out[:n_rows] = (halves[0] * halves[1]).sum(axis=1)


@kernel(fastmath=True, views=True, plain=_plain_multiply_halves)
def multiply_halves(rows, n_rows, n_columns, out):
    """Sum the products of the first columns of every row with the next ones."""
    for row in range(n_rows):
        total = 0.0
        for column in range(n_columns):
            total += rows[row, column] * rows[row, n_columns + column]
        out[row] = total


@kernel()
def measure_spread(side, size, links, parent, rho, m, correlation, x):
    """Measure the variances of the rows of a side in the data: w′Sw for an estimate w′x.

    Estimates of unit vectors are the weights w, those of the columns of S the covariances w′S.
    """
    n_seen = show_themselves(side, size, m, correlation, x)
    estimate(side, size, links, parent, rho, m, 2 * n_seen, x)
    fill_rows(side, size, rho, m, 2 * n_seen)
    multiply_halves(side.rows, 2 * size - 1, n_seen, side.spread)


# Places ---------------------------------------------------------------------------------------


@kernel()
def list_places(side, size, links, parent, rho, m, other_is_leaf):
    """List the places of a side; return their number, and the fewest cherries with a link there.

    A place is 3·(position − 1) + its kind, of the link above a position; a single node is one
    place. Its weight is the prior of a point there: −log|ρ| between two nodes, 1 at a node, and 0
    where there is no place.
    """
    if size == 1:
        side.place_row[0], side.place_class[0], side.place_weight[0] = 0, 0, 1.0
        return 1, 0
    cherries = 0
    for v in side.nodes[:size]:
        if v >= m and n_leaves_at(links, v, m) >= 2:
            cherries += 1
    for position in range(1, size):
        v = side.nodes[position]
        p = parent[v]
        is_of_leaf = v < m or p < m
        extra = 1  # cherries beside ``cherries − 1``
        if size <= 4:  # two or three leaves: with the link two of them are a cherry
            extra = 2 - cherries
        elif is_of_leaf and n_leaves_at(links, p if v < m else v, m) >= 2:
            extra = 0  # the link parts a cherry
        if is_of_leaf and other_is_leaf:
            extra += 1
        place, above = N_KINDS * (position - 1), side.above[position]
        for kind in range(N_KINDS):
            side.place_class[place + kind] = 4 * extra
        side.place_row[place + BETWEEN] = size + position - 1
        if is_contracted(rho[v]):
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
            side.place_weight[place + BETWEEN] = -math.log(abs(rho[v]))
    return N_KINDS * (size - 1), cherries - 1

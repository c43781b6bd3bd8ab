"""Functions of single columns of any kind, whose products over rows give the dependence of pairs.

A column of numbers (kind real or count) becomes its normal score z and z²; a column of states (kind
ordered or category) the indicators of its states but one. All are fixed by the first part of the
rows, so that sums over parts add up. Only the space that the functions of a column span matters,
not the functions themselves: another base state or unit gives the same dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from latentree._kernels import threads
from latentree.data import Schema, Table
from latentree.distances._arrays import starts_of
from latentree.distances._real_sums import Units
from latentree.typing import AnyArray, BoolArray, FloatArray, IntArray

KNOTS = 1000
"""Normal scores are linear between so many quantiles at most."""

MOST_STATES = 16
"""So many states of a column have a function of their own, the last for all that are left."""

N_SCORES = 2
"""z and z²: with more, pairs of numbers get noisier than they get more dependent."""

N_SQUARES = N_SCORES * (N_SCORES + 1) // 2
"""Products of the functions of a column of numbers: z², z³, z⁴."""

Curve = tuple[FloatArray, FloatArray]
"""Knots, and the normal scores at the knots."""

Found = TypeVar("Found")


def n_functions(schema: Schema) -> IntArray:
    """Return the number of functions of every column."""
    states = np.clip(schema.cardinalities, 2, MOST_STATES) - 1
    return np.where(holds_numbers(schema), N_SCORES, states)


def holds_numbers(schema: Schema) -> BoolArray:
    """Whether each column is of kind real or count."""
    return np.array([kind in ("real", "count") for kind in schema.kinds])


def has_direction(schema: Schema) -> BoolArray:
    """Whether low and high mean something in each column: numbers, ordered answers, two labels."""
    categories = np.array([kind == "category" for kind in schema.kinds])
    return np.asarray(~categories | (schema.cardinalities == 2))


@dataclass(frozen=True, eq=False)
class Scores:
    """How every column becomes functions.

    Attributes
    ----------
    schema : Schema
        Of the columns.
    units : Units
        In which the moments of columns of numbers are summed.
    curves : tuple
        For each column of numbers its knots, and the normal scores there.
    states : tuple of arrays of int
        For each column of states those that have an indicator: all but the most frequent one of the
        first rows, in ascending order.
    limits : array of shape (columns of numbers, 2)
        Numbers as low as the first or as high as the second are outliers; see ``_outliers``.
    """

    schema: Schema
    units: Units
    curves: tuple[Curve, ...]
    states: tuple[IntArray, ...]
    limits: FloatArray

    @classmethod
    def of(cls, table: Table) -> Scores:
        """Fix the functions by the first rows of the data."""
        numbers = holds_numbers(table.schema)
        weights = table.weight_array()

        def fixed(j: int, x: FloatArray) -> Curve | IntArray:
            if numbers[j]:
                return normal_curve(x, weights)
            return _with_indicators(x, weights, len(table.schema.labels[j]))

        found = each_column(fixed, table.values)
        curves = tuple(each for each in found if isinstance(each, tuple))
        states = tuple(each for each in found if not isinstance(each, tuple))
        units = Units.of(number_table(table)) if curves else Units(np.empty(0), np.empty(0))
        limits = np.tile([-np.inf, np.inf], (len(curves), 1))
        return cls(table.schema, units, curves, states, limits)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Scores)
            and self.schema == other.schema
            and self.units == other.units
            and _same_arrays(self.states, other.states)
            and all(map(_same_arrays, self.curves, other.curves))
            and np.array_equal(self.limits, other.limits)
        )

    def select(self, columns: IntArray) -> Scores:
        """Return the functions of some columns."""
        numbers, place = self.numbers[columns], self.place[columns]
        return Scores(
            self.schema.select(columns),
            self.units.select(place[numbers]),
            tuple(self.curves[p] for p in place[numbers]),
            tuple(self.states[p] for p in place[~numbers]),
            self.limits[place[numbers]],
        )

    # Where things are -----------------------------------------------------------------------

    @cached_property
    def numbers(self) -> BoolArray:
        """Whether each column holds numbers."""
        return holds_numbers(self.schema)

    @cached_property
    def place(self) -> IntArray:
        """The place of each column among those of numbers, or among those of states."""
        return np.where(self.numbers, np.cumsum(self.numbers), np.cumsum(~self.numbers)) - 1

    @cached_property
    def starts(self) -> IntArray:
        """Where the functions of each column start, and where the last ends."""
        return starts_of(n_functions(self.schema))

    @cached_property
    def square_starts(self) -> IntArray:
        """Where the products of the functions of a column of numbers start; others have none."""
        return starts_of(np.where(self.numbers, N_SQUARES, 0))

    @cached_property
    def turn(self) -> FloatArray:
        """The combination of each column's functions that gives r its sign: z, or the codes.

        It is 0 for categories of more than two states, which have no direction.
        """
        codes = np.zeros(int(self.starts[-1]))
        codes[self.starts[:-1][self.numbers]] = 1.0
        for j in np.flatnonzero(has_direction(self.schema) & ~self.numbers):
            mine = self.states[self.place[j]]
            base = np.setdiff1d(np.arange(len(self.schema.labels[j])), mine)[:1]
            codes[self.starts[j] : self.starts[j] + mine.size] = mine - base
        return codes

    def without_outliers(self, table: Table) -> Table:
        """Return a table in which outliers are missing; the same if there are no limits."""
        limited = np.isfinite(self.limits).any(axis=1)
        if not limited.any():
            return table
        values = table.values.copy()
        for column in np.flatnonzero(self.numbers)[limited].tolist():
            x = values[:, column]
            x[beyond(x, *self.limits[self.place[column]])] = np.nan
        return Table(values, table.schema, table.weights)

    # Functions of rows ----------------------------------------------------------------------

    def functions(self, values: FloatArray) -> NDArray[np.float32]:
        """Return the functions of rows of values, one line each; 0 where missing."""
        starts = self.starts
        out = np.zeros((int(starts[-1]), len(values)), np.float32)
        each_column(lambda j, x: self._fill(j, x, out[starts[j] : starts[j + 1]]), values)
        return out

    def _fill(self, column: int, x: FloatArray, out: NDArray[np.float32]) -> None:
        place = self.place[column]
        if self.numbers[column]:
            out[0] = normal_score(x, *self.curves[place])
            for power in range(1, N_SCORES):
                np.multiply(out[0], out[power - 1], out=out[power])
            return
        for line, state in zip(out, self.states[place], strict=False):
            np.equal(x, state, out=line)


def squares_of(z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the products of the functions of each column of numbers, given z: z², z³ and z⁴."""
    out = np.empty((len(z), N_SQUARES, z.shape[1]), np.float32)
    np.multiply(z, z, out=out[:, 0])
    for power in range(1, N_SQUARES):
        np.multiply(out[:, power - 1], z, out=out[:, power])
    return out.reshape(-1, z.shape[1])


def each_column(function: Callable[[int, FloatArray], Found], values: FloatArray) -> list[Found]:
    """Return what a function gives for every column, called with its number and its values.

    Columns are copied some at a time: one by one every cell would be fetched on its own.
    """

    def run(part: tuple[int, int]) -> list[Found]:
        lines = np.ascontiguousarray(values[:, slice(*part)].T)
        return [function(j, line) for j, line in enumerate(lines, part[0])]

    return list(chain(*threads.run(run, threads.split(values.shape[1], 16))))


def number_table(table: Table) -> Table:
    """Return the columns of numbers of a mixed table as a Gaussian one."""
    columns = np.flatnonzero(holds_numbers(table.schema))
    names = [table.names[j] for j in columns]
    return Table(table.values[:, columns], Schema.gaussian(names), table.weights)


def state_table(table: Table) -> Table:
    """Return the columns of states of a mixed table as a discrete one."""
    columns = np.flatnonzero(~holds_numbers(table.schema))
    names, labels = zip(*((table.names[j], table.schema.labels[j]) for j in columns), strict=True)
    codes = np.empty((table.n_rows, columns.size), np.int32)
    for start in range(0, table.n_rows, 1_024):  # copies of all cells would take ten times as much
        some = table.values[start : start + 1_024, columns]
        codes[start : start + 1_024] = np.where(np.isnan(some), -1.0, some)
    return Table(codes, Schema(names, "discrete", labels), table.weights)


def _same_arrays(first: Sequence[AnyArray], second: Sequence[AnyArray]) -> bool:
    return len(first) == len(second) and all(map(np.array_equal, first, second))


def normal_curve(x: FloatArray, weights: FloatArray) -> Curve:
    """Return knots and Φ⁻¹ of their mid-ranks: the share of rows below plus half of the equal."""
    counted = ~np.isnan(x) & (weights > 0)
    order = np.argsort(x[counted])
    values = x[counted][order]
    if values.size == 0:
        return np.zeros(1), np.zeros(1)
    first = np.flatnonzero(np.diff(values, prepend=np.nan) != 0.0)
    values, weight = values[first], np.add.reduceat(weights[counted][order], first)
    ranks = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    if values.size > KNOTS:
        chosen = np.linspace(0, values.size - 1, KNOTS).round().astype(np.int64)
        values, ranks = values[chosen], ranks[chosen]
    return values, ndtri(ranks)


def beyond(x: FloatArray, low: float, high: float) -> BoolArray:
    """Whether each number is as low or as high as the limits."""
    return np.asarray((x <= low) | (x >= high))


def normal_score(x: FloatArray, knots: FloatArray, heights: FloatArray) -> FloatArray:
    """Return normal scores, 0 where missing; they grow by the logarithm outside the knots."""
    order = np.argsort(x)  # neighbors are found from each other, three times as fast
    z = np.empty(x.size)
    z[order] = np.interp(x[order], knots, heights)
    low, high = knots[0], knots[-1]
    width = high - low if high > low else 1.0
    for side, outside in ((-1.0, x < low), (1.0, x > high)):
        if outside.any():
            z[outside] += side * np.log1p(side * (x[outside] - (low if side < 0 else high)) / width)
    z[np.isnan(x)] = 0.0
    return np.asarray(z)


def _with_indicators(codes: FloatArray, weights: FloatArray, n_states: int) -> IntArray:
    """Return the most frequent states but the first of them, ascending."""
    present = ~np.isnan(codes)
    counts = np.bincount(
        codes[present].astype(np.int64), weights[present], minlength=max(n_states, 2)
    )
    by_weight = np.argsort(-counts, kind="stable")
    return np.sort(by_weight[1:MOST_STATES])

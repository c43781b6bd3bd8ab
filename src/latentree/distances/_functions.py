"""What a column is where pairs of columns are compared: a few functions of its values.

====================  ======================================================
column                functions
====================  ======================================================
real (gaussian)       z = (x − shift)·scale
number (mixed)        its normal score z, and z²
number (copula)       z cut off at ±2 (for numbers), and z (for states)
states                the indicators of all states but one, the base
====================  ======================================================

The functions are fixed by the first part of the rows, so that sums over parts add up. Only the
space that the functions of a column span matters, not the functions themselves: another base state
or unit gives the same dependence. A new kind of column means a new list of functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from latentree._kernels import threads
from latentree.data import Schema, Table
from latentree.distances._arrays import places, starts_of
from latentree.typing import AnyArray, BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)

KNOTS = 1000
"""Normal scores are linear between so many quantiles at most."""

MOST_STATES = 16
"""So many states of a mixed column have a function of their own, the last for all that are left."""

N_SCORES = 2
"""z and z²: with more, pairs of mixed numbers get noisier than they get more dependent."""

BOUND = 2.0
"""Normal scores of a copula's numbers are cut off at ±2 before they are multiplied.

1 % of cells far outside have the scores beyond 2.6, and so 8 % of the variance: correlations of z
then have the noise of 82 % of the rows, those of bounded scores that of 88 %, and of 98 % in clean
data. 1.8 to 2 are the best bounds for such outliers.
"""

Curve = tuple[FloatArray, FloatArray]
"""Knots, and the normal scores at the knots."""

Found = TypeVar("Found")


def n_functions(schema: Schema) -> IntArray:
    """Return the number of functions of every column."""
    if schema.family == "gaussian":
        return np.ones(schema.n_columns, np.int64)
    if schema.family == "mixed":
        states = np.clip(schema.cardinalities, 2, MOST_STATES)
    else:
        states = np.maximum(schema.cardinalities, 1)
    return np.where(holds_numbers(schema), N_SCORES, states - 1)


def holds_numbers(schema: Schema) -> BoolArray:
    """Whether each column is of kind real or count."""
    return np.array([kind in ("real", "count") for kind in schema.kinds])


def has_direction(schema: Schema) -> BoolArray:
    """Whether low and high mean something in each column: numbers, ordered answers, two labels."""
    categories = np.array([kind == "category" for kind in schema.kinds])
    return np.asarray(~categories | (schema.cardinalities == 2))


def is_unordered(schema: Schema) -> BoolArray:
    """Whether each column is a category of three or more labels."""
    kinds = np.array([kind == "category" for kind in schema.kinds])
    return np.asarray(kinds & (schema.cardinalities > 2))


@dataclass(frozen=True, eq=False)
class Units:
    """Shift and scale of columns of numbers: z = (x − shift)·scale is what is summed.

    Any units give the same statistics; those near the means and spreads keep the digits.
    """

    shift: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, x: FloatArray) -> Units:
        """Return means and largest deviations of the columns of some rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            shift = x.sum(axis=0) / len(x)
            low, high = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
            if not np.isfinite(shift).all():  # gaps, or sums that overflow
                present = ~np.isnan(x)
                n = np.maximum(present.sum(axis=0), 1)
                shift = np.where(present, x / n, 0.0).sum(axis=0)
            spread = np.maximum(high - shift, shift - low)
        # |z| ≤ 1 on these rows. A spread within rounding of the mean is that of a constant column:
        # its magnitude is the unit then, so that z stays within rounding of 0.
        usual = (spread > 4 * _EPS * np.abs(shift)) & np.isfinite(spread)
        return cls(shift, 1.0 / np.where(usual, spread, np.maximum(np.abs(shift), 1.0)))

    @classmethod
    def plain(cls, m: int) -> Units:
        """Return the units in which numbers are taken as they are."""
        return cls(np.zeros(m), np.ones(m))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and (
            np.array_equal(self.shift, other.shift) and np.array_equal(self.scale, other.scale)
        )

    def select(self, columns: IntArray) -> Units:
        """Return the units of some columns."""
        return Units(self.shift[columns], self.scale[columns])


@dataclass(frozen=True, eq=False)
class Functions:
    """How every column becomes functions, which are laid end to end.

    Attributes
    ----------
    schema : Schema
        Of the columns.
    units : Units
        In which the moments of numbers are summed; of columns of states they mean nothing.
    state : array of int
        The state of which each function is the indicator; −1 for functions of numbers.
    curves : tuple
        For each column of numbers its knots and the normal scores there, None for other columns;
        empty if no column is scored.
    limits : array of shape (n_columns, 2)
        Numbers as low as the first or as high as the second are outliers; see ``_outliers``.
    """

    schema: Schema
    units: Units
    state: IntArray
    curves: tuple[Curve | None, ...]
    limits: FloatArray

    @classmethod
    def of(cls, table: Table) -> Functions:
        """Fix the functions by the first rows of the data."""
        schema = table.schema
        if schema.family == "gaussian":
            return cls.of_schema(schema, Units.of(table.values))
        plain = cls.of_schema(schema, Units.plain(schema.n_columns))
        if not schema.is_mixed:
            return plain
        weights, starts = table.weight_array(), plain.starts
        state = plain.state.copy()

        def fixed(j: int, x: FloatArray) -> Curve | None:
            if plain.is_number[j]:
                return normal_curve(x, weights)
            if schema.family == "mixed":
                state[starts[j] : starts[j + 1]] = _without_base(
                    x, weights, schema.cardinalities[j]
                )
            return None

        curves = tuple(each_column(fixed, table.values))
        units = Units.plain(schema.n_columns)
        numbers = np.flatnonzero(plain.is_number)
        if numbers.size:
            own = Units.of(table.values[:, numbers])
            units.shift[numbers], units.scale[numbers] = own.shift, own.scale
        return replace(plain, units=units, state=state, curves=curves)

    @classmethod
    def of_schema(cls, schema: Schema, units: Units) -> Functions:
        """Return functions that no rows are needed for; of states, the first one is the base."""
        widths, m = n_functions(schema), schema.n_columns
        state = places(np.arange(m), starts_of(widths)) - np.repeat(starts_of(widths)[:-1], widths)
        state = np.where(np.repeat(holds_numbers(schema), widths), -1, state + 1)
        return cls(schema, units, state, (), np.tile([-np.inf, np.inf], (m, 1)))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Functions)
            and self.schema == other.schema
            and self.units == other.units
            and self.has_curves_of(other)
        )

    def has_curves_of(self, other: Functions) -> bool:
        """Whether the functions are the same but for units."""
        return self is other or (
            np.array_equal(self.state, other.state)
            and np.array_equal(self.limits, other.limits)
            and len(self.curves) == len(other.curves)
            and all(map(_are_equal, self.curves, other.curves))
        )

    def select(self, columns: IntArray) -> Functions:
        """Return the functions of some columns."""
        return Functions(
            self.schema.select(columns),
            self.units.select(columns),
            self.state[places(columns, self.starts)],
            tuple(self.curves[j] for j in columns) if self.curves else (),
            self.limits[columns],
        )

    # Where things are -----------------------------------------------------------------------

    @cached_property
    def is_number(self) -> BoolArray:
        """Whether each column holds numbers."""
        return holds_numbers(self.schema)

    @cached_property
    def starts(self) -> IntArray:
        """Where the functions of each column start, and where the last ends."""
        return starts_of(n_functions(self.schema))

    @cached_property
    def square_starts(self) -> IntArray:
        """Where the products of the functions of a column of numbers start; others have none.

        Of copulas only that of the bounded score is needed.
        """
        n_squares = N_SCORES * (N_SCORES + 1) // 2 if self.schema.family == "mixed" else 1
        return starts_of(np.where(self.is_number, n_squares, 0))

    @cached_property
    def turn(self) -> FloatArray:
        """The combination of each column's functions that gives r its sign: z, or the codes.

        It is 0 for categories of more than two states, which have no direction.
        """
        widths = np.diff(self.starts)
        if not self.schema.is_mixed:  # of two states the second one has the function
            return np.repeat((widths == 1).astype(np.float64), widths)
        codes = np.zeros(self.state.size)
        codes[self.starts[:-1][self.is_number]] = 1.0
        for j in np.flatnonzero(has_direction(self.schema) & ~self.is_number):
            own = self.state[self.starts[j] : self.starts[j + 1]]
            base = np.setdiff1d(np.arange(own.size + 1), own)[:1]
            codes[self.starts[j] : self.starts[j + 1]] = own - base
        return codes

    def without_outliers(self, table: Table) -> Table:
        """Return a table in which outliers are missing; the same if there are no limits."""
        limited = np.flatnonzero(np.isfinite(self.limits).any(axis=1))
        if not limited.size:
            return table
        values = table.values.copy()
        for j in limited.tolist():
            values[beyond(values[:, j], *self.limits[j]), j] = np.nan
        return Table(values, table.schema, table.weights)

    # Functions of rows ----------------------------------------------------------------------

    def lines(self, values: FloatArray) -> AnyArray:
        """Return the functions of rows of mixed values, one line each; 0 where missing.

        Normal scores are known to a few digits: single precision is enough for mixed columns.
        """
        dtype = np.float32 if self.schema.family == "mixed" else np.float64
        out = np.zeros((self.state.size, len(values)), dtype)
        each_column(lambda j, x: self._fill(j, x, out[slice(*self.starts[j : j + 2])]), values)
        return out

    def _fill(self, column: int, x: FloatArray, out: AnyArray) -> None:
        curve = self.curves[column]
        if curve is None:
            for line, state in zip(out, self.state[self.starts[column] :], strict=False):
                np.equal(x, state, out=line)
            return
        z = normal_score(x, *curve)
        out[:] = (bounded(z), z) if self.schema.family == "copula" else (z, z * z)


def bounded(z: FloatArray) -> FloatArray:
    """Return normal scores cut off at ±2."""
    return np.clip(z, -BOUND, BOUND)


def each_column(function: Callable[[int, FloatArray], Found], values: FloatArray) -> list[Found]:
    """Return what a function gives for every column, called with its number and its values.

    Columns are copied some at a time: one by one every cell would be fetched on its own.
    """

    def run(part: tuple[int, int]) -> list[Found]:
        lines = np.ascontiguousarray(values[:, slice(*part)].T)
        return [function(j, line) for j, line in enumerate(lines, part[0])]

    return list(chain(*threads.run(run, threads.split(values.shape[1], 16))))


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


def _without_base(codes: FloatArray, weights: FloatArray, n_states: int) -> IntArray:
    """Return the most frequent states but the first of them, ascending."""
    present = ~np.isnan(codes)
    counts = np.bincount(
        codes[present].astype(np.int64), weights[present], minlength=max(n_states, 2)
    )
    by_weight = np.argsort(-counts, kind="stable")
    return np.sort(by_weight[1:MOST_STATES])


def _are_equal(first: Curve | None, second: Curve | None) -> bool:
    if first is None or second is None:
        return first is second
    return all(map(np.array_equal, first, second))

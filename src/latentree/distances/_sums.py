"""Sums over rows of columns of any kind, alone and in pairs, which add up over parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from latentree.data import Table
from latentree.distances._arrays import places, starts_of
from latentree.distances._functions import Functions, Units, each_column
from latentree.distances._lines import Lines, lines_of, standardized, sum_up
from latentree.distances._pair_sums import FunctionSums, PairSums, with_base
from latentree.typing import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)

SCALES = (1e-150, 1e150)
"""Standard deviations of columns: squares of others come near the limits of numbers, 1e±308."""


class Moments(NamedTuple):
    """Weighted sums of z = (x − shift)·scale of columns of numbers; NaN for columns of states.

    Attributes
    ----------
    first, squares : arrays
        Σ w·z and Σ w·z² over the rows in which a column is present.
    low, high : arrays
        Smallest and largest z of rows with positive weight.
    steps : array
        Smallest positive difference between two values x that stand in the same part; infinite
        where there are none, and where all columns are real.
    """

    first: FloatArray
    squares: FloatArray
    low: FloatArray
    high: FloatArray
    steps: FloatArray

    @classmethod
    def of(cls, table: Table, functions: Functions, z: FloatArray) -> Moments:
        """Sum over the rows of a table with the numbers z, of which gaps are set to 0."""
        out = np.full((5, table.n_columns), np.nan)
        numbers = functions.is_number
        if not numbers.any():
            return cls(*out)
        first, squares, low, high, steps = out
        w = table.weights
        counted = z if w is None or w.all() else z[w > 0]
        low[numbers] = np.fmin.reduce(counted, axis=0, initial=np.nan)
        high[numbers] = np.fmax.reduce(counted, axis=0, initial=np.nan)
        if table.has_missing:
            z[np.isnan(z)] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            first[numbers] = z.sum(axis=0) if w is None else w @ z
            squares[numbers] = np.einsum("ij,ij->j", z, z) if w is None else w @ (z * z)
        real = not functions.curves
        steps[numbers] = np.inf if real else _smallest_steps(table.values[:, numbers], w)
        return cls(*out)

    def plus(self, other: Moments) -> Moments:
        """Add the sums of other rows."""
        ways = np.add, np.add, np.fmin, np.fmax, np.minimum
        return Moments(*(way(*both) for way, *both in zip(ways, self, other, strict=True)))

    def select(self, columns: IntArray) -> Moments:
        """Return the sums of some columns."""
        return Moments(*(own[columns] for own in self))

    def shifted(self, a: FloatArray, b: FloatArray, weight: FloatArray) -> Moments:
        """Return the sums of a·z + b."""
        return Moments(
            a * self.first + b * weight,
            a * a * self.squares + 2.0 * a * b * self.first + b * b * weight,
            a * self.low + b,
            a * self.high + b,
            self.steps,
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of columns of any kind.

    Attributes
    ----------
    functions : Functions
        The functions of the columns that are summed in pairs.
    total : float
        Weight of all rows.
    gaps : array of int
        Number of missing cells of every column, whatever the weights of their rows.
    weight : array
        Weight of the rows in which each column is present.
    single : array
        Weight of the rows with each state of the columns of states, laid end to end.
    numbers : Moments
        Of the columns of numbers.
    pairs : PairSums or None
        Sums of the products of functions; None if only columns were summed.
    """

    functions: Functions
    total: float
    gaps: IntArray
    weight: FloatArray
    single: FloatArray
    numbers: Moments
    pairs: PairSums | None

    @classmethod
    def of(cls, table: Table, functions: Functions, pairs: bool = True) -> Sums:
        """Sum over the rows of a table, with or without the products of pairs."""
        z, weight = _numbers(table, functions), _column_weights(table)
        numbers = Moments.of(table, functions, z)
        lines: Sequence[Lines] = ()
        if pairs:
            lines = lines_of(table, functions, (z, FunctionSums(numbers.first, numbers.squares)))
        single = _states(table, functions, weight, lines)
        gaps, total = table.missing_counts, table.total_weight
        found = cls(functions, total, gaps, weight, single, numbers, None)
        if not pairs:
            return found
        is_real = table.family == "gaussian"
        one_thread = (
            threadpool_limits(1, "blas") if is_real and table.has_missing else nullcontext()
        )
        with one_thread, np.errstate(over="ignore", invalid="ignore"):
            found = replace(found, pairs=sum_up(lines, np.arange(table.n_columns)))
        return found._squares_from_products() if is_real and not table.has_missing else found

    def _squares_from_products(self) -> Sums:
        """Take squares from the products: rounded alike, a column correlates by 1 with itself."""
        assert self.pairs is not None
        squares = np.diagonal(self.pairs.cross).copy()
        side = FunctionSums(self.numbers.first, squares)
        pairs = replace(self.pairs, x=side, y=side)
        return replace(self, numbers=self.numbers._replace(squares=squares), pairs=pairs)

    @property
    def has_pairs(self) -> bool:
        """Whether products of pairs of columns are held."""
        return self.pairs is not None

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.gaps.any()

    def __add__(self, other: Sums) -> Sums:
        if other.functions.units != self.functions.units:
            other = other.in_units(self.functions.units)
        assert self.functions.has_curves_of(other.functions)
        both = self.pairs is not None and other.pairs is not None
        return Sums(
            self.functions,
            self.total + other.total,
            self.gaps + other.gaps,
            self.weight + other.weight,
            self.single + other.single,
            self.numbers.plus(other.numbers),
            self.pairs + other.pairs if both else None,  # type: ignore[operator]
        )

    def in_units(self, units: Units) -> Sums:
        """Return the same sums with another shift and scale of numbers: z' = a·z + b."""
        own = self.functions.units
        a, b = units.scale / own.scale, (own.shift - units.shift) * units.scale
        pairs = self.pairs
        if pairs is not None and self.functions.schema.family == "gaussian":
            pairs = pairs.shifted(a, b)
        functions = replace(self.functions, units=units)
        numbers = self.numbers.shifted(a, b, self.weight)
        return replace(self, functions=functions, numbers=numbers, pairs=pairs)

    def select(self, columns: IntArray) -> Sums:
        """Return the sums of some columns."""
        pairs = self.pairs
        return Sums(
            self.functions.select(columns),
            self.total,
            self.gaps[columns],
            self.weight[columns],
            self.single[places(columns, self.starts)],
            self.numbers.select(columns),
            None if pairs is None else pairs.select(columns, self.functions),
        )

    # What single columns say ----------------------------------------------------------------

    @cached_property
    def starts(self) -> IntArray:
        """Where the states of every column start, and where the last ends; numbers have none."""
        return starts_of(_n_states(self.functions))

    def of_column(self, column: int) -> FloatArray:
        """Weight of each state of a column of states."""
        return self.single[self.starts[column] : self.starts[column + 1]].copy()

    def column_weights(self) -> FloatArray:
        """Weight of the rows in which each column is present."""
        return self.weight.copy()

    def pair_weights(self) -> float | FloatArray:
        """Weight of the rows in which both of a pair count: one number without gaps."""
        assert self.pairs is not None
        return self.pairs.weight

    def is_empty(self) -> BoolArray:
        """Whether each column has no value in a row with positive weight."""
        is_number = self.functions.is_number
        return np.where(is_number, np.isnan(self.numbers.high), self.weight <= 0)

    def is_constant(self) -> BoolArray:
        """Whether each column has one value only, but for rounding."""
        units, low, high = self.functions.units, self.numbers.low, self.numbers.high
        # A few units in the last place of x, times scale: |x|·scale ≤ |z| + |shift|·scale.
        noise = np.maximum(np.abs(low), np.abs(high)) + np.abs(units.shift * units.scale)
        seen = np.concatenate([[0], np.cumsum(self.single > 0)])[self.starts]
        return np.where(self.functions.is_number, high - low <= 4 * _EPS * noise, np.diff(seen) < 2)

    def is_finite(self) -> BoolArray:
        """Whether the squares of each column could be summed, and its variance is a number."""
        with np.errstate(all="ignore"):
            spread = self.moments()[1]
        within = (spread <= SCALES[1]) & ((spread >= SCALES[0]) | (spread == 0.0))
        return np.asarray(~self.functions.is_number | (np.isfinite(self.numbers.squares) & within))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of columns of numbers; NaN for columns of states."""
        units = self.functions.units
        with np.errstate(invalid="ignore"):  # columns without any value
            mean, square = self.numbers.first / self.weight, self.numbers.squares / self.weight
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return units.shift + mean / units.scale, spread / units.scale

    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest values of columns of numbers; NaN for columns of states."""
        units = self.functions.units
        return (
            units.shift + self.numbers.low / units.scale,
            units.shift + self.numbers.high / units.scale,
        )

    @property
    def resolutions(self) -> FloatArray:
        """Smallest positive gap between values of columns of numbers; NaN for columns of states."""
        return self.numbers.steps

    # What pairs say -------------------------------------------------------------------------

    def tables(self, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        """Weight of every pair of states of some columns and of others: of all, by default."""
        assert self.pairs is not None
        widths = np.diff(self.functions.starts)
        columns = np.arange(widths.size) if columns is None else columns
        block = self.pairs.block(rows, columns, self.functions)
        return block.tables(starts_of(widths[rows]), starts_of(widths[columns]))

    def pair(self, a: int, b: int) -> FloatArray:
        """Weight of each pair of states of two columns."""
        return self.tables(np.array([a]), np.array([b]))

    def duplicates(self, r: FloatArray, rounding: float) -> list[tuple[int, int]]:
        """Pairs of equal columns, among those with r = 1."""
        first, second = np.nonzero(np.tril(r >= 1.0 - rounding, -1))
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        return [(b, a) for a, b in pairs if self._are_equal(a, b)]

    def _are_equal(self, a: int, b: int) -> bool:
        """Whether columns of one kind have the same moments; or the same states in all rows."""
        functions = self.functions
        if functions.schema.kinds[a] != functions.schema.kinds[b]:
            return False
        if functions.is_number[a]:
            mean, spread = self._moments
            near = 1e-9 * spread[a]
            return bool(abs(mean[a] - mean[b]) <= near and abs(spread[a] - spread[b]) <= near)
        assert self.pairs is not None
        both = self.pairs.select(np.array([a, b]), functions)
        states = [functions.state[slice(*functions.starts[j : j + 2])] for j in (a, b)]
        if not np.array_equal(states[0], states[1]):
            return False
        k = states[0].size
        # Σ w·f·g of the same indicators is Σ w·f where the columns never differ.
        same = np.diagonal(both.cross[k:, :k])
        x = both.x.spread(2).first
        return np.allclose(same, x[:k, 1], rtol=1e-9) and np.allclose(same, x[k:, 0], rtol=1e-9)

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return self.moments()


def sums_of_correlations(functions: Functions, r: FloatArray, n: float) -> Sums:
    """Return the sums of n rows of real columns with mean 0, variance 1 and these correlations."""
    one = np.ones(len(r))
    side = FunctionSums(0.0 * one, n * one)
    numbers = Moments(0.0 * one, n * one, -one, one, np.inf * one)
    gaps = np.zeros(len(r), np.int64)
    pairs = PairSums(n, n * r, side, side)
    return Sums(functions, n, gaps, n * one, np.empty(0), numbers, pairs)


def _numbers(table: Table, functions: Functions) -> FloatArray:
    """Return the columns of numbers in their units."""
    numbers = functions.is_number
    if numbers.all():
        return standardized(table.values, functions.units)
    if not numbers.any():
        return np.empty((table.n_rows, 0))
    columns = np.flatnonzero(numbers)
    return standardized(table.values[:, columns], functions.units.select(columns))


def _column_weights(table: Table) -> FloatArray:
    """Weight of the rows in which each column is present."""
    if table.weights is None:
        return table.n_rows - table.missing_counts.astype(np.float64)
    if not table.has_missing:
        return np.full(table.n_columns, table.total_weight)
    return np.asarray(table.weights @ ~table.missing_mask())


def _n_states(functions: Functions) -> IntArray:
    """Number of states of every column; a column without any value still has a place."""
    return np.where(functions.is_number, 0, np.maximum(functions.schema.cardinalities, 1))


def _states(
    table: Table, functions: Functions, weight: FloatArray, lines: Sequence[Lines]
) -> FloatArray:
    """Weight of the rows with each state of every column of states."""
    if table.is_sparse:
        each = np.repeat(table.weight_array(), np.diff(table.values.indptr))
        ones = np.bincount(table.values.indices, each, minlength=table.n_columns)
        return np.column_stack([table.total_weight - ones, ones]).ravel()
    if table.schema.is_coded and lines:
        first = np.sum([part.alone.first for part in lines], axis=0)
        return np.asarray(with_base(first[None], weight[None], functions.starts)[0])
    out = [np.empty(0)]
    for j in np.flatnonzero(~functions.is_number).tolist():
        codes, seen = table.values[:, j], table.present(np.array([j]))[:, 0]
        own = None if table.weights is None else table.weights[seen]
        width = max(len(table.schema.labels[j]), 1)
        out.append(np.bincount(codes[seen].astype(np.int64), own, width).astype(np.float64))
    return np.concatenate(out)


def _smallest_steps(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Smallest positive difference of two values of each column; infinite where all are equal."""
    counted = slice(None) if weights is None else weights > 0

    def step(_: int, x: FloatArray) -> float:
        x = x[counted]
        x = np.sort(x[~np.isnan(x)])
        if not x.size:
            return np.inf
        gaps = np.diff(x)
        # Values that differ by a few units in the last place are one value, unless a run of them
        # goes on, as at 10¹⁵ + z: then these units are what was recorded.
        rounding = 8 * _EPS * np.abs(x[1:])
        apart = gaps > rounding
        starts = np.flatnonzero(np.r_[True, apart])
        ends = np.r_[starts[1:] - 1, gaps.size]
        if np.any(x[ends] - x[starts] > rounding.max(initial=0.0)):
            return float(rounding.max())
        return float(gaps[apart].min(initial=np.inf))

    return np.array(each_column(step, values))

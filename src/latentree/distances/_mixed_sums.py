"""Sums over rows of columns of any kind: of single columns, and of products of their functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from latentree._kernels.distances import canonical as kernels
from latentree.data import Table
from latentree.distances._arrays import places, starts_of, sum_if_known
from latentree.distances._counting import common_rows, in_parts, ranges
from latentree.distances._real_sums import RealSums
from latentree.distances._scores import (
    N_SCORES,
    Scores,
    each_column,
    number_table,
    squares_of,
    state_table,
)
from latentree.distances._state_counts import StateCounts
from latentree.typing import BoolArray, FloatArray, IntArray

WEAKEST_OF_MANY = 0.5
"""r of several functions is at least this, in units of 1/√n: their noise hides what is below."""

CHUNK_ROWS = 16_384
"""Rows that are summed in single precision before the next are added."""

_EPS = float(np.finfo(np.float64).eps)

Answer = TypeVar("Answer", FloatArray, BoolArray)


# Products of functions --------------------------------------------------------------------------


class FunctionSums(NamedTuple):
    """Σ w·f of the functions of some columns, and Σ w·f·f' of those of each column of numbers.

    With gaps both are taken over the rows in which another column is present, too: one column of
    an array for each other column.
    """

    first: FloatArray
    second: FloatArray

    def plus(self, other: FunctionSums) -> FunctionSums:
        """Add the sums of other rows."""
        return FunctionSums(self.first + other.first, self.second + other.second)

    def spread(self, n_others: int) -> FunctionSums:
        """Return sums without gaps in the form that they have with gaps, as views."""
        if self.first.ndim == 2:
            return self
        first, second = (np.broadcast_to(s[:, None], (s.size, n_others)) for s in self)
        return FunctionSums(first, second)


@dataclass(frozen=True, eq=False)
class OwnProducts:
    """Σ w·f·f' of the functions of some columns with each other.

    Scores and indicators are summed apart, since indicators are counted quicker, and brought
    together once all parts are added.

    Attributes
    ----------
    is_indicator : array of bool
        Which functions are indicators of states.
    scores : array
        Those that are none (rows) with all functions.
    indicators : array
        Indicators with each other; only the lower triangle counts.
    """

    is_indicator: BoolArray
    scores: FloatArray | NDArray[np.float32]
    indicators: FloatArray | NDArray[np.uint32]

    def __add__(self, other: OwnProducts) -> OwnProducts:
        scores = np.add(self.scores, other.scores, dtype=np.float64)
        return OwnProducts(self.is_indicator, scores, self.indicators + other.indicators)

    def select(self, functions: IntArray) -> OwnProducts:
        """Return the products of some functions."""
        kept = self.is_indicator[functions]
        place = np.where(self.is_indicator, np.cumsum(self.is_indicator), 0) - 1
        of_score = np.cumsum(~self.is_indicator) - 1
        mine = place[functions[kept]]
        counts = self.indicators[np.maximum.outer(mine, mine), np.minimum.outer(mine, mine)]
        return OwnProducts(kept, self.scores[np.ix_(of_score[functions[~kept]], functions)], counts)

    def rows(self, functions: slice) -> FloatArray:
        """Return the products of a range of functions with those up to its end; the lower triangle.

        All rows together would take as much memory as all products do already.
        """
        out = np.empty((functions.stop - functions.start, functions.stop))
        kernels.assemble_products(
            self.is_indicator, self.scores, self.indicators, functions.start, out
        )
        return out


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums of the functions of some columns (x), of others (y), and of their products.

    Attributes
    ----------
    weight : float or array of shape (a, b)
        Σ w: one number without gaps.
    products : array or OwnProducts
        Σ w·x·y for every pair of functions.
    x, y : FunctionSums
        Sums of single columns.
    """

    weight: float | FloatArray
    products: FloatArray | OwnProducts
    x: FunctionSums
    y: FunctionSums

    @classmethod
    def of(cls, table: Table, scores: Scores) -> ScoreSums:
        """Sum over the rows of a table all columns with all."""
        gaps = table.has_missing
        return sum_up(
            ColumnFunctions.of(table.rows(*rows), scores, gaps).sums()
            for rows in ranges(table.n_rows, CHUNK_ROWS)
        )

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not isinstance(self.weight, np.ndarray)

    def cross(self, functions: slice) -> FloatArray:
        """Σ w·x·y of a range of functions of x. Of columns with themselves as ``OwnProducts``."""
        own = self.products
        return own.rows(functions) if isinstance(own, OwnProducts) else own[functions]

    def __add__(self, other: ScoreSums) -> ScoreSums:
        a, b = self, other
        if a.complete != b.complete:
            m = len(np.atleast_1d(b.weight if a.complete else a.weight))
            a, b = a.spread(m), b.spread(m)
        x = a.x.plus(b.x)
        y = x if a.y is a.x else a.y.plus(b.y)
        return ScoreSums(a.weight + b.weight, a.products + b.products, x, y)  # type: ignore[operator]

    def spread(self, m: int) -> ScoreSums:
        """Return the sums of m columns with themselves in the form that they have with gaps."""
        if not self.complete:
            return self
        assert self.y is self.x
        side = self.x.spread(m)
        return ScoreSums(np.full((m, m), self.weight), self.products, side, side)

    def select(self, columns: IntArray, starts: IntArray, square_starts: IntArray) -> ScoreSums:
        """Return the sums of some columns of one set with itself."""
        assert isinstance(self.products, OwnProducts)
        functions, squares = (places(columns, s) for s in (starts, square_starts))
        side = FunctionSums(self.x.first[functions], self.x.second[squares])
        weight = self.weight
        if isinstance(weight, np.ndarray):
            weight = weight[np.ix_(columns, columns)]
            side = FunctionSums(side.first[:, columns], side.second[:, columns])
        return ScoreSums(weight, self.products.select(functions), side, side)


def sum_up(parts: Iterable[ScoreSums]) -> ScoreSums:
    """Add the sums of all parts, in order."""
    return reduce(operator.add, parts)


@dataclass(frozen=True, eq=False)
class ColumnFunctions:
    """Functions of some columns of rows in single precision, one line each.

    Attributes
    ----------
    functions : array
        Functions of all columns; 0 where a cell is missing.
    present : array or None
        1 where a cell is present, one line a column; None without gaps.
    weights : array or None
        Weights of the rows.
    is_indicator : array of bool
        Which functions are indicators of states.
    """

    functions: NDArray[np.float32]
    present: NDArray[np.float32] | None
    weights: NDArray[np.float32] | None
    is_indicator: BoolArray

    @classmethod
    def of(cls, table: Table, scores: Scores, gaps: bool) -> ColumnFunctions:
        """Return the functions of all columns of a table."""
        return cls(
            scores.functions(table.values),
            (~np.isnan(table.values.T)).astype(np.float32, order="C") if gaps else None,
            None if table.weights is None else table.weights.astype(np.float32),
            np.repeat(~scores.numbers, np.diff(scores.starts)),
        )

    def rows(self, start: int, stop: int) -> ColumnFunctions:
        """Return the functions of a range of rows."""
        some = slice(start, stop)
        return ColumnFunctions(
            self.functions[:, some],
            None if self.present is None else self.present[:, some],
            None if self.weights is None else self.weights[some],
            self.is_indicator,
        )

    def take(self, columns: IntArray, starts: IntArray) -> ColumnFunctions:
        """Return the functions of some columns."""
        functions = places(columns, starts)
        return ColumnFunctions(
            self.functions[functions],
            None if self.present is None else self.present[columns],
            self.weights,
            self.is_indicator[functions],
        )

    def weighted(self, lines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return lines times the weights of the rows."""
        return lines if self.weights is None else lines * self.weights

    def sums(self, other: ColumnFunctions | None = None) -> ScoreSums:
        """Sum over the rows, of these columns with others or, by default, with themselves."""
        y = self if other is None else other
        products: FloatArray | OwnProducts = (
            self._own_products()
            if other is None
            else np.asarray(self.weighted(self.functions) @ y.functions.T, np.float64)
        )
        weight: float | FloatArray = float(
            self.functions.shape[1] if self.weights is None else self.weights.sum()
        )
        if self.present is not None and y.present is not None:
            weight = np.asarray(self.weighted(self.present) @ y.present.T, np.float64)
        side = self._side(y.present)
        return ScoreSums(
            weight,
            products,
            side,
            side if other is None else y._side(self.present),
        )

    def _own_products(self) -> OwnProducts:
        """Return Σ w·f·f' of all functions.

        Without weights products of indicators are counts of rows: bits are four times as fast.
        """
        f, is_indicator = self.functions, self.is_indicator
        scores = self.weighted(f[~is_indicator]) @ f.T
        if self.weights is None:
            return OwnProducts(is_indicator, scores, common_rows(f, np.flatnonzero(is_indicator)))
        # Half the work of a general product; its upper triangle in Fortran's order is our lower.
        root = f[is_indicator] * np.sqrt(self.weights)
        counts = linalg.blas.ssyrk(1.0, root.T, trans=1).T if len(root) else np.zeros((0, 0))
        return OwnProducts(is_indicator, scores, np.asarray(counts, np.float64))

    def _side(self, present: NDArray[np.float32] | None) -> FunctionSums:
        """Return the sums of single columns, in the rows in which others are present."""
        second = [
            self._sums(squares_of(self.functions[some]), present)
            for some in np.array_split(self._scores, max(1, len(self._scores) // 64))
        ]
        return FunctionSums(self._sums(self.functions, present), np.concatenate(second))

    @property
    def _scores(self) -> IntArray:
        """Where the normal score z of each column of numbers is; z² follows it."""
        return np.flatnonzero(~self.is_indicator)[::N_SCORES]

    def _sums(self, lines: NDArray[np.float32], present: NDArray[np.float32] | None) -> FloatArray:
        if present is not None:
            return np.asarray(self.weighted(lines) @ present.T, np.float64)
        if self.weights is None:
            return np.asarray(lines.sum(axis=1, dtype=np.float64))
        return np.asarray(lines.astype(np.float64) @ self.weights)


# Columns of any kind ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MixedSums:
    """Sums of columns of any kind, which add up over parts.

    Attributes
    ----------
    scores : Scores
        The functions of the columns that are summed.
    numbers : RealSums or None
        Moments of the columns of kind real and count, in their order; None if there are none.
    steps : array
        Smallest positive difference between two values of each of these columns that stand in the
        same part; infinite where there are none.
    states : StateCounts or None
        Weight of the states of the columns of kind ordered and category, in their order.
    total : float
        Weight of all rows.
    gaps : array of int
        Number of missing cells of every column.
    pairs : ScoreSums or None
        Sums of the products of functions; None if only columns were summed.
    """

    scores: Scores
    numbers: RealSums | None
    steps: FloatArray
    states: StateCounts | None
    total: float
    gaps: IntArray
    pairs: ScoreSums | None

    @classmethod
    def of(cls, table: Table, scores: Scores, pairs: bool = True) -> MixedSums:
        """Sum over the rows of a table, with or without the products of pairs."""
        is_number = scores.numbers
        numbers, steps = None, np.empty(0)
        if is_number.any():
            real = number_table(table)
            numbers, steps = RealSums.of(real, scores.units, pairs=False), _smallest_steps(real)
        states = None if is_number.all() else StateCounts.of(state_table(table), pairs=False)
        products = ScoreSums.of(table, scores) if pairs else None
        return cls(
            scores, numbers, steps, states, table.total_weight, table.missing_counts, products
        )

    @property
    def has_pairs(self) -> bool:
        """Whether products of pairs of columns are held."""
        return self.pairs is not None

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.gaps.any()

    def __add__(self, other: MixedSums) -> MixedSums:
        assert self.scores == other.scores
        return MixedSums(
            self.scores,
            sum_if_known(self.numbers, other.numbers),
            np.minimum(self.steps, other.steps),
            sum_if_known(self.states, other.states),
            self.total + other.total,
            self.gaps + other.gaps,
            sum_if_known(self.pairs, other.pairs),
        )

    def select(self, columns: IntArray) -> MixedSums:
        """Return the sums of some columns."""
        scores = self.scores
        is_number, place = scores.numbers[columns], scores.place[columns]
        real, coded = place[is_number], place[~is_number]
        pairs = self.pairs
        if pairs is not None:
            pairs = pairs.select(columns, scores.starts, scores.square_starts)
        return MixedSums(
            scores.select(columns),
            self.numbers.select(real) if self.numbers is not None and real.size else None,
            self.steps[real],
            self.states.select(coded) if self.states is not None and coded.size else None,
            self.total,
            self.gaps[columns],
            pairs,
        )

    # What single columns say ----------------------------------------------------------------

    def _each(self, ask: Callable[[RealSums | StateCounts], Answer], out: Answer) -> Answer:
        """Ask the sums of numbers and those of states; set ``out``, which has an entry a column."""
        is_number = self.scores.numbers
        if self.numbers is not None:
            out[is_number] = ask(self.numbers)
        if self.states is not None:
            out[~is_number] = ask(self.states)
        return out

    def column_weights(self) -> FloatArray:
        """Weight of the rows in which each column is present."""
        return self._each(lambda sums: sums.column_weights(), np.empty(self.gaps.size))

    def pair_weights(self) -> float | FloatArray:
        """Weight of the rows in which both of a pair are present: one number without gaps."""
        assert self.pairs is not None
        return self.total if self.complete else self.pairs.weight

    def is_empty(self) -> BoolArray:
        """Whether each column has no value in a row with positive weight."""
        return self._each(lambda sums: sums.is_empty(), np.empty(self.gaps.size, bool))

    def is_constant(self) -> BoolArray:
        """Whether each column has one value only, but for rounding."""
        return self._each(lambda sums: sums.is_constant(), np.empty(self.gaps.size, bool))

    def is_finite(self) -> BoolArray:
        """Whether the squares of each column could be summed."""
        return self._each(lambda sums: sums.is_finite(), np.empty(self.gaps.size, bool))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of columns of numbers; NaN for columns of states."""
        mean, spread = (np.full(self.gaps.size, np.nan) for _ in range(2))
        if self.numbers is not None:
            is_number = self.scores.numbers
            mean[is_number], spread[is_number] = self.numbers.moments()
        return mean, spread

    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest values of columns of numbers; NaN for columns of states."""
        low, high = (np.full(self.gaps.size, np.nan) for _ in range(2))
        if self.numbers is not None:
            units, is_number = self.scores.units, self.scores.numbers
            low[is_number] = units.shift + self.numbers.low / units.scale
            high[is_number] = units.shift + self.numbers.high / units.scale
        return low, high

    @property
    def resolutions(self) -> FloatArray:
        """Smallest positive gap between values of columns of numbers; NaN for columns of states."""
        out = np.full(self.gaps.size, np.nan)
        out[self.scores.numbers] = self.steps
        return out

    def of_column(self, column: int) -> FloatArray:
        """Weight of each state of a column of states."""
        assert self.states is not None
        assert not self.scores.numbers[column]
        return self.states.of_column(int(self.scores.place[column]))

    def duplicates(self, r: FloatArray, rounding: float) -> list[tuple[int, int]]:
        """Pairs of columns of one kind with the same moments or counts, among those with r = 1."""
        first, second = np.nonzero(np.tril(r >= 1.0 - rounding, -1))
        return [
            (b, a)
            for a, b in zip(first.tolist(), second.tolist(), strict=True)
            if self.scores.schema.kinds[a] == self.scores.schema.kinds[b] and self._agree(a, b)
        ]

    def _agree(self, a: int, b: int) -> bool:
        if self.scores.numbers[a]:
            mean, spread = self._moments
            near = 1e-9 * spread[a]
            return bool(abs(mean[a] - mean[b]) <= near and abs(spread[a] - spread[b]) <= near)
        x, y = self.of_column(a), self.of_column(b)
        return x.size == y.size and bool(np.allclose(x, y, rtol=1e-9))

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return self.moments()

    # What pairs say -------------------------------------------------------------------------

    @cached_property
    def layout(self) -> FunctionIndex:
        """How the functions of the columns are read."""
        scores = self.scores
        weights = np.full(int(scores.starts[-1]), np.inf)
        for j in np.flatnonzero(~scores.numbers).tolist():
            mine = scores.states[scores.place[j]]
            counts = np.append(self.of_column(j), [0.0, 0.0])  # of columns of one or no state
            weights[scores.starts[j] : scores.starts[j + 1]] = counts[mine]
        into, widths = join_rare(weights, np.sqrt(self.total), scores.starts, needed=1)
        return FunctionIndex(scores.starts, scores.square_starts, into, widths, scores.turn)

    def correlations(self) -> FloatArray:
        """Return r of all pairs; only the lower triangle counts."""
        assert self.pairs is not None
        m = self.gaps.size
        out = np.eye(m)
        read_moments(self.pairs, self.layout, self.layout, np.arange(m), out)
        return out


class FunctionIndex(NamedTuple):
    """How the functions of columns are read, see the kernel."""

    starts: IntArray
    squares: IntArray
    into: IntArray
    widths: IntArray
    turn: FloatArray

    def select(self, columns: IntArray) -> FunctionIndex:
        """Return the layout of some columns."""
        functions = places(columns, self.starts)
        return FunctionIndex(
            starts_of(np.diff(self.starts)[columns]),
            starts_of(np.diff(self.squares)[columns]),
            self.into[functions],
            self.widths[columns],
            self.turn[functions],
        )


def join_rare(
    weights: FloatArray, least: float, starts: IntArray, needed: int
) -> tuple[IntArray, IntArray]:
    """Number the states of each column, the rare ones as one; return how many there are, too.

    Two states of fewer than √n rows are expected together in less than one row: one coincidence
    would look like dependence. Where the rare states of a column are few even together, and
    ``needed`` others are left, they get the number −1.
    """
    owner = np.repeat(np.arange(starts.size - 1), np.diff(starts))  # the column of each state
    rare = weights < least
    together = np.bincount(owner, np.where(rare, weights, 0.0))
    # Of each column either all rare states are dropped, or all of them count as one.
    dropped = rare & ((together < least) & (np.bincount(owner, ~rare) >= needed))[owner]
    joined = rare & ~dropped
    # The first rare state of a column gets a number of its own; the others take it over.
    _, firsts = np.unique(owner[joined], return_index=True)
    counted = ~rare
    counted[np.flatnonzero(joined)[firsts]] = True
    number = np.cumsum(counted) - 1
    own = np.zeros(starts.size - 1, np.int64)  # the number of the rare states of each column
    own[owner[joined][firsts]] = number[np.flatnonzero(joined)[firsts]]
    number[joined] = own[owner[joined]]
    widths = np.bincount(owner, counted).astype(np.int64)
    number -= starts_of(widths)[owner]  # from numbers of all states to those within a column
    number[dropped] = -1
    return number, widths


def read_moments(
    sums: ScoreSums, x: FunctionIndex, y: FunctionIndex, limits: IntArray, out: FloatArray
) -> None:
    """Set ``out`` to r of column i of x with the first ``limits[i]`` columns of y."""
    a, b = out.shape
    weight = np.broadcast_to(np.asarray(sums.weight, np.float64), (a, b))
    left, right = sums.x.spread(b), sums.y.spread(a)
    # Without gaps a column has the same covariances in all pairs.
    alone = sums.complete

    def fill(part: slice) -> None:
        functions = slice(x.starts[part.start], x.starts[part.stop])
        squares = slice(x.squares[part.start], x.squares[part.stop])
        kernels.correlations_of_moments(
            sums.cross(functions), left.first[functions], left.second[squares],
            right.first[:, part], right.second[:, part], weight[part],
            *x.select(np.arange(part.start, part.stop)), *y,
            limits[part], WEAKEST_OF_MANY, alone, out[part],
        )  # fmt: skip

    in_parts(a, fill)


def _smallest_steps(table: Table) -> FloatArray:
    """Smallest positive difference of two values of each column; infinite where all are equal."""
    counted = slice(None) if table.weights is None else table.weights > 0

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

    return np.array(each_column(step, table.values))

"""Counts of states, pairs of states and distinct rows, which add up over parts of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from latentree._kernels.distances.distinct import number_rows
from latentree.data import Schema, Table, part_cells
from latentree.distances._arrays import places, starts_of
from latentree.distances._counting import pair_counts
from latentree.typing import AnyArray, BoolArray, FloatArray, Index, IntArray

if TYPE_CHECKING:
    from scipy import sparse

FEW_DISTINCT = 0.25
"""Distinct rows take the place of all rows when they are at most this share of them."""


@dataclass(frozen=True, eq=False)
class StateCounts:
    """Weight of the rows with each state of every column, and with every pair of states.

    States of all columns are laid end to end; those of column j are ``starts[j]`` to
    ``starts[j + 1]``. As long as nothing is missing, pairs with the first state of a column follow
    from the others and are not held.

    Attributes
    ----------
    single : array
        Weight of the rows with each state.
    total : float
        Weight of all rows.
    gaps : array of int
        Number of missing cells of every column, whatever the weights of their rows.
    pairs : array, optional
        Weight of the rows with each pair of the states that are held; None if not counted.
    """

    single: FloatArray
    starts: IntArray
    total: float
    gaps: IntArray
    pairs: FloatArray | None
    all_held: bool = False

    @classmethod
    def of(cls, table: Table, pairs: bool = True) -> StateCounts:
        """Count the rows of a table, with or without pairs."""
        widths = state_widths(table.schema)
        starts = starts_of(widths)
        gaps, total = table.missing_counts, table.total_weight
        if not pairs:
            return cls(_single(table, widths), starts, total, gaps, None)
        all_held = bool(gaps.any())
        counts = pair_counts(table, widths, 0 if all_held else 1)
        single = np.empty(int(starts[-1]))
        found = cls(single, starts, total, gaps, counts, all_held)
        single[found.held] = np.diagonal(counts)
        if not all_held:  # the first state has the rows that no other state has
            single[starts[:-1]] = total - _grouped(single[found.held], widths - 1, axis=0)
        return found

    @property
    def has_pairs(self) -> bool:
        """Whether counts of pairs of states are held."""
        return self.pairs is not None

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.gaps.any()

    @property
    def widths(self) -> IntArray:
        """Number of states of every column."""
        return np.diff(self.starts)

    @cached_property
    def held(self) -> BoolArray:
        """Which states have a row and a column in ``pairs``."""
        held = np.ones(self.single.size, bool)
        if not self.all_held:
            held[self.starts[:-1]] = False
        return held

    @cached_property
    def _place(self) -> IntArray:
        """Where in ``pairs`` the states are that are held."""
        return np.cumsum(self.held) - 1

    def __add__(self, other: StateCounts) -> StateCounts:
        a, b = self, other
        if a.all_held != b.all_held:
            a, b = a._with_all(), b._with_all()
        return StateCounts(
            a.single + b.single,
            a.starts,
            a.total + b.total,
            a.gaps + b.gaps,
            None if a.pairs is None or b.pairs is None else a.pairs + b.pairs,
            a.all_held,
        )

    def _with_all(self) -> StateCounts:
        """Return the counts with pairs of all states, as they are where cells are missing."""
        if self.all_held or self.pairs is None:
            return self
        pairs = self.table(np.arange(self.starts.size - 1))
        return replace(self, pairs=pairs, all_held=True)

    def select(self, columns: IntArray) -> StateCounts:
        """Return the counts of some columns."""
        states = places(columns, self.starts)
        starts = starts_of(self.widths[columns])
        pairs = self.pairs
        if pairs is not None:
            kept = self._place[states[self.held[states]]]
            pairs = pairs[np.ix_(kept, kept)]
        return StateCounts(
            self.single[states], starts, self.total, self.gaps[columns], pairs, self.all_held
        )

    def table(self, rows: IntArray) -> FloatArray:
        """Weight of every pair of states of some columns (rows) and of all columns."""
        assert self.pairs is not None
        mine = places(rows, self.starts)
        if self.all_held:
            return self.pairs[mine]
        # What is not held follows: J(x, 0) = P(x) − Σ_{y > 0} J(x, y), and the other way round.
        known, held = self.held[mine], self.held
        inner = self.pairs[self._place[mine[known]]]
        lines = np.empty((inner.shape[0], self.single.size))
        lines[:, held] = inner
        rest = _grouped(inner, self.widths - 1, axis=1)
        lines[:, ~held] = self.single[mine[known], None] - rest
        out = np.empty((mine.size, self.single.size))
        out[known] = lines
        out[~known] = self.single - _grouped(lines, self.widths[rows] - 1, axis=0)
        return out

    def pair(self, a: int, b: int) -> FloatArray:
        """Weight of each pair of states of two columns."""
        both = self.select(np.array([a, b]))
        return both.table(np.array([0]))[:, both.starts[1] :]

    def of_column(self, column: int) -> FloatArray:
        """Weight of each state of a column."""
        return self.single[self.starts[column] : self.starts[column + 1]].copy()

    # What follows ---------------------------------------------------------------------------

    def column_weights(self) -> FloatArray:
        """Weight of the rows in which each column is present."""
        return np.add.reduceat(self.single, self.starts[:-1])

    def pair_weights(self) -> float | FloatArray:
        """Weight of the rows in which both of a pair are present: one number without gaps."""
        if self.complete:
            return self.total
        assert self.pairs is not None
        over_columns = np.add.reduceat(self.pairs, self.starts[:-1], axis=1)
        return np.add.reduceat(over_columns, self.starts[:-1], axis=0)

    def is_empty(self) -> BoolArray:
        """Whether each column has no value in a row with positive weight."""
        return self.column_weights() <= 0

    def is_constant(self) -> BoolArray:
        """Whether each column has one value only."""
        seen = (self.single > 0).astype(np.int64)
        return np.add.reduceat(seen, self.starts[:-1]) < 2

    def is_finite(self) -> BoolArray:
        """Whether each column could be summed: counts always can."""
        return np.ones(self.starts.size - 1, bool)

    def duplicates(self, r: FloatArray, rounding: float) -> list[tuple[int, int]]:
        """Pairs of columns with the same states in all rows, among those whose |r| is 1."""
        candidates = np.argwhere(np.tril(np.abs(r) >= 1.0 - rounding, -1)).tolist()
        return [(b, a) for a, b in candidates if self._are_equal(a, b)]

    def _are_equal(self, a: int, b: int) -> bool:
        joint = self.pair(a, b)
        return joint.shape[0] == joint.shape[1] and not (joint - np.diag(np.diag(joint))).any()


def _grouped(array: FloatArray, sizes: IntArray, axis: int) -> FloatArray:
    """Sum groups of so many entries along an axis; an empty group gives 0."""
    shape = list(array.shape)
    shape[axis] = sizes.size
    out = np.zeros(shape)
    filled = np.flatnonzero(sizes)
    if filled.size:
        starts = (np.cumsum(sizes) - sizes)[filled]
        index: list[Index] = [slice(None)] * array.ndim
        index[axis] = filled
        out[tuple(index)] = np.add.reduceat(array, starts, axis=axis)
    return out


def _single(table: Table, widths: IntArray) -> FloatArray:
    """Weight of the rows with each state of every column."""
    if table.is_sparse:
        each = (
            None
            if table.weights is None
            else np.repeat(table.weights, np.diff(table.values.indptr))
        )
        ones = np.bincount(table.values.indices, each, minlength=table.n_columns)
        return np.column_stack([table.total_weight - ones, ones]).ravel().astype(np.float64)
    weights = table.weights
    out = []
    for column, width in enumerate(widths):
        codes = table.values[:, column]
        seen = codes >= 0
        mine = None if weights is None else weights[seen]
        out.append(np.bincount(codes[seen], mine, minlength=width).astype(np.float64))
    return np.concatenate(out)


def state_widths(schema: Schema) -> IntArray:
    """Number of states of every column; a column without any value still has a place."""
    return np.maximum(schema.cardinalities, 1)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows of discrete data in the order of their first, and the weight of each.

    None of both once there were more of them than are worth keeping.
    """

    codes: AnyArray | None
    weights: FloatArray | None

    @staticmethod
    def most_cells() -> int:
        """Return how many cells distinct rows may have to be kept: as many as four parts."""
        return 4 * part_cells(is_coded=True)

    @classmethod
    def of(
        cls, table: Table, most: float = np.inf, columns: IntArray | None = None
    ) -> DistinctRows:
        """Find the distinct rows of a table, or of some of its columns, if at most so many.

        Of a sparse table only these are made dense.
        """
        if columns is None:
            columns = np.arange(table.n_columns)
        most = min(most, cls.most_cells() / max(columns.size, 1))
        if not table.is_sparse:
            return cls._distinct(table.values, table.weights, most, columns)
        values = table.values[:, columns]
        places, inverse = _by_their_ones(values)
        if places.size > most:
            return cls(None, None)
        sums = np.bincount(inverse, table.weight_array(), minlength=places.size)
        return cls(values[places].toarray(), np.asarray(sums, np.float64))

    @classmethod
    def _distinct(
        cls, codes: AnyArray, weights: FloatArray | None, most: float, columns: IntArray
    ) -> DistinctRows:
        ids, places = number_rows(codes, columns, int(min(most, len(codes))))
        if ids.size < len(codes):  # there are more than ``most``: nothing was numbered
            return cls(None, None)
        sums = np.bincount(ids, weights, minlength=places.size)
        return cls(codes[np.ix_(places, columns)], np.asarray(sums, np.float64))

    def __add__(self, other: DistinctRows) -> DistinctRows:
        if self.codes is None or other.codes is None:
            return DistinctRows(None, None)
        assert self.weights is not None
        assert other.weights is not None
        columns = np.arange(self.codes.shape[1])
        return self._distinct(
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.weights, other.weights]),
            self.most_cells() / max(columns.size, 1),
            columns,
        )


def has_few_distinct_rows(table: Table) -> bool:
    """Whether a first table has few distinct rows, so that those of all rows are worth counting."""
    return DistinctRows.of(table, FEW_DISTINCT * table.n_rows).codes is not None


def _by_their_ones(values: sparse.csr_array) -> tuple[IntArray, IntArray]:
    """Return the first of the rows with the same ones, and for each row which of these it is."""
    # Indices are sorted and without repetition, so that equal rows have equal bytes.
    ends, columns = values.indptr, values.indices
    number: dict[bytes, int] = {}
    inverse = np.empty(len(ends) - 1, np.int64)
    places: list[int] = []
    for row, (start, stop) in enumerate(pairwise(ends.tolist())):
        inverse[row] = number.setdefault(columns[start:stop].tobytes(), len(number))
        if len(number) > len(places):
            places.append(row)
    return np.array(places, np.int64), inverse

"""Counts of the states of discrete columns, and of the distinct rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.distances.distinct import number_rows
from latentree.data import Schema, Table
from latentree.distances._pairwise import state_counts
from latentree.typing import FloatArray

MOST_DISTINCT_CELLS = 1 << 26
"""Distinct rows are kept as long as they have no more cells than this."""

FEW_DISTINCT = 0.25
"""Distinct rows are worth looking for when a table has at most this share of them."""


@dataclass(frozen=True, eq=False)
class StateCounts:
    """Weight of the rows with every pair of states, the states of all columns laid end to end.

    The diagonal counts single states; rows in which either cell is missing do not count.
    """

    counts: FloatArray
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, table: Table) -> StateCounts:
        """Count the rows of a table."""
        return cls(state_counts(table), state_starts(table.schema))

    def __add__(self, other: StateCounts) -> StateCounts:
        return StateCounts(self.counts + other.counts, self.starts)

    def single(self, column: int) -> FloatArray:
        """Weight of each state of a column."""
        mine = slice(self.starts[column], self.starts[column + 1])
        return np.diagonal(self.counts)[mine].copy()

    def pair(self, a: int, b: int) -> FloatArray:
        """Weight of each pair of states of two columns."""
        first = slice(self.starts[a], self.starts[a + 1])
        return self.counts[first, self.starts[b] : self.starts[b + 1]].copy()

    def column_weights(self) -> FloatArray:
        """Weight of the rows in which each column is present."""
        return np.add.reduceat(np.diagonal(self.counts), self.starts[:-1])

    def pair_weights(self) -> FloatArray:
        """Weight of the rows in which both of a pair are present."""
        over_columns = np.add.reduceat(self.counts, self.starts[:-1], axis=1)
        return np.add.reduceat(over_columns, self.starts[:-1], axis=0)

    def joint(self, n_states: int) -> FloatArray:
        """Counts of shape (m, K, m, K); all columns have K states."""
        m = self.starts.size - 1
        return self.counts.reshape(m, n_states, m, n_states)


def state_starts(schema: Schema) -> NDArray[np.int64]:
    """Where the states of every column start; one entry more for the end."""
    widths = np.maximum(schema.cardinalities, 1)  # a column without any value still has a place
    return np.concatenate([[0], np.cumsum(widths)])


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows of discrete data in the order of their first, and the weight of each.

    None of both once there were more of them than are worth keeping.
    """

    codes: NDArray[Any] | None
    weights: FloatArray | None

    @classmethod
    def of(
        cls, table: Table, most: float = np.inf, columns: NDArray[np.int64] | None = None
    ) -> DistinctRows:
        """Find the distinct rows of a table, or of some of its columns, if at most so many.

        Of a sparse table only these are made dense.
        """
        if columns is None:
            columns = np.arange(table.n_columns)
        most = min(most, MOST_DISTINCT_CELLS / max(columns.size, 1))
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
        cls,
        codes: NDArray[Any],
        weights: FloatArray | None,
        most: float,
        columns: NDArray[np.int64],
    ) -> DistinctRows:
        ids, places = number_rows(codes, columns, int(min(most, len(codes))))
        if ids.size < len(codes):
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
            MOST_DISTINCT_CELLS / max(columns.size, 1),
            columns,
        )


def has_few_distinct_rows(table: Table) -> bool:
    """Whether it is worth looking for the distinct rows of data that begins with this table."""
    return DistinctRows.of(table, FEW_DISTINCT * table.n_rows).codes is not None


def _by_their_ones(values: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first of the rows with the same ones, and for each row which of these it is."""
    ends, columns = values.indptr, values.indices
    number: dict[bytes, int] = {}
    inverse = np.empty(len(ends) - 1, np.int64)
    places: list[int] = []
    for row, (start, stop) in enumerate(pairwise(ends.tolist())):
        inverse[row] = number.setdefault(columns[start:stop].tobytes(), len(number))
        if len(number) > len(places):
            places.append(row)
    return np.array(places, np.int64), inverse

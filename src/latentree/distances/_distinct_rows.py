"""The distinct rows of discrete data, and their weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from latentree._kernels.distances.distinct import number_rows
from latentree.data import Table, part_cells
from latentree.typing import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy import sparse

FEW_DISTINCT = 0.25
"""Distinct rows take the place of all rows when they are at most this share of them."""


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

"""The signed dependence of pairs of variables: what every pairwise statistic offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentree.data import Table, row_chunks
from latentree.typing import FloatArray, Index, IntArray

_CHUNK_CELLS = 1 << 26
_TILE = 1024
_EPS = float(np.finfo(np.float64).eps)


class Dependence(ABC):
    """The signed dependence r of pairs of variables, by blocks.

    Attributes
    ----------
    n_variables : int
        Number of variables.
    exponent : float
        c in the information distance −c·log|r|.
    precision : float
        1 / (n · variance of r) for an independent pair of n rows.
    """

    exponent: float = 1.0
    precision: float = 1.0
    tile: int = _TILE
    span: int = _TILE
    """Columns of the blocks that are cheapest when all pairs are wanted."""
    margin: float = 0.0
    """How far :meth:`quick_block` may be from the truth; 0 where there is nothing quicker."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.n_variables = table.n_columns

    @property
    def rounding(self) -> float:
        """How far from 1 rounding may leave |r| of a column and its copy."""
        return _EPS * max(64.0, self.table.n_rows / 8)

    @abstractmethod
    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return r of every pair of ``rows`` × ``columns``, as a new array."""

    @abstractmethod
    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return r of the pairs (first[p], second[p])."""

    def quick_block(self, rows: Index, columns: Index) -> NDArray[np.floating[Any]]:
        """Return r of every pair to within :attr:`margin`, as quickly as that goes."""
        return self.block(rows, columns)

    def counts(self, rows: Index, columns: Index) -> float | FloatArray:
        """Total weight of the rows that each pair is taken over: one number if all the same."""
        if not self.table.has_missing:
            return self.table.total_weight
        present, weighted = self._present
        return weighted[rows] @ present[columns].T

    def pair_counts(self, first: IntArray, second: IntArray) -> float | FloatArray:
        """Total weight of the rows of pairs: one number if all the same."""
        if not self.table.has_missing:
            return self.table.total_weight
        table, weights = self.table, self.table.weight_array()
        out = np.empty(first.size)
        for start, stop in ranges(first.size, max(1, _CHUNK_CELLS // (16 * table.n_rows))):
            both = table.present(first[start:stop]) & table.present(second[start:stop])
            out[start:stop] = weights @ both
        return out

    @cached_property
    def _present(self) -> tuple[FloatArray, FloatArray]:
        """Which cells are present, one row a variable; the same times the weights."""
        present = np.ascontiguousarray(~self.table.missing_mask().T, np.float64)
        return present, present if self.table.weights is None else present * self.table.weights

    def lower(self) -> FloatArray:
        """Return r of all pairs; only the lower triangle is meant."""
        m = self.n_variables
        out = np.zeros((m, m))
        for start, stop in ranges(m, self.tile):
            for first, last in ranges(stop, max(self.tile, self.span)):
                out[start:stop, first:last] = self.block(slice(start, stop), slice(first, last))
        return out

    def all_counts(self) -> float | FloatArray:
        """Return the counts of all pairs; one number if all the same."""
        return self.counts(slice(None), slice(None))

    def typical_count(self) -> float:
        """Return the mean total weight of the rows of a pair."""
        table = self.table
        if not table.has_missing or table.n_columns < 2:
            return table.total_weight
        m = table.n_columns
        pairs = 0.0
        for start, stop in row_chunks(table.values):
            chunk = table.rows(start, stop)
            present = m - chunk.missing_mask().sum(axis=1)
            pairs += float(chunk.weight_array() @ (present * (present - 1.0)))
        return pairs / (m * (m - 1.0))


def ranges(stop: int, step: int) -> Iterator[tuple[int, int]]:
    """Cut ``range(stop)`` into ranges of ``step``."""
    for start in range(0, stop, step):
        yield start, min(stop, start + step)

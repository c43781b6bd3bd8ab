"""The dependence of pairs of columns by blocks, computed from rows in memory when asked for.

For so many columns that sums of all pairs do not fit into memory. Sparse tables are never made
dense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from latentree.data import Table
from latentree.distances._arrays import inverse, ranges
from latentree.distances._dependence import scale_of
from latentree.distances._functions import Units
from latentree.distances._lines import SparseLines, lines_of, sum_up
from latentree.distances._pair_sums import FunctionSums
from latentree.distances._reductions import Reduction, inverse_spread, single_functions
from latentree.distances._statistics import Statistics
from latentree.errors import DataError
from latentree.typing import FloatArray, Index, IntArray

_TILE = 1024
"""Lines of a block: its products of float64 take 8 MB, enough for BLAS to run at full speed."""

_PAIR_TILE = 32
"""Pairs of columns of several functions that are cut out of one block."""

RealArray = NDArray[np.float64] | NDArray[np.float32]
"""Real numbers in double or in single precision."""


class BlockDependence:
    """The signed dependence r of pairs of columns, by blocks.

    Parameters
    ----------
    table : Table
        All rows.
    statistics : Statistics
        Sums of the columns of these rows.
    centered : bool
        Whether to subtract the means of real columns; without it they are taken to be 0.
    """

    chunk_cells: int = 1 << 26
    """Numbers that are held at the same time on the way to a block."""
    float32_rows: int = 4096
    """Rows that are summed in float32 before the next are added: this bounds their rounding."""

    def __init__(self, table: Table, statistics: Statistics, centered: bool = True) -> None:
        if table.family == "copula":
            raise DataError(
                f"the tables of all pairs of {table.n_columns:,} columns do not fit into memory: "
                "take fewer columns, or hidden variables with states"
            )
        self.table = table.counted()  # as the statistics are
        self.statistics = statistics
        self.n_variables = table.n_columns
        self.rounding = statistics.rounding
        self.scale = scale_of(table.schema)
        self.exponent = self.scale.exponent
        functions = statistics.sums.functions
        if table.family == "gaussian":  # close to standardized: sums of products lose no digits
            mean, spread = statistics.moments
            size = spread if centered else np.hypot(mean, spread)
            functions = replace(
                functions, units=Units(mean if centered else 0 * mean, inverse(size))
            )
        self._reduction = Reduction.of(statistics.sums, centered)
        self._lines = lines_of(self.table, functions)
        self._widths = np.diff(functions.starts)
        self.span = (
            table.n_columns
            if isinstance(self._lines[0], SparseLines)
            else max(1, _TILE // max(1, int(self._widths.max())))
        )
        """Columns of the blocks that are cheapest when all pairs are wanted."""

    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return r of ``rows`` × ``columns``, as a new array; 0 where a pair tells nothing."""
        every = np.arange(self.n_variables)
        a, b = every[rows], every[columns]
        step = max(
            1, self.chunk_cells // max(1, int(self._widths.max()) * int(self._widths[b].sum()))
        )
        if a.size <= step:
            return self._block(a, b)
        return np.concatenate([self._block(a[slice(*part)], b) for part in ranges(a.size, step)])

    def _block(self, a: IntArray, b: IntArray) -> FloatArray:
        return self._reduction.read(sum_up(self._lines, a, b), a, b)

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return r of the pairs (first[p], second[p])."""
        if self._reduction.way != "correlation" or self.statistics.has_missing:
            return _cut_out(self.block, first, second)
        cross = sum(part.multiply_pairs(first, second) for part in self._lines)
        ones, scale = self._alone
        n = self.statistics.total_weight
        return np.asarray((n * cross - ones[first] * ones[second]) * (scale[first] * scale[second]))

    @cached_property
    def _alone(self) -> tuple[FloatArray, FloatArray]:
        """Σ w·f of columns of one function each, and 1/√(n·Σ w·f² − (Σ w·f)²)."""
        alone = reduce(FunctionSums.plus, (part.alone for part in self._lines))
        first, second = single_functions(alone, self._reduction.centered)
        return first, inverse_spread(self.statistics.total_weight, first, second)

    def precisions(self, rows: Index, columns: Index) -> float | FloatArray:
        """1 / variance of r of independent pairs: one number if all are the same."""
        return self.counts(rows, columns) * self.scale.precisions(rows, columns)

    def pair_precisions(self, first: IntArray, second: IntArray) -> float | FloatArray:
        """1 / variance of r of independent pairs: one number if all are the same."""
        return self.pair_counts(first, second) * self.scale.pair_precisions(first, second)

    def counts(self, rows: Index, columns: Index) -> float | FloatArray:
        """Weight of the rows that each pair is taken over: one number if all are the same."""
        if not self.statistics.has_missing:
            return self.statistics.total_weight
        every = np.arange(self.n_variables)
        a, b = every[rows], every[columns]
        return np.asarray(sum(part.weight_of_pairs(a, b) for part in self._lines))

    def pair_counts(self, first: IntArray, second: IntArray) -> float | FloatArray:
        """Weight of the rows of pairs: one number if all are the same."""
        if not self.statistics.has_missing:
            return self.statistics.total_weight
        return _cut_out(self.counts, first, second)

    def lower(self, tile: int = _TILE) -> FloatArray:
        """Return r of all pairs, tile by tile; only the lower triangle counts."""
        m = self.n_variables
        out = np.zeros((m, m))
        for start, stop in ranges(m, tile):
            for first, last in ranges(stop, max(tile, self.span)):
                out[start:stop, first:last] = self.block(slice(start, stop), slice(first, last))
        return out

    # Real columns in single precision -------------------------------------------------------

    @cached_property
    def margin(self) -> float:
        """How far :meth:`quick_block` may be from the truth; 0 where there is nothing quicker.

        It bounds the rounding of float32 products, each a sum of n terms with Σ|terms| ≤ 1.
        """
        n = self.table.n_rows
        if self.table.family != "gaussian" or self.statistics.has_missing:
            return 0.0
        return float((min(n, self.float32_rows) + n / self.float32_rows + 8) * 2.0**-24)

    @cached_property
    def _short_lines(self) -> NDArray[np.float32]:
        """Lines of norm 1, so that their products are correlations."""
        lines = self._lines[0].functions(np.arange(self.n_variables))
        if self.table.weights is not None:
            lines = lines * np.sqrt(self.table.weights)
        return np.asarray(lines / np.sqrt(self.statistics.total_weight), np.float32)

    def quick_block(self, rows: Index, columns: Index) -> RealArray:
        """Return r of every pair to within :attr:`margin`, as quickly as that goes."""
        if not self.margin:
            return self.block(rows, columns)
        a, b = self._short_lines[rows], self._short_lines[columns]
        out: NDArray[np.float32] = a[:, : self.float32_rows] @ b[:, : self.float32_rows].T
        for start, stop in ranges(a.shape[1], self.float32_rows):
            if start:
                out += a[:, start:stop] @ b[:, start:stop].T
        return out


def _cut_out(
    block: Callable[[IntArray, IntArray], FloatArray | float], first: IntArray, second: IntArray
) -> FloatArray:
    """Return some pairs out of small blocks: pairs of one first column lie side by side."""
    out = np.empty(first.size)
    order = np.argsort(first, kind="stable")
    for start, stop in ranges(first.size, _PAIR_TILE):
        some = order[start:stop]
        a, row = np.unique(first[some], return_inverse=True)
        b, column = np.unique(second[some], return_inverse=True)
        out[some] = np.asarray(block(a, b))[row, column]
    return out

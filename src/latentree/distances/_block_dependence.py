"""The dependence of pairs of columns by blocks, computed from rows in memory when asked for.

For so many columns that sums of all pairs do not fit into memory. Sparse tables are never made
dense.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.distances import pairs as kernels
from latentree.data import Table, row_chunks
from latentree.distances._counting import in_parts, ones_of, ranges, states_of
from latentree.distances._dependence import (
    MergedStates,
    agreement,
    has_uneven_states,
    inverse,
    kernel_of_tables,
    read_counts,
    scale_of,
)
from latentree.distances._mixed_sums import (
    CHUNK_ROWS,
    ColumnFunctions,
    MixedSums,
    read_moments,
    sum_up,
)
from latentree.distances._real_sums import correlation
from latentree.distances._state_counts import StateCounts
from latentree.distances._statistics import Statistics
from latentree.errors import DataError
from latentree.typing import FloatArray, Index, IntArray

_TILE = 1024
"""Columns of a block: its products of float64 take 8 MB, enough for BLAS to run at full speed."""

RealArray = NDArray[np.float64] | NDArray[np.float32]
"""Real numbers in double or in single precision."""


class BlockDependence(ABC):
    """The signed dependence r of pairs of columns, by blocks.

    Parameters
    ----------
    table : Table
        All rows.
    statistics : Statistics
        Sums of the columns of these rows.
    """

    span: int = _TILE
    """Columns of the blocks that are cheapest when all pairs are wanted."""
    margin: float = 0.0
    """How far :meth:`quick_block` may be from the truth; 0 where there is nothing quicker."""
    chunk_cells: int = 1 << 26
    """Numbers that are held at the same time on the way to a block."""

    def __init__(self, table: Table, statistics: Statistics) -> None:
        self.table = table
        self.statistics = statistics
        self.n_variables = table.n_columns
        self.rounding = statistics.rounding
        self.scale = scale_of(table.schema)
        self.exponent = self.scale.exponent

    @abstractmethod
    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return r of ``rows`` × ``columns``, as a new array; 0 where a pair tells nothing."""

    @abstractmethod
    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return r of the pairs (first[p], second[p])."""

    def quick_block(self, rows: Index, columns: Index) -> RealArray:
        """Return r of every pair to within :attr:`margin`, as quickly as that goes."""
        return self.block(rows, columns)

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
        present, weighted = self._present
        return weighted[rows] @ present[columns].T

    def pair_counts(self, first: IntArray, second: IntArray) -> float | FloatArray:
        """Weight of the rows of pairs: one number if all are the same."""
        if not self.statistics.has_missing:
            return self.statistics.total_weight
        table, weights = self.table, self.table.weight_array()
        out = np.empty(first.size)
        for start, stop in ranges(first.size, max(1, self.chunk_cells // (16 * table.n_rows))):
            both = table.present(first[start:stop]) & table.present(second[start:stop])
            out[start:stop] = weights @ both
        return out

    @cached_property
    def _present(self) -> tuple[FloatArray, FloatArray]:
        """Which cells are present, one row a variable; the same times the weights."""
        present = np.ascontiguousarray(~self.table.missing_mask().T, np.float64)
        return present, present if self.table.weights is None else present * self.table.weights

    def lower(self, tile: int = _TILE) -> FloatArray:
        """Return r of all pairs, tile by tile; only the lower triangle counts."""
        m = self.n_variables
        out = np.zeros((m, m))
        for start, stop in ranges(m, tile):
            for first, last in ranges(stop, max(tile, self.span)):
                out[start:stop, first:last] = self.block(slice(start, stop), slice(first, last))
        return out


def block_dependence(
    table: Table, statistics: Statistics, centered: bool = True
) -> BlockDependence:
    """Return the provider that fits the table.

    Parameters
    ----------
    table : Table
        All rows.
    statistics : Statistics
        Sums of their columns.
    centered : bool
        Whether to subtract the means of real columns; without it they are taken to be 0.

    Returns
    -------
    BlockDependence
    """
    table = table.counted()  # as the statistics are
    if table.family == "gaussian":
        kind = _GappedCorrelations if statistics.has_missing else _CompleteCorrelations
        return kind(table, statistics, centered)
    if table.family == "copula":
        raise DataError(
            f"the tables of all pairs of {table.n_columns:,} columns do not fit into memory: take "
            "fewer columns, or hidden variables with states"
        )
    if table.family == "mixed":
        return _DependenceOfMixed(table, statistics)
    is_binary = bool((table.cardinalities == 2).all()) and not statistics.has_missing
    if is_binary and (table.is_sparse or table.weights is None):
        return _DependenceOfOnes(table, statistics)
    return _DependenceOfStates(table, statistics)


class _CompleteCorrelations(BlockDependence):
    """Correlations of real columns without gaps: products of columns of norm 1."""

    float32_rows: int = 4096
    """Rows that are summed in float32 before the next are added: this bounds their rounding."""

    def __init__(self, table: Table, statistics: Statistics, centered: bool) -> None:
        super().__init__(table, statistics)
        mean, spread = statistics.moments
        self._mean = mean if centered else np.zeros_like(mean)
        size = spread if centered else np.hypot(mean, spread)
        self._scale = inverse(np.sqrt(statistics.total_weight) * size)

    @cached_property
    def _columns(self) -> FloatArray:
        """Columns as rows, of norm 1, so that their products are correlations."""
        table = self.table
        z = np.empty((self.n_variables, table.n_rows))
        roots = None if table.weights is None else np.sqrt(table.weights)
        for start, stop in row_chunks(table.values):
            z[:, start:stop] = ((table.values[start:stop] - self._mean) * self._scale).T
            if roots is not None:
                z[:, start:stop] *= roots[start:stop]
        return z

    def block(self, rows: Index, columns: Index) -> FloatArray:
        z = self._columns
        return z[rows] @ z[columns].T

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        out, z = np.empty(first.size), self._columns
        in_parts(first.size, lambda part: kernels.dots(z, first[part], second[part], out[part]))
        return out

    @cached_property
    def margin(self) -> float:  # type: ignore[override]
        """Bound on the rounding of float32 products, each a sum of n terms with Σ|terms| ≤ 1."""
        n = self.table.n_rows
        return float((min(n, self.float32_rows) + n / self.float32_rows + 8) * 2.0**-24)

    @cached_property
    def _short_columns(self) -> NDArray[np.float32]:
        return self._columns.astype(np.float32)

    def quick_block(self, rows: Index, columns: Index) -> RealArray:
        a, b = self._short_columns[rows], self._short_columns[columns]
        out: NDArray[np.float32] = a[:, : self.float32_rows] @ b[:, : self.float32_rows].T
        for start, stop in ranges(a.shape[1], self.float32_rows):
            if start:
                out += a[:, start:stop] @ b[:, start:stop].T
        return out


class _GappedCorrelations(BlockDependence):
    """Correlations of real columns, each pair over the rows in which both are present."""

    def __init__(self, table: Table, statistics: Statistics, centered: bool) -> None:
        super().__init__(table, statistics)
        self._centered = centered
        mean, spread = statistics.moments
        # Close to standardized, so that the differences of sums lose no digits.
        x = np.array(table.values.T, np.float64, order="C")
        if centered:
            x -= mean[:, None]
        x *= inverse(spread if centered else np.hypot(mean, spread))[:, None]
        x[np.isnan(x)] = 0.0
        self._x = x

    def block(self, rows: Index, columns: Index) -> FloatArray:
        return self._moments(rows, columns, lambda a, b: a @ b.T)

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        out = np.empty(first.size)
        for start, stop in ranges(first.size, max(1, self.chunk_cells // (64 * self.table.n_rows))):
            part = slice(start, stop)
            out[part] = self._moments(
                first[part], second[part], lambda a, b: np.einsum("pn,pn->p", a, b)
            )
        return out

    def _moments(self, rows: Index, columns: Index, sums: Callable[..., FloatArray]) -> FloatArray:
        present, weighted = self._present
        x, y = self._x[rows], self._x[columns]
        u, v = weighted[rows], present[columns]
        return correlation(
            sums(u, v), sums(u * x, v), sums(u, y), sums(u * x * x, v), sums(u, y * y),
            sums(u * x, y), self._centered,
        )  # fmt: skip


class _DependenceOfOnes(BlockDependence):
    """0/1 columns without gaps: from the counts of common ones."""

    def __init__(self, table: Table, statistics: Statistics) -> None:
        super().__init__(table, statistics)
        self._ones = ones_of(table)
        self.span = table.n_columns if table.is_sparse else _TILE
        n, ones = table.total_weight, self._ones.single
        self._scale = inverse(np.sqrt(np.maximum(ones * (n - ones), 0.0)))

    def block(self, rows: Index, columns: Index) -> FloatArray:
        common = self._ones.common(rows, columns)
        n, ones, scale = self.table.total_weight, self._ones.single, self._scale
        a, b, s, t = ones[rows], ones[columns], scale[rows], scale[columns]
        if self.table.family == "symmetric":
            return agreement(n - a[:, None] - b + 2.0 * common, n, 2)
        in_parts(
            len(common),
            lambda part: kernels.correlations_of_ones(common[part], n, a[part], b, s[part], t),
        )
        return common

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        common = self._ones.common_of_pairs(first, second)
        n, ones, scale = self.table.total_weight, self._ones.single, self._scale
        if self.table.family == "symmetric":
            return agreement(n - ones[first] - ones[second] + 2.0 * common, n, 2)
        centered = n * common - ones[first] * ones[second]
        return np.asarray(centered * (scale[first] * scale[second]))


class _DependenceOfStates(BlockDependence):
    """Columns of up to K states, from the joint table of every pair."""

    def __init__(self, table: Table, statistics: Statistics) -> None:
        super().__init__(table, statistics)
        self._n_states = max(1, int(table.cardinalities.max()))
        self._states = states_of(table, self._n_states)
        self.span = max(1, _TILE // self._n_states)

    def block(self, rows: Index, columns: Index) -> FloatArray:
        every = np.arange(self.n_variables)
        a, b = every[rows], every[columns]
        out = np.empty((a.size, b.size))
        step = max(1, self.chunk_cells // max(1, self._n_states**2 * b.size))
        for start, stop in ranges(a.size, step):
            some = a[start:stop]
            self._read(self._states.joint(some, b), some, b, out[start:stop])
        return out

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        out = np.empty((first.size, 1))
        for start, stop in ranges(first.size, max(1, self.chunk_cells // self._n_states**2)):
            a, b = first[start:stop], second[start:stop]
            joint = self._states.joint_of_pairs(a, b)
            self._read(joint[:, :, None], a, b, out[start:stop], as_list=True)
        return out[:, 0]

    def _read(
        self,
        joint: FloatArray,
        rows: IntArray,
        columns: IntArray,
        out: FloatArray,
        as_list: bool = False,
    ) -> None:
        """Set ``out`` to r of pairs of columns, from their joint tables."""
        k = self._n_states
        if self._layout is not None:
            x, y = self._layout.select(rows), self._layout.select(columns)
            limits = np.full(len(out), out.shape[1])
            read_counts(joint.reshape(len(joint) * k, -1), x, y, limits, out, as_list)
            return
        if self.table.family == "symmetric":
            same, n = np.einsum("ikjk->ij", joint), joint.sum(axis=(1, 3))
            out[:] = agreement(same, n, k)
            return
        read = kernel_of_tables(k)
        in_parts(len(out), lambda part: read(joint[part], out[part]))

    @cached_property
    def _layout(self) -> MergedStates | None:
        """Which states count as one, where numbers of states differ: K places for every column."""
        sums, k, m = self.statistics.sums, self._n_states, self.n_variables
        if self.table.family == "symmetric" or not has_uneven_states(self.table.schema):
            return None
        assert isinstance(sums, StateCounts)
        states = MergedStates.of(sums)
        into = np.zeros((m, k), np.int64)  # states that a column does not have never occur
        into[np.arange(k) < sums.widths[:, None]] = states.into
        return MergedStates(k * np.arange(m + 1), into.ravel(), states.widths)


class _DependenceOfMixed(BlockDependence):
    """Columns of any kind, from sums of products of their functions."""

    def __init__(self, table: Table, statistics: Statistics) -> None:
        super().__init__(table, statistics)
        assert isinstance(statistics.sums, MixedSums)
        self._sums = statistics.sums

    @cached_property
    def _lines(self) -> ColumnFunctions:
        """Functions of all columns."""
        return ColumnFunctions.of(self.table, self._sums.scores, self.statistics.has_missing)

    def _take(self, columns: IntArray) -> ColumnFunctions:
        return self._lines.take(columns, self._sums.scores.starts)

    def block(self, rows: Index, columns: Index) -> FloatArray:
        every = np.arange(self.n_variables)
        a, b = every[rows], every[columns]
        x, y = self._take(a), self._take(b)
        sums = sum_up(
            x.rows(*some).sums(y.rows(*some)) for some in ranges(self.table.n_rows, CHUNK_ROWS)
        )
        layout, out = self._sums.layout, np.empty((a.size, b.size))
        read_moments(sums, layout.select(a), layout.select(b), np.full(a.size, b.size), out)
        return out

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        out = np.empty(first.size)
        order = np.argsort(first, kind="stable")
        ends = np.flatnonzero(np.diff(first[order])) + 1
        for same in np.split(order, ends) if order.size else []:  # pairs of one first column
            out[same] = self.block(first[same[:1]], second[same])[0]
        return out

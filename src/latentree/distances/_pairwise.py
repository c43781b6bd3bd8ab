"""Pairwise statistics of a table, whole or by blocks of variables.

Every statistic measures the dependence of a pair as one signed number r in [−1, 1], from which the
information distance is −c·log|r|:

==================  ==================================  ======  ==============================
family              r                                   c       variance of r, independent pair
==================  ==================================  ======  ==============================
gaussian            correlation                         1       1/n
discrete, K = 2     correlation of the codes            1       1/n
discrete, K > 2     ±|det J̃|^(1/(K−1))                  K − 1   about 1/n
symmetric           1 − K·θ, θ = P(x_i ≠ x_j)/(K−1)     K − 1   1/((K−1)·n)
==================  ==================================  ======  ==============================

J̃ is the joint table divided by the roots of its marginals; its determinant is the product of the
K − 1 canonical correlations, and r their geometric mean. Rows count by their weights. Where cells
are missing, each pair is taken over the rows in which both are present; a pair that is constant on
those rows gets r = 0, never NaN. Sparse tables are never made dense.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from latentree import _memory as memory
from latentree._kernels.distances import pairs as kernels
from latentree.data import Table, is_number, row_chunks
from latentree.distances._counting import (
    PackedOnes,
    SparseOnes,
    in_parts,
    joint_products,
    ones_of,
    size_of,
    states_of,
)
from latentree.distances._dependence import Dependence, ranges
from latentree.errors import DataError
from latentree.typing import FloatArray, Index, IntArray

_CHUNK_CELLS = 1 << 26
_TILE = 1024
_FLOAT32_ROWS = 4096  # rows that are summed in float32 before the next are added
_IDENTIFIES, _MANY = 0.9, 10  # a column is an identifier if so many of its cells differ
_EPS = float(np.finfo(np.float64).eps)


def dependence(table: Table, centred: bool = True) -> Dependence:
    """Return the statistic that fits the table.

    ``centred=False`` takes real columns to have mean 0 instead of estimating it.
    """
    if table.family == "gaussian":
        return _correlation(table, centred)
    n_states = common_cardinality(table)
    if table.family == "symmetric":
        return Agreements(table, n_states)
    return _correlation(table, True) if n_states == 2 else Determinants(table, n_states)


def _correlation(table: Table, centred: bool) -> Dependence:
    if table.is_sparse:
        return BinaryCorrelations(table)
    if table.family != "gaussian" and table.weights is None:
        return TableCorrelations(table) if table.has_missing else BinaryCorrelations(table)
    if table.has_missing:
        return PairwiseCorrelations(table, centred)
    return Correlations(table, centred)


def common_cardinality(table: Any) -> int:
    """Return the number of states that all columns have; raise when they differ.

    ``table`` is a table, or anything else with names and cardinalities.
    """
    k = table.cardinalities
    if k.min() == k.max():
        return int(k[0])
    a, b = int(k.argmin()), int(k.argmax())
    raise DataError(
        f"column {table.names[a]!r} has {k[a]} states, but {table.names[b]!r} has {k[b]}: "
        f"information distances need the same number in every column{_advice(table, b)}"
    )


def _advice(table: Any, column: int) -> str:
    """Say what to do about a column with more states than others, and whether it is an accident."""
    name, labels = table.names[column], table.schema.labels[column]
    if len(labels) >= max(_MANY, _IDENTIFIES * table.n_rows):
        return (
            f". Nearly every row has its own {name!r}, which looks like an identifier: "
            f"drop column {name!r}"
        )
    odd = [label for label in labels if not is_number(label)]
    hint = ""
    if len(odd) == 1 and len(labels) > 2:
        hint = f" ({name!r} holds numbers, but also {odd[0]!r}: leave such cells empty if missing)"
    return f", so merge states, drop columns, or learn from each group of columns by itself{hint}"


# Correlations -----------------------------------------------------------------------------------


class Correlations(Dependence):
    """Correlations of a dense table without missing cells, from standardised columns."""

    def __init__(self, table: Table, centred: bool = True) -> None:
        super().__init__(table)
        m = table.n_columns
        self._roots = None if table.weights is None else np.sqrt(table.weights)[:, None]
        self._mean = self._means() if centred else np.zeros(m)
        self._scale = np.ones(m)
        with np.errstate(over="ignore", invalid="ignore"):
            largest = self._over_chunks(lambda z: np.abs(z).max(axis=0), np.maximum)
        _check_size(table, largest)
        # Divided by the largest first, so that no square can overflow or vanish.
        self._scale = _inverse(largest)
        # Sums along contiguous memory are pairwise: their rounding hardly grows with n.
        squares = self._over_chunks(lambda z: np.square(z.T, order="C").sum(axis=1), np.add)
        self._scale *= _inverse(np.sqrt(squares))

    def _means(self) -> FloatArray:
        table = self.table
        total = np.zeros(table.n_columns)
        with np.errstate(over="ignore", invalid="ignore"):
            for start, stop in row_chunks(table.values):
                chunk = table.values[start:stop]
                w = None if table.weights is None else table.weights[start:stop]
                total += chunk.sum(axis=0) if w is None else w @ chunk
        return total / table.total_weight

    def _over_chunks(self, function: Any, combine: Any) -> FloatArray:
        out: FloatArray = np.zeros(self.n_variables)
        for start, stop in row_chunks(self.table.values):
            out = combine(out, function(self._standardised(start, stop)))
        return out

    def _standardised(self, start: int, stop: int) -> FloatArray:
        """Rows of the table with columns of norm 1, so that their products are correlations."""
        z: FloatArray = self.table.values[start:stop] - self._mean
        z *= self._scale
        if self._roots is not None:
            z *= self._roots[start:stop]
        return z

    @cached_property
    def _columns(self) -> FloatArray:
        z = np.empty((self.n_variables, self.table.n_rows))
        for start, stop in row_chunks(self.table.values):
            z[:, start:stop] = self._standardised(start, stop).T
        return z

    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return the correlations of ``rows`` × ``columns``."""
        z = self._columns
        return z[rows] @ z[columns].T

    @cached_property
    def margin(self) -> float:  # type: ignore[override]
        """Bound on the rounding of float32 products, each a sum of n terms with Σ|terms| ≤ 1."""
        n = self.table.n_rows
        return float((min(n, _FLOAT32_ROWS) + n / _FLOAT32_ROWS + 8) * 2.0**-24)

    @cached_property
    def _short_columns(self) -> NDArray[np.float32]:
        return self._columns.astype(np.float32)

    def quick_block(self, rows: Index, columns: Index) -> NDArray[np.floating[Any]]:
        """Return the correlations of ``rows`` × ``columns`` in float32."""
        a, b = self._short_columns[rows], self._short_columns[columns]
        out: NDArray[np.float32] = a[:, :_FLOAT32_ROWS] @ b[:, :_FLOAT32_ROWS].T
        for start, stop in ranges(a.shape[1], _FLOAT32_ROWS):
            if start:
                out += a[:, start:stop] @ b[:, start:stop].T
        return out

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the correlations of pairs."""
        out, z = np.empty(first.size), self._columns
        in_parts(first.size, lambda part: kernels.dots(z, first[part], second[part], out[part]))
        return out

    def lower(self) -> FloatArray:
        """Return all correlations, lower triangle, by one symmetric product."""
        m, n = self.n_variables, self.table.n_rows
        out = np.zeros((m, m), order="F")
        # Half the work of a general product; upper in Fortran's order is lower in ours.
        for start, stop in ranges(n, max(1, _CHUNK_CELLS // m)):
            z = self._standardised(start, stop)
            out = linalg.blas.dsyrk(1.0, z.T, beta=1.0, c=out, overwrite_c=True)
        return out.T


def _check_size(table: Table, largest: FloatArray) -> None:
    if not np.isfinite(largest).all():
        name = table.names[int(np.flatnonzero(~np.isfinite(largest))[0])]
        raise DataError(f"the values of column {name!r} are too large to be summed: rescale it")


def _inverse(values: FloatArray) -> FloatArray:
    """Return 1/x, and 0 for 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


class PairwiseCorrelations(Dependence):
    """Correlations of a dense table, each pair over the rows in which both are present."""

    def __init__(self, table: Table, centred: bool = True) -> None:
        super().__init__(table)
        self._centred = centred
        x = np.array(table.values.T, np.float64, order="C")  # a copy, whatever the order was
        present, weighted = self._present
        x[present == 0] = 0.0
        # Close to standardised, so that the differences of sums below lose no digits.
        with np.errstate(over="ignore", invalid="ignore"):
            if centred:
                x -= ((weighted * x).sum(1) * _inverse(weighted.sum(1)))[:, None]
            x *= present
            largest = np.abs(x).max(axis=1)
        _check_size(table, largest)
        x *= _inverse(largest)[:, None]
        self._x = x

    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return the correlations of ``rows`` × ``columns``, 0 where a variance is."""
        return self._moments(rows, columns, lambda a, b: a @ b.T)

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the correlations of pairs."""
        out = np.empty(first.size)
        for start, stop in ranges(first.size, max(1, _CHUNK_CELLS // (64 * self.table.n_rows))):
            part = slice(start, stop)
            out[part] = self._moments(
                first[part], second[part], lambda a, b: np.einsum("pn,pn->p", a, b)
            )
        return out

    def _moments(self, rows: Index, columns: Index, sums: Callable[..., FloatArray]) -> FloatArray:
        """Correlations from sums of products over the rows of the table."""
        present, weighted = self._present
        x, y = self._x[rows], self._x[columns]
        u, v = weighted[rows], present[columns]
        n = sums(u, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            xx, yy, xy = sums(u * x * x, v) / n, sums(u, y * y) / n, sums(u * x, y) / n
            if self._centred:
                mean_x, mean_y = sums(u * x, v) / n, sums(u, y) / n
                constant = (xx - mean_x**2 <= 1e-12 * xx) | (yy - mean_y**2 <= 1e-12 * yy)
                xy -= mean_x * mean_y
                xx -= mean_x**2
                yy -= mean_y**2
            else:
                constant = (xx <= 0) | (yy <= 0)
            r = xy / np.sqrt(xx * yy)
        # Fewer than two rows make every variable constant, and n = 0 makes NaN of everything.
        r[constant | ~np.isfinite(r)] = 0.0
        return r


class BinaryCorrelations(Dependence):
    """Correlations of 0/1 columns without missing cells, from the counts of common ones."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._ones = ones_of(table)
        self.span = table.n_columns if table.is_sparse else _TILE
        n, ones = table.total_weight, self._ones.single
        self._scale = _inverse(np.sqrt(np.maximum(ones * (n - ones), 0.0)))

    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return the correlations of ``rows`` × ``columns``, 0 where a variance is."""
        r = self._ones.common(rows, columns)
        n, ones, scale = self.table.total_weight, self._ones.single, self._scale
        a, b, s, t = ones[rows], ones[columns], scale[rows], scale[columns]
        in_parts(
            len(r), lambda part: kernels.correlations_of_ones(r[part], n, a[part], b, s[part], t)
        )
        return r

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the correlations of pairs."""
        n, ones, scale = self.table.total_weight, self._ones.single, self._scale
        common = n * self._ones.common_of_pairs(first, second)
        return np.asarray((common - ones[first] * ones[second]) * (scale[first] * scale[second]))


# Joint tables -----------------------------------------------------------------------------------


def joint_counts(table: Table, rows: Index, columns: Index) -> FloatArray:
    """Weighted counts of every pair of states, of shape (a, K, b, K).

    All columns must have the same number K of states. Rows in which either cell is missing do not
    count.
    """
    k = common_cardinality(table)
    return _joint(table, rows, columns).reshape(-1, k, size_of(columns, table.n_columns), k)


def state_counts(table: Table) -> FloatArray:
    """Weighted counts of all pairs of states, the states of all variables laid end to end."""
    widths = _widths(table)
    if table.is_sparse or (table.weights is None and (widths == 2).all() and not table.has_missing):
        return _sparse_joint(table, slice(None), slice(None))
    if table.weights is None and widths.min() == widths.max():
        k = int(widths[0])
        joint = states_of(table, k).joint(slice(None), slice(None))
        return joint.reshape(widths.sum(), -1)
    return _joint(table, slice(None), slice(None))


def _joint(table: Table, rows: Index, columns: Index) -> FloatArray:
    """Weighted counts of pairs of states, the states of all variables laid end to end."""
    if table.is_sparse:
        return _sparse_joint(table, rows, columns)
    return joint_products(table, _widths(table), rows, columns)


def _widths(table: Table) -> NDArray[np.int64]:
    return np.maximum(table.cardinalities, 1)  # a column without any value still has a place


def _sparse_joint(table: Table, rows: Index, columns: Index) -> FloatArray:
    ones = ones_of(table)
    a, b = ones.single[rows], ones.single[columns]
    out = np.empty((a.size, 2, b.size, 2))
    out[:, 1, :, 1] = ones.common(rows, columns)
    out[:, 1, :, 0] = a[:, None] - out[:, 1, :, 1]
    out[:, 0, :, 1] = b - out[:, 1, :, 1]
    out[:, 0, :, 0] = table.total_weight - a[:, None] - b + out[:, 1, :, 1]
    return out.reshape(2 * a.size, 2 * b.size)


class OfTables(Dependence):
    """What is read off the joint table of every pair of dense columns of K states."""

    def __init__(self, table: Table, n_states: int, kernel: Callable[..., None]) -> None:
        super().__init__(table)
        self._states = states_of(table, n_states)
        self._kernel = kernel
        self.tile = self.span = max(1, _TILE // n_states)
        self._cells = n_states**2

    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return r for ``rows`` × ``columns``, 0 where the table says nothing."""
        every = np.arange(self.n_variables)
        a, b = every[rows], every[columns]
        out = np.empty((a.size, b.size))
        for start, stop in ranges(a.size, max(1, _CHUNK_CELLS // max(1, self._cells * b.size))):
            self._read(self._states.joint(a[start:stop], b), out[start:stop])
        return out

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return r of pairs."""
        out = np.empty((first.size, 1))
        for start, stop in ranges(first.size, max(1, _CHUNK_CELLS // self._cells)):
            joint = self._states.joint_of_pairs(first[start:stop], second[start:stop])
            self._read(joint[:, :, None], out[start:stop])
        return out[:, 0]

    def _read(self, joint: FloatArray, out: FloatArray) -> None:
        in_parts(len(out), lambda part: self._kernel(joint[part], out[part]))


class TableCorrelations(OfTables):
    """Correlations of two-state columns, each pair over the rows in which both are present."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, 2, kernels.correlations_of_tables)


class Determinants(OfTables):
    """Signed (K−1)-th root of the normalised joint table's determinant."""

    def __init__(self, table: Table, n_states: int) -> None:
        super().__init__(table, n_states, kernels.determinant_roots)
        self.exponent = n_states - 1.0


def determinant_roots(joint: FloatArray) -> FloatArray:
    """Return the signed root of every pair's normalised table; ``joint`` has shape (a, K, b, K)."""
    out = np.empty((joint.shape[0], joint.shape[2]))
    in_parts(len(out), lambda part: kernels.determinant_roots(joint[part], out[part]))
    return out


# Agreement --------------------------------------------------------------------------------------


class Agreements(Dependence):
    """1 − K·θ̂ of the symmetric family, with θ̂ = mean(x_i ≠ x_j) / (K − 1)."""

    def __init__(self, table: Table, n_states: int) -> None:
        super().__init__(table)
        self.n_states = n_states
        self.exponent = n_states - 1.0
        self.precision = n_states - 1.0
        self.span = table.n_columns if table.is_sparse else _TILE
        self._counter = ones_of(table) if table.is_sparse else states_of(table, n_states)

    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return 1 − K·θ̂ for ``rows`` × ``columns``, 0 where a pair has no common row."""
        return self._from_share(self.agreement(rows, columns))

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return 1 − K·θ̂ of pairs."""
        counter = self._counter
        if isinstance(counter, SparseOnes | PackedOnes):
            common = 2.0 * counter.common_of_pairs(first, second)
            same = common + (self.table.total_weight - counter.single[second])
            same -= counter.single[first]
        else:
            same = np.trace(counter.joint_of_pairs(first, second), axis1=1, axis2=2)
        return self._from_share(self._share(same, self.pair_counts(first, second)))

    def _from_share(self, agreement: FloatArray) -> FloatArray:
        # 1 − K/(K−1)·(1 − a) with the share a of rows that agree
        return np.asarray((self.n_states * agreement - 1.0) / (self.n_states - 1.0))

    def agreement(self, rows: Index, columns: Index) -> FloatArray:
        """Share of the rows in which both variables have the same state; 1/K without rows."""
        counter = self._counter
        if isinstance(counter, SparseOnes | PackedOnes):
            same = counter.common(rows, columns)
            same *= 2.0
            same += self.table.total_weight - counter.single[columns]
            same -= counter.single[rows][:, None]
        else:
            same = counter.same(rows, columns)
        return self._share(same, self.counts(rows, columns))

    def _share(self, same: FloatArray, n: float | FloatArray) -> FloatArray:
        if isinstance(n, float):
            same /= n
            return same
        return np.divide(same, n, out=np.full_like(same, 1.0 / self.n_states), where=n > 0)


# Whole tables -----------------------------------------------------------------------------------


def correlations(table: Table, centred: bool = True) -> tuple[FloatArray, float | FloatArray]:
    """Correlations of all pairs of real or two-state columns, and the rows behind each pair.

    Returns
    -------
    rho : array of shape (m, m)
        0 for a pair that is constant on its common rows.
    counts : float or array of shape (m, m)
        Total weight of the rows of each pair; one number when nothing is missing.
    """
    if table.family != "gaussian" and common_cardinality(table) != 2:
        raise DataError("correlations need real columns or columns of two states")
    statistic = _correlation(table, centred)
    rho = _mirrored(statistic.lower())
    return np.clip(rho, -1.0, 1.0, out=rho), statistic.all_counts()


def disagreements(table: Table) -> tuple[FloatArray, float | FloatArray]:
    """Share of rows in which two columns differ, for all pairs, and the rows behind each pair.

    A pair without a common row gets (K − 1)/K, as if independent.
    """
    statistic = Agreements(table, common_cardinality(table))
    return 1.0 - statistic.agreement(slice(None), slice(None)), statistic.all_counts()


def mutual_information(table: Table) -> FloatArray:
    """Mutual information of all pairs in nats; any numbers of states.

    Real columns: −½·log(1 − ρ²), with 1 − ρ² held above the rounding of ρ, so that it stays finite.
    The diagonal holds the entropies of discrete columns.
    """
    if table.family == "gaussian":
        rho, _ = correlations(table)
        floor = 2 * _EPS * max(64.0, table.n_rows / 8)
        return np.asarray(-0.5 * np.log(np.maximum(1.0 - rho**2, floor)))
    m = table.n_columns
    memory.require(
        16.0 * m**2,
        f"the mutual information of {m:,} variables",
        "learn from information distances on demand, as clnj, clrg and cl_blind do",
    )
    out = np.zeros((m, m))
    tile = max(1, _TILE // int(_widths(table).max()))
    for start, stop in ranges(m, tile):
        for first, last in ranges(stop, tile):
            out[start:stop, first:last] = _information(
                table, slice(start, stop), slice(first, last)
            )
    return _mirrored(out)


def _information(table: Table, rows: slice, columns: slice) -> FloatArray:
    widths = _widths(table)
    at_rows = np.cumsum(widths[rows]) - widths[rows]
    at_columns = np.cumsum(widths[columns]) - widths[columns]
    return information(_joint(table, rows, columns), at_rows, at_columns)


def information(
    joint: FloatArray, at_rows: NDArray[np.int64], at_columns: NDArray[np.int64]
) -> FloatArray:
    """Return I = (Σ g(J) − Σ g(row sums) − Σ g(column sums) + g(N)) / N, with g(x) = x·log x.

    ``joint`` holds counts of pairs of states laid end to end; the states of each variable start at
    ``at_rows`` and ``at_columns``.
    """
    over_columns = np.add.reduceat(joint, at_columns, axis=1)
    over_rows = np.add.reduceat(joint, at_rows, axis=0)
    n = np.add.reduceat(over_columns, at_rows, axis=0)
    total = np.add.reduceat(np.add.reduceat(_xlogx(joint), at_columns, axis=1), at_rows, axis=0)
    total -= np.add.reduceat(_xlogx(over_columns), at_rows, axis=0)
    total -= np.add.reduceat(_xlogx(over_rows), at_columns, axis=1)
    total += _xlogx(n)
    return np.maximum(total * _inverse(n), 0.0)


def _xlogx(x: FloatArray) -> FloatArray:
    # Rounding can leave a weighted count just below 0.
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))


def _mirrored(lower: FloatArray) -> FloatArray:
    m = lower.shape[0]
    for start, stop in ranges(m, _TILE):
        lower[:start, start:stop] = lower[start:stop, :start].T
        tile = lower[start:stop, start:stop]
        tile[...] = np.tril(tile) + np.tril(tile, -1).T
    return lower

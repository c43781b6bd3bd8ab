"""Moments of real columns, which add up over parts of the rows.

Learning needs nothing else of complete Gaussian rows. Products of all pairs of columns take m × m
numbers; where these do not fit into memory only the sums of single columns are taken, and
dependence is computed in blocks (``_block_dependence``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from latentree._kernels import threads
from latentree.data import Table
from latentree.distances._counting import in_parts
from latentree.typing import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)

SCALES = (1e-150, 1e150)
"""Standard deviations of columns: squares of others come near the limits of numbers, 1e±308."""

VANISHING = 1e-12
"""A variance below this share of the mean square is rounding: the column is constant."""

_COLUMNS = 64
"""Columns of a block of a product: enough to keep one thread busy."""


def block_product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return aᵀ·b, the same bits on any number of threads.

    BLAS cuts a product by its number of threads, and rounds accordingly. So it gets one thread from
    the caller, and blocks of columns are spread over ours.
    """
    out = np.empty((a.shape[1], b.shape[1]))

    def fill(start: int) -> None:
        np.matmul(a[:, start : start + _COLUMNS].T, b, out=out[start : start + _COLUMNS])

    threads.run(fill, range(0, a.shape[1], _COLUMNS))
    return out


@dataclass(frozen=True, eq=False)
class Units:
    """Shift and scale of every real column: z = (x − shift)·scale is what is summed.

    Any units give the same statistics; those near the means and spreads keep the digits.
    """

    shift: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, table: Table) -> Units:
        """Return means and largest deviations of the columns of some rows."""
        x = table.values
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and (
            np.array_equal(self.shift, other.shift) and np.array_equal(self.scale, other.scale)
        )

    def select(self, columns: IntArray) -> Units:
        """Return the units of some columns."""
        return Units(self.shift[columns], self.scale[columns])


@dataclass(frozen=True, eq=False)
class RealSums:
    """Weighted sums of z = (x − shift)·scale over rows.

    Without gaps ``weight`` is one number, and ``first`` (Σ w·z_i) and ``squares`` (Σ w·z_i²) have
    an entry a column. With gaps the three are taken over the rows in which both of a pair are
    present: (m, m) arrays, entry (i, j) about column i; or, without products, over the rows in
    which a column is present.

    Attributes
    ----------
    products : array of shape (m, m), optional
        Σ w·z_i·z_j, of which only the lower triangle counts; None if only columns were summed.
    low, high : array of shape (m,)
        Smallest and largest z of rows with positive weight.
    """

    units: Units
    weight: float | FloatArray
    first: FloatArray
    squares: FloatArray
    products: FloatArray | None
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, table: Table, units: Units, pairs: bool = True) -> RealSums:
        """Sum over the rows of a table, with or without the products of pairs."""
        with np.errstate(over="ignore", invalid="ignore"):
            z: FloatArray = table.values - units.shift
            z *= units.scale
            w = table.weights
            counted = z if w is None or w.all() else z[w > 0]
            low = np.fmin.reduce(counted, axis=0, initial=np.nan)
            high = np.fmax.reduce(counted, axis=0, initial=np.nan)
            # One pass: where anything is missing, some sum is NaN.
            first = z.sum(axis=0) if w is None else w @ z
            if np.isnan(first).any():
                return cls._with_gaps(z, table, units, pairs, low, high)
            if w is not None:
                z *= np.sqrt(w)[:, None]  # (√w·z)ᵀ(√w·z) = Σ w·z·zᵀ
            if not pairs:
                squares = np.einsum("ij,ij->j", z, z)
                return cls(units, table.total_weight, first, squares, None, low, high)
            # Half the work of a general product; its upper triangle in Fortran's order is our
            # lower.
            products = linalg.blas.dsyrk(1.0, z.T).T
        return cls(
            units, table.total_weight, first, np.diagonal(products).copy(), products, low, high
        )

    @classmethod
    def _with_gaps(
        cls,
        z: FloatArray,
        table: Table,
        units: Units,
        pairs: bool,
        low: FloatArray,
        high: FloatArray,
    ) -> RealSums:
        """Sum over the rows in which both of each pair are present."""
        present = ~np.isnan(z)
        z[~present] = 0.0
        w = table.weight_array()
        if not pairs:
            return cls(units, w @ present, w @ z, w @ (z * z), None, low, high)
        # With p_rj = 1 where cell (r, j) is present: Σ w·p_i·p_j, Σ w·z_i·p_j, Σ w·z_i²·p_j.
        there = present.astype(np.float64)
        wz = z * w[:, None]
        with threadpool_limits(1, "blas"):
            weight = block_product(there * w[:, None], there)
            first, squares = block_product(wz, there), block_product(wz * z, there)
            products = block_product(wz, z)
        return cls(units, weight, first, squares, products, low, high)

    @property
    def has_pairs(self) -> bool:
        """Whether products of pairs of columns are held."""
        return self.products is not None

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not isinstance(self.weight, np.ndarray)

    def __add__(self, other: RealSums) -> RealSums:
        if other.units is not self.units:
            other = other.in_units(self.units)
        a, b = (self, other) if self.complete == other.complete else (self.spread(), other.spread())
        return RealSums(
            a.units,
            a.weight + b.weight,
            a.first + b.first,
            a.squares + b.squares,
            None if a.products is None or b.products is None else a.products + b.products,
            np.fmin(a.low, b.low),
            np.fmax(a.high, b.high),
        )

    def spread(self) -> RealSums:
        """Return the sums in the form that they have with gaps."""
        if not self.complete:
            return self
        m = self.first.size
        if self.products is None:
            return replace(self, weight=np.full(m, self.weight))
        return replace(
            self,
            weight=np.full((m, m), self.weight),
            first=np.repeat(self.first[:, None], m, axis=1),
            squares=np.repeat(self.squares[:, None], m, axis=1),
        )

    def in_units(self, units: Units) -> RealSums:
        """Return the same sums with another shift and scale: z' = a·z + b."""
        if units == self.units:
            return replace(self, units=units)
        a = units.scale / self.units.scale
        b = (self.units.shift - units.shift) * units.scale
        # Σ w·z' = a·Σ w·z + b·Σ w, and Σ w·z'² = a²·Σ w·z² + 2ab·Σ w·z + b²·Σ w.
        u, v = (a[:, None], b[:, None]) if self.first.ndim == 2 else (a, b)
        return RealSums(
            units,
            self.weight,
            u * self.first + v * self.weight,
            u * u * self.squares + 2.0 * u * v * self.first + v * v * self.weight,
            self._shifted_products(a, b),
            a * self.low + b,
            a * self.high + b,
        )

    def _shifted_products(self, a: FloatArray, b: FloatArray) -> FloatArray | None:
        """Σ w·(a_i·z_i + b_i)·(a_j·z_j + b_j)."""
        if self.products is None:
            return None
        by_row = self.first[:, None] if self.complete else self.first
        crossed = (a[:, None] * by_row) * b  # a_i·b_j·Σ w·z_i; its transpose is the other one
        return np.outer(a, a) * self.products + crossed + crossed.T + np.outer(b, b) * self.weight

    def select(self, columns: IntArray) -> RealSums:
        """Return the sums of some columns; the products become a whole matrix."""
        pair = np.ix_(columns, columns)
        products = self.products
        if products is not None:  # a pair stands at (larger, smaller): the lower triangle
            high, low = np.maximum.outer(columns, columns), np.minimum.outer(columns, columns)
            products = products[high, low]
        wide = self.first.ndim == 2
        return RealSums(
            self.units.select(columns),
            self.weight if self.complete else np.asarray(self.weight)[pair if wide else columns],
            self.first[pair if wide else columns],
            self.squares[pair if wide else columns],
            products,
            self.low[columns],
            self.high[columns],
        )

    # What follows ---------------------------------------------------------------------------

    def _of_columns(self, sums: float | FloatArray) -> FloatArray:
        """Return the entries of single columns."""
        array = np.asarray(sums, np.float64)
        if array.ndim == 2:
            return np.diagonal(array).copy()
        return np.broadcast_to(array, self.low.shape).copy()

    def column_weights(self) -> FloatArray:
        """Weight of the rows in which each column is present."""
        return self._of_columns(self.weight)

    def pair_weights(self) -> float | FloatArray:
        """Weight of the rows in which both of a pair are present: one number without gaps."""
        return self.weight

    def is_empty(self) -> BoolArray:
        """Whether each column has no value in a row with positive weight."""
        return np.isnan(self.high)

    def is_constant(self) -> BoolArray:
        """Whether each column has one value only, but for rounding."""
        # A few units in the last place of x, times scale: |x|·scale ≤ |z| + |shift|·scale.
        shift = np.abs(self.units.shift * self.units.scale)
        noise = 4 * _EPS * (np.maximum(np.abs(self.low), np.abs(self.high)) + shift)
        return np.asarray(self.high - self.low <= noise)

    def is_finite(self) -> BoolArray:
        """Whether the squares of each column could be summed, and its variance is a number."""
        summed = np.isfinite(self._of_columns(self.squares))
        with np.errstate(all="ignore"):
            spread = self.moments()[1]
        within = (spread <= SCALES[1]) & ((spread >= SCALES[0]) | (spread == 0.0))
        return np.asarray(summed & within)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the columns, over their present cells."""
        n = self.column_weights()
        with np.errstate(invalid="ignore"):  # columns without any value
            mean, square = self._of_columns(self.first) / n, self._of_columns(self.squares) / n
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return self.units.shift + mean / self.units.scale, spread / self.units.scale

    def extremes(self) -> FloatArray:
        """Return how many standard deviations the most extreme value of each column is away."""
        n = self.column_weights()
        mean, square = self._of_columns(self.first) / n, self._of_columns(self.squares) / n
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        away = np.maximum(self.high - mean, mean - self.low)
        return np.divide(away, spread, out=np.zeros_like(away), where=spread > 0.0)

    def correlations(self, centered: bool = True) -> FloatArray:
        """Return the correlations of all pairs, 0 where a variance is 0; the lower triangle counts.

        Without centering the means are taken to be 0: cosines of the columns.
        """
        if not centered:
            zero = Units(np.zeros_like(self.units.shift), self.units.scale)
            return self.in_units(zero)._correlations(False)
        return self._correlations(True)

    def _correlations(self, centered: bool) -> FloatArray:
        """Return correlations from the sums, in slices of rows on all threads."""
        assert self.products is not None
        r = np.empty_like(self.products)
        products, n, s, q = self.products, self.weight, self.first, self.squares

        def fill(rows: slice) -> None:
            if isinstance(n, np.ndarray):
                of_pairs = n[rows], s[rows], s.T[rows], q[rows], q.T[rows]
                r[rows] = correlation(*of_pairs, products[rows], centered)
            else:
                of_columns = s[rows, None], s, q[rows, None], q
                r[rows] = correlation(n, *of_columns, products[rows], centered)

        in_parts(len(r), fill)
        return r

    def duplicates(self, r: FloatArray, rounding: float) -> list[tuple[int, int]]:
        """Pairs of columns with the same values, among those whose correlation is 1."""
        first, second = np.nonzero(np.tril(r >= 1.0 - rounding, -1))
        mean, spread = self.moments()
        same = np.isclose(mean[first], mean[second], rtol=1e-9, atol=1e-9 * spread[first])
        same &= np.isclose(spread[first], spread[second], rtol=1e-9)
        return list(zip(second[same].tolist(), first[same].tolist(), strict=True))


def correlation(
    n: float | FloatArray,
    sx: FloatArray,
    sy: FloatArray,
    xx: FloatArray,
    yy: FloatArray,
    xy: FloatArray,
    centered: bool,
) -> FloatArray:
    """Return correlations from sums over rows: Σ1, Σx, Σy, Σx², Σy² and Σxy.

    r = (E[xy] − E[x]·E[y]) / √(V[x]·V[y]); 0 for a pair that is constant on its rows.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        xx, yy, r = xx / n, yy / n, xy / n
        if centered:
            sx, sy = sx / n, sy / n
            constant = (xx - sx * sx <= VANISHING * xx) | (yy - sy * sy <= VANISHING * yy)
            r -= sx * sy
            xx, yy = xx - sx * sx, yy - sy * sy
        else:
            constant = (xx <= 0) | (yy <= 0)
        r /= np.sqrt(xx * yy)
    # n = 0 makes NaN of everything.
    r[constant | ~np.isfinite(r)] = 0.0
    return np.asarray(r)

"""Sums of real columns: weights, values, squares and products, each pair over its own rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from latentree.data import Table
from latentree.typing import FloatArray

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Units:
    """What is taken from every value before it is squared, and what it is multiplied by.

    Any numbers give the same statistics; numbers near the means and spreads keep the digits.
    """

    shift: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, table: Table) -> Units:
        """Return means and largest deviations of the columns of some rows."""
        x = table.values
        with np.errstate(over="ignore", invalid="ignore"):
            present = ~np.isnan(x)
            n = np.maximum(present.sum(axis=0), 1)
            shift = np.where(present, x / n, 0.0).sum(axis=0)
            spread = np.abs(np.where(present, x - shift, 0.0)).max(axis=0)
        usual = (spread > 4 * _EPS * np.abs(shift)) & np.isfinite(spread)
        return cls(shift, 1.0 / np.where(usual, spread, np.maximum(np.abs(shift), 1.0)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and (
            np.array_equal(self.shift, other.shift) and np.array_equal(self.scale, other.scale)
        )


@dataclass(frozen=True, eq=False)
class RealSums:
    """Weighted sums of z = (x − shift)·scale.

    ``weight``, ``first`` (Σ w·z_i) and ``squares`` (Σ w·z_i²) are taken over the rows in which j is
    present too: (m, m) arrays. As long as nothing is missing, ``weight`` is one number, and the
    others have one entry a column. ``products`` are Σ w·z_i·z_j.
    """

    units: Units
    weight: float | FloatArray
    first: FloatArray
    squares: FloatArray
    products: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, table: Table, units: Units) -> RealSums:
        """Sum over the rows of a table."""
        with np.errstate(over="ignore", invalid="ignore"):
            z: FloatArray = table.values - units.shift
            z *= units.scale
        low, high = np.fmin.reduce(z, axis=0), np.fmax.reduce(z, axis=0)
        w = table.weights
        # One pass: where anything is missing, some sum is NaN.
        first = z.sum(axis=0) if w is None else w @ z
        if np.isnan(first).any():
            return cls._with_gaps(z, table, units, low, high)
        if w is not None:
            z *= np.sqrt(w)[:, None]
        # Half the work of a general product, which leaves the upper triangle.
        upper = linalg.blas.dsyrk(1.0, z.T)
        products = upper + np.triu(upper, 1).T
        squares = np.diagonal(products).copy()
        return cls(units, table.total_weight, first, squares, products, low, high)

    @classmethod
    def _with_gaps(
        cls, z: FloatArray, table: Table, units: Units, low: FloatArray, high: FloatArray
    ) -> RealSums:
        present = (~np.isnan(z)).astype(np.float64)
        z[present == 0] = 0.0
        w = table.weight_array()[:, None]
        weighted, wz = present * w, z * w
        return cls(
            units, weighted.T @ present, wz.T @ present, (wz * z).T @ present, wz.T @ z, low, high
        )

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
            a.products + b.products,
            np.fmin(a.low, b.low),
            np.fmax(a.high, b.high),
        )

    def spread(self) -> RealSums:
        """Return the sums of every pair, also where nothing is missing."""
        if not self.complete:
            return self
        m = self.first.size
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
        u, v = (a, b) if self.complete else (a[:, None], b[:, None])
        by_row = self.first[:, None] if self.complete else self.first
        crossed = (a[:, None] * by_row) * b
        return RealSums(
            units,
            self.weight,
            u * self.first + v * self.weight,
            u * u * self.squares + 2.0 * u * v * self.first + v * v * self.weight,
            np.outer(a, a) * self.products + crossed + crossed.T + np.outer(b, b) * self.weight,
            a * self.low + b,
            a * self.high + b,
        )

    # What follows ---------------------------------------------------------------------------

    def column_weights(self) -> FloatArray:
        """Weight of the rows in which each column is present."""
        if isinstance(self.weight, np.ndarray):
            return np.diagonal(self.weight).copy()
        return np.full(self.first.size, self.weight)

    def is_constant(self) -> Any:
        """Whether each column has one value only, but for rounding."""
        shift = np.abs(self.units.shift * self.units.scale)
        noise = 4 * _EPS * (np.maximum(np.abs(self.low), np.abs(self.high)) + shift)
        return self.high - self.low <= noise

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the columns, over their present cells."""
        n = self.column_weights()
        mean = (self.first if self.complete else np.diagonal(self.first)) / n
        square = (self.squares if self.complete else np.diagonal(self.squares)) / n
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return self.units.shift + mean / self.units.scale, spread / self.units.scale

    def same_moments(self) -> tuple[FloatArray, FloatArray]:
        """Return 2m rows and their weight, with the means and covariances of complete columns.

        The likelihood of a Gaussian model, and each step of its EM, depend on nothing else: with
        the covariances Σ_k l_k·l_k', the rows are mean ± √m·l_k.
        """
        assert self.complete
        mean = self.first / self.weight
        covariance = self.products / self.weight - np.outer(mean, mean)
        root = np.sqrt(np.maximum(np.diagonal(covariance), np.finfo(np.float64).tiny))
        values, vectors = np.linalg.eigh(covariance / np.outer(root, root))
        m = mean.size
        rows = np.sqrt(m * np.maximum(values, 0.0))[:, None] * vectors.T * root
        z = mean + np.concatenate([rows, -rows])
        weights = np.full(2 * m, float(self.weight) / (2 * m))
        return self.units.shift + z / self.units.scale, weights

    def correlations(self) -> FloatArray:
        """Return the correlations of all pairs, 0 where a variance is."""
        n, sx, sy, xx, yy = self._pairs()
        with np.errstate(divide="ignore", invalid="ignore"):
            sx, sy, xx, yy, xy = sx / n, sy / n, xx / n, yy / n, self.products / n
            constant = (xx - sx**2 <= 1e-12 * xx) | (yy - sy**2 <= 1e-12 * yy)
            r = (xy - sx * sy) / np.sqrt((xx - sx**2) * (yy - sy**2))
        r[constant | ~np.isfinite(r)] = 0.0
        return np.asarray(r)

    def cosines(self) -> FloatArray:
        """Return correlations that take the means to be 0."""
        around_zero = self.in_units(Units(np.zeros_like(self.units.shift), self.units.scale))
        _, _, _, xx, yy = around_zero._pairs()
        with np.errstate(divide="ignore", invalid="ignore"):
            r = around_zero.products / np.sqrt(xx * yy)
        r[~np.isfinite(r)] = 0.0
        return np.asarray(r)

    def _pairs(self) -> tuple[Any, ...]:
        """Weight, Σ x, Σ y, Σ x², Σ y² of every pair, or what broadcasts to it."""
        s, q = self.first, self.squares
        if self.complete:
            return self.weight, s[:, None], s, q[:, None], q
        return self.weight, s, s.T, q, q.T

"""Outliers: the outermost numbers of a column, where they have nothing to do with other columns.

Ranks limit what outliers do, but outliers keep the most extreme ranks: 1 % of the cells of two
columns still make their correlation as noisy as that of 88 % of the rows. Heavy tails have extreme
values too, and there they tell the most; only the other columns can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc
from threadpoolctl import threadpool_limits

from latentree.data import Table
from latentree.distances._latent_sums import bounded, is_unordered
from latentree.distances._scores import (
    Scores,
    beyond,
    each_column,
    normal_curve,
    normal_score,
)
from latentree.distances._sums import block_product
from latentree.typing import FloatArray, IntArray

FENCE = 3.0
"""Outliers are beyond the quartiles by so many of their distances: Tukey's outer fences."""

UNRELATED = 0.2
"""This share of the numbers in an ordinary tail may be unrelated to other columns."""

FALSE = 0.05
"""False discovery rate: the expected share of columns without outliers among those limited."""

_QUARTILE = 0.674489750196  # of the standard normal distribution
_PARTNERS = 8  # columns that a number is compared with; more tell hardly more of it
_STRONGEST = 0.99  # R² at most


def without_outliers(scores: Scores, table: Table) -> Scores:
    """Return the scores of a copula's columns with limits beyond which numbers count as missing.

    Outliers are far from the other numbers of their column, and unrelated to the other columns.
    With ψ the normal score of a number, and y what the columns most correlated with its column say
    of it, y is drawn from f = N(R·ψ, 1 − R²) in a related row, and from g = N(0, 1) in that of an
    outlier. A fifth may be unrelated in any tail, so that ordinary numbers have the density
    0.8·f + 0.2·g. From the outermost number inward to the fence, ℓ = log(0.8·f + 0.2·g) − log g is
    added up; the numbers up to the lowest sum may be outliers. Of ordinary numbers E[e^(−ℓ)] ≤ 1,
    so that e^(−Σℓ) is a supermartingale, and e to the lowest sum is a p-value. Those of the two
    tails are put together by Fisher's method, and the columns with outliers are chosen by the
    method of Benjamini and Hochberg: where many have outliers, less evidence is needed of each.

    Parameters
    ----------
    scores : Scores
        Of the columns.
    table : Table
        The first part of the rows.

    Returns
    -------
    Scores
        The same if there are no outliers.

    References
    ----------
    J. W. Tukey, *Exploratory Data Analysis*, 1977. J. Ville, *Étude critique de la notion de
    collectif*, 1939. Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", Journal
    of the Royal Statistical Society B 57, 1995.
    """
    weights, values = table.weight_array(), table.values
    fences = np.array([_fences(*curve) for curve in scores.curves]).reshape(-1, 2)
    numbers = np.flatnonzero(scores.numbers)
    far = [
        place
        for place, column in enumerate(numbers.tolist())
        if beyond(values[weights > 0, column], *fences[place]).any()
    ]
    if not far or table.n_columns < 2:
        return scores
    relations = _Relations.of(table, scores)
    tails = [
        _tails(values[:, column], relations.gains(column) * weights, fences[place])
        for place, column in zip(far, numbers[far].tolist(), strict=True)
    ]
    limits, curves = scores.limits.copy(), list(scores.curves)
    for which in _significant([each.p_value for each in tails]):
        place = far[which]
        x = values[:, numbers[place]]
        limits[place] = tails[which].limits
        curves[place] = normal_curve(np.where(beyond(x, *limits[place]), np.nan, x), weights)
    return replace(scores, curves=tuple(curves), limits=limits)


def _fences(knots: FloatArray, heights: FloatArray) -> tuple[float, float]:
    """Return where numbers are far out; nowhere if half of them are equal."""
    low, high = np.interp([-_QUARTILE, _QUARTILE], heights, knots).tolist()
    width = high - low
    return (low - FENCE * width, high + FENCE * width) if width > 0 else (-np.inf, np.inf)


class _Tails(NamedTuple):
    """The innermost numbers of both tails that may be outliers, and how ordinary tails are."""

    limits: tuple[float, float]
    p_value: float


def _tails(x: FloatArray, gain: FloatArray, fences: FloatArray) -> _Tails:
    """Test both tails, by Fisher's method: −log p of an ordinary tail is exponential at most."""
    found = [_innermost(x, gain, fences[0]), _innermost(-x, gain, -fences[1])]
    (low, below), (high, above) = found
    tested = sum(np.isfinite(evidence) for _, evidence in found)
    evidence = max(below, 0.0) + max(above, 0.0)
    return _Tails((low, -high), float(gammaincc(tested, evidence)) if tested else 1.0)


def _innermost(x: FloatArray, gain: FloatArray, fence: float) -> tuple[float, float]:
    """Return the number, from the lowest up to the fence, up to which gains sum to the least.

    With the negative of that sum, or −∞ for both if no number is as low as the fence. Equal numbers
    are outliers or not together; none is one if no sum is negative.
    """
    outer = np.flatnonzero(x <= fence)
    if not outer.size:
        return -np.inf, -np.inf
    outer = outer[np.argsort(x[outer], kind="stable")]
    last = np.flatnonzero(np.diff(x[outer], append=np.inf) > 0)
    sums = np.cumsum(gain[outer])[last]
    lowest = int(sums.argmin())
    if sums[lowest] >= 0.0:
        return -np.inf, 0.0
    return float(x[outer[last[lowest]]]), -float(sums[lowest])


def _significant(p_values: Sequence[float]) -> list[int]:
    """Return the tests that are significant by the method of Benjamini and Hochberg."""
    order = np.argsort(p_values, kind="stable")
    allowed = FALSE * np.arange(1, order.size + 1) / order.size
    good = np.flatnonzero(np.asarray(p_values)[order] <= allowed)
    return sorted(order[: good[-1] + 1].tolist()) if good.size else []


class _Relations(NamedTuple):
    """Bounded normal scores with mean 0 and variance 1, a line a column, and correlations."""

    lines: FloatArray
    r: FloatArray

    @classmethod
    def of(cls, table: Table, scores: Scores) -> _Relations:
        weights = table.weight_array()
        lines = _standard_lines(table, scores, weights)
        scaled = (lines * np.sqrt(weights / weights.sum())).T
        with threadpool_limits(1, "blas"):
            return cls(lines, block_product(scaled, scaled))

    def gains(self, column: int) -> FloatArray:
        """Return ℓ = log(0.8·f + 0.2·g) − log g of every row; 0 if nothing is related."""
        near = self._partners(column)
        own, among = self.r[near, column], self.r[np.ix_(near, near)]
        slopes = np.linalg.solve(among + 1e-3 * np.eye(near.size), own)
        variance = float(slopes @ among @ slopes)
        if variance <= 0.0:
            return np.zeros(self.lines.shape[1])
        share = min(float(slopes @ own) ** 2 / variance, _STRONGEST)
        y = np.zeros(self.lines.shape[1])
        for slope, other in zip(slopes / np.sqrt(variance), near, strict=True):
            y += slope * self.lines[other]
        off = y - np.sqrt(share) * self.lines[column]
        ratio = 0.5 * (y * y - off * off / (1.0 - share) - np.log(1.0 - share))
        return np.asarray(np.logaddexp(np.log(UNRELATED), np.log1p(-UNRELATED) + ratio))

    def _partners(self, column: int) -> IntArray:
        """Return the columns that correlate most with a column."""
        strength = np.abs(self.r[column])
        strength[column] = -1.0
        count = min(_PARTNERS, strength.size - 1)
        return np.sort(np.argsort(-strength, kind="stable")[:count])


def _standard_lines(table: Table, scores: Scores, weights: FloatArray) -> FloatArray:
    """Return a line a column: bounded normal scores, mean 0 and variance 1; 0 where missing."""
    unordered = is_unordered(table.schema)
    total = weights.sum()

    def line(column: int, x: FloatArray) -> FloatArray:
        if unordered[column]:
            return np.zeros(x.size)
        known = scores.numbers[column]
        curve = scores.curves[scores.place[column]] if known else normal_curve(x, weights)
        there = ~np.isnan(x)
        z = np.where(there, bounded(normal_score(x, *curve)), 0.0)
        own = weights[there].sum()
        z -= np.where(there, weights @ z / max(own, 1e-300), 0.0)
        spread = np.sqrt(weights @ z**2 / total)
        return z / spread if spread > 0 else np.zeros(x.size)

    return np.array(each_column(line, table.values))

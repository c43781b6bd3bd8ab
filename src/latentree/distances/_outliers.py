"""Outliers: the outermost numbers of a column, where they have nothing to do with other columns.

Ranks limit what outliers do, but outliers keep the most extreme ranks: 1 % of the cells of two
columns still make their correlation as noisy as that of 88 % of the rows. Heavy tails have extreme
values too, and there they tell the most; only the other columns can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, logsumexp
from threadpoolctl import threadpool_limits

from latentree.data import Table
from latentree.distances._functions import (
    Functions,
    beyond,
    bounded,
    each_column,
    is_unordered,
    normal_curve,
    normal_score,
)
from latentree.distances._lines import block_product
from latentree.typing import FloatArray, IntArray

FENCE = 3.0
"""Outliers are beyond the quartiles by so many of their distances: Tukey's outer fences."""

UNRELATED = 0.2
"""This share of the numbers in an ordinary tail may be unrelated to other columns."""

FALSE = 0.05
"""The expected share of tails without outliers among those that are cut off."""

_QUARTILE = 0.674489750196
"""Φ⁻¹(3/4) of the standard normal distribution."""

_PARTNERS = 8
"""Columns that a number is compared with, the most correlated ones; more hardly raise R²."""

_STRONGEST = 0.99
"""R² is at most this: near 1, f = N(R·ψ, 1 − R²) would take any rounding for an outlier."""

_ROUNDS = 300
"""Steps of EM for the share of tails with outliers; its one parameter has then converged."""


def without_outliers(functions: Functions, table: Table) -> Functions:
    """Return the functions of a copula's columns with limits beyond which numbers count as missing.

    Outliers are far from the other numbers of their column, and unrelated to the other columns.
    With ψ the normal score of a number, and y what the columns most correlated with its column say
    of it, y is drawn from f = N(R·ψ, 1 − R²) in a related row, and from g = N(0, 1) in that of an
    outlier. A fifth may be unrelated in any tail, so that ordinary numbers have the density
    0.8·f + 0.2·g. From the outermost number inward to the fence, ℓ = log(0.8·f + 0.2·g) − log g is
    added up. Of ordinary numbers E[e^(−ℓ)] ≤ 1, so that e^(−Σℓ), the likelihood ratio of a tail of
    outliers, is large by chance only: it exceeds c with a probability of at most 1/c. How many
    tails have outliers is estimated from all of them (empirical Bayes): where most have, less
    evidence is needed of each.

    Parameters
    ----------
    functions : Functions
        Of the columns.
    table : Table
        The first part of the rows.

    Returns
    -------
    Functions
        The same if there are no outliers.

    References
    ----------
    J. W. Tukey, *Exploratory Data Analysis*, 1977. J. Ville, *Étude critique de la notion de
    collectif*, 1939. B. Efron, R. Tibshirani, J. Storey and V. Tusher, "Empirical Bayes analysis of
    a microarray experiment", Journal of the American Statistical Association 96, 2001.
    """
    weights, values = table.weight_array(), table.values
    fences = {
        column: _fences(*curve)
        for column, curve in enumerate(functions.curves)
        if curve is not None
    }
    far = [
        column
        for column, ends in fences.items()
        if beyond(values[weights > 0, column], *ends).any()
    ]
    if not far or table.n_columns < 2:
        return functions
    relations = _Relations.of(table, functions)
    tails = [
        tail
        for column in far
        for tail in _tails(
            column, values[:, column], relations.gains(column) * weights, fences[column]
        )
    ]
    limits, curves = functions.limits.copy(), list(functions.curves)
    for which in _outlying(np.array([tail.evidence for tail in tails])):
        limits[tails[which].column, tails[which].side] = tails[which].limit
    for column in np.flatnonzero(np.isfinite(limits).any(axis=1)).tolist():
        x = values[:, column]
        curves[column] = normal_curve(np.where(beyond(x, *limits[column]), np.nan, x), weights)
    return replace(functions, curves=tuple(curves), limits=limits)


def _fences(knots: FloatArray, heights: FloatArray) -> tuple[float, float]:
    """Return where numbers are far out; nowhere if half of them are equal."""
    low, high = np.interp([-_QUARTILE, _QUARTILE], heights, knots).tolist()
    width = high - low
    return (low - FENCE * width, high + FENCE * width) if width > 0 else (-np.inf, np.inf)


class _Tail(NamedTuple):
    """Numbers of a column that are far out on one side."""

    column: int
    side: int
    limit: float
    """The innermost number that would be an outlier."""
    evidence: float
    """Logarithm of the likelihood of outliers over that of ordinary numbers."""


def _tails(
    column: int, x: FloatArray, gain: FloatArray, fences: tuple[float, float]
) -> Iterator[_Tail]:
    """Yield the tails of a column that have numbers beyond the fences."""
    for side, sign in ((0, 1.0), (1, -1.0)):
        outer = np.flatnonzero(sign * x <= sign * fences[side])
        if outer.size:
            limit, evidence = _innermost(sign * x[outer], gain[outer])
            yield _Tail(column, side, sign * limit, evidence)


def _innermost(x: FloatArray, gain: FloatArray) -> tuple[float, float]:
    """Return up to which number, from the lowest, there are most probably outliers.

    With the logarithm of the likelihood ratio e^(−Σℓ), averaged over all numbers up to which there
    may be some. Equal numbers are outliers or not together.
    """
    order = np.argsort(x, kind="stable")
    last = np.flatnonzero(np.diff(x[order], append=np.inf) > 0)
    sums = np.cumsum(gain[order])[last]
    evidence = float(logsumexp(-sums) - np.log(sums.size))
    return float(x[order[last[sums.argmin()]]]), evidence


def _outlying(evidence: FloatArray) -> list[int]:
    """Return the tails with outliers, by their posterior probabilities.

    The share of such tails is estimated by maximum likelihood, beside one more tail that has none.
    Those with the highest probabilities are chosen as long as their mean is at least 0.95.
    """
    share = 0.5
    for _ in range(_ROUNDS):
        probability = expit(evidence + logit(share))
        share = float(np.clip(probability.sum() / (evidence.size + 1.0), 1e-12, 1.0 - 1e-12))
    order = np.argsort(-probability, kind="stable")
    false = np.cumsum(1.0 - probability[order]) / np.arange(1, order.size + 1)
    return sorted(order[: np.count_nonzero(false <= FALSE)].tolist())


class _Relations(NamedTuple):
    """Bounded normal scores with mean 0 and variance 1, a line per column, and correlations."""

    lines: FloatArray
    r: FloatArray

    @classmethod
    def of(cls, table: Table, functions: Functions) -> _Relations:
        weights = table.weight_array()
        lines = _standard_lines(table, functions, weights)
        scaled = lines * np.sqrt(weights / weights.sum())
        with threadpool_limits(1, "blas"):
            return cls(lines, block_product(scaled, scaled))

    def gains(self, column: int) -> FloatArray:
        """Return ℓ = log(0.8·f + 0.2·g) − log g of every row; 0 if nothing is related."""
        near = self._partners(column)
        own, among = self.r[near, column], self.r[np.ix_(near, near)]
        # y is the regression of the column on its partners, scaled to variance 1. A small ridge
        # keeps it finite where partners are copies of each other.
        slopes = np.linalg.solve(among + 1e-3 * np.eye(near.size), own)
        variance = float(slopes @ among @ slopes)
        if variance <= 0.0:
            return np.zeros(self.lines.shape[1])
        share = min(float(slopes @ own) ** 2 / variance, _STRONGEST)
        y = np.zeros(self.lines.shape[1])
        for slope, other in zip(slopes / np.sqrt(variance), near, strict=True):
            y += slope * self.lines[other]
        # log f/g with f = N(R·ψ, 1 − R²) and g = N(0, 1), both at y.
        off = y - np.sqrt(share) * self.lines[column]
        ratio = 0.5 * (y * y - off * off / (1.0 - share) - np.log(1.0 - share))
        return np.asarray(np.logaddexp(np.log(UNRELATED), np.log1p(-UNRELATED) + ratio))

    def _partners(self, column: int) -> IntArray:
        """Return the columns that correlate most with a column."""
        strength = np.abs(self.r[column])
        strength[column] = -1.0
        count = min(_PARTNERS, strength.size - 1)
        return np.sort(np.argsort(-strength, kind="stable")[:count])


def _standard_lines(table: Table, functions: Functions, weights: FloatArray) -> FloatArray:
    """Return a line per column: bounded normal scores, mean 0 and variance 1; 0 where missing."""
    unordered = is_unordered(table.schema)
    total = weights.sum()

    def line(column: int, x: FloatArray) -> FloatArray:
        if unordered[column]:
            return np.zeros(x.size)
        curve = functions.curves[column] or normal_curve(x, weights)
        there = ~np.isnan(x)
        z = np.where(there, bounded(normal_score(x, *curve)), 0.0)
        own = weights[there].sum()
        z -= np.where(there, weights @ z / max(own, 1e-300), 0.0)
        spread = np.sqrt(weights @ z**2 / total)
        return z / spread if spread > 0 else np.zeros(x.size)

    return np.array(each_column(line, table.values))

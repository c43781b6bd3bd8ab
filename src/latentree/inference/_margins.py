"""How a column shows a standard normal variable: thresholds, a scale, ranks, or odds of labels.

A *margin* says what a column shows of the standard normal variable y behind it. Given its neighbor
in the tree at z, y is N(ρ·z, 1 − ρ²).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, log_softmax, ndtr, ndtri

from latentree.errors import ModelError
from latentree.inference._emissions import (
    Emission,
    Likelihoods,
    Unit,
    interval_probabilities,
    recorded,
)
from latentree.inference._frozen import set_fields
from latentree.typing import FloatArray, IntArray, Kind

Tail = tuple[float, float]
"""Scale σ and shape ξ of a Pareto tail; a scale of 0 is a bound."""

FARTHEST = 8.0
"""Scores beyond this stand at the ends of bounded columns: Φ(−8) is 6·10⁻¹⁶."""

HEAVIEST_TAIL = 0.9
"""Largest shape ξ of a tail: with 1 it would have no mean to fit by."""

_OVER = -1.0 + 1e-12  # of ξ·d/σ: what lies beyond the end of a bounded tail stands at its end

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
"""log φ(x) = −½·x² − ½·log 2π."""

_MOST_HALVINGS = 60  # of an interval, which is then as narrow as numbers allow
_SCORE_ROUNDING = 1e-12  # by which a quantile of y may be off


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds:
    """Ordered answers: level k where y lies between thresholds k − 1 and k.

    Parameters
    ----------
    thresholds : array of float
        Ascending, one fewer than levels.

    Examples
    --------
    >>> from latentree.inference import Thresholds
    >>> Thresholds([-1.0, 0.0]).probabilities().round(3)
    array([0.159, 0.341, 0.5  ])
    """

    thresholds: FloatArray

    resolution = 1.0

    def __init__(self, thresholds: ArrayLike) -> None:
        found = _checked(thresholds, "thresholds")
        if (np.diff(found) <= 0).any():
            raise ModelError(f"thresholds must ascend, got {found.tolist()}")
        set_fields(self, thresholds=found)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return self.thresholds.size + 1

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.thresholds.size

    def table(self, points: FloatArray, rho: float) -> FloatArray:
        """Return P(level | z) for neighbors at some points.

        Parameters
        ----------
        points : array of float
        rho : float

        Returns
        -------
        array of shape (points.size, n_levels)
        """
        spread = np.sqrt(1.0 - rho * rho)
        bounds = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        u = (bounds - rho * points[:, None]) / spread
        return interval_shares(u[:, :-1], u[:, 1:])

    def probabilities(self) -> FloatArray:
        """Return the shares of the levels.

        Returns
        -------
        array of float
        """
        return np.asarray(self.table(np.zeros(1), 0.0)[0])

    def value(self, y: FloatArray) -> FloatArray:
        """Return the levels 0, 1, … of values of the normal variable.

        Parameters
        ----------
        y : array of float

        Returns
        -------
        array of float
        """
        return np.searchsorted(self.thresholds, y).astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Odds:
    """Labels without an order: P(c | z) ∝ exp(a_c + b_c·z) of the neighbor's z.

    Parameters
    ----------
    intercepts, slopes : array of float, one per label
        Up to a common number, which is taken off.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.inference import Odds
    >>> Odds([0.0, 0.0], [0.0, 2.0]).table(np.array([-1.0, 0.0, 1.0]), 1.0).round(2)
    array([[0.88, 0.12],
           [0.5 , 0.5 ],
           [0.12, 0.88]])
    """

    intercepts: FloatArray
    slopes: FloatArray

    resolution = 1.0

    def __init__(self, intercepts: ArrayLike, slopes: ArrayLike) -> None:
        a, b = _checked(intercepts, "intercepts"), _checked(slopes, "slopes")
        if a.shape != b.shape or a.size < 2:
            raise ModelError(f"labels need as many intercepts as slopes, got {a.size} and {b.size}")
        set_fields(self, intercepts=a - a[0], slopes=b - b[0])

    @property
    def n_levels(self) -> int:
        """Number of labels."""
        return self.intercepts.size

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return 2 * (self.n_levels - 1)

    def table(self, points: FloatArray, rho: float = 1.0) -> FloatArray:
        """Return P(label | z) for neighbors at some points; ``rho`` is not used.

        Parameters
        ----------
        points : array of float
        rho : float

        Returns
        -------
        array of shape (points.size, n_levels)
        """
        odds = self.intercepts + self.slopes * points[:, None]
        return np.asarray(np.exp(log_softmax(odds, axis=1)))

    def strength(self, points: FloatArray, weights: FloatArray) -> float:
        """Return the correlation of the label's mean scores with z.

        Parameters
        ----------
        points, weights : array of float
            A grid of the standard normal distribution.

        Returns
        -------
        float
            √Σ P(c)·E[z | c]².
        """
        joint = weights[:, None] * self.table(points)
        share = joint.sum(axis=0)
        mean = points @ joint / np.maximum(share, 1e-300)
        return float(min(np.sqrt(share @ mean**2), 1.0 - 1e-9))


@dataclass(frozen=True, eq=False, repr=False)
class NormalMargin:
    """A normal number: mean + sd·y.

    Parameters
    ----------
    mean, sd : float
    resolution : float
        How precisely values are recorded; 0 if the likelihood is a density.
    origin : float
        Recorded values are whole numbers of steps away from it.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.inference import NormalMargin
    >>> NormalMargin(100.0, 15.0).score(np.array([130.0]))
    array([2.])
    """

    mean: float
    sd: float
    resolution: float = 0.0
    origin: float = 0.0

    kind: ClassVar[Kind] = "real"
    n_parameters: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean) and np.isfinite(self.sd) and self.sd > 0):
            raise ModelError(f"a normal margin has mean {self.mean} and sd {self.sd}")

    def score(self, x: FloatArray) -> FloatArray:
        """Return the normal variable of values.

        Parameters
        ----------
        x : array of float

        Returns
        -------
        array of float
        """
        return np.asarray((x - self.mean) / self.sd)

    def value(self, y: FloatArray) -> FloatArray:
        """Return the values of the normal variable.

        Parameters
        ----------
        y : array of float

        Returns
        -------
        array of float
        """
        return np.asarray(self.mean + self.sd * y)

    def log_slope(self, x: FloatArray) -> FloatArray:
        """Return log dy/dx at values.

        Parameters
        ----------
        x : array of float

        Returns
        -------
        array of float
        """
        return np.full(np.shape(x), -np.log(self.sd))


@dataclass(frozen=True, eq=False, repr=False)
class RankMargin:
    """A number on a scale of its own: linear between quantiles, Pareto in the tails.

    Parameters
    ----------
    values, scores : array of float
        Quantiles, and the values of y there; both ascend. y is linear between them.
    tails : two pairs of floats
        Scale σ and shape ξ < 1 of the distances d beyond the first and the last value:
        P(more than d) ∝ (1 + ξ·d/σ)^(−1/ξ), up to −σ/ξ if ξ is negative. A scale of 0 is a bound.
    resolution : float
        How precisely values are recorded; 0 if the likelihood is a density.
    kind : {"real", "count"}
    origin : float
        Recorded values are whole numbers of steps away from it.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.inference import RankMargin
    >>> incomes = np.exp(np.random.default_rng(0).standard_normal(10_000))
    >>> margin = RankMargin.of(incomes)
    >>> margin.score(np.array([1.0, np.e])).round(1)
    array([0., 1.])
    """

    values: FloatArray
    scores: FloatArray
    tails: tuple[Tail, Tail]
    resolution: float
    kind: Kind
    origin: float

    def __init__(
        self,
        values: ArrayLike,
        scores: ArrayLike,
        tails: Iterable[Sequence[float]] = ((1.0, 0.0), (1.0, 0.0)),
        resolution: float = 0.0,
        kind: Kind = "real",
        origin: float = 0.0,
    ) -> None:
        x, z = _checked(values, "values"), _checked(scores, "scores")
        if x.shape != z.shape or (np.diff(x) <= 0).any() or (np.diff(z) <= 0).any():
            raise ModelError("values and scores of a margin must ascend, as many of the one as of "
                             "the other")  # fmt: skip
        ends = tuple((float(scale), float(shape)) for scale, shape in tails)
        if len(ends) != 2 or not all(s >= 0 and shape < 1 for s, shape in ends):
            raise ModelError(f"tails of a margin are {ends}")
        set_fields(
            self, values=x, scores=z, tails=ends, resolution=float(resolution), kind=kind,
            origin=float(origin),
        )  # fmt: skip

    @classmethod
    def of(
        cls,
        x: ArrayLike,
        weights: ArrayLike | None = None,
        resolution: float = 0.0,
        kind: Kind = "real",
        origin: float = 0.0,
    ) -> RankMargin:
        """Estimate a margin.

        Parameters
        ----------
        x : array of float
            Values; NaN where missing.
        weights : array of float, optional
        resolution, origin : float
        kind : {"real", "count"}
            Counts are bounded by −½ from below.

        Returns
        -------
        RankMargin
            Of about 2·n^⅓ quantiles: between two of them lie enough values to know the density.
            Where no value is negative, none is possible.
        """
        cells = np.asarray(x, np.float64)
        w = np.ones(cells.size) if weights is None else np.asarray(weights, np.float64)
        there = ~np.isnan(cells) & (w > 0)
        values, inverse = np.unique(cells[there], return_inverse=True)
        if values.size < 2:
            raise ModelError("a margin needs two different values")
        weight = np.bincount(inverse, w[there])
        edges, share = 0.5 * (values[1:] + values[:-1]), np.cumsum(weight)[:-1] / weight.sum()
        chosen = _knots(share, weight.sum())
        low, high = edges[chosen[0]], edges[chosen[-1]]
        upper = _tail(values[values > high] - high, weight[values > high])
        if kind == "count":
            lower, first, score = (0.0, 0.0), [-0.5], [-FARTHEST]
        else:
            below = values < low
            lower = _tail(
                low - values[below][::-1], weight[below][::-1], low if values[0] >= 0 else np.inf
            )
            first, score = [], []
        knots = np.concatenate([first, edges[chosen]])
        return cls(knots, np.concatenate([score, ndtri(share[chosen])]), (lower, upper),
                   resolution, kind, origin)  # fmt: skip

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: a value for each quantile, and two for each open end."""
        return self.values.size + sum(2 for scale, _ in self.tails if scale > 0)

    def score(self, x: FloatArray) -> FloatArray:
        """Return the normal variable of values; NaN stays NaN.

        Parameters
        ----------
        x : array of float

        Returns
        -------
        array of float
        """
        x = np.asarray(x, np.float64)
        y = np.interp(x, self.values, self.scores)
        for side, end, (scale, shape) in self._sides():
            out = side * (x - self.values[end]) > 0
            beyond = side * (x[out] - self.values[end])
            y[out] = side * self._tail_score(beyond, end, scale, shape)
        return np.where(np.isnan(x), np.nan, y)

    def _sides(self) -> Iterable[tuple[float, int, Tail]]:
        """Return the sign, the place of the last value, and the tail of both ends."""
        return ((-1.0, 0, self.tails[0]), (1.0, -1, self.tails[1]))

    def _tail_score(self, beyond: FloatArray, end: int, scale: float, shape: float) -> FloatArray:
        if scale == 0.0:
            return np.full(beyond.shape, FARTHEST + 1.0)
        d = beyond / scale
        logs = -d if shape == 0.0 else -np.log1p(np.maximum(shape * d, _OVER)) / shape
        share = ndtr(self._outward(end)) * np.exp(logs)
        return np.asarray(-ndtri(np.maximum(share, 1e-300)))

    def _outward(self, end: int) -> float:
        """Return the score whose Φ is the share of values beyond an end."""
        return float(-self.scores[end] if end else self.scores[end])

    def value(self, y: FloatArray) -> FloatArray:
        """Return the values of the normal variable.

        Parameters
        ----------
        y : array of float

        Returns
        -------
        array of float
            Counts are whole numbers.
        """
        x = self.line(y)
        return np.maximum(np.rint(x), 0.0) if self.kind == "count" else x

    def line(self, y: FloatArray) -> FloatArray:
        """Return the values of the normal variable, those of counts not rounded.

        Parameters
        ----------
        y : array of float

        Returns
        -------
        array of float
        """
        y = np.asarray(y, np.float64)
        x = np.interp(y, self.scores, self.values)
        for side, end, (scale, shape) in self._sides():
            out = side * (y - self.scores[end]) > 0
            if scale > 0.0 and out.any():
                logs = log_ndtr(-side * y[out]) - log_ndtr(self._outward(end))
                d = -logs if shape == 0.0 else np.expm1(-shape * logs) / shape
                x[out] = self.values[end] + side * scale * d
        return x

    def log_slope(self, x: FloatArray) -> FloatArray:
        """Return log dy/dx at values.

        Parameters
        ----------
        x : array of float

        Returns
        -------
        array of float
        """
        x = np.asarray(x, np.float64)
        slopes = np.diff(self.scores) / np.diff(self.values)
        place = np.clip(np.searchsorted(self.values, x) - 1, 0, slopes.size - 1)
        out = np.log(slopes[place]) if slopes.size else np.zeros(x.shape)
        y = self.score(x)
        for side, end, (scale, shape) in self._sides():
            beyond = side * (x - self.values[end]) > 0
            if scale > 0.0 and beyond.any():
                d = side * (x[beyond] - self.values[end]) / scale
                inside = np.maximum(shape * d, _OVER)
                logs = -d if shape == 0.0 else -np.log1p(inside) * (1.0 + 1.0 / shape)
                # dS/dx = −S₀/σ·(1 + ξd)^(−1/ξ − 1), and dy/dx = −dS/dx/φ(y).
                own = log_ndtr(self._outward(end)) - np.log(scale) + logs
                out[beyond] = own + 0.5 * y[beyond] ** 2 + _HALF_LOG_2PI
        return out


NumberMargin = NormalMargin | RankMargin
"""The margin of a column of numbers: y is a function of the value."""

MIDDLE = (float(ndtr(-1.0)), 0.5, float(ndtr(1.0)))
"""Shares of values below the 16 % quantile, the median and the 84 % quantile: y = −1, 0, 1."""

Margin = Thresholds | Odds | NumberMargin
"""What a column shows of the normal variable behind it."""


@dataclass(frozen=True, eq=False, repr=False)
class ScoreEmission(Emission):
    """Numbers for every state of a hidden normal variable on a grid.

    Parameters
    ----------
    margin : NormalMargin or RankMargin
    points : array of float
        The neighbor's z of every state.
    rho : float

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.inference import RankMargin, ScoreEmission
    >>> margin = RankMargin([0.5, 1.5, 3.5], [-0.5, 0.5, 1.0], resolution=1.0)
    >>> ScoreEmission(margin, np.array([-1.0, 1.0]), 0.9).mean.round(2)
    array([-0.02,  3.1 ])
    """

    margin: NumberMargin
    points: FloatArray
    rho: float

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """What the column holds."""
        return self.margin.kind

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.margin.n_parameters + 1

    @property
    def _spread(self) -> float:
        return float(np.sqrt(1.0 - self.rho**2))

    @cached_property
    def mean(self) -> FloatArray:
        """Median of the values for every state."""
        return self.margin.value(self.rho * self.points)

    @cached_property
    def variance(self) -> FloatArray:
        """Square of half the distance between the 16 % and 84 % quantiles of every state."""
        low, high = (self.margin.value(self.rho * self.points + s * self._spread) for s in (-1, 1))
        return np.asarray((0.5 * (high - low)) ** 2)

    def mixture(self, weights: FloatArray) -> ScoreMixture:
        """Return the distributions of values for rows of weights of the states.

        Parameters
        ----------
        weights : array of shape (n_rows, n_states)

        Returns
        -------
        ScoreMixture
        """
        spread = np.full(1, self._spread)
        return ScoreMixture(self.margin, weights, self.rho * self.points, spread)

    def moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what :meth:`ScoreMixture.moments` does, for rows of weights of the states.

        Parameters
        ----------
        weights : array of float, one per state along its last axis

        Returns
        -------
        tuple of arrays
        """
        center, spread = self.mixture(np.atleast_2d(weights)).moments()
        shape = weights.shape[:-1]
        return center.reshape(shape), spread.reshape(shape)

    @property
    def resolution(self) -> float:
        """How precisely values are recorded."""
        return self.margin.resolution

    def likelihoods(self, values: FloatArray, room: FloatArray | None = None) -> Likelihoods:
        """Return log-probabilities, and the ends of the values' cells as values of y."""
        del room
        half, mean = 0.5 * self.resolution, self.rho * self.points[:, None]
        low, high = (self.margin.score(values + side * half) for side in (-1, 1))
        out = log_interval((low - mean) / self._spread, (high - mean) / self._spread)
        return Likelihoods(np.where(np.isnan(values), 0.0, out), (low, high))

    def expected(
        self, values: FloatArray, weights: FloatArray, within: Any, unit: Unit
    ) -> FloatArray:
        """Return Σ w, Σ w·E[y], Σ w·E[y²] of the normal variable y at every point."""
        del unit
        there, spread = ~np.isnan(values), self._spread
        mean = self.rho * self.points[:, None]
        low, high = (end[there] for end in within)
        first, second = interval_moments((low - mean) / spread, (high - mean) / spread)
        w, y = weights[:, there], mean + spread * first
        square = mean**2 + 2.0 * mean * spread * first + spread**2 * second
        return np.stack([w.sum(axis=1), (w * y).sum(axis=1), (w * square).sum(axis=1)])

    def sample(self, states: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value for each of some states.

        Parameters
        ----------
        states : array of int
        rng : numpy.random.Generator

        Returns
        -------
        array of float
        """
        drawn = rng.normal(self.rho * self.points[states], self._spread)
        return recorded(self.margin.value(drawn), self.resolution, self.margin.origin)

    def cells(self) -> FloatArray:
        """Return probabilities of intervals that cover the line: a table to measure by.

        Returns
        -------
        array of float, one row per state
        """
        edges = np.linspace(-4.0, 4.0, 63)
        below = ndtr((edges - self.rho * self.points[:, None]) / self._spread)
        return interval_probabilities(below)


class ScoreMixture(NamedTuple):
    """Distributions of numbers, one per row, whose normal variable is a mixture of normal ones."""

    margin: NumberMargin
    weights: FloatArray
    """One per component, in every row."""
    centers: FloatArray
    """Means of the components of y, in every row or for all rows."""
    spreads: FloatArray
    """Their standard deviations."""

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of normal numbers, median and squared spread of others.

        The spread of a rank margin is half the distance between the 16 % and 84 % quantiles, which
        are a standard deviation away from the median of a normal distribution.
        """
        margin = self.margin
        if isinstance(margin, RankMargin):
            low, middle, high = (margin.value(self.scores(share)) for share in MIDDLE)
            return middle, (0.5 * (high - low)) ** 2
        first = (self.weights * self.centers).sum(axis=1)
        away = self.centers - first[:, None]
        second = (self.weights * (self.spreads**2 + away**2)).sum(axis=1)
        return margin.value(first), margin.sd**2 * second

    def below(self, values: FloatArray) -> FloatArray:
        """Return the probability of less than a value in every row."""
        return self._below(self.margin.score(values))

    def _below(self, y: FloatArray) -> FloatArray:
        u = (y[:, None] - self.centers) / self.spreads
        return np.asarray((self.weights * ndtr(u)).sum(axis=1))

    def scores(self, share: float) -> FloatArray:
        """Return the y of every row below which y lies with some probability; NaN stays NaN.

        Newton's steps, and half the way where they leave what is known to hold the y.
        """
        outward = self.centers + ndtri(share) * self.spreads  # of the components
        wide = np.broadcast_to(outward, self.weights.shape)
        low, high = wide.min(axis=1), wide.max(axis=1)
        y = (self.weights * wide).sum(axis=1)
        for _ in range(_MOST_HALVINGS):
            u = (y[:, None] - self.centers) / self.spreads
            missing = share - (self.weights * ndtr(u)).sum(axis=1)
            low, high = np.where(missing > 0, y, low), np.where(missing > 0, high, y)
            slope = (self.weights * np.exp(-0.5 * u * u - _HALF_LOG_2PI) / self.spreads).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                tried = y + missing / slope
            inside = (low <= tried) & (tried <= high)
            following = np.where(inside, tried, 0.5 * (low + high))
            moved, y = np.abs(following - y), following
            if np.nanmax(moved, initial=0.0) < _SCORE_ROUNDING:
                break
        return np.where(np.isnan(missing), np.nan, y)


def mixed_quantiles(parts: Sequence[ScoreMixture], weights: FloatArray, share: float) -> FloatArray:
    """Return the values below which mixtures of distributions have some probability, row by row.

    ``weights`` has a column for every one of ``parts``. A quantile of a mixture lies between those
    of its parts.
    """
    # A part without weight may not know the row.
    ends = [_line(part.margin, part.scores(share)) for part in parts]
    known = np.where(weights > 0, np.stack(ends, axis=1), np.nan)
    low, high = np.fmin.reduce(known, axis=1), np.fmax.reduce(known, axis=1)
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (low + high)
        below = np.stack([part.below(middle) for part in parts], axis=1)
        is_low = np.where(weights > 0, weights * below, 0.0).sum(axis=1) < share
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    found: FloatArray = 0.5 * (low + high)
    return np.maximum(np.rint(found), 0.0) if parts[0].margin.kind == "count" else found


def _line(margin: NumberMargin, y: FloatArray) -> FloatArray:
    return margin.line(y) if isinstance(margin, RankMargin) else margin.value(y)


def interval_shares(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return Φ(high) − Φ(low) by the tail that is nearer: no digits are lost."""
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


def log_interval(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return log(Φ(high) − Φ(low)), precise in both tails."""
    turned = low + high > 0  # Φ(b) − Φ(a) = Φ(−a) − Φ(−b)
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        top = log_ndtr(b)
        out = top + np.log1p(-np.exp(np.minimum(log_ndtr(a) - top, 0.0)))
        # Of narrow intervals the density at the middle says it: no digits are lost.
        middle = 0.5 * (a + b)
        narrow = np.log(b - a) - 0.5 * middle**2 - _HALF_LOG_2PI
    return np.asarray(np.where((b - a < 1e-3) & np.isfinite(middle), narrow, out))


def interval_moments(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return E[u] and E[u²] of a standard normal variable between two numbers."""
    logs = log_interval(low, high)
    with np.errstate(invalid="ignore", over="ignore"):
        a, b = (np.exp(-0.5 * u**2 - _HALF_LOG_2PI - logs) for u in (low, high))
        ends = [np.where(np.isfinite(u), u, 0.0) for u in (low, high)]
        first = np.clip(a - b, low, high)
        second = 1.0 + ends[0] * a - ends[1] * b
        middle, width = 0.5 * (low + high), high - low
        narrow = width < 1e-2
        first = np.where(narrow, middle, first)
        second = np.where(narrow, middle**2 + width**2 / 12.0, np.maximum(second, first**2))
    return first, second


def _knots(share: FloatArray, n: float) -> IntArray:
    """Numbers of the edges whose shares of values below come next to evenly spaced scores."""
    count = max(5, round(2.0 * n ** (1.0 / 3.0)))
    tail = min(max(0.05, 10.0 / n), 0.25)  # a twentieth, with ten values to fit a tail to
    wanted = ndtr(np.linspace(ndtri(tail), ndtri(1.0 - tail), count))
    places = np.searchsorted(share, wanted).clip(0, share.size - 1)
    before = np.maximum(places - 1, 0)
    nearer = np.abs(share[before] - wanted) < np.abs(share[places] - wanted)
    return np.unique(np.where(nearer, before, places))


def _tail(distances: FloatArray, weights: FloatArray, longest: float = np.inf) -> Tail:
    """Return scale and shape of a tail by probability-weighted moments (Hosking and Wallis 1987).

    With a₀ = E[d] and a₁ = E[d·(1 − F)]: ξ = 2 − a₀/(a₀ − 2·a₁), kept from 0 to 0.9, and
    σ = a₀·(1 − ξ). If distances are bounded, ξ = −σ/longest.
    """
    if not distances.size:
        return 1.0, 0.0
    if np.isfinite(longest):
        mean = float(weights @ distances / weights.sum())
        scale = mean / (1.0 - min(mean / longest, 0.9))
        return scale, -scale / longest
    share = weights / weights.sum()
    above = 1.0 - np.cumsum(share) + 0.5 * share
    a0, a1 = float(share @ distances), float(share @ (distances * above))
    shape = 2.0 - a0 / (a0 - 2.0 * a1) if a0 > 2.0 * a1 else 0.0
    shape = float(np.clip(shape, 0.0, HEAVIEST_TAIL))
    return max(a0 * (1.0 - shape), 1e-300), shape


def _checked(values: ArrayLike, what: str) -> FloatArray:
    array = np.array(values, np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise ModelError(f"{what} of a margin must be finite numbers, got {array.tolist()}")
    return array

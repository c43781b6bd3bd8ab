"""What EM estimates of each node of a Gaussian tree behind margins, one class for a kind of node.

A node has coordinates in the point that EM moves. Its class says what they mean, keeps them within
limits, and fits them to what an E-step has counted on the grid of points z:

- an edge of two hidden variables, or a number on a scale of its own: the correlation of its
  counts, a root of a cubic;
- ordered answers: a probit regression on z, P(level ≤ k | z) = Φ(α_k − β·z), so that
  τ_k = α_k/√(1 + β²) and ρ = β/√(1 + β²);
- labels without an order: a logit regression on z;
- normal numbers: a linear regression on z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, ndtri

from latentree._kernels.distances import latent as pair_kernels
from latentree.inference import (
    Margin,
    NormalMargin,
    Odds,
    RankMargin,
    Thresholds,
    interval_shares,
)
from latentree.models import LEAST_PROBABILITY, POINTS
from latentree.typing import FloatArray

LARGEST = 0.98
"""Largest correlation: up to it the grid is precise to 10⁻⁴ a row."""

_LARGEST_Z = float(np.arctanh(LARGEST))
_LARGEST_SLOPE = LARGEST / float(np.sqrt(1.0 - LARGEST**2))
_LARGEST_ODDS = 8.0  # slope of a label's log-odds
_SCORING = 3  # steps of Fisher's scoring in an M-step
_LEAST_GAP = 1e-4  # between two thresholds
_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


class EdgeAndMargin(NamedTuple):
    """What a point says of a node: the correlation with its parent, and its margin."""

    rho: float
    margin: Any


@dataclass(frozen=True)
class Coordinates:
    """Coordinates of a node: artanh ρ of the edge above it, if there is one.

    Attributes
    ----------
    margin : Margin or None
        Of the column alone; None for a hidden variable.
    above : str
        What is above the node: "hidden", "column" or "nothing".
    center, scale : float
        Mean and standard deviation of a column of numbers.
    """

    margin: Any
    above: str
    center: float = 0.0
    scale: float = 1.0

    @property
    def alone(self) -> bool:
        """Whether nothing is above the node."""
        return self.above == "nothing"

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(not self.alone)

    def point(self, rho: float, margin: Any) -> Any:
        """Return the coordinates of a correlation and a margin."""
        del margin
        return [np.arctanh(rho)][: self.size]

    def read(self, own: FloatArray) -> EdgeAndMargin:
        """Return what coordinates mean."""
        return EdgeAndMargin(np.tanh(own[0]) if own.size else 0.0, self.margin)

    def limit(self, own: FloatArray, near: FloatArray) -> None:
        """Keep coordinates within their limits, in place; ``near`` are some that are."""
        del near
        np.clip(own, -_LARGEST_Z, _LARGEST_Z, out=own)

    def fit(self, counts: FloatArray, own: FloatArray) -> None:
        """Fit the coordinates, in place, to counts, or to the sums of a column of numbers."""
        own[0] = np.arctanh(fitted_correlation(*_moments_of(counts)))


class RankCoordinates(Coordinates):
    """A number on a scale of its own: artanh ρ."""

    def fit(self, counts: FloatArray, own: FloatArray) -> None:
        """Fit the correlation."""
        n, one, two = counts
        if own.size:
            moments = (n.sum(), float(POINTS**2 @ n), float(POINTS @ one), two.sum())
            own[0] = np.arctanh(fitted_correlation(*moments))


class OrderedCoordinates(Coordinates):
    """Ordered answers: α and β; without a neighbor the thresholds."""

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(self.margin.thresholds.size) + (not self.alone)

    def point(self, rho: float, margin: Any) -> Any:
        """Return (τ, ρ)/√(1 − ρ²)."""
        found = margin.thresholds if self.alone else np.append(margin.thresholds, rho)
        return found / (1.0 if self.alone else np.sqrt(1.0 - rho * rho))

    def read(self, own: FloatArray) -> EdgeAndMargin:
        """Return ρ and thresholds."""
        if self.alone:
            return EdgeAndMargin(0.0, Thresholds(own))
        scale = np.sqrt(1.0 + own[-1] ** 2)
        return EdgeAndMargin(own[-1] / scale, Thresholds(own[:-1] / scale))

    def limit(self, own: FloatArray, near: FloatArray) -> None:
        """Keep thresholds ascending, and the slope within reach of the grid."""
        last = self.margin.thresholds.size
        if (np.diff(own[:last]) < _LEAST_GAP).any():
            own[:] = near
        own[last:] = np.clip(own[last:], -_LARGEST_SLOPE, _LARGEST_SLOPE)

    def fit(self, counts: FloatArray, own: FloatArray) -> None:
        """Fit a probit regression; of two columns alone thresholds and polychoric correlation."""
        if self.above == "hidden":
            own[:] = fitted_probit(counts, POINTS, own)
            return
        margin = ascending(ndtri(np.cumsum(counts.sum(axis=0))[:-1] / counts.sum()))
        rho = 0.0 if self.alone else pair_kernels.polychoric(counts, False)[0]
        own[:] = self.point(float(np.clip(rho, -LARGEST, LARGEST)), Thresholds(margin))


class OddsCoordinates(Coordinates):
    """Labels: log-odds to the first label, and their slopes if there is a neighbor."""

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return (int(self.margin.n_levels) - 1) * (1 if self.alone else 2)

    def point(self, rho: float, margin: Any) -> Any:
        """Return intercepts and slopes."""
        del rho
        return np.concatenate([margin.intercepts[1:], margin.slopes[1:]])[: self.size]

    def read(self, own: FloatArray) -> EdgeAndMargin:
        """Return the odds."""
        own = np.pad(own, (0, 2 * (self.margin.n_levels - 1) - own.size))
        a, b = (np.append(0.0, half) for half in np.split(own, 2))
        return EdgeAndMargin(0.0, Odds(a, b))

    def limit(self, own: FloatArray, near: FloatArray) -> None:
        """Keep slopes within limits."""
        del near
        slopes = own[self.margin.n_levels - 1 :]
        np.clip(slopes, -_LARGEST_ODDS, _LARGEST_ODDS, out=slopes)

    def fit(self, counts: FloatArray, own: FloatArray) -> None:
        """Fit a logit regression, or the shares of the labels."""
        if not self.alone:
            own[:] = fitted_logit(counts, POINTS, own)
            return
        share = np.maximum(counts[0], 1e-6)
        own[:] = np.log(share[1:] / share[0])


class NormalCoordinates(Coordinates):
    """A normal number: (μ − m)/s, log(σ/s), artanh ρ, with the column's m and s."""

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return 2 if self.alone else 3

    def point(self, rho: float, margin: Any) -> Any:
        """Return mean, spread and correlation in units of the column."""
        center, scale = self.center, self.scale
        found = [(margin.mean - center) / scale, np.log(margin.sd / scale), np.arctanh(rho)]
        return found[: self.size]

    def read(self, own: FloatArray) -> EdgeAndMargin:
        """Return ρ, mean and spread."""
        mean, sd = self.center + self.scale * own[0], self.scale * np.exp(own[1])
        rho = 0.0 if self.alone else np.tanh(own[2])
        return EdgeAndMargin(rho, replace(self.margin, mean=mean, sd=sd))

    def limit(self, own: FloatArray, near: FloatArray) -> None:
        """Keep the correlation within reach of the grid."""
        own[2:] = np.clip(own[2:], -_LARGEST_Z, _LARGEST_Z)

    def fit(self, counts: FloatArray, own: FloatArray) -> None:
        """Fit a linear regression."""
        n, one, two = counts
        points = POINTS if n.size > 1 else np.zeros(1)
        total, sx = n.sum(), one.sum()
        sg, sgg, sgx = points @ n, points**2 @ n, points @ one
        spread = total * sgg - sg * sg
        slope = (total * sgx - sg * sx) / spread if n.size > 1 else 0.0
        start = (sx - slope * sg) / total
        rest = max((two.sum() - start * sx - slope * sgx) / total, 1e-8)
        sd = np.sqrt(slope**2 + rest)
        if abs(slope) > LARGEST * sd:
            slope = _steepest(total, sgx - sg * sx / total, two.sum() - sx * sx / total)
            start, sd = (sx - slope * sg) / total, abs(slope) / LARGEST
        # In the units of the last margin: its mean and sd are own[0] and exp(own[1]).
        rho = np.clip(slope / sd, -LARGEST, LARGEST)
        found = [own[0] + np.exp(own[1]) * start, own[1] + np.log(sd), np.arctanh(rho)]
        own[:] = found[: own.size]


def _steepest(n: float, covariance: float, square: float) -> float:
    """Return the most likely slope b of a regression whose correlation is the largest one, L.

    The variance of the rest is c²·b² with c² = 1/L² − 1, and n·c²·b² + Σzx·b − Σx² = 0.
    """
    c2 = 1.0 / LARGEST**2 - 1.0
    size = abs(covariance)
    slope = (np.sqrt(size**2 + 4.0 * n * c2 * square) - size) / (2.0 * n * c2)
    return float(np.copysign(slope, covariance))


_KINDS: dict[type, type[Coordinates]] = {
    Thresholds: OrderedCoordinates,
    Odds: OddsCoordinates,
    NormalMargin: NormalCoordinates,
    RankMargin: RankCoordinates,
}


def coordinates_of(
    margin: Margin | None, above: str, center: float = 0.0, scale: float = 1.0
) -> Coordinates:
    """Return the coordinates of a node: a hidden one (None), or a column with a margin."""
    return _KINDS.get(type(margin), Coordinates)(margin, above, center, scale)


def ascending(thresholds: FloatArray) -> FloatArray:
    """Keep thresholds finite, and a little apart."""
    limited = np.clip(thresholds, -8.0, 8.0)
    steps = np.arange(limited.size) * _LEAST_GAP
    return np.asarray(np.maximum.accumulate(limited - steps) + steps)


def _moments_of(counts: FloatArray) -> tuple[float, float, float, float]:
    """Σ 1, Σ z², Σ z·z', Σ z'² of counts of pairs of points."""
    above, below = counts.sum(axis=1), counts.sum(axis=0)
    square = POINTS**2
    return (
        float(above.sum()),
        float(square @ above),
        float(POINTS @ counts @ POINTS),
        float(square @ below),
    )


def fitted_correlation(n: float, xx: float, xy: float, yy: float) -> float:
    """Return the most likely correlation of two standard normal variables from their moments.

    A root of n·ρ³ − Σxy·ρ² + (Σx² + Σy² − n)·ρ − Σxy = 0, the one of highest likelihood.
    """
    if n <= 0.0:
        return 0.0
    roots = np.roots([n, -xy, xx + yy - n, -xy])
    inside = roots[np.abs(roots.imag) < 1e-9].real
    real = np.clip([*inside, -LARGEST, LARGEST], -LARGEST, LARGEST)
    rest = 1.0 - real**2
    likelihood = -0.5 * n * np.log(rest) - 0.5 * (xx - 2.0 * real * xy + real**2 * yy) / rest
    return float(real[likelihood.argmax()])


def fitted_probit(counts: FloatArray, points: FloatArray, start: FloatArray) -> FloatArray:
    """Raise the likelihood of levels given points by Fisher's scoring.

    ``start`` and what is returned are α and β of P(level ≤ k | z) = Φ(α_k − β·z).
    """
    total = counts.sum(axis=1)

    def cells(own: FloatArray) -> tuple[FloatArray, FloatArray]:
        u = own[:-1] - own[-1] * points[:, None]
        ends = np.pad(u, ((0, 0), (1, 1)), constant_values=np.inf)
        ends[:, 0] = -np.inf
        shares = interval_shares(ends[:, :-1], ends[:, 1:])
        return np.maximum(shares, LEAST_PROBABILITY), np.exp(-0.5 * u * u) / _ROOT_2PI

    def derivatives(density: FloatArray) -> FloatArray:
        """∂P(level | z)/∂(α, β), one row per level."""
        levels = density.shape[1] + 1
        out = np.zeros((points.size, levels, levels))
        place = np.arange(levels - 1)
        out[:, place, place], out[:, place + 1, place] = density, -density
        padded = np.pad(density, ((0, 0), (1, 1)))
        out[:, :, -1] = -points[:, None] * np.diff(padded, axis=1)
        return out

    limit = np.append(np.full(start.size - 1, np.inf), _LARGEST_SLOPE)
    return _scored(counts, total, start, cells, derivatives, _is_ascending, limit)


def fitted_logit(counts: FloatArray, points: FloatArray, start: FloatArray) -> FloatArray:
    """Raise the likelihood of labels given points by Fisher's scoring; log-odds to the first."""
    total = counts.sum(axis=1)
    labels = counts.shape[1]

    def cells(own: FloatArray) -> tuple[FloatArray, FloatArray]:
        half = labels - 1
        odds = np.pad(own[:half] + own[half:] * points[:, None], ((0, 0), (1, 0)))
        shares = np.maximum(np.exp(log_softmax(odds, axis=1)), LEAST_PROBABILITY)
        return shares, shares

    def derivatives(shares: FloatArray) -> FloatArray:
        by_odds = shares[:, :, None] * (np.eye(labels)[None] - shares[:, None, :])
        by_odds = by_odds[:, :, 1:]
        return np.concatenate([by_odds, by_odds * points[:, None, None]], axis=2)

    limit = np.repeat([np.inf, _LARGEST_ODDS], labels - 1)
    return _scored(counts, total, start, cells, derivatives, lambda own: True, limit)


def _is_ascending(own: FloatArray) -> bool:
    return bool((np.diff(own[:-1]) >= _LEAST_GAP).all())


def _within(
    own: FloatArray, limit: FloatArray, information: FloatArray, gradient: FloatArray
) -> FloatArray:
    """Return Newton's step, coordinates that it would carry too far fixed at their limits."""
    step, is_fixed = np.zeros(own.size), np.zeros(own.size, bool)
    while True:
        free = ~is_fixed
        rest = gradient[free] - information[np.ix_(free, is_fixed)] @ step[is_fixed]
        step[free] = np.linalg.solve(information[np.ix_(free, free)], rest)
        beyond = free & (np.abs(own + step) > limit)
        if not beyond.any():
            return step
        step[beyond] = (np.clip(own + step, -limit, limit) - own)[beyond]
        is_fixed |= beyond


def _scored(
    counts: FloatArray,
    total: FloatArray,
    start: FloatArray,
    cells: Any,
    derivatives: Any,
    is_allowed: Any,
    limit: FloatArray,
) -> FloatArray:
    """Run Fisher's scoring with steps that are halved until the likelihood does not fall.

    No coordinate leaves the interval from −limit to limit.
    """
    own = start.copy()
    shares, extra = cells(own)
    value = float((counts * np.log(shares)).sum())
    for _ in range(_SCORING):
        d = derivatives(extra)
        gradient = np.einsum("qk,qkj->j", counts / shares, d)
        weighted = d * (total[:, None] / shares)[:, :, None]
        information = np.tensordot(weighted, d, axes=([0, 1], [0, 1]))
        information += 1e-9 * np.trace(information) * np.eye(own.size)
        step = _within(own, limit, information, gradient)
        for _ in range(8):
            tried = own + step
            if is_allowed(tried):
                shares, extra = cells(tried)
                reached = float((counts * np.log(shares)).sum())
                if reached >= value:
                    break
            step = 0.5 * step
        else:
            break
        gain, value, own = reached - value, reached, tried
        if gain < 1e-10 * abs(value):
            break
    return own

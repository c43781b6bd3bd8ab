"""Counts with more zeros than a negative binomial distribution has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from latentree.errors import ModelError
from latentree.inference._emissions import (
    CountEmission,
    FreeEmission,
    Likelihoods,
    Tally,
    Unit,
    unchecked,
)
from latentree.inference._frozen import set_fields
from latentree.typing import FloatArray, IntArray, Kind

_FARTHEST = 12.0  # the share of zeros is kept from e⁻¹² to 1 − e⁻¹²


@dataclass(frozen=True, eq=False, repr=False)
class ZeroInflatedEmission(FreeEmission):
    """Counts that are 0 with some probability, and else negative binomial.

    Parameters
    ----------
    mean : array of float, one per state
        Of the negative binomial part; positive.
    size : array of float, one per state
        As in :class:`CountEmission`.
    zeros : array of float, one per state
        The probability, in [0, 1), of a zero that is not of that part.

    References
    ----------
    D. Lambert, "Zero-inflated Poisson regression, with an application to defects in manufacturing",
    Technometrics 34 (1992).

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.inference import ZeroInflatedEmission
    >>> visits = ZeroInflatedEmission([2.0], [np.inf], [0.5])
    >>> np.exp(visits.log_likelihood(np.array([0.0, 1.0, 2.0]))).round(3)
    array([[0.568, 0.135, 0.135]])
    """

    counts: CountEmission
    zeros: FloatArray

    kind: ClassVar[Kind] = "count"

    def __init__(self, mean: ArrayLike, size: ArrayLike | None, zeros: ArrayLike) -> None:
        counts, shares = CountEmission(mean, size), np.array(zeros, np.float64)
        if shares.shape != counts.mean.shape or not ((shares >= 0) & (shares < 1)).all():
            raise ModelError(
                f"zeros must be probabilities below 1, one per state, got {shares.tolist()}"
            )
        set_fields(self, counts=counts, zeros=shares)

    @property
    def mean(self) -> FloatArray:
        """Mean of the counts for every state."""
        return np.asarray((1.0 - self.zeros) * self.counts.mean)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.counts.n_parameters + self.n_states

    @property
    def variance(self) -> FloatArray:
        """Variance of the counts for every state."""
        second = self.counts.variance + self.counts.mean**2
        return np.asarray((1.0 - self.zeros) * second - self.mean**2)

    def likelihoods(self, values: FloatArray, room: FloatArray | None = None) -> Likelihoods:
        """Return log-probabilities."""
        logs, zeros = self.counts.likelihoods(values, room).logs, self.zeros[:, None]
        logs = logs + np.where(np.isnan(values), 0.0, np.log1p(-zeros))
        with np.errstate(divide="ignore"):
            return Likelihoods(np.where(values == 0, np.logaddexp(logs, np.log(zeros)), logs))

    def sample(self, states: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a count for each of some states."""
        is_zero = rng.random(states.size) < self.zeros[states]
        return np.where(is_zero, 0.0, self.counts.sample(states, rng))

    def cells(self) -> FloatArray:
        """Return probabilities of intervals of counts: a table to measure by."""
        cells = (1.0 - self.zeros[:, None]) * self.counts.cells()
        cells[:, 0] += self.zeros
        return cells

    def taken(self, origin: IntArray, away: FloatArray) -> ZeroInflatedEmission:
        """Return an emission with the states ``origin``, moved by standard deviations."""
        counts = self.counts.taken(origin, away)
        return ZeroInflatedEmission(counts.mean, counts.size, self.zeros[origin])

    # EM: coordinates are those of the counts, and the log-odds of the other zeros.

    def maximized(self, sums: Tally, unit: Unit, share: float) -> FloatArray:
        """Return shares of zeros, and the counts that the other zeros leave."""
        weights = sums.weights.copy()
        is_zero = sums.values == 0
        # P(not of the counts | 0) = π/(π + (1 − π)·P(0)), which is π/P(x = 0).
        other = self.zeros / np.exp(self.likelihoods(np.zeros(1)).logs[:, 0])
        apart = other[:, None] * weights[:, is_zero]
        weights[:, is_zero] -= apart
        total = sums.weights.sum(axis=1) + share
        counts = self.counts.maximized(Tally(sums.values, weights), unit, share)
        return np.vstack([counts, _odds(apart.sum(axis=1) / total)])

    def log_prior(self, unit: Unit, share: float) -> float:
        """Return that of rows of the counts that have the mean of the column."""
        return self.counts.log_prior(unit, share) + share * float(np.log1p(-self.zeros).sum())

    def coordinates(self, unit: Unit) -> FloatArray:
        """Return the coordinates of every state (column)."""
        return np.vstack([self.counts.coordinates(unit), _odds(self.zeros)])

    @classmethod
    def at(cls, coordinates: FloatArray, unit: Unit) -> ZeroInflatedEmission:
        """Return the emission at some coordinates."""
        counts = CountEmission.at(coordinates[:2], unit)
        return unchecked(cls, counts=counts, zeros=expit(coordinates[2]))

    @classmethod
    def limits(cls, unit: Unit) -> FloatArray:
        """Return the least and the largest value of every coordinate: two columns."""
        return np.vstack([CountEmission.limits(unit), [-_FARTHEST, _FARTHEST]])

    @classmethod
    def by_moments(cls, mean: FloatArray, variance: FloatArray, unit: Unit) -> ZeroInflatedEmission:
        """Return an emission with means and variances of states, a tenth of them zeros."""
        counts = CountEmission.by_moments(mean / 0.9, variance, unit)
        return cls(counts.mean, counts.size, np.full(counts.mean.shape, 0.1))


def _odds(shares: FloatArray) -> FloatArray:
    """Return log-odds, within limits."""
    return np.asarray(np.clip(logit(shares), -_FARTHEST, _FARTHEST))

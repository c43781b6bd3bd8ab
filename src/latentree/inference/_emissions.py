"""Leaves that emit numbers: the distribution of a value for every state of its neighbor.

An :class:`Emission` is all that models, EM and searches know of a column without states. A new kind
of leaf is a :class:`FreeEmission`, and an entry in ``EMISSIONS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from latentree._kernels.inference import emissions as kernels
from latentree.errors import ModelError
from latentree.inference._frozen import set_fields
from latentree.typing import FloatArray, IntArray, Kind

POISSON = 1e5
"""A negative binomial distribution of this size or more is taken as Poisson's."""

_LEAST_SIZE = 1e-2
"""Least size of a negative binomial distribution: its zeros are as frequent as counts allow."""

_LARGEST_SIZE = 1e6
"""Largest size that EM moves to."""

_SIZES = float(np.log(_LEAST_SIZE)), float(np.log(_LARGEST_SIZE))

_OFF_GRID = 1e-3
"""Share of a step by which rounding may move a value off the grid that it was recorded on."""

_N_QUANTILES = 64
"""Intervals of equal probability into which each state's values are cut to measure dependence."""


AnyEmission = TypeVar("AnyEmission", bound="Emission")


class Unit(NamedTuple):
    """What is known of a column of numbers before anything is fitted."""

    center: float
    """Its mean."""
    scale: float
    """Its standard deviation."""
    resolution: float = 0.0
    """In which steps its values are recorded."""
    origin: float = 0.0
    """Recorded values are whole numbers of steps away from it."""


class Tally(NamedTuple):
    """Distinct values in ascending order, and the weight of each in every state (row)."""

    values: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, values: FloatArray, weights: FloatArray) -> Tally:
        """Sort values, and leave missing ones out."""
        order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
        return cls(values[order], weights[:, order])

    def __add__(self, other: Tally) -> Tally:  # type: ignore[override]
        """Return the tally of both parts of the rows."""
        if np.array_equal(self.values, other.values):
            return self._replace(weights=self.weights + other.weights)
        values = np.union1d(self.values, other.values)
        weights = np.zeros((len(self.weights), values.size))
        for part in (self, other):
            weights[:, np.searchsorted(values, part.values)] += part.weights
        return Tally(values, weights)

    def __rmul__(self, factor: float) -> Tally:  # type: ignore[override]
        """Return the tally of rows that count so much more."""
        return self._replace(weights=factor * self.weights)


class Likelihoods(NamedTuple):
    """Log-likelihoods of values (columns) for every state (row), 0 where missing."""

    logs: FloatArray
    within: Any = None
    """What an emission keeps for :meth:`Emission.expected`."""


class Emission(ABC):
    """The distribution of a number for every state of its neighbor."""

    kind: ClassVar[Kind]
    mean: Any
    """Of the values for every state."""
    resolution: Any = 0.0
    """In which steps values are recorded."""
    origin: Any = 0.0
    """Recorded values are whole numbers of steps away from it."""

    @property
    def n_states(self) -> int:
        """Number of states of the neighbor."""
        return int(self.mean.size)

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of free parameters."""

    @property
    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance of the values for every state."""

    @abstractmethod
    def likelihoods(self, values: FloatArray, room: FloatArray | None = None) -> Likelihoods:
        """Return the log-likelihoods of distinct values, of which one may be missing.

        Parameters
        ----------
        values : array of float
        room : array of shape (3, n_states, values.size), optional
            Memory that the result may lie in, the logarithms first: EM asks in every step, and
            fresh memory would take longer than the numbers.

        Returns
        -------
        Likelihoods
        """

    def log_likelihood(self, values: FloatArray) -> FloatArray:
        """Return the log-probability of values as recorded.

        Parameters
        ----------
        values : array of float
            NaN where missing.

        Returns
        -------
        array of shape (n_states, values.size)
            0 where missing.

        Examples
        --------
        >>> import numpy as np
        >>> import latentree as lt
        >>> lt.CountEmission([2.0]).log_likelihood(np.array([0.0, np.nan]))
        array([[-2.,  0.]])
        >>> age = lt.GaussianEmission([0.0], [1.0], 0.1)
        >>> age.log_likelihood(np.array([0.0, np.nan])).round(2)
        array([[-3.22,  0.  ]])
        """
        logs = self.likelihoods(values).logs
        logs[:, np.isnan(values)] = 0.0
        return logs

    def moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the values for every row of weights of the states.

        Parameters
        ----------
        weights : array of float, one per state along its last axis

        Returns
        -------
        tuple of arrays

        Examples
        --------
        >>> import numpy as np
        >>> import latentree as lt
        >>> lt.CountEmission([2.0, 4.0]).moments(np.array([[0.5, 0.5]]))
        (array([3.]), array([4.]))
        """
        return mixture_moments(weights, self.mean, self.variance)

    def filled(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what missing cells are filled with, and the standard deviation of that.

        Parameters
        ----------
        weights : array of float, one per state along its last axis

        Returns
        -------
        tuple of arrays
        """
        mean, variance = self.moments(weights)
        return np.rint(mean) if self.kind == "count" else mean, np.sqrt(variance)

    @abstractmethod
    def sample(self, states: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value for each of some states, as precise as values are recorded.

        Parameters
        ----------
        states : array of int
        rng : numpy.random.Generator

        Returns
        -------
        array of float
        """

    @abstractmethod
    def cells(self) -> FloatArray:
        """Return probabilities of intervals that cover the line: a table to measure by.

        Returns
        -------
        array of float, one row per state
        """

    def expected(self, values: FloatArray, weights: FloatArray, within: Any, unit: Unit) -> Any:
        """Return the sums over rows that an M-step needs, which can be added and multiplied.

        ``weights`` are those of every state (row) for distinct values, and ``within`` is what
        :meth:`likelihoods` returned beside the logarithms.
        """
        del within, unit
        return Tally.of(values, weights)


class FreeEmission(Emission):
    """An emission with parameters of its own for every state.

    EM moves *coordinates*, rows of numbers with a column per state, in which jumps make sense.
    """

    def expected_log(self, sums: Any, unit: Unit) -> float:
        """Return the expected log-likelihood of the rows behind sums, but for a constant."""
        del unit
        return float((sums.weights * self.likelihoods(sums.values).logs).sum())

    @abstractmethod
    def maximized(self, sums: Any, unit: Unit, share: float) -> FloatArray:
        """Return the coordinates of an emission that raises the likelihood.

        ``share`` rows per state are added that have the mean and the variance of the column.
        """

    @abstractmethod
    def log_prior(self, unit: Unit, share: float) -> float:
        """Return the logarithm of the density of that prior, but for a constant."""

    @abstractmethod
    def coordinates(self, unit: Unit) -> FloatArray:
        """Return the coordinates of every state (column)."""

    @classmethod
    @abstractmethod
    def at(cls, coordinates: FloatArray, unit: Unit) -> Self:
        """Return the emission at some coordinates."""

    @classmethod
    @abstractmethod
    def limits(cls, unit: Unit) -> FloatArray:
        """Return the least and the largest value of every coordinate: two columns."""

    @classmethod
    @abstractmethod
    def by_moments(cls, mean: FloatArray, variance: FloatArray, unit: Unit) -> Self:
        """Return an emission with means and variances of states, kept from extremes."""

    @abstractmethod
    def taken(self, origin: IntArray, away: FloatArray) -> Self:
        """Return an emission with the states ``origin`` of this one, moved by standard deviations.

        Parameters
        ----------
        origin : array of int
            Numbers of states.
        away : array of float
            How far each moves.

        Returns
        -------
        Emission
        """


@dataclass(frozen=True, eq=False, repr=False)
class GaussianEmission(FreeEmission):
    """Real values: normal, with a mean and a standard deviation for every state of the neighbor.

    Parameters
    ----------
    mean, sd : array of float, one per state
    resolution : float
        How precisely values are recorded: the value x stands for all from x − r/2 to x + r/2, and
        its likelihood is the probability of these. No standard deviation is below r/6.
    origin : float
        Recorded values are whole numbers of steps away from it.

    Examples
    --------
    >>> import numpy as np
    >>> emission = GaussianEmission([0.0, 10.0], [1.0, 2.0], resolution=1.0)
    >>> np.exp(emission.log_likelihood(np.array([0.0, 8.0]))).round(3)
    array([[0.383, 0.   ],
           [0.   , 0.121]])
    """

    mean: FloatArray
    sd: FloatArray
    resolution: float
    origin: float

    kind: ClassVar[Kind] = "real"

    def __init__(
        self, mean: ArrayLike, sd: ArrayLike, resolution: float, origin: float = 0.0
    ) -> None:
        if not (np.isfinite(resolution) and resolution > 0):
            raise ModelError(f"the resolution is {resolution}, but must be positive")
        narrowest = resolution / kernels.NARROWEST
        spread = np.maximum(_parameters(sd, "a standard deviation", positive=True), narrowest)
        center = _parameters(mean, "a mean")
        set_fields(self, mean=center, sd=spread, resolution=float(resolution), origin=float(origin))
        _check_alike(center, spread)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return 2 * self.n_states

    @property
    def variance(self) -> FloatArray:
        """Variance of the values for every state."""
        return np.asarray(self.sd**2)

    def likelihoods(self, values: FloatArray, room: FloatArray | None = None) -> Likelihoods:
        """Return log-probabilities, and the moments of values within their cells."""
        logs, *within = np.empty((3, self.n_states, values.size)) if room is None else room
        kernels.normal_logs(values, self.mean, self.sd, self.resolution, logs, *within)
        return Likelihoods(logs, within)

    def taken(self, origin: IntArray, away: FloatArray) -> GaussianEmission:
        """Return an emission with the states ``origin`` of this one, moved by standard deviations.

        Parameters
        ----------
        origin : array of int
            Numbers of states.
        away : array of float
            How far each moves.

        Returns
        -------
        GaussianEmission
        """
        mean = self.mean[origin] + away * self.sd[origin]
        return GaussianEmission(mean, self.sd[origin], self.resolution, self.origin)

    # EM: coordinates are (μ − m)/s and log(σ/s), with the column's m and s.

    def expected(
        self, values: FloatArray, weights: FloatArray, within: Any, unit: Unit
    ) -> FloatArray:
        """Return Σ w, Σ w·E[x − m], Σ w·E[(x − m)²] of every state (row), x before rounding."""
        sums = np.zeros((self.n_states, 3))
        kernels.normal_sums(
            values, weights.ravel(), within[0].ravel(), within[1].ravel(), self.sd,
            self.resolution, unit.center, sums,
        )  # fmt: skip
        return sums

    def expected_log(self, sums: FloatArray, unit: Unit) -> float:
        """Return Σ w·(−log σ − ½·(x − μ)²/σ²)."""
        total, one, two = sums.T
        away = self.mean - unit.center
        square = two - 2.0 * away * one + away * away * total
        return -float((total * np.log(self.sd) + 0.5 * square / self.sd**2).sum())

    def maximized(self, sums: FloatArray, unit: Unit, share: float) -> FloatArray:
        """Return μ = Σwx/(Σw + a) and σ² = (Σw(x − μ)² + a·(μ² + 1))/(Σw + a) in units."""
        total, one, two = sums[:, 0], sums[:, 1] / unit.scale, sums[:, 2] / unit.scale**2
        mean = one / (total + share)
        square = np.maximum(two - 2.0 * mean * one + mean * mean * total, 0.0)
        variance = (square + share * (mean * mean + 1.0)) / (total + share)
        return np.array([mean, 0.5 * np.log(variance)])

    def log_prior(self, unit: Unit, share: float) -> float:
        """Return that of rows with the mean and the variance of the column."""
        sd = self.sd / unit.scale
        square = ((self.mean - unit.center) / unit.scale) ** 2 + 1.0
        return -share * float((np.log(sd) + 0.5 * square / sd**2).sum())

    def coordinates(self, unit: Unit) -> FloatArray:
        """Return the coordinates of every state (column)."""
        return np.stack([(self.mean - unit.center) / unit.scale, np.log(self.sd / unit.scale)])

    @classmethod
    def at(cls, coordinates: FloatArray, unit: Unit) -> GaussianEmission:
        """Return the emission at some coordinates."""
        mean, sd = unit.center + unit.scale * coordinates[0], unit.scale * np.exp(coordinates[1])
        sd = np.maximum(sd, unit.resolution / kernels.NARROWEST)
        return unchecked(cls, mean=mean, sd=sd, resolution=unit.resolution, origin=unit.origin)

    @classmethod
    def limits(cls, unit: Unit) -> FloatArray:
        """Return the least and the largest value of every coordinate: two columns."""
        narrowest = unit.resolution / kernels.NARROWEST / unit.scale
        return np.array([[-np.inf, np.inf], [np.log(narrowest), 10.0]])

    @classmethod
    def by_moments(cls, mean: FloatArray, variance: FloatArray, unit: Unit) -> GaussianEmission:
        """Return an emission with means and variances of states, kept from extremes."""
        sd = np.sqrt(np.maximum(variance, 1e-4 * unit.scale**2))
        return cls(mean, sd, unit.resolution, unit.origin)

    def sample(self, states: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value for each of some states, as precise as values are recorded.

        Parameters
        ----------
        states : array of int
        rng : numpy.random.Generator

        Returns
        -------
        array of float

        Examples
        --------
        >>> import numpy as np
        >>> emission = GaussianEmission([0.0, 50.0], [1.0, 1.0], resolution=0.5)
        >>> emission.sample(np.array([0, 1]), np.random.default_rng(0))
        array([ 0., 50.])
        """
        drawn = rng.normal(self.mean[states], self.sd[states])
        return recorded(drawn, self.resolution, self.origin)

    def cells(self) -> FloatArray:
        """Return probabilities of intervals that cover the line: a table to measure by.

        Returns
        -------
        array of float, one row per state

        Examples
        --------
        >>> GaussianEmission([0.0], [1.0], 0.1).cells().shape
        (1, 64)
        """
        levels = ndtri(np.linspace(0.0, 1.0, _N_QUANTILES + 1)[1:-1])
        edges = np.unique(self.mean[:, None] + self.sd[:, None] * levels)
        below = ndtr((edges - self.mean[:, None]) / self.sd[:, None])
        return interval_probabilities(below)


@dataclass(frozen=True, eq=False, repr=False)
class CountEmission(FreeEmission):
    """Counts 0, 1, 2, …: negative binomial, with a mean and a size for every state.

    Parameters
    ----------
    mean : array of float, one per state
        Positive.
    size : array of float, one per state, optional
        The variance is mean + mean²/size; infinite, and by default, for Poisson's distribution.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(CountEmission([1.0, 3.0]).log_likelihood(np.array([0.0, 1.0]))).round(3)
    array([[0.368, 0.368],
           [0.05 , 0.149]])
    """

    mean: FloatArray
    size: FloatArray

    kind: ClassVar[Kind] = "count"

    def __init__(self, mean: ArrayLike, size: ArrayLike | None = None) -> None:
        center = _parameters(mean, "a mean", positive=True)
        given = np.full(center.size, np.inf) if size is None else np.asarray(size, np.float64)
        if not (given > 0).all():
            raise ModelError("the sizes of a negative binomial distribution must be positive")
        set_fields(self, mean=center, size=np.where(given >= POISSON, np.inf, given))
        _check_alike(center, given)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: means, and sizes unless all are infinite."""
        return self.n_states * (1 if np.isinf(self.size).all() else 2)

    @property
    def variance(self) -> FloatArray:
        """Variance of the counts for every state."""
        return np.asarray(self.mean + self.mean**2 / self.size)

    def likelihoods(self, values: FloatArray, room: FloatArray | None = None) -> Likelihoods:
        """Return log-probabilities."""
        logs = np.empty((self.n_states, values.size)) if room is None else room[0]
        kernels.count_logs(values, self.mean, self.size, logs)
        return Likelihoods(logs)

    def taken(self, origin: IntArray, away: FloatArray) -> CountEmission:
        """Return an emission with the states ``origin`` of this one, moved by standard deviations.

        Parameters
        ----------
        origin : array of int
            Numbers of states.
        away : array of float
            How far each moves.

        Returns
        -------
        CountEmission
        """
        mean, sd = self.mean[origin], np.sqrt(self.variance[origin])
        return CountEmission(mean * np.exp(away * np.minimum(sd / mean, 1.0)), self.size[origin])

    # EM: coordinates are the logarithms of mean and size.

    def maximized(self, sums: Tally, unit: Unit, share: float) -> FloatArray:
        """Return the means, and sizes by one step of Newton's method."""
        old = np.log(np.minimum(self.size, _LARGEST_SIZE))
        new: FloatArray = kernels.fitted_counts(*sums, unit.center, share, old, *_SIZES)
        return new

    def log_prior(self, unit: Unit, share: float) -> float:
        """Return that of rows whose count is the mean of the column."""
        return share * float(self.likelihoods(np.array([unit.center])).logs.sum())

    def coordinates(self, unit: Unit) -> FloatArray:
        """Return the coordinates of every state (column)."""
        return np.log([self.mean, np.minimum(self.size, _LARGEST_SIZE)])

    @classmethod
    def at(cls, coordinates: FloatArray, unit: Unit) -> CountEmission:
        """Return the emission at some coordinates."""
        mean, size = np.exp(coordinates)
        return unchecked(cls, mean=mean, size=np.where(size >= POISSON, np.inf, size))

    @classmethod
    def limits(cls, unit: Unit) -> FloatArray:
        """Return the least and the largest value of every coordinate: two columns."""
        return np.array([[-np.inf, np.inf], _SIZES])

    @classmethod
    def by_moments(cls, mean: FloatArray, variance: FloatArray, unit: Unit) -> CountEmission:
        """Return an emission with means and variances of states, kept from extremes."""
        mean = np.maximum(mean, 1e-3 * unit.center)
        # The variance is μ + μ²/r.
        excess = np.maximum(variance - mean, 1e-2 * mean)
        return cls(mean, np.clip(mean**2 / excess, 0.1, 100.0))

    def sample(self, states: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a count for each of some states.

        Parameters
        ----------
        states : array of int
        rng : numpy.random.Generator

        Returns
        -------
        array of float

        Examples
        --------
        >>> import numpy as np
        >>> CountEmission([5.0]).sample(np.zeros(3, int), np.random.default_rng(0))
        array([4., 3., 3.])
        """
        mean, size = self.mean[states], self.size[states]
        finite = np.where(np.isinf(size), 1.0, size)
        rate = np.where(np.isinf(size), mean, rng.gamma(finite, mean / finite))
        return rng.poisson(rate).astype(np.float64)

    def cells(self) -> FloatArray:
        """Return probabilities of intervals of counts: a table to measure by.

        Returns
        -------
        array of float, one row per state

        Examples
        --------
        >>> CountEmission([1.0, 3.0]).cells().sum(axis=1).round(6)
        array([1., 1.])
        """
        # Beyond eight standard deviations nothing is left; steps that grow keep the table small.
        top = float((self.mean + 8.0 * np.sqrt(self.variance)).max()) + 8.0
        edges = np.unique(np.geomspace(1.0, top + 1.0, 200).astype(np.int64))
        values = np.arange(edges[-1], dtype=np.float64)
        below = np.cumsum(np.exp(self.log_likelihood(values)), axis=1)[:, edges - 1]
        return interval_probabilities(below)


def unchecked(kind: type[AnyEmission], **fields: object) -> AnyEmission:
    """Return an emission without checks: EM makes many, of numbers that need none."""
    emission = kind.__new__(kind)
    emission.__dict__.update(fields)
    return emission


def recorded(values: FloatArray, resolution: float, origin: float = 0.0) -> FloatArray:
    """Round values as precisely as they are recorded: in steps from an origin."""
    if resolution <= 0.0:
        return values
    decimals = int(np.ceil(-np.log10(resolution))) + 3
    return np.round(origin + np.rint((values - origin) / resolution) * resolution, decimals)


def recorded_steps(gap: float, low: float, high: float) -> tuple[float, float]:
    """Return resolution and origin of values from ``low`` to ``high``, some of them a gap apart.

    The origin is not 0 where both ends lie on a grid of such steps that 0 does not lie on, as of
    values in the middle between whole numbers.
    """
    step = float(f"{gap:.6g}")  # differences of decimals are not exact: 0.3 − 0.2 stands for 0.1
    if not 0.0 < step < np.inf:
        return step, 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # more steps than a float can count
        n_steps, rest = (high - low) / step, low - np.rint(low / step) * step
        is_grid = abs(n_steps - np.rint(n_steps)) < _OFF_GRID
    return step, float(f"{rest:.6g}") if is_grid and abs(rest) > _OFF_GRID * step else 0.0


def mixture_moments(
    weights: FloatArray, mean: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of mixtures, for every row of weights of their components.

    E[x] = c + Σ w_k·(μ_k − c) and V[x] = Σ w_k·(σ_k² + (μ_k − E[x])²): about a center c, as
    E[x²] − E[x]² has no digits left where means are large beside the spread.
    """
    center = float(np.median(mean))
    away = mean - center
    first = weights @ away
    spread = weights @ variance + (weights * (away - first[..., None]) ** 2).sum(axis=-1)
    return center + first, spread


def interval_probabilities(below: FloatArray) -> FloatArray:
    """Return probabilities of intervals, from those of all that lies below their ends.

    Rounding may make a difference of two of these negative.
    """
    return np.maximum(np.diff(below, axis=1, prepend=0.0, append=1.0), 0.0)


EMISSIONS: Mapping[Kind, type[FreeEmission]] = {"real": GaussianEmission, "count": CountEmission}
"""What a column of numbers of each kind has in a model with states."""


def _parameters(values: ArrayLike, what: str, positive: bool = False) -> FloatArray:
    array = np.array(values, np.float64)
    if array.ndim != 1 or not array.size:
        raise ModelError(f"an emission needs {what} for every state, got shape {array.shape}")
    if not np.isfinite(array).all() or (positive and (array <= 0).any()):
        raise ModelError(f"{what} of an emission is {array.tolist()}, which is out of range")
    return array


def _check_alike(a: FloatArray, b: FloatArray) -> None:
    if a.shape != b.shape:
        raise ModelError(f"an emission has {a.size} means, but {b.size} spreads")

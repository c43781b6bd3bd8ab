"""Leaves that emit numbers: the distribution of a value for every state of its neighbor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from latentree._kernels.inference import emissions as kernels
from latentree.errors import ModelError
from latentree.inference._frozen import set_fields
from latentree.inference._patterns import Emissions
from latentree.typing import FloatArray, IntArray, Kind

POISSON = 1e5
"""A negative binomial distribution of this size or more is taken as Poisson's."""

_LEAST_SIZE = 1e-2
"""Least size of a negative binomial distribution: its zeros are as frequent as counts allow."""

_OFF_GRID = 1e-3
"""Share of a step by which rounding may move a value off the grid that it was recorded on."""

_N_QUANTILES = 64
"""Intervals of equal probability into which each state's values are cut to measure dependence."""


@dataclass(frozen=True, eq=False, repr=False)
class GaussianEmission:
    """Real values: normal, with a mean and a standard deviation for every state of the neighbor.

    Parameters
    ----------
    mean, sd : array of float, one a state
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
    def n_states(self) -> int:
        """Number of states of the neighbor."""
        return self.mean.size

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return 2 * self.n_states

    @property
    def variance(self) -> FloatArray:
        """Variance of the values for every state."""
        return np.asarray(self.sd**2)

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
        >>> GaussianEmission([0.0, 10.0], [1.0, 2.0], 1.0).moments(np.array([[0.5, 0.5]]))
        (array([5.]), array([27.5]))
        """
        return mixture_moments(weights, self.mean, self.variance)

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
        >>> GaussianEmission([0.0], [1.0], 0.1).log_likelihood(np.array([0.0, np.nan])).round(2)
        array([[-3.22,  0.  ]])
        """
        out, shift, spread = np.empty((3, self.n_states, values.size))
        kernels.normal_logs(values, self.mean, self.sd, self.resolution, out, shift, spread)
        out[:, np.isnan(values)] = 0.0  # the kernel looks for one hole
        return out

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

    def fitted(self, values: FloatArray, weights: FloatArray, share: float) -> GaussianEmission:
        """Return the emission that weights of the states give (an M-step).

        Parameters
        ----------
        values : array of float
            NaN where missing.
        weights : array of float
            Of every state (column) for every value.
        share : float
            Rows of the prior per state, with the mean and the variance of all values.

        Returns
        -------
        GaussianEmission
        """
        mean, variance = _weighted_moments(values, weights, share)
        return GaussianEmission(mean, np.sqrt(variance), self.resolution, self.origin)

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
        array of float, a row a state

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
class CountEmission:
    """Counts 0, 1, 2, …: negative binomial, with a mean and a size for every state.

    Parameters
    ----------
    mean : array of float, one a state
        Positive.
    size : array of float, one a state, optional
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
    def n_states(self) -> int:
        """Number of states of the neighbor."""
        return self.mean.size

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: means, and sizes unless all are infinite."""
        return self.n_states * (1 if np.isinf(self.size).all() else 2)

    @property
    def variance(self) -> FloatArray:
        """Variance of the counts for every state."""
        return np.asarray(self.mean + self.mean**2 / self.size)

    def moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the counts for every row of weights of the states.

        Parameters
        ----------
        weights : array of float, one per state along its last axis

        Returns
        -------
        tuple of arrays

        Examples
        --------
        >>> import numpy as np
        >>> CountEmission([2.0, 4.0]).moments(np.array([[0.5, 0.5]]))
        (array([3.]), array([4.]))
        """
        return mixture_moments(weights, self.mean, self.variance)

    def log_likelihood(self, values: FloatArray) -> FloatArray:
        """Return the log-probability of counts.

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
        >>> CountEmission([2.0]).log_likelihood(np.array([0.0, np.nan]))
        array([[-2.,  0.]])
        """
        out = np.empty((self.n_states, values.size))
        kernels.count_logs(values, self.mean, self.size, out)
        return out

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

    def fitted(self, values: FloatArray, weights: FloatArray, share: float) -> CountEmission:
        """Return the emission that weights of the states give by their moments.

        Parameters
        ----------
        values : array of float
            NaN where missing.
        weights : array of float
            Of every state (column) for every value.
        share : float
            Rows of the prior per state, with the mean and the variance of all values.

        Returns
        -------
        CountEmission
        """
        mean, variance = _weighted_moments(values, weights, share)
        mean = np.maximum(mean, 1e-8)
        # The variance of a negative binomial count is μ + μ²/r.
        excess = np.maximum(variance - mean, mean**2 / POISSON)
        size = np.clip(mean**2 / excess, _LEAST_SIZE, POISSON)
        return CountEmission(mean, np.where(size >= POISSON, np.inf, size))

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
        array of float, a row a state

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


def _weighted_moments(
    values: FloatArray, weights: FloatArray, share: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of each state, with ``share`` rows that have those of all values."""
    present = ~np.isnan(values)
    x, w = values[present], weights[present]
    total = w.sum(axis=0)
    every = w.sum(axis=1)
    center = every @ x / max(every.sum(), 1e-300)
    x = x - center
    whole = every @ x**2 / max(every.sum(), 1e-300)
    mean = x @ w / (total + share)
    square = (x**2) @ w - 2.0 * mean * (x @ w) + mean**2 * total
    variance = (np.maximum(square, 0.0) + share * (mean**2 + whole)) / (total + share)
    return center + mean, np.maximum(variance, 1e-12 * max(whole, 1e-300))


def interval_probabilities(below: FloatArray) -> FloatArray:
    """Return probabilities of intervals, from those of all that lies below their ends.

    Rounding may make a difference of two of these negative.
    """
    return np.maximum(np.diff(below, axis=1, prepend=0.0, append=1.0), 0.0)


Emission = GaussianEmission | CountEmission


class Leaves(NamedTuple):
    """The leaves that emit numbers, with the parameters of all of them end to end."""

    columns: IntArray
    is_count: NDArray[np.bool_]
    resolutions: FloatArray
    """Of every leaf; 0 for counts."""
    origins: FloatArray
    """Of the recorded values of every leaf; 0 for counts."""
    firsts: IntArray
    """Where the states of each leaf start; one entry more for the end."""
    mean: FloatArray
    spread: FloatArray
    """Standard deviations of reals, sizes of counts."""

    @classmethod
    def of(cls, emissions: Sequence[Emission | None]) -> Leaves:
        """Lay the emissions of all columns end to end; None for columns with states."""
        mine = [(column, each) for column, each in enumerate(emissions) if each is not None]
        nothing = np.empty(0)
        return cls(
            np.array([column for column, _ in mine], np.int64),
            np.array([isinstance(each, CountEmission) for _, each in mine], bool),
            np.array([getattr(each, "resolution", 0.0) for _, each in mine]),
            np.array([getattr(each, "origin", 0.0) for _, each in mine]),
            np.cumsum([0, *(each.n_states for _, each in mine)]),
            np.concatenate([nothing, *(each.mean for _, each in mine)]),
            np.concatenate([nothing, *(_spread(each) for _, each in mine)]),
        )

    def emission(self, leaf: int) -> Emission:
        """Return the emission of a leaf."""
        own = slice(*self.firsts[leaf : leaf + 2])
        if self.is_count[leaf]:
            return CountEmission(self.mean[own], self.spread[own])
        grid = float(self.resolutions[leaf]), float(self.origins[leaf])
        return GaussianEmission(self.mean[own], self.spread[own], *grid)

    def logs(
        self, places: Emissions, out: FloatArray | None = None, cells: FloatArray | None = None
    ) -> FloatArray:
        """Return the log-likelihoods of all distinct values, laid out as the E-step needs them.

        ``out`` is memory for them, and ``cells`` for two rows of as many numbers, which
        :meth:`moments` needs.
        """
        out = np.empty(places.n_likelihoods) if out is None else out
        shift, spread = np.empty((2, out.size)) if cells is None else cells
        kernels.all_logs(
            places.ranks, self.is_count, self.resolutions, self.firsts, self.mean,
            self.spread, places.sizes, places.starts, places.values, out, shift, spread,
        )  # fmt: skip
        return out

    def moments(
        self, places: Emissions, counts: FloatArray, cells: FloatArray, centers: FloatArray
    ) -> FloatArray:
        """Return Σ w, Σ w·E[x − c], Σ w·E[(x − c)²] of every state of reals (a row each).

        ``cells`` are as :meth:`logs` set them.
        """
        sums: FloatArray = kernels.all_moments(
            places.ranks, self.is_count, self.resolutions, self.firsts, self.spread,
            centers, places.sizes, places.starts, places.values, counts, *cells,
        )  # fmt: skip
        return sums


def _spread(emission: Emission) -> FloatArray:
    return emission.sd if isinstance(emission, GaussianEmission) else emission.size


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

"""Correlations of the Gaussian variables behind ordered answers and numbers, for everyone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from latentree._kernels.compiling import tiny
from latentree._kernels.distances import latent as kernels
from latentree.data import as_table, cut_table
from latentree.distances._functions import bounded
from latentree.distances._latent import error_of_numbers, estimated_correlations, unbounded
from latentree.distances._statistics import gather
from latentree.errors import DataError
from latentree.typing import FloatArray, KindsByName, TableLike


class Correlation(NamedTuple):
    """A correlation and how sure it is.

    Parameters
    ----------
    r : float
        The correlation.
    error : float
        Its standard error; infinite if there is nothing to estimate it from.
    n : float
        Number of rows in which both variables are present.

    Examples
    --------
    >>> from latentree.distances import polychoric
    >>> polychoric([[40, 10], [10, 40]]).n
    100.0
    """

    r: float
    error: float
    n: float


def polychoric(x: ArrayLike, y: ArrayLike | None = None) -> Correlation:
    """Estimate the correlation of two normal variables behind ordered answers.

    Parameters
    ----------
    x : array
        Answers to one question, as numbers in their order, NaN where missing; or, without ``y``,
        a table of counts: a row for each answer to the one, a column for each to the other.
    y : array, optional
        Answers to another question by the same people.

    Returns
    -------
    Correlation
        In two steps (Olsson 1979): thresholds from the shares of the answers, then the correlation
        by maximum likelihood. The standard error counts both. For yes/no it is the tetrachoric
        correlation. If the likelihood rises up to 1 or −1, half a row is added to empty cells.

    References
    ----------
    Olsson, *Maximum Likelihood Estimation of the Polychoric Correlation Coefficient*, Psychometrika
    44, 1979. Genz, *Numerical Computation of Rectangular Bivariate and Trivariate Normal and t
    Probabilities*, Statistics and Computing 14, 2004.

    Examples
    --------
    >>> from latentree.distances import polychoric
    >>> found = polychoric([[52, 58, 8], [18, 15, 7], [5, 11, 3]])
    >>> round(found.r, 4), round(found.error, 3), found.n
    (0.1683, 0.103, 177.0)
    """
    if y is None:
        table = np.asarray(x, np.float64)
        if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
            raise DataError("a table of counts has two dimensions and no negative numbers")
    else:
        (a, b), _ = _paired(x, y)
        levels = [np.unique(each, return_inverse=True) for each in (a, b)]
        table = np.zeros((levels[0][0].size, levels[1][0].size))
        np.add.at(table, (levels[0][1], levels[1][1]), 1.0)
    with tiny(True):
        r, error = kernels.polychoric(table, True)
    return Correlation(float(r), float(error), float(table.sum()))


def polyserial(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Estimate the correlation of a number and the normal variable behind ordered answers.

    Parameters
    ----------
    x : array
        Numbers, of which the ranks count only; NaN where missing.
    y : array
        Answers, as numbers in their order; NaN where missing.

    Returns
    -------
    Correlation
        Least squares of the mean normal scores of x in the levels of y, weighted by their
        variance under the model. For yes/no it is the biserial correlation.

    References
    ----------
    Olsson, Drasgow and Dorans, *The Polyserial Correlation Coefficient*, Psychometrika 47, 1982.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.distances import polyserial
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.standard_normal((2, 5_000))
    >>> answer = np.digitize(0.6 * x + 0.8 * noise, [-1.0, 0.0, 1.0])
    >>> found = polyserial(x, answer)
    >>> round(found.r, 2), round(found.error, 3)
    (0.6, 0.01)
    """
    (a, b), n = _paired(x, y)
    codes = np.unique(b, return_inverse=True)[1]
    counts = np.bincount(codes).astype(np.float64)
    with tiny(True):
        r, error = kernels.polyserial(np.bincount(codes, _scores(a)), counts, True)
    return Correlation(float(r), float(error), n)


def rank_correlation(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Estimate the correlation of two variables that are normal but for their scales.

    Parameters
    ----------
    x, y : arrays
        Numbers; NaN where missing. Only their ranks count, so that outliers and skewed scales do
        not matter.

    Returns
    -------
    Correlation
        From that of the normal scores Φ⁻¹((rank − ½)/n), cut off at ±2. If the variables are normal
        on some scales it is asymptotically 98 % as efficient as the correlation on these.

    Notes
    -----
    Outliers have the most extreme ranks, so that some of them in each column still weaken what is
    found; bounded scores halve that.

    References
    ----------
    Klaassen and Wellner, *Efficient Estimation in the Bivariate Normal Copula Model*, Bernoulli 3,
    1997.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.distances import rank_correlation
    >>> x, noise = np.random.default_rng(0).standard_normal((2, 5_000))
    >>> round(rank_correlation(np.exp(x), (0.6 * x + 0.8 * noise) ** 3).r, 1)
    0.6
    """
    (a, b), n = _paired(x, y)
    z, w = bounded(_scores(a)), bounded(_scores(b))
    if not (z.any() and w.any()):
        return Correlation(0.0, np.inf, n)
    r = float(unbounded(np.corrcoef(z, w)[0, 1]))
    return Correlation(r, float(error_of_numbers(r, n)), n)


@dataclass(frozen=True, eq=False)
class LatentCorrelations:
    """Correlations of the normal variables behind the columns of a table.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    correlations : array of shape (m, m)
        Of all pairs.
    standard_errors : array of shape (m, m)
        0 on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> found = latent_correlations(np.random.default_rng(0).integers(1, 4, (500, 3)))
    >>> found, round(float(found.standard_errors[0, 1]), 2)
    (LatentCorrelations(3 columns), 0.06)
    """

    names: tuple[str, ...]
    correlations: FloatArray
    standard_errors: FloatArray

    def __repr__(self) -> str:
        return f"LatentCorrelations({len(self.names)} columns)"


def latent_correlations(
    X: TableLike, *, kinds: KindsByName | None = None, weights: ArrayLike | None = None
) -> LatentCorrelations:
    """Estimate the correlations of the normal variables behind all columns of a table.

    Parameters
    ----------
    X : table of any kind
        Numbers, ordered answers, yes/no; cells may be missing.
    kinds : mapping from names to kinds, optional
        As for :func:`latentree.as_table`.
    weights : array, optional
        How much each row counts.

    Returns
    -------
    LatentCorrelations
        Of numbers by their ranks (:func:`rank_correlation`), of ordered answers polychoric, of the
        one with the other polyserial. A category of three or more labels has a dependence ≥ 0
        that multiplies along a tree as correlations do.

    Notes
    -----
    Each pair is taken over the rows in which both are present. Outliers count as missing: numbers
    beyond Tukey's outer fences that have nothing to do with the other columns. Time is that of the
    tables of pairs, not of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.distances import latent_correlations
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((2_000, 1))
    >>> answers = np.digitize(0.8 * factor + 0.6 * rng.standard_normal((2_000, 3)), [-1, 0, 1])
    >>> latent_correlations(answers).correlations.round(1)
    array([[1. , 0.6, 0.6],
           [0.6, 1. , 0.6],
           [0.6, 0.6, 1. ]])
    """
    table = as_table(X, "copula", kinds=kinds, weights=weights)
    statistics = gather(cut_table(table), pairs=True)
    statistics.require_learnable()
    r, error = estimated_correlations(statistics.sums, precise=True)
    return LatentCorrelations(table.names, r, error)


def _paired(x: ArrayLike, y: ArrayLike) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Return the values of the rows in which both are present, and their number."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise DataError(f"two columns of the same length are needed, got {a.shape} and {b.shape}")
    there = ~(np.isnan(a) | np.isnan(b))
    if np.count_nonzero(there) < 2:
        raise DataError("there are fewer than two rows in which both columns are present")
    return (a[there], b[there]), float(np.count_nonzero(there))


def _scores(x: FloatArray) -> FloatArray:
    """Normal scores of the mid-ranks."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - 0.5 * counts
    return np.asarray(ndtri(middle / x.size))[inverse]

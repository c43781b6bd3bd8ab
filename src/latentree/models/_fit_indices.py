"""How well a model reproduces correlations: the indices of structural equation models."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentree.data import Table
from latentree.distances import as_copula, as_sample
from latentree.errors import ModelError
from latentree.typing import FloatArray


class FitIndices(NamedTuple):
    """Indices of fit of Gaussian variables, in the definitions of lavaan.

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> indices = lt.fit_parameters(model.tree, model.sample(2_000, 1)).model.fit_indices(
    ...     model.sample(2_000, 1)
    ... )
    >>> indices.degrees_of_freedom, bool(indices.cfi > 0.99)
    (19, True)
    """

    chi_square: float
    """Of the likelihood ratio against a free covariance matrix."""
    degrees_of_freedom: int
    p_value: float
    cfi: float
    """Comparative fit index: 1 is best, 0 is as bad as independence."""
    tli: float
    """Tucker-Lewis index."""
    rmsea: float
    """Root mean square error of approximation: misfit per degree of freedom; 0 is best."""
    rmsea_low: float
    """Lower end of its 90 % interval."""
    rmsea_high: float
    """Upper end of its 90 % interval."""
    srmr: float
    """Standardized root mean square residual of the covariances."""


def fit_indices(table: Table, covariance: FloatArray, n_parameters: int) -> FitIndices:
    """Compare a model's covariance matrix with that of complete rows."""
    _require_complete(table)
    values, weights = np.asarray(table.values, np.float64), table.weight_array()
    n, m = float(weights.sum()), table.n_columns
    centered = values - np.average(values, axis=0, weights=weights)
    sample = (centered * weights[:, None]).T @ centered / n
    # Means are free in the model and beside it.
    return compared(sample, covariance, n, m * (m + 3) // 2 - n_parameters)


def latent_fit_indices(table: Table, correlation: FloatArray, n_correlations: int) -> FitIndices:
    """Compare correlations behind columns with polychoric and polyserial ones.

    χ² is the likelihood ratio of normal rows with these correlations, as if they had been seen.
    """
    _require_complete(table)
    distances = as_copula(as_sample(table)).distances
    sample: FloatArray = np.exp(-distances.dense()) * distances.signs()
    np.fill_diagonal(sample, 1.0)
    m = table.n_columns
    return compared(sample, correlation, table.total_weight, m * (m - 1) // 2 - n_correlations)


def _require_complete(table: Table) -> None:
    if table.has_missing:
        raise ModelError("indices of fit need rows without gaps: impute or drop cells first")


def compared(sample: FloatArray, covariance: FloatArray, n: float, freedom: int) -> FitIndices:
    """Return the indices of a covariance matrix beside that of ``n`` rows."""
    from scipy.stats import chi2

    m = len(sample)
    spread = np.sqrt(np.diag(sample))
    sign, log_det = map(float, np.linalg.slogdet(sample))
    if n <= m or sign <= 0.0 or not np.isfinite(log_det):
        raise ModelError(
            f"indices of fit need more rows than columns, but there are {n:g} and {m}"
            if n <= m
            else "indices of fit need columns that no others determine, and correlations that "
            "belong to one distribution: leave out columns that nearly repeat others"
        )
    # χ² = n·(log|Σ| + tr(S·Σ⁻¹) − log|S| − m), by maximum likelihood.
    misfit = np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, sample))
    chi_square = max(0.0, n * float(misfit - log_det - m))
    baseline = n * float(2.0 * np.log(spread).sum() - log_det)
    free_pairs = m * (m - 1) // 2
    is_tested = freedom > 0
    excess = max(chi_square - freedom, 0.0) if is_tested else 0.0
    worst = max(baseline - free_pairs, excess)
    ratio = baseline / free_pairs if free_pairs else 1.0
    tli = (ratio - chi_square / freedom) / (ratio - 1.0) if is_tested and ratio != 1.0 else 1.0
    low, high = (
        [_noncentrality(chi_square, freedom, share) for share in (0.95, 0.05)]
        if is_tested
        else (0.0, 0.0)
    )
    scale = n * freedom if is_tested else 1.0
    residuals = ((sample - covariance) / np.outer(spread, spread))[np.tril_indices(m)]
    return FitIndices(
        chi_square,
        freedom,
        float(chi2.sf(chi_square, freedom)) if is_tested else 1.0,
        1.0 - excess / worst if worst else 1.0,
        tli,
        float(np.sqrt(excess / scale)),
        float(np.sqrt(low / scale)),
        float(np.sqrt(high / scale)),
        float(np.sqrt(np.mean(residuals**2))),
    )


def _noncentrality(chi_square: float, freedom: int, share: float) -> float:
    """Return the noncentrality at which a share of the distribution lies below χ²; at least 0."""
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    if chi2.cdf(chi_square, freedom) < share:
        return 0.0
    upper = 4.0 * (chi_square + freedom)
    return float(brentq(lambda shift: ncx2.cdf(chi_square, freedom, shift) - share, 0.0, upper))

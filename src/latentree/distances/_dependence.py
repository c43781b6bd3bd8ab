"""The signed dependence r of pairs of columns, from sums of products of their functions.

Every family measures the dependence of a pair by one number r in [−1, 1], from which the
information distance is −c·log|r|:

==================  ==================================  ======  ===============================
family              r                                   c       variance of r, independent pair
==================  ==================================  ======  ===============================
gaussian            correlation                         1       1/n
discrete, K = 2     correlation of the codes            1       1/n
discrete, K > 2     ±|det J̃|^(1/(K−1))                  K − 1   about 1/n
discrete, uneven    first canonical correlation         1       v/n
symmetric           1 − K·θ, θ = P(x_i ≠ x_j)/(K−1)     K − 1   1/((K−1)·n)
mixed               first canonical correlation         1       v/n
copula              correlation of the normal           1       1/(s·t·n)
                    variables behind the columns
==================  ==================================  ======  ===============================

J̃ is the joint table divided by the roots of its marginals; its determinant is the product of the
K − 1 canonical correlations, and r their geometric mean. Rows count by their weights. Where cells
are missing, each pair is taken over the rows in which both are present; a pair that is constant on
those rows gets r = 0, never NaN.

Where kinds or numbers of states differ, r is the first canonical correlation σ of the functions of
both columns (``_functions``), p of the one and q of the other: the maximal correlation of two
columns of states, and at most that of others. Along a tree with binary or Gaussian hidden variables
it multiplies. σ̂² exceeds σ² by about b = (p + q − 2)/n where σ² is well above 0, beside the 1/n of
any correlation, so that r² = (σ̂² − b)/(1 − b), at least 1/(4n). Its standard error is then about
(1 − r²)/√n, as that of a correlation; but of independent columns σ̂² is the largest of many, and
n·E[r²] = v(p, q), about 1 for p = q = 1 and 4 for p = q = 4 (:func:`null_variance`). r has a sign
if both columns are ordered or have two states only. States of fewer than √n rows count as one, and
with the most frequent one if they are fewer even together. Of copulas, s and t are the shares of
the normal variables' variance that the two columns show (``_latent``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentree.data import Schema
from latentree.distances._functions import Units, is_unordered, n_functions
from latentree.distances._latent import estimated_correlations, shown_shares
from latentree.distances._reductions import FunctionIndex, Reduction, has_uneven_states
from latentree.distances._statistics import Statistics
from latentree.distances._sums import Sums
from latentree.typing import FloatArray, Index, IntArray


class DependenceScale(NamedTuple):
    """How r becomes a distance, and how sure it is.

    Attributes
    ----------
    exponent : float
        c in the information distance −c·log|r|.
    precision : float
        1 / (n · variance of r) for an independent pair of n rows.
    functions : array of int or None
        Number of functions of every column where r is a canonical correlation: the variance of r
        is then :func:`null_variance` times as large.
    shares : array of float or None
        Share of the variance of the normal variable behind every column that the column shows.
    """

    exponent: float = 1.0
    precision: float = 1.0
    functions: IntArray | None = None
    shares: FloatArray | None = None

    def precisions(self, rows: Index, columns: Index) -> float | FloatArray:
        """Return 1 / (n · variance of r) of independent pairs: one number if all are the same."""
        if self.functions is None:
            return self.precision
        p, q = self.functions[rows], self.functions[columns]
        found = self.precision / null_variance(p[:, None], q)
        if self.shares is None:
            return found
        return found * np.outer(self.shares[rows], self.shares[columns])

    def pair_precisions(self, first: IntArray, second: IntArray) -> float | FloatArray:
        """Return 1 / (n · variance of r) of some independent pairs."""
        if self.functions is None:
            return self.precision
        return self.precision / null_variance(self.functions[first], self.functions[second])


def null_variance(p: IntArray, q: IntArray) -> FloatArray:
    """Return v = n·E[r²] of two independent columns of p and q functions.

    With x = √(p − 1) and y = √(q − 1) it is 1 + 0.43·(x + y) + x·y·(2 − 1.95/(x·y)^0.4), fitted to
    the largest eigenvalues λ of Wishart matrices: E[max(λ − (p + q − 2), ¼)] to within a tenth for
    p and q up to 15. For many functions λ is (√p + √q)², so that v is 2·x·y.
    """
    x, y = np.sqrt(p - 1.0), np.sqrt(q - 1.0)
    both = x * y
    return np.asarray(1.0 + 0.43 * (x + y) + 2.0 * both - 1.95 * both**0.6)


def scale_of(schema: Schema, sums: Sums | None = None) -> DependenceScale:
    """Return the scale of a family; of copulas, that of the sums of the columns."""
    if schema.family == "copula":
        functions = np.where(is_unordered(schema), schema.cardinalities - 1, 1)
        return DependenceScale(
            functions=functions, shares=None if sums is None else shown_shares(sums)
        )
    if schema.family == "mixed" or has_uneven_states(schema):
        return canonical_scale(schema)
    if schema.family == "gaussian":
        return DependenceScale()
    k = int(schema.cardinalities[0])
    return DependenceScale(k - 1.0, k - 1.0 if schema.family == "symmetric" else 1.0)


def canonical_scale(schema: Schema) -> DependenceScale:
    """Return the scale of canonical correlations."""
    return DependenceScale(functions=n_functions(schema))


def dependence(statistics: Statistics, centered: bool = True) -> FloatArray:
    """Return r of all pairs from sums; only the lower triangle counts.

    ``centered=False`` takes real columns to have mean 0 instead of estimating it.
    """
    sums = statistics.sums
    if statistics.family == "copula":
        return estimated_correlations(sums).r
    reduction = Reduction.of(sums, centered)
    if not centered and statistics.family == "gaussian":
        units = sums.functions.units
        sums = sums.in_units(Units(np.zeros_like(units.shift), units.scale))
    return reduction.of_all(sums)


def canonical_correlations(sums: Sums) -> FloatArray:
    """Return the first canonical correlations of all pairs; only the lower triangle counts."""
    return Reduction("largest", FunctionIndex.of(sums)).of_all(sums)

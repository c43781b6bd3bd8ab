"""How strongly data speaks against the independence of pairs of columns.

Each pair gets a statistic that is distributed as χ² if the two columns are independent:

==================  =========================================================  ==================
family              statistic                                                  degrees of freedom
==================  =========================================================  ==================
gaussian            −(n − 2)·c·log(1 − r²) of the correlation r                1
discrete, symmetric the smaller of Pearson's X² and the likelihood ratio G     (K − 1)·(L − 1)
mixed               n·σ² of the first canonical correlation σ                  p·q, for p and q
                                                                               functions
mixed, both with a  (n − 1)·r² of the correlation r of normal scores           1
direction
copula              the same for n·s·t rows, with the correlation of the       1
                    normal variables, of whose variance the columns show the
                    shares s and t
==================  =========================================================  ==================

The first is the likelihood ratio; with c = ((8ν + 1)/(8ν + 3))² for ν = n − 2 it gives the
probabilities of Student's t of normal columns to a thousandth from 100 rows on, however far out
(Wallace 1959). Of real columns that are far from normal, r is that of their normal scores
(``_tails``).

Of tables with few counts in some cells, X² is too large where a state is rare, G where all are: the
smaller is good enough for either. Of mixed columns n·Σσ² over all canonical correlations is χ², of
which the first is a part: the test errs on the side of independence.

Numbers, ordered answers and columns of two labels have a direction. Pairs of such columns are
tested for a trend, by the correlation r of their normal scores z: one degree of freedom finds in 60
rows what (K − 1)·(L − 1) cannot. For dependence without a trend the correlations of z² with z and
with z² are tested too. The trend gets half of the level, the other three the rest (Bonferroni).
Where answers are rare, and for z², r is skewed: by γ_x·γ_y/√n for functions of skewness γ, and its
tail is that of the gamma distribution with that skewness (Pearson type III). Two columns of 30 rows
with the same two rows off zero have p = 0.003 by it, 1/C(30, 2) = 0.002 in truth, and 0 by
Student's t. The variance of (n − 1)·r² exceeds 2 by κ_x·κ_y/n (Pitman 1937).

Pitman, Significance tests which may be applied to samples from any populations II, Supplement to
the Journal of the Royal Statistical Society 4, 1937. Wallace, Bounds on normal approximations to
Student's and the chi-square distributions, Annals of Mathematical Statistics 30, 1959.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, erfc, gammainc, gammaincc

from latentree.data import Parts
from latentree.distances._arrays import mirrored, ranges
from latentree.distances._dependence import dependence, scale_of
from latentree.distances._functions import has_direction
from latentree.distances._information import information
from latentree.distances._statistics import Statistics
from latentree.distances._sums import Sums
from latentree.distances._tails import FARTHEST, far_from_normal, score_correlations
from latentree.typing import FloatArray, IntArray

_BLOCK_CELLS = 1 << 22
"""Cells of joint tables that are tested at the same time: 32 MB, of which some copies are made."""


class Evidence(NamedTuple):
    """Evidence against the independence of all pairs of some variables.

    Attributes
    ----------
    statistic : array of shape (m, m)
        Distributed as χ² for an independent pair; 0 on the diagonal.
    freedom : array of shape (m, m)
        Degrees of freedom; 0 on the diagonal.
    excess : float or array of shape (m, m)
        By how much the variance of the statistic exceeds that of χ², as a share of the latter.
    known : array of shape (m, m) or None
        Probabilities, where they are not those of the statistic.
    """

    statistic: FloatArray
    freedom: FloatArray
    excess: float | FloatArray = 0.0
    known: FloatArray | None = None

    def p_values(self) -> FloatArray:
        """Return the probability of evidence as strong, of independent pairs."""
        if self.known is not None:
            return self.known
        if (self.freedom <= 1.0).all():  # P(χ² > x) = erfc(√(x/2)) for one degree of freedom
            p = erfc(np.sqrt(0.5 * self.statistic))
        else:
            p = chdtrc(np.maximum(self.freedom, 1.0), self.statistic)
        p[self.freedom == 0.0] = 1.0
        return np.asarray(p)


def evidence_of_correlations(r: FloatArray, n: float | FloatArray) -> Evidence:
    """Return the statistic of correlations over n rows; it is finite for duplicate columns."""
    freedom = np.maximum(np.asarray(n) - 2.0, 0.0)
    correction = ((8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)) ** 2
    statistic = freedom * correction * -np.log1p(-np.minimum(r**2, 1.0 - 1e-15))
    np.fill_diagonal(statistic, 0.0)
    return Evidence(statistic, 1.0 - np.eye(len(r)))


def pair_evidence(
    statistics: Statistics, rows: Parts | None, columns: IntArray | None = None
) -> Evidence:
    """Return the evidence of all pairs of columns that are not all real, from sums of all pairs.

    Parameters
    ----------
    statistics : Statistics
        With sums of all pairs.
    rows : Parts or None
        The rows, which may have more columns: mixed columns are tested for trends.
    columns : array of int, optional
        Which columns; by default all.

    Returns
    -------
    Evidence
    """
    if columns is not None:
        statistics = statistics.select(columns)
    sums = statistics.sums
    if statistics.schema.is_coded:
        return _evidence_of_counts(sums)
    r = mirrored(dependence(statistics))
    if statistics.family == "copula":
        n = sums.pair_weights() * scale_of(statistics.schema, sums).precisions(
            slice(None), slice(None)
        )
        return evidence_of_correlations(r, n)
    evidence = _evidence_of_functions(r, sums.pair_weights(), statistics)
    return evidence if rows is None else _with_trends(evidence, statistics, rows)


def _with_trends(evidence: Evidence, statistics: Statistics, rows: Parts) -> Evidence:
    """Test pairs of columns with a direction by correlations of z and z² of either."""
    schema = statistics.schema
    directed = np.flatnonzero(has_direction(schema))
    m = directed.size
    if m < 2:
        return evidence
    names = tuple(schema.names[j] for j in directed)
    r, n, (skewness, kurtosis) = score_correlations(rows, names, powers=2)
    tests = _trend_p_values(r, n, skewness).reshape(2, m, 2, m).transpose(0, 2, 1, 3)
    trend, others = tests[0, 0], np.minimum(np.minimum(tests[0, 1], tests[1, 0]), tests[1, 1])
    pairs = np.ix_(directed, directed)
    p = evidence.p_values()
    p[pairs] = np.minimum(np.minimum(2.0 * trend, 6.0 * others), 1.0)
    evidence.statistic[pairs] = ((np.asarray(n) - 1.0) * r**2)[:m, :m]
    evidence.freedom[pairs] = 1.0
    excess = np.zeros_like(p)
    excess[pairs] = np.maximum(
        np.outer(kurtosis, kurtosis) / np.maximum(2.0 * np.asarray(n), 1.0), 0.0
    )[:m, :m]
    for array, alone in ((evidence.statistic, 0.0), (evidence.freedom, 0.0), (p, 1.0)):
        np.fill_diagonal(array, alone)
    return evidence._replace(excess=excess, known=p)


def _trend_p_values(r: FloatArray, n: float | FloatArray, skewness: FloatArray) -> FloatArray:
    """Return P(|r| as large) of independent columns whose scores have some skewness."""
    p = evidence_of_correlations(r, n).p_values()
    n = np.broadcast_to(np.maximum(n, 1.0), r.shape)
    skew = np.abs(np.multiply.outer(skewness, skewness)) / np.sqrt(n)
    far = skew > FARTHEST
    shape = 4.0 / skew[far] ** 2  # of the gamma distribution with this skewness
    z = np.sqrt((n[far] - 1.0) * shape) * np.abs(r[far])
    tails = gammaincc(shape, shape + z) + gammainc(shape, np.maximum(shape - z, 0.0))
    p[far] = np.maximum(p[far], tails)
    return p


def real_evidence(
    r: FloatArray, n: float | FloatArray, statistics: Statistics, rows: Parts | None
) -> Evidence:
    """Return the evidence of pairs of real columns.

    Parameters
    ----------
    r : array of shape (m, m)
        Their correlations.
    n : float or array of shape (m, m)
        Weight of the rows of every pair.
    statistics : Statistics
        Sums of the columns.
    rows : Parts or None
        The rows, which may have more columns: pairs far from normal are ranked. Without rows they
        are tested as if they were normal.

    Returns
    -------
    Evidence
    """
    evidence = evidence_of_correlations(r, n)
    if rows is None:
        return evidence
    far = far_from_normal(n, statistics, rows)
    among = np.flatnonzero(far.any(axis=0))
    if among.size:
        names = tuple(statistics.names[j] for j in among)
        scored = evidence_of_correlations(*score_correlations(rows, names)[:2]).statistic
        pairs = np.ix_(among, among)
        evidence.statistic[pairs] = np.where(far[pairs], scored, evidence.statistic[pairs])
    return evidence


def _evidence_of_functions(
    r: FloatArray, n: float | FloatArray, statistics: Statistics
) -> Evidence:
    """Return n·σ², where r² = (σ² − b)/(1 − b) with b = (p + q − 2)/n."""
    functions = scale_of(statistics.schema).functions
    assert functions is not None
    bias = np.minimum((np.add.outer(functions, functions) - 2.0) / np.maximum(n, 1.0), 1.0)
    statistic = n * (r**2 * (1.0 - bias) + bias)
    freedom = np.multiply.outer(functions, functions).astype(np.float64)
    for array in (statistic, freedom):
        np.fill_diagonal(array, 0.0)
    return Evidence(statistic, freedom)


def _evidence_of_counts(sums: Sums) -> Evidence:
    """Return the evidence of discrete columns, in blocks of joint tables."""
    m = sums.weight.size
    statistic, freedom = np.zeros((m, m)), np.zeros((m, m))
    step = max(1, _BLOCK_CELLS // int(sums.single.size * np.diff(sums.starts).max()))
    for start, stop in ranges(m, step):
        at = sums.starts[start:stop] - sums.starts[start]
        joint = sums.tables(np.arange(start, stop))
        statistic[start:stop], freedom[start:stop] = _of_tables(joint, at, sums.starts[:-1])
    for array in (statistic, freedom):
        np.fill_diagonal(array, 0.0)
    return Evidence(statistic, freedom)


def _of_tables(
    joint: FloatArray, at_rows: IntArray, at_columns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the smaller of X² and G of joint tables laid side by side, and their freedom.

    X² is scaled by (n − 1)/n, so that its mean given the margins is the degrees of freedom.
    """
    # Margins of every table: sums over the states of the column's and of the row's variable.
    by_column = np.add.reduceat(joint, at_columns, axis=1)
    by_row = np.add.reduceat(joint, at_rows, axis=0)
    n = np.add.reduceat(by_column, at_rows, axis=0)
    own, other = (np.diff(np.append(at, size)) for at, size in zip(
        (at_rows, at_columns), joint.shape, strict=True))  # fmt: skip
    margins = np.repeat(by_column, other, axis=1) * np.repeat(by_row, own, axis=0)
    share = np.divide(joint, margins, out=np.zeros_like(joint), where=margins > 0)

    # X²/n = Σ O²/(row·column) − 1, and G = 2·n·I with the mutual information I.
    shares = np.add.reduceat(np.add.reduceat(joint * share, at_columns, axis=1), at_rows)
    pearson = (shares - 1.0) * np.maximum(n - 1.0, 0.0)
    likelihood = 2.0 * n * information(joint, at_rows, at_columns)
    seen_rows = np.add.reduceat(by_column > 0, at_rows, axis=0, dtype=np.float64)
    seen_columns = np.add.reduceat(by_row > 0, at_columns, axis=1, dtype=np.float64)
    freedom = np.maximum(seen_rows - 1.0, 0.0) * np.maximum(seen_columns - 1.0, 0.0)
    return np.maximum(np.minimum(pearson, likelihood), 0.0), freedom

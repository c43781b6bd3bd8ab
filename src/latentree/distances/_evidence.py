"""How strongly data speaks against the independence of pairs of columns.

Each pair gets a statistic that is distributed as χ² if the two columns are independent:

==================  =========================================================  ==================
family              statistic                                                  degrees of freedom
==================  =========================================================  ==================
gaussian            (n − 3)·artanh² of the correlation (Fisher)                1
discrete, symmetric the smaller of Pearson's X² and the likelihood ratio G     (K − 1)·(L − 1)
mixed               n·σ² of the first canonical correlation σ                  p·q, for p and q
                                                                               functions
copula              (n·s·t − 3)·artanh² of the correlation of the normal       1
                    variables, of whose variance the columns show the shares
                    s and t
==================  =========================================================  ==================

Of tables with few counts in some cells, X² is too large where a state is rare, G where all are: the
smaller is good enough for either. Of mixed columns n·Σσ² over all canonical correlations is χ², of
which the first is a part: the test errs on the side of independence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, erfc

from latentree.distances._counting import ranges
from latentree.distances._dependence import dependence, mirrored, scale_of, scale_of_sums
from latentree.distances._statistics import Statistics
from latentree.distances._sums import RealSums, StateCounts
from latentree.typing import FloatArray, IntArray

_BLOCK_CELLS = 1 << 22  # of joint tables that are looked at at the same time


class Evidence(NamedTuple):
    """Evidence against the independence of all pairs of some variables.

    Attributes
    ----------
    statistic : array of shape (m, m)
        Distributed as χ² for an independent pair; 0 on the diagonal.
    freedom : array of shape (m, m)
        Degrees of freedom; 0 on the diagonal.
    """

    statistic: FloatArray
    freedom: FloatArray

    def p_values(self) -> FloatArray:
        """Return the probability of a statistic as large, of independent pairs."""
        if (self.freedom <= 1.0).all():  # P(χ² > x) = erfc(√(x/2)) for one degree of freedom
            p = erfc(np.sqrt(0.5 * self.statistic))
        else:
            p = chdtrc(np.maximum(self.freedom, 1.0), self.statistic)
        p[self.freedom == 0.0] = 1.0
        return np.asarray(p)

    def select(self, variables: IntArray) -> Evidence:
        """Return the evidence among some variables."""
        chosen = np.ix_(variables, variables)
        return Evidence(self.statistic[chosen], self.freedom[chosen])


def evidence_of_correlations(r: FloatArray, n: float | FloatArray) -> Evidence:
    """Return Fisher's statistic of correlations over n rows; it is finite for duplicate columns."""
    z = np.arctanh(np.minimum(np.abs(r), 1.0 - 1e-15))
    statistic = np.maximum(np.asarray(n) - 3.0, 0.0) * z**2
    np.fill_diagonal(statistic, 0.0)
    return Evidence(statistic, 1.0 - np.eye(len(r)))


def pair_evidence(statistics: Statistics) -> Evidence:
    """Return the evidence of all pairs, from sums of all pairs."""
    sums = statistics.sums
    if isinstance(sums, StateCounts):
        return _evidence_of_counts(sums)
    r = mirrored(dependence(statistics))
    if statistics.family == "copula":
        n = sums.pair_weights() * scale_of_sums(statistics).precisions(slice(None), slice(None))
        return evidence_of_correlations(r, n)
    if isinstance(sums, RealSums):
        return evidence_of_correlations(r, sums.pair_weights())
    return _evidence_of_functions(r, sums.pair_weights(), statistics)


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


def _evidence_of_counts(sums: StateCounts) -> Evidence:
    m = sums.widths.size
    statistic, freedom = np.zeros((m, m)), np.zeros((m, m))
    step = max(1, _BLOCK_CELLS // int(sums.single.size * sums.widths.max()))
    for start, stop in ranges(m, step):
        at = sums.starts[start:stop] - sums.starts[start]
        joint = sums.table(np.arange(start, stop))
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
    by_column = np.add.reduceat(joint, at_columns, axis=1)  # of each state of the row's variable
    by_row = np.add.reduceat(joint, at_rows, axis=0)
    n = np.add.reduceat(by_column, at_rows, axis=0)
    own, other = (np.diff(np.append(at, size)) for at, size in zip(
        (at_rows, at_columns), joint.shape, strict=True))  # fmt: skip
    margins = np.repeat(by_column, other, axis=1) * np.repeat(by_row, own, axis=0)
    share = np.divide(joint, margins, out=np.zeros_like(joint), where=margins > 0)
    spread_n = np.repeat(np.repeat(n, own, axis=0), other, axis=1)
    ratio = np.maximum(share * spread_n, 1e-300)  # of observed to expected counts

    def total(cells: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(np.add.reduceat(cells, at_columns, axis=1), at_rows))

    pearson = (total(joint * share) - 1.0) * np.maximum(n - 1.0, 0.0)
    likelihood = 2.0 * total(joint * np.log(ratio))
    seen_rows = np.add.reduceat(by_column > 0, at_rows, axis=0, dtype=np.float64)
    seen_columns = np.add.reduceat(by_row > 0, at_columns, axis=1, dtype=np.float64)
    freedom = np.maximum(seen_rows - 1.0, 0.0) * np.maximum(seen_columns - 1.0, 0.0)
    return np.maximum(np.minimum(pearson, likelihood), 0.0), freedom

"""Correlations of the Gaussian variables behind columns of any kind, from sums of pairs.

Each column shows something of a standard normal variable behind it: a number its normal score, an
ordered answer the interval between two thresholds. The correlation of two such variables is

=================  ====================================================================
pair               estimate
=================  ====================================================================
numbers            correlation of the normal scores
ordered answers    polychoric: two-step maximum likelihood from the table of counts
number, answers    polyserial: least squares of the mean scores of the answers
category, other    root of the share of the variance between categories, bias taken off
two categories     first canonical correlation, bias taken off
=================  ====================================================================

Yes/no counts as ordered. Categories are those with three or more labels; a Gaussian variable shows
in them by P(c | z) ∝ exp(a_c + b_c·z), and their correlation with it is that of their mean scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import tiny
from latentree._kernels.distances import latent as kernels
from latentree.distances._arrays import in_parts, mirrored, ranges
from latentree.distances._functions import is_unordered
from latentree.distances._reductions import WEAKEST_OF_MANY, correlations
from latentree.distances._sums import Sums
from latentree.typing import FloatArray, IntArray

_BLOCK_CELLS = 1 << 24
"""Cells of joint tables that are spread out at the same time: 128 MB."""

_SHARE = 0.98972
"""E[ψ′]²/E[ψ²] of the bounded score ψ of a normal variable: dr/dρ of its correlation r at ρ = 0."""

_TINY_PAIRS = 20
"""Up to so many tables are read by uncompiled code: milliseconds each; compiling takes seconds."""


class EstimatedCorrelations(NamedTuple):
    """Correlations of all pairs, and their standard errors; whole matrices."""

    r: FloatArray
    error: FloatArray


def estimated_correlations(sums: Sums, precise: bool = False) -> EstimatedCorrelations:
    """Return r of all pairs of a copula's columns, and standard errors if ``precise``."""
    assert sums.pairs is not None
    functions, m = sums.functions, sums.weight.size
    r, error = np.eye(m), np.zeros((m, m))
    real, coded = (np.flatnonzero(functions.is_number == own) for own in (True, False))
    if real.size:
        numbers, pair = sums.pairs.select(real, functions).every_second(0), np.ix_(real, real)
        r[pair] = unbounded(mirrored(correlations(numbers)))
        error[pair] = error_of_numbers(r[pair], numbers.weight)
    if coded.size:
        states = sums.select(coded)
        own, pair = np.ix_(coded, coded), np.ix_(real, coded)
        r[own], error[own] = _of_states(states, precise)
        block = sums.pairs.block(real, coded, functions)
        of_scores, counts = block.by_state(states.functions.starts)
        by_state = _Numbers(of_scores[1::2], counts, states.starts)
        r[pair], error[pair] = by_state.correlations(precise)
        r[pair[1].T, pair[0].T], error[pair[1].T, pair[0].T] = r[pair].T, error[pair].T
        _set_categories(r, error, sums, states, by_state)
    np.fill_diagonal(r, 1.0)
    np.fill_diagonal(error, 0.0)
    return EstimatedCorrelations(r, error)


class _Numbers(NamedTuple):
    """Σ w·z, and Σ w, of columns of numbers (rows) in the rows with every state (columns)."""

    sums: FloatArray
    counts: FloatArray
    starts: IntArray

    def correlations(self, precise: bool) -> tuple[FloatArray, FloatArray]:
        """Return polyserial correlations of all numbers with all columns of states."""
        out = np.zeros((len(self.sums), self.starts.size - 1))
        error = np.zeros_like(out)
        counts = np.ascontiguousarray(np.broadcast_to(self.counts, self.sums.shape))

        def fill(part: slice) -> None:
            kernels.polyserial_rows(
                self.sums[part], counts[part], self.starts, precise, out[part], error[part]
            )

        with tiny(out.size <= _TINY_PAIRS):
            in_parts(len(out), fill)
        return out, error

    def of(self, number: int, column: int) -> tuple[FloatArray, FloatArray]:
        """Return the sums and counts of one column of states."""
        states = slice(*self.starts[column : column + 2])
        return self.sums[number, states], self.counts[number % len(self.counts), states]


def _set_categories(
    r: FloatArray, error: FloatArray, sums: Sums, states: Sums, numbers: _Numbers
) -> None:
    """Overwrite what was found for categories that have no order."""
    unordered, weight = is_unordered(sums.functions.schema), sums.pair_weights()
    real, coded = (np.flatnonzero(sums.functions.is_number == own) for own in (True, False))
    for place in np.flatnonzero(unordered[coded]).tolist():
        c = int(coded[place])
        found = {int(j): _between(*numbers.of(i, place), 1.0) for i, j in enumerate(real.tolist())}
        tables = states.tables(np.array([place]))
        for other, j in enumerate(coded.tolist()):
            joint = tables[:, slice(*states.starts[other : other + 2])]
            if j != c and not unordered[j]:
                found[j] = _between_levels(joint)
            elif j < c:
                found[j] = canonical(joint)
        for j, value in found.items():
            n = weight[c, j] if isinstance(weight, np.ndarray) else weight
            r[c, j] = r[j, c] = value
            error[c, j] = error[j, c] = (1.0 - value**2) / np.sqrt(max(n, 1.0))


def shown_shares(sums: Sums) -> FloatArray:
    """Return the share of the variance of each hidden normal variable that its column shows.

    Of numbers what bounded scores show. The correlation of an independent pair has the variance
    1/n over the product of the shares of its columns.
    """
    functions = sums.functions
    out = np.where(functions.is_number, _SHARE, 1.0)
    for j in np.flatnonzero(~functions.is_number & ~is_unordered(functions.schema)).tolist():
        out[j] = _shown_share(sums.of_column(j))
    return out


def unbounded(r: FloatArray) -> FloatArray:
    """Return ρ of two normal variables whose bounded scores have the correlation r.

    dr/dρ = P(|x| < 2, |y| < 2)/E[ψ²], so that r is 0.99·ρ near 0 and ρ at ±1; the formula is right
    to within 10⁻⁴.
    """
    rest = np.maximum(1.0 - r * r, 0.0)
    return np.asarray(r * (1.0 + (1.0 / _SHARE - 1.0) * rest**0.85))


def error_of_numbers(r: FloatArray | float, n: FloatArray | float) -> FloatArray:
    """Return the standard error of such a ρ: (1 − ρ²)/√n, and what the bound costs."""
    return np.asarray(np.maximum(1.0 - r * r, 0.0) / (_SHARE * np.sqrt(np.maximum(n, 1.0))))


def _of_states(states: Sums, precise: bool) -> tuple[FloatArray, FloatArray]:
    """Return polychoric correlations of all pairs of columns with states."""
    m, starts = states.starts.size - 1, states.starts
    out, error = np.eye(m), np.zeros((m, m))
    step = max(1, _BLOCK_CELLS // int(states.single.size * np.diff(starts).max()))
    for start, stop in ranges(m, step):
        limits = np.arange(start, stop)
        joint, own = states.tables(limits), starts[start : stop + 1] - starts[start]

        def fill(part: slice) -> None:
            kernels.polychoric_rows(
                joint[own[part.start] :],  # noqa: B023
                own[part.start : part.stop + 1] - own[part.start],  # noqa: B023
                starts, limits[part], precise, out[start:stop][part],  # noqa: B023
                error[start:stop][part],  # noqa: B023
            )  # fmt: skip

        with tiny(m * m // 2 <= _TINY_PAIRS):
            in_parts(stop - start, fill)
    return mirrored(out), mirrored(error)


def _shown_share(counts: FloatArray) -> float:
    """Σ p·u² of levels with the mean scores u: the share of the variance that they show."""
    counts = counts[counts > 0]
    if counts.size < 2:
        return 1.0
    with tiny(True):
        u = kernels.level_means(counts, kernels.thresholds_of(counts))
    return float(counts @ u**2 / counts.sum())


def _between(sums: FloatArray, counts: FloatArray, share: float) -> float:
    """Root of the share of the variance of scores between groups, without what noise adds.

    ``share`` is the variance of the scores. η̂² exceeds η² by about (C − 1)/n.
    """
    there = counts > 0
    n = counts[there].sum()
    if np.count_nonzero(there) < 2:
        return 0.0
    mean = sums[there].sum() / n
    between = float((counts[there] * (sums[there] / counts[there] - mean) ** 2).sum() / n)
    bias = (np.count_nonzero(there) - 1.0) / n
    eta = max((between / share - bias) / (1.0 - min(bias, 0.5)), (WEAKEST_OF_MANY**2) / n)
    # E[u | c] = share·E[z | c] for scores u that show a share of the variance of z.
    return float(min(np.sqrt(eta / share), kernels.LIMIT))


def _between_levels(joint: FloatArray) -> float:
    """Dependence of a category (rows) and ordered levels (columns)."""
    counts = joint.sum(axis=0)
    there = counts > 0
    if np.count_nonzero(there) < 2:
        return 0.0
    counts, joint = counts[there], joint[:, there]
    with tiny(True):
        u = kernels.level_means(counts, kernels.thresholds_of(counts))
    share = float(counts @ u**2 / counts.sum())
    return _between(joint @ u, joint.sum(axis=1), share)


def canonical(joint: FloatArray) -> float:
    """First canonical correlation of the states of two columns, without what noise adds."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    keep = np.ix_(rows > 0, columns > 0)
    n = joint.sum()
    if min(joint[keep].shape) < 2:
        return 0.0
    values = np.linalg.svd(joint[keep] / np.sqrt(np.outer(rows, columns)[keep]), compute_uv=False)
    bias = min((sum(joint[keep].shape) - 4.0) / n, 0.5)
    squared = (values[1] ** 2 - bias) / (1.0 - bias)
    return float(min(np.sqrt(max(squared, WEAKEST_OF_MANY**2 / n)), kernels.LIMIT))

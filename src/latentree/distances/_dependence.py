"""The signed dependence r of pairs of columns, from sums over rows.

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
both columns (``_scores``), p of the one and q of the other: the maximal correlation of two columns
of states, and at most that of others. Along a tree with binary or Gaussian hidden variables it
multiplies. σ̂² exceeds σ² by about b = (p + q − 2)/n where σ² is well above 0, beside the 1/n of any
correlation, so that r² = (σ̂² − b)/(1 − b), at least 1/(4n). Its standard error is then about
(1 − r²)/√n, as that of a correlation; but of independent columns σ̂² is the largest of many, and
n·E[r²] = v(p, q), about 1 for p = q = 1 and 4 for p = q = 4 (:func:`null_variance`). r has a sign
if both columns are ordered or have two states only. States of fewer than √n rows count as one, and
with the most frequent one if they are fewer even together. Of copulas, s and t are the shares
of the normal variables' variance that the two columns show (``_latent_sums``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from latentree._kernels.distances import canonical
from latentree._kernels.distances import pairs as kernels
from latentree.data import Schema
from latentree.distances._arrays import places, starts_of
from latentree.distances._counting import in_parts, ranges
from latentree.distances._latent_sums import LatentSums, is_unordered
from latentree.distances._mixed_sums import WEAKEST_OF_MANY, MixedSums, join_rare
from latentree.distances._real_sums import RealSums
from latentree.distances._scores import n_functions
from latentree.distances._state_counts import StateCounts, state_widths
from latentree.distances._statistics import Statistics
from latentree.typing import FloatArray, Index, IntArray

_BLOCK_CELLS = 1 << 24
"""Cells of joint tables that are spread out at the same time: 128 MB."""


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


def scale_of(schema: Schema) -> DependenceScale:
    """Return the scale of a family."""
    if schema.family == "gaussian":
        return DependenceScale()
    if schema.family == "mixed":
        return DependenceScale(functions=n_functions(schema))
    if schema.family == "discrete" and has_uneven_states(schema):
        return canonical_scale(schema)
    k = int(schema.cardinalities[0])
    return DependenceScale(k - 1.0, k - 1.0 if schema.family == "symmetric" else 1.0)


def canonical_scale(schema: Schema) -> DependenceScale:
    """Return the scale of canonical correlations of columns of states."""
    return DependenceScale(functions=state_widths(schema) - 1)


def scale_of_sums(statistics: Statistics) -> DependenceScale:
    """Return the scale of the dependence that sums of all pairs give."""
    sums = statistics.sums
    if not isinstance(sums, LatentSums):
        return scale_of(statistics.schema)
    unordered = is_unordered(statistics.schema)
    functions = np.where(unordered, statistics.cardinalities - 1, 1)
    return DependenceScale(functions=functions, shares=sums.latent.shares())


def has_uneven_states(schema: Schema) -> bool:
    """Whether the numbers of states of coded columns differ."""
    return bool(schema.cardinalities.min() < schema.cardinalities.max())


def dependence(statistics: Statistics, centered: bool = True) -> FloatArray:
    """Return r of all pairs from sums; only the lower triangle counts.

    ``centered=False`` takes real columns to have mean 0 instead of estimating it.
    """
    sums = statistics.sums
    if isinstance(sums, RealSums):
        return sums.correlations(centered)
    if isinstance(sums, MixedSums):
        return sums.correlations()
    if statistics.family == "discrete" and has_uneven_states(statistics.schema):
        return canonical_correlations(sums)
    k = int(statistics.cardinalities[0])
    if statistics.family == "symmetric":
        return _agreements(sums, k)
    if k == 2 and not sums.all_held:
        return _correlations_of_ones(sums)
    out = np.zeros((statistics.n_columns, statistics.n_columns))
    read = kernel_of_tables(k)
    for rows, joint in _joint_blocks(sums, k):
        part = out[rows]
        in_parts(len(part), lambda some: read(joint[some], part[some]))  # noqa: B023
    return out


def kernel_of_tables(n_states: int) -> Callable[[FloatArray, FloatArray], None]:
    """Return the kernel that turns joint tables of columns with K states each into r."""
    read: Callable[[FloatArray, FloatArray], None] = (
        kernels.correlations_of_tables if n_states == 2 else kernels.determinant_roots
    )
    return read


def _correlations_of_ones(sums: StateCounts) -> FloatArray:
    """Return (n·n₁₁ − a·b) / √(a·(n − a)·b·(n − b)): a and b ones, of which n₁₁ are common."""
    assert sums.pairs is not None
    r, n, ones = sums.pairs.copy(), sums.total, sums.single[1::2].copy()
    scale = inverse(np.sqrt(np.maximum(ones * (n - ones), 0.0)))
    in_parts(
        len(r),
        lambda part: kernels.correlations_of_ones(r[part], n, ones[part], ones, scale[part], scale),
    )
    return r


def canonical_correlations(sums: StateCounts) -> FloatArray:
    """Return the first canonical correlations of columns with any numbers of states."""
    m = sums.starts.size - 1
    out = np.eye(m)
    states = MergedStates.of(sums)
    for start, stop in ranges(m, max(1, _BLOCK_CELLS // int(sums.single.size * sums.widths.max()))):
        rows = np.arange(start, stop)
        read_counts(sums.table(rows), states.select(rows), states, rows, out[start:stop])
    return out


class MergedStates(NamedTuple):
    """How the states of columns are read that are laid end to end.

    ``into`` and ``widths`` say which count as one, see :func:`join_rare`.
    """

    starts: IntArray
    into: IntArray
    widths: IntArray

    @classmethod
    def of(cls, sums: StateCounts) -> MergedStates:
        """Join the rare states of every column, with its most frequent one where they are few."""
        least = float(np.sqrt(sums.total))
        into, widths = join_rare(sums.single, least, sums.starts, needed=2)
        for start, stop in pairwise(sums.starts.tolist()):
            mine = into[start:stop]
            mine[mine < 0] = mine[sums.single[start:stop].argmax()]
        return cls(sums.starts, into, widths)

    def select(self, columns: IntArray) -> MergedStates:
        """Return the states of some columns."""
        starts = starts_of(np.diff(self.starts)[columns])
        return MergedStates(starts, self.into[places(columns, self.starts)], self.widths[columns])


def read_counts(
    joint: FloatArray,
    x: MergedStates,
    y: MergedStates,
    limits: IntArray,
    out: FloatArray,
    as_list: bool = False,
) -> None:
    """Set ``out`` to the first canonical correlation of pairs, from their joint tables.

    Of column i of x with the first ``limits[i]`` of y; or, as a list, with column i of y.
    """
    offsets = np.arange(len(out)) if as_list else np.zeros(len(out), np.int64)

    def fill(part: slice) -> None:
        mine = x.select(np.arange(part.start, part.stop))
        canonical.correlations_of_counts(
            joint[x.starts[part.start] : x.starts[part.stop]], *mine, *y,
            offsets[part], limits[part], WEAKEST_OF_MANY, out[part],
        )  # fmt: skip

    in_parts(len(out), fill)


def _agreements(sums: StateCounts, k: int) -> FloatArray:
    """1 − K·θ̂ with θ̂ = mean(x_i ≠ x_j) / (K − 1)."""
    m = sums.starts.size - 1
    out = np.empty((m, m))
    for rows, joint in _joint_blocks(sums, k):
        same, n = np.einsum("ikjk->ij", joint), joint.sum(axis=(1, 3))  # Σ_k J(k, k), Σ J
        out[rows] = agreement(same, n, k)
    return out


def agreement(same: FloatArray, n: float | FloatArray, k: int) -> FloatArray:
    """Return (K·a − 1)/(K − 1) with the share a of rows that agree; 0 without rows.

    It is 1 − K·θ, since θ = (1 − a)/(K − 1).
    """
    share = np.divide(same, n, out=np.full_like(same, 1.0 / k), where=np.asarray(n) > 0)
    return np.asarray((k * share - 1.0) / (k - 1.0))


def _joint_blocks(sums: StateCounts, k: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield joint tables of blocks of columns with all columns, of shape (block, K, m, K)."""
    m = sums.starts.size - 1
    for start, stop in ranges(m, max(1, _BLOCK_CELLS // (m * k**2))):
        table = sums.table(np.arange(start, stop))
        yield slice(start, stop), table.reshape(stop - start, k, m, k)


def inverse(values: FloatArray) -> FloatArray:
    """Return 1/x, and 0 for 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)

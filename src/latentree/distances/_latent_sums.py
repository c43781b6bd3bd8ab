"""Sums over rows for the correlations of the Gaussian variables behind columns of any kind.

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

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import tiny
from latentree._kernels.distances import latent as kernels
from latentree.data import Schema, Table
from latentree.distances._arrays import mirrored, sum_if_known
from latentree.distances._counting import in_parts, ranges
from latentree.distances._mixed_sums import WEAKEST_OF_MANY, MixedSums
from latentree.distances._real_sums import RealSums, Units
from latentree.distances._scores import Scores, normal_score, number_table, state_table
from latentree.distances._state_counts import StateCounts
from latentree.typing import BoolArray, FloatArray, IntArray

_BLOCK_CELLS = 1 << 24
"""Cells of joint tables that are spread out at the same time: 128 MB."""

BOUND = 2.0
"""Normal scores z of two numbers are cut off at ±2 before they are multiplied.

1 % of cells far outside have the scores beyond 2.6, and so 8 % of the variance: correlations of z
then have the noise of 82 % of the rows, those of bounded scores that of 88 %, and of 98 % in clean
data. 1.8 to 2 are the best bounds for such outliers.
"""

_SHARE = 0.98972
"""E[ψ′]²/E[ψ²] of the bounded score ψ of a normal variable: dr/dρ of its correlation r at ρ = 0."""

_TINY_PAIRS = 20
"""Up to so many tables are read by uncompiled code: milliseconds each; compiling takes seconds."""


class EstimatedCorrelations(NamedTuple):
    """Correlations of all pairs, and their standard errors; whole matrices."""

    r: FloatArray
    error: FloatArray


@dataclass(frozen=True, eq=False)
class LatentPairs:
    """Sums of pairs of columns.

    Attributes
    ----------
    schema : Schema
        Of the columns.
    weight : float or array of shape (m, m)
        Weight of the rows in which both of a pair are present: one number without gaps.
    numbers : RealSums or None
        Of the bounded normal scores of the columns of numbers.
    states : StateCounts or None
        Tables of all pairs of columns with states.
    sums, counts : arrays, a row a column of numbers, a column a state
        Σ w·z, and Σ w, of the rows with the state.
    """

    schema: Schema
    weight: float | FloatArray
    numbers: RealSums | None
    states: StateCounts | None
    sums: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, table: Table, scores: Scores) -> LatentPairs:
        """Sum over the rows of a table; outliers count as missing."""
        table = scores.without_outliers(table)
        weights = table.weight_array()
        weight: float | FloatArray = table.total_weight
        if table.has_missing:
            present = (~np.isnan(table.values)).astype(np.float64)
            weight = (present * weights[:, None]).T @ present
        numbers, z = None, np.empty((table.n_rows, 0))
        if scores.numbers.any():
            z = _normal_scores(table, scores)
            names = [f"z{j}" for j in range(z.shape[1])]
            units = Units(np.zeros(z.shape[1]), np.ones(z.shape[1]))
            numbers = RealSums.of(Table(bounded(z), Schema.gaussian(names), table.weights), units)
        states = None if scores.numbers.all() else StateCounts.of(state_table(table))
        sums, counts = _cross(table, scores, z, weights)
        return cls(table.schema, weight, numbers, states, sums, counts)

    def __add__(self, other: LatentPairs) -> LatentPairs:
        return LatentPairs(
            self.schema,
            self.weight + other.weight,
            sum_if_known(self.numbers, other.numbers),
            sum_if_known(self.states, other.states),
            self.sums + other.sums,
            self.counts + other.counts,
        )

    def select(self, columns: IntArray, *_: IntArray) -> LatentPairs:
        """Return the sums of some columns."""
        is_number = _numbers(self.schema)
        place = np.where(is_number, np.cumsum(is_number), np.cumsum(~is_number)) - 1
        real, coded = (place[columns[is_number[columns] == own]] for own in (True, False))
        whole = self.states
        levels = np.empty(0, np.int64)
        if whole is not None and coded.size:
            levels = np.concatenate([np.arange(*whole.starts[j : j + 2]) for j in coded])
        weight = self.weight
        if isinstance(weight, np.ndarray):
            weight = weight[np.ix_(columns, columns)]
        return LatentPairs(
            self.schema.select(columns),
            weight,
            self.numbers.select(real) if self.numbers is not None and real.size else None,
            whole.select(coded) if whole is not None and coded.size else None,
            self.sums[np.ix_(real, levels)],
            self.counts[np.ix_(real, levels)],
        )

    # What pairs say -------------------------------------------------------------------------

    def correlations(self, precise: bool = False) -> EstimatedCorrelations:
        """Return r of all pairs, and standard errors if ``precise``."""
        is_number = _numbers(self.schema)
        m = is_number.size
        r, error = np.eye(m), np.zeros((m, m))
        real, coded = np.flatnonzero(is_number), np.flatnonzero(~is_number)
        if self.numbers is not None:
            pair = np.ix_(real, real)
            r[pair] = unbounded(mirrored(self.numbers.correlations()))
            error[pair] = error_of_numbers(r[pair], self.numbers.pair_weights())
        if self.states is not None:
            own = np.ix_(coded, coded)
            r[own], error[own] = _of_states(self.states, precise)
            pair = np.ix_(real, coded)
            r[pair], error[pair] = self._serial(precise)
            turned = np.ix_(coded, real)
            r[turned], error[turned] = r[pair].T, error[pair].T
            self._set_categories(r, error, real, coded)
        np.fill_diagonal(r, 1.0)
        np.fill_diagonal(error, 0.0)
        return EstimatedCorrelations(r, error)

    def _serial(self, precise: bool) -> tuple[FloatArray, FloatArray]:
        """Return polyserial correlations of all numbers (rows) with all columns of states."""
        assert self.states is not None
        shape = len(self.sums), self.states.starts.size - 1
        out, error = np.zeros(shape), np.zeros(shape)

        def fill(part: slice) -> None:
            kernels.polyserial_rows(
                self.sums[part], self.counts[part], self.states.starts, precise,  # type: ignore[union-attr]
                out[part], error[part],
            )  # fmt: skip

        with tiny(out.size <= _TINY_PAIRS):
            in_parts(shape[0], fill)
        return out, error

    def _set_categories(
        self, r: FloatArray, error: FloatArray, real: IntArray, coded: IntArray
    ) -> None:
        """Overwrite what was found for categories that have no order."""
        assert self.states is not None
        states, starts = self.states, self.states.starts
        unordered = is_unordered(self.schema)
        for place, c in enumerate(coded.tolist()):
            if not unordered[c]:
                continue
            mine = slice(starts[place], starts[place + 1])
            found = {
                int(j): _between(self.sums[i, mine], self.counts[i, mine], 1.0)
                for i, j in enumerate(real)
            }
            tables = states.table(np.array([place]))
            for other, j in enumerate(coded.tolist()):
                joint = tables[:, starts[other] : starts[other + 1]]
                if j != c and not unordered[j]:
                    found[j] = _between_levels(joint)
                elif j < c:
                    found[j] = canonical(joint)
            for j, value in found.items():
                n = self.weight[c, j] if isinstance(self.weight, np.ndarray) else self.weight
                r[c, j] = r[j, c] = value
                error[c, j] = error[j, c] = (1.0 - value**2) / np.sqrt(max(n, 1.0))

    def shares(self) -> FloatArray:
        """Return the share of the variance of each hidden normal variable that its column shows.

        Of numbers what bounded scores show. The correlation of an independent pair has the variance
        1/n over the product of the shares of its columns.
        """
        out = np.full(self.schema.n_columns, _SHARE)
        coded = np.flatnonzero(~_numbers(self.schema))
        for place, column in enumerate(coded.tolist()):
            assert self.states is not None
            out[column] = _shown_share(self.states.of_column(place))
        return np.where(is_unordered(self.schema), 1.0, out)


@dataclass(frozen=True, eq=False)
class LatentSums(MixedSums):
    """Sums of columns of any kind behind which Gaussian variables stand; they add up over parts.

    Columns are summed as in :class:`MixedSums`, pairs as the correlations need it.
    """

    @classmethod
    def of(cls, table: Table, scores: Scores, pairs: bool = True) -> LatentSums:
        """Sum over the rows of a table, with or without pairs."""
        columns = cls._like(MixedSums.of(table, scores, pairs=False))
        object.__setattr__(columns, "pairs", LatentPairs.of(table, scores) if pairs else None)
        return columns

    @classmethod
    def _like(cls, sums: MixedSums) -> LatentSums:
        return cls(*(getattr(sums, each.name) for each in fields(sums)))

    def __add__(self, other: MixedSums) -> LatentSums:
        return self._like(super().__add__(other))

    def select(self, columns: IntArray) -> LatentSums:
        """Return the sums of some columns."""
        return self._like(super().select(columns))

    @property
    def latent(self) -> LatentPairs:
        """Sums of pairs."""
        pairs: object = self.pairs
        assert isinstance(pairs, LatentPairs)
        return pairs

    def correlations(self) -> FloatArray:
        """Return r of all pairs."""
        return self.latent.correlations().r

    def pair_weights(self) -> float | FloatArray:
        """Weight of the rows in which both of a pair count: one number without gaps."""
        return self.latent.weight


def bounded(z: FloatArray) -> FloatArray:
    """Return normal scores cut off at ±2."""
    return np.clip(z, -BOUND, BOUND)


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


def is_unordered(schema: Schema) -> BoolArray:
    """Whether each column is a category of three or more labels."""
    kinds = np.array([kind == "category" for kind in schema.kinds])
    return np.asarray(kinds & (schema.cardinalities > 2))


def _numbers(schema: Schema) -> BoolArray:
    return np.asarray(schema.cardinalities == 0)


def _normal_scores(table: Table, scores: Scores) -> FloatArray:
    """Return the scores of the columns of numbers; NaN where missing."""
    values = number_table(table).values
    z = np.empty(values.shape)
    for column, curve in enumerate(scores.curves):
        z[:, column] = normal_score(values[:, column], *curve)
    return np.where(np.isnan(values), np.nan, z)


def _cross(
    table: Table, scores: Scores, z: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ w·z and Σ w of the rows with each state, for every column of numbers."""
    coded = np.flatnonzero(~scores.numbers)
    there = ~np.isnan(z)
    weighted, present = np.where(there, z, 0.0) * weights[:, None], there * weights[:, None]
    sums, counts = [np.empty((z.shape[1], 0))], [np.empty((z.shape[1], 0))]
    for j in coded.tolist() if z.shape[1] else ():
        codes = table.values[:, j]
        width = max(len(table.schema.labels[j]), 1)
        levels = (codes[:, None] == np.arange(width)).astype(np.float64)
        sums.append(weighted.T @ levels)
        counts.append(present.T @ levels)
    return np.hstack(sums), np.hstack(counts)


def _of_states(states: StateCounts, precise: bool) -> tuple[FloatArray, FloatArray]:
    """Return polychoric correlations of all pairs of columns with states."""
    m = states.starts.size - 1
    out, error = np.eye(m), np.zeros((m, m))
    step = max(1, _BLOCK_CELLS // int(states.single.size * states.widths.max()))
    for start, stop in ranges(m, step):
        joint = states.table(np.arange(start, stop))
        starts = states.starts[start : stop + 1] - states.starts[start]
        limits = np.arange(start, stop)

        def fill(part: slice) -> None:
            kernels.polychoric_rows(
                joint[starts[part.start] :],  # noqa: B023
                starts[part.start : part.stop + 1] - starts[part.start],  # noqa: B023
                states.starts, limits[part], precise, out[start:stop][part],  # noqa: B023
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

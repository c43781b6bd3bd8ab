"""EM for mixed trees: tables from expected counts, emissions from expected moments.

Expected counts come from the discrete engine, which is handed the likelihood of every distinct
value of a leaf for every state of its neighbor. A leaf's own counts, over states and values, are
summed up at once: real leaves to three moments a state, counts to weights of distinct counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from latentree._kernels import threads
from latentree._kernels.inference import emissions as kernels
from latentree.data import Table
from latentree.distances import MixedSums, Sample, Statistics
from latentree.em._driver import Step
from latentree.inference import (
    ColumnEntropies,
    CountEmission,
    Emission,
    Expectation,
    GaussianEmission,
    Layout,
    Skeleton,
    cheapest_rooting,
    compile_part,
    counts_of,
    emission_logs,
    values_of,
)
from latentree.models import MixedTreeModel
from latentree.tree import Tree, hung_as_leaves
from latentree.typing import FloatArray, IntArray

FLOOR = 1e-5
"""Weight of the prior when there is none: no probability is ever stuck at an exact zero."""

_LARGEST_SIZE = 1e6  # of a negative binomial distribution: practically Poisson's
_SMALLEST_SIZE = 1e-2
_FARTHEST = 2.0  # how far a jump may move a coordinate of an emission


class ValueWeights(NamedTuple):
    """Weights of distinct counts (columns) for every state (rows)."""

    values: FloatArray
    weights: FloatArray

    def __add__(self, other: ValueWeights) -> ValueWeights:  # type: ignore[override]
        """Return the weights of both parts of the rows."""
        values = np.union1d(self.values, other.values)
        weights = np.zeros((len(self.weights), values.size))
        for part in (self, other):
            weights[:, np.searchsorted(values, part.values)] += part.weights
        return ValueWeights(values, weights)


class MixedCounts(NamedTuple):
    """What an E-step gives: log-likelihood, counts of tables, and sums of every leaf."""

    log_likelihood: float
    counts: FloatArray
    leaves: list[Any]
    """Moments (3 × states) of real leaves, ``ValueWeights`` of counts."""

    def __add__(self, other: MixedCounts) -> MixedCounts:  # type: ignore[override]
        """Return the sums over both parts of the rows."""
        return MixedCounts(
            self.log_likelihood + other.log_likelihood,
            self.counts + other.counts,
            [mine + theirs for mine, theirs in zip(self.leaves, other.leaves, strict=True)],
        )


def _itself(table: Table) -> Table:
    return table


def compiled(table: Table, skeleton: Skeleton) -> Expectation:
    """Compile one part of the rows: what an engine keeps of it."""
    return Expectation(compile_part(skeleton, table))


def count_part(
    part: Expectation,
    theta: FloatArray,
    emissions: Sequence[Emission | None],
    centers: FloatArray,
) -> MixedCounts:
    """Run the E-step on one part of the rows: the function that an engine runs in every step."""
    places = part.patterns.emissions
    log_likelihood, found = part.run(theta, emission_logs(emissions, places))
    received = found[theta.size :]

    def summed(e: int) -> Any:
        column = int(places.columns[e])
        leaf, values = emissions[column], values_of(places, e)
        weights = counts_of(places, received, e)
        if isinstance(leaf, GaussianEmission):
            return kernels.normal_moments(
                values, weights, leaf.mean, leaf.sd, leaf.resolution, centers[column]
            )
        there = np.flatnonzero(~np.isnan(values))
        order = there[np.argsort(values[there])]
        return ValueWeights(values[order], weights[:, order])

    by_column = np.argsort(places.columns)
    leaves = threads.run(summed, by_column.tolist())
    return MixedCounts(log_likelihood, found[: theta.size], leaves)


class MixedProblem:
    """The likelihood of mixed rows under a tree, as the EM driver sees it.

    A point is the flat array of all tables, rooted as the patterns are compiled, followed by two
    numbers a state for each leaf of numbers: (μ − m)/s and log(σ/s) of reals, where m and s are the
    column's mean and standard deviation; log μ and log r of counts. ``prior_weight`` rows are added
    to every table, all states alike, and to every emission, shared out to its states: rows with
    the mean and the variance of the column.
    """

    is_closed_form = False

    def __init__(
        self, tree: Tree, n_states: IntArray, sample: Sample, prior_weight: float = 0.0
    ) -> None:
        self.tree = tree
        self.n_states = n_states
        self.sample = sample
        self.total_weight = sample.total_weight
        sums = sample.statistics.sums
        assert isinstance(sums, MixedSums)
        entropies = _entropies(sample.statistics)
        rooted = cheapest_rooting(tree, entropies, n_states == 0)
        self.layout = Layout(rooted, n_states)
        self.pieces = sample.parts.tables.made(compiled, Skeleton.of(self.layout, entropies))
        self.n_parts = sample.parts.n_parts
        self.weight = max(prior_weight, FLOOR)
        cells = self.layout.parent_states * n_states
        self.prior = np.repeat(self.weight / np.maximum(cells, 1), cells)
        self.centers, self.scales = sums.moments()
        # Differences of decimals are not exact: 0.3 − 0.2 stands for 0.1.
        self.resolutions = np.array([float(f"{step:.6g}") for step in sums.resolutions])

    # Points ---------------------------------------------------------------------------------

    @cached_property
    def leaves(self) -> list[Leaf]:
        """Leaves of numbers, with the place of their coordinates in a point."""
        start, found = self.layout.size, []
        for column in np.flatnonzero(self.layout.emits).tolist():
            size = int(self.layout.parent_states[column])
            kind = self.sample.schema.kinds[column]
            found.append(Leaf(column, kind, size, start))
            start += 2 * size
        return found

    def emissions(self, point: FloatArray) -> tuple[Emission | None, ...]:
        """Return the emissions of all columns at a point; None for columns with tables."""
        out: list[Emission | None] = [None] * self.tree.n_observed
        for leaf in self.leaves:
            first, second = leaf.coordinates(point)
            center, scale = self.centers[leaf.column], self.scales[leaf.column]
            if leaf.kind == "real":
                sd = scale * np.exp(second)
                resolution = float(self.resolutions[leaf.column])
                out[leaf.column] = GaussianEmission(center + scale * first, sd, resolution)
            else:
                out[leaf.column] = CountEmission(np.exp(first), np.exp(second))
        return tuple(out)

    def emission_of(self, column: int, mean: FloatArray, variance: FloatArray) -> Emission:
        """Return the emission of a column with these moments, kept away from the extremes."""
        floor = 1e-4 * self.scales[column] ** 2
        if self.sample.schema.kinds[column] == "real":
            sd = np.sqrt(np.maximum(variance, floor))
            return GaussianEmission(mean, sd, float(self.resolutions[column]))
        mean = np.maximum(mean, 1e-3 * self.centers[column])
        excess = np.maximum(variance - mean, 1e-2 * mean)
        return CountEmission(mean, np.clip(mean**2 / excess, 0.1, 100.0))

    @cached_property
    def first_rows(self) -> Table:
        """The first part of the rows of which some count, on which a fit starts."""
        tables = self.sample.parts.tables
        parts = (tables.one(number, _itself) for number in range(len(tables)))
        return next(part for part in parts if part.total_weight > 0)

    def coordinates(self, column: int, emission: Emission) -> tuple[FloatArray, FloatArray]:
        """Return the coordinates of an emission."""
        if isinstance(emission, GaussianEmission):
            center, scale = self.centers[column], self.scales[column]
            return (emission.mean - center) / scale, np.log(emission.sd / scale)
        return np.log(emission.mean), np.log(np.minimum(emission.size, _LARGEST_SIZE))

    def joined(self, theta: FloatArray, emissions: Sequence[Emission | None]) -> FloatArray:
        """Return the point of tables and emissions."""
        parts = [theta]
        for leaf in self.leaves:
            emission = emissions[leaf.column]
            assert emission is not None
            parts += self.coordinates(leaf.column, emission)
        return np.concatenate(parts)

    def is_point(self, point: FloatArray) -> bool:
        """Whether numbers are tables, and coordinates of emissions within their limits."""
        size = self.layout.size
        if point.shape != (size + sum(2 * leaf.n_states for leaf in self.leaves),):
            return False
        near = np.allclose(self.admissible(point, point)[size:], point[size:])
        return near and self.layout.are_tables(point[:size])

    def point(self, model: MixedTreeModel) -> FloatArray:
        """Return the point of a model on the same tree, tables kept away from zero."""
        theta = model.layout.reoriented(model.theta, self.layout)
        return self.joined(self.layout.normalized(np.maximum(theta, 1e-12)), model.emissions)

    def model(self, point: FloatArray) -> MixedTreeModel:
        """Return the model at a point, rooted as the tree was given."""
        layout = Layout(self.tree, self.n_states)
        theta = self.layout.reoriented(point[: self.layout.size], layout)
        return MixedTreeModel.from_theta(
            self.tree, self.n_states, theta, self.emissions(point), self.sample.schema
        )

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep probabilities above a tenth of those at ``near``, and emissions within reach."""
        size = self.layout.size
        theta = self.layout.normalized(np.maximum(point[:size], 0.1 * near[:size]))
        rest = np.clip(point[size:], near[size:] - _FARTHEST, near[size:] + _FARTHEST)
        out = np.concatenate([theta, rest])
        for leaf in self.leaves:
            low, high = self._limits(leaf)
            second = leaf.coordinates(out)[1]
            np.clip(second, low, high, out=second)
        return out

    def _limits(self, leaf: Leaf) -> tuple[float, float]:
        """Smallest and largest second coordinate of a leaf."""
        if leaf.kind == "count":
            return np.log(_SMALLEST_SIZE), np.log(_LARGEST_SIZE)
        narrowest = self.resolutions[leaf.column] / kernels.NARROWEST
        return float(np.log(narrowest / self.scales[leaf.column])), 10.0

    # Steps ----------------------------------------------------------------------------------

    def step(self, point: FloatArray) -> Step:
        """Expected counts at a point, and the point that they give."""
        size = self.layout.size
        emissions = self.emissions(point)
        found = self.pieces.total(count_part, point[:size], emissions, self.centers)
        following = np.empty_like(point)
        following[:size] = self.layout.normalized(found.counts + self.prior)
        objective = found.log_likelihood + float((self.prior * np.log(point[:size])).sum())
        for leaf, sums in zip(self.leaves, found.leaves, strict=True):
            first, second = leaf.coordinates(following)
            if leaf.kind == "real":
                first[:], second[:] = self._normal(leaf, sums)
            else:
                first[:], second[:] = self._counting(leaf, sums, point)
            objective += self._log_prior(leaf, point)
        return Step(found.log_likelihood, objective, following)

    def _normal(self, leaf: Leaf, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of every state, in units of the column.

        With a = prior weight a state: μ = Σwx/(Σw + a), σ² = (Σw(x − μ)² + a·(μ² + 1))/(Σw + a).
        """
        scale, a = self.scales[leaf.column], self.weight / leaf.n_states
        total, one, two = sums[0], sums[1] / scale, sums[2] / scale**2
        mean = one / (total + a)
        square = two - 2.0 * mean * one + mean**2 * total
        variance = (np.maximum(square, 0.0) + a * (mean**2 + 1.0)) / (total + a)
        return mean, np.maximum(0.5 * np.log(variance), self._limits(leaf)[0])

    def _counting(
        self, leaf: Leaf, sums: ValueWeights, point: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and size of every state; one more count, the column's mean, has the prior weight."""
        a = np.full((leaf.n_states, 1), self.weight / leaf.n_states)
        values = np.append(sums.values, self.centers[leaf.column])
        weights = np.hstack([sums.weights, a])
        mean = np.maximum(weights @ values / weights.sum(axis=1), 1e-8)
        low, high = self._limits(leaf)
        log_size = leaf.coordinates(point)[1]
        return np.log(mean), kernels.fitted_sizes(values, weights, mean, log_size, low, high)

    def _log_prior(self, leaf: Leaf, point: FloatArray) -> float:
        first, second = leaf.coordinates(point)
        a = self.weight / leaf.n_states
        if leaf.kind == "real":
            terms = -second - 0.5 * (first**2 + 1.0) * np.exp(-2.0 * second)
        else:
            emission = CountEmission(np.exp(first), np.exp(second))
            terms = emission.log_likelihood(self.centers[[leaf.column]])[:, 0]
        return a * float(terms.sum())


def as_leaves(tree: Tree, emits: NDArray[np.bool_]) -> Tree:
    """Return a tree in which columns of numbers are leaves, and not roots.

    An inner one gets a hidden node in its place and hangs from it. Two that are only joined to
    each other have no place for a hidden node with three neighbors: their edge is cut.

    Parameters
    ----------
    tree : Tree
    emits : array of bool, one an observed node
        Which columns hold numbers.

    Returns
    -------
    Tree
        The same one where nothing has to change.
    """
    numbers = np.flatnonzero(emits)
    tree = hung_as_leaves(tree, numbers)
    leaf = np.zeros(tree.n_nodes, bool)
    leaf[numbers] = True
    alone = leaf & (tree.parent >= 0) & leaf[tree.parent]
    if alone.any():
        parent, length = np.where(alone, -1, tree.parent), np.where(alone, 0.0, tree.length)
        tree = Tree(parent, length, tree.n_observed, tree.names[: tree.n_observed])
    for root in tree.roots[leaf[tree.roots]].tolist():
        if tree.degrees[root]:
            tree = tree.rerooted(int(tree.children(root)[0]))
    return tree


def _entropies(statistics: Statistics) -> ColumnEntropies:
    """Entropy of every column; of numbers, that of as many equal shares as they have values."""
    sums = statistics.sums
    assert isinstance(sums, MixedSums)
    low, high = sums.extremes()
    entropy = np.zeros(statistics.n_columns)
    for column, labels in enumerate(statistics.schema.labels):
        if labels:
            share = sums.of_column(column) / max(sums.column_weights()[column], 1e-300)
            entropy[column] = float(special.entr(share).sum())
        else:
            n_values = (high[column] - low[column]) / sums.resolutions[column] + 1.0
            entropy[column] = np.log(min(n_values, statistics.n_rows))
    return ColumnEntropies(statistics.n_rows, entropy, sums.gaps == 0)


@dataclass(frozen=True)
class Leaf:
    """A leaf of numbers, and where its coordinates start in a point."""

    column: int
    kind: str
    n_states: int
    start: int

    def coordinates(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Views of its two coordinates a state."""
        middle = self.start + self.n_states
        return point[self.start : middle], point[middle : middle + self.n_states]

"""EM for mixed trees: tables from expected counts, emissions from expected moments.

Expected counts come from the discrete engine, which is handed the likelihood of every distinct
value of a leaf for every state of its neighbor. A leaf's own counts, over states and values, are
summed up at once: real leaves to three moments a state, counts to weights of distinct counts.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from latentree._kernels.compiling import tiny
from latentree._kernels.inference import emissions as kernels
from latentree.data import Table
from latentree.distances import Sample, Statistics, Sums
from latentree.em._driver import Step
from latentree.em._expected_counts import compiled
from latentree.inference import (
    POISSON,
    ColumnEntropies,
    Emission,
    Layout,
    Leaves,
    PassMemory,
    Skeleton,
    cheapest_rooting,
    recorded_steps,
)
from latentree.models import MixedTreeModel
from latentree.tree import Tree, hung_as_leaves, tied_by_hidden
from latentree.typing import FloatArray, IntArray

FLOOR = 1e-5
"""Weight of the prior when there is none: no probability is ever stuck at an exact zero."""

_LOG_LARGEST_SIZE = float(np.log(1e6))  # of a negative binomial distribution: Poisson's
_LOG_SMALLEST_SIZE = float(np.log(1e-2))
_FEW_ROWS = 1_000  # of a table whose leaves are fitted uncompiled, in a millisecond or two
_FARTHEST = 2.0  # how far a jump may move a coordinate of an emission


class CountWeights(NamedTuple):
    """Weights of the distinct counts, in ascending order, of all leaves of counts, end to end."""

    values: FloatArray
    sizes: IntArray
    """How many distinct counts each leaf has."""
    weights: FloatArray
    """A row of so many for every state of every leaf."""
    n_states: IntArray

    def __add__(self, other: CountWeights) -> CountWeights:  # type: ignore[override]
        """Return the weights of both parts of the rows."""
        if np.array_equal(self.values, other.values) and np.array_equal(self.sizes, other.sizes):
            return self._replace(weights=self.weights + other.weights)
        values, weights = [], []
        for (x, a), (y, b) in zip(self._leaves(), other._leaves(), strict=True):
            both = np.union1d(x, y)
            sums = np.zeros((len(a), both.size))
            sums[:, np.searchsorted(both, x)] += a
            sums[:, np.searchsorted(both, y)] += b
            values.append(both)
            weights.append(sums.ravel())
        sizes = np.array([each.size for each in values])
        return CountWeights(np.concatenate(values), sizes, np.concatenate(weights), self.n_states)

    def _leaves(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        values = np.split(self.values, np.cumsum(self.sizes)[:-1])
        weights = np.split(self.weights, np.cumsum(self.sizes * self.n_states)[:-1])
        for own, sums, states in zip(values, weights, self.n_states, strict=True):
            yield own, sums.reshape(states, own.size)


class MixedCounts(NamedTuple):
    """What an E-step gives: log-likelihood, counts of tables, and sums of every leaf."""

    log_likelihood: float
    counts: FloatArray
    moments: FloatArray
    """Σ w, Σ w·(x − c), Σ w·(x − c)² of every state of every leaf; 0 of counts."""
    tally: CountWeights

    def __add__(self, other: MixedCounts) -> MixedCounts:  # type: ignore[override]
        """Return the sums over both parts of the rows."""
        return MixedCounts(*map(operator.add, self, other))

    def scaled(self, factor: float) -> MixedCounts:
        """Return those of rows that count so much more."""
        tally = self.tally._replace(weights=factor * self.tally.weights)
        return MixedCounts(
            factor * self.log_likelihood, factor * self.counts, factor * self.moments, tally
        )


def _itself(table: Table) -> Table:
    return table


class Part:
    """One part of the rows, compiled, and where the expected counts of its counts stand."""

    def __init__(self, table: Table, skeleton: Skeleton, shared: PassMemory) -> None:
        self.expectation = compiled(table, skeleton, shared)
        places = self.expectation.patterns.emissions
        values, index, states = [np.empty(0)], [np.empty(0, np.int64)], []
        for e in np.argsort(places.columns).tolist():
            if table.schema.kinds[places.columns[e]] == "count":
                own = places.values[places.value_starts[e] :][: places.sizes[e]]
                order = np.argsort(own)[: np.count_nonzero(~np.isnan(own))]
                rows = places.starts[e] + places.sizes[e] * np.arange(places.n_states[e])
                values.append(own[order])
                index.append((rows[:, None] + order).ravel())
                states.append(places.n_states[e])
        sizes = np.array([own.size for own in values[1:]], np.int64)
        self.index = np.concatenate(index)
        self.tally = CountWeights(
            np.concatenate(values), sizes, np.zeros(self.index.size), np.array(states, np.int64)
        )

    @property
    def work(self) -> float:
        """Products of a pass, up or down."""
        return self.expectation.work

    @property
    def nbytes(self) -> int:
        """Bytes that are kept between two passes."""
        return self.expectation.nbytes + self.index.nbytes

    def log_likelihood(self, theta: FloatArray, leaves: Leaves) -> float:
        """Return the log-likelihood of the rows."""
        with tiny(self.expectation.is_tiny):
            scratch = self.expectation.scratch()
            cells = scratch.cells.reshape(2, -1)
            places = self.expectation.patterns.emissions
            emitted = leaves.logs(places, scratch.emitted, cells)
            return self.expectation.run(theta, emitted).log_likelihood

    def count(self, theta: FloatArray, leaves: Leaves, centers: FloatArray) -> MixedCounts:
        """Run the E-step: the function that an engine runs in every step."""
        places = self.expectation.patterns.emissions
        with tiny(self.expectation.is_tiny):
            scratch = self.expectation.scratch()
            cells = scratch.cells.reshape(2, -1)
            emitted = leaves.logs(places, scratch.emitted, cells)
            log_likelihood, counts = self.expectation.run(theta, emitted)
            moments = leaves.moments(places, emitted, cells, centers)
        tally = self.tally._replace(weights=emitted[self.index])
        return MixedCounts(log_likelihood, counts, moments, tally)


class MixedProblem:
    """The likelihood of mixed rows under a tree, as the EM driver sees it.

    A point is the flat array of all tables, rooted as the patterns are compiled, followed by two
    numbers a state for all leaves of numbers: first (μ − m)/s of reals and log μ of counts, then
    log(σ/s) and log r, where m and s are the column's mean and standard deviation.
    ``prior_weight`` rows are added to every table, all states alike, and to every emission, shared
    out to its states: rows with the mean and the variance of the column.
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
        entropies = _entropies(sample.statistics)
        rooted = cheapest_rooting(tree, entropies, n_states == 0)
        self.layout = Layout(rooted, n_states)
        self.skeleton, self.memory = Skeleton.of(self.layout, entropies), PassMemory()
        self.pieces = sample.parts.tables.made(Part, self.skeleton, self.memory)
        self.weight = max(prior_weight, FLOOR)
        cells = self.layout.parent_states * n_states
        self.prior = np.repeat(self.weight / np.maximum(cells, 1), cells)
        self._lay_out_leaves(sums)

    def _lay_out_leaves(self, sums: Sums) -> None:
        """Set what is known of the leaves of numbers, and of every state of them."""
        kinds = self.sample.schema.kinds
        self.columns = np.flatnonzero(self.layout.emits)
        self.is_count = np.array([kinds[column] == "count" for column in self.columns], bool)
        states = self.layout.parent_states[self.columns]
        self.firsts = np.concatenate([[0], np.cumsum(states)])
        means, spreads = sums.moments()
        self.centers = means[self.columns]
        gaps, (low, high) = sums.resolutions, sums.extremes()
        grids = [recorded_steps(gaps[j], low[j], high[j]) for j in self.columns]
        self.resolutions, self.origins = np.array(grids).reshape(-1, 2).T
        self.resolutions[self.is_count] = self.origins[self.is_count] = 0.0
        of_state = np.repeat(np.arange(self.columns.size), states)
        self._counting = np.flatnonzero(self.is_count[of_state])
        self._share = self.weight / states[of_state]
        self._center = np.where(self.is_count, 0.0, self.centers)[of_state]
        self._scale = np.where(self.is_count, 1.0, spreads[self.columns])[of_state]
        self._low, self._high = np.full((2, of_state.size), [[_LOG_SMALLEST_SIZE], [10.0]])
        narrowest = (self.resolutions / kernels.NARROWEST)[of_state] / self._scale
        np.log(narrowest, out=self._low, where=narrowest > 0.0)
        self._high[self._counting] = _LOG_LARGEST_SIZE

    # Points ---------------------------------------------------------------------------------

    def coordinates(self, point: FloatArray) -> FloatArray:
        """View of the two coordinates (rows) of every state of the leaves."""
        return point[self.layout.size :].reshape(2, -1)

    def leaves(self, point: FloatArray) -> Leaves:
        """Return the leaves of numbers at a point."""
        first, second = self.coordinates(point)
        mean, spread = self._center + self._scale * first, self._scale * np.exp(second)
        if self._counting.size:
            mine = self._counting
            mean[mine] = np.exp(first[mine])
            spread[mine] = np.where(spread[mine] >= POISSON, np.inf, spread[mine])
        return Leaves(
            self.columns, self.is_count, self.resolutions, self.origins, self.firsts, mean, spread
        )

    def joined(self, theta: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
        """Return the point of tables and of the parameters of the leaves' states."""
        first, second = (mean - self._center) / self._scale, np.log(spread / self._scale)
        mine = self._counting
        first[mine] = np.log(mean[mine])
        return np.concatenate([theta, first, np.clip(second, self._low, self._high)])

    def joined_by_moments(
        self, theta: FloatArray, mean: FloatArray, variance: FloatArray
    ) -> FloatArray:
        """Return the point of tables and of leaves with these moments, away from the extremes."""
        spread = np.sqrt(np.maximum(variance, 1e-4 * self._scale**2))
        mine = self._counting
        least = 1e-3 * np.repeat(self.centers, np.diff(self.firsts))
        mean[mine] = np.maximum(mean, least)[mine]
        excess = np.maximum(variance - mean, 1e-2 * mean)[mine]
        spread[mine] = np.clip(mean[mine] ** 2 / excess, 0.1, 100.0)
        return self.joined(theta, mean, spread)

    @cached_property
    def first_rows(self) -> Table:
        """The first part of the rows of which some count, on which a fit starts."""
        tables = self.sample.parts.tables
        parts = (tables.one(number, _itself) for number in range(len(tables)))
        return next(part for part in parts if part.total_weight > 0)

    def point(self, model: MixedTreeModel) -> FloatArray:
        """Return the point of a model on the same tree, tables kept away from zero."""
        theta = model.layout.reoriented(model.theta, self.layout)
        leaves = Leaves.of(model.emissions)
        theta = self.layout.normalized(np.maximum(theta, 1e-12))
        return self.joined(theta, leaves.mean, leaves.spread)

    def model(self, point: FloatArray) -> MixedTreeModel:
        """Return the model at a point, rooted as the tree was given."""
        layout = Layout(self.tree, self.n_states)
        theta = self.layout.reoriented(point[: self.layout.size], layout)
        emissions: list[Emission | None] = [None] * self.tree.n_observed
        leaves = self.leaves(point)
        for leaf, column in enumerate(self.columns.tolist()):
            emissions[column] = leaves.emission(leaf)
        return MixedTreeModel.from_theta(
            self.tree, self.n_states, theta, emissions, self.sample.schema
        )

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep probabilities above a tenth of those at ``near``, and emissions within reach."""
        size = self.layout.size
        theta = self.layout.normalized(np.maximum(point[:size], 0.1 * near[:size]))
        rest = np.clip(point[size:], near[size:] - _FARTHEST, near[size:] + _FARTHEST)
        first, second = rest.reshape(2, -1)
        return np.concatenate([theta, first, np.clip(second, self._low, self._high)])

    # Steps ----------------------------------------------------------------------------------

    def arguments(self, point: FloatArray) -> tuple[FloatArray, Leaves, FloatArray]:
        """Return what a part of the rows is counted with at a point."""
        return point[: self.layout.size], self.leaves(point), self.centers

    def maximized(
        self, found: MixedCounts, point: FloatArray, strength: float = 1.0
    ) -> tuple[FloatArray, float]:
        """Return the point that expected counts give, and the log-prior of the leaves before.

        Parameters
        ----------
        found : MixedCounts
        point : array of float
            Where they were expected.
        strength : float
            By which the weight of the prior is multiplied.
        """
        leaves, tally = self.leaves(point), found.tally
        with tiny(self.total_weight < _FEW_ROWS):
            rest, log_prior = kernels.fitted_leaves(
                self.is_count, self.firsts, self.centers, self._scale, strength * self._share,
                self._low, self._high, leaves.mean, leaves.spread, self.coordinates(point),
                found.moments, tally.values, tally.weights, tally.sizes,
            )  # fmt: skip
        following = self.layout.normalized(found.counts + strength * self.prior)
        return np.concatenate([following, rest.ravel()]), log_prior

    def step(self, point: FloatArray) -> Step:
        """Expected counts at a point, and the point that they give."""
        found = self.pieces.total(Part.count, *self.arguments(point))
        following, log_prior = self.maximized(found, point)
        log_tables = np.log(point[: self.layout.size])
        objective = found.log_likelihood + float(self.prior @ log_tables) + log_prior
        return Step(found.log_likelihood, objective, following)


def as_leaves(tree: Tree, emits: NDArray[np.bool_]) -> Tree:
    """Return a tree in which columns of numbers are leaves, and not roots.

    An inner one gets a hidden node in its place and hangs from it. Two that are joined to each
    other get a hidden node between them.

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
    tree = tied_by_hidden(hung_as_leaves(tree, numbers), numbers)
    for root in np.intersect1d(tree.roots, numbers).tolist():
        if tree.degrees[root]:
            tree = tree.rerooted(int(tree.children(root)[0]))
    return tree


def _entropies(statistics: Statistics) -> ColumnEntropies:
    """Entropy of every column; of numbers, that of as many equal shares as they have values."""
    sums = statistics.sums
    low, high = sums.extremes()
    entropy = np.zeros(statistics.n_columns)
    for column, labels in enumerate(statistics.schema.labels):
        if labels:
            share = sums.of_column(column) / max(sums.column_weights()[column], 1e-300)
            entropy[column] = float(special.entr(share).sum())
        else:
            with np.errstate(over="ignore"):  # more values than there are rows, however many
                n_values = (high[column] - low[column]) / sums.resolutions[column] + 1.0
            entropy[column] = np.log(min(n_values, statistics.n_rows))
    return ColumnEntropies(statistics.n_rows, entropy, sums.gaps == 0)

"""EM for trees whose hidden variables have states: tables from counts, emissions from sums.

A discrete tree is the case in which all columns have tables. Expected counts of the tables come
from the engine, which is handed the likelihood of every distinct value of a leaf for every state of
its neighbor; the leaf itself says which sums it needs of their expected counts, and what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from latentree._kernels.compiling import tiny
from latentree.data import Table
from latentree.distances import Sample, Statistics
from latentree.em._driver import Step
from latentree.em._expected_counts import PartedCounts
from latentree.inference import (
    EMISSIONS,
    ColumnEntropies,
    Emission,
    ExpectedCounts,
    FreeEmission,
    Layout,
    Skeleton,
    Unit,
    cheapest_rooting,
    recorded_steps,
)
from latentree.models import DiscreteTreeModel, MixedTreeModel, state_model
from latentree.tree import Tree, hung_as_leaves, tied_by_hidden
from latentree.typing import FloatArray, IntArray

FLOOR = 1e-5
"""Weight of the prior when there is none: no probability is ever stuck at an exact zero."""

_LEAST = 1e-12  # no probability begins smaller, as EM never leaves 0
_FEW_ROWS = 1_000  # of a table whose leaves are fitted uncompiled, in a millisecond or two
_FARTHEST = 2.0  # how far a jump may move a coordinate of an emission

StateModel = DiscreteTreeModel | MixedTreeModel
Kinds = Mapping[int, type[FreeEmission]]
"""What the distribution of some columns is."""


class Leaf(NamedTuple):
    """A column without states, and where its coordinates lie in a point."""

    column: int
    kind: type[FreeEmission]
    unit: Unit
    n_states: int
    span: slice

    def at(self, point: FloatArray) -> FreeEmission:
        """Return the emission at a point."""
        return self.kind.at(point[self.span].reshape(-1, self.n_states), self.unit)


class StateProblem:
    """The likelihood of rows under a tree with states, as the EM driver sees it.

    A point is the flat array of all tables, rooted as the patterns are compiled, followed by the
    coordinates of the emissions, leaf by leaf. ``prior_weight`` is that of a uniform Dirichlet
    prior, in rows: every node and every pair of neighbors counts as having been seen so often in
    addition, all states alike (BDeu), so that the result does not depend on the root. Emissions get
    as many rows with the mean and the variance of the column, shared out to the states.
    ``kinds`` are emissions of columns that are not the usual ones, see ``EMISSIONS``.
    """

    def __init__(
        self,
        tree: Tree,
        n_states: IntArray,
        sample: Sample,
        prior_weight: float = 0.0,
        kinds: Kinds | None = None,
    ) -> None:
        self.tree = tree
        self.n_states = n_states
        self.sample = sample
        self.total_weight = sample.total_weight
        entropies = column_entropies(sample.statistics)
        self.layout = Layout(cheapest_rooting(tree, entropies, n_states == 0), n_states)
        self.skeleton = Skeleton.of(self.layout, entropies)
        self.counts = PartedCounts(self.skeleton, sample.rows)
        # BDeu: each table shares the weight out to its K_parent·K cells (K cells at the root).
        self.weight = max(prior_weight, FLOOR)
        cells = self.layout.parent_states * n_states
        self.prior = np.repeat(self.weight / np.maximum(cells, 1), cells)
        self.leaves = self._lay_out_leaves(kinds or {})
        self.is_closed_form = not (tree.n_hidden or sample.has_missing or self.leaves)
        limits = [np.repeat(x.kind.limits(x.unit), x.n_states, axis=0) for x in self.leaves]
        self._limits = np.concatenate([np.empty((0, 2)), *limits]).T

    def _lay_out_leaves(self, kinds: Kinds) -> list[Leaf]:
        columns = np.flatnonzero(self.layout.emits)
        self.units = units_of(self.sample, columns)
        leaves: list[Leaf] = []
        start = self.layout.size
        for j, unit in self.units.items():
            kind = kinds.get(j, EMISSIONS[self.sample.schema.kinds[j]])
            states = int(self.layout.parent_states[j])
            stop = start + len(kind.limits(unit)) * states
            leaves.append(Leaf(j, kind, unit, states, slice(start, stop)))
            start = stop
        return leaves

    # Points ---------------------------------------------------------------------------------

    def emissions(self, point: FloatArray) -> list[Emission | None]:
        """Return the emissions of all columns at a point."""
        emissions: list[Emission | None] = [None] * self.tree.n_observed
        for leaf in self.leaves:
            emissions[leaf.column] = leaf.at(point)
        return emissions

    def joined(self, theta: FloatArray, emissions: list[FreeEmission]) -> FloatArray:
        """Return the point of tables and of the emissions of the leaves."""
        pairs = zip(self.leaves, emissions, strict=True)
        return self.placed(theta, [emission.coordinates(leaf.unit) for leaf, emission in pairs])

    def placed(self, theta: FloatArray, coordinates: Iterable[FloatArray]) -> FloatArray:
        """Return the point of tables and of the coordinates of the leaves, within limits."""
        rest = np.concatenate([np.empty(0), *(own.ravel() for own in coordinates)])
        return np.concatenate([theta, np.clip(rest, *self._limits)])

    def point(self, model: StateModel) -> FloatArray:
        """Return the point of a model on the same tree, tables kept away from zero."""
        theta = model.layout.reoriented(model.theta, self.layout)
        theta = self.layout.normalized(np.maximum(theta, _LEAST))
        return self.joined(theta, [model.emissions[leaf.column] for leaf in self.leaves])

    def model(self, point: FloatArray) -> StateModel:
        """Return the model at a point, rooted as the tree was given."""
        layout = Layout(self.tree, self.n_states)
        theta = self.layout.reoriented(point[: self.layout.size], layout)
        emissions = self.emissions(point)
        return state_model(self.tree, self.n_states, theta, emissions, self.sample.schema)

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep probabilities above a tenth of those at ``near``, and emissions within reach."""
        size = self.layout.size
        theta = self.layout.normalized(np.maximum(point[:size], 0.1 * near[:size]))
        if not self.leaves:
            return theta
        rest = np.clip(point[size:], near[size:] - _FARTHEST, near[size:] + _FARTHEST)
        return np.concatenate([theta, np.clip(rest, *self._limits)])

    # Steps ----------------------------------------------------------------------------------

    def step(self, point: FloatArray) -> Step:
        """Expected counts at a point, and the point that they give."""
        theta, emissions = point[: self.layout.size], self.emissions(point)
        sums = self.counts.run(theta, emissions, self.units)
        # The mode of LL(θ) + Σ prior·log θ, which is the log-posterior but for a constant.
        tables = self._maximize(sums.counts + self.prior)
        objective = sums.log_likelihood + float(self.prior @ np.log(theta))
        if not self.leaves:
            return Step(sums.log_likelihood, objective, tables)
        with tiny(self.total_weight < _FEW_ROWS):
            following = self.placed(tables, self.maximized(sums, emissions, self.weight))
            for leaf in self.leaves:
                emission: Any = emissions[leaf.column]
                objective += emission.log_prior(leaf.unit, self.weight / leaf.n_states)
        return Step(sums.log_likelihood, objective, following)

    def maximized(
        self, sums: ExpectedCounts, emissions: Sequence[Any], weight: float
    ) -> list[FloatArray]:
        """Return the coordinates that sums of emissions give, with a prior of some rows."""
        return [
            emissions[leaf.column].maximized(own, leaf.unit, weight / leaf.n_states)
            for leaf, own in zip(self.leaves, sums.leaves, strict=True)
        ]

    def _maximize(self, counts: FloatArray) -> FloatArray:
        return self.layout.normalized(counts)

    def first_rows(self) -> Table:
        """Return the first part of the rows of which some count, on which a fit starts."""
        tables = self.sample.parts.tables
        parts = (tables.one(number, _same) for number in range(len(tables)))
        return next(part for part in parts if part.total_weight > 0)


def units_of(sample: Sample, columns: IntArray) -> dict[int, Unit]:
    """Return what is known of some columns of numbers before anything is fitted."""
    units: dict[int, Unit] = {}
    if not columns.size:
        return units
    sums = sample.statistics.sums
    means, spreads = sums.moments()
    gaps, (low, high) = sums.resolutions, sums.extremes()
    for j in columns.tolist():
        steps = recorded_steps(gaps[j], low[j], high[j])
        units[j] = Unit(float(means[j]), float(spreads[j]), *steps)
    return units


def _same(table: Table) -> Table:
    return table


class SymmetricProblem(StateProblem):
    """Symmetric tables: uniform marginals, and one crossover θ an edge."""

    def _maximize(self, counts: FloatArray) -> FloatArray:
        layout, k = self.layout, int(self.n_states[0])
        total = np.add.reduceat(counts, layout.starts[:-1])
        agree = np.zeros(self.tree.n_nodes)
        # P(x_child ≠ x_parent) = (K − 1)·θ, so that θ̂ = (share that disagrees) / (K − 1).
        agree[layout.inner] = counts[layout.diagonal].reshape(-1, k).sum(axis=1)
        return layout.symmetric((1.0 - agree / total) / (k - 1))


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


def column_entropies(statistics: Statistics) -> ColumnEntropies:
    """Return the entropy of every column, missing cells being a state of their own.

    That of numbers is the entropy of as many equal shares as they have values.
    """
    sums, total = statistics.sums, statistics.total_weight
    missing = np.where(sums.gaps > 0, np.maximum(total - sums.column_weights(), 0.0), 0.0)
    entropy = entr(missing / total)
    for column, labels in enumerate(statistics.schema.labels):
        if labels:
            entropy[column] += entr(sums.of_column(column) / total).sum()
        else:
            low, high = (ends[column] for ends in sums.extremes())
            with np.errstate(over="ignore"):  # more values than there are rows, however many
                n_values = (high - low) / sums.resolutions[column] + 1.0
            entropy[column] = np.log(min(n_values, statistics.n_rows))
    return ColumnEntropies(statistics.n_rows, entropy, sums.gaps == 0)

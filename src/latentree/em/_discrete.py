"""EM for discrete trees: expected counts on subtree patterns, normalised into tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree.data import Parts, Table
from latentree.distances import StateCounts, Statistics
from latentree.em._counting import PartedCounts
from latentree.em._driver import Step
from latentree.inference import (
    Expectation,
    Layout,
    Skeleton,
    Variety,
    cheapest_rooting,
    compile_patterns,
)
from latentree.models import DiscreteTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

FLOOR = 1e-5
"""Weight of the prior when there is none: no probability is ever stuck at an exact zero."""


class DiscreteProblem:
    """The likelihood of a table under a tree, as the EM driver sees it.

    A point is the flat array of all tables, rooted as the patterns are compiled. ``prior_weight``
    is that of a uniform Dirichlet prior, in rows: every node and every pair of neighbours counts
    as having been seen so often in addition, all states alike (BDeu). The result does not depend
    on the root.

    Data in ``parts`` is compiled and counted part by part; ``table`` is then their statistics.
    """

    def __init__(
        self,
        tree: Tree,
        n_states: IntArray,
        table: Table | Statistics,
        prior_weight: float = 0.0,
        parts: Parts | None = None,
    ) -> None:
        self.tree = tree
        self.n_states = n_states
        self.table = table
        self.counts: Expectation | PartedCounts
        if parts is None:
            patterns = compile_patterns(tree, n_states, table)  # type: ignore[arg-type]
            self.layout = patterns.layout
            self.counts = Expectation(patterns)
        else:
            variety = _variety(table)
            self.layout = Layout(cheapest_rooting(tree, variety), n_states)
            self.counts = PartedCounts(Skeleton.of(self.layout, variety), parts)
            self.n_parts = parts.n_parts
        cells = self.layout.parent_states * n_states
        self.prior = np.repeat(max(prior_weight, FLOOR) / cells, cells)

    def step(self, point: FloatArray) -> Step:
        """Expected counts under the tables, and the tables they give."""
        log_likelihood, counts = self.counts.run(point)
        following = self._maximise(counts + self.prior)
        return Step(log_likelihood, log_likelihood + float(self.prior @ np.log(point)), following)

    def blended(self, numbers: Sequence[int], point: FloatArray, share: float) -> FloatArray:
        """Step from the counts of the model itself, blended with those of some parts of the rows.

        Both count all rows, and so does the prior.
        """
        assert isinstance(self.counts, PartedCounts)
        found = self.counts.of_some(numbers, point).counts
        own = self.layout.joint(point)
        root = int(self.layout.tree.roots[0])
        weight = found[self.layout.starts[root] : self.layout.starts[root + 1]].sum()
        blend = (1.0 - share) * own + (share / weight) * found
        return self._maximise(self.table.total_weight * blend + self.prior)

    def _maximise(self, counts: FloatArray) -> FloatArray:
        return self.layout.normalised(counts)

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep every probability above a tenth of its neighbour's, and every row's sum at 1."""
        return self.layout.normalised(np.maximum(point, 0.1 * near))

    def point(self, model: DiscreteTreeModel) -> FloatArray:
        """Tables of a model on the same tree, kept away from zero."""
        theta = model.layout.reoriented(model.theta, self.layout)
        return self.layout.normalised(np.maximum(theta, 1e-12))

    def model(self, point: FloatArray) -> DiscreteTreeModel:
        """Return the model at a point, rooted as the tree was given."""
        layout = Layout(self.tree, self.n_states)
        theta = self.layout.reoriented(point, layout)
        schema = self.table.schema
        return DiscreteTreeModel.from_theta(
            self.tree, self.n_states, theta, schema.labels, schema.family
        )


def _variety(table: Table | Statistics) -> Variety:
    """How much columns vary, by the counts of their states, missing cells being one of them."""
    assert isinstance(table, Statistics)
    assert isinstance(table.sums, StateCounts)
    counts, starts = np.diagonal(table.sums.counts), table.sums.starts[:-1]
    missing = np.maximum(table.total_weight - table.column_weights(), 0.0)
    complete = missing <= 1e-12 * table.total_weight
    absent = np.where(complete, 0.0, missing)

    def term(weight: FloatArray) -> FloatArray:
        share = weight / table.total_weight
        return np.asarray(-share * np.log(np.where(share > 0, share, 1.0)))

    entropy = np.add.reduceat(term(counts), starts) + term(absent)
    return Variety(table.n_rows, entropy, complete)


class SymmetricProblem(DiscreteProblem):
    """Symmetric tables: uniform marginals, and one crossover θ an edge."""

    def _maximise(self, counts: FloatArray) -> FloatArray:
        layout, k = self.layout, int(self.n_states[0])
        total = np.add.reduceat(counts, layout.starts[:-1])
        agree = np.zeros(self.tree.n_nodes)
        agree[layout.inner] = counts[layout.diagonal].reshape(-1, k).sum(axis=1)
        return layout.symmetric((1.0 - agree / total) / (k - 1))

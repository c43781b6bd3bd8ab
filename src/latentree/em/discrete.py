"""EM for discrete trees: expected counts on subtree patterns, normalised into tables."""

from __future__ import annotations

import numpy as np

from latentree.em.driver import Step
from latentree.models import DiscreteTreeModel
from latentree.models.expectation import Expectation
from latentree.models.patterns import Patterns, compile_patterns
from latentree.models.tables import Layout
from latentree.table import Table
from latentree.tree import Tree
from latentree.tree.build import FloatArray, IntArray

FLOOR = 1e-5
"""Weight of the prior when there is none: no probability is ever stuck at an exact zero."""


class DiscreteProblem:
    """The likelihood of a table under a tree, as the EM driver sees it.

    A point is the flat array of all tables, rooted as the patterns are compiled. ``prior_weight``
    is that of a uniform Dirichlet prior, in rows: every node and every pair of neighbours counts
    as having been seen so often in addition, all states alike (BDeu). The result does not depend
    on the root.
    """

    def __init__(
        self, tree: Tree, n_states: IntArray, table: Table, prior_weight: float = 0.0
    ) -> None:
        self.tree = tree
        self.n_states = n_states
        self.table = table
        self.patterns: Patterns = compile_patterns(tree, n_states, table)
        self.expectation = Expectation(self.patterns)
        cells = self.layout.parent_states * n_states
        self.prior = np.repeat(max(prior_weight, FLOOR) / cells, cells)

    @property
    def layout(self) -> Layout:
        """Layout of a point."""
        return self.patterns.layout

    def step(self, point: FloatArray) -> Step:
        """Expected counts under the tables, and the tables they give."""
        log_likelihood, counts = self.expectation.run(point)
        following = self._maximise(counts + self.prior)
        return Step(log_likelihood, log_likelihood + float(self.prior @ np.log(point)), following)

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


class SymmetricProblem(DiscreteProblem):
    """Symmetric tables: uniform marginals, and one crossover θ an edge."""

    def _maximise(self, counts: FloatArray) -> FloatArray:
        layout, k = self.layout, int(self.n_states[0])
        total = np.add.reduceat(counts, layout.starts[:-1])
        agree = np.zeros(self.tree.n_nodes)
        agree[layout.inner] = counts[layout.diagonal].reshape(-1, k).sum(axis=1)
        return layout.symmetric((1.0 - agree / total) / (k - 1))

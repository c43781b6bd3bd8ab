"""EM for discrete trees: expected counts on subtree patterns, normalized into tables."""

from __future__ import annotations

import numpy as np

from latentree.distances import Sample, Statistics
from latentree.em._driver import Step
from latentree.em._expected_counts import PartedCounts
from latentree.inference import ColumnEntropies, Layout, Skeleton, cheapest_rooting
from latentree.models import DiscreteTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

FLOOR = 1e-5
"""Weight of the prior when there is none: no probability is ever stuck at an exact zero."""


class DiscreteProblem:
    """The likelihood of discrete rows under a tree, as the EM driver sees it.

    A point is the flat array of all tables, rooted as the patterns are compiled. ``prior_weight``
    is that of a uniform Dirichlet prior, in rows: every node and every pair of neighbors counts
    as having been seen so often in addition, all states alike (BDeu). The result does not depend
    on the root.
    """

    def __init__(
        self, tree: Tree, n_states: IntArray, sample: Sample, prior_weight: float = 0.0
    ) -> None:
        self.tree = tree
        self.n_states = n_states
        self.sample = sample
        self.total_weight = sample.total_weight
        self.is_closed_form = tree.n_hidden == 0 and not sample.has_missing
        entropies = column_entropies(sample.statistics)
        self.layout = Layout(cheapest_rooting(tree, entropies), n_states)
        self.counts = PartedCounts(Skeleton.of(self.layout, entropies), sample.rows)
        # BDeu: each table shares the weight out to its K_parent·K cells (K cells at the root).
        cells = self.layout.parent_states * n_states
        self.prior = np.repeat(max(prior_weight, FLOOR) / cells, cells)

    def step(self, point: FloatArray) -> Step:
        """Expected counts under the tables, and the tables they give."""
        log_likelihood, counts = self.counts.run(point)
        # The mode of LL(θ) + Σ prior·log θ, which is the log-posterior but for a constant.
        following = self._maximize(counts + self.prior)
        return Step(log_likelihood, log_likelihood + float(self.prior @ np.log(point)), following)

    def _maximize(self, counts: FloatArray) -> FloatArray:
        return self.layout.normalized(counts)

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep every probability above a tenth of that at ``near``, and every row's sum at 1."""
        return self.layout.normalized(np.maximum(point, 0.1 * near))

    def point(self, model: DiscreteTreeModel) -> FloatArray:
        """Tables of a model on the same tree, kept away from zero."""
        theta = model.layout.reoriented(model.theta, self.layout)
        return self.layout.normalized(np.maximum(theta, 1e-12))

    def model(self, point: FloatArray) -> DiscreteTreeModel:
        """Return the model at a point, rooted as the tree was given."""
        layout = Layout(self.tree, self.n_states)
        theta = self.layout.reoriented(point, layout)
        schema = self.sample.schema
        return DiscreteTreeModel.from_theta(
            self.tree, self.n_states, theta, schema.labels, schema.family
        )


def column_entropies(statistics: Statistics) -> ColumnEntropies:
    """Entropy of every column, missing cells being a state of their own."""
    sums = statistics.sums
    missing = np.maximum(statistics.total_weight - sums.column_weights(), 0.0)

    def term(weight: FloatArray) -> FloatArray:
        share = weight / statistics.total_weight
        return np.asarray(-share * np.log(np.where(share > 0, share, 1.0)))

    entropy = np.add.reduceat(term(sums.single), sums.starts[:-1])
    entropy += term(np.where(sums.gaps > 0, missing, 0.0))
    return ColumnEntropies(statistics.n_rows, entropy, sums.gaps == 0)


class SymmetricProblem(DiscreteProblem):
    """Symmetric tables: uniform marginals, and one crossover θ an edge."""

    def _maximize(self, counts: FloatArray) -> FloatArray:
        layout, k = self.layout, int(self.n_states[0])
        total = np.add.reduceat(counts, layout.starts[:-1])
        agree = np.zeros(self.tree.n_nodes)
        # P(x_child ≠ x_parent) = (K − 1)·θ, so that θ̂ = (share that disagrees) / (K − 1).
        agree[layout.inner] = counts[layout.diagonal].reshape(-1, k).sum(axis=1)
        return layout.symmetric((1.0 - agree / total) / (k - 1))

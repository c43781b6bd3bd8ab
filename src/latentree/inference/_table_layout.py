"""All tables of a discrete tree in one flat array.

Node v owns the entries from ``starts[v]``: at a root its K_v marginal probabilities, elsewhere the
K_parent × K_v conditional table, row by row. A leaf with K_v = 0 has no table: it emits values that
are no states (reals, counts), whose likelihoods are handed to the E-step apart from the tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.inference import tables as kernels
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the tables of a tree's nodes lie in a flat array."""

    tree: Tree
    n_states: IntArray

    @cached_property
    def parent_states(self) -> IntArray:
        """Rows of each node's table: the states of its parent, 1 at a root."""
        parent = self.tree.parent
        return np.where(parent < 0, 1, self.n_states[parent])

    @cached_property
    def starts(self) -> IntArray:
        """Where each node's table starts; one entry more for the end."""
        return np.concatenate([[0], np.cumsum(self.parent_states * self.n_states)])

    @property
    def size(self) -> int:
        """Length of the flat array."""
        return int(self.starts[-1])

    def table(self, theta: FloatArray, node: int) -> FloatArray:
        """View of a node's table, K_parent × K (1 × K at a root)."""
        block = theta[self.starts[node] : self.starts[node + 1]]
        return block.reshape(self.parent_states[node], self.n_states[node])

    @cached_property
    def emits(self) -> NDArray[np.bool_]:
        """Which nodes have no states: leaves that emit values."""
        return np.asarray(self.n_states == 0)

    def row_sums(self, theta: FloatArray) -> FloatArray:
        """Sum of every row of every table, in order."""
        return np.add.reduceat(theta, self.row_starts)

    @cached_property
    def row_starts(self) -> IntArray:
        """Where every row of every table starts."""
        return np.asarray(np.cumsum(self.row_widths) - self.row_widths)

    @cached_property
    def row_widths(self) -> IntArray:
        """Length of every row of every table."""
        return np.repeat(self.n_states, self._n_rows)

    @cached_property
    def _n_rows(self) -> IntArray:
        """Rows of each node's table; none where there is no table."""
        return np.where(self.emits, 0, self.parent_states)

    def normalized(self, weights: FloatArray) -> FloatArray:
        """Scale every row to sum 1; rows without any weight become uniform."""
        totals = self.row_sums(weights)
        sums = np.repeat(totals, self.row_widths)
        if (totals > 0).all():
            return weights / sums
        uniform = 1.0 / np.repeat(self.row_widths, self.row_widths)
        return np.divide(weights, sums, out=uniform, where=sums > 0)

    def symmetric(self, crossover: FloatArray) -> FloatArray:
        """Tables with 1 − (K−1)·θ on the diagonal and θ beside it; uniform marginals at roots.

        All nodes must have the same number of states K.
        """
        k = int(self.n_states[0])
        tables = np.repeat(crossover, self.parent_states * k)
        diagonal = self.diagonal
        tables[diagonal] = np.repeat(1.0 - (k - 1) * crossover, k)[np.repeat(self.inner, k)]
        tables[np.repeat(~self.inner, self.parent_states * k)] = 1.0 / k
        return tables

    @property
    def inner(self) -> NDArray[np.bool_]:
        """Which nodes have a parent."""
        return np.asarray(self.tree.parent >= 0)

    @property
    def diagonal(self) -> IntArray:
        """Where the diagonals of the tables of edges lie; all nodes have the same K."""
        k = int(self.n_states[0])
        return (self.starts[:-1][self.inner][:, None] + np.arange(k) * (k + 1)).ravel()

    def marginals(self, theta: FloatArray) -> NDArray[np.float64]:
        """Marginal probabilities of all nodes end to end (K_v numbers for node v)."""
        out: FloatArray = kernels.marginals(
            self.tree.order, self.tree.parent, self.n_states, self.starts, theta, self.state_starts
        )
        return out

    def joint(self, theta: FloatArray) -> FloatArray:
        """Joint probabilities of every node and its parent, in the places of the tables."""
        above = np.append(self.marginals(theta), 1.0)[self._state_above]
        return np.asarray(theta * np.repeat(above, self.row_widths))

    @cached_property
    def _state_above(self) -> IntArray:
        """State of the parent that every row of every table is given, among all; last at roots."""
        node = np.repeat(np.arange(self.tree.n_nodes), self._n_rows)
        first = np.cumsum(self._n_rows) - self._n_rows
        parent, state = self.tree.parent[node], np.arange(node.size) - first[node]
        starts = self.state_starts
        return np.asarray(np.where(parent < 0, starts[-1], starts[parent] + state))

    @cached_property
    def child_states(self) -> IntArray:
        """State of the child, among all, that every entry of every table belongs to."""
        node = np.repeat(np.arange(self.tree.n_nodes), self._n_rows)
        first = np.repeat(self.state_starts[node] - self.row_starts, self.row_widths)
        return np.asarray(first + np.arange(self.size))

    @cached_property
    def state_starts(self) -> IntArray:
        """Where the states of each node start when all are laid end to end."""
        return np.concatenate([[0], np.cumsum(self.n_states)])

    def reoriented(self, theta: FloatArray, target: Layout) -> FloatArray:
        """Return the same distribution, and the same edge counts, for another rooting of the tree.

        Conditional tables are turned round by Bayes' rule.
        """
        out: FloatArray = kernels.reorient(
            self.tree.parent, target.tree.parent, self.n_states, self.starts, theta,
            self.marginals(theta), self.state_starts, target.starts, target.size,
        )  # fmt: skip
        return out

    def turned_counts(self, counts: FloatArray, target: Layout) -> FloatArray:
        """Transpose the joint counts of the edges that another rooting turns round.

        Counts of roots are sums of the counts of an edge at the root, or of the root itself.
        """
        out: FloatArray = kernels.turn_counts(
            self.tree.parent, target.tree.parent, self.n_states, self.starts, counts,
            target.starts, target.size,
        )  # fmt: skip
        return out

"""The base of models whose hidden variables have states: queries about rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property

import numpy as np

from latentree import _memory as memory
from latentree._kernels.inference import tables as kernels
from latentree.data import Schema, Table
from latentree.errors import ModelError
from latentree.inference import (
    DiscretePosterior,
    Emission,
    Layout,
    RowInference,
    child_of_edge,
    chunks,
    node_number,
    node_numbers,
    refuse_rows,
)
from latentree.models._base import BaseTreeModel
from latentree.tree import Tree
from latentree.typing import Cells, FloatArray, IntArray, Node, RandomState, TableLike

_SHARED = 8
"""A chunk has so many times more rows if they are sparse, as these share most patterns: 150
documents with 130 of 10,000 words each have a thirtieth of the patterns that they could have."""


class StateTreeModel(BaseTreeModel):
    """A tree whose hidden nodes have states, with all tables end to end in ``theta``.

    A subclass computes the messages of rows (``_row_messages``).
    """

    tree: Tree
    n_states: IntArray
    theta: FloatArray
    schema: Schema

    @cached_property
    def layout(self) -> Layout:
        """Where the table of each node starts in ``theta``."""
        return Layout(self.tree, self.n_states)

    def marginal(self, node: Node) -> FloatArray:
        """Return the probabilities of the states of one node.

        Parameters
        ----------
        node : int or str
            By number or name.

        Returns
        -------
        array of float, one a state

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.DiscreteTreeModel(lt.Tree([-1, 0]), [[0.5, 0.5], [[1, 0], [0.5, 0.5]]])
        >>> model.marginal("x1")
        array([0.75, 0.25])
        """
        return self._probabilities(node_number(self.tree, node))

    def states(self, node: Node) -> dict[str | int, Cells]:
        """Return what the states of a node mean: their sizes, and the variables in each.

        Parameters
        ----------
        node : int or str
            A node with states, by number or name: a hidden variable, or an observed category.

        Returns
        -------
        dict
            Columns of equal length, as pandas and polars take them for a frame: "variable",
            "value", and one column for every state 0, 1, …. The first row holds the sizes
            (probabilities) of the states. Then come the other observed variables of the same
            component: a row for every label with its probability in each state, or two rows for a
            real or count with its mean and standard deviation.

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3, names=["age", "visits", "insured"])
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> visits, insured = lt.CountEmission([1.0, 4.0]), [[0.5, 0.5], [0.1, 0.9]]
        >>> model = lt.MixedTreeModel(star, [age, visits, insured, [0.7, 0.3]])
        >>> for column, cells in model.states("h1").items():
        ...     print(column, cells)
        variable ['h1', 'age', 'age', 'visits', 'visits', 'insured', 'insured']
        value ['size', 'mean', 'sd', 'mean', 'sd', 0, 1]
        0 [0.7, 30.0, 10.0, 1.0, 1.0, 0.5, 0.5]
        1 [0.3, 60.0, 10.0, 4.0, 2.0, 0.1, 0.9]
        """
        number = node_number(self.tree, node)
        if self.layout.emits[number]:
            raise ModelError(f"{self.tree.names[number]!r} is a number: it has no states")
        names = [self.tree.names[number]]
        values: list[Hashable] = ["size"]
        rows = [self._probabilities(number)]
        for variable, given in self._given_states_of(number):
            labels = ("mean", "sd") if self.layout.emits[variable] else self.schema.labels[variable]
            names += [self.tree.names[variable]] * len(labels)
            values += labels
            rows += [*given.T]
        columns = np.array(rows).T
        found: dict[str | int, Cells] = {"variable": names, "value": values}
        found.update(enumerate(columns.tolist()))
        return found

    def log_likelihood(self, X: TableLike) -> FloatArray:
        """Return the log-probability of every row; missing cells are summed out.

        Parameters
        ----------
        X : table of any kind
            Array, frame or :class:`latentree.Table` with the model's variables and labels.

        Returns
        -------
        array of float, one a row
            −∞ where a row is impossible.

        Examples
        --------
        >>> import latentree as lt, numpy as np
        >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.1)
        >>> np.exp(model.log_likelihood([[0, 0], [0, 1], [0, None]])).round(2)
        array([0.45, 0.05, 0.5 ])
        """
        table = self._table(X)
        out = np.empty(table.n_rows)
        for rows, messages in self._messages(table):
            out[rows] = messages.log_likelihood()
        return out

    def posterior(self, X: TableLike, nodes: Iterable[Node] | None = None) -> DiscretePosterior:
        """Return the probabilities of the states of nodes given each row.

        Parameters
        ----------
        X : table of any kind
        nodes : iterable of int or str, optional
            The nodes asked for, by number or name; all hidden ones when left out.

        Returns
        -------
        DiscretePosterior
            ``posterior[node]`` has a row per row of ``X`` and a column per state. Impossible rows
            have NaN.

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([3, 3, 3, -1], n_observed=3), 2, 0.1)
        >>> model.posterior([[1, 1, 0]])["h1"].round(2)
        array([[0.1, 0.9]])
        """
        numbers = node_numbers(self.tree, nodes)
        starts = np.concatenate([[0], np.cumsum(self.n_states[numbers])])
        return DiscretePosterior(
            self.tree, numbers, self._answers(self._table(X), numbers)[1], starts
        )

    def edge_posterior(self, X: TableLike, a: Node, b: Node) -> FloatArray:
        """Return the joint probabilities of the two ends of an edge given each row.

        Parameters
        ----------
        X : table of any kind
        a, b : int or str
            Two neighbors, by number or name.

        Returns
        -------
        array of float of shape (n_rows, K_a, K_b)

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([3, 3, 3, -1], n_observed=3), 2, 0.1)
        >>> model.edge_posterior([[1, 1, None]], "h1", "x2").round(2)
        array([[[0.01, 0.  ],
                [0.1 , 0.89]]])
        """
        child = child_of_edge(self.tree, a, b)
        above = int(self.tree.parent[child])
        table = self._table(X)
        out = np.empty((table.n_rows, self.n_states[above], self.n_states[child]))
        for rows, messages in self._messages(table):
            turned = messages.patterns.layout.tree.parent[child] != above
            joint = messages.edge_posteriors(above if turned else child)
            out[rows] = joint.transpose(0, 2, 1) if turned else joint
        return out if node_number(self.tree, a) == above else out.transpose(0, 2, 1)

    def sample_hidden(self, X: TableLike, random_state: RandomState = None) -> IntArray:
        """Draw the states of the hidden nodes given each row, one draw a row.

        Parameters
        ----------
        X : table of any kind
        random_state : int or numpy.random.Generator, optional
            Seed or source of randomness.

        Returns
        -------
        array of int of shape (n_rows, n_hidden)

        Raises
        ------
        ModelError
            When a row is impossible.

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.simulate.random_discrete_model(lt.simulate.double_star(6), 2, 0)
        >>> model.sample_hidden(model.sample(10, 0), random_state=0).shape
        (10, 2)
        """
        rng = np.random.default_rng(random_state)
        table = self._table(X)
        out = np.empty((table.n_rows, self.tree.n_hidden), np.int64)
        for rows, messages in self._messages(table):
            uniform = rng.random((messages.n_rows, self.tree.n_nodes))
            out[rows] = messages.states(uniform)[:, self.tree.n_observed :]
            refuse_impossible(messages, rows)
        return out

    # Private ------------------------------------------------------------------------------

    def _answers(self, table: Table, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the log-likelihood of each row, and the posteriors of nodes side by side."""
        n_states = int(self.n_states[nodes].sum())
        memory.require(
            8.0 * table.n_rows * n_states,
            f"probabilities of {n_states:,} states in {table.n_rows:,} rows",
            "ask for fewer nodes, or for fewer rows at a time",
        )
        log_likelihood, out = np.empty(table.n_rows), np.empty((table.n_rows, n_states))
        for rows, messages in self._messages(table):
            out[rows] = messages.posteriors(nodes)
            log_likelihood[rows] = messages.log_likelihood()
        out[np.isinf(log_likelihood)] = np.nan
        return log_likelihood, out

    def _probabilities(self, node: int) -> FloatArray:
        """Return the marginal probabilities of the states of a node."""
        starts = self.layout.state_starts
        return self.layout.marginals(self.theta)[starts[node] : starts[node + 1]]

    def _given_states_of(self, node: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield the observed variables of a node's component, with a row for every state of it.

        A row holds the probabilities of the variable's states, or mean and standard deviation.
        """
        tree = self.tree.rerooted(node)
        layout = Layout(tree, self.n_states)
        theta = self.layout.reoriented(self.theta, layout)
        # P(v | node) = Σ_k P(parent = k | node)·P(v | parent = k), from the node outward.
        given = {node: np.eye(int(self.n_states[node]))}
        for v in tree.order.tolist():
            above = given.get(int(tree.parent[v]))
            if above is None:
                continue
            if layout.emits[v]:
                mean, variance = self._emission(v).moments(above)
                given[v] = np.stack([mean, np.sqrt(variance)], axis=1)
            else:
                given[v] = above @ layout.table(theta, v)
        for variable in range(tree.n_observed):
            if variable != node and variable in given:
                yield variable, given[variable]

    def _emission(self, node: int) -> Emission:
        raise NotImplementedError  # of models with reals or counts only

    def _joint(self, first: int, second: int) -> FloatArray:
        """Return the joint probabilities of the states of two nodes."""
        marginal = self._probabilities(first)
        if first == second:
            return np.diag(marginal)
        tree = self.tree.rerooted(first)
        layout = Layout(tree, self.n_states)
        theta = self.layout.reoriented(self.theta, layout)
        path = [second]
        while tree.parent[path[-1]] >= 0:
            path.append(int(tree.parent[path[-1]]))
        if path[-1] != first:
            return np.outer(marginal, self._probabilities(second))
        table = np.diag(marginal)
        for node in path[-2::-1]:
            table = table @ layout.table(theta, node)
        return table

    def _messages(
        self, table: Table, maximize: bool = False
    ) -> Iterator[tuple[slice, RowInference]]:
        """Yield chunks of the rows with their messages."""
        # Two joins and an edge a node, each with a number a state and pattern. What has nearly as
        # many patterns as there are rows runs by row and keeps nothing; others share most.
        numbers = int(self.layout.state_starts[-1]) // (_SHARED if table.is_sparse else 1)
        for start, stop in chunks(table.n_rows, numbers):
            yield slice(start, stop), self._row_messages(table.rows(start, stop), maximize)

    def _row_messages(self, table: Table, maximize: bool) -> RowInference:
        raise NotImplementedError

    def _most_probable(self, table: Table) -> IntArray:
        """Return the most probable joint states of all nodes given each row (max-product)."""
        out = np.empty((table.n_rows, self.tree.n_nodes), np.int64)
        for rows, messages in self._messages(table, maximize=True):
            refuse_impossible(messages, rows)
            out[rows] = messages.states(np.zeros((messages.n_rows, self.tree.n_nodes)))
        return out

    def _draw_states(self, n_samples: int, rng: np.random.Generator) -> IntArray:
        """Draw the states of all nodes from the roots down; 0 for nodes without states."""
        tree = self.tree
        states = np.zeros((n_samples, tree.n_nodes), np.int64)
        kernels.sample_states(
            tree.order, tree.parent, self.n_states, self.layout.starts, self.theta,
            rng.random(states.shape), states,
        )  # fmt: skip
        return states

    def _state(self, node: int, label: Hashable) -> int:
        """Return the state of a node that has a label."""
        known = self.schema.labels[node] if node < self.tree.n_observed else None
        states = range(self.n_states[node]) if known is None else known
        for state, name in enumerate(states):
            if name == label:
                return state
        raise ModelError(
            f"{self.tree.names[node]!r} has no state {label!r}: "
            f"it has {', '.join(map(repr, states))}"
        )


def maximal_correlation(joint: FloatArray) -> float:
    """Return the largest correlation of functions of two variables, from their joint table J.

    It is the second singular value of J/√(p·q) for the marginals p and q. The first is 1, with the
    singular vectors √p and √q, so it is the largest one of J/√(p·q) − √(p·q).
    """
    root = np.sqrt(np.outer(joint.sum(axis=1), joint.sum(axis=0)))
    whitened = np.divide(joint, root, out=np.zeros_like(joint), where=root > 0) - root
    return min(float(np.linalg.norm(whitened, 2)), 1.0)


def refuse_impossible(messages: RowInference, rows: slice) -> None:
    """Raise an error that names the first row of probability zero."""
    refuse_rows(np.isinf(messages.log_likelihood()), np.arange(rows.start, rows.stop))


def fill_codes(table: Table, states: Callable[[Table, IntArray], FloatArray]) -> IntArray:
    """Return the codes of a table, most probable ones where they are missing.

    ``states`` gives the probabilities of the states of some columns in every row of a table, side
    by side, NaN in impossible rows. It is asked only about rows and columns with gaps.
    """
    if table.is_sparse:
        return np.asarray(table.values.toarray(), np.int64)
    codes, missing = np.array(table.values, np.int64), table.missing_mask()
    gaps, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
    ends = np.cumsum(table.cardinalities[columns])
    for start, stop in chunks(gaps.size, int(table.cardinalities[columns].sum())):
        rows = gaps[start:stop]
        found = states(table.take(rows), columns)
        refuse_rows(np.isnan(found.sum(axis=1)), rows)
        for column, block in zip(columns, np.split(found, ends[:-1], axis=1), strict=True):
            mine = missing[rows, column]
            codes[rows[mine], column] = block[mine].argmax(axis=1)
    return codes

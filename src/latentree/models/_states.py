"""Models whose hidden variables have states: all that can be asked of them."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from latentree import _memory as memory
from latentree._kernels.inference import tables as kernels
from latentree.data import Schema, Table
from latentree.distances import Distances
from latentree.errors import ModelError
from latentree.inference import (
    DiscretePosterior,
    Emission,
    Layout,
    Normal,
    RowInference,
    child_of_edge,
    chunks,
    compile_patterns,
    given_number,
    node_number,
    node_numbers,
    numbered_evidence,
    refuse_rows,
    set_fields,
)
from latentree.models._base import BaseTreeModel
from latentree.tree import Tree
from latentree.typing import (
    AnyArray,
    Cells,
    FloatArray,
    IntArray,
    Kind,
    Node,
    RandomState,
    TableLike,
)

_SHARED = 8
"""A chunk has so many times more rows if they are sparse, as these share most patterns: 150
documents with 130 of 10,000 words each have a thirtieth of the patterns that they could have."""


_LEAST_CORRELATION = 1e-12
"""Smaller maximal correlations count as this, so that lengths are finite: at most 27.6."""

_FARTHEST = 700.0
"""Distance between components: exp(−700) is 10⁻³⁰⁴, still a normal number."""


class StateTreeModel(BaseTreeModel):
    """A tree whose hidden nodes have states, with all tables end to end in ``theta``."""

    tree: Tree
    n_states: IntArray
    theta: FloatArray
    emissions: tuple[Any, ...]
    """The :class:`Emission` of every observed variable; None where it has a table."""
    schema: Schema

    @cached_property
    def layout(self) -> Layout:
        """Where the table of each node starts in ``theta``."""
        return Layout(self.tree, self.n_states)

    @property
    def parameters(self) -> list[Any]:
        """Tables and emissions of the nodes, as the constructor takes them.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.parameters[1]
        array([0.7, 0.3])
        """
        parts: list[Any] = []
        for node in range(self.tree.n_nodes):
            table = self.layout.table(self.theta, node)
            emission = self.emissions[node] if node < self.tree.n_observed else None
            parts.append(emission or (table[0] if self.tree.parent[node] < 0 else table))
        return parts

    @property
    def n_parameters(self) -> int:
        """Free parameters: K_parent·(K − 1) a table, and those of the emissions."""
        layout = self.layout
        tables = layout.parent_states * np.maximum(self.n_states - 1, 0)
        return int(tables.sum()) + sum(int(each.n_parameters) for each in self.emissions if each)

    def rerooted(self, node: Node) -> Self:
        """Return the same distribution with another root.

        Parameters
        ----------
        node : int or str
            The new root of its component, by number or name; a node with states.

        Returns
        -------
        model of the same type

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.rerooted("x1").tree.roots
        array([1])
        """
        number = node_number(self.tree, node)
        if self.layout.emits[number] and self.tree.degrees[number]:
            raise ModelError(f"{self.tree.names[number]!r} has no states, so it cannot be a root")
        tree = self.tree.rerooted(number)
        theta = self.layout.reoriented(self.theta, Layout(tree, self.n_states))
        return self._with(tree=tree, theta=theta)

    def marginal(self, node: Node) -> Any:
        """Return the distribution of one node.

        Parameters
        ----------
        node : int or str
            By number or name.

        Returns
        -------
        array of float, or Normal
            Probabilities of states; mean and variance of a real or count variable.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]]).marginal("x0").mean
        39.0
        """
        number = node_number(self.tree, node)
        if not self.layout.emits[number]:
            return self._probabilities(number)
        above = int(self.tree.parent[number])
        weights = np.ones(1) if above < 0 else self._probabilities(above)
        return _moments(weights, self._emission(number))

    def joint(self, a: Node, b: Node) -> FloatArray:
        """Return the table of joint probabilities of two nodes with states.

        Parameters
        ----------
        a, b : int or str
            By number or name.

        Returns
        -------
        array of float of shape (K_a, K_b)

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.joint("x1", "x1")
        array([[0.7, 0. ],
               [0. , 0.3]])
        """
        first, second = node_number(self.tree, a), node_number(self.tree, b)
        for node in (first, second):
            if self.layout.emits[node]:
                raise ModelError(f"{self.tree.names[node]!r} has no states")
        return self._joint(first, second)

    def edge_cells(self, node: int) -> tuple[FloatArray, FloatArray]:
        """Return P(parent) and the table P(node | parent), values of reals and counts in cells.

        Parameters
        ----------
        node : int
            With a parent.

        Returns
        -------
        tuple of arrays

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> above, table = model.edge_cells(0)
        >>> above, table.sum(axis=1).round(6)
        (array([0.7, 0.3]), array([1., 1.]))
        """
        above = self._probabilities(int(self.tree.parent[node]))
        emits = self.layout.emits[node]
        return above, self._emission(node).cells() if emits else self.layout.table(self.theta, node)

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
        array of float, one per row
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
        """Draw the states of the hidden nodes given each row, one draw per row.

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

    def complete(self, X: TableLike) -> AnyArray:
        """Return the most probable states of all nodes given each row (max-product).

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of shape (n_rows, n_nodes)
            States 0, 1, …; reals and counts are those of the row, or the mean of their neighbor's
            state where missing.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.complete([[60.0, None]])
        array([[60.,  1.]])
        """
        table = self._table(X)
        states = self._most_probable(table)
        if self.schema.is_coded:
            return states
        out = states.astype(np.float64)
        for column in self._emitting:
            state = self._neighbor_states(column, states)
            cells = table.column(column)
            out[:, column] = np.where(np.isnan(cells), self._emission(column).mean[state], cells)
        return out

    def impute(self, X: TableLike) -> AnyArray:
        """Return the observed columns with missing cells filled in.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of shape (n_rows, n_observed)
            Labels, the most probable ones where missing; numbers, means where missing, those of
            counts rounded. Of objects where some column has labels that are no numbers.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]], [(), ("no", "yes")])
        >>> model.impute([[None, "yes"]])
        array([[60.0, 'yes']], dtype=object)
        """
        return decoded(self._filled(self._table(X), None), self.schema)

    def imputed(self, X: TableLike) -> tuple[AnyArray, FloatArray]:
        """Return filled columns as numbers, and how uncertain the filled cells are.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        values : array of shape (n_rows, n_observed)
            Codes of columns with labels.
        spread : array of shape (n_rows, n_observed)
            0 for known cells; the standard deviation of a missing number, and the probability
            that a missing label is another one.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> values, spread = model.imputed([[None, 1]])
        >>> values, spread
        (array([[60.,  1.]]), array([[10.,  0.]]))
        """
        table = self._table(X)
        spread = np.zeros(table.values.shape)
        return self._filled(table, spread), spread

    def _filled(self, table: Table, spread: FloatArray | None) -> AnyArray:
        """Return cells without gaps, and write how uncertain the filled ones are."""
        dtype = np.int64 if self.schema.is_coded else np.float64
        if table.is_sparse:
            return np.asarray(table.values.toarray(), dtype)
        values, missing = np.array(table.values, dtype), table.missing_mask()
        gaps, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
        # A number follows the states of its neighbor; without one it is independent of all.
        nodes = np.where(self.layout.emits[columns], self.tree.parent[columns], columns)
        asked = np.unique(nodes[nodes >= 0])
        for start, stop in chunks(gaps.size, int(self.n_states[asked].sum())):
            rows = gaps[start:stop]
            posterior = self.posterior(table.take(rows), asked.tolist())
            refuse_rows(np.isnan(posterior.probabilities.sum(axis=1)), rows)
            for column, node in zip(columns.tolist(), nodes.tolist(), strict=True):
                is_gap = missing[rows, column]
                share = np.ones((rows.size, 1)) if node < 0 else posterior[node]
                filled, error = _fill(share[is_gap], self.emissions[column])
                values[rows[is_gap], column] = filled
                if spread is not None:
                    spread[rows[is_gap], column] = error
        return values

    def sample(
        self, n_samples: int, random_state: RandomState = None, hidden: bool = False
    ) -> AnyArray:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        random_state : int or numpy.random.Generator, optional
            Seed or source of randomness.
        hidden : bool
            Whether columns for the hidden nodes follow, as states 0, 1, ….

        Returns
        -------
        array
            One row per draw, one column per node, observed variables as labels and numbers.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.sample(100, random_state=0).shape
        (100, 2)
        """
        rng = np.random.default_rng(random_state)
        is_coded = self.schema.is_coded
        self._require_draws(n_samples, n_bytes=8.0 if is_coded else 16.0)  # and as labels
        dtype = np.int64 if is_coded else np.float64
        out = np.empty((n_samples, self.tree.n_nodes), dtype)
        for start, stop in chunks(n_samples, self.tree.n_nodes):
            out[start:stop] = self._draw(stop - start, rng)
        observed = decoded(out[:, : self.tree.n_observed], self.schema)
        return np.hstack([observed, out[:, self.tree.n_observed :]]) if hidden else observed

    def conditional(self, node: Node, given: Mapping[Node, Hashable] | None = None) -> Any:
        """Return the distribution of a node given values of others.

        Parameters
        ----------
        node : int or str
            By number or name.
        given : mapping of nodes to values, optional
            Labels or numbers of observed nodes, states of hidden ones.

        Returns
        -------
        array of float, or Normal
            Probabilities of states; mean and variance of a real or count variable. NaN if what is
            given is impossible.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.conditional("x0", {"x1": 1}).mean
        60.0
        """
        number, evidence = node_number(self.tree, node), numbered_evidence(self.tree, given)
        cells = np.full((1, self.tree.n_nodes), np.nan)
        for other, value in evidence.items():
            emits = bool(self.layout.emits[other])
            cells[0, other] = (
                given_number(self.tree, other, value) if emits else self._state(other, value)
            )
        seen = self._all_observed()
        row = Table(_coded(cells) if self.schema.is_coded else cells, seen.schema)
        if not self.layout.emits[number]:
            return seen.posterior(row, [number])[number][0]
        if number in evidence:
            return Normal(float(cells[0, number]), 0.0)
        above = int(self.tree.parent[number])
        weights = np.ones(1) if above < 0 else seen.posterior(row, [above])[above][0]
        return _moments(weights, self._emission(number))

    # Distances ------------------------------------------------------------------------------

    def distance_tree(self) -> Tree:
        """Return the tree with −log of the maximal correlation of every edge as its length.

        Returns
        -------
        Tree

        Examples
        --------
        >>> import latentree as lt
        >>> table = [[0.75, 0.25], [0.25, 0.75]]
        >>> model = lt.MixedTreeModel(lt.Tree([-1, 0]), [[0.5, 0.5], table])
        >>> model.distance_tree().length.round(3)
        array([0.   , 0.693])
        """
        lengths = np.zeros(self.tree.n_nodes)
        for node in map(int, np.flatnonzero(self.tree.parent >= 0)):
            above, table = self.edge_cells(node)
            strength = maximal_correlation(above[:, None] * table)
            lengths[node] = -np.log(max(strength, _LEAST_CORRELATION))
        return self.tree.with_lengths(np.maximum(lengths, 0.0))

    def information_distances(self) -> Distances:
        """Return the path lengths of :meth:`distance_tree` between all nodes.

        Returns
        -------
        Distances
            They are −log of the maximal correlation where hidden variables have two states, and
            an upper bound where they have more.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.information_distances()
        Distances(2 variables, exact, dense)
        """
        lengths = self.distance_tree()
        nodes = np.arange(self.tree.n_nodes)
        matrix = lengths.path_lengths(nodes, nodes)
        return Distances.from_matrix(np.where(np.isinf(matrix), _FARTHEST, matrix), self.tree.names)

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
        return self._marginals[starts[node] : starts[node + 1]]

    @cached_property
    def _marginals(self) -> FloatArray:
        """Marginal probabilities of the states of all nodes, end to end."""
        return self.layout.marginals(self.theta)

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
        # Two joins and an edge per node, each with a number per state and pattern. What has nearly
        # as many patterns as there are rows runs by row and keeps nothing; others share most.
        numbers = int(self.layout.state_starts[-1]) // (_SHARED if table.is_sparse else 1)
        for start, stop in chunks(table.n_rows, numbers):
            yield slice(start, stop), self._row_messages(table.rows(start, stop), maximize)

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

    def _row_messages(self, table: Table, maximize: bool) -> RowInference:
        """Return the messages of rows."""
        patterns = compile_patterns(self.tree, self.n_states, table)
        theta = self.layout.reoriented(self.theta, patterns.layout)
        places = patterns.emissions
        logs = places.logs(self.emissions) if places.columns.size else None
        return RowInference(patterns, theta, maximize, logs)

    def _with(self, **fields: object) -> Self:
        """Return the same model with other fields."""
        other = copy.copy(self)
        for made in ("layout", "_marginals"):  # which are made again when needed
            other.__dict__.pop(made, None)
        set_fields(other, **fields)
        return other

    def _draw(self, n_samples: int, rng: np.random.Generator) -> AnyArray:
        """Draw states of all nodes, and numbers of the leaves that emit."""
        states = self._draw_states(n_samples, rng)
        if self.schema.is_coded:
            return states
        out = states.astype(np.float64)
        for column in self._emitting:
            out[:, column] = self._emission(column).sample(
                self._neighbor_states(column, states), rng
            )
        return out

    def _neighbor_weights(self, table: Table, columns: Sequence[int]) -> list[FloatArray]:
        """Return the probabilities of the states of the neighbors of numbers, given each row."""
        above = self.tree.parent[list(columns)]
        posterior = self.posterior(table, np.unique(above[above >= 0]).tolist())
        alone = np.ones((table.n_rows, 1))
        return [posterior[node] if node >= 0 else alone for node in above.tolist()]

    def _neighbor_states(self, column: int, states: IntArray) -> IntArray:
        """Return the states of the neighbor of a leaf that emits; 0 if the leaf stands alone."""
        above = int(self.tree.parent[column])
        return np.zeros(len(states), np.int64) if above < 0 else states[:, above]

    @property
    def _emitting(self) -> list[int]:
        """Columns of reals and counts."""
        return [column for column, each in enumerate(self.emissions) if each is not None]

    def _emission(self, node: int) -> Emission:
        emission: Emission = self.emissions[node]
        return emission

    def _all_observed(self) -> Self:
        """Return the same distribution with every node observed, so that any can be given."""
        tree = Tree(self.tree.parent, self.tree.length, self.tree.n_nodes, self.tree.names)
        hidden = [tuple(range(states)) for states in self.n_states[self.tree.n_observed :]]
        kinds: list[Kind] = ["category"] * len(hidden)
        own = self.schema
        schema = Schema(tree.names, own.family, (*own.labels, *hidden), (*own.kinds, *kinds))
        emissions = (*self.emissions, *[None] * len(hidden))
        return self._with(tree=tree, schema=schema, emissions=emissions)


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


def decoded(values: AnyArray, schema: Schema) -> AnyArray:
    """Return the labels of codes, and numbers as they are."""
    labels = schema.labels
    if schema.is_coded and all(names == tuple(range(len(names))) for names in labels):
        return values
    is_number = _is_integer if schema.is_coded else _is_exact
    numbers = np.int64 if schema.is_coded else np.float64
    dtype = numbers if all(is_number(name) for names in labels for name in names) else object
    out: AnyArray = np.array(values, dtype)
    for column, names in enumerate(labels):
        if names:
            known = np.empty(len(names), dtype)
            known[:] = names
            out[:, column] = known[values[:, column].astype(np.int64)]
    return out


def _is_integer(label: Hashable) -> bool:
    return type(label) is int and -(2**63) <= label < 2**63


def _is_exact(label: Hashable) -> bool:
    return type(label) is float or (type(label) is int and abs(label) <= 2**53)


def _coded(cells: FloatArray) -> IntArray:
    """Return codes, −1 where a cell is missing."""
    return np.where(np.isnan(cells), -1.0, cells).astype(np.int64)


def _moments(weights: FloatArray, emission: Emission) -> Normal[float]:
    """Return mean and variance of a mixture of the emission's states."""
    mean, variance = emission.moments(weights)
    return Normal(float(mean), float(variance))


def _fill(share: FloatArray, emission: Emission | None) -> tuple[FloatArray, FloatArray]:
    """Return values of missing cells and their spread, given probabilities of states."""
    if emission is not None:
        return emission.filled(share)
    return share.argmax(axis=1).astype(np.float64), 1.0 - share.max(axis=1)

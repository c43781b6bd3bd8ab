"""Mixed latent tree models: hidden states, and an emission for each leaf that holds numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latentree.data import Schema, Table
from latentree.distances import Distances
from latentree.errors import ModelError
from latentree.inference import (
    CountEmission,
    Emission,
    Emissions,
    Layout,
    Leaves,
    Normal,
    RowInference,
    chunks,
    compile_patterns,
    given_number,
    node_number,
    numbered_evidence,
    refuse_rows,
    set_fields,
)
from latentree.models._discrete import check_table
from latentree.models._states import (
    StateTreeModel,
    maximal_correlation,
)
from latentree.tree import Tree
from latentree.typing import AnyArray, FloatArray, IntArray, Kind, Node, RandomState, TableLike

_LEAST_CORRELATION = 1e-12
"""Smaller maximal correlations count as this, so that lengths are finite: at most 27.6."""

_FARTHEST = 700.0
"""Distance between components: exp(−700) is 10⁻³⁰⁴, still a normal number."""


@dataclass(frozen=True, eq=False, repr=False)
class MixedTreeModel(StateTreeModel):
    """A model of columns of several kinds whose dependence follows a tree.

    Hidden variables have states. Observed categories and ordered answers have tables, as in
    :class:`DiscreteTreeModel`, and may be anywhere in the tree; reals and counts are leaves with a
    distribution for every state of their neighbor. The likelihood of a row is the probability of
    its cells as they were recorded, so that it can be compared between kinds.

    Parameters
    ----------
    tree : Tree
        The structure, rooted at a node with states. Its lengths are not used.
    parameters : sequence, one a node
        A marginal at roots or a K_parent × K table elsewhere; for a real or count leaf a
        :class:`GaussianEmission` or :class:`CountEmission` with K_parent states (1 if the leaf
        stands alone).
    labels : sequence of sequences, optional
        What the states of each observed variable are called; empty for reals and counts.
    kinds : sequence of {"real", "count", "ordered", "category"}, optional
        Kinds of the observed variables; those with tables are categories when left out.

    References
    ----------
    C. Zhou, X. Wang and J. Guo, "Learning mixed latent tree models", Journal of Machine Learning
    Research 21 (2020).

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3, names=["age", "visits", "insured"])
    >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
    >>> visits = lt.CountEmission([1.0, 6.0])
    >>> model = lt.MixedTreeModel(star, [age, visits, [[0.5, 0.5], [0.1, 0.9]], [0.7, 0.3]])
    >>> model
    MixedTreeModel(Tree(3 observed, 1 hidden, 3 edges), 1 real, 1 count, 1 category)
    >>> model.conditional("h1", {"age": 65, "visits": 5}).round(2)
    array([0., 1.])
    """

    tree: Tree
    n_states: IntArray
    theta: FloatArray
    emissions: tuple[Emission | None, ...]
    schema: Schema

    def __init__(
        self,
        tree: Tree,
        parameters: Sequence[ArrayLike | Emission],
        labels: Sequence[Sequence[Hashable]] | None = None,
        kinds: Sequence[Kind] | None = None,
    ) -> None:
        if len(parameters) != tree.n_nodes:
            raise ModelError(f"{tree.n_nodes} nodes need as many tables, got {len(parameters)}")
        emissions = tuple(each if isinstance(each, Emission) else None for each in parameters)
        tables = [
            np.empty(0) if emission is not None else np.asarray(each, np.float64)
            for each, emission in zip(parameters, emissions, strict=True)
        ]
        n_states = np.array([table.shape[-1] if table.ndim else 0 for table in tables], np.int64)
        layout = Layout(tree, n_states)
        schema = mixed_schema(layout, emissions, labels, kinds)
        for node, table in enumerate(tables):
            if emissions[node] is None:
                check_table(tree, layout, node, table)
        theta = layout.normalized(np.concatenate([table.ravel() for table in tables]))
        self._set(tree, n_states, theta, emissions[: tree.n_observed], schema)

    def _set(
        self,
        tree: Tree,
        n_states: IntArray,
        theta: FloatArray,
        emissions: tuple[Emission | None, ...],
        schema: Schema,
    ) -> None:
        n_states = np.array(n_states)
        set_fields(
            self, tree=tree, n_states=n_states, theta=theta, emissions=emissions, schema=schema
        )

    @classmethod
    def from_theta(
        cls,
        tree: Tree,
        n_states: IntArray,
        theta: FloatArray,
        emissions: Sequence[Emission | None],
        schema: Schema,
    ) -> MixedTreeModel:
        """Make a model from one vector of all tables and the emissions of the columns.

        Parameters
        ----------
        tree : Tree
            Rooted at nodes with states, or at leaves that stand alone.
        n_states : array of int, one a node
            0 for reals and counts.
        theta : array of float
            All tables in one vector, in the order of ``layout``.
        emissions : sequence, one an observed variable
            None for variables with tables.
        schema : Schema
            Of the family "mixed".

        Returns
        -------
        MixedTreeModel
        """
        model = cls.__new__(cls)
        theta = Layout(tree, n_states).normalized(np.array(theta, np.float64))
        model._set(tree, n_states, theta, tuple(emissions), schema)
        return model

    # What the model says --------------------------------------------------------------------

    @property
    def parameters(self) -> list[FloatArray | Emission]:
        """Tables and emissions of the nodes, as the constructor takes them.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.parameters[1]
        array([0.7, 0.3])
        """
        found: list[FloatArray | Emission] = []
        for node in range(self.tree.n_nodes):
            emission = self.emissions[node] if node < self.tree.n_observed else None
            table = self.layout.table(self.theta, node)
            own = table[0] if self.tree.parent[node] < 0 and emission is None else table
            found.append(own if emission is None else emission)
        return found

    @property
    def n_parameters(self) -> int:
        """Free parameters: K_parent·(K − 1) a table, and those of the emissions."""
        layout = self.layout
        tables = layout.parent_states * np.maximum(self.n_states - 1, 0)
        return int(tables.sum()) + sum(each.n_parameters for each in self.emissions if each)

    def rerooted(self, node: Node) -> MixedTreeModel:
        """Return the same distribution with another root.

        Parameters
        ----------
        node : int or str
            The new root of its component, by number or name; a node with states.

        Returns
        -------
        MixedTreeModel

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
        return MixedTreeModel.from_theta(tree, self.n_states, theta, self.emissions, self.schema)

    def marginal(self, node: Node) -> Normal[float] | FloatArray:  # type: ignore[override]
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

    # Inference ------------------------------------------------------------------------------

    def complete(self, X: TableLike) -> FloatArray:
        """Return the most probable states of all nodes given each row (max-product).

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float of shape (n_rows, n_nodes)
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
        return self._decoded(self.imputed(X)[0])

    def imputed(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
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
        values = np.array(table.values, np.float64)
        spread = np.zeros(values.shape)
        missing = np.isnan(values)
        gaps, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
        # A number follows the states of its neighbor; without one it is independent of all.
        nodes = np.where(self.layout.emits[columns], self.tree.parent[columns], columns)
        asked = np.unique(nodes[nodes >= 0])
        for start, stop in chunks(gaps.size, int(self.n_states[asked].sum())):
            rows = gaps[start:stop]
            posterior = self.posterior(table.take(rows), asked.tolist())
            refuse_rows(np.isnan(posterior.probabilities.sum(axis=1)), rows)
            for column, node in zip(columns.tolist(), nodes.tolist(), strict=True):
                mine = missing[rows, column]
                share = np.ones((rows.size, 1)) if node < 0 else posterior[node]
                filled = _filled(share[mine], self.emissions[column])
                values[rows[mine], column], spread[rows[mine], column] = filled
        return values, spread

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
            One row a draw, one column a node, observed variables as labels and numbers.

        Examples
        --------
        >>> import latentree as lt
        >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
        >>> model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]])
        >>> model.sample(100, random_state=0).shape
        (100, 2)
        """
        rng = np.random.default_rng(random_state)
        self._require_draws(n_samples, n_bytes=16.0)  # drawn, and as labels
        out = np.empty((n_samples, self.tree.n_nodes))
        for start, stop in chunks(n_samples, self.tree.n_nodes):
            out[start:stop] = self._draw(stop - start, rng)
        observed = self._decoded(out[:, : self.tree.n_observed])
        return np.hstack([observed, out[:, self.tree.n_observed :]]) if hidden else observed

    def _draw(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """Draw states of all nodes, and numbers of the leaves that emit."""
        states = self._draw_states(n_samples, rng)
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

    def conditional(
        self, node: Node, given: Mapping[Node, Hashable] | None = None
    ) -> Normal[float] | FloatArray:
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
        if not self.layout.emits[number]:
            found: FloatArray = seen.posterior(Table(cells, seen.schema), [number])[number][0]
            return found
        if number in evidence:
            return Normal(float(cells[0, number]), 0.0)
        above = int(self.tree.parent[number])
        if above < 0:
            return _moments(np.ones(1), self._emission(number))
        weights = seen.posterior(Table(cells, seen.schema), [above])[above][0]
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

    # Private --------------------------------------------------------------------------------

    @property
    def _emitting(self) -> list[int]:
        """Columns of reals and counts."""
        return [column for column, each in enumerate(self.emissions) if each is not None]

    def _emission(self, node: int) -> Emission:
        emission = self.emissions[node]
        assert emission is not None
        return emission

    def _row_messages(self, table: Table, maximize: bool) -> RowInference:
        patterns = compile_patterns(self.tree, self.n_states, table)
        theta = self.layout.reoriented(self.theta, patterns.layout)
        logs = self._logs(patterns.emissions)
        return RowInference(patterns, theta, maximize, logs)

    def _logs(self, places: Emissions) -> FloatArray:
        """Log-likelihoods of all distinct values of the leaves."""
        return Leaves.of(self.emissions).logs(places)

    def _all_observed(self) -> MixedTreeModel:
        """Return the same distribution with every node observed, so that any can be given."""
        tree = Tree(self.tree.parent, self.tree.length, self.tree.n_nodes, self.tree.names)
        hidden = [tuple(range(states)) for states in self.n_states[self.tree.n_observed :]]
        kinds: list[Kind] = ["category"] * len(hidden)
        schema = Schema(
            tree.names, "mixed", (*self.schema.labels, *hidden), (*self.schema.kinds, *kinds)
        )
        emissions = (*self.emissions, *[None] * len(hidden))
        return self.from_theta(tree, self.n_states, self.theta, emissions, schema)

    def _decoded(self, values: FloatArray) -> AnyArray:
        """Labels and numbers of the observed columns."""
        return decoded(values, self.schema)

    def __repr__(self) -> str:
        kinds = self.schema.kinds
        counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
        return f"MixedTreeModel({self.tree!r}, {', '.join(counts)})"


def decoded(values: FloatArray, schema: Schema) -> AnyArray:
    """Return the labels of codes, and numbers as they are."""
    if all(_are_numbers(names) for names in schema.labels):
        out: AnyArray = np.array(values)
    else:
        out = np.array(values, object)
    for column, names in enumerate(schema.labels):
        if names:
            known = np.empty(len(names), out.dtype)
            known[:] = names
            out[:, column] = known[values[:, column].astype(np.int64)]
    return out


def _are_numbers(names: Iterable[Hashable]) -> bool:
    return all(type(name) is float or (type(name) is int and abs(name) <= 2**53) for name in names)


def _moments(weights: FloatArray, emission: Emission) -> Normal[float]:
    """Return mean and variance of a mixture of the emission's states."""
    mean, variance = emission.moments(weights)
    return Normal(float(mean), float(variance))


def _filled(share: FloatArray, emission: Emission | None) -> tuple[FloatArray, FloatArray]:
    """Return values of missing cells and their spread, given probabilities of states."""
    if emission is None:
        best = share.argmax(axis=1)
        return best.astype(np.float64), 1.0 - share.max(axis=1)
    mean, variance = emission.moments(share)
    values = np.rint(mean) if isinstance(emission, CountEmission) else mean
    return values, np.sqrt(variance)


def _check_emission(tree: Tree, layout: Layout, node: int, emission: Emission) -> None:
    name = tree.names[node]
    if node >= tree.n_observed or tree.degrees[node] > 1:
        raise ModelError(f"{name!r} has an emission, but only observed leaves can have one")
    if tree.parent[node] < 0 and tree.degrees[node]:
        raise ModelError(f"{name!r} has no states, so the tree cannot be rooted there")
    if tree.parent[node] >= 0 and layout.emits[tree.parent[node]]:
        raise ModelError(f"{name!r} and its neighbor both have no states")
    wanted = int(layout.parent_states[node])
    if emission.n_states != wanted:
        raise ModelError(
            f"the emission of {name!r} has {emission.n_states} states, but its neighbor {wanted}"
        )


def mixed_schema(
    layout: Layout,
    emissions: Sequence[Emission | None],
    labels: Sequence[Sequence[Hashable]] | None,
    kinds: Sequence[Kind] | None,
) -> Schema:
    """Check the emissions of all nodes, and return the schema of the observed ones."""
    tree, n_states = layout.tree, layout.n_states
    for node, emission in enumerate(emissions):
        if emission is not None:
            _check_emission(tree, layout, node, emission)
    names = tree.names[: tree.n_observed]
    known = [range(states) for states in n_states[: tree.n_observed]] if labels is None else labels
    given: list[Kind] = ["category"] * tree.n_observed if kinds is None else list(kinds)
    found = [
        kind if emission is None else emission.kind
        for kind, emission in zip(given, emissions, strict=False)
    ]
    schema = Schema(names, "mixed", tuple(map(tuple, known)), tuple(found))
    wrong = np.flatnonzero(schema.cardinalities != n_states[: tree.n_observed])
    if wrong.size:
        node = wrong[0]
        raise ModelError(
            f"{names[node]!r} has {n_states[node]} states, but {len(schema.labels[node])} labels"
        )
    return schema

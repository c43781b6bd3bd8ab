"""Discrete latent tree models: a marginal per root, a conditional table per edge."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latentree._kernels import tree as tree_kernels
from latentree.data import Schema, as_table
from latentree.distances import WEAKEST, Distances
from latentree.errors import ModelError
from latentree.inference import (
    Expectation,
    ExpectedCounts,
    Layout,
    compile_patterns,
    set_fields,
)
from latentree.models._states import StateTreeModel
from latentree.tree import Tree
from latentree.typing import Family, FloatArray, IntArray, TableLike

MAX_STRENGTH = 1.0 - 1e-12
"""Symmetric tables taken from distances keep a trace of noise: 1 − K·θ stays below this."""


def _to_length(whitened: FloatArray) -> float:
    """Return −log of the first singular value, which is taken as at least 1e-8."""
    return float(-np.log(np.clip(np.linalg.norm(whitened, 2), WEAKEST, 1.0)) + 0.0)


class TableCounts(NamedTuple):
    """Expected counts in the shapes of a model's tables, and the log-likelihood."""

    log_likelihood: float
    tables: list[FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteTreeModel(StateTreeModel):
    """A model of discrete variables whose dependence follows a tree.

    Every node has its own number of states; a latent class model is a star whose center has many.

    Parameters
    ----------
    tree : Tree
        The structure. Its lengths are not used.
    tables : sequence of arrays
        One per node: at a root its K marginal probabilities, elsewhere the K_parent × K table of
        P(node | parent), every row of which sums to 1.
    labels : sequence of sequences, optional
        What the states of each observed variable are called in the data; 0, 1, … when left out.

    References
    ----------
    M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky, "Learning latent tree graphical
    models", Journal of Machine Learning Research 12 (2011), Section 3.1.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
    >>> noisy = [[0.9, 0.1], [0.2, 0.8]]
    >>> model = lt.DiscreteTreeModel(star, [noisy, noisy, noisy, [0.5, 0.5]])
    >>> model.posterior([[1, 1, 0]])["h1"].round(3)
    array([[0.066, 0.934]])
    """

    tree: Tree
    n_states: IntArray
    theta: FloatArray
    schema: Schema
    emissions: tuple[Any, ...]

    def __init__(
        self,
        tree: Tree,
        tables: Sequence[ArrayLike],
        labels: Sequence[Sequence[Hashable]] | None = None,
    ) -> None:
        if len(tables) != tree.n_nodes:
            raise ModelError(f"{tree.n_nodes} nodes need as many tables, got {len(tables)}")
        arrays = [np.asarray(table, np.float64) for table in tables]
        n_states = np.array([array.shape[-1] if array.ndim else 0 for array in arrays], np.int64)
        layout = Layout(tree, n_states)
        for node, array in enumerate(arrays):
            check_table(tree, layout, node, array)
        theta = layout.normalized(np.concatenate([array.ravel() for array in arrays]))
        self._set(tree, n_states, theta, labels)

    def _set(
        self,
        tree: Tree,
        n_states: IntArray,
        theta: FloatArray,
        labels: Sequence[Sequence[Hashable]] | None,
        family: Family = "discrete",
    ) -> None:
        observed = tree.names[: tree.n_observed]
        cardinalities = n_states[: tree.n_observed]
        if labels is None:
            schema = Schema.discrete(observed, cardinalities, family)
        else:
            schema = Schema(observed, family, tuple(tuple(states) for states in labels))
        wrong = np.flatnonzero(schema.cardinalities != cardinalities)
        if wrong.size:
            node = wrong[0]
            raise ModelError(
                f"{observed[node]!r} has {cardinalities[node]} states, "
                f"but {len(schema.labels[node])} labels"
            )
        set_fields(
            self, tree=tree, n_states=np.array(n_states), theta=theta, schema=schema,
            emissions=(None,) * tree.n_observed,
        )  # fmt: skip

    @classmethod
    def from_theta(
        cls,
        tree: Tree,
        n_states: IntArray,
        theta: FloatArray,
        labels: Sequence[Sequence[Hashable]] | None = None,
        family: Family = "discrete",
    ) -> DiscreteTreeModel:
        """Make a model from one vector of all tables, in the order of ``layout``.

        Parameters
        ----------
        tree : Tree
        n_states : array of int, one per node
        theta : array of float
            All tables in one vector; rows are scaled to sum to 1.
        labels : sequence of sequences, optional
            What the states of each observed variable are called; 0, 1, … when left out.
        family : {"discrete", "symmetric"}
            "symmetric" says that the tables are symmetric: one parameter per edge.

        Returns
        -------
        DiscreteTreeModel

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.simulate.random_discrete_model(lt.simulate.latent_class(3), 2, 0)
        >>> lt.DiscreteTreeModel.from_theta(model.tree, model.n_states, model.theta)
        DiscreteTreeModel(Tree(3 observed, 1 hidden, 3 edges), 2 states)
        """
        model = cls.__new__(cls)
        layout = Layout(tree, n_states)
        model._set(tree, n_states, layout.normalized(np.array(theta, np.float64)), labels, family)
        return model

    @classmethod
    def symmetric(
        cls,
        tree: Tree,
        n_states: int,
        crossover: ArrayLike,
        labels: Sequence[Sequence[Hashable]] | None = None,
    ) -> DiscreteTreeModel:
        """Make a symmetric model: uniform marginals, each wrong state with probability θ.

        Parameters
        ----------
        tree : Tree
        n_states : int
            K, the number of states of every node.
        crossover : float or array of float, one per node
            θ in [0, 1/(K−1)] for the edge above every node, ignored at roots.
        labels : sequence of sequences, optional
            What the states of each observed variable are called; 0, 1, … when left out.

        Returns
        -------
        DiscreteTreeModel
            Of the family "symmetric".

        Examples
        --------
        >>> import latentree as lt
        >>> lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 3, 0.1).tables[1]
        array([[0.8, 0.1, 0.1],
               [0.1, 0.8, 0.1],
               [0.1, 0.1, 0.8]])
        """
        if not (n_states >= 2 and n_states == int(n_states)):
            raise ModelError(f"a symmetric model has at least 2 states, not {n_states!r}")
        theta = np.broadcast_to(np.asarray(crossover, np.float64), tree.n_nodes)
        wrong = np.flatnonzero(~((theta >= 0) & (theta * (n_states - 1) <= 1)) & (tree.parent >= 0))
        if wrong.size:
            raise ModelError(
                f"the crossover of {tree.names[wrong[0]]!r} is {theta[wrong[0]]}, "
                f"but must be from 0 to 1/{n_states - 1}"
            )
        layout = Layout(tree, np.full(tree.n_nodes, n_states))
        return cls.from_theta(
            tree, layout.n_states, layout.symmetric(theta), labels, family="symmetric"
        )

    @classmethod
    def from_distances(
        cls,
        tree: Tree,
        n_states: int,
        signs: ArrayLike | None = None,
        labels: Sequence[Sequence[Hashable]] | None = None,
    ) -> DiscreteTreeModel:
        """Make a symmetric model from the lengths of a tree: 1 − K·θ = ± exp(−length/(K−1)).

        A negative sign needs θ > 1/K, which leaves 1 − K·θ ≥ −1/(K−1); stronger negative
        dependence is cut off there.

        Parameters
        ----------
        tree : Tree
            With information distances as lengths.
        n_states : int
            K, the number of states of every node.
        signs : array, one per node, optional
            The sign of the dependence on the edge above every node; positive when left out.
        labels : sequence of sequences, optional
            What the states of each observed variable are called; 0, 1, … when left out.

        Returns
        -------
        DiscreteTreeModel
            Of the family "symmetric".

        Examples
        --------
        >>> import latentree as lt
        >>> pair = lt.Tree([-1, 0], length=[0, 0.5])
        >>> lt.DiscreteTreeModel.from_distances(pair, 2).tables[1].round(3)
        array([[0.803, 0.197],
               [0.197, 0.803]])
        """
        strength = np.minimum(np.exp(-tree.length / (n_states - 1)), MAX_STRENGTH)
        if signs is not None:
            negative = np.asarray(signs) < 0
            strength = np.where(negative, -np.minimum(strength, 1.0 / (n_states - 1)), strength)
        return cls.symmetric(tree, n_states, (1.0 - strength) / n_states, labels)

    # What the model says --------------------------------------------------------------------

    @property
    def tables(self) -> list[FloatArray]:
        """The tables as the constructor takes them: marginals at roots, K_parent × K elsewhere.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.1).tables
        [array([0.5, 0.5]), array([[0.9, 0.1],
               [0.1, 0.9]])]
        """
        return self.parameters

    @property
    def n_parameters(self) -> int:
        """Free parameters: K − 1 at a root, K_parent·(K − 1) elsewhere; symmetric: one an edge."""
        if self.schema.family == "symmetric":
            return self.tree.n_edges
        return super().n_parameters

    def information_distances(self) -> Distances:
        """Return the exact information distances between all nodes, with their signs.

        The distance of two nodes is −log(|det J| / √(det M_a · det M_b)) for their joint table J
        and the diagonal matrices M of their marginals; its sign is that of det J. Where numbers of
        states differ it is −log of their maximal correlation, the second singular value of
        M_a^(−½)·J·M_b^(−½), which takes O(N²·K³) for N nodes.

        Returns
        -------
        Distances
            Between observed and hidden nodes, by name.

        References
        ----------
        J. A. Lake, "Reconstructing evolutionary trees from DNA and protein sequences: paralinear
        distances", Proceedings of the National Academy of Sciences 91 (1994).

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.simulate.random_discrete_model(lt.simulate.latent_class(3), 2, 0)
        >>> model.information_distances()
        Distances(4 variables, exact, dense)
        """
        if self._is_uneven:
            return Distances.from_matrix(self._maximal_distances(), self.tree.names)
        log_strength, sign = self._edge_strengths()
        nodes = np.arange(self.tree.n_nodes)
        matrix = self.tree._path_matrix(nodes, nodes, -log_strength)
        path_sign = tree_kernels.path_signs(self.tree.order, self.tree.parent, sign)
        signs = path_sign[:, None] * path_sign
        return Distances.from_matrix(np.maximum(matrix, 0.0), self.tree.names, signs=signs)

    def distance_tree(self) -> Tree:
        """Return the tree with the information distance of every edge as its length.

        Where numbers of states differ the length of an edge is −log of the maximal correlation of
        its ends, at most 18.4.

        Returns
        -------
        Tree

        Raises
        ------
        ModelError
            When all nodes have the same number of states and an edge has determinant 0, an
            infinite length.

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.25)
        >>> model.distance_tree().length.round(3)  # −log(1 − 2·θ)
        array([0.   , 0.693])
        """
        if self._is_uneven:
            return self.tree.with_lengths(self._maximal_lengths())
        log_strength, _ = self._edge_strengths()
        wrong = np.flatnonzero(np.isinf(log_strength))
        if wrong.size:
            raise ModelError(
                f"the edge above {self.tree.names[wrong[0]]!r} has determinant 0, "
                "an infinite length"
            )
        return self.tree.with_lengths(np.maximum(-log_strength, 0.0))

    def _edge_strengths(self) -> tuple[FloatArray, FloatArray]:
        """Return log and sign of det J / √(det M_parent · det M) of the edge above every node."""
        layout = self.layout
        marginals = layout.marginals(self.theta).reshape(self.tree.n_nodes, -1)
        with np.errstate(divide="ignore"):
            log_diagonal = np.log(marginals).sum(axis=1)
        log_strength, sign = np.zeros(self.tree.n_nodes), np.ones(self.tree.n_nodes)
        for node in map(int, np.flatnonzero(self.tree.parent >= 0)):
            sign[node], log_det = np.linalg.slogdet(layout.table(self.theta, node))
            # det J = det M_parent · det T
            above = log_diagonal[self.tree.parent[node]]
            log_strength[node] = log_det + 0.5 * (above - log_diagonal[node])
        return log_strength, sign

    @property
    def _is_uneven(self) -> bool:
        """Whether numbers of states differ."""
        return bool(self.n_states.min() < self.n_states.max())

    def _whitened(self) -> list[FloatArray]:
        """Return J/√(p·q) − √(p·q) of every node and its parent; an empty array at roots.

        Along a path these tables multiply, and their first singular values are the maximal
        correlations.
        """
        layout, tree = self.layout, self.tree
        roots = np.sqrt(layout.marginals(self.theta))
        own = np.split(roots, layout.state_starts[1:-1])
        tables = []
        for node, above in enumerate(tree.parent.tolist()):
            if above < 0:
                tables.append(np.empty((0, 0)))
                continue
            p, q = own[above], own[node]
            inverse = np.divide(1.0, q, out=np.zeros_like(q), where=q > 0)
            tables.append(p[:, None] * layout.table(self.theta, node) * inverse - np.outer(p, q))
        return tables

    def _maximal_lengths(self) -> FloatArray:
        """Return −log of the maximal correlation of every node and its parent; 0 at roots."""
        return np.array(
            [0.0 if table.size == 0 else _to_length(table) for table in self._whitened()]
        )

    def _maximal_distances(self) -> FloatArray:
        """Return −log of the maximal correlations of all nodes; infinite between components."""
        parent, tables = self.tree.parent.tolist(), self._whitened()
        out = np.full((len(parent), len(parent)), np.inf)
        np.fill_diagonal(out, 0.0)
        # to[b][a] is the whitened table of nodes a and b. A child's follow from its parent's.
        to: list[dict[int, FloatArray]] = [{} for _ in parent]
        for node in self.tree.order.tolist():
            above = parent[node]
            if above < 0:
                continue
            to[node] = {other: table @ tables[node] for other, table in to[above].items()}
            to[node][above] = tables[node]
            for other, table in to[node].items():
                to[other][node] = table.T
                out[node, other] = out[other, node] = _to_length(table)
        return out

    # Inference ------------------------------------------------------------------------------

    def expected_counts(self, X: TableLike, weights: ArrayLike | None = None) -> TableCounts:
        """Return the expected counts of an E-step and the log-likelihood.

        Parameters
        ----------
        X : table of any kind
        weights : array of float, optional
            How much each row counts; 1 when left out.

        Returns
        -------
        TableCounts
            ``log_likelihood``, and ``tables`` with the expected joint counts of every edge and the
            marginal counts of the roots, in the shapes of the model's own tables.

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.1)
        >>> model.expected_counts([[0, 0], [0, 1], [1, 1]]).tables[1]
        array([[1., 1.],
               [0., 1.]])
        """
        table = as_table(X, schema=self.schema, weights=weights)
        patterns = compile_patterns(self.tree, self.n_states, table)
        theta = self.layout.reoriented(self.theta, patterns.layout)
        result: ExpectedCounts = Expectation(patterns).run(theta)
        counts = patterns.layout.turned_counts(result.counts, self.layout)
        tables = [self.layout.table(counts, node) for node in range(self.tree.n_nodes)]
        return TableCounts(result.log_likelihood, tables)

    # Private ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        low, high = self.n_states.min(), self.n_states.max()
        states = f"{low}" if low == high else f"{low} to {high}"
        return f"DiscreteTreeModel({self.tree!r}, {states} states)"


def check_table(tree: Tree, layout: Layout, node: int, table: FloatArray) -> None:
    """Raise an error if the table of a node has the wrong shape or is no distribution."""
    name, n_states = tree.names[node], int(layout.n_states[node])
    shape = (n_states,) if tree.parent[node] < 0 else (int(layout.parent_states[node]), n_states)
    if n_states < 1 or table.shape != shape:
        what = "marginal" if tree.parent[node] < 0 else "conditional table"
        raise ModelError(f"the {what} of {name!r} has shape {table.shape}, but needs {shape}")
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ModelError(f"the table of {name!r} holds a number that is not a probability")
    sums = table.sum(axis=-1)
    if np.abs(sums - 1.0).max() > 1e-6:
        worst = np.ravel(sums)[np.abs(np.ravel(sums) - 1.0).argmax()]
        raise ModelError(f"a row of the table of {name!r} sums to {worst}, but must sum to 1")

"""Gaussian latent tree models: a correlation per edge, a mean and a scale per variable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latentree._kernels import threads
from latentree._kernels import tree as tree_kernels
from latentree._kernels.inference import gaussian_rows
from latentree.data import Schema, as_table
from latentree.distances import SCALES, Distances
from latentree.errors import ModelError
from latentree.inference import (
    Normal,
    NormalPair,
    child_of_edge,
    chunks,
    given_number,
    node_number,
    node_numbers,
    numbered_evidence,
    set_fields,
)
from latentree.models._base import BaseTreeModel
from latentree.models._factors import FactorReports
from latentree.models._fit_indices import FitIndices, fit_indices
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray, IntArray, Node, RandomState, TableLike

MAX_CORRELATION = 1.0 - 1e-12
"""Correlations taken from distances are kept below this: a perfect one leaves no density."""

_NOTHING = np.empty((0, 0))
"""In place of results that are not asked for."""

_CELLS_A_PART = 20_000
"""Fewer cells take less time than a thread needs to begin."""


@dataclass(frozen=True, eq=False, repr=False)
class GaussianTreeModel(FactorReports, BaseTreeModel):
    """A jointly Gaussian model whose dependence follows a tree.

    Hidden nodes have mean 0 and variance 1. Node v given its parent p is, in standard units,
    N(ρ_v·x_p, 1 − ρ_v²). All inference costs O(rows × nodes); it never makes a matrix of all pairs.

    Parameters
    ----------
    tree : Tree
        The structure. Its lengths are not used.
    correlations : array of float
        The correlation of every node with its parent, in (−1, 1); ignored at roots.
    means, scales : array of float, optional
        Of the observed variables: 0 and 1 when left out. Scales are standard deviations.

    References
    ----------
    M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky, "Learning latent tree graphical
    models", Journal of Machine Learning Research 12 (2011), Section 3.1.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
    >>> model = lt.GaussianTreeModel(star, [0.8, 0.5, -0.5, 0])
    >>> model.covariance().round(2)
    array([[ 1.  ,  0.4 , -0.4 ],
           [ 0.4 ,  1.  , -0.25],
           [-0.4 , -0.25,  1.  ]])
    """

    tree: Tree
    correlations: FloatArray
    means: FloatArray
    scales: FloatArray

    def __init__(
        self,
        tree: Tree,
        correlations: ArrayLike,
        means: ArrayLike | None = None,
        scales: ArrayLike | None = None,
    ) -> None:
        rho = _numbers("correlations", correlations, tree.n_nodes, 0.0)
        rho[tree.roots] = 0.0
        _refuse(np.abs(rho) < 1.0, rho, tree, "correlation", "strictly between −1 and 1")
        center = _numbers("means", means, tree.n_observed, 0.0)
        spread = _numbers("scales", scales, tree.n_observed, 1.0)
        _refuse(np.isfinite(center), center, tree, "mean", "finite")
        _refuse((spread > 0) & np.isfinite(spread), spread, tree, "scale", "positive and finite")
        low, high = SCALES
        within = (spread >= low) & (spread <= high)
        _refuse(within, spread, tree, "scale", f"from {low:g} to {high:g}: rescale the column")
        set_fields(self, tree=tree, correlations=rho, means=center, scales=spread)

    @classmethod
    def from_distances(
        cls,
        tree: Tree,
        signs: ArrayLike | None = None,
        means: ArrayLike | None = None,
        scales: ArrayLike | None = None,
    ) -> GaussianTreeModel:
        """Make a model from the lengths of a tree: |ρ| = exp(−length) on every edge.

        Parameters
        ----------
        tree : Tree
            With information distances as lengths.
        signs : array, one per node, optional
            The sign of the correlation of every node with its parent; all positive when left out.
        means, scales : array of float, optional
            Of the observed variables: 0 and 1 when left out.

        Returns
        -------
        GaussianTreeModel

        Examples
        --------
        >>> import latentree as lt
        >>> pair = lt.Tree([-1, 0], length=[0, 0.5])
        >>> lt.GaussianTreeModel.from_distances(pair, signs=[1, -1]).correlations.round(3)
        array([ 0.   , -0.607])
        """
        rho = np.minimum(np.exp(-tree.length), MAX_CORRELATION)
        if signs is not None:
            rho = rho * np.where(np.asarray(signs) < 0, -1.0, 1.0)
        return cls(tree, rho, means, scales)

    # What the model says --------------------------------------------------------------------

    @cached_property
    def schema(self) -> Schema:
        """The columns that data for this model has: their names, all real."""
        return Schema.gaussian(self.tree.names[: self.tree.n_observed])

    @property
    def n_parameters(self) -> int:
        """Free parameters: one correlation per edge, and mean and scale of every column."""
        return self.n_correlations + 2 * self.tree.n_observed

    @property
    def n_correlations(self) -> int:
        """The paper's κ: one correlation per edge, means and scales left out."""
        return self.tree.n_edges

    def correlation(
        self, rows: ArrayLike | None = None, columns: ArrayLike | None = None
    ) -> FloatArray:
        """Return the correlations between two lists of nodes.

        Parameters
        ----------
        rows, columns : array of int, optional
            Nodes, observed or hidden; all observed ones when left out.

        Returns
        -------
        array of float of shape (len(rows), len(columns))

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> lt.GaussianTreeModel(star, [0.8, 0.5, -0.5, 0]).correlation([0, 1, 2], [3]).round(2)
        array([[ 0.8],
               [ 0.5],
               [-0.5]])
        """
        tree = self.tree
        observed = np.arange(tree.n_observed)
        first = observed if rows is None else np.asarray(rows, np.int64)
        second = observed if columns is None else np.asarray(columns, np.int64)
        strength = np.exp(-tree._path_matrix(first, second, self._edge_lengths()))
        sign = self._node_signs()
        return np.asarray(strength * sign[first][:, None] * sign[second])

    def covariance(self) -> FloatArray:
        """Return the covariance matrix of the observed variables.

        Returns
        -------
        array of float of shape (n_observed, n_observed)

        Examples
        --------
        >>> import latentree as lt
        >>> lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5], scales=[1, 2]).covariance()
        array([[1., 1.],
               [1., 4.]])
        """
        return self.scales[:, None] * self.correlation() * self.scales

    def fit_indices(self, X: TableLike, weights: ArrayLike | None = None) -> FitIndices:
        """Return how well the model reproduces the covariances of complete rows.

        The indices of structural equation models, in the definitions of lavaan: χ², its degrees of
        freedom and p-value, CFI, TLI, RMSEA with its 90 % interval, and SRMR.

        Parameters
        ----------
        X : table of any kind
            Usually the rows that the model was fitted to; more than there are columns.
        weights : array of float, optional
            How much each row counts; 1 when left out.

        Returns
        -------
        FitIndices

        References
        ----------
        Rosseel, *lavaan: An R Package for Structural Equation Modeling*, Journal of Statistical
        Software 48, 2012.

        Examples
        --------
        >>> import latentree as lt
        >>> tests = lt.datasets.load_holzinger()
        >>> model = lt.LatentTree("lcm").fit(tests.data).model_
        >>> model.fit_indices(tests.data).degrees_of_freedom
        27
        """
        table = as_table(X, schema=self.schema, weights=weights)
        return fit_indices(table.counted(), self.covariance(), self.n_parameters)

    @property
    def latent(self) -> GaussianTreeModel:
        """The model itself: its columns are the Gaussian variables."""
        return self

    def reliability(self) -> FloatArray:
        """Return the share of each hidden variable's variance that scores of complete rows have.

        Returns
        -------
        array of float, one per hidden variable

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> lt.GaussianTreeModel(star, [0.9, 0.9, 0.9, 0]).reliability().round(2)
        array([0.93])
        """
        any_row = np.zeros((1, self.tree.n_observed))  # the variance is that of every row
        return np.asarray(1.0 - self.posterior(any_row).variance[0])

    def log_det(self) -> float:
        """Return the log-determinant of the covariance of the observed variables, in O(nodes).

        Returns
        -------
        float

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.6])
        >>> round(model.log_det(), 4)  # log(1 − ρ²)
        -0.4463
        """
        at_mean = self._log_likelihood(self.means[None, :])[0]
        return float(-2.0 * at_mean - self.tree.n_observed * np.log(2.0 * np.pi))

    def oriented(self) -> GaussianTreeModel:
        """Return the same distribution with the signs of the hidden nodes fixed.

        The sign of a hidden variable is free. Here each one correlates positively with the
        observed variable that it correlates with most.

        Returns
        -------
        GaussianTreeModel

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> lt.GaussianTreeModel(star, [-0.8, -0.5, 0.5, 0]).oriented().correlations
        array([ 0.8,  0.5, -0.5,  0. ])
        """
        tree = self.tree
        nearest, _ = tree_kernels.nearest_observed(
            tree.order, tree.parent, self._edge_lengths(), tree.n_observed
        )
        sign = self._node_signs()
        turn = np.where(np.arange(tree.n_nodes) < tree.n_observed, 1.0, sign * sign[nearest])
        correlations = self.correlations * turn * turn[tree.parent]
        return GaussianTreeModel(tree, correlations, self.means, self.scales)

    def _edge_lengths(self) -> FloatArray:
        """−log|ρ| of the edge above every node, 0 at roots; infinite where ρ = 0."""
        with np.errstate(divide="ignore"):
            return np.where(self.tree.parent < 0, 0.0, -np.log(np.abs(self.correlations)))

    def _node_signs(self) -> FloatArray:
        """Sign of the correlation of every node with the root of its component."""
        edge_sign = np.where(self.correlations < 0, -1.0, 1.0)
        signs: FloatArray = tree_kernels.path_signs(self.tree.order, self.tree.parent, edge_sign)
        return signs

    def information_distances(self) -> Distances:
        """Return the exact information distances −log|ρ| between all nodes, with their signs.

        Returns
        -------
        Distances
            Between observed and hidden nodes, by name.

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> lt.GaussianTreeModel(star, [0.5, 0.5, 0.5, 0]).information_distances()
        Distances(4 variables, exact, dense)
        """
        nodes = np.arange(self.tree.n_nodes)
        rho = self.correlation(nodes, nodes)
        with np.errstate(divide="ignore"):
            matrix = -np.log(np.abs(rho))
        np.fill_diagonal(matrix, 0.0)
        signs = np.where(rho < 0, -1, 1)
        return Distances.from_matrix(np.maximum(matrix, 0.0), self.tree.names, signs=signs)

    def distance_tree(self) -> Tree:
        """Return the tree with the information distance −log|ρ| of every edge as its length.

        Returns
        -------
        Tree

        Raises
        ------
        ModelError
            When an edge has correlation 0, an infinite length.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5]).distance_tree().length.round(3)
        array([0.   , 0.693])
        """
        zero = np.flatnonzero((self.correlations == 0) & (self.tree.parent >= 0))
        if zero.size:
            raise ModelError(
                f"the edge above {self.tree.names[zero[0]]!r} has correlation 0, an infinite length"
            )
        rho = np.where(self.tree.parent < 0, 1.0, np.abs(self.correlations))
        return self.tree.with_lengths(np.abs(-np.log(rho)))

    # Inference ------------------------------------------------------------------------------

    def log_likelihood(self, X: TableLike) -> FloatArray:
        """Return the log-density of every row; missing cells are integrated out.

        Parameters
        ----------
        X : table of any kind
            Array, frame or :class:`latentree.Table` with the model's variables.

        Returns
        -------
        array of float, one per row

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
        >>> model.log_likelihood([[0.0, 0.0], [1.0, None]]).round(3)
        array([-1.694, -1.419])
        """
        return self._log_likelihood(self._table(X).values)

    def posterior(self, X: TableLike, nodes: Iterable[Node] | None = None) -> Normal[FloatArray]:
        """Return the means and variances of nodes given each row.

        Parameters
        ----------
        X : table of any kind
        nodes : iterable of int or str, optional
            The nodes asked for, by number or name; all hidden ones when left out.

        Returns
        -------
        Normal
            ``mean`` and ``variance``, each with a row per row of ``X`` and a column per node.
            Observed nodes are in the units of the data; cells that are present have variance 0.

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.GaussianTreeModel(star, [0.8, 0.5, -0.5, 0])
        >>> model.posterior([[1.0, 0.5, None]], ["h1"]).mean.round(3)
        array([[0.821]])
        """
        numbers = node_numbers(self.tree, nodes)
        values = self._table(X).values
        mean = np.empty((len(values), numbers.size))
        variance = np.empty_like(mean)
        for start, stop in chunks(len(values), 3 * self.tree.n_nodes):
            rows = self._infer(values[start:stop])
            mean[start:stop] = rows.states[:, numbers]
            variance[start:stop] = rows.variances[:, numbers]
        center, scale = self._units()
        return Normal(mean * scale[numbers] + center[numbers], variance * scale[numbers] ** 2)

    def edge_posterior(self, X: TableLike, a: Node, b: Node) -> NormalPair:
        """Return the joint distribution of the two ends of an edge given each row.

        Parameters
        ----------
        X : table of any kind
        a, b : int or str
            Two neighbors, by number or name, in any order.

        Returns
        -------
        NormalPair
            ``parent``, ``child`` and ``covariance``, each with an entry a row.

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.GaussianTreeModel(star, [0.8, 0.5, -0.5, 0])
        >>> model.edge_posterior([[1.0, None, None]], "h1", "x1").covariance.round(2)
        array([0.18])
        """
        child = child_of_edge(self.tree, a, b)
        ends = [int(self.tree.parent[child]), child]
        values = self._table(X).values
        mean, variance = np.empty((len(values), 2)), np.empty((len(values), 2))
        covariance = np.empty(len(values))
        for start, stop in chunks(len(values), 3 * self.tree.n_nodes):
            rows = self._infer(values[start:stop])
            mean[start:stop] = rows.states[:, ends]
            variance[start:stop] = rows.variances[:, ends]
            covariance[start:stop] = rows.covariances[:, child]
        center, scale = (unit[ends] for unit in self._units())
        mean, variance = mean * scale + center, variance * scale**2
        return NormalPair(
            Normal(mean[:, 0], variance[:, 0]),
            Normal(mean[:, 1], variance[:, 1]),
            covariance * scale[0] * scale[1],
        )

    def complete(self, X: TableLike) -> FloatArray:
        """Return the most probable values of all nodes given each row: for a Gaussian the means.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float of shape (n_rows, n_nodes)

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> lt.GaussianTreeModel(star, [0.8, 0.5, -0.5, 0]).complete([[1.0, None, None]]).round(2)
        array([[ 1. ,  0.4, -0.4,  0.8]])
        """
        return self.posterior(X, range(self.tree.n_nodes)).mean

    def impute(self, X: TableLike) -> FloatArray:
        """Return the observed columns with missing cells replaced by their posterior means.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float of shape (n_rows, n_observed)

        Examples
        --------
        >>> import latentree as lt
        >>> lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5]).impute([[1.0, None]])
        array([[1. , 0.5]])
        """
        values = self._table(X).values
        filled = self.posterior(X, range(self.tree.n_observed)).mean
        return np.asarray(np.where(np.isnan(values), filled, values))

    def sample(
        self, n_samples: int, random_state: RandomState = None, hidden: bool = False
    ) -> FloatArray:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        random_state : int or numpy.random.Generator, optional
            Seed or source of randomness.
        hidden : bool
            Whether columns for the hidden nodes follow those of the observed variables.

        Returns
        -------
        array of float
            One row per draw, one column per node.

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(3), 0)
        >>> model.sample(100, random_state=0).shape, model.sample(100, hidden=True).shape
        ((100, 3), (100, 4))
        """
        width = self.tree.n_nodes if hidden else self.tree.n_observed
        rng = np.random.default_rng(random_state)
        out = np.empty((n_samples, width))
        for start, stop in chunks(n_samples, self.tree.n_nodes):
            nothing = np.full((stop - start, self.tree.n_observed), np.nan)
            out[start:stop] = self._draw(nothing, rng)[:, :width]
        return out

    def sample_hidden(self, X: TableLike, random_state: RandomState = None) -> FloatArray:
        """Draw the values of the hidden nodes given each row, one draw per row.

        Parameters
        ----------
        X : table of any kind
        random_state : int or numpy.random.Generator, optional
            Seed or source of randomness.

        Returns
        -------
        array of float of shape (n_rows, n_hidden)

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0)
        >>> model.sample_hidden(model.sample(10, 0), random_state=0).shape
        (10, 2)
        """
        rng = np.random.default_rng(random_state)
        values = self._table(X).values
        out = np.empty((len(values), self.tree.n_hidden))
        for start, stop in chunks(len(values), self.tree.n_nodes):
            out[start:stop] = self._draw(values[start:stop], rng)[:, self.tree.n_observed :]
        return out

    def marginal(self, node: Node) -> Normal[float]:
        """Return the distribution of one node.

        Parameters
        ----------
        node : int or str
            By number or name.

        Returns
        -------
        Normal
            With a float for the mean and one for the variance.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5], scales=[1, 2]).marginal("x1")
        Normal(mean=0.0, variance=4.0)
        """
        return self.conditional(node)

    def conditional(
        self, node: Node, given: Mapping[Node, Hashable] | None = None
    ) -> Normal[float]:
        """Return the distribution of one node given values of others.

        Parameters
        ----------
        node : int or str
            By number or name.
        given : mapping of nodes to values, optional
            Numbers of any other nodes, observed or hidden.

        Returns
        -------
        Normal
            With a float for the mean and one for the variance.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5]).conditional("x1", {"x0": 2.0})
        Normal(mean=1.0, variance=0.75)
        """
        number = node_number(self.tree, node)
        row = np.full((1, self.tree.n_nodes), np.nan)
        for other, value in numbered_evidence(self.tree, given).items():
            row[0, other] = given_number(self.tree, other, value)
        found = self._infer(row)
        center, scale = self._units()
        return Normal(
            float(found.states[0, number] * scale[number] + center[number]),
            float(found.variances[0, number] * scale[number] ** 2),
        )

    # Private ------------------------------------------------------------------------------

    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Centers and scales of all nodes."""
        hidden = self.tree.n_hidden
        return np.append(self.means, np.zeros(hidden)), np.append(self.scales, np.ones(hidden))

    def _log_likelihood(self, values: FloatArray) -> FloatArray:
        return self._run(values, _NOTHING, _NOTHING, _NOTHING)

    def _infer(self, values: FloatArray) -> _Inferred:
        """Posterior means, variances and covariances of all nodes in standard units."""
        shape = (len(values), self.tree.n_nodes)
        inferred = _Inferred(np.zeros(shape), np.empty(shape), np.empty(shape))
        self._run(values, *inferred)
        return inferred

    def _draw(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draws of all nodes given each row."""
        states = rng.standard_normal((len(values), self.tree.n_nodes))
        self._run(values, states, _NOTHING, _NOTHING)
        center, scale = self._units()
        return states * scale + center

    def _run(
        self,
        values: FloatArray,
        states: FloatArray,
        variances: FloatArray,
        covariances: FloatArray,
    ) -> FloatArray:
        tree = self.tree
        center, scale = self._units()
        log_likelihood, unweighted = np.empty(len(values)), np.empty(0)
        parent, place = in_order(tree)
        rho = self.correlations[tree.order]

        def part(bounds: tuple[int, int]) -> None:
            gaussian_rows.run_rows(
                values, unweighted, *bounds, place, parent, rho, center, 1.0 / scale,
                log_likelihood, states, variances, covariances, _NOTHING,
            )  # fmt: skip

        n_parts = min(64, 1 + values.size // _CELLS_A_PART)  # 64: more threads than that are rare
        threads.run(part, threads.split(len(values), n_parts))
        return np.asarray(log_likelihood - _log_units(values, scale))

    def __repr__(self) -> str:
        return f"GaussianTreeModel({self.tree!r})"


class _Inferred(NamedTuple):
    """Values of all nodes given each row: means, variances, covariances with the parents."""

    states: FloatArray
    variances: FloatArray
    covariances: FloatArray


def in_order(tree: Tree) -> tuple[IntArray, IntArray]:
    """Parents when nodes are numbered in traversal order, and the new number of every node."""
    place = np.empty(tree.n_nodes, np.int64)
    place[tree.order] = np.arange(tree.n_nodes)
    parent = tree.parent[tree.order]
    return np.where(parent < 0, -1, place[parent]), place


def _log_units(values: FloatArray, scale: FloatArray) -> float | FloatArray:
    """Sum of the log-scales of the cells present in each row."""
    log_scale = np.log(scale[: values.shape[1]])
    if not log_scale.any():
        return 0.0
    per_row = np.full(len(values), log_scale.sum())
    for start, stop in chunks(len(values), values.shape[1]):
        missing = np.isnan(values[start:stop])
        if missing.any():
            per_row[start:stop] -= missing @ log_scale
    return per_row


def _numbers(what: str, values: ArrayLike | None, count: int, default: float) -> FloatArray:
    if values is None:
        return np.full(count, default)
    array = np.array(values, np.float64)
    if array.shape != (count,):
        raise ModelError(f"{what} must be {count} numbers, got shape {array.shape}")
    return array


def _refuse(good: BoolArray, values: FloatArray, tree: Tree, what: str, rule: str) -> None:
    wrong = np.flatnonzero(~good)
    if wrong.size:
        node = wrong[0]
        raise ModelError(
            f"the {what} of {tree.names[node]!r} is {values[node]}, but must be {rule}"
        )

"""Gaussian latent tree models: a correlation per edge, a mean and a scale per variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latentree._kernels import threads
from latentree._kernels import tree as tree_kernels
from latentree._kernels.inference import gaussian as kernels
from latentree.data import Schema, Table, as_table
from latentree.distances import Distances
from latentree.errors import ModelError
from latentree.inference import (
    child_of_edge,
    chunks,
    node_number,
    node_numbers,
    numbered_evidence,
    weighted_total,
)
from latentree.models._saving import Savable
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray, Node

MAX_CORRELATION = 1.0 - 1e-12
"""Correlations taken from distances are kept below this: a perfect one leaves no density."""

_NOTHING = np.empty((0, 0))


class Normal(NamedTuple):
    """A normal distribution, or an array of them."""

    mean: Any
    variance: Any


class NormalPair(NamedTuple):
    """Joint normal distributions of the two ends of an edge, one a row."""

    parent: Normal
    child: Normal
    covariance: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class GaussianTreeModel(Savable):
    """A jointly Gaussian model whose dependence follows a tree.

    Hidden nodes have mean 0 and variance 1. Node v given its parent p is, in standard units,
    N(ρ_v·x_p, 1 − ρ_v²). All inference costs O(rows × nodes); no matrix of all pairs is ever made
    for it.

    Parameters
    ----------
    tree : Tree
    correlations : array of float
        The correlation of every node with its parent, in (−1, 1); ignored at roots.
    means, scales : array of float, optional
        Of the observed variables: 0 and 1 when left out. Scales are standard deviations.

    Examples
    --------
    >>> from latentree import Tree
    >>> star = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
    >>> model = GaussianTreeModel(star, [0.8, 0.5, -0.5, 0])
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
        for name, value in (
            ("tree", tree),
            ("correlations", rho),
            ("means", center),
            ("scales", spread),
        ):
            object.__setattr__(self, name, value)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def from_distances(
        cls,
        tree: Tree,
        signs: ArrayLike | None = None,
        means: ArrayLike | None = None,
        scales: ArrayLike | None = None,
    ) -> GaussianTreeModel:
        """Take |ρ| = exp(−length) from the lengths of the tree, with a sign per node's edge."""
        rho = np.minimum(np.exp(-tree.length), MAX_CORRELATION)
        if signs is not None:
            rho = rho * np.where(np.asarray(signs) < 0, -1.0, 1.0)
        return cls(tree, rho, means, scales)

    # What the model says --------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The columns that data for this model has."""
        return Schema.gaussian(self.tree.names[: self.tree.n_observed])

    @property
    def n_parameters(self) -> int:
        """Number of correlations; means and scales are not counted, as in the paper."""
        return self.tree.n_edges

    def correlation(
        self, rows: ArrayLike | None = None, columns: ArrayLike | None = None
    ) -> FloatArray:
        """Correlations between two lists of nodes; by default the observed ones."""
        tree = self.tree
        observed = np.arange(tree.n_observed)
        first = observed if rows is None else np.asarray(rows, np.int64)
        second = observed if columns is None else np.asarray(columns, np.int64)
        strength = np.exp(-tree._path_matrix(first, second, self._edge_lengths()))
        sign = self._node_signs()
        return np.asarray(strength * sign[first][:, None] * sign[second])

    def covariance(self) -> FloatArray:
        """Covariances of the observed variables."""
        return self.scales[:, None] * self.correlation() * self.scales

    def log_det(self) -> float:
        """Log-determinant of the covariance of the observed variables, in O(nodes)."""
        at_mean = self._log_likelihood(self.means[None, :])[0]
        return float(-2.0 * at_mean - self.tree.n_observed * np.log(2.0 * np.pi))

    def oriented(self) -> GaussianTreeModel:
        """Return the same distribution with hidden nodes that point the way of the data.

        The sign of a hidden variable is free. Here each one correlates positively with the
        observed variable that it correlates with most.
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
        """Exact information distances −log|ρ| between all nodes, with their signs."""
        nodes = np.arange(self.tree.n_nodes)
        rho = self.correlation(nodes, nodes)
        with np.errstate(divide="ignore"):
            matrix = -np.log(np.abs(rho))
        np.fill_diagonal(matrix, 0.0)
        signs = np.where(rho < 0, -1, 1)
        return Distances.from_matrix(np.maximum(matrix, 0.0), self.tree.names, signs=signs)

    def distance_tree(self) -> Tree:
        """Return the tree with the information distances of its edges as lengths."""
        zero = np.flatnonzero((self.correlations == 0) & (self.tree.parent >= 0))
        if zero.size:
            raise ModelError(
                f"the edge above {self.tree.names[zero[0]]!r} has correlation 0, an infinite length"
            )
        rho = np.where(self.tree.parent < 0, 1.0, np.abs(self.correlations))
        return self.tree.with_lengths(np.abs(-np.log(rho)))

    # Inference ------------------------------------------------------------------------------

    def log_likelihood(self, X: Any) -> FloatArray:
        """Log-density of every row; missing cells are summed out."""
        return self._log_likelihood(self._table(X).values)

    def total_log_likelihood(self, X: Any, weights: ArrayLike | None = None) -> float:
        """Weighted sum of the rows' log-densities."""
        table = as_table(X, schema=self.schema, weights=weights)
        return weighted_total(self._log_likelihood(table.values), table.weights)

    def posterior(self, X: Any, nodes: Iterable[Node] | None = None) -> Normal:
        """Means and variances of nodes given each row, by default of the hidden nodes.

        Returns two arrays with a row per row of ``X`` and a column per node. Observed nodes are in
        the units of the data; present cells have variance 0.
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

    def edge_posterior(self, X: Any, a: Node, b: Node) -> NormalPair:
        """Joint distribution of the two ends of an edge given each row."""
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

    def complete(self, X: Any) -> FloatArray:
        """Most probable values of all nodes given each row; for a Gaussian, the means."""
        means: FloatArray = self.posterior(X, range(self.tree.n_nodes)).mean
        return means

    def impute(self, X: Any) -> FloatArray:
        """Return the observed columns with missing cells replaced by their posterior means."""
        values = self._table(X).values
        filled = self.posterior(X, range(self.tree.n_observed)).mean
        return np.asarray(np.where(np.isnan(values), filled, values))

    def sample(self, n_samples: int, random_state: Any = None, hidden: bool = False) -> FloatArray:
        """Draw rows of the observed variables, or of all nodes with ``hidden=True``."""
        width = self.tree.n_nodes if hidden else self.tree.n_observed
        rng = np.random.default_rng(random_state)
        out = np.empty((n_samples, width))
        for start, stop in chunks(n_samples, self.tree.n_nodes):
            nothing = np.full((stop - start, self.tree.n_observed), np.nan)
            out[start:stop] = self._draw(nothing, rng)[:, :width]
        return out

    def sample_hidden(self, X: Any, random_state: Any = None) -> FloatArray:
        """Draw the values of the hidden nodes given each row, one draw a row."""
        rng = np.random.default_rng(random_state)
        values = self._table(X).values
        out = np.empty((len(values), self.tree.n_hidden))
        for start, stop in chunks(len(values), self.tree.n_nodes):
            out[start:stop] = self._draw(values[start:stop], rng)[:, self.tree.n_observed :]
        return out

    def marginal(self, node: Node) -> Normal:
        """Return the distribution of one node."""
        return self.conditional(node)

    def conditional(self, node: Node, given: Mapping[Node, float] | None = None) -> Normal:
        """Return the distribution of one node given values of any others, hidden ones included."""
        number = node_number(self.tree, node)
        row = np.full((1, self.tree.n_nodes), np.nan)
        for other, value in numbered_evidence(self.tree, given).items():
            row[0, other] = value
        found = self._infer(row)
        center, scale = self._units()
        return Normal(
            float(found.states[0, number] * scale[number] + center[number]),
            float(found.variances[0, number] * scale[number] ** 2),
        )

    # Behind it ------------------------------------------------------------------------------

    def _table(self, X: Any) -> Table:
        return as_table(X, schema=self.schema)

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
        log_likelihood = np.empty(len(values))
        parent, place = in_order(tree)
        rho = self.correlations[tree.order]

        def part(bounds: tuple[int, int]) -> None:
            kernels.run_rows(
                values, *bounds, place, parent, rho, center, 1.0 / scale,
                log_likelihood, states, variances, covariances,
            )  # fmt: skip

        threads.run(part, threads.split(len(values), 64))
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


def _log_units(values: FloatArray, scale: FloatArray) -> Any:
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


def _refuse(good: Any, values: FloatArray, tree: Tree, what: str, rule: str) -> None:
    wrong = np.flatnonzero(~good)
    if wrong.size:
        node = wrong[0]
        raise ModelError(
            f"the {what} of {tree.names[node]!r} is {values[node]}, but must be {rule}"
        )

"""EM for Gaussian trees: expected moments, turned into means, scales and correlations.

With all nodes seen, the likelihood of a Gaussian tree is highest where means, variances and the
correlations of edges are those of the data; so with hidden nodes an M-step sets them to the
expected moments. Hidden nodes are then brought back to mean 0 and variance 1, which changes
nothing of the distribution of the observed ones (parameter expansion; it makes steps longer).

Without gaps means and scales are those of the columns, and only correlations are left to be found:
:class:`MomentProblem` works on the moments of the columns, whatever the number of rows. With gaps
every row counts: :class:`RowProblem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latentree._kernels import gaussian as messages
from latentree._kernels import threads
from latentree._kernels.compiling import tiny
from latentree._kernels.inference import gaussian_rows
from latentree.data import Table
from latentree.distances import Sample
from latentree.em._driver import Step
from latentree.inference import ExpectedCounts
from latentree.models import GaussianTreeModel, in_order
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

LARGEST_Z = 8.0
"""Correlations stay below tanh(8) = 1 − 2e-7: a perfect one has no density."""

MOST_COLUMNS = 4_096
"""Of more columns the root of their correlations takes longer than passes over the rows."""

TINY = 400
"""Nodes × columns up to which a hundred steps in plain Python take less than compiling them."""

_CHUNKS = 16  # of rows that run on threads
_WIDTH = 32  # entries of the columns' vectors that run side by side: they fit into the cache


def gaussian_problem(tree: Tree, sample: Sample) -> MomentProblem | RowProblem:
    """Return the likelihood of real columns, from moments where these suffice."""
    if sample.is_summed and sample.n_columns <= MOST_COLUMNS:
        return MomentProblem(tree, sample)
    return RowProblem(tree, sample)


def chunks_of(root: FloatArray) -> list[FloatArray]:
    """Cut the vectors of the columns into chunks that a step takes side by side, on threads."""
    starts = range(0, root.shape[1], _WIDTH)
    return [np.ascontiguousarray(root[:, start : start + _WIDTH]) for start in starts]


def moment_step(
    order: IntArray,
    parent: IntArray,
    rho: FloatArray,
    own: FloatArray,
    vectors: Sequence[FloatArray],
) -> tuple[float, FloatArray]:
    """Run one expectation and maximization of a Gaussian tree on moments.

    Parameters
    ----------
    order, parent : array of int
        Nodes, parents first, and the parent of every node; observed nodes have the first numbers.
    rho : array of float
        Correlation of every node with its parent.
    own : array of float
        0 at observed nodes, −1 at hidden ones.
    vectors : sequence of arrays
        Rows of a root of the columns' correlations, in chunks of their entries.

    Returns
    -------
    value : float
        Log-likelihood per sample, without what columns have by themselves.
    following : array of float
        The correlations that maximize the expected log-likelihood.
    """
    u = messages.variances(order, parent, rho, own)
    parts = threads.run(
        lambda chunk: messages.products_of_means(order, parent, rho, own, u, chunk), vectors
    )
    following = np.zeros(order.size)
    value = messages.maximize(order, parent, rho, own, u, sum(parts), following)
    return float(value), following


class MomentProblem:
    """The likelihood of real columns without gaps under a tree, as the EM driver sees it.

    A point holds the correlations as z = atanh ρ, one per node. A step costs O(nodes · columns).
    """

    def __init__(self, tree: Tree, sample: Sample) -> None:
        self.tree = tree
        self.total_weight = sample.total_weight
        self.is_closed_form = tree.n_hidden == 0
        self.center, self.spread = sample.statistics.moments
        root = sample.statistics.correlation_root
        self._vectors = chunks_of(root)
        self._own_variances = np.repeat([0.0, -1.0], [tree.n_observed, tree.n_hidden])
        constant = 0.5 * (np.log(2.0 * np.pi) + 1.0) + np.log(self.spread)
        self._own = -self.total_weight * float(constant.sum())
        self._is_tiny = tree.n_nodes * root.shape[1] <= TINY

    def step(self, point: FloatArray) -> Step:
        """Expected moments of both ends of every edge, and the correlations they give."""
        with tiny(self._is_tiny):
            return self._step(point)

    def _step(self, point: FloatArray) -> Step:
        tree = self.tree
        given = tree.order, tree.parent, np.tanh(point), self._own_variances, self._vectors
        value, following = moment_step(*given)
        log_likelihood = self.total_weight * value + self._own
        return Step(log_likelihood, log_likelihood, np.arctanh(following))

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Every point is a model; correlations are kept from one."""
        return np.clip(point, -LARGEST_Z, LARGEST_Z)

    def point(self, model: GaussianTreeModel) -> FloatArray:
        """Correlations of a model on the same tree."""
        return _to_z(model.correlations)

    def model(self, point: FloatArray) -> GaussianTreeModel:
        """Return the model at a point, hidden nodes turned the way of the data."""
        return GaussianTreeModel(self.tree, np.tanh(point), self.center, self.spread).oriented()


def _to_z(rho: FloatArray) -> FloatArray:
    limit = np.tanh(LARGEST_Z)
    return np.asarray(np.arctanh(np.clip(rho, -limit, limit)))


# Rows with gaps ---------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Some rows and their weights: what an engine keeps of a part."""

    values: FloatArray
    weights: FloatArray

    @property
    def nbytes(self) -> int:
        """Bytes that are kept between two passes."""
        return self.values.nbytes + self.weights.nbytes


def rows_of(table: Table) -> Rows:
    """Return the rows of a table and their weights."""
    return Rows(table.values, table.weight_array())


class Parameters(NamedTuple):
    """Parameters as the kernels take them: nodes in traversal order, columns in their units."""

    place: IntArray
    parent: IntArray
    rho: FloatArray
    center: FloatArray
    scale: FloatArray


def moments_of_part(rows: Rows, at: Parameters) -> ExpectedCounts:
    """Expected moments of one part of the rows: the function that an engine runs in every step."""
    values, weights = rows
    log_likelihood, nothing = np.empty(len(values)), np.empty((0, 0))

    def part(bounds: tuple[int, int]) -> FloatArray:
        moments = np.zeros((at.place.size, 3))
        gaussian_rows.run_rows(
            values, weights, *bounds, at.place, at.parent, at.rho, at.center, 1.0 / at.scale,
            log_likelihood, nothing, nothing, nothing, moments,
        )  # fmt: skip
        return moments

    n_chunks = min(_CHUNKS, 1 + values.size // 20_000)
    moments = sum(threads.run(part, threads.split(len(values), n_chunks)))
    counted = weights > 0.0
    return ExpectedCounts(float(weights[counted] @ log_likelihood[counted]), np.asarray(moments))


class RowProblem:
    """The likelihood of rows of real columns under a tree, as the EM driver sees it.

    A point holds, end to end, the correlations as z = atanh ρ, one per node, and the means and the
    logarithms of the scales of the observed variables, in units of the columns' own.
    """

    def __init__(self, tree: Tree, sample: Sample) -> None:
        self.tree = tree
        self.total_weight = sample.total_weight
        self.is_closed_form = tree.n_hidden == 0 and not sample.has_missing
        self.center, self.spread = sample.statistics.moments
        self.parent, self.place = in_order(tree)
        self.pieces = sample.parts.tables.made(rows_of)
        self._present = sample.statistics.column_weights()

    def step(self, point: FloatArray) -> Step:
        """Expected moments of all nodes, and the parameters they give."""
        _, mean, log_scale = self._split(point)
        at = self._parameters(point)
        log_likelihood, moments, _ = self.pieces.total(moments_of_part, at)
        log_likelihood -= float(self._present @ np.log(at.scale))
        following = self._maximize(moments[self.place] / self.total_weight, mean, log_scale)
        return Step(log_likelihood, log_likelihood, following)

    def _parameters(self, point: FloatArray) -> Parameters:
        z, mean, log_scale = self._split(point)
        center = self.center + self.spread * mean
        scale = self.spread * np.exp(log_scale)
        return Parameters(self.place, self.parent, np.tanh(z)[self.tree.order], center, scale)

    def _maximize(self, moments: FloatArray, mean: FloatArray, log_scale: FloatArray) -> FloatArray:
        m = self.tree.n_observed
        first, second, product = moments.T
        variance = np.maximum(second - first**2, 1e-300)
        above = np.where(self.tree.parent < 0, 0, self.tree.parent)
        covariance = product - first * first[above]
        rho = covariance / np.sqrt(variance * variance[above])
        rho[self.tree.roots] = 0.0
        scale = np.exp(log_scale)
        return np.concatenate(
            [_to_z(rho), mean + scale * first[:m], log_scale + 0.5 * np.log(variance[:m])]
        )

    def _split(self, point: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        n, m = self.tree.n_nodes, self.tree.n_observed
        return point[:n], point[n : n + m], point[n + m :]

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Every point is a model; correlations are kept from one, scales from collapse."""
        n = self.tree.n_nodes
        out = point.copy()
        out[:n] = np.clip(out[:n], -LARGEST_Z, LARGEST_Z)
        out[n + self.tree.n_observed :] = np.clip(out[n + self.tree.n_observed :], -10.0, 10.0)
        return out

    def point(self, model: GaussianTreeModel) -> FloatArray:
        """Parameters of a model on the same tree."""
        means, scales = (model.means - self.center) / self.spread, model.scales / self.spread
        return np.concatenate([_to_z(model.correlations), means, np.log(scales)])

    def model(self, point: FloatArray) -> GaussianTreeModel:
        """Return the model at a point, hidden nodes turned the way of the data."""
        z, mean, log_scale = self._split(point)
        center, scale = self.center + self.spread * mean, self.spread * np.exp(log_scale)
        return GaussianTreeModel(self.tree, np.tanh(z), center, scale).oriented()

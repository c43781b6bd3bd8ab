"""EM for Gaussian trees: expected moments, turned into means, scales and correlations.

With all nodes seen, the likelihood of a Gaussian tree is highest where means, variances and the
correlations of edges are those of the data; so with hidden nodes a step sets them to the expected
moments. Hidden nodes are then brought back to mean 0 and variance 1, which changes nothing of the
distribution of the observed ones (parameter expansion; it makes steps longer).
"""

from __future__ import annotations

import numpy as np

from latentree._kernels import gaussian as kernels
from latentree._kernels import threads
from latentree.em.driver import Step
from latentree.models import GaussianTreeModel
from latentree.models.evidence import chunks
from latentree.models.gaussian import in_order
from latentree.table import Table
from latentree.tree import Tree
from latentree.tree.build import FloatArray

LARGEST_Z = 8.0
"""Correlations stay below tanh(8) = 1 − 2e-7: a perfect one has no density."""

_PARTS = 16


class GaussianProblem:
    """The likelihood of a table under a tree, as the EM driver sees it.

    A point holds, end to end, the correlations as z = atanh ρ, one a node, and the means and the
    logarithms of the scales of the observed variables, in units of the columns' own.
    """

    def __init__(self, tree: Tree, table: Table) -> None:
        self.tree = tree
        self.values = table.values
        self.weights = table.weight_array()
        self.total_weight = table.total_weight
        self.center, self.spread = column_moments(table)
        self.parent, self.place = in_order(tree)
        self._present, _ = _weighted_sums(table, self.center, 1)

    def step(self, point: FloatArray) -> Step:
        """Expected moments of all nodes, and the parameters they give."""
        z, mean, log_scale = self._split(point)
        moments = np.zeros((self.tree.n_nodes, 3))
        log_likelihood = 0.0
        center = self.center + self.spread * mean
        scale = self.spread * np.exp(log_scale)
        rho = np.tanh(z)[self.tree.order]

        def part(bounds: tuple[int, int]) -> tuple[float, FloatArray]:
            mine = np.zeros_like(moments)
            total = kernels.run_moments(
                self.values, self.weights, *bounds, self.place, self.parent, rho,
                center, 1.0 / scale, mine,
            )  # fmt: skip
            return total, mine

        for total, mine in threads.run(part, self._parts()):
            log_likelihood += total
            moments += mine
        log_likelihood -= float(self._present @ np.log(scale))
        following = self._maximise(moments[self.place] / self.total_weight, mean, log_scale)
        return Step(log_likelihood, log_likelihood, following)

    def _parts(self) -> list[tuple[int, int]]:
        return threads.split(len(self.values), min(_PARTS, 1 + self.values.size // 20_000))

    def _maximise(self, moments: FloatArray, mean: FloatArray, log_scale: FloatArray) -> FloatArray:
        m = self.tree.n_observed
        first, second, product = moments.T
        variance = np.maximum(second - first**2, 1e-300)
        above = np.where(self.tree.parent < 0, 0, self.tree.parent)
        covariance = product - first * first[above]
        rho = covariance / np.sqrt(variance * variance[above])
        rho[self.tree.roots] = 0.0
        z = np.arctanh(np.clip(rho, -np.tanh(LARGEST_Z), np.tanh(LARGEST_Z)))
        scale = np.exp(log_scale)
        return np.concatenate([z, mean + scale * first[:m], log_scale + 0.5 * np.log(variance[:m])])

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
        limit = np.tanh(LARGEST_Z)
        return np.concatenate(
            [
                np.arctanh(np.clip(model.correlations, -limit, limit)),
                (model.means - self.center) / self.spread,
                np.log(model.scales / self.spread),
            ]
        )

    def model(self, point: FloatArray) -> GaussianTreeModel:
        """Return the model at a point, hidden nodes turned the way of the data."""
        z, mean, log_scale = self._split(point)
        center, scale = self.center + self.spread * mean, self.spread * np.exp(log_scale)
        return GaussianTreeModel(self.tree, np.tanh(z), center, scale).oriented()


def column_moments(table: Table) -> tuple[FloatArray, FloatArray]:
    """Weighted means and standard deviations of the present cells of every column."""
    present, sums = _weighted_sums(table, np.zeros(table.n_columns), 1)
    mean = sums / present
    _, squares = _weighted_sums(table, mean, 2)
    return mean, np.sqrt(squares / present)


def _weighted_sums(table: Table, center: FloatArray, power: int) -> tuple[FloatArray, FloatArray]:
    """Σ w and Σ w·(x − center)^power over the present cells of every column, in chunks of rows."""
    weights = table.weight_array()
    present, sums = np.zeros(table.n_columns), np.zeros(table.n_columns)
    for start, stop in chunks(table.n_rows, table.n_columns):
        part = table.values[start:stop] - center
        missing = np.isnan(part)
        part[missing] = 0.0
        present += weights[start:stop] @ ~missing
        sums += weights[start:stop] @ part**power
    return present, sums

"""EM for Gaussian trees: expected moments, turned into means, scales and correlations.

With all nodes seen, the likelihood of a Gaussian tree is highest where means, variances and the
correlations of edges are those of the data; so with hidden nodes a step sets them to the expected
moments. Hidden nodes are then brought back to mean 0 and variance 1, which changes nothing of the
distribution of the observed ones (parameter expansion; it makes steps longer).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latentree._kernels import threads
from latentree._kernels.inference import gaussian as kernels
from latentree.data import Parts, Pieces, Table
from latentree.distances import Statistics
from latentree.em._driver import Step
from latentree.inference import ExpectedCounts, chunks
from latentree.models import GaussianTreeModel, in_order
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

LARGEST_Z = 8.0
"""Correlations stay below tanh(8) = 1 − 2e-7: a perfect one has no density."""

_PARTS = 16


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


class Standing(NamedTuple):
    """Parameters as the kernels take them: nodes in traversal order, columns in their units."""

    place: IntArray
    parent: IntArray
    rho: FloatArray
    center: FloatArray
    scale: FloatArray


def moments_of_part(rows: Rows, at: Standing) -> ExpectedCounts:
    """Expected moments of one part of the rows: the function that an engine runs in every step."""
    moments = np.zeros((at.place.size, 3))
    log_likelihood = 0.0

    def part(bounds: tuple[int, int]) -> tuple[float, FloatArray]:
        mine = np.zeros_like(moments)
        total = kernels.run_moments(
            rows.values, rows.weights, *bounds, at.place, at.parent, at.rho,
            at.center, 1.0 / at.scale, mine,
        )  # fmt: skip
        return total, mine

    n_parts = min(_PARTS, 1 + rows.values.size // 20_000)
    for total, mine in threads.run(part, threads.split(len(rows.values), n_parts)):
        log_likelihood += total
        moments += mine
    return ExpectedCounts(log_likelihood, moments)


def moments_and_weight(rows: Rows, at: Standing) -> FloatArray:
    """Expected moments of one part, and behind them the weight of its rows."""
    return np.append(moments_of_part(rows, at).counts, rows.weights.sum())


class GaussianProblem:
    """The likelihood of a table under a tree, as the EM driver sees it.

    A point holds, end to end, the correlations as z = atanh ρ, one a node, and the means and the
    logarithms of the scales of the observed variables, in units of the columns' own.

    Data in ``parts`` is summed part by part; ``table`` is then their statistics.
    """

    def __init__(self, tree: Tree, table: Table | Statistics, parts: Parts | None = None) -> None:
        self.tree = tree
        self.total_weight = table.total_weight
        self.center, self.spread = column_moments(table)
        self.parent, self.place = in_order(tree)
        self.pieces: Pieces[Rows] | None = None
        if isinstance(table, Statistics):
            assert parts is not None
            self.pieces = parts.tables.made(rows_of)
            self.n_parts = parts.n_parts
            self._present = table.column_weights()
        else:
            self._rows = rows_of(table)
            self._present, _ = _weighted_sums(table, self.center, 1)

    def step(self, point: FloatArray) -> Step:
        """Expected moments of all nodes, and the parameters they give."""
        _, mean, log_scale = self._split(point)
        at = self._standing(point)
        if self.pieces is None:
            log_likelihood, moments = moments_of_part(self._rows, at)
        else:
            log_likelihood, moments = self.pieces.total(moments_of_part, at)
        log_likelihood -= float(self._present @ np.log(at.scale))
        following = self._maximise(moments[self.place] / self.total_weight, mean, log_scale)
        return Step(log_likelihood, log_likelihood, following)

    def blended(self, numbers: Sequence[int], point: FloatArray, share: float) -> FloatArray:
        """Step from the moments of the model itself, blended with those of some parts of the rows.

        In the model's own units, its nodes have mean 0, variance 1, and products ρ.
        """
        assert self.pieces is not None
        z, mean, log_scale = self._split(point)
        at = self._standing(point)
        found, weight = np.split(self.pieces.subtotal(numbers, moments_and_weight, at), [-1])
        own = np.column_stack([np.zeros_like(z), np.ones_like(z), np.tanh(z)])
        moments = (1.0 - share) * own + share * found.reshape(own.shape)[self.place] / weight
        return self._maximise(moments, mean, log_scale)

    def _standing(self, point: FloatArray) -> Standing:
        z, mean, log_scale = self._split(point)
        center = self.center + self.spread * mean
        scale = self.spread * np.exp(log_scale)
        return Standing(self.place, self.parent, np.tanh(z)[self.tree.order], center, scale)

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


def column_moments(table: Table | Statistics) -> tuple[FloatArray, FloatArray]:
    """Weighted means and standard deviations of the present cells of every column."""
    if isinstance(table, Statistics):
        return table.moments()
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

"""EM for Gaussian trees behind margins: thresholds and correlations from expected counts on a grid.

Hidden variables stand on a grid of points z, and the discrete engine gives expected counts: of
pairs of points for every edge, of points and levels for every ordered column, and sums of scores at
every point for columns of numbers. Each edge and each column is then fitted by itself
(``_coordinates``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from latentree.data import Table
from latentree.distances import Sample
from latentree.em._coordinates import LARGEST, Coordinates, ascending, coordinates_of
from latentree.em._driver import Step
from latentree.em._expected_counts import PartedCounts
from latentree.em._state_problem import column_entropies
from latentree.inference import (
    Layout,
    Margin,
    NormalMargin,
    Odds,
    RankMargin,
    ScoreEmission,
    Skeleton,
    Thresholds,
    cheapest_rooting,
    recorded_steps,
)
from latentree.models import N_POINTS, POINTS, CopulaTreeModel, grid_parameters, turned_correlations
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

_FARTHEST = 2.0  # how far a jump may move a coordinate
_UNKNOWN = 0.7  # correlation of the edges of a tree without lengths, at the start


class CopulaProblem:
    """The likelihood of rows under a Gaussian tree behind margins, as the EM driver sees it.

    A point holds the coordinates of all nodes, one after another.
    """

    is_closed_form = False

    def __init__(self, tree: Tree, sample: Sample, marginals: str = "normal") -> None:
        self.tree, self.sample = tree, sample
        self.total_weight = sample.total_weight
        sums = sample.statistics.sums
        self.centers, self.scales = sums.moments()
        self.margins = first_margins(sample, marginals)
        n_states = np.full(tree.n_nodes, N_POINTS)
        n_states[: tree.n_observed] = sample.cardinalities
        entropies = column_entropies(sample.statistics)
        self.rooted = cheapest_rooting(tree, entropies, self._no_roots())
        self.layout = Layout(self.rooted, n_states)
        self.counts = PartedCounts(Skeleton.of(self.layout, entropies), sample.parts)
        self._kept: tuple[FloatArray, FloatArray, list[ScoreEmission | None]] | None = None
        self._points = np.broadcast_to(POINTS, (tree.n_nodes, N_POINTS))

    def _no_roots(self) -> Any:
        """Columns with a hidden neighbor are no roots, and numbers neither."""
        tree = self.tree
        out = np.zeros(tree.n_nodes, bool)
        for column in range(tree.n_observed):
            hidden = (tree.neighbors(column) >= tree.n_observed).any()
            out[column] = hidden or not self.sample.cardinalities[column]
        return out

    # Points ---------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> list[Coordinates]:
        """What the coordinates of every node mean."""
        m, above = self.tree.n_observed, self.rooted.parent
        side = np.where(above < 0, "nothing", np.where(above < m, "column", "hidden")).tolist()
        columns = zip(self.margins, side, self.centers, self.scales, strict=False)
        hidden = [coordinates_of(None, each) for each in side[m:]]
        return [*(coordinates_of(*column) for column in columns), *hidden]

    @cached_property
    def _starts(self) -> IntArray:
        return np.cumsum([0, *(node.size for node in self.nodes)])

    def _views(self, point: FloatArray) -> list[FloatArray]:
        """Views of the coordinates of every node."""
        return np.split(point, self._starts[1:-1])

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(self._starts[-1])

    def joined(self, rho: FloatArray, margins: Sequence[Margin]) -> FloatArray:
        """Return the point of correlations (of the rooted tree) and margins."""
        rho = np.clip(rho, -LARGEST, LARGEST)
        every = [*margins, *[None] * self.tree.n_hidden]
        found = [
            node.point(float(own), margin)
            for node, own, margin in zip(self.nodes, rho, every, strict=True)
        ]
        return np.concatenate(found)

    def read(self, point: FloatArray) -> tuple[FloatArray, list[Margin]]:
        """Return the correlations of the rooted tree and the margins at a point."""
        found = [n.read(own) for n, own in zip(self.nodes, self._views(point), strict=True)]
        margins = [each.margin for each in found[: self.tree.n_observed]]
        return np.array([each.rho for each in found]), margins

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep coordinates within reach of ``near``, correlations below 1, thresholds ascending."""
        out = np.clip(point, near - _FARTHEST, near + _FARTHEST)
        for node, own, old in zip(self.nodes, self._views(out), self._views(near), strict=True):
            node.limit(own, old)
        return out

    def point(self, model: CopulaTreeModel) -> FloatArray:
        """Return the point of a model on the same tree."""
        rho = turned_correlations(model.tree, model.correlations, self.rooted)
        return self.joined(rho, model.margins)

    def model(self, point: FloatArray) -> CopulaTreeModel:
        """Return the model at a point, rooted as the tree was given."""
        rho, margins = self.read(point)
        rho = turned_correlations(self.rooted, rho, self.tree)
        return CopulaTreeModel(self.tree, rho, margins, self.sample.schema.labels)

    def from_distances(self, signs: FloatArray) -> FloatArray:
        """Return the point whose correlations are those of the tree's lengths."""
        length = self.tree.length
        size = np.exp(-length) if length.any() else np.full(length.size, _UNKNOWN)
        rho = np.clip(size, 0.1, 0.9) * np.where(signs < 0, -1.0, 1.0)
        margins = list(self.margins)
        rooted = turned_correlations(self.tree, rho, self.rooted)
        for column, margin in enumerate(margins):
            if isinstance(margin, Odds) and rooted[column]:
                margins[column] = _first_slopes(margin, rooted[column])
        return self.joined(rooted, margins)

    # Steps ----------------------------------------------------------------------------------

    def step(self, point: FloatArray) -> Step:
        """Expected counts at a point, and the point that they give."""
        theta, emissions = self._tables(point)
        sums = self.counts.run(theta, emissions)
        following = point.copy()
        numbers = iter(sums.leaves)
        for number, own in enumerate(self._views(following)):
            if number < self.tree.n_observed and not self.layout.n_states[number]:
                self.nodes[number].fit(next(numbers), own)
            elif own.size:
                self.nodes[number].fit(self.layout.table(sums.counts, number), own)
        limited = self.admissible(following, following)
        guarded = self._without_falls(point, limited, sums.counts)
        return Step(sums.log_likelihood, sums.log_likelihood, guarded)

    def _tables(self, point: FloatArray) -> tuple[FloatArray, list[ScoreEmission | None]]:
        """Return the tables and emissions of a point; those of the last one are kept."""
        if self._kept is None or not np.array_equal(self._kept[0], point):
            theta, emissions = grid_parameters(self.rooted, *self.read(point), self._points)
            self._kept = point.copy(), self.layout.normalized(theta), emissions
        return self._kept[1:]

    def _without_falls(
        self, point: FloatArray, following: FloatArray, counts: FloatArray
    ) -> FloatArray:
        """Return the next point with nodes left where they were if their tables would fit worse.

        Regressions do not fall. But the correlation of a grid is fitted as that of a continuum, and
        of two columns alone the thresholds of each one by itself.
        """
        before, layout = self._tables(point)[0], self.layout
        gain = counts * (np.log(self._tables(following)[0]) - np.log(before))
        gains = np.array([layout.table(gain, node).sum() for node in range(self.tree.n_nodes)])
        above, m = self.rooted.parent, self.tree.n_observed
        pairs = np.flatnonzero((above[:m] >= 0) & (above[:m] < m))
        gains[pairs] = gains[above[pairs]] = gains[pairs] + gains[above[pairs]]
        falls = np.flatnonzero(gains < 0)
        if not falls.size:
            return following
        out, old = following.copy(), self._views(point)
        for node, own in enumerate(self._views(out)):
            if node in falls:
                own[:] = old[node]
        return out


def first_margins(sample: Sample, marginals: str) -> list[Margin]:
    """Return the margins of the columns alone, slopes of labels 0."""
    sums = sample.statistics.sums
    table: Table | None = None
    dense = all(kind == "real" for kind in sample.schema.kinds) and marginals != "cells"
    found: list[Margin] = []
    mean, spread = sums.moments()
    low, high = sums.extremes()
    for column, kind in enumerate(sample.schema.kinds):
        if kind in ("ordered", "category"):
            found.append(_state_margin(sums.of_column(column), kind))
            continue
        gap = sums.resolutions[column]
        grid = (0.0, 0.0) if dense else recorded_steps(gap, low[column], high[column])
        if kind == "real" and marginals != "ranks":
            found.append(NormalMargin(float(mean[column]), float(spread[column]), *grid))
        else:
            table = sample.parts.to_table() if table is None else table
            cells = table.column(column)
            found.append(RankMargin.of(cells, table.weights, grid[0], kind, grid[1]))
    return found


def _state_margin(counts: FloatArray, kind: str) -> Margin:
    """Thresholds of levels, or odds of labels, with half a row for a label that no row has."""
    share = np.maximum(counts, 0.5) if (counts <= 0).any() else counts
    if kind == "ordered" or share.size <= 2:
        return Thresholds(ascending(ndtri(np.cumsum(share)[:-1] / share.sum())))
    return Odds(np.log(share), np.zeros(share.size))


def _first_slopes(margin: Odds, rho: float) -> Odds:
    """Slopes to start from: the most frequent label against the others, apart from each other."""
    order = np.argsort(-margin.intercepts)
    slopes = np.zeros(margin.n_levels)
    slopes[order] = 2.0 * rho * np.cos(np.pi * np.arange(margin.n_levels))
    slopes[order] /= 1.0 + np.arange(margin.n_levels) // 2
    return Odds(margin.intercepts, slopes)

"""EM for Gaussian trees behind margins: thresholds and correlations from expected counts on a grid.

Hidden variables stand on a grid of points z, and the discrete engine gives expected counts: of
pairs of points for every edge, of points and levels for every ordered column, and sums of scores at
every point for columns of numbers. Each edge and each column is then fitted by itself:

- an edge of two hidden variables: the correlation of its counts, a root of a cubic;
- ordered answers: a probit regression on z, P(level ≤ k | z) = Φ(α_k − β·z), so that
  τ_k = α_k/√(1 + β²) and ρ = β/√(1 + β²);
- labels without an order: a logit regression on z;
- normal numbers: a linear regression on z; numbers on a scale of their own: the correlation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, ndtr, ndtri

from latentree._kernels.distances import latent as pair_kernels
from latentree.data import Table
from latentree.distances import LatentSums, Sample
from latentree.em._driver import Step
from latentree.em._expected_counts import compiled
from latentree.em._mixed import _entropies
from latentree.inference import (
    Expectation,
    Layout,
    Margin,
    NormalMargin,
    Odds,
    PassMemory,
    RankMargin,
    Skeleton,
    Thresholds,
    cheapest_rooting,
    counts_of,
    score_logs,
    score_moments,
    values_of,
)
from latentree.models import N_POINTS, POINTS, CopulaTreeModel, grid_parameters, turned_correlations
from latentree.tree import Tree
from latentree.typing import FloatArray

LARGEST = 0.98
"""Largest correlation: up to it the grid is precise to 10⁻⁴ a row."""

_LARGEST_Z = float(np.arctanh(LARGEST))
_LARGEST_SLOPE = LARGEST / float(np.sqrt(1.0 - LARGEST**2))
_LARGEST_ODDS = 8.0  # slope of a label's log-odds
_FARTHEST = 2.0  # how far a jump may move a coordinate
_SCORING = 3  # steps of Fisher's scoring in an M-step
_LEAST_GAP = 1e-4  # between two thresholds


class GridCounts(NamedTuple):
    """What an E-step gives: log-likelihood, counts of tables, and sums of columns of numbers."""

    log_likelihood: float
    counts: FloatArray
    numbers: list[FloatArray]
    """Σ w, Σ w·E[y], Σ w·E[y²] of the scores y at every point."""

    def __add__(self, other: GridCounts) -> GridCounts:  # type: ignore[override]
        """Return the sums over both parts of the rows."""
        return GridCounts(
            self.log_likelihood + other.log_likelihood,
            self.counts + other.counts,
            [mine + theirs for mine, theirs in zip(self.numbers, other.numbers, strict=True)],
        )


def count_part(part: Expectation, theta: FloatArray, emissions: Sequence[Any]) -> GridCounts:
    """Run the E-step on one part of the rows: the function that an engine runs in every step."""
    places = part.patterns.emissions
    emitted = score_logs(emissions, places)
    log_likelihood, counts = part.run(theta, emitted if emitted.size else None)
    numbers = []
    for e in np.argsort(places.columns).tolist():
        weights = counts_of(places, emitted, e)
        emission = emissions[int(places.columns[e])]
        numbers.append(score_moments(emission, values_of(places, e), weights))
    return GridCounts(log_likelihood, counts, numbers)


@dataclass(frozen=True)
class Block:
    """The coordinates of a node in a point."""

    node: int
    kind: str
    """hidden, ordered, odds, normal or rank; alone if the column has no neighbor."""
    start: int
    size: int

    def of(self, point: FloatArray) -> FloatArray:
        """View of its coordinates."""
        return point[self.start : self.start + self.size]


class CopulaProblem:
    """The likelihood of rows under a Gaussian tree behind margins, as the EM driver sees it.

    Coordinates of a point are artanh ρ of edges between hidden variables and of numbers on a scale
    of their own; α and β of ordered answers; log-odds of labels; (μ − m)/s, log(σ/s) and artanh ρ
    of normal numbers, where m and s are the column's mean and standard deviation.
    """

    is_closed_form = False

    def __init__(self, tree: Tree, sample: Sample, marginals: str = "normal") -> None:
        self.tree, self.sample = tree, sample
        self.total_weight = sample.total_weight
        sums = sample.statistics.sums
        assert isinstance(sums, LatentSums)
        self.centers, self.scales = sums.moments()
        self.margins = first_margins(sample, marginals)
        n_states = np.full(tree.n_nodes, N_POINTS)
        n_states[: tree.n_observed] = sample.cardinalities
        entropies = _entropies(sample.statistics)
        self.rooted = cheapest_rooting(tree, entropies, self._no_roots())
        self.layout = Layout(self.rooted, n_states)
        skeleton = Skeleton.of(self.layout, entropies)
        self.pieces = sample.parts.tables.made(compiled, skeleton, PassMemory())
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
    def blocks(self) -> list[Block]:
        """Where the coordinates of every node stand."""
        found, start = [], 0
        for node in range(self.tree.n_nodes):
            kind, size = self._kind(node)
            found.append(Block(node, kind, start, size))
            start += size
        return found

    def _kind(self, node: int) -> tuple[str, int]:
        above = int(self.rooted.parent[node])
        if node >= self.tree.n_observed:
            return "hidden", int(above >= 0)
        margin, alone = self.margins[node], above < 0
        if isinstance(margin, Thresholds):
            size = margin.thresholds.size
            if alone:
                return "alone ordered", size
            return ("ordered" if above >= self.tree.n_observed else "pair"), size + 1
        if isinstance(margin, Odds):
            return "alone odds" if alone else "odds", (margin.n_levels - 1) * (1 if alone else 2)
        if isinstance(margin, NormalMargin):
            return "alone normal" if alone else "normal", 2 if alone else 3
        return "rank", int(not alone)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        last = self.blocks[-1]
        return last.start + last.size

    def joined(self, rho: FloatArray, margins: Sequence[Margin]) -> FloatArray:
        """Return the point of correlations (of the rooted tree) and margins."""
        point = np.empty(self.size)
        for block in self.blocks:
            margin = margins[block.node] if block.node < self.tree.n_observed else None
            own = float(np.clip(rho[block.node], -LARGEST, LARGEST))
            block.of(point)[:] = self._coordinates(block, own, margin)
        return point

    def _coordinates(self, block: Block, rho: float, margin: Any) -> Any:
        if block.kind == "hidden":
            return [np.arctanh(rho)][: block.size]
        if block.kind == "alone ordered":
            return margin.thresholds
        if block.kind in ("ordered", "pair"):
            spread = np.sqrt(1.0 - rho * rho)
            return np.append(margin.thresholds, rho) / spread
        if block.kind == "alone odds":
            return margin.intercepts[1:]
        if block.kind == "odds":
            return np.concatenate([margin.intercepts[1:], margin.slopes[1:]])
        if block.kind == "rank":
            return [np.arctanh(rho)][: block.size]
        center, scale = self.centers[block.node], self.scales[block.node]
        found = [(margin.mean - center) / scale, np.log(margin.sd / scale), np.arctanh(rho)]
        return found[: block.size]

    def read(self, point: FloatArray) -> tuple[FloatArray, list[Margin]]:
        """Return the correlations of the rooted tree and the margins at a point."""
        rho, margins = np.zeros(self.tree.n_nodes), list(self.margins)
        for block in self.blocks:
            own = block.of(point)
            if block.kind in ("hidden", "rank"):
                rho[block.node] = np.tanh(own[0]) if own.size else 0.0
            elif block.kind == "alone ordered":
                margins[block.node] = Thresholds(own)
            elif block.kind in ("ordered", "pair"):
                scale = np.sqrt(1.0 + own[-1] ** 2)
                rho[block.node] = own[-1] / scale
                margins[block.node] = Thresholds(own[:-1] / scale)
            elif block.kind in ("alone odds", "odds"):
                half = own.size if block.kind == "alone odds" else own.size // 2
                a, b = np.append(0.0, own[:half]), np.append(0.0, own[half:])
                margins[block.node] = Odds(a, b if b.size == a.size else np.zeros(a.size))
            else:
                margins[block.node] = self._normal(block.node, own)
                rho[block.node] = np.tanh(own[2]) if own.size > 2 else 0.0
        return rho, margins

    def _normal(self, column: int, own: FloatArray) -> NormalMargin:
        center, scale = self.centers[column], self.scales[column]
        resolution = self.margins[column].resolution
        return NormalMargin(center + scale * own[0], scale * np.exp(own[1]), resolution)

    def is_point(self, point: FloatArray) -> bool:
        """Whether numbers are coordinates within their limits."""
        if point.shape != (self.size,):
            return False
        return bool(np.allclose(self.admissible(point, point), point))

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep coordinates within reach of ``near``, correlations below 1, thresholds ascending."""
        out = np.clip(point, near - _FARTHEST, near + _FARTHEST)
        for block in self.blocks:
            own = block.of(out)
            if block.kind in ("hidden", "rank"):
                np.clip(own, -_LARGEST_Z, _LARGEST_Z, out=own)
            elif block.kind == "normal":
                own[2] = np.clip(own[2], -_LARGEST_Z, _LARGEST_Z)
            elif block.kind == "odds":
                half = own.size // 2
                own[half:] = np.clip(own[half:], -_LARGEST_ODDS, _LARGEST_ODDS)
            elif block.kind in ("ordered", "pair", "alone ordered"):
                last = own.size - (block.kind != "alone ordered")
                if (np.diff(own[:last]) < _LEAST_GAP).any():
                    own[:] = block.of(near)
                own[last:] = np.clip(own[last:], -_LARGEST_SLOPE, _LARGEST_SLOPE)
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
        rho, margins = self.read(point)
        theta, emissions = grid_parameters(self.rooted, rho, margins, self._points)
        theta = self.layout.normalized(theta)
        found = self.pieces.total(count_part, theta, emissions)
        following = point.copy()
        numbers = iter(found.numbers)
        for block in self.blocks:
            if block.node < self.tree.n_observed and not self.layout.n_states[block.node]:
                self._fit_number(block, next(numbers), block.of(following))
            elif block.size:
                counts = self.layout.table(found.counts, block.node)
                self._fit_states(block, counts, block.of(following))
        return Step(found.log_likelihood, found.log_likelihood, self._limited(following))

    def _limited(self, point: FloatArray) -> FloatArray:
        return self.admissible(point, point)

    def _fit_states(self, block: Block, counts: FloatArray, own: FloatArray) -> None:
        """Fit the coordinates of a hidden node, or of a column with states, to its counts."""
        if block.kind == "hidden":
            own[0] = np.arctanh(fitted_correlation(*_moments_of(counts)))
        elif block.kind == "alone ordered":
            own[:] = _ascending(ndtri(np.cumsum(counts[0])[:-1] / counts.sum()))
        elif block.kind == "alone odds":
            share = np.maximum(counts[0], 1e-6)
            own[:] = np.log(share[1:] / share[0])
        elif block.kind == "ordered":
            own[:] = fitted_probit(counts, POINTS, own)
        elif block.kind == "odds":
            own[:] = fitted_logit(counts, POINTS, own)
        else:  # two ordered columns that have no other neighbor
            rho = float(np.clip(pair_kernels.polychoric(counts, False)[0], -LARGEST, LARGEST))
            margin = ndtri(np.cumsum(counts.sum(axis=0))[:-1] / counts.sum())
            own[:] = np.append(_ascending(margin), rho) / np.sqrt(1.0 - rho * rho)

    def _fit_number(self, block: Block, sums: FloatArray, own: FloatArray) -> None:
        """Fit the coordinates of a column of numbers to its sums at every point."""
        n, one, two = sums
        if block.kind == "rank":
            if own.size:
                moments = (n.sum(), float(POINTS**2 @ n), float(POINTS @ one), two.sum())
                own[0] = np.arctanh(fitted_correlation(*moments))
            return
        points = POINTS if n.size > 1 else np.zeros(1)
        total, sx = n.sum(), one.sum()
        sg, sgg, sgx = points @ n, points**2 @ n, points @ one
        spread = total * sgg - sg * sg
        slope = (total * sgx - sg * sx) / spread if n.size > 1 else 0.0
        start = (sx - slope * sg) / total
        rest = max((two.sum() - start * sx - slope * sgx) / total, 1e-8)
        sd = np.sqrt(slope**2 + rest)
        # In the units of the last margin: its mean and sd are own[0] and exp(own[1]).
        rho = np.clip(slope / sd, -LARGEST, LARGEST)
        found = [own[0] + np.exp(own[1]) * start, own[1] + np.log(sd), np.arctanh(rho)]
        own[:] = found[: own.size]


_UNKNOWN = 0.7  # correlation of the edges of a tree without lengths, at the start


def first_margins(sample: Sample, marginals: str) -> list[Margin]:
    """Return the margins of the columns alone, slopes of labels 0."""
    sums = sample.statistics.sums
    assert isinstance(sums, LatentSums)
    table: Table | None = None
    dense = all(kind == "real" for kind in sample.schema.kinds) and marginals != "cells"
    found: list[Margin] = []
    mean, spread = sums.moments()
    for column, kind in enumerate(sample.schema.kinds):
        if kind in ("ordered", "category"):
            found.append(_state_margin(sums.of_column(column), kind))
            continue
        resolution = 0.0 if dense else float(f"{sums.resolutions[column]:.6g}")
        if kind == "real" and marginals != "ranks":
            found.append(NormalMargin(float(mean[column]), float(spread[column]), resolution))
        else:
            table = sample.parts.to_table() if table is None else table
            cells = table.column(column)
            found.append(RankMargin.of(cells, table.weights, resolution, kind))
    return found


def _state_margin(counts: FloatArray, kind: str) -> Margin:
    """Thresholds of levels, or odds of labels, with half a row for a label that no row has."""
    share = np.maximum(counts, 0.5) if (counts <= 0).any() else counts
    if kind == "ordered" or share.size <= 2:
        return Thresholds(_ascending(ndtri(np.cumsum(share)[:-1] / share.sum())))
    return Odds(np.log(share), np.zeros(share.size))


def _first_slopes(margin: Odds, rho: float) -> Odds:
    """Slopes to start from: the most frequent label against the others, apart from each other."""
    order = np.argsort(-margin.intercepts)
    slopes = np.zeros(margin.n_levels)
    slopes[order] = 2.0 * rho * np.cos(np.pi * np.arange(margin.n_levels))
    slopes[order] /= 1.0 + np.arange(margin.n_levels) // 2
    return Odds(margin.intercepts, slopes)


def _ascending(thresholds: FloatArray) -> FloatArray:
    """Keep thresholds finite, and a little apart."""
    limited = np.clip(thresholds, -8.0, 8.0)
    steps = np.arange(limited.size) * _LEAST_GAP
    return np.asarray(np.maximum.accumulate(limited - steps) + steps)


def _moments_of(counts: FloatArray) -> tuple[float, float, float, float]:
    """Σ 1, Σ z², Σ z·z', Σ z'² of counts of pairs of points."""
    above, below = counts.sum(axis=1), counts.sum(axis=0)
    square = POINTS**2
    return (
        float(above.sum()),
        float(square @ above),
        float(POINTS @ counts @ POINTS),
        float(square @ below),
    )


def fitted_correlation(n: float, xx: float, xy: float, yy: float) -> float:
    """Return the most likely correlation of two standard normal variables from their moments.

    A root of n·ρ³ − Σxy·ρ² + (Σx² + Σy² − n)·ρ − Σxy = 0, the one of highest likelihood.
    """
    if n <= 0.0:
        return 0.0
    roots = np.roots([n, -xy, xx + yy - n, -xy])
    real = np.clip(roots[np.abs(roots.imag) < 1e-9].real, -LARGEST, LARGEST)
    rest = 1.0 - real**2
    likelihood = -0.5 * n * np.log(rest) - 0.5 * (xx - 2.0 * real * xy + real**2 * yy) / rest
    return float(real[likelihood.argmax()])


def fitted_probit(counts: FloatArray, points: FloatArray, start: FloatArray) -> FloatArray:
    """Raise the likelihood of levels given points by Fisher's scoring.

    ``start`` and what is returned are α and β of P(level ≤ k | z) = Φ(α_k − β·z).
    """
    total = counts.sum(axis=1)

    def cells(own: FloatArray) -> tuple[FloatArray, FloatArray]:
        u = own[:-1] - own[-1] * points[:, None]
        below = np.concatenate([np.zeros((points.size, 1)), ndtr(u), np.ones((points.size, 1))], 1)
        return np.maximum(np.diff(below, axis=1), 1e-12), np.exp(-0.5 * u * u) / _ROOT_2PI

    def derivatives(density: FloatArray) -> FloatArray:
        """∂P(level | z)/∂(α, β), one row a level."""
        levels = density.shape[1] + 1
        out = np.zeros((points.size, levels, levels))
        place = np.arange(levels - 1)
        out[:, place, place], out[:, place + 1, place] = density, -density
        padded = np.pad(density, ((0, 0), (1, 1)))
        out[:, :, -1] = -points[:, None] * np.diff(padded, axis=1)
        return out

    return _scored(counts, total, start, cells, derivatives, _is_ascending)


def fitted_logit(counts: FloatArray, points: FloatArray, start: FloatArray) -> FloatArray:
    """Raise the likelihood of labels given points by Fisher's scoring; log-odds to the first."""
    total = counts.sum(axis=1)
    labels = counts.shape[1]

    def cells(own: FloatArray) -> tuple[FloatArray, FloatArray]:
        half = labels - 1
        odds = np.pad(own[:half] + own[half:] * points[:, None], ((0, 0), (1, 0)))
        shares = np.maximum(np.exp(log_softmax(odds, axis=1)), 1e-12)
        return shares, shares

    def derivatives(shares: FloatArray) -> FloatArray:
        by_odds = shares[:, :, None] * (np.eye(labels)[None] - shares[:, None, :])
        by_odds = by_odds[:, :, 1:]
        return np.concatenate([by_odds, by_odds * points[:, None, None]], axis=2)

    return _scored(counts, total, start, cells, derivatives, lambda own: True)


def _is_ascending(own: FloatArray) -> bool:
    return bool((np.diff(own[:-1]) >= _LEAST_GAP).all())


def _scored(
    counts: FloatArray,
    total: FloatArray,
    start: FloatArray,
    cells: Any,
    derivatives: Any,
    is_allowed: Any,
) -> FloatArray:
    """Run Fisher's scoring with steps that are halved until the likelihood does not fall."""
    own = start.copy()
    shares, extra = cells(own)
    value = float((counts * np.log(shares)).sum())
    for _ in range(_SCORING):
        d = derivatives(extra)
        gradient = np.einsum("qk,qkj->j", counts / shares, d)
        weighted = d * (total[:, None] / shares)[:, :, None]
        information = np.tensordot(weighted, d, axes=([0, 1], [0, 1]))
        information += 1e-9 * np.trace(information) * np.eye(own.size)
        step = np.linalg.solve(information, gradient)
        for _ in range(8):
            tried = own + step
            if is_allowed(tried):
                shares, extra = cells(tried)
                reached = float((counts * np.log(shares)).sum())
                if reached >= value:
                    break
            step = 0.5 * step
        else:
            break
        gain, value, own = reached - value, reached, tried
        if gain < 1e-10 * abs(value):
            break
    return own


_ROOT_2PI = float(np.sqrt(2.0 * np.pi))

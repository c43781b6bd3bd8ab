"""Gaussian trees behind margins on a grid: every point of a hidden variable is a state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree._kernels.distances import latent as kernels
from latentree.inference import (
    Margin,
    NormalMargin,
    Odds,
    RankMargin,
    ScoreEmission,
    Thresholds,
)
from latentree.tree import Tree
from latentree.typing import FloatArray

N_POINTS = 43
"""Points of the grid of a hidden variable, a quarter apart: the log-likelihood is off by less than
10⁻⁴ a row at correlations up to 0.97 (a third apart by 1.7·10⁻⁴ at most, half by 5·10⁻³)."""

END = 5.3
"""The grid reaches from −5.3 to 5.3: P(|z| > 5.3) is 10⁻⁷. Behind a rare answer (one row in 200,
ρ = 0.4) z lies beyond 4.8 often enough to cost 2·10⁻⁴ of the log-likelihood of a row."""

LEAST_PROBABILITY = 1e-300
"""Entries of tables are at least this, so that no row of the data is impossible."""

POINTS = np.linspace(-END, END, N_POINTS)
STEP = float(POINTS[1] - POINTS[0])
"""Distance of two points."""


def grid_parameters(
    tree: Tree, rho: FloatArray, margins: Sequence[Margin], points: FloatArray
) -> tuple[FloatArray, list[ScoreEmission | None]]:
    """Return all tables of a model on a grid, and the emissions of its columns.

    Parameters
    ----------
    tree : Tree
        Rooted at hidden nodes, or at columns without hidden neighbors.
    rho : array of float
        Correlations with the parents.
    margins : sequence, one per column
    points : array of shape (n_nodes, N_POINTS)
        The grid of every hidden node.

    Returns
    -------
    tuple
        Tables end to end in the order of :class:`latentree.inference.Layout`, and emissions.
    """
    tables: list[FloatArray] = []
    emissions: list[ScoreEmission | None] = [None] * tree.n_observed
    for node in range(tree.n_nodes):
        above = int(tree.parent[node])
        grid = points[above] if above >= tree.n_observed else np.zeros(1)
        own = float(rho[node]) if above >= 0 else 0.0
        if node >= tree.n_observed:
            table = normal_weights(points[node]) if above < 0 else _step(grid, points[node], own)
        elif 0 <= above < tree.n_observed:
            table = _pair(margins[above], margins[node], own)
        else:
            emissions[node], table = _column(margins[node], grid, own, is_alone=above < 0)
        tables.append(np.maximum(table, LEAST_PROBABILITY).ravel())
    return np.concatenate(tables), emissions


def _column(
    margin: Margin, grid: FloatArray, rho: float, is_alone: bool
) -> tuple[ScoreEmission | None, FloatArray]:
    """Return the emission of a column of numbers, or the table P(level | point) of levels."""
    if isinstance(margin, NormalMargin | RankMargin):
        return ScoreEmission(margin, grid, rho), np.empty(0)
    if is_alone and isinstance(margin, Odds):
        return None, normal_weights(POINTS) @ margin.table(POINTS)
    return None, margin.table(grid, rho)


def normal_weights(points: FloatArray) -> FloatArray:
    """Probabilities of the points of a grid of the standard normal distribution."""
    density = np.exp(-0.5 * points**2)
    return np.asarray(density / density.sum())


def _step(above: FloatArray, points: FloatArray, rho: float) -> FloatArray:
    """P(point | point of the neighbor) of two hidden variables; every row sums to 1."""
    density = np.exp(-0.5 * (points - rho * above[:, None]) ** 2 / (1.0 - rho * rho))
    return np.asarray(density / density.sum(axis=1, keepdims=True))


def _pair(above: Margin, own: Margin, rho: float) -> FloatArray:
    """P(level | level) of two ordered columns that have no other neighbor."""
    assert isinstance(above, Thresholds)
    assert isinstance(own, Thresholds)
    # ±9 stands for ±∞: Φ(−9) is 10⁻¹⁹.
    ends = [np.concatenate([[-9.0], each.thresholds, [9.0]]) for each in (above, own)]
    below = [[kernels.bivariate_cdf(a, b, rho) for b in ends[1]] for a in ends[0]]
    cells = np.maximum(np.diff(np.diff(below, axis=0), axis=1), LEAST_PROBABILITY)
    return np.asarray(cells / cells.sum(axis=1, keepdims=True))


def turned_correlations(tree: Tree, rho: FloatArray, target: Tree) -> FloatArray:
    """Return the correlations of every node with its parent in another rooting of a tree."""
    moved = np.flatnonzero((target.parent >= 0) & (target.parent != tree.parent))
    out = np.where(target.parent >= 0, rho, 0.0)
    out[moved] = rho[target.parent[moved]]  # the edge was that of the other end
    return out

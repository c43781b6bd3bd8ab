"""Real columns that are so far from normal that the usual test of their correlation does not hold.

If two columns are independent, r has the variance 1/(n − 1) whatever their distributions. But the
test of many pairs asks for probabilities of 10⁻⁵ and less, and so far out the skewness and the
kurtosis of r matter: about γ_x·γ_y/√n and κ_x·κ_y/n for columns of skewness γ and excess kurtosis κ
(Pitman 1937). Pairs for which they are too large are tested by the correlation of their normal
scores, which has the same distribution for all continuous columns. Which pairs these are depends on
the columns one by one, so it favors neither answer.
"""

from __future__ import annotations

import numpy as np

from latentree.data import Parts, Schema, Table
from latentree.distances._arrays import mirrored
from latentree.distances._functions import (
    Curve,
    Functions,
    Units,
    each_column,
    normal_curve,
    normal_score,
)
from latentree.distances._reductions import correlations
from latentree.distances._statistics import Statistics
from latentree.distances._sums import Sums
from latentree.typing import BoolArray, FloatArray, IntArray

FARTHEST = 0.02
"""Skewness and excess kurtosis of r up to which it is tested as that of normal columns. In the
first terms of Edgeworth's series, skewness times z³/6 and kurtosis times z⁴/24, the probability
beyond z = 4.6 standard errors is then off by a third each."""


def far_from_normal(n: float | FloatArray, statistics: Statistics, rows: Parts) -> BoolArray:
    """Find the pairs of real columns whose correlation is not distributed as that of normal ones.

    Skewness and kurtosis are those of the first part of the rows, or what the most extreme value of
    all rows alone makes of them, if that is more.

    Parameters
    ----------
    n : float or array of shape (m, m)
        Weight of the rows of every pair.
    statistics : Statistics
        Sums of the columns over all rows.
    rows : Parts
        The rows; they may have more columns.

    Returns
    -------
    array of bool of shape (m, m)
        Symmetric.
    """
    columns = _columns(rows, statistics.names)
    skewness, kurtosis = rows.tables.one(0, _shape, columns)
    weight = np.maximum(statistics.column_weights(), 1.0)
    (mean, spread), (low, high) = statistics.moments, statistics.sums.extremes()
    away = np.maximum(high - mean, mean - low)
    extreme = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0.0)
    skewness = np.maximum(np.abs(skewness), extreme**3 / weight)
    kurtosis = np.maximum(np.abs(kurtosis), extreme**4 / weight)
    pair = np.maximum(n, 1.0)
    far: BoolArray = np.outer(skewness, skewness) > FARTHEST * np.sqrt(pair)
    far |= np.outer(kurtosis, kurtosis) > FARTHEST * pair
    np.fill_diagonal(far, False)
    return far


def _columns(rows: Parts, names: tuple[str, ...]) -> IntArray:
    """Return the numbers of some columns."""
    place = {name: column for column, name in enumerate(rows.names)}
    return np.array([place[name] for name in names])


def _shape(table: Table, columns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return skewness and excess kurtosis of some columns; 0 where a column is constant."""
    x = table.values[:, columns]
    present = ~np.isnan(x)
    w = table.weight_array()[:, None] * present
    n = np.maximum(w.sum(axis=0), 1e-300)
    z = np.where(present, x, 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        z = np.where(present, z - (w * z).sum(axis=0) / n, 0.0)
        square = z * z
        variance = (w * square).sum(axis=0) / n
        third = (w * square * z).sum(axis=0) / n / variance**1.5
        fourth = (w * square * square).sum(axis=0) / n / variance**2 - 3.0
    return np.nan_to_num(third), np.nan_to_num(fourth)


def score_correlations(
    rows: Parts, names: tuple[str, ...], powers: int = 1
) -> tuple[FloatArray, float | FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the correlations of the normal scores of some columns, and what they come from.

    Ranks are those among the first part of the rows: all rows of a small table.

    Parameters
    ----------
    rows : Parts
        The rows.
    names : tuple of str
        Which of their columns.
    powers : int
        1 for the scores z alone; 2 for all z, then all z².

    Returns
    -------
    r : array of shape (m·powers, m·powers)
    n : float or array of that shape
        Weight of the rows of every pair.
    shape : two arrays of shape (m·powers,)
        Skewness and excess kurtosis of every function, in the first part of the rows.
    """
    columns = _columns(rows, names)
    curves = rows.tables.one(0, _curves, columns)
    sums = rows.tables.total(_score_sums, columns, curves, powers)
    shape = rows.tables.one(0, _score_shape, columns, curves, powers)
    assert sums.pairs is not None
    return mirrored(correlations(sums.pairs)), sums.pair_weights(), shape


def _curves(table: Table, columns: IntArray) -> list[Curve]:
    weights = table.weight_array()
    return each_column(lambda _, x: normal_curve(x, weights), table.values[:, columns])


def _scored(table: Table, columns: IntArray, curves: list[Curve], powers: int) -> Table:
    """Return powers of the normal scores of some columns, missing where their cells are."""

    def score(j: int, x: FloatArray) -> FloatArray:
        return np.where(np.isnan(x), np.nan, normal_score(x, *curves[j]))

    scores = np.column_stack(each_column(score, table.values[:, columns]))
    scores = np.hstack([scores**power for power in range(1, powers + 1)])
    names = [f"{table.names[j]}^{power + 1}" for power in range(powers) for j in columns]
    return Table(scores, Schema.gaussian(names), table.weights)


def _score_sums(table: Table, columns: IntArray, curves: list[Curve], powers: int) -> Sums:
    """Sum the functions of one part."""
    scores = _scored(table, columns, curves, powers)
    return Sums.of(scores, Functions.of_schema(scores.schema, Units.plain(scores.n_columns)))


def _score_shape(
    table: Table, columns: IntArray, curves: list[Curve], powers: int
) -> tuple[FloatArray, FloatArray]:
    scores = _scored(table, columns, curves, powers)
    return _shape(scores, np.arange(scores.n_columns))

"""How the columns of a table are distributed: a few counts per variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentree.data import Table
from latentree.typing import FloatArray, IntArray

BINS = 24
"""Bars of a histogram."""


def summary(table: Table) -> dict[str, Any]:
    """Return the number of rows and, for every column, how often its values occur.

    Gaussian columns: ``mean``, ``deviation``, ``low``, ``high`` and ``counts`` in 24 equal bins
    from low to high. Discrete columns: ``counts`` of the states, end to end. Weighted, and without
    missing cells, whose number is ``missing``. The arrays are floats.
    """
    weights = table.weight_array()
    columns = range(table.n_columns)
    out: dict[str, Any] = {"rows": table.n_rows, "missing": table.missing_counts.astype(float)}
    if table.family != "gaussian":
        counts = [_state_counts(table, j, weights) for j in columns]
        return {**out, "counts": np.concatenate(counts)}
    parts = [_histogram(np.asarray(table.column(j)), weights) for j in columns]
    for place, key in enumerate(("mean", "deviation", "low", "high")):
        out[key] = np.array([part[0][place] for part in parts])
    return {**out, "counts": np.concatenate([part[1] for part in parts]), "bins": BINS}


def _state_counts(table: Table, j: int, weights: FloatArray) -> FloatArray:
    codes = table.column(j)
    known = codes >= 0
    n_states = int(table.cardinalities[j])
    return _counts(codes[known].astype(np.int64), weights[known], n_states)


def _histogram(
    column: FloatArray, weights: FloatArray
) -> tuple[tuple[float, float, float, float], FloatArray]:
    known = ~np.isnan(column) & (weights > 0)
    values, weight = column[known], weights[known]
    if not values.size:
        return (0.0, 0.0, 0.0, 0.0), np.zeros(BINS)
    low, high = float(values.min()), float(values.max())
    mean = float(np.average(values, weights=weight))
    deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
    if not high > low:
        counts = np.zeros(BINS)
        counts[BINS // 2] = weight.sum()
        return (mean, deviation, low, high), counts
    # Bins of the unit interval: a range that is tiny or huge has no edges of its own.
    place = np.minimum(((values - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
    return (mean, deviation, low, high), _counts(place, weight, BINS)


def _counts(places: IntArray, weights: FloatArray, size: int) -> FloatArray:
    return np.bincount(places, weights, minlength=size).astype(np.float64)

"""How the columns of a table are distributed: a few counts per variable."""

from __future__ import annotations

import numpy as np

from latentree.data import Table
from latentree.explorer._packed import PageData
from latentree.typing import FloatArray, IntArray

BINS = 24
"""Bars of a histogram."""


def summary(table: Table) -> PageData:
    """Return the number of rows and, for every column, how often its values occur.

    ``counts`` holds the counts of all columns end to end: of the states of a column with states,
    and of 24 equal bins from ``low`` to ``high`` of a column of numbers, which has a ``mean`` and
    a ``deviation`` too. Weighted, and without missing cells, whose number is ``missing``. The
    arrays are floats.
    """
    weights = table.weight_array()
    out: PageData = {"rows": table.n_rows, "missing": table.missing_counts.astype(float)}
    is_number = [kind in ("real", "count") for kind in table.schema.kinds]
    moments = np.zeros((table.n_columns, 4))
    counts = []
    for j in range(table.n_columns):
        if is_number[j]:
            whole = table.schema.kinds[j] == "count"
            moments[j], own = _histogram(np.asarray(table.column(j)), weights, whole)
        else:
            own = _state_counts(table, j, weights)
        counts.append(own)
    if any(is_number):
        out |= dict(zip(("mean", "deviation", "low", "high"), moments.T, strict=True))
        out["bins"] = BINS
    return {**out, "counts": np.concatenate(counts)}


def _state_counts(table: Table, j: int, weights: FloatArray) -> FloatArray:
    codes = table.column(j)
    known = codes >= 0
    n_states = int(table.cardinalities[j])
    return _counts(codes[known].astype(np.int64), weights[known], n_states)


def _histogram(
    column: FloatArray, weights: FloatArray, whole: bool
) -> tuple[tuple[float, float, float, float], FloatArray]:
    """Return mean, deviation, ends and counts of a column of numbers."""
    known = ~np.isnan(column) & (weights > 0)
    values, weight = column[known], weights[known]
    if not values.size:
        return (0.0, 0.0, 0.0, 0.0), np.zeros(BINS)
    low, high = float(values.min()), float(values.max())
    if whole:  # every bar holds as many counts as any other
        low, high = low - 0.5, low - 0.5 + BINS * np.ceil((high - low + 1) / BINS)
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

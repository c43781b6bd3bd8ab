"""Rows in the order of time whose columns are levels: each row is nearly the one before."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from latentree.data._column_facts import TRACKED
from latentree.data._dates import date_keys
from latentree.data._name_words import names_time
from latentree.data._raw import Column, RawTable
from latentree.data._table import Table
from latentree.errors import DataWarning
from latentree.typing import AnyArray, FloatArray

_SHARE = 0.1
"""Rows that count as independent ones, as a share of all, below which there is a warning."""


def warn_of_levels(raw: RawTable, table: Table) -> None:
    """Warn if rows are in the order of time and tell far less than as many independent ones.

    Two columns with lag-1 correlations r each have the correlation of n (1 − r²) / (1 + r²)
    independent rows (Bartlett 1935).
    """
    clock = next(_clocks(raw), None)
    numbers = [j for j, kind in enumerate(table.schema.kinds) if kind in ("real", "count")]
    numbers = [j for j in numbers if not names_time(table.names[j])]
    if clock is None or len(numbers) < 2 or 2 * len(numbers) < table.n_columns:
        return
    lagged = np.array([_lagged_correlation(table.column(j)) for j in numbers])
    r = max(0.0, float(np.median(lagged)))
    share = (1.0 - r**2) / (1.0 + r**2)
    if share < _SHARE:
        n_free = max(1, round(share * table.n_rows))
        warnings.warn(
            f"rows are in the order of {clock} and each is nearly the one before (lag-1 "
            f"correlation {r:.2f}): {table.n_rows:,} such rows tell as much as about {n_free:,} "
            "independent ones, so columns that drift look dependent. Learn from differences of "
            "successive rows instead, as in X.diff(), and give support a block length "
            "(--block-length)",
            DataWarning,
            stacklevel=5,
        )


def _clocks(raw: RawTable) -> Iterator[str]:
    """Yield what tells the time of the rows and never goes back, or never forward."""
    if raw.is_dated:
        yield "the index"
    if raw.matrix is not None:
        for j, name in enumerate(raw.names):
            if raw.named and names_time(name) and _is_monotone(raw.matrix[:, j]):
                yield repr(name)
    for column in raw.columns:
        if any(map(_is_monotone, _times(column))):
            yield repr(column.name) if column.name else "its first column"


def _times(column: Column) -> Iterator[AnyArray]:
    """Yield numbers that sort the rows of a column that tells the time, in every reading of it."""
    if column.missing is not None and column.missing.any():
        return
    is_named = column.kind in ("integer", "real") and names_time(column.name)
    if column.kind == "date" or is_named:
        yield column.values
    elif column.kind == "label" and not column.declared:
        yield from _text_times(column)


def _text_times(column: Column) -> Iterator[AnyArray]:
    """Yield the ranks of dates that are written as text, under either order of day and month."""
    values = column.values[:: max(1, column.values.size // TRACKED)].tolist()  # some rows suffice
    if column.coded:
        assert column.order is not None
        values = [column.order[place] for place in values]
    keys = []
    for text in values:
        key = date_keys(text) if isinstance(text, str) else None
        if key is None:
            return
        keys.append(key)
    for which in (0, 1):
        rank = {key: place for place, key in enumerate(sorted({key[which] for key in keys}))}
        yield np.array([rank[key[which]] for key in keys])


def _is_monotone(values: AnyArray) -> bool:
    """Whether values change and go one way."""
    steps = values[1:] >= values[:-1]
    back = values[1:] <= values[:-1]
    return bool(steps.all() != back.all())


def _lagged_correlation(x: FloatArray) -> float:
    """Return the correlation of the cells of a column with those of the row before."""
    scaled = np.asarray(x, np.float64) / max(np.nanmax(np.abs(x)), np.finfo(float).tiny)
    centered = scaled - np.nanmean(scaled)  # squares of numbers up to 1 are finite
    pairs = centered[1:] * centered[:-1]
    there = ~np.isnan(pairs)
    spread = np.nansum(centered**2) / np.isfinite(centered).sum()
    return float(pairs[there].sum() / max(1, there.sum() + 1) / spread) if spread > 0 else 0.0

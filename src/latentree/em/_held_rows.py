"""Which rows are held out, and whether what they gain is more than chance."""

from __future__ import annotations

import numpy as np

from latentree.data import Table
from latentree.errors import DataError, ModelError
from latentree.typing import FloatArray, IntArray

# Constants were chosen on nltcs, plants and 1,500 rows of plants
# (docs/evidence/prediction.md).
LEAST_SHARE, MOST_SHARE, ENOUGH_ROWS = 0.1, 0.25, 500
"""A tenth of the rows is held out; of a small table more, as few rows choose badly."""
FOLDS = 4
"""Where every row is held out once, a fourth at a time: fewer choose badly, more are missing."""
MANY_ROWS = 5_000
"""From so many rows on, one part of them is enough to decide."""
GROUPS = 10
"""Groups of held-out rows, from whose gains the standard error of the gain is known."""


def held_out_split(
    table: Table, fraction: float | None, rng: np.random.Generator
) -> tuple[Table, Table]:
    """Return the rows to learn from, and those that are held out, drawn at random."""
    if table.n_rows < 2:
        raise DataError("there is 1 row, but one to learn from and one to hold out are needed")
    if fraction is None:
        fraction = float(np.clip(ENOUGH_ROWS / table.n_rows, LEAST_SHARE, MOST_SHARE))
    if not 0.0 < fraction < 1.0:
        raise ModelError(f"validation_fraction is {fraction}, but must be between 0 and 1")
    order = rng.permutation(table.n_rows)
    cut = int(np.clip(round(fraction * table.n_rows), 1, table.n_rows - 1))
    return table.take(np.sort(order[cut:])), table.take(np.sort(order[:cut]))


def held_out_splits(
    table: Table, fraction: float | None, rng: np.random.Generator, are_folds: bool
) -> list[tuple[Table, Table]]:
    """Return pairs of rows to learn from and rows that are held out.

    One pair; several, in which every row is held out once, if folds are wanted, no fraction is
    given, and there are few rows.
    """
    if not are_folds or fraction is not None or table.n_rows >= MANY_ROWS:
        return [held_out_split(table, fraction, rng)]
    folds = dealt_folds(table.n_rows, rng)
    return [(without_fold(table, fold), table.take(fold)) for fold in folds]


def dealt_folds(n_rows: int, rng: np.random.Generator) -> list[IntArray]:
    """Deal the numbers of the rows into ``FOLDS`` folds, each in ascending order."""
    order = rng.permutation(n_rows)
    return [np.sort(order[number::FOLDS]) for number in range(FOLDS)]


def without_fold(table: Table, fold: IntArray) -> Table:
    """Return the rows that are not in a fold."""
    return table.take(np.setdiff1d(np.arange(table.n_rows), fold))


def dealt_groups(table: Table, n_groups: int = GROUPS) -> list[Table]:
    """Deal rows into groups, or one row per group if there are fewer."""
    n_groups = min(n_groups, table.n_rows)
    return [table.take(np.arange(first, table.n_rows, n_groups)) for first in range(n_groups)]


def error_of_sum(gains: FloatArray) -> float:
    """Return the standard error of the sum of the groups' gains; 0 if there is one group."""
    return float(np.sqrt(gains.size) * gains.std(ddof=1)) if gains.size > 1 else 0.0

"""Checks that a table can be learned from, without copies of the data."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from latentree.errors import DataError
from latentree.typing import ArrayOrSparse, BoolArray, FloatArray, IntArray, Labels

_CHUNK_CELLS = 1 << 20
"""Cells that are looked at together: temporaries of a million cells (8 MB) stay in the cache."""

MISSING = (
    "", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NaN", "nan", "-NaN", "-nan", "NULL", "null",
    "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", ".", "?", "-", "–", "—", "..", "...", ":", "n.a.",
    "N.A.", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NULL!",
)  # fmt: skip
"""Cells that stand for missing values: those of pyarrow, signs alone, as statistics offices write
them, and errors of spreadsheets."""

OddCell = tuple[int, object]
"""Row and value of a cell that is no number in a column of numbers."""


def listing(items: Sequence[object]) -> str:
    """Show the first five, and how many there are when there are more."""
    shown = ", ".join(str(item) if isinstance(item, tuple) else repr(item) for item in items[:5])
    return shown if len(items) <= 5 else f"{shown}, … ({len(items)} in all)"


def check_distinct(names: Sequence[str]) -> None:
    """Refuse names that occur twice."""
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise DataError(f"column names must differ, but these occur twice: {listing(twice)}")


def default_names(n_columns: int) -> tuple[str, ...]:
    """Return the names of columns that have none: ``x0``, ``x1``, …."""
    return tuple(f"x{j}" for j in range(n_columns))


def row_chunks(values: ArrayOrSparse) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about a million cells, so that temporaries stay small."""
    n, m = values.shape
    step = max(1, _CHUNK_CELLS // max(1, m))
    for start in range(0, n, step):
        yield start, min(n, start + step)


def has_nan(values: FloatArray) -> bool:
    """Whether a finite-or-NaN array has a NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one pass without temporaries settles the usual case
            return False
    return any(bool(np.isnan(values[a:b]).any()) for a, b in row_chunks(values))


def odd_cell(cells: Iterable[object]) -> OddCell | None:
    """Return row and value of the first cell that is no number, if more than half are numbers.

    Missing cells are None.
    """
    first, numeric, others = None, 0, 0
    for row, cell in enumerate(cells):
        if cell is None:
            continue
        if is_number(cell):
            numeric += 1
            continue
        others += 1
        first = first or (row, cell)
    return first if numeric > others else None


def is_number(cell: object) -> bool:
    """Whether a cell is a number, or text that says one."""
    if isinstance(cell, numbers.Real | Decimal):
        return not isinstance(cell, bool | np.bool_)
    if not isinstance(cell, str) or "_" in cell:  # Python alone reads 1_000
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def odd_error(name: str, odd: OddCell) -> DataError:
    """Say which cell makes a column of numbers one of text, and what to do about it."""
    row, value = odd
    return DataError(
        f"column {name!r} holds numbers, but {value!r} in row {row} (counted from 0): correct such "
        f"cells, leave them empty (missing), drop column {name!r}, or use family='discrete' if "
        "numbers are codes",
        [name],
    )


def find_infinite(values: FloatArray) -> tuple[int, int] | None:
    """Return the first infinite cell as ``(row, column)``."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return None
    for start, stop in row_chunks(values):
        infinite = np.isinf(values[start:stop])
        if infinite.any():
            row, column = np.unravel_index(infinite.argmax(), infinite.shape)
            return start + int(row), int(column)
    return None


_CODES = tuple(float(sign * (10**digits - 1)) for digits in (2, 3, 4, 5) for sign in (-1, 1))
"""±99, ±999, ±9999 and ±99999, with which people write missing values."""


def missing_codes(
    names: Sequence[str], values: ArrayOrSparse, labels: Sequence[Labels]
) -> Iterator[tuple[str, float]]:
    """Yield columns with a number that looks like a code for missing values.

    It is one of ±99, ±999, … at an end of the column, and either the only negative number or
    farther from the next number than all others are from each other.
    """
    if not isinstance(values, np.ndarray):  # sparse 0/1
        return
    for j, (name, own) in enumerate(zip(names, labels, strict=True)):
        numbers = [
            as_float(label) for label in own if not isinstance(label, str) and is_number(label)
        ]
        if own and len(numbers) < len(own):
            continue
        ends = numbers if own else (np.fmin.reduce(values[:, j]), np.fmax.reduce(values[:, j]))
        if len(ends) and (min(ends) in _CODES or max(ends) in _CODES):
            code = _outlying(np.unique(numbers if own else values[:, j]))
            if code is not None:
                yield name, code


def as_float(number: Any) -> float:
    """Return a number as a float, infinite if no float holds it."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _outlying(found: FloatArray) -> float | None:
    """Return a code at an end of sorted numbers that is far from all others."""
    found = found[~np.isnan(found)]
    # The lowest and the highest number, each against all others.
    for code, others in ((found[0], found[1:]), (found[-1], found[:-1])):
        if code in _CODES and others.size > 1:
            gap = float(np.abs(others - code).min())
            alone = code < 0 and others[0] >= 0
            if alone or gap > others[-1] - others[0]:
                return float(code)
    return None


# Learning ---------------------------------------------------------------------------------------


def refuse_columns(names: Sequence[str], bad: BoolArray, one: str, many: str) -> None:
    """Raise when nothing can be learned from some columns."""
    which = [names[j] for j in np.flatnonzero(bad).tolist()]
    if which:
        subject = "column" if len(which) == 1 else "columns"
        raise DataError(
            f"{subject} {listing(which)} {one if len(which) == 1 else many}, so nothing can be "
            "learned about it: drop such columns",
            which,
        )


def duplicate_columns(values: ArrayOrSparse) -> list[tuple[int, int]]:
    """Pairs (first, other) of equal columns; columns are compared only when their hashes agree."""
    hashes = _column_hashes(values)
    _, group = np.unique(hashes, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    sizes = np.diff(np.r_[starts, order.size])
    if not (sizes > 1).any():
        return []
    columns = values if isinstance(values, np.ndarray) else values.tocsc()
    pairs = []
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        first, *others = order[start : start + size].tolist()
        pairs += [(first, other) for other in others if _same_column(columns, first, other)]
    return sorted(pairs)


def _column_hashes(values: ArrayOrSparse) -> IntArray:
    """Sum of the cells' bits times random odd numbers, modulo 2⁶⁴: independent of the order."""
    n, m = values.shape
    factors = np.random.default_rng(0).integers(-(2**62), 2**62, n) * 2 + 1
    if not isinstance(values, np.ndarray):
        hashes: IntArray = values.astype(np.int64).T @ factors
        return hashes
    total = np.zeros(m, np.int64)
    for start, stop in row_chunks(values):
        if values.dtype == np.float64:
            bits = (values[start:stop] + 0.0).view(np.int64)  # −0.0 becomes 0.0
            # Round numbers have their bits at the top, where a product would push them out.
            bits = bits ^ (bits >> 32)
        else:
            bits = values[start:stop].astype(np.int64)
        bits *= factors[start:stop, None]
        total += bits.sum(axis=0)
    return total


def _same_column(columns: ArrayOrSparse, a: int, b: int) -> bool:
    if isinstance(columns, np.ndarray):
        equal_nan = columns.dtype == np.float64
        return bool(np.array_equal(columns[:, a], columns[:, b], equal_nan=equal_nan))
    starts, rows = columns.indptr, columns.indices
    return bool(np.array_equal(rows[starts[a] : starts[a + 1]], rows[starts[b] : starts[b + 1]]))

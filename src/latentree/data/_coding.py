"""From values to codes 0, 1, … with −1 for missing, and the labels behind the codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from latentree.data._checks import listing
from latentree.data._raw import Column
from latentree.errors import DataError
from latentree.typing import AnyArray, BoolArray, Labels, Unseen

SHORT_RANGE = 8
"""Integers from a range of at most so many numbers are coded in whole matrices, by one comparison
of the matrix for each number."""

_COUNTED_RANGE = 4096
"""Integers from a smaller range are coded by counting them, which is several times faster than
sorting; the counts stay in the nearest cache."""


class CodedColumn(NamedTuple):
    """Codes of a column, −1 where missing, and the label of every code."""

    codes: AnyArray
    labels: Labels


def smallest_type(n_states: int) -> np.dtype[Any]:
    """Return the smallest signed integer type that holds the codes and −1."""
    return np.min_scalar_type(-max(2, n_states))


def code(column: Column) -> CodedColumn:
    """Code a column by its own distinct values, in the order declared or else sorted.

    Declared categories that do not occur get no code: nothing could be learned about them, and a
    state without a row makes every determinant of its column zero.
    """
    if column.kind == "empty" or (column.missing is not None and column.missing.all()):
        return CodedColumn(np.full(column.values.size, -1, np.int8), ())
    if column.kind == "date":
        raise date_error(column.name)
    if column.kind == "label":
        return _code_objects(column)
    return _code_numbers(column.values, column.missing)


def date_error(name: str) -> DataError:
    """Return the error for dates and times."""
    return DataError(
        f"column {name!r} holds dates or times: convert it to numbers or categories, or drop it",
        [name],
    )


def _code_numbers(values: AnyArray, missing: BoolArray | None) -> CodedColumn:
    """Code numbers or booleans: by counting if their range is short, by sorting otherwise."""
    present = values if missing is None else values[~missing]
    if values.dtype == np.bool_:
        present = present.view(np.int8)
    low, high = present.min(), present.max()
    if present.dtype.kind in "iu" and int(high) - int(low) < _COUNTED_RANGE:
        wide = present if present.dtype == np.uint64 else present.astype(np.int64)
        offsets = (wide - wide.dtype.type(low)).astype(np.int64)
        occurs = np.bincount(offsets) > 0
        codes = (np.cumsum(occurs) - 1)[offsets]
        distinct = np.flatnonzero(occurs).astype(object) + int(low)
        labels = tuple(distinct.tolist())
    else:
        found, codes = np.unique(present, return_inverse=True)
        labels = tuple(found.tolist())
    if values.dtype == np.bool_:
        labels = tuple(map(bool, labels))
    return CodedColumn(_spread(codes, len(labels), missing), labels)


def _spread(codes: AnyArray, n_states: int, missing: BoolArray | None) -> AnyArray:
    dtype = smallest_type(n_states)
    if missing is None:
        return codes.astype(dtype)
    out = np.full(missing.size, -1, dtype)
    out[~missing] = codes
    return out


def _code_objects(column: Column) -> CodedColumn:
    """Code labels in the order declared, or else sorted."""
    values = column.values if column.missing is None else column.values[~column.missing]
    if column.coded:
        assert column.order is not None
        occurs = np.bincount(values, minlength=len(column.order)) > 0
        codes = (np.cumsum(occurs) - 1)[values]
        labels = tuple(column.order[place] for place in np.flatnonzero(occurs).tolist())
        return CodedColumn(_spread(codes, len(labels), column.missing), labels)
    distinct = set(values.tolist())
    if column.order is None:
        labels = sort_labels(distinct)
    else:
        labels = tuple(label for label in column.order if label in distinct)
    number = {label: index for index, label in enumerate(labels)}
    codes = np.fromiter(map(number.__getitem__, values.tolist()), np.int64, values.size)
    return CodedColumn(_spread(codes, len(labels), column.missing), labels)


def sort_labels(labels: Iterable[Hashable]) -> Labels:
    """Sort labels; those that cannot be compared by type and text."""
    labels = list(labels)
    if len(set(map(type, labels))) > 1:  # which of them meet must not go by the order of a set
        labels.sort(key=lambda label: (type(label).__name__, str(label)))
    try:
        with np.errstate(all="ignore"):  # a NumPy scalar casts what it is compared with
            return tuple(sorted(labels))  # type: ignore[type-var]
    except (TypeError, ValueError, OverflowError):  # no float is as large as 10**400
        return tuple(sorted(labels, key=lambda label: (type(label).__name__, str(label))))


def union(all_labels: Sequence[Labels]) -> Labels:
    """Return one set of labels for all columns; the columns' own order if they agree on it."""
    distinct = set(all_labels)
    return distinct.pop() if len(distinct) == 1 else sort_labels(set().union(*distinct))


def recode(
    coded: CodedColumn, name: str, number: Mapping[Hashable, int], unseen: Unseen = "error"
) -> AnyArray:
    """Code by given labels instead of the column's own; labels are matched by equality."""
    unknown = [label for label in coded.labels if label not in number]
    if unknown and unseen == "error":
        raise DataError(
            f"column {name!r} holds {listing(unknown)}, but its known labels are "
            f"{listing(list(number))}: correct it, or say unseen='missing' to take unknown labels "
            "as missing"
        )
    # The last entry serves the missing code −1.
    codes = [number.get(label, -1) for label in coded.labels]
    new = np.array([*codes, -1], smallest_type(len(number)))
    recoded: AnyArray = new[coded.codes]
    return recoded


def numbering(labels: Labels) -> dict[Hashable, int]:
    """Return the code of every label."""
    return {label: index for index, label in enumerate(labels)}


def stack(codes: Sequence[AnyArray], n_states: int) -> AnyArray:
    """Put columns of codes side by side, rows contiguous."""
    dtype = smallest_type(n_states)
    columns = np.empty((len(codes), codes[0].size), dtype)
    for j, column in enumerate(codes):
        columns[j] = column
    return np.ascontiguousarray(columns.T)


def code_matrix(matrix: AnyArray) -> tuple[AnyArray, tuple[Labels, ...]] | None:
    """Code a whole matrix of integers from a short range at once, or return None."""
    if matrix.dtype.kind not in "iub":
        return None
    numbers = matrix.view(np.int8) if matrix.dtype.kind == "b" else matrix
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= SHORT_RANGE:
        return None
    states = range(low, high + 1)
    names: Labels = tuple(map(bool, states)) if matrix.dtype.kind == "b" else tuple(states)
    occurs = np.array([(numbers == state).any(axis=0) for state in states])
    codes = (numbers - low if low else numbers).astype(np.int8, order="C")
    labels = [names] * matrix.shape[1]
    for j in np.flatnonzero(~occurs.all(axis=0)).tolist():  # columns that lack some state
        labels[j] = tuple(name for name, there in zip(names, occurs[:, j], strict=True) if there)
        codes[:, j] = (np.cumsum(occurs[:, j]) - 1)[codes[:, j]]
    return codes, tuple(labels)

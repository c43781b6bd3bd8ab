"""What the rows of a column say about its kind: facts that add up over parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from latentree.data._coding import SHORT_RANGE
from latentree.data._dates import are_dates, are_days
from latentree.data._number_texts import (
    DECIMALS,
    as_numbers,
    labels_in,
    read_labels,
)
from latentree.data._raw import Column, RawTable
from latentree.data._table import NumberFormat
from latentree.errors import DataError
from latentree.typing import AnyArray, BoolArray, FloatArray, IntArray

TRACKED = 4096
"""Different values of a column that are told apart; with more, only their number is known, unless
every row has its own. It bounds the memory of the facts of a column."""

LONG = 2**53
"""Whole numbers beyond this are no measurements: a float cannot hold them."""

_ROUNDING = 1e-15
"""Numbers with a fraction that differ by less, relative to their size, are one: 4 units in the last
place."""

_BLOCK = 1 << 14
"""Rows that are searched for a fraction at a time: most columns show one in the first rows."""

_HEAD = 64
"""Rows in which most real columns show that they are real."""


@dataclass(frozen=True)
class ColumnFacts:
    """What the rows of a column say about its kind; adds up over parts.

    Parameters
    ----------
    type : {"number", "boolean", "label", "date", "empty"}
        How the column is stored; whole numbers may be stored as floats.
    n_rows, n_present : int
        Number of rows, and of those with a value.
    values : array of float, frozenset or None
        The different values, sorted if they are numbers; None if they are too many, or if numbers
        with a fraction take more than two values.
    counts : array of int or None
        How often every number occurs.
    fraction : tuple of row and value, optional
        The first number that is not whole or not finite.
    is_long : bool
        Whether integers need more than 53 bits; their values are kept as labels.
    order : tuple or None
        Declared categories.
    is_ordered : bool
        Whether they are declared to be ordered.
    is_date : bool
        Whether all values say a date: text in a usual spelling, or numbers such as 20170131.
    readings : tuple of Reading
        What the column is as numbers, if all of its texts are numbers, for every decimal mark that
        allows it.
    """

    type: str
    n_rows: int
    n_present: int = 0
    values: Any = frozenset()
    counts: IntArray | None = None
    fraction: tuple[int, float] | None = None
    is_long: bool = False
    low: float = np.inf
    high: float = -np.inf
    order: tuple[Hashable, ...] | None = None
    is_ordered: bool = False
    is_date: bool = False
    readings: tuple[Reading, ...] = ()

    @property
    def has_fraction(self) -> bool:
        """Whether some number is not whole."""
        return self.fraction is not None

    @property
    def is_settled(self) -> bool:
        """Whether no further row can change the kind: more than two numbers, with a fraction."""
        return self.type == "number" and self.has_fraction and self.values is None

    @property
    def n_different(self) -> int:
        """Number of different values; more than can be told apart count as :data:`TRACKED` + 1."""
        return TRACKED + 1 if self.values is None else len(self.values)

    @property
    def constant(self) -> Hashable | None:
        """The only value, up to the last bits of numbers; None if there are more."""
        if self.type == "number":
            size = max(abs(self.low), abs(self.high))
            apart = _ROUNDING * size if self.has_fraction else 0.0
            is_one = np.isfinite(size) and self.high - self.low <= apart
            return plain_number(self.low) if is_one else None
        return next(iter(self.values)) if self.n_different == 1 else None

    def __add__(self, other: ColumnFacts) -> ColumnFacts:
        if self.type == "empty":
            return replace(other, n_rows=self.n_rows + other.n_rows)
        if other.type == "empty":
            return replace(self, n_rows=self.n_rows + other.n_rows)
        if self.type != other.type:
            if not (self.is_long or other.is_long):
                raise DataError(f"it is {self.type} in one part and {other.type} in another")
            return _as_labels(self) + _as_labels(other)
        later = other.fraction and (self.n_rows + other.fraction[0], other.fraction[1])
        same_order = self.order == other.order
        both = replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            n_present=self.n_present + other.n_present,
            fraction=self.fraction or later,
            is_long=self.is_long or other.is_long,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            order=self.order if same_order else None,
            is_ordered=self.is_ordered and other.is_ordered and same_order,
            is_date=self.is_date and other.is_date,
            readings=tuple(
                mine + theirs
                for mine in self.readings
                for theirs in other.readings
                if mine.format == theirs.format
            ),
        )
        if self.values is None or other.values is None:
            return replace(both, values=None, counts=None)
        if self.type != "number":
            return _compact(replace(both, values=self.values | other.values))
        values, place = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        counts = np.bincount(
            place, np.concatenate([self.counts, other.counts]), values.size
        ).astype(np.int64)
        return _compact(replace(both, values=values, counts=counts))


@dataclass(frozen=True)
class Reading:
    """The facts of a column of text as numbers, and how these are written."""

    format: NumberFormat
    facts: ColumnFacts
    styles: frozenset[str]
    is_marked: bool

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            self.format,
            self.facts + other.facts,
            self.styles | other.styles,
            self.is_marked or other.is_marked,
        )


def _readings(column: Column, labels: frozenset[Hashable]) -> Iterator[Reading]:
    """Yield what a column of text is as numbers, for every decimal mark that allows it."""
    for decimal in DECIMALS:
        read = read_labels(labels, decimal)
        if read is not None:
            values = as_numbers(column, read.values)
            missing = np.isnan(values)
            facts = _number_facts(values, missing if missing.any() else None)
            yield Reading(read.format, facts, read.styles, read.is_marked)


def _as_labels(facts: ColumnFacts) -> ColumnFacts:
    """Return the facts of whole numbers as those of labels, which integers over 53 bits are."""
    if facts.type != "number":
        return facts
    labels = None if facts.values is None else frozenset(map(plain_number, facts.values.tolist()))
    return _compact(replace(facts, type="label", values=labels, counts=None, is_long=True))


def _compact(facts: ColumnFacts) -> ColumnFacts:
    """Drop the values where they can no longer change the kind, so that facts stay small."""
    if facts.values is None:
        return facts
    many = len(facts.values) > TRACKED and (
        facts.type != "number" or len(facts.values) < facts.n_present
    )
    if many or (facts.has_fraction and len(facts.values) > 2):
        return replace(facts, values=None, counts=None)
    return facts


def column_facts(raw: RawTable) -> list[ColumnFacts]:
    """Return the facts of every column."""
    if raw.matrix is None:
        return [_facts_of_column(column) for column in raw.columns]
    if raw.matrix.dtype.kind != "f":
        short = _short_range_facts(raw.matrix)
        return short or [_facts_of_column(column) for column in raw.as_columns()]
    n_rows, m = raw.matrix.shape
    settled = _clearly_real(raw.matrix)
    facts = [ColumnFacts("empty", n_rows)] * m
    for j in np.flatnonzero(settled).tolist():
        column = raw.matrix[:, j]
        facts[j] = ColumnFacts(
            "number", n_rows, n_rows, None, None, _first_fraction(column), low=-np.inf, high=np.inf
        )
    rest = np.flatnonzero(~settled)
    for start in range(0, rest.size, 64):
        some = rest[start : start + 64]
        block = np.ascontiguousarray(raw.matrix[:, some].T)
        for j, values in zip(some.tolist(), block, strict=True):
            missing = np.isnan(values)
            facts[j] = _number_facts(values, missing if missing.any() else None)
    return facts


def _clearly_real(matrix: AnyArray) -> BoolArray:
    """Find columns whose first rows have a fraction and more than two values."""
    head = matrix[:_HEAD]
    with np.errstate(invalid="ignore", over="ignore"):
        fraction = (np.isfinite(head) & (head != np.rint(head))).any(axis=0)
        ordered = np.sort(head, axis=0)  # NaN at the end
        steps = (np.diff(ordered, axis=0) > 1e-9 * np.abs(ordered[:-1])).sum(axis=0) >= 2
    real: BoolArray = fraction & steps
    return real


def _short_range_facts(matrix: AnyArray) -> list[ColumnFacts] | None:
    """Return the facts of integers from a short range, all columns at once."""
    numbers = matrix.view(np.int8) if matrix.dtype.kind == "b" else matrix
    n_rows = len(matrix)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= SHORT_RANGE or max(-low, high) > LONG:
        return None
    states = np.arange(low, high + 1)
    counts = np.array([(numbers == state).sum(axis=0) for state in states])
    facts = []
    for own in counts.T:
        values, there = states[own > 0], own[own > 0]
        if matrix.dtype.kind == "b":
            facts.append(
                ColumnFacts("boolean", n_rows, n_rows, frozenset(map(bool, values.tolist())))
            )
            continue
        facts.append(whole_number_facts(n_rows, values.astype(np.float64), there))
    return facts


def whole_number_facts(n_rows: int, values: FloatArray, counts: IntArray) -> ColumnFacts:
    """Return the facts of whole numbers without gaps: sorted values, and how often they occur."""
    return ColumnFacts(
        "number", n_rows, n_rows, values, counts, low=float(values[0]), high=float(values[-1])
    )


def _facts_of_column(column: Column) -> ColumnFacts:
    """Return the facts of one column."""
    n_rows = column.values.size
    if column.kind == "empty" or (column.missing is not None and column.missing.all()):
        return ColumnFacts("empty", n_rows)
    n_present = n_rows - (0 if column.missing is None else int(column.missing.sum()))
    if column.kind == "date":
        return ColumnFacts("date", n_rows, n_present)
    if column.kind in ("real", "integer"):
        return _number_facts(column.values, column.missing)
    present = column.values if column.missing is None else column.values[~column.missing]
    if column.kind == "boolean":
        return ColumnFacts("boolean", n_rows, n_present, frozenset(np.unique(present).tolist()))
    labels = labels_in(column)
    if column.declared:
        facts = ColumnFacts(
            "label", n_rows, n_present, labels, order=column.order, is_ordered=column.is_ordered
        )
    else:
        is_date = are_dates(islice(labels, TRACKED))  # more are set aside in any case
        readings = () if is_date else tuple(_readings(column, labels))
        facts = ColumnFacts("label", n_rows, n_present, labels, is_date=is_date, readings=readings)
    return _compact(facts)


def _number_facts(values: AnyArray, missing: BoolArray | None) -> ColumnFacts:
    """Return the facts of numbers; those with a fraction keep no values if there are many."""
    present = values if missing is None else values[~missing]
    if not present.size:
        return ColumnFacts("empty", values.size)
    low, high = present.min(), present.max()
    fraction = None
    if present.dtype.kind == "f":
        fraction = _first_fraction(values, missing)
    elif int(low) < -LONG or int(high) > LONG:
        labels = frozenset(np.unique(present).tolist())
        facts = ColumnFacts("label", values.size, int(present.size), labels, is_long=True)
        return _compact(facts)
    facts = ColumnFacts(
        "number", values.size, int(present.size), None, None, fraction,
        low=float(low), high=float(high),
    )  # fmt: skip
    if fraction and np.unique(present[:1000]).size > 2:
        return facts
    is_exact = max(abs(float(low)), abs(float(high))) <= LONG
    if not fraction:
        facts = replace(facts, is_date=are_days(present))
    if not fraction and is_exact and float(high) - float(low) < TRACKED:  # faster than sorting
        occurs = np.bincount(present.astype(np.int64) - int(low))
        there = np.flatnonzero(occurs)
        return replace(facts, values=there + float(low), counts=occurs[there])
    found, counts = np.unique(present.astype(np.float64) + 0.0, return_counts=True)
    return _compact(replace(facts, values=found, counts=counts))


def _first_fraction(values: AnyArray, missing: BoolArray | None = None) -> tuple[int, float] | None:
    """Return row and value of the first number that is not whole, or not finite."""
    for start in range(0, values.size, _BLOCK):
        some = values[start : start + _BLOCK]
        odd = (some != np.rint(some)) | np.isinf(some)
        odd &= ~np.isnan(some) if missing is None else ~missing[start : start + _BLOCK]
        if odd.any():
            row = int(odd.argmax())
            return start + row, float(some[row])
    return None


def plain_number(value: float) -> float | int:
    """Return a whole number as an int."""
    return int(value) if float(value).is_integer() else float(value)

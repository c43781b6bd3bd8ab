"""The kind of every column: one rule for frames, arrays and files.

The rule sees a column through its :class:`ColumnFacts`, which add up over parts. :func:`decide`
turns them into a kind and a reason; ``docs/columns.md`` states the rule.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from latentree.data._checks import is_number
from latentree.data._coding import SHORT_RANGE, sort_labels
from latentree.data._raw import Column, RawTable
from latentree.data._table import KINDS
from latentree.errors import DataError
from latentree.typing import AnyArray, BoolArray, FloatArray, IntArray, Kind, KindsByName

MANY_LABELS = 100
"""Text with more different labels is set aside: it is free text or a name, not a category."""

FEW_VALUES = 10
"""Whole numbers with at most so many different values can be ordered answers: the longest usual
scale of a questionnaire is 0 to 10, or 1 to 10."""

SMALL_NUMBERS = 100
"""Answers are numbered from −100 to 100; 1980 to 1987 are years."""

SKEWNESS = 0.5
"""Counts have at least this skewness: that of Poisson counts with mean λ is 1/√λ, so λ ≤ 4."""

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

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_UNNAMED = ("", "Unnamed: 0")
"""What frames and files call a first column without a name."""

_INDEX = "__index_level_0__"
"""What pandas calls an index without a name in Parquet and Arrow files."""


class KindDecision(NamedTuple):
    """How a column is taken: its kind, or None if it is set aside, and why."""

    kind: Kind | None
    why: str


# What a column holds ----------------------------------------------------------------------------


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
            return _plain_number(self.low) if is_one else None
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


def _as_labels(facts: ColumnFacts) -> ColumnFacts:
    """Return the facts of whole numbers as those of labels, which integers over 53 bits are."""
    if facts.type != "number":
        return facts
    labels = None if facts.values is None else frozenset(map(_plain_number, facts.values.tolist()))
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
    if column.coded:
        assert column.order is not None
        there = np.flatnonzero(np.bincount(present, minlength=len(column.order)))
        labels = frozenset(column.order[place] for place in there.tolist())
    else:
        labels = frozenset(present.tolist())
    order = column.order if column.declared else None
    facts = ColumnFacts(
        "label", n_rows, n_present, labels, order=order, is_ordered=column.is_ordered
    )
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


def _plain_number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)


# The rule ---------------------------------------------------------------------------------------


def decide(facts: ColumnFacts, family: str = "auto") -> KindDecision:
    """Return the kind of a column and the reason, or None as the kind if it is set aside.

    ``family`` gaussian takes all numbers as real, discrete and symmetric take whole numbers and
    all labels as categories.
    """
    if facts.type == "empty":
        return KindDecision(None, "no value at all")
    if facts.type == "date":
        return KindDecision(None, "dates or times")
    if facts.n_rows > 1 and facts.constant is not None:
        return KindDecision(None, f"always {facts.constant!r}")
    if facts.type == "boolean" and family != "gaussian":
        return KindDecision("category", "true or false")
    if facts.type == "label":
        return _decide_labels(facts, family)
    if family == "gaussian":
        return KindDecision("real", "numbers")
    if family in ("discrete", "symmetric"):
        return KindDecision("category", f"{facts.n_different:,} different whole numbers")
    return _decide_numbers(facts)


def _decide_labels(facts: ColumnFacts, family: str) -> KindDecision:
    """Return the kind of a column of labels."""
    n, n_different = facts.n_present, facts.n_different
    if facts.is_long and n_different > 2:
        if family in ("discrete", "symmetric"):
            return KindDecision("category", f"{n_different:,} different whole numbers")
        return KindDecision(None, "whole numbers of more than 15 digits, as identifiers have")
    declared = facts.order is not None
    what = "categories" if declared else "text"
    odd = "" if declared else _odd_label(facts)
    if n_different > 2:
        if not declared and _are_dates(facts):
            return KindDecision(None, "dates or times as text")
        if n_different > TRACKED:
            return KindDecision(None, f"{what} with more than {TRACKED:,} different values{odd}")
        if n_different > FEW_VALUES and 2 * n_different > n:
            share = f"{n_different / n:.0%}".replace("%", " %")
            return KindDecision(None, f"{what} that differs in {share} of rows{odd}")
        if n_different > MANY_LABELS and family not in ("discrete", "symmetric"):
            return KindDecision(
                None, f"{n_different:,} different labels, too many for categories{odd}"
            )
    if facts.is_ordered:
        return KindDecision("ordered", f"{n_different} ordered categories")
    return KindDecision(
        "category", f"{n_different} {'label' if n_different == 1 else 'labels'}{odd}"
    )


def _odd_label(facts: ColumnFacts) -> str:
    """Say which label makes text of a column of numbers, if one does."""
    if facts.values is None or not all(isinstance(value, str) for value in facts.values):
        return ""
    others = [value for value in facts.values if not is_number(value)]
    if not others or 2 * len(others) >= len(facts.values):
        return ""
    return f" (text because of {min(others)!r})"


def _are_dates(facts: ColumnFacts) -> bool:
    return facts.values is not None and all(
        isinstance(value, str) and _DATE.fullmatch(value) for value in facts.values
    )


def _decide_numbers(facts: ColumnFacts) -> KindDecision:
    """Return the kind of a column of numbers."""
    n, n_different = facts.n_present, facts.n_different
    # Two rows with a fraction each are two measurements, not two categories.
    if n_different == 2 and not (facts.has_fraction and n == 2):
        return KindDecision("category", "2 different numbers")
    if facts.has_fraction:
        return KindDecision("real", "numbers with a fraction")
    span = facts.high - facts.low + 1
    if facts.values is not None:
        if n_different <= FEW_VALUES and max(-facts.low, facts.high) <= SMALL_NUMBERS:
            if span == n_different:
                return KindDecision("ordered", f"{n_different} consecutive whole numbers")
            if n >= 5 * n_different:
                return KindDecision("ordered", f"{n_different} different whole numbers")
        if n_different == n > FEW_VALUES and span <= 2 * n:
            return KindDecision(None, "a different whole number in every row, as identifiers have")
        if _is_count(facts):
            return KindDecision(
                "count", f"whole numbers from {facts.low:.0f}, skewed as counts are"
            )
    ends = f"{_plain_number(facts.low)} to {_plain_number(facts.high)}"
    return KindDecision("real", f"whole numbers from {ends}")


def _is_count(facts: ColumnFacts) -> bool:
    """Whether numbers start at 0 or 1, leave no gap up to the median, and are skewed."""
    values, counts = facts.values, facts.counts
    n = facts.n_present
    assert counts is not None
    if facts.low not in (0.0, 1.0) or 2 * facts.n_different > n:
        return False
    median = int(np.searchsorted(np.cumsum(counts), n / 2))
    if values[median] - values[0] != median:
        return False
    # Skewness m₃/m₂^(3/2) of the values with their counts.
    centered = values - (values @ counts) / n
    moment2, moment3 = (centered**2 @ counts) / n, (centered**3 @ counts) / n
    return bool(moment3 >= SKEWNESS * moment2**1.5)


# What is asked for ------------------------------------------------------------------------------


def check_wanted(kinds: KindsByName | None, names: Sequence[str]) -> dict[str, str]:
    """Return the kinds that were asked for by the names of columns, or raise."""
    wanted = {str(name): kind for name, kind in (kinds or {}).items()}
    known = (*KINDS, "ignore")
    for name, kind in wanted.items():
        if kind not in known:
            raise DataError(
                f"kinds: column {name!r} is to be {kind!r}, but kinds are {', '.join(known)}"
            )
        if name not in names:
            raise DataError(f"kinds: there is no column {name!r}")
    return wanted


def forced(name: str, kind: str, facts: ColumnFacts) -> KindDecision:
    """Return the decision that was asked for, or raise if the values do not allow it."""
    if kind == "ignore":
        return KindDecision(None, ASKED_FOR)
    if facts.type == "empty" or (facts.constant is not None and facts.n_rows > 1):
        return decide(facts)  # nothing can be learned about it, whatever it is called
    fault = ""
    if facts.type == "date":
        fault = "it holds dates or times: convert it to numbers or labels"
    elif kind in ("category", "ordered"):
        if facts.values is None:
            fault = f"it has more than {TRACKED:,} different values"
        elif kind == "ordered" and facts.type == "label" and facts.order is None:
            fault = f"it holds {_some_label(facts)!r}: declare the order of its labels"
    elif facts.type != "number":
        if kind == "real" and facts.is_long:
            return KindDecision("real", ASKED_FOR)
        fault = f"it holds {_some_label(facts)!r}, which is no number"
    elif kind == "count":
        if facts.fraction is not None:
            fault = f"it holds {facts.fraction[1]!r} in row {facts.fraction[0]}"
        elif facts.low < 0:
            fault = f"it holds {_plain_number(facts.low)}, which is less than 0"
    if fault:
        raise DataError(f"kinds: column {name!r} cannot be {kind}: {fault}")
    return KindDecision(kind, ASKED_FOR)  # type: ignore[arg-type]


def _some_label(facts: ColumnFacts) -> Hashable:
    """Return a label for a message, one that is no number if there is one."""
    labels: frozenset[Hashable] = facts.values or frozenset(("text",))
    return min(labels, key=lambda label: (is_number(label), str(label)))


def unnamed_place(names: Sequence[str]) -> int | None:
    """Return where the column without a name is that may label the rows."""
    if names and names[0] in _UNNAMED:
        return 0
    return list(names).index(_INDEX) if _INDEX in names else None


def are_row_labels(facts: ColumnFacts) -> bool:
    """Whether a column without a name labels the rows: dates, or another value in every row."""
    if not facts.n_rows == facts.n_present > 1 or facts.has_fraction:
        return False
    many_labels = facts.type == "label" and facts.values is None
    return (
        facts.type == "date"
        or many_labels
        or (facts.type in ("number", "label") and facts.n_different == facts.n_present)
    )


def labels_of(facts: ColumnFacts) -> tuple[Hashable, ...]:
    """Return the labels of a category or ordered column, in their order."""
    if facts.type == "number":
        return tuple(map(_plain_number, facts.values.tolist()))
    if facts.order is not None:
        return tuple(label for label in facts.order if label in facts.values)
    return sort_labels(facts.values)


def decisions(
    names: Sequence[str],
    named: bool,
    facts: Sequence[ColumnFacts],
    family: str,
    kinds: KindsByName | None,
) -> Iterator[KindDecision]:
    """Yield how every column is taken."""
    wanted = check_wanted(kinds, names)
    unnamed = unnamed_place(names) if named and len(names) > 1 else None
    for place, (name, own) in enumerate(zip(names, facts, strict=True)):
        if name in wanted:
            yield forced(name, wanted[name], own)
        elif place == unnamed and are_row_labels(own):
            yield KindDecision(None, ROW_LABELS)
        else:
            yield decide(own, family)


ASKED_FOR = "as asked for"
"""Why a column is of the kind that was given."""

ROW_LABELS = "row labels: a column without a name"
"""Why a column that labels the rows is set aside."""

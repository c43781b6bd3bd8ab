"""The kind of every column: one rule for frames, arrays and files.

The rule sees a column through its :class:`ColumnFacts`, which add up over parts. :func:`decide`
turns them into a kind and a reason; ``docs/reference/columns.md`` states the rule.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from latentree._plain import suggestion
from latentree.data._checks import is_number
from latentree.data._coding import sort_labels
from latentree.data._column_facts import TRACKED, ColumnFacts, Reading, plain_number
from latentree.data._dates import are_months, are_unix_times
from latentree.data._name_words import names_rows, names_time, numbers_rows
from latentree.data._number_texts import DECIMALS, number_text, said
from latentree.data._table import KINDS
from latentree.errors import DataError
from latentree.typing import Kind, KindsByName

MANY_LABELS = 100
"""Text with more different labels is set aside: it is free text or a name, not a category."""

FEW_VALUES = 11
"""Consecutive whole numbers with at most so many different values are ordered answers: 0 to 10 is
the longest usual scale of a questionnaire."""

SMALL_NUMBERS = 100
"""Answers are numbered from −100 to 100; 1980 to 1987 are years."""

SKEWNESS = 0.5
"""Counts have at least this skewness: that of Poisson counts with mean λ is 1/√λ, so λ ≤ 4."""

_UNNAMED = ("", "Unnamed: 0", "Unnamed: 0.1")
"""What frames and files call a first column without a name."""

_INDEX = "__index_level_0__"
"""What pandas calls an index without a name in Parquet and Arrow files."""


class KindDecision(NamedTuple):
    """How a column is taken: its kind, or None if it is set aside, and why."""

    kind: Kind | None
    why: str


# The rule ---------------------------------------------------------------------------------------


def decide(facts: ColumnFacts, family: str = "auto", name: str = "") -> KindDecision:
    """Return the kind of a column and the reason, or None as the kind if it is set aside.

    Names matter for identifiers and times alone. ``family`` gaussian takes all numbers as real,
    discrete and symmetric take whole numbers and all labels as categories.
    """
    if facts.type == "empty":
        return KindDecision(None, "no value at all")
    if facts.type == "date":
        return KindDecision(None, DATES)
    if facts.n_rows > 1 and facts.constant is not None:
        return KindDecision(None, f"always {facts.constant!r}")
    if facts.type == "boolean" and family != "gaussian":
        return KindDecision("category", "true or false")
    if facts.type == "label":
        return _decide_labels(facts, family, name)
    if facts.type == "number":
        apart = _rows_or_times(facts, name)
        if apart is not None:
            return apart
    if family == "gaussian":
        return KindDecision("real", "numbers")
    if family in ("discrete", "symmetric"):
        return KindDecision("category", f"{facts.n_different:,} different whole numbers")
    return decide_numbers(facts)


def _rows_or_times(facts: ColumnFacts, name: str) -> KindDecision | None:
    """Set a column of numbers aside that tells the time or names the rows; None for others."""
    n, n_different = facts.n_present, facts.n_different
    if n_different > 2 and facts.is_date:
        return KindDecision(None, DATES + " as numbers")
    if facts.has_fraction:
        return None
    if names_time(name) and n_different > 2:
        if are_unix_times(facts.low, facts.high):
            return KindDecision(None, DATES + ": seconds since 1970, or parts of seconds")
        if facts.values is not None and are_months(facts.values):
            return KindDecision(None, DATES + " as numbers")
    if n_different == n > 2 and numbers_rows(name):
        return KindDecision(None, UNIQUE)
    if names_rows(name):
        if facts.values is None:
            return KindDecision(None, UNIQUE)
        if n_different > FEW_VALUES:
            why = f"{n_different:,} different {IDENTIFIERS}, by their name"
            return KindDecision(None if _is_identifier(facts) else "category", why)
    return None


def _is_identifier(facts: ColumnFacts) -> bool:
    """Whether a column that is named as identifiers are names rows, and not groups of them."""
    n_different = facts.n_different
    is_group = 5 * n_different <= facts.n_present and n_different <= MANY_LABELS
    return n_different > FEW_VALUES and not is_group


def _decide_labels(facts: ColumnFacts, family: str, name: str) -> KindDecision:
    """Return the kind of a column of labels."""
    n, n_different = facts.n_present, facts.n_different
    if facts.is_long and n_different > 2:
        if family in ("discrete", "symmetric"):
            return KindDecision("category", f"{n_different:,} different whole numbers")
        return KindDecision(None, f"whole numbers of more than 15 digits, as {IDENTIFIERS} have")
    declared = facts.order is not None
    what = "categories" if declared else "text"
    odd = "" if declared else _odd_label(facts)
    if n_different > 2:
        if facts.is_date:
            return KindDecision(None, DATES + " as text")
        if n_different > TRACKED:
            return KindDecision(None, f"{what} with more than {TRACKED:,} different values{odd}")
        if n_different > FEW_VALUES and 2 * n_different > n:
            share = f"{n_different / n:.0%}".replace("%", " %")
            return KindDecision(None, f"{what} that differs in {share} of rows{odd}")
        if n_different > MANY_LABELS and family not in ("discrete", "symmetric"):
            return KindDecision(
                None, f"{n_different:,} different labels, too many for categories{odd}"
            )
        if not declared and names_rows(name) and _is_identifier(facts):
            return KindDecision(None, f"{n_different:,} different {NAMES}, by their name")
    if facts.is_ordered:
        return KindDecision("ordered", f"{n_different} ordered categories")
    return KindDecision(
        "category", f"{n_different} {'label' if n_different == 1 else 'labels'}{odd}"
    )


def _odd_label(facts: ColumnFacts) -> str:
    """Say which label makes text of a column of numbers, if one does."""
    if facts.values is None or not all(isinstance(value, str) for value in facts.values):
        return ""
    for says_number in (is_number, _says_number):  # plain ones first: a unit is odd among them
        others = [value for value in facts.values if not says_number(value)]
        if others and 2 * len(others) < len(facts.values):
            return f" ({ODD} {min(others)!r})"
    return ""


def _says_number(text: str) -> bool:
    return is_number(text) or any(number_text(text, mark) is not None for mark in DECIMALS)


def decide_numbers(facts: ColumnFacts) -> KindDecision:
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
            if n_different < FEW_VALUES and n >= 5 * n_different:
                return KindDecision("ordered", f"{n_different} different whole numbers")
        if n_different == n > FEW_VALUES and span <= 2 * n:
            return KindDecision(None, UNIQUE)
        if _is_count(facts):
            return KindDecision(
                "count", f"whole numbers from {facts.low:.0f}, skewed as counts are"
            )
    ends = f"{plain_number(facts.low)} to {plain_number(facts.high)}"
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
    """Return the kinds that were asked for by the names of columns, or raise.

    One kind stands for all columns. Names may be patterns; of several the last one counts, and the
    name itself before all of them.
    """
    given = {"*": kinds} if isinstance(kinds, str) else {} if kinds is None else kinds
    if not isinstance(given, Mapping):
        raise DataError(
            f"kinds is {kinds!r}, but must be a kind for all columns or a mapping from names to "
            "kinds, as in kinds={'age': 'real'}"
        )
    known = (*KINDS, "ignore")
    exact: dict[str, str] = {}
    wanted: dict[str, str] = {}
    for key, kind in given.items():
        name = str(key)
        if not isinstance(kind, str) or kind not in known:
            what = "all columns are" if isinstance(kinds, str) else f"column {name!r} is"
            raise DataError(f"kinds: {what} to be {kind!r}, but kinds are {', '.join(known)}")
        if name in names:
            exact[name] = kind
            continue
        matching = [each for each in names if fnmatchcase(each, name)]
        if not matching:
            raise DataError(f"kinds: there is no column {name!r}{suggestion(name, names)}")
        wanted |= dict.fromkeys(matching, kind)
    return wanted | exact


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
            fault = (
                f"it holds {_some_label(facts)!r}: number its labels, or declare their order in a "
                "frame, as pandas.Categorical(…, ordered=True) does"
            )
    elif facts.type != "number":
        if kind == "real" and facts.is_long:
            return KindDecision("real", ASKED_FOR)
        fault = f"it holds {_some_label(facts)!r}, which is no number"
    elif kind == "count":
        if facts.fraction is not None:
            fault = f"it holds {facts.fraction[1]!r} in row {facts.fraction[0]}"
        elif facts.low < 0:
            fault = f"it holds {plain_number(facts.low)}, which is less than 0"
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
        return tuple(map(plain_number, facts.values.tolist()))
    if facts.order is not None:
        return tuple(label for label in facts.order if label in facts.values)
    return sort_labels(facts.values)


def decisions(
    names: Sequence[str],
    named: bool,
    facts: Sequence[ColumnFacts],
    family: str,
    wanted: Mapping[str, str],
) -> list[KindDecision]:
    """Return how every column is taken."""
    unnamed = unnamed_place(names) if named and len(names) > 1 else None
    found = []
    for place, (name, own) in enumerate(zip(names, facts, strict=True)):
        if place == unnamed and are_row_labels(own):
            found.append(KindDecision(None, ROW_LABELS))
        elif name in wanted:
            found.append(forced(name, wanted[name], own))
        else:
            found.append(decide(own, family, name if named else ""))
    return found


def chosen_readings(
    names: Sequence[str],
    facts: Sequence[ColumnFacts],
    family: str,
    wanted: Mapping[str, str],
    decimal: str,
) -> list[Reading | None]:
    """Return how texts are read as numbers; None for columns that are labels, or numbers already.

    A column that both decimal marks allow goes with the others of the table, and with ``decimal``
    if these do not say.
    """
    if family in ("discrete", "symmetric"):
        return [None] * len(names)
    marks = {own.readings[0].format.decimal for own in facts if len(own.readings) == 1}
    decimal = marks.pop() if len(marks) == 1 else decimal
    found: list[Reading | None] = []
    for name, own in zip(names, facts, strict=True):
        known = {reading.format.decimal: reading for reading in own.readings}
        reading = known.get(decimal) or next(iter(known.values()), None)
        as_numbers = ("real", "count", "ordered")
        is_meant = wanted.get(name) in as_numbers or (
            name not in wanted and reading is not None and reading.is_marked
        )
        found.append(reading if is_meant else None)
    return found


def read_facts(facts: ColumnFacts, reading: Reading | None) -> ColumnFacts:
    """Return the facts of a column as it is read."""
    return facts if reading is None else replace(reading.facts, n_rows=facts.n_rows)


def with_reading(decision: KindDecision, reading: Reading | None) -> KindDecision:
    """Add to a reason how the numbers of a column were written."""
    if reading is None:
        return decision
    return decision._replace(why=f"{decision.why} ({said(reading.format, reading.styles)})")


ASKED_FOR = "as asked for"
"""Why a column is of the kind that was given."""

ROW_LABELS = "row labels: a column without a name"
"""Why a column that labels the rows is set aside."""

IDENTIFIERS = "identifiers"
"""What names rows instead of describing them."""

NAMES = f"{IDENTIFIERS} as text"
"""Those that can be labels, and no numbers."""

ODD = "text because of"
"""What names the cell that makes text of a column of numbers."""

CORRECT = "cells that are no numbers have to be corrected, or left empty"
"""What to do about such cells."""

UNIQUE = f"a different whole number in every row, as {IDENTIFIERS} have"
"""Why a column that numbers the rows is set aside."""

DATES = "dates or times"
"""What tells when a row was recorded."""

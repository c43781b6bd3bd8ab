"""Numbers as people and programs write them: ``66,090``, ``70%``, ``$7,440``, ``(1.200,50)``.

A cell is read under a decimal mark, point or comma; the other one may separate thousands. A column
is numbers if all of its cells can be read under one mark and have the same unit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from latentree.data._checks import MISSING, is_number
from latentree.data._raw import Column
from latentree.data._table import NumberFormat
from latentree.errors import DataError
from latentree.typing import AnyArray

DECIMALS = (".", ",")
"""What may separate the fraction of a number."""


class NumberText(NamedTuple):
    """A cell that was read as a number, and its unit."""

    value: float
    unit: str
    style: str
    """Separators and brackets around its digits."""


_CURRENCY = re.compile(
    "USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|CNY|RMB|INR|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|"
    "BRL|MXN|ARS|CLP|COP|PEN|ZAR|NGN|KES|EGP|ILS|AED|SAR|QAR|KRW|TWD|HKD|SGD|THB|IDR|MYR|PHP|VND|"
    "PKR|BDT"
)
"""Codes that may stand before a number, where other letters are part of a name: LH 123."""

_CELL = re.compile(
    r"(?P<open>\()?\s*(?P<sign>[-+]?)\s*(?P<before>[^\d\s.,()+'-]{0,4}?)\s*(?P<inner>[-+]?)\s*"
    r"(?P<digits>[.,]?\d[\d.,' ]*?)(?P<power>[eE][-+]?\d{1,3})?"
    r"(?P<space>\s*)(?P<after>[^\d\s.,()+'-][^\d\s.,()+'-]{0,9})?\s*(?P<minus>-)?(?P<close>\))?"
)
_SAME = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"})
"""Spaces that do not break, the sign minus and the typographic apostrophe."""


def _body(decimal: str) -> re.Pattern[str]:
    other = re.escape("," if decimal == "." else ".")
    mark = re.escape(decimal)
    # Groups of thousands have three digits each, in India two before the last three, and no number
    # begins with a 0 before others.
    groups = rf"[1-9]\d{{0,2}}(?P<separator>[{other}' ])\d{{3}}(?:(?P=separator)\d{{3}})*"
    lakhs = rf"[1-9]\d?(?:(?P<lakh>{other})\d\d)+{other}\d{{3}}"
    whole = rf"(?:0|[1-9]\d*|{groups}|{lakhs})"
    return re.compile(rf"{whole}(?P<fraction>{mark}\d*)?|(?P<bare>{mark}\d+)")


_BODIES = {decimal: _body(decimal) for decimal in DECIMALS}


@lru_cache(maxsize=1 << 16)
def number_text(text: str, decimal: str) -> NumberText | None:
    """Read a text as a number under a decimal mark; None if it is none."""
    found = _CELL.fullmatch(text.translate(_SAME).strip())
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    signs = found["sign"] + found["inner"] + (found["minus"] or "")
    body = _BODIES[decimal].fullmatch(found["digits"])
    if body is None or len(signs) + bool(found["open"]) > 1:
        return None
    unit = _unit(found["before"], found["after"] or "", bool(found["space"]))
    if unit is None:
        return None
    separator = body["separator"] or body["lakh"] or ""
    digits = found["digits"].replace(separator, "") if separator else found["digits"]
    value = float(digits.replace(decimal, ".") + (found["power"] or ""))
    style = separator + (decimal if body["fraction"] or body["bare"] else "")
    if found["minus"] and not style:  # 1- is a grade, 1.200,00- a number
        return None
    negative = "-" in signs or bool(found["open"])
    return NumberText(-value if negative else value, unit, style + (found["open"] or ""))


def _unit(before: str, after: str, has_space: bool) -> str | None:
    """Return what a number counts; None if the letters around it make no unit."""
    if before and after:
        return None
    if before:
        return before if _CURRENCY.fullmatch(before) or _is_symbol(before[-1]) else None
    is_clear = not after or has_space or after[0] in "%\u2030\u00b0" or _is_symbol(after)
    return after if is_clear or _CURRENCY.fullmatch(after) else None


def _is_symbol(text: str) -> bool:
    """Whether a text is the symbol of a currency."""
    return len(text) == 1 and unicodedata.category(text) == "Sc"


def _read_cell(cell: Hashable, decimal: str) -> NumberText | None:
    """Read a cell that is text or a number; cells that stand for missing ones are NaN."""
    if isinstance(cell, str):
        if cell.strip() in MISSING:
            return NumberText(np.nan, "", "")
        return number_text(cell, decimal)
    if not is_number(cell):
        return None
    try:
        return NumberText(float(cell), "", "")  # type: ignore[arg-type]
    except OverflowError:  # of a whole number that no float holds
        return None


class ReadLabels(NamedTuple):
    """The labels of a column as numbers."""

    format: NumberFormat
    values: Mapping[Hashable, float]
    """The number of every label; NaN for those that stand for a missing cell."""
    styles: frozenset[str]

    @property
    def is_marked(self) -> bool:
        """Whether more than digits is written: text of digits alone is meant as labels."""
        return bool(self.format.unit or any(style.strip("(") for style in self.styles))


def read_labels(labels: Iterable[Hashable], decimal: str) -> ReadLabels | None:
    """Read all labels of a column as numbers of one unit; None if they are not.

    Parameters
    ----------
    labels : iterable
        Texts, and numbers among them.
    decimal : {".", ","}
        What separates a fraction.
    """
    values: dict[Hashable, float] = {}
    units, styles = set(), set()
    for label in labels:
        found = _read_cell(label, decimal)
        if found is None:
            return None
        values[label] = found.value
        if found.value == found.value:  # no NaN
            units.add(found.unit)
            styles.add(found.style)
            if len(units) > 1:
                return None
    if not units:
        return None
    return ReadLabels(NumberFormat(decimal, units.pop()), values, frozenset(styles))


def as_numbers(column: Column, values: Mapping[Hashable, float]) -> AnyArray:
    """Return the cells of a column of labels as floats, NaN where they are missing."""
    missing = np.zeros(column.values.size, bool) if column.missing is None else column.missing
    out = np.full(column.values.size, np.nan)
    if column.coded:
        assert column.order is not None
        words = np.array([values.get(word, np.nan) for word in column.order])
        out[~missing] = words[column.values[~missing]]
    else:
        out[~missing] = [values[label] for label in column.values[~missing].tolist()]
    return out


def labels_in(column: Column) -> frozenset[Hashable]:
    """Return the different labels of a column."""
    present = column.values if column.missing is None else column.values[~column.missing]
    if column.coded:
        assert column.order is not None
        there = np.flatnonzero(np.bincount(present, minlength=len(column.order)))
        return frozenset(column.order[place] for place in there.tolist())
    return frozenset(present.tolist())


def number_column(column: Column, written: NumberFormat) -> Column:
    """Return a column that is written in a format as numbers; raise if a cell is none."""
    if column.kind != "label":
        return column
    values: dict[Hashable, float] = {}
    for label in labels_in(column):
        found = _read_cell(label, written.decimal)
        if found is None or found.unit not in (written.unit, ""):
            unit = f" in {written.unit}" if written.unit else ""
            raise DataError(
                f"column {column.name!r} holds {label!r}, but numbers{unit} are needed: correct "
                "such cells, or leave them empty (missing)"
            )
        values[label] = found.value
    cells = as_numbers(column, values)
    missing = np.isnan(cells)
    return Column(column.name, "real", cells, missing if missing.any() else None)


def said(written: NumberFormat, styles: Iterable[str]) -> str:
    """Say how numbers were written, for the reason of a column."""
    marks = set("".join(styles))
    notes = []
    separators = marks - {written.decimal, "("}
    if separators:
        notes.append(
            "thousands separated by " + " and ".join(_shown(each) for each in sorted(separators))
        )
    if written.decimal == "," and "," in marks:
        notes.append("decimal commas")
    if "(" in marks:
        notes.append("negative ones in brackets")
    if written.unit == "%":
        notes.append("percent")
    elif written.unit:
        notes.append(f"in {written.unit}")
    return ", ".join(notes) or "written as text"


def _shown(separator: str) -> str:
    return "spaces" if separator == " " else f"{separator!r}"

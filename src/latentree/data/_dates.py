"""Dates and times: text in the usual spellings, whole numbers, and what sorts them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from functools import lru_cache

import numpy as np

from latentree.typing import AnyArray

DateKey = tuple[float, ...]
"""Numbers that sort as the dates do."""

_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(:(?P<second>[0-5]\d([.,]\d+)?))?"
    r"\s?(?P<half>[AaPp]\.?[Mm]\.?)?\s?(Z|UTC|GMT|[+-]\d\d:?\d\d)?"
)
_YEAR, _DAY, _NAME = r"(?P<year>[12]\d{3})", r"(?P<day>\d{1,2})", r"(?P<name>[^\W\d_]{3,9})\.?"
_DATES = (
    rf"{_YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})((?P=mark){_DAY})?",  # 2017-01-31, 2017/01
    r"(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second_>\d{1,2})(?P=mark)(?P<year>[12]\d{3}|\d\d)",
    rf"{_DAY}(st|nd|rd|th|\.)?[- ]?{_NAME},?[- ]?(?P<year>[12]\d{{3}}|\d\d)",  # 31. January 2017
    rf"{_NAME} {_DAY}(st|nd|rd|th)?,? {_YEAR}",  # January 31, 2017
    rf"{_NAME},?[-/ ]'?(?P<year>[12]\d{{3}}|\d\d)",  # Jan 2017, Jan-17
    rf"{_DAY}[- ]{_NAME}",  # 31-Jan
    rf"(?P<month>\d{{1,2}})[-/.]{_YEAR}",  # 01/2017
    rf"{_YEAR}[-/ ]?M(?P<month>\d\d)",  # 2017M01
    rf"{_YEAR}[-/](?P<next>\d\d)",  # 2017/18
    rf"{_YEAR}[-/ ]?(Q(?P<month>[1-4])|W(?P<week>\d\d))",  # 2017Q1, 2017-W05
    rf"Q(?P<month>[1-4])[-/ ]?{_YEAR}",
    rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)",  # 20170131
)
_WEEKDAY = r"([^\W\d_]{2,10}[.,]{0,2} )?"
_PATTERNS = [
    re.compile(pattern)
    for pattern in (_CLOCK, *(rf"{_WEEKDAY}{own}([T ,]+{_CLOCK})?" for own in _DATES))
]
_MONTHS = [
    ("january", "januar", "jänner"), ("february", "februar"), ("march", "märz"), ("april",),
    ("may", "mai"), ("june", "juni"), ("july", "juli"), ("august",), ("september",),
    ("october", "oktober"), ("november",), ("december", "dezember"),
]  # fmt: skip


@lru_cache(maxsize=1 << 16)
def date_keys(text: str) -> tuple[DateKey, DateKey] | None:
    """Return what sorts a text among dates, under either order of day and month.

    None if the text says no date or time.
    """
    for pattern in _PATTERNS:
        found = pattern.fullmatch(text.strip())
        if found is not None:
            keys = _keys_of(found.groupdict())
            if keys is not None:
                return keys
    return None


def _keys_of(part: dict[str, str | None]) -> tuple[DateKey, DateKey] | None:
    """Return the keys of the parts of a date; None if a day or month is out of range."""
    hour = int(part["hour"] or 0) + 12 * ((part["half"] or "")[:1] in ("p", "P"))
    second = float((part["second"] or "0").replace(",", "."))
    time = (hour, int(part["minute"] or 0), second)
    year = int(part.get("year") or 0)
    if part.get("name"):
        month = _month(str(part["name"]))
    else:
        month = int(part.get("month") or part.get("week") or 1)
    day = int(part.get("day") or 1)
    either = [(month, day)] * 2
    if part.get("first"):
        first, other = int(part["first"] or 0), int(part["second_"] or 0)
        either = [(first, other), (other, first)]
        either = [pair for pair in either if pair[0] <= 12] or [(0, 0)]
    if part.get("next") and int(part["next"] or 0) != (year + 1) % 100:
        return None
    last = 53 if part.get("week") else 12
    if not all(1 <= month <= last and 1 <= day <= 31 for month, day in either):
        return None
    return (year, *either[0], *time), (year, *either[-1], *time)


def _month(name: str) -> int:
    """Return the number of a month by its name or the beginning of it, 0 if it is none."""
    numbers = enumerate(_MONTHS, 1)
    return next(
        (
            number
            for number, all_names in numbers
            if any(own.startswith(name.lower()) for own in all_names)
        ),
        0,
    )


def are_dates(labels: Iterable[Hashable]) -> bool:
    """Whether all labels are texts that say a date or a time."""
    return all(isinstance(label, str) and date_keys(label) is not None for label in labels)


def are_days(values: AnyArray) -> bool:
    """Whether whole numbers are days such as 20170131."""
    day = values % 100
    return bool(np.all((day >= 1) & (day <= 31))) and are_months(values // 100)


def are_months(values: AnyArray) -> bool:
    """Whether whole numbers are months such as 201701."""
    if not values.size or values.min() < 1800_01 or values.max() > 2100_12:
        return False
    month = values % 100
    return bool(np.all((month >= 1) & (month <= 12)))


def are_unix_times(low: float, high: float) -> bool:
    """Whether numbers lie from 1990 to 2100 in seconds since 1970, or in parts of seconds."""
    return any(631152000 * unit <= low and high < 4102444800 * unit for unit in (1, 1e3, 1e6, 1e9))

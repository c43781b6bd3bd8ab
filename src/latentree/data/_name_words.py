"""What the name of a column says of it: whether it numbers the rows, or tells the time."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zß-ÿ]+|\d+")
"""Words of ``PassengerId``, ``customer_id`` and ``Kunden-Nr.``."""

_LAST = frozenset(
    {"id", "ids", "uuid", "guid", "nr", "code", "key", "pk", "zip", "plz", "postcode", "fips",
     "isbn", "ean", "sku", "ssn"}
)  # fmt: skip
"""Last words of the names of identifiers."""

_NUMBERS = frozenset({"num", "number"})
"""Last words of the names of identifiers, and of numbers of something."""

_WHOLE = frozenset(
    {"index", "no", "row", "rowid", "rownames", "obs", "number", "num", "case", "lfd", "seqn",
     "subject", "subj", "participant", "respondent", "patient", "proband"}
)  # fmt: skip
"""Names of identifiers by themselves: a price index is a measurement."""

_TIMES = frozenset(
    {"time", "times", "timestamp", "datetime", "date", "dates", "year", "years", "yr", "quarter",
     "month", "yearmonth", "yyyymm", "week", "day", "hour", "epoch", "unix", "utc", "ts", "period",
     "jahr", "datum", "zeit", "tag", "monat"}
)  # fmt: skip


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def names_rows(name: str) -> bool:
    """Whether a column is named as identifiers are.

    Examples
    --------
    >>> [names_rows(name) for name in ("PassengerId", "order_nr", "No.", "price index", "paid")]
    [True, True, True, False, False]
    """
    words = _words(name)
    is_index = words[:2] == ["unnamed", "0"]  # the index of a frame of pandas that was saved twice
    is_whole = len(words) == 1 and words[0] in _WHOLE
    return is_index or is_whole or bool(words and words[-1] in _LAST)


def numbers_rows(name: str) -> bool:
    """Whether a column is named as identifiers are, or as a number of something.

    Examples
    --------
    >>> [numbers_rows(name) for name in ("PassengerId", "invoice_number", "number of rooms")]
    [True, True, False]
    """
    return names_rows(name) or _words(name)[-1:] in ([word] for word in _NUMBERS)


def names_time(name: str) -> bool:
    """Whether a column is named as dates and times are.

    Examples
    --------
    >>> [names_time(name) for name in ("Year", "created_at", "timestamp", "holiday", "x")]
    [True, True, True, False, False]
    """
    words = _words(name)
    is_moment = len(words) > 1 and words[-1] == "at"
    return bool(words) and (words[-1] in _TIMES or words[0] in _TIMES or is_moment)

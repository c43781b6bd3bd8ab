"""What the name of a column says of it: whether it numbers the rows, or tells the time."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zß-ÿ]+|\d+")
"""Words of ``PassengerId``, ``customer_id`` and ``Kunden-Nr.``."""

_LAST = frozenset({"id", "ids", "uuid", "guid", "nr", "code", "key", "pk"})
"""Last words of the names of identifiers."""

_WHOLE = frozenset(
    {"index", "no", "row", "rowid", "rownames", "obs", "number", "num", "case", "lfd", "seqn"}
)
"""Names of identifiers by themselves: a price index is a measurement."""

_TIMES = frozenset(
    {"time", "times", "timestamp", "datetime", "date", "dates", "year", "years", "yr", "quarter",
     "month", "week", "day", "hour", "epoch", "ts", "period",
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


def names_time(name: str) -> bool:
    """Whether a column is named as dates and times are.

    Examples
    --------
    >>> [names_time(name) for name in ("Year", "created_time", "timestamp", "holiday", "x")]
    [True, True, True, False, False]
    """
    words = _words(name)
    return bool(words) and (words[-1] in _TIMES or words[0] in _TIMES)

"""The plain values that files may hold, checked one way for writing and for reading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from latentree.errors import FileError

LOWEST, HIGHEST = -(2**63), 2**64 - 1
"""Integers beyond these are refused: other programs could not read them."""

MAX_DEPTH = 20
"""How deep lists and dicts may nest in a report."""


def check_text(text: str, part: str) -> None:
    """Refuse half surrogate pairs, which no file in UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FileError(f"{part} is {text!r}, which is no valid Unicode text") from None


def check_texts(texts: Iterable[Any], part: str) -> None:
    """Check that all are strings of valid text."""
    for index, text in enumerate(texts):
        if type(text) is not str:
            raise FileError(f"{part}[{index}] is {shown(text)}, but must be a string")
        check_text(text, f"{part}[{index}]")


def check_scalar(value: Any, part: str) -> None:
    """Check None, a bool, an integer of 64 bits, a finite float or a string."""
    if value is None or type(value) is bool:
        return
    if type(value) is str:
        check_text(value, part)
    elif type(value) is int:
        if not LOWEST <= value <= HIGHEST:
            raise FileError(f"{part} is an integer of more than 64 bits")
    elif type(value) is not float:
        raise FileError(
            f"{part} is {shown(value)}, but files hold strings, numbers, true, false and null only"
        )
    elif not math.isfinite(value):
        raise FileError(f"{part} is {value}, but must be finite")


def check_nested(value: Any, part: str) -> None:
    """Check plain values in lists and dicts, :data:`MAX_DEPTH` deep at most."""
    waiting = [(value, part, 0)]
    while waiting:
        item, where, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise FileError(f"{part} nests more than {MAX_DEPTH} lists and dicts")
        if type(item) is dict:
            check_texts(item, f"keys of {where}")
            waiting += [(each, f"{where}.{key}", depth + 1) for key, each in item.items()]
        elif type(item) is list:
            waiting += [(each, f"{where}[{i}]", depth + 1) for i, each in enumerate(item)]
        else:
            check_scalar(item, where)


def plain_scalar(value: Any) -> Any:
    """Return a numpy scalar, or a value of a subclass, as Python's own type."""
    if isinstance(value, np.generic):
        return value.item()
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def plain_nested(value: Any, part: str, depth: int = 0) -> Any:
    """Return mappings, sequences and numpy arrays as plain dicts and lists."""
    if depth > MAX_DEPTH:
        raise FileError(f"{part} nests more than {MAX_DEPTH} lists and dicts")
    if isinstance(value, Mapping):
        return {
            plain_scalar(key): plain_nested(each, f"{part}.{key}", depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_nested(each, f"{part}[{i}]", depth + 1) for i, each in enumerate(value)]
    return plain_scalar(value)


def shown(value: Any) -> str:
    """Show a value in a message, cut to a readable length."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > HIGHEST:
        return "an integer of more than 64 bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"

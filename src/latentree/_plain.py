"""The plain values that files may hold, checked one way for writing and for reading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from latentree.errors import FileError

LOWEST, HIGHEST = -(2**63), 2**64 - 1
"""Integers beyond these are refused: other programs could not read them."""

MAX_DEPTH = 20
"""How deep lists and dicts may nest in a report: far below Python's limit of recursion."""

Place = tuple["Place | None", str | int]
"""Where a value is: the place of what holds it (None at the top), and its own part of the path.

A path is written out in errors only: with one text for each of many values in a deep or long-named
place, checking would take memory and time that grow with the square of the file.
"""


def check_text(text: str, part: str) -> None:
    """Refuse half surrogate pairs, which no file in UTF-8 can hold."""
    fault = _fault(text)
    if fault:
        raise FileError(f"{part} {fault}")


def check_texts(texts: Iterable[object], part: str) -> None:
    """Check that all are strings of valid text."""
    for index, text in enumerate(texts):
        fault = _fault(text) if type(text) is str else f"is {shown(text)}, but must be a string"
        if fault:
            raise FileError(f"{part}[{index}] {fault}")


def check_scalars(values: Iterable[object], part: str) -> None:
    """Check that all are None, bools, integers of 64 bits, finite floats or strings."""
    for index, value in enumerate(values):
        fault = _fault(value)
        if fault:
            raise FileError(f"{part}[{index}] {fault}")


def check_nested(value: object, part: str) -> None:
    """Check plain values in lists and dicts, :data:`MAX_DEPTH` deep at most."""
    _check_nested(value, (None, part), 0)


def _check_nested(value: object, place: Place, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise FileError(f"{_path(place)} nests more than {MAX_DEPTH} lists and dicts")
    if type(value) is dict:
        for key, each in value.items():
            if type(key) is not str or _fault(key):
                raise FileError(f"{_path(place)} has the key {shown(key)}, which is no valid text")
            _check_nested(each, (place, key), depth + 1)
    elif type(value) is list:
        for index, each in enumerate(value):
            _check_nested(each, (place, index), depth + 1)
    else:
        fault = _fault(value)
        if fault:
            raise FileError(f"{_path(place)} {fault}")


def _path(place: Place) -> str:
    """Write out a place: ``report.key[3]``; long keys are cut."""
    steps = []
    above, step = place
    while above is not None:
        steps.append(f"[{step}]" if isinstance(step, int) else f".{_cut(step)}")
        above, step = above
    return "".join([str(step), *reversed(steps)])


def _fault(value: object) -> str:
    """Say what is wrong with a plain value, or nothing."""
    if value is None or type(value) is bool:
        return ""
    if type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"is {shown(value)}, which is no valid Unicode text"
        return ""
    if type(value) is int:
        within = LOWEST <= value <= HIGHEST
        return "" if within else "is an integer of more than 64 bits"
    if type(value) is not float:
        return f"is {shown(value)}, but files hold strings, numbers, true, false and null only"
    return "" if math.isfinite(value) else f"is {value}, but must be finite"


def plain_scalar(value: object) -> object:
    """Return a numpy scalar, or a value of a subclass, as Python's own type."""
    if isinstance(value, np.generic):
        return value.item()
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def plain_nested(value: object, part: str, depth: int = 0) -> object:
    """Return mappings, sequences and numpy arrays as plain dicts and lists."""
    if depth > MAX_DEPTH:
        raise FileError(f"{part} nests more than {MAX_DEPTH} lists and dicts")
    if isinstance(value, Mapping):
        return {plain_scalar(k): plain_nested(v, part, depth + 1) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_nested(each, part, depth + 1) for each in value]
    return plain_scalar(value)


def shown(value: object) -> str:
    """Show a value in a message, cut to a readable length."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > HIGHEST:
        return "an integer of more than 64 bits"
    return _cut(repr(value))


def reason_of(error: BaseException) -> str:
    """Return what an error of another library says, cut to a readable length."""
    lines = str(error).splitlines()
    return _cut(lines[0], 200) if lines else type(error).__name__


def _cut(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}…"

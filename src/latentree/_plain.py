"""The plain values that files may hold, checked one way for writing and for reading."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np

from latentree.errors import FileError
from latentree.typing import FloatArray

LOWEST, HIGHEST = -(2**63), 2**64 - 1
"""Integers beyond these are refused: other programs could not read them."""

MAX_DEPTH = 20
"""How deep lists and dicts may nest in a report: far below Python's limit of recursion."""

Fields = dict[str, object]
"""A JSON object; every value is checked before it is used."""

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


# What a file holds, part by part ----------------------------------------------------------------


def check_keys(
    fields: Fields, part: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    """Refuse a dict that lacks a key, or has one that nobody asked for."""
    missing = [key for key in required if key not in fields]
    if missing:
        raise FileError(f"{part} lacks {missing[0]!r}")
    unknown = [key for key in fields if key not in required and key not in optional]
    if unknown:
        raise FileError(f"{part} has the unknown key {shown(unknown[0])}")


def as_dict(value: object, part: str) -> Fields:
    """Return a value that must be a dict."""
    if type(value) is not dict:
        raise FileError(f"{part} is {shown(value)}, but must be a dict")
    return value


def as_list(value: object, part: str, size: int | None = None) -> list[object]:
    """Return a value that must be a list, of that size if one is given."""
    if type(value) is not list:
        raise FileError(f"{part} is {shown(value)}, but must be a list")
    if size is not None and len(value) != size:
        raise FileError(f"{part} has {len(value)} entries, but needs {size}")
    return value


def as_numbers(numbers: list[object], part: str) -> FloatArray:
    """Return the finite numbers of a list."""
    if not set(map(type, numbers)) <= {int, float}:
        index = next(i for i, number in enumerate(numbers) if type(number) not in (int, float))
        raise FileError(f"{part}[{index}] is {shown(numbers[index])}, but must be a number")
    try:
        array = np.array(numbers, np.float64)
    except OverflowError:
        raise FileError(f"{part} holds an integer that is too large") from None
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise FileError(f"{part}[{wrong[0]}] is too large for a number of 64 bits")
    return array


def as_texts(values: list[object], part: str) -> list[str]:
    """Return the strings of a list."""
    check_texts(values, part)
    return cast(list[str], values)


def as_text(value: object, part: str) -> str:
    """Return a value that must be a string."""
    if type(value) is not str:
        raise FileError(f"{part} is {shown(value)}, but must be a string")
    check_text(value, part)
    return value


def as_integer(value: object, part: str, least: int = 0, most: int = HIGHEST) -> int:
    """Return a value that must be an integer in a range."""
    if type(value) is not int or not least <= value <= most:
        limits = f"from {least} to {most}" if most < HIGHEST else f"of at least {least}"
        raise FileError(f"{part} is {shown(value)}, but must be an integer {limits}")
    return value


def as_number(value: object, part: str) -> float:
    """Return a value that must be a finite number."""
    if type(value) not in (int, float):
        raise FileError(f"{part} is {shown(value)}, but must be a number")
    return float(as_numbers([value], part)[0])


# From values of any type to plain ones ------------------------------------------------------------


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


def suggestion(name: object, known: Iterable[object]) -> str:
    """Return what a message says beside a name that is unknown: the one that is most like it.

    >>> suggestion("wieght", ["height", "weight"]), suggestion("Height", ["height"])
    (" (did you mean 'weight'?)", " (did you mean 'height'?)")
    >>> suggestion("age", ["height", "weight"])
    ''
    """
    by_letters = {str(other).casefold(): str(other) for other in known}
    found = difflib.get_close_matches(str(name).casefold(), by_letters, n=1)
    return f" (did you mean {shown(by_letters[found[0]])}?)" if found else ""

"""What files hold, declared once: each field reads with checks, writes, and has a JSON schema.

A declaration is a value. Reading returns checked values, or raises a :class:`FileError` that names
the part; what depends on several parts, such as sizes, is checked by whoever reads.

>>> point = Record({"name": Text(), "at": Numbers(least=0.0)})
>>> point.read({"name": "a", "at": [1, 2]}, "the point")
{'name': 'a', 'at': array([1., 2.])}
>>> point.read({"name": "a", "at": [1, -2]}, "the point")
Traceback (most recent call last):
    ...
latentree.errors.FileError: the point.at[1] is -2, but must be at least 0
>>> write(point, {"name": "a", "at": np.ones(2)})
'{"at": [1.0, 1.0], "name": "a"}'
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latentree import _plain as plain
from latentree.errors import FileError
from latentree.typing import FloatArray

Schema = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Field:
    """A part of a file, of any plain values."""

    about: str = ""
    """What it is, for the JSON schema."""

    def read(self, value: object, part: str) -> Any:
        """Check a value of a file, whose part is named in errors, and return what it stands for."""
        del part
        return value

    def plain(self, value: Any, part: str) -> Any:
        """Return what stands for a value in a file."""
        del part
        return value

    def schema(self) -> Schema:
        """Return the JSON schema."""
        return {"description": self.about} | self._shape() if self.about else self._shape()

    def _shape(self) -> Schema:
        return {}


@dataclass(frozen=True, kw_only=True)
class Notes(Field):
    """A dict of plain values, nested at will."""

    def read(self, value: object, part: str) -> dict[str, Any]:
        notes = plain.as_dict(value, part)
        plain.check_nested(notes, part)
        return notes

    def plain(self, value: Any, part: str) -> dict[str, Any]:
        notes = self.read(plain.plain_nested(value, part), part)
        return {key: notes[key] for key in sorted(notes)}

    def _shape(self) -> Schema:
        return {"type": "object"}


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """A string of valid text."""

    def read(self, value: object, part: str) -> str:
        return plain.as_text(value, part)

    def plain(self, value: Any, part: str) -> str:
        plain.check_text(value, part)
        return str(value)

    def _shape(self) -> Schema:
        return {"type": "string"}


@dataclass(frozen=True, kw_only=True)
class Flag(Field):
    """True or false."""

    def read(self, value: object, part: str) -> bool:
        if type(value) is not bool:
            raise FileError(f"{part} is {plain.shown(value)}, but must be true or false")
        return value

    def _shape(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, kw_only=True)
class Scalar(Field):
    """A string, number, truth value or null, of the type that it has in Python."""

    def read(self, value: object, part: str) -> Any:
        plain.check_scalars([value], part)
        return value

    def plain(self, value: Any, part: str) -> Any:
        return self.read(plain.plain_scalar(value), part)

    def _shape(self) -> Schema:
        return {"type": ["string", "number", "boolean", "null"]}


@dataclass(frozen=True, kw_only=True)
class Whole(Field):
    """An integer in a range."""

    least: int = 0
    most: int = plain.HIGHEST

    def read(self, value: object, part: str) -> int:
        return plain.as_integer(value, part, self.least, self.most)

    def _shape(self) -> Schema:
        most = {"maximum": self.most} if self.most < plain.HIGHEST else {}
        return {"type": "integer", "minimum": self.least} | most


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """One of a few values."""

    among: Sequence[object]

    def read(self, value: object, part: str) -> Any:
        if not any(type(value) is type(known) and value == known for known in self.among):
            known = ", ".join(map(str, self.among))
            raise FileError(f"{part} is {plain.shown(value)}, but must be one of {known}")
        return value

    def _shape(self) -> Schema:
        return {"enum": list(self.among)}


@dataclass(frozen=True, kw_only=True)
class Numbers(Field):
    """A list of finite numbers in a range, as an array."""

    least: float | None = None
    above: float | None = None
    below: float | None = None
    size: int | None = None
    null: float | None = None
    """What null stands for, which no file can hold."""

    def read(self, value: object, part: str) -> FloatArray:
        given = plain.as_list(value, part, self.size)
        if self.null is None:
            return self._within(plain.as_numbers(given, part), part)
        numbers = np.full(len(given), self.null)
        known = [index for index, number in enumerate(given) if number is not None]
        kept = [1.0 if number is None else number for number in given]
        numbers[known] = plain.as_numbers(kept, part)[known]
        self._within(numbers, part)
        return numbers

    def _within(self, numbers: FloatArray, part: str) -> FloatArray:
        for limit, is_beyond, must in (
            (self.least, np.less, "at least"),
            (self.above, np.less_equal, "above"),
            (self.below, np.greater_equal, "below"),
        ):
            if limit is None:
                continue
            beyond = is_beyond(numbers, limit)
            if beyond.any():
                index = int(beyond.argmax())
                place, number = self._place(part, index), numbers[index]
                raise FileError(f"{place} is {number:g}, but must be {must} {limit:g}")
        return numbers

    def _place(self, part: str, index: int) -> str:
        return f"{part}[{index}]"

    def plain(self, value: Any, part: str) -> Any:
        numbers: list[float | None] = np.asarray(value, np.float64).tolist()
        if self.null is None:
            return numbers
        is_null = np.isnan(value) if np.isnan(self.null) else np.equal(value, self.null)
        return [None if null else x for x, null in zip(numbers, is_null, strict=True)]

    def _shape(self) -> Schema:
        item = self._number()
        if self.null is not None:
            item["type"] = ["number", "null"]
        sizes = {"minItems": 1} if self.size is None else _of_size(self.size)
        return {"type": "array", "items": item, **sizes}

    def _number(self) -> Schema:
        limits = {
            "minimum": self.least, "exclusiveMinimum": self.above, "exclusiveMaximum": self.below,
        }  # fmt: skip
        return {"type": "number"} | {key: x for key, x in limits.items() if x is not None}


@dataclass(frozen=True, kw_only=True)
class Number(Numbers):
    """A finite number in a range."""

    def read(self, value: object, part: str) -> Any:
        if self.null is not None and value is None:
            return self.null
        number = plain.as_number(value, part)
        self._within(np.array([number]), part)
        return number

    def _place(self, part: str, index: int) -> str:
        del index
        return part

    def plain(self, value: Any, part: str) -> Any:
        return super().plain([value], part)[0]

    def _shape(self) -> Schema:
        return self._number()


@dataclass(frozen=True, kw_only=True)
class ListOf(Field):
    """A list of parts of one form."""

    item: Field
    size: int | None = None
    least: int = 0
    make: Callable[[list[Any]], Any] = list
    on_lines: bool = False
    """Whether each part is written on a line of its own."""

    def read(self, value: object, part: str) -> Any:
        given = plain.as_list(value, part, self.size)
        if len(given) < self.least:
            raise FileError(f"{part} is empty, but must not be")
        if type(self.item) is Text:  # a place for each would take long
            return self.make(plain.as_texts(given, part))
        return self.make([self.item.read(each, f"{part}[{i}]") for i, each in enumerate(given)])

    def plain(self, value: Any, part: str) -> list[Any]:
        return [self.item.plain(each, f"{part}[{i}]") for i, each in enumerate(value)]

    def _shape(self) -> Schema:
        sizes = _of_size(self.size) if self.size is not None else {"minItems": self.least}
        return {"type": "array", "items": self.item.schema(), **sizes}


@dataclass(frozen=True, kw_only=True)
class MapOf(Field):
    """A dict from any names to parts of one form, each written on a line of its own."""

    item: Field

    def read(self, value: object, part: str) -> dict[str, Any]:
        given = plain.as_dict(value, part)
        plain.check_texts(given, part)
        return {key: self.item.read(each, f"{part}.{key}") for key, each in given.items()}

    def plain(self, value: Any, part: str) -> dict[str, Any]:
        plain.check_texts(value, part)
        return {key: self.item.plain(each, f"{part}.{key}") for key, each in value.items()}

    def _shape(self) -> Schema:
        return {"type": "object", "additionalProperties": self.item.schema()}


@dataclass(frozen=True, kw_only=True)
class Or(Field):
    """One value that stands for itself, or a field."""

    other: object
    otherwise: Field

    def read(self, value: object, part: str) -> Any:
        is_other = type(value) is type(self.other) and value == self.other
        return value if is_other else self.otherwise.read(value, part)

    def _shape(self) -> Schema:
        return {"anyOf": [{"const": self.other}, self.otherwise.schema()]}


@dataclass(frozen=True)
class Record(Field):
    """A dict with stated keys, all but the optional ones required.

    Parameters
    ----------
    required, optional : dict from key to field
        Optional ones are left out where the value is the one that ``unless`` gives, or absent.
    unless : dict
        Values that need not be written, by their keys.
    make : callable
        What to make of the values, by their keys.
    take : callable, optional
        What gives the values back, by their keys; by default they are attributes of what was made.
    on_lines : bool
        Whether each part is written on a line of its own.
    """

    required: Mapping[str, Field]
    optional: Mapping[str, Field] = field(default_factory=dict)
    make: Callable[..., Any] = dict
    unless: Mapping[str, object] = field(default_factory=dict)
    take: Callable[[Any], Any] | None = None
    on_lines: bool = False
    is_top: bool = False
    """Whether names of parts begin here."""

    def fields(self) -> dict[str, Field]:
        """Return the fields of all keys."""
        return {**self.required, **self.optional}

    def read(self, value: object, part: str) -> Any:
        given = plain.as_dict(value, part)
        plain.check_keys(given, part, tuple(self.required), tuple(self.optional))
        known, above = self.fields(), "" if self.is_top else f"{part}."
        return self.make(
            **{key: known[key].read(each, f"{above}{key}") for key, each in given.items()}
        )

    def plain(self, value: Any, part: str) -> dict[str, Any]:
        value = value if self.take is None else self.take(value)
        above = "" if self.is_top else f"{part}."
        return {
            key: each.plain(_get(value, key), f"{above}{key}")
            for key, each in self.fields().items()
            if key in self.required or not _is_default(_get(value, key), self.unless.get(key))
        }

    def _shape(self) -> Schema:
        return {
            "type": "object",
            "properties": {key: each.schema() for key, each in self.fields().items()},
            "required": list(self.required),
            "additionalProperties": False,
        }


@dataclass(frozen=True)
class OneOf(Field):
    """Records of several forms: which one is told by a key that it has and no other has."""

    forms: Mapping[str, Record]

    def read(self, value: object, part: str) -> Any:
        given = plain.as_dict(value, part)
        first = next(iter(self.forms))
        return self.forms[next((key for key in self.forms if key in given), first)].read(
            given, part
        )

    def plain(self, value: Any, part: str) -> Any:
        for form in self.forms.values():
            if form.make is type(value):
                return form.plain(value, part)
        raise FileError(f"{part} is of a kind that no file holds")

    def _shape(self) -> Schema:
        return {"oneOf": [form.schema() for form in self.forms.values()]}


def _of_size(size: int) -> Schema:
    return {"minItems": size, "maxItems": size}


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key)


def _is_default(value: object, default: object) -> bool:
    return value is None or (default is not None and value == default)


# Layout ------------------------------------------------------------------------------------------


def write(form: Field, value: Any, part: str = "the file") -> str:
    """Return a value as JSON: equal values give equal text.

    Parts that are declared so stand on lines of their own; all else is one line with sorted keys.
    """
    return _laid_out(form, form.plain(value, part), "")


def _laid_out(form: Field | None, value: Any, indent: str) -> str:
    inner = f"{indent}  "
    if isinstance(form, Record) and form.on_lines:
        known = form.fields()
        lines = [f"{line(key)}: {_laid_out(known[key], x, inner)}" for key, x in value.items()]
        return _enclosed("{", lines, "}", indent)
    if isinstance(form, Notes | MapOf):
        lines = [f"{line(key)}: {line(x)}" for key, x in value.items()]
        return _enclosed("{", lines, "}", indent)
    if isinstance(form, ListOf) and form.on_lines:
        return _enclosed("[", [_laid_out(form.item, each, inner) for each in value], "]", indent)
    return line(value)


def _enclosed(first: str, lines: Iterable[str], last: str, indent: str) -> str:
    inside = ",\n".join(f"{indent}  {each}" for each in lines)
    return f"{first}\n{inside}\n{indent}{last}" if inside else first + last


def line(value: object) -> str:
    """Return plain values as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)

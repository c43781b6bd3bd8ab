"""Options of ``learn`` that belong to some methods only; the registry says to which."""

from __future__ import annotations

import contextlib
import csv
import inspect
from typing import Annotated, Any

import typer

from latentree.methods import AUTO, BY_DISTANCES, METHODS, OPTIONS, options_of, taken_by

OptionInfo = Any
"""What typer makes of an option; it does not say the type."""

OptionValue = Any
"""A value of an option of a method; the registry checks it."""

OptionValues = dict[str, OptionValue]
"""Values of options by name."""


def option_parameters() -> list[inspect.Parameter]:
    """Return the options of methods as parameters of a command, as texts."""
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None,
            annotation=Annotated[str | None, _shown_option(name)],
        )
        for name, entry in OPTIONS.items()
        if entry.flags
    ]  # fmt: skip


def _shown_option(name: str) -> OptionInfo:
    """Return an option of the registry as the command line shows it."""
    entry, methods = OPTIONS[name], taken_by(name)
    meaning = f"{entry.meaning}."
    if len(methods) == len(METHODS):
        text = meaning[0].upper() + meaning[1:]
    else:  # names of methods stay as they are typed
        text = f"{_shown(methods)}: {meaning}"
    return typer.Option(*entry.flags, metavar=entry.metavar, help=text)


def _shown(methods: list[str]) -> str:
    if methods == list(BY_DISTANCES):
        return "Methods that go by distances"
    return ", ".join(methods)


def check_method(method: str) -> None:
    """Raise for a name that is no method."""
    if method not in (AUTO, *METHODS):
        raise typer.BadParameter(f"there is no method {method!r}: use {AUTO}, {', '.join(METHODS)}")


def method_options(method: str, given: OptionValues) -> OptionValues:
    """Return the options that were given; refuse those that the method does not take."""
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in options_of(method):
            raise typer.BadParameter(
                f"{OPTIONS[name].flags[0]} is for --method {_either(taken_by(name))}, and {method} "
                "does not take it"
            )
    chosen = {name: _value(name, value) for name, value in chosen.items()}
    starts = [name for name, entry in METHODS.items() if entry.from_distances]
    for name in chosen.get("start", ()):
        if name not in starts:
            raise typer.BadParameter(f"--start {name}: use some of {', '.join(starts)}")
    return chosen


def _either(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _value(name: str, given: OptionValue) -> OptionValue:
    """Return what a text stands for, a number or itself; refuse what the option cannot be."""
    entry = OPTIONS[name]
    value = names(given) if entry.values.are_many else given
    if isinstance(given, str) and not entry.allows(given):
        for number in (int, float):
            with contextlib.suppress(ValueError):
                value = number(given)
                break
    if not entry.allows(value):
        allowed = entry.type.replace("int ", "a whole number ").replace("float ", "a number ")
        raise typer.BadParameter(f"{entry.flags[0]} {given}: use {allowed}".replace('"', ""))
    return value


def names(text: str | None) -> list[str] | None:
    """Names separated by commas, as a CSV line: quotes hold names with commas."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [""])

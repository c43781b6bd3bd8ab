"""Options of ``learn`` that belong to some methods only; the registry says to which."""

from __future__ import annotations

import math
from typing import Any

import typer

from latentree.methods import AUTO, METHODS, OPTIONS, options_of, taken_by

OptionInfo = Any
"""What typer makes of an option; it does not say the type."""

OptionValue = Any
"""A value of an option of a method; the registry checks it."""

OptionValues = dict[str, OptionValue]
"""Values of options by name."""

CRITERIA = ("bic", "ebic", "aic", "cv")


def option(
    name: str,
    metavar: str | None = None,
    *also: str,
    min: float | None = None,
    max: float | None = None,
) -> OptionInfo:
    """Return an option of the registry as the command line shows it."""
    entry = OPTIONS[name]
    methods = taken_by(name)
    meaning = f"{entry.meaning}."
    if len(methods) == len(METHODS):
        text = meaning[0].upper() + meaning[1:]
    else:  # names of methods stay as they are typed
        text = f"{_shown(methods)}: {meaning}"
    return typer.Option(entry.flag, *also, metavar=metavar, help=text, min=min, max=max)


def _shown(methods: list[str]) -> str:
    if methods == taken_by("refit"):
        return "Methods that go by distances"
    return ", ".join(methods)


def check_method(method: str) -> None:
    """Raise for a name that is no method."""
    if method not in (AUTO, *METHODS):
        raise typer.BadParameter(f"there is no method {method!r}: use {AUTO}, {', '.join(METHODS)}")


def method_options(method: str, given: OptionValues) -> OptionValues:
    """Return the options that were given; refuse those that the method does not take."""
    chosen = {
        name: value for name, value in given.items() if value is not None and value is not False
    }
    for name in chosen:
        if name not in options_of(method):
            raise typer.BadParameter(
                f"{OPTIONS[name].flag} is for --method {_either(taken_by(name))}, and {method} "
                "does not take it"
            )
    if "criterion" in chosen:
        chosen["criterion"] = _criterion(chosen["criterion"])
    if "n_trees" in chosen:
        chosen["n_trees"] = _trees(chosen["n_trees"])
    starts = [name for name, entry in METHODS.items() if entry.from_distances]
    for name in chosen.get("start", ()):
        if name not in starts:
            raise typer.BadParameter(f"--start {name}: use some of {', '.join(starts)}")
    return chosen


def hidden_options(text: str | None) -> OptionValues:
    """Return what --hidden asks for: a number of hidden variables, or what they are."""
    if text is None or text in ("states", "gaussian"):
        return {"hidden": text}
    if text.isdigit():
        return {"n_hidden": int(text)}
    raise typer.BadParameter(f"--hidden {text}: use states, gaussian, or a number")


def _either(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _trees(text: str) -> int | str:
    """Return a number of trees, or "auto"."""
    if text != "auto" and not (text.isdecimal() and int(text) > 0):
        raise typer.BadParameter(f"--trees {text}: use a positive number, or auto")
    return text if text == "auto" else int(text)


def _criterion(text: str) -> str | float:
    """Return the name of a criterion, or the number that multiplies BIC's penalty."""
    if text in CRITERIA:
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise typer.BadParameter(
            f"--criterion {text}: use {', '.join(CRITERIA)}, or a number that multiplies BIC's "
            "penalty"
        )
    return number

"""Options that belong to some methods only."""

from __future__ import annotations

import math
from typing import Any

import typer

from latentree.structure import METHODS as BY_DISTANCES

SCORES = ("bic", "ebic", "aic", "cv")

_REFINED = ("refined",)
TAKEN_BY = {
    "start": ("--start", _REFINED),
    "score": ("--score", _REFINED),
    "max_states": ("--max-states", _REFINED),
    "caution": ("--caution", _REFINED),
    "time_limit": ("--time-limit", _REFINED),
    "n_hidden": ("--hidden", ("reg_clrg", "reg_clnj", "refined")),
    "stepwise": ("--stepwise", tuple(BY_DISTANCES)),
    "checkpoint": ("--checkpoint", tuple(BY_DISTANCES)),
}
"""How options of ``learn_model`` are called here, and the methods that take them."""


def method_options(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; raise for those that the method does not take."""
    chosen = {
        key: value for key, value in given.items() if value is not None and value is not False
    }
    for key in chosen:
        option, methods = TAKEN_BY[key]
        if method not in methods:
            raise typer.BadParameter(
                f"{option} is for --method {_either(methods)}, and {method} does not take it"
            )
    if "score" in chosen:
        chosen["score"] = _score(chosen["score"])
    for name in chosen.get("start", ()):
        if name not in BY_DISTANCES:
            raise typer.BadParameter(f"--start {name}: use some of {', '.join(BY_DISTANCES)}")
    return chosen


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _score(text: str) -> str | float:
    """Return the name of a score, or the number that multiplies BIC's penalty."""
    if text in SCORES:
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise typer.BadParameter(
            f"--score {text}: use {', '.join(SCORES)}, or a number that multiplies BIC's penalty"
        )
    return number

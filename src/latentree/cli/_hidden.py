"""Which observed variables each hidden variable is tied to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latentree.models import (
    CopulaTreeModel,
    GaussianTreeModel,
    Model,
    captions,
    loadings,
)
from latentree.tree import Tree

_FROM_AFAR = 3
"""Variables that are named for a hidden one that has none of its own."""

StateTable = dict[str | int, list[Any]]
"""Columns of a table, as ``model.states()`` gives them."""


class HiddenSummary(NamedTuple):
    """A hidden variable and the observed ones that it is tied to, strongest first, with signs.

    Members whose nearest hidden variable it is are its own. A hidden variable among hidden ones
    may have none of its own (``own`` is False); members are then those tied most strongly.
    ``about`` names the variables that it informs most about.
    """

    name: str
    members: tuple[str, ...]
    strengths: tuple[float, ...]
    own: bool
    about: str = ""


def hidden_summaries(model: Model) -> list[HiddenSummary]:
    """Return for each hidden variable the observed ones whose nearest hidden variable it is.

    The strength of two variables is the product of the strengths of the edges between them.
    """
    tree: Tree = model.tree
    if not tree.n_hidden:
        return []
    called = captions(model)
    # The model's own signs, as its states, posteriors and samples have them.
    signed = loadings(model, oriented=False)
    strength = np.abs(signed)
    nearest = strength.argmax(axis=0)
    found = []
    for k, h in enumerate(tree.hidden.tolist()):
        order = np.argsort(-strength[k], kind="stable")
        order = order[strength[k][order] > 0]  # of the same component
        members = order[nearest[order] == k]
        shown = members if members.size else order[:_FROM_AFAR]
        found.append(
            HiddenSummary(
                tree.names[h],
                tuple(tree.names[v] for v in shown.tolist()),
                tuple(signed[k][shown].tolist()),
                bool(members.size),
                called.get(tree.names[h], ""),
            )
        )
    return found


class StateSummary(NamedTuple):
    """The states of a hidden variable: how large they are, and what its members are in each.

    ``rows`` has a row for every member that holds a number, and for every label of the others
    (the second label alone where there are two): variable, value, and a cell for every state. Of
    many labels those that differ most between the states have one, and the others one together.
    """

    name: str
    sizes: tuple[float, ...]
    rows: tuple[tuple[str, ...], ...]


def state_summaries(
    model: Model,
    summaries: list[HiddenSummary],
    most: int | None,
    most_labels: int | None = 12,
) -> list[StateSummary]:
    """Return the states of hidden variables, with at most so many members, and labels of each."""
    if isinstance(model, GaussianTreeModel | CopulaTreeModel):
        return []
    found = []
    for summary in summaries:
        table = model.states(summary.name)
        places = _places(table["variable"])
        rows: list[tuple[str, ...]] = []
        for member in summary.members[:most]:
            rows += _member_rows(table, member, places[member], most_labels)
        states = range(len(table) - 2)
        sizes = tuple(float(table[k][0]) for k in states)
        found.append(StateSummary(summary.name, sizes, tuple(rows)))
    return found


def _places(names: list[str]) -> dict[str, list[int]]:
    """Rows of each variable."""
    places: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        places.setdefault(name, []).append(row)
    return places


def _member_rows(
    table: StateTable, member: str, rows: list[int], most_labels: int | None
) -> list[tuple[str, ...]]:
    """Return the rows of one member: mean and deviation, or a row for every label."""
    columns = [table[k] for k in range(len(table) - 2)]
    labels = [table["value"][row] for row in rows]
    if labels == ["mean", "sd"]:
        mean, sd = rows
        cells = (f"{_figure(column[mean], 4)} ± {_figure(column[sd], 2)}" for column in columns)
        return [(member, "mean ± sd", *cells)]
    shown, others = rows[1:] if len(rows) == 2 else rows, []
    if most_labels is not None and len(rows) > most_labels + 1:
        apart = np.ptp(np.array([column[rows[0] : rows[-1] + 1] for column in columns]), axis=0)
        chosen = set(np.argsort(-apart, kind="stable")[:most_labels].tolist())
        shown = [row for place, row in enumerate(rows) if place in chosen]
        others = [row for place, row in enumerate(rows) if place not in chosen]
    found = [
        (
            member if row == shown[0] else "",
            str(table["value"][row]),
            *(percent(column[row]) for column in columns),
        )
        for row in shown
    ]
    if others:
        rest = (percent(sum(column[row] for row in others)) for column in columns)
        found.append(("", f"{len(others):,} others", *rest))
    return found


def _figure(value: float, digits: int) -> str:
    """A number with so many digits, without a power of ten where it is of a common size."""
    if value and not 1e-4 <= abs(value) < 1e10:
        return f"{value:.{digits}g}"
    return np.format_float_positional(value, digits, unique=False, fractional=False, trim="-")


def percent(share: float) -> str:
    """A probability in percent."""
    return f"{100.0 * share:.1f} %"

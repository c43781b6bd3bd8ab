"""BIF, the text format of discrete Bayesian networks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from latentree._plain import check_text
from latentree.errors import FileError
from latentree.models import DiscreteTreeModel, MixedTreeModel

NUMBERS = ("real", "count")
"""Kinds of variables without states."""

StateModel = DiscreteTreeModel | MixedTreeModel


def to_bif(model: StateModel) -> str:
    """Write a model of states in the Interchange Format for Bayesian networks.

    In the dialect that pgmpy, HLTA and others read: names in double quotes, one row per state of
    the parent, states of hidden nodes called ``s0``, ``s1``, …. Characters of names and labels
    other than letters, digits and ``_.-`` are percent-encoded as in web addresses
    (``urllib.parse.unquote`` restores them); an empty name is a single ``%``. Labels are text in
    BIF: 1 and "1" look the same.

    Parameters
    ----------
    model : DiscreteTreeModel, or MixedTreeModel without reals and counts

    Returns
    -------
    str

    References
    ----------
    F. Cozman: The Interchange Format for Bayesian Networks, 1998.

    Examples
    --------
    >>> from latentree import DiscreteTreeModel, Tree
    >>> model = DiscreteTreeModel(Tree([-1], names=["rain"]), [[0.75, 0.25]], [["no", "yes"]])
    >>> print(to_bif(model))
    network "latentree" {
    }
    variable "rain" {
      type discrete[2] { "no", "yes" };
    }
    probability ( "rain" ) {
      table 0.75 0.25;
    }
    <BLANKLINE>
    """
    if not isinstance(model, StateModel):
        raise FileError(f"BIF holds discrete models, not a {type(model).__name__}")
    refuse_numbers(model, "BIF")
    tree = model.tree
    names = _distinct_identifiers(tree.names)
    states = [_state_identifiers(labels) for labels in state_names(model)]
    lines = ['network "latentree" {', "}"]
    for name, own in zip(names, states, strict=True):
        listed = ", ".join(f'"{state}"' for state in own)
        lines += [f'variable "{name}" {{', f"  type discrete[{len(own)}] {{ {listed} }};", "}"]
    for node in tree.order.tolist():
        above, table = int(tree.parent[node]), model.layout.table(model.theta, node).tolist()
        if above < 0:
            lines += [f'probability ( "{names[node]}" ) {{', f"  table {_row(table[0])};", "}"]
            continue
        lines.append(f'probability ( "{names[node]}" | "{names[above]}" ) {{')
        lines += [f'  ( "{s}" ) {_row(row)};' for s, row in zip(states[above], table, strict=True)]
        lines.append("}")
    return "\n".join(lines) + "\n"


def refuse_numbers(model: StateModel, what: str) -> None:
    """Raise an error that names the first variable that holds numbers instead of states."""
    kinds = model.schema.kinds
    numbers = [name for name, k in zip(model.schema.names, kinds, strict=True) if k in NUMBERS]
    if numbers:
        raise FileError(
            f"{what} holds states only, but {numbers[0]!r} is a number ({len(numbers):,} such "
            "variables): export the tree (.graphml, .nwk), or save the model file (.json)"
        )


def state_names(model: StateModel) -> list[list[Hashable]]:
    """Labels of the states of every node; s0, s1, … for hidden ones, as HLTA calls them."""
    hidden = model.n_states[model.tree.n_observed :].tolist()
    states: list[list[Hashable]] = [list(labels) for labels in model.schema.labels]
    return states + [[f"s{state}" for state in range(count)] for count in hidden]


def _row(numbers: list[float]) -> str:
    return " ".join(map(repr, numbers))


def _identifier(text: str, escape_all: bool = False) -> str:
    check_text(text, "a name")
    if not text:
        return "%"
    return "".join(
        c if not escape_all and (c.isalnum() or c in "_.-") else _percent(c) for c in text
    )


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _distinct_identifiers(names: Iterable[str]) -> list[str]:
    """Return identifiers that differ even to readers that do not tell A from a, as pgmpy."""
    out: list[str] = []
    taken: set[str] = set()
    for name in names:
        text = _identifier(name)
        if text.lower() in taken:
            text = _identifier(name, escape_all=True)
        taken.add(text.lower())
        out.append(text)
    return out


def _state_identifiers(labels: list[Hashable]) -> list[str]:
    texts = [str(label) for label in labels]
    if len(set(texts)) < len(texts):  # as 1 and "1"
        texts = [repr(label) for label in labels]
    return [_identifier(text) for text in texts]

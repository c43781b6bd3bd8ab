"""From a model to the bytes of its file."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from latentree import _plain as plain
from latentree.data import Schema
from latentree.errors import FileError
from latentree.inference import (
    FreeEmission,
    Margin,
    NormalMargin,
    Odds,
    Thresholds,
    steps_of,
)
from latentree.models._copula import CopulaTreeModel
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._mixed import MixedTreeModel
from latentree.models._mixture import Model, TreeMixture

FORMAT = "latentree model"
VERSION = 1
"""Version of the format; a reader refuses newer ones."""


def encode(model: Model | TreeMixture, report: Mapping[str, object] | None = None) -> bytes:
    """Return the bytes of the file of a model; equal models and reports give equal bytes.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel, MixedTreeModel or TreeMixture
    report : mapping, optional
        What to remember beside the model.

    Returns
    -------
    bytes
        JSON in UTF-8.

    Examples
    --------
    >>> from latentree import GaussianTreeModel, Tree
    >>> encode(GaussianTreeModel(Tree([-1, 0]), [0, 0.5])).splitlines()[1]
    b'  "format": "latentree model",'
    """
    fields = {"format": _line(FORMAT), "version": _line(VERSION)}
    if isinstance(model, TreeMixture):
        parts = (_object(_component_fields(part), indent="    ") for part in model.components)
        fields["weights"] = _line(model.weights.tolist())
        fields["components"] = _list(parts, indent="  ")
    else:
        fields |= _component_fields(model)
    for key, found in model.schema.beside().items():
        plain.check_nested(found, key)
        fields[key] = _list(map(_line, found), indent="  ")
    if report is not None:
        fields["report"] = _report(report)
    return (_object(fields) + "\n").encode()


def _component_fields(model: Model) -> dict[str, str]:
    """Return the fields of one tree with its parameters."""
    tree = model.tree
    plain.check_texts(tree.names, "names")
    fields = {
        "family": _line(model.schema.family),
        "n_observed": _line(tree.n_observed),
        "names": _line(list(tree.names)),
        "parent": _line(tree.parent.tolist()),
        "length": _line(tree.length.tolist()),
    }
    if isinstance(model, GaussianTreeModel):
        fields |= _gaussian_fields(model)
    elif isinstance(model, MixedTreeModel):
        fields |= _mixed_fields(model)
    elif isinstance(model, CopulaTreeModel):
        fields |= _copula_fields(model)
    else:
        fields |= _discrete_fields(model)
    if model.schema.is_mixed:
        fields["kinds"] = _line(list(model.schema.kinds))
    for key, given in (("states", model.state_names), ("notes", model.notes)):
        if given:
            plain.check_texts([*given, *chain.from_iterable(given.values())], key)
            lines = {name: _line(given[name]) for name in tree.names if name in given}
            fields[key] = _object(lines, indent="  ")
    return fields


def _gaussian_fields(model: GaussianTreeModel) -> dict[str, str]:
    numbers = {
        "correlations": model.correlations,
        "means": model.means,
        "scales": model.scales,
    }
    lines = {name: _line(array.tolist()) for name, array in numbers.items()}
    return {"parameters": _object(lines, indent="  ")}


def _discrete_fields(model: DiscreteTreeModel) -> dict[str, str]:
    return _table_fields(model.schema, (table.tolist() for table in model.tables))


def _mixed_fields(model: MixedTreeModel) -> dict[str, str]:
    return _table_fields(model.schema, map(_parameters, model.parameters))


def _copula_fields(model: CopulaTreeModel) -> dict[str, str]:
    lines = {
        "correlations": _line(model.correlations.tolist()),
        "margins": _list(map(_line, map(_margin, model.margins)), indent="    "),
    }
    return {"parameters": _object(lines, indent="  "), "labels": _labels_of(model.schema)}


def _margin(margin: Margin) -> dict[str, object]:
    """Return a margin in plain values."""
    if isinstance(margin, Thresholds):
        return {"thresholds": margin.thresholds.tolist()}
    if isinstance(margin, Odds):
        return {"intercepts": margin.intercepts.tolist(), "slopes": margin.slopes.tolist()}
    if isinstance(margin, NormalMargin):
        return {"mean": margin.mean, "sd": margin.sd, **steps_of(margin)}
    return {
        "values": margin.values.tolist(),
        "scores": margin.scores.tolist(),
        "tails": [list(tail) for tail in margin.tails],
        **steps_of(margin),
    }


def _parameters(part: Any) -> object:
    """Return a table or an emission in plain values."""
    return part.plain() if isinstance(part, FreeEmission) else part.tolist()


def _table_fields(schema: Schema, tables: Iterable[object]) -> dict[str, str]:
    return {
        "parameters": _object({"tables": _list(map(_line, tables), indent="    ")}, indent="  "),
        "labels": _labels_of(schema),
    }


def _labels_of(schema: Schema) -> str:
    labels = [[plain.plain_scalar(label) for label in states] for states in schema.labels]
    for name, states in zip(schema.names, labels, strict=True):
        check_labels(states, f"the labels of {name!r}")
    return _list(map(_line, labels), indent="  ")


def check_labels(states: Sequence[Hashable], part: str) -> None:
    """Check that labels are plain values, no two of them equal (as 1, 1.0 and true are)."""
    plain.check_scalars(states, part)
    if len(set(states)) < len(states):
        raise FileError(f"{part} are not all different: {plain.shown(repr(states))}")


def _report(report: Mapping[str, object]) -> str:
    values = plain.plain_nested(report, "report")
    assert isinstance(values, dict)
    plain.check_nested(values, "report")
    lines = {key: _line(values[key]) for key in sorted(values)}
    return _object(lines, indent="  ")


# Layout: one line for a list of numbers, one line a node for lists of lists ------------------


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def _object(fields: Mapping[str, str], indent: str = "") -> str:
    lines = [f"{indent}  {_line(key)}: {text}" for key, text in fields.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"


def _list(items: Iterable[str], indent: str) -> str:
    return "[\n" + ",\n".join(f"{indent}  {item}" for item in items) + f"\n{indent}]"

"""From a model to the bytes of its file."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from latentree import _plain as plain
from latentree._fields import write
from latentree._plain import Fields
from latentree.data import Schema
from latentree.errors import FileError
from latentree.models._copula import CopulaTreeModel
from latentree.models._format import FORMAT, VERSION, file_form
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._mixed import MixedTreeModel
from latentree.models._mixture import Model, TreeMixture


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
    fields: Fields = {"format": FORMAT, "version": VERSION}
    if isinstance(model, TreeMixture):
        fields["weights"] = model.weights
        fields["components"] = list(map(_component, model.components))
    else:
        fields |= _component(model)
    fields |= model.schema.beside()
    fields |= {} if report is None else {"report": report}
    return (write(file_form(fields), fields) + "\n").encode()


def _component(model: Model) -> Fields:
    """Return what a file holds of a tree and its parameters."""
    tree, schema = model.tree, model.schema
    fields = {
        "family": schema.family,
        "n_observed": tree.n_observed,
        "names": tree.names,
        "parent": tree.parent.tolist(),
        "length": tree.length,
        "parameters": _parameters(model),
    }
    if schema.family != "gaussian":
        fields["labels"] = list(_labels(schema))
    if schema.is_mixed:
        fields["kinds"] = schema.kinds
    for key, given in (("states", model.state_names), ("notes", model.notes)):
        if given:
            fields[key] = {name: given[name] for name in tree.names if name in given}
    return fields


def _parameters(model: Any) -> object:
    if isinstance(model, GaussianTreeModel | CopulaTreeModel):
        return model
    tables = model.parameters if isinstance(model, MixedTreeModel) else model.tables
    return {"tables": [t.tolist() if isinstance(t, np.ndarray) else t for t in tables]}


def _labels(schema: Schema) -> Iterator[list[object]]:
    for name, states in zip(schema.names, schema.labels, strict=True):
        labels = [plain.plain_scalar(label) for label in states]
        check_labels(labels, f"the labels of {name!r}")
        yield labels


def check_labels(states: Sequence[Hashable], part: str) -> None:
    """Check that labels are plain values, no two of them equal (as 1, 1.0 and true are)."""
    plain.check_scalars(states, part)
    if len(set(states)) < len(states):
        raise FileError(f"{part} are not all different: {plain.shown(repr(states))}")

"""From the bytes of a file to a model; every part is checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import numpy as np

from latentree import _plain as plain
from latentree._plain import Fields, as_dict, as_list, as_numbers
from latentree.data import NumberFormat, Schema
from latentree.errors import FileError, LatentTreeError
from latentree.inference import Emission, Layout, RankMargin
from latentree.models._base import with_schema
from latentree.models._copula import CopulaTreeModel
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._encode import check_labels
from latentree.models._format import FORMAT, MAX_LISTS, TOLERANCE, VERSION, file_form
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._mixed import MixedTreeModel, mixed_schema
from latentree.models._mixture import Model, TreeMixture
from latentree.models._naming import Names, renamed
from latentree.tree import Tree
from latentree.typing import Family, FloatArray, IntArray, Kind, PlainReport

Sized = TypeVar("Sized", bound=Sequence[Any] | FloatArray)

Content = dict[str, Any]
"""What was read by the declaration of its form, with the types stated there."""

MAX_DIGITS = 400
"""Converting an integer takes quadratic time in its digits; the largest float has 309."""

ROUNDING = 1e-12
"""Rows of tables whose sums are this close to 1 are taken as they are, to the last bit."""


class ModelFile(NamedTuple):
    """The content of a model file."""

    model: Model | TreeMixture
    report: PlainReport | None


def decode(data: bytes) -> ModelFile:
    """Read the bytes of a model file; every fault is a :class:`FileError` that names the part."""
    content = as_dict(parse(data), "the file")
    _check_version(content)
    try:
        fields: Content = file_form(content).read(content, "the file")
        model = _mixture(fields) if "components" in fields else _component(fields)
        formats = _formats(fields.get("formats", []), model.schema.names)
        aside = tuple(fields.get("aside", ()))
        model = with_schema(model, replace(model.schema, aside=aside, formats=formats))
    except FileError:
        raise
    except LatentTreeError as error:  # what the constructors check: cycles, ranges, distinct names
        raise FileError(str(error)) from error
    return ModelFile(model, fields.get("report"))


def _mixture(fields: Content) -> Model | TreeMixture:
    """Return a mixture: weights, and components that are written as files of one tree are."""
    components = []
    for number, part in enumerate(fields["components"]):
        try:
            components.append(_component(part))
        except FileError as error:
            raise FileError(f"components[{number}]: {error}") from error
    return TreeMixture(components, _sized(fields["weights"], len(components), "weights"))


def _component(fields: Content) -> Model:
    """Return one tree with its parameters."""
    model = _READERS[fields["family"]](_tree(fields), fields)
    names = Names(states=fields.get("states", {}), notes=fields.get("notes", {}))
    return renamed(with_schema(model, _schema(model.schema, fields)), names)


# JSON ---------------------------------------------------------------------------------------


def parse(data: bytes) -> object:
    """Parse strict JSON: no NaN, no key twice, bounded nesting, numbers of bounded length."""
    if not data.strip():
        raise FileError("the file is empty")
    if data.count(b"[") + data.count(b"{") > MAX_LISTS:
        raise FileError(f"the file holds more than {MAX_LISTS} lists")
    try:
        content: object = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_distinct,
            parse_constant=_refuse_constant,
            parse_int=_integer,
        )
        return content
    except FileError:
        raise
    except UnicodeDecodeError as error:
        raise FileError(f"is not text in UTF-8: byte {error.start} is no character") from None
    except RecursionError:
        raise FileError("the file nests lists or dicts too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FileError(f"is not JSON, or was cut off: {error.msg} in {where}") from None


def _distinct(pairs: list[tuple[str, object]]) -> Fields:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise FileError(f"the key {plain.shown(twice)} stands twice in one dict")
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise FileError(f"the file holds {text}, but numbers must be finite")


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise FileError(f"the file holds an integer of {len(text)} digits")
    return int(text)


# Checks -------------------------------------------------------------------------------------


def _check_version(fields: Content) -> None:
    if fields.get("format") != FORMAT:
        raise FileError(f"is not a latentree model: 'format' is not {FORMAT!r}")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise FileError(f"version is {plain.shown(version)}, but must be a positive integer")
    if version > VERSION:
        raise FileError(
            f"was written by a newer latentree (version {plain.shown(version)} of the format, this "
            f"one reads up to {VERSION}): upgrade latentree to read it"
        )


def _sized(values: Sized, size: int, part: str) -> Sized:
    """Check how many entries a part has."""
    if len(values) != size:
        raise FileError(f"{part} has {len(values)} entries, but needs {size}")
    return values


def _kinds(fields: Content, usual: Sequence[str]) -> list[Kind]:
    """Return the kinds of the columns of a file, or the usual ones."""
    return _sized(cast(list[Kind], fields.get("kinds", list(usual))), len(usual), "kinds")


# The parts ----------------------------------------------------------------------------------


def _tree(fields: Content) -> Tree:
    names, n_observed = fields["names"], fields["n_observed"]
    n = len(names)
    if n_observed > n:
        raise FileError(
            f"n_observed is {n_observed}, but must be from 1 to the {n} nodes that have names"
        )
    parent = _sized(fields["parent"], n, "parent")
    for node in (node for node, above in enumerate(parent) if above >= n):
        what = f"but must be −1 or a node, 0 … {n - 1}"
        raise FileError(f"parent[{node}] is {parent[node]}, {what}")
    return Tree(parent, _sized(fields["length"], n, "length"), n_observed, names)


def _gaussian(tree: Tree, fields: Content) -> GaussianTreeModel:
    sizes = {"correlations": tree.n_nodes, "means": tree.n_observed, "scales": tree.n_observed}
    return GaussianTreeModel(tree, *(_parameters(fields, key, sizes[key]) for key in sizes))


def _parameters(fields: Content, key: str, size: int) -> Any:
    return _sized(fields["parameters"][key], size, f"parameters.{key}")


def _mixed(tree: Tree, fields: Content) -> MixedTreeModel:
    entries = _parameters(fields, "tables", tree.n_nodes)
    emissions = [None if type(entry) is list else entry for entry in entries]
    layout, theta = _flat_tables(tree, [e if type(e) is list else [] for e in entries], emissions)
    labels = _labels(fields, layout.n_states[: tree.n_observed])
    kinds = _kinds(fields, ["category"] * tree.n_observed)
    schema = mixed_schema(layout, emissions, labels, kinds)
    model = MixedTreeModel.__new__(MixedTreeModel)
    model._set(tree, layout.n_states, theta, tuple(emissions[: tree.n_observed]), schema)
    return model


def _copula(tree: Tree, fields: Content) -> CopulaTreeModel:
    rho = _parameters(fields, "correlations", tree.n_nodes)
    kinds = _kinds(fields, ["ordered"] * tree.n_observed)
    margins = [
        replace(margin, kind=kind) if kind == "count" and type(margin) is RankMargin else margin
        for margin, kind in zip(_parameters(fields, "margins", tree.n_observed), kinds, strict=True)
    ]
    n_levels = [getattr(margin, "n_levels", 0) for margin in margins]
    labels = _labels(fields, np.array(n_levels, np.int64))
    return CopulaTreeModel(tree, rho, margins, labels)


def _flat_tables(
    tree: Tree, tables: list[object], emissions: Sequence[Emission | None] | None = None
) -> tuple[Layout, FloatArray]:
    """Check all tables and lay them end to end; nodes with an emission have none."""
    emits = [each is not None for each in emissions or [None] * tree.n_nodes]
    rows = _table_rows(tree, tables, emits)
    n_states = np.array([len(rows_[0]) if rows_ else 0 for rows_ in rows], np.int64)
    layout = Layout(tree, n_states)
    wanted = np.where(layout.emits, 0, layout.parent_states)
    for node in np.flatnonzero([len(rows_) for rows_ in rows] != wanted)[:1]:
        raise FileError(
            f"parameters.tables[{node}] has {len(rows[node])} rows, "
            f"but the parent has {layout.parent_states[node]} states"
        )
    return layout, _probabilities(layout, _theta(rows))


def _discrete(tree: Tree, fields: Content) -> DiscreteTreeModel:
    layout, theta = _flat_tables(tree, _parameters(fields, "tables", tree.n_nodes))
    n_states = layout.n_states
    labels = _labels(fields, n_states[: tree.n_observed])
    if fields["family"] == "symmetric":
        _check_symmetric(layout, theta)
    # Not by the public constructors: they scale the rows again, which can change the last bit.
    model = DiscreteTreeModel.__new__(DiscreteTreeModel)
    model._set(tree, n_states, theta, labels, cast(Family, fields["family"]))
    return model


def _table_rows(tree: Tree, tables: list[object], emits: list[bool]) -> list[list[list[object]]]:
    """Rows of all tables, one at a root, checked to be lists of one length that is not 0."""
    out: list[list[list[object]]] = []
    for node, table in enumerate(tables):
        if emits[node]:
            out.append([])
            continue
        part = f"parameters.tables[{node}]"
        is_root = tree.parent[node] < 0
        given = [table] if is_root else as_list(table, part)
        rows = [as_list(row, part if is_root else f"a row of {part}") for row in given]
        for row in rows:
            if len(row) != len(rows[0]):
                raise FileError(f"{part} has rows of {len(rows[0])} and of {len(row)} entries")
        if not rows or not rows[0]:
            raise FileError(f"{part} is empty, but every node has at least one state")
        out.append(rows)
    return out


def _theta(rows: list[list[list[object]]]) -> FloatArray:
    """All tables end to end."""
    flat = list(chain.from_iterable(chain.from_iterable(rows)))
    try:
        return as_numbers(flat, "parameters.tables")
    except FileError:  # again node by node, to name the place
        for node, table in enumerate(rows):
            for number, row in enumerate(table):
                as_numbers(row, f"parameters.tables[{node}], row {number}, entry ")
        raise


def _probabilities(layout: Layout, theta: FloatArray) -> FloatArray:
    sums = layout.row_sums(theta)
    n_rows = np.where(layout.emits, 0, layout.parent_states)
    row_node = np.repeat(np.arange(layout.n_states.size), n_rows)
    negative = np.flatnonzero(theta < 0)
    if negative.size:
        node = np.searchsorted(layout.starts, negative[0], side="right") - 1
        raise FileError(f"parameters.tables[{node}] holds {theta[negative[0]]}, no probability")
    wrong = np.flatnonzero(np.abs(sums - 1.0) > TOLERANCE)
    if wrong.size:
        raise FileError(
            f"a row of parameters.tables[{row_node[wrong[0]]}] sums to {sums[wrong[0]]}, "
            "but must sum to 1"
        )
    return theta if np.abs(sums - 1.0).max(initial=0.0) <= ROUNDING else layout.normalized(theta)


def _check_symmetric(layout: Layout, theta: FloatArray) -> None:
    """Check that all nodes have K states, roots are uniform and all wrong states alike."""
    k = int(layout.n_states[0])
    if (layout.n_states != k).any():
        raise FileError("family is symmetric, but the nodes differ in their numbers of states")
    inner = layout.tree.parent >= 0
    below = np.repeat(inner, layout.parent_states * k)
    wrong_states = theta[below].reshape(-1, k, k)[:, ~np.eye(k, dtype=bool)]
    spread = np.zeros(inner.size)
    spread[~inner] = np.ptp(theta[~below].reshape(-1, k), axis=1)
    if k > 1:
        spread[inner] = np.ptp(wrong_states, axis=1)
    node = int(spread.argmax())
    if spread[node] > TOLERANCE:
        raise FileError(f"family is symmetric, but parameters.tables[{node}] is not")


def _labels(fields: Content, n_states: IntArray) -> list[list[Hashable]]:
    labels: list[list[Hashable]] = _sized(fields["labels"], n_states.size, "labels")
    for node, states in enumerate(labels):
        check_labels(_sized(states, int(n_states[node]), f"labels[{node}]"), f"labels[{node}]")
    return labels


def _schema(schema: Schema, fields: Content) -> Schema:
    """Return the schema of a model with the kinds of its file, which its parameters must have."""
    kinds = _kinds(fields, schema.kinds)
    for column, (kind, own) in enumerate(zip(kinds, schema.kinds, strict=True)):
        # Two labels without an order are behind a threshold too.
        is_pair = schema.family == "copula" and len(schema.labels[column]) == 2
        if kind != own and not (is_pair and kind in ("ordered", "category")):
            raise FileError(
                f"the kind of {plain.shown(schema.names[column])} is {plain.shown(kind)}, but its "
                f"parameters are those of kind {own!r}"
            )
    return replace(schema, kinds=tuple(kinds))


def _formats(formats: list[Content], names: Sequence[str]) -> tuple[NumberFormat | None, ...]:
    """Return how the numbers of every column are written; nothing if all come as numbers."""
    by_name: dict[object, NumberFormat] = {}
    for index, column in enumerate(formats):
        if column["name"] not in names:
            raise FileError(f"formats[{index}] names no column of the model")
        by_name[column["name"]] = NumberFormat(column["decimal"], column["unit"])
    return tuple(map(by_name.get, names)) if by_name else ()


_READERS: dict[str, Callable[[Tree, Content], Model]] = {
    "gaussian": _gaussian,
    "discrete": _discrete,
    "symmetric": _discrete,
    "mixed": _mixed,
    "copula": _copula,
}

"""From the bytes of a file to a model; every part is checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from latentree import _plain as plain
from latentree._plain import Fields, as_dict, as_list, as_numbers, as_texts, check_keys
from latentree.data import FAMILIES, NumberFormat, Schema, SetAside
from latentree.errors import FileError, LatentTreeError
from latentree.inference import (
    CountEmission,
    Emission,
    FreeEmission,
    GaussianEmission,
    Layout,
    Margin,
    NormalMargin,
    Odds,
    RankMargin,
    Thresholds,
    ZeroInflatedEmission,
)
from latentree.models._base import with_schema
from latentree.models._copula import CopulaTreeModel
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._encode import FORMAT, VERSION, check_labels
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._mixed import MixedTreeModel, mixed_schema
from latentree.models._mixture import Model, TreeMixture
from latentree.models._naming import Names, renamed
from latentree.tree import Tree
from latentree.typing import Family, FloatArray, IntArray, Kind, PlainReport

MAX_LISTS = 4_000_000
"""An empty list takes three bytes in the file and seventy in memory, so their number is bounded."""

MAX_DIGITS = 400
"""Converting an integer takes quadratic time in its digits; the largest float has 309."""

ROUNDING = 1e-12
"""Rows of tables whose sums are this close to 1 are taken as they are, to the last bit."""

TOLERANCE = 1e-6
"""Rows with sums this close to 1 are scaled; others are refused."""

_TREE_KEYS = ("family", "n_observed", "names", "parent", "length")


class ModelFile(NamedTuple):
    """The content of a model file."""

    model: Model | TreeMixture
    report: PlainReport | None


def decode(data: bytes) -> ModelFile:
    """Read the bytes of a model file; every fault is a :class:`FileError` that names the part."""
    fields = as_dict(parse(data), "the file")
    _check_version(fields)
    try:
        model: Model | TreeMixture
        model = _mixture(fields) if "components" in fields else _single(fields)
        schema = replace(model.schema, aside=_aside(fields.get("aside", [])))
        formats = _formats(fields.get("formats", []), schema.names)
        model = with_schema(model, replace(schema, formats=formats))
    except FileError:
        raise
    except LatentTreeError as error:  # what the constructors check: cycles, ranges, distinct names
        raise FileError(str(error)) from error
    return ModelFile(model, _report(fields))


_FILE_KEYS = ("format", "version")
_FILE_OPTIONS = ("report", "aside", "formats")


def _mixture(fields: Fields) -> TreeMixture:
    """Return a mixture: weights, and components that are written as files of one tree are."""
    required = (*_FILE_KEYS, "weights", "components")
    check_keys(fields, "the file", required, optional=_FILE_OPTIONS)
    parts = as_list(fields["components"], "components")
    weights = as_numbers(as_list(fields["weights"], "weights", len(parts)), "weights")
    components = []
    for number, part in enumerate(parts):
        try:
            components.append(_component(as_dict(part, "the component"), "the component"))
        except FileError as error:
            raise FileError(f"components[{number}]: {error}") from error
    return TreeMixture(components, weights)


def _single(fields: Fields) -> Model:
    return _component(fields, "the file", _FILE_KEYS, _FILE_OPTIONS)


def _component(
    fields: Fields,
    part: str,
    required: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
) -> Model:
    """Return one tree with its parameters."""
    family = fields.get("family")
    if family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise FileError(f"family is {plain.shown(family)}, but must be one of {known}")
    own_keys = ("parameters",) if family == "gaussian" else ("parameters", "labels")
    optional = (*optional, "kinds", "states", "notes")
    check_keys(fields, part, (*required, *_TREE_KEYS, *own_keys), optional=optional)
    tree = _tree(fields)
    model = _READERS[family](tree, fields)
    return renamed(with_schema(model, _schema(model.schema, fields)), _names(fields))


def _names(fields: Fields) -> Names:
    """Return what people call states, and their notes."""
    states = as_dict(fields.get("states", {}), "states")
    labels = {name: as_texts(as_list(given, "states"), "states") for name, given in states.items()}
    notes = as_dict(fields.get("notes", {}), "notes")
    as_texts(list(notes.values()), "notes")
    return Names(states=labels, notes=cast(dict[str, str], notes))


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


def _check_version(fields: Fields) -> None:
    if fields.get("format") != FORMAT:
        raise FileError(f"is no model of latentree: 'format' is not {FORMAT!r}")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise FileError(f"version is {plain.shown(version)}, but must be a positive integer")
    if version > VERSION:
        raise FileError(
            f"was written by a newer latentree (version {plain.shown(version)} of the format, this "
            f"one reads up to {VERSION}): upgrade latentree to read it"
        )


def _kinds(fields: Fields, usual: Sequence[str]) -> list[Kind]:
    """Return the kinds of the columns of a file, or the usual ones."""
    kinds = as_list(fields.get("kinds", list(usual)), "kinds", len(usual))
    return cast(list[Kind], kinds)  # the schema checks them


# The parts ----------------------------------------------------------------------------------


def _tree(fields: Fields) -> Tree:
    names = as_texts(as_list(fields["names"], "names"), "names")
    if not names:
        raise FileError("names is empty, but a tree has at least one node")
    n_observed = fields["n_observed"]
    if type(n_observed) is not int or not 1 <= n_observed <= len(names):
        raise FileError(
            f"n_observed is {plain.shown(n_observed)}, but must be from 1 to the "
            f"{len(names)} nodes that have names"
        )
    parent: list[int] = []
    for node, above in enumerate(as_list(fields["parent"], "parent", len(names))):
        if type(above) is not int or not -1 <= above < len(names):
            what = f"but must be −1 or a node, 0 … {len(names) - 1}"
            raise FileError(f"parent[{node}] is {plain.shown(above)}, {what}")
        parent.append(above)
    length = as_numbers(as_list(fields["length"], "length", len(names)), "length")
    return Tree(parent, length, n_observed, names)


def _gaussian(tree: Tree, fields: Fields) -> GaussianTreeModel:
    parameters = as_dict(fields["parameters"], "parameters")
    sizes = {"correlations": tree.n_nodes, "means": tree.n_observed, "scales": tree.n_observed}
    check_keys(parameters, "parameters", tuple(sizes))
    parts = {
        f"parameters.{key}": as_list(parameters[key], f"parameters.{key}", sizes[key])
        for key in sizes
    }
    return GaussianTreeModel(tree, *(as_numbers(values, part) for part, values in parts.items()))


def _mixed(tree: Tree, fields: Fields) -> MixedTreeModel:
    entries = _tables(tree, fields)
    emissions = [
        _emission(entry, f"parameters.tables[{node}]") if type(entry) is dict else None
        for node, entry in enumerate(entries)
    ]
    layout, theta = _flat_tables(tree, [[] if type(e) is dict else e for e in entries], emissions)
    labels = _labels(fields["labels"], layout.n_states[: tree.n_observed])
    kinds = _kinds(fields, ["category"] * tree.n_observed)
    schema = mixed_schema(layout, emissions, labels, kinds)
    model = MixedTreeModel.__new__(MixedTreeModel)
    model._set(tree, layout.n_states, theta, tuple(emissions[: tree.n_observed]), schema)
    return model


def _copula(tree: Tree, fields: Fields) -> CopulaTreeModel:
    parameters = as_dict(fields["parameters"], "parameters")
    check_keys(parameters, "parameters", ("correlations", "margins"))
    part = "parameters.correlations"
    rho = as_numbers(as_list(parameters["correlations"], part, tree.n_nodes), part)
    entries = as_list(parameters["margins"], "parameters.margins", tree.n_observed)
    kinds = _kinds(fields, ["ordered"] * tree.n_observed)
    margins = [
        _margin(as_dict(entry, f"parameters.margins[{j}]"), f"parameters.margins[{j}]", kind)
        for j, (entry, kind) in enumerate(zip(entries, kinds, strict=True))
    ]
    n_levels = [getattr(margin, "n_levels", 0) for margin in margins]
    labels = _labels(fields["labels"], np.array(n_levels, np.int64))
    return CopulaTreeModel(tree, rho, margins, labels)


_MARGINS: dict[str, tuple[str, ...]] = {
    "thresholds": ("thresholds",),
    "intercepts": ("intercepts", "slopes"),
    "mean": ("mean", "sd", "resolution"),
    "values": ("values", "scores", "tails", "resolution"),
}
"""The keys of each kind of margin, by the one that tells it."""


def _margin(entry: Fields, part: str, kind: object) -> Margin:
    first = next((key for key in _MARGINS if key in entry), "thresholds")
    is_number = "resolution" in _MARGINS[first]
    check_keys(entry, part, _MARGINS[first], optional=("origin",) if is_number else ())

    def numbers(key: str) -> FloatArray:
        return as_numbers(as_list(entry[key], f"{part}.{key}"), f"{part}.{key}")

    def number(key: str) -> float:
        return float(as_numbers([entry[key]], f"{part}.{key}")[0])

    if first == "thresholds":
        return Thresholds(numbers("thresholds"))
    if first == "intercepts":
        return Odds(numbers("intercepts"), numbers("slopes"))
    resolution = number("resolution")
    if resolution < 0:
        raise FileError(f"{part}.resolution is {resolution}, but must not be negative")
    origin = number("origin") if "origin" in entry else 0.0
    if first == "mean":
        return NormalMargin(number("mean"), number("sd"), resolution, origin)
    tails = [
        as_numbers(as_list(tail, f"{part}.tails", 2), f"{part}.tails").tolist()
        for tail in as_list(entry["tails"], f"{part}.tails", 2)
    ]
    known: Kind = "count" if kind == "count" else "real"
    return RankMargin(numbers("values"), numbers("scores"), tails, resolution, known, origin)


_LEAVES: tuple[type[FreeEmission], ...] = (ZeroInflatedEmission, GaussianEmission, CountEmission)
"""The kinds of emissions that a file may hold."""


def _emission(entry: Fields, part: str) -> FreeEmission:
    kind = next((leaf for leaf in _LEAVES if leaf.fields[-1] in entry), CountEmission)
    steps = ("resolution", "origin") if "resolution" in kind.fields else ()
    check_keys(entry, part, kind.fields, optional=steps[1:])
    n_states = len(as_list(entry["mean"], f"{part}.mean"))
    values: dict[str, Any] = {}
    for key, given in entry.items():
        name = f"{part}.{key}"
        if key in steps:
            values[key] = float(as_numbers([given], name)[0])
            continue
        numbers = as_list(given, name, n_states)
        is_infinite = np.array([key == "size" and number is None for number in numbers], bool)
        finite = [1.0 if none else x for x, none in zip(numbers, is_infinite, strict=True)]
        values[key] = np.where(is_infinite, np.inf, as_numbers(finite, name))
    return kind(**values)


def _tables(tree: Tree, fields: Fields) -> list[object]:
    parameters = as_dict(fields["parameters"], "parameters")
    check_keys(parameters, "parameters", ("tables",))
    return as_list(parameters["tables"], "parameters.tables", tree.n_nodes)


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


def _discrete(tree: Tree, fields: Fields) -> DiscreteTreeModel:
    layout, theta = _flat_tables(tree, _tables(tree, fields))
    n_states = layout.n_states
    labels = _labels(fields["labels"], n_states[: tree.n_observed])
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


def _labels(value: object, n_states: IntArray) -> list[list[Hashable]]:
    labels = []
    for node, given in enumerate(as_list(value, "labels", n_states.size)):
        states: list[Hashable] = as_list(given, f"labels[{node}]", int(n_states[node]))
        check_labels(states, f"labels[{node}]")
        labels.append(states)
    return labels


def _schema(schema: Schema, fields: Fields) -> Schema:
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


def _aside(value: object) -> tuple[SetAside, ...]:
    found = []
    for index, given in enumerate(as_list(value, "aside")):
        part = f"aside[{index}]"
        column = as_dict(given, part)
        check_keys(column, part, ("name", "place", "why"), optional=("value",))
        name, why = as_texts([column["name"], column["why"]], part)
        plain.check_scalars([column.get("value")], f"{part}.value")
        place = column["place"]
        if type(place) is not int or not 0 <= place < MAX_LISTS:
            raise FileError(f"{part}.place is {plain.shown(place)}, but must be a number ≥ 0")
        found.append(SetAside(name, place, why, column.get("value")))
    return tuple(found)


def _formats(value: object, names: Sequence[str]) -> tuple[NumberFormat | None, ...]:
    """Return how the numbers of every column are written; nothing if all come as numbers."""
    found: dict[str, NumberFormat] = {}
    for index, given in enumerate(as_list(value, "formats")):
        part = f"formats[{index}]"
        column = as_dict(given, part)
        check_keys(column, part, ("name", "decimal", "unit"))
        name, decimal, unit = as_texts([column["name"], column["decimal"], column["unit"]], part)
        if name not in names or decimal not in (".", ","):
            raise FileError(f"{part} names no column of the model, or no decimal mark")
        found[name] = NumberFormat(decimal, unit)
    return tuple(map(found.get, names)) if found else ()


def _report(fields: Fields) -> PlainReport | None:
    if "report" not in fields:
        return None
    report = as_dict(fields["report"], "report")
    plain.check_nested(report, "report")
    return report


_READERS: dict[str, Callable[[Tree, Fields], Model]] = {
    "gaussian": _gaussian,
    "discrete": _discrete,
    "symmetric": _discrete,
    "mixed": _mixed,
    "copula": _copula,
}

"""Reading trees from GraphML, ours or another program's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from latentree._plain import check_text, shown
from latentree.errors import FileError, LatentTreeError
from latentree.tree import Tree, root_edge_list


class _Key(NamedTuple):
    """What a ``<key>`` declares: the name of an attribute, and its value where none is given."""

    name: str
    default: str | None


_Keys = dict[str, dict[str, _Key]]  # by "node" or "edge", then by identifier


def from_graphml(text: str, observed: Sequence[str] | None = None) -> Tree:
    """Read a tree from GraphML, ours or another program's.

    A node's name is its ``name``, or its ``label``, or its identifier; an edge's length is its
    ``length``, 1 if it has none. Hidden nodes with fewer than three neighbours are suppressed.

    Parameters
    ----------
    text : str
    observed : sequence of str, optional
        Names of the observed nodes in the order wanted; by default the attribute ``observed``
        decides.
    """
    keys, graph = _parts(text)
    data = {_attribute(node, "id"): _data(node, keys["node"]) for node in _children(graph, "node")}
    names = [own.get("name", own.get("label", key)) for key, own in data.items()]
    if observed is None:
        first = _marked(names, [own.get("observed") for own in data.values()])
    else:
        first = _places(names, observed)
    seen = set(first)
    order = first + [place for place in range(len(names)) if place not in seen]
    keys_in_order = list(data)
    number = {keys_in_order[place]: new for new, place in enumerate(order)}
    edges = _edges(graph, number)
    lengths = [
        _number(_data(edge, keys["edge"]).get("length", "1")) for edge in _children(graph, "edge")
    ]
    try:
        rooted = root_edge_list(edges, len(names), lengths)
        names = [names[place] for place in order]
        return Tree.from_parents(*rooted, len(first), names, minimal=True)
    except LatentTreeError as error:
        raise FileError(f"the GraphML text holds no valid tree: {error}") from error


def _parts(text: str) -> tuple[_Keys, Any]:
    """Return the declared keys and the graph element."""
    if "<!DOCTYPE" in text:  # entities could grow without bound, and GraphML needs none
        raise FileError("the GraphML text has a DOCTYPE, which is not read")
    check_text(text, "the GraphML text")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise FileError(f"the GraphML text is not XML: {error}") from None
    graphs = _children(root, "graph")
    if _tag(root) != "graphml" or len(graphs) != 1:
        raise FileError(f"expected GraphML with one graph, got <{_tag(root)}> with {len(graphs)}")
    keys: _Keys = {"node": {}, "edge": {}}
    for key in _children(root, "key"):
        defaults = _children(key, "default")
        entry = _Key(key.get("attr.name", ""), (defaults[0].text or "") if defaults else None)
        for kind in keys:
            if key.get("for", "all") in (kind, "all"):
                keys[kind][_attribute(key, "id")] = entry
    return keys, graphs[0]


def _edges(graph: Any, number: dict[str, int]) -> list[tuple[int, int]]:
    ends = [
        (_attribute(edge, "source"), _attribute(edge, "target"))
        for edge in _children(graph, "edge")
    ]
    for key in (key for pair in ends for key in pair if key not in number):
        raise FileError(f"an edge of the GraphML text names the absent node {shown(key)}")
    return [(number[a], number[b]) for a, b in ends]


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _children(element: Any, tag: str) -> list[Any]:
    return [child for child in element if _tag(child) == tag]


def _attribute(element: Any, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise FileError(f"a <{_tag(element)}> of the GraphML text has no {name!r}")
    return str(value)


def _data(element: Any, keys: dict[str, _Key]) -> dict[str, str]:
    data = {key.name: key.default for key in keys.values() if key.default is not None}
    for child in _children(element, "data"):
        key = keys.get(child.get("key", ""))
        if key is not None:
            data[key.name] = child.text or ""
    return data


def _places(names: list[str], observed: Sequence[str]) -> list[int]:
    place = {name: index for index, name in enumerate(names)}
    absent = [name for name in observed if name not in place]
    if absent:
        raise FileError(f"no node of the GraphML text is called {absent[0]!r}")
    if len(set(observed)) < len(observed):
        raise FileError("observed lists a name twice")
    return [place[name] for name in observed]


def _marked(names: list[str], marks: list[str | None]) -> list[int]:
    for name, mark in zip(names, marks, strict=True):
        if mark is None:
            raise FileError(
                f"node {name!r} of the GraphML text is not marked observed or not: "
                "pass observed=[…]"
            )
    return [i for i, mark in enumerate(marks) if (mark or "").strip().lower() in ("true", "1")]


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FileError(f"a length in the GraphML text is {shown(text)}, no finite number")
    return number

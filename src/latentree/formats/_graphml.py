"""Reading trees from GraphML, ours or another program's.

Not by networkx: it leaves out the defaults that keys declare, takes edges to absent nodes for
nodes, and lets entities grow without bound. Memory is proportional to the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latentree._plain import check_text, shown
from latentree.errors import FileError, LatentTreeError
from latentree.formats._observed import observed_first, places_of
from latentree.tree import Tree, root_edge_list


def from_graphml(text: str, observed: Sequence[str] | None = None) -> Tree:
    """Read a tree from GraphML, ours or another program's.

    A node's name is its ``name``, or its ``label``, or its identifier; an edge's length is its
    ``length``, 1 if it has none. Hidden nodes with fewer than three neighbors are suppressed.

    Parameters
    ----------
    text : str
        With one graph and without a DOCTYPE.
    observed : sequence of str, optional
        Names of the observed nodes in the order wanted; by default the attribute ``observed``
        decides.

    Returns
    -------
    Tree

    Raises
    ------
    FileError
        When the text is no GraphML, or its graph is no tree.

    References
    ----------
    U. Brandes, M. Eiglsperger, I. Herman, M. Himsolt and M. S. Marshall: GraphML progress report:
    structural layer proposal. Graph Drawing, 2001.

    Examples
    --------
    >>> from latentree import Tree
    >>> from latentree.formats import to_graphml
    >>> from_graphml(to_graphml(Tree([-1, 0], names=["a", "b"])))
    Tree(2 observed, 0 hidden, 1 edges)
    """
    root, graph = _parts(text)
    node_data = _data_reader(root, "node", ("name", "label", "observed"))
    edge_data = _data_reader(root, "edge", ("length",))
    data = {_attribute(node, "id"): node_data(node) for node in _children(graph, "node")}
    names = [own.get("name", own.get("label", key)) for key, own in data.items()]
    if observed is None:
        first = _marked(names, [own.get("observed") for own in data.values()])
    else:
        first = places_of(observed, names, "GraphML")
    order = observed_first(first, len(names))
    keys = list(data)
    number = {keys[place]: new for new, place in enumerate(order)}
    ends = [(_attribute(e, "source"), _attribute(e, "target")) for e in _children(graph, "edge")]
    edges = [[_numbered(number, key) for key in pair] for pair in ends]
    lengths = [_length(edge_data(edge).get("length", "1")) for edge in _children(graph, "edge")]
    try:
        rooted = root_edge_list(edges, len(names), lengths)
        names = [names[place] for place in order]
        return Tree.from_parents(*rooted, len(first), names, minimal=True)
    except LatentTreeError as error:
        raise FileError(f"the GraphML text holds no valid tree: {error}") from error


def _parts(text: str) -> tuple[Element, Element]:
    """Return the root of the document and the graph in it."""
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
    return root, graphs[0]


def _data_reader(
    root: Element, kind: str, wanted: Sequence[str]
) -> Callable[[Element], dict[str, str]]:
    """Return what reads the wanted attributes of nodes or edges, with the declared defaults."""
    names: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for key in _children(root, "key"):
        identifier, name = _attribute(key, "id"), key.get("attr.name", "")
        if name in wanted and key.get("for", "all") in (kind, "all"):
            names[identifier] = name
            for default in _children(key, "default"):
                defaults[name] = default.text or ""

    def read(element: Element) -> dict[str, str]:
        given = {child.get("key", ""): child.text or "" for child in _children(element, "data")}
        return defaults | {names[key]: text for key, text in given.items() if key in names}

    return read


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _children(element: Element, tag: str) -> list[Element]:
    return [child for child in element if _tag(child) == tag]


def _attribute(element: Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise FileError(f"a <{_tag(element)}> of the GraphML text has no {name!r}")
    return str(value)


def _numbered(number: dict[str, int], key: str) -> int:
    if key not in number:
        raise FileError(f"an edge of the GraphML text names the absent node {shown(key)}")
    return number[key]


def _marked(names: list[str], marks: list[str | None]) -> list[int]:
    for name, mark in zip(names, marks, strict=True):
        if mark is None:
            raise FileError(
                f"node {name!r} of the GraphML text is not marked observed or not: "
                "pass observed=[…]"
            )
    return [i for i, mark in enumerate(marks) if (mark or "").strip().lower() in ("true", "1")]


def _length(text: str) -> float:
    try:
        length = float(text)
    except ValueError:
        length = math.nan
    if not math.isfinite(length):
        raise FileError(f"a length in the GraphML text is {shown(text)}, not a finite number")
    return length

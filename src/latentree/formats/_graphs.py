"""Trees for programs that draw and analyze graphs: GraphML, GEXF, DOT, Cytoscape, node-link JSON.

Nodes are called ``n0``, ``n1``, … and carry their names as text, because identifiers of these
formats may not hold every character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from latentree._plain import check_text
from latentree.errors import FileError
from latentree.models import (
    CopulaTreeModel,
    DiscreteTreeModel,
    GaussianTreeModel,
    MixedTreeModel,
    Model,
)
from latentree.tree import Tree
from latentree.typing import FloatArray

if TYPE_CHECKING:
    import networkx

# XML 1.0 has no way to write these, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_XML = '<?xml version="1.0" encoding="UTF-8"?>'

_ENTITY = re.compile(r"&(?=#?\w+;)")


# What is written ----------------------------------------------------------------------------


def tree_of(item: Model | Tree) -> Tree:
    """Return the tree of a model, or the tree itself."""
    tree = item if isinstance(item, Tree) else getattr(item, "tree", None)
    if not isinstance(tree, Tree):
        raise FileError(f"expected a tree or a model, got a {type(item).__name__}")
    return tree


NodeData = dict[str, str | bool | int]
"""Attributes of a node by name."""


def _node_data(item: Model | Tree, node: int) -> NodeData:
    tree = tree_of(item)
    data: NodeData = {"name": tree.names[node], "observed": node < tree.n_observed}
    if isinstance(item, DiscreteTreeModel | MixedTreeModel) and item.n_states[node]:
        data["n_states"] = int(item.n_states[node])
    if isinstance(item, MixedTreeModel | CopulaTreeModel) and node < tree.n_observed:
        data["kind"] = item.schema.kinds[node]
    return data


def _edge_data(item: Model | Tree, child: int, support: FloatArray | None) -> dict[str, float]:
    data = {"length": float(tree_of(item).length[child])}
    if support is not None and not np.isnan(support[child]):
        data["support"] = float(support[child])
    if isinstance(item, GaussianTreeModel | CopulaTreeModel):
        data["correlation"] = float(item.correlations[child])
    return data


def _nodes(item: Model | Tree) -> Iterator[tuple[str, NodeData]]:
    for node in range(tree_of(item).n_nodes):
        yield f"n{node}", _node_data(item, node)


def _edges(
    item: Model | Tree, support: ArrayLike | None
) -> Iterator[tuple[str, str, dict[str, float]]]:
    tree, sure = tree_of(item), None if support is None else np.asarray(support, np.float64)
    if sure is not None and sure.shape != tree.parent.shape:
        raise FileError(f"{tree.n_nodes} nodes need as many values of support, got {sure.shape}")
    for above, below in tree.edges.tolist():
        yield f"n{above}", f"n{below}", _edge_data(item, below, sure)


# XML ----------------------------------------------------------------------------------------


def _graph(item: Model | Tree, support: ArrayLike | None, **extra: str) -> networkx.Graph:
    """Return a networkx graph of ``n0``, ``n1``, …; each extra attribute copies another one."""
    import networkx

    graph = networkx.Graph()
    for key, data in _nodes(item):
        graph.add_node(key, **data, **{new: data[old] for new, old in extra.items()})
    graph.add_edges_from(_edges(item, support))
    return graph


def _check_xml(tree: Tree, kind: str) -> None:
    for name in tree.names:
        odd = _NOT_XML.search(name)
        if odd:
            raise FileError(
                f"the name {name!r} holds {odd.group()!r}, which {kind} cannot: "
                "rename it, or write JSON, Newick or DOT"
            )


def to_graphml(item: Model | Tree, support: ArrayLike | None = None) -> str:
    """Write a tree as GraphML: ``name`` and ``observed`` of nodes, ``length`` of edges.

    Models add ``correlation`` or ``n_states``, mixed ones the ``kind`` of a variable. Control
    characters in names are refused, because XML has none.

    Parameters
    ----------
    item : Tree or model
    support : array of float, one per node, optional
        How sure the edge above each node is, from 0 to 1: an attribute ``support`` of edges.

    Returns
    -------
    str

    Examples
    --------
    >>> from latentree import Tree
    >>> text = to_graphml(Tree([-1, 0], names=["a", "b"]))
    >>> '<node id="n0">' in text
    True
    """
    from networkx.readwrite.graphml import GraphMLWriter

    _check_xml(tree_of(item), "GraphML")
    # Not by generate_graphml, which breaks names into lines. A bare carriage return in XML is read
    # as a line feed; escaped it stays.
    text = str(GraphMLWriter(_graph(item, support), prettyprint=True)).replace("\r", "&#13;")
    return f"{_XML}\n{text}"


def to_gexf(item: Model | Tree, support: ArrayLike | None = None) -> str:
    """Write a tree as GEXF for Gephi, labeled by the names; otherwise like :func:`to_graphml`.

    Parameters
    ----------
    item : Tree or model
    support : array of float, one per node, optional
        How sure the edge above each node is, from 0 to 1: an attribute ``support`` of edges.

    Returns
    -------
    str

    References
    ----------
    GEXF file format, https://gexf.net

    Examples
    --------
    >>> from latentree import Tree
    >>> text = to_gexf(Tree([-1, 0], names=["a", "b"]))
    >>> '<node id="n0" label="a">' in text
    True
    """
    from networkx.readwrite.gexf import GEXFWriter

    _check_xml(tree_of(item), "GEXF")
    writer = GEXFWriter(prettyprint=True)
    writer.add_graph(_graph(item, support, label="name"))
    text = re.sub(r' lastmodifieddate="[^"]*"', "", str(writer), count=1)  # same tree, same text
    return f"{_XML}\n{text}"


# DOT ----------------------------------------------------------------------------------------


def to_dot(item: Model | Tree, support: ArrayLike | None = None) -> str:
    r"""Write a tree for Graphviz: boxes are observed, ellipses hidden, ``len`` the edge's length.

    Parameters
    ----------
    item : Tree or model
    support : array of float, one per node, optional
        How sure the edge above each node is, from 0 to 1: an attribute ``support`` of edges.

    Returns
    -------
    str

    References
    ----------
    The DOT language, https://graphviz.org/doc/info/lang.html

    Examples
    --------
    >>> from latentree import Tree
    >>> print(to_dot(Tree([-1, 0], names=["a", 'the "b"'])))
    graph latentree {
      n0 [label="a", shape=box];
      n1 [label="the \"b\"", shape=box];
      n0 -- n1 [len=1.0];
    }
    <BLANKLINE>
    """
    lines = ["graph latentree {"]
    for key, data in _nodes(item):
        shape = "box" if data["observed"] else "ellipse"
        lines.append(f"  {key} [label={_dot_text(str(data['name']))}, shape={shape}];")
    for above, below, edge in _edges(item, support):
        sure = f', label="{100.0 * edge["support"]:.0f}"' if "support" in edge else ""
        lines.append(f"  {above} -- {below} [len={edge['length']!r}{sure}];")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_text(name: str) -> str:
    check_text(name, "a name")
    if "\0" in name:
        raise FileError(f"the name {name!r} holds '\\x00', which DOT cannot: rename it")
    # Labels read \n, \N and \\ as escapes, and &amp; as an entity.
    text = _ENTITY.sub("&amp;", name.replace("\\", "\\\\").replace('"', '\\"'))
    return '"' + text.replace("\n", "\\n") + '"'


# JSON ---------------------------------------------------------------------------------------


def to_cytoscape(item: Model | Tree, support: ArrayLike | None = None) -> str:
    """Write a tree as Cytoscape JSON (.cyjs); ``value`` is for networkx, which reads it too.

    Parameters
    ----------
    item : Tree or model
    support : array of float, one per node, optional
        How sure the edge above each node is, from 0 to 1: an attribute ``support`` of edges.

    Returns
    -------
    str

    References
    ----------
    Cytoscape.js, elements JSON, https://js.cytoscape.org/#notation/elements-json

    Examples
    --------
    >>> import json
    >>> from latentree import Tree
    >>> graph = json.loads(to_cytoscape(Tree([-1, 0], names=["a", "b"])))
    >>> graph["elements"]["edges"][0]["data"]["id"]
    'n0-n1'
    """
    nodes = [{"data": {"id": key, "value": key, **data}} for key, data in _nodes(item)]
    edges = [
        {"data": {"id": f"{above}-{below}", "source": above, "target": below, **data}}
        for above, below, data in _edges(item, support)
    ]
    return _json({"data": {"name": "latentree"}, "elements": {"nodes": nodes, "edges": edges}})


def to_node_link(item: Model | Tree, support: ArrayLike | None = None) -> str:
    """Write a tree as node-link JSON, as networkx and D3 read it.

    Parameters
    ----------
    item : Tree or model
    support : array of float, one per node, optional
        How sure the edge above each node is, from 0 to 1: an attribute ``support`` of edges.

    Returns
    -------
    str

    Examples
    --------
    >>> import json
    >>> from latentree import Tree
    >>> json.loads(to_node_link(Tree([-1, 0], names=["a", "b"])))["edges"]
    [{'source': 'n0', 'target': 'n1', 'length': 1.0}]
    """
    nodes = [{"id": key, **data} for key, data in _nodes(item)]
    edges = [
        {"source": above, "target": below, **data} for above, below, data in _edges(item, support)
    ]
    return _json(
        {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}
    )


def _json(value: Mapping[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    check_text(text, "a name")
    return text + "\n"

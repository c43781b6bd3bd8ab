"""From what people have (edge lists, graphs) to parent arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from latentree._kernels import trees as kernels
from latentree.errors import TreeError

IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]


class Rooted(NamedTuple):
    """A rooted forest as plain arrays: ``parent[v]`` is −1 for a root, ``length[v]`` is 0 there."""

    parent: IntArray
    length: FloatArray


def root_edge_list(
    edges: Iterable[Sequence[int]] | IntArray,
    n_nodes: int,
    lengths: Sequence[float] | FloatArray | None = None,
    roots: Sequence[int] | IntArray = (),
) -> Rooted:
    """Orient undirected edges away from ``roots``; other components start at their lowest node."""
    pairs = _edge_array(edges)
    weights = np.ones(len(pairs)) if lengths is None else np.asarray(lengths, np.float64)
    if weights.shape != (len(pairs),):
        raise TreeError(f"{len(pairs)} edges need as many lengths, got shape {weights.shape}")
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n_nodes)).any(axis=1))
    if outside.size:
        a, b = pairs[outside[0]]
        raise TreeError(f"edge ({a}, {b}) names a node outside 0 … {n_nodes - 1}")
    parent, length, cycle = kernels.root_edges(
        n_nodes,
        np.ascontiguousarray(pairs[:, 0]),
        np.ascontiguousarray(pairs[:, 1]),
        weights,
        np.asarray(roots, np.int64),
    )
    if cycle >= 0:
        a, b = pairs[cycle]
        raise TreeError(f"edge ({a}, {b}) closes a cycle, but a tree has none")
    return Rooted(parent, length)


def _edge_array(edges: Iterable[Sequence[int]] | IntArray) -> IntArray:
    pairs = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise TreeError(f"edges must be pairs of nodes, got an array of shape {pairs.shape}")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise TreeError(f"edges must be pairs of integers, got {pairs.dtype}")
    return pairs.astype(np.int64)


def minimal_forest(rooted: Rooted, n_observed: int) -> tuple[Rooted, IntArray]:
    """Suppress hidden nodes with fewer than three neighbours.

    Returns the smaller forest and, for each of its nodes, the node that it was before. Components
    without an observed node vanish.
    """
    parent, length = root_at_observed(rooted, n_observed)
    order = traversal(parent)
    parent, length, kept = kernels.prune_and_splice(order, parent, length, n_observed)
    return renumber(Rooted(parent, length), kept)


def renumber(rooted: Rooted, kept: Any) -> tuple[Rooted, IntArray]:
    """Keep the marked nodes (whose parents are all kept) under new, gapless numbers."""
    old = np.flatnonzero(kept)
    new = np.full(len(rooted.parent) + 1, -1, np.int64)  # the last entry serves parent −1
    new[old] = np.arange(old.size)
    parent = new[rooted.parent[old]]
    return Rooted(parent, np.where(parent < 0, 0.0, rooted.length[old])), old


def root_at_observed(rooted: Rooted, n_observed: int) -> Rooted:
    """Root every component that has an observed node at its lowest one."""
    parent, length = rooted.parent.copy(), rooted.length.copy()
    order = traversal(parent)
    lowest = kernels.subtree_minimum(order, parent, np.arange(parent.size))
    for root in lowest[parent < 0]:
        if root < n_observed:
            kernels.flip_path(parent, length, root)
    return Rooted(parent, length)


def read_only(array: IntArray) -> IntArray:
    """Return a view that cannot be written: the kind that kernels are compiled for anyway."""
    view = array.view()
    view.flags.writeable = False
    return view


def traversal(parent: IntArray) -> IntArray:
    """Return every node after its parent, depth first; raise when there is a cycle."""
    parent = read_only(parent)
    order: IntArray = kernels.preorder(parent, *kernels.child_lists(parent))
    if order.size < parent.size:
        reached = np.zeros(parent.size, bool)
        reached[order] = True
        node = int(np.flatnonzero(~reached)[0])
        raise TreeError(f"node {node} lies on or below a cycle: following parents reaches no root")
    return order


def graph_edges(
    graph: Any, observed: Iterable[Hashable] | None, length: str
) -> tuple[list[Hashable], int, IntArray, FloatArray]:
    """Nodes of a networkx graph with the observed ones first, their number, edges and lengths."""
    if observed is None:
        marks = dict(graph.nodes(data="observed", default=None))
        unmarked = [node for node, mark in marks.items() if mark is None]
        if unmarked:
            raise TreeError(
                f"node {unmarked[0]!r} has no attribute 'observed': set it, or pass observed=[…]"
            )
        first = [node for node, mark in marks.items() if mark]
    else:
        first = list(observed)
        missing = [node for node in first if node not in graph]
        if missing:
            raise TreeError(f"observed node {missing[0]!r} is not in the graph")
    seen = set(first)
    if len(seen) < len(first):
        twice = next(node for node, count in Counter(first).items() if count > 1)
        raise TreeError(f"observed node {twice!r} is listed twice")
    nodes = first + [node for node in graph.nodes if node not in seen]
    number = {node: index for index, node in enumerate(nodes)}
    ends = [(number[a], number[b]) for a, b in graph.edges()]  # with () also of a multigraph
    edges = np.array(ends, np.int64).reshape(-1, 2)
    lengths = np.array([data.get(length, 1.0) for _, _, data in graph.edges(data=True)], np.float64)
    return nodes, len(first), edges, lengths

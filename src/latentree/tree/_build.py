"""From edge lists and graphs to parent arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentree._kernels import tree as kernels
from latentree.errors import TreeError
from latentree.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import networkx


class RootedForest(NamedTuple):
    """A rooted forest as plain arrays: ``parent[v]`` is −1 for a root, ``length[v]`` is 0 there."""

    parent: IntArray
    length: FloatArray


def root_edge_list(
    edges: Iterable[Sequence[int]] | IntArray,
    n_nodes: int,
    lengths: Sequence[float] | FloatArray | None = None,
) -> RootedForest:
    """Orient undirected edges away from the lowest node of each component."""
    pairs = _edge_array(edges)
    weights = np.ones(len(pairs)) if lengths is None else np.asarray(lengths, np.float64)
    if weights.shape != (len(pairs),):
        raise TreeError(f"{len(pairs)} edges need as many lengths, got shape {weights.shape}")
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n_nodes)).any(axis=1))
    if outside.size:
        a, b = pairs[outside[0]]
        raise TreeError(f"edge ({a}, {b}) names a node outside 0 … {n_nodes - 1}")
    a, b = pairs.T
    tails, heads = np.concatenate([a, b]), np.concatenate([b, a])
    _, parent = preorder(tails, heads, np.arange(n_nodes), n_nodes)
    below = np.where(parent[b] == a, b, a)
    length = np.zeros(n_nodes)
    length[below] = weights
    # An edge that was not taken closes a cycle; so does the second of two equal ones.
    number = np.arange(len(pairs))
    first = np.empty(n_nodes, np.int64)
    first[below[::-1]] = number[::-1]
    closing = np.flatnonzero((parent[below] != a + b - below) | (first[below] != number))
    if closing.size:
        a, b = pairs[closing[0]]
        raise TreeError(f"edge ({a}, {b}) closes a cycle, but a tree has none")
    return RootedForest(parent, length)


def _edge_array(edges: Iterable[Sequence[int]] | IntArray) -> IntArray:
    pairs = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise TreeError(f"edges must be pairs of nodes, got an array of shape {pairs.shape}")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise TreeError(f"edges must be pairs of integers, got {pairs.dtype}")
    return pairs.astype(np.int64)


def minimal_forest(rooted: RootedForest, n_observed: int) -> tuple[RootedForest, IntArray]:
    """Suppress hidden nodes with fewer than three neighbors.

    Returns the smaller forest and, for each of its nodes, the node that it was before. Components
    without an observed node vanish.
    """
    traversal(rooted.parent)  # finds cycles
    return pruned_forest(root_at_lowest(rooted), n_observed)


def pruned_forest(rooted: RootedForest, n_observed: int) -> tuple[RootedForest, IntArray]:
    """Suppress hidden nodes as :func:`minimal_forest`, given components rooted at lowest nodes."""
    degree = degrees(rooted.parent)
    if degree[n_observed:].min(initial=3) >= 3:
        return rooted, np.arange(degree.size)
    order = traversal(rooted.parent)
    anchor, climb = np.full(degree.size, -1), np.zeros(degree.size)
    kernels.prune_and_splice(order, *rooted, n_observed, degree, anchor, climb)
    degree[:n_observed] = 3
    return renumber(RootedForest(anchor, climb), degree >= 3)


def degrees(parent: IntArray) -> IntArray:
    """Return the number of neighbors of every node."""
    inner = parent >= 0
    return np.bincount(parent[inner], minlength=parent.size) + inner


def merged_groups(parent: IntArray, contracted: BoolArray) -> IntArray:
    """Name every node by the lowest one it is merged with when edges (by child) are contracted."""
    nodes = np.arange(parent.size)
    top = np.where(contracted & (parent >= 0), parent, nodes)
    # Pointer jumping: each round doubles the steps toward the top of a group, O(log depth) rounds.
    while not np.array_equal(further := top[top], top):
        top = further
    lowest = np.empty_like(nodes)
    lowest[top[::-1]] = nodes[::-1]  # of several that go to the same place, the last one stays
    return lowest[top]


def renumber(rooted: RootedForest, kept: BoolArray) -> tuple[RootedForest, IntArray]:
    """Keep the marked nodes (whose parents are all kept) under new, gapless numbers."""
    old = np.flatnonzero(kept)
    new = np.full(len(rooted.parent) + 1, -1, np.int64)  # the last entry serves parent −1
    new[old] = np.arange(old.size)
    parent = new[rooted.parent[old]]
    return RootedForest(parent, np.where(parent < 0, 0.0, rooted.length[old])), old


def root_at_lowest(rooted: RootedForest) -> RootedForest:
    """Root every component at its lowest node, which is an observed one wherever there is any."""
    below = np.flatnonzero(rooted.parent >= 0)
    edges = np.column_stack([rooted.parent[below], below])
    return root_edge_list(edges, rooted.parent.size, rooted.length[below])


def child_lists(parent: IntArray) -> tuple[IntArray, IntArray]:
    """Children of every node, ascending: those of v are ``items[starts[v]:starts[v + 1]]``."""
    below = np.flatnonzero(parent >= 0)
    count = np.bincount(parent[below], minlength=parent.size)
    return np.concatenate([[0], np.cumsum(count)]), below[np.argsort(parent[below], kind="stable")]


def preorder(tails: IntArray, heads: IntArray, roots: IntArray, n: int) -> tuple[IntArray, ...]:
    """Return the nodes that arcs reach from the roots, depth first, and the parent of each."""
    starts, items, stack = np.zeros(n + 2, np.int64), np.empty_like(tails), np.empty(n, np.int64)
    order, parent = np.empty(n, np.int64), np.full(n, -2)
    count = kernels.preorder(tails, heads, roots, starts, items, stack, order, parent)
    return order[:count], parent


def traversal(parent: IntArray, key: IntArray | None = None) -> IntArray:
    """Return every node after its parent, depth first; raise when there is a cycle.

    Children come in ascending order, or in that of their keys.
    """
    nodes = np.arange(parent.size) if key is None else np.argsort(key, kind="stable")
    above = parent[nodes]
    roots = np.flatnonzero(parent < 0)
    order, _ = preorder(above[above >= 0], nodes[above >= 0], roots, parent.size)
    if order.size < parent.size:
        reached = np.zeros(parent.size, bool)
        reached[order] = True
        node = int(np.flatnonzero(~reached)[0])
        raise TreeError(f"node {node} lies on or below a cycle: following parents reaches no root")
    return order


def graph_edges(
    graph: networkx.Graph, observed: Iterable[Hashable] | None, length: str
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

"""What both models do alike with nodes, rows and random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from latentree.errors import ModelError
from latentree.tree import Tree
from latentree.typing import IntArray, Node

CHUNK_CELLS = 1 << 23
"""Rows are taken in chunks of about this many numbers, to bound the memory in use."""


def node_number(tree: Tree, node: Node) -> int:
    """Return the number of a node given by number or by name."""
    if isinstance(node, str):
        return tree.index(node)
    if not 0 <= node < tree.n_nodes:
        raise ModelError(f"there is no node {node}: nodes are 0 … {tree.n_nodes - 1}")
    return int(node)


def node_numbers(tree: Tree, nodes: Iterable[Node] | None) -> IntArray:
    """Return the numbers of nodes given by number or name; the hidden ones by default."""
    if nodes is None:
        return tree.hidden
    return np.array([node_number(tree, node) for node in nodes], np.int64)


def child_of_edge(tree: Tree, a: Node, b: Node) -> int:
    """Return the lower end of the edge between two nodes."""
    first, second = node_number(tree, a), node_number(tree, b)
    if tree.parent[first] == second:
        return first
    if tree.parent[second] == first:
        return second
    raise ModelError(f"there is no edge between {tree.names[first]!r} and {tree.names[second]!r}")


def numbered_evidence(tree: Tree, given: Mapping[Node, Any] | None) -> dict[int, Any]:
    """Return evidence by the numbers of the nodes."""
    return {node_number(tree, node): value for node, value in (given or {}).items()}


def chunks(n_rows: int, numbers_per_row: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, all of a size, that keep at most ``CHUNK_CELLS`` numbers in memory."""
    most = max(1, CHUNK_CELLS // max(1, numbers_per_row))
    n_chunks = -(-n_rows // most)
    for chunk in range(n_chunks):
        yield n_rows * chunk // n_chunks, n_rows * (chunk + 1) // n_chunks


def weighted_total(per_row: Any, weights: Any) -> float:
    """Sum over rows, where a row of weight 0 counts for nothing even if it is −∞."""
    if weights is None:
        return float(per_row.sum())
    return float(np.where(weights > 0, weights * np.where(weights > 0, per_row, 0.0), 0.0).sum())

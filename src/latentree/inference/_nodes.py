"""Nodes by number or name, evidence about them, and rows in chunks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np

from latentree.errors import ModelError
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray, Node

CHUNK_CELLS = 1 << 23
"""Most numbers that a chunk of rows keeps: 64 MB."""


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


def numbered_evidence(tree: Tree, given: Mapping[Node, Hashable] | None) -> dict[int, Hashable]:
    """Return evidence, values of some nodes, by the numbers of the nodes."""
    return {node_number(tree, node): value for node, value in (given or {}).items()}


def given_number(tree: Tree, node: int, value: Hashable) -> float:
    """Return the value that a node is given as a number, or raise with the name of the node."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{tree.names[node]!r} is given as {value!r}, but must be a number"
        ) from error


def chunks(
    n_rows: int, numbers_per_row: int, most_numbers: int = CHUNK_CELLS
) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows of about equal size, with at most so many numbers each (or one row)."""
    most = max(1, most_numbers // max(1, numbers_per_row))
    n_chunks = -(-n_rows // most)
    for chunk in range(n_chunks):
        yield n_rows * chunk // n_chunks, n_rows * (chunk + 1) // n_chunks


def weighted_total(per_row: FloatArray, weights: FloatArray | None) -> float:
    """Return Σ w·x over rows, where a row of weight 0 counts for nothing even if x is −∞."""
    if weights is None:
        return float(per_row.sum())
    return float(np.where(weights > 0, weights * np.where(weights > 0, per_row, 0.0), 0.0).sum())

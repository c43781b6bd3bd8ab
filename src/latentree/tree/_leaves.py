"""Observed nodes that must hang from other nodes."""

from __future__ import annotations

import numpy as np

from latentree.tree._tree import Tree
from latentree.typing import IntArray


def hung_as_leaves(tree: Tree, nodes: IntArray) -> Tree:
    """Return a tree in which these observed nodes are leaves.

    An inner one hangs, at distance 0, from a new hidden node that takes over its neighbors, which
    with it are three or more.

    Parameters
    ----------
    tree : Tree
    nodes : array of int
        Observed nodes.

    Returns
    -------
    Tree
        The same one where nothing has to change.
    """
    inner = nodes[tree.degrees[nodes] > 1]
    if not inner.size:
        return tree
    # Neighbors of an inner node attach to its new hidden node, which takes its place in the tree.
    place = np.arange(tree.n_nodes)
    place[inner] = tree.n_nodes + np.arange(inner.size)
    parent = np.concatenate([tree.parent, tree.parent[inner]])
    length = np.concatenate([tree.length, tree.length[inner]])
    parent = np.where(parent >= 0, place[parent], -1)
    parent[inner], length[inner] = place[inner], 0.0
    return Tree(parent, length, tree.n_observed, tree.names[: tree.n_observed])


def tied_by_hidden(tree: Tree, nodes: IntArray) -> Tree:
    """Return a tree in which no two of these observed leaves are neighbors.

    Between two that are joined to each other alone, a new hidden node in the middle of the edge
    takes their place as the root.

    Parameters
    ----------
    tree : Tree
    nodes : array of int
        Observed leaves.

    Returns
    -------
    Tree
        The same one where nothing has to change.
    """
    chosen = np.zeros(tree.n_nodes + 1, bool)  # the last for the parent −1
    chosen[nodes] = True
    below = np.flatnonzero(chosen[:-1] & chosen[tree.parent])
    if not below.size:
        return tree
    above, added = tree.parent[below], tree.n_nodes + np.arange(below.size)
    parent = np.concatenate([tree.parent, np.full(below.size, -1)])
    length = np.concatenate([tree.length, np.zeros(below.size)])
    parent[below] = parent[above] = added
    length[below] = length[above] = 0.5 * tree.length[below]
    return Tree(parent, length, tree.n_observed, tree.names[: tree.n_observed])

"""Observed leaves: nodes made leaves, leaves kept apart, and the edges of leaves."""

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


def leaf_edges(tree: Tree) -> tuple[IntArray, IntArray]:
    """Return the neighbor of every observed leaf, and the node that its edge is stored at.

    The edge of a leaf is stored at the leaf, or at its child if the leaf is a root: what is said of
    a leaf must not depend on where the tree is rooted.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    neighbor, edge : array of int, one per observed node
        Both −1 of nodes that stand alone; of inner nodes one of their neighbors.
    """
    neighbor = np.array(tree.parent[: tree.n_observed])
    edge = np.where(neighbor >= 0, np.arange(tree.n_observed), -1)
    for root in tree.roots[tree.roots < tree.n_observed].tolist():
        if tree.degrees[root]:
            neighbor[root] = edge[root] = tree.children(root)[0]
    return neighbor, edge

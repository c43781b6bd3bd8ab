"""Contraction of edges that are too short to stand for anything.

Two reasons to contract an edge with a hidden end: it is shorter than a threshold ε′ (strong
edges, the paper's post-processing step), or, when the number of samples is known, its length is
not told apart from 0 by the data. The second is what keeps neighbor joining, which always makes
binary trees, from adding a hidden node at every turn.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.structure import branches
from latentree.structure._blocks import Block
from latentree.structure._lengths import fit_lengths
from latentree.tree import Tree
from latentree.typing import IntArray


def contract_short(tree: Tree, threshold: float) -> Tree:
    """Contract every edge shorter than the threshold, shortest first; other lengths stay.

    An edge between two observed nodes, or between two groups that hold one each, is kept.
    O(m log m) for m nodes.

    Parameters
    ----------
    tree : Tree
        Any tree or forest.
    threshold : float
        On the scale of the tree's lengths.

    Returns
    -------
    Tree
        The tree without these edges; the length of a contracted edge is dropped.

    Examples
    --------
    >>> from latentree.tree import Tree
    >>> tree = Tree.from_edges([(0, 4), (1, 4), (4, 5), (5, 2), (5, 3)], 4, [1, 1, 0.01, 1, 1])
    >>> contract_short(tree, 0.1)
    Tree(4 observed, 1 hidden, 4 edges)
    """
    below = tree.edges[:, 1]
    short = below[tree.length[below] < threshold]
    return _contract_greedily(tree, short[np.argsort(tree.length[short], kind="stable")])


def _contract_greedily(tree: Tree, candidates: IntArray) -> Tree:
    """Contract edges (by lower node) in the given order, unless two observed nodes would meet."""
    group = branches.greedy_groups(candidates, tree.parent, tree.n_observed)
    parent, length, kept = branches.merge_groups(tree.parent, tree.length, group)
    if kept.size == tree.n_nodes:
        return tree
    return Tree(parent, length, tree.n_observed, [tree.names[v] for v in kept])


def contract_insignificant(tree: Tree, block: Block, threshold: float) -> Tree:
    """Contract, a few at a time, and fit the lengths anew in between until all edges stand.

    An edge between hidden nodes stands when its length is at least the threshold and
    √(log n + log m) standard errors, the price of a parameter in BIC plus that of having chosen it
    among many; one between a hidden and an observed node when it reaches the threshold. Of
    neighboring candidates only the weakest goes in each pass, so that nothing cascades: what is
    left is measured again first.
    """
    tree = fit_lengths(tree, block)
    while True:
        weak = branches.weakest_edges(
            tree.order, tree.parent, tree.length, tree.n_observed, block.noise, threshold
        )
        smaller = _contract_greedily(tree, weak)
        if smaller.n_nodes == tree.n_nodes:
            # Once more from there: one fit may leave 1e-6 of where it began, that is of the order
            # of the variables.
            return fit_lengths(tree, block)
        tree = fit_lengths(smaller, block)


def finish_tree(tree: Tree, block: Block, exact: bool, threshold: float) -> Tree:
    """Contract what is too short, by what is known of the distances.

    Exact distances: lengths within rounding of 0. Estimates: the threshold, and if the number of
    samples is known also what the data cannot tell from 0.
    """
    if exact:
        return contract_short(tree, block.tolerance)
    threshold = max(threshold / block.unit, block.tolerance)
    if block.n_samples is None:
        return contract_short(tree, threshold)
    return contract_insignificant(tree, block, threshold)

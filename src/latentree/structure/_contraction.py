"""Contraction of edges that are too short to stand for anything.

Two reasons to contract an edge with a hidden end: it is shorter than a threshold ε′ (strong
edges, the paper's post-processing step), or, when the number of samples is known, its length is
not told apart from 0 by the data. The second is what keeps neighbor joining, which always makes
binary trees, from adding a hidden node at every turn.
"""

from __future__ import annotations

import math

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
    group = np.arange(tree.n_nodes)

    def find(v: int) -> int:
        while group[v] != v:
            group[v] = group[group[v]]
            v = int(group[v])
        return v

    chosen = []
    for child in map(int, candidates):
        low, high = sorted((find(child), find(int(tree.parent[child]))))
        if high >= tree.n_observed:  # the lowest node names a group, so an observed one does
            group[high] = low
            chosen.append(child)
    return tree.contract_edges(chosen) if chosen else tree


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
        weak = _weakest_edges(tree, block.noise, threshold)
        smaller = _contract_greedily(tree, weak)
        if smaller.n_nodes == tree.n_nodes:
            # Once more from there: one fit may leave 1e-6 of where it began, that is of the order
            # of the variables.
            return fit_lengths(tree, block)
        tree = fit_lengths(smaller, block)


def _weakest_edges(tree: Tree, noise: float, threshold: float) -> IntArray:
    """Edges that do not stand and are weaker than all such edges that they touch."""
    error = branches.edge_errors(tree.order, tree.parent, tree.length, tree.n_observed, noise)
    z = math.sqrt(math.log(tree.n_observed) - 2.0 * math.log(noise))  # √(log n + log m)
    below = tree.edges[:, 1]
    above = tree.parent[below]
    hidden_ends = (below >= tree.n_observed).astype(int) + (above >= tree.n_observed)
    needed = np.where(hidden_ends == 2, np.maximum(threshold, z * error[below]), threshold)
    score = tree.length[below] / np.maximum(needed, 1e-300)
    weak = (hidden_ends > 0) & (score < 1)
    lowest = np.full(tree.n_nodes, np.inf)
    np.minimum.at(lowest, below[weak], score[weak])
    np.minimum.at(lowest, above[weak], score[weak])
    chosen = weak & (score <= lowest[below]) & (score <= lowest[above])
    return below[chosen][np.argsort(score[chosen], kind="stable")]


def finish_tree(tree: Tree, block: Block, exact: bool, threshold: float) -> Tree:
    """Contract what is too short, by what is known of the distances.

    Exact distances: lengths within rounding of 0. Estimates: the threshold, and if the number of
    samples is known also what the data cannot tell from 0.
    """
    if exact:
        return contract_short(tree, block.tolerance)
    threshold = max(threshold, block.tolerance)
    if block.n_samples is None:
        return contract_short(tree, threshold)
    return contract_insignificant(tree, block, threshold)

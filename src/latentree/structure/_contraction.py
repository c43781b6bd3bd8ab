"""Contraction of edges that are too short to stand for anything.

Two reasons to contract an edge with a hidden end: it is shorter than a threshold ε′ (strong
edges, the paper's post-processing step), or, when the number of samples is known, its length is
not told apart from 0 by the data. The second is what keeps neighbor joining, which always makes
binary trees, from adding a hidden node at every turn.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels import gaussian as messages
from latentree.structure._blocks import Block
from latentree.structure._lengths import fit_lengths
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray


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
    parent, lowest = tree.parent.tolist(), list(range(tree.n_nodes))

    def name_of(node: int) -> int:
        """Return the lowest node of a group, which its nodes point to, step by step."""
        while lowest[node] != node:
            lowest[node] = node = lowest[lowest[node]]
        return node

    for v in candidates.tolist():
        low, high = sorted((name_of(v), name_of(parent[v])))
        if high >= tree.n_observed:  # else both groups have an observed node
            lowest[high] = low
    group = np.array(lowest)
    while not np.array_equal(further := group[group], group):
        group = further
    kept = np.flatnonzero(group == np.arange(tree.n_nodes))
    if kept.size == tree.n_nodes:
        return tree
    below = np.flatnonzero((tree.parent >= 0) & (group != group[tree.parent]))
    place = np.searchsorted(kept, group)
    above, length = np.full(kept.size, -1), np.zeros(kept.size)
    above[place[below]], length[place[below]] = place[tree.parent[below]], tree.length[below]
    return Tree(above, length, tree.n_observed, [tree.names[v] for v in kept])


def squared_multiple_correlations(tree: Tree) -> FloatArray:
    """Return, for every edge (by lower node), how well both ends are known from beyond it.

    The first row is ρ² between the parent of v and the best linear combination of the observed
    nodes in v's subtree, the second that between v and those outside.
    """
    rho = np.exp(-tree.length)
    own = np.repeat([0.0, -1.0], [tree.n_observed, tree.n_hidden])
    u = messages.variances(tree.order, tree.parent, rho, own).reshape(2, -1)
    return np.asarray(np.minimum(rho * rho * (1.0 - u), 1.0 - messages.LEAST))


def edge_errors(tree: Tree, noise: float) -> FloatArray:
    """Return the standard error of every edge's length (by lower node), from what both ends see.

    An edge between u and v is half of what the cross distances exceed the distances within the
    two sides by. With x_b = ρ_b²/(1 − ρ_b⁴) for each view b of a node, distances between views b
    and c have the precision n·x_b·x_c, so that
    variance · n = e^(2·length) / (A_u·A_v) + 1/(4·P_u) + 1/(4·P_v),
    A = Σ x_b and P = Σ_{b<c} x_b·x_c over the views that are not through the edge itself. An
    observed end is its own view: A = 1 and no third term.
    """
    n = tree.n_nodes
    below = np.flatnonzero(tree.parent >= 0)
    ends = np.concatenate([tree.parent[below], below])
    known = squared_multiple_correlations(tree)[:, below].ravel()
    x = known / (1.0 - known * known)
    views = np.maximum(np.bincount(ends, x, n)[ends] - x, 1e-200)
    squares = np.bincount(ends, x * x, n)[ends] - x * x
    within = 0.5 / np.maximum(views * views - squares, 1e-200)
    is_seen = ends < tree.n_observed
    views[is_seen], within[is_seen] = 1.0, 0.0
    errors = np.zeros(n)
    with np.errstate(over="ignore"):
        across = np.exp(2.0 * np.minimum(tree.length[below], 50.0))
        across = across / views[: below.size] / views[below.size :]
        variance = across + within[: below.size] + within[below.size :]
        errors[below] = noise * np.sqrt(variance)
    return errors


def _weakest_edges(tree: Tree, noise: float, threshold: float) -> IntArray:
    """Return edges (by lower node) that do not stand and are weaker than all such edges they touch.

    The weakest come first.
    """
    m = tree.n_observed
    below = np.flatnonzero(tree.parent >= 0)
    above = tree.parent[below]
    z = np.sqrt(np.log(m) - 2.0 * np.log(noise))  # √(log n + log m)
    needed = np.maximum(threshold, z * edge_errors(tree, noise)[below])
    needed[(below < m) | (above < m)] = threshold
    score = tree.length[below] / np.maximum(needed, 1e-300)
    score[(below < m) & (above < m)] = np.inf
    lowest = np.full(tree.n_nodes, np.inf)
    np.minimum.at(lowest, below, score)
    np.minimum.at(lowest, above, score)
    weakest = (score < 1.0) & (score <= lowest[below]) & (score <= lowest[above])
    return np.asarray(below[weakest][np.argsort(score[weakest], kind="stable")])


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
        smaller = _contract_greedily(tree, _weakest_edges(tree, block.noise, threshold))
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

"""The majority tree: splits that more than a given share of trees have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.support import heavy_paths
from latentree.errors import TreeError
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

_ROUNDING = 1e-9  # of a sum of shares


class Splits(NamedTuple):
    """The distinct splits of many trees: one row each."""

    share: FloatArray
    """Share of the trees that have it."""
    length: FloatArray
    """Mean length of its edges."""
    tree: IntArray
    """The number of a tree that has it, and the lower node of its edge there."""
    node: IntArray
    of: IntArray
    """Which split each edge of all trees is, and the tree of each edge."""
    tree_of: IntArray

    def counts(self, start: int, stop: int) -> IntArray:
        """How many of the trees from one to another have each split."""
        among = (self.tree_of >= start) & (self.tree_of < stop)
        return np.bincount(self.of[among], minlength=len(self.share))


def majority_tree(trees: Sequence[Tree], threshold: float = 0.5) -> Tree:
    """Return the tree of the splits that more than a share of trees have, lengths averaged.

    With a threshold of 0.5 no tree has a smaller mean Robinson-Foulds distance to the given ones.
    Where a variable is inside most trees, it is inside this one: the edge of a leaf is a split
    like others. If that would put several variables onto one node, the others become its leaves.

    Parameters
    ----------
    trees : sequence of Tree
        Over the same variables, in the same order.
    threshold : float
        At least 0.5, so that any two splits are together in some tree, and agree.

    Returns
    -------
    Tree

    References
    ----------
    Margush and McMorris, Consensus n-trees, Bulletin of Mathematical Biology 43, 1981.

    Barthélemy and McMorris, The median procedure for n-trees, Journal of Classification 3, 1986.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
    >>> split = lt.Tree([4, 4, 5, 5, -1, 4], n_observed=4)
    >>> majority_tree([star, split, split])
    Tree(4 observed, 2 hidden, 5 edges)
    """
    if not 0.5 <= threshold < 1.0:
        raise TreeError(f"threshold is {threshold}, but a majority is from 0.5 to below 1")
    found = count_splits(trees)
    return _tree_of(trees, found, np.flatnonzero(found.share > threshold))


def agreed_tree(
    own: Sequence[Tree],
    certainty: Sequence[FloatArray],
    replicates: Sequence[Sequence[Tree]],
    weights: Sequence[float] | FloatArray,
) -> Tree:
    """Return the tree of the splits that several learners agree on, lengths averaged.

    For every learner a split has two numbers: how probable it is in the tree of the rows
    themselves, 0 if that does not have it, and the share of the replicates with it. Their mean,
    averaged over the learners by their weights, is above one half for the splits that are kept. So
    the trees with a kept split have more than half of all weight: any two kept splits are together
    in some tree, and agree.

    Parameters
    ----------
    own : sequence of Tree
        The tree of every learner.
    certainty : sequence of array
        How probable the split above every node of these trees is.
    replicates : sequence of sequences of Tree
        Those of every learner.
    weights : array
        Of the learners, with sum 1.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
    >>> split = lt.Tree([4, 4, 5, 5, -1, 4], n_observed=4)
    >>> sure = [[1.0] * 6, [1.0] * 5]
    >>> agreed_tree([split, star], sure, [[split], [star]], [0.6, 0.4])
    Tree(4 observed, 2 hidden, 5 edges)
    >>> agreed_tree([split, star], sure, [[star], [star]], [0.6, 0.4])
    Tree(4 observed, 1 hidden, 4 edges)
    """
    trees = [*own, *(tree for each in replicates for tree in each)]
    found = count_splits(trees)
    agreement = np.zeros(len(found.share))
    start = len(own)
    for number, (tree, sure, each) in enumerate(zip(own, certainty, replicates, strict=True)):
        there = found.of[found.tree_of == number]
        agreement[there] += 0.5 * weights[number] * np.asarray(sure)[tree.edges[:, 1]]
        share = found.counts(start, start + len(each)) / len(each)
        agreement += 0.5 * weights[number] * share
        start += len(each)
    return _tree_of(trees, found, np.flatnonzero(agreement > 0.5 + _ROUNDING))


def _tree_of(trees: Sequence[Tree], found: Splits, kept: IntArray) -> Tree:
    """Return the tree of some splits that agree."""
    clusters = _clusters(trees, found, kept)
    clusters.sort(key=lambda cluster: cluster.members.size)
    edges = _edges_of_nested(clusters, trees)
    first = trees[0]
    ends = [(a, b) for a, b, _ in edges]
    lengths = [length for *_, length in edges]
    names = first.names[: first.n_observed]
    return Tree.from_edges(ends, first.n_observed, lengths, names, minimal=True)


def count_splits(trees: Sequence[Tree]) -> Splits:
    """Count how many of the trees have each split."""
    keys = np.concatenate([tree.bipartition_keys() for tree in trees])
    number = np.repeat(np.arange(len(trees)), [tree.n_edges for tree in trees])
    node = np.concatenate([tree.edges[:, 1] for tree in trees])
    length = np.concatenate([tree.length[tree.edges[:, 1]] for tree in trees])
    if not len(keys):
        return Splits(length, length, number, node, node, number)
    _, first, group = np.unique(_as_words(keys), return_index=True, return_inverse=True)
    counts = np.bincount(group)
    return Splits(
        counts / len(trees),
        np.bincount(group, length) / counts,
        number[first],
        node[first],
        group,
        number,
    )


def _as_words(keys: NDArray[np.uint64]) -> NDArray[np.void]:
    """Return each row as one word."""
    rows = np.ascontiguousarray(keys)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


class Cluster(NamedTuple):
    """The side of a split that does not hold the first variable of its component."""

    members: IntArray
    component: IntArray
    length: float


def _clusters(trees: Sequence[Tree], found: Splits, kept: IntArray) -> list[Cluster]:
    """Return the clusters of some splits."""
    clusters = []
    for number in np.unique(found.tree[kept]):
        tree = trees[number]
        size, *_ = heavy_paths(tree.order, tree.parent)
        place = np.argsort(tree.order)
        component = tree.components[: tree.n_observed]
        for split in kept[found.tree[kept] == number]:
            node = found.node[split]
            below = tree.order[place[node] : place[node] + size[node]]
            inside = below[below < tree.n_observed]
            own = np.flatnonzero(component == tree.components[node])
            if (inside == own[0]).any():
                inside = np.setdiff1d(own, inside)
            clusters.append(Cluster(inside, own, float(found.length[split])))
    return clusters


def _edges_of_nested(
    clusters: Sequence[Cluster], trees: Sequence[Tree]
) -> list[tuple[int, int, float]]:
    """Return the edges of the tree whose clusters these are, the small ones first.

    Every cluster is the edge between the node around it and its own node; every component has one
    node more, around all. A variable belongs to the node of the smallest cluster that holds it. A
    node with one variable is that variable, one with none is hidden. Of several variables the one
    that is a leaf in the fewest trees is the node, and the others are its leaves.
    """
    m, n = trees[0].n_observed, len(clusters)
    outside = np.full(n, -1)
    home, outermost = np.full(m, -1), np.full(m, -1)
    for number, cluster in enumerate(clusters):
        inner = outermost[cluster.members]
        home[cluster.members[inner < 0]] = number
        outside[np.unique(inner[inner >= 0])] = number
        outermost[cluster.members] = number
    for number, cluster in enumerate(clusters):
        around = n + int(cluster.component[0])  # the node around all of a component
        home[cluster.component[home[cluster.component] < 0]] = around
        if outside[number] < 0:
            outside[number] = around
    node = m + np.arange(n + m)  # hidden, unless a variable is there
    edges = []
    is_leaf = np.mean([tree.degrees[:m] == 1 for tree in trees], axis=0)
    for place in np.unique(home[home >= 0]):
        there = np.flatnonzero(home == place)
        chosen = there[np.argmin(is_leaf[there])]
        node[place] = chosen
        edges += [(chosen, v, _mean_leaf_length(int(v), trees)) for v in there if v != chosen]
    edges += [
        (node[outside[number]], node[number], cluster.length)
        for number, cluster in enumerate(clusters)
    ]
    return [(int(a), int(b), length) for a, b, length in edges]


def _mean_leaf_length(variable: int, trees: Sequence[Tree]) -> float:
    """Mean length of an edge of a variable."""
    return float(np.mean([_length_at(tree, variable) for tree in trees]))


def _length_at(tree: Tree, node: int) -> float:
    below = node if tree.parent[node] >= 0 else next(iter(tree.children(node)), node)
    return float(tree.length[below])

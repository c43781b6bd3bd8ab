"""The distinct splits of many trees, and the tree that has some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.support import heavy_paths
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray


class Cluster(NamedTuple):
    """The side of a split that does not hold the first variable of its component."""

    members: IntArray
    component: IntArray
    """All variables of the component."""
    length: float
    """Mean length of the split's edges."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The distinct splits of trees over the same variables. Arrays have an entry a split.

    Make it with :meth:`of`.
    """

    trees: Sequence[Tree]
    share: FloatArray
    """Share of the trees that have the split."""
    length: FloatArray
    """Mean length of its edges."""
    first_tree: IntArray
    """The first tree that has it, by number."""
    first_node: IntArray
    """The lower node of its edge there."""

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Splits:
        """Find the distinct splits of trees."""
        keys = np.concatenate([tree.bipartition_keys() for tree in trees])
        tree_of_edge = np.repeat(np.arange(len(trees)), [tree.n_edges for tree in trees])
        node = np.concatenate([tree.edges[:, 1] for tree in trees])
        length = np.concatenate([tree.length[tree.edges[:, 1]] for tree in trees])
        if not len(keys):
            return cls(trees, length, length, tree_of_edge, node)
        _, first, split = np.unique(_as_words(keys), return_index=True, return_inverse=True)
        counts = np.bincount(split)
        return cls(
            trees,
            counts / len(trees),
            np.bincount(split, length) / counts,
            tree_of_edge[first],
            node[first],
        )

    def __len__(self) -> int:
        return self.share.size

    def tree_with(self, kept: IntArray) -> Tree:
        """Return the tree of some splits that fit together."""
        clusters = self._clusters(kept[np.lexsort([kept, self.first_tree[kept]])])
        clusters.sort(key=lambda cluster: cluster.members.size)
        edges = _edges_of_nested(clusters, self.trees)
        first = self.trees[0]
        ends = [(a, b) for a, b, _ in edges]
        lengths = [length for *_, length in edges]
        names = first.names[: first.n_observed]
        return Tree.from_edges(ends, first.n_observed, lengths, names, minimal=True)

    def _clusters(self, chosen: IntArray) -> list[Cluster]:
        """Return the clusters of some splits, in their order."""
        clusters: dict[int, Cluster] = {}
        for number in np.unique(self.first_tree[chosen]):
            tree = self.trees[number]
            size, *_ = heavy_paths(tree.order, tree.parent)
            place = np.argsort(tree.order)
            component = tree.components[: tree.n_observed]
            for split in chosen[self.first_tree[chosen] == number]:
                node = self.first_node[split]
                below = tree.order[place[node] : place[node] + size[node]]
                inside = below[below < tree.n_observed]
                own = np.flatnonzero(component == tree.components[node])
                if (inside == own[0]).any():
                    inside = np.setdiff1d(own, inside)
                clusters[split] = Cluster(inside, own, float(self.length[split]))
        return [clusters[split] for split in chosen]


def split_disagreement(chains: Sequence[IntArray], trees: Sequence[Tree]) -> float:
    """Return how far the shares of splits in several chains of trees are apart, on average.

    Over the splits that at least a tenth of the trees of some chain have. Edges of leaves are left
    out: nearly all trees have them.

    Parameters
    ----------
    chains : sequence of array of int
        Which of the trees are of each chain.
    trees : sequence of Tree
        Over the same variables, in the same order.

    Returns
    -------
    float
        Mean of the largest share of a split less its smallest one.
    """
    keys, chain_of_key = [], []
    for number, chain in enumerate(chains):
        for tree in (trees[place] for place in chain):
            is_inner = (tree.degrees[tree.edges] > 1).all(axis=1)
            keys.append(tree.bipartition_keys()[is_inner])
            chain_of_key.append(np.full(is_inner.sum(), number))
    _, split = np.unique(_as_words(np.concatenate(keys)), return_inverse=True)
    counts = np.zeros((len(chains), split.max(initial=-1) + 1))
    np.add.at(counts, (np.concatenate(chain_of_key), split), 1.0)
    shares = counts / np.array([[max(chain.size, 1)] for chain in chains])
    often = shares[:, shares.max(axis=0, initial=0.0) >= 0.1]
    return float(np.ptp(often, axis=0).mean()) if often.size else 0.0


def _as_words(keys: NDArray[np.uint64]) -> NDArray[np.void]:
    """Return each row as one word."""
    rows = np.ascontiguousarray(keys)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


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

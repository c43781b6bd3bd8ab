"""What two trees over the same variables have in common."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentree.metrics import aligned, normalized_robinson_foulds, robinson_foulds
from latentree.support._transfer import edge_claims
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray, IntArray

MOVED = 0.5
"""A variable has moved if it keeps less than this share of its neighbors."""


@dataclass(frozen=True, eq=False)
class TreeComparison:
    """Splits that two trees share, hidden variables that are the same, variables that moved.

    Parameters
    ----------
    first, second : Tree
        Over the same variables, in the same order.
    first_shared, second_shared : array of bool
        One a node: whether the other tree has the split of the edge above it.
    same_hidden : array of int
        For every hidden node of the first tree the node of the second whose group of neighboring
        variables has most in common with its own, each taken once; −1 where there is none.
    kept : array of float
        Share of the neighbors that each variable keeps.

    Examples
    --------
    >>> import latentree as lt
    >>> a, b = lt.simulate.double_star(6), lt.simulate.latent_class(6)
    >>> lt.support.compare_trees(a, b)
    TreeComparison(Robinson-Foulds distance 1, 0 of 1 and 0 groups shared, 3 variables moved)
    """

    first: Tree
    second: Tree
    first_shared: BoolArray
    second_shared: BoolArray
    same_hidden: IntArray
    kept: FloatArray

    @property
    def robinson_foulds(self) -> int:
        """Number of splits that only one of the trees has."""
        return robinson_foulds(self.first, self.second)

    @property
    def moved(self) -> tuple[str, ...]:
        """Variables that keep less than half of their neighbors."""
        return tuple(self.first.names[v] for v in np.flatnonzero(self.kept < MOVED))

    @property
    def groups(self) -> tuple[int, int, int]:
        """Splits with two variables or more on both sides: of the first, the second, and both."""
        return (
            int(_splits_groups(self.first).sum()),
            int(_splits_groups(self.second).sum()),
            int((_splits_groups(self.first) & self.first_shared).sum()),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison in plain values.

        Returns
        -------
        dict
        """
        first, second, shared = self.groups
        return {
            "robinson_foulds": self.robinson_foulds,
            "normalized_robinson_foulds": normalized_robinson_foulds(self.first, self.second),
            "nontrivial_robinson_foulds": robinson_foulds(self.first, self.second, nontrivial=True),
            "normalized_nontrivial_robinson_foulds": normalized_robinson_foulds(
                self.first, self.second, nontrivial=True
            ),
            "edges": [self.first.n_edges, self.second.n_edges],
            "groups": [first, second],
            "shared_groups": shared,
            "hidden": [self.first.n_hidden, self.second.n_hidden],
            "same_hidden": int((self.same_hidden >= 0).sum()),
            "moved": list(self.moved),
        }

    def __repr__(self) -> str:
        first, second, shared = self.groups
        moved = f"{len(self.moved)} variable{'s' * (len(self.moved) != 1)} moved"
        return (
            f"TreeComparison(Robinson-Foulds distance {self.robinson_foulds}, {shared} of {first} "
            f"and {second} groups shared, {moved})"
        )


def compare_trees(first: Tree, second: Tree) -> TreeComparison:
    """Return what two trees over the same variables have in common.

    Parameters
    ----------
    first, second : Tree
        Over the same variables, in any order.

    Returns
    -------
    TreeComparison

    Examples
    --------
    >>> import latentree as lt
    >>> a = lt.Tree([6, 6, 6, 7, 7, 7, 7, -1], n_observed=6)
    >>> b = lt.Tree([6, 6, 7, 7, 7, 6, 7, -1], n_observed=6)
    >>> compare_trees(a, b).moved
    ('x2', 'x5')
    """
    second = aligned(second, first)
    keys = [[key.tobytes() for key in tree.bipartition_keys()] for tree in (first, second)]
    shared = [np.zeros(tree.n_nodes, bool) for tree in (first, second)]
    for tree, own, other, out in zip((first, second), keys, keys[::-1], shared, strict=True):
        known = set(other)
        out[tree.edges[:, 1]] = [key in known for key in own]
    same = _same_hidden(first, second)
    return TreeComparison(
        first, second, shared[0], shared[1], same, _kept_neighbors(first, second, same)
    )


def _same_hidden(first: Tree, second: Tree) -> IntArray:
    """Pair hidden nodes by their groups of variables, those that have most in common first.

    Of two groups it is the share of the variables of both together that are in both; where shares
    are equal, the variables in common and then the splits around both nodes decide: never numbers.
    """
    around = [_hidden_neighbors(tree) for tree in (first, second)]
    common: dict[tuple[int, int], list[int]] = {}
    for v, (own, others) in enumerate(zip(*around, strict=True)):
        for pair in itertools.product(own, others):
            common.setdefault(pair, []).append(v)
    sizes, other_sizes = (Counter(itertools.chain.from_iterable(each)) for each in around)

    splits, other_splits = _splits_around(first), _splits_around(second)

    def rank(pair: tuple[int, int]) -> tuple[float, list[int], list[bytes], list[bytes]]:
        shared = common[pair]
        jaccard = len(shared) / (sizes[pair[0]] + other_sizes[pair[1]] - len(shared))
        return -jaccard, shared, splits[pair[0]], other_splits[pair[1]]

    same, taken = np.full(first.n_hidden, -1), set()
    for h, g in sorted(common, key=rank):
        if same[h - first.n_observed] < 0 and g not in taken:
            same[h - first.n_observed] = g
            taken.add(g)
    return same


def _splits_around(tree: Tree) -> list[list[bytes]]:
    """Return the sorted keys of the splits of every node's edges."""
    around: list[list[bytes]] = [[] for _ in range(tree.n_nodes)]
    for ends, key in zip(tree.edges.tolist(), tree.bipartition_keys(), strict=True):
        for end in ends:
            around[end].append(key.tobytes())
    return [sorted(keys) for keys in around]


def _hidden_neighbors(tree: Tree) -> list[list[int]]:
    """Return the hidden nodes next to each variable."""
    m = tree.n_observed
    return [[u for u in tree.neighbors(v).tolist() if u >= m] for v in range(m)]


def _kept_neighbors(first: Tree, second: Tree, same_hidden: IntArray) -> FloatArray:
    """Share of the neighbors that each variable has in both trees; 1 for variables without any."""
    m = first.n_observed
    same = np.append(np.arange(m), same_hidden)
    kept = np.ones(m)
    for v in range(m):
        after = set(second.neighbors(v).tolist())
        before = [int(same[u]) in after for u in first.neighbors(v)]
        kept[v] = np.mean(before) if before else 1.0
    return kept


def _splits_groups(tree: Tree) -> BoolArray:
    """Whether the edge above each node has two variables or more on both sides."""
    return edge_claims(tree).is_made

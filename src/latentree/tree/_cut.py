"""Cutting a tree into the tightest groups: k medians on a tree, by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentree import _memory as memory
from latentree._kernels import medians as kernels
from latentree.errors import TreeError
from latentree.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from latentree.tree._tree import Tree


@dataclass(frozen=True)
class TreeCut:
    """Observed variables in groups, each with a node that speaks for it.

    Parameters
    ----------
    groups : tuple of tuples of str
        Names of the variables of every group, in the order of the tree; groups come in the order
        of their first variables.
    representatives : tuple of str
        For every group the node at the least total path length from its variables.
    total_length : float
        Sum of the path lengths from all variables to the representatives of their groups.

    Examples
    --------
    >>> import latentree as lt
    >>> lt.simulate.double_star(6).cut(2).groups
    (('x0', 'x1', 'x2'), ('x3', 'x4', 'x5'))
    """

    groups: tuple[tuple[str, ...], ...]
    representatives: tuple[str, ...]
    total_length: float


def cut_tree(tree: Tree, k: int) -> TreeCut:
    """Cut a tree into k groups, of two variables and more if that is possible."""
    trees = int(tree.components.max()) + 1
    if k < trees:
        raise TreeError(f"k is {k}, but the forest has {trees} trees, which are groups already")
    for least in (2, 1):
        owner = _Medians(tree, k, least).owner()
        if owner is not None:
            return _as_cut(tree, owner)
    raise TreeError(f"k is {k}, but the tree has fewer nodes that could speak for a group")


def _as_cut(tree: Tree, owner: IntArray) -> TreeCut:
    """Return the groups of variables that have the same owner."""
    mine = owner[: tree.n_observed].tolist()
    centers = list(dict.fromkeys(mine))
    members: dict[int, list[str]] = {center: [] for center in centers}
    for variable, center in enumerate(mine):
        members[center].append(tree.names[variable])
    lengths = tree.path_lengths(np.arange(tree.n_observed), np.array(centers))
    at = np.array([centers.index(center) for center in mine])
    return TreeCut(
        tuple(tuple(names) for names in members.values()),
        tuple(tree.names[center] for center in centers),
        float(lengths[np.arange(at.size), at].sum()),
    )


class _Medians:
    """The least Σ d(v, u(v)) over connected groups, where u(v) speaks for the group of v.

    The cost of (v, u, j, s) is the least of the observed nodes below v, itself included, where u
    speaks for v, j groups are counted below v (each where its representative is), and s observed
    nodes below v, up to two, are in the group of v. A child is in the group of its parent, or its
    own group ends there: then its representative is below it. There are at most as many groups
    below v as nodes that may speak for one: O(n·c·k) numbers and steps for n nodes, c of which may.
    """

    def __init__(self, tree: Tree, k: int, least: int) -> None:
        self.tree, self.k = tree, k
        self.centers = _candidates(tree)
        n, c = tree.n_nodes, self.centers.size
        position, size = _subtrees(tree)
        place, first = position[self.centers], position
        is_center = np.zeros(n, np.int64)
        is_center[self.centers] = 1
        before = np.concatenate([[0], np.cumsum(is_center[tree.order])])
        most = np.minimum(before[first + size] - before[first], k)
        sizes = np.where(most > 0, c * (most + 1) * kernels.SIZES, 0)
        ends = np.cumsum(sizes)
        memory.require(
            8.0 * (ends[-1] + n * (c + k + 1)),
            f"the groups of {tree.n_observed:,} variables",
            "cut the tree into fewer groups",
        )
        center = np.full(n, -1)
        center[self.centers] = np.arange(c)
        self.ended = np.full((n, k + 1), np.inf)
        self.joined = np.flatnonzero(most == 0)  # leaves that are in the group of their parent
        inner = tree.order[most[tree.order] > 0]
        self._problem = (*_child_lists(tree, inner), center, *self._own_costs(), k, least)
        self._tables = (
            np.empty(ends[-1]), ends - sizes, most, self.ended, place, first, first + size,
        )  # fmt: skip
        kernels.fill_costs(inner, *self._problem, *self._tables)

    def _own_costs(self) -> tuple[FloatArray, IntArray]:
        """Costs of every node and its leaves by who speaks for them, and how many these are."""
        tree, leaves = self.tree, self.joined
        own = tree.path_lengths(np.arange(tree.n_nodes), self.centers)
        of_leaves = own[leaves]
        own[tree.hidden] = 0.0
        np.add.at(own, tree.parent[leaves], of_leaves)
        own[tree.components[:, None] != tree.components[self.centers]] = np.inf
        size = (np.arange(tree.n_nodes) < tree.n_observed).astype(np.int64)
        np.add.at(size, tree.parent[leaves], 1)
        return own, np.minimum(size, kernels.SIZES - 1)

    def owner(self) -> IntArray | None:
        """Return the node that speaks for every node; None if there are no k such groups."""
        totals = [np.where(np.arange(self.k + 1) == 0, 0.0, np.inf)]
        roots = self.tree.roots.tolist()
        for root in roots:
            totals.append(_convolved(totals[-1], self.ended[root]))
        if np.isinf(totals[-1][self.k]):
            return None
        owner = np.full(self.tree.n_nodes, -1)
        left = self.k
        for root, total in zip(roots[::-1], totals[-2::-1], strict=True):
            j = int((total[left::-1] + self.ended[root][: left + 1]).argmin())
            kernels.assign_group(root, j, *self._problem, *self._tables, owner)
            left -= j
        owner[self.joined] = owner[self.tree.parent[self.joined]]
        speakers: IntArray = self.centers[owner]
        return speakers


def _child_lists(tree: Tree, nodes: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the children of every node start, and the children, of some nodes alone."""
    below = nodes[tree.parent[nodes] >= 0]
    parent = tree.parent[below]
    starts = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=tree.n_nodes))])
    return starts, below[np.argsort(parent, kind="stable")]


def _subtrees(tree: Tree) -> tuple[IntArray, IntArray]:
    """Return where every node stands in the order, and how many are below it, itself included."""
    position, size = np.empty(tree.n_nodes, np.int64), np.ones(tree.n_nodes, np.int64)
    position[tree.order] = np.arange(tree.n_nodes)
    for node in tree.order[::-1].tolist():
        if tree.parent[node] >= 0:
            size[tree.parent[node]] += size[node]
    return position, size


def _candidates(tree: Tree) -> IntArray:
    """Return the nodes that may speak for a group: inner ones, or all where a tree has none."""
    inner = tree.degrees > 1
    has_inner = np.bincount(tree.components, inner) > 0
    return np.flatnonzero(inner | ~has_inner[tree.components])


def _convolved(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return min over i of a[j − i] + b[i], for every j."""
    return np.array([(a[j::-1] + b[: j + 1]).min() for j in range(a.size)])

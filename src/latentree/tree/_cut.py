"""Cutting a tree into the tightest groups: k medians on a tree, by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentree import _memory as memory
from latentree.errors import TreeError
from latentree.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from latentree.tree._tree import Tree

_SIZES = 3  # observed variables of a piece: 0, 1, or 2 and more


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

    ``cost[v][u, j, s]`` is the least cost of the observed nodes below v, itself included, where u
    speaks for v, j groups are counted below v (each where its representative is), and s observed
    nodes below v, up to two, are in the group of v. A child is in the group of its parent, or its
    own group ends there: then its representative is below it. O(n·c·k) numbers for n nodes of
    which c may speak for a group, and O(n·c·k²) steps.
    """

    def __init__(self, tree: Tree, k: int, least: int) -> None:
        self.tree, self.k, self.least = tree, k, least
        self.centers = _candidates(tree)
        n, c = tree.n_nodes, self.centers.size
        memory.require(
            8.0 * n * c * (_SIZES * (k + 1) + 1),
            f"the groups of {tree.n_observed:,} variables",
            "cut the tree into fewer groups",
        )
        self.lengths = tree.path_lengths(np.arange(n), self.centers)
        self.lengths[tree.components[:, None] != tree.components[self.centers]] = np.inf
        self.is_below = self._memberships()
        self.cost: list[FloatArray] = [np.empty(0)] * n
        self.ended: list[FloatArray] = [np.empty(0)] * n
        for node in tree.order[::-1].tolist():
            self.cost[node] = self._steps(node, np.arange(c))[-1]
            self.ended[node] = self._endings(node).min(axis=0)

    def _memberships(self) -> BoolArray:
        """Whether each representative is below each node, or the node itself."""
        tree = self.tree
        position, size = np.empty(tree.n_nodes, np.int64), np.ones(tree.n_nodes, np.int64)
        position[tree.order] = np.arange(tree.n_nodes)
        for node in tree.order[::-1].tolist():
            if tree.parent[node] >= 0:
                size[tree.parent[node]] += size[node]
        after = position[self.centers] - position[:, None]  # a subtree is a range of the order
        return (after >= 0) & (after < size[:, None])

    def _steps(self, node: int, chosen: IntArray) -> list[FloatArray]:
        """Costs of a node by some representatives: alone, and with one more child each time."""
        start = np.full((chosen.size, self.k + 1, _SIZES), np.inf)
        length, is_observed = self.lengths[node, chosen], node < self.tree.n_observed
        opened = (self.centers[chosen] == node).astype(np.int64)
        own = length if is_observed else np.where(np.isinf(length), np.inf, 0.0)
        start[np.arange(chosen.size), opened, int(is_observed)] = own
        steps = [start]
        for child in self.tree.children(node).tolist():
            steps.append(self._with_child(steps[-1], child, chosen))
        return steps

    def _with_child(self, cost: FloatArray, child: int, chosen: IntArray) -> FloatArray:
        out = np.full_like(cost, np.inf)
        for j in range(self.k + 1):
            before = cost[:, : self.k + 1 - j]
            for t, added in enumerate(self._added(child, chosen, j)):
                for s in range(_SIZES):
                    target = out[:, j:, min(s + t, _SIZES - 1)]
                    np.minimum(target, before[:, :, s] + added[:, None], out=target)
        return out

    def _added(self, child: int, chosen: IntArray, j: int) -> FloatArray:
        """Least cost of a child with j groups that brings 0, 1, 2 variables to the group above."""
        added: FloatArray = self.cost[child][chosen, j].T.copy()
        apart = np.where(self.is_below[child, chosen], np.inf, self.ended[child][j])
        np.minimum(added[0], apart, out=added[0])
        return added

    def _endings(self, node: int) -> FloatArray:
        """Costs of a node whose group has its representative below it, and variables enough."""
        enough = self.cost[node][:, :, self.least :].min(axis=2)
        return np.where(self.is_below[node][:, None], enough, np.inf)

    # The choices that gave the least cost ---------------------------------------------------

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
            self._assign_group(root, j, owner)
            left -= j
        return owner

    def _assign_group(self, top: int, j: int, owner: IntArray) -> None:
        """Set the owners below the top node of a group, which has j groups below it."""
        stack = [(top, -1, j, -1)]  # node, representative if known, groups, variables
        while stack:
            node, u, j, s = stack.pop()
            if u < 0:
                u = int(self._endings(node)[:, j].argmin())
                s = self.least + int(self.cost[node][u, j, self.least :].argmin())
            owner[node] = self.centers[u]
            stack += self._choices(node, u, j, s)

    def _choices(self, node: int, u: int, j: int, s: int) -> list[tuple[int, int, int, int]]:
        """What every child of a node does where u speaks for the node."""
        chosen = np.array([u])
        steps = self._steps(node, chosen)
        found = []
        for child, before in zip(
            self.tree.children(node)[::-1].tolist(), steps[-2::-1], strict=True
        ):
            best = (np.inf, 0, 0, 0)
            for mine in range(j + 1):
                for t, added in enumerate(self._added(child, chosen, mine)):
                    for rest in range(_SIZES):
                        if min(rest + t, _SIZES - 1) == s:
                            value = float(before[0, j - mine, rest] + added[0])
                            best = min(best, (value, mine, t, rest))
            _, mine, t, rest = best
            joined = self.cost[child][u, mine, t] <= self._added(child, chosen, mine)[t][0]
            found.append((child, u, mine, t) if joined else (child, -1, mine, -1))
            j, s = j - mine, rest
        return found


def _candidates(tree: Tree) -> IntArray:
    """Return the nodes that may speak for a group: inner ones, or all where a tree has none."""
    inner = tree.degrees > 1
    has_inner = np.bincount(tree.components, inner) > 0
    return np.flatnonzero(inner | ~has_inner[tree.components])


def _convolved(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return min over i of a[j − i] + b[i], for every j."""
    return np.array([(a[j::-1] + b[: j + 1]).min() for j in range(a.size)])

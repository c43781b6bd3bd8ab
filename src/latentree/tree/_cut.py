"""Cutting a tree into the tightest groups, by least squares of path lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentree._kernels import cuts as kernels
from latentree._kernels.tree import flip_path
from latentree.errors import TreeError
from latentree.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from latentree.tree._tree import Tree

_ROUNDING = 1e-9
"""An exchange of edges must lower the spread by more than this share of that of the whole tree:
less is rounding, and exchanges could go in circles."""


@dataclass(frozen=True)
class TreeCut:
    """Observed variables in groups, each with a representative node.

    Parameters
    ----------
    groups : tuple of tuples of str
        Names of the variables of every group, in the order of the tree; groups come in the order
        of their first variables.
    representatives : tuple of str
        For every group the inner node at the least total path length from its variables; a variable
        that is a group of its own represents itself.
    spread : float
        What is least: the path lengths of the pairs of each group over its size, added up.

    Examples
    --------
    >>> import latentree as lt
    >>> lt.simulate.double_star(6).cut(2).groups
    (('x0', 'x1', 'x2'), ('x3', 'x4', 'x5'))
    """

    groups: tuple[tuple[str, ...], ...]
    representatives: tuple[str, ...]
    spread: float

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield every variable with the representative of its group.

        So a cut can be given wherever groups of variables are: ``plot_tree(model, groups=cut)``,
        ``write_explorer(model, path, groups=cut)``, ``dict(cut.items())``.

        Yields
        ------
        tuple of str
            Variable and representative.

        Examples
        --------
        >>> import latentree as lt
        >>> dict(lt.simulate.double_star(4).cut(2).items())
        {'x0': 'h1', 'x1': 'h1', 'x2': 'h2', 'x3': 'h2'}
        """
        for group, representative in zip(self.groups, self.representatives, strict=True):
            yield from ((variable, representative) for variable in group)


class _EdgeChanges(NamedTuple):
    """What removing one more edge, or one less, would change; see ``_kernels.cuts``.

    Attributes
    ----------
    gain : array of float
        By how much the spread falls if the edge above each node is removed too.
    loss : array of float
        By how much it rises if a removed edge is put back.
    top : array of int
        The highest node of the piece that each node is in.
    total : array of float
        Total path length from each node to the variables of its piece.
    spread : float
        That of the pieces as they are.
    """

    gain: FloatArray
    loss: FloatArray
    top: IntArray
    total: FloatArray
    spread: float


def cut_tree(tree: Tree, k: int) -> TreeCut:
    """Cut a tree into k groups, of two variables and more if that is possible."""
    trees = tree.roots.size
    if not trees <= k <= tree.n_observed:
        raise TreeError(
            f"k is {k}, but the {tree.n_observed} variables of {trees} trees make "
            f"{trees} to {tree.n_observed} groups"
        )
    search = _CutSearch(_from_first_variables(tree), k - trees)
    return _as_cut(tree, search.surveyed(search.best()))


def _from_first_variables(tree: Tree) -> Tree:
    """Root every tree at its first variable, so that no other root can make a difference."""
    parent, length = tree.parent.copy(), tree.length.copy()
    for node in np.unique(tree.components[: tree.n_observed], return_index=True)[1]:
        flip_path(parent, length, int(node))
    return type(tree)(parent, length, tree.n_observed, tree.names)


def _as_cut(tree: Tree, found: _EdgeChanges) -> TreeCut:
    """Return the groups of variables that are in the same piece."""
    variables: dict[int, list[str]] = {}
    for node in range(tree.n_observed):
        variables.setdefault(int(found.top[node]), []).append(tree.names[node])
    # Inner nodes first, then by total path length.
    order = np.lexsort((found.total, tree.degrees < 2))
    first = dict(zip(*np.unique(found.top[order], return_index=True), strict=True))
    speakers = tuple(tree.names[order[first[top]]] for top in variables)
    return TreeCut(tuple(map(tuple, variables.values())), speakers, found.spread)


class _CutSearch:
    """The edges to remove, of the least spread Σ_g (1/n_g)·Σ_{i<j∈g} d_ij that can be found.

    Path lengths on a tree are squared Euclidean distances, so that the spread is the sum of squares
    around the means of the groups: what k means and Ward's method make least.
    """

    def __init__(self, tree: Tree, count: int) -> None:
        self.tree, self.count = tree, count
        self.many = self._many(2)
        self.least = 2 if np.count_nonzero(self.many) >= count else 1
        if self.least == 1:
            self.many = self._many(1)

    def _many(self, least: int) -> BoolArray:
        tree = self.tree
        return np.asarray(kernels.most_groups(tree.order, tree.parent, tree.n_observed, least))

    def surveyed(self, removed: BoolArray) -> _EdgeChanges:
        """Return what removing one more or one less of the edges would change."""
        tree = self.tree
        return _EdgeChanges(
            *kernels.survey(
                tree.order, tree.parent, tree.length, tree.n_observed, removed, self.least
            )
        )

    def best(self) -> BoolArray:
        """Return the better of two cuts: by dividing groups and by joining many, both improved."""
        divided = self._divided(np.zeros(self.tree.n_nodes, bool))
        starts = [self._joined(self.many)]
        if np.count_nonzero(divided) == self.count:  # not so if divisions left single variables
            starts.insert(0, divided)
        return min(map(self._improved, starts), key=lambda removed: self.surveyed(removed).spread)

    def _divided(self, removed: BoolArray) -> BoolArray:
        """Remove the edge that lowers the spread most, until enough are removed."""
        removed = removed.copy()
        for _ in range(self.count - np.count_nonzero(removed)):
            gain = self.surveyed(removed).gain
            removed[gain.argmax()] |= np.isfinite(gain.max())
        return removed

    def _joined(self, removed: BoolArray) -> BoolArray:
        """Put back the edge that raises the spread least, until few enough are removed."""
        removed = removed.copy()
        for _ in range(np.count_nonzero(removed) - self.count):
            removed[self.surveyed(removed).loss.argmin()] = False
        return removed

    def _improved(self, removed: BoolArray) -> BoolArray:
        """Exchange one removed edge for another, the best pair, while that lowers the spread."""
        rounding = _ROUNDING * self.surveyed(np.zeros_like(removed)).spread
        spread = self.surveyed(removed).spread
        while True:
            best, exchange = spread - rounding, None
            for edge in np.flatnonzero(removed).tolist():
                without = removed.copy()
                without[edge] = False
                found = self.surveyed(without)
                if found.spread - found.gain.max() < best:
                    best, exchange = (
                        found.spread - found.gain.max(),
                        (edge, int(found.gain.argmax())),
                    )
            if exchange is None:
                return removed
            removed = removed.copy()
            removed[list(exchange)] = False, True
            spread = best

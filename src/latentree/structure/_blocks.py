"""What all learners share: a tree for each connected block of variables, joined to a forest.

Where the data shows no dependence between groups of variables, each group is a block with a tree
of its own, and a warning says so.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.compiling import tiny
from latentree.distances import Distances, DistancesLike, as_distances
from latentree.errors import DataWarning
from latentree.structure._independence import connected_groups, describe_parts
from latentree.structure._spanning import spanning_edges
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

Progress = Callable[[int, int, str], None]

EXACT = 1e-9
"""Differences below this share of the largest distance are rounding errors."""

TIE = 1e-9
"""Of a length: far above rounding errors, far below what estimates can tell."""

HUGE = 1e8
"""Where distances are longer, rounding errors exceed every threshold on the scale of correlations:
the unit does not matter, and sums of them might overflow."""

TINY = 24
"""Up to so many variables kernels run uncompiled: a learner is done within a tenth of a second."""


@dataclass(frozen=True)
class Block:
    """A connected block of variables: no part of it looks independent of the rest.

    Lengths and distances are on the scale of correlations, −log|r|: what learners know about their
    errors is true there, whatever the number of states. Distances on demand stay on demand:
    only :attr:`matrix` holds all of them.
    """

    distances: Distances
    spanning: IntArray
    """Edges of the minimum spanning tree, one row each."""
    variables: IntArray | None = None
    """Which of all variables these are; None for all of them."""
    owns_matrix: bool = False
    """Whether nobody else holds the matrix, so that it may be overwritten."""
    unit: float = 1.0
    """Exact and huge distances are measured in this unit, a power of 2 near the longest one."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.distances.n_variables

    @property
    def n_samples(self) -> float | None:
        """1 / variance of a weak correlation; None for exact distances."""
        return self.distances.n_effective

    @property
    def scale(self) -> float:
        """c, so that c times the distances here are the information distances −c·log|r|."""
        return self.distances.exponent * self.unit

    @cached_property
    def matrix(self) -> FloatArray:
        """All distances; raises an error when they do not fit into memory."""
        dense = self.distances.dense()
        return dense if self.scale == 1.0 else dense / self.scale

    def spare_matrix(self) -> FloatArray:
        """Return all distances in an array that may be overwritten: a copy, or the only one.

        If the user gave an array, the checked copy of it is given away. After that only
        :attr:`tolerance` is still known.
        """
        if not self.owns_matrix or not self.distances.is_dense:
            return self.matrix.copy()
        assert self.tolerance >= 0.0  # found while the distances are there
        self.matrix.flags.writeable = True
        return self.matrix

    @property
    def signs(self) -> NDArray[np.int8]:
        """Signs of the dependence of all pairs."""
        return self.distances.signs()

    @cached_property
    def tolerance(self) -> float:
        """Lengths up to this are rounding errors."""
        return EXACT * self.distances.longest / self.scale

    @property
    def noise(self) -> float:
        """1/√n, the standard error of a weak correlation; 0 when n is not known."""
        return 0.0 if self.n_samples is None else float(1.0 / np.sqrt(max(self.n_samples, 2.0)))

    def among(self, nodes: IntArray) -> FloatArray:
        """Return the distances among some variables."""
        if self.distances.is_dense:
            return self.matrix[np.ix_(nodes, nodes)]
        d = self.distances.block(nodes, nodes)
        d /= self.scale
        return d

    def pair_distances(self, pairs: IntArray) -> FloatArray:
        """Return the distances of an array of pairs."""
        if self.distances.is_dense:
            return self.matrix[pairs[:, 0], pairs[:, 1]]
        return self._pairs.distances(pairs)

    @cached_property
    def tie_breakers(self) -> FloatArray:
        """A tiny number for every variable that does not depend on the order of variables.

        A node in the middle of an edge is equally far from both its ends. Which one counts as the
        nearest must be settled neither by rounding nor by the order of the variables: it is the one
        whose edges in the spanning tree are shorter.
        """
        lengths = np.repeat(self.pair_distances(self.spanning), 2)
        around = np.bincount(self.spanning.ravel(), lengths, minlength=self.n_variables)
        return np.asarray(TIE * around)

    @cached_property
    def _pairs(self) -> _KnownPairs:
        return _KnownPairs(self.distances, self.scale)


class _KnownPairs:
    """Distances of pairs that were asked for before: a learner asks for most of them again."""

    def __init__(self, distances: Distances, scale: float) -> None:
        self._distances = distances
        self._scale = scale
        self._keys = np.empty(0, np.int64)
        self._values = np.empty(0)

    def distances(self, pairs: IntArray) -> FloatArray:
        m = self._distances.n_variables
        keys = pairs.min(axis=1) * m + pairs.max(axis=1)
        new = np.setdiff1d(keys, self._keys)
        if new.size:
            values = self._distances.of_pairs(np.column_stack(np.divmod(new, m)))
            values /= self._scale
            at = np.searchsorted(self._keys, new)
            self._keys = np.insert(self._keys, at, new)
            self._values = np.insert(self._values, at, values)
        known: FloatArray = self._values[np.searchsorted(self._keys, keys)]
        return known


def learn_by_blocks(
    distances: DistancesLike, learn: Callable[[Block], Tree], exact: bool = False
) -> Tree:
    """Learn a tree for every connected block of variables, and return the forest.

    ``learn`` is asked only for blocks of three variables and more. Exact distances, and those whose
    sums might overflow, are handed to it in a unit of their own.
    """
    checked = as_distances(distances)
    unit = _unit_of(checked) if exact or checked.longest > HUGE else 1.0
    with tiny(checked.n_variables <= TINY):
        return _learn_forest(checked, learn, unit, owns_matrix=checked is not distances)


def printed(distances: DistancesLike) -> Distances:
    """Return distances as the paper's algorithms see them: nothing is known of their errors.

    What latentree adds to these algorithms rests on the number of samples: tests of independence,
    intervals of distances, contraction by significance, lengths that are fitted again. The paper
    takes it for granted that all variables belong to one tree.
    """
    checked = as_distances(distances)
    return replace(checked, n_samples=None, components=np.zeros(checked.n_variables, np.int64))


def _unit_of(distances: Distances) -> float:
    """Return a power of 2, so that dividing by it rounds nothing, of the size of all distances."""
    longest = distances.longest
    return 2.0 ** max(math.frexp(longest)[1] - 1, -1000) if longest > 0 else 1.0


def _learn_forest(
    distances: Distances, learn: Callable[[Block], Tree], unit: float, owns_matrix: bool
) -> Tree:
    """Find the connected groups, learn a tree for each, and warn if there are several."""
    if distances.components is not None and np.ptp(distances.components) > 0:
        return _learn_groups(distances, groups_of(distances.components), learn, unit)
    spanning = spanning_edges(distances)
    label = connected_groups(distances, spanning)
    groups = groups_of(label)
    if len(groups) == 1:
        block = Block(distances, spanning, owns_matrix=owns_matrix, unit=unit)
        return _learn_block(block, learn).renamed(distances.names)
    warnings.warn(describe_parts(distances, label), DataWarning, stacklevel=4)
    return _learn_groups(distances, groups, learn, unit)


def groups_of(label: IntArray) -> list[IntArray]:
    """Return the variables of each label."""
    return [np.flatnonzero(label == c) for c in np.unique(label)]


def _learn_groups(
    distances: Distances, groups: list[IntArray], learn: Callable[[Block], Tree], unit: float
) -> Tree:
    """Learn a tree for each of several groups."""
    parts = [distances.subset(group) for group in groups]
    trees = [
        _learn_block(Block(part, spanning_edges(part), group, unit=unit), learn)
        for part, group in zip(parts, groups, strict=True)
    ]
    return _join_trees(distances, groups, trees)


def _learn_block(block: Block, learn: Callable[[Block], Tree]) -> Tree:
    """Return the only tree of one or two variables; learn the tree of more."""
    m = block.n_variables
    if m < 3:
        return Tree([-1, 0][:m], block.distances.block([0], range(m))[0])
    tree = learn(block)
    return tree if block.scale == 1.0 else tree.with_lengths(tree.length * block.scale)


def _join_trees(distances: Distances, groups: list[IntArray], trees: list[Tree]) -> Tree:
    """Number the nodes of all trees together: observed ones as given, then all hidden ones."""
    m = distances.n_variables
    parents, lengths = [np.full(m, -1)], [np.zeros(m)]
    n_nodes = m
    for group, tree in zip(groups, trees, strict=True):
        # New numbers of the nodes of this tree; the last entry serves parent −1.
        new = np.concatenate([group, n_nodes + np.arange(tree.n_hidden), [-1]])
        above = new[tree.parent]
        parents[0][group] = above[: tree.n_observed]
        lengths[0][group] = tree.length[: tree.n_observed]
        parents.append(above[tree.n_observed :])
        lengths.append(tree.length[tree.n_observed :])
        n_nodes += tree.n_hidden
    return Tree(np.concatenate(parents), np.concatenate(lengths), m, distances.names)


def report(progress: Progress | None, done: int, total: int, message: str) -> None:
    """Call the progress hook, if there is one."""
    if progress is not None:
        progress(done, total, message)

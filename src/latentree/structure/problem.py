"""What all learners share: one connected block of variables at a time, and forests of the results.

Variables that are independent of all others (so far as the data can tell) are no reason to fail:
the data falls apart into blocks, each gets a tree of its own, and a warning says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.spanning import minimum_spanning_tree
from latentree.distances import Distances, as_distances
from latentree.errors import DataWarning
from latentree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[int, int, str], None]

EXACT = 1e-9
"""Differences below this share of the largest distance are rounding errors."""

_TIE = 1e-12  # of the largest distance: what tells tied nodes apart in the spanning tree


@dataclass(frozen=True)
class Problem:
    """A block of at least three variables that hang together.

    Distances are on the scale of correlations, −log|r|: what learners know about their errors is
    true there, whatever the number of states.
    """

    matrix: FloatArray
    spanning: IntArray
    """Edges of the minimum spanning tree, one row each."""
    n_samples: float | None
    variables: IntArray | None = None
    """Which of all variables these are; None for all of them."""
    signs: NDArray[np.int8] | None = None
    """Signs of the dependence, for learners that want them."""
    scale: float = 1.0
    """c, so that c times these distances are the information distances −c·log|r|."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.matrix.shape[0])

    @property
    def tolerance(self) -> float:
        """Lengths up to this are rounding errors."""
        return EXACT * float(self.matrix.max())

    @property
    def noise(self) -> float:
        """1/√n, the standard error of a weak correlation; 0 when n is not known."""
        return 0.0 if self.n_samples is None else float(1.0 / np.sqrt(max(self.n_samples, 2.0)))

    def pair_distances(self, pairs: IntArray) -> FloatArray:
        """Return the distances of an array of pairs."""
        return self.matrix[pairs[:, 0], pairs[:, 1]]


def spanning_edges(matrix: FloatArray) -> IntArray:
    """Return the edges of the minimum spanning tree, ties broken as by a small perturbation.

    With additive distances and ties any of several spanning trees is minimal, but only those that
    belong to a nearby tree metric have the properties of Lemma 8. Hanging an edge of distinct
    small length on every variable picks one of those.
    """
    m = matrix.shape[0]
    shift = np.arange(m) * (_TIE * float(matrix.max(initial=0.0)))
    a, b = minimum_spanning_tree(matrix, shift)
    return np.column_stack([a, b])


def learn_by_blocks(
    distances: Any,
    learn: Callable[[Problem], Tree],
) -> Tree:
    """Learn a tree for every block of variables that hang together, and return the forest.

    ``learn`` is asked only for blocks of three variables and more.
    """
    checked = as_distances(distances)
    matrix, scale = checked.dense(), checked.exponent
    if scale != 1.0:
        matrix = matrix / scale
    spanning = spanning_edges(matrix)
    blocks = _blocks(checked, spanning)
    if len(blocks) > 1:
        smallest = min(blocks, key=lambda block: block.size)
        warnings.warn(
            f"the variables fall apart into {len(blocks)} blocks that look independent of each "
            f"other (the smallest: {_some_names(checked, smallest)}); each block gets "
            "a tree of its own",
            DataWarning,
            stacklevel=3,
        )
        return _join_trees(checked, blocks, [_learn_block(checked, b, learn) for b in blocks])
    problem = Problem(matrix, spanning, checked.n_effective, None, checked.signs(), scale)
    return _learn_problem(problem, learn).renamed(checked.names)


def _learn_block(distances: Distances, block: IntArray, learn: Callable[[Problem], Tree]) -> Tree:
    scale = distances.exponent
    part = np.ascontiguousarray(distances.dense()[np.ix_(block, block)]) / scale
    signs = distances.sign_block(block, block)
    problem = Problem(part, spanning_edges(part), distances.n_effective, block, signs, scale)
    return _learn_problem(problem, learn)


def _learn_problem(problem: Problem, learn: Callable[[Problem], Tree]) -> Tree:
    """Give the obvious tree of one or two variables; learn the tree of more."""
    m = problem.n_variables
    obvious = Tree([-1, 0][:m], [0.0, float(problem.matrix[0, -1])][:m]) if m < 3 else None
    tree = obvious or learn(problem)
    return tree if problem.scale == 1.0 else tree.with_lengths(tree.length * problem.scale)


def _blocks(distances: Distances, spanning: IntArray) -> list[IntArray]:
    """Cut the spanning tree at pairs that look independent: the variables of each component.

    Independent pairs have the longest distances, so that an edge of the spanning tree between
    such a pair means that no pair across the same cut looks dependent.
    """
    kept = spanning[~_independent_edges(distances, spanning)]
    m = distances.n_variables
    if len(kept) == m - 1:
        return [np.arange(m)]
    component = Tree.from_edges(kept, m).components
    return [np.flatnonzero(component == c) for c in range(component.max() + 1)]


def _independent_edges(distances: Distances, edges: IntArray) -> NDArray[np.bool_]:
    out = np.zeros(len(edges), bool)
    for start in range(0, len(edges), 64):
        part = slice(start, start + 64)
        marks = distances.independent_block(edges[part, 0], edges[part, 1])
        out[part] = np.diagonal(marks)
    return out


def _some_names(distances: Distances, block: IntArray) -> str:
    names = [distances.names[v] for v in block]
    return ", ".join(map(repr, names[:3])) + (" …" if len(names) > 3 else "")


def _join_trees(distances: Distances, blocks: list[IntArray], trees: list[Tree]) -> Tree:
    """Number the nodes of all trees together: observed ones as given, then all hidden ones."""
    m = distances.n_variables
    parents, lengths = [np.full(m, -1)], [np.zeros(m)]
    n_nodes = m
    for block, tree in zip(blocks, trees, strict=True):
        new = np.concatenate([block, n_nodes + np.arange(tree.n_hidden), [-1]])
        above = new[tree.parent]
        parents[0][block] = above[: tree.n_observed]
        lengths[0][block] = tree.length[: tree.n_observed]
        parents.append(above[tree.n_observed :])
        lengths.append(tree.length[tree.n_observed :])
        n_nodes += tree.n_hidden
    return Tree(np.concatenate(parents), np.concatenate(lengths), m, distances.names)


def report(progress: Progress | None, done: int, total: int, message: str) -> None:
    """Call the progress hook, if there is one."""
    if progress is not None:
        progress(done, total, message)

"""Lengths of the edges of a given tree, by weighted least squares on the distances nearby."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels import fitting
from latentree.structure.problem import Problem
from latentree.tree import Tree

IntArray = NDArray[np.int64]


class Effort(NamedTuple):
    """How much work a fit may be."""

    nearest: int
    """Observed nodes behind each neighbour that take part."""
    crowd: int
    """Of those around a node, how many are paired with all others."""
    rounds: int
    """Gauss-Newton steps."""
    steps: int
    """Conjugate gradient steps in each."""


THOROUGH = Effort(nearest=3, crowd=24, rounds=4, steps=300)
QUICK = Effort(nearest=2, crowd=8, rounds=1, steps=12)
_LARGE = 1000


def fit_lengths(tree: Tree, problem: Problem, effort: Effort | None = None) -> Tree:
    """Return the tree with the lengths that fit the distances of near pairs best.

    The sum of w_ij·(ρ̂_ij − ρ_ij)² over pairs around each node is made small, where −log ρ_ij is
    the length of the path and w_ij = 1/(1 − ρ_ij²)² its precision: on the scale of correlations a
    pair that is nearly independent does no harm, whatever its estimated distance. Gauss-Newton
    with conjugate gradients; lengths stay ≥ 0. Linear in the number of nodes a step. Large
    trees are given less effort unless told otherwise.
    """
    if effort is None:
        effort = THOROUGH if tree.n_nodes <= _LARGE else QUICK
    pairs = _near_pairs(tree, effort)
    level = fitting.node_levels(tree.order, tree.parent)
    starts, items = fitting.path_edges(pairs, tree.parent, level)
    estimated = np.exp(-problem.pair_distances(pairs))
    lengths = tree.length.copy()
    fitting.fit_edge_lengths(
        lengths, tree.parent, starts, items, estimated, effort.rounds, effort.steps
    )
    return tree.with_lengths(lengths)


def _near_pairs(tree: Tree, effort: Effort) -> IntArray:
    """Return the pairs around each node, without repetition."""
    entry, distance = fitting.lists_around(
        tree.order, tree.parent, tree.length, tree.n_observed, effort.nearest
    )
    raw = fitting.pairs_across(
        entry[np.lexsort([entry[:, 1], distance, entry[:, 0]])], effort.crowd
    )
    keys = np.unique(raw[:, 0] * tree.n_observed + raw[:, 1])  # sorted, so order is no matter
    return np.column_stack(np.divmod(keys, tree.n_observed))

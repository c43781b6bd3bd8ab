"""Lengths of the edges of a given tree, by weighted least squares on the distances nearby."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.structure import fitting
from latentree.structure._blocks import Block
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray


class Effort(NamedTuple):
    """How much work a fit may be."""

    nearest: int
    """Observed nodes behind each neighbor that take part."""
    crowd: int
    """Of those around a node, how many are paired with all others."""
    rounds: int
    """Gauss-Newton steps."""
    steps: int
    """Conjugate gradient steps in each."""


THOROUGH = Effort(nearest=3, crowd=24, rounds=4, steps=300)
QUICK = Effort(nearest=2, crowd=8, rounds=1, steps=12)
_LARGE = 1000
_DENSE = 64  # nodes up to which the normal equations are solved as a dense matrix
_RIDGE = 1e-12
_TIE = 1e-9  # of a length: far above rounding errors, far below what estimates can tell


def fit_lengths(tree: Tree, block: Block, effort: Effort | None = None) -> Tree:
    """Return the tree with the lengths that fit the distances of near pairs best.

    The sum of w_ij·(ρ̂_ij − ρ_ij)² over pairs around each node is made small, where −log ρ_ij is
    the length of the path and w_ij = 1/(1 − ρ_ij²)² its precision: on the scale of correlations a
    pair that is nearly independent does no harm, whatever its estimated distance. Gauss-Newton
    with conjugate gradients; lengths stay ≥ 0. Linear in the number of nodes a step. Large
    trees are given less effort unless told otherwise.
    """
    if effort is None:
        effort = THOROUGH if tree.n_nodes <= _LARGE else QUICK
    pairs = _near_pairs(tree, _tie_breakers(block), effort)
    starts, items = fitting.path_edges(pairs, tree.order, tree.parent)
    paths = Paths(starts, items, tree.n_nodes)
    estimated = np.exp(-block.pair_distances(pairs))
    length = tree.length.copy()
    for _ in range(effort.rounds):
        weight, target = _goals(paths.lengths(length), estimated)
        _solve(paths, length, tree.parent >= 0, weight, target, effort.steps)
    return tree.with_lengths(length)


def _tie_breakers(block: Block) -> FloatArray:
    """Return a tiny number for every variable that does not depend on the order of variables.

    A node in the middle of an edge is equally far from both its ends. Which one counts as the
    nearest must be settled neither by rounding nor by the order of the variables: it is the one
    whose edges in the spanning tree are shorter.
    """
    lengths = np.repeat(block.pair_distances(block.spanning), 2)
    around = np.bincount(block.spanning.ravel(), lengths, minlength=block.n_variables)
    return np.asarray(_TIE * around)


def _near_pairs(tree: Tree, offset: FloatArray, effort: Effort) -> IntArray:
    """Return the pairs around each node, without repetition; ``offset`` settles ties."""
    entry, distance = fitting.lists_around(
        tree.order, tree.parent, tree.length, offset, effort.nearest
    )
    raw = fitting.pairs_across(
        entry[np.lexsort([entry[:, 1], distance, entry[:, 0]])], effort.crowd
    )
    low, high = np.sort(raw, axis=1).T
    keys = np.unique(low * tree.n_observed + high)  # sorted, so order is no matter
    return np.column_stack(np.divmod(keys, tree.n_observed))


class Paths:
    """Paths between pairs of nodes, and sums over them; an edge is named by its lower node."""

    def __init__(self, starts: IntArray, items: IntArray, n_nodes: int) -> None:
        self.starts = starts
        self.items = items
        self.n_nodes = n_nodes
        self.pair = np.repeat(np.arange(starts.size - 1), np.diff(starts))

    def lengths(self, length: FloatArray) -> FloatArray:
        """Length of each path."""
        return np.asarray(np.add.reduceat(length[self.items], self.starts[:-1]))

    def totals(self, values: FloatArray) -> FloatArray:
        """For each edge, the sum of the values of the paths that hold it."""
        return np.asarray(np.bincount(self.items, values[self.pair], self.n_nodes), np.float64)

    def normal_matrix(self, weight: FloatArray) -> FloatArray:
        """Return N = Aᵀ·W·A, A of zeros and ones: the weight of the paths that hold both edges."""
        n = self.n_nodes
        cells, pair = self._couples
        return np.asarray(np.bincount(cells, weight[pair], n * n), np.float64).reshape(n, n)

    @cached_property
    def _couples(self) -> tuple[IntArray, IntArray]:
        """Any two edges on the same path, as places in a matrix, and the number of the path."""
        size = np.diff(self.starts)[self.pair]  # of the path that each entry of `items` is on
        first, pair = np.repeat(self.items, size), np.repeat(self.pair, size)
        within = np.arange(first.size) - np.repeat(np.cumsum(size) - size, size)
        return first * self.n_nodes + self.items[self.starts[pair] + within], pair


def _goals(path: FloatArray, estimated: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights and wanted path lengths of one Gauss-Newton step on the scale of correlations.

    A pair whose ρ̂ is below the path's ρ moves the path by (ρ − ρ̂)/ρ ≤ 1, one whose ρ̂ is above
    by log(ρ̂/ρ); its weight is ρ²/(1 − ρ²)².
    """
    path = np.minimum(path, 30.0)
    rho = np.exp(-path)
    ratio = estimated / rho
    move = np.where(ratio < 1.0, 1.0 - ratio, -np.log(np.maximum(ratio, 1.0)))
    return (rho / np.maximum(1.0 - rho * rho, 1e-3)) ** 2, path + move


def _solve(
    paths: Paths,
    length: FloatArray,
    free: NDArray[np.bool_],
    weight: FloatArray,
    target: FloatArray,
    n_steps: int,
) -> None:
    """Minimize Σ w·(target − path length)² over the free edges, in place.

    What comes out negative is set to 0 and the rest solved again, a few times over. Small trees:
    directly; large ones: by conjugate gradients, which need no matrix.
    """
    diagonal = paths.totals(weight)
    for _ in range(4):
        residual = paths.totals(weight * (target - paths.lengths(length)))
        inverse = np.where(free & (diagonal > 0.0), 1.0 / np.maximum(diagonal, 1e-300), 0.0)
        if paths.n_nodes <= _DENSE:
            _solve_directly(paths, length, weight, inverse, residual)
        else:
            direction, product = np.empty((2, paths.n_nodes))
            fitting.conjugate_gradients(
                length, paths.starts, paths.items, weight, inverse, residual, direction, product,
                n_steps,
            )  # fmt: skip
        negative = length < 0.0
        if not negative.any():
            break
        length[negative] = 0.0
        free = free & ~negative


def _solve_directly(
    paths: Paths, length: FloatArray, weight: FloatArray, inverse: FloatArray, residual: FloatArray
) -> None:
    """Add N⁻¹·residual to the lengths of the free edges, in place, where N = Aᵀ·W·A.

    N is scaled to a diagonal of ones first: weights of near and far pairs differ by many powers of
    ten. The paths around all nodes determine all lengths, so that N has full rank; the ridge only
    keeps a step finite where weights vanish.
    """
    free = np.flatnonzero(inverse)
    root = np.sqrt(inverse[free])
    normal = paths.normal_matrix(weight)[np.ix_(free, free)] * np.outer(root, root)
    normal[np.diag_indices(free.size)] += _RIDGE
    length[free] += root * np.linalg.solve(normal, root * residual[free])

"""Lengths of the edges of a given tree, by weighted least squares on the distances nearby."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import is_interpreted
from latentree._kernels.structure import fitting
from latentree.structure._blocks import Block
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray, IntArray


class FitSettings(NamedTuple):
    """How many pairs take part in a fit of lengths, and how many steps it takes."""

    nearest: int
    """Observed nodes behind each neighbor that take part."""
    crowd: int
    """Of those around a node, how many are paired with all others."""
    rounds: int
    """Gauss-Newton steps."""
    steps: int
    """Conjugate gradient steps in each; 0 to factor the normal equations."""


THOROUGH = FitSettings(nearest=3, crowd=24, rounds=4, steps=0)
"""For trees of up to 1,000 nodes: four Gauss-Newton steps with factored normal equations."""

QUICK = FitSettings(nearest=2, crowd=8, rounds=1, steps=12)
"""For larger trees: one step, linear in the number of nodes."""

_LARGE = 1000
"""Nodes up to which the normal equations are factored, cubic in their number at worst."""

_RIDGE = 1e-12
"""Added to the diagonal of ones of the normal matrix, so that it can be factored."""


def fit_lengths(tree: Tree, block: Block) -> Tree:
    """Return the tree with the lengths that fit the distances of near pairs best.

    The sum of w_ij·(ρ̂_ij − ρ_ij)² over pairs around each node is made small, where −log ρ_ij is
    the length of the path and w_ij = 1/(1 − ρ_ij²)² its precision: on the scale of correlations a
    pair that is nearly independent does no harm, whatever its estimated distance. Gauss-Newton;
    lengths stay ≥ 0. Large trees take fewer pairs and steps, with conjugate gradients, which are
    linear in the number of nodes, in place of a factored matrix.
    """
    settings = THOROUGH if tree.n_nodes <= _LARGE else QUICK
    pairs = _near_pairs(tree, block.tie_breakers, settings)
    starts, items = fitting.path_edges(pairs, tree.order, tree.parent)
    estimated = np.exp(-block.pair_distances(pairs))
    length, free = tree.length.copy(), tree.parent >= 0
    if is_interpreted():
        _fit_densely(length, free, starts, items, estimated, settings.rounds)
    else:
        fitting.fit_paths(length, free, starts, items, estimated, settings.rounds, settings.steps)
    return tree.with_lengths(length)


def _near_pairs(tree: Tree, offset: FloatArray, settings: FitSettings) -> IntArray:
    """Return the pairs around each node, without repetition; ``offset`` settles ties."""
    keys = fitting.near_pairs(
        tree.order, tree.parent, tree.length, offset, settings.nearest, settings.crowd
    )
    return np.column_stack(np.divmod(keys, tree.n_observed))


def _fit_densely(
    length: FloatArray,
    free: BoolArray,
    starts: IntArray,
    items: IntArray,
    estimated: FloatArray,
    n_rounds: int,
) -> None:
    """Fit the lengths of a tiny tree, in place: what the kernel does, in few steps of NumPy.

    The normal matrix is scaled to a diagonal of ones: weights of near and far pairs differ by many
    powers of ten. The ridge keeps a step finite where weights vanish.
    """
    design = np.zeros((estimated.size, length.size))
    design[np.repeat(np.arange(estimated.size), np.diff(starts)), items] = 1.0
    for _ in range(n_rounds):
        path = np.minimum(design @ length, 30.0)
        rho = np.exp(-path)
        ratio = estimated / rho
        # Gauss-Newton: ρ̂ − ρ ≈ −ρ·(target − path), so that target = path + 1 − ρ̂/ρ with the weight
        # ρ²/(1 − ρ²)². Where ρ̂ > ρ, the step −log(ρ̂/ρ) to the exact solution is the shorter one.
        target = path + np.where(ratio < 1.0, 1.0 - ratio, -np.log(np.maximum(ratio, 1.0)))
        weight = (rho / np.maximum(1.0 - rho * rho, 1e-3)) ** 2
        # Active set: lengths that would be negative are fixed at 0, and the others solved again.
        moves = free.copy()
        for _ in range(4):
            part = design[:, moves]
            scale = 1.0 / np.sqrt(np.maximum(weight @ part, 1e-300))
            normal = (part.T * weight) @ part * np.outer(scale, scale) + _RIDGE * np.eye(len(scale))
            residual = scale * (part.T @ (weight * (target - design @ length)))
            length[moves] += scale * np.linalg.solve(normal, residual)
            if (length >= 0.0).all():
                break
            moves &= length >= 0.0
            np.maximum(length, 0.0, out=length)

"""Lengths of the edges of a given tree, by weighted least squares on the distances nearby."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import cg

from latentree._kernels import branches
from latentree.structure.problem import Problem
from latentree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_NEAREST = 3  # observed nodes behind each neighbour that take part
_CROWD = 24  # of those around a node, how many are paired with all others
_DENSE = 300  # edges up to which the normal equations are solved as a dense matrix
_STEPS = 4


def fit_lengths(tree: Tree, problem: Problem) -> Tree:
    """Return the tree with the lengths that fit the distances of near pairs best.

    The sum of w_ij·(ρ̂_ij − ρ_ij)² over pairs around each node is made small, where −log ρ_ij is
    the length of the path and w_ij = 1/(1 − ρ_ij²)² its precision: on the scale of correlations a
    pair that is nearly independent does no harm, whatever its estimated distance. Gauss-Newton,
    a sparse linear system a step; lengths stay ≥ 0. Linear in the number of nodes but for
    the linear solver.
    """
    if tree.n_nodes < 2:
        return tree
    pairs = _near_pairs(tree)
    estimated = np.exp(-problem.pair_distances(pairs))
    level = branches.node_levels(tree.order, tree.parent)
    starts, items = branches.path_edges(pairs, tree.parent, level)
    columns = np.cumsum(tree.parent >= 0) - 1
    shape = (len(pairs), tree.n_edges)
    design = sparse.csr_array((np.ones(items.size), columns[items], starts), shape)
    below = tree.edges[:, 1]
    lengths = tree.length[below].copy()
    for _ in range(_STEPS):
        lengths = _step(design, lengths, estimated)
    out = np.zeros(tree.n_nodes)
    out[below] = lengths
    return tree.with_lengths(out)


def _near_pairs(tree: Tree) -> IntArray:
    """Return the pairs around each node, without repetition."""
    raw = branches.pairs_around(
        tree.order, tree.parent, tree.length, tree.n_observed, _NEAREST, _CROWD
    )
    keys = np.unique(raw[:, 0] * tree.n_observed + raw[:, 1])
    return np.column_stack(np.divmod(keys, tree.n_observed))


def _step(design: Any, lengths: FloatArray, estimated: FloatArray) -> FloatArray:
    """Take one Gauss-Newton step on the scale of correlations, then keep lengths ≥ 0."""
    path = np.minimum(design @ lengths, 30.0)
    rho = np.exp(-path)
    # Too weak an estimate moves the path by (ρ − ρ̂)/ρ ≤ 1; too strong a one by log(ρ̂/ρ).
    change = np.where(estimated < rho, 1.0 - estimated / rho, np.log(rho / estimated))
    weight = (rho / np.maximum(1.0 - rho**2, 1e-3)) ** 2
    return _nonnegative_solution(design, weight, path + change, lengths)


def _nonnegative_solution(
    design: Any, weight: FloatArray, target: FloatArray, start: FloatArray
) -> FloatArray:
    """Solve the weighted least squares problem; lengths that come out negative are set to 0."""
    weighted = design.multiply(weight[:, None]).tocsr()
    normal = (weighted.T @ design).tocsr()
    right = weighted.T @ target
    free = np.ones(start.size, bool)
    lengths = start
    for _ in range(4):
        lengths = np.zeros(start.size)
        lengths[free] = _solve(normal, right, free, start)
        negative = lengths < 0
        if not negative.any():
            break
        free &= ~negative
    return np.maximum(lengths, 0.0)


def _solve(normal: Any, right: FloatArray, free: NDArray[np.bool_], start: FloatArray) -> FloatArray:
    """Solve for the free lengths, with the faint pull towards the start that makes it unique."""
    part = normal[free][:, free]
    ridge = 1e-9 * part.diagonal() + 1e-12
    system = part + sparse.diags_array(ridge)
    goal = right[free] + ridge * start[free]
    if part.shape[0] <= _DENSE:
        return np.asarray(np.linalg.solve(system.toarray(), goal))
    scale = sparse.diags_array(1.0 / system.diagonal())
    solution, _ = cg(system, goal, x0=start[free], rtol=1e-8, maxiter=500, M=scale)
    return np.asarray(solution)

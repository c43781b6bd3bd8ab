"""CLBlind: one hidden variable beside every inner node of the Chow-Liu tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentree.structure._lengths import fit_lengths
from latentree.structure._problem import Problem, learn_by_blocks
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray


def cl_blind(distances: Any) -> Tree:
    """Learn a latent tree by the blind transformation of the Chow-Liu tree.

    Every inner node i of the minimum spanning tree becomes a leaf of a new hidden node, which
    takes over its neighbours. This is right when all inner nodes of the true tree are hidden and
    each one's nearest observed node is among its neighbours (Theorem 10). When only the first
    holds, there are never more hidden nodes than in truth. O(m²) for m variables.

    Examples
    --------
    The path 0 – 1 – 2 is the Chow-Liu tree of a star whose nearest leaf is 1:

    >>> print(cl_blind([[0.0, 3.0, 4.0], [3.0, 0.0, 3.0], [4.0, 3.0, 0.0]]).draw())
    x0
    └─ (h1)  2
       ├─ x1  1
       └─ x2  2
    """
    return learn_by_blocks(distances, blind)


def blind(problem: Problem) -> Tree:
    """Transform the spanning tree of a block."""
    m = problem.n_variables
    degree = np.bincount(problem.spanning.ravel(), minlength=m)
    inner = np.flatnonzero(degree > 1)
    stand_in = np.arange(m)
    stand_in[inner] = m + np.arange(inner.size)
    pendant = np.zeros(m)
    pendant[inner] = _pendant_lengths(problem, inner)
    edges = np.concatenate([stand_in[problem.spanning], np.column_stack([inner, stand_in[inner]])])
    between = problem.pair_distances(problem.spanning) - pendant[problem.spanning].sum(axis=1)
    lengths = np.maximum(np.concatenate([between, pendant[inner]]), 0.0)
    tree = Tree.from_edges(edges, m, lengths)
    return tree if problem.n_samples is None else fit_lengths(tree, problem)


def _pendant_lengths(problem: Problem, inner: IntArray) -> FloatArray:
    """Return d_ih of inner nodes: the mean of (d_ia + d_ib − d_ab)/2 over neighbours a, b."""
    ends = np.concatenate([problem.spanning, problem.spanning[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    starts = np.searchsorted(ends[:, 0], inner)
    stops = np.searchsorted(ends[:, 0], inner, side="right")
    return np.array(
        [
            _mean_pendant(problem.block(np.append(i, ends[start:stop, 1])))
            for i, start, stop in zip(inner, starts, stops, strict=True)
        ]
    )


def _mean_pendant(block: FloatArray) -> float:
    """Return the mean for the first node of a block, the others being its neighbours."""
    k = len(block) - 1
    to_i = block[0, 1:].sum()
    among = block[1:, 1:].sum() / 2
    # Σ_{a<b} (d_ia + d_ib − d_ab)/2 over the k·(k−1)/2 pairs
    return float(((k - 1) * to_i - among) / (k * (k - 1)))

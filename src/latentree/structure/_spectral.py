"""Spectral neighbor joining, with contraction of what it did not need to add."""

from __future__ import annotations

import numpy as np

from latentree._kernels.structure.spectral import join_spectrally
from latentree.distances import DistancesLike
from latentree.structure._blocks import Block, learn_by_blocks
from latentree.structure._contraction import finish_tree
from latentree.structure._neighbor_joining import STRONG, joined
from latentree.tree import Tree
from latentree.typing import FloatArray

_LONGEST = 4.0
"""Distances without a number of samples are scaled to this, if longer: then e^(−d) of the farthest
pair (0.02) still counts beside rounding errors. A tree's distances stay a tree's when scaled."""


def spectral_neighbor_joining(
    distances: DistancesLike, exact: bool = False, threshold: float = STRONG
) -> Tree:
    """Learn a latent tree by spectral neighbor joining (Jaffe et al. 2021).

    As neighbor joining, it joins two clusters of variables in each step; but it chooses them by all
    correlations between the two and the rest. In a tree the block of correlations R[A, not A] has
    rank one exactly if an edge parts A from the rest, so the union A of two clusters with the
    smallest second singular value of the block is joined. Long, noisy distances count little there:
    their correlations are small. Short edges are contracted as in :func:`neighbor_joining`.

    Nearly O(m³) for m variables, by lower bounds on the singular values; the computed ones cost up
    to O(m³) each, and a few are needed in each step. For some hundred variables.

    Parameters
    ----------
    distances : Distances or square array
        Information distances.
    exact : bool
        Whether the distances are those of a tree, up to rounding.
    threshold : float
        ε′: edges with a hidden end that are shorter than this, on the scale −log|ρ|, are contracted
        in the end.

    Returns
    -------
    Tree
        A minimal latent tree: hidden nodes have three neighbors or more. With exact distances it
        is the true tree.

    References
    ----------
    Jaffe, Amsel, Aizenbud, Nadler, Chang and Kluger, Spectral neighbor joining for reconstruction
    of latent tree models, SIAM Journal on Mathematics of Data Science 3, 2021.

    Examples
    --------
    >>> d = [[0, 2, 3, 3], [2, 0, 3, 3], [3, 3, 0, 2], [3, 3, 2, 0]]
    >>> print(spectral_neighbor_joining(d, exact=True).draw())
    x0
    └─ (h1)  1
       ├─ x1  1
       └─ (h2)  1
          ├─ x2  1
          └─ x3  1
    """

    def learn(block: Block) -> Tree:
        return finish_tree(spectrally_joined(block), block, exact, threshold)

    return learn_by_blocks(distances, learn)


def spectrally_joined(block: Block) -> Tree:
    """Return the binary tree; negative lengths, which noise brings about, become 0."""
    m = block.n_variables
    if m < 4:
        return joined(block)  # there is nothing to choose
    ends, lengths = np.empty((2 * m - 3, 2), np.int64), np.empty(2 * m - 3)
    join_spectrally(affinities(block), block.matrix.copy(), ends, lengths)
    return Tree.from_edges(ends, m, np.maximum(lengths, 0.0))


def affinities(block: Block) -> FloatArray:
    """Return the correlations; of distances without samples e^(−d), scaled if they are long."""
    scale = 1.0
    if block.n_samples is None:
        scale = min(1.0, _LONGEST / max(float(block.matrix.max()), 1e-300))
    return np.asarray(np.exp(-scale * block.matrix) * block.signs)

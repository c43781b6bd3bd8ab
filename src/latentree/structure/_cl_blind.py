"""CLBlind: one hidden variable beside every inner node of the Chow-Liu tree."""

from __future__ import annotations

import numpy as np

from latentree.distances import DistancesLike
from latentree.structure._blocks import Block, learn_by_blocks, printed
from latentree.structure._lengths import fit_lengths
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray


def cl_blind(distances: DistancesLike, as_printed: bool = False) -> Tree:
    """Learn a latent tree by the blind transformation of the Chow-Liu tree.

    Every inner node i of the minimum spanning tree becomes a leaf of a new hidden node, which
    takes over its neighbors. This is right when all inner nodes of the true tree are hidden and
    each one's nearest observed node is among its neighbors (Theorem 10 of the paper). When only the
    first holds, there are never more hidden nodes than in truth. O(m²) for m variables.

    The length from an inner node i to its hidden node is the mean of (d_ia + d_ib − d_ab)/2 over
    pairs of neighbors a and b. From samples all lengths are fitted afterwards.

    Parameters
    ----------
    distances : Distances or square array
        Information distances.
    as_printed : bool
        Whether to run the algorithm of Section 5.3 and nothing else: no test of independence, and
        no length is fitted.

    Returns
    -------
    Tree
        As many hidden nodes as the spanning tree has inner nodes; all observed nodes are leaves.

    References
    ----------
    Choi, Tan, Anandkumar and Willsky, Learning latent tree graphical models, Journal of Machine
    Learning Research 12, 2011, Section 5.4.

    Examples
    --------
    The path 0 – 1 – 2 is the Chow-Liu tree of a star whose nearest leaf is 1:

    >>> print(cl_blind([[0.0, 3.0, 4.0], [3.0, 0.0, 3.0], [4.0, 3.0, 0.0]]).draw())
    x0
    └─ (h1)  2
       ├─ x1  1
       └─ x2  2
    """
    return learn_by_blocks(printed(distances) if as_printed else distances, blind)


def blind(block: Block) -> Tree:
    """Transform the spanning tree of a block."""
    m = block.n_variables
    degree = np.bincount(block.spanning.ravel(), minlength=m)
    inner = np.flatnonzero(degree > 1)
    # A leaf stays a neighbor itself; an inner node is replaced by its hidden node.
    stand_in = np.arange(m)
    stand_in[inner] = m + np.arange(inner.size)
    pendant = np.zeros(m)
    pendant[inner] = _pendant_lengths(block, inner)
    edges = np.concatenate([stand_in[block.spanning], np.column_stack([inner, stand_in[inner]])])
    between = block.pair_distances(block.spanning) - pendant[block.spanning].sum(axis=1)
    lengths = np.maximum(np.concatenate([between, pendant[inner]]), 0.0)
    tree = Tree.from_edges(edges, m, lengths)
    return tree if block.n_samples is None else fit_lengths(tree, block)


def _pendant_lengths(block: Block, inner: IntArray) -> FloatArray:
    """Return d_ih of inner nodes: the mean of (d_ia + d_ib − d_ab)/2 over neighbors a, b."""
    ends = np.concatenate([block.spanning, block.spanning[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    starts = np.searchsorted(ends[:, 0], inner)
    stops = np.searchsorted(ends[:, 0], inner, side="right")
    return np.array(
        [
            _mean_pendant(block.among(np.append(i, ends[start:stop, 1])))
            for i, start, stop in zip(inner, starts, stops, strict=True)
        ]
    )


def _mean_pendant(among: FloatArray) -> float:
    """Return the mean for the first of some nodes, the others being its neighbors."""
    k = len(among) - 1
    to_i = among[0, 1:].sum()
    others = among[1:, 1:].sum() / 2
    # Σ_{a<b} (d_ia + d_ib − d_ab)/2 over the k·(k−1)/2 pairs
    return float(((k - 1) * to_i - others) / (k * (k - 1)))

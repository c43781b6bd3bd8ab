"""Chow-Liu trees: the best tree without hidden variables."""

from __future__ import annotations

import math

import numpy as np

from latentree.distances import DistancesLike, SampleLike, as_sample
from latentree.structure._blocks import Block, learn_by_blocks
from latentree.structure._spanning import edges_of_rows
from latentree.tree import Tree
from latentree.typing import FloatArray


def chow_liu(distances: DistancesLike) -> Tree:
    """Return the minimum spanning tree of the distances: the Chow-Liu tree.

    For Gaussian, binary and symmetric discrete variables this is the maximum-likelihood tree among
    those without hidden nodes, since mutual information falls with distance (Lemma 6 of the paper).
    For other discrete variables see :func:`mutual_information_tree`. Prim's algorithm, O(m²) time
    for m variables; from distances on demand Borůvka's, in O(m) memory, with the same result.

    Parameters
    ----------
    distances : Distances or square array
        Information distances, as a matrix or on demand.

    Returns
    -------
    Tree
        All nodes are observed; the length of an edge is the distance of its ends. Variables that
        look independent of all others make a forest, with a warning.

    References
    ----------
    Chow and Liu, Approximating discrete probability distributions with dependence trees, IEEE
    Transactions on Information Theory 14, 1968.

    Examples
    --------
    >>> print(chow_liu([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]).draw())
    x0
    └─ x1  1
       └─ x2  2
    """
    return learn_by_blocks(distances, spanning_tree)


def spanning_tree(block: Block) -> Tree:
    """Return the spanning tree of a block as a tree without hidden nodes."""
    lengths = block.pair_distances(block.spanning)
    return Tree.from_edges(block.spanning, block.n_variables, lengths)


def mutual_information_tree(X: SampleLike) -> Tree:
    """Return the tree with the largest sum of mutual informations: Chow-Liu for discrete data.

    The variables may have different numbers of states. An edge of mutual information I has the
    length −log √(1 − e^(−2I)), that of a Gaussian edge with the same I. O(n·m²) time for n rows;
    O(m) memory beside the counts of pairs, which are not held if they do not fit.

    Parameters
    ----------
    X : table-like, Parts or Statistics
        Discrete data: anything that :func:`latentree.data.as_table` reads, or statistics.

    Returns
    -------
    Tree
        The maximum-likelihood tree among those without hidden nodes.

    References
    ----------
    Chow and Liu, Approximating discrete probability distributions with dependence trees, IEEE
    Transactions on Information Theory 14, 1968.

    Examples
    --------
    The middle column agrees with the first in three rows of four and with the last in all:

    >>> X = [[0, 0, 0], [0, 1, 1], [1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]]
    >>> mutual_information_tree(X).edges.tolist()
    [[0, 1], [1, 2]]
    """
    sample = as_sample(X, "discrete")
    most = math.log(max(2, int(sample.cardinalities.max())))  # nats that two columns can share

    def cost(column: int) -> FloatArray:
        return np.maximum(most - sample.information_with(column), 0.0)

    edges, costs = edges_of_rows(cost, sample.n_columns, most)
    shared = np.clip(most - costs, 1e-15, 50.0)
    lengths = np.maximum(-0.5 * np.log(-np.expm1(-2.0 * shared)), 0.0)
    return Tree.from_edges(edges, sample.n_columns, lengths, sample.names)

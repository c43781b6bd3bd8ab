"""Hidden Chow-Liu trees: the Chow-Liu tree with its inner variables doubled by hidden ones."""

from __future__ import annotations

import numpy as np

from latentree.distances import DistancesLike, SampleLike
from latentree.structure._chow_liu import mutual_information_tree
from latentree.structure._cl_blind import cl_blind
from latentree.tree import Tree, hung_as_leaves


def hidden_chow_liu(distances: DistancesLike) -> Tree:
    """Return the hidden Chow-Liu tree: a hidden variable takes the place of each inner variable.

    Every inner variable of the Chow-Liu tree becomes a leaf of a hidden variable that takes over
    its neighbors, as in :func:`cl_blind`: the tree is the same, and so are its lengths. It is made
    for prediction: with many states a hidden variable carries far more than the variable it
    replaces. Hidden variables above the leaves of the Chow-Liu tree, which the reference has,
    would have two neighbors and add nothing; the tree is minimal. O(m²) for m variables.

    Method ``hclt`` begins with the Chow-Liu tree of the mutual information where the columns are
    discrete, see :func:`hidden_mutual_information_tree`.

    Parameters
    ----------
    distances : Distances or square array
        Information distances.

    Returns
    -------
    Tree
        As many hidden nodes as the spanning tree has inner nodes; all observed nodes are leaves.

    References
    ----------
    Liu and Van den Broeck, Tractable Regularization of Probabilistic Circuits, Advances in Neural
    Information Processing Systems 34, 2021.

    Examples
    --------
    >>> hidden_chow_liu([[0.0, 3.0, 4.0], [3.0, 0.0, 3.0], [4.0, 3.0, 0.0]])
    Tree(3 observed, 1 hidden, 3 edges)
    """
    return cl_blind(distances)


def hidden_mutual_information_tree(X: SampleLike) -> Tree:
    """Return the hidden Chow-Liu tree of discrete data, from mutual information.

    Parameters
    ----------
    X : table-like, Parts or Statistics
        Discrete data, as :func:`mutual_information_tree` takes it.

    Returns
    -------
    Tree
        Minimal, with all observed nodes as leaves. A hidden node is at distance 0 from the
        variable whose place it takes.

    Examples
    --------
    >>> X = [[0, 0, 0], [0, 1, 1], [1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]]
    >>> print(hidden_mutual_information_tree(X).draw())
    x0
    └─ (h1)  0.734
       ├─ x1  0
       └─ x2  0.144
    """
    tree = mutual_information_tree(X)
    return hung_as_leaves(tree, np.arange(tree.n_observed))

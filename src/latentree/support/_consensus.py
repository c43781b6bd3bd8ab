"""The consensus of trees: the splits that most of them have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree.errors import TreeError
from latentree.support._splits import Splits
from latentree.tree import Tree


def majority_tree(trees: Sequence[Tree], threshold: float = 0.5) -> Tree:
    """Return the tree of the splits that more than a share of trees have, lengths averaged.

    With a threshold of 0.5 no tree has a smaller mean Robinson-Foulds distance to the given ones.
    Where a variable is inside most trees, it is inside this one: the edge of a leaf is a split
    like others. If that would put several variables onto one node, the others become its leaves.

    Parameters
    ----------
    trees : sequence of Tree
        Over the same variables, in the same order.
    threshold : float
        At least 0.5, so that any two splits are together in some tree, and agree.

    Returns
    -------
    Tree

    References
    ----------
    Margush and McMorris, Consensus n-trees, Bulletin of Mathematical Biology 43, 1981.

    Barthélemy and McMorris, The median procedure for n-trees, Journal of Classification 3, 1986.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
    >>> split = lt.Tree([4, 4, 5, 5, -1, 4], n_observed=4)
    >>> majority_tree([star, split, split])
    Tree(4 observed, 2 hidden, 5 edges)
    """
    if not 0.5 <= threshold < 1.0:
        raise TreeError(f"threshold is {threshold}, but a majority is from 0.5 to below 1")
    if not trees:
        raise TreeError("a majority needs at least one tree")
    names = {tree.names[: tree.n_observed] for tree in trees}
    if len(names) > 1:
        raise TreeError("trees must have the same variables, in the same order")
    splits = Splits.of(trees)
    return splits.tree_with(np.flatnonzero(splits.share > threshold))

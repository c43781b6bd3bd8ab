"""Consensus trees: of the splits that most trees have, or that several learners agree on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree.errors import TreeError
from latentree.support._splits import Splits
from latentree.support._transfer import edge_claims
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray

_ROUNDING = 1e-9  # of a sum of shares
_LARGEST_SHIFT = 16.0  # of log-odds: a share of 1 in 100 becomes one of 99,999 in 100,000
_HALVINGS = 60  # of the interval of shifts: to the last digit


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
    splits = Splits.of(trees)
    return splits.tree_with(np.flatnonzero(splits.share > threshold))


def agreed_tree(
    own: Sequence[Tree],
    certainty: Sequence[FloatArray],
    replicates: Sequence[Sequence[Tree]],
    weights: Sequence[float] | FloatArray,
) -> Tree:
    """Return the tree of the splits that several learners agree on, lengths averaged.

    For every learner a split has two numbers: how probable it is in the tree of the rows
    themselves, 0 if that does not have it, and the share of the replicates with it. Shares say
    which splits are surer than others, but not how many are true. So their log-odds are shifted,
    all by the same number, until the trees of the rows are expected to have as many true splits
    by shares as by probabilities (leaves aside, which all trees have). The probability p of a
    split is the mean of both, averaged over the learners by their weights. Splits with p above one
    half are kept; of two that cannot be in one tree, the one with the larger p.

    A tree is better than another, by its expected Robinson-Foulds distance to the truth, if it has
    the larger Σ (2·p − 1) over its splits. If no tree of a learner is better than the star, the
    result is the star: where most of what was found is probably false, the splits that seem
    surest are so by selection.

    Parameters
    ----------
    own : sequence of Tree
        The tree of every learner.
    certainty : sequence of array
        How probable the split above every node of these trees is.
    replicates : sequence of sequences of Tree
        Those of every learner.
    weights : array
        Of the learners, with sum 1.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
    >>> split = lt.Tree([4, 4, 5, 5, -1, 4], n_observed=4)
    >>> sure = [[1.0] * 6, [1.0] * 5]
    >>> agreed_tree([split, star], sure, [[split], [star]], [0.6, 0.4])
    Tree(4 observed, 2 hidden, 5 edges)
    >>> agreed_tree([split, star], sure, [[split], [star]], [0.4, 0.6])
    Tree(4 observed, 1 hidden, 4 edges)
    """
    splits = Splits.of([*own, *(tree for each in replicates for tree in each)])
    shape = len(splits), len(own)  # a column a learner
    sure, count = np.zeros(shape), np.zeros(shape)
    is_own, is_claimed = np.zeros(shape, bool), np.zeros(shape, bool)
    start = len(own)
    for learner, (tree, chances, each) in enumerate(zip(own, certainty, replicates, strict=True)):
        there, below = splits.of_tree(learner), tree.edges[:, 1]
        is_own[there, learner] = True
        is_claimed[there, learner] = edge_claims(tree).is_made[below]
        sure[there, learner] = np.asarray(chances)[below]
        count[:, learner] = splits.counts(start, start + len(each))
        start += len(each)
    n_replicates = [len(each) for each in replicates]
    share = shifted_shares(count, n_replicates, is_own, is_claimed, sure)
    p = 0.5 * (sure + share) @ np.asarray(weights)
    is_of_leaf = splits.are_of_leaves()
    gain = 2.0 * p - 1.0
    if max(gain[each].sum() for each in is_own.T) <= gain[is_of_leaf].sum():
        return splits.tree_with(np.flatnonzero(is_of_leaf))
    likely = np.flatnonzero(p > 0.5 + _ROUNDING)
    return splits.tree_with(splits.fitting(likely[np.argsort(-p[likely], kind="stable")]))


def shifted_shares(
    count: FloatArray,
    n_replicates: Sequence[int],
    is_own: BoolArray,
    is_claimed: BoolArray,
    sure: FloatArray,
) -> FloatArray:
    """Return shares whose log-odds are shifted so that they sum to Σ ``sure`` over what is claimed.

    The share of c of r replicates is (c + ½)/(r + 1), so that its log-odds are finite; it is 0 for
    a split that neither the learner's own tree nor any of its replicates has. Arrays have a row a
    split and a column a learner.
    """
    r = np.asarray(n_replicates, np.float64)
    log_odds = np.log((count + 0.5) / (r - count + 0.5))
    is_found = is_own | (count > 0)

    def shifted(by: float) -> FloatArray:
        return np.asarray(np.where(is_found, 1.0 / (1.0 + np.exp(-log_odds - by)), 0.0))

    low, high = -_LARGEST_SHIFT, _LARGEST_SHIFT
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if shifted(middle)[is_claimed].sum() < sure[is_claimed].sum():
            low = middle
        else:
            high = middle
    return shifted(0.5 * (low + high))

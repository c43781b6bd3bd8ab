"""How sure a tree is: support for every edge, hidden variable and place of a variable.

=============================== ==============================================================
:func:`bootstrap_support`       learn again from rows drawn with replacement, and compare
:class:`Support`                what the replicates agree with, and their consensus
:func:`support_from`            the same from trees that are given
:func:`majority_tree`           the splits that most of many trees have
:func:`consensus`               the method of that name: what is probable, with parameters
:func:`probable_trees`          trees as probable as they come, drawn from their posterior
:func:`load_support`            the support in a model file
:func:`compare_trees`           splits that two trees share, and variables that moved
:class:`TreeComparison`         what it returns
=============================== ==============================================================
"""

from latentree.support._bootstrap import bootstrap_support
from latentree.support._comparison import TreeComparison, compare_trees
from latentree.support._consensus import majority_tree
from latentree.support._consensus_method import consensus, probable_trees
from latentree.support._file import load_support
from latentree.support._support import DOUBTFUL, POSTERIOR, Support, support_from

__all__ = [
    "DOUBTFUL",
    "POSTERIOR",
    "Support",
    "TreeComparison",
    "bootstrap_support",
    "compare_trees",
    "consensus",
    "load_support",
    "majority_tree",
    "probable_trees",
    "support_from",
]

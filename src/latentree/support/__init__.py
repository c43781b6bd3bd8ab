"""How sure a tree is: support for every edge, hidden variable and place of a variable.

=============================== ==============================================================
:func:`bootstrap_support`       learn again from rows drawn with replacement, and compare
:class:`Support`                what the replicates agree with, and their consensus
:func:`support_from`            the same from trees that are given
:func:`majority_tree`           the splits that most of many trees have
=============================== ==============================================================
"""

from latentree.support._bootstrap import QUICK, bootstrap_support, method_names
from latentree.support._consensus import majority_tree
from latentree.support._support import DOUBTFUL, Support, support_from

__all__ = [
    "DOUBTFUL",
    "QUICK",
    "Support",
    "bootstrap_support",
    "majority_tree",
    "method_names",
    "support_from",
]

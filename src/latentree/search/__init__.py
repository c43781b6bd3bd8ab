"""Learners that score models: they look at the data again and again, not at distances only.

======================== =====================================================================
:func:`latent_class`     one hidden variable explains everything; the baseline LCM
:func:`binary_tree`      a binary tree joined greedily from the bottom up; the baseline BIN
======================== =====================================================================

Each returns a model and the report of its fit.
"""

from latentree.search.binary_tree import binary_tree
from latentree.search.latent_class import latent_class

__all__ = ["binary_tree", "latent_class"]

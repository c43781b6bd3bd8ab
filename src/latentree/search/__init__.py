"""Learners that score models: they look at the data again and again, not at distances only.

=================================== ==========================================================
:func:`regularized_cl_grouping`     hidden variables enter where they are worth their parameters
:func:`latent_class`                one hidden variable explains everything; the baseline LCM
:func:`binary_tree`                 a binary tree joined greedily; the baseline BIN
:func:`refine`                      local changes of any tree, judged by a penalized likelihood
:func:`refined`                     a tree from distances, refined
:func:`independent`                 no edges; every other model has to beat it
=================================== ==========================================================

Each returns a model and the report of its fit.
"""

from latentree.search._binary_tree import binary_tree
from latentree.search._folds import fold_mixture
from latentree.search._independent import independent, noted, without_losses
from latentree.search._latent import as_gaussian, fit_copula_tree
from latentree.search._latent_class import latent_class, star
from latentree.search._mixed import fit_mixed, learned_in_bins
from latentree.search._mixture import tree_mixture
from latentree.search._refined import refined
from latentree.search._refinement import RefineOptions, RefineReport, refine
from latentree.search._regularized import regularized_cl_grouping

__all__ = [
    "RefineOptions",
    "RefineReport",
    "as_gaussian",
    "binary_tree",
    "fit_copula_tree",
    "fit_mixed",
    "fold_mixture",
    "independent",
    "latent_class",
    "learned_in_bins",
    "noted",
    "refine",
    "refined",
    "regularized_cl_grouping",
    "star",
    "tree_mixture",
    "without_losses",
]

"""Refinement: local changes of a tree, judged by a penalised likelihood.

==============  ==================================================================================
``refining``    the function: start, penalty, stages, report
``rounds``      propose, accept what raises the score, settle, and again
``proposal``    what the search compares, and what it asks of a family of models
``draft``       a tree while it is being changed
``discrete``    discrete models: ``edges`` and ``states`` propose, ``judging`` fits the star in
                the middle of a change (``local``) with the ``messages`` around it, and
                ``interaction`` ranks places
``gaussian``    Gaussian models: ``gaussian_moves`` proposes, in the ``space`` of covariances
==============  ==================================================================================
"""

from latentree.search._refinement._refining import RefineReport, is_quick, refine

__all__ = ["RefineReport", "is_quick", "refine"]

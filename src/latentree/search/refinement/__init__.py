"""Refinement: local changes of a tree, judged by a penalised likelihood.

==============  ==================================================================================
``refine``      the function: start, penalty, stages, report
``rounds``      propose, accept what raises the score, settle, and again
``proposal``    what the search compares, and what it asks of a family of models
``draft``       a tree while it is being changed
``discrete``    the family of discrete models: ``edges`` and ``states`` propose, ``judging`` fits the
                star in the middle of a change (``local``) with the ``messages`` around it;
                ``interaction`` ranks places
``gaussian``    the family of Gaussian models
==============  ==================================================================================
"""

from latentree.search.refinement.refine import RefineReport, refine

__all__ = ["RefineReport", "refine"]

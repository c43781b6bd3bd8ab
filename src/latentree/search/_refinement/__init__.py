"""Refinement: local changes of a tree that raise its penalized likelihood.

====================  ============================================================================
``_refine``           the function: start, penalty, search, report
``_options``          every number that steers it
``_search``           propose, accept what raises the score, fit all parameters, and again
``_draft``            a tree while it is being changed, and the edits that change it
``_tables``           a table or the emission of a column of numbers: what stands at an edge
``_discrete_engine``  trees with states in a search: drafts, and who proposes changes
``_discrete_moves``   what these changes have in common
``_discrete_edges``   changes of edges
``_discrete_last``    changes of edges for where nothing else gains
``_discrete_states``  changes of numbers of states
``_discrete_fit``     fits around one node, with the messages that arrive there
``_gaussian_moves``   changes of Gaussian trees
``_gaussian_fit``     the same on the covariance of the data
``_full_fit``         fits of all parameters, by latentree.em
====================  ============================================================================
"""

from latentree.search._refinement._full_fit import first_fits
from latentree.search._refinement._options import RefineOptions
from latentree.search._refinement._refine import RefineReport, penalty_of, refine

__all__ = [
    "RefineOptions",
    "RefineReport",
    "first_fits",
    "penalty_of",
    "refine",
]

"""Pictures of trees and models.

:func:`plot_tree` draws with matplotlib, which the extra ``plot`` brings and which is loaded only
then. The layouts (:func:`radial_layout`, :func:`layered_layout`), the styles of groups
(:func:`group_observed`) and the strengths of edges (:func:`latentree.models.edge_strengths`) need
no drawing library: the page of :mod:`latentree.explorer` is drawn from them as well.
"""

from latentree.models import edge_strengths
from latentree.plot._group_styles import VariableGroups, group_observed
from latentree.plot._notebook import fitted_html, tree_html
from latentree.plot._tree_layout import TreeLayout, layered_layout, radial_layout
from latentree.plot._tree_plot import TreePlot, plot_tree

__all__ = [
    "TreeLayout",
    "TreePlot",
    "VariableGroups",
    "edge_strengths",
    "fitted_html",
    "group_observed",
    "layered_layout",
    "plot_tree",
    "radial_layout",
    "tree_html",
]

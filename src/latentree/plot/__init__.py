"""Pictures of trees and models.

:func:`plot_tree` draws with matplotlib, which the extra ``plot`` brings and which is loaded only
then. The layouts (:func:`radial_layout`, :func:`layered_layout`) are plain numpy and serve other
drawing programs as well.
"""

from latentree.models import edge_strengths
from latentree.plot._groups import Grouping, GroupStyle, group_observed
from latentree.plot._layout import TreeLayout, layered_layout, radial_layout
from latentree.plot._tree_plot import TreePlot, plot_tree

__all__ = [
    "GroupStyle",
    "Grouping",
    "TreeLayout",
    "TreePlot",
    "edge_strengths",
    "group_observed",
    "layered_layout",
    "plot_tree",
    "radial_layout",
]

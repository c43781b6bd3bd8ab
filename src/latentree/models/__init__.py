"""Probability models on a tree, with exact inference, and the file that keeps them.

:class:`TreeModel` names the methods that all of them share.
"""

from latentree.models._discrete import DiscreteTreeModel
from latentree.models._encode import Model, encode
from latentree.models._file import load, load_report, save
from latentree.models._gaussian import GaussianTreeModel, Normal, NormalPair, in_order
from latentree.models._mixed import MixedTreeModel
from latentree.models._protocol import TreeModel
from latentree.models._saving import with_schema
from latentree.models._states import DiscretePosterior
from latentree.models._strength import (
    Scored,
    edge_strengths,
    fitted_tree,
    loadings,
    orientation,
    tree_of,
    with_fitted_lengths,
)

__all__ = [
    "DiscretePosterior",
    "DiscreteTreeModel",
    "GaussianTreeModel",
    "MixedTreeModel",
    "Model",
    "Normal",
    "NormalPair",
    "Scored",
    "TreeModel",
    "edge_strengths",
    "encode",
    "fitted_tree",
    "in_order",
    "load",
    "load_report",
    "loadings",
    "orientation",
    "save",
    "tree_of",
    "with_fitted_lengths",
    "with_schema",
]

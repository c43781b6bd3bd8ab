"""Probability models on a tree, with exact inference, and the file that keeps them."""

from latentree.models._discrete import DiscreteTreeModel
from latentree.models._encode import Model, encode
from latentree.models._file import load, load_report, save
from latentree.models._gaussian import GaussianTreeModel, in_order
from latentree.models._strength import Scored, edge_strengths, loadings, orientation, tree_of

__all__ = [
    "DiscreteTreeModel",
    "GaussianTreeModel",
    "Model",
    "Scored",
    "edge_strengths",
    "encode",
    "in_order",
    "load",
    "load_report",
    "loadings",
    "orientation",
    "save",
    "tree_of",
]

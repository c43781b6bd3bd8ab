"""Probability models on a tree, with exact inference, and the file that keeps them.

:class:`TreeModel` names the methods that all of them share.
"""

from latentree.inference import DiscretePosterior, Normal, NormalPair
from latentree.models._base import with_schema
from latentree.models._copula import CopulaTreeModel
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._encode import encode
from latentree.models._factors import FactorReports
from latentree.models._fit_indices import FitIndices
from latentree.models._gaussian import GaussianTreeModel, in_order
from latentree.models._grid import (
    LEAST_PROBABILITY,
    N_POINTS,
    POINTS,
    grid_parameters,
    turned_correlations,
)
from latentree.models._mixed import MixedTreeModel, state_model
from latentree.models._mixture import Model, TreeMixture, component_of
from latentree.models._model_file import load, load_report, save
from latentree.models._naming import (
    JOINED_BY,
    Informed,
    Names,
    as_names,
    captions,
    check_names,
    most_informed,
)
from latentree.models._order import with_sorted_states
from latentree.models._protocol import TreeModel
from latentree.models._strength import (
    Scored,
    edge_strengths,
    fitted_tree,
    has_direction,
    loadings,
    orientation,
    tree_of,
    with_fitted_lengths,
)

__all__ = [
    "JOINED_BY",
    "LEAST_PROBABILITY",
    "N_POINTS",
    "POINTS",
    "CopulaTreeModel",
    "DiscretePosterior",
    "DiscreteTreeModel",
    "FactorReports",
    "FitIndices",
    "GaussianTreeModel",
    "Informed",
    "MixedTreeModel",
    "Model",
    "Names",
    "Normal",
    "NormalPair",
    "Scored",
    "TreeMixture",
    "TreeModel",
    "as_names",
    "captions",
    "check_names",
    "component_of",
    "edge_strengths",
    "encode",
    "fitted_tree",
    "grid_parameters",
    "has_direction",
    "in_order",
    "load",
    "load_report",
    "loadings",
    "most_informed",
    "orientation",
    "save",
    "state_model",
    "tree_of",
    "turned_correlations",
    "with_fitted_lengths",
    "with_schema",
    "with_sorted_states",
]

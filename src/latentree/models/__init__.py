"""Probability models on a tree, with exact inference: Gaussian and discrete."""

from latentree.models.discrete import DiscreteTreeModel
from latentree.models.gaussian import GaussianTreeModel

__all__ = ["DiscreteTreeModel", "GaussianTreeModel"]

"""The scikit-learn estimator: a short line through the stages."""

from latentree.estimator._latent_tree import LatentTree

__all__ = ["LatentTree"]

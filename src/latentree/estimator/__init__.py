"""The scikit-learn estimator."""

from latentree.estimator._latent_tree import LatentTree

__all__ = ["LatentTree"]

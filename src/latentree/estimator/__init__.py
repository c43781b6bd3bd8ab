"""The scikit-learn estimators: ``LatentTree``, and four that do one thing each."""

from latentree.estimator._classifier import LatentTreeClassifier
from latentree.estimator._covariance import LatentTreeCovariance
from latentree.estimator._imputer import LatentTreeImputer
from latentree.estimator._latent_tree import LatentTree
from latentree.estimator._regressor import LatentTreeRegressor

__all__ = [
    "LatentTree",
    "LatentTreeClassifier",
    "LatentTreeCovariance",
    "LatentTreeImputer",
    "LatentTreeRegressor",
]

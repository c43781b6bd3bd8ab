"""``LatentTreeCovariance``, a covariance matrix in the manner of ``sklearn.covariance``."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, validate_data

from latentree.estimator._latent_tree import LatentTree
from latentree.estimator._shrunken import shrunken
from latentree.typing import SklearnState, TableLike


class LatentTreeCovariance(EmpiricalCovariance):  # type: ignore[misc]
    """Estimate a covariance matrix by shrinking that of the rows toward a Gaussian latent tree.

    A tree has few parameters, so few rows suffice. Part of what the tree leaves out is kept:
    held-out rows decide how much weight the sample covariances get beside those of the tree, and
    how much weaker than in the tree correlations are. Cells may be missing in learning. It serves
    as ``covariance_estimator`` in skfolio.

    Parameters
    ----------
    method : str
        How the tree is learned, see :class:`latentree.LatentTree`.
    n_folds : int
        Number of times that rows are held out; 0 for the covariance of the tree itself.
    store_precision : bool
        Whether to keep ``precision_``.
    random_state : int, RandomState or Generator, optional
        For random starts.

    Attributes
    ----------
    covariance_ : array of shape (n_features, n_features)
    precision_ : array of shape (n_features, n_features)
        Its inverse.
    location_ : array of shape (n_features,)
        The means.
    shares_ : array of shape (3,)
        How much the rows, the tree, and independent columns count; they add up to 1.
    learned_ : LatentTree
        The estimator behind it, with the tree and the report.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, only if they have names.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> learned = lt.LatentTreeCovariance().fit(truth.sample(500, 1))
    >>> bool(learned.error_norm(truth.covariance()) < 0.5)
    True
    """

    def __init__(
        self,
        method: str = "clnj",
        *,
        n_folds: int = 5,
        store_precision: bool = True,
        random_state: SklearnState = None,
    ) -> None:
        super().__init__(store_precision=store_precision)
        self.method = method
        self.n_folds = n_folds
        self.random_state = random_state
        _register_with_skfolio()

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self, X: TableLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> LatentTreeCovariance:
        """Learn the tree and its covariance matrix.

        Parameters
        ----------
        X : table of numbers
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array, optional
            How much each row counts.

        Returns
        -------
        LatentTreeCovariance
            The estimator itself.
        """
        values = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        weights = _check_sample_weight(sample_weight, values, ensure_non_negative=True)
        learner = LatentTree(self.method, "gaussian", random_state=self.random_state)
        self.learned_ = learner.fit(values, sample_weight=weights)
        found = shrunken(self.learned_, values, weights, self.n_folds)
        schema, self.shares_ = self.learned_.model_.schema, found.shares
        used, m = [int(name[1:]) for name in schema.names], values.shape[1]
        self.location_, covariance = np.zeros(m), np.zeros((m, m))
        for column in schema.aside:  # constants, which have no variance
            self.location_[column.place] = column.value
        self.location_[used] = found.gaussian.mean
        covariance[np.ix_(used, used)] = found.gaussian.covariance
        self._set_covariance(covariance)
        return self


def _register_with_skfolio() -> None:
    """Make it one of skfolio's covariance estimators, where skfolio was imported.

    skfolio asks for an instance of its own base class, an ABC, and uses what scikit-learn's
    covariances have.
    """
    moments = sys.modules.get("skfolio.moments")
    if moments is not None:
        moments.BaseCovariance.register(LatentTreeCovariance)

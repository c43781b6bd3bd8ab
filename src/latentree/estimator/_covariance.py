"""``LatentTreeCovariance``, a covariance matrix in the manner of ``sklearn.covariance``."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from latentree.estimator._latent_tree import LatentTree
from latentree.models import GaussianTreeModel
from latentree.typing import SklearnState, TableLike


class LatentTreeCovariance(EmpiricalCovariance):  # type: ignore[misc]
    """Estimate a covariance matrix as that of a Gaussian latent tree.

    It has one correlation per edge of the tree, so few rows suffice. Cells may be missing in
    learning. It serves as ``covariance_estimator`` in skfolio.

    Parameters
    ----------
    method : str
        How the tree is learned, see :class:`latentree.LatentTree`.
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
        store_precision: bool = True,
        random_state: SklearnState = None,
    ) -> None:
        super().__init__(store_precision=store_precision)
        self.method = method
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
        learner = LatentTree(self.method, "gaussian", random_state=self.random_state)
        self.learned_ = learner.fit(values, sample_weight=sample_weight)
        model = self.learned_.model_
        assert isinstance(model, GaussianTreeModel)
        used = [int(name[1:]) for name in model.schema.names]
        m = values.shape[1]
        self.location_, covariance = np.zeros(m), np.zeros((m, m))
        for column in model.schema.aside:  # constants, which have no variance
            self.location_[column.place] = column.value
        self.location_[used] = model.means
        covariance[np.ix_(used, used)] = model.covariance()
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

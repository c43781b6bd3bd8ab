"""``LatentTreeRegressor``: one Gaussian tree over the columns and the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from latentree.data import as_table
from latentree.estimator._latent_tree import LatentTree
from latentree.estimator._shrunken import TargetTree
from latentree.estimator._tables import ChecksTables, row_weights
from latentree.typing import FloatArray, KindsByName, SklearnState, TableLike


class LatentTreeRegressor(ChecksTables, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predict a number by one Gaussian latent tree over the columns and the target.

    Numbers are used as they are, categories as indicators of their labels. The prediction is
    linear in the cells that are present; cells may be missing in learning and prediction. Part of
    what the tree leaves out is kept: held-out rows decide how much weight the sample covariances
    get beside those of the tree, as in :class:`latentree.LatentTreeCovariance`.

    Parameters
    ----------
    method : str
        How the tree is learned, see :class:`latentree.LatentTree`.
    kinds : mapping from names to kinds, or str, optional
        What columns hold, see :class:`latentree.LatentTree`.
    n_folds : int
        Number of times that rows are held out; 0 for the tree alone.
    max_steps : int
        Largest number of steps of EM.
    random_state : int, RandomState or Generator, optional
        For random starts.

    Attributes
    ----------
    learned_ : LatentTree
        The estimator behind it; the last variable of its tree that is observed is the target.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, only if they have names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import latentree as lt
    >>> X, y = load_diabetes(return_X_y=True)
    >>> learned = lt.LatentTreeRegressor(random_state=0).fit(X, y)
    >>> mean, error = learned.predict(X[:1], return_std=True)
    >>> mean.shape, error.shape
    ((1,), (1,))
    """

    def __init__(
        self,
        method: str = "clnj",
        *,
        kinds: KindsByName | None = None,
        n_folds: int = 5,
        max_steps: int = 200,
        random_state: SklearnState = None,
    ) -> None:
        self.method = method
        self.kinds = kinds
        self.n_folds = n_folds
        self.max_steps = max_steps
        self.random_state = random_state

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LatentTreeRegressor:
        """Learn the tree over the columns and the target.

        Parameters
        ----------
        X : table
            Anything :class:`latentree.LatentTree` learns from in memory.
        y : array of float
            The number of each row.
        sample_weight : array, optional
            How much each row counts.

        Returns
        -------
        LatentTreeRegressor
            The estimator itself.
        """
        self._check(X, reset=True)
        target = column_or_1d(y, warn=True)
        target = check_array(target, ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(X, target)
        table = as_table(X, kinds=self.kinds)
        learner = LatentTree(
            self.method, "gaussian", max_steps=self.max_steps, random_state=self.random_state
        )
        weights = row_weights(sample_weight, X)
        self._tree = TargetTree.learn(learner, table, target[:, None], weights, self.n_folds)
        self.learned_ = self._tree.learned
        return self

    def predict(
        self, X: TableLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the number of each row.

        Parameters
        ----------
        X : table
            Columns are matched by name if both tables have names; cells may be missing.
        return_std : bool
            Whether standard deviations follow.

        Returns
        -------
        array of shape (n_rows,), or two
        """
        check_is_fitted(self)
        self._check(X, reset=False, schema=self._tree.schema)
        mean, error = self._tree.predict(X)
        return (mean[:, 0], error[:, 0]) if return_std else mean[:, 0]

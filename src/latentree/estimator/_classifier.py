"""``LatentTreeClassifier``: a tree for every class, and one over columns and classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
)

from latentree.data import as_table
from latentree.errors import DataError, DataWarning
from latentree.estimator._latent_tree import LatentTree
from latentree.estimator._shrunken import TargetTree
from latentree.estimator._tables import ChecksTables, as_real_numbers
from latentree.typing import AnyArray, FloatArray, IntArray, KindsByName, SklearnState, TableLike


class LatentTreeClassifier(ChecksTables, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict classes by latent trees.

    Two answers are combined. Every class has a tree of its own, and Bayes' rule says which makes a
    row most probable. One Gaussian tree over columns and classes predicts the classes, as
    :class:`latentree.LatentTreeRegressor` predicts numbers. A logistic regression on both, learned
    from held-out rows, combines them into probabilities. Cells may be missing in learning and in
    prediction.

    Parameters
    ----------
    method : str
        How the trees are learned, see :class:`latentree.LatentTree`.
    kinds : mapping from names to kinds, or str, optional
        What columns hold, see :class:`latentree.LatentTree`. By default counts and ordered answers
        are read as real numbers.
    n_states : int
        Number of states of hidden variables, if not all columns are real.
    prior_weight : float
        Weight of the rows of all other classes in the tree of a class, as a number of rows.
    max_steps : int
        Largest number of steps of EM.
    cv : int, splitter or iterable
        How rows are held out to combine the two answers and to calibrate probabilities.
    random_state : int, RandomState or Generator, optional
        For random starts.

    Attributes
    ----------
    classes_ : array
        The classes, in the order of the columns of :meth:`predict_proba`.
    learned_ : list of LatentTree
        The estimators of the classes, with their trees.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, only if they have names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import latentree as lt
    >>> X, y = load_iris(return_X_y=True)
    >>> learned = lt.LatentTreeClassifier(random_state=0).fit(X, y)
    >>> bool(learned.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        method: str = "clnj",
        *,
        kinds: KindsByName | None = None,
        n_states: int = 2,
        prior_weight: float = 0.1,
        max_steps: int = 20,
        cv: int | Iterable[object] = 3,
        random_state: SklearnState = None,
    ) -> None:
        self.method = method
        self.kinds = kinds
        self.n_states = n_states
        self.prior_weight = prior_weight
        self.max_steps = max_steps
        self.cv = cv
        self.random_state = random_state

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LatentTreeClassifier:
        """Learn a tree for every class.

        Parameters
        ----------
        X : table
            Anything :class:`latentree.LatentTree` learns from in memory.
        y : array
            The class of each row.
        sample_weight : array, optional
            How much each row counts.

        Returns
        -------
        LatentTreeClassifier
            The estimator itself.
        """
        self._check(X, reset=True)
        target = column_or_1d(y, warn=True)
        check_classification_targets(target)
        check_consistent_length(X, target)
        weights = _check_sample_weight(sample_weight, target, ensure_non_negative=True)
        is_counted = weights > 0
        if not is_counted.any():
            raise DataError("all sample weights are zero, so no row counts")
        self.classes_, labels = np.unique(target[is_counted], return_inverse=True)
        if self.classes_.size < 2:
            raise DataError("there is 1 class, but a classifier needs at least 2 classes")
        numbers = np.full(len(target), -1)
        numbers[is_counted] = labels
        self._trees = self._learn(X, numbers, weights)
        self.learned_ = self._trees.learned
        scores = np.full((len(target), 2 * self.classes_.size - 1), np.nan)
        for train, test in self._splits(numbers, weights):
            kept = np.zeros(len(target))
            kept[train] = weights[train]
            trees = self._learn(X, numbers, kept, self._trees.joint.mixed.shares)
            scores[test] = trees.scores(X)[test]
        is_scored = np.isfinite(scores).all(axis=1) & is_counted
        self._calibration = None
        if np.unique(numbers[is_scored]).size == self.classes_.size:
            # Newton's method, so that the answer does not depend on where an iteration stops.
            self._calibration = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(
                scores[is_scored], numbers[is_scored], sample_weight=weights[is_scored]
            )
        return self

    def _splits(
        self, numbers: IntArray, weights: FloatArray
    ) -> Iterable[tuple[IntArray, IntArray]]:
        """Yield the rows to learn from and those held out; none if a class has too few rows."""
        is_number = isinstance(self.cv, int)
        rows = np.flatnonzero(weights > 0) if is_number else np.arange(len(weights))
        if is_number and np.bincount(numbers[rows]).min() < self.cv:
            return
        splitter = check_cv(self.cv, numbers[rows], classifier=True)
        for train, test in splitter.split(rows, numbers[rows]):
            yield rows[train], rows[test]

    def _learn(
        self, X: TableLike, numbers: IntArray, weights: FloatArray, shares: FloatArray | None = None
    ) -> _ClassTrees:
        """Learn a tree for every class, in which other rows count a little, and the joint tree."""
        kinds = as_real_numbers(X) if self.kinds is None else self.kinds
        known = np.flatnonzero(weights > 0)
        table = as_table(X, kinds=self.kinds).take(known)
        if known.size < weights.size and not isinstance(X, dict):
            rows = X.tocsr() if hasattr(X, "tocsr") else X
            rows = rows if hasattr(rows, "__getitem__") else np.asarray(rows)
            X = _safe_indexing(rows, known)  # a column may vary in the other rows only
            numbers, weights = numbers[known], weights[known]
        totals = np.bincount(numbers[weights > 0], weights[weights > 0], self.classes_.size)
        learned = []
        for number, total in enumerate(totals):
            # A tree needs the weight of more than two rows: rare classes borrow what they lack.
            share = max(self.prior_weight, 3.0 - total) / (weights.sum() - total)
            learner = LatentTree(
                self.method, kinds=kinds, unseen="missing", n_states=self.n_states,
                max_steps=self.max_steps, random_state=self.random_state,
            )  # fmt: skip
            counted = np.where(numbers == number, weights, share * weights)
            with warnings.catch_warnings():  # a class may well have independent columns
                warnings.simplefilter("ignore", DataWarning)
                learned.append(learner.fit(X, sample_weight=counted))
        joint = LatentTree(
            self.method, "gaussian", max_steps=self.max_steps, random_state=self.random_state
        )
        counts = weights > 0  # all but those of a dict
        is_class = numbers[counts, None] == np.arange(1, self.classes_.size)
        found = TargetTree.learn(
            joint, table, is_class.astype(np.float64), weights[counts], 5, shares
        )
        return _ClassTrees(learned, totals / totals.sum(), found)

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : table
            Columns are matched by name if both tables have names; cells may be missing.

        Returns
        -------
        array of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        self._check(X, reset=False, schema=self.learned_[0].model_.schema)
        if self._calibration is None:
            return np.exp(self._trees.log_posteriors(X))
        return np.asarray(self._calibration.predict_proba(self._trees.scores(X)))

    def predict(self, X: TableLike) -> AnyArray:
        """Predict the most probable class.

        Parameters
        ----------
        X : table
            Columns are matched by name if both tables have names; cells may be missing.

        Returns
        -------
        array of shape (n_rows,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


class _ClassTrees(NamedTuple):
    """A tree for every class, the classes' shares, and the tree over columns and classes."""

    learned: list[LatentTree]
    shares: FloatArray
    joint: TargetTree

    def log_posteriors(self, X: TableLike) -> FloatArray:
        """Log-probabilities of the classes given each row, by Bayes' rule."""
        scores = np.column_stack([learned.score_samples(X) for learned in self.learned])
        return np.asarray(log_softmax(scores + np.log(self.shares), axis=1))

    def scores(self, X: TableLike) -> FloatArray:
        """Return both answers: log-probabilities, and predictions in their standard deviations."""
        mean, error = self.joint.predict(X)
        predicted = (mean - self.shares[1:]) / np.where(error > 0.0, error, 1.0)
        # Trees are too sure of themselves: beyond e⁻²⁰ they say no more.
        return np.column_stack([np.maximum(self.log_posteriors(X), -20.0), predicted])

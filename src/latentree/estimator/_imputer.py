"""``LatentTreeImputer``, which fills in gaps inside a pipeline."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from latentree.data import Table, as_table, filled_like, missing_cells, with_columns
from latentree.estimator._latent_tree import LatentTree
from latentree.estimator._shrunken import shrunken
from latentree.estimator._tables import ChecksTables, row_weights
from latentree.inference import Normal
from latentree.methods import numpy_seed
from latentree.models import MixedTreeModel, Model, TreeMixture
from latentree.tree import leaf_edges
from latentree.typing import AnyArray, BoolArray, FloatArray, KindsByName, SklearnState, TableLike


class LatentTreeImputer(ChecksTables, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill in missing cells by a latent tree, in the manner of scikit-learn's imputers.

    The result is of the same kind as the table: frames keep their index, labels and types. If all
    columns are real, part of what the tree leaves out is kept: held-out rows decide how much weight
    the sample covariances get beside those of the tree, as in
    :class:`latentree.LatentTreeCovariance`.

    Parameters
    ----------
    method : str
        How the tree is learned, see :class:`latentree.LatentTree`.
    kinds : mapping from names to kinds, or str, optional
        What columns hold, see :class:`latentree.LatentTree`.
    n_folds : int
        Number of times that rows of real columns are held out; 0 for the tree alone.
    add_indicator : bool
        Whether to add columns that say where cells were missing, one for each column that had
        missing cells in learning.
    sample_posterior : bool
        Whether to draw missing cells from their joint distribution given the row, instead of using
        means and most probable labels.
    keep_empty_features : bool
        Whether to keep columns that had no value in learning. They are filled with 0.
    random_state : int, RandomState or Generator, optional
        For random starts and for draws.

    Attributes
    ----------
    learned_ : LatentTree
        The estimator behind it, with the tree and the report.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, only if they have names.

    Examples
    --------
    >>> import numpy as np
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> X = truth.sample(500, 1)
    >>> X[::5, 0] = np.nan
    >>> bool(np.isnan(lt.LatentTreeImputer().fit_transform(X)).any())
    False
    """

    def __init__(
        self,
        method: str = "clnj",
        *,
        kinds: KindsByName | None = None,
        n_folds: int = 5,
        add_indicator: bool = False,
        sample_posterior: bool = False,
        keep_empty_features: bool = False,
        random_state: SklearnState = None,
    ) -> None:
        self.method = method
        self.kinds = kinds
        self.n_folds = n_folds
        self.add_indicator = add_indicator
        self.sample_posterior = sample_posterior
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state

    def fit(
        self, X: TableLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> LatentTreeImputer:
        """Learn the tree.

        Parameters
        ----------
        X : table
            Anything :class:`latentree.LatentTree` learns from in memory.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array, optional
            How much each row counts.

        Returns
        -------
        LatentTreeImputer
            The estimator itself.
        """
        self._check(X, reset=True)
        is_real = as_table(X, kinds=self.kinds).family == "gaussian"
        learner = LatentTree(
            self.method,
            "gaussian" if is_real else "auto",
            kinds=self.kinds,
            random_state=self.random_state,
        )
        self.learned_ = learner.fit(X, sample_weight=sample_weight)
        self._mixed = None
        if is_real:
            weights = row_weights(sample_weight, X)
            self._mixed = shrunken(self.learned_, X, weights, self.n_folds)
        missing = missing_cells(X)
        self._had_gaps, self._is_empty = missing.any(axis=0), missing.all(axis=0)
        return self

    def transform(self, X: TableLike) -> TableLike:
        """Fill in missing cells.

        Parameters
        ----------
        X : table
            Columns are matched by name if both tables have names.

        Returns
        -------
        table
            Of the same kind as ``X``.
        """
        check_is_fitted(self)
        self._check(X, reset=False, schema=self.learned_.model_.schema)
        filled = self._filled(X)
        if not self.add_indicator and not self._is_empty.any():
            return filled
        zeros = np.asarray(self._is_empty & self.keep_empty_features)
        names = self.get_feature_names_out()[self._is_kept.sum() :].tolist()
        gaps = missing_cells(X)[:, self._had_gaps].T
        return with_columns(filled, self._is_kept, zeros, dict(zip(names, gaps, strict=False)))

    @property
    def _is_kept(self) -> BoolArray:
        """Which columns are returned."""
        return np.asarray(~self._is_empty | self.keep_empty_features)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the columns, if they had none when learning.

        Returns
        -------
        array of str
            ``missingindicator_a`` says where cells of ``a`` were missing.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        gaps = names[self._had_gaps] if self.add_indicator else ()
        indicators = [f"missingindicator_{name}" for name in gaps]
        return np.array([*names[self._is_kept], *indicators], object)

    def _filled(self, X: TableLike) -> TableLike:
        model = self.learned_.model_
        if self._mixed is None and not self.sample_posterior:
            return self.learned_.impute(X)
        rng = np.random.default_rng(numpy_seed(self.random_state))
        table = as_table(X, schema=model.schema, unseen="missing")
        if self._mixed is None:
            return filled_like(X, draw_missing(model, table, rng), model.schema)
        found = self._mixed.gaussian.given(np.asarray(table.values))
        filled = found.drawn(rng) if self.sample_posterior else found.rows
        return filled_like(X, filled, model.schema)


def draw_missing(model: Model | TreeMixture, table: Table, rng: np.random.Generator) -> AnyArray:
    """Draw missing cells given their rows, one column after another.

    By the chain rule: every column is drawn given the cells that are known and those that were
    drawn before, so that the draws of a row are from their joint distribution.
    """
    values = table.values.toarray() if table.is_sparse else np.array(table.values)
    missing = table.missing_mask()
    for column in np.flatnonzero(missing.any(axis=0)).tolist():
        rows = np.flatnonzero(missing[:, column])
        values[rows, column] = _draw_column(model, Table(values[rows], table.schema), column, rng)
    return model.impute(Table(values, table.schema))  # labels in place of codes


def _draw_column(
    model: Model | TreeMixture, table: Table, column: int, rng: np.random.Generator
) -> FloatArray:
    """Draw the cells of a column given the other cells of each row."""
    if isinstance(model, MixedTreeModel) and not table.schema.labels[column]:
        neighbor = int(leaf_edges(model.tree)[0][column])
        states = np.zeros(table.n_rows, np.int64)
        if neighbor >= 0:
            states = _draw_states(model.posterior(table, [neighbor])[neighbor], rng)
        return model._emission(column).sample(states, rng)
    posterior = model.posterior(table, [column])
    assert not isinstance(posterior, Normal)  # real columns are drawn together
    return _draw_states(posterior[column], rng)


def _draw_states(probabilities: FloatArray, rng: np.random.Generator) -> AnyArray:
    """Draw a state for each row of probabilities."""
    upper = np.cumsum(probabilities, axis=1)
    drawn = (rng.random((len(upper), 1)) * upper[:, -1:] >= upper).sum(axis=1)
    return np.asarray(np.minimum(drawn, upper.shape[1] - 1))

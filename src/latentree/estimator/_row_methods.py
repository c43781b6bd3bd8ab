"""The methods of a fitted estimator that take rows: transform, score, impute, predict, sample."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latentree._deprecation import deprecated
from latentree.data import (
    Parts,
    Schema,
    Table,
    as_parts,
    as_table,
    cut_table,
    filled_like,
    frame_of,
    is_parted,
)
from latentree.errors import DataWarning
from latentree.estimator._tables import ChecksTables, as_numbers, row_weights
from latentree.inference import (
    RowModel,
    RowResults,
    blocks_of,
    errors_part,
    impute_part,
    infer_part,
    node_number,
    posterior_names,
    predict_part,
    probability_part,
    score_part,
    state_names,
)
from latentree.methods import numpy_seed
from latentree.models import (
    CopulaTreeModel,
    DiscreteTreeModel,
    MixedTreeModel,
    Model,
    TreeMixture,
    TreeModel,
)
from latentree.tree import Tree
from latentree.typing import AnyArray, DataLike, FloatArray, Node, SklearnState, TableLike, Unseen

OUTPUTS = ("auto", "hidden", "hidden+errors", "hidden+observed")
"""What :meth:`LatentTree.transform` can return."""


def _has_hidden_states(estimator: object) -> bool:
    """Whether hidden variables have states; else say what to use."""
    model = getattr(estimator, "model_", None)
    has_states = isinstance(model, DiscreteTreeModel | MixedTreeModel | TreeMixture)
    if has_states and estimator.n_hidden_:  # type: ignore[attr-defined]
        return True
    raise AttributeError(
        "predict_proba is for fitted models whose hidden variables have states: column_proba(X, "
        "name) gives the probabilities of a column's labels, and transform Gaussian variables"
    )


def _has_labels(estimator: object) -> bool:
    """Whether columns or hidden variables have probabilities; else say what to use."""
    model = getattr(estimator, "model_", None)
    if isinstance(model, DiscreteTreeModel | MixedTreeModel | TreeMixture | CopulaTreeModel):
        return True
    raise AttributeError(
        "column_proba is for fitted models of labels: see predict_column and model_.posterior"
    )


class RowMethodsMixin(ChecksTables, TransformerMixin):  # type: ignore[misc]
    """The methods of :class:`latentree.LatentTree` that apply the learned model to rows.

    A transformer itself, because scikit-learn wraps ``transform`` where it is defined.
    """

    model_: Model | TreeMixture
    tree_: Tree
    n_hidden_: int
    output: str
    unseen: Unseen

    def _parts(
        self,
        X: DataLike,
        sample_weight: ArrayLike | None = None,
        may_lack: tuple[str, ...] = (),
    ) -> Parts:
        """Return data of the model's columns in parts: as it comes, or the table that it is."""
        check_is_fitted(self)
        schema = self.model_.schema
        if is_parted(X):
            return as_parts(
                X, schema=schema, weights=sample_weight, unseen=self.unseen, may_lack=may_lack
            )
        self._check(X, reset=False, schema=schema)
        weights = row_weights(sample_weight, X)
        return cut_table(
            as_table(X, schema=schema, weights=weights, unseen=self.unseen, may_lack=may_lack)
        )

    def _blocks(
        self,
        X: DataLike,
        function: Callable[[Table, RowModel], RowResults],
        may_lack: tuple[str, ...] = (),
    ) -> AnyArray:
        """Put together the results of a function of every part of the rows."""
        parts = self._parts(X, may_lack=may_lack)
        return np.concatenate([block for block, _ in blocks_of(parts, function, self.model_)])

    def transform(self, X: DataLike) -> FloatArray:
        """Infer the hidden variables of each row.

        :func:`latentree.inference.write_posteriors` writes what is too much to be returned.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.

        Returns
        -------
        array of shape (n_rows, n_outputs)
            Gaussian hidden variables: the posterior mean of each; with ``output="hidden+errors"``
            their standard errors follow. Hidden variables with states: the probability of each
            state, one column a state. With ``output="hidden+observed"`` the columns of the table
            follow, as numbers and without gaps; see :meth:`get_feature_names_out`. Where nothing is
            hidden a warning says so, and with ``output="auto"`` the columns of the table are
            returned; with "hidden" and "hidden+errors" there are no columns, as scikit-learn's
            selectors of features have it.

        Raises
        ------
        ModelError
            If ``output="hidden+errors"`` and hidden variables have states.
        """
        check_is_fitted(self)
        if not self.n_hidden_ and self.output != "hidden+observed":
            returned = "the columns themselves" if self.output == "auto" else "no column"
            warnings.warn(
                "the columns are explained without hidden variables, so that transform returns "
                f"{returned}: output='hidden+observed' always passes the columns on, and a method "
                "such as lcm always has a hidden variable",
                DataWarning,
                stacklevel=2,
            )
        if self._passes_columns_on():
            return self._blocks(X, _features_part)
        if not self.n_hidden_:
            return np.empty((self._parts(X).n_rows, 0))
        if self.output == "hidden+errors":
            posterior_names(self.model_, errors=True)  # raises if hidden variables have states
            return self._blocks(X, errors_part)
        return self._blocks(X, infer_part)

    def _passes_columns_on(self) -> bool:
        """Whether the columns of the table are among those of :meth:`transform`."""
        return self.output == "hidden+observed" or (self.output == "auto" and not self.n_hidden_)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn's sake.

        Returns
        -------
        array of str
            ``h1``, or ``h1=0``, ``h1=1``, … for hidden variables with states; ``h1 error`` of
            standard errors. Where columns are passed on, their names follow; those of more than two
            labels without an order have one column per label, ``color=red``, ….
        """
        check_is_fitted(self)
        names = posterior_names(self.model_, errors=self.output == "hidden+errors")
        if self._passes_columns_on():
            names += _feature_names(self.model_.schema)
        return np.array(names, object)

    def score_samples(self, X: DataLike) -> FloatArray:
        """Return the log-likelihood of each row.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.

        Returns
        -------
        array of shape (n_rows,)
        """
        return self._blocks(X, score_part)[:, 0]

    def score(self, X: DataLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of the rows.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array, optional
            How much each row counts.

        Returns
        -------
        float
        """
        total, weight = self._total(X, sample_weight)
        return total / weight

    def _total(self, X: DataLike, sample_weight: ArrayLike | None = None) -> tuple[float, float]:
        """Log-likelihood of all rows, and their weight."""
        parts = self._parts(X, sample_weight).counted()
        total, weight = parts.tables.total(_likelihood_and_weight, self.model_)
        return float(total), float(weight)

    def bic(self, X: DataLike) -> float:
        """Return the Bayesian information criterion, −2·LL + κ·log n.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.

        Returns
        -------
        float
            Lower is better, as elsewhere in scikit-learn.

        References
        ----------
        Schwarz, *Estimating the Dimension of a Model*, Annals of Statistics 6, 1978.
        """
        total, weight = self._total(X)
        return float(self.model_.n_parameters * np.log(weight) - 2.0 * total)

    def aic(self, X: DataLike) -> float:
        """Return Akaike's information criterion, −2·LL + 2·κ.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.

        Returns
        -------
        float
            Lower is better.

        References
        ----------
        Akaike, *A New Look at the Statistical Model Identification*, IEEE Transactions on
        Automatic Control 19, 1974.
        """
        total, _ = self._total(X)
        return float(2.0 * self.model_.n_parameters - 2.0 * total)

    def sample(self, n_samples: int = 1, random_state: SklearnState = None) -> TableLike:
        """Draw new rows from the model.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        random_state : int, RandomState or Generator, optional
            Where the randomness comes from.

        Returns
        -------
        table
            Of the kind that was learned from: a frame with the same columns, or an array. Values
            of numbers, labels of categories, the value of constant columns; cells of other columns
            that were set aside are missing.
        """
        drawn = np.asarray(self._model().sample(n_samples, numpy_seed(random_state)))
        return frame_of(self._learned_from, self.model_.schema, drawn)

    def impute(self, X: DataLike) -> TableLike:
        """Fill in missing cells.

        Real cells get their posterior mean, discrete ones their most probable value.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.
            Frames and files may lack columns of the model.

        Returns
        -------
        table
            Of the same kind as ``X``, with its index, columns and types: a frame, or an array.
            Constant columns are filled in too, and columns that a frame lacks follow its own. Of
            files the model's columns, in its order, as an array;
            :func:`latentree.inference.write_imputed` writes a file with all columns.
        """
        check_is_fitted(self)
        filled = self._blocks(X, impute_part, self.model_.schema.names)
        return filled if is_parted(X) else filled_like(X, filled, self.model_.schema)

    @deprecated((1, 0), "predict_column(X, {})", argument="variable")
    def predict(self, X: DataLike, variable: Node | None = None) -> AnyArray:
        """Predict the hidden variables of each row, as mixture models predict classes.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.
        variable : str or int, optional
            Deprecated: :meth:`predict_column` predicts one variable.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_hidden) of several hidden variables
            Most probable states, or means of Gaussian variables. A model without hidden variables
            has all rows in one class, 0.

        Examples
        --------
        >>> import latentree as lt
        >>> truth = lt.simulate.random_discrete_model(lt.simulate.latent_class(6), 2, 0)
        >>> learned = lt.LatentTree("lcm", n_states=2, random_state=0).fit(truth.sample(500, 1))
        >>> learned.predict([[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]).shape
        (2,)
        """
        if variable is not None:
            return self.predict_column(X, variable)
        check_is_fitted(self)
        if not self.n_hidden_:
            return np.zeros(self._parts(X).n_rows, np.int64)
        parts = [partial(predict_part, number=h) for h in self.tree_.hidden.tolist()]
        predicted = self._blocks(X, partial(_side_by_side, parts=parts))
        return predicted[:, 0] if self.n_hidden_ == 1 else predicted

    def predict_column(self, X: DataLike, variable: Node) -> AnyArray:
        """Predict one variable from the other cells of each row.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.
            The column of the variable may be there or not; its cells are not used.
        variable : str or int
            Name or number of the variable, observed or hidden.

        Returns
        -------
        array of shape (n_rows,)
            Most probable labels, or means of numbers; most probable states of a hidden variable,
            or its means in Gaussian models.

        Examples
        --------
        >>> import latentree as lt
        >>> days = ["rain wet", "rain wet", "sun dry", "sun dry", "sun wet"] * 40
        >>> table = lt.as_table([day.split() for day in days], names=["sky", "ground"])
        >>> learned = lt.LatentTree().fit(table)
        >>> learned.predict_column({"sky": ["rain", "sun"]}, "ground").tolist()
        ['wet', 'dry']
        """
        check_is_fitted(self)
        number = node_number(self.tree_, variable)
        part = partial(predict_part, number=number)
        return self._blocks(X, part, self.tree_.names[number : number + 1])[:, 0]

    @available_if(_has_hidden_states)  # type: ignore[untyped-decorator]
    @deprecated((1, 0), "column_proba(X, {})", argument="variable")
    def predict_proba(self, X: DataLike, variable: Node | None = None) -> FloatArray:
        """Predict the probabilities of the hidden states of each row, as mixture models do.

        Only where hidden variables have states.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.
        variable : str or int, optional
            Deprecated: :meth:`column_proba` gives the probabilities of one variable.

        Returns
        -------
        array of shape (n_rows, n_states)
            Probabilities of the states; those of several hidden variables stand side by side. Of a
            mixture of trees, the probability of each tree.
        """
        if variable is not None:
            return self.column_proba(X, variable)  # type: ignore[no-any-return]
        parts = [partial(probability_part, number=h) for h in self.tree_.hidden.tolist()]
        return self._blocks(X, partial(_side_by_side, parts=parts))

    @available_if(_has_labels)  # type: ignore[untyped-decorator]
    def column_proba(self, X: DataLike, variable: Node) -> FloatArray:
        """Predict the probabilities of a variable's values from the other cells of each row.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.
            The column of the variable may be there or not; its cells are not used.
        variable : str or int
            Name or number of the variable, observed or hidden: one with labels or states.

        Returns
        -------
        array of shape (n_rows, n_states)
            Probabilities of its values, in the order of ``model_.schema.labels``, or of its states
            if it is hidden.
        """
        check_is_fitted(self)
        number = node_number(self.tree_, variable)
        state_names(self.model_, number)  # raises for numbers
        part = partial(probability_part, number=number)
        return self._blocks(X, part, self.tree_.names[number : number + 1])

    def _model(self) -> Model | TreeMixture:
        check_is_fitted(self)
        return self.model_


def _side_by_side(
    table: Table, model: RowModel, parts: Sequence[Callable[[Table, RowModel], RowResults]]
) -> RowResults:
    """Return the columns of several functions of a part."""
    found = [part(table, model)[0] for part in parts]
    return np.hstack(found) if found else np.empty((table.n_rows, 0)), 0.0


def _features_part(table: Table, model: RowModel) -> RowResults:
    """Return the hidden variables of each row of a part, and its columns without gaps."""
    filled = as_table(model.impute(table), schema=table.schema)
    columns = as_numbers(filled, drop_first=False)
    hidden = [infer_part(table, model)[0]] if model.tree.n_hidden else []
    return np.hstack([*hidden, columns]).astype(np.float64), 0.0


def _feature_names(schema: Schema) -> list[str]:
    names: list[str] = []
    for name, kind, labels in zip(schema.names, schema.kinds, schema.labels, strict=True):
        many = kind == "category" and len(labels) > 2
        names += [f"{name}={label}" for label in labels] if many else [name]
    return names


def _likelihood_and_weight(table: Table, model: TreeModel) -> FloatArray:
    """Return the log-likelihood of a part, and the weight of its rows."""
    return np.array([model.total_log_likelihood(table), table.total_weight])

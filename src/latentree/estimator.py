"""The scikit-learn estimator: a short line through the stages."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from latentree.data import (
    FrameType,
    Parts,
    Schema,
    Table,
    as_parts,
    as_table,
    column_names,
    cut_table,
    filled_like,
    frame_of,
    frame_type,
    is_parted,
    weighted,
)
from latentree.distances import Sample, Statistics, as_sample
from latentree.errors import DataError, DataWarning, ModelError
from latentree.inference import (
    blocks_of,
    has_normal_hidden,
    impute_part,
    infer_part,
    node_number,
    posterior_names,
    predict_part,
    probability_part,
    score_part,
    state_names,
)
from latentree.methods import (
    AUTO,
    METHODS,
    OPTIONS,
    ProgressText,
    choose_method,
    chosen_options,
    describe_options,
    learn_model,
    learned_support,
)
from latentree.models import (
    CopulaTreeModel,
    DiscreteTreeModel,
    MixedTreeModel,
    TreeMixture,
    TreeModel,
)
from latentree.tree import Tree
from latentree.typing import FloatArray, Node, PathLike

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for a scikit-learn that has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Stand-in for a scikit-learn that has no callbacks."""
        return method


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _typed_callbacks(method: _Method) -> _Method:
    """Return ``with_callbacks(method)`` with the method's own type, for editors and checkers."""
    return cast(_Method, with_callbacks(method))


_LEARNED = ("model_", "report_", "tree_", "n_hidden_", "support_")


OUTPUTS = ("hidden", "hidden+errors", "hidden+observed")
"""What :meth:`LatentTree.transform` can return."""


def _has_states(estimator: Any) -> bool:
    """Whether there are probabilities to predict; else say what to use."""
    model = getattr(estimator, "model_", None)
    if isinstance(model, DiscreteTreeModel | MixedTreeModel | TreeMixture | CopulaTreeModel):
        return True
    raise AttributeError(
        "predict_proba is for fitted models of labels: see predict and model_.posterior"
    )


class LatentTree(CallbackSupportMixin, DensityMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a latent tree model: the hidden variables behind the columns of a table.

    Parameters
    ----------
    method : str
        How the tree is learned: {methods}. "auto" is ``refined`` for small tables and ``clnj`` for
        larger ones; the report says which. See ``docs/which-method.md``.
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed", "copula"}
        How the columns are modeled. "auto" goes by their kinds (see :func:`latentree.as_table`) and
        by ``hidden``.
    kinds : mapping from names to kinds, optional
        What columns hold, where the rule takes them otherwise: ``real``, ``count``, ``ordered``,
        ``category``, or ``ignore``.
    unseen : {"error", "missing"}
        What a label is, in rows after learning, that the model has not seen: an error that names
        it, or a missing cell.
    output : {"hidden", "hidden+errors", "hidden+observed"}
        What :meth:`transform` returns: the hidden variables; these and the standard errors of
        Gaussian ones; or these and the columns themselves, so that a pipeline has features even
        where no variable is hidden.
    {options}
    n_bootstrap : int
        Number of times that the tree is learned again from resampled rows, to say how sure it is
        (``support_``); 0 for none. 100 give shares within 0.05.
    random_state : int, RandomState or Generator, optional
        For random starts and resampled rows.
    verbose : int
        1 or more: progress on standard error.

    Attributes
    ----------
    tree_ : Tree
        The tree that was learned.
    model_ : GaussianTreeModel, DiscreteTreeModel, MixedTreeModel, CopulaTreeModel or TreeMixture
        The tree with its parameters; with ``n_trees`` a mixture of trees.
    report_ : FitReport
        What learning did; a :class:`latentree.search.RefineReport` for ``refined``. Its
        ``columns`` say how every column was taken: name, kind and reason.
    n_hidden_ : int
        Number of hidden variables.
    support_ : Support
        How sure each edge, hidden variable and place is; only with ``n_bootstrap``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, only if they have names.
    statistics_ : Statistics
        Sums over the rows so far, only after :meth:`partial_fit`.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> X = truth.sample(2_000, 1)
    >>> learned = lt.LatentTree(method="rg").fit(X)
    >>> learned.n_hidden_
    2
    >>> learned.transform(X).shape
    (2000, 2)
    """

    def __init__(
        self,
        method: str = AUTO,
        family: str = "auto",
        *,
        kinds: Mapping[Any, str] | None = None,
        unseen: Literal["error", "missing"] = "error",
        output: str = "hidden",
        refit: bool = True,
        hidden: Literal["states", "gaussian"] | None = None,
        marginals: Literal["normal", "ranks"] = "normal",
        n_states: int | Literal["auto"] | None = None,
        n_trees: int | Literal["auto"] | None = None,
        validation_fraction: float | None = None,
        n_hidden: int | None = None,
        start: str | list[str] | None = None,
        criterion: str | float = "bic",
        max_states: int | None = None,
        caution: float = 1.0,
        prior_weight: float = 0.0,
        n_starts: int = 3,
        max_steps: int = 5_000,
        time_limit: float | None = None,
        stepwise: bool = False,
        checkpoint: PathLike | None = None,
        n_bootstrap: int = 0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.family = family
        self.kinds = kinds
        self.unseen = unseen
        self.output = output
        self.refit = refit
        self.hidden = hidden
        self.marginals = marginals
        self.n_states = n_states
        self.n_trees = n_trees
        self.validation_fraction = validation_fraction
        self.n_hidden = n_hidden
        self.start = start
        self.criterion = criterion
        self.max_states = max_states
        self.caution = caution
        self.prior_weight = prior_weight
        self.n_starts = n_starts
        self.max_steps = max_steps
        self.time_limit = time_limit
        self.stepwise = stepwise
        self.checkpoint = checkpoint
        self.n_bootstrap = n_bootstrap
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.non_deterministic = False
        return tags

    # Learning -------------------------------------------------------------------------------

    @_typed_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_valid: Any = None,
        client: Any = None,
    ) -> LatentTree:
        """Learn the tree and its parameters.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            pandas, polars, pyarrow, numpy or sparse 0/1; cells may be missing. Files and folders
            (Parquet, Arrow, text), dask arrays and dataframes are read part by part and need not
            fit into memory; see :func:`latentree.as_parts`.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array, optional
            How much each row counts.
        X_valid : table, optional
            For ``hclt``, ``n_states="auto"`` and ``n_trees``: rows that decide on states, smoothing
            and stopping in place of ``validation_fraction`` of the rows. In the end the model
            learns from them too.
        client : dask.distributed.Client, optional
            The cluster that reads and computes. Without it everything happens in this process.

        Returns
        -------
        LatentTree
            The estimator itself.
        """
        options = self._options()
        self.__dict__.pop("statistics_", None)
        if client is not None or is_parted(X):
            parts = as_parts(X, self.family, weights=sample_weight, client=client, kinds=self.kinds)
            self._note_columns(parts.schema.whole_names)
        else:
            self._check(X, reset=True)
            weights = _weights(sample_weight, X)
            parts = cut_table(as_table(X, self.family, weights=weights, kinds=self.kinds))
            if parts.n_rows < 2:
                raise DataError("there is 1 sample (n_samples=1), but learning needs at least 2")
        return self._learn(as_sample(parts), options, X_valid)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> LatentTree:
        """Add rows to the statistics; :meth:`learn` learns from them.

        Statistics suffice for real columns without missing cells, and for discrete ones as long as
        the distinct rows are few. The first rows must show every label of discrete columns.

        Parameters
        ----------
        X : table
            The rows to add.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array, optional
            How much each row counts.

        Returns
        -------
        LatentTree
            The estimator itself, with ``statistics_`` and no model: one learned before is
            forgotten.
        """
        self._options()
        known: Statistics | None = getattr(self, "statistics_", None)
        weights = _weights(sample_weight, X)
        if known is None:
            self._check(X, reset=True)
            table = as_table(X, self.family, kinds=self.kinds)
        else:
            self._check(X, reset=False, schema=known.schema)
            table = as_table(X, schema=known.schema)
        if weights is not None:
            table = weighted(table, weights, some_count=False)
        for name in _LEARNED:
            self.__dict__.pop(name, None)
        added = Statistics.of(table, like=known)
        self.statistics_ = added if known is None else known + added
        return self

    def learn(self) -> LatentTree:
        """Learn the tree and its parameters from the rows that :meth:`partial_fit` has added.

        Returns
        -------
        LatentTree
            The estimator itself.
        """
        if "statistics_" not in self.__dict__:
            raise NotFittedError("learn() needs rows: call partial_fit first, or use fit")
        return self._learn(as_sample(self.statistics_), self._options())

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def _learn(self, sample: Sample, options: dict[str, Any], X_valid: Any = None) -> LatentTree:
        self.__dict__.pop("support_", None)
        generator = _generator(self.random_state)
        method = choose_method(self.method, sample, options)
        if self.n_bootstrap and method == "hclt":  # support is of one tree
            options.setdefault("n_trees", 1)
        fitted = learn_model(
            sample,
            self.method,
            self.family,
            random_state=generator,
            progress=self._reporter(method),
            X_valid=X_valid,
            **options,
        )
        self.model_, self.report_ = fitted
        self.tree_: Tree = self.model_.tree
        self.n_hidden_ = self.tree_.n_hidden
        if self.n_bootstrap and isinstance(self.model_, TreeMixture):
            raise ModelError("support is of one tree: leave out n_bootstrap or n_trees")
        if self.n_bootstrap:
            self.support_ = learned_support(
                self.model_,
                sample,
                method,
                self.n_bootstrap,
                options,
                random_state=generator,
            )
        return self

    def _options(self) -> dict[str, Any]:
        """Options that were set; raises an error for one that the method does not take."""
        if self.output not in OUTPUTS:
            raise ModelError(f"output is {self.output!r}, but must be one of {', '.join(OUTPUTS)}")
        return chosen_options(self.method, {name: getattr(self, name) for name in OPTIONS})

    def _note_columns(self, names: tuple[str, ...]) -> None:
        """Remember the columns as scikit-learn does."""
        self.n_features_in_ = len(names)
        self._learned_from: FrameType | None = None
        self.__dict__.pop("feature_names_in_", None)
        if names != tuple(f"x{j}" for j in range(len(names))):
            self.feature_names_in_ = np.array(names, object)

    def _reporter(self, method: str) -> Callable[[int, float], None] | None:
        """Return what EM calls at each step: scikit-learn's callbacks, or a line if verbose."""
        context = None
        if getattr(self, "_skl_callbacks", None):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self)
        if context is None and not self.verbose:
            return None

        searching, text = (
            method == "refined",
            ProgressText(method, self.n_states, self.n_trees),
        )

        def report(steps: int, log_likelihood: float) -> None:
            if context is not None:
                step = context.subcontext(task_name="step")
                step.call_on_fit_task_begin(estimator=self)
                step.call_on_fit_task_end(
                    estimator=self, metadata={"log_likelihood": log_likelihood}
                )
            if self.verbose and (searching or steps % 10 == 0):
                sys.stderr.write(f"latentree: {text(steps, log_likelihood)}\n")

        return report

    # Using it -------------------------------------------------------------------------------

    def _check(self, X: Any, reset: bool, schema: Schema | None = None) -> None:
        """Let scikit-learn check shapes and names; columns are looked at by the table itself."""
        if reset:
            self._learned_from = frame_type(X)
        elif schema is not None and _fits(X, schema):
            return
        if isinstance(X, dict):  # which scikit-learn does not know
            if reset:
                self._note_columns(tuple(map(str, X)))
        elif isinstance(X, np.ndarray | list | tuple) and not isinstance(X, np.ma.MaskedArray):
            # What it returns is not used: words and NaN would have become words alone. The table
            # refuses infinite values by the name of their column.
            validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)

    def _parts(
        self,
        X: Any,
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
        names = column_names(X)
        if names is None or not set(may_lack) - set(names):
            self._check(X, reset=False, schema=schema)
        weights = _weights(sample_weight, X)
        return cut_table(
            as_table(X, schema=schema, weights=weights, unseen=self.unseen, may_lack=may_lack)
        )

    def _blocks(
        self, X: Any, function: Callable[..., Any], may_lack: tuple[str, ...] = ()
    ) -> NDArray[Any]:
        """Put together what a function says of every part of the rows."""
        parts = self._parts(X, may_lack=may_lack)
        return np.concatenate([block for block, _ in blocks_of(parts, function, self.model_)])

    def transform(self, X: Any) -> FloatArray:
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
            hidden there are no columns, and a warning says so, as scikit-learn's selectors of
            features do.

        Raises
        ------
        ModelError
            If ``output="hidden+errors"`` and hidden variables have states.
        """
        check_is_fitted(self)
        if not self.n_hidden_ and self.output != "hidden+observed":
            warnings.warn(
                "the columns are explained without hidden variables, so that transform returns no "
                "column: use output='hidden+observed' to pass the columns on, or a method that "
                "always has a hidden variable, such as lcm",
                DataWarning,
                stacklevel=2,
            )
            return np.empty((self._parts(X).n_rows, 0))
        if self.output == "hidden+errors":
            if not has_normal_hidden(self.model_):
                raise ModelError(
                    'output="hidden+errors" is for Gaussian hidden variables, but these have states'
                )
            return self._blocks(X, _errors_part)
        return self._blocks(X, infer_part if self.output == "hidden" else _features_part)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn's sake.

        Returns
        -------
        array of str
            ``h1``, or ``h1=0``, ``h1=1``, … for hidden variables with states; ``h1 error`` of
            standard errors. With
            ``output="hidden+observed"`` the names of columns follow; those of more than two labels
            without an order have one column a label, ``color=red``, ….
        """
        check_is_fitted(self)
        names = posterior_names(self.model_)
        if self.output == "hidden+errors":
            names += [f"{name} error" for name in names]
        elif self.output != "hidden":
            names += _feature_names(self.model_.schema)
        return np.array(names, object)

    def score_samples(self, X: Any) -> FloatArray:
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

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
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

    def _total(self, X: Any, sample_weight: ArrayLike | None = None) -> tuple[float, float]:
        """Log-likelihood of all rows, and their weight."""
        parts = self._parts(X, sample_weight)
        total, weight = parts.tables.total(_likelihood_and_weight, self.model_)
        return float(total), float(weight)

    def bic(self, X: Any) -> float:
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

    def aic(self, X: Any) -> float:
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

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
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
        drawn = np.asarray(self._model().sample(n_samples, _generator(random_state)))
        return frame_of(self._learned_from, self.model_.schema, drawn)

    def impute(self, X: Any) -> Any:
        """Fill in missing cells.

        Real cells get their posterior mean, discrete ones their most probable value.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.

        Returns
        -------
        table
            Of the same kind as ``X``, with its index, columns and types: a frame, or an array.
            Constant columns are filled in too.
        """
        filled = self._blocks(X, impute_part)
        return filled if is_parted(X) else filled_like(X, filled, self.model_.schema)

    def predict(self, X: Any, variable: Node | None = None) -> NDArray[Any]:
        """Predict one variable from the other cells of each row.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            As in :meth:`fit`; columns are matched to those of the model by name if both have names.
            The column of the variable may be there or not; its cells are not used.
        variable : str or int, optional
            Name or number of the variable, observed or hidden. When left out, all hidden
            variables, such as the classes of a latent class model.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_hidden) without a variable
            Most probable labels, or means of numbers; most probable states of hidden variables, or
            their means in Gaussian models.

        Examples
        --------
        >>> import latentree as lt
        >>> days = ["rain wet", "rain wet", "sun dry", "sun dry", "sun wet"] * 40
        >>> table = lt.as_table([day.split() for day in days], names=["sky", "ground"])
        >>> learned = lt.LatentTree().fit(table)
        >>> learned.predict({"sky": ["rain", "sun"]}, "ground").tolist()
        ['wet', 'dry']
        """
        check_is_fitted(self)
        if variable is not None:
            number = node_number(self.tree_, variable)
            part = partial(predict_part, number=number)
            return self._blocks(X, part, self.tree_.names[number : number + 1])[:, 0]
        parts = [partial(predict_part, number=h) for h in self.tree_.hidden.tolist()]
        return self._blocks(X, partial(_side_by_side, parts=parts))

    @available_if(_has_states)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, variable: Node) -> FloatArray:
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

    def _model(self) -> Any:
        check_is_fitted(self)
        return self.model_

    # Showing --------------------------------------------------------------------------------

    def _html_repr(self) -> str:
        plain = str(super()._html_repr())
        if "model_" not in self.__dict__:
            return plain
        # Pictures are a layer above: looked up when a notebook asks, not imported.
        notebook = importlib.import_module("latentree.plot._notebook")
        return str(notebook.fitted_html(self)) + plain


assert LatentTree.__doc__ is not None
LatentTree.__doc__ = LatentTree.__doc__.replace("{options}", describe_options()).replace(
    "{methods}", ", ".join(f"``{name}``" for name in METHODS)
)


def _side_by_side(table: Table, model: Any, parts: list[Any]) -> tuple[NDArray[Any], float]:
    """Columns of several functions of a part."""
    found = [part(table, model)[0] for part in parts]
    return np.hstack(found) if found else np.empty((table.n_rows, 0)), 0.0


def _errors_part(table: Table, model: Any) -> tuple[FloatArray, float]:
    """Means of hidden variables of each row of a part, and their standard errors."""
    mean, variance = model.posterior(table)
    return np.hstack([mean, np.sqrt(np.maximum(variance, 0.0))]), 0.0


def _features_part(table: Table, model: Any) -> tuple[FloatArray, float]:
    """Hidden variables of each row of a part, and its columns as numbers without gaps."""
    schema = table.schema
    filled = as_table(model.impute(table), schema=schema)
    columns = []
    for j, (kind, labels) in enumerate(zip(schema.kinds, schema.labels, strict=True)):
        values = filled.column(j).astype(np.float64)
        one_hot = kind == "category" and len(labels) > 2
        columns.append(values[:, None] == np.arange(len(labels)) if one_hot else values[:, None])
    hidden = [infer_part(table, model)[0]] if model.tree.n_hidden else []
    return np.hstack([*hidden, *columns]).astype(np.float64), 0.0


def _feature_names(schema: Schema) -> list[str]:
    names: list[str] = []
    for name, kind, labels in zip(schema.names, schema.kinds, schema.labels, strict=True):
        many = kind == "category" and len(labels) > 2
        names += [f"{name}={label}" for label in labels] if many else [name]
    return names


def _likelihood_and_weight(table: Table, model: TreeModel) -> FloatArray:
    return np.array([model.total_log_likelihood(table), table.total_weight])


def _weights(sample_weight: ArrayLike | None, X: Any) -> Any:
    """Return weights as an array; one number counts for every row."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    if isinstance(X, dict):
        X = next(iter(X.values()), ())
    return np.full(len(X), weights) if weights.ndim == 0 else weights


def _generator(random_state: Any) -> Any:
    """Turn scikit-learn's RandomState into what numpy's Generator takes."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state


def _fits(X: Any, schema: Schema) -> bool:
    """Whether data has the columns of a schema, with or without those that were set aside."""
    names = column_names(X)
    if names is None:
        width = X.shape[1] if getattr(X, "ndim", 0) == 2 else -1
        return bool(schema.aside) and width == schema.n_columns
    return bool(schema.aside) and set(schema.names) <= set(names) <= set(schema.whole_names)

"""The scikit-learn estimator: a short line through the stages."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from latentree.data import Parts, Table, as_parts, as_table, cut_table, is_parted
from latentree.distances import Statistics, gather
from latentree.em import Budget, Fitted, fit_parameters
from latentree.errors import DataError, ModelError
from latentree.inference import (
    blocks_of,
    impute_part,
    infer_part,
    node_number,
    posterior_names,
    score_part,
)
from latentree.methods import BY_SCORES, METHODS, learn_model
from latentree.models import DiscreteTreeModel
from latentree.search import learn_tree
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


_LEARNED = ("model_", "report_", "tree_", "n_hidden_")

_PREDICTED_CELLS = 1 << 24  # that are copied, and made dense, at a time


def _is_discrete(estimator: Any) -> bool:
    """Whether there are probabilities to predict; else say what to use."""
    if isinstance(getattr(estimator, "model_", None), DiscreteTreeModel):
        return True
    raise AttributeError("predict_proba is for fitted discrete models: see model_.posterior")


class LatentTree(CallbackSupportMixin, DensityMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a latent tree model: the hidden variables behind the columns of a table.

    Parameters
    ----------
    method : str
        How the tree is learned: ``clrg`` (the default), ``clnj``, ``nj``, ``rg``, ``cl_blind``,
        ``chow_liu`` from distances between the columns; ``reg_clrg``, ``reg_clnj``, ``lcm``,
        ``bin``, ``refined`` by scoring models.
    family : {"auto", "gaussian", "discrete", "symmetric"}
        What the columns are. "auto" goes by their types.
    refit : bool
        Whether parameters are fitted by maximum likelihood. If not, they follow from the
        distances (Gaussian and symmetric families).
    n_states : int, optional
        States of hidden variables in discrete models; for ``lcm`` the number of classes.
    n_hidden : int, optional
        Most hidden variables, for ``reg_clrg`` and ``reg_clnj``; for ``refined`` their number.
    start : str or list of str, optional
        For ``refined``: the method, or several, whose tree is refined. By default the one of
        ``nj``, ``clnj`` and ``clrg`` with the highest extended BIC; of real columns without
        missing cells all three are refined.
    criterion : {"bic", "ebic", "aic", "cv"} or float
        For ``refined``: the score that is maximised, see :func:`latentree.search.refine`.
    max_states : int, optional
        For ``refined``: most states of a hidden variable; by default free.
    caution : float
        For ``refined``: how much more than chance a subtree's new place must gain; more keeps more
        of the start, with 0 the score alone decides.
    prior_weight : float
        Weight of a uniform prior on discrete tables, as a number of rows.
    n_starts : int
        Starts of EM, the first from the distances and the others random.
    max_steps : int
        Most steps of EM.
    time_limit : float, optional
        Most seconds for EM, and for the search of ``refined``.
    stepwise : bool
        Whether EM begins with stepwise passes over parts of the rows: quicker for millions of them.
    checkpoint : path, optional
        A file that keeps EM while it is under way, so that a fit that was broken off goes on from
        it; for methods that need only distances.
    random_state : int, RandomState or Generator, optional
    verbose : int
        1 or more: progress on standard error.

    Attributes
    ----------
    tree_ : Tree
    model_ : GaussianTreeModel or DiscreteTreeModel
    report_ : FitReport
    n_hidden_ : int
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if the columns have names.
    statistics_ : Statistics
        Only after :meth:`partial_fit`.

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
        method: str = "clrg",
        family: str = "auto",
        *,
        refit: bool = True,
        n_states: int | None = None,
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
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.family = family
        self.refit = refit
        self.n_states = n_states
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

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
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
        sample_weight : array, optional
            How much each row counts.
        client : dask.distributed.Client, optional
            The cluster that reads and computes. Without it everything happens in this process.
        """
        self._check_method()
        self.__dict__.pop("statistics_", None)
        data: Table | Parts
        if client is not None or is_parted(X):
            data = as_parts(X, self.family, weights=sample_weight, client=client)
            self._note_columns(data)
            gather(data).require_learnable()
        else:
            X = self._checked(X, reset=True)
            data = as_table(X, self.family, weights=_weights(sample_weight, X))
            if data.n_rows < 2:
                raise DataError("there is 1 sample (n_samples=1), but learning needs at least 2")
            data.require_learnable()
        self._keep(self._learn(data, self._reporter()))
        return self

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> LatentTree:
        """Add rows to the statistics; the tree and the model are learned when they are asked for.

        Statistics suffice for real columns without missing cells, and for discrete ones as long as
        the distinct rows are few. The first rows must show every label of discrete columns.

        Parameters
        ----------
        X : table
        y : ignored
        sample_weight : array, optional
            How much each row counts.
        """
        self._check_method()
        known: Statistics | None = getattr(self, "statistics_", None)
        X = self._checked(X, reset=known is None)
        table = as_table(
            X,
            self.family if known is None else "auto",
            weights=_weights(sample_weight, X),
            schema=None if known is None else known.schema,
        )
        for name in _LEARNED:
            self.__dict__.pop(name, None)
        added = Statistics.of(table, like=known)
        self.statistics_ = added if known is None else known + added
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in _LEARNED or "statistics_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        statistics: Statistics = self.statistics_
        statistics.require_learnable()
        table = statistics.equivalent_table()
        if table is not None:
            self._keep(self._learn(table, self._reporter()))
            return self.__dict__[name]
        if name == "tree_" and self.method not in BY_SCORES:
            return learn_tree(statistics, self.method)
        raise ModelError(
            "statistics do not suffice for parameters where cells are missing or the distinct rows "
            "are many: fit the data as a whole, for instance from a file"
        )

    def _check_method(self) -> None:
        if self.method not in METHODS:
            raise ModelError(f"method is {self.method!r}, but must be one of {', '.join(METHODS)}")

    def _note_columns(self, data: Parts) -> None:
        """Remember the columns as scikit-learn does."""
        self.n_features_in_ = data.n_columns
        self.__dict__.pop("feature_names_in_", None)
        if data.names != tuple(f"x{j}" for j in range(data.n_columns)):
            self.feature_names_in_ = np.array(data.names, object)

    def _keep(self, fitted: Fitted) -> None:
        self.model_, self.report_ = fitted
        self.tree_: Tree = self.model_.tree
        self.n_hidden_ = self.tree_.n_hidden

    def _learn(self, data: Table | Parts, progress: Callable[[int, float], None] | None) -> Fitted:
        if not self.refit and self.method not in BY_SCORES:
            return fit_parameters(learn_tree(data, self.method), data, method="distances")
        return learn_model(data, self.method, progress=progress, **self._options())

    def _options(self) -> dict[str, Any]:
        limit = np.inf if self.time_limit is None else self.time_limit
        options: dict[str, Any] = {
            "budget": Budget(max_steps=self.max_steps, time_limit=limit),
            "random_state": _generator(self.random_state),
            "stepwise": self.stepwise,
            "checkpoint": self.checkpoint,
        }
        if self.method == "lcm":
            options["n_states"] = self.n_states
        elif self.method in ("reg_clrg", "reg_clnj"):
            options["n_hidden"] = self.n_hidden
        elif self.method == "refined":
            options |= {
                "n_hidden": self.n_hidden,
                "start": self.start,
                "score": self.criterion,
                "max_states": self.max_states,
                "caution": self.caution,
                "prior_weight": self.prior_weight,
                "time_limit": limit,
            }
        elif self.method not in BY_SCORES:
            options["n_states"] = self.n_states
            options["n_starts"] = self.n_starts
            options["prior_weight"] = self.prior_weight
        return options

    def _reporter(self) -> Callable[[int, float], None] | None:
        """Return what EM calls at each step: scikit-learn's callbacks, or a line if verbose."""
        context = None
        if getattr(self, "_skl_callbacks", None):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self)
        if context is None and not self.verbose:
            return None

        searching = self.method == "refined"
        unit, value = ("change", "score") if searching else ("step", "log-likelihood")

        def report(steps: int, log_likelihood: float) -> None:
            if context is not None:
                step = context.subcontext(task_name="step")
                step.call_on_fit_task_begin(estimator=self)
                step.call_on_fit_task_end(
                    estimator=self, metadata={"log_likelihood": log_likelihood}
                )
            if self.verbose and (searching or steps % 10 == 0):
                message = f"latentree: {unit} {steps}, {value} {log_likelihood:,.2f}"
                sys.stderr.write(message + "\n")

        return report

    # Using it -------------------------------------------------------------------------------

    def _checked(self, X: Any, reset: bool) -> Any:
        """Let scikit-learn check shapes and names; columns are looked at by the table itself."""
        if isinstance(X, np.ndarray | list):
            return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _table(self, X: Any, sample_weight: ArrayLike | None = None) -> Table:
        check_is_fitted(self)
        if is_parted(X):
            return self._parts(X, sample_weight).to_table()
        X = self._checked(X, reset=False)
        return as_table(X, schema=self.model_.schema, weights=_weights(sample_weight, X))

    def _parts(self, X: Any, sample_weight: ArrayLike | None = None) -> Parts:
        """Return data in parts: as it comes, or the table that it is."""
        check_is_fitted(self)
        if is_parted(X):
            return as_parts(X, schema=self.model_.schema, weights=sample_weight)
        return cut_table(self._table(X, sample_weight))

    def _blocks(self, X: Any, function: Callable[..., Any]) -> NDArray[Any]:
        """Put together what a function says of every part of the rows."""
        parts = self._parts(X)
        return np.concatenate([block for block, _ in blocks_of(parts, function, self.model_)])

    def transform(self, X: Any) -> FloatArray:
        """Infer the hidden variables of each row.

        Gaussian: the posterior mean of each hidden variable. Discrete: the probability of each of
        its states, one column a state. ``files.write_posteriors`` writes what is too much to be
        returned.
        """
        return self._blocks(X, infer_part)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of :meth:`transform`: ``h1`` or ``h1=0``, ``h1=1``."""
        check_is_fitted(self)
        return np.array(posterior_names(self.model_), object)

    def score_samples(self, X: Any) -> FloatArray:
        """Log-likelihood of each row."""
        return self._blocks(X, score_part)[:, 0]

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of the rows."""
        total, weight = self._total(X, sample_weight)
        return total / weight

    def _total(self, X: Any, sample_weight: ArrayLike | None = None) -> tuple[float, float]:
        """Log-likelihood of all rows, and their weight."""
        parts = self._parts(X, sample_weight)
        total, weight = parts.tables.total(_likelihood_and_weight, self.model_)
        return float(total), float(weight)

    def bic(self, X: Any) -> float:
        """Return −2·LL + κ·log n: lower is better, as elsewhere in scikit-learn."""
        total, weight = self._total(X)
        return float(self.model_.n_parameters * np.log(weight) - 2.0 * total)

    def aic(self, X: Any) -> float:
        """Return −2·LL + 2·κ: lower is better."""
        total, _ = self._total(X)
        return float(2.0 * self.model_.n_parameters - 2.0 * total)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw new rows."""
        return np.asarray(self._model().sample(n_samples, _generator(random_state)))

    def impute(self, X: Any) -> Any:
        """Fill in missing cells, and return the same kind of table.

        Real cells get their posterior mean, discrete ones their most probable value.
        """
        filled = self._blocks(X, impute_part)
        return filled if is_parted(X) else _like(X, filled, self.model_.schema.names)

    @available_if(_is_discrete)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, variable: Node) -> FloatArray:
        """Probabilities of one discrete variable's values, given the other cells of each row.

        Columns are in the order of ``model_.schema.labels``, or of the states if it is hidden.
        """
        table = self._table(X)
        number = node_number(self.tree_, variable)
        if number >= self.tree_.n_observed:
            return np.asarray(self.model_.posterior(table, [number])[number])
        step = max(1, _PREDICTED_CELLS // table.n_columns)
        parts = [
            self._predicted(table.rows(i, i + step), number) for i in range(0, table.n_rows, step)
        ]
        return np.concatenate(parts)

    def _predicted(self, table: Table, number: int) -> FloatArray:
        """Probabilities of an observed variable as if its cells were missing."""
        values = table.values.toarray() if table.is_sparse else np.array(table.values)
        values[:, number] = -1
        return np.asarray(self.model_.posterior(Table(values, table.schema), [number])[number])

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


def _likelihood_and_weight(table: Table, model: Any) -> FloatArray:
    return np.array([model.total_log_likelihood(table), table.total_weight])


def _weights(sample_weight: ArrayLike | None, X: Any) -> Any:
    """Return weights as an array; one number counts for every row."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    return np.full(len(X), weights) if weights.ndim == 0 else weights


def _generator(random_state: Any) -> Any:
    """Turn scikit-learn's RandomState into what numpy's Generator takes."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state


def _like(X: Any, values: NDArray[Any], names: tuple[str, ...]) -> Any:
    """Return values as the kind of table that X is: a frame, or an array."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return values
    columns = {name: values[:, place] for place, name in enumerate(names)}
    ordered = {name: columns[name].tolist() for name in frame.columns}
    return nw.from_dict(ordered, backend=nw.get_native_namespace(frame)).to_native()

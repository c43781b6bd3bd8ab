"""``LatentTree``, the scikit-learn estimator."""

from __future__ import annotations

import inspect
import sys
import textwrap
import warnings
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin

from latentree._display import displayed
from latentree.data import FAMILIES, as_parts, as_table, cut_table, is_parted
from latentree.distances import Sample, as_sample
from latentree.errors import DataError, DataWarning, ModelError
from latentree.estimator._callbacks import CallbackSupportMixin, typed_callbacks
from latentree.estimator._row_methods import (
    OUTPUTS,
    RowMethodsMixin,
)
from latentree.estimator._tables import row_weights
from latentree.methods import (
    AUTO,
    METHODS,
    OPTIONS,
    OptionValues,
    ProgressText,
    choose_method,
    chosen_options,
    describe_options,
    learn_model,
    learned_support,
    numpy_seed,
)
from latentree.models import TreeMixture
from latentree.structure import APART
from latentree.typing import (
    DaskClient,
    DataLike,
    KindsByName,
    Progress,
    SklearnState,
    TableLike,
    Unseen,
)


class LatentTree(RowMethodsMixin, CallbackSupportMixin, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a latent tree model: the hidden variables behind the columns of a table.

    Parameters
    ----------
    method : str
        How the tree is learned: {methods}. "auto" is ``refined`` for small tables and ``clnj`` for
        larger ones; the report says which. See ``docs/howto/choose-a-method.md``.
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed"}
        How the columns are modeled. "auto" goes by their kinds (see :func:`latentree.as_table`) and
        by ``hidden``.
    kinds : mapping from names to kinds, or str, optional
        What columns hold, where the rule takes them otherwise: ``real``, ``count``, ``ordered``,
        ``category``, or ``ignore``. Names may be patterns; one kind stands for all columns.
    unseen : {"error", "missing"}
        What a label is, in rows after learning, that the model has not seen: an error that names
        it, or a missing cell.
    output : {"auto", "hidden", "hidden+errors", "hidden+observed"}
        What :meth:`transform` returns: the hidden variables; these and the standard errors of
        Gaussian ones; or these and the columns themselves. "auto" is the hidden variables, and
        where no variable is hidden the columns, so that a pipeline has features in every fold.
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
        kinds: KindsByName | None = None,
        unseen: Unseen = "error",
        output: str = "auto",
        hidden: Literal["states", "gaussian", "ranks", "normal"] | None = None,
        n_states: int | Literal["auto"] | None = None,
        n_trees: int | Literal["auto"] | None = None,
        n_hidden: int | None = None,
        start: str | list[str] | None = None,
        criterion: str | float = "bic",
        max_states: int | None = None,
        prior_weight: float = 0.0,
        max_steps: int = 5_000,
        time_limit: float | None = None,
        n_bootstrap: int = 0,
        random_state: SklearnState = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.family = family
        self.kinds = kinds
        self.unseen = unseen
        self.output = output
        self.hidden = hidden
        self.n_states = n_states
        self.n_trees = n_trees
        self.n_hidden = n_hidden
        self.start = start
        self.criterion = criterion
        self.max_states = max_states
        self.prior_weight = prior_weight
        self.max_steps = max_steps
        self.time_limit = time_limit
        self.n_bootstrap = n_bootstrap
        self.random_state = random_state
        self.verbose = verbose

    # Learning -------------------------------------------------------------------------------

    @typed_callbacks
    def fit(
        self,
        X: DataLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_valid: TableLike = None,
        client: DaskClient = None,
    ) -> LatentTree:
        """Learn the tree and its parameters.

        Parameters
        ----------
        X : table, path, dask collection or Parts
            pandas, polars, pyarrow, numpy or scipy.sparse; cells may be missing. Files and folders
            (Parquet, Arrow, text), dask arrays and dataframes are read part by part and need not
            fit into memory; see :func:`latentree.as_parts`.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array, optional
            How much each row counts. Rows of weight 0 show which kinds and labels columns have;
            they change nothing else.
        X_valid : table, optional
            For ``hclt``, ``n_states="auto"`` and ``n_trees``: rows that decide on states, smoothing
            and stopping in place of a share of the rows. In the end the model learns from them
            too.
        client : dask.distributed.Client, optional
            The cluster that reads and computes. Without it everything happens in this process.

        Returns
        -------
        LatentTree
            The estimator itself.
        """
        options = self._options()
        if client is not None or is_parted(X):
            parts = as_parts(X, self.family, weights=sample_weight, client=client, kinds=self.kinds)
            self._note_columns(parts.schema.whole_names)
        else:
            self._check(X, reset=True)
            weights = row_weights(sample_weight, X)
            parts = cut_table(as_table(X, self.family, weights=weights, kinds=self.kinds))
            if parts.n_rows < 2:
                raise DataError("there is 1 sample (n_samples=1), but learning needs at least 2")
        return self._learn(as_sample(parts), options, X_valid)

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def _learn(
        self, sample: Sample, options: OptionValues, X_valid: TableLike = None
    ) -> LatentTree:
        self.__dict__.pop("support_", None)
        if not isinstance(self.n_bootstrap, int | np.integer) or self.n_bootstrap < 0:
            raise ModelError(f"n_bootstrap is {self.n_bootstrap!r}, but must be 0 or more trees")
        generator = numpy_seed(self.random_state)
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
        for note in self.report_.notes:
            if note.startswith(APART):
                warnings.warn(note, DataWarning, stacklevel=3)
        self.tree_ = self.model_.tree
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
                progress=_tell if self.verbose else None,
            )
        return self

    def _options(self) -> OptionValues:
        """Options that were set; raises an error for one that the method does not take."""
        for name in ("family", "output", "unseen"):
            if not isinstance(getattr(self, name), str):
                raise ModelError(f"{name} is {getattr(self, name)!r}, but must be a text")
        if self.family == "copula":
            raise ModelError(
                'family is "copula", but Gaussian variables behind columns are asked for by '
                'hidden="gaussian", or hidden="ranks" for scales from ranks'
            )
        families = tuple(name for name in (AUTO, *FAMILIES) if name != "copula")
        if self.family not in families:
            raise ModelError(f"family is {self.family!r}, but must be one of {', '.join(families)}")
        if self.output not in OUTPUTS:
            raise ModelError(f"output is {self.output!r}, but must be one of {', '.join(OUTPUTS)}")
        if self.unseen not in ("error", "missing"):
            raise ModelError(f"unseen is {self.unseen!r}, but must be 'error' or 'missing'")
        return chosen_options(self.method, {name: getattr(self, name) for name in OPTIONS})

    def _reporter(self, method: str) -> Progress | None:
        """Return what EM calls at each step: scikit-learn's callbacks, or a line if verbose."""
        context = None
        if getattr(self, "_skl_callbacks", None):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self)
        if context is None and not self.verbose:
            return None

        is_search = method == "refined"  # its steps are few
        text = ProgressText(method, self.n_states, self.n_trees, self.criterion)

        def report(steps: int, log_likelihood: float) -> None:
            if context is not None:
                step = context.subcontext(task_name="step")
                step.call_on_fit_task_begin(estimator=self)
                step.call_on_fit_task_end(
                    estimator=self, metadata={"log_likelihood": log_likelihood}
                )
            if self.verbose and (is_search or steps % 10 == 0):
                sys.stderr.write(f"latentree: {text(steps, log_likelihood)}\n")

        return report

    # Showing --------------------------------------------------------------------------------

    def _html_repr(self) -> str:
        plain = str(super()._html_repr())
        if "model_" not in self.__dict__:
            return plain
        return str(displayed("estimator", self)) + plain


def _tell(done: int, total: int, message: str) -> None:
    """Write a line for every tenth of the replicates."""
    if done % max(1, total // 10) == 0:
        sys.stderr.write(f"latentree: {message}, {done} of {total}\n")


# From Python 3.13 on, docstrings have no indentation.
LatentTree.__doc__ = (
    inspect.cleandoc(LatentTree.__doc__ or "")
    .replace("{options}", textwrap.dedent(describe_options()))
    .replace("{methods}", ", ".join(f"``{name}``" for name in METHODS))
)

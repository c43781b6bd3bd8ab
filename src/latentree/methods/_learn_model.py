"""From data to a model, by any method and for any kind of data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latentree.errors import ModelError
from latentree.methods._families import (
    HeldOutRows,
    Task,
    fit_tree,
    is_decided_by_held_out,
    learn_one_tree,
    refuse_for_family,
    refuse_impossible,
)
from latentree.methods._mixtures import is_committee, learn_trees
from latentree.methods._registry import (
    AUTO,
    CHOSEN,
    METHODS,
    OF_SEARCH,
    OPTIONS,
    Method,
    OptionValues,
    choose_method,
    chosen_options,
)

if TYPE_CHECKING:  # the help of the command line loads nothing heavy
    from numpy.typing import ArrayLike

    from latentree.distances import Sample
    from latentree.em import Budget, Fitted
    from latentree.models import TreeModel
    from latentree.support import Support
    from latentree.typing import DataLike, Progress, RandomState, SklearnState, TableLike


def learn_model(
    X: DataLike,
    method: str = AUTO,
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    progress: Progress | None = None,
    X_valid: TableLike = None,
    **options: Any,
) -> Fitted:
    """Learn a tree by the method of that name, and its parameters by maximum likelihood.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    method : str
        One of ``METHODS``; "auto" leaves it to :func:`choose_method`.
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed", "copula"}
        How the columns are modeled; "auto" goes by their kinds and by ``hidden``.
    weights : array, optional
        How much each row counts.
    budget : Budget, optional
        When EM stops, in place of ``max_steps`` and ``time_limit``.
    random_state : int or Generator, optional
        For random starts.
    progress : callable, optional
        Called with the number of steps so far and the log-likelihood.
    X_valid : table, optional
        Rows that decide on states, smoothing and stopping, for hclt and for ``n_states="auto"``;
        by default ``validation_fraction`` of the rows.
    **options
        Options of the method, see ``OPTIONS``; one that it does not take is refused.

    Returns
    -------
    Fitted
        ``model, report``.

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> learned, report = learn_model(model.sample(2_000, 1), "rg")
    >>> learned
    GaussianTreeModel(Tree(8 observed, 2 hidden, 9 edges))
    """
    from latentree._kernels import compiling
    from latentree.distances import as_sample
    from latentree.em import Budget, Fitted
    from latentree.models import with_fitted_lengths, with_schema

    clock, compiled = time.perf_counter(), compiling.seconds()
    chosen = chosen_options(method, options)
    sample = as_sample(X, family, weights)
    entry = METHODS[choose_method(method, sample, chosen)]
    marginals = chosen.pop("marginals", OPTIONS["marginals"].default)
    sample = _with_hidden(sample, chosen.pop("hidden", None), marginals)
    steps = chosen.pop("max_steps", OPTIONS["max_steps"].default)
    limit = chosen.get("time_limit", math.inf)
    fitting = {
        "budget": budget or Budget(max_steps=steps, time_limit=limit),
        "random_state": random_state,
        "progress": progress,
    }
    if sample.family == "copula":
        fitting["marginals"] = marginals
    if entry.name != "refined":  # whose search has a limit of its own
        chosen.pop("time_limit", None)
    held_out = _held_out_rows(entry, sample, chosen, X_valid)
    model, report = _learn(Task(entry, sample, chosen, fitting, held_out))
    model = with_fitted_lengths(with_schema(model, sample.schema))
    report = replace(report, columns=sample.schema.columns)
    if method == AUTO:
        report = replace(report, notes=(f"{CHOSEN}{entry.name}", *report.notes))
    seconds = time.perf_counter() - clock - (compiling.seconds() - compiled)
    return Fitted(model, report.timed(seconds))


def _with_hidden(sample: Sample, hidden: str | None, marginals: str) -> Sample:
    """Return the sample with the family that hidden variables and scales ask for."""
    if hidden not in (None, "states", "gaussian"):
        raise ModelError(f'hidden is {hidden!r}, but must be "states" or "gaussian"')
    if marginals not in ("normal", "ranks") and (marginals, sample.family) != ("cells", "copula"):
        raise ModelError(f'marginals is {marginals!r}, but must be "normal" or "ranks"')
    if hidden == "states":
        if marginals == "ranks" or sample.family == "copula":
            raise ModelError('marginals="ranks" and the family copula need hidden="gaussian"')
        return sample
    is_real = set(sample.schema.kinds) == {"real"}
    if sample.family == "copula" or (is_real and marginals == "normal"):
        return sample
    if hidden is None and marginals == "normal":  # states predict better, see docs/ordered.md
        return sample
    from latentree.distances import as_copula

    return as_copula(sample)


def _learn(task: Task) -> Fitted:
    """Learn one tree or several.

    The model is compared with independence, unless trees, hidden variables or states were asked for
    by their number.
    """
    refuse_impossible(task)
    method, options = task.method, task.options
    n_trees: Any = AUTO if is_committee(method, task.sample, options) else options.get("n_trees")
    is_one = n_trees is None or (n_trees == 1 and is_decided_by_held_out(method, options))

    def learn() -> Fitted:
        refuse_for_family(task)
        return learn_one_tree(task) if is_one else learn_trees(task, n_trees)

    is_asked_for = "n_trees" in options or _has_given_size(method, options)
    if is_asked_for or method.name == "independent":
        return learn()
    return _beside_independence(task, learn)


def _has_given_size(method: Method, options: OptionValues) -> bool:
    """Whether hidden variables were asked for by their number, or another criterion than BIC."""
    given = {"refined": ("n_hidden", "criterion"), "lcm": ("n_states",)}
    return any(name in options for name in given.get(method.name, ()))


def _held_out_rows(
    method: Method, sample: Sample, options: OptionValues, X_valid: TableLike
) -> HeldOutRows | None:
    """Return the rows that decide on states, smoothing and stopping; None if none do."""
    is_decided = is_decided_by_held_out(method, options)
    fraction = options.get("validation_fraction")
    if X_valid is None:
        return HeldOutRows(fraction) if is_decided or "n_trees" in options else None
    if not method.from_distances:
        raise ModelError(f"X_valid was given, but {method.name} does not hold out rows")
    has_states = sample.family in ("discrete", "mixed")
    if options.get("n_trees") is None and not (is_decided and has_states):
        raise ModelError('X_valid is for hclt and n_states="auto" with discrete or mixed columns')
    from latentree.data import as_table

    return HeldOutRows(fraction, as_table(X_valid, schema=sample.schema, unseen="missing"))


def _beside_independence(task: Task, learn: Callable[[], Fitted]) -> Fitted:
    """Learn a model that is no worse, by BIC, than that of independent variables.

    Where the test of independence finds nothing, nothing is learned.
    """
    from latentree.search import NOTHING, independent, noted, without_losses
    from latentree.structure import independent_groups

    alone = independent(task.sample, **task.fitting)
    groups = independent_groups(task.sample.distances)
    if len(set(groups.tolist())) == task.sample.n_columns > 1:
        return noted(alone, NOTHING)
    fitted = learn()
    if task.method.name == "hclt" or {"n_states", "criterion"} & set(task.options):
        return fitted  # states for prediction, or as they were asked for, need not pay by BIC
    refit = {"refit": task.options.get("refit", True), "n_starts": 1}
    return without_losses(fitted, alone, lambda tree: fit_tree(tree, task._replace(options=refit)))


def numpy_seed(random_state: SklearnState) -> RandomState:
    """Turn scikit-learn's RandomState into what numpy's Generator takes.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None

    Returns
    -------
    int, Generator or None

    Examples
    --------
    >>> numpy_seed(7)
    7
    """
    import numpy as np

    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state


def learned_support(
    model: TreeModel, X: DataLike, method: str, n_replicates: int, given: OptionValues, **how: Any
) -> Support:
    """Measure how sure a model is that a method learned, with the same options.

    Parameters
    ----------
    model : model
        What was learned.
    X : table, Parts, Statistics or Sample
        The rows that it was learned from.
    method : str
        One of ``METHODS``.
    n_replicates : int
        Number of replicates.
    given : mapping
        Options of the method. Those of EM do not matter for the tree.
    **how
        As in :func:`latentree.bootstrap_support`.

    Returns
    -------
    Support

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> learned_support(model, model.sample(2_000, 1), "rg", 5, {}, random_state=0).n_replicates
    5
    """
    from latentree.support import bootstrap_support

    of_search = OF_SEARCH if method in ("refined", "reg_clnj", "reg_clrg") else ()
    options = {name: value for name, value in given.items() if name in of_search}
    return bootstrap_support(model, X, method, n_replicates, **how, **options)

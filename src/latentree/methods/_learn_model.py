"""From data to a model, by any method and for any kind of data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latentree.errors import ModelError
from latentree.methods._families import (
    Task,
    fit_tree,
    is_decided_by_held_out,
    learn_one_tree,
    refuse_for_family,
    refuse_impossible,
)
from latentree.methods._forms import ModelForm, model_forms
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

    from latentree.data import Table
    from latentree.distances import Distances, Sample
    from latentree.em import Budget, Fitted
    from latentree.models import TreeModel
    from latentree.support import Support
    from latentree.tree import Tree
    from latentree.typing import (
        DataLike,
        IntArray,
        Progress,
        RandomState,
        SklearnState,
        TableLike,
    )


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
        by default a tenth of the rows, of fewer than 5,000 rows up to a quarter.
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
    from latentree.distances import as_sample
    from latentree.em import Budget, Fitted
    from latentree.models import with_fitted_lengths, with_sorted_states
    from latentree.structure import independent_groups

    clock = time.perf_counter()
    chosen = chosen_options(method, options)
    sample = as_sample(X, family, weights)
    entry = METHODS[choose_method(method, sample, chosen)]
    limit = chosen.get("time_limit", math.inf)
    steps = chosen.pop("max_steps", OPTIONS["max_steps"].default)
    if entry.name != "refined":  # whose search has a limit of its own
        chosen.pop("time_limit", None)
    if budget is None:
        budget = Budget(max_steps=steps, time_limit=limit)
    is_open = family == AUTO and X_valid is None and budget.max_steps > 0
    forms = model_forms(sample, entry, chosen, is_open)
    held_out = _given_rows(entry, forms[0].sample, chosen, X_valid)
    holds_out = is_decided_by_held_out(entry, chosen) or "n_trees" in chosen
    fitting = {
        "budget": replace(budget, time_limit=budget.time_limit / len(forms)),
        "random_state": random_state,
        "progress": progress,
    }
    if "time_limit" in chosen:
        chosen["time_limit"] /= len(forms)
    plain = next((form for form in forms if form.sample is sample), forms[0])
    distances = plain.sample.distances
    groups = None if entry.name == "independent" else independent_groups(distances)
    if sample.grouped(groups).is_apart:
        forms = [plain]  # nothing is to be learned
    tasks = [
        Task(
            entry, form.sample.grouped(groups), chosen, {**fitting, **form.fitting},
            holds_out, held_out,
        )
        for form in forms
    ]  # fmt: skip
    model, report = _learn_best_form(forms, tasks)
    model = with_sorted_states(with_fitted_lengths(model))
    report = replace(report, columns=sample.schema.columns)
    chosen_by = [f"{CHOSEN}{entry.name}"] if method == AUTO else []
    about_tree = [] if groups is None else _describe_tree(entry, model.tree, distances, groups)
    report = replace(report, notes=(*chosen_by, *report.notes, *about_tree))
    return Fitted(model, report.timed(time.perf_counter() - clock))


def _describe_tree(method: Method, tree: Tree, distances: Distances, groups: IntArray) -> list[str]:
    """Say how the tree falls apart, and what a method leaves out where blocks are large."""
    import numpy as np

    from latentree.structure import describe_parts, describe_unmoved

    said = [describe_parts(distances, tree.components[: groups.size], groups)]
    if method.name in ("clnj", "clrg"):
        said.append(describe_unmoved(np.bincount(groups)))
    return [note for note in said if note]


def _learn_best_form(forms: Sequence[ModelForm], tasks: Sequence[Task]) -> Fitted:
    """Learn the first form of the model, and those whose BIC is higher on the tree that it finds.

    A fit on a known tree takes a tenth of the time of a search, so that forms which are behind cost
    little.
    """
    from latentree.em import INTERRUPTED
    from latentree.search import noted

    best = _learn(tasks[0])
    if forms[0].note:
        best = noted(best, forms[0].note)
    scores = {forms[0].name: best.report.bic_score}
    for (name, *_), task in zip(forms[1:], tasks[1:], strict=True):
        if INTERRUPTED in best.report.notes or not best.model.tree.n_edges:
            break
        rival = _fit_to(best.model.tree, task)
        if rival.report.bic_score > best.report.bic_score:
            rival = max(rival, _learn(task), key=lambda one: one.report.bic_score)
        scores[name] = rival.report.bic_score
        best = max(best, rival, key=lambda one: one.report.bic_score)
    if len(scores) == 1:
        return best
    ranked = sorted(scores, key=lambda name: -scores[name])
    listed = ", ".join(f"{name} {scores[name]:,.1f}" for name in ranked)
    return noted(best, f"forms of the model by BIC score: {listed}")


def _fit_to(tree: Tree, task: Task) -> Fitted:
    """Fit a form of the model to a tree that another form has found."""
    from latentree.em import Fitted
    from latentree.models import with_schema

    model, report = fit_tree(tree, task._replace(options={"n_starts": 1}))
    return Fitted(with_schema(model, task.sample.schema), report)


def _learn(task: Task) -> Fitted:
    """Learn one tree or several, and name the columns of the model as those of the sample.

    The model is compared with independence, unless trees, hidden variables or states were asked for
    by their number.
    """
    from latentree.em import Fitted
    from latentree.models import with_schema

    refuse_impossible(task)
    method, options = task.method, task.options
    n_trees: Any = AUTO if is_committee(method, task.sample, options) else options.get("n_trees")
    is_one = n_trees is None or (n_trees == 1 and is_decided_by_held_out(method, options))

    def learn() -> Fitted:
        refuse_for_family(task)
        return learn_one_tree(task) if is_one else learn_trees(task, n_trees)

    is_asked_for = "n_trees" in options or _has_given_size(method, options)
    is_free = not is_asked_for and method.name != "independent"
    fitted = _beside_independence(task, learn) if is_free else learn()
    return Fitted(with_schema(fitted.model, task.sample.schema), fitted.report)


def _has_given_size(method: Method, options: OptionValues) -> bool:
    """Whether hidden variables were asked for by their number, or another criterion than BIC."""
    given = {"refined": ("n_hidden", "criterion"), "lcm": ("n_states",)}
    return any(name in options for name in given.get(method.name, ()))


def _given_rows(
    method: Method, sample: Sample, options: OptionValues, X_valid: TableLike
) -> Table | None:
    """Return the rows that were given to decide on states, smoothing and stopping, if any."""
    if X_valid is None:
        return None
    if not method.from_distances:
        raise ModelError(f"X_valid was given, but {method.name} does not hold out rows")
    has_states = sample.family in ("discrete", "mixed")
    is_decided = has_states and is_decided_by_held_out(method, options)
    if options.get("n_trees") is None and not is_decided:
        raise ModelError('X_valid is for hclt and n_states="auto" with discrete or mixed columns')
    from latentree.data import as_table

    return as_table(X_valid, schema=sample.schema, unseen="missing")


def _beside_independence(task: Task, learn: Callable[[], Fitted]) -> Fitted:
    """Learn a model; where the test of independence finds nothing, one without edges.

    Where BIC prefers independence, edges that do not pay are cut, unless states are for prediction
    or were asked for. What ``consensus`` leaves open is not cut either.
    """
    from latentree.search import independent, without_losses
    from latentree.structure import learn_tree

    alone = independent(task.sample, **task.fitting)
    if task.sample.is_apart:
        return alone
    fitted = learn()
    is_kept = task.method.name in ("hclt", "consensus")
    if is_kept or {"n_states", "criterion"} & set(task.options):
        return fitted
    again = task._replace(options={"n_starts": 1})
    if not fitted.model.tree.n_edges:  # a search by BIC gave up what the test had found
        fitted = fit_tree(learn_tree(task.sample, "clnj"), again)
    return without_losses(fitted, alone, lambda tree: fit_tree(tree, again))


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

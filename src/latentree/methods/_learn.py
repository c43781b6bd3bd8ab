"""One door to all methods: from data to a model, whatever the method and the kind of data."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latentree.errors import DataWarning, ModelError
from latentree.methods._registry import (
    AUTO,
    CHOSEN,
    HELD_OUT,
    METHODS,
    OF_MIXED,
    OF_SEARCH,
    OPTIONS,
    Method,
    choose_method,
    chosen_options,
)

if TYPE_CHECKING:  # the help of the command line loads nothing heavy
    from numpy.typing import ArrayLike

    from latentree.distances import Sample
    from latentree.em import Budget, Fitted, HeldOutFit
    from latentree.models import TreeModel
    from latentree.support import Support
    from latentree.tree import Tree
    from latentree.typing import Progress


class ProgressText:
    """Says how far learning by a method is: steps, and the best value so far, which never falls.

    Starts of EM and of searches begin anew from lower values, which nobody need wonder about.

    Parameters
    ----------
    method : str
        Name of the method.
    n_states, n_trees : int or "auto", optional
        Its options.

    Examples
    --------
    >>> progress = ProgressText("refined")
    >>> progress(1, -20.0), progress(2, -30.0)
    ('change 1, best score -20.0', 'change 2, best score -20.0')
    """

    def __init__(self, method: str, n_states: Any = None, n_trees: Any = None) -> None:
        searching = method == "refined"
        self.unit, self.value = ("change", "score") if searching else ("step", "log-likelihood")
        self.digits = 1
        if method == "hclt" or n_states == "auto":
            self.unit, self.value, self.digits = "pass", "held-out log-likelihood a row", 4
        if n_trees is not None:
            self.unit, self.value, self.digits = "setting", "held-out log-likelihood a row", 4
        self.best = -math.inf

    def __call__(self, steps: int, reached: float) -> str:
        """Return the text."""
        self.best = max(self.best, reached)
        known = (
            f", best {self.value} {self.best:,.{self.digits}f}" if math.isfinite(self.best) else ""
        )
        return f"{self.unit} {steps:,}{known}"


def learn_model(
    X: Any,
    method: str = AUTO,
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    X_valid: Any = None,
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
    method, asked = choose_method(method, sample, chosen), method
    entry = METHODS[method]
    marginals = chosen.pop("marginals", OPTIONS["marginals"].default)
    sample = _behind(sample, chosen.pop("hidden", None), marginals, chosen)
    if sample.family not in entry.families:
        raise ModelError(f"{method} learns from {' and '.join(entry.families)} data only")
    if sample.family not in ("mixed", "copula") and method != "refined":
        for name in set(OF_MIXED) & set(chosen):
            raise ModelError(
                f"{name}={chosen[name]!r} chooses numbers of states, of mixed data only: give "
                f"n_states, or use refined"
            )
    limit = chosen.get("time_limit", math.inf)
    steps = chosen.pop("max_steps", OPTIONS["max_steps"].default)
    common = {
        "budget": budget or Budget(max_steps=steps, time_limit=limit),
        "random_state": random_state,
        "progress": progress,
    }
    if sample.family == "copula":
        common["marginals"] = marginals
    if method != "refined":  # whose search has a limit of its own
        chosen.pop("time_limit", None)
    if X_valid is not None:
        if not entry.from_distances:
            raise ModelError(f"X_valid was given, but {method} does not hold out rows")
        common["X_valid"] = X_valid
    learn: Callable[..., Fitted] = _from_distances if entry.from_distances else _by_scores
    if _is_committee(entry, sample, chosen):
        chosen["n_trees"], learn = AUTO, _mixture
        model, report = _beside_independence(learn, entry, sample, chosen, common)
    elif chosen.get("n_trees") == 1 and _decides(entry, chosen):
        del chosen["n_trees"]
        model, report = learn(entry, sample, **chosen, **common)
    elif chosen.get("n_trees") is not None:
        model, report = _mixture(entry, sample, **chosen, **common)
    elif method == "independent" or _is_asked_for(method, chosen):
        model, report = learn(entry, sample, **chosen, **common)
    else:
        model, report = _beside_independence(learn, entry, sample, chosen, common)
    model = with_fitted_lengths(with_schema(model, sample.schema))
    report = replace(report, columns=sample.schema.columns)
    if asked == AUTO:
        report = replace(report, notes=(f"{CHOSEN}{method}", *report.notes))
    seconds = time.perf_counter() - clock - (compiling.seconds() - compiled)
    return Fitted(model, report.timed(seconds))


def _behind(
    sample: Sample, hidden: str | None, marginals: str, chosen: Mapping[str, Any]
) -> Sample:
    """Return the sample with the family that hidden variables and scales ask for."""
    if hidden not in (None, "states", "gaussian"):
        raise ModelError(f'hidden is {hidden!r}, but must be "states" or "gaussian"')
    if marginals not in ("normal", "ranks") and (marginals, sample.family) != ("cells", "copula"):
        raise ModelError(f'marginals is {marginals!r}, but must be "normal" or "ranks"')
    kinds = set(sample.schema.kinds)
    if hidden == "states":
        if marginals == "ranks" or sample.family == "copula":
            raise ModelError('marginals="ranks" and the family copula need hidden="gaussian"')
        return sample
    if sample.family == "copula" or (kinds == {"real"} and marginals == "normal"):
        return sample
    if hidden is None and marginals == "normal":  # states predict better, see docs/ordered.md
        return sample
    from latentree.distances import as_copula

    return as_copula(sample)


def _is_committee(entry: Method, sample: Sample, chosen: Mapping[str, Any]) -> bool:
    """Whether hclt learns several trees: where nothing is said of trees, states or EM."""
    alone = {"n_trees", "n_states", "validation_fraction", "checkpoint", "stepwise", "refit"}
    is_enough = sample.statistics.n_rows >= LEAST_ROWS_OF_A_COMMITTEE
    return bool(
        entry.name == "hclt"
        and sample.family == "discrete"
        and is_enough
        and not alone & set(chosen)
    )


def _is_asked_for(method: str, chosen: Mapping[str, Any]) -> bool:
    """Whether hidden variables were asked for by their number, or another criterion than BIC."""
    asked = {"refined": ("n_hidden", "criterion"), "lcm": ("n_states",)}
    return any(name in chosen for name in asked.get(method, ()))


def _beside_independence(
    learn: Callable[..., Fitted],
    entry: Method,
    sample: Sample,
    chosen: Mapping[str, Any],
    common: Mapping[str, Any],
) -> Fitted:
    """Learn a model that is no worse, by BIC, than that of independent variables.

    Where the test of independence finds nothing, nothing is learned.
    """
    from latentree.em import fit_parameters
    from latentree.search import NOTHING, fit_mixed, independent, noted, without_losses
    from latentree.structure import independent_groups

    alone = independent(sample, **common)
    groups = independent_groups(sample.distances)
    if len(set(groups.tolist())) == sample.n_columns > 1:
        return noted(alone, NOTHING)
    way = "ml" if chosen.get("refit", True) else "distances"

    def fit(tree: Tree) -> Fitted:
        if sample.family == "mixed":
            return fit_mixed(tree, sample, n_starts=1, **common)
        return fit_parameters(tree, sample, method=way, n_starts=1, **common)

    fitted = learn(entry, sample, **chosen, **common)
    if entry.name == "hclt" or {"n_states", "criterion"} & set(chosen):
        return fitted  # states for prediction, or as they were asked for, need not pay by BIC
    return without_losses(fitted, alone, fit)


def _mixture(
    entry: Method,
    sample: Sample,
    *,
    n_trees: Any,
    budget: Budget,
    random_state: Any,
    progress: Progress | None,
    X_valid: Any = None,
    validation_fraction: float | None = None,
    **options: Any,
) -> Fitted:
    """Learn a mixture whose components are learned by a method from weighted rows."""
    import numpy as np

    from latentree.data import as_table
    from latentree.em import held_out_fits
    from latentree.search import fold_mixture, tree_mixture
    from latentree.structure import learn_tree

    for name in ("checkpoint", "stepwise"):
        if name in options:
            raise ModelError(f"{name} is for one tree: leave it out with n_trees")
    held_out = None
    if X_valid is not None:
        held_out = as_table(X_valid, schema=sample.schema, unseen="missing")
    rng = np.random.default_rng(random_state)
    if sample.family == "discrete" and _decides(entry, options):
        wanted = options.get("n_states")

        def prepare(rows: Sample, fold: Any, budget: Budget, most_states: int | None) -> HeldOutFit:
            tree, states = learn_tree(rows, entry.name), None if wanted == AUTO else wanted
            [fit] = held_out_fits(
                tree, rows, states, most_states=most_states, budget=budget, rng=rng,
                progress=progress, X_valid=fold,
            )  # fmt: skip
            return fit

        return fold_mixture(
            sample, prepare, n_trees, held_out=held_out, budget=budget, random_state=rng
        )

    def learn(rows: Sample) -> Fitted:
        with warnings.catch_warnings():  # what is said of a few rows' weights helps nobody
            warnings.simplefilter("ignore", DataWarning)
            return _component(entry, rows, random_state=rng, **options)

    return tree_mixture(
        sample, learn, n_trees, held_out=held_out, validation_fraction=validation_fraction,
        budget=budget, random_state=rng, progress=progress,
    )  # fmt: skip


LEAST_ROWS_OF_A_COMMITTEE = 100
"""With fewer rows than that, hclt learns one tree: a fourth of them decides nothing."""

_STEPS_A_ROUND = 30  # of EM inside a component: rounds of the mixture follow


def _component(entry: Method, sample: Sample, **options: Any) -> Fitted:
    """Learn one component of a mixture, from weighted rows, in a few steps of EM."""
    from latentree.em import Budget, fit_parameters
    from latentree.structure import learn_tree

    if sample.family == "discrete":
        options.setdefault("prior_weight", 1.0)  # combinations that no row has stay possible
    options = {"n_starts": 1, "budget": Budget(max_steps=_STEPS_A_ROUND), **options}
    if sample.family == "mixed":
        return _mixed_from_distances(entry, sample, True, False, **options)
    options.pop("refit", None)
    if sample.family == "gaussian":
        options.pop("n_states", None)
    return fit_parameters(learn_tree(sample, entry.name), sample, **options)


def _by_scores(entry: Method, sample: Sample, **options: Any) -> Fitted:
    if sample.family == "mixed":
        return _mixed_by_scores(entry, sample, **options)
    if sample.family == "copula":
        return _behind_by_scores(entry, sample, **options)
    fitted: Fitted = entry.function()(sample, **options)
    return fitted


def _mixed_by_scores(entry: Method, sample: Sample, **options: Any) -> Fitted:
    from latentree.search import fit_mixed, learned_in_bins, star

    if entry.name == "independent":
        alone: Fitted = entry.function()(sample, **options)
        return alone
    if entry.name == "lcm":
        return fit_mixed(star(sample), sample, **options)
    if entry.name == "consensus":
        fitted: Fitted = entry.function()(sample, **options)
        return fitted
    rivals = []
    if entry.name == "refined" and "n_hidden" not in options:
        from latentree.structure import learn_tree

        rivals.append(learn_tree(sample, "clnj"))
    return learned_in_bins(entry.function(), sample, rivals=rivals, **options)


def _behind_by_scores(entry: Method, sample: Sample, **options: Any) -> Fitted:
    from latentree.em import fit_parameters
    from latentree.search import learned_behind, star

    _refuse_states(options)
    if entry.name == "lcm":
        return fit_parameters(star(sample), sample, **options)
    if entry.name in ("independent", "consensus"):
        fitted: Fitted = entry.function()(sample, **options)
        return fitted
    simplify = entry.name == "refined" and "n_hidden" not in options
    return learned_behind(entry.function(), sample, simplify=simplify, **options)


def _refuse_states(options: Mapping[str, Any]) -> None:
    """Refuse options about states where hidden variables are Gaussian."""
    for name in ("n_states", "max_states", "validation_fraction"):
        if name in options:
            raise ModelError(f'{name}={options[name]!r} is about states: use hidden="states"')


def _from_distances(
    entry: Method, sample: Sample, refit: bool = True, stepwise: bool = False, **options: Any
) -> Fitted:
    from latentree.em import fit_parameters
    from latentree.structure import learn_tree

    if sample.family == "mixed":
        return _mixed_from_distances(entry, sample, refit, stepwise, **options)
    if sample.family == "copula":
        _refuse_states(options)
        dense = set(sample.schema.kinds) == {"real"}
        if stepwise or (entry.name == "chow_liu" and not dense):
            what = "stepwise=True" if stepwise else "chow_liu"
            raise ModelError(f"{what} is not for Gaussian variables behind columns: leave it out")
    tree = learn_tree(sample, entry.name)
    if not refit and sample.family == "copula":
        return fit_parameters(tree, sample, method="distances", marginals=options["marginals"])
    if not refit:
        return fit_parameters(tree, sample, method="distances")
    held_out = _pop_held_out(entry, sample, options)
    if held_out is not None and sample.family == "discrete":
        return fit_parameters(tree, sample, method="held_out", **options, **held_out)
    return fit_parameters(tree, sample, method="stepwise" if stepwise else "ml", **options)


def _decides(entry: Method, options: Mapping[str, Any]) -> bool:
    """Whether held-out rows decide on states, smoothing and stopping of a tree."""
    by_rows = options.get("n_states") == "auto" or options.get("criterion") == "cv"
    return entry.name == "hclt" or by_rows


def _pop_held_out(entry: Method, sample: Sample, options: dict[str, Any]) -> dict[str, Any] | None:
    """Take what is about held-out rows out of the options; None if these decide nothing."""
    held_out = {name: options.pop(name) for name in HELD_OUT if name in options}
    decide = _decides(entry, options)
    if options.get("n_states") == "auto":
        del options["n_states"]
    if "X_valid" in held_out and not (decide and sample.family in ("discrete", "mixed")):
        raise ModelError('X_valid is for hclt and n_states="auto" with discrete or mixed columns')
    return held_out if decide else None


def _mixed_from_distances(
    entry: Method, sample: Sample, refit: bool, stepwise: bool, **options: Any
) -> Fitted:
    from latentree.data import as_table
    from latentree.search import fit_mixed
    from latentree.structure import learn_tree

    if not refit or stepwise:
        what = "stepwise=True" if stepwise else "refit=False"
        raise ModelError(f"{what} is not for mixed data, whose parameters are fitted by EM")
    if entry.name == "chow_liu" and not sample.cardinalities.all():
        raise ModelError(
            "chow_liu has no hidden variables, but columns of numbers hang from states: use "
            "another method, or family='gaussian' or family='discrete'"
        )
    held_out = _pop_held_out(entry, sample, options)
    if held_out is not None:
        options["criterion"] = "cv"
        if "X_valid" in held_out:
            rows = as_table(held_out.pop("X_valid"), schema=sample.schema, unseen="missing")
            options["held_out"] = rows
        options.update(held_out)
    return fit_mixed(learn_tree(sample, entry.name), sample, **options)


def learned_support(
    model: TreeModel, X: Any, method: str, n_replicates: int, given: Mapping[str, Any], **how: Any
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

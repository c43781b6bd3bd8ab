"""Mixed columns: how many states the hidden variables have, and searches on binned numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from latentree.data import Table, cut_table
from latentree.distances import Sample
from latentree.em import (
    FIRST,
    INTERRUPTED,
    Binning,
    Budget,
    Fitted,
    as_leaves,
    fit_parameters,
    held_out_fits,
    run_rivals,
)
from latentree.errors import ModelError
from latentree.models import MixedTreeModel
from latentree.search._refinement._discrete_engine import announced_search
from latentree.search._refinement._full_fit import PRIOR
from latentree.search._refinement._refine import grow_states, penalty_of
from latentree.tree import Tree, hung_as_leaves
from latentree.typing import IntArray, Progress

MOST_STATES = 64
"""Growth ends by itself; this bounds the time that it takes."""


def fit_mixed(
    tree: Tree,
    sample: Sample,
    *,
    n_states: int | IntArray | Literal["auto"] | None = None,
    criterion: str = "bic",
    max_states: int = MOST_STATES,
    prior_weight: float = 0.0,
    n_starts: int = 3,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    validation_fraction: float | None = None,
    held_out: Table | None = None,
) -> Fitted:
    """Fit a mixed model to a tree; hidden variables get the number of states that scores best.

    Parameters
    ----------
    tree : Tree
        Columns of numbers that are inner nodes get a hidden variable in their place.
    sample : Sample
        Of the family "mixed".
    n_states : int, array or "auto", optional
        Numbers of states of the hidden variables. By default each grows as long as the criterion
        rises; "auto" is the same by the criterion "cv". A column of numbers beside a column of
        categories has one distribution for each of them; a hidden variable takes the place of such
        categories where the criterion prefers it.
    criterion : {"bic", "aic", "cv"}
        What decides on it; "cv" is the likelihood of rows that are held out, each once in four fits
        or, of many rows, a part of them. These decide on smoothing and stopping too, for given
        numbers of states as well, and the model learns from all rows in the end.
    max_states : int
        Most states to try.
    prior_weight : float
        Weight of the prior, as a number of rows; one row where it is 0.
    n_starts, budget, random_state, progress
        As in :func:`latentree.fit_parameters`.
    validation_fraction : float, optional
        For "cv": the share of the rows that is held out, in one fit.
    held_out : Table, optional
        For "cv": these rows are held out, in place of some of the sample.

    Returns
    -------
    Fitted
        ``model, report``.
    """
    clock = time.perf_counter()
    if criterion not in ("bic", "aic", "cv"):
        raise ModelError(f"criterion is {criterion!r}, but states are chosen by bic, aic or cv")
    if isinstance(n_states, str):
        n_states, criterion = None, "cv"
    tree = as_leaves(tree, sample.cardinalities == 0)
    options: dict[str, Any] = {"prior_weight": prior_weight or PRIOR, "n_starts": n_starts}
    budget = budget or Budget()
    if criterion == "cv":
        seed = int(np.random.default_rng(random_state).integers(2**31))
        fits = [
            held_out_fits(
                each, sample, n_states, most_states=max_states, budget=budget, progress=progress,
                rng=np.random.default_rng(seed),  # so that rivals hold out the same rows
                fraction=validation_fraction, X_valid=held_out, **options,
            )
            for each in (_rivals(tree, sample) if n_states is None else [tree])
        ]  # fmt: skip
        final = run_rivals(fits)
    elif n_states is None:
        options["random_state"] = random_state
        with announced_search(sample, of_tree=False):
            final = _by_penalty(tree, sample, criterion, max_states, budget, options, progress)
    else:
        final = fit_parameters(
            tree, sample, n_states=n_states, budget=budget, random_state=random_state,
            progress=progress, **options,
        )  # fmt: skip
    return Fitted(with_lengths(final.model), final.report.timed(time.perf_counter() - clock))


def _by_penalty(
    tree: Tree,
    sample: Sample,
    criterion: str,
    max_states: int,
    budget: Budget,
    options: dict[str, Any],
    progress: Progress | None,
) -> Fitted:
    """Let states grow, and fit the model with those that score best."""
    clock, grown, note = time.monotonic(), [], ""
    penalty = penalty_of(criterion, sample)
    rng = np.random.default_rng(options["random_state"])
    for each in _rivals(tree, sample):
        left = max(0.0, clock + 0.5 * budget.time_limit - time.monotonic())
        first = fit_parameters(
            each, sample, n_states=2, budget=replace(FIRST, time_limit=left),
            **options | {"random_state": rng},
        )  # fmt: skip
        left = max(0.0, clock + 0.5 * budget.time_limit - time.monotonic())
        model, score, note = first.model, first.report.bic_score, ""
        if INTERRUPTED in first.report.notes:
            note = INTERRUPTED
        else:
            model, score, note = grow_states(
                first.model, sample, penalty, max_states=max_states, time_limit=left,
                prior_weight=options["prior_weight"], random_state=rng,
            )  # fmt: skip
        grown.append((score, model))
        if note:
            break
    _, best = max(grown, key=lambda each: each[0])
    left = max(0.0, clock + budget.time_limit - time.monotonic())
    if note == INTERRUPTED:
        left = 0.0
    final = fit_parameters(
        best.tree, sample, start=best, prior_weight=options["prior_weight"],
        budget=replace(budget, time_limit=left), progress=progress,
    )  # fmt: skip
    notes = (*final.report.notes, *_states_note(final.model, criterion))
    report = replace(final.report, notes=notes)
    if note:
        report = replace(report, converged=False, notes=(note, *notes))
    return Fitted(final.model, report)


def _states_note(model: MixedTreeModel, criterion: str) -> tuple[str, ...]:
    """Say how many states there are."""
    states = model.n_states[model.tree.n_observed :]
    if not states.size:
        return ()
    shown = " to ".join(str(number) for number in sorted({states.min(), states.max()}))
    return (f"{shown} states per hidden variable, chosen by {criterion}",)


def _rivals(tree: Tree, sample: Sample) -> list[Tree]:
    """Return the tree, and that in which hidden variables replace categories beside numbers.

    Of a pair of a category and a number nothing can hang; there, and where numbers hang from hidden
    variables already, nothing changes.
    """
    above = np.unique(tree.parent[: tree.n_observed][sample.cardinalities == 0])
    apart = hung_as_leaves(tree, above[(above >= 0) & (above < tree.n_observed)])
    return [tree] if apart is tree else [tree, apart]


def with_lengths(model: MixedTreeModel) -> MixedTreeModel:
    """Return a mixed model whose tree has −log of maximal correlations for lengths."""
    return MixedTreeModel.from_theta(
        model.distance_tree(), model.n_states, model.theta, model.emissions, model.schema
    )


def learned_in_bins(
    learner: Callable[..., Fitted],
    sample: Sample,
    *,
    budget: Budget | None = None,
    **options: Any,
) -> Fitted:
    """Learn a tree from binned numbers, and fit a mixed model to it.

    The learner sees a discrete table: columns with labels as they are, numbers in a few
    bins. Numbers of states are chosen anew, by the numbers themselves.

    Parameters
    ----------
    learner : callable
        Of this package.
    sample : Sample
        Of the family "mixed".
    budget : Budget, optional
        When EM stops.
    **options
        Options of the learner, of which ``random_state`` and ``progress`` are for the final fit
        too.

    Returns
    -------
    Fitted
        ``model, report``.
    """
    table = sample.parts.to_table()
    binned = Sample(cut_table(Binning.of(table).table(table))).grouped(sample.components)
    found = learner(binned, budget=budget, **options)
    again: Any = {name: options.get(name) for name in ("random_state", "progress")}
    fitted = fit_mixed(found.model.tree, sample, budget=budget, **again)
    if sample.cardinalities.all():  # nothing was binned
        return fitted
    note = "the tree was searched on binned numbers"
    return Fitted(fitted.model, replace(fitted.report, notes=(*fitted.report.notes, note)))

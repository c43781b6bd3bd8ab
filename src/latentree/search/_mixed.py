"""Mixed columns: how many states the hidden variables have, and searches on binned numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentree.data import Table, cut_table, stacked
from latentree.distances import Sample
from latentree.em import Binning, Budget, Fitted, as_leaves, fit_parameters
from latentree.errors import ModelError
from latentree.search._mixed_growth import Candidate, HeldOut, Penalized, grown, learned_from_all
from latentree.tree import Tree, hung_as_leaves
from latentree.typing import IntArray, Progress

PRIOR = 1.0
"""Rows of prior weight where nothing is said: a label that no row of a state has stays possible."""

MOST_STATES = 64
"""Growth ends by itself; this bounds the time that it takes."""


def fit_mixed(
    tree: Tree,
    sample: Sample,
    *,
    n_states: int | IntArray | None = None,
    criterion: str = "bic",
    max_states: int = MOST_STATES,
    prior_weight: float = 0.0,
    n_starts: int = 3,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    checkpoint: Any = None,
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
    n_states : int or array, optional
        Numbers of states of the hidden variables. By default each grows as long as the criterion
        rises. A column of numbers beside a column of categories has one distribution for each of
        them; a hidden variable takes the place of such categories where the criterion prefers it.
    criterion : {"bic", "aic", "cv"}
        What decides on it; "cv" is the likelihood of rows that are held out, each once in four fits
        or, of many rows, a part of them. These decide on smoothing and stopping too, and the model
        learns from all rows in a few steps at the end.
    max_states : int
        Most states to try.
    prior_weight : float
        Weight of the prior, as a number of rows; one row where it is 0.
    n_starts, budget, random_state, progress, checkpoint
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
    tree = as_leaves(tree, sample.cardinalities == 0)
    fit: dict[str, Any] = {
        "prior_weight": prior_weight or PRIOR, "n_starts": n_starts, "random_state": random_state,
    }  # fmt: skip
    if n_states is None:
        final = _with_chosen_states(
            tree, sample, criterion, max_states, fit, budget or Budget(), progress, checkpoint,
            held_out, validation_fraction,
        )  # fmt: skip
    else:
        final = fit_parameters(
            tree, sample, n_states=n_states, budget=budget, progress=progress,
            checkpoint=checkpoint, **fit,
        )  # fmt: skip
    return Fitted(with_lengths(final.model), final.report.timed(time.perf_counter() - clock))


def _with_chosen_states(
    tree: Tree,
    sample: Sample,
    criterion: str,
    max_states: int,
    fit: dict[str, Any],
    budget: Budget,
    progress: Progress | None,
    checkpoint: Any,
    held_out: Table | None,
    fraction: float | None,
) -> Fitted:
    """Let states grow, and fit the model with those that score best."""
    deadline = time.monotonic() + 0.5 * budget.time_limit
    apart = _numbers_apart(tree, sample.cardinalities == 0)
    trees = [tree] if apart is tree else [tree, apart]
    judge: Penalized | HeldOut
    if criterion in ("bic", "aic"):
        judge = Penalized(sample, criterion, fit)
    elif criterion == "cv":
        judge = HeldOut(sample, fit, held_out, fraction)
    else:
        raise ModelError(f"criterion is {criterion!r}, but states are chosen by bic, aic or cv")
    found = []
    for each in trees:
        rng = np.random.default_rng(fit["random_state"])
        found.append(grown(judge, each, max_states, deadline, rng))
    best = max(found, key=lambda candidate: candidate.score)
    if isinstance(judge, HeldOut):
        best = judge.smoothed(best, deadline)
        everything = sample
        if held_out is not None:
            everything = Sample(cut_table(stacked(sample.parts.to_table(), held_out)))
        final = learned_from_all(best, everything, budget)
    else:
        final = fit_parameters(
            best.models[0].tree, sample, start=best.models[0], prior_weight=best.prior_weight,
            budget=budget, progress=progress, checkpoint=checkpoint,
        )  # fmt: skip
    notes = (*final.report.notes, *_note(best, criterion))
    return Fitted(final.model, replace(final.report, notes=notes))


def with_lengths(model: Any) -> Any:
    """Return a mixed model whose tree has −log of maximal correlations for lengths."""
    return type(model).from_theta(
        model.distance_tree(), model.n_states, model.theta, model.emissions, model.schema
    )


def _numbers_apart(tree: Tree, emits: NDArray[np.bool_]) -> Tree:
    """Return the tree in which hidden variables take the place of categories beside numbers.

    Of a pair of a category and a number nothing can hang; there, and where numbers hang from hidden
    variables already, nothing changes.
    """
    above = np.unique(tree.parent[: tree.n_observed][emits])
    return hung_as_leaves(tree, above[(above >= 0) & (above < tree.n_observed)])


def _note(best: Candidate, criterion: str) -> tuple[str, ...]:
    """Say how many states there are."""
    states = best.n_states
    if not states.size:
        return ()
    least, most = int(states.min()), int(states.max())
    shown = f"{least}" if least == most else f"{least} to {most}"
    return (f"{shown} states a hidden variable, by {criterion} ({best.score:,.1f})",)


def learned_in_bins(
    learner: Callable[..., Fitted],
    sample: Sample,
    *,
    rivals: Sequence[Tree] = (),
    budget: Budget | None = None,
    **options: Any,
) -> Fitted:
    """Learn a tree from binned numbers, and fit a mixed model to it.

    The learner sees a discrete table: columns with labels as they are, numbers in at most
    ``em.N_BINS`` bins. Numbers of states are chosen anew, by the numbers themselves; so are they
    for every rival, and the tree of the highest BIC is kept.

    Parameters
    ----------
    learner : callable
        Of this package.
    sample : Sample
        Of the family "mixed".
    rivals : sequence of Tree
        Other trees, which bins may have hidden from the learner.
    budget : Budget, optional
        When EM stops.
    **options
        Options of the learner, of which ``prior_weight``, ``max_states``, ``criterion``,
        ``random_state`` and ``progress`` are for the final fit too.

    Returns
    -------
    Fitted
        ``model, report``.
    """
    table = sample.parts.to_table()
    binned = Sample(cut_table(Binning.of(table).table(table)))
    found = learner(binned, budget=budget, **options)
    again = {
        name: options[name]
        for name in ("random_state", "progress", "prior_weight", "max_states")
        if options.get(name) is not None
    }
    if options.get("criterion") in ("aic", "cv"):
        again["criterion"] = options["criterion"]
    fits = [fit_mixed(tree, sample, budget=budget, **again) for tree in (found.model.tree, *rivals)]
    fitted = max(fits, key=lambda fit: fit.report.bic_score)
    note = "the tree was searched on binned numbers"
    if fitted is not fits[0]:
        note = "a tree from distances scored higher than the one searched on binned numbers"
    return Fitted(fitted.model, replace(fitted.report, notes=(*fitted.report.notes, note)))

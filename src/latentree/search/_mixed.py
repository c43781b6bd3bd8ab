"""Mixed columns: how many states the hidden variables have, and searches on binned numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.special import rel_entr

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
from latentree.search._stars import grown_model
from latentree.tree import Tree, hung_as_leaves
from latentree.typing import IntArray, Progress

PRIOR = 1.0
"""Rows of prior weight where nothing is said: a label that no row of a state has stays possible."""

TRIAL = Budget(tolerance=1e-6, max_steps=60)
"""When EM stops that goes on from split states: most of what it gains it gains at once."""

MOST_CELLS = 1_000_000
"""Cells that local fits look at, of evenly spaced rows where there are more: they hold some numbers
per cell in memory. All rows decide in the end."""

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
    start, grown, stopped = time.monotonic(), [], ""
    for each in _rivals(tree, sample):
        deadline = start + 0.5 * budget.time_limit
        found, stopped = _grown(each, sample, criterion, max_states, deadline, options)
        grown.append(found)
        if stopped:
            break
    best = final = max(grown, key=lambda fitted: _score(fitted, criterion))
    if stopped != INTERRUPTED:
        left = max(0.0, start + budget.time_limit - time.monotonic())
        final = fit_parameters(
            best.model.tree, sample, start=best.model, prior_weight=options["prior_weight"],
            budget=replace(budget, time_limit=left), progress=progress,
        )  # fmt: skip
    notes = (*final.report.notes, *_states_note(best, criterion))
    report = replace(final.report, notes=notes)
    if stopped:
        report = replace(report, converged=False, notes=(stopped, *notes))
    return Fitted(final.model, report)


def _score(fitted: Fitted, criterion: str) -> float:
    return fitted.report.bic_score if criterion == "bic" else fitted.report.aic_score


def _grown(
    tree: Tree,
    sample: Sample,
    criterion: str,
    max_states: int,
    deadline: float,
    options: dict[str, Any],
) -> tuple[Fitted, str]:
    """Let numbers of states grow from 2 as long as the penalized likelihood of all rows rises.

    Returns the best fit, and why growth was stopped early if it was.
    """
    rng, stopped = np.random.default_rng(options["random_state"]), ""

    def fit(tree: Tree, budget: Budget, **settings: Any) -> Fitted:
        nonlocal stopped
        budget = replace(budget, time_limit=max(0.0, deadline - time.monotonic()))
        fitted = fit_parameters(tree, sample, budget=budget, **settings)
        if INTERRUPTED in fitted.report.notes:
            stopped = INTERRUPTED
        elif time.monotonic() > deadline:
            stopped = "the time limit came before all numbers of states were tried"
        return fitted

    best = fit(tree, FIRST, n_states=2, **options)
    rows, share = _some_rows(sample)
    penalty = share * (0.5 * np.log(sample.total_weight) if criterion == "bic" else 1.0)
    hidden = frozenset(range(tree.n_observed, tree.n_nodes))
    promising = hidden
    while promising and not stopped:
        try:
            growth = grown_model(
                best.model, rows, penalty, max_states, options["prior_weight"], rng,
                sorted(promising), deadline,
            )  # fmt: skip
        except KeyboardInterrupt:
            return best, INTERRUPTED
        if not growth.grown:
            break
        trial = fit(tree, TRIAL, start=growth.model, prior_weight=options["prior_weight"])
        if _score(trial, criterion) > _score(best, criterion):
            best = trial
            near = {int(v) for node in growth.grown for v in tree.neighbors(node)}
            promising = growth.grown | growth.waiting | (near & hidden)
        else:
            promising = growth.waiting
    return best, stopped


def _some_rows(sample: Sample) -> tuple[Table, float]:
    """Return the rows, of many rows some at equal distances, and their share of the weight."""
    step = -(-sample.statistics.n_rows * sample.n_columns // MOST_CELLS)
    if step == 1:
        return sample.parts.to_table(), 1.0
    tables = list(sample.parts.tables.each(_every, step))
    values = np.concatenate([table.values for table in tables])
    rows = Table(values, sample.schema, np.concatenate([table.weight_array() for table in tables]))
    return rows, rows.total_weight / sample.total_weight


def _every(table: Table, step: int) -> Table:
    return table.take(np.arange(0, table.n_rows, step))


def _states_note(best: Fitted, criterion: str) -> tuple[str, ...]:
    """Say how many states there are."""
    states = best.model.n_states[best.model.tree.n_observed :]
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
    rivals: Sequence[Tree] = (),
    budget: Budget | None = None,
    **options: Any,
) -> Fitted:
    """Learn a tree from binned numbers, and fit a mixed model to it.

    The learner sees a discrete table: columns with labels as they are, numbers in at most
    ``em.N_BINS`` bins. Numbers of states are chosen anew, by the numbers themselves; so are they
    for every rival, and the tree of the highest BIC is kept; by the criterion "cv" the one that
    predicts held-out rows best.

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
    binned = Sample(cut_table(Binning.of(table).table(table))).grouped(sample.components)
    by_held_out = options.get("criterion") == "cv"
    tree_only = {"for_prediction": False} if by_held_out else {}
    found = learner(binned, budget=budget, **options, **tree_only)
    again = {
        name: options[name]
        for name in ("random_state", "progress", "prior_weight", "max_states")
        if options.get(name) is not None
    }
    if options.get("criterion") in ("aic", "cv"):
        again["criterion"] = options["criterion"]
    fits = [fit_mixed(tree, sample, budget=budget, **again) for tree in (found.model.tree, *rivals)]
    if by_held_out:  # fits by the same random state hold out the same rows
        best = fitted = max(fits, key=lambda fit: max(fit.report.held_out_log_likelihoods))
    else:
        best = fitted = max(fits, key=lambda fit: fit.report.bic_score)
    if rivals and "criterion" not in again and best.report.converged:
        smaller = _without_idle_edges(best)
        if 0 < smaller.n_edges < best.model.tree.n_edges:
            trial = fit_mixed(smaller, sample, budget=budget, **again)
            fitted = max(best, trial, key=lambda fit: fit.report.bic_score)
    if sample.cardinalities.all():  # nothing was binned
        return fitted
    note = "the tree was searched on binned numbers"
    if best is not fits[0]:
        note = "a tree from distances scored higher than the one searched on binned numbers"
    return Fitted(fitted.model, replace(fitted.report, notes=(*fitted.report.notes, note)))


def _without_idle_edges(fitted: Fitted) -> Tree:
    """Cut edges between states that tell less than their parameters cost by BIC.

    Of an edge with mutual information I in n rows n·I is what the likelihood loses without it, and
    (K − 1)·(L − 1)·log n/2 what BIC gains.
    """
    model, report = fitted
    log_n = 2.0 * (report.log_likelihood - report.bic_score) / report.n_parameters
    tree, kept = model.tree, []
    for above, child in tree.edges.tolist():
        free = (int(model.n_states[above]) - 1) * (int(model.n_states[child]) - 1)
        joint = model.joint(above, child) if free > 0 else np.ones((1, 1))
        apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        if free <= 0 or np.exp(log_n) * rel_entr(joint, apart).sum() >= 0.5 * free * log_n:
            kept.append(child)
    below = np.array(kept, np.int64)
    edges = np.column_stack([tree.parent[below], below])
    return Tree.from_edges(edges, tree.n_observed, tree.length[below], tree.names, minimal=True)

"""Mixed columns: how many states the hidden variables have, and searches on binned numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from latentree.data import cut_table
from latentree.distances import Sample
from latentree.em import Binning, Budget, Fitted, as_leaves, fit_parameters
from latentree.errors import ModelError
from latentree.tree import Tree
from latentree.typing import IntArray, Progress

PRIOR = 1.0
"""Rows of prior weight where nothing is said: a label that no row of a state has stays possible."""

MOST_STATES = 32

_TRIAL = Budget(tolerance=1e-6, max_steps=200)
_PATIENCE = 2  # numbers of states tried after the best score so far
_HELD_OUT = 4  # a fourth of the rows is held out


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
) -> Fitted:
    """Fit a mixed model to a tree; hidden variables get the number of states that scores best.

    Parameters
    ----------
    tree : Tree
        Columns of numbers that are inner nodes get a hidden variable in their place.
    sample : Sample
        Of the family "mixed".
    n_states : int or array, optional
        Numbers of states of the hidden variables. By default they all have the same number, which
        grows as long as the criterion rises.
    criterion : {"bic", "aic", "cv"}
        What decides on it; "cv" is the likelihood of a fourth of the rows that are held out.
    max_states : int
        Most states to try.
    prior_weight : float
        Weight of the prior, as a number of rows; one row where it is 0.
    n_starts, budget, random_state, progress, checkpoint
        As in :func:`latentree.fit_parameters`.

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
    notes: tuple[str, ...] = ()
    if n_states is None and tree.n_hidden:
        limit = math.inf if budget is None else budget.time_limit
        deadline = time.monotonic() + 0.5 * limit
        n_states, note = _chosen_states(tree, sample, criterion, max_states, deadline, fit)
        notes = (note,)
    final = fit_parameters(
        tree, sample, n_states=n_states, budget=budget, progress=progress, checkpoint=checkpoint,
        **fit,
    )  # fmt: skip
    report = replace(final.report, notes=(*final.report.notes, *notes))
    return Fitted(with_lengths(final.model), report.timed(time.perf_counter() - clock))


def with_lengths(model: Any) -> Any:
    """Return a mixed model whose tree has −log of maximal correlations for lengths."""
    return type(model).from_theta(
        model.distance_tree(), model.n_states, model.theta, model.emissions, model.schema
    )


def _chosen_states(
    tree: Tree,
    sample: Sample,
    criterion: str,
    max_states: int,
    deadline: float,
    fit: dict[str, Any],
) -> tuple[int, str]:
    """Try numbers of states that grow, until the score has not risen for a while."""
    if criterion not in ("bic", "aic", "cv"):
        raise ModelError(f"criterion is {criterion!r}, but states are chosen by bic, aic or cv")
    score = _scorer(sample, criterion, fit)
    tried: dict[int, float] = {}
    for count in _counts(max_states):
        tried[count] = score(tree, count)
        best = max(tried, key=tried.__getitem__)
        if list(tried).index(best) + _PATIENCE < len(tried) or time.monotonic() > deadline:
            break
    shown = ", ".join(f"{count}: {value:,.1f}" for count, value in tried.items())
    return best, f"{best} states a hidden variable, by {criterion} ({shown})"


def _counts(most: int) -> Iterator[int]:
    """Numbers of states to try: one by one at first, later by a third more."""
    count = 2
    while count <= most:
        yield count
        count = max(count + 1, count * 4 // 3)


def _scorer(sample: Sample, criterion: str, fit: dict[str, Any]) -> Callable[[Tree, int], float]:
    """Return what scores a tree with so many states."""
    if criterion == "cv":
        table = sample.parts.to_table()
        order = np.random.default_rng(fit["random_state"]).permutation(table.n_rows)
        cut = table.n_rows // _HELD_OUT
        held_out, kept = (table.take(np.sort(part)) for part in (order[:cut], order[cut:]))
        training = Sample(cut_table(kept))

    def score(tree: Tree, count: int) -> float:
        rows = training if criterion == "cv" else sample
        model, report = fit_parameters(tree, rows, n_states=count, budget=_TRIAL, **fit)
        if criterion == "cv":
            return float(model.total_log_likelihood(held_out))
        return report.bic_score if criterion == "bic" else report.aic_score

    return score


def learned_in_bins(
    learner: Callable[..., Fitted], sample: Sample, *, budget: Budget | None = None, **options: Any
) -> Fitted:
    """Learn a tree from binned numbers, and fit a mixed model to it.

    The learner sees a discrete table: columns with labels as they are, numbers in at most
    ``em.N_BINS`` bins. Its hidden variables keep their numbers of states; those that take the
    place of a column of numbers have as many as it has bins.

    Parameters
    ----------
    learner : callable
        Of this package.
    sample : Sample
        Of the family "mixed".
    budget : Budget, optional
        When EM stops.
    **options
        Options of the learner, of which ``prior_weight``, ``random_state`` and ``progress`` are
        for the final fit too.

    Returns
    -------
    Fitted
        ``model, report``.
    """
    table = sample.parts.to_table()
    binned = Sample(cut_table(Binning.of(table).table(table)))
    found = learner(binned, budget=budget, **options)
    tree = as_leaves(found.model.tree, sample.cardinalities == 0)
    states = found.model.n_states[sample.n_columns :]
    inner = np.flatnonzero(
        (sample.cardinalities == 0) & (found.model.tree.degrees[: sample.n_columns] > 1)
    )
    n_states = np.concatenate([states, binned.cardinalities[inner]])
    common = {name: options[name] for name in ("random_state", "progress") if name in options}
    prior = options.get("prior_weight", 0.0)
    fitted = fit_mixed(tree, sample, n_states=n_states, prior_weight=prior, budget=budget, **common)
    note = "the tree was searched on binned numbers"
    return Fitted(fitted.model, replace(fitted.report, notes=(*fitted.report.notes, note)))

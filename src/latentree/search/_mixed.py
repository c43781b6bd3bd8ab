"""Mixed columns: how many states the hidden variables have, and searches on binned numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree.data import cut_table
from latentree.distances import Sample
from latentree.em import Binning, Budget, Fitted, as_leaves, fit_parameters, split_hidden
from latentree.errors import ModelError
from latentree.tree import Tree, hung_as_leaves
from latentree.typing import IntArray, Progress

PRIOR = 1.0
"""Rows of prior weight where nothing is said: a label that no row of a state has stays possible."""

MOST_STATES = 64
"""Growth ends by itself; this bounds the time that it takes."""

_FIRST = Budget(tolerance=1e-6, max_steps=200)
_TRIAL = Budget(tolerance=1e-6, max_steps=60)
"""When EM stops that goes on from split states: most of what it gains it gains at once."""

_MOST_GROUPS = 16  # of hidden variables that grow together: trials cost as much for any tree
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
        Numbers of states of the hidden variables. By default each grows as long as the criterion
        rises. A column of numbers beside a column of categories has one distribution for each of
        them; a hidden variable takes the place of such categories where the criterion prefers it.
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
    if n_states is None:
        limit = math.inf if budget is None else budget.time_limit
        deadline = time.monotonic() + 0.5 * limit
        apart = _numbers_apart(tree, sample.cardinalities == 0)
        trees = [tree] if apart is tree else [tree, apart]
        grown = [_grown(each, sample, criterion, max_states, deadline, fit) for each in trees]
        best = max(grown, key=lambda each: each.score)
        tree, notes = best.model.tree, best.notes(criterion)
        fit = {"prior_weight": fit["prior_weight"], "start": best.model}
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


def _numbers_apart(tree: Tree, emits: NDArray[np.bool_]) -> Tree:
    """Return the tree in which hidden variables take the place of categories beside numbers.

    Of a pair of a category and a number nothing can hang; there, and where numbers hang from hidden
    variables already, nothing changes.
    """
    above = np.unique(tree.parent[: tree.n_observed][emits])
    return hung_as_leaves(tree, above[(above >= 0) & (above < tree.n_observed)])


class _Grown(NamedTuple):
    """A model whose numbers of states have grown, and its score."""

    score: float
    model: Any

    def notes(self, criterion: str) -> tuple[str, ...]:
        """Say how many states there are."""
        states = self.model.n_states[self.model.tree.n_observed :]
        if not states.size:
            return ()
        least, most = int(states.min()), int(states.max())
        shown = f"{least}" if least == most else f"{least} to {most}"
        return (f"{shown} states a hidden variable, by {criterion} ({self.score:,.1f})",)


def _grown(
    tree: Tree,
    sample: Sample,
    criterion: str,
    max_states: int,
    deadline: float,
    fit: dict[str, Any],
) -> _Grown:
    """Let numbers of states grow from 2 as long as the score rises.

    One group of hidden variables after the other gets a third more states, or twice as many if
    that does not pay: its heaviest states are split, and EM goes on from there. A group that does
    not gain stays as it is.
    """
    rows, score = _scorer(sample, criterion, fit["random_state"])
    rng = np.random.default_rng(fit["random_state"])
    best = fit_parameters(tree, rows, n_states=2, budget=_FIRST, **fit)
    highest = score(best)
    hidden = slice(tree.n_observed, None)

    def gains(group: IntArray) -> bool:
        nonlocal best, highest
        for third in (4, 6):
            states = best.model.n_states[hidden].copy()
            more = np.maximum(states[group] + 1, states[group] * third // 3)
            states[group] = np.minimum(more, max_states)
            if time.monotonic() > deadline or (states == best.model.n_states[hidden]).all():
                return False
            start = split_hidden(best.model, states, rng)
            trial = fit_parameters(
                tree, rows, start=start, prior_weight=fit["prior_weight"], budget=_TRIAL
            )
            if score(trial) > highest:
                best, highest = trial, score(trial)
                return True
        return False

    n_groups = max(1, min(tree.n_hidden, _MOST_GROUPS))
    growing = [group for group in np.array_split(np.arange(tree.n_hidden), n_groups) if group.size]
    while growing:
        growing = [group for group in growing if gains(group)]
    return _Grown(highest, best.model)


def _scorer(
    sample: Sample, criterion: str, random_state: Any
) -> tuple[Sample, Callable[[Fitted], float]]:
    """Return the rows to fit, and what scores a fit."""
    if criterion == "bic":
        return sample, lambda fitted: fitted.report.bic_score
    if criterion == "aic":
        return sample, lambda fitted: fitted.report.aic_score
    if criterion != "cv":
        raise ModelError(f"criterion is {criterion!r}, but states are chosen by bic, aic or cv")
    table = sample.parts.to_table()
    order = np.random.default_rng(random_state).permutation(table.n_rows)
    cut = table.n_rows // _HELD_OUT
    held_out, kept = (table.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    training = Sample(cut_table(kept))
    return training, lambda fitted: float(fitted.model.total_log_likelihood(held_out))


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

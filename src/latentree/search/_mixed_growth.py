"""How many states the hidden variables of mixed columns have: they grow as long as it pays.

A penalized likelihood (BIC, AIC) judges fits to all rows. Rows that are held out judge fits to the
others: EM stops where they stop gaining, more states must gain more than chance would give them,
and the weight of the prior follows them too. Of fewer than ``ENOUGH_ROWS`` rows every
fourth is held out in turn, in four fits that grow together, so that all rows judge.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from latentree.data import Table, cut_table
from latentree.distances import Sample
from latentree.em import (
    GROUPS,
    Budget,
    Fitted,
    climb_by_held_out,
    dealt_folds,
    dealt_groups,
    error_of_sum,
    fit_parameters,
    held_out_split,
    split_hidden,
    without_fold,
)
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

ENOUGH_ROWS = 5_000
"""From so many rows on, one part of them judges alone."""
FINAL_STEPS = 20
"""Steps of EM on all rows, after held-out rows have decided."""
FACTOR = 3.0
"""By which the weight of the prior changes as long as held-out rows gain."""

_FIRST = Budget(tolerance=1e-6, max_steps=200)
_TRIAL = Budget(tolerance=1e-6, max_steps=60)
"""When EM stops that goes on from split states: most of what it gains it gains at once."""

_MOST_GROUPS = 16  # of hidden variables that grow together: trials cost as much for any tree


@dataclass(frozen=True, eq=False)
class Candidate:
    """Models with the same tree and numbers of states, and what judges them."""

    models: Sequence[Any]
    values: FloatArray
    """A score, or the log-likelihood of every group of held-out rows."""
    prior_weight: float

    @property
    def score(self) -> float:
        """The higher the better."""
        return float(self.values.sum())

    @property
    def n_states(self) -> IntArray:
        """Numbers of states of the hidden variables."""
        model = self.models[0]
        return np.asarray(model.n_states[model.tree.n_observed :])


class Judge(Protocol):
    """Fits candidates and compares them."""

    def first(self, tree: Tree) -> Candidate:
        """Fit a tree whose hidden variables have two states."""

    def trial(self, starts: Sequence[Any], prior_weight: float) -> Candidate:
        """Go on from models whose states were split."""

    def is_better(self, candidate: Candidate, other: Candidate) -> bool:
        """Whether a candidate with more states is worth them."""


class Penalized:
    """Judges by a penalized likelihood of all rows."""

    def __init__(self, sample: Sample, criterion: str, fit: dict[str, Any]) -> None:
        self.sample, self.criterion, self.fit = sample, criterion, fit

    def first(self, tree: Tree) -> Candidate:
        """Fit a tree whose hidden variables have two states."""
        fitted = fit_parameters(tree, self.sample, n_states=2, budget=_FIRST, **self.fit)
        return self._judged(fitted, self.fit["prior_weight"])

    def trial(self, starts: Sequence[Any], prior_weight: float) -> Candidate:
        """Go on from a model whose states were split."""
        [start] = starts
        return self._judged(
            fit_parameters(
                start.tree, self.sample, start=start, prior_weight=prior_weight, budget=_TRIAL
            ),
            prior_weight,
        )

    def _judged(self, fitted: Fitted, prior_weight: float) -> Candidate:
        score = getattr(fitted.report, f"{self.criterion}_score")
        return Candidate([fitted.model], np.array([score]), prior_weight)

    def is_better(self, candidate: Candidate, other: Candidate) -> bool:
        """Whether the score is higher."""
        return candidate.score > other.score


class HeldOut:
    """Judges by rows that are held out, in one fit or in several that hold out other rows."""

    def __init__(
        self,
        sample: Sample,
        fit: dict[str, Any],
        held_out: Table | None = None,
        fraction: float | None = None,
    ) -> None:
        self.fit = fit
        table = sample.parts.to_table()
        rng = np.random.default_rng(fit["random_state"])
        if held_out is not None:
            splits = [(table, held_out)]
        elif fraction is not None or table.n_rows >= ENOUGH_ROWS:
            splits = [held_out_split(table, fraction, rng)]
        else:
            folds = dealt_folds(table.n_rows, rng)
            splits = [(without_fold(table, fold), table.take(fold)) for fold in folds]
        n_groups = -(-GROUPS // len(splits))  # at least so many in all fits together
        self.splits = [
            (Sample(cut_table(kept)), dealt_groups(rows, n_groups)) for kept, rows in splits
        ]

    def first(self, tree: Tree) -> Candidate:
        """Fit a tree whose hidden variables have two states."""
        starts = [
            fit_parameters(tree, rows, n_states=2, budget=_FIRST, **self.fit).model
            for rows, _ in self.splits
        ]
        return self.trial(starts, self.fit["prior_weight"])

    def trial(self, starts: Sequence[Any], prior_weight: float) -> Candidate:
        """Go on from models whose states were split, as long as the held-out rows gain."""
        models, values = [], []
        for (rows, held_out), start in zip(self.splits, starts, strict=True):
            model, each = climb_by_held_out(start, rows, held_out, prior_weight)
            models.append(model)
            values.append(each)
        return Candidate(models, np.concatenate(values), prior_weight)

    def is_better(self, candidate: Candidate, other: Candidate) -> bool:
        """Whether held-out rows gain more than the standard error of the gain."""
        gains = candidate.values - other.values
        return float(gains.sum()) > error_of_sum(gains)

    def smoothed(self, best: Candidate, deadline: float) -> Candidate:
        """Make the prior stronger, or weaker, as long as held-out rows gain."""
        for factor in (FACTOR, 1.0 / FACTOR):
            before = best
            while time.monotonic() < deadline:
                trial = self.trial(best.models, best.prior_weight * factor)
                if trial.score <= best.score:
                    break
                best = trial
            if best is not before:
                return best
        return best


def grown(
    judge: Judge, tree: Tree, max_states: int, deadline: float, rng: np.random.Generator
) -> Candidate:
    """Let numbers of states grow from 2 as long as a judge finds it worth while.

    One group of hidden variables after the other gets a third more states, or twice as many if
    that does not pay: its heaviest states are split, and EM goes on from there. A group that does
    not gain stays as it is.
    """
    best = judge.first(tree)

    def gains(group: IntArray) -> bool:
        nonlocal best
        for third in (4, 6):
            states = best.n_states.copy()
            more = np.maximum(states[group] + 1, states[group] * third // 3)
            states[group] = np.minimum(more, max_states)
            if time.monotonic() > deadline or (states == best.n_states).all():
                return False
            starts = [split_hidden(model, states, rng) for model in best.models]
            trial = judge.trial(starts, best.prior_weight)
            if judge.is_better(trial, best):
                best = trial
                return True
        return False

    n_groups = max(1, min(tree.n_hidden, _MOST_GROUPS))
    growing = [group for group in np.array_split(np.arange(tree.n_hidden), n_groups) if group.size]
    while growing:
        growing = [group for group in growing if gains(group)]
    return best


def learned_from_all(best: Candidate, sample: Sample, budget: Budget) -> Fitted:
    """Take a few steps of EM on all rows, those that were held out included."""
    budget = replace(
        budget, max_steps=min(FINAL_STEPS, budget.max_steps), tolerance=0.0, accelerate=False
    )
    model, report = fit_parameters(
        best.models[0].tree, sample, start=best.models[0], prior_weight=best.prior_weight,
        budget=budget,
    )  # fmt: skip
    return Fitted(model, replace(report, method="em by held-out rows", converged=True, notes=()))

"""Committees of trees for prediction, each of which has other rows held out.

The rows are dealt into ``FOLDS`` folds, and a tree is learned without each of them; the rows left
out decide on its size, by cross-validation, and it learns from them in the end. The next round
deals the rows anew. The mean density of all trees predicts better than each of them, as each is
sure of other things: with R independent trees the mean log-density is about L∞ − c/R.

After two rounds and more c is known: every row was left out once a round, and the mean density of
the trees that left it out rises by c·(1 − 1/r) in r rounds. The next round would raise that of all
trees by c/(FOLDS·r·(r + 1)). Rounds end when this is a trace, or when they would take too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from latentree.data import Table, cut_table, stacked
from latentree.distances import Sample
from latentree.em import Budget, FitReport, Fitted, HeldOutFit, run_together
from latentree.models import DiscreteTreeModel, TreeMixture, with_schema
from latentree.search._mixture import checked_number
from latentree.typing import FloatArray, IntArray

Prepare = Callable[[Sample, Table, Budget, int | None], HeldOutFit]
"""Prepares a fit to rows while others are held out: budget, and most states of its choice."""

FOLDS = 4
"""A fourth of the rows decides: fewer choose badly, more are missing in the tree."""
MOST_ROUNDS = 4
"""Sixteen trees have 15/16 of what averaging can gain."""
TRACE = 1e-4
"""Gain, as a share of the log-likelihood a row, for which no round is run."""
MOST_WORK = 1e11
"""Products of all trees: no further round begins that would exceed it (a minute or two)."""


def fold_mixture(
    sample: Sample,
    prepare: Prepare,
    n_trees: int | str,
    *,
    held_out: Table | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
) -> Fitted:
    """Learn a mixture of trees, each of which has other rows held out.

    Parameters
    ----------
    sample : Sample
    prepare : callable
        Prepares a fit to rows while others are held out. These decide on the size of all trees of
        a round together, and in the end the tree learns from them too.
    n_trees : int or "auto"
        Number of trees. With "auto" ``FOLDS``, and as many again as long as rows that are left out
        gain by it and the work is not too much.
    held_out : Table, optional
        More rows: all rows are held out in turn.
    budget : Budget, optional
        Most passes of every tree, and seconds for all.
    random_state : int or Generator, optional

    Returns
    -------
    Fitted
        ``model, report``. Components have equal weights.
    """
    rng = np.random.default_rng(random_state)
    table = sample.parts.to_table()
    if held_out is not None:
        table = stacked(table, held_out)
    wanted = None if n_trees == "auto" else checked_number(n_trees)
    committee = _Committee(table, prepare, budget or Budget(), rng)
    committee.grow(wanted)
    mixture = TreeMixture(
        [with_schema(model, table.schema) for model in committee.models],
        np.ones(len(committee.models)),
    )
    return Fitted(mixture, committee.report(mixture))


def gain_of_a_round(densities: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Estimate what the mean log-density of all trees gains by one round more.

    Parameters
    ----------
    densities : array of float of shape (n_rounds, n_rows)
        Log-density of every row under the tree of each round that left it out.
    weights : array of float
        Weight of every row.

    Returns
    -------
    gain : float
        Infinite after one round, which tells nothing.
    height : float
        Mean log-density of the rows under the trees that left them out.
    """
    n_rounds = len(densities)
    together = logsumexp(densities, axis=0) - np.log(n_rounds)
    height = float(np.average(together, weights=weights))
    if n_rounds == 1:
        return np.inf, height
    alone = float(np.average(densities.mean(axis=0), weights=weights))
    spread = (height - alone) * n_rounds / (n_rounds - 1)  # c of the text above
    return spread / (FOLDS * n_rounds * (n_rounds + 1)), height


@dataclass(eq=False)
class _Committee:
    """Trees of all rounds so far."""

    table: Table
    prepare: Prepare
    budget: Budget
    rng: np.random.Generator
    models: list[DiscreteTreeModel] = field(default_factory=list)
    reports: list[FitReport] = field(default_factory=list)
    densities: list[FloatArray] = field(default_factory=list)
    work: float = 0.0
    most_states: int | None = None
    stopped: str = ""

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.budget.time_limit

    def grow(self, n_trees: int | None) -> None:
        """Run rounds until there are so many trees, or as long as they pay."""
        self._round(n_trees or FOLDS)
        while not self.stopped and self._needs_more(n_trees):
            left = FOLDS if n_trees is None else n_trees - len(self.models)
            try:
                self._round(left)
            except KeyboardInterrupt:
                self.stopped = "interrupted: the trees of the rounds before are kept"

    def _needs_more(self, n_trees: int | None) -> bool:
        if n_trees is not None:
            return len(self.models) < n_trees
        n_rounds = len(self.densities)
        if n_rounds == MOST_ROUNDS or self.work * (n_rounds + 1) / n_rounds > MOST_WORK:
            return False
        gain, height = gain_of_a_round(np.array(self.densities), self.table.weight_array())
        return gain > TRACE * abs(height)

    def _round(self, n_trees: int) -> None:
        """Learn a tree without each fold, at most so many; a later round that is cut is dropped."""
        budget = replace(self.budget, time_limit=self.deadline - time.monotonic())
        folds = self._dealt()[:n_trees]
        fits = [self.prepare(*self._parted(fold), budget, self.most_states) for fold in folds]
        results = run_together(fits)
        cut = [report.notes[0] for _, report in results if not report.converged]
        if cut:
            self.stopped = cut[0]
            if self.models:
                return
        self.models += [model for model, _ in results]
        self.reports += [report for _, report in results]
        self.work += sum(fit.work for fit in fits)
        self.most_states = self.most_states or max(fit.chosen_states for fit in fits)
        density = np.full(self.table.n_rows, np.nan)
        for fold, fit in zip(folds, fits, strict=True):
            density[fold] = fit.held_out_densities()
        self.densities.append(density)

    def _dealt(self) -> list[IntArray]:
        order = self.rng.permutation(self.table.n_rows)
        return [np.sort(order[number::FOLDS]) for number in range(FOLDS)]

    def _parted(self, fold: IntArray) -> tuple[Sample, Table]:
        """Return the rows to learn from, and those of the fold."""
        kept = np.setdiff1d(np.arange(self.table.n_rows), fold)
        return Sample(cut_table(self.table.take(kept))), self.table.take(fold)

    def report(self, mixture: TreeMixture) -> FitReport:
        """Return the report of all trees."""
        reports = self.reports
        notes = [f"tree {k}: {note}" for k, each in enumerate(reports) for note in each.notes]
        if self.stopped and all(each.converged for each in reports):
            notes.insert(0, f"{len(reports)} trees: {self.stopped}")
        return FitReport(
            method="em by held-out rows",
            log_likelihood=mixture.total_log_likelihood(self.table),
            n_parameters=mixture.n_parameters,
            n_samples=self.table.total_weight,
            converged=not self.stopped,
            n_steps=sum(each.n_steps for each in reports),
            held_out_log_likelihoods=sum((each.held_out_log_likelihoods for each in reports), ()),
            notes=tuple(notes),
        )

"""Committees of trees for prediction, each of which has other rows held out.

The rows are dealt into ``FOLDS`` folds, and a member of the committee is learned without each of
them. The rows left out decide on its size, by cross-validation, and it learns from them in the end.
A member is one tree, or one tree for each class of rows: a flat mixture finds the classes, and
every tree learns from all rows, weighted by the probability of its class plus ``SHARED``, so that
rare classes are drawn toward what all rows share. Classes double as long as the rows left out gain
more than the standard error of the gain.

The next round deals the rows anew. The mean density of all members predicts better than each of
them, as each is sure of other things: with R independent members the mean log-density is about
L∞ − c/R. After two rounds and more c is known: every row was left out once a round, and the mean
density of the members that left it out rises by c·(1 − 1/r) in r rounds. The next round would raise
that of all members by c/(FOLDS·r·(r + 1)). Rounds end when this is a trace, or when they would take
too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from latentree.data import Table, cut_table, stacked
from latentree.distances import Sample
from latentree.em import (
    FOLDS,
    Budget,
    FitReport,
    Fitted,
    HeldOutFit,
    dealt_folds,
    fit_parameters,
    run_together,
    without_fold,
)
from latentree.models import DiscreteTreeModel, TreeMixture, with_schema
from latentree.search._latent_class import star
from latentree.search._mixture import checked_number
from latentree.typing import FloatArray, IntArray

Prepare = Callable[[Sample, Table, Budget, int | None], HeldOutFit]
"""Prepares a fit to rows while others are held out: budget, and most states of its choice."""

MOST_ROUNDS = 4
"""Sixteen members have 15/16 of what averaging can gain."""
MOST_CLASSES = 4
MOST_TREES = 32
"""Of all members together: answers take time in proportion."""
ROWS_A_CLASS = 300
"""Rows that a class should have on average: fewer say little of its tree."""
SHARED = 0.02
"""What every row counts in every class, beside its probability there."""
TRACE = 1e-4
"""Gain, as a share of the log-likelihood a row, for which no round is run."""
MOST_WORK = 1e11
"""Products of all trees: nothing more begins that would exceed it (a minute or two)."""
MOST_CLASS_WORK = 3e11
"""Products at which trees of classes are given up: each decides on its states alone, so that one
may take far longer than the trees of all rows did."""


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
        Prepares a fit to rows while others are held out. These decide on its size, and in the end
        the tree learns from them too.
    n_trees : int or "auto"
        Number of trees, one a member. With "auto" ``FOLDS`` members, of as many classes as rows
        that are left out prefer, and as many again as long as these rows gain by it and the work is
        not too much.
    held_out : Table, optional
        More rows: all rows are held out in turn.
    budget : Budget, optional
        Most passes of every tree, and seconds for all.
    random_state : int or Generator, optional

    Returns
    -------
    Fitted
        ``model, report``. Members have equal weights.
    """
    rng = np.random.default_rng(random_state)
    table = sample.parts.to_table()
    if held_out is not None:
        table = stacked(table, held_out)
    committee = _Committee(table, prepare, budget or Budget(), rng)
    if n_trees == "auto":
        committee.grow()
    else:
        committee.fill(checked_number(n_trees))
    members = committee.members
    models = [with_schema(model, table.schema) for each in members for model in each.models]
    mixture = TreeMixture(models, np.concatenate([each.weights for each in members]))
    return Fitted(mixture, committee.report(mixture))


def gain_of_a_round(densities: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Estimate what the mean log-density of all members gains by one round more.

    Parameters
    ----------
    densities : array of float of shape (n_rounds, n_rows)
        Log-density of every row under the member of each round that left it out.
    weights : array of float
        Weight of every row.

    Returns
    -------
    gain : float
        Infinite after one round, which tells nothing.
    height : float
        Mean log-density of the rows under the members that left them out.
    """
    n_rounds = len(densities)
    together = logsumexp(densities, axis=0) - np.log(n_rounds)
    height = float(np.average(together, weights=weights))
    if n_rounds == 1:
        return np.inf, height
    alone = float(np.average(densities.mean(axis=0), weights=weights))
    spread = (height - alone) * n_rounds / (n_rounds - 1)  # c of the text above
    return spread / (FOLDS * n_rounds * (n_rounds + 1)), height


def is_gain(densities: FloatArray, others: FloatArray, weights: FloatArray) -> bool:
    """Whether rows gain more, in the mean, than the standard error of the gain."""
    gains = densities - others
    mean = np.average(gains, weights=weights)
    variance = np.average((gains - mean) ** 2, weights=weights)
    return bool(mean > np.sqrt(variance / gains.size))


class Member(NamedTuple):
    """What is learned without one fold: one tree, or one for each class of rows."""

    models: Sequence[DiscreteTreeModel]
    weights: FloatArray
    reports: Sequence[FitReport]
    density: FloatArray
    """Log-density of the rows of the fold before the member learned from them."""


@dataclass(eq=False)
class _Committee:
    """Members of all rounds so far."""

    table: Table
    prepare: Prepare
    budget: Budget
    rng: np.random.Generator
    members: list[Member] = field(default_factory=list)
    densities: list[FloatArray] = field(default_factory=list)
    """Of every round, log-densities of the rows under the members that left them out."""
    n_classes: int = 1
    work: float = 0.0
    last_work: float = 0.0
    """Products of all rounds, and of the last one."""
    most_states: int | None = None
    stopped: str = ""

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.budget.time_limit

    def fill(self, n_members: int) -> None:
        """Run rounds until there are so many members."""
        while not self.stopped and len(self.members) < n_members:
            self._keep(self._round(n_members - len(self.members)))

    def grow(self) -> None:
        """Choose classes, then run rounds as long as they pay."""
        self._keep(self._round(FOLDS))
        while not self.stopped and self._may_have_more_classes():
            self.n_classes *= 2
            found = self._round(FOLDS)
            density = self._left_out(found)
            if not found or not is_gain(density, self.densities[0], self.table.weight_array()):
                self.n_classes //= 2
                break
            self.members, self.densities = [], []
            self._keep(found)
        while not self.stopped and self._needs_more():
            self._keep(self._round(FOLDS))

    def _may_have_more_classes(self) -> bool:
        n_classes = 2 * self.n_classes
        is_quick = self.work + 2.0 * self.last_work <= MOST_WORK
        are_enough = self.table.n_rows >= n_classes * ROWS_A_CLASS
        return is_quick and are_enough and n_classes <= MOST_CLASSES and len(self.table.names) >= 3

    def _needs_more(self) -> bool:
        n_rounds = len(self.densities)
        n_trees = FOLDS * self.n_classes * (n_rounds + 1)
        if n_rounds == MOST_ROUNDS or n_trees > MOST_TREES:
            return False
        if self.work + self.last_work > MOST_WORK:
            return False
        gain, height = gain_of_a_round(np.array(self.densities), self.table.weight_array())
        return gain > TRACE * abs(height)

    def _keep(self, found: list[tuple[IntArray, Member]]) -> None:
        if found:
            self.members += [member for _, member in found]
            self.densities.append(self._left_out(found))

    def _left_out(self, found: list[tuple[IntArray, Member]]) -> FloatArray:
        density = np.full(self.table.n_rows, np.nan)
        for fold, member in found:
            density[fold] = member.density
        return density

    def _round(self, n_members: int) -> list[tuple[IntArray, Member]]:
        """Learn a member without each fold, at most so many.

        A round that is cut short is dropped, unless it is the first.
        """
        before = self.work
        folds = dealt_folds(self.table.n_rows, self.rng)[:n_members]
        try:
            learn = self._trees if self.n_classes == 1 else self._classes
            members = learn(folds)
        except KeyboardInterrupt:
            if not self.members:
                raise
            self.stopped, members = "interrupted: what was learned before is kept", []
        self.last_work = self.work - before
        return list(zip(folds, members, strict=True)) if members else []

    def _trees(self, folds: Sequence[IntArray]) -> list[Member]:
        """Return members of one tree, on whose size the rows of all folds decide together."""
        fits = [self._prepared(self.table, fold, self.most_states) for fold in folds]
        results = self._run(fits)
        self.most_states = self.most_states or max(fit.chosen_states for fit in fits)
        return [
            Member([model], np.ones(1), [report], fit.held_out_densities())
            for fit, (model, report) in zip(fits if results else [], results, strict=True)
        ]

    def _classes(self, folds: Sequence[IntArray]) -> list[Member]:
        """Return members of one tree for each class of rows, each of which decides alone."""
        members = []
        for fold in folds:
            share = self._shares(fold)
            learned, densities = [], []
            for mine in share.T:
                if self.work > MOST_CLASS_WORK:
                    return []
                weights = self.table.weight_array() * (mine + SHARED)
                rows = Table(self.table.values, self.table.schema, weights)
                fit = self._prepared(rows, fold, None)
                learned += self._run([fit])
                if self.stopped:
                    return []
                densities.append(fit.held_out_densities())
            weights = np.average(share, axis=0, weights=self.table.weight_array())
            density = logsumexp(np.array(densities), axis=0, b=weights[:, None])
            models, reports = zip(*learned, strict=True)
            members.append(Member(models, weights, reports, density))
        return members

    def _shares(self, fold: IntArray) -> FloatArray:
        """Return the probability of every class given every row, learned without a fold."""
        kept = self._without(self.table, fold)
        model, _ = fit_parameters(
            star(kept), kept, n_states=self.n_classes, prior_weight=1.0, random_state=self.rng
        )
        node = model.tree.n_observed
        return np.asarray(model.posterior(self.table, [node])[node])

    def _run(self, fits: list[HeldOutFit]) -> list[Fitted]:
        """Run fits; those that are cut short are dropped if there is something else."""
        if self.stopped:
            return []
        results = run_together(fits)
        self.work += sum(fit.work for fit in fits)
        cut = [report.notes[0] for _, report in results if not report.converged]
        if cut:
            self.stopped = cut[0]
        return [] if cut and self.members else results

    def _prepared(self, table: Table, fold: IntArray, most_states: int | None) -> HeldOutFit:
        budget = replace(self.budget, time_limit=self.deadline - time.monotonic())
        return self.prepare(self._without(table, fold), table.take(fold), budget, most_states)

    def _without(self, table: Table, fold: IntArray) -> Sample:
        return Sample(cut_table(without_fold(table, fold)))

    def report(self, mixture: TreeMixture) -> FitReport:
        """Return the report of all trees."""
        reports = [report for member in self.members for report in member.reports]
        listed = enumerate(reports[:FOLDS])
        notes = [f"tree {k}: {note}" for k, each in listed for note in each.notes]
        more = [model for member in self.members for model in member.models][FOLDS:]
        if more:
            most = max(int(model.n_states.max()) for model in more)
            notes.append(f"{len(more)} trees more: at most {most} states a variable")
        if self.n_classes > 1:
            notes.insert(0, f"{self.n_classes} classes of rows, with a tree each")
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

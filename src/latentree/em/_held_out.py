"""Fits for prediction: states, smoothing and stopping are chosen by held-out rows.

One driver for discrete and for mixed tables. EM runs on the other rows until the likelihood of the
held-out rows stops rising. Then states are split, and EM goes on from there; more states are kept
if the held-out rows gain more than the standard error of the gain. The strengths of the prior move,
each time the held-out rows are looked at, to where these gain most. In the end the way to the best
parameters is gone once more with all rows, the held-out ones included: with the same numbers of
states, passes and strengths. Where that would take too long, the best parameters take a few steps
of EM on all rows instead.

Several fits that hold out different rows decide together whether more states are better: that is
cross-validation. A family of models supplies what a fit begins with, a pass of EM, what held-out
rows say of a point, and how states are split.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from latentree.data import Table, cut_table, stacked
from latentree.distances import Sample
from latentree.em._climbing import TOLERANCE, Climb, Patience, Stage
from latentree.em._driver import INTERRUPTED, Budget, BudgetSpent, Problem, maximize
from latentree.em._growth import Group, grow, more_states
from latentree.em._held_rows import GROUPS, dealt_groups, error_of_sum
from latentree.em._report import FitReport, Fitted
from latentree.errors import ModelError
from latentree.inference import PassMemory
from latentree.models import Model
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray, Progress

# Constants were chosen on nltcs, plants and 1,500 rows of plants (docs/evidence/prediction.md).
FIRST = Budget(tolerance=1e-6, max_steps=200)
"""When EM stops where a fit begins with maximum likelihood."""
MOST_PASSES = 100
"""Passes over the training rows with the same numbers of states."""
PASSES_A_LOOK = 5
"""Passes between two looks at the held-out rows."""
MOST_STATES = 256
MOST_WORK = 2e11
"""Products of all passes: states are not split if that would exceed it (minutes on two cores)."""
MOST_WORK_TWICE = MOST_WORK / 8
"""Products of a fit that is done a second time, with all rows."""
FINAL_STEPS = 20
"""Full steps of EM on all rows in the end of a fit that is not."""
LAST_STEPS = 5
"""Full steps in the end of one that is: stepwise EM ends at what the last part of the rows says."""
ROWS_A_PART = 500
"""Rows of a part after which stepwise EM takes a step: it should say something of every state."""


class Leg(NamedTuple):
    """A part of the way to a point: passes with the same numbers of states."""

    hidden_states: IntArray
    strengths: tuple[FloatArray, ...]
    """Those of every ``PASSES_A_LOOK`` passes."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point, the strengths that it was found with, and what the held-out rows say of it."""

    stage: Stage[Any, Any]
    point: FloatArray
    strengths: FloatArray
    scores: FloatArray | None = None
    """Log-likelihood of every group of held-out rows, over the weight of all."""
    way: tuple[Leg, ...] = ()

    @property
    def score(self) -> float:
        """Mean log-likelihood of the held-out rows."""
        return -np.inf if self.scores is None else float(self.scores.sum())


def are_better(found: Sequence[Candidate], others: Sequence[Candidate]) -> bool:
    """Whether held-out rows gain more than a trace, and more than chance would give them."""
    gains = []
    for mine, other in zip(found, others, strict=True):
        if mine.scores is None or other.scores is None:
            return other.scores is None
        gains.append((mine.scores - other.scores) / len(found))
    every = np.concatenate(gains)
    trace = TOLERANCE * abs(float(np.mean([each.score for each in found])))
    return float(every.sum()) > max(trace, error_of_sum(every))


class HeldOutFit(ABC):
    """One fit of a tree whose states, smoothing and stopping held-out rows decide.

    Parameters
    ----------
    tree : Tree
    sample : Sample
        The rows that the tree was learned from: what is known of the columns.
    training : Sample
        Rows to learn from: those of the sample itself, or those of them that are not held out.
    held_out : Table
        Rows with the columns of the sample.
    n_states : int, optional
        States of every hidden node; left out, the held-out rows decide.
    most_states : int
        Most states that they may decide on.
    start : model, optional
        A model of the tree to begin with, and to be no worse than.
    n_groups : int
        Groups of held-out rows, from whose gains the standard error of the gain is known.
    budget : Budget
        Most passes with the same numbers of states, and seconds.
    rng : Generator
    progress : callable, optional
        Called with the number of passes and the mean log-likelihood of the held-out rows.
    """

    factors: Sequence[int]
    """By how many thirds numbers of states are multiplied, see :func:`grow`."""
    most_parts: int
    """Parts of the training rows, after each of which there is a step, at most."""

    def __init__(
        self,
        tree: Tree,
        sample: Sample,
        training: Sample,
        held_out: Table,
        *,
        n_states: int | None = None,
        most_states: int = MOST_STATES,
        start: Model | None = None,
        n_groups: int = GROUPS,
        budget: Budget,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> None:
        if n_states is not None and n_states < 1:
            raise ModelError(f"a hidden node cannot have {n_states} states")
        self.tree, self.sample = tree, sample
        self.n_states, self.most_states = n_states, n_states or most_states
        self.start, self.n_groups = start, n_groups
        self.budget, self.rng, self.progress = budget, rng, progress
        self.deadline = time.monotonic() + budget.time_limit
        self.memory = PassMemory()
        self.n_passes, self._n_allowed = 0, budget.max_steps
        self.work = 0.0
        self.trace: list[float] = []
        self.tried: dict[int, float] = {}
        self.has_begun = False
        self._take(training, held_out)

    def _take(self, training: Sample, held_out: Table) -> None:
        """Take the rows to learn from, and those that are held out."""
        self.training, self.held_out = training, held_out
        table = training.parts.to_table()
        self.weight = table.total_weight
        n_parts = int(np.clip(table.n_rows // ROWS_A_PART, 1, self.most_parts))
        order = self.rng.permutation(table.n_rows)
        self.parts = [table.take(np.sort(rows)) for rows in np.array_split(order, n_parts)]
        self.groups_of_rows = dealt_groups(held_out, self.n_groups)

    def _set_out(self, best: Candidate) -> None:
        """Begin with what is the best until a climb finds something better."""
        self.best = self.latest = self.decided = best
        self.has_begun = True

    def _fit_training_rows(self, problem: Problem, starts: Sequence[FloatArray]) -> Fitted:
        """Maximize the likelihood of the training rows, in the time that is left."""
        left = max(0.0, self.deadline - time.monotonic())
        return maximize(problem, starts, replace(FIRST, time_limit=left))

    # What a family supplies -----------------------------------------------------------------

    @abstractmethod
    def begin(self) -> Candidate:
        """Set out, and return where the first climb begins."""

    @abstractmethod
    def stage(self, hidden_states: IntArray) -> Stage[Any, Any]:
        """Compile the rows for numbers of states."""

    @abstractmethod
    def split_point(self, candidate: Candidate, stage: Stage[Any, Any]) -> FloatArray:
        """Return a point with the states of a stage: states become two that differ by noise."""

    @property
    @abstractmethod
    def groups(self) -> Sequence[Group]:
        """Hidden variables whose states grow together."""

    # Growing --------------------------------------------------------------------------------

    def split(self, candidate: Candidate, hidden_states: IntArray) -> Candidate:
        """Return a candidate with more states, from which to climb."""
        stage = self.stage(hidden_states)
        point = self.split_point(candidate, stage)
        return Candidate(stage, point, candidate.strengths, way=candidate.way)

    def climb(self, start: Candidate) -> Candidate:
        """Run EM until the held-out rows stop gaining; returns the best on the way."""
        stage, strengths = start.stage, start.strengths
        climb = Climb(stage, start.point)
        highest, used = start, [strengths]
        patience = Patience(highest.score, stage.patience)
        self._n_allowed = self.budget.max_steps
        for _ in range(MOST_PASSES // PASSES_A_LOOK):
            self._run_passes(climb, strengths)
            scores = climb.look()
            score = float(scores.sum())
            self._report(score)
            if score > highest.score:
                way = (*start.way, Leg(stage.hidden_states, tuple(used)))
                highest = self.latest = Candidate(stage, climb.point, strengths, scores, way)
            if patience.ends_at(score):
                break
            strengths = climb.stronger(strengths)
            used.append(strengths)
        most = int(stage.hidden_states.max(initial=1))
        self.tried[most] = max(highest.score, self.tried.get(most, -np.inf))
        return highest

    def _run_passes(self, climb: Climb[Any, Any], strengths: FloatArray) -> None:
        for _ in range(PASSES_A_LOOK):
            if not self._n_allowed:
                raise BudgetSpent(f"the limit of {self.budget.max_steps} passes")
            climb.run_pass(strengths)
            self._n_allowed -= 1
            self.n_passes += 1
            self.work += climb.stage.work

    def check_time(self) -> None:
        """Raise an exception if the time is up."""
        if time.monotonic() > self.deadline:
            raise BudgetSpent(f"the time limit of {self.budget.time_limit:g} s")

    def _report(self, score: float) -> None:
        self.trace.append(score)
        if self.progress is not None:
            self.progress(self.n_passes, score)

    # The result -----------------------------------------------------------------------------

    def learn_from_all(self) -> None:
        """Learn from all rows, the held-out ones included."""
        self.decided = self.best
        if self.work > MOST_WORK_TWICE:
            self.best = self._stepped(self.best, FINAL_STEPS)
            return
        again = copy(self)
        again.n_passes, again.work = 0, 0.0
        again._take(self._all_rows(), self.held_out.take(np.empty(0, np.int64)))
        self.best = replace(again.follow(self.best.way), scores=self.best.scores)
        self.work += again.work

    def _all_rows(self) -> Sample:
        if self.training is self.sample:  # and other rows were held out
            return Sample(cut_table(stacked(self.sample.parts.to_table(), self.held_out)))
        return self.sample

    def follow(self, way: Sequence[Leg]) -> Candidate:
        """Return the candidate at the end of a way that another fit has found."""
        found = self.begin()
        for number, leg in enumerate(way):
            if number:
                found = self.split(found, leg.hidden_states)
            climb = Climb(found.stage, found.point)
            self._n_allowed = self.budget.max_steps
            for strengths in leg.strengths:
                self._run_passes(climb, strengths)
            found = replace(found, point=climb.point, strengths=leg.strengths[-1])
        return self._stepped(found if way else self.best, LAST_STEPS)

    def _stepped(self, found: Candidate, n_steps: int) -> Candidate:
        """Take full steps of EM on all rows."""
        point = found.point
        for _ in range(n_steps):
            self.check_time()
            sums = found.stage.all_sums(point)
            point = found.stage.maximized(sums, point, found.strengths)
        return replace(found, point=point)

    def held_out_densities(self) -> FloatArray:
        """Log-likelihood of every held-out row before the model learned from it."""
        return self.decided.stage.model(self.decided.point).log_likelihood(self.held_out)

    @property
    def chosen_states(self) -> int:
        """Most states of a hidden variable of the best model."""
        return int(self.best.stage.hidden_states.max(initial=1))

    def result(self, stopped: str) -> Fitted:
        """Return the best model and the report; ``stopped`` says why it ended early, if so."""
        model = self.best.stage.model(self.best.point)
        report = FitReport(
            method="em by held-out rows",
            log_likelihood=self.best.stage.all_sums(self.best.point).log_likelihood,
            n_parameters=model.n_parameters,
            n_samples=self.weight + self.held_out.total_weight,
            converged=not stopped,
            n_steps=self.n_passes,
            held_out_log_likelihoods=tuple(self.trace),
            notes=(*([stopped] if stopped else []), *self._states_tried()),
        )
        return Fitted(model, report)

    def _states_tried(self) -> list[str]:
        states = self.best.stage.hidden_states
        if not self.tried or not states.size:
            return []
        tried = ", ".join(f"{most}: {score:.4f}" for most, score in self.tried.items())
        shown = " to ".join(str(number) for number in sorted({states.min(), states.max()}))
        return [f"{shown} states a hidden variable (held-out log-likelihood a row: {tried})"]


# The driver -------------------------------------------------------------------------------------


class JointFit:
    """Fits of the same columns that hold out different rows and decide on states together."""

    def __init__(self, fits: Sequence[HeldOutFit]) -> None:
        self.fits = fits
        for fit in fits:  # they run one after the other
            fit.memory = fits[0].memory
        self._found: list[Candidate] = []
        self._last_work = [0.0] * len(fits)

    @property
    def score(self) -> float:
        """Mean log-likelihood of the held-out rows of all fits."""
        return float(np.mean([fit.best.score if fit.has_begun else -np.inf for fit in self.fits]))

    def grow(self) -> None:
        """Split states as long as the held-out rows of all fits gain by it."""
        self._found = self._climbed([fit.begin() for fit in self.fits])
        # The first stage may well be no better than what the fits begin with: states are split
        # all the same.
        self._keep_if_better()
        first = self.fits[0]
        grow(self._try_more, first.groups, first.factors)

    def _try_more(self, group: Group, thirds: int) -> bool:
        """Climb with more states, and keep them if held-out rows gain enough."""
        states = [
            more_states(found.stage.hidden_states, group, thirds, self.fits[0].most_states)
            for found in self._found
        ]
        pairs = zip(states, self._found, strict=True)
        is_same = all(np.array_equal(mine, found.stage.hidden_states) for mine, found in pairs)
        if is_same or not self._is_affordable():
            return False
        before = self._found
        each = zip(self.fits, before, states, strict=True)
        self._found = self._climbed([fit.split(found, mine) for fit, found, mine in each])
        if self._keep_if_better():
            return True
        self._found = before
        return False

    def keep_latest(self) -> None:
        """Where there was no time to compare, keep whichever predicts better in each fit."""
        for fit in self.fits:
            if fit.has_begun and fit.latest.score > fit.best.score:
                fit.best = fit.latest

    def _climbed(self, starts: list[Candidate]) -> list[Candidate]:
        before = [fit.work for fit in self.fits]
        found = [fit.climb(start) for fit, start in zip(self.fits, starts, strict=True)]
        self._last_work = [fit.work - work for fit, work in zip(self.fits, before, strict=True)]
        return found

    def _is_affordable(self) -> bool:
        """Whether twice as many states, whose passes are four times the work, are not too much."""
        pairs = zip(self.fits, self._last_work, strict=True)
        work = max(fit.work + 4.0 * last for fit, last in pairs)
        return self.fits[0].n_states is not None or work <= MOST_WORK

    def _keep_if_better(self) -> bool:
        best = [fit.best for fit in self.fits]
        is_better = self.fits[0].n_states is not None or are_better(self._found, best)
        if is_better:
            for fit, found in zip(self.fits, self._found, strict=True):
                fit.best = found
        return is_better


def run_together(fits: Sequence[HeldOutFit]) -> list[Fitted]:
    """Run fits that hold out different rows, all of which decide on the states together.

    Parameters
    ----------
    fits : sequence of HeldOutFit
        Of the same columns.

    Returns
    -------
    list of Fitted
        The model and the report of each.
    """
    return _run([JointFit(fits)], len(fits))


def run_rivals(rivals: Sequence[Sequence[HeldOutFit]]) -> Fitted:
    """Run fits to several trees; returns the first fit to the tree that predicts best.

    Parameters
    ----------
    rivals : sequence of sequences of HeldOutFit
        Of each tree the fits that hold out different rows.

    Returns
    -------
    Fitted
        ``model, report``.
    """
    return _run([JointFit(fits) for fits in rivals], 1)[0]


def _run(rivals: Sequence[JointFit], n_results: int) -> list[Fitted]:
    stopped = _until_stopped([rival.grow for rival in rivals])
    if stopped:
        for rival in rivals:
            rival.keep_latest()
    best = max(rivals, key=lambda rival: rival.score).fits[:n_results]
    if not all(fit.has_begun for fit in best):  # interrupted before anything was fitted
        raise KeyboardInterrupt
    stopped = stopped or _until_stopped([fit.learn_from_all for fit in best])
    return [fit.result(stopped) for fit in best]


def _until_stopped(pieces_of_work: Sequence[Callable[[], None]]) -> str:
    """Do one piece of work after the other; returns why they ended early, or an empty string."""
    try:
        for work in pieces_of_work:
            work()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BudgetSpent as reason:
        return f"{reason} came before the held-out rows decided"
    return ""

"""Fits for prediction: states, smoothing and stopping are chosen by held-out rows.

EM runs on the other rows until the likelihood of the held-out rows stops rising. Then states are
split, and EM goes on from there; more states are kept if the held-out rows gain more than the
standard error of the gain. The strengths of the prior follow the held-out rows (``_stepwise``). In
the end the best run is replayed on all rows, the held-out ones included: with the same numbers of
states, passes and strengths. Where that would take too long, the best parameters take a few steps
of EM on all rows instead.

Several fits that hold out different rows decide together whether more states are better: that is
cross-validation.

A fit of a coded table begins with the tree in which every hidden node is a copy of the observed
node nearest to it: of a hidden Chow-Liu tree, that is the Chow-Liu tree. EM goes on from a noisy
copy, and the states of all hidden nodes are doubled together. Where columns are of many kinds,
hidden variables differ in the states that they need: a fit begins with two states per hidden
variable, fitted to the training rows by EM, and states of one group of hidden variables after the
other grow, by a third or to twice as many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from latentree.data import Table, cut_table, stacked
from latentree.distances import Sample
from latentree.em._driver import INTERRUPTED, Budget, BudgetSpent, maximize
from latentree.em._growth import Group, grow, more_states
from latentree.em._held_rows import GROUPS, dealt_groups, error_of_sum
from latentree.em._report import FitReport, Fitted
from latentree.em._starts import SOFTNESS, binned_starts, split_states, surrogate_start
from latentree.em._state_problem import Kinds
from latentree.em._stepwise import N_STRENGTHS, TOLERANCE, WEAKEST, Patience, Stage, StepwiseEM
from latentree.errors import ModelError
from latentree.inference import PassMemory
from latentree.models import Model
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray, Progress

# Constants were chosen on nltcs, plants and 1,500 rows of plants
# (docs/evidence/prediction.md).
FIRST = Budget(tolerance=1e-6, max_steps=200)
"""When EM stops where a fit begins with maximum likelihood."""
MOST_PASSES = 100
"""Passes over the training rows with the same numbers of states."""
PASSES_PER_SCORE = 5
"""Passes between two scores of the held-out rows."""
MOST_STATES = 256
MOST_WORK = 2e11
"""Products of all passes: states are not split if that would exceed it (minutes on two cores)."""
MOST_WORK_TWICE = MOST_WORK / 8
"""Products of a fit that is done a second time, with all rows."""
FINAL_STEPS = 20
"""Full steps of EM on all rows in the end of a fit that is not."""
LAST_STEPS = 5
"""Full steps in the end of one that is: stepwise EM ends at what the last part of the rows says."""
ROWS_PER_PART = 500
"""Rows of a part after which stepwise EM takes a step: it should say something of every state."""
MOST_PARTS = 8
"""More parts share fewer patterns, and tables are normalized after each."""
MOST_GROUPS = 16
"""Groups of hidden variables that grow together: the number of trials is about the same for any
tree."""
TWICE, BY_A_THIRD_OR_TWICE = (6,), (4, 6)
"""By how many thirds numbers of states grow: the next is tried where one does not pay."""


class Leg(NamedTuple):
    """A part of a run: passes with the same numbers of states."""

    hidden_states: IntArray
    strengths: tuple[FloatArray, ...]
    """Those of every ``PASSES_PER_SCORE`` passes."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point, the strengths that it was found with, and what the held-out rows say of it."""

    stage: Stage
    point: FloatArray
    strengths: FloatArray
    scores: FloatArray | None = None
    """Log-likelihood of every group of held-out rows, over the weight of all."""
    legs: tuple[Leg, ...] = ()
    """The run that led to the point."""

    @property
    def score(self) -> float:
        """Mean log-likelihood of the held-out rows."""
        return -np.inf if self.scores is None else float(self.scores.sum())


def are_better(candidates: Sequence[Candidate], others: Sequence[Candidate]) -> bool:
    """Whether held-out rows gain more than a trace, and more than chance would give them."""
    gains = []
    for candidate, other in zip(candidates, others, strict=True):
        if candidate.scores is None or other.scores is None:
            return other.scores is None
        gains.append((candidate.scores - other.scores) / len(candidates))
    every = np.concatenate(gains)
    trace = TOLERANCE * abs(float(np.mean([candidate.score for candidate in candidates])))
    return float(every.sum()) > max(trace, error_of_sum(every))


class HeldOutFit:
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
    prior_weight : float
        Weight of the prior to begin with, as a number of rows, if there are columns of many kinds.
    n_starts : int
        Starts of EM with the first numbers of states in that case.
    kinds : mapping, optional
        As in :class:`StateProblem`.
    budget : Budget
        Most passes with the same numbers of states, and seconds.
    rng : Generator
    progress : callable, optional
        Called with the number of passes and the mean log-likelihood of the held-out rows.
    """

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
        prior_weight: float = 0.0,
        n_starts: int = 1,
        kinds: Kinds | None = None,
        budget: Budget,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> None:
        if n_states is not None and n_states < 1:
            raise ModelError(f"a hidden node cannot have {n_states} states")
        self.tree, self.sample = tree, sample
        self.n_states, self.most_states = n_states, n_states or most_states
        self.start, self.n_groups = start, n_groups
        self.prior_weight, self.n_starts, self.kinds = prior_weight, n_starts, kinds or {}
        self.has_many_trials = not sample.schema.is_coded
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
        # Steps after parts of the rows have not been tried where columns are of many kinds.
        most_parts = 1 if self.has_many_trials else MOST_PARTS
        n_parts = int(np.clip(table.n_rows // ROWS_PER_PART, 1, most_parts))
        order = self.rng.permutation(table.n_rows)
        self.parts = [table.take(np.sort(rows)) for rows in np.array_split(order, n_parts)]
        self.groups_of_rows = dealt_groups(held_out, self.n_groups)

    def _set_out(self, best: Candidate) -> None:
        """Begin with what is the best until a run finds something better."""
        self.best = self.latest = self.decided = best
        self.has_begun = True

    @property
    def groups(self) -> list[Group]:
        """Hidden variables whose states grow together."""
        return groups_of(self.tree.n_hidden) if self.has_many_trials else [slice(None)]

    @property
    def factors(self) -> Sequence[int]:
        """By how many thirds numbers of states are multiplied, see :func:`grow`."""
        return BY_A_THIRD_OR_TWICE if self.has_many_trials else TWICE

    # Where it begins ------------------------------------------------------------------------

    def begin(self) -> Candidate:
        """Set out, and return where the first run begins."""
        if self.start is not None:
            stage = self.stage(self.start.n_states[self.tree.n_observed :])  # type: ignore[union-attr]
            return self._fitted(stage, [stage.problem.point(self.start)], is_rival=True)  # type: ignore[arg-type]
        if self.has_many_trials:
            stage = self.stage(np.full(self.tree.n_hidden, self.n_states or 2))
            starts = binned_starts(stage.problem, self.n_starts, self.rng)
            return self._fitted(stage, starts, is_rival=False)
        return self._begin_at_copies()

    def _fitted(self, stage: Stage, starts: Sequence[FloatArray], is_rival: bool) -> Candidate:
        """Set out with the likeliest parameters for the training rows.

        A given model may have been learned from the held-out rows, which could not judge it then.
        As a rival it is scored after the fit: the result is to be no worse.
        """
        left = max(0.0, self.deadline - time.monotonic())
        budget = replace(FIRST, time_limit=left)
        model, report = maximize(stage.problem, starts, budget)
        strengths = np.full(N_STRENGTHS, self.prior_weight or 1.0)
        first = Candidate(stage, stage.problem.point(model), strengths)
        scores = stage.scores(stage.seen(first.point)) if is_rival else None
        self._set_out(replace(first, scores=scores))
        if INTERRUPTED in report.notes:
            raise KeyboardInterrupt
        return first

    def _begin_at_copies(self) -> Candidate:
        """Return a noisy copy of observed nodes; until then exact copies are the best."""
        copied = self.sample.cardinalities[self.tree.surrogates()[self.tree.n_observed :]]
        stage = self.stage(np.minimum(copied, self.n_states or copied))
        exact = surrogate_start(stage.problem, self.rng, softness=0.0)
        copies = Candidate(stage, exact, np.full(N_STRENGTHS, WEAKEST))
        if self.n_states is None:  # else the copies may not be copies, and are no rival
            copies = replace(copies, scores=stage.scores(stage.seen(copies.point)))
        self._set_out(copies)
        noisy = surrogate_start(stage.problem, self.rng, SOFTNESS)
        return Candidate(stage, noisy, np.ones(N_STRENGTHS))

    # Growing --------------------------------------------------------------------------------

    def stage(self, hidden_states: IntArray) -> Stage:
        """Compile the rows for numbers of states."""
        return Stage(self, hidden_states)

    def split(self, candidate: Candidate, hidden_states: IntArray) -> Candidate:
        """Return a candidate with more states, from which to go on."""
        stage = self.stage(hidden_states)
        point = split_states(candidate.stage.problem, candidate.point, stage.problem, self.rng)
        return Candidate(stage, point, candidate.strengths, legs=candidate.legs)

    def run(self, start: Candidate) -> Candidate:
        """Run EM until the held-out rows stop gaining; returns the best on the way."""
        stage, strengths = start.stage, start.strengths
        em = StepwiseEM(stage, start.point)
        highest, used = start, [strengths]
        patience = Patience(highest.score, stage.patience)
        self._n_allowed = self.budget.max_steps
        for _ in range(MOST_PASSES // PASSES_PER_SCORE):
            self._run_passes(em, strengths)
            scores = em.score_held_out()
            score = float(scores.sum())
            self._report(score)
            if score > highest.score:
                legs = (*start.legs, Leg(stage.hidden_states, tuple(used)))
                highest = self.latest = Candidate(stage, em.point, strengths, scores, legs)
            if patience.should_stop(score):
                break
            strengths = em.better_strengths(strengths)
            used.append(strengths)
        most = int(stage.hidden_states.max(initial=1))
        self.tried[most] = max(highest.score, self.tried.get(most, -np.inf))
        return highest

    def _run_passes(self, em: StepwiseEM, strengths: FloatArray) -> None:
        for _ in range(PASSES_PER_SCORE):
            if not self._n_allowed:
                raise BudgetSpent(f"the limit of {self.budget.max_steps} passes")
            em.run_pass(strengths)
            self._n_allowed -= 1
            self.n_passes += 1
            self.work += em.stage.work

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
        self.best = replace(again.replay(self.best.legs), scores=self.best.scores)
        self.work += again.work

    def _all_rows(self) -> Sample:
        if self.training is self.sample:  # and other rows were held out
            return Sample(cut_table(stacked(self.sample.parts.to_table(), self.held_out)))
        return self.sample

    def replay(self, legs: Sequence[Leg]) -> Candidate:
        """Return the candidate at the end of a run of another fit, replayed on these rows."""
        candidate = self.begin()
        for number, leg in enumerate(legs):
            if number:
                candidate = self.split(candidate, leg.hidden_states)
            em = StepwiseEM(candidate.stage, candidate.point)
            self._n_allowed = self.budget.max_steps
            for strengths in leg.strengths:
                self._run_passes(em, strengths)
            candidate = replace(candidate, point=em.point, strengths=leg.strengths[-1])
        return self._stepped(candidate if legs else self.best, LAST_STEPS)

    def _stepped(self, candidate: Candidate, n_steps: int) -> Candidate:
        """Take full steps of EM on all rows."""
        point = candidate.point
        for _ in range(n_steps):
            self.check_time()
            sums = candidate.stage.all_sums(point)
            point = candidate.stage.maximized(sums, point, candidate.strengths)
        return replace(candidate, point=point)

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


def groups_of(n_hidden: int) -> list[Group]:
    """Return hidden variables in at most ``MOST_GROUPS`` groups."""
    groups = np.array_split(np.arange(n_hidden), max(1, min(n_hidden, MOST_GROUPS)))
    return [group for group in groups if group.size]


# The driver -------------------------------------------------------------------------------------


class JointFit:
    """Fits of the same columns that hold out different rows and decide on states together."""

    def __init__(self, fits: Sequence[HeldOutFit]) -> None:
        self.fits = fits
        for fit in fits:  # they run one after the other
            fit.memory = fits[0].memory
        self._candidates: list[Candidate] = []
        self._last_work = [0.0] * len(fits)

    @property
    def score(self) -> float:
        """Mean log-likelihood of the held-out rows of all fits."""
        return float(np.mean([fit.best.score if fit.has_begun else -np.inf for fit in self.fits]))

    def grow(self) -> None:
        """Split states as long as the held-out rows of all fits gain by it."""
        self._candidates = self._run_all([fit.begin() for fit in self.fits])
        # The first stage may well be no better than what the fits begin with: states are split
        # all the same.
        self._keep_if_better()
        first = self.fits[0]
        grow(self._try_more, first.groups, first.factors)

    def _try_more(self, group: Group, thirds: int) -> bool:
        """Run EM with more states, and keep them if held-out rows gain enough."""
        before = self._candidates
        old = [candidate.stage.hidden_states for candidate in before]
        new = [more_states(states, group, thirds, self.fits[0].most_states) for states in old]
        if all(map(np.array_equal, old, new)) or not self._is_affordable():
            return False
        fits = zip(self.fits, before, new, strict=True)
        self._candidates = self._run_all([fit.split(best, states) for fit, best, states in fits])
        if self._keep_if_better():
            return True
        self._candidates = before
        return False

    def keep_latest(self) -> None:
        """Where there was no time to compare, keep whichever predicts better in each fit."""
        for fit in self.fits:
            if fit.has_begun and fit.latest.score > fit.best.score:
                fit.best = fit.latest

    def _run_all(self, starts: list[Candidate]) -> list[Candidate]:
        before = [fit.work for fit in self.fits]
        candidates = [fit.run(start) for fit, start in zip(self.fits, starts, strict=True)]
        self._last_work = [fit.work - work for fit, work in zip(self.fits, before, strict=True)]
        return candidates

    def _is_affordable(self) -> bool:
        """Whether twice as many states, whose passes are four times the work, are not too much."""
        pairs = zip(self.fits, self._last_work, strict=True)
        work = max(fit.work + 4.0 * last for fit, last in pairs)
        return self.fits[0].n_states is not None or work <= MOST_WORK

    def _keep_if_better(self) -> bool:
        best = [fit.best for fit in self.fits]
        is_better = self.fits[0].n_states is not None or are_better(self._candidates, best)
        if is_better:
            for fit, candidate in zip(self.fits, self._candidates, strict=True):
                fit.best = candidate
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

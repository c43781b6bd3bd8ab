"""Discrete fits for prediction: states, smoothing and stopping are chosen by held-out rows.

A fit begins with the tree in which every hidden node is a copy of the observed node nearest to it:
of a hidden Chow-Liu tree, that is the Chow-Liu tree. From a noisy copy EM goes on, and states are
doubled: each becomes two that differ by noise. Between two doublings stepwise EM runs over parts of
the training rows until the likelihood of the held-out rows stops rising; states are doubled as long
as it rises by more than its standard error. In the end the way to the best tables is gone once more
with all rows, the held-out ones included: with the same numbers of states, passes and strengths.
Where that would take too long, the best tables take a few full steps of EM on all rows instead.

Tables are smoothed toward the marginal of their child: a table of K_p rows counts a/K_p rows more
for each of them, shared out as the child's states are overall. One strength a is for tables of
observed nodes, one for those of hidden nodes. Both follow the held-out rows: with their expected
counts V and the expected counts N of the training rows, Σ V·log((N + a·m/K_p)/(N₊ + a/K_p)) is what
a step of EM on the held-out rows would raise, and the strength moves to where it is largest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import numpy as np

from latentree.data import Table, cut_table, stacked
from latentree.distances import Sample
from latentree.em._discrete import DiscreteProblem, column_entropies
from latentree.em._driver import Budget
from latentree.em._early_stopping import (
    CALM_CHECKS,
    MOST_PASSES,
    PASSES_A_CHECK,
    TOLERANCE,
    Patience,
)
from latentree.em._held_rows import dealt_groups, error_of_sum
from latentree.em._report import FitReport
from latentree.em._starts import SOFTNESS, split_states, surrogate_start
from latentree.errors import ModelError
from latentree.inference import (
    Expectation,
    Layout,
    PassMemory,
    Skeleton,
    cheapest_rooting,
    compile_part,
)
from latentree.models import DiscreteTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray, Progress

# Constants were chosen on nltcs, plants and 1,500 rows of plants; docs/prediction.md says so.
MOST_WORK = 2e11
"""Products of all passes: no doubling begins that would exceed it (minutes on two cores)."""
QUICK_PASS, PATIENT_CHECKS = 1e8, 6
"""Products of a pass that is quick, and looks without a gain after which such passes end.

On few rows the held-out likelihood often falls a little and then rises far above where it was.
"""
MOST_STATES = 256
MOST_WORK_TWICE = MOST_WORK / 8
"""Products of a fit that is done a second time, with all rows."""
FINAL_STEPS = 20
"""Full steps of EM on all rows in the end of a fit that is not."""
LAST_STEPS = 5
"""Full steps in the end of one that is: stepwise EM ends at what the last part of the rows says."""
_ROWS_A_PART = 500  # a part should say something of every state
_MOST_PARTS = 8  # more parts share fewer patterns, and tables are normalized after each
_MEMORY = 3.0  # stepwise EM remembers about a third of a pass: η = 3/parts, 1 for up to 3 parts
_FACTORS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # by which a strength moves at a check
_WEAKEST, _STRONGEST = 1e-4, 1e4


class _Stop(Exception):
    """The budget is used up."""


class Smoothing:
    """Tables from expected counts, each smoothed toward the marginal of its child."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        node = np.repeat(np.arange(layout.tree.n_nodes), np.diff(layout.starts))
        self._group = (node >= layout.tree.n_observed).astype(np.int64)
        self._share = 1.0 / layout.parent_states[node]
        self._child_state = layout.child_states

    def prior(self, theta: FloatArray, strengths: FloatArray) -> FloatArray:
        """Counts to be added: a/K_p times the child's marginal in every row of a table."""
        marginal = self.layout.marginals(theta)[self._child_state]
        return np.asarray(strengths[self._group] * self._share * marginal)

    def tables(self, counts: FloatArray, theta: FloatArray, strengths: FloatArray) -> FloatArray:
        """Smoothed tables; ``theta`` are those that the counts were expected under."""
        return self.layout.normalized(counts + self.prior(theta, strengths))

    def stronger(
        self, counts: FloatArray, held_out: FloatArray, theta: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Move both strengths, by a factor of at most 4, to where held-out rows gain most."""
        gains = []
        for factor in _FACTORS:
            tables = self.tables(counts, theta, factor * strengths)
            terms = held_out * np.log(np.maximum(tables, 1e-300))
            gains.append(np.bincount(self._group, terms, minlength=2))
        chosen = _FACTORS[np.argmax(gains, axis=0)]
        return np.asarray(np.clip(chosen * strengths, _WEAKEST, _STRONGEST))


class _Stage:
    """Training parts and held-out rows, compiled for given numbers of states."""

    def __init__(self, fit: HeldOutFit, layout: Layout) -> None:
        self.layout = layout
        self.smoothing = Smoothing(layout)
        skeleton = Skeleton.of(layout, fit.entropies)
        shared = fit.memory
        self.parts = [Expectation(compile_part(skeleton, part), shared) for part in fit.parts]
        self.held_out = [Expectation(compile_part(skeleton, group), shared) for group in fit.groups]
        self.hidden_states = layout.n_states[fit.tree.n_observed :]
        self.n_states = int(self.hidden_states.max(initial=1))

    @property
    def patience(self) -> int:
        """Looks without a gain after which passes end: more where they are quick."""
        return PATIENT_CHECKS if self.work <= QUICK_PASS else CALM_CHECKS

    @cached_property
    def work(self) -> float:
        """Products of a pass over the training rows, up and down."""
        return sum(part.work for part in self.parts)


@dataclass(frozen=True, eq=False)
class _Found:
    """Tables, with the strengths that smoothed them and what the held-out rows say of them."""

    stage: _Stage
    theta: FloatArray
    strengths: FloatArray
    scores: FloatArray | None = None
    """Log-likelihood of every group of held-out rows, over the weight of all."""
    way: tuple[tuple[FloatArray, ...], ...] = ()
    """Of every stage until here, the strengths of each few passes."""

    @property
    def score(self) -> float:
        """Mean log-likelihood of the held-out rows."""
        return -np.inf if self.scores is None else float(self.scores.sum())


def are_better(found: Sequence[_Found], others: Sequence[_Found]) -> bool:
    """Whether held-out rows gain more than a trace, and more than chance would give them."""
    gains = []
    for mine, other in zip(found, others, strict=True):
        if mine.scores is None or other.scores is None:
            return other.scores is None
        gains.append((mine.scores - other.scores) / len(found))
    every = np.concatenate(gains)
    trace = TOLERANCE * abs(float(np.mean([each.score for each in found])))
    return float(every.sum()) > max(trace, error_of_sum(every))


class HeldOutFit:
    """One fit of a discrete tree whose states, smoothing and stopping held-out rows decide.

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
    budget : Budget
        Most passes over the training rows, and seconds.
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
        budget: Budget,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> None:
        self.tree, self.sample, self.held_out = tree, sample, held_out
        if n_states is not None and n_states < 1:
            raise ModelError(f"a hidden node cannot have {n_states} states")
        self.n_states, self.most_states = n_states, most_states
        self.budget = budget
        self.deadline = time.monotonic() + budget.time_limit
        self.rng, self.progress = rng, progress
        self.training = training
        self.entropies = column_entropies(training.statistics)
        self.rooted = cheapest_rooting(tree, self.entropies)
        table = training.parts.to_table()
        n_parts = int(np.clip(table.n_rows // _ROWS_A_PART, 1, _MOST_PARTS))
        order = rng.permutation(table.n_rows)
        self.parts = [table.take(np.sort(rows)) for rows in np.array_split(order, n_parts)]
        self.groups = dealt_groups(held_out)
        self.weight = table.total_weight
        self.n_passes = 0
        self.work = 0.0
        self.trace: list[float] = []
        self.tried: dict[int, float] = {}
        self.memory = PassMemory()

    def run(self) -> tuple[DiscreteTreeModel, FitReport]:
        """Return the model that predicts the held-out rows best, and the report."""
        return run_together([self])[0]

    def begin(self) -> _Found:
        """Return where the climb begins; until then copies are the best."""
        stage = self._first_stage()
        self.best = self.latest = self.decided = self._copies(stage)
        return _Found(stage, self._start(stage), np.ones(2))

    def _first_stage(self) -> _Stage:
        """Every hidden node has the states of the observed node nearest to it, if it may."""
        observed = self.tree.n_observed
        states = self.sample.cardinalities[self.tree.surrogates()[observed:]]
        return _Stage(self, self._layout(np.minimum(states, self.n_states or states)))

    def _copies(self, stage: _Stage) -> _Found:
        """Return the tree whose hidden nodes are copies, with its score if they can be copies."""
        found = _Found(stage, self._start(stage, softness=0.0), np.full(2, _WEAKEST))
        copied = self.sample.cardinalities[self.tree.surrogates()[self.tree.n_observed :]]
        if self.n_states is None and (stage.hidden_states == copied).all():
            found = replace(found, scores=self._seen(stage, found.theta)[0])
        return found

    def _start(self, stage: _Stage, softness: float = SOFTNESS) -> FloatArray:
        problem = DiscreteProblem(self.tree, stage.layout.n_states, self.training)
        theta = surrogate_start(problem, self.rng, softness)
        return problem.layout.reoriented(theta, stage.layout)

    def _layout(self, hidden: IntArray) -> Layout:
        return Layout(self.rooted, np.concatenate([self.sample.cardinalities, hidden]))

    # Growing --------------------------------------------------------------------------------

    def split(self, found: _Found) -> _Found:
        """Double the states of every hidden node, as far as wanted."""
        wanted = self.n_states or self.most_states
        layout = self._layout(np.minimum(2 * found.stage.hidden_states, wanted))
        theta = split_states(found.stage.layout, found.theta, layout, self.rng)
        return _Found(_Stage(self, layout), theta, found.strengths, way=found.way)

    def climb(self, found: _Found) -> _Found:
        """Run stepwise EM until the held-out rows stop gaining; returns the best on the way."""
        stage, theta, strengths = found.stage, found.theta, found.strengths
        highest, used = found, [strengths]
        counts = self.weight * stage.layout.joint(theta)
        patience = Patience(highest.score, stage.patience)
        for _ in range(MOST_PASSES // PASSES_A_CHECK):
            for _ in range(PASSES_A_CHECK):
                theta, counts = self._pass(stage, theta, counts, strengths)
            scores, seen = self._seen(stage, theta)
            score = float(scores.sum())
            self._report(score)
            if score > highest.score:
                way = (*found.way, tuple(used))
                highest = self.latest = _Found(stage, theta, strengths, scores, way)
            if patience.ends_at(score):
                break
            strengths = stage.smoothing.stronger(counts, seen, theta, strengths)
            used.append(strengths)
        self.tried[stage.n_states] = highest.score
        return highest

    def _seen(self, stage: _Stage, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores of all groups of held-out rows, and their expected counts."""
        found = [group.run(theta) for group in stage.held_out]
        scores = np.array([group.log_likelihood for group in found]) / self.held_out.total_weight
        return scores, np.sum([group.counts for group in found], axis=0)

    def _pass(
        self, stage: _Stage, theta: FloatArray, counts: FloatArray, strengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Step after every part of the training rows, from a running mean of expected counts."""
        share = min(1.0, _MEMORY / len(stage.parts))
        for number in self.rng.permutation(len(stage.parts)).tolist():
            self._check_budget()
            part = stage.parts[number]
            scale = self.weight / self.parts[number].total_weight
            counts = (1.0 - share) * counts + (share * scale) * part.run(theta).counts
            theta = stage.smoothing.tables(counts, theta, strengths)
        self.n_passes += 1
        self.work += stage.work
        return theta, counts

    def learn_from_all(self) -> None:
        """Learn from all rows, the held-out ones included."""
        self.decided = best = self.best
        if self.work > MOST_WORK_TWICE:
            self.best = self._stepped(best, FINAL_STEPS)
            return
        none = self.held_out.take(np.empty(0, np.int64))
        again = HeldOutFit(
            self.tree, self.sample, self._all_rows(), none, n_states=self.n_states,
            most_states=self.most_states, budget=self.budget, rng=self.rng,
        )  # fmt: skip
        again.deadline, again.memory = self.deadline, self.memory
        self.best = again.follow(best.way)
        self.work += again.work

    def _all_rows(self) -> Sample:
        if self.training is self.sample:  # and other rows were held out
            return Sample(cut_table(stacked(self.sample.parts.to_table(), self.held_out)))
        return self.sample

    def follow(self, way: tuple[tuple[FloatArray, ...], ...]) -> _Found:
        """Return the tables at the end of a way that another fit has found."""
        found = self.begin()
        for number, strengths_used in enumerate(way):
            if number:
                found = self.split(found)
            theta, counts = found.theta, self.weight * found.stage.layout.joint(found.theta)
            for strengths in strengths_used:
                for _ in range(PASSES_A_CHECK):
                    theta, counts = self._pass(found.stage, theta, counts, strengths)
                found = replace(found, theta=theta, strengths=strengths)
        return self._stepped(found if way else self.best, LAST_STEPS)

    def _stepped(self, found: _Found, n_steps: int) -> _Found:
        """Take full steps of EM on all rows."""
        stage, theta = found.stage, found.theta
        for _ in range(n_steps):
            self._check_budget()
            counts = sum(part.run(theta).counts for part in (*stage.parts, *stage.held_out))
            theta = stage.smoothing.tables(np.asarray(counts), theta, found.strengths)
        return replace(found, theta=theta)

    def _check_budget(self) -> None:
        if time.monotonic() > self.deadline:
            raise _Stop(f"the time limit of {self.budget.time_limit:g} s")
        if self.n_passes >= self.budget.max_steps:
            raise _Stop(f"the limit of {self.budget.max_steps} passes")

    def _report(self, score: float) -> None:
        self.trace.append(score)
        if self.progress is not None:
            self.progress(self.n_passes, score)

    # The result -----------------------------------------------------------------------------

    def _model(self, found: _Found) -> DiscreteTreeModel:
        own = found.stage.layout
        layout = Layout(self.tree, own.n_states)
        theta = own.reoriented(found.theta, layout)
        labels = self.sample.schema.labels
        return DiscreteTreeModel.from_theta(self.tree, layout.n_states, theta, labels)

    def held_out_densities(self) -> FloatArray:
        """Log-likelihood of every held-out row before the model learned from it."""
        return self._model(self.decided).log_likelihood(self.held_out)

    @property
    def chosen_states(self) -> int:
        """Most states of a hidden variable of the best model."""
        return self.best.stage.n_states

    def result(self, stopped: str) -> tuple[DiscreteTreeModel, FitReport]:
        """Return the best model and the report; ``stopped`` says why it ended early, if so."""
        stage, theta = self.best.stage, self.best.theta
        model = self._model(self.best)
        passes = [*stage.parts, *stage.held_out]
        report = FitReport(
            method="em by held-out rows",
            log_likelihood=sum(part.run(theta).log_likelihood for part in passes),
            n_parameters=model.n_parameters,
            n_samples=self.weight + self.held_out.total_weight,
            converged=not stopped,
            n_steps=self.n_passes,
            held_out_log_likelihoods=tuple(self.trace),
            notes=(*([stopped] if stopped else []), *self._states_tried()),
        )
        return model, report

    def _states_tried(self) -> list[str]:
        if not self.tried:
            return []
        tried = ", ".join(f"{states}: {score:.4f}" for states, score in self.tried.items())
        chosen = f"{self.chosen_states} states a hidden variable"
        return [f"{chosen} (held-out log-likelihood a row: {tried})"]


def run_together(fits: Sequence[HeldOutFit]) -> list[tuple[DiscreteTreeModel, FitReport]]:
    """Run fits that hold out different rows, all of which decide on the states together.

    Parameters
    ----------
    fits : sequence of HeldOutFit
        Of the same columns.

    Returns
    -------
    list of tuples
        The model and the report of each.
    """
    for fit in fits:  # they run one after the other
        fit.memory = fits[0].memory
    found = [fit.begin() for fit in fits]
    stopped = ""
    try:
        _grow(fits, found)
        for fit in fits:
            fit.learn_from_all()
    except KeyboardInterrupt:
        stopped = "interrupted: the best parameters so far are kept"
    except _Stop as reason:
        stopped = f"{reason} came before the held-out rows decided"
    for fit in fits:
        if stopped and fit.latest.score > fit.best.score:
            fit.best = fit.latest
    return [fit.result(stopped) for fit in fits]


def _grow(fits: Sequence[HeldOutFit], found: list[_Found]) -> None:
    """Split states as long as the held-out rows of all fits gain by it."""
    is_given = fits[0].n_states is not None
    for n_stages in count(1):
        before = [fit.work for fit in fits]
        found = [fit.climb(each) for fit, each in zip(fits, found, strict=True)]
        is_better = are_better(found, [fit.best for fit in fits])
        if is_better or is_given:
            for fit, each in zip(fits, found, strict=True):
                fit.best = each
        # With twice as many states a pass is four times the work. The first stage may well be
        # no better than copies: it has no more states.
        work = max(fit.work + 4.0 * (fit.work - w) for fit, w in zip(fits, before, strict=True))
        is_last = not is_given and not (work <= MOST_WORK and (is_better or n_stages < 2))
        target = fits[0].n_states or fits[0].most_states
        if is_last or all((each.stage.hidden_states >= target).all() for each in found):
            return
        found = [fit.split(each) for fit, each in zip(fits, found, strict=True)]

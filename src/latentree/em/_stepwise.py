"""Stepwise EM that stops where held-out rows stop gaining, for given numbers of states.

In a pass there is a step after every part of the training rows, from a running mean of expected
sums. The prior has three strengths: of the tables of observed nodes, of those of hidden nodes, and
of emissions. A table of K_p rows is smoothed toward the marginal of its child: a/K_p rows more
count for each of its rows, shared out as the child's states are overall. Whenever the held-out rows
are scored, the strengths follow them: with the expected sums V of the held-out rows and N of the
training rows, Σ V·log((N + a·m/K_p)/(N₊ + a/K_p)) is what a step of EM would raise, likewise that
of the values of leaves, and every strength moves to where it is largest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from latentree.data import Table, add_up
from latentree.distances import Sample
from latentree.em._state_problem import Kinds, StateModel, StateProblem
from latentree.inference import Expectation, ExpectedCounts, Layout, PassMemory, compile_part
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

# Constants were chosen on nltcs, plants and 1,500 rows of plants; docs/prediction.md says so.
TOLERANCE = 1e-4
"""Gain, as a share of the held-out log-likelihood, below which passes or splits end."""
PATIENCE = 2
"""Scores in a row without a gain, after which passes end."""
QUICK_PASS, QUICK_PATIENCE = 1e8, 6
"""Products of a pass that is quick, and scores without a gain after which such passes end.

On few rows the held-out likelihood often falls a little and then rises far above where it was.
"""
WEAKEST, STRONGEST = 1e-4, 1e4
"""Limits of the strengths of a prior."""
N_STRENGTHS = 3
"""Strengths: of tables of observed nodes, of those of hidden nodes, and of emissions."""

_MEMORY = 3.0  # stepwise EM remembers about a third of a pass: η = 3/parts, 1 for up to 3 parts
_FACTORS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # by which a strength moves at a time


class RowsOfFit(Protocol):
    """What a stage knows of the fit that it belongs to."""

    tree: Tree
    sample: Sample
    training: Sample
    parts: list[Table]
    """Parts of the training rows."""
    weight: float
    """Of all training rows."""
    held_out: Table
    groups_of_rows: list[Table]
    """Groups of the held-out rows."""
    rng: np.random.Generator
    memory: PassMemory
    prior_weight: float
    kinds: Kinds
    has_many_trials: bool
    """Whether many numbers of states are tried, each of which is to end soon."""

    def check_time(self) -> None:
        """Raise an exception if the time is up."""


class Patience:
    """Counts scores in a row at which held-out rows gain no more than a trace.

    Parameters
    ----------
    highest : float
        Mean log-likelihood of the held-out rows at the start.
    most : int
        After so many such scores it is time to stop.

    Examples
    --------
    >>> patience = Patience(-10.0)
    >>> [patience.should_stop(score) for score in (-9.0, -9.0001, -8.9, -8.8999, -8.95)]
    [False, False, False, False, True]
    """

    def __init__(self, highest: float, most: int = PATIENCE) -> None:
        self.highest = highest
        self.most = most
        self._n_without_gain = 0

    def should_stop(self, score: float) -> bool:
        """Whether to stop after this score."""
        gains = score - self.highest >= TOLERANCE * abs(score)
        self._n_without_gain = 0 if gains else self._n_without_gain + 1
        self.highest = max(score, self.highest)
        return self._n_without_gain == self.most


class Smoothing:
    """Tables from expected counts, each smoothed toward the marginal of its child.

    ``least`` counts are added in addition: labels that no row has shall stay possible.
    """

    def __init__(self, layout: Layout, least: FloatArray | float = 0.0) -> None:
        self.layout, self._least = layout, least
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
        return self.layout.normalized(counts + self._least + self.prior(theta, strengths))

    def gains(
        self, counts: FloatArray, held_out: FloatArray, theta: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Σ V·log(table) over tables of observed, and of hidden nodes; V is of held-out rows."""
        tables = self.tables(counts, theta, strengths)
        terms = held_out * np.log(np.maximum(tables, 1e-300))
        return np.asarray(np.bincount(self._group, terms, minlength=2), float)


class Stage:
    """Training and held-out rows, compiled for given numbers of states."""

    def __init__(self, fit: RowsOfFit, hidden_states: IntArray) -> None:
        self.fit, self.hidden_states = fit, hidden_states
        n_states = np.concatenate([fit.sample.cardinalities, hidden_states])
        self.problem = StateProblem(fit.tree, n_states, fit.training, fit.prior_weight, fit.kinds)
        self.layout = self.problem.layout
        self.smoothing = Smoothing(self.layout, self.problem.prior)
        self.parts, self.held_out = (
            [
                Expectation(compile_part(self.problem.skeleton, table), fit.memory)
                for table in tables
            ]
            for tables in (fit.parts, fit.groups_of_rows)
        )

    def expected(self, part: Expectation, point: FloatArray) -> ExpectedCounts:
        """Return the sums over a part of the rows that are expected at a point."""
        problem = self.problem
        return part.expect(point[: self.layout.size], problem.emissions(point), problem.units)

    def maximized(
        self, sums: ExpectedCounts, point: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Return the point that sums give, expected at a point, with a prior."""
        tables = self.smoothing.tables(sums.counts, point[: self.layout.size], strengths)
        if not self.problem.leaves:
            return tables
        emissions = self.problem.emissions(point)
        leaves = self.problem.maximized(sums, emissions, strengths[2])
        return self.problem.placed(tables, leaves)

    def gains(
        self, sums: ExpectedCounts, seen: ExpectedCounts, point: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Return what the M-step with a prior would raise the held-out rows to.

        ``seen`` are the sums of these rows. A number for each of the strengths, of which only
        differences count.
        """
        theta, problem = point[: self.layout.size], self.problem
        of_tables = self.smoothing.gains(sums.counts, seen.counts, theta, strengths)
        coordinates = problem.maximized(sums, problem.emissions(point), strengths[2])
        of_leaves = sum(
            leaf.kind.at(following, leaf.unit).expected_log(own, leaf.unit)
            for leaf, following, own in zip(problem.leaves, coordinates, seen.leaves, strict=True)
        )
        return np.append(of_tables, of_leaves)

    def first_sums(self, point: FloatArray) -> ExpectedCounts | None:
        """Return the sums that the model itself expects, if they are known."""
        if self.problem.leaves:
            return None
        return ExpectedCounts(0.0, self.fit.weight * self.layout.joint(point))

    def model(self, point: FloatArray) -> StateModel:
        """Return the model at a point."""
        return self.problem.model(point)

    @cached_property
    def work(self) -> float:
        """Products of a pass over the training rows, up and down."""
        return sum(part.work for part in self.parts)

    @property
    def patience(self) -> int:
        """Scores without a gain after which passes end: more where they are quick."""
        is_quick = self.work <= QUICK_PASS and not self.fit.has_many_trials
        return QUICK_PATIENCE if is_quick else PATIENCE

    def all_sums(self, point: FloatArray) -> ExpectedCounts:
        """Return the sums over all rows, the held-out ones included."""
        return add_up(self.expected(part, point) for part in (*self.parts, *self.held_out))

    def seen(self, point: FloatArray) -> list[ExpectedCounts]:
        """Return the sums over every group of held-out rows."""
        return [self.expected(group, point) for group in self.held_out]

    def scores(self, seen: Sequence[ExpectedCounts]) -> FloatArray:
        """Return the log-likelihood of every group, over the weight of all."""
        weight = self.fit.held_out.total_weight
        return np.array([group.log_likelihood for group in seen]) / weight


class StepwiseEM:
    """Stepwise EM under way: a point, and a running mean of expected sums."""

    def __init__(self, stage: Stage, point: FloatArray) -> None:
        self.stage, self.point = stage, point
        self._sums = stage.first_sums(point)

    def run_pass(self, strengths: FloatArray) -> None:
        """Step after every part of the training rows."""
        stage, fit = self.stage, self.stage.fit
        share = min(1.0, _MEMORY / len(stage.parts))
        for number in fit.rng.permutation(len(stage.parts)).tolist():
            fit.check_time()
            sums = stage.expected(stage.parts[number], self.point)
            scale = fit.weight / fit.parts[number].total_weight
            if self._sums is None:
                self._sums = sums.scaled(scale)
            else:
                self._sums = self._sums.scaled(1.0 - share) + sums.scaled(share * scale)
            self.point = stage.maximized(self._sums, self.point, strengths)

    def score_held_out(self) -> FloatArray:
        """Return the scores of the held-out rows."""
        self._seen = self.stage.seen(self.point)
        return self.stage.scores(self._seen)

    def better_strengths(self, strengths: FloatArray) -> FloatArray:
        """Return the strengths with which the held-out rows last scored gain most."""
        sums, seen, point = self._sums, add_up(self._seen), self.point
        assert sums is not None
        return moved(strengths, lambda each: self.stage.gains(sums, seen, point, each))


def moved(strengths: FloatArray, gains: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Move every strength, by a factor of at most 4, to where its gain is largest."""
    chosen = np.argmax([gains(factor * strengths) for factor in _FACTORS], axis=0)
    return np.asarray(np.clip(_FACTORS[chosen] * strengths, WEAKEST, STRONGEST))

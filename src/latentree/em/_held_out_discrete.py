"""What a discrete tree brings to a fit by held-out rows.

A fit begins with the tree in which every hidden node is a copy of the observed node nearest to it:
of a hidden Chow-Liu tree, that is the Chow-Liu tree. From a noisy copy, or from a given model, EM
goes on, and the states of all hidden nodes are doubled together: each becomes two that differ by
noise. A pass is one of stepwise EM, with a step after every part of the training rows.

Tables are smoothed toward the marginal of their child: a table of K_p rows counts a/K_p rows more
for each of them, shared out as the child's states are overall. One strength a is for tables of
observed nodes, one for those of hidden nodes. Both follow the held-out rows: with their expected
counts V and the expected counts N of the training rows, Σ V·log((N + a·m/K_p)/(N₊ + a/K_p)) is what
a step of EM on the held-out rows would raise, and the strength moves to where it is largest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from latentree.data import Table
from latentree.distances import Sample
from latentree.em._climbing import WEAKEST, Stage
from latentree.em._discrete import DiscreteProblem, column_entropies
from latentree.em._driver import INTERRUPTED
from latentree.em._growth import Group
from latentree.em._held_out import Candidate, HeldOutFit
from latentree.em._starts import SOFTNESS, split_states, surrogate_start
from latentree.inference import (
    Expectation,
    ExpectedCounts,
    Layout,
    Skeleton,
    cheapest_rooting,
    compile_part,
)
from latentree.models import DiscreteTreeModel, Model
from latentree.typing import FloatArray, IntArray


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

    def gains(
        self, counts: FloatArray, held_out: FloatArray, theta: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Σ V·log(table) over tables of observed, and of hidden nodes; V is of held-out rows."""
        tables = self.tables(counts, theta, strengths)
        terms = held_out * np.log(np.maximum(tables, 1e-300))
        return np.asarray(np.bincount(self._group, terms, minlength=2), float)


class DiscreteStage(Stage[Expectation, ExpectedCounts]):
    """Training parts and held-out rows, compiled for given numbers of states."""

    def __init__(self, fit: DiscreteHeldOutFit, hidden_states: IntArray) -> None:
        self.fit, self.hidden_states = fit, hidden_states
        self.layout = Layout(fit.rooted, np.concatenate([fit.sample.cardinalities, hidden_states]))
        self.smoothing = Smoothing(self.layout)
        skeleton = Skeleton.of(self.layout, fit.entropies)
        self.parts, self.held_out = (
            [Expectation(compile_part(skeleton, table), fit.memory) for table in tables]
            for tables in (fit.parts, fit.groups_of_rows)
        )

    def expected(self, part: Expectation, point: FloatArray) -> ExpectedCounts:
        """Return the log-likelihood and the expected counts of a part of the rows."""
        return part.run(point)

    def maximized(
        self, sums: ExpectedCounts, point: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Return smoothed tables."""
        return self.smoothing.tables(sums.counts, point, strengths)

    def gains(
        self, sums: ExpectedCounts, seen: ExpectedCounts, point: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Return Σ V·log(table) over tables of observed, and of hidden nodes."""
        return self.smoothing.gains(sums.counts, seen.counts, point, strengths)

    def first_sums(self, point: FloatArray) -> ExpectedCounts:
        """Return the counts that the model itself expects."""
        return ExpectedCounts(0.0, self.fit.weight * self.layout.joint(point))

    def model(self, point: FloatArray) -> DiscreteTreeModel:
        """Return the model at a point, rooted as the tree was given."""
        tree = self.fit.tree
        layout = Layout(tree, self.layout.n_states)
        theta = self.layout.reoriented(point, layout)
        labels = self.fit.sample.schema.labels
        return DiscreteTreeModel.from_theta(tree, layout.n_states, theta, labels)


class DiscreteHeldOutFit(HeldOutFit):
    """A fit of a discrete tree whose states, smoothing and stopping held-out rows decide."""

    factors = (6,)  # numbers of states are doubled
    most_parts = 8  # more parts share fewer patterns, and tables are normalized after each

    def _take(self, training: Sample, held_out: Table) -> None:
        super()._take(training, held_out)
        self.entropies = column_entropies(training.statistics)
        self.rooted = cheapest_rooting(self.tree, self.entropies)

    @property
    def groups(self) -> list[Group]:
        """The states of all hidden variables grow together."""
        return [slice(None)]

    def stage(self, hidden_states: IntArray) -> DiscreteStage:
        """Compile the rows for numbers of states."""
        return DiscreteStage(self, hidden_states)

    def begin(self) -> Candidate:
        """Return where to begin, which is the best until then."""
        return self._begin_at_copies() if self.start is None else self._begin_at(self.start)

    def _begin_at(self, model: Model) -> Candidate:
        """Return a model, fitted again to the training rows alone.

        It may have been learned from the held-out rows, which could not judge it then.
        """
        assert isinstance(model, DiscreteTreeModel)
        problem = DiscreteProblem(self.tree, model.n_states, self.training)
        fitted, report = self._fit_training_rows(problem, [problem.point(model)])
        stage = self.stage(model.n_states[self.tree.n_observed :])
        point = fitted.layout.reoriented(fitted.theta, stage.layout)
        scores = stage.scores(stage.seen(point))
        self._set_out(Candidate(stage, point, np.full(2, WEAKEST), scores))
        if INTERRUPTED in report.notes:
            raise KeyboardInterrupt
        return Candidate(stage, point, np.ones(2))

    def _begin_at_copies(self) -> Candidate:
        """Return a noisy copy of observed nodes; until then exact copies are the best."""
        copied = self.sample.cardinalities[self.tree.surrogates()[self.tree.n_observed :]]
        stage = self.stage(np.minimum(copied, self.n_states or copied))
        copies = Candidate(stage, self._start(stage, softness=0.0), np.full(2, WEAKEST))
        if self.n_states is None:  # else the copies may not be copies, and are no rival
            copies = replace(copies, scores=stage.scores(stage.seen(copies.point)))
        self._set_out(copies)
        return Candidate(stage, self._start(stage), np.ones(2))

    def _start(self, stage: DiscreteStage, softness: float = SOFTNESS) -> FloatArray:
        problem = DiscreteProblem(self.tree, stage.layout.n_states, self.training)
        theta = surrogate_start(problem, self.rng, softness)
        return problem.layout.reoriented(theta, stage.layout)

    def split_point(self, candidate: Candidate, stage: Stage[Any, Any]) -> FloatArray:
        """Return tables with more states."""
        before = candidate.stage
        assert isinstance(before, DiscreteStage)
        assert isinstance(stage, DiscreteStage)
        return split_states(before.layout, candidate.point, stage.layout, self.rng)

"""What a mixed tree brings to a fit by held-out rows.

A fit begins with two states a hidden variable, fitted to the training rows by EM. States of one
group of hidden variables after the other grow, by a third or to twice as many: where columns are of
many kinds, hidden variables differ in the states that they need. A pass is a step of EM.

The prior is that of the mixed problem, with one strength by which its weight is multiplied. It
moves to where the step leads that raises the likelihood of the held-out rows most.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from latentree.em._climbing import CALM_LOOKS, Stage
from latentree.em._driver import INTERRUPTED
from latentree.em._growth import Group
from latentree.em._held_out import Candidate, HeldOutFit
from latentree.em._mixed import MixedCounts, MixedProblem, Part
from latentree.em._starts import binned_starts, split_hidden
from latentree.models import MixedTreeModel
from latentree.typing import FloatArray, IntArray

MOST_GROUPS = 16
"""Groups of hidden variables that grow together: the number of trials is about the same for any
tree."""
BY_A_THIRD_OR_TWICE = (4, 6)
"""By how many thirds numbers of states grow: twice as many are tried where a third does not pay."""


class MixedStage(Stage[Part, MixedCounts]):
    """Training and held-out rows, compiled for given numbers of states."""

    patience = CALM_LOOKS  # there are many trials

    def __init__(self, fit: MixedHeldOutFit, hidden_states: IntArray) -> None:
        self.fit, self.hidden_states = fit, hidden_states
        n_states = np.concatenate([fit.sample.cardinalities, hidden_states])
        self.problem = MixedProblem(fit.tree, n_states, fit.training, fit.prior_weight)
        self.parts, self.held_out = (
            [Part(table, self.problem.skeleton, self.problem.memory) for table in tables]
            for tables in (fit.parts, fit.groups_of_rows)
        )

    def expected(self, part: Part, point: FloatArray) -> MixedCounts:
        """Return the expected counts and moments of a part of the rows."""
        return part.count(*self.problem.arguments(point))

    def maximized(self, sums: MixedCounts, point: FloatArray, strengths: FloatArray) -> FloatArray:
        """Return tables and emissions."""
        return self.problem.maximized(sums, point, float(strengths[0]))[0]

    def gains(
        self, sums: MixedCounts, seen: MixedCounts, point: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Return the log-likelihood of the held-out rows after the M-step."""
        following = self.maximized(sums, point, strengths)
        theta, leaves, _ = self.problem.arguments(following)
        return np.array([self._all_held_out.log_likelihood(theta, leaves)])

    @cached_property
    def _all_held_out(self) -> Part:
        """The rows of all groups: where only their sum counts, one pass takes less time."""
        return Part(self.fit.held_out, self.problem.skeleton, self.problem.memory)

    def first_sums(self, point: FloatArray) -> None:
        """Return nothing: those of the first part of the rows are taken."""

    def model(self, point: FloatArray) -> MixedTreeModel:
        """Return the model at a point."""
        return self.problem.model(point)


class MixedHeldOutFit(HeldOutFit):
    """A fit of a mixed tree whose states, smoothing and stopping held-out rows decide.

    Parameters
    ----------
    prior_weight : float
        Weight of the prior to begin with, as a number of rows.
    n_starts : int
        Starts of EM with the first numbers of states.
    *rows, **settings
        As in :class:`HeldOutFit`.
    """

    factors = BY_A_THIRD_OR_TWICE
    most_parts = 1  # a pass is one full step; steps after parts of the rows have not been tried

    def __init__(
        self, *rows: Any, prior_weight: float = 1.0, n_starts: int = 3, **settings: Any
    ) -> None:
        self.prior_weight, self.n_starts = prior_weight, n_starts
        super().__init__(*rows, **settings)

    @property
    def groups(self) -> list[Group]:
        """Neighbors in the order of the hidden variables grow together if there are many."""
        return groups_of(self.tree.n_hidden)

    def stage(self, hidden_states: IntArray) -> MixedStage:
        """Compile the rows for numbers of states."""
        return MixedStage(self, hidden_states)

    def begin(self) -> Candidate:
        """Return a fit to the training rows."""
        if isinstance(self.start, MixedTreeModel):
            stage = self.stage(self.start.n_states[self.tree.n_observed :])
            starts = [stage.problem.point(self.start)]
        else:
            stage = self.stage(np.full(self.tree.n_hidden, self.n_states or 2))
            starts = binned_starts(stage.problem, self.n_starts, self.rng)
        model, report = self._fit_training_rows(stage.problem, starts)
        start = Candidate(stage, stage.problem.point(model), np.ones(1))
        self._set_out(start)
        if self.start is not None:  # the result is to be no worse
            self._set_out(replace(start, scores=stage.scores(stage.seen(start.point))))
        if INTERRUPTED in report.notes:
            raise KeyboardInterrupt
        return start

    def split_point(self, candidate: Candidate, stage: Stage[Any, Any]) -> FloatArray:
        """Return tables and emissions with more states."""
        model = candidate.stage.model(candidate.point)
        assert isinstance(model, MixedTreeModel)
        assert isinstance(stage, MixedStage)
        return stage.problem.point(split_hidden(model, stage.hidden_states, self.rng))


def groups_of(n_hidden: int) -> list[Group]:
    """Return hidden variables in at most ``MOST_GROUPS`` groups."""
    groups = np.array_split(np.arange(n_hidden), max(1, min(n_hidden, MOST_GROUPS)))
    return [group for group in groups if group.size]

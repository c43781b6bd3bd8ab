"""Stopping where held-out rows stop gaining, for EM on discrete and on mixed tables."""

from __future__ import annotations

from collections.abc import Sequence

from latentree.data import Table
from latentree.distances import Sample
from latentree.em._mixed import MixedProblem, Part
from latentree.models import MixedTreeModel
from latentree.typing import FloatArray

TOLERANCE = 1e-4
"""Gain, as a share of the held-out log-likelihood, below which passes or doublings end."""
MOST_PASSES = 100
"""Passes over the training rows with one number of states."""
PASSES_A_CHECK = 5
"""Passes between two looks at the held-out rows."""
CALM_CHECKS = 2
"""Looks in a row without a gain, after which passes end."""


class Patience:
    """Counts looks in a row at which held-out rows gain no more than a trace.

    Parameters
    ----------
    highest : float
        Mean log-likelihood of the held-out rows at the start.
    most_calm : int
        After so many such looks it is time to stop.

    Examples
    --------
    >>> patience = Patience(-10.0)
    >>> [patience.ends_at(score) for score in (-9.0, -9.0001, -8.9, -8.8999, -8.95)]
    [False, False, False, False, True]
    """

    def __init__(self, highest: float, most_calm: int = CALM_CHECKS) -> None:
        self.highest = highest
        self.most_calm = most_calm
        self._calm = 0

    def ends_at(self, score: float) -> bool:
        """Whether to stop after a look that showed this score."""
        is_calm = score - self.highest < TOLERANCE * abs(score)
        self._calm = self._calm + 1 if is_calm else 0
        self.highest = max(score, self.highest)
        return self._calm == self.most_calm


def climb_by_held_out(
    start: MixedTreeModel, sample: Sample, held_out: Sequence[Table], prior_weight: float
) -> tuple[MixedTreeModel, FloatArray]:
    """Run EM from a mixed model until the held-out rows stop gaining.

    Parameters
    ----------
    start : MixedTreeModel
    sample : Sample
        Rows to learn from.
    held_out : sequence of Table
        Groups of rows with the same columns.
    prior_weight : float
        Weight of the prior, as a number of rows.

    Returns
    -------
    model : MixedTreeModel
        The best on the way.
    log_likelihoods : array of float
        Of every group of held-out rows under it.
    """
    problem = MixedProblem(start.tree, start.n_states, sample, prior_weight)
    groups = [Part(group, problem.skeleton, problem.memory) for group in held_out]
    weight = sum(group.total_weight for group in held_out)
    point = best = problem.point(start)
    scores = problem.log_likelihoods(groups, point)
    patience = Patience(scores.sum() / weight)
    for _ in range(MOST_PASSES // PASSES_A_CHECK):
        for _ in range(PASSES_A_CHECK):
            point = problem.step(point).next_point
        seen = problem.log_likelihoods(groups, point)
        score = seen.sum() / weight
        if score > patience.highest:
            best, scores = point, seen
        if patience.ends_at(score):
            break
    return problem.model(best), scores

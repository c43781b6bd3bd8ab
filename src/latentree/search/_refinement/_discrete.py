"""Refinement of discrete trees."""

from __future__ import annotations

import numpy as np

from latentree.distances import Sample
from latentree.em import Budget, DiscreteProblem, Driver
from latentree.models import DiscreteTreeModel
from latentree.search._refinement._draft import DiscreteDraft
from latentree.search._refinement._edges import EdgeChanges
from latentree.search._refinement._messages import Rows
from latentree.search._refinement._proposal import Proposal, Request
from latentree.search._refinement._states import StateChanges

_LEAST = 1e-9  # no probability of a draft is smaller


class DiscreteEngine:
    """Changes of discrete drafts, judged on a table.

    All changes end in the same local fit: EM on a star, whose arms carry the messages of what lies
    behind them. Messages are kept for the distinct rows of the table.
    """

    # One more state alone often does not pay although two do.
    stages: tuple[float, ...] = (0.5, 1.0)

    def __init__(self, sample: Sample, max_states: int | None = None, seed: int = 0) -> None:
        self.sample = sample
        self.n_samples = sample.total_weight
        self.max_states = max_states
        self.seed = seed
        self.rows = Rows(sample.table)

    def draft(self, model: DiscreteTreeModel) -> DiscreteDraft:
        """Return a model as a draft."""
        return self._draft(model, range(model.tree.n_nodes))

    def _draft(self, model: DiscreteTreeModel, numbers: range | list[int]) -> DiscreteDraft:
        draft = DiscreteDraft.of(model, numbers)
        for node, table in draft.above.items():
            lifted = np.maximum(table, _LEAST)
            draft.above[node] = lifted / lifted.sum(axis=-1, keepdims=True)
        return draft

    def model(self, draft: DiscreteDraft) -> DiscreteTreeModel:
        """Return a draft as a model."""
        return draft.model(self.sample.schema)

    def settle(self, draft: DiscreteDraft, n_steps: int) -> tuple[DiscreteDraft, float]:
        """Run accelerated EM on all tables."""
        model = self.model(draft)
        problem = DiscreteProblem(model.tree, model.n_states, self.sample)
        budget = Budget(max_steps=n_steps, short_steps=n_steps)
        best = Driver(problem, budget).maximize([problem.point(model)]).best
        settled = self._draft(problem.model(best.point), sorted(draft.parent))
        settled.next_number = draft.next_number
        return settled, problem.step(best.point).log_likelihood

    def structures(self, request: Request) -> list[Proposal]:
        """Return changes of the edges that may be worth it."""
        return EdgeChanges(self.rows, request, self.max_states).proposals()

    def states(self, request: Request) -> list[Proposal]:
        """Return changes of numbers of states that may be worth it."""
        return StateChanges(self.rows, request, self.max_states, self.seed).proposals()

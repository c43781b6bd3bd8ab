"""Discrete trees in a search: drafts, their fit to a sample, and who proposes changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from latentree.distances import Sample
from latentree.models import DiscreteTreeModel
from latentree.search._refinement._discrete_edges import EdgeMoves
from latentree.search._refinement._discrete_fit import RowEvidence
from latentree.search._refinement._discrete_last import LastMoves
from latentree.search._refinement._discrete_states import StateMoves
from latentree.search._refinement._draft import DiscreteDraft
from latentree.search._refinement._full_fit import fit_all
from latentree.search._refinement._options import DEFAULTS, RefineOptions
from latentree.search._refinement._search import Proposal, Request

_LEAST = 1e-9  # no probability of a draft is smaller, so that messages are positive
_TINY = 5_000  # cells of distinct rows: a search takes a second uncompiled


class DiscreteEngine:
    """Changes of discrete trees on one sample."""

    def __init__(
        self,
        sample: Sample,
        max_states: int | None = None,
        seed: int = 0,
        options: RefineOptions = DEFAULTS,
    ) -> None:
        self.sample = sample
        self.n_samples = sample.total_weight
        self.max_states = max_states
        self.seed = seed
        self.shares = options.discrete_shares
        self.settle_steps = options.settle_steps
        self.rows = RowEvidence(sample.table)
        self.is_tiny = self.rows.weights.size * sample.n_columns <= _TINY
        self.proposers = (self.states, self.structures)
        self.last_proposers = (self.last_structures,)

    def draft(self, model: DiscreteTreeModel) -> DiscreteDraft:
        """Return a model as a draft."""
        return self._draft(model, range(model.tree.n_nodes))

    def _draft(self, model: DiscreteTreeModel, numbers: Sequence[int]) -> DiscreteDraft:
        draft = DiscreteDraft.of(model, numbers)
        for node, table in draft.above.items():
            lifted = np.maximum(table, _LEAST)
            draft.above[node] = lifted / lifted.sum(axis=-1, keepdims=True)
        return draft

    def model(self, draft: DiscreteDraft) -> DiscreteTreeModel:
        """Return a draft as a model."""
        return draft.model(self.sample.schema)

    def settle(
        self, draft: DiscreteDraft, n_steps: int, goal: float = -math.inf
    ) -> tuple[DiscreteDraft, float]:
        """Run accelerated EM on all tables."""
        fitted, log_likelihood = fit_all(self.model(draft), self.sample, n_steps, goal)
        settled = self._draft(fitted, sorted(draft.parent))
        settled.next_number = draft.next_number
        return settled, log_likelihood

    def structures(self, request: Request) -> list[Proposal]:
        """Return changes of edges."""
        return EdgeMoves(self.rows, request, self.max_states).proposals()

    def last_structures(self, request: Request) -> list[Proposal]:
        """Return changes of edges that take longer to find."""
        return LastMoves(self.rows, request, self.max_states).proposals()

    def states(self, request: Request) -> list[Proposal]:
        """Return changes of numbers of states."""
        return StateMoves(self.rows, request, self.max_states, self.seed).proposals()

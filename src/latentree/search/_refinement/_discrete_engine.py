"""Trees with states in a search: drafts, their fit to a sample, and who proposes changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from latentree._kernels.compiling import announced
from latentree.data import Table
from latentree.distances import Sample
from latentree.models import DiscreteTreeModel, MixedTreeModel
from latentree.search._refinement._discrete_edges import EdgeMoves
from latentree.search._refinement._discrete_fit import RowEvidence
from latentree.search._refinement._discrete_last import LastMoves
from latentree.search._refinement._discrete_states import StateMoves
from latentree.search._refinement._draft import StateDraft
from latentree.search._refinement._full_fit import fit_all, prior_of, units_of
from latentree.search._refinement._options import DEFAULTS, RefineOptions
from latentree.search._refinement._search import Proposal, Proposer, Request

MOST_CELLS = 1_000_000
"""Cells that local fits look at: they hold some numbers per cell in memory."""

_LEAST = 1e-9  # no probability of a draft is smaller, so that messages are positive
_TINY = 5_000  # cells of distinct rows: a search takes a second uncompiled


class StateEngine:
    """Changes of trees with states on one sample."""

    def __init__(
        self,
        sample: Sample,
        max_states: int | None = None,
        seed: int = 0,
        options: RefineOptions = DEFAULTS,
        prior_weight: float = 0.0,
    ) -> None:
        self.sample = sample
        self.n_samples = sample.total_weight
        self.prior_weight = prior_weight or prior_of(sample)
        self.max_states = max_states
        self.seed = seed
        self.shares = options.discrete_shares
        self.settle_steps = options.steps
        self.rows = self._evidence()
        self.is_tiny = _is_tiny(self.rows.weights.size, sample)
        self.proposers: Sequence[Proposer] = (self.states, self.structures)
        self.last_proposers: Sequence[Proposer] = (self.last_structures,)

    def for_states_alone(self) -> None:
        """Propose no changes of edges: a search that takes a small part of the time."""
        self.proposers, self.last_proposers = (self.states,), ()
        self.is_tiny = _is_tiny(self.rows.weights.size, self.sample, 8 * _TINY)

    def _evidence(self) -> RowEvidence:
        """Return what the rows show; of many mixed ones some at equal distances, that count more.

        Distinct rows of codes are few, but those of numbers are not. All rows decide in the end.
        """
        sample = self.sample
        if sample.family != "mixed":
            return RowEvidence(sample.table)
        step = -(-sample.statistics.n_rows * sample.n_columns // MOST_CELLS)
        tables = list(sample.parts.tables.each(every_row, step))
        weights = np.concatenate([table.weight_array() for table in tables])
        rows = Table(
            np.concatenate([table.values for table in tables]), sample.schema,
            weights * (sample.total_weight / weights.sum()),
        )  # fmt: skip
        return RowEvidence(
            rows, units_of(sample, np.flatnonzero(sample.cardinalities == 0)), self.prior_weight
        )

    def draft(self, model: DiscreteTreeModel | MixedTreeModel) -> StateDraft:
        """Return a model as a draft."""
        return self._draft(model, range(model.tree.n_nodes))

    def _draft(
        self, model: DiscreteTreeModel | MixedTreeModel, numbers: Sequence[int]
    ) -> StateDraft:
        draft = StateDraft.of(model, numbers)
        for node, table in draft.above.items():
            if draft.is_number(node):
                continue
            lifted = np.maximum(table, _LEAST)
            draft.above[node] = lifted / lifted.sum(axis=-1, keepdims=True)
        return draft

    def model(self, draft: StateDraft) -> DiscreteTreeModel | MixedTreeModel:
        """Return a draft as a model."""
        return draft.model(self.sample.schema)

    def settle(
        self, draft: StateDraft, n_steps: int, goal: float = -math.inf
    ) -> tuple[StateDraft, float]:
        """Run accelerated EM on all tables."""
        fitted, log_likelihood = fit_all(
            self.model(draft), self.sample, n_steps, goal, self.prior_weight
        )
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


def _is_tiny(n_rows: int, sample: Sample, cells: int = _TINY) -> bool:
    """Whether a search is done uncompiled before its kernels would be loaded.

    A column of numbers takes as long as three columns of labels.
    """
    n_numbers = np.count_nonzero(sample.cardinalities == 0)
    return bool(n_rows * (sample.n_columns + 2 * n_numbers) <= cells)


def announced_search(sample: Sample, of_tree: bool = True) -> AbstractContextManager[None]:
    """Run the passes of EM before, in and after a search of mixed columns as the search itself.

    Where states alone are searched, a larger table leaves that to each of its parts.
    """
    is_tiny = sample.family == "mixed" and _is_tiny(sample.statistics.n_rows, sample)
    if sample.family != "mixed" or not (is_tiny or of_tree):
        return nullcontext()
    return announced(is_tiny)


def every_row(table: Table, step: int) -> Table:
    """Return rows at equal distances."""
    return table.take(np.arange(0, table.n_rows, step))

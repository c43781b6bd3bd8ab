"""What is common to all changes of a discrete draft: a star in the middle of them is fitted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from latentree._kernels import threads
from latentree.search._refinement import _local as local
from latentree.search._refinement._draft import DiscreteDraft
from latentree.search._refinement._messages import Message, Messages, Rows
from latentree.search._refinement._proposal import Change, Key, Proposal, Request, Star
from latentree.search._refinement._rounds import SLACK
from latentree.typing import FloatArray

Job = Callable[[], list[Proposal]]


class Judge:
    """A draft with its messages, on which changes are tried."""

    def __init__(self, rows: Rows, request: Request) -> None:
        self.rows = rows
        self.request = request
        assert isinstance(request.draft, DiscreteDraft)
        self.draft = request.draft
        self.price = request.penalty(self.draft)
        self.messages = Messages(self.draft, rows)
        for above, node in self.draft.edges:  # all of them now: jobs share them
            self.messages.get(node, above)
            self.messages.get(above, node)
        self._component = {root: self.messages.log_likelihood(root) for root in self.draft.roots}

    def run(self, jobs: Iterable[Job]) -> list[Proposal]:
        """Run jobs on all threads; the result does not depend on their number."""

        def run(job: Job) -> list[Proposal]:
            return [] if time.monotonic() > self.request.deadline else job()

        return [proposal for found in threads.run(run, jobs) for proposal in found]

    def before(self, *nodes: int) -> float:
        """Log-likelihood of the components of some nodes."""
        return sum(self._component[r] for r in {self.draft.root_of(node) for node in nodes})

    def in_focus(self, *nodes: int) -> bool:
        """Tell whether a change of these nodes is asked for."""
        focus = self.request.focus
        return focus is None or not focus.isdisjoint(nodes)

    def arms(self, node: int, *without: int) -> dict[int, Message]:
        """Return the messages from the neighbours of a node."""
        around = self.draft.neighbours(node)
        return {k: self.messages.get(k, node) for k in around if k not in without}

    def fitted(
        self,
        key: Key,
        change: Change,
        arms: Mapping[int, Message],
        region: Iterable[int],
        before: float,
        draft: DiscreteDraft | None = None,
    ) -> list[Proposal]:
        """Fit the star in the middle of a change and return it as a proposal, if it may pay.

        ``before`` is the likelihood of what the star's likelihood replaces, ``draft`` the draft
        rooted near the change, where that is at hand: turning edges round takes time.
        """
        if self.request.is_known(key):
            return []
        new = (draft or self.draft).copy()
        centre = change(new)
        new.reroot(centre)
        star = Star(new.above[centre], {node: new.above[node] for node in arms})
        cost = self.request.penalty(new) - self.price
        seen = self.seen(centre, len(star.top))
        least = before + self._least_rise(key, cost)
        fit = local.fit_star(self.rows, seen, arms, star, least=least)
        return self.proposal(key, fit.log_likelihood - before, cost, region, change, fit.star)

    def proposal(
        self,
        key: Key,
        rise: float,
        cost: float,
        region: Iterable[int],
        change: Change,
        star: Star | None,
    ) -> list[Proposal]:
        """Return a change if it may pay, given the rise of the likelihood and of the penalty."""
        missing = self._least_rise(key, cost) - rise
        if missing > 0.0:
            self.lose(key, missing + SLACK)
            return []
        if self.request.is_known(key):
            return []
        return [Proposal(key, rise - cost, rise, frozenset(region), change, star)]

    def _least_rise(self, key: Key, cost: float) -> float:
        return max(cost - SLACK, self.request.least_rise(key, cost))

    def lose(self, key: Key, loss: float) -> None:
        """Write down what a change would lose."""
        if self.request.losses is not None:
            self.request.losses[key] = loss

    def seen(self, node: int, n_states: int) -> FloatArray:
        """Return what is seen at a node."""
        if node < self.draft.n_observed:
            return self.rows.seen(node)
        return np.ones((n_states, self.rows.weights.size))

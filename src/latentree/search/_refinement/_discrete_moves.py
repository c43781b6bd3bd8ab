"""What all changes of a draft with states have in common: messages, and a local fit.

Every change ends in the same fit: EM on the star in its middle, with the messages that arrive there
held fixed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from latentree._kernels import threads
from latentree.search._refinement._discrete_fit import Arm, RowEvidence, RowMessages, fit_star
from latentree.search._refinement._draft import StateDraft
from latentree.search._refinement._search import Edit, Key, Proposal, Request, Star

Job = Callable[[], list[Proposal]]


class Change(NamedTuple):
    """A change of a draft, and what the star in its middle is fitted to."""

    key: Key
    edit: Edit
    arms: Mapping[int, Arm]
    """Messages that arrive at the star."""
    region: Iterable[int]
    """Nodes whose neighbors or states change."""
    before: float
    """Log-likelihood of what the star's likelihood replaces."""
    n_places: float | None = None
    """Number of places that a move chooses from."""
    has_new_center: bool = False
    """Whether the node in the middle is new."""
    draft: StateDraft | None = None
    """The draft rooted near the change, where that is at hand: turning edges round takes time."""


class FittedStar(NamedTuple):
    """The star in the middle of a change, fitted."""

    star: Star | None
    """None where nothing is left to fit."""
    rise: float
    """Of the log-likelihood."""
    cost: float
    """Rise of the penalty."""
    needed: float
    """What the log-likelihood must rise by for the change to be accepted."""

    @property
    def surplus(self) -> float:
        """By how much the log-likelihood rises more than is needed."""
        return self.rise - self.needed


class DiscreteMoves:
    """A draft with all its messages, and the fit that all changes end in."""

    def __init__(self, rows: RowEvidence, request: Request, max_states: int | None) -> None:
        self.rows, self.request, self.options = rows, request, request.options
        assert isinstance(request.draft, StateDraft)
        self.draft = request.draft
        self.max_states = max_states or 2**15
        self.price = request.penalty(self.draft)
        self.messages = RowMessages(self.draft, rows)
        for above, node in self.draft.edges:  # all of them now: jobs share them
            if not self.draft.is_number(node):
                self.messages.get(node, above)
                self.messages.get(above, node)
        self._component = {root: self.messages.log_likelihood(root) for root in self.draft.roots}

    def jobs(self) -> Iterable[Job]:
        """Return what there is to try."""
        raise NotImplementedError

    def proposals(self) -> list[Proposal]:
        """Run all jobs on all threads; the result does not depend on their number."""

        def run(job: Job) -> list[Proposal]:
            return [] if time.monotonic() > self.request.deadline else job()

        return [proposal for found in threads.run(run, self.jobs()) for proposal in found]

    def before(self, *nodes: int) -> float:
        """Log-likelihood of the components of some nodes."""
        return sum(self._component[r] for r in {self.draft.root_of(node) for node in nodes})

    def in_focus(self, *nodes: int) -> bool:
        """Tell whether a change of these nodes is asked for."""
        focus = self.request.focus
        return focus is None or not focus.isdisjoint(nodes)

    def arms(self, node: int, *without: int) -> dict[int, Arm]:
        """Return what arrives from the neighbors of a node."""
        around = self.draft.neighbors(node)
        return {k: self.messages.arm(k, node) for k in around if k not in without}

    def fitted(self, change: Change) -> list[Proposal]:
        """Fit the star in the middle of a change and return it as a proposal, if it may pay."""
        if change.key in self.request.known:
            return []
        new = (change.draft or self.draft).copy()
        center = change.edit(new)
        new.reroot(center)
        star = Star(new.above[center], {node: new.above[node] for node in change.arms})
        return self.proposal(change, self.fit(change, new, center, star))

    def fit(
        self,
        change: Change,
        draft: StateDraft,
        center: int,
        star: Star,
        least: float | None = None,
    ) -> FittedStar:
        """Fit a star; EM ends where its surplus will be less than ``least``, or too little."""
        cost = self.request.penalty(draft) - self.price
        needed, options = self.needed(change, draft, cost), self.options
        surplus = -self.slack(change, cost, needed) if least is None else least
        goal, seen = change.before + needed + surplus, self.rows.seen(center, len(star.top))
        fit = fit_star(self.rows, seen, change.arms, star, options.steps, goal)
        rise = fit.log_likelihood - change.before
        return FittedStar(fit.star, rise, cost, needed)

    def needed(self, change: Change, draft: StateDraft, cost: float) -> float:
        """Return what the log-likelihood must rise by for a change to be accepted."""
        return self.request.needed_rise(cost, change.n_places)

    def slack(self, change: Change, cost: float, needed: float) -> float:
        """Return what may be missing of that before all parameters are fitted."""
        return self.request.slack(cost, change.n_places)

    def proposal(self, change: Change, fit: FittedStar) -> list[Proposal]:
        """Return a change if it may pay."""
        key, slack = change.key, self.slack(change, fit.cost, fit.needed)
        if fit.surplus < -slack:
            # What is missing, and slack: a score that rises by as much may have made it worth while
            self.note_loss(key, self.options.slack - slack - fit.surplus)
            return []
        if key in self.request.known:
            return []
        gain, region = fit.rise - fit.cost, frozenset(change.region)
        return [Proposal(key, gain, fit.rise, fit.needed, region, change.edit, fit.star)]

    def note_loss(self, key: Key, loss: float) -> None:
        """Write down what a change would lose."""
        if self.request.losses is not None:
            self.request.losses[key] = loss

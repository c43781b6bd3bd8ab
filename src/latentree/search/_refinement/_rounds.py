"""Rounds of changes: propose, accept what raises the score, settle, and again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from latentree.search._refinement._draft import Conflict, Draft
from latentree.search._refinement._proposal import Engine, Key, Penalty, Proposal, Request, bic_cost

Watch = Callable[[int, float], None]
"""Called with the number of changes accepted so far and the score."""

SETTLE = 12
"""Steps of EM on everything that a change gets before it is judged."""

ENOUGH = 2.0
"""A round that gains less is the last of its stage."""

ENOUGH_BEFORE = 0.01
"""While another stage follows, with another penalty, a round must gain this share of all gains."""

SLACK = 8.0
"""Changes that lose less than this by themselves may still win once all tables are fitted."""

PATIENCE = 6
"""Changes of that kind tried one after the other without success before the round gives up."""

EVIDENCE = {"regraft": 1, "insert": 1, "promote": 1, "relink": 2}
"""Changes that the likelihood itself must speak for, by as much as so many parameters cost.

What they save does not count for them. A subtree has many places to go, and one of them is better
than the true one by chance; the ends of a weak edge have many more. And that a hidden variable
equals an observed one is a coincidence, which a saved parameter does not make likely.
"""

FORGET = 50.0
"""A change that failed is tried again when the score has moved by more than this.

One that was found to lose more than SLACK is looked at again when the score has moved by as much.
"""


@dataclass(frozen=True)
class Move:
    """A change that was accepted."""

    kind: str
    nodes: tuple[int, ...]
    gain: float
    """Rise of the score that it was accepted for, before everything was fitted again."""


@dataclass
class Standing:
    """A draft that has been fitted, and its score."""

    draft: Draft
    log_likelihood: float
    score: float

    def rescored(self, penalty: Penalty) -> Standing:
        """Return it with the score under another penalty."""
        return Standing(self.draft, self.log_likelihood, self.log_likelihood - penalty(self.draft))

    def n_changed(self, other: Standing) -> int:
        """Return how many splits of the variables only one of two trees has."""
        return len(self.draft.splits() ^ other.draft.splits())


@dataclass
class Rounds:
    """The search on one engine.

    A proposal's gain holds with all other tables fixed, so proposals that touch different nodes
    are accepted together; should they spoil each other, half of them are tried. None is accepted
    that gains less than ``min_gain``; and where EVIDENCE asks for it, the log-likelihood itself
    must rise by ``evidence`` times as much as BIC charges.
    """

    engine: Engine
    deadline: float
    watch: Watch | None = None
    min_gain: float = 0.0
    evidence: float = 0.0
    moves: list[Move] = field(default_factory=list)
    _again: dict[Key, float] = field(default_factory=dict)
    """The score at which a change that failed is tried again."""
    last: Standing | None = field(default=None, init=False)
    """What was accepted last."""

    def run(self, draft: Draft, penalty: Penalty, is_last: bool = True) -> Standing:
        """Alternate changes of states and of edges until they gain too little.

        After a round only edges at nodes that it changed are looked at, until nothing is gained
        there; then all of them once more.
        """
        self._again.clear()
        first = here = self.last = self.standing(draft, penalty)
        focus: frozenset[int] | None = None
        while not self.out_of_time:
            before = here
            for propose in (self.engine.states, self.engine.structures):
                here = self._round(here, penalty, propose, focus)
            share = 0.0 if is_last else ENOUGH_BEFORE
            if here.score - before.score >= max(ENOUGH, share * (here.score - first.score)):
                focus = _changed(before.draft, here.draft)
            elif focus is not None:
                focus = None
            else:
                break
        return here

    def standing(self, draft: Draft, penalty: Penalty, n_steps: int = 4 * SETTLE) -> Standing:
        """Fit a draft and score it."""
        settled, log_likelihood = self.engine.settle(draft, n_steps)
        return Standing(settled, log_likelihood, log_likelihood - penalty(settled))

    @cached_property
    def _least_rises(self) -> dict[str, float]:
        """What the log-likelihood must rise by, for kinds of changes that need evidence."""
        unit = self.evidence * bic_cost(self.engine.n_samples)
        return {kind: unit * share for kind, share in EVIDENCE.items()} if unit else {}

    @property
    def out_of_time(self) -> bool:
        """Tell whether the time is up."""
        return time.monotonic() > self.deadline

    def _round(
        self,
        here: Standing,
        penalty: Penalty,
        propose: Callable[[Request], list[Proposal]],
        focus: frozenset[int] | None,
    ) -> Standing:
        def is_known(key: Key) -> bool:
            return self._again.get(key, -math.inf) > here.score

        losses: dict[Key, float] = {}
        found = propose(
            Request(here.draft, penalty, is_known, focus, self.deadline, losses, self._least_rises)
        )
        self._again |= {key: here.score + loss for key, loss in losses.items()}
        found.sort(key=lambda proposal: (-proposal.gain, proposal.key))
        sure = _apart(p for p in found if p.gain > self.min_gain)
        touched: set[int] = set()
        while sure and not self.out_of_time:
            new = self._together(here, sure, penalty)
            if new.score > here.score:
                here = self._accept(new, sure)
                touched.update(*(proposal.region for proposal in sure))
                break
            if len(sure) == 1:
                self._again[sure[0].key] = here.score + FORGET
            sure = sure[: len(sure) // 2]
        return self._doubtful(here, [p for p in found if not p.region & touched], penalty)

    def _doubtful(self, here: Standing, rest: list[Proposal], penalty: Penalty) -> Standing:
        """Try changes one by one that need all tables fitted before they pay."""
        failures = 0
        touched: set[int] = set()
        for proposal in rest:
            if self.out_of_time or failures >= PATIENCE or proposal.gain < -SLACK:
                break
            if proposal.region & touched:
                continue
            new = self._together(here, [proposal], penalty)
            if new.score > here.score + max(self.min_gain, 0.1):
                here = self._accept(new, [proposal])
                touched |= proposal.region
                failures = 0
            else:
                self._again[proposal.key] = here.score + FORGET
                failures += 1
        return here

    def _together(self, here: Standing, proposals: list[Proposal], penalty: Penalty) -> Standing:
        draft = here.draft
        for proposal in proposals:
            with suppress(Conflict):
                draft = proposal.apply(draft)
        return self.standing(draft, penalty, SETTLE)

    def _accept(self, new: Standing, proposals: list[Proposal]) -> Standing:
        self.moves += [Move(p.key[0], tuple(p.key[1:]), p.gain) for p in proposals]
        self.last = new
        if self.watch is not None:
            self.watch(len(self.moves), new.score)
        return new


def _changed(old: Draft, new: Draft) -> frozenset[int]:
    """Return nodes whose neighbours or states have changed."""
    return frozenset(
        node
        for node in new.parent
        if node not in old.parent
        or set(old.neighbours(node)) != set(new.neighbours(node))
        or old.n_states[node] != new.n_states[node]
    )


def _apart(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Take proposals in order, leaving out those that touch nodes of earlier ones."""
    chosen, touched = [], set[int]()
    for proposal in proposals:
        if not proposal.region & touched:
            chosen.append(proposal)
            touched |= proposal.region
    return chosen

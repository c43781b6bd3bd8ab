"""The search: changes are proposed, the best are accepted together, all parameters are fitted.

An engine of a family proposes changes, each with the parameters around it fitted and all others
fixed. The search is the same for every family.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from scipy.special import gammainccinv

from latentree.em import INTERRUPTED
from latentree.search._refinement._draft import Conflict, Draft
from latentree.search._refinement._options import RefineOptions

Key = tuple[str, *tuple[int, ...]]
"""A kind of change and its nodes, for the report and for remembering failures."""

Edit = Callable[[Draft], int]
"""Changes edges or states of a draft in place; returns the node in the middle of the change."""

Watch = Callable[[int, float], None]
"""Called with the number of changes accepted so far and the score, −∞ until the number of hidden
nodes is the one that was asked for."""

OUT_OF_TIME = "the time limit came before all changes were tried"
"""The note of a search that it ended."""

FORBIDDEN = 1e9
"""What a hidden node too many or too few costs where their number is given."""


def bic_cost(n_samples: float) -> float:
    """Return BIC's penalty for a parameter: ½·log n."""
    return 0.5 * math.log(max(n_samples, 2.0))


def chance_gain(n_places: float, n_parameters: int = 1) -> float:
    """Return the gain that one of so many places reaches by chance.

    A place that is as good as the old one gains ½·χ², by default with one degree of freedom, so the
    level t that one of P places exceeds on average has P·Pr(½·χ² > t) = 1.
    """
    return float(gammainccinv(0.5 * n_parameters, 1.0 / max(n_places, 1.0)))


@dataclass(frozen=True)
class Penalty:
    """The penalty of a draft, which is subtracted from its log-likelihood.

    ``per_parameter`` for every free parameter, ``per_inner`` for every node with two neighbors or
    more, and FORBIDDEN for every hidden node by which their number differs from ``n_hidden``.
    """

    per_parameter: float
    per_inner: float = 0.0
    n_hidden: int | None = None

    def __call__(self, draft: Draft) -> float:
        """Return the penalty of a draft."""
        return self.of(draft.n_parameters, draft.n_inner, draft.n_hidden)

    def of(self, n_parameters: int, n_inner: int, n_hidden: int) -> float:
        """Return the penalty of a tree with these numbers."""
        surplus = 0 if self.n_hidden is None else abs(n_hidden - self.n_hidden)
        return self.per_parameter * n_parameters + self.per_inner * n_inner + FORBIDDEN * surplus

    def scaled(self, share: float) -> Penalty:
        """Return the penalty with a share of the cost of parameters.

        The cost of inner nodes stays: those that are let in cheaply are hard to remove again, as
        each takes over a part of what others explained.
        """
        return Penalty(share * self.per_parameter, self.per_inner, self.n_hidden)


NO_PENALTY = Penalty(0.0)


def _allowed(gain: float) -> float:
    """Return a gain without what leaving a forbidden number of hidden nodes was worth."""
    return gain - FORBIDDEN * round(gain / FORBIDDEN)


class Star(NamedTuple):
    """Parameters around a node: its entry as a root, and the tables of its edges."""

    top: Any
    tables: Mapping[int, Any]


class Proposal(NamedTuple):
    """A change of a draft with the parameters around it fitted, all others fixed."""

    key: Key
    gain: float
    """Rise of the score, exact for these parameters: fitting more adds to it."""
    rise: float
    """Rise of the log-likelihood alone."""
    needed: float
    """What the log-likelihood must rise by when all parameters are fitted."""
    region: frozenset[int]
    """Nodes whose neighbors change; proposals with common ones are not accepted together."""
    edit: Edit
    star: Star | None

    def apply(self, draft: Draft) -> Draft:
        """Return a changed copy of a draft."""
        new = draft.copy()
        center = self.edit(new)
        if self.star is not None:
            new.set_star(center, self.star.top, self.star.tables)
        return new


class Request(NamedTuple):
    """What the search asks an engine for."""

    draft: Draft
    penalty: Penalty
    options: RefineOptions
    known: Set[Key] = frozenset()
    """Changes that have failed already."""
    focus: frozenset[int] | None = None
    """Nodes that changes are asked for; None stands for all."""
    deadline: float = math.inf
    """On the monotonic clock: what has not been found by then is not wanted."""
    losses: dict[Key, float] | None = None
    """Where an engine may note what changes would lose: they are known then for a while."""

    def is_choice(self, cost: float, n_places: float | None) -> bool:
        """Tell whether a change is one of many of which the best gains by chance."""
        is_forced = cost < -FORBIDDEN / 2  # the number of hidden nodes is given
        return n_places is not None and not is_forced and self.options.caution > 0.0

    def needed_rise(self, cost: float, n_places: float | None) -> float:
        """Return what the log-likelihood must rise by for a change to be accepted.

        A move, one of ``n_places`` that are as near, must pay for what it adds, and for the choice.
        What it saves does not count: the same saving is to be had without the move, by a
        contraction.
        """
        if n_places is None or not self.is_choice(cost, n_places):
            return cost
        return max(cost, 0.0) + self.options.caution * chance_gain(n_places)

    def slack(self, cost: float, n_places: float | None) -> float:
        """Return what a change may lose and still be proposed: fitting all may make up for it."""
        return 0.0 if self.is_choice(cost, n_places) else self.options.slack


Proposer = Callable[[Request], Iterable[Proposal]]


class Engine(Protocol):
    """What the search needs from a family of models, on given data."""

    n_samples: float
    shares: tuple[float, ...]
    """Shares of the penalty, one stage after the other."""
    settle_steps: int
    """EM steps on all parameters after changes; a start gets more."""
    is_tiny: bool
    """Whether the search is done uncompiled before its kernels would be loaded."""

    def draft(self, model: Any) -> Draft:
        """Return a model as a draft."""

    def model(self, draft: Any) -> Any:
        """Return a draft as a model."""

    def settle(self, draft: Any, n_steps: int, goal: float = -math.inf) -> tuple[Any, float]:
        """Run accelerated EM on all parameters; return the draft and its log-likelihood."""

    @property
    def proposers(self) -> Sequence[Proposer]:
        """Functions that propose changes, called in turn in every round."""

    @property
    def last_proposers(self) -> Sequence[Proposer]:
        """Those that take longer, called where the others find nothing any more."""


class Scored(NamedTuple):
    """A draft whose parameters were fitted, and its score."""

    draft: Draft
    log_likelihood: float
    score: float

    def under(self, penalty: Penalty) -> Scored:
        """Return it with the score under another penalty."""
        return self._replace(score=self.log_likelihood - penalty(self.draft))


class AcceptedMove(NamedTuple):
    """A change that was accepted."""

    kind: str
    nodes: tuple[int, ...]
    gain: float
    """Rise of the score that it was accepted for, before all parameters were fitted again."""


class SearchResult(NamedTuple):
    """The best draft of a search, the changes that led to it, and why it ended early if it did."""

    best: Scored
    moves: tuple[AcceptedMove, ...]
    note: str = ""


@dataclass
class _Look:
    """Functions that propose changes, and what became of these changes."""

    proposers: Sequence[Proposer]
    penalty: Penalty
    n_steps: int
    """EM steps on all parameters after changes, before they are accepted."""
    patience: int
    """Doubtful changes that are tried in vain before the round ends."""
    retry_at: dict[Key, float] = field(default_factory=dict)
    """The score at which a change is looked at again; one that was tried in vain never is."""


@dataclass
class Search:
    """The search on one engine."""

    engine: Engine
    options: RefineOptions
    deadline: float = math.inf
    watch: Watch | None = None
    accepted: list[AcceptedMove] = field(default_factory=list)
    last: Scored | None = field(default=None, init=False)
    """The last draft that was accepted."""
    whole: Penalty = field(default=NO_PENALTY, init=False)
    """The penalty that was asked for."""

    def run(self, draft: Draft, penalty: Penalty) -> SearchResult:
        """Search with a part of the penalty first, then with all of it."""
        self.whole = penalty
        found = SearchResult(self.score(draft, penalty), ())
        here, end = found.best, self.deadline
        try:
            for share in self.engine.shares:
                if share < 1.0:  # leave time for the whole penalty
                    now = time.monotonic()
                    self.deadline = now + 0.5 * (end - now)
                here = self.climb(here.draft, penalty.scaled(share), is_last=share == 1.0)
                self.deadline = end
                found = self._higher(found, here, penalty)
        except KeyboardInterrupt:
            if self.last is not None:
                found = self._higher(found, self.last, penalty)
            return found._replace(note=INTERRUPTED)
        return found._replace(note=OUT_OF_TIME if self.out_of_time else "")

    def _higher(self, found: SearchResult, here: Scored, penalty: Penalty) -> SearchResult:
        here = here.under(penalty)
        return SearchResult(here, tuple(self.accepted)) if here.score > found.best.score else found

    def climb(self, draft: Draft, penalty: Penalty, is_last: bool = True) -> Scored:
        """Accept changes under one penalty, until a round gains too little.

        After a round only edges at nodes that it changed are looked at, until nothing is gained
        there; then all of them once more. In the last stage changes that take longer to find follow
        where nothing else gains.
        """
        steps, effort = self.engine.settle_steps, self.options.effort
        usual = _Look(self.engine.proposers, penalty, steps, self.options.patience)
        slow = self.engine.last_proposers if is_last else ()
        last = _Look(slow, penalty, effort * steps, effort * self.options.patience)
        here = self.last = self.score(draft, penalty)
        focus: frozenset[int] | None = None
        while not self.out_of_time:
            before = here
            here = self._round(here, focus, usual)
            if focus is None and here.score - before.score < self.options.least_gain:
                here = self._round(here, focus, last)
            if here.score - before.score >= self.options.least_gain:
                focus = _changed(before.draft, here.draft)
            elif focus is not None:
                focus = None
            else:
                break
        return here

    def score(
        self,
        draft: Draft,
        penalty: Penalty,
        n_steps: int | None = None,
        goal: float = -math.inf,
    ) -> Scored:
        """Fit all parameters of a draft and score it; a start gets more steps than a change."""
        steps = self.options.effort * self.engine.settle_steps if n_steps is None else n_steps
        settled, log_likelihood = self.engine.settle(draft, steps, goal)
        return Scored(settled, log_likelihood, log_likelihood - penalty(settled))

    @property
    def out_of_time(self) -> bool:
        """Tell whether the time is up."""
        return time.monotonic() > self.deadline

    def _round(self, here: Scored, focus: frozenset[int] | None, look: _Look) -> Scored:
        for propose in look.proposers:
            losses: dict[Key, float] = {}
            known = {key for key, score in look.retry_at.items() if score > here.score}
            request = Request(
                here.draft, look.penalty, self.options, known, focus, self.deadline, losses
            )
            found = sorted(propose(request), key=lambda p: (-p.gain, p.key))
            look.retry_at |= {key: here.score + loss for key, loss in losses.items()}
            here = self._accept_best(here, found, look)
        return here

    def _accept_best(self, here: Scored, found: list[Proposal], look: _Look) -> Scored:
        """Accept proposals that gain and do not touch each other; then try doubtful ones.

        A gain is exact with all other parameters fixed, so changes far apart add up. Should they
        spoil each other all the same, the better half of them is tried.
        """
        touched: set[int] = set()
        least = self.options.least_gain
        sure = _apart(p for p in found if p.gain > least and p.rise >= p.needed)
        while sure and not self.out_of_time:
            new = self._applied(here, sure, look)
            if new.score > here.score:
                here = self._accept(new, sure)
                touched.update(*(proposal.region for proposal in sure))
                break
            if len(sure) == 1:
                look.retry_at[sure[0].key] = math.inf
            sure = sure[: len(sure) // 2]
        return self._try_doubtful(here, found, touched, look)

    def _try_doubtful(
        self, here: Scored, found: list[Proposal], touched: set[int], look: _Look
    ) -> Scored:
        """Try changes one by one that may gain when all parameters are fitted."""
        failures = 0
        for proposal in found:
            if self.out_of_time or failures >= look.patience:
                break
            if proposal.region & touched:
                continue
            new = self._tried(here, proposal, look)
            gain, rise = new.score - here.score, new.log_likelihood - here.log_likelihood
            if gain > self.options.least_gain and rise >= proposal.needed:
                here = self._accept(new, [proposal])
                touched |= proposal.region
                failures = 0
            else:
                look.retry_at[proposal.key] = math.inf
                failures += 1
        return here

    def _tried(self, here: Scored, proposal: Proposal, look: _Look) -> Scored:
        """Fit a change as long as it may still be accepted."""
        try:
            draft = proposal.apply(here.draft)
        except Conflict:
            return here
        score = here.score + self.options.least_gain + look.penalty(draft)
        goal = max(score, here.log_likelihood + proposal.needed)
        return self.score(draft, look.penalty, look.n_steps, goal)

    def _applied(self, here: Scored, proposals: list[Proposal], look: _Look) -> Scored:
        draft = here.draft
        for proposal in proposals:
            with suppress(Conflict):
                draft = proposal.apply(draft)
        return self.score(draft, look.penalty, look.n_steps)

    def _accept(self, new: Scored, proposals: list[Proposal]) -> Scored:
        self.accepted += [AcceptedMove(p.key[0], p.key[1:], _allowed(p.gain)) for p in proposals]
        self.last = new
        if self.watch is not None:  # by the whole penalty, whatever part of it is used now
            is_allowed = self.whole.of(0, 0, new.draft.n_hidden) == 0.0
            self.watch(len(self.accepted), new.under(self.whole).score if is_allowed else -math.inf)
        return new


def _changed(old: Draft, new: Draft) -> frozenset[int]:
    """Return nodes whose neighbors or states have changed."""
    return frozenset(
        node
        for node in new.parent
        if node not in old.parent
        or set(old.neighbors(node)) != set(new.neighbors(node))
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

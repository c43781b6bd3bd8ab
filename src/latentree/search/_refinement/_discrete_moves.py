"""Changes of a discrete draft: of its edges, and of the numbers of states of its hidden nodes.

Every change ends in the same local fit: EM on the star in its middle, with the messages that
arrive there held fixed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from latentree._kernels import threads
from latentree.distances import Sample
from latentree.models import DiscreteTreeModel
from latentree.search._refinement import _draft as edits
from latentree.search._refinement._discrete_fit import (
    Message,
    RowEvidence,
    RowMessages,
    Side,
    estimated_gains,
    fit_star,
    moment_table,
    posterior,
)
from latentree.search._refinement._draft import DiscreteDraft, Draft
from latentree.search._refinement._full_fit import fit_all
from latentree.search._refinement._options import DEFAULTS, RefineOptions
from latentree.search._refinement._search import Edit, Key, Proposal, Request, Star, chance_gain
from latentree.typing import FloatArray, IntArray

Job = Callable[[], list[Proposal]]

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

    def settle(self, draft: DiscreteDraft, n_steps: int) -> tuple[DiscreteDraft, float]:
        """Run accelerated EM on all tables."""
        fitted, log_likelihood = fit_all(self.model(draft), self.sample, n_steps)
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


class _Change(NamedTuple):
    """A change of a draft, and what the star in its middle is fitted to."""

    key: Key
    edit: Edit
    arms: Mapping[int, Message]
    """Messages that arrive at the star."""
    region: Iterable[int]
    before: float
    """Log-likelihood of what the star's likelihood replaces."""
    n_places: float | None = None
    """Number of places that a move chooses from."""
    has_new_center: bool = False
    """Whether the node in the middle is new."""
    draft: DiscreteDraft | None = None
    """The draft rooted near the change, where that is at hand: turning edges round takes time."""


class _FittedStar(NamedTuple):
    """The star in the middle of a change, fitted."""

    star: Star | None
    """None where nothing is left to fit."""
    rise: float
    """Of the log-likelihood."""
    cost: float
    """Rise of the penalty."""
    surplus: float
    """By how much the log-likelihood rises more than is needed."""


class DiscreteMoves:
    """A draft with all its messages, and the fit that all changes end in."""

    def __init__(self, rows: RowEvidence, request: Request, max_states: int | None) -> None:
        self.rows, self.request, self.options = rows, request, request.options
        assert isinstance(request.draft, DiscreteDraft)
        self.draft = request.draft
        self.max_states = max_states or 2**15
        self.price = request.penalty(self.draft)
        self.messages = RowMessages(self.draft, rows)
        for above, node in self.draft.edges:  # all of them now: jobs share them
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

    def arms(self, node: int, *without: int) -> dict[int, Message]:
        """Return the messages from the neighbors of a node."""
        around = self.draft.neighbors(node)
        return {k: self.messages.get(k, node) for k in around if k not in without}

    def fitted(self, change: _Change) -> list[Proposal]:
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
        change: _Change,
        draft: DiscreteDraft,
        center: int,
        star: Star,
        least: float | None = None,
    ) -> _FittedStar:
        """Fit a star; EM ends where its surplus will be less than ``least``, or too little."""
        cost = self.request.penalty(draft) - self.price
        needed, options = self.needed(change, cost), self.options
        surplus = -self.slack(change, cost) if least is None else least
        goal, seen = change.before + needed + surplus, self.rows.seen(center, len(star.top))
        arms, steps = change.arms, options.discrete_steps
        fit = fit_star(self.rows, seen, arms, star, steps, goal, options.hope)
        rise = fit.log_likelihood - change.before
        return _FittedStar(fit.star, rise, cost, rise - needed)

    def needed(self, change: _Change, cost: float) -> float:
        """Return what the log-likelihood must rise by for a change to be accepted."""
        return self.request.needed_rise(cost, change.n_places)

    def slack(self, change: _Change, cost: float) -> float:
        """Return what may be missing of that before all parameters are fitted."""
        return self.request.slack(cost, change.n_places)

    def proposal(self, change: _Change, fit: _FittedStar) -> list[Proposal]:
        """Return a change if it may pay."""
        key, slack = change.key, self.slack(change, fit.cost)
        if fit.surplus < -slack:
            self.note_loss(key, self.options.slack - slack - fit.surplus)
            return []
        if key in self.request.known:
            return []
        gain, needed = fit.rise - fit.cost, fit.rise - fit.surplus
        region = frozenset(change.region)
        return [Proposal(key, gain, fit.rise, needed, region, change.edit, fit.star)]

    def note_loss(self, key: Key, loss: float) -> None:
        """Write down what a change would lose."""
        if self.request.losses is not None:
            self.request.losses[key] = loss


# Edges ------------------------------------------------------------------------------------------


class _Trial(NamedTuple):
    """A subtree hung at a place, only the edge between them fitted."""

    gain: float
    place: int
    table: FloatArray


class _Pruned(NamedTuple):
    """A draft without the subtree that hung with its node x at p."""

    x: int
    p: int
    whole: DiscreteDraft
    """The draft with the subtree, rooted at p."""
    draft: DiscreteDraft
    left: tuple[int, ...]
    """Nodes at which something was cut off."""
    rest: RowMessages
    arm: Message
    """Message from x about the subtree."""
    side: Side
    estimate: FloatArray
    """What hanging it at each node of the listing may gain."""
    hops: dict[int, int]
    """How many edges away from p nodes are."""
    before: float
    apart: float
    """Log-likelihood of the two parts."""
    cost: float
    """Of being cut off."""


class EdgeMoves(DiscreteMoves):
    """Changes of edges.

    For every edge, either side of it is hung elsewhere: places are ranked by their association
    with the subtree, compared by fitting that one edge, and the best are fitted as stars.
    """

    def __init__(self, rows: RowEvidence, request: Request, max_states: int | None) -> None:
        super().__init__(rows, request, max_states)
        self.nodes = self.draft.order()
        self._place = {node: place for place, node in enumerate(self.nodes)}
        self._numbers = np.array(self.nodes)
        self._end = self._subtree_ends()

    def _subtree_ends(self) -> IntArray:
        """Return where the subtree of each node ends in the listing, which has it in one piece."""
        end = np.arange(1, len(self.nodes) + 1)
        for node in reversed(self.nodes):
            parent = self.draft.parent[node]
            if parent >= 0:
                at, above = self._place[node], self._place[parent]
                end[above] = max(end[above], end[at])
        return end

    def jobs(self) -> Iterator[Job]:
        """Return all changes of edges to try."""
        yield from self._prunings()
        yield from self._contractions()
        yield from self._stand_ins()
        yield from self._links()

    # Subtrees that hang elsewhere ---------------------------------------------------------------

    def _prunings(self) -> Iterator[Job]:
        """Hang either side of every edge elsewhere."""
        directed = [
            (x, p)
            for edge in self.draft.edges
            for x, p in (edge, edge[::-1])
            if len(self.draft.neighbors(p)) > 1 and self.in_focus(x, p)
        ]
        if not directed:
            return
        tops, messages = self.messages.marginal, self.messages
        sources = [posterior(tops[x], messages.get(x, p).value) for x, p in directed]
        places = [posterior(tops[y], messages.get(y).value) for y in self.nodes]
        estimates = estimated_gains(sources, places, self.rows.weights)
        for (x, p), row in zip(directed, estimates, strict=True):
            yield partial(self._prune, x, p, row)

    def _prune(self, x: int, p: int, estimate: FloatArray) -> list[Proposal]:
        pruned = self._pruned(x, p, estimate)
        found = self._cut(pruned)
        trials = [self._trial(pruned, y) for y in self._places(pruned)]
        for trial in self._best(trials):
            found += self._regraft(pruned, trial)
        if p in pruned.draft.parent:  # where it hangs already
            trials.append(_Trial(0.0, p, self.messages.table(p, x)))
        for trial in self._best(trials):
            found += self._into_edges(pruned, trial)
        return found

    def _best(self, trials: list[_Trial]) -> list[_Trial]:
        """Return the few places to be fitted."""
        best = sorted(trials, key=lambda trial: -trial.gain)[: self.options.places]
        return [trial for trial in best if trial.gain > -self.options.trial_loss]

    def _pruned(self, x: int, p: int, estimate: FloatArray) -> _Pruned:
        whole = self.draft.copy()
        whole.reroot(p)
        base = whole.copy()
        base.cut(p, x)
        left = base.tidy(p)
        base.reroot(left[0])
        arm = self.messages.get(x, p)
        rest = RowMessages(base, self.rows, self.messages, left)
        apart = self.rows.log_likelihood(base.above[x], arm) + rest.log_likelihood(left[0])
        return _Pruned(
            x, p, whole, base, left, rest, arm, Side(base.above[x], arm.value, self.rows.weights),
            estimate, self.draft.distances(p, x), self.before(x), apart,
            self.request.penalty(base) - self.price,
        )  # fmt: skip

    def _n_places(self, pruned: _Pruned, *places: int) -> int:
        """Return how many moves of subtrees at p go as far as one to these places, or less far."""
        far = max(pruned.hops[place] for place in places)
        near = sum(0 < hops <= far for hops in pruned.hops.values())
        return near * len(self.draft.neighbors(pruned.p))

    def _left(self, x: int, p: int) -> IntArray:
        """Return places in the listing of what hangs with p when x is cut off, but not of p."""
        is_below = self.draft.parent[x] == p
        first = self._place[self.draft.root_of(p) if is_below else p]
        left: IntArray = np.arange(first, self._end[first])
        if is_below:
            start = self._place[x]
            left = left[(left < start) | (left >= self._end[start])]
        return np.delete(left, np.searchsorted(left, self._place[p]))

    def _cut(self, pruned: _Pruned) -> list[Proposal]:
        """Leave a subtree by itself, if its edge is no stronger than by chance.

        The penalty alone would cut whatever hangs by a weak edge. One stays that adds more to the
        log-likelihood than the best edge between any two nodes adds where all are independent.
        """
        x, p = pruned.x, pruned.p
        new = pruned.draft.copy()
        new.tidy(x)
        rise, cost = pruned.apart - pruned.before, self.request.penalty(new) - self.price
        n_states, n_nodes = self.draft.n_states, len(self.nodes)
        n_parameters = (n_states[p] - 1) * (n_states[x] - 1)
        if -rise > chance_gain(0.5 * n_nodes * (n_nodes - 1), n_parameters):
            return []
        region = {p, x, *pruned.left, *self.draft.neighbors(x)}
        change = _Change(("cut", p, x), partial(edits.cut, p=p, x=x), {}, region, pruned.before)
        return self.proposal(change, _FittedStar(None, rise, cost, rise - cost))

    def _places(self, pruned: _Pruned) -> list[int]:
        """Return where a subtree may hang.

        Estimates are too high rather than too low, as the subtree has its part in what is known
        about the place: where they promise nothing, nothing is tried.
        """
        p, estimate, options = pruned.p, pruned.estimate, self.options
        left = self._left(pruned.x, p)
        ranked = _smallest(-estimate[left], self._numbers[left], options.far_places)
        return [
            y
            for y in self._numbers[left[ranked]].tolist()
            if estimate[self._place[y]] + self._bare_gain(pruned, y) > -options.trial_loss
            and ("regraft", pruned.x, p, y) not in self.request.known
        ]

    def _bare_gain(self, pruned: _Pruned, y: int) -> float:
        """What hanging a subtree at a node gains if the edge says nothing."""
        penalty, ends = self.request.penalty, (pruned.x, y)
        cost = penalty.per_parameter * math.prod(self.draft.n_states[v] - 1 for v in ends)
        cost += penalty.per_inner * sum(len(pruned.draft.neighbors(v)) == 1 for v in ends)
        return pruned.apart - pruned.before - pruned.cost - cost

    def _trial(self, pruned: _Pruned, y: int) -> _Trial:
        x, weights = pruned.x, self.rows.weights
        rest, top = pruned.rest.get(y), self.messages.marginal[y]
        table = moment_table(Side(top, rest.value, weights), pruned.side)
        steps = self.options.trial_steps
        fit = fit_star(self.rows, rest.value, {x: pruned.arm}, Star(top, {x: table}), steps)
        raised = fit.log_likelihood + float(weights @ rest.shift) - pruned.apart
        gain = raised + self._bare_gain(pruned, y)
        if gain < -self.options.trial_loss:
            self.note_loss(("regraft", x, pruned.p, y), -gain)
        return _Trial(gain, y, fit.star.tables[x])

    def _regraft(self, pruned: _Pruned, trial: _Trial) -> list[Proposal]:
        """Hang a subtree at a node."""
        x, p, y = pruned.x, pruned.p, trial.place
        arms = {k: pruned.rest.get(k, y) for k in pruned.draft.neighbors(y)}
        arms[x] = pruned.arm
        edit = partial(edits.regraft, x=x, p=p, y=y, table=trial.table)
        return self._moved(pruned, ("regraft", x, p, y), edit, arms, y)

    def _into_edges(self, pruned: _Pruned, trial: _Trial) -> list[Proposal]:
        """Hang a subtree at a new node in one of the edges around a place."""
        x, p, y, rest = pruned.x, pruned.p, trial.place, pruned.rest
        around = sorted(
            pruned.draft.neighbors(y), key=lambda z: (-pruned.estimate[self._place[z]], z)
        )
        found = []
        for z in around[: self.options.edges]:
            arms = {y: rest.get(y, z), z: rest.get(z, y), x: pruned.arm}
            edit = partial(
                edits.insert, x=x, p=p, edge=(y, z), table=trial.table,
                softness=self.options.softness,
            )  # fmt: skip
            found += self._moved(pruned, ("insert", x, p, y, z), edit, arms, y, z)
        return found

    def _moved(
        self, pruned: _Pruned, key: Key, edit: Edit, arms: Mapping[int, Message], *places: int
    ) -> list[Proposal]:
        region = {pruned.x, pruned.p, *places, *pruned.left}
        n_places, is_new = self._n_places(pruned, *places), key[0] == "insert"
        change = _Change(key, edit, arms, region, pruned.before, n_places, is_new, pruned.whole)
        return self.fitted(change)

    # Nodes that become one ----------------------------------------------------------------------

    def _contractions(self) -> Iterator[Job]:
        """Let a node take over all that hangs at a hidden neighbor, or at a hidden sibling."""
        draft = self.draft
        for edge in draft.edges:
            if not self.in_focus(*edge):
                continue
            for keep, drop in (edge, edge[::-1]):
                if draft.is_hidden(drop):
                    yield partial(self._absorb, keep, drop)
            if all(map(draft.is_hidden, edge)):
                yield partial(self._fuse, *edge)
        for p in self.nodes:
            siblings = [h for h in draft.neighbors(p) if draft.is_hidden(h)]
            for keep, drop in combinations(siblings, 2):
                if self.in_focus(keep, drop):
                    yield partial(self._merge, keep, drop, p)

    def _absorb(self, keep: int, drop: int) -> list[Proposal]:
        """Let a node take over all that hangs at a hidden neighbor."""
        arms = self.arms(keep, drop) | self.arms(drop, keep)
        kind, n_places = "contract", None
        if not self.draft.is_hidden(keep):  # it might be any neighbor of the hidden node
            kind, n_places = "promote", len(self.draft.neighbors(drop))
        edit = partial(edits.absorb, keep=keep, drop=drop)
        before, region = self.before(keep), {keep, drop}
        return self.fitted(_Change((kind, keep, drop), edit, arms, region, before, n_places))

    def _merge(self, keep: int, drop: int, between: int) -> list[Proposal]:
        """Make one of two hidden neighbors of a node."""
        arms = self.arms(keep, between) | self.arms(drop, between)
        others = [k for k in self.draft.neighbors(between) if k not in (keep, drop)]
        if self.draft.is_hidden(between) and len(others) == 1:  # it will not be needed any more
            arms[others[0]] = self.messages.get(others[0], between)
        else:
            arms[between] = self.messages.about(between, others)
        region = {keep, drop, between, *others[:1]}
        edit = partial(edits.absorb, keep=keep, drop=drop, between=between)
        return self.fitted(_Change(("merge", keep, drop), edit, arms, region, self.before(keep)))

    def _fuse(self, a: int, b: int) -> list[Proposal]:
        """Contract an edge into a node with one state more: the likeliest pairs of states."""
        joint = self.messages.marginal[a][:, None] * self.messages.table(a, b)
        size = max(joint.shape) + 1
        if size > min(joint.size, self.max_states):
            return []
        chosen = np.argsort(-joint.ravel(), kind="stable")[:size]
        top = joint.ravel()[chosen]
        rows = dict(zip((a, b), np.unravel_index(chosen, joint.shape), strict=True))
        arms = {a: self.arms(a, b), b: self.arms(b, a)}
        tables = {k: self.messages.table(end, k)[rows[end]] for end in (a, b) for k in arms[end]}

        def edit(draft: Draft) -> int:
            draft.absorb(a, b)
            draft.resize(a, top / top.sum(), tables)
            return a

        everyone = arms[a] | arms[b]
        region = {a, b, *filter(self.draft.is_hidden, everyone)}
        return self.fitted(_Change(("fuse", a, b), edit, everyone, region, self.before(a)))

    def _stand_ins(self) -> Iterator[Job]:
        """Let a hidden node take the place of an observed one with several neighbors."""
        for node in range(self.draft.n_observed):
            if len(self.draft.neighbors(node)) > 1 and self.in_focus(node):
                yield partial(self._stand_in, node)

    def _stand_in(self, node: int) -> list[Proposal]:
        arms = self.arms(node)
        arms[node] = Message(self.rows.seen(node, 0), self.rows.no_shift)
        edit = partial(edits.stand_in, node=node, softness=self.options.softness)
        key, before = ("demote", node), self.before(node)
        return self.fitted(_Change(key, edit, arms, {node}, before, has_new_center=True))

    # Components that become one -----------------------------------------------------------------

    def _links(self) -> Iterator[Job]:
        """Join every component to another by the edge of the highest estimated gain."""
        roots = self.draft.roots
        if len(roots) < 2:
            return
        tops = self.messages.marginal
        beliefs = [posterior(tops[y], self.messages.get(y).value) for y in self.nodes]
        estimates = estimated_gains(beliefs, beliefs, self.rows.weights)
        home = np.array([self.draft.root_of(y) for y in self.nodes])
        estimates[home[:, None] == home] = -np.inf
        for root in roots:
            mine = np.flatnonzero(home == root)
            x, y = np.unravel_index(int(estimates[mine].argmax()), (mine.size, home.size))
            yield partial(self._link, self.nodes[mine[x]], self.nodes[y])

    def _link(self, x: int, y: int) -> list[Proposal]:
        tops = self.messages.marginal
        arm, rest = self.messages.get(x), self.messages.get(y)
        weights = self.rows.weights
        table = moment_table(Side(tops[y], rest.value, weights), Side(tops[x], arm.value, weights))
        arms = self.arms(y) | {x: arm}
        edit = partial(edits.link, x=x, y=y, table=table)
        return self.fitted(_Change(("link", x, y), edit, arms, {x, y}, self.before(x, y)))


def _smallest(values: FloatArray, numbers: IntArray, count: int) -> IntArray:
    """Return where the smallest values are, in order; of equal ones, those of smaller numbers."""
    few = np.arange(values.size)
    if values.size > count:
        few = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return few[np.lexsort((numbers[few], values[few]))[:count]]


# Edges, where nothing else gains ----------------------------------------------------------------


class LastMoves(EdgeMoves):
    """Changes of edges that take longer to find.

    - A hidden node becomes two and loses a state: it stood for both.
    - A new node may have fewer states than the node that it copies.
    - An observed node takes the place of a hidden neighbor if that pays: what it saves counts, as
      no contraction saves it where no other node explains as much.
    - All changes may lose ``slack``: the fit of all parameters decides.
    """

    def jobs(self) -> Iterator[Job]:
        """Return all changes to try."""
        yield from super().jobs()
        for node in self.draft.hidden:
            if self.in_focus(node) and len(self.draft.neighbors(node)) > 3:
                for pair in combinations(range(self.draft.n_states[node]), 2):
                    yield partial(self._part, node, pair)

    def needed(self, change: _Change, cost: float) -> float:
        """Return what the log-likelihood must rise by for a change to be accepted."""
        if change.key[0] == "promote":
            return self.request.needed_rise(0.0, change.n_places) + cost
        return super().needed(change, cost)

    def slack(self, change: _Change, cost: float) -> float:
        """Return what may be missing of that before all parameters are fitted.

        A new node is worth a trial that fits better at all: it gains most of what it brings when
        its neighbors, which had to explain the same, are fitted to it.
        """
        if not change.has_new_center:
            return self.options.slack
        return max(self.options.slack, self.needed(change, cost) - self.options.least_gain)

    def fit(
        self,
        change: _Change,
        draft: DiscreteDraft,
        center: int,
        star: Star,
        least: float | None = None,
    ) -> _FittedStar:
        """Fit a star; join states of a new node that are alike, as long as that pays."""
        best = super().fit(change, draft, center, star, least)
        while change.has_new_center and best.star is not None and best.star.top.size > 2:
            star = _joined(best.star, *_most_alike(best.star, 1)[0])
            draft.resize(center, star.top, star.tables)
            fewer = super().fit(change, draft, center, star, best.surplus)
            if fewer.surplus <= best.surplus:
                break
            best = fewer
        return best

    def proposal(self, change: _Change, fit: _FittedStar) -> list[Proposal]:
        """Return a change if it may pay."""
        if change.has_new_center and fit.star is not None:
            change = change._replace(edit=partial(_resized, edit=change.edit, star=fit.star))
        return super().proposal(change, fit)

    def _part(self, node: int, pair: tuple[int, int]) -> list[Proposal]:
        """Join two states of a node; the neighbors that tell them apart hang at a new node."""
        star = self.messages.star(node)
        rest, moved = self._told_apart(star, *pair)
        if self.draft.n_states[node] < 3 or min(len(moved), len(rest)) < 2:
            return []
        softness = self.options.softness

        def edit(draft: Draft) -> int:
            new = draft.part(node, moved, softness)
            tables = {other: draft.above[other] for other in draft.neighbors(node)}
            joined = _joined(Star(draft.above[node], tables), *pair)
            draft.resize(node, joined.top, joined.tables)
            return new

        draft = self.draft.copy()
        edit(draft)
        arms = {other: self.messages.get(other, node) for other in moved}
        arms[node] = RowMessages(draft, self.rows, self.messages, (node,)).about(node, rest)
        region = {node, *filter(self.draft.is_hidden, star.tables)}
        key, before = ("part", node, *pair), self.before(node)
        return self.fitted(_Change(key, edit, arms, region, before, has_new_center=True))

    def _told_apart(self, star: Star, a: int, b: int) -> tuple[list[int], list[int]]:
        """Divide neighbors: those for which joining two states pays, all together, and others."""
        price, weight = self.request.penalty.per_parameter, self.rows.weights.sum()
        free = {other: max(self.draft.n_states[other] - 1, 1) for other in star.tables}
        losses = _losses(star, a, b)
        order = sorted(losses, key=lambda other: (losses[other] / free[other], other))
        gains = [price * free[other] - weight * losses[other] for other in order]
        n_rest = int((np.cumsum(gains) >= 0.0).sum())
        return order[:n_rest], order[n_rest:]


# States -----------------------------------------------------------------------------------------


class StateMoves(DiscreteMoves):
    """One state more or less at every hidden node."""

    def __init__(
        self, rows: RowEvidence, request: Request, max_states: int | None, seed: int
    ) -> None:
        super().__init__(rows, request, max_states)
        self.seed = seed

    def jobs(self) -> Iterator[Job]:
        """Return all changes of states to try."""
        for node in self.draft.hidden:
            if self.in_focus(node):
                if self.draft.n_states[node] < self.max_states:
                    yield partial(self._more, node)
                if self.draft.n_states[node] > 2:
                    yield partial(self._fewer, node)

    def _more(self, node: int) -> list[Proposal]:
        """Split a state into two that differ at random."""
        star, options = self.messages.star(node), self.options
        rng = np.random.default_rng([self.seed, node, star.top.size])
        likeliest = np.argsort(-star.top, kind="stable")[: options.splits]
        split = [_split(star, int(s), options.spread, rng) for s in likeliest]
        return self._best(("more", node), node, split)

    def _fewer(self, node: int) -> list[Proposal]:
        """Join two states that are alike."""
        star = self.messages.star(node)
        joined = [_joined(star, *pair) for pair in _most_alike(star, self.options.joins)]
        return self._best(("fewer", node), node, joined)

    def _best(self, key: tuple[str, int], node: int, stars: list[Star]) -> list[Proposal]:
        if key in self.request.known:
            return []
        arms = self.arms(node)
        seen = self.rows.seen(node, stars[0].top.size)
        steps = self.options.state_steps
        fits = [fit_star(self.rows, seen, arms, star, steps) for star in stars]
        best = max(fits, key=lambda fit: fit.log_likelihood).star

        def edit(draft: Draft) -> int:
            draft.resize(node, best.top, best.tables)
            return node

        region = {node, *filter(self.draft.is_hidden, arms)}
        return self.fitted(_Change(key, edit, arms, region, self.before(node)))


def _split(star: Star, state: int, spread: float, rng: np.random.Generator) -> Star:
    top = np.append(star.top, star.top[state])
    top[[state, -1]] /= 2.0
    tables = {}
    for node, table in star.tables.items():
        apart = rng.normal(0.0, spread, table.shape[1])
        halves = table[state] * np.exp(np.stack([apart, -apart]))
        halves /= halves.sum(axis=1, keepdims=True)
        new = np.vstack([table, halves[1]])
        new[state] = halves[0]
        tables[node] = new
    return Star(top, tables)


def _resized(draft: Draft, edit: Edit, star: Star) -> int:
    """Make a change, and give the node in its middle the states of a star."""
    center = edit(draft)
    draft.resize(center, star.top, star.tables)
    return center


def _most_alike(star: Star, count: int) -> list[tuple[int, int]]:
    """Return the pairs of states that are most alike."""
    pairs = combinations(range(star.top.size), 2)
    return sorted(pairs, key=lambda pair: _difference(star, *pair))[:count]


def _joined(star: Star, a: int, b: int) -> Star:
    """Two states as one, weighted by their shares."""
    tables = {}
    for node, table in star.tables.items():
        new = np.delete(table, b, axis=0)
        new[a] = _mean(star.top[[a, b]], table[[a, b]])
        tables[node] = new
    top = np.delete(star.top, b)
    top[a] += star.top[b]
    return Star(top, tables)


def _difference(star: Star, a: int, b: int) -> float:
    """What joining two states would lose a row if all neighbors were seen."""
    return sum(_losses(star, a, b).values())


def _losses(star: Star, a: int, b: int) -> dict[int, float]:
    """What joining two states would lose a row of each neighbor, if it were seen."""
    shares = star.top[[a, b]]
    return {
        node: float(shares @ rel_entr(table[[a, b]], _mean(shares, table[[a, b]])).sum(axis=1))
        for node, table in star.tables.items()
    }


def _mean(shares: FloatArray, rows: FloatArray) -> FloatArray:
    return np.asarray(shares @ rows / max(shares.sum(), 1e-300))

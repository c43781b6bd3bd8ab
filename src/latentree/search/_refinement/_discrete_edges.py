"""Changes of the edges of a draft with states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from latentree.inference import FreeEmission
from latentree.search._refinement import _draft as edits
from latentree.search._refinement._discrete_fit import (
    ALL,
    Arm,
    Message,
    RowEvidence,
    RowMessages,
    Side,
    estimated_gains,
    fit_star,
    moment_table,
    posterior,
)
from latentree.search._refinement._discrete_moves import Change, DiscreteMoves, FittedStar, Job
from latentree.search._refinement._draft import Draft, StateDraft
from latentree.search._refinement._search import Edit, Key, Proposal, Request, Star, chance_gain
from latentree.search._refinement._tables import of_states
from latentree.typing import FloatArray, IntArray


class _Trial(NamedTuple):
    """A subtree hung at a place, only the edge between them fitted."""

    gain: float
    place: int
    table: FloatArray


class _Pruned(NamedTuple):
    """A draft without the subtree that hung with its node x at p."""

    x: int
    p: int
    whole: StateDraft
    """The draft with the subtree, rooted at p."""
    draft: StateDraft
    left: tuple[int, ...]
    """Nodes at which something was cut off."""
    rest: RowMessages
    arm: Arm
    """What arrives from x about the subtree."""
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
        self._columns: dict[int, FreeEmission] = {}

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
        numbers, is_number = self.rows.numbers, self.draft.is_number
        sources = [
            numbers[x].functions if is_number(x) else posterior(tops[x], messages.get(x, p).value)
            for x, p in directed
        ]
        places = [self._functions(y) for y in self.nodes]
        estimates = estimated_gains(sources, places, self.rows.weights)
        for (x, p), row in zip(directed, estimates, strict=True):
            yield partial(self._prune, x, p, row)

    def _functions(self, node: int) -> FloatArray:
        """Return what association with a node is measured by, functions × rows."""
        if self.draft.is_number(node):
            return self.rows.numbers[node].functions
        return posterior(self.messages.marginal[node], self.messages.get(node).value)

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
        best = sorted(trials, key=lambda trial: -trial.gain)[: self.options.few]
        return [trial for trial in best if trial.gain > -self.options.trial_loss]

    def _pruned(self, x: int, p: int, estimate: FloatArray) -> _Pruned:
        whole = self.draft.copy()
        whole.reroot(p)
        base = whole.copy()
        base.cut(p, x)
        left = base.tidy(p)
        root = min(left, key=base.is_number)
        base.reroot(root)
        arm = self.messages.arm(x, p)
        rest = RowMessages(base, self.rows, self.messages, left)
        top = self._alone(x, base.above[x]).top
        if isinstance(arm, Message):
            apart = self.rows.log_likelihood(top, arm)
        else:
            apart = arm.log_likelihood(top)
        apart += rest.log_likelihood(root)
        return _Pruned(
            x, p, whole, base, left, rest, arm, estimate, self.draft.distances(p, x),
            self.before(x), apart,
            self.request.penalty(base) - self.price,
        )  # fmt: skip

    def _alone(self, x: int, top: Any) -> Star:
        """Return what a subtree has as one by itself; the distribution of a number is fitted."""
        if not self.draft.is_number(x):
            return Star(top, {})
        if x not in self._columns:
            self._columns[x] = self.rows.numbers[x].alone(top)
        return Star(self._columns[x], {})

    def _first_table(self, y: int, value: FloatArray, x: int, arm: Arm) -> Any:
        """Return a table of x given y to start from, by what both sides of the edge know."""
        top, weights = self.messages.marginal[y], self.rows.weights
        if isinstance(arm, Message):
            source = Side(self.messages.marginal[x], arm.value, weights)
            return moment_table(Side(top, value, weights), source)
        return arm.by_moments(type(self.draft.above[x]), weights * posterior(top, value))

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
        change = Change(("cut", p, x), partial(edits.cut, p=p, x=x), {}, region, pruned.before)
        star = self._alone(x, new.above[x]) if self.draft.is_number(x) else None
        return self.proposal(change, FittedStar(star, rise, cost, cost))

    def _places(self, pruned: _Pruned) -> list[int]:
        """Return where a subtree may hang.

        Estimates are too high rather than too low, as the subtree has its part in what is known
        about the place: where they promise nothing, nothing is tried.
        """
        p, estimate, options = pruned.p, pruned.estimate, self.options
        left = self._left(pruned.x, p)
        ranked = _smallest(-estimate[left], self._numbers[left], options.effort)
        return [
            y
            for y in self._numbers[left[ranked]].tolist()
            if not self.draft.is_number(y)
            and estimate[self._place[y]] + self._bare_gain(pruned, y) > -options.trial_loss
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
        table = self._first_table(y, rest.value, x, pruned.arm)
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
        arms = {k: pruned.rest.arm(k, y) for k in pruned.draft.neighbors(y)}
        arms[x] = pruned.arm
        edit = partial(edits.regraft, x=x, p=p, y=y, table=trial.table)
        return self._moved(pruned, ("regraft", x, p, y), edit, arms, y)

    def _into_edges(self, pruned: _Pruned, trial: _Trial) -> list[Proposal]:
        """Hang a subtree at a new node in one of the edges around a place."""
        x, p, y, rest = pruned.x, pruned.p, trial.place, pruned.rest
        around = sorted(
            pruned.draft.neighbors(y), key=lambda z: (-pruned.estimate[self._place[z]], z)
        )
        if self.draft.is_hidden(y) and len(around) < 3:  # it ties two numbers, and has room
            return []
        found = []
        for z in around[: self.options.few]:
            arms = {y: rest.get(y, z), z: rest.arm(z, y), x: pruned.arm}
            edit = partial(
                edits.insert, x=x, p=p, edge=(y, z), table=trial.table,
                softness=self.options.softness,
            )  # fmt: skip
            found += self._moved(pruned, ("insert", x, p, y, z), edit, arms, y, z)
        return found

    def _moved(
        self, pruned: _Pruned, key: Key, edit: Edit, arms: Mapping[int, Arm], *places: int
    ) -> list[Proposal]:
        region = {pruned.x, pruned.p, *places, *pruned.left}
        n_places, is_new = self._n_places(pruned, *places), key[0] == "insert"
        change = Change(key, edit, arms, region, pruned.before, n_places, is_new, pruned.whole)
        return self.fitted(change)

    # Nodes that become one ----------------------------------------------------------------------

    def _contractions(self) -> Iterator[Job]:
        """Let a node take over all that hangs at a hidden neighbor, or at a hidden sibling."""
        draft = self.draft
        for edge in draft.edges:
            if not self.in_focus(*edge):
                continue
            for keep, drop in (edge, edge[::-1]):
                if draft.is_hidden(drop) and not draft.is_number(keep):
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
        return self.fitted(Change((kind, keep, drop), edit, arms, region, before, n_places))

    def _merge(self, keep: int, drop: int, between: int) -> list[Proposal]:
        """Make one of two hidden neighbors of a node."""
        arms = self.arms(keep, between) | self.arms(drop, between)
        others = [k for k in self.draft.neighbors(between) if k not in (keep, drop)]
        if self.draft.is_hidden(between) and len(others) == 1:  # it will not be needed any more
            arms[others[0]] = self.messages.arm(others[0], between)
        else:
            arms[between] = self.messages.about(between, others)
        region = {keep, drop, between, *others[:1]}
        edit = partial(edits.absorb, keep=keep, drop=drop, between=between)
        return self.fitted(Change(("merge", keep, drop), edit, arms, region, self.before(keep)))

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
        tables = {
            k: of_states(self.messages.table(end, k), rows[end])
            for end in (a, b)
            for k in arms[end]
        }

        def edit(draft: Draft) -> int:
            draft.absorb(a, b)
            draft.resize(a, top / top.sum(), tables)
            return a

        everyone = arms[a] | arms[b]
        region = {a, b, *filter(self.draft.is_hidden, everyone)}
        return self.fitted(Change(("fuse", a, b), edit, everyone, region, self.before(a)))

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
        return self.fitted(Change(key, edit, arms, {node}, before, has_new_center=True))

    # Components that become one -----------------------------------------------------------------

    def _links(self) -> Iterator[Job]:
        """Join every component to another by the edge of the highest estimated gain."""
        roots = self.draft.roots
        if len(roots) < 2:
            return
        beliefs = [self._functions(y) for y in self.nodes]
        estimates = estimated_gains(beliefs, beliefs, self.rows.weights)
        home = np.array([self.draft.root_of(y) for y in self.nodes])
        estimates[home[:, None] == home] = -np.inf
        # A number hangs from a node with states, and nothing else hangs from it.
        numbers = np.array([self.draft.is_number(y) for y in self.nodes])
        estimates[numbers & (home != self.nodes)] = -np.inf
        estimates[:, numbers] = -np.inf
        estimates = np.maximum(estimates, estimates.T)
        for root in roots:
            mine = np.flatnonzero(home == root)
            x, y = np.unravel_index(int(estimates[mine].argmax()), (mine.size, home.size))
            if estimates[mine[x], y] > -np.inf:
                ends = self.nodes[mine[x]], self.nodes[y]
                yield partial(self._link, *sorted(ends, key=self.draft.is_number, reverse=True))

    def _link(self, x: int, y: int) -> list[Proposal]:
        arm = self.messages.arm(x, ALL)
        table = self._first_table(y, self.messages.get(y).value, x, arm)
        arms = self.arms(y) | {x: arm}
        edit = partial(edits.link, x=x, y=y, table=table)
        return self.fitted(Change(("link", x, y), edit, arms, {x, y}, self.before(x, y)))


def _smallest(values: FloatArray, numbers: IntArray, count: int) -> IntArray:
    """Return where the smallest values are, in order; of equal ones, those of smaller numbers."""
    few = np.arange(values.size)
    if values.size > count:
        few = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return few[np.lexsort((numbers[few], values[few]))[:count]]

"""Changes of the edges of a discrete draft that may be worth it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from latentree.search._refinement import _local as local
from latentree.search._refinement._draft import DiscreteDraft, Draft
from latentree.search._refinement._interaction import Side, estimated_gains, joint_start, normalised
from latentree.search._refinement._judging import Job, Judge
from latentree.search._refinement._messages import Message, Messages, Rows
from latentree.search._refinement._proposal import Proposal, Request, Star
from latentree.typing import FloatArray, IntArray

TRIAL_STEPS = 3  # of EM on one edge, while places are compared
HOPELESS = 40.0  # places that lose so much then are given up
FAR = 4  # places tried for a subtree wherever they are, those of the strongest interaction
HOPS = 3  # hidden nodes so near to the old place are tried, too: estimates are poor there
NEAR = 8  # but so many at most
INTO = 2  # edges tried around a place
BEST = 2  # places around which they are tried
PROMISING = -15.0  # and what these must gain


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
    rest: Messages
    arm: Message
    """Message from x about the subtree."""
    side: Side
    estimate: FloatArray
    """What hanging it at each node of the listing may gain."""
    before: float
    apart: float
    """Log-likelihood of the two parts."""
    cost: float
    """Of being cut off."""


class EdgeChanges(Judge):
    """Proposals for one draft.

    For every edge, either side of it is hung elsewhere: places are ranked by their interaction
    with the subtree, compared by fitting that one edge, and the best are fitted as stars.
    """

    def __init__(self, rows: Rows, request: Request, most_states: int | None) -> None:
        super().__init__(rows, request)
        self.most_states = most_states
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

    def proposals(self) -> list[Proposal]:
        """Return all changes that may be worth it."""
        return self.run(
            [*self._prunings(), *self._contractions(), *self._stand_ins(), *self._links()]
        )

    # Subtrees that hang elsewhere ---------------------------------------------------------------

    def _prunings(self) -> Iterator[Job]:
        """Hang either side of every edge elsewhere."""
        directed = [
            (x, p)
            for edge in self.draft.edges
            for x, p in (edge, edge[::-1])
            if len(self.draft.neighbours(p)) > 1 and self.in_focus(x, p)
        ]
        if not directed:
            return
        tops, messages = self.messages.marginal, self.messages
        sources = [normalised(tops[x], messages.get(x, p).value) for x, p in directed]
        places = [normalised(tops[y], messages.get(y).value) for y in self.nodes]
        estimates = estimated_gains(sources, places, self.rows.weights)
        for (x, p), row in zip(directed, estimates, strict=True):
            yield partial(self._prune, x, p, row)

    def _prune(self, x: int, p: int, row: FloatArray) -> list[Proposal]:
        whole = self.draft.copy()
        whole.reroot(p)
        base = whole.copy()
        base.cut(p, x)
        left = base.tidy(p)
        base.reroot(left[0])
        arm = self.messages.get(x, p)
        rest = Messages(base, self.rows, self.messages, left)
        apart = self.rows.log_likelihood(base.above[x], arm) + rest.log_likelihood(left[0])
        pruned = _Pruned(
            x, p, whole, base, left, rest, arm, Side(base.above[x], arm.value, self.rows.weights),
            row, self.before(x), apart,
            self.request.penalty(base) - self.price,
        )  # fmt: skip
        found = self._cut(pruned)
        trials = [self._trial(pruned, y) for y in self._places(pruned)]
        trials.sort(key=lambda trial: -trial.gain)
        for trial in trials[:BEST]:
            if trial.gain > -HOPELESS:
                found += self._regraft(pruned, trial)
        if p in base.parent:  # where it hangs already
            trials.append(_Trial(0.0, p, self.messages.table(p, x)))
        for trial in sorted(trials, key=lambda trial: -trial.gain)[:BEST]:
            if trial.gain > PROMISING:
                found += self._into_edges(pruned, trial)
        return found

    def _left(self, x: int, p: int) -> IntArray:
        """Return places in the listing of what hangs with p when x is cut off, but not of p."""
        is_below = self.draft.parent[x] == p
        first = self._place[self.draft.root_of(p) if is_below else p]
        left: IntArray = np.arange(first, self._end[first])
        if is_below:
            cut = self._place[x]
            left = left[(left < cut) | (left >= self._end[cut])]
        return np.delete(left, np.searchsorted(left, self._place[p]))

    def _cut(self, pruned: _Pruned) -> list[Proposal]:
        """Leave a subtree by itself."""
        x, p, left = pruned.x, pruned.p, pruned.left

        def change(draft: Draft) -> int:
            draft.cut(p, x)
            draft.tidy(p)
            return draft.tidy(x)[0]

        new = pruned.draft.copy()
        new.tidy(x)
        rise, cost = pruned.apart - pruned.before, self.request.penalty(new) - self.price
        region = {p, x, *left, *self.draft.neighbours(x)}
        return self.proposal(("cut", p, x), rise, cost, region, change, None)

    def _places(self, pruned: _Pruned) -> list[int]:
        """Return where a subtree may hang.

        Estimates are too high rather than too low, as the subtree has its part in what is known
        about the place: where they promise nothing, nothing is tried.
        """
        p, estimate = pruned.p, pruned.estimate
        left = self._left(pruned.x, p)
        ranked = _first(-estimate[left], self._numbers[left], FAR)
        near = self.draft.around(p, HOPS, pruned.x)
        near = [y for y in near if self.draft.is_hidden(y) and y != p][:NEAR]
        places = dict.fromkeys([*self._numbers[left[ranked]].tolist(), *near])
        return [
            y
            for y in places
            if estimate[self._place[y]] + self._bare_gain(pruned, y) > -HOPELESS
            and not self.request.is_known(("regraft", pruned.x, p, y))
        ]

    def _bare_gain(self, pruned: _Pruned, y: int) -> float:
        """What hanging a subtree at a node gains if the edge says nothing."""
        penalty, ends = self.request.penalty, (pruned.x, y)
        cost = penalty.per_parameter * math.prod(self.draft.n_states[v] - 1 for v in ends)
        cost += penalty.per_inner * sum(len(pruned.draft.neighbours(v)) == 1 for v in ends)
        return pruned.apart - pruned.before - pruned.cost - cost

    def _trial(self, pruned: _Pruned, y: int) -> _Trial:
        x, weights = pruned.x, self.rows.weights
        rest, top = pruned.rest.get(y), self.messages.marginal[y]
        table = joint_start(Side(top, rest.value, weights), pruned.side)
        start = Star(top, {x: table})
        fit = local.fit_star(self.rows, rest.value, {x: pruned.arm}, start, TRIAL_STEPS)
        raised = fit.log_likelihood + float(weights @ rest.shift) - pruned.apart
        gain = raised + self._bare_gain(pruned, y)
        if gain < -HOPELESS:
            self.lose(("regraft", x, pruned.p, y), -gain)
        return _Trial(gain, y, fit.star.tables[x])

    def _regraft(self, pruned: _Pruned, trial: _Trial) -> list[Proposal]:
        """Hang a subtree at a node."""
        x, p, y = pruned.x, pruned.p, trial.place

        def change(draft: Draft) -> int:
            draft.cut(p, x)
            draft.tidy(p)
            draft.hang(x, y, trial.table)
            return y

        arms = {k: pruned.rest.get(k, y) for k in pruned.draft.neighbours(y)}
        arms[x] = pruned.arm
        region = {x, p, y, *pruned.left}
        key = ("regraft", x, p, y)
        return self.fitted(key, change, arms, region, pruned.before, pruned.whole)

    def _into_edges(self, pruned: _Pruned, trial: _Trial) -> list[Proposal]:
        """Hang a subtree at a new node in one of the edges around a place."""
        y = trial.place
        around = sorted(
            pruned.draft.neighbours(y), key=lambda z: (-pruned.estimate[self._place[z]], z)
        )
        return [p for z in around[:INTO] for p in self._insert(pruned, y, z, trial.table)]

    def _insert(self, pruned: _Pruned, near: int, far: int, table: FloatArray) -> list[Proposal]:
        x, p = pruned.x, pruned.p

        def change(draft: Draft) -> int:
            draft.cut(p, x)
            draft.tidy(p)
            new = draft.split(near, far)
            draft.hang(x, new, table)
            return new

        rest = pruned.rest
        arms = {near: rest.get(near, far), far: rest.get(far, near), x: pruned.arm}
        region = {x, p, near, far, *pruned.left}
        key = ("insert", x, p, near, far)
        return self.fitted(key, change, arms, region, pruned.before, pruned.whole)

    # Nodes that become one ----------------------------------------------------------------------

    def _contractions(self) -> Iterator[Job]:
        """Let a node take over all that hangs at a hidden neighbour, or at a hidden sibling."""
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
            siblings = [h for h in draft.neighbours(p) if draft.is_hidden(h)]
            for keep, drop in combinations(siblings, 2):
                if self.in_focus(keep, drop):
                    yield partial(self._merge, keep, drop, p)

    def _absorb(self, keep: int, drop: int) -> list[Proposal]:
        """Let a node take over all that hangs at a hidden neighbour."""

        def change(draft: Draft) -> int:
            draft.absorb(keep, drop)
            return keep

        arms = self.arms(keep, drop) | self.arms(drop, keep)
        kind = "contract" if self.draft.is_hidden(keep) else "promote"
        return self.fitted((kind, keep, drop), change, arms, {keep, drop}, self.before(keep))

    def _merge(self, keep: int, drop: int, between: int) -> list[Proposal]:
        """Make one of two hidden neighbours of a node."""

        def change(draft: Draft) -> int:
            draft.absorb(keep, drop)
            draft.tidy(between)
            return keep

        arms = self.arms(keep, between) | self.arms(drop, between)
        others = [k for k in self.draft.neighbours(between) if k not in (keep, drop)]
        if self.draft.is_hidden(between) and len(others) == 1:  # it will not be needed any more
            arms[others[0]] = self.messages.get(others[0], between)
        else:
            arms[between] = self.messages.about(between, others)
        region = {keep, drop, between, *others[:1]}
        return self.fitted(("merge", keep, drop), change, arms, region, self.before(keep))

    def _fuse(self, a: int, b: int) -> list[Proposal]:
        """Contract an edge into a node with one state more: the likeliest pairs of states."""
        joint = self.messages.marginal[a][:, None] * self.messages.table(a, b)
        size = max(joint.shape) + 1
        if size > min(joint.size, self.most_states or joint.size):
            return []
        chosen = np.argsort(-joint.ravel(), kind="stable")[:size]
        top = joint.ravel()[chosen]
        rows = dict(zip((a, b), np.unravel_index(chosen, joint.shape), strict=True))
        arms = {a: self.arms(a, b), b: self.arms(b, a)}
        tables = {k: self.messages.table(end, k)[rows[end]] for end in (a, b) for k in arms[end]}

        def change(draft: Draft) -> int:
            draft.absorb(a, b)
            draft.resize(a, top / top.sum(), tables)
            return a

        everyone = arms[a] | arms[b]
        region = {a, b, *filter(self.draft.is_hidden, everyone)}
        return self.fitted(("fuse", a, b), change, everyone, region, self.before(a))

    def _stand_ins(self) -> Iterator[Job]:
        """Let a hidden node take the place of an observed one with several neighbours."""
        for node in range(self.draft.n_observed):
            if len(self.draft.neighbours(node)) > 1 and self.in_focus(node):
                yield partial(self._stand_in, node)

    def _stand_in(self, node: int) -> list[Proposal]:
        arms = self.arms(node)
        arms[node] = Message(self.rows.seen(node), self.rows.nothing)
        return self.fitted(
            ("demote", node), lambda d: d.stand_in(node), arms, {node}, self.before(node)
        )

    # Components that become one -----------------------------------------------------------------

    def _links(self) -> Iterator[Job]:
        """Join every component to another by the edge that promises most."""
        roots = self.draft.roots
        if len(roots) < 2:
            return
        tops = self.messages.marginal
        beliefs = [normalised(tops[y], self.messages.get(y).value) for y in self.nodes]
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
        table = joint_start(Side(tops[y], rest.value, weights), Side(tops[x], arm.value, weights))

        def change(draft: Draft) -> int:
            draft.hang(x, y, table)
            return y

        arms = self.arms(y) | {x: arm}
        return self.fitted(("link", x, y), change, arms, {x, y}, self.before(x, y))


def _first(values: FloatArray, numbers: IntArray, count: int) -> IntArray:
    """Return where the smallest values are, in order; of equal ones, those of smaller numbers."""
    few = np.arange(values.size)
    if values.size > count:
        few = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return few[np.lexsort((numbers[few], values[few]))[:count]]

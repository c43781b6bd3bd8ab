"""Changes of a Gaussian draft, each with the edges around it fitted and its exact gain.

Beliefs far from a change stay as they are, so the log-likelihood of a tree is that of its parts
plus what the nodes and edges between the parts add; gains are differences of such sums.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from latentree._kernels import threads
from latentree._kernels.search import beliefs as kernels
from latentree.search._refinement._draft import Draft
from latentree.search._refinement._proposal import FORBIDDEN, Key, Proposal, Request, Star
from latentree.search._refinement._space import (
    Arm,
    Fit,
    Map,
    Rest,
    fit_observed,
    fit_pair,
    fit_star,
    fit_three,
    pair_value,
    star_value,
)
from latentree.typing import FloatArray

STAR_STEPS = 64
"""Steps of EM that a star gets."""

TOLERANCE = 1e-3
"""Rise of the log-likelihood below which a fit does not go on."""

HOPELESS = -8.0
"""Changes that lose more than this by themselves are not proposed."""

INDEPENDENT = 0.01
"""Only an edge that adds less than this to the log-likelihood may be taken away.

A penalty alone would take away whatever hangs by a weak edge, and a forest where there is a tree
is a poor description of the data for the little that it saves.
"""

N_BEST = 2
"""Nodes, and edges, to which each subtree is tried to be moved."""


class Target(NamedTuple):
    """Where to hang a subtree: at a node, or inside the edge that leads to it from the gate."""

    place: int
    inside: bool


class More(NamedTuple):
    """How many nodes there are more after a change: each hidden one comes with an edge."""

    hidden: int = 0
    inner: int = 0
    """Observed nodes that are no leaves."""
    edges: int = 0
    """Edges between components."""


class Moves:
    """All changes of one draft."""

    def __init__(self, request: Request, data: FloatArray, n_samples: float) -> None:
        self.request = request
        self.draft, self.penalty = request.draft, request.penalty
        self.n_samples = n_samples
        self.map = Map(request.draft, data)
        self._fit_star = partial(fit_star, n_steps=STAR_STEPS, tolerance=TOLERANCE / n_samples)

    def __iter__(self) -> Iterator[Proposal]:
        """All changes that are not hopeless."""
        kinds = (
            self.contractions, self.promotions, self.demotions, self.merges, self.cuts,
            self.links, self.relinks, self.regrafts,
        )  # fmt: skip
        for kind in kinds:
            for proposal in kind():
                key, gain, rise = proposal[:3]
                if gain > HOPELESS and rise >= self.request.least_rise(key, rise - gain):
                    yield proposal
                if time.monotonic() > self.request.deadline:
                    return

    def is_known(self, key: Key) -> bool:
        """Tell whether a change has failed already, or is not asked for."""
        focus = self.request.focus
        elsewhere = focus is not None and focus.isdisjoint(_nodes(key[1:]))
        return elsewhere or self.request.is_known(key)

    def _price(self, more: More) -> float:
        """Rise of the penalty for more nodes and edges."""
        cost = self.penalty.per_parameter * (more.hidden + more.edges)
        cost += self.penalty.per_inner * (more.hidden + more.inner)
        if self.penalty.n_hidden is not None:
            surplus = self.draft.n_hidden - self.penalty.n_hidden
            cost += FORBIDDEN * (abs(surplus + more.hidden) - abs(surplus))
        return cost

    def _proposal(
        self,
        key: Key,
        change: Callable[[Draft], int],
        rise: float,
        more: More,
        tables: dict[int, float] | None,
        region: Sequence[int],
    ) -> Proposal:
        """Make a proposal; ``rise`` is that of the log-likelihood per sample."""
        raised = self.n_samples * rise
        star = None if tables is None else Star(None, tables)
        return Proposal(key, raised - self._price(more), raised, frozenset(region), change, star)

    def _opens(self, u: int) -> bool:
        """Tell whether one more neighbour makes an inner node of an observed leaf."""
        return u < self.map.m and bool(self.map.degree[u] == 1)

    def _closes(self, u: int) -> bool:
        """Tell whether one neighbour less makes a leaf of an observed inner node."""
        return u < self.map.m and bool(self.map.degree[u] == 2)

    def _left_by(self, u: int, but: int) -> list[int]:
        """Return the other neighbours of a node if it goes when it loses the one at ``but``."""
        if not self.map.is_weak(u):
            return []
        return [self.map.nodes[w] for w in self.map.neighbours(u) if w != but]

    # One node less, or one more -----------------------------------------------------------------

    def contractions(self) -> Iterator[Proposal]:
        """Make one node of two hidden neighbours."""
        map = self.map
        for v in range(map.m, map.n):
            p = int(map.parent[v])
            if p < map.m:
                continue
            drop, keep = (v, p) if map.degree[v] <= map.degree[p] else (p, v)
            a, b = map.nodes[keep], map.nodes[drop]
            key = ("contract", min(a, b), max(a, b))
            if self.is_known(key):
                continue
            moved = map.arms(drop, but=keep)
            old = star_value(map.arms(keep)) + star_value(moved)
            through = [arm.turned(arm.rho * float(map.rho[v])) for arm in moved]
            new = self._fit_star([*map.arms(keep, but=drop), *through])
            region = [a, b, *(arm.node for arm in moved)]
            yield self._proposal(
                key, partial(_absorb, keep=a, drop=b), new.value - old, More(-1), new.tables, region
            )

    def promotions(self) -> Iterator[Proposal]:
        """Let an observed node take the place of a hidden neighbour."""
        map = self.map
        for o in range(map.m):
            for h in map.neighbours(o):
                a, b = map.nodes[o], map.nodes[h]
                key = ("promote", a, b)
                if h < map.m or self.is_known(key):
                    continue
                moved = map.arms(h, but=o)
                new = fit_observed(map.seen(o), moved)
                rise = new.value - star_value(map.arms(h))
                region = [a, b, *(arm.node for arm in moved)]
                yield self._proposal(
                    key,
                    partial(_absorb, keep=a, drop=b),
                    rise,
                    More(-1, self._opens(o)),
                    new.tables,
                    region,
                )

    def demotions(self) -> Iterator[Proposal]:
        """Put a hidden node in the place of an observed one, which becomes its leaf."""
        map = self.map
        for o in range(map.m):
            node = map.nodes[o]
            key = ("demote", node)
            if map.degree[o] < 2 or self.is_known(key):
                continue
            arms = map.arms(o)
            old = sum(pair_value(arm, map.seen(o), arm.rho) for arm in arms)
            new = self._fit_star([*arms, map.seen(o, 0.9)])
            region = [node, *(arm.node for arm in arms)]
            yield self._proposal(
                key, partial(_stand_in, node=node), new.value - old, More(1, -1), new.tables, region
            )

    def merges(self) -> Iterator[Proposal]:
        """Make one node of two hidden ones with a common neighbour."""
        map = self.map
        for c in range(map.n):
            hidden = [w for w in map.neighbours(c) if w >= map.m]
            for a, b in combinations(hidden, 2):
                keep, drop = (a, b) if map.degree[a] >= map.degree[b] else (b, a)
                key = ("merge", map.nodes[min(a, b)], map.nodes[max(a, b)])
                if not self.is_known(key) and self._are_alike(a, b, c):
                    yield self._merge(key, keep, drop, c)

    def _are_alike(self, a: int, b: int, c: int) -> bool:
        """Tell whether neighbours of c might be one node: they agree more than c says."""
        first, second = self.map.arm(a, c), self.map.arm(b, c)
        expected = first.rho * second.rho * first.g * second.g
        return bool(abs(first.mean @ second.mean) > abs(expected))

    def _merge(self, key: Key, keep: int, drop: int, c: int) -> Proposal:
        map = self.map
        s = map.side_of(drop, c)
        rest = Rest(map, s)
        moved, mine = map.arms(drop, but=c), rest.arms(keep)
        old = star_value(mine) + star_value(moved) + map.bond[s % map.n]
        weak = map.is_weak(c)
        if weak:  # the arm to c leads to its third neighbour then
            (far,) = (w for w in map.neighbours(c) if w not in (keep, drop))
            arm = map.arm(far, c)
            through = arm.turned(arm.rho * map.rho_of(keep, c))
            mine = [through if one.node == map.nodes[c] else one for one in mine]
        agree = 1.0 if map.arm(keep, c).mean @ map.arm(drop, c).mean >= 0.0 else -1.0
        new = self._fit_star([*mine, *(arm.turned(agree * arm.rho) for arm in moved)])
        a, b = map.nodes[keep], map.nodes[drop]
        region = [a, b, map.nodes[c], *(arm.node for arm in moved), *self._left_by(c, drop)]
        change = partial(_merge, keep=a, drop=b, between=map.nodes[c])
        more = More(-1 - weak, -self._closes(c))
        return self._proposal(key, change, new.value - old, more, new.tables, region)

    # Forests ------------------------------------------------------------------------------------

    def cuts(self) -> Iterator[Proposal]:
        """Take an edge away that adds nearly nothing."""
        map = self.map
        for v in map.children[self.n_samples * map.bond[map.children] < INDEPENDENT].tolist():
            p = int(map.parent[v])
            a, b = map.nodes[p], map.nodes[v]
            key = ("cut", min(a, b), max(a, b))
            if self.is_known(key):
                continue
            weak, closed = map.is_weak(p) + map.is_weak(v), self._closes(p) + self._closes(v)
            region = [a, b, *self._left_by(p, v), *self._left_by(v, p)]
            yield self._proposal(
                key, partial(_cut, a=a, b=b), -map.bond[v], More(-weak, -closed, -1), None, region
            )

    def links(self) -> Iterator[Proposal]:
        """Put an edge between two components, where they agree most."""
        map = self.map
        roots = np.flatnonzero(map.parent < 0)
        if roots.size < 2:
            return
        component = np.empty(map.n, np.int64)
        for v in map.order:
            component[v] = v if map.parent[v] < 0 else component[map.parent[v]]
        hidden = np.arange(map.n) >= map.m
        means = np.where(hidden[:, None], map.h / (1.0 + map.J)[:, None], 0.0)
        means[: map.m] = map.data
        g = np.where(hidden, map.J / (1.0 + map.J), 1.0)
        agreement = np.abs(_agreement(means, g, means, g))
        agreement[component[:, None] >= component] = -1.0
        for root in roots.tolist():
            rows = np.flatnonzero(component == root)
            i, j = np.unravel_index(agreement[rows].argmax(), (rows.size, map.n))
            x, y = int(rows[i]), int(j)
            if agreement[x, y] < 0:
                continue
            a, b = map.nodes[x], map.nodes[y]
            key = ("link", min(a, b), max(a, b))
            if self.is_known(key):
                continue
            rho, value = fit_pair(Arm(a, means[x], g[x]), Arm(b, means[y], g[y]))
            change, opened = partial(_link, a=a, b=b), self._opens(x) + self._opens(y)
            yield self._proposal(key, change, value, More(0, opened, 1), {b: rho}, [a, b])

    # Elsewhere ----------------------------------------------------------------------------------

    def relinks(self) -> Iterator[Proposal]:
        """Put a weak edge between two other nodes of the parts that it ties together."""
        map = self.map
        for v in map.children.tolist():
            p = int(map.parent[v])
            parts = Rest(map, v), Rest(map, v + map.n)
            if min(len(part.walk) for part in parts) < 3:
                continue
            (upper, e), (lower, g) = (part.beliefs(part.walk) for part in parts)
            agreement = np.abs(_agreement(upper, e, lower, g))
            agreement[0], agreement[:, 0] = -1.0, -1.0  # moving one end is a regraft
            i, j = np.unravel_index(agreement.argmax(), agreement.shape)
            x, y = int(parts[0].walk[i]), int(parts[1].walk[j])
            a, b, old = map.nodes[x], map.nodes[y], (map.nodes[p], map.nodes[v])
            key = ("relink", *sorted(old), min(a, b), max(a, b))
            if agreement[i, j] <= 0.0 or self.is_known(key):
                continue
            rho, value = fit_pair(Arm(a, upper[i], e[i]), Arm(b, lower[j], g[j]))
            weak = map.is_weak(p) + map.is_weak(v)
            region = [a, b, *old, *self._left_by(p, v), *self._left_by(v, p)]
            change = partial(_relink, old=old, a=a, b=b)
            inner = self._opens(x) + self._opens(y) - self._closes(p) - self._closes(v)
            more = More(-weak, inner)
            yield self._proposal(key, change, value - map.bond[v], more, {b: rho}, region)

    def regrafts(self) -> Iterator[Proposal]:
        """Cut a subtree off and hang it at another node, or into an edge."""
        for s, targets in self.shortlist().items():
            rest = Rest(self.map, s)
            for target in targets:
                yield self._regraft(s, target, rest)

    def shortlist(self) -> dict[int, list[Target]]:
        """Return for each side the best places to which it might be moved.

        Predicted gains take the tables of the rest as fixed, and beliefs as having the variance
        that the model says; those inside an edge are bounds then (see :func:`regraft_gains`).
        """
        found: dict[int, list[Target]] = {}
        for inside, gains in enumerate(self.predicted()):
            best = np.argpartition(-gains, min(N_BEST, gains.shape[1] - 1), axis=1)[:, :N_BEST]
            for s, w in zip(*np.nonzero(gains > HOPELESS), strict=True):
                target = Target(int(w), bool(inside))
                if w in best[s] and not self.is_known(self._key(int(s), target)):
                    found.setdefault(int(s), []).append(target)
        return found

    def predicted(self) -> FloatArray:
        """Predicted gains of hanging each side at each node, and inside the edge that leads there.

        −∞ for what is no change, or is one of another kind.
        """
        map = self.map
        cross = np.ascontiguousarray(map.side @ map.side.T)[:, :, None]
        h_cross = np.ascontiguousarray(map.side @ map.h.T)[:, :, None]
        gains = np.empty((2, 2 * map.n, map.n))

        def part(bounds: tuple[int, int]) -> None:
            kernels.regraft_gains(
                *bounds, map.starts, map.around, map.inward, map.around_rho, map.gates, map.m,
                cross, map.g, h_cross, map.J, gains[0], gains[1],
            )  # fmt: skip

        threads.run(part, threads.split(2 * map.n, 8))
        gates = map.gates
        weak = (gates >= map.m) & (map.degree[gates] == 3)
        for s in np.flatnonzero(weak).tolist():  # contraction, or nothing at all
            gains[:, s, map.neighbours(int(gates[s]))] = -np.inf
        bond = np.concatenate([map.bond, map.bond])
        observed = np.arange(map.n) < map.m
        opens, closes = observed & (map.degree == 1), observed & (map.degree == 2)
        freed = np.where(closes[gates], self.penalty.per_inner, 0.0)
        for inside in (0, 1):
            cost = np.array([self._price(More(inside)), self._price(More(inside - 1))])
            gains[inside] *= self.n_samples
            gains[inside] -= (self.n_samples * bond + cost[weak.astype(int)] - freed)[:, None]
        gains[0] -= np.where(opens, self.penalty.per_inner, 0.0)
        return gains

    def _key(self, s: int, target: Target) -> Key:
        map = self.map
        x, p, y = (map.nodes[v] for v in (map.ends[s], map.gates[s], target.place))
        return ("insert" if target.inside else "regraft", x, p, y)

    def _regraft(self, s: int, target: Target, rest: Rest) -> Proposal:
        map, (w, inside) = self.map, target
        x, p, y = (map.nodes[v] for v in (map.ends[s], map.gates[s], w))
        arm = Arm(x, map.side[s], float(map.g[s]))
        region = [x, p, y, *self._left_by(int(map.gates[s]), int(map.ends[s]))]
        if inside:
            old, new = self._fit_inside(w, arm, rest)
            a = rest.arm_back(w).node
            region.append(a)
            change = partial(_insert, x=x, p=p, edge=(a, y))
        else:
            old, new = self._fit_at(w, arm, rest)
            change = partial(_regraft, x=x, p=p, y=y)
        gate = int(map.gates[s])
        opened = 0 if inside else self._opens(w)
        more = More(inside - map.is_weak(gate), opened - self._closes(gate))
        rise = new.value - old - map.bond[s % map.n]
        return self._proposal(self._key(s, target), change, rise, more, new.tables, region)

    def _fit_inside(self, w: int, arm: Arm, rest: Rest) -> tuple[float, Fit]:
        far, near = rest.arm_back(w), self.map.arm(w, int(rest.came[w]))
        new = fit_three([far, near, arm], STAR_STEPS, TOLERANCE / self.n_samples)
        return pair_value(far, near, far.rho), new

    def _fit_at(self, w: int, arm: Arm, rest: Rest) -> tuple[float, Fit]:
        if w < self.map.m:
            return 0.0, fit_observed(self.map.seen(w), [arm])
        (mean,), (g,) = rest.beliefs(np.array([w]))
        rho, _ = fit_pair(arm, Arm(w, mean, g))
        arms = rest.arms(w)
        return star_value(arms), self._fit_star([*arms, arm.turned(rho)])


def _nodes(key: Any) -> Iterator[int]:
    """Nodes that a key names, some of them in pairs."""
    for part in key:
        if isinstance(part, tuple):
            yield from _nodes(part)
        else:
            yield int(part)


def _agreement(a: FloatArray, g: FloatArray, b: FloatArray, e: FloatArray) -> FloatArray:
    """Correlations of beliefs."""
    safe = np.sqrt(np.maximum(g, 1e-12))[:, None] * np.sqrt(np.maximum(e, 1e-12))
    agreement: FloatArray = (a @ b.T) / safe
    return agreement


# What they do to a draft ------------------------------------------------------------------------


def _absorb(draft: Draft, keep: int, drop: int) -> int:
    draft.absorb(keep, drop)
    return keep


def _merge(draft: Draft, keep: int, drop: int, between: int) -> int:
    draft.absorb(keep, drop)
    draft.tidy(between)
    return keep


def _stand_in(draft: Draft, node: int) -> int:
    return draft.stand_in(node)


def _cut(draft: Draft, a: int, b: int) -> int:
    draft.cut(a, b)
    draft.tidy(a)
    draft.tidy(b)
    return -1


def _link(draft: Draft, a: int, b: int) -> int:
    draft.hang(b, a, 0.0)
    return a


def _relink(draft: Draft, old: tuple[int, int], a: int, b: int) -> int:
    _cut(draft, *old)
    return _link(draft, a, b)


def _regraft(draft: Draft, x: int, p: int, y: int) -> int:
    draft.cut(p, x)
    draft.tidy(p)
    draft.hang(x, y, 0.0)
    return y


def _insert(draft: Draft, x: int, p: int, edge: tuple[int, int]) -> int:
    draft.cut(p, x)
    draft.tidy(p)
    new = draft.split(*edge)
    draft.hang(x, new, 0.0)
    return new

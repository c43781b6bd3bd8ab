"""Changes of a Gaussian draft, each with the edges around it fitted and its exact gain.

Beliefs far from a change stay as they are, so the log-likelihood of a tree is that of its parts
plus what the nodes and edges between the parts add; gains are differences of such sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from latentree._kernels import threads
from latentree._kernels.search import regrafting
from latentree.distances import Sample
from latentree.inference import chunks
from latentree.models import GaussianTreeModel, in_order
from latentree.search._refinement import _draft as edits
from latentree.search._refinement._draft import Draft, GaussianDraft
from latentree.search._refinement._full_fit import fit_all, maximize
from latentree.search._refinement._gaussian_fit import (
    Arm,
    BeliefTree,
    NodeFit,
    PrunedTree,
    TreeArrays,
    compressed,
    edge_between,
    fit_edge,
    fit_hidden,
    fit_observed,
    star_value,
)
from latentree.search._refinement._options import DEFAULTS, RefineOptions
from latentree.search._refinement._search import Edit, Key, Proposal, Request, Star
from latentree.tree import Tree
from latentree.typing import FloatArray

_TINY_COLUMNS, _TINY_CELLS = 10, 5_000  # a search takes a second uncompiled


class GaussianEngine:
    """Changes of Gaussian trees on one sample.

    With all cells present the covariance says everything, and gains are exact. With missing ones
    changes are judged by the covariance that is expected under the current model, which makes a
    gain a lower bound, and fits of all parameters run on the rows.
    """

    def __init__(self, sample: Sample, options: RefineOptions = DEFAULTS) -> None:
        self.sample = sample
        self.n_samples = sample.total_weight
        self.shares = options.gaussian_shares
        self.settle_steps = options.gaussian_settle_steps
        self.moments = sample.statistics.moments
        self.proposers = (self.structures,)
        self.last_proposers: tuple[()] = ()
        is_short = sample.is_summed or sample.table.values.size <= _TINY_CELLS
        self.is_tiny = is_short and sample.n_columns <= _TINY_COLUMNS
        self.data: FloatArray | None = None
        if sample.is_summed:
            self.data = sample.statistics.correlation_root

    def draft(self, model: GaussianTreeModel) -> GaussianDraft:
        """Return a model as a draft."""
        return GaussianDraft.of(model)

    def model(self, draft: Draft) -> GaussianTreeModel:
        """Return a draft as a model."""
        assert isinstance(draft, GaussianDraft)
        return draft.model(self.sample.names, *(draft.moments or self.moments))

    def settle(self, draft: Draft, n_steps: int, goal: float = -math.inf) -> tuple[Draft, float]:
        """Run accelerated EM on all parameters; return the draft and its log-likelihood."""
        if self.data is None:
            return self._settle_rows(draft, n_steps, goal)
        arrays = TreeArrays(draft, self.data, self.n_samples)
        # The columns as independent ones; what the edges add is in the likelihood already
        alone = np.log(self.moments[1]) + 0.5 * (1.0 + np.log(2.0 * np.pi))
        rest = self.n_samples * float(alone.sum())
        point, log_likelihood = maximize(arrays, np.arctanh(arrays.rho), n_steps, goal + rest)
        new = draft.copy()
        for node, rho in zip(arrays.nodes, np.tanh(point).tolist(), strict=True):
            if new.parent[node] >= 0:
                new.above[node] = rho
        return new, log_likelihood - rest

    def _settle_rows(self, draft: Draft, n_steps: int, goal: float) -> tuple[Draft, float]:
        fitted, log_likelihood = fit_all(self.model(draft), self.sample, n_steps, goal)
        new = GaussianDraft.of(fitted, sorted(draft.parent))
        new.next_number = draft.next_number
        new.moments = (fitted.means, fitted.scales)
        return new, log_likelihood

    def structures(self, request: Request) -> list[Proposal]:
        """Return changes of edges."""
        data = self.data
        if data is None:
            data = compressed(self.expected_covariance(self.model(request.draft)))
        return list(GaussianMoves(request, data, self.n_samples))

    def expected_covariance(self, model: GaussianTreeModel) -> FloatArray:
        """Expected covariance of the columns under a model, in its units."""
        table, tree = self.sample.table, model.tree
        m = table.n_columns
        total = np.zeros((m, m))
        weights = table.weight_array()
        for start, stop in chunks(table.n_rows, 3 * tree.n_nodes):
            rows, w = model._infer(table.values[start:stop]), weights[start:stop]
            total += rows.states[:, :m].T @ (rows.states[:, :m] * w[:, None])
            gaps = np.flatnonzero((rows.variances[:, :m] != 0.0).any(axis=1))
            for first, last in chunks(gaps.size, tree.n_nodes**2):
                some = gaps[first:last]
                total += _spread(tree, rows.variances[some].T, rows.covariances[some].T) @ w[some]
        return total / self.n_samples


def _spread(tree: Tree, variances: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return Cov(x_i, x_j | row) of observed variables, rows last.

    Given a row, v is a_v times its parent and noise, so Cov(v, u) = a_v·Cov(parent, u) for every u
    before it in the order of the tree.
    """
    parent, place = in_order(tree)
    spread = np.zeros((tree.n_nodes, *variances.shape))
    for v, node in enumerate(tree.order):
        p = parent[v]
        if p >= 0:
            above = spread[p, p]
            a = np.divide(covariances[node], above, out=np.zeros_like(above), where=above > 0.0)
            spread[v, :v] = spread[:v, v] = a * spread[p, :v]
        spread[v, v] = variances[node]
    columns = place[: tree.n_observed]
    return spread[np.ix_(columns, columns)]


class Target(NamedTuple):
    """Where to hang a subtree: at a node, or inside the edge above it."""

    place: int
    inside: bool


class More(NamedTuple):
    """How many nodes there are more after a change: each hidden one comes with an edge."""

    hidden: int = 0
    inner: int = 0
    """Observed nodes that are no leaves."""
    edges: int = 0
    """Edges between components."""


class GaussianMoves:
    """All changes of one draft."""

    def __init__(self, request: Request, data: FloatArray, n_samples: float) -> None:
        self.request, self.options = request, request.options
        self.draft, self.penalty = request.draft, request.penalty
        self.n_samples = n_samples
        self.tree = BeliefTree(request.draft, data)
        self._fit_hidden = partial(
            fit_hidden,
            n_steps=self.options.gaussian_steps,
            tolerance=self.options.tolerance / n_samples,
        )

    def __iter__(self) -> Iterator[Proposal]:
        """All changes that may pay."""
        kinds = (
            self.contractions, self.promotions, self.demotions, self.merges, self.cuts,
            self.links, self.regrafts,
        )  # fmt: skip
        for kind in kinds:
            for proposal in kind():
                yield from proposal
                if time.monotonic() > self.request.deadline:
                    return

    def is_known(self, key: Key) -> bool:
        """Tell whether a change has failed already, or is not asked for."""
        focus = self.request.focus
        elsewhere = focus is not None and focus.isdisjoint(key[1:])
        return elsewhere or key in self.request.known

    def _cost(self, more: More) -> float:
        """Rise of the penalty for more nodes and edges."""
        draft, penalty = self.draft, self.penalty
        n_parameters = draft.n_parameters + more.hidden + more.edges
        n_inner = draft.n_inner + more.hidden + more.inner
        return penalty.of(n_parameters, n_inner, draft.n_hidden + more.hidden) - penalty(draft)

    def _proposal(
        self,
        key: Key,
        edit: Edit,
        rise: float,
        more: More,
        tables: dict[int, float] | None,
        region: Sequence[int],
        n_places: float | None = None,
    ) -> list[Proposal]:
        """Return a change if it may pay; ``rise`` is that of the log-likelihood per sample."""
        raised, cost = self.n_samples * rise, self._cost(more)
        needed = self.request.needed_rise(cost, n_places)
        if raised < needed - self.request.slack(cost, n_places):
            return []
        star = None if tables is None else Star(None, tables)
        return [Proposal(key, raised - cost, raised, needed, frozenset(region), edit, star)]

    def _opens(self, u: int) -> bool:
        """Tell whether one more neighbor makes an inner node of an observed leaf."""
        return u < self.tree.m and bool(self.tree.degree[u] == 1)

    def _closes(self, u: int) -> bool:
        """Tell whether one neighbor less makes a leaf of an observed inner node."""
        return u < self.tree.m and bool(self.tree.degree[u] == 2)

    def _left_by(self, u: int, but: int) -> list[int]:
        """Return the other neighbors of a node if it goes when it loses the one at ``but``."""
        if not self.tree.goes(u):
            return []
        return [self.tree.nodes[w] for w in self.tree.neighbors(u) if w != but]

    # One node less, or one more -----------------------------------------------------------------

    def contractions(self) -> Iterator[list[Proposal]]:
        """Make one node of two hidden neighbors."""
        tree = self.tree
        for v in range(tree.m, tree.n):
            p = int(tree.parent[v])
            if p < tree.m:
                continue
            drop, keep = (v, p) if tree.degree[v] <= tree.degree[p] else (p, v)
            a, b = tree.nodes[keep], tree.nodes[drop]
            key = ("contract", min(a, b), max(a, b))
            if self.is_known(key):
                continue
            moved = tree.arms(drop, but=keep)
            old = star_value(tree.arms(keep)) + star_value(moved)
            through = [arm.with_rho(arm.rho * float(tree.rho[v])) for arm in moved]
            new = self._fit_hidden([*tree.arms(keep, but=drop), *through])
            region = [a, b, *(arm.node for arm in moved)]
            edit = partial(edits.absorb, keep=a, drop=b)
            yield self._proposal(key, edit, new.value - old, More(-1), new.tables, region)

    def promotions(self) -> Iterator[list[Proposal]]:
        """Let an observed node take the place of a hidden neighbor."""
        tree = self.tree
        for o in range(tree.m):
            for h in tree.neighbors(o):
                a, b = tree.nodes[o], tree.nodes[h]
                key = ("promote", a, b)
                if h < tree.m or self.is_known(key):
                    continue
                moved = tree.arms(h, but=o)
                new = fit_observed(tree.observed(o), moved)
                rise = new.value - star_value(tree.arms(h))
                region = [a, b, *(arm.node for arm in moved)]
                edit, more = partial(edits.absorb, keep=a, drop=b), More(-1, self._opens(o))
                n_places = int(tree.degree[h])  # it might be any neighbor of the hidden node
                yield self._proposal(key, edit, rise, more, new.tables, region, n_places)

    def demotions(self) -> Iterator[list[Proposal]]:
        """Put a hidden node in the place of an observed one, which becomes its leaf."""
        tree, softness = self.tree, self.options.softness
        for o in range(tree.m):
            node = tree.nodes[o]
            key = ("demote", node)
            if tree.degree[o] < 2 or self.is_known(key):
                continue
            arms = tree.arms(o)
            old = sum(edge_between(arm, tree.observed(o), arm.rho) for arm in arms)
            new = self._fit_hidden([*arms, tree.observed(o, 1.0 - softness)])
            region = [node, *(arm.node for arm in arms)]
            edit = partial(edits.stand_in, node=node, softness=softness)
            yield self._proposal(key, edit, new.value - old, More(1, -1), new.tables, region)

    def merges(self) -> Iterator[list[Proposal]]:
        """Make one node of two hidden ones with a common neighbor."""
        tree = self.tree
        for c in range(tree.n):
            hidden = [w for w in tree.neighbors(c) if w >= tree.m]
            for a, b in combinations(hidden, 2):
                keep, drop = (a, b) if tree.degree[a] >= tree.degree[b] else (b, a)
                key = ("merge", tree.nodes[min(a, b)], tree.nodes[max(a, b)])
                if not self.is_known(key) and self._are_alike(a, b, c):
                    yield self._merge(key, keep, drop, c)

    def _are_alike(self, a: int, b: int, c: int) -> bool:
        """Tell whether neighbors of c might be one node: they agree more than c says."""
        first, second = self.tree.arm(a, c), self.tree.arm(b, c)
        expected = first.rho * second.rho * (1.0 - first.variance) * (1.0 - second.variance)
        return bool(abs(first.mean @ second.mean) > abs(expected))

    def _merge(self, key: Key, keep: int, drop: int, c: int) -> list[Proposal]:
        tree = self.tree
        s = tree.side_of(drop, c)
        moved, mine = tree.arms(drop, but=c), PrunedTree(tree, s, keep).arms
        old = star_value(mine) + star_value(moved) + tree.edge_values[s % tree.n]
        goes = tree.goes(c)
        if goes:  # the arm to c leads to its third neighbor then
            (far,) = (w for w in tree.neighbors(c) if w not in (keep, drop))
            arm = tree.arm(far, c)
            through = arm.with_rho(arm.rho * tree.rho_of(keep, c))
            mine = [through if one.node == tree.nodes[c] else one for one in mine]
        agree = 1.0 if tree.arm(keep, c).mean @ tree.arm(drop, c).mean >= 0.0 else -1.0
        new = self._fit_hidden([*mine, *(arm.with_rho(agree * arm.rho) for arm in moved)])
        a, b = tree.nodes[keep], tree.nodes[drop]
        region = [a, b, tree.nodes[c], *(arm.node for arm in moved), *self._left_by(c, drop)]
        edit = partial(edits.absorb, keep=a, drop=b, between=tree.nodes[c])
        more = More(-1 - goes, -self._closes(c))
        return self._proposal(key, edit, new.value - old, more, new.tables, region)

    # Forests ------------------------------------------------------------------------------------

    def cuts(self) -> Iterator[list[Proposal]]:
        """Take an edge away that adds nearly nothing.

        The penalty alone would cut whatever hangs by a weak edge, and a forest describes the data
        poorly for the little that it saves.
        """
        tree = self.tree
        is_weak = self.n_samples * tree.edge_values[tree.children] < self.options.independent
        for v in tree.children[is_weak].tolist():
            p = int(tree.parent[v])
            a, b = tree.nodes[p], tree.nodes[v]
            key = ("cut", min(a, b), max(a, b))
            if self.is_known(key):
                continue
            gone, closed = tree.goes(p) + tree.goes(v), self._closes(p) + self._closes(v)
            region = [a, b, *self._left_by(p, v), *self._left_by(v, p)]
            edit, more = partial(edits.cut, p=a, x=b), More(-gone, -closed, -1)
            yield self._proposal(key, edit, -tree.edge_values[v], more, None, region)

    def links(self) -> Iterator[list[Proposal]]:
        """Put an edge between two components, where they agree most."""
        tree = self.tree
        roots = np.flatnonzero(tree.parent < 0)
        if roots.size < 2:
            return
        component = np.empty(tree.n, np.int64)
        for v in tree.order:
            component[v] = v if tree.parent[v] < 0 else component[tree.parent[v]]
        known = [tree.joined(u, tree.arms(u)) for u in range(tree.n)]
        means = np.array([arm.mean for arm in known])
        scale = np.sqrt(np.maximum([1.0 - arm.variance for arm in known], 1e-12))
        agreement = np.abs(means @ means.T) / np.outer(scale, scale)
        agreement[component[:, None] >= component] = -1.0
        for root in roots.tolist():
            rows = np.flatnonzero(component == root)
            i, j = np.unravel_index(agreement[rows].argmax(), (rows.size, tree.n))
            x, y = int(rows[i]), int(j)
            a, b = tree.nodes[x], tree.nodes[y]
            key = ("link", min(a, b), max(a, b))
            if agreement[x, y] < 0 or self.is_known(key):
                continue
            rho, value = fit_edge(known[x], known[y])
            edit, opened = partial(edits.link, x=b, y=a, table=rho), self._opens(x) + self._opens(y)
            yield self._proposal(key, edit, value, More(0, opened, 1), None, [a, b])

    # Elsewhere ----------------------------------------------------------------------------------

    def regrafts(self) -> Iterator[list[Proposal]]:
        """Cut a subtree off and hang it at another node, or into an edge."""
        for s, targets in self.shortlist().items():
            for target in targets:
                yield self._regraft(s, target)

    def shortlist(self) -> dict[int, list[Target]]:
        """Return for each side the best places to which it might be moved.

        Predicted gains take the tables of the rest as fixed, and beliefs as having the variance
        that the model says; those inside an edge are bounds then (see :func:`regraft_gains`).
        """
        found: dict[int, list[Target]] = {}
        count = self.options.few
        for inside, gains in enumerate(self.predicted()):
            best = np.argpartition(-gains, min(count, gains.shape[1] - 1), axis=1)[:, :count]
            for s, w in zip(*np.nonzero(gains > -self.options.slack), strict=True):
                target = Target(int(w), bool(inside))
                if w in best[s] and not self.is_known(self._key(int(s), target)):
                    found.setdefault(int(s), []).append(target)
        return found

    def predicted(self) -> FloatArray:
        """Predicted gains of hanging each side at each node, and inside the edge above it.

        −∞ for what is no change, or is one of another kind.
        """
        tree = self.tree
        shown = tree.side @ tree.data.T
        begin, end, top = tree.ranges
        gains = np.empty((2, 2 * tree.n, tree.n))

        def part(bounds: tuple[int, int]) -> None:
            regrafting.regraft_gains(
                *bounds, tree.order, begin, end, top, tree.parent, tree.rho, tree.own,
                tree.variance, shown, gains[0], gains[1],
            )  # fmt: skip

        threads.run(part, threads.split(tree.n, 8))
        gates = tree.gates
        goes = (gates >= tree.m) & (tree.degree[gates] == 3)
        for s in np.flatnonzero(goes).tolist():  # contraction, or nothing at all
            around = tree.neighbors(int(gates[s]))
            gains[0, s, around] = -np.inf
            gains[1, s, [tree.side_of(w, int(gates[s])) % tree.n for w in around]] = -np.inf
        lost = self.n_samples * np.concatenate([tree.edge_values, tree.edge_values])
        observed = np.arange(tree.n) < tree.m
        opens, closes = observed & (tree.degree == 1), observed & (tree.degree == 2)
        freed = np.where(closes[gates], self.penalty.per_inner, 0.0)
        for inside in (0, 1):
            cost = np.array([self._cost(More(inside)), self._cost(More(inside - 1))])
            gains[inside] *= self.n_samples
            gains[inside] -= (lost + cost[goes.astype(int)] - freed)[:, None]
        gains[0] -= np.where(opens, self.penalty.per_inner, 0.0)
        return gains

    def _key(self, s: int, target: Target) -> Key:
        tree = self.tree
        far = self._ends_of(s, target)[1] if target.inside else target.place
        x, p, y = (tree.nodes[v] for v in (tree.ends[s], tree.gates[s], far))
        return ("insert" if target.inside else "regraft", x, p, y)

    def _ends_of(self, s: int, target: Target) -> tuple[int, int]:
        """Return the ends of the edge of a target: the one nearer to the gate first."""
        tree, w = self.tree, target.place
        begin, end, _ = tree.ranges
        above, gate = int(tree.parent[w]), tree.gates[s]
        return (w, above) if begin[w] <= begin[gate] < end[w] else (above, w)

    def _regraft(self, s: int, target: Target) -> list[Proposal]:
        tree, inside = self.tree, target.inside
        gate, end = int(tree.gates[s]), int(tree.ends[s])
        near, w = self._ends_of(s, target) if inside else (-1, target.place)
        x, p, y = (tree.nodes[v] for v in (end, gate, w))
        arm = tree.arm(end, gate)
        region = [x, p, y, *self._left_by(gate, end)]
        rest = PrunedTree(tree, s, w)
        edit: Edit
        if inside:
            far = tree.arm(w, near)
            new = self._fit_hidden([rest.arm_back, far, arm], is_new=True)
            old = edge_between(rest.arm_back, far, far.rho)
            a = tree.nodes[near]
            region.append(a)
            edit = partial(edits.insert, x=x, p=p, edge=(a, y), table=0.0, softness=0.0)
        else:
            old, new = self._fit_at(w, arm, rest)
            edit = partial(edits.regraft, x=x, p=p, y=y, table=0.0)
        opened = 0 if inside else self._opens(w)
        more = More(inside - tree.goes(gate), opened - self._closes(gate))
        rise = new.value - old - tree.edge_values[s % tree.n]
        n_places = tree.n_within(s, len(rest.path) - 1) * int(tree.degree[gate])
        key = self._key(s, target)
        return self._proposal(key, edit, rise, more, new.tables, region, n_places)

    def _fit_at(self, w: int, arm: Arm, rest: PrunedTree) -> tuple[float, NodeFit]:
        if w < self.tree.m:
            return 0.0, fit_observed(self.tree.observed(w), [arm])
        rho, _ = fit_edge(arm, self.tree.joined(w, rest.arms))
        return star_value(rest.arms), self._fit_hidden([*rest.arms, arm.with_rho(rho)])

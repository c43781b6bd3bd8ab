"""Fits of a Gaussian draft on the covariance of the data: of all edges, and around one node.

What is known on each side of every edge is held as a belief (see the kernels), so that a change can
be judged by the fit of one node's edges, the beliefs that arrive there held fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from latentree._kernels import gaussian as messages
from latentree._kernels.search import regrafting
from latentree._kernels.tree import subtree_ranges
from latentree.em import Step, chunks_of, moment_step
from latentree.search._refinement._draft import Draft
from latentree.typing import FloatArray, IntArray


class Arm(NamedTuple):
    """An edge seen from one end: the node at the other, what is known of it there, and ρ."""

    node: int
    mean: FloatArray
    variance: float
    rho: float = 0.0

    def with_rho(self, rho: float) -> Arm:
        """Return the arm with another correlation."""
        return self._replace(rho=rho)


class NodeFit(NamedTuple):
    """What a node adds to the log-likelihood per sample, and the correlations of its edges."""

    value: float
    tables: dict[int, float]


def compressed(covariance: FloatArray) -> FloatArray:
    """Return a row per variable such that the products of rows are the covariances."""
    values, vectors = np.linalg.eigh(covariance)
    keep = values > 1e-12 * values[-1]
    return np.ascontiguousarray(vectors[:, keep] * np.sqrt(values[keep]))


class TreeArrays:
    """A draft as arrays, and its likelihood as the EM driver sees it: points are z = atanh ρ.

    Nodes have places 0 … n − 1 here, in the order of their numbers, so observed ones come first.
    Side v is what lies below the node at place v, side n + v what lies above the edge over it.
    """

    def __init__(self, draft: Draft, data: FloatArray, n_samples: float = 1.0) -> None:
        self.nodes = sorted(draft.parent)
        place = {node: at for at, node in enumerate(self.nodes)}
        self.n, self.m, self.data, self.n_samples = len(self.nodes), len(data), data, n_samples
        self.parent = np.array([place.get(draft.parent[v], -1) for v in self.nodes], np.int64)
        self.order = np.array([place[v] for v in draft.order()], np.int64)
        rho = np.array([draft.above[v] or 0.0 for v in self.nodes], np.float64)
        self.rho = np.clip(rho, -messages.LARGEST, messages.LARGEST)
        self.own = np.repeat([0.0, -1.0], [self.m, self.n - self.m])

    def step(self, point: FloatArray) -> Step:
        """Run one expectation and maximization."""
        value, following = moment_step(
            self.order, self.parent, np.tanh(point), self.own, self._vectors
        )
        return Step(self.n_samples * value, self.n_samples * value, np.arctanh(following))

    @cached_property
    def _vectors(self) -> list[FloatArray]:
        return chunks_of(self.data)

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep correlations from one."""
        limit = np.arctanh(messages.LARGEST)
        return np.clip(point, -limit, limit)


class BeliefTree(TreeArrays):
    """A draft with the beliefs on both sides of every edge, and ways to look around in it."""

    def __init__(self, draft: Draft, data: FloatArray) -> None:
        super().__init__(draft, data)
        n, m, parent = self.n, self.m, self.parent
        self.variance = messages.variances(self.order, parent, self.rho, self.own)
        self.side, products = np.zeros((2 * n, data.shape[1])), np.zeros((n, 3))
        self.side[:m] = data
        below, above = self.side[:n], self.side[n:]
        messages.means(
            self.order, parent, self.rho, self.own, self.variance, below, above,
            np.zeros(below.shape), products,
        )  # fmt: skip
        self.children = np.flatnonzero(parent >= 0)
        here = np.concatenate([parent[self.children], self.children])
        other = np.concatenate([self.children, parent[self.children]])
        inward = np.concatenate([self.children, self.children + n])
        order = np.lexsort((other, here))
        self.degree = np.bincount(here, minlength=n)
        self.starts = np.concatenate([[0], np.cumsum(self.degree)])
        self.around = other[order]
        self.arms_back: dict[tuple[int, int, int], Arm] = {}
        self.gates = np.full(2 * n, -1)
        self.gates[inward] = here
        self.ends = np.concatenate([np.arange(n), parent])
        g = 1.0 - self.variance
        below, above, both = products.T
        self.edge_values = edge_value(
            below, above, both, g[:n], g[n:], np.where(parent < 0, 0.0, self.rho)
        )
        """What the edge above every node adds per sample."""

    def neighbors(self, u: int) -> list[int]:
        """Return the places around a place."""
        found: list[int] = self.around[self.starts[u] : self.starts[u + 1]].tolist()
        return found

    def side_of(self, w: int, u: int) -> int:
        """Return the side on which w lies, seen from its neighbor u."""
        return w if self.parent[w] == u else u + self.n

    def rho_of(self, w: int, u: int) -> float:
        """Return the correlation of two neighbors."""
        return float(self.rho[w if self.parent[w] == u else u])

    def arm(self, w: int, u: int) -> Arm:
        """Return the arm from u to its neighbor w."""
        s = self.side_of(w, u)
        return Arm(self.nodes[w], self.side[s], float(self.variance[s]), self.rho_of(w, u))

    def arms(self, u: int, but: int = -1) -> list[Arm]:
        """Return the arms of a place, without that to the place ``but``."""
        return [self.arm(w, u) for w in self.neighbors(u) if w != but]

    def observed(self, o: int, rho: float = 0.0) -> Arm:
        """Return an observed node as the end of an arm."""
        return Arm(self.nodes[o], self.data[o], 0.0, rho)

    def joined(self, u: int, arms: Sequence[Arm], rho: float = 0.0) -> Arm:
        """Return a place, with what arrives there by some arms, as the end of an arm."""
        if u < self.m:
            return self.observed(u, rho)
        unknown, r = np.array([(arm.variance, arm.rho) for arm in arms]).reshape(-1, 2).T
        w = 1.0 - r * r * (1.0 - unknown)
        variance = 1.0 / (1.0 + (1.0 / w - 1.0).sum())
        means = np.array([arm.mean for arm in arms]).reshape(-1, self.data.shape[1])
        mean = variance * (r / w) @ means
        return Arm(self.nodes[u], mean, float(variance), rho)

    def path(self, a: int, b: int) -> list[int]:
        """Return the places from one to another of the same component."""
        up, down = [a], [b]
        while self.parent[up[-1]] >= 0:
            up.append(int(self.parent[up[-1]]))
        while down[-1] not in up:
            down.append(int(self.parent[down[-1]]))
        return up[: up.index(down[-1])] + down[::-1]

    @cached_property
    def ranges(self) -> tuple[IntArray, IntArray, IntArray]:
        """Where what is below each place begins and ends in the order, and the root of each."""
        begin, end = subtree_ranges(self.order, self.parent)
        top = np.empty(self.n, np.int64)
        for v in self.order:
            top[v] = v if self.parent[v] < 0 else top[self.parent[v]]
        return begin, end, top

    @cached_property
    def hops(self) -> IntArray:
        """Number of edges between any two places; n or more between components."""
        hops = np.full((self.n, self.n), self.n)
        for v in self.order:
            if self.parent[v] >= 0:
                hops[v] = hops[self.parent[v]] + 1
                hops[:, v] = hops[v]
            hops[v, v] = 0
        return hops

    def n_within(self, side: int, n_steps: int) -> int:
        """Return how many places, without what is on a side, are so many steps from its gate."""
        begin, end, _ = self.ranges
        v = side % self.n
        is_below = (begin >= begin[v]) & (begin < end[v])
        is_left = is_below if side >= self.n else ~is_below
        return int(np.count_nonzero(self.hops[self.gates[side], is_left] <= n_steps)) - 1

    def goes(self, u: int) -> bool:
        """Tell whether a node is suppressed when it loses a neighbor."""
        return u >= self.m and bool(self.degree[u] == 3)


class PrunedTree:
    """The rest of a tree when the subtree on one side has been cut off, seen from one place."""

    def __init__(self, tree: BeliefTree, side: int, place: int) -> None:
        self.tree, self.place = tree, place
        self.path = tree.path(int(tree.gates[side]), place)
        came, back = int(tree.ends[side]), list[Arm]()
        for here, ahead in pairwise(self.path):
            key = side, here, ahead
            if key not in tree.arms_back:
                # Only what comes from where the subtree was is not as it was.
                others = [w for w in tree.neighbors(here) if w not in (came, ahead)]
                arms = [tree.arm(w, here) for w in others] + back
                tree.arms_back[key] = tree.joined(here, arms, tree.rho_of(here, ahead))
            back, came = [tree.arms_back[key]], here
        (self.arm_back,) = back
        """The arm to the neighbor on the way to where the subtree was."""

    @property
    def arms(self) -> list[Arm]:
        """The arms of the place."""
        return [*self.tree.arms(self.place, but=self.path[-2]), self.arm_back]


# Stars and edges --------------------------------------------------------------------------------


def star_value(arms: Sequence[Arm]) -> float:
    """What a hidden center adds per sample, its edges as they are."""
    return fit_hidden(arms, 0, 0.0).value


def fit_hidden(
    arms: Sequence[Arm], n_steps: int, tolerance: float, is_new: bool = False
) -> NodeFit:
    """Fit the edges around a hidden center, from where they are.

    A new one with three arms starts where it explains their correlations: if those of their ends
    are r, the first arm has ρ² = r₀₁·r₀₂/r₁₂, and so on.
    """
    u, rho = np.array([(arm.variance, arm.rho) for arm in arms]).reshape(-1, 2).T.copy()
    means = np.array([arm.mean for arm in arms])
    value = regrafting.fit_star(means @ means.T, u, rho, n_steps, tolerance, is_new)
    return NodeFit(value, dict(zip([arm.node for arm in arms], rho.tolist(), strict=True)))


def fit_observed(center: Arm, arms: Sequence[Arm]) -> NodeFit:
    """Fit the edges around an observed center, each by itself."""
    found = {arm.node: fit_edge(arm, center) for arm in arms}
    return NodeFit(sum(v for _, v in found.values()), {node: r for node, (r, _) in found.items()})


def fit_edge(a: Arm, b: Arm) -> tuple[float, float]:
    """Return the best correlation of an edge, and what it adds per sample."""
    g, e = 1.0 - a.variance, 1.0 - b.variance
    if g * e <= 0.0:
        return 0.0, 0.0
    size = np.sqrt(g * e)
    spread = 0.5 * (a.mean @ a.mean / g + b.mean @ b.mean / e)
    rho = regrafting.best_edge(a.mean @ b.mean / size, spread, messages.LARGEST * size) / size
    return rho, edge_between(a, b, rho)


def edge_between(a: Arm, b: Arm, rho: float) -> float:
    """What an edge adds per sample."""
    products = a.mean @ a.mean, b.mean @ b.mean, a.mean @ b.mean
    return float(edge_value(*products, 1.0 - a.variance, 1.0 - b.variance, rho))


def edge_value(qa: Any, qb: Any, q: Any, ga: Any, gb: Any, rho: Any) -> Any:
    """What edges add per sample, from squares, product and reliabilities of the beliefs.

    −½·(log(1 − r) + (ρ²·(g_b·|μ_a|² + g_a·|μ_b|²) − 2ρ·μ_a·μ_b)/(1 − r)) with r = ρ²·g_a·g_b
    """
    r = rho * rho * ga * gb
    own = rho * rho * (gb * qa + ga * qb)
    return -0.5 * (np.log(1.0 - r) + (own - 2.0 * rho * q) / (1.0 - r))

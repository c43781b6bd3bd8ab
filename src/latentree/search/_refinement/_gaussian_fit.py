"""Fits of a Gaussian draft on the covariance of the data: of all edges, and around one node.

What is known on each side of every edge is held as a belief (see the kernels), so that a change can
be judged by the fit of one node's edges, the beliefs that arrive there held fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from latentree._kernels.search import beliefs as kernels
from latentree.em import Step, chunks_of, moment_step
from latentree.search._refinement._draft import Draft
from latentree.typing import FloatArray, IntArray


class Arm(NamedTuple):
    """An edge seen from one end: the node at the other, what is known of it there, and ρ."""

    node: int
    mean: FloatArray
    g: float
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
        n, width = len(self.nodes), data.shape[1]
        self.n, self.m, self.data, self.n_samples = n, len(data), data, n_samples
        self.parent = np.array([place.get(draft.parent[v], -1) for v in self.nodes], np.int64)
        self.order = np.array([place[v] for v in draft.order()], np.int64)
        rho = np.array([draft.above[v] or 0.0 for v in self.nodes], np.float64)
        self.rho = np.clip(rho, -kernels.LARGEST, kernels.LARGEST)
        self.side, self.g = np.zeros((2 * n, width)), np.zeros(2 * n)
        self.h, self.J = np.zeros((n, width)), np.zeros(n)

    def step(self, point: FloatArray) -> Step:
        """Run one expectation and maximization."""
        value, following = moment_step(self.order, self.parent, np.tanh(point), self._vectors)
        following = np.clip(following, -kernels.LARGEST, kernels.LARGEST)
        return Step(self.n_samples * value, self.n_samples * value, np.arctanh(following))

    @cached_property
    def _vectors(self) -> list[FloatArray]:
        return chunks_of(self.data)

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Keep correlations from one."""
        limit = np.arctanh(kernels.LARGEST)
        return np.clip(point, -limit, limit)


class BeliefTree(TreeArrays):
    """A draft with the beliefs on both sides of every edge, and ways to look around in it."""

    def __init__(self, draft: Draft, data: FloatArray) -> None:
        super().__init__(draft, data)
        kernels.both_ways(
            self.order, self.parent, self.rho, self.data, self.side, self.g, self.h, self.J
        )
        n, parent = self.n, self.parent
        self.children = np.flatnonzero(parent >= 0)
        here = np.concatenate([parent[self.children], self.children])
        other = np.concatenate([self.children, parent[self.children]])
        inward = np.concatenate([self.children, self.children + n])
        order = np.lexsort((other, here))
        self.degree = np.bincount(here, minlength=n)
        self.starts = np.concatenate([[0], np.cumsum(self.degree)])
        self.around, self.inward = other[order], inward[order]
        self.around_rho = self.rho[self.inward % n]
        self.gates = np.full(2 * n, -1)
        self.gates[inward] = here
        self.ends = np.concatenate([np.arange(n), parent])
        below, above = self.side[:n], self.side[n:]
        self.edge_values = edge_value(
            (below * below).sum(axis=1), (above * above).sum(axis=1), (below * above).sum(axis=1),
            self.g[:n], self.g[n:], np.where(parent < 0, 0.0, self.rho),
        )  # fmt: skip
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
        return Arm(self.nodes[w], self.side[s], float(self.g[s]), self.rho_of(w, u))

    def arms(self, u: int, but: int = -1) -> list[Arm]:
        """Return the arms of a place, without that to the place ``but``."""
        return [self.arm(w, u) for w in self.neighbors(u) if w != but]

    def observed(self, o: int, rho: float = 0.0) -> Arm:
        """Return an observed node as the end of an arm."""
        return Arm(self.nodes[o], self.data[o], 1.0, rho)

    def beliefs(self) -> tuple[FloatArray, FloatArray]:
        """Means and reliabilities of all nodes given all data."""
        return _joint_beliefs(np.arange(self.n), self.data, self.h, self.J)

    def goes(self, u: int) -> bool:
        """Tell whether a node is suppressed when it loses a neighbor."""
        return u >= self.m and bool(self.degree[u] == 3)


class PrunedBeliefs:
    """Beliefs in the rest of a tree when the subtree on one side has been cut off."""

    def __init__(self, tree: BeliefTree, side: int) -> None:
        self.tree = tree
        n, width = tree.n, tree.side.shape[1]
        self.new, self.e = np.empty((n, width)), np.empty(n)
        self.h, self.J = np.empty((n, width)), np.empty(n)
        walk, self.came = np.empty(n, np.int64), np.full(n, -1)
        found = kernels.without(
            side, tree.gates[side], tree.starts, tree.around, tree.inward, tree.around_rho, tree.m,
            tree.side, tree.g, tree.h, tree.J, self.new, self.e, self.h, self.J, walk, self.came,
        )  # fmt: skip
        self.walk: IntArray = walk[:found]

    def n_within(self, w: int) -> int:
        """Return how many nodes are as near to the gate as w, or nearer."""
        hops = {int(self.walk[0]): 0}
        for v in self.walk[1:].tolist():  # nearest first
            hops[v] = hops[int(self.came[v])] + 1
            if hops[v] > hops.get(w, self.tree.n):
                break
        return sum(0 < h <= hops[w] for h in hops.values())

    def arms(self, w: int) -> list[Arm]:
        """Return the arms of a place other than the gate."""
        gate = int(self.came[w])
        return [
            self.arm_back(w) if other == gate else self.tree.arm(other, w)
            for other in self.tree.neighbors(w)
        ]

    def arm_back(self, w: int) -> Arm:
        """Return the arm from w to its neighbor on the way to the gate."""
        gate = int(self.came[w])
        rho = self.tree.rho_of(w, gate)
        return Arm(self.tree.nodes[gate], self.new[w], float(self.e[w]), rho)

    def beliefs(self, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """Means and reliabilities of nodes given all of the rest."""
        return _joint_beliefs(places, self.tree.data, self.h, self.J)


def _joint_beliefs(
    places: IntArray, data: FloatArray, h: FloatArray, J: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return μ = h/(1 + J) and g = J/(1 + J) at hidden nodes, the data and 1 at observed ones."""
    hidden = places >= len(data)
    total = np.where(hidden, J[places], 0.0)
    means = np.empty((len(places), data.shape[1]))
    means[hidden] = h[places[hidden]] / (1.0 + total[hidden])[:, None]
    means[~hidden] = data[places[~hidden]]
    return means, np.where(hidden, total / (1.0 + total), 1.0)


# Stars and edges --------------------------------------------------------------------------------


def _products(arms: Sequence[Arm]) -> tuple[FloatArray, FloatArray, FloatArray]:
    means = np.array([arm.mean for arm in arms])
    numbers = np.array([(arm.g, arm.rho) for arm in arms])
    return means @ means.T, numbers[:, 0].copy(), numbers[:, 1].copy()


def star_value(arms: Sequence[Arm]) -> float:
    """What a hidden center adds per sample, its edges as they are."""
    value: float = kernels.star_value(*_products(arms))
    return value


def fit_hidden(
    arms: Sequence[Arm], n_steps: int, tolerance: float, is_new: bool = False
) -> NodeFit:
    """Fit the edges around a hidden center, from where they are.

    A new one with three arms starts where it explains their correlations: if those of their ends
    are r, the first arm has ρ² = r₀₁·r₀₂/r₁₂, and so on.
    """
    cross, g, rho = _products(arms)
    if is_new:
        kernels.start_three(cross, g, rho)
    value = kernels.fit_star(cross, g, rho, n_steps, tolerance)
    return NodeFit(value, dict(zip([arm.node for arm in arms], rho.tolist(), strict=True)))


def fit_observed(center: Arm, arms: Sequence[Arm]) -> NodeFit:
    """Fit the edges around an observed center, each by itself."""
    found = {arm.node: fit_edge(arm, center) for arm in arms}
    return NodeFit(sum(v for _, v in found.values()), {node: r for node, (r, _) in found.items()})


def fit_edge(a: Arm, b: Arm) -> tuple[float, float]:
    """Return the best correlation of an edge, and what it adds per sample."""
    rho = kernels.fit_pair(a.mean @ a.mean, b.mean @ b.mean, a.mean @ b.mean, a.g, b.g)
    return rho, edge_between(a, b, rho)


def edge_between(a: Arm, b: Arm, rho: float) -> float:
    """What an edge adds per sample."""
    products = a.mean @ a.mean, b.mean @ b.mean, a.mean @ b.mean
    return float(edge_value(*products, a.g, b.g, rho))


def edge_value(qa: Any, qb: Any, q: Any, ga: Any, gb: Any, rho: Any) -> Any:
    """What edges add per sample, from squares, product and reliabilities of the beliefs.

    −½·(log(1 − r) + (ρ²·(g_b·|μ_a|² + g_a·|μ_b|²) − 2ρ·μ_a·μ_b)/(1 − r)) with r = ρ²·g_a·g_b
    """
    r = rho * rho * ga * gb
    own = rho * rho * (gb * qa + ga * qb)
    return -0.5 * (np.log(1.0 - r) + (own - 2.0 * rho * q) / (1.0 - r))

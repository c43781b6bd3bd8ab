"""A Gaussian draft as arrays, with what is known on both sides of every edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latentree._kernels.search import beliefs as kernels
from latentree.search._refinement._draft import Draft
from latentree.typing import FloatArray, IntArray


class Arm(NamedTuple):
    """An edge seen from one end: the node at the other, what is known of it there, and ρ."""

    node: int
    mean: FloatArray
    g: float
    rho: float = 0.0

    def turned(self, rho: float) -> Arm:
        """Return the arm with another correlation."""
        return Arm(self.node, self.mean, self.g, rho)


class Fit(NamedTuple):
    """What a centre adds to the log-likelihood per sample, and the correlations of its arms."""

    value: float
    tables: dict[int, float]


def compressed(covariance: FloatArray) -> FloatArray:
    """Return a row per variable such that the products of rows are the covariances."""
    values, vectors = np.linalg.eigh(covariance)
    keep = values > 1e-12 * values[-1]
    return np.ascontiguousarray(vectors[:, keep] * np.sqrt(values[keep]))


class Space:
    """A draft as arrays.

    Nodes have places 0 … n − 1 here, in the order of their numbers, so observed ones come first.
    Side v is what lies below the node at place v, side n + v what lies above the edge over it.
    """

    def __init__(self, draft: Draft, data: FloatArray) -> None:
        self.nodes = sorted(draft.parent)
        place = {node: at for at, node in enumerate(self.nodes)}
        n, width = len(self.nodes), data.shape[1]
        self.n, self.m, self.data = n, len(data), data
        self.parent = np.array([place.get(draft.parent[v], -1) for v in self.nodes], np.int64)
        self.order = np.array([place[v] for v in draft.order()], np.int64)
        rho = np.array([draft.above[v] or 0.0 for v in self.nodes], np.float64)
        self.rho = np.clip(rho, -kernels.LARGEST, kernels.LARGEST)
        self.side, self.g = np.zeros((2 * n, width)), np.zeros(2 * n)
        self.h, self.J = np.zeros((n, width)), np.zeros(n)

    def fit(self, n_cycles: int, tolerance: float) -> float:
        """Run accelerated EM on all correlations; return the log-likelihood per sample."""
        value: float = kernels.fit(
            self.order, self.parent, self.rho, self.data, self.side, self.g, self.h, self.J,
            n_cycles, tolerance,
        )  # fmt: skip
        return value


class Map(Space):
    """A space with its beliefs filled in, and ways to look around in it."""

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
        self.bond = self._bonds()

    def _bonds(self) -> FloatArray:
        """What the edge above every node adds per sample."""
        below, above = self.side[: self.n], self.side[self.n :]
        bonds: FloatArray = kernels.pair_values(
            (below * below).sum(axis=1), (above * above).sum(axis=1), (below * above).sum(axis=1),
            self.g[: self.n], self.g[self.n :], np.where(self.parent < 0, 0.0, self.rho),
        )  # fmt: skip
        return bonds

    def neighbours(self, u: int) -> list[int]:
        """Return the places around a place."""
        found: list[int] = self.around[self.starts[u] : self.starts[u + 1]].tolist()
        return found

    def side_of(self, w: int, u: int) -> int:
        """Return the side on which w lies, seen from its neighbour u."""
        return w if self.parent[w] == u else u + self.n

    def rho_of(self, w: int, u: int) -> float:
        """Return the correlation of two neighbours."""
        return float(self.rho[w if self.parent[w] == u else u])

    def arm(self, w: int, u: int) -> Arm:
        """Return the arm from u to its neighbour w."""
        s = self.side_of(w, u)
        return Arm(self.nodes[w], self.side[s], float(self.g[s]), self.rho_of(w, u))

    def arms(self, u: int, but: int = -1) -> list[Arm]:
        """Return the arms of a place, without that to the place ``but``."""
        return [self.arm(w, u) for w in self.neighbours(u) if w != but]

    def seen(self, o: int, rho: float = 0.0) -> Arm:
        """Return an observed node as the end of an arm."""
        return Arm(self.nodes[o], self.data[o], 1.0, rho)

    def is_weak(self, u: int) -> bool:
        """Tell whether a node goes when it loses a neighbour."""
        return u >= self.m and bool(self.degree[u] == 3)


class Rest:
    """What is known in the rest of a tree when the subtree on one side has been cut off."""

    def __init__(self, map: Map, side: int) -> None:
        self.map = map
        n, width = map.n, map.side.shape[1]
        self.new, self.e = np.empty((n, width)), np.empty(n)
        self.h, self.J = np.empty((n, width)), np.empty(n)
        walk, self.came = np.empty(n, np.int64), np.full(n, -1)
        found = kernels.without(
            side, map.gates[side], map.starts, map.around, map.inward, map.around_rho, map.m,
            map.side, map.g, map.h, map.J, self.new, self.e, self.h, self.J, walk, self.came,
        )  # fmt: skip
        self.walk: IntArray = walk[:found]

    def arms(self, w: int) -> list[Arm]:
        """Return the arms of a place other than the gate."""
        gate = int(self.came[w])
        return [
            self.arm_back(w) if other == gate else self.map.arm(other, w)
            for other in self.map.neighbours(w)
        ]

    def arm_back(self, w: int) -> Arm:
        """Return the arm from w to its neighbour on the way to the gate."""
        gate = int(self.came[w])
        rho = self.map.rho_of(w, gate)
        return Arm(self.map.nodes[gate], self.new[w], float(self.e[w]), rho)

    def beliefs(self, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """Means and reliabilities of nodes given all of the rest."""
        m = self.map.m
        hidden = places >= m
        J = np.where(hidden, self.J[places], 0.0)
        means = np.empty((len(places), self.map.data.shape[1]))
        means[hidden] = self.h[places[hidden]] / (1.0 + J[hidden])[:, None]
        means[~hidden] = self.map.data[places[~hidden]]
        return means, np.where(hidden, J / (1.0 + J), 1.0)


# Stars and pairs --------------------------------------------------------------------------------


def _stacked(arms: Sequence[Arm]) -> tuple[FloatArray, FloatArray, FloatArray]:
    means = np.array([arm.mean for arm in arms])
    numbers = np.array([(arm.g, arm.rho) for arm in arms])
    return means @ means.T, numbers[:, 0].copy(), numbers[:, 1].copy()


def star_value(arms: Sequence[Arm]) -> float:
    """What a hidden centre adds per sample, its edges as they are."""
    value: float = kernels.star_value(*_stacked(arms))
    return value


def fit_star(arms: Sequence[Arm], n_steps: int, tolerance: float) -> Fit:
    """Fit the edges around a hidden centre, from where they are."""
    cross, g, rho = _stacked(arms)
    value = kernels.fit_star(cross, g, rho, n_steps, tolerance)
    return Fit(value, dict(zip([arm.node for arm in arms], rho.tolist(), strict=True)))


def fit_three(arms: Sequence[Arm], n_steps: int, tolerance: float) -> Fit:
    """Fit a hidden centre with three arms, from where it explains their correlations.

    If their ends' correlations are r, the first arm has ρ² = r₀₁·r₀₂/r₁₂, and so on.
    """
    cross, g, rho = _stacked(arms)
    kernels.start_three(cross, g, rho)
    value = kernels.fit_star(cross, g, rho, n_steps, tolerance)
    return Fit(value, dict(zip([arm.node for arm in arms], rho.tolist(), strict=True)))


def pair_value(a: Arm, b: Arm, rho: float) -> float:
    """What an edge adds per sample."""
    value: float = kernels.pair_value(*_products(a, b), a.g, b.g, rho)
    return value


def fit_pair(a: Arm, b: Arm) -> tuple[float, float]:
    """Return the best correlation of an edge, and what it adds per sample."""
    rho, value = kernels.fit_pair(*_products(a, b), a.g, b.g)
    return rho, value


def fit_observed(centre: Arm, arms: Sequence[Arm]) -> Fit:
    """Fit the edges around an observed centre, each by itself."""
    found = {arm.node: fit_pair(arm, centre) for arm in arms}
    return Fit(sum(v for _, v in found.values()), {node: rho for node, (rho, _) in found.items()})


def _products(a: Arm, b: Arm) -> tuple[float, float, float]:
    return float(a.mean @ a.mean), float(b.mean @ b.mean), float(a.mean @ b.mean)

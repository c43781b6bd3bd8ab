"""States of one hidden variable of a mixed model, fitted with everything around it held fixed.

The message from a node u to its neighbor h is what is seen behind u as a function of u's state,
λ(t) = P(seen behind u | u = t), scaled to a largest value of 1 in every row. It does not depend on
anything at h: so one more state of h can be judged by EM on its star alone,

    z = Σ_s P(s) · Π_u Σ_t P(t | s)·λ_u(t) · Π_x p(x | s),

over its neighbors u with states and its neighbors x that are numbers. The log-likelihood of the
star is that of the whole model up to a constant: gains are exact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latentree.data import Table
from latentree.inference import FreeEmission, Unit
from latentree.models import MixedTreeModel
from latentree.typing import FloatArray, IntArray

_SPREAD = 0.5
"""How far the two halves of a state begin apart: in logarithms of probabilities, and in standard
deviations of numbers. Where two normal distributions look like one, they are about as far apart."""
_FIRST_STEPS, _STEPS = 4, 24
"""Steps of EM that every candidate gets, and those that the best one gets."""
_CANDIDATES = 3
"""States that are tried for a split, the most frequent ones."""
_TINY, _LOWEST = 1e-300, -1e5
"""Least probability, and least logarithm of a density: a value that far off rules a star out."""


class Star(NamedTuple):
    """The parameters around a hidden variable."""

    top: FloatArray
    """Probabilities of its states."""
    tables: dict[int, FloatArray]
    """P(neighbor | state) of neighbors with states."""
    leaves: dict[int, FreeEmission]
    """Emissions of neighbors that are numbers."""

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        n_tables = sum(self.top.size * (table.shape[1] - 1) for table in self.tables.values())
        n_leaves = sum(emission.n_parameters for emission in self.leaves.values())
        return int(self.top.size - 1 + n_tables + n_leaves)


@dataclass(frozen=True)
class StarFit:
    """A star, and the log-likelihood of the rows with it, up to a constant."""

    star: Star
    log_likelihood: float


class Values:
    """The values of a column of numbers, and the distinct ones, where densities are computed."""

    def __init__(self, of_rows: FloatArray, weights: FloatArray) -> None:
        distinct, self._number = np.unique(of_rows, return_inverse=True)
        self._distinct = np.asarray(distinct, np.float64)
        seen = ~np.isnan(of_rows)
        x, w = of_rows[seen], weights[seen]
        self._center = w @ x / w.sum()
        self._scale = max(float(np.sqrt(w @ (x - self._center) ** 2 / w.sum())), _TINY)

    def log_likelihood(self, emission: FreeEmission) -> FloatArray:
        """Return the log-likelihood of every row (a row) for every state."""
        logs = np.maximum(emission.log_likelihood(self._distinct), _LOWEST)
        return np.asarray(logs.T[self._number])

    def maximized(
        self, emission: FreeEmission, posterior: FloatArray, share: float
    ) -> FreeEmission:
        """Return the emission that posteriors (rows × states) give."""
        size, unit = self._distinct.size, self._unit(emission)
        sums = [np.bincount(self._number, each, size) for each in posterior.T]
        weights = np.array(sums, np.float64)
        within = emission.likelihoods(self._distinct).within
        expected = emission.expected(self._distinct, weights, within, unit)
        return emission.at(emission.maximized(expected, unit, share), unit)

    def _unit(self, emission: FreeEmission) -> Unit:
        return Unit(self._center, self._scale, emission.resolution, emission.origin)


class RowMessages:
    """Messages to every hidden variable of a mixed model, for all rows of a table."""

    def __init__(self, model: MixedTreeModel, table: Table) -> None:
        self.model, self.table = model, table
        self.weights = table.weight_array()
        self.parent = model.tree.parent
        layout = model.layout
        marginals = layout.marginals(model.theta)
        self.marginal = np.split(marginals, layout.state_starts[1:-1])
        self._emits = layout.emits
        self._tables = [layout.table(model.theta, v) for v in range(model.tree.n_nodes)]
        numbers = np.flatnonzero(layout.emits[: model.tree.n_observed]).tolist()
        self._values = {c: Values(table.values[:, c], self.weights) for c in numbers}
        self._up = self._upward()
        self._down = self._downward()

    def star(self, node: int) -> Star:
        """Return the parameters around a hidden variable."""
        tables = {child: self._tables[child] for child in self._with_states(node)}
        if self.parent[node] >= 0:
            tables[int(self.parent[node])] = self._turned(node)
        return Star(self.marginal[node], tables, self._leaves(node))

    def _turned(self, node: int) -> FloatArray:
        """P(parent | node)."""
        joint = self.marginal[self.parent[node]][:, None] * self._tables[node]
        return np.asarray((joint / np.maximum(joint.sum(axis=0), _TINY)).T)

    def arms(self, node: int) -> dict[int, FloatArray]:
        """Return the messages of the neighbors with states: rows × states."""
        arms = {child: self._up[child] for child in self._with_states(node)}
        if self.parent[node] >= 0:
            arms[int(self.parent[node])] = self._down[node]
        return arms

    def values(self, node: int) -> dict[int, Values]:
        """Return the values of the neighbors that are numbers."""
        return {leaf: self._values[leaf] for leaf in self._leaves(node)}

    def _with_states(self, node: int) -> list[int]:
        children = self.model.tree.children(node).tolist()
        return [child for child in children if not self._is_number(child)]

    def _leaves(self, node: int) -> dict[int, FreeEmission]:
        children = self.model.tree.children(node).tolist()
        leaves = {
            child: self.model.emissions[child] for child in children if self._is_number(child)
        }
        return {child: emission for child, emission in leaves.items() if emission is not None}

    def _is_number(self, node: int) -> bool:
        return node < self.model.tree.n_observed and bool(self._emits[node])

    def _seen(self, node: int) -> FloatArray:
        """Return 1 for the states that a row allows."""
        n_states = int(self.model.n_states[node])
        if node >= self.model.tree.n_observed:
            return np.ones((self.table.n_rows, n_states))
        codes = self.table.values[:, node]
        allowed = (codes[:, None] == np.arange(n_states)) | ~(codes >= 0.0)[:, None]
        return np.asarray(allowed, np.float64)

    def _reach(self, child: int) -> FloatArray:
        """Return what lies behind a child as a function of its parent's state."""
        if self._is_number(child):
            emission = self.model.emissions[child]
            assert emission is not None
            return _relative(self._values[child].log_likelihood(emission))
        return np.asarray(self._up[child] @ self._tables[child].T)

    def _upward(self) -> list[FloatArray]:
        tree = self.model.tree
        self._up = [np.empty(0)] * tree.n_nodes
        self._arrived: list[dict[int, FloatArray]] = [{} for _ in range(tree.n_nodes)]
        for node in tree.order[::-1].tolist():
            if self._is_number(node):
                continue
            self._arrived[node] = {c: self._reach(c) for c in tree.children(node).tolist()}
            self._up[node] = _product(self._seen(node), list(self._arrived[node].values()))
        return self._up

    def _downward(self) -> list[FloatArray]:
        """Return the message of the parent of every inner node, about all but the node."""
        tree = self.model.tree
        down = [np.empty(0)] * tree.n_nodes
        for node in tree.order.tolist():
            above = int(self.parent[node])
            if above < 0 or not tree.children(node).size:
                continue
            others = [arm for child, arm in self._arrived[above].items() if child != node]
            if self.parent[above] >= 0:
                others.append(down[above] @ self._turned(above).T)
            down[node] = _product(self._seen(above), others)
        return down


def _relative(logs: FloatArray) -> FloatArray:
    """Return likelihoods relative to the best state's, row by row."""
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _product(seen: FloatArray, arms: Sequence[FloatArray]) -> FloatArray:
    """Return the product of what is seen and of messages, scaled to a largest value of 1."""
    out = seen.copy()
    for arm in arms:
        out *= arm
        out /= np.maximum(out.max(axis=1, keepdims=True), _TINY)
    return out


# EM on a star -----------------------------------------------------------------------------------


class StarProblem:
    """The likelihood of the rows as a function of what is around one hidden variable.

    Parameters
    ----------
    messages : RowMessages
        Of the model as it is.
    node : int
        The hidden variable.
    prior_weight : float
        Rows that are added to every table, and to every emission, shared out to its states.
    """

    def __init__(self, messages: RowMessages, node: int, prior_weight: float) -> None:
        self.weights = messages.weights
        self.arms, self.values = messages.arms(node), messages.values(node)
        self.prior_weight = prior_weight
        self.now = self.evaluated(messages.star(node))

    def evaluated(self, star: Star) -> StarFit:
        """Return a star with its log-likelihood."""
        return StarFit(star, self._expected(star)[0])

    def climbed(self, star: Star, n_steps: int) -> StarFit:
        """Return the best star after some steps of EM."""
        best = StarFit(star, -np.inf)
        for n_left in range(n_steps, -1, -1):
            log_likelihood, posterior, reach = self._expected(star)
            if log_likelihood > best.log_likelihood:
                best = StarFit(star, log_likelihood)
            if n_left:
                star = self._maximized(star, posterior, reach)
        return best

    def _expected(self, star: Star) -> tuple[float, FloatArray, dict[int, FloatArray]]:
        """Return the log-likelihood, posteriors times weights, and Σ_t P(t | s)·λ(t) of arms."""
        reach = {other: self.arms[other] @ table.T for other, table in star.tables.items()}
        logs = np.log(np.maximum(star.top, _TINY)) + np.zeros((self.weights.size, 1))
        for arm in reach.values():
            logs += np.log(np.maximum(arm, _TINY))
        for leaf, emission in star.leaves.items():
            logs += self.values[leaf].log_likelihood(emission)
        best = logs.max(axis=1, keepdims=True)
        posterior = np.exp(logs - best)
        z = posterior.sum(axis=1, keepdims=True)
        posterior *= self.weights[:, None] / z
        return float(self.weights @ (best + np.log(z))[:, 0]), posterior, reach

    def _maximized(self, star: Star, posterior: FloatArray, reach: dict[int, FloatArray]) -> Star:
        """Return the star that posteriors give."""
        top = posterior.sum(axis=0) + self.prior_weight / star.top.size
        tables = {}
        for other, table in star.tables.items():
            counts = (posterior / np.maximum(reach[other], _TINY)).T @ self.arms[other]
            counts = counts * table + self.prior_weight / table.size
            tables[other] = counts / counts.sum(axis=1, keepdims=True)
        share = self.prior_weight / star.top.size
        leaves = {
            leaf: self.values[leaf].maximized(emission, posterior, share)
            for leaf, emission in star.leaves.items()
        }
        return Star(top / top.sum(), tables, leaves)

    def grown(self, penalty: float, most: int, rng: np.random.Generator) -> StarFit:
        """Split states as long as the log-likelihood gains more than ``penalty`` per parameter.

        One state is split; if that is not worth it, all are, since two may gain only together.
        """
        best = self.now
        while best.star.top.size < most:
            for splits in (_one_more(best.star), _all_twice(best.star, most)):
                trial = self._best_split(best, splits, penalty, rng)
                if trial is not None:
                    best = trial
                    break
            else:
                break
        return best

    def _best_split(
        self, now: StarFit, splits: list[list[int]], penalty: float, rng: np.random.Generator
    ) -> StarFit | None:
        """Return the best fit with states split; None if it is not worth its parameters."""
        trials = [split_states(now.star, each, rng) for each in splits]
        cost = penalty * (trials[0].n_parameters - now.star.n_parameters)
        fits = [self.climbed(trial, _FIRST_STEPS) for trial in trials]
        best = max(fits, key=lambda fit: fit.log_likelihood)
        best = self.climbed(best.star, _STEPS)
        return best if best.log_likelihood > now.log_likelihood + cost else None


def _one_more(star: Star) -> list[list[int]]:
    """Return splits of one state, each of the frequent ones."""
    return [[state] for state in np.argsort(-star.top, kind="stable")[:_CANDIDATES].tolist()]


def _all_twice(star: Star, most: int) -> list[list[int]]:
    """Return the split of every state, of the frequent ones where all are too many."""
    return [np.argsort(-star.top, kind="stable")[: most - star.top.size].tolist()]


def split_states(star: Star, states: Sequence[int], rng: np.random.Generator) -> Star:
    """Make two of each of some states, a random distance apart."""
    n, halves = star.top.size, np.array(states)
    origin = np.concatenate([np.arange(n), halves])
    top = star.top[origin] / np.bincount(origin)[origin]
    tables = {}
    for other, table in star.tables.items():
        moved = np.zeros((origin.size, table.shape[1]))
        moved[n:] = rng.normal(0.0, _SPREAD, (halves.size, table.shape[1]))
        moved[halves] = -moved[n:]
        new = table[origin] * np.exp(moved)
        tables[other] = new / new.sum(axis=1, keepdims=True)
    leaves = {}
    for leaf, emission in star.leaves.items():
        away = np.zeros(origin.size)
        away[n:] = rng.normal(0.0, _SPREAD, halves.size)
        away[halves] = -away[n:]
        leaves[leaf] = emission.taken(origin, away)
    return Star(top, tables, leaves)


# Growth of a model ------------------------------------------------------------------------------


class Growth(NamedTuple):
    """A model some of whose hidden variables have more states."""

    model: MixedTreeModel
    """Its parameters are to be fitted."""
    grown: frozenset[int]
    """Hidden variables with more states."""
    waiting: frozenset[int]
    """Neighbors of these that are worth more states, too."""


def grown_model(
    model: MixedTreeModel,
    table: Table,
    penalty: float,
    most: int,
    prior_weight: float,
    rng: np.random.Generator,
    nodes: Iterable[int],
    deadline: float = math.inf,
) -> Growth:
    """Give hidden variables the states that their stars are worth, of neighbors only one at a time.

    Parameters
    ----------
    model : MixedTreeModel
        As fitted to the rows.
    table : Table
        The rows.
    penalty : float
        Of the log-likelihood per parameter.
    most : int
        Most states.
    prior_weight : float
        As in :class:`StarProblem`.
    rng : Generator
        For the directions of splits.
    nodes : iterable of int
        Hidden variables to look at.
    deadline : float
        When to stop looking, by ``time.monotonic``.

    Returns
    -------
    Growth
    """
    messages = RowMessages(model, table)
    found: list[tuple[float, int, Star]] = []
    for node in nodes:
        if time.monotonic() > deadline:
            break
        problem = StarProblem(messages, node, prior_weight)
        fit = problem.grown(penalty, most, rng)
        gain = fit.log_likelihood - problem.now.log_likelihood
        gain -= penalty * (fit.star.n_parameters - problem.now.star.n_parameters)
        if gain > 0.0:
            found.append((gain, node, fit.star))
    taken: dict[int, Star] = {}
    for _, node, star in sorted(found, key=lambda each: (-each[0], each[1])):
        if not any(other in star.tables for other in taken):
            taken[node] = star
    waiting = {node for _, node, _ in found}.difference(taken)
    return Growth(_with_stars(messages, taken), frozenset(taken), frozenset(waiting))


def _with_stars(messages: RowMessages, stars: dict[int, Star]) -> MixedTreeModel:
    """Return the model with other parameters around some hidden variables that are not joined.

    A star says P(parent | variable), the model P(variable | parent): the parent keeps its own
    distribution, so that the likelihood is that of the star for roots, and close to it for others.
    """
    model = messages.model
    n_states: IntArray = np.array(model.n_states)
    tables = list(messages._tables)
    emissions = list(model.emissions)
    for node, star in stars.items():
        n_states[node] = star.top.size
        above = int(messages.parent[node])
        for other, table in star.tables.items():
            if other == above:
                joint = (star.top[:, None] * table).T
                tables[node] = joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY)
            else:
                tables[other] = table
        if above < 0:
            tables[node] = star.top
        for leaf, emission in star.leaves.items():
            emissions[leaf] = emission
    theta = np.concatenate([np.ravel(table) for table in tables])
    return MixedTreeModel.from_theta(model.tree, n_states, theta, emissions, model.schema)

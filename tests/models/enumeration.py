"""The naive definitions: all joint states of a discrete model, dense Gaussian conditioning."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from latentree.data import Table
from latentree.models import DiscreteTreeModel, GaussianTreeModel


def random_discrete(tree, rng, max_states=3, zeros=False) -> DiscreteTreeModel:
    """Tables drawn row by row, with exact zeros if wanted; numbers of states drawn per node."""
    n_states = rng.integers(2, max_states + 1, tree.n_nodes)
    tree = tree.rerooted(int(rng.integers(tree.n_nodes)))
    tables = []
    for node in range(tree.n_nodes):
        above = tree.parent[node]
        size = None if above < 0 else n_states[above]
        table = rng.dirichlet(np.full(n_states[node], 0.7), size=size)
        if zeros:
            table = np.where(rng.random(table.shape) < 0.3, 0.0, table)
            table = np.where(table.sum(-1, keepdims=True) > 0, table, 1.0)
            table = table / table.sum(-1, keepdims=True)
        tables.append(table)
    return DiscreteTreeModel(tree, tables)


def random_table(model, rng, n_rows, missing=0.0, impossible=False) -> Table:
    """Weighted rows of a discrete model, or any rows at all, with cells missing at random."""
    if impossible:
        states = model.n_states[: model.tree.n_observed]
        codes = rng.integers(0, states, (n_rows, states.size))
    else:
        codes = np.array(model.sample(n_rows, rng))
    codes[rng.random(codes.shape) < missing] = -1
    weights = np.where(rng.random(n_rows) < 0.2, 0.0, rng.uniform(0, 3, n_rows))
    weights[0] = 1.0
    return Table(codes, model.schema, weights)


class Enumeration(NamedTuple):
    """All joint states of the nodes of a model, and their probabilities."""

    states: np.ndarray
    probabilities: np.ndarray

    def given(self, row) -> np.ndarray:
        """Probabilities of the joint states that agree with a row (−1: missing)."""
        row = np.asarray(row)
        fits = (row < 0) | (self.states[:, : row.size] == row)
        return self.probabilities * fits.all(axis=1)

    def marginal(self, node, weights, n_states) -> np.ndarray:
        return np.bincount(self.states[:, node], weights, minlength=n_states)


def enumerate_joint(model: DiscreteTreeModel) -> Enumeration:
    states = np.array(list(itertools.product(*map(range, model.n_states))))
    probabilities = np.ones(len(states))
    for node, table in enumerate(model.tables):
        above = model.tree.parent[node]
        here = states[:, node]
        probabilities *= table[here] if above < 0 else table[states[:, above], here]
    return Enumeration(states, probabilities)


def enumerate_counts(model, table, joint) -> tuple[float, list[np.ndarray]]:
    """Log-likelihood and expected counts of every table, summed over rows and joint states."""
    counts = [np.zeros_like(table_) for table_ in model.tables]
    total = 0.0
    for codes, weight in zip(table.values, table.weights, strict=True):
        likelihoods = joint.given(codes)
        z = likelihoods.sum()
        if weight == 0:
            continue
        share = weight * likelihoods / z
        total += weight * np.log(z)
        for node, above in enumerate(model.tree.parent):
            if above < 0:
                counts[node] += joint.marginal(node, share, model.n_states[node])
            else:
                np.add.at(counts[node], (joint.states[:, above], joint.states[:, node]), share)
    return total, counts


def random_gaussian(tree, rng) -> GaussianTreeModel:
    tree = tree.rerooted(int(rng.integers(tree.n_nodes)))
    m = tree.n_observed
    return GaussianTreeModel(
        tree, rng.uniform(-0.95, 0.95, tree.n_nodes), rng.normal(size=m), rng.uniform(0.3, 2, m)
    )


class Dense(NamedTuple):
    """Mean and covariance of all nodes of a Gaussian model."""

    mean: np.ndarray
    covariance: np.ndarray

    def given(self, seen, values) -> Dense:
        """Condition on some nodes."""
        seen = np.asarray(seen, int)
        block = self.covariance[np.ix_(seen, seen)]
        gain = (
            np.linalg.solve(block, self.covariance[seen]).T
            if seen.size
            else np.zeros((self.mean.size, 0))
        )
        return Dense(
            self.mean + gain @ (values - self.mean[seen]),
            self.covariance - gain @ self.covariance[seen],
        )

    def log_density(self, seen, values) -> float:
        seen = np.asarray(seen, int)
        block = self.covariance[np.ix_(seen, seen)]
        off = values - self.mean[seen]
        whole = seen.size * np.log(2 * np.pi) + np.linalg.slogdet(block)[1]
        return -0.5 * (whole + off @ np.linalg.solve(block, off)) if seen.size else 0.0


def dense(model: GaussianTreeModel) -> Dense:
    """Covariances multiplied up along paths, node by node."""
    tree, n = model.tree, model.tree.n_nodes
    rho = np.eye(n)
    for position, node in enumerate(tree.order):
        above = tree.parent[node]
        for other in tree.order[:position]:
            rho[node, other] = model.correlations[node] * rho[above, other] if above >= 0 else 0.0
            rho[other, node] = rho[node, other]
    scale = np.append(model.scales, np.ones(tree.n_hidden))
    return Dense(np.append(model.means, np.zeros(tree.n_hidden)), rho * scale[:, None] * scale)

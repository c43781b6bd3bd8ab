"""BIN: a binary latent tree, greedily joined from the bottom up.

After Harmeling and Williams, *Greedy learning of binary latent trees* (IEEE PAMI 33, 2011).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree._kernels.inference import tables as kernels
from latentree.data import Table
from latentree.distances import Sample, Statistics, Units, as_sample
from latentree.em import Budget, Fitted, fit_parameters
from latentree.tree import RootedForest, Tree, minimal_forest
from latentree.typing import FloatArray, IntArray, Progress

_PAIR_STEPS = 100
_SOFTNESS = 0.1


def binary_tree(
    X: Any,
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Fitted:
    """Learn a binary latent tree by joining the pair with the largest mutual information.

    Each joined pair hangs under a new hidden variable, whose number of states is the one with the
    highest BIC for the pair; its most probable value in each row is carried upward and takes the
    place of the pair. When no pair is worth a hidden variable any more, what is left
    are the roots of a forest. At the end all parameters are fitted together. O(n·m²) for n rows
    and m variables.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    family : {"auto", "gaussian", "discrete", "symmetric"}
        How to model the columns; "auto" goes by their kinds.
    weights : array-like, optional
        How much each row counts.
    budget : Budget, optional
        When EM stops.
    random_state : int or Generator, optional
        For random starts.
    progress : callable, optional
        Called with the number of steps so far and the log-likelihood.

    Returns
    -------
    Fitted
        ``model, report``.

    References
    ----------
    Harmeling and Williams, *Greedy Learning of Binary Latent Trees*, IEEE PAMI 33, 2011.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.6, 0.8))
    >>> model, report = binary_tree(truth.sample(1_000, 1))
    >>> model.tree
    Tree(6 observed, 4 hidden, 9 edges)
    """
    clock = time.perf_counter()
    sample = as_sample(X, family, weights)
    gaussian = sample.family == "gaussian"
    joining: _GaussianJoining | _DiscreteJoining
    if gaussian:
        joining = _GaussianJoining(sample.statistics)
    else:
        joining = _DiscreteJoining(sample.table, random_state)
    while (pair := joining.best_pair()) is not None:
        joining.join(*pair)
    tree, states = _finished(joining, sample)
    fitted = fit_parameters(
        tree, sample, n_states=None if gaussian else states, budget=budget,
        random_state=random_state, progress=progress,
    )  # fmt: skip
    return Fitted(fitted.model, fitted.report.timed(time.perf_counter() - clock))


def _finished(joining: _Joining, sample: Sample) -> tuple[Tree, IntArray]:
    """Return the tree without a root of two children, and the states of its hidden nodes."""
    parent = np.array(joining.parent, np.int64)
    m = sample.n_columns
    rooted = RootedForest(parent, (parent >= 0).astype(float))
    smaller, old = minimal_forest(rooted, m)
    return Tree(*smaller, m, sample.names), np.array(joining.n_states)[old[m:]]


class _Joining:
    """Nodes that are joined two by two; subclasses know what a node carries."""

    def __init__(self, m: int, n_samples: float) -> None:
        self.parent = [-1] * m
        self.n_states: list[int] = [1] * m
        self.n_samples = n_samples
        self.information = np.full((2 * m, 2 * m), -np.inf)
        """Mutual information of all pairs of nodes still without a parent, −∞ elsewhere."""

    def best_pair(self) -> tuple[int, int] | None:
        """Return the pair with the largest mutual information, if it is worth joining."""
        n = len(self.parent)
        active = self.information[:n, :n]
        i, j = np.unravel_index(int(active.argmax()), active.shape)
        worth = np.isfinite(active[i, j]) and self._worth(int(i), int(j))
        return (int(i), int(j)) if worth else None

    def _worth(self, i: int, j: int) -> bool:
        """Whether dependence pays for its parameters: n·I > ½·(K_i−1)·(K_j−1)·log n."""
        cells = max(1, (self.n_states[i] - 1) * (self.n_states[j] - 1))
        return bool(self.n_samples * self.information[i, j] > 0.5 * cells * np.log(self.n_samples))

    def _add(self, i: int, j: int, n_states: int) -> int:
        node = len(self.parent)
        self.parent[i] = self.parent[j] = node
        self.parent.append(-1)
        self.n_states.append(n_states)
        for gone in (i, j):
            self.information[gone] = self.information[:, gone] = -np.inf
        return node

    def _set_information(self, node: int, others: IntArray, values: FloatArray) -> None:
        keep = others != node
        self.information[node, others[keep]] = values[keep]
        self.information[others[keep], node] = values[keep]

    @property
    def active(self) -> IntArray:
        """Nodes without a parent."""
        return np.flatnonzero(np.array(self.parent) < 0)


class _DiscreteJoining(_Joining):
    """Carries a code for every row, −1 where it is missing.

    Carrying probabilities or draws upward instead loses so much dependence at every level that
    the newsgroups fall apart into more than twenty trees.
    """

    def __init__(self, table: Table, random_state: Any) -> None:
        super().__init__(table.n_columns, table.total_weight)
        m = table.n_columns
        self.rng = np.random.default_rng(random_state)
        self.weights = table.weight_array()
        self.n_states = table.cardinalities.tolist()
        self.codes = np.full((table.n_rows, 2 * m), -1, np.int16)
        for column in range(m):
            self.codes[:, column] = table.column(column)
        for node in range(m):
            self._inform(node, np.arange(node + 1))

    def _joints(self, node: int, others: IntArray) -> list[FloatArray]:
        """Joint distribution of a node with each of several others."""
        states = np.array(self.n_states)
        counts = kernels.joint_with_all(self.codes, node, others, self.weights, states)
        parts = [counts[o, :, : states[other]] for o, other in enumerate(others)]
        return [part / max(part.sum(), 1e-300) for part in parts]

    def _inform(self, node: int, others: IntArray) -> None:
        values = [_mutual_information(joint) for joint in self._joints(node, others)]
        self._set_information(node, others, np.array(values))

    def join(self, i: int, j: int) -> None:
        """Put a hidden node above two others."""
        joint = self._joints(i, np.array([j]))[0]
        prior, to_i, to_j = _best_pair_model(joint, self.n_samples, self.rng)
        node = self._add(i, j, prior.size)
        # P(code | h) by rows; the code −1 of a missing child reads the ones at the end.
        likelihood_i = np.vstack([to_i.T, np.ones(prior.size)])[self.codes[:, i]]
        likelihood_j = np.vstack([to_j.T, np.ones(prior.size)])[self.codes[:, j]]
        self.codes[:, node] = (prior * likelihood_i * likelihood_j).argmax(axis=1)
        self._inform(node, self.active)


def _mutual_information(joint: FloatArray) -> float:
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


PairModel = tuple[FloatArray, FloatArray, FloatArray]


def _best_pair_model(joint: FloatArray, n: float, rng: np.random.Generator) -> PairModel:
    """Return prior and tables of a hidden parent of two nodes, its states chosen by BIC."""
    best, best_score = None, -np.inf
    for k in range(2, max(2, *joint.shape) + 1):
        model, log_likelihood = _fit_pair(joint, k, rng)
        cost = (k - 1) + k * (joint.shape[0] - 1) + k * (joint.shape[1] - 1)
        score = n * log_likelihood - 0.5 * cost * np.log(n)
        if score > best_score:
            best, best_score = model, score
    assert best is not None
    return best


def _fit_pair(joint: FloatArray, k: int, rng: np.random.Generator) -> tuple[PairModel, float]:
    """EM for P(a, b) = Σ_h P(h)·P(a | h)·P(b | h), from a hidden copy of both."""
    responsibility = _copy_of_both(joint, k, rng)  # P(h | a, b)
    for _ in range(_PAIR_STEPS):
        counts = joint[:, :, None] * responsibility + 1e-12
        to_a, to_b = counts.sum(axis=1).T, counts.sum(axis=0).T
        prior = to_a.sum(axis=1)
        to_a, to_b = to_a / prior[:, None], to_b / prior[:, None]
        parts = prior * to_a.T[:, None, :] * to_b.T[None, :, :]
        total = parts.sum(axis=2)
        responsibility = parts / total[:, :, None]
    seen = joint > 0
    return (prior / prior.sum(), to_a, to_b), float((joint[seen] * np.log(total[seen])).sum())


def _copy_of_both(joint: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Return P(h | a, b), half a noisy copy of a and half one of b, with states matched by lift.

    The lift of a pair of states is P(a, b) / (P(a)·P(b)).
    """
    lift = joint / joint.sum(axis=1, keepdims=True) / joint.sum(axis=0, keepdims=True)
    of_a = np.arange(joint.shape[0]) if joint.shape[0] == k else rng.integers(k, size=len(joint))
    of_b = of_a[lift.argmax(axis=0)]
    noisy: FloatArray = (1.0 - _SOFTNESS) * np.eye(k) + _SOFTNESS / k
    return np.asarray(0.5 * (noisy[of_a][:, None, :] + noisy[of_b][None, :, :]))


class _GaussianJoining(_Joining):
    """Carries the correlations of the best guess of every node, in standard units.

    The guess of a hidden node is the sum of its children's, or their difference if they correlate
    negatively; so its correlations follow from theirs. A missing cell counts as the mean.
    """

    def __init__(self, statistics: Statistics) -> None:
        m = statistics.n_columns
        super().__init__(m, statistics.total_weight)
        self.r = np.zeros((2 * m, 2 * m))
        self.r[:m, :m] = _standardized_products(statistics)
        for node in range(m):
            self._inform(node, np.arange(node + 1))

    def _inform(self, node: int, others: IntArray) -> None:
        r = self.r[node, others]
        self._set_information(node, others, -0.5 * np.log1p(-np.minimum(r**2, 1.0 - 1e-15)))

    def join(self, i: int, j: int) -> None:
        """Put a hidden node above two others."""
        node = self._add(i, j, 1)
        sign = 1.0 if self.r[i, j] >= 0 else -1.0
        # h = (x_i ± x_j)/√Var, so that r(h, x) = (r(i, x) ± r(j, x))/√Var.
        both = self.r[i] + sign * self.r[j]
        norm = np.sqrt(both[i] + sign * both[j])
        self.r[node] = self.r[:, node] = both / norm
        self.r[node, node] = 1.0
        self._inform(node, self.active)


def _standardized_products(statistics: Statistics) -> FloatArray:
    """Mean products of the columns in units of their means and standard deviations."""
    mean, spread = statistics.moments
    pairs = statistics.sums.in_units(Units(mean, 1.0 / spread)).pairs
    assert pairs is not None
    lower = np.tril(pairs.cross) / statistics.total_weight
    return np.asarray(lower + np.tril(lower, -1).T)

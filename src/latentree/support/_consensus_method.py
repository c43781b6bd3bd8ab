"""The method ``consensus``: what replicates of the quick learners agree on, with parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from latentree.distances import Distances, Sample, as_sample
from latentree.em import Budget, Fitted, fit_parameters
from latentree.errors import DataError
from latentree.search import fit_mixed
from latentree.structure import correlations, learn_tree, split_certainty, variable_signs
from latentree.support._bootstrap import quick_learners
from latentree.support._consensus import agreed_tree
from latentree.support._replicates import by_distances, draws_of, of_replicates
from latentree.tree import Tree
from latentree.typing import FloatArray, Progress, RandomState

N_TREES = 100
"""Replicates of all learners together: the error of one's share near one half is 0.1 then."""

_RIDGE = 1e-6  # on the diagonal: columns that are equal but for rounding have distance 0


def consensus(
    X: Any,
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    random_state: RandomState = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Fitted:
    """Learn what the quick learners find again and again in resampled rows.

    Recursive grouping, CLNJ and spectral neighbor joining (the last for up to 128
    variables) learn from the rows, and again from rows drawn with replacement. For each learner a
    split has a share of the replicates, and a probability in the tree of the rows, by where else
    the parts of that tree could hang; shares are shifted so that as many splits are true by them as
    by probabilities (:func:`agreed_tree`). The tree has the splits for which the mean of both,
    averaged over the learners, is above one half. A learner counts by the share of the replicates
    in which its tree predicts the rows that were left out best. What the rows cannot tell is left
    open: hidden variables have more neighbors than those of a resolved tree, and the likelihood is
    lower where much is in doubt. Parameters come from EM.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed"}
        How to take the columns.
    weights : array-like, optional
        How much each row counts.
    random_state : int or Generator, optional
        For the draws, and for random starts of EM.
    budget : Budget, optional
        When EM stops.
    progress : callable, optional
        Called with the number of steps of EM so far and the log-likelihood.
    **options
        Of :func:`latentree.fit_parameters`, such as ``n_states``.

    Returns
    -------
    Fitted
        ``model, report``.

    References
    ----------
    Margush and McMorris, Consensus n-trees, Bulletin of Mathematical Biology 43, 1981.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.7, 0.8))
    >>> model, report = lt.support.consensus(truth.sample(1_000, 1), random_state=0)
    >>> model.tree.n_hidden
    2
    """
    sample = as_sample(X, family, weights)
    generator = np.random.default_rng(random_state)
    tree = consensus_tree(sample, generator)
    common = {"random_state": generator, "progress": progress, **options}
    if budget is not None:
        common["budget"] = budget
    if sample.family == "mixed":
        return fit_mixed(tree, sample, **common)
    return fit_parameters(tree, sample, **common)


def consensus_tree(sample: Sample, random_state: RandomState, n_trees: int = N_TREES) -> Tree:
    """Return what the quick learners agree on; components are those of the data."""
    return gather_trees(sample, random_state, n_trees).agreed


@dataclass(frozen=True, eq=False)
class Gathered:
    """The trees of several learners, from the rows and from rows drawn with replacement."""

    distances: Distances
    names: tuple[str, ...]
    own: list[Tree]
    replicates: list[list[Tree]]
    left_out: list[FloatArray]
    """Correlations of the rows that each replicate leaves out."""

    @cached_property
    def weights(self) -> FloatArray:
        """How much each learner counts: in what share of the replicates it is the best.

        The best is the learner whose tree predicts the rows best that the replicate left out. If
        there are no such rows, all count alike.
        """
        if not self.left_out:
            return np.full(len(self.names), 1.0 / len(self.names))
        turns = [variable_signs(tree, self.distances) for tree in self.own]
        wins = np.zeros(len(self.names))
        for trees, left in zip(zip(*self.replicates, strict=True), self.left_out, strict=True):
            losses = [
                prediction_loss(tree, left * np.outer(turn, turn), self.distances.exponent)
                for tree, turn in zip(trees, turns, strict=True)
            ]
            best = np.isclose(losses, min(losses), rtol=0.0, atol=1e-12)
            wins += best / best.sum()
        return np.asarray(wins / wins.sum())

    @property
    def agreed(self) -> Tree:
        """The tree of the splits that the learners agree on."""
        if self.own[0].n_edges < 3:
            return self.own[0]
        certainty = [split_certainty(tree, self.distances) for tree in self.own]
        return agreed_tree(self.own, certainty, self.replicates, self.weights)


def gather_trees(sample: Sample, random_state: RandomState, n_trees: int) -> Gathered:
    """Let the quick learners learn from the rows, and from replicates of them."""
    names = quick_learners(sample.n_columns)
    own = [learn_tree(sample, name) for name in names]
    rounds = -(-n_trees // len(names)) if own[0].n_edges >= 3 else 0
    draws = draws_of(sample, int(np.random.default_rng(random_state).integers(2**63)), None)
    components = own[0].components[: own[0].n_observed]
    learners = [by_distances(name, components) for name in names]
    trees = of_replicates(sample, learners, rounds, draws)
    try:
        left = of_replicates(sample, [_correlations], len(trees), replace(draws, are_left_out=True))
    except DataError:  # of very few rows a replicate may leave out one, or none
        left = []
    replicates = [[each[place] for each in trees] for place in range(len(names))]
    return Gathered(sample.distances, names, own, replicates, [each for (each,) in left])


def _correlations(sample: Sample) -> FloatArray:
    return correlations(sample.distances)


def prediction_loss(tree: Tree, correlation: FloatArray, exponent: float = 1.0) -> float:
    """Return −log p of a row of other data, up to a constant, by Gaussian variables on a tree.

    With R of the tree, (log det R + tr R⁻¹·R̂)/2. Discrete variables are taken as Gaussian ones with
    the same distances: a score of the tree, not of a model.
    """
    expected = np.exp(-tree.path_lengths() / exponent)
    expected[np.diag_indices_from(expected)] += _RIDGE
    root, lower = cho_factor(expected, lower=True)
    half_log_det = float(np.log(np.diag(root)).sum())
    return half_log_det + 0.5 * float(np.trace(cho_solve((root, lower), correlation)))

"""The method ``consensus``: what replicates of the quick learners agree on, with parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.distances import Sample, as_sample
from latentree.em import Budget, Fitted, fit_parameters
from latentree.search import fit_mixed
from latentree.structure import learn_tree
from latentree.support._bootstrap import bootstrap_support, quick_learners
from latentree.support._consensus import agreed_tree
from latentree.tree import Tree
from latentree.typing import Progress

N_TREES = 100
"""Replicates of all learners together: the error of one's share near one half is 0.1 then."""


def consensus(
    X: Any,
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    random_state: Any = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Fitted:
    """Learn what the quick learners find again and again in resampled rows.

    Recursive grouping, CLNJ and spectral neighbor joining (the last for up to 128
    variables) learn from the rows, and again from rows drawn with replacement. The tree has the
    splits whose share, as a geometric mean over the learners, is above one half, where the tree of
    the rows weighs as much as the replicates of the same learner. What the rows cannot tell is left
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


def consensus_tree(sample: Sample, random_state: Any, n_trees: int = N_TREES) -> Tree:
    """Return what all quick learners agree on; components are those of the data."""
    names = quick_learners(sample.n_columns)
    own = [learn_tree(sample, name) for name in names]
    if own[0].n_edges < 3:
        return own[0]
    found = bootstrap_support(own[0], sample, names, n_trees, random_state=random_state)
    replicates = [found.replicates[place :: len(names)] for place in range(len(names))]
    return agreed_tree(own, replicates)

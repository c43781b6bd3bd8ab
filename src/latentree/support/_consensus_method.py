"""The method ``consensus``: the splits that are probably true, with parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.distances import Sample, as_sample
from latentree.em import Budget, Fitted, fit_parameters
from latentree.search import fit_mixed
from latentree.structure import learn_tree, sample_trees
from latentree.support._bootstrap import QUICK
from latentree.support._consensus import majority_tree
from latentree.support._splits import split_disagreement
from latentree.tree import Tree
from latentree.typing import Progress, RandomState

N_TREES = 200
"""Trees of both chains together. About one in three is independent of those before it, so that the
standard error of a share near one half is 0.06."""

MOST_APART = 0.15
"""Mean difference of the shares of splits in two chains that agree: each has some 30 independent
trees, so that shares near one half differ by 0.1 by chance."""


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
    """Learn the tree of the splits that are probably true.

    Trees are drawn from their posterior (:func:`latentree.structure.sample_trees`), in two chains
    that begin at the trees of recursive grouping and of CLNJ. The tree has the splits that more
    than half of them have: by the posterior no other has a smaller expected Robinson-Foulds
    distance to the truth. What the rows cannot tell is left open: hidden variables have more
    neighbors than those of a resolved tree, and the likelihood is lower where much is in doubt. If
    the two chains do not agree, a note of the report says so. Parameters come from EM.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed"}
        How to model the columns.
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
    trees = probable_trees(sample, generator)
    tree = majority_tree(trees)
    common = {"random_state": generator, "progress": progress, **options}
    if budget is not None:
        common["budget"] = budget
    fit = fit_mixed if sample.family == "mixed" else fit_parameters
    model, report = fit(tree, sample, **common)
    return Fitted(model, replace(report, notes=(*report.notes, *notes_on(trees))))


def notes_on(trees: Sequence[Tree]) -> tuple[str, ...]:
    """Say that the chains have not converged, if they have not."""
    found = split_disagreement(np.array_split(np.arange(len(trees)), len(QUICK)), trees)
    if found <= MOST_APART:
        return ()
    return (
        f"the two chains of trees do not agree yet (shares of splits differ by {found:.2f} on "
        "average): take splits with a probability near one half as open",
    )


def consensus_tree(sample: Sample, random_state: RandomState, n_trees: int = N_TREES) -> Tree:
    """Return the tree of the splits that are probably true; components are those of the data."""
    return majority_tree(probable_trees(sample, random_state, n_trees))


def probable_trees(sample: Sample, random_state: RandomState, n_trees: int = N_TREES) -> list[Tree]:
    """Return trees as probable as they come: the more of them have a split, the surer it is.

    They are drawn from the posterior, in two chains, from the trees of recursive grouping and CLNJ.

    Parameters
    ----------
    sample : Sample
        The data, as :func:`latentree.distances.as_sample` takes it.
    random_state : int or Generator, optional
        For the draws.
    n_trees : int
        Of both chains together.

    Returns
    -------
    list of Tree

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.7, 0.8))
    >>> sample = lt.distances.as_sample(truth.sample(1_000, 1))
    >>> trees = lt.support.probable_trees(sample, random_state=0, n_trees=20)
    >>> lt.support.majority_tree(trees).same_structure(truth.tree)
    True
    """
    starts = [learn_tree(sample, name) for name in QUICK]
    return sample_trees(starts, sample.distances, -(-n_trees // len(QUICK)), random_state)

"""The latent class model: one hidden variable explains everything."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from latentree.distances import Sample, as_sample
from latentree.em import (
    Budget,
    Fitted,
    StateProblem,
    fit_parameters,
    make_problem,
    maximize,
    random_discrete_start,
)
from latentree.errors import DataError
from latentree.models import DiscreteTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, Progress

SEARCH = Budget(tolerance=1e-6, short_steps=15)
"""While numbers of states are compared; the winner is then fitted in full."""

_PATIENCE = 2  # numbers of states tried after the best score so far
_SPLITS = 3  # heaviest states that are split to make one state more


def latent_class(
    X: Any,
    family: str = "auto",
    *,
    n_states: int | Literal["auto"] | None = None,
    max_states: int = 64,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Fitted:
    """Learn a latent class model, a star around one hidden variable.

    For discrete data the number of states is the one with the highest BIC, unless ``n_states``
    says it: it grows by one state at a time, each number starting from the best model with one
    state less, whose heaviest states are split in turn, and from one random model. For Gaussian
    data the model has one factor.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    family : {"auto", "gaussian", "discrete", "symmetric"}
        How to model the columns; "auto" goes by their kinds.
    n_states : int or "auto", optional
        Number of classes; by default the one with the highest BIC. With "auto" the one that
        predicts held-out rows best, which decide on smoothing and stopping, too.
    max_states : int
        Largest number of classes to try.
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
    Lazarsfeld and Henry, *Latent Structure Analysis*, Houghton Mifflin, 1968.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_discrete_model(lt.simulate.latent_class(6), 2, 0)
    >>> model, report = latent_class(truth.sample(2_000, 1), random_state=0)
    >>> int(model.n_states[-1])
    2
    """
    clock = time.perf_counter()
    sample = as_sample(X, family, weights)
    tree = star(sample)
    if sample.family != "discrete":
        return fit_parameters(tree, sample, budget=budget, random_state=random_state)
    rng = np.random.default_rng(random_state)
    if n_states == "auto":
        return fit_parameters(
            tree, sample, n_states=n_states, budget=budget, random_state=rng, progress=progress
        )
    best = _choose_states(tree, sample, n_states, max_states, rng, progress)
    problem = make_problem(tree, sample, int(best.model.n_states[-1]))
    final = maximize(problem, [problem.point(best.model)], budget, progress)
    return Fitted(final.model, final.report.timed(time.perf_counter() - clock))


def star(sample: Sample) -> Tree:
    """Return one hidden node with all columns around it."""
    m = sample.n_columns
    if m < 3:
        raise DataError(f"a hidden variable needs three neighbors, but there are {m} columns")
    return Tree(np.append(np.full(m, m), -1), n_observed=m, names=sample.names)


def _choose_states(
    tree: Tree,
    sample: Sample,
    n_states: int | None,
    max_states: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Fitted:
    """Grow the number of states until the BIC has not risen for a while, or to ``n_states``."""
    last = best = _fit(tree, sample, 1, None, rng, progress)
    for count in range(2, (n_states or max_states) + 1):
        last = _fit(tree, sample, count, last, rng, progress)
        if n_states is not None or last.report.bic_score > best.report.bic_score:
            best = last
        elif count - int(best.model.n_states[-1]) >= _PATIENCE:
            break
    return best


def _fit(
    tree: Tree,
    sample: Sample,
    count: int,
    smaller: Fitted | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Fitted:
    problem = make_problem(tree, sample, count)
    starts = [random_discrete_start(problem, rng)]
    if smaller is not None:
        starts += _split_starts(problem, smaller.model, rng)
    return maximize(problem, starts, SEARCH, progress)


def _split_starts(
    problem: StateProblem, smaller: DiscreteTreeModel, rng: np.random.Generator
) -> list[FloatArray]:
    """Split each of the heaviest states of the hidden node into two that differ a little."""
    shares = smaller.marginal(smaller.tree.n_observed)
    return [
        problem.point(_split(smaller, int(state), rng))
        for state in np.argsort(-shares, kind="stable")[:_SPLITS]
    ]


def _split(model: DiscreteTreeModel, state: int, rng: np.random.Generator) -> DiscreteTreeModel:
    center = model.rerooted(model.tree.n_observed)
    tables = []
    for table in center.tables[:-1]:
        row = table[state] * np.exp(rng.normal(0.0, 0.3, table.shape[1]))
        tables.append(np.vstack([table, row / row.sum()]))
    marginal: FloatArray = np.append(center.tables[-1], center.tables[-1][state])
    marginal[[state, -1]] /= 2.0
    return DiscreteTreeModel(center.tree, [*tables, marginal], model.schema.labels)

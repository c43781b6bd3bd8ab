"""Fits of all parameters of a tree: the one module of refinement that calls latentree.em."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from latentree.distances import Sample
from latentree.em import (
    FLOOR,
    INTERRUPTED,
    Budget,
    Driver,
    Fitted,
    RowProblem,
    StateProblem,
    fit_parameters,
    units_of,
    usual_states,
)
from latentree.models import DiscreteTreeModel, GaussianTreeModel, MixedTreeModel, Model
from latentree.tree import Tree
from latentree.typing import FloatArray

__all__ = ["FLOOR", "final_fit", "first_fits", "fit_all", "maximize", "units_of"]

PRIOR = 1.0
"""Rows of prior weight of mixed columns where nothing is said."""

_START = Budget(max_steps=100)
"""What a tree without parameters gets before the search."""


def first_fits(
    trees: Sequence[Tree], sample: Sample, max_states: int | None, random_state: Any
) -> list[Fitted]:
    """Fit trees; all hidden variables have the number of states that suits the first tree best.

    A search that starts with too few states explains what they leave open by false edges, and has
    too many to take away if it starts with more.
    """

    def fit(tree: Tree, states: int | None) -> Fitted:
        return fit_parameters(
            tree, sample, n_states=states, n_starts=1, budget=_START, random_state=random_state,
            prior_weight=PRIOR if sample.family == "mixed" else 0.0,
        )  # fmt: skip

    first, *others = trees
    if sample.family == "mixed":  # the search lets them grow, each by itself
        return [fit(tree, 2) for tree in trees]
    if sample.family != "discrete":
        return [fit(tree, None) for tree in trees]
    states, fitted = _best_states(
        partial(fit, first), usual_states(sample.cardinalities), max_states
    )
    return [fitted, *(fit(tree, states) for tree in others)]


def _best_states(
    fit: Callable[[int], Fitted], start: int, max_states: int | None
) -> tuple[int, Fitted]:
    """Return the number of states with the highest BIC, and its fit.

    One after the other is tried: more as long as the BIC rises, or fewer if more do not pay.
    """
    most = max_states or 2**15
    states = min(start, most)
    best = fit(states)
    for step in (1, -1):
        before = best
        while best.model.tree.n_hidden and 2 <= states + step <= most:
            trial = fit(states + step)
            if trial.report.bic_score <= best.report.bic_score:
                break
            best, states = trial, states + step
        if best is not before:
            break
    return states, best


def final_fit(model: Model, sample: Sample, budget: Budget | None, prior_weight: float) -> Fitted:
    """Fit the model of a search to the end."""
    if sample.family == "mixed":
        prior_weight = prior_weight or PRIOR
    return fit_parameters(model.tree, sample, start=model, budget=budget, prior_weight=prior_weight)


def prior_of(sample: Sample) -> float:
    """Return the weight of the prior of a search, in rows.

    A label that no row of a state has stays possible, and the spread of numbers above 0.
    """
    return PRIOR if sample.family == "mixed" else FLOOR


def fit_all(
    model: Model,
    sample: Sample,
    n_steps: int,
    goal: float = -math.inf,
    prior_weight: float = 0.0,
) -> tuple[Any, float]:
    """Run steps of accelerated EM on the rows; return model and log-likelihood."""
    problem: Any
    if isinstance(model, GaussianTreeModel):
        problem = RowProblem(model.tree, sample)
    else:
        assert isinstance(model, DiscreteTreeModel | MixedTreeModel)
        kinds = {column: type(own) for column, own in enumerate(model.emissions) if own}
        problem = StateProblem(model.tree, model.n_states, sample, prior_weight, kinds)
    point, log_likelihood = maximize(problem, problem.point(model), n_steps, goal)
    return problem.model(point), log_likelihood


def maximize(
    problem: Any, point: FloatArray, n_steps: int, goal: float = -math.inf
) -> tuple[FloatArray, float]:
    """Run steps of accelerated EM from a point; return where it ends, and the log-likelihood."""
    if n_steps:
        budget = Budget(max_steps=n_steps, short_steps=n_steps)
        outcome = Driver(problem, budget, goal=goal).maximize([point])
        if outcome.interrupted == INTERRUPTED:  # the search keeps the best model, not this one
            raise KeyboardInterrupt
        point = outcome.best.point
    return point, problem.step(point).log_likelihood

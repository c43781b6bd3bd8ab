"""Fits of all parameters of a tree: the one module of refinement that calls latentree.em."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentree.distances import Sample
from latentree.em import (
    FLOOR,
    Budget,
    DiscreteProblem,
    Driver,
    Fitted,
    RowProblem,
    fit_parameters,
    hidden_states,
)
from latentree.models import DiscreteTreeModel, GaussianTreeModel, Model
from latentree.tree import Tree
from latentree.typing import FloatArray

__all__ = ["FLOOR", "final_fit", "first_fit", "fit_all", "maximize"]

_START = Budget(max_steps=100)
"""What a tree without parameters gets before the search."""


def first_fit(
    tree: Tree, sample: Sample, max_states: int | None, rng: np.random.Generator
) -> Model:
    """Fit a tree, with at most so many states a hidden variable."""
    states = None
    if sample.family != "gaussian" and max_states is not None:
        states = np.minimum(hidden_states(tree, sample, None)[tree.n_observed :], max_states)
    fitted = fit_parameters(
        tree, sample, n_states=states, random_state=rng, n_starts=1, budget=_START
    )
    model: Model = fitted.model
    return model


def final_fit(model: Any, sample: Sample, budget: Budget | None, prior_weight: float) -> Fitted:
    """Fit the model of a search to the end."""
    return fit_parameters(model.tree, sample, start=model, budget=budget, prior_weight=prior_weight)


def fit_all(model: Model, sample: Sample, n_steps: int) -> tuple[Any, float]:
    """Run steps of accelerated EM on the rows; return model and log-likelihood."""
    problem: Any
    if isinstance(model, GaussianTreeModel):
        problem = RowProblem(model.tree, sample)
    else:
        assert isinstance(model, DiscreteTreeModel)
        problem = DiscreteProblem(model.tree, model.n_states, sample)
    point, log_likelihood = maximize(problem, problem.point(model), n_steps)
    return problem.model(point), log_likelihood


def maximize(problem: Any, point: FloatArray, n_steps: int) -> tuple[FloatArray, float]:
    """Run steps of accelerated EM from a point; return where it ends, and the log-likelihood."""
    budget = Budget(max_steps=n_steps, short_steps=n_steps)
    best = Driver(problem, budget).maximize([point]).best.point if n_steps else point
    return best, problem.step(best).log_likelihood

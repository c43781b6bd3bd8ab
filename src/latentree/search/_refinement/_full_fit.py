"""Fits of all parameters of a tree: the one module of refinement that calls latentree.em."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.data import Table
from latentree.em import (
    FLOOR,
    Budget,
    DiscreteProblem,
    Driver,
    Fitted,
    GaussianProblem,
    TreeModel,
    column_moments,
    condensed,
    fit_parameters,
    hidden_states,
    table_of,
)
from latentree.models import GaussianTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray

__all__ = [
    "FLOOR",
    "column_moments",
    "condensed",
    "final_fit",
    "first_fit",
    "fit_all",
    "maximize",
    "read_table",
]

_START = Budget(max_steps=100)
"""What a tree without parameters gets before the search."""


def read_table(tree: Tree, X: Any, family: str, weights: ArrayLike | None) -> Table:
    """Return the data of a tree's observed nodes, columns in their order."""
    return table_of(tree, X, family, weights)


def first_fit(
    tree: Tree, table: Table, max_states: int | None, rng: np.random.Generator
) -> TreeModel:
    """Fit a tree, with at most so many states a hidden variable."""
    states = None
    if table.family != "gaussian" and max_states is not None:
        states = np.minimum(hidden_states(tree, table, None)[tree.n_observed :], max_states)
    fitted = fit_parameters(
        tree, table, n_states=states, random_state=rng, n_starts=1, budget=_START
    )
    model: TreeModel = fitted.model
    return model


def final_fit(model: Any, table: Table, budget: Budget | None, prior_weight: float) -> Fitted:
    """Fit the model of a search to the end."""
    return fit_parameters(model.tree, table, start=model, budget=budget, prior_weight=prior_weight)


def fit_all(model: TreeModel, table: Table, n_steps: int) -> tuple[Any, float]:
    """Run steps of accelerated EM on the rows of a table; return model and log-likelihood."""
    problem: Any
    if isinstance(model, GaussianTreeModel):
        problem = GaussianProblem(model.tree, table)
    else:
        problem = DiscreteProblem(model.tree, model.n_states, table)
    point, log_likelihood = maximize(problem, problem.point(model), n_steps)
    return problem.model(point), log_likelihood


def maximize(problem: Any, point: FloatArray, n_steps: int) -> tuple[FloatArray, float]:
    """Run steps of accelerated EM from a point; return where it ends, and the log-likelihood."""
    budget = Budget(max_steps=n_steps, short_steps=n_steps)
    best = Driver(problem, budget).maximise([point]).best.point if n_steps else point
    return best, problem.step(best).log_likelihood

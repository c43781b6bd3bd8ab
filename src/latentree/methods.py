"""The registry of methods, and one door to all of them: from a table to a fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from latentree.data import Parts, Table, as_table
from latentree.distances import gather
from latentree.em import Fitted, fit_parameters
from latentree.errors import ModelError
from latentree.search import (
    binary_tree,
    latent_class,
    learn_tree,
    refined,
    regularized_cl_grouping,
)
from latentree.structure import METHODS as BY_DISTANCES

BY_SCORES: dict[str, Callable[..., Fitted]] = {
    "reg_clnj": partial(regularized_cl_grouping, subroutine="nj"),
    "reg_clrg": partial(regularized_cl_grouping, subroutine="rg"),
    "lcm": latent_class,
    "bin": binary_tree,
    "refined": refined,
}
"""Learners that score models, by the names of their methods."""

METHODS = (*BY_DISTANCES, *BY_SCORES)
"""Names of all methods."""


def learn_model(
    X: Any,
    method: str = "clrg",
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    **options: Any,
) -> Fitted:
    """Learn a tree by the method of that name, and its parameters by maximum likelihood.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    method : str
        One of ``METHODS``.
    family : {"auto", "gaussian", "discrete", "symmetric"}
    weights : array, optional
        How much each row counts.
    **options
        As in :func:`latentree.fit_parameters`, and ``stepwise``; ``n_hidden`` for ``reg_clrg``,
        ``reg_clnj`` and ``refined``, ``n_states`` for ``lcm``; what :func:`refine` takes for
        ``refined``.

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> learned, report = learn_model(model.sample(2_000, 1), "rg")
    >>> learned
    GaussianTreeModel(Tree(8 observed, 2 hidden, 9 edges))
    """
    if method not in METHODS:
        raise ModelError(f"method is {method!r}, but must be one of {', '.join(METHODS)}")
    clock = time.perf_counter()
    data = _data(X, family, weights)
    stepwise, checkpoint = options.pop("stepwise", False), options.pop("checkpoint", None)
    if method in BY_SCORES:
        if stepwise or checkpoint is not None:
            raise ModelError(f"{method} scores many models, so it has no stepwise or checkpoint")
        table = _whole(data)
        fitted = BY_SCORES[method](table, family=table.family, **options)
    else:
        how = "stepwise" if stepwise else "ml"
        tree = learn_tree(data, method)
        fitted = fit_parameters(tree, data, method=how, checkpoint=checkpoint, **options)
    return Fitted(fitted.model, fitted.report.timed(time.perf_counter() - clock))


def _data(X: Any, family: str, weights: ArrayLike | None) -> Table | Parts:
    if isinstance(X, Parts):
        return X if weights is None else X.weighted(weights)
    return as_table(X, family, weights=weights)


def _whole(data: Table | Parts) -> Table:
    """Return data as one table: a small one with the same likelihood where there is one."""
    if isinstance(data, Table):
        return data
    small = gather(data).equivalent_table()
    return data.to_table() if small is None else small

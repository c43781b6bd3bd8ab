"""One door to every learner: from a table to a fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.distances import information_distances
from latentree.em import Budget, FitReport, Fitted, fit_parameters
from latentree.em.fit import condensed
from latentree.errors import ModelError
from latentree.parts import Parts
from latentree.search.binary_tree import binary_tree
from latentree.search.latent_class import latent_class
from latentree.search.refinement import RefineReport, is_quick, refine
from latentree.search.regularized import regularized_cl_grouping
from latentree.statistics import Statistics, gather
from latentree.structure import METHODS as BY_DISTANCES
from latentree.structure import learn_structure, mutual_information_tree
from latentree.table import Table, as_table
from latentree.tree import Tree

STARTS = ("nj", "clnj", "clrg")
"""Methods whose trees are compared to find where a refinement starts."""


def refined(
    X: Any,
    family: str = "auto",
    *,
    start: str | Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    random_state: Any = None,
    **options: Any,
) -> Fitted:
    """Learn a tree from distances and refine it by its likelihood.

    Parameters
    ----------
    X : table
    start : str or sequence of str, optional
        The method whose tree is refined; of several methods the best result is kept. By default
        the trees of ``STARTS`` are fitted and the one with the highest likelihood less half of
        BIC's penalty is refined; the others are its rivals where that takes little time (real
        columns without missing cells).
    family, weights, random_state, **options
        As in :func:`refine`.
    """
    table = as_table(X, family, weights=weights)
    if options.get("score") != "cv":  # which holds out rows
        table = condensed(table)
    if start is None:
        first, *rivals = _starts(table)
        rivals = rivals if is_quick(table) else []
        return refine(first, table, rivals=rivals, random_state=random_state, **options)
    names = [start] if isinstance(start, str) else list(start)
    unknown = [name for name in names if name not in BY_DISTANCES]
    if unknown or not names:
        known = ", ".join(BY_DISTANCES)
        raise ModelError(f"start is {start!r}, but a refinement starts from one of {known}")
    if "time_limit" in options:
        options["time_limit"] /= len(names)
    trees = [learn_tree(table, name) for name in names]
    found = [refine(tree, table, random_state=random_state, **options) for tree in trees]
    return max(found, key=_score)


def _score(fitted: Fitted) -> float:
    assert isinstance(fitted.report, RefineReport)
    return fitted.report.score


def _starts(table: Table) -> list[Any]:
    """Return models of trees from distances, the best under half of BIC's penalty first."""
    if table.family == "discrete" and np.unique(table.cardinalities).size > 1:
        names: tuple[str, ...] = ("chow_liu",)  # distances need the same number of states
    else:
        names = STARTS
    budget = Budget(max_steps=100)
    fits = [
        fit_parameters(learn_tree(table, name), table, n_starts=1, budget=budget, random_state=0)
        for name in names
    ]
    return [fit.model for fit in sorted(fits, key=lambda fit: -_promise(fit.report))]


def _promise(report: FitReport) -> float:
    """Return LL less half of BIC's penalty: what is too much is dropped more easily than found."""
    return 0.5 * (report.log_likelihood + report.bic_score)


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


def learn_tree(data: Table | Parts | Statistics, method: str) -> Tree:
    """Learn a tree by one of the methods that need nothing but distances."""
    facts = gather(data) if isinstance(data, Parts) else data
    if method == "chow_liu" and facts.family == "discrete":
        # The best tree without hidden nodes; as a start for others MST(V; D) is used.
        return mutual_information_tree(facts)
    return learn_structure(information_distances(facts), method)

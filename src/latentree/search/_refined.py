"""A tree from distances, refined by its likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree._kernels.compiling import tiny
from latentree.data import Parts, Table, as_table
from latentree.distances import Statistics, gather, information_distances
from latentree.em import Budget, FitReport, Fitted, condensed, fit_parameters
from latentree.errors import ModelError
from latentree.search._refinement import RefineReport, is_quick, refine
from latentree.structure import METHODS as BY_DISTANCES
from latentree.structure import learn_structure, mutual_information_tree
from latentree.tree import Tree

STARTS = ("nj", "clnj", "clrg")
"""Methods whose trees are compared to find where a refinement starts."""

TINY = 10
"""Up to so many real columns, condensed to few rows, kernels run uncompiled."""


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
        with tiny(_is_tiny(table)):
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


def _is_tiny(table: Table) -> bool:
    """Whether a search is over before its kernels are compiled."""
    return is_quick(table) and table.n_columns <= TINY and table.n_rows <= 4 * TINY


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


def learn_tree(data: Table | Parts | Statistics, method: str) -> Tree:
    """Learn a tree by one of the methods that need nothing but distances."""
    facts = gather(data) if isinstance(data, Parts) else data
    if method == "chow_liu" and facts.family == "discrete":
        # The best tree without hidden nodes; as a start for others MST(V; D) is used.
        return mutual_information_tree(facts)
    return learn_structure(information_distances(facts), method)

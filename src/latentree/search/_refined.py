"""A tree from distances, refined by its likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.data import Parts, Table, as_table
from latentree.distances import Statistics, gather, information_distances
from latentree.em import Budget, Fitted, TreeModel, condensed, fit_parameters
from latentree.errors import ModelError
from latentree.search._refinement import INTERRUPTED, RefineReport, refine
from latentree.structure import METHODS as BY_DISTANCES
from latentree.structure import learn_structure, mutual_information_tree
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
        The method whose tree is refined. Of several the result is kept that has the highest score
        less log m for every inner node (with ``caution=0`` the highest score). By default the trees
        of ``STARTS`` are compared by the extended BIC, which is the same for the score "bic"; the
        best is refined, the best two where that takes little time, on real columns without missing
        cells.
    family, weights, random_state, **options
        As in :func:`refine`.
    """
    table = as_table(X, family, weights=weights)
    if options.get("score") != "cv":  # which holds out rows
        table = condensed(table)
    names = (
        _default_starts(table) if start is None else [start] if isinstance(start, str) else start
    )
    unknown = [name for name in names if name not in BY_DISTANCES]
    if unknown or not names:
        known = ", ".join(BY_DISTANCES)
        raise ModelError(f"start is {start!r}, but a refinement starts from one of {known}")
    trees: list[Any] = [learn_tree(table, name) for name in names]
    if start is None:
        is_quick = table.family == "gaussian" and not table.has_missing
        trees = _best_starts(trees, table)[: 2 if is_quick else 1]
    if "time_limit" in options:
        options["time_limit"] /= len(trees)
    found: list[Fitted] = []
    for tree in trees:
        found.append(refine(tree, table, random_state=random_state, **options))
        if INTERRUPTED in found[-1].report.notes:
            break
    is_extended = options.get("caution", 1.0) > 0 and options.get("score") != "ebic"
    return max(found, key=lambda fit: _score(fit) - is_extended * _structure_cost(fit.model.tree))


def _default_starts(table: Table) -> Sequence[str]:
    """Return methods by name; distances need the same number of states for all variables."""
    is_uneven = table.family == "discrete" and np.unique(table.cardinalities).size > 1
    return ("chow_liu",) if is_uneven else STARTS


def _best_starts(trees: Sequence[Tree], table: Table) -> list[TreeModel]:
    """Return the trees fitted, those of the highest extended BIC first."""
    budget = Budget(max_steps=100)
    fits = [fit_parameters(t, table, n_starts=1, budget=budget, random_state=0) for t in trees]
    fits.sort(key=lambda fit: _structure_cost(fit.model.tree) - fit.report.bic_score)
    return [fit.model for fit in fits]


def _structure_cost(tree: Tree) -> float:
    """Return log m for every inner node, hidden or observed, as in the extended BIC."""
    degrees = np.bincount(tree.edges.ravel(), minlength=1)
    return float((degrees > 1).sum() * np.log(tree.n_observed))


def _score(fitted: Fitted) -> float:
    assert isinstance(fitted.report, RefineReport)
    return fitted.report.score


def learn_tree(data: Table | Parts | Statistics, method: str) -> Tree:
    """Learn a tree by one of the methods that need nothing but distances."""
    facts = gather(data) if isinstance(data, Parts) else data
    if method == "chow_liu" and facts.family == "discrete":
        # The best tree without hidden nodes; as a start for others MST(V; D) is used.
        return mutual_information_tree(facts)
    return learn_structure(information_distances(facts), method)

"""The model without edges, and what keeps others from being worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from latentree.distances import as_sample
from latentree.em import Fitted, fit_parameters
from latentree.models import Model, edge_strengths
from latentree.tree import Tree

_SHARE = 0.2  # of the edges is cut at a time: twenty fits from a hundred edges down to none


def independent(X: Any, family: str = "auto", **fitting: Any) -> Fitted:
    """Fit the model in which all variables are independent, which any other has to beat.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    family : {"auto", "gaussian", "discrete", "symmetric"}
        How to model the columns; "auto" goes by their kinds.
    **fitting
        As in :func:`latentree.fit_parameters`.

    Returns
    -------
    Fitted
        ``model, report``.

    Examples
    --------
    >>> import latentree as lt
    >>> model, report = independent(lt.datasets.load_holzinger().data)
    >>> model.tree
    Tree(9 observed, 0 hidden, 0 edges, 9 components)
    """
    sample = as_sample(X, family)
    tree = Tree(np.full(sample.n_columns, -1), names=sample.names)
    return fit_parameters(tree, sample, **fitting)


def without_losses(fitted: Fitted, alone: Fitted, fit: Callable[[Tree], Fitted]) -> Fitted:
    """Cut what does not pay for its parameters where BIC prefers independence.

    The weakest edges of such a fit are cut, a fifth at a time, and the fit of the highest BIC on
    the way is returned. It has edges: the test of independence has found dependence, so that the
    model without edges is false, however few its parameters.

    Parameters
    ----------
    fitted : Fitted
        What was learned.
    alone : Fitted
        The model without edges.
    fit : callable
        Fits the parameters of a tree.

    Returns
    -------
    Fitted
        ``model, report``; a note says what was done.
    """
    if fitted.report.bic_score >= alone.report.bic_score:
        return fitted
    best = current = fitted
    while (smaller := _without_weakest(current.model)).n_edges:
        current = fit(smaller)
        best = max(best, current, key=lambda one: one.report.bic_score)
    n_cut = fitted.model.tree.n_edges - best.model.tree.n_edges
    if not n_cut:
        return best
    edges = "1 edge was" if n_cut == 1 else f"{n_cut} edges were"
    return noted(
        best,
        f"{edges} cut that did not pay for {'its' if n_cut == 1 else 'their'} parameters by BIC",
    )


def noted(fitted: Fitted, note: str) -> Fitted:
    """Add a note to the report."""
    report = replace(fitted.report, notes=(*fitted.report.notes, note))
    return Fitted(fitted.model, report)


def _without_weakest(model: Model) -> Tree:
    """Cut the weakest edges of a model; hidden nodes with fewer than three neighbors go."""
    tree = model.tree
    below = tree.edges[:, 1]
    order = np.argsort(np.abs(edge_strengths(model)[below]), kind="stable")
    kept = np.sort(below[order[int(np.ceil(_SHARE * below.size)) :]])
    edges = np.column_stack([tree.parent[kept], kept])
    return Tree.from_edges(edges, tree.n_observed, tree.length[kept], tree.names, minimal=True)

"""Searches for trees behind margins: on the correlations of the normal variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from latentree.distances import Sample, Statistics, estimated_correlations, shown_shares
from latentree.em import Budget, Fitted, fit_parameters
from latentree.models import CopulaTreeModel
from latentree.structure import STRONG
from latentree.tree import Tree

SMALLEST = 1e-3
"""Smallest eigenvalue of the correlations that a search sees: pairs alone may give less than 0."""


def as_gaussian(sample: Sample) -> Sample:
    """Return a Gaussian sample with the correlations of the variables behind the columns.

    Parameters
    ----------
    sample : Sample
        Of the family "copula".

    Returns
    -------
    Sample
        Sums alone, of fewer rows: so many whose correlations would be as precise.
    """
    sums = sample.statistics.sums
    values, vectors = np.linalg.eigh(estimated_correlations(sums).r)
    r = (vectors * np.maximum(values, SMALLEST)) @ vectors.T
    r /= np.sqrt(np.outer(np.diag(r), np.diag(r)))
    share = float(shown_shares(sums).mean()) ** 2
    n = max(share * sample.statistics.mean_pair_weight, 4.0)
    summed = Sample(None, Statistics.of_correlations(sample.names, r, n))
    return summed.grouped(sample.components)


def fit_copula_tree(
    learner: Callable[..., Fitted],
    sample: Sample,
    *,
    budget: Budget | None = None,
    marginals: str = "normal",
    simplify: bool = False,
    **options: Any,
) -> Fitted:
    """Learn a tree of the normal variables behind the columns, and fit a copula to it.

    Parameters
    ----------
    learner : callable
        Of this package; it sees a Gaussian sample of the correlations.
    sample : Sample
        Of the family "copula".
    budget : Budget, optional
        When EM stops.
    marginals : str
        As in :func:`latentree.fit_parameters`.
    simplify : bool
        Whether hidden variables that correlate by more than 0.9 become one while that raises BIC.
    **options
        Options of the learner, of which ``random_state`` and ``progress`` are for the fit too.

    Returns
    -------
    Fitted
        ``model, report``.
    """
    found = learner(as_gaussian(sample), budget=budget, **options)
    common = {name: options[name] for name in ("random_state", "progress") if name in options}

    def fitted(tree: Tree) -> Fitted:
        return fit_parameters(tree, sample, marginals=marginals, budget=budget, **common)

    model, report = fitted(found.model.tree)
    if simplify:
        model, report = _simplified(Fitted(model, report), fitted)
    note = "the tree was searched on the correlations of the normal variables behind the columns"
    return Fitted(model, replace(report, notes=(*report.notes, note)))


def _simplified(best: Fitted, fitted: Callable[[Tree], Fitted]) -> Fitted:
    """Contract the shortest edge between hidden variables while that raises BIC.

    Correlations of pairs do not know how well the cells themselves tell two such variables apart.
    """
    while True:
        assert isinstance(best.model, CopulaTreeModel)
        tree = best.model.distance_tree()
        below = tree.edges[:, 1]
        below = below[(below >= tree.n_observed) & (tree.parent[below] >= tree.n_observed)]
        short = below[tree.length[below] < STRONG]
        if not short.size:
            return best
        smaller = fitted(tree.contract_edges(short[[tree.length[short].argmin()]]))
        if smaller.report.bic_score <= best.report.bic_score:
            return best
        best = smaller

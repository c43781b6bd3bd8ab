"""A tree from distances, refined by its likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree._kernels.compiling import tiny
from latentree.distances import Sample, as_sample
from latentree.em import Budget, FitReport, Fitted, fit_parameters
from latentree.errors import ModelError
from latentree.search._refinement import RefineReport, is_quick, refine
from latentree.structure import METHODS as BY_DISTANCES
from latentree.structure import learn_tree

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
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    family : {"auto", "gaussian", "discrete", "symmetric"}
        How to take the columns; "auto" goes by their types.
    start : str or sequence of str, optional
        The method whose tree is refined; of several methods the best result is kept. By default
        the trees of ``STARTS`` are fitted and the one with the highest likelihood less half of
        BIC's penalty is refined; the others are its rivals where that takes little time (real
        columns without missing cells).
    weights : array-like, optional
        How much each row counts.
    random_state : int or Generator, optional
        For random starts.
    **options
        As in :func:`refine`.

    Returns
    -------
    Fitted
        ``model, report``, where the report is a :class:`RefineReport`.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.6, 0.8))
    >>> model, report = refined(truth.sample(1_000, 1), start="nj")
    >>> model.tree.n_hidden
    2
    """
    sample = as_sample(X, family, weights)
    if start is None:
        with tiny(_is_tiny(sample)):
            first, *rivals = _starts(sample)
            rivals = rivals if is_quick(sample) else []
            return refine(first, sample, rivals=rivals, random_state=random_state, **options)
    names = [start] if isinstance(start, str) else list(start)
    unknown = [name for name in names if name not in BY_DISTANCES]
    if unknown or not names:
        known = ", ".join(BY_DISTANCES)
        raise ModelError(f"start is {start!r}, but a refinement starts from one of {known}")
    if "time_limit" in options:
        options["time_limit"] /= len(names)
    trees = [learn_tree(sample, name) for name in names]
    found = [refine(tree, sample, random_state=random_state, **options) for tree in trees]
    return max(found, key=_score)


def _is_tiny(sample: Sample) -> bool:
    """Whether a search is over before its kernels are compiled."""
    return is_quick(sample) and sample.n_columns <= TINY


def _score(fitted: Fitted) -> float:
    assert isinstance(fitted.report, RefineReport)
    return fitted.report.score


def _starts(sample: Sample) -> list[Any]:
    """Return models of trees from distances, the best under half of BIC's penalty first."""
    if sample.family == "discrete" and np.unique(sample.cardinalities).size > 1:
        names: tuple[str, ...] = ("chow_liu",)  # distances need the same number of states
    else:
        names = STARTS
    budget = Budget(max_steps=100)
    fits = [
        fit_parameters(learn_tree(sample, name), sample, n_starts=1, budget=budget, random_state=0)
        for name in names
    ]
    return [fit.model for fit in sorted(fits, key=lambda fit: -_half_penalized(fit.report))]


def _half_penalized(report: FitReport) -> float:
    """Return LL − ¼·κ·log n, half of BIC's penalty, which favors larger starts.

    Refinement drops a hidden variable that is not worth its parameters more easily than it finds
    one that is missing.
    """
    return 0.5 * (report.log_likelihood + report.bic_score)

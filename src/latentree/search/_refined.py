"""A tree from distances, refined by its likelihood."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.distances import Sample, as_sample
from latentree.em import INTERRUPTED, Budget, Fitted, held_out_fits, run_rivals
from latentree.errors import ModelError
from latentree.models import Model, with_fitted_lengths
from latentree.search._refinement import RefineReport, first_fits, refine
from latentree.search._refinement._discrete_engine import announced_search
from latentree.structure import METHODS as BY_DISTANCES
from latentree.structure import learn_structure, learn_tree
from latentree.tree import Tree

STARTS = ("clnj", "clrg", "nj")
"""Methods whose trees are compared to find where a refinement starts."""


def refined(
    X: Any,
    family: str = "auto",
    *,
    start: str | Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    random_state: Any = None,
    for_prediction: bool = True,
    **options: Any,
) -> Fitted:
    """Learn a tree from distances and refine it by its likelihood.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed"}
        How to model the columns; "auto" goes by their kinds.
    start : str or sequence of str, optional
        The method whose tree is refined. Of several the result is kept that has the highest score
        less log m for every inner node (with ``caution=0`` the highest score). By default the
        trees of ``STARTS`` are compared by the extended BIC, which is the same for the criterion
        "bic"; the best is refined, the best two where that takes little time, on real columns
        without missing cells. Columns of three or more states each have two kinds of distances,
        by the determinants of joint tables and by canonical correlations, and so twice the trees.
    weights : array-like, optional
        How much each row counts.
    random_state : int or Generator, optional
        For random starts.
    for_prediction : bool
        With the criterion "cv": whether held-out rows decide on states, smoothing and stopping,
        too, once the tree is found (discrete and mixed columns).
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
    with announced_search(sample):
        return _best_refined(sample, start, random_state, for_prediction, options)


def _best_refined(
    sample: Sample,
    start: str | Sequence[str] | None,
    random_state: Any,
    for_prediction: bool,
    options: dict[str, Any],
) -> Fitted:
    """Refine one start after the other, and keep the best."""
    clock = time.monotonic()
    starts: Sequence[Tree | Model]
    if start is None:
        starts = _best_starts(sample, options.get("max_states"))
    else:
        starts = [learn_tree(sample, name) for name in _names(start)]
    if "time_limit" in options:
        options["time_limit"] /= len(starts)
    found: list[Fitted] = []
    for each in starts:
        found.append(refine(each, sample, random_state=random_state, **options))
        if INTERRUPTED in found[-1].report.notes:
            break
    is_extended = options.get("caution", 1.0) > 0 and options.get("criterion") != "ebic"
    best = max(found, key=lambda fit: _rank(_score(fit), is_extended * _inner_cost(fit.model.tree)))
    has_states = sample.family in ("discrete", "mixed")
    if for_prediction and options.get("criterion") == "cv" and has_states:
        left = options.get("time_limit", math.inf) * len(starts) - (time.monotonic() - clock)
        return _predicting(best, sample, options, max(left, 0.0), random_state)
    return best


def _predicting(
    found: Fitted, sample: Sample, options: Mapping[str, Any], seconds: float, random_state: Any
) -> Fitted:
    """Let held-out rows decide on states, smoothing and stopping as well, on the tree found.

    One fit goes on from the model found, the other begins with copies of observed variables; the
    one is kept that predicts held-out rows better. Neither is worse there than the model found,
    once it has forgotten these rows.
    """
    if INTERRUPTED in found.report.notes or not found.model.tree.n_hidden:
        return found
    seed = int(np.random.default_rng(random_state).integers(2**31))
    fits = [
        held_out_fits(
            found.model.tree, sample, most_states=options.get("max_states"), start=start,
            budget=Budget(time_limit=seconds), rng=np.random.default_rng(seed),
        )
        for start in (found.model, None)
    ]  # fmt: skip
    model, report = run_rivals(fits)
    notes = (*found.report.notes, *report.notes)
    if not report.converged:  # the model found has learned from all rows, the other one has not
        return Fitted(found.model, replace(found.report, converged=False, notes=notes))
    return Fitted(
        with_fitted_lengths(model),
        replace(
            found.report, log_likelihood=report.log_likelihood, n_parameters=report.n_parameters,
            n_steps=found.report.n_steps + report.n_steps, notes=notes,
            held_out_log_likelihoods=report.held_out_log_likelihoods,
        ),
    )  # fmt: skip


def _names(start: str | Sequence[str]) -> Sequence[str]:
    """Return the methods that are named, all of them known."""
    names = [start] if isinstance(start, str) else list(start)
    if not names or any(name not in BY_DISTANCES for name in names):
        known = ", ".join(BY_DISTANCES)
        raise ModelError(f"start is {start!r}, but a refinement starts from one of {known}")
    return names


def _best_starts(sample: Sample, max_states: int | None) -> list[Model]:
    """Return the best tree by distances, fitted; the best two where refining takes little time.

    The first tree decides on the number of hidden states: that of canonical correlations where
    there are two kinds of distances, since determinants are poor where hidden variables have fewer
    states than the columns.
    """
    trees = [learn_tree(sample, name) for name in STARTS]
    if sample.other_distances is not None:
        trees = [*(learn_structure(sample.other_distances, name) for name in STARTS), *trees]
    fits = first_fits(trees, sample, max_states, 0)
    fits.sort(key=lambda fit: -_rank(fit.report.bic_score, _inner_cost(fit.model.tree)))
    return [fit.model for fit in fits[: 2 if sample.is_summed else 1]]


def _rank(score: float, cost: float) -> float:
    """Return what ranks a fit; those of the same tree are equal, although rounding differs."""
    return round(score - cost, 6)


def _inner_cost(tree: Tree) -> float:
    """Return log m for every inner node, hidden or observed, as in the extended BIC."""
    return float((tree.degrees > 1).sum() * np.log(tree.n_observed))


def _score(fitted: Fitted) -> float:
    assert isinstance(fitted.report, RefineReport)
    return fitted.report.score

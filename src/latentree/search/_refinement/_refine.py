"""Refinement of a tree by its likelihood: the function, and the report of what it did."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from latentree._kernels.compiling import tiny
from latentree.data import Table, cut_table
from latentree.distances import Sample, as_sample
from latentree.em import Budget, FitReport, Fitted, as_leaves, matched
from latentree.errors import ModelError
from latentree.models import DiscreteTreeModel, MixedTreeModel, Model, with_fitted_lengths
from latentree.search._refinement._discrete_engine import StateEngine, announced_search
from latentree.search._refinement._draft import Draft, StateDraft
from latentree.search._refinement._full_fit import final_fit, first_fits
from latentree.search._refinement._gaussian_moves import GaussianEngine
from latentree.search._refinement._options import DEFAULTS, RefineOptions
from latentree.search._refinement._search import (
    AcceptedMove,
    Engine,
    Penalty,
    Search,
    SearchResult,
    bic_cost,
)
from latentree.tree import Tree
from latentree.typing import Progress

Criterion = str | float

MULTIPLES = (0.3, 0.5, 1.0)
"""Of BIC's penalty, tried by cross-validation."""

FOLD = 4
"""One row in so many is held out for it."""


@dataclass(frozen=True, repr=False)
class RefineReport(FitReport):
    """Report of a refinement: that of the final fit, and the changes that were accepted.

    Parameters
    ----------
    method, log_likelihood, n_parameters, n_samples, converged, log_likelihoods, n_steps
        As in :class:`latentree.em.FitReport`.
    starts, seconds, notes
        As there.
    score : float
        Log-likelihood less the penalty that was asked for.
    moves : tuple of AcceptedMove
        Changes in the order in which they were accepted, with their ``kind``, ``nodes`` and
        ``gain``.

    Examples
    --------
    >>> import latentree as lt
    >>> X = lt.simulate.random_gaussian_model(lt.simulate.latent_class(5), 0).sample(500, 1)
    >>> start = lt.structure.chow_liu(lt.information_distances(X))
    >>> model, report = lt.search.refine(start, X)
    >>> report.score >= lt.fit_parameters(start, X).report.bic_score
    True
    """

    score: float = -math.inf
    moves: tuple[AcceptedMove, ...] = ()

    def gains(self) -> dict[str, tuple[int, float]]:
        """Return how many changes of each kind were accepted, and what they gained together.

        Returns
        -------
        dict
            For every kind of change its count and the sum of its gains.
        """
        out: dict[str, tuple[int, float]] = {}
        for move in self.moves:
            count, gain = out.get(move.kind, (0, 0.0))
            out[move.kind] = count + 1, gain + move.gain
        return out


def refine(
    start: Tree | Model,
    X: Any,
    family: str = "auto",
    *,
    criterion: Criterion = "bic",
    max_states: int | None = None,
    n_hidden: int | None = None,
    caution: float = DEFAULTS.caution,
    time_limit: float = math.inf,
    prior_weight: float = 0.0,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    options: RefineOptions = DEFAULTS,
) -> Fitted:
    """Improve a tree by local changes that raise its penalized likelihood.

    Subtrees are hung at other nodes or into other edges, edges are contracted, hidden siblings
    merged, observed variables made inner nodes and leaves again, components cut and joined, and
    hidden variables get a state more or less, as long as log-likelihood − penalty rises. The
    search runs with a part of the penalty first and then with all of it.

    Parameters
    ----------
    start : Tree or model
        Where the search starts; it never ends below it.
    X : table
    family : {"auto", "gaussian", "discrete"}
    criterion : {"bic", "ebic", "aic", "cv"} or float
        What is maximized. With κ parameters, n rows and m variables the penalty is ½·log n·κ for
        "bic", κ for "aic", and for "ebic" ½·log n·κ and log m for every inner node, hidden or
        observed: it asks more of added structure the more places there are for it. A number
        multiplies BIC's penalty; "cv" chooses it among 0.3, 0.5 and 1 by the likelihood of a
        quarter of the rows, held out.
    max_states : int, optional
        Largest number of states of a hidden variable (discrete families). By default no limit.
    n_hidden : int, optional
        How many hidden variables there must be.
    caution : float
        The best of P places for a subtree beats the old one by chance, by t nats where
        P·Pr(½·χ² > t) = 1. A subtree is moved if the log-likelihood rises by ``caution`` times
        that level and pays for added parameters; parameters that a move saves do not count. More
        keeps more of the start; with 0 the criterion alone decides.
    time_limit : float
        Seconds.
    prior_weight : float
        Weight of a uniform Dirichlet prior on the tables of the final fit, as a number of rows;
        a few rows make a discrete model predict better. The search itself uses none.
    weights, budget, random_state
        As in :func:`latentree.fit_parameters`.
    progress : callable, optional
        Called with the number of changes so far and the score.
    options : RefineOptions
        Numbers that steer the search, for experiments; ``caution`` takes the place of theirs.

    Returns
    -------
    Fitted
        ``model, report``; the report is a :class:`RefineReport`. An interrupt (Ctrl-C) ends the
        search with the best model so far.

    References
    ----------
    Foygel and Drton, Extended Bayesian information criteria for Gaussian graphical models,
    NeurIPS 2010, for the idea behind "ebic".

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> X = truth.sample(2_000, 1)
    >>> poor = lt.structure.chow_liu(lt.information_distances(X))
    >>> model, report = refine(poor, X)
    >>> lt.metrics.robinson_foulds(model.tree, truth.tree)
    0
    """
    clock = time.monotonic()
    if not 0.0 <= caution < math.inf:
        raise ModelError(f"caution is {caution}, but must be a number from 0 on")
    options = replace(options, caution=caution)
    tree = start if isinstance(start, Tree) else start.tree
    sample = matched(tree, as_sample(X, family, weights))
    if sample.family == "copula":
        raise ModelError(
            "refine changes trees of real columns, or with states, not of Gaussian variables "
            "behind columns: use LatentTree(method='refined')"
        )
    if sample.family == "mixed" and isinstance(start, Tree):
        start = as_leaves(start, sample.cardinalities == 0)
    rng = np.random.default_rng(random_state)
    notes: tuple[str, ...] = ()
    if criterion == "cv":
        settings = {
            "max_states": max_states, "n_hidden": n_hidden, "caution": caution,
            "progress": progress, "options": options,
        }  # fmt: skip
        table = sample.parts.to_table()
        criterion, note = _cross_validated(start, table, rng, time_limit / 2, settings)
        notes = (note,)
    penalty = penalty_of(criterion, sample, n_hidden)
    model = start
    if isinstance(start, Tree):
        model = first_fits([start], sample, max_states, rng)[0].model
    engine = make_engine(sample, max_states, int(rng.integers(2**31)), options)
    left = clock + time_limit - time.monotonic()
    with announced_search(sample):
        found = _searched(engine, engine.draft(model), penalty, options, left, progress)
    if found.note:
        notes += (found.note,)
    final = final_fit(engine.model(found.best.draft), sample, budget, prior_weight)
    report = _report(final, found, penalty, notes, time.monotonic() - clock)
    return Fitted(with_fitted_lengths(final.model), report)


def grow_states(
    model: DiscreteTreeModel | MixedTreeModel,
    sample: Sample,
    penalty: Penalty,
    *,
    max_states: int | None = None,
    prior_weight: float = 0.0,
    time_limit: float = math.inf,
    random_state: Any = None,
) -> tuple[DiscreteTreeModel | MixedTreeModel, float, str]:
    """Let the hidden variables of a model have the numbers of states that score best.

    Parameters
    ----------
    model : DiscreteTreeModel or MixedTreeModel
        Its tree stays.
    sample : Sample
    penalty : Penalty
    max_states : int, optional
        Most states of a hidden variable.
    prior_weight : float
        Weight of the prior, in rows; 0 stands for the usual one.
    time_limit : float
        Seconds.
    random_state : int or Generator, optional
        For the halves of a state that is split.

    Returns
    -------
    model : DiscreteTreeModel or MixedTreeModel
        Its parameters are fitted a little.
    score : float
    note : str
        Why it ended early, if it did.
    """
    seed = int(np.random.default_rng(random_state).integers(2**31))
    engine = StateEngine(sample, max_states, seed, prior_weight=prior_weight)
    engine.for_states_alone()
    found = _searched(engine, engine.draft(model), penalty, DEFAULTS, time_limit)
    draft = found.best.draft
    assert isinstance(draft, StateDraft)
    return engine.model(draft), found.best.score, found.note


def _searched(
    engine: Engine,
    draft: Draft,
    penalty: Penalty,
    options: RefineOptions,
    time_limit: float,
    progress: Progress | None = None,
) -> SearchResult:
    # Thousands of small products: waking threads for each takes longer than all of them, and the
    # jobs of a round use the processors already.
    way = tiny(True) if engine.is_tiny else nullcontext()
    with threadpool_limits(1, "blas"), way:
        search = Search(engine, options, time.monotonic() + time_limit, progress)
        return search.run(draft, penalty)


def _cross_validated(
    start: Tree | Model,
    table: Table,
    rng: np.random.Generator,
    time_limit: float,
    settings: dict[str, Any],
) -> tuple[float, str]:
    """Choose a multiple of BIC's penalty by the likelihood of rows that were held out."""
    if table.n_rows < 2 * FOLD:
        raise ModelError(f"criterion 'cv' needs at least {2 * FOLD} rows, got {table.n_rows}")
    order = rng.permutation(table.n_rows)
    cut = table.n_rows // FOLD
    held_out, kept = (table.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    sample = Sample(cut_table(kept))
    seed = int(rng.integers(2**31))
    scores = []
    for multiple in MULTIPLES:
        model, _ = refine(
            start, sample, criterion=multiple, random_state=seed,
            time_limit=time_limit / len(MULTIPLES), **settings,
        )  # fmt: skip
        scores.append(model.total_log_likelihood(held_out) / held_out.total_weight)
    best = int(np.argmax(scores))
    tried = ", ".join(f"{m:g}: {s:.4f}" for m, s in zip(MULTIPLES, scores, strict=True))
    chosen = f"cross-validation chose {MULTIPLES[best]:g} × BIC's penalty"
    return MULTIPLES[best], f"{chosen} (held-out log-likelihood a row: {tried})"


def make_engine(
    sample: Sample, max_states: int | None, seed: int, options: RefineOptions = DEFAULTS
) -> Engine:
    """Return what knows the changes of a family."""
    if sample.family == "gaussian":
        if max_states is not None:
            raise ModelError("max_states is for discrete data: Gaussian variables have no states")
        return GaussianEngine(sample, options)
    if sample.family == "symmetric":
        raise ModelError(
            "symmetric tables cannot be refined: hidden variables would lose their states' "
            "symmetry. Use family='discrete'"
        )
    if max_states is not None and max_states < 2:
        raise ModelError(f"max_states is {max_states}, but a variable has at least two states")
    return StateEngine(sample, max_states, seed, options)


def penalty_of(criterion: Criterion, sample: Sample, n_hidden: int | None = None) -> Penalty:
    """Return the penalty of a criterion by name, or the multiple of BIC's."""
    bic = bic_cost(sample.total_weight)
    if isinstance(criterion, int | float) and not isinstance(criterion, bool):
        if criterion >= 0:
            return Penalty(criterion * bic, n_hidden=n_hidden)
    elif criterion in ("bic", "aic", "ebic"):
        per_node = math.log(sample.n_columns) if criterion == "ebic" else 0.0
        return Penalty(1.0 if criterion == "aic" else bic, per_node, n_hidden)
    raise ModelError(
        f"criterion is {criterion!r}, but must be one of bic, aic, ebic, cv, or a multiple of the "
        "BIC's penalty"
    )


def _report(
    final: Fitted, found: SearchResult, penalty: Penalty, notes: Sequence[str], seconds: float
) -> RefineReport:
    """Return the report of the final fit with what the search did."""
    old = {field.name: getattr(final.report, field.name) for field in fields(FitReport)}
    new = {"method": "refined", "seconds": seconds, "notes": (*final.report.notes, *notes)}
    return RefineReport(
        **old | new,
        score=final.report.log_likelihood - penalty(found.best.draft),
        moves=found.moves,
    )

"""Refinement of a tree by its likelihood: the door to it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from latentree.em import Budget, FitReport, Fitted, fit_parameters
from latentree.em.driver import Progress
from latentree.em.fit import TreeModel, condensed, hidden_states, table_of
from latentree.errors import ModelError
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from latentree.search.refinement.discrete import DiscreteEngine
from latentree.search.refinement.draft import Draft
from latentree.search.refinement.gaussian import GaussianEngine
from latentree.search.refinement.proposal import Engine, Penalty, bic_cost
from latentree.search.refinement.rounds import Move, Rounds, Standing
from latentree.table import Table
from latentree.tree import Tree
from latentree.tree.build import IntArray

STAGE_SHARE = 0.6
"""Share of the time left that a stage may take if another follows."""

Score = str | float

MIN_GAIN = 2.0
"""What a change must gain by default: chance alone gains about as much."""

EVIDENCE = 1.0
"""What the likelihood itself must show, in parameters' worth, before a subtree is moved."""

MULTIPLES = (0.3, 0.5, 1.0)
"""Of BIC's penalty, tried by cross-validation."""

FOLD = 4
"""One row in so many is held out for it."""


@dataclass(frozen=True)
class RefineReport(FitReport):
    """What a refinement did: a report of the final fit, and the changes that were accepted.

    Attributes
    ----------
    score : float
        Log-likelihood less the penalty that was asked for.
    moves : tuple of Move
        Changes in the order in which they were accepted, with their nodes and gains.
    """

    score: float = -math.inf
    moves: tuple[Move, ...] = ()

    def gains(self) -> dict[str, tuple[int, float]]:
        """How many changes of each kind were accepted, and what they gained together."""
        out: dict[str, tuple[int, float]] = {}
        for move in self.moves:
            count, gain = out.get(move.kind, (0, 0.0))
            out[move.kind] = count + 1, gain + move.gain
        return out


def refine(
    start: Tree | TreeModel,
    X: Any,
    family: str = "auto",
    *,
    score: Score = "bic",
    max_states: int | None = None,
    n_hidden: int | None = None,
    min_gain: float = MIN_GAIN,
    evidence: float = EVIDENCE,
    time_limit: float = math.inf,
    prior_weight: float = 0.0,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Fitted:
    """Improve a tree by local changes, judged by a penalised likelihood.

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
    score : {"bic", "ebic", "aic", "cv"} or float
        What is maximised. With κ parameters, n rows and m variables the penalty is ½·log n·κ for
        "bic", κ for "aic", and for "ebic" ½·log n·κ and log m for every inner node, hidden or
        observed: it asks more of added structure the more places there are for it. A number
        multiplies BIC's penalty; "cv" chooses it among 0.3, 0.5 and 1 by the likelihood of a
        quarter of the rows, held out.
    max_states : int, optional
        Most states of a hidden variable (discrete families); 2 keeps them binary. By default free.
    n_hidden : int, optional
        How many hidden variables there must be.
    min_gain : float
        Least rise of the score that a change must bring. A subtree has dozens of places to go, and
        the best of them gains a nat or two by chance alone; 0 follows the score to the last.
    evidence : float
        How much the log-likelihood itself must rise, as a multiple of ½·log n, before a subtree is
        moved or an observed variable takes the place of a hidden one, whatever parameters that
        saves (twice as much before a weak edge is put between two other nodes). More keeps more of
        the start; with 0 the score alone decides, and drops hidden variables that are weak.
        Gaussian searches without missing cells end with a second one that the score alone leads:
        its changes are made if together they are evident, however little each gains.
    time_limit : float
        Seconds.
    prior_weight : float
        Weight of a uniform Dirichlet prior on the tables of the final fit, as a number of rows;
        a few rows make a discrete model predict better. The search itself uses none.
    weights, budget, random_state
        As in :func:`latentree.fit_parameters`.
    progress : callable, optional
        Called with the number of changes so far and the score.

    Returns
    -------
    Fitted
        ``model, report``; the report is a :class:`RefineReport`. An interrupt (Ctrl-C) ends the
        search with the best model so far.

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
    if not min_gain >= 0:
        raise ModelError(f"min_gain is {min_gain}, but the score must not fall: use 0 or more")
    if not evidence >= 0:
        raise ModelError(f"evidence is {evidence}, but must be 0 or more")
    tree = start if isinstance(start, Tree) else start.tree
    table = table_of(tree, X, family, weights)
    rng = np.random.default_rng(random_state)
    notes: tuple[str, ...] = ()
    if score == "cv":
        options = {
            "max_states": max_states, "n_hidden": n_hidden, "min_gain": min_gain,
            "evidence": evidence, "progress": progress,
        }  # fmt: skip
        score, note = _cross_validated(start, table, rng, time_limit / 2, options)
        notes = (note,)
    table = condensed(table)
    penalty = penalty_of(score, table, n_hidden)
    if isinstance(start, Tree):
        states = _first_states(tree, table, max_states)
        start = fit_parameters(
            tree, table, n_states=states, random_state=rng, n_starts=1, budget=Budget(max_steps=100)
        ).model
    engine = make_engine(table, max_states, int(rng.integers(2**31)))
    search = _Search(penalty, Rounds(engine, clock + time_limit, progress, min_gain, evidence))
    # Thousands of small products: waking threads for each takes longer than all of them, and the
    # jobs of a round use the processors already.
    with threadpool_limits(1, "blas"):
        best, note = search.run(engine.draft(start))
    model = engine.model(best.draft)
    final = fit_parameters(model.tree, table, start=model, budget=budget, prior_weight=prior_weight)
    if note:
        notes += (note,)
    report = search.report(final, penalty(best.draft), notes, time.monotonic() - clock)
    return Fitted(_measured(final.model), report)


def _measured(model: Any) -> Any:
    """Return a model whose tree has information distances for lengths, where these exist."""
    try:
        tree = model.distance_tree()
    except ModelError:  # numbers of states differ, or an edge carries nothing
        return model
    if isinstance(model, GaussianTreeModel):
        return GaussianTreeModel(tree, model.correlations, model.means, model.scales)
    return DiscreteTreeModel.from_theta(tree, model.n_states, model.theta, model.schema.labels)


def _cross_validated(
    start: Tree | TreeModel,
    table: Table,
    rng: np.random.Generator,
    time_limit: float,
    options: dict[str, Any],
) -> tuple[float, str]:
    """Choose a multiple of BIC's penalty by the likelihood of rows that were held out."""
    if table.n_rows < 2 * FOLD:
        raise ModelError(f"score 'cv' needs at least {2 * FOLD} rows, got {table.n_rows}")
    order = rng.permutation(table.n_rows)
    cut = table.n_rows // FOLD
    held_out, kept = (_rows(table, np.sort(part)) for part in (order[:cut], order[cut:]))
    seed = int(rng.integers(2**31))
    scores = []
    for multiple in MULTIPLES:
        model, _ = refine(
            start, kept, table.family, score=multiple, random_state=seed,
            time_limit=time_limit / len(MULTIPLES), **options,
        )  # fmt: skip
        scores.append(model.total_log_likelihood(held_out) / held_out.total_weight)
    best = int(np.argmax(scores))
    tried = ", ".join(f"{m:g}: {s:.4f}" for m, s in zip(MULTIPLES, scores, strict=True))
    chosen = f"cross-validation chose {MULTIPLES[best]:g} × BIC's penalty"
    return MULTIPLES[best], f"{chosen} (held-out log-likelihood a row: {tried})"


def _rows(table: Table, rows: IntArray) -> Table:
    weights = None if table.weights is None else table.weights[rows]
    return Table(table.values[rows], table.schema, weights)


def make_engine(table: Table, max_states: int | None, seed: int) -> Engine:
    """Return what knows the changes of a family."""
    if table.family == "gaussian":
        if max_states is not None:
            raise ModelError("max_states is for discrete data: Gaussian variables have no states")
        return GaussianEngine(table)
    if table.family == "symmetric":
        raise ModelError(
            "symmetric tables cannot be refined: hidden variables would lose their states' "
            "symmetry. Use family='discrete'"
        )
    if max_states is not None and max_states < 2:
        raise ModelError(f"max_states is {max_states}, but a variable has at least two states")
    return DiscreteEngine(table, max_states, seed)


def penalty_of(score: Score, table: Table, n_hidden: int | None = None) -> Penalty:
    """Return the penalty of a score by name, or the multiple of BIC's."""
    bic = bic_cost(table.total_weight)
    if isinstance(score, int | float) and not isinstance(score, bool) and score >= 0:
        return Penalty(score * bic, n_hidden=n_hidden)
    named = {
        "bic": Penalty(bic, n_hidden=n_hidden),
        "aic": Penalty(1.0, n_hidden=n_hidden),
        "ebic": Penalty(bic, math.log(table.n_columns), n_hidden),
    }
    if score not in named:
        raise ModelError(
            f"score is {score!r}, but must be one of {', '.join(named)}, cv, or a multiple of the "
            "BIC's penalty"
        )
    return named[str(score)]


def _first_states(tree: Tree, table: Table, max_states: int | None) -> Any:
    if table.family == "gaussian" or max_states is None:
        return None
    return np.minimum(hidden_states(tree, table, None)[tree.n_observed :], max_states)


class _Search:
    """Stages with more and more of the penalty, and where it is cheap a second look."""

    def __init__(self, penalty: Penalty, rounds: Rounds) -> None:
        self.penalty = penalty
        self.deadline = rounds.deadline
        self.rounds = rounds
        self.moves: tuple[Move, ...] = ()

    def run(self, draft: Draft) -> tuple[Standing, str]:
        """Return the best that was found, and why it ended early if it did."""
        self.best = self.rounds.standing(draft, self.penalty)
        self.is_accepted: Callable[[Standing], bool] = self._is_better
        try:
            self._run_stages()
            if 0.0 < self.rounds.evidence < math.inf and self.rounds.engine.looks_twice:
                self._look_again()
        except KeyboardInterrupt:
            if self.rounds.last is not None:
                self._keep(self.rounds.last)
            return self.best, "interrupted"
        return self.best, "time limit reached" if time.monotonic() > self.deadline else ""

    def _run_stages(self) -> None:
        here, rounds, stages = self.best, self.rounds, self.rounds.engine.stages
        for stage, share in enumerate(stages, 1):
            left = self.deadline - time.monotonic()
            is_last = stage == len(stages)
            rounds.deadline = time.monotonic() + (1.0 if is_last else STAGE_SHARE) * left
            here = rounds.run(here.draft, self.penalty.scaled(share), is_last)
            self._keep(here)

    def _look_again(self) -> None:
        """Let the score alone decide; keep what it finds only if that is evident as a whole.

        Many changes that gain a little each may lead to a much better tree.
        """
        careful, engine = self.rounds, self.rounds.engine
        # Moving one subtree takes half of this.
        least = max(careful.min_gain, 2.0 * careful.evidence * bic_cost(engine.n_samples))
        self.rounds = Rounds(engine, self.deadline, careful.watch, moves=list(self.moves))
        self.is_accepted = partial(self._is_evident, least)
        self._run_stages()

    def _is_better(self, found: Standing) -> bool:
        return found.score > self.best.score

    def _is_evident(self, least: float, found: Standing) -> bool:
        """Tell whether both likelihood and score rise enough, and "ebic" agrees.

        Every split of the variables that becomes another must bring a nat: in a long chain few
        changes may move nearly all of them, and there are as many ways to do so.
        """
        least = max(least, len(found.draft.splits() ^ self.best.draft.splits()))
        gain = found.score - self.best.score
        rise = found.log_likelihood - self.best.log_likelihood
        more = found.draft.n_inner - self.best.draft.n_inner
        return min(gain, rise) > least and gain > math.log(found.draft.n_observed) * more

    def _keep(self, found: Standing) -> None:
        """Keep what was found, with the changes that led to it, if it is accepted."""
        rescored = found.rescored(self.penalty)
        if self.is_accepted(rescored):
            self.best, self.moves = rescored, tuple(self.rounds.moves)

    def report(
        self, final: Fitted, cost: float, notes: tuple[str, ...], seconds: float
    ) -> RefineReport:
        """Return the report of the final fit with what the search did."""
        old = {field.name: getattr(final.report, field.name) for field in fields(FitReport)}
        new = {"method": "refined", "seconds": seconds, "notes": (*final.report.notes, *notes)}
        return RefineReport(
            **old | new,
            score=final.report.log_likelihood - cost,
            moves=self.moves,
        )

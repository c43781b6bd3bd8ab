"""Refinement of a tree by its likelihood: the door to it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from latentree.data import Table
from latentree.distances import Sample, as_sample
from latentree.em import (
    Budget,
    FitReport,
    Fitted,
    TreeModel,
    fit_parameters,
    hidden_states,
    matched,
)
from latentree.errors import ModelError
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from latentree.search._refinement._discrete import DiscreteEngine
from latentree.search._refinement._draft import Draft
from latentree.search._refinement._gaussian import GaussianEngine
from latentree.search._refinement._proposal import Engine, Penalty, bic_cost
from latentree.search._refinement._rounds import Move, Rounds, Standing, Watch
from latentree.tree import Tree
from latentree.typing import Progress

STAGE_SHARE = 0.6
"""Share of the time left that a stage may take if another follows."""

Criterion = str | float

MIN_GAIN = 2.0
"""What a change must gain by default: chance alone gains about as much."""

EVIDENCE = 1.0
"""What the likelihood itself must show, in parameters' worth, before a subtree is moved."""

NEGLIGIBLE = 0.5
"""Log-likelihood that one tree may have less than another to which it is preferred."""

LIKELIHOOD_SHARE = 0.2
"""Of a nat for every split, what the likelihood must show for a tree that the score led to."""

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
    rivals: Sequence[Tree | TreeModel] = (),
    criterion: Criterion = "bic",
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
    rivals : sequence of trees or models
        Other starts, refined as well. What comes of one is taken if its score is higher by more
        than ``min_gain``, ``evidence`` nats for every split of the variables that it has otherwise
        and log m for every inner node more, and its likelihood is not lower. Then the search goes
        on from all with neither; where that leads to is taken if its score is higher by
        ``evidence``·log n too and its likelihood by a fifth of a nat for every split. Where it
        leads to the same tree from two starts, splits and log n are not asked of the score. With
        ``evidence=0`` the highest score is taken.
    criterion : {"bic", "ebic", "aic", "cv"} or float
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
    tree, *others = (each if isinstance(each, Tree) else each.tree for each in (start, *rivals))
    if any(other.names[: other.n_observed] != tree.names[: tree.n_observed] for other in others):
        raise ModelError("rivals must have the variables of the start, in the same order")
    sample = matched(tree, as_sample(X, family, weights))
    rng = np.random.default_rng(random_state)
    notes: tuple[str, ...] = ()
    if criterion == "cv":
        options = {
            "max_states": max_states, "n_hidden": n_hidden, "min_gain": min_gain,
            "evidence": evidence, "progress": progress,
        }  # fmt: skip
        criterion, note = _cross_validated(
            start, sample.parts.to_table(), rng, time_limit / 2, options
        )
        notes = (note,)
    penalty = penalty_of(criterion, sample, n_hidden)
    models = [
        _first_fit(each, sample, max_states, rng) if isinstance(each, Tree) else each
        for each in (start, *rivals)
    ]
    engine = make_engine(sample, max_states, int(rng.integers(2**31)))
    searches = _Searches(engine, penalty, clock + time_limit, progress, min_gain, evidence)
    # Thousands of small products: waking threads for each takes longer than all of them, and the
    # jobs of a round use the processors already.
    with threadpool_limits(1, "blas"):
        found, note = searches.run([engine.draft(model) for model in models])
    if note:
        notes += (note,)
    model = engine.model(found.best.draft)
    final = fit_parameters(
        model.tree, sample, start=model, budget=budget, prior_weight=prior_weight
    )
    report = _report(final, found, penalty, notes, time.monotonic() - clock)
    return Fitted(_measured(final.model), report)


def is_quick(sample: Sample) -> bool:
    """Tell whether searches take so little time that several of them pay.

    Without missing cells real columns are as good as their covariances, however many rows.
    """
    return sample.family == "gaussian" and not sample.has_missing


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
        raise ModelError(f"criterion 'cv' needs at least {2 * FOLD} rows, got {table.n_rows}")
    order = rng.permutation(table.n_rows)
    cut = table.n_rows // FOLD
    held_out, kept = (table.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    seed = int(rng.integers(2**31))
    scores = []
    for multiple in MULTIPLES:
        model, _ = refine(
            start, kept, table.family, criterion=multiple, random_state=seed,
            time_limit=time_limit / len(MULTIPLES), **options,
        )  # fmt: skip
        scores.append(model.total_log_likelihood(held_out) / held_out.total_weight)
    best = int(np.argmax(scores))
    tried = ", ".join(f"{m:g}: {s:.4f}" for m, s in zip(MULTIPLES, scores, strict=True))
    chosen = f"cross-validation chose {MULTIPLES[best]:g} × BIC's penalty"
    return MULTIPLES[best], f"{chosen} (held-out log-likelihood a row: {tried})"


def make_engine(sample: Sample, max_states: int | None, seed: int) -> Engine:
    """Return what knows the changes of a family."""
    if sample.family == "gaussian":
        if max_states is not None:
            raise ModelError("max_states is for discrete data: Gaussian variables have no states")
        return GaussianEngine(sample)
    if sample.family == "symmetric":
        raise ModelError(
            "symmetric tables cannot be refined: hidden variables would lose their states' "
            "symmetry. Use family='discrete'"
        )
    if max_states is not None and max_states < 2:
        raise ModelError(f"max_states is {max_states}, but a variable has at least two states")
    return DiscreteEngine(sample, max_states, seed)


def penalty_of(criterion: Criterion, sample: Sample, n_hidden: int | None = None) -> Penalty:
    """Return the penalty of a criterion by name, or the multiple of BIC's."""
    bic = bic_cost(sample.total_weight)
    is_number = isinstance(criterion, int | float) and not isinstance(criterion, bool)
    if is_number and criterion >= 0:  # type: ignore[operator]
        return Penalty(float(criterion) * bic, n_hidden=n_hidden)
    named = {
        "bic": Penalty(bic, n_hidden=n_hidden),
        "aic": Penalty(1.0, n_hidden=n_hidden),
        "ebic": Penalty(bic, math.log(sample.n_columns), n_hidden),
    }
    if criterion not in named:
        raise ModelError(
            f"criterion is {criterion!r}, but must be one of {', '.join(named)}, cv, or a multiple "
            "of the BIC's penalty"
        )
    return named[str(criterion)]


def _first_fit(
    tree: Tree, sample: Sample, max_states: int | None, rng: np.random.Generator
) -> TreeModel:
    states = None
    if sample.family != "gaussian" and max_states is not None:
        states = np.minimum(hidden_states(tree, sample, None)[tree.n_observed :], max_states)
    model: TreeModel = fit_parameters(
        tree, sample, n_states=states, random_state=rng, n_starts=1, budget=Budget(max_steps=100)
    ).model
    return model


class _Found(NamedTuple):
    """The best of a search, the changes that led to it, and why it ended early if it did."""

    best: Standing
    moves: tuple[Move, ...]
    note: str = ""


@dataclass(frozen=True)
class _Searches:
    """Searches from several starts, and what is preferred of what they find."""

    engine: Engine
    penalty: Penalty
    deadline: float
    watch: Watch | None
    min_gain: float
    evidence: float

    def run(self, drafts: Sequence[Draft]) -> tuple[_Found, str]:
        """Search from every draft, the likeliest first; return what is preferred.

        Beside it stands why the searches ended early if they did.
        """
        results: list[_Found] = []
        for draft in drafts:
            results.append(self._search(draft))
            if results[-1].note:
                break
        found = results[0]
        for rival in results[1:]:
            if self._is_better(rival, found, self._worth_of_splits(rival, found)):
                found = rival
        note = results[-1].note
        if note or len(results) == 1 or not 0.0 < self.evidence < math.inf:
            return found, note
        return self._followed(found, results)

    def _followed(self, found: _Found, results: Sequence[_Found]) -> tuple[_Found, str]:
        """Go on by the score alone; take where that leads to if it is evidently better.

        Many changes that gain a little each may lead to a much better tree, and to one that is
        better by chance. But chance has many trees to choose from, and seldom leads to the same
        from two starts: less is asked of such a tree.
        """
        ends: list[_Found] = []
        for result in results:
            end = self._search(result.best.draft, result.moves, is_careful=False)
            if end.note:
                return found, end.note
            ends.append(end)
        for end in sorted(ends, key=lambda end: -end.best.score):
            worth = self._worth_of_splits(end, found)
            is_agreed = sum(end.best.n_changed(other.best) == 0 for other in ends) > 1
            doubt = 2.0 * self.evidence * bic_cost(self.engine.n_samples)
            least = 0.0 if is_agreed else max(doubt, worth)
            if self._is_better(end, found, least, LIKELIHOOD_SHARE * worth):
                return end, ""
        return found, ""

    def _worth_of_splits(self, found: _Found, other: _Found) -> float:
        """Return ``evidence`` nats for every split of the variables that only one tree has.

        Between trees that differ in many of them chance gains as much.
        """
        changed = found.best.n_changed(other.best)
        return self.evidence * changed if changed else 0.0

    def _is_better(
        self, found: _Found, other: _Found, least: float = 0.0, least_rise: float = 0.0
    ) -> bool:
        """Tell whether the score is higher by enough, "ebic" agrees and so does the likelihood.

        That may fall only by what is lost where a parameter is not needed: ½·χ², half a nat. With
        no evidence asked for the score alone decides.
        """
        new, old = found.best, other.best
        gain, rise = new.score - old.score, new.log_likelihood - old.log_likelihood
        if self.evidence == 0.0:
            return gain > 0.0
        more = math.log(new.draft.n_observed) * (new.draft.n_inner - old.draft.n_inner)
        return gain > max(self.min_gain, least, more) and rise > least_rise - NEGLIGIBLE

    def _search(self, draft: Draft, moves: Sequence[Move] = (), is_careful: bool = True) -> _Found:
        """Search from a draft, with more and more of the penalty."""
        caution = (self.min_gain, self.evidence) if is_careful else (0.0, 0.0)
        rounds = Rounds(self.engine, self.deadline, self.watch, *caution, list(moves))
        here = rounds.standing(draft, self.penalty)
        found = _Found(here, tuple(moves))
        stages = self.engine.stages
        try:
            for stage, share in enumerate(stages, 1):
                left = self.deadline - time.monotonic()
                is_last = stage == len(stages)
                rounds.deadline = time.monotonic() + (1.0 if is_last else STAGE_SHARE) * left
                here = rounds.run(here.draft, self.penalty.scaled(share), is_last)
                found = self._higher(found, here, rounds)
        except KeyboardInterrupt:
            if rounds.last is not None:
                found = self._higher(found, rounds.last, rounds)
            return found._replace(note="interrupted")
        is_late = time.monotonic() > self.deadline
        return found._replace(note="time limit reached" if is_late else "")

    def _higher(self, found: _Found, here: Standing, rounds: Rounds) -> _Found:
        """Return what was found, or where the search is, whichever scores higher."""
        rescored = here.rescored(self.penalty)
        if rescored.score > found.best.score:
            return _Found(rescored, tuple(rounds.moves))
        return found


def _report(
    final: Fitted, found: _Found, penalty: Penalty, notes: tuple[str, ...], seconds: float
) -> RefineReport:
    """Return the report of the final fit with what the search did."""
    old = {field.name: getattr(final.report, field.name) for field in fields(FitReport)}
    new = {"method": "refined", "seconds": seconds, "notes": (*final.report.notes, *notes)}
    return RefineReport(
        **old | new,
        score=final.report.log_likelihood - penalty(found.best.draft),
        moves=found.moves,
    )

"""Mixtures of trees: EM over components, each learned from weighted rows by any method.

A round of EM gives every row to the components by their posterior probabilities; each component
then learns its tree and parameters from all rows, weighted by what it was given. Every row counts a
little in every component besides, ν/n for n rows: so a component of few rows is drawn toward what
they all share, in its tree, means, variances and tables alike.

How many components and how strong ν are decided by rows that are held out. A committee does it at
no extra cost: each of its members is a mixture learned without a part of the rows, every row is
left out by ``LEFT_OUT`` members, and their mean density says how well such a committee predicts.
The members with the best settings together are the result, one mixture of all their components:
averaging densities predicts much better than any one member, as each is sure of other things.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from latentree.data import Table, cut_table, stacked
from latentree.distances import Sample
from latentree.em import Budget, FitReport, Fitted, held_out_split
from latentree.errors import DataError, ModelError
from latentree.models import TreeMixture, with_schema
from latentree.typing import BoolArray, FloatArray, Progress

Learn = Callable[[Sample], Fitted]
"""Learns one component from weighted rows."""

MEMBERS = 10
"""Members of a committee: more gain little, and learning takes longer in proportion."""
LEFT_OUT = 2
"""Members that leave a row out: the mean density of two already shows what averaging gains."""
MOST_TREES = 32
"""Components of a member, at most."""
ROWS_A_TREE = 8
"""Rows that a component should have: fewer say little of its tree."""
FIRST_STRENGTH = 1.0
"""Weight of all rows together in every component, in rows, while trees are added."""
WEAKER, STRONGER = (0.3, 0.1), (3.0, 10.0)
"""Strengths that are tried afterwards, one after the other as long as held-out rows gain."""
MOST_ROUNDS = 12
TOLERANCE = 1e-3
"""Gain, as a share of the log-likelihood a row (or of a nat), below which rounds end."""


class _TimeIsUp(Exception):
    """The time is up."""


def tree_mixture(
    sample: Sample,
    learn: Learn,
    n_trees: int | str,
    *,
    held_out: Table | None = None,
    validation_fraction: float | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Fitted:
    """Learn a mixture of trees.

    Parameters
    ----------
    sample : Sample
    learn : callable
        Learns one component from a sample of weighted rows.
    n_trees : int or "auto"
        Number of components. With "auto" a committee of mixtures, whose size and smoothing
        follow held-out rows.
    held_out : Table, optional
        Rows that decide on the smoothing, in place of a fraction of the rows.
    validation_fraction : float, optional
        That fraction; by default a tenth, of fewer than 5,000 rows up to a quarter.
    budget : Budget, optional
        Of which the time limit counts.
    random_state : int or Generator, optional
    progress : callable, optional
        Called with the number of settings tried and the held-out log-likelihood a row.

    Returns
    -------
    Fitted
        ``model, report``.

    References
    ----------
    Meilă and Jordan, *Learning with Mixtures of Trees*, JMLR 1, 2000.
    """
    rng = np.random.default_rng(random_state)
    limit = (budget or Budget()).time_limit
    table = sample.parts.to_table()
    wanted = None if n_trees == "auto" else checked_number(n_trees)
    if wanted is None:
        if held_out is not None:  # every row decides when it is left out
            table = stacked(table, held_out)
        left_out = _left_out(table.n_rows, rng)
    else:
        table, left_out = _one_split(table, held_out, validation_fraction, rng)
    search = _MixtureSearch(table, left_out, learn, rng, time.monotonic() + limit, progress)
    stopped = search.run(wanted, limit)
    mixture = search.result(wanted)
    return Fitted(mixture, _report(mixture, table, search, stopped))


def _report(mixture: TreeMixture, table: Table, search: _MixtureSearch, stopped: str) -> FitReport:
    settings = ", ".join(f"{trees}: {value:.4f}" for trees, value in search.tried.items())
    best = search.best
    note = (
        f"{mixture.n_trees} trees: {len(best.mixtures)} × {best.n_trees}, strength "
        f"{best.strength:g} (held-out log-likelihood a row by trees: {settings})"
    )
    return FitReport(
        method="em over trees",
        log_likelihood=mixture.total_log_likelihood(table),
        n_parameters=mixture.n_parameters,
        n_samples=table.total_weight,
        converged=not stopped,
        n_steps=search.n_rounds,
        held_out_log_likelihoods=tuple(search.trace),
        notes=(*([stopped] if stopped else []), note),
    )


def checked_number(n_trees: Any) -> int:
    """Return a number of trees, or say what is wrong with it."""
    if isinstance(n_trees, int | np.integer) and not isinstance(n_trees, bool) and n_trees >= 1:
        return int(n_trees)
    raise ModelError(f'n_trees is {n_trees!r}, but must be a positive integer or "auto"')


# Which rows decide ------------------------------------------------------------------------------


def _left_out(n_rows: int, rng: np.random.Generator) -> BoolArray:
    """Choose the rows that each member leaves out: every row is left out by ``LEFT_OUT`` of them.

    The rows are dealt to the members in turn, in a random order; row i of the order is left out by
    member i and by others that depend on the round, so that no two members leave out the same.
    """
    n_members = min(MEMBERS, n_rows)
    out = np.zeros((n_members, n_rows), bool)
    place = np.arange(n_rows)
    order = rng.permutation(n_rows)
    for number in range(min(LEFT_OUT, n_members - 1)):
        turn = 0 if number == 0 else 1 + (place // n_members) % (n_members - 1)
        out[(place + number * turn) % n_members, order] = True
    return out


def _one_split(
    table: Table, held_out: Table | None, fraction: float | None, rng: np.random.Generator
) -> tuple[Table, BoolArray]:
    """Return all rows, and which of them one member leaves out."""
    if held_out is None:
        table, held_out = held_out_split(table, fraction, rng)
    left_out = np.arange(table.n_rows + held_out.n_rows) >= table.n_rows
    return stacked(table, held_out), left_out[None, :]


# EM over components -----------------------------------------------------------------------------


def _weighted(table: Table, weights: FloatArray) -> Sample:
    return Sample(cut_table(Table(table.values, table.schema, weights)))


def run_rounds(
    table: Table, share: FloatArray, learn: Learn, strength: float, deadline: float = np.inf
) -> Iterator[TreeMixture]:
    """Yield the mixture after every round of EM, until the likelihood stops rising.

    Parameters
    ----------
    table : Table
    share : array of shape (n_rows, n_trees)
        How much of each row belongs to each component at first.
    learn : callable
        Learns one component from weighted rows.
    strength : float
        Weight of all rows together in every component, in rows.
    deadline : float
        When the time is up.
    """
    weight = table.weight_array()
    total, n_trees = weight.sum(), share.shape[1]
    before = -np.inf
    for _ in range(MOST_ROUNDS if n_trees > 1 else 1):
        parts = []
        for mine in share.T:
            if time.monotonic() > deadline:
                raise _TimeIsUp
            parts.append(learn(_weighted(table, weight * (mine + strength / total))).model)
        # One row more for every component keeps its weight from zero.
        mixture = TreeMixture(parts, (weight @ share + 1.0) / (total + n_trees))
        yield mixture
        joint = mixture.joint_log_likelihoods(table)
        each = logsumexp(joint, axis=1)
        value = float(weight @ each / total)
        if value - before < TOLERANCE * max(1.0, abs(value)):
            return
        before, share = value, np.exp(joint - each[:, None])


def first_share(table: Table, n_trees: int, rng: np.random.Generator) -> FloatArray:
    """Return shares to begin with: k-means on standardized numbers and indicators of labels."""
    if n_trees == 1:
        return np.ones((table.n_rows, 1))
    from scipy.cluster.vq import kmeans2

    _, nearest = kmeans2(_coded(table), n_trees, minit="++", seed=rng)
    return np.asarray(0.9 * np.eye(n_trees)[nearest] + 0.1 / n_trees)


def _coded(table: Table) -> FloatArray:
    """Columns as numbers of about one size; missing cells are at the mean."""
    columns = []
    for j, count in enumerate(table.schema.cardinalities.tolist()):
        cells = table.column(j).astype(np.float64)
        if count:
            block = (cells[:, None] == np.arange(1, count)).astype(np.float64)
            block[cells < 0] = np.nan
        else:
            block = cells[:, None]
        center = np.nanmean(block, axis=0)
        spread = np.maximum(np.nanstd(block, axis=0), 1e-300)
        columns.append(np.nan_to_num((block - center) / (spread if count == 0 else 0.5)))
    return np.hstack(columns)


# The search -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Setting:
    """Members that were learned with one number of trees and one strength."""

    n_trees: int
    strength: float
    mixtures: Sequence[TreeMixture] = ()
    score: float = -np.inf


@dataclass(eq=False)
class _MixtureSearch:
    """Tries numbers of trees that double, and strengths, as long as held-out rows gain."""

    table: Table
    left_out: BoolArray
    learn: Learn
    rng: np.random.Generator
    deadline: float
    progress: Progress | None
    best: _Setting = field(default_factory=lambda: _Setting(1, FIRST_STRENGTH))
    tried: dict[int, float] = field(default_factory=dict)
    trace: list[float] = field(default_factory=list)
    n_rounds: int = 0

    def run(self, n_trees: int | None, limit: float) -> str:
        """Search; returns why it ended early, or an empty string."""
        try:
            if n_trees is None:
                self._grow()
            else:
                self._try(_Setting(n_trees, FIRST_STRENGTH))
            self._strengthen()
        except KeyboardInterrupt:
            stopped = "interrupted: the best mixture so far is kept"
        except _TimeIsUp:
            stopped = f"the time limit of {limit:g} s came before the held-out rows decided"
        else:
            return ""
        if not self.best.mixtures:
            raise DataError(f"{stopped}, and no mixture was learned: allow more time")
        return stopped

    def _grow(self) -> None:
        n_rows = int((~self.left_out).sum(axis=1).min())
        n_trees = 1
        while n_trees == 1 or (n_trees <= MOST_TREES and n_trees * ROWS_A_TREE <= n_rows):
            before = self.best.score
            self._try(_Setting(n_trees, FIRST_STRENGTH))
            if self.best.score <= before and n_trees > 2:
                return
            n_trees *= 2

    def _strengthen(self) -> None:
        """Try weaker and stronger strengths as long as the held-out rows gain."""
        if self.best.n_trees == 1:  # all rows are its own
            return
        for strengths in (WEAKER, STRONGER):
            for strength in strengths:
                before = self.best
                self._try(_Setting(before.n_trees, strength, before.mixtures))
                if self.best is before:
                    break
            if self.best.strength != FIRST_STRENGTH:
                return

    def _try(self, setting: _Setting) -> None:
        """Learn the members of a setting, from those of a similar one if there are any."""
        n_members, n_rows = self.left_out.shape
        density = np.full((n_members, n_rows), -np.inf)
        mixtures = []
        for number, held_out in enumerate(self.left_out):
            mixture = self._member(setting, number)
            mixtures.append(mixture)
            density[number, held_out] = mixture.log_likelihood(
                self.table.take(np.flatnonzero(held_out))
            )
        found = _Setting(setting.n_trees, setting.strength, mixtures, self._score(density))
        self.trace.append(found.score)
        self.tried[found.n_trees] = max(found.score, self.tried.get(found.n_trees, -np.inf))
        if found.score > self.best.score:
            self.best = found
        if self.progress is not None:
            self.progress(len(self.trace), found.score)

    def _score(self, density: FloatArray) -> float:
        """Mean log-likelihood of the rows under the members that left them out."""
        rows = self.left_out.any(axis=0)
        each = logsumexp(density[:, rows], axis=0) - np.log(self.left_out[:, rows].sum(axis=0))
        weight = self.table.weight_array()[rows]
        return float(weight @ each / weight.sum())

    def _member(self, setting: _Setting, number: int) -> TreeMixture:
        rows = self.table.take(np.flatnonzero(~self.left_out[number]))
        if setting.mixtures:
            share = setting.mixtures[number].responsibilities(rows)
        else:
            share = first_share(rows, setting.n_trees, self.rng)
        return self._climb(rows, share, setting.strength)

    def _climb(self, rows: Table, share: FloatArray, strength: float) -> TreeMixture:
        for mixture in run_rounds(rows, share, self.learn, strength, self.deadline):  # noqa: B007
            self.n_rounds += 1
        return mixture

    def result(self, n_trees: int | None) -> TreeMixture:
        """Return one mixture of all members; of one member, learned again from all rows."""
        best = self.best
        if n_trees is not None and time.monotonic() < self.deadline:
            share = best.mixtures[0].responsibilities(self.table)
            self.deadline = np.inf
            best = _Setting(n_trees, 0.0, [self._climb(self.table, share, best.strength)])
        parts = [part for mixture in best.mixtures for part in mixture.components]
        weights = np.concatenate([mixture.weights for mixture in best.mixtures])
        schema = self.table.schema
        return TreeMixture([with_schema(part, schema) for part in parts], weights)

"""Changes of the numbers of states of hidden nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.special import rel_entr

from latentree.search._refinement._discrete_fit import RowEvidence, fit_star
from latentree.search._refinement._discrete_moves import Change, DiscreteMoves, Job
from latentree.search._refinement._draft import Draft
from latentree.search._refinement._search import Proposal, Request, Star
from latentree.search._refinement._tables import halved, mixed, visible
from latentree.typing import FloatArray, IntArray


class StateMoves(DiscreteMoves):
    """One state more or less at every hidden node."""

    def __init__(
        self, rows: RowEvidence, request: Request, max_states: int | None, seed: int
    ) -> None:
        super().__init__(rows, request, max_states)
        self.seed = seed

    def jobs(self) -> Iterator[Job]:
        """Return all changes of states to try."""
        for node in self.draft.hidden:
            if self.in_focus(node):
                if self.draft.n_states[node] < self.max_states:
                    yield partial(self._more, node)
                if self.draft.n_states[node] > 2:
                    yield partial(self._fewer, node)

    def _more(self, node: int) -> list[Proposal]:
        """Split states into two that differ at random, one after the other while that pays."""
        star, options = self.messages.star(node), self.options
        rng = np.random.default_rng([self.seed, node, star.top.size])
        found = list[Proposal]()
        while len(star.top) < self.max_states:
            likeliest = np.argsort(-star.top, kind="stable")[: options.effort]
            split = [_split(star, int(s), options.spread, rng) for s in likeliest]
            more = self._best(("more", node), node, split)
            if not more or (found and more[0].gain < found[0].gain + options.least_gain):
                break
            found = more
            assert found[0].star is not None
            star = found[0].star
        if found and self.request.losses is not None:  # what one state more would lose is another
            self.request.losses.pop(("more", node), None)
        return found

    def _fewer(self, node: int) -> list[Proposal]:
        """Join two states that are alike."""
        star = self.messages.star(node)
        joined = [joined_star(star, *pair) for pair in most_alike(star, self.options.few)]
        return self._best(("fewer", node), node, joined)

    def _best(self, key: tuple[str, int], node: int, stars: list[Star]) -> list[Proposal]:
        if key in self.request.known:
            return []
        arms = self.arms(node)
        seen = self.rows.seen(node, stars[0].top.size)
        steps = self.options.steps
        fits = [fit_star(self.rows, seen, arms, star, steps) for star in stars]
        best = max(fits, key=lambda fit: fit.log_likelihood).star

        def edit(draft: Draft) -> int:
            draft.resize(node, best.top, best.tables)
            return node

        region = {node, *filter(self.draft.is_hidden, arms)}
        return self.fitted(Change(key, edit, arms, region, self.before(node)))


def _split(star: Star, state: int, spread: float, rng: np.random.Generator) -> Star:
    """Make two states of one, whose rows differ at random."""
    top = np.append(star.top, star.top[state])
    top[[state, -1]] /= 2.0
    return Star(top, {n: halved(table, state, spread, rng) for n, table in star.tables.items()})


def most_alike(star: Star, count: int) -> list[tuple[int, int]]:
    """Return the pairs of states that are most alike.

    The difference is what joining two states would lose a row if all neighbors were seen.
    """
    pairs = np.triu_indices(star.top.size, 1)
    shown = [visible(table) for table in star.tables.values()]
    losses = _losses(star.top, np.hstack([np.empty((star.top.size, 0)), *shown]), *pairs)
    best = np.column_stack(pairs)[np.argsort(losses, kind="stable")[:count]]
    return [(a, b) for a, b in best.tolist()]


def joined_star(star: Star, a: int, b: int) -> Star:
    """Two states as one, weighted by their shares."""
    top = np.delete(star.top, b)
    top[a] += star.top[b]
    weights = np.delete(np.eye(star.top.size), b, axis=0)
    weights[a, [a, b]] = star.top[[a, b]] / max(star.top[[a, b]].sum(), 1e-300)
    return Star(top, {node: mixed(weights, table) for node, table in star.tables.items()})


def joining_losses(star: Star, a: int, b: int) -> dict[int, float]:
    """What joining two states would lose a row of each neighbor, if it were seen."""
    pair = np.array([a]), np.array([b])
    return {
        node: float(_losses(star.top, visible(table), *pair)[0])
        for node, table in star.tables.items()
    }


def _losses(top: FloatArray, rows: FloatArray, a: IntArray, b: IntArray) -> FloatArray:
    """What joining pairs of states would lose per row: Σ p·KL(row of a state, their mean)."""
    shares = top[a, None], top[b, None]
    mean = (shares[0] * rows[a] + shares[1] * rows[b]) / np.maximum(shares[0] + shares[1], 1e-300)
    lost = shares[0] * rel_entr(rows[a], mean) + shares[1] * rel_entr(rows[b], mean)
    total: FloatArray = lost.sum(axis=1)
    return total

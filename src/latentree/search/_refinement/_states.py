"""Changes of the numbers of states of hidden nodes of a discrete draft."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np
from scipy.special import rel_entr

from latentree.search._refinement import _local as local
from latentree.search._refinement._draft import Draft
from latentree.search._refinement._judging import Job, Judge
from latentree.search._refinement._messages import Rows
from latentree.search._refinement._proposal import Proposal, Request, Star
from latentree.typing import FloatArray

SPREAD = 0.5  # of the logarithms of two halves of a state
SPLITS = 4  # states that are split, the heaviest
JOINS = 2  # pairs of states that are joined, the most alike
TRIAL_STEPS = 8


class StateChanges(Judge):
    """Proposals for one draft: one state more or less at every hidden node."""

    def __init__(self, rows: Rows, request: Request, most: int | None, seed: int) -> None:
        super().__init__(rows, request)
        self.most = most or 2**15
        self.seed = seed

    def proposals(self) -> list[Proposal]:
        """Return all changes that may be worth it."""
        return self.run(self._jobs())

    def _jobs(self) -> Iterator[Job]:
        for node in self.draft.hidden:
            if self.in_focus(node):
                if self.draft.n_states[node] < self.most:
                    yield partial(self._more, node)
                if self.draft.n_states[node] > 2:
                    yield partial(self._fewer, node)

    def _star(self, node: int) -> Star:
        tables = {k: self.messages.table(node, k) for k in self.draft.neighbours(node)}
        return Star(self.messages.marginal[node], tables)

    def _more(self, node: int) -> list[Proposal]:
        """Split a state into two that differ at random."""
        star = self._star(node)
        rng = np.random.default_rng([self.seed, node, star.top.size])
        heaviest = np.argsort(-star.top, kind="stable")[:SPLITS]
        return self._best(("more", node), node, [_split(star, int(s), rng) for s in heaviest])

    def _fewer(self, node: int) -> list[Proposal]:
        """Join two states that are alike."""
        star = self._star(node)
        pairs = combinations(range(star.top.size), 2)
        alike = sorted(pairs, key=lambda pair: _difference(star, *pair))[:JOINS]
        return self._best(("fewer", node), node, [_joined(star, *pair) for pair in alike])

    def _best(self, key: tuple[str, int], node: int, stars: list[Star]) -> list[Proposal]:
        if self.request.is_known(key):
            return []
        arms = self.arms(node)
        seen = self.seen(node, stars[0].top.size)
        fits = [local.fit_star(self.rows, seen, arms, star, TRIAL_STEPS) for star in stars]
        best = max(fits, key=lambda fit: fit.log_likelihood).star

        def change(draft: Draft) -> int:
            draft.resize(node, best.top, best.tables)
            return node

        region = {node, *filter(self.draft.is_hidden, arms)}
        return self.fitted(key, change, arms, region, self.before(node))


def _split(star: Star, state: int, rng: np.random.Generator) -> Star:
    top = np.append(star.top, star.top[state])
    top[[state, -1]] /= 2.0
    tables = {}
    for node, table in star.tables.items():
        apart = rng.normal(0.0, SPREAD, table.shape[1])
        halves = table[state] * np.exp(np.stack([apart, -apart]))
        halves /= halves.sum(axis=1, keepdims=True)
        new = np.vstack([table, halves[1]])
        new[state] = halves[0]
        tables[node] = new
    return Star(top, tables)


def _joined(star: Star, a: int, b: int) -> Star:
    """Two states as one, weighted by their shares."""
    tables = {}
    for node, table in star.tables.items():
        new = np.delete(table, b, axis=0)
        new[a] = _mean(star.top[[a, b]], table[[a, b]])
        tables[node] = new
    top = np.delete(star.top, b)
    top[a] += star.top[b]
    return Star(top, tables)


def _difference(star: Star, a: int, b: int) -> float:
    """What joining two states would lose a row if all neighbours were seen."""
    shares = star.top[[a, b]]
    return sum(
        float(shares @ rel_entr(table[[a, b]], _mean(shares, table[[a, b]])).sum(axis=1))
        for table in star.tables.values()
    )


def _mean(shares: FloatArray, rows: FloatArray) -> FloatArray:
    return np.asarray(shares @ rows / max(shares.sum(), 1e-300))

"""Changes of the edges of a draft with states for where nothing else gains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

from latentree.search._refinement._discrete_edges import EdgeMoves
from latentree.search._refinement._discrete_fit import RowMessages
from latentree.search._refinement._discrete_moves import Change, FittedStar, Job
from latentree.search._refinement._discrete_states import joined_star, joining_losses, most_alike
from latentree.search._refinement._draft import Draft, StateDraft
from latentree.search._refinement._search import Edit, Proposal, Star, chance_gain


class LastMoves(EdgeMoves):
    """Changes of edges that take longer to find.

    - A hidden node becomes two and loses a state: it stood for both.
    - A new node may have fewer states than the node that it copies.
    - An observed node takes the place of a hidden neighbor if that pays, and the likelihood falls
      by no more than it would by chance if the hidden node were a copy.
    - The fit of all parameters decides: before it any change may lose ``slack``, and a new node all
      that it costs.
    """

    def jobs(self) -> Iterator[Job]:
        """Return all changes to try."""
        yield from super().jobs()
        for node in self.draft.hidden:
            n_states, n_neighbors = self.draft.n_states[node], len(self.draft.neighbors(node))
            if n_states > 2 and n_neighbors > 3 and self.in_focus(node):
                for pair in combinations(range(n_states), 2):
                    yield partial(self._part, node, pair)

    def needed(self, change: Change, draft: StateDraft, cost: float) -> float:
        """Return what the log-likelihood must rise by for a change to be accepted.

        A hidden copy of an observed node fits as well as the node itself, and by as much better as
        its parameters gain by chance: the likelihood never rises when it goes.
        """
        needed = super().needed(change, draft, cost)
        if change.key[0] != "promote" or change.n_places is None:
            return needed
        n_saved = self.draft.n_parameters - draft.n_parameters
        return min(needed, -chance_gain(change.n_places, max(n_saved, 1)))

    def slack(self, change: Change, cost: float, needed: float) -> float:
        """Return what may be missing of that before all parameters are fitted.

        A new node is worth a trial that fits better at all: it gains most of what it brings when
        its neighbors, which had to explain the same, are fitted to it.
        """
        if not change.has_new_center:
            return self.options.slack
        return max(self.options.slack, needed - self.options.least_gain)

    def fit(
        self,
        change: Change,
        draft: StateDraft,
        center: int,
        star: Star,
        least: float | None = None,
    ) -> FittedStar:
        """Fit a star; join states of a new node that are alike, as long as that pays."""
        best = super().fit(change, draft, center, star, least)
        while change.has_new_center and best.star is not None and best.star.top.size > 2:
            star = joined_star(best.star, *most_alike(best.star, 1)[0])
            draft.resize(center, star.top, star.tables)
            fewer = super().fit(change, draft, center, star, best.surplus)
            if fewer.surplus <= best.surplus:
                break
            best = fewer
        return best

    def proposal(self, change: Change, fit: FittedStar) -> list[Proposal]:
        """Return a change if it may pay."""
        if change.has_new_center and fit.star is not None:
            change = change._replace(edit=partial(_resized, edit=change.edit, star=fit.star))
        return super().proposal(change, fit)

    def _part(self, node: int, pair: tuple[int, int]) -> list[Proposal]:
        """Join two states of a node; the neighbors that tell them apart hang at a new node."""
        star = self.messages.star(node)
        rest, moved = self._told_apart(star, *pair)
        if min(len(moved), len(rest)) < 2:
            return []
        softness = self.options.softness

        def edit(draft: Draft) -> int:
            new = draft.part(node, moved, softness)
            tables = {other: draft.above[other] for other in draft.neighbors(node)}
            joined = joined_star(Star(draft.above[node], tables), *pair)
            draft.resize(node, joined.top, joined.tables)
            return new

        draft = self.draft.copy()
        edit(draft)
        arms = {other: self.messages.arm(other, node) for other in moved}
        arms[node] = RowMessages(draft, self.rows, self.messages, (node,)).about(node, rest)
        region = {node, *filter(self.draft.is_hidden, star.tables)}
        key, before = ("part", node, *pair), self.before(node)
        return self.fitted(Change(key, edit, arms, region, before, has_new_center=True))

    def _told_apart(self, star: Star, a: int, b: int) -> tuple[list[int], list[int]]:
        """Divide neighbors: those for which joining two states pays, all together, and others."""
        price, weight = self.request.penalty.per_parameter, self.rows.weights.sum()
        free = {other: max(self.draft.n_states[other] - 1, 1) for other in star.tables}
        losses = joining_losses(star, a, b)
        order = sorted(losses, key=lambda other: (losses[other] / free[other], other))
        gains = [price * free[other] - weight * losses[other] for other in order]
        n_rest = int((np.cumsum(gains) >= 0.0).sum())
        return order[:n_rest], order[n_rest:]


def _resized(draft: Draft, edit: Edit, star: Star) -> int:
    """Make a change, and give the node in its middle the states of a star."""
    center = edit(draft)
    draft.resize(center, star.top, star.tables)
    return center

"""What the search compares: changes of a draft, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from latentree.search._refinement._draft import Draft

Key = tuple[Any, ...]
"""A kind of change and the nodes that it is about, for the report and for remembering failures."""

Change = Callable[[Draft], int]
"""Changes the edges or states of a draft in place; returns the node in the middle of the change."""


class Star(NamedTuple):
    """What a local fit found: the entry of a root, and the tables of the edges around it."""

    top: Any
    tables: Mapping[int, Any]


class Proposal(NamedTuple):
    """A change of a draft with tables fitted around it, all others held fixed."""

    key: Key
    gain: float
    """Rise of the penalised log-likelihood, exact for these tables: fitting more adds to it."""
    rise: float
    """Rise of the log-likelihood itself, whatever the change costs or saves."""
    region: frozenset[int]
    """Nodes whose neighbours change; proposals with common ones are not accepted together."""
    change: Change
    star: Star | None

    def apply(self, draft: Draft) -> Draft:
        """Return a changed copy of a draft."""
        new = draft.copy()
        centre = self.change(new)
        if self.star is not None:
            new.set_star(centre, self.star.top, self.star.tables)
        return new


def bic_cost(n_samples: float) -> float:
    """Return what BIC charges for a parameter: ½·log n."""
    return 0.5 * math.log(max(n_samples, 2.0))


@dataclass(frozen=True)
class Penalty:
    """What a draft costs, to be subtracted from its log-likelihood.

    ``per_parameter`` for every free parameter, ``per_inner`` in addition for every node with two
    neighbours or more, hidden or observed, and with ``n_hidden`` a cost that nothing outweighs for
    every hidden node too many or too few.
    """

    per_parameter: float
    per_inner: float = 0.0
    n_hidden: int | None = None

    def __call__(self, draft: Draft) -> float:
        """Return the cost of a draft."""
        cost = self.per_parameter * draft.n_parameters + self.per_inner * draft.n_inner
        if self.n_hidden is not None:
            cost += FORBIDDEN * abs(draft.n_hidden - self.n_hidden)
        return cost

    def scaled(self, factor: float) -> Penalty:
        """Return the penalty with parameters at a multiple of their cost.

        What structure costs by itself stays: inner nodes let in cheaply would be hard to get rid
        of, as each takes over a part of what others explained.
        """
        return Penalty(factor * self.per_parameter, self.per_inner, self.n_hidden)


FORBIDDEN = 1e9


class Request(NamedTuple):
    """What the search asks an engine for."""

    draft: Draft
    penalty: Penalty
    is_known: Callable[[Key], bool]
    """Tells which changes have failed already."""
    focus: frozenset[int] | None = None
    """Nodes that changes are asked for; None stands for all."""
    deadline: float = math.inf
    """On the monotonic clock: what has not been found by then is not wanted."""
    losses: dict[Key, float] | None = None
    """Where an engine may note what changes would lose: they are known then for a while."""
    least_rises: Mapping[str, float] = MappingProxyType({})
    """How much the log-likelihood itself must rise, for some kinds of changes."""

    def least_rise(self, key: Key, cost: float) -> float:
        """Return what the log-likelihood must rise by in a change.

        What has to be done for the number of hidden nodes needs no evidence.
        """
        is_forced = cost < -FORBIDDEN / 2
        return -math.inf if is_forced else self.least_rises.get(key[0], -math.inf)


class Engine(Protocol):
    """What the search needs from a family of models, on given data."""

    n_samples: float
    stages: tuple[float, ...]
    """Shares of the penalty, one stage after the other: barriers are lower at first."""

    def draft(self, model: Any) -> Draft:
        """Return a model as a draft."""

    def model(self, draft: Any) -> Any:
        """Return a draft as a model."""

    def settle(self, draft: Any, n_steps: int) -> tuple[Any, float]:
        """Run accelerated EM on all tables; return the draft and its log-likelihood."""

    def structures(self, request: Request) -> list[Proposal]:
        """Return changes of the edges that may be worth it."""

    def states(self, request: Request) -> list[Proposal]:
        """Return changes of numbers of states that may be worth it."""

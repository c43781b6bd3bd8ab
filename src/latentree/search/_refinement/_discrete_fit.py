"""Fits around one node of a discrete draft, for every distinct row of the data.

The message from u to its neighbor v is what is seen on u's side of the edge, as a function of u's
state: λ(s) = P(seen behind u | u = s), scaled to a largest value of 1 in each row, with the
logarithm of the scale beside it. It depends on nothing on v's side, so a change of the tree leaves
all messages alone that do not come from behind it, and a change can be judged by EM on one star:
the tables around a node, with the messages that arrive there held fixed.

Inference passes messages too, but between patterns: rows that agree below a node share a message,
the numbering of patterns belongs to one rooted tree, and only expected counts leave the pass. A
search needs the messages on both sides of every edge side by side for the same rows, and after a
cut it exchanges one arm of each instead of passing all again. So the two share no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.search import stars
from latentree.data import Table
from latentree.search._refinement._draft import DiscreteDraft
from latentree.search._refinement._full_fit import FLOOR
from latentree.search._refinement._search import Star
from latentree.typing import FloatArray

ALL = -1
"""In place of a neighbor: the message of a node about everything around it."""


class Message(NamedTuple):
    """λ, states × rows, and the logarithm of its scale."""

    value: FloatArray
    shift: FloatArray


class RowEvidence:
    """Distinct rows of a table with their weights, and what they show of every variable."""

    def __init__(self, table: Table) -> None:
        values = table.values.toarray() if table.is_sparse else table.values
        codes, inverse = np.unique(np.asarray(values), axis=0, return_inverse=True)
        self.weights = np.bincount(inverse.ravel(), table.weight_array()).astype(np.float64)
        self.no_shift = np.zeros(self.weights.size)
        self._seen = [
            _indicators(column, int(k))
            for column, k in zip(codes.T, table.cardinalities, strict=True)
        ]

    def seen(self, node: int, n_states: int) -> FloatArray:
        """Return 1 for states that a row allows: at a hidden node or a missing cell all of them."""
        if node < len(self._seen):
            return self._seen[node]
        return np.ones((n_states, self.weights.size))

    def log_likelihood(self, top: FloatArray, message: Message) -> float:
        """Σ w·log Σ_s P(s)·λ(s)."""
        return float(self.weights @ (np.log(top @ message.value) + message.shift))


def _indicators(codes: NDArray[np.signedinteger], n_states: int) -> FloatArray:
    return np.asarray((codes == np.arange(n_states)[:, None]) | (codes < 0), np.float64)


# Messages ---------------------------------------------------------------------------------------


class RowMessages:
    """Messages of a draft, each computed when it is first asked for.

    With ``before``, the draft is a change of an earlier one, rooted where it was changed, all
    marginal probabilities as they were: messages that come from behind the nodes ``changed`` are
    computed afresh, at other nodes by exchanging the one arm that has changed.
    """

    def __init__(
        self,
        draft: DiscreteDraft,
        rows: RowEvidence,
        before: RowMessages | None = None,
        changed: Sequence[int] = (),
    ) -> None:
        self.draft, self.rows = draft, rows
        self._known: dict[tuple[int, int], Message] = {}
        self._before = {} if before is None else before._known
        self._changed = frozenset(changed)
        self.marginal: dict[int, FloatArray] = (
            _marginals(draft) if before is None else before.marginal
        )

    def get(self, node: int, towards: int = ALL) -> Message:
        """Return the message from a node to a neighbor, or about all that is around it."""
        found = self._lookup(node, towards)
        if found is not None:
            return found
        stack = [(node, towards)]
        while stack:
            source, target = stack[-1]
            waiting = [
                (other, source)
                for other in self.draft.neighbors(source)
                if other != target and self._lookup(other, source) is None
            ]
            if waiting:
                stack += waiting
            else:
                stack.pop()
                if (source, target) not in self._known:
                    self._known[source, target] = self._compute(source, target)
        return self._known[node, towards]

    def _lookup(self, source: int, target: int) -> Message | None:
        found = self._known.get((source, target))
        if found is None and self._before:
            upward = target != ALL and self.draft.parent[source] == target
            if upward and source not in self._changed:
                return self._before.get((source, target))
        return found

    def _compute(self, source: int, target: int) -> Message:
        if source not in self._changed and (source, target) in self._before:
            return self._exchanged(source, target)
        return self.about(source, [o for o in self.draft.neighbors(source) if o != target])

    def _exchanged(self, source: int, target: int) -> Message:
        """Return an earlier message with the arm from above, whence changes come, exchanged."""
        above = self.draft.parent[source]
        before = self._before[source, target]
        old, new = self._before[above, source], self.get(above, source)
        out, shift = np.empty_like(before.value), before.shift + (new.shift - old.shift)
        table = self.table(source, above)
        stars.exchange(before.value, table, old.value, new.value, out, shift)
        return Message(out, shift)

    def about(self, source: int, others: Sequence[int]) -> Message:
        """Return the message of a node about itself and what lies behind some neighbors."""
        seen = self.rows.seen(source, self.draft.n_states[source])
        if not others and not self.draft.is_hidden(source):
            return Message(seen, self.rows.no_shift)
        arms = {other: self.get(other, source) for other in others}
        values, starts, shift = _end_to_end(arms, self.rows)
        tables = [self.table(source, other).ravel() for other in others]
        out = np.empty_like(seen)
        stars.message(values, starts, np.concatenate([np.empty(0), *tables]), seen, out, shift)
        return Message(out, shift)

    def table(self, node: int, other: int) -> FloatArray:
        """P(other | node) for neighbors."""
        draft = self.draft
        if draft.parent[other] == node:
            found: FloatArray = draft.above[other]
            return found
        return draft.turned(self.marginal[other], draft.above[node])[1]

    def star(self, node: int) -> Star:
        """Return the tables around a node as they are."""
        tables = {other: self.table(node, other) for other in self.draft.neighbors(node)}
        return Star(self.marginal[node], tables)

    def log_likelihood(self, root: int) -> float:
        """Σ w·log P(row) of a component."""
        return self.rows.log_likelihood(self.draft.above[root], self.get(root))


def _marginals(draft: DiscreteDraft) -> dict[int, FloatArray]:
    out: dict[int, FloatArray] = {}
    for node in draft.order():
        above = draft.parent[node]
        out[node] = draft.above[node] if above < 0 else out[above] @ draft.above[node]
    return out


def _end_to_end(
    arms: Mapping[int, Message], rows: RowEvidence
) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Return messages below each other, where each starts, and the sum of their shifts."""
    values = [message.value for message in arms.values()]
    shift = np.zeros(rows.weights.size)
    for message in arms.values():
        if message.shift is not rows.no_shift:
            shift += message.shift
    stacked = np.concatenate(values) if values else np.empty((0, rows.weights.size))
    return stacked, np.cumsum([0, *map(len, values)]), shift


# Stars ------------------------------------------------------------------------------------------


class StarFit(NamedTuple):
    """Tables around a node, and the log-likelihood of its component with them."""

    star: Star
    log_likelihood: float


def fit_star(
    rows: RowEvidence,
    seen: FloatArray,
    arms: Mapping[int, Message],
    start: Star,
    n_steps: int,
    least: float = -math.inf,
    hope: float = math.inf,
) -> StarFit:
    """Run EM on the tables around a node at which ``seen`` is the evidence.

    It ends early where the steps left would not reach the log-likelihood ``least`` even if each
    gained ``hope`` times as much as the last.
    """
    values, starts, shift = _end_to_end(arms, rows)
    offset = float(rows.weights @ shift)
    top = np.array(start.top)
    tables = np.concatenate([start.tables[node].ravel() for node in arms])
    given = values, starts, seen, rows.weights, top, tables
    stars.fit_star(*given, FLOOR, n_steps, least - offset, hope)
    found = stars.log_likelihood(*given) + offset
    parts = np.split(tables, top.size * starts[1:-1])
    shaped = {n: part.reshape(top.size, -1).copy() for n, part in zip(arms, parts, strict=True)}
    return StarFit(Star(top, shaped), found)


# Association of two parts of a tree, before anything is fitted ------------------------------------
#
# Evidence on one side of a cut gives probabilities v of the states of x, evidence on the other side
# probabilities u of the states of y. An edge between x and y with the joint table P(y)·P(x) + M
# raises the log-likelihood by Σ w·log(1 + ũᵀMṽ), with ũ = u/P(y), ṽ = v/P(x). To second order the
# best M gains n/2·Σ r², where r are the canonical correlations of u and v; as for Gaussian
# variables −n/2·log(1 − Σ r²) is used, which is larger where they are strong.

_NO_VARIANCE = 1e-7  # of a probability that does not depend on the row
_INDEPENDENT_SHARE = 0.05  # of independence, in every entry of a table to start from


def posterior(top: FloatArray, value: FloatArray) -> FloatArray:
    """Probabilities of states given what a message has seen."""
    joint = top[:, None] * value
    return np.asarray(joint / joint.sum(axis=0))


def estimated_gains(
    sources: Sequence[FloatArray], places: Sequence[FloatArray], weights: FloatArray
) -> FloatArray:
    """Estimate what an edge gains, for every pair of a source and a place (states × rows each)."""
    total = float(weights.sum())
    first, first_starts = _whitened(sources, weights)
    second, second_starts = _whitened(places, weights)
    squares = (first @ second.T).astype(np.float64) ** 2
    by_source = np.add.reduceat(squares, first_starts, axis=0)
    shared = np.add.reduceat(by_source, second_starts, axis=1)
    return -0.5 * total * np.log1p(-np.minimum(shared, 0.999))


def _whitened(
    parts: Sequence[FloatArray], weights: FloatArray
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float32]], list[int]]:
    """Whitened probabilities of many nodes below each other, K − 1 lines a node."""
    lines, starts, at = [], [], 0
    root = np.sqrt(weights / weights.sum())
    for part in parts:
        mean = part @ weights / weights.sum()
        apart = (part - mean[:, None]) * root
        values, vectors = np.linalg.eigh(apart @ apart.T)
        kept = np.maximum(values[1:], _NO_VARIANCE)  # the first is that of Σ = 1
        lines.append(((vectors[:, 1:] / np.sqrt(kept)).T @ apart).astype(np.float32))
        starts.append(at)
        at += len(kept)
    return np.concatenate(lines), starts


class Side:
    """Probabilities of the states of a node, given what is seen on one side of a cut."""

    def __init__(self, top: FloatArray, value: FloatArray, weights: FloatArray) -> None:
        beliefs = posterior(top, value)
        self.top = top
        self.apart = beliefs - (beliefs @ weights / weights.sum())[:, None]
        self.weighted = self.apart * (weights / weights.sum())
        # Posteriors vary less than the states themselves: cov(u)·diag(1/P) maps one to the other.
        self.pull = top[:, None] * _inverse(self.weighted @ self.apart.T)


def _inverse(covariance: FloatArray) -> FloatArray:
    """Inverse of a covariance of probabilities, which sum to 1; small directions are left out."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > max(1e-4 * values[-1], _NO_VARIANCE)
    return np.asarray(vectors[:, kept] / values[kept] @ vectors[:, kept].T)


def moment_table(place: Side, source: Side) -> FloatArray:
    """Return a table P(x | y) that explains the covariance of u and v.

    cov(u, v) = B_u·M·B_vᵀ with B_u = cov(u)·diag(1/P(y)); solved for M, and kept from zero.
    """
    apart = np.outer(place.top, source.top)
    joint = apart + place.pull @ (place.weighted @ source.apart.T) @ source.pull.T
    joint = np.maximum(joint, _INDEPENDENT_SHARE * apart)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))

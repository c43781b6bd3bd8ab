"""Fits around one node of a draft with states, for every distinct row of the data.

The message from u to its neighbor v is what is seen on u's side of the edge, as a function of u's
state: λ(s) = P(seen behind u | u = s), scaled to a largest value of 1 in each row, with the
logarithm of the scale beside it. It depends on nothing on v's side, so a change of the tree leaves
all messages alone that do not come from behind it, and a change can be judged by EM on one star:
the tables around a node, with the messages that arrive there held fixed. A column of numbers sends
no message: in its place its values arrive, and its emission has an M-step of its own.

Inference passes messages too, but between patterns: rows that agree below a node share a message,
the numbering of patterns belongs to one rooted tree, and only expected counts leave the pass. A
search needs the messages on both sides of every edge side by side for the same rows, and after a
cut it exchanges one arm of each instead of passing all again. So the two share no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from latentree._kernels.search import stars
from latentree.data import Table
from latentree.inference import FreeEmission, Unit
from latentree.search._refinement._draft import StateDraft
from latentree.search._refinement._full_fit import FLOOR
from latentree.search._refinement._search import Star
from latentree.typing import FloatArray

ALL = -1
"""In place of a neighbor: the message of a node about everything around it."""


_STEPS_ALONE = 20
"""M-steps that a column by itself gets: Newton's, one a step, for sizes of counts."""

_LOWEST = -1e5
"""Least logarithm of a likelihood: a value so far off rules a state out."""


class Message(NamedTuple):
    """λ, states × rows, and the logarithm of its scale."""

    value: FloatArray
    shift: FloatArray


class Numbers:
    """A column of numbers: its distinct values, and which of them every row has.

    Parameters
    ----------
    cells : array of float
        NaN where missing.
    weights : array of float
        Of the rows.
    unit : Unit
    prior : float
        Rows that are added to its emission, shared out to the states.

    Attributes
    ----------
    functions : array of float
        Normal scores of the rows, and their squares: what association is measured by.
    """

    def __init__(self, cells: FloatArray, weights: FloatArray, unit: Unit, prior: float) -> None:
        distinct, number = np.unique(cells, return_inverse=True)
        self.values, self.index = np.asarray(distinct, np.float64), number.ravel()
        self.weights, self.unit, self.prior = weights, unit, prior
        there = np.bincount(self.index, weights) * ~np.isnan(self.values)
        middle = (np.cumsum(there) - 0.5 * there) / max(there.sum(), 1e-300)
        score = np.where(np.isnan(self.values), 0.0, ndtri(np.clip(middle, 1e-9, 1.0 - 1e-9)))
        self.functions = np.stack([np.ones(score.size), score, score * score])[:, self.index]

    def likelihoods(self, emission: FreeEmission) -> tuple[FloatArray, Any]:
        """Return the logarithms of the distinct values' likelihoods, one row per state.

        The second is what the emission keeps for its M-step.
        """
        logs, within = emission.likelihoods(self.values)
        logs[:, np.isnan(self.values)] = 0.0
        return np.maximum(logs, _LOWEST), within

    def maximized(self, emission: FreeEmission, posterior: FloatArray, within: Any) -> FreeEmission:
        """Return the emission that posterior weights (states × rows) give.

        ``within`` is what :meth:`likelihoods` returned beside the logarithms.
        """
        weights = np.zeros((len(posterior), self.values.size))
        stars.tally(posterior, self.index, weights)
        sums = emission.expected(self.values, weights, within, self.unit)
        share = self.prior / len(posterior)
        return emission.at(emission.maximized(sums, self.unit, share), self.unit)

    def by_moments(self, kind: type[FreeEmission], posterior: FloatArray) -> FreeEmission:
        """Return an emission with the moments that posterior weights (states × rows) give."""
        weights = np.zeros((len(posterior), self.values.size))
        stars.tally(posterior, self.index, weights)
        there = ~np.isnan(self.values)
        x, w = self.values[there] - self.unit.center, weights[:, there]
        total = np.maximum(w.sum(axis=1), 1e-300)
        mean = w @ x / total
        square = np.maximum(w @ (x * x) / total - mean * mean, 0.0)
        return kind.by_moments(mean + self.unit.center, square, self.unit)

    def alone(self, emission: FreeEmission) -> FreeEmission:
        """Return the emission of the column by itself, from another one with one state."""
        for _ in range(_STEPS_ALONE):
            _, within = self.likelihoods(emission)
            emission = self.maximized(emission, self.weights[None], within)
        return emission

    def log_likelihood(self, emission: FreeEmission) -> float:
        """Return the log-likelihood of the column by itself."""
        return float(self.weights @ self.likelihoods(emission)[0][0, self.index])


Arm = Message | Numbers
"""What arrives at a node from a neighbor."""


class RowEvidence:
    """Distinct rows of a table with their weights, and what they show of every variable.

    Parameters
    ----------
    table : Table
    units : mapping
        What is known of columns of numbers.
    prior : float
        Weight of the prior of a fit, in rows.
    """

    def __init__(
        self, table: Table, units: Mapping[int, Unit] | None = None, prior: float = FLOOR
    ) -> None:
        self.prior, self.numbers = prior, dict[int, Numbers]()
        values: Any = table.values.toarray() if table.is_sparse else table.values
        self.weights = table.weight_array().astype(np.float64)
        if not units:
            values, inverse = np.unique(np.asarray(values), axis=0, return_inverse=True)
            self.weights = np.bincount(inverse.ravel(), self.weights).astype(np.float64)
        self.no_shift = np.zeros(self.weights.size)
        self._seen = []
        for node, (column, k) in enumerate(zip(values.T, table.cardinalities, strict=True)):
            self._seen.append(_indicators(column, int(k)))
            if units and node in units:
                cells = np.asarray(column, np.float64)
                self.numbers[node] = Numbers(cells, self.weights, units[node], prior)
        self._logs: WeakKeyDictionary[FreeEmission, FloatArray] = WeakKeyDictionary()

    def seen(self, node: int, n_states: int) -> FloatArray:
        """Return 1 for states that a row allows: at a hidden node or a missing cell all of them."""
        if node < len(self._seen):
            return self._seen[node]
        return np.ones((n_states, self.weights.size))

    def logs(self, node: int, emission: FreeEmission) -> FloatArray:
        """Return log-likelihoods of the distinct values of a column; they are kept for a while."""
        if emission not in self._logs:
            self._logs[emission] = self.numbers[node].likelihoods(emission)[0]
        return self._logs[emission]

    def with_numbers(self, seen: FloatArray, logs: Mapping[int, FloatArray]) -> Message:
        """Return what is seen at a node, and of the columns of numbers around it."""
        total, out, shift = np.zeros_like(seen), np.empty_like(seen), np.zeros_like(self.weights)
        for node, own in logs.items():
            stars.add_logs(own, self.numbers[node].index, total)
        stars.likelihoods(total, seen, out, shift)
        return Message(out, shift)

    def log_likelihood(self, top: FloatArray, message: Message) -> float:
        """Σ w·log Σ_s P(s)·λ(s)."""
        return float(self.weights @ (np.log(top @ message.value) + message.shift))


def _indicators(codes: NDArray[Any], n_states: int) -> FloatArray:
    allowed = (codes == np.arange(n_states)[:, None]) | ~(codes >= 0)
    return np.asarray(allowed, np.float64)


# Messages ---------------------------------------------------------------------------------------


class RowMessages:
    """Messages of a draft, each computed when it is first asked for.

    With ``before``, the draft is a change of an earlier one, rooted where it was changed, all
    marginal probabilities as they were: messages that come from behind the nodes ``changed`` are
    computed afresh, at other nodes by exchanging the one arm that has changed.
    """

    def __init__(
        self,
        draft: StateDraft,
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
                if other != target
                and not self.draft.is_number(other)
                and self._lookup(other, source) is None
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
        numbers = {
            o: self.rows.logs(o, self.table(source, o)) for o in others if self.draft.is_number(o)
        }
        arms = {other: self.get(other, source) for other in others if other not in numbers}
        values, starts, shift = _end_to_end(arms, self.rows)
        if numbers:
            seen, extra = self.rows.with_numbers(seen, numbers)
            shift += extra
        tables = [self.table(source, other).ravel() for other in arms]
        out = np.empty_like(seen)
        stars.message(values, starts, np.concatenate([np.empty(0), *tables]), seen, out, shift)
        return Message(out, shift)

    def arm(self, other: int, node: int) -> Arm:
        """Return what arrives at a node from a neighbor."""
        return self.rows.numbers[other] if self.draft.is_number(other) else self.get(other, node)

    def table(self, node: int, other: int) -> Any:
        """P(other | node) for neighbors: a table, or the emission of a column of numbers."""
        draft = self.draft
        if draft.parent[other] == node:
            return draft.above[other]
        return draft.turned(self.marginal[other], draft.above[node])[1]

    def star(self, node: int) -> Star:
        """Return the tables around a node as they are."""
        tables = {other: self.table(node, other) for other in self.draft.neighbors(node)}
        return Star(self.marginal[node], tables)

    def log_likelihood(self, root: int) -> float:
        """Σ w·log P(row) of a component."""
        if self.draft.is_number(root):
            return self.rows.numbers[root].log_likelihood(self.draft.above[root])
        return self.rows.log_likelihood(self.draft.above[root], self.get(root))


def _marginals(draft: StateDraft) -> dict[int, FloatArray]:
    out: dict[int, FloatArray] = {}
    for node in draft.order():
        if draft.is_number(node):
            continue
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
    arms: Mapping[int, Arm],
    start: Star,
    n_steps: int,
    least: float = -math.inf,
) -> StarFit:
    """Run EM on the tables around a node at which ``seen`` is the evidence.

    It ends early where the steps left would not reach the log-likelihood ``least`` even if each
    gained as much as the last.
    """
    messages = {node: arm for node, arm in arms.items() if isinstance(arm, Message)}
    values, starts, shift = _end_to_end(messages, rows)
    offset = float(rows.weights @ shift)
    top = np.array(start.top)
    flat = [start.tables[node].ravel() for node in messages]
    tables = np.concatenate([np.empty(0), *flat])
    found: dict[int, Any] = {}
    if len(messages) == len(arms):
        star = values, starts, seen, rows.weights, top, tables
        stars.fit_star(*star, rows.prior, n_steps, least - offset)
        value = stars.log_likelihood(*star)
    else:
        found = {node: start.tables[node] for node in arms if node not in messages}
        given = values, starts, rows.weights, top, tables
        value = _fit_emissions(rows, seen, found, given, n_steps, least - offset)
    parts = np.split(tables, top.size * starts[1:-1]) if messages else []
    found |= {n: part.reshape(top.size, -1).copy() for n, part in zip(messages, parts, strict=True)}
    return StarFit(Star(top, {node: found[node] for node in arms}), value + offset)


def _fit_emissions(
    rows: RowEvidence,
    seen: FloatArray,
    emissions: dict[int, Any],
    given: tuple[FloatArray, NDArray[np.int64], FloatArray, FloatArray, FloatArray],
    n_steps: int,
    least: float,
) -> float:
    """Run EM where neighbors are columns of numbers; all parameters are changed in place."""
    values, starts, weights, top, tables = given
    posterior, nothing = np.empty_like(seen), np.empty((0, 0))
    value = -math.inf
    for n_left in range(n_steps, -1, -1):
        every = {node: rows.numbers[node].likelihoods(own) for node, own in emissions.items()}
        evidence, shift = rows.with_numbers(seen, {node: own[0] for node, own in every.items()})
        star = values, starts, evidence, weights, top, tables
        counts, of_top, last = np.zeros(tables.size), np.zeros(top.size), value
        wanted = posterior if n_left else nothing
        value = stars.expect(*star, of_top, counts, wanted) + float(weights @ shift)
        if not n_left or (n_left < n_steps and value + n_left * (value - last) < least):
            break
        stars.maximize(starts, top, tables, rows.prior, of_top, counts)
        for node, emission in emissions.items():
            emissions[node] = rows.numbers[node].maximized(emission, posterior, every[node][1])
    return value


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

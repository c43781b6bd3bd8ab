"""Messages between the nodes of a discrete draft, for every row of the data.

The message from u to its neighbour v is what is seen on u's side of the edge, as a function of
u's state: λ(s) = P(seen behind u | u = s), scaled to a largest value of 1 in each row, with the
logarithm of the scale beside it. It depends on nothing on v's side, so that a change of the tree
leaves all messages alone that do not come from behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.search import stars
from latentree.data import Table
from latentree.search._refinement._draft import DiscreteDraft
from latentree.typing import FloatArray

OPEN = -1
"""In place of a neighbour: the message of a node about everything around it."""


class Message(NamedTuple):
    """λ, states × rows, and the logarithm of its scale."""

    value: FloatArray
    shift: FloatArray


class Rows:
    """Distinct rows of a table with their weights, and what they show of every variable."""

    def __init__(self, table: Table) -> None:
        values = table.values.toarray() if table.is_sparse else table.values
        codes, inverse = np.unique(np.asarray(values), axis=0, return_inverse=True)
        self.codes: NDArray[np.signedinteger] = np.ascontiguousarray(codes.T)
        self.weights = np.bincount(inverse.ravel(), table.weight_array()).astype(np.float64)
        self.n_states = [int(k) for k in table.cardinalities]
        self.nothing = np.zeros(self.weights.size)
        self._seen = [self._look(node) for node in range(len(self.n_states))]

    def seen(self, node: int) -> FloatArray:
        """Return 1 for the state seen, and for all states where the cell is missing."""
        return self._seen[node]

    def _look(self, node: int) -> FloatArray:
        codes = self.codes[node]
        shown = (codes == np.arange(self.n_states[node])[:, None]) | (codes < 0)
        return np.asarray(shown, np.float64)

    def log_likelihood(self, top: FloatArray, message: Message) -> float:
        """Σ w·log Σ_s P(s)·λ(s)."""
        return float(self.weights @ (np.log(top @ message.value) + message.shift))


class Arms(NamedTuple):
    """The messages that meet at a node, end to end, as the kernels take them."""

    nodes: list[int]
    values: FloatArray
    starts: NDArray[np.int64]
    shift: FloatArray
    """Sum of the logarithms of their scales."""

    def split(self, tables: FloatArray, n_states: int) -> dict[int, FloatArray]:
        """Cut tables that lie end to end."""
        out, at = {}, 0
        for node, size in zip(self.nodes, np.diff(self.starts), strict=True):
            out[node] = tables[at : at + n_states * size].reshape(n_states, size).copy()
            at += n_states * int(size)
        return out


def arms_of(messages: Mapping[int, Message], rows: Rows) -> Arms:
    """Lay messages end to end."""
    sizes = [len(message.value) for message in messages.values()]
    values = [message.value for message in messages.values()]
    shift = np.zeros(rows.weights.size)
    for message in messages.values():
        if message.shift is not rows.nothing:
            shift += message.shift
    stacked = np.concatenate(values) if values else np.empty((0, rows.weights.size))
    return Arms(list(messages), stacked, np.cumsum([0, *sizes]), shift)


class Messages:
    """Messages of a draft, each computed when it is first asked for.

    With ``before``, the draft is a change of an earlier one, rooted where it was changed, all
    marginal probabilities as they were: messages that come from behind the nodes ``changed`` are
    computed afresh, at other nodes by exchanging the one arm that has changed.
    """

    def __init__(
        self,
        draft: DiscreteDraft,
        rows: Rows,
        before: Messages | None = None,
        changed: Sequence[int] = (),
    ) -> None:
        self.draft, self.rows = draft, rows
        self._known: dict[tuple[int, int], Message] = {}
        self._before = {} if before is None else before._known
        self._changed = frozenset(changed)
        self.marginal: dict[int, FloatArray] = (
            _marginals(draft) if before is None else before.marginal
        )

    def get(self, node: int, towards: int = OPEN) -> Message:
        """Return the message from a node to a neighbour, or about all that is around it."""
        found = self._lookup(node, towards)
        if found is not None:
            return found
        stack = [(node, towards)]
        while stack:
            source, target = stack[-1]
            waiting = [
                (other, source)
                for other in self.draft.neighbours(source)
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
            upward = target != OPEN and self.draft.parent[source] == target
            if upward and source not in self._changed:
                return self._before.get((source, target))
        return found

    def _compute(self, source: int, target: int) -> Message:
        if source not in self._changed and (source, target) in self._before:
            return self._exchanged(source, target)
        return self.about(source, [o for o in self.draft.neighbours(source) if o != target])

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
        """Return the message of a node about itself and what lies behind some neighbours."""
        if not others and not self.draft.is_hidden(source):
            return Message(self.rows.seen(source), self.rows.nothing)
        arms = arms_of({other: self.get(other, source) for other in others}, self.rows)
        tables = _flat([self.table(source, other) for other in arms.nodes])
        seen = self.evidence(source)
        out, shift = np.empty_like(seen), arms.shift.copy()
        stars.message(arms.values, arms.starts, tables, seen, out, shift)
        return Message(out, shift)

    def evidence(self, node: int) -> FloatArray:
        """Return what is seen at a node itself."""
        if self.draft.is_hidden(node):
            return np.ones((self.draft.n_states[node], self.rows.weights.size))
        return self.rows.seen(node)

    def table(self, node: int, other: int) -> FloatArray:
        """P(other | node) for neighbours."""
        draft = self.draft
        if draft.parent[other] == node:
            found: FloatArray = draft.above[other]
            return found
        return draft.turned(self.marginal[other], draft.above[node])[1]

    def log_likelihood(self, root: int) -> float:
        """Σ w·log P(row) of a component."""
        return self.rows.log_likelihood(self.draft.above[root], self.get(root))


def _marginals(draft: DiscreteDraft) -> dict[int, FloatArray]:
    out: dict[int, FloatArray] = {}
    for node in draft.order():
        above = draft.parent[node]
        out[node] = draft.above[node] if above < 0 else out[above] @ draft.above[node]
    return out


def _flat(tables: list[FloatArray]) -> FloatArray:
    return np.concatenate([t.ravel() for t in tables]) if tables else np.empty(0)

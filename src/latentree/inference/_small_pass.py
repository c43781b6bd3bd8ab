"""Expected counts of small tables in NumPy, which takes less time than to compile the kernels.

The formulas are those of ``_kernels.inference.slots``, in few operations on large arrays: all
leaves of a node together. Their log-likelihoods are one product of the tables' logarithms with the
indicators of what was seen, and their expected counts one product of these with the posteriors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.inference.slots import EDGE, EMISSION, EVIDENCE, JOIN, TINY
from latentree.inference._patterns import Patterns
from latentree.typing import FloatArray, IntArray

Rows = NDArray[np.signedinteger]
"""The pattern or symbol of every row of a component."""

_NEVER = -1e8
"""In place of log 0, so that 0 times it is 0."""


class _Gaps(NamedTuple):
    """Rows in which a leaf is missing, and where its table lies."""

    table: IntArray
    rows: FloatArray


class _Child(NamedTuple):
    """A node below that has nodes below it, and the table of the edge to it."""

    node: int
    table: slice
    shape: tuple[int, int]


@dataclass(eq=False)
class _Node:
    """A node of a component, ready for whole-array operations on the component's rows."""

    n_states: int
    excluded: FloatArray | None = None
    """``_NEVER`` for the states that differ from what was seen at the node itself."""
    tables: IntArray | None = None
    """Where the tables of all its leaves lie, side by side: states × symbols."""
    seen: FloatArray | None = None
    """Symbols × rows: 1 for the symbol of each leaf."""
    gaps: tuple[_Gaps, ...] = ()
    emitted: IntArray | None = None
    """Where the likelihoods of its leaves without states lie: leaves × states × rows."""
    children: tuple[_Child, ...] = ()


class _Component(NamedTuple):
    """Nodes, those below first; the prior of the last one, and the weights of the rows."""

    nodes: list[_Node]
    prior: slice | None
    weights: FloatArray


class SmallPass:
    """The pass of ``_kernels.inference.counts`` on the distinct rows of every component.

    Parameters
    ----------
    patterns : Patterns
        The compiled table.
    """

    def __init__(self, patterns: Patterns) -> None:
        self._components = [_component(patterns, record) for record in patterns.components]

    def run(
        self, theta: FloatArray, emitted: FloatArray | None = None
    ) -> tuple[float, FloatArray] | None:
        """Log-likelihood and expected counts; None when information may be lost.

        ``emitted`` are the logarithms of the likelihoods of emitted values; their expected counts
        take their place.
        """
        logs = np.log(theta, out=np.full(theta.size, _NEVER), where=theta > 0.0)
        counts = np.zeros(theta.size)
        emitted_counts = None if emitted is None else np.zeros(emitted.size)
        total = 0.0
        for component in self._components:
            upward = _up(component.nodes, theta, logs, emitted)
            if upward is None:
                return None
            closed = _close(component, theta, upward, counts)
            if closed is None:
                return None
            total += closed.log_likelihood
            _down(component.nodes, theta, upward, closed.received, counts, emitted_counts)
        if emitted is not None:
            emitted[:] = emitted_counts
        return total, counts


class _Upward(NamedTuple):
    """What lies below every node, relative to the best state, and the logarithm of that."""

    values: list[FloatArray]
    messages: list[list[FloatArray]]
    """Of the children of every node."""
    scale: FloatArray


def _up(
    nodes: list[_Node], theta: FloatArray, logs: FloatArray, emitted: FloatArray | None
) -> _Upward | None:
    values: list[FloatArray] = []
    messages: list[list[FloatArray]] = []
    scale: FloatArray = np.zeros(())
    for node in nodes:
        value = None
        terms = _log_terms(node, logs, emitted)
        if terms is not None:
            top = terms.max(0)
            if top.min(initial=0.0) < 0.5 * _NEVER:
                return None
            scale = scale + top
            value = np.exp(terms - top)
        arrived = [theta[c.table].reshape(c.shape) @ values[c.node] for c in node.children]
        for message in arrived:
            value = message if value is None else value * message
        assert value is not None
        if arrived:
            top = value.max(0)
            if top.min(initial=1.0) < TINY:
                return None
            scale = scale + np.log(top)
            value = value / top
        values.append(value)
        messages.append(arrived)
    return _Upward(values, messages, scale)


def _log_terms(node: _Node, logs: FloatArray, emitted: FloatArray | None) -> FloatArray | None:
    """Log-likelihood of what is seen at a node and at its leaves, for every state and row."""
    terms = node.excluded
    if node.tables is not None:
        assert node.seen is not None
        of_leaves = logs[node.tables] @ node.seen
        terms = of_leaves if terms is None else terms + of_leaves
    if node.emitted is not None:
        assert emitted is not None
        of_values = emitted[node.emitted].sum(0)
        terms = of_values if terms is None else terms + of_values
    return terms


class _Closed(NamedTuple):
    log_likelihood: float
    received: FloatArray


def _close(
    component: _Component, theta: FloatArray, upward: _Upward, counts: FloatArray
) -> _Closed | None:
    """Close the root: z = Σ_k prior(k)·λ(k), R(k) = w·prior(k)·λ(k)/z."""
    value, weights = upward.values[-1], component.weights
    joint = value if component.prior is None else theta[component.prior][:, None] * value
    z = joint.sum(0)
    if z.min(initial=1.0) < TINY:
        possible = z >= TINY
        if (weights[~possible] > 0.0).any():
            return None
        z = np.where(possible, z, 1.0)
        weights = np.where(possible, weights, 0.0)
    received = joint * (weights / z)
    if component.prior is not None:
        counts[component.prior] = received.sum(1)
    return _Closed(float(weights @ (np.log(z) + upward.scale)), received)


def _down(
    nodes: list[_Node],
    theta: FloatArray,
    upward: _Upward,
    received_at_root: FloatArray,
    counts: FloatArray,
    emitted_counts: FloatArray | None,
) -> None:
    """Hand posterior weights down and write counts."""
    received = [received_at_root] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        node, mine = nodes[number], received[number]
        if node.tables is not None:
            assert node.seen is not None
            counts[node.tables] = mine @ node.seen.T
        for places, rows in node.gaps:
            counts[places] += (mine @ rows)[:, None] * theta[places]
        if node.emitted is not None:
            assert emitted_counts is not None
            spread = np.broadcast_to(mine, node.emitted.shape).ravel()
            emitted_counts += np.bincount(node.emitted.ravel(), spread, emitted_counts.size)
        for child, message in zip(node.children, upward.messages[number], strict=True):
            ratio = np.divide(mine, message, out=np.zeros_like(mine), where=message > 0.0)
            table, below = theta[child.table].reshape(child.shape), upward.values[child.node]
            counts[child.table] = (table * (ratio @ below.T)).ravel()
            received[child.node] = below * (table.T @ ratio)


# From the slots of a compiled table to nodes ------------------------------------------------------


def _component(patterns: Patterns, record: np.void) -> _Component:
    """Read a component; its rows are the patterns of its root."""
    slots, root, start = patterns.slots, int(record["root"]), int(record["prior"])
    n_rows, n_states = int(slots["n_patterns"][root]), int(slots["n_states"][root])
    first = int(record["weights"])
    nodes: list[_Node] = []
    # Twice on the stack: a node is read when those below it have been.
    stack: list[tuple[_Parts, list[int] | None]] = [
        (_Parts.of(patterns, root, np.arange(n_rows)), None)
    ]
    above: list[list[int]] = [[]]
    while stack:
        parts, numbers = stack.pop()
        if numbers is None:
            numbers = []
            stack.append((parts, numbers))
            above.append(numbers)
            for slot, at in parts.inner[::-1]:
                stack.append((_Parts.of(patterns, int(slots["a"][slot]), at), None))
        else:
            above.pop()
            nodes.append(parts.node(patterns, numbers))
            above[-1].append(len(nodes) - 1)
    prior = None if start < 0 else slice(start, start + n_states)
    return _Component(nodes, prior, patterns.weights[first : first + n_rows])


class _Parts(NamedTuple):
    """The slots that hang at a node, each with its pattern in every row."""

    n_states: int
    symbols: list[Rows]
    leaves: list[tuple[int, Rows]]
    """Edges to leaves, with the symbols seen there."""
    emissions: list[tuple[int, Rows]]
    inner: list[tuple[int, Rows]]
    """Edges to other nodes."""

    @classmethod
    def of(cls, patterns: Patterns, top: int, at: Rows) -> _Parts:
        """Take a join apart."""
        slots, gather = patterns.slots, patterns.gather
        parts = cls(int(slots["n_states"][top]), [], [], [], [])
        stack = [(top, at)]
        while stack:
            slot, rows = stack.pop()
            record = slots[slot]
            kind, a = record["kind"], int(record["a"])
            if kind == JOIN:
                stack.append((int(record["b"]), gather[int(record["index_b"]) + rows]))
                stack.append((a, gather[int(record["index_a"]) + rows]))
            elif kind == EVIDENCE:
                parts.symbols.append(gather[int(record["index_a"]) + rows])
            elif kind == EMISSION:
                parts.emissions.append((slot, rows))
            elif kind == EDGE and slots["kind"][a] == EVIDENCE:
                parts.leaves.append((slot, gather[int(slots["index_a"][a]) + rows]))
            else:
                parts.inner.append((slot, rows))
        return parts

    def node(self, patterns: Patterns, children: list[int]) -> _Node:
        """Return the node, whose inner children have these numbers."""
        slots, node = patterns.slots, _Node(self.n_states)
        states = np.arange(self.n_states)[:, None]
        for symbols in self.symbols:
            node.excluded = np.where((symbols == states) | (symbols < 0), 0.0, _NEVER)
        if self.leaves:
            tables = [self._table(patterns, slot) for slot, _ in self.leaves]
            node.tables = np.concatenate(tables, axis=1)
            node.seen = np.concatenate([
                (symbols == np.arange(table.shape[1])[:, None]).astype(np.float64)
                for (_, symbols), table in zip(self.leaves, tables, strict=True)
            ])  # fmt: skip
            node.gaps = tuple(
                _Gaps(table, (symbols < 0).astype(np.float64))
                for (_, symbols), table in zip(self.leaves, tables, strict=True)
                if (symbols < 0).any()
            )
        if self.emissions:
            first = patterns.layout.size
            node.emitted = np.array([
                int(slots["table"][slot]) - first + states * int(slots["n_patterns"][slot]) + rows
                for slot, rows in self.emissions
            ])  # fmt: skip
        node.children = tuple(
            self._child(patterns, slot, number)
            for (slot, _), number in zip(self.inner, children, strict=True)
        )
        return node

    def _table(self, patterns: Patterns, slot: int) -> IntArray:
        """Where the entries of the table of an edge lie."""
        n_below = int(patterns.slots["n_states"][patterns.slots["a"][slot]])
        own = np.arange(self.n_states * n_below).reshape(self.n_states, n_below)
        return int(patterns.slots["table"][slot]) + own

    def _child(self, patterns: Patterns, slot: int, number: int) -> _Child:
        start = int(patterns.slots["table"][slot])
        shape = self.n_states, int(patterns.slots["n_states"][patterns.slots["a"][slot]])
        return _Child(number, slice(start, start + shape[0] * shape[1]), shape)

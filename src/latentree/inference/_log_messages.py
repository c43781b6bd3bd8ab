"""Messages as logarithms, in whole arrays: slower than plain products, and safe for any table.

The slots are those of ``_kernels.inference.slots``, all on patterns. The pass up gives the
logarithms of all messages, and for the root of every component the posterior of its states. What
is asked of rows is then a walk down from the roots: below the state i of a parent, and given the
pattern q of what is below the child, P(child = j | i, q) = T[i, j]·λ(j)/μ(i), or when maximizing a
1 at the best state. Small queries, most probable states and draws take this form, and whatever
products lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.inference import answers as kernels
from latentree._kernels.inference.slots import EDGE, EMISSION, EVIDENCE, JOIN
from latentree.inference._patterns import Patterns
from latentree.typing import AnyArray, FloatArray, IntArray

_SAFE = 1e-200
"""Sums of products above this lose nothing: what underflows beside them is far smaller."""


class _Edge(NamedTuple):
    """The slot of an edge, with what its messages are made of."""

    node: int
    """The lower end."""
    start: int
    """Where the table starts."""
    table: FloatArray
    below: FloatArray
    """log λ(j), a row per pattern or row."""
    message: FloatArray
    """log μ(i), likewise."""
    known: FloatArray | None
    """States of the lower end where it is seen: 1 or 0."""

    def ratios(self, given: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(i)/μ(i) and λ(j), both relative to the largest λ(j); 0 where that is lost."""
        top, weights = _relative(self.below)
        whole = np.exp(self.message - top)
        safe = whole > _SAFE
        return np.divide(given, whole, out=np.zeros_like(given), where=safe), weights

    def lost(self, given: FloatArray, ratio: FloatArray) -> Iterator[tuple[int, IntArray]]:
        """Yield states i and the rows in which a ratio has been lost."""
        for i in range(given.shape[1]):
            rows = np.flatnonzero((given[:, i] > 0.0) & (ratio[:, i] == 0.0))
            if rows.size:
                yield i, rows

    def conditional(self, i: int, rows: IntArray | slice) -> FloatArray:
        """P(j | i) in some rows, by logarithms."""
        return _normalized(np.log(self.table[i]) + self.below[rows], False)[0]


class LogMessages:
    """Log-messages of a compiled table, upward, and the posteriors of the components' roots.

    Parameters
    ----------
    patterns : Patterns
    theta : array of float
        Tables, rooted as compiled.
    maximize : bool
        Whether messages are those of the most probable states.
    log_emissions : array of float, optional
        Logarithms of the likelihoods of emitted values, as the patterns lay them out.
    """

    def __init__(
        self,
        patterns: Patterns,
        theta: FloatArray,
        maximize: bool = False,
        log_emissions: FloatArray | None = None,
    ) -> None:
        self.patterns, self.theta, self.maximize = patterns, theta, maximize
        self._emitted = np.empty(0) if log_emissions is None else log_emissions
        self._values: list[FloatArray] = []
        self._posteriors: list[FloatArray] = []
        self.log_z = np.empty(patterns.weights.size)
        with np.errstate(all="ignore"):
            for slot in patterns.slots:
                self._values.append(self._upward(slot))
            for component in patterns.components:
                self._close(component)

    def _upward(self, slot: np.void) -> FloatArray:
        """Log-messages of a slot: a row per pattern, a column per state."""
        n, width = int(slot["n_states"]), int(slot["n_patterns"])
        if slot["kind"] == EVIDENCE:
            seen = self._gathered(slot, "index_a")[:, None]
            return np.where((seen == np.arange(n)) | (seen < 0), 0.0, -np.inf)
        if slot["kind"] == EMISSION:
            start = int(slot["table"]) - self.theta.size
            return np.asarray(self._emitted[start : start + n * width].reshape(n, width).T)
        below = self._values[slot["a"]]
        if slot["kind"] == JOIN:
            others = self._values[slot["b"]][self._gathered(slot, "index_b")]
            return np.asarray(below[self._gathered(slot, "index_a")] + others)
        return self._edge_message(self._table(slot), below)

    def _gathered(self, slot: np.void, key: str) -> NDArray[np.int32]:
        start = int(slot[key])
        return self.patterns.gather[start : start + int(slot["n_patterns"])]

    def _table(self, slot: np.void) -> FloatArray:
        shape = int(slot["n_states"]), int(self.patterns.slots["n_states"][slot["a"]])
        start = int(slot["table"])
        return self.theta[start : start + shape[0] * shape[1]].reshape(shape)

    def _edge_message(self, table: FloatArray, below: FloatArray) -> FloatArray:
        """Log μ(i) = log Σ_j T[i, j]·λ(j), or the largest term."""
        logs = np.log(table)
        if self.maximize:
            return np.stack([(row + below).max(axis=1) for row in logs], axis=1)
        top, weights = _relative(below)
        sums = weights @ table.T
        out = top + np.log(sums)
        for i, row in enumerate(logs):
            lost = np.flatnonzero(sums[:, i] <= _SAFE)
            if lost.size:
                out[lost, i] = _normalized(row + below[lost], False)[1]
        return out

    def _close(self, component: np.void) -> None:
        """Close a root: log z and the posterior of its states (or its best state) per pattern."""
        terms, start = self._values[component["root"]], int(component["prior"])
        if start >= 0:
            terms = terms + np.log(self.theta[start : start + terms.shape[1]])
        posterior, log_z = _normalized(terms, self.maximize)
        first = int(component["weights"])
        self.log_z[first : first + log_z.size] = log_z
        self._posteriors.append(posterior)

    # Expected counts ------------------------------------------------------------------------

    def expected_counts(self) -> FloatArray:
        """Return expected counts in the places of the tables, and of the emitted values."""
        patterns = self.patterns
        counts = np.zeros(self.theta.size + self._emitted.size)
        received = [np.zeros_like(value) for value in self._values]
        with np.errstate(all="ignore"):
            for component, posterior in zip(patterns.components, self._posteriors, strict=True):
                first, root = int(component["weights"]), int(component["root"])
                weights = patterns.weights[first : first + len(posterior)]
                received[root] += weights[:, None] * posterior
                if component["prior"] >= 0:
                    start = int(component["prior"])
                    counts[start : start + posterior.shape[1]] += received[root].sum(axis=0)
                for number in range(root, int(component["first"]) - 1, -1):
                    self._hand_down(number, received, counts)
        return counts

    def _hand_down(self, number: int, received: list[FloatArray], counts: FloatArray) -> None:
        slot, own = self.patterns.slots[number], received[number]
        if slot["kind"] == JOIN:
            for part in ("a", "b"):
                np.add.at(received[slot[part]], self._gathered(slot, f"index_{part}"), own)
        elif slot["kind"] == EMISSION:
            start = int(slot["table"])
            counts[start : start + own.size] += own.T.ravel()
        elif slot["kind"] == EDGE:
            # The count of (i, j) is R(i)·P(j | i, pattern), and the child receives it.
            edge, below = self._edge(number, slice(None)), received[slot["a"]]
            ratio, weights = edge.ratios(own)
            table = counts[edge.start : edge.start + edge.table.size].reshape(edge.table.shape)
            table += edge.table * (ratio.T @ weights)
            below += (ratio @ edge.table) * weights
            for i, rows in edge.lost(own, ratio):
                shares = own[rows, i, None] * edge.conditional(i, rows)
                table[i] += shares.sum(axis=0)
                below[rows] += shares

    def _edge(self, number: int, at: AnyArray | slice) -> _Edge:
        """Return the slot of an edge, in some of its patterns."""
        slot = self.patterns.slots[number]
        below = self._values[slot["a"]][at]
        is_seen = self.patterns.slots["kind"][slot["a"]] == EVIDENCE
        known = np.exp(below) if is_seen else None
        message = self._values[number][at]
        return _Edge(
            int(slot["node"]), int(slot["table"]), self._table(slot), below, message, known
        )

    # Rows -----------------------------------------------------------------------------------

    def posteriors(self, lines: NDArray[np.int32], nodes: IntArray) -> dict[int, FloatArray]:
        """Return the probabilities of the states of nodes in rows with these root patterns.

        ``lines`` has a row for every component, and a column for every row of the data.
        """
        return self._walk_posteriors(lines, nodes, -1)[0]

    def edge_posteriors(self, lines: NDArray[np.int32], child: int) -> FloatArray:
        """Return joint probabilities of a node's parent and the node: rows × K_parent × K."""
        return self._walk_posteriors(lines, np.array([child]), child)[1]

    def _walk_posteriors(
        self, lines: NDArray[np.int32], nodes: IntArray, child: int
    ) -> tuple[dict[int, FloatArray], FloatArray]:
        parent = self.patterns.layout.tree.parent
        wanted = np.zeros(parent.size, bool)
        wanted[nodes] = True
        marked = kernels.mark_slots(self.patterns.slots, wanted)
        known: dict[int, FloatArray] = {}
        joint = np.empty((0, 0, 0))
        with np.errstate(all="ignore"):
            for number, at in self._downward(lines, marked, known):
                edge = self._edge(number, at)
                given = known[parent[edge.node]]
                known[edge.node] = self._child_posterior(edge, given)
                if edge.node == child:
                    states = range(given.shape[1])
                    rows = [given[:, i, None] * edge.conditional(i, slice(None)) for i in states]
                    joint = np.stack(rows, axis=1)
        return known, joint

    def _child_posterior(self, edge: _Edge, given: FloatArray) -> FloatArray:
        """P(j | row) = Σ_i P(i | row)·T[i, j]·λ(j)/μ(i)."""
        if edge.known is not None and (edge.known.sum(axis=1) == 1.0).all():
            return edge.known
        ratio, weights = edge.ratios(given)
        out = (ratio @ edge.table) * weights
        for i, rows in edge.lost(given, ratio):
            out[rows] += given[rows, i, None] * edge.conditional(i, rows)
        return out

    def states(self, lines: NDArray[np.int32], uniform: FloatArray) -> IntArray:
        """Return states of all nodes in every row, drawn with numbers in [0, 1)."""
        out = np.zeros(uniform.shape, np.int64)
        parent = self.patterns.layout.tree.parent
        marked = np.ones(len(self.patterns.slots), bool)
        known: dict[int, FloatArray] = {}
        with np.errstate(all="ignore"):
            for number, at in self._downward(lines, marked, known):
                for root in list(known):
                    out[:, root] = _chosen(known.pop(root), uniform[:, root])
                edge = self._edge(number, at)
                terms = np.log(edge.table)[out[:, parent[edge.node]]] + edge.below
                shares = _normalized(terms, self.maximize)[0]
                out[:, edge.node] = _chosen(shares, uniform[:, edge.node])
            for root in known:
                out[:, root] = _chosen(known[root], uniform[:, root])
        return out

    def _downward(
        self, lines: NDArray[np.int32], marked: NDArray[np.bool_], known: dict[int, FloatArray]
    ) -> Iterator[tuple[int, AnyArray]]:
        """Yield the slots of marked edges from the roots down, with their pattern in every row.

        What is known of the states of a component's root is written before.
        """
        slots = self.patterns.slots
        for component, line, posterior in zip(
            self.patterns.components, lines, self._posteriors, strict=True
        ):
            root = int(component["root"])
            if slots["kind"][root] == EMISSION:  # a leaf alone, which has no states
                continue
            known[int(component["node"])] = posterior[line]
            patterns: dict[int, AnyArray] = {root: line}
            # Slots come after their parts, so that backwards all that is above is known.
            for number in range(root, int(component["first"]) - 1, -1):
                at, slot = patterns.pop(number, None), slots[number]
                if at is None or not marked[number]:
                    continue
                if slot["kind"] == JOIN:
                    for part in ("a", "b"):
                        start = int(slot[f"index_{part}"])
                        patterns[int(slot[part])] = self.patterns.gather[start + at]
                elif slot["kind"] == EDGE:
                    patterns[int(slot["a"])] = at
                    yield number, at


def _relative(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest logarithm of every row, and what all are relative to it."""
    top = logs.max(axis=1, keepdims=True)
    return top, np.where(top > -np.inf, np.exp(logs - top), 0.0)


def _normalized(terms: FloatArray, maximize: bool) -> tuple[FloatArray, FloatArray]:
    """Turn log-weights into probabilities, or into a 1 at the first largest; and log Σ."""
    top, weights = _relative(terms)
    if maximize:
        best = terms.argmax(axis=1)[:, None] == np.arange(terms.shape[1])
        return (best & (top > -np.inf)).astype(np.float64), top[:, 0]
    total = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0.0)
    return shares, (top + np.log(total))[:, 0]


def _chosen(shares: FloatArray, uniform: FloatArray) -> IntArray:
    """Return states at which cumulated probabilities pass numbers; impossible ones are skipped."""
    possible = shares > 0.0
    passed = possible & (np.cumsum(shares, axis=1) > uniform[:, None])
    last = shares.shape[1] - 1 - possible[:, ::-1].argmax(axis=1)
    chosen = np.where(passed.any(axis=1), passed.argmax(axis=1), last)
    return np.where(possible.any(axis=1), chosen, 0)

"""Queries about the rows of a discrete tree: log-likelihoods, posteriors, draws.

There are two ways. Plain products, in blocks of rows, answer nearly every query
(``_kernels.inference.answers``). Logarithms (``_log_messages``) answer for tables
where products lose information, for small ones, and for most probable states.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latentree._kernels import threads
from latentree._kernels.compiling import tiny
from latentree._kernels.inference import answers as kernels
from latentree._kernels.inference import counts as count_kernels
from latentree._kernels.inference.slots import (
    EDGE,
    EMISSION,
    EVIDENCE,
    PassInput,
    RowRange,
)
from latentree.inference._log_messages import LogMessages
from latentree.inference._pass_plan import PassPlan
from latentree.inference._patterns import Patterns, starts_of
from latentree.typing import FloatArray, IntArray

_SMALL = 1_000_000
"""Most rows × Σ K² of a query by logarithms, in whole arrays: in hundredths of a second."""

_MOST_PARTS = 16
"""Most parts of the rows: more threads than that are rare."""

_ROWS_PER_PART = 256
"""Fewest rows of a part: one block or more of the kernels."""


class RowInference:
    """Inference on the rows of a table: log-likelihoods, posteriors and states of nodes.

    Parameters
    ----------
    patterns : Patterns
        The compiled table, with its rows.
    theta : array of float
        Tables, rooted as compiled.
    maximize : bool
        Whether the most probable states are asked for.
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
        assert patterns.of_rows is not None
        self.patterns, self.n_rows = patterns, patterns.of_rows.n_rows
        self._theta, self._maximize, self._log_emissions = theta, maximize, log_emissions
        work = max(2 * len(patterns.slots), patterns.layout.size)
        self._takes_logs = maximize or self.n_rows * work <= _SMALL
        self._lines = patterns.of_rows.dense()
        self._log_z: FloatArray | None = None

    def log_likelihood(self) -> FloatArray:
        """Log-probability of every row."""
        if self._log_z is None:
            self._ask(np.empty(0, np.int64))
        assert self._log_z is not None
        out = np.zeros(self.n_rows)
        for component, line in zip(self.patterns.components, self._lines, strict=True):
            out += self._log_z[component["weights"] + line]
        return out

    def posteriors(self, nodes: IntArray | None = None) -> FloatArray:
        """Probabilities of the states of some nodes or of all, side by side, for every row."""
        every = np.arange(self.patterns.layout.tree.n_nodes)
        return self._ask(every if nodes is None else nodes)

    def edge_posteriors(self, child: int) -> FloatArray:
        """Joint probabilities of a node's parent and the node: rows × K_parent × K."""
        self._takes_logs = True  # what else is asked, they answer too
        return self._logs.edge_posteriors(self._lines, child)

    def states(self, uniform: FloatArray) -> IntArray:
        """States of all nodes in every row, chosen by numbers in [0, 1)."""
        self._takes_logs = True
        return self._logs.states(self._lines, uniform)

    def _ask(self, nodes: IntArray) -> FloatArray:
        """Posteriors of nodes; the log-likelihoods of all patterns are kept."""
        if not self._takes_logs:
            with tiny(False):
                answer = self._products.ask(nodes, self._lines)
            if answer is not None:
                self._log_z, out = answer
                return out
            self._takes_logs = True
        self._log_z = self._logs.log_z
        out = np.empty((self.n_rows, int(self.patterns.layout.n_states[nodes].sum())))
        if nodes.size:
            known = self._logs.posteriors(self._lines, nodes)
            blocks = [known.get(node, out[:, :0]) for node in nodes.tolist()]
            np.concatenate(blocks, axis=1, out=out)
        return out

    @cached_property
    def _products(self) -> ProductMessages:
        return ProductMessages(self.patterns, self._theta, self._log_emissions)

    @cached_property
    def _logs(self) -> LogMessages:
        return LogMessages(self.patterns, self._theta, self._maximize, self._log_emissions)


class ProductMessages:
    """Messages of a compiled table as plain products, upward and then downward to its rows.

    Parameters
    ----------
    patterns : Patterns
        The compiled table.
    theta : array of float
        Tables, rooted as compiled.
    log_emissions : array of float, optional
        Logarithms of the likelihoods of emitted values.
    """

    def __init__(
        self, patterns: Patterns, theta: FloatArray, log_emissions: FloatArray | None
    ) -> None:
        self._plan = plan = PassPlan(patterns)
        self._patterns, self._theta = patterns, theta
        is_tolerant = patterns.emissions.columns.size > 0
        self._input = PassInput(plan.slots, plan.gather, theta, is_tolerant)
        self._values = np.empty(plan.n_values)
        self._starts = starts_of(plan.slots["n_patterns"])
        best = self._set_emissions(log_emissions)
        self._scales = self._fill(best) if np.isfinite(best).all() else None

    def _set_emissions(self, logs: FloatArray | None) -> FloatArray:
        """Set the slots of emissions, relative to the best states, whose logarithms it returns."""
        if logs is None:
            return np.empty(0)
        emissions, slots = self._patterns.emissions, self._plan.slots
        emitting, best = slots[slots["kind"] == EMISSION], np.empty(emissions.values.size)
        count_kernels.relative_likelihoods(emitting, emissions.starts, logs, self._values, best)
        return best

    def _fill(self, best: FloatArray) -> FloatArray | None:
        """Fill the slots on patterns; returns the logarithms of what scales them.

        None if information may be lost.
        """
        plan = self._plan
        shifts, scaled = np.empty(plan.n_values), np.zeros(len(plan.slots), bool)

        def fill(listed: IntArray) -> bool:
            lost = count_kernels.up_patterns(self._input, listed, self._values, shifts, scaled)
            return bool(lost)

        if any(threads.run(fill, plan.pattern_parts)):
            return None
        scales = np.empty(int(plan.slots["n_patterns"].sum()))
        kernels.log_scales(plan.slots, self._starts, plan.gather, shifts, scaled, best, scales)
        return scales

    def ask(
        self, nodes: IntArray, lines: NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return log-likelihoods of the roots' patterns, and posteriors of nodes in every row.

        ``lines`` are the patterns of the rows at the roots. None if information may be lost.
        """
        if self._scales is None:
            return None
        distinct, back = np.unique(nodes, return_inverse=True)
        query = _NodeQuery(self._patterns, distinct)
        log_z = np.empty(self._patterns.weights.size)
        found = [np.empty(shape) for shape in query.shapes]
        lost = threads.run(
            lambda span: self._answer(span, query, log_z, found[span.component]),
            self._parts(),
        )
        if any(lost):
            return None
        out = np.empty((lines.shape[1], query.n_columns))
        for block, line, columns in zip(found, lines, query.places, strict=True):
            out[:, columns] = block[line]
        if distinct.size < nodes.size or (distinct != nodes).any():
            n_states = self._patterns.layout.n_states[distinct]
            out = out[:, spans(starts_of(n_states)[back], n_states[back])]
        return log_z, out

    def _parts(self) -> Iterator[RowRange]:
        """Cut the work into ranges of rows, whatever the number of threads."""
        nothing = np.empty(0, np.int64)
        by_row = [rows for part in self._plan.row_parts for rows in part]
        yield from by_row
        done = {rows.component for rows in by_row}
        roots = self._patterns.slots[self._patterns.components["root"]]
        order = np.arange(roots["n_patterns"].max(initial=0), dtype=np.int32)
        for number, root in enumerate(roots):
            if number not in done:
                n_parts = min(_MOST_PARTS, int(root["n_patterns"]) // _ROWS_PER_PART)
                for first, last in threads.split(int(root["n_patterns"]), n_parts):
                    yield RowRange(number, first, last, order, nothing)

    def _answer(
        self, span: RowRange, query: _NodeQuery, log_z: FloatArray, out: FloatArray
    ) -> bool:
        """Run a range of rows; True if information may be lost."""
        plan, component = self._plan, self._patterns.components[span.component]
        n_states, start = int(plan.slots["n_states"][component["root"]]), int(component["prior"])
        prior = np.ones(n_states) if start < 0 else self._theta[start : start + n_states]
        lost = kernels.answer_rows(
            self._input, span, component, query.of_component(span.component),
            self._patterns.slots, prior, self._values, self._starts, self._scales,
            log_z[component["weights"] :], out,
        )  # fmt: skip
        return bool(lost)


class _NodeQuery:
    """Nodes that are asked for, in ascending order: the slots that lead there, where answers go.

    Every node belongs to one component, as the lower end of an edge or as the root with a prior.
    """

    def __init__(self, patterns: Patterns, nodes: IntArray) -> None:
        slots, components = patterns.slots, patterns.components
        n_nodes = patterns.layout.tree.n_nodes
        wanted = np.zeros(n_nodes, bool)
        wanted[nodes] = True
        asked = np.flatnonzero(kernels.mark_slots(slots, wanted))
        self.asked = np.split(asked, np.searchsorted(asked, components["root"][:-1], "right"))
        self.needed = np.empty(int(slots["n_patterns"].sum()), bool)
        kernels.needed_patterns(
            slots, starts_of(slots["n_patterns"]), patterns.gather, wanted, self.needed
        )
        self.largest = int(slots["n_states"].max(initial=1))
        self.parent = patterns.layout.tree.parent
        edges = asked[slots["kind"][asked] == EDGE]
        self._place_known(patterns, edges)
        self._place_answers(patterns, edges, nodes)

    def of_component(self, number: int) -> kernels.Query:
        """Return the query of a component as its kernel takes it."""
        return kernels.Query(
            self.asked[number], self.needed, self.parent, self.known, self.n_known[number],
            self.largest, self.columns, self.root_columns[number],
        )  # fmt: skip

    def _place_known(self, patterns: Patterns, edges: IntArray) -> None:
        """Place the posteriors that are handed down: those of a root first, none of seen leaves."""
        slots, components = patterns.slots, patterns.components
        inner = edges[slots["kind"][slots["a"][edges]] != EVIDENCE]
        at_root, sizes = slots["n_states"][components["root"]], slots["n_states"][slots["a"][inner]]
        component = np.searchsorted(components["root"], inner)
        below = _sums(component, sizes, len(components))
        self.n_known = at_root + below
        self.known = np.zeros(patterns.layout.tree.n_nodes, np.int64)
        self.known[slots["node"][inner]] = (at_root - starts_of(below))[component] + starts_of(
            sizes
        )

    def _place_answers(self, patterns: Patterns, edges: IntArray, nodes: IntArray) -> None:
        """Place what is answered: the nodes of a component side by side, one row a pattern."""
        slots, components, n_states = patterns.slots, patterns.components, patterns.layout.n_states
        owner = np.full(n_states.size, -1)
        owner[slots["node"][edges]] = np.searchsorted(components["root"], edges)
        own = components["prior"] >= 0  # a root that is given is a leaf elsewhere
        owner[components["node"][own]] = np.flatnonzero(own)
        mine = nodes[owner[nodes] >= 0]
        mine = mine[np.argsort(owner[mine], kind="stable")]
        sizes = n_states[mine]
        widths = _sums(owner[mine], sizes, len(components))
        self.columns = np.full(n_states.size, -1)
        self.columns[mine] = starts_of(sizes) - starts_of(widths)[owner[mine]]
        self.root_columns = np.where(own, self.columns[components["node"]], -1)
        n_patterns = slots["n_patterns"][components["root"]]
        self.shapes = list(zip(n_patterns.tolist(), widths.tolist(), strict=True))
        self.n_columns = int(n_states[nodes].sum())
        places = np.zeros(n_states.size, np.int64)
        places[nodes] = starts_of(n_states[nodes])
        self.places = np.split(spans(places[mine], sizes), np.cumsum(widths)[:-1])


def spans(starts: IntArray, sizes: IntArray) -> IntArray:
    """Return the numbers from each start on, as many as its size, end to end."""
    return np.asarray(np.repeat(starts - starts_of(sizes), sizes) + np.arange(sizes.sum()))


def _sums(groups: IntArray, sizes: IntArray, n_groups: int) -> IntArray:
    """Sum of the sizes in every group."""
    return np.bincount(groups, sizes, n_groups).astype(np.int64)

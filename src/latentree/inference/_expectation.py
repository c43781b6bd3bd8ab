"""Expected counts of a discrete tree on a compiled table: the expectation step of EM."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree import _memory as memory
from latentree._kernels import threads
from latentree._kernels.compiling import is_interpreted, tiny
from latentree._kernels.inference import counts as kernels
from latentree._kernels.inference import messages as log_kernels
from latentree._kernels.inference import patterns as pattern_kernels
from latentree._kernels.inference import wide as wide_kernels
from latentree._kernels.inference.counts import EDGE, EMISSION, JOIN
from latentree.inference._patterns import Patterns
from latentree.inference._small_pass import SmallPass
from latentree.typing import FloatArray, IntArray

BY_ROW_SHARE = 2
"""Slots with at least 1/BY_ROW_SHARE of their component's rows as patterns run row by row."""

MANY_STATES = 12
"""From so many states on, weighted by their work, an edge is left to BLAS."""

_FEW_ROWS = 1_000  # below, blocks of rows save less than it takes to compile them (some seconds)
_WORK_PER_PART = 160_000
_MOST_PARTS = 16
_MOST_ROW_PARTS = 8  # each has sums of its own for all that it hands down
_TINY = 250_000  # Σ patterns × K² of a pass that runs in NumPy, in a millisecond or less


class ExpectedCounts(NamedTuple):
    """What an expectation step gives: log-likelihood, and counts in the layout of the tables."""

    log_likelihood: float
    counts: FloatArray

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:  # type: ignore[override]
        """Return the sum over both parts of the rows."""
        return ExpectedCounts(
            self.log_likelihood + other.log_likelihood, self.counts + other.counts
        )

    def scaled(self, factor: float) -> ExpectedCounts:
        """Return those of rows that count so much more."""
        return ExpectedCounts(factor * self.log_likelihood, factor * self.counts)


class Scratch(NamedTuple):
    """What a pass works on; nothing is kept in it."""

    values: FloatArray
    """A number a state and pattern of all slots, as the next two."""
    received: FloatArray
    shifts: FloatArray
    counts: FloatArray
    """What each part of the rows counts, a number an entry of the tables."""
    quads: FloatArray
    """What rows look up, a copy of some of the values."""
    handed: FloatArray
    """What each part of the rows hands down to patterns, in the places of ``quads``."""
    emitted: FloatArray
    """A number a likelihood of emitted values: for the caller of a pass to hand over."""
    cells: FloatArray
    """Twice as many, which the caller may keep during a pass."""


class PassMemory:
    """Memory for the passes over several parts of the rows, one after the other in a thread."""

    def __init__(self) -> None:
        self._own = threading.local()

    def take(self, sizes: tuple[int, ...]) -> Scratch:
        """Return arrays of these sizes; what an earlier pass left there is overwritten."""
        own = self._own
        if getattr(own, "sizes", None) != sizes:
            ends = list(accumulate(sizes))
            if getattr(own, "memory", np.empty(0)).size < ends[-1]:
                own.memory = np.empty(ends[-1])
            parts = (own.memory[end - size : end] for size, end in zip(sizes, ends, strict=True))
            own.sizes, own.scratch = sizes, Scratch(*parts)
        scratch: Scratch = own.scratch
        return scratch

    def __reduce__(self) -> tuple[type[PassMemory], tuple[()]]:
        return PassMemory, ()  # what is in it is nobody's


class Expectation:
    """Expected counts for one compiled table; several may share the memory for their passes.

    The work is cut into parts that do not depend on the number of threads. A pass costs
    O(Σ patterns × K²) over the slots; ``_kernels.inference.counts`` has the formulas.
    """

    def __init__(self, patterns: Patterns, shared: PassMemory | None = None) -> None:
        plan = Plan(patterns)
        self._shared = shared or PassMemory()
        self._plan, self.patterns = plan, plan.patterns
        self._slots, self._gather = plan.slots, plan.gather
        memory.require(
            8.0 * sum(plan.scratch_sizes),
            f"a pass over {plan.n_values:,} values of patterns",
            "fit a sample of the rows, or a tree over fewer variables",
        )
        work = plan.slots["n_patterns"] * plan.slots["n_states"] ** 2
        few = plan.slots["n_patterns"].max(initial=0) < _FEW_ROWS
        self.is_tiny = bool(few and work.sum() <= _TINY)
        self._is_tolerant = patterns.emissions.columns.size > 0
        self._sizes = plan.scratch_sizes
        self._emitting = plan.slots[plan.slots["kind"] == EMISSION]
        self._scaled = np.zeros(len(plan.slots), bool)
        states = (work * plan.slots["n_states"]).sum() / work.sum()
        self._kernels: Any = wide_kernels if states >= MANY_STATES else kernels

    @property
    def work(self) -> float:
        """Products of a pass: patterns × K_parent × K over all edges, upward or downward."""
        slots = self._slots
        edges = slots[slots["kind"] == EDGE]
        below = slots["n_states"][edges["a"]]
        return float((edges["n_patterns"] * edges["n_states"] * below).sum())

    @property
    def nbytes(self) -> int:
        """Bytes that are kept between two passes."""
        kept = (self._gather, self._plan.weights, self._slots, self.patterns.slots)
        return sum(array.nbytes for array in kept)

    def run(self, theta: FloatArray, emitted: FloatArray | None = None) -> ExpectedCounts:
        """Log-likelihood and expected counts under the tables ``theta`` (rooted as compiled).

        ``emitted`` holds the logarithms of the likelihoods of emitted values, laid out as the
        patterns' ``emissions`` say; their expected counts take their place.
        """
        with tiny(self.is_tiny):
            if is_interpreted():
                small = self._small_pass.run(theta, emitted)
                result = None if small is None else ExpectedCounts(*small)
            elif emitted is None:
                result = self._run(theta, self.scratch())
            else:
                result = self._run_emitting(theta, emitted, self.scratch())
            return robust_counts(self.patterns, theta, emitted) if result is None else result

    @cached_property
    def _small_pass(self) -> SmallPass:
        return SmallPass(self.patterns)

    def scratch(self) -> Scratch:
        """Return the memory for a pass."""
        return self._shared.take(self._sizes)

    def _run_emitting(
        self, theta: FloatArray, emitted: FloatArray, scratch: Scratch
    ) -> ExpectedCounts | None:
        """Run with the likelihoods of every value relative to that of its best state."""
        starts = self.patterns.emissions.starts
        best = np.empty(self.patterns.emissions.values.size)
        self._kernels.relative_likelihoods(
            self._emitting, starts, emitted, scratch.values, scratch.quads, best
        )
        result = self._run(theta, scratch)
        if result is None:
            return None
        rest = self._kernels.emission_counts(
            self._emitting, starts, scratch.received, scratch.handed, best, emitted
        )
        return result._replace(log_likelihood=result.log_likelihood + rest)

    def _run(self, theta: FloatArray, scratch: Scratch) -> ExpectedCounts | None:
        """Run with plain products; None when information may be lost."""
        plan = self._plan
        if any(threads.run(lambda listed: self._up(listed, theta, scratch), plan.pattern_parts)):
            return None
        handed = scratch.handed.reshape(len(plan.row_parts), plan.n_quads)
        counted = scratch.counts.reshape(len(plan.row_parts), theta.size)
        rows = threads.run(
            lambda part: self._rows(*part, theta, scratch),
            zip(plan.row_parts, counted, handed, strict=True),
        )
        if any(result is None for result in rows):
            return None
        counts = np.zeros(theta.size)
        total = 0.0
        for result in rows:  # in order, whatever thread was first
            assert result is not None
            total += result.log_likelihood
            counts += result.counts
        for more in handed[1:]:
            handed[0] += more
        for part in threads.run(
            lambda part: self._down(part, theta, scratch, counts), plan.down_parts
        ):
            if part is None:
                return None
            total += part
        # The kernels add up R(i)·λ(j)/μ(i); times T[i, j] these are the expected counts.
        counts *= theta
        return ExpectedCounts(total, counts)

    def _up(self, listed: IntArray, theta: FloatArray, scratch: Scratch) -> bool:
        lost = self._kernels.up_patterns(
            self._slots, listed, self._gather, theta, self._is_tolerant,
            scratch.values, scratch.shifts, self._scaled, scratch.quads,
        )  # fmt: skip
        return bool(lost)

    def _rows(
        self,
        part: list[_Rows],
        counts: FloatArray,
        handed: FloatArray,
        theta: FloatArray,
        scratch: Scratch,
    ) -> ExpectedCounts | None:
        """Run ranges of rows into ``counts``; what patterns below receive goes to ``handed``."""
        counts[:] = 0.0
        handed[:] = 0.0
        total = 0.0
        for work in part:
            component = self.patterns.components[work.component]
            prior, root_counts = self._prior(component, theta, counts)
            log_likelihood, lost = self._kernels.run_rows(
                self._slots, work.listed, self._gather, theta, self._is_tolerant,
                scratch.values, scratch.quads, prior,
                self._plan.weights[component["weights"] :], work.first, work.last,
                work.n_values, work.n_received, work.largest, counts, root_counts, handed,
            )  # fmt: skip
            if lost:
                return None
            total += log_likelihood
        return ExpectedCounts(total, counts)

    def _down(
        self, part: _DownPart, theta: FloatArray, scratch: Scratch, counts: FloatArray
    ) -> float | None:
        total, lost = self._kernels.close_patterns(
            self._slots, self.patterns.components, part.components, theta,
            self.patterns.weights, scratch.values, scratch.received, counts,
        )  # fmt: skip
        if lost:
            return None
        correction = self._kernels.down_patterns(
            self._slots, part.listed, self._gather, theta, scratch.values, scratch.shifts,
            self._scaled, scratch.handed, scratch.received, counts,
        )  # fmt: skip
        return float(total - correction)  # Σ w·log of the powers of two that scaled the values

    def _prior(
        self, component: Any, theta: FloatArray, counts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Prior of a component's root, and where its counts go."""
        n_states = int(self._slots["n_states"][component["root"]])
        start = int(component["prior"])
        if start < 0:  # the root is given: nothing to count
            return np.ones(n_states), np.zeros(n_states)
        return theta[start : start + n_states], counts[start : start + n_states]


class _Rows(NamedTuple):
    """A range of rows of a component that runs by row, with the size of its scratch."""

    component: int
    first: int
    last: int
    listed: IntArray
    n_values: int
    n_received: int
    largest: int
    order: NDArray[np.int32]
    """Pattern of the root in every row."""


class _DownPart(NamedTuple):
    """Pattern slots of one part, and the components that are closed in it."""

    components: IntArray
    listed: IntArray


class Plan:
    """Which slots run by row, where their values lie, and how the work is cut into parts."""

    def __init__(self, patterns: Patterns) -> None:
        self.patterns = patterns
        self.slots = patterns.slots.copy()
        self._gather = [patterns.gather]
        self._gather_size = patterns.gather.size
        by_row_components = [
            number for number in range(len(patterns.components)) if self._mark_by_row(number)
        ]
        self._lay_out_patterns()
        self.weights = patterns.weights.copy()
        work = [self._rows(number) for number in by_row_components]
        self.gather = np.concatenate(self._gather)
        # They begin with those of the patterns, which need not be kept twice.
        gather = self.gather[: patterns.gather.size]
        self.patterns = replace(patterns, gather=gather, of_rows=None)
        del self._gather
        self.row_parts = _row_parts(work, self.slots, self.n_quads)
        n_parts = len(self.row_parts)
        counted, handed = n_parts * patterns.layout.size, n_parts * self.n_quads
        emitted = patterns.emissions.n_likelihoods
        self.scratch_sizes = (
            *[self.n_values] * 3,
            counted,
            self.n_quads,
            handed,
            emitted,
            2 * emitted,
        )
        self.pattern_parts, self.down_parts = self._pattern_parts(set(by_row_components))

    def _mark_by_row(self, number: int) -> bool:
        """Mark the slots of a component that run by row, from the root down."""
        component, slots = self.patterns.components[number], self.slots
        root = int(component["root"])
        n_rows = slots["n_patterns"][root]
        # Blocks of rows pay off for many rows, and only a join has patterns of its own.
        if n_rows < _FEW_ROWS or slots["kind"][root] != JOIN:
            return False
        stack = [root]
        while stack:
            slot = stack.pop()
            slots["by_row"][slot] = True
            stack += [part for part in self._parts(slot) if self._runs_by_row(part, n_rows)]
        return True

    def _parts(self, slot: int) -> list[int]:
        record = self.slots[slot]
        parts = {EDGE: ("a",), JOIN: ("a", "b")}.get(int(record["kind"]), ())
        return [int(record[part]) for part in parts]

    def _runs_by_row(self, slot: int, n_rows: int) -> bool:
        record = self.slots[slot]
        if record["kind"] == EDGE:  # an edge has the patterns of what is below it
            record = self.slots[record["a"]]
        return bool(record["kind"] == JOIN and BY_ROW_SHARE * record["n_patterns"] >= n_rows)

    def _lay_out_patterns(self) -> None:
        """Place the values of pattern slots: first those that by-row slots look up, in quads."""
        slots = self.slots
        on_top = np.zeros(len(slots), bool)
        for slot in map(int, np.flatnonzero(slots["by_row"])):
            on_top[[part for part in self._parts(slot) if not slots["by_row"][part]]] = True
        below = ~slots["by_row"] & ~on_top
        order = np.concatenate([np.flatnonzero(on_top), np.flatnonzero(below)])
        filled = on_top.copy()
        for slot in map(int, np.flatnonzero(on_top & (slots["kind"] == JOIN))):
            filled[self._parts(slot)] = True
        n_states = np.where(filled, _in_quads(slots["n_states"]), slots["n_states"])
        sizes = (n_states * slots["n_patterns"])[order]
        ends = np.cumsum(sizes)
        slots["value"][order] = ends - sizes
        slots["received"][order] = ends - sizes
        slots["quads"] = np.where(on_top, slots["value"], -1)
        self.n_values = int(ends[-1]) if ends.size else 0
        self.n_quads = int(sizes[: on_top.sum()].sum())
        self._on_top = on_top

    def _rows(self, number: int) -> _Rows:
        """Give by-row slots their scratch, and index the patterns below them by row."""
        component, slots = self.patterns.components[number], self.slots
        span = np.arange(component["first"], component["root"] + 1)
        listed = span[slots["by_row"][span]]
        n_states = _in_quads(slots["n_states"][listed])
        slots["value"][listed] = np.cumsum(n_states) - n_states
        self._keep_in_quads(listed)
        n_rows = int(slots["n_patterns"][component["root"]])
        pattern_of = {int(component["root"]): np.arange(n_rows, dtype=np.int32)}
        lookups: list[tuple[int, str, int, NDArray[np.int32]]] = []
        n_received = int(n_states[-1])
        slots["received"][listed[-1]] = 0
        for slot in map(int, listed[::-1]):
            record = slots[slot]
            mine = pattern_of.pop(slot)
            for part, key in zip(self._parts(slot), ("index_a", "index_b"), strict=False):
                below = mine if record["kind"] == EDGE else self._lookup(slot, key, mine)
                if slots["by_row"][part]:
                    pattern_of[part] = below
                    if record["kind"] == EDGE:
                        slots["received"][part] = n_received
                        n_received += int(_in_quads(slots["n_states"][part]))
                    else:  # a join hands its parts what it received
                        slots["received"][part] = record["received"]
                else:
                    lookups.append((slot, key, part, below))
        # Rows in the order of the largest part that they look up read and add to it in order.
        sizes = slots["n_states"] * slots["n_patterns"]
        largest = max(lookups, key=lambda each: sizes[each[2]])[3]
        order = np.argsort(largest, kind="stable").astype(np.int32)
        for slot, key, _, below in lookups:
            slots[key][slot] = self._append(below[order])
        first = int(component["weights"])
        self.weights[first : first + n_rows] = self.weights[first : first + n_rows][order]
        return _Rows(
            number, 0, n_rows, listed, int(n_states.sum()), n_received, int(n_states.max()), order
        )

    def _keep_in_quads(self, listed: IntArray) -> None:
        """Mark the by-row joins that stay in quads: parts of a join, of parts in quads alone."""
        slots = self.slots
        in_quads = ~slots["by_row"]
        for slot in map(int, listed):
            if slots["kind"][slot] == JOIN:
                parts = self._parts(slot)
                in_quads[slot] = in_quads[parts].all()
                slots["quads"][
                    [part for part in parts if slots["by_row"][part] & in_quads[part]]
                ] = 0

    def _lookup(self, slot: int, key: str, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        start = int(self.patterns.slots[key][slot])
        return self.patterns.gather[start + rows]

    def _append(self, index: NDArray[np.int32]) -> int:
        self._gather.append(index)
        start = self._gather_size
        self._gather_size += index.size
        return start

    def _pattern_parts(self, by_row: set[int]) -> tuple[list[IntArray], list[_DownPart]]:
        """Cut the pattern slots into whole subtrees, and share these out by their work."""
        slots = self.slots
        roots = self.patterns.components["root"]
        closing = {int(root): c for c, root in enumerate(roots) if c not in by_row}
        is_top = self._on_top.copy()
        is_top[list(closing)] = True
        subtree = np.where(is_top, np.arange(len(slots)), -1)
        pattern_kernels.spread_down(slots, subtree)
        listed = np.flatnonzero(~slots["by_row"])
        # No subtree is cut: its slots hand values up and weights down among each other only.
        work = (slots["n_patterns"] * _products(slots))[listed]
        tops = np.flatnonzero(np.bincount(subtree[listed], minlength=len(slots)))
        load = np.bincount(subtree[listed], work, minlength=len(slots))[tops]
        part_of = np.empty(len(slots), np.int64)
        part_of[tops] = _share_out(load)
        part_of[listed] = part_of[subtree[listed]]
        parts, downs = [], []
        for part in range(int(part_of[listed].max(initial=-1)) + 1):
            members = listed[part_of[listed] == part]
            parts.append(members)
            closed = [closing[slot] for slot in map(int, members) if slot in closing]
            downs.append(_DownPart(np.array(closed, np.int64), members))
        return parts, downs


def _in_quads(n_states: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of states with those that fill up the last quad."""
    return n_states + -n_states % 4


def _products(slots: NDArray[Any]) -> FloatArray:
    """Products of a pattern on the way up: K at a join, K_parent·K at an edge."""
    below = np.where(slots["kind"] == EDGE, slots["n_states"][slots["a"]], 1.0)
    return np.where(np.isin(slots["kind"], (EDGE, JOIN)), slots["n_states"] * below, 0.0)


def _share_out(load: NDArray[Any]) -> IntArray:
    """Put pieces of work into parts of similar size, the largest first."""
    # The number of parts depends on the work alone, so that sums do not depend on the threads.
    n_parts = int(np.clip(load.sum() / _WORK_PER_PART, 1, _MOST_PARTS))
    part_of = np.empty(load.size, np.int64)
    total = np.zeros(n_parts)
    for piece in np.argsort(-load, kind="stable"):
        part_of[piece] = total.argmin()
        total[part_of[piece]] += load[piece]
    used = np.unique(part_of)
    return np.searchsorted(used, part_of)


def _row_parts(work: list[_Rows], slots: NDArray[Any], n_quads: int) -> list[list[_Rows]]:
    """Cut ranges of rows into parts of similar work, each worth the buffer that it needs."""
    # An edge has as many again downward and for the counts.
    each = _products(slots) * np.where(slots["kind"] == EDGE, 3.0, 1.0)
    costs = [float(each[rows.listed].sum()) for rows in work]
    total = sum(cost * rows.last for cost, rows in zip(costs, work, strict=True))
    n_parts = int(np.clip(total / max(_WORK_PER_PART, 2 * n_quads), 1, _MOST_ROW_PARTS))
    share = total / n_parts
    parts: list[list[_Rows]] = [[]]
    room = share
    for cost, rows in zip(costs, work, strict=True):
        first = 0
        while first < rows.last:
            if room <= 0 and len(parts) < n_parts:
                parts.append([])
                room = share
            wanted = int(np.ceil(max(room, 0) / cost / kernels.BLOCK)) * kernels.BLOCK
            is_final = len(parts) == n_parts
            last = rows.last if is_final else min(rows.last, first + max(wanted, kernels.BLOCK))
            parts[-1].append(rows._replace(first=first, last=last))
            room -= cost * (last - first)
            first = last
    return [part for part in parts if part]


def robust_counts(
    patterns: Patterns, theta: FloatArray, emitted: FloatArray | None = None
) -> ExpectedCounts:
    """Log-likelihood and expected counts by logarithms: slower, and safe for any table."""
    messages = Messages(patterns, theta, log_emissions=emitted)
    with np.errstate(invalid="ignore"):  # 0·(−∞): a row of weight 0 counts for nothing
        terms = np.where(patterns.weights > 0, patterns.weights * messages.log_z, 0.0)
    counts = np.zeros(theta.size + patterns.emissions.n_likelihoods)
    log_kernels.expected_counts(
        patterns.slots, patterns.components, patterns.gather, patterns.weights,
        messages.posterior, messages.values, messages.theta, messages.log_theta,
        np.zeros(patterns.n_values), counts,
    )  # fmt: skip
    if emitted is not None:
        emitted[:] = counts[theta.size :]
    return ExpectedCounts(float(terms.sum()), counts[: theta.size])


class Messages:
    """Log-messages of a compiled table, upwards, and the posteriors of the components' roots."""

    def __init__(
        self,
        patterns: Patterns,
        theta: FloatArray,
        maximize: bool = False,
        log_emissions: FloatArray | None = None,
    ) -> None:
        with np.errstate(divide="ignore"):
            log_theta = np.log(theta)
        if log_emissions is not None:
            log_theta = np.concatenate([log_theta, log_emissions])
        self.theta, self.log_theta, self.maximize = theta, log_theta, maximize
        self.values = values = np.empty(patterns.n_values)
        self.patterns = patterns
        self.posterior = np.empty(patterns.n_posteriors)
        self.log_z = np.empty(patterns.weights.size)
        log_kernels.up_messages(patterns.slots, patterns.gather, theta, log_theta, maximize, values)
        for component in patterns.components:
            root = patterns.slots[component["root"]]
            n_states, prior = int(root["n_states"]), int(component["prior"])
            log_prior = np.zeros(n_states) if prior < 0 else log_theta[prior : prior + n_states]
            log_kernels.close_messages(
                root, log_prior, maximize, values, self.log_z[component["weights"] :],
                self.posterior[component["posterior"] :],
            )  # fmt: skip

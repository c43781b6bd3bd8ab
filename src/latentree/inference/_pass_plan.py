"""The plan of a pass over a compiled table: slots that run by row, places of values, parts."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from latentree._kernels.inference import patterns as pattern_kernels
from latentree._kernels.inference.counts import BLOCK
from latentree._kernels.inference.slots import EDGE, JOIN, RowRange
from latentree.inference._patterns import IndexArray, Patterns, Records
from latentree.typing import FloatArray, IntArray

BY_ROW_SHARE = 2
"""Slots with at least 1/BY_ROW_SHARE of their component's rows as patterns run row by row. They
compute a pattern twice at most in the mean, on blocks of rows that stay in the cache."""

FEW_ROWS = 1_000
"""Components with fewer rows run on patterns alone: blocks of rows would save less time than their
kernels take to compile, some seconds."""

_WORK_PER_PART = 160_000
"""Products of a part, about a tenth of a millisecond: less is not worth a thread."""

_MOST_PARTS = 16
"""Most parts of the work on patterns: more threads than that are rare."""

_MOST_ROW_PARTS = 8
"""Most parts of the rows: each keeps sums of its own for all that it hands down."""


class DownPart(NamedTuple):
    """Pattern slots of one part, and the components that are closed in it."""

    components: IntArray
    listed: IntArray


class PassPlan:
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
        self.row_parts = _row_parts(work, self.slots, self.n_handed)
        n_parts = len(self.row_parts)
        counted, handed = n_parts * patterns.layout.size, n_parts * self.n_handed
        emitted = 3 * patterns.emissions.n_likelihoods
        self.scratch_sizes = (*[self.n_values] * 3, counted, handed, emitted)
        self.pattern_parts, self.down_parts = self._pattern_parts(set(by_row_components))

    def _mark_by_row(self, number: int) -> bool:
        """Mark the slots of a component that run by row, from the root down."""
        component, slots = self.patterns.components[number], self.slots
        root = int(component["root"])
        n_rows = slots["n_patterns"][root]
        # Blocks of rows pay off for many rows, and only a join has patterns of its own.
        if n_rows < FEW_ROWS or slots["kind"][root] != JOIN:
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
        """Place the values of pattern slots: first those that by-row slots look up."""
        slots = self.slots
        on_top = np.zeros(len(slots), bool)
        for slot in map(int, np.flatnonzero(slots["by_row"])):
            on_top[[part for part in self._parts(slot) if not slots["by_row"][part]]] = True
        below = ~slots["by_row"] & ~on_top
        order = np.concatenate([np.flatnonzero(on_top), np.flatnonzero(below)])
        sizes = (slots["n_states"] * slots["n_patterns"])[order]
        ends = np.cumsum(sizes)
        slots["value"][order] = ends - sizes
        slots["received"][order] = ends - sizes
        slots["handed"] = np.where(on_top, slots["value"], -1)
        self.n_values = int(ends[-1]) if ends.size else 0
        self.n_handed = int(sizes[: on_top.sum()].sum())
        self._on_top = on_top

    def _rows(self, number: int) -> RowRange:
        """Give by-row slots their scratch, and index the patterns below them by row."""
        component, slots = self.patterns.components[number], self.slots
        span = np.arange(component["first"], component["root"] + 1)
        listed = span[slots["by_row"][span]]
        n_states = slots["n_states"][listed]
        slots["value"][listed] = np.cumsum(n_states) - n_states
        n_rows = int(slots["n_patterns"][component["root"]])
        pattern_of = {int(component["root"]): np.arange(n_rows, dtype=np.int32)}
        lookups: list[tuple[int, str, int, IndexArray]] = []
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
                        n_received += int(slots["n_states"][part])
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
        return RowRange(number, 0, n_rows, order, listed, int(n_states.sum()), n_received)

    def _lookup(self, slot: int, key: str, rows: IndexArray) -> IndexArray:
        start = int(self.patterns.slots[key][slot])
        return self.patterns.gather[start + rows]

    def _append(self, index: IndexArray) -> int:
        self._gather.append(index)
        start = self._gather_size
        self._gather_size += index.size
        return start

    def _pattern_parts(self, by_row: set[int]) -> tuple[list[IntArray], list[DownPart]]:
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
        load = np.bincount(subtree[listed], work, minlength=len(slots))[tops].astype(np.float64)
        part_of = np.empty(len(slots), np.int64)
        part_of[tops] = _share_out(load)
        part_of[listed] = part_of[subtree[listed]]
        parts, downs = [], []
        for part in range(int(part_of[listed].max(initial=-1)) + 1):
            members = listed[part_of[listed] == part]
            parts.append(members)
            closed = [closing[slot] for slot in map(int, members) if slot in closing]
            downs.append(DownPart(np.array(closed, np.int64), members))
        return parts, downs


def _products(slots: Records) -> FloatArray:
    """Products of a pattern on the way up: K at a join, K_parent·K at an edge."""
    below = np.where(slots["kind"] == EDGE, slots["n_states"][slots["a"]], 1.0)
    return np.where(np.isin(slots["kind"], (EDGE, JOIN)), slots["n_states"] * below, 0.0)


def _share_out(load: FloatArray) -> IntArray:
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


def _row_parts(work: list[RowRange], slots: Records, n_handed: int) -> list[list[RowRange]]:
    """Cut ranges of rows into parts of similar work, each worth the buffer that it needs."""
    # An edge has as many again downward and for the counts.
    each = _products(slots) * np.where(slots["kind"] == EDGE, 3.0, 1.0)
    costs = [float(each[rows.listed].sum()) for rows in work]
    total = sum(cost * rows.last for cost, rows in zip(costs, work, strict=True))
    n_parts = int(np.clip(total / max(_WORK_PER_PART, 2 * n_handed), 1, _MOST_ROW_PARTS))
    share = total / n_parts
    parts: list[list[RowRange]] = [[]]
    room = share
    for cost, rows in zip(costs, work, strict=True):
        first = 0
        while first < rows.last:
            if room <= 0 and len(parts) < n_parts:
                parts.append([])
                room = share
            wanted = int(np.ceil(max(room, 0) / cost / BLOCK)) * BLOCK
            is_final = len(parts) == n_parts
            last = rows.last if is_final else min(rows.last, first + max(wanted, BLOCK))
            parts[-1].append(rows._replace(first=first, last=last))
            room -= cost * (last - first)
            first = last
    return [part for part in parts if part]

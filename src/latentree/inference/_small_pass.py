"""Expected counts of small tables in NumPy, which takes less time than to compile the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.inference.slots import (
    EDGE,
    EMISSION,
    EVIDENCE,
    GROW,
    JOIN,
    LOG_GROW,
    SMALL,
    TINY,
)
from latentree.inference._patterns import IndexArray, Patterns
from latentree.typing import BoolArray, FloatArray

_Lookup = NDArray[np.int32] | None


class _Slot(NamedTuple):
    """A slot of ``_kernels.inference.slots``, ready for whole-array operations."""

    kind: int
    a: int
    b: int
    at_a: _Lookup
    """Patterns of part a, one a pattern of the slot; None: they are the same."""
    at_b: _Lookup
    table: slice
    shape: tuple[int, int]
    seen: FloatArray | None
    """Of evidence: 1 for the states that agree with the symbol."""


class SmallPass:
    """The pass of ``_kernels.inference.counts`` on patterns, with the same formulas.

    Parameters
    ----------
    patterns : Patterns
        The compiled table.
    """

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._slots = [_slot(patterns, record) for record in patterns.slots]
        self._is_tolerant = patterns.emissions.columns.size > 0

    def run(
        self, theta: FloatArray, emitted: FloatArray | None = None
    ) -> tuple[float, FloatArray] | None:
        """Log-likelihood and expected counts; None when information may be lost.

        ``emitted`` are the logarithms of the likelihoods of emitted values; their expected counts
        take their place.
        """
        full, best = theta, np.empty(0)
        if emitted is not None:
            full, best = self._with_likelihoods(theta, emitted)
        upward = self._up(full)
        if upward is None:
            return None
        values, shifts = upward
        counts = np.zeros(full.size)
        received = [np.empty((0, 0))] * len(values)
        total = self._close(full, values, received, counts)
        if total is None:
            return None
        total -= self._down(full, values, shifts, received, counts) * LOG_GROW
        if emitted is not None:
            # Σ w·log of the best states' likelihoods, to which the others are relative
            emitted[:] = counts[theta.size :]
            total += float(emitted @ best)
        return total, counts[: theta.size] * theta  # so far counts over T[i, j]

    def _with_likelihoods(
        self, theta: FloatArray, logs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Tables and, behind them, likelihoods relative to the best state's; its logarithms."""
        full = np.concatenate([theta, logs])
        best = np.empty_like(logs)
        for slot in self._slots:
            if slot.kind == EMISSION:
                block = full[slot.table].reshape(slot.shape)
                top = block.max(0)
                best[slot.table.start - theta.size : slot.table.stop - theta.size] = np.tile(
                    top, len(block)
                )
                block -= top
                np.exp(block, out=block)
        return full, best

    def _up(self, full: FloatArray) -> tuple[list[FloatArray], dict[int, BoolArray]] | None:
        """Values of all slots, and the patterns of joins that were scaled up."""
        values: list[FloatArray] = []
        shifts: dict[int, BoolArray] = {}
        for slot in self._slots:
            if slot.kind == EVIDENCE:
                assert slot.seen is not None
                out = slot.seen
            elif slot.kind == EMISSION:
                out = full[slot.table].reshape(slot.shape)
            elif slot.kind == EDGE:
                out = full[slot.table].reshape(slot.shape) @ values[slot.a]
            else:
                a, b = _fetch(values[slot.a], slot.at_a), _fetch(values[slot.b], slot.at_b)
                out = a * b
                if out.min(initial=1.0) < SMALL:
                    exact = EVIDENCE in (self._slots[slot.a].kind, self._slots[slot.b].kind)
                    if self._is_lost(a, b, out, exact):
                        return None
                    top = out.max(0)
                    small = (top > 0.0) & (top < SMALL)
                    out[:, small] *= GROW
                    shifts[len(values)] = small
            values.append(out)
        return values, shifts

    def _is_lost(self, a: FloatArray, b: FloatArray, out: FloatArray, exact: bool) -> bool:
        """Whether products that are too small for a number hide information (``_rescale``)."""
        top = out.max(0)
        if self._is_tolerant:
            return bool((top < TINY).any())
        if ((top < TINY) & (top > 0.0)).any():
            return True
        return not exact and bool(((out < TINY) & (a > 0.0) & (b > 0.0)).any())

    def _close(
        self,
        full: FloatArray,
        values: list[FloatArray],
        received: list[FloatArray],
        counts: FloatArray,
    ) -> float | None:
        """Close all roots: z = Σ_k prior(k)·λ(k), R(k) = w·prior(k)·λ(k)/z."""
        total = 0.0
        for component in self._patterns.components:
            root, start = int(component["root"]), int(component["prior"])
            row = values[root]
            own = slice(start, start + len(row))
            prior = np.ones(len(row)) if start < 0 else full[own]
            first = int(component["weights"])
            w = self._patterns.weights[first : first + row.shape[1]]
            z = prior @ row
            is_possible = z >= TINY
            if (w[~is_possible] > 0.0).any():
                return None
            total += float(w[is_possible] @ np.log(z[is_possible]))
            share = np.where(is_possible, w / z, 0.0)
            if start >= 0:
                counts[own] += row @ share
            received[root] = prior[:, None] * (row * share)
        return total

    def _down(
        self,
        full: FloatArray,
        values: list[FloatArray],
        shifts: dict[int, BoolArray],
        received: list[FloatArray],
        counts: FloatArray,
    ) -> float:
        """Hand posterior weights down and add up counts; returns the weight that was scaled."""
        correction = 0.0
        for number in range(len(values) - 1, -1, -1):
            slot, mine = self._slots[number], received[number]
            if slot.kind == EDGE:
                message, below = values[number], values[slot.a]
                ratio = np.where(message > TINY, mine / message, 0.0)
                counts[slot.table] += (ratio @ below.T).ravel()
                received[slot.a] = below * (full[slot.table].reshape(slot.shape).T @ ratio)
            elif slot.kind == JOIN:
                received[slot.a] = _scatter(mine, slot.at_a, values[slot.a].shape[1])
                received[slot.b] = _scatter(mine, slot.at_b, values[slot.b].shape[1])
                if number in shifts:
                    correction += float(mine[:, shifts[number]].sum())
            elif slot.kind == EMISSION:
                counts[slot.table] = mine.ravel()
        return correction


def _slot(patterns: Patterns, record: np.void) -> _Slot:
    """Read a slot, with its lookups and evidence laid out."""
    kind, n_states, width = (int(record[key]) for key in ("kind", "n_states", "n_patterns"))
    a, b, table = (int(record[key]) for key in ("a", "b", "table"))
    at = [
        patterns.gather[int(record[key]) : int(record[key]) + width]
        for key in ("index_a", "index_b")
    ]
    seen, at_a, at_b, shape = None, None, None, (n_states, width)
    if kind == EVIDENCE:
        seen = ((at[0] == np.arange(n_states)[:, None]) | (at[0] < 0)).astype(float)
    elif kind == EDGE:
        shape = (n_states, int(patterns.slots["n_states"][a]))
    elif kind == JOIN:
        widths = patterns.slots["n_patterns"][[a, b]]
        at_a, at_b = _lookup(at[0], widths[0]), _lookup(at[1], widths[1])
    return _Slot(kind, a, b, at_a, at_b, slice(table, table + shape[0] * shape[1]), shape, seen)


def _lookup(at: IndexArray, n_patterns: int) -> _Lookup:
    """Return the patterns of a part, or None if they are all of them in order."""
    return None if np.array_equal(at, np.arange(n_patterns)) else at


def _fetch(part: FloatArray, at: _Lookup) -> FloatArray:
    """Values of a part for the patterns of a join."""
    return part if at is None else part.take(at, 1)


def _scatter(weights: FloatArray, at: _Lookup, n_patterns: int) -> FloatArray:
    """Sum what the patterns of a join hand to those of a part."""
    if at is None:
        return weights
    return np.array([np.bincount(at, row, n_patterns) for row in weights])

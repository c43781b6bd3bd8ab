"""Expected counts of a discrete tree on a compiled table: the expectation step of EM."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from latentree import _memory as memory
from latentree._kernels import threads
from latentree._kernels.compiling import is_interpreted, tiny
from latentree._kernels.inference import counts as kernels
from latentree._kernels.inference.slots import EDGE, EMISSION, PassInput, RowRange
from latentree.inference._emissions import Emission, Unit
from latentree.inference._log_messages import LogMessages
from latentree.inference._pass_plan import FEW_ROWS, DownPart, PassPlan
from latentree.inference._patterns import Patterns
from latentree.inference._small_pass import SmallPass
from latentree.typing import FloatArray, IntArray

_TINY = 250_000
"""Most products, Σ patterns × K², of a pass that runs in NumPy: a millisecond or less."""


class ExpectedCounts(NamedTuple):
    """The result of an E-step."""

    log_likelihood: float
    counts: FloatArray
    """In the layout of the tables."""
    leaves: tuple[Any, ...] = ()
    """Expected sums of every leaf without states, in the order of the columns."""

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:  # type: ignore[override]
        """Return the sums over both parts of the rows."""
        leaves = zip(self.leaves, other.leaves, strict=True)
        return ExpectedCounts(
            self.log_likelihood + other.log_likelihood,
            self.counts + other.counts,
            tuple(a + b for a, b in leaves),
        )

    def scaled(self, factor: float) -> ExpectedCounts:
        """Return those of rows that count so much more."""
        leaves = tuple(factor * sums for sums in self.leaves)
        return ExpectedCounts(factor * self.log_likelihood, factor * self.counts, leaves)


class Scratch(NamedTuple):
    """The memory of a pass; nothing in it is kept for the next one."""

    values: FloatArray
    """A number per state and pattern of all slots, as the next two."""
    received: FloatArray
    shifts: FloatArray
    counts: FloatArray
    """Counts of each part of the rows, a number an entry of the tables."""
    handed: FloatArray
    """Posterior weights that each part of the rows hands down to patterns."""
    emitted: FloatArray
    """Likelihoods of values of leaves without states, and twice as much for the leaves."""


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
    O(Σ patterns × K²) over the slots; ``_kernels.inference.slots`` has the formulas.
    """

    def __init__(self, patterns: Patterns, shared: PassMemory | None = None) -> None:
        plan = PassPlan(patterns)
        self._shared = shared or PassMemory()
        self._plan, self.patterns = plan, plan.patterns
        self._slots, self._gather = plan.slots, plan.gather
        memory.require(
            8.0 * sum(plan.scratch_sizes),
            f"a pass over {plan.n_values:,} values of patterns",
            "fit a sample of the rows, or a tree over fewer variables",
        )
        work = plan.slots["n_patterns"] * plan.slots["n_states"] ** 2
        few = plan.slots["n_patterns"].max(initial=0) < FEW_ROWS
        self.is_tiny = bool(few and work.sum() <= _TINY)
        self._is_tolerant = patterns.emissions.columns.size > 0
        self._sizes = plan.scratch_sizes
        self._emitting = plan.slots[plan.slots["kind"] == EMISSION]
        self._scaled = np.zeros(len(plan.slots), bool)

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

    def expect(
        self,
        theta: FloatArray,
        emissions: Sequence[Emission | None] = (),
        units: Mapping[int, Unit] | None = None,
    ) -> ExpectedCounts:
        """Run the E-step with the emissions of all columns: what an engine runs in every step."""
        places = self.patterns.emissions
        if not places.columns.size:
            return self.run(theta)
        room, leaves = self.scratch().emitted.reshape(3, -1), []
        with tiny(self.is_tiny):
            for column, values, place in self._leaves:
                emission = emissions[column]
                assert emission is not None
                own = room[:, place].reshape(3, -1, values.size)
                logs, within = emission.likelihoods(values, own)
                if not np.may_share_memory(logs, own):
                    own[0] = logs
                leaves.append((emission, values, own[0], within, (units or {}).get(column)))
            result = self.run(theta, room[0])
            sums = [emission.expected(*rest) for emission, *rest in leaves]
        return result._replace(leaves=tuple(sums))

    @cached_property
    def _leaves(self) -> list[tuple[int, FloatArray, slice]]:
        """Column, distinct values and place of likelihoods of the leaves, in order of columns."""
        places = self.patterns.emissions
        ends = places.starts + places.n_states * places.sizes
        return [
            (int(places.columns[e]), places.values_of(e), slice(places.starts[e], ends[e]))
            for e in np.argsort(places.columns).tolist()
        ]

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
        kernels.relative_likelihoods(self._emitting, starts, emitted, scratch.values, best)
        result = self._run(theta, scratch)
        if result is None:
            return None
        rest = kernels.emission_counts(
            self._emitting, starts, scratch.received, scratch.handed, best, emitted
        )
        return result._replace(log_likelihood=result.log_likelihood + rest)

    def _run(self, theta: FloatArray, scratch: Scratch) -> ExpectedCounts | None:
        """Run with plain products; None when information may be lost."""
        plan = self._plan
        given = PassInput(self._slots, self._gather, theta, self._is_tolerant)
        if any(threads.run(lambda listed: self._up(listed, given, scratch), plan.pattern_parts)):
            return None
        handed = scratch.handed.reshape(len(plan.row_parts), plan.n_handed)
        counted = scratch.counts.reshape(len(plan.row_parts), theta.size)
        rows = threads.run(
            lambda part: self._rows(*part, given, scratch),
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
            lambda part: self._down(part, given, scratch, counts), plan.down_parts
        ):
            if part is None:
                return None
            total += part
        # The kernels add up R(i)·λ(j)/μ(i); times T[i, j] these are the expected counts.
        counts *= theta
        return ExpectedCounts(total, counts)

    def _up(self, listed: IntArray, given: PassInput, scratch: Scratch) -> bool:
        """Fill the listed slots on patterns; True if information may be lost."""
        lost = kernels.up_patterns(given, listed, scratch.values, scratch.shifts, self._scaled)
        return bool(lost)

    def _rows(
        self,
        part: list[RowRange],
        counts: FloatArray,
        handed: FloatArray,
        given: PassInput,
        scratch: Scratch,
    ) -> ExpectedCounts | None:
        """Run ranges of rows into ``counts``; what patterns below receive goes to ``handed``."""
        counts[:] = 0.0
        handed[:] = 0.0
        total = 0.0
        for span in part:
            component = self.patterns.components[span.component]
            prior, root_counts = self._prior(component, given.theta, counts)
            weights = self._plan.weights[component["weights"] :]
            log_likelihood, lost = kernels.run_rows(
                given, span, scratch.values, prior, weights, counts, root_counts, handed,
            )  # fmt: skip
            if lost:
                return None
            total += log_likelihood
        return ExpectedCounts(total, counts)

    def _down(
        self, part: DownPart, given: PassInput, scratch: Scratch, counts: FloatArray
    ) -> float | None:
        """Close components and hand posterior weights down; returns the log-likelihood."""
        total, lost = kernels.close_patterns(
            given, self.patterns.components, part.components, self.patterns.weights,
            scratch.values, scratch.received, counts,
        )  # fmt: skip
        if lost:
            return None
        correction = kernels.down_patterns(
            given, part.listed, scratch.values, scratch.shifts, self._scaled,
            scratch.handed, scratch.received, counts,
        )  # fmt: skip
        return float(total - correction)  # Σ w·log of the powers of two that scaled the values

    def _prior(
        self, component: np.void, theta: FloatArray, counts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the prior of a component's root, and where its counts go."""
        n_states = int(self._slots["n_states"][component["root"]])
        start = int(component["prior"])
        if start < 0:  # the root is given: nothing to count
            return np.ones(n_states), np.zeros(n_states)
        return theta[start : start + n_states], counts[start : start + n_states]


def robust_counts(
    patterns: Patterns, theta: FloatArray, emitted: FloatArray | None = None
) -> ExpectedCounts:
    """Log-likelihood and expected counts by logarithms: slower, and safe for any table."""
    messages = LogMessages(patterns, theta, log_emissions=emitted)
    with np.errstate(invalid="ignore"):  # 0·(−∞): a row of weight 0 counts for nothing
        terms = np.where(patterns.weights > 0, patterns.weights * messages.log_z, 0.0)
    counts = messages.expected_counts()
    if emitted is not None:
        emitted[:] = counts[theta.size :]
    return ExpectedCounts(float(terms.sum()), counts[: theta.size])

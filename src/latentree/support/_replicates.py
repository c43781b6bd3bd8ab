"""From weights of rows to statistics, to trees: the replicates of a bootstrap."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar, cast

import numpy as np
from threadpoolctl import threadpool_limits

from latentree import _memory as memory
from latentree._kernels import threads
from latentree._kernels.compiling import repeated
from latentree.data import Parts, Table, cut_table
from latentree.distances import (
    Sample,
    Statistics,
    StatisticsPlan,
    distances_among_candidates,
    part_statistics,
)
from latentree.errors import DataError, DataWarning
from latentree.structure import learn_structure
from latentree.support._draws import Draws
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

Learner = Callable[[Sample], Tree]
"""Learns the tree of a replicate."""

Found = TypeVar("Found")

Progress = Callable[[int, int, str], None]
"""Called with the replicates done, their number, and what is under way."""

_BATCH_SHARE = 0.2  # of the memory available, for the statistics of replicates taken in one pass
_MOST_AT_ONCE = 64  # replicates of one pass over data that is read in parts
_TINY_COLUMNS, _FEW_TREES = 12, 150  # learned uncompiled before the kernels are even loaded


def by_distances(method: str, components: IntArray) -> Learner:
    """Return a learner that needs distances only; which variables hang together stays as it is.

    A test of independence would find dependence too often in rows that were drawn twice.
    """

    def learn(sample: Sample) -> Tree:
        distances = replace(sample.distances, components=components)
        return learn_structure(distances, method)

    return learn


def of_replicates(
    sample: Sample,
    learners: Sequence[Callable[[Sample], Found]],
    n_replicates: int,
    draws: Draws,
    time_limit: float | None = None,
    progress: Progress | None = None,
    candidates: IntArray | None = None,
) -> list[tuple[Found, ...]]:
    """Return, for every replicate, what the learners (or other functions) find in its rows.

    Replicates are spread over threads, and each runs on one: so results do not depend on their
    number. A keyboard interrupt, or the end of the time, ends it early with the first replicates,
    if there is one. With ``candidates``, rows in memory get distances on demand, whose spanning
    tree is looked for among these pairs.
    """
    done: list[tuple[Found, ...]] = []
    end = math.inf if time_limit is None else time.monotonic() + time_limit
    is_tiny = sample.n_columns <= _TINY_COLUMNS and n_replicates * len(learners) <= _FEW_TREES
    many = contextlib.nullcontext() if is_tiny else repeated()
    with _one_thread_each(), many, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            for found in _in_order(_Source(sample, draws, candidates), learners, n_replicates):
                done.append(found)
                if progress is not None:
                    progress(len(done), n_replicates, "learning from resampled rows")
                if time.monotonic() > end:
                    break
        except KeyboardInterrupt:
            if not done:
                raise
    return done


def _in_order(
    source: _Source, learners: Sequence[Callable[[Sample], Found]], n_replicates: int
) -> Iterator[tuple[Found, ...]]:
    def learn(made: Sample) -> tuple[Found, ...]:
        return tuple(learner(made) for learner in learners)

    if source.is_in_memory:
        yield from threads.each(lambda n: learn(source.replicate(n)), range(n_replicates))
        return
    for start in range(0, n_replicates, source.at_once):
        batch = range(start, min(start + source.at_once, n_replicates))
        yield from threads.each(learn, source.replicates(batch))


def draws_of(sample: Sample, seed: int, block_length: int | None) -> Draws:
    """Return the draws of a sample's rows; of its distinct rows where these are known."""
    distinct = sample.statistics.rows
    if block_length is None and distinct is not None and distinct.weights is not None:
        return Draws(seed, distinct.weights.size, distinct.weights)
    try:
        parts = sample.parts
    except DataError:
        raise DataError(
            "support draws rows anew, but only their sums are known: fit the data as a whole"
        ) from None
    weights = list(parts.tables.each(_weights_of))
    is_weighted = any(each is not None for each in weights)
    own = np.concatenate(cast(list[FloatArray], weights)) if is_weighted else None
    return Draws(seed, parts.n_rows, own, block_length)


def _weights_of(table: Table) -> FloatArray | None:
    return table.weights


@dataclass(frozen=True, eq=False)
class _Source:
    """The rows that replicates are made of: all rows, or the distinct ones with their weights."""

    sample: Sample
    draws: Draws
    candidates: IntArray | None = None
    """Pairs among which spanning trees are looked for; None for all."""

    @property
    def is_in_memory(self) -> bool:
        return self._whole is not None

    @property
    def _whole(self) -> Table | None:
        rows = self.sample.statistics.rows
        if self._is_distinct and rows is not None:
            assert rows.codes is not None
            return Table(rows.codes, self.sample.schema)
        return self.sample.parts.whole

    @property
    def _is_distinct(self) -> bool:
        rows = self.sample.statistics.rows
        has_distinct = rows is not None and rows.codes is not None
        return has_distinct and self.draws.block_length is None

    @property
    def at_once(self) -> int:
        """Replicates whose statistics are summed in one pass over the rows."""
        m = self.sample.n_columns
        each = 32.0 * m * m  # about: sums, distances, and what is added to them
        return int(np.clip(_BATCH_SHARE * memory.available() / each, 1, _MOST_AT_ONCE))

    def replicate(self, number: int) -> Sample:
        """Return the rows of a replicate, and their statistics, from rows in memory."""
        whole = self._whole
        assert whole is not None
        weights = self.draws.of_rows(number, 0, whole.n_rows)
        if self._is_distinct:  # most replicates leave some distinct rows out
            drawn = np.flatnonzero(weights)
            table = Table(whole.values[drawn], whole.schema, weights[drawn])
            made = Sample(cut_table(table), part_statistics(table, self._plan))
        else:
            parts = self.sample.parts.weighted(weights)
            made = Sample(parts, parts.tables.total(part_statistics, self._plan))
        if self.candidates is not None:
            made.distances = distances_among_candidates(
                made.table, made.statistics, self.candidates
            )
        return _checked(made)

    def replicates(self, numbers: range) -> list[Sample]:
        """Return the statistics of several replicates, from one pass over rows that are read."""
        parts = self.sample.parts
        starts = range(0, parts.n_rows, parts.step)
        pieces = parts.tables.paired(_located, starts)
        found = pieces.total(_weighted_statistics, self._plan, self.draws, numbers)
        return [
            _checked(Sample(_reweighted(parts, self.draws, number), statistics))
            for number, statistics in zip(numbers, found.each, strict=True)
        ]

    @property
    def _plan(self) -> StatisticsPlan:
        """The units of the data itself; distinct rows are not looked for again."""
        plan = self.sample.statistics.plan
        return replace(plan, distinct=False, pairs=plan.pairs and self.candidates is None)


def _reweighted(parts: Parts, draws: Draws, number: int) -> Parts:
    """Return parts whose rows have the weights of a replicate, drawn when they are read."""
    starts = range(0, parts.n_rows, parts.step)
    return replace(parts, tables=parts.tables.paired(partial(_drawn, draws, number), starts))


def _drawn(draws: Draws, number: int, table: Table, start: int) -> Table:
    return Table(table.values, table.schema, draws.of_rows(number, start, start + table.n_rows))


def _checked(sample: Sample) -> Sample:
    if sample.statistics.n_counted < 2:
        raise DataError("a replicate has one distinct row only: there are too few rows to resample")
    return sample


def _located(table: Table, start: int) -> tuple[Table, int]:
    """Return a part of the rows with the number of its first row."""
    return table, start


@dataclass(frozen=True)
class _Batch:
    """Statistics of several replicates, which add up over parts."""

    each: tuple[Statistics, ...]

    def __add__(self, other: _Batch) -> _Batch:
        return _Batch(tuple(a + b for a, b in zip(self.each, other.each, strict=True)))


def _weighted_statistics(
    piece: tuple[Table, int], plan: StatisticsPlan, draws: Draws, numbers: range
) -> _Batch:
    """Take the statistics of one part in several replicates."""
    table, start = piece

    def one(number: int) -> Statistics:
        return part_statistics(_drawn(draws, number, table, start), plan)

    return _Batch(tuple(threads.run(one, numbers)))


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let linear algebra run on one thread: the replicates are spread over all already."""
    with threadpool_limits(1, "blas"):
        yield

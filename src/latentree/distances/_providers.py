"""How distances are held: as a matrix, or as dependence that is computed in blocks on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from latentree import _memory as memory
from latentree._kernels import threads
from latentree.data import Parts, cut_table
from latentree.distances._arrays import in_parts
from latentree.distances._block_dependence import BlockDependence
from latentree.distances._matrix_checks import frozen
from latentree.distances._pair_tests import Evidence, pair_evidence, real_evidence
from latentree.distances._statistics import Statistics, gather
from latentree.typing import AnyArray, BoolArray, FloatArray, Index, IntArray

WEAKEST = 1e-8
"""Dependence |r| below this counts as this, so that a distance is at most 18.4 times c."""

EVERY = slice(None)

_TILE = 512
"""Rows and columns of the tiles that threads turn into distances: 2 MB each."""

_SPAN = 2048
"""Columns of the blocks in which learners go through all pairs."""


@dataclass(frozen=True, eq=False)
class MatrixDistances:
    """A matrix of distances −c·log|r|."""

    matrix: FloatArray
    sign_matrix: NDArray[np.int8]
    precision: float | FloatArray | None
    """1 / variance of r for an independent pair; None for distances without a statistic."""
    exponent: float
    marked: BoolArray | None = None
    evidence: Callable[[IntArray | None], Evidence] | None = None
    """Evidence against independence of some columns, where it is more than that of r."""
    span = _SPAN

    @cached_property
    def longest(self) -> float:
        if self.precision is None:
            return float(self.matrix.max(initial=0.0))
        return float(-self.exponent * np.log(WEAKEST))

    def distances_of(self, first: IntArray, second: IntArray) -> FloatArray:
        return self.matrix[first, second]

    def signs_of(self, first: IntArray, second: IntArray) -> NDArray[np.int8]:
        return self.sign_matrix[first, second]

    def strengths_of(self, first: IntArray, second: IntArray) -> FloatArray:
        precision, marked = self.precision, self.marked
        if precision is None:
            strength = np.full(first.size, np.inf)
            if marked is not None:
                strength[marked[first, second]] = 0.0
            return strength
        if isinstance(precision, np.ndarray):
            precision = precision[first, second]
        r = np.exp(self.matrix[first, second] / -self.exponent)
        return np.asarray(r * np.sqrt(precision))

    def distances(self, rows: Index, columns: Index) -> FloatArray:
        return _cut(self.matrix, rows, columns).copy()

    def signs(self, rows: Index, columns: Index) -> NDArray[np.int8]:
        return _cut(self.sign_matrix, rows, columns).copy()

    def strengths(self, rows: Index, columns: Index) -> FloatArray:
        d = _cut(self.matrix, rows, columns)
        if self.precision is None:
            strength = np.full(d.shape, np.inf)
            if self.marked is not None:
                strength[_cut(self.marked, rows, columns)] = 0.0
            return strength
        precision = self.precision
        if isinstance(precision, np.ndarray):
            precision = _cut(precision, rows, columns)
        strength = np.exp(d / -self.exponent)
        strength *= np.sqrt(precision)
        return strength

    def subset(self, index: IntArray) -> MatrixDistances:
        def cut(array: AnyArray) -> AnyArray:
            return frozen(_cut(array, index, index))

        precision = self.precision
        return MatrixDistances(
            cut(self.matrix),
            cut(self.sign_matrix),
            cut(precision) if isinstance(precision, np.ndarray) else precision,
            self.exponent,
            None if self.marked is None else cut(self.marked),
            None if self.evidence is None else partial(_selected, self.evidence, index),
        )


@dataclass(frozen=True, eq=False)
class BlockDistances:
    """A statistic, and which of its variables are meant (None for all)."""

    statistic: BlockDependence
    chosen: IntArray | None
    candidates: IntArray | None = None
    """Pairs among which a spanning tree is looked for, by their numbers here; None for all."""

    def _r(self, rows: Index, columns: Index) -> FloatArray:
        return self.statistic.block(self._of(rows), self._of(columns))

    def _of(self, index: Index) -> Index:
        return index if self.chosen is None else self.chosen[index]

    @property
    def exponent(self) -> float:
        return self.statistic.exponent

    @property
    def longest(self) -> float:
        return float(-self.statistic.exponent * np.log(WEAKEST))

    @property
    def span(self) -> int:
        return max(_SPAN, self.statistic.span)

    def distances(self, rows: Index, columns: Index) -> FloatArray:
        d = self._r(rows, columns)
        if d.size < _TILE * _TILE:
            d = self._to_distances(d)
        else:
            in_parts(len(d), lambda part: self._overwrite(d[part]))
        d[self._same(rows, columns)] = 0.0
        return d

    def _same(self, rows: Index, columns: Index) -> tuple[IntArray, IntArray]:
        """Where in a block a variable meets itself."""
        a, b = (self._numbers(self._of(index)) for index in (rows, columns))
        among = np.flatnonzero(np.isin(a, b)) if a.size > _TILE else np.arange(a.size)
        row, column = np.nonzero(np.equal.outer(a[among], b))
        return among[row], column

    def _numbers(self, index: Index) -> IntArray:
        return np.arange(self.statistic.n_variables)[index] if isinstance(index, slice) else index

    def _r_of(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return r of pairs, of each with the higher number first."""
        a, b = np.asarray(self._of(first)), np.asarray(self._of(second))
        return self.statistic.pairs(np.maximum(a, b), np.minimum(a, b))

    def distances_of(self, first: IntArray, second: IntArray) -> FloatArray:
        d = self._to_distances(self._r_of(first, second))
        d[first == second] = 0.0
        return d

    def _to_distances(self, r: FloatArray) -> FloatArray:
        return _to_distances(r, self.statistic.exponent, self.statistic.rounding)

    def _overwrite(self, r: FloatArray) -> None:
        r[...] = self._to_distances(r)

    def signs_of(self, first: IntArray, second: IntArray) -> NDArray[np.int8]:
        return _signs_of(self._r_of(first, second))

    def strengths_of(self, first: IntArray, second: IntArray) -> FloatArray:
        r = np.abs(self._r_of(first, second))
        precision = self.statistic.pair_precisions(
            np.asarray(self._of(first)), np.asarray(self._of(second))
        )
        return np.asarray(r * np.sqrt(precision))

    def signs(self, rows: Index, columns: Index) -> NDArray[np.int8]:
        return _signs_of(self._r(rows, columns))

    def strengths(self, rows: Index, columns: Index) -> FloatArray:
        r = np.abs(self._r(rows, columns))
        r[self._same(rows, columns)] = 1.0
        r *= np.sqrt(self.statistic.precisions(self._of(rows), self._of(columns)))
        return r

    def subset(self, index: IntArray) -> BlockDistances:
        near = None
        if self.candidates is not None:
            number = np.full(self.statistic.n_variables, -1)
            number[index] = np.arange(index.size)
            near = number[self.candidates]
            near = near[(near >= 0).all(axis=1)]
        return BlockDistances(self.statistic, np.asarray(self._of(index)), near)

    def evidence(self, columns: IntArray | None) -> Evidence:
        """Return the evidence against independence of some columns, from sums of their pairs."""
        table = self.statistic.table
        chosen = self.chosen if columns is None else np.asarray(self._of(columns))
        rows = cut_table(table if chosen is None else table.select(chosen))
        if table.family != "gaussian":
            return pair_evidence(gather(rows, pairs=True), rows)
        own = self if columns is None else self.subset(columns)
        sums = self.statistic.statistics
        sums = sums if chosen is None else sums.select(chosen)
        every: Index = EVERY if chosen is None else chosen
        n = self.statistic.precisions(every, every)
        return real_evidence(np.exp(-own.distances(EVERY, EVERY)), n, sums, rows)

    def dense_size(self) -> float:
        """Bytes of the whole matrix: distances, signs, and counts if they differ."""
        first = np.zeros(1, np.int64)
        same = isinstance(self.statistic.pair_precisions(first, first), float)
        m = self.statistic.n_variables if self.chosen is None else self.chosen.size
        return (9.0 if same else 17.0) * m**2

    def to_dense(self) -> MatrixDistances:
        """Compute the whole matrix; raise if it does not fit into memory."""
        statistic = self.statistic
        m = statistic.n_variables if self.chosen is None else self.chosen.size
        memory.require(
            self.dense_size(),
            f"the matrix of distances between {m:,} variables",
            "CLGrouping (clnj, clrg), cl_blind and chow_liu do without it, from distances on "
            "demand: information_distances(X, dense=False)",
        )
        every: Index = EVERY if self.chosen is None else self.chosen
        d = statistic.lower() if self.chosen is None else statistic.block(every, every)
        precision = frozen_precision(statistic.precisions(every, every))
        signs = distances_in_place(d, statistic.exponent, statistic.rounding)
        return MatrixDistances(frozen(d), frozen(signs), precision, statistic.exponent)


def evidence_of_matrix(
    matrix: FloatArray, statistics: Statistics, rows: Parts | None, columns: IntArray | None
) -> Evidence:
    """Return the evidence of some real columns, from their distances −log|r|."""
    if columns is not None:
        matrix, statistics = matrix[np.ix_(columns, columns)], statistics.select(columns)
    return real_evidence(np.exp(-matrix), statistics.sums.pair_weights(), statistics, rows)


def _selected(
    evidence: Callable[[IntArray | None], Evidence], among: IntArray, columns: IntArray | None
) -> Evidence:
    return evidence(among if columns is None else among[columns])


def frozen_precision(precision: float | FloatArray) -> float | FloatArray:
    return frozen(precision) if isinstance(precision, np.ndarray) else precision


def distances_in_place(r: FloatArray, exponent: float, rounding: float) -> NDArray[np.int8]:
    """Turn the lower triangle of r into a whole matrix of distances, in place; return the signs.

    Tile by tile on threads: each tile is read once, and written to both sides of the diagonal.
    """
    m = r.shape[0]
    signs = np.empty((m, m), np.int8)
    cuts = [slice(start, min(m, start + _TILE)) for start in range(0, m, _TILE)]

    def one(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        own = r[rows, columns]
        if rows == columns:
            own = np.tril(own) + np.tril(own, -1).T
            np.fill_diagonal(own, 1.0)
        s = _signs_of(own)
        signs[rows, columns] = s
        signs[columns, rows] = s.T
        d = _to_distances(own, exponent, rounding)
        r[rows, columns] = d
        r[columns, rows] = d.T

    threads.run(one, [(a, b) for i, a in enumerate(cuts) for b in cuts[: i + 1]])
    return signs


def _to_distances(r: FloatArray, exponent: float, rounding: float) -> FloatArray:
    """Return −c·log|r|, with |r| between the weakest and exactly 1."""
    a = np.abs(r)
    a[a > 1.0 - rounding] = 1.0  # duplicate columns
    np.maximum(a, WEAKEST, out=a)
    np.log(a, out=a)
    a *= -exponent
    a += 0.0  # no −0.0
    return a


def _signs_of(r: FloatArray) -> NDArray[np.int8]:
    signs: NDArray[np.int8] = (r >= 0).view(np.int8)
    signs *= 2
    signs -= 1
    return signs


def _cut(array: AnyArray, rows: Index, columns: Index) -> AnyArray:
    if isinstance(rows, slice) or isinstance(columns, slice):
        return array[rows][:, columns]
    return array[np.ix_(rows, columns)]

"""Mutual information of discrete columns, of one with all at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from latentree._kernels.distances import pairs as kernels
from latentree.distances._arrays import inverse
from latentree.distances._lines import Lines, sum_up
from latentree.distances._pair_sums import PairSums
from latentree.distances._sums import Sums
from latentree.typing import FloatArray, IntArray

InformationOf = Callable[[int], FloatArray]
"""Given a column, its mutual information with every column in nats, with itself the entropy."""


def information_of(sums: Sums, lines: Sequence[Lines] | None) -> InformationOf:
    """Return the function that reads mutual information off sums of pairs of discrete columns.

    Where the sums do not hold these, they are taken from the lines when they are asked for.
    """
    functions = sums.functions
    starts, every = functions.starts, np.arange(functions.schema.n_columns)

    def pairs_with(column: int) -> PairSums:
        if lines is not None:
            return sum_up(lines, np.array([column]), every)
        assert sums.pairs is not None
        return sums.pairs.block(np.array([column]), every, functions)

    if sums.complete and (np.diff(starts) == 1).all():
        if sums.pairs is not None and lines is None:
            return _of_ones(sums, sums.pairs.cross.__getitem__)
        return _of_ones(sums, lambda column: pairs_with(column).cross[0])
    first, at_columns = np.zeros(1, np.int64), sums.starts[:-1]

    def read(column: int) -> FloatArray:
        own = np.array([0, starts[column + 1] - starts[column]])
        row: FloatArray = information(pairs_with(column).tables(own, starts), first, at_columns)[0]
        return row

    return read


def _of_ones(sums: Sums, common_with: Callable[[int], FloatArray]) -> InformationOf:
    """Return the function for 0/1 columns without gaps, from the counts of common ones."""
    ones, n = sums.single[1::2].copy(), sums.total
    alone = _xlogx(ones) + _xlogx(n - ones)

    def read(column: int) -> FloatArray:
        out = np.empty(ones.size)
        kernels.information_of_ones(common_with(column), n, column, ones, alone, out)
        return out

    return read


def information(joint: FloatArray, at_rows: IntArray, at_columns: IntArray) -> FloatArray:
    """Return I = (Σ g(J) − Σ g(row sums) − Σ g(column sums) + g(N)) / N, with g(x) = x·log x.

    ``joint`` holds counts of pairs of states laid end to end; the states of each variable start at
    ``at_rows`` and ``at_columns``.
    """
    # ``reduceat`` sums the states of each variable: row sums, column sums and N of every pair.
    over_columns = np.add.reduceat(joint, at_columns, axis=1)
    over_rows = np.add.reduceat(joint, at_rows, axis=0)
    n = np.add.reduceat(over_columns, at_rows, axis=0)
    total = np.add.reduceat(np.add.reduceat(_xlogx(joint), at_columns, axis=1), at_rows, axis=0)
    total -= np.add.reduceat(_xlogx(over_columns), at_rows, axis=0)
    total -= np.add.reduceat(_xlogx(over_rows), at_columns, axis=1)
    total += _xlogx(n)
    return np.maximum(total * inverse(n), 0.0)  # rounding can leave independence just below 0


def _xlogx(x: FloatArray) -> FloatArray:
    # Rounding can leave a weighted count just below 0.
    return np.asarray(x * np.log(np.where(x > 0, x, 1.0)))

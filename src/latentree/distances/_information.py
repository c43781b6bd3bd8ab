"""Mutual information of discrete columns, of one with all at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from latentree._kernels.distances import pairs as kernels
from latentree.data import Table
from latentree.distances._counting import ones_of, states_of
from latentree.distances._dependence import inverse
from latentree.distances._state_counts import StateCounts
from latentree.typing import FloatArray, IntArray

InformationOf = Callable[[int], FloatArray]
"""Given a column, its mutual information with every column in nats, with itself the entropy."""


def information_of(sums: StateCounts, table: Callable[[], Table]) -> InformationOf:
    """Return the function that reads mutual information off counts of pairs.

    Where the sums do not hold these, pairs are counted in the table when they are asked for.
    """
    rows = None if sums.has_pairs else table()
    is_binary = sums.complete and bool((sums.widths == 2).all())
    if is_binary and (rows is None or rows.is_sparse or rows.weights is None):
        return _of_ones(sums, rows)
    first = np.zeros(1, np.int64)
    if rows is None:
        return lambda column: information(sums.table(np.array([column])), first, sums.starts[:-1])[
            0
        ]
    k, m = int(sums.widths.max()), sums.widths.size
    states, starts = states_of(rows, k), k * np.arange(m)

    def count(column: int) -> FloatArray:
        joint = states.joint(np.array([column]), slice(None)).reshape(k, m * k)
        row: FloatArray = information(joint, first, starts)[0]
        return row

    return count


def _of_ones(sums: StateCounts, table: Table | None) -> InformationOf:
    """Return the function for 0/1 columns without gaps, from the counts of common ones."""
    ones, n = sums.single[1::2].copy(), sums.total
    alone = _xlogx(ones) + _xlogx(n - ones)
    counted = None if table is None else ones_of(table)

    def read(column: int) -> FloatArray:
        if counted is None:
            assert sums.pairs is not None
            common = sums.pairs[column]
        else:
            common = counted.common(np.array([column]), slice(None))[0]
        out = np.empty(ones.size)
        kernels.information_of_ones(common, n, column, ones, alone, out)
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

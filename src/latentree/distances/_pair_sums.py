"""Sums of products of functions of pairs of columns, which add up over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latentree.distances._arrays import places
from latentree.distances._functions import Functions
from latentree.typing import FloatArray, IntArray

VANISHING = 1e-12
"""A share of the rows, or of a mean square, below this is rounding: there is nothing."""


class FunctionSums(NamedTuple):
    """Σ w·f of the functions of some columns, and Σ w·f·f' of those of each column of numbers.

    With gaps both are taken over the rows in which another column is present, too: one column of
    an array for each other column.
    """

    first: FloatArray
    second: FloatArray

    def plus(self, other: FunctionSums) -> FunctionSums:
        """Add the sums of other rows."""
        return FunctionSums(self.first + other.first, self.second + other.second)

    def spread(self, n_others: int) -> FunctionSums:
        """Return sums without gaps in the form that they have with gaps, as views."""
        if self.first.ndim == 2:
            return self
        return FunctionSums(*(np.broadcast_to(s[:, None], (s.size, n_others)) for s in self))

    def select(self, functions: IntArray, squares: IntArray) -> FunctionSums:
        """Return the sums of some functions."""
        return FunctionSums(self.first[functions], self.second[squares])

    def beside(self, others: IntArray) -> FunctionSums:
        """Return the sums beside some other columns."""
        return FunctionSums(*(s[:, others] if s.ndim == 2 else s for s in self))


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums of the functions of some columns (x), of others (y), and of their products.

    Attributes
    ----------
    weight : float or array of shape (a, b)
        Σ w: one number without gaps.
    cross : array
        Σ w·x·y for every pair of functions. Of real columns with themselves only the lower
        triangle counts.
    x, y : FunctionSums
        Sums of single columns; the same object for columns with themselves.
    """

    weight: float | FloatArray
    cross: FloatArray
    x: FunctionSums
    y: FunctionSums

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not isinstance(self.weight, np.ndarray)

    def __add__(self, other: PairSums) -> PairSums:
        a, b = self, other
        if a.complete != b.complete:
            shape = np.shape(b.weight if a.complete else a.weight)
            a, b = a._spread(*shape), b._spread(*shape)
        x = a.x.plus(b.x)
        return PairSums(
            a.weight + b.weight, a.cross + b.cross, x, x if a.y is a.x else a.y.plus(b.y)
        )

    def _spread(self, n_x: int, n_y: int) -> PairSums:
        """Return the sums in the form that they have with gaps, as views."""
        x = self.x.spread(n_y)
        y = x if self.y is self.x else self.y.spread(n_x)
        return PairSums(np.broadcast_to(self.weight, (n_x, n_y)), self.cross, x, y)

    def select(self, columns: IntArray, functions: Functions) -> PairSums:
        """Return the sums of some columns of one set with itself."""
        f = places(columns, functions.starts)
        side = self.x.select(f, places(columns, functions.square_starts)).beside(columns)
        weight = self.weight
        if isinstance(weight, np.ndarray):
            weight = weight[np.ix_(columns, columns)]
        # A pair stands at (larger, smaller): the lower triangle.
        cross = self.cross[np.maximum.outer(f, f), np.minimum.outer(f, f)]
        return PairSums(weight, cross, side, side)

    def block(self, rows: IntArray, columns: IntArray, functions: Functions) -> PairSums:
        """Return the sums of some columns of one set with others of them."""
        f, g = places(rows, functions.starts), places(columns, functions.starts)
        f_squares, g_squares = (places(own, functions.square_starts) for own in (rows, columns))
        weight = self.weight
        if isinstance(weight, np.ndarray):
            weight = weight[np.ix_(rows, columns)]
        return PairSums(
            weight,
            self.cross[np.ix_(f, g)],
            self.x.select(f, f_squares).beside(columns),
            self.y.select(g, g_squares).beside(rows),
        )

    def every_second(self, first: int) -> PairSums:
        """Return the sums of one of the two functions of columns of numbers with themselves."""
        side = FunctionSums(self.x.first[first::2], self.x.second)
        return PairSums(self.weight, self.cross[first::2, first::2], side, side)

    def shifted(self, a: FloatArray, b: FloatArray) -> PairSums:
        """Return the sums of a·z + b for the single functions z of real columns."""
        u, v = (a, b) if self.complete else (a[:, None], b[:, None])
        first, second = self.x
        side = FunctionSums(
            u * first + v * self.weight,
            u * u * second + 2.0 * u * v * first + v * v * self.weight,
        )
        by_row = first[:, None] if self.complete else first
        crossed = (a[:, None] * by_row) * b  # a_i·b_j·Σ w·z_i; its transpose is the other one
        cross = np.outer(a, a) * self.cross + crossed + crossed.T + np.outer(b, b) * self.weight
        return PairSums(self.weight, cross, side, side)

    # Columns of states ----------------------------------------------------------------------

    def by_state(self, y_starts: IntArray) -> tuple[FloatArray, FloatArray]:
        """Σ w·x in the rows with every state of columns y, and Σ w, for all x where present."""
        n_y = y_starts.size - 1
        n_x = self.y.first.shape[1] if self.y.first.ndim == 2 else 1
        return (
            with_base(self.cross, self.x.spread(n_y).first, y_starts),
            with_base(
                self.y.spread(n_x).first.T, np.broadcast_to(self.weight, (n_x, n_y)), y_starts
            ),
        )

    def tables(self, x_starts: IntArray, y_starts: IntArray) -> FloatArray:
        """Weight of every pair of states of columns x and y; functions are all indicators."""
        inner, whole = self.by_state(y_starts)
        whole = np.broadcast_to(whole, (x_starts.size - 1, whole.shape[1]))
        out = np.ascontiguousarray(with_base(inner.T, whole.T, x_starts).T)
        out[out < VANISHING * np.max(self.weight)] = 0.0  # rounding of weights
        return out


def with_base(inner: FloatArray, total: FloatArray, starts: IntArray) -> FloatArray:
    """Return sums over all states of columns: the base has what no indicator of a column has."""
    out = np.empty((len(inner), inner.shape[1] + starts.size - 1))
    base = state_starts(starts)[:-1]
    is_base = np.zeros(out.shape[1], bool)
    is_base[base] = True
    out[:, ~is_base] = inner
    out[:, base] = total
    filled = np.flatnonzero(np.diff(starts))
    out[:, base[filled]] -= np.add.reduceat(inner, starts[:-1][filled], axis=1)
    return out


def state_starts(starts: IntArray) -> IntArray:
    """Return where the states of columns start of whose indicators it is known."""
    return starts + np.arange(starts.size)

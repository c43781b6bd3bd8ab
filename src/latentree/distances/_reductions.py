"""From sums of products of functions to the dependence r of pairs of columns, by blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from latentree._kernels.distances import canonical
from latentree._kernels.distances import pairs as kernels
from latentree.data import Schema
from latentree.distances._arrays import in_parts, inverse, places, starts_of
from latentree.distances._pair_sums import (
    VANISHING,
    FunctionSums,
    PairSums,
    state_starts,
    with_base,
)
from latentree.distances._sums import Sums
from latentree.typing import FloatArray, IntArray

WEAKEST_OF_MANY = 0.5
"""r of several functions is at least this, in units of 1/√n: their noise hides what is below."""


class FunctionIndex(NamedTuple):
    """How the functions of columns are read, see the kernel."""

    starts: IntArray
    squares: IntArray
    into: IntArray
    widths: IntArray
    turn: FloatArray

    @classmethod
    def of(cls, sums: Sums, joined: bool = True) -> FunctionIndex:
        """Return how the functions of columns are read, rare states ``joined`` or one by one."""
        functions = sums.functions
        starts, widths = functions.starts, np.diff(functions.starts)
        into = np.arange(functions.state.size) - np.repeat(starts[:-1], widths)
        if joined:
            into, widths = _joined_states(sums)
        return cls(starts, functions.square_starts, into, widths, functions.turn)

    def select(self, columns: IntArray) -> FunctionIndex:
        """Return how the functions of some columns are read."""
        functions = places(columns, self.starts)
        return FunctionIndex(
            starts_of(np.diff(self.starts)[columns]),
            starts_of(np.diff(self.squares)[columns]),
            self.into[functions],
            self.widths[columns],
            self.turn[functions],
        )


def _joined_states(sums: Sums) -> tuple[IntArray, IntArray]:
    """Number the functions of each column, those of rare states as one; return how many are left.

    Two states of fewer than √n rows are expected together in less than one row: one coincidence
    would look like dependence. Where the rare states of a column are few even together, they go
    with its most frequent one. What goes with the base, which has no function, gets the number −1.
    """
    functions = sums.functions
    starts = state_starts(functions.starts)
    weights = _state_weights(sums)
    owner = np.repeat(np.arange(starts.size - 1), np.diff(starts))  # the column of each state
    most_frequent = np.lexsort((-weights, owner))[starts[:-1]]
    least = np.sqrt(sums.total)
    rare = weights < least
    together = np.bincount(owner, np.where(rare, weights, 0.0))
    few = (together < least) & (np.bincount(owner, ~rare) >= 2)
    # Each state goes with another, or with itself: the first rare one of its column, if it is rare.
    goes_with = np.arange(weights.size)
    columns, firsts = np.unique(owner[rare], return_index=True)
    first_rare = np.zeros(starts.size - 1, np.int64)
    first_rare[columns] = np.flatnonzero(rare)[firsts]
    goes_with[rare] = np.where(few, most_frequent, first_rare)[owner[rare]]
    with_base_state = goes_with == goes_with[starts[:-1]][owner]
    groups, number = np.unique(goes_with[~with_base_state], return_inverse=True)
    widths = np.bincount(owner[groups], minlength=starts.size - 1)
    into = np.full(weights.size, -1)
    into[~with_base_state] = number - starts_of(widths)[owner[~with_base_state]]
    return np.delete(into, starts[:-1]), widths


def _state_weights(sums: Sums) -> FloatArray:
    """Weight of the base of every column, and of each state that has a function.

    Functions of numbers are never rare, nor is the base of a mixed column.
    """
    functions = sums.functions
    widths = np.diff(functions.starts)
    owner = np.repeat(np.arange(widths.size), widths)
    in_table = functions.state < np.diff(sums.starts)[owner]  # others: columns of one or no state
    known = (functions.state >= 0) & in_table
    held = np.zeros(functions.state.size)
    held[known] = sums.single[sums.starts[owner[known]] + functions.state[known]]
    out: FloatArray = with_base(held[None], sums.weight[None], functions.starts)[0]
    is_base = np.zeros(out.size, bool)
    is_base[state_starts(functions.starts)[:-1]] = functions.schema.family == "mixed"
    out[is_base | np.repeat(functions.is_number, widths + 1)] = np.inf
    return out


@dataclass(frozen=True)
class Reduction:
    """How the sums of products of functions become r.

    Attributes
    ----------
    way : {"correlation", "agreement", "product", "largest"}
        Of single functions; of the same states; the root of the product of all canonical
        correlations, or the largest one.
    index : FunctionIndex
        How the functions are read.
    centered : bool
        Whether means are taken off.
    """

    way: Literal["correlation", "agreement", "product", "largest"]
    index: FunctionIndex
    centered: bool = True

    @classmethod
    def of(cls, sums: Sums, centered: bool = True) -> Reduction:
        """Return the reduction of a family."""
        schema = sums.functions.schema
        if schema.family == "gaussian":
            return cls("correlation", FunctionIndex.of(sums, joined=False), centered)
        if schema.family == "mixed" or has_uneven_states(schema):
            return cls("largest", FunctionIndex.of(sums))
        index = FunctionIndex.of(sums, joined=False)
        if schema.family == "symmetric":
            return cls("agreement", index)
        return cls("correlation" if schema.cardinalities[0] == 2 else "product", index)

    def of_all(self, sums: Sums) -> FloatArray:
        """Return r of all pairs; only the lower triangle counts."""
        assert sums.pairs is not None
        every = np.arange(self.index.widths.size)
        return self.read(sums.pairs, every, every, every + 1)

    def read(
        self, pairs: PairSums, rows: IntArray, columns: IntArray, limits: IntArray | None = None
    ) -> FloatArray:
        """Return r of ``rows`` × ``columns``, of row i at least with the first ``limits[i]``."""
        if self.way == "correlation":
            return correlations(pairs, self.centered)
        if self.way == "agreement":
            return _agreements(pairs, int(self.index.widths[0]) + 1)
        x, y = self.index.select(rows), self.index.select(columns)
        limits = np.full(rows.size, columns.size) if limits is None else limits
        return self._of_many(pairs, x, y, limits)

    def _of_many(
        self, pairs: PairSums, x: FunctionIndex, y: FunctionIndex, limits: IntArray
    ) -> FloatArray:
        """Return r of columns with several functions each."""
        a, b = limits.size, y.widths.size
        out = np.zeros((a, b))
        weight = np.broadcast_to(np.asarray(pairs.weight, np.float64), (a, b))
        left, right = pairs.x.spread(b), pairs.y.spread(a)
        # Without gaps a column has the same covariances in all pairs.
        alone, product = pairs.complete, self.way == "product"

        def fill(part: slice) -> None:
            functions = slice(x.starts[part.start], x.starts[part.stop])
            squares = slice(x.squares[part.start], x.squares[part.stop])
            canonical.correlations_of_moments(
                pairs.cross[functions], left.first[functions], left.second[squares],
                right.first[:, part], right.second[:, part], weight[part],
                *x.select(np.arange(part.start, part.stop)), *y,
                limits[part], WEAKEST_OF_MANY, alone, product, out[part],
            )  # fmt: skip

        in_parts(a, fill)
        return out


def correlations(pairs: PairSums, centered: bool = True) -> FloatArray:
    """Return r of columns with one function each; 0 for a pair that is constant on its rows."""
    x, y = single_functions(pairs.x, centered), single_functions(pairs.y, centered)
    n, cross, out = pairs.weight, pairs.cross, np.empty(pairs.cross.shape)
    if isinstance(n, np.ndarray):
        in_parts(
            len(out),
            lambda part: _correlations_with_gaps(
                n[part], cross[part], FunctionSums(*(s[part] for s in x)),
                FunctionSums(*(s[:, part].T for s in y)), out[part],
            ),
        )  # fmt: skip
        return out
    scale_x, scale_y = (inverse_spread(n, *side) for side in (x, y))
    in_parts(
        len(out),
        lambda part: kernels.correlations(
            cross[part], n, x.first[part], y.first, scale_x[part], scale_y, out[part]
        ),
    )
    return out


def single_functions(side: FunctionSums, centered: bool) -> FunctionSums:
    """Return Σ w·f and Σ w·f²: an indicator is its own square."""
    first = side.first if centered else np.zeros_like(side.first)
    return FunctionSums(first, side.second if len(side.second) else side.first)


def inverse_spread(n: float, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return 1/√(n·Σx² − (Σx)²), and 0 where this is rounding."""
    size = n * second
    spread = size - first * first
    return inverse(np.sqrt(np.where(spread > VANISHING * size, spread, 0.0)))


def _correlations_with_gaps(
    n: FloatArray, cross: FloatArray, x: FunctionSums, y: FunctionSums, out: FloatArray
) -> None:
    """Set out to (E[xy] − E[x]·E[y]) / √(V[x]·V[y]), of sums that differ from pair to pair."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_x, mean_y, xx, yy = x.first / n, y.first / n, x.second / n, y.second / n
        spread_x, spread_y = xx - mean_x * mean_x, yy - mean_y * mean_y
        constant = (spread_x <= VANISHING * xx) | (spread_y <= VANISHING * yy)
        r = (cross / n - mean_x * mean_y) / np.sqrt(spread_x * spread_y)
    # n = 0 makes NaN of everything.
    out[...] = np.where(constant | ~np.isfinite(r), 0.0, r)


def _agreements(pairs: PairSums, k: int) -> FloatArray:
    """Return (K·a − 1)/(K − 1) with the share a of rows that agree; 0 without rows.

    It is 1 − K·θ, since θ = (1 − a)/(K − 1).
    """

    def grouped(sums: FloatArray) -> FloatArray:
        return np.asarray(sums.reshape(-1, k - 1, *sums.shape[1:]).sum(axis=1))

    cross = pairs.cross.reshape(-1, k - 1, pairs.cross.shape[1] // (k - 1), k - 1)
    b, a = cross.shape[2], len(cross)
    # Of K − 1 states it is known; the first one has what is left: n − Σx − Σy + Σxy.
    same = np.einsum("ikjk->ij", cross) + cross.sum(axis=(1, 3)) + pairs.weight
    same -= grouped(pairs.x.spread(b).first) + grouped(pairs.y.spread(a).first).T
    n = np.broadcast_to(pairs.weight, same.shape)
    share = np.divide(same, n, out=np.full_like(same, 1.0 / k), where=n > 0)
    return np.asarray((k * share - 1.0) / (k - 1.0))


def has_uneven_states(schema: Schema) -> bool:
    """Whether the numbers of states of coded columns differ."""
    return bool(schema.cardinalities.min() < schema.cardinalities.max())

"""Rows as lines of functions of columns, and the sums of their products: the one choice of how.

Real, mixed and copula columns are lines of floats, multiplied by BLAS. A column of codes is a line
of bits for each indicator: what two lines have in common costs one instruction per 64 rows. Sparse
0/1 columns are counted from the lists of their ones, or packed where they hold so many that bits
are cheaper. Codes of rows with weights become floats when they are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from latentree import _memory as memory
from latentree._kernels import threads
from latentree._kernels.distances import bits as bit_kernels
from latentree._kernels.distances import pairs as pair_kernels
from latentree._kernels.distances import sparse as sparse_kernels
from latentree.data import Table
from latentree.distances._arrays import in_parts, places, ranges
from latentree.distances._functions import Functions, Units
from latentree.distances._pair_sums import FunctionSums, PairSums
from latentree.typing import AnyArray, BoolArray, FloatArray, Index, IntArray

CHUNK_ROWS = 16_384
"""Rows that are summed in single precision before the next are added."""

_CODE_ROWS = 4096
"""Rows of codes that are spread out as floats at a time."""

_PAIR_CELLS = 1 << 20
"""Cells of lines whose products are summed pair by pair at a time: 8 MB."""

_COLUMNS = 64
"""Lines of a block of a product: enough to keep one thread busy."""

_WORDS_A_STEP = 16.0
"""Words of 64 bits that are compared in the time of one step along sparse lists: a word is loaded
in order, while a step jumps to an unpredictable place."""


Standardized = tuple[FloatArray, FunctionSums]
"""Real columns in their units, gaps being 0, and their sums."""


class Lines(ABC):
    """Functions of the columns of some rows, one line each, and which cells are present.

    Parameters
    ----------
    functions : Functions
        Of the columns.
    table : Table
        The rows.
    """

    def __init__(self, functions: Functions, table: Table) -> None:
        self.starts, self.square_starts = functions.starts, functions.square_starts
        self.total, self.complete = table.total_weight, not table.has_missing
        self.weights, self.n_rows = table.weights, table.n_rows

    @abstractmethod
    def functions(self, index: IntArray) -> AnyArray:
        """Return the lines of some functions."""

    @abstractmethod
    def presence(self, columns: IntArray) -> AnyArray:
        """Return a line for each of some columns: where it is present."""

    def squares(self, columns: IntArray) -> AnyArray:
        """Return the products of the functions of each column of numbers; there may be none."""
        return self.functions(columns[:0])

    @abstractmethod
    def multiply(self, x: AnyArray, y: AnyArray) -> FloatArray:
        """Return Σ w·x·y for two sets of lines."""

    @abstractmethod
    def multiply_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return Σ w·x·y for pairs of functions."""

    def multiply_own(self, x: AnyArray) -> FloatArray:
        """Return Σ w·x·x for all lines; of real columns only the lower triangle counts."""
        return self.multiply(x, x)

    @cached_property
    @abstractmethod
    def alone(self) -> FunctionSums:
        """Sums of all functions and of all squares, where nothing is missing."""

    def sums(self, a: IntArray, b: IntArray | None = None) -> PairSums:
        """Sum over the rows, of columns a with columns b or, by default, with themselves."""
        x = self.functions(places(a, self.starts))
        if b is None:
            side = self._side(a, x, a)
            return PairSums(self.weight_of_pairs(a, a), self.multiply_own(x), side, side)
        y = self.functions(places(b, self.starts))
        sides = self._side(a, x, b), self._side(b, y, a)
        return PairSums(self.weight_of_pairs(a, b), self.multiply(x, y), *sides)

    def weight_of_pairs(self, a: IntArray, b: IntArray) -> float | FloatArray:
        """Weight of the rows in which both of a pair are present: one number without gaps."""
        return self.total if self.complete else self.multiply(self.presence(a), self.presence(b))

    def _side(self, columns: IntArray, x: AnyArray, others: IntArray) -> FunctionSums:
        """Return the sums of columns, with gaps over the rows in which others are present."""
        if self.complete:
            functions, squares = (places(columns, s) for s in (self.starts, self.square_starts))
            return self.alone.select(functions, squares)
        present = self.presence(others)
        squares = self.squares(columns)
        return FunctionSums(self.multiply(x, present), self.multiply(squares, present))


def lines_of(
    table: Table, functions: Functions, known: Standardized | None = None
) -> Sequence[Lines]:
    """Return the lines of a table, cut into ranges of rows where not all can be summed at once.

    ``known`` are the standardized real columns and their sums, where they are known. Sums of all
    pairs then get the same bits on any number of threads.
    """
    if table.is_sparse and (table.weights is not None or not _bits_are_cheaper(table)):
        return [SparseLines(functions, table)]
    if table.family == "gaussian":
        return [FloatLines(functions, table, known)]
    if not table.schema.is_coded:
        table = functions.without_outliers(table)
        step = CHUNK_ROWS if table.family == "mixed" else table.n_rows
        return [FloatLines(functions, part) for part in _row_ranges(table, step)]
    if table.weights is None:
        return [BitLines(functions, table)]
    return [CodeLines(functions, part) for part in _row_ranges(table, _CODE_ROWS)]


def _row_ranges(table: Table, step: int) -> list[Table]:
    return [table.rows(*rows) for rows in ranges(table.n_rows, max(step, 1))]


def sum_up(lines: Sequence[Lines], a: IntArray, b: IntArray | None = None) -> PairSums:
    """Sum over all ranges of rows, in order."""
    return reduce(add, (part.sums(a, b) for part in lines))


def _as_range(index: IntArray) -> Index:
    """Return numbers that follow each other as a slice, which copies nothing."""
    if index.size and index[-1] - index[0] + 1 == index.size and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


# Floats -----------------------------------------------------------------------------------------


class FloatLines(Lines):
    """Lines of floats; 0 where a cell is missing."""

    def __init__(
        self, functions: Functions, table: Table, known: Standardized | None = None
    ) -> None:
        super().__init__(functions, table)
        self._spread = known is not None and not self.complete
        self._is_indicator = functions.state >= 0
        if table.family != "gaussian":
            self._lines = functions.lines(table.values)
        elif known is None:
            self._lines = np.ascontiguousarray(standardized(table.values, functions.units).T)
            self._lines[np.isnan(self._lines)] = 0.0
        else:
            self._lines, self.alone = known[0].T, known[1]
        dtype = self._lines.dtype
        self.weights = None if table.weights is None else table.weights.astype(dtype)
        self._present = None if self.complete else (~table.missing_mask().T).astype(dtype)

    def functions(self, index: IntArray) -> AnyArray:
        return self._lines[_as_range(index)]

    def presence(self, columns: IntArray) -> AnyArray:
        assert self._present is not None
        return self._present[_as_range(columns)]

    def squares(self, columns: IntArray) -> AnyArray:
        """Return z² of the first function z of columns of numbers; of mixed ones z³ and z⁴, too."""
        widths = np.diff(self.square_starts)[columns]
        z = self._lines[self.starts[:-1][columns[widths > 0]]]
        n_powers = int(widths.max(initial=1))
        out = np.empty((len(z), n_powers, z.shape[1]), z.dtype)
        np.multiply(z, z, out=out[:, 0])
        for power in range(1, n_powers):
            np.multiply(out[:, power - 1], z, out=out[:, power])
        return out.reshape(-1, z.shape[1])

    def multiply(self, x: AnyArray, y: AnyArray) -> FloatArray:
        x = x if self.weights is None else x * self.weights
        return block_product(x, y) if self._spread else np.asarray(x @ y.T, np.float64)

    def multiply_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        out = np.empty(first.size)
        if self.weights is None:  # lines are held: nothing is copied
            z = self._lines
            in_parts(
                first.size, lambda part: pair_kernels.dots(z, first[part], second[part], out[part])
            )
            return out
        for start, stop in self._ranges(first.size):
            x, y = (self.functions(index[start:stop]) for index in (first, second))
            out[start:stop] = np.einsum("pn,pn->p", x * self.weights, y)
        return out

    def _ranges(self, n_lines: int) -> Iterator[tuple[int, int]]:
        """Cut a range of lines into some that are spread out at the same time."""
        return ranges(n_lines, max(1, _PAIR_CELLS // max(1, self.n_rows)))

    def multiply_own(self, x: AnyArray) -> FloatArray:
        """Return Σ w·x·x: without weights products of indicators are counts, quicker from bits."""
        if self.complete and x.dtype == np.float64 and not self._is_indicator.any():
            root = x if self.weights is None else x * np.sqrt(self.weights)
            # Half the work of a general product; its upper triangle in Fortran's order is ours.
            return np.asarray(linalg.blas.dsyrk(1.0, root).T)
        if self.weights is not None or not self._is_indicator.any():
            return self.multiply(x, x)
        out = np.empty((len(x), len(x)))
        scores, indicators = np.flatnonzero(~self._is_indicator), np.flatnonzero(self._is_indicator)
        out[scores] = x[scores] @ x.T
        out[:, scores] = out[scores].T
        out[np.ix_(indicators, indicators)] = _common_rows(x, indicators)
        return out

    @cached_property
    def alone(self) -> FunctionSums:
        every = np.arange(self.starts.size - 1)
        first = np.empty(self.starts[-1])
        for start, stop in self._ranges(first.size):
            first[start:stop] = self._total(self.functions(np.arange(start, stop)))
        return FunctionSums(first, self._total(self.squares(every)))

    def _total(self, lines: AnyArray) -> FloatArray:
        if self.weights is None:
            return np.asarray(lines.sum(axis=1, dtype=np.float64))
        return np.asarray(lines.astype(np.float64, copy=False) @ self.weights.astype(np.float64))


def standardized(values: FloatArray, units: Units) -> FloatArray:
    """Return (x − shift)·scale."""
    with np.errstate(over="ignore", invalid="ignore"):
        z: FloatArray = values - units.shift
        z *= units.scale
    return z


def block_product(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return x·yᵀ, the same bits on any number of threads.

    BLAS cuts a product by its number of threads, and rounds accordingly. So it gets one thread from
    the caller, and blocks of lines are spread over ours.
    """
    out = np.empty((len(x), len(y)))

    def fill(start: int) -> None:
        np.matmul(x[start : start + _COLUMNS], y.T, out=out[start : start + _COLUMNS])

    threads.run(fill, range(0, len(x), _COLUMNS))
    return out


class CodeLines(FloatLines):
    """Codes of rows with weights, which become lines of floats when they are asked for."""

    def __init__(self, functions: Functions, table: Table) -> None:
        Lines.__init__(self, functions, table)
        self._spread, self._is_indicator = False, functions.state >= 0
        self._codes = np.ascontiguousarray(table.values.T)
        self._state = functions.state.astype(self._codes.dtype)
        self._column = np.repeat(np.arange(table.n_columns), np.diff(self.starts))

    def functions(self, index: IntArray) -> AnyArray:
        codes = self._codes[_as_range(self._column[index])]
        return np.asarray(codes == self._state[index, None], np.float64)

    def presence(self, columns: IntArray) -> AnyArray:
        return (self._codes[_as_range(columns)] >= 0).astype(np.float64)

    def squares(self, columns: IntArray) -> AnyArray:
        return self.functions(columns[:0])


# Bits and lists ---------------------------------------------------------------------------------


class BitLines(Lines):
    """Lines of bits, 64 rows in a word."""

    def __init__(self, functions: Functions, table: Table) -> None:
        super().__init__(functions, table)
        self._bits = _packed_states(table, functions, not self.complete)

    def functions(self, index: IntArray) -> AnyArray:
        return self._bits[_as_range(index)]

    def presence(self, columns: IntArray) -> AnyArray:
        return self._bits[_as_range(self.starts[-1] + columns)]

    def multiply(self, x: AnyArray, y: AnyArray) -> FloatArray:
        out = np.zeros((len(x), len(y)))
        in_parts(len(x), lambda part: bit_kernels.common_bits(x[part], y, out[part]))
        return out

    def multiply_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        out = np.empty(first.size)
        bits = self._bits
        in_parts(
            first.size,
            lambda part: bit_kernels.common_of_pairs(bits, first[part], second[part], out[part]),
        )
        return out

    @cached_property
    def alone(self) -> FunctionSums:
        every = np.arange(self.starts[-1])
        return FunctionSums(self.multiply_pairs(every, every), np.empty(0))


def _packed_states(table: Table, functions: Functions, presence: bool) -> NDArray[np.uint64]:
    """Pack the indicators of coded columns into lines of bits, laid end to end.

    With ``presence``, a line for each column follows: where it is present.
    """
    (n, m), starts = table.values.shape, functions.starts
    shape = (int(starts[-1]) + m * presence, -(-n // 64))
    memory.require(8.0 * np.prod(shape), "the table packed into bits", "take fewer rows or columns")
    out = np.zeros(shape, np.uint64)

    def pack(part: slice) -> None:
        codes = np.ascontiguousarray(table.values[:, part].T)
        own = slice(starts[part.start], starts[part.stop])
        widths = np.diff(starts[part.start : part.stop + 1])
        state = functions.state[own].astype(codes.dtype)
        out[own] = _packed(np.repeat(codes, widths, axis=0) == state[:, None])
        if presence:
            out[starts[-1] + part.start : starts[-1] + part.stop] = _packed(codes >= 0)

    if not table.is_sparse:
        in_parts(m, pack)
        return out
    lists = table.values.tocsc()
    ends, items = lists.indptr, lists.indices
    in_parts(m, lambda part: bit_kernels.pack_lists(ends, items, part.start, out[part]))
    return out


def _packed(lines: BoolArray) -> NDArray[np.uint64]:
    """Pack lines into words of 64 bits."""
    out = np.zeros((len(lines), -(-lines.shape[1] // 64)), np.uint64)
    packed = np.packbits(lines, axis=1)
    out.view(np.uint8)[:, : packed.shape[1]] = packed
    return out


def _common_rows(lines: AnyArray, chosen: IntArray) -> FloatArray:
    """Return in how many rows two of the chosen lines are positive."""
    words = np.zeros((chosen.size, -(-lines.shape[1] // 64)), np.uint64)
    out = np.zeros((chosen.size, chosen.size))

    def pack(part: slice) -> None:
        words[part] = _packed(lines[chosen[part]] > 0)

    def fill(part: slice) -> None:
        bit_kernels.common_bits(words[part], words[: part.stop], out[part, : part.stop])
        out[: part.start, part] = out[part, : part.start].T

    in_parts(chosen.size, pack)
    in_parts(chosen.size, fill)
    return out


class SparseLines(Lines):
    """Lists of the ones of sparse columns; a line is the number of its column."""

    def __init__(self, functions: Functions, table: Table) -> None:
        super().__init__(functions, table)
        columns = table.values.tocsc()
        columns.sort_indices()
        rows = columns.tocsr()  # ascending, too
        self._starts, self._rows = columns.indptr, columns.indices
        self._row_starts, self._columns = rows.indptr, rows.indices
        self._weights = np.empty(0) if table.weights is None else table.weights
        self._n_ones = np.diff(self._starts).astype(np.int64)
        self._row_length = rows.nnz / max(1, table.n_rows)

    def functions(self, index: IntArray) -> AnyArray:
        return index

    def presence(self, columns: IntArray) -> AnyArray:
        raise AssertionError("sparse tables have no gaps")

    @cached_property
    def alone(self) -> FunctionSums:
        first = self._n_ones.astype(np.float64)
        if self._weights.size:
            each = np.repeat(self._weights, np.diff(self._row_starts))
            first = np.bincount(self._columns, each, minlength=first.size)
        return FunctionSums(first, np.empty(0))

    def multiply(self, x: AnyArray, y: AnyArray) -> FloatArray:
        by_rows = self._n_ones[x].sum() * self._row_length
        by_pairs = self._n_ones[x].sum() * y.size + self._n_ones[y].sum() * x.size
        if by_pairs < by_rows or np.unique(y).size < y.size:
            pairs = self.multiply_pairs(np.repeat(x, y.size), np.tile(y, x.size))
            return pairs.reshape(x.size, y.size)
        place = np.full(self._n_ones.size, -1, np.int32)
        place[y] = np.arange(y.size)
        out = np.zeros((x.size, y.size))
        in_parts(
            x.size,
            lambda part: sparse_kernels.common_by_rows(
                x[part], self._starts, self._rows, self._weights, self._row_starts,
                self._columns, place, int(y.min(initial=0)), out[part],
            ),
        )  # fmt: skip
        return out

    def multiply_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        out = np.empty(first.size)
        in_parts(
            first.size,
            lambda part: sparse_kernels.common_of_pairs(
                first[part], second[part], self._starts, self._rows, self._weights, out[part]
            ),
        )
        return out


def _bits_are_cheaper(table: Table) -> bool:
    """Whether comparing all pairs of columns takes fewer words than lists take steps."""
    n, m = table.values.shape
    per_row = np.diff(table.values.indptr).astype(np.float64)
    return bool(m * m * (n / 64.0) < _WORDS_A_STEP * np.square(per_row).sum())

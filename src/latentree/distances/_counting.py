"""Counting rows by pairs of states, from bits or from sparse lists: blocks of pairs, or some pairs.

A column of codes is packed into one line of bits for each state; what two lines have in common
costs one instruction per 64 rows. Sparse 0/1 columns are counted from the lists of their ones, or
packed when they hold so many that bits are cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import DTypeLike, NDArray

from latentree import _memory as memory
from latentree._kernels import threads
from latentree._kernels.distances import bits as bit_kernels
from latentree._kernels.distances import pairs as pair_kernels
from latentree._kernels.distances import sparse as sparse_kernels
from latentree.data import Table
from latentree.typing import AnyArray, FloatArray, Index, IntArray

_PARTS = 16
"""Slices of a range of work, whatever the number of threads: some for each of a few cores."""

_WORDS_A_STEP = 16.0
"""Words of 64 bits that are compared in the time of one step along sparse lists: a word is loaded
in order, while a step jumps to an unpredictable place."""

_PRODUCT_CELLS = 1 << 22
"""Cells of indicators that are multiplied at a time: 16 MB in single precision."""


def in_parts(n_items: int, function: Callable[[slice], None]) -> None:
    """Run a function on slices of a range, on all threads."""
    threads.run(lambda part: function(slice(*part)), threads.split(n_items, _PARTS))


def ranges(stop: int, step: int) -> Iterator[tuple[int, int]]:
    """Cut ``range(stop)`` into ranges of ``step``."""
    for start in range(0, stop, step):
        yield start, min(stop, start + step)


# Bits -------------------------------------------------------------------------------------------


def packed_states(table: Table, n_states: int, first: int = 0) -> NDArray[np.uint64]:
    """Pack codes first, first + 1, … into bits: an array of shape (m, states, words)."""
    n, m = table.values.shape
    shape = (m, n_states, -(-n // 64))
    memory.require(8.0 * np.prod(shape), "the table packed into bits", "take fewer rows or columns")
    out = np.zeros(shape, np.uint64)

    if table.is_sparse:
        lists = table.values.tocsc()
        starts, items = lists.indptr, lists.indices
        in_parts(m, lambda part: bit_kernels.pack_lists(starts, items, part.start, out[part, 0]))
    else:
        codes = table.values
        in_parts(m, lambda part: bit_kernels.pack_states(codes[:, part], first, out[part]))
    return out


def _common_bits(a: NDArray[np.uint64], b: NDArray[np.uint64], out: FloatArray) -> None:
    """Add the numbers of common bits of all lines of a and b."""
    in_parts(len(a), lambda part: bit_kernels.common_bits(a[part], b, out[part]))


def common_rows(lines: NDArray[np.float32], chosen: IntArray) -> NDArray[np.uint32]:
    """Return in how many rows two of the chosen lines are positive: the lower triangle."""
    n_words = -(-lines.shape[1] // 64)
    words = np.zeros((chosen.size, n_words), np.uint64)
    out = np.zeros((chosen.size, chosen.size), np.uint32)

    def pack(part: slice) -> None:
        packed = np.packbits(lines[chosen[part]] > 0, axis=1)
        words[part].view(np.uint8)[:, : packed.shape[1]] = packed

    def fill(part: slice) -> None:
        bit_kernels.common_bits(words[part], words[: part.stop], out[part, : part.stop])

    in_parts(chosen.size, pack)
    in_parts(chosen.size, fill)
    return out


class PackedOnes:
    """Ones of 0/1 columns without missing cells, alone and together, from bits."""

    def __init__(self, table: Table) -> None:
        self._bits = packed_states(table, 1, first=1)[:, 0]
        every = np.arange(table.n_columns)
        self.single: FloatArray = self.common_of_pairs(every, every)

    def common(self, rows: Index, columns: Index) -> FloatArray:
        """Return the number of rows in which both are 1, for ``rows`` × ``columns``."""
        a, b = self._bits[rows], self._bits[columns]
        out = np.zeros((len(a), len(b)))
        _common_bits(a, b, out)
        return out

    def common_of_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the number of rows in which both are 1, for pairs of columns."""
        out = np.empty(first.size)
        in_parts(
            first.size,
            lambda part: bit_kernels.common_of_pairs(
                self._bits, first[part], second[part], out[part]
            ),
        )
        return out


class StateBits:
    """Joint tables of columns of K states; cells may be missing."""

    def __init__(self, table: Table, n_states: int) -> None:
        self._bits = packed_states(table, n_states)

    def joint(self, rows: Index, columns: Index) -> FloatArray:
        """Return counts of every pair of states, of shape (a, K, b, K)."""
        a, b = self._bits[rows], self._bits[columns]
        k, n_words = a.shape[1:]
        out = np.zeros((len(a) * k, len(b) * k))
        _common_bits(a.reshape(-1, n_words), b.reshape(-1, n_words), out)
        return out.reshape(len(a), k, len(b), k)

    def joint_of_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return counts of every pair of states for pairs of columns, of shape (p, K, K)."""
        k = self._bits.shape[1]
        out = np.empty((first.size, k, k))
        in_parts(
            first.size,
            lambda part: bit_kernels.joint_of_pairs(
                self._bits, first[part], second[part], out[part]
            ),
        )
        return out


# Lists ------------------------------------------------------------------------------------------


class SparseOnes:
    """Weighted counts of ones of sparse columns, alone and together, from lists of the ones."""

    def __init__(self, table: Table) -> None:
        columns = table.values.tocsc()
        columns.sort_indices()
        rows = columns.tocsr()  # ascending, too
        self._starts, self._rows = columns.indptr, columns.indices
        self._row_starts, self._columns = rows.indptr, rows.indices
        self._weights = np.empty(0) if table.weights is None else table.weights
        self._n_ones = np.diff(self._starts).astype(np.int64)
        self._row_length = rows.nnz / max(1, table.n_rows)
        if table.weights is None:
            self.single: FloatArray = self._n_ones.astype(np.float64)
        else:
            each = np.repeat(table.weights, np.diff(rows.indptr))
            ones = np.bincount(rows.indices, each, minlength=table.n_columns)
            self.single = np.asarray(ones, np.float64)

    def common(self, rows: Index, columns: Index) -> FloatArray:
        """Return the weight of the rows in which both are 1, for ``rows`` × ``columns``."""
        every = np.arange(self.single.size)
        a, b = every[rows], every[columns]
        by_rows = self._n_ones[a].sum() * self._row_length
        by_pairs = self._n_ones[a].sum() * b.size + self._n_ones[b].sum() * a.size
        if by_pairs < by_rows or np.unique(b).size < b.size:
            pairs = self.common_of_pairs(np.repeat(a, b.size), np.tile(b, a.size))
            return pairs.reshape(a.size, b.size)
        place = np.full(every.size, -1, np.int32)
        place[b] = np.arange(b.size)
        out = np.zeros((a.size, b.size))
        in_parts(
            a.size,
            lambda part: sparse_kernels.common_by_rows(
                a[part], self._starts, self._rows, self._weights, self._row_starts,
                self._columns, place, int(b.min(initial=0)), out[part],
            ),
        )  # fmt: skip
        return out

    def common_of_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the weight of the rows in which both are 1, for pairs of columns."""
        out = np.empty(first.size)
        in_parts(
            first.size,
            lambda part: sparse_kernels.common_of_pairs(
                first[part], second[part], self._starts, self._rows, self._weights, out[part]
            ),
        )
        return out


def ones_of(table: Table) -> SparseOnes | PackedOnes:
    """Count the ones of 0/1 columns without missing cells by what is cheaper for all pairs."""
    if not table.is_sparse or (table.weights is None and _bits_are_cheaper(table)):
        return PackedOnes(table)
    return SparseOnes(table)


def _bits_are_cheaper(table: Table) -> bool:
    """Whether comparing all pairs of columns takes fewer words than lists take steps."""
    n, m = table.values.shape
    per_row = np.diff(table.values.indptr).astype(np.float64)
    return bool(m * m * (n / 64.0) < _WORDS_A_STEP * np.square(per_row).sum())


# Weighted codes ---------------------------------------------------------------------------------


class WeightedStates:
    """Joint tables of columns of K states, by the weights of the rows; cells may be missing."""

    def __init__(self, table: Table, n_states: int) -> None:
        self._table = table
        self._n_states = n_states
        self._by_column: AnyArray | None = None

    def joint(self, rows: Index, columns: Index) -> FloatArray:
        """Return weights of every pair of states, of shape (a, K, b, K)."""
        k = self._n_states
        widths = np.full(self._table.n_columns, k)
        flat = joint_products(self._table, widths, rows, columns)
        return flat.reshape(-1, k, flat.shape[1] // k, k)

    def joint_of_pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return weights of every pair of states for pairs of columns, of shape (p, K, K)."""
        if self._by_column is None:
            self._by_column = np.ascontiguousarray(self._table.values.T)
        codes, weights = self._by_column, self._table.weight_array()
        out = np.zeros((first.size, self._n_states, self._n_states))
        in_parts(
            first.size,
            lambda part: pair_kernels.weighted_tables(
                codes, weights, first[part], second[part], out[part]
            ),
        )
        return out


def states_of(table: Table, n_states: int) -> StateBits | WeightedStates:
    """Count the states of dense columns: by bits, unless rows have weights."""
    return StateBits(table, n_states) if table.weights is None else WeightedStates(table, n_states)


def pair_counts(table: Table, widths: IntArray, first: int) -> FloatArray:
    """Weight of the rows with every pair of states of all columns.

    States ``first``, ``first`` + 1, … of each column are counted, laid end to end; by bits or
    sparse lists where rows have no weights or cells are sparse, else by matrix products.
    """
    everything = slice(None)
    if first == 1 and (table.is_sparse or (table.weights is None and (widths == 2).all())):
        return ones_of(table).common(everything, everything)
    if table.weights is None and widths.min() == widths.max():
        bits = packed_states(table, int(widths[0]) - first, first)
        lines = bits.reshape(-1, bits.shape[2])
        out = np.zeros((len(lines), len(lines)))
        _common_bits(lines, lines, out)
        return out
    return joint_products(table, widths, everything, everything, first)


def joint_products(
    table: Table, widths: IntArray, rows: Index, columns: Index, first: int = 0
) -> FloatArray:
    """Weighted counts of pairs of states by matrix products, all states laid end to end."""
    shape = (int((widths[rows] - first).sum()), int((widths[columns] - first).sum()))
    out = np.zeros(shape)
    # Counts of a chunk below 2²⁴ are exact in single precision, at half the time.
    dtype = np.float32 if table.weights is None else np.float64
    for start, stop in _row_ranges(table, max(shape)):
        codes = table.values[start:stop]
        left = right = _one_hot(codes[:, rows], widths[rows], first, dtype)
        if rows is not columns:
            right = _one_hot(codes[:, columns], widths[columns], first, dtype)
        if table.weights is not None:
            left = left * table.weights[start:stop, None]
        out += left.T @ right
    return out


def _row_ranges(table: Table, width: int) -> list[tuple[int, int]]:
    step = max(256, _PRODUCT_CELLS // max(1, width))
    n = table.n_rows
    return [(start, min(n, start + step)) for start in range(0, n, step)]


def _one_hot(codes: AnyArray, widths: IntArray, first: int, dtype: DTypeLike) -> AnyArray:
    states = np.concatenate([np.arange(first, width) for width in widths]).astype(codes.dtype)
    hot: AnyArray = np.repeat(codes, widths - first, axis=1) == states
    return hot.astype(dtype)


class PairTables:
    """Joint tables of single pairs of columns, where those of all pairs would be too many."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._ones = SparseOnes(table) if table.is_sparse else None

    def of(self, a: int, b: int) -> FloatArray:
        """Weight of the rows with each pair of states of two columns, both present."""
        if self._ones is not None:
            return self._of_ones(self._ones, a, b)
        first, second = (np.asarray(self._table.values[:, j], np.int64) for j in (a, b))
        shape = tuple(self._table.cardinalities[[a, b]])
        seen = (first >= 0) & (second >= 0)
        keys = first[seen] * shape[1] + second[seen]
        weights = None if self._table.weights is None else self._table.weights[seen]
        counts = np.bincount(keys, weights, minlength=shape[0] * shape[1])
        return np.asarray(counts.reshape(shape), np.float64)

    def _of_ones(self, ones: SparseOnes, a: int, b: int) -> FloatArray:
        both = float(ones.common_of_pairs(np.array([a]), np.array([b]))[0])
        only_a, only_b = ones.single[a] - both, ones.single[b] - both
        neither = self._table.total_weight - both - only_a - only_b
        return np.maximum([[neither, only_b], [only_a, both]], 0.0)  # rounding of weights

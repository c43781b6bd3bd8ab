"""Numbering the distinct rows of some columns."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel


@kernel()
def _hash(codes, row, columns):
    """Multiply and add, then mix: neighbors of the last bits must not share a place."""
    # The first multiplier is 2⁶⁴ over the golden ratio, the second an odd one without a pattern.
    key = np.uint64(0)
    for column in columns:
        key = key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(codes[row, column] + 2)
    key ^= key >> np.uint64(32)
    key *= np.uint64(0xD6E8FEB86659FD93)
    return key ^ (key >> np.uint64(32))


@kernel()
def _are_equal(codes, a, b, columns):
    """Whether two rows agree in some columns."""
    for column in columns:  # noqa: SIM110 (a loop compiles where all() does not)
        if codes[a, column] != codes[b, column]:
            return False
    return True


@kernel()
def _rehashed(hashes, count, size):
    """Places of so many rows in a table of hashes twice as large."""
    places = np.full(size, -1, np.int32)
    mask = np.uint64(size - 1)
    for number in range(count):
        at = hashes[number] & mask
        while places[at] >= 0:
            at = (at + np.uint64(1)) & mask
        places[at] = number
    return places


@kernel(small=20_000)  # as plain Python that many cells take some 50 ms, compiling takes 2 s
def number_rows(codes, columns, most):
    """Number the distinct rows in the order in which they appear.

    Returns the number of every row, and the first row of each number: none of either once there
    are more than ``most``.
    """
    n = codes.shape[0]
    ids = np.empty(n, np.int32)
    first = np.empty(min(n, most), np.int64)
    hashes = np.empty(first.size, np.uint64)
    size = 1024  # always a power of two, so that a mask takes the remainder
    places = np.full(size, -1, np.int32)
    count = 0
    for row in range(n):
        key = _hash(codes, row, columns)
        at = key & np.uint64(size - 1)
        # Open addressing: a place that another row has leads to the next one.
        while places[at] >= 0:
            known = places[at]
            if hashes[known] == key and _are_equal(codes, row, first[known], columns):
                break
            at = (at + np.uint64(1)) & np.uint64(size - 1)
        if places[at] < 0:
            if count == first.size:
                return ids[:0], first[:0]
            first[count] = row
            hashes[count] = key
            places[at] = count
            ids[row] = count
            count += 1
            if 2 * count > size:  # at most half full, so that runs of places stay short
                size *= 2
                places = _rehashed(hashes, count, size)
        else:
            ids[row] = places[at]
    return ids, first[:count]

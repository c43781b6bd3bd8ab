"""Counts of rows by bits: a column of 0/1 cells is a line of 64-bit words, one bit per row."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

# Masks of every second bit, pair of bits and half byte, and a one in every byte (SWAR popcount).
_ODD = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
# Shifts have to be unsigned as well: mixed types would become floats.
_1, _2, _4, _56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)

_SMALL = 1000
"""Words in the largest array for which nothing is compiled: plain Python takes milliseconds."""


@kernel()
def _popcount(x):
    """The number of bits that are set: sums of 2, 4, 8 neighbors side by side, then of all bytes.

    The compiler knows this pattern, and makes one instruction of it where the processor has one.
    """
    # After each line a field of 2, 4 and 8 bits holds the number of ones in it.
    x = x - ((x >> _1) & _ODD)
    x = (x & _PAIRS) + ((x >> _2) & _PAIRS)
    x = (x + (x >> _4)) & _NIBBLES
    # The product adds all bytes into the highest one.
    return (x * _BYTES) >> _56


@kernel()
def pack_lists(starts, items, first, out):
    """Set the bits of listed rows: column first + j holds ``items[starts[first + j]:…]``."""
    for j in range(out.shape[0]):
        line = out[j]
        for row in items[starts[first + j] : starts[first + j + 1]]:
            line[row >> 6] |= np.uint64(1) << np.uint64(row & 63)


@kernel(small=_SMALL)
def common_bits(a, b, out):
    """Add to ``out[i, j]`` the number of bits that lines a[i] and b[j] have in common."""
    n_words = a.shape[1]
    # Four lines at a time: each word of b is loaded once for four products.
    whole = a.shape[0] // 4 * 4
    for i in range(0, whole, 4):
        x0, x1, x2, x3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for j in range(b.shape[0]):
            y = b[j]
            t0, t1, t2, t3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
            for w in range(n_words):
                word = y[w]
                t0 += _popcount(x0[w] & word)
                t1 += _popcount(x1[w] & word)
                t2 += _popcount(x2[w] & word)
                t3 += _popcount(x3[w] & word)
            out[i, j] += t0
            out[i + 1, j] += t1
            out[i + 2, j] += t2
            out[i + 3, j] += t3
    for i in range(whole, a.shape[0]):
        for j in range(b.shape[0]):
            out[i, j] += _common(a[i], b[j])


@kernel()
def _common(x, y):
    """Return the number of bits that two lines have in common."""
    total = np.uint64(0)
    for w in range(x.size):
        total += _popcount(x[w] & y[w])
    return total


@kernel(small=_SMALL)
def common_of_pairs(bits, first, second, out):
    """Set ``out[p]`` to the number of common bits of lines first[p] and second[p]."""
    for p in range(first.size):
        out[p] = _common(bits[first[p]], bits[second[p]])

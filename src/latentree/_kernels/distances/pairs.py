"""Loops over pairs of variables."""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel

_SMALL = 4096
"""Numbers in the largest array for which nothing is compiled: plain Python takes milliseconds."""

_SMALL_ROW = 64
"""The same where the pairs of one column come at a time, so that there are many calls."""


@kernel(fastmath=True)
def _dot(x, y):
    """Return Σ x·y."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@kernel(small=_SMALL)
def dots(lines, first, second, out):
    """Set ``out[p]`` to the product of lines first[p] and second[p]; its order does not matter."""
    for p in range(first.size):
        out[p] = _dot(lines[first[p]], lines[second[p]])


def _correlations_at_once(cross, n, first_x, first_y, scale_x, scale_y, out):
    products = n * cross - np.multiply.outer(first_x, first_y)
    np.multiply(products, np.multiply.outer(scale_x, scale_y), out=out)


@kernel(small=_SMALL, plain=_correlations_at_once)
def correlations(cross, n, first_x, first_y, scale_x, scale_y, out):
    """Set out to (n·Σxy − Σx·Σy)·s·t, with s = 1/√(n·Σx² − (Σx)²) and t that of y.

    The same bits whichever of two variables comes first.
    """
    for i in range(cross.shape[0]):
        line, a, s = out[i], first_x[i], scale_x[i]
        for j in range(line.size):
            line[j] = (n * cross[i, j] - a * first_y[j]) * (s * scale_y[j])


@kernel(small=_SMALL_ROW)
def information_of_ones(common, n, column, ones, alone, out):
    """Mutual information of a 0/1 column with all, from the rows in which both are 1.

    I = (g(J₁₁) + g(J₁₀) + g(J₀₁) + g(J₀₀) − g(a) − g(n − a) − g(b) − g(n − b) + g(n)) / n, with
    g(x) = x·log x and a, b ones; ``alone`` holds g(b) + g(n − b). The same bits whichever of two
    columns comes first.
    """
    a, all_rows = ones[column], _xlogx(n)
    for j in range(ones.size):
        both, b = common[j], ones[j]
        same = _xlogx(both) + _xlogx(n - (a + b) + both)
        differ = _xlogx(a - both) + _xlogx(b - both)
        total = same + differ + (all_rows - (alone[column] + alone[j]))
        out[j] = max(total / n, 0.0)  # rounding can leave it below 0


@kernel()
def _xlogx(x):
    """Return x·log x, 0 at 0."""
    return x * math.log(x) if x > 0.0 else 0.0

"""Loops over pairs of variables."""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel

_SMALL = 4096
"""Numbers in the largest array for which nothing is compiled: plain Python takes milliseconds."""

_SMALL_ROW = 64
"""The same where the pairs of one column come at a time, so that there are many calls."""

SINGULAR = 1e-12
"""A pivot below this is rounding: the table of such a pair has no inverse."""


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


@kernel(small=_SMALL)
def correlations_of_ones(common, n, ones_a, ones_b, scale_a, scale_b):
    """Turn counts of common ones into correlations, in place.

    r = (n·common − a·b) / √(a·(n − a)·b·(n − b)), with a and b ones; the scales are the roots'
    inverses. The same bits whichever of two variables comes first.
    """
    for i in range(common.shape[0]):
        line = common[i]
        a, s = ones_a[i], scale_a[i]
        for j in range(line.size):
            line[j] = (n * line[j] - a * ones_b[j]) * (s * scale_b[j])


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


@kernel(small=_SMALL)
def correlations_of_tables(joint, out):
    """Correlation of every pair from its 2 × 2 table, of shape (a, 2, b, 2); 0 if constant."""
    for i in range(joint.shape[0]):
        for j in range(joint.shape[2]):
            table = joint[i, :, j]
            a = table[1, 0] + table[1, 1]
            b = table[0, 1] + table[1, 1]
            n = a + table[0, 0] + table[0, 1]
            spread = (a * (n - a)) * (b * (n - b))
            out[i, j] = (n * table[1, 1] - a * b) / np.sqrt(spread) if spread > 0.0 else 0.0


@kernel(small=_SMALL)
def weighted_tables(codes, weights, first, second, out):
    """Add the weights of rows by the states of first[p] and second[p] to ``out[p]``."""
    for p in range(first.size):
        x, y = codes[first[p]], codes[second[p]]
        table = out[p]
        for row in range(x.size):
            if x[row] >= 0 and y[row] >= 0:
                table[x[row], y[row]] += weights[row]


@kernel(small=_SMALL)
def determinant_roots(joint, out):
    """Signed root |det J̃|^(1/(K−1)) of every pair's normalized joint table.

    ``joint`` has shape (a, K, b, K) and holds counts; J̃ = D_i^(−½) J D_j^(−½) with the marginals
    D of the pair's own table, so that det J̃ is the product of its K−1 canonical correlations.
    A singular table, or one with an empty state, gives 0.
    """
    n_rows, k, n_columns, _ = joint.shape
    work = np.empty((k, k))
    p = np.empty(k)
    q = np.empty(k)
    for i in range(n_rows):
        for j in range(n_columns):
            # Marginal counts of the pair's own table: of the rows where both are present.
            p[:] = 0.0
            q[:] = 0.0
            for x in range(k):
                for y in range(k):
                    p[x] += joint[i, x, j, y]
                    q[y] += joint[i, x, j, y]
            out[i, j] = 0.0
            if p.min() <= 0.0 or q.min() <= 0.0:
                continue
            turned = _is_upper(joint[i, :, j])
            for x in range(k):
                for y in range(k):
                    value = joint[i, x, j, y] / np.sqrt(p[x] * q[y])
                    if turned:
                        work[y, x] = value
                    else:
                        work[x, y] = value
            out[i, j] = _signed_root(work)


@kernel()
def _is_upper(table):
    """Whether to turn a table over, so that rounding is the same whichever variable comes first."""
    for x in range(table.shape[0]):
        for y in range(x):
            if table[x, y] != table[y, x]:
                return table[x, y] < table[y, x]
    return False


@kernel()
def _signed_root(a):
    """Signed (K−1)-th root of the determinant, by elimination in place; 0 where singular."""
    k = a.shape[0]
    log_det = 0.0
    sign = 1.0
    for step in range(k):
        # Partial pivoting: the largest entry of the column; an exchange of rows turns the sign.
        best = step
        for x in range(step + 1, k):
            if abs(a[x, step]) > abs(a[best, step]):
                best = x
        pivot = a[best, step]
        if abs(pivot) < SINGULAR:
            return 0.0
        if best != step:
            sign = -sign
            for y in range(step, k):
                a[best, y], a[step, y] = a[step, y], a[best, y]
        if pivot < 0.0:
            sign = -sign
        log_det += math.log(abs(pivot))
        for x in range(step + 1, k):
            factor = a[x, step] / pivot
            for y in range(step + 1, k):
                a[x, y] -= factor * a[step, y]
    return sign * math.exp(log_det / (k - 1))

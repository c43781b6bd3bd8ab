"""The m³ kernel of recursive grouping: how much Φ_ijk = d_ik − d_jk varies over k.

With a lower and an upper bound L ≤ d ≤ U for every distance, the variation that is certain is
max_k (L_ik − U_jk) + max_k (L_jk − U_ik); with L = U = d it is the range max Φ − min Φ. Both terms
are entries of one "max-plus" product, so that there is a single kernel, without a branch: a node k
that shall not count for a pair has L = −FAR or U = +FAR.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels import threads
from latentree._kernels.compiling import kernel

FAR = 1e9  # a bound that never wins, yet stays finite in sums


@kernel(fastmath=True)
def _fold_four(lower, upper, i, k, left, right, out):
    """Fold columns k … k + 3 into rows i and i + 1 of the result, columns left … right − 1.

    Elementwise over j (no reduction), so that the compiler makes SIMD code of the comparisons.
    """
    # out[i, j] = max(out[i, j], L[i, k] − U[k, j], …) for four k at once: one load and one store
    # of the result for four differences, and the rows of U serve two rows of the result.
    x0, x1, x2, x3 = lower[i, k], lower[i, k + 1], lower[i, k + 2], lower[i, k + 3]
    y0, y1, y2, y3 = lower[i + 1, k], lower[i + 1, k + 1], lower[i + 1, k + 2], lower[i + 1, k + 3]
    u0 = upper[k, left:right]
    u1 = upper[k + 1, left:right]
    u2 = upper[k + 2, left:right]
    u3 = upper[k + 3, left:right]
    out_x = out[i, left:right]
    out_y = out[i + 1, left:right]
    for j in range(right - left):
        c0, c1, c2, c3 = u0[j], u1[j], u2[j], u3[j]
        b = out_x[j]
        v = x0 - c0
        b = v if v > b else b
        v = x1 - c1
        b = v if v > b else b
        v = x2 - c2
        b = v if v > b else b
        v = x3 - c3
        out_x[j] = v if v > b else b
        b = out_y[j]
        v = y0 - c0
        b = v if v > b else b
        v = y1 - c1
        b = v if v > b else b
        v = y2 - c2
        b = v if v > b else b
        v = y3 - c3
        out_y[j] = v if v > b else b


@kernel(fastmath=True)
def _max_difference_rows(lower, upper, start, stop, out):
    """Rows start … stop − 1 of the product; padded so that rows are even, and columns by four.

    Strips of 512 columns: the rows of ``upper`` and ``out`` in use stay in the nearest caches.
    """
    n_columns = upper.shape[1]
    # −1e300 in place of −∞, which fast-math rules out.
    for i in range(start, stop):
        for j in range(n_columns):
            out[i, j] = -1e300
    for left in range(0, n_columns, 512):
        right = min(left + 512, n_columns)
        for k in range(0, lower.shape[1], 4):
            for i in range(start, stop, 2):
                _fold_four(lower, upper, i, k, left, right, out)


def max_difference(lower, upper):
    """Return the matrix of max_k (lower[i, k] − upper[k, j]), on all threads."""
    m = lower.shape[0]
    padded = -(-m // 4) * 4
    low = np.full((padded, padded), -FAR)
    high = np.full((padded, padded), FAR)
    low[:m, :m], high[:m, :m] = lower, upper
    out = np.empty((padded, padded))

    def fill(part):
        """Fill a band of pairs of rows."""
        _max_difference_rows(low, high, 2 * part[0], 2 * part[1], out)

    threads.run(fill, threads.split(padded // 2, max(2, padded // 64)))
    return out[:m, :m]


@kernel(fastmath=True)
def max_difference_small(lower, upper):
    """Return the same on one thread, for matrices too small to cut up."""
    m = lower.shape[0]
    out = np.empty((m, m))
    out[:] = -1e300
    for i in range(m):
        for k in range(m):
            x = lower[i, k]
            for j in range(m):
                v = x - upper[k, j]
                b = out[i, j]
                out[i, j] = v if v > b else b
    return out

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
COLUMNS = 512  # a tile of 8 × 512 doubles stays in the first-level cache
ROWS = 64


@kernel(fastmath=True)
def _update_two_rows(x, y, first_k, left, right, out_x, out_y, upper):
    """Fold eight k into two rows of the result, columns left … right − 1.

    Elementwise over j (no reduction), so that the compiler makes SIMD code of the comparisons.
    """
    x0, x1, x2, x3 = x[first_k], x[first_k + 1], x[first_k + 2], x[first_k + 3]
    y0, y1, y2, y3 = y[first_k], y[first_k + 1], y[first_k + 2], y[first_k + 3]
    u0 = upper[first_k, left:right]
    u1 = upper[first_k + 1, left:right]
    u2 = upper[first_k + 2, left:right]
    u3 = upper[first_k + 3, left:right]
    row_x = out_x[left:right]
    row_y = out_y[left:right]
    for j in range(right - left):
        c0, c1, c2, c3 = u0[j], u1[j], u2[j], u3[j]
        p = x0 - c0
        q = x1 - c1
        p = q if q > p else p
        q = x2 - c2
        r = x3 - c3
        q = r if r > q else q
        p = q if q > p else p
        b = row_x[j]
        row_x[j] = p if p > b else b
        p = y0 - c0
        q = y1 - c1
        p = q if q > p else p
        q = y2 - c2
        r = y3 - c3
        q = r if r > q else q
        p = q if q > p else p
        b = row_y[j]
        row_y[j] = p if p > b else b


@kernel(fastmath=True)
def _max_difference_rows(lower, upper, start, stop, out):
    """Rows start … stop − 1 of the product; padded so that rows are even, and columns by four."""
    n_columns = upper.shape[1]
    out[start:stop] = -1e300
    for left in range(0, n_columns, 512):
        right = min(left + 512, n_columns)
        for first_k in range(0, lower.shape[1], 4):
            for i in range(start, stop, 2):
                _update_two_rows(
                    lower[i], lower[i + 1], first_k, left, right, out[i], out[i + 1], upper
                )


def max_difference(lower, upper):
    """Return the matrix of max_k (lower[i, k] − upper[k, j]), on all threads."""
    m = lower.shape[0]
    padded = -(-m // 4) * 4
    low = np.full((padded, padded), -FAR)
    high = np.full((padded, padded), FAR)
    low[:m, :m], high[:m, :m] = lower, upper
    out = np.empty((padded, padded))

    def fill(part):
        _max_difference_rows(low, high, 2 * part[0], 2 * part[1], out)

    threads.run(fill, threads.split(padded // 2, max(2, padded // ROWS)))
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

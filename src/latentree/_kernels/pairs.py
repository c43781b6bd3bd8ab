"""Loops over pairs of variables."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

SINGULAR = 1e-12
"""A pivot below this is rounding: the table of such a pair has no inverse."""


@kernel()
def determinant_roots(joint, out):
    """Signed root |det J̃|^(1/(K−1)) of every pair's normalised joint table.

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
            p[:] = 0.0
            q[:] = 0.0
            for x in range(k):
                for y in range(k):
                    p[x] += joint[i, x, j, y]
                    q[y] += joint[i, x, j, y]
            out[i, j] = 0.0
            if p.min() <= 0.0 or q.min() <= 0.0:
                continue
            for x in range(k):
                for y in range(k):
                    work[x, y] = joint[i, x, j, y] / np.sqrt(p[x] * q[y])
            out[i, j] = _signed_root(work)


@kernel()
def _signed_root(a):
    """Signed (K−1)-th root of the determinant, by elimination in place; 0 where singular."""
    k = a.shape[0]
    log_det = 0.0
    sign = 1.0
    for step in range(k):
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
        log_det += np.log(abs(pivot))
        for x in range(step + 1, k):
            factor = a[x, step] / pivot
            for y in range(step + 1, k):
                a[x, y] -= factor * a[step, y]
    return sign * np.exp(log_det / (k - 1))

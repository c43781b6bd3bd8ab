"""The first canonical correlation of pairs of columns, from sums over rows.

A column is given by a few functions of its values: scores of a number, indicators of states. The
first singular value of the cross-covariance of two columns' functions, each whitened, is the
largest correlation that combinations of them have.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

_SMALL = 4096  # numbers in the largest array for which nothing is compiled
_DEPENDENT = 1e-5  # a function whose variance the others explain but for this share adds nothing
_SWEEPS = 12  # of Jacobi's rotations; four are usual
_PRECISE = 1e-14  # what is left off the diagonal, relative to it
_SINGULAR = 1e-12  # a share, or a pivot, below this is rounding


@kernel(small=_SMALL)
def correlations_of_moments(
    cross, first_x, second_x, first_y, second_y, n,
    starts_x, squares_x, into_x, widths_x, turn_x,
    starts_y, squares_y, into_y, widths_y, turn_y,
    limits, weakest, alone, product, out,
):  # fmt: skip
    """Set ``out[i, j]`` to r of columns i of x and j of y, for j below ``limits[i]``.

    Parameters
    ----------
    cross : array
        Σ f·g over the rows in which both columns are present, of all functions of x and of y.
    first_x, second_x : arrays
        Σ f of every function of x, and Σ f·f' of the functions of a column of numbers (its lower
        triangle row by row), one column for each y; ``first_y`` and ``second_y`` the other way
        round. Indicators need no ``second``: their product is 0 or themselves.
    n : array
        Weight of the rows of every pair.
    starts_x, squares_x : arrays of int
        Where the functions of each column start, and its entries of ``second_x``; a column of
        indicators has none.
    into_x, widths_x : arrays of int
        Which functions are added up to one, and how many there are then; −1 leaves one out.
    turn_x : array
        The combination of functions whose covariances give the sign; all 0 if r has no sign.
    alone : bool
        Whether the sums of a column are the same in all of its pairs, as they are without gaps:
        then its covariances are factored once.
    product : bool
        Whether r is the signed root of the product of all canonical correlations instead of the
        largest one: of columns with the same number of states, whose functions are all indicators.
    """
    most = max(widths_x.max(), widths_y.max())
    block, gram = np.empty((most, most)), np.empty((most, most))
    left, right = np.empty((most, most)), np.empty((limits.max() if alone else 1, most, most))
    rank_x, ranks_y = 0, np.empty(right.shape[0], np.int64)
    alone_once = alone and not product
    if alone_once:
        for j in range(limits.max()):
            ranks_y[j] = _factor_of(
                first_y[:, 0], second_y[:, 0], n[0, j], starts_y, squares_y, into_y, j, widths_y,
                right[j],
            )  # fmt: skip
    for i in range(out.shape[0]):
        p = widths_x[i]
        if alone_once and limits[i] > 0:
            rank_x = _factor_of(
                first_x[:, 0], second_x[:, 0], n[i, 0], starts_x, squares_x, into_x, i, widths_x,
                left,
            )  # fmt: skip
        for j in range(limits[i]):
            q = widths_y[j]
            total = n[i, j]
            out[i, j] = 0.0
            if total <= 0.0:
                continue
            sign = _cross_covariance(
                cross, first_x[:, j], first_y[:, i], total, starts_x, i, starts_y, j,
                into_x, into_y, turn_x, turn_y, block,
            )  # fmt: skip
            if product:
                out[i, j] = _signed_root(
                    block, p, first_x[:, j], starts_x[i], first_y[:, i], starts_y[j], total
                )
                continue
            at = j if alone else 0
            if not alone:
                rank_x = _factor_of(
                    first_x[:, j], second_x[:, j], total, starts_x, squares_x, into_x, i, widths_x,
                    left,
                )  # fmt: skip
                ranks_y[0] = _factor_of(
                    first_y[:, i], second_y[:, i], total, starts_y, squares_y, into_y, j, widths_y,
                    right[0],
                )  # fmt: skip
            _whiten_rows(left, block, p, q)
            _whiten_columns(right[at], block, p, q)
            r = _strength(block, p, q, rank_x, ranks_y[at], total, weakest, gram)
            out[i, j] = -r if sign < 0.0 else r


@kernel()
def _cross_covariance(
    cross, first_x, first_y, total, starts_x, i, starts_y, j, into_x, into_y, turn_x, turn_y, out
):  # fmt: skip
    """Set out = E[f·g] − E[f]·E[g]; return that of the combinations ``turn``, 1 if they are 0."""
    start_x, stop_x, start_y, stop_y = starts_x[i], starts_x[i + 1], starts_y[j], starts_y[j + 1]
    out[:] = 0.0
    sign = 0.0
    for x in range(start_x, stop_x):
        mean = first_x[x] / total
        for y in range(start_y, stop_y):
            value = cross[x, y] / total - mean * (first_y[y] / total)
            if into_x[x] >= 0 and into_y[y] >= 0:
                out[into_x[x], into_y[y]] += value
            sign += turn_x[x] * value * turn_y[y]
    return sign


@kernel()
def _covariance(first, second, total, starts, squares, into, column, out):
    """Set the lower triangle of out to the covariances of the functions of one column."""
    start, stop, at = starts[column], starts[column + 1], squares[column]
    if squares[column + 1] == squares[column]:  # indicators, some of which are added up
        out[:] = 0.0
        for x in range(start, stop):
            if into[x] < 0:
                continue
            mean = first[x] / total
            out[into[x], into[x]] += mean
            for y in range(start, stop):
                if into[y] >= 0:
                    out[into[x], into[y]] -= mean * (first[y] / total)
        return
    for x in range(start, stop):
        mean = first[x] / total
        for y in range(start, x + 1):
            out[x - start, y - start] = second[at] / total - mean * (first[y] / total)
            at += 1


@kernel()
def _factor_of(first, second, total, starts, squares, into, column, widths, out):
    """Set out to the Cholesky factor of the covariances of one column; return the rank."""
    _covariance(first, second, total, starts, squares, into, column, out)
    return _factor(out, widths[column])


@kernel()
def _factor(a, size):
    """Overwrite the lower triangle of a by its Cholesky factor; return the rank.

    A pivot that is rounding becomes 0: the function of that row adds nothing.
    """
    rank = 0
    for i in range(size):
        own = a[i, i]
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            if j < i:
                a[i, j] = total / a[j, j] if a[j, j] > 0.0 else 0.0
            elif own > 0.0 and total > _DEPENDENT * own:
                a[i, i] = np.sqrt(total)
                rank += 1
            else:
                a[i, i] = 0.0
    return rank


@kernel()
def _whiten_rows(factor, block, p, q):
    """Overwrite the block B by L⁻¹·B; rows of pivot 0 become 0."""
    for x in range(p):
        for y in range(q):
            total = block[x, y]
            for k in range(x):
                total -= factor[x, k] * block[k, y]
            block[x, y] = total / factor[x, x] if factor[x, x] > 0.0 else 0.0


@kernel()
def _whiten_columns(factor, block, p, q):
    """Overwrite the block B by B·L⁻ᵀ; columns of pivot 0 become 0."""
    for x in range(p):
        for y in range(q):
            total = block[x, y]
            for k in range(y):
                total -= factor[y, k] * block[x, k]
            block[x, y] = total / factor[y, y] if factor[y, y] > 0.0 else 0.0


@kernel()
def _strength(block, p, q, rank_x, rank_y, n, weakest, gram):
    """Return the first singular value σ of a whitened block, with its bias taken off.

    E[σ²] is about ρ² + (1 − ρ²)·b with b = (p + q − 2)/n more than for single functions, of which
    the square is taken as it is. What is left is at least weakest²/n.
    """
    if rank_x == 0 or rank_y == 0:
        return 0.0
    square = min(largest_square(block, p, q, gram), 1.0)
    extra = rank_x + rank_y - 2
    if extra == 0:
        return np.sqrt(square)
    bias = extra / n
    if bias >= 1.0:
        return 0.0
    return np.sqrt(min(max((square - bias) / (1.0 - bias), weakest * weakest / n), 1.0))


@kernel()
def _signed_root(block, size, first_x, start_x, first_y, start_y, n):
    """Signed root |det J̃|^(1/(K−1)) of the normalized joint table of two columns of K states.

    J̃ = D_i^(−½)·J·D_j^(−½) with the marginals D of the pair's own table. Its determinant is that of
    the covariances of K − 1 indicators, over the roots of all marginals. A singular table, or one
    with an empty state, gives 0.
    """
    share_x, share_y = np.empty(size), np.empty(size)
    rest_x, rest_y = 1.0, 1.0  # share of the base
    for x in range(size):
        share_x[x], share_y[x] = first_x[start_x + x] / n, first_y[start_y + x] / n
        rest_x -= share_x[x]
        rest_y -= share_y[x]
    if min(rest_x, rest_y, share_x.min(), share_y.min()) <= _SINGULAR:
        return 0.0
    turned = _is_upper(block, size)
    work = np.empty((size, size))
    for x in range(size):
        for y in range(size):
            value = block[x, y] / np.sqrt(share_x[x] * share_y[y])
            if turned:
                work[y, x] = value
            else:
                work[x, y] = value
    log_det, sign = _log_determinant(work)
    return sign * np.exp((log_det - 0.5 * np.log(rest_x * rest_y)) / size)


@kernel()
def _is_upper(table, size):
    """Whether to turn a table over, so that rounding is the same whichever variable comes first."""
    for x in range(size):
        for y in range(x):
            if table[x, y] != table[y, x]:
                return table[x, y] < table[y, x]
    return False


@kernel()
def _log_determinant(a):
    """Logarithm of the size of the determinant, and its sign: 0 where singular; in place."""
    log_det, sign = 0.0, 1.0
    for step in range(a.shape[0]):
        # Partial pivoting: the largest entry of the column; an exchange of rows turns the sign.
        best = step
        for x in range(step + 1, a.shape[0]):
            if abs(a[x, step]) > abs(a[best, step]):
                best = x
        pivot = a[best, step]
        if abs(pivot) < _SINGULAR:
            return 0.0, 0.0
        if best != step:
            sign = -sign
            for y in range(step, a.shape[0]):
                a[best, y], a[step, y] = a[step, y], a[best, y]
        if pivot < 0.0:
            sign = -sign
        log_det += np.log(abs(pivot))
        for x in range(step + 1, a.shape[0]):
            factor = a[x, step] / pivot
            for y in range(step + 1, a.shape[0]):
                a[x, y] -= factor * a[step, y]
    return log_det, sign


@kernel()
def largest_square(block, p, q, gram):
    """Return the largest squared singular value of block[:p, :q].

    It is the largest eigenvalue of the Gram matrix of the smaller side.
    """
    size = min(p, q)
    for a in range(size):
        for b in range(a + 1):
            total = 0.0
            if p <= q:
                for k in range(q):
                    total += block[a, k] * block[b, k]
            else:
                for k in range(p):
                    total += block[k, a] * block[k, b]
            gram[a, b] = total
            gram[b, a] = total
    if size == 1:
        return gram[0, 0]
    if size == 2:
        half = 0.5 * (gram[0, 0] - gram[1, 1])
        mean = 0.5 * (gram[0, 0] + gram[1, 1])
        return mean + np.sqrt(half * half + gram[0, 1] * gram[0, 1])
    return _largest_eigenvalue(gram, size)


@kernel()
def _largest_eigenvalue(a, size):
    """Return the largest eigenvalue of a symmetric matrix, which is overwritten."""
    for _ in range(_SWEEPS):
        off = 0.0
        for i in range(1, size):
            for j in range(i):
                off += a[i, j] * a[i, j]
        trace = 0.0
        for i in range(size):
            trace += a[i, i]
        if off <= (_PRECISE * trace) ** 2:
            break
        for i in range(1, size):
            for j in range(i):
                if a[i, j] != 0.0:
                    _rotate(a, size, i, j)
    best = a[0, 0]
    for i in range(1, size):
        best = max(best, a[i, i])
    return best


@kernel()
def _rotate(a, size, i, j):
    """Turn rows and columns i and j so that a[i, j] becomes 0."""
    theta = 0.5 * (a[j, j] - a[i, i]) / a[i, j]
    t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
    if theta < 0.0:
        t = -t
    c = 1.0 / np.sqrt(t * t + 1.0)
    s = t * c
    for k in range(size):
        x, y = a[i, k], a[j, k]
        a[i, k] = c * x - s * y
        a[j, k] = s * x + c * y
    for k in range(size):
        x, y = a[k, i], a[k, j]
        a[k, i] = c * x - s * y
        a[k, j] = s * x + c * y

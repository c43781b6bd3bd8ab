"""Correlations of the Gaussian variables behind ordered answers, from tables of counts.

An answer i says that a standard normal variable x lies between the thresholds a_{i−1} and a_i,
which follow from the shares of the answers. The probability of a cell of a table is a difference of
Φ₂(a_i, b_j; ρ), the distribution function of two normal variables of correlation ρ, where

    Φ₂(h, k; ρ) = Φ(h)·Φ(k) + 1/2π·∫ exp(−(h² + k² − 2hk·sin θ)/(2·cos² θ)) dθ,  0 ≤ θ ≤ asin ρ,

(Drezner and Wesolowsky 1990; Genz 2004), by Gauss-Legendre quadrature, and ∂Φ₂/∂ρ is the density of
the two variables at (h, k).
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel

LIMIT = 0.9999
"""Largest |ρ| that is looked at."""

CORRECTION = 0.5
"""Rows added to empty cells where the likelihood of a table grows up to |ρ| = 1."""

_STEPS = 60  # of Fisher's scoring; most pairs take 4
_PRECISE = 1e-9  # of a correlation
_ROUNDING = 1e-14  # of the lattice
_ROOT_2 = math.sqrt(2.0)
_ROOT_2PI = math.sqrt(2.0 * math.pi)  # the density of a normal variable is exp(−x²/2) over it


def _nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


_FEW, _FEW_WEIGHTS = _nodes(6)
_MANY, _MANY_WEIGHTS = _nodes(20)  # as many as Genz (2004) takes from |ρ| = 0.75 on
_FEW_SUFFICE = 0.5  # up to this |ρ| six nodes have an error below 1e-9


@kernel()
def _cdf(z):
    return 0.5 * math.erfc(-z / _ROOT_2)


@kernel()
def _density(z):
    return math.exp(-0.5 * z * z) / _ROOT_2PI


@kernel()
def _quantile(p):
    """Φ⁻¹(p): a rational approximation (Abramowitz and Stegun 26.2.23), two steps by Halley."""
    tail = min(p, 1.0 - p)
    t = math.sqrt(-2.0 * math.log(max(tail, 1e-300)))
    z = (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    ) - t
    for _ in range(2):
        e = (_cdf(z) - tail) / _density(z)
        z -= e / (1.0 + 0.5 * z * e)
    return z if p < 0.5 else -z


@kernel()
def _lattice(a, b, rho, below, slope):
    """Set Φ₂ and ∂Φ₂/∂ρ at all pairs of thresholds, with −∞ before and ∞ after them."""
    nx, ny = a.size + 1, b.size + 1
    for i in range(nx + 1):
        below[i, 0] = slope[i, 0] = slope[i, ny] = 0.0
        below[i, ny] = _cdf(a[i - 1]) if 0 < i < nx else (1.0 if i else 0.0)
    for j in range(ny):
        below[0, j] = slope[0, j] = slope[nx, j] = 0.0
        below[nx, j] = _cdf(b[j - 1]) if j else 0.0
    nodes, weights = _MANY, _MANY_WEIGHTS
    if abs(rho) <= _FEW_SUFFICE:
        nodes, weights = _FEW, _FEW_WEIGHTS
    end = math.asin(rho)
    rest = 1.0 - rho * rho
    scale = 1.0 / (2.0 * math.pi * math.sqrt(rest))
    sines, halves = np.empty(nodes.size), np.empty(nodes.size)
    for q in range(nodes.size):
        sines[q] = math.sin(nodes[q] * end)
        halves[q] = 0.5 / (1.0 - sines[q] * sines[q])  # 1/(2·cos² θ)
    for i in range(1, nx):
        h = a[i - 1]
        for j in range(1, ny):
            k = b[j - 1]
            squares, product = h * h + k * k, h * k
            total = 0.0
            for q in range(nodes.size):
                total += weights[q] * math.exp((2.0 * product * sines[q] - squares) * halves[q])
            below[i, j] = below[i, ny] * below[nx, j] + total * end / (2.0 * math.pi)
            slope[i, j] = scale * math.exp((2.0 * product * rho - squares) / (2.0 * rest))


@kernel()
def bivariate_cdf(h, k, rho):
    """Φ₂(h, k; ρ)."""
    below, slope = np.empty((3, 3)), np.empty((3, 3))
    _lattice(np.array([h]), np.array([k]), rho, below, slope)
    return below[1, 1]


@kernel()
def _cell(lattice, i, j):
    return lattice[i + 1, j + 1] - lattice[i, j + 1] - lattice[i + 1, j] + lattice[i, j]


@kernel()
def _scores(counts, below, slope):
    """Derivative of the log-likelihood by ρ, and the information of a row."""
    score, information = 0.0, 0.0
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            p, d = _cell(below, i, j), _cell(slope, i, j)
            if p > _ROUNDING:
                information += d * d / p
            if counts[i, j] > 0.0:
                score += counts[i, j] * d / max(p, _ROUNDING)
    return score, information


@kernel()
def _total(counts):
    total = 0.0
    for count in counts:
        total += count
    return total


@kernel()
def _margins(table):
    """Sums of the rows and of the columns."""
    rows, columns = np.zeros(table.shape[0]), np.zeros(table.shape[1])
    for i in range(rows.size):
        for j in range(columns.size):
            rows[i] += table[i, j]
            columns[j] += table[i, j]
    return rows, columns


@kernel()
def thresholds_of(counts):
    """Φ⁻¹ of the shares of rows up to each level but the last."""
    out = np.empty(counts.size - 1)
    total, seen = _total(counts), 0.0
    for i in range(out.size):
        seen += counts[i]
        out[i] = _quantile(seen / total)
    return out


@kernel()
def level_means(counts, thresholds):
    """E[x | level] = (φ(a_{i−1}) − φ(a_i))/p_i of every level."""
    out = np.empty(counts.size)
    total, last = _total(counts), 0.0
    for i in range(out.size):
        here = _density(thresholds[i]) if i < thresholds.size else 0.0
        out[i] = (last - here) * total / counts[i]
        last = here
    return out


@kernel()
def _start(counts, a, b):
    """Correlation of the mean scores of the answers, freed from what grouping takes off."""
    rows, columns = _margins(counts)
    u, v = level_means(rows, a), level_means(columns, b)
    product, uu, vv, n = 0.0, 0.0, 0.0, 0.0
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            product += counts[i, j] * u[i] * v[j]
            uu += counts[i, j] * u[i] * u[i]
            vv += counts[i, j] * v[j] * v[j]
            n += counts[i, j]
    return min(max(product * n / (uu * vv), -0.9), 0.9)


@kernel()
def _maximized(counts, a, b, below, slope):
    """The ρ of highest likelihood: Fisher's scoring within an interval that shrinks."""
    n = _total(_margins(counts)[0])
    rho, low, high = _start(counts, a, b), -LIMIT, LIMIT
    for _ in range(_STEPS):
        _lattice(a, b, rho, below, slope)
        score, information = _scores(counts, below, slope)
        if score > 0.0:
            low = rho
        else:
            high = rho
        new = rho + (score / (n * information) if information > 0.0 else 0.0)
        if not low < new < high:
            new = 0.5 * (low + high)
        moved = abs(new - rho)
        rho = new
        if moved < _PRECISE:
            break
    return rho


@kernel()
def _compressed(counts):
    """Return the table without rows and columns that have no counts."""
    by_row, by_column = _margins(counts)
    rows, columns = _filled(by_row), _filled(by_column)
    out = np.empty((rows.size, columns.size))
    for i in range(rows.size):
        for j in range(columns.size):
            out[i, j] = max(counts[rows[i], columns[j]], 0.0)
    return out


@kernel()
def _filled(counts):
    """Numbers of the levels that have counts."""
    out = np.empty(counts.size, np.int64)
    size = 0
    for i in range(counts.size):
        if counts[i] > 0.0:
            out[size] = i
            size += 1
    return out[:size]


@kernel()
def _one_to_one(counts):
    """Sign of the dependence if every answer goes with one other in order; 0 if not."""
    if counts.shape[0] != counts.shape[1]:
        return 0.0
    rising, falling = True, True
    last = counts.shape[0] - 1
    for i in range(last + 1):
        for j in range(last + 1):
            if counts[i, j] > 0.0:
                rising = rising and i == j
                falling = falling and i == last - j
    return 1.0 if rising else (-1.0 if falling else 0.0)


@kernel()
def _two_steps(counts, below, slope):
    """Thresholds of both sides, then ρ."""
    rows, columns = _margins(counts)
    a, b = thresholds_of(rows), thresholds_of(columns)
    return a, b, _maximized(counts, a, b, below, slope)


@kernel()
def polychoric(joint, precise):
    """Two-step ρ of a table of counts, and its standard error if ``precise``; 0 and ∞ if unknown.

    A table whose likelihood rises up to |ρ| = 1 gets half a row more in each empty cell, unless
    every answer goes with one other.
    """
    counts = _compressed(joint)
    if counts.shape[0] < 2 or counts.shape[1] < 2:
        return 0.0, np.inf
    sign = _one_to_one(counts)
    if sign != 0.0:
        return sign, 0.0
    shape = (counts.shape[0] + 1, counts.shape[1] + 1)
    below, slope = np.empty(shape), np.empty(shape)
    a, b, rho = _two_steps(counts, below, slope)
    if abs(rho) > LIMIT - 1e-3:
        for i in range(counts.shape[0]):
            for j in range(counts.shape[1]):
                if counts[i, j] <= 0.0:
                    counts[i, j] = CORRECTION
        a, b, rho = _two_steps(counts, below, slope)
    if not precise:
        return rho, np.inf
    _lattice(a, b, rho, below, slope)
    return rho, math.sqrt(_two_step_variance(counts, a, b, rho, below, slope))


@kernel()
def _two_step_variance(counts, a, b, rho, below, slope):
    """Variance of ρ̂, of which the thresholds were estimated first (Olsson 1979).

    A row in cell (i, j) moves ρ̂ by (∂P/∂ρ/P − Σ_t c_t·(δ_t − Φ(t))/φ(t))/(n·I), where t runs over
    the thresholds of both sides, δ_t says whether the answer lies below t, and c_t is
    Σ ∂P/∂ρ·∂P/∂t/P.
    """
    nx, ny = counts.shape
    cells, ratio = np.empty((nx, ny)), np.empty((nx, ny))
    information = 0.0
    for i in range(nx):
        for j in range(ny):
            cells[i, j] = max(_cell(below, i, j), _ROUNDING)
            d = _cell(slope, i, j)
            ratio[i, j] = d / cells[i, j]
            information += d * ratio[i, j]
    by_row, by_column = _moved(a, b, rho, ratio), _moved(b, a, rho, ratio.T)
    variance, n = 0.0, _total(_margins(counts)[0])
    for i in range(nx):
        for j in range(ny):
            moved = (ratio[i, j] - by_row[i] - by_column[j]) / information
            variance += cells[i, j] * moved * moved
    return variance / n


@kernel()
def _moved(a, b, rho, ratio):
    """Σ_t c_t·(δ_t − Φ(t))/φ(t) of every level that the thresholds a make."""
    out = np.zeros(a.size + 1)
    spread = math.sqrt(1.0 - rho * rho)
    for t in range(a.size):
        c, last = 0.0, 0.0
        for j in range(b.size + 1):
            here = _cdf((b[j] - rho * a[t]) / spread) if j < b.size else 1.0
            c += (here - last) * (ratio[t, j] - ratio[t + 1, j])  # without φ(a_t), which cancels
            last = here
        share = _cdf(a[t])
        for i in range(out.size):
            out[i] += c * ((1.0 if i <= t else 0.0) - share)
    return out


@kernel()
def polychoric_rows(joint, x_starts, y_starts, limits, precise, out, error):
    """Set ρ, and standard errors if ``precise``, of each x with the first ``limits[i]`` of y.

    ``joint`` holds the tables of all pairs; the levels of a column are laid end to end.
    """
    for i in range(x_starts.size - 1):
        rows = joint[x_starts[i] : x_starts[i + 1]]
        for j in range(limits[i]):
            out[i, j], error[i, j] = polychoric(rows[:, y_starts[j] : y_starts[j + 1]], precise)


# Numbers and answers ----------------------------------------------------------------------------


@kernel()
def polyserial(sums, counts, precise):
    """ρ of a normal score z and ordered levels, from Σ z of the rows of every level.

    E[z | level] = ρ·u with the mean u of the level, and V[z | level] = 1 − ρ²·(1 − v) with its
    variance v: least squares, whose weights follow from the last ρ.
    """
    there = _filled(counts)
    if there.size < 2:
        return 0.0, np.inf
    n, z = np.empty(there.size), np.empty(there.size)
    for k in range(there.size):
        n[k], z[k] = counts[there[k]], sums[there[k]]
    a = thresholds_of(n)
    u = level_means(n, a)
    v = _level_variances(n, a, u)
    rho, weight = 0.0, u.copy()
    for _ in range(4):
        above, below = 0.0, 0.0
        for k in range(u.size):
            above += weight[k] * z[k]
            below += weight[k] * u[k] * n[k]
        rho = min(max(above / below, -LIMIT), LIMIT)
        for k in range(u.size):
            weight[k] = u[k] / (1.0 - rho * rho * (1.0 - v[k]))
    if not precise:
        return rho, np.inf
    return rho, math.sqrt(_serial_variance(n, a, u, weight, rho))


@kernel()
def _level_variances(counts, a, u):
    """V[x | level] = 1 + (a_{i−1}·φ(a_{i−1}) − a_i·φ(a_i))/p_i − u²."""
    out = np.empty(counts.size)
    total, last = _total(counts), 0.0
    for i in range(out.size):
        here = a[i] * _density(a[i]) if i < a.size else 0.0
        out[i] = max(1.0 + (last - here) * total / counts[i] - u[i] * u[i], 1e-9)
        last = here
    return out


_POINTS = 97  # of the line from −6 to 6, over which variances are integrated
_STEP = 0.125


@kernel()
def _serial_variance(counts, a, u, weight, rho):
    """Variance of ρ̂ under the model, with scores and thresholds from the same rows.

    A row (z, k) moves ρ̂ by (g_k·(z − ρ·u_k) − ρ·Σ_t c_t·(δ_t − Φ(t))/φ(t) + r(z))/E[g·u], where
    c_t = Σ_k p_k·g_k·∂u_k/∂t; r(z₀) = ∫ (1[z₀ ≤ z] − Φ(z))·E[g | z] dz is the part of the ranks.
    """
    moved = _moved_means(counts.size, a, u, weight)
    given = _levels_given(a, rho)
    mean = np.empty(_POINTS)
    base = 0.0
    for q in range(_POINTS):
        mean[q] = 0.0
        for k in range(weight.size):
            mean[q] += given[q, k] * weight[k] * _STEP
        base += _cdf((q - _POINTS // 2) * _STEP) * mean[q]
    variance, above = 0.0, 0.0
    for q in range(_POINTS - 1, -1, -1):
        z = (q - _POINTS // 2) * _STEP
        ranks = above + 0.5 * mean[q] - base
        above += mean[q]
        for k in range(counts.size):
            one = weight[k] * (z - rho * u[k]) - rho * moved[k] + ranks
            variance += _density(z) * _STEP * given[q, k] * one * one
    n, scale = _total(counts), 0.0
    for k in range(counts.size):
        scale += counts[k] * weight[k] * u[k] / n
    return variance / (scale * scale * n)


@kernel()
def _moved_means(n_levels, a, u, weight):
    """Σ_t c_t·(δ_t − Φ(t))/φ(t) of every level.

    p_k·∂u_k/∂a_k = φ(a_k)·(a_k − u_k), and p_{k+1}·∂u_{k+1}/∂a_k = φ(a_k)·(u_{k+1} − a_k).
    """
    out = np.zeros(n_levels)
    for t in range(a.size):
        c = weight[t] * (a[t] - u[t]) + weight[t + 1] * (u[t + 1] - a[t])
        share = _cdf(a[t])
        for k in range(n_levels):
            out[k] += c * ((1.0 if k <= t else 0.0) - share)
    return out


@kernel()
def _levels_given(a, rho):
    """P(level | z) at the points of the line."""
    out = np.empty((_POINTS, a.size + 1))
    spread = math.sqrt(1.0 - rho * rho)
    for q in range(_POINTS):
        z, last = (q - _POINTS // 2) * _STEP, 0.0
        for k in range(a.size + 1):
            here = _cdf((a[k] - rho * z) / spread) if k < a.size else 1.0
            out[q, k] = here - last
            last = here
    return out


@kernel()
def polyserial_rows(sums, counts, starts, precise, out, error):
    """Set ρ of every column of numbers (row) with every column of levels, and standard errors."""
    for i in range(sums.shape[0]):
        for j in range(starts.size - 1):
            first, end = starts[j], starts[j + 1]
            out[i, j], error[i, j] = polyserial(sums[i, first:end], counts[i, first:end], precise)

"""Likelihoods of emitted values, and the moments that the M-step needs of them.

A real value was recorded with some resolution δ: it stands for the cell x ± δ/2, and its likelihood
is the probability of the cell, by Gauss-Legendre quadrature over nodes x_i = x + δ/2·ξ_i:

    P(x | k) = Σ_i ω_i·δ/2·N(x_i; μ_k, σ_k²).

Where δ is small beside σ_k one node suffices. The node is one more hidden variable of EM: the
M-step takes E[x_i] and E[x_i²], so that it raises the likelihood of the cells, and no state gains
by shrinking onto a value that occurs often. E[x_i − x] and E[(x_i − x)²] are kept when the
likelihoods are computed (``shift`` and ``spread``, of states for which one node does not suffice).
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.exponential import exp, log

FINE = 0.04
"""Cells narrower than this many standard deviations are taken at their middle."""

NARROWEST = 6.0
"""No standard deviation is smaller than δ over this: a cell then has 99.7 % of its state."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(9)
_SHARES = _WEIGHTS / 2.0
_X1, _X2, _X3, _X4 = (float(node) for node in _NODES[5:])  # with 0, the nodes that are not negative
_FAR = 300.0  # cells so far out, as h·|z|, have nothing on the far side
_SUMMED = 8.0  # logarithms that take the time of a log Γ
_FEW = 16.0  # sums of at most so many terms take the place of differences of ψ
_FEW_STEPS = 1_000.0  # the same in whole arrays
_SHORT = 0.1  # steps in log r that are taken without looking back
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_SMALL = 5_000  # likelihoods of values for which nothing is compiled


def _plain_shares(z, half):
    """Return h·|z| of cells z ± h, and the terms of `_cell_logs`: states × nodes × values."""
    tilt = half[:, None] * np.abs(z)
    c = _SHARES * np.exp(-0.5 * (half[:, None] * _NODES) ** 2)
    shares = np.exp((_NODES - _X4)[:, None] * tilt[:, None])
    shares *= c[:, :, None]
    return tilt, shares


def _plain_normal_logs(values, mean, sd, step, out, shift, spread):
    z = (values - mean[:, None]) / sd[:, None]
    out[:] = (math.log(step) - _HALF_LOG_2PI - np.log(sd))[:, None] - 0.5 * z * z
    coarse = step >= FINE * sd
    if coarse.any():
        tilt, shares = _plain_shares(z[coarse], 0.5 * step / sd[coarse])
        total = shares.sum(1)
        out[coarse] += _X4 * tilt + np.log(total)
        toward = 0.5 * step * _NODES
        shift[coarse] = np.where(z[coarse] < 0.0, 1.0, -1.0) * (toward @ shares) / total
        spread[coarse] = toward**2 @ shares / total
    out[:, np.isnan(values)] = 0.0


def _plain_normal_sums(values, weights, shift, spread, sd, step, center, sums):
    seen, coarse = ~np.isnan(values), (step >= FINE * sd)[:, None]
    x, weights = values[seen] - center, weights.reshape(sd.size, -1)[:, seen]
    shift = np.where(coarse, shift.reshape(sd.size, -1)[:, seen], 0.0)
    spread = np.where(coarse, spread.reshape(sd.size, -1)[:, seen], 0.0)
    sums[:, 0] += weights.sum(1)
    sums[:, 1] += (weights * (x + shift)).sum(1)
    sums[:, 2] += (weights * (x * x + 2.0 * x * shift + spread)).sum(1)


_plain_log_gamma = np.vectorize(math.lgamma, otypes=[float])


def _plain_count_logs(values, mean, size, out):
    mu, r = mean[:, None], size[:, None]
    poisson = values * np.log(mu) - mu
    base = _plain_log_gamma(r) + r * np.log1p(mu / r)
    other = _plain_log_gamma(values + r) + values * np.log(mu / (r + mu)) - base
    out[:] = np.where(np.isinf(r), poisson, other) - _plain_log_gamma(values + 1.0)
    out[:, np.isnan(values)] = 0.0


def _plain_weights_above(values, tails):
    below = np.arange(values[-1] if values[-1] <= _FEW_STEPS else 0.0)
    return tails[np.searchsorted(values, below, "right")]


def _plain_step_slopes(above, r):
    at = r + np.arange(above.size)
    return float((above / at).sum()), -float((above / (at * at)).sum())


def _plain_step_logs(above, r):
    return float(above @ np.log(r + np.arange(above.size)))


@kernel(fastmath=True)
def _center_logs(values, mean, sd, log_step, out):
    scale, base = 1.0 / sd, log_step - math.log(sd) - _HALF_LOG_2PI
    for p in range(values.size):
        z = (values[p] - mean) * scale
        out[p] = base - 0.5 * z * z


@kernel()
def _node_shares(half):
    """C = ω·exp(−(hξ)²/2) of the nodes ξ ≥ 0 of cells z ± h."""
    c_0 = _SHARES[4]
    c_1 = _SHARES[5] * math.exp(-0.5 * (half * _X1) ** 2)
    c_2 = _SHARES[6] * math.exp(-0.5 * (half * _X2) ** 2)
    c_3 = _SHARES[7] * math.exp(-0.5 * (half * _X3) ** 2)
    c_4 = _SHARES[8] * math.exp(-0.5 * (half * _X4) ** 2)
    return c_0, c_1, c_2, c_3, c_4


@kernel(fastmath=True)
def _cell_logs(values, mean, sd, step, out, shift, spread):
    """Set log-probabilities of cells, and E[x_i − x] and E[(x_i − x)²] within them.

    For z > 0 and nodes counted toward the mean, ω·exp(−(z − hξ)²/2) is exp(−z²/2 + ξ₄·t) times
    c·exp((ξ − ξ₄)·t) with t = h·z and ξ₄ the last node: at most c. With e = exp((ξ − ξ₄)·t) of a
    node, that of −ξ is exp(−2·ξ₄·t)/e.
    """
    half, scale, toward = 0.5 * step / sd, 1.0 / sd, 0.5 * step
    base = math.log(2.0 * half) - _HALF_LOG_2PI
    c_0, c_1, c_2, c_3, c_4 = _node_shares(half)
    for p in range(values.size):
        z = (values[p] - mean) * scale
        t = half * abs(z)
        e_1, e_2, e_3 = exp((_X1 - _X4) * t), exp((_X2 - _X4) * t), exp((_X3 - _X4) * t)
        opposite = exp(-2.0 * _X4 * t) if t < _FAR else 0.0
        f_1, f_2, f_3 = opposite / e_1, opposite / e_2, opposite / e_3
        s_1, s_2, s_3, s_4 = (
            c_1 * (e_1 + f_1),
            c_2 * (e_2 + f_2),
            c_3 * (e_3 + f_3),
            c_4 * (1.0 + opposite),
        )
        total = c_0 * exp(-_X4 * t) + s_1 + s_2 + s_3 + s_4
        one = (
            c_1 * _X1 * (e_1 - f_1)
            + c_2 * _X2 * (e_2 - f_2)
            + c_3 * _X3 * (e_3 - f_3)
            + c_4 * _X4 * (1.0 - opposite)
        )
        two = _X1 * _X1 * s_1 + _X2 * _X2 * s_2 + _X3 * _X3 * s_3 + _X4 * _X4 * s_4
        out[p] = base - 0.5 * z * z + _X4 * t + log(total)
        mean_toward = toward * one / total
        shift[p] = mean_toward if z < 0.0 else -mean_toward
        spread[p] = toward * toward * two / total


@kernel(small=_SMALL, plain=_plain_normal_logs)
def normal_logs(values, mean, sd, step, out, shift, spread):
    """Log-probability of every value for every state (row of ``out``); 0 for missing ones.

    ``shift`` and ``spread`` are set to the two moments of x_i − x within the cells.
    """
    for k in range(mean.size):
        if step < FINE * sd[k]:
            _center_logs(values, mean[k], sd[k], math.log(step), out[k])
        else:
            _cell_logs(values, mean[k], sd[k], step, out[k], shift[k], spread[k])
    hole = _hole(values)
    if hole < values.size:
        out[:, hole] = 0.0


@kernel(fastmath=True)
def _log_rising(r, out):
    """Fill log Γ(x + r)/Γ(r) = Σ log(r + j) over j < x, for x from 0 on."""
    for j in range(out.size - 1):
        out[j + 1] = log(r + j)
    out[0] = 0.0
    total = 0.0
    for x in range(1, out.size):
        total += out[x]
        out[x] = total


@kernel()
def _few_counts(values):
    """Return the largest count plus 1, or 0 if sums over all counts below would take longer.

    0 also where a value is no integer, as the mean of a column is.
    """
    largest = 0.0
    for p in range(values.size):
        if values[p] - np.floor(values[p]) > 0.0:
            return 0
        if values[p] > largest:  # not where it is missing
            largest = values[p]
    return int(largest) + 1 if largest < _SUMMED * values.size else 0


@kernel(small=_SMALL, plain=_plain_count_logs)
def count_logs(values, mean, size, out):
    """Log-probability of every count for every state; 0 for missing ones.

    Negative binomial with mean μ and size r, the variance μ + μ²/r; Poisson for r = ∞.
    """
    rising = np.empty(_few_counts(values))
    log_factorials = np.empty(values.size)
    for p in range(values.size):
        log_factorials[p] = math.lgamma(values[p] + 1.0)
    for k in range(mean.size):
        mu, r = mean[k], size[k]
        if r == np.inf:
            for p in range(values.size):
                out[k, p] = values[p] * math.log(mu) - mu - log_factorials[p]
            continue
        # log Γ(x + r)/Γ(r) + x·log(μ/(r + μ)) − r·log(1 + μ/r) − log x!
        slope, base = math.log(mu / (r + mu)), r * math.log1p(mu / r)
        if rising.size > 0:
            _log_rising(r, rising)
        else:
            base += math.lgamma(r)
        for p in range(values.size):
            x = values[p]
            if math.isnan(x):
                continue
            first = rising[int(x)] if rising.size > 0 else math.lgamma(x + r)
            out[k, p] = first + x * slope - base - log_factorials[p]
    hole = _hole(values)
    if hole < values.size:
        out[:, hole] = 0.0


@kernel()
def _hole(values):
    """Where the missing value stands, of which there is at most one; ``values.size`` if nowhere."""
    for p in range(values.size):
        if math.isnan(values[p]):
            return p
    return values.size


@kernel(fastmath=True)
def _add_moments(values, weights, center, sums):
    """Add Σ w, Σ w·(x − c), Σ w·(x − c)²."""
    zero, one, two = 0.0, 0.0, 0.0
    for p in range(values.size):
        x, w = values[p] - center, weights[p]
        zero += w
        one += w * x
        two += w * x * x
    sums[0] += zero
    sums[1] += one
    sums[2] += two


@kernel(fastmath=True)
def _add_cell_moments(values, weights, shift, spread, center, sums):
    """Add the same sums with expectations over the cells, x being the value before rounding."""
    zero, one, two = 0.0, 0.0, 0.0
    for p in range(values.size):
        x, w = values[p] - center, weights[p]
        zero += w
        one += w * (x + shift[p])
        two += w * (x * x + 2.0 * x * shift[p] + spread[p])
    sums[0] += zero
    sums[1] += one
    sums[2] += two


@kernel(plain=_plain_normal_sums)
def normal_sums(values, weights, shift, spread, sd, step, center, sums):
    """Add Σ w, Σ w·E[x − c], Σ w·E[(x − c)²] of every state (row of ``sums``).

    ``weights`` are the expected counts of the values, a row per state; the moments within cells,
    ``shift`` and ``spread``, are as :func:`normal_logs` set them.
    """
    hole, width = _hole(values), values.size
    for k in range(sd.size):
        for first, last in ((0, hole), (hole + 1, width)):
            x, w = values[first:last], weights[k * width + first : k * width + last]
            if step < FINE * sd[k]:
                _add_moments(x, w, center, sums[k])
            else:
                within = shift[k * width + first : k * width + last]
                square = spread[k * width + first : k * width + last]
                _add_cell_moments(x, w, within, square, center, sums[k])


@kernel()
def _polygamma(x):
    """ψ(x) and ψ′(x) for x > 0: the recurrence up to 8, from there the asymptotic series."""
    first, second = 0.0, 0.0
    while x < 8.0:
        first -= 1.0 / x
        second += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    first += math.log(x) - 0.5 / x
    first -= y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))))
    series = 1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30 - y * 5.0 / 66)))
    second += 1.0 / x + 0.5 * y + y / x * series
    return first, second


@kernel()
def _rising(low, gap, r):
    """ψ(low + gap + r) − ψ(low + r), the same of ψ′, and that of log Γ.

    With gap steps of 1 they are Σ 1/(r + j), −Σ 1/(r + j)² and Σ log(r + j), j from ``low`` on.
    """
    if gap > _FEW or gap != math.floor(gap):
        top, slope_top = _polygamma(low + gap + r)
        bottom, slope_bottom = _polygamma(low + r)
        logs = math.lgamma(low + gap + r) - math.lgamma(low + r)
        return top - bottom, slope_top - slope_bottom, logs
    first, second, product = 0.0, 0.0, 1.0
    for j in range(int(gap)):
        at = r + low + j
        inverse = 1.0 / at
        first += inverse
        second -= inverse * inverse
        product *= at
    return first, second, log(product)


@kernel()
def _add_rising_gaps(values, tails, r):
    """The same as :func:`_rising` from 0 to each count, summed with the counts' weights."""
    slope, curve, value, below = 0.0, 0.0, 0.0, 0.0
    for p in range(values.size):
        gap = values[p] - below
        if gap > 0.0 and tails[p] > 0.0:
            first, second, logs = _rising(below, gap, r)
            slope += tails[p] * first
            curve += tails[p] * second
            value += tails[p] * logs
        below = values[p]
    return slope, curve, value


@kernel(plain=_plain_weights_above)
def _weights_above(values, tails):
    """Weight of all counts above 0, 1, 2, … up to the largest; nothing if these are too many."""
    above = np.empty(int(values[-1]) if _few_counts(values) > 0 else 0)
    below = 0
    for p in range(values.size if above.size > 0 else 0):
        for j in range(below, int(values[p])):
            above[j] = tails[p]
        below = int(values[p])
    return above


@kernel(fastmath=True, plain=_plain_step_slopes)
def _step_slopes(above, r):
    """Σ w/(r + j) and −Σ w/(r + j)² with the weights above every j."""
    slope, curve = 0.0, 0.0
    for j in range(above.size):
        inverse = 1.0 / (r + j)
        slope += above[j] * inverse
        curve -= above[j] * inverse * inverse
    return slope, curve


@kernel(fastmath=True, plain=_plain_step_logs)
def _step_logs(above, r):
    """Σ w·log(r + j) with the weights above every j."""
    value = 0.0
    for j in range(above.size):
        value += above[j] * log(r + j)
    return value


@kernel()
def _size_value(values, tails, above, extra, a, mu, r):
    """Log-likelihood of counts, but for what does not depend on r.

    ``tails`` are the weights of all counts from each on, in ascending order, ``above`` those of
    all above 0, 1, 2, … One more count, ``extra``, has the weight ``a``. With W the weight of all
    and μ their mean, L = Σ w·(log Γ(x + r) − log Γ(r)) − W·(r·log(1 + μ/r) + μ·log(r + μ)).
    """
    total = tails[0] + a
    value = a * (math.lgamma(extra + r) - math.lgamma(r))
    if above.size > 0:  # log Γ(x + r) − log Γ(r) = Σ log(r + j) over all j < x
        value += _step_logs(above, r)
    else:
        value += _add_rising_gaps(values, tails, r)[2]
    return value - total * (r * math.log1p(mu / r) + mu * math.log(r + mu))


@kernel()
def _size_slopes(values, tails, above, extra, a, mu, r):
    """First two derivatives of :func:`_size_value` in r."""
    total = tails[0] + a
    top, slope_top = _polygamma(extra + r)
    bottom, slope_bottom = _polygamma(r)
    if above.size > 0:
        slope, curve = _step_slopes(above, r)
    else:
        slope, curve, _ = _add_rising_gaps(values, tails, r)
    slope += a * (top - bottom) - total * math.log1p(mu / r)
    curve += a * (slope_top - slope_bottom) + total * mu / (r * (r + mu))
    return slope, curve


@kernel()
def _fitted_size(values, tails, extra, a, mu, start, low, high):
    """Raise the likelihood of negative binomial counts in u = log r, the mean being fitted.

    One step of Newton's method from where it was, as EM has many: in u the slope is r·L′ and the
    curvature r²·L″ + r·L′. The size stays where it was if the likelihood would fall; a short step
    s up a concave L does not, as the rest of its expansion is of the order s³.
    """
    r, above = math.exp(start), _weights_above(values, tails)
    slope, curve = _size_slopes(values, tails, above, extra, a, mu, r)
    first = r * slope
    second = r * r * curve + first
    step = -first / second if second < 0.0 else (1.0 if first > 0.0 else -1.0)
    u = min(max(start + min(max(step, -1.0), 1.0), low), high)
    if second < 0.0 and abs(step) <= _SHORT:
        return u
    before = _size_value(values, tails, above, extra, a, mu, r)
    after = _size_value(values, tails, above, extra, a, mu, math.exp(u))
    return u if after >= before else start


@kernel()
def _fitted_count(values, weights, extra, a, start, low, high):
    """Log of the mean and log of the size r of a state; the count ``extra`` has the weight a."""
    tails = np.zeros(values.size + 1)
    total = a * extra
    for p in range(values.size - 1, -1, -1):
        tails[p] = tails[p + 1] + weights[p]
        total += weights[p] * values[p]
    mean = max(total / (tails[0] + a), 1e-8)
    size = _fitted_size(values, tails, extra, a, mean, start, low, high)
    return math.log(mean), size


@kernel()
def fitted_counts(values, weights, extra, a, start, low, high):
    """Logarithms of means and sizes (two rows) of all states that raise the likelihood.

    The counts ``values`` ascend, ``weights`` has a row for every state. One more count, ``extra``,
    has the weight ``a``, and ``start`` are the logarithms of the sizes before.
    """
    new = np.empty((2, start.size))
    for k in range(start.size):
        new[0, k], new[1, k] = _fitted_count(values, weights[k], extra, a, start[k], low, high)
    return new

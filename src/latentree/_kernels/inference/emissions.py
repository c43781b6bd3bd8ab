"""Likelihoods of emitted values, and the moments that the M-step needs of them.

A real value was recorded with some resolution δ: it stands for the cell x ± δ/2, and its likelihood
is the probability of the cell, by Gauss-Legendre quadrature over nodes x_i = x + δ/2·ξ_i:

    P(x | k) = Σ_i ω_i·δ/2·N(x_i; μ_k, σ_k²).

Where δ is small beside σ_k one node suffices. The node is one more hidden variable of EM: the
M-step takes E[x_i] and E[x_i²], so that it raises the likelihood of the cells, and no state gains
by shrinking onto a value that occurs often.
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
_LAST = float(_NODES[-1])
_SUMMED = 8.0  # logarithms that take the time of a log Γ
_FEW = 16.0  # sums of at most so many terms take the place of differences of ψ
_FEW_STEPS = 1_000.0  # the same in whole arrays
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_SMALL = 5_000  # likelihoods of values for which nothing is compiled


def _plain_shares(z, half):
    """Return h·|z| of cells z ± h, and the terms of `_node`: states × nodes × values."""
    tilt = half[:, None] * np.abs(z)
    c = _SHARES * np.exp(-0.5 * (half[:, None] * _NODES) ** 2)
    shares = np.exp((_NODES - _LAST)[:, None] * tilt[:, None])
    shares *= c[:, :, None]
    return tilt, shares


def _plain_normal_logs(values, mean, sd, step, out):
    z = (values - mean[:, None]) / sd[:, None]
    out[:] = (math.log(step) - _HALF_LOG_2PI - np.log(sd))[:, None] - 0.5 * z * z
    coarse = step >= FINE * sd
    if coarse.any():
        tilt, shares = _plain_shares(z[coarse], 0.5 * step / sd[coarse])
        out[coarse] += _LAST * tilt + np.log(shares.sum(1))
    out[:, np.isnan(values)] = 0.0


def _plain_leaf_moments(values, weights, mean, sd, step, center, sums):
    seen = ~np.isnan(values)
    values, weights = values[seen], weights.reshape(mean.size, -1)[:, seen]
    x = values - center
    shift, spread = np.zeros((2, *weights.shape))  # of the value before rounding, from x
    coarse = step >= FINE * sd
    if coarse.any():
        z = (values - mean[coarse, None]) / sd[coarse, None]
        shares = _plain_shares(z, 0.5 * step / sd[coarse])[1]
        shares /= shares.sum(1)[:, None]
        toward = 0.5 * step * _NODES
        shift[coarse] = np.where(z < 0.0, 1.0, -1.0) * (toward @ shares)
        spread[coarse] = toward**2 @ shares
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


def _plain_add_rising(values, tails, r):
    if values[-1] > _FEW_STEPS:
        return _add_rising_gaps(values, tails, r)
    below = np.arange(values[-1])  # log Γ(x + r) − log Γ(r) = Σ log(r + j) over all j < x
    above, at = tails[np.searchsorted(values, below, "right")], r + below
    return float((above / at).sum()), -float((above / (at * at)).sum()), float(above @ np.log(at))


@kernel(fastmath=True)
def _center_logs(values, mean, sd, log_step, out):
    scale, base = 1.0 / sd, log_step - math.log(sd) - _HALF_LOG_2PI
    for p in range(values.size):
        z = (values[p] - mean) * scale
        out[p] = base - 0.5 * z * z


@kernel(fastmath=True)
def _cell_logs(values, mean, sd, step, out):
    half = 0.5 * step / sd
    base = math.log(2.0 * half) - _HALF_LOG_2PI
    tilt, total = np.empty(values.size), np.zeros(values.size)
    for p in range(values.size):
        tilt[p] = half * abs(values[p] - mean) / sd
    for i in range(_NODES.size):
        c, farther = _node(i, half)
        for p in range(values.size):
            total[p] += c * exp(farther * tilt[p])
    for p in range(values.size):
        z = (values[p] - mean) / sd
        out[p] = base - 0.5 * z * z + _LAST * tilt[p] + math.log(total[p])


@kernel()
def _node(i, half):
    """What a node ξ has of a cell z ± h, in the terms c·exp(f·h·|z|): c and f.

    For z > 0 and nodes counted toward the mean, ω·exp(−(z − hξ)²/2) is exp(−z²/2 + ξ₉·h·z) times
    c·exp(f·h·z) with c = ω·exp(−(hξ)²/2) and f = ξ − ξ₉, ξ₉ the last node: at most c.
    """
    return _SHARES[i] * math.exp(-0.5 * (half * _NODES[i]) ** 2), _NODES[i] - _LAST


@kernel(small=_SMALL, plain=_plain_normal_logs)
def normal_logs(values, mean, sd, step, out):
    """Log-probability of every value for every state (row of ``out``); 0 for missing ones."""
    hole = _hole(values)
    for k in range(mean.size):
        for first, last in ((0, hole), (hole + 1, values.size)):
            if step < FINE * sd[k]:
                log_step = math.log(step)
                _center_logs(values[first:last], mean[k], sd[k], log_step, out[k, first:last])
            else:
                _cell_logs(values[first:last], mean[k], sd[k], step, out[k, first:last])
        if hole < values.size:
            out[k, hole] = 0.0


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
        if values[p] % 1.0 > 0.0:
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


@kernel(small=_SMALL)
def all_logs(leaf, is_count, resolutions, firsts, mean, spread, sizes, starts, values, out):
    """Log-likelihoods of the distinct values of all leaves, for every state of their neighbors.

    Leaf number ``leaf[e]`` has the states from ``firsts[leaf[e]]`` on, and ``sizes[e]`` of the
    values, which lie end to end; its likelihoods go to ``out[starts[e] :]``.
    """
    at = 0
    for e in range(sizes.size):
        own, width = leaf[e], sizes[e]
        first, last = firsts[own], firsts[own + 1]
        seen = values[at : at + width]
        block = out[starts[e] : starts[e] + (last - first) * width].reshape((last - first, width))
        if is_count[own]:
            count_logs(seen, mean[first:last], spread[first:last], block)
        else:
            normal_logs(seen, mean[first:last], spread[first:last], resolutions[own], block)
        at += width


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
def _add_cell_moments(values, weights, mean, sd, step, center, sums):
    """Add the same sums with expectations over the cells, x being the value before rounding."""
    half = 0.5 * step / sd
    tilt = np.empty(values.size)
    total, one, two = np.zeros(values.size), np.zeros(values.size), np.zeros(values.size)
    for p in range(values.size):
        tilt[p] = half * abs(values[p] - mean) / sd
    for i in range(_NODES.size):
        c, farther = _node(i, half)
        toward = 0.5 * step * _NODES[i]
        for p in range(values.size):
            share = c * exp(farther * tilt[p])
            total[p] += share
            one[p] += toward * share
            two[p] += toward * toward * share
    for p in range(values.size):
        x, w = values[p] - center, weights[p]
        shift = one[p] / total[p] if values[p] < mean else -one[p] / total[p]
        sums[0] += w
        sums[1] += w * (x + shift)
        sums[2] += w * (x * x + 2.0 * x * shift + two[p] / total[p])


@kernel(plain=_plain_leaf_moments)
def _add_leaf_moments(values, weights, mean, sd, step, center, sums):
    """Add the same sums of all states of a leaf (rows of ``sums``), each with its own weights."""
    hole, width = _hole(values), values.size
    for k in range(mean.size):
        mine = weights[k * width : (k + 1) * width]
        for first, last in ((0, hole), (hole + 1, width)):
            x, w = values[first:last], mine[first:last]
            if step < FINE * sd[k]:
                _add_moments(x, w, center, sums[k])
            else:
                _add_cell_moments(x, w, mean[k], sd[k], step, center, sums[k])


@kernel()
def all_moments(
    leaf, is_count, resolutions, firsts, mean, spread, centers, sizes, starts, values, weights
):
    """Σ w, Σ w·E[x − c], Σ w·E[(x − c)²] of every state of all leaves of reals; 0 of counts.

    Arguments are as in :func:`all_logs`; ``weights`` are the expected counts of the values.
    """
    sums = np.zeros((mean.size, 3))
    at = 0
    for e in range(sizes.size):
        own, width = leaf[e], sizes[e]
        seen = values[at : at + width]
        at += width
        if is_count[own]:
            continue
        first, last = firsts[own], firsts[own + 1]
        _add_leaf_moments(
            seen,
            weights[starts[e] : starts[e] + (last - first) * width],
            mean[first:last],
            spread[first:last],
            resolutions[own],
            centers[own],
            sums[first:last],
        )
    return sums


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


_add_rising = kernel(plain=_plain_add_rising)(_add_rising_gaps)


@kernel()
def _size_slopes(values, tails, extra, a, mu, r):
    """Log-likelihood of counts (but for what does not depend on r) and two derivatives in r.

    ``tails`` are the weights of all counts from each on, in ascending order. One more count,
    ``extra``, has the weight ``a``. With W the weight of all and μ their mean,
    L = Σ w·(log Γ(x + r) − log Γ(r)) − W·(r·log(1 + μ/r) + μ·log(r + μ)).
    """
    total = tails[0] + a
    slope, curve, value = _rising(0.0, extra, r)
    more_slope, more_curve, more = _add_rising(values, tails, r)
    slope, curve, value = a * slope + more_slope, a * curve + more_curve, a * value + more
    value -= total * (r * math.log1p(mu / r) + mu * math.log(r + mu))
    return value, slope - total * math.log1p(mu / r), curve + total * mu / (r * (r + mu))


@kernel()
def _fitted_size(values, tails, extra, a, mu, start, low, high):
    """Raise the likelihood of negative binomial counts in u = log r, the mean being fitted.

    One step of Newton's method from where it was, as EM has many: in u the slope is r·L′ and the
    curvature r²·L″ + r·L′. The size stays where it was if the likelihood would fall.
    """
    r = math.exp(start)
    before, slope, curve = _size_slopes(values, tails, extra, a, mu, r)
    first = r * slope
    second = r * r * curve + first
    step = -first / second if second < 0.0 else (1.0 if first > 0.0 else -1.0)
    u = min(max(start + min(max(step, -1.0), 1.0), low), high)
    after, _, _ = _size_slopes(values, tails, extra, a, mu, math.exp(u))
    return u if after >= before else start


@kernel()
def _fitted_normal(sums, scale, a, lowest):
    """Mean and log of the standard deviation of a state, in units of its column.

    With the prior weight a: μ = Σwx/(Σw + a), σ² = (Σw(x − μ)² + a·(μ² + 1))/(Σw + a).
    """
    total, one, two = sums[0] + a, sums[1] / scale, sums[2] / (scale * scale)
    mean = one / total
    square = max(two - 2.0 * mean * one + mean * mean * sums[0], 0.0)
    variance = (square + a * (mean * mean + 1.0)) / total
    return mean, max(0.5 * math.log(variance), lowest)


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
def _count_log(x, mu, r):
    """Log-probability of a count, as in :func:`count_logs`."""
    rest = math.lgamma(x + 1.0)
    if r == np.inf:
        return x * math.log(mu) - mu - rest
    base = math.lgamma(r) + r * math.log1p(mu / r)
    return math.lgamma(x + r) + x * math.log(mu / (r + mu)) - base - rest


@kernel()
def fitted_leaves(
    is_count, firsts, centers, scale, a, low, high, mean, size, old, moments, values, weights, sizes
):
    """Coordinates of every state of all leaves (two rows) that raise the likelihood.

    Counts of leaf number c are ``sizes[c]`` of the values, in ascending order, and their weights a
    row a state. Returns the log-density of the prior at the old coordinates, too, those of counts
    with means and sizes as given: ``a`` rows a state with the column's mean and variance.
    """
    new = np.empty(old.shape)
    log_prior = 0.0
    c, at, start = 0, 0, 0
    for leaf in range(is_count.size):
        center = centers[leaf]
        for k in range(firsts[leaf], firsts[leaf + 1]):
            if is_count[leaf]:
                own = weights[start : start + sizes[c]]
                start += sizes[c]
                new[0, k], new[1, k] = _fitted_count(
                    values[at : at + sizes[c]], own, center, a[k], old[1, k], low[k], high[k]
                )
                log_prior += a[k] * _count_log(center, mean[k], size[k])
            else:
                new[0, k], new[1, k] = _fitted_normal(moments[k], scale[k], a[k], low[k])
                x, u = old[0, k], old[1, k]
                log_prior -= a[k] * (u + 0.5 * (x * x + 1.0) * math.exp(-2.0 * u))
        if is_count[leaf]:
            at += sizes[c]
            c += 1
    return new, log_prior

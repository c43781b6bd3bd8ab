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

FINE = 0.04
"""Cells narrower than this many standard deviations are taken at their middle."""

NARROWEST = 6.0
"""No standard deviation is smaller than δ over this: a cell then has 99.7 % of its state."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(9)
_LOG_WEIGHTS = np.log(_WEIGHTS / 2.0)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel(fastmath=True)
def _center_logs(values, mean, sd, log_step, out):
    scale, base = 1.0 / sd, log_step - math.log(sd) - _HALF_LOG_2PI
    for p in range(values.size):
        z = (values[p] - mean) * scale
        out[p] = base - 0.5 * z * z


@kernel()
def _cell_log(z, half):
    """Log-probability of the cell z ± half of a standard normal variable."""
    top = -np.inf
    for i in range(_NODES.size):
        u = z + half * _NODES[i]
        top = max(top, _LOG_WEIGHTS[i] - 0.5 * u * u)
    total = 0.0
    for i in range(_NODES.size):
        u = z + half * _NODES[i]
        total += math.exp(_LOG_WEIGHTS[i] - 0.5 * u * u - top)
    return top + math.log(total) + math.log(2.0 * half) - _HALF_LOG_2PI


@kernel()
def normal_logs(values, mean, sd, step, out):
    """Log-probability of every value for every state (row of ``out``); 0 for missing ones."""
    for k in range(mean.size):
        half = 0.5 * step / sd[k]
        if 2.0 * half < FINE:
            _center_logs(values, mean[k], sd[k], math.log(step), out[k])
        else:
            for p in range(values.size):
                out[k, p] = _cell_log((values[p] - mean[k]) / sd[k], half)
        for p in range(values.size):
            if math.isnan(values[p]):
                out[k, p] = 0.0


@kernel()
def normal_moments(values, weights, mean, sd, step, center):
    """Σ w, Σ w·E[x − c], Σ w·E[(x − c)²] of every state, x being the value before rounding."""
    sums = np.zeros((3, mean.size))
    for k in range(mean.size):
        half = 0.5 * step / sd[k]
        fine = 2.0 * half < FINE
        for p in range(values.size):
            w = weights[k, p]
            if w <= 0.0 or math.isnan(values[p]):
                continue
            x = values[p] - center
            if fine:
                first, second = x, x * x
            else:
                z = (values[p] - mean[k]) / sd[k]
                total, one, two = 0.0, 0.0, 0.0
                top = -np.inf
                for i in range(_NODES.size):
                    u = z + half * _NODES[i]
                    top = max(top, _LOG_WEIGHTS[i] - 0.5 * u * u)
                for i in range(_NODES.size):
                    u = z + half * _NODES[i]
                    share = math.exp(_LOG_WEIGHTS[i] - 0.5 * u * u - top)
                    at = x + 0.5 * step * _NODES[i]
                    total += share
                    one += share * at
                    two += share * at * at
                first, second = one / total, two / total
            sums[0, k] += w
            sums[1, k] += w * first
            sums[2, k] += w * second
    return sums


@kernel()
def count_logs(values, mean, size, out):
    """Log-probability of every count for every state; 0 for missing ones.

    Negative binomial with mean μ and size r, the variance μ + μ²/r; Poisson for r = ∞.
    """
    for k in range(mean.size):
        mu, r = mean[k], size[k]
        for p in range(values.size):
            x = values[p]
            if math.isnan(x):
                out[k, p] = 0.0
            elif r == np.inf:
                out[k, p] = x * math.log(mu) - mu - math.lgamma(x + 1.0)
            else:
                # log Γ(x + r)/Γ(r) + x·log(μ/(r + μ)) − r·log(1 + μ/r) − log x!
                out[k, p] = (
                    math.lgamma(x + r)
                    - math.lgamma(r)
                    + x * math.log(mu / (r + mu))
                    - r * math.log1p(mu / r)
                    - math.lgamma(x + 1.0)
                )


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
def _size_likelihood(values, weights, mu, r):
    """Log-likelihood of counts, but for terms that do not depend on r."""
    total = 0.0
    for p in range(values.size):
        if weights[p] > 0.0:
            x = values[p]
            total += weights[p] * (
                math.lgamma(x + r) - math.lgamma(r) - r * math.log1p(mu / r) - x * math.log(r + mu)
            )
    return total


@kernel()
def fitted_sizes(values, weights, mean, log_size, low, high):
    """Raise the likelihood of negative binomial counts in u = log r, the means being fitted.

    Three steps of Newton's method from where it was. The derivative in r is
    g = Σ w·(ψ(x + r) − ψ(r)) − W·log(1 + μ/r); in u the slope is r·g and the curvature r²·g′ + r·g.
    A state whose likelihood would fall keeps its size.
    """
    out = np.empty(mean.size)
    for k in range(mean.size):
        u, mu = log_size[k], mean[k]
        for _ in range(3):
            r = math.exp(u)
            at_r, slope_at_r = _polygamma(r)
            g, curve = 0.0, 0.0
            for p in range(values.size):
                w = weights[k, p]
                if w > 0.0:
                    at_x, slope_at_x = _polygamma(values[p] + r)
                    g += w * (at_x - at_r - math.log1p(mu / r))
                    curve += w * (slope_at_x - slope_at_r + mu / (r * (r + mu)))
            first = r * g
            second = r * r * curve + first
            step = -first / second if second < 0.0 else (1.0 if first > 0.0 else -1.0)
            u = min(max(u + min(max(step, -1.0), 1.0), low), high)
        before = _size_likelihood(values, weights[k], mu, math.exp(log_size[k]))
        after = _size_likelihood(values, weights[k], mu, math.exp(u))
        out[k] = u if after >= before else log_size[k]
    return out

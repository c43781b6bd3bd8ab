"""How likely a link between two places is, given what the two sides say about them.

Divided by their standard deviations in the model, the estimates of the two places have a covariance
r in the data, and s is the mean of their two variances there; in the model these are c = ρ·√(q·q′)
and 1, with the correlation ρ of the link. The likelihood, relative to that of c = 0, is

    log L(c) = −n/2 · (log(1 − c²) + 2·(s·c² − r·c)/(1 − c²)),

largest where g(c) = c³ − r·c² + (2s − 1)·c − r is 0. It is taken as normal, with the standard
deviation σ = (1 − c²)/√(n·g′(c)).
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.exponential import exp, log
from latentree._kernels.structure.links import LARGEST, WEAKEST

STRONGEST = 0.9999
"""Of c: rows of duplicate columns would be known exactly."""

LEAST_SLOPE = 0.1
"""Of g′ where c is most likely; it is 1 + c² where the model's variances are those of the data."""

NEAR = 8.0
"""Standard deviations of c within which its largest value √(q·q′) matters."""

_ROOT_HALF = math.sqrt(0.5)


@kernel(fastmath=True)
def gain_of(c, r, s, n):
    """Return log L(c)."""
    rest = 1.0 - c * c
    return -0.5 * n * (log(rest) + 2.0 * (s * c - r) * c / rest)


@kernel(fastmath=True)
def slope_of(c, r, s):
    """Return g′(c)."""
    return max((3.0 * c - 2.0 * r) * c + 2.0 * s - 1.0, LEAST_SLOPE)


@kernel(fastmath=True)
def most_likely(r, s):
    """Return the c at which the likelihood is largest, for r ≥ 0.

    A step of Newton's method from the root of (c − r)·r² + (2s − 1)·c − r, exact for s = 1.
    """
    c = r * (1.0 + r * r) / max(2.0 * s - 1.0 + r * r, LEAST_SLOPE)
    c = min(c, STRONGEST)
    c -= (((c - r) * c + 2.0 * s - 1.0) * c - r) / slope_of(c, r, s)
    return min(max(c, 0.0), STRONGEST)


def _plain_worth_of_rows(small, large, n_small, n_large, n, n_states):
    possible = np.sqrt(np.outer(large.variance[:n_large], small.variance[:n_small]))
    largest = np.minimum(np.abs(large.rows[:n_large, :n_small]), possible).max()
    return rows_known_as_well(min(largest, STRONGEST), n, n_states)


@kernel(fastmath=True, plain=_plain_worth_of_rows)
def worth_of_rows(small, large, n_small, n_large, n, n_states):
    """Return what :func:`rows_known_as_well` leaves of n, at the largest c that is possible."""
    c = 0.0
    for j in range(n_large):
        q = large.variance[j]
        for i in range(n_small):
            r = abs(large.rows[j, i])
            if r > c:
                c = max(c, min(r, math.sqrt(q * small.variance[i]), STRONGEST))
    return rows_known_as_well(c, n, n_states)


@kernel()
def rows_known_as_well(c, n, n_states):
    """Return how many rows of normal variables of known variance tell as much of a correlation c.

    Such rows have 1/variance n·(1 + c²)/(1 − c²)² for an estimate of c. Columns that were scaled to
    variance 1 by the data have n/(1 − c²)², tables of K states n/((1 − c)·(1 + (K − 1)·c)),
    where n is K − 1 times the number of rows. ``n_states`` is K, 1 for numbers, and 0 if
    variances are known.
    """
    if n_states < 1.0:
        return n
    n /= 1.0 + c * c
    if n_states < 2.0:
        return n
    return n * (1.0 - c) * (1.0 + c) ** 2 / (1.0 + (n_states - 1.0) * c)


@kernel(fastmath=True, views=True)
def weigh_row(rows, q, own_spread, variance, spread, n, likely, gains, scales):
    """Write c, log L, and √(2π)·σ over the range of c, for one row of the large side.

    The last is negative where the largest possible c is near. Returns the largest log L.
    """
    best = 0.0
    unit, near = math.sqrt(0.5 * math.pi / n), NEAR / math.sqrt(n)
    for i in range(rows.size):
        r, s = abs(rows[i]), 0.5 * (own_spread + spread[i])
        c = most_likely(r, s)
        largest = math.sqrt(q * variance[i])
        likely[i] = c
        gains[i] = gain_of(c if c < largest else largest, r, s, n)
        width = unit * (1.0 - c * c) / (math.sqrt(slope_of(c, r, s)) * largest)
        scales[i] = -width if largest - c < near * (1.0 - c * c) else width
    # Apart from the loop above, which becomes vector instructions only without it.
    for i in range(rows.size):
        if gains[i] > best:
            best = gains[i]
    return best


@kernel(fastmath=True, views=True)
def to_likelihoods(gains, scales, best):
    """Turn log L into likelihoods in the unit of the best, and scales into 0, or −1 if negative."""
    for i in range(gains.size):
        gains[i] = abs(scales[i]) * exp(gains[i] - best)
        scales[i] = -1.0 if scales[i] < 0.0 else 0.0


def _plain_weigh_rows(small, large, n_small, n_large, n, likely, slab, spike):
    r = np.abs(large.rows[:n_large, :n_small])
    s = 0.5 * (large.spread[:n_large, None] + small.spread[:n_small])
    largest = np.sqrt(large.variance[:n_large, None] * small.variance[:n_small])
    c = np.minimum(r * (1.0 + r * r) / np.maximum(2.0 * s - 1.0 + r * r, LEAST_SLOPE), STRONGEST)

    def slope(c):
        return np.maximum((3.0 * c - 2.0 * r) * c + 2.0 * s - 1.0, LEAST_SLOPE)

    def gain(c):
        rest = 1.0 - c * c
        return -0.5 * n * (np.log(rest) + 2.0 * (s * c - r) * c / rest)

    c = np.clip(c - (((c - r) * c + 2.0 * s - 1.0) * c - r) / slope(c), 0.0, STRONGEST)
    gains = gain(np.minimum(c, largest))
    best = max(gains.max(), 0.0)
    width = math.sqrt(0.5 * math.pi / n) * (1.0 - c * c) / (np.sqrt(slope(c)) * largest)
    found = width * np.exp(gains - best)
    spikes = np.zeros_like(found)
    sigma = (1.0 - c * c) / np.sqrt(n * slope(c))
    at_most = np.minimum(largest, STRONGEST)
    spiked = 0.5 * np.exp(gain(at_most) - best)
    for j, i in zip(*np.nonzero(largest - c < NEAR / math.sqrt(n) * (1.0 - c * c)), strict=True):
        found[j, i] *= possible_share(c[j, i] / sigma[j, i], at_most[j, i] / sigma[j, i])
        spikes[j, i] = spiked[j, i]
    likely[:n_large, :n_small], slab[:n_large, :n_small] = c, found
    spike[:n_large, :n_small] = spikes


@kernel(fastmath=True, plain=_plain_weigh_rows)
def weigh_rows(small, large, n_small, n_large, n, likely, slab, spike):
    """Weigh a link between any two rows by its likelihood, in the unit of the largest.

    ``slab`` is ∫ L(c) dc / (2·√(q·q′)) over the c that are possible, from −√(q·q′) to √(q·q′), and
    ``spike`` is L(√(q·q′)) / 2, of a contracted link. The rows of the large side are their
    covariances r with those of the small one. ``likely`` becomes the c that is most likely.
    """
    variance, spread = small.variance[:n_small], small.spread[:n_small]
    best = 0.0
    for j in range(n_large):
        gain = weigh_row(
            large.rows[j, :n_small], large.variance[j], large.spread[j], variance, spread, n,
            likely[j], slab[j], spike[j],
        )  # fmt: skip
        if gain > best:
            best = gain
    for j in range(n_large):
        to_likelihoods(slab[j, :n_small], spike[j], best)
    for j in range(n_large):
        for i in range(n_small):
            if spike[j, i] < 0.0:
                r, s, c = abs(large.rows[j, i]), 0.5 * (large.spread[j] + spread[i]), likely[j, i]
                largest = min(math.sqrt(large.variance[j] * variance[i]), STRONGEST)
                sigma = (1.0 - c * c) / math.sqrt(n * slope_of(c, r, s))
                slab[j, i] *= possible_share(c / sigma, largest / sigma)
                spike[j, i] = 0.5 * math.exp(gain_of(largest, r, s, n) - best)


@kernel()
def possible_share(center, largest):
    """Return the share of a normal around ``center`` within ±``largest``, both in its σ.

    If the center is beyond, relative to the density at ``largest`` instead of that at the center.
    """
    beyond = center - largest
    if beyond <= 0.0:
        return 0.5 * (math.erf(-beyond * _ROOT_HALF) + math.erf((largest + center) * _ROOT_HALF))
    if beyond < 5.0:
        return 0.5 * math.exp(0.5 * beyond * beyond) * math.erfc(beyond * _ROOT_HALF)
    return 1.0 / (beyond * math.sqrt(2.0 * math.pi))


@kernel()
def draw_correlation(center, sigma, largest, rng):
    """Draw c from a normal between ±``largest``; return ρ = c / ``largest``."""
    beyond = (abs(center) - largest) / sigma
    if beyond > 2.0:  # the end of the tail is nearly exponential
        c = max(largest - sigma / beyond * rng.standard_exponential(), 0.0)
        c = math.copysign(c, center)
    else:
        c = 2.0
        while abs(c) >= largest:
            c = center + sigma * rng.standard_normal()
    return math.copysign(min(max(abs(c) / largest, WEAKEST), LARGEST), c)

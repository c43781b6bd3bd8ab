"""How likely a link between two places is, given what the two sides say about them.

Divided by their standard deviations in the model, the estimates of the two places have a covariance
r in the data, and s is the mean of their two variances there; in the model these are c = ρ·√(q·q′)
and 1, with the correlation ρ of the link. The likelihood, relative to that of c = 0, is

    log L(c) = −n/2 · (log(1 − c²) + 2·(s·c² − r·c)/(1 − c²)),

largest where g(c) = c³ − r·c² + (2s − 1)·c − r is 0. It is taken as normal, with the standard
deviation σ = (1 − c²)/√(n·g′(c)).

Correlations of links have the prior ¾·(1 − ρ²). It is 0 where a link is contracted: under a prior
that is not, n rows leave a false split with a probability of the order 1/√n; under this one, 1/n
(Johnson and Rossell, On the use of non-local prior densities in Bayesian hypothesis tests, JRSS B
72, 2010).
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

NEGLIGIBLE = -40.0
"""Of log L beside the largest: e^−40 of the most probable place, times at most m² by the prior."""

REACH = 6.0
"""Standard deviations beyond which a normal is left out of integrals and draws."""

WIDEST = 1e6
"""Standard deviations that the largest c may have: more would be rounding, with 10¹² rows."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NODES = 0.5 * (1.0 + _NODES)  # on (0, 1)
_WEIGHTS = _WEIGHTS * (0.75 / math.sqrt(2.0 * math.pi))


@kernel(fastmath=True)
def gain_of(c, r, s, n):
    """Return log L(c)."""
    rest = 1.0 - c * c
    return -0.5 * n * (log(rest) + 2.0 * (s * c - r) * c / rest)


@kernel()
def odds_of_sign(c, r, n):
    """Return L(−c) / L(c) of a contracted link, for r ≥ 0: it may have either sign."""
    return math.exp(-2.0 * n * r * c / (1.0 - c * c))


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


def _plain_largest_of(pairs):
    possible = np.sqrt(np.outer(pairs.first.variance, pairs.second.variance))
    return np.minimum(np.abs(pairs.covariance), possible).max()


@kernel(plain=_plain_largest_of, views=True)
def largest_of(pairs):
    """Return the largest c that is possible."""
    squared = 0.0
    for i in range(pairs.covariance.shape[0]):
        q = pairs.first.variance[i]
        squared = max(squared, largest_square(pairs.covariance[i], q, pairs.second.variance))
    return math.sqrt(squared)


@kernel(fastmath=True, views=True)
def largest_square(covariance, q, variance):
    """Return the largest c² of a row of the first side, where c is at most √(q·q′)."""
    largest = 0.0
    for j in range(covariance.size):
        squared, possible = covariance[j] * covariance[j], q * variance[j]
        squared = squared if squared < possible else possible
        largest = squared if squared > largest else largest
    return largest


@kernel()
def rows_known_as_well(c, n, n_states):
    """Return how many rows of normal variables of known variance tell as much of a correlation c.

    Such rows have 1/variance n·(1 + c²)/(1 − c²)² for an estimate of c. Columns that were scaled to
    variance 1 by the data have n/(1 − c²)², tables of K states n/((1 − c)·(1 + (K − 1)·c)),
    where n is K − 1 times the number of rows. ``n_states`` is K, 1 for numbers, and 0 if
    variances are known.
    """
    c = min(c, STRONGEST)
    if n_states < 1.0:
        return n
    n /= 1.0 + c * c
    if n_states < 2.0:
        return n
    return n * (1.0 - c) * (1.0 + c) ** 2 / (1.0 + (n_states - 1.0) * c)


@kernel(fastmath=True, views=True)
def weigh_row(covariance, q, own_spread, variance, spread, n, likely, gains, scales):
    """Write c, log L, and the integral of L and the prior in the unit of L, for one row.

    Where the largest possible c is near, the last is −√(2π)·σ over the range of c instead. The row
    is of the first side. Returns the largest log L.
    """
    best = 0.0
    unit, near = math.sqrt(0.5 * math.pi / n), NEAR / math.sqrt(n)
    for j in range(covariance.size):
        r, s = abs(covariance[j]), 0.5 * (own_spread + spread[j])
        c = most_likely(r, s)
        largest = math.sqrt(q * variance[j])
        likely[j] = c
        gains[j] = gain_of(c if c < largest else largest, r, s, n)
        width = unit * (1.0 - c * c) / (math.sqrt(slope_of(c, r, s)) * largest)
        # E(1 − ρ²) of a normal: the mean is c/largest, the variance 2/π·width².
        inner = 1.0 - (c * c) / (largest * largest) - 2.0 / math.pi * width * width
        scales[j] = -width if largest - c < near * (1.0 - c * c) else 1.5 * inner * width
    # Apart from the loop above, which becomes vector instructions only without it.
    for j in range(covariance.size):
        if gains[j] > best:
            best = gains[j]
    return best


@kernel(fastmath=True, views=True)
def to_likelihoods(gains, scales, best):
    """Turn log L into likelihoods in the unit of the best.

    Scales become −1 where they are negative and the likelihood is not negligible, and 0 elsewhere.
    """
    for i in range(gains.size):
        gain, scale = gains[i] - best, scales[i]
        gains[i] = abs(scale) * exp(gain)
        scales[i] = -1.0 if (scale < 0.0) & (gain > NEGLIGIBLE) else 0.0


def _plain_weigh_rows(pairs, n):
    r, s, largest = _shown(pairs)
    c = np.minimum(r * (1.0 + r * r) / np.maximum(2.0 * s - 1.0 + r * r, LEAST_SLOPE), STRONGEST)
    slope = _slopes(c, r, s)
    c = np.clip(c - (((c - r) * c + 2.0 * s - 1.0) * c - r) / slope, 0.0, STRONGEST)
    gains = _gains(np.minimum(c, largest), r, s, n)
    unit, near = math.sqrt(0.5 * math.pi / n), NEAR / math.sqrt(n)
    width = unit * (1.0 - c * c) / (np.sqrt(_slopes(c, r, s)) * largest)
    inner = 1.0 - (c / largest) ** 2 - 2.0 / math.pi * width**2
    is_near = largest - c < near * (1.0 - c * c)
    pairs.likely[:], pairs.slab[:] = c, gains
    pairs.spike[:] = np.where(is_near, -width, 1.5 * inner * width)
    return max(gains.max(), 0.0)


def _shown(pairs):
    s = 0.5 * (pairs.first.spread[:, None] + pairs.second.spread)
    return (
        np.abs(pairs.covariance),
        s,
        np.sqrt(np.outer(pairs.first.variance, pairs.second.variance)),
    )


def _slopes(c, r, s):
    return np.maximum((3.0 * c - 2.0 * r) * c + 2.0 * s - 1.0, LEAST_SLOPE)


def _gains(c, r, s, n):
    rest = 1.0 - c * c
    return -0.5 * n * (np.log(rest) + 2.0 * (s * c - r) * c / rest)


@kernel(fastmath=True, plain=_plain_weigh_rows, views=True)
def weigh_rows(pairs, n):
    """Find how likely a link between any two rows is; return the largest log L.

    ``likely`` becomes the c that is most likely, ``slab`` and ``spike`` what :func:`weigh_row` says
    of log L and its integral.
    """
    best = 0.0
    for i in range(pairs.covariance.shape[0]):
        gain = weigh_row(
            pairs.covariance[i], pairs.first.variance[i], pairs.first.spread[i],
            pairs.second.variance, pairs.second.spread, n,
            pairs.likely[i], pairs.slab[i], pairs.spike[i],
        )  # fmt: skip
        best = max(best, gain)
    return best


def _plain_integrate(pairs, n, best):
    r, s, largest = _shown(pairs)
    c, gains, scales = pairs.likely, pairs.slab - best, pairs.spike
    is_near = (scales < 0.0) & (gains > NEGLIGIBLE)
    pairs.slab[:] = np.abs(scales) * np.exp(gains)
    sigma = (1.0 - c * c) / np.sqrt(n * _slopes(c, r, s))
    at_most = np.minimum(largest, STRONGEST)
    other_sign = np.exp(-2.0 * n * r * at_most / (1.0 - at_most**2))
    spiked = 0.5 * np.exp(_gains(at_most, r, s, n) - best) * (1.0 + other_sign)
    pairs.spike[:] = np.where(is_near, spiked, 0.0)
    for i, j in zip(*np.nonzero(is_near), strict=True):
        pairs.slab[i, j] *= possible_share(c[i, j] / sigma[i, j], at_most[i, j] / sigma[i, j])


@kernel(fastmath=True, plain=_plain_integrate, views=True)
def integrate(pairs, n, best):
    """Weigh a link between any two rows, once log L is known, in the unit of the best.

    ``slab`` becomes ∫ L(ρ·√(q·q′))·¾·(1 − ρ²) dρ over all ρ, and ``spike``, of a contracted link,
    (L(√(q·q′)) + L(−√(q·q′))) / 2.
    """
    slab, spike = pairs.slab, pairs.spike
    for i in range(slab.shape[0]):
        to_likelihoods(slab[i], spike[i], best)
        for j in range(slab.shape[1]):
            if spike[i, j] < 0.0:
                r, c = abs(pairs.covariance[i, j]), pairs.likely[i, j]
                s = 0.5 * (pairs.first.spread[i] + pairs.second.spread[j])
                largest = math.sqrt(pairs.first.variance[i] * pairs.second.variance[j])
                largest = min(largest, STRONGEST)
                sigma = (1.0 - c * c) / math.sqrt(n * slope_of(c, r, s))
                slab[i, j] *= possible_share(c / sigma, largest / sigma)
                spike[i, j] = 0.5 * math.exp(gain_of(largest, r, s, n) - best)
                spike[i, j] *= 1.0 + odds_of_sign(largest, r, n)


def _plain_possible_share(center, largest):
    first, length = _range_of(center, largest)
    y = first + length * _NODES
    beyond = center - largest
    height = np.exp(-y * (beyond + 0.5 * y) if beyond > 0.0 else -0.5 * (y + beyond) ** 2)
    return float(_WEIGHTS @ (y * (2.0 * largest - y) * height)) * length / largest**2


@kernel(fastmath=True, plain=_plain_possible_share)
def possible_share(center, largest):
    """Return the mean of the prior over a normal around ``center``, within ±``largest``.

    Both are in the unit of its standard deviation. If the center is beyond the largest value, this
    is relative to the density there instead of that at the center. By the quadrature of Gauss, in
    y = ``largest`` − x.
    """
    beyond = center - largest
    first, length = _range_of(center, largest)
    total = 0.0
    for k in range(_NODES.size):
        y = first + length * _NODES[k]
        # −((y + β)² − β²)/2 beyond, without a difference of large numbers.
        power = -y * (beyond + 0.5 * y) if beyond > 0.0 else -0.5 * (y + beyond) * (y + beyond)
        total += _WEIGHTS[k] * y * (2.0 * largest - y) * exp(power)
    return total * length / (largest * largest)


@kernel()
def _range_of(center, largest):
    """Return where an integral over y begins, and its length.

    Beyond the largest value the density falls by e^(−β·y − y²/2), β of what it is beyond.
    """
    beyond = center - largest
    first = max(-beyond - REACH, 0.0)
    last = max(-beyond, 0.0) + REACH
    if beyond > 0.0:
        last = REACH * REACH / (beyond + math.sqrt(beyond * beyond + REACH * REACH))
    return first, min(last, 2.0 * largest) - first


@kernel()
def draw_correlation(center, sigma, largest, rng):
    """Draw c between ±``largest`` from a normal times the prior; return ρ = c / ``largest``.

    By rejection, from what is near to the density of x = c/σ in each case.
    """
    b = min(largest / sigma, WIDEST)
    a = min(abs(center) / largest * b, 2.0 * WIDEST)
    beyond = a - b
    nearest = min(a, b)
    # Of (b − x)·(b + x) where the normal is not negligible.
    top = max(nearest - REACH, 0.0)
    highest = (b - top) * (b + top)
    while True:
        if beyond * min(b, 1.0) > 1.0:  # with y = b − x, y·e^(−β·y) is a gamma density
            y = (rng.standard_exponential() + rng.standard_exponential()) / beyond
            x = b - y
            accepted = math.exp(-0.5 * y * y) * (b + x) / (2.0 * b)
        elif b < 1.0:
            x = b * (2.0 * rng.random() - 1.0)
            accepted = (
                math.exp(0.5 * ((nearest - a) ** 2 - (x - a) ** 2)) * (b - x) * (b + x) / highest
            )
        else:
            x = a + rng.standard_normal()
            accepted = (b - x) * (b + x) / highest
        if abs(x) < b and rng.random() < accepted:
            return math.copysign(min(max(abs(x) / b, WEAKEST), LARGEST), x * center)

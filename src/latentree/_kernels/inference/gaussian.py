"""Exact inference in Gaussian trees: one pass up, one pass down, O(rows × nodes).

Every node has mean 0 and variance 1; node v given its parent p is N(ρ·x_p, q) with q = 1 − ρ²
(ρ = 0, q = 1 at a root). What is known below a node is the likelihood exp(−½·J·x² + h·x) of its
value. With s = 1/(1 + q·J), a node tells its parent, and adds to the log-likelihood,

  if its value x is present:  h = ρ/q·x,   J = ρ²/q;      x·(h − ½·(J + 1/q)·x) − ½·log 2πq
  if it is absent or hidden:  h = ρ·s·h,   J = ρ²·s·J;    ½·q·s·h² + ½·log s

and downward an absent node is x = ρ·s·x_p + q·s·h, give or take a variance of q·s.

``LANES`` rows run side by side, so that every step is one vector operation. Nodes are numbered in
traversal order here (parents first), which makes both passes sequential in memory.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

LANES = 8
"""Rows that are taken side by side: one or two vectors of a processor, or four of an old one."""

_SMALL = 5_000  # numbers in the largest array for which nothing is compiled
_LARGE = 1e250  # a product of variances beyond this goes into the sum of logarithms


# The same in whole arrays, all rows side by side, for the first use on a small table: see
# ``compiling.kernel``.


def _plain_load(rows, n_nodes, place, center, inverse_scale):
    """Return the cells of some rows in standard units, nodes × rows, NaN where nothing is seen."""
    x = np.full((n_nodes, len(rows)), np.nan)
    m = rows.shape[1]
    x[place[:m]] = ((rows - center[:m]) * inverse_scale[:m]).T
    return x


def _plain_up(parent, rho, x):
    """Return h and s of all nodes, and the rows' log-likelihoods in standard units."""
    h, J, s = np.zeros((3, *x.shape))
    seen, total = ~np.isnan(x), np.zeros(x.shape[1])
    for v in range(parent.size - 1, -1, -1):
        r, y, p = rho[v], np.where(seen[v], x[v], 0.0), parent[v]
        q = (1.0 - r) * (1.0 + r)
        k = 1.0 / (1.0 + q * J[v])
        present = y * (h[v] - 0.5 * (J[v] + 1.0 / q) * y) - 0.5 * np.log(2.0 * np.pi * q)
        total += np.where(seen[v], present, 0.5 * (q * k * h[v] * h[v] + np.log(k)))
        s[v] = np.where(seen[v], 0.0, k)
        if p >= 0:
            h[p] += np.where(seen[v], r / q * y, r * k * h[v])
            J[p] += np.where(seen[v], r * r / q, r * r * k * J[v])
    return h, s, total


def _plain_down(parent, rho, h, s, noise, x):
    """Fill in absent nodes of ``x``; return their variances, and covariances with the parents."""
    variance, covariance = np.zeros((2, *x.shape))
    for v, p in enumerate(parent):
        r, k = rho[v], s[v]
        spread = (1.0 - r) * (1.0 + r) * k
        y = spread * h[v] + np.sqrt(spread) * noise[v]
        if p >= 0:
            y += r * k * x[p]
            covariance[v] = r * k * variance[p]
            spread += r * r * k * k * variance[p]
        x[v] = np.where(k > 0.0, y, x[v])
        variance[v] = spread
    return variance, covariance


def _plain_run_rows(
    values, first, last, place, parent, rho, center, inverse_scale, log_likelihood, states,
    variances, covariances,
):  # fmt: skip
    own = slice(first, last)
    x = _plain_load(values[own], parent.size, place, center, inverse_scale)
    h, s, log_likelihood[own] = _plain_up(parent, rho, x)
    if states.shape[0] == 0:
        return
    noise = np.empty_like(x)
    noise[place] = states[own].T
    variance, covariance = _plain_down(parent, rho, h, s, noise, x)
    states[own] = x[place].T
    if variances.shape[0] > 0:
        variances[own] = variance[place].T
        covariances[own] = covariance[place].T


def _plain_run_moments(
    values, weights, first, last, place, parent, rho, center, inverse_scale, moments
):
    w = weights[first:last]
    x = _plain_load(values[first:last], parent.size, place, center, inverse_scale)
    h, s, total = _plain_up(parent, rho, x)
    variance, covariance = _plain_down(parent, rho, h, s, np.zeros_like(x), x)
    moments[:, 0] += x @ w
    moments[:, 1] += (x * x + variance) @ w
    moments[:, 2] += (x * x[parent] + covariance) @ w * (parent >= 0)
    return float(w[w > 0.0] @ total[w > 0.0])


@kernel()
def _load(values, first, lanes, place, center, inverse_scale, x, absent):
    """Standardize a block of rows and turn it round; count the absent cells of each node."""
    absent[:] = LANES
    for column in range(values.shape[1]):
        at = place[column]
        missing = 0
        for b in range(LANES):
            value = values[first + min(b, lanes - 1), column]
            x[at, b] = (value - center[column]) * inverse_scale[column]
            missing += value != value
        absent[at] = missing


@kernel(fastmath={"contract"})
def _up(parent, rho, x, absent, h, J, s, total):
    """Fill h, J and s of all nodes, and the rows' log-likelihoods in standard units."""
    product = np.ones(LANES)
    h[:] = 0.0
    J[:] = 0.0
    for v in range(parent.size - 1, -1, -1):
        r = rho[v]
        q = (1.0 - r) * (1.0 + r)
        p = parent[v] if parent[v] >= 0 else v
        if absent[v] == 0:
            gain, precision, constant = r / q, r * r / q, 0.5 * np.log(2.0 * np.pi * q)
            for b in range(LANES):
                y = x[v, b]
                total[b] += y * (h[v, b] - 0.5 * (J[v, b] + 1.0 / q) * y) - constant
                h[p, b] += gain * y
                J[p, b] += precision
        elif absent[v] == LANES:
            for b in range(LANES):
                w = 1.0 + q * J[v, b]
                k = 1.0 / w
                s[v, b] = k
                product[b] *= w
                total[b] += 0.5 * q * k * h[v, b] * h[v, b]
                h[p, b] += r * k * h[v, b]
                J[p, b] += r * r * k * J[v, b]
            # log s is taken of many factors at once
            if product.max() > _LARGE:
                for b in range(LANES):
                    total[b] -= 0.5 * np.log(product[b])
                    product[b] = 1.0
        else:
            for b in range(LANES):
                y = x[v, b]
                if y == y:
                    s[v, b] = 0.0  # nothing is left open
                    total[b] += y * (h[v, b] - 0.5 * (J[v, b] + 1.0 / q) * y)
                    total[b] -= 0.5 * np.log(2.0 * np.pi * q)
                    h[p, b] += r / q * y
                    J[p, b] += r * r / q
                else:
                    k = 1.0 / (1.0 + q * J[v, b])
                    s[v, b] = k
                    total[b] += 0.5 * (q * k * h[v, b] * h[v, b] + np.log(k))
                    h[p, b] += r * k * h[v, b]
                    J[p, b] += r * r * k * J[v, b]
    for b in range(LANES):
        total[b] -= 0.5 * np.log(product[b])


@kernel(fastmath={"contract"})
def _down(parent, rho, absent, h, s, noise, x, variance, covariance):
    """Fill in absent nodes: means (draws, if there is noise), variances, covariances with p."""
    for v in range(parent.size):
        if absent[v] == 0:
            variance[v] = 0.0
            covariance[v] = 0.0
            continue
        r = rho[v]
        q = (1.0 - r) * (1.0 + r)
        p = parent[v] if parent[v] >= 0 else v
        for b in range(LANES):
            k = s[v, b]
            y = q * k * h[v, b] + np.sqrt(q * k) * noise[v, b]
            spread = q * k
            covariance[v, b] = 0.0
            if p != v:
                y += r * k * x[p, b]
                spread += r * r * k * k * variance[p, b]
                covariance[v, b] = r * k * variance[p, b]
            if absent[v] == LANES or k > 0.0:  # a present cell stays as it is
                x[v, b] = y
            variance[v, b] = spread


@kernel()
def _store(block, place, first, lanes, out):
    for b in range(lanes):
        for node in range(out.shape[1]):
            out[first + b, node] = block[place[node], b]


@kernel(small=_SMALL, plain=_plain_run_rows)
def run_rows(
    values,
    first,
    last,
    place,
    parent,
    rho,
    center,
    inverse_scale,
    log_likelihood,
    states,
    variances,
    covariances,
):
    """Run rows ``first`` to ``last`` through the tree.

    Column c of ``values`` belongs to the node numbered ``place[c]``; NaN is an absent cell.
    ``log_likelihood`` is filled in standard units. If ``states`` has rows, they come in as noise
    (zeros give posterior means, normal draws give draws) and leave as the values of all nodes, by
    their own numbers; ``variances`` and ``covariances`` (with the parent) likewise.
    """
    n = parent.size
    x, h, J, s = (
        np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES))
    )  # fmt: skip
    downward = states.shape[0] > 0
    wide = n if downward else 0
    noise, variance, covariance = (
        np.empty((wide, LANES)), np.empty((wide, LANES)), np.empty((wide, LANES))
    )  # fmt: skip
    absent = np.empty(n, np.int64)
    total = np.empty(LANES)
    for start in range(first, last, LANES):
        lanes = min(LANES, last - start)
        _load(values, start, lanes, place, center, inverse_scale, x, absent)
        total[:] = 0.0
        _up(parent, rho, x, absent, h, J, s, total)
        for b in range(lanes):
            log_likelihood[start + b] = total[b]
        if downward:
            for b in range(LANES):
                for node in range(n):
                    noise[place[node], b] = states[start + min(b, lanes - 1), node]
            _down(parent, rho, absent, h, s, noise, x, variance, covariance)
            _store(x, place, start, lanes, states)
            if variances.shape[0] > 0:
                _store(variance, place, start, lanes, variances)
                _store(covariance, place, start, lanes, covariances)


@kernel(fastmath=True)
def _down_moments(parent, rho, absent, h, s, x, variance, w, moments):
    """Fill in absent nodes with their means, adding up moments on the way.

    Everything is used as soon as it is made: at many nodes the memory is what takes the time.
    """
    for v in range(parent.size):
        p = parent[v] if parent[v] >= 0 else v
        r = rho[v]
        q = (1.0 - r) * (1.0 + r)
        mean, square, product = 0.0, 0.0, 0.0
        if absent[v] == 0:
            for b in range(LANES):
                y = x[v, b]
                variance[v, b] = 0.0
                mean += w[b] * y
                square += w[b] * y * y
                product += w[b] * y * x[p, b]
        elif parent[v] < 0:
            for b in range(LANES):
                seen = absent[v] < LANES and s[v, b] == 0.0
                y = x[v, b] if seen else s[v, b] * h[v, b]
                x[v, b] = y
                variance[v, b] = s[v, b]
                mean += w[b] * y
                square += w[b] * (y * y + s[v, b])
        else:
            for b in range(LANES):
                k = s[v, b]
                seen = absent[v] < LANES and k == 0.0
                y = x[v, b] if seen else r * k * x[p, b] + q * k * h[v, b]
                spread = q * k + r * r * k * k * variance[p, b]
                x[v, b] = y
                variance[v, b] = spread
                mean += w[b] * y
                square += w[b] * (y * y + spread)
                product += w[b] * (y * x[p, b] + r * k * variance[p, b])
        moments[v, 0] += mean
        moments[v, 1] += square
        moments[v, 2] += product


@kernel(small=_SMALL, plain=_plain_run_moments)
def run_moments(values, weights, first, last, place, parent, rho, center, inverse_scale, moments):
    """Add up expected moments of all nodes over rows; returns their log-likelihood.

    Row v of ``moments`` (nodes in traversal order) receives Σ w·E[x], Σ w·E[x²] and Σ w·E[x·x_p]
    in standard units.
    """
    n = parent.size
    x, h, J, s = (
        np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES))
    )  # fmt: skip
    absent = np.empty(n, np.int64)
    total = np.empty(LANES)
    w = np.empty(LANES)
    log_likelihood = 0.0
    for start in range(first, last, LANES):
        lanes = min(LANES, last - start)
        _load(values, start, lanes, place, center, inverse_scale, x, absent)
        total[:] = 0.0
        _up(parent, rho, x, absent, h, J, s, total)
        w[:] = 0.0
        for b in range(lanes):
            w[b] = weights[start + b]
            if w[b] > 0.0:
                log_likelihood += w[b] * total[b]
        # J is not needed any more: its place serves for the variances
        _down_moments(parent, rho, absent, h, s, x, J, w, moments)
    return log_likelihood

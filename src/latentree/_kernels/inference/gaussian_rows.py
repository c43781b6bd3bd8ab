"""Exact inference in Gaussian trees: one pass up, one pass down, O(rows × nodes).

Every node has mean 0 and variance 1; node v given its parent p is N(ρ·x_p, q) with q = 1 − ρ²
(ρ = 0, q = 1 at a root). What is known below a node is the likelihood exp(−½·J·x² + h·x) of its
value. With s = 1/(1 + q·J), a node tells its parent, and adds to the log-likelihood,

  if its value x is present:  h = ρ/q·x,   J = ρ²/q;      x·(h − ½·(J + 1/q)·x) − ½·log 2πq
  if it is absent or hidden:  h = ρ·s·h,   J = ρ²·s·J;    ½·q·s·h² + ½·log s

and downward an absent node is x = ρ·s·x_p + q·s·h, give or take a variance of q·s. These are the
messages of :mod:`latentree._kernels.gaussian` without the prior of the node, one variance per row.

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


def _plain_down(parent, rho, h, s, x):
    """Fill in absent nodes of ``x``; return their variances, and covariances with the parents."""
    variance, covariance = np.zeros((2, *x.shape))
    for v, p in enumerate(parent):
        r, k = rho[v], s[v]
        variance[v] = (1.0 - r) * (1.0 + r) * k
        mean = variance[v] * h[v]
        if p >= 0:
            mean += r * k * x[p]
            covariance[v] = r * k * variance[p]
            variance[v] += r * k * covariance[v]
        x[v] = np.where(k > 0.0, mean, x[v])
    return variance, covariance


def _plain_draw(parent, rho, s, noise, x):
    for v, p in enumerate(parent):
        noise[v] *= np.sqrt((1.0 - rho[v]) * (1.0 + rho[v]) * s[v])
        if p >= 0:
            noise[v] += rho[v] * s[v] * noise[p]
    x += noise


def _plain_run_rows(
    values, weights, first, last, place, parent, rho, center, inverse_scale, log_likelihood, states,
    variances, covariances, moments,
):  # fmt: skip
    own = slice(first, last)
    x = _plain_load(values[own], parent.size, place, center, inverse_scale)
    h, s, log_likelihood[own] = _plain_up(parent, rho, x)
    if states.shape[0] == moments.shape[0] == 0:
        return
    variance, covariance = _plain_down(parent, rho, h, s, x)
    if moments.shape[0] > 0:
        w = weights[own]
        moments[:, 0] += x @ w
        moments[:, 1] += (x * x + variance) @ w
        moments[:, 2] += (x * x[parent] + covariance) @ w * (parent >= 0)
    elif variances.shape[0] > 0:
        variances[own] = variance[place].T
        covariances[own] = covariance[place].T
    else:
        noise = np.empty_like(x)
        noise[place] = states[own].T
        _plain_draw(parent, rho, s, noise, x)
    if states.shape[0] > 0:
        states[own] = x[place].T


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


@kernel(fastmath=True)
def _down(parent, rho, absent, h, s, x, variance, covariance, w, moments):
    """Fill in absent nodes: means, variances, covariances with the parent; add up moments."""
    for v in range(parent.size):
        r = rho[v]
        q = (1.0 - r) * (1.0 + r)
        p = parent[v] if parent[v] >= 0 else v
        if absent[v] == 0:
            variance[v] = 0.0
            covariance[v] = 0.0
        else:
            if parent[v] < 0:
                covariance[v] = 0.0
            else:
                for b in range(LANES):
                    covariance[v, b] = r * s[v, b] * variance[p, b]
            for b in range(LANES):
                k = s[v, b]
                y = q * k * h[v, b]
                if parent[v] >= 0:
                    y += r * k * x[p, b]
                variance[v, b] = q * k + r * k * covariance[v, b]
                # a present cell stays as it is
                x[v, b] = x[v, b] if absent[v] < LANES and k == 0.0 else y
        if moments.shape[0] > 0:
            mean, square, product = 0.0, 0.0, 0.0
            for b in range(LANES):
                y = x[v, b]
                mean += w[b] * y
                square += w[b] * (y * y + variance[v, b])
                product += w[b] * (y * x[p, b] + covariance[v, b])
            moments[v, 0] += mean
            moments[v, 1] += square
            if parent[v] >= 0:
                moments[v, 2] += product


@kernel()
def _draw(parent, rho, s, noise, x):
    """Add to the means what draws differ from them by; ``noise`` is standard normal."""
    for v in range(parent.size):
        q = (1.0 - rho[v]) * (1.0 + rho[v])
        for b in range(LANES):
            noise[v, b] *= np.sqrt(q * s[v, b])
            if parent[v] >= 0:
                noise[v, b] += rho[v] * s[v, b] * noise[parent[v], b]
            x[v, b] += noise[v, b]


@kernel()
def _store(block, place, first, lanes, out):
    for b in range(lanes):
        for node in range(out.shape[1]):
            out[first + b, node] = block[place[node], b]


@kernel(small=_SMALL, plain=_plain_run_rows)
def run_rows(
    values,
    weights,
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
    moments,
):
    """Run rows ``first`` to ``last`` through the tree.

    Column c of ``values`` belongs to the node numbered ``place[c]``; NaN is an absent cell.
    ``log_likelihood`` is filled in standard units. What else has rows is filled, too: ``states``,
    ``variances`` and ``covariances`` (with the parent) of all nodes, by their own numbers. Without
    variances, states come in as normal noise and leave as draws. Row v of ``moments`` (nodes in
    traversal order) receives Σ w·E[x], Σ w·E[x²] and Σ w·E[x·x_p] in standard units.
    """
    n = parent.size
    x, h, J, s = (
        np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES)), np.empty((n, LANES))
    )  # fmt: skip
    is_drawn = states.shape[0] > 0 and variances.shape[0] == 0
    noise = np.empty((n if is_drawn else 0, LANES))
    covariance = np.empty((n, LANES))
    absent = np.empty(n, np.int64)
    total, w = np.empty(LANES), np.zeros(LANES)
    for start in range(first, last, LANES):
        lanes = min(LANES, last - start)
        _load(values, start, lanes, place, center, inverse_scale, x, absent)
        total[:] = 0.0
        _up(parent, rho, x, absent, h, J, s, total)
        for b in range(lanes):
            log_likelihood[start + b] = total[b]
        if states.shape[0] == 0 and moments.shape[0] == 0:
            continue
        if moments.shape[0] > 0:
            for b in range(LANES):
                w[b] = weights[start + b] if b < lanes else 0.0
        # J is not needed any more: its place serves for the variances.
        _down(parent, rho, absent, h, s, x, J, covariance, w, moments)
        if variances.shape[0] > 0:
            _store(J, place, start, lanes, variances)
            _store(covariance, place, start, lanes, covariances)
        if is_drawn:
            for b in range(LANES):
                for node in range(n):
                    noise[place[node], b] = states[start + min(b, lanes - 1), node]
            for v in range(n):  # what is seen has no noise
                if absent[v] == 0:
                    s[v] = 0.0
            _draw(parent, rho, s, noise, x)
        if states.shape[0] > 0:
            _store(x, place, start, lanes, states)

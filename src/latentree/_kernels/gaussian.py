"""Messages in Gaussian trees: upward, downward, at an edge, and the M-step that they lead to.

All nodes have mean 0 and variance 1, and ρ is the correlation of a node with its parent. What a
part of the tree knows of a node is a belief: the posterior mean μ of the node given that part
alone, and the posterior variance u that goes with it, 1 where nothing is known and 0 where the node
is seen. Variances do not depend on the data, and means are linear in it: so the data of a node is a
vector, of rows or of anything else that adds up, and all its entries go side by side.

A belief (μ, u) tells a neighbor at correlation ρ of it, whose variance given this is
w = 1 − ρ²·(1 − u),

    precision  J = 1/w − 1,      precision times mean  h = ρ·μ/w.

What different parts tell a node adds up: u = 1/(1 + ΣJ), μ = u·Σh. Side v of an edge is what lies
below node v, a belief of v; side n + v is what lies above the edge over v, a belief of the parent.

With R = L·Lᵀ the correlations of the columns, rows of L have the products that the columns have, so
that on them as data all second moments are those of messages of the rows themselves.

Some nodes are given, with the variances in ``own``: 0 where they are seen. One that is a belief
itself must be an end of the tree. The others are hidden, and have −1 there.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

LARGEST = np.tanh(8.0)
"""Fitted correlations stay below this: a perfect one has no density."""

LEAST = 1e-8
"""Variance that is left of a node whose neighbor is known: duplicates would leave nothing."""


# Vectors ----------------------------------------------------------------------------------------


def _plain_combine(to, a, x, b, y):
    to[:] = a * x + b * y


@kernel(fastmath=True, views=True, plain=_plain_combine)
def combine(to, a, x, b, y):
    """Write a·x + b·y."""
    for column in range(to.size):
        to[column] = a * x[column] + b * y[column]


def _plain_scale(to, a, x):
    to[:] = a * x


@kernel(fastmath=True, views=True, plain=_plain_scale)
def scale(to, a, x):
    """Write a·x."""
    for column in range(to.size):
        to[column] = a * x[column]


def _plain_add(to, a, x):
    to += a * x


@kernel(fastmath=True, views=True, plain=_plain_add)
def add(to, a, x):
    """Add a·x."""
    for column in range(to.size):
        to[column] += a * x[column]


def _plain_multiply(x, y):
    return float(x @ y)


@kernel(fastmath=True, views=True, plain=_plain_multiply)
def multiply(x, y):
    """Return the inner product of two vectors."""
    total = 0.0
    for column in range(x.size):
        total += x[column] * y[column]
    return total


def _plain_multiply_all(x, y):
    return float(x @ x), float(y @ y), float(x @ y)


@kernel(fastmath=True, views=True, plain=_plain_multiply_all)
def multiply_all(x, y):
    """Return the inner products of two vectors with themselves, and with each other."""
    first, second, both = 0.0, 0.0, 0.0
    for column in range(x.size):
        first += x[column] * x[column]
        second += y[column] * y[column]
        both += x[column] * y[column]
    return first, second, both


# Messages ---------------------------------------------------------------------------------------


@kernel(views=True)
def variance_beyond(rho, u):
    """Return the variance w of a node given a neighbor's belief, written so that none cancels."""
    return max((1.0 - rho) * (1.0 + rho) + rho * rho * u, LEAST)


@kernel()
def variances(order, parent, rho, own):
    """Return the variances u of the beliefs on both sides of every edge."""
    n = parent.size
    u, J = np.ones(2 * n), np.zeros(n)
    for i in range(order.size - 1, -1, -1):
        v, p = order[i], parent[order[i]]
        u[v] = own[v] if own[v] >= 0.0 else 1.0 / (1.0 + J[v])
        if p >= 0:
            J[p] += 1.0 / variance_beyond(rho[v], u[v]) - 1.0
    for v in order:
        p = parent[v]
        if p >= 0:
            # J is the sum over all neighbors of the parent by now; the part from v is taken off.
            rest = max(J[p] - (1.0 / variance_beyond(rho[v], u[v]) - 1.0), 0.0)
            u[n + v] = own[p] if own[p] >= 0.0 else 1.0 / (1.0 + rest)
            J[v] += 1.0 / variance_beyond(rho[v], u[n + v]) - 1.0
    return u


@kernel(views=True)
def means(order, parent, rho, own, u, below, above, h, products):
    """Fill the means on both sides of every edge, and add up their products, if there is room.

    ``below``, ``above`` and ``h`` have a row for every node; the data of given nodes is in
    ``below``, and ``h`` is 0. Row v of ``products`` receives |μ_v|², |μ_{n+v}|² and μ_v·μ_{n+v},
    that of a root only the first.
    """
    n = parent.size
    for i in range(order.size - 1, -1, -1):
        v, p = order[i], parent[order[i]]
        if own[v] < 0.0:
            scale(below[v], u[v], h[v])
        if p >= 0 and own[p] < 0.0:
            add(h[p], rho[v] / variance_beyond(rho[v], u[v]), below[v])
    for v in order:
        p = parent[v]
        if p >= 0:
            if own[p] >= 0.0:
                scale(above[v], 1.0, below[p])
            else:  # what the parent has been told, but for the part from v
                factor = rho[v] / variance_beyond(rho[v], u[v])
                combine(above[v], u[n + v], h[p], -u[n + v] * factor, below[v])
            if own[v] < 0.0:
                add(h[v], rho[v] / variance_beyond(rho[v], u[n + v]), above[v])
        if products.shape[0] > 0:
            if p >= 0:
                first, second, both = multiply_all(below[v], above[v])
                products[v, 1] += second
                products[v, 2] += both
            else:
                first = multiply(below[v], below[v])
            products[v, 0] += first


@kernel()
def products_of_means(order, parent, rho, own, u, data):
    """Return the products of :func:`means` alone; ``data`` has the rows of the first nodes."""
    n, shape = parent.size, (parent.size, data.shape[1])
    below, above, h, products = np.empty(shape), np.empty(shape), np.zeros(shape), np.zeros((n, 3))
    for v in range(data.shape[0]):
        scale(below[v], 1.0, data[v])
    means(order, parent, rho, own, u, below, above, h, products)
    return products


# At an edge -------------------------------------------------------------------------------------


def _plain_mix_places(rho, share, u, mix, variance):
    if rho.size == 1:
        mix[:, 0], variance[0] = (1.0, 0.0), 1.0 - u[0]
        return
    u, between = u.reshape(2, -1)[:, 1:], np.abs(rho[1:]) ** share[1:]
    lower = np.hstack([rho[1], np.ones(between.size), between])
    upper = np.hstack([1.0, rho[1:], rho[1:] / between])
    correlation = np.array([lower, upper])
    w = np.maximum(1.0 - correlation**2 * (1.0 - np.hstack([u[:, :1], u, u])), LEAST)
    total = (1.0 / w).sum(axis=0) - 1.0
    variance[:] = np.maximum(1.0 - 1.0 / total, LEAST)
    mix[:] = correlation / w / (total * np.sqrt(variance))


@kernel(plain=_plain_mix_places, views=True)
def mix_places(rho, share, u, mix, variance):
    """Weigh the beliefs on both sides of an edge in what is known of nodes and of points on edges.

    Of n nodes numbered in order, n − 1 edges follow, each with the point at this share of log ρ
    from below. A node is known from the edge above it, the top from the edge below it. ``variance``
    receives the variances of the estimates, by which ``mix`` scales them to variance 1.
    """
    n = rho.size
    if n == 1:
        mix[0, 0], mix[1, 0], variance[0] = 1.0, 0.0, 1.0 - u[0]
        return
    for place in range(2 * n - 1):
        v = edge_of(place, n)
        lower, upper = 1.0, rho[v]
        if place == 0:
            lower, upper = rho[v], 1.0
        elif place >= n:
            lower = abs(rho[v]) ** share[v]
            upper = rho[v] / lower
        below, above = variance_beyond(lower, u[v]), variance_beyond(upper, u[n + v])
        total = 1.0 / below + 1.0 / above - 1.0
        variance[place] = max(1.0 - 1.0 / total, LEAST)
        factor = 1.0 / (total * np.sqrt(variance[place]))
        mix[0, place], mix[1, place] = factor * lower / below, factor * upper / above


@kernel(views=True)
def edge_of(place, n):
    """Return the lower node of the edge by which a place is known."""
    if place >= n:
        return place - n + 1
    return place if place > 0 or n == 1 else 1


def _plain_fill_places(mix, below, above, first, out):
    n, columns = len(below), slice(first, first + out.shape[1])
    if n == 1:
        out[:] = mix[0, 0] * below[:, columns]
        return
    edges = np.hstack([1, np.arange(1, n), np.arange(1, n)])
    out[:] = mix[0][:, None] * below[edges, columns] + mix[1][:, None] * above[edges, columns]


@kernel(plain=_plain_fill_places, views=True)
def fill_places(mix, below, above, first, out):
    """Write the estimates of all places for some columns, from column ``first`` on."""
    n, last = below.shape[0], first + out.shape[1]
    if n == 1:  # nothing is above, and what the memory holds there may be no number
        scale(out[0], mix[0, 0], below[0, first:last])
        return
    for place in range(out.shape[0]):
        v = edge_of(place, n)
        combine(
            out[place], mix[0, place], below[v, first:last], mix[1, place], above[v, first:last]
        )


@kernel(fastmath=True)
def edge_gain(c, r, s):
    """Return what an edge adds to the log-likelihood per sample.

    Divided by the standard deviations that the model gives them, the two beliefs have a covariance
    r and variances of mean s; in the model these are c = ρ·√((1 − u)(1 − u')) and 1.
    """
    rest = (1.0 - c) * (1.0 + c)
    return -0.5 * (np.log(rest) + 2.0 * (s * c - r) * c / rest)


@kernel(views=True)
def expected_correlation(r, a, b, qa, qb, qc):
    """Return the expected correlation of the two ends of an edge, where the M-step sets ρ.

    a and b are the variances of the beliefs from below and above, μ and ν their means, and
    qa = |μ|², qb = |ν|², qc = μ·ν.
    """
    square, q = r * r, (1.0 - r) * (1.0 + r)
    rest = max(q + square * (a + b - a * b), LEAST)
    # Posterior mean of the lower end: s·μ + t·ν; of the upper end: x·ν + y·μ.
    s, t = (q + square * b) / rest, r * a / rest
    x, y = variance_beyond(r, a) / rest, r * b / rest
    first = s * s * qa + 2.0 * s * t * qc + t * t * qb + a * s
    second = x * x * qb + 2.0 * x * y * qc + y * y * qa + b * x
    both = (s * x + t * y) * qc + s * y * qa + t * x * qb + r * a * b / rest
    return min(max(both / np.sqrt(first * second), -LARGEST), LARGEST)


@kernel()
def maximize(order, parent, rho, own, u, products, following):
    """Return the log-likelihood per sample; ``following`` receives the correlations of the M-step.

    With c(w, s) = −½·(log w + s/w), a hidden node adds −c of its belief from below and every edge
    +c of the belief that it carries; what columns have by themselves, −½·(log 2π + 1) each, is not
    part of it. The M-step sets ρ to the expected correlation of the two ends of an edge, whose
    moments follow from the beliefs on both sides.
    """
    n = parent.size
    total = 0.0
    for v in order:
        p, r, a, b = parent[v], rho[v], u[v], u[n + v]
        qa, qb, qc = products[v, 0], products[v, 1], products[v, 2]
        if own[v] < 0.0:
            total += 0.5 * (np.log(a) + qa / a)
        if p < 0:
            continue
        square = r * r
        w = variance_beyond(r, a)
        total -= 0.5 * (np.log(w) + square * qa / w)
        if own[p] >= 0.0:  # the parent is given: its density given the child, less its own
            total += (r * qc - 0.5 * square * (1.0 - a) * qb) / w
        following[v] = expected_correlation(r, a, b, qa, qb, qc)
    return total

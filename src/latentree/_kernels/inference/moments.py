"""EM of Gaussian trees on moments: everything that a step needs of rows without gaps.

All nodes have variance 1. With R = L·Lᵀ the correlations of the columns, the data of an observed
node is a row of L: products of two such vectors are correlations, and messages are linear in the
data, so that messages of these vectors have the second moments that messages of the rows would
have.

What is known on one side of a node is a belief: the posterior mean of the node given that side
alone, a vector, and its reliability g, the variance that the mean has under the model (0 for
nothing, 1 at an observed node; 1 − g is the posterior variance). Through an edge of correlation ρ
a belief (μ, g) becomes (ρ·μ, ρ²·g). Independent beliefs of one node add up in the natural
parameters h = μ/(1 − g) and J = g/(1 − g). Side v is what lies below node v, side n + v what lies
above the edge over it, a belief of the parent.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

LARGEST = np.tanh(8.0)
"""Correlations stay below this: a perfect one has no density."""


@kernel()
def reliabilities(order, parent, rho, m):
    """Return the reliability g of every side."""
    n = order.size
    g, J = np.zeros(2 * n), np.zeros(n)
    for i in range(n - 1, -1, -1):
        v, p = order[i], parent[order[i]]
        g[v] = 1.0 if v < m else J[v] / (1.0 + J[v])
        if p >= 0:
            J[p] += rho[v] ** 2 * g[v] / (1.0 - rho[v] ** 2 * g[v])
    for v in order:
        p = parent[v]
        if p < 0:
            continue
        square = rho[v] ** 2
        # J is now the sum over all neighbors of the parent; its part from v is taken off.
        rest = max(J[p] - square * g[v] / (1.0 - square * g[v]), 0.0)
        g[n + v] = 1.0 if p < m else rest / (1.0 + rest)
        J[v] += square * g[n + v] / (1.0 - square * g[n + v])
    return g


@kernel(fastmath=True)
def products(order, parent, rho, g, data, out):
    """Add squares and products of the means on both sides of every edge to ``out``.

    ``data`` holds some entries of the vectors of the observed nodes, one row a node. Row v of
    ``out`` receives |μ_v|², |μ_{n+v}|² and μ_v·μ_{n+v}; the row of a root only the first.
    """
    n, m, width = order.size, data.shape[0], data.shape[1]
    h = np.zeros((n, width))
    below = np.empty((n, width))
    above = np.empty(width)
    for i in range(n - 1, -1, -1):
        v, p = order[i], parent[order[i]]
        for k in range(width):
            below[v, k] = data[v, k] if v < m else (1.0 - g[v]) * h[v, k]
        if p >= m:
            f = rho[v] / (1.0 - rho[v] ** 2 * g[v])
            for k in range(width):
                h[p, k] += f * below[v, k]
    for v in order:
        p = parent[v]
        if p < 0:
            for k in range(width):
                out[v, 0] += below[v, k] * below[v, k]
            continue
        if p < m:
            for k in range(width):
                above[k] = data[p, k]
        else:
            f = rho[v] / (1.0 - rho[v] ** 2 * g[v])
            for k in range(width):
                above[k] = (1.0 - g[n + v]) * (h[p, k] - f * below[v, k])
        if v >= m:
            f = rho[v] / (1.0 - rho[v] ** 2 * g[n + v])
            for k in range(width):
                h[v, k] += f * above[k]
        a, b, c = 0.0, 0.0, 0.0
        for k in range(width):
            a += below[v, k] * below[v, k]
            b += above[k] * above[k]
            c += below[v, k] * above[k]
        out[v, 0] += a
        out[v, 1] += b
        out[v, 2] += c


@kernel()
def finish(order, parent, rho, m, g, sums, following):
    """Return the log-likelihood per sample; ``following`` receives the correlations of the M-step.

    With c(g, q) = −½·(log(1 − g) + q/(1 − g)), a hidden node adds −c of its belief from below and
    every edge +c of the belief that it carries; what columns have by themselves,
    −½·(log 2π + 1) each, is not part of it. The M-step sets ρ to the expected correlation of the
    two ends of an edge, whose moments follow from the beliefs on both sides.
    """
    n = order.size
    total = 0.0
    for v in order:
        p, r, a, b = parent[v], rho[v], g[v], g[n + v]
        qa, qb, q = sums[v, 0], sums[v, 1], sums[v, 2]
        if v >= m:
            total += 0.5 * (np.log(1.0 - a) + qa / (1.0 - a))
        if p < 0:
            continue
        t = r * r * a
        total -= 0.5 * (np.log(1.0 - t) + r * r * qa / (1.0 - t))
        if p < m:  # the parent is seen: its density given the child, less its own
            total += (r * q - 0.5 * t * qb) / (1.0 - t)
        rest = 1.0 - r * r * a * b
        s, u = (1.0 - r * r * b) / rest, r * (1.0 - a) / rest
        x, y = (1.0 - t) / rest, r * (1.0 - b) / rest
        first = s * s * qa + 2.0 * s * u * q + u * u * qb + (1.0 - a) * s
        second = x * x * qb + 2.0 * x * y * q + y * y * qa + (1.0 - b) * x
        both = (s * x + u * y) * q + s * y * qa + u * x * qb + r * (1.0 - a) * (1.0 - b) / rest
        following[v] = min(max(both / np.sqrt(first * second), -LARGEST), LARGEST)
    return total

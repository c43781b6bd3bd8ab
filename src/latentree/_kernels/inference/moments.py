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
def variances(order, parent, rho, m):
    """Return the posterior variance u = 1 − g of the node of every side.

    1 − ρ²·g is written q + ρ²·u with q = 1 − ρ², so that nothing cancels near |ρ| = 1.
    """
    n = order.size
    u, J = np.zeros(2 * n), np.zeros(n)
    # Upward: u = 1/(1 + J) of what lies below, and the edge adds ρ²·g/(1 − ρ²·g) to the parent's J.
    for i in range(n - 1, -1, -1):
        v, p = order[i], parent[order[i]]
        u[v] = 0.0 if v < m else 1.0 / (1.0 + J[v])
        if p >= 0:
            square, q = rho[v] ** 2, (1.0 - rho[v]) * (1.0 + rho[v])
            J[p] += square * (1.0 - u[v]) / (q + square * u[v])
    for v in order:
        p = parent[v]
        if p < 0:
            continue
        square, q = rho[v] ** 2, (1.0 - rho[v]) * (1.0 + rho[v])
        # J is now the sum over all neighbors of the parent; its part from v is taken off.
        rest = max(J[p] - square * (1.0 - u[v]) / (q + square * u[v]), 0.0)
        u[n + v] = 0.0 if p < m else 1.0 / (1.0 + rest)
        J[v] += square * (1.0 - u[n + v]) / (q + square * u[n + v])
    return u


@kernel(fastmath=True)
def products(order, parent, rho, u, data, out):
    """Add squares and products of the means on both sides of every edge to ``out``.

    ``data`` holds some entries of the vectors of the observed nodes, one row a node. Row v of
    ``out`` receives |μ_v|², |μ_{n+v}|² and μ_v·μ_{n+v}; the row of a root only the first.
    """
    n, m, width = order.size, data.shape[0], data.shape[1]
    h = np.zeros((n, width))
    below = np.empty((n, width))
    above = np.empty(width)
    # Upward: μ = u·h of what lies below; an edge adds ρ·μ/(1 − ρ²·g) to the parent's h.
    for i in range(n - 1, -1, -1):
        v, p = order[i], parent[order[i]]
        for k in range(width):
            below[v, k] = data[v, k] if v < m else u[v] * h[v, k]
        if p >= m:
            f = rho[v] / ((1.0 - rho[v]) * (1.0 + rho[v]) + rho[v] ** 2 * u[v])
            for k in range(width):
                h[p, k] += f * below[v, k]
    for v in order:
        p = parent[v]
        if p < 0:
            for k in range(width):
                out[v, 0] += below[v, k] * below[v, k]
            continue
        # Downward: the parent's h without what v has added to it.
        q = (1.0 - rho[v]) * (1.0 + rho[v])
        if p < m:
            for k in range(width):
                above[k] = data[p, k]
        else:
            f = rho[v] / (q + rho[v] ** 2 * u[v])
            for k in range(width):
                above[k] = u[n + v] * (h[p, k] - f * below[v, k])
        if v >= m:
            f = rho[v] / (q + rho[v] ** 2 * u[n + v])
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
def finish(order, parent, rho, m, u, sums, following):
    """Return the log-likelihood per sample; ``following`` receives the correlations of the M-step.

    With c(g, s) = −½·(log(1 − g) + s/(1 − g)), a hidden node adds −c of its belief from below and
    every edge +c of the belief that it carries; what columns have by themselves,
    −½·(log 2π + 1) each, is not part of it. The M-step sets ρ to the expected correlation of the
    two ends of an edge, whose moments follow from the beliefs on both sides.
    """
    n = order.size
    total = 0.0
    for v in order:
        p, r, a, b = parent[v], rho[v], u[v], u[n + v]
        qa, qb, qc = sums[v, 0], sums[v, 1], sums[v, 2]
        if v >= m:
            total += 0.5 * (np.log(a) + qa / a)
        if p < 0:
            continue
        square, q = r * r, (1.0 - r) * (1.0 + r)
        t = q + square * a  # 1 − ρ²·g of what the edge carries up
        total -= 0.5 * (np.log(t) + square * qa / t)
        if p < m:  # the parent is seen: its density given the child, less its own
            total += (r * qc - 0.5 * square * (1.0 - a) * qb) / t
        rest = q + square * (a + b - a * b)
        # Posterior mean of the lower end: s·μ_v + w·μ_{n+v}; of the upper end: x·μ_{n+v} + y·μ_v.
        s, w = (q + square * b) / rest, r * a / rest
        x, y = t / rest, r * b / rest
        first = s * s * qa + 2.0 * s * w * qc + w * w * qb + a * s
        second = x * x * qb + 2.0 * x * y * qc + y * y * qa + b * x
        both = (s * x + w * y) * qc + s * y * qa + w * x * qb + r * a * b / rest
        following[v] = min(max(both / np.sqrt(first * second), -LARGEST), LARGEST)
    return total

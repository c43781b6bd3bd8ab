"""Where a subtree of a Gaussian tree might hang, and fits of a single star or edge."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.gaussian import (
    LARGEST,
    edge_gain,
    fit,
    means,
    multiply,
    variance_beyond,
    variances,
)


@kernel()
def middle_gain(a, b, r):
    """Bound of what a node gains that hangs inside an edge of correlation r.

    Its correlations with the ends are a and b. Unless all three fit on a star, the gain is that of
    hanging it at an end, and nothing is returned.
    """
    if a * b * r <= 0.0 or abs(a) <= abs(r * b) or abs(b) <= abs(r * a):
        return -np.inf
    share = (a * a + b * b - 2.0 * a * b * r) / (1.0 - r * r)
    return -0.5 * np.log(max(1.0 - share, 1e-6))


@kernel()
def regraft_gains(
    first, last, order, begin, end, top, parent, rho, own, u, shown, at_node, in_edge
):
    """Fill the gains per sample of hanging what is on either side of some edges elsewhere.

    Nodes below v, and v, are ``order[begin[v] : end[v]]``, ``top`` is the root of each node.
    ``shown[s]`` holds the products of the mean of side s with the data of the given nodes.
    ``at_node[s, w]`` receives the gain at node w, ``in_edge[s, w]`` that inside the edge above w.
    Beliefs count as having the variance that they should have.
    """
    n, m = parent.size, shown.shape[1]
    below, above, h = np.zeros((n, 1)), np.zeros((n, 1)), np.zeros((n, 1))
    nothing = np.empty((0, 3))
    cut = rho.copy()
    for v in range(first, last):
        at_node[v], at_node[n + v], in_edge[v], in_edge[n + v] = -np.inf, -np.inf, -np.inf, -np.inf
        if parent[v] < 0:
            continue
        cut[v] = 0.0  # nothing passes: both parts of the tree see themselves alone
        part = order[begin[top[v]] : end[top[v]]]
        known = variances(part, parent, cut, own)
        for w in range(m):
            below[w, 0] = shown[n + v if begin[v] <= begin[w] < end[v] else v, w]
        h[:] = 0.0
        means(part, parent, cut, own, known, below, above, h, nothing)
        for w in part:
            is_below = begin[v] <= begin[w] < end[v]
            s, gate = (n + v, v) if is_below else (v, parent[v])
            g = 1.0 - u[s]
            lower, upper = 1.0 - known[w], 1.0 - known[n + w]
            if g <= 0.0:
                continue
            mean, reliable = below[w, 0], lower
            if own[w] < 0.0 and parent[w] >= 0:
                beyond = variance_beyond(cut[w], known[n + w])
                total = 1.0 / known[w] + 1.0 / beyond - 1.0
                mean = (mean / known[w] + cut[w] * above[w, 0] / beyond) / total
                reliable = 1.0 - 1.0 / total
            if w != gate and reliable > 0.0:
                size = np.sqrt(g * reliable)
                c = abs(mean) / size
                at_node[s, w] = edge_gain(min(c, LARGEST * size), c, 1.0)
            if w != v and parent[w] >= 0 and lower > 0.0 and upper > 0.0:
                in_edge[s, w] = middle_gain(
                    above[w, 0] / np.sqrt(g * upper),
                    below[w, 0] / np.sqrt(g * lower),
                    rho[w] * np.sqrt(upper * lower),
                )
        cut[v] = rho[v]


@kernel()
def best_edge(r, s, largest):
    """Return the c, from −``largest`` to ``largest``, for which an edge gains most.

    A zero of the derivative, −c³ + r·c² + (1 − 2·s)·c + r; Newton's steps, kept within the bounds.
    """
    low, high = (0.0, largest) if r >= 0.0 else (-largest, 0.0)
    c = min(max(r / s, low), high)
    for _ in range(60):
        slope = r + c * (1.0 - 2.0 * s) + c * c * (r - c)
        if slope > 0.0:
            low = c
        else:
            high = c
        step = c - slope / (1.0 - 2.0 * s + c * (2.0 * r - 3.0 * c))
        c = step if low < step < high else 0.5 * (low + high)
        if high - low < 1e-12 or abs(slope) < 1e-12:
            break
    return c


@kernel()
def root_of(products):
    """Return L with the products L·Lᵀ of some vectors, lower triangular; it may be singular."""
    root = np.zeros(products.shape)
    for j in range(products.shape[0]):
        left = products[j, j] - multiply(root[j, :j], root[j, :j])
        if left > 1e-14 * products[j, j]:
            root[j, j] = np.sqrt(left)
            for i in range(j + 1, products.shape[0]):
                root[i, j] = (products[i, j] - multiply(root[i, :j], root[j, :j])) / root[j, j]
    return root


@kernel()
def fit_star(products, own, rho, n_steps, tolerance, is_new):
    """Fit a hidden center's correlations with its ends, in place; return what it adds per sample.

    ``products`` are those of the means of the ends; ``own`` and ``rho`` have an entry for the
    center, too. A new center of three ends starts where it explains their correlations.
    """
    d = products.shape[0]
    order, parent = np.empty(d + 1, np.int64), np.full(d + 1, d)
    order[0], parent[d] = d, -1
    for k in range(d):
        order[k + 1] = k
    if is_new:
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            # With r = product/√(g·g'), ρ_k²·g_k = r_ki·r_kj/r_ij: every g but g_k drops out.
            square = abs(products[k, i] * products[k, j]) / max(abs(products[i, j]), 1e-12)
            # The sign of the center is free: it points the way of the first end.
            sign = -1.0 if products[0, k] < 0.0 else 1.0
            rho[k] = sign * min(np.sqrt(square) / (1.0 - own[k]), 0.95)
    return fit(order, parent, rho, own, root_of(products), n_steps, tolerance)

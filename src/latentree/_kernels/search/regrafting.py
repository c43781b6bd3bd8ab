"""Where a subtree of a Gaussian tree might hang, and fits of a single star or edge."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.gaussian import (
    LARGEST,
    LEAST,
    edge_gain,
    expected_correlation,
    means,
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


def _plain_star_step(products, u, rho, following):
    squares, rest = rho * rho, (1.0 - rho) * (1.0 + rho)
    w = np.maximum(rest + squares * u, LEAST)
    own, told = products.diagonal(), rho / w
    J, shared = 1.0 / w - 1.0, products @ told
    around, total = told @ shared, J.sum()
    center = 1.0 / (1.0 + total)
    b = 1.0 / (1.0 + np.maximum(total - J, 0.0))
    qb = b * b * (around - told * (2.0 * shared - told * own))
    qc = b * (shared - told * own)
    left = np.maximum(rest + squares * (u + b - u * b), LEAST)
    s, t = (rest + squares * b) / left, rho * u / left
    x, y = w / left, rho * b / left
    first = s * s * own + 2.0 * s * t * qc + t * t * qb + u * s
    second = x * x * qb + 2.0 * x * y * qc + y * y * own + b * x
    both = (s * x + t * y) * qc + s * y * own + t * x * qb + rho * u * b / left
    following[:] = np.clip(both / np.sqrt(first * second), -LARGEST, LARGEST)
    return 0.5 * (np.log(center) + center * around - (np.log(w) + squares * own / w).sum())


@kernel(plain=_plain_star_step)
def star_step(products, u, rho, following):
    """Return what a star adds per sample; ``following`` receives the correlations of the M-step.

    This is :func:`latentree._kernels.gaussian.maximize` for a hidden center and ends that are
    given, with variances u, from the products of the means of the ends alone: the mean of the
    center given all ends but k is b·(Σ ρ_j·μ_j/w_j − ρ_k·μ_k/w_k).
    """
    d = rho.size
    shared = np.zeros(d)
    total, around, value = 0.0, 0.0, 0.0
    for k in range(d):
        r = rho[k]
        w = variance_beyond(r, u[k])
        for j in range(d):
            shared[j] += products[j, k] * r / w
        total += 1.0 / w - 1.0
        value -= 0.5 * (np.log(w) + r * r * products[k, k] / w)
    for k in range(d):
        around += shared[k] * rho[k] / variance_beyond(rho[k], u[k])
    center = 1.0 / (1.0 + total)
    for k in range(d):
        r, a, own = rho[k], u[k], products[k, k]
        w = variance_beyond(r, a)
        told = r / w
        b = 1.0 / (1.0 + max(total - (1.0 / w - 1.0), 0.0))
        qb = b * b * (around - told * (2.0 * shared[k] - told * own))
        qc = b * (shared[k] - told * own)
        following[k] = expected_correlation(r, a, b, own, qb, qc)
    return value + 0.5 * (np.log(center) + center * around)


@kernel()
def fit_star(products, u, rho, n_steps, tolerance, is_new):
    """Fit a hidden center's correlations with its ends, in place; return what it adds per sample.

    ``products`` are those of the means of the ends, ``u`` their variances. A new center of three
    ends starts where it explains their correlations. EM ends early where some steps gain less than
    the tolerance.
    """
    if is_new:
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            # With r = product/√(g·g'), ρ_k²·g_k = r_ki·r_kj/r_ij: every g but g_k drops out.
            square = abs(products[k, i] * products[k, j]) / max(abs(products[i, j]), 1e-12)
            # The sign of the center is free: it points the way of the first end.
            sign = -1.0 if products[0, k] < 0.0 else 1.0
            rho[k] = sign * min(np.sqrt(square) / (1.0 - u[k]), 0.95)
    following, value = np.empty(rho.size), -np.inf
    for step in range(n_steps + 1):
        here = star_step(products, u, rho, following)
        if step == n_steps:
            break
        if step % 8 == 0:
            if here - value < tolerance:
                break
            value = here
        rho[:] = following
    return here

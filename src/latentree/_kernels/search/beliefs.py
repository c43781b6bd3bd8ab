"""Gaussian trees on compressed data: messages, likelihood, EM, and fits of single stars.

All nodes have variance 1. The data of an observed node is a vector; the product of two vectors is
the covariance of two columns, so vectors need no more entries than there are columns.

Evidence on one side of a node is a belief: the posterior mean of the node given that evidence
alone, a vector too, and its reliability g, the variance that the mean has under the model (0 for no
evidence, 1 at an observed node, 1 − g is the posterior variance). Seen through an edge of
correlation ρ a belief (μ, g) becomes (ρ·μ, ρ²·g). Independent beliefs (μ_k, g_k) of one node add up
in the natural parameters h = μ/(1 − g) and J = g/(1 − g).

With c_k = −½·(log(1 − g_k) + |μ_k|²/(1 − g_k)), a node's beliefs together add −c + Σ c_k to the
log-likelihood per sample, where c is that of the joint belief.

``side[v]`` is the belief of node v from below (without its parent), ``side[n + v]`` that of its
parent without v.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

LARGEST = np.tanh(6.0)
"""Correlations stay below this, 1 − 1.2e-5: a perfect one has no density, and near it terms of size
1/(1 − ρ²) cancel. At atanh ρ = 6 that costs 1e-6 nats on 200 rows, at 8 it costs 1e-2."""


@kernel(fastmath=True)
def _dot(a, b):
    """Return Σ a·b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(fastmath=True)
def _add(target, factor, source):
    """Target += factor·source."""
    for i in range(target.size):
        target[i] += factor * source[i]


@kernel(fastmath=True)
def _set(target, factor, source):
    """Target = factor·source."""
    for i in range(target.size):
        target[i] = factor * source[i]


@kernel()
def _clip(rho):
    """Keep a correlation within the bounds."""
    return min(max(rho, -LARGEST), LARGEST)


@kernel()
def _c(g, q):
    """Log-likelihood of a belief by itself, without what does not depend on the tree."""
    return -0.5 * (np.log(1.0 - g) + q / (1.0 - g))


@kernel()
def _edge_moments(rho, g, e, qg, qe, q):
    """Expected squares of both ends of an edge and product, from the beliefs on its two sides.

    Reliabilities are g and e; qg, qe and q are squares and product of the means.
    """
    # E[x] = a·μ + b·ν and E[y] = c·ν + d·μ for the means μ, ν of the two sides; what is added to
    # the squares and the product are the posterior variances and the covariance.
    rest = 1.0 - rho * rho * g * e
    a, b = (1.0 - rho * rho * e) / rest, rho * (1.0 - g) / rest
    c, d = (1.0 - rho * rho * g) / rest, rho * (1.0 - e) / rest
    first = a * a * qg + 2.0 * a * b * q + b * b * qe + (1.0 - g) * a
    second = c * c * qe + 2.0 * c * d * q + d * d * qg + (1.0 - e) * c
    product = a * c * q + b * d * q + a * d * qg + b * c * qe + rho * (1.0 - g) * (1.0 - e) / rest
    return first, second, product


@kernel()
def _upward(order, parent, rho, data, side, g, h, J):
    """Fill the beliefs from below; returns the log-likelihood per sample.

    ``h`` and ``J`` receive the sums over the children of hidden nodes. What the columns have by
    themselves, −½·(log 2π + variance) each, is not part of it.
    """
    m = data.shape[0]
    total = 0.0
    h[:] = 0.0
    J[:] = 0.0
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        p = parent[v]
        if v < m:
            _set(side[v], 1.0, data[v])
            g[v] = 1.0
            q = _dot(data[v], data[v])
        else:
            _set(side[v], 1.0 / (1.0 + J[v]), h[v])
            g[v] = J[v] / (1.0 + J[v])
            q = _dot(side[v], side[v])
            total -= _c(g[v], q)
        if p < 0:
            continue
        # Through the edge: μ' = ρ·μ, g' = ρ²·g, so h' = ρ·μ·f and J' = ρ²·g·f, f = 1/(1 − ρ²·g).
        r = rho[v]
        f = 1.0 / (1.0 - r * r * g[v])
        total += _c(r * r * g[v], r * r * q)
        if p < m:
            own = _dot(data[p], data[p])
            total += r * f * _dot(side[v], data[p]) - 0.5 * r * r * g[v] * f * own
        else:
            _add(h[p], r * f, side[v])
            J[p] += r * r * g[v] * f
    return total


@kernel()
def _downward(order, parent, rho, data, side, g, h, J):
    """Fill the beliefs from above; ``h`` and ``J`` become the sums over all neighbors."""
    m, n = data.shape[0], order.size
    for v in order:
        p = parent[v]
        if p < 0:
            continue
        r = rho[v]
        if p < m:
            _set(side[n + v], 1.0, data[p])
            g[n + v] = 1.0
        else:
            # The parent's sums without what v itself has added to them.
            f = 1.0 / (1.0 - r * r * g[v])
            rest = max(J[p] - r * r * g[v] * f, 0.0)
            _set(side[n + v], 1.0 / (1.0 + rest), h[p])
            _add(side[n + v], -r * f / (1.0 + rest), side[v])
            g[n + v] = rest / (1.0 + rest)
        if v >= m:
            f = 1.0 / (1.0 - r * r * g[n + v])
            _add(h[v], r * f, side[n + v])
            J[v] += r * r * g[n + v] * f


@kernel()
def both_ways(order, parent, rho, data, side, g, h, J):
    """Fill all beliefs; returns the log-likelihood per sample."""
    total = _upward(order, parent, rho, data, side, g, h, J)
    _downward(order, parent, rho, data, side, g, h, J)
    return total


def _plain_add_spread(parent, n_observed, node, variances, covariances, weights, out):
    gaps = (variances[:, :n_observed] != 0.0).any(axis=1)
    own, with_parent = variances[gaps][:, node].T, covariances[gaps][:, node].T
    spread = np.zeros((parent.size, *own.shape))
    for v, p in enumerate(parent):
        if p >= 0:
            a = np.divide(with_parent[v], own[p], out=np.zeros_like(own[p]), where=own[p] > 0.0)
            spread[v, :v] = spread[:v, v] = a * spread[p, :v]
        spread[v, v] = own[v]
    is_column = node < n_observed
    columns = node[is_column]
    out[np.ix_(columns, columns)] += (spread @ weights[gaps])[np.ix_(is_column, is_column)]


@kernel(plain=_plain_add_spread)
def add_spread(parent, n_observed, node, variances, covariances, weights, out):
    """Add up Σ w·Cov(x_i, x_j | row) over rows, for absent cells of observed variables.

    Nodes are in traversal order, ``node[v]`` is the number of the v-th; given a row, v is a_v times
    its parent and noise, so Cov(v, u) = a_v·Cov(parent, u) for every u before it.
    """
    n = parent.size
    spread = np.zeros((n, n))
    for row in range(len(weights)):
        # Complete rows have no spread.
        present = True
        for c in range(n_observed):
            present = present and variances[row, c] == 0.0
        if present:
            continue
        for v in range(n):
            p = parent[v]
            own = variances[row, node[v]]
            above = variances[row, node[p]] if p >= 0 else 0.0
            a = covariances[row, node[v]] / above if above > 0.0 else 0.0
            for u in range(v):
                spread[v, u] = a * (spread[p, u] if u <= p else spread[u, p]) if a != 0.0 else 0.0
            spread[v, v] = own
            if node[v] < n_observed and own > 0.0:
                for u in range(v + 1):
                    if node[u] < n_observed:
                        out[node[v], node[u]] += weights[row] * spread[v, u]
                        if u < v:
                            out[node[u], node[v]] += weights[row] * spread[v, u]


# What is left without a subtree -----------------------------------------------------------------


@kernel()
def without(
    subtree, gate, starts, around, inward, rho, m, side, g, h, J, new, e, rest_h, rest_J, walk, came
):
    """Beliefs in the rest of the tree once the ``subtree`` (a side) at node ``gate`` is cut off.

    ``around[starts[u] : starts[u + 1]]`` are the neighbors of node u, ``inward`` their sides and
    ``rho`` the correlations. Returns the number of nodes of the rest, which ``walk`` lists from the
    gate on. Node w was reached from ``came[w]``, whose belief without w becomes ``new[w]`` with
    reliability ``e[w]``; ``rest_h[w]`` and ``rest_J[w]`` are the sums over w's neighbors if w is
    hidden. Vectors may be projected on anything: all of it is linear.
    """
    n = starts.size - 1
    walk[0] = gate
    came[gate] = -1
    # The gate loses the belief that came from the subtree.
    if gate >= m:
        for k in range(starts[gate], starts[gate + 1]):
            if inward[k] == subtree:
                f = rho[k] / (1.0 - rho[k] * rho[k] * g[subtree])
                _set(rest_h[gate], 1.0, h[gate])
                _add(rest_h[gate], -f, side[subtree])
                rest_J[gate] = max(J[gate] - rho[k] * f * g[subtree], 0.0)
    # Breadth first from the gate: nearer nodes know already what has changed.
    found, i = 1, 0
    while i < found:
        u = walk[i]
        i += 1
        for k in range(starts[u], starts[u + 1]):
            w, near, r = around[k], inward[k], rho[k]
            if near == subtree or w == came[u]:
                continue
            walk[found] = w
            found += 1
            came[w] = u
            old = near + n if near < n else near - n  # the other side of the same edge
            if u < m:
                _set(new[w], 1.0, side[old])
                e[w] = 1.0
            else:
                f = r / (1.0 - r * r * g[near])
                left = max(rest_J[u] - r * f * g[near], 0.0)
                _set(new[w], 1.0 / (1.0 + left), rest_h[u])
                _add(new[w], -f / (1.0 + left), side[near])
                e[w] = left / (1.0 + left)
            # The sums at w: the old belief from u goes, the new one comes.
            if w >= m:
                f, b = r / (1.0 - r * r * e[w]), r / (1.0 - r * r * g[old])
                _set(rest_h[w], 1.0, h[w])
                _add(rest_h[w], f, new[w])
                _add(rest_h[w], -b, side[old])
                rest_J[w] = max(J[w] + r * (f * e[w] - b * g[old]), 0.0)
    return found


@kernel()
def _pair_gain(c, limit):
    """Log-likelihood per sample that an edge adds between beliefs of correlation c."""
    r = min(abs(c), limit)
    return -0.5 * (np.log(1.0 - r * r) + 2.0 * (r * r - r * abs(c)) / (1.0 - r * r))


@kernel()
def _middle_gain(a, b, r):
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
    first, last, starts, around, inward, rho, gates, m, cross, g, h_cross, J, at_node, in_edge
):
    """Fill the gains per sample of hanging each of the subtrees ``first`` to ``last`` elsewhere.

    ``cross[s]`` holds the products of the means of side s with all others, ``h_cross[s]`` those
    with the sums h. ``at_node[s, w]`` receives the gain at node w, ``in_edge[s, w]`` that inside
    the edge through which w is reached from the gate. Beliefs count as having the variance that
    they should have.
    """
    n = starts.size - 1
    new, e = np.empty((n, 1)), np.empty(n)
    rest_h, rest_J = np.empty((n, 1)), np.empty(n)
    walk, came = np.empty(n, np.int64), np.empty(n, np.int64)
    for s in range(first, last):
        at_node[s] = -np.inf
        in_edge[s] = -np.inf
        if gates[s] < 0 or g[s] <= 0.0:
            continue
        side = cross[s]
        found = without(
            s, gates[s], starts, around, inward, rho, m, side, g, h_cross[s], J,
            new, e, rest_h, rest_J, walk, came,
        )  # fmt: skip
        for i in range(1, found):
            w = walk[i]
            for k in range(starts[w], starts[w + 1]):
                if around[k] == came[w]:
                    break
            old, r = inward[k], rho[k]
            near = old + n if old < n else old - n
            if w < m:
                belief, reliable = side[near, 0], 1.0
            else:
                belief, reliable = rest_h[w, 0] / (1.0 + rest_J[w]), rest_J[w] / (1.0 + rest_J[w])
            if reliable <= 0.0 or e[w] <= 0.0 or g[near] <= 0.0:
                continue
            limit = LARGEST * np.sqrt(g[s] * reliable)
            at_node[s, w] = _pair_gain(belief / np.sqrt(g[s] * reliable), limit)
            in_edge[s, w] = _middle_gain(
                new[w, 0] / np.sqrt(g[s] * e[w]),
                side[near, 0] / np.sqrt(g[s] * g[near]),
                r * np.sqrt(e[w] * g[near]),
            )


# Stars ------------------------------------------------------------------------------------------


@kernel()
def star_value(cross, g, rho):
    """Log-likelihood per sample that a hidden center adds to the beliefs of its arms' ends."""
    d = g.size
    J, square, total = 0.0, 0.0, 0.0
    for k in range(d):
        f = 1.0 / (1.0 - rho[k] * rho[k] * g[k])
        J += rho[k] * rho[k] * g[k] * f
        total += _c(rho[k] * rho[k] * g[k], rho[k] * rho[k] * cross[k, k])
        for j in range(d):
            other = rho[j] / (1.0 - rho[j] * rho[j] * g[j])
            square += rho[k] * f * other * cross[k, j]
    return total + 0.5 * (square / (1.0 + J) - np.log(1.0 + J))


@kernel()
def _star_step(cross, g, rho, w, seen):
    """Replace ``rho`` by what EM makes of it."""
    d = g.size
    J, square = 0.0, 0.0
    for k in range(d):
        w[k] = rho[k] / (1.0 - rho[k] * rho[k] * g[k])
        J += rho[k] * g[k] * w[k]
    for k in range(d):
        seen[k] = _dot(cross[k], w)
        square += w[k] * seen[k]
    for k in range(d):
        P = 1.0 + max(J - rho[k] * g[k] * w[k], 0.0)  # of the center, without arm k
        own = cross[k, k]
        qe = (square - 2.0 * w[k] * seen[k] + w[k] * w[k] * own) / (P * P)
        q = (seen[k] - w[k] * own) / P
        first, second, product = _edge_moments(rho[k], g[k], (P - 1.0) / P, own, qe, q)
        rho[k] = _clip(product / np.sqrt(first * second))


@kernel()
def fit_star(cross, g, rho, n_steps, tolerance):
    """Run EM on the correlations of a hidden center with its arms' ends, in place.

    ``cross`` holds the products of the ends' beliefs, ``g`` their reliabilities. Returns the
    log-likelihood per sample that the center adds.
    """
    w, seen = np.empty(g.size), np.empty(g.size)
    value = star_value(cross, g, rho)
    for step in range(1, n_steps + 1):
        _star_step(cross, g, rho, w, seen)
        if step % 8 == 0:  # the value costs as much as a step
            there = star_value(cross, g, rho)
            gain, value = there - value, there
            if gain < tolerance:
                return value
    return star_value(cross, g, rho)


@kernel()
def start_three(cross, g, rho):
    """Set the correlations of a center with three ends so that it explains those of the ends."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        # With c = cross/√(g·g'): ρ_k²·g_k = c_ki·c_kj/c_ij, where every g but g_k drops out
        square = abs(cross[k, i] * cross[k, j]) / (max(abs(cross[i, j]), 1e-12) * g[k] * g[k])
        rho[k] = min(np.sqrt(square), 0.95)
    # The sign of the center is free: it points the way of the first end
    rho[1] = -rho[1] if cross[0, 1] < 0.0 else rho[1]
    rho[2] = -rho[2] if cross[0, 2] < 0.0 else rho[2]


@kernel()
def fit_pair(qa, qb, q, ga, gb):
    """Return the best correlation between two beliefs."""
    # With variances a, b and product c of the standardized beliefs, the derivative's zeros are
    # those of −r³ + c·r² + (1 − a − b)·r + c; Newton's steps, kept within the bounds.
    scale = np.sqrt(ga * gb)
    if scale <= 0.0:
        return 0.0
    a, b, c = qa / ga, qb / gb, q / scale
    limit = LARGEST * scale
    low, high = (0.0, limit) if c >= 0.0 else (-limit, 0.0)
    r = min(max(c / np.sqrt(a * b), low), high)
    for _ in range(60):
        slope = c + r * (1.0 - a - b) + r * r * (c - r)
        if slope > 0.0:
            low = r
        else:
            high = r
        step = r - slope / (1.0 - a - b + r * (2.0 * c - 3.0 * r))
        r = step if low < step < high else 0.5 * (low + high)
        if high - low < 1e-12 or abs(slope) < 1e-12:
            break
    return _clip(r / scale)

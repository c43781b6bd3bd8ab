"""Spectral neighbor joining: join the two clusters whose union is closest to a clade.

With R_ij = ±e^(−d_ij) of a tree, the block R[A, not A] has rank one exactly when A is one side of
an edge. So the criterion of two clusters a and b is the second singular value σ₂ of R[A, not A]
with A = a ∪ b, and the smallest wins (Jaffe et al. 2021). To compute all of them anew is O(m⁵).
Here:

- Joining does not change the criterion of other pairs: only those of the new cluster are open.
- Each cluster a has a unit vector u_a on its variables, and K_ab = u_aᵀ·R[a, b]·u_b. By
  interlacing, σ₂ of the two rows a and b of K, without the columns a and b, is at most their
  criterion: a bound that costs O(m). u of a union is the leading singular vector of those two
  rows, on u_a and u_b.
- The criterion itself is computed only for pairs whose bound could win. The pair that is joined is
  the same as by the definition, always.

A slot whose cluster has been joined has scores of 1e300 and a row of zeros in K.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel

_SLACK = 1e-14  # of σ₁²: more than the rounding error of a bound's square
_PRECISION = 1e-15  # of σ₁: where the bisection ends
_NOTHING = 1e-140  # norms of what rounding leaves of equal rows; the squares of less underflow


@kernel(fastmath=True)
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel(fastmath=True)
def _subtract(a, factor, b):
    """Subtract factor·b from a, in place."""
    for k in range(a.shape[0]):
        a[k] -= factor * b[k]


@kernel(fastmath=True)
def _bidiagonalize(block, link):
    """Reflect the rows and columns of a block (rows ≤ columns) until it is lower bidiagonal.

    ``link`` receives diagonal and subdiagonal in turn, up to signs. The block is overwritten.
    """
    n_rows, n_columns = block.shape
    column = np.empty(n_rows)
    combined = np.empty(n_columns)
    for k in range(n_rows):
        # From the right: row k becomes (norm, 0, 0, …) from column k on.
        v = block[k, k:]
        norm = math.sqrt(_dot(v, v))
        link[2 * k] = norm
        if norm > _NOTHING:
            factor = 1.0 / (norm * (norm + abs(v[0])))  # 2 / v'v of the reflection
            v[0] += norm if v[0] >= 0.0 else -norm
            for i in range(k + 1, n_rows):
                _subtract(block[i, k:], factor * _dot(block[i, k:], v), v)
        if k + 1 == n_rows:
            return
        # From the left: column k becomes (norm, 0, 0, …) from row k + 1 on.
        w = column[k + 1 :]
        for i in range(k + 1, n_rows):
            column[i] = block[i, k]
        norm = math.sqrt(_dot(w, w))
        link[2 * k + 1] = norm
        if norm > _NOTHING:
            factor = 1.0 / (norm * (norm + abs(w[0])))
            w[0] += norm if w[0] >= 0.0 else -norm
            rest = combined[k + 1 :]
            rest[:] = 0.0
            for i in range(k + 1, n_rows):
                _subtract(rest, -factor * column[i], block[i, k + 1 :])
            for i in range(k + 1, n_rows):
                _subtract(block[i, k + 1 :], column[i], rest)


@kernel()
def _number_above(link, x):
    """How many singular values exceed x > 0, by Sturm's count.

    ±σ are the eigenvalues of the tridiagonal matrix with diagonal 0 and ``link`` beside it; as many
    are below −x as the pivots of its factorization, shifted by x, that are negative.
    """
    count = 0
    pivot = x
    for k in range(link.shape[0] + 1):
        if pivot < 0.0:
            count += 1
        if k < link.shape[0]:
            if pivot == 0.0:
                pivot = 1e-300
            pivot = x - link[k] * link[k] / pivot
    return count


@kernel()
def second_singular_value(block):
    """σ₂ of a block with at least two rows and no fewer columns, which is overwritten.

    Its error is a few rounding errors of σ₁: no squares are subtracted from one another.
    """
    link = np.empty(2 * block.shape[0] - 1)
    _bidiagonalize(block, link)
    low = 0.0
    high = math.sqrt(_dot(link, link))
    width = _PRECISION * high
    high *= 0.7072  # σ₂² is at most half of all squares
    while high - low > width:
        middle = 0.5 * (low + high)
        if _number_above(link, middle) >= 2:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@kernel(fastmath=True)
def _bound(reduced, norms, a, b):
    """Lower bound on the criterion of two clusters: σ₂ of their rows of K."""
    # K has a diagonal of 0, so that only what a and b have in common is to be left out.
    shared = reduced[a, b] * reduced[a, b]
    first = norms[a] - shared
    second = norms[b] - shared
    both = _dot(reduced[a], reduced[b])
    half = 0.5 * (first - second)
    squared = 0.5 * (first + second) - math.sqrt(half * half + both * both)
    squared -= _SLACK * (first + second + shared)
    return math.sqrt(squared) if squared > 0.0 else 0.0


@kernel()
def _criterion(affinity, member, a, b, room):
    """σ₂ of the block between the variables of clusters a and b and all others."""
    m = affinity.shape[0]
    inside = np.empty(m, np.int64)
    outside = np.empty(m, np.int64)
    n_inside = 0
    n_outside = 0
    for v in range(m):
        if member[v] == a or member[v] == b:
            inside[n_inside] = v
            n_inside += 1
        else:
            outside[n_outside] = v
            n_outside += 1
    if n_inside > n_outside:
        inside, outside = outside, inside
        n_inside, n_outside = n_outside, n_inside
    block = room[: n_inside * n_outside].reshape(n_inside, n_outside)
    for i in range(n_inside):
        for k in range(n_outside):
            block[i, k] = affinity[inside[i], outside[k]]
    return second_singular_value(block)


@kernel()
def _best_pair(affinity, member, score, known, room):
    """The pair of slots (a, b), b < a, with the smallest criterion; the first of equals."""
    while True:
        best = 1e300
        best_a = 0
        best_b = 0
        for a in range(score.shape[0]):
            for b in range(a):
                if score[a, b] < best:
                    best = score[a, b]
                    best_a = a
                    best_b = b
        if known[best_a, best_b]:
            return best_a, best_b
        score[best_a, best_b] = _criterion(affinity, member, best_a, best_b, room)
        known[best_a, best_b] = True


@kernel(fastmath=True)
def _join_rows(reduced, norms, a, b):
    """Replace the rows a and b of K by that of their union, in slot b."""
    # Leading eigenvector (cos t, sin t) of [[x, y], [y, z]]: tan 2t = 2y / (x − z).
    both = _dot(reduced[a], reduced[b])
    angle = 0.5 * math.atan2(2.0 * both, norms[a] - norms[b])
    cosine = math.cos(angle)
    sine = math.sin(angle)
    for k in range(reduced.shape[0]):
        reduced[b, k] = cosine * reduced[a, k] + sine * reduced[b, k]
    reduced[a] = 0.0
    reduced[b, a] = 0.0
    reduced[b, b] = 0.0
    for k in range(reduced.shape[0]):
        reduced[k, a] = 0.0
        reduced[k, b] = reduced[b, k]
        norms[k] = _dot(reduced[k], reduced[k])


@kernel()
def _join_distances(distance, is_open, a, b):
    """Replace the distances of a and b by those of their parent, in slot b.

    Returns the lengths from a and b to it: the mean of (d_ab ± (d_ak − d_bk))/2 over others k, with
    weights e^(−2(d_ak + d_bk)): near ones are known best.
    """
    nearest = 1e300
    for k in range(distance.shape[0]):
        if is_open[k] and k != a and k != b:
            nearest = min(nearest, distance[a, k] + distance[b, k])
    total = 0.0
    difference = 0.0
    for k in range(distance.shape[0]):
        if is_open[k] and k != a and k != b:
            weight = math.exp(2.0 * (nearest - distance[a, k] - distance[b, k]))
            total += weight
            difference += weight * (distance[a, k] - distance[b, k])
    difference /= total
    apart = distance[a, b]
    for k in range(distance.shape[0]):
        if is_open[k] and k != a and k != b:
            new = max(0.5 * (distance[a, k] + distance[b, k] - apart), 0.0)
            distance[b, k] = new
            distance[k, b] = new
    return 0.5 * (apart + difference), 0.5 * (apart - difference)


@kernel()
def join_spectrally(affinity, distance, ends, lengths):
    """Join m ≥ 4 variables by their affinities ±e^(−d); ``distance`` is overwritten.

    Fills the two ends and the length of each of the 2m − 3 edges; the nodes m, m + 1, … are new
    ones in the order in which they were made, the last with three neighbors.
    """
    m = affinity.shape[0]
    reduced = affinity.copy()
    norms = np.empty(m)
    score = np.full((m, m), 1e300)
    known = np.zeros((m, m), np.bool_)
    member = np.arange(m)
    node = np.arange(m)
    is_open = np.ones(m, np.bool_)
    room = np.empty((m // 2) * (m - m // 2))
    for a in range(m):
        reduced[a, a] = 0.0
        norms[a] = _dot(reduced[a], reduced[a])
    for a in range(m):
        for b in range(a):
            score[a, b] = _bound(reduced, norms, a, b)
    edge = 0
    for new in range(m, 2 * m - 3):
        a, b = _best_pair(affinity, member, score, known, room)
        if new == 2 * m - 4:
            a, b = _nearer_half(distance, is_open, a, b)
        ends[edge, 0], ends[edge, 1] = node[a], new
        ends[edge + 1, 0], ends[edge + 1, 1] = node[b], new
        lengths[edge], lengths[edge + 1] = _join_distances(distance, is_open, a, b)
        edge += 2
        is_open[a] = False
        node[b] = new
        _join_rows(reduced, norms, a, b)
        for v in range(m):
            if member[v] == a:
                member[v] = b
        for k in range(m):
            score[max(a, k), min(a, k)] = 1e300
            if is_open[k] and k != b:
                score[max(b, k), min(b, k)] = _bound(reduced, norms, b, k)
                known[max(b, k), min(b, k)] = False
    _join_last_three(distance, is_open, node, 2 * m - 3, ends[edge:], lengths[edge:])


@kernel()
def _nearer_half(distance, is_open, a, b):
    """Of the last four clusters, choose the two that are nearer: the other two tie with them."""
    c = -1
    d = -1
    for k in range(is_open.shape[0]):
        if is_open[k] and k != a and k != b:
            d, c = c, k
    return (a, b) if distance[a, b] <= distance[c, d] else (c, d)


@kernel()
def _join_last_three(distance, is_open, node, new, ends, lengths):
    """Connect the three nodes that are left to a new one."""
    left = np.flatnonzero(is_open)
    for k in range(3):
        one, two, three = left[k], left[(k + 1) % 3], left[(k + 2) % 3]
        ends[k, 0], ends[k, 1] = node[one], new
        lengths[k] = 0.5 * (distance[one, two] + distance[one, three] - distance[two, three])

"""EM on a star with what lies behind its arms held fixed.

A center with K states has arms k = 1 … d; behind arm k lies evidence, given as a message λ_k(t), a
number for each state t of the arm's end and each row. With a table T_k[s, t] an arm,

    A_k(s) = Σ_t T_k[s, t]·λ_k(t),    z = Σ_s prior(s)·ε(s)·Π_k A_k(s),

where ε is what is seen at the center itself, and the log-likelihood is Σ w·log z over the rows.
Messages lie end to end: those of arm k are the rows ``starts[k]`` to ``starts[k + 1]`` of one
array with a column per row of the data.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

BLOCK = 64
_RESCALE = 8  # arms between two rescalings of the product


@kernel(fastmath=True)
def _arms_up(arms, starts, tables, n_states, first, width, reach):
    """A_k(s) for a block of rows."""
    offset = 0
    for k in range(starts.size - 1):
        n_end = starts[k + 1] - starts[k]
        for s in range(n_states):
            target = reach[k * n_states + s]
            t = tables[offset + s * n_end]
            source = arms[starts[k], first : first + width]
            for r in range(width):
                target[r] = t * source[r]
            for j in range(1, n_end):
                t = tables[offset + s * n_end + j]
                source = arms[starts[k] + j, first : first + width]
                for r in range(width):
                    target[r] += t * source[r]
        offset += n_states * n_end


@kernel(fastmath=True)
def _product(evidence, reach, n_arms, n_states, first, width, product, shift):
    """ε(s)·Π_k A_k(s), scaled now and then so that nothing gets lost; ``shift`` has the logs."""
    for s in range(n_states):
        for r in range(width):
            product[s, r] = evidence[s, first + r]
    for r in range(width):
        shift[r] = 0.0
    for k in range(n_arms):
        if k > 0 and k % _RESCALE == 0:
            _rescale(product, n_states, width, shift)
        for s in range(n_states):
            target, source = product[s], reach[k * n_states + s]
            for r in range(width):
                target[r] *= source[r]


@kernel(fastmath=True)
def _rescale(product, n_states, width, shift):
    """Scale to a largest value of 1."""
    for r in range(width):
        largest = product[0, r]
        for s in range(1, n_states):
            largest = max(largest, product[s, r])
        largest = max(largest, 1e-300)
        shift[r] += np.log(largest)
        for s in range(n_states):
            product[s, r] /= largest


@kernel(fastmath=True)
def message(arms, starts, tables, evidence, out, shifts):
    """Write ε(s)·Π_k A_k(s), scaled to a largest value of 1; add the logarithm of the scale."""
    n_states, n = evidence.shape
    n_arms = starts.size - 1
    reach = np.empty((n_arms * n_states, BLOCK))
    product = np.empty((n_states, BLOCK))
    shift = np.empty(BLOCK)
    for first in range(0, n, BLOCK):
        width = min(BLOCK, n - first)
        _arms_up(arms, starts, tables, n_states, first, width, reach)
        _product(evidence, reach, n_arms, n_states, first, width, product, shift)
        _write(product, n_states, first, width, shift, out, shifts)


@kernel(fastmath=True)
def _write(product, n_states, first, width, shift, out, shifts):
    """Put a block where it belongs, scaled to a largest value of 1."""
    _rescale(product, n_states, width, shift)
    for s in range(n_states):
        for r in range(width):
            out[s, first + r] = product[s, r]
    for r in range(width):
        shifts[first + r] += shift[r]


@kernel(fastmath=True)
def exchange(before, table, old_arm, new_arm, out, shifts):
    """Write a message in which the arm of one neighbor is exchanged, scaled as in ``message``.

    out(s) = before(s)·Σ_t T[s, t]·new(t) / Σ_t T[s, t]·old(t): the cost of one arm, not of all.
    """
    n_states, n = out.shape
    n_end = old_arm.shape[0]
    product = np.empty((n_states, BLOCK))
    below = np.empty(BLOCK)
    shift = np.empty(BLOCK)
    for first in range(0, n, BLOCK):
        width = min(BLOCK, n - first)
        for s in range(n_states):
            target = product[s]
            for r in range(width):
                target[r] = 0.0
                below[r] = 0.0
            for j in range(n_end):
                t = table[s, j]
                for r in range(width):
                    target[r] += t * new_arm[j, first + r]
                    below[r] += t * old_arm[j, first + r]
            for r in range(width):
                target[r] *= before[s, first + r] / below[r]
        for r in range(width):
            shift[r] = 0.0
        _write(product, n_states, first, width, shift, out, shifts)


@kernel(fastmath=True)
def log_likelihood(arms, starts, evidence, weights, prior, tables):
    """Σ w·log z."""
    n_states, n = evidence.shape
    n_arms = starts.size - 1
    reach = np.empty((n_arms * n_states, BLOCK))
    product = np.empty((n_states, BLOCK))
    shift = np.empty(BLOCK)
    total = 0.0
    for first in range(0, n, BLOCK):
        width = min(BLOCK, n - first)
        _arms_up(arms, starts, tables, n_states, first, width, reach)
        _product(evidence, reach, n_arms, n_states, first, width, product, shift)
        for r in range(width):
            z = 0.0
            for s in range(n_states):
                z += prior[s] * product[s, r]
            total += weights[first + r] * (np.log(z) + shift[r])
    return total


@kernel(fastmath=True)
def _expect(arms, starts, evidence, weights, prior, tables, prior_counts, counts):
    """Add expected counts, those of tables still to be multiplied by T; return Σ w·log z."""
    n_states, n = evidence.shape
    n_arms = starts.size - 1
    reach = np.empty((n_arms * n_states, BLOCK))
    product = np.empty((n_states, BLOCK))
    ratio = np.empty(BLOCK)
    shift = np.empty(BLOCK)
    total = 0.0
    for first in range(0, n, BLOCK):
        width = min(BLOCK, n - first)
        _arms_up(arms, starts, tables, n_states, first, width, reach)
        _product(evidence, reach, n_arms, n_states, first, width, product, shift)
        for r in range(width):
            ratio[r] = 0.0
        for s in range(n_states):
            share, source = prior[s], product[s]
            for r in range(width):
                ratio[r] += share * source[r]
        for r in range(width):
            total += weights[first + r] * (np.log(ratio[r]) + shift[r])
        for r in range(width):
            ratio[r] = weights[first + r] / ratio[r]
        for s in range(n_states):
            posterior, share = product[s], prior[s]
            mine = 0.0
            for r in range(width):
                posterior[r] *= share * ratio[r]
                mine += posterior[r]
            prior_counts[s] += mine
        offset = 0
        for k in range(n_arms):
            n_end = starts[k + 1] - starts[k]
            for s in range(n_states):
                posterior, source = product[s], reach[k * n_states + s]
                for r in range(width):
                    ratio[r] = posterior[r] / source[r]
                for j in range(n_end):
                    behind = arms[starts[k] + j, first : first + width]
                    mine = 0.0
                    for r in range(width):
                        mine += ratio[r] * behind[r]
                    counts[offset + s * n_end + j] += mine
            offset += n_states * n_end
    return total


@kernel()
def fit_star(arms, starts, evidence, weights, prior, tables, floor, n_steps, least, hope):
    """Run steps of EM on ``prior`` and ``tables`` in place.

    ``floor`` is the weight that every node and pair of neighbors counts for in addition, all
    states alike. Steps gain less and less: when those that are left would not reach the
    log-likelihood ``least`` even if each gained ``hope`` times as much as the last, EM ends.
    """
    n_states = evidence.shape[0]
    prior_counts = np.empty(n_states)
    counts = np.empty(tables.size)
    value = -np.inf
    for step in range(n_steps):
        for s in range(n_states):
            prior_counts[s] = 0.0
        for c in range(tables.size):
            counts[c] = 0.0
        last = value
        value = _expect(arms, starts, evidence, weights, prior, tables, prior_counts, counts)
        if step > 0 and value + hope * (n_steps - step) * (value - last) < least:
            return
        whole = 0.0
        for s in range(n_states):
            prior_counts[s] += floor / n_states
            whole += prior_counts[s]
        for s in range(n_states):
            prior[s] = prior_counts[s] / whole
        offset = 0
        for k in range(starts.size - 1):
            n_end = starts[k + 1] - starts[k]
            for s in range(n_states):
                row = offset + s * n_end
                whole = 0.0
                for j in range(row, row + n_end):
                    counts[j] = counts[j] * tables[j] + floor / (n_states * n_end)
                    whole += counts[j]
                for j in range(row, row + n_end):
                    tables[j] = counts[j] / whole
            offset += n_states * n_end

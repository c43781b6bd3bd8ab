"""EM on a star with what lies behind its arms held fixed.

A center with K states has arms k = 1 … d; behind arm k lies evidence, given as a message λ_k(t), a
number for each state t of the arm's end and each row. With a table T_k[s, t] an arm,

    A_k(s) = Σ_t T_k[s, t]·λ_k(t),    z = Σ_s prior(s)·ε(s)·Π_k A_k(s),

where ε is what is seen at the center itself, and the log-likelihood is Σ w·log z over the rows.
Messages lie end to end: those of arm k are the rows ``starts[k]`` to ``starts[k + 1]`` of one
array with a column per row of the data.

A neighbor that is a column of numbers has an emission in place of arm and table. Its likelihoods
P(x | s) are factors of the evidence ε, which the caller sets anew in every step (``add_logs``,
``likelihoods``), and the posteriors of the states are what its M-step needs (``tally``).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.exponential import LOWEST, exp

BLOCK = 64
"""Rows of a block: the A_k of a dozen arms with a few states stay in a cache of 32 kB."""

_RESCALE = 8
"""Arms between two rescalings. Messages are scaled to a largest value of 1: a product of eight is
lost only if they are below 1e-38."""


# The same in whole arrays, for the first use on a small table: see ``compiling.kernel``.


def _plain_shaped(tables, starts, n_states):
    """Return the tables of the arms, one array each: views of ``tables``."""
    ends = (n_states * starts).tolist()
    return [tables[a:b].reshape(n_states, -1) for a, b in pairwise(ends)]


def _plain_reach(arms, starts, tables, n_states):
    """A_k(s) of every arm, for all rows."""
    shaped = _plain_shaped(tables, starts, n_states)
    return [table @ arms[starts[k] : starts[k + 1]] for k, table in enumerate(shaped)]


def _plain_product(evidence, reach):
    """ε(s)·Π_k A_k(s), scaled now and then, and the logarithm of the scale."""
    product, shift = evidence.copy(), np.zeros(evidence.shape[1])
    for k, arm in enumerate(reach):
        if k > 0 and k % _RESCALE == 0:
            _plain_rescale(product, shift)
        product *= arm
    return product, shift


def _plain_rescale(product, shift):
    """Scale to a largest value of 1; ``shift`` gets the logarithm of the scale."""
    largest = np.maximum(product.max(axis=0), 1e-300)
    shift += np.log(largest)
    product /= largest


def _plain_message(arms, starts, tables, evidence, out, shifts):
    reach = _plain_reach(arms, starts, tables, evidence.shape[0]) if starts.size > 1 else []
    product, shift = _plain_product(evidence, reach)
    _plain_rescale(product, shift)
    out[:] = product
    shifts += shift


def _plain_exchange(before, table, old_arm, new_arm, out, shifts):
    out[:] = before * ((table @ new_arm) / (table @ old_arm))
    _plain_rescale(out, shifts)


def _plain_log_likelihood(arms, starts, evidence, weights, prior, tables):
    reach = _plain_reach(arms, starts, tables, evidence.shape[0])
    product, shift = _plain_product(evidence, reach)
    return float(weights @ (np.log(prior @ product) + shift))


def _plain_expect(arms, starts, evidence, weights, prior, tables, prior_counts, counts, given):
    n_states = evidence.shape[0]
    reach = _plain_reach(arms, starts, tables, n_states)
    posterior, shift = _plain_product(evidence, reach)
    likelihood = prior @ posterior
    posterior *= prior[:, None] * (weights / likelihood)
    if given.size:
        given[:] = posterior
    prior_counts += posterior.sum(axis=1)
    for k, mine in enumerate(_plain_shaped(counts, starts, n_states)):
        mine += (posterior / reach[k]) @ arms[starts[k] : starts[k + 1]].T
    return float(weights @ (np.log(likelihood) + shift))


def _plain_maximize(starts, prior, tables, floor, prior_counts, counts):
    prior_counts += floor / prior.size
    prior[:] = prior_counts / prior_counts.sum()
    old = _plain_shaped(tables, starts, prior.size)
    for table, mine in zip(old, _plain_shaped(counts, starts, prior.size), strict=True):
        mine *= table
        mine += floor / table.size
        table[:] = mine / mine.sum(axis=1, keepdims=True)


def _plain_add_logs(logs, index, out):
    out += logs[:, index]


def _plain_likelihoods(logs, evidence, out, shift):
    allowed = np.where(evidence > 0.0, logs, -np.inf)
    best = allowed.max(axis=0)
    out[:] = np.exp(np.maximum(allowed - best, LOWEST)) * evidence
    shift += best


def _plain_tally(posterior, index, out):
    for s, row in enumerate(posterior):
        out[s] += np.bincount(index, row, out.shape[1])


@kernel(plain=_plain_add_logs)
def add_logs(logs, index, out):
    """Add the log-likelihood of every row's value, whose number is ``index``."""
    for s in range(out.shape[0]):
        row = logs[s]
        for r in range(index.size):
            out[s, r] += row[index[r]]


@kernel(plain=_plain_likelihoods)
def likelihoods(logs, evidence, out, shift):
    """Set ``out`` to the evidence times likelihoods relative to those of the best state.

    ``shift`` gets the logarithm of the best state's likelihood.
    """
    n_states, n = logs.shape
    for r in range(n):
        best = -np.inf
        for s in range(n_states):
            if evidence[s, r] > 0.0 and logs[s, r] > best:
                best = logs[s, r]
        shift[r] += best
        for s in range(n_states):
            out[s, r] = min(logs[s, r] - best, 0.0)  # above it is impossible
    for s in range(n_states):
        for r in range(n):
            out[s, r] = exp(out[s, r]) * evidence[s, r]


@kernel(plain=_plain_tally)
def tally(posterior, index, out):
    """Add the posteriors of all rows with the same value."""
    for s in range(out.shape[0]):
        for r in range(index.size):
            out[s, index[r]] += posterior[s, r]


@kernel(fastmath=True)
def _arms_up(arms, starts, tables, n_states, first, width, reach):
    """A_k(s) for a block of rows."""
    offset = 0
    for k in range(starts.size - 1):
        n_end = starts[k + 1] - starts[k]
        for s in range(n_states):
            # A_k(s) = Σ_t T_k[s, t]·λ_k(t); the first term sets, the others add.
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


@kernel(fastmath=True, plain=_plain_message)
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


@kernel(fastmath=True, plain=_plain_exchange)
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


@kernel(fastmath=True, plain=_plain_log_likelihood)
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


@kernel(fastmath=True, plain=_plain_expect)
def expect(arms, starts, evidence, weights, prior, tables, prior_counts, counts, given):
    """Add expected counts, those of tables still to be multiplied by T; return Σ w·log z.

    ``given``, unless it is empty, is set to the posterior weights of the states.
    """
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
        # z = Σ_s prior(s)·ε(s)·Π_k A_k(s), first in ``ratio``, which then becomes w/z.
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
        # Posterior weights of the center's states: w·prior(s)·ε(s)·Π_k A_k(s)/z.
        for s in range(n_states):
            posterior, share = product[s], prior[s]
            mine = 0.0
            for r in range(width):
                posterior[r] *= share * ratio[r]
                mine += posterior[r]
            prior_counts[s] += mine
            if given.size > 0:
                for r in range(width):
                    given[s, first + r] = posterior[r]
        # Counts of (s, t) over T[s, t]: Σ_rows posterior(s)·λ_k(t)/A_k(s).
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


@kernel(plain=_plain_maximize)
def maximize(starts, prior, tables, floor, prior_counts, counts):
    """Set ``prior`` and ``tables`` to the shares of the expected counts."""
    n_states = prior.size
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
            # Expected counts are those over T times T.
            for j in range(row, row + n_end):
                counts[j] = counts[j] * tables[j] + floor / (n_states * n_end)
                whole += counts[j]
            for j in range(row, row + n_end):
                tables[j] = counts[j] / whole
        offset += n_states * n_end


@kernel()
def fit_star(arms, starts, evidence, weights, prior, tables, floor, n_steps, least):
    """Run steps of EM on ``prior`` and ``tables`` in place.

    ``floor`` is the weight that every node and pair of neighbors counts for in addition, all
    states alike. Steps gain less and less: when those that are left would not reach the
    log-likelihood ``least`` even if each gained as much as the last, EM ends.
    """
    n_states = evidence.shape[0]
    prior_counts = np.empty(n_states)
    counts = np.empty(tables.size)
    given = np.empty((0, 0))
    value = -np.inf
    for step in range(n_steps):
        prior_counts[:] = 0.0
        counts[:] = 0.0
        last = value
        value = expect(arms, starts, evidence, weights, prior, tables, prior_counts, counts, given)
        if step > 0 and value + (n_steps - step) * (value - last) < least:
            return
        maximize(starts, prior, tables, floor, prior_counts, counts)

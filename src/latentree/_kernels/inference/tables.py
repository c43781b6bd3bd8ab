"""Loops over the flat probability tables of a discrete tree (see ``inference.Layout``)."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

SMALL = 400  # numbers in the largest array for which nothing is compiled
_PLAIN = 2_000  # the same where there is a form in whole arrays
_FEW_CELLS = 10_000  # of a table of codes


def _plain_marginals(order, parent, n_states, starts, theta, state_starts):
    out = np.zeros(state_starts[-1])
    for v in order:
        p, n = parent[v], n_states[v]
        if p < 0:
            found = theta[starts[v] : starts[v] + n]
        else:
            table = theta[starts[v] : starts[v] + n_states[p] * n].reshape(n_states[p], n)
            found = out[state_starts[p] : state_starts[p] + n_states[p]] @ table
        out[state_starts[v] : state_starts[v] + n] = found
    return out


def _plain_reorient(
    parent, new_parent, n_states, starts, theta, marginal, state_starts, new_starts, size
):
    out = np.empty(size)
    for v, p in enumerate(new_parent):
        n = n_states[v]
        mine = marginal[state_starts[v] : state_starts[v] + n]
        if p < 0:
            found = mine
        elif p == parent[v]:
            found = theta[starts[v] : starts[v] + n_states[p] * n]
        else:
            table = theta[starts[p] : starts[p] + n * n_states[p]].reshape(n, n_states[p])
            whole = marginal[state_starts[p] : state_starts[p] + n_states[p], None]
            found = np.where(whole > 0.0, (mine[:, None] * table).T / whole, 1.0 / n).ravel()
        out[new_starts[v] : new_starts[v] + found.size] = found
    return out


def _plain_joint_with_all(codes, node, others, weights, n_states):
    most = n_states[others].max(initial=1)
    counts = np.zeros((others.size, n_states[node], most))
    for o, other in enumerate(others):
        a, b = codes[:, node], codes[:, other]
        both = (a >= 0) & (b >= 0)
        cell = a[both].astype(np.int64) * most + b[both]
        counts[o] = np.bincount(cell, weights[both], counts[o].size).reshape(counts[o].shape)
    return counts


@kernel(small=_PLAIN, plain=_plain_marginals)
def marginals(order, parent, n_states, starts, theta, state_starts):
    """Marginal probabilities of every node, laid end to end."""
    # P(v = j) = Σ_i P(p = i)·T[i, j], parents first.
    out = np.zeros(state_starts[-1])
    for v in order:
        p = parent[v]
        here = state_starts[v]
        for j in range(n_states[v]):
            if p < 0:
                out[here + j] = theta[starts[v] + j]
            else:
                for i in range(n_states[p]):
                    out[here + j] += (
                        out[state_starts[p] + i] * theta[starts[v] + i * n_states[v] + j]
                    )
    return out


@kernel(small=_PLAIN, plain=_plain_reorient)
def reorient(parent, new_parent, n_states, starts, theta, marginal, state_starts, new_starts, size):
    """The same distribution as tables for another rooting.

    Turning the edge p → v round gives P(p = a | v = b) = P(a)·T[a, b]/P(b), uniform if P(b) = 0.
    """
    out = np.empty(size)
    for v in range(parent.size):
        p = new_parent[v]
        n = n_states[v]
        # A new root has its marginal, an edge that keeps its direction its table; one that turns
        # follows by Bayes: P(v = a | p = b) = P(v = a)·P(p = b | v = a)/P(p = b).
        if p < 0:
            for k in range(n):
                out[new_starts[v] + k] = marginal[state_starts[v] + k]
        elif p == parent[v]:
            for k in range(n_states[p] * n):
                out[new_starts[v] + k] = theta[starts[v] + k]
        else:
            for b in range(n_states[p]):
                whole = marginal[state_starts[p] + b]
                for a in range(n):
                    joint = marginal[state_starts[v] + a] * theta[starts[p] + a * n_states[p] + b]
                    out[new_starts[v] + b * n + a] = joint / whole if whole > 0.0 else 1.0 / n
    return out


@kernel(small=SMALL)
def turn_counts(parent, new_parent, n_states, starts, counts, new_starts, size):
    """Joint counts of edges for another rooting; root counts are summed from an edge."""
    out = np.empty(size)
    for v in range(parent.size):
        p = new_parent[v]
        n = n_states[v]
        # An edge that is turned round has its counts transposed; a new root's are the sums over
        # its former parent, an old root's stay.
        if p >= 0 and p == parent[v]:
            for k in range(n_states[p] * n):
                out[new_starts[v] + k] = counts[starts[v] + k]
        elif p >= 0:
            for b in range(n_states[p]):
                for a in range(n):
                    out[new_starts[v] + b * n + a] = counts[starts[p] + a * n_states[p] + b]
        elif parent[v] < 0:
            for k in range(n):
                out[new_starts[v] + k] = counts[starts[v] + k]
        else:
            for k in range(n):
                total = 0.0
                for i in range(n_states[parent[v]]):
                    total += counts[starts[v] + i * n + k]
                out[new_starts[v] + k] = total
    return out


@kernel(small=SMALL)
def sample_states(order, parent, n_states, starts, theta, uniform, out):
    """Draw all nodes from the root down: the state at which the cumulated table passes u."""
    for row in range(uniform.shape[0]):
        for v in order:
            n = n_states[v]
            start = starts[v] + (out[row, parent[v]] * n if parent[v] >= 0 else 0)
            # States of probability 0 are never drawn, not even where u is 1 up to rounding.
            total = 0.0
            state = 0
            for k in range(n):
                if theta[start + k] > 0.0:
                    state = k
                    total += theta[start + k]
                    if total > uniform[row, v]:
                        break
            out[row, v] = state


@kernel(small=_FEW_CELLS, plain=_plain_joint_with_all)
def joint_with_all(codes, node, others, weights, n_states):
    """Weighted joint counts of one column of codes with several others, both present.

    Entry (o, a, b) counts rows in which the node has code a and other o code b.
    """
    most = 1
    for other in others:
        most = max(most, n_states[other])
    counts = np.zeros((others.size, n_states[node], most))
    for row in range(codes.shape[0]):
        a = codes[row, node]
        if a >= 0:
            for o in range(others.size):
                b = codes[row, others[o]]
                if b >= 0:
                    counts[o, a, b] += weights[row]
    return counts

"""Sums over the pieces that a forest falls into when edges are removed."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

_SMALL = 200  # nodes of a tree for which nothing is compiled


@kernel(small=_SMALL)
def survey(order, parent, length, n_observed, removed, least):
    """Return what one more or one less edge would change; edges are known by their lower ends.

    The spread of a piece is S/n, with the total path length S of the pairs of its n variables.
    Returns how much every edge would take off the spread if it were removed (−∞ if that leaves
    fewer than ``least`` variables on a side), how much every removed one would add if it were put
    back (∞ for others), the top node of every node's piece, the total path length from every node
    to the variables of its piece, and the spread of all pieces.
    """
    size = parent.size
    gain, loss = np.full(size, -np.inf), np.full(size, np.inf)
    top, total = np.empty(size, np.int64), np.empty(size)
    # Of the variables of a piece below v: their number n, total path length to v, and of pairs.
    n, below, pairs = np.zeros(size), np.zeros(size), np.zeros(size)
    n[:n_observed] = 1.0
    for v in order[::-1]:
        u = parent[v]
        if u >= 0 and not removed[v]:
            # Paths from below v to u are longer by the edge; pairs across the two sides of u have
            # the sum of both paths.
            rise = below[v] + n[v] * length[v]
            pairs[u] += pairs[v] + n[u] * rise + n[v] * below[u]
            n[u] += n[v]
            below[u] += rise
    spread = 0.0
    for v in order:
        u = parent[v]
        if u < 0 or removed[v]:
            top[v], total[v] = v, below[v]
            spread += pairs[v] / n[v]
            continue
        # Going down an edge, a variables come nearer and the other b get farther.
        t = top[u]
        a, b = n[v], n[t] - n[v]
        top[v], total[v] = t, total[u] + (b - a) * length[v]
        if a >= least and b >= least:
            # Without the edge the piece falls into two, and the pairs across no longer count.
            above = total[u] - below[v] - a * length[v]
            across = b * below[v] + a * above + a * b * length[v]
            rest = pairs[t] - pairs[v] - across
            gain[v] = pairs[t] / n[t] - pairs[v] / a - rest / b
    for v in order:
        u = parent[v]
        if u >= 0 and removed[v]:
            t = top[u]
            a, b = n[v], n[t]
            across = b * below[v] + a * total[u] + a * b * length[v]
            loss[v] = (pairs[v] + pairs[t] + across) / (a + b) - pairs[v] / a - pairs[t] / b
    return gain, loss, top, total, spread


@kernel(small=_SMALL)
def most_groups(order, parent, n_observed, least):
    """Remove edges from the leaves up, wherever ``least`` variables have come together."""
    removed = np.zeros(parent.size, np.bool_)
    n, last = np.zeros(parent.size, np.int64), np.full(parent.size, -1)
    n[:n_observed] = 1
    for v in order[::-1]:
        u = parent[v]
        if u < 0:
            if n[v] < least and last[v] >= 0:  # too few are left for a group
                removed[last[v]] = False
        elif n[v] >= least:
            removed[v], last[u] = True, v
        else:
            n[u] += n[v]
            last[u] = max(last[u], last[v])
    return removed

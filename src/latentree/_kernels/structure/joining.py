"""Neighbor joining with lazy row minima.

Textbook neighbor joining looks at every pair in every step to find the smallest criterion
d_ij − u_i − u_j, with u_i = Σ_k d_ik / (r − 2) over the r nodes left. Here every row keeps a lower
bound on its own smallest value of d_ij − u_j, and is scanned again only when the bound says that
it could win. A scan's result ages: after a step no u_j has risen by more than the largest rise,
so subtracting the sum of the largest rises since the scan keeps the bound valid. The pair that is
joined is the same as in the textbook, always.

A slot whose node has been joined is marked by u = −1e300: d − u is then never smallest, and the
loops need no branch.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel


@kernel(fastmath=True)
def _row_minimum(row, u, stop):
    """Smallest row[j] − u[j] over j < stop; written so that it vectorizes."""
    smallest = 1e300
    for j in range(stop):
        value = row[j] - u[j]
        smallest = value if value < smallest else smallest
    return smallest


@kernel(fastmath=True)
def _first_at(row, u, stop, wanted):
    """The first j < stop with row[j] − u[j] ≤ ``wanted``."""
    for j in range(stop):
        if row[j] - u[j] <= wanted:
            return j
    return 0


@kernel(fastmath=True)
def _best_pair(distance, u, bound, drop, n_slots):
    """The pair of slots (i, j), j < i, with the smallest d_ij − u_i − u_j."""
    # Start from the row whose bound is lowest: its exact value rules out most other rows.
    start = _first_at(bound, u, n_slots, _row_minimum(bound, u, n_slots))
    best_i = start
    best_raw = _row_minimum(distance[start], u, start)
    bound[start] = best_raw + drop
    best = best_raw - u[start]
    for i in range(1, n_slots):
        if bound[i] - drop - u[i] <= best and i != start:
            raw = _row_minimum(distance[i], u, i)
            bound[i] = raw + drop
            value = raw - u[i]
            if value < best or (value == best and i < best_i):
                best = value
                best_i = i
                best_raw = raw
    return best_i, _first_at(distance[best_i], u, best_i, best_raw)


@kernel(fastmath=True)
def _merge_rows(row_i, row_j, d_ij, n_slots, u, total):
    """Distances of the new node to all, in ``row_j``; updates S of the others, returns its own."""
    fresh = 0.0
    for k in range(n_slots):
        # d_hk = (d_ik + d_jk − d_ij) / 2, and S_k loses d_ik + d_jk and gains d_hk.
        both = row_i[k] + row_j[k]
        new = 0.5 * (both - d_ij)
        row_j[k] = new
        total[k] -= 0.5 * (both + d_ij)
        fresh += new if u[k] > -1e299 else 0.0
    return fresh


@kernel(fastmath=True)
def _refresh_u(total, u, n_slots, scale):
    """Set u_k = S_k·scale of all nodes that are left; return the largest rise."""
    rise = -1e300
    for k in range(n_slots):
        old = u[k]
        new = total[k] * scale
        change = new - old if old > -1e299 else -1e300
        u[k] = new if old > -1e299 else old
        rise = change if change > rise else rise
    return rise


@kernel(fastmath=True)
def _compact(distance, total, u, bound, slot_node, keep, n_slots):
    """Move the slots that are in use to the front, in place; return how many there are."""
    count = 0
    for k in range(n_slots):
        if u[k] > -1e299:
            keep[count] = k
            count += 1
    for a in range(count):
        source = keep[a]
        for b in range(count):
            distance[a, b] = distance[source, keep[b]]
        total[a] = total[source]
        u[a] = u[source]
        bound[a] = bound[source]
        slot_node[a] = slot_node[source]
    return count


def join_neighbors(distance):
    """Neighbor joining of m ≥ 3 nodes; ``distance`` is overwritten.

    Returns the two ends and the length of each of the 2m − 3 edges; the nodes m, m + 1, … are new
    ones in the order in which they were made, the last with three neighbors. O(m²) space; O(m³)
    time at worst, close to m² in practice.
    """
    m = distance.shape[0]
    ends = np.empty((2 * m - 3, 2), np.int64)
    lengths = np.empty(2 * m - 3)
    numbers = np.arange(m)
    total, u, bound = np.empty(m), np.zeros(m), np.empty(m)
    _join(distance, numbers, total, u, bound, numbers.copy(), ends, lengths)
    return ends, lengths


@kernel(fastmath=True)
def _join(distance, slot_node, total, u, bound, keep, ends, lengths):
    """Fill ``ends`` and ``lengths``; the arrays before are room for something of each slot."""
    m = distance.shape[0]
    for i in range(m):
        distance[i, i] = 0.0
        total[i] = 0.0
        for k in range(m):
            total[i] += distance[i, k]
    _refresh_u(total, u, m, 1.0 / max(m - 2, 1))
    for i in range(m):
        bound[i] = _row_minimum(distance[i], u, i)
    # `bound` holds row minima plus the value of `drop` when they were found; drop is the sum of
    # the largest rises of any u since the start, so that bound − drop is a lower bound.
    drop = 0.0
    n_slots = m
    edge = 0
    j = 0
    for new in range(m, 2 * m - 2):
        i, j = _best_pair(distance, u, bound, drop, n_slots)
        d_ij = distance[i, j]
        # d_ih = (d_ij + u_i − u_j) / 2
        ends[edge, 0] = slot_node[i]
        ends[edge + 1, 0] = slot_node[j]
        lengths[edge] = 0.5 * (d_ij + (u[i] - u[j]))
        lengths[edge + 1] = 0.5 * (d_ij - (u[i] - u[j]))
        ends[edge, 1] = new
        ends[edge + 1, 1] = new
        edge += 2
        # The new node takes the lower slot, j: its row is the shorter one to scan.
        u[i] = -1e300
        bound[i] = 1e300
        slot_node[j] = new
        total[j] = _merge_rows(distance[i], distance[j], d_ij, n_slots, u, total)
        distance[j, j] = 0.0
        left = 2 * m - 1 - new  # nodes
        u[j] = total[j] / max(left - 2, 1)
        drop += _refresh_u(total, u, n_slots, 1.0 / max(left - 2, 1))
        bound[j] = _row_minimum(distance[j], u, j) + drop
        for k in range(n_slots):
            distance[k, j] = distance[j, k]
        for k in range(j + 1, n_slots):  # rows that see the new node
            value = distance[j, k] + drop - u[j]
            bound[k] = value if value < bound[k] else bound[k]
        # When a quarter of the slots is empty the rest moves together: rows get shorter, and all
        # moves together cost O(m²).
        if n_slots > 32 and 4 * left < 3 * n_slots:
            n_slots = _compact(distance, total, u, bound, slot_node, keep, n_slots)
    # Two nodes are left, the last new one and another.
    for k in range(n_slots):
        if u[k] > -1e299 and k != j:
            ends[edge, 0] = slot_node[k]
            ends[edge, 1] = slot_node[j]
            lengths[edge] = distance[k, j]

"""Neighbor joining with lazy row minima.

Textbook neighbor joining looks at every pair in every step to find the smallest criterion
d_ij − u_i − u_j, with u_i = Σ_k d_ik / (r − 2) over the r nodes left. Here every row keeps a lower
bound on its own smallest value of d_ij − u_j, and is scanned again only when the bound says that
it could win. A scan's result ages: after a step no u_j has risen by more than the largest rise,
so subtracting the sum of the largest rises since the scan keeps the bound valid. The pair that is
joined is the same as in the textbook, always.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

HUGE = 1e300


@kernel(fastmath=True)
def _row_minimum(row, u, stop):
    """Smallest row[j] − u[j] over j < stop; written so that it vectorises."""
    smallest = 1e300
    for j in range(stop):
        value = row[j] - u[j]
        smallest = value if value < smallest else smallest
    return smallest


@kernel(fastmath=True)
def _row_sum(row):
    total = 0.0
    for value in row:
        total += value
    return total


@kernel()
def _first_at(row, u, stop, wanted):
    """The first j < stop with row[j] − u[j] equal to ``wanted`` (up to the last bits)."""
    where = 0
    smallest = np.inf
    for j in range(stop):
        value = row[j] - u[j]
        if value == wanted:
            return j
        if value < smallest:
            smallest = value
            where = j
    return where


@kernel()
def _best_pair(distance, u, bound, drop, alive, n_slots):
    """The alive pair (i, j), j < i, with the smallest d_ij − u_i − u_j."""
    best = np.inf
    best_i = -1
    # Start from the row whose bound is lowest: its exact value rules out most other rows.
    start = -1
    lowest = np.inf
    for i in range(1, n_slots):
        if alive[i]:
            value = bound[i] - u[i]
            if value < lowest:
                lowest = value
                start = i
    best_raw = _row_minimum(distance[start], u, start)
    bound[start] = best_raw + drop
    best = best_raw - u[start]
    best_i = start
    for i in range(1, n_slots):
        if alive[i] and i != start and bound[i] - drop - u[i] <= best:
            raw = _row_minimum(distance[i], u, i)
            bound[i] = raw + drop
            value = raw - u[i]
            if value < best or (value == best and i < best_i):
                best = value
                best_i = i
                best_raw = raw
    return best_i, _first_at(distance[best_i], u, best_i, best_raw)


@kernel(fastmath=True)
def _merge_rows(distance, i, j, n_slots, total, out):
    """Distances of the new node to all (in ``out``); updates the row sums of the others."""
    d_ij = distance[i, j]
    row_i = distance[i]
    row_j = distance[j]
    for k in range(n_slots):
        # d_hk = (d_ik + d_jk − d_ij) / 2, and S_k loses d_ik + d_jk and gains d_hk.
        both = row_i[k] + row_j[k]
        out[k] = 0.5 * (both - d_ij)
        total[k] -= 0.5 * (both + d_ij)


@kernel(fastmath=True)
def _refresh_u(total, u, alive, n_slots, scale):
    """Set u_k = S_k·scale for the alive; return the largest rise."""
    rise = -1e300
    for k in range(n_slots):
        new = total[k] * scale
        change = new - u[k] if alive[k] else -1e300
        u[k] = new if alive[k] else -1e300
        rise = change if change > rise else rise
    return rise


@kernel()
def _compact(distance, total, u, bound, alive, slot_node, n_slots):
    """Move the alive slots to the front, in place; return how many there are."""
    count = 0
    keep = np.empty(n_slots, np.int64)
    for k in range(n_slots):
        if alive[k]:
            keep[count] = k
            count += 1
    for a in range(count):
        source = distance[keep[a]]
        target = distance[a]
        for b in range(count):
            target[b] = source[keep[b]]
        total[a] = total[keep[a]]
        u[a] = u[keep[a]]
        bound[a] = bound[keep[a]]
        slot_node[a] = slot_node[keep[a]]
    alive[:count] = True
    alive[count:] = False
    return count


@kernel()
def join_neighbours(distance):
    """Neighbor joining of m ≥ 3 nodes; ``distance`` is overwritten.

    Returns the two ends and the length of each of the 2m − 3 edges; the nodes m, m + 1, … are new
    ones in the order in which they were made, the last with three neighbours. O(m²) space; O(m³)
    time at worst, close to m² in practice.
    """
    m = distance.shape[0]
    ends = np.empty((2 * m - 3, 2), np.int64)
    lengths = np.empty(2 * m - 3)
    alive = np.ones(m, np.bool_)
    slot_node = np.arange(m)
    total = np.empty(m)
    for k in range(m):
        distance[k, k] = 0.0
        total[k] = _row_sum(distance[k])
    u = np.zeros(m)
    _refresh_u(total, u, alive, m, 1.0 / max(m - 2, 1))
    bound = np.full(m, -1e300)
    merged = np.empty(m)
    drop = 0.0
    n_slots = m
    for i in range(1, m):
        bound[i] = _row_minimum(distance[i], u, i)
    for step in range(m - 3):
        r = m - step
        i, j = _best_pair(distance, u, bound, drop, alive, n_slots)
        d_ij = distance[i, j]
        # d_ih = (d_ij + u_i − u_j) / 2
        half = 0.5 * (u[i] - u[j])
        ends[2 * step, 0], ends[2 * step, 1] = slot_node[i], m + step
        ends[2 * step + 1, 0], ends[2 * step + 1, 1] = slot_node[j], m + step
        lengths[2 * step] = 0.5 * d_ij + half
        lengths[2 * step + 1] = 0.5 * d_ij - half
        _merge_rows(distance, i, j, n_slots, total, merged)
        alive[i] = False
        merged[i] = 0.0
        merged[j] = 0.0
        # The new node takes the lower slot, j: its own row is the shorter one to scan.
        slot_node[j] = m + step
        fresh = 0.0
        for k in range(n_slots):
            distance[j, k] = merged[k]
            distance[k, j] = merged[k]
            if alive[k]:
                fresh += merged[k]
        total[j] = fresh
        u[j] = fresh / (r - 3)
        rise = _refresh_u(total, u, alive, n_slots, 1.0 / (r - 3))
        drop += rise
        bound[j] = _row_minimum(distance[j], u, j) + drop
        for k in range(j + 1, n_slots):
            value = merged[k] - u[j] + drop
            bound[k] = value if value < bound[k] else bound[k]
        if n_slots > 32 and 4 * (r - 1) < 3 * n_slots:
            n_slots = _compact(distance, total, u, bound, alive, slot_node, n_slots)
    _finish(distance, alive, slot_node, n_slots, m, ends, lengths)
    return ends, lengths


@kernel()
def _finish(distance, alive, slot_node, n_slots, m, ends, lengths):
    """Connect the last three nodes: all pairs tie, so there is nothing to choose."""
    last = np.flatnonzero(alive[:n_slots])
    a, b, c = last[0], last[1], last[2]
    d_ab, d_ac, d_bc = distance[b, a], distance[c, a], distance[c, b]
    centre = 2 * m - 3
    first = 2 * m - 6
    for offset, slot, length in (
        (0, a, 0.5 * (d_ab + d_ac - d_bc)),
        (1, b, 0.5 * (d_ab + d_bc - d_ac)),
        (2, c, 0.5 * (d_ac + d_bc - d_ab)),
    ):
        ends[first + offset, 0] = slot_node[slot]
        ends[first + offset, 1] = centre
        lengths[first + offset] = length

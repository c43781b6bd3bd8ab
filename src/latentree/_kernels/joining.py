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
                best, best_i, best_raw = value, i, raw
    return best_i, _first_at(distance[best_i], u, best_i, best_raw)


@kernel(fastmath=True)
def _merge_rows(row_i, row_j, d_ij, n_slots, u, total, out):
    """Distances of the new node to all, in ``out``; updates S of the others, returns its own."""
    fresh = 0.0
    for k in range(n_slots):
        # d_hk = (d_ik + d_jk − d_ij) / 2, and S_k loses d_ik + d_jk and gains d_hk.
        both = row_i[k] + row_j[k]
        new = 0.5 * (both - d_ij)
        out[k] = new
        total[k] -= 0.5 * (both + d_ij)
        fresh += new if u[k] > -1e299 else 0.0
    return fresh


@kernel()
def _write_node(distance, j, merged, n_slots):
    """Put the new node's distances into row and column j."""
    row = distance[j]
    for k in range(n_slots):
        row[k] = merged[k]
    for k in range(n_slots):
        distance[k, j] = merged[k]
    row[j] = 0.0


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
def _offer_to_later(merged, bound, j, n_slots, gain):
    """Lower the bounds of the rows after j, which see the new node in slot j."""
    for k in range(j + 1, n_slots):
        value = merged[k] + gain
        bound[k] = value if value < bound[k] else bound[k]


@kernel()
def _compact(distance, total, u, bound, slot_node, n_slots):
    """Move the slots that are in use to the front, in place; return how many there are."""
    count = 0
    keep = np.empty(n_slots, np.int64)
    for k in range(n_slots):
        if u[k] > -1e299:
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
    slot_node = np.arange(m)
    total = np.empty(m)
    u = np.zeros(m)
    bound = np.empty(m)
    merged = np.empty(m)
    bound[0] = 1e300
    for k in range(m):
        distance[k, k] = 0.0
        total[k] = _row_sum(distance[k])
    _refresh_u(total, u, m, 1.0 / max(m - 2, 1))
    for i in range(1, m):
        bound[i] = _row_minimum(distance[i], u, i)
    drop = 0.0
    n_slots = m
    for step in range(m - 3):
        left = m - step - 1  # nodes that are left after this step
        i, j = _best_pair(distance, u, bound, drop, n_slots)
        d_ij = distance[i, j]
        for side, slot, sign in ((0, i, 1.0), (1, j, -1.0)):
            # d_ih = (d_ij + u_i − u_j) / 2
            ends[2 * step + side, 0], ends[2 * step + side, 1] = slot_node[slot], m + step
            lengths[2 * step + side] = 0.5 * (d_ij + sign * (u[i] - u[j]))
        # The new node takes the lower slot, j: its row is the shorter one to scan.
        u[i], bound[i] = -1e300, 1e300
        slot_node[j] = m + step
        total[j] = _merge_rows(distance[i], distance[j], d_ij, n_slots, u, total, merged)
        _write_node(distance, j, merged, n_slots)
        u[j] = total[j] / (left - 2)
        drop += _refresh_u(total, u, n_slots, 1.0 / (left - 2))
        bound[j] = _row_minimum(distance[j], u, j) + drop
        _offer_to_later(merged, bound, j, n_slots, drop - u[j])
        if n_slots > 32 and 4 * left < 3 * n_slots:
            n_slots = _compact(distance, total, u, bound, slot_node, n_slots)
    _finish(distance, u, slot_node, n_slots, m, ends, lengths)
    return ends, lengths


@kernel()
def _finish(distance, u, slot_node, n_slots, m, ends, lengths):
    """Connect the last three nodes: all pairs tie, so there is nothing to choose."""
    a, b, c = -1, -1, -1
    for slot in range(n_slots):
        if u[slot] > -1e299:
            a, b, c = b, c, slot
    d_ab, d_ac, d_bc = distance[b, a], distance[c, a], distance[c, b]
    first = 2 * m - 6
    for offset, slot, length in (
        (0, a, 0.5 * (d_ab + d_ac - d_bc)),
        (1, b, 0.5 * (d_ab + d_bc - d_ac)),
        (2, c, 0.5 * (d_ac + d_bc - d_ab)),
    ):
        ends[first + offset, 0] = slot_node[slot]
        ends[first + offset, 1] = 2 * m - 3
        lengths[first + offset] = length

"""Expected counts of a tree whose nodes have states, on subtree patterns: the E-step of EM.

The slots and their formulas are in `slots`. The values of a slot lie pattern by pattern, all states
of a pattern side by side: an edge is a product of matrices, which BLAS computes, and a join reads
and writes whole rows, wherever its patterns lie. An edge to a node that is seen is a column of its
table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.exponential import exp, log
from latentree._kernels.inference.slots import (
    EDGE,
    EVIDENCE,
    GROW,
    JOIN,
    LOG_GROW,
    SMALL,
    TINY,
    has_small,
    root_prior,
)

BLOCK = 64
"""Fewest rows of a block."""
MOST_PRODUCTS = 1 << 18
"""Products in one call of BLAS; OpenBLAS spreads larger ones over threads, and ours are busy."""
MOST_PATTERNS = 1024
"""Patterns in one call of BLAS: they stay in the cache."""
MOST_ROWS = 512
"""Rows in a block."""
MOST_NUMBERS = 1 << 19
"""Numbers that a block of rows works on, 4 MB: threads share a cache of some ten."""


class RowBlock(NamedTuple):
    """A block of rows, and the memory that it works on; row p is ``straight[p]`` = p of a slot."""

    start: int
    width: int
    straight: NDArray[np.int32]
    own: NDArray[np.float64]
    """Values of the slots that run by row."""
    received: NDArray[np.float64]
    """Posterior weights that are handed down to them."""
    z: NDArray[np.float64]
    """Weight over z of every row, after its root was closed."""
    n_grown: NDArray[np.float64]
    """How often every row was scaled up."""


@kernel()
def rows_at_once(n_numbers):
    """Return how many rows make a block, if one works on so many numbers.

    Few rows make small products of matrices, whose overhead shows: with 16 states BLAS makes two
    thirds as many products a second for 64 rows as for 256.
    """
    return max(BLOCK, min(MOST_ROWS, MOST_NUMBERS // max(1, n_numbers)))


@kernel()
def patterns_at_once(n_parent, n_child):
    """Return how many patterns an edge takes at a time."""
    return max(1, min(MOST_PATTERNS, MOST_PRODUCTS // (n_parent * n_child)))


# Two states at either end, the most frequent case: four products cost less than a call of BLAS.


@kernel(fastmath=True)
def _pair_up(turned, source, out, width):
    """Compute ``_edge_up`` between two nodes with two states each."""
    t_00, t_10, t_01, t_11 = turned[0], turned[1], turned[2], turned[3]
    for p in range(width):
        x, y = source[2 * p], source[2 * p + 1]
        out[2 * p] = t_00 * x + t_01 * y
        out[2 * p + 1] = t_10 * x + t_11 * y


@kernel(fastmath=True)
def _pair_down(table, received, message, source, handed, width, counts):
    """Compute ``_edge_down`` between two nodes with two states each."""
    t_00, t_01, t_10, t_11 = table[0], table[1], table[2], table[3]
    n_00, n_01, n_10, n_11 = 0.0, 0.0, 0.0, 0.0
    for p in range(width):
        m, n = message[2 * p], message[2 * p + 1]
        r = received[2 * p] / m if m > TINY else 0.0
        s = received[2 * p + 1] / n if n > TINY else 0.0
        x, y = source[2 * p], source[2 * p + 1]
        n_00 += r * x
        n_01 += r * y
        n_10 += s * x
        n_11 += s * y
        handed[2 * p] = x * (t_00 * r + t_10 * s)
        handed[2 * p + 1] = y * (t_01 * r + t_11 * s)
    counts[0] += n_00
    counts[1] += n_01
    counts[2] += n_10
    counts[3] += n_11


@kernel(fastmath=True)
def _edge_up(turned, n_parent, n_child, source, out, width):
    """μ(i) = Σ_j T[i, j]·λ(j); T comes column by column, as BLAS takes longer to turn it."""
    if n_parent == 2 and n_child == 2:
        _pair_up(turned, source, out, width)
        return
    table = turned[: n_parent * n_child].reshape((n_child, n_parent))
    step = patterns_at_once(n_parent, n_child)
    for first in range(0, width, step):
        n = min(step, width - first)
        below = source[first * n_child : (first + n) * n_child].reshape((n, n_child))
        above = out[first * n_parent : (first + n) * n_parent].reshape((n, n_parent))
        np.dot(below, table, above)


@kernel(fastmath=True)
def _edge_down(
    table, n_parent, n_child, received, message, source, handed, width, counts, ratio, sums
):
    """Expected counts (over T) are added to ``counts``, posterior weights handed to the child."""
    # With ratio(i) = R(i)/μ(i): counts over T are Σ_p ratio(i)·λ(j), and the child receives
    # λ(j)·Σ_i T[i, j]·ratio(i).
    if n_parent == 2 and n_child == 2:
        _pair_down(table, received, message, source, handed, width, counts)
        return
    matrix = table[: n_parent * n_child].reshape((n_parent, n_child))
    total = sums[: n_parent * n_child].reshape((n_parent, n_child))
    step = patterns_at_once(n_parent, n_child)
    for first in range(0, width, step):
        n = min(step, width - first)
        r = received[first * n_parent : (first + n) * n_parent]
        m = message[first * n_parent : (first + n) * n_parent]
        for x in range(n * n_parent):
            ratio[x] = r[x] / m[x] if m[x] > TINY else 0.0
        quotient = ratio[: n * n_parent].reshape((n, n_parent))
        below = source[first * n_child : (first + n) * n_child]
        out = handed[first * n_child : (first + n) * n_child]
        np.dot(quotient.T, below.reshape((n, n_child)), total)
        for x in range(n_parent * n_child):
            counts[x] += sums[x]
        np.dot(quotient, matrix, out.reshape((n, n_child)))
        for x in range(n * n_child):
            out[x] *= below[x]


@kernel(fastmath=True)
def relative_likelihoods(emitting, starts, logs, values, best):
    """Set the slots of emissions to likelihoods relative to the best state's.

    ``best`` is set to the logarithm of the best state's likelihood of every value.
    """
    relative = np.empty(BLOCK)
    at = 0
    for e in range(emitting.size):
        place, width, n = emitting[e]["value"], emitting[e]["n_patterns"], emitting[e]["n_states"]
        for first in range(0, width, BLOCK):
            size = min(BLOCK, width - first)
            # ``logs`` has a row per state. The largest of a value is taken off: none overflows.
            top = best[at + first : at + first + size]
            top[:] = logs[starts[e] + first : starts[e] + first + size]
            for k in range(1, n):
                row = logs[starts[e] + k * width + first :]
                for p in range(size):
                    top[p] = max(top[p], row[p])
            target = values[place + first * n : place + (first + size) * n]
            for k in range(n):
                row = logs[starts[e] + k * width + first :]
                for p in range(size):
                    relative[p] = exp(row[p] - top[p])
                for p in range(size):
                    target[p * n + k] = relative[p]
        at += width


@kernel(fastmath=True)
def emission_counts(emitting, starts, received, handed, best, out):
    """Copy what the slots of emissions received, state by state: their expected counts.

    Returns Σ w·log of the best state's likelihoods, to which others are relative.
    """
    total = 0.0
    at = 0
    for e in range(emitting.size):
        slot = emitting[e]
        width, n = slot["n_patterns"], slot["n_states"]
        mine = received[slot["value"] :] if slot["handed"] < 0 else handed[slot["handed"] :]
        for p in range(width):
            source = mine[p * n : (p + 1) * n]
            weight = 0.0
            for k in range(n):
                out[starts[e] + k * width + p] = source[k]
                weight += source[k]
            total += weight * best[at + p]
        at += width
    return total


@kernel(fastmath=True)
def _see(table, n_parent, n_child, symbols, out, width):
    """μ(i) = T[i, s] of an edge to a node seen in state s; Σ_j T[i, j] where it is missing."""
    for p in range(width):
        seen = symbols[p]
        for i in range(n_parent):
            row = table[i * n_child : (i + 1) * n_child]
            out[p * n_parent + i] = row[seen] if seen >= 0 else row.sum()


@kernel(fastmath=True)
def _count_seen(n_parent, n_child, symbols, received, message, width, counts):
    """Add expected counts (over T) of an edge to a node that is seen."""
    for p in range(width):
        for i in range(n_parent):
            m = message[p * n_parent + i]
            ratio = received[p * n_parent + i] / m if m > TINY else 0.0
            row = counts[i * n_child : (i + 1) * n_child]
            if symbols[p] >= 0:
                row[symbols[p]] += ratio
            else:
                row += ratio


# Numbers of patterns are read as unsigned: compiled code need not look for negative ones.


@kernel(fastmath=True)
def _join(a, at_a, b, at_b, n_states, width, out):
    """λ(k) = a(k)·b(k) of the patterns ``at``."""
    n, here = np.uint64(n_states), np.uint64(0)
    for p in range(width):
        first, second = np.uint64(at_a[p]) * n, np.uint64(at_b[p]) * n
        for k in range(n):
            out[here + k] = a[first + k] * b[second + k]
        here += n


@kernel(fastmath=True)
def close(prior, n_states, weights, width, source, received, counts, z, least):
    """Close a root: w·log z summed, its states' posterior weights, its counts (over the prior).

    ``z`` is scratch. True, and nothing is counted, if z is below ``least`` anywhere.
    """
    # z = Σ_k prior(k)·λ(k); R(k) = w·prior(k)·λ(k)/z.
    for p in range(width):
        row = source[p * n_states : (p + 1) * n_states]
        total = 0.0
        for k in range(n_states):
            total += prior[k] * row[k]
        z[p] = total
    # From here on ``z`` holds w/z.
    total, lost = 0.0, 0
    for p in range(width):
        lost += (z[p] < least) & (weights[p] > 0.0)
        total += weights[p] * log(max(z[p], least))
        z[p] = weights[p] / max(z[p], least)
    if lost > 0:
        return total, True
    for p in range(width):
        row = source[p * n_states : (p + 1) * n_states]
        out = received[p * n_states : (p + 1) * n_states]
        for k in range(n_states):
            x = z[p] * row[k]
            counts[k] += x
            out[k] = prior[k] * x
    return total, False


@kernel(fastmath=True)
def _rescale(a, at_a, b, at_b, n_states, width, out, exact, tolerant, shifts):
    """Scale up patterns that got small, noting it in ``shifts``; True if information is lost.

    A product below ``TINY`` of two factors that are not zero is a loss, unless one part is
    evidence (``exact``), whose factors are 0 and 1; ``tolerant``: only if all products are.
    """
    for p in range(width):
        shifts[p] = 0.0
        first = a[at_a[p] * n_states : (at_a[p] + 1) * n_states]
        second = b[at_b[p] * n_states : (at_b[p] + 1) * n_states]
        target = out[p * n_states : (p + 1) * n_states]
        # ``top`` decides on scaling; a product that vanished beside it is a loss, unless tolerated.
        top = 0.0
        for k in range(n_states):
            top = max(top, target[k])
            if tolerant or exact or target[k] >= TINY:
                continue
            if first[k] > 0.0 and second[k] > 0.0:
                return True
        if top < TINY and (top > 0.0 or tolerant):
            return True
        if 0.0 < top < SMALL:
            shifts[p] = 1.0
            for k in range(n_states):
                target[k] *= GROW
    return False


@kernel(fastmath=True)
def _scatter(block, at, n_states, width, out):
    """Add the patterns of a block to the patterns ``at`` of a part."""
    # Several rows may have the same pattern: they are added one after the other.
    n, here = np.uint64(n_states), np.uint64(0)
    for p in range(width):
        there = np.uint64(at[p]) * n
        for k in range(n):
            out[there + k] += block[here + k]
        here += n


@kernel()
def _turn(source, n_rows, n_columns, out):
    """Write a matrix with its rows as columns."""
    for i in range(n_rows):
        for j in range(n_columns):
            out[j * n_rows + i] = source[i * n_columns + j]


@kernel()
def _buffers(slots, listed):
    """Return memory for the ratios and for the counts of one call of BLAS."""
    n_ratios, n_counts = 1, 1
    for s in listed:
        n_parent, n_child = slots[s]["n_states"], slots[slots[s]["a"]]["n_states"]
        n_ratios = max(n_ratios, patterns_at_once(n_parent, n_child) * n_parent)
        n_counts = max(n_counts, n_parent * n_child)
    return np.empty(n_ratios), np.empty(n_counts)


@kernel(fastmath=True)
def up_patterns(given, listed, values, shifts, scaled):
    """Fill the listed slots, which work on patterns; True if information may be lost."""
    slots, gather, theta = given.slots, given.gather, given.theta
    turned = _buffers(slots, listed)[1]  # a table column by column
    for s in listed:
        slot = slots[s]
        width, n_states = slot["n_patterns"], slot["n_states"]
        out = values[slot["value"] : slot["value"] + n_states * width]
        a, b = slots[slot["a"]], slots[slot["b"]]
        if slot["kind"] == EVIDENCE:
            for p in range(width):
                seen = gather[slot["index_a"] + p]
                for k in range(n_states):
                    out[p * n_states + k] = 1.0 if seen == k or seen < 0 else 0.0
        elif slot["kind"] == EDGE and a["kind"] == EVIDENCE:
            symbols = gather[a["index_a"] :]
            _see(theta[slot["table"] :], n_states, a["n_states"], symbols, out, width)
        elif slot["kind"] == EDGE:
            _turn(theta[slot["table"] :], n_states, a["n_states"], turned)
            _edge_up(turned, n_states, a["n_states"], values[a["value"] :], out, width)
        elif slot["kind"] == JOIN:
            part_a, at_a = values[a["value"] :], gather[slot["index_a"] :]
            part_b, at_b = values[b["value"] :], gather[slot["index_b"] :]
            shift = shifts[slot["value"] : slot["value"] + width]
            _join(part_a, at_a, part_b, at_b, n_states, width, out)
            scaled[s] = has_small(out, width * n_states)
            exact = a["kind"] == EVIDENCE or b["kind"] == EVIDENCE
            if scaled[s] and _rescale(
                part_a, at_a, part_b, at_b, n_states, width, out, exact, given.tolerant, shift
            ):
                return True
    return False


@kernel(fastmath=True)
def close_patterns(given, components, listed, weights, values, received, counts):
    """Close the listed components, whose roots work on patterns.

    Returns their log-likelihood and whether information may be lost.
    """
    total = 0.0
    for number in listed:
        component = components[number]
        slot = given.slots[component["root"]]
        prior, own = root_prior(component, slot["n_states"], given.theta, counts)
        log_likelihood, lost = close(
            prior,
            slot["n_states"],
            weights[component["weights"] :],
            slot["n_patterns"],
            values[slot["value"] :],
            received[slot["value"] :],
            own,
            np.empty(slot["n_patterns"]),
            TINY,
        )
        if lost:
            return total, True
        total += log_likelihood
    return total, False


@kernel(fastmath=True)
def down_patterns(given, listed, values, shifts, scaled, handed, received, counts):
    """Hand posterior weights down through the listed slots, last first, adding up counts.

    ``handed`` is what rows handed down. Returns what the scaling of values must take from the
    log-likelihood.
    """
    slots, gather, theta = given.slots, given.gather, given.theta
    correction = 0.0
    ratio, sums = _buffers(slots, listed)
    for position in range(listed.size - 1, -1, -1):
        slot = slots[listed[position]]
        width, n_states = slot["n_patterns"], slot["n_states"]
        mine = received[slot["value"] : slot["value"] + n_states * width]
        a = slots[slot["a"]]
        if slot["handed"] >= 0:
            mine = handed[slot["handed"] : slot["handed"] + n_states * width]
        if slot["kind"] == EDGE and a["kind"] == EVIDENCE:
            _count_seen(
                n_states,
                a["n_states"],
                gather[a["index_a"] :],
                mine,
                values[slot["value"] :],
                width,
                counts[slot["table"] :],
            )
        elif slot["kind"] == EDGE:
            _edge_down(
                theta[slot["table"] :],
                n_states,
                a["n_states"],
                mine,
                values[slot["value"] :],
                values[a["value"] :],
                received[a["value"] :],
                width,
                counts[slot["table"] :],
                ratio,
                sums,
            )
        elif slot["kind"] == JOIN:
            for part, index in ((a, slot["index_a"]), (slots[slot["b"]], slot["index_b"])):
                out = received[part["value"] : part["value"] + n_states * part["n_patterns"]]
                out[:] = 0.0
                _scatter(mine, gather[index:], n_states, width, out)
            # Rows whose values were scaled by 2²⁵⁶ have log z too large by as much: Σ_k R(k) is
            # their weight.
            if scaled[listed[position]]:
                for p in range(width):
                    if shifts[slot["value"] + p] > 0.0:
                        correction += mine[p * n_states : (p + 1) * n_states].sum()
    return correction * LOG_GROW


@kernel()
def turned_tables(slots, listed, theta):
    """Return the tables of the listed edges, each column by column, end to end."""
    size = 0
    for s in listed:
        size += slots[s]["n_states"] * slots[slots[s]["a"]]["n_states"]
    out = np.empty(size)
    at = 0
    for s in listed:
        slot, n_child = slots[s], slots[slots[s]["a"]]["n_states"]
        if slot["kind"] == EDGE:
            _turn(theta[slot["table"] :], slot["n_states"], n_child, out[at:])
            at += slot["n_states"] * n_child
    return out


@kernel(fastmath=True)
def _rows_up(given, listed, turned, values, rows, scaling):
    """Fill one block of rows; True if information may be lost."""
    slots, gather = given.slots, given.gather
    own, start, width, n_grown = rows.own, rows.start, rows.width, rows.n_grown
    at, block = (
        0,
        rows.straight.size,
    )  # ``at``: where the table of the next edge starts in ``turned``
    for p in range(width):
        n_grown[p] = 0.0
    for s in listed:
        slot = slots[s]
        n_states = slot["n_states"]
        out = own[slot["value"] * block :]
        a, b = slots[slot["a"]], slots[slot["b"]]
        part_a, at_a = own[a["value"] * block :], rows.straight
        if slot["kind"] == EDGE:
            _edge_up(turned[at:], n_states, a["n_states"], part_a, out, width)
            at += n_states * a["n_states"]
            continue
        part_b, at_b = own[b["value"] * block :], rows.straight
        if not a["by_row"]:
            part_a, at_a = values[a["value"] :], gather[slot["index_a"] + start :]
        if not b["by_row"]:
            part_b, at_b = values[b["value"] :], gather[slot["index_b"] + start :]
        _join(part_a, at_a, part_b, at_b, n_states, width, out)
        if scaling and has_small(out, width * n_states):
            exact = a["kind"] == EVIDENCE or b["kind"] == EVIDENCE
            if _rescale(
                part_a, at_a, part_b, at_b, n_states, width, out, exact, given.tolerant, rows.z
            ):  # fmt: skip
                return True
            for p in range(width):
                n_grown[p] += rows.z[p]
    return False


@kernel(fastmath=True)
def fill_rows(given, listed, turned, values, prior, weights, rows, root_counts):
    """Fill one block of rows upward and close its root, whose posteriors are received first.

    Returns Σ w·log z of the values as they were scaled, and whether information may be lost.
    """
    root, block = given.slots[listed[-1]], rows.straight.size
    # Products only get smaller. If z is large enough at the end, no scaling was needed for the
    # states that count; others may be lost where that is tolerated. Few rows have a second try.
    for scaling in (False, True):
        if not (scaling or given.tolerant):
            continue
        if _rows_up(given, listed, turned, values, rows, scaling):
            return 0.0, True
        total, lost = close(
            prior,
            root["n_states"],
            weights,
            rows.width,
            rows.own[root["value"] * block :],
            rows.received[root["received"] * block :],
            root_counts,
            rows.z,
            TINY if scaling else SMALL,
        )
        if not lost:
            break
    return total, lost


@kernel(fastmath=True)
def _rows_down(given, listed, rows, counts, handed, ratio, sums):
    """Hand one block of rows down; what patterns below receive is added to ``handed``."""
    slots, theta, own, received = given.slots, given.theta, rows.own, rows.received
    width, block = rows.width, rows.straight.size
    for position in range(listed.size - 1, -1, -1):
        slot = slots[listed[position]]
        mine = received[slot["received"] * block :]
        a = slots[slot["a"]]
        if slot["kind"] == EDGE:
            _edge_down(
                theta[slot["table"] :],
                slot["n_states"],
                a["n_states"],
                mine,
                own[slot["value"] * block :],
                own[a["value"] * block :],
                received[a["received"] * block :],
                width,
                counts[slot["table"] :],
                ratio,
                sums,
            )
            continue
        for part, index in ((a, slot["index_a"]), (slots[slot["b"]], slot["index_b"])):
            if not part["by_row"]:
                at = given.gather[index + rows.start :]
                _scatter(mine, at, slot["n_states"], width, handed[part["handed"] :])


@kernel(fastmath=True)
def run_rows(given, span, values, prior, weights, counts, root_counts, handed):
    """Run a range of rows (``span``) of a component through its by-row slots, up and down.

    Returns their log-likelihood and whether information may be lost.
    """
    listed = span.listed
    block = rows_at_once(span.n_values + span.n_received)
    own = np.empty(span.n_values * block)
    received = np.empty(span.n_received * block)
    ratio, sums = _buffers(given.slots, listed)
    turned = turned_tables(given.slots, listed, given.theta)
    straight = np.arange(block).astype(np.int32)
    n_grown, z = np.empty(block), np.empty(block)
    total = 0.0
    for start in range(span.first, span.last, block):
        width = min(block, span.last - start)
        rows = RowBlock(start, width, straight, own, received, z, n_grown)
        mine = weights[start:]
        closed, lost = fill_rows(given, listed, turned, values, prior, mine, rows, root_counts)
        if lost:
            return total, True
        total += closed
        for p in range(width):
            total -= mine[p] * n_grown[p] * LOG_GROW
        _rows_down(given, listed, rows, counts, handed, ratio, sums)
    return total, False

"""Expected counts of a discrete tree on subtree patterns: the expectation step of EM.

The slots and their formulas are in `slots`. Here the values of a slot lie state by state: those of
all patterns in a state side by side, so that inner loops run over patterns. Rows look up patterns
in copies that lie in quads (`quads`). For hidden variables with many states see `wide`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.exponential import exp, log
from latentree._kernels.inference.quads import (
    JoinPart,
    fetch_quads,
    fill_quads,
    multiply_quads,
    read_quads,
    scatter_quads,
)
from latentree._kernels.inference.slots import (
    EDGE,
    EMISSION,
    EVIDENCE,
    GROW,
    JOIN,
    LOG_GROW,
    SMALL,
    TINY,
    has_small,
    root_prior,
)

BLOCK = 128
"""Rows, or patterns, of a block: 8 states of one take 8 kB, so that some parts stay in a cache of
32 kB."""


class RowBlock(NamedTuple):
    """A block of rows, and the memory that it works on.

    Row p of a slot that is by row is its pattern ``straight[p]`` = p. A block has room for
    ``BLOCK`` rows: behind the last one are numbers that nobody reads.
    """

    start: int
    width: int
    straight: NDArray[np.uint32]
    own: NDArray[np.float64]
    """Values of the slots that run by row."""
    received: NDArray[np.float64]
    """Posterior weights that are handed down to them."""
    ratio: NDArray[np.float64]
    """Scratch for a slot, a row a state."""
    quads: NDArray[np.float64]
    """Scratch for a slot in quads."""


@kernel()
def _block(slots):
    """Return memory for a block of any of the slots, with states filled up to quads."""
    largest = 0
    for s in range(slots.size):
        largest = max(largest, slots[s]["n_states"])
    return np.empty((largest + 3) * BLOCK)


@kernel(fastmath=True)
def relative_likelihoods(emitting, starts, logs, values, quads, best):
    """Set the slots of emissions to likelihoods relative to the best state's.

    Where rows look them up, only their quads are set. ``best`` is set to the logarithm of the best
    state's likelihood of every value.
    """
    block = _block(emitting)
    at = 0
    for e in range(emitting.size):
        slot = emitting[e]
        n_states, width = slot["n_states"], slot["n_patterns"]
        for first in range(0, width, BLOCK):
            size = min(BLOCK, width - first)
            # The largest of a value is taken off, so that none overflows.
            top = best[at + first : at + first + size]
            source = logs[starts[e] + first :]
            for p in range(size):
                top[p] = source[p]
            for k in range(1, n_states):
                row = source[k * width : k * width + size]
                for p in range(size):
                    top[p] = max(top[p], row[p])
            target, stride = block, BLOCK
            if slot["quads"] < 0:
                target, stride = values[slot["value"] + first :], width
            for k in range(n_states):
                row, out = source[k * width : k * width + size], target[k * stride :]
                for p in range(size):
                    out[p] = exp(row[p] - top[p])
            if slot["quads"] >= 0:
                fill_quads(block, BLOCK, n_states, size, quads[slot["quads"] + 4 * first :], width)
        at += width


@kernel(fastmath=True)
def emission_counts(emitting, starts, received, handed, best, out):
    """Copy what the slots of emissions received: their expected counts.

    Returns Σ w·log of the best state's likelihoods, to which others are relative.
    """
    total = 0.0
    block = _block(emitting)
    at = 0
    for e in range(emitting.size):
        slot = emitting[e]
        n_states, width = slot["n_states"], slot["n_patterns"]
        for first in range(0, width, BLOCK):
            size = min(BLOCK, width - first)
            source, stride = received[slot["value"] + first :], width
            if slot["quads"] >= 0:
                mine = handed[slot["quads"] + 4 * first :]
                read_quads(mine, width, n_states, size, block, BLOCK)
                source, stride = block, BLOCK
            top = best[at + first : at + first + size]
            for k in range(n_states):
                row = source[k * stride : k * stride + size]
                target = out[starts[e] + k * width + first :]
                for p in range(size):
                    target[p] = row[p]
                    total += row[p] * top[p]
        at += width
    return total


@kernel(fastmath=True, views=True)
def _product(
    table, n_rows, n_columns, row_step, column_step, source, source_stride, out, stride, width
):
    """Matrix product: out(i) = Σ_j T[i, j]·source(j); T[i, j] is at i·row_step + j·column_step.

    Tiles of 4 × 2 entries of the table stay in registers: of each number that is loaded or stored,
    more than one product is made, so that the products set the pace, as in BLAS.
    """
    tiled = n_rows - n_rows % 4
    paired = n_columns - n_columns % 2
    for i in range(0, tiled, 4):
        out_0 = out[i * stride : i * stride + width]
        out_1 = out[(i + 1) * stride : (i + 1) * stride + width]
        out_2 = out[(i + 2) * stride : (i + 2) * stride + width]
        out_3 = out[(i + 3) * stride : (i + 3) * stride + width]
        for p in range(width):
            out_0[p] = out_1[p] = out_2[p] = out_3[p] = 0.0
        for j in range(0, paired, 2):
            at = i * row_step + j * column_step
            t_00, t_01 = table[at], table[at + column_step]
            t_10, t_11 = table[at + row_step], table[at + row_step + column_step]
            t_20, t_21 = table[at + 2 * row_step], table[at + 2 * row_step + column_step]
            t_30, t_31 = table[at + 3 * row_step], table[at + 3 * row_step + column_step]
            below_0 = source[j * source_stride : j * source_stride + width]
            below_1 = source[(j + 1) * source_stride : (j + 1) * source_stride + width]
            for p in range(width):
                x, y = below_0[p], below_1[p]
                out_0[p] += t_00 * x + t_01 * y
                out_1[p] += t_10 * x + t_11 * y
                out_2[p] += t_20 * x + t_21 * y
                out_3[p] += t_30 * x + t_31 * y
        for j in range(paired, n_columns):
            at = i * row_step + j * column_step
            t_00, t_10 = table[at], table[at + row_step]
            t_20, t_30 = table[at + 2 * row_step], table[at + 3 * row_step]
            below_0 = source[j * source_stride : j * source_stride + width]
            for p in range(width):
                x = below_0[p]
                out_0[p] += t_00 * x
                out_1[p] += t_10 * x
                out_2[p] += t_20 * x
                out_3[p] += t_30 * x
    # The rows that are left, one at a time: the first term sets, the others add.
    for i in range(tiled, n_rows):
        target = out[i * stride : i * stride + width]
        t = table[i * row_step]
        below_0 = source[:width]
        for p in range(width):
            target[p] = t * below_0[p]
        for j in range(1, n_columns):
            t = table[i * row_step + j * column_step]
            below_0 = source[j * source_stride : j * source_stride + width]
            for p in range(width):
                target[p] += t * below_0[p]


@kernel(fastmath=True, views=True)
def _add_products(a, n_rows, b, n_columns, stride, width, sums):
    """Add Σ_p a(i, p)·b(j, p) to the sums, in the tiles of ``_product``; a has no gaps."""
    tiled = n_rows - n_rows % 4
    paired = n_columns - n_columns % 2
    for i in range(0, tiled, 4):
        a_0, a_1 = a[i * width : (i + 1) * width], a[(i + 1) * width : (i + 2) * width]
        a_2, a_3 = a[(i + 2) * width : (i + 3) * width], a[(i + 3) * width : (i + 4) * width]
        for j in range(0, paired, 2):
            b_0 = b[j * stride : j * stride + width]
            b_1 = b[(j + 1) * stride : (j + 1) * stride + width]
            s_00, s_01, s_10, s_11 = 0.0, 0.0, 0.0, 0.0
            s_20, s_21, s_30, s_31 = 0.0, 0.0, 0.0, 0.0
            for p in range(width):
                x, y = b_0[p], b_1[p]
                s_00 += a_0[p] * x
                s_01 += a_0[p] * y
                s_10 += a_1[p] * x
                s_11 += a_1[p] * y
                s_20 += a_2[p] * x
                s_21 += a_2[p] * y
                s_30 += a_3[p] * x
                s_31 += a_3[p] * y
            at = i * n_columns + j
            sums[at] += s_00
            sums[at + 1] += s_01
            sums[at + n_columns] += s_10
            sums[at + n_columns + 1] += s_11
            sums[at + 2 * n_columns] += s_20
            sums[at + 2 * n_columns + 1] += s_21
            sums[at + 3 * n_columns] += s_30
            sums[at + 3 * n_columns + 1] += s_31
    # What the tiles have left out: the last column of their rows, and whole rows below them.
    for i in range(n_rows):
        for j in range(paired if i < tiled else 0, n_columns):
            row, column = a[i * width : (i + 1) * width], b[j * stride : j * stride + width]
            total = 0.0
            for p in range(width):
                total += row[p] * column[p]
            sums[i * n_columns + j] += total


@kernel(fastmath=True, views=True)
def _edge_up(table, n_parent, n_child, source, source_stride, out, stride, width):
    """μ(i) = Σ_j T[i, j]·λ(j)."""
    _product(table, n_parent, n_child, n_child, 1, source, source_stride, out, stride, width)


@kernel(fastmath=True, views=True)
def _edge_down(
    table,
    n_parent,
    n_child,
    received,
    message,
    stride,
    source,
    handed,
    child_stride,
    width,
    counts,
    ratio,
):
    """Expected counts (over T) are added to ``counts``, posterior weights handed to the child."""
    # With ratio(i) = R(i)/μ(i): counts over T are Σ_p ratio(i)·λ(j), and the child receives
    # λ(j)·Σ_i T[i, j]·ratio(i).
    for i in range(n_parent):
        r = received[i * stride : i * stride + width]
        m = message[i * stride : i * stride + width]
        target = ratio[i * width : i * width + width]
        for p in range(width):
            target[p] = r[p] / m[p] if m[p] > TINY else 0.0
    _add_products(ratio, n_parent, source, n_child, child_stride, width, counts)
    _product(table, n_child, n_parent, 1, n_child, ratio, width, handed, child_stride, width)
    for j in range(n_child):
        below = source[j * child_stride : j * child_stride + width]
        out = handed[j * child_stride : j * child_stride + width]
        for p in range(width):
            out[p] *= below[p]


@kernel(fastmath=True, views=True)
def _multiply(a, b, n_states, width, out, stride):
    """λ(k) = a(k)·b(k) of two parts that are not in quads; True if a product is small."""
    at_a, at_b = a.at, b.at
    found = 0
    for k in range(n_states):
        first = a.values[k * a.stride : (k + 1) * a.stride]
        second = b.values[k * b.stride : (k + 1) * b.stride]
        target = out[k * stride : k * stride + width]
        for p in range(width):
            x = first[at_a[p]] * second[at_b[p]]
            target[p] = x
            found += x < SMALL
    return found > 0


@kernel(fastmath=True, views=True)
def _scatter(block, block_stride, at, n_states, width, out, stride):
    """Add a block to the patterns ``at`` of a part.

    Four states at a time: where neighbors have the same pattern, one sum waits for the one before.
    """
    fours = n_states - n_states % 4
    for k in range(0, fours, 4):
        row_0 = block[k * block_stride : k * block_stride + width]
        row_1 = block[(k + 1) * block_stride : (k + 1) * block_stride + width]
        row_2 = block[(k + 2) * block_stride : (k + 2) * block_stride + width]
        row_3 = block[(k + 3) * block_stride : (k + 3) * block_stride + width]
        out_0 = out[k * stride : (k + 1) * stride]
        out_1 = out[(k + 1) * stride : (k + 2) * stride]
        out_2 = out[(k + 2) * stride : (k + 3) * stride]
        out_3 = out[(k + 3) * stride : (k + 4) * stride]
        for p in range(width):
            i = at[p]
            out_0[i] += row_0[p]
            out_1[i] += row_1[p]
            out_2[i] += row_2[p]
            out_3[i] += row_3[p]
    for k in range(fours, n_states):
        target = out[k * stride : (k + 1) * stride]
        row = block[k * block_stride : k * block_stride + width]
        for p in range(width):
            target[at[p]] += row[p]


@kernel(views=True)
def _entry(part, k, p):
    """Return the number of state k in pattern p of a join, from a table or from quads."""
    pattern = part.at[p]
    if part.in_quads:
        return part.values[(k - k % 4) * part.stride + 4 * pattern + k % 4]
    return part.values[k * part.stride + pattern]


@kernel(fastmath=True, views=True)
def _rescale(a, b, n_states, width, out, stride, exact, tolerant, shifts):
    """Scale up patterns that got small, noting it in ``shifts``; True if information is lost.

    A product below ``TINY`` of two factors that are not zero is a loss, unless one part is
    evidence (``exact``), whose factors are 0 and 1; ``tolerant``: only if all products are.
    """
    shifts[:width] = 0.0  # first the largest value of every pattern
    for k in range(n_states):
        row = out[k * stride : k * stride + width]
        for p in range(width):
            shifts[p] = max(shifts[p], row[p])
        if tolerant or exact:
            continue
        for p in range(width):
            if row[p] < TINY and _entry(a, k, p) > 0.0 and _entry(b, k, p) > 0.0:
                return True
    for p in range(width):
        top, shifts[p] = shifts[p], 0.0
        if top < TINY and (top > 0.0 or tolerant):
            return True
        if 0.0 < top < SMALL:
            shifts[p] = 1.0
            for k in range(n_states):
                out[k * stride + p] *= GROW
    return False


@kernel(fastmath=True, views=True)
def _close(prior, n_states, weights, width, source, received, stride, counts, z, least):
    """Close a root: w·log z summed, its states' posterior weights, its counts (over the prior).

    ``z`` is scratch. True, and nothing is counted, if z is below ``least`` anywhere.
    """
    # z = Σ_k prior(k)·λ(k); R(k) = w·prior(k)·λ(k)/z.
    fours = n_states - n_states % 4
    for p in range(width):
        z[p] = 0.0
    for k in range(0, fours, 4):  # in fewer and longer loops
        row_0 = source[k * stride : k * stride + width]
        row_1 = source[(k + 1) * stride : (k + 1) * stride + width]
        row_2 = source[(k + 2) * stride : (k + 2) * stride + width]
        row_3 = source[(k + 3) * stride : (k + 3) * stride + width]
        for p in range(width):
            z[p] += (prior[k] * row_0[p] + prior[k + 1] * row_1[p]) + (
                prior[k + 2] * row_2[p] + prior[k + 3] * row_3[p]
            )
    for k in range(fours, n_states):
        row = source[k * stride : k * stride + width]
        for p in range(width):
            z[p] += prior[k] * row[p]
    # From here on ``z`` holds w/z.
    total, lost = 0.0, 0
    for p in range(width):
        lost += (z[p] < least) & (weights[p] > 0.0)
        total += weights[p] * log(max(z[p], least))
        z[p] = weights[p] / max(z[p], least)
    if lost > 0:
        return total, True
    for k in range(n_states):
        row = source[k * stride : k * stride + width]
        out = received[k * stride : k * stride + width]
        count = 0.0
        for p in range(width):
            x = z[p] * row[p]
            count += x
            out[p] = prior[k] * x
        counts[k] += count
    return total, False


@kernel(fastmath=True)
def _join_patterns(given, slot, values, shifts, scaled):
    """Fill a join, noting whether it was scaled; True if information may be lost."""
    a, b = given.slots[slot["a"]], given.slots[slot["b"]]
    n_states, width = slot["n_states"], slot["n_patterns"]
    values_a, values_b = values[a["value"] :], values[b["value"] :]
    patterns = given.gather.view(np.uint32)
    exact = a["kind"] == EVIDENCE or b["kind"] == EVIDENCE
    # Blocks of patterns are multiplied and checked while they are in the cache.
    for start in range(0, width, BLOCK):
        size = min(BLOCK, width - start)
        at_a, at_b = patterns[slot["index_a"] + start :], patterns[slot["index_b"] + start :]
        part_a = JoinPart(values_a, a["n_patterns"], at_a, False)
        part_b = JoinPart(values_b, b["n_patterns"], at_b, False)
        out = values[slot["value"] + start :]
        if not _multiply(part_a, part_b, n_states, size, out, width):
            continue
        if not scaled[0]:
            scaled[0] = True
            shifts[slot["value"] : slot["value"] + width] = 0.0
        shift = shifts[slot["value"] + start :]
        if _rescale(part_a, part_b, n_states, size, out, width, exact, given.tolerant, shift):
            return True
    return False


@kernel()
def _room(slot):
    """Return how many numbers a slot has in quads."""
    return (slot["n_states"] + 3) // 4 * 4 * slot["n_patterns"]


@kernel()
def _join_in_quads(slots, slot, gather, values, quads):
    """Fill the quads of a join, and nothing else; False if a product may have to be scaled."""
    a, b = slots[slot["a"]], slots[slot["b"]]
    part_a, part_b = np.empty(_room(a)), np.empty(_room(b))
    patterns, n_states = gather.view(np.uint32), slot["n_states"]
    for part, out in ((a, part_a), (b, part_b)):
        n_patterns = part["n_patterns"]
        fill_quads(values[part["value"] :], n_patterns, n_states, n_patterns, out, n_patterns)
    out, width = quads[slot["quads"] :], slot["n_patterns"]
    a_quads = JoinPart(part_a, a["n_patterns"], patterns[slot["index_a"] :], True)
    b_quads = JoinPart(part_b, b["n_patterns"], patterns[slot["index_b"] :], True)
    multiply_quads(a_quads, b_quads, n_states, width, out, width)
    full = n_states - n_states % 4
    rest = out[full * width :]
    for p in range(width):  # of the last quad only what belongs to states
        for k in range(n_states - full):
            if rest[4 * p + k] < SMALL:
                return False
    return not has_small(out, full * width)


@kernel()
def _scatter_in_quads(slot, part, patterns, handed, received):
    """Set what a part receives from a join that rows look up."""
    n_states, width = slot["n_states"], part["n_patterns"]
    sums = np.zeros(_room(part))
    scatter_quads(
        handed[slot["quads"] :],
        slot["n_patterns"],
        patterns,
        n_states,
        slot["n_patterns"],
        sums,
        width,
    )
    read_quads(sums, width, n_states, width, received[part["value"] :], width)


@kernel(fastmath=True)
def up_patterns(given, listed, values, shifts, scaled, quads):
    """Fill the listed slots, which work on patterns; True if information may be lost.

    Those of emissions are filled already, and so are their quads. What else rows look up is copied
    to ``quads``.
    """
    slots, gather, theta = given.slots, given.gather, given.theta
    for s in listed:
        slot = slots[s]
        width = slot["n_patterns"]
        out = values[slot["value"] :]
        if slot["kind"] == EVIDENCE:
            for k in range(slot["n_states"]):
                for p in range(width):
                    seen = gather[slot["index_a"] + p]
                    out[k * width + p] = 1.0 if seen == k or seen < 0 else 0.0
        elif slot["kind"] == EDGE:
            a = slots[slot["a"]]
            for start in range(0, width, BLOCK):
                _edge_up(
                    theta[slot["table"] :],
                    slot["n_states"],
                    a["n_states"],
                    values[a["value"] + start :],
                    width,
                    out[start:],
                    width,
                    min(BLOCK, width - start),
                )
        elif slot["kind"] == JOIN:
            # What rows look up is needed in quads only, unless it has to be scaled.
            scaled[s] = False
            if slot["quads"] >= 0 and _join_in_quads(slots, slot, gather, values, quads):
                continue
            if _join_patterns(given, slot, values, shifts, scaled[s : s + 1]):
                return True
        if slot["quads"] >= 0 and slot["kind"] != EMISSION:
            fill_quads(out, width, slot["n_states"], width, quads[slot["quads"] :], width)
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
        log_likelihood, lost = _close(
            prior,
            slot["n_states"],
            weights[component["weights"] :],
            slot["n_patterns"],
            values[slot["value"] :],
            received[slot["value"] :],
            slot["n_patterns"],
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

    ``handed``, in quads, is what rows handed down; emissions keep it there. Returns what the
    scaling of values must take from the log-likelihood.
    """
    slots, theta = given.slots, given.theta
    correction = 0.0
    largest = 1
    for s in listed:
        largest = max(largest, slots[s]["n_states"])
    ratio = np.empty(largest * BLOCK)
    patterns = given.gather.view(np.uint32)
    for position in range(listed.size - 1, -1, -1):
        slot = slots[listed[position]]
        width = slot["n_patterns"]
        mine = received[slot["value"] :]
        a = slots[slot["a"]]
        in_quads = slot["quads"] >= 0
        if in_quads and (slot["kind"] == EDGE or scaled[listed[position]]):
            read_quads(handed[slot["quads"] :], width, slot["n_states"], width, mine, width)
        if slot["kind"] == EDGE:
            for start in range(0, width, BLOCK):
                _edge_down(
                    theta[slot["table"] :],
                    slot["n_states"],
                    a["n_states"],
                    mine[start:],
                    values[slot["value"] + start :],
                    width,
                    values[a["value"] + start :],
                    received[a["value"] + start :],
                    width,
                    min(BLOCK, width - start),
                    counts[slot["table"] :],
                    ratio,
                )
        elif slot["kind"] == JOIN:
            b = slots[slot["b"]]
            for part, index in ((a, slot["index_a"]), (b, slot["index_b"])):
                if in_quads:
                    _scatter_in_quads(slot, part, patterns[index:], handed, received)
                    continue
                received[part["value"] : part["value"] + part["n_states"] * part["n_patterns"]] = (
                    0.0
                )
                _scatter(
                    mine,
                    width,
                    patterns[index:],
                    slot["n_states"],
                    width,
                    received[part["value"] :],
                    part["n_patterns"],
                )
            # Rows whose values were scaled by 2²⁵⁶ have log z too large by as much: Σ_k R(k) is
            # their weight.
            if scaled[listed[position]]:
                for k in range(slot["n_states"]):
                    for p in range(width):
                        correction += mine[k * width + p] * shifts[slot["value"] + p]
    return correction * LOG_GROW


@kernel(fastmath=True, views=True)
def _times(a, b, out, size):
    """Out = a·b; all three may be the same array."""
    for x in range(size):
        out[x] = a[x] * b[x]


@kernel(views=True)
def _part_of_rows(slot, index, patterns, quads, rows, scaling):
    """Return a slot as a part of a join by row: its block of rows, or its patterns in quads."""
    if slot["by_row"]:
        in_quads = slot["quads"] >= 0 and not scaling
        return JoinPart(rows.own[slot["value"] * BLOCK :], BLOCK, rows.straight, in_quads)
    return JoinPart(
        quads[slot["quads"] :], slot["n_patterns"], patterns[index + rows.start :], True
    )


@kernel(views=True)
def _join_rows(a, b, n_states, width, stays, out, block):
    """Fill a join of one block of rows; ``block`` is scratch.

    If it ``stays`` in quads, so do its parts.
    """
    if a.in_quads and b.in_quads:
        target = out if stays else block
        multiply_quads(a, b, n_states, width, target, BLOCK)
        if not stays:
            read_quads(block, BLOCK, n_states, width, out, BLOCK)
    elif a.in_quads:
        fetch_quads(a.values, a.stride, a.at, n_states, width, block, BLOCK)
        read_quads(block, BLOCK, n_states, width, out, BLOCK)
        _times(out, b.values, out, n_states * BLOCK)
    elif b.in_quads:
        fetch_quads(b.values, b.stride, b.at, n_states, width, block, BLOCK)
        read_quads(block, BLOCK, n_states, width, out, BLOCK)
        _times(out, a.values, out, n_states * BLOCK)
    else:
        _times(a.values, b.values, out, n_states * BLOCK)


@kernel(fastmath=True, views=True)
def _rows_up(given, listed, patterns, quads, rows, weights, scaling):
    """Fill one block of rows; returns the correction for scaling, and whether there is a loss.

    Without ``scaling`` products stay as small as they are.
    """
    slots, theta, own, width = given.slots, given.theta, rows.own, rows.width
    shift = rows.ratio
    correction = 0.0
    for s in listed:
        slot = slots[s]
        out = own[slot["value"] * BLOCK :]
        a = slots[slot["a"]]
        if slot["kind"] == EDGE:
            _edge_up(
                theta[slot["table"] :],
                slot["n_states"],
                a["n_states"],
                own[a["value"] * BLOCK :],
                BLOCK,
                out,
                BLOCK,
                width,
            )
            continue
        b = slots[slot["b"]]
        part_a = _part_of_rows(a, slot["index_a"], patterns, quads, rows, scaling)
        part_b = _part_of_rows(b, slot["index_b"], patterns, quads, rows, scaling)
        n_states = slot["n_states"]
        stays = slot["quads"] >= 0 and not scaling
        _join_rows(part_a, part_b, n_states, width, stays, out, rows.quads)
        if scaling and has_small(out, n_states * BLOCK):
            exact = a["kind"] == EVIDENCE or b["kind"] == EVIDENCE
            if _rescale(part_a, part_b, n_states, width, out, BLOCK, exact, given.tolerant, shift):
                return correction, True
            for p in range(width):
                correction += weights[p] * shift[p]
    return correction * LOG_GROW, False


@kernel(fastmath=True, views=True)
def _rows_down(given, listed, patterns, rows, counts, handed):
    """Hand one block of rows down; what patterns below receive is added to ``handed``."""
    slots, theta, width = given.slots, given.theta, rows.width
    own, received, block = rows.own, rows.received, rows.quads
    turned = -1  # what received numbers are in ``block``, as quads
    for position in range(listed.size - 1, -1, -1):
        slot = slots[listed[position]]
        mine = received[slot["received"] * BLOCK :]
        a = slots[slot["a"]]
        if slot["kind"] == EDGE:
            _edge_down(
                theta[slot["table"] :],
                slot["n_states"],
                a["n_states"],
                mine,
                own[slot["value"] * BLOCK :],
                BLOCK,
                own[a["value"] * BLOCK :],
                received[a["received"] * BLOCK :],
                BLOCK,
                width,
                counts[slot["table"] :],
                rows.ratio,
            )
            continue
        for part, index in ((a, slot["index_a"]), (slots[slot["b"]], slot["index_b"])):
            if part["by_row"]:
                continue
            if turned != slot["received"]:
                fill_quads(mine, BLOCK, slot["n_states"], width, block, BLOCK)
                turned = slot["received"]
            scatter_quads(
                block,
                BLOCK,
                patterns[index + rows.start :],
                slot["n_states"],
                width,
                handed[part["quads"] :],
                part["n_patterns"],
            )


@kernel(fastmath=True)
def run_rows(given, span, values, quads, prior, weights, counts, root_counts, handed):
    """Run a range of rows (``span``) of a component through its by-row slots, up and down.

    Returns their log-likelihood and whether information may be lost.
    """
    listed, largest = span.listed, span.largest
    own = np.empty(span.n_values * BLOCK)
    # What is behind the last state is handed down and added up, too: it must be a number.
    received = np.zeros(span.n_received * BLOCK)
    ratio, straight = np.empty(largest * BLOCK), np.arange(BLOCK).astype(np.uint32)
    block = np.empty((largest + 3) * BLOCK)
    patterns = given.gather.view(np.uint32)
    root = given.slots[listed[-1]]
    total = 0.0
    for start in range(span.first, span.last, BLOCK):
        width = min(BLOCK, span.last - start)
        rows = RowBlock(start, width, straight, own, received, ratio, block)
        mine = weights[start:]
        # Products only get smaller. If z is large enough at the end, no scaling was needed for the
        # states that count; others may be lost where that is tolerated. Few rows have a second try.
        for scaling in (False, True):
            if not (scaling or given.tolerant):
                continue
            correction, lost = _rows_up(given, listed, patterns, quads, rows, mine, scaling)
            if lost:
                return total, True
            closed, lost = _close(
                prior,
                root["n_states"],
                mine,
                width,
                own[root["value"] * BLOCK :],
                received[root["received"] * BLOCK :],
                BLOCK,
                root_counts,
                ratio,
                TINY if scaling else SMALL,
            )
            if not lost:
                break
        if lost:
            return total, True
        total += closed - correction
        _rows_down(given, listed, patterns, rows, counts, handed)
    return total, False

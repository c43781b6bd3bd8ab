"""Posteriors of nodes given each row, from the plain products of `counts`.

Upward the work is that of the expectation step: values of patterns, and blocks of rows where nearly
every row has a pattern of its own. Downward a posterior belongs to a row, not to a pattern: every
block of rows goes down by itself, looking up the values of its patterns,

  P(j | row) = λ(j)·Σ_i T[i, j]·P(i | row)/μ(i),

a product of matrices, for those edges and rows alone below which something is asked for. What is
seen needs no product.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.counts import (
    RowBlock,
    close,
    fill_rows,
    patterns_at_once,
    rows_at_once,
    turned_tables,
)
from latentree._kernels.inference.exponential import log
from latentree._kernels.inference.slots import EDGE, EMISSION, EVIDENCE, JOIN, LOG_GROW, TINY

_FEW_SLOTS = 1_000  # are marked uncompiled, in a millisecond or two


class Query(NamedTuple):
    """The nodes of a component that are asked for, and where their answers go."""

    asked: NDArray[np.int64]
    """Slots that lead to nodes asked for, in ascending order."""
    needed: NDArray[np.bool_]
    """Patterns of all slots below which a node is asked for, see ``needed_patterns``."""
    parent: NDArray[np.int64]
    """Parent of every node."""
    known: NDArray[np.int64]
    """Where the posterior of every node is kept on the way down, in numbers a row."""
    n_known: int
    """Numbers a row that are kept."""
    largest: int
    """Most states of a slot."""
    columns: NDArray[np.int64]
    """Column of the first state of every node among the answers; −1: not asked for."""
    root_column: int
    """Column of the root."""


@kernel()
def needed_patterns(slots, starts, gather, wanted, out):
    """Mark the patterns, from ``starts[s]`` for slot s, below which some node is asked for.

    A leaf whose state is seen is known without asking.
    """
    for s in range(slots.size):
        slot = slots[s]
        mine = out[starts[s] : starts[s] + slot["n_patterns"]]
        a = slots[slot["a"]]
        part_a, part_b = out[starts[slot["a"]] :], out[starts[slot["b"]] :]
        if slot["kind"] == EDGE and a["kind"] == EVIDENCE:
            # An unseen leaf has a posterior of its own.
            for p in range(mine.size):
                mine[p] = wanted[slot["node"]] and gather[a["index_a"] + p] < 0
        elif slot["kind"] == EDGE:
            for p in range(mine.size):
                mine[p] = wanted[slot["node"]] or part_a[p]
        elif slot["kind"] == JOIN:
            # A pattern of a join needs what either of its parts' patterns needs.
            for p in range(mine.size):
                found = part_a[gather[slot["index_a"] + p]]
                mine[p] = found or part_b[gather[slot["index_b"] + p]]
        else:
            for p in range(mine.size):
                mine[p] = False


@kernel()
def log_scales(slots, starts, gather, shifts, scaled, best, out):
    """Fill the logarithms of the factors that pattern slots lack: what the true values are over.

    ``best`` are the logarithms of the largest likelihoods of emitted values, to which others are
    relative.
    """
    n_emitted = 0
    for s in range(slots.size):
        slot = slots[s]
        if slot["by_row"]:
            continue
        mine = out[starts[s] : starts[s] + slot["n_patterns"]]
        part_a, part_b = out[starts[slot["a"]] :], out[starts[slot["b"]] :]
        for p in range(mine.size):
            if slot["kind"] == EVIDENCE:
                mine[p] = 0.0
            elif slot["kind"] == EMISSION:
                mine[p] = best[n_emitted + p]
            elif slot["kind"] == EDGE:
                mine[p] = part_a[p]
            else:
                # Factors multiply, so logarithms add; a scaling by 2²⁵⁶ is taken off.
                mine[p] = part_a[gather[slot["index_a"] + p]] + part_b[gather[slot["index_b"] + p]]
                if scaled[s]:
                    mine[p] -= LOG_GROW * shifts[slot["value"] + p]
        n_emitted += mine.size if slot["kind"] == EMISSION else 0


@kernel()
def _row_scales(slots, listed, starts, gather, scales, start, width, n_grown, out):
    """Fill the logarithms of the factors that a block of rows lacks at its root."""
    for p in range(width):
        out[p] = -LOG_GROW * n_grown[p]
    for s in listed:
        slot = slots[s]
        if slot["kind"] != JOIN:
            continue
        # Each part on patterns is looked up by one join by row, so its factor counts once.
        for part, index in ((slot["a"], slot["index_a"]), (slot["b"], slot["index_b"])):
            if not slots[part]["by_row"]:
                for p in range(width):
                    out[p] += scales[starts[part] + gather[index + start + p]]


@kernel(fastmath=True)
def _ask_leaf(table, n_parent, n_child, symbols, at, given, message, width, rows, column, out):
    """Write the states of a leaf: the one that is seen, or P(j | row) where it is missing."""
    for p in range(width):
        target = out[rows[p], column:]
        seen = symbols[at[p]]
        for j in range(n_child):
            target[j] = 1.0 if j == seen else 0.0
        if seen >= 0:
            continue
        # Nothing is seen, so λ(j) = 1: P(j | row) = Σ_i T[i, j]·P(i | row)/μ(i).
        m = message[at[p] * n_parent : (at[p] + 1) * n_parent]
        for i in range(n_parent):
            ratio = given[p * n_parent + i] / m[i] if m[i] > TINY else 0.0
            for j in range(n_child):
                target[j] += ratio * table[i * n_child + j]


@kernel()
def _active_rows(needed, at, width, out):
    """List the rows whose patterns are needed; returns how many there are."""
    n = 0
    for p in range(width):
        if needed[at[p]]:
            out[n] = p
            n += 1
    return n


@kernel(fastmath=True)
def _hand_down(
    table, n_parent, n_child, given, message, below, at, active, n_active, ratio, handed, out
):
    """Hand the posteriors of the ``active`` rows, which have the patterns ``at``, down an edge."""
    # ratio(i) = P(i | row)/μ(i), packed: the active rows side by side.
    for q in range(n_active):
        p = active[q]
        g = given[p * n_parent : (p + 1) * n_parent]
        m = message[at[p] * n_parent : (at[p] + 1) * n_parent]
        target = ratio[q * n_parent : (q + 1) * n_parent]
        for i in range(n_parent):
            target[i] = g[i] / m[i] if m[i] > TINY else 0.0
    # Σ_i ratio(i)·T[i, j] by BLAS, in products small enough for one thread.
    matrix = table[: n_parent * n_child].reshape((n_parent, n_child))
    step = patterns_at_once(n_parent, n_child)
    for first in range(0, n_active, step):
        last = min(first + step, n_active)
        quotient = ratio[first * n_parent : last * n_parent].reshape((last - first, n_parent))
        product = handed[first * n_child : last * n_child].reshape((last - first, n_child))
        np.dot(quotient, matrix, product)
    # Times λ(j), back in the places of the rows.
    for q in range(n_active):
        p = active[q]
        row = handed[q * n_child : (q + 1) * n_child]
        factor = below[at[p] * n_child : (at[p] + 1) * n_child]
        target = out[p * n_child : (p + 1) * n_child]
        for j in range(n_child):
            target[j] = row[j] * factor[j]


@kernel(fastmath=True)
def _rows_down(given, indices, query, values, rows, numbers, starts, base, at, ratio, handed, out):
    """Hand the posteriors of one block of rows down the slots asked for, last first.

    ``at[s − base]`` has the pattern of slot s in every row, ``numbers`` where answers go.
    """
    slots, gather, theta, needed = given.slots, given.gather, given.theta, query.needed
    width, straight, known, columns = rows.width, rows.straight, rows.received, query.columns
    asked, block = query.asked, straight.size
    active = np.empty(block, np.int64)
    for position in range(asked.size - 1, -1, -1):
        s = asked[position]
        slot = slots[s]
        mine = at[s - base]
        a = slots[slot["a"]]
        if slot["kind"] == JOIN:
            # A join is at one node: its parts only learn which patterns the rows have.
            index_a, index_b = indices[s]["index_a"], indices[s]["index_b"]
            at_a, at_b = at[slot["a"] - base], at[slot["b"] - base]
            for p in range(width):
                at_a[p] = gather[index_a + mine[p]]
                at_b[p] = gather[index_b + mine[p]]
            continue
        v = slot["node"]
        n_parent, n_child = slot["n_states"], a["n_states"]
        table, above = theta[slot["table"] :], known[query.known[query.parent[v]] * block :]
        if a["kind"] == EVIDENCE:
            message, symbols = values[slot["value"] :], gather[a["index_a"] :]
            _ask_leaf(
                table,
                n_parent,
                n_child,
                symbols,
                mine,
                above,
                message,
                width,
                numbers,
                columns[v],
                out,
            )
            continue
        n_active = _active_rows(needed[starts[s] :], mine, width, active)
        # An edge has the patterns of what is below it.
        at_a = at[slot["a"] - base]
        for p in range(width):
            at_a[p] = mine[p]
        if n_active == 0:
            continue
        message, below, places_of = values[slot["value"] :], values[a["value"] :], mine
        if slot["by_row"]:  # its values are those of the block, row by row
            message, below = rows.own[slot["value"] * block :], rows.own[a["value"] * block :]
            places_of = straight
        here = known[query.known[v] * block :]
        _hand_down(
            table,
            n_parent,
            n_child,
            above,
            message,
            below,
            places_of,
            active,
            n_active,
            ratio,
            handed,
            here,
        )
        if columns[v] >= 0:
            _write(here, n_child, width, numbers, columns[v], out)


@kernel()
def _write(known, n_states, width, rows, column, out):
    """Write the posteriors of a block of rows."""
    for p in range(width):
        for k in range(n_states):
            out[rows[p], column + k] = known[p * n_states + k]


@kernel(fastmath=True)
def answer_rows(given, span, component, query, indices, prior, values, starts, scales, log_z, out):
    """Run a range of rows (``span``) of a component; True if information may be lost.

    Row p has the root's pattern ``order[p]``: there go its log-likelihood and the probabilities of
    the states of the nodes that are asked for. Where no slots run by row, the root works on
    patterns. ``indices`` are the slots of the compiled table, in which all look up patterns.
    """
    slots, listed, first = given.slots, span.listed, component["first"]
    root = component["root"]
    n_root = slots[root]["n_states"]
    block = rows_at_once(span.n_values + query.n_known)
    own, known = np.empty(span.n_values * block), np.empty(query.n_known * block)
    z, n_grown, scale = np.empty(block), np.zeros(block), np.empty(block)
    ones, unused = np.ones(block), np.empty(n_root)
    ratio, handed = np.empty(block * query.largest), np.empty(block * query.largest)
    straight = np.arange(block).astype(np.int32)
    at = np.empty((root + 1 - first if query.asked.size else 0, block), np.int32)
    turned = turned_tables(slots, listed, given.theta)
    top = known[query.known[component["node"]] * block :]
    for start in range(span.first, span.last, block):
        width = min(block, span.last - start)
        numbers = span.order[start : start + width]
        # The root's posterior is the first that is handed down.
        upward = RowBlock(start, width, straight, own, top, z, n_grown)
        if listed.size:
            _, lost = fill_rows(given, listed, turned, values, prior, ones, upward, unused)
            _row_scales(slots, listed, starts, given.gather, scales, start, width, n_grown, scale)
        else:
            source = values[slots[root]["value"] + start * n_root :]
            _, lost = close(prior, n_root, ones, width, source, top, unused, z, TINY)
            for p in range(width):
                scale[p] = scales[starts[root] + start + p]
        if lost:
            return True
        # ``z`` holds 1/z of the values as they were scaled.
        for p in range(width):
            log_z[numbers[p]] = scale[p] - log(z[p])
        if query.root_column >= 0:
            _write(top, n_root, width, numbers, query.root_column, out)
        if query.asked.size:
            for p in range(width):
                at[root - first, p] = numbers[p]
            rows = RowBlock(start, width, straight, own, known, z, n_grown)
            _rows_down(
                given, indices, query, values, rows, numbers, starts, first, at, ratio, handed, out
            )
    return False


@kernel(small=_FEW_SLOTS)
def mark_slots(slots, wanted):
    """Return which slots lead to an edge above one of the nodes that are wanted."""
    marked = np.zeros(slots.size, np.bool_)
    for s in range(slots.size):
        slot = slots[s]
        if slot["kind"] == EDGE:
            marked[s] = wanted[slot["node"]] or marked[slot["a"]]
        elif slot["kind"] == JOIN:
            marked[s] = marked[slot["a"]] or marked[slot["b"]]
    return marked

"""Messages in a discrete tree with logarithms: exact for any number of variables.

The slots are those of `counts`, all on patterns. The pass up gives the logarithms of all messages,
and for the root of every component the posterior of its states. Whatever is asked of a row is then
a walk down from the roots: below the state i of a parent, and given the pattern q of what is below
the child, P(child = j | i, q) = T[i, j]·λ(j)/μ(i) (when maximizing, a 1 at the best state).
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.exponential import LOWEST, exp
from latentree._kernels.inference.slots import EDGE, EMISSION, EVIDENCE, JOIN


@kernel()
def _log_sum(values, n):
    """Return log Σ e^values of the first n; the largest is taken out, so nothing overflows."""
    top = -np.inf
    for k in range(n):
        top = max(top, values[k])
    if top == -np.inf:  # all terms are 0: ∞ − ∞ would be NaN
        return top
    total = 0.0
    for k in range(n):
        total += math.exp(values[k] - top)
    return top + math.log(total)


@kernel()
def _normalize(terms, n, maximize, out):
    """Turn log-weights into probabilities, or into a 1 at the first largest; returns their sum.

    Both may be the same array.
    """
    if maximize:
        best = 0
        for k in range(n):
            if terms[k] > terms[best]:
                best = k
        highest = terms[best]
        for k in range(n):
            out[k] = 1.0 if k == best and highest > -np.inf else 0.0
        return highest
    total = _log_sum(terms, n)
    for k in range(n):
        out[k] = math.exp(terms[k] - total) if total > -np.inf else 0.0
    return total


SAFE = 1e-200
"""Sums of products above this lose nothing: what underflows beside them is far smaller."""
LOG_SAFE = math.log(SAFE)
"""Its logarithm."""


@kernel()
def _weights(logs, out):
    """Write e^logs over the largest, whose logarithm is returned."""
    top = -np.inf
    for k in range(logs.size):
        top = max(top, logs[k])
    if top == -np.inf:
        out[: logs.size] = 0.0
        return top
    for k in range(logs.size):
        x = logs[k] - top
        out[k] = exp(x if x > LOWEST else LOWEST) if x > LOWEST else 0.0
    return top


@kernel(fastmath={"contract"})
def _weighted_sum(matrix, weights, n_rows, n_columns, out):
    """Σ_r weights(r)·matrix[r, c] for every column c."""
    out[:n_columns] = 0.0
    # Two rows at a time: half as many loads and stores of the result.
    even = n_rows - n_rows % 2
    for r in range(0, even, 2):
        x, y = weights[r], weights[r + 1]
        first = matrix[r * n_columns : (r + 1) * n_columns]
        second = matrix[(r + 1) * n_columns : (r + 2) * n_columns]
        for c in range(n_columns):
            out[c] += x * first[c] + y * second[c]
    for r in range(even, n_rows):
        for c in range(n_columns):
            out[c] += weights[r] * matrix[r * n_columns + c]


@kernel()
def _edge_message(log_table, turned, below, maximize, weights, sums, out):
    """Fill log μ(i) = log Σ_j T[i, j]·λ(j), or the largest term; ``turned`` is T by columns.

    With the largest λ(j) taken out it needs K exponentials, in place of K² with logarithms.
    """
    n_child = below.size
    top = -np.inf
    if not maximize:
        top = _weights(below, weights)
        _weighted_sum(turned, weights, n_child, out.size, sums)
    for i in range(out.size):
        # log μ(i) = top + log Σ_j T[i, j]·e^(log λ(j) − top), where that sum has kept its digits.
        if top > -np.inf and sums[i] > SAFE:
            out[i] = top + math.log(sums[i])
            continue
        for j in range(n_child):
            weights[j] = log_table[i * n_child + j] + below[j]
        out[i] = weights[:n_child].max() if maximize else _log_sum(weights, n_child)


@kernel()
def _conditional(log_table, table, below, weights, top, message, out):
    """P(child = j | parent = i, pattern) = T[i, j]·λ(j)/μ(i), from row i of the table.

    ``weights`` are λ(j) over the largest, whose logarithm is ``top``.
    """
    n = below.size
    whole = math.exp(message - top)  # μ(i) over the largest λ(j)
    if whole > SAFE:
        for j in range(n):
            out[j] = table[j] * weights[j] / whole
    else:
        for j in range(n):
            out[j] = log_table[j] + below[j]
        _normalize(out, n, False, out)


@kernel()
def _largest(slots):
    """Return the largest number of states."""
    largest = 1
    for slot in slots:
        largest = max(largest, slot["n_states"])
    return largest


# The values of a slot lie pattern by pattern, all states of a pattern side by side.


@kernel()
def up_messages(slots, gather, theta, log_theta, maximize, values):
    """Fill the log-messages of all slots."""
    largest = _largest(slots)
    weights, sums = np.empty(largest), np.empty(largest)
    turned = np.empty(largest * largest)
    for slot in slots:
        width = slot["n_patterns"]
        n_states = slot["n_states"]
        a, b = slots[slot["a"]], slots[slot["b"]]
        if slot["kind"] == EDGE:
            for i in range(n_states):
                for j in range(a["n_states"]):
                    turned[j * n_states + i] = theta[slot["table"] + i * a["n_states"] + j]
        for p in range(width):
            at = slot["value"] + p * n_states
            out = values[at : at + n_states]
            if slot["kind"] == EVIDENCE:
                seen = gather[slot["index_a"] + p]
                for k in range(n_states):
                    out[k] = 0.0 if seen == k or seen < 0 else -np.inf
            elif slot["kind"] == EMISSION:
                for k in range(n_states):
                    out[k] = log_theta[slot["table"] + k * width + p]
            elif slot["kind"] == EDGE:
                at = a["value"] + p * a["n_states"]
                _edge_message(
                    log_theta[slot["table"] :],
                    turned,
                    values[at : at + a["n_states"]],
                    maximize,
                    weights,
                    sums,
                    out,
                )
            else:
                at_a = a["value"] + gather[slot["index_a"] + p] * n_states
                at_b = b["value"] + gather[slot["index_b"] + p] * n_states
                for k in range(n_states):
                    out[k] = values[at_a + k] + values[at_b + k]


@kernel()
def close_messages(slot, log_prior, maximize, values, log_z, posterior):
    """Close a root: log z and the posterior of its states (or its best state) per pattern."""
    n = slot["n_states"]
    terms = np.empty(n)
    for p in range(slot["n_patterns"]):
        for k in range(n):
            terms[k] = log_prior[k] + values[slot["value"] + p * n + k]
        log_z[p] = _normalize(terms, n, maximize, posterior[p * n : (p + 1) * n])


@kernel()
def _hand_down(slot, p, gather, pattern):
    """Look up the patterns of a slot's parts, given its own."""
    if slot["kind"] == JOIN:
        pattern[slot["a"]] = gather[slot["index_a"] + p]
        pattern[slot["b"]] = gather[slot["index_b"] + p]
    elif slot["kind"] == EDGE:
        pattern[slot["a"]] = p


@kernel()
def walk_posteriors(
    slots,
    components,
    patterns,
    gather,
    posterior,
    values,
    theta,
    log_theta,
    maximize,
    parent,
    first,
    last,
    listed,
    ends,
    starts,
    child,
    joint,
    columns,
    out,
):
    """Posterior probabilities of states, row by row: node v has states from ``starts[v]``.

    Those of the states ``columns`` go to ``out``. The slots that lead there are ``listed``, those
    of component c up to ``ends[c]``. The joint probabilities of one node ``child`` (−1: of none)
    and its parent go to ``joint``.
    """
    pattern = np.empty(slots.size, np.int64)
    known = np.empty(starts[-1])
    largest = _largest(slots)
    weights, ratio, terms = np.empty(largest), np.empty(largest), np.empty(largest)
    for row in range(first, last):
        for c in range(components.size):
            start = ends[c - 1] if c else 0
            component = components[c]
            root = slots[component["root"]]
            pattern[component["root"]] = patterns[c, row]
            at = component["posterior"] + patterns[c, row] * root["n_states"]
            if root["kind"] == EMISSION:  # a leaf alone, which has no states
                continue
            for k in range(root["n_states"]):
                known[starts[component["node"]] + k] = posterior[at + k]
            # Slots come after their parts, so that backwards all that is above is known.
            for place in range(ends[c] - 1, start - 1, -1):
                s = listed[place]
                slot = slots[s]
                p = pattern[s]
                _hand_down(slot, p, gather, pattern)
                if slot["kind"] != EDGE:
                    continue
                a = slots[slot["a"]]
                n_child = a["n_states"]
                here, above = starts[slot["node"]], starts[parent[slot["node"]]]
                given = known[above : above + slot["n_states"]]
                mine = known[here : here + n_child]
                if a["kind"] == EVIDENCE and slot["node"] != child:
                    seen = gather[a["index_a"] + p]
                    if seen >= 0:
                        mine[:] = 0.0
                        mine[seen] = 1.0
                        continue
                at = a["value"] + p * n_child
                below = values[at : at + n_child]
                message = values[slot["value"] + p * slot["n_states"] :]
                top = _weights(below, weights)
                # P(j | row) = Σ_i P(i | row)·T[i, j]·λ(j)/μ(i); where μ(i) is too small beside the
                # largest λ(j), by logarithms.
                for i in range(slot["n_states"]):
                    x = message[i] - top
                    ratio[i] = given[i] / exp(x) if x > LOG_SAFE else 0.0
                _weighted_sum(theta[slot["table"] :], ratio, slot["n_states"], n_child, mine)
                for j in range(n_child):
                    mine[j] *= weights[j]
                for i in range(slot["n_states"]):
                    is_small = given[i] > 0.0 and ratio[i] == 0.0
                    if is_small or slot["node"] == child:
                        line = slot["table"] + i * n_child
                        _conditional(
                            log_theta[line:], theta[line:], below, weights, top, message[i], terms
                        )
                    if is_small:
                        for j in range(n_child):
                            mine[j] += given[i] * terms[j]
                    if slot["node"] == child:
                        for j in range(n_child):
                            joint[row, i, j] = given[i] * terms[j]
        for place in range(columns.size):
            out[row, place] = known[columns[place]]


@kernel()
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


@kernel()
def _choose(probabilities, n, u):
    """The state at which the cumulated probability passes ``u``; impossible states are skipped."""
    total = 0.0
    chosen = 0
    for k in range(n):
        if probabilities[k] > 0.0:
            chosen = k
            total += probabilities[k]
            if total > u:
                break
    return chosen


@kernel()
def walk_states(
    slots,
    components,
    patterns,
    gather,
    posterior,
    values,
    theta,
    log_theta,
    maximize,
    parent,
    first,
    last,
    uniform,
    out,
):
    """States of all nodes, row by row, drawn with the numbers ``uniform`` in [0, 1)."""
    pattern = np.empty(slots.size, np.int64)
    terms = np.empty(_largest(slots))
    for row in range(first, last):
        # The root first, by its posterior; then every child given its parent's state.
        for c in range(components.size):
            component = components[c]
            n_root = slots[component["root"]]["n_states"]
            pattern[component["root"]] = patterns[c, row]
            at = component["posterior"] + patterns[c, row] * n_root
            out[row, component["node"]] = _choose(
                posterior[at : at + n_root], n_root, uniform[row, component["node"]]
            )
            for s in range(component["root"], component["first"] - 1, -1):
                slot = slots[s]
                p = pattern[s]
                _hand_down(slot, p, gather, pattern)
                if slot["kind"] == EDGE:
                    v = slot["node"]
                    n_child = slots[slot["a"]]["n_states"]
                    at = slots[slot["a"]]["value"] + p * n_child
                    line = slot["table"] + out[row, parent[v]] * n_child
                    for j in range(n_child):
                        terms[j] = log_theta[line + j] + values[at + j]
                    _normalize(terms, n_child, maximize, terms)
                    out[row, v] = _choose(terms, n_child, uniform[row, v])


@kernel()
def expected_counts(
    slots, components, gather, weights, posterior, values, theta, log_theta, received, counts
):
    """Expected counts from messages, by patterns; ``received`` comes in as zeros."""
    largest = _largest(slots)
    relative, terms = np.empty(largest), np.empty(largest)
    for c in range(components.size):
        component = components[c]
        root = slots[component["root"]]
        # R(k) = w·P(k | pattern) at the root.
        for p in range(root["n_patterns"]):
            w = weights[component["weights"] + p]
            for k in range(root["n_states"]):
                r = w * posterior[component["posterior"] + p * root["n_states"] + k]
                received[root["value"] + p * root["n_states"] + k] += r
                if component["prior"] >= 0:
                    counts[component["prior"] + k] += r
        for s in range(component["root"], component["first"] - 1, -1):
            slot = slots[s]
            width, n_states = slot["n_patterns"], slot["n_states"]
            a, b = slots[slot["a"]], slots[slot["b"]]
            n_child = a["n_states"]
            for p in range(width):
                mine = received[slot["value"] + p * n_states :]
                if slot["kind"] == JOIN:
                    at_a = a["value"] + gather[slot["index_a"] + p] * n_states
                    at_b = b["value"] + gather[slot["index_b"] + p] * n_states
                    for k in range(n_states):
                        received[at_a + k] += mine[k]
                        received[at_b + k] += mine[k]
                elif slot["kind"] == EMISSION:
                    for k in range(n_states):
                        counts[slot["table"] + k * width + p] += mine[k]
                elif slot["kind"] == EDGE:
                    at = a["value"] + p * n_child
                    below = values[at : at + n_child]
                    top = _weights(below, relative)
                    # The count of (i, j) is R(i)·P(j | i, pattern), and the child receives it.
                    for i in range(n_states):
                        if mine[i] <= 0.0:
                            continue
                        line = slot["table"] + i * n_child
                        message = values[slot["value"] + p * n_states + i]
                        _conditional(
                            log_theta[line:], theta[line:], below, relative, top, message, terms
                        )
                        for j in range(n_child):
                            x = mine[i] * terms[j]
                            counts[line + j] += x
                            received[at + j] += x

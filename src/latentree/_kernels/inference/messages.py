"""Messages in a discrete tree with logarithms: exact for any number of variables.

The slots are those of `counts`, all on patterns. The pass up gives, for every edge and every
pattern q below it, the conditional table P(child = j | parent = i, q) (or, when maximizing, a 1 at
the child's best state), and for the root of every component the posterior of its states. Whatever
is asked of a row is then a walk down from the roots along these tables.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.counts import EDGE, EMISSION, EVIDENCE, JOIN


@kernel()
def _log_sum(values, n):
    """Return log Σ e^values of the first n; the largest is taken out, so nothing overflows."""
    top = -np.inf
    for k in range(n):
        top = max(top, values[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(n):
        total += math.exp(values[k] - top)
    return top + math.log(total)


@kernel()
def _normalize(terms, n, maximize, out):
    """Turn log-weights into probabilities, or into a 1 at the first largest; returns their sum."""
    if maximize:
        best = 0
        for k in range(n):
            out[k] = 0.0
            if terms[k] > terms[best]:
                best = k
        if terms[best] > -np.inf:
            out[best] = 1.0
        return terms[best]
    total = _log_sum(terms, n)
    for k in range(n):
        out[k] = math.exp(terms[k] - total) if total > -np.inf else 0.0
    return total


SAFE = 1e-200
"""Sums of products above this lose nothing: what underflows beside them is far smaller."""


@kernel()
def _weighted_rows(slot, a, p, table, values, weights, conditionals):
    """Fill the message of an edge from plain products; returns whether no sum underflowed.

    With the largest λ(j) taken out it needs K exponentials a pattern, in place of K² with
    logarithms.
    """
    width, n_states, n_child = slot["n_patterns"], slot["n_states"], a["n_states"]
    top = -np.inf
    for j in range(n_child):
        top = max(top, values[a["value"] + j * width + p])
    if top == -np.inf:
        return False
    for j in range(n_child):
        weights[j] = math.exp(values[a["value"] + j * width + p] - top)
    for i in range(n_states):
        at = slot["received"] + (p * n_states + i) * n_child
        row = table[i * n_child : (i + 1) * n_child]
        out = conditionals[at : at + n_child]
        total = 0.0
        for j in range(n_child):
            out[j] = row[j] * weights[j]
            total += out[j]
        if total < SAFE:
            return False
        for j in range(n_child):
            out[j] /= total
        values[slot["value"] + i * width + p] = top + math.log(total)
    return True


@kernel()
def up_messages(slots, gather, log_theta, maximize, values, conditionals):
    """Fill the log-messages of all slots and the conditional tables of all edges."""
    largest = 1
    for slot in slots:
        largest = max(largest, slot["n_states"])
    terms = np.empty(largest)
    table = np.empty(largest * largest)
    for slot in slots:
        width = slot["n_patterns"]
        n_states = slot["n_states"]
        a, b = slots[slot["a"]], slots[slot["b"]]
        if slot["kind"] == EDGE:
            for k in range(n_states * a["n_states"]):
                table[k] = math.exp(log_theta[slot["table"] + k])
        for p in range(width):
            if slot["kind"] == EVIDENCE:
                seen = gather[slot["index_a"] + p]
                for k in range(n_states):
                    values[slot["value"] + k * width + p] = (
                        0.0 if seen == k or seen < 0 else -np.inf
                    )
            elif slot["kind"] == EMISSION:
                for k in range(n_states):
                    values[slot["value"] + k * width + p] = log_theta[slot["table"] + k * width + p]
            elif slot["kind"] == EDGE:
                if not maximize and _weighted_rows(slot, a, p, table, values, terms, conditionals):
                    continue
                # log μ(i) = log Σ_j T[i, j]·λ(j); the terms, normalized, are P(j | i, pattern).
                for i in range(n_states):
                    for j in range(a["n_states"]):
                        terms[j] = (
                            log_theta[slot["table"] + i * a["n_states"] + j]
                            + values[a["value"] + j * width + p]
                        )
                    at = slot["received"] + (p * n_states + i) * a["n_states"]
                    values[slot["value"] + i * width + p] = _normalize(
                        terms, a["n_states"], maximize, conditionals[at : at + a["n_states"]]
                    )
            else:
                at_a = gather[slot["index_a"] + p]
                at_b = gather[slot["index_b"] + p]
                for k in range(n_states):
                    values[slot["value"] + k * width + p] = (
                        values[a["value"] + k * a["n_patterns"] + at_a]
                        + values[b["value"] + k * b["n_patterns"] + at_b]
                    )


@kernel()
def close_messages(slot, log_prior, maximize, values, log_z, posterior):
    """Close a root: log z and the posterior of its states (or its best state) per pattern."""
    n = slot["n_states"]
    terms = np.empty(n)
    for p in range(slot["n_patterns"]):
        for k in range(n):
            terms[k] = log_prior[k] + values[slot["value"] + k * slot["n_patterns"] + p]
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
    conditionals,
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
                if slot["kind"] == EDGE:
                    n_child = slots[slot["a"]]["n_states"]
                    here, above = starts[slot["node"]], starts[parent[slot["node"]]]
                    at = slot["received"] + p * slot["n_states"] * n_child
                    # P(j | row) = Σ_i P(i | row)·P(j | i, pattern)
                    for j in range(n_child):
                        total = 0.0
                        for i in range(slot["n_states"]):
                            total += known[above + i] * conditionals[at + i * n_child + j]
                        known[here + j] = total
                    if slot["node"] == child:
                        for i in range(slot["n_states"]):
                            for j in range(n_child):
                                joint[row, i, j] = (
                                    known[above + i] * conditionals[at + i * n_child + j]
                                )
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
    slots, components, patterns, gather, posterior, conditionals, parent, first, last, uniform, out
):
    """States of all nodes, row by row, drawn with the numbers ``uniform`` in [0, 1)."""
    pattern = np.empty(slots.size, np.int64)
    for row in range(first, last):
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
                    at = slot["received"] + (p * slot["n_states"] + out[row, parent[v]]) * n_child
                    out[row, v] = _choose(conditionals[at : at + n_child], n_child, uniform[row, v])


@kernel()
def expected_counts(slots, components, gather, weights, posterior, conditionals, received, counts):
    """Expected counts from conditional tables, by patterns; ``received`` comes in as zeros."""
    for c in range(components.size):
        component = components[c]
        root = slots[component["root"]]
        for p in range(root["n_patterns"]):
            w = weights[component["weights"] + p]
            for k in range(root["n_states"]):
                r = w * posterior[component["posterior"] + p * root["n_states"] + k]
                received[root["value"] + k * root["n_patterns"] + p] += r
                if component["prior"] >= 0:
                    counts[component["prior"] + k] += r
        for s in range(component["root"], component["first"] - 1, -1):
            slot = slots[s]
            width = slot["n_patterns"]
            a, b = slots[slot["a"]], slots[slot["b"]]
            for p in range(width):
                for i in range(slot["n_states"]):
                    r = received[slot["value"] + i * width + p]
                    if slot["kind"] == JOIN:
                        at_a = i * a["n_patterns"] + gather[slot["index_a"] + p]
                        at_b = i * b["n_patterns"] + gather[slot["index_b"] + p]
                        received[a["value"] + at_a] += r
                        received[b["value"] + at_b] += r
                    elif slot["kind"] == EDGE:
                        at = slot["received"] + (p * slot["n_states"] + i) * a["n_states"]
                        for j in range(a["n_states"]):
                            x = r * conditionals[at + j]
                            counts[slot["table"] + i * a["n_states"] + j] += x
                            received[a["value"] + j * width + p] += x
                    elif slot["kind"] == EMISSION:
                        counts[slot["table"] + i * width + p] += r

"""Numbering the distinct patterns of values below each node of a tree.

Rows are held sparsely: pattern 0 is the default one, and only the rows that differ from it are
listed, as ``rows`` (distinct, in any order) and ``ids`` (their patterns, ≥ 1). On 0/1 data with few
ones the work is proportional to the ones, not to the cells.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.inference.slots import EDGE, EMISSION, EVIDENCE, JOIN
from latentree._kernels.tree import sorted_by

_SMALL = 1000
"""Numbers about the nodes of a tree for which nothing is compiled: Python takes milliseconds."""

# What each column holds -------------------------------------------------------------------------


@kernel()
def symbol_counts(codes, most_states):
    """How often each symbol occurs in each column: missing first, then the states."""
    counts = np.zeros((codes.shape[1], most_states + 1), np.int64)
    for row in range(codes.shape[0]):
        for column in range(codes.shape[1]):
            counts[column, codes[row, column] + 1] += 1
    return counts


@kernel()
def differing_rows(codes, default, number, starts):
    """Rows of each column whose code is not its default, with the numbers of their symbols."""
    rows = np.empty(starts[-1], np.int32)
    ids = np.empty(starts[-1], np.int32)
    free = starts[:-1].copy()
    for row in range(codes.shape[0]):
        for column in range(codes.shape[1]):
            code = codes[row, column]
            if code != default[column]:
                at = free[column]
                rows[at] = row
                ids[at] = number[column, code + 1]
                free[column] = at + 1
    return rows, ids


# Which slots there are --------------------------------------------------------------------------


@kernel()
def _add(slots, count, kind, node, a, b):
    """Append a slot; returns how many there are."""
    slots[0, count] = kind
    slots[1, count] = node
    slots[2, count] = a
    slots[3, count] = b
    return count + 1


@kernel()
def _join_all(slots, count, entropy, v, parts):
    """Join the parts at node v two by two, least entropy first; returns the last slot too.

    Joined parts come out in ascending order, so two queues do what a heap would.
    """
    # Huffman's tree: joins of few patterns come first, and the large ones are few.
    queue = sorted_by(entropy, parts)
    joined = np.empty(parts.size, np.int64)
    pair = np.empty(2, np.int64)
    first, first_joined = 0, 0
    top = queue[0]
    for n_joined in range(parts.size - 1):
        for side in range(2):
            if first_joined == n_joined or (
                first < queue.size and entropy[queue[first]] <= entropy[joined[first_joined]]
            ):
                pair[side] = queue[first]
                first += 1
            else:
                pair[side] = joined[first_joined]
                first_joined += 1
        # The entropy of a pair is at most the sum, and that for independent parts.
        top = count
        entropy[top] = entropy[pair[0]] + entropy[pair[1]]
        count = _add(slots, count, JOIN, v, pair[0], pair[1])
        joined[n_joined] = top
    return count, top


@kernel(small=_SMALL)
def make_slots(order, parent, child_starts, children, n_observed, complete, emits, node_entropy):
    """Slots of a rooted tree, parts before what they are parts of.

    Leaves that ``emits`` marks have no states: their slot hangs at their neighbor at once.

    Returns ``slots`` (rows: kind, node, a, b), their entropies, and what is closed: rows of root
    slot, node, and whether the node's marginal is the prior (1) or the node is given (0).
    """
    n = parent.size
    slots = np.full((4, 4 * n + 2), -1, np.int64)
    entropy = np.zeros(4 * n + 2)
    closed = np.empty((3, 2 * n), np.int64)
    edge_above = np.empty(n, np.int64)
    count, n_closed = 0, 0
    for position in range(n - 1, -1, -1):
        v = order[position]
        if emits[v]:
            entropy[count] = node_entropy[v]
            edge_above[v] = count
            if parent[v] < 0:  # independent of all others
                closed[0, n_closed] = count
                closed[1, n_closed] = v
                closed[2, n_closed] = 0
                n_closed += 1
            count = _add(slots, count, EMISSION, v, -1, -1)
            continue
        # Parts that hang at v: the edges to its children, and its own evidence.
        below = np.empty(child_starts[v + 1] - child_starts[v] + 1, np.int64)
        n_below = below.size - 1
        for i in range(n_below):
            below[i] = edge_above[children[child_starts[v] + i]]
        seen = v < n_observed
        # An observed node without gaps separates: what hangs below each child edge is a component
        # of its own, in which the node is given; upward only its evidence goes.
        if seen and complete[v]:
            for i in range(n_below):
                part = below[i]
                entropy[count] = node_entropy[v]
                count = _add(slots, count, EVIDENCE, v, -1, -1)
                entropy[count] = node_entropy[v] + entropy[part]
                closed[0, n_closed] = count
                closed[1, n_closed] = v
                closed[2, n_closed] = 0
                n_closed += 1
                count = _add(slots, count, JOIN, v, count - 1, part)
            n_below = 0
        if seen:
            entropy[count] = node_entropy[v]
            below[n_below] = count
            n_below += 1
            count = _add(slots, count, EVIDENCE, v, -1, -1)
        count, top = _join_all(slots, count, entropy, v, below[:n_below])
        if parent[v] < 0:
            closed[0, n_closed] = top
            closed[1, n_closed] = v
            closed[2, n_closed] = 1
            n_closed += 1
        else:
            entropy[count] = entropy[top]
            edge_above[v] = count
            count = _add(slots, count, EDGE, v, top, -1)
    return slots[:, :count], entropy[:count], closed[:, :n_closed]


@kernel(small=_SMALL)
def list_slots(slots, entropy, roots):
    """Slots component by component, in an order in which their row lists form a stack.

    Of two parts the one with more entropy comes first, which keeps the stack low. Returns the
    order and where each component ends.
    """
    listing = np.empty(slots.shape[1], np.int64)
    ends = np.empty(roots.size, np.int64)
    stack = np.empty(slots.shape[1] + 1, np.int64)
    count = 0
    for component in range(roots.size):
        start = count
        stack[0] = roots[component]
        height = 1
        while height:
            height -= 1
            s = stack[height]
            listing[count] = s
            count += 1
            a, b = slots[2, s], slots[3, s]
            if b >= 0 and entropy[a] < entropy[b]:
                a, b = b, a
            if a >= 0:
                stack[height] = a
                height += 1
            if b >= 0:
                stack[height] = b
                height += 1
        # Listed from the root down; turned round, parts come before what they are parts of.
        for i in range((count - start) // 2):
            listing[start + i], listing[count - 1 - i] = listing[count - 1 - i], listing[start + i]
        ends[component] = count
    return listing, ends


# Which patterns each slot has -------------------------------------------------------------------


def _plain_copy(source, start, size, target, at):
    target[at : at + size] = source[start : start + size]


@kernel(plain=_plain_copy)
def _copy(source, start, size, target, at):
    """Copy a piece of an array; a loop, as assigning a slice takes seconds to compile."""
    for i in range(size):
        target[at + i] = source[start + i]


@kernel()
def _grown(array, used, wanted):
    """The array itself if ``wanted`` entries fit, else a longer copy."""
    if wanted <= array.size:
        return array
    longer = np.empty(max(wanted, 2 * array.size), array.dtype)
    _copy(array, 0, used, longer, 0)
    return longer


@kernel()
def _pair_up(rows_a, ids_a, rows_b, ids_b, place):
    """Line up two sparse lists: the rows in either, and the patterns of both in each.

    ``place`` is scratch with a −1 for every row of the table, and is left that way.
    """
    most = rows_a.size + rows_b.size
    rows = np.empty(most, np.int32)
    first = np.empty(most, np.int32)
    second = np.zeros(most, np.int32)
    # ``place[row]`` is where a row of the first list stands; rows of the second alone are appended.
    count = rows_a.size
    for i in range(count):
        rows[i] = rows_a[i]
        first[i] = ids_a[i]
        place[rows_a[i]] = i
    for i in range(rows_b.size):
        row = rows_b[i]
        at = place[row]
        if at < 0:
            at = count
            rows[at] = row
            first[at] = 0
            count += 1
        second[at] = ids_b[i]
    for i in range(rows_a.size):
        place[rows_a[i]] = -1
    return rows[:count], first[:count], second[:count]


def _plain_number_pairs(first, second, n_first, n_second):
    keys = np.append(0, first.astype(np.int64) * n_second + second)
    _, found, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(found)  # by appearance
    number = np.empty(order.size, np.int32)
    number[order] = np.arange(order.size)
    pairs = np.divmod(keys[found[order]], n_second)
    return number[inverse[1:]], pairs[0].astype(np.int32), pairs[1].astype(np.int32)


@kernel(plain=_plain_number_pairs)
def _number_pairs(first, second, n_first, n_second):
    """Number the distinct pairs in order of appearance; pair (0, 0) is always number 0.

    Returns the number of every entry, and the two members of every pair.
    """
    n = first.size
    ids = np.empty(n, np.int32)
    pair_a = np.empty(n + 1, np.int32)
    pair_b = np.empty(n + 1, np.int32)
    pair_a[0] = 0
    pair_b[0] = 0
    count = 1
    # Few possible pairs: a table of all of them.
    if np.int64(n_first) * n_second <= 4 * n + 1024:
        number = np.full(n_first * n_second, -1, np.int32)
        number[0] = 0
        for i in range(n):
            key = np.int64(first[i]) * n_second + second[i]
            if number[key] < 0:
                number[key] = count
                pair_a[count] = first[i]
                pair_b[count] = second[i]
                count += 1
            ids[i] = number[key]
        return ids, pair_a[:count], pair_b[:count]
    # Many: a hash table with open addressing, at most half full; Fibonacci hashing.
    size = 16
    while size < 2 * n:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    for i in range(n):
        a, b = first[i], second[i]
        key = (np.uint64(a) << np.uint64(32)) | np.uint64(b)
        at = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
        while True:
            known = slots[at]
            if known < 0:
                slots[at] = count
                pair_a[count] = a
                pair_b[count] = b
                known = count
                count += 1
                break
            if pair_a[known] == a and pair_b[known] == b:
                break
            at = (at + np.uint64(1)) & mask
        ids[i] = known
    return ids, pair_a[:count], pair_b[:count]


@kernel()
def number_slots(listing, slots, ends, source, n_rows, starts, rows, ids, n_symbols):
    """Number the patterns of all slots.

    A listed slot of evidence or emission has the column ``source`` of it; column c has the rows
    ``rows[starts[c]:starts[c + 1]]`` with symbols ``ids`` out of ``n_symbols[c]``. Returns the
    number of patterns of each listed slot, where the two parts of its patterns start in
    ``gather``, ``gather``, and the rows and ids of all components' roots with where they start.
    """
    n = listing.size
    n_patterns = np.empty(n, np.int64)
    index = np.zeros((2, n), np.int64)
    gather = np.empty(1024, np.int32)
    n_gather = 0
    stack_rows, stack_ids = np.empty(1024, np.int32), np.empty(1024, np.int32)
    bottom = np.empty(n + 1, np.int64)  # where each list on the stack starts
    listed = np.empty(n + 1, np.int64)  # which slot it is of
    height = 0
    bottom[0] = 0
    root_rows, root_ids = np.empty(1024, np.int32), np.empty(1024, np.int32)
    root_starts = np.zeros(ends.size + 1, np.int64)
    place = np.full(n_rows, -1, np.int32)
    component = 0
    # A stack of row lists: evidence pushes one, an edge renames the top, a join replaces the two
    # on top by one. At the end of a component a single list is left, that of its root.
    for position in range(n):
        s = listing[position]
        kind = slots[0, s]
        if kind in (EVIDENCE, EMISSION):
            column = source[position]
            size = starts[column + 1] - starts[column]
            at = bottom[height]
            stack_rows = _grown(stack_rows, at, at + size)
            stack_ids = _grown(stack_ids, at, at + size)
            _copy(rows, starts[column], size, stack_rows, at)
            _copy(ids, starts[column], size, stack_ids, at)
            n_patterns[position] = n_symbols[column]
            listed[height] = position
            height += 1
            bottom[height] = at + size
        elif kind == EDGE:
            n_patterns[position] = n_patterns[listed[height - 1]]
            listed[height - 1] = position
        else:
            low, middle, high = bottom[height - 2], bottom[height - 1], bottom[height]
            p_low, p_high = n_patterns[listed[height - 2]], n_patterns[listed[height - 1]]
            both, first, second = _pair_up(
                stack_rows[low:middle], stack_ids[low:middle],
                stack_rows[middle:high], stack_ids[middle:high], place,
            )  # fmt: skip
            numbers, pair_low, pair_high = _number_pairs(first, second, p_low, p_high)
            _copy(both, 0, both.size, stack_rows, low)
            _copy(numbers, 0, both.size, stack_ids, low)
            count = pair_low.size
            gather = _grown(gather, n_gather, n_gather + 2 * count)
            _copy(pair_low, 0, count, gather, n_gather)
            _copy(pair_high, 0, count, gather, n_gather + count)
            # The lower list is the part with more entropy, which may be either of a and b.
            a_is_low = listing[listed[height - 2]] == slots[2, s]
            index[0, position] = n_gather if a_is_low else n_gather + count
            index[1, position] = n_gather + count if a_is_low else n_gather
            n_gather += 2 * count
            n_patterns[position] = count
            height -= 1
            listed[height - 1] = position
            bottom[height] = low + both.size
        if position + 1 == ends[component]:
            start, size = root_starts[component], bottom[1]
            root_rows = _grown(root_rows, start, start + size)
            root_ids = _grown(root_ids, start, start + size)
            _copy(stack_rows, 0, size, root_rows, start)
            _copy(stack_ids, 0, size, root_ids, start)
            component += 1
            root_starts[component] = start + size
            height = 0
    return (
        n_patterns, index, gather[:n_gather],
        root_rows[: root_starts[-1]], root_ids[: root_starts[-1]], root_starts,
    )  # fmt: skip


@kernel(small=_SMALL)
def spread_down(slots, label):
    """Give every slot without a label (−1) the label of what it is a part of, in place."""
    for s in range(slots.size - 1, -1, -1):
        for part in (slots[s]["a"], slots[s]["b"]):
            if part != s and label[part] < 0:
                label[part] = label[s]


# Where to root ----------------------------------------------------------------------------------


@kernel(small=_SMALL)
def directed_entropies(order, parent, entropy, complete):
    """Entropy that flows up from each node, and down to each node from its parent.

    A complete observed node lets only its own entropy pass: it separates its sides.
    """
    n = parent.size
    gathered = entropy.copy()
    up = np.empty(n)
    for position in range(n - 1, -1, -1):
        v = order[position]
        up[v] = entropy[v] if complete[v] else gathered[v]
        if parent[v] >= 0:
            gathered[parent[v]] += up[v]
    down = np.zeros(n)
    for v in order:
        p = parent[v]
        if p >= 0:
            down[v] = entropy[p] if complete[p] else gathered[p] - up[v]
            gathered[v] += down[v]
    return up, down, gathered


@kernel(small=_SMALL)
def cheapest_roots(order, parent, up, down, gathered, emits, n_rows):
    """The node of each component that, as its root, needs the fewest patterns (estimated).

    A leaf that emits is no root unless it is alone.

    The number of patterns behind entropy H is taken as min(rows, exp H). Moving the root from a
    node to its child turns one edge round.
    """
    n = parent.size
    limit = np.log(n_rows)
    cost = np.zeros(n)
    best = np.full(n, -1, np.int64)
    least = np.full(n, np.inf)
    top = np.empty(n, np.int64)
    for v in order:
        p = parent[v]
        if p < 0:
            top[v] = v
        else:
            top[v] = top[p]
            cost[v] = cost[p] + np.exp(min(limit, down[v])) - np.exp(min(limit, up[v]))
        here = cost[v] + np.exp(min(limit, gathered[v]))
        better = best[top[v]] < 0 or here < least[top[v]]
        if better and (not emits[v] or p < 0):
            least[top[v]] = np.inf if emits[v] else here
            best[top[v]] = v
    count = 0
    for v in range(n):
        if best[v] >= 0:
            best[count] = best[v]
            count += 1
    return best[:count]

"""Loops over rooted forests given as parent arrays (−1 for a root).

Names used throughout: ``order`` lists every node after its parent, ``starts``/``items`` is a list
of lists laid end to end (the items of node v are ``items[starts[v]:starts[v + 1]]``). Everything
is linear in the number of nodes and free of recursion, because chains are deep.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel


@kernel()
def child_lists(parent):
    """Children of every node in ascending order, as ``(starts, items)``."""
    n = parent.size
    starts = np.zeros(n + 1, np.int64)
    for v in range(n):
        if parent[v] >= 0:
            starts[parent[v] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
    free = starts[:-1].copy()
    items = np.empty(starts[n], np.int64)
    for v in range(n):
        p = parent[v]
        if p >= 0:
            items[free[p]] = v
            free[p] += 1
    return starts, items


@kernel()
def neighbour_lists(n, ends_a, ends_b):
    """Neighbours of every node by edge number: ``(starts, neighbours, edges)``."""
    starts = np.zeros(n + 1, np.int64)
    for e in range(ends_a.size):
        starts[ends_a[e] + 1] += 1
        starts[ends_b[e] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
    free = starts[:-1].copy()
    neighbours = np.empty(starts[n], np.int64)
    edges = np.empty(starts[n], np.int64)
    for e in range(ends_a.size):
        for a, b in ((ends_a[e], ends_b[e]), (ends_b[e], ends_a[e])):
            neighbours[free[a]] = b
            edges[free[a]] = e
            free[a] += 1
    return starts, neighbours, edges


@kernel()
def preorder(parent, starts, items):
    """Nodes in depth-first order, children ascending; shorter than n where there is a cycle."""
    n = parent.size
    order = np.empty(n, np.int64)
    stack = np.empty(n, np.int64)
    count = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        stack[0] = root
        height = 1
        while height:
            height -= 1
            v = stack[height]
            order[count] = v
            count += 1
            for position in range(starts[v + 1] - 1, starts[v] - 1, -1):
                stack[height] = items[position]
                height += 1
    return order[:count]


@kernel()
def root_edges(n, ends_a, ends_b, edge_length, roots):
    """Orient edges away from ``roots`` (tried in order, then every node): ``(parent, length)``.

    An edge that closes a cycle is reported by its number in the third value, else −1.
    """
    starts, neighbours, edges = neighbour_lists(n, ends_a, ends_b)
    parent = np.full(n, -1, np.int64)
    length = np.zeros(n)
    via = np.full(n, -1, np.int64)
    seen = np.zeros(n, np.bool_)
    stack = np.empty(n, np.int64)
    for attempt in range(roots.size + n):
        root = roots[attempt] if attempt < roots.size else attempt - roots.size
        if seen[root]:
            continue
        seen[root] = True
        stack[0] = root
        height = 1
        while height:
            height -= 1
            v = stack[height]
            for position in range(starts[v], starts[v + 1]):
                u = neighbours[position]
                e = edges[position]
                if e == via[v]:
                    continue
                if seen[u]:
                    return parent, length, e
                seen[u] = True
                parent[u] = v
                via[u] = e
                length[u] = edge_length[e]
                stack[height] = u
                height += 1
    return parent, length, -1


@kernel()
def component_numbers(order, parent):
    """The number of the component of every node, counted in the order of the roots."""
    component = np.empty(parent.size, np.int64)
    count = 0
    for v in order:
        if parent[v] < 0:
            component[v] = count
            count += 1
        else:
            component[v] = component[parent[v]]
    return component


@kernel()
def path_lengths_from(source, order, parent, length, out):
    """Path lengths from one node to all, infinite between components."""
    out[:] = np.inf
    out[source] = 0.0
    v = source
    while parent[v] >= 0:
        out[parent[v]] = out[v] + length[v]
        v = parent[v]
    for v in order:
        if parent[v] >= 0 and out[v] == np.inf:
            out[v] = out[parent[v]] + length[v]


@kernel()
def path_length_rows(sources, targets, order, parent, length, out):
    """Path lengths from each source to each target, one row a source."""
    all_nodes = np.empty(parent.size)
    for row in range(sources.size):
        path_lengths_from(sources[row], order, parent, length, all_nodes)
        for column in range(targets.size):
            out[row, column] = all_nodes[targets[column]]


@kernel()
def path_signs(order, parent, sign):
    """Product of the edges' signs from the root of each component down to every node."""
    out = np.ones(parent.size)
    for v in order:
        if parent[v] >= 0:
            out[v] = out[parent[v]] * sign[v]
    return out


@kernel()
def nearest_observed(order, parent, length, n_observed):
    """For every node the nearest observed one and its distance; ties go to the lowest index.

    An observed node is nearest to itself, even where another is at distance 0.
    """
    n = parent.size
    nearest = np.full(n, n, np.int64)
    distance = np.full(n, np.inf)
    for v in range(n_observed):
        nearest[v] = v
        distance[v] = 0.0
    for position in range(n - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= n_observed:
            d = distance[v] + length[v]
            if d < distance[p] or (d == distance[p] and nearest[v] < nearest[p]):
                distance[p] = d
                nearest[p] = nearest[v]
    for v in order:
        p = parent[v]
        if p >= 0 and v >= n_observed:
            d = distance[p] + length[v]
            if d < distance[v] or (d == distance[v] and nearest[p] < nearest[v]):
                distance[v] = d
                nearest[v] = nearest[p]
    return nearest, distance


@kernel()
def diameter(order, parent, length):
    """The longest path in any component."""
    n = parent.size
    height = np.zeros(n)
    longest = 0.0
    for position in range(n - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            reach = height[v] + length[v]
            longest = max(longest, height[p] + reach)
            height[p] = max(height[p], reach)
    return longest


@kernel()
def subtree_minimum(order, parent, values):
    """The smallest value in the subtree below every node."""
    out = values.copy()
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0 and out[v] < out[p]:
            out[p] = out[v]
    return out


@kernel()
def subtree_xor(order, parent, keys):
    """Exclusive or of the keys below every node; ``keys`` has one row a node."""
    out = keys.copy()
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            for lane in range(keys.shape[1]):
                out[p, lane] ^= out[v, lane]
    return out


@kernel()
def subtree_sum(order, parent, values):
    """Sum of the values below every node."""
    out = values.copy()
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if p >= 0:
            out[p] += out[v]
    return out


@kernel()
def flip_path(parent, length, root):
    """Make ``root`` the root of its component, in place."""
    v = root
    above = parent[v]
    below_length = length[v]
    parent[v] = -1
    length[v] = 0.0
    while above >= 0:
        next_above = parent[above]
        next_length = length[above]
        parent[above] = v
        length[above] = below_length
        v = above
        above = next_above
        below_length = next_length


@kernel()
def merge_groups(order, parent, contracted, n_observed):
    """Contract the marked edges (by child): the group's node for every node.

    A group is named by its observed member, or by its lowest node. The second value is an
    observed node that would be merged with another observed one, or −1.
    """
    n = parent.size
    top = np.empty(n, np.int64)
    for v in order:
        top[v] = top[parent[v]] if parent[v] >= 0 and contracted[v] else v
    name = np.full(n, n, np.int64)
    clash = -1
    for v in range(n):
        t = top[v]
        if v < n_observed and name[t] < n_observed:
            clash = v
        if v < name[t]:
            name[t] = v
    for v in range(n):
        top[v] = name[top[v]]
    return top, clash


@kernel()
def prune_and_splice(order, parent, length, n_observed):
    """Remove hidden nodes with fewer than three neighbours; every root must be observed.

    Hidden leaves go first (their neighbour may become a leaf in turn), then hidden nodes with two
    neighbours are replaced by an edge of the summed length. Returns the new parent and length of
    every node, and which nodes are kept.
    """
    n = parent.size
    degree = np.zeros(n, np.int64)
    for v in range(n):
        if parent[v] >= 0:
            degree[v] += 1
            degree[parent[v]] += 1
    alive = np.ones(n, np.bool_)
    for position in range(n - 1, -1, -1):
        v = order[position]
        if v >= n_observed and degree[v] <= 1:
            alive[v] = False
            if parent[v] >= 0:
                degree[parent[v]] -= 1
    kept = np.zeros(n, np.bool_)
    anchor = np.full(n, -1, np.int64)
    climb = np.zeros(n)
    for v in order:
        kept[v] = alive[v] and (v < n_observed or degree[v] >= 3)
        p = parent[v]
        if p >= 0 and alive[v]:
            anchor[v] = p if kept[p] else anchor[p]
            climb[v] = length[v] + (0.0 if kept[p] else climb[p])
    return anchor, climb, kept


@kernel()
def sorted_by(keys, items):
    """Items in ascending order of their keys, ties by item (Shell's sort: quick to compile)."""
    out = items.copy()
    gap = 1
    while gap < out.size:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for i in range(gap, out.size):
            item = out[i]
            key = keys[item]
            j = i
            while j >= gap and (
                keys[out[j - gap]] > key or (keys[out[j - gap]] == key and out[j - gap] > item)
            ):
                out[j] = out[j - gap]
                j -= gap
            out[j] = item
    return out


@kernel()
def sort_children(starts, items, keys):
    """Children of every node in ascending order of their keys."""
    out = items.copy()
    for v in range(starts.size - 1):
        if starts[v + 1] - starts[v] > 1:
            children = sorted_by(keys, items[starts[v] : starts[v + 1]])
            for i in range(children.size):
                out[starts[v] + i] = children[i]
    return out

"""Pairs of near observed nodes, paths between them, and least squares for what paths sum up.

Trees come as in :mod:`latentree._kernels.tree`: ``order`` lists every node after its parent; an
edge is named by its lower node. A list of paths is ``starts``/``items``: the edges between pair p
are ``items[starts[p]:starts[p + 1]]``.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

_TINY = 1e-12  # of a diagonal entry: what is left of it below this is rounding


@kernel()
def nearest_around(order, parent, length, offset, count):
    """For every node the nearest observed nodes, at most ``count`` behind each neighbor.

    ``offset``, one number for each observed node, is added to all distances to that node. Returns,
    per node, up to 2·count observed nodes of the whole tree with distances, sorted, and for each
    the neighbor behind which it lies (the node itself for an observed one).
    """
    n, n_observed = parent.size, offset.size
    nodes, tags = np.full((n, 2 * count), -1), np.full((n, 2 * count), -1)
    far = np.zeros((n, 2 * count))
    for v in range(n_observed):
        nodes[v, 0] = tags[v, 0] = v
        far[v, 0] = offset[v]
    for place in range(n - 1, -1, -1):  # up the tree, then down
        v = order[place]
        if parent[v] >= 0:
            _offer(v, parent[v], length[v], count, nodes, far, tags)
    for v in order:
        if parent[v] >= 0:
            _offer(parent[v], v, length[v], count, nodes, far, tags)
    return nodes, far, tags


@kernel()
def _offer(a, b, length, count, nodes, far, tags):
    """Offer what node a has from elsewhere to its neighbor b, whose list stays sorted."""
    width = nodes.shape[1]
    taken = 0
    for q in range(width):
        node = nodes[a, q]
        if taken == count or node < 0 or tags[a, q] == b:
            continue
        taken += 1
        distance = far[a, q] + length
        # Insertion from the end of the sorted list; what is pushed off the end is forgotten.
        place = width
        while place > 0 and (
            nodes[b, place - 1] < 0
            or far[b, place - 1] > distance
            or (far[b, place - 1] == distance and nodes[b, place - 1] > node)
        ):
            place -= 1
            if place + 1 < width:
                nodes[b, place + 1] = nodes[b, place]
                far[b, place + 1] = far[b, place]
                tags[b, place + 1] = tags[b, place]
        if place < width:
            nodes[b, place] = node
            far[b, place] = distance
            tags[b, place] = a


def near_pairs(order, parent, length, offset, count, crowd):
    """Pairs of near observed nodes around each node, as low·m + high, sorted, without repetition.

    Around a node are, behind each neighbor, the ``count`` nearest observed nodes (distances to an
    observed node count with its ``offset``), and the node itself if it is observed. Those behind
    different neighbors are paired: all with all up to ``crowd`` of them, beyond that each with the
    ``crowd`` nearest.
    """
    keys = np.sort(_pair_up(order, parent, length, offset, count, crowd))
    is_new = np.ones(keys.size, bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    return keys[is_new]


@kernel()
def _pair_up(order, parent, length, offset, count, crowd):
    """Return the pairs around each node, as low·m + high."""
    nodes, far, tags = nearest_around(order, parent, length, offset, count)
    n, n_observed = parent.size, offset.size
    keys = np.empty((n_observed + 2 * count * n) * crowd, np.int64)  # entries around all nodes
    child, following = np.full(n, -1), np.full(n, -1)  # first child, next sibling
    for v in range(n):
        if parent[v] >= 0:
            following[v] = child[parent[v]]
            child[parent[v]] = v
    near, behind = np.empty(count * n, np.int64), np.empty(count * n, np.int64)
    distance = np.empty(count * n)
    n_pairs = 0
    for center in range(n):
        size = 0
        if center < n_observed:
            near[0], behind[0], distance[0] = center, center, offset[center]
            size = 1
        neighbor = parent[center] if parent[center] >= 0 else child[center]
        while neighbor >= 0:
            edge = length[center if neighbor == parent[center] else neighbor]
            taken = 0
            for q in range(nodes.shape[1]):
                node = nodes[neighbor, q]
                if node < 0 or taken == count:
                    break
                if tags[neighbor, q] == center:
                    continue
                taken += 1
                # Insertion into the list that is sorted by distance, then by node.
                place, value = size, far[neighbor, q] + edge
                while place > 0 and (
                    distance[place - 1] > value
                    or (distance[place - 1] == value and near[place - 1] > node)
                ):
                    near[place], behind[place] = near[place - 1], behind[place - 1]
                    distance[place] = distance[place - 1]
                    place -= 1
                near[place], behind[place], distance[place] = node, neighbor, value
                size += 1
            neighbor = child[center] if neighbor == parent[center] else following[neighbor]
        for x in range(size):
            for y in range(x if x < crowd else crowd):
                if behind[x] != behind[y]:
                    low, high = min(near[x], near[y]), max(near[x], near[y])
                    keys[n_pairs] = low * n_observed + high
                    n_pairs += 1
    return keys[:n_pairs]


def path_edges(pairs, order, parent):
    """Edges (by lower node) on the path between each pair, as a list of lists laid end to end."""
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    starts = np.zeros(len(pairs) + 1, np.int64)
    _climb(pairs, position, parent, starts, starts[:0])
    items = np.empty(starts[-1], np.int64)
    _climb(pairs, position, parent, starts, items)
    return starts, items


@kernel()
def _climb(pairs, position, parent, starts, items):
    """Fill ``items`` with the edges of each path; without room for any, ``starts``."""
    for row in range(pairs.shape[0]):
        a = pairs[row, 0]
        b = pairs[row, 1]
        place = starts[row]
        while a != b:
            # The later one in depth-first order is no ancestor of the other.
            late = a if position[a] > position[b] else b
            if items.size:
                items[place] = late
            place += 1
            if late == a:
                a = parent[a]
            else:
                b = parent[b]
        starts[row + 1] = place


@kernel()
def fit_paths(length, free, starts, items, estimated, n_rounds, n_steps):
    """Fit the lengths of the free edges, in place, to the correlations of pairs, round by round.

    Conjugate gradients, with ``n_steps``, need no matrix. Without them the normal equations are
    solved, their edges in an order that keeps them nearly as empty as they are.
    """
    n = length.size
    rank = np.arange(n) if n_steps else elimination_ranks(starts, items, n)
    paths, ascending = rank[items], ranked_paths(starts, items, rank)
    x, is_free = np.empty(n), np.empty(n, np.bool_)
    x[rank], is_free[rank] = length, free
    weight, target = np.empty(estimated.size), np.empty(estimated.size)
    residual, room, moves = np.empty(n), np.empty(n), np.empty(n, np.bool_)
    side = 0 if n_steps else n
    normal = np.empty((side, side))
    for _ in range(n_rounds):
        set_goals(x, starts, paths, estimated, weight, target)
        moves[:] = is_free
        # What comes out negative is set to 0 and the rest solved again, a few times over.
        for _ in range(4):
            find_residual(x, starts, paths, weight, target, residual)
            if n_steps:
                conjugate_gradients(x, moves, starts, paths, weight, residual, room, n_steps)
            else:
                fill_normal(starts, ascending, weight, moves, normal)
                for e in range(n):
                    room[e] = residual[e] if moves[e] else 0.0
                solve_sparse(normal, room)
                for e in range(n):
                    x[e] += room[e]
            is_done = True
            for e in range(n):
                if x[e] < 0.0:
                    x[e] = 0.0
                    moves[e] = is_done = False
            if is_done:
                break
    length[:] = x[rank]


@kernel()
def elimination_ranks(starts, items, n_edges):
    """Say when each edge is eliminated: first those that share paths with the fewest others.

    On 85 returns the triangle gains next to nothing in this order; children before their parents,
    it grows to twice what it was.
    """
    meets = np.zeros((n_edges, n_edges), np.bool_)
    n_met = np.zeros(n_edges, np.int64)
    for pair in range(starts.size - 1):
        for place in range(starts[pair], starts[pair + 1]):
            a = items[place]
            for other in range(starts[pair], place):
                b = items[other]
                if not meets[a, b]:
                    meets[a, b] = meets[b, a] = True
                    n_met[a] += 1
                    n_met[b] += 1
    # Counting sort: next_rank[k] is the rank of the next edge that meets k others.
    next_rank = np.zeros(n_edges + 1, np.int64)
    for e in range(n_edges):
        next_rank[n_met[e] + 1] += 1
    for k in range(1, n_edges + 1):
        next_rank[k] += next_rank[k - 1]
    rank = np.empty(n_edges, np.int64)
    for e in range(n_edges):
        rank[e] = next_rank[n_met[e]]
        next_rank[n_met[e]] += 1
    return rank


@kernel()
def ranked_paths(starts, items, rank):
    """The edges of each path by rank, in ascending order."""
    out = np.empty_like(items)
    for pair in range(starts.size - 1):
        for place in range(starts[pair], starts[pair + 1]):
            at = place
            while at > starts[pair] and out[at - 1] > rank[items[place]]:
                out[at] = out[at - 1]
                at -= 1
            out[at] = rank[items[place]]
    return out


@kernel()
def set_goals(length, starts, items, estimated, weight, target):
    """Weights and wanted lengths of all paths in one Gauss-Newton step on correlations.

    A pair whose ρ̂ is below the path's ρ moves the path by (ρ − ρ̂)/ρ ≤ 1, one whose ρ̂ is above
    by log(ρ̂/ρ); its weight is ρ²/(1 − ρ²)².
    """
    for pair in range(estimated.size):
        path = 0.0
        for place in range(starts[pair], starts[pair + 1]):
            path += length[items[place]]
        path = path if path < 30.0 else 30.0
        rho = np.exp(-path)
        ratio = estimated[pair] / rho
        rest = 1.0 - rho * rho
        root = rho / (rest if rest > 1e-3 else 1e-3)
        weight[pair] = root * root
        target[pair] = path + (1.0 - ratio if ratio < 1.0 else -np.log(ratio))


@kernel()
def find_residual(length, starts, items, weight, target, residual):
    """Aᵀ·W·(target − A·length), where A says which edges each path holds."""
    residual[:] = 0.0
    for pair in range(weight.size):
        path = 0.0
        for place in range(starts[pair], starts[pair + 1]):
            path += length[items[place]]
        lacking = weight[pair] * (target[pair] - path)
        for place in range(starts[pair], starts[pair + 1]):
            residual[items[place]] += lacking


@kernel()
def fill_normal(starts, items, weight, moves, normal):
    """The upper triangle of N = Aᵀ·W·A; 0 for edges that shall not move. Paths ascend."""
    for a in range(moves.size):
        normal[a, a:] = 0.0
    for pair in range(weight.size):
        for place in range(starts[pair], starts[pair + 1]):
            row = normal[items[place]]
            for other in range(place, starts[pair + 1]):
                row[items[other]] += weight[pair]
    for a in range(moves.size):
        if not moves[a]:
            normal[a, a:] = 0.0
            normal[:a, a] = 0.0


@kernel()
def solve_sparse(normal, x):
    """Solve N·x = b in place of b, and put the factor U, N = Uᵀ·D·U, in place of the triangle.

    Only what is not 0 is touched. What N does not determine, to twelve digits, stays 0.
    """
    n = x.size
    filled = np.empty(n, np.int64)
    smallest = _TINY * np.diag(normal)
    for k in range(n):
        pivot = normal[k, k]
        if not pivot > smallest[k]:
            normal[k, k:] = 0.0
            continue
        count = 0
        for j in range(k + 1, n):
            if normal[k, j] != 0.0:
                filled[count] = j
                count += 1
        for a in range(count):
            i = filled[a]
            factor = normal[k, i] / pivot
            for b in range(a, count):
                normal[i, filled[b]] -= factor * normal[k, filled[b]]
            x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        if normal[k, k] == 0.0:
            x[k] = 0.0
            continue
        for j in range(k + 1, n):
            x[k] -= normal[k, j] * x[j]
        x[k] /= normal[k, k]


@kernel()
def conjugate_gradients(x, moves, starts, items, weight, residual, product, n_steps):
    """Go on from x, in place, towards Aᵀ·W·(b − A·x) = 0, where A says what each path holds.

    ``residual`` is the left side at the start; ``product`` is room.
    """
    inverse = np.zeros(x.size)  # one over the diagonal of Aᵀ·W·A, 0 for what shall not move
    for pair in range(weight.size):
        for place in range(starts[pair], starts[pair + 1]):
            inverse[items[place]] += weight[pair]
    direction = np.empty(x.size)
    # Preconditioned by the diagonal: z = M⁻¹·r, energy = rᵀ·z; it ends at 1e-8 of |r|.
    energy = 0.0
    for e in range(x.size):
        inverse[e] = 1.0 / inverse[e] if moves[e] and inverse[e] > 0.0 else 0.0
        direction[e] = inverse[e] * residual[e]
        energy += direction[e] * residual[e]
    enough = 1e-16 * energy
    for _ in range(n_steps):
        if energy <= enough:
            break
        # product = Aᵀ·W·A·direction, path by path.
        for e in range(x.size):
            product[e] = 0.0
        for pair in range(weight.size):
            total = 0.0
            for place in range(starts[pair], starts[pair + 1]):
                total += direction[items[place]]
            total *= weight[pair]
            for place in range(starts[pair], starts[pair + 1]):
                product[items[place]] += total
        curvature = 0.0
        for e in range(x.size):
            curvature += direction[e] * product[e]
        step = energy / curvature  # rᵀ·z / dᵀ·N·d
        ratio = 1.0 / energy  # becomes β = new rᵀ·z / old rᵀ·z
        energy = 0.0
        for e in range(x.size):
            x[e] += step * direction[e]
            residual[e] -= step * product[e]
            energy += inverse[e] * residual[e] * residual[e]
        ratio *= energy
        for e in range(x.size):
            direction[e] = inverse[e] * residual[e] + ratio * direction[e]

"""One round of recursive grouping, over the dense distances of the active nodes.

``depth`` of an active node says how well it is seen: 0 for an observed node; for a hidden one
−log R, where R is the correlation with it of the best combination of its children. The standard
error of a distance is taken as 2·sinh(d_ij + depth_i + depth_j)·noise, with noise = 1/√n, which is
(1/ρ − ρ)/√n for observed Gaussian pairs. With noise = 0 everything here is exact.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.structure.ranges import FAR, max_difference_small


@kernel()
def distance_bounds(distance, depth, noise, z, tau):
    """Lower and upper bounds of every distance, ``z`` standard errors away on the ρ scale.

    Distances of tau and more, and those of a node to itself, count for nothing: ∓FAR.
    """
    m = distance.shape[0]
    lower = np.empty((m, m))
    upper = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            d = distance[i, j]
            if i == j or d >= tau:
                lower[i, j] = -FAR
                upper[i, j] = FAR
                continue
            # ρ·(1 ± error) has the distance d − log(1 ± error); beyond ρ = 0 all is possible.
            error = z * noise * 2.0 * math.sinh(min(abs(d) + depth[i] + depth[j], 50.0))
            lower[i, j] = d - math.log1p(error)
            upper[i, j] = d - math.log1p(-error) if error < 0.999 else FAR
    return lower, upper


@kernel()
def average_linkage(dissimilarity, limit):
    """Agglomerate while the mean dissimilarity between two clusters is at most ``limit``.

    Labels count from 0 in the order of each cluster's first member. Ties go to the lowest pair.
    About O(m²) for m nodes: each row remembers its nearest cluster.
    """
    m = dissimilarity.shape[0]
    mean = dissimilarity.copy()
    size = np.ones(m)
    label = np.arange(m)
    near = np.zeros(m, np.int64)
    value = np.full(m, np.inf)
    for i in range(m):
        _find_nearest(mean, size, i, near, value)
    while True:
        a = -1
        for i in range(m):
            if size[i] > 0 and (a < 0 or value[i] < value[a]):
                a = i
        if a < 0 or not value[a] <= limit:
            break
        b = near[a]
        a, b = min(a, b), max(a, b)
        # The mean over pairs: (|a|·mean_ak + |b|·mean_bk) / (|a| + |b|).
        total = size[a] + size[b]
        for k in range(m):
            if size[k] > 0 and k not in (a, b):
                mean[a, k] = (size[a] * mean[a, k] + size[b] * mean[b, k]) / total
                mean[k, a] = mean[a, k]
        size[a] = total
        size[b] = 0.0
        label[label == b] = a
        # A row whose nearest cluster is gone is searched anew; others see the new one only.
        for k in range(m):
            if size[k] > 0:
                if k == a or near[k] in (a, b):
                    _find_nearest(mean, size, k, near, value)
                elif mean[k, a] < value[k] or (mean[k, a] == value[k] and a < near[k]):
                    near[k], value[k] = a, mean[k, a]
    return renumbered(label)


@kernel()
def _find_nearest(mean, size, i, near, value):
    """Search the nearest cluster of row i among those that are left."""
    value[i] = np.inf
    for k in range(size.size):
        if k != i and size[k] > 0 and mean[i, k] < value[i]:
            near[i], value[i] = k, mean[i, k]


@kernel()
def renumbered(label):
    """Give labels new numbers 0, 1, … in the order of first appearance."""
    new = np.full(label.size, -1, np.int64)
    out = np.empty(label.size, np.int64)
    count = 0
    for i in range(label.size):
        if new[label[i]] < 0:
            new[label[i]] = count
            count += 1
        out[i] = new[label[i]]
    return out


@kernel()
def misfits_moved(label, mismatch):
    """Move nodes to the family that suits them better, the worst placed one first.

    A node is misplaced when its mean mismatch with another family is smaller than with its own,
    which is a negative silhouette. Only families of three and more take part: smaller ones have
    no profile to compare with.
    """
    m = label.size
    label = label.copy()
    n_families = label.max() + 1
    size = np.zeros(n_families)
    total = np.zeros((m, n_families))
    # total[i, f]: summed mismatch of node i with family f, kept up to date with every move.
    for i in range(m):
        size[label[i]] += 1
        for j in range(m):
            if i != j:
                total[i, label[j]] += mismatch[i, j]
    for _ in range(m):
        worst = 1e-9
        mover = -1
        target = -1
        for i in range(m):
            own = label[i]
            if size[own] < 3:
                continue
            here = total[i, own] / (size[own] - 1)
            for family in range(n_families):
                if family != own and size[family] >= 3:
                    gain = here - total[i, family] / size[family]
                    if gain > worst:
                        worst, mover, target = gain, i, family
        if mover < 0:
            break
        for j in range(m):
            if j != mover:
                total[j, label[mover]] -= mismatch[j, mover]
                total[j, target] += mismatch[j, mover]
        size[label[mover]] -= 1
        size[target] += 1
        label[mover] = target
    return renumbered(label)


@kernel(fastmath=True)
def _dot(a, b):
    """Inner product; its order is the compiler's choice."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@kernel()
def profile_mismatch(distance, depth, noise):
    """How far from proportional the correlations of two nodes with all others are, in noise².

    ρ_ik = ρ_ih·ρ_hk for siblings below h, so that the rows of i and j are proportional. The
    smallest eigenvalue of the 2 × 2 matrix of their products over k ∉ {i, j} is the squared
    distance from that, and averages over all k where the range looks only at the extremes.
    """
    m = distance.shape[0]
    rho = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if i != j:
                rho[i, j] = math.exp(-(distance[i, j] + depth[i] + depth[j]))
    out = np.zeros((m, m))
    square = np.zeros(m)
    for i in range(m):
        square[i] = _dot(rho[i], rho[i])
    for i in range(m):
        for j in range(i):
            ij = _dot(rho[i], rho[j])
            # ρ_ii = 0, so only k = j and k = i have to be taken out of the squares
            ii = square[i] - rho[i, j] ** 2
            jj = square[j] - rho[i, j] ** 2
            # λ = ½·(ii + jj − √((ii − jj)² + 4·ij²)) of the matrix ((ii, ij), (ij, jj))
            gap = math.sqrt((ii - jj) ** 2 + 4.0 * ij * ij)
            out[i, j] = 0.5 * (ii + jj - gap) / (noise * noise)
            out[j, i] = out[i, j]
    return out


@kernel()
def closest_pair(dissimilarity):
    """Labels that join only the two nodes with the smallest dissimilarity."""
    m = dissimilarity.shape[0]
    a, b = 1, 0
    for i in range(m):
        for j in range(i):
            if dissimilarity[i, j] < dissimilarity[a, b]:
                a, b = i, j
    label = np.arange(m)
    label[a] = b
    return renumbered(label)


@kernel()
def mean_silhouette(dissimilarity, label):
    """Mean over all nodes of (b − a)/max(a, b); 0 for a node alone in its cluster."""
    m = label.size
    n_clusters = label.max() + 1
    size = np.zeros(n_clusters)
    for i in range(m):
        size[label[i]] += 1
    result = 0.0
    total = np.empty(n_clusters)
    for i in range(m):
        own = label[i]
        if size[own] < 2:
            continue
        total[:] = 0.0
        for j in range(m):
            if j != i:
                total[label[j]] += dissimilarity[i, j]
        # a: mean dissimilarity within the own cluster; b: to the nearest other one.
        a = total[own] / (size[own] - 1)
        b = np.inf
        for cluster in range(n_clusters):
            if cluster != own:
                b = min(b, total[cluster] / size[cluster])
        if b < np.inf and max(a, b) > 0.0:
            result += (b - a) / max(a, b)
    return result / m


@kernel()
def silhouette_labels(dissimilarity):
    """Cut the average-linkage tree where the mean silhouette is largest.

    One cluster is accepted when no cut into several has a positive silhouette. There is at least
    one merger. O(m³) for m nodes.
    """
    m = dissimilarity.shape[0]
    best = closest_pair(dissimilarity)
    if m < 4:
        return np.zeros(m, np.int64)
    best_value = 0.0
    found = False
    heights = merger_heights(dissimilarity)
    for cut in heights[:-1]:
        label = average_linkage(dissimilarity, cut)
        if label.max() == 0:
            break
        value = mean_silhouette(dissimilarity, label)
        if value > best_value:
            best, best_value, found = label, value, True
    return best if found else np.zeros(m, np.int64)


@kernel()
def merger_heights(dissimilarity):
    """At most 32 levels at which to cut, from the closest pair to the farthest."""
    m = dissimilarity.shape[0]
    values = np.empty(m * (m - 1) // 2)
    count = 0
    for i in range(m):
        for j in range(i):
            values[count] = dissimilarity[i, j]
            count += 1
    values = np.sort(values)
    levels = min(32, count)
    out = np.empty(levels)
    for level in range(levels):
        out[level] = values[level * (count - 1) // max(levels - 1, 1)]
    return out


@kernel()
def family_parent(distance, members, to_parent, tolerance, short):
    """The member of a family that is the parent of the others, or −1.

    u is the parent when its distance to where the parent belongs is below ``short``, and
    d_iu + d_uk = d_ik for all other members i and all k up to the tolerance (infinite when the
    distances are estimates). Of several the closest one, observed before hidden by its number.
    """
    m = distance.shape[0]
    place = 0
    for a in range(1, members.size):
        if to_parent[a] < to_parent[place]:
            place = a
    if to_parent[place] > short:
        return -1
    u = members[place]
    if tolerance < np.inf:
        for i in members:
            for k in range(m):
                if i != u and k not in (i, u):
                    gap = distance[i, u] + distance[u, k] - distance[i, k]
                    if abs(gap) > tolerance:
                        return -1
    return u


@kernel()
def distances_to_parent(distance, depth, members, reach, tau):
    """d_ih of every member i to their new parent h.

    d_ih is the mean over the other members j of (d_ij + mean_k Φ_ijk) / 2. Both means are weighted
    by the precision e^(−2d) of the distances that enter, where d counts up to ``reach`` (0 gives
    equal weights, right for exact distances). Distances of tau and more do not enter Φ.
    """
    m = distance.shape[0]
    c = members.size
    weight = np.zeros(m)  # of node k in the mean over k, by its distance to the nearest member
    for k in range(m):
        nearest = np.inf
        for i in members:
            if i != k:
                nearest = min(nearest, distance[i, k])
        weight[k] = math.exp(-2.0 * min(max(nearest, 0.0) + depth[k], reach))
    whole = weight.sum()
    profile = np.zeros(c)  # Σ_k w_k·d_ik, so that the mean of Φ_ijk takes O(1) a pair
    for a in range(c):
        row = distance[members[a]]
        for k in range(m):
            profile[a] += weight[k] * row[k]
    out = np.empty(c)
    for a in range(c):
        i = members[a]
        total = 0.0
        weights = 0.0
        for b in range(c):
            j = members[b]
            if a == b:
                continue
            # mean over k ∉ {i, j} of d_ik − d_jk; d_ii = 0, so only w_j·d_ij has to be taken out
            d_ij = distance[i, j]
            rest = whole - weight[i] - weight[j]
            phi = (profile[a] - profile[b] + (weight[i] - weight[j]) * d_ij) / rest
            if tau < FAR:
                phi = mean_difference(distance, weight, i, j, tau)
            w = math.exp(-2.0 * min(max(d_ij, 0.0) + depth[j], reach))
            total += w * 0.5 * (d_ij + phi)
            weights += w
        out[a] = total / weights
    return out


@kernel()
def mean_difference(distance, weight, i, j, tau):
    """Weighted mean of Φ_ijk = d_ik − d_jk over 𝒦_ij, the nodes k that are nearer than tau."""
    total = 0.0
    weights = 0.0
    for k in range(weight.size):
        if k not in (i, j) and distance[i, k] < tau and distance[j, k] < tau:
            total += weight[k] * (distance[i, k] - distance[j, k])
            weights += weight[k]
    return total / weights if weights > 0.0 else 0.0


@kernel()
def depth_above(distances):
    """−log R of a hidden node: R² = s / (1 + s), s = Σ ρ² / (1 − ρ²) over what is below it.

    With ρ = e^(−d) and the least distance d_0, log s = −2·d_0 + log Σ e^(2·d_0 − 2·d) / (1 −
    e^(−2·d)), which is finite however long the distances are.
    """
    nearest = np.inf
    for d in distances:
        nearest = min(nearest, max(d, 1e-6))
    total = 0.0
    for d in distances:
        d = max(d, 1e-6)
        total += math.exp(2.0 * (nearest - d)) / -math.expm1(-2.0 * d)
    minus_log_s = 2.0 * nearest - math.log(total)
    # ½·log(1 + 1 / s)
    if minus_log_s > 0.0:
        return 0.5 * (minus_log_s + math.log1p(math.exp(-minus_log_s)))
    return 0.5 * math.log1p(math.exp(minus_log_s))


@kernel()
def merge_families(
    distance, depth, node, label, reach, tau, tolerance, short, next_hidden, ends, lengths, n_edges
):
    """Replace every family by its parent, old or new; append edges, return the new active set."""
    m = distance.shape[0]
    n_families = label.max() + 1
    weight = np.zeros(m)  # of each node in the new distances of its family's parent
    offset = np.zeros(n_families)
    new_depth = np.zeros(n_families)
    new_node = np.empty(n_families, np.int64)
    for family in range(n_families):
        members = np.flatnonzero(label == family)
        u = int(members[0])
        if members.size > 1:
            to_parent = distances_to_parent(distance, depth, members, reach, tau)
            u = family_parent(distance, members, to_parent, tolerance, short)
        if u >= 0:  # a node alone, or a family whose parent is one of its members
            weight[u] = 1.0
            new_node[family] = node[u]
            new_depth[family] = depth[u]
            for i in members:
                if i != u:
                    ends[n_edges, 0], ends[n_edges, 1] = node[u], node[i]
                    lengths[n_edges] = distance[u, i]
                    n_edges += 1
            continue
        # A new parent h: its distances are means over the children, by their precisions.
        new_node[family] = next_hidden
        new_depth[family] = depth_above(to_parent + depth[members])
        total = 0.0
        for a in range(members.size):
            i = members[a]
            weight[i] = math.exp(-2.0 * min(max(to_parent[a], 0.0) + depth[i], reach))
            total += weight[i]
            ends[n_edges, 0], ends[n_edges, 1] = next_hidden, node[i]
            lengths[n_edges] = to_parent[a]
            n_edges += 1
        for a in range(members.size):
            weight[members[a]] /= total
            offset[family] += weight[members[a]] * to_parent[a]
        next_hidden += 1
    # d_hl = Σ_ij w_i·w_j·d_ij − Σ_i w_i·d_ih − Σ_j w_j·d_jl
    half = np.zeros((n_families, m))
    for v in range(m):
        if weight[v] > 0.0:
            for k in range(m):
                half[label[v], k] += weight[v] * distance[v, k]
    new = np.zeros((n_families, n_families))
    for g in range(n_families):
        for j in range(m):
            new[g, label[j]] += weight[j] * half[g, j]
    for g in range(n_families):
        for f in range(n_families):
            new[g, f] -= offset[g] + offset[f]
        new[g, g] = 0.0
    return new, new_depth, new_node, next_hidden, n_edges


@kernel()
def _clipped(spread, distance):
    """Spread from −5 up, so that lack of evidence counts little; near pairs first among equals."""
    m = spread.shape[0]
    out = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if i != j:
                out[i, j] = min(max(spread[i, j], -5.0), 50.0) + 1e-3 * distance[i, j]
    return out


@kernel()
def family_labels(distance, depth, spread, noise, tolerance, epsilon, relaxed):
    """Families of one round, given the certain variation ``spread`` of Φ for each pair.

    At least two nodes are joined, so that every round makes progress.
    """
    m = distance.shape[0]
    if m == 3:
        return np.zeros(3, np.int64)
    if epsilon >= 0.0:  # the user's threshold
        label = average_linkage(spread, max(epsilon, tolerance))
    elif noise > 0.0 and relaxed:  # what intervals cannot explain keeps nodes apart
        label = average_linkage(_clipped(spread, distance), 0.0)
        if label.max() > 0 and label.max() + 1 < m:
            label = misfits_moved(label, profile_mismatch(distance, depth, noise))
    else:  # exact distances, or estimates of unknown precision
        label = average_linkage(spread, tolerance)
        if relaxed and label.max() + 1 == m:
            return silhouette_labels(spread)
    return closest_pair(spread) if label.max() + 1 == m else label


@kernel()
def spread_of(product):
    """Λ = max Φ − min Φ of every pair from the max-plus product; 0 where nothing contradicts."""
    m = product.shape[0]
    out = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if i != j:
                out[i, j] = product[i, j] + product[j, i]
    return out


@kernel()
def finish_grouping(
    distance,
    depth,
    node,
    noise,
    z,
    tau,
    tolerance,
    epsilon,
    short,
    relaxed,
    next_hidden,
    ends,
    lengths,
    n_edges,
):
    """Run rounds of recursive grouping until one node is left; return the number of edges."""
    reach = 6.0 if noise > 0.0 else 0.0
    check = np.inf if relaxed and noise > 0.0 else tolerance
    while node.size > 2:
        lower, upper = distance_bounds(distance, depth, noise, z, tau)
        spread = spread_of(max_difference_small(lower, upper))
        label = family_labels(distance, depth, spread, noise, tolerance, epsilon, relaxed)
        distance, depth, node, next_hidden, n_edges = merge_families(
            distance,
            depth,
            node,
            label,
            reach,
            tau,
            check,
            short,
            next_hidden,
            ends,
            lengths,
            n_edges,
        )
    if node.size == 2:
        ends[n_edges, 0], ends[n_edges, 1] = node[0], node[1]
        lengths[n_edges] = distance[0, 1]
        n_edges += 1
    return n_edges

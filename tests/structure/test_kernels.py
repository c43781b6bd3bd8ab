"""Compiled loops against their plain definitions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.structure.shapes import latent_trees

from latentree import simulate
from latentree._kernels.structure import fitting, grouping
from latentree._kernels.structure.joining import join_neighbors
from latentree._kernels.structure.ranges import FAR, max_difference, max_difference_small
from latentree._kernels.structure.spanning import minimum_spanning_tree
from latentree._kernels.structure.spectral import join_spectrally, second_singular_value
from latentree.structure._contraction import (
    _contract_greedily,
    _weakest_edges,
    edge_errors,
    squared_multiple_correlations,
)
from latentree.structure._lengths import QUICK, THOROUGH, _fit_densely, _near_pairs


def _textbook_excess(d, ends):
    """Replay joins by the textbook: by how much any joined pair missed the smallest criterion."""
    m = len(d)
    full = np.zeros((2 * m - 2, 2 * m - 2))
    full[:m, :m] = d
    active = list(range(m))
    worst = 0.0
    for step in range(m - 3):
        i, j, h = ends[2 * step, 0], ends[2 * step + 1, 0], m + step
        part = full[np.ix_(active, active)]
        r = len(active)
        total = part.sum(axis=1)
        criterion = (r - 2) * part - total[:, None] - total
        np.fill_diagonal(criterion, np.inf)
        chosen = criterion[active.index(i), active.index(j)]
        worst = max(worst, (chosen - criterion.min()) / (r - 2))
        full[h, active] = full[active, h] = (full[i, active] + full[j, active] - full[i, j]) / 2
        full[h, h] = 0.0
        active = [v for v in active if v not in (i, j)] + [h]
    return worst


@pytest.mark.parametrize("kind", ["uniform", "skewed", "integers", "points", "constant"])
def test_neighbor_joining_joins_what_the_textbook_joins(kind):
    rng = np.random.default_rng(3)
    for _ in range(40):
        m = int(rng.integers(4, 90))
        d = {
            "uniform": lambda m=m: rng.uniform(0, 1, (m, m)),
            "skewed": lambda m=m: rng.exponential(1, (m, m)) ** 3,
            "integers": lambda m=m: rng.integers(1, 4, (m, m)).astype(float),
            "points": lambda m=m: np.abs(np.subtract.outer(*[rng.normal(size=m)] * 2)),
            "constant": lambda m=m: np.ones((m, m)),
        }[kind]()
        d = np.triu(d, 1) + np.triu(d, 1).T
        ends, _ = join_neighbors(d.copy())
        assert _textbook_excess(d, ends) <= 1e-9 * max(d.max(), 1.0)


def test_neighbor_joining_of_a_larger_noisy_matrix():
    rng = np.random.default_rng(8)
    points = rng.normal(size=(300, 5))
    d = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    d += np.triu(rng.uniform(0, 0.5, d.shape), 1) + np.triu(rng.uniform(0, 0.5, d.shape), 1).T
    d = (d + d.T) / 2
    np.fill_diagonal(d, 0.0)
    ends, _ = join_neighbors(d.copy())
    assert _textbook_excess(d, ends) <= 1e-9 * d.max()


@given(tree=latent_trees(most=20, shapes=("binary",)))
@settings(max_examples=20, deadline=None)
def test_neighbor_joining_lengths(tree):
    ends, lengths = join_neighbors(tree.path_lengths())
    assert lengths.sum() == pytest.approx(tree.length.sum())
    assert ends.max() == 2 * tree.n_observed - 3


@given(rows=st.integers(2, 30), more=st.integers(0, 30), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_second_singular_value_is_exact_however_small_it_is(rows, more, seed):
    rng = np.random.default_rng(seed)
    block = np.outer(rng.normal(size=rows), rng.normal(size=rows + more))
    block += 10.0 ** -rng.integers(0, 17) * rng.normal(size=block.shape)
    values = np.linalg.svd(block, compute_uv=False)
    assert second_singular_value(block) == pytest.approx(values[1], abs=1e-14 * values[0])


def _spectral_excess(affinity, ends):
    """Replay joins by the definition: by how much any joined pair missed the smallest σ₂."""
    m = len(affinity)
    cluster = {v: [v] for v in range(m)}
    worst = 0.0

    def criterion(a, b):
        inside = cluster[a] + cluster[b]
        outside = np.setdiff1d(np.arange(m), inside)
        return np.linalg.svd(affinity[np.ix_(inside, outside)], compute_uv=False)[1]

    for step in range(m - 3):
        smallest = min(criterion(a, b) for a in cluster for b in cluster if a < b)
        a, b = ends[2 * step, 0], ends[2 * step + 1, 0]
        worst = max(worst, criterion(a, b) - smallest)
        cluster[m + step] = cluster.pop(a) + cluster.pop(b)
    return worst


@pytest.mark.parametrize("kind", ["noise", "factor", "tree", "constant"])
def test_spectral_joining_joins_what_its_definition_joins(kind):
    rng = np.random.default_rng(4)
    for m in (4, 5, 9, 26):
        r = {
            "noise": lambda m=m: np.corrcoef(rng.normal(size=(m, 30))),
            "factor": lambda m=m: np.corrcoef(rng.normal(size=(m, 99)) + rng.normal(size=99)),
            "tree": lambda m=m: np.exp(-simulate.hidden_markov(m).path_lengths()),
            "constant": lambda m=m: np.full((m, m), 0.5),
        }[kind]()
        d = -np.log(np.clip(np.abs(r), 1e-8, 1.0))
        ends, lengths = np.empty((2 * m - 3, 2), int), np.empty(2 * m - 3)
        join_spectrally(r, d, ends, lengths)
        assert _spectral_excess(r, ends) <= 1e-13 * m


@pytest.mark.parametrize("m", [1, 2, 5, 64, 130])
def test_max_difference(m):
    rng = np.random.default_rng(m)
    lower = rng.normal(size=(m, m))
    upper = rng.normal(size=(m, m))
    upper = upper + upper.T
    naive = (lower[:, None, :] - upper[None, :, :]).max(axis=2)
    np.testing.assert_allclose(max_difference(lower, upper), naive, atol=1e-15)
    np.testing.assert_allclose(max_difference_small(lower, upper), naive, atol=1e-15)


def test_the_threshold_tau_leaves_out_far_nodes():
    rng = np.random.default_rng(0)
    m, tau = 20, 1.2
    d = rng.uniform(0.2, 2.0, (m, m))
    d = np.triu(d, 1) + np.triu(d, 1).T
    bounds = grouping.distance_bounds(d, np.zeros(m), 0.0, 0.0, tau)
    spread = grouping.spread_of(max_difference(*bounds))
    for i in range(m):
        for j in range(m):
            near = [k for k in range(m) if k not in (i, j) and max(d[i, k], d[j, k]) < tau]
            if i == j:
                continue
            if near:
                assert spread[i, j] == pytest.approx(np.ptp(d[i, near] - d[j, near]))
            else:
                assert spread[i, j] < -FAR / 2


@pytest.mark.parametrize("reach", [0.0, 6.0])
def test_distances_to_a_new_parent_are_exact_on_exact_distances(reach):
    rng = np.random.default_rng(5)
    tree = simulate.random_lengths(simulate.caterpillar(12, 4), rng)
    d = tree.path_lengths()
    h = tree.parent[0]
    members = np.flatnonzero(tree.parent[:12] == h)
    expected = tree.path_lengths(members, [h])[:, 0]
    got = grouping.distances_to_parent(d, np.zeros(12), members, reach, FAR)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    pair = grouping.distances_to_parent(d, np.zeros(12), members[:2], reach, FAR)
    np.testing.assert_allclose(pair, expected[:2], atol=1e-12)


def test_the_number_of_threads_changes_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    d = rng.uniform(0, 1, (200, 200))
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", threads)
        results.append(max_difference(d, d + d.T))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@given(m=st.integers(2, 30), seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_average_linkage_equals_scipy(m, seed):
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    rng = np.random.default_rng(seed)
    d = rng.uniform(0, 1, (m, m))
    d = np.triu(d, 1) + np.triu(d, 1).T
    limit = rng.uniform(0, 1)
    ours = grouping.average_linkage(d, limit)
    theirs = fcluster(linkage(squareform(d), "average"), limit, "distance")
    same = ours[:, None] == ours
    np.testing.assert_array_equal(same, theirs[:, None] == theirs)


def test_mean_silhouette_equals_scikit_learn():
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(4)
    d = rng.uniform(0, 1, (25, 25))
    d = np.triu(d, 1) + np.triu(d, 1).T
    label = np.r_[0, 1, 2, 3, rng.integers(0, 4, 21)]
    label[label == 3] = 2
    expected = silhouette_score(d, label, metric="precomputed")
    assert grouping.mean_silhouette(d, label) == pytest.approx(expected)


def test_prim_breaks_ties_by_the_shift():
    d = np.full((5, 5), 2.0)
    np.fill_diagonal(d, 0.0)
    shift = np.array([5.0, 1.0, 4.0, 3.0, 2.0])
    a, b = minimum_spanning_tree(d, shift)
    edges = {frozenset(e) for e in zip(a.tolist(), b.tolist(), strict=True)}
    assert edges == {frozenset((1, v)) for v in (0, 2, 3, 4)}


def _behind(tree, center, neighbor):
    """Observed nodes on the neighbor's side of its edge to the center."""
    reached, waiting = {center}, [neighbor]
    while waiting:
        node = waiting.pop()
        reached.add(node)
        waiting += [v for v in tree.neighbors(node).tolist() if v not in reached]
    return [v for v in sorted(reached - {center}) if v < tree.n_observed]


@given(tree=latent_trees(most=25), count=st.integers(1, 4), crowd=st.integers(2, 9))
@settings(max_examples=40, deadline=None)
def test_near_pairs_are_the_nearest_observed_nodes_behind_each_neighbor(tree, count, crowd):
    m, offset = tree.n_observed, np.zeros(tree.n_observed)
    # Distances that are no ties, so that the nearest are known.
    length = np.where(tree.parent >= 0, 1.0 + np.sqrt(2.0 + np.arange(tree.n_nodes)), 0.0)
    tree = tree.with_lengths(length)
    far = tree.path_lengths(np.arange(tree.n_nodes), np.arange(tree.n_nodes))
    expected = set()
    for center in range(tree.n_nodes):
        around = [(0.0, center, center)] if center < m else []
        for neighbor in tree.neighbors(center).tolist():
            behind = sorted((far[center, v], v, neighbor) for v in _behind(tree, center, neighbor))
            around += behind[:count]
        around.sort()
        for x, (_, a, side) in enumerate(around):
            for _, b, other in around[: min(x, crowd)]:
                if side != other:
                    expected.add(min(a, b) * m + max(a, b))
    found = fitting.near_pairs(tree.order, tree.parent, tree.length, offset, count, crowd)
    assert found.tolist() == sorted(expected)


@pytest.mark.parametrize("n_steps", [0, 300], ids=["factored", "conjugate gradients"])
def test_fitted_paths_equal_dense_least_squares(n_steps):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        tree = simulate.random_latent_tree(20, rng)
        length = np.where(tree.parent >= 0, rng.uniform(0.02, 1.0, tree.n_nodes), 0.0)
        tree = tree.with_lengths(length)
        pairs = _near_pairs(tree, np.zeros(tree.n_observed), THOROUGH)
        distance = tree.path_lengths()[pairs[:, 0], pairs[:, 1]]
        estimated = np.exp(-distance) * rng.uniform(0.6, 1.3, len(pairs))
        starts, items = fitting.path_edges(pairs, tree.order, tree.parent)
        found, expected, free = tree.length.copy(), tree.length.copy(), tree.parent >= 0
        fitting.fit_paths(found, free, starts, items, estimated, 2, n_steps)
        _fit_densely(expected, free, starts, items, estimated, 2)
        assert (expected[free] == 0.0).any() or seed != 0
        np.testing.assert_allclose(found, expected, atol=1e-6)


@given(tree=latent_trees(most=25))
@settings(max_examples=40, deadline=None)
def test_pairs_around_determine_all_lengths(tree):
    pairs = _near_pairs(tree, np.zeros(tree.n_observed), QUICK)
    starts, items = fitting.path_edges(pairs, tree.order, tree.parent)
    design = np.zeros((len(pairs), tree.n_nodes))
    for row in range(len(pairs)):
        design[row, items[starts[row] : starts[row + 1]]] = 1.0
    truth = tree.path_lengths()[pairs[:, 0], pairs[:, 1]]
    np.testing.assert_allclose(design @ tree.length, truth, atol=1e-9)
    assert np.linalg.matrix_rank(design) == tree.n_edges


@given(tree=latent_trees(most=20, shapes=("random", "hubs", "caterpillar"), longest=1.0))
@settings(max_examples=30, deadline=None)
def test_squared_multiple_correlations_are_those_of_regressions(tree):
    """R² of regressing a node on the observed nodes behind an edge, from the joint covariance."""
    nodes = np.arange(tree.n_nodes)
    rho = np.exp(-tree.path_lengths(nodes, nodes))
    down, up = squared_multiple_correlations(tree)
    behind = {v: [v] if v < tree.n_observed else [] for v in nodes}
    for v in tree.order[::-1]:
        if tree.parent[v] >= 0:
            behind[tree.parent[v]] = behind[tree.parent[v]] + behind[v]
    for v in tree.edges[:, 1]:
        inside = behind[v]
        outside = [o for o in range(tree.n_observed) if o not in inside]
        for near, seen, value in ((tree.parent[v], inside, down[v]), (v, outside, up[v])):
            r = rho[near, seen]
            expected = r @ np.linalg.solve(rho[np.ix_(seen, seen)], r)
            assert value == pytest.approx(expected, abs=1e-6)


@given(tree=latent_trees(most=20, shapes=("random", "hubs", "caterpillar"), longest=1.0))
@settings(max_examples=30, deadline=None)
def test_errors_of_edges_come_from_the_views_at_both_ends(tree):
    down, up = squared_multiple_correlations(tree)
    errors = edge_errors(tree, 0.1)
    for v in tree.edges[:, 1]:
        variance, through = 0.0, np.exp(2 * tree.length[v])
        for end, other in ((v, tree.parent[v]), (tree.parent[v], v)):
            if end < tree.n_observed:
                continue
            seen = [
                down[u] if tree.parent[u] == end else up[end]
                for u in tree.neighbors(end)
                if u != other
            ]
            x = np.array(seen) / (1 - np.array(seen) ** 2)
            variance += 0.25 / np.triu(np.outer(x, x), 1).sum()
            through /= x.sum()
        assert errors[v] == pytest.approx(0.1 * np.sqrt(variance + through), rel=1e-4)


@given(tree=latent_trees(most=20, shapes=("random", "hubs", "caterpillar"), longest=1.0))
@settings(max_examples=30, deadline=None)
def test_edges_that_share_paths_with_few_others_are_eliminated_first(tree):
    pairs = _near_pairs(tree, np.zeros(tree.n_observed), THOROUGH)
    starts, items = fitting.path_edges(pairs, tree.order, tree.parent)
    paths = [set(items[a:b].tolist()) for a, b in pairwise(starts)]
    met = [
        len(set().union(*(path for path in paths if v in path)) - {v}) for v in range(tree.n_nodes)
    ]
    rank = fitting.elimination_ranks(starts, items, tree.n_nodes)
    assert np.argsort(rank).tolist() == np.argsort(met, kind="stable").tolist()
    found = fitting.ranked_paths(starts, items, rank)
    for path, (a, b) in zip(paths, pairwise(starts), strict=True):
        assert found[a:b].tolist() == sorted(rank[list(path)])


@given(
    tree=latent_trees(most=20, shapes=("random", "hubs", "caterpillar"), longest=1.0),
    threshold=st.floats(0.0, 0.3),
)
@settings(max_examples=40, deadline=None)
def test_weakest_edges_are_weaker_than_all_that_they_touch(tree, threshold):
    m, noise = tree.n_observed, 0.1
    error = edge_errors(tree, noise)
    z = np.sqrt(np.log(m / noise**2))
    score = {}
    for u, v in tree.edges.tolist():
        needed = max(threshold, z * error[v]) if min(u, v) >= m else threshold
        if max(u, v) >= m and needed > 0 and tree.length[v] < needed:
            score[u, v] = tree.length[v] / needed
    expected = [
        (value, edge[1])
        for edge, value in score.items()
        if all(value <= other for rival, other in score.items() if {*edge} & {*rival})
    ]
    found = _weakest_edges(tree, noise, threshold)
    assert found.tolist() == [v for _, v in sorted(expected)]


@given(tree=latent_trees(most=20), data=st.data())
@settings(max_examples=40, deadline=None)
def test_contracted_groups_are_those_of_the_tree(tree, data):
    edges = tree.edges[:, 1].tolist()
    candidates = data.draw(st.lists(st.sampled_from(edges), unique=True)) if edges else []
    # Naive: one edge after another, unless two observed nodes would be in one group.
    groups = [{v} for v in range(tree.n_nodes)]
    contracted = []
    for v in candidates:
        one, other = (next(g for g in groups if w in g) for w in (v, int(tree.parent[v])))
        if sum(w < tree.n_observed for w in one | other) < 2:
            groups = [g for g in groups if g not in (one, other)] + [one | other]
            contracted.append(v)
    found = _contract_greedily(tree, np.array(candidates, int))
    assert found == tree.contract_edges(contracted)

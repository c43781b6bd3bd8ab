"""Trees drawn from their posterior, against draws from the prior weighted by the likelihood."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree._kernels.compiling import repeated, tiny
from latentree._kernels.structure import linking, sampling
from latentree._kernels.structure import links as binary
from latentree.distances import Distances
from latentree.errors import DistanceError, TreeError
from latentree.structure import learn_structure, sample_trees
from latentree.structure._sampling import _as_tree, _Component, _state, log_prior
from latentree.tree import Tree, hung_as_leaves

seeds = st.integers(0, 10**6)


def estimated(correlation: np.ndarray, n: float) -> Distances:
    """Distances of n rows with these correlations."""
    d = -np.log(np.abs(correlation))
    np.fill_diagonal(d, 0.0)
    return Distances.from_matrix(d, signs=np.sign(correlation), n_samples=n)


def random_component(seed: int, m: int, n: int = 60) -> tuple[Tree, _Component]:
    """A random tree whose inner nodes have many neighbors, with the correlations of some rows."""
    rng = np.random.default_rng(seed)
    shape = lt.simulate.random_latent_tree(m, rng, 0.3)
    tree = shape.with_lengths(np.where(shape.parent < 0, 0.0, rng.uniform(0.1, 1.0, shape.n_nodes)))
    other = lt.simulate.random_gaussian_model(
        lt.simulate.random_latent_tree(m, rng), rng, (0.3, 0.9), negative_share=0.3
    )
    correlation = np.corrcoef(np.asarray(other.sample(n, rng)), rowvar=False)
    forest = hung_as_leaves(tree, np.arange(m))
    return tree, _Component.of(forest, np.arange(m), estimated(correlation, float(n)))


WHOLE = 1_000  # a radius that no tree here has


def cut_somewhere(part: _Component, radius: int, rng: np.random.Generator):
    """Cut a random link; return both sides of it."""
    m, state = part.variables.size, part.state
    for _ in range(int(rng.integers(0, 4 * m))):
        sampling.step(state, m)
    u, w = state.at
    binary.part(state.links, u, w)
    return [sampling.detach(state, node, m, radius, 0, 0)[0] for node in (u, w)]


def compared(part: _Component, halves, radius: int, rng: np.random.Generator):
    """Compare the two sides near to where the link was."""
    centers = tuple((half.a, half.b) for half in halves)
    m = part.variables.size
    return sampling.compare_around(part.state, *halves, centers, m, radius, True, rng)


# The posterior ----------------------------------------------------------------------------------


def prior_draws(n_draws: int, rng: np.random.Generator):
    """Trees of four variables: the sibling of the first, contracted links, correlations."""
    sibling = rng.integers(1, 4, n_draws)
    signs = rng.choice([-1.0, 1.0], (n_draws, 5))
    # Of the leaves, then of the inner link: the prior is ¾·(1 − ρ²).
    rho = 2.0 * rng.beta(2.0, 2.0, (n_draws, 5)) - 1.0
    inside = rng.random((n_draws, 4)) < 0.03
    contracted = np.column_stack([inside, rng.random(n_draws) < 0.5])
    return sibling, contracted, np.where(contracted, signs, rho)


def log_likelihoods(sibling, rho, correlation, n):
    """Log-likelihood of n rows with these correlations under every one of many trees."""
    side = np.zeros((len(sibling), 4), int)
    side[:, 1:] = np.arange(1, 4) != sibling[:, None]  # 0 with the first, 1 without
    across = side[:, :, None] != side[:, None, :]
    model = rho[:, :4, None] * rho[:, None, :4] * np.where(across, rho[:, 4, None, None], 1.0)
    model[:, np.arange(4), np.arange(4)] = 1.0
    sign, log_det = np.linalg.slogdet(model)
    found = np.full(len(sibling), -np.inf)
    proper = (sign > 0) & (log_det > -12.0)
    fit = np.trace(np.linalg.solve(model[proper], correlation[None]), axis1=1, axis2=2)
    found[proper] = -0.5 * n * (log_det[proper] + fit)
    return found


@pytest.mark.parametrize(("seed", "radius"), [(0, WHOLE), (1, 1), (2, 2)])
def test_shares_are_posterior_probabilities(seed, radius):
    rng = np.random.default_rng([7, seed])
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(4), rng, (0.3, 0.7))
    n = 60
    correlation = np.corrcoef(np.asarray(model.sample(n, rng)), rowvar=False)

    sibling, contracted, rho = prior_draws(1_000_000, rng)
    weight = log_likelihoods(sibling, rho, correlation, n)
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    resolved = [weight[(sibling == j) & ~contracted[:, 4]].sum() for j in (1, 2, 3)]
    inside = [weight[contracted[:, v]].sum() for v in range(4)]

    start, distances = lt.simulate.latent_class(4), estimated(correlation, float(n))
    part = _Component.of(start, np.arange(4), distances)
    part = replace(part, data=part.data._replace(n_states=0.0))  # variances are known
    found = []
    with repeated():
        for _ in range(6_000):
            part.sweep(radius, rng)
            found.append(_as_tree([part], 1.0, ("a", "b", "c", "d")))
    splits = Counter(split for tree in found for split in tree.bipartitions())
    for j, expected in enumerate(resolved, 1):
        split = frozenset({frozenset({0, j}), frozenset(range(1, 4)) - {j}})
        assert splits[split] / len(found) == pytest.approx(expected, abs=0.04)
    for v, expected in enumerate(inside):
        share = np.mean([tree.degrees[v] > 1 for tree in found])
        assert share == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize(("m", "radius"), [(4, WHOLE), (6, 1), (9, 2)])
def test_without_rows_trees_are_drawn_from_the_prior(m, radius):
    rng = np.random.default_rng(m)
    _, part = random_component(3, m)
    part = replace(part, data=part.data._replace(n_rows=1e-9))
    contracted, inside, n_cherries, squares = [], [], [], []
    with repeated():
        for _ in range(8_000):
            part.sweep(radius, rng)
            of_hidden, of_leaves = binary.count_contracted(part.links, m)
            contracted.append(of_hidden)
            inside.append(of_leaves)
            n_cherries.append(cherries(part.links, m))
            rho = part.links.rho[part.links.neighbor >= 0]
            squares.append(np.mean(rho[np.abs(rho) < 1.0] ** 2))
    shares = np.bincount(contracted, minlength=m - 2) / len(contracted)
    np.testing.assert_allclose(shares, 1.0 / (m - 2), atol=0.025)
    shares = np.bincount(n_cherries, minlength=m // 2 + 1)[2:] / len(n_cherries)
    np.testing.assert_allclose(shares, 1.0 / (m // 2 - 1), atol=0.025)
    assert np.mean(inside) / m == pytest.approx(0.03, abs=0.004)
    assert np.mean(squares) == pytest.approx(0.2, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(4, 9))
@example(4253, 5)
def test_weights_of_links_are_ratios_of_dense_likelihoods(seed, m):
    """The likelihood of a link at its most likely c, against that of the whole tree with it."""
    _, part = random_component(seed, m)
    rng = np.random.default_rng(seed)
    with repeated():
        pairs = compared(part, cut_somewhere(part, WHOLE, rng), WHOLE, rng)
        n = part.data.n_rows
        sampling.weigh_rows(pairs, n)
    first, second = pairs.first, pairs.second
    a, b = (int(rng.integers(0, side.variance.size)) for side in (first, second))
    # The joint covariance of all nodes and points of both sides, linked at a and b by ρ.
    model, seen = joint_model(first, second, (a, b), m)
    largest = np.sqrt(first.variance[a] * second.variance[b])
    c = min(pairs.likely[a, b], largest)
    sign = np.sign(pairs.covariance[a, b])
    data = part.state.messages.shown[:m][np.ix_(seen, seen)]

    def log_likelihood(rho: float) -> float:
        sigma = model(rho)
        fit = np.trace(np.linalg.solve(sigma, data))
        return float(-0.5 * n * (np.linalg.slogdet(sigma)[1] + fit))

    best = log_likelihood(sign * min(c / largest, 0.999999))
    gain = best - log_likelihood(0.0)
    r = abs(pairs.covariance[a, b])
    s = 0.5 * (first.spread[a] + second.spread[b])
    expected = -0.5 * n * (np.log(1 - c * c) + 2 * (s * c * c - r * c) / (1 - c * c))
    assert gain == pytest.approx(expected, rel=1e-4, abs=1e-4)
    # What is left of n rows for an estimate of c, scaled by the data, or of columns with K states.
    known = (1 + c * c) / (1 - c * c) ** 2
    for n_states, precision in (
        (0.0, known),
        (1.0, 1 / (1 - c * c) ** 2),
        (2.0, 1 / (1 - c * c)),
        (3.0, 1 / ((1 - c) * (1 + 2 * c))),
    ):
        assert linking.rows_known_as_well(c, n, n_states) * known == pytest.approx(n * precision)
    if abs(s - 1.0) < 0.2:  # as in a tree that fits: nothing near by is more likely
        for other in (0.97 * c, min(1.03 * c, largest)):
            assert log_likelihood(sign * min(other / largest, 0.999999)) <= best + 0.01


# Cases of a normal of mean a and variance 1 between ±b: inside, near the end, beyond it, narrow.
CASES = [(0.0, 20.0), (3.0, 20.0), (19.0, 20.0), (20.5, 20.0), (26.0, 20.0), (80.0, 20.0)]
CASES += [(0.5, 1e-6), (0.3, 0.4), (0.9, 0.4), (6.0, 0.4), (2.0, 1.5)]


def weighed(x, a, b):
    """A normal density times the prior, relative to its height at a, or at b if a is beyond."""
    height = np.exp(0.5 * max(a - b, 0.0) ** 2 - 0.5 * (x - a) ** 2)
    return 1.5 * (1.0 - (x / b) ** 2) * height


def integral(a, b, end):
    """∫ of that up to an end, by many points where it is not negligible."""
    low = max(-b, min(a, b) - 9.0)
    if low >= end:
        return 0.0
    x = np.linspace(low, end, 200_001)
    return float(np.trapezoid(weighed(x, a, b), x))


@pytest.mark.parametrize(("a", "b"), CASES)
@pytest.mark.parametrize("is_tiny", [True, False])
def test_integrals_over_possible_correlations(a, b, is_tiny):
    with tiny(True) if is_tiny else repeated():
        found = linking.possible_share(a, b)
    expected = integral(a, b, min(b, a + 9.0)) / np.sqrt(2.0 * np.pi)
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("a", "b"), CASES)
def test_draws_of_correlations_are_those_of_their_density(a, b):
    rng, sigma = np.random.default_rng(0), 0.01
    with repeated():
        drawn = [linking.draw_correlation(-a * sigma, sigma, b * sigma, rng) for _ in range(4_000)]
    x = -b * np.array(drawn)
    assert np.abs(x).max() <= b
    whole = integral(a, b, min(b, a + 9.0))
    for share in (0.1, 0.5, 0.9):
        below = integral(a, b, float(np.quantile(x, share))) / whole
        assert below == pytest.approx(share, abs=0.025)  # three standard errors


def joint_model(first, second, ends, m):
    """Covariances of the observed nodes of two sides, by the correlation of a link between ends."""
    seen, loadings, within = [], [], []
    for side, end in zip((first, second), ends, strict=True):
        nodes, size = side.nodes, side.nodes.size
        edges = [(int(side.above[k]), k, side.rho[k]) for k in range(1, size)]
        if end >= size:  # a point on a link splits it
            k = end - size + 1
            above, _, rho = edges.pop(k - 1)
            lower = abs(rho) ** side.share[k]
            edges += [(above, size, rho / lower), (size, k, lower)]
            end = size
        covariance = tree_covariance(edges, max(size, end + 1))
        observed = [k for k, v in enumerate(nodes) if v < m]
        seen += [int(nodes[k]) for k in observed]
        loadings.append(covariance[observed, end])
        within.append(covariance[np.ix_(observed, observed)])

    def model(rho: float) -> np.ndarray:
        across = rho * np.outer(*loadings)
        return np.block([[within[0], across], [across.T, within[1]]])

    return model, seen


def tree_covariance(edges, n):
    """Covariances of all nodes of a tree with unit variances: products of ρ along paths."""
    covariance = np.eye(n)
    known, todo = {0}, list(edges)
    while todo:
        above, below, rho = next(e for e in todo if (e[0] in known) != (e[1] in known))
        todo.remove((above, below, rho))
        old, new = (above, below) if above in known else (below, above)
        others = sorted(known)
        covariance[new, others] = covariance[others, new] = rho * covariance[old, others]
        known.add(new)
    return covariance


# Trees and links --------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(4, 12))
def test_a_start_is_its_own_tree(seed, m):
    tree, part = random_component(seed, m)
    names = tuple(f"x{j}" for j in range(m))
    again = _as_tree([part], 1.0, names)
    assert again.same_structure(tree)
    np.testing.assert_allclose(again.path_lengths(), tree.path_lengths(), atol=1e-4)


@pytest.mark.parametrize("is_tiny", [True, False])
def test_what_was_in_the_memory_before_does_not_matter(is_tiny):
    found = []
    for filler in (0.0, np.nan, np.inf):
        _, part = random_component(3, 7)
        weight, span = part.state.messages.weight, part.state.messages.span
        beyond = (np.arange(7) < span[:, :1]) | (np.arange(7) >= span[:, 1:])
        weight[beyond] = filler
        rng = np.random.default_rng(0)
        with tiny(True) if is_tiny else repeated():
            for _ in range(5):
                part.sweep(2, rng)
        found.append(part.links)
    for other in found[1:]:
        np.testing.assert_array_equal(other.neighbor, found[0].neighbor)
        np.testing.assert_array_equal(other.rho, found[0].rho)


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(4, 12), st.integers(1, 4))
def test_moves_keep_a_binary_tree_its_counts_and_its_messages(seed, m, radius):
    _, part = random_component(seed, m)
    rng, (links, messages, at, counts, near, _) = np.random.default_rng(seed), part.state
    with repeated():
        for _ in range(40):
            sampling.move(part.state, m, part.data, part.prior, radius, 1, rng)
            assert tuple(counts) == (*binary.count_contracted(links, m), cherries(links, m))
        again = _state(links, messages.shown[:m].copy())
        while tuple(again.at) != tuple(at):
            sampling.step(again, m)
    degree = (links.neighbor >= 0).sum(axis=1)
    assert (degree[:m] == 1).all()
    assert (degree[m:] == 3).all()
    assert not near.is_inner.any()
    assert _as_tree([part], 1.0, tuple("abcdefghijkl"[:m])).n_observed == m
    fresh = again.messages
    np.testing.assert_array_equal(messages.toward, fresh.toward)
    np.testing.assert_array_equal(messages.n_variables, fresh.n_variables)
    np.testing.assert_allclose(messages.variance, fresh.variance, rtol=1e-9)
    np.testing.assert_allclose(messages.shown, fresh.shown, rtol=1e-7, atol=1e-9)
    for node in range(2 * m - 2):
        np.testing.assert_array_equal(messages.span[node], fresh.span[node])
        inside = slice(*fresh.span[node])
        np.testing.assert_allclose(
            messages.weight[node, inside], fresh.weight[node, inside], rtol=1e-7, atol=1e-9
        )


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(5, 12), st.integers(0, 3))
@pytest.mark.parametrize("is_tiny", [True, False])
def test_messages_tell_a_part_all_that_the_whole_knows(is_tiny, seed, m, radius):
    _, part = random_component(seed, m)
    rng = np.random.default_rng(seed)
    with tiny(True) if is_tiny else repeated():
        halves = cut_somewhere(part, radius, rng)
        few = compared(part, halves, radius, rng)
        all_places = compared(part, halves, WHOLE, rng)
        rows = []
        for some, whole in ((few.first, all_places.first), (few.second, all_places.second)):
            size = some.nodes.size
            places = [int(np.flatnonzero(whole.nodes == node)[0]) for node in some.nodes]
            rows.append(places)
            for position in range(1, size):
                link = {int(some.nodes[position]), int(some.nodes[some.above[position]])}
                assert len(link) == 2
    np.testing.assert_allclose(
        few.covariance[: len(rows[0]), : len(rows[1])],
        all_places.covariance[np.ix_(*rows)], rtol=1e-6, atol=1e-8,
    )  # fmt: skip
    for some, whole, places in (
        (few.first, all_places.first, rows[0]),
        (few.second, all_places.second, rows[1]),
    ):
        n = len(places)
        np.testing.assert_allclose(some.variance[:n], whole.variance[places], rtol=1e-6)
        np.testing.assert_allclose(some.spread[:n], whole.spread[places], rtol=1e-6)


def cherries(links, m):
    """Number of hidden nodes with two leaves or more, as the definition says."""
    near = (links.neighbor[m:] >= 0) & (links.neighbor[m:] < m)
    return int((near.sum(axis=1) >= 2).sum())


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(5, 12))
def test_cherries_of_places_are_those_of_the_tree_with_the_link(seed, m):
    _, part = random_component(seed, m)
    rng, state = np.random.default_rng(seed), part.state
    with repeated():
        halves = cut_somewhere(part, WHOLE, rng)
        fewest = binary.count_cherries(state.links, m) - sum(half.a >= 0 for half in halves)
        pairs = compared(part, halves, WHOLE, rng)
        for half, side in zip(halves, (pairs.first, pairs.second), strict=True):
            place = int(rng.integers(0, side.place_row.size))
            fewest += int(side.place_class[place]) // 4
            sampling.link_at(state, side, place, half.node, rng)
        binary.join(state.links, *(half.node for half in halves), 0.5)
    assert cherries(state.links, m) == fewest


def all_binary_trees(m):
    """Neighbor lists of all binary trees over m leaves, as sets of frozen edges."""
    trees = [[(0, "h0"), (1, "h0"), (2, "h0")]]
    for leaf in range(3, m):
        grown = []
        for edges in trees:
            for k, (a, b) in enumerate(edges):
                new = f"h{leaf - 2}"
                grown.append([*edges[:k], *edges[k + 1 :], (a, new), (new, b), (leaf, new)])
        trees = grown
    return trees


@pytest.mark.parametrize("m", [4, 5, 6, 7])
def test_numbers_of_trees_with_cherries(m):
    counts = Counter()
    for edges in all_binary_trees(m):
        near = Counter(
            b if isinstance(a, int) else a
            for a, b in edges
            if isinstance(a, int) != isinstance(b, int)
        )
        counts[sum(count >= 2 for count in near.values())] += 1
    prior = log_prior(m)
    assert prior.by_cherries.size == m // 2 + 1
    for c, count in counts.items():
        assert np.exp(prior.by_cherries[c]) == pytest.approx(count)
    assert np.exp(prior.by_contracted).sum() == pytest.approx(2.0 ** (m - 3))
    np.testing.assert_allclose(np.exp(-np.diff(prior.by_inside)), 0.03 / 0.97)


# Samples ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "symmetric"])
def test_compiled_and_plain_kernels_draw_the_same_trees(family):
    tree = lt.simulate.random_latent_tree(9, 3)
    if family == "gaussian":
        model = lt.simulate.random_gaussian_model(tree, 3, (0.3, 0.9), negative_share=0.4)
    else:
        model = lt.DiscreteTreeModel.symmetric(tree, 3, 0.1)
    rows = lt.as_table(model.sample(200, 1), schema=model.schema)
    distances = lt.information_distances(rows)
    start = learn_structure(distances, "clnj")
    with tiny(True):
        plain = sample_trees([start], distances, 15, 0, n_skipped=0)
    with repeated():
        compiled = sample_trees([start], distances, 15, 0, n_skipped=0)
    for one, other in zip(plain, compiled, strict=True):
        assert one.same_structure(other)
        np.testing.assert_allclose(one.path_lengths(), other.path_lengths(), rtol=1e-8, atol=1e-9)


def test_the_same_trees_on_any_number_of_threads(monkeypatch):
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(14), 0)
    distances = lt.information_distances(model.sample(200, 1))
    starts = [learn_structure(distances, name) for name in ("rg", "clnj")]
    found = []
    for n_threads in ("1", "2"):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", n_threads)
        found.append(sample_trees(starts, distances, 5, 3, n_skipped=2))
    assert all(a.equals(b) for a, b in zip(*found, strict=True))
    other = sample_trees(starts, distances, 5, 4, n_skipped=2)
    assert not all(a.equals(b) for a, b in zip(found[0], other, strict=True))


def test_components_stay_apart_and_small_ones_as_they_are():
    rng = np.random.default_rng(0)
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.7, 0.8))
    pair = rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 2))
    three = rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 3))
    X = np.hstack([np.asarray(model.sample(500, 1)), pair, three, rng.normal(size=(500, 1))])
    groups = np.repeat([0, 1, 2, 3], [6, 2, 3, 1])
    distances = replace(lt.information_distances(X), components=groups)
    start = learn_structure(distances, "rg")
    assert np.array_equal(start.components[:12], groups)
    for tree in sample_trees([start], distances, 5, 0):
        assert np.array_equal(tree.components[:12], start.components[:12])
        assert tree.names[:12] == start.names[:12]
        pair = [6, 7]
        np.testing.assert_allclose(
            tree.path_lengths(pair, pair), start.path_lengths(pair, pair), atol=1e-4
        )


def test_equal_columns_are_sampled():
    rows = np.asarray(
        lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0).sample(300, 1)
    )
    rows = np.column_stack([rows, rows[:, 0], -rows[:, 1]])
    with pytest.warns(lt.errors.DataWarning, match="duplicate columns"):
        distances = lt.information_distances(rows)
    start = learn_structure(distances, "clnj")
    for tree in sample_trees([start], distances, 10, 0):
        assert np.isfinite(tree.length).all()
        assert tree.path_lengths([0], [6])[0, 0] < 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_one_of_three_variables_may_be_inside(seed):
    rng, n = np.random.default_rng([8, seed]), 60
    star = lt.simulate.latent_class(3)
    rows = np.asarray(lt.simulate.random_gaussian_model(star, rng, (0.5, 0.8)).sample(n, rng))
    correlation = np.corrcoef(rows, rowvar=False)
    inside = rng.random((200_000, 3)) < 0.03
    rho = np.where(
        inside, rng.choice([-1.0, 1.0], inside.shape), 2 * rng.beta(2, 2, inside.shape) - 1
    )
    model = rho[:, :, None] * rho[:, None, :]
    model[:, np.arange(3), np.arange(3)] = 1.0
    weight = np.zeros(len(model))
    sign, log_det = np.linalg.slogdet(model)
    proper = (sign > 0) & (log_det > -12.0)
    fit = np.trace(np.linalg.solve(model[proper], correlation[None]), axis1=1, axis2=2)
    weight[proper] = np.exp(-0.5 * n * (log_det[proper] + fit - np.min(log_det[proper] + fit)))
    expected = (weight[:, None] * inside).sum(axis=0) / weight.sum()

    part = _Component.of(star, np.arange(3), estimated(correlation, float(n)))
    part = replace(part, data=part.data._replace(n_states=0.0))
    with repeated():
        found = []
        for _ in range(8_000):
            part.sweep(WHOLE, rng)
            found.append(_as_tree([part], 1.0, ("a", "b", "c")).degrees[:3] > 1)
    np.testing.assert_allclose(np.mean(found, axis=0), expected, atol=0.03)


def test_wrong_starts_and_numbers_are_refused():
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0)
    distances = lt.information_distances(model.sample(100, 0))
    for wrong in (0, -1, 2.5):
        with pytest.raises(DistanceError, match="n_trees is"):
            sample_trees([model.tree], distances, wrong)
    renamed = Tree(model.tree.parent, n_observed=6, names=[*"fedcba", "h1", "h2"])
    for other in (lt.simulate.double_star(4), renamed):
        with pytest.raises(TreeError, match="in the same order"):
            sample_trees([other], distances, 2)


@pytest.mark.parametrize("n", [2.0, 1e7, 1e20])
def test_few_and_many_rows_are_sampled(n):
    rng = np.random.default_rng(0)
    correlation = np.corrcoef(rng.normal(size=(40, 14)) @ rng.normal(size=(14, 14)), rowvar=False)
    start = lt.simulate.random_latent_tree(14, 0)
    found = sample_trees([start], estimated(correlation, n), 3, 0, n_skipped=0)
    assert all(np.isfinite(tree.length).all() for tree in found)


def test_exact_distances_leave_nothing_to_sample():
    distances = Distances.from_matrix(lt.simulate.double_star(6).path_lengths())
    with pytest.raises(DistanceError, match="no number of samples"):
        sample_trees([lt.simulate.double_star(6)], distances, 2)


def test_time_and_interrupts_end_it():
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0)
    distances = lt.information_distances(model.sample(200, 1))
    start = [learn_structure(distances, "rg")]
    assert len(sample_trees(start, distances, 50, 0, n_skipped=0, time_limit=0.0)) == 1
    seen = []

    def stop(done: int, total: int, message: str) -> None:
        seen.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    found = sample_trees(start, distances, 50, 0, n_skipped=0, progress=stop)
    whole = sample_trees(start, distances, 2, 0, n_skipped=0)
    assert all(a.equals(b) for a, b in zip(found, whole, strict=True))
    assert seen == [(1, 50), (2, 50)]

"""Shapes and parameters of simulated trees and models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentree import simulate
from latentree.errors import ModelError, TreeError


def hidden_degrees(tree):
    return tree.degrees[tree.hidden].tolist()


# Shapes -----------------------------------------------------------------------------------------


def test_the_papers_trees():
    double, chain = simulate.double_star(80), simulate.hidden_markov(80)
    assert (double.n_observed, double.n_hidden) == (80, 2)
    assert hidden_degrees(double) == [41, 41]
    assert (chain.n_observed, chain.n_hidden) == (80, 78)
    assert hidden_degrees(chain) == [3] * 78
    complete = simulate.complete_tree(5, 3)
    assert (complete.n_observed, complete.n_hidden) == (81, 25)
    assert hidden_degrees(complete) == [5] * 25
    assert complete.degrees[0] == 5
    assert complete.roots.tolist() == [0]
    assert np.all(complete.degrees[1:81] == 1)


@given(st.integers(3, 40))
def test_stars_and_chains(m):
    assert hidden_degrees(simulate.latent_class(m)) == [m]
    chain = simulate.hidden_markov(m)
    assert chain.n_hidden == m - 2
    assert set(hidden_degrees(chain)) == {3}
    assert chain.diameter() == m - 1
    if m >= 4:
        assert simulate.double_star(m).diameter() == 3
        assert simulate.double_star(m).same_structure(simulate.caterpillar(m, m // 2)) == (
            m % 2 == 0
        )


@given(st.integers(2, 8), st.integers(3, 50))
def test_caterpillars(leaves, m):
    if m < leaves:
        with pytest.raises(TreeError, match=f"caterpillar needs at least {leaves} observed"):
            simulate.caterpillar(m, leaves)
        return
    tree = simulate.caterpillar(m, leaves)
    assert (tree.n_observed, tree.n_hidden) == (m, m // leaves)
    on_each = np.bincount(tree.parent[:m], minlength=tree.n_nodes)[m:]
    assert on_each.min() >= leaves
    assert on_each.max() - on_each.min() <= 1
    assert tree.diameter() == tree.n_hidden + 1


@given(st.integers(3, 6), st.integers(1, 4))
def test_complete_trees(degree, depth):
    tree = simulate.complete_tree(degree, depth)
    inner = tree.degrees > 1
    assert set(tree.degrees[inner]) == {degree}
    assert inner.sum() == tree.n_hidden + 1
    assert set(tree.hops([0], tree.leaves)[0]) == {depth}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simulate.latent_class(2), "latent_class needs at least 3 observed nodes, not 2"),
        (lambda: simulate.double_star(3), "double_star needs at least 4 observed nodes, not 3"),
        (lambda: simulate.hidden_markov(2), "hidden_markov needs at least 3 observed nodes"),
        (lambda: simulate.caterpillar(9, 1), "leaves ≥ 2, not 1: see hidden_markov"),
        (lambda: simulate.complete_tree(2, 3), "degree ≥ 3 and depth ≥ 1, not 2 and 3"),
        (lambda: simulate.random_latent_tree(0, 1), "needs at least 1 observed nodes, not 0"),
        (lambda: simulate.random_latent_tree(5, 1, inner_share=2), "inner_share is 2, but must"),
        (lambda: simulate.random_latent_tree(5, 1, merge_share=-1), "merge_share is -1, but must"),
    ],
)
def test_shapes_that_cannot_be(make, message):
    with pytest.raises(TreeError, match=message):
        make()


shares = st.sampled_from([0.0, 0.2, 0.5, 1.0])


@given(st.integers(1, 40), st.integers(0, 2**32), shares, shares)
def test_random_trees_are_minimal_and_as_wide_as_asked(m, seed, inner_share, merge_share):
    tree = simulate.random_latent_tree(m, seed, inner_share, merge_share)
    assert tree.n_observed == m
    assert len(tree.roots) == 1
    n_leaves = max(m - round(inner_share * m), min(m, 2))
    assert len(tree.leaves) == (n_leaves if m > 1 else 0)
    assert tree == simulate.random_latent_tree(m, seed, inner_share, merge_share)
    if merge_share == 0:
        assert tree.degrees.max() <= 3
    if merge_share == 1 and inner_share == 0 and m > 2:
        assert tree.same_structure(simulate.latent_class(m))


def test_random_trees_vary_and_have_hubs():
    rng = np.random.default_rng(0)
    drawn = [simulate.random_latent_tree(12, rng) for _ in range(20)]
    assert len({tree.canonical.parent.tobytes() for tree in drawn}) == 20
    assert simulate.random_latent_tree(200, rng, merge_share=0.8).degrees.max() > 10


def test_random_binary_trees_are_uniform():
    """Uniform trees on n leaves have n(n−1)/(2(2n−5)) pairs of sibling leaves, variance n/16.

    Trees grown by splitting leaves have n/3 of them.
    """
    rng, n, runs = np.random.default_rng(1), 200, 40
    pairs = []
    for _ in range(runs):
        tree = simulate.random_latent_tree(n, rng, inner_share=0, merge_share=0)
        partners = tree.hops() == 2
        pairs.append(partners.sum() / 2)
    assert abs(np.mean(pairs) - n * (n - 1) / (2 * (2 * n - 5))) < 4 * np.sqrt(n / 16 / runs)


@given(st.integers(0, 2**32))
def test_random_lengths(seed):
    tree = simulate.random_latent_tree(10, seed)
    longer = simulate.random_lengths(tree, seed, 0.5, 0.75)
    assert longer.same_structure(tree)
    assert np.all((longer.length[longer.parent >= 0] - 0.5) % 1 <= 0.25)
    assert longer == simulate.random_lengths(tree, np.random.default_rng(seed), 0.5, 0.75)


# Parameters -------------------------------------------------------------------------------------


def test_gaussian_models_are_as_strong_as_asked():
    tree = simulate.random_latent_tree(2000, 0)
    edges = tree.parent >= 0
    rho = simulate.random_gaussian_model(tree, 1).correlations[edges]
    assert rho.min() >= 0.2
    assert rho.max() <= 0.8
    assert abs(rho.mean() - 0.5) < 0.02
    mixed = simulate.random_gaussian_model(tree, 1, (0.5, 0.6), negative_share=0.25).correlations
    assert np.abs(mixed[edges]).min() >= 0.5
    assert np.abs(mixed[edges]).max() <= 0.6
    assert abs((mixed[edges] < 0).mean() - 0.25) < 0.05


@pytest.mark.parametrize("n_states", [2, 3, 5])
def test_symmetric_models_are_as_strong_as_asked(n_states):
    tree = simulate.random_latent_tree(300, 0)
    model = simulate.random_symmetric_model(tree, n_states, 1, (0.3, 0.7), negative_share=0.5)
    tables = np.array([model.tables[v] for v in tree.edges[:, 1]])
    theta = tables[:, 0, 1]
    np.testing.assert_allclose(tables.sum(axis=2), 1)
    signed = 1 - n_states * theta
    positive = signed > 0
    assert 0.4 < positive.mean() < 0.6
    assert np.all((signed[positive] >= 0.3 - 1e-9) & (signed[positive] <= 0.7 + 1e-9))
    weak = -signed[~positive] * (n_states - 1)
    assert np.all((weak >= 0.3 - 1e-9) & (weak <= 0.7 + 1e-9))
    for node in tree.edges[:, 1]:
        table = model.tables[node]
        off = table[~np.eye(n_states, dtype=bool)]
        np.testing.assert_allclose(off, off[0])


@pytest.mark.parametrize("n_states", [2, 3, 6])
def test_tables_have_determinants_away_from_zero(n_states):
    tree = simulate.random_latent_tree(300, 0)
    model = simulate.random_discrete_model(tree, n_states, 1, (0.4, 0.9))
    determinants = [abs(np.linalg.det(model.tables[v])) for v in tree.edges[:, 1]]
    assert min(determinants) >= 0.4**n_states * (1 - 1e-9)
    assert model.tables[tree.roots[0]].min() >= 0.5 / n_states


def test_every_node_may_have_its_own_number_of_states():
    tree = simulate.double_star(6)
    states = [2, 3, 4, 5, 2, 2, 7, 3]
    model = simulate.random_discrete_model(tree, states, 3, (0.9, 0.95))
    assert model.n_states.tolist() == states
    favorites = [set(table.argmax(axis=-1)) for table in model.tables[:6]]
    assert [len(found) for found in favorites[:3]] == [2, 3, 4]  # of 7 states above
    assert [len(found) for found in favorites[3:]] == [3, 2, 2]  # of 3 states above


def test_models_are_drawn_again_from_the_same_seed():
    tree = simulate.double_star(6)
    for draw in (
        lambda rng: simulate.random_gaussian_model(tree, rng).correlations,
        lambda rng: simulate.random_symmetric_model(tree, 3, rng).theta,
        lambda rng: simulate.random_discrete_model(tree, 3, rng).theta,
    ):
        np.testing.assert_array_equal(draw(7), draw(np.random.default_rng(7)))
        assert not np.array_equal(draw(7), draw(8))


@pytest.mark.parametrize("strength", [(0.5, 0.2), (-0.1, 0.5), (0.5, 1.5)])
def test_strengths_that_cannot_be(strength):
    tree = simulate.double_star(4)
    for draw in (
        lambda: simulate.random_gaussian_model(tree, 0, strength),
        lambda: simulate.random_symmetric_model(tree, 2, 0, strength),
        lambda: simulate.random_discrete_model(tree, 2, 0, strength),
    ):
        with pytest.raises(ModelError, match="must be a range within 0 to 1"):
            draw()
    with pytest.raises(ModelError, match="negative_share is 2"):
        simulate.random_gaussian_model(tree, 0, negative_share=2)
    with pytest.raises(ModelError, match="at least one state, got 0"):
        simulate.random_discrete_model(tree, 0, 0)

"""From samples: accuracy, stability, forests, and every kind of bad input."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.structure.shapes import (
    is_minimal,
    latent_trees,
    permuted,
    robinson_foulds,
    sampled_correlations,
    sampled_distances,
    with_lengths,
)

from latentree import simulate, structure
from latentree.distances import Distances, information_distances
from latentree.errors import DataWarning, DistanceError
from latentree.structure import _regraft as regraft
from latentree.structure._blocks import Block
from latentree.structure._contraction import contract_short
from latentree.structure._lengths import fit_lengths
from latentree.structure._regraft import regraft_weak_links
from latentree.structure._spanning import spanning_edges
from latentree.tree import Tree

METHODS = list(structure.METHODS)
LATENT = ["rg", "nj", "snj", "clrg", "clnj"]


def _paper_tree(tree, rng):
    return with_lengths(tree, -np.log(rng.uniform(0.2, 0.8, tree.n_nodes)))


# Accuracy ---------------------------------------------------------------------------------------


def test_recursive_grouping_finds_the_double_star():
    rng = np.random.default_rng(11)
    found = 0
    for _ in range(10):
        tree = _paper_tree(simulate.double_star(80), rng)
        d = Distances.from_matrix(sampled_distances(tree, 1000, rng), n_samples=1000)
        found += structure.recursive_grouping(d).same_structure(tree)
    assert found >= 9


@pytest.mark.parametrize(("family", "n_states"), [("symmetric", 4), ("discrete", 3)])
def test_many_states_are_as_easy_as_two(family, n_states):
    # d = −(K−1)·log|r|: taken for −log|r|, a chain of 18 hidden nodes looked like 20 strangers.
    draw = getattr(simulate, f"random_{family}_model")
    model = draw(simulate.hidden_markov(20), n_states, 0, (0.6, 0.8))
    distances = information_distances(model.sample(20_000, 1), family)
    assert distances.exponent == n_states - 1
    for method in ("rg", "clrg", "clnj"):
        learned = structure.learn_structure(distances, method)
        assert robinson_foulds(learned, model.tree) <= 1
        lengths, true = (t.path_lengths().sum() for t in (learned, model.distance_tree()))
        assert lengths == pytest.approx(true, rel=0.1)


@pytest.mark.parametrize(
    ("method", "limit"), [("rg", 1), ("nj", 4), ("snj", 2), ("clrg", 6), ("clnj", 6)]
)
def test_the_complete_tree_from_ten_thousand_samples(method, limit):
    rng = np.random.default_rng(12)
    distances = []
    for _ in range(4):
        tree = _paper_tree(simulate.complete_tree(5, 3), rng)
        d = Distances.from_matrix(sampled_distances(tree, 10_000, rng), n_samples=10_000)
        distances.append(robinson_foulds(structure.learn_structure(d, method), tree))
    assert np.mean(distances) <= limit


@pytest.mark.parametrize("method", LATENT)
def test_neighbor_joining_and_others_do_not_invent_hidden_nodes(method):
    rng = np.random.default_rng(13)
    tree = _paper_tree(simulate.latent_class(40), rng)
    d = Distances.from_matrix(sampled_distances(tree, 5000, rng), n_samples=5000)
    assert structure.learn_structure(d, method).n_hidden <= 2


@pytest.mark.parametrize("method", LATENT)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
def test_a_perturbation_of_the_last_digits_changes_nothing(method, seed):
    rng = np.random.default_rng(seed)
    tree = _paper_tree(simulate.random_latent_tree(25, rng), rng)
    d = sampled_distances(tree, 300, rng)
    noise = 1e-13 * rng.normal(size=d.shape)
    other = np.abs(d + np.triu(noise, 1) + np.triu(noise, 1).T)
    learned = [
        structure.learn_structure(Distances.from_matrix(x, n_samples=300), method)
        for x in (d, other)
    ]
    assert learned[0].same_structure(learned[1])


@pytest.mark.parametrize("method", LATENT)
@given(seed=st.integers(0, 10**6))
@example(seed=22066)  # whose lengths converge slowly
@settings(max_examples=5, deadline=None)
def test_the_order_of_the_variables_does_not_matter(method, seed):
    rng = np.random.default_rng(seed)
    tree = _paper_tree(simulate.random_latent_tree(25, rng), rng)
    d = sampled_distances(tree, 300, rng)
    order = rng.permutation(25)
    direct = structure.learn_structure(Distances.from_matrix(d, n_samples=300), method)
    turned = structure.learn_structure(
        Distances.from_matrix(d[np.ix_(order, order)], n_samples=300), method
    )
    assert turned.equals(permuted(direct, order), 1e-6)


# What is always true ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(m=st.integers(1, 14), seed=st.integers(0, 10**6), n=st.sampled_from([None, 3, 100]))
@settings(max_examples=25, deadline=None)
@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")  # three rows show no dependence
def test_any_matrix_gives_a_minimal_tree(method, m, seed, n):
    rng = np.random.default_rng(seed)
    kind = seed % 4
    d = rng.exponential(1.0, (m, m)) if kind else rng.integers(0, 3, (m, m)).astype(float)
    if kind == 3:
        d = np.minimum(d, 18.4) * 0.0
    d = np.triu(d, 1) + np.triu(d, 1).T
    for options in ({}, {"exact": True})[: 2 if method in LATENT else 1]:
        tree = structure.learn_structure(Distances.from_matrix(d, n_samples=n), method, **options)
        assert tree.n_observed == m
        assert is_minimal(tree)
        assert tree.n_edges == tree.n_nodes - tree.roots.size
        assert n is not None or tree.roots.size == 1


@pytest.mark.parametrize("method", METHODS)
def test_duplicate_columns(method):
    rng = np.random.default_rng(2)
    tree = _paper_tree(simulate.latent_class(6), rng)
    columns = [0, 1, 2, 3, 4, 5, 0, 1]
    d = sampled_distances(tree, 200, rng)[np.ix_(columns, columns)]
    tree = structure.learn_structure(Distances.from_matrix(d, n_samples=200), method)
    assert is_minimal(tree)
    assert tree.path_lengths([0], [6])[0, 0] <= 0.11


@pytest.mark.parametrize("method", METHODS)
def test_one_two_and_three_variables(method):
    assert structure.learn_structure([[0.0]], method).n_nodes == 1
    two = structure.learn_structure([[0.0, 0.5], [0.5, 0.0]], method)
    assert two.equals(Tree([-1, 0], [0.0, 0.5]))
    star = structure.learn_structure([[0, 2, 3], [2, 0, 3], [3, 3, 0]], method)
    assert star.n_hidden == (0 if method == "chow_liu" else 1)


@pytest.mark.parametrize("method", METHODS)
def test_independent_blocks_make_a_forest(method):
    inf = np.inf
    d = np.full((8, 8), inf)
    d[:3, :3] = 2.0
    d[3:7, 3:7] = 1.5
    np.fill_diagonal(d, 0.0)
    with pytest.warns(DataWarning, match=r"3 blocks .*the smallest: 'x7'"):
        tree = structure.learn_structure(d, method)
    assert len(tree.roots) == 3
    assert tree.components[[0, 1, 2]].tolist() == [tree.components[0]] * 3
    assert len(set(tree.components[[0, 3, 7]])) == 3
    assert tree.n_hidden == (0 if method == "chow_liu" else tree.n_hidden)
    assert is_minimal(tree)


def test_names_are_kept():
    d = Distances.from_matrix([[0, 2, 2], [2, 0, 2], [2, 2, 0]], names=["a", "b", "c"])
    for method in METHODS:
        assert structure.learn_structure(d, method).names[:3] == ("a", "b", "c")


def test_a_weak_link_at_the_wrong_place_is_moved():
    """Two stars tied together by a far too long way round: the link goes back to their centers."""
    rng = np.random.default_rng(9)
    centers = simulate.caterpillar(24, 8)  # three stars in a row
    tree = with_lengths(centers, np.where(np.arange(27) < 24, 0.4, 1.2))
    rho = sampled_correlations(tree, 2000, rng)
    d = -np.log(np.clip(np.abs(rho + rho.T) / 2, 1e-8, 1.0))
    np.fill_diagonal(d, 0.0)
    signs = np.where(rho + rho.T < 0, -1, 1)
    distances = Distances.from_matrix(d, signs=signs, n_samples=2000.0)
    block = Block(distances, spanning_edges(distances))
    first, last = tree.hidden[0], tree.hidden[-1]
    wrong = [(a, b) for a, b in tree.edges.tolist() if {a, b} != {first, first + 1}]
    lengths = [tree.path_lengths([a], [b]).item() for a, b in wrong]
    wrong_tree = Tree.from_edges([*wrong, (first, last)], 24, [*lengths, 1.2], minimal=True)
    assert not wrong_tree.same_structure(tree)
    moved = regraft_weak_links(fit_lengths(wrong_tree, block), block, 0.1)
    assert moved.same_structure(tree)


def test_a_weak_link_finds_its_place_in_the_middle_of_edges():
    # Without the link both its ends, which have three neighbors, are no nodes at all.
    tree = simulate.hidden_markov(16)
    chain = np.flatnonzero((tree.parent >= 0) & (np.arange(tree.n_nodes) >= tree.n_observed))
    link = chain[chain.size // 2]
    rho = np.where(np.arange(tree.n_nodes) < tree.n_observed, 0.35, 0.6)
    rho[[link, tree.parent[link]]] = 0.25
    tree = tree.with_lengths(np.where(tree.parent < 0, 0.0, -np.log(rho)))
    d = tree.path_lengths()
    distances = Distances.from_matrix(d, signs=np.ones(d.shape), n_samples=100_000.0)
    block = Block(distances, spanning_edges(distances))
    far = (int(chain[-2]), int(chain[0]))
    wrong = fit_lengths(regraft._moved(tree, regraft.RegraftMove(0.0, int(link), far)), block)
    assert robinson_foulds(wrong, tree) > 5
    assert regraft_weak_links(wrong, block, 0.1).same_structure(tree)


# Parts ------------------------------------------------------------------------------------------


def test_contraction_drops_the_length_and_does_not_cascade():
    #  0 – h(0.5), 1 – h(0.5), h – g (0.05), g – 2 (0.5), g – k (0.09), k – 3 (0.5), k – 4 (0.04)
    edges = [(0, 5), (1, 5), (5, 6), (6, 2), (6, 7), (7, 3), (7, 4)]
    tree = Tree.from_edges(edges, 5, [0.5, 0.5, 0.05, 0.5, 0.15, 0.5, 0.04])
    small = contract_short(tree, 0.1)
    assert small.n_hidden == 1
    lengths = small.path_lengths()
    assert lengths[0, 2] == pytest.approx(1.0)  # the contracted 0.05 is gone
    assert lengths[3, 4] == pytest.approx(0.5)
    assert lengths[2, 4] == pytest.approx(0.65)


def test_two_observed_nodes_never_merge():
    tree = Tree([-1, 0, 3, 1, 3], [0.0, 0.01, 0.01, 0.01, 0.01], n_observed=3 + 2)
    assert contract_short(tree, 0.1).n_nodes == 5
    star = Tree([3, 3, 3, -1], [0.01, 0.02, 0.5, 0.0], n_observed=3)
    assert contract_short(star, 0.1).equals(Tree([-1, 0, 0], [0.0, 0.02, 0.5]))


@given(tree=latent_trees(most=25, longest=1.5))
@settings(max_examples=25, deadline=None)
def test_fitted_lengths_are_exact_on_exact_distances(tree):
    distances = Distances.from_matrix(tree.path_lengths(), n_samples=1000.0)
    block = Block(distances, spanning_edges(distances))
    rng = np.random.default_rng(0)
    start = with_lengths(tree, tree.length * rng.uniform(0.8, 1.25, tree.n_nodes))
    assert np.abs(fit_lengths(start, block).length - tree.length).max() < 1e-3


def test_recursive_grouping_by_thresholds():
    rng = np.random.default_rng(6)
    tree = _paper_tree(simulate.double_star(12), rng)
    d = sampled_distances(tree, 100_000, rng)
    learned = structure.recursive_grouping(d, tau=4.0, epsilon=0.3)
    assert learned.same_structure(tree)


def test_relationships_of_estimates():
    rng = np.random.default_rng(7)
    tree = with_lengths(simulate.double_star(10), np.full(12, 0.5))
    d = Distances.from_matrix(sampled_distances(tree, 20_000, rng), n_samples=20_000)
    relation = structure.node_relationships(d).relation
    same_star = np.equal.outer(tree.parent[:10], tree.parent[:10]) & ~np.eye(10, dtype=bool)
    np.testing.assert_array_equal(relation == structure.Relation.SIBLINGS, same_star)


def test_mutual_information_tree():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, 500)
    b = np.where(rng.random(500) < 0.8, a, rng.integers(0, 3, 500))
    c = (b > 0) ^ (rng.random(500) < 0.1)
    tree = structure.mutual_information_tree(np.column_stack([a, c, b]))
    assert {frozenset(e) for e in tree.edges.tolist()} == {frozenset((0, 2)), frozenset((1, 2))}


def test_progress_is_reported():
    rng = np.random.default_rng(3)
    tree = _paper_tree(simulate.hidden_markov(70), rng)
    for method in METHODS:
        calls = []
        structure.learn_structure(
            tree.path_lengths(), method, progress=lambda *call, calls=calls: calls.append(call)
        )
        assert calls[-1][0] == calls[-1][1]
        assert all(0 <= done <= total for done, total, _ in calls)


# Bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((2, 3)),
        np.zeros(4),
        np.empty((0, 0)),
        [[0.0, 1.0], [2.0, 0.0]],
        [[0.0, -1.0], [-1.0, 0.0]],
        [[0.0, math.nan], [math.nan, 0.0]],
        [[1.0, 1.0], [1.0, 0.0]],
        [["a", "b"], ["c", "d"]],
    ],
)
def test_bad_matrices_are_refused(method, matrix):
    with pytest.raises(DistanceError):
        structure.learn_structure(matrix, method)


def test_unknown_names_are_refused():
    with pytest.raises(DistanceError, match="'clrg'"):
        structure.learn_structure([[0.0]], "magic")
    with pytest.raises(DistanceError, match="'rg' or 'nj'"):
        structure.cl_grouping([[0.0]], "upgma")


def test_nothing_warns_on_ordinary_data():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(100, 1)) + rng.normal(size=(100, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in METHODS:
            structure.learn_structure(information_distances(x), method)

"""From exact distances every learner gives the tree back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.structure.shapes import latent_trees

from latentree import structure
from latentree.distances import as_distances
from latentree.structure._blocks import Block
from latentree.structure._cl_grouping import TreeBuilder
from latentree.structure._recursive_grouping import families, grouping_of
from latentree.structure._spanning import spanning_edges
from latentree.tree import Tree

EXACT = {
    "rg": lambda d: structure.recursive_grouping(d, exact=True),
    "nj": lambda d: structure.neighbor_joining(d, exact=True),
    "snj": lambda d: structure.spectral_neighbor_joining(d, exact=True),
    "clrg": lambda d: structure.cl_grouping(d, "rg", exact=True),
    "clnj": lambda d: structure.cl_grouping(d, "nj", exact=True),
}
# Not told that distances are exact; nothing is contracted but what has no length at all.
RELAXED = {
    "rg": lambda d: structure.recursive_grouping(d, threshold=0.0),
    "nj": lambda d: structure.neighbor_joining(d, threshold=0.0),
    "snj": lambda d: structure.spectral_neighbor_joining(d, threshold=0.0),
    "clrg": lambda d: structure.cl_grouping(d, "rg", threshold=0.0),
    "clnj": lambda d: structure.cl_grouping(d, "nj", threshold=0.0),
}


@pytest.mark.parametrize("method", EXACT)
@given(tree=latent_trees())
@settings(max_examples=60, deadline=None)
def test_exact_learners_give_the_tree_back(method, tree):
    assert EXACT[method](tree.path_lengths()).equals(tree, 1e-8)


@pytest.mark.parametrize("method", RELAXED)
@given(tree=latent_trees())
@settings(max_examples=40, deadline=None)
def test_relaxed_learners_do_so_too_when_nothing_is_said_about_samples(method, tree):
    assert RELAXED[method](tree.path_lengths()).equals(tree, 1e-8)


@pytest.mark.parametrize("method", ["rg", "nj", "snj", "clrg", "clnj"])
@given(tree=latent_trees(shortest=0.2))
@settings(max_examples=25, deadline=None)
def test_the_default_threshold_leaves_longer_edges_alone(method, tree):
    assert structure.learn_structure(tree.path_lengths(), method).equals(tree, 1e-8)


@pytest.mark.parametrize("learners", [EXACT, RELAXED], ids=["exact", "relaxed"])
@pytest.mark.parametrize("method", EXACT)
@given(tree=latent_trees(most=20), exponent=st.floats(0.0, 1.0))
@settings(max_examples=25, deadline=None)
def test_edges_may_be_as_long_as_numbers_are(method, learners, tree, exponent):
    # The longest path is anywhere from 1 to the largest number.
    longest = np.exp(exponent * np.log(np.finfo(float).max)) * (1 - 1e-9)
    long = tree.with_lengths(tree.length / tree.path_lengths().max() * longest)
    assert learners[method](long.path_lengths()).equals(long, 1e-8 * longest)


@given(tree=latent_trees(most=20))
@settings(max_examples=25, deadline=None)
def test_spanning_trees_do_not_depend_on_the_unit(tree):
    distances, unit = 1.0 + tree.path_lengths(), 2.0**1013
    np.fill_diagonal(distances, 0.0)
    plain, long = structure.chow_liu(distances), structure.chow_liu(distances * unit)
    assert plain.with_lengths(plain.length * unit) == long


@pytest.mark.parametrize("method", EXACT)
def test_a_long_chain_with_long_edges(method):
    rng = np.random.default_rng(5)
    m = 60
    parent = np.concatenate([m + np.clip(np.arange(m) - 1, 0, m - 3), m - 1 + np.arange(m - 2)])
    parent[m] = -1
    length = np.where(parent < 0, 0.0, rng.choice([0.01, 5.0], parent.size))
    tree = Tree(parent, length, m)
    assert tree.path_lengths().max() > 100
    assert EXACT[method](tree.path_lengths()).equals(tree, 1e-8)


@given(tree=latent_trees(shapes=("path", "random"), most=30))
@settings(max_examples=40, deadline=None)
def test_chow_liu_gives_trees_without_hidden_nodes_back(tree):
    inner = Tree(np.arange(tree.n_observed) - 1, np.r_[0.0, np.full(tree.n_observed - 1, 0.7)])
    assert structure.chow_liu(inner.path_lengths()).equals(inner, 1e-12)


def _spanning_weight(d, edges):
    return d[edges[:, 0], edges[:, 1]].sum()


@given(m=st.integers(2, 40), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_chow_liu_is_a_minimum_spanning_tree(m, seed):
    from scipy.sparse.csgraph import minimum_spanning_tree

    rng = np.random.default_rng(seed)
    d = rng.uniform(0.1, 3, (m, m))
    d = np.triu(d, 1) + np.triu(d, 1).T
    tree = structure.chow_liu(d)
    assert tree.n_hidden == 0
    assert tree.n_edges == m - 1
    assert _spanning_weight(d, tree.edges) == pytest.approx(minimum_spanning_tree(d).sum())


# CLBlind ----------------------------------------------------------------------------------------


def _is_blind(tree):
    """Inner nodes are hidden, and the nearest observed node of each is its neighbor."""
    if tree.degrees[: tree.n_observed].max() > 1:
        return False
    surrogates = tree.surrogates()
    return all(surrogates[h] in tree.neighbors(h) for h in tree.hidden)


@given(tree=latent_trees(shapes=("leaves", "binary", "hubs", "hidden_markov", "caterpillar")))
@settings(max_examples=40, deadline=None)
def test_cl_blind_is_right_on_its_class_and_never_adds_too_many(tree):
    if tree.degrees[: tree.n_observed].max() > 1:
        return
    learned = structure.cl_blind(tree.path_lengths())
    assert learned.n_hidden <= tree.n_hidden
    if _is_blind(tree):
        assert learned.equals(tree, 1e-8)


@given(m=st.integers(1, 30), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_hidden_chow_liu_trees_are_the_chow_liu_tree_with_inner_variables_doubled(m, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (200, m))
    X[0], X[1] = 0, 1  # no column is constant
    for j in range(1, m):  # a noisy copy of an earlier column
        X[2:, j] = np.where(rng.random(198) < 0.8, X[2:, rng.integers(j)], X[2:, j])
    flat, tree = structure.mutual_information_tree(X), structure.hidden_mutual_information_tree(X)
    inner = np.flatnonzero(flat.degrees > 1)
    assert tree.n_hidden == inner.size
    assert tree.degrees[:m].max(initial=0) <= 1
    assert tree.degrees[m:].min(initial=3) >= 3
    place = np.arange(m)
    for v in inner:  # a hidden node hangs at distance 0 above the variable that it replaces
        place[v] = next(h for h in tree.neighbors(v) if h >= m)
    edges = {frozenset(place[list(edge)]) for edge in flat.edges}
    assert edges <= {frozenset(edge) for edge in tree.edges.tolist()}


@given(m=st.integers(4, 60), leaves=st.integers(1, 3), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_cl_blind_gives_blind_trees_back(m, leaves, seed):
    rng = np.random.default_rng(seed)
    n_hidden = max(m // (leaves + 1) - 1, 1)
    hidden = m + np.arange(n_hidden)
    parent = np.concatenate([hidden[np.arange(m) % n_hidden], np.r_[-1, hidden[:-1]]])
    # Leaves at 0.1 … 0.2 from hidden nodes that are 0.3 … 5 apart: each one's surrogate is a leaf.
    length = np.concatenate([rng.uniform(0.1, 0.2, m), rng.uniform(0.3, 5, n_hidden)])
    length[m] = 0.0
    tree = Tree(parent, length, m)
    if tree.degrees[m:].min() < 3:
        return
    assert _is_blind(tree)
    assert structure.cl_blind(tree.path_lengths()).equals(tree, 1e-8)


# The paper's worked examples --------------------------------------------------------------------


def test_recursive_grouping_on_six_variables_step_by_step():
    """Figure 4: 1 – h2, 2 – h2, 4 – 2, h2 – h3, 3 – h3, h1 – h3, 5 – h1, 6 – h1 (here from 0)."""
    h1, h2, h3 = 6, 7, 8
    edges = [(0, h2), (1, h2), (3, 1), (h2, h3), (2, h3), (h1, h3), (4, h1), (5, h1)]
    lengths = [0.5, 0.7, 0.3, 0.9, 0.4, 0.8, 0.6, 0.2]
    tree = Tree.from_edges(edges, 6, lengths)
    d = tree.path_lengths()

    distances = as_distances(d)
    how = grouping_of(Block(distances, spanning_edges(distances)), exact=True)
    first = families(d, np.zeros(6), how)
    assert first.tolist() == [0, 1, 2, 1, 3, 3]  # {1}, {2, 4}, {3}, {5, 6}

    result = structure.node_relationships(d, exact=True)
    assert result.of(1, 3) is structure.Relation.PARENT
    assert result.of(3, 1) is structure.Relation.CHILD
    assert result.of(4, 5) is structure.Relation.SIBLINGS
    assert result.of(0, 1) is structure.Relation.NEITHER

    active = tree.path_lengths([0, 1, 2, h1], [0, 1, 2, h1])
    # d_5h1 = (d_56 + Φ_561)/2 and d_1h1 = d_15 − d_5h1, as in the paper
    d_5h1 = (d[4, 5] + d[4, 0] - d[5, 0]) / 2
    assert d_5h1 == pytest.approx(0.6)
    assert d[0, 4] - d_5h1 == pytest.approx(active[0, 3])
    second = families(active, np.zeros(4), how)
    assert second.tolist() == [0, 0, 1, 1]  # {1, 2}, {h1, 3}

    assert structure.recursive_grouping(d, exact=True).equals(tree, 1e-12)


@pytest.mark.parametrize("subroutine", ["rg", "nj"])
def test_clrg_neighborhoods_step_by_step(subroutine):
    """Figure 6: RG on {1, 3, 4, 5}, then on {2, 3, 6, h1}; nodes count from 0 here."""
    h1, h2, h3 = 6, 7, 8
    edges = [(0, h2), (3, h2), (h2, h1), (4, h1), (h1, h3), (2, h3), (1, h3), (5, h3)]
    lengths = [1.5, 1.4, 0.3, 0.2, 1.2, 0.3, 1.3, 1.1]
    # 5 (node 4) is the surrogate of h1 and h2, 3 (node 2) of h3
    tree = Tree.from_edges(edges, 6, lengths)
    assert tree.surrogates()[6:].tolist() == [4, 4, 2]
    d = tree.path_lengths()
    spanning = spanning_edges(as_distances(d))
    assert {frozenset(e) for e in spanning.tolist()} == {
        frozenset(e) for e in [(4, 0), (4, 3), (4, 2), (2, 1), (2, 5)]
    }

    builder = TreeBuilder(Block(as_distances(d), spanning), subroutine, exact=True)
    assert sorted(builder.internal) == [2, 4]
    members, distance, _ = builder.neighborhood(4)
    assert sorted(members) == [0, 2, 3, 4]
    builder.regroup(4)
    assert builder.tree().n_hidden == 2

    members, distance, _ = builder.neighborhood(2)
    hidden = [v for v in members if v >= 6]
    assert sorted(v for v in members if v < 6) == [1, 2, 5]
    assert len(hidden) == 1
    places = [h1 if v >= 6 else v for v in members]
    assert distance == pytest.approx(tree.path_lengths(places, places), abs=1e-12)
    builder.regroup(2)
    assert builder.tree().equals(tree, 1e-12)


# TestNodeRelationships --------------------------------------------------------------------------


def _relations_by_definition(d, tolerance=1e-9):
    m = len(d)
    out = np.zeros((m, m), int)
    for i in range(m):
        for j in range(m):
            phi = np.array([d[i, k] - d[j, k] for k in range(m) if k not in (i, j)])
            if i == j or phi.size == 0 or np.ptp(phi) > tolerance:
                continue
            if abs(phi[0] - d[i, j]) <= tolerance:
                out[i, j] = structure.Relation.CHILD
            elif abs(phi[0] + d[i, j]) <= tolerance:
                out[i, j] = structure.Relation.PARENT
            else:
                out[i, j] = structure.Relation.SIBLINGS
    return out


@given(tree=latent_trees(most=25))
@settings(max_examples=40, deadline=None)
def test_relationships_equal_their_definition(tree):
    d = tree.path_lengths()
    result = structure.node_relationships(d, exact=True)
    np.testing.assert_array_equal(result.relation, _relations_by_definition(d))


@pytest.mark.parametrize("seed", range(5))
def test_many_equal_rows_leave_nothing_after_rounding(seed):
    """Spectral joining reflects equal rows again and again: what is left of them underflows."""
    lengths = np.append(np.random.default_rng(seed).choice([0.01, 2.505, 5.0], 55), 0.0)
    star = Tree([55] * 55 + [-1], lengths, n_observed=55)
    assert EXACT["snj"](star.path_lengths()).equals(star, 1e-8)

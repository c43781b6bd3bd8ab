"""Metrics against dense formulas and enumeration."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentree import Tree, metrics, simulate
from latentree.errors import ModelError, TreeError
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from strategies import relabeled, trees

seeds = st.integers(0, 2**32)


@st.composite
def shuffled(draw, tree):
    """The same tree with its variables in another order, under their names."""
    order = np.array([*draw(st.permutations(range(tree.n_observed))), *tree.hidden])
    new = np.append(np.argsort(order), -1)
    names = [tree.names[node] for node in order]
    return Tree(new[tree.parent[order]], tree.length[order], tree.n_observed, names)


def random_tree(m, rng):
    tree = simulate.random_latent_tree(m, rng, rng.choice([0.0, 0.3, 0.6]), rng.choice([0, 0.5]))
    return tree.renamed([f"v{node}" for node in range(m)])


def cut(tree, rng):
    """A forest: the tree with some edges between observed nodes taken out."""
    both = (tree.edges < tree.n_observed).all(axis=1)
    drop = tree.edges[both, 1][rng.random(both.sum()) < 0.5]
    parent = np.array(tree.parent)
    parent[drop] = -1
    return Tree(parent, None, tree.n_observed, tree.names)


# Trees ------------------------------------------------------------------------------------------


@given(trees(max_inner=5), seeds)
def test_robinson_foulds_is_the_symmetric_difference(a, seed):
    m = a.n_observed
    b = simulate.random_latent_tree(m, seed)
    expected = len(a.bipartitions() ^ b.bipartitions())
    assert metrics.robinson_foulds(a, b) == expected
    assert metrics.robinson_foulds(b, a) == expected
    share = metrics.normalized_robinson_foulds(a, b)
    assert share == expected / max(1, a.n_edges + b.n_edges)
    groups = [{s for s in tree.bipartitions() if min(map(len, s)) > 1} for tree in (a, b)]
    apart = len(groups[0] ^ groups[1])
    assert metrics.robinson_foulds(a, b, nontrivial=True) == apart
    share = metrics.normalized_robinson_foulds(a, b, nontrivial=True)
    assert share == apart / max(1, sum(map(len, groups)))
    assert metrics.same_structure(a, b) == (expected == 0)
    assert metrics.hidden_difference(a, b) == a.n_hidden - b.n_hidden


@given(trees(), st.data())
def test_the_same_tree_in_other_order_is_at_distance_zero(tree, data):
    other = data.draw(shuffled(data.draw(relabeled(tree))))
    assert metrics.robinson_foulds(tree, other) == 0
    assert metrics.normalized_robinson_foulds(tree, other) == 0
    assert metrics.same_structure(tree, other)


@given(trees(), st.data())
def test_each_contraction_costs_one(tree, data):
    hidden_edges = [v for above, v in tree.edges if max(v, above) >= tree.n_observed]
    if not hidden_edges:
        return
    smaller = tree.contract_edges([data.draw(st.sampled_from(hidden_edges))])
    other = data.draw(shuffled(smaller))
    assert metrics.robinson_foulds(tree, other) == 1
    assert metrics.hidden_difference(tree, other) == 1
    assert metrics.hidden_difference(other, tree) == -1
    assert not metrics.same_structure(tree, other)


def test_trees_without_edges():
    alone = Tree([-1, -1])
    assert metrics.normalized_robinson_foulds(alone, alone) == 0
    assert metrics.robinson_foulds(alone, Tree([-1, 0])) == 1
    assert metrics.normalized_robinson_foulds(alone, Tree([-1, 0])) == 1


@pytest.mark.parametrize(
    "measure",
    [
        metrics.robinson_foulds,
        metrics.normalized_robinson_foulds,
        metrics.same_structure,
        metrics.hidden_difference,
    ],
)
def test_trees_over_different_variables_are_refused(measure):
    star = simulate.latent_class(3)
    with pytest.raises(TreeError, match="'c' is only in the first"):
        measure(star.renamed(list("abc")), star.renamed(list("abd")))
    with pytest.raises(TreeError, match=r"'x3' is only in the second \(3 and 4 variables, 1 not"):
        measure(star, simulate.latent_class(4))


def test_robinson_foulds_of_large_trees_takes_linear_memory():
    a, b = (simulate.random_latent_tree(100_000, seed, merge_share=0.1) for seed in (1, 1))
    tracemalloc.start()
    assert metrics.robinson_foulds(a, b) == 0
    peak = tracemalloc.get_traced_memory()[1] / (a.n_nodes + b.n_nodes)
    tracemalloc.stop()
    assert peak < 2_000  # bytes a node: takes 170; the sets of variables below edges take 10,000


# Divergences ------------------------------------------------------------------------------------


def dense_divergence(p, q):
    """The textbook formula, with q's variables in the order of p's."""
    order = [q.schema.names.index(name) for name in p.schema.names]
    sigma_p, sigma_q = p.covariance(), q.covariance()[np.ix_(order, order)]
    shift = q.means[order] - p.means
    inverse = np.linalg.inv(sigma_q)
    log_dets = np.linalg.slogdet(sigma_q)[1] - np.linalg.slogdet(sigma_p)[1]
    return 0.5 * (np.trace(inverse @ sigma_p) + shift @ inverse @ shift - len(shift) + log_dets)


def random_gaussian(tree, rng):
    drawn = simulate.random_gaussian_model(tree, rng, (0.1, 0.95), negative_share=0.5)
    m = tree.n_observed
    return GaussianTreeModel(tree, drawn.correlations, rng.normal(size=m), rng.uniform(0.5, 2, m))


@given(seeds, st.integers(1, 12), st.data())
def test_gaussian_divergence_is_the_dense_formula(seed, m, data):
    rng = np.random.default_rng(seed)
    p, q = (random_gaussian(cut(random_tree(m, rng), rng), rng) for _ in range(2))
    order = np.array(data.draw(st.permutations(range(m))))
    tree = metrics.aligned(q.tree, q.tree.renamed([f"v{node}" for node in order]))
    old = [*order, *q.tree.hidden]
    q = GaussianTreeModel(tree, q.correlations[old], q.means[order], q.scales[order])
    found = metrics.kl_divergence(p, q)
    assert found == pytest.approx(dense_divergence(p, q), rel=1e-9, abs=1e-11)
    assert found.standard_error == 0
    assert metrics.kl_divergence(p, p) == pytest.approx(0, abs=1e-11)


def test_gaussian_divergence_of_large_models_needs_no_dense_matrix():
    tree = simulate.random_latent_tree(1000, 0)
    p, q = (simulate.random_gaussian_model(tree, seed) for seed in (0, 1))
    assert metrics.kl_divergence(p, q) == pytest.approx(dense_divergence(p, q), rel=1e-9)


def joint_table(model):
    """Probabilities of all joint states of the observed variables, hidden ones summed out."""
    tree, tables = model.tree, model.tables
    joint = {}
    for states in itertools.product(*map(range, model.n_states)):
        probability = 1.0
        for node, above in enumerate(tree.parent):
            row = tables[node] if above < 0 else tables[node][states[above]]
            probability *= row[states[node]]
        seen = states[: tree.n_observed]
        joint[seen] = joint.get(seen, 0.0) + probability
    return joint


def random_discrete(tree, rng, n_states, labels=None):
    model = simulate.random_discrete_model(tree, n_states, rng, (0.05, 0.9))
    return DiscreteTreeModel(tree, model.tables, labels)


@settings(max_examples=40)
@given(seeds, st.integers(1, 4))
def test_discrete_divergence_is_the_sum_over_states(seed, m):
    rng = np.random.default_rng(seed)
    cardinalities = rng.integers(1, 4, m)
    p, q = (
        random_discrete(tree, rng, [*cardinalities, *rng.integers(2, 4, tree.n_hidden)])
        for tree in (cut(random_tree(m, rng), rng) for _ in range(2))
    )
    joint_p, joint_q = joint_table(p), joint_table(q)
    expected = sum(w * np.log(w / joint_q[x]) for x, w in joint_p.items() if w > 0)
    found = metrics.kl_divergence(p, q)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.standard_error == 0
    assert metrics.kl_divergence(p, p) == pytest.approx(0, abs=1e-12)


def test_states_and_variables_are_matched_by_name():
    chain = Tree([-1, 0], names=["a", "b"])
    p = DiscreteTreeModel(chain, [[0.3, 0.7], [[0.9, 0.1], [0.2, 0.8]]], [["no", "yes"]] * 2)
    turned = Tree([-1, 0], names=["b", "a"])
    joint = np.array([[0.27, 0.03], [0.14, 0.56]])[::-1, ::-1].T  # b × a, yes first
    b = joint.sum(axis=1)
    q = DiscreteTreeModel(turned, [b, joint / b[:, None]], [["yes", "no"]] * 2)
    assert metrics.kl_divergence(p, q) == pytest.approx(0, abs=1e-12)
    assert metrics.kl_divergence(q, p) == pytest.approx(0, abs=1e-12)
    shifted = DiscreteTreeModel(turned, q.tables, [["no", "yes"]] * 2)
    assert metrics.kl_divergence(p, shifted) > 0.1


def test_impossible_states():
    chain = Tree([-1, 0])
    sure = DiscreteTreeModel(chain, [[0.5, 0.5], np.eye(2)])
    unsure = DiscreteTreeModel(chain, [[0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]])
    assert metrics.kl_divergence(unsure, sure) == np.inf
    assert metrics.kl_divergence(sure, unsure) == pytest.approx(np.log(4 / 3))
    assert metrics.kl_divergence(sure, sure) == 0


def test_sampled_divergence_agrees_with_enumeration():
    rng = np.random.default_rng(3)
    tree = simulate.random_latent_tree(8, rng)
    labels = [["low", "middle", "high"]] * 8
    p, q = (random_discrete(tree, rng, 3, labels) for _ in range(2))
    exact = metrics.kl_divergence(p, q)
    drawn = [metrics.kl_divergence(p, q, 4000, seed, max_states=100) for seed in range(8)]
    assert all(abs(value - exact) < 5 * value.standard_error for value in drawn)
    # The spread of the estimates is what their standard errors say.
    assert 0.4 < np.std(drawn, ddof=1) / drawn[0].standard_error < 2
    assert metrics.kl_divergence(p, q, 4000, 0, max_states=100) == drawn[0]
    assert metrics.kl_divergence(p, p, 100, 0, max_states=100) == pytest.approx(0, abs=1e-12)
    with pytest.raises(ModelError, match="n_samples is 1"):
        metrics.kl_divergence(p, q, 1, max_states=100)


def test_sampled_divergence_with_many_variables():
    tree = simulate.hidden_markov(100)  # 2¹⁰⁰ joint states
    p, q = (simulate.random_symmetric_model(tree, 2, seed) for seed in (0, 1))
    found = metrics.kl_divergence(p, q, 2000, 0)
    assert 0 < found.standard_error < 0.1 * found


def test_an_impossible_sample_makes_the_divergence_infinite():
    chain = Tree([-1, 0])
    sure = DiscreteTreeModel(chain, [[0.5, 0.5], np.eye(2)])
    unsure = DiscreteTreeModel.symmetric(chain, 2, 0.25)
    assert metrics.kl_divergence(unsure, sure, 100, 0, max_states=1) == np.inf


def test_models_that_cannot_be_compared():
    star = simulate.latent_class(3)
    gaussian, binary = (
        simulate.random_gaussian_model(star, 0),
        simulate.random_discrete_model(star, 2, 0),
    )
    with pytest.raises(ModelError, match="a gaussian and a discrete model have no divergence"):
        metrics.kl_divergence(gaussian, binary)
    other = simulate.random_gaussian_model(star.renamed(list("abc")), 0)
    with pytest.raises(ModelError, match="'x0' is only in the first"):
        metrics.kl_divergence(gaussian, other)
    ternary = simulate.random_discrete_model(star, 3, 0)
    with pytest.raises(ModelError, match="'x0' has the state 2, which the second model lacks"):
        metrics.kl_divergence(ternary, binary)


def test_divergence_is_a_number():
    value = metrics.Divergence(0.25, 0.0125)
    assert value == 0.25
    assert value + 1 == 1.25
    assert repr(value) == "0.25 ± 0.013"
    assert repr(metrics.Divergence(0.25)) == "0.25"
    again = pickle.loads(pickle.dumps(value))
    assert (again, again.standard_error) == (0.25, 0.0125)


# Scores -----------------------------------------------------------------------------------------


def test_scores_of_weighted_data():
    model = simulate.random_gaussian_model(simulate.double_star(5), 0)
    X = model.sample(30, 1)
    rows = model.log_likelihood(X)
    weights = np.arange(30) / 10
    total, n = rows @ weights, weights.sum()
    assert model.n_parameters == 6 + 2 * 5
    assert metrics.log_likelihood(model, X, weights) == pytest.approx(total)
    assert metrics.bic_score(model, X, weights) == pytest.approx(total - 8 * np.log(n))
    assert metrics.aic_score(model, X, weights) == pytest.approx(total - 16)
    assert metrics.held_out_score(model, X, weights) == pytest.approx(total / n)


def test_weights_are_repetitions():
    model = simulate.random_discrete_model(simulate.double_star(5), 3, 0)
    X = model.sample(20, 1)
    counts = np.arange(20) % 3
    for score in (metrics.log_likelihood, metrics.bic_score, metrics.held_out_score):
        assert score(model, X, counts) == pytest.approx(score(model, np.repeat(X, counts, axis=0)))
    plain = metrics.log_likelihood(model, X)
    assert plain == pytest.approx(model.log_likelihood(X).sum())
    expected = plain - model.n_parameters / 2 * np.log(20)
    assert metrics.bic_score(model, X) == pytest.approx(expected)

"""Discrete models against full enumeration of their joint states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree.inference._expectation as expectation
from enumeration import enumerate_counts, enumerate_joint, random_discrete, random_table
from latentree import Tree
from latentree.data import Schema, Table
from latentree.errors import ModelError
from latentree.inference import chunks
from latentree.inference._patterns import compile_patterns
from latentree.models import DiscreteTreeModel
from latentree.simulate import (
    double_star,
    hidden_markov,
    latent_class,
    random_discrete_model,
    random_latent_tree,
)
from strategies import trees

seeds = st.integers(0, 2**32 - 1)
small_trees = trees(max_inner=3).filter(lambda tree: tree.n_nodes <= 8)


@given(small_trees, seeds, st.sampled_from([0.0, 0.3]), st.booleans())
@settings(max_examples=120, deadline=None)
def test_likelihood_posterior_counts_and_completion_equal_enumeration(tree, seed, missing, zeros):
    rng = np.random.default_rng(seed)
    model = random_discrete(tree, rng, zeros=zeros)
    table = random_table(model, rng, 12, missing, impossible=zeros)
    joint = enumerate_joint(model)
    log_likelihood = model.log_likelihood(table)
    posterior = model.posterior(table, range(tree.n_nodes))
    possible = np.isfinite(log_likelihood)
    for row, codes in enumerate(table.values):
        weights = joint.given(codes)
        z = weights.sum()
        if z == 0:
            assert log_likelihood[row] == -np.inf
            assert np.isnan(posterior.probabilities[row]).all()
            continue
        np.testing.assert_allclose(log_likelihood[row], np.log(z), rtol=1e-10, atol=1e-12)
        for node in range(tree.n_nodes):
            expected = joint.marginal(node, weights / z, model.n_states[node])
            np.testing.assert_allclose(posterior[node][row], expected, atol=1e-10)
    if possible[table.weights > 0].all():
        check_counts(model, table, joint)
    else:
        assert model.expected_counts(table).log_likelihood == -np.inf
    possible_rows = Table(table.values[possible], model.schema)
    if possible.any():
        best = model.complete(possible_rows)
        for codes, states in zip(possible_rows.values, best, strict=True):
            found = joint.probabilities[(joint.states == states).all(axis=1)]
            np.testing.assert_allclose(found, joint.given(codes).max())
            assert ((codes < 0) | (states[: codes.size] == codes)).all()


def check_counts(model, table, joint):
    """Compare the E-step with a sum over rows and joint states."""
    fit = model.expected_counts(table)
    total, counts = enumerate_counts(model, table, joint)
    np.testing.assert_allclose(fit.log_likelihood, total, rtol=1e-9, atol=1e-9)
    for found, expected in zip(fit.tables, counts, strict=True):
        np.testing.assert_allclose(found, expected.reshape(found.shape), atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_counts_of_many_distinct_rows_equal_enumeration(seed):
    """Hundreds of distinct rows: here the E-step runs row by row, not by patterns."""
    rng = np.random.default_rng(seed)
    tree = double_star(6) if seed % 2 else random_latent_tree(6, rng, inner_share=0.0)
    model = random_discrete(tree, rng)
    table = random_table(model, rng, 600, missing=0.3)
    assert len(np.unique(table.values, axis=0)) > 200
    check_counts(model, table, enumerate_joint(model))


@given(trees(max_inner=4), seeds, st.sampled_from([0.0, 0.3]), st.sampled_from([40, 1_000]))
@settings(max_examples=60, deadline=None)
def test_fast_and_robust_counts_agree(tree, seed, missing, n_rows):
    rng = np.random.default_rng(seed)
    model = random_discrete(tree, rng)
    patterns = compile_patterns(tree, model.n_states, random_table(model, rng, n_rows, missing))
    theta = model.layout.reoriented(model.theta, patterns.layout)
    plain = expectation.Expectation(patterns)
    fast = plain._run(theta, plain.scratch())
    robust = expectation.robust_counts(patterns, theta)
    assert fast is not None
    np.testing.assert_allclose(fast.log_likelihood, robust.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(fast.counts, robust.counts, atol=1e-10)


@pytest.mark.parametrize("n_hidden", [2, 4, 5, 14])
def test_a_product_too_small_for_a_number_is_noticed_in_rows(n_hidden):
    """Two columns have a symbol that a state all but excludes, on patterns or row by row."""
    rng = np.random.default_rng(n_hidden)
    tree = Tree([8] * 8 + [-1], n_observed=8)
    n_states = np.array([5] * 8 + [n_hidden])
    model = random_discrete_model(tree, n_states, rng)
    table = random_table(model, rng, 2_000, impossible=True)
    patterns = compile_patterns(tree, n_states, table)
    layout = patterns.layout
    plain = expectation.Expectation(patterns)
    for pair in itertools.permutations(range(8), 2):
        theta = model.layout.reoriented(model.theta, layout)
        for node, small in zip(pair, (1e-230, 1e-60), strict=True):
            layout.table(theta, node)[0, 0] = small
        for left_by_another_pass in plain.scratch():
            left_by_another_pass[:] = 0.0
        assert plain._run(theta, plain.scratch()) is None
        for node in pair:
            layout.table(theta, node)[0, 0] = 0.0
        assert plain._run(theta, plain.scratch()) is not None


@pytest.mark.parametrize("n_rows", [70, 1_500])
@pytest.mark.parametrize("n_hidden", [4, 5, 7, 40])
def test_many_states_are_counted_in_tiles(n_hidden, n_rows):
    """Tables of all remainders by 4 and by 2, and by BLAS, on patterns and row by row."""
    rng = np.random.default_rng(n_hidden)
    tree = random_latent_tree(12, rng, inner_share=0.2)
    n_states = np.append(rng.integers(2, 4, 12), n_hidden + np.arange(tree.n_hidden) % 3)
    model = random_discrete_model(tree, n_states, rng)
    patterns = compile_patterns(tree, n_states, random_table(model, rng, n_rows, missing=0.1))
    theta = model.layout.reoriented(model.theta, patterns.layout)
    plain = expectation.Expectation(patterns)
    fast = plain._run(theta, plain.scratch())
    robust = expectation.robust_counts(patterns, theta)
    assert fast is not None
    np.testing.assert_allclose(fast.log_likelihood, robust.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(fast.counts, robust.counts, atol=1e-10)


@given(small_trees.filter(lambda tree: tree.n_edges > 0), seeds)
@settings(max_examples=60, deadline=None)
def test_edge_posterior_conditional_and_joint_equal_enumeration(tree, seed):
    rng = np.random.default_rng(seed)
    model = random_discrete(tree, rng)
    table = random_table(model, rng, 5, missing=0.4)
    joint = enumerate_joint(model)
    a, b = (int(end) for end in tree.edges[rng.integers(tree.n_edges)])
    shape = model.n_states[a], model.n_states[b]
    for codes, found in zip(table.values, model.edge_posterior(table, a, b), strict=True):
        expected = np.zeros(shape)
        weights = joint.given(codes)
        np.add.at(expected, (joint.states[:, a], joint.states[:, b]), weights / weights.sum())
        np.testing.assert_allclose(found, expected, atol=1e-10)
    first, second = rng.integers(tree.n_nodes, size=2)
    expected = np.zeros((model.n_states[first], model.n_states[second]))
    np.add.at(expected, (joint.states[:, first], joint.states[:, second]), joint.probabilities)
    np.testing.assert_allclose(model.joint(int(first), int(second)), expected, atol=1e-12)
    np.testing.assert_allclose(model.marginal(int(first)), expected.sum(axis=1), atol=1e-12)
    if first != second:
        given_ = model.conditional(int(first), {int(second): 1})
        np.testing.assert_allclose(given_, expected[:, 1] / expected[:, 1].sum(), atol=1e-10)


@given(small_trees, seeds)
@settings(max_examples=40, deadline=None)
def test_rerooting_keeps_the_distribution(tree, seed):
    rng = np.random.default_rng(seed)
    model = random_discrete(tree, rng)
    other = model.rerooted(int(rng.integers(tree.n_nodes)))
    np.testing.assert_allclose(
        enumerate_joint(other).probabilities, enumerate_joint(model).probabilities, atol=1e-13
    )


@given(seeds, st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_determinant_distances_are_additive(seed, n_states):
    rng = np.random.default_rng(seed)
    tree = random_latent_tree(6, rng)
    tables = []
    for node in range(tree.n_nodes):
        noise = rng.dirichlet(np.ones(n_states), None if tree.parent[node] < 0 else n_states)
        mix = np.eye(n_states)[rng.permutation(n_states)] if tree.parent[node] >= 0 else noise
        tables.append(0.5 * noise + 0.5 * mix)
    model = DiscreteTreeModel(tree, tables)
    distances = model.information_distances()
    for i in range(tree.n_nodes):
        for j in range(tree.n_nodes):
            marginal = np.sqrt(np.prod(model.marginal(i)) * np.prod(model.marginal(j)))
            det = np.linalg.det(model.joint(i, j)) / marginal
            np.testing.assert_allclose(distances.dense()[i, j], -np.log(abs(det)), atol=1e-6)
            assert distances.signs()[i, j] == np.sign(det)
    lengths = model.distance_tree().path_lengths(range(tree.n_nodes), range(tree.n_nodes))
    np.testing.assert_allclose(distances.dense(), lengths, atol=1e-9)


@given(seeds, st.integers(2, 4))
@settings(max_examples=30, deadline=None)
def test_symmetric_distances_are_additive_and_give_the_parameters_back(seed, n_states):
    rng = np.random.default_rng(seed)
    tree = random_latent_tree(5, rng)
    crossover = rng.uniform(0.01, 0.8 / n_states, tree.n_nodes)
    model = DiscreteTreeModel.symmetric(tree, n_states, crossover)
    i, j = 0, tree.n_nodes - 1
    theta = model.joint(i, j)[0, 1] * n_states
    expected = -(n_states - 1) * np.log(1 - n_states * theta)
    np.testing.assert_allclose(model.information_distances().dense()[i, j], expected, rtol=1e-9)
    again = DiscreteTreeModel.from_distances(model.distance_tree(), n_states)
    np.testing.assert_allclose(again.theta, model.theta, atol=1e-10)


def test_negative_signs_of_symmetric_models():
    tree = Tree([1, -1], length=[1.0, 0.0])
    model = DiscreteTreeModel.from_distances(tree, 2, signs=[-1, 1])
    np.testing.assert_allclose(model.joint(0, 1)[0, 0], (1 - np.exp(-1)) / 4)
    assert model.information_distances().signs()[0, 1] == -1


def test_samples_follow_the_model_within_statistical_error():
    rng = np.random.default_rng(5)
    model = random_discrete(random_latent_tree(4, rng), rng)
    n = 200_000
    states = model.sample(n, 1, hidden=True)
    joint = enumerate_joint(model)
    base = np.concatenate([[1], np.cumprod(model.n_states[::-1])[:-1]])[::-1]
    counts = np.bincount(states @ base, minlength=len(joint.probabilities))
    p = joint.probabilities
    z = (counts - n * p) / np.sqrt(n * p * (1 - p) + 1)
    assert np.abs(z).max() < 5  # a few thousand cells at most: 5 standard errors
    np.testing.assert_array_equal(model.sample(n, 1), states[:, : model.tree.n_observed])


def test_hidden_draws_follow_the_posterior():
    rng = np.random.default_rng(8)
    model = random_discrete(hidden_markov(4), rng)
    row = np.array([[0, 1, 1, 0]])
    draws = model.sample_hidden(np.repeat(row, 50_000, axis=0), 3)
    for place, node in enumerate(model.tree.hidden):
        share = np.bincount(draws[:, place], minlength=model.n_states[node]) / len(draws)
        np.testing.assert_allclose(share, model.posterior(row)[int(node)][0], atol=0.012)


def test_sparse_data_gives_what_dense_data_gives():
    rng = np.random.default_rng(4)
    tree = random_latent_tree(12, rng)
    model = DiscreteTreeModel.symmetric(tree, 2, rng.uniform(0.05, 0.3, tree.n_nodes))
    codes = (rng.random((300, 12)) < 0.1).astype(np.int8)
    codes[:, 3] = rng.random(300) < 0.95
    sparse = scipy.sparse.csr_array(codes)
    np.testing.assert_allclose(model.log_likelihood(sparse), model.log_likelihood(codes))
    np.testing.assert_allclose(
        model.posterior(sparse).probabilities, model.posterior(codes).probabilities
    )
    for a, b in zip(
        model.expected_counts(sparse).tables, model.expected_counts(codes).tables, strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_no_underflow_with_many_variables():
    m = 100_000
    rng = np.random.default_rng(0)
    star = latent_class(m)
    tables = [np.array([[0.9, 0.1], [0.1, 0.9]])] * m + [np.array([0.5, 0.5])]
    model = DiscreteTreeModel(star, tables)
    codes = (rng.random((2, m)) < 0.5).astype(np.int8)
    codes[1, : m // 2], codes[1, m // 2 :] = 0, 1  # the halves contradict each other
    ones = codes.sum(axis=1)
    sides = np.array(
        [
            np.log(0.5) + ones * np.log(0.1) + (m - ones) * np.log(0.9),
            np.log(0.5) + ones * np.log(0.9) + (m - ones) * np.log(0.1),
        ]
    )
    expected = np.logaddexp(*sides)
    np.testing.assert_allclose(model.log_likelihood(codes), expected, rtol=1e-10)
    np.testing.assert_allclose(model.posterior(codes)["h1"][1], [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(model.expected_counts(codes).log_likelihood, expected.sum())


@pytest.mark.parametrize(("m", "n_states", "crossover"), [(5_000, 2, 0.1), (1_000, 16, 0.02)])
def test_a_long_chain_is_exact_and_scaled(m, n_states, crossover):
    model = DiscreteTreeModel.symmetric(hidden_markov(m), n_states, crossover)
    codes = np.zeros((200, m), np.int8)
    codes[:, ::3] = np.random.default_rng(0).random((200, (m + 2) // 3)) < 0.5
    per_row = model.log_likelihood(codes)
    assert (per_row < -1000).all()
    patterns = compile_patterns(model.tree, model.n_states, Table(codes, model.schema))
    plain = expectation.Expectation(patterns)
    fast = plain._run(model.layout.reoriented(model.theta, patterns.layout), plain.scratch())
    assert fast is not None
    np.testing.assert_allclose(fast.log_likelihood, per_row.sum())


def test_labels_are_kept_from_data_to_samples():
    star = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
    table = [[0.9, 0.1], [0.2, 0.8]]
    labels = [("no", "yes")] * 3
    model = DiscreteTreeModel(star, [table, table, table, [0.5, 0.5]], labels)
    filled = model.impute([["yes", "yes", None], ["no", "no", "yes"]])
    assert filled.tolist() == [["yes", "yes", "yes"], ["no", "no", "yes"]]
    assert set(model.sample(20, 0).ravel()) == {"no", "yes"}
    assert model.conditional("a", {"h1": 0}).tolist() == pytest.approx([0.9, 0.1])
    with pytest.raises(ModelError, match="'a' has no state 'maybe'"):
        model.conditional("b", {"a": "maybe"})


def test_impossible_rows_are_named():
    tree = Tree([1, -1])
    model = DiscreteTreeModel(tree, [np.eye(2), [0.5, 0.5]])
    rows = [[0, 0], [0, 1]]
    assert model.log_likelihood(rows)[1] == -np.inf
    for question in (model.complete, model.sample_hidden):
        with pytest.raises(ModelError, match="row 1 has probability zero"):
            question(rows)


def test_impossible_rows_with_gaps_are_named():
    model = DiscreteTreeModel(Tree([1, -1, 1]), [np.eye(2), [0.5, 0.5], np.eye(2)])
    assert model.impute([[0, 1, 1], [0, None, 0]]).tolist() == [[0, 1, 1], [0, 0, 0]]
    with pytest.raises(ModelError, match="row 1 has probability zero"):
        model.impute([[0, 1, 1], [0, None, 1]])


def test_rows_in_many_chunks_give_the_same_as_rows_alone():
    rng = np.random.default_rng(2)
    model = random_discrete(random_latent_tree(4_000, rng), rng)
    table = random_table(model, rng, 1_000, missing=0.2)
    assert len(list(chunks(table.n_rows, model.layout.size))) > 2
    together, posterior = model.log_likelihood(table), model.posterior(table)
    for row in range(0, table.n_rows, 331):
        alone = table.rows(row, row + 1)
        np.testing.assert_allclose(together[row], model.log_likelihood(alone), rtol=1e-12)
        expected = model.posterior(alone).probabilities[0]
        np.testing.assert_allclose(posterior.probabilities[row], expected, atol=1e-12)


def test_parameter_counts():
    symmetric = DiscreteTreeModel.symmetric(hidden_markov(10), 2, 0.1)
    assert symmetric.n_parameters == symmetric.tree.n_edges
    binary = DiscreteTreeModel(symmetric.tree, symmetric.tables)
    assert binary.n_parameters == 2 * binary.tree.n_nodes - 1
    star = latent_class(3)
    wide = DiscreteTreeModel(star, [np.full((16, 2), 0.5)] * 3 + [np.full(16, 1 / 16)])
    assert wide.n_parameters == 15 + 3 * 16


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([[0.5, 0.5]], "2 nodes need as many tables, got 1"),
        ([[[0.5, 0.5]], [0.5, 0.5]], r"conditional table of 'x0' has shape \(1, 2\)"),
        ([np.eye(2), [[0.5, 0.5]]], r"marginal of 'x1' has shape \(1, 2\), but needs \(2,\)"),
        ([np.eye(2), [0.5, 0.6]], "table of 'x1' sums to 1.1"),
        ([np.eye(2), [1.5, -0.5]], "'x1' holds a number that is not a probability"),
        ([np.eye(2), [np.nan, 1]], "'x1' holds a number that is not a probability"),
    ],
)
def test_wrong_tables_are_refused(tables, message):
    with pytest.raises(ModelError, match=message):
        DiscreteTreeModel(Tree([1, -1]), tables)


def test_other_mistakes_are_named():
    tree = Tree([1, -1])
    with pytest.raises(ModelError, match="'x0' has 2 states, but 1 labels"):
        DiscreteTreeModel(tree, [np.eye(2), [0.5, 0.5]], [["a"], ["a", "b"]])
    with pytest.raises(ModelError, match=r"crossover of 'x0' is 0\.7"):
        DiscreteTreeModel.symmetric(tree, 3, 0.7)
    model = DiscreteTreeModel(tree, [np.eye(2), [0.5, 0.5]])
    with pytest.raises(ModelError, match="no node 7"):
        model.marginal(7)
    with pytest.raises(ModelError, match="no edge between 'x0' and 'x0'"):
        model.edge_posterior([[0, 0]], 0, 0)
    flat = DiscreteTreeModel(tree, [np.full((2, 2), 0.5), [0.5, 0.5]])
    with pytest.raises(ModelError, match="above 'x0' has determinant 0"):
        flat.distance_tree()


def test_schema_of_a_model_reads_its_own_samples():
    rng = np.random.default_rng(1)
    model = random_discrete(random_latent_tree(5, rng), rng)
    assert model.schema == Schema.discrete(model.tree.names[:5], model.n_states[:5])
    assert np.isfinite(model.log_likelihood(model.sample(10, rng))).all()


def test_lengths_of_uneven_states_are_maximal_correlations() -> None:
    """Against the second singular value of every pair's joint table."""
    rng = np.random.default_rng(0)
    shape = random_latent_tree(6, rng)
    parent = np.where(shape.parent < 0, -1, shape.parent + 1)
    tree = Tree([-1, *parent], n_observed=7)  # the first node is a component of its own
    model = random_discrete_model(tree, rng.integers(2, 5, tree.n_nodes), rng)
    distances = model.information_distances()
    for a in range(tree.n_nodes):
        for b in range(a):
            joint = model.joint(a, b)
            scale = np.sqrt(np.outer(joint.sum(axis=1), joint.sum(axis=0)))
            strength = np.linalg.svd(joint / scale, compute_uv=False)[1]
            if tree.components[a] == tree.components[b]:
                assert np.isclose(distances.dense()[a, b], -np.log(strength))
            else:
                assert distances.independent()[a, b]
            if tree.parent[a] == b:
                assert np.isclose(model.distance_tree().length[a], -np.log(strength))


def test_messages_of_tiny_probabilities_do_not_underflow():
    """Products below the smallest number fall back to logarithms."""
    tree = Tree([6, 6, 6, 7, 7, 7, -1, 6], n_observed=6)
    tiny = 1e-300
    sharp = [[1.0, tiny], [tiny, 1.0]]
    model = DiscreteTreeModel(tree, [sharp] * 6 + [[0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]])
    rows = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]]
    assert model.log_likelihood(rows) == pytest.approx([3 * np.log(tiny), np.log(0.5)])
    assert model.posterior(rows)["h1"] == pytest.approx(np.array([[0.5, 0.5], [1.0, 0.0]]))

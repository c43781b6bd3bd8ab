"""Gaussian models against dense conditioning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumeration import dense, random_gaussian
from latentree import Tree
from latentree.data import Table
from latentree.errors import ModelError
from latentree.inference import chunks
from latentree.models import GaussianTreeModel
from latentree.simulate import hidden_markov, latent_class, random_latent_tree
from strategies import trees

seeds = st.integers(0, 2**32 - 1)


@given(trees(), seeds, st.sampled_from([0.0, 0.3]))
@settings(max_examples=200, deadline=None)
def test_likelihood_and_posterior_equal_dense_conditioning(tree, seed, missing):
    rng = np.random.default_rng(seed)
    model = random_gaussian(tree, rng)
    naive = dense(model)
    values = rng.normal(size=(11, tree.n_observed))
    values[rng.random(values.shape) < missing] = np.nan
    table = Table(values, model.schema)
    log_likelihood = model.log_likelihood(table)
    posterior = model.posterior(table, range(tree.n_nodes))
    filled = model.impute(table)
    for row, x in enumerate(values):
        seen = np.flatnonzero(~np.isnan(x))
        expected = naive.given(seen, x[seen])
        np.testing.assert_allclose(
            log_likelihood[row], naive.log_density(seen, x[seen]), rtol=1e-8, atol=1e-8
        )
        np.testing.assert_allclose(posterior.mean[row], expected.mean, atol=1e-7)
        variance = np.diag(expected.covariance)
        np.testing.assert_allclose(posterior.variance[row], variance, atol=1e-7)
        np.testing.assert_allclose(filled[row], expected.mean[: tree.n_observed], atol=1e-7)
    np.testing.assert_allclose(
        model.total_log_likelihood(values, weights=np.arange(11)),
        log_likelihood @ np.arange(11),
    )


@given(trees().filter(lambda tree: tree.n_edges > 0), seeds)
@settings(max_examples=60, deadline=None)
def test_edges_and_conditionals_equal_dense_conditioning(tree, seed):
    rng = np.random.default_rng(seed)
    model = random_gaussian(tree, rng)
    naive = dense(model)
    np.testing.assert_allclose(
        model.covariance(), naive.covariance[: tree.n_observed, : tree.n_observed], atol=1e-12
    )
    np.testing.assert_allclose(
        model.log_det(), np.linalg.slogdet(model.covariance())[1], rtol=1e-7, atol=1e-7
    )
    values = rng.normal(size=(4, tree.n_observed))
    values[rng.random(values.shape) < 0.4] = np.nan
    parent, child = (int(end) for end in model.tree.edges[rng.integers(tree.n_edges)])
    pair = model.edge_posterior(Table(values, model.schema), child, parent)
    for row, x in enumerate(values):
        seen = np.flatnonzero(~np.isnan(x))
        expected = naive.given(seen, x[seen])
        covariance = expected.covariance[parent, child]
        np.testing.assert_allclose(pair.covariance[row], covariance, atol=1e-7)
        np.testing.assert_allclose(pair.child.mean[row], expected.mean[child], atol=1e-7)
        variance = expected.covariance[parent, parent]
        np.testing.assert_allclose(pair.parent.variance[row], variance, atol=1e-7)
    node, other = (int(v) for v in rng.integers(tree.n_nodes, size=2))
    expected = naive.given([other], np.array([0.7]))
    found = model.conditional(node, {other: 0.7})
    np.testing.assert_allclose(found.mean, expected.mean[node], atol=1e-7)
    np.testing.assert_allclose(found.variance, expected.covariance[node, node], atol=1e-7)
    np.testing.assert_allclose(model.marginal(node).variance, naive.covariance[node, node])


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_distances_are_additive_with_signs_and_give_the_parameters_back(seed):
    rng = np.random.default_rng(seed)
    tree = random_latent_tree(8, rng)
    model = random_gaussian(tree, rng)
    nodes = range(tree.n_nodes)
    distances = model.information_distances()
    rho = model.correlation(nodes, nodes)
    np.testing.assert_allclose(np.exp(-distances.dense()) * distances.signs(), rho, atol=1e-9)
    lengths = model.distance_tree().path_lengths(nodes, nodes)
    np.testing.assert_allclose(distances.dense(), lengths, atol=1e-9)
    again = GaussianTreeModel.from_distances(
        model.distance_tree(), model.correlations, model.means, model.scales
    )
    np.testing.assert_allclose(again.covariance(), model.covariance(), atol=1e-9)


@given(trees(), seeds)
@settings(max_examples=40, deadline=None)
def test_oriented_hidden_nodes_follow_their_nearest_variable(tree, seed):
    model = random_gaussian(tree, np.random.default_rng(seed))
    turned = model.oriented()
    np.testing.assert_allclose(turned.covariance(), model.covariance(), atol=1e-12)
    if tree.n_hidden:
        rho = turned.correlation(tree.hidden, range(tree.n_observed))
        strongest = np.abs(rho).argmax(axis=1)
        assert (rho[np.arange(tree.n_hidden), strongest] > 0).all()


def test_samples_follow_the_model_within_statistical_error():
    rng = np.random.default_rng(3)
    model = random_gaussian(random_latent_tree(6, rng), rng)
    n = 200_000
    draws = model.sample(n, 7, hidden=True)
    naive = dense(model)
    spread = np.sqrt(np.diag(naive.covariance))
    error = (draws.mean(axis=0) - naive.mean) / spread * np.sqrt(n)
    assert np.abs(error).max() < 4.5
    correlation = np.corrcoef(draws.T)
    expected = naive.covariance / spread / spread[:, None]
    # the standard error of a correlation is (1 − ρ²)/√n at most 1/√n
    assert np.abs(correlation - expected).max() < 4.5 / np.sqrt(n)
    np.testing.assert_array_equal(model.sample(n, 7), draws[:, : model.tree.n_observed])


def test_hidden_draws_follow_the_posterior():
    model = GaussianTreeModel(hidden_markov(5), np.full(8, 0.7))
    row = np.array([[1.0, -2.0, 0.5, np.nan, 1.5]])
    draws = model.sample_hidden(np.repeat(row, 100_000, axis=0), 0)
    posterior = model.posterior(row)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean[0], atol=0.015)
    np.testing.assert_allclose(draws.var(axis=0), posterior.variance[0], atol=0.015)


def test_rows_side_by_side_do_not_touch_each_other():
    rng = np.random.default_rng(0)
    model = random_gaussian(random_latent_tree(7, rng), rng)
    values = model.sample(1_003, 1)  # the last block is not full
    values[rng.random(values.shape) < 0.1] = np.nan
    together = model.log_likelihood(values)
    alone = [model.log_likelihood(values[[row]])[0] for row in range(0, 1_003, 97)]
    np.testing.assert_allclose(together[::97], alone, rtol=1e-12)


def test_rows_in_many_chunks_give_the_same_as_rows_alone():
    rng = np.random.default_rng(2)
    model = random_gaussian(random_latent_tree(5_000, rng), rng)
    values = model.sample(1_000, 0)
    values[rng.random(values.shape) < 0.1] = np.nan
    assert len(list(chunks(len(values), 3 * model.tree.n_nodes))) > 2
    together = model.posterior(values)
    for row in range(0, len(values), 83):
        alone = model.posterior(values[[row]])
        np.testing.assert_allclose(together.mean[row], alone.mean[0], atol=1e-12)
        np.testing.assert_allclose(together.variance[row], alone.variance[0], atol=1e-12)


def test_many_variables_do_not_overflow():
    m = 100_000
    model = GaussianTreeModel(latent_class(m), np.full(m + 1, 0.5))
    row = model.sample(2, 0)
    # Woodbury for a star: Σ = q·I + ρρᵀ with q = 0.75, ρ = 0.5
    q, s = 0.75, 0.25 * m / 0.75
    quadratic = (row**2).sum(axis=1) / q - 0.25 / q**2 * row.sum(axis=1) ** 2 / (1 + s)
    expected = -0.5 * (m * np.log(2 * np.pi * q) + np.log1p(s) + quadratic)
    np.testing.assert_allclose(model.log_likelihood(row), expected, rtol=1e-10)


def test_a_forest_is_independent():
    model = GaussianTreeModel(Tree([-1, 0, -1, 2]), [0, 0.5, 0, -0.5])
    np.testing.assert_allclose(model.covariance()[:2, 2:], 0)
    assert model.n_parameters == 2 + 2 * 4
    assert model.n_correlations == 2
    assert model.conditional(0, {2: 3.0}) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"correlations": [1.0, 0]}, "correlation of 'x0' is 1.0"),
        ({"correlations": [np.nan, 0]}, "correlation of 'x0' is nan"),
        ({"correlations": [0.5]}, r"correlations must be 2 numbers, got shape \(1,\)"),
        ({"correlations": [0.5, 0], "scales": [1, 0]}, "scale of 'x1' is 0.0"),
        ({"correlations": [0.5, 0], "means": [np.inf, 0]}, "mean of 'x0' is inf"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        GaussianTreeModel(Tree([1, -1]), **arguments)


def test_a_zero_correlation_has_no_length():
    model = GaussianTreeModel(Tree([1, -1]), [0.0, 0.0])
    with pytest.raises(ModelError, match="above 'x0' has correlation 0"):
        model.distance_tree()
    assert model.information_distances().independent()[0, 1]

"""Answers about rows by plain products: against enumeration, and against logarithms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st

from enumeration import enumerate_joint, random_discrete, random_table
from latentree import CountEmission, GaussianEmission, MixedTreeModel, Tree
from latentree.data import Table, as_table
from latentree.errors import ModelError
from latentree.inference import RowInference, chunks, compile_patterns, write_predictions
from latentree.inference._queries import ProductMessages
from latentree.models import DiscreteTreeModel, TreeMixture
from latentree.simulate import hidden_markov, random_discrete_model, random_latent_tree
from strategies import trees

seeds = st.integers(0, 2**32 - 1)
small_trees = trees(max_inner=3).filter(lambda tree: tree.n_nodes <= 8)


def answers(model, table, nodes):
    """Log-likelihoods of rows and posteriors by products; None where these lose information."""
    patterns = compile_patterns(model.tree, model.n_states, table)
    theta = model.layout.reoriented(model.theta, patterns.layout)
    logs = patterns.emissions.logs(model.emissions) if isinstance(model, MixedTreeModel) else None
    lines = patterns.of_rows.dense()
    found = ProductMessages(patterns, theta, logs).ask(np.asarray(nodes, np.int64), lines)
    if found is None:
        return None
    log_z, posteriors = found
    starts = patterns.components["weights"]
    return sum(log_z[start + line] for start, line in zip(starts, lines, strict=True)), posteriors


def by_logarithms(model, table, nodes):
    """The same by the walk over log-messages, which every query took before."""
    patterns = compile_patterns(model.tree, model.n_states, table)
    theta = model.layout.reoriented(model.theta, patterns.layout)
    logs = patterns.emissions.logs(model.emissions) if isinstance(model, MixedTreeModel) else None
    messages = RowInference(patterns, theta, log_emissions=logs)
    messages._takes_logs = True
    posteriors = messages.posteriors(np.asarray(nodes, np.int64))
    return messages.log_likelihood(), posteriors


def assert_both_agree(model, table, nodes):
    fast, slow = answers(model, table, nodes), by_logarithms(model, table, nodes)
    assert fast is not None
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast[1], slow[1], atol=1e-10)


@given(small_trees, seeds, st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
@example(Tree([5, 5, 5, 2, 5, -1], n_observed=5), 0, 0.3, True)
@settings(max_examples=80, deadline=None)
def test_products_equal_enumeration(tree, seed, missing, zeros):
    rng = np.random.default_rng(seed)
    model = random_discrete(tree, rng, zeros=zeros)
    table = random_table(model, rng, 12, missing)
    nodes = rng.integers(0, tree.n_nodes, int(rng.integers(1, 10)))  # any order, some twice
    joint = enumerate_joint(model)
    found = answers(model, table, nodes)
    if found is None:  # a zero may be a product that got too small: log-messages tell
        assert zeros
        found = by_logarithms(model, table, nodes)
    ends = np.cumsum(model.n_states[nodes])
    blocks = np.split(found[1], ends[:-1], axis=1)
    for row, codes in enumerate(table.values):
        weights = joint.given(codes)
        z = weights.sum()
        np.testing.assert_allclose(found[0][row], np.log(z), rtol=1e-10, atol=1e-12)
        for node, block in zip(nodes, blocks, strict=True):
            expected = joint.marginal(node, weights / z, model.n_states[node])
            np.testing.assert_allclose(block[row], expected, atol=1e-10)


@pytest.mark.parametrize("n_rows", [70, 1_500])
@pytest.mark.parametrize("missing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("n_hidden", [2, 40, 70])
def test_many_states_equal_logarithms(n_hidden, missing, n_rows):
    """On patterns and row by row, with products of matrices in one piece and in several."""
    rng = np.random.default_rng(n_hidden)
    tree = random_latent_tree(14, rng, inner_share=0.3)
    n_states = np.append(rng.integers(2, 5, 14), n_hidden + np.arange(tree.n_hidden) % 3)
    model = random_discrete_model(tree, n_states, rng)
    table = random_table(model, rng, n_rows, missing)
    assert_both_agree(model, table, np.arange(tree.n_nodes))
    assert_both_agree(model, table, rng.permutation(tree.n_nodes)[:4])


def test_forests_and_sparse_rows_equal_logarithms():
    rng = np.random.default_rng(0)
    tree = Tree([6, 6, 6, 7, 7, 7, -1, -1], n_observed=6)
    model = random_discrete_model(tree, np.array([2] * 6 + [15, 20]), rng)
    codes = np.array(model.sample(1_200, rng))
    assert_both_agree(model, as_table(codes, schema=model.schema), [7, 0, 6])
    sparse = as_table(scipy.sparse.csr_array(codes), schema=model.schema)
    assert_both_agree(model, sparse, [7, 0, 6])


@pytest.mark.parametrize("n_rows", [40, 1_100])
def test_long_chains_are_scaled(n_rows):
    model = DiscreteTreeModel.symmetric(hidden_markov(700), 12, 0.03)
    codes = np.zeros((n_rows, 700), np.int8)
    rng = np.random.default_rng(0)
    codes[:, ::3] = rng.random((n_rows, 234)) < 0.5
    codes[:, 1::50] = -1
    table = Table(codes, model.schema)
    assert (model.log_likelihood(table) < -700).all()
    assert_both_agree(model, table, [1, 700, 1_397])


def mixed_model():
    tree = Tree([5, 5, 6, 6, 6, 6, -1], n_observed=5)
    parameters = [
        GaussianEmission([30.0, 60.0], [10.0, 5.0], resolution=1.0),
        [[0.5, 0.5], [0.1, 0.9]],
        CountEmission([1.0, 6.0, 2.0], [2.0, np.inf, 1.0]),
        [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]],
        GaussianEmission([0.0, 1.0, 2.0], [1.0, 1.0, 1.0], resolution=0.1),
        [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]],
        [0.5, 0.3, 0.2],
    ]
    return MixedTreeModel(tree, parameters, [(), ("no", "yes"), (), (0, 1), ()])


@pytest.mark.parametrize("n_rows", [50, 1_200])
def test_emitted_values_equal_logarithms(n_rows):
    model, rng = mixed_model(), np.random.default_rng(1)
    rows = model.sample(n_rows, rng)
    rows[rng.random(rows.shape) < 0.2] = None
    rows[0, 0] = 1e4  # so far out that all its likelihoods underflow
    assert_both_agree(model, as_table(rows, schema=model.schema), np.arange(7))


def test_what_products_lose_is_answered_by_logarithms():
    tree = Tree([6, 6, 6, 7, 7, 7, -1, 6], n_observed=6)
    sharp = [[1.0, 1e-300], [1e-300, 1.0]]
    model = DiscreteTreeModel(tree, [sharp] * 6 + [[0.5, 0.5], np.eye(2)])
    rows = np.tile([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]], (20_000, 1))
    assert answers(model, as_table(rows, schema=model.schema), [6]) is None
    assert model.log_likelihood(rows)[:2] == pytest.approx([3 * np.log(1e-300), np.log(0.5)])
    expected = np.array([[0.5, 0.5], [1.0, 0.0]])
    assert model.posterior(rows)["h1"][-2:] == pytest.approx(expected)
    impossible = DiscreteTreeModel(tree, [np.eye(2)] * 6 + [[0.5, 0.5], np.eye(2)])
    assert (impossible.log_likelihood(rows)[:2] == [-np.inf, np.log(0.5)]).all()
    assert np.isnan(impossible.posterior(rows)["h1"][0]).all()


def test_answers_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(3)
    tree = random_latent_tree(12, rng, inner_share=0.0)
    model = random_discrete_model(tree, np.repeat([3, 16], [12, tree.n_hidden]), rng)
    table = random_table(model, rng, 3_000, missing=0.1)
    found = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", n_threads)
        found.append((model.log_likelihood(table), model.posterior(table).probabilities))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_only_gaps_are_asked_about(monkeypatch):
    rng = np.random.default_rng(0)
    model = random_discrete(random_latent_tree(6, rng), rng)
    table = random_table(model, rng, 30)
    codes = np.array(table.values)
    codes[3, 1] = codes[8, [1, 4]] = -1
    asked = []
    posterior = DiscreteTreeModel.posterior

    def recorded(self, rows, nodes):
        asked.append((rows.n_rows, list(nodes)))
        return posterior(self, rows, nodes)

    monkeypatch.setattr(DiscreteTreeModel, "posterior", recorded)
    filled = model.impute(Table(codes, model.schema))
    assert asked == [(2, [1, 4])]
    best = posterior(model, Table(codes, model.schema), [1, 4])
    codes[[3, 8], 1] = best[1][[3, 8]].argmax(axis=1)
    codes[8, 4] = best[4][8].argmax()
    np.testing.assert_array_equal(filled, codes)


def test_mixtures_ask_all_columns_at_once():
    rng = np.random.default_rng(5)
    tree = random_latent_tree(9, rng, inner_share=0.0)
    n_states = np.repeat([3, 14], [9, tree.n_hidden])
    parts = [random_discrete_model(tree, n_states, seed) for seed in range(3)]
    mixture = TreeMixture(parts, [0.2, 0.5, 0.3])
    table = random_table(parts[0], rng, 200, missing=0.3)
    together = mixture.posterior(table, [4, mixture.tree.names[-1], 0])
    share = mixture.responsibilities(table)
    np.testing.assert_array_equal(together["tree"], share)
    np.testing.assert_array_equal(mixture.posterior(table)["tree"], share)
    for node in (0, 4):
        expected = sum(
            mine[:, None] * part.posterior(table, [node])[node]
            for part, mine in zip(parts, share.T, strict=True)
        )
        np.testing.assert_allclose(together[node], expected, atol=1e-12)
        gaps = table.values[:, node] < 0
        filled = mixture.impute(table)[gaps, node]
        np.testing.assert_array_equal(filled, expected[gaps].argmax(axis=1))


def test_impossible_rows_of_mixtures_are_named():
    tree = Tree([1, -1, 1])
    sure = DiscreteTreeModel(tree, [np.eye(2), [0.5, 0.5], np.eye(2)])
    other = DiscreteTreeModel(tree, [np.eye(2), [0.1, 0.9], np.eye(2)])
    mixture = TreeMixture([sure, other], [0.5, 0.5])
    assert mixture.impute([[1, None, 1], [0, 1, 1]]).tolist() == [[1, 1, 1], [0, 1, 1]]
    with pytest.raises(ModelError, match="row 1 has probability zero"):
        mixture.impute([[1, None, 1], [0, None, 1]])


@given(st.integers(0, 10**4), st.integers(0, 10**6), st.integers(1, 10**7))
def test_chunks_cover_all_rows_evenly(n_rows, numbers, most):
    bounds = [0, *(stop for _, stop in chunks(n_rows, numbers, most))]
    assert [start for start, _ in chunks(n_rows, numbers, most)] == bounds[:-1]
    assert bounds[-1] == n_rows
    sizes = np.diff(bounds)
    assert (sizes * numbers <= max(most, numbers)).all()
    assert sizes.size == 0 or sizes.max() - sizes.min() <= 1


def test_nothing_is_predicted_from_impossible_rows(tmp_path):
    star = Tree([3, 3, 3, -1], n_observed=3)
    one = DiscreteTreeModel(star, [np.eye(2), np.eye(2), [[0.5, 0.5]] * 2, [0.5, 0.5]])
    rows = [[0, 0, 1], [0, 1, 0]]  # the second is impossible
    for model in (one, TreeMixture([one, one], [0.5, 0.5])):
        last = len(model.tree.names) - 1
        assert np.isnan(model.posterior(rows, [last])[last]).any(axis=1).tolist() == [False, True]
        for variable in (2, last):
            with pytest.raises(ModelError, match="row 1 has probability zero"):
                write_predictions(model, rows, tmp_path / "new.csv", variable)
        with pytest.raises(ModelError, match="row 1 has probability zero"):
            model.sample_hidden(rows)
        write_predictions(model, rows, tmp_path / "shares.csv", 2, probabilities=True)

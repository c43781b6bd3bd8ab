"""Mixed models against the definition: the sum over all states of the product of all parts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import latentree as lt
from latentree.data import Schema, Table
from latentree.errors import ModelError


def random_model(rng: np.random.Generator) -> lt.MixedTreeModel:
    """A tree with an inner category, leaves of all kinds, and a leaf that stands alone."""
    tree = lt.Tree([6, 6, 7, 2, -1, 7, -1, 6], n_observed=6, names=list("abcdef"))
    k, low = 3, 2

    def table(rows: int, columns: int) -> np.ndarray:
        return rng.dirichlet(np.ones(columns), rows)

    parts = [
        lt.GaussianEmission(rng.normal(0, 3, k), rng.uniform(0.2, 2, k), 0.25),
        lt.CountEmission(rng.uniform(0.5, 6, k), [2.0, np.inf, 5.0]),
        table(low, 3),
        lt.GaussianEmission(rng.normal(0, 1, 3), rng.uniform(0.05, 0.5, 3), 0.5),
        lt.GaussianEmission([2.0], [1.0], 0.1),
        table(low, 2),
        table(1, k)[0],
        table(k, low),
    ]
    return lt.MixedTreeModel(tree, parts)


def with_gaps(model: lt.MixedTreeModel, n: int, rng: np.random.Generator) -> Table:
    values = model.sample(n, rng).astype(float)
    values[rng.random(values.shape) < 0.3] = np.nan
    return Table(values, model.schema)


def weights_of_states(model: lt.MixedTreeModel, row: np.ndarray) -> dict[tuple[int, ...], float]:
    """Probability of a row together with every choice of all states."""
    tree, parts = model.tree, model.parameters
    nodes = [v for v in range(tree.n_nodes) if model.n_states[v]]
    out = {}
    for states in itertools.product(*(range(model.n_states[v]) for v in nodes)):
        state = dict(zip(nodes, states, strict=True))
        p = 1.0
        for v in range(tree.n_nodes):
            above = tree.parent[v]
            seen = v < tree.n_observed and not np.isnan(row[v])
            if v not in state:
                k = state[above] if above >= 0 else 0
                p *= math.exp(parts[v].log_likelihood(row[[v]])[k, 0]) if seen else 1.0
            else:
                p *= parts[v][state[v]] if above < 0 else parts[v][state[above], state[v]]
                p *= not seen or state[v] == row[v]
        out[states] = p
    return out


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_likelihoods_and_posteriors_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    table = with_gaps(model, 12, rng)
    found, posterior = model.log_likelihood(table), model.posterior(table)
    for i, row in enumerate(table.values):
        weights = weights_of_states(model, row)
        total = sum(weights.values())
        assert found[i] == pytest.approx(math.log(total), abs=1e-9)
        # States come in the order of nodes c, f, h1, h2.
        for place, node in ((2, "h1"), (3, "h2")):
            size = model.n_states[model.tree.index(node)]
            expected = np.zeros(size)
            for states, p in weights.items():
                expected[states[place]] += p / total
            np.testing.assert_allclose(posterior[node][i], expected, atol=1e-9)


def test_conditionals_and_imputed_cells_are_those_of_enumeration():
    rng = np.random.default_rng(3)
    model = random_model(rng)
    row = np.array([np.nan, 3.0, 1.0, np.nan, np.nan, np.nan])
    weights = weights_of_states(model, row)
    total = sum(weights.values())
    h1 = np.array([sum(p for s, p in weights.items() if s[2] == k) for k in range(3)]) / total
    emission = model.parameters[0]
    normal = model.conditional("a", {"b": 3, "c": 1})
    assert normal.mean == pytest.approx(h1 @ emission.mean)
    second = h1 @ (emission.sd**2 + emission.mean**2)
    assert normal.variance == pytest.approx(second - normal.mean**2)
    filled, spread = model.imputed(Table(row[None], model.schema))
    assert filled[0, 0] == pytest.approx(normal.mean)
    assert spread[0, 0] == pytest.approx(math.sqrt(normal.variance))
    assert filled[0, 4] == pytest.approx(2.0)
    assert (filled[0, 1:3] == row[1:3]).all()
    assert (spread[0, 1:3] == 0).all()
    np.testing.assert_allclose(model.conditional("h1", {"b": 3, "c": 1}), h1)
    hidden = model.conditional("a", {"h1": 2})
    assert hidden.mean == pytest.approx(emission.mean[2])


def test_most_probable_states_are_those_of_enumeration():
    rng = np.random.default_rng(5)
    model = random_model(rng)
    table = with_gaps(model, 20, rng)
    for row, found in zip(table.values, model.complete(table), strict=True):
        weights = weights_of_states(model, row)
        best = max(weights, key=weights.__getitem__)
        assert tuple(found[[2, 5, 6, 7]].astype(int)) == best


def test_cells_are_probabilities_and_sum_to_one():
    emission = lt.GaussianEmission([0.3, 1.0], [0.2, 5.0], 0.5)
    grid = np.arange(-200, 201) * 0.5
    p = np.exp(emission.log_likelihood(grid))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    exact = stats.norm.cdf(grid + 0.25, 1.0, 5.0) - stats.norm.cdf(grid - 0.25, 1.0, 5.0)
    np.testing.assert_allclose(p[1], exact, rtol=1e-6, atol=1e-12)
    narrow = lt.GaussianEmission([0.0], [1e-9], 1.0)  # the width stays in proportion to the step
    assert 0.99 < np.exp(narrow.log_likelihood(np.zeros(1)))[0, 0] <= 1.0


def test_counts_are_poisson_and_negative_binomial():
    emission = lt.CountEmission([2.0, 3.0], [np.inf, 1.5])
    values = np.arange(40.0)
    p = np.exp(emission.log_likelihood(values))
    np.testing.assert_allclose(p[0], stats.poisson.pmf(values, 2.0), atol=1e-12)
    np.testing.assert_allclose(p[1], stats.nbinom.pmf(values, 1.5, 1.5 / 4.5), atol=1e-12)
    assert emission.variance[1] == pytest.approx(stats.nbinom.var(1.5, 1.5 / 4.5))


def test_samples_follow_the_model():
    model = random_model(np.random.default_rng(1))
    X = model.sample(40_000, random_state=0).astype(float)
    for column in (0, 1, 3, 4):
        normal = model.marginal(column)
        error = 6 * math.sqrt(normal.variance / len(X))
        assert X[:, column].mean() == pytest.approx(normal.mean, abs=error + 0.01)
    share = np.bincount(X[:, 2].astype(int), minlength=3) / len(X)
    np.testing.assert_allclose(share, model.marginal("c"), atol=0.02)
    both = model.sample(100, random_state=0, hidden=True)
    assert both.shape == (100, 8)


def test_a_saved_model_loads_equal(tmp_path):
    model = random_model(np.random.default_rng(2))
    model.save(tmp_path / "m.json")
    loaded = lt.load(tmp_path / "m.json")
    assert isinstance(loaded, lt.MixedTreeModel)
    assert loaded.schema == model.schema
    table = with_gaps(model, 30, np.random.default_rng(0))
    assert (loaded.log_likelihood(table) == model.log_likelihood(table)).all()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "m.json").read_bytes() == (tmp_path / "again.json").read_bytes()


def test_rerooting_changes_nothing():
    rng = np.random.default_rng(4)
    model = random_model(rng)
    table = with_gaps(model, 30, rng)
    for node in ("h2", "c"):
        np.testing.assert_allclose(
            model.rerooted(node).log_likelihood(table), model.log_likelihood(table), atol=1e-10
        )
    with pytest.raises(ModelError, match="'a' has no states"):
        model.rerooted("a")


def test_values_far_out_keep_a_finite_likelihood():
    model = random_model(np.random.default_rng(6))
    row = np.array([[1e6, 1e5, 0.0, -1e4, 1e9, 1.0]])
    found = model.log_likelihood(Table(row, model.schema))
    assert np.isfinite(found).all()
    assert found[0] < -1e6


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([lt.GaussianEmission([0.0], [1.0], 1.0), [0.5, 0.5]], "has 1 states, but its neighbor 2"),
        ([[[1.0], [1.0]], [0.5, 0.5]], None),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    tree = lt.Tree([1, -1])
    if message is None:
        lt.MixedTreeModel(tree, parts)
        return
    with pytest.raises(ModelError, match=message):
        lt.MixedTreeModel(tree, parts)


def test_numbers_are_leaves_only():
    chain = lt.Tree([1, 2, -1])
    emission = lt.GaussianEmission([0.0, 1.0], [1.0, 1.0], 1.0)
    with pytest.raises(ModelError, match="only observed leaves"):
        lt.MixedTreeModel(chain, [[[0.5, 0.5]], emission, [0.5, 0.5]])
    with pytest.raises(ModelError, match="rooted"):
        lt.MixedTreeModel(lt.Tree([-1, 0]), [emission, [[0.5, 0.5]]])


def test_labels_come_back():
    age = lt.GaussianEmission([30.0, 60.0], [1.0, 1.0], 1.0)
    model = lt.MixedTreeModel(lt.Tree([1, -1]), [age, [0.7, 0.3]], [(), ("no", "yes")])
    drawn = model.sample(50, random_state=0)
    assert set(drawn[:, 1]) == {"no", "yes"}
    assert model.schema == Schema(("x0", "x1"), "mixed", ((), ("no", "yes")), ("real", "category"))
    assert model.impute(Table(np.array([[np.nan, 1.0]]), model.schema))[0, 0] == pytest.approx(60.0)

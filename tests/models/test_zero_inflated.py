"""Counts with more zeros: a leaf that shows what a new kind of leaf takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import latentree as lt
from latentree.data import Schema, Table
from latentree.inference import Unit, ZeroInflatedEmission

TREE = lt.Tree([3, 3, 3, -1], n_observed=3, names=("visits", "age", "insured"))


def rows(n: int = 500) -> Table:
    rng = np.random.default_rng(0)
    h = rng.integers(0, 2, n)
    visits = np.where(rng.random(n) < 0.5 - 0.3 * h, 0, rng.poisson(3.0 + 4.0 * h))
    age, insured = np.round(rng.normal(40.0 + 20.0 * h, 8.0)), rng.random(n) < 0.2 + 0.6 * h
    values = np.column_stack([visits, age, insured]).astype(float)
    values[rng.random(values.shape) < 0.05] = np.nan
    kinds = ("count", "real", "category")
    return Table(values, Schema(TREE.names[:3], "mixed", ((), (), ("no", "yes")), kinds))


def test_likelihood_and_moments_are_those_of_the_mixture():
    emission = ZeroInflatedEmission([2.0, 7.0], [np.inf, 3.0], [0.3, 0.0])
    x = np.arange(400.0)
    counts = np.stack([stats.poisson.pmf(x, 2.0), stats.nbinom.pmf(x, 3.0, 0.3)])
    expected = np.array([[0.7], [1.0]]) * counts
    expected[0, 0] += 0.3
    logs = emission.log_likelihood(np.append(x, np.nan))
    np.testing.assert_allclose(np.exp(logs[:, :-1]), expected, rtol=1e-9, atol=1e-300)
    assert (logs[:, -1] == 0.0).all()
    np.testing.assert_allclose(emission.mean, expected @ x)
    np.testing.assert_allclose(emission.variance, expected @ x**2 - emission.mean**2, rtol=1e-6)
    np.testing.assert_allclose(emission.cells().sum(axis=1), 1.0, atol=1e-6)
    drawn = emission.sample(np.zeros(20_000, int), np.random.default_rng(0))
    assert (drawn == 0).mean() == pytest.approx(expected[0, 0], abs=4 * 0.5 / np.sqrt(20_000))


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_an_m_step_raises_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    values, unit = np.append(np.arange(12.0), np.nan), Unit(3.0, 2.0)
    weights = rng.gamma(0.5, 4.0, (2, values.size))
    weights[:, 0] += rng.gamma(1.0, 20.0, 2)
    emission = ZeroInflatedEmission(rng.uniform(0.5, 9, 2), rng.uniform(0.5, 9, 2), [0.3, 0.1])
    sums = emission.expected(values, weights, None, unit)

    def objective(own):
        return own.expected_log(sums, unit) + own.log_prior(unit, 0.5)

    for _ in range(5):
        point = emission.maximized(sums, unit, 0.5)
        following = ZeroInflatedEmission.at(point, unit)
        assert objective(following) >= objective(emission) - 1e-9
        np.testing.assert_allclose(following.coordinates(unit), point, rtol=1e-9)
        emission = following


def test_it_is_fitted_kept_and_read():
    table = rows()
    plain, _ = lt.fit_parameters(TREE, table, n_states=2, random_state=0)
    model, report = lt.fit_parameters(
        TREE, table, n_states=2, random_state=0, emissions={"visits": ZeroInflatedEmission}
    )
    assert report.log_likelihood > plain.total_log_likelihood(table) + 20.0
    assert report.converged
    assert np.diff(report.log_likelihoods).min() > -1e-6
    # By enumeration of the hidden state.
    joint = np.log(model.marginal("h1")) + np.zeros((table.n_rows, 1))
    for column, emission in enumerate(model.emissions):
        cells = table.values[:, column]
        seen = ~np.isnan(cells)
        if emission is None:
            joint[seen] += np.log(model.parameters[column][:, cells[seen].astype(int)]).T
        else:
            joint[seen] += emission.log_likelihood(cells[seen]).T
    np.testing.assert_allclose(model.log_likelihood(table), special.logsumexp(joint, axis=1))
    again, _ = lt.fit_parameters(TREE, table, start=model)
    assert isinstance(again.emissions[0], ZeroInflatedEmission)


def test_a_saved_leaf_is_read_to_the_last_bit(tmp_path):
    leaf = ZeroInflatedEmission([2.0, 7.0], [np.inf, 3.0], [0.3, 0.0])
    model = lt.MixedTreeModel(lt.Tree([1, -1]), [leaf, [0.25, 0.75]])
    model.save(tmp_path / "model.json")
    read = lt.load(tmp_path / "model.json")
    assert lt.models.encode(read) == lt.models.encode(model)
    with pytest.raises(lt.errors.ModelError, match="zeros must be probabilities"):
        ZeroInflatedEmission([1.0], None, [1.0])

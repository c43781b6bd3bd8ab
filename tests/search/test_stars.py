"""States of one hidden variable with the rest held fixed, against the likelihood of the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree.data import Table
from latentree.inference import CountEmission, GaussianEmission
from latentree.models import MixedTreeModel
from latentree.search._stars import (
    RowMessages,
    StarProblem,
    Values,
    _with_stars,
    grown_model,
    split_states,
)

NAMES = ("a", "b", "c", "x", "y", "z")


def random_model(seed: int, n_states: tuple[int, int] = (2, 3)) -> MixedTreeModel:
    """Two hidden variables: labels a, b, c and numbers x, y (real) and z (counts)."""
    rng = np.random.default_rng(seed)
    #          a  b  c  x  y  z  h  g
    parent = [6, 6, 7, 6, 7, 7, -1, 6]
    tree = lt.Tree(parent, n_observed=6, names=[*NAMES, "h", "g"])
    h, g = n_states
    up = {0: h, 1: h, 2: g, 3: h, 4: g, 5: g}
    parameters: list[object] = [rng.dirichlet(np.ones(3), up[v]) for v in range(3)]
    parameters += [
        GaussianEmission(rng.normal(0, 2, up[v]), rng.uniform(0.5, 1.5, up[v]), 0.01)
        for v in (3, 4)
    ]
    parameters.append(CountEmission(rng.uniform(1, 9, up[5]), rng.uniform(1, 9, up[5])))
    parameters += [rng.dirichlet(np.ones(h)), rng.dirichlet(np.ones(g), h)]
    return MixedTreeModel(tree, parameters)  # type: ignore[arg-type]


def rows_of(model: MixedTreeModel, n: int, seed: int, missing: float = 0.0) -> Table:
    rng = np.random.default_rng(seed)
    values = model._draw(n, rng)[:, : model.tree.n_observed].astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    return Table(values, model.schema)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3]), st.sampled_from(["h", "g"]))
@settings(max_examples=15, deadline=None)
def test_gains_of_a_star_are_those_of_the_model(seed: int, missing: float, name: str) -> None:
    model = random_model(seed).rerooted(name)
    rows = rows_of(model, 40, seed, missing)
    node = model.tree.names.index(name)
    messages = RowMessages(model, rows)
    problem = StarProblem(messages, node, 1.0)
    star = split_states(problem.now.star, [0, 1], np.random.default_rng(seed))
    gain = problem.evaluated(star).log_likelihood - problem.now.log_likelihood
    after = _with_stars(messages, {node: star})
    assert after.n_states[node] == model.n_states[node] + 2
    before = model.log_likelihood(rows).sum()
    assert gain == pytest.approx(after.log_likelihood(rows).sum() - before, abs=1e-6)
    assert problem.climbed(star, 3).log_likelihood >= problem.evaluated(star).log_likelihood


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_messages_do_not_depend_on_the_root(seed: int) -> None:
    model = random_model(seed)
    rows = rows_of(model, 25, seed, 0.2)
    found = []
    for root in ("h", "g", "a", "c"):
        turned = model.rerooted(root)
        problem = StarProblem(RowMessages(turned, rows), 6, 1.0)
        found.append(problem.climbed(problem.now.star, 2))
    for fit in found[1:]:
        np.testing.assert_allclose(fit.star.top, found[0].star.top, atol=1e-9)
        for other, table in fit.star.tables.items():
            np.testing.assert_allclose(table, found[0].star.tables[other], atol=1e-9)


def test_states_that_are_there_are_found_and_others_are_not() -> None:
    truth = random_model(3, (4, 2))
    rows = rows_of(truth, 2_000, 4)
    few = lt.fit_parameters(truth.tree, rows, n_states=2, random_state=0).model
    penalty = 0.5 * np.log(rows.n_rows)
    growth = grown_model(few, rows, penalty, 8, 1.0, np.random.default_rng(0), [6, 7])
    assert 6 in growth.grown
    assert growth.model.n_states[6] > 2
    fitted = lt.fit_parameters(truth.tree, rows, start=growth.model).model
    again = grown_model(fitted, rows, penalty, 8, 1.0, np.random.default_rng(0), [6, 7])
    assert not again.grown
    at_most = grown_model(few, rows, penalty, 2, 1.0, np.random.default_rng(0), [6, 7])
    assert not at_most.grown
    np.testing.assert_array_equal(at_most.model.n_states, few.n_states)


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_fitted_emission_has_the_moments_of_its_states(seed: int, counts: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.poisson(6, 50).astype(float) if counts else 1e6 + rng.normal(0, 2, 50)
    weights = rng.dirichlet(np.ones(3), 50)
    values[:5] = np.nan
    start = (
        CountEmission([1.0] * 3, [2.0] * 3)
        if counts
        else GaussianEmission([1e6] * 3, [1.0] * 3, 1e-3)
    )
    fitted = Values(values, np.ones(50)).maximized(start, weights, 0.0)
    x, w = values[5:], weights[5:]
    mean = np.array([np.average(x, weights=w[:, k]) for k in range(3)])
    variance = np.array([np.average((x - mean[k]) ** 2, weights=w[:, k]) for k in range(3)])
    np.testing.assert_allclose(fitted.mean, mean, rtol=1e-9)
    if counts:
        assert (w.T * fitted.log_likelihood(x)).sum() > (w.T * start.log_likelihood(x)).sum()
    else:
        np.testing.assert_allclose(fitted.sd, np.sqrt(variance), rtol=1e-6)


def test_every_missing_value_says_nothing() -> None:
    emission = GaussianEmission([0.0, 3.0], [1.0, 2.0], 0.1)
    values = np.array([0.5, np.nan, 1.0, np.nan])
    for repeats in (1, 500):  # uncompiled, and compiled
        logs = emission.log_likelihood(np.tile(values, repeats))
        assert (logs[:, 1::2] == 0.0).all()
        assert np.isfinite(logs).all()

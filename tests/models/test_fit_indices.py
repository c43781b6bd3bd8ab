"""Indices of fit against values that lavaan publishes for the tests of Holzinger and Swineford."""

from __future__ import annotations

import numpy as np
import pytest

import latentree as lt
from latentree.errors import ModelError

PUPILS = lt.datasets.load_holzinger()


def test_three_factors_are_those_of_lavaan():
    # Three factors that are free to correlate: a hidden variable above them says the same.
    tree = lt.Tree([9, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 12, -1], n_observed=9)
    model = lt.fit_parameters(tree, PUPILS.data, random_state=0).model
    found = model.fit_indices(PUPILS.data)
    assert model.total_log_likelihood(PUPILS.data) == pytest.approx(-3737.745, abs=0.001)
    assert found.chi_square == pytest.approx(85.306, abs=0.001)
    assert found.degrees_of_freedom == 24
    assert found.p_value < 0.001
    published = (0.931, 0.896, 0.092, 0.071, 0.114)
    assert found[3:8] == pytest.approx(published, abs=0.0005)
    assert found.srmr == pytest.approx(0.065, abs=0.0005)


def test_a_weight_is_a_repeated_row_and_gaps_are_refused():
    X = np.asarray(PUPILS.data, float)
    model = lt.LatentTree("lcm").fit(X).model_
    twice = model.fit_indices(np.vstack([X, X[:50]]))
    weights = np.repeat([2.0, 1.0], [50, len(X) - 50])
    assert model.fit_indices(X, weights) == pytest.approx(twice)
    holes = X.copy()
    holes[0, 0] = np.nan
    with pytest.raises(ModelError, match="rows without gaps"):
        model.fit_indices(holes)
    with pytest.raises(ModelError, match="more rows than columns, but there are 9 and 9"):
        model.fit_indices(X[:9])


def test_a_model_of_all_covariances_fits_perfectly():
    X = np.asarray(PUPILS.data, float)[:, :2]
    found = lt.LatentTree("chow_liu").fit(X).model_.fit_indices(X)
    assert (found.degrees_of_freedom, found.cfi, found.tli, found.rmsea) == (0, 1.0, 1.0, 0.0)
    assert found.chi_square == pytest.approx(0.0, abs=1e-6)


def test_fine_answers_have_the_indices_of_the_numbers_behind_them():
    star = lt.Tree([6, 6, 6, 7, 7, 7, 7, -1], n_observed=6)
    truth = lt.GaussianTreeModel(star, [0.8, 0.7, 0.6, 0.7, 0.8, 0.6, 0.5, 0])
    X = truth.sample(3_000, 0)
    cuts = np.linspace(-2.0, 2.0, 12)
    answers = np.searchsorted(cuts, X)
    wrong = lt.Tree([6, 6, 6, 6, 6, 6, -1], n_observed=6)
    for tree in (star, wrong):
        behind = lt.as_table(answers, "copula", kinds="ordered")
        of_answers = lt.fit_parameters(tree, behind, "copula").model.fit_indices(answers)
        of_numbers = lt.fit_parameters(tree, X).model.fit_indices(X)
        assert of_answers.degrees_of_freedom == of_numbers.degrees_of_freedom
        assert of_answers.chi_square == pytest.approx(of_numbers.chi_square, rel=0.15, abs=8.0)
        assert of_answers.cfi == pytest.approx(of_numbers.cfi, abs=0.02)
        assert of_answers.srmr == pytest.approx(of_numbers.srmr, abs=0.01)
    assert of_answers.rmsea > 0.08


def test_omega_is_that_of_the_formula():
    star = lt.Tree([3, 3, 3, -1], n_observed=3)
    factors = lt.GaussianTreeModel(star, [0.8, -0.7, 0.6, 0]).factors()
    common = (0.8 + 0.7 + 0.6) ** 2
    assert factors["omega"] == [pytest.approx(common / (common + 0.36 + 0.51 + 0.64), abs=1e-6)]
    # Of the best weighted sum: information Σ λ²/(1 − λ²) = s, and reliability s/(1 + s).
    s = sum(r * r / (1.0 - r * r) for r in (0.8, 0.7, 0.6))
    assert factors["reliability"] == [pytest.approx(s / (1.0 + s))]
    assert lt.GaussianTreeModel(star, [0.8, -0.7, 0.6, 0]).loadings()["communality"] == [
        0.64, 0.49, 0.36
    ]  # fmt: skip


def test_ordinal_fit_needs_an_order():
    X = lt.as_table({"a": list("xyz") * 40, "b": list("pqr") * 40, "c": [0.5, 1.5, 2.5] * 40})
    model = lt.LatentTree("lcm", hidden="gaussian", random_state=0).fit(X).model_
    with pytest.raises(ModelError, match="numbers and ordered answers"):
        model.fit_indices(X)

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

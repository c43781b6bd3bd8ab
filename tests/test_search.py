"""Learners that score models."""

from __future__ import annotations

import numpy as np
import pytest

import latentree as lt
from latentree import search, simulate
from latentree.errors import DataError


def test_latent_class_finds_the_number_of_classes():
    rng = np.random.default_rng(0)
    tree = simulate.latent_class(10)
    truth = simulate.random_discrete_model(tree, [2] * 10 + [3], rng, strength=(0.6, 0.9))
    X = truth.sample(3_000, rng)
    model, report = search.latent_class(X, random_state=0)
    assert model.n_states[-1] == 3
    assert report.bic_score == pytest.approx(lt.metrics.bic_score(model, X))
    assert report.log_likelihood >= lt.metrics.log_likelihood(truth, X) - 1.0
    fixed, _ = search.latent_class(X, n_states=2, random_state=0)
    assert fixed.n_states[-1] == 2


def test_latent_class_of_real_data_has_one_factor():
    rng = np.random.default_rng(1)
    X = simulate.random_gaussian_model(simulate.latent_class(6), rng).sample(500, rng)
    model, report = search.latent_class(X)
    assert model.tree.n_hidden == 1
    assert report.converged
    with pytest.raises(DataError, match="needs three neighbours"):
        search.latent_class(X[:, :2])


@pytest.mark.parametrize("family", ["gaussian", "discrete"])
def test_binary_tree_joins_what_belongs_together(family):
    rng = np.random.default_rng(2)
    tree = simulate.double_star(8)
    make = {
        "gaussian": lambda: simulate.random_gaussian_model(tree, rng, strength=(0.8, 0.9)),
        "discrete": lambda: simulate.random_discrete_model(tree, 2, rng, strength=(0.8, 0.9)),
    }[family]
    X = make().sample(2_000, rng)
    model, report = search.binary_tree(X, random_state=0)
    found = model.tree
    assert found.n_hidden == 6
    assert set(found.degrees[found.hidden]) == {3}
    halves = frozenset([frozenset(range(4)), frozenset(range(4, 8))])
    assert halves in found.bipartitions()
    assert report.log_likelihood == pytest.approx(lt.metrics.log_likelihood(model, X))


def test_binary_tree_leaves_independent_variables_alone():
    rng = np.random.default_rng(3)
    X = (rng.random((2_000, 5)) < 0.5).astype(int)
    X[:, 1] = np.where(rng.random(2_000) < 0.9, X[:, 0], X[:, 1])
    model, _ = search.binary_tree(X)
    assert len(model.tree.roots) == 4
    assert model.tree.n_hidden == 0
    assert model.tree.n_edges == 1


def test_binary_tree_takes_missing_cells_and_weights():
    rng = np.random.default_rng(4)
    X = simulate.random_discrete_model(simulate.double_star(6), 3, rng).sample(500, rng)
    values = X.astype(float)
    values[rng.random(X.shape) < 0.1] = np.nan
    model, _ = search.binary_tree(values, "discrete", weights=rng.uniform(0.5, 2, 500))
    assert model.tree.n_observed == 6

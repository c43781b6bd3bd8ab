"""Committees of trees that hold out other rows: how many there are, and what ends the rounds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import latentree as lt
from latentree.data import as_table
from latentree.distances import as_sample
from latentree.em import Budget, held_out_fits
from latentree.search import _folds


def draws(n: int, seed: int = 0) -> np.ndarray:
    truth = lt.simulate.random_discrete_model(lt.simulate.double_star(6), 3, 0)
    return truth.sample(n, seed)


def prepare(rows, fold, budget, most_states):
    tree = lt.structure.hidden_mutual_information_tree(rows)
    rng = np.random.default_rng(0)
    [fit] = held_out_fits(tree, rows, most_states=most_states, budget=budget, rng=rng, X_valid=fold)
    return fit


@given(st.integers(2, 5), st.integers(0, 1_000))
def test_the_gain_of_a_round_is_that_of_the_law(n_rounds, seed):
    """Where rows gain c·(1 − 1/r) in r rounds, the gain of the next round is known exactly."""
    rng = np.random.default_rng(seed)
    densities, weights = rng.normal(-5.0, 1.0, (n_rounds, 40)), rng.uniform(0.5, 2.0, 40)
    gain, height = _folds.gain_of_a_round(densities, weights)
    mean = np.log(np.exp(densities).mean(axis=0))
    assert height == pytest.approx((weights * mean).sum() / weights.sum())
    one = (weights * densities.mean(axis=0)).sum() / weights.sum()
    c = (height - one) / (1.0 - 1.0 / n_rounds)
    n = _folds.FOLDS * n_rounds
    assert gain == pytest.approx(c / n - c / (n + _folds.FOLDS))
    assert gain >= 0.0


def test_the_law_holds_for_noisy_densities():
    """Log-densities with small independent errors: averages gain as 1 − 1/r."""
    rng = np.random.default_rng(0)
    densities = rng.normal(-5.0, 0.3, (12, 500_000))
    weights = np.ones(500_000)
    gain, _ = _folds.gain_of_a_round(densities[:2], weights)
    eight, twelve = (logsumexp(densities[:n], axis=0).mean() - np.log(n) for n in (8, 12))
    assert gain == pytest.approx(twelve - eight, rel=0.1)


def test_one_round_tells_nothing():
    gain, height = _folds.gain_of_a_round(np.array([[-1.0, -3.0]]), np.array([1.0, 3.0]))
    assert gain == np.inf
    assert height == -2.5


@pytest.mark.parametrize("n_trees", [1, 3, 6])
def test_as_many_trees_as_wanted(n_trees):
    fitted = _folds.fold_mixture(
        as_sample(draws(120), "discrete"), prepare, n_trees, random_state=0
    )
    assert fitted.model.n_trees == n_trees
    assert fitted.report.converged


def test_rounds_end_when_they_gain_a_trace_or_take_too_long():
    table = as_table(draws(100), "discrete")
    committee = _folds._Committee(table, prepare, Budget(), np.random.default_rng(0))
    rng = np.random.default_rng(1)
    committee.densities = [rng.normal(-5.0, 0.5, 100)]
    assert committee._needs_more()
    committee.work = committee.last_work = 0.6 * _folds.MOST_WORK
    assert not committee._needs_more()
    committee.work = committee.last_work = 0.0
    committee.densities.append(rng.normal(-5.0, 0.5, 100))
    assert committee._needs_more()
    committee.densities += [rng.normal(-5.0, 0.5, 100) for _ in range(_folds.MOST_ROUNDS - 2)]
    assert not committee._needs_more()
    committee.densities = [np.full(100, -5.0)] * 2  # both rounds say the same
    assert not committee._needs_more()


def test_every_row_is_judged_by_a_tree_that_left_it_out():
    table = as_table(draws(101), "discrete")
    seen = []

    def watched(rows, fold, budget, most_states):
        seen.append((rows.total_weight, fold.n_rows))
        return prepare(rows, fold, budget, most_states)

    committee = _folds._Committee(table, watched, Budget(), np.random.default_rng(0))
    committee.fill(4)
    assert all(kept + left == 101 for kept, left in seen)
    assert sum(left for _, left in seen) == 101
    assert np.isfinite(committee.densities[0]).all()
    # The trees have learned from all rows in the end: then the same rows are more probable.
    models = [model for member in committee.members for model in member.models]
    final = np.mean([model.log_likelihood(table) for model in models])
    assert committee.densities[0].mean() < final


def test_a_later_round_that_is_cut_is_dropped():
    def interrupted(rows, fold, budget, most_states):
        fit = prepare(rows, fold, budget, most_states)
        if most_states is not None:
            fit.deadline = -np.inf
        return fit

    fitted = _folds.fold_mixture(as_sample(draws(120), "discrete"), interrupted, 8, random_state=0)
    assert fitted.model.n_trees == 4
    assert not fitted.report.converged
    assert fitted.report.notes[0].startswith("4 trees: the time limit")


def two_worlds(n: int, seed: int) -> np.ndarray:
    """Rows of two classes, whose columns depend on each other along other trees."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (n, 8))
    for row, turned in zip(rows, rng.random(n) < 0.5, strict=True):
        order = [0, 2, 4, 6, 1, 3, 5, 7] if turned else range(8)
        for before, after in pairwise(order):
            if rng.random() < 0.9:
                row[after] = row[before] if turned else 1 - row[before]
    return rows


def test_classes_of_rows_get_trees_of_their_own():
    table = as_table(two_worlds(700, 0), "discrete")
    committee = _folds._Committee(table, prepare, Budget(), np.random.default_rng(0))
    committee.n_classes = 2
    found = committee._round(1)
    [(fold, member)] = found
    assert len(member.models) == 2
    assert member.weights.sum() == pytest.approx(1.0)
    assert committee._left_out(found)[fold] == pytest.approx(member.density)
    share = committee._shares(fold)
    assert share.shape == (700, 2)
    assert share.sum(axis=1) == pytest.approx(1.0)


def test_a_gain_is_more_than_its_standard_error():
    rng = np.random.default_rng(0)
    others, weights = rng.normal(-5.0, 1.0, 400), np.ones(400)
    noise = rng.normal(0.0, 1.0, 400)
    noise -= noise.mean()
    assert _folds.is_gain(others + noise + 0.06, others, weights)
    assert not _folds.is_gain(others + noise + 0.04, others, weights)


def test_classes_that_take_too_long_are_given_up():
    table = as_table(draws(100), "discrete")
    committee = _folds._Committee(table, prepare, Budget(), np.random.default_rng(0))
    committee.n_classes, committee.work = 2, 2.0 * _folds.MOST_CLASS_WORK
    assert committee._round(_folds.FOLDS) == []
    assert not committee.stopped

"""Searches on the correlations behind columns: factors that the cells do not tell apart."""

from __future__ import annotations

import numpy as np
import pytest

import latentree as lt
from latentree.distances import as_sample
from latentree.em import Fitted
from latentree.inference import Thresholds
from latentree.search import fit_copula_tree

SPLIT = lt.Tree([6, 6, 6, 7, 7, 7, 7, -1], n_observed=6)  # h2 – h1, three answers each


def answers(between, n=1_500):
    """Answers behind two factors with the given correlation."""
    truth = lt.CopulaTreeModel(SPLIT, [0.8] * 6 + [between, 0], [Thresholds([-0.7, 0.6])] * 6)
    names = [f"x{j}" for j in range(6)]
    kinds = dict.fromkeys(names, "ordered")
    return as_sample(lt.as_table(truth.sample(n, 0), "copula", names=names, kinds=kinds))


def finds_both(sample, **options):
    """Stand in for a search that finds both factors."""
    model, report = lt.fit_parameters(SPLIT, sample)
    return Fitted(model, report)


@pytest.mark.parametrize(("between", "n_hidden"), [(0.999, 1), (0.6, 2)])
def test_factors_become_one_if_that_raises_bic(between, n_hidden):
    sample = answers(between)
    plain = fit_copula_tree(finds_both, sample)
    simple = fit_copula_tree(finds_both, sample, simplify=True)
    assert plain.model.tree.n_hidden == 2
    assert simple.model.tree.n_hidden == n_hidden
    if n_hidden == 1:
        assert simple.report.bic_score > plain.report.bic_score
    assert any("normal variables behind" in note for note in simple.report.notes)


def test_factors_of_columns_of_all_kinds_are_found():
    rng = np.random.default_rng(0)
    n = 1_200
    first = rng.standard_normal(n)
    second = 0.5 * first + np.sqrt(0.75) * rng.standard_normal(n)

    def seen(z, r):
        return r * z + np.sqrt(1 - r * r) * rng.standard_normal(n)

    table = {
        "calm": np.digitize(seen(first, 0.8), [-1, 0, 1]),
        "worry": np.digitize(seen(first, -0.7), [-0.5, 0.5]),
        "mood": np.array(["bad", "fair", "good"])[np.digitize(seen(first, 0.75), [-1, 0.5])],
        "income": np.exp(10 + 0.6 * seen(second, 0.8)),
        "visits": rng.poisson(np.exp(0.8 + 0.5 * seen(second, 0.8))),
        "hours": 30 + 8 * seen(second, 0.7),
    }
    learned = lt.LatentTree("refined", hidden="ranks", random_state=0)
    groups = learned.fit(table).tree_.cut(2).groups
    assert {frozenset(group) for group in groups} == {
        frozenset({"calm", "worry", "mood"}), frozenset({"income", "visits", "hours"})
    }  # fmt: skip

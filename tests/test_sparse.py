"""Sparse 0/1 tables stay sparse from the counts to the hidden variables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import latentree as lt
from latentree import simulate
from latentree.distances import DistinctRows
from latentree.errors import MemoryBudgetError

MOST_CELLS = 1 << 16


@pytest.fixture
def never_dense(monkeypatch):
    """Refuse to make anything dense that is larger than a few rows or columns."""
    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        plain = kind.toarray

        def guarded(self, *arguments, plain=plain, **options):
            if self.shape[0] * self.shape[1] > MOST_CELLS:
                raise AssertionError(f"a table of shape {self.shape} was made dense")
            return plain(self, *arguments, **options)

        monkeypatch.setattr(kind, "toarray", guarded)
        monkeypatch.setattr(kind, "todense", guarded)


def documents(n: int = 4_000, m: int = 60):
    """Return documents of few words, and their tree."""
    tree = simulate.caterpillar(m, 10)
    model = simulate.random_discrete_model(tree, 2, 0)
    rare = model.sample(n, 1) & (np.random.default_rng(2).random((n, m)) < 0.5)
    return tree, rare.astype(np.int8)


def test_nothing_is_made_dense(never_dense):
    _, codes = documents()
    words = sparse.csr_array(codes)
    learned = lt.LatentTree(method="clnj", max_steps=5, random_state=0).fit(words)
    assert learned.score_samples(words).shape == (4_000,)
    assert learned.transform(words).shape == (4_000, 2 * learned.n_hidden_)
    assert np.isfinite([learned.score(words), learned.bic(words)]).all()
    assert learned.model_.complete(words[:100]).shape == (100, learned.tree_.n_nodes)


def test_it_is_the_same_as_dense():
    _, codes = documents(1_000, 30)
    options = {"method": "clrg", "max_steps": 20, "random_state": 0}
    dense = lt.LatentTree(**options).fit(codes)
    words = sparse.csr_array(codes)
    learned = lt.LatentTree(**options).fit(words)
    assert learned.tree_.equals(dense.tree_)
    assert np.allclose(learned.model_.theta, dense.model_.theta, atol=1e-9)
    assert np.allclose(learned.transform(words), dense.transform(codes), atol=1e-9)
    name = learned.tree_.names[3]
    expected = dense.column_proba(codes, name)
    assert np.allclose(learned.column_proba(words, name), expected, atol=1e-9)


def test_weighted_rows_start_from_the_same_counts():
    _, codes = documents(500, 20)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 500)
    tree = simulate.caterpillar(20, 5)
    fitted = [
        lt.fit_parameters(tree, x, weights=weights, n_starts=1, budget=lt.em.Budget(max_steps=3))
        for x in (codes, sparse.csr_array(codes))
    ]
    assert np.allclose(fitted[0].model.theta, fitted[1].model.theta, atol=1e-9)


def test_predictions_do_not_depend_on_parts_of_the_rows(monkeypatch):
    _, codes = documents(300, 20)
    learned = lt.LatentTree(method="clnj", max_steps=5, random_state=0).fit(codes)
    expected = learned.column_proba(codes, "x3")
    monkeypatch.setenv("LATENTREE_PART_CELLS", str(20 * 64))
    assert np.allclose(learned.column_proba(codes, "x3"), expected, atol=1e-12)


def test_what_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    tree, codes = documents(2_000, 40)
    model, _ = lt.fit_parameters(
        tree, codes, n_starts=1, random_state=0, budget=lt.em.Budget(max_steps=2)
    )
    for action, message in [
        (lambda: model.posterior(codes), "ask for fewer nodes, or for fewer rows at a time"),
        (lambda: model.sample(10_000), "10,000 rows of 44 nodes would need 3.52 MB"),
        (lambda: lt.fit_parameters(tree, codes), "fit a sample of the rows"),
        (lambda: lt.information_distances(codes, dense=True), "packed into bits would need"),
        (lambda: lt.structure.mutual_information_tree(codes), "packed into bits would need"),
    ]:
        # A fit packs the rows into 10.2 kB of bits before its passes ask for memory.
        monkeypatch.setenv("LATENTREE_MEMORY", "11 kB" if "sample" in message else "9 kB")
        with pytest.raises(MemoryBudgetError, match=message):
            action()


def test_fits_and_statistics_stay_sparse(never_dense):
    tree, codes = documents()
    words = sparse.csr_array(codes)
    budget = lt.em.Budget(max_steps=3)
    options = {"n_starts": 1, "random_state": 0, "budget": budget}
    learned, expected = (lt.fit_parameters(tree, x, **options).model for x in (words, codes))
    assert np.allclose(learned.theta, expected.theta, atol=1e-9)


def test_distinct_rows_of_sparse_tables_are_those_of_dense_ones():
    _, codes = documents(500, 20)
    codes = codes[np.random.default_rng(3).integers(0, 50, 500)]
    found, expected = (DistinctRows.of(lt.as_table(x)) for x in (sparse.csr_array(codes), codes))
    assert np.array_equal(found.codes, expected.codes)
    assert np.array_equal(found.weights, expected.weights)
    assert len(found.codes) <= 50

"""Distances on demand: the same trees as from the whole matrix, which is never made."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from tests.structure.test_exact import _spanning_weight

from latentree import information_distances, simulate, structure
from latentree.distances import Distances
from latentree.distances._distances import _OnDemand
from latentree.errors import MemoryBudgetError
from latentree.structure._spanning import BlockSizes, spanning_edges

METHODS = ["chow_liu", "cl_blind", "clnj", "clrg", "hclt"]
KINDS = [
    "gaussian",
    "copies",
    "missing",
    "binary",
    "rare",
    "three",
    "symmetric",
    "weighted",
    "text",
]


def table_of(kind: str, n: int, m: int, rng: np.random.Generator):
    """Data in which ties are few (gaussian, missing), some (copies, three) or many (others)."""
    hidden = rng.standard_normal((n, max(1, m // 6)))
    x = hidden[:, rng.integers(0, hidden.shape[1], m)] + rng.uniform(0.3, 2.0, m) * (
        rng.standard_normal((n, m))
    )
    if kind == "copies":
        x[:, rng.integers(0, m, m // 3)] = x[:, rng.integers(0, m, m // 3)]
        x[:, rng.integers(0, m, m // 9)] *= -1.0
    elif kind == "missing":
        x[rng.random(x.shape) < 0.1] = np.nan
    elif kind in ("binary", "weighted"):
        return (x > 0).astype(np.int8), "discrete"
    elif kind == "rare":  # rows that are nearly all 0: most pairs are tied with others
        return (x > 2.0).astype(np.int8), "discrete"
    elif kind in ("three", "symmetric"):
        return np.digitize(x, [-0.5, 0.5]).astype(np.int8), kind.replace("three", "discrete")
    elif kind == "text":
        return sparse.csr_array((x > 1.5).astype(np.int8)), "discrete"
    return x, "gaussian"


def both_ways(kind: str, n: int, m: int, seed: int) -> list[Distances]:
    rng = np.random.default_rng(seed)
    x, family = table_of(kind, n, m, rng)
    codes = x.toarray() if sparse.issparse(x) else x
    varies = [np.unique(c[~np.isnan(c)]).size > (2 if kind in ("three", "symmetric") else 1)
              for c in codes.T.astype(float)]  # fmt: skip
    x = x[:, np.flatnonzero(varies)]
    weights = rng.integers(1, 4, n).astype(float) if kind == "weighted" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [information_distances(x, family, dense=d, weights=weights) for d in (True, False)]


SMALL = BlockSizes(neighbors=3, tile=32, span=32)
"""So small that a few hundred variables need several passes."""


def never_dense(monkeypatch):
    """Refuse the matrix of all variables; that of a small block that is apart may be made."""
    to_dense = _OnDemand.to_dense

    def refuse(self):
        n = self.statistic.n_variables if self.chosen is None else len(self.chosen)
        assert n < 100, "the whole matrix was made"
        return to_dense(self)

    monkeypatch.setattr(_OnDemand, "to_dense", refuse)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_spanning_tree_is_that_of_the_matrix(kind, seed, monkeypatch):
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n, m = int(rng.integers(5, 100)), int(rng.integers(2, 200))
    dense, lazy = both_ways(kind, n, m, seed)
    expected = spanning_edges(dense)
    never_dense(monkeypatch)
    assert np.array_equal(spanning_edges(lazy, SMALL), expected)


@pytest.mark.parametrize("kind", ["gaussian", "copies", "rare", "text"])
def test_spanning_tree_of_many_variables(kind, monkeypatch):
    dense, lazy = both_ways(kind, 100, 3_000, 1)
    never_dense(monkeypatch)
    assert np.array_equal(spanning_edges(lazy), spanning_edges(dense))


@pytest.mark.parametrize("seed", range(20))
def test_few_values_in_a_matrix(seed):
    """Edges of the same length everywhere: only the order of edges tells trees apart."""

    class Blocks(Distances):
        is_dense = False

    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 300))
    d = np.triu(rng.integers(1, 4, (m, m)).astype(float), 1)
    dense = Distances.from_matrix(d + d.T)
    lazy = Blocks(dense.names, None, None, dense.source)
    expected = spanning_edges(dense)
    assert np.array_equal(spanning_edges(lazy, SMALL), expected)
    assert _spanning_weight(d + d.T, expected) == _kruskal(d)


def _kruskal(d: np.ndarray) -> float:
    group = list(range(len(d)))
    total = 0.0
    for i, j in sorted(zip(*np.triu_indices(len(d), 1), strict=True), key=lambda e: d[e]):
        if group[i] != group[j]:
            old = group[j]
            group = [group[i] if g == old else g for g in group]
            total += d[i, j]
    return total


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "copies"])
def test_learners_find_the_same_tree(kind, method, monkeypatch):
    # Not from copies of real columns: there rounding decides which of two copies comes first.
    dense, lazy = both_ways(kind, 150, 160, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of independent blocks
        expected = structure.learn_structure(dense, method)
        never_dense(monkeypatch)
        tree = structure.learn_structure(lazy, method)
    assert np.array_equal(tree.parent, expected.parent)
    assert np.allclose(tree.length, expected.length, atol=1e-6)
    assert tree.names == expected.names


@pytest.mark.parametrize("method", ["clnj", "clrg"])
def test_a_hub_costs_its_own_neighborhood_only(method, monkeypatch):
    rng = np.random.default_rng(0)
    model = simulate.random_gaussian_model(simulate.latent_class(150), rng, (0.5, 0.9))
    x = model.sample(500, rng)
    expected = structure.learn_structure(information_distances(x), method)
    lazy = information_distances(x, dense=False)
    never_dense(monkeypatch)
    assert np.array_equal(structure.learn_structure(lazy, method).parent, expected.parent)


@pytest.mark.parametrize("method", ["nj", "rg"])
def test_methods_that_need_the_matrix_say_so(method, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 1)) + rng.standard_normal((20, 100))
    lazy = information_distances(x, dense=False)
    monkeypatch.setenv("LATENTREE_MEMORY", "50 kB")
    with pytest.raises(MemoryBudgetError) as caught:
        structure.learn_structure(lazy, method)
    message = str(caught.value)
    assert "the matrix of distances between 100 variables would need 90 kB" in message
    assert "CLGrouping (clnj, clrg), cl_blind and chow_liu do without it" in message


def test_pairs_known_are_not_asked_for_again(monkeypatch):
    lazy = information_distances(np.random.default_rng(0).standard_normal((20, 9)), dense=False)
    block = structure.Block(lazy, spanning_edges(lazy))
    pairs = np.array([[3, 1], [0, 2], [1, 3], [5, 5]])
    expected = lazy.block(slice(None), slice(None))[pairs[:, 0], pairs[:, 1]]
    assert np.allclose(block.pair_distances(pairs), expected, atol=1e-12)
    more = np.array([[8, 0], [2, 0]])
    assert block.pair_distances(more)[1] == block.pair_distances(pairs)[1]
    monkeypatch.setattr(Distances, "of_pairs", None)
    assert np.allclose(block.pair_distances(pairs), expected, atol=1e-12)

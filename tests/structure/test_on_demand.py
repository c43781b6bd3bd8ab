"""Distances on demand: the same trees as from the whole matrix, which is never made."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree
from tests.structure.test_exact import _spanning_weight

import latentree as lt
from latentree import information_distances, simulate, structure
from latentree.distances import Distances, as_sample, distances_among_candidates
from latentree.distances._providers import BlockDistances
from latentree.errors import MemoryBudgetError
from latentree.structure._spanning import BlockSizes, candidate_pairs, spanning_edges

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
    to_dense = BlockDistances.to_dense

    def refuse(self):
        n = self.statistic.n_variables if self.chosen is None else len(self.chosen)
        assert n < 100, "the whole matrix was made"
        return to_dense(self)

    monkeypatch.setattr(BlockDistances, "to_dense", refuse)


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


# Candidates -------------------------------------------------------------------------------------


def _naive_candidates(d, count):
    """Borůvka's algorithm, with the shortest pairs of each variable that leave its component."""
    m = len(d)
    label, found = list(range(m)), set()
    while len(set(label)) > 1:
        chosen = []
        for c in sorted(set(label)):
            inside = [i for i in range(m) if label[i] == c]
            shortest = []
            for i in inside:
                leaving = sorted((d[i, j], j) for j in range(m) if label[j] != c)
                near = [(x, min(i, j), max(i, j)) for x, j in leaving[: -(-count // len(inside))]]
                found.update(pair[1:] for pair in near)
                shortest += near
            chosen.append(min(shortest)[1:])
        for i, j in chosen:
            label = [label[j] if each == label[i] else each for each in label]
    return sorted(found)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize("seed", range(5))
def test_candidates_are_the_shortest_pairs_that_leave_each_component(count, seed):
    dense, lazy = both_ways("gaussian", 40, 25, seed)
    expected = _naive_candidates(dense.dense(), count)
    for distances in (dense, lazy):
        assert list(map(tuple, candidate_pairs(distances, count).tolist())) == expected


def test_candidates_stay_within_components():
    distances = both_ways("gaussian", 60, 20, 3)[0]
    label = np.arange(distances.n_variables) % 3
    found = candidate_pairs(replace(distances, components=label), 4)
    assert (label[found[:, 0]] == label[found[:, 1]]).all()
    wanted = [
        np.flatnonzero(label == c)[candidate_pairs(distances.subset(label == c), 4)]
        for c in range(3)
    ]
    assert set(map(tuple, found.tolist())) == set(map(tuple, np.concatenate(wanted).tolist()))


@pytest.mark.parametrize("method", ["chow_liu", "clnj"])
@pytest.mark.parametrize("kind", ["gaussian", "missing", "binary", "three"])
def test_all_pairs_as_candidates_give_the_same_tree(kind, method):
    rng = np.random.default_rng(4)
    x, family = table_of(kind, 300, 40, rng)
    sample = as_sample(x, family, rng.integers(1, 4, 300).astype(float))
    every = np.column_stack(np.triu_indices(sample.n_columns, 1))
    among = distances_among_candidates(sample.table, sample.statistics, every)
    one = np.zeros(sample.n_columns, np.int64)
    wanted = structure.learn_structure(replace(sample.distances, components=one), method)
    found = structure.learn_structure(replace(among, components=one), method)
    assert found == wanted or lt.metrics.robinson_foulds(found, wanted) == 0
    two = np.arange(sample.n_columns) % 2  # pairs are numbered anew in each component
    wanted = structure.learn_structure(replace(sample.distances, components=two), method)
    found = structure.learn_structure(replace(among, components=two), method)
    assert lt.metrics.robinson_foulds(found, wanted) == 0


def test_spanning_tree_among_candidates_is_that_of_their_graph():
    rng = np.random.default_rng(5)
    sample = as_sample(rng.normal(size=(50, 60)))
    near = candidate_pairs(sample.distances, 3)
    found = spanning_edges(distances_among_candidates(sample.table, sample.statistics, near))
    d = sample.distances.dense()
    graph = np.zeros_like(d)
    graph[near[:, 0], near[:, 1]] = d[near[:, 0], near[:, 1]]
    wanted = minimum_spanning_tree(sparse.csr_array(graph)).sum()
    assert len(found) == 59
    assert d[found[:, 0], found[:, 1]].sum() == pytest.approx(wanted)

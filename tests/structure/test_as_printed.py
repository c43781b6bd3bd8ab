"""The paper's algorithms as printed, beside naive ones and without all that latentree adds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import skbio
from hypothesis import given
from tests.structure.shapes import latent_trees, sampled_distances, with_lengths

import latentree as lt
from latentree import structure
from latentree.distances import Distances
from latentree.tree import Tree

LEARNERS = {
    "rg": structure.recursive_grouping,
    "nj": structure.neighbor_joining,
    "clrg": lambda d, **how: structure.cl_grouping(d, "rg", **how),
    "clnj": lambda d, **how: structure.cl_grouping(d, "nj", **how),
}


def noisy(seed: int, m: int = 12, n: int = 2_000) -> Distances:
    """Distances that 2,000 rows show of a random latent tree."""
    rng = np.random.default_rng(seed)
    tree = lt.simulate.random_latent_tree(m, rng)
    model = lt.simulate.random_gaussian_model(tree, rng, (0.6, 0.9))
    return lt.information_distances(model.sample(n, rng))


@pytest.mark.parametrize("method", LEARNERS)
@given(tree=latent_trees())
def test_exact_distances_give_the_tree_back(method, tree):
    found = LEARNERS[method](tree.path_lengths(range(tree.n_observed), range(tree.n_observed)),
                             threshold=1e-6, as_printed=True)  # fmt: skip
    assert found.equals(tree, 1e-6)


def contracted(edges, m: int, threshold: float) -> Tree:
    """Section 6.2: contract edges with a hidden end, shortest first, that are too short."""
    lengths = np.maximum([length for *_, length in edges], 0.0)
    tree = Tree.from_edges([(a, b) for a, b, _ in edges], m, lengths)
    return structure.contract_short(tree, threshold)


@pytest.mark.parametrize("seed", range(8))
def test_neighbor_joining_is_that_of_saitou_and_nei(seed):
    distances = noisy(seed)
    m = distances.n_variables
    reference = skbio.tree.nj(
        skbio.DistanceMatrix(np.asarray(distances.dense()), list(map(str, range(m))))
    )
    number = {node: int(node.name) if node.is_tip() else None for node in reference.traverse()}
    inner = itertools.count(m)
    number = {node: next(inner) if k is None else k for node, k in number.items()}
    edges = [
        (number[node], number[node.parent], node.length)
        for node in reference.traverse() if node.parent is not None
    ]  # fmt: skip
    found = structure.neighbor_joining(distances, as_printed=True)
    assert found.equals(contracted(edges, m, structure.STRONG), 1e-9)


def naive_grouping(d: np.ndarray, tau: float, epsilon: float) -> Tree:
    """Section 6.1, equations (10) to (14), with the threshold ε; parents are contracted."""
    m = len(d)
    active, children = list(range(m)), {v: [v] for v in range(m)}
    dist = {(i, j): d[i, j] for i in range(m) for j in range(m)}
    edges, following = [], m

    def near(i, j):
        return [k for k in active if k not in (i, j) and max(dist[i, k], dist[j, k]) < tau]

    def spread(i, j):
        phi = [dist[i, k] - dist[j, k] for k in near(i, j)]
        return max(phi) - min(phi) if phi else 0.0

    while len(active) > 2:
        families = []
        for i in active:  # i ~ j where Λ̂_ij < ε
            home = [f for f in families if all(spread(i, j) < epsilon for j in f)]
            home[0].append(i) if home else families.append([i])
        if len(active) == 3:
            families = [list(active)]
        assert len(families) < len(active), "the test's instance has no siblings by ε"
        new = []
        for family in families:
            if len(family) == 1:
                new.append(family[0])
                continue
            h, following = following, following + 1
            to_h = {}
            for i in family:  # (13), the mean over k inside the sum over j
                terms = []
                for j in family:
                    if j != i:
                        ks = near(i, j)
                        mean = sum(dist[i, k] - dist[j, k] for k in ks) / len(ks) if ks else 0.0
                        terms.append((dist[i, j] + mean) / 2.0)
                to_h[i] = sum(terms) / len(terms)
            edges += [(i, h, to_h[i]) for i in family]
            children[h] = (family, to_h)
            new.append(h)
        for a, b in itertools.permutations(new, 2):  # (14)
            below = [
                [(v, 0.0)] if v in active else [(i, children[v][1][i]) for i in children[v][0]]
                for v in (a, b)
            ]
            dist[a, b] = np.mean([dist[i, j] - x - y for i, x in below[0] for j, y in below[1]])
        active = new
    if len(active) == 2:
        edges.append((*active, dist[tuple(active)]))
    lengths = np.maximum([length for *_, length in edges], 0.0)
    tree = Tree.from_edges([(a, b) for a, b, _ in edges], m, lengths, minimal=True)
    return structure.contract_short(tree, structure.STRONG)


@pytest.mark.parametrize("seed", range(5))
def test_recursive_grouping_is_that_of_the_formulas(seed):
    rng = np.random.default_rng(seed)
    tree = lt.simulate.random_latent_tree(10, rng)
    tree = with_lengths(tree, rng.uniform(0.3, 0.6, tree.n_nodes))
    d = tree.path_lengths(range(10), range(10))
    d = np.triu(d + rng.normal(0.0, 0.0005, d.shape), 1)
    d += d.T
    tau = float(np.quantile(d, 0.8))
    found = structure.recursive_grouping(d, tau=tau, epsilon=0.1, as_printed=True)
    assert found.equals(naive_grouping(d, tau, 0.1), 1e-9)


def test_the_threshold_of_long_distances_grows_with_log_n():
    distances = noisy(1, n=1_000)
    tau = -math.log(0.05) + 0.1 * math.log(1_000)
    by_hand = structure.recursive_grouping(distances.dense(), tau=tau)
    assert structure.recursive_grouping(distances, as_printed=True) == by_hand.renamed(
        distances.names
    )


@pytest.mark.parametrize("method", ["nj", "clnj"])
def test_nothing_depends_on_the_number_of_rows(method):
    distances = noisy(2)
    d = distances.dense()
    few = Distances.from_matrix(d, n_samples=20)
    assert LEARNERS[method](few, as_printed=True) == LEARNERS[method](d)
    assert LEARNERS[method](few) != LEARNERS[method](d)  # which would be no test otherwise


def test_nothing_is_said_to_be_independent():
    X = np.random.default_rng(0).normal(size=(200, 6))
    distances = lt.information_distances(X)
    for learn in (*LEARNERS.values(), structure.cl_blind):
        assert learn(distances, as_printed=True).roots.size == 1


def test_blind_lengths_are_those_of_the_formula():
    tree = lt.simulate.latent_class(5)
    tree = with_lengths(tree, np.array([0.4, 0.5, 0.6, 0.7, 0.8, 0.0]))
    d = sampled_distances(tree, 500, np.random.default_rng(1))
    distances = Distances.from_matrix(d, n_samples=500)
    printed = structure.cl_blind(distances, as_printed=True)
    assert printed == structure.cl_blind(d)

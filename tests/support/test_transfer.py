"""Transfer distances: the kernel against the definition, over all pairs of splits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latentree as lt
from latentree._kernels.compiling import repeated, tiny
from latentree.support._transfer import edge_claims, transfer_distances
from latentree.tree import Tree
from strategies import relabeled, trees


def naive_distances(tree: Tree, other: Tree) -> dict[int, int]:
    """Fewest moves for the edge above every node that has a claim, from sets."""
    found = {}
    for node, (inside, outside) in naive_claims(tree).items():
        counted = inside | outside
        clusters = [sides & counted for sides in _clusters(other)]
        moves = [len(side ^ cluster) for side in (inside, outside) for cluster in clusters]
        found[node] = min(*moves, len(inside) - 1, len(outside) - 1)
    return found


def naive_claims(tree: Tree) -> dict[int, tuple[set[int], set[int]]]:
    """The two sides of every edge, without its ends where two others remain on either side."""
    below = _below(tree)
    found = {}
    for above, node in tree.edges.tolist():
        whole = {v for v in range(tree.n_observed) if tree.components[v] == tree.components[node]}
        inside, outside = below[node], whole - below[node]
        without = inside - {node}, outside - {above}
        for sides in (without, (inside, outside)):
            if min(map(len, sides)) >= 2:
                found[node] = sides
                break
    return found


def _below(tree: Tree) -> list[set[int]]:
    below = [{v} if v < tree.n_observed else set() for v in range(tree.n_nodes)]
    for node in tree.order[::-1]:
        if tree.parent[node] >= 0:
            below[tree.parent[node]] |= below[node]
    return below


def _clusters(tree: Tree) -> list[set[int]]:
    """What is below every node, and what is not."""
    every = set(range(tree.n_observed))
    return [side for side in _below(tree) for side in (side, every - side)]


@st.composite
def pairs(draw):
    """Two forests over the same variables: the second has another's shape, or nearly the same."""
    first = draw(trees(max_inner=8))
    second = draw(trees(max_inner=8))
    m = min(first.n_observed, second.n_observed)
    return _cut_to(first, m), _cut_to(second, m)


def _cut_to(tree: Tree, m: int) -> Tree:
    """Keep the first variables; the others become hidden, or go."""
    return Tree.from_parents(tree.parent, tree.length, m, minimal=True)


@given(pairs())
def test_kernel_equals_definition(both):
    tree, other = both
    found = transfer_distances(edge_claims(tree), other)
    expected = naive_distances(tree, other)
    assert {v: found[v] for v in np.flatnonzero(found >= 0)} == expected


@given(trees().flatmap(lambda tree: st.tuples(st.just(tree), relabeled(tree))))
def test_a_tree_supports_itself(both):
    tree, same = both
    found = transfer_distances(edge_claims(tree), same)
    assert set(found.tolist()) <= {-1, 0}


@pytest.mark.parametrize("shape", ["random", "chain", "star"])
def test_compiled_equals_definition_on_larger_trees(shape):
    rng = np.random.default_rng(0)
    make = {
        "random": lambda: lt.simulate.random_latent_tree(60, rng),
        "chain": lambda: lt.simulate.hidden_markov(60),
        "star": lambda: lt.simulate.latent_class(60),
    }[shape]
    tree, other = make(), make()
    new = np.append(rng.permutation(60), np.arange(60, other.n_nodes))
    back = np.argsort(new)
    place = np.append(new, -1)
    other = Tree(place[other.parent[back]], None, 60)
    with repeated():
        found = transfer_distances(edge_claims(tree), other)
    with tiny(True):
        assert np.array_equal(found, transfer_distances(edge_claims(tree), other))
    assert {v: found[v] for v in np.flatnonzero(found >= 0)} == naive_distances(tree, other)


def test_a_demoted_node_is_no_disagreement():
    # x0 between two hidden nodes, against x0 as a leaf of the first of them.
    inner = Tree.from_edges([(0, 5), (0, 6), (5, 1), (5, 2), (6, 3), (6, 4)], 5)
    leaf = Tree.from_edges([(5, 6), (0, 5), (5, 1), (5, 2), (6, 3), (6, 4)], 5)
    found = transfer_distances(edge_claims(inner), leaf)
    assert sorted(found[found >= 0]) == [0, 0]


def test_two_variables_that_change_places_are_two_moves():
    tree = Tree.from_edges([(0, 6), (1, 6), (2, 6), (6, 7), (7, 3), (7, 4), (7, 5)], 6)
    other = Tree.from_edges([(0, 6), (1, 6), (3, 6), (6, 7), (7, 2), (7, 4), (7, 5)], 6)
    found = transfer_distances(edge_claims(tree), other)
    assert found[found >= 0].tolist() == [2]

"""Groups of variables: the tightest of all cuts, against their enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentree import simulate
from latentree.errors import TreeError
from latentree.tree import Tree

SEEDS = st.integers(0, 2**32 - 1)


def forest(seed: int) -> Tree:
    """One to three random trees with random lengths."""
    rng = np.random.default_rng(seed)
    shapes = [
        simulate.random_latent_tree(int(rng.integers(1, 6)), rng, rng.uniform(0, 0.6))
        for _ in range(rng.integers(1, 4))
    ]
    shapes = [simulate.random_lengths(shape, rng) for shape in shapes[: 3 if seed % 3 else 1]]
    edges, lengths, hidden = [], [], 0
    m = sum(shape.n_observed for shape in shapes)
    first = 0
    for shape in shapes:
        number = np.concatenate(
            [first + np.arange(shape.n_observed), m + hidden + np.arange(shape.n_hidden)]
        )
        edges += [[number[a], number[b]] for a, b in shape.edges]
        lengths += shape.length[shape.edges[:, 1]].tolist()
        first, hidden = first + shape.n_observed, hidden + shape.n_hidden
    return Tree.from_edges(np.array(edges).reshape(-1, 2), m, lengths)


def naive_cost(tree: Tree, k: int, least: int) -> float:
    """The least total length over all sets of edges to remove."""
    lengths = tree.path_lengths(np.arange(tree.n_nodes), np.arange(tree.n_nodes))
    n_trees = tree.components.max() + 1
    inner = np.array(
        [
            tree.degrees[v] > 1
            or not (tree.degrees[tree.components == tree.components[v]] > 1).any()
            for v in range(tree.n_nodes)
        ]
    )
    best = np.inf
    for removed in combinations(tree.edges[:, 1].tolist(), k - n_trees):
        parent = tree.parent.copy()
        parent[list(removed)] = -1
        piece = np.empty(tree.n_nodes, int)
        for v in tree.order:
            piece[v] = v if parent[v] < 0 else piece[parent[v]]
        cost = 0.0
        for top in np.unique(piece):
            mine = np.flatnonzero(piece == top)
            seen, speak = mine[mine < tree.n_observed], mine[inner[mine]]
            if seen.size < least or speak.size == 0:
                cost = np.inf
                break
            cost += lengths[np.ix_(seen, speak)].sum(axis=0).min()
        best = min(best, cost)
    return best


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(1, 4))
def test_the_cut_is_the_tightest_of_all(seed: int, k: int) -> None:
    tree = forest(seed)
    if k - (tree.components.max() + 1) > tree.n_edges:
        return
    least = [naive_cost(tree, k, n) if k > tree.components.max() else np.inf for n in (2, 1)]
    if np.isinf(min(least)):
        with pytest.raises(TreeError, match=f"k is {k}, but the"):
            tree.cut(k)
        return
    expected = least[0] if np.isfinite(least[0]) else least[1]
    cut = tree.cut(k)
    assert cut.total_length == pytest.approx(expected)
    assert len(cut.groups) == len(cut.representatives) == k
    assert sorted(sum(cut.groups, ())) == sorted(tree.names[: tree.n_observed])
    if np.isfinite(least[0]):
        assert min(map(len, cut.groups)) >= 2
    total = sum(
        tree.path_lengths([tree.index(node)], [tree.index(name) for name in names]).sum()
        for node, names in zip(cut.representatives, cut.groups, strict=True)
    )
    assert total == pytest.approx(cut.total_length)


def test_the_root_does_not_matter() -> None:
    tree = simulate.random_lengths(simulate.random_latent_tree(12, 0), 1)
    cuts = {tree.rerooted(node).cut(3).groups for node in range(tree.n_nodes)}
    assert len(cuts) == 1


def test_a_tree_of_many_variables() -> None:
    tree = simulate.caterpillar(300, leaves=30)
    cut = tree.with_lengths(np.where(tree.parent >= 300, 5.0, tree.length)).cut(10)
    assert sorted(map(len, cut.groups)) == [30] * 10
    assert all(node.startswith("h") for node in cut.representatives)

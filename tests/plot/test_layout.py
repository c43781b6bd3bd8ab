"""Layouts: every node placed, no two edges crossing, however deep the tree."""

from __future__ import annotations

import numpy as np
import pytest

from latentree import Tree, simulate
from latentree.plot import layered_layout, radial_layout

LAYOUTS = [radial_layout, layered_layout]


def random_observed_tree(m, seed):
    """A tree without hidden nodes: each node hangs from an earlier one."""
    return Tree([-1, *(np.random.default_rng(seed).random(m - 1) * np.arange(1, m)).astype(int)])


TREES = {
    "one": Tree([-1]),
    "two": Tree([-1, 0]),
    "three": Tree([-1, 0, 1]),
    "star": simulate.latent_class(300),
    "observed star": Tree([-1] + [0] * 50),
    "double star": simulate.double_star(80),
    "chain": Tree(np.arange(-1, 79)),
    "hidden markov": simulate.hidden_markov(80),
    "complete": simulate.complete_tree(5, 3),
    "forest": Tree([-1, 0, 0, -1, 3, -1, -1, 8, -1, 8, 8], n_observed=11),
    "alone": Tree([-1] * 7),
    **{f"random {seed}": simulate.random_latent_tree(60, seed) for seed in range(4)},
    "random hubs": simulate.random_latent_tree(60, 9, merge_share=0.7),
    **{f"random observed {seed}": random_observed_tree(70, seed) for seed in range(4)},
}
each_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


@each_tree
@each_layout
def test_all_nodes_and_edges_are_placed(tree, layout):
    placed = layout(tree)
    assert placed.position.shape == (tree.n_nodes, 2)
    assert np.isfinite(placed.position).all()
    assert np.isfinite(placed.angle).all()
    assert len(placed.paths) == tree.n_edges
    assert np.isfinite(placed.paths).all()
    distinct = np.unique(placed.position.round(6), axis=0)
    assert len(distinct) == tree.n_nodes


@each_tree
@each_layout
def test_paths_join_the_ends_of_edges(tree, layout):
    placed = layout(tree)
    ends = placed.paths[:, [0, -1]]
    forward = placed.position[tree.edges]
    matches = np.isclose(ends, forward).all(axis=(1, 2))
    matches |= np.isclose(ends, forward[:, ::-1]).all(axis=(1, 2))
    assert matches.all()


def crossings(paths):
    """Pairs of edges whose polylines cross, by definition: on all pairs of segments."""
    a, b = paths[:, :-1].reshape(-1, 2), paths[:, 1:].reshape(-1, 2)
    edge = np.repeat(np.arange(len(paths)), paths.shape[1] - 1)

    def side(p, q, r):
        (x, y), (u, v) = (q - p).T, (r - p[:, None]).transpose(2, 0, 1)
        return x[:, None] * v - y[:, None] * u

    tiny = 1e-9
    of_a, of_b = side(a, b, np.broadcast_to(a, (len(a), *a.shape))), side(a, b, b[None])
    apart = ((of_a > tiny) & (of_b < -tiny)) | ((of_a < -tiny) & (of_b > tiny))
    first, second = np.nonzero(apart & apart.T)
    return {(i, j) for i, j in zip(edge[first], edge[second], strict=True) if i < j}


def test_the_check_itself_finds_crossings():
    cross = np.array([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [2.0, 1.0]]])
    assert crossings(cross) == {(0, 1)}


@each_tree
@each_layout
def test_edges_do_not_cross(tree, layout):
    if tree.n_nodes > 120:  # all pairs of segments are many
        tree = simulate.latent_class(60)
    assert crossings(layout(tree).paths) == set()


@each_layout
def test_a_very_deep_chain(layout):
    n = 200_000
    placed = layout(Tree(np.arange(-1, n - 1)))
    assert np.isfinite(placed.position).all()
    assert np.isfinite(placed.paths).all()


@each_layout
def test_the_root_of_the_tree_does_not_matter(layout):
    tree = simulate.random_latent_tree(40, 5)
    moved = tree.rerooted(17)
    assert layout(moved).position == pytest.approx(layout(tree).position)


def test_middle_of_the_tree_is_in_the_centre():
    star = radial_layout(simulate.latent_class(12))
    assert star.position[12] == pytest.approx([0, 0])
    radii = np.hypot(*star.position[:12].T)
    assert radii == pytest.approx(radii[0])
    double = radial_layout(simulate.double_star(12))  # here it is the middle of an edge
    assert double.position[12] == pytest.approx(-double.position[13])


def test_slots_give_every_label_its_own_strip():
    tree = simulate.random_latent_tree(80, 3, inner_share=0.4)
    rows = np.sort(layered_layout(tree).position[:80, 1])
    assert np.diff(rows).min() > 1 - 1e-9
    disc = radial_layout(tree)
    strips = disc.has_slot & (np.arange(tree.n_nodes) < 80)
    assert strips.sum() >= 79  # all but an observed node in the centre
    assert not disc.has_slot[80:].any()


def test_leaves_are_sorted_within_their_family():
    tree = simulate.latent_class(6)
    placed = layered_layout(tree, order_by=[2, 0, 1, 2, 0, 1, 9])
    assert np.argsort(-placed.position[:6, 1]).tolist() == [1, 4, 2, 5, 0, 3]


def test_components_do_not_overlap():
    parts = [simulate.double_star(14), simulate.latent_class(9), simulate.latent_class(5)]
    parent, start = [], 0
    for part in parts:  # all observed: only the shape matters
        parent += [p + start if p >= 0 else -1 for p in part.parent]
        start += part.n_nodes
    tree = Tree([*parent, -1, -1])
    placed = radial_layout(tree, margin=2.0)
    boxes = [placed.position[tree.components == c] for c in range(5)]
    low = np.array([box.min(axis=0) for box in boxes])
    high = np.array([box.max(axis=0) for box in boxes])
    meet = (low[:, None] < high + 0.5).all(axis=2) & (low < high[:, None] + 0.5).all(axis=2)
    assert (meet == np.eye(5, dtype=bool)).all()

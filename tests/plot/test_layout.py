"""Layouts: every node placed, no two edges crossing, however deep the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from latentree import Tree, simulate
from latentree._kernels import plot as packing
from latentree.plot import layered_layout, radial_layout
from latentree.plot._tree_layout import _CenteredTree

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
    low, high = paths.min(axis=1), paths.max(axis=1)
    near = (low[:, None] <= high).all(axis=2) & (low <= high[:, None]).all(axis=2)

    def parted(a, b):
        """For each segment of a and of b: whether the ends of b lie on both sides of a."""
        (x, y), (u, v) = np.diff(a, axis=0).T, (b - a[:-1, None]).transpose(2, 0, 1)
        side = x[:, None] * v - y[:, None] * u
        tiny = 1e-9
        return ((side[:, :-1] > tiny) & (side[:, 1:] < -tiny)) | (
            (side[:, :-1] < -tiny) & (side[:, 1:] > tiny)
        )

    return {
        (i, j)
        for i, j in np.argwhere(np.triu(near, 1)).tolist()
        if (parted(paths[i], paths[j]) & parted(paths[j], paths[i]).T).any()
    }


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


def test_middle_of_the_tree_is_in_the_center():
    star = radial_layout(simulate.latent_class(12))
    assert star.position[12] == pytest.approx([0, 0])
    radii = np.hypot(*star.position[:12].T)
    assert radii == pytest.approx(radii[0])
    for m in (8, 10, 12, 14, 20, 40):  # here it is the middle of an edge, as straight as can be
        ends = radial_layout(simulate.double_star(m)).position[[m, m + 1]]
        first, second = np.linalg.norm(ends, axis=1)
        assert first == pytest.approx(second)
        assert ends[0] @ ends[1] <= np.cos(np.radians(175)) * first * second


def test_rows_give_every_label_its_own_strip():
    tree = simulate.random_latent_tree(80, 3, inner_share=0.4)
    rows = np.sort(layered_layout(tree).position[:80, 1])
    assert np.diff(rows).min() > 1 - 1e-9


def strips_entered(tree, placed, reach):
    """By definition: pairs (label, other label) and (label, edge) that meet, on dense points."""
    out = np.stack([np.cos(placed.angle), np.sin(placed.angle)], axis=1)
    aside = np.stack([-out[:, 1], out[:, 0]], axis=1)
    u = np.linspace(0.0, 1.0, 3, endpoint=False)[:, None, None, None]
    edges = (1 - u) * placed.paths[:, :-1] + u * placed.paths[:, 1:]
    labeled = np.flatnonzero(placed.has_slot)
    steps = np.linspace(0.3, 1.0, 40)
    texts = np.concatenate(
        [
            placed.position[labeled, None]
            + steps[:, None] * reach[labeled, None, None] * out[labeled, None]
            + side * aside[labeled, None]
            for side in (-0.4, 0.0, 0.4)
        ],
        axis=1,
    )
    met = []
    for v in labeled.tolist():

        def enters(points, v=v):
            offset = points - placed.position[v]
            along, across = offset @ out[v], offset @ aside[v]
            return (along > 0.55) & (along < reach[v]) & (np.abs(across) < 0.4)

        met += [(v, "edge", int(e)) for e in np.flatnonzero(enters(edges).any(axis=(0, 2)))]
        near = labeled[enters(texts).any(axis=1)]
        met += [(v, "label", int(w)) for w in near if w != v]
    return met


LARGE = {
    f"{m} {seed} {share}": simulate.random_latent_tree(m, seed, inner_share=share)
    for m, seed, share in [(300, 0, 0.2), (300, 1, 0.6), (150, 2, 0.95), (150, 3, 0.0)]
}


@pytest.mark.parametrize("tree", [*TREES.values(), *LARGE.values()], ids=[*TREES, *LARGE])
def test_nothing_enters_the_strip_of_a_label_in_a_disc(tree):
    reach = np.zeros(tree.n_nodes)
    reach[: tree.n_observed] = np.random.default_rng(0).uniform(1.0, 10.0, tree.n_observed)
    placed = radial_layout(tree, reach=reach[: tree.n_observed])
    in_center = (tree.degrees[: tree.n_observed] > 0) & ~placed.has_slot[: tree.n_observed]
    assert in_center.sum() <= len(tree.roots)
    assert not placed.has_slot[tree.n_observed :].any()
    assert strips_entered(tree, placed, reach) == []


def test_the_check_of_strips_finds_what_enters():
    tree = simulate.latent_class(60)
    reach = np.full(61, 5.0)
    placed = radial_layout(tree, reach=5.0)
    crowded = replace(placed, position=placed.position / 2, paths=placed.paths / 2)
    assert {kind for _, kind, _ in strips_entered(tree, crowded, reach)} == {"label"}
    turned = replace(placed, angle=placed.angle + np.pi)
    assert {kind for _, kind, _ in strips_entered(tree, turned, reach)} == {"label", "edge"}


@pytest.mark.parametrize(
    ("tree", "across"),
    [
        (simulate.latent_class(300), 300 / np.pi),  # on a circle, side by side
        (Tree(np.arange(-1, 299)), 70),  # wound up
        (simulate.random_latent_tree(300, 4), 110),
        (simulate.random_latent_tree(1000, 4), 320),
    ],
    ids=["star", "chain", "random", "large"],
)
def test_discs_are_small(tree, across):
    placed = radial_layout(tree, reach=4.0)
    assert np.ptp(placed.position, axis=0).max() < 1.05 * across


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
    placed = radial_layout(tree, reach=2.0)
    boxes = [placed.position[tree.components == c] for c in range(5)]
    low = np.array([box.min(axis=0) for box in boxes])
    high = np.array([box.max(axis=0) for box in boxes])
    meet = (low[:, None] < high + 0.5).all(axis=2) & (low < high[:, None] + 0.5).all(axis=2)
    assert (meet == np.eye(5, dtype=bool)).all()


@pytest.mark.parametrize("seed", range(3))
def test_compiled_packing_is_the_same(seed):
    tree = simulate.random_latent_tree(60, seed, inner_share=0.4)
    hung = _CenteredTree.of(tree, None)
    root = int(np.flatnonzero(hung.parent < 0)[0])
    depth = np.zeros(hung.parent.size)
    for v in hung.order.tolist():
        depth[v] = depth[hung.parent[v]] + 1 if hung.parent[v] >= 0 else 0
    level = depth / depth.max()
    nearest = level + 1 / depth.max()
    label = np.where(np.arange(level.size) < tree.n_observed, 4.0, 0.0)
    found = []
    for visits, pack in [
        (packing.visits, packing.pack),
        (packing.compiled_visits, packing.compiled_pack),
    ]:
        place, middle = np.zeros(level.size), np.zeros(level.size)
        visited = visits(root, hung.starts, hung.children)
        shape = hung.parent, hung.starts, hung.children
        filled = pack(visited, *shape, level, nearest, label, 20.0, 0.5, place, middle)
        found.append(np.concatenate([visited, place, middle, [filled]]))
    assert found[0] == pytest.approx(found[1], abs=1e-9)


@each_tree
@each_layout
def test_every_node_leads_to_the_middle(tree, layout):
    parent = layout(tree).parent
    edges = {frozenset(edge) for edge in tree.edges.tolist()}
    assert {frozenset((v, p)) for v, p in enumerate(parent.tolist()) if p >= 0} == edges
    assert (parent < 0).sum() == len(tree.roots)

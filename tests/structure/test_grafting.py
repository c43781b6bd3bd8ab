"""Moves of weak links: the sweeps over the tree against dense regressions."""

from __future__ import annotations

import numpy as np
import pytest

import latentree as lt
from latentree.structure._regraft import _best_move, _weak_links
from latentree.tree import Tree

N = 300


def regression(model, places, observed):
    """Weights of every place on the observed nodes of its side, scaled to unit variance."""
    among = model[np.ix_(observed, observed)]
    shared = np.array([sum(model[observed, v] for v in place) for place in places]).T
    weights = np.linalg.solve(among, shared)
    return weights / np.sqrt((weights * shared).sum(axis=0))


def naive_best(tree: Tree, correlation, noise: float):
    """The best move by dense regressions, as (gain, link, ends)."""
    n, m = tree.n_nodes, tree.n_observed
    model = np.exp(-tree.path_lengths(np.arange(n), np.arange(n)))
    best = (0.0, -1, (-1, -1))
    for v in _weak_links(tree, noise):
        below = [v]
        for u in tree.order:
            if tree.parent[u] in below:
                below.append(u)
        sides = [below, [u for u in range(n) if u not in below]]
        ends = [int(v), int(tree.parent[v])]
        z = {}
        seen = []
        for side, end in zip(sides, ends, strict=True):
            open_nodes = [
                u
                for u in side
                if u >= m or len(side) == 1 or tree.degrees[u] - (u == end) > 1 or u == end
            ]
            edges = [u for u in side if u != end or side is sides[1]]
            edges = [u for u in edges if tree.parent[u] in side]
            places = [(u,) for u in open_nodes] + [(u, tree.parent[u]) for u in edges]
            numbers = open_nodes + [n + u for u in edges]
            observed = np.array([u for u in side if u < m])
            seen.append((numbers, observed, regression(model, places, observed)))
        (first, a, wa), (second, b, wb) = seen
        z = (wa.T @ correlation[np.ix_(a, b)] @ wb) ** 2 / noise**2
        present = z[first.index(ends[0]), second.index(ends[1])]
        for i, j in np.ndindex(*z.shape):
            closed = [
                place < m and len(side) > 1 and tree.degrees[place] - (place == end) <= 1
                for place, side, end in zip((first[i], second[j]), sides, ends, strict=True)
            ]
            gain = 0.5 * (z[i, j] - present)
            if not any(closed) and gain > best[0]:
                best = (gain, int(v), (int(first[i]), int(second[j])))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_best_move_equals_dense_regressions(seed):
    rng = np.random.default_rng(seed)
    shape = lt.simulate.random_latent_tree(12, rng, 0.3)
    tree = shape.with_lengths(np.where(shape.parent < 0, 0.0, rng.uniform(0.2, 1.5, shape.n_nodes)))
    truth = lt.simulate.random_gaussian_model(lt.simulate.random_latent_tree(12, rng), rng)
    correlation = np.corrcoef(np.asarray(truth.sample(N, rng)), rowvar=False)
    noise = 1 / np.sqrt(N)
    found = _best_move(tree, correlation, noise)
    gain, link, ends = naive_best(tree, correlation, noise)
    assert found.gain == pytest.approx(gain, rel=1e-4)
    assert found.cut == link
    assert set(found.ends) == set(ends)


@pytest.mark.parametrize("m", [128, 129])
def test_large_blocks_say_that_weak_links_stay(m):
    X = lt.simulate.random_gaussian_model(lt.simulate.double_star(m), 0, (0.6, 0.8)).sample(500, 1)
    notes = lt.LatentTree(method="clnj", max_steps=0).fit(X).report_.notes
    assert any("weak links were not looked at" in note for note in notes) == (m > 128)

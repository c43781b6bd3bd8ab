"""Models to show, and what tests ask of a page that shows them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from tests.explorer.browser import patiently

from latentree import (
    CopulaTreeModel,
    CountEmission,
    DiscreteTreeModel,
    GaussianEmission,
    GaussianTreeModel,
    MixedTreeModel,
    Tree,
    simulate,
)
from latentree.explorer import write_explorer
from latentree.inference import NormalMargin, Odds, RankMargin, Thresholds, ZeroInflatedEmission
from latentree.models import TreeMixture


def gaussian(seed: int = 0, m: int = 24) -> GaussianTreeModel:
    rng = np.random.default_rng(seed)
    tree = simulate.random_latent_tree(m, rng, inner_share=0.3)
    tree = tree.rerooted(int(rng.integers(tree.n_nodes)))
    rho = rng.uniform(0.3, 0.95, tree.n_nodes) * rng.choice([-1, 1], tree.n_nodes, p=[0.2, 0.8])
    return GaussianTreeModel(tree, rho, rng.normal(scale=10, size=m), rng.uniform(0.1, 5, m))


def discrete(seed: int = 0, m: int = 24) -> DiscreteTreeModel:
    rng = np.random.default_rng(seed)
    tree = simulate.random_latent_tree(m, rng, inner_share=0.3)
    tree = tree.rerooted(int(rng.integers(tree.n_nodes)))
    states = rng.integers(2, 5, tree.n_nodes)
    drawn = simulate.random_discrete_model(tree, states, rng)
    labels = [[f"s{k}" for k in range(count)] for count in states[:m]]
    return DiscreteTreeModel(tree, drawn.tables, labels)


def mixed() -> MixedTreeModel:
    star = Tree([4] * 4 + [-1], n_observed=4, names=["age", "visits", "health", "smokes"])
    parameters = [
        GaussianEmission([30.0, 60.0], [10.0, 5.0], resolution=1.0),
        CountEmission([1.0, 7.0], [2.0, np.inf]),
        [[0.1, 0.4, 0.5], [0.5, 0.3, 0.2]],
        [[0.7, 0.3], [0.6, 0.4]],
        [0.7, 0.3],
    ]
    labels = [(), (), ("poor", "fair", "good"), (0, 1)]
    return MixedTreeModel(star, parameters, labels, ["real", "count", "ordered", "category"])


def random_tree(rng, m: int) -> Tree:
    tree = simulate.random_latent_tree(m, rng, inner_share=0.4)
    return tree.rerooted(int(rng.integers(tree.n_nodes)))


def zero_inflated(rng) -> MixedTreeModel:
    """Counts with zeros of their own, none of them, and no variance beyond the mean."""
    drawn = simulate.random_discrete_model(simulate.double_star(8), [3] * 10, rng)
    zeros = [rng.uniform(0, 0.9, 3) for _ in range(5)] + [np.zeros(3)]
    sizes = [None, *rng.uniform(0.2, 9, (5, 3))]
    counts = [
        ZeroInflatedEmission(rng.uniform(0.2, 9, 3), size, share)
        for size, share in zip(sizes, zeros, strict=True)
    ]
    return MixedTreeModel(drawn.tree, [*counts, *drawn.tables[6:]])


def skewed(rng, resolution: float, kind: str = "real") -> RankMargin:
    """A margin of skewed values, with tails of both kinds; of counts also bounded ones."""
    if kind == "count":
        return RankMargin.of(rng.negative_binomial(1, 0.2, 400), resolution=1.0, kind="count")
    shift = rng.choice([0.0, -3.0])  # where no value is negative, the lower tail ends at 0
    values = np.round(np.exp(rng.normal(size=500)) + shift, 6)
    return RankMargin.of(values, resolution=resolution)


def random_margins(rng, m: int) -> list:
    makers = [
        lambda: Thresholds(np.sort(rng.normal(size=4))),
        lambda: Odds(rng.normal(size=3), rng.normal(size=3)),
        lambda: NormalMargin(rng.normal(scale=9), rng.uniform(0.5, 5), rng.choice([1.0, 0.01])),
        lambda: skewed(rng, float(rng.choice([0.5, 1e-6]))),
        lambda: skewed(rng, 1.0, "count"),
    ]
    return [makers[v % 5]() for v in range(m)]


def grid_copula(rng, m: int = 12) -> CopulaTreeModel:
    """Columns of all kinds, of which one is alone and two answers have but each other."""
    inner = simulate.random_latent_tree(m - 4, rng, inner_share=0)
    hidden = np.arange(m - 4, inner.n_nodes) + 4
    number = np.concatenate([np.arange(m - 4), hidden])
    parent = np.full(inner.n_nodes + 4, -1)
    parent[number] = np.where(inner.parent < 0, -1, number[inner.parent])
    parent[m - 1] = m - 2
    margins = random_margins(rng, m)
    margins[m - 4 :] = [skewed(rng, 0.5), Odds([0.0, 1.0], [0.0, 2.0])] + [
        Thresholds([-0.5, 1.0])
    ] * 2
    tree = Tree(parent, n_observed=m)
    return CopulaTreeModel(tree, rng.uniform(-0.97, 0.97, tree.n_nodes), margins)


def dense_copula(rng, m: int = 12) -> CopulaTreeModel:
    tree = random_tree(rng, m)
    margins = [skewed(rng, 0.0) if v % 4 else NormalMargin(5.0, 2.0) for v in range(m)]
    return CopulaTreeModel(tree, rng.uniform(-0.97, 0.97, tree.n_nodes), margins)


def gaussian_mixture(m: int = 12) -> TreeMixture:
    rng = np.random.default_rng(80)
    trees = [simulate.random_latent_tree(m, rng, inner_share=0.3) for _ in range(3)]
    means, scales = rng.normal(scale=10, size=m), rng.uniform(0.1, 5, m)
    parts = [
        GaussianTreeModel(
            tree, rng.uniform(-0.9, 0.9, tree.n_nodes), means + scales * rng.normal(size=m),
            scales * rng.uniform(0.5, 2, m),
        )
        for tree in trees
    ]  # fmt: skip
    return TreeMixture(parts, [0.2, 0.5, 0.3])


def discrete_mixture(m: int = 12) -> TreeMixture:
    rng = np.random.default_rng(81)
    trees = [simulate.random_latent_tree(m, rng, inner_share=0.3) for _ in range(3)]
    own = rng.integers(2, 5, m)
    labels = [[f"s{k}" for k in range(count)] for count in own]
    parts = []
    for tree in trees:
        states = np.append(own, rng.integers(2, 4, tree.n_hidden))
        tables = simulate.random_discrete_model(tree, states, rng).tables
        parts.append(DiscreteTreeModel(tree, tables, labels))
    return TreeMixture(parts, [0.5, 0.3, 0.2])


def mixed_mixture() -> TreeMixture:
    first = mixed()
    parameters = [
        GaussianEmission([25.0, 40.0, 70.0], [6.0, 8.0, 9.0], resolution=1.0),
        CountEmission([3.0, 4.0, 0.5], [1.0, 5.0, np.inf]),
        [[0.2, 0.2, 0.6], [0.3, 0.3, 0.4], [0.6, 0.3, 0.1]],
        [[0.5, 0.5], [0.1, 0.9], [0.8, 0.2]],
        [0.2, 0.5, 0.3],
    ]
    second = MixedTreeModel(first.tree, parameters, first.schema.labels, first.schema.kinds)
    return TreeMixture([first, second], [0.7, 0.3])


def show(browser, tmp_path, model, **options) -> Path:
    path = tmp_path / "tree.html"
    write_explorer(model, path, **options)
    browser.open(path)
    return path


def spot(browser, node: int) -> tuple[float, float]:
    """Where a node is in the window."""
    x, y = browser.run(
        """
        const { view } = window.latentreeExplorer;
        const at = view.toScreen(arguments[0]);
        const box = view.canvas.getBoundingClientRect();
        return [at.x + box.left, at.y + box.top];
        """,
        node,
    )
    return x, y


def edge_spot(browser, node: int) -> tuple[float, float]:
    """Where in the window the edge from a node toward the middle is halfway."""
    x, y = browser.run(
        """
        const { state, view } = window.latentreeExplorer;
        const { points, starts } = state.layout;
        const [start, end] = starts.subarray(arguments[0]);
        const piece = start + 2 * Math.floor((end - start) / 4); // the middle one of its parabolas
        const [ax, ay, cx, cy, bx, by] = points.subarray(2 * piece);
        const box = view.canvas.getBoundingClientRect();
        return [
          ((ax + 2 * cx + bx) / 4 - view.x) * view.scale + view.width / 2 + box.left,
          ((ay + 2 * cy + by) / 4 - view.y) * view.scale + view.height / 2 + box.top,
        ];
        """,
        node,
    )
    return x, y


def selected(browser) -> int:
    return browser.run("return window.latentreeExplorer.state.selection?.node ?? -1")


def hidden_of(model) -> int:
    return int(model.tree.n_observed)


def table_of(browser) -> list[dict[str, str]]:
    text = browser.run("return window.latentreeExplorer.toCsv()")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def downloaded(browser, pattern: str) -> Path:
    def found() -> list[Path]:
        return [path for path in browser.downloads.glob(pattern) if path.stat().st_size]

    return patiently(found, f"download of {pattern}")[0]

"""How sure the tree is, how it was learned, and edges as long as their distances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.explorer.pages import discrete, gaussian, hidden_of, show

from latentree import GaussianTreeModel, LatentTree, Tree, simulate
from latentree.explorer._payload import payload
from latentree.models import fitted_tree
from latentree.support import Support

STATE = "window.latentreeExplorer.state"

EDGES = f"""
const {{ layout, tree }} = {STATE};
const top = (v) => layout.top?.[v] ?? v;
const face = (v) => layout.face?.[top(v)] ?? v;
return layout.edges.map((v) => [
  face(tree.parent[v]), face(v),
  [...layout.points.subarray(2 * layout.starts[v], 2 * layout.starts[v + 1])],
]);
"""


def with_support(model, seed: int) -> Support:
    """Support of every edge that splits groups, drawn by chance."""
    tree, rng = model.tree, np.random.default_rng(seed)
    n, m = tree.n_nodes, tree.n_observed
    wide = (tree.degrees > 1) & (tree.degrees[tree.parent] > 1) & (tree.parent >= 0)
    inner = wide & ((np.arange(n) >= m) | (tree.parent >= m))
    share = np.where(inner, rng.uniform(size=n), np.nan)
    return Support(tree, ("nj",), 40, share, share, rng.uniform(size=n - m), rng.uniform(size=m))


def drawn(points: list[float]) -> np.ndarray:
    """A chain of parabolas as a polyline."""
    chain = np.reshape(points, (-1, 2))
    t = np.linspace(0, 1, 9)[:, None]
    pieces = [chain[i : i + 3] for i in range(0, len(chain) - 1, 2)]
    return np.concatenate([(1 - t) ** 2 * a + 2 * t * (1 - t) * c + t**2 * b for a, c, b in pieces])


def crossings(one: np.ndarray, other: np.ndarray) -> int:
    """How many segments of two polylines cross each other by more than a pixel or so."""

    def side(a: np.ndarray, b: np.ndarray, p: np.ndarray) -> np.ndarray:
        across = (
            (b - a)[:, None, ::-1] * (1, -1) / np.linalg.norm(b - a + 1e-12, axis=1)[:, None, None]
        )
        found = ((p[None] - a[:, None]) * across).sum(axis=2)
        return np.where(np.abs(found) < 0.04, 0.0, np.sign(found))

    first = side(one[:-1], one[1:], other[:-1]) * side(one[:-1], one[1:], other[1:])
    second = side(other[:-1], other[1:], one[:-1]) * side(other[:-1], other[1:], one[1:])
    return int(((first < 0) & (second.T < 0)).sum())


def test_edges_in_doubt_are_contracted_and_never_cross(browser, tmp_path):
    tree = simulate.random_latent_tree(40, np.random.default_rng(30), inner_share=0.1)
    model = simulate.random_gaussian_model(tree, 0)
    support = with_support(model, 1)
    show(browser, tmp_path, model, support=support)
    assert "By 40 trees" in browser.text("#details")
    under = np.flatnonzero(support.edge_transfer < 0.6)
    wanted = model.tree.contract_edges(under)
    assert under.size > 5
    browser.run("document.querySelector('[data-key=doubt]').value = 60")
    browser.run("document.querySelector('[data-key=doubt]').dispatchEvent(new Event('input'))")
    assert f"{under.size} of" in browser.text("#details [role=status]")
    assert "support under 60 %" in browser.text("#legend")
    assert len(browser.run(EDGES)) == model.tree.n_edges  # faded only
    browser.click_on("#details button", "Contract")
    for kind in ("radial", "layered", "lengths"):
        browser.click_on(f"#{kind}")
        found = browser.run(EDGES)
        numbers = sorted({v for a, b, _ in found for v in (a, b)})
        place = {v: i for i, v in enumerate(numbers)}
        ends = [(place[a], place[b]) for a, b, _ in found]
        tree = Tree.from_edges(ends, n_observed=40)
        assert tree.same_structure(wanted), kind
        lines = [drawn(points) for _, _, points in found]
        assert sum(itertools.starmap(crossings, itertools.combinations(lines, 2))) == 0, kind
    browser.wait("return location.hash.includes('u=60c')")


def test_panels_say_how_sure(browser, tmp_path):
    model = discrete(31)
    support = with_support(model, 2)
    show(browser, tmp_path, model, support=support)
    doubtful = int(hidden_of(model) + np.argmin(support.hidden_share))
    browser.run(f"location.hash = 's=n{model.tree.names[doubtful]}'")
    browser.wait(f"return {STATE}.selection?.node === {doubtful}")
    assert "doubtful" in browser.text("#details .warning")
    child = int(np.flatnonzero(~np.isnan(support.edge_share))[0])
    browser.run(
        f"const {{ state }} = window.latentreeExplorer; const {{ tree, model }} = state;"
        f"const v = tree.parent[{child}] === model.parent[{child}] ? {child}"
        f" : model.parent[{child}]; location.hash = `s=e${{model.ownNames[v]}}`"
    )
    browser.wait(f"return {STATE}.selection && 'edge' in {STATE}.selection")
    assert f"{100 * support.edge_transfer[child]:.0f} %" in browser.text("#details .facts")
    assert "of 40 trees" in browser.text("#details .facts")


def test_a_card_says_how_it_was_learned(browser, tmp_path):
    rows = simulate.random_gaussian_model(simulate.double_star(6), 0, (0.7, 0.8)).sample(300, 1)
    learned = LatentTree("rg", random_state=0).fit(rows)
    show(browser, tmp_path, learned)
    browser.click_on("#details [data-key=details]")
    said = browser.text("#details")
    report = learned.report_
    for fact in ("rg", "300", f"{report.bic_score:,.1f}", report.date, report.version):
        assert fact.replace("-", "\u2212", 1) in said or fact in said


def test_a_model_alone_has_a_short_card():
    assert payload(gaussian(), "t")["about"] == {"n_parameters": gaussian().n_parameters}


@pytest.mark.parametrize("tree", [simulate.double_star(12), Tree([-1, 0, 1, -1, 3])])
def test_edges_are_as_long_as_their_distances(browser, tmp_path, tree):
    rng = np.random.default_rng(5)
    model = GaussianTreeModel(tree, rng.uniform(0.2, 0.9, tree.n_nodes) * (tree.parent >= 0))
    show(browser, tmp_path, model)
    browser.click_on("#lengths")
    length = fitted_tree(model).length
    look = f"const {{ layout }} = {STATE}; return [[...layout.x], layout.wide / layout.longest]"
    x, unit = browser.run(look)
    halves = browser.run(
        f"const {{ tree }} = {STATE};return [...tree.halves.keys()].map((v) => [tree.parent[v], v])"
    )
    for above, below in tree.edges.tolist():
        across = sorted((above, below)) in map(sorted, halves)
        apart = x[above] + x[below] if across else abs(x[above] - x[below])
        assert apart == pytest.approx(length[below] * unit, rel=1e-5, abs=1e-5)

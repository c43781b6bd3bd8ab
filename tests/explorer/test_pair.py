"""Two models side by side, and pictures to take away."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from tests.explorer.pages import gaussian, show

from latentree import GaussianTreeModel, simulate
from latentree.support import compare_trees

PANES = "const [a, b] = window.latentreeExplorer.panes;"
SVG = "{http://www.w3.org/2000/svg}"


def other(model: GaussianTreeModel) -> GaussianTreeModel:
    """A model over the same variables in another order."""
    m = model.tree.n_observed
    names = list(model.schema.names)
    np.random.default_rng(3).shuffle(names)
    tree = simulate.random_latent_tree(m, np.random.default_rng(4), inner_share=0.3)
    tree = tree.renamed([*names, *tree.names[m:]])
    return simulate.random_gaussian_model(tree, 1)


def test_two_trees_are_tied_together(browser, tmp_path):
    first = gaussian(60)
    second = other(first)
    show(browser, tmp_path, {"one": first, "two": second})
    found = compare_trees(first.tree, second.tree)
    said = browser.text("#details")
    assert f"{found.robinson_foulds} (" in said
    listed = browser.run(
        "return [...document.querySelectorAll('#details .named .go')].map((e) => e.textContent)"
    )
    assert listed == list(found.moved)[: len(listed)]
    splits = browser.run(
        PANES + "const names = ({ model }, v) => {"
        " const below = (u) => u === v || (u >= 0 && below(model.parent[u]));"
        " return model.names.filter((_, u) => u < model.observed && below(u)).sort().join(); };"
        "return [a, b].map(({ state }) => [...state.pair.differs.keys()]"
        ".filter((v) => state.model.parent[v] >= 0)"
        ".map((v) => [names(state, v), state.pair.differs[v]]));"
    )
    names = sorted(first.schema.names)

    def split(side: str) -> frozenset[str]:
        rest = ",".join(name for name in names if name not in side.split(","))
        return frozenset((side, rest))

    ours, theirs = ({split(side): differs for side, differs in each} for each in splits)
    for own, others in ((ours, theirs), (theirs, ours)):
        assert all(differs == (key not in others) for key, differs in own.items())
    # What is chosen or supposed in one is marked in the other.
    name = first.schema.names[5]
    browser.type("/")
    browser.type(f"{name} = +2 σ", "Enter")
    echo, given = browser.run(PANES + "return [b.state.echo, [...b.state.evidence.keys()]]")
    assert second.tree.names[echo] == name
    assert given == [echo]
    browser.run(PANES + "b.view.canvas.focus()")
    browser.type("Right")
    assert browser.run(PANES + "return b.state.selection !== null && a.state.selection === null")
    assert "two" in browser.text("#details .kind")


def test_the_address_has_both_trees(browser, tmp_path):
    first = gaussian(62)
    path = show(browser, tmp_path, [first, other(first)])
    browser.run(
        PANES + "b.view.canvas.focus(); b.view.zoom(1.7);"
        "b.state.folded[arguments[0]] = 1; for (const f of b.state.listeners.get('fold')) f()",
        int(other(first).tree.hidden[0]),
    )
    browser.type("Right", "Right")
    look = (
        PANES + "return [a, b].map(({ state, view }) =>"
        " [state.selection, view.scale.toPrecision(4), [...state.folded].join('')])"
    )
    before = browser.run(look)
    assert before[1][0] is not None
    browser.wait("return location.hash.includes('s1=') && location.hash.includes('v1=')")
    link = browser.run("return location.hash")
    browser._call("POST", f"{browser.session}/url", {"url": "about:blank"})
    browser._call("POST", f"{browser.session}/url", {"url": path.resolve().as_uri() + link})
    browser.settle()
    assert browser.run(look) == before


@pytest.mark.parametrize("whole", [True, False])
def test_pictures_have_a_title_a_legend_and_light_paper(browser, tmp_path, whole):
    model = gaussian(61)
    show(browser, tmp_path, model, title="A title", groups=[f"g{v % 2}" for v in range(24)])
    browser.type("/")
    browser.type("x3 = +2 σ", "Enter")
    browser.run(
        "if (document.documentElement.dataset.theme !== 'dark')"
        " document.getElementById('theme').click(); window.latentreeExplorer.view.zoom(3)"
    )
    text = browser.run("return window.latentreeExplorer.toSvg({ whole: arguments[0] })", whole)
    root = ElementTree.fromstring(text)
    texts = {e.text for e in root.iter(f"{SVG}text")}
    assert {"A title", "as usual", "hidden variable", "Suppose x3 = +2.00 σ"} <= {
        text.split(" (")[0] for text in texts
    }
    assert set(model.schema.names) <= texts if whole else not set(model.schema.names) <= texts
    assert root.find(f"{SVG}rect").get("fill") == "#ffffff"
    assert browser.run("return document.documentElement.dataset.theme") == "dark"


def test_captions_keep_off_edges(browser, tmp_path):
    model = simulate.random_gaussian_model(simulate.double_star(14), 0)
    show(browser, tmp_path, model)
    browser.click_on("#layered")
    crossed = browser.run(
        """
        const { state, view } = window.latentreeExplorer;
        const written = [];
        const { ctx } = view;
        const kept = ctx.fillText;
        ctx.fillText = (text, ...rest) => {
          const { e, f } = ctx.getTransform();
          const { width } = ctx.measureText(text);
          if (ctx.font.startsWith("italic")) written.push([e, f, width * view.ratio]);
          kept.call(ctx, text, ...rest);
        };
        view.draw();
        delete ctx.fillText;
        const { layout } = state;
        const points = [];
        for (const v of layout.edges) {
          for (let i = 2 * layout.starts[v]; i + 5 < 2 * layout.starts[v + 1]; i += 4) {
            const [ax, ay, cx, cy, bx, by] = layout.points.subarray(i, i + 6);
            for (let t = 0; t <= 1; t += 0.01) {
              const at = (a, c, b) => (1 - t) ** 2 * a + 2 * t * (1 - t) * c + t * t * b;
              points.push([
                ((at(ax, cx, bx) - view.x) * view.scale + view.width / 2) * view.ratio,
                ((at(ay, cy, by) - view.y) * view.scale + view.height / 2) * view.ratio,
              ]);
            }
          }
        }
        return written.map(([x, y, width]) =>
          points.some(([px, py]) => px > x + 4 && px < x + width - 4 && Math.abs(py - y) < 3));
        """
    )
    assert crossed == [False, False]

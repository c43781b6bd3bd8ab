"""What a person can see, reach and read, on screens of many sizes and by keyboard."""

from __future__ import annotations

import numpy as np
import pytest
from tests.explorer.pages import (
    discrete,
    gaussian,
    hidden_of,
    mixed,
    selected,
    show,
    spot,
)

from latentree import DiscreteTreeModel, GaussianTreeModel, Tree, simulate
from latentree.models import orientation

SCREENS = ((1440, 900), (1024, 700), (390, 844), (667, 375))


def ask(browser, question: str) -> None:
    browser.type("/")
    browser.type(question, "Enter")


# Signs ------------------------------------------------------------------------------------------


def reverse_coded() -> DiscreteTreeModel:
    """A hidden variable that the picture turns: its state 0 goes with all answers of 1."""
    star = Tree([4] * 4 + [-1], n_observed=4)
    return DiscreteTreeModel(star, [[[0.1, 0.9], [0.8, 0.2]]] * 4 + [[0.6, 0.4]])


@pytest.mark.parametrize(("answer", "way"), [(1, "up"), (0, "down")])
def test_picture_and_panel_agree_on_more_and_less(browser, tmp_path, answer, way):
    model = reverse_coded()
    assert orientation(model)[4] == -1
    show(browser, tmp_path, model)
    ask(browser, f"x0 = {answer}")
    colored = browser.run("return window.latentreeExplorer.state.coloring.number[4]")
    assert (colored > 3) == (way == "up")
    browser.run(
        "const menu = document.getElementById('color-by'); menu.value = 'group';"
        "menu.dispatchEvent(new Event('change'))"
    )
    browser.settle()
    x, y = spot(browser, 4)
    left, top = browser.run(
        "const box = document.getElementById('tree').getBoundingClientRect();"
        "return [box.left, box.top]"
    )
    halo, up, down = browser.run(
        """
        const [x, y] = arguments;
        const { view, state } = window.latentreeExplorer;
        const data = view.ctx.getImageData(x + state.dot * 0.78 + 3, y, 1, 1).data;
        const hex = [...data].slice(0, 3).map((c) => c.toString(16).padStart(2, "0")).join("");
        return [`#${hex}`, view.colors.up, view.colors.down];
        """,
        x - left,
        y - top,
    )
    assert halo == {"up": up, "down": down}[way]
    row = browser.run(
        """
        const row = [...document.querySelectorAll("#answers ol li")]
          .find((e) => e.querySelector(".go.hidden"));
        const [note, share] = [".about > .quiet", ".share"].map((one) => row.querySelector(one));
        return [share.className, note.textContent];
        """
    )
    assert way in row[0]
    before, after = (float(part.strip(" %")) for part in row[1].split(":")[1].split("→"))
    assert (after > before) == (way == "up")  # of the state that counts as more
    assert row[1].split(":")[0] in browser.text("#announce")


# Room -------------------------------------------------------------------------------------------


def test_long_answers_stay_in_the_panel(browser, tmp_path):
    star = Tree([4] * 4 + [-1], n_observed=4, names=["a" * 60, "b", "c", "d"])
    labels = [["strongly disagree with this", "strongly agree with this statement"]] * 4
    model = DiscreteTreeModel(star, [[[0.9, 0.1], [0.2, 0.8]]] * 4 + [[0.6, 0.4]], labels)
    show(browser, tmp_path, model)
    ask(browser, "b = strongly agree")
    inside = browser.run(
        """
        const box = document.getElementById("answers");
        const right = box.getBoundingClientRect().right;
        const parts = [...box.querySelectorAll("ol *, .chips *")];
        const cut = parts.filter((e) => e.getBoundingClientRect().right > right + 0.5
          || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow === "hidden");
        return [parts.length > 10, cut.length, box.scrollWidth <= box.clientWidth];
        """
    )
    assert inside == [True, 0, True]


@pytest.mark.parametrize("kind", ["radial", "layered"])
def test_curves_are_inside_the_first_view(browser, tmp_path, kind):
    show(browser, tmp_path, gaussian(8, m=60))
    browser.click_on(f"#{kind}")
    beyond = browser.run(
        """
        const { state, view } = window.latentreeExplorer;
        const { shown, points, starts } = state.layout;
        let worst = 0;
        for (const v of shown) {
          for (let i = 2 * starts[v]; i + 5 < 2 * starts[v + 1]; i += 4) {
            for (let t = 0; t <= 1; t += 0.05) {
              const w = [(1 - t) ** 2, 2 * t * (1 - t), t * t];
              const sum = (k) => w.reduce((s, u, j) => s + u * points[i + 2 * j + k], 0);
              const at = [sum(0), sum(1)];
              const x = (at[0] - view.x) * view.scale + view.width / 2;
              const y = (at[1] - view.y) * view.scale + view.height / 2;
              worst = Math.max(worst, -x, -y, x - view.width, y - view.height + view.inset);
            }
          }
        }
        return worst;
        """
    )
    assert beyond <= 0


@pytest.mark.parametrize(("width", "height"), [*SCREENS, (720, 450), (320, 480)])
def test_the_tree_fills_its_window(browser, tmp_path, width, height):
    names = {v: f"a variable with a long name {v}" for v in range(40)}
    tree = gaussian(9, m=40).tree
    tree = tree.renamed([names.get(v, tree.names[v]) for v in range(tree.n_nodes)])
    model = GaussianTreeModel.from_distances(simulate.random_lengths(tree, 0))
    with browser.screen(width, height, phone=width < 700):
        show(browser, tmp_path, model)
        wide, tall, canvas_wide, canvas_tall, sideways = browser.run(
            """
            const { state, view } = window.latentreeExplorer;
            const { left, right, top, bottom } = state.layout.bounds;
            return [(right - left) * view.scale, (bottom - top) * view.scale,
              view.width, view.height,
              document.documentElement.scrollWidth > innerWidth];
            """
        )
    assert canvas_wide * canvas_tall > 0.25 * width * height
    assert max(wide / canvas_wide, tall / canvas_tall) > 0.45
    assert not sideways


def test_a_phone_shows_menu_list_and_panel_from_their_beginning(browser, tmp_path):
    model = gaussian(10)
    with browser.screen(390, 844, phone=True):
        show(browser, tmp_path, model, groups=[f"group {v % 8}" for v in range(24)])
        browser.run("window.latentreeExplorer.state.folded[24] = 1")
        browser.run("for (const f of window.latentreeExplorer.state.listeners.get('fold')) f()")
        assert not browser.run("return document.getElementById('unfold').hidden")
        browser.run("document.getElementById('take').open = true")
        box = browser.run(
            "const b = document.querySelector('.menu').getBoundingClientRect();"
            "return [b.left, b.right, b.top, b.bottom]"
        )
        assert 0 <= box[0] < box[1] <= 390
        assert 0 <= box[2] < box[3] <= 844
        browser.run("document.getElementById('take').open = false")
        smallest = browser.run(
            "return Math.min(...[...document.querySelectorAll('aside button')]"
            ".filter((e) => e.offsetParent).map((e) => e.getBoundingClientRect().height))"
        )
        assert smallest >= 32
        browser.run("document.getElementById('panel').scrollTop = 300")
        browser.run("document.querySelector('aside .go').click()")
        browser.settle()
        top = browser.run(
            "return document.querySelector('#details .kind').getBoundingClientRect().top"
            " - document.getElementById('panel').getBoundingClientRect().top"
        )
        assert 0 <= top < 60
        # The legend is whole, and there are no hints about keys.
        assert browser.run(
            "const box = document.getElementById('legend');"
            "return box.scrollWidth <= box.clientWidth && box.scrollHeight <= box.clientHeight"
        )
        keys = "return [...document.querySelectorAll('kbd, .keys')].every((e) => !e.offsetParent)"
        assert browser.run(keys)


def test_paper_shows_the_tree_and_no_tools(browser, tmp_path):
    show(browser, tmp_path, discrete(11))
    browser.click(*spot(browser, 0))
    browser.click_on("#theme")
    browser._devtools("Emulation.setEmulatedMedia", media="print")
    try:
        browser.run("dispatchEvent(new Event('beforeprint'))")
        shape, drawn, tools, paper, exact = browser.run(
            """
            const canvas = document.getElementById("tree");
            const box = canvas.getBoundingClientRect();
            const seen = (e) => e.getBoundingClientRect().height > 0;
            return [box.width / box.height, canvas.width / canvas.height,
              [...document.querySelectorAll("nav, .finder, .corner, .buttons")].filter(seen).length,
              window.latentreeExplorer.view.colors.dark,
              getComputedStyle(document.querySelector(".share .fill")).printColorAdjust];
            """
        )
        browser.run("dispatchEvent(new Event('afterprint'))")
    finally:
        browser._devtools("Emulation.setEmulatedMedia", media="")
    assert shape == pytest.approx(drawn, rel=0.02)
    assert (tools, paper, exact) == (0, False, "exact")
    assert browser.run("return window.latentreeExplorer.view.colors.dark")


# Keyboard ---------------------------------------------------------------------------------------


def focused(browser) -> str:
    return browser.run("const e = document.activeElement; return e.id || e.className || e.tagName")


def test_every_stop_of_the_tab_key_is_seen(browser, tmp_path):
    show(browser, tmp_path, gaussian(12, m=60))
    browser.run("document.activeElement.blur()")
    browser.type("Tab")
    assert focused(browser) == "skip"
    browser.type("Enter")
    assert focused(browser) == "panel"
    browser.run("document.getElementById('skip').focus()")
    stops = []
    while "go" not in (stops or [""])[-1]:
        browser.type("Tab")
        stops.append(focused(browser))
        seen = browser.run(
            """
            const box = document.activeElement.getBoundingClientRect();
            const style = getComputedStyle(document.activeElement);
            return box.width > 4 && box.height > 4 && style.visibility === "visible";
            """
        )
        assert seen, stops
        assert len(stops) < 25, stops
    assert browser.run("return location.hash") == ""


def test_escape_takes_back_what_was_typed_and_enter_keeps_the_focus(browser, tmp_path):
    model = gaussian(13)
    h = hidden_of(model)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, h))
    name = f"return window.latentreeExplorer.state.model.names[{h}]"
    before = browser.run(name)
    browser.click_on(".rename")
    browser.run("document.activeElement.select()")
    browser.type("something else", "Escape")
    assert browser.run(name) == before
    assert selected(browser) == h
    browser.click_on(".rename")
    browser.run("document.activeElement.select()")
    browser.type("mood", "Enter")
    assert browser.run(name) == "mood"
    assert focused(browser) == "rename"
    browser.click(*spot(browser, 0))
    browser.click_on(".value")
    browser.type("3", "Escape")
    assert browser.run("return window.latentreeExplorer.state.evidence.size") == 0


def test_every_cross_says_what_it_forgets(browser, tmp_path):
    show(browser, tmp_path, discrete(14))
    for question in ("x1 = s0", "x2 = s1"):
        ask(browser, question)
    labels = browser.run(
        "return [...document.querySelectorAll('.remove')].map((e) => e.getAttribute('aria-label'))"
    )
    assert labels == ["Forget x1 = s0", "Forget x2 = s1"]


# Questions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        ("age = abc", "age takes a number"),
        ("age = 1e400", "age takes a number"),
        ("age = 1e308 σ", "age takes a number"),
        ("visits = 2.5", "visits takes a count"),
        ("health = rosy", "health is one of: poor, fair, good"),
        ("nobody = 1", "No node is called so"),
    ],
)
def test_what_cannot_be_supposed_is_explained(browser, tmp_path, question, hint):
    show(browser, tmp_path, mixed())
    browser.type("/")
    browser.type(question)
    assert hint in browser.text("#completions")
    browser.type("Enter", "Escape")
    assert browser.run("return window.latentreeExplorer.state.evidence.size") == 0


def test_one_is_singular(browser, tmp_path):
    show(browser, tmp_path, GaussianTreeModel(Tree([-1]), [0]), data=np.zeros((1, 1)))
    assert "1 variable, 0 hidden" in browser.text("#details")
    browser.click(*spot(browser, 0))
    assert "1 row;" in browser.text("#details")


def test_supposing_does_not_zoom(browser, tmp_path):
    show(browser, tmp_path, gaussian(15))
    scale = browser.run("return window.latentreeExplorer.view.scale")
    ask(browser, "x3 = +2 σ")
    assert browser.run("return window.latentreeExplorer.view.scale") == scale


def test_long_dashed_edges_are_clipped(browser, tmp_path):
    star = simulate.latent_class(300)
    model = GaussianTreeModel(star, np.where(np.arange(301) % 2, -0.5, 0.5))
    show(browser, tmp_path, model)
    longest = browser.run(
        """
        const { view, state } = window.latentreeExplorer;
        Object.assign(view, { scale: 90, x: state.layout.x[1], y: state.layout.y[1] });
        let longest = 0;
        let [x, y] = [0, 0];
        const { ctx } = view;
        const ways = ["moveTo", "lineTo", "quadraticCurveTo"];
        const kept = Object.fromEntries(ways.map((way) => [way, ctx[way]]));
        ctx.moveTo = (...to) => { [x, y] = to; kept.moveTo.apply(ctx, to); };
        const go = (way) => (...to) => {
          longest = Math.max(longest, Math.hypot(to.at(-2) - x, to.at(-1) - y));
          [x, y] = to.slice(-2);
          kept[way].apply(ctx, to);
        };
        ctx.lineTo = go("lineTo");
        ctx.quadraticCurveTo = go("quadraticCurveTo");
        view.draw();
        for (const way of Object.keys(kept)) delete ctx[way];
        return longest / (view.width + view.height);
        """
    )
    assert 0 < longest <= 2

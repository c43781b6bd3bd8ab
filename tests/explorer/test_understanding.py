"""What the page says to somebody who has never seen a latent tree."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from tests.explorer.pages import (
    discrete,
    gaussian,
    gaussian_mixture,
    hidden_of,
    mixed,
    show,
    spot,
)

from latentree import DiscreteTreeModel, GaussianTreeModel, Tree, formats, models, simulate
from latentree.explorer import write_explorer
from latentree.support import support_from

STATE = "window.latentreeExplorer.state"
BARS = """
const rows = [...document.querySelectorAll(arguments[0] + " li.bars")];
return rows.map((row) => {
  const bar = row.querySelector(".share").getBoundingClientRect();
  const number = row.querySelector(":scope > .figures");
  return {
    left: bar.left, width: bar.width,
    share: Number.parseFloat(row.querySelector(".fill").style.width) / 100,
    number: Number.parseFloat(number.textContent.replace("\u2212", "-")),
    right: number.getBoundingClientRect().right,
    above: row.querySelector(".name").getBoundingClientRect().bottom <= bar.top + 1,
  };
});
"""
LABEL_ENDS = r"""
const { view } = window.latentreeExplorer;
const ctx = view.canvas.getContext("2d");
const { documentElement } = new DOMParser().parseFromString(arguments[0], "image/svg+xml");
const nodes = [...documentElement.querySelectorAll("text[transform]")];
return nodes.filter((e) => e.getAttribute("font-style") !== "italic").map((e) => {
  ctx.font = `${e.getAttribute("font-size")}px ${e.getAttribute("font-family")}`;
  const [x] = e.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
  return [e.textContent, x + ctx.measureText(e.textContent).width, view.width];
});
"""


def ask(browser, question: str) -> None:
    browser.type("/")
    browser.type(question, "Enter")


def mood() -> DiscreteTreeModel:
    """Two answers that say "sad" and "calm", and one that no state is known by."""
    star = Tree([3, 3, 3, -1], n_observed=3, names=["sad", "calm", "sex", "h1"])
    tables = [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.9, 0.1]], [[0.45, 0.55], [0.55, 0.45]]]
    labels = [["no", "yes"], ["no", "yes"], ["female", "male"]]
    return DiscreteTreeModel(star, [*tables, [0.7, 0.3]], labels)


# Signs and bars ---------------------------------------------------------------------------------


def test_pictures_and_panels_have_the_signs_of_python(browser, tmp_path):
    for model in (gaussian(90), discrete(91), mixed()):
        show(browser, tmp_path, model)
        drawn = browser.run(f"return [...{STATE}.strengths.drawn]")
        has_sign = models.has_direction(model)
        for v in np.flatnonzero(model.tree.parent >= 0).tolist():
            assert drawn[v] >= 0 or (has_sign[v] and has_sign[model.tree.parent[v]])
        if not isinstance(model, GaussianTreeModel):
            assert np.allclose(drawn, models.edge_strengths(model), atol=1e-6)
        weakest = int(np.argmin(drawn))
        edge = f"{STATE}.tree.parent[{weakest}] === {STATE}.model.parent[{weakest}]"
        outer = weakest if browser.run(f"return {edge}") else int(model.tree.parent[weakest])
        browser.run(f"location.hash = 's=e{model.tree.names[outer]}'")
        browser.wait(f"return {STATE}.selection && 'edge' in {STATE}.selection")
        text = browser.text("#details .facts")
        assert "Cramér" not in text or not re.search(r"[+\u2212]\d", text)


@pytest.mark.parametrize("make", [gaussian, discrete, mixed])
def test_bars_numbers_and_order_show_the_same_in_fixed_columns(browser, tmp_path, make):
    model = make(92) if make is not mixed else mixed()
    show(browser, tmp_path, model)
    first = model.tree.names[0]
    ask(browser, f"{first} = " + ("+2 sd" if make is not discrete else "s1"))
    browser.run("for (const more of document.querySelectorAll('#answers .more')) more.click()")
    units = browser.run(
        "return [...document.querySelectorAll('#answers p.quiet')].map((e) => e.textContent)"
    )
    assert all("full bar" in unit for unit in units)
    lists = browser.run("return document.querySelectorAll('#answers .changes').length")
    assert lists == (2 if make is mixed else 1)
    for box in ("#answers .changes", "#details section .list"):
        rows = browser.run(BARS, box)
        assert len({row["left"] for row in rows}) == len({row["right"] for row in rows}) == 1
        assert all(row["above"] for row in rows)
    rows = browser.run(BARS, "#answers .changes:first-of-type")
    numbers = np.abs([row["number"] for row in rows])
    assert (np.diff(numbers) <= 0.02 * numbers.max() + 1e-9).all()
    ratio = np.array([row["share"] for row in rows]) / np.maximum(numbers, 1e-9)
    large = numbers > 0.2 * numbers.max()
    assert np.ptp(ratio[large]) < 0.1 * ratio[large].max()


# Rows and extrapolation -------------------------------------------------------------------------


def test_titles_of_rows_come_from_the_cells_that_decide_the_state(browser, tmp_path):
    model = mood()
    show(browser, tmp_path, model, data=model.sample(80, 0), rows=True)
    browser.click(*spot(browser, 3))
    title = browser.text("#details .row-name")
    assert re.match(r"Row \d+: sad = yes, calm = no, sex = \w+", title)
    browser.click_on("#details .choices button", "0")
    assert "sad = no" in browser.text("#details .row-name")


def test_extrapolation_is_said(browser, tmp_path):
    model = gaussian(93)
    show(browser, tmp_path, model)
    ask(browser, "x3 = +3 sd")
    assert browser.run("return document.querySelector('#details .far').hidden")
    ask(browser, "x3 = +79 sd")
    assert "far from" in browser.text("#details .far")
    assert "x3" in browser.text("#answers .far")
    rows = model.sample(50, 0)
    show(browser, tmp_path, model, data=rows)
    ask(browser, f"x3 = {rows[:, 3].max() + 0.5}")
    assert "Outside the data" in browser.text("#details .far")


# States and names -------------------------------------------------------------------------------


def test_states_are_named_by_what_sets_them_apart(browser, tmp_path):
    model = mood()
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 3))
    assert browser.text("#details section h3") == "States"
    said = browser.run(
        "return [...document.querySelectorAll('#details .named > .name')].map((e) => e.textContent)"
    )
    assert said == ["seldom sad, often calm", "often sad, seldom calm"]
    shares = browser.run(
        "return [...document.querySelectorAll('#details .state > .figures')]"
        ".map((e) => e.textContent)"
    )
    assert shares == ["70 %", "30 %"]
    cells = browser.run(
        "return [...document.querySelectorAll('.heat tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert cells == [
        ["sad", "10 %", "80 %"], ["calm", "70 %", "10 %"], ["sex = male", "55 %", "45 %"],
    ]  # fmt: skip


def test_states_are_in_the_order_of_what_tells_them_apart(browser, tmp_path):
    star = Tree([4] * 4 + [-1], n_observed=4, names=["a", "b", "c", "d", "h1"])
    middle, low, high = 0.5, 0.1, 0.9
    line = [[1 - p, p] for p in (middle, high, low)]
    model = DiscreteTreeModel(star, [line] * 4 + [[0.3, 0.3, 0.4]], [["no", "yes"]] * 4)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 4))
    states = (
        "return [...document.querySelectorAll('#details .heat thead bdi')].map((e) => e.innerText)"
    )
    assert browser.run(states) == ["2", "0", "1"]
    assert "from one end" in browser.text("#details section")
    # Four states, each known by an item of its own, lie on no line: the largest is first.
    own = [[[0.1, 0.9] if k == j else [0.9, 0.1] for k in range(4)] for j in range(4)]
    apart = DiscreteTreeModel(star, [*own, [0.2, 0.3, 0.26, 0.24]], [["no", "yes"]] * 4)
    show(browser, tmp_path, apart)
    browser.click(*spot(browser, 4))
    assert browser.run(states) == ["1", "2", "3", "0"]
    assert "the largest first" in browser.text("#details section")


def test_many_states_are_folded(browser, tmp_path):
    star = simulate.latent_class(6)
    model = simulate.random_discrete_model(star, [3] * 6 + [34], 0)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 6))
    assert "34 states" in browser.text("#details section")
    assert "26 smaller states" in browser.text("#details section")
    assert browser.run("return document.querySelectorAll('.heat thead th').length") == 8
    assert browser.run("return document.querySelectorAll('#details .naming .state').length") == 26


def test_hidden_numbers_have_loadings(browser, tmp_path):
    model = gaussian(94)
    show(browser, tmp_path, model)
    h = hidden_of(model)
    browser.run(f"location.hash = 's=n{model.tree.names[h]}'")
    browser.wait(f"return {STATE}.selection?.node === {h}")
    assert "Loadings" in browser.text("#details")
    rows = browser.run(
        """
        const number = (cell) => Number.parseFloat(cell.textContent.replace("\u2212", "-"));
        return [...document.querySelectorAll("#details .loadings tbody tr")].map((row) => {
          const [bar, loading, shared] = row.querySelectorAll("td");
          const [line, fill] = [bar.firstChild, bar.firstChild.firstChild].map((e) =>
            e.getBoundingClientRect());
          const middle = line.left + line.width / 2;
          const ends = [fill.left - middle, fill.right - middle];
          const end = Math.abs(ends[0]) > Math.abs(ends[1]) ? ends[0] : ends[1];
          const name = row.querySelector("th").textContent;
          return [name, number(loading), number(shared) / 100, (2 * end) / line.width];
        });
        """
    )
    rho = model.correlation([h], range(model.tree.n_observed))[0]
    turned = browser.run(f"return [...{STATE}.model.strengths.turned]")
    rho = rho * turned[h] * np.array(turned[: rho.size])
    order = np.argsort(-np.abs(rho))[: len(rows)]
    assert [row[0] for row in rows] == [model.tree.names[v] for v in order]
    assert np.array([row[1:] for row in rows], float) == pytest.approx(
        np.stack([rho[order], rho[order] ** 2, rho[order]], axis=1), abs=0.02
    )
    assert min(row[1] for row in rows) < 0 < max(row[1] for row in rows)


def test_edited_names_are_in_the_model_file(browser, tmp_path):
    show(browser, tmp_path, mood())
    browser.click(*spot(browser, 3))
    browser.click_on(".rename")
    browser.run("document.activeElement.select()")
    browser.type("Mood", "Enter")
    (tmp_path / "m.json").write_text(browser.run("return latentreeExplorer.toModelFile()"), "utf-8")
    assert models.load(tmp_path / "m.json").tree.names[3] == "Mood"
    assert ")Mood;" in browser.run("return latentreeExplorer.toNewick()")


# First sight ------------------------------------------------------------------------------------


def test_example_questions_are_asked_with_one_click(browser, tmp_path):
    model = gaussian(95)
    show(browser, tmp_path, model)
    texts = browser.run(
        "return [...document.querySelectorAll('.questions button')].map((e) => e.textContent)"
    )
    assert len(texts) == 3
    assert texts[0].endswith("falls by 2 σ, what happens to the others?")
    browser.click_on(".questions button")
    [node] = browser.run(f"return [...{STATE}.evidence.keys()]")
    assert model.tree.names[node] in texts[0]
    assert "Most changed" in browser.text("#answers")


def test_help_fits_one_screen(browser, tmp_path):
    show(browser, tmp_path, gaussian())
    browser.click_on("#show-help")
    assert browser.run("return document.getElementById('help').open")
    fits = "const box = document.getElementById('help'); return box.scrollHeight - box.clientHeight"
    assert browser.run(fits) <= 1
    browser.click_on("#close-help")
    assert not browser.run("return document.getElementById('help').open")


def test_noise_is_called_so(browser, tmp_path):
    show(browser, tmp_path, GaussianTreeModel(Tree([-1] * 5), np.zeros(5)))
    assert "No dependence was found" in browser.text("#details")
    assert browser.run("return document.querySelectorAll('.questions').length") == 0


# Names, colors, large trees ---------------------------------------------------------------------


def test_long_names_keep_what_they_differ_in(browser, tmp_path):
    same = "In the last two weeks, how often did you feel that you were "
    rest = " by what happens at work or in your family?"
    names = [f"{same}{word}{rest}" for word in ("bothered", "pleased", "surprised", "unmoved")]
    model = GaussianTreeModel(Tree([4] * 4 + [-1], n_observed=4, names=[*names, "h1"]), [0.8] * 5)
    for layout in ("layered", "radial"):
        show(browser, tmp_path, model)
        browser.click_on(f"#{layout}")
        svg = browser.run("return window.latentreeExplorer.toSvg()")
        root = ElementTree.fromstring(svg)
        text = " ".join(e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text"))
        for word in ("bothered", "pleased", "surprised", "unmoved"):
            assert word in text, layout
    for width in (1440, 1024, 390):  # and stay inside the window
        with browser.screen(width, 800):
            show(browser, tmp_path, model)
            svg = browser.run("return window.latentreeExplorer.toSvg({ whole: false })")
            labels = browser.run(LABEL_ENDS, svg)
            assert all(end <= whole for _, end, whole in labels), (width, labels)
            for word in ("bothered", "pleased", "surprised", "unmoved"):
                assert any(word in text for text, *_ in labels), (width, labels)


def test_labels_stay_where_they_are(browser, tmp_path):
    show(browser, tmp_path, gaussian(96))
    places = """
    const text = window.latentreeExplorer.toSvg({ whole: false });
    return [...text.matchAll(/<text transform="([^"]*)"[^>]*>(x\\d+)</g)].map((m) => [m[2], m[1]]);
    """
    before = dict(browser.run(places))
    browser.run(
        f"const s = {STATE}; s.evidence.set(4, 30);"
        "for (const e of ['evidence']) for (const f of s.listeners.get(e)) f()"
    )
    after = dict(browser.run(places))
    assert sum(before[name] == after.get(name) for name in before) >= len(before) - 1


def test_large_trees_open_folded(browser, tmp_path):
    rng = np.random.default_rng(1)
    tree = simulate.random_latent_tree(2000, rng)
    model = simulate.random_gaussian_model(tree, rng)
    show(browser, tmp_path, model)
    shown = browser.run(f"return {STATE}.layout.shown.length")
    assert 40 <= shown <= 160
    ask(browser, "x7 = 2 sd")
    browser.click_on("#details [data-key=near]")
    assert 10 <= browser.run(f"return {STATE}.layout.shown.length") <= 400
    assert browser.run(f"return {STATE}.layout.visible[7]") == 1
    browser.click_on("#list")
    browser.wait("return document.querySelector('#outline [aria-current]')")
    assert browser.text("#outline [aria-current] bdi") == "x7"
    browser.click_on("#list")
    browser.click_on("#whole-tree")
    browser.run(f"{STATE}.folded.fill(0); {STATE}.folded[{STATE}.tree.parent[7]] = 1;")
    browser.run(f"for (const f of {STATE}.listeners.get('color')) f()")
    browser.click_on("#radial")
    above = browser.run(f"return {STATE}.tree.parent[7]")
    if browser.run(f"return {STATE}.layout.visible[{above}]"):
        assert browser.run(f"return {STATE}.coloring.number[{above}]") in (
            0,
            6,
        )  # much less or more


def test_support_is_on_edges_and_in_newick(browser, tmp_path):
    model = gaussian(97)
    support = support_from(model.tree, [model.tree, gaussian(98).tree])
    show(browser, tmp_path, model, support=support)
    svg = browser.run("return window.latentreeExplorer.toSvg()")
    known = support.edge_support[~np.isnan(support.edge_support)]
    found = re.findall(r'font-size="9.5"[^>]*>(\d+)<', svg)
    assert {int(text) for text in found} <= {round(100 * share) for share in known} | {87}
    assert len(found) > 1
    newick = browser.run("return window.latentreeExplorer.toNewick()")
    assert newick.strip() == formats.to_newick(model.tree, support=support.edge_support) or (
        formats.from_newick(newick, observed=model.tree.names[:24]).same_structure(model.tree)
    )
    assert re.search(r"\)\d+:", newick)


def test_svg_has_an_element_and_an_id_for_every_edge_and_node(browser, tmp_path):
    model = gaussian(99)
    show(browser, tmp_path, model)
    root = ElementTree.fromstring(browser.run("return window.latentreeExplorer.toSvg()"))
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) == model.tree.n_nodes + model.tree.n_edges
    assert {f"node-{name}" for name in model.tree.names} <= set(ids)


def test_frames_leave_the_wheel_to_what_is_around_them(browser, tmp_path):
    write_explorer(gaussian(100), tmp_path / "tree.html")
    frame = '<iframe id="f" src="tree.html" width="900" height="500"></iframe>'
    (tmp_path / "around.html").write_text(frame, "utf-8")
    browser.open(tmp_path / "around.html")
    browser.wheel(300, 200, -300)
    browser._call("POST", f"{browser.session}/frame", {"id": 0})
    try:
        assert browser.run("return window.latentreeExplorer.view.fitted")
        assert "Ctrl" in browser.text("#toast")
    finally:
        browser._call("POST", f"{browser.session}/frame", {"id": None})


# The panel and pointers -------------------------------------------------------------------------


def test_details_keep_half_of_the_panel_beside_answers_and_trees(browser, tmp_path):
    with browser.screen(1024, 768):
        show(browser, tmp_path, gaussian_mixture())
        assert browser.run("return document.querySelector('#trees details').open")
        ask(browser, "x3 = 1")
        browser.settle()
        share, open_, scrolls = browser.run(
            """
            const panel = document.getElementById("panel");
            const box = panel.getBoundingClientRect();
            const top = document.getElementById("details").getBoundingClientRect().top;
            const parts = [...panel.querySelectorAll(":scope > div")];
            const scrolls = parts.filter((e) => /auto|scroll/.test(getComputedStyle(e).overflowY));
            return [(box.bottom - top) / box.height,
              document.querySelector("#trees details").open, scrolls.length];
            """
        )
        assert share >= 0.49
        assert not open_
        assert scrolls == 0  # the panel is one scroll
        browser.click_on("#tabs button", "What follows")
        top = "return document.getElementById('answers').getBoundingClientRect().top"
        assert browser.run(top) < 120
        assert browser.run("return !document.querySelector('#tabs button').hidden")


def test_targets_have_24_pixels(browser, tmp_path):
    show(browser, tmp_path, discrete(101))
    ask(browser, "x3 = s1")
    small = browser.run(
        """
        const seen = [...document.querySelectorAll("button, summary, select, input")].filter(
          (e) => e.offsetParent && !e.matches("[type=range], [type=checkbox]"));
        const sizes = seen.map((e) => [e.className, e.textContent, e.getBoundingClientRect()]);
        return sizes.filter(([, , box]) => Math.min(box.width, box.height) < 23.9)
          .map(([kind, text, box]) => [kind, text, box.width, box.height]);
        """
    )
    assert small == []


def test_pointing_shows_numbers(browser, tmp_path):
    model = gaussian(102)
    show(browser, tmp_path, model)
    point = f"{STATE}.hover = arguments[0]; for (const f of {STATE}.listeners.get('hover')) f();"
    tip = point + "return window.latentreeExplorer.view.canvas.title"
    name, numbers = browser.run(tip, {"node": 3}).split("\n")
    assert name == "x3"
    assert float(numbers.split(" ± ")[0].replace("\u2212", "-")) == pytest.approx(
        model.means[3], rel=0.01, abs=0.01
    )
    ask(browser, "x5 = +2 sd")
    assert "σ)" in browser.run(tip, {"node": 3})
    edge = browser.run(f"return {STATE}.layout.edges[0]")
    said = browser.run(tip, {"edge": edge})
    assert re.search(r"(strong|moderate|weak), correlation [+\u2212]0\.\d\d", said)


def test_an_edge_in_the_middle_is_straight(browser, tmp_path):
    model = simulate.random_gaussian_model(simulate.double_star(12), 0)
    show(browser, tmp_path, model)
    browser.click_on("#layered")
    ends = browser.run(
        f"const {{ tree, layout }} = {STATE}; const [v] = tree.halves.keys();"
        "return [...layout.points.subarray(2 * layout.starts[v], 2 * layout.starts[v + 1])]"
    )
    assert np.ptp(np.reshape(ends, (-1, 2))[:, 0]) < 1e-6

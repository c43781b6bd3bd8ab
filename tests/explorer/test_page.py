"""The page in a real browser: clicking, typing, zooming, asking, taking away."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from tests.explorer.browser import patiently
from tests.explorer.pages import (
    dense_copula,
    discrete,
    downloaded,
    edge_spot,
    gaussian,
    grid_copula,
    hidden_of,
    mixed,
    selected,
    show,
    spot,
    table_of,
    zero_inflated,
)

from latentree import (
    DiscreteTreeModel,
    GaussianTreeModel,
    Table,
    Tree,
    formats,
    models,
    simulate,
)
from latentree.data import SetAside
from latentree.models import Names, with_schema

# Opening ----------------------------------------------------------------------------------------


def test_nothing_is_requested_from_anywhere(browser, tmp_path):
    show(browser, tmp_path, gaussian())
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    refused = browser._call(
        "POST",
        f"{browser.session}/execute/async",
        {
            "script": "const done = arguments[0];"
            "fetch('http://127.0.0.1:9/').then(() => done('asked'), () => done('refused'))",
            "args": [],
        },
    )
    assert refused == "refused"
    messages = patiently(browser.errors, "the console says that the policy refused it")
    assert any("Content Security Policy" in message for message in messages)


def test_names_are_never_markup(browser, tmp_path):
    names = [
        "<script>window.hacked=1</script>",
        '"><img src=x onerror=window.hacked=1>',
        "שלום עולם",
        "👩‍👩‍👧 emoji",
        "it's; DROP TABLE",
        "</script><svg onload=window.hacked=1>",
        " ",
        "x" * 300,
    ]
    star = Tree([8] * 8 + [-1], n_observed=8, names=[*names, "<i>h</i>"])
    tables = [[[0.9, 0.1], [0.2, 0.8]]] * 8 + [[0.5, 0.5]]
    labels = [["<b>no</b>", "<img src=x onerror=window.hacked=1>"]] * 8
    model = DiscreteTreeModel(star, tables, labels)
    show(browser, tmp_path, model, groups=names, title="<u>title</u>")
    for node in range(9):
        browser.run(
            """
            const { state, view } = window.latentreeExplorer;
            view.canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
            """
        )
        browser.click(*spot(browser, node))
        assert selected(browser) == node
        browser.click_on(".state")
    browser.click_on("#list")
    assert browser.run("return window.hacked ?? 0") == 0
    assert browser.run("return document.querySelectorAll('script').length") == 2
    assert browser.run("return document.querySelectorAll('img, b, i, u, svg[onload]').length") == 0
    shown = browser.run(
        "return [...document.querySelectorAll('#outline bdi')].map((e) => e.textContent)"
    )
    assert set(names) - {" "} <= set(shown)
    assert browser.text("h1") == "<u>title</u>"
    svg = browser.run("return window.latentreeExplorer.toSvg()")
    texts = [e.text for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith("<script>") for text in texts)


# Looking ----------------------------------------------------------------------------------------


def test_a_hidden_node_tells_what_it_speaks_for(browser, tmp_path):
    model = gaussian(1)
    show(browser, tmp_path, model)
    h = hidden_of(model)
    browser.click(*spot(browser, h))
    assert selected(browser) == h
    assert "Hidden variable" in browser.text("#details .kind")
    listed = browser.run(
        """
        const section = [...document.querySelectorAll("#details section")]
          .find((e) => e.querySelector("h3")?.textContent === "Loadings");
        return [...section.querySelectorAll("li .name")].map((e) => e.textContent);
        """
    )
    rho = np.abs(model.correlation([h], range(model.tree.n_observed))[0])
    strongest = [model.tree.names[v] for v in np.argsort(-rho, kind="stable")[: len(listed)]]
    assert listed == strongest


def test_a_variable_shows_its_data(browser, tmp_path):
    model = gaussian(2)
    show(browser, tmp_path, model, data=model.sample(200, 0))
    browser.click(*spot(browser, 0))
    assert "Nearest relatives" in browser.text("#details")
    assert "200 rows" in browser.text("#details")
    assert browser.run("return document.querySelectorAll('.bell .bar').length") == 24


def test_an_edge_shows_its_correlation(browser, tmp_path):
    model = gaussian(3)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 0))
    browser.click_on("#details .edge")
    assert "Correlation" in browser.text("#details")
    child = browser.run("return window.latentreeExplorer.state.selection.edge")
    above = browser.run("return window.latentreeExplorer.state.tree.parent[arguments[0]]", child)
    browser.type("Escape")
    browser.click(*edge_spot(browser, child))
    assert browser.run("return window.latentreeExplorer.state.selection?.edge") == child
    rho = model.correlation([above], [child])[0, 0]
    said = browser.text("#details .facts dd.figures").replace("\u2212", "-")
    assert float(said) == pytest.approx(rho, abs=6e-5)


def test_an_edge_shows_its_tables(browser, tmp_path):
    model = discrete(3)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 0))
    browser.click_on("#details .edge")
    assert browser.run("return document.querySelectorAll('#details table').length") == 2


def test_wheel_zooms_where_the_pointer_is_and_dragging_pans(browser, tmp_path):
    model = gaussian(4)
    show(browser, tmp_path, model)
    before = spot(browser, 3)
    scale = browser.run("return window.latentreeExplorer.view.scale")
    browser.wheel(*before, -300)
    browser.wait("return window.latentreeExplorer.view.scale > arguments[0]", 1.3 * scale)
    assert spot(browser, 3) == pytest.approx(before, abs=1.5)
    browser.wait("return !document.getElementById('minimap').hidden")
    browser.drag((400, 300), (460, 340))
    assert spot(browser, 3) == pytest.approx((before[0] + 60, before[1] + 40), abs=2)
    browser.type("0")
    assert browser.run("return window.latentreeExplorer.view.scale") == pytest.approx(scale)
    browser.wait("return document.getElementById('minimap').hidden")


def test_search_completes_and_shows(browser, tmp_path):
    model = gaussian(5)
    show(browser, tmp_path, model)
    browser.type("/")
    browser.type("X1")
    options = browser.run(
        "return [...document.querySelectorAll('#completions bdi')].map((e) => e.textContent)"
    )
    assert options[0] == "x1"
    assert {"x10", "x14"} <= set(options)
    browser.type("Down", "Enter")
    node = model.tree.index(options[1])
    assert selected(browser) == node
    off = """
        const { view } = window.latentreeExplorer;
        const at = view.toScreen(arguments[0]);
        return [at.x - view.width / 2, at.y - view.height / 2];
        """
    assert browser.run("return window.latentreeExplorer.view.fitted")  # it was in sight
    browser.run("window.latentreeExplorer.view.flyTo({ x: 1e3, y: 0, scale: 20 }, false)")
    browser.type("/")
    browser.type("x1", "Enter")
    assert browser.run(off, model.tree.index("x1")) == pytest.approx([0, 0], abs=1)


def test_arrows_walk_and_escape_clears(browser, tmp_path):
    model = gaussian(6)
    show(browser, tmp_path, model)
    browser.click_on("#layered")
    browser.run("window.latentreeExplorer.view.canvas.focus()")
    browser.type("Right")
    start = selected(browser)
    assert start >= 0
    browser.type("Right")
    child = selected(browser)
    parent = browser.run("return window.latentreeExplorer.state.tree.parent[arguments[0]]", child)
    assert parent == start
    browser.type("Left")
    assert selected(browser) == start
    browser.type("Escape")
    assert selected(browser) == -1


def shown_in_picture(browser, node: int) -> bool:
    return bool(browser.run(f"return window.latentreeExplorer.state.layout.visible[{node}]"))


def test_branches_fold(browser, tmp_path):
    model = gaussian(7)
    show(browser, tmp_path, model)
    inner = browser.run(
        """
        const { tree } = window.latentreeExplorer.state;
        return tree.order.find((v) => tree.parent[v] >= 0 && tree.size[v] > 3);
        """
    )
    count = "return window.latentreeExplorer.state.layout.shown.length"
    assert browser.run(count) == model.tree.n_nodes
    size = browser.run("return window.latentreeExplorer.state.tree.size[arguments[0]]", inner)
    browser.double_click(
        *spot(browser, inner), f"return window.latentreeExplorer.state.folded[{inner}]"
    )
    assert browser.run(count) == model.tree.n_nodes - size + 1
    browser.click_on("#details button", "Unfold branch")
    assert browser.run(count) == model.tree.n_nodes
    browser.type("f")
    assert browser.run(count) == model.tree.n_nodes - size + 1
    browser.click_on("#unfold")
    assert browser.run(count) == model.tree.n_nodes
    scale = browser.run("return window.latentreeExplorer.view.scale")
    browser.wheel(*spot(browser, inner), -200)
    browser.wait("return window.latentreeExplorer.view.scale > 1.1 * arguments[0]", scale)
    before = spot(browser, inner)
    browser.type("f")
    assert spot(browser, inner) == pytest.approx(before, abs=1.5)
    hidden = next(v for v in range(model.tree.n_nodes) if not shown_in_picture(browser, v))
    browser.type("/")
    browser.type(model.tree.names[hidden], "Enter")
    assert shown_in_picture(browser, hidden)


def test_touch_selects(browser, tmp_path):
    model = gaussian(8)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 2), kind="touch")
    assert selected(browser) == 2


def test_two_fingers_zoom(browser, tmp_path):
    show(browser, tmp_path, gaussian(8))
    scale = browser.run("return window.latentreeExplorer.view.scale")
    browser.pinch((400, 350), 40, 120)
    assert browser.run("return window.latentreeExplorer.view.scale") > 2 * scale
    assert selected(browser) == -1


@pytest.mark.parametrize("kind", ["chain", "star"])
def test_deep_and_wide_trees(browser, tmp_path, kind):
    tree = simulate.hidden_markov(2500) if kind == "chain" else simulate.latent_class(5000)
    model = simulate.random_discrete_model(tree, 2, 0)
    show(browser, tmp_path, model)
    for layout in ("layered", "radial"):
        browser.click_on(f"#{layout}")
        places = browser.run(
            "const { x, y } = window.latentreeExplorer.state.layout; return [...x, ...y]"
        )
        assert np.isfinite(np.array(places, float)).all()
    browser.type("/")
    browser.type("x7 = 1", "Enter")
    h = hidden_of(model)
    row = next(r for r in table_of(browser) if r["node"] == tree.names[h] and r["state"] == "1")
    assert float(row["posterior"]) == pytest.approx(model.conditional(h, {7: 1})[1], abs=1e-9)
    text = browser.run("return window.latentreeExplorer.toNewick()")
    assert formats.from_newick(text, observed=tree.names[: tree.n_observed]) == tree


def test_the_list_holds_every_node(browser, tmp_path):
    model = gaussian(9)
    show(browser, tmp_path, model)
    browser.wait("return document.querySelector('#outline .item')")
    names = "return [...document.querySelectorAll('#outline .item bdi')].map((e) => e.textContent)"
    called = models.captions(model)
    assert sorted(browser.run(names)) == sorted(called.get(v, v) for v in model.tree.names)


# Asking -----------------------------------------------------------------------------------------


def differences_gaussian(browser, model, given) -> float:
    scale = np.append(model.scales, np.ones(model.tree.n_hidden))
    worst = 0.0
    for v, row in enumerate(table_of(browser)):
        mean, variance = model.conditional(v, given)
        assert row["given"] == ("yes" if v in given else "no")
        worst = max(worst, abs(float(row["posterior_mean"]) - mean) / scale[v])
        worst = max(worst, abs(float(row["posterior_sd"]) - np.sqrt(variance)) / scale[v])
    return worst


@pytest.mark.parametrize("seed", [11, 12])
def test_gaussian_answers_agree_with_python(browser, tmp_path, seed):
    model = gaussian(seed)
    show(browser, tmp_path, model)
    inner = int(np.flatnonzero(model.tree.degrees[: model.tree.n_observed] > 1)[0])
    browser.type("/")
    browser.type(f"x{inner} = +2 σ", "Enter")
    given = {inner: model.means[inner] + 2 * model.scales[inner]}
    assert differences_gaussian(browser, model, given) < 1e-9
    assert "Most changed" in browser.text("#answers")
    other = (inner + 5) % model.tree.n_observed
    browser.type("/")
    browser.type(f"x{other}", "Enter")
    browser.click_on(".value")
    browser.type("-1.25", "Enter")
    given[other] = -1.25
    assert differences_gaussian(browser, model, given) < 1e-9
    h = hidden_of(model)
    browser.type("/")
    browser.type(model.tree.names[h], "Enter")
    browser.click_on("#details button", "+1 σ")
    given[h] = 1.0
    assert differences_gaussian(browser, model, given) < 1e-9
    first = browser.text("#answers ol li .name")
    moved = {
        v: abs(model.conditional(v, given).mean - model.marginal(v).mean)
        / np.sqrt(model.marginal(v).variance)
        for v in range(model.tree.n_nodes)
        if v not in given
    }
    assert first == model.tree.names[max(moved, key=moved.get)]
    browser.click_on("#answers .clear")
    assert differences_gaussian(browser, model, {}) < 1e-9


def test_the_slider_asks(browser, tmp_path):
    model = gaussian(13)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 4))
    browser.run("document.querySelector('#details input[type=range]').focus()")
    browser.type("Right", "Right", "Right")
    given = browser.run("return window.latentreeExplorer.state.evidence.get(4)")
    assert given == pytest.approx(model.means[4] + 0.15 * model.scales[4])
    assert differences_gaussian(browser, model, {4: given}) < 1e-9
    assert browser.run("return document.activeElement.type") == "range"
    browser.click_on("#details [data-key=clear]")
    assert browser.run("return window.latentreeExplorer.state.evidence.size") == 0


@pytest.mark.parametrize("seed", [21, 22])
def test_discrete_answers_agree_with_python(browser, tmp_path, seed):
    model = discrete(seed)
    show(browser, tmp_path, model)
    inner = int(np.flatnonzero(model.tree.degrees[: model.tree.n_observed] > 1)[0])
    given = {inner: "s1", (inner + 3) % 24: "s0"}
    for node, label in given.items():
        browser.type("/")
        browser.type(f"x{node}", "Enter")
        browser.click_on("#details .state", label)
    h = hidden_of(model)
    browser.type("/")
    browser.type(f"{model.tree.names[h]} = 1", "Enter")
    given[h] = 1
    rows = table_of(browser)
    found = np.array([float(row["posterior"]) for row in rows])
    starts = model.layout.state_starts
    for v in range(model.tree.n_nodes):
        wanted = model.conditional(v, given)
        assert np.abs(found[starts[v] : starts[v + 1]] - wanted).max() < 1e-9
    assert rows[0]["state"] == "s0"
    browser.type("Escape", "Escape")
    assert browser.run("return window.latentreeExplorer.state.evidence.size") == 0


def test_mixed_answers_agree_with_python(browser, tmp_path):
    model = mixed()
    show(browser, tmp_path, model)
    browser.type("/")
    browser.type("age = 70", "Enter")
    browser.type("/")
    browser.type("visits", "Enter")
    browser.run("document.querySelector('#details input[type=range]').focus()")
    browser.type("Right", "Right")
    visits = browser.run("return window.latentreeExplorer.state.evidence.get(1)")
    assert visits == round(model.marginal("visits").mean) + 2
    browser.type("/")
    browser.type("health = poor", "Enter")
    given = {"age": 70, "visits": visits, "health": "poor"}
    rows = table_of(browser)
    for node in range(model.tree.n_nodes):
        name, own = model.tree.names[node], model.conditional(node, given)
        found = [row for row in rows if row["node"] == name]
        if model.layout.emits[node]:
            [row] = found
            numbers = [float(row["posterior_mean"]), float(row["posterior_sd"])]
            assert numbers == pytest.approx([own.mean, np.sqrt(own.variance)], abs=1e-9)
        else:
            assert [float(row["posterior"]) for row in found] == pytest.approx(own, abs=1e-9)
    assert "age = 70" in browser.text("#answers .chips").replace("\n", "")


def test_numbers_of_mixed_models_are_shown(browser, tmp_path):
    model = mixed()
    cells = np.array([[20.0, 0, 0, 1], [40.0, 3, 1, 0], [61.0, 4, 2, 0]])
    show(browser, tmp_path, model, data=Table(cells, model.schema))
    browser.type("/")
    browser.type("age", "Enter")
    mean, variance = model.marginal("age")
    assert browser.text("#details .summary") == f"{mean:.4g} ± {np.sqrt(variance):.3g}"
    assert browser.run("return document.querySelectorAll('.bell .bar').length") == 24
    browser.click_on("#details .edge")
    cells = "return [...document.querySelectorAll('#details td.figures')].map((e) => e.textContent)"
    assert browser.run(cells) == ["30", "10", "60", "5"]
    assert "Correlation\n" in browser.text("#details")  # of two states and a number


@pytest.mark.parametrize("wrong", ["2.5", "-1", "many", "1e400"])
def test_counts_take_counts_only(browser, tmp_path, wrong):
    show(browser, tmp_path, mixed())
    browser.type("/")
    browser.type("visits", "Enter")
    browser.click_on(".value")
    browser.type(wrong, "Enter")
    assert browser.run("return document.querySelector('.value').matches('[aria-invalid]')")
    assert browser.run("return window.latentreeExplorer.state.evidence.size") == 0


def test_impossible_evidence_is_said(browser, tmp_path):
    model = DiscreteTreeModel(Tree([-1, 0, 0]), [[0.5, 0.5], np.eye(2), np.eye(2)])
    show(browser, tmp_path, model)
    for question in ("x1 = 0", "x2 = 1"):
        browser.type("/")
        browser.type(question, "Enter")
    assert "probability 0" in browser.text("#answers")


# Taking away ------------------------------------------------------------------------------------


def test_a_new_name_is_kept_in_the_saved_page(browser, tmp_path):
    model = gaussian(31)
    show(browser, tmp_path, model)
    h = hidden_of(model)
    browser.click(*spot(browser, h))
    browser.click_on(".rename")
    browser.run("document.activeElement.select()")
    browser.type("Market <mood>", "Enter")
    assert browser.run(f"return window.latentreeExplorer.state.model.names[{h}]") == "Market <mood>"
    browser.click_on("#take summary")
    browser.click_on("#save-page")
    saved = downloaded(browser, "*.html")
    browser.open(saved)
    assert browser.run(f"return window.latentreeExplorer.state.model.names[{h}]") == "Market <mood>"
    browser.click(*spot(browser, h))
    assert browser.run("return document.querySelector('.rename').value") == "Market <mood>"
    again = browser.run("return window.latentreeExplorer.toPage()")
    assert again == saved.read_text("utf-8")


def test_a_taken_name_is_refused(browser, tmp_path):
    model = gaussian(32)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, hidden_of(model)))
    browser.click_on(".rename")
    browser.run("document.activeElement.select()")
    browser.type("x0", "Enter")
    assert "taken" in browser.text("#details")


def test_the_model_comes_back_from_its_json(browser, tmp_path):
    """Of every family, with names, names of states, notes, and columns that were set aside."""
    rng = np.random.default_rng(44)
    for make in (lambda _: mixed(), grid_copula, dense_copula, zero_inflated):
        model = make(rng)
        hidden = model.tree.names[-1]
        states = [] if model.schema.family == "copula" else list("abcdefg"[: model.n_states[-1]])
        names = Names({hidden: "Mood"}, {hidden: states} if states else {}, {hidden: "a note"})
        schema = replace(model.schema, aside=(SetAside("one", 0, "constant", 1.0),))
        named = with_schema(model, schema).rename(names)
        show(browser, tmp_path, named)
        browser.run(f"window.latentreeExplorer.state.model.notes[{hidden_of(model)}] = 'another'")
        path = tmp_path / "model.json"
        path.write_text(browser.run("return window.latentreeExplorer.toModelFile()"), "utf-8")
        loaded = models.load(path)
        rows = model.sample(30, 0)
        assert loaded.schema == named.schema
        assert loaded.state_names == named.state_names
        assert loaded.notes[named.tree.names[hidden_of(model)]] == "another"
        assert loaded.log_likelihood(rows) == pytest.approx(named.log_likelihood(rows), rel=1e-12)


@pytest.mark.parametrize("model", [gaussian(41), discrete(42)])
def test_gaussian_and_discrete_models_come_back_to_the_last_bit(browser, tmp_path, model):
    show(browser, tmp_path, model)
    path = tmp_path / "model.json"
    path.write_text(browser.run("return window.latentreeExplorer.toModelFile()"), "utf-8")
    loaded = models.load(path)
    assert loaded.tree.names == model.tree.names
    assert loaded.tree.parent.tolist() == model.tree.parent.tolist()
    assert loaded.schema == model.schema
    if isinstance(model, GaussianTreeModel):
        assert loaded.correlations.tolist() == model.correlations.tolist()
        assert loaded.scales.tolist() == model.scales.tolist()
    else:
        assert np.allclose(loaded.theta, model.theta, rtol=1e-15)


def test_the_tree_comes_back_from_its_newick(browser, tmp_path):
    tree = simulate.random_lengths(gaussian(43).tree, 0)
    names = [f"it's {v}" for v in range(tree.n_observed)]
    tree = tree.renamed(names)
    model = GaussianTreeModel.from_distances(tree)
    show(browser, tmp_path, model)
    text = browser.run("return window.latentreeExplorer.toNewick()")
    back = formats.from_newick(text, observed=names)
    assert back == tree
    assert np.allclose(back.path_lengths(), tree.path_lengths())


def test_pictures_and_tables_are_downloaded(browser, tmp_path):
    model = gaussian(44)
    show(browser, tmp_path, model, title="Downloads of all kinds")
    for button in ("save-svg", "save-png", "save-newick", "save-json", "save-csv"):
        browser.click_on("#take summary")
        browser.click_on(f"#{button}")
    stem = "Downloads-of-all-kinds"
    png = downloaded(browser, f"{stem}.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    svg = ElementTree.fromstring(downloaded(browser, f"{stem}.svg").read_text("utf-8"))
    texts = [e.text for e in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "x0" in texts
    assert downloaded(browser, f"{stem}.nwk").read_text("utf-8").endswith(";\n")
    assert json.loads(downloaded(browser, f"{stem}.json").read_text("utf-8"))["version"] == 1
    table = downloaded(browser, f"{stem}-posterior.csv").read_text("utf-8")
    assert table.startswith("node,kind,given,prior_mean")


def test_cells_that_look_like_formulas_are_text_to_spreadsheets(browser, tmp_path):
    names = ['=HYPERLINK("http://x")', "@cmd", "-a", "+b", "-3", "plain", "a=b"]
    tree = simulate.latent_class(7).renamed([*names, "h1"])
    labels = [("=1+1", "-1"), *[("no", "yes")] * 6]
    plain = simulate.random_discrete_model(tree, 2, 0)
    show(browser, tmp_path, DiscreteTreeModel(tree, plain.tables, labels))
    rows = [row for row in table_of(browser) if row["kind"] == "observed"]
    assert [row["node"] for row in rows[::2]] == [
        '\'=HYPERLINK("http://x")', "'@cmd", "'-a", "'+b", "-3", "plain", "a=b",
    ]  # fmt: skip
    assert [row["state"] for row in rows[:2]] == ["'=1+1", "-1"]


# Looks ------------------------------------------------------------------------------------------


def test_light_dark_and_narrow(browser, tmp_path):
    model = gaussian(51, m=60)
    show(browser, tmp_path, model, groups=[f"group {v % 4}" for v in range(60)])
    assert browser.run("return document.querySelectorAll('#legend li').length") >= 5
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    browser.screenshot(tmp_path / "light.png")
    browser.click_on("#theme")
    assert browser.run(paper) != light
    browser.screenshot(tmp_path / "dark.png")
    browser.resize(500, 800)
    try:
        browser.screenshot(tmp_path / "narrow.png")
        inside = browser.run("return document.documentElement.scrollWidth <= innerWidth")
        below = browser.run(
            "return document.querySelector('aside').getBoundingClientRect().top >="
            " document.getElementById('stage').getBoundingClientRect().bottom - 1"
        )
    finally:
        browser.resize(1280, 800)
    assert inside
    assert below


def test_forests_and_single_variables(browser, tmp_path):
    forest = Tree([-1, 0, 0, -1, -1, 4], names=list("abcdef"))
    model = GaussianTreeModel(forest, [0, 0.5, 0.6, 0, 0, 0.7])
    show(browser, tmp_path, model)
    for kind in ("radial", "layered"):
        browser.click_on(f"#{kind}")
        places = [spot(browser, v) for v in range(6)]
        assert len({(round(x), round(y)) for x, y in places}) == 6
    show(browser, tmp_path, GaussianTreeModel(Tree([-1]), [0]))
    browser.click(*spot(browser, 0))
    assert selected(browser) == 0


def test_ten_thousand_nodes_are_drawn_and_asked(browser, tmp_path):
    rng = np.random.default_rng(0)
    tree = simulate.random_latent_tree(6900, rng)
    assert tree.n_nodes > 10_000
    model = simulate.random_gaussian_model(tree, rng, negative_share=0.1)
    show(browser, tmp_path, model, groups=[f"group {v % 8}" for v in range(6900)])
    browser.click_on("#unfold")
    inked = browser.run(
        """
        const { canvas, ctx } = window.latentreeExplorer.view;
        const { data } = ctx.getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] < 0xd0) count++;
        return count;
        """
    )
    assert inked > 10_000
    browser.type("/")
    browser.type("x77 = 2 σ", "Enter")
    x77 = tree.index("x77")
    near = int(tree.neighbors(x77)[0])
    rows = table_of(browser)
    assert float(rows[near]["posterior_mean"]) == pytest.approx(
        model.conditional(near, {x77: 2.0}).mean, abs=1e-9
    )


# Folding ----------------------------------------------------------------------------------------


def test_folded_branches_leave_no_empty_rows(browser, tmp_path):
    model = gaussian(61, m=60)
    show(browser, tmp_path, model)
    browser.click_on("#layered")
    found = browser.run(
        """
        const { state, view } = window.latentreeExplorer;
        const { tree } = state;
        const big = Array.from(tree.order).filter((v) => tree.parent[v] >= 0 && tree.size[v] > 5);
        const inner = big.filter((v) => tree.size[v] < 25);
        const snapshot = () => {
          const { shown, x, y, points, starts } = state.layout;
          const edge = (v) => Array.from(points.subarray(2 * starts[v], 2 * starts[v + 1]));
          return shown.map((v) => ({ v, parent: tree.parent[v], x: x[v], y: y[v], edge: edge(v) }));
        };
        const whole = snapshot();
        state.selection = { node: inner[0] };
        view.canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "f", bubbles: true }));
        return { node: inner[0], size: tree.size[inner[0]], whole, folded: snapshot() };
        """
    )
    whole = {one["v"]: one for one in found["whole"]}
    folded = {one["v"]: one for one in found["folded"]}
    assert len(folded) == len(whole) - found["size"] + 1
    nodes = sorted(folded)
    before = np.array([whole[v]["y"] for v in nodes])
    after = np.array([folded[v]["y"] for v in nodes])
    assert np.diff(after[np.argsort(before)]).min() > -1e-4  # the order from top to bottom stays
    rows = [v for v in nodes if v < model.tree.n_observed or v == found["node"]]
    gaps = np.diff(np.sort([folded[v]["y"] for v in rows]))
    assert gaps.min() > 0.75
    assert np.ptp(after) < np.ptp(before) - 2
    for v, one in folded.items():
        if one["parent"] < 0:
            continue
        points = np.reshape(one["edge"], (-1, 2))
        ends = {tuple(np.round(points[i], 3)) for i in (0, -1)}
        above = folded[one["parent"]]
        assert ends == {tuple(np.round((u["x"], u["y"]), 3)) for u in (one, above)}, v

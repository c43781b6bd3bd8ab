"""Names, addresses, paths and lists of answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.explorer.pages import (
    discrete,
    downloaded,
    gaussian,
    hidden_of,
    mixed,
    selected,
    show,
    spot,
)

from latentree import CopulaTreeModel, DiscreteTreeModel, GaussianTreeModel, Tree, as_table
from latentree.explorer import write_explorer
from latentree.inference import RankMargin, Thresholds
from latentree.models import Names, captions

STATE = "window.latentreeExplorer.state"


def ask(browser, question: str) -> None:
    browser.type("/")
    browser.type(question, "Enter")


# Names ------------------------------------------------------------------------------------------


def test_hidden_variables_are_called_by_what_they_inform_about(browser, tmp_path):
    model = discrete(1)
    show(browser, tmp_path, model)
    wanted = captions(model)
    listed = browser.run(
        "return [...document.querySelectorAll('#details li.named')].map((e) => e.innerText)"
    )
    assert len(listed) == model.tree.n_hidden
    for text in listed:
        title, about = text.split("\n")
        name, sizes = about.split(" · ")
        assert wanted[name] == title
        assert sizes.count("%") == model.n_states[model.tree.index(name)]
    browser.type("/")
    browser.type(model.tree.names[hidden_of(model)], "Enter")  # found by its number too
    assert selected(browser) == hidden_of(model)
    value = browser.run("return document.querySelector('.rename').value")
    assert value == wanted[model.tree.names[hidden_of(model)]]


def test_names_of_people_go_to_python_and_back(browser, tmp_path):
    model = discrete(2)
    h = int(np.flatnonzero(model.n_states[24:] == 2)[0]) + 24
    own = model.tree.names[h]
    show(browser, tmp_path, model)
    ask(browser, own)
    browser.click_on(".rename")
    browser.run("document.activeElement.select()")
    browser.type("Mood", "Enter")
    browser.click_on(".naming summary")
    for k, text in enumerate(("low", "high")):
        browser.run(f"document.querySelector('[data-key=name{k}]').focus()")
        browser.run("document.activeElement.select()")
        browser.type(text, "Tab")
    browser.run("document.querySelector('[data-key=note]').focus()")
    browser.type("as in 2011", "Tab")
    assert "as in 2011" in browser.text("#details .note")
    browser.click_on("#take summary")
    browser.click_on("#save-names")
    path = downloaded(browser, "*-names.json")
    names = Names.load(path)
    assert names == Names({own: "Mood"}, {own: ["low", "high"]}, {own: "as in 2011"})
    path.unlink()
    assert model.rename(names).tree.names[h] == "Mood"
    show(browser, tmp_path, model, names=names)
    ask(browser, "Mood = high")
    assert browser.run(f"return {STATE}.evidence.get({h})") == 1
    assert "Mood = high" in browser.text("#answers .chips").replace("\n", "")


def test_a_file_of_names_is_read_and_a_wrong_one_explained(browser, tmp_path):
    model = gaussian(3)
    show(browser, tmp_path, model)
    script = """
    const [text] = arguments;
    const input = document.getElementById("names-file");
    const files = new DataTransfer();
    files.items.add(new File([text], "names.json"));
    input.files = files.files;
    input.dispatchEvent(new Event("change"));
    """
    h = hidden_of(model)
    good = {"format": "latentree names", "version": 1, "names": {model.tree.names[h]: "Market"}}
    browser.run(script, json.dumps(good))
    browser.wait(f"return {STATE}.model.names[{h}] === 'Market'")
    browser.run(script, json.dumps(good | {"names": {"h999": "x"}}))
    browser.wait("return document.getElementById('toast').textContent.includes('h999')")


# Addresses --------------------------------------------------------------------------------------


def test_the_address_brings_a_view_back(browser, tmp_path):
    model = discrete(4)
    path = show(browser, tmp_path, model)
    h = hidden_of(model)
    ask(browser, "x1 = s1")
    ask(browser, "x2")
    browser.click_on("#layered")
    browser.click_on("#theme")
    browser.run(
        """
        const { state, view } = window.latentreeExplorer;
        state.model.names[arguments[0]] = "a & b = <c>#";
        for (const listener of state.listeners.get("names")) listener();
        view.zoom(1.7);
        """,
        h,
    )
    look = f"""
    const {{ state, view }} = window.latentreeExplorer;
    return [[...state.evidence], state.selection, state.kind, view.scale.toPrecision(4),
      document.documentElement.dataset.theme, state.model.names[{h}]];
    """
    before = browser.run(look)
    browser.wait("return location.hash.includes('v=') && location.hash.includes('n=')")
    link = browser.run("return location.hash")
    browser._call("POST", f"{browser.session}/url", {"url": "about:blank"})
    address = path.resolve().as_uri() + link
    browser._call("POST", f"{browser.session}/url", {"url": address})
    browser.settle()
    assert browser.run(look) == before
    posterior = browser.run(f"return Array.from({STATE}.posterior.probability)")
    start = model.layout.state_starts[5]
    wanted = model.conditional(5, {1: "s1"})
    assert posterior[start : start + wanted.size] == pytest.approx(wanted.tolist(), abs=1e-9)
    browser.run("location.hash = 's=nx3'")
    browser.wait(f"return {STATE}.selection?.node === 3")


def test_the_back_button_undoes(browser, tmp_path):
    show(browser, tmp_path, gaussian(4))
    seen = f"return [{STATE}.selection?.node ?? -1, [...{STATE}.evidence.keys()]]"
    ask(browser, "x3")
    browser.wait("return location.hash.includes('s=nx3')")
    ask(browser, "x5 = 1")
    browser.wait("return location.hash.includes('e=x5')")
    assert browser.run(seen) == [5, [5]]
    browser.run("history.back()")
    browser.wait("return !location.hash.includes('e=')")
    assert browser.run(seen) == [3, []]
    browser.run("history.back()")
    browser.wait("return location.hash === ''")
    assert browser.run(seen) == [-1, []]
    browser.run("history.forward()")
    browser.wait(f"return {STATE}.selection?.node === 3")


def test_a_link_to_another_model_says_so(browser, tmp_path):
    show(browser, tmp_path, gaussian(4))
    ask(browser, "x5 = 1")
    browser.wait("return location.hash.includes('e=x5')")
    link = browser.run("return location.hash")
    path = tmp_path / "tree.html"
    write_explorer(gaussian(5), path)
    for wrong, said in (("", "another version"), ("&b=oil", "no oil")):
        browser._call("POST", f"{browser.session}/url", {"url": "about:blank"})
        address = path.resolve().as_uri() + link + wrong
        browser._call("POST", f"{browser.session}/url", {"url": address})
        browser.settle()
        assert said in browser.text("#toast")
        assert browser.run(f"return [...{STATE}.evidence]") == [[5, 1]]
    browser.click_on("#toast button")
    assert browser.run("return document.getElementById('toast').hidden")


def test_a_page_from_disk_is_saved_with_its_view(browser, tmp_path):
    show(browser, tmp_path, gaussian(6), title="With its view")
    ask(browser, "x7 = 2 sd")
    browser.click_on("#take summary")
    assert "only here" in browser.text("#from-disk")
    assert "this computer" in browser.text("#copy-link")
    browser.click_on("#save-view")
    browser.open(downloaded(browser, "With-its-view.html"))
    assert browser.run(f"return [...{STATE}.evidence.keys(), {STATE}.selection.node]") == [7, 7]


@pytest.mark.parametrize(
    "wrong", ["s=nx999", "e=x5:77,x:y", "v=1,,", "n=[[", "l=spiral&f=-3", "s=px1", "s=n%E0", "e=:1"]
)
def test_addresses_that_fit_nothing_are_passed_over(browser, tmp_path, wrong):
    path = show(browser, tmp_path, discrete(5))
    browser._call("POST", f"{browser.session}/url", {"url": "about:blank"})
    address = f"{path.resolve().as_uri()}#{wrong}"
    browser._call("POST", f"{browser.session}/url", {"url": address})
    browser.settle()
    assert browser.run(f"return [{STATE}.evidence.size, {STATE}.selection]") == [0, None]


# Paths ------------------------------------------------------------------------------------------


def test_a_path_says_how_two_variables_relate(browser, tmp_path):
    model = gaussian(6)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 0))
    browser.click_on("#details button", "Path to…")
    ask(browser, "x7")
    assert browser.run(f"return {STATE}.selection.path") == [0, 7]
    rho = model.correlation([0], [7])[0, 0]
    said = browser.text("#details .facts dd.figures").replace("\u2212", "-")
    assert float(said) == pytest.approx(rho, abs=6e-5)
    steps = browser.run("return document.querySelectorAll('#details ol li').length")
    lengths = model.tree.with_lengths(np.where(model.tree.parent < 0, 0.0, 1.0)).path_lengths
    assert steps == lengths([0], [7])[0, 0] + 1
    inner = int(model.tree.neighbors(0)[np.argmin(lengths(model.tree.neighbors(0), [7])[:, 0])])
    browser.run(
        f"{STATE}.evidence.set({inner}, 0);for (const f of {STATE}.listeners.get('evidence')) f()"
    )
    assert "Blocked" in browser.text("#details")


def test_a_click_with_shift_shows_the_joint_table(browser, tmp_path):
    model = discrete(7)
    show(browser, tmp_path, model)
    browser.click(*spot(browser, 2))
    x, y = spot(browser, 9)
    browser.run(
        """
        const { canvas } = window.latentreeExplorer.view;
        const box = canvas.getBoundingClientRect();
        const [x, y] = arguments;
        for (const type of ["pointerdown", "pointerup"]) {
          canvas.dispatchEvent(new PointerEvent(type, {
            clientX: x, clientY: y, shiftKey: true, pointerId: 1, bubbles: true }));
        }
        """,
        x,
        y,
    )
    assert browser.run(f"return {STATE}.selection.path") == [2, 9]
    shares = browser.run(
        "return [...document.querySelectorAll('#details td.figures')]"
        ".map((e) => Number(e.style.getPropertyValue('--share')))"
    )
    assert shares == pytest.approx(model.joint(2, 9).ravel().tolist(), abs=6e-5)


def test_variables_of_different_trees_are_independent(browser, tmp_path):
    forest = Tree([-1, 0, -1, 2], names=list("abcd"))
    show(browser, tmp_path, GaussianTreeModel(forest, [0, 0.5, 0, 0.6]))
    browser.run("location.hash = 's=pa,d'")
    browser.wait(f"return {STATE}.selection?.path")
    assert "independent" in browser.text("#details")


# Answers ----------------------------------------------------------------------------------------


def test_answers_are_filtered_and_all_are_shown(browser, tmp_path):
    model = gaussian(8, m=40)
    show(browser, tmp_path, model)
    ask(browser, "x0 = +2 σ")
    rows = "return document.querySelectorAll('#answers ol li:not(.last)').length"
    hidden = "return document.querySelectorAll('#answers ol .go.hidden').length"
    browser.click_on("#answers [data-filter=variables]")
    assert browser.run(hidden) == 0
    browser.click_on("#answers .more")
    assert browser.run(rows) == model.tree.n_observed - 1
    browser.click_on("#answers [data-filter=hidden]")
    assert browser.run(hidden) == browser.run(rows) > 0


def test_ordered_states_go_up_and_down(browser, tmp_path):
    show(browser, tmp_path, mixed())
    ask(browser, "age = 75")  # the older, the poorer their health
    way = browser.run(
        """
        const row = [...document.querySelectorAll("#answers ol li")]
          .find((e) => e.querySelector(".name").textContent === "health");
        return row.querySelector(".share").className;
        """
    )
    assert "down" in way


def test_hidden_normal_variables_behind_answers_are_numbers(browser, tmp_path):
    star = Tree([3, 3, 3, -1], n_observed=3)
    answers = [Thresholds([-1.0, 0.0, 1.0])] * 3
    model = CopulaTreeModel(star, [0.8, -0.7, 0.6, 0], answers)
    show(browser, tmp_path, model, data=model.sample(50, 0), rows=True)
    ask(browser, "x0 = 3")
    ask(browser, "h1")
    mean = browser.run(f"return {STATE}.posterior.mean[3]")
    assert mean == pytest.approx(model.conditional("h1", {"x0": 3}).mean, abs=1e-9)
    assert "±" in browser.text("#details .summary")
    assert "Highest" in browser.text("#details .choices")
    ask(browser, "h1 = 1.1")  # between two points of the grid
    own = browser.run(f"return [...{STATE}.posterior.probability.subarray(4, 8)]")
    wanted = model.conditional("x1", {"h1": 1.1, "x0": 3})
    assert own == pytest.approx(list(wanted), abs=1e-9)
    browser.click_on("#details .edge")
    assert browser.text("#details .facts dd.figures").replace("\u2212", "-") == "+0.8000"
    assert browser.run("return document.querySelectorAll('#details tbody tr').length") == 5


def test_numbers_are_asked_and_answered_on_the_scale_of_their_ranks(browser, tmp_path):
    rng = np.random.default_rng(0)
    incomes = np.exp(rng.normal(3.0, 1.0, (300, 1)) + 0.5 * rng.normal(size=(300, 3)))
    margins = [RankMargin.of(column) for column in incomes.T]
    model = CopulaTreeModel(Tree([3, 3, 3, -1], n_observed=3), [0.9, 0.8, -0.7, 0], margins)
    show(browser, tmp_path, model, data=as_table(incomes, schema=model.schema), rows=True)
    ask(browser, "x0 = 120")
    ask(browser, "x1")
    found = browser.run(
        f"const {{ mean, variance }} = {STATE}.posterior; return [mean[1], variance[1]]"
    )
    assert found == pytest.approx(list(model.conditional("x1", {"x0": 120})), rel=1e-9)
    assert browser.text("#details .bell + p + p").startswith("68 % between")
    assert "120 (+" in browser.text("#answers .chips")
    ask(browser, "x0 = -2 sd")  # no income is negative
    given = browser.run(f"return {STATE}.evidence.get(0)")
    assert given == pytest.approx(float(margins[0].value(np.array([-2.0]))[0]), rel=1e-9)
    assert given > 0
    ask(browser, "h1")
    browser.click_on(".row-box summary")
    browser.wait("return document.querySelector('.row-box button')")
    browser.click_on(".row-box button", "Suppose this row")
    given = browser.run(f"return [...{STATE}.evidence.values()]")
    mean = browser.run(f"return {STATE}.posterior.mean[3]")
    assert given == incomes[model.posterior(incomes).mean[:, 0].argmax()].tolist()
    assert mean == pytest.approx(model.posterior([given]).mean[0, 0], abs=1e-9)


def test_the_panel_is_made_wider_by_keys(browser, tmp_path):
    star = DiscreteTreeModel(Tree([-1, 0]), [[0.5, 0.5], np.eye(2)])
    show(browser, tmp_path, star)
    width = "return document.getElementById('panel').offsetWidth"
    before = browser.run(width)
    browser.run("document.getElementById('divider').focus()")
    browser.type("Left", "Left")
    assert browser.run(width) == before + 48
    browser.wait(
        "const { view } = window.latentreeExplorer;"
        "return view.width === view.canvas.getBoundingClientRect().width"
    )

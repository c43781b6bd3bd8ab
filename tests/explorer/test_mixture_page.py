"""A mixture of trees in the page: one tree is shown, and all of them answer."""

from __future__ import annotations

import json
import re

import pytest
from tests.explorer.pages import (
    discrete_mixture,
    gaussian,
    gaussian_mixture,
    mixed_mixture,
    show,
    table_of,
)

from latentree.errors import DataError, ModelError
from latentree.explorer import explorer_html, write_explorer
from latentree.models import Names, load

STATE = "window.latentreeExplorer.state"


def embedded(html: str) -> dict:
    return json.loads(re.search(r'id="payload">(.*?)</script>', html, re.DOTALL)[1])


def probabilities(browser) -> list[tuple[str, str, str]]:
    """Name, whether it is shown, and figures of every tree in the chooser."""
    found = browser.run(
        "return [...document.querySelectorAll('#trees .state')].map((e) =>"
        " [e.querySelector('.name').textContent, e.getAttribute('aria-pressed'),"
        "  e.querySelector('.figures').textContent])"
    )
    return [tuple(each) for each in found]


def press(browser, key: str) -> None:
    browser.run(f"document.querySelector('#trees [data-key={key}]').click()")
    browser.settle()


@pytest.mark.parametrize("make", [gaussian_mixture, discrete_mixture, mixed_mixture])
def test_all_trees_answer_and_one_is_shown(browser, tmp_path, make):
    mixture = make()
    m, is_number = mixture.tree.n_observed, not mixture.schema.labels[1]
    path = show(browser, tmp_path, mixture, data=mixture.sample(40, 0), rows=True)
    shown = int(mixture.weights.argmax())
    assert browser.text("#pane-a") == f"Tree {shown + 1}, one of {mixture.n_trees}"
    assert [(name, pressed) for name, pressed, _ in probabilities(browser)] == [
        (f"Tree {k + 1}", str(k == shown).lower()) for k in (-mixture.weights).argsort()
    ]
    value = round(float(mixture.marginal(1).mean)) if is_number else 1
    given = {1: value if is_number else mixture.schema.labels[1][value]}
    name = mixture.schema.names[1]
    other = (shown + 1) % mixture.n_trees
    browser.run("location.hash = arguments[0]", f"e={name}:{given[1]}&s=n{name}")
    browser.wait(f"return {STATE}.evidence.size === 1")
    for number in (shown, other):  # evidence stays when another tree is chosen
        press(browser, f"tree{number}")
        part = mixture.components[number]
        rows = table_of(browser)
        assert {row["node"] for row in rows if row["given"] == "yes"} == {mixture.schema.names[1]}
        share = [float(row["posterior"]) for row in rows if row["node"] == mixture.tree.names[m]]
        assert share == pytest.approx(mixture.conditional(m, given).tolist(), abs=1e-9)
        for v in (0, m - 1, part.tree.n_nodes - 1):
            model = mixture if v < m else part
            wanted, own = model.conditional(v, given), part.tree.names[v]
            mine = [row for row in rows if row["node"] == own]
            if hasattr(wanted, "mean") and hasattr(wanted, "variance"):
                sd = wanted.variance**0.5
                assert float(mine[0]["posterior_mean"]) == pytest.approx(wanted.mean, abs=1e-9 * sd)
            else:
                found = [float(row["posterior"]) for row in mine]
                assert found == pytest.approx(list(wanted), abs=1e-9)
        assert browser.run(f"return {STATE}.selection.node") == 1
    assert all("→" in figures for _, _, figures in probabilities(browser))
    press(browser, "suppose-tree")
    rows = table_of(browser)
    found = [row for row in rows if row["node"] == mixture.schema.names[0]]
    wanted = mixture.conditional(0, given | {m: other})
    if is_number:
        assert float(found[0]["posterior_mean"]) == pytest.approx(wanted.mean, rel=1e-9)
    else:
        assert [float(row["posterior"]) for row in found] == pytest.approx(list(wanted), abs=1e-9)
    assert f"{mixture.tree.names[m]} = Tree {other + 1}" in browser.text("#answers .chips").replace(
        "\n", ""
    )
    browser.wait("return location.hash.includes(',:')")
    link = browser.run("return location.hash")
    browser._call("POST", f"{browser.session}/url", {"url": "about:blank"})
    browser._call("POST", f"{browser.session}/url", {"url": path.resolve().as_uri() + link})
    browser.settle()
    look = f"return [{STATE}.mixture.number, [...{STATE}.evidence], {STATE}.selection.node]"
    assert browser.run(look) == [other, [[1, value], [-1, other]], 1]
    browser.click_on("#answers .remove")
    assert browser.run(f"return {STATE}.evidence.size") == 1


def test_hidden_variables_are_of_their_tree(browser, tmp_path):
    mixture = discrete_mixture()
    show(browser, tmp_path, mixture, names=[{"h1": "Mood"}, None, None])
    press(browser, "tree0")
    browser.run("location.hash = 's=nh1&e=h1:1,x3:s1'")
    browser.wait(f"return {STATE}.evidence.size === 2")
    assert browser.run(f"return {STATE}.posterior.share") == [1, 0, 0]
    assert "Mood" in browser.run("return document.querySelector('.rename').value")
    assert "with it the tree" in browser.text("#trees")
    browser.run("document.querySelector('#trees summary').click()")  # the list is folded by now
    browser.run("document.querySelector('#trees [data-key=tree2]').focus()")
    browser.type("Enter")
    assert browser.run("return document.activeElement.dataset.key") == "tree2"
    assert browser.run(f"return [{STATE}.selection, [...{STATE}.evidence]]") == [None, [[3, 1]]]
    assert "Tree 3" in browser.text("#announce")
    browser.run(
        f"{STATE}.model.names[12] = 'Else'; for (const f of {STATE}.listeners.get('names')) f()"
    )
    browser.wait("return location.hash.includes('n2=')")
    whole = embedded(browser.run("return window.latentreeExplorer.toPage()"))
    assert [part["renamed"] for part in whole["components"]] == [{"12": "Mood"}, {}, {"12": "Else"}]


def test_the_model_file_of_the_page_is_the_mixture(browser, tmp_path):
    for mixture in (discrete_mixture(), gaussian_mixture()):
        show(browser, tmp_path, mixture)
        text = browser.run("return window.latentreeExplorer.toModelFile()")
        (tmp_path / "model.json").write_text(text, "utf-8")
        found = load(tmp_path / "model.json")
        rows = mixture.sample(20, 0)
        assert found.log_likelihood(rows).tolist() == mixture.log_likelihood(rows).tolist()


# Without a browser ------------------------------------------------------------------------------


def test_what_the_trees_share_is_in_the_page_once():
    mixture = discrete_mixture()
    content = embedded(explorer_html(mixture, mixture.sample(30, 0), title="t", rows=True))
    assert {"data", "rows", "labels", "groups", "kinds", "about"} <= set(content["shared"])
    assert all("rowLists" in part and "rows" not in part for part in content["components"])
    assert content["shared"]["about"]["n_parameters"] == mixture.n_parameters
    assert content["shown"] == 0
    assert embedded(explorer_html(mixture))["title"] == "Mixture of 3 trees of 12 variables"


def test_names_for_several_trees():
    mixture = discrete_mixture()
    both = embedded(explorer_html(mixture, names={"h1": "Mood"}))
    assert both["shared"]["renamed"] == {"12": "Mood"}
    pair = [gaussian(0), gaussian(0)]
    own = [Names({"h1": "A"}), {"h2": "B"}]
    renamed = [part["renamed"] for part in embedded(explorer_html(pair, names=own))["models"]]
    assert renamed == [{"24": "A"}, {"25": "B"}]
    with pytest.raises(DataError, match="'h999'"):
        explorer_html(mixture, names={"h999": "Mood"})
    with pytest.raises(DataError, match="3 trees need as many names, not 2"):
        explorer_html(mixture, names=own)


def test_what_does_not_fit_a_mixture_is_explained(tmp_path):
    mixture = gaussian_mixture()
    with pytest.raises(ModelError, match="support is of one tree"):
        explorer_html(mixture, support=object())
    with pytest.raises(ModelError, match="component_of"):
        write_explorer([mixture, mixture], tmp_path / "two.html")


def test_two_models_show_rows(browser, tmp_path):
    models = [gaussian(3), gaussian(3)]
    show(browser, tmp_path, models, data=models[0].sample(30, 0), rows=True)
    browser.run("location.hash = 's=nh1'")
    browser.wait(f"return {STATE}.selection?.node === 24")
    browser.click_on("#details .row-box summary")
    browser.click_on("#details .row-box button", "Suppose this row")
    sizes = "return window.latentreeExplorer.panes.map(({ state }) => state.evidence.size)"
    assert browser.run(sizes) == [24, 24]

"""Every task of the page by keys alone, with a focus that is seen at each stop."""

from __future__ import annotations

import pytest
from tests.explorer.pages import discrete_mixture, downloaded, gaussian, show

STATE = "window.latentreeExplorer.state"
FOCUS = """
const element = document.activeElement;
const box = element.getBoundingClientRect();
const style = getComputedStyle(element);
const ring = style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 2;
const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
return [
  element === document.body ? "body" : element.id || element.dataset.key || element.className,
  ring || style.boxShadow !== "none",
  box.width > 4 && box.height > 4 && inside && style.visibility === "visible",
  element.matches(arguments[0]) && element.textContent.includes(arguments[1]),
];
"""
MOST_STOPS = 60


def walk_to(browser, selector: str, text: str = "") -> None:
    """Press Tab until something has the focus; it is seen at every stop."""
    stops = []
    while not stops or not stops[-1][3]:
        browser.type("Tab")
        stops.append(browser.run(FOCUS, selector, text))
        name, ring, seen, _ = stops[-1]
        assert name == "body" or (ring and seen), stops
        assert len(stops) < MOST_STOPS, [stop[0] for stop in stops]


def value(browser, what: str):
    return browser.run(f"return {what}")


@pytest.fixture
def page(browser, tmp_path):
    """A mixture: its page has every tool but those of support."""
    mixture = discrete_mixture()
    show(browser, tmp_path, mixture, groups=[f"g{v % 3}" for v in range(12)])
    browser.run("document.activeElement.blur()")
    return browser


def test_look_and_ask(page):
    walk_to(page, "#skip")
    page.type("Enter")
    assert page.run(FOCUS, "#panel", "")[1:] == [True, True, True]
    walk_to(page, "[data-key=tree1]")  # the trees come first in the panel
    page.type("Enter")
    assert value(page, f"{STATE}.mixture.number") == 1
    assert page.run(FOCUS, "[data-key=tree1]", "")[1:] == [True, True, True]
    page.type("/")
    page.type("x3", "Enter")  # a node
    assert value(page, f"{STATE}.selection.node") == 3
    assert page.run(FOCUS, "#tree", "")[1:] == [True, True, True]
    walk_to(page, ".state[data-key=state1]")
    page.type("Enter")  # evidence
    assert value(page, f"[...{STATE}.evidence]") == [[3, 1]]
    assert page.run(FOCUS, ".state[data-key=state1]", "")[1:] == [True, True, True]
    walk_to(page, "#answers .remove")
    page.type("Enter")
    assert value(page, f"{STATE}.evidence.size") == 0
    assert page.run(FOCUS, "#panel", "")[1:] == [True, True, True]
    walk_to(page, "[data-key=path]")  # a path, its end by search
    page.type("Enter", "/")
    page.type("x5", "Enter")
    assert value(page, f"{STATE}.selection.path") == [3, 5]
    walk_to(page, "#details .go", "x5")
    page.type("Enter")
    assert value(page, f"{STATE}.selection.node") == 5
    assert page.run(FOCUS, "#panel", "")[1:] == [True, True, True]


def test_name_and_fold(page):
    hidden = value(page, f"{STATE}.model.observed")
    page.type("/")
    page.type(value(page, f"{STATE}.model.names[{hidden}]"), "Enter")
    walk_to(page, ".rename")
    page.run("document.activeElement.select()")
    page.type("Mood", "Enter")
    assert value(page, f"{STATE}.model.names[{hidden}]") == "Mood"
    assert page.run(FOCUS, ".rename", "")[1:] == [True, True, True]
    walk_to(page, "[data-key=naming]")
    page.type("Enter")
    walk_to(page, "[data-key=name0]")
    page.run("document.activeElement.select()")
    page.type("low", "Enter")
    walk_to(page, "[data-key=note]")
    page.type("as in 2011", "Tab")
    assert value(page, f"{STATE}.model.labels({hidden})[0]") == "low"
    assert value(page, f"{STATE}.model.notes[{hidden}]") == "as in 2011"
    inner = page.run(
        f"const {{ tree }} = {STATE};"
        "return tree.order.find((v) => tree.parent[v] >= 0 && tree.size[v] > 1)"
    )
    page.type("/")
    page.type(value(page, f"{STATE}.model.ownNames[{inner}]"), "Enter", "f")
    assert value(page, f"{STATE}.folded[{inner}]") == 1
    walk_to(page, "[data-key=fold]")
    page.type("Enter")
    assert value(page, f"{STATE}.folded[{inner}]") == 0


def test_colors_layouts_and_what_is_taken_away(page):
    for layout in ("radial", "lengths"):
        walk_to(page, f"#{layout}")
        page.type("Enter")
        assert value(page, f"{STATE}.kind") == layout
    walk_to(page, "#list")
    page.type("Enter")
    walk_to(page, "#outline .item", "x4, variable")
    page.type("Enter", "Escape")
    assert value(page, f"{STATE}.selection.node") == 4
    assert page.run(FOCUS, "#list", "")[1:] == [True, True, True]
    walk_to(page, "#theme")
    walk_to(page, "#take summary")
    page.type("Enter")
    walk_to(page, "#copy-link")
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.type("Enter")
    page.wait("return window.copied?.includes('s=nx4')")
    walk_to(page, "#take summary")
    page.type("Enter")
    walk_to(page, "#save-csv")
    page.type("Enter")
    downloaded(page, "*posterior.csv").unlink()
    walk_to(page, "#color-by")
    page.type("Down")
    assert value(page, f"{STATE}.colorBy") == "group"
    walk_to(page, "[data-style='1']")
    page.type("Enter")
    assert value(page, f"[...{STATE}.highlight]") == [1]
    walk_to(page, "#farther")
    scale = value(page, "window.latentreeExplorer.view.scale")
    page.type("Enter")
    assert value(page, "window.latentreeExplorer.view.scale") < scale
    walk_to(page, "#divider")


def test_both_of_two_trees_are_walked(browser, tmp_path):
    show(browser, tmp_path, [gaussian(0), gaussian(1)])
    browser.run("document.activeElement.blur()")
    for pane, canvas in enumerate(("#tree", "#tree-b")):
        walk_to(browser, canvas)
        browser.type("Right")
        found = f"window.latentreeExplorer.panes[{pane}].state.selection !== null"
        assert value(browser, found)

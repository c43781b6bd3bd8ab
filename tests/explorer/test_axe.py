"""axe-core finds nothing in any page, on any screen, in either theme."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.explorer.pages import discrete, discrete_mixture, gaussian, hidden_of, mixed

import latentree as lt
from latentree.explorer import write_explorer
from latentree.support import support_from

AXE = os.environ.get("LATENTREE_AXE", "")
"""Path of axe-core's axe.min.js, as npm install axe-core brings it."""

pytestmark = pytest.mark.skipif(
    not AXE, reason="LATENTREE_AXE does not say where axe.min.js is (npm install axe-core)"
)

SCREENS = ((1440, 900), (1024, 700), (390, 844), (667, 375))
SCRIPT = """
const done = arguments[0];
axe.run({ resultTypes: ["violations"] })
  .then((found) => done(found.violations.map((one) => [one.id, one.nodes[0].html])));
"""


def one_tree(path: Path) -> list[str]:
    model = discrete(16)
    write_explorer(
        model, path, model.sample(60, 0), groups=[f"group {v % 5}" for v in range(24)],
        rows=[f"document {i} of some length" for i in range(60)],
        row_groups=[f"g{i % 3}" for i in range(60)],
        support=support_from(model.tree, [model.tree, discrete(17).tree]),
    )  # fmt: skip
    hidden = f"s=n{model.tree.names[hidden_of(model)]}"
    return ["c=probability&u=60f", "s=nx0", hidden, "s=nx2&e=x1:s0,x5:s1", "s=px1,x7", "s=ex3"]


def numbers(path: Path) -> list[str]:
    write_explorer(mixed(), path, mixed().sample(50, 0), rows=True)
    return ["s=nage&e=visits:2", "s=eage", "s=nh1&l=lengths"]


def two_trees(path: Path) -> list[str]:
    model = gaussian(16)
    write_explorer({"one": model, "two": gaussian(17)}, path, model.sample(20, 0), rows=True)
    return ["", "s=nx1&e=x0:0", f"s=n{model.tree.names[hidden_of(model)]}"]


def mixture(path: Path) -> list[str]:
    model = discrete_mixture()
    write_explorer(model, path, model.sample(40, 0), rows=True)
    return ["", "k=2&s=nx1&e=x0:s0,:2", "k=1&s=px0,x4"]


def topics(path: Path) -> list[str]:
    texts = ["ball goal team coach", "bank loan rate debt", "song band album chart"] * 40
    found = lt.topics.TopicTree(max_phrase=1, n_topics=(2, 3)).fit(texts)
    lt.write_topics(found, path, texts)
    return ["", f"t={found.topics_['topic'][0]}", "q=goal", "v=tree"]


@pytest.mark.parametrize("make", [one_tree, numbers, two_trees, mixture, topics])
def test_axe_finds_no_violations(browser, tmp_path, make):
    views = make(tmp_path / "page.html")
    key = "c" if make is topics else "t"
    found = []
    for width, height in SCREENS:
        with browser.screen(width, height, phone=width < 700):
            browser.open(tmp_path / "page.html")
            browser.run(Path(AXE).read_text("utf-8"))
            # Colors are the same on all screens: the dark ones are looked at on every second.
            for theme in ("light", "dark") if (width, height) in SCREENS[::2] else ("light",):
                for view in views:
                    browser.run("location.hash = arguments[0]", f"{view}&{key}={theme}")
                    browser.wait("return document.documentElement.dataset.theme === arguments[0]",
                                 theme)  # fmt: skip
                    browser.run(
                        "for (const box of document.querySelectorAll('details')) box.open = true"
                    )
                    browser.settle()
                    body = {"script": SCRIPT, "args": []}
                    wrong = browser._call("POST", f"{browser.session}/execute/async", body)
                    found += [(width, theme, view, *each) for each in wrong]
    assert not found, "\n".join(map(str, found))

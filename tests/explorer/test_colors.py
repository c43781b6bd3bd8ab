"""Nodes are colored by anything, and the legend lets some stand out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.explorer.pages import discrete, gaussian, show
from tests.explorer.test_payload import numbers

from latentree.errors import DataError
from latentree.explorer._payload import payload

STATE = "window.latentreeExplorer.state"
NUMBERS = f"return [...{STATE}.coloring.number]"


def choose(browser, key: str) -> None:
    browser.run(
        "const menu = document.getElementById('color-by'); menu.value = arguments[0];"
        "menu.dispatchEvent(new Event('change'))",
        key,
    )
    browser.settle()


def steps(values: np.ndarray, low: float, high: float) -> list[int]:
    """The step of five between two bounds that every value is in; −1 for none."""
    place = np.clip(np.floor((values - low) / ((high - low) / 5)), 0, 4)
    return np.where(np.isnan(values), -1, place).astype(int).tolist()


def test_colors_follow_the_numbers(browser, tmp_path):
    model, rng = gaussian(50), np.random.default_rng(0)
    rows = model.sample(100, 1)
    rows[rng.uniform(size=rows.shape) < 0.2] = np.nan
    year = {name: int(rng.integers(1900, 2000)) for name in model.schema.names[:20]}
    sort = {name: "ab"[v % 2] for v, name in enumerate(model.schema.names)}
    show(browser, tmp_path, model, data=rows, annotations={"year": year, "sort": sort})
    hidden = [-1] * model.tree.n_hidden
    choose(browser, "missing")
    share = np.isnan(rows).mean(axis=0)
    assert browser.run(NUMBERS) == steps(share, share.min(), share.max()) + hidden
    choose(browser, "a0")
    years = np.array([year.get(name, np.nan) for name in model.schema.names])
    assert browser.run(NUMBERS) == steps(years, np.nanmin(years), np.nanmax(years)) + hidden
    choose(browser, "a1")
    assert browser.run(NUMBERS) == [v % 2 for v in range(24)] + hidden
    choose(browser, "auto")
    assert browser.run(NUMBERS) == [0] * 24 + hidden
    browser.type("/")
    browser.type("x3 = +2 σ", "Enter")  # what is supposed colors by what it changes
    moved = np.array(browser.run(f"return [...{STATE}.change]"))
    others = np.abs(np.delete(moved, 3)).max()
    full = browser.run(f"return {STATE}.limits.numbers")
    assert others <= full <= 2 * others + 1e-9
    steps_away = np.searchsorted([0.05, 0.25, 0.6], np.abs(moved) / full, side="right")
    assert browser.run(NUMBERS) == (3 + np.sign(moved) * steps_away).astype(int).tolist()
    assert len(set(browser.run(NUMBERS))) > 3
    browser.click_on("#answers .clear")
    assert browser.run(NUMBERS) == [0] * 24 + hidden


def test_the_legend_lets_some_stand_out(browser, tmp_path):
    model = discrete(51)
    groups = [f"group {v % 3}" for v in range(24)]
    path = show(browser, tmp_path, model, groups=groups)
    browser.click_on("#legend button", "group 1")
    assert browser.run(f"return [...{STATE}.highlight]") == [1]
    focus = "return document.activeElement.getAttribute('aria-pressed')"
    assert browser.run(focus) == "true"  # it keeps the focus
    browser.wait("return location.hash.includes('c=auto,1')")
    link = browser.run("return location.hash")
    browser._call("POST", f"{browser.session}/url", {"url": "about:blank"})
    browser._call("POST", f"{browser.session}/url", {"url": path.resolve().as_uri() + link})
    browser.settle()
    assert browser.run(f"return [...{STATE}.highlight]") == [1]
    browser.click_on("#legend button", "group 1")
    assert browser.run(f"return {STATE}.highlight.size") == 0


def test_annotations_are_numbers_or_groups():
    model = gaussian()
    first, second = model.schema.names[:2]
    found = payload(model, "t", annotations={"n": {first: "2.5"}, "g": {second: "red"}})
    number, group = found["annotations"]
    assert numbers(number["values"])[0] == 2.5
    assert np.isnan(numbers(number["values"])[1:]).all()
    assert [style["label"] for style in group["styles"]] == ["red", "no group"]
    with pytest.raises(DataError, match="nobody"):
        payload(model, "t", annotations={"n": {"nobody": 1}})

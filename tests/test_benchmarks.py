"""Benchmarks remember ratios, compare them between versions, and the page shows what they kept."""

from __future__ import annotations

import importlib.util
import json
import runpy
from pathlib import Path
from types import ModuleType

import pytest

import latentree

ROOT = Path(__file__).parents[1]
make = runpy.run_path(str(ROOT / "docs" / "make_benchmarks.py"))


@pytest.fixture
def ratios(tmp_path, monkeypatch) -> ModuleType:
    """The module, with a folder of its own for results."""
    spec = importlib.util.spec_from_file_location("ratios", ROOT / "benchmarks" / "ratios.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def test_a_ratio_is_kept_with_what_it_was_measured_on(ratios, tmp_path):
    ratios.keep("joining, 9 variables: others", 2.0, 0.03)
    ratios.keep("scoring: one sum", 1.0, 2.0)
    ratios.write("speed", quick=True)
    found = json.loads((tmp_path / "speed.json").read_text("utf-8"))
    assert found["version"] == latentree.__version__
    assert found["ratios"] == {"joining, 9 variables: others": 66.7, "scoring: one sum": 0.5}
    assert set(found) == {"version", "date", "machine", "python", "quick", "ratios"}
    page = make["page"](tmp_path)
    assert "| joining, 9 variables | others | 66.7 |" in page
    assert f"Version {latentree.__version__}, " in page


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"a: x": 9.0}, []),
        ({"a: x": 12.0, "b: y": 1.0}, []),
        ({"a: x": 5.0}, ["speed: a: x: 2.00 × as long as in 1.0.0 (2 cores)"]),
        ({}, ["speed: a: x: is not measured any more"]),
    ],
)
def test_what_got_slower_is_said(ratios, now, said):
    before = {"version": "1.0.0", "machine": "2 cores", "quick": True, "ratios": {"a: x": 10.0}}
    assert ratios.compare("speed", before, {"quick": True, "ratios": now}) == said
    assert ratios.compare("speed", before, {"quick": False, "ratios": now}) == []


def test_results_are_compared_with_those_of_the_last_tag(ratios, tmp_path, monkeypatch, capsys):
    ratios.keep("a: x", 1.0, 1.0)
    ratios.write("speed", quick=True)
    content = json.loads((tmp_path / "speed.json").read_text("utf-8"))
    content["ratios"]["a: x"] = 3.0
    said = {"describe": "", "show": json.dumps(content)}
    monkeypatch.setattr(ratios, "_git", lambda command, *_: said[command])
    assert ratios.main() == 0
    assert "no tag" in capsys.readouterr().out
    said["describe"] = "v1.0.0\n"
    assert ratios.main() == 1
    assert "a: x: 3.00 × as long" in capsys.readouterr().out
    said["show"] = ""
    assert ratios.main() == 0
    assert "nothing got slower since v1.0.0" in capsys.readouterr().out


def test_the_page_is_what_the_results_say():
    page = (ROOT / "docs" / "evidence" / "benchmarks.md").read_text("utf-8")
    assert page == make["page"](), "run python docs/make_benchmarks.py"

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
make = runpy.run_path(str(ROOT / "docs" / "make_evidence.py"))


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
    page = make["page_of_ratios"](tmp_path)
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
    assert page == make["page_of_ratios"](), "run python docs/make_evidence.py"


@pytest.mark.parametrize("path", make["pages"](), ids=lambda path: path.stem)
def test_tables_of_evidence_are_what_was_kept(path):
    text = path.read_text("utf-8")
    assert text == make["with_tables"](text), "run python docs/make_evidence.py"


def test_figures_stand_in_tables_that_were_kept():
    """Tables of figures are made from results; the rest is words."""
    for path in sorted((ROOT / "docs" / "evidence").glob("*.md")):
        if path.stem not in ("paper", "benchmarks"):  # each made by a script of its own
            rest = make["MARKS"].sub("", path.read_text("utf-8"))
            assert "---:" not in rest, path.name


def test_a_table_is_kept_with_what_it_was_measured_with(ratios, tmp_path):
    ratios.write_table("t", ["tree", "RF", "why"], [["HMM", "**−2.5**", "x"], ["star", "–", ""]],
                       "python benchmarks/t.py --quick")  # fmt: skip
    page = "Before.\n\n<!-- table: t -->\n<!-- end of table -->\nAfter.\n"
    made = make["with_tables"](page, tmp_path / "tables")
    assert "| tree | RF | why |\n|---|---:|---|\n| HMM | **−2.5** | x |\n" in made
    assert f"*Version {latentree.__version__}, " in made
    assert "`python benchmarks/t.py --quick`" in made
    assert make["with_tables"](made, tmp_path / "tables") == made

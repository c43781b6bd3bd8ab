"""What a release needs to be true: one version, one list of commands, one style of files."""

from __future__ import annotations

import re
import runpy
import shutil
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
RELEASE = ROOT / "tests" / "release"
disagreements = runpy.run_path(str(RELEASE / "check_tag.py"))["disagreements"]


def test_version_changelog_citation_and_recipe_agree():
    assert disagreements() == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("CHANGELOG.md", r"\n## (\d[^ ]*)", "\n## 9.9.9", r"CHANGELOG\.md is '9\.9\.9 - "),
        ("CITATION.cff", r"\nversion: \S*", "\nversion: 9.9.9", r"CITATION\.cff is '9\.9\.9'"),
        ("recipe/recipe.yaml", r'  version: "[\d.]*"', '  version: "9.9.9"', r"recipe\.yaml is"),
    ],
)
def test_what_does_not_agree_is_named(tmp_path, file, old, new, said):
    for name in ("CHANGELOG.md", "CITATION.cff", "recipe/recipe.yaml", "src/latentree/_version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    text = (tmp_path / file).read_text("utf-8")
    (tmp_path / file).write_text(re.sub(old, new, text, count=1), "utf-8")
    (found,) = disagreements(root=tmp_path)
    assert re.search(said, found)
    assert "the tag is 'v0.0'" in disagreements("v0.0", tmp_path)[0]


def test_the_changelog_is_for_users():
    sections = re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]
    assert sections[0].startswith("Unreleased\n")
    assert all(section.count("\n") <= 120 for section in sections)
    assert CHANGELOG.count("Unreleased") == 1


def test_make_help_says_what_every_target_does():
    said = set(re.findall(r"^#:   ([a-z-]+) ", MAKEFILE, re.MULTILINE))
    targets = set(" ".join(re.findall(r"^\.PHONY:(.*)", MAKEFILE, re.MULTILINE)).split())
    assert said == targets - {"help"}


def test_hooks_run_the_versions_that_lint_runs():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    pins = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    for package, version in re.findall(r"\[(ruff|codespell)==([\d.]+)\]", hooks):
        assert f"\n{package}=={version}\n" in pins
    (biome,) = re.findall(r"@biomejs/biome@([\d.]+)", hooks)
    assert f"@biomejs/biome@{biome}\n" in MAKEFILE


def test_the_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["plot"], *extras["cli"]]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text("utf-8")
    run = recipe.partition("  run:\n")[2].partition("\ntests:")[0]
    listed = re.findall(r"^    - ([\w-]+) (>=[\d.]+)$", run, re.MULTILINE)
    found = {name.removesuffix("-base") + bound for name, bound in listed}
    assert found == {*needed, f"python{project['requires-python']}"}


def test_modules_that_tests_miss_are_named():
    check = runpy.run_path(str(RELEASE / "check_coverage.py"))["check"]

    def file(percent: float, missing: list[int]) -> dict:
        summary = {"percent_covered": percent, "missing_lines": len(missing)}
        return {"summary": summary, "missing_lines": missing}

    files = {
        "src/latentree/_full.py": file(100.0, []),
        "src/latentree/_half.py": file(50.0, [3, 4, 5, 9]),
        "src/latentree/_worse.py": file(60.0, [1, 2, 3, 4, 5, 6]),
    }
    assert check({"totals": {"percent_covered": 95.0}, "files": files}) == []
    assert check({"totals": {"percent_covered": 94.9}, "files": files}) == [
        " 60.0 %  latentree/_worse.py: lines 1-6",
        " 50.0 %  latentree/_half.py: lines 3-5, 9",
    ]

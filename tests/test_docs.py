"""Everything the documentation shows is run, and what it says is printed must be printed.

The blocks of a page share one namespace and one temporary folder:

- ``python`` blocks are executed; a ``text`` block right below one is what it prints, numbers to
  within one in a hundred;
- in ``sh`` blocks, lines that start with ``latentree`` are run by the command line's own ``main``;
- ``console``, ``json`` and ``{eval-rst}`` blocks are only read. Other kinds are refused, so that
  no block goes untested by a typing error.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import math
import os
import pkgutil
import re
import runpy
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import latentree

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
KINDS = {"python", "sh", "text", "console", "json", "{eval-rst}", "{toctree}"}
TOLERANCE = 0.01
MOST_BYTES = 200_000


def name_of(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")


class Block(NamedTuple):
    kind: str
    code: str
    line: int
    """Number of its first line of code in the page, from 1."""
    follows: bool
    """Whether only blank lines are between it and the block before."""


def blocks_of(text: str) -> Iterator[Block]:
    """Fenced blocks of a page, in order."""
    lines = text.splitlines()
    start, kind, ended = None, "", None
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("```"):
            continue
        if start is None:
            start, kind = number, line.strip().strip("`").split(" ")[0]
            continue
        between = None if ended is None else lines[ended + 1 : start]
        follows = between is not None and not any(between)
        yield Block(kind, "\n".join(lines[start + 1 : number]), start + 2, follows)
        start, ended = None, number
    assert start is None, f"the block that opens in line {(start or 0) + 1} is not closed"


class Runner:
    """Runs the blocks of one page."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed: str | None = None

    def run(self, block: Block) -> None:
        where = f"{self.name}:{block.line}"
        assert block.kind in KINDS, f"{where}: a block of kind {block.kind!r}, not of {KINDS}"
        if block.kind == "text" and block.follows and self.printed is not None:
            difference = compare(block.code, self.printed)
            assert difference is None, f"{where}: {difference}; it printed\n{self.printed}"
        self.printed = self._python(block) if block.kind == "python" else None
        if block.kind == "sh":
            for command in commands_of(block.code):
                run_command(command, where)

    def _python(self, block: Block) -> str:
        tree = ast.parse(block.code, self.name)
        ast.increment_lineno(tree, block.line - 1)  # tracebacks point into the page
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(tree, self.name, "exec"), self.names)
        return out.getvalue()


def compare(expected: str, printed: str) -> str | None:
    """What differs between two texts; numbers may differ a little, spaces at will."""
    shown, found = NUMBER.sub("#", expected).split(), NUMBER.sub("#", printed).split()
    for a, b in zip(shown, found, strict=False):
        if a != b:
            return f"the page has {a!r} where {b!r} is printed"
    if len(shown) != len(found):
        return f"the page has {len(shown)} words, but {len(found)} are printed"
    for a, b in zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True):
        last_digit = 10.0 ** -len(a.partition(".")[2])
        if not math.isclose(number(a), number(b), rel_tol=TOLERANCE, abs_tol=1.01 * last_digit):
            return f"the page has {a}, but {b} is printed"
    return None


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def commands_of(code: str) -> list[str]:
    """Commands of latentree in a block of shell lines."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in map(str.strip, lines) if line.split(" ")[0] == "latentree"]


def run_command(command: str, where: str) -> None:
    if importlib.util.find_spec("latentree.cli") is None:
        pytest.skip(f"{where}: there is no latentree.cli")
    pytest.importorskip("typer", reason="the extra cli is not installed")
    from latentree.cli import main

    words = shlex.split(command)
    assert not {"|", ">", "<", "&&"} & set(words), f"{where}: plain commands only, not {command}"
    errors, code = io.StringIO(), None
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = main(words[1:])
        except SystemExit as end:
            code = end.code
    assert code in (None, 0), f"{where}: {command} ended with {code}\n{errors.getvalue()}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder to be in, with pictures drawn on no screen."""
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    matplotlib.use("Agg")
    yield tmp_path
    importlib.import_module("matplotlib.pyplot").close("all")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_runs(page: Path, folder: Path) -> None:
    runner = Runner(str(page.relative_to(ROOT)))
    for block in blocks_of(page.read_text("utf-8")):
        if "LATENTREE_DATA" in block.code and not os.environ.get("LATENTREE_DATA"):
            break  # of data that is not bundled; such blocks come last
        runner.run(block)


# What holds between pages -----------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            file = target.partition("#")[0]
            built = (page.parent / file).with_suffix(".rst")
            assert (page.parent / file).exists() or built.exists(), f"{page.name}: {target}"


def test_every_page_is_in_the_contents() -> None:
    listed = set()
    for block in blocks_of((DOCS / "index.md").read_text("utf-8")):
        if block.kind == "{toctree}":
            listed |= {line.strip() for line in block.code.splitlines() if line[:1] not in ":"}
    pages = {str(p.relative_to(DOCS).with_suffix("")) for p in DOCS.rglob("*.md")} - {"index"}
    assert pages <= listed
    assert all(any(DOCS.glob(f"{name}.*")) for name in listed - {""})


def test_reference_has_every_public_name() -> None:
    text = (DOCS / "reference" / "functions.rst").read_text("utf-8")
    documented = re.findall(r"^\.\. auto\w+:: ([\w.]+)", text, re.MULTILINE)
    shown = {id(pkgutil.resolve_name(name)) for name in documented}
    missing = [name for name in latentree.__all__ if id(getattr(latentree, name)) not in shown]
    assert missing == []


def test_the_architecture_has_the_layers_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c["name"].startswith("Layers"))
    checked = [set(re.findall(r"latentree\.(\w+)", row)) for row in reversed(layers)]
    rows = re.findall(
        r"^\| \d \|([^|]*)\|", (DOCS / "contribute" / "architecture.md").read_text("utf-8"), re.M
    )
    shown = [set(re.findall(r"`(\w+)`", row)) for row in rows]
    helpers = {name for name in checked[0] if name.startswith("_")} - {"_kernels"}
    assert shown == [checked[0] - helpers, *checked[1:]]


def test_the_tables_of_methods_and_options_are_those_of_the_registry() -> None:
    make = runpy.run_path(str(DOCS / "make_tables.py"))
    page = make["PAGE"].read_text("utf-8")
    assert make["between_markers"](page) == f"\n{make['tables']()}\n", (
        "run python docs/make_tables.py"
    )
    names = re.findall(r"^\| `(\w+)` \|", make["tables"](), re.MULTILINE)
    assert names == [*latentree.methods.METHODS, *latentree.methods.OPTIONS]
    stale = page.replace("`prior_weight`", "`prior`")
    assert make["with_tables"](stale) == page


def test_the_page_of_the_command_line_is_that_of_the_commands() -> None:
    make = runpy.run_path(str(DOCS / "make_commands.py"))
    assert make["PAGE"].read_text("utf-8") == make["page"](), "run python docs/make_commands.py"


# What readers need ------------------------------------------------------------------------------

FOLDERS = ("start", "howto", "understand", "reference", "evidence", "contribute")
MOST_WORDS = 1_200
MOST_CHARACTERS = 100
MEASURED = re.compile(
    r"\d[\d.,]*\s?(?:s|ms|seconds?|minutes?|min|hours?|h|nats?|GB of memory|MB of memory)\b(?!-)"
    r"|\b(?:BIC|score|likelihood|distance|divergence|accuracy|NPMI|R²)s?"
    r"(?: \w+){0,3} [-−+]?\d[\d,]*\.?\d*"
)
"""A number of seconds or nats, or a score, a distance or the like with its number."""


def folder_of(page: Path) -> str:
    """The folder of a page below docs, which says its kind; nothing for pages above it."""
    parts = page.relative_to(ROOT).parts
    return parts[1] if parts[0] == "docs" and len(parts) > 2 else ""


def prose_of(page: Path) -> str:
    """A page without its code, its tables and the names in back quotes."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("|"))
    return re.sub(r"`[^`]*`", "`…`", "\n".join(lines))


def sentences_that_measure(prose: str) -> list[str]:
    """Sentences with a number of seconds, a score or a distance."""
    sentences = re.split(r"(?<=[.:;])\s+", " ".join(prose.split()))
    return [sentence for sentence in sentences if MEASURED.search(sentence)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_is_in_a_folder_that_says_its_kind(page: Path) -> None:
    assert folder_of(page) in ("", *FOLDERS)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_to_read_are_short(page: Path) -> None:
    if folder_of(page) in ("start", "howto", "understand"):
        assert len(page.read_text("utf-8").split()) <= MOST_WORDS
    if page.name == "README.md":
        assert len(page.read_text("utf-8").splitlines()) <= 160


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name_of
)
def test_lines_are_short_outside_tables_pictures_and_code(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "!["))]
    assert [line for line in lines if len(line) > MOST_CHARACTERS] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_was_measured_stands_under_evidence(page: Path) -> None:
    if folder_of(page) in ("start", "howto", "understand"):
        assert sentences_that_measure(prose_of(page)) == []


@pytest.mark.parametrize(
    ("sentence", "is_found"),
    [
        ("It took 12 s on two cores.", True),
        ("The mean distance is 2.4 here.", True),
        ("BIC ended at −22,083.", True),
        ("The search took 1.5 nats per row.", True),
        ("A length of 0.1 is a correlation of 0.9.", False),
        ("Take 12 months at a time.", False),
    ],
)
def test_measurements_are_recognized(sentence: str, is_found: bool) -> None:
    assert bool(sentences_that_measure(sentence)) == is_found


@pytest.mark.parametrize("page", sorted(DOCS.glob("howto/*.md")), ids=name_of)
def test_tasks_begin_with_what_you_have_and_end_with_what_you_get(page: Path) -> None:
    parts = page.read_text("utf-8").split("\n\n")
    assert parts[1].startswith("**You have** ")
    assert "## What you get" in parts
    assert parts[parts.index("## What you get") + 1].startswith("**You get** ")


def test_pages_that_explain_have_a_picture() -> None:
    for page in DOCS.glob("understand/*.md"):
        assert "](../images/" in page.read_text("utf-8"), page.name


def test_the_gallery_has_twelve_tables() -> None:
    text = (DOCS / "gallery.md").read_text("utf-8")
    tables = re.split(r"^## ", text, flags=re.MULTILINE)[2:]  # the first says how it is made
    assert len(tables) == 12
    for table in tables:
        title = table.splitlines()[0]
        assert "![" in table, f"{title}: no picture"
        assert 'href="gallery/' in table, f"{title}: no page"
        assert "```python" in table, f"{title}: no code"
        assert "License:" in table, f"{title}: no license"


def test_pictures_are_small() -> None:
    pictures = [p for p in (DOCS / "images").rglob("*") if p.suffix in (".svg", ".png")]
    assert len(pictures) >= 2
    for picture in pictures:
        assert 1_000 < picture.stat().st_size < MOST_BYTES, picture.name


# The runner itself ------------------------------------------------------------------------------


def run_text(text: str) -> None:
    runner = Runner("page.md")
    for block in blocks_of(text):
        runner.run(block)


def test_blocks_share_names_and_folder(folder: Path) -> None:
    run_text("```python\na = 2\nopen('f', 'w').close()\n```\n\n```python\nassert a == 2\n```\n")
    assert (folder / "f").exists()


def test_a_broken_block_is_found_in_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_text("# Title\n\n```python\na = 0\n1 / a\n```\n")
    assert caught.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize(
    ("shown", "fine"),
    [
        ("score 12.34", True),
        ("score  12.40", True),
        ("score 12.60", False),
        ("score 0.0", False),
        ("Score 12.34", False),
        ("score 12.34 and more", False),
        ("", False),
    ],
)
def test_what_is_shown_is_compared(shown: str, fine: bool) -> None:
    text = f"```python\nprint('score 12.34')\n```\n\n```text\n{shown}\n```\n"
    if fine:
        run_text(text)
    else:
        with pytest.raises(AssertionError, match=r"page\.md"):
            run_text(text)


def test_text_after_prose_is_not_output() -> None:
    run_text("```python\nprint(1)\n```\nAs a file:\n```text\n2\n```\n")


@pytest.mark.parametrize("text", ["```\n1\n```\n", "```pyton\n1\n```\n", "```python\n1\n"])
def test_other_blocks_are_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        run_text(text)


def test_commands_are_found() -> None:
    code = "pip install latentree\nlatentree learn a.csv \\\n  --method nj\n# latentree plot\n"
    assert commands_of(code) == ["latentree learn a.csv    --method nj"]

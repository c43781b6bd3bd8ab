"""Write what benchmarks kept in ``benchmarks/results`` into the pages under ``docs/evidence``.

The page of ratios is made whole. Other pages have their own words, and marks between which a table
is put:

    <!-- table: support-large -->
    <!-- end of table -->
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
EVIDENCE = Path(__file__).parent / "evidence"
RATIOS = EVIDENCE / "benchmarks.md"

HEAD = """# Benchmarks

Each line compares latentree with a yardstick: another library, the same computation in NumPy, or
one sum of the table. The number says how many times as long the yardstick takes in the same run,
so it holds for other machines, too: larger is better, and below 1 the yardstick is faster. `make
bench` measures again and writes this page, and `make bench-compare` says what got slower since the
last tag. Each table was measured with one version, on one machine, on one day.
"""
MARKS = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def page_of_ratios(folder: Path = RESULTS) -> str:
    """Return the page of ratios in Markdown: a table for each file."""
    sections = [_section(path) for path in sorted(folder.glob("*.json"))]
    return "\n".join([HEAD, *(sections or ["No version has been measured so far.\n"])])


def _section(path: Path) -> str:
    content = json.loads(path.read_text("utf-8"))
    size = "small sizes" if content["quick"] else "full sizes"
    rows = "".join(f"| {_row(*item)} |\n" for item in content["ratios"].items())
    return (
        f"## {path.stem}\n\n"
        f"Version {content['version']}, {content['machine']}, Python {content['python']}, "
        f"{content['date']}, {size}: `benchmarks/{path.stem}.py`.\n\n"
        f"| what | yardstick | × as long |\n|---|---|---:|\n{rows}"
    )


def _row(what: str, ratio: float) -> str:
    task, _, yardstick = what.rpartition(": ")
    shown = f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"
    return f"{task} | {yardstick} | {shown}"


def with_tables(text: str, folder: Path = RESULTS / "tables") -> str:
    """Return a page with what was kept between its marks."""

    def filled(match: re.Match[str]) -> str:
        content = json.loads((folder / f"{match[2]}.json").read_text("utf-8"))
        return f"{match[1]}\n{_table(content)}\n{_origin(content)}\n\n{match[3]}"

    return MARKS.sub(filled, text)


def _table(content: dict) -> str:
    columns = content["columns"]
    rules = ["---:" if i in content["numbers"] else "---" for i in range(len(columns))]
    lines = [f"| {' | '.join(cells)} |\n" for cells in (columns, *content["rows"])]
    return "".join([lines[0], f"|{'|'.join(rules)}|\n", *lines[1:]])


def _origin(content: dict) -> str:
    """Say what a table was measured with."""
    if content["command"] is None:
        return "*Measured before version 1.0.*"
    where = f"Version {content['version']}, {content['machine']}, {content['date']}"
    return f"*{where}:*\n`{content['command']}`"


def pages() -> list[Path]:
    """Return the pages with marks."""
    return [page for page in sorted(EVIDENCE.glob("*.md")) if MARKS.search(page.read_text("utf-8"))]


if __name__ == "__main__":
    RATIOS.write_text(page_of_ratios(), "utf-8")
    for page in pages():
        page.write_text(with_tables(page.read_text("utf-8")), "utf-8")

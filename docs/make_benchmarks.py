"""Write ``docs/evidence/benchmarks.md`` from what is kept in ``benchmarks/results``."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = Path(__file__).parent / "evidence" / "benchmarks.md"

HEAD = """# Benchmarks

How many times as long as latentree something takes that others know: another library, the
same in NumPy, one sum of the table. Both are measured in the same run, so that a number holds for
other machines too: larger is better, and below 1 the yardstick is quicker. `make bench` measures
again and writes this page, and `make bench-compare` says what got slower since the last tag.
Each table is of one version, on one machine, of one day.
"""


def page(folder: Path = RESULTS) -> str:
    """Return the page in Markdown: a table for each file."""
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


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

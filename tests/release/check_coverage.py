"""Say which modules have too few lines that tests run, after ``make coverage`` has measured them.

    python tests/release/check_coverage.py build/coverage/report.json

Below the limit in all, the exit code is 1 and the modules with most lines that nothing runs are
listed. Kernels count only as far as tests run them as Python: what runs compiled is not seen.
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LIMIT = 95.0
"""Percent of the lines of all modules."""

SHOWN = 20


def check(report: dict[str, Any], limit: float = LIMIT) -> list[str]:
    """Return a line for each module to look at, none if enough is covered."""
    if report["totals"]["percent_covered"] >= limit:
        return []
    files = {
        Path(name).as_posix().partition("src/")[2] or name: file
        for name, file in report["files"].items()
        if file["summary"]["percent_covered"] < limit
    }
    worst = sorted(files, key=lambda name: -files[name]["summary"]["missing_lines"])[:SHOWN]
    return [
        f"{files[name]['summary']['percent_covered']:5.1f} %  {name}: lines "
        f"{_ranges(files[name]['missing_lines'])}"
        for name in worst
    ]


def _ranges(numbers: list[int]) -> str:
    """Write line numbers as ranges.

    >>> _ranges([1, 2, 3, 7])
    '1-3, 7'
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)


if __name__ == "__main__":
    content = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    lines = check(content)
    print(f"{content['totals']['percent_covered']:.1f} % of the lines are run by tests")
    print("\n".join(lines))
    sys.exit(bool(lines))

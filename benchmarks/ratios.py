"""What benchmarks remember: ratios in ``results``, compared between versions, and tables.

    python benchmarks/ratios.py        what got slower since the last tag

A ratio is the time of a yardstick, measured in the same run on the same machine, divided by ours:
the larger the better, and nearly the same on a machine that is twice as fast.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import latentree

RESULTS = Path(__file__).parent / "results"
NOISE = 1.25
"""Ratios of two runs on a quiet machine differ by up to this factor."""

_ratios: dict[str, float] = {}


def keep(what: str, yardstick: float, ours: float) -> None:
    """Remember how many times as long a yardstick takes as we do."""
    _ratios[what] = yardstick / ours


def write(name: str, quick: bool) -> None:
    """Write what was kept into ``results/<name>.json``."""
    content = {
        **_circumstances(),
        "python": platform.python_version(),
        "quick": quick,
        "ratios": {what: float(f"{ratio:.3g}") for what, ratio in _ratios.items()},
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", "utf-8")


def write_table(name: str, columns: list[str], rows: list[list[str]], command: str) -> None:
    """Write a table into ``results/tables/<name>.json``, for a page of evidence.

    The smaller the change, the smaller the difference in version control: a row is a line.
    """
    is_number = [all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    fields = {
        **_circumstances(),
        "command": command,
        "columns": columns,
        "numbers": [i for i, yes in enumerate(is_number) if yes],
    }
    head = "".join(f"{json.dumps(key)}: {_json(value)},\n" for key, value in fields.items())
    body = ",\n".join(map(_json, rows))
    path = RESULTS / "tables" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{\n{head}"rows": [\n{body}\n]\n}}\n', "utf-8")


def _circumstances() -> dict[str, str]:
    """Return what a result depends on: version, date and machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "version": latentree.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{cores} cores, {platform.machine()}",
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_number(cell: str) -> bool:
    """Whether a cell is to stand at the right: a number, perhaps with a unit, or none."""
    return not cell or cell.strip("*+-−–.").lstrip("<≤ ")[:1].isdigit() or cell == "–"


def compare(name: str, before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Say what takes longer now, beyond noise, and what is measured no more."""
    if before["quick"] != now["quick"]:
        return []  # other sizes
    lines = []
    for what, old in before["ratios"].items():
        new = now["ratios"].get(what)
        if new is None:
            lines.append(f"{name}: {what}: is not measured any more")
        elif new * NOISE < old:
            since = f"{before['version']} ({before['machine']})"
            lines.append(f"{name}: {what}: {old / new:.2f} × as long as in {since}")
    return lines


def main() -> int:
    """Compare all results with those of the last tag; exit code 1 says that something is slower."""
    tag = _git("describe", "--tags", "--abbrev=0").strip()
    if not tag:
        print("there is no tag to compare with")
        return 0
    lines = []
    for path in sorted(RESULTS.glob("*.json")):
        before = _git("show", f"{tag}:benchmarks/results/{path.name}")
        if before:
            now = json.loads(path.read_text("utf-8"))
            lines += compare(path.stem, json.loads(before), now)
    print("\n".join(lines) or f"nothing got slower since {tag}")
    return int(bool(lines))


def _git(*arguments: str) -> str:
    """Return what git says, or nothing where it fails."""
    command = ["git", "-C", str(RESULTS.parent), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())

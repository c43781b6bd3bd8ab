"""The page: every number in it comes from kept results, or is quoted as published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.report import complexity, consistency, discrete, newsgroups, stocks, synthetic
from experiments.report.writing import Figures, wrapped
from experiments.results import Store

TITLES = {
    "synthetic": "Three trees, Gaussian samples",
    "discrete": "The same trees, discrete samples",
    "consistency": "How many samples a tree takes",
    "complexity": "How running time grows",
    "stocks": "Monthly stock returns",
    "newsgroups": "Newsgroups",
}
"""Sections in order."""

HEAD = """\
# The paper's experiments

Section 7 of M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky, "Learning latent tree
graphical models" (*JMLR* 12, 2011), run again with latentree: ours beside the published figures,
and beside what the authors' MATLAB program gives today under GNU Octave. This page is written by

```console
$ make paper                      # about half an hour on two cores; an interrupted run goes on
$ make paper PAPER='--runs 500'   # more runs; by default as many as the paper's 200, for 20 minutes
```

from measured results alone; the code is in `experiments/`. Times are processor seconds of one
thread, compiled beforehand. Other work ran on the machine, so read them as orders of magnitude, not
as a benchmark."""


def write_page(store: Store, plan: Any, page: Path) -> None:
    """Write the page and its pictures from what the store holds."""
    figures = Figures(page.parent.parent / "images" / page.stem)
    known = {name: store.known(units) for name, units in plan.units.items()}
    sections: dict[str, Callable[[], str]] = {
        "synthetic": lambda: synthetic.section(known["synthetic"], known["judge"], figures),
        "discrete": lambda: discrete.section(known["discrete"], known["synthetic"], figures),
        "consistency": lambda: consistency.section(known["consistency"], figures),
        "complexity": lambda: complexity.section(known["complexity"], figures),
        "stocks": lambda: stocks.section(known["stocks"], figures),
        "newsgroups": lambda: newsgroups.section(known["newsgroups"], figures),
    }
    parts = [HEAD]
    for name, write in sections.items():
        parts.append(write() if known.get(name) else _missing(name, plan.missing.get(name)))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(wrapped("\n\n".join(parts)) + "\n", "utf-8")


def _missing(name: str, reason: str | None) -> str:
    why = "it was not measured" if reason is None else reason
    return f"## {TITLES[name]}\n\nThis section is left out: {why}."

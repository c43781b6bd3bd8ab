"""Numbers, tables and pictures of the page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from PIL import Image

COLORS = {
    "rg": "#CC6677", "nj": "#B8860B", "clrg": "#332288", "clnj": "#2A9D8F", "chow_liu": "#6C757D",
    "cl_blind": "#882255", "lcm": "#AA4499", "bin": "#999933", "reg_clnj": "#88CCEE",
    "reg_clrg": "#117733",
}  # fmt: skip
MARKERS = {"rg": "o", "nj": "s", "clrg": "D", "clnj": "^", "chow_liu": "v", "cl_blind": "P"}
INK, GRID, OURS, PAPER, AUTHORS = "#2B2F36", "#E3E6EA", "#35506B", "#C0392B", "#DDB94A"
STYLE = {
    "axes.axisbelow": True, "axes.edgecolor": "#8A939C", "axes.grid": True, "axes.labelcolor": INK,
    "axes.labelsize": 9, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlecolor": INK, "font.size": 9,
    "grid.color": GRID, "grid.linewidth": 0.6, "legend.fontsize": 9, "legend.frameon": False,
    "text.color": INK, "xtick.color": INK,
    "xtick.labelsize": 8, "ytick.color": INK, "ytick.labelsize": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """Where pictures go."""

    folder: Path

    def new(self, *args: Any, **options: Any) -> Any:
        """Return a figure and its axes, in the style of the page."""
        mpl.use("Agg")
        mpl.rcParams.update(STYLE)
        return plt.subplots(*args, layout="constrained", **options)

    def save(self, figure: Any, name: str, text: str) -> str:
        """Write a picture in few colors, and return the line that shows it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{name}.png"
        # Without the version, the same picture has the same bytes.
        figure.savefig(
            file, bbox_inches="tight", pad_inches=0.08, dpi=150, metadata={"Software": None}
        )
        plt.close(figure)
        with Image.open(file) as picture:
            few = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.save(file, optimize=True)
        return f"![{text}](../images/{self.folder.name}/{file.name})"


# Text -------------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 0, sign: bool = False) -> str:
    """Write a number with thousands apart and a true minus; a dash for none."""
    if value is None:
        return "–"
    text = f"{value:{'+' if sign else ''},.{digits}f}".replace("-", "−")
    return text.replace("−0", "0") if float(f"{value:.{digits}f}") == 0 else text


def significant(value: float, digits: int = 2) -> str:
    """Write a small number with so many significant digits, never in powers of ten."""
    rounded = float(f"{value:.{digits}g}")
    return np.format_float_positional(rounded, trim="-").replace("-", "−")


def seconds(value: float | None) -> str:
    """Write a time with as many digits as it deserves."""
    if value is None:
        return "–"
    return number(value, 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table in Markdown, the first columns to the left and the others to the right."""
    rule = ["---" if i < left else "---:" for i in range(len(header))]
    lines = [header, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def folded(title: str, content: str) -> str:
    """Return what opens on a click."""
    return f"<details>\n<summary>{title}</summary>\n\n{content}\n\n</details>"


def listed(items: Sequence[str], none: str = "none") -> str:
    """Join in words."""
    if len(items) < 2:
        return items[0] if items else none
    return ", ".join(items[:-1]) + " and " + items[-1]


def bold_best(cells: Sequence[str], values: Sequence[float]) -> list[str]:
    """Mark the cell of the largest value."""
    best = max(values)
    return [f"**{c}**" if v == best else c for c, v in zip(cells, values, strict=True)]


def wrapped(text: str) -> str:
    """Break the lines of paragraphs; tables, headings, pictures and blocks stay as they are."""
    out, inside = [], False
    for block in text.split("\n\n"):
        fences = block.count("```")
        plain = not inside and not fences and block[:1] not in "#|!<"
        out.append(textwrap.fill(" ".join(block.split()), 99, **_WRAP) if plain else block)
        inside ^= fences % 2 == 1
    return "\n\n".join(out)


_WRAP: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}

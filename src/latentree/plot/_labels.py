"""Labels that do not overlap: their sizes, the scale that fits them, and the space they take."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from latentree.errors import import_extra
from latentree.typing import FloatArray

Cell = tuple[int, int]

LONGEST = 48
"""Characters of a line of a label; what is left out of longer names is an ellipsis."""

MOST_LINES = 4
"""Lines of a wrapped label."""

LINE = 1.22
"""Height that a label needs, in units of its font size."""

LARGEST, SMALLEST = 9.0, 3.0
"""Font sizes in points: no larger than this, and rather no label than a smaller one."""


def shown(names: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Names on one line and of bearable length; those that begin alike keep their ends too."""
    flat = [" ".join(name.split()) for name in names]
    cut = [text if len(text) <= longest else text[: longest - 1] + "…" for text in flat]
    alike = {text for text, uses in Counter(cut).items() if uses > 1}
    tail = longest // 3
    return [
        short if len(text) <= longest or short not in alike
        else f"{text[: longest - tail - 1]}…{text[-tail:]}"
        for text, short in zip(flat, cut, strict=True)
    ]  # fmt: skip


def wrapped(names: Sequence[str], width: int | None) -> list[str]:
    """Names as they are written, with lines of at most so many characters."""
    if width is None:
        return shown(names)
    most = MOST_LINES * width
    return [
        "\n".join(textwrap.wrap(name, width, max_lines=MOST_LINES, placeholder="…"))
        for name in shown(names, most)
    ]


def n_lines(texts: Sequence[str]) -> int:
    """Lines of the text that has most."""
    return max((text.count("\n") + 1 for text in texts), default=1)


def text_widths(texts: Sequence[str]) -> FloatArray:
    """Widths of texts, of their longest lines, in units of the font size."""
    return np.array(
        [max(sum(map(_advance, line)) for line in text.split("\n")) for text in texts], np.float64
    )


@lru_cache(maxsize=4096)
def _advance(character: str) -> float:
    """Width of one character of the default font, in units of its size."""
    textpath = import_extra("matplotlib.textpath", "plot")
    fonts = import_extra("matplotlib.font_manager", "plot")
    font = fonts.FontProperties(size=100.0)
    measure = textpath.text_to_path.get_text_width_height_descent
    width: float = measure(character, font, False)[0] / 100.0
    # Blanks have no ink; side bearings are not ink either.
    return max(width, 0.3) + 0.06


class LetterSizes(NamedTuple):
    """Font sizes in points: of labels, and the least of any other text."""

    smallest: float = SMALLEST
    largest: float = LARGEST
    least: float = 0.0


FREE = LetterSizes()
JOURNAL = LetterSizes(5.0, 7.0, 5.0)
"""Of Nature: text has 5 to 7 points."""


def font_size(unit: float, lines: int = 1, letters: LetterSizes = FREE) -> float:
    """Font size where each label, of so many lines, has ``unit`` points across."""
    return float(np.clip(unit / (LINE * lines), letters.smallest, letters.largest))


def fit(extent_at: Callable[[float], tuple[float, float]], room: tuple[float, float]) -> float:
    """Return the largest scale at which ``extent_at(scale)`` = (width, height) fits; 0 if none.

    By bisection: 60 halvings leave nothing but rounding.
    """
    low, high = 0.0, 10.0 * max(room)
    for _ in range(60):
        middle = (low + high) / 2
        width, height = extent_at(middle)
        if width <= room[0] and height <= room[1]:
            low = middle
        else:
            high = middle
    return low


def wordings(name: str, joined_by: str) -> list[str]:
    """A name, and what is left of it when its last words are left out."""
    words = name.split(joined_by)
    return [name, *(f"{joined_by.join(words[:n])} …" for n in range(len(words) - 1, 0, -1))]


class EdgeCurves:
    """Lines that labels should keep off.

    Parameters
    ----------
    paths : array of shape (n_lines, n_points, 2)
    """

    def __init__(self, paths: FloatArray) -> None:
        self._paths = paths
        self._low, self._high = paths.min(axis=1), paths.max(axis=1)

    def crossing(self, center: FloatArray, half: FloatArray, angle: float) -> int:
        """Number of lines that run through a rectangle."""
        reach = float(np.hypot(*half))
        near = ((self._low <= center + reach) & (self._high >= center - reach)).all(axis=1)
        # In the coordinates of the rectangle, which is upright around 0 there.
        cos, sin = np.cos(angle), np.sin(angle)
        own = (self._paths[near] - center) @ np.array([[cos, -sin], [sin, cos]])
        start, step = own[:, :-1], np.diff(own, axis=1)
        # Where each piece of a line is within the rectangle along one side, as shares of the piece.
        step = np.where(step == 0.0, 1e-300, step)
        enter, leave = np.sort([(-half - start) / step, (half - start) / step], axis=0)
        first, last = enter.max(axis=2), leave.min(axis=2)
        inside = (first <= last) & (first <= 1.0) & (last >= 0.0)
        return int(inside.any(axis=1).sum())


class OccupiedBoxes:
    """Rectangles, turned as they like, that must not overlap.

    A grid of cells tells which of those taken are near, so that a look costs the same however many
    there are.
    """

    def __init__(self, capacity: int, cell: float) -> None:
        self._center = np.empty((capacity, 2))
        self._half = np.empty((capacity, 2))
        self._axis = np.empty((capacity, 2))
        self._count = 0
        self._cell = max(cell, 1e-6)
        self._grid: dict[tuple[int, int], list[int]] = {}

    def add(self, center: FloatArray, half: FloatArray, angle: float) -> None:
        """Take a rectangle: its center, half its width and height, and its turn."""
        i = self._count
        self._center[i], self._half[i] = center, half
        self._axis[i] = np.cos(angle), np.sin(angle)
        self._count += 1
        for cell in self._cells(center, half, angle):
            self._grid.setdefault(cell, []).append(i)

    def _cells(self, center: FloatArray, half: FloatArray, angle: float) -> Iterator[Cell]:
        """Cells that the upright box around a rectangle touches."""
        cos, sin = abs(math.cos(angle)), abs(math.sin(angle))
        x, y = float(center[0]), float(center[1])
        w, h = float(half[0]), float(half[1])
        reach_x, reach_y = w * cos + h * sin, w * sin + h * cos
        rows = range(int((y - reach_y) // self._cell), int((y + reach_y) // self._cell) + 1)
        for i in range(int((x - reach_x) // self._cell), int((x + reach_x) // self._cell) + 1):
            for j in rows:
                yield i, j

    def is_free(self, center: FloatArray, half: FloatArray, angle: float) -> bool:
        """Whether a rectangle overlaps none of those taken (by the separating axis theorem)."""
        cells = self._cells(center, half, angle)
        near = sorted({i for cell in cells for i in self._grid.get(cell, ())})
        if not near:
            return True
        offset, halves, axes = self._center[near] - center, self._half[near], self._axis[near]
        own = np.array([np.cos(angle), np.sin(angle)])
        cos = np.abs(axes @ own)
        sin = np.abs(axes[:, 0] * own[1] - axes[:, 1] * own[0])
        apart = np.zeros(len(offset), bool)
        across = np.array([-own[1], own[0]])
        for k, direction in enumerate((own, across)):  # along the sides of the new rectangle
            other = halves[:, k] * cos + halves[:, 1 - k] * sin
            apart |= np.abs(offset @ direction) >= half[k] + other
        turned = np.stack([-axes[:, 1], axes[:, 0]], axis=1)
        for k, directions in enumerate((axes, turned)):  # and along those of the others
            other = half[k] * cos + half[1 - k] * sin
            apart |= np.abs((offset * directions).sum(axis=1)) >= halves[:, k] + other
        return bool(apart.all())

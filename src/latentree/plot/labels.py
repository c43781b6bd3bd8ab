"""Text that does not collide: sizes of labels, the scale that fits them, and who must go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from latentree.errors import import_extra
from latentree.tree.build import FloatArray

LONGEST = 28
"""Characters of a label; longer names end in an ellipsis."""

LINE = 1.22
"""Height that a label needs, in units of its font size."""

LARGEST, SMALLEST = 9.0, 3.0
"""Font sizes in points: no larger than this, and rather no label than a smaller one."""


def shown(name: str) -> str:
    """A name on one line and of bearable length."""
    flat = " ".join(name.split())
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"


def text_widths(texts: Sequence[str]) -> FloatArray:
    """Widths of texts in units of the font size."""
    return np.array([sum(map(_advance, text)) for text in texts], np.float64)


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


def font_size(unit: float) -> float:
    """Font size where each label has ``unit`` points across."""
    return float(np.clip(unit / LINE, SMALLEST, LARGEST))


def fit(extent_at: Any, room: tuple[float, float]) -> float:
    """Return the largest scale at which ``extent_at(scale)`` = (width, height) fits; 0 if none."""
    low, high = 0.0, 10.0 * max(room)
    for _ in range(60):
        middle = (low + high) / 2
        width, height = extent_at(middle)
        if width <= room[0] and height <= room[1]:
            low = middle
        else:
            high = middle
    return low


class Boxes:
    """Rectangles, turned as they like, that must not overlap."""

    def __init__(self, capacity: int) -> None:
        self._center = np.empty((capacity, 2))
        self._half = np.empty((capacity, 2))
        self._axis = np.empty((capacity, 2))
        self._reach = np.empty(capacity)
        self._count = 0

    def add(self, center: FloatArray, half: FloatArray, angle: float) -> None:
        """Take a rectangle: its centre, half its width and height, and its turn."""
        i = self._count
        self._center[i], self._half[i] = center, half
        self._axis[i] = np.cos(angle), np.sin(angle)
        self._reach[i] = np.hypot(*half)
        self._count += 1

    def is_free(self, center: FloatArray, half: FloatArray, angle: float) -> bool:
        """Whether a rectangle overlaps none of those taken (by the separating axis theorem)."""
        n = self._count
        offset = self._center[:n] - center
        near = np.hypot(offset[:, 0], offset[:, 1]) < self._reach[:n] + np.hypot(*half)
        if not near.any():
            return True
        offset, halves, axes = offset[near], self._half[:n][near], self._axis[:n][near]
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

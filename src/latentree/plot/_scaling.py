"""Sizes in points: of a new figure, and of a layout that fills a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentree.plot import _labels as text
from latentree.plot import _legend as legends
from latentree.plot._legend import PageLayout
from latentree.plot._tree_layout import TreeLayout
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LEAST_SHARE = 0.5
"""Share of the room that the tree keeps when labels want more: some of them are then left out."""

READABLE = 6.0
"""Points of letters from which a disc is not enlarged at the cost of its labels."""

ANY_LENGTH = 1e6
"""Points that no picture reaches."""


class ScaledLayout(NamedTuple):
    """A layout in points, with the sizes that go with it."""

    kind: str
    position: FloatArray
    angle: FloatArray
    has_slot: BoolArray
    paths: FloatArray
    font: float
    dot: float
    roomy: bool
    lines: int
    across: float
    """Points from level 0 to level 1 in layers."""
    letters: text.LetterSizes

    def font_of(self, share: float) -> float:
        """Font size of text that is smaller than labels."""
        return max(share * self.font, self.letters.least)


def picture_shape(placed: TreeLayout) -> FloatArray:
    """Width and height of a picture, up to a factor; layers take any shape."""
    if placed.kind == "layered":
        return np.array([1.0, 1.0])
    spread: FloatArray = np.maximum(np.ptp(placed.position, axis=0), 1.0)
    return spread


COLUMNS = {"single-column": 89.0, "double-column": 183.0}
"""Widths in millimeters of figures in Nature."""

TALLEST = 247.0
"""Millimeters of a page of the same."""

MILLIMETERS = 25.4
"""An inch."""


def aspects_of(ax: Axes | None, size: str | None) -> list[float]:
    """Widths to heights that a layout may aim at: of a column wide ones, and at last a page."""
    if size is not None:
        return [1.5, 1.0, COLUMNS[size] / TALLEST]
    if ax is None:
        return [1.5]
    box = ax.get_window_extent()
    return [float(box.width / max(box.height, 1.0))]


def column_font(size: str, placed: TreeLayout, widths: FloatArray, lines: int) -> float:
    """Points of letters in a disc of a column that is as tall as a page, or as it needs to be."""
    if placed.kind == "layered":
        return text.JOURNAL.largest
    reach = 2 * float(widths.max(initial=0.0)) / (text.LINE * lines)
    wide, tall = (np.ptp(placed.position, axis=0) + reach + 1.0).tolist()
    page = 72 / MILLIMETERS * np.array([COLUMNS[size], TALLEST])
    return float(np.min(page / [wide, tall])) / (text.LINE * lines)


def column_size(
    size: str, placed: TreeLayout, widths: FloatArray, lines: int, entries: list[Artist]
) -> tuple[float, float]:
    """Inches of a picture as wide as a column, and as tall as its labels and its legend ask for."""
    width = COLUMNS[size] / MILLIMETERS
    letters, spread = text.JOURNAL, np.ptp(placed.position, axis=0)
    low = legends.height_below(entries, 72 * width, letters.largest) / 72 if entries else 0.0
    if placed.kind == "layered":
        tall = (float(spread[1]) + 2.0) * letters.largest * text.LINE * lines / 72
    else:
        around = 2 * letters.largest * float(widths.max(initial=0.0)) / 72
        tall = (width - around) * float(spread[1] / max(spread[0], 1.0)) + around
    return width, float(np.clip(tall + low, width / 2, TALLEST / MILLIMETERS))


def figure_size(
    placed: TreeLayout, widths: FloatArray, lines: int, entries: list[Artist]
) -> tuple[float, float]:
    """Inches at which the labels are of a good size, within reason."""
    side_width, side_height = (
        legends.legend_size(entries, legends.LEGEND_SIZES[0]) if entries else (0.0, 0.0)
    )
    spread = np.ptp(placed.position, axis=0)
    if placed.kind == "layered":
        rows = float(spread[1]) + 2.0
        height = max(rows * (4.0 + 11.0 * lines), side_height) + 2 * legends.PAD
        # A tree beside the widest name; names of up to some twenty letters fit the usual width.
        wide = max(6.4, 4.0 + float(widths.max(initial=0.0)) * text.LARGEST / 72)
        return float(wide + side_width / 72), min(max(height / 72, 2.0), 40.0)

    def side(font: float) -> FloatArray:
        around = 2 * (font * float(widths.max()) + 8.0) + 2 * legends.PAD
        inches: FloatArray = (spread * font * text.LINE * lines + around) / 72
        return inches

    # Small print before a sheet that no printer takes; but print that can be read.
    size = np.clip(side(7.5), 4.0, np.clip(side(5.0), 14.0, 32.0))
    return float(size[0] + side_width / 72), float(
        max(size[1], (side_height + 2 * legends.PAD) / 72)
    )


class _Measured(NamedTuple):
    """A layout whose extent in points is known at every scale.

    Attributes
    ----------
    placed : TreeLayout
        The layout, in its own units.
    widths : array of float
        Widths of the labels of observed nodes, in units of the font size; 0 for none.
    lines : int
        Lines of a label.
    low, high : arrays of shape (2,)
        Corners of the box around all nodes and edges, in units of the layout.
    """

    placed: TreeLayout
    widths: FloatArray
    lines: int
    low: FloatArray
    high: FloatArray
    letters: text.LetterSizes

    @classmethod
    def of(
        cls, placed: TreeLayout, widths: FloatArray, lines: int, letters: text.LetterSizes
    ) -> _Measured:
        points = np.concatenate([placed.position, placed.paths.reshape(-1, 2)])
        return cls(placed, widths, lines, points.min(axis=0), points.max(axis=0), letters)

    def bounds(self, scale: FloatArray, labeled: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return the corners of the picture at a scale, with or without its labels."""
        unit, named = float(scale[1]), self.widths > 0
        low, high = self.low * scale - _dot(unit) / 2, self.high * scale + _dot(unit) / 2
        if not (labeled and named.any()):
            return low, high
        n = self.widths.size
        angle, font = self.placed.angle[:n], text.font_size(unit, self.lines, self.letters)
        out = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        reach = np.where(named, self.widths * font + _gap(unit, font), 0.0)
        ends = self.placed.position[:n] * scale + out * reach[:, None]
        half = font * text.LINE * self.lines / 2
        return np.minimum(low, ends.min(axis=0) - half), np.maximum(high, ends.max(axis=0) + half)

    def largest(self, scale_of: Callable[[float], FloatArray], room: tuple[float, float]) -> float:
        """Return the largest scale at which labels fit too, or a share of the tree's own."""

        def extent(scale: FloatArray, labeled: bool) -> tuple[float, float]:
            low, high = self.bounds(scale, labeled)
            return float(high[0] - low[0]), float(high[1] - low[1])

        with_labels = text.fit(lambda s: extent(scale_of(s), True), room)
        if self.placed.kind == "radial" and with_labels >= READABLE * text.LINE * self.lines:
            return with_labels
        alone = text.fit(lambda s: extent(scale_of(s), False), room)
        return max(with_labels, LEAST_SHARE * alone)


def scaled_layout(
    tree: Tree,
    placed: TreeLayout,
    widths: FloatArray,
    lines: int,
    page: PageLayout,
    letters: text.LetterSizes = text.FREE,
) -> ScaledLayout:
    """Fill the page: the largest scale at which everything, labels too, is inside."""
    measured = _Measured.of(placed, widths[: tree.n_observed], lines, letters)
    width, height = page.inner_width, page.inner_height
    if placed.kind == "radial":
        unit = measured.largest(lambda s: np.array([s, s]), (width, height))
        scale = np.array([unit, unit])
    else:
        # One side after the other: the one that is not asked about may be as long as it likes.
        unit = measured.largest(lambda s: np.array([0.0, s]), (ANY_LENGTH, height))
        unit = min(unit, 3.0 * text.LARGEST * lines)
        across = measured.largest(lambda s: np.array([s, unit]), (width, ANY_LENGTH))
        scale = np.array([across, unit])
    low, high = measured.bounds(scale)
    shift = (
        np.array([page.left, page.bottom]) + (np.array([width, height]) - (high - low)) / 2 - low
    )
    return ScaledLayout(
        placed.kind,
        placed.position * scale + shift,
        placed.angle,
        placed.has_slot,
        placed.paths * scale + shift,
        text.font_size(unit, lines, letters),
        _dot(unit),
        unit >= letters.smallest * text.LINE * lines,
        lines,
        float(scale[0]),
        letters,
    )


def _dot(unit: float) -> float:
    """Diameter of an observed node."""
    return float(np.clip(0.5 * unit, 1.5, 5.5))


def _gap(unit: float, font: float) -> float:
    """From the center of a node to its label."""
    return 0.5 * _dot(unit) + 0.3 * font

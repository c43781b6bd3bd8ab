"""The page of a picture: its legend, its title, a scale, and the room that they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentree.errors import import_extra
from latentree.plot import _labels as text
from latentree.plot._group_styles import VariableGroups
from latentree.plot._theme import DASHES, Theme, edge_shades, edge_width
from latentree.plot._tree_layout import TreeLayout
from latentree.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

    from latentree.support import Support

PAD = 6.0
"""Points between the border, the tree and the legend."""

LEGEND_SIZES = (8.0, 7.0, 6.0, 5.0)
"""Font sizes of the legend in points, tried in turn until it leaves room for the tree."""

ROOM = 0.55
"""Share of the axes that the tree keeps beside a legend."""

STRENGTHS = (0.2, 0.5, 0.9)
"""Strengths that the legend of strengths shows."""

DOTTED = (0, (0.8, 0.8))
"""Line style of the outlines of doubtful hidden variables."""

TITLE_SIZE = 11.0
"""Font size of the title in points."""

LEGEND_LONGEST = 28
"""Characters of the name of a group in the legend."""


class PageLayout(NamedTuple):
    """The axes in points, with a strip for the legend at the right or at the bottom."""

    width: float
    height: float
    left: float
    bottom: float
    inner_width: float
    inner_height: float
    columns: int
    legend_font: float
    """0 where a legend would leave too little room for the tree."""

    @classmethod
    def of(
        cls,
        ax: Axes,
        entries: list[Artist],
        shape: FloatArray,
        titled: bool,
        keep: bool = False,
        largest: float = LEGEND_SIZES[0],
    ) -> PageLayout:
        """Measure the axes; the legend goes where it leaves more room for a picture of a shape.

        Where it leaves too little there is none, unless it is to be kept.
        """
        box, dpi = ax.get_window_extent(), ax.figure.dpi
        size = float(box.width) * 72 / dpi, float(box.height) * 72 / dpi
        top = TITLE_SIZE * 1.6 if titled else 0.0
        for font in [size for size in LEGEND_SIZES if size <= largest] if entries else ():
            page = cls._with_legend(*size, top, entries, shape, font)
            if page.inner_width * page.inner_height >= ROOM * size[0] * size[1]:
                return page
        if entries and keep:
            return page
        inner = size[0] - 2 * PAD, size[1] - top - 2 * PAD
        return cls(*size, PAD, PAD, *inner, 1, 0.0)

    @classmethod
    def _with_legend(
        cls,
        width: float,
        height: float,
        top: float,
        entries: list[Artist],
        shape: FloatArray,
        font: float,
    ) -> PageLayout:
        """Return the page with a legend beside or below the tree, whichever leaves it larger."""
        strip, tall = legend_size(entries, font)
        free = height - top
        columns = columns_below(entries, width, font)
        low = height_below(entries, width, font)
        beside = min((width - strip) / shape[0], free / shape[1])
        below = min(width / shape[0], (free - low) / shape[1])
        if beside >= below and tall <= free:
            inner = width - strip - 2 * PAD, free - 2 * PAD
            return cls(width, height, PAD, PAD, *inner, 1, font)
        inner = width - 2 * PAD, free - low - 2 * PAD
        return cls(width, height, PAD, low + PAD, *inner, columns, font)

    def holds(self, center: FloatArray, half: FloatArray, rotation: float) -> bool:
        """Whether a label is inside the room of the tree and its border, off legend and title."""
        cos, sin = abs(np.cos(rotation)), abs(np.sin(rotation))
        reach = np.array([[cos, sin], [sin, cos]]) @ half
        start = np.array([self.left, self.bottom]) - PAD - 1.0
        size = np.array([self.inner_width, self.inner_height]) + 2 * (PAD + 1.0)
        low, high = center - reach - start, center + reach - start
        return bool((low >= 0.0).all() and (high <= size).all())


def legend_entries(
    grouping: VariableGroups, any_negative: bool, theme: Theme, legend: bool, strengths: str
) -> list[Artist]:
    """Return the entries of groups, of negative edges and of strengths, as asked for.

    ``strengths`` is what a strength is called; empty for no entries of strengths.
    """
    lines = import_extra("matplotlib.lines", "plot")
    styles = [style for style in grouping.styles if style.label is not None] if legend else []
    names = text.shown([style.label or "" for style in styles], LEGEND_LONGEST)
    entries = [
        lines.Line2D(
            [], [], linestyle="none", marker=style.marker, color=theme.of_group(style),
            markersize=5, markeredgewidth=0, label=name,
        )
        for style, name in zip(styles, names, strict=True)
    ]  # fmt: skip
    if legend and any_negative:
        entries.append(
            lines.Line2D([], [], color=theme.negative, linestyle=DASHES, label="negative")
        )
    for power in STRENGTHS if strengths else ():
        shade = edge_shades(theme.edge, np.array([power]), theme.paper)[0]
        entries.append(
            lines.Line2D(
                [], [], color=shade, linewidth=edge_width(power), label=f"{strengths} {power}"
            )
        )
    return entries


def support_entries(support: Support, theme: Theme) -> list[Artist]:
    """Return the entries of numbers at edges, and of doubtful hidden variables if there are any."""
    name = "probability" if support.are_probabilities else "support"
    lines = import_extra("matplotlib.lines", "plot")
    collections = import_extra("matplotlib.collections", "plot")
    entries: list[Artist] = [
        lines.Line2D(
            [], [], linestyle="none", marker="$87$", markersize=8, color=theme.ink,
            markeredgewidth=0, label=f"{name}, %",
        )
    ]  # fmt: skip
    if support.doubtful.any():  # markers of lines have no dotted outline
        entries.append(
            collections.CircleCollection(
                [22.0], facecolors=theme.paper, edgecolors=theme.hidden, linestyles=[DOTTED],
                label="hidden in under 50 %",
            )
        )  # fmt: skip
    return entries


def legend_size(entries: list[Artist], font: float) -> tuple[float, float]:
    """Width and height in points of the entries one below the other."""
    widest = float(text.text_widths([str(entry.get_label()) for entry in entries]).max())
    return (widest + 4.0) * font + 2 * PAD, len(entries) * font * 1.6 + 2 * PAD


def columns_below(entries: list[Artist], width: float, font: float) -> int:
    """Columns of a legend below a picture."""
    strip = legend_size(entries, font)[0] - 2 * PAD
    return max(1, min(len(entries), int((width - 2 * PAD) // strip)))


def height_below(entries: list[Artist], width: float, font: float) -> float:
    """Height in points of a legend below a picture."""
    rows = -(-len(entries) // columns_below(entries, width, font))
    return rows * font * 1.6 + 2 * PAD


def draw_legend(ax: Axes, page: PageLayout, entries: list[Artist], theme: Theme) -> Legend | None:
    """Draw the legend beside or below the tree; None if there is no room."""
    if not entries or not page.legend_font:
        return None
    start = page.left + page.inner_width + 2 * PAD
    at_side = start < page.width
    return ax.legend(
        handles=entries, ncols=page.columns, fontsize=page.legend_font, frameon=False,
        loc="center left" if at_side else "lower center", borderpad=0, borderaxespad=0,
        bbox_to_anchor=(start / page.width, 0.5) if at_side else (0.5, PAD / page.height),
        handlelength=1.6, handletextpad=0.5, labelspacing=0.5, columnspacing=1.2,
        labelcolor=theme.ink,
    )  # fmt: skip


def draw_scale(ax: Axes, page: PageLayout, placed: TreeLayout, across: float, theme: Theme) -> None:
    """A line as long as a round distance, at the lower left."""
    if not placed.longest:
        return
    rough = placed.longest / 5
    round_down = 10.0 ** np.floor(np.log10(rough))
    size = round_down * max(step for step in (1, 2, 5) if step * round_down <= rough)
    x, y = page.left + PAD, page.bottom + PAD
    ax.plot([x, x + size / placed.longest * across], [y, y], color=theme.ink, linewidth=1.0)
    ax.text(
        x, y + 3.0, f"distance {size:g}", fontsize=LEGEND_SIZES[1], color=theme.ink, va="bottom"
    )


def draw_title(ax: Axes, page: PageLayout, title: str, theme: Theme) -> None:
    """Write the title at the top, in the middle."""
    ax.text(
        page.width / 2, page.height - PAD, title, fontsize=TITLE_SIZE, color=theme.ink,
        ha="center", va="top", parse_math=False,
    )  # fmt: skip

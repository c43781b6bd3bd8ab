"""Labels of nodes and edges: where they have room, and which go first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentree.errors import import_extra
from latentree.models import JOINED_BY
from latentree.plot import _labels as text
from latentree.plot._legend import PageLayout
from latentree.plot._scaling import ScaledLayout
from latentree.plot._theme import Theme
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

INK = np.array([1.0, 0.85])
"""Share of a label's box, across and down, that edges must keep off: its letters."""

MANY = 2000
"""Nodes beyond which labels are not looked a second place for: it takes seconds."""

MOST_LABELS = 1500
"""More text than this is a gray haze, and takes seconds to draw."""


class _LabelPlace(NamedTuple):
    """A place for a label: where it starts, how it is aligned, and the box it fills."""

    anchor: FloatArray
    align: str
    rotation: float
    center: FloatArray
    half: FloatArray


def write_labels(
    ax: Axes,
    page: PageLayout,
    tree: Tree,
    drawn: ScaledLayout,
    names: list[str],
    widths: FloatArray,
    strength: FloatArray,
    wanted: BoolArray,
    theme: Theme,
    boxes: text.OccupiedBoxes,
) -> dict[str, Text]:
    """Write the labels that have room, the most important first."""
    written: dict[str, Text] = {}
    curves = text.EdgeCurves(drawn.paths)
    for v in _by_importance(tree, drawn, strength):
        if not wanted[v]:
            continue
        if len(written) == MOST_LABELS:
            break

        def has_room(spot: _LabelPlace) -> bool:
            box = spot.center, spot.half, spot.rotation
            return page.holds(*box) and boxes.is_free(*box)

        hidden = v >= tree.n_observed
        for name in text.wordings(names[v], JOINED_BY) if hidden else [names[v]]:
            width = float(widths[v] if name == names[v] else text.text_widths([name])[0])
            places = filter(has_room, _spots(tree, drawn, v, width))
            spot = _clearest(places, curves, must_be_clear=hidden)
            if spot is not None:
                boxes.add(spot.center, spot.half, spot.rotation)
                written[tree.names[v]] = _write(ax, tree, drawn, v, name, spot, theme)
                break
    return written


def _clearest(
    spots: Iterator[_LabelPlace], curves: text.EdgeCurves, must_be_clear: bool
) -> _LabelPlace | None:
    """The first place that no edge runs through, or for want of one where fewest do."""
    best, fewest = None, np.inf
    for spot in spots:
        if spot.align != "center":
            return spot  # a slot of its own
        crossing = curves.crossing(spot.center, INK * spot.half, spot.rotation)
        if crossing < fewest and not (crossing and must_be_clear):
            best, fewest = spot, crossing
        if fewest == 0:
            break
    return best


def node_boxes(tree: Tree, drawn: ScaledLayout) -> text.OccupiedBoxes:
    """Return the space that the nodes take; labels are added to it."""
    boxes = text.OccupiedBoxes(3 * tree.n_nodes, cell=4 * drawn.font)
    for center in drawn.position:
        boxes.add(center, np.full(2, drawn.dot / 2), 0.0)
    return boxes


def write_on_edges(
    ax: Axes,
    drawn: ScaledLayout,
    numbers: Mapping[int, str],
    marked: BoolArray,
    boxes: text.OccupiedBoxes,
    theme: Theme,
) -> None:
    """Write numbers at the middles of edges as far as there is room; marked ones stand out."""
    font = min(drawn.font_of(0.75), 7.0)
    for edge, number in list(numbers.items())[:MOST_LABELS]:
        center = _middle(drawn.paths[edge])
        half = np.array([0.3 * font * len(number), 0.4 * font])
        if boxes.is_free(center, half, 0.0):
            boxes.add(center, half, 0.0)
            ax.text(
                float(center[0]), float(center[1]), number, fontsize=font, ha="center",
                va="center", color=theme.negative if marked[edge] else theme.ink, zorder=4,
                bbox=_patch(theme),
            )  # fmt: skip


def draw_strip(
    ax: Axes, tree: Tree, drawn: ScaledLayout, widths: FloatArray, colors: list[str]
) -> None:
    """A strip of colors beyond the labels of the leaves: one patch for every variable's group."""
    patches = import_extra("matplotlib.patches", "plot")
    reach = drawn.dot / 2 + 0.3 * drawn.font + widths[: tree.n_observed] * drawn.font
    tall, wide = drawn.font * text.LINE * drawn.lines, 0.8 * drawn.font
    ends = drawn.position[: tree.n_observed, 0] + reach
    for v in np.flatnonzero(drawn.has_slot[: tree.n_observed]).tolist():
        angle = float(drawn.angle[v])
        out, up = (
            np.array([np.cos(angle), np.sin(angle)]),
            np.array([-np.sin(angle), np.cos(angle)]),
        )
        # In rows the strip is one column, around a disc it follows the labels.
        away = ends.max() - drawn.position[v, 0] if drawn.kind == "layered" else reach[v]
        corner = drawn.position[v] + (away + 0.3 * drawn.font) * out - tall / 2 * up
        ax.add_patch(
            patches.Rectangle(
                corner, wide, tall, angle=float(np.degrees(angle)), color=colors[v], linewidth=0
            )
        )


def _patch(theme: Theme) -> dict[str, str]:
    """Paper behind text that edges run below. An outline of the letters would make them shapes."""
    return {"boxstyle": "square,pad=0.06", "facecolor": theme.paper, "edgecolor": "none"}


def _middle(path: FloatArray) -> FloatArray:
    """The point halfway along a line."""
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    along = np.append(0.0, np.cumsum(steps))
    return np.array([np.interp(along[-1] / 2, along, path[:, axis]) for axis in range(2)])


def _by_importance(tree: Tree, drawn: ScaledLayout, strength: FloatArray) -> list[int]:
    """Nodes in the order in which labels find their places.

    Leaves first as long as all of them have room, because they have but one place each; then
    observed before hidden nodes, those with many neighbors, and those with the strongest edges.
    """
    strongest = np.zeros(tree.n_nodes)
    for ends in tree.edges.T:
        np.maximum.at(strongest, ends, np.abs(strength))
    hidden = np.arange(tree.n_nodes) >= tree.n_observed
    late = (tree.degrees > 1) & drawn.roomy
    order: list[int] = np.lexsort((-strongest, -tree.degrees, hidden, late)).tolist()
    return order


def _spots(tree: Tree, drawn: ScaledLayout, v: int, width: float) -> Iterator[_LabelPlace]:
    """Places for a label: along its own slot, and beside the node for want of that."""
    font = drawn.font if v < tree.n_observed else drawn.font_of(0.8)
    gap = drawn.dot / 2 + 0.3 * drawn.font
    half = np.array([width * font / 2, font * text.LINE * drawn.lines * 0.48])
    at, angle = drawn.position[v], float(drawn.angle[v])
    if drawn.has_slot[v]:
        out = np.array([np.cos(angle), np.sin(angle)])
        turned = out[0] < -1e-9  # text reads from left to right
        rotation = angle + np.pi if turned else angle
        align = "right" if turned else "left"
        # Letters stand above the middle of their line. Labels on both sides of the vertical read
        # in opposite directions, and would meet there.
        sink = 0.12 * font * np.abs(out[0]) * np.array([np.sin(rotation), -np.cos(rotation)])
        start = at + gap * out + sink
        yield _LabelPlace(start, align, rotation, start + half[0] * out, half)
    if tree.n_nodes > MANY and (tree.degrees[v] <= 1 or not drawn.roomy):
        return
    if not tree.degrees[v]:
        return
    wide = _widest_gap(drawn.position[tree.neighbors(v)] - at)
    half = np.array([half[0], font * text.LINE * drawn.lines / 2])
    apart = half + np.array([0.2 * gap, 0.6 * gap])
    aside = [_beside(direction, gap, half) for direction in (wide, 0.0, np.pi)]
    corners = [apart * (x, y) for y in (-1, 1) for x in (-1, 1)]
    upright = [_beside(direction, gap, half) for direction in (np.pi / 2, -np.pi / 2)]
    for offset in (*aside, *corners, *upright):
        yield _LabelPlace(at + offset, "center", 0.0, at + offset, half)


def _widest_gap(edges: FloatArray) -> float:
    """The direction in the middle of the widest angle between edges."""
    angles = np.sort(np.arctan2(edges[:, 1], edges[:, 0]))
    gaps = np.diff(angles, append=angles[:1] + 2 * np.pi)
    widest = int(gaps.argmax())
    return float(angles[widest] + gaps[widest] / 2)


def _beside(direction: float, gap: float, half: FloatArray) -> FloatArray:
    """From a node to the middle of an upright box that lies in a direction, just off the node."""
    out = np.array([np.cos(direction), np.sin(direction)])
    reach = float(np.min((half + gap) / np.maximum(np.abs(out), 1e-9)))
    return out * reach


def _write(
    ax: Axes, tree: Tree, drawn: ScaledLayout, v: int, name: str, spot: _LabelPlace, theme: Theme
) -> Text:
    """Write a label at its place."""
    hidden = v >= tree.n_observed
    over_edges = tree.degrees[v] > 1 or spot.align == "center"
    return ax.text(
        float(spot.anchor[0]), float(spot.anchor[1]), name,
        fontsize=drawn.font_of(0.8) if hidden else drawn.font,
        color=theme.hidden if hidden else theme.ink, fontstyle="italic" if hidden else "normal",
        rotation=np.degrees(spot.rotation), rotation_mode="anchor",
        ha=spot.align, va="center", ma=spot.align, parse_math=False, zorder=5,
        bbox=_patch(theme) if over_edges else None, linespacing=text.LINE,
    )  # fmt: skip

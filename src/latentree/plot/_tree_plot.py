"""Drawing a tree with matplotlib."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from latentree.errors import DataError, import_extra
from latentree.models import Scored, edge_strengths, tree_of
from latentree.plot import _labels as text
from latentree.plot._groups import VariableGroups, group_observed
from latentree.plot._layout import TreeLayout, layered_layout, radial_layout
from latentree.tree import Tree
from latentree.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.legend import Legend
    from matplotlib.text import Text

FEW = 30
"""Up to so many variables are drawn in layers rather than in a disc."""

INK, EDGE, NEGATIVE, HIDDEN = "#2B2F36", "#566779", "#C0392B", "#7A8793"
PAD = 6.0
LEGEND_SIZE = 8.0

MOST_LABELS = 1500
"""More text than this is a gray haze, and takes seconds to draw."""


@dataclass(frozen=True, eq=False)
class TreePlot:
    """What :func:`plot_tree` drew, to be changed or measured.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where it was drawn.
    edges, negative_edges : LineCollection
        Edges of positive and of negative correlation.
    observed : list of PathCollection
        The observed nodes, one collection a group.
    hidden : PathCollection
        The hidden nodes.
    labels : dict
        The text of every labeled node, by its name.
    legend : Legend or None
        The legend of the groups, if there are any.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from latentree import simulate
    >>> plot = plot_tree(simulate.double_star(8))
    >>> plot.labels["x0"].set_color("red")
    >>> plot.legend is None
    True
    """

    ax: Axes
    edges: LineCollection
    negative_edges: LineCollection
    observed: list[PathCollection]
    hidden: PathCollection
    labels: dict[str, Text]
    legend: Legend | None


def plot_tree(
    model: Scored,
    ax: Axes | None = None,
    *,
    layout: Literal["auto", "radial", "layered"] = "auto",
    groups: Mapping[str, Hashable] | Sequence[Hashable] | None = None,
    labels: bool = True,
    hidden_labels: bool = False,
    legend: bool = True,
) -> TreePlot:
    """Draw a tree or a model.

    Observed variables are filled dots with their names, hidden ones small hollow dots. The
    stronger the dependence along an edge, the wider and darker it is drawn; negative correlations
    are red and dashed. The sign of a hidden variable is a matter of convention: the picture takes
    the one that leaves least red. Components of a forest stand side by side.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree
        Strengths are those of :func:`latentree.models.edge_strengths`; only models have signs.
    ax : matplotlib Axes, optional
        Where to draw: the picture and its legend fill it. A new figure of fitting size when left
        out. Label sizes suit the size that the axes have now.
    layout : {"auto", "radial", "layered"}
        ``radial``: the middle of the tree in the center, its branches all around. ``layered``: from
        left to right, one row a variable. ``auto`` takes layers for up to 30 variables.
    groups : mapping from names to groups, or one group an observed variable, optional
        Colors the variables and adds a legend; variables left out are gray.
    labels : bool
        Whether observed variables are named. Names shrink to fit; those for which there is truly no
        room are left out, inner nodes and strong edges last.
    hidden_labels : bool
        Whether hidden variables are named too, where there is room.
    legend : bool
        Whether groups and negative edges are explained.

    Returns
    -------
    TreePlot
        The axes and everything drawn on them.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed: ``pip install 'latentree[plot]'``.

    Examples
    --------
    >>> import io
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from latentree import simulate
    >>> plot = plot_tree(simulate.double_star(8), groups=[0, 0, 0, 0, 1, 1, 1, 1])
    >>> sorted(plot.labels)
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7']
    >>> plot.ax.figure.savefig(io.BytesIO(), format="pdf")
    """
    plt = import_extra("matplotlib.pyplot", "plot")
    tree = tree_of(model)
    strength = _of_edges(tree, edge_strengths(model))
    grouping = group_observed(tree, groups)
    kind = _kind_of(layout, tree)
    names = [text.shown(name) if labels else "" for name in tree.names]
    widths = text.text_widths(names)
    entries = _legend_entries(grouping, bool((strength < 0).any())) if legend else []
    placed = _lay_out(tree, kind, grouping, widths, ax)
    if ax is None:
        _, ax = plt.subplots(figsize=_figure_size(placed, widths, entries))
        ax.set_position((0.0, 0.0, 1.0, 1.0))
    page = _Page.of(ax, entries, _shape(placed))
    drawn = _scaled(tree, placed, widths, page)
    artists = _draw_edges(ax, drawn, strength)
    observed, hidden = _draw_nodes(ax, tree, drawn, grouping)
    written = _write_labels(ax, tree, drawn, names, widths, strength, labels, hidden_labels)
    shown = _draw_legend(ax, page, entries)
    _frame(ax, page)
    return TreePlot(ax, *artists, observed, hidden, written, shown)


def _kind_of(
    layout: Literal["auto", "radial", "layered"], tree: Tree
) -> Literal["radial", "layered"]:
    if layout == "auto":
        return "layered" if tree.n_observed <= FEW else "radial"
    if layout not in ("radial", "layered"):
        raise DataError(f"layout is {layout!r}, but must be 'auto', 'radial' or 'layered'")
    return layout


def _of_edges(tree: Tree, by_node: FloatArray) -> FloatArray:
    return by_node[tree.edges[:, 1]]


def _lay_out(
    tree: Tree, kind: str, grouping: VariableGroups, widths: FloatArray, ax: Axes | None
) -> TreeLayout:
    order_by = np.zeros(tree.n_nodes)
    order_by[: tree.n_observed] = grouping.numbers  # neighbors of one color side by side
    if kind == "layered":
        return layered_layout(tree, order_by)
    reach = widths[: tree.n_observed] / text.LINE + 1.0
    aspect = 1.5
    if ax is not None:
        size = ax.get_window_extent()
        aspect = size.width / max(size.height, 1.0)
    return radial_layout(tree, order_by, reach, aspect)


# Sizes ------------------------------------------------------------------------------------------


class _Page(NamedTuple):
    """The axes in points, with a strip for the legend at the right or at the bottom."""

    width: float
    height: float
    left: float
    bottom: float
    inner_width: float
    inner_height: float
    columns: int

    @classmethod
    def of(cls, ax: Axes, entries: list[Any], shape: FloatArray) -> _Page:
        """Measure the axes; the legend goes where it leaves more room for a picture of a shape."""
        box, dpi = ax.get_window_extent(), ax.figure.dpi
        width, height = float(box.width) * 72 / dpi, float(box.height) * 72 / dpi
        strip, tall = _legend_size(entries)
        columns = max(1, min(len(entries), int((width - 2 * PAD) // max(strip, 1.0))))
        low = -(-len(entries) // columns) * LEGEND_SIZE * 1.6 + (2 * PAD if entries else 0.0)
        beside = min((width - strip) / shape[0], height / shape[1])
        below = min(width / shape[0], (height - low) / shape[1])
        if beside >= below and tall <= height:
            return cls(width, height, PAD, PAD, width - strip - 2 * PAD, height - 2 * PAD, 1)
        inner = width - 2 * PAD, height - low - 2 * PAD
        return cls(width, height, PAD, low + PAD, *inner, columns)


class _Drawn(NamedTuple):
    """A layout in points, with the sizes that go with it."""

    kind: str
    position: FloatArray
    angle: FloatArray
    has_slot: np.ndarray
    paths: FloatArray
    font: float
    dot: float
    roomy: bool


def _shape(placed: TreeLayout) -> FloatArray:
    """Width and height of a picture, up to a factor; layers take any shape."""
    if placed.kind == "layered":
        return np.array([1.0, 1.0])
    spread: FloatArray = np.maximum(np.ptp(placed.position, axis=0), 1.0)
    return spread


def _figure_size(placed: TreeLayout, widths: FloatArray, entries: list[Any]) -> tuple[float, float]:
    """Inches at which the labels are of a good size, within reason."""
    side_width, side_height = _legend_size(entries)
    spread = np.ptp(placed.position, axis=0)
    if placed.kind == "layered":
        rows = float(spread[1]) + 2.0
        height = max(rows * 15.0, side_height) + 2 * PAD
        return float(6.4 + side_width / 72), min(max(height / 72, 2.0), 40.0)

    def side(font: float) -> FloatArray:
        around = 2 * (font * float(widths.max()) + 8.0) + 2 * PAD
        inches: FloatArray = (spread * font * text.LINE + around) / 72
        return inches

    # Small print before a sheet that no printer takes; but print that can be read.
    size = np.clip(side(7.5), 4.0, np.clip(side(5.0), 14.0, 32.0))
    return float(size[0] + side_width / 72), float(max(size[1], (side_height + 2 * PAD) / 72))


def _scaled(tree: Tree, placed: TreeLayout, widths: FloatArray, page: _Page) -> _Drawn:
    """Fill the page: the largest scale at which everything, labels too, is inside."""
    n = tree.n_observed
    at, angle, width = placed.position[:n], placed.angle[:n], widths[:n]
    named = width > 0
    out = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.concatenate([placed.position, placed.paths.reshape(-1, 2)])
    corners = points.min(axis=0), points.max(axis=0)

    def bounds(scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        unit = float(scale[1])
        font = text.font_size(unit)
        reach = np.where(named, width * font + _gap(unit), 0.0)
        ends = at * scale + out * reach[:, None]
        half = (font * text.LINE if named.any() else _dot(unit)) / 2
        low = np.minimum(corners[0] * scale - _dot(unit) / 2, ends.min(axis=0) - half)
        high = np.maximum(corners[1] * scale + _dot(unit) / 2, ends.max(axis=0) + half)
        return low, high

    def extent(scale: FloatArray) -> tuple[float, float]:
        low, high = bounds(scale)
        return float(high[0] - low[0]), float(high[1] - low[1])

    room = (page.inner_width, page.inner_height)
    if placed.kind == "radial":
        unit = text.fit(lambda s: extent(np.array([s, s])), room)
        scale = np.array([unit, unit])
    else:
        unit = text.fit(lambda s: (0.0, extent(np.array([0.0, s]))[1]), room)
        unit = min(unit, 3.0 * text.LARGEST)
        across = text.fit(lambda s: (extent(np.array([s, unit]))[0], 0.0), room)
        scale = np.array([across, unit])
    low, high = bounds(scale)
    shift = np.array([page.left, page.bottom]) + (np.array(room) - (high - low)) / 2 - low
    return _Drawn(
        placed.kind,
        placed.position * scale + shift,
        placed.angle,
        placed.has_slot,
        placed.paths * scale + shift,
        text.font_size(unit),
        _dot(unit),
        unit >= text.SMALLEST * text.LINE,
    )


def _dot(unit: float) -> float:
    """Diameter of an observed node."""
    return float(np.clip(0.5 * unit, 1.5, 5.5))


def _gap(unit: float) -> float:
    """From the center of a node to its label."""
    return 0.5 * _dot(unit) + 0.3 * text.font_size(unit)


# Edges and nodes --------------------------------------------------------------------------------


def _draw_edges(
    ax: Axes, drawn: _Drawn, strength: FloatArray
) -> tuple[LineCollection, LineCollection]:
    collections = import_extra("matplotlib.collections", "plot")
    thickness = np.clip(drawn.dot / 4.0, 0.4, 1.0)

    def lines(which: np.ndarray, color: str, style: Any) -> LineCollection:
        power = np.abs(strength[which])
        drawn_lines: LineCollection = collections.LineCollection(
            list(drawn.paths[which]),
            colors=_shades(color, power),
            linewidths=thickness * (0.45 + 2.0 * power),
            linestyles=style,
            capstyle="butt" if style != "solid" else "round",
            zorder=1,
        )
        ax.add_collection(drawn_lines, autolim=False)
        return drawn_lines

    negative = strength < 0
    return lines(~negative, EDGE, "solid"), lines(negative, NEGATIVE, (0, (2.5, 1.5)))


def _shades(color: str, power: FloatArray) -> FloatArray:
    """The color mixed with white, the weaker the paler; no transparency, so print is safe."""
    to_rgb = import_extra("matplotlib.colors", "plot").to_rgb
    full = 0.35 + 0.65 * np.clip(power, 0.0, 1.0)[:, None]
    return 1.0 - full * (1.0 - np.array(to_rgb(color)))


def _draw_nodes(
    ax: Axes, tree: Tree, drawn: _Drawn, grouping: VariableGroups
) -> tuple[list[PathCollection], PathCollection]:
    n = tree.n_observed
    numbers = np.array(grouping.numbers)
    small = 0.8 * drawn.dot
    x, y = drawn.position.T
    hidden = ax.scatter(
        x[n:], y[n:], s=small**2, facecolors="white", edgecolors=HIDDEN,
        linewidths=0.22 * small, zorder=2,
    )  # fmt: skip
    observed = [
        ax.scatter(
            x[:n][numbers == i], y[:n][numbers == i], s=drawn.dot**2, color=style.color,
            marker=style.marker, linewidths=0, zorder=3,
        )
        for i, style in enumerate(grouping.styles)
    ]  # fmt: skip
    return observed, hidden


# Labels -----------------------------------------------------------------------------------------


class _Spot(NamedTuple):
    """A place for a label: where it starts, how it is aligned, and the box it fills."""

    anchor: FloatArray
    align: str
    rotation: float
    center: FloatArray
    half: FloatArray


def _write_labels(
    ax: Axes,
    tree: Tree,
    drawn: _Drawn,
    names: list[str],
    widths: FloatArray,
    strength: FloatArray,
    labels: bool,
    hidden_labels: bool,
) -> dict[str, Text]:
    """Write the labels that have room, the most important first."""
    wanted = np.zeros(tree.n_nodes, bool)
    wanted[: tree.n_observed] = labels
    wanted[tree.n_observed :] = hidden_labels
    if not wanted.any():
        return {}
    boxes = text.Boxes(2 * tree.n_nodes, cell=4 * drawn.font)
    for center in drawn.position:
        boxes.add(center, np.full(2, drawn.dot / 2), 0.0)
    written: dict[str, Text] = {}
    for v in _by_importance(tree, drawn, strength):
        if not wanted[v]:
            continue
        if len(written) == MOST_LABELS:
            break
        for spot in _spots(tree, drawn, v, float(widths[v])):
            if boxes.is_free(spot.center, spot.half, spot.rotation):
                boxes.add(spot.center, spot.half, spot.rotation)
                written[tree.names[v]] = _write(ax, tree, drawn, v, names[v], spot)
                break
    return written


def _by_importance(tree: Tree, drawn: _Drawn, strength: FloatArray) -> list[int]:
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


def _spots(tree: Tree, drawn: _Drawn, v: int, width: float) -> Iterator[_Spot]:
    """Places for a label: along its own slot, and for inner nodes beside the node as well."""
    font = drawn.font * (1.0 if v < tree.n_observed else 0.8)
    gap = drawn.dot / 2 + 0.3 * drawn.font
    half = np.array([width * font / 2, font * text.LINE * 0.48])
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
        yield _Spot(start, align, rotation, start + half[0] * out, half)
    if tree.degrees[v] <= 1 or not drawn.roomy:
        return
    wide = _widest_gap(drawn.position[tree.neighbors(v)] - at)
    for direction in (wide, 0.0, np.pi, np.pi / 2, -np.pi / 2):
        center = at + _beside(direction, gap, half)
        yield _Spot(center, "center", 0.0, center, half)


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


def _write(ax: Axes, tree: Tree, drawn: _Drawn, v: int, name: str, spot: _Spot) -> Text:
    effects = import_extra("matplotlib.patheffects", "plot")
    hidden = v >= tree.n_observed
    inner = tree.degrees[v] > 1
    return ax.text(
        float(spot.anchor[0]), float(spot.anchor[1]), name,
        fontsize=drawn.font * (0.8 if hidden else 1.0),
        color=HIDDEN if hidden else INK, fontstyle="italic" if hidden else "normal",
        rotation=np.degrees(spot.rotation), rotation_mode="anchor",
        ha=spot.align, va="center", parse_math=False, zorder=5,
        path_effects=[effects.withStroke(linewidth=0.22 * drawn.font, foreground="white")]
        if inner else None,
    )  # fmt: skip


# Legend and frame -------------------------------------------------------------------------------


def _legend_entries(grouping: VariableGroups, any_negative: bool) -> list[Any]:
    lines = import_extra("matplotlib.lines", "plot")
    entries = [
        lines.Line2D(
            [], [], linestyle="none", marker=style.marker, color=style.color, markersize=5,
            markeredgewidth=0, label=text.shown(style.label),
        )
        for style in grouping.styles
        if style.label is not None
    ]  # fmt: skip
    if any_negative:
        entries.append(
            lines.Line2D([], [], color=NEGATIVE, linestyle=(0, (2.5, 1.5)), label="negative")
        )
    return entries


def _legend_size(entries: list[Any]) -> tuple[float, float]:
    """Width and height in points of the entries one below the other."""
    if not entries:
        return 0.0, 0.0
    widest = float(text.text_widths([entry.get_label() for entry in entries]).max())
    return (widest + 4.0) * LEGEND_SIZE + 2 * PAD, len(entries) * LEGEND_SIZE * 1.6 + 2 * PAD


def _draw_legend(ax: Axes, page: _Page, entries: list[Any]) -> Legend | None:
    if not entries:
        return None
    start = page.left + page.inner_width + 2 * PAD
    at_side = start < page.width
    return ax.legend(
        handles=entries, ncols=page.columns, fontsize=LEGEND_SIZE, frameon=False,
        loc="center left" if at_side else "lower center", borderpad=0, borderaxespad=0,
        bbox_to_anchor=(start / page.width, 0.5) if at_side else (0.5, PAD / page.height),
        handlelength=1.6, handletextpad=0.5, labelspacing=0.5, columnspacing=1.2,
        labelcolor=INK,
    )  # fmt: skip


def _frame(ax: Axes, page: _Page) -> None:
    """One data unit is one point, as long as the axes keep their size."""
    ax.set_xlim(0.0, page.width)
    ax.set_ylim(0.0, page.height)
    ax.set_aspect("equal")
    ax.set_axis_off()

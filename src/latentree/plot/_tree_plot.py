"""Drawing a tree with matplotlib."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from latentree._disk import write_bytes
from latentree.errors import DataError, DataWarning, import_extra
from latentree.models import (
    JOINED_BY,
    Model,
    Scored,
    TreeMixture,
    captions,
    component_of,
    edge_strengths,
    fitted_tree,
    tree_of,
)
from latentree.plot import _labels as text
from latentree.plot import _legend as legends
from latentree.plot._group_styles import VariableGroups, group_observed
from latentree.plot._legend import PageLayout
from latentree.plot._theme import DASHES, Theme, ThemeName, edge_shades, edge_width, theme_of
from latentree.plot._tree_layout import TreeLayout, layered_layout, radial_layout
from latentree.tree import GroupsLike, Tree
from latentree.typing import BoolArray, FloatArray, PathLike

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.typing import LineStyleType

    from latentree.support import Support

FEW = 30
"""Up to so many variables are drawn in layers rather than in a disc."""

LEAST_SHARE = 0.5
"""Share of the room that the tree keeps when labels want more: some of them are then left out."""

READABLE = 6.0
"""Points of letters from which a disc is not enlarged at the cost of its labels."""

INK = np.array([1.0, 0.85])
"""Share of a label's box, across and down, that edges must keep off: its letters."""

MANY = 2000
"""Nodes beyond which labels are not looked a second place for: it takes seconds."""

REAL_TEXT = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}
"""Settings under which fonts can be edited and searched, and journals take them."""

ANY_LENGTH = 1e6
"""Points that no picture reaches."""

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
    left_out : tuple of str
        Names of the nodes whose labels had no room.

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
    left_out: tuple[str, ...] = ()

    def save(self, path: PathLike, dpi: float = 200.0) -> None:
        """Write the figure to a file, which appears complete or not at all.

        Text stays text: in PDF with TrueType fonts, in SVG as it is.

        Parameters
        ----------
        path : path of the file
            Its suffix chooses the format: .pdf, .svg, .png, ….
        dpi : float
            Dots an inch of formats without lines.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from latentree import simulate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plot_tree(simulate.double_star(8)).save(Path(folder) / "tree.svg")
        ...     ">x0<" in (Path(folder) / "tree.svg").read_text("utf-8")
        True
        """
        figure = self.ax.get_figure(root=True)
        assert figure is not None
        data = io.BytesIO()
        with import_extra("matplotlib", "plot").rc_context(REAL_TEXT):
            figure.savefig(data, format=Path(path).suffix[1:].lower(), dpi=dpi)
        write_bytes(path, data.getvalue())


def plot_tree(
    model: Scored,
    ax: Axes | None = None,
    *,
    layout: Literal["auto", "radial", "layered"] = "auto",
    groups: GroupsLike | None = None,
    labels: bool = True,
    hidden_labels: bool = False,
    legend: bool = True,
    theme: ThemeName = "auto",
    lengths: bool = False,
    wrap: int | None = None,
    strength_legend: bool = False,
    title: str | None = None,
    support: Support | None = None,
    component: int | None = None,
) -> TreePlot:
    """Draw a tree or a model.

    Observed variables are filled dots with their names, hidden ones small hollow dots. The
    stronger the dependence along an edge, the wider and darker it is drawn; negative correlations
    are red and dashed. The sign of a hidden variable is a matter of convention: the picture takes
    the one that leaves least red. Components of a forest stand side by side.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree
        Strengths are those of :func:`latentree.models.edge_strengths`; only models have signs. Of a
        mixture one tree is drawn.
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
        Whether hidden variables are named too, where there is room: those of models that have no
        name but a number by the variables that they inform most about
        (:func:`latentree.models.captions`).
    legend : bool
        Whether groups and negative edges are explained.
    theme : {"auto", "light", "dark"}
        Colors for light or dark paper; ``auto`` goes by the background of the figure. A new figure
        has the paper of its theme.
    lengths : bool
        Draw every edge as long as its distance (:func:`latentree.models.fitted_tree`), in layers,
        with a scale.
    wrap : int, optional
        Characters of a line, of up to four, in labels. Without it labels have one line.
    strength_legend : bool
        Whether the legend shows how wide edges of some strengths are.
    title : str, optional
    support : Support, optional
        How sure the tree is: edges carry their transfer support in percent where there is room, and
        hidden variables in fewer than half of the replicates are dotted. By default that of a
        LatentTree fitted with ``n_bootstrap``.
    component : int, optional
        Of a mixture of trees, the number of the one to draw; by default that of the largest weight.

    Returns
    -------
    TreePlot
        The axes and everything drawn on them. A :class:`~latentree.errors.DataWarning` says how
        many labels had no room, and when the legend had none.

    Raises
    ------
    DataError
        If ``layout``, ``theme``, ``wrap`` or ``groups`` make no sense.
    ModelError
        If there is no such ``component``.
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
    if wrap is not None and wrap < 4:
        raise DataError(f"wrap is {wrap}, but a line has at least 4 characters")
    support = getattr(model, "support_", None) if support is None else support
    model = _one_tree(model, component)
    tree = tree_of(model)
    strength = _of_edges(tree, edge_strengths(model))
    grouping = group_observed(tree, groups)
    colors = theme_of(theme, ax)
    kind: Literal["radial", "layered"] = "layered" if lengths else _kind_of(layout, tree)
    names = _written_names(model, tree, labels, hidden_labels, wrap)
    widths, lines = text.text_widths(names), text.n_lines(names[: tree.n_observed])
    entries = legends.legend_entries(
        grouping, bool((strength < 0).any()), colors, legend, strength_legend
    )
    if support is not None and not np.array_equal(support.tree.parent, tree.parent):
        raise DataError("the support is that of another tree")
    if support is not None and legend:
        entries += legends.support_entries(bool(support.doubtful.any()), colors)
    placed = _lay_out(model, tree, kind, grouping, widths, lines, ax, lengths)
    if ax is None:
        ax = _new_axes(_figure_size(placed, widths, lines, entries), colors)
    page = PageLayout.of(ax, entries, _shape(placed), title is not None)
    drawn = _scaled(tree, placed, widths, lines, page)
    artists = _draw_edges(ax, drawn, strength, colors)
    observed, hidden = _draw_nodes(ax, tree, drawn, grouping, colors)
    wanted = np.array([bool(name) for name in names])
    boxes = _node_boxes(tree, drawn)
    if support is not None:
        _mark_doubtful(hidden, support)
        _write_support(ax, drawn, _of_edges(tree, support.edge_transfer), boxes, colors)
    written = _write_labels(ax, page, tree, drawn, names, widths, strength, wanted, colors, boxes)
    shown = legends.draw_legend(ax, page, entries, colors)
    if lengths:
        legends.draw_scale(ax, page, placed, drawn.across, colors)
    if title is not None:
        legends.draw_title(ax, page, title, colors)
    _frame(ax, page)
    left_out = tuple(
        name for name, want in zip(tree.names, wanted, strict=True) if want and name not in written
    )
    _warn(tree, left_out, bool(entries) and shown is None)
    return TreePlot(ax, *artists, observed, hidden, written, shown, left_out)


def _new_axes(size: tuple[float, float], theme: Theme) -> Axes:
    """Return the axes that fill a new figure of a size in inches."""
    plt = import_extra("matplotlib.pyplot", "plot")
    axes: Axes = plt.subplots(figsize=size, facecolor=theme.paper)[1]
    axes.set_position((0.0, 0.0, 1.0, 1.0))
    return axes


def _one_tree(model: Scored, component: int | None) -> Tree | Model:
    """Return a tree, a model, or one component of a mixture."""
    found: Tree | Model | TreeMixture = getattr(model, "model_", model)
    if component is None and not isinstance(found, TreeMixture):
        return found
    return component_of(found, component)  # type: ignore[arg-type]  # which refuses bare trees


def _written_names(
    model: Tree | Model, tree: Tree, labels: bool, hidden_labels: bool, wrap: int | None
) -> list[str]:
    """Names of the nodes as they are written; empty for those that are not."""
    own = list(tree.names)
    if hidden_labels and not isinstance(model, Tree):
        called = captions(model)
        own = [called.get(name, name) for name in own]
    n = tree.n_observed
    observed = text.wrapped(own[:n], wrap) if labels else [""] * n
    hidden = text.wrapped(own[n:], wrap) if hidden_labels else [""] * tree.n_hidden
    return observed + hidden


def _warn(tree: Tree, left_out: tuple[str, ...], no_legend: bool) -> None:
    """Say what had no room; that hidden variables have none is to be expected."""
    observed = set(tree.names[: tree.n_observed])
    count = sum(name in observed for name in left_out)
    if count:
        warnings.warn(
            f"{count:,} of {tree.n_observed:,} labels have no room: draw on larger axes, or say "
            "labels=False",
            DataWarning,
            stacklevel=3,
        )
    if no_legend:
        warnings.warn(
            "the legend has no room beside the tree: draw on larger axes, or say legend=False",
            DataWarning,
            stacklevel=3,
        )


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
    model: Tree | Model,
    tree: Tree,
    kind: str,
    grouping: VariableGroups,
    widths: FloatArray,
    lines: int,
    ax: Axes | None,
    lengths: bool,
) -> TreeLayout:
    """Return the layout; variables of one group stand side by side where the tree allows it."""
    order_by = np.zeros(tree.n_nodes)
    order_by[: tree.n_observed] = grouping.numbers  # neighbors of one color side by side
    if kind == "layered":
        if lengths and not isinstance(model, Tree):
            tree = fitted_tree(model)
        return layered_layout(tree, order_by, lengths)
    reach = widths[: tree.n_observed] / (text.LINE * lines) + 1.0
    aspect = 1.5
    if ax is not None:
        size = ax.get_window_extent()
        aspect = size.width / max(size.height, 1.0)
    return radial_layout(tree, order_by, reach, aspect)


# Sizes ------------------------------------------------------------------------------------------


class _ScaledLayout(NamedTuple):
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


def _shape(placed: TreeLayout) -> FloatArray:
    """Width and height of a picture, up to a factor; layers take any shape."""
    if placed.kind == "layered":
        return np.array([1.0, 1.0])
    spread: FloatArray = np.maximum(np.ptp(placed.position, axis=0), 1.0)
    return spread


def _figure_size(
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

    @classmethod
    def of(cls, placed: TreeLayout, widths: FloatArray, lines: int) -> _Measured:
        points = np.concatenate([placed.position, placed.paths.reshape(-1, 2)])
        return cls(placed, widths, lines, points.min(axis=0), points.max(axis=0))

    def bounds(self, scale: FloatArray, labeled: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return the corners of the picture at a scale, with or without its labels."""
        unit, named = float(scale[1]), self.widths > 0
        low, high = self.low * scale - _dot(unit) / 2, self.high * scale + _dot(unit) / 2
        if not (labeled and named.any()):
            return low, high
        n = self.widths.size
        angle, font = self.placed.angle[:n], text.font_size(unit, self.lines)
        out = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        reach = np.where(named, self.widths * font + _gap(unit, self.lines), 0.0)
        ends = self.placed.position[:n] * scale + out * reach[:, None]
        half = font * text.LINE * self.lines / 2
        return np.minimum(low, ends.min(axis=0) - half), np.maximum(high, ends.max(axis=0) + half)

    def largest(self, scale_of: Callable[[float], FloatArray], room: tuple[float, float]) -> float:
        """Return the largest scale at which labels fit too, or a share of the tree's own."""

        def extent(scale: FloatArray, labeled: bool) -> tuple[float, float]:
            low, high = self.bounds(scale, labeled)
            return float(high[0] - low[0]), float(high[1] - low[1])

        with_labels = text.fit(lambda s: extent(scale_of(s), True), room)
        if self.placed.kind == "radial" and text.font_size(with_labels, self.lines) >= READABLE:
            return with_labels
        alone = text.fit(lambda s: extent(scale_of(s), False), room)
        return max(with_labels, LEAST_SHARE * alone)


def _scaled(
    tree: Tree, placed: TreeLayout, widths: FloatArray, lines: int, page: PageLayout
) -> _ScaledLayout:
    """Fill the page: the largest scale at which everything, labels too, is inside."""
    measured = _Measured.of(placed, widths[: tree.n_observed], lines)
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
    return _ScaledLayout(
        placed.kind,
        placed.position * scale + shift,
        placed.angle,
        placed.has_slot,
        placed.paths * scale + shift,
        text.font_size(unit, lines),
        _dot(unit),
        unit >= text.SMALLEST * text.LINE * lines,
        lines,
        float(scale[0]),
    )


def _dot(unit: float) -> float:
    """Diameter of an observed node."""
    return float(np.clip(0.5 * unit, 1.5, 5.5))


def _gap(unit: float, lines: int) -> float:
    """From the center of a node to its label."""
    return 0.5 * _dot(unit) + 0.3 * text.font_size(unit, lines)


# Edges and nodes --------------------------------------------------------------------------------


def _draw_edges(
    ax: Axes, drawn: _ScaledLayout, strength: FloatArray, theme: Theme
) -> tuple[LineCollection, LineCollection]:
    """Draw positive and negative edges, wider and darker the stronger they are."""
    collections = import_extra("matplotlib.collections", "plot")
    thickness = np.clip(drawn.dot / 4.0, 0.4, 1.0)

    def lines(which: BoolArray, color: str, style: LineStyleType) -> LineCollection:
        power = np.abs(strength[which])
        drawn_lines: LineCollection = collections.LineCollection(
            list(drawn.paths[which]),
            colors=edge_shades(color, power, theme.paper),
            linewidths=thickness * edge_width(power),
            linestyles=style,
            capstyle="butt" if style != "solid" else "round",
            zorder=1,
        )
        ax.add_collection(drawn_lines, autolim=False)
        return drawn_lines

    negative = strength < 0
    return lines(~negative, theme.edge, "solid"), lines(negative, theme.negative, DASHES)


def _draw_nodes(
    ax: Axes, tree: Tree, drawn: _ScaledLayout, grouping: VariableGroups, theme: Theme
) -> tuple[list[PathCollection], PathCollection]:
    """Draw the observed nodes group by group, and the hidden ones."""
    n = tree.n_observed
    numbers = np.array(grouping.numbers)
    small = 0.8 * drawn.dot
    x, y = drawn.position.T
    hidden = ax.scatter(
        x[n:], y[n:], s=small**2, facecolors=theme.paper, edgecolors=theme.hidden,
        linewidths=0.22 * small, zorder=2,
    )  # fmt: skip
    observed = [
        ax.scatter(
            x[:n][numbers == i], y[:n][numbers == i], s=drawn.dot**2,
            color=theme.of_group(style),
            marker=style.marker, linewidths=0, zorder=3,
        )
        for i, style in enumerate(grouping.styles)
    ]  # fmt: skip
    return observed, hidden


# Labels -----------------------------------------------------------------------------------------


class _LabelPlace(NamedTuple):
    """A place for a label: where it starts, how it is aligned, and the box it fills."""

    anchor: FloatArray
    align: str
    rotation: float
    center: FloatArray
    half: FloatArray


def _write_labels(
    ax: Axes,
    page: PageLayout,
    tree: Tree,
    drawn: _ScaledLayout,
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


def _node_boxes(tree: Tree, drawn: _ScaledLayout) -> text.OccupiedBoxes:
    """Return the space that the nodes take; labels are added to it."""
    boxes = text.OccupiedBoxes(3 * tree.n_nodes, cell=4 * drawn.font)
    for center in drawn.position:
        boxes.add(center, np.full(2, drawn.dot / 2), 0.0)
    return boxes


def _mark_doubtful(hidden: PathCollection, support: Support) -> None:
    """Dot the outlines of hidden variables that few replicates have."""
    if support.doubtful.any():
        hidden.set_linestyle(
            [legends.DOTTED if doubtful else "solid" for doubtful in support.doubtful]
        )


def _write_support(
    ax: Axes, drawn: _ScaledLayout, support: FloatArray, boxes: text.OccupiedBoxes, theme: Theme
) -> None:
    """Write the support of edges in percent at their middles, the most doubtful first."""
    font = min(0.75 * drawn.font, 7.0)
    for edge in np.argsort(support)[:MOST_LABELS]:
        if np.isnan(support[edge]):
            break
        number = f"{100.0 * support[edge]:.0f}"
        center = _middle(drawn.paths[edge])
        half = np.array([0.3 * font * len(number), 0.4 * font])
        if boxes.is_free(center, half, 0.0):
            boxes.add(center, half, 0.0)
            ax.text(
                float(center[0]), float(center[1]), number, fontsize=font, ha="center",
                va="center", color=theme.negative if support[edge] < 0.5 else theme.ink, zorder=4,
                bbox=_patch(theme),
            )  # fmt: skip


def _patch(theme: Theme) -> dict[str, str]:
    """Paper behind text that edges run below. An outline of the letters would make them shapes."""
    return {"boxstyle": "square,pad=0.06", "facecolor": theme.paper, "edgecolor": "none"}


def _middle(path: FloatArray) -> FloatArray:
    """The point halfway along a line."""
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    along = np.append(0.0, np.cumsum(steps))
    return np.array([np.interp(along[-1] / 2, along, path[:, axis]) for axis in range(2)])


def _by_importance(tree: Tree, drawn: _ScaledLayout, strength: FloatArray) -> list[int]:
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


def _spots(tree: Tree, drawn: _ScaledLayout, v: int, width: float) -> Iterator[_LabelPlace]:
    """Places for a label: along its own slot, and beside the node for want of that."""
    font = drawn.font * (1.0 if v < tree.n_observed else 0.8)
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
    ax: Axes, tree: Tree, drawn: _ScaledLayout, v: int, name: str, spot: _LabelPlace, theme: Theme
) -> Text:
    """Write a label at its place."""
    hidden = v >= tree.n_observed
    over_edges = tree.degrees[v] > 1 or spot.align == "center"
    return ax.text(
        float(spot.anchor[0]), float(spot.anchor[1]), name,
        fontsize=drawn.font * (0.8 if hidden else 1.0),
        color=theme.hidden if hidden else theme.ink, fontstyle="italic" if hidden else "normal",
        rotation=np.degrees(spot.rotation), rotation_mode="anchor",
        ha=spot.align, va="center", ma=spot.align, parse_math=False, zorder=5,
        bbox=_patch(theme) if over_edges else None, linespacing=text.LINE,
    )  # fmt: skip


# Frame -----------------------------------------------------------------------------------------


def _frame(ax: Axes, page: PageLayout) -> None:
    """One data unit is one point, as long as the axes keep their size."""
    ax.set_xlim(0.0, page.width)
    ax.set_ylim(0.0, page.height)
    ax.set_aspect("equal")
    ax.set_axis_off()

"""Drawing a tree with matplotlib."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latentree._disk import write_bytes
from latentree.errors import DataError, DataWarning, import_extra
from latentree.models import (
    CopulaTreeModel,
    DiscreteTreeModel,
    GaussianTreeModel,
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
from latentree.plot._label_places import draw_strip, node_boxes, write_labels, write_on_edges
from latentree.plot._legend import PageLayout
from latentree.plot._scaling import (
    COLUMNS,
    MILLIMETERS,
    ScaledLayout,
    aspects_of,
    column_font,
    column_size,
    figure_size,
    picture_shape,
    scaled_layout,
)
from latentree.plot._theme import DASHES, Theme, ThemeName, edge_shades, edge_width, theme_of
from latentree.plot._tree_layout import FEW_VARIABLES, TreeLayout, layered_layout, radial_layout
from latentree.tree import GroupsLike, Tree
from latentree.typing import BoolArray, FloatArray, PathLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.typing import LineStyleType

    from latentree.support import Support

STRIP = 1.4
"""Width of a strip of colors with the gap before it, in units of the labels' size."""


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
        The observed nodes, one collection per group.
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
        with import_extra("matplotlib", "plot").rc_context(_figures().real_text()):
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
    size: Literal["single-column", "double-column"] | None = None,
    edge_labels: Literal["support", "strength"] = "support",
    group_strip: bool = False,
) -> TreePlot:
    """Draw a tree or a model.

    Observed variables are filled dots with their names, hidden ones small hollow dots. The
    stronger the dependence along an edge, the wider and darker it is drawn; negative correlations
    are red and dashed. The sign of a hidden variable is a matter of convention: the picture chooses
    the signs that leave least red. Components of a forest stand side by side.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree
        Strengths are those of :func:`latentree.models.edge_strengths`; only models have signs. Of a
        mixture, one tree is drawn.
    ax : matplotlib Axes, optional
        Where to draw: the picture and its legend fill it. A new figure of fitting size when left
        out. Label sizes suit the size that the axes have now.
    layout : {"auto", "radial", "layered"}
        ``radial``: the middle of the tree in the center, its branches all around. ``layered``: from
        left to right, one row per variable. ``auto`` takes layers for up to 30 variables.
    groups : mapping from names to groups, or one group per observed variable, optional
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
        Colors for a light or a dark background; ``auto`` goes by the background of the figure. A
        new figure gets the background of its theme.
    lengths : bool
        Draw every edge as long as its distance (:func:`latentree.models.fitted_tree`), in layers,
        with a scale.
    wrap : int, optional
        Characters per line of a label, which has up to four lines. By default labels have one.
    strength_legend : bool
        Whether the legend shows how wide edges of some strengths are.
    title : str, optional
    support : Support, optional
        How sure the tree is: edges carry their ``edge_support`` in percent where there is room, and
        hidden variables in fewer than half of the replicates are dotted. By default that of a
        LatentTree fitted with ``n_bootstrap``.
    component : int, optional
        Of a mixture of trees, the number of the one to draw; by default that of the largest weight.
    size : {"single-column", "double-column"}, optional
        A new figure of 89 or 183 mm across, as journals such as Nature ask for, with text of 5 to
        7 points. Height follows from the tree, up to a page of 247 mm; long names are wrapped. One
        column has room for about 100 short names, two for 300.
    edge_labels : {"support", "strength"}
        What numbers at edges are: support in percent, if there is any, or strengths. The strength
        of an edge to a hidden variable is the loading of a variable next to it.
    group_strip : bool
        Whether a strip beside the labels shows the color of each variable's group.

    Returns
    -------
    TreePlot
        The axes and everything drawn on them. A :class:`~latentree.errors.DataWarning` says how
        many labels had no room, and when the legend had none.

    Raises
    ------
    DataError
        If ``layout``, ``theme``, ``wrap``, ``size``, ``edge_labels`` or ``groups`` make no sense.
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
    _check_choices(size, ax, edge_labels)
    support = getattr(model, "support_", None) if support is None else support
    model = _one_tree(model, component)
    tree = tree_of(model)
    strength = _of_edges(tree, edge_strengths(model))
    grouping = group_observed(tree, groups)
    colors = theme_of(theme, ax)
    kind: Literal["radial", "layered"] = "layered" if lengths else _kind_of(layout, tree)
    if size is not None and wrap is None and kind == "layered":
        wrap = _column_wrap(size, tree)
    names = _written_names(model, tree, labels, hidden_labels, wrap)
    widths, lines = text.text_widths(names), text.n_lines(names[: tree.n_observed])
    room = widths + (STRIP if group_strip else 0.0)
    entries = legends.legend_entries(
        grouping,
        bool((strength < 0).any()),
        colors,
        legend,
        _measure_of(model) if strength_legend else "",
    )
    if support is not None and not np.array_equal(support.tree.parent, tree.parent):
        raise DataError("the support is that of another tree")
    if support is not None and legend:
        entries += legends.support_entries(support, colors)
    aspects = aspects_of(ax, size)
    for aspect in aspects:
        placed = _lay_out(model, tree, kind, grouping, room, lines, aspect, lengths)
        if size is None or column_font(size, placed, room, lines) >= text.JOURNAL.largest:
            break
    if ax is None:
        inches = (
            figure_size(placed, room, lines, entries)
            if size is None
            else column_size(size, placed, room, lines, entries)
        )
        ax = _new_axes(inches, colors)
    letters = text.FREE if size is None else text.JOURNAL
    page = PageLayout.of(
        ax, entries, picture_shape(placed), title is not None, size is not None, letters.largest
    )
    drawn = scaled_layout(tree, placed, room, lines, page, letters)
    artists = _draw_edges(ax, drawn, strength, colors)
    observed, hidden = _draw_nodes(ax, tree, drawn, grouping, colors)
    wanted = np.array([bool(name) for name in names])
    boxes = node_boxes(tree, drawn)
    if support is not None:
        _mark_doubtful(hidden, support)
    if group_strip:
        of_group = [colors.of_group(style) for style in grouping.styles]
        draw_strip(ax, tree, drawn, widths, [of_group[i] for i in grouping.numbers])
    written = write_labels(ax, page, tree, drawn, names, widths, strength, wanted, colors, boxes)
    _write_numbers(ax, tree, drawn, model, support, edge_labels, boxes, colors)
    shown = legends.draw_legend(ax, page, entries, colors)
    if lengths:
        legends.draw_scale(ax, page, placed, drawn.across, colors)
    if title is not None:
        legends.draw_title(ax, page, title, colors)
    _frame(ax, page)
    _name_parts(ax, tree, grouping, strength)
    left_out = tuple(
        name for name, want in zip(tree.names, wanted, strict=True) if want and name not in written
    )
    _warn(tree, left_out, bool(entries) and shown is None)
    return TreePlot(ax, *artists, observed, hidden, written, shown, left_out)


def _new_axes(size: tuple[float, float], theme: Theme) -> Axes:
    """Return the axes that fill a new figure of a size in inches."""
    plt = import_extra("matplotlib.pyplot", "plot")
    figure = plt.figure(FigureClass=_figures().TreeFigure, figsize=size, facecolor=theme.paper)
    axes: Axes = figure.add_subplot()
    axes.set_position((0.0, 0.0, 1.0, 1.0))
    return axes


def _figures() -> Any:
    """Return the module of figures, which needs matplotlib."""
    import_extra("matplotlib", "plot")
    from latentree.plot import _figure

    return _figure


def _check_choices(size: str | None, ax: Axes | None, edge_labels: str) -> None:
    if size is not None and size not in COLUMNS:
        raise DataError(f"size is {size!r}, but must be 'single-column' or 'double-column'")
    if size is not None and ax is not None:
        raise DataError("size is of a new figure: leave out ax")
    if edge_labels not in ("support", "strength"):
        raise DataError(f"edge_labels is {edge_labels!r}, but must be 'support' or 'strength'")


def _column_wrap(size: str, tree: Tree) -> int | None:
    """Characters of a line where names may take two fifths of a column; None where all fit."""
    most = int(0.4 * COLUMNS[size] / MILLIMETERS * 72 / (0.6 * text.JOURNAL.largest))
    longest = max(len(name) for name in tree.names[: tree.n_observed])
    return most if longest > most else None


def _write_numbers(
    ax: Axes,
    tree: Tree,
    drawn: ScaledLayout,
    model: Tree | Model,
    support: Support | None,
    what: str,
    boxes: text.OccupiedBoxes,
    theme: Theme,
) -> None:
    """Write support, the most doubtful first, or strengths, the strongest first, on edges."""
    if what == "strength":
        values = _of_edges(tree, edge_strengths(model))
        order = np.argsort(-np.abs(values), kind="stable").tolist()
        numbers = {edge: f"{values[edge]:.2f}".replace("-", "\u2212") for edge in order}
        write_on_edges(ax, drawn, numbers, values < 0, boxes, theme)
    elif support is not None:
        sure = _of_edges(tree, support.edge_support)
        order = [edge for edge in np.argsort(sure).tolist() if not np.isnan(sure[edge])]
        numbers = {edge: f"{100.0 * sure[edge]:.0f}" for edge in order}
        write_on_edges(ax, drawn, numbers, sure < 0.5, boxes, theme)


def _name_parts(ax: Axes, tree: Tree, grouping: VariableGroups, strength: FloatArray) -> None:
    """Give every edge and node an id in SVG, in the order in which they were drawn."""
    figure = ax.get_figure(root=True)
    if not isinstance(figure, _figures().TreeFigure):
        return
    names = np.array(tree.names, object)
    edges = np.array([f"{names[a]}--{names[b]}" for a, b in tree.edges.tolist()], object)
    numbers = np.array(grouping.numbers)
    negative = strength < 0
    own = [edges[~negative], edges[negative], names[tree.hidden]]
    own += [names[: tree.n_observed][numbers == i] for i in range(len(grouping.styles))]
    kinds = ["edge", "negative-edge", "hidden"] + ["node"] * len(grouping.styles)
    for number, (artist, kind, parts) in enumerate(zip(ax.collections, kinds, own, strict=False)):
        artist.set_gid(f"{kind}-group-{number}")
        figure.name_parts(f"{kind}-group-{number}", kind, parts)


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
        return "layered" if tree.n_observed <= FEW_VARIABLES else "radial"
    if layout not in ("radial", "layered"):
        raise DataError(f"layout is {layout!r}, but must be 'auto', 'radial' or 'layered'")
    return layout


def _measure_of(model: Tree | Model) -> str:
    """Return what the strengths of all edges are, if that is one thing."""
    if isinstance(model, GaussianTreeModel | CopulaTreeModel):
        return "correlation"
    return "Cramér's V" if isinstance(model, DiscreteTreeModel) else "strength"


def _of_edges(tree: Tree, by_node: FloatArray) -> FloatArray:
    return by_node[tree.edges[:, 1]]


def _lay_out(
    model: Tree | Model,
    tree: Tree,
    kind: str,
    grouping: VariableGroups,
    widths: FloatArray,
    lines: int,
    aspect: float,
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
    return radial_layout(tree, order_by, reach, aspect)


# Edges and nodes --------------------------------------------------------------------------------


def _draw_edges(
    ax: Axes, drawn: ScaledLayout, strength: FloatArray, theme: Theme
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
    ax: Axes, tree: Tree, drawn: ScaledLayout, grouping: VariableGroups, theme: Theme
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


def _mark_doubtful(hidden: PathCollection, support: Support) -> None:
    """Dot the outlines of hidden variables that few replicates have."""
    if support.doubtful.any():
        hidden.set_linestyle(
            [legends.DOTTED if doubtful else "solid" for doubtful in support.doubtful]
        )


# Frame -----------------------------------------------------------------------------------------


def _frame(ax: Axes, page: PageLayout) -> None:
    """One data unit is one point, as long as the axes keep their size."""
    ax.set_xlim(0.0, page.width)
    ax.set_ylim(0.0, page.height)
    ax.set_aspect("equal")
    ax.set_axis_off()

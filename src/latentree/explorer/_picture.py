"""The picture of a tree as the page draws it: positions of nodes and curves of edges."""

from __future__ import annotations

import numpy as np

from latentree.explorer._packed import PageData, packed
from latentree.plot import TreeLayout, VariableGroups, layered_layout, radial_layout
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

ASPECT = 1.4
"""Width to height of the window that the components of a forest are packed for."""

TOLERANCE = 0.04
"""Rows by which the curves of the page may leave those of the layout: 1 pixel if a row has 25."""

LONGEST = 30
"""Characters of a label; the page cuts longer names."""

PIECES = (1, 2, 3, 4, 6, 8, 12, 24)
"""Numbers of parabolas that are tried in turn; each divides half the steps of a path."""


def picture(tree: Tree, lengths: FloatArray, grouping: VariableGroups) -> PageData:
    """Return both layouts of a tree, in rows of text with y downward.

    ``parent`` is the neighbor of every node toward the middle of the tree. Of each layout there
    are ``x``, ``y``, ``angle`` and ``slot`` of the nodes (see
    :class:`latentree.plot.TreeLayout`) and the ``points`` of the edge to each node from the
    middle: those of node v from ``starts[v]`` to ``starts[v + 1]``, a start and then the control
    point and the end of every parabola. The first and the last point of an edge are left out: they
    are the places of nodes. In the layered layout x is the level from 0 to 1: the page stretches it
    to its window. ``halves`` are the ends of edges with the middle of a component on
    them, and the center of its disc. Where edges are as long as their distances, ``lengths``, only
    x differs from the layered layout: the page draws the same curves between other levels.
    ``longest`` is the distance of level 1.
    """
    order_by = np.zeros(tree.n_nodes)
    order_by[: tree.n_observed] = grouping.numbers
    radial = radial_layout(tree, order_by, _label_lengths(tree), ASPECT)
    layered = layered_layout(tree, order_by)
    far = layered_layout(tree.with_lengths(lengths), order_by, lengths=True)
    rows = float(np.ptp(layered.position[:, 1])) + 1.0
    return {
        "parent": packed(radial.parent, "<i4"),
        "radial": _plain_layout(tree, radial, 1.0),
        "layered": _plain_layout(tree, layered, ASPECT * rows),
        "lengths": {"x": packed(far.position[:, 0], "<f4"), "longest": far.longest},
        "halves": _halves(tree, radial),
    }


def _halves(tree: Tree, radial: TreeLayout) -> list[list[float]]:
    """Both ends of every edge across a center, and the center: an edge is a parabola about it."""
    number = {frozenset(ends): i for i, ends in enumerate(tree.edges.tolist())}
    out: list[list[float]] = []
    for first, second in radial.halves.tolist():
        path = radial.paths[number[frozenset((first, second))]]
        u = np.linspace(0.0, 1.0, len(path))[len(path) // 2]
        # p = (1 − u)²·a + 2u(1 − u)·c + u²·b with the center c as control point
        ends = (1 - u) ** 2 * path[0] + u**2 * path[-1]
        x, y = (path[len(path) // 2] - ends) / (2 * u * (1 - u))
        out.append([first, second, float(x), float(-y)])
    return out


def _label_lengths(tree: Tree) -> FloatArray:
    """Rows that the labels are long: about 0.6 of their height a character, and a gap."""
    return np.array([0.6 * min(len(name), LONGEST) + 1.0 for name in tree.names[: tree.n_observed]])


def _plain_layout(tree: Tree, layout: TreeLayout, width: float) -> PageData:
    """Return a layout as plain values, edges as parabolas."""
    upper, lower = tree.edges.T
    outer = np.where(layout.parent[lower] == upper, lower, upper)
    points, counts = _parabolas(layout.paths[np.argsort(outer)] * (1.0, -1.0), width)
    by_node = np.zeros(tree.n_nodes + 1, np.int64)
    by_node[np.sort(outer) + 1] = counts
    starts = np.cumsum(by_node)
    for second in layout.halves[:, 1].tolist():  # across a middle a path may run either way
        own = slice(starts[second], starts[second + 1])
        if not np.allclose(points[own][-1] * (1.0, -1.0), layout.position[second]):
            points[own] = points[own][::-1].copy()
    inner = np.ones(len(points), bool)
    inner[starts[np.sort(outer)]] = inner[starts[np.sort(outer) + 1] - 1] = False
    return {
        "x": packed(layout.position[:, 0], "<f4"),
        "y": packed(-layout.position[:, 1], "<f4"),
        "angle": packed(-layout.angle, "<f4"),
        "slot": packed(layout.has_slot, "u1"),
        "starts": packed(starts, "<i4"),
        "points": packed(points[inner], "<f4"),
    }


def _parabolas(paths: FloatArray, width: float) -> tuple[FloatArray, IntArray]:
    """Return paths as chains of parabolas, end to end, and the number of points of each.

    As few parabolas as stay within the tolerance, x being ``width`` times as long as y. The last
    segment of a path is straight, and a parabola of its own unless it is empty.
    """
    straight = np.hypot(*(paths[:, -1] - paths[:, -2]).T) > 0
    out = np.empty((len(paths), 2 * PIECES[-1] + 3, 2))
    counts = np.empty(len(paths), np.int64)
    waiting = np.arange(len(paths))
    for pieces in PIECES:
        chain, off = _chain(paths[waiting, :-1], pieces, width)
        good = (off <= TOLERANCE) | (pieces == PIECES[-1])
        done, n = waiting[good], 2 * pieces + 1
        out[done, :n] = chain[good]
        out[done, n] = (paths[done, -2] + paths[done, -1]) / 2
        out[done, n + 1] = paths[done, -1]
        counts[done] = n + 2 * straight[done]
        waiting = waiting[~good]
    return out[np.arange(out.shape[1]) < counts[:, None]], counts


def _chain(curves: FloatArray, pieces: int, width: float) -> tuple[FloatArray, FloatArray]:
    """Return so many parabolas along each curve, and how far they leave it.

    The parabola a·(1 − t)² + 2c·t(1 − t) + b·t² through a, the point m halfway and b has its
    control point at c = 2m − (a + b)/2.
    """
    n_steps = curves.shape[1] - 1
    size = n_steps // pieces
    a, b = curves[:, :-1:size], curves[:, size::size]
    c = 2 * curves[:, size // 2 :: size] - (a + b) / 2
    t = (np.arange(size) / size)[:, None]
    drawn = [(1 - t) ** 2 * a[:, i, None] + 2 * t * (1 - t) * c[:, i, None] + t**2 * b[:, i, None]
             for i in range(pieces)]  # fmt: skip
    off = (np.concatenate(drawn, axis=1) - curves[:, :-1]) * (width, 1.0)
    chain = np.empty((len(curves), 2 * pieces + 1, 2))
    chain[:, ::2], chain[:, 1::2] = curves[:, ::size], c
    return chain, np.hypot(off[..., 0], off[..., 1]).max(axis=1, initial=0.0)

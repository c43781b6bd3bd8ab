"""A light picture of a tree as SVG, without a drawing library: what notebooks show."""

from __future__ import annotations

from html import escape

import numpy as np

from latentree.models import (
    Scored,
    TreeMixture,
    captions,
    component_of,
    edge_strengths,
    tree_of,
)
from latentree.plot._labels import shown
from latentree.plot._tree_layout import FEW_VARIABLES, TreeLayout, layered_layout, radial_layout
from latentree.tree import Tree
from latentree.typing import FloatArray

MOST_NODES = 400
"""Beyond that a small picture shows nothing."""

ROW, FONT = 14.0, 11.0
"""Pixels of a row of text, and of its letters."""

WIDTH = 560.0
"""Pixels of the tree in layers, without the names: half of a usual page."""

LETTER = 0.6 * FONT
"""About the width of a letter."""

LONGEST = 24
"""Characters of a name; longer ones are cut."""

POINTS = 8
"""Points of a curve: no bend is seen between them at this size."""


def svg_picture(model: Scored) -> str:
    """Return a picture that takes the color of the text around it; empty for large trees.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree
        Of a mixture the tree with the largest weight is drawn.

    Returns
    -------
    str
        An ``svg`` element of less than 60 kB.
    """
    model = getattr(model, "model_", model)
    if isinstance(model, TreeMixture):
        model = component_of(model)
    tree = tree_of(model)
    if tree.n_nodes > MOST_NODES:
        return ""
    names = shown(tree.names, LONGEST)
    placed, scale = _placed(tree, names)
    at, paths = _points(placed.position, scale), _points(placed.paths, scale)
    reach = np.array([LETTER * len(name) + 8.0 for name in names[: tree.n_observed]])
    out = np.stack([np.cos(placed.angle), -np.sin(placed.angle)], axis=1)[: tree.n_observed]
    ends = np.concatenate([at[: tree.n_observed] + out * reach[:, None], paths.reshape(-1, 2), at])
    low, high = ends.min(axis=0) - 8.0, ends.max(axis=0) + 8.0
    wide, tall = np.ceil(high - low)
    parts = [
        *_edges(paths, edge_strengths(model)[tree.edges[:, 1]]),
        *_nodes(model, tree, at),
        *_names(tree, names, at, placed.angle),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(repr(tree))}" '
        f'viewBox="{low[0]:.0f} {low[1]:.0f} {wide:.0f} {tall:.0f}" '
        f'style="max-width:{wide:.0f}px;width:100%;color:inherit" font-size="{FONT:g}" '
        f'font-family="sans-serif">{"".join(parts)}</svg>'
    )


def _placed(tree: Tree, names: list[str]) -> tuple[TreeLayout, FloatArray]:
    if tree.n_observed <= FEW_VARIABLES:
        return layered_layout(tree), np.array([WIDTH / 2, -ROW])
    reach = [LETTER * len(name) / ROW + 1.0 for name in names[: tree.n_observed]]
    return radial_layout(tree, reach=reach, aspect=1.5), np.array([ROW, -ROW])


def _points(given: FloatArray, scale: FloatArray) -> FloatArray:
    return np.asarray(given * scale)


def _edges(paths: FloatArray, strength: FloatArray) -> list[str]:
    keep = np.linspace(0, paths.shape[1] - 1, POINTS).round().astype(np.int64)
    parts = []
    for path, power in zip(paths[:, keep], strength.tolist(), strict=True):
        points = " ".join(f"{x:.0f},{y:.0f}" for x, y in path.tolist())
        look = f'stroke-width="{0.6 + 2 * abs(power):.1f}" opacity="{0.4 + 0.5 * abs(power):.2f}"'
        dash = ' stroke="#d0503f" stroke-dasharray="4 3"' if power < 0 else ""
        parts.append(f'<polyline points="{points}" {look}{dash}/>')
    return [f'<g fill="none" stroke="currentColor">{"".join(parts)}</g>']


def _nodes(model: Scored, tree: Tree, at: FloatArray) -> list[str]:
    """Filled dots, and hollow ones that say what they are when pointed at."""
    called = {} if isinstance(model, Tree) else captions(model)
    parts = []
    for v, (x, y) in enumerate(at.tolist()):
        if v < tree.n_observed:
            parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="#3b8fbc"/>')
        else:
            name = tree.names[v]
            title = f"<title>{escape(called.get(name, name))}</title>"
            parts.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="#888" fill-opacity="0.25" '
                f'stroke="currentColor">{title}</circle>'
            )
    return parts


def _names(tree: Tree, names: list[str], at: FloatArray, angle: FloatArray) -> list[str]:
    """Return the labels, turned so that they read from left to right."""
    parts = []
    for v in range(tree.n_observed):
        turn = -np.degrees(angle[v])
        turned = np.cos(angle[v]) < -1e-9
        place = f"translate({at[v, 0]:.0f} {at[v, 1]:.0f})"
        rotate = f" rotate({turn + (180 if turned else 0):.0f})" if abs(turn) > 0.5 else ""
        anchor = ' text-anchor="end" x="-6"' if turned else ' x="6"'
        where = f'transform="{place}{rotate}" dy="0.35em"{anchor}'
        parts.append(f"<text {where}>{escape(names[v])}</text>")
    return [f'<g fill="currentColor">{"".join(parts)}</g>']

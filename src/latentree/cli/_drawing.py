"""The tree of a model drawn in characters, in lines that stay short however deep the tree is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rich.text import Text

from latentree.cli._screen import Screen, plural
from latentree.models import CopulaTreeModel, DiscreteTreeModel, GaussianTreeModel, Model
from latentree.models import edge_strengths as strengths_of
from latentree.support import Support
from latentree.tree import Tree, TreeCut
from latentree.typing import FloatArray

MOST_NODES = 400
"""Nodes that are drawn where not all are asked for: about 250 variables and what is hidden."""

_LONGEST = 40
"""Characters of a name: with the deepest branch and its numbers a line has up to 80."""

_COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
"""Colors of groups that can be told apart on light and dark terminals."""

_GROUP_STYLES = (*_COLORS, *(f"{color} underline" for color in _COLORS))


class TreeLine(NamedTuple):
    """A line of the drawing: what stands before the name of a node, and the edge to its left."""

    stem: str
    node: int
    edge: int
    """The lower end of the edge to the node that it hangs from; −1 for a node that a tree begins
    with."""


def outline(tree: Tree, strength: FloatArray) -> list[TreeLine]:
    """Return a line for every node, tree by tree; single nodes are left out.

    A tree begins with the node whose largest branch has the fewest variables. Branches are
    indented, leaves first, stronger edges above. But a branch that holds more than half of the
    variables below a node, and branches itself, goes on along the same line: a tree of m variables
    is indented at most log₂ m + 1 times.

    Parameters
    ----------
    tree : Tree
    strength : array of float, one per node
        Of the edge above each node.
    """
    lines: list[TreeLine] = []
    for first in _middles(tree):
        below = _Rooted(tree, first)
        pending = [(TreeLine("", first, -1), "")]
        while pending:
            line, indent = pending.pop()
            lines.append(line)
            pending += reversed(below.branches(line.node, indent, strength))
    return lines


class _Rooted:
    """A tree seen from a node: what is above each node, how much is below it, and how deep."""

    def __init__(self, tree: Tree, first: int) -> None:
        self.tree = tree
        self.above = {first: -1}
        order = [first]
        for node in order:
            for other in tree.neighbors(node).tolist():
                if other != self.above[node]:
                    self.above[other] = node
                    order.append(other)
        self.n_variables = {node: int(node < tree.n_observed) for node in order}
        self.height = dict.fromkeys(order, 0)
        for node in reversed(order[1:]):
            above = self.above[node]
            self.n_variables[above] += self.n_variables[node]
            self.height[above] = max(self.height[above], self.height[node] + 1)

    def branches(self, node: int, indent: str, strength: FloatArray) -> list[tuple[TreeLine, str]]:
        """Return the lines that hang from a node, each with the indent of what hangs from it."""
        edges = {
            other: other if self.tree.parent[other] == node else node
            for other in self.tree.neighbors(node).tolist()
            if other != self.above[node]
        }
        n_below = self.n_variables[node] - (node < self.tree.n_observed)
        trunk = [
            other
            for other in edges
            if 2 * self.n_variables[other] > n_below and self.height[other] > 1
        ]
        rest = sorted(
            set(edges) - set(trunk),
            key=lambda other: (self.height[other] > 0, -abs(strength[edges[other]]), other),
        )
        found = []
        for other in rest:
            is_last = other == rest[-1] and not trunk
            stem, inner = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            found.append((TreeLine(indent + stem, other, edges[other]), indent + inner))
        return found + [(TreeLine(f"{indent}●─ ", o, edges[o]), indent) for o in trunk]


def _middles(tree: Tree) -> list[int]:
    """Return for every tree of several nodes the one whose largest branch has fewest variables."""
    found = []
    for root in tree.roots.tolist():
        if not tree.neighbors(root).size:
            continue
        below = _Rooted(tree, root)
        total = below.n_variables[root]

        def largest(node: int, below: _Rooted = below, total: int = total) -> int:
            sizes = [
                below.n_variables[other] if below.above[other] == node
                else total - below.n_variables[node]
                for other in tree.neighbors(node).tolist()
            ]  # fmt: skip
            return max(sizes)

        # Of two such nodes a hidden one, which ties variables together.
        found.append(min(below.above, key=lambda v: (largest(v), v < tree.n_observed, v)))
    return found


def show_tree(
    screen: Screen,
    model: Model,
    support: Support | None = None,
    cut: TreeCut | None = None,
    max_nodes: int = MOST_NODES,
) -> None:
    """Draw the tree of a model with the strengths of its edges, and say what these are.

    Parameters
    ----------
    screen : Screen
    model : model
    support : Support, optional
        How sure the edges are, in percent.
    cut : TreeCut, optional
        Groups of variables, which get colors.
    max_nodes : int
        The most nodes that are drawn; a last line counts the others.
    """
    tree, strength = model.tree, strengths_of(model)
    if not tree.n_edges:
        return
    sure = None if support is None else support.edge_support
    styles = {} if cut is None else _styles(cut)
    lines = outline(tree, strength)
    for line in lines[:max_nodes]:
        screen.drawn(_line_text(line, tree, strength, sure, styles))
    if len(lines) > max_nodes:
        screen.text(f"… and {plural(len(lines) - max_nodes, 'more node')} (show --all draws all)")
    alone = [tree.names[v] for v in tree.roots.tolist() if not tree.neighbors(v).size]
    if alone:
        screen.prose(f"On {'its' if len(alone) == 1 else 'their'} own: {', '.join(alone)}")
    notes = []
    if any("●" in line.stem for line in lines):
        notes.append(
            "● continues its line: it hangs from the ● above or from where the line begins."
        )
    screen.prose("\n".join(["", *notes, strength_text(model)]))
    if support is not None:
        screen.prose(f"Percent: {support.measure} of the edge above, over {support.origin}.")


def _line_text(
    line: TreeLine,
    tree: Tree,
    strength: FloatArray,
    sure: FloatArray | None,
    styles: Mapping[str, str],
) -> Text:
    name = tree.names[line.node]
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    label = short if line.node < tree.n_observed else f"({short})"
    text = Text(line.stem).append(label, styles.get(name))
    if line.edge >= 0:
        text.append(f"  {strength[line.edge]:.2f}")
        if sure is not None and not np.isnan(sure[line.edge]):
            text.append(f"  {100.0 * sure[line.edge]:.0f} %")
    return text


def strength_text(model: Model) -> str:
    """Define the strength of the edges of a model in a sentence."""
    if isinstance(model, GaussianTreeModel | CopulaTreeModel):
        return "Strength of an edge: correlation of its ends; along a path the product."
    falls = bool((np.nan_to_num(strengths_of(model)) < 0.0).any())
    sign = ", with a minus where one falls as the other rises" * falls
    cramer = f"Strength of an edge: Cramér's V of its ends, 0 to 1{sign}"
    if isinstance(model, DiscreteTreeModel):
        return f"{cramer}; along a path the product."
    return (
        f"{cramer}; of a number the correlation ratio, the root of the share of its variance that "
        "is explained; along a path the product."
    )


# Groups -----------------------------------------------------------------------------------------


def _styles(cut: TreeCut) -> dict[str, str]:
    """Return a style for the variables of every group and for what represents it."""
    found: dict[str, str] = {}
    for number, (group, speaker) in enumerate(zip(cut.groups, cut.representatives, strict=True)):
        style = _GROUP_STYLES[number % len(_GROUP_STYLES)]
        found |= dict.fromkeys((speaker, *group), style)
    return found


def show_cut(screen: Screen, cut: TreeCut) -> None:
    """List the groups of a cut."""
    screen.text(f"\n{plural(len(cut.groups), 'group')}, the tightest of the tree:")
    rows = [
        [speaker, f"{len(group):,}", ", ".join(group)]
        for speaker, group in zip(cut.representatives, cut.groups, strict=True)
    ]
    styles: Sequence[str] = [_styles(cut)[group[0]] for group in cut.groups]
    screen.table(["Group", "Size", "Variables"], rows, styles=styles)


def cut_facts(cut: TreeCut | None) -> list[dict[str, object]] | None:
    """Return the groups of a cut for machines."""
    if cut is None:
        return None
    return [
        {"representative": speaker, "variables": list(group)}
        for speaker, group in zip(cut.representatives, cut.groups, strict=True)
    ]

"""Colors and markers for groups of variables."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from latentree.tree import Tree, groups_by_node

# Paul Tol's "muted" scheme: calm, and apart for every kind of color vision.
PALETTE = (
    "#332288", "#44AA99", "#DDB94A", "#CC6677", "#117733",
    "#88CCEE", "#882255", "#999933", "#AA4499",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PLAIN = "#35506B"
UNGROUPED = "#9AA0A6"


class Style(NamedTuple):
    """How the nodes of one group are drawn."""

    label: str | None
    color: str
    marker: str


class Grouping(NamedTuple):
    """The group number of every observed node, and the style of each group."""

    numbers: list[int]
    styles: list[Style]


def group_observed(tree: Tree, groups: Any) -> Grouping:
    """Number the groups of the observed nodes in order of appearance, and give each a style.

    More groups than colors go on with the next marker; variables without a group are gray.
    """
    if groups is None:
        return Grouping([0] * tree.n_observed, [Style(None, PLAIN, "o")])
    given = groups_by_node(tree, groups)
    names = list(dict.fromkeys(group for group in given if group is not None))
    styles = [
        Style(str(name), PALETTE[i % len(PALETTE)], MARKERS[i // len(PALETTE) % len(MARKERS)])
        for i, name in enumerate(names)
    ]
    number: dict[Hashable | None, int] = {name: i for i, name in enumerate(names)}
    if None in given:
        number[None] = len(styles)
        styles.append(Style("no group", UNGROUPED, "o"))
    return Grouping([number[group] for group in given], styles)

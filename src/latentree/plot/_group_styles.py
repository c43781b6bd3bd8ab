"""Colors and markers for groups of variables."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from latentree.tree import GroupsLike, Tree, groups_by_node

PALETTE = (
    "#332288", "#2A8C7C", "#A8832A", "#C55A6D", "#117733",
    "#3B8FBC", "#882255", "#8A8A2B", "#AA4499",
)  # fmt: skip
"""After Paul Tol's "muted" scheme, whose hues differ for every kind of color vision; its light hues
are darkened to a contrast of 3 : 1 with white paper."""

DARK_PALETTE = (
    "#8F86E8", "#4FC3B0", "#E3C25A", "#E0808F", "#4FB06D",
    "#88CCEE", "#C9609A", "#BCBC55", "#C97BC0",
)  # fmt: skip
"""The same hues, light enough for a dark background."""

MARKERS = ("o", "s", "^", "D", "v")
"""Five markers, so that nine colors and five markers in turn make 45 styles."""

PLAIN, DARK_PLAIN = "#35506B", "#86B6DC"
"""Color of all variables where there are no groups."""

UNGROUPED, DARK_UNGROUPED = "#83898F", "#7C848D"
"""Color of variables without a group where others have one."""


class GroupStyle(NamedTuple):
    """How the nodes of one group are drawn.

    Attributes
    ----------
    label : str or None
        Name of the group; None when there are no groups.
    color, dark_color : str
        On a light and on a dark background, as ``#RRGGBB``.
    marker : {"o", "s", "^", "D", "v"}
        Shape of the nodes, by matplotlib's letters.

    Examples
    --------
    >>> GroupStyle("banks", "#332288", "#8F86E8", "o").label
    'banks'
    """

    label: str | None
    color: str
    dark_color: str
    marker: str


class VariableGroups(NamedTuple):
    """Groups of the observed nodes.

    Attributes
    ----------
    numbers : list of int
        Number of every observed node's group.
    styles : list of GroupStyle
        How each group is drawn.

    Examples
    --------
    >>> from latentree import Tree
    >>> group_observed(Tree([-1, 0, 0]), ["u", "v", "u"]).numbers
    [0, 1, 0]
    """

    numbers: list[int]
    styles: list[GroupStyle]


def group_observed(tree: Tree, groups: GroupsLike | None) -> VariableGroups:
    """Number the groups of the observed nodes in order of appearance, and give each a style.

    Groups differ by color and by marker: 45 of them are told apart. Variables without a group are
    gray discs.

    Parameters
    ----------
    tree : Tree
    groups : mapping from names to groups, one group per observed variable, or None
        With None all variables are of one group without a name.

    Returns
    -------
    VariableGroups

    Examples
    --------
    >>> from latentree import Tree
    >>> grouping = group_observed(Tree([-1, 0, 0]), {"x0": "banks", "x2": "banks"})
    >>> grouping.numbers
    [0, 1, 0]
    >>> [style.label for style in grouping.styles]
    ['banks', 'no group']
    """
    if groups is None:
        return VariableGroups([0] * tree.n_observed, [GroupStyle(None, PLAIN, DARK_PLAIN, "o")])
    given = groups_by_node(tree, groups)
    names = list(dict.fromkeys(group for group in given if group is not None))
    styles = [_style(str(name), i) for i, name in enumerate(names)]
    number: dict[Hashable | None, int] = {name: i for i, name in enumerate(names)}
    if None in given:
        number[None] = len(styles)
        styles.append(GroupStyle("no group", UNGROUPED, DARK_UNGROUPED, "o"))
    return VariableGroups([number[group] for group in given], styles)


def _style(name: str, i: int) -> GroupStyle:
    color = i % len(PALETTE)
    return GroupStyle(name, PALETTE[color], DARK_PALETTE[color], MARKERS[i % len(MARKERS)])

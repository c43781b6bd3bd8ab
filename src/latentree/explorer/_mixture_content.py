"""A mixture of trees: what the page needs to know beside its components."""

from __future__ import annotations

from collections.abc import Mapping

from latentree.explorer._packed import PageData, packed
from latentree.explorer._payload import Report, about_model, payload
from latentree.explorer._row_content import RowChoice, rows_contents
from latentree.models import Names, TreeMixture
from latentree.tree import GroupsLike
from latentree.typing import TableLike


def mixture_content(
    mixture: TreeMixture,
    title: str,
    data: TableLike | None,
    names: list[Names],
    report: Report | None,
    rows: RowChoice | None,
    groups: GroupsLike | None = None,
    annotations: Mapping[str, GroupsLike] | None = None,
) -> PageData:
    """Return the weights and contents of the components.

    ``shared`` is what all components have in common, ``components`` what each has of its own;
    ``shown`` is the number of the one that the page opens with, and ``name`` what the class
    variable is called.
    """
    contents = [
        payload(part, title, data if k == 0 else None, groups, names[k], annotations=annotations)
        for k, part in enumerate(mixture.components)
    ]
    if rows is not None:
        shares = list(mixture.responsibilities(data).T)
        found = rows_contents(mixture.components, data, rows, shares)
        for content, own in zip(contents, found, strict=True):
            content |= own
    first = contents[0]
    same = {key for key, value in first.items() if all(own.get(key) == value for own in contents)}
    shared = {key: first[key] for key in first if key in {*same, "data"}}
    return {
        "title": title,
        "name": mixture.tree.names[-1],
        "weights": packed(mixture.weights, "<f8"),
        "shown": int(mixture.weights.argmax()),
        "shared": shared | {"about": about_model(mixture, report or {})},
        "components": [
            {key: value for key, value in own.items() if key not in {*shared, "about"}}
            for own in contents
        ],
    }

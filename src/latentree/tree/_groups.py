"""Known groups of the observed variables: sectors, topics, abilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol, runtime_checkable

from latentree._plain import suggestion
from latentree.errors import DataError
from latentree.tree._tree import Tree


@runtime_checkable
class NamedGroups(Protocol):
    """Groups by the names of variables: a mapping, or a pandas Series."""

    def items(self) -> Iterable[tuple[Hashable, Hashable]]:
        """Yield names and groups."""


GroupsLike = NamedGroups | Iterable[Hashable]
"""Groups of variables: by name, or one for each variable in its order."""


def groups_by_node(tree: Tree, groups: GroupsLike) -> list[Hashable | None]:
    """Return the group of every observed node, None where it has none.

    Parameters
    ----------
    tree : Tree
    groups : mapping, pandas Series or sequence
        Groups by name, or one for each variable in its order.

    Returns
    -------
    list
    """
    observed = tree.names[: tree.n_observed]
    if isinstance(groups, NamedGroups):
        by_name = dict(groups.items())
        known = set(observed)
        unknown = [name for name in by_name if name not in known]
        if unknown:
            raise DataError(
                f"groups names {unknown[0]!r}, but no observed variable is called so"
                f"{suggestion(unknown[0], observed)}"
            )
        return [by_name.get(name) for name in observed]
    listed = list(groups)
    if len(listed) != len(observed):
        raise DataError(
            f"{len(observed)} observed variables need as many groups, not {len(listed)}"
        )
    return listed

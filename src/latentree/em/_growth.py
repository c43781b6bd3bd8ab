"""Numbers of states that grow as long as it is worth while."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from latentree.typing import IntArray

Group = slice | IntArray
"""Hidden variables that get more states together."""
TryMore = Callable[[Group, int], bool]
"""Tries k/3 times as many states of a group, keeps them if they are worth it, and says so."""


def grow(try_more: TryMore, groups: Sequence[Group], factors: Sequence[int]) -> None:
    """Let the states of one group of hidden variables after the other grow.

    ``factors`` are by how many thirds numbers of states are multiplied: the next one is tried if
    the one before is not worth it. A group that does not gain by any stays as it is.
    """
    while groups:
        groups = [group for group in groups if any(try_more(group, k) for k in factors)]


def more_states(states: IntArray, group: Group, thirds: int, most: int) -> IntArray:
    """Return numbers of states of which those of a group are larger, but no larger than ``most``.

    Examples
    --------
    >>> more_states(np.array([2, 3, 6, 9]), slice(1, 4), thirds=4, most=8).tolist()
    [2, 4, 8, 9]
    """
    more = np.minimum(np.maximum(states + 1, states * thirds // 3), most)
    grown = states.copy()
    grown[group] = np.maximum(states, more)[group]
    return grown

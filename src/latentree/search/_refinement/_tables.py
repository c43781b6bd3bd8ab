"""What stands at an edge of a draft with states: a table, or the emission of a column of numbers.

Both say what a node is given the state of its neighbor, one row per state, and a search changes
them in the same ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentree.inference import FreeEmission, Unit
from latentree.typing import FloatArray, IntArray

Table = Any
"""P(node | neighbor), an array; or a :class:`FreeEmission`."""


def n_rows(table: Table) -> int:
    """Return the number of states of the neighbor; 1 for a marginal distribution."""
    if isinstance(table, FreeEmission):
        return table.n_states
    return len(table) if np.ndim(table) == 2 else 1


def fits(new: Table, old: Table) -> bool:
    """Whether a table can take the place of another."""
    if isinstance(new, FreeEmission) or isinstance(old, FreeEmission):
        return type(new) is type(old) and new.n_states == old.n_states
    return np.shape(new) == np.shape(old)


def mixed(weights: FloatArray, table: Table) -> Table:
    """Return the table whose rows are mixtures of the rows of another.

    An emission gets the means and the variances of the mixtures.
    """
    if not isinstance(table, FreeEmission):
        return weights @ table
    center, square = table.moments(np.full(table.n_states, 1.0 / table.n_states))
    unit = Unit(float(center), float(np.sqrt(square)), table.resolution, table.origin)
    return type(table).by_moments(*table.moments(np.atleast_2d(weights)), unit)


def of_states(table: Table, states: IntArray) -> Table:
    """Return the table of some of the neighbor's states."""
    if isinstance(table, FreeEmission):
        return table.taken(states, np.zeros(len(states)))
    return table[states]


def halved(table: Table, state: int, spread: float, rng: np.random.Generator) -> Table:
    """Return a table in which a state of the neighbor is two, at random a little apart.

    ``spread`` is a distance in logarithms of probabilities, or in standard deviations of numbers.
    """
    states = np.append(np.arange(n_rows(table)), state)
    if isinstance(table, FreeEmission):
        away = np.zeros(states.size)
        away[-1] = rng.normal(0.0, spread)
        away[state] = -away[-1]
        return table.taken(states, away)
    apart = rng.normal(0.0, spread, table.shape[1])
    new = table[states]
    new[[state, -1]] *= np.exp(np.stack([apart, -apart]))
    return new / new.sum(axis=1, keepdims=True)


def visible(table: Table) -> FloatArray:
    """Return probabilities of what can be seen, one row per state of the neighbor."""
    return table.cells() if isinstance(table, FreeEmission) else np.asarray(table)

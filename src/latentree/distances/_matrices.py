"""Checks of square matrices that come from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latentree.data import check_distinct
from latentree.errors import DistanceError
from latentree.typing import FloatArray


def checked_matrix(matrix: ArrayLike) -> FloatArray:
    """Return a float64 copy of a matrix of distances, or say what is wrong and where."""
    try:
        given = np.asarray(matrix)
    except ValueError as error:
        raise DistanceError(f"distances must be a square matrix of numbers: {error}") from None
    if given.dtype.kind not in "fiu":
        raise DistanceError(f"distances must be real numbers, got values of type {given.dtype}")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise DistanceError(f"distances must be a square matrix, got shape {given.shape}")
    if given.shape[0] == 0:
        raise DistanceError("there are no variables: the matrix is empty")
    d = given.astype(np.float64)
    _refuse(np.isnan(d), d, "is NaN: distances must be known for every pair")
    _refuse(d < 0, d, "is {value}: distances cannot be negative")
    diagonal = np.diag(d)
    if diagonal.any():
        i = int(np.flatnonzero(diagonal)[0])
        raise DistanceError(f"entry ({i}, {i}) is {diagonal[i]}: the diagonal must be 0")
    _check_symmetric(d)
    return d


def _refuse(bad: NDArray[np.bool_], d: FloatArray, what: str) -> None:
    if bad.any():
        i, j = np.unravel_index(bad.argmax(), bad.shape)
        raise DistanceError(f"entry ({i}, {j}) " + what.format(value=d[i, j]))


def _check_symmetric(d: FloatArray) -> None:
    with np.errstate(invalid="ignore"):
        gap = np.abs(d - d.T)
    gap[np.isnan(gap)] = 0.0  # both infinite
    bad = gap > 1e-8 * np.maximum(np.minimum(d, d.T), 1.0)
    if bad.any():
        i, j = np.unravel_index(np.where(bad, gap, -1.0).argmax(), gap.shape)
        raise DistanceError(
            f"the matrix is not symmetric: entry ({i}, {j}) is {d[i, j]}, but ({j}, {i}) is "
            f"{d[j, i]}"
        )
    np.minimum(d, d.T.copy(), out=d)


def checked_names(names: Sequence[str] | None, m: int) -> tuple[str, ...]:
    """Return m distinct names; ``x0``, ``x1``, … when there are none."""
    if names is None:
        return tuple(f"x{j}" for j in range(m))
    given = tuple(str(name) for name in names)
    if len(given) != m:
        raise DistanceError(f"{len(given)} names were given for {m} variables")
    try:
        check_distinct(given)
    except ValueError as error:
        raise DistanceError(str(error)) from None
    return given


def checked_signs(signs: ArrayLike | None, m: int) -> NDArray[np.int8]:
    """Return a symmetric matrix of −1 and +1; all +1 when there is none."""
    if signs is None:
        return np.broadcast_to(np.int8(1), (m, m))
    given = np.asarray(signs)
    if given.shape != (m, m):
        raise DistanceError(f"signs have shape {given.shape}, but there are {m} variables")
    bad = np.abs(given) != 1
    if bad.any():
        i, j = np.unravel_index(bad.argmax(), bad.shape)
        raise DistanceError(f"the sign at ({i}, {j}) is {given[i, j]}, but must be −1 or +1")
    if (given != given.T).any() or (np.diag(given) < 0).any():
        raise DistanceError("signs must be symmetric, with +1 on the diagonal")
    return frozen(given.astype(np.int8))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, and return it."""
    array.flags.writeable = False
    return array

"""Checks of square matrices that come from outside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latentree._kernels import threads
from latentree.data import check_distinct, default_names
from latentree.errors import DistanceError
from latentree.typing import AnyArray, BoolArray, FloatArray

_TILE = 128
"""Rows and columns of a tile: it and its opposite (128 KB each) fit into the nearest caches."""


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
    d = np.empty(given.shape)
    bands = threads.split(len(d), -(-len(d) // _TILE))
    if np.diagonal(given).any() or not all(threads.run(partial(_copy_band, given, d), bands)):
        _explain(given.astype(np.float64))
    return d


def _copy_band(given: AnyArray, d: FloatArray, band: tuple[int, int]) -> bool:
    """Copy the tiles of a band of rows, up to the diagonal, and those of the columns opposite.

    A tile and its opposite are read together, while both are in the nearest caches: all that is
    wrong with a matrix is found in the pass that copies it. Returns whether all is well.
    """
    start, stop = band
    for left in range(0, stop, _TILE):
        right = min(left + _TILE, stop)
        tile = given[start:stop, left:right].astype(np.float64, copy=False)
        opposite = given[left:right, start:stop].T.astype(np.float64, copy=False)
        least = tile
        if not np.array_equal(tile, opposite):
            least = np.minimum(tile, opposite)
            with np.errstate(invalid="ignore"):  # a difference of infinities that are equal
                gap = np.abs(tile - opposite)
            if not least.min() >= 0 or (gap > _allowed(least)).any():
                return False
        elif not least.min() >= 0:
            return False
        d[start:stop, left:right] = least
        d[left:right, start:stop] = least.T
    return True


def _allowed(least: FloatArray) -> FloatArray:
    """Differences of two entries that are opposite each other that may be rounding."""
    return np.asarray(1e-8 * np.maximum(least, 1.0))


def _explain(d: FloatArray) -> NoReturn:
    """Say what is wrong with a matrix, and where."""
    _refuse(np.isnan(d), d, "is NaN: distances must be known for every pair")
    _refuse(d < 0, d, "is {value}: distances cannot be negative")
    diagonal = np.diag(d)
    if diagonal.any():
        i = int(np.flatnonzero(diagonal)[0])
        raise DistanceError(f"entry ({i}, {i}) is {diagonal[i]}: the diagonal must be 0")
    with np.errstate(invalid="ignore"):
        gap = np.abs(d - d.T)
    bad = gap > _allowed(np.minimum(d, d.T))
    row, column = np.unravel_index(np.where(bad, gap, -1.0).argmax(), gap.shape)
    raise DistanceError(
        f"the matrix is not symmetric: entry ({row}, {column}) is {d[row, column]}, "
        f"but ({column}, {row}) is {d[column, row]}"
    )


def _refuse(bad: BoolArray, d: FloatArray, what: str) -> None:
    if bad.any():
        i, j = np.unravel_index(bad.argmax(), bad.shape)
        raise DistanceError(f"entry ({i}, {j}) " + what.format(value=d[i, j]))


def checked_names(names: Sequence[str] | None, m: int) -> tuple[str, ...]:
    """Return m distinct names; ``x0``, ``x1``, … when there are none."""
    if names is None:
        return default_names(m)
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


def frozen(array: AnyArray) -> AnyArray:
    """Make an array read-only, and return it."""
    array.flags.writeable = False
    return array

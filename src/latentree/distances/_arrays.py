"""Arrays laid end to end, triangles of matrices, and sums that may not be known."""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

import numpy as np

from latentree.distances._counting import ranges
from latentree.typing import FloatArray, IntArray


class _Addable(Protocol):
    def __add__(self, other: Self) -> Self: ...


Sums = TypeVar("Sums", bound=_Addable)


def sum_if_known(a: Sums | None, b: Sums | None) -> Sums | None:
    """Return a + b; None if one of them is not known."""
    return None if a is None or b is None else a + b


def starts_of(widths: IntArray) -> IntArray:
    """Return where each of several things of these widths starts, laid end to end; and the end."""
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def places(columns: IntArray, starts: IntArray) -> IntArray:
    """Return where what belongs to some columns lies, where all is laid end to end."""
    return np.concatenate([np.arange(*starts[j : j + 2]) for j in columns])


def mirrored(lower: FloatArray) -> FloatArray:
    """Fill the upper triangle of a matrix from the lower one, in place."""
    for start, stop in ranges(len(lower), 1024):  # tiles: a transposed copy is slow and large
        lower[:start, start:stop] = lower[start:stop, :start].T
        tile = lower[start:stop, start:stop]
        tile[...] = np.tril(tile) + np.tril(tile, -1).T
    return lower

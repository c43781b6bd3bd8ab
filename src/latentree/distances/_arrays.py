"""Arrays laid end to end, ranges of work, and triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from latentree._kernels import threads
from latentree.typing import FloatArray, IntArray

_PARTS = 16
"""Slices of a range of work, whatever the number of threads: some for each of a few cores."""


def in_parts(n_items: int, function: Callable[[slice], None]) -> None:
    """Run a function on slices of a range, on all threads."""
    threads.run(lambda part: function(slice(*part)), threads.split(n_items, _PARTS))


def ranges(stop: int, step: int) -> Iterator[tuple[int, int]]:
    """Cut ``range(stop)`` into ranges of ``step``."""
    for start in range(0, stop, step):
        yield start, min(stop, start + step)


def starts_of(widths: IntArray) -> IntArray:
    """Return where each of several things of these widths starts, laid end to end; and the end."""
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def places(columns: IntArray, starts: IntArray) -> IntArray:
    """Return where what belongs to some columns lies, where all is laid end to end."""
    widths = np.diff(starts)[columns]
    ends = np.cumsum(widths)
    offsets: IntArray = np.repeat(starts[:-1][columns] - (ends - widths), widths)
    return offsets + np.arange(offsets.size)


def inverse(values: FloatArray) -> FloatArray:
    """Return 1/x, and 0 for 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def mirrored(lower: FloatArray) -> FloatArray:
    """Fill the upper triangle of a matrix from the lower one, in place."""
    for start, stop in ranges(len(lower), 1024):  # tiles: a transposed copy is slow and large
        lower[:start, start:stop] = lower[start:stop, :start].T
        tile = lower[start:stop, start:stop]
        tile[...] = np.tril(tile) + np.tril(tile, -1).T
    return lower

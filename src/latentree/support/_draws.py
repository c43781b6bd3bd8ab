"""Rows drawn with replacement, as weights: how often each row was drawn.

A row's weight depends on the seed, the number of the replicate and the place of the row alone,
so that data in memory, in files and on a cluster has the same replicates. How many draws fall into
each stretch of rows is drawn first; where in a stretch they fall follows from a counter-based
generator of that stretch and replicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latentree.errors import DataError
from latentree.typing import FloatArray, IntArray

STRETCH = 1 << 13
"""Rows whose draws come from one generator: few enough to be drawn again where parts overlap."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Weights of the rows of every replicate.

    Parameters
    ----------
    seed : int
        Below 2⁶⁴.
    n_rows : int
    weights : array, optional
        How much each row counts in the data: a row of weight 2 is drawn like two equal rows.
    block_length : int, optional
        Draw so many consecutive rows at a time, around the end of the data to its beginning: for
        rows that depend on those before them.
    """

    seed: int
    n_rows: int
    weights: FloatArray | None = None
    block_length: int | None = None

    def __post_init__(self) -> None:
        length = self.block_length
        if length is not None and not 1 <= length <= self.n_rows:
            raise DataError(
                f"block_length is {length}, but must be from 1 to the {self.n_rows} rows"
            )

    def of_rows(self, replicate: int, start: int, stop: int) -> FloatArray:
        """Return the weights of some rows in a replicate."""
        if self.block_length is not None:
            return self._in_blocks(replicate)[start:stop]
        totals = self._totals(replicate)
        found = [
            self._stretch(replicate, number, int(totals[number]))
            for number in range(start // STRETCH, -(-stop // STRETCH))
        ]
        first = start // STRETCH * STRETCH
        return np.concatenate(found)[start - first : stop - first]

    def _generator(self, replicate: int, number: int) -> np.random.Generator:
        # Stretches and replicates are far apart in the counter, and never overlap.
        return np.random.Generator(
            np.random.Philox(key=self.seed, counter=[0, 0, number, replicate])
        )

    def _totals(self, replicate: int) -> IntArray:
        """Draws that fall into every stretch of rows."""
        share = self._shares
        if share.size == 1:
            return np.array([self._n_draws])
        return self._generator(replicate, share.size).multinomial(self._n_draws, share)

    @cached_property
    def _n_draws(self) -> int:
        return self.n_rows if self.weights is None else max(1, round(float(self.weights.sum())))

    @cached_property
    def _shares(self) -> FloatArray:
        """Share of all draws that is expected in every stretch."""
        starts = np.arange(0, self.n_rows, STRETCH)
        if self.weights is None:
            sums = np.diff(np.append(starts, self.n_rows)).astype(np.float64)
        else:
            sums = np.add.reduceat(self.weights, starts)
        return np.asarray(sums / sums.sum())

    def _stretch(self, replicate: int, number: int, n_draws: int) -> FloatArray:
        start, stop = number * STRETCH, min(self.n_rows, (number + 1) * STRETCH)
        generator = self._generator(replicate, number)
        if self.weights is None:
            drawn = generator.integers(0, stop - start, n_draws)
            return np.bincount(drawn, minlength=stop - start).astype(np.float64)
        weights = self.weights[start:stop]
        total = weights.sum()
        if total <= 0:
            return np.zeros(stop - start)
        counts: NDArray[np.int64] = generator.multinomial(n_draws, weights / total)
        return counts.astype(np.float64)

    def _in_blocks(self, replicate: int) -> FloatArray:
        """Weights of all rows from blocks of rows: the circular block bootstrap."""
        n, length = self.n_rows, self.block_length
        assert length is not None
        n_blocks = -(-n // length)
        starts = self._generator(replicate, 0).integers(0, n, n_blocks)
        lengths = np.full(n_blocks, length)
        lengths[-1] = n - (n_blocks - 1) * length  # n rows in all
        # Each block raises the rows from its start on by 1, and lowers those from its end on.
        change = np.zeros(2 * n + 1)
        np.add.at(change, starts, 1.0)
        np.add.at(change, starts + lengths, -1.0)
        twice = np.cumsum(change[:-1])
        drawn = twice[:n] + twice[n:]
        return drawn if self.weights is None else drawn * self.weights

"""Rows of one schema as a fixed sequence of tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latentree.errors import DataError
from latentree.parts.pieces import LocalPieces, Pieces
from latentree.table import Schema, Table, as_table

FloatArray = NDArray[np.float64]

PART_CELLS = 1 << 22
"""A part has about so many cells: enough to keep two cores busy, few enough to be read ahead."""


def part_rows(n_columns: int) -> int:
    """Rows of a part. They depend on the number of columns alone, never on files or batches."""
    return max(64, PART_CELLS // max(1, n_columns) // 64 * 64)


@dataclass(frozen=True, eq=False)
class Parts:
    """Data that need not fit into memory: rows of one schema, cut into tables.

    Make it with :func:`latentree.as_parts` of files, folders, dask collections or tables. The cut
    depends on the number of columns alone, and sums over the parts are taken in a fixed order, so
    results are the same however the data lies in files, batches, partitions and on workers.

    Attributes
    ----------
    schema : Schema
    n_rows : int
    tables : Pieces of Table
        The parts, in order.
    name : str
        What messages call the data.
    """

    schema: Schema
    n_rows: int
    tables: Pieces[Table] = field(repr=False)
    name: str = "the data"

    def __post_init__(self) -> None:
        if self.n_rows == 0 or not self.schema.names:
            raise DataError(
                f"{self.name} is empty: {self.n_rows} rows, {self.schema.n_columns} columns"
            )

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.schema.n_columns

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.schema.names

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.tables)

    def weighted(self, weights: ArrayLike) -> Parts:
        """Return the same rows with a weight for each."""
        w = np.asarray(weights, np.float64)
        if w.shape != (self.n_rows,):
            raise DataError(f"{self.n_rows} rows need as many weights, got shape {w.shape}")
        step = part_rows(self.n_columns)
        items = [w[start : start + step] for start in range(0, self.n_rows, step)]
        return replace(self, tables=self.tables.paired(_with_weights, items))

    def __repr__(self) -> str:
        size = f"{self.n_rows} rows × {self.n_columns} columns"
        return f"Parts({size}, {self.schema.family}, {self.n_parts} parts)"


def _with_weights(table: Table, weights: FloatArray) -> Table:
    return as_table(table, weights=weights)


def cut_table(table: Table, name: str = "the data") -> Parts:
    """Cut a table that is in memory."""
    step = part_rows(table.n_columns)
    starts = range(0, table.n_rows, step)

    def read(first: int) -> Iterator[Table]:
        for start in starts[first:]:
            yield table.rows(start, min(start + step, table.n_rows))

    return Parts(table.schema, table.n_rows, LocalPieces(read, len(starts)), name)

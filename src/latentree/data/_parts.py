"""Rows of one schema as a fixed sequence of tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from latentree import _memory as memory
from latentree.data._convert import checked_weights
from latentree.data._pieces import LocalPieces, Pieces, itself
from latentree.data._table import Schema, Table, WithSchema
from latentree.errors import DataError
from latentree.typing import FloatArray, IntArray

REAL_CELLS = 1 << 22
"""Cells of a part of real columns: enough to keep two cores busy, few enough to be read ahead."""

STATE_CELLS = 1 << 24
"""Cells of a part of discrete columns, a byte each: more rows share more patterns."""

SPARSE_ONES = 1 << 20
"""Ones of a part of a sparse table. A document of 130 of 10,000 words has 540 patterns of its own
among 6,656 of them, and 670 among the 1,664 that a part of that many cells has; a step of EM takes
a fifth less."""

VARIABLE = "LATENTREE_PART_CELLS"
"""Environment variable that sets the cells of a part, for machines with little memory."""


def part_cells(is_coded: bool) -> int:
    """Return the cells of a part of discrete or of real columns."""
    usual = STATE_CELLS if is_coded else REAL_CELLS
    cells = os.environ.get(VARIABLE, "").strip() or str(usual)
    if not cells.isdigit() or int(cells) == 0:
        raise DataError(f"{VARIABLE} is {cells!r}, but must be a number of cells")
    return int(cells)


def part_rows(schema: Schema) -> int:
    """Return the rows of a part. They depend on what the columns are, never on files or batches."""
    # The sums of pairs of mixed columns are larger than the parts themselves: few are added up.
    is_large = schema.is_coded or schema.family == "mixed"
    return max(64, part_cells(is_large) // max(1, schema.n_columns) // 64 * 64)


def _sparse_rows(table: Table) -> int:
    """Return the rows of a part of a sparse table."""
    ones = max(1.0, table.values.nnz / max(1, table.n_rows))
    return max(part_rows(table.schema), int(SPARSE_ONES / ones) // 64 * 64)


@dataclass(frozen=True, eq=False)
class Parts(WithSchema):
    """Data that need not fit into memory: rows of one schema, cut into tables.

    Make it with :func:`latentree.as_parts` of files, folders, dask collections or tables. The cut
    depends on the columns alone, and sums over the parts are taken in a fixed order, so
    results are the same however the data lies in files, batches, partitions and on workers.

    Parameters
    ----------
    schema : Schema
        Names, family and labels of the columns.
    n_rows : int
        Number of rows of all parts together.
    tables : Pieces of Table
        The parts, in order.
    name : str
        What messages call the data.
    whole : Table or None
        All rows, if they are in memory as one table.
    rows_a_part : int
        Rows of every part but the last; 0 stands for the usual number, see :func:`part_rows`.
    weights : array of shape (n_rows,), optional
        The weights of all rows, where the parts have some and are not in memory as one table.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.data import as_table
    >>> parts = cut_table(as_table(np.random.default_rng(0).normal(size=(100, 3))), rows=64)
    >>> parts
    Parts(100 rows × 3 columns, gaussian, 2 parts)
    >>> parts.to_table()
    Table(100 rows × 3 columns, gaussian)
    """

    schema: Schema
    n_rows: int
    tables: Pieces[Table] = field(repr=False)
    name: str = "the data"
    whole: Table | None = field(default=None, repr=False)
    rows_a_part: int = 0
    weights: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.n_rows == 0 or not self.schema.names:
            raise DataError(
                f"{self.name} is empty: {self.n_rows} rows, {self.schema.n_columns} columns"
            )

    @property
    def step(self) -> int:
        """Rows of every part but the last."""
        return self.rows_a_part or part_rows(self.schema)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.tables)

    def weighted(self, weights: ArrayLike) -> Parts:
        """Return the same rows with a weight for each.

        Parameters
        ----------
        weights : array-like of shape (n_rows,)
            How much each row counts, at least 0.

        Returns
        -------
        Parts
        """
        w = checked_weights(weights, self.n_rows)
        if self.whole is not None:
            return cut_table(Table(self.whole.values, self.schema, w), self.name, self.rows_a_part)
        step = self.step
        items = [w[start : start + step] for start in range(0, self.n_rows, step)]
        return replace(self, tables=self.tables.paired(_with_weights, items), weights=w)

    def counted(self) -> Parts:
        """Return the rows that count: those whose weight is not 0.

        Returns
        -------
        Parts
            Cut as if there were no other rows, so that these change no bit of any result. The same
            ones if all rows count.
        """
        if self.whole is not None:
            table = self.whole.counted()
            if table is self.whole:
                return self
            return cut_table(table, self.name, 0 if table.is_sparse else self.rows_a_part)
        if self.weights is None or self.weights.all():
            return self
        rows, step = np.flatnonzero(self.weights), self.step
        groups = []
        for start in range(0, rows.size, step):
            some = rows[start : start + step]
            numbers = range(int(some[0]) // step, int(some[-1]) // step + 1)
            groups.append((numbers, some - numbers.start * step))
        tables = self.tables.joined(_take_rows, groups)
        return replace(self, n_rows=rows.size, tables=tables, weights=self.weights[rows])

    def select(self, columns: IntArray, names: tuple[str, ...]) -> Parts:
        """Return all columns in another order, under these names.

        Parameters
        ----------
        columns : array of int
            For every new column which of the old ones it is.
        names : tuple of str
            The new names.

        Returns
        -------
        Parts
        """
        if self.whole is not None:
            return cut_table(self.whole.select(columns, names), self.name, self.rows_a_part)
        if len(columns) != self.n_columns:
            raise DataError("the parts of fewer columns would hold other rows: open them anew")
        items = [(columns, names)] * self.n_parts
        schema = self.schema.select(columns, names)
        return replace(self, schema=schema, tables=self.tables.paired(_select, items))

    def to_table(self) -> Table:
        """Return all rows as one table.

        Returns
        -------
        Table

        Raises
        ------
        latentree.errors.MemoryBudgetError
            If the rows do not fit into memory.
        """
        if self.whole is not None:
            return self.whole
        width = 1 if self.schema.is_coded else 8
        memory.require(
            2.0 * width * self.n_rows * self.n_columns, f"{self.name} as a whole",
            "use a method that needs distances only, such as clrg",
        )  # fmt: skip
        tables = list(self.tables.each(itself))
        weighted = any(table.weights is not None for table in tables)
        weights = np.concatenate([table.weight_array() for table in tables]) if weighted else None
        return Table(np.concatenate([table.values for table in tables]), self.schema, weights)

    def __repr__(self) -> str:
        size = f"{self.n_rows} rows × {self.n_columns} columns"
        return f"Parts({size}, {self.schema.family}, {self.n_parts} parts)"


def _select(table: Table, chosen: tuple[IntArray, tuple[str, ...]]) -> Table:
    return table.select(*chosen)


def _take_rows(tables: list[Table], rows: IntArray) -> Table:
    """Return some rows of neighboring parts."""
    starts = np.cumsum([0, *(table.n_rows for table in tables)])
    cuts = np.searchsorted(rows, starts)
    chosen = [
        table.take(rows[low:high] - start)
        for table, start, low, high in zip(tables, starts, cuts, cuts[1:], strict=False)
    ]
    values = np.concatenate([table.values for table in chosen])
    weights = np.concatenate([table.weight_array() for table in chosen])
    return Table(values, tables[0].schema, weights)


def _with_weights(table: Table, weights: FloatArray) -> Table:
    return Table(table.values, table.schema, weights)


def cut_table(table: Table, name: str = "the data", rows: int = 0) -> Parts:
    """Cut a table that is in memory into parts.

    Parameters
    ----------
    table : Table
        The rows.
    name : str
        What messages call the data.
    rows : int
        Rows of every part but the last; 0 stands for the usual number, see :func:`part_rows`, and
        for more rows of a sparse table.

    Returns
    -------
    Parts
    """
    if table.is_sparse:
        rows = rows or _sparse_rows(table)
    step = rows or part_rows(table.schema)
    starts = range(0, table.n_rows, step)

    def read(first: int) -> Iterator[Table]:
        for start in starts[first:]:
            yield table.rows(start, min(start + step, table.n_rows))

    return Parts(table.schema, table.n_rows, LocalPieces(read, len(starts)), name, table, rows)

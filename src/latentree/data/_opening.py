"""Opening data that need not fit into memory: files, folders, dask collections, tables."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from latentree.data import _cluster as cluster
from latentree.data._checks import odd_cell, odd_error
from latentree.data._cluster import Client
from latentree.data._column_facts import ColumnFacts, column_facts
from latentree.data._convert import as_table
from latentree.data._files._arrow import raw_of_arrow
from latentree.data._files._file_rows import FileRows, open_files
from latentree.data._files._matrix_files import MATRICES, read_matrix
from latentree.data._files._paths import STANDARD, ColumnChoice, is_path, path_name, suffix_of
from latentree.data._parts import REAL_CELLS, Parts, cut_table, part_rows
from latentree.data._pieces import LocalPieces, Pieces, itself
from latentree.data._raw import read_raw
from latentree.data._schemas import schema_of, warn_of_aside, warn_of_codes
from latentree.data._table import Schema, Table
from latentree.errors import DataError, FileError
from latentree.typing import DataLike, KindsByName, PathLike, TableLike, Unseen

if TYPE_CHECKING:
    import pyarrow as pa

_HELD_PARTS = 6
"""Files of at most so many parts of real columns (200 MB) are read once and held as a table."""

_HELD_CELLS = _HELD_PARTS * REAL_CELLS
"""Cells of these parts."""

_SEARCHED_CELLS = 1_000_000
"""Cells of a column that are searched for one that is no number, for the message of an error."""


def is_parted(X: object) -> bool:
    """Return whether data is meant to be taken in parts: a path, a dask collection, or parts.

    Parameters
    ----------
    X : data

    Returns
    -------
    bool

    Examples
    --------
    >>> is_parted("data.parquet"), is_parted([[1.5, 2.5]])
    (True, False)
    """
    return isinstance(X, Parts) or is_path(X) or cluster.is_dask(X)


def as_parts(
    X: DataLike,
    family: str = "auto",
    *,
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    weights: ArrayLike | None = None,
    client: Client | None = None,
    kinds: KindsByName | None = None,
    unseen: Unseen = "error",
    na: Sequence[str] = (),
    may_lack: Sequence[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
) -> Parts:
    """Open data of any size, to be read part by part as often as it is needed.

    Parameters
    ----------
    X : path, paths, folder, dask array, dask dataframe, table or Parts
        Files are Parquet, Arrow (``.arrow``, ``.feather``), text (``.csv``, ``.tsv``, ``.txt``,
        also packed) or Excel (``.xlsx``), and hold the same columns; a folder is all such files in
        it. One file may also be
        a matrix (``.npz``, ``.mtx``), and ``-`` is text from standard input. Tables are whatever
        :func:`latentree.as_table` takes.
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed"}
        As for :func:`latentree.as_table`. Data is read once to find kinds and labels, unless its
        first part shows that all columns are real.
    schema : Schema, optional
        Code the data as that of a model.
    columns, drop : sequences of str
        Which columns of files to read.
    header : bool, optional
        Whether the first line of text holds the names of the columns. When left out it must, and
        an error is raised if it looks like data.
    weights : array-like, optional
        How much each row counts.
    client : dask.distributed.Client, optional
        The cluster that reads and computes; its workers must see the files. Without it everything
        happens in this process. Results are the same.
    kinds, unseen, may_lack
        As for :func:`latentree.as_table`.
    na : sequence of str
        Texts and numbers in files that stand for missing cells, such as "-999"; empty cells, NA,
        N/A, n.a., NaN, NULL, errors of spreadsheets, and ``.``, ``..``, ``:``, ``?`` and ``-``
        always do.
    encoding : str, optional
        The encoding of text, such as "latin-1". When left out, marks at the beginning tell UTF-16;
        text that is not UTF-8 is read as cp1252, with a warning.
    sheet : str, optional
        Name of the sheet of a workbook, or its number from 1 on. When left out, it is the first one
        that holds anything, and a warning names the others.

    Returns
    -------
    Parts
        The rows in order. Files of up to 25 million cells are held in memory, larger ones are
        read again in every pass.

    Raises
    ------
    FileError
        With the name of the file and what is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> as_parts(np.random.default_rng(0).standard_normal((100_000, 50)))
    Parts(100000 rows × 50 columns, gaussian, 2 parts)
    """
    data = open_table(
        X, family, schema=schema, columns=columns, drop=drop, header=header, client=client,
        kinds=kinds, unseen=unseen, na=na, may_lack=may_lack, encoding=encoding, sheet=sheet,
    )  # fmt: skip
    if isinstance(data, Table):
        data = cut_table(data, path_name(X) if is_path(X) else "the data")
        data = data if client is None else cluster.scattered(data, client)
    return data if weights is None else data.weighted(weights)


def open_table(
    X: DataLike,
    family: str = "auto",
    *,
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    client: Client | None = None,
    kinds: KindsByName | None = None,
    unseen: Unseen = "error",
    na: Sequence[str] = (),
    may_lack: Sequence[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
) -> Table | Parts:
    r"""Open data as a table if it is in memory or small, and in parts if it is large.

    Parameters
    ----------
    X, family, schema, columns, drop, header, client, kinds, unseen, na, may_lack, encoding, sheet
        As for :func:`latentree.as_parts`.

    Returns
    -------
    Table or Parts
        Files of up to 25 million cells are a table. Both give the same results.

    Raises
    ------
    FileError
        With the name of the file and what is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.csv"
    ...     _ = path.write_text("rain,clouds\nno,2\nyes,\nyes,1\n")
    ...     open_table(path)
    Table(3 rows × 2 columns, discrete, 1 missing)
    """
    if isinstance(X, Parts):
        if schema is not None and not X.schema.same_columns(schema):
            raise DataError("the parts have other columns or labels: open them with this schema")
        return X
    if cluster.is_dask(X):
        find = partial(_find_schema, family=family, kinds=kinds)
        return cluster.from_dask(X, schema, client, find, unseen)
    if not is_path(X):
        return as_table(X, family, schema=schema, kinds=kinds, unseen=unseen, may_lack=may_lack)
    paths = list(X) if isinstance(X, list | tuple) else [X]
    if len(paths) == 1 and suffix_of(paths[0]) in MATRICES:
        matrix = read_matrix(paths[0], ColumnChoice(columns, tuple(drop)))
        with _naming_data(path_name(X)):
            return as_table(
                matrix.values, family, names=matrix.names, schema=schema, kinds=kinds, unseen=unseen
            )
    if schema is not None and header is not False:  # columns are found by name
        wanted = ColumnChoice(schema.names, tuple(drop), True)
    else:
        wanted = ColumnChoice(columns, tuple(drop), False)
    wanted = wanted._replace(
        na=tuple(map(str, na)), may_lack=may_lack, encoding=encoding, sheet=sheet
    )
    with _readable(paths) as readable:
        is_copy = readable is not paths  # which goes away, so all of it is read now
        client = None if is_copy else client
        held_cells = _HELD_CELLS if client is None else 0
        rows = open_files(readable, wanted, header, held_cells=held_cells)
        rows = replace(rows, unseen=unseen)
        return of_files(rows, family, schema, client, is_held=is_copy, kinds=kinds)


@contextlib.contextmanager
def _readable(paths: list[PathLike]) -> Iterator[list[PathLike]]:
    """Copy standard input to a temporary file; other paths are left as they are."""
    if [str(path) for path in paths] != [STANDARD]:
        yield paths
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "input.csv"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield [copy]
        except FileError as error:
            raise FileError(str(error).replace(str(copy), path_name(STANDARD))) from error


@contextlib.contextmanager
def _naming_data(name: str) -> Iterator[None]:
    """Name the files in errors about what they hold."""
    try:
        yield
    except FileError:
        raise
    except DataError as error:
        raise FileError(f"{name}: {error}") from error


# Files ------------------------------------------------------------------------------------------


def of_files(
    rows: FileRows,
    family: str,
    schema: Schema | None,
    client: Client | None = None,
    is_held: bool = False,
    kinds: KindsByName | None = None,
) -> Table | Parts:
    """Read files into a table if they are small or ``is_held``, or else open them in parts."""
    size = part_rows(Schema.gaussian(rows.names))
    if client is None and (is_held or rows.n_pieces(size) <= _HELD_PARTS):
        with _naming_data(rows.name):
            return rows.coded(rows.piece(rows.n_rows, 0), schema, family=family, kinds=kinds)
    raw: Pieces[pa.Table]
    if client is None:
        raw = LocalPieces(partial(rows.pieces, size), rows.n_pieces(size))
    else:
        raw = cluster.loaded(client, partial(rows.piece, size), rows.n_pieces(size), keep=False)
    is_new = schema is None
    if schema is None:
        with _naming_data(rows.name):
            schema = _find_schema(rows.names, rows.named, raw, family, kinds, rows.decimal)
        rows = replace(rows, kinds={name: rows.kinds[name] for name in schema.names})
    n_parts = rows.n_pieces(part_rows(schema))
    tables: Pieces[Table]
    if client is None:
        tables = LocalPieces(partial(rows.tables, schema), n_parts)
    else:
        tables = cluster.loaded(client, partial(rows.table, schema), n_parts)
    if is_new:
        warn_of_codes(tables.one(0, itself))
    return Parts(schema, rows.n_rows, tables, rows.name)


# The schema -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableFacts:
    """The facts of every column; adds up over parts."""

    names: tuple[str, ...]
    facts: tuple[ColumnFacts, ...]

    def __add__(self, other: TableFacts) -> TableFacts:
        if self.names != other.names:
            raise DataError(f"parts have different columns: {self.names} and {other.names}")
        return TableFacts(self.names, tuple(map(_added, self.names, self.facts, other.facts)))


def _added(name: str, some: ColumnFacts, more: ColumnFacts) -> ColumnFacts:
    try:
        return some + more
    except DataError as error:
        raise DataError(f"column {name!r}: {error}") from None


def _facts_of(piece: TableLike) -> TableFacts:
    raw = read_raw(raw_of_arrow(piece) if hasattr(piece, "combine_chunks") else piece)
    return TableFacts(raw.names, tuple(column_facts(raw)))


def _find_schema(
    names: Sequence[str],
    named: bool,
    pieces: Pieces[TableLike],
    family: str,
    kinds: KindsByName | None,
    decimal: str = ".",
) -> Schema:
    """Infer the schema from the first part if that suffices, or else from all rows."""
    found = pieces.one(0, _facts_of)
    if not all(facts.is_settled for facts in found.facts):
        found = pieces.total(_facts_of)
    schema = schema_of(
        names, named, found.facts, family, kinds,
        partial(_odd_columns, names, found.facts, pieces), decimal,
    )  # fmt: skip
    warn_of_aside(schema)
    return schema


def _odd_columns(
    names: Sequence[str], facts: Sequence[ColumnFacts], pieces: Pieces[TableLike]
) -> DataError | None:
    """Return an error for the first cell that makes text of a column of numbers, if any does."""
    if not isinstance(pieces, LocalPieces):
        return None
    for name in (name for name, own in zip(names, facts, strict=True) if own.type == "label"):
        cells = chain.from_iterable(pieces.each(_cells, name))
        odd = odd_cell(islice(cells, _SEARCHED_CELLS))
        if odd is not None:
            return odd_error(name, odd)
    return None


def _cells(piece: TableLike, name: str) -> list[object]:
    """Return the cells of a column of a pyarrow table or a pandas frame; missing ones are None."""
    cells: list[object] = []
    if hasattr(piece, "combine_chunks"):
        cells = piece.column(name).to_pylist()
    elif hasattr(piece, "columns"):
        cells = piece[name].astype(object).where(piece[name].notna(), None).tolist()
    return cells

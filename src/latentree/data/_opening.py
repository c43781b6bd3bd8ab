"""The door for data that need not fit into memory: files, folders, dask collections, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, cast

from numpy.typing import ArrayLike

from latentree.data import _cluster as cluster
from latentree.data._checks import odd_cell, odd_message
from latentree.data._coding import Labels, sort_labels
from latentree.data._convert import as_table, choose_family, refuse_many_states
from latentree.data._files._streams import FileRows, is_path, open_files
from latentree.data._files._tables import from_arrow, read_table, suffix_of
from latentree.data._parts import Parts, cut_table, part_rows
from latentree.data._pieces import LocalPieces, Pieces
from latentree.data._sources import Kind
from latentree.data._table import Schema, Table
from latentree.errors import DataError, FileError

_LOOKED_AT = 1_000_000  # cells of a column in which an odd one is looked for


def is_parted(X: Any) -> bool:
    """Whether data is meant to be taken in parts: a path, a dask collection, or parts."""
    return isinstance(X, Parts) or is_path(X) or cluster.is_dask(X)


def as_parts(
    X: Any,
    family: str = "auto",
    *,
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    weights: ArrayLike | None = None,
    client: Any = None,
) -> Parts:
    """Open data of any size, to be read part by part as often as it is needed.

    Parameters
    ----------
    X : path, paths, folder, dask array, dask dataframe, table or Parts
        Files are Parquet, Arrow (``.arrow``, ``.feather``) or text (``.csv``, ``.tsv``, also
        packed), and hold the same columns; a folder is all such files in it. Tables are whatever
        :func:`latentree.as_table` takes.
    family : {"auto", "gaussian", "discrete", "symmetric"}
        As for :func:`latentree.as_table`. Discrete data is read once to find the labels.
    schema : Schema, optional
        Code the data as that of a model.
    columns, drop : sequences of str
        Which columns of files to read.
    header : bool, optional
        Whether the first line of text holds the names of the columns.
    weights : array-like, optional
        How much each row counts.
    client : dask.distributed.Client, optional
        The cluster that reads and computes; its workers must see the files. Without it everything
        happens in this process. Results are the same.

    Returns
    -------
    Parts

    Examples
    --------
    >>> import numpy as np
    >>> as_parts(np.random.default_rng(0).standard_normal((100_000, 50)))
    Parts(100000 rows × 50 columns, gaussian, 2 parts)
    """
    if isinstance(X, Parts):
        if schema is not None and X.schema != schema:
            raise DataError("the parts have other columns or labels: open them with this schema")
        return X if weights is None else X.weighted(weights)
    if cluster.is_dask(X):
        parts = cluster.from_dask(X, family, schema, client, _find_schema)
    elif is_path(X) and not _is_matrix(X):
        if schema is not None and header is not False:
            columns = schema.names
        rows = open_files(X, columns=columns, drop=drop, header=header)
        parts = _of_files(rows, family, schema, client)
    else:
        parts = _of_table(_in_memory(X, family, schema, columns, drop, header), client)
    return parts if weights is None else parts.weighted(weights)


def _is_matrix(X: Any) -> bool:
    """Whether a single path is that of a file which is read as a whole."""
    return not isinstance(X, list | tuple) and suffix_of(X) in (".npz", ".mtx", ".mtx.gz")


def _in_memory(
    X: Any,
    family: str,
    schema: Schema | None,
    columns: Sequence[str] | None,
    drop: Sequence[str],
    header: bool | None,
) -> Table:
    if not is_path(X):
        return as_table(X, family, schema=schema)
    raw = read_table(X, columns=columns, drop=drop, header=header)
    try:
        return as_table(raw.data, family, names=raw.names, schema=schema)
    except DataError as error:
        raise FileError(f"{X}: {error}") from error


def _of_table(table: Table, client: Any) -> Parts:
    parts = cut_table(table)
    return parts if client is None else cluster.scattered(parts, client)


# Files ------------------------------------------------------------------------------------------


def _of_files(rows: FileRows, family: str, schema: Schema | None, client: Any) -> Parts:
    size = part_rows(Schema.gaussian(rows.names))
    raw: Pieces[Any]
    if client is None:
        raw = LocalPieces(partial(rows.pieces, size), rows.n_pieces(size))
    else:
        raw = cluster.loaded(client, partial(rows.piece, size), rows.n_pieces(size), keep=False)
    try:
        schema = schema or _find_schema(rows.names, list(rows.kinds.values()), raw, family)
    except FileError:
        raise
    except DataError as error:
        raise FileError(f"{rows.name}: {error}") from error
    load, n_parts = _Load(rows, schema), rows.n_pieces(part_rows(schema))
    if client is None:
        return Parts(schema, rows.n_rows, LocalPieces(load.tables, n_parts), rows.name)
    tables = cluster.loaded(client, load.table, n_parts)
    return Parts(schema, rows.n_rows, tables, rows.name)


@dataclass(frozen=True)
class _Load:
    """Reads and codes pieces; can be sent to a worker."""

    rows: FileRows
    schema: Schema

    def table(self, number: int) -> Table:
        return self.rows.table(number, self.schema)

    def tables(self, first: int) -> Iterator[Table]:
        return self.rows.tables(self.schema, first)


# The schema -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelSets:
    """The labels of every column; adds up over parts."""

    labels: tuple[frozenset[Any], ...]

    def __add__(self, other: LabelSets) -> LabelSets:
        return LabelSets(tuple(a | b for a, b in zip(self.labels, other.labels, strict=True)))


def _labels_of(piece: Any) -> LabelSets:
    """Find the labels of one piece: a pyarrow table, a frame or an array."""
    raw = from_arrow(piece) if hasattr(piece, "combine_chunks") else None
    if raw is None:
        table = as_table(piece, "discrete")
    else:
        table = as_table(raw.data, "discrete", names=raw.names)
    return LabelSets(tuple(map(frozenset, table.schema.labels)))


def _find_schema(
    names: Sequence[str], kinds: Sequence[Kind], pieces: Pieces[Any], family: str
) -> Schema:
    """Choose the family as for tables; discrete data is read once for its labels."""
    odd = partial(_odd_columns, names, kinds, pieces)
    chosen = cast(Any, choose_family(names, kinds, odd) if family == "auto" else family)
    if chosen == "gaussian":
        bad = [name for name, kind in zip(names, kinds, strict=True) if kind in ("label", "date")]
        if bad:
            raise DataError(
                odd()
                or f"column {bad[0]!r} holds words or dates, not numbers, so family='gaussian' "
                "cannot use it: drop it, convert it, or use family='discrete'"
            )
        return Schema.gaussian(names)
    labels: tuple[Labels, ...] = tuple(map(sort_labels, pieces.total(_labels_of).labels))
    if family == "auto":
        refuse_many_states(names, kinds, [len(own) for own in labels])
    if chosen == "symmetric":
        labels = (sort_labels(set().union(*labels)),) * len(names)
    return Schema(tuple(names), chosen, labels)


def _odd_columns(names: Sequence[str], kinds: Sequence[Kind], pieces: Pieces[Any]) -> str:
    """Say which cell, not too far down a file, makes text of a column of numbers, if one does."""
    if not isinstance(pieces, LocalPieces):
        return ""
    for name in (name for name, kind in zip(names, kinds, strict=True) if kind == "label"):
        cells = chain.from_iterable(pieces.each(_cells, name))
        odd = odd_cell(islice(cells, _LOOKED_AT))
        if odd is not None:
            return odd_message(name, odd)
    return ""


def _cells(piece: Any, name: str) -> list[Any]:
    cells: list[Any] = piece.column(name).to_pylist()
    return cells

"""Rows of one or many files as pieces of a fixed number of rows, however they lie in the files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentree._plain import shown
from latentree.data._convert import as_table
from latentree.data._files._segments import SUFFIXES, FileIndex, batches, index_file
from latentree.data._files._tables import Wanted, from_arrow, suffix_of
from latentree.data._parts import part_rows
from latentree.data._sources import Kind
from latentree.data._table import Schema, Table
from latentree.errors import DataError, FileError, import_extra


@dataclass(frozen=True)
class FileRows:
    """The rows of some files, in order; small, so that it can be sent to where they are read."""

    files: tuple[FileIndex, ...]
    kinds: dict[str, Kind]
    """Of the columns that are read, in the order of the first file."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    @property
    def name(self) -> str:
        """What messages call the data."""
        first = self.files[0].path
        return first if len(self.files) == 1 else f"{first} … {self.files[-1].path}"

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """First row of every segment of every file, and the number of all rows."""
        sizes = [size for file in self.files for size in file.n_rows]
        return np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._starts[-1])

    def n_pieces(self, size: int) -> int:
        """Return the number of pieces of so many rows."""
        return -(-self.n_rows // size)

    def pieces(self, size: int, first: int = 0) -> Iterator[Any]:
        """Yield pyarrow tables of a fixed number of rows, from the given one on."""
        pa = import_extra("pyarrow", "cli")
        held: list[Any] = []
        room = size
        for batch in self._batches(first * size):
            while batch.num_rows >= room:
                held.append(batch.slice(0, room))
                yield pa.concat_tables(held, promote_options="permissive")
                batch, held, room = batch.slice(room), [], size
            if batch.num_rows:
                held.append(batch)
                room -= batch.num_rows
        if held:
            yield pa.concat_tables(held, promote_options="permissive")

    def piece(self, size: int, number: int) -> Any:
        """Return one piece."""
        return next(self.pieces(size, number))

    def _batches(self, start: int) -> Iterator[Any]:
        """Yield pyarrow tables of all rows from ``start`` on."""
        pa = import_extra("pyarrow", "cli")
        segment = int(np.searchsorted(self._starts, start, side="right")) - 1
        skip = start - int(self._starts[segment])
        for file in self.files:
            if segment >= len(file.n_rows):
                segment -= len(file.n_rows)
                continue
            for batch in batches(file, segment, self.names):
                kept = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - kept.num_rows
                if kept.num_rows:
                    yield _plain(pa.table(kept) if isinstance(kept, pa.RecordBatch) else kept)
            segment = 0

    def tables(self, schema: Schema, first: int = 0) -> Iterator[Table]:
        """Yield the pieces coded by a schema."""
        for number, piece in enumerate(self.pieces(part_rows(schema), first), first):
            yield self.coded(piece, schema, number)

    def table(self, number: int, schema: Schema) -> Table:
        """Return one piece coded by a schema."""
        return self.coded(self.piece(part_rows(schema), number), schema, number)

    def coded(self, piece: Any, schema: Schema, number: int) -> Table:
        """Code a piece by a schema."""
        n_rows = piece.num_rows
        raw = from_arrow(piece)
        try:
            return as_table(raw.data, names=raw.names, schema=schema)
        except DataError as error:
            start = number * part_rows(schema)
            at = f"rows {start:,} to {start + n_rows - 1:,}"
            raise FileError(f"{self._holding(start)}: {at}: {error}") from error

    def _holding(self, row: int) -> str:
        """Return the path of the file that holds a row."""
        for file in self.files:
            row -= sum(file.n_rows)
            if row < 0:
                return file.path
        return self.name


def _plain(table: Any) -> Any:
    """Decode dictionaries: files and batches number their labels differently."""
    types = import_extra("pyarrow", "cli").types
    for j, kind in enumerate(table.schema.types):
        if types.is_dictionary(kind):
            table = table.set_column(
                j, table.column_names[j], table.column(j).cast(kind.value_type)
            )
    return table


# Opening ----------------------------------------------------------------------------------------


def is_path(X: Any) -> bool:
    """Whether data is given as a path, or as several."""
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(is_path(each) for each in X)


def list_files(X: Any) -> list[str]:
    """Return the files that are meant by a path, a folder or several of them, in order."""
    if not isinstance(X, str | os.PathLike):
        return [path for each in X for path in list_files(each)]
    path = Path(X)
    if not path.is_dir():
        return [str(X)]
    found = sorted(
        each
        for each in path.rglob("*")
        # Names that begin like this are notes that other programs leave (_SUCCESS, .crc).
        if each.is_file() and not each.name.startswith(("_", ".")) and suffix_of(each) in SUFFIXES
    )
    if not found:
        raise FileError(f"{X}: the folder holds no file of these kinds: {', '.join(SUFFIXES)}")
    return list(map(str, found))


def open_files(
    X: Any,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
) -> FileRows:
    """Find out what files hold, and that they hold the same columns.

    Raises
    ------
    FileError
        With the name of the file that is damaged, lacks a column or has one of another type.
    """
    paths = list_files(X)
    wanted = Wanted(columns, drop)
    files = []
    for path in paths:
        suffix = suffix_of(path)
        if suffix not in SUFFIXES:
            raise FileError(
                f"{path}: files of the kind {suffix!r} are not read in pieces: use one of "
                f"{', '.join(SUFFIXES)}"
            )
        files.append(index_file(path, suffix, wanted, header))
    kinds = dict(files[0].kinds)
    for file in files[1:]:
        _agree(kinds, files[0], file)
    rows = FileRows(tuple(files), kinds)
    if rows.n_rows == 0:
        raise FileError(f"{rows.name}: has no rows")
    return rows


def _agree(kinds: dict[str, Kind], first: FileIndex, other: FileIndex) -> None:
    """Check a file against the first one; note the kinds that only together are certain."""
    for name in kinds:
        if name not in other.kinds:
            raise FileError(f"{other.path}: has no column {shown(name)}, which {first.path} has")
    for name, theirs in other.kinds.items():
        if name not in kinds:
            raise FileError(f"{other.path}: has the column {shown(name)}, which {first.path} lacks")
        mine = kinds[name]
        if mine == theirs or theirs == "empty":
            continue
        # Text does not say whether 1 is whole or real; files with types do.
        numbers = {mine, theirs} == {"integer", "real"} and other.text is not None
        if not numbers and mine != "empty":
            raise FileError(
                f"{other.path}: column {shown(name)} is {_NOUNS[theirs]}, but in {first.path} it "
                f"is {_NOUNS[mine]}: give it one type in all files"
            )
        kinds[name] = "real" if numbers else theirs


_NOUNS: dict[Kind, str] = {
    "real": "real",
    "integer": "integer",
    "boolean": "boolean",
    "label": "text",
    "date": "a date or time",
    "empty": "empty",
}

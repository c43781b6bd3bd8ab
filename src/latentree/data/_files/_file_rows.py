"""Rows of one or many files as pieces of a fixed number of rows, however they lie in the files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from latentree._plain import shown
from latentree.data._checks import is_number
from latentree.data._convert import as_table
from latentree.data._files._arrow import raw_of_arrow
from latentree.data._files._columnar import ArrowReader, ParquetReader
from latentree.data._files._delimited import TextReader
from latentree.data._files._matrix_files import MATRICES
from latentree.data._files._paths import ALL_COLUMNS, ColumnChoice, chosen_format, naming, suffix_of
from latentree.data._files._sheet import SheetReader
from latentree.data._kinds import unnamed_place
from latentree.data._parts import part_rows
from latentree.data._raw import StorageKind
from latentree.data._table import Schema, Table
from latentree.errors import DataError, FileError, import_extra
from latentree.typing import IntArray, KindsByName, PathLike, Unseen

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_CELLS = 1 << 21
"""Cells of Parquet that are decoded at a time; row groups of up to 8 times as many are, whole."""

BLOCK_BYTES = 1 << 23
"""Bytes of text that are parsed at a time."""

DELIMITERS = {
    ".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".txt": "", ".txt.gz": "",
}  # fmt: skip
"""What separates the cells of text; nothing where the first lines show it."""

SUFFIXES = (".parquet", ".arrow", ".feather", *DELIMITERS, ".xlsx")
"""Suffixes of the files that can be read in pieces."""

_NOUNS = {"label": "text", "date": "a date or time"}


class Reader(Protocol):
    """A file of a table, in segments that can be read one by one."""

    @property
    def path(self) -> str:
        """Where the file is."""

    @property
    def kinds(self) -> dict[str, StorageKind]:
        """What the columns that are read hold, by name."""

    @property
    def n_rows(self) -> tuple[int, ...]:
        """Number of rows of every segment."""

    @property
    def is_typed(self) -> bool:
        """Whether the file itself says the types of its columns, and their names."""

    def batches(self, first: int, columns: Sequence[str]) -> Iterator[pa.Table | pa.RecordBatch]:
        """Yield the rows of these columns, from a segment on."""


@dataclass(frozen=True)
class FileRows:
    """The rows of some files, in order; small, so that it can be sent to where they are read."""

    files: tuple[Reader, ...]
    stamps: tuple[FileStamp, ...]
    """What every file was when it was opened."""
    kinds: dict[str, StorageKind]
    """Of the columns that are read, in the order of the first file."""
    named: bool = True
    """Whether the names of the columns come from the files."""
    unseen: Unseen = "error"
    """What becomes of labels that a schema does not have."""
    na: tuple[str, ...] = ()
    """Numbers and texts that stand for missing cells."""
    may_lack: tuple[str, ...] = ()
    """Columns of a schema that are taken as missing where the files lack them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    @property
    def decimal(self) -> str:
        """What separates fractions in text."""
        first = self.files[0]
        return first.dialect.decimal if isinstance(first, TextReader) else "."

    @property
    def name(self) -> str:
        """What messages call the data."""
        first = self.files[0].path
        return first if len(self.files) == 1 else f"{first} … {self.files[-1].path}"

    @cached_property
    def _starts(self) -> IntArray:
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

    def pieces(self, size: int, first: int = 0) -> Iterator[pa.Table]:
        """Yield tables of a fixed number of rows, from the given one on."""
        held: list[pa.Table] = []
        room = size
        for batch in self._batches(first * size):
            while batch.num_rows >= room:
                held.append(batch.slice(0, room))
                yield _stacked(held)
                batch, held, room = batch.slice(room), [], size
            if batch.num_rows:
                held.append(batch)
                room -= batch.num_rows
        if held:
            yield _stacked(held)

    def piece(self, size: int, number: int) -> pa.Table:
        """Return one piece."""
        return next(self.pieces(size, number))

    def _batches(self, start: int) -> Iterator[pa.Table]:
        """Yield pyarrow tables of all rows from ``start`` on."""
        # The segment that holds the row; what comes before the row in it is skipped.
        segment = int(np.searchsorted(self._starts, start, side="right")) - 1
        skip = start - int(self._starts[segment])
        for file, stamp in zip(self.files, self.stamps, strict=True):
            if segment >= len(file.n_rows):
                segment -= len(file.n_rows)
                continue
            with naming(file.path):
                stamp.check(file.path)
                n_rows = 0
                for batch in _unchanged(file, stamp, segment, list(self.names)):
                    n_rows += batch.num_rows
                    kept = batch.slice(min(skip, batch.num_rows))
                    skip -= batch.num_rows - kept.num_rows
                    if kept.num_rows:
                        yield without_codes(_plain(kept), self.na)
                stated = sum(file.n_rows[segment:])
                if n_rows != stated:
                    raise FileError(f"is damaged: it states {stated:,} rows, but holds {n_rows:,}")
            segment = 0

    def tables(self, schema: Schema, first: int = 0) -> Iterator[Table]:
        """Yield the pieces coded by a schema."""
        for number, piece in enumerate(self.pieces(part_rows(schema), first), first):
            yield self._coded(piece, schema, number)

    def table(self, schema: Schema, number: int) -> Table:
        """Return one piece coded by a schema."""
        return next(self.tables(schema, number))

    def coded(
        self,
        piece: pa.Table,
        schema: Schema | None,
        family: str = "auto",
        kinds: KindsByName | None = None,
    ) -> Table:
        """Return a piece as a table; with a schema also with the row labels that files may have."""
        labels = None
        if schema is not None and self.named:
            place = unnamed_place(piece.column_names)
            if place is not None and piece.column_names[place] not in schema.names:
                labels, piece = piece.column(place), piece.remove_column(place)
        table = as_table(
            replace(raw_of_arrow(piece, self.named), decimal=self.decimal),
            schema=schema,
            unseen=self.unseen,
            may_lack=self.may_lack,
            family=family,
            kinds=kinds,
        )
        return table if labels is None else replace(table, row_labels=labels)

    def _coded(self, piece: pa.Table, schema: Schema, number: int) -> Table:
        try:
            return self.coded(piece, schema)
        except DataError as error:
            start = number * part_rows(schema)
            at = f"rows {start:,} to {start + piece.num_rows - 1:,}"
            raise FileError(f"{self._holding(start)}: {at}: {error}") from error

    def _holding(self, row: int) -> str:
        """Return the path of the file that holds a row."""
        for file in self.files:
            row -= sum(file.n_rows)
            if row < 0:
                return file.path
        return self.name


def _stacked(tables: list[pa.Table]) -> pa.Table:
    """Put rows below each other; a column without any value takes the type of the others."""
    return import_extra("pyarrow", "cli").concat_tables(tables, promote_options="permissive")


def _plain(batch: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return a table without dictionaries: files and batches number their labels differently."""
    pa = import_extra("pyarrow", "cli")
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.table(columns, names=batch.schema.names)


def without_codes(batch: pa.Table, na: Sequence[str]) -> pa.Table:
    """Return a table without the numbers that stand for missing cells."""
    pa, compute = import_extra("pyarrow", "cli"), import_extra("pyarrow.compute", "cli")
    numbers = [float(text) for text in na if is_number(text)]
    for j, column in enumerate(batch.columns if numbers else ()):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            stands = compute.is_in(column.cast(pa.float64(), safe=False), pa.array(numbers))
            kept = compute.if_else(stands, pa.scalar(None, column.type), column)
            batch = batch.set_column(j, batch.schema.names[j], kept)
    return batch


class FileStamp(NamedTuple):
    """Size, time and number of a file, which tell whether it has changed since it was opened."""

    size: int
    time: int
    number: int
    """Of the file in its file system; 0 on other computers, which may number files differently."""

    def __reduce__(self) -> tuple[type[FileStamp], tuple[int, int, int]]:
        return FileStamp, (self.size, self.time, 0)

    @classmethod
    def of(cls, path: str) -> FileStamp:
        """Look at a file."""
        found = os.stat(path)
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)

    def check(self, path: str) -> None:
        """Raise if a file is not the same any more."""
        now = FileStamp.of(path)
        if self[:2] != now[:2] or self.number not in (0, now.number):
            raise FileError("has changed since it was opened")


def _unchanged(
    file: Reader, stamp: FileStamp, first: int, columns: list[str]
) -> Iterator[pa.Table]:
    """Yield the batches of a file; raise if the file changes while it is read."""
    try:
        for batch in file.batches(first, columns):
            stamp.check(file.path)
            yield batch
    except Exception:
        stamp.check(file.path)  # the better reason for what went wrong
        raise
    stamp.check(file.path)


# Opening ----------------------------------------------------------------------------------------


def open_files(
    X: PathLike | Iterable[PathLike],
    wanted: ColumnChoice = ALL_COLUMNS,
    header: bool | None = None,
    batch_cells: int = BATCH_CELLS,
    block_bytes: int = BLOCK_BYTES,
    held_cells: int = 0,
) -> FileRows:
    """Find out what files hold, and that they hold the same columns.

    Parameters
    ----------
    X : path, folder, or several
    wanted : ColumnChoice
        Which columns to read.
    header : bool, optional
        Whether the first line of text holds the names of the columns.
    batch_cells, block_bytes : int
        How much is decoded at a time. The pieces do not depend on it.
    held_cells : int
        Text of not more cells is kept as it was parsed, which takes memory but spares a pass.

    Raises
    ------
    FileError
        With the name of the file that is damaged, lacks a column or has one of another type.
    """
    paths = list_files(X)
    stamps: list[FileStamp] = []
    files: list[Reader] = []
    for path in paths:
        chosen_format(dict.fromkeys((*SUFFIXES, *MATRICES)), path)
        with naming(path):
            if suffix_of(path) in MATRICES:
                raise FileError("a matrix is read by itself, not together with other files")
            stamps.append(FileStamp.of(path))
            if stamps[-1].size == 0:
                raise FileError("is empty: 0 bytes")
            files.append(_reader(path, wanted, header, batch_cells, block_bytes, held_cells))
            held_cells -= sum(files[-1].n_rows) * len(files[-1].kinds)
    kinds = dict(files[0].kinds)
    for file in files[1:]:
        _agree(kinds, files[0], file)
    named = header is not False or files[0].is_typed
    rows = FileRows(
        tuple(files), tuple(stamps), kinds, named, na=wanted.na, may_lack=tuple(wanted.may_lack)
    )
    if rows.n_rows == 0:
        raise FileError(f"{rows.name}: has no rows")
    return rows


def _reader(
    path: str,
    wanted: ColumnChoice,
    header: bool | None,
    batch_cells: int,
    block_bytes: int,
    held_cells: int,
) -> Reader:
    """Open a file by the reader of its suffix."""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        return ParquetReader.open(path, wanted, batch_cells)
    if suffix == ".xlsx":
        return SheetReader.open(path, wanted, header)
    if suffix in DELIMITERS:
        return TextReader.open(path, DELIMITERS[suffix], header, wanted, block_bytes, held_cells)
    return ArrowReader.open(path, wanted)


def list_files(X: PathLike | Iterable[PathLike]) -> list[str]:
    """Return the files that are meant by a path, a folder or several of them, in order.

    Parameters
    ----------
    X : path, or sequence of paths

    Returns
    -------
    list of str

    Raises
    ------
    FileError
        When a folder holds no table.

    Examples
    --------
    >>> list_files(["a.csv", "b.csv"])
    ['a.csv', 'b.csv']
    """
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


def _agree(kinds: dict[str, StorageKind], first: Reader, other: Reader) -> None:
    """Check that a file has the columns of the first one, and merge the kinds of both."""
    for name in kinds:
        if name not in other.kinds:
            raise FileError(f"{other.path}: has no column {shown(name)}, which {first.path} has")
    for name, theirs in other.kinds.items():
        if name not in kinds:
            raise FileError(f"{other.path}: has the column {shown(name)}, which {first.path} lacks")
        mine = kinds[name]
        if mine == theirs or theirs == "empty":
            continue
        numbers = {mine, theirs} == {"integer", "real"}
        if not numbers and mine != "empty":
            raise FileError(
                f"{other.path}: column {shown(name)} is {_NOUNS.get(theirs, theirs)}, but in "
                f"{first.path} it is {_NOUNS.get(mine, mine)}: give it one type in all files"
            )
        kinds[name] = "real" if numbers else theirs

"""Files that are read piece by piece: Parquet, Arrow and text.

:func:`index_file` finds out what a file holds without keeping it; :func:`batches` then yields its
rows from any segment on (a row group, a record batch, a block of lines).
"""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from latentree._plain import shown
from latentree.data._files._separated import TextIndex, read_block, scan_separated
from latentree.data._sources import Kind
from latentree.errors import FileError, import_extra

BATCH_ROWS = 1 << 15
"""Rows that are decoded at a time."""

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
SUFFIXES = (".parquet", ".arrow", ".feather", *DELIMITERS)
"""Suffixes of the files that can be read in pieces."""


class FileIndex(NamedTuple):
    """What a file holds: kinds of its columns by name, and rows of each of its segments."""

    path: str
    suffix: str
    kinds: dict[str, Kind]
    n_rows: tuple[int, ...]
    text: TextIndex | None = None


def index_file(path: str, suffix: str, wanted: Any, header: bool | None) -> FileIndex:
    """Find out what a file holds; ``wanted`` chooses among the names of its columns."""
    with naming(path):
        if Path(path).stat().st_size == 0:
            raise FileError("is empty: 0 bytes")
        if suffix == ".parquet":
            return _index_parquet(path, wanted)
        if suffix in DELIMITERS:
            return _index_text(path, suffix, wanted, header)
        return _index_arrow(path, suffix, wanted)


def batches(index: FileIndex, first: int, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows from a segment on, as pyarrow tables or record batches."""
    if index.suffix == ".parquet":
        read = _parquet_batches(index, first, columns)
    elif index.text is not None:
        read = _text_batches(index, first, columns)
    else:
        read = _arrow_batches(index, first, columns)
    with naming(index.path):
        yield from read


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn what goes wrong in reading into an error that names the file."""
    try:
        yield
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise FileError(f"{path}: the packed file is damaged: {error}") from None
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"{path}: cannot be read, or is damaged: {reason}") from None


def _kinds(schema: Any, wanted: Any) -> dict[str, Kind]:
    names = schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileError(f"the column name {shown(twice)} occurs twice: rename one")
    return {name: kind_of(schema.field(name).type) for name in wanted(names)}


def kind_of(kind: Any) -> Kind:
    """What a column of an Arrow type holds."""
    types = import_extra("pyarrow", "cli").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_floating(kind) or types.is_decimal(kind):
        return "real"
    if types.is_integer(kind):
        return "integer"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_null(kind):
        return "empty"
    return "date" if types.is_temporal(kind) else "label"


# Parquet ----------------------------------------------------------------------------------------


def _index_parquet(path: str, wanted: Any) -> FileIndex:
    pq = import_extra("pyarrow.parquet", "cli")
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        return FileIndex(path, ".parquet", _kinds(file.schema_arrow, wanted), tuple(groups))


def _parquet_batches(index: FileIndex, first: int, columns: Sequence[str]) -> Iterator[Any]:
    pq = import_extra("pyarrow.parquet", "cli")
    metadata = pq.read_metadata(index.path)
    for group in range(first, len(index.n_rows)):
        # Opened anew: one reader of several groups holds on to the memory of those behind it.
        with pq.ParquetFile(index.path, metadata=metadata) as file:
            yield from file.iter_batches(BATCH_ROWS, row_groups=[group], columns=list(columns))


# Arrow ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _arrow_reader(path: str) -> Iterator[Any]:
    """Open a file with an index at its end, or a stream."""
    pa = import_extra("pyarrow", "cli")
    with pa.memory_map(path) as source:
        try:
            reader = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            reader = pa.ipc.open_stream(source)
        yield reader


def _arrow_record_batches(reader: Any, first: int) -> Iterator[Any]:
    if hasattr(reader, "get_batch"):
        for number in range(first, reader.num_record_batches):
            yield reader.get_batch(number)
        return
    for number, batch in enumerate(reader):
        if number >= first:
            yield batch


def _index_arrow(path: str, suffix: str, wanted: Any) -> FileIndex:
    with _arrow_reader(path) as reader:
        kinds = _kinds(reader.schema, wanted)
        rows = tuple(batch.num_rows for batch in _arrow_record_batches(reader, 0))
        return FileIndex(path, suffix, kinds, rows)


def _arrow_batches(index: FileIndex, first: int, columns: Sequence[str]) -> Iterator[Any]:
    with _arrow_reader(index.path) as reader:
        for batch in _arrow_record_batches(reader, first):
            yield batch.select(list(columns))


# Text -------------------------------------------------------------------------------------------


def _open_text(path: str) -> BinaryIO:
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return Path(path).open("rb")


def _index_text(path: str, suffix: str, wanted: Any, header: bool | None) -> FileIndex:
    with _open_text(path) as stream:
        text = scan_separated(stream, DELIMITERS[suffix], header, wanted)
    kinds = {name: kind_of(kind) for name, kind in text.types.items()}
    return FileIndex(path, suffix, kinds, tuple(block.n_rows for block in text.blocks), text)


def _text_batches(index: FileIndex, first: int, columns: Sequence[str]) -> Iterator[Any]:
    assert index.text is not None
    with _open_text(index.path) as stream:
        for number in range(first, len(index.n_rows)):
            yield read_block(stream, index.text, number, columns)

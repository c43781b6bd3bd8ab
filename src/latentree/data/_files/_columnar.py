"""Parquet and Arrow files, read by row groups and record batches.

pyarrow.dataset would read both, but not Arrow streams, and holds more memory: scanning a Parquet
file of 0.96 GB took 254 MB by row groups, 322 to 348 MB by a dataset's fragments of one row group
in the same time, and 1,325 MB by one fragment of the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from latentree.data._files._arrow import kind_of
from latentree.data._files._paths import ColumnChoice
from latentree.data._raw import StorageKind
from latentree.errors import import_extra

if TYPE_CHECKING:
    import pyarrow as pa

_BUFFER = 1 << 16
"""Bytes that Parquet is read by, so that a row group is not read ahead as a whole."""


@dataclass(frozen=True)
class ParquetReader:
    """A Parquet file: its segments are the row groups."""

    path: str
    kinds: dict[str, StorageKind]
    n_rows: tuple[int, ...]
    batch_cells: int
    is_typed = True

    @classmethod
    def open(cls, path: str, wanted: ColumnChoice, batch_cells: int) -> ParquetReader:
        """Read what the footer of a file says."""
        with import_extra("pyarrow.parquet", "cli").ParquetFile(path) as file:
            groups = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            return cls(path, _kinds(file.schema_arrow, wanted), tuple(groups), batch_cells)

    def batches(self, first: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield record batches, from a segment on."""
        pq = import_extra("pyarrow.parquet", "cli")
        metadata = pq.read_metadata(self.path)
        batch_rows = max(1, self.batch_cells // len(columns))
        for group in range(first, len(self.n_rows)):
            # Opened anew: one reader of several groups holds on to the memory of those behind it.
            # With a small buffer, because the whole of a group is read ahead without it.
            with pq.ParquetFile(
                self.path, metadata=metadata, pre_buffer=False, buffer_size=_BUFFER
            ) as file:
                # Whole groups take a third of the memory that batches do, if they are not long.
                if self.n_rows[group] <= 8 * batch_rows:
                    yield file.read_row_group(group, columns=columns)
                else:
                    yield from file.iter_batches(batch_rows, row_groups=[group], columns=columns)


@dataclass(frozen=True)
class ArrowReader:
    """An Arrow file or stream: its segments are the record batches."""

    path: str
    kinds: dict[str, StorageKind]
    n_rows: tuple[int, ...]
    is_typed = True

    @classmethod
    def open(cls, path: str, wanted: ColumnChoice) -> ArrowReader:
        """Read the types of a file, and how long its batches are."""
        pa = import_extra("pyarrow", "cli")
        with pa.OSFile(path) as source:
            kinds = _kinds(_opened(source).schema, wanted)
        rows = [batch.num_rows for batch in _arrow_batches(path, 0, list(kinds)[:1])]
        return cls(path, kinds, tuple(rows))

    def batches(self, first: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield record batches, from a segment on."""
        for batch in _arrow_batches(self.path, first, columns):
            batch.validate(full=True)  # a damaged one would end the process
            yield batch.select(columns)


def _arrow_batches(path: str, first: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file or stream, of which only these columns need be read."""
    with import_extra("pyarrow", "cli").OSFile(path) as source:
        # Not mapped into memory: a file that is cut short meanwhile would end the process.
        names = _opened(source).schema.names
        reader = _opened(source, [names.index(name) for name in columns])
        if hasattr(reader, "get_batch"):
            yield from map(reader.get_batch, range(first, reader.num_record_batches))
        else:
            yield from islice(reader, first, None)


def _opened(
    source: pa.NativeFile, fields: Sequence[int] = ()
) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    """Open a file with an index at its end, or a stream."""
    pa = import_extra("pyarrow", "cli")
    options = pa.ipc.IpcReadOptions(included_fields=list(fields))
    try:
        return pa.ipc.open_file(source, options=options)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source, options=options)


def _kinds(schema: pa.Schema, wanted: ColumnChoice) -> dict[str, StorageKind]:
    types = dict(zip(schema.names, schema.types, strict=True))
    return {name: kind_of(types[name]) for name in wanted.choose(schema.names)}

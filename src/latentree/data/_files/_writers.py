"""Tables written to files, whole or block by block; the suffix of the path chooses the format."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np

from latentree._disk import replacing
from latentree.data._files._paths import STANDARD, chosen_format
from latentree.errors import import_extra
from latentree.typing import AnyArray, PathLike

if TYPE_CHECKING:
    import pyarrow as pa

Write = Callable[..., None]
"""Adds rows to a table: an array, and the labels of the rows if the table has them; or a pyarrow
table with all columns."""

Labels = Sequence[Sequence[Hashable]]
"""What every column may hold, so that its type does not depend on the rows at hand."""

_LINES = 10_000
"""Rows that are turned into text at a time: the text of a long table need not fit into memory."""


class _ArrowWriter(AbstractContextManager["_ArrowWriter"], Protocol):
    """A ``RecordBatchWriter`` or a ``ParquetWriter`` of pyarrow."""

    def write_table(self, table: pa.Table) -> None:
        """Add rows."""


def write_table(path: PathLike, names: Sequence[str], data: AnyArray) -> None:
    r"""Write named columns in the format of the path's suffix.

    The file appears complete or not at all.

    Parameters
    ----------
    path : path of the file
        ``.csv``, ``.tsv`` (also packed, ``.csv.gz``), ``.parquet``, ``.arrow``, ``.feather`` or
        ``.npz``; ``-`` is CSV to standard output.
    names : sequence of str
        Of the columns.
    data : array of shape (n, m)
        Missing cells are NaN or None.

    Raises
    ------
    FileError
        When the suffix is unknown.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.csv"
    ...     write_table(path, ["a", "b"], np.array([[1.5, 2.0], [np.nan, 3.0]]))
    ...     path.read_text()
    'a,b\n1.5,2\n,3\n'
    """
    with table_writer(path, names) as write:
        write(data)


@contextlib.contextmanager
def table_writer(
    path: PathLike,
    names: Sequence[str],
    labels: Labels | None = None,
    row_labels: bool = False,
) -> Iterator[Write]:
    r"""Open a table to be written block by block.

    The file appears complete at the end, or not at all.

    Parameters
    ----------
    path, names
        As for :func:`write_table`.
    labels : sequence of sequences, optional
        What every column may hold, so that its type does not depend on the first block.
    row_labels : bool
        Whether a first column without a name labels the rows; ``.npz`` leaves it out.

    Returns
    -------
    context manager
        Gives the function that takes the blocks: arrays of shape (n, m), each with the pyarrow
        array of its row labels if there are any, or pyarrow tables.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.csv"
    ...     with table_writer(path, ["a"]) as write:
    ...         write(np.array([[1.5]]))
    ...         write(np.array([[2.5]]))
    ...     path.read_text()
    'a\n1.5\n2.5\n'
    """
    opened: Callable[..., AbstractContextManager[Write]] = chosen_format(WRITERS, path)
    names = ("", *names) if row_labels else tuple(names)
    if str(path) == STANDARD:
        sys.stdout.flush()
        with opened(sys.stdout.buffer, names, labels) as write:
            yield write
        return
    with replacing(path) as file, opened(file, names, labels) as write:
        yield write


def check_writable(path: PathLike) -> None:
    """Raise if :func:`write_table` does not know the suffix: better before the work than after.

    Parameters
    ----------
    path : path of the file

    Raises
    ------
    FileError
        With the suffixes that are known.

    Examples
    --------
    >>> check_writable("data.parquet")
    """
    chosen_format(WRITERS, path)


# Formats ----------------------------------------------------------------------------------------


def _text(delimiter: str, packed: bool = False) -> Callable[..., AbstractContextManager[Write]]:
    """Return a writer of delimited text."""

    @contextlib.contextmanager
    def opened(file: BinaryIO, names: Sequence[str], labels: Labels | None) -> Iterator[Write]:
        pc = import_extra("pyarrow.csv", "cli")
        options = pc.WriteOptions(include_header=False, delimiter=delimiter)
        with contextlib.ExitStack() as stack:
            stream: BinaryIO | gzip.GzipFile = file
            if packed:
                stream = stack.enter_context(
                    gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
                )
            line = io.StringIO()
            csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(names)
            stream.write(line.getvalue().encode())

            def write(data: AnyArray | pa.Table, row_labels: pa.Array | None = None) -> None:
                for start in range(0, len(data), _LINES):
                    some = slice(start, start + _LINES)
                    buffer = io.BytesIO()
                    if isinstance(data, np.ndarray):
                        named = None if row_labels is None else row_labels[some]
                        rows = to_arrow(names, data[some], labels, named)
                    else:
                        rows = data.slice(start, _LINES)
                    pc.write_csv(rows, buffer, options)
                    stream.write(buffer.getvalue())

            yield write

    return opened


def _binary(
    open_writer: Callable[[BinaryIO, pa.Schema], _ArrowWriter],
) -> Callable[..., AbstractContextManager[Write]]:
    """Write a format of Arrow, whose types are those of the first block."""

    @contextlib.contextmanager
    def opened(file: BinaryIO, names: Sequence[str], labels: Labels | None) -> Iterator[Write]:
        with contextlib.ExitStack() as stack:
            writers: list[_ArrowWriter] = []

            def write(data: AnyArray | pa.Table, row_labels: pa.Array | None = None) -> None:
                rows: pa.Table = data
                if isinstance(data, np.ndarray):
                    rows = to_arrow(names, data, labels, row_labels)
                if not writers:
                    writers.append(stack.enter_context(open_writer(file, rows.schema)))
                writers[0].write_table(rows)

            yield write

    return opened


def _parquet_writer(file: BinaryIO, schema: pa.Schema) -> _ArrowWriter:
    writer: _ArrowWriter = import_extra("pyarrow.parquet", "cli").ParquetWriter(file, schema)
    return writer


def _arrow_writer(file: BinaryIO, schema: pa.Schema) -> _ArrowWriter:
    pa = import_extra("pyarrow", "cli")
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    writer: _ArrowWriter = pa.ipc.new_file(file, schema, options=options)
    return writer


@contextlib.contextmanager
def _npz(file: BinaryIO, names: Sequence[str], labels: Labels | None) -> Iterator[Write]:
    """Write one matrix, which has to be whole before it is packed."""
    blocks: list[AnyArray] = []
    yield lambda data, row_labels=None: blocks.append(_as_array(data))
    data = np.concatenate(blocks) if blocks else np.empty((0, len(names)))
    names = names[len(names) - data.shape[1] :]
    plain = data.astype(np.str_) if data.dtype == object else data  # objects would be pickled
    np.savez_compressed(file, data=plain, names=np.array(names, np.str_))


def _as_array(data: AnyArray | pa.Table) -> AnyArray:
    """Return rows as an array, of objects if they are a pyarrow table."""
    if isinstance(data, np.ndarray):
        return data
    cells = np.empty(data.shape, object)
    for j, column in enumerate(data.columns):
        cells[:, j] = column.to_pylist()
    return cells


def to_arrow(
    names: Sequence[str], data: AnyArray, labels: Labels | None, row_labels: pa.Array | None = None
) -> pa.Table:
    """Return rows as a pyarrow table, with a first column of row labels if there are any."""
    pa = import_extra("pyarrow", "cli")
    known: Sequence[Sequence[Hashable] | None] = (
        [None] * data.shape[1] if labels is None else labels
    )
    columns = [_arrow_column(column, own) for column, own in zip(data.T, known, strict=True)]
    if row_labels is not None:
        columns.insert(0, row_labels)
    return pa.Table.from_arrays(columns, names=list(names))


def _arrow_column(column: AnyArray, labels: Sequence[Hashable] | None) -> pa.Array:
    """Return a column of one type; labels of several types become text."""
    pa = import_extra("pyarrow", "cli")
    if column.dtype != object:
        return pa.array(column, from_pandas=True)  # NaN is missing
    cells = column.tolist()
    possible = labels or cells  # numbers have no labels
    if len({type(cell) for cell in possible if cell is not None}) > 1:
        cells = [None if cell is None else str(cell) for cell in cells]
        return pa.array(cells, pa.string())
    return pa.array(cells, pa.array(labels).type if labels else None)


WRITERS: dict[str, Callable[..., AbstractContextManager[Write]]] = {
    ".csv": _text(","),
    ".tsv": _text("\t"),
    ".csv.gz": _text(",", packed=True),
    ".tsv.gz": _text("\t", packed=True),
    ".parquet": _binary(_parquet_writer),
    ".arrow": _binary(_arrow_writer),
    ".feather": _binary(_arrow_writer),
    ".npz": _npz,
}
"""The suffixes that :func:`write_table` knows."""

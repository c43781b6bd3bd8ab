"""From pyarrow's columns to those that :func:`latentree.as_table` codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentree.data._raw import Column, RawTable, StorageKind, object_column
from latentree.errors import DataError, import_extra
from latentree.typing import AnyArray, BoolArray

if TYPE_CHECKING:
    import pyarrow as pa


def kind_of(kind: pa.DataType) -> StorageKind:
    """Return what a column of an Arrow type holds."""
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


def raw_of_arrow(table: pa.Table, named: bool = True) -> RawTable:
    """Return the columns of a pyarrow table; words are coded without an object for every cell.

    Parameters
    ----------
    table : pyarrow.Table
    named : bool
        Whether columns are to be found by name, or else by position.
    """
    types = import_extra("pyarrow", "cli").types
    names = tuple(table.column_names)
    if all(map(types.is_floating, table.schema.types)):
        matrix = np.empty(table.shape)
        for j, column in enumerate(table.itercolumns()):
            matrix[:, j] = _real(column)
        return RawTable(names, named, table.num_rows, matrix)
    if all(types.is_integer(column.type) and not column.null_count for column in table.columns):
        narrow = [_narrow(column) for column in table.itercolumns()]
        matrix = np.empty(table.shape, np.result_type(*narrow))
        for j, values in enumerate(narrow):
            matrix[:, j] = values
        return RawTable(names, named, table.num_rows, matrix)
    columns = tuple(map(_column, names, table.itercolumns()))
    return RawTable(names, named, table.num_rows, None, columns)


def _column(name: str, cells: pa.ChunkedArray) -> Column:
    """Return one column of an Arrow table."""
    pa = import_extra("pyarrow", "cli")
    if pa.types.is_dictionary(cells.type):  # which may list values that do not occur
        cells = cells.cast(cells.type.value_type)
    kind = kind_of(cells.type)
    missing = _numbers(cells.is_null()) if cells.null_count else None
    empty = np.zeros(len(cells), np.int8)
    if missing is not None and missing.all():
        return Column(name, "empty", empty, missing)
    if kind == "date":
        is_known = cells.type.bit_width in (32, 64)
        return Column(name, kind, _numbers(cells) if is_known else empty, missing)
    if kind == "real":
        values = _real(cells.cast(pa.float64()))
        mask = np.isnan(values)
        return Column(name, kind, values, mask if mask.any() else None)
    if kind == "boolean":
        return Column(name, kind, _numbers(cells), missing)
    if kind == "integer":
        return Column(name, kind, _narrow(cells), missing)
    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        return _words(name, cells, missing)
    return object_column(name, cells.to_pylist(), missing)


def _real(cells: pa.ChunkedArray) -> AnyArray:
    """Return floating-point cells, NaN where they are missing."""
    values = _numbers(cells)
    if cells.null_count:
        values[_numbers(cells.is_null())] = np.nan
    return values


def _numbers(cells: pa.ChunkedArray) -> AnyArray:
    """Copy numbers or booleans out of their buffers, 0 where they are missing.

    pyarrow's own conversions import pandas where it is installed, which takes longer than
    everything else that is done with a small file.
    """
    chunks = getattr(cells, "chunks", [cells])
    parts = [_chunk_numbers(chunk) for chunk in chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0)


def _chunk_numbers(chunk: pa.Array) -> AnyArray:
    """Copy the numbers of one chunk; validity bits say where they are missing."""
    types = import_extra("pyarrow", "cli").types
    place = slice(chunk.offset, chunk.offset + len(chunk))
    buffer = chunk.buffers()[1]
    if types.is_boolean(chunk.type):
        bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
        values = bits[place].astype(bool)
    else:
        kind = "f" if types.is_floating(chunk.type) else "i"
        kind = "u" if types.is_unsigned_integer(chunk.type) else kind
        values = np.frombuffer(buffer, f"{kind}{chunk.type.bit_width // 8}")[place].copy()
    if chunk.null_count:  # the buffer holds anything there
        values[_chunk_numbers(chunk.is_null())] = 0
    return values


def _narrow(cells: pa.ChunkedArray) -> AnyArray:
    """Return integers in the smallest type that holds them: codes take a byte instead of eight."""
    pa, compute = import_extra("pyarrow", "cli"), import_extra("pyarrow.compute", "cli")
    ends = compute.min_max(cells).as_py()
    if ends["max"] > np.iinfo(np.int64).max:
        return _numbers(cells)
    # Of a negative number numpy gives the smallest signed type; −x − 1 needs as many bits as x.
    kind = np.min_scalar_type(min(ends["min"], -ends["max"] - 1, -1))
    return _numbers(cells.cast(pa.from_numpy_dtype(kind)))


def _words(name: str, cells: pa.ChunkedArray, missing: BoolArray | None) -> Column:
    """Code words by their place among the sorted ones."""
    coded = cells.dictionary_encode().combine_chunks()
    try:
        found = coded.dictionary.to_pylist()
    except UnicodeDecodeError as error:  # which pyarrow does not look for while it reads
        raise DataError(
            f"column {name!r} holds bytes that are no text in UTF-8 ({error.reason}): the file is "
            "damaged, or was written in another encoding"
        ) from None
    order = sorted(found)
    rank = {word: place for place, word in enumerate(order)}
    places = np.array([rank[word] for word in found], np.int32)
    return Column(name, "label", places[_numbers(coded.indices)], missing, tuple(order), coded=True)

"""From pyarrow's columns to those that :func:`latentree.as_table` codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentree.data._sources import Column, Kind, Source, _object_column
from latentree.errors import import_extra


def kind_of(kind: Any) -> Kind:
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


def source_of(table: Any, named: bool = True) -> Source:
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
            matrix[:, j] = column.to_numpy()  # missing cells become NaN
        return Source(names, named, table.num_rows, matrix)
    if all(types.is_integer(column.type) and not column.null_count for column in table.columns):
        narrow = [_narrow(column) for column in table.itercolumns()]
        matrix = np.empty(table.shape, np.result_type(*narrow))
        for j, values in enumerate(narrow):
            matrix[:, j] = values
        return Source(names, named, table.num_rows, matrix)
    columns = tuple(map(_column, names, table.itercolumns()))
    return Source(names, named, table.num_rows, None, columns)


def _column(name: str, cells: Any) -> Column:
    pa = import_extra("pyarrow", "cli")
    if pa.types.is_dictionary(cells.type):  # which may list values that do not occur
        cells = cells.cast(cells.type.value_type)
    kind = kind_of(cells.type)
    missing = cells.is_null().to_numpy() if cells.null_count else None
    if missing is not None and missing.all():
        return Column(name, "empty", np.zeros(len(cells), np.int8), missing)
    if kind == "date":
        return Column(name, kind, np.empty(0), missing)
    if kind == "real":
        values = cells.cast(pa.float64()).to_numpy()
        mask = np.isnan(values)
        return Column(name, kind, values, mask if mask.any() else None)
    if kind == "boolean":
        return Column(name, kind, cells.fill_null(False).to_numpy(), missing)
    if kind == "integer":
        return Column(name, kind, _narrow(cells.fill_null(0)), missing)
    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        return _words(name, cells, missing)
    return _object_column(name, cells.to_pylist(), missing)


def _narrow(cells: Any) -> NDArray[Any]:
    """Return integers in the smallest type that holds them: codes take a byte instead of eight."""
    pa, compute = import_extra("pyarrow", "cli"), import_extra("pyarrow.compute", "cli")
    ends = compute.min_max(cells).as_py()
    if ends["max"] > np.iinfo(np.int64).max:
        return np.asarray(cells.to_numpy())
    # Of a negative number numpy gives the smallest signed type; −x − 1 needs as many bits as x.
    kind = np.min_scalar_type(min(ends["min"], -ends["max"] - 1, -1))
    return np.asarray(cells.cast(pa.from_numpy_dtype(kind)).to_numpy())


def _words(name: str, cells: Any, missing: NDArray[np.bool_] | None) -> Column:
    """Code words by their place among the sorted ones."""
    coded = cells.dictionary_encode().combine_chunks()
    found = coded.dictionary.to_pylist()
    order = sorted(found)
    rank = {word: place for place, word in enumerate(order)}
    places = np.array([rank[word] for word in found], np.int32)
    indices = coded.indices if missing is None else coded.indices.fill_null(0)
    return Column(name, "label", places[indices.to_numpy()], missing, tuple(order), coded=True)

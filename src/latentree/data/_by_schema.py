"""Values coded by a schema, and tables brought into the columns and codes of a schema."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from latentree._plain import suggestion
from latentree.data import _checks as checks
from latentree.data import _coding as coding
from latentree.data._checks import listing
from latentree.data._coding import CodedColumn
from latentree.data._kinds import unnamed_place
from latentree.data._number_texts import number_column
from latentree.data._raw import Column, RawTable
from latentree.data._schemas import odd_cell_of
from latentree.data._table import Schema, Table
from latentree.errors import DataError
from latentree.typing import AnyArray, FloatArray, Kind, Labels, Unseen


def coded_by(schema: Schema, raw: RawTable, unseen: Unseen = "error") -> Table:
    """Return raw columns, in the order of a schema, as a table with its codes."""
    if schema.formats and raw.columns:
        columns = tuple(
            column if written is None else number_column(column, written)
            for column, written in zip(raw.columns, schema.formats, strict=True)
        )
        raw = replace(raw, columns=columns)
    if schema.family == "gaussian":
        return Table(_real_values(raw), schema)
    if schema.is_mixed:
        cells = zip(raw.as_columns(), schema.kinds, schema.labels, strict=True)
        values = np.empty((raw.n_rows, schema.n_columns))
        for j, (column, kind, labels) in enumerate(cells):
            values[:, j] = _mixed_values(column, kind, labels, unseen)
        return Table(values, schema)
    quick = None if raw.matrix is None else coding.code_matrix(raw.matrix)
    if quick is not None:
        return _recoded(quick[0], quick[1], schema, unseen)
    codes = [
        _codes(column, labels, unseen)
        for column, labels in zip(raw.as_columns(), schema.labels, strict=True)
    ]
    return Table(coding.stack(codes, int(schema.cardinalities.max())), schema)


def _codes(column: Column, labels: Labels, unseen: Unseen) -> AnyArray:
    """Return a column as codes of given labels."""
    coded = coding.code(column)
    return coding.recode(coded, column.name, coding.numbering(labels), unseen)


def _mixed_values(column: Column, kind: Kind, labels: Labels, unseen: Unseen) -> FloatArray:
    """Return a column of a mixed table: numbers, or codes as floats; NaN where missing."""
    if kind in ("category", "ordered"):
        codes = _codes(column, labels, unseen)
        return np.where(codes < 0, np.nan, codes)
    values = _real_column(column)
    _refuse_infinite((column.name,), values[:, None])
    if kind == "count":
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero((values < 0) | (values != np.rint(values)) & ~np.isnan(values))
        if bad.size:
            raise DataError(
                f"column {column.name!r} holds {values[bad[0]]:g} in row {bad[0]}, but counts are "
                "0, 1, 2, …"
            )
    return values


def _real_values(raw: RawTable) -> FloatArray:
    """Return all columns as floats; raise if one is infinite."""
    if raw.matrix is not None:
        values = np.ascontiguousarray(raw.matrix, np.float64)
    else:
        values = np.empty((raw.n_rows, len(raw.names)))
        for j, column in enumerate(raw.columns):
            values[:, j] = _real_column(column)
    _refuse_infinite(raw.names, values)
    return values


def _real_column(column: Column) -> FloatArray:
    """Return a column as floats, NaN where missing; raise if it holds labels or dates."""
    if column.kind == "date":
        raise coding.date_error(column.name)
    if column.kind == "label" and not _all_numbers(column):
        odd = odd_cell_of(column)
        if odd is not None:
            raise checks.odd_error(column.name, odd)
        raise DataError(f"column {column.name!r} holds labels, but numbers are needed")
    values: FloatArray = np.full(column.values.size, np.nan)
    there = slice(None) if column.missing is None else ~column.missing
    values[there] = column.values[there]
    return values


def _all_numbers(column: Column) -> bool:
    """Whether labels are Python numbers, as integers of more than 64 bits are."""
    present = column.values if column.missing is None else column.values[~column.missing]
    return not column.coded and all(isinstance(value, int) for value in present.tolist())


def _refuse_infinite(names: Sequence[str], values: FloatArray) -> None:
    infinite = checks.find_infinite(values)
    if infinite is not None:
        row, j = infinite
        raise DataError(
            f"column {names[j]!r} holds {values[row, j]} in row {row}: replace infinite "
            "values, or set them to NaN if they are missing"
        )


# Columns of a schema ----------------------------------------------------------------------------


def select_columns(raw: RawTable, schema: Schema) -> RawTable:
    """Return the schema's columns of a raw table, in its order and under its names."""
    index = _column_places(raw.names, raw.named, schema)
    if index is None:
        return raw.renamed(schema.names)
    matrix = None if raw.matrix is None else raw.matrix[:, index]
    columns = tuple(raw.columns[j] for j in index) if raw.columns else ()
    return replace(raw, names=schema.names, matrix=matrix, columns=columns)


def with_missing(raw: RawTable, names: Sequence[str]) -> RawTable:
    """Add columns that the data lacks, without any value."""
    lacking = [name for name in names if name not in raw.names] if raw.named else []
    if not lacking:
        return raw
    empty, missing = np.zeros(raw.n_rows, np.int8), np.ones(raw.n_rows, bool)
    added = (Column(name, "empty", empty, missing) for name in lacking)
    columns = (*raw.as_columns(), *added)
    return replace(raw, names=(*raw.names, *lacking), matrix=None, columns=columns)


def _column_places(names: Sequence[str], named: bool, schema: Schema) -> list[int] | None:
    """Where the schema's columns are; None when they are in place."""
    if tuple(names) == schema.names:
        return None
    whole = schema.whole_names
    if not named:
        if len(names) == len(whole) > schema.n_columns:
            names = whole
        elif len(names) != schema.n_columns:
            raise DataError(
                f"the data has {len(names)} columns, but the model has {schema.n_columns}"
            )
        else:
            return None
    place = {name: j for j, name in enumerate(names)}
    lacking = [name for name in schema.names if name not in place]
    if lacking:
        are = (
            f"column {lacking[0]!r} is" if len(lacking) == 1 else f"columns {listing(lacking)} are"
        )
        raise DataError(
            f"the model's {are} not in the data"
            f"{suggestion(lacking[0], [name for name in names if name not in whole])}"
        )
    known, unnamed = set(whole), unnamed_place(names)
    extra = [name for j, name in enumerate(names) if name not in known and j != unnamed]
    if extra:
        are, them = f"columns {listing(extra)} are", "them"
        if len(extra) == 1:
            are, them = f"column {extra[0]!r} is", "it"
        raise DataError(
            f"{are} unknown to the model: drop {them}, or correct mistyped names"
            f"{suggestion(extra[0], whole)}",
            extra,
        )
    return [place[name] for name in schema.names]


# Tables of another schema -----------------------------------------------------------------------


def match(
    table: Table, names: Sequence[str] | None, schema: Schema, unseen: Unseen = "error"
) -> Table:
    """Bring a table into the columns and codes of a schema."""
    if table.schema == schema:
        return table
    index = _column_places(table.names, names is not None, schema)
    values = table.values if index is None else table.values[:, index]
    labels = table.schema.labels if index is None else tuple(table.schema.labels[j] for j in index)
    if table.is_sparse:
        _check_two_states(schema)
    elif table.family == "gaussian":
        values = np.ascontiguousarray(values)
    elif table.schema.is_mixed:
        values = _remixed(values, labels, schema, unseen)
    else:
        values = _recoded(values, labels, schema, unseen).values
    return Table(values, schema, table.weights)


def _remixed(
    values: FloatArray, labels: Sequence[Labels], schema: Schema, unseen: Unseen
) -> FloatArray:
    """Return mixed values with the schema's codes instead of each column's own."""
    values = np.array(values)
    for j, (own, wanted) in enumerate(zip(labels, schema.labels, strict=True)):
        if bool(own) != bool(wanted):
            raise DataError(f"column {schema.names[j]!r} is not {schema.kinds[j]} in the table")
        if own != wanted:
            codes = np.where(np.isnan(values[:, j]), -1, values[:, j]).astype(np.int64)
            number = coding.numbering(wanted)
            recoded = coding.recode(CodedColumn(codes, own), schema.names[j], number, unseen)
            values[:, j] = np.where(recoded < 0, np.nan, recoded)
    return values


def _check_two_states(schema: Schema) -> None:
    for name, labels in zip(schema.names, schema.labels, strict=True):
        if labels != (0, 1):
            raise DataError(
                f"column {name!r} has the labels {listing(labels)}, so sparse 0/1 data does not "
                "fit it: pass a dense array or a frame"
            )


def _recoded(
    codes: AnyArray, labels: Sequence[Labels], schema: Schema, unseen: Unseen = "error"
) -> Table:
    """Code by the schema's labels instead of each column's own."""
    dtype = coding.smallest_type(int(schema.cardinalities.max()))
    same = all(map(operator.eq, labels, schema.labels))  # then nothing is written below
    values = codes.astype(dtype, order="C", copy=not same)
    for j, (own, wanted) in enumerate(zip(labels, schema.labels, strict=True)):
        if own != wanted:
            coded = CodedColumn(codes[:, j], own)
            number = coding.numbering(wanted)
            values[:, j] = coding.recode(coded, schema.names[j], number, unseen)
    return Table(values, schema)

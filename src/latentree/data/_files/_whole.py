"""Files with all their columns, into which a model's columns go back once their gaps are filled."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from latentree.data._checks import MISSING
from latentree.data._files._delimited import TextReader
from latentree.data._files._file_rows import DELIMITERS, FileRows, Reader, open_files
from latentree.data._files._paths import ColumnChoice, suffix_of
from latentree.data._files._writers import to_arrow
from latentree.data._kinds import unnamed_place
from latentree.data._table import Schema
from latentree.errors import import_extra
from latentree.typing import AnyArray, PathLike

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class WholeFiles:
    """All columns of files, in their order, and the columns of a model among them."""

    rows: FileRows
    names: tuple[str, ...]
    """Of the columns that are written: those of the files, then those that the files lack."""
    schema: Schema
    missing: tuple[str, ...]
    """Texts that stand for missing cells."""

    def pieces(self, size: int) -> Iterator[pa.Table]:
        """Yield all columns, so many rows at a time."""
        return self.rows.pieces(size)

    def filled(self, piece: pa.Table, values: AnyArray) -> pa.Table:
        """Return a piece with the model's columns, and constant ones, without gaps.

        Parameters
        ----------
        piece : pyarrow.Table
            Rows of the files.
        values : array of shape (n_rows, n_columns)
            The model's columns in these rows, without gaps.
        """
        pa = import_extra("pyarrow", "cli")
        schema = self.schema
        labels = None if schema.family == "gaussian" else schema.labels
        full = dict(zip(schema.names, to_arrow(schema.names, values, labels).columns, strict=True))
        constants = {own.name: own.value for own in schema.aside if own.value is not None}
        columns = []
        for name, column in zip(self.names, piece.columns, strict=False):
            if name in full:
                column = full[name]
            elif name in constants:
                column = self._with_constant(column, constants[name])
            columns.append(column)
        columns += [full[name] for name in self.names[len(columns) :]]
        return pa.Table.from_arrays(columns, names=list(self.titles))

    def _with_constant(self, column: pa.ChunkedArray, value: Hashable) -> pa.ChunkedArray:
        pa, compute = import_extra("pyarrow", "cli"), import_extra("pyarrow.compute", "cli")
        if pa.types.is_null(column.type):
            return pa.array([value] * len(column))
        gaps = compute.is_null(column, nan_is_null=pa.types.is_floating(column.type))
        if pa.types.is_string(column.type):
            gaps = compute.or_(gaps, compute.is_in(column, pa.array(self.missing, column.type)))
            value = str(value)
        return compute.if_else(gaps, pa.scalar(value, column.type), column)

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the columns as they are written: that of row labels is empty."""
        has_labels = self.rows.named and _row_labels(self.names, self.schema) is not None
        return ("", *self.names[1:]) if has_labels else self.names


def open_whole(
    X: PathLike | Sequence[PathLike],
    schema: Schema,
    out: PathLike,
    *,
    header: bool | None = None,
    na: Sequence[str] = (),
    encoding: str | None = None,
    sheet: str | None = None,
) -> WholeFiles:
    """Open files with all their columns, to be written again with those of a model filled in.

    Parameters
    ----------
    X : path, folder, or several
    schema : Schema
        Of the model.
    out : path
        Where they will be written. From text to text the cells of columns that are not the
        model's stay as they are written: 007, or a date in any form.
    header, na, encoding, sheet
        As for :func:`latentree.as_parts`.
    """
    rows = open_files(
        X, ColumnChoice(na=tuple(map(str, na)), encoding=encoding, sheet=sheet), header
    )
    labels = _row_labels(rows.names, schema) if rows.named else None
    if labels is not None:  # which pandas keeps behind all columns
        rows = replace(rows, kinds={labels: rows.kinds[labels]} | rows.kinds)
    own = rows.names
    if not rows.named:  # columns are told by their places
        own = schema.whole_names if len(own) == len(schema.whole_names) else schema.names
    if suffix_of(out) in DELIMITERS:
        rows = replace(rows, files=tuple(map(_verbatim, rows.files)))
    lacking = tuple(name for name in schema.names if name not in own)
    return WholeFiles(rows, (*own, *lacking), schema, (*MISSING, *map(str, na)))


def _row_labels(names: Sequence[str], schema: Schema) -> str | None:
    """Return the name of the column that labels the rows, if there is one."""
    place = unnamed_place(names)
    return None if place is None or names[place] in schema.names else names[place]


def _verbatim(file: Reader) -> Reader:
    """Return a reader that leaves text as it is."""
    if not isinstance(file, TextReader):
        return file
    text = import_extra("pyarrow", "cli").string()
    dialect = file.dialect._replace(missing=("",))
    return replace(file, types=dict.fromkeys(file.types, text), dialect=dialect, held=())

"""The first sheet of an Excel workbook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from latentree._plain import reason_of
from latentree.data._checks import default_names
from latentree.data._files._arrow import kind_of
from latentree.data._files._delimited import MISSING, column_names
from latentree.data._files._paths import ColumnChoice
from latentree.data._raw import StorageKind
from latentree.errors import FileError, import_extra

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SheetReader:
    """A workbook: its only segment is the first sheet."""

    path: str
    kinds: dict[str, StorageKind]
    n_rows: tuple[int, ...]
    held: pa.Table = field(repr=False)
    """The sheet as a pyarrow table: one of a million rows, the most there can be, fits."""
    is_typed = True

    @classmethod
    def open(cls, path: str, wanted: ColumnChoice, header: bool | None) -> SheetReader:
        """Read the first sheet; its first row holds the names, unless ``header`` is False."""
        pa = import_extra("pyarrow", "cli")
        rows = _cells(path)
        while rows and all(cell is None for cell in rows[-1]):
            rows.pop()  # formatted cells without a value
        if not rows:
            raise FileError("the first sheet is empty")
        if header is False:
            names = default_names(len(rows[0]))
        else:
            first = rows.pop(0)
            names = column_names(["" if cell is None else str(cell) for cell in first])
        missing = {*MISSING, *wanted.na}
        kept = wanted.choose(names)
        place = {name: j for j, name in enumerate(names)}
        columns = [_column([row[place[name]] for row in rows], missing) for name in kept]
        table = pa.table(columns, names=kept)
        kinds = {name: kind_of(column.type) for name, column in zip(kept, columns, strict=True)}
        return cls(path, kinds, (table.num_rows,), table)

    def batches(self, first: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the sheet."""
        yield self.held.select(columns)


def _cells(path: str) -> list[tuple[object, ...]]:
    """Return the cells of the first sheet, row by row; formulas are the values last computed."""
    openpyxl = import_extra("openpyxl", "excel")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # of zip, of XML, or of the library
        raise FileError(f"is no Excel workbook, or is damaged: {reason_of(error)}") from None
    try:
        return list(book.worksheets[0].iter_rows(values_only=True)) if book.worksheets else []
    finally:
        book.close()


def _column(cells: list[object], missing: set[str]) -> pa.Array:
    """Return cells of one type; of several types all are text."""
    pa = import_extra("pyarrow", "cli")
    there = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
    types = {type(cell) for cell in there if cell is not None}
    if len(types) > 1 and not types <= {int, float}:
        there = [None if cell is None else str(cell) for cell in there]
    elif types == {int, float}:
        there = [float(cell) if isinstance(cell, int | float) else None for cell in there]
    return pa.array(there)

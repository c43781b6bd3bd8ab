"""A sheet of an Excel workbook."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from latentree._plain import reason_of, shown
from latentree.data._checks import MISSING, default_names
from latentree.data._files._arrow import kind_of
from latentree.data._files._delimited import column_names
from latentree.data._files._paths import ColumnChoice
from latentree.data._files._titles import n_title_rows, warn_of_title
from latentree.data._raw import StorageKind
from latentree.errors import DataWarning, FileError, import_extra

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[object, ...]
Worksheet = Any
"""A sheet as openpyxl reads it; it has no types."""


@dataclass(frozen=True)
class SheetReader:
    """A workbook: its only segment is one of its sheets."""

    path: str
    kinds: dict[str, StorageKind]
    n_rows: tuple[int, ...]
    held: pa.Table = field(repr=False)
    """The sheet as a pyarrow table: one of a million rows, the most there can be, fits."""
    is_typed = True

    @classmethod
    def open(cls, path: str, wanted: ColumnChoice, header: bool | None) -> SheetReader:
        """Read a sheet; its first row holds the names, unless ``header`` is False."""
        sheet = _read_sheet(path, wanted.sheet)
        pa = import_extra("pyarrow", "excel")
        rows = sheet.rows
        if header is False:
            names = default_names(len(rows[0]))
        else:
            n_title = n_title_rows([list(map(_text, row)) for row in rows[:20]])
            if n_title:
                warn_of_title(path, n_title, " ".join(map(_text, rows[0])))
            names = column_names(list(map(_text, rows[n_title])))
            del rows[: n_title + 1]
        missing = {*MISSING, *wanted.na}
        kept = wanted.choose(names)
        place = {name: j for j, name in enumerate(names)}
        columns = [_column([row[place[name]] for row in rows], missing) for name in kept]
        table = pa.table(columns, names=kept)
        kinds = {name: kind_of(column.type) for name, column in zip(kept, columns, strict=True)}
        if sheet.others:
            warnings.warn(
                f"{path}: sheet {shown(sheet.name)} was read; there are also "
                f"{', '.join(map(shown, sheet.others))}, which sheet= chooses",
                DataWarning,
                5,
            )
        return cls(path, kinds, (table.num_rows,), table)

    def batches(self, first: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the sheet."""
        yield self.held.select(columns)


class _Sheet(NamedTuple):
    """A sheet: its name, its cells row by row, and the names of others, if none was asked for."""

    name: str
    rows: list[Row]
    others: tuple[str, ...]


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


def _read_sheet(path: str, wanted: str | None) -> _Sheet:
    """Return the sheet that is asked for, or the first one that holds anything."""
    openpyxl = import_extra("openpyxl", "excel")
    with Path(path).open("rb") as file:  # which the library leaves open if it is damaged
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            found = _first_filled(book.worksheets) if wanted is None else _named(book, wanted)
        except FileError:
            raise
        except Exception as error:  # of zip, of XML, or of the library
            raise FileError(
                f"is not an Excel workbook, or is damaged: {reason_of(error)}"
            ) from None
    if not found.rows:
        raise FileError("all sheets are empty" if wanted is None else f"sheet {wanted!r} is empty")
    return found


def _first_filled(sheets: Sequence[Worksheet]) -> _Sheet:
    """Return the first sheet that holds anything, and the names of the others."""
    for sheet in sheets:
        rows = _cells(sheet)
        if rows:
            others = tuple(other.title for other in sheets if other is not sheet)
            return _Sheet(sheet.title, rows, others)
    return _Sheet("", [], ())


def _named(book: Any, wanted: str) -> _Sheet:
    """Return a sheet, given by its name or by its number from 1 on."""
    names = [sheet.title for sheet in book.worksheets]
    if wanted in names:
        place = names.index(wanted)
    elif wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        place = int(wanted) - 1
    else:
        raise FileError(f"there is no sheet {shown(wanted)}: it has {', '.join(map(shown, names))}")
    return _Sheet(names[place], _cells(book.worksheets[place]), ())


def _cells(sheet: Worksheet) -> list[Row]:
    """Return the cells of a sheet, row by row; formulas are the values last computed."""
    # The size that a workbook states is a note of the program that wrote it, and may be wrong.
    sheet.reset_dimensions()
    most = 1 << 20  # rows of a sheet; openpyxl makes an empty row for each that a number skips
    rows = list(islice(sheet.iter_rows(values_only=True), most + 1))
    if len(rows) > most:
        raise FileError(
            f"is damaged: a sheet has {most:,} rows at most, but one has a higher number"
        )
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()  # formatted cells without a value
    width = max((_filled_width(row) for row in rows), default=0)
    return [(*row, *(None,) * (width - len(row)))[:width] for row in rows]


def _filled_width(row: Row) -> int:
    """Return the number of cells up to the last one with a value."""
    return max((j + 1 for j, cell in enumerate(row) if cell is not None), default=0)


def _column(cells: list[object], missing: set[str]) -> pa.Array:
    """Return cells of one type; of several types all are text."""
    pa = import_extra("pyarrow", "excel")
    there = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
    types = {type(cell) for cell in there if cell is not None}
    if len(types) > 1 and not types <= {int, float}:
        there = [None if cell is None else str(cell) for cell in there]
    elif types == {int, float}:
        there = [float(cell) if isinstance(cell, int | float) else None for cell in there]
    try:
        return pa.array(there)
    except (OverflowError, pa.ArrowInvalid):  # integers of more than 64 bits
        return pa.array([None if cell is None else str(cell) for cell in there])

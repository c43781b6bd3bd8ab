"""Reading comma-separated text: block by block, so that text and table never lie side by side.

pyarrow parses the blocks. Its own reader of whole files keeps all text until the last type is
certain, which is several times the size of the table.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from latentree._plain import shown
from latentree.errors import FileError, import_extra

BLOCK = 8 * 2**20
"""Bytes that are parsed at a time; whole lines, so a block can be somewhat longer."""

_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class Layout:
    """What the first lines tell of a file."""

    names: tuple[str, ...]
    delimiter: str
    decimal: str
    n_lines_before: int


def read_separated(
    stream: BinaryIO, delimiter: str, header: bool | None, wanted: Any, as_text: Sequence[str] = ()
) -> Any:
    """Read a stream into a pyarrow table.

    Parameters
    ----------
    stream : binary stream
        UTF-8; quoted cells may hold separators and line ends.
    delimiter : str
        A comma may turn out to be a semicolon or a tab.
    header : bool, optional
        Whether the first line holds names. When left out it must, and may not look like numbers.
    wanted : callable
        From the names to those that are to be read.
    as_text : sequence of str
        Columns that are not to be taken for numbers.

    Raises
    ------
    TextColumnsError
        When columns that began as numbers turn out to hold text: read again with these ``as_text``.
    FileError
        When it is no such text.
    """
    pa = import_extra("pyarrow", "cli")
    blocks = _blocks(stream)
    first = next(blocks, b"")
    layout, first = _layout(first, delimiter, header)
    kept = wanted(layout.names)
    parts, n_lines = [], layout.n_lines_before
    for block in _chain(first, blocks):
        text = dict.fromkeys(as_text, pa.string())
        parts.append(_narrowed(_parse(block, layout, kept, text, n_lines)))
        n_lines += block.count(b"\n")
    parts = [part for part in parts if part.num_rows] or parts[:1]
    _refuse_mixed(parts, as_text)
    return pa.concat_tables(parts, promote_options="permissive")


class TextBlock(NamedTuple):
    """Whole lines of a file: where they are, how many, and how many rows they hold."""

    start: int
    n_bytes: int
    n_lines_before: int
    n_rows: int


class TextIndex(NamedTuple):
    """What a file of text holds, found without keeping it: types of all columns, and blocks."""

    layout: Layout
    types: dict[str, Any]
    blocks: tuple[TextBlock, ...]


def scan_separated(stream: BinaryIO, delimiter: str, header: bool | None, wanted: Any) -> TextIndex:
    """Read a stream once to learn the types of its columns and where its rows are.

    Parameters as for :func:`read_separated`. A column that is text anywhere is text.
    """
    blocks = _blocks(stream)
    whole = next(blocks, b"")
    layout, first = _layout(whole, delimiter, header)
    kept = wanted(layout.names)
    start, n_lines = len(whole) - len(first), layout.n_lines_before
    found: dict[str, set[Any]] = {name: set() for name in kept}
    listed = []
    for block in _chain(first, blocks):
        part = _parse(block, layout, kept, {}, n_lines)
        for name in kept:
            found[name].add(part.schema.field(name).type)
        listed.append(TextBlock(start, len(block), n_lines, part.num_rows))
        start += len(block)
        n_lines += block.count(b"\n")
    types = {name: _common_type(name, kinds) for name, kinds in found.items()}
    return TextIndex(layout, types, tuple(listed))


def read_block(stream: BinaryIO, index: TextIndex, number: int, kept: Sequence[str]) -> Any:
    """Read one block of a file that was scanned, into a pyarrow table."""
    block = index.blocks[number]
    stream.seek(block.start)
    types = {name: index.types[name] for name in kept}
    data = stream.read(block.n_bytes)
    table = _parse(data, index.layout, kept, types, block.n_lines_before)
    if len(data) != block.n_bytes or table.num_rows != block.n_rows:
        raise FileError("has changed since it was opened")
    return table


def _common_type(name: str, kinds: set[Any]) -> Any:
    pa = import_extra("pyarrow", "cli")
    if any(pa.types.is_binary(kind) for kind in kinds):
        raise _not_utf8(f"column {shown(name)} is")
    kinds = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(kinds) < 2:
        return kinds.pop() if kinds else pa.null()
    return pa.float64() if kinds == {pa.int64(), pa.float64()} else pa.string()


class TextColumnsError(Exception):
    """Some columns hold text further down; ``names`` says which."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)


# Blocks of lines --------------------------------------------------------------------------------


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Pieces of whole lines; a line end within quotes ends no line."""
    rest = b""
    while chunk := stream.read(BLOCK):
        data = rest + chunk
        end = data.rfind(b"\n") + 1
        # An odd number of quotes before the cut: it lies inside a cell, or quotes are astray.
        if end and data.count(b'"', 0, end) % 2 == 0:
            yield data[:end]
            rest = data[end:]
        else:
            rest = data
    if rest:
        yield rest


def _chain(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def _not_utf8(what: str) -> FileError:
    return FileError(
        f"{what} not text in UTF-8: save the file as UTF-8 (spreadsheets call it 'CSV UTF-8'), or "
        "convert it, for instance with iconv -f latin1 -t utf8"
    )


# The first lines --------------------------------------------------------------------------------


def _layout(block: bytes, delimiter: str, header: bool | None) -> tuple[Layout, bytes]:
    """Find names and separators, and return what follows the names."""
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError("is text in UTF-16: save it as UTF-8")
    if b"\0" in block:
        raise FileError("holds binary data, not text: is the suffix right?")
    block = block.removeprefix(b"\xef\xbb\xbf")
    line, rest = _first_line(block)
    if not line.strip():
        raise FileError("is empty")
    delimiter = _separator(line, delimiter)
    cells = next(csv.reader([line], delimiter=delimiter))
    decimal = "," if delimiter == ";" and _decimal_commas(rest[:10_000]) else "."
    numbers = [cell for cell in cells if cell and _NUMBER.fullmatch(cell)]
    if header is None and len(numbers) == len(cells):
        raise FileError(
            f"the first line holds numbers ({', '.join(numbers[:3])}{', …' * (len(cells) > 3)}), "
            "not names: say header=False if it is data, header=True if these are the names"
        )
    if header is False:
        return Layout(tuple(f"x{j}" for j in range(len(cells))), delimiter, decimal, 0), block
    names = tuple(cell.strip() for cell in cells)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FileError(f"the column name {shown(twice[0])} occurs twice: rename one")
    n_lines = block[: len(block) - len(rest)].count(b"\n")
    return Layout(names, delimiter, decimal, n_lines), rest


def _first_line(block: bytes) -> tuple[str, bytes]:
    """Split off the first line that is not blank; it may span lines inside quotes."""
    start = len(block) - len(block.lstrip(b"\r\n"))
    end = start
    while True:
        found = block.find(b"\n", end)
        end = len(block) if found < 0 else found + 1
        if found < 0 or block.count(b'"', start, end) % 2 == 0:
            break
    try:
        line = block[start:end].decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(f"byte {start + error.start} of the file is") from None
    return line.rstrip("\r\n"), block[end:]


def _separator(line: str, usual: str) -> str:
    if usual == "," and "," not in line:
        return next((other for other in ";\t" if other in line), ",")
    return usual


def _decimal_commas(head: bytes) -> bool:
    return bool(re.search(rb"\d,\d", head)) and not re.search(rb"\d\.\d", head)


# Parsing ----------------------------------------------------------------------------------------


def _parse(
    block: bytes, layout: Layout, kept: Sequence[str], types: Mapping[str, Any], n_lines: int
) -> Any:
    pa, pc = import_extra("pyarrow", "cli"), import_extra("pyarrow.csv", "cli")
    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        return pc.read_csv(
            pa.BufferReader(block) if block else io.BytesIO(b"\n"),
            # In one piece and thread, so that rows have numbers; blocks are short anyway.
            read_options=pc.ReadOptions(
                column_names=list(layout.names), use_threads=False, block_size=len(block) + 1
            ),
            parse_options=pc.ParseOptions(
                delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=pc.ConvertOptions(
                include_columns=list(kept),
                column_types=types,
                decimal_point=layout.decimal,
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        if ragged:
            row = ragged[0]
            where = "" if row.number is None else f"line {n_lines + row.number}: "
            raise FileError(
                f"{where}{row.actual_columns} cells, but there are {row.expected_columns} columns: "
                f"{shown(row.text)}"
            ) from None
        raise FileError(f"cannot be read: {str(error).splitlines()[0]}") from None


def _narrowed(part: Any) -> Any:
    """Return integers in the smallest type that holds them: codes take a byte instead of eight."""
    pa, compute = import_extra("pyarrow", "cli"), import_extra("pyarrow.compute", "cli")
    for j, kind in enumerate(part.schema.types):
        if pa.types.is_integer(kind):
            ends = compute.min_max(part.column(j)).as_py()
            low, high = ends["min"] or 0, ends["max"] or 0
            small = next(
                size
                for size in (np.int8, np.int16, np.int32, np.int64)
                if np.iinfo(size).min <= low and high <= np.iinfo(size).max
            )
            narrow = part.column(j).cast(pa.from_numpy_dtype(small))
            part = part.set_column(j, part.column_names[j], narrow)
    return part


def _refuse_mixed(parts: Sequence[Any], as_text: Sequence[str]) -> None:
    """Raise when a column is text in some blocks only: numbers there may have lost their form."""
    pa = import_extra("pyarrow", "cli")
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    mixed = []
    for name in parts[0].column_names:
        kinds = {part.schema.field(name).type for part in parts}
        if any(pa.types.is_binary(kind) for kind in kinds):
            raise _not_utf8(f"column {shown(name)} is")
        kinds.discard(pa.null())
        if len(kinds) > 1 and not all(any(test(kind) for test in numbers) for kind in kinds):
            mixed.append(name)
    if mixed:
        raise TextColumnsError([*as_text, *mixed])

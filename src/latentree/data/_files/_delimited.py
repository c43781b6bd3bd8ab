"""Comma-separated text, read block by block.

pyarrow parses the blocks. Its own streaming reader takes the types of the first block for those of
the file, and its reader of whole files keeps all text until the last type is certain, which is
several times the size of the table. Here a first pass finds the types and where the rows are; a
block can then be read by itself.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from latentree._plain import reason_of, shown
from latentree.data._checks import MISSING, default_names
from latentree.data._files._arrow import kind_of
from latentree.data._files._encodings import (
    UTF8,
    NotUTF8Error,
    likely_encoding,
    marked_encoding,
    recoded,
)
from latentree.data._files._paths import ColumnChoice
from latentree.data._files._titles import n_title_rows, warn_of_title
from latentree.data._number_texts import DECIMALS, number_text
from latentree.data._raw import StorageKind
from latentree.errors import FileError, import_extra

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_LINE = 1 << 28
"""Bytes without the end of a line, or within one pair of quotes, that are read at most."""

_SNIFFED = 10_000
"""Bytes in which it is looked for what separates cells."""

_TITLE_LINES = 20
"""Lines in which it is looked for the names of the columns."""

_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")


_SEPARATOR = re.compile(rb"\"?sep=([,;|\t])\"?\r?\n", re.IGNORECASE)
"""A first line by which spreadsheets say what separates cells."""


class TextDialect(NamedTuple):
    """What the first lines tell of a file."""

    names: tuple[str, ...]
    delimiter: str
    decimal: str
    n_lines_before: int
    is_aligned: bool = False
    """Whether several spaces may separate two cells."""
    missing: tuple[str, ...] = MISSING


class _LineBlock(NamedTuple):
    """Whole lines of a file: where they are, and how many lines there are before them."""

    start: int
    n_bytes: int
    n_lines_before: int


@dataclass(frozen=True)
class TextReader:
    """A file of text: its segments are blocks of lines."""

    path: str
    kinds: dict[str, StorageKind]
    n_rows: tuple[int, ...]
    dialect: TextDialect
    types: dict[str, pa.DataType]
    """The pyarrow type of every column."""
    blocks: tuple[_LineBlock, ...]
    held: tuple[pa.Table, ...] = field(default=(), repr=False)
    """The blocks as they were parsed when the types were found, if they are few."""
    encoding: str = UTF8
    is_typed = False

    @classmethod
    def open(
        cls,
        path: str,
        delimiter: str,
        header: bool | None,
        wanted: ColumnChoice,
        block_bytes: int,
        held_cells: int,
    ) -> TextReader:
        """Read a file once to find the types of its columns and where its rows are.

        Parameters
        ----------
        path : str
            Quoted cells may hold separators and line ends.
        delimiter : str
            A comma may turn out to be a semicolon or a tab.
        header : bool, optional
            Whether the first line holds names. When left out it must, and may not look like
            numbers.
        wanted : ColumnChoice
            Which columns are read, and in which encoding. A column that is text anywhere is text.
        block_bytes : int
            Bytes that are parsed at a time; whole lines, so a block can be somewhat longer.
        held_cells : int
            What is parsed is kept for the first pass if it is not more than this.
        """
        rest = (delimiter, header, wanted, block_bytes, held_cells)
        if wanted.encoding is not None:
            return cls._open(path, wanted.encoding, *rest)
        with open_unpacked(path) as stream:
            encoding = marked_encoding(stream)
        try:
            return cls._open(path, encoding, *rest)
        except NotUTF8Error:
            with open_unpacked(path) as stream:
                encoding = likely_encoding(path, stream)
            return cls._open(path, encoding, *rest)

    @classmethod
    def _open(
        cls,
        path: str,
        encoding: str,
        delimiter: str,
        header: bool | None,
        wanted: ColumnChoice,
        block_bytes: int,
        held_cells: int,
    ) -> TextReader:
        """Read a file of a known encoding."""
        n_rows: list[int] = []
        listed: list[_LineBlock] = []
        parts: list[pa.Table] | None = []
        with open_utf8(path, encoding) as stream:
            blocks = _blocks(stream, block_bytes)
            whole = next(blocks, b"")
            dialect, first = _find_dialect(path, whole, delimiter, header)
            dialect = dialect._replace(missing=(*MISSING, *wanted.na))
            kept = wanted.choose(dialect.names)
            found: list[set[pa.DataType]] = [set() for _ in kept]
            start, n_lines = len(whole) - len(first), dialect.n_lines_before
            # Types may differ from block to block: an integer column may turn real, or into text.
            for block in chain([first], blocks):
                part = _parse(block, dialect, kept, {}, n_lines)
                for types, kind in zip(found, part.schema.types, strict=True):
                    types.add(kind)
                listed.append(_LineBlock(start, len(block), n_lines))
                n_rows.append(part.num_rows)
                if parts is not None and sum(n_rows) * len(kept) <= held_cells:
                    parts.append(part)
                else:
                    parts = None
                start += len(block)
                n_lines += block.count(b"\n")
        common = dict(zip(kept, map(_common_type, kept, found), strict=True))
        kinds = {name: kind_of(kind) for name, kind in common.items()}
        held = () if parts is None else _as_types(parts, common)
        return cls(path, kinds, tuple(n_rows), dialect, common, tuple(listed), held, encoding)

    def batches(self, first: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield pyarrow tables, from a segment on."""
        if self.held:
            yield from (part.select(columns) for part in self.held[first:])
            return
        types = {name: self.types[name] for name in columns}
        with open_utf8(self.path, self.encoding) as stream:
            for block in self.blocks[first:]:
                stream.seek(block.start)
                data = stream.read(block.n_bytes)
                yield _parse(data, self.dialect, columns, types, block.n_lines_before)


def open_unpacked(path: str) -> BinaryIO:
    """Open a file, unpacked if it is packed."""
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return Path(path).open("rb")


def open_utf8(path: str, encoding: str) -> BinaryIO:
    """Open a file of text, unpacked and in UTF-8."""
    stream = open_unpacked(path)
    return stream if encoding == UTF8 else recoded(stream, encoding)


def _common_type(name: str, kinds: set[pa.DataType]) -> pa.DataType:
    pa = import_extra("pyarrow", "cli")
    if any(pa.types.is_binary(kind) for kind in kinds):
        raise _not_utf8(f"column {shown(name)} is")
    kinds = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(kinds) < 2:
        return kinds.pop() if kinds else pa.null()
    return pa.float64() if kinds == {pa.int64(), pa.float64()} else pa.string()


def _as_types(parts: Sequence[pa.Table], types: Mapping[str, pa.DataType]) -> tuple[pa.Table, ...]:
    """Return parsed blocks with the types of the whole file, none if the text is needed again."""
    pa = import_extra("pyarrow", "cli")
    schema = pa.schema(types.items())
    for part in parts:
        for own, common in zip(part.schema.types, schema.types, strict=True):
            if pa.types.is_string(common) and not (own == common or pa.types.is_null(own)):
                return ()  # a number may have lost its form: 007
    return tuple(part.cast(schema, safe=False) for part in parts)


def _blocks(stream: BinaryIO, block_bytes: int) -> Iterator[bytes]:
    """Yield blocks of whole lines; a line end within quotes does not end a line."""
    rest = b""
    while chunk := stream.read(block_bytes):
        data = rest + chunk
        end = data.rfind(b"\n") + 1
        # An odd number of quotes before the cut: it lies inside a cell, or quotes are astray.
        if end and data.count(b'"', 0, end) % 2 == 0:
            yield data[:end]
            rest = data[end:]
        else:
            rest = data
        if len(rest) > _LONGEST_LINE:
            limit = _LONGEST_LINE // 2**20
            raise FileError(f"has a line of more than {limit} MB: is a quote not closed?")
    if rest:
        yield rest


def _not_utf8(what: str) -> NotUTF8Error:
    return NotUTF8Error(
        f"{what} not text in UTF-8: say which encoding the file is in, as in encoding='latin-1'"
    )


# The first lines --------------------------------------------------------------------------------


def _find_dialect(
    path: str, block: bytes, delimiter: str, header: bool | None
) -> tuple[TextDialect, bytes]:
    """Find names and separators, and return what follows the names."""
    if b"\0" in block:
        raise FileError("holds binary data, not text: is the suffix right?")
    block = block.removeprefix(b"\xef\xbb\xbf")
    whole = block
    said = _SEPARATOR.match(block)
    if said is not None:
        delimiter, block = said[1].decode(), block[said.end() :]
    if header is not False:
        block = _without_title(path, block, delimiter)
    line, rest = _first_line(block)
    if not line.strip():
        raise FileError("is empty")
    if delimiter not in line or not delimiter:
        known = _other_delimiters(delimiter)
        delimiter = next((other for other in known if other in line), delimiter or ",")
    is_aligned = delimiter == " " and not _is_regular(line, rest[:_SNIFFED].rpartition(b"\n")[0])
    if is_aligned:
        line = _squeezed(line.encode()).decode()
    try:
        cells = next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        hint = ": save the file with line feeds as line ends" if "\r" in line else ""
        raise FileError(f"the first line holds no names ({error}){hint}") from None
    decimal = "." if delimiter == "," else _decimal_mark(rest[:_SNIFFED], delimiter)
    numbers = [cell for cell in cells if cell and _NUMBER.fullmatch(cell)]
    if header is None and len(numbers) == len(cells):
        raise FileError(
            f"the first line holds numbers ({', '.join(numbers[:3])}{', …' * (len(cells) > 3)}), "
            "not names: say header=False if it is data, header=True if these are the names"
        )
    if header is False:
        rest = block  # all lines are data
    n_lines = whole[: len(whole) - len(rest)].count(b"\n")
    if header is False:
        return TextDialect(default_names(len(cells)), delimiter, decimal, n_lines, is_aligned), rest
    if delimiter in "\t ":
        line, _ = _first_line(_squeezed(rest) if is_aligned else rest)
        if len(_split(line, delimiter)) == len(cells) + 1:
            cells.insert(0, "")  # as R writes tables: row labels have no place in the first line
    return TextDialect(column_names(cells), delimiter, decimal, n_lines, is_aligned), rest


def _other_delimiters(delimiter: str) -> str:
    """Return what may separate cells instead of what the suffix of the file says."""
    return "\t;,| " if not delimiter else ";\t" if delimiter == "," else ""


def _without_title(path: str, block: bytes, delimiter: str) -> bytes:
    """Return a block from the line on that holds the names of the columns."""
    head = block[:_SNIFFED] if len(block) <= _SNIFFED else block[:_SNIFFED].rpartition(b"\n")[0]
    rest = head
    lines: list[str] = []
    starts: list[int] = []
    while rest.strip() and len(lines) < _TITLE_LINES:
        starts.append(len(head) - len(rest))
        line, rest = _first_line(rest)
        lines.append(line)
    # Spaces separate the words of a title, too.
    known = [each for each in (delimiter, *_other_delimiters(delimiter)) if each.strip(" ")]
    tables = [[_split(line, own) for line in lines] for own in known] if len(lines) > 2 else []
    # What separates the cells of the first line as it does those of the last, if anything does.
    regular = [rows for rows in tables if len(rows[0]) == len(rows[-1]) > 1]
    for rows in regular[:1] or tables:
        n_title = n_title_rows(rows)
        if n_title:
            warn_of_title(path, n_title, lines[0])
            return block[starts[n_title] :]
    return block


def column_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a first line; columns without one are called as pandas calls them."""
    taken = {cell.strip() for cell in cells}
    numbered = (f"Unnamed: {j}" for j in range(len(cells)))
    unnamed = [f"{name}.1" if name in taken else name for name in numbered]
    return tuple(cell.strip() or name for cell, name in zip(cells, unnamed, strict=True))


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _is_regular(line: str, rest: bytes) -> bool:
    """Whether every single space separates two cells; else spaces align them."""
    names = _split(line, " ")
    sizes: set[int] = set()
    while rest.strip() and len(sizes) < 2:
        below, rest = _first_line(rest)
        sizes.add(len(_split(below, " ")))
    return all(names[1:]) and sizes in ({len(names)}, {len(names) + 1}, set())


def _squeezed(block: bytes) -> bytes:
    """Return text with one space between cells, none at the ends of lines; quotes stay."""
    one = re.sub(rb'("[^"]*")|[ \t]+', lambda found: found[1] or b" ", block)
    return re.sub(rb'("[^"]*")|^ | $| (?=\r?\n)', lambda found: found[1] or b"", one, flags=re.M)


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


def _decimal_mark(head: bytes, delimiter: str) -> str:
    """Return what separates fractions: the mark under which all numbers can be read.

    Where both can, as for 66,090, it is the comma in text that semicolons separate.
    """
    texts = {found.decode() for found in re.findall(rb"\d[\d.,]*[.,]\d[\d.,]*", head)}
    can_be = {mark: {text for text in texts if number_text(text, mark)} for mark in DECIMALS}
    points, commas = can_be["."] - can_be[","], can_be[","] - can_be["."]
    if points or commas:
        return "," if commas and not points else "."
    unclear = can_be[","]
    is_comma = bool(unclear) and all("," in text for text in unclear)
    return "," if delimiter == ";" and is_comma else "."


# Parsing ----------------------------------------------------------------------------------------


def _parse(
    block: bytes,
    dialect: TextDialect,
    kept: Sequence[str],
    types: Mapping[str, pa.DataType],
    n_lines: int,
) -> pa.Table:
    """Parse a block into a pyarrow table; types that are not given are inferred."""
    arrow = import_extra("pyarrow", "cli")
    if not block:
        columns = {name: arrow.array([], types.get(name, arrow.null())) for name in kept}
        return arrow.table(columns)
    cells = _squeezed(block) if dialect.is_aligned else block
    try:
        return _read_csv(cells, dialect, kept, types)
    except arrow.ArrowInvalid as error:
        if not _is_utf8(block):  # handlers of rows cannot take it
            raise _not_utf8("it is") from None
        reason = reason_of(error)
    ragged: list[pa.csv.InvalidRow] = []

    def note(row: pa.csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    with contextlib.suppress(arrow.ArrowInvalid):
        _read_csv(cells, dialect, kept, types, note)
    for row in ragged:
        where = "" if row.number is None else f"line {n_lines + row.number}: "
        raise FileError(
            f"{where}{row.actual_columns} cell{'s' * (row.actual_columns != 1)}, but there are "
            f"{row.expected_columns} columns: {shown(row.text)}"
        )
    raise FileError(f"cannot be read: {reason}")


def _read_csv(
    cells: bytes,
    dialect: TextDialect,
    kept: Sequence[str],
    types: Mapping[str, pa.DataType],
    handler: Callable[[pa.csv.InvalidRow], str] | None = None,
) -> pa.Table:
    """Read text by pyarrow; ``handler`` is called with rows of the wrong number of cells."""
    arrow, pc = import_extra("pyarrow", "cli"), import_extra("pyarrow.csv", "cli")
    return pc.read_csv(
        arrow.BufferReader(cells),
        # In one piece and thread, so that rows have numbers; blocks are short anyway.
        read_options=pc.ReadOptions(
            column_names=list(dialect.names), use_threads=False, block_size=len(cells) + 1
        ),
        parse_options=pc.ParseOptions(
            delimiter=dialect.delimiter,
            newlines_in_values=True,
            # In a single column an empty line is a missing cell, as it is written.
            ignore_empty_lines=len(dialect.names) > 1,
            invalid_row_handler=handler,
        ),
        convert_options=pc.ConvertOptions(
            include_columns=list(kept),
            column_types=types,
            decimal_point=dialect.decimal,
            strings_can_be_null=True,
            null_values=list(dialect.missing),
        ),
    )


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True

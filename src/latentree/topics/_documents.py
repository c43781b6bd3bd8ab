"""Documents from files: folders of texts and PDFs, and tables with a column of texts."""

from __future__ import annotations

import csv
import datetime
import gzip
import itertools
import json
import logging
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from latentree._plain import reason_of, suggestion
from latentree.data import listing
from latentree.errors import DataWarning, FileError, import_extra
from latentree.typing import PathLike

TEXTS = (".txt", ".text", ".md")
PDF = ".pdf"
LINES = (".jsonl", ".ndjson")
SEPARATED = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"
TABLES = (*SEPARATED, *LINES, PARQUET)

USUAL = ("text", "body", "content", "document")
"""Names of columns that are taken for the texts where none is named."""

MOST_CHARACTERS = 2**25
"""Characters of a document, or of a row of a table: 33 million, ten long novels. A small compressed
file can hold a line that fills memory."""

BATCH = 1_000
"""Rows of a Parquet file that are in memory at a time."""

_TOO_LONG = f"a document has more than {MOST_CHARACTERS:,} characters, the most that is read"

_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


class Document(NamedTuple):
    """A text with its name, and its date if there is one.

    Parameters
    ----------
    text : str
    name : str
        Name of its file or its row.
    date : str
        As YYYY-MM-DD; empty if unknown.

    Examples
    --------
    >>> Document("Once upon a time", "tale.txt").date
    ''
    """

    text: str
    name: str = ""
    date: str = ""


@dataclass(frozen=True)
class Documents:
    r"""Documents in files, read one by one whenever they are iterated over.

    Make it with :func:`read_documents`.

    Parameters
    ----------
    files : tuple of Path
        One document each (texts, PDFs), or tables with one document per row.
    text, name, date : str, optional
        Columns of tables: the texts, their names and their dates.
    encoding : str
        Encoding of text files.
    by_line : bool
        Whether each line of a text file is a document.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "news.csv").write_text("text,day\nRain today.,2020-05-01\n")
    ...     list(read_documents(Path(folder, "news.csv"), "text", date="day"))
    [Document(text='Rain today.', name='row 1', date='2020-05-01')]
    """

    files: tuple[Path, ...]
    text: str | None = None
    name: str | None = None
    date: str | None = None
    encoding: str = "utf-8"
    by_line: bool = False

    def __iter__(self) -> Iterator[Document]:
        for path in self.files:
            yield from self._read(path)

    def _read(self, path: Path) -> Iterator[Document]:
        suffix = _suffix(path)
        if suffix == PDF:
            yield Document(_pdf_text(path), path.name)
        elif suffix in TEXTS and self.by_line:
            yield from (Document(line.rstrip("\n"), f"line {i}") for i, line in self._lines(path))
        elif suffix in TEXTS:
            yield Document("".join(_bounded(path, self._lines(path))), path.name)
        else:
            yield from self._from_rows(path, suffix)

    def _from_rows(self, path: Path, suffix: str) -> Iterator[Document]:
        read: Callable[[Path], Iterator[Mapping[str, object]]] = self._separated
        if suffix in LINES:
            read = self._json_lines
        elif suffix == PARQUET:
            read = self._parquet
        text = None
        for number, row in enumerate(read(path), 1):
            text = text or self._text_column(path, list(row))
            for column in (text, self.name, self.date):
                if column is not None and column not in row:
                    raise FileError(_no_column(path, column, list(row), number))
            name = f"row {number}" if self.name is None else str(row[self.name])
            date = "" if self.date is None else as_date(row[self.date])
            yield Document(_as_text(row[text], path, number), name, date)

    def _text_column(self, path: Path, columns: Sequence[str]) -> str:
        if self.text is not None:
            return self.text
        if len(columns) == 1:
            return columns[0]
        usual = [column for column in columns if column.lower() in USUAL]
        if len(usual) == 1:
            return usual[0]
        raise FileError(
            f"{path}: say which column holds the texts (--text): there are {', '.join(columns)}"
        )

    def _lines(self, path: Path) -> Iterator[tuple[int, str]]:
        with _opened(path, self.encoding) as file:
            try:
                for number in itertools.count(1):
                    line = file.readline(MOST_CHARACTERS + 1)
                    if not line:
                        break
                    if len(line) > MOST_CHARACTERS:
                        raise FileError(f"{path}, line {number}: {_TOO_LONG}")
                    yield number, line
            except UnicodeError as error:
                raise FileError(
                    f"{path}: is no text in {self.encoding}: say its encoding (--encoding), such "
                    "as latin-1 or cp1252"
                ) from error
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise FileError(f"{path}: the compressed file is damaged: {error}") from error

    def _separated(self, path: Path) -> Iterator[Mapping[str, object]]:
        csv.field_size_limit(MOST_CHARACTERS)  # a text may be longer than the 128 kB of csv
        length = 0

        def lines() -> Iterator[str]:
            nonlocal length
            for number, line in self._lines(path):
                length += len(line)
                if length > MOST_CHARACTERS:  # a row goes on over lines while a quote is open
                    raise FileError(f"{path}, line {number}: {_TOO_LONG}")
                yield line

        rows = csv.reader(lines(), delimiter=SEPARATED[_suffix(path)])
        try:
            header = next(rows, None)
            if not header:
                raise FileError(f"{path}: is empty")
            for row in rows:
                length = 0
                if row:
                    yield dict(zip(header, [*row, *[""] * (len(header) - len(row))], strict=False))
        except csv.Error as error:
            raise FileError(f"{path}, line {rows.line_num}: {error}") from error

    def _json_lines(self, path: Path) -> Iterator[Mapping[str, object]]:
        for number, line in self._lines(path):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except RecursionError:
                raise FileError(f"{path}, line {number}: nests lists or dicts too deeply") from None
            except ValueError as error:
                raise FileError(f"{path}, line {number}: is no JSON: {error}") from error
            if not isinstance(row, dict):
                raise FileError(f"{path}, line {number}: must be an object with named values")
            yield row

    def _parquet(self, path: Path) -> Iterator[Mapping[str, object]]:
        parquet = import_extra("pyarrow.parquet", "cli")
        try:
            file = parquet.ParquetFile(path)
            wanted = [name for name in (self.text, self.name, self.date) if name is not None]
            known = set(file.schema_arrow.names)
            columns = wanted if self.text is not None and set(wanted) <= known else None
            for batch in file.iter_batches(BATCH, columns=columns):
                yield from batch.to_pylist()
        except Exception as error:  # damaged files make pyarrow raise nearly anything
            raise FileError(f"{path}: cannot be read as Parquet: {reason_of(error)}") from error


def read_documents(
    path: PathLike | Sequence[PathLike],
    text: str | None = None,
    *,
    name: str | None = None,
    date: str | None = None,
    encoding: str = "utf-8",
) -> Documents:
    """Open documents in files; they are read one by one when they are iterated over.

    Parameters
    ----------
    path : path, or several
        A folder: every .txt, .text, .md and .pdf file in it and below is a document, except links
        to files outside of it. A table
        (.csv, .tsv, .jsonl, .ndjson, .parquet, the first four also .gz): every row is one. A single
        text file: every line is one. PDFs need the extra ``pdf``.
    text : str, optional
        Column of a table that holds the texts; by default the only one, or the one called "text".
    name, date : str, optional
        Columns that hold names and dates (YYYY, YYYY-MM, YYYY-MM-DD, with or without a time).
    encoding : str
        Encoding of text files.

    Returns
    -------
    Documents
        Iterating yields a :class:`Document` each; :class:`TopicTree` takes it as it is.

    Raises
    ------
    FileError
        If there are no documents; or later, when a file that cannot be read is reached.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("One.")
    ...     _ = Path(folder, "b.txt").write_text("Two.")
    ...     list(read_documents(folder))
    [Document(text='One.', name='a.txt', date=''), Document(text='Two.', name='b.txt', date='')]
    """
    given = [path] if isinstance(path, str | Path) or hasattr(path, "__fspath__") else list(path)
    files = [file for each in given for file in _files(Path(each))]
    try:
        "".encode(encoding)
    except LookupError as error:
        raise FileError(f"there is no encoding {encoding!r}: use utf-8, latin-1, …") from error
    by_line = len(given) == 1 and Path(given[0]).is_file()
    return Documents(tuple(files), text, name, date, encoding, by_line)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        every = _inside(path, sorted(file for file in path.rglob("*") if file.is_file()))
        found = [file for file in every if _suffix(file) in (*TEXTS, PDF)]
        found = found or [file for file in every if _suffix(file) in TABLES]
        if not found:
            known = ", ".join((*TEXTS, PDF, *TABLES))
            raise FileError(f"{path}: there are no documents in this folder: {known}")
        return found
    if not path.exists():
        raise FileError(f"{path}: there is no such file or folder")
    if _suffix(path) not in (*TEXTS, PDF, *TABLES):
        known = ", ".join((*TEXTS, PDF, *TABLES))
        raise FileError(f"{path}: documents are read from folders and from {known} files")
    return [path]


def _inside(folder: Path, files: list[Path]) -> list[Path]:
    """Leave out links that lead out of a folder: it may come from somebody else."""
    root = folder.resolve()
    outside = [file for file in files if not file.resolve().is_relative_to(root)]
    if outside:
        names = listing([str(file.relative_to(folder)) for file in outside])
        warnings.warn(
            f"{folder}: links to files outside of this folder are left out ({names}): name their "
            "own folder too to read them",
            DataWarning,
            stacklevel=2,
        )
    left_out = set(outside)
    return [file for file in files if file not in left_out]


def _bounded(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Yield the lines of one document."""
    length = 0
    for number, line in lines:
        length += len(line)
        if length > MOST_CHARACTERS:
            raise FileError(f"{path}, line {number}: {_TOO_LONG}")
        yield line


def _suffix(path: Path) -> str:
    """Return the suffix below that of compression."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _opened(path: Path, encoding: str) -> TextIO:
    encoding = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    newline = "" if _suffix(path) in SEPARATED else None
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=encoding, newline=newline)
    return path.open(encoding=encoding, newline=newline)


def _as_text(value: object, path: Path, number: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FileError(
            f"{path}, row {number}: the text is a {type(value).__name__}: {value!r:.40}"
        )
    return value


def _no_column(path: Path, column: str, known: Sequence[str], number: int) -> str:
    some, near = ", ".join(islice(known, 20)), suggestion(column, known)
    return f"{path}, row {number}: there is no column {column!r}{near}: there are {some:.200}"


def as_date(value: object) -> str:
    """Return a date as YYYY-MM-DD; empty if it is none."""
    if isinstance(value, datetime.date):  # and of a time
        return value.isoformat()[:10]
    found = _DATE.match(str(value).strip())
    if found is None:
        return ""
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        return datetime.date(year, month, day).isoformat()
    except ValueError:
        return ""


def _pdf_text(path: Path) -> str:
    pypdf = import_extra("pypdf", "pdf")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # the error below says it
    try:
        return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    except Exception as error:  # damaged PDFs make pypdf raise nearly anything
        raise FileError(f"{path}: cannot be read as PDF: {error}") from error

"""Paths of tables: the suffix names the format, and errors name the file.

======================== =====================================================================
``.csv``, ``.tsv``       text, also packed (``.csv.gz``, ``.tsv.gz``); written in UTF-8
``.txt``                 text (read only), also packed; the first lines show what separates cells
``.xlsx``                a sheet of a workbook (read only)
``.parquet``             Apache Parquet
``.arrow``, ``.feather`` Arrow's own format, with an index at the end or as a stream
``.npz``                 one matrix of numpy, with ``names`` if there are any; or a sparse matrix
                         that scipy saved
``.mtx``                 Matrix Market (read only), also packed (``.mtx.gz``)
======================== =====================================================================
"""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from latentree._plain import reason_of, shown, suggestion
from latentree.data._kinds import unnamed_place
from latentree.errors import FileError
from latentree.typing import PathLike

Format = TypeVar("Format")

STANDARD = "-"
"""The path that stands for standard input and output, as CSV."""


def is_path(X: object) -> bool:
    """Whether data is given as a path, or as a list of paths."""
    paths = X if isinstance(X, list | tuple) else [X]
    return bool(paths) and all(isinstance(path, str | os.PathLike) for path in paths)


def path_name(X: PathLike | Sequence[PathLike]) -> str:
    """Return what messages call a path, or several.

    Parameters
    ----------
    X : path, or sequence of paths

    Returns
    -------
    str

    Examples
    --------
    >>> path_name("-"), path_name(["a.csv", "b.csv", "c.csv"])
    ('standard input', 'a.csv … c.csv')
    """
    if isinstance(X, str | os.PathLike):
        return "standard input" if str(X) == STANDARD else str(X)
    return path_name(X[0]) if len(X) == 1 else f"{path_name(X[0])} … {path_name(X[-1])}"


def suffix_of(path: PathLike) -> str:
    """Return the suffix that names the format, in small letters."""
    if str(path) == STANDARD:
        return ".csv"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def chosen_format(formats: Mapping[str, Format], path: PathLike) -> Format:
    """Return the entry for the suffix of a path; raise an error that lists the known suffixes."""
    suffix = suffix_of(path)
    if suffix not in formats:
        raise FileError(
            f"{path}: the suffix {suffix!r} names no known format of tables: use one of "
            f"{', '.join(formats)}"
        )
    return formats[suffix]


@contextlib.contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Turn exceptions of readers into errors that name the file."""
    try:
        yield
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise FileError(f"{path}: the packed file is damaged: {error}") from None
    except (OSError, ValueError, TypeError, LookupError, NotImplementedError, MemoryError) as error:
        if isinstance(error, MemoryError) and "malloc of size" not in str(error):
            raise  # of this computer; pyarrow's tells of a size that a damaged file names
        raise FileError(f"{path}: cannot be read, or is damaged: {reason_of(error)}") from None


class ColumnChoice(NamedTuple):
    """Which columns of a file are read, and how."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    row_labels: bool = False
    """Whether a column without a name is read first, whatever columns are chosen."""
    na: tuple[str, ...] = ()
    """Texts and numbers that stand for missing cells, beside the usual ones."""
    may_lack: Sequence[str] = ()
    """Columns that need not be there."""
    encoding: str | None = None
    """The encoding of text; None finds it out."""
    sheet: str | None = None
    """Name or number of the sheet of a workbook; None takes the first one that holds anything."""

    def choose(self, names: Sequence[str]) -> list[str]:
        """Choose among the names of a file's columns, which must differ."""
        counts = Counter(names)
        if len(counts) < len(names):
            twice = next(name for name, count in counts.items() if count > 1)
            raise FileError(f"the column name {shown(twice)} occurs twice: rename one")
        optional = set(self.may_lack)
        for name in (*(self.columns or ()), *self.drop):
            if name not in counts and name not in optional:
                raise FileError(
                    f"there is no column {shown(name)}{suggestion(name, names)}: it has "
                    f"{_listed(names)}"
                )
        left_out = {*self.drop, *(optional - set(names))}
        chosen = names if self.columns is None else self.columns
        kept = [name for name in chosen if name not in left_out]
        if not kept:
            raise FileError("no column is left")
        unnamed = unnamed_place(names) if self.row_labels else None
        if unnamed is not None and names[unnamed] not in kept:
            return [names[unnamed], *kept]
        return kept


ALL_COLUMNS = ColumnChoice()


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(map(shown, names[:8]))
    return some if len(names) <= 8 else f"{some}, … ({len(names)} in all)"

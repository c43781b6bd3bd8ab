"""Tables from files (``writers`` writes them); the suffix of the path chooses the format.

======================== =====================================================================
``.csv``, ``.tsv``       text in UTF-8, also packed (``.csv.gz``, ``.tsv.gz``)
``.parquet``             Apache Parquet
``.arrow``, ``.feather`` Arrow's own format
``.npz``                 one matrix of numpy, with ``names`` if there are any; or a sparse matrix
                         that scipy saved
``.mtx``                 Matrix Market (read only), also packed (``.mtx.gz``)
======================== =====================================================================
"""

from __future__ import annotations

import contextlib
import gzip
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._plain import shown
from latentree.data._convert import MANY_STATES
from latentree.data._files._separated import TextColumnsError, read_separated
from latentree.data._table import Schema, Table
from latentree.errors import FileError, import_extra
from latentree.typing import PathLike

STANDARD = "-"
"""The path that stands for standard input and output, as CSV."""


class RawTable(NamedTuple):
    """Data as :func:`latentree.as_table` takes it, and the names if the data does not hold them."""

    data: Any
    names: tuple[str, ...] | None


def read_table(
    path: PathLike,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
) -> RawTable:
    """Read a table from a file, or from standard input if the path is ``-``.

    Types of columns are kept: integers stay integers where cells are missing.

    Parameters
    ----------
    path : path of the file
    columns : sequence of str, optional
        Read these columns only, in this order.
    drop : sequence of str
        Leave these columns out.
    header : bool, optional
        Whether the first line of text holds the names of the columns. When left out it must, and
        an error is raised if it looks like data.

    Raises
    ------
    FileError
        With the name of the file and what is wrong.
    """
    wanted = Wanted(columns, drop)
    read: Callable[..., RawTable] = chosen_format(READERS, path)
    try:
        return read(path, wanted, header)
    except FileError as error:
        raise FileError(f"{_called(path)}: {error}") from error
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise FileError(f"{path}: is a folder, not a file") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise FileError(f"{path}: the packed file is damaged: {error}") from None
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from None


class Wanted(NamedTuple):
    """Which columns are to be read."""

    columns: Sequence[str] | None
    drop: Sequence[str]

    def __call__(self, names: Sequence[str]) -> list[str]:
        """Choose among the names of a file's columns."""
        known = set(names)
        for name in (*(self.columns or ()), *self.drop):
            if name not in known:
                raise FileError(f"there is no column {shown(name)}: it has {_listed(names)}")
        chosen = names if self.columns is None else self.columns
        kept = [name for name in chosen if name not in self.drop]
        if not kept:
            raise FileError("no column is left")
        if "" in kept:
            raise FileError(
                f"column {list(names).index('') + 1} has no name: drop '' if it numbers the rows, "
                "or name it"
            )
        return kept


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(map(shown, names[:8]))
    return some if len(names) <= 8 else f"{some}, … ({len(names)} in all)"


def _called(path: PathLike) -> str:
    return "standard input" if str(path) == STANDARD else str(path)


def suffix_of(path: PathLike) -> str:
    """Return the suffix that names the format, in small letters."""
    if str(path) == STANDARD:
        return ".csv"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def chosen_format(formats: dict[str, Any], path: PathLike) -> Any:
    """Return what stands for the suffix of a path, or say which suffixes there are."""
    suffix = suffix_of(path)
    if suffix not in formats:
        if Path(path).is_dir():
            raise FileError(f"{path}: is a folder, not a file")
        raise FileError(
            f"{path}: the suffix {suffix!r} names no known format of tables: use one of "
            f"{', '.join(formats)}"
        )
    return formats[suffix]


# Text -------------------------------------------------------------------------------------------


def _read_text(delimiter: str) -> Callable[..., RawTable]:
    def read(path: PathLike, wanted: Wanted, header: bool | None) -> RawTable:
        as_text: Sequence[str] = ()
        with _opened(path) as stream:
            while True:
                try:
                    return _from_text(read_separated(stream, delimiter, header, wanted, as_text))
                except TextColumnsError as error:
                    as_text = error.names
                    stream.seek(0)

    return read


def _from_text(table: Any) -> RawTable:
    if table.num_rows == 0:
        raise FileError("has a line of names, but no rows")
    return from_arrow(table)


@contextlib.contextmanager
def _opened(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file or standard input so that it can be read a second time."""
    if str(path) == STANDARD:
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.seek(0)
            yield copy
    elif str(path).lower().endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield file  # type: ignore[misc]
    else:
        with Path(path).open("rb") as file:
            yield file


# Arrow ------------------------------------------------------------------------------------------


def _read_parquet(path: PathLike, wanted: Wanted, _: bool | None) -> RawTable:
    pq = import_extra("pyarrow.parquet", "cli")
    return _select_arrow(_by_arrow(path, "Parquet", pq.read_table), wanted)


def _read_arrow(path: PathLike, wanted: Wanted, _: bool | None) -> RawTable:
    pa, feather = import_extra("pyarrow", "cli"), import_extra("pyarrow.feather", "cli")

    def read(file: BinaryIO) -> Any:
        try:
            return feather.read_table(file)
        except pa.ArrowInvalid:
            file.seek(0)  # not the format with an index at the end: a stream, perhaps
            return pa.ipc.open_stream(file).read_all()

    return _select_arrow(_by_arrow(path, "Arrow", read), wanted)


def _by_arrow(path: PathLike, kind: str, read: Callable[[BinaryIO], Any]) -> Any:
    with Path(path).open("rb") as file:
        try:
            return read(file)
        except (OSError, ValueError, TypeError, KeyError, NotImplementedError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise FileError(f"cannot be read as {kind}: {reason}") from None


def _select_arrow(table: Any, wanted: Wanted) -> RawTable:
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileError(f"the column name {shown(twice)} occurs twice: rename one")
    if table.num_rows == 0:
        raise FileError("has no rows")
    return from_arrow(table.select(wanted(names)))


def from_arrow(table: Any) -> RawTable:
    """Return numbers as they are; with text, codes where they are few, else shared strings."""
    pa = import_extra("pyarrow", "cli")
    names = tuple(table.column_names)
    if all(map(pa.types.is_floating, table.schema.types)):
        return RawTable(_filled(np.empty(table.shape), table, _real_cells), names)
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    if all(any(test(kind) for test in numbers) for kind in table.schema.types):
        return RawTable(table, None)
    coded = _coded_table(table)
    if coded is not None:
        return RawTable(coded, None)
    return RawTable(_filled(np.empty(table.shape, object, order="F"), table, _shared_cells), names)


def _filled(out: NDArray[Any], table: Any, cells: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
    """Fill an array column by column, giving the table's memory back on the way."""
    for j in range(out.shape[1]):
        out[:, j] = cells(table.column(0))
        table = table.remove_column(0)
    return out


def _real_cells(column: Any) -> NDArray[Any]:
    numbers: NDArray[Any] = column.to_numpy()  # missing cells become NaN
    return numbers


def _shared_cells(column: Any) -> NDArray[Any]:
    """Cells as Python objects, of which each distinct one is made once."""
    known, places = _encoded(column)
    objects = np.empty(len(known) + 1, object)
    objects[:-1] = known
    cells: NDArray[Any] = objects[places]
    return cells


def _coded_table(table: Any) -> Table | None:
    """Code a table of categories without making an object of every cell.

    None when some column is no category, or has so many values that ``as_table`` has to judge.
    """
    pa = import_extra("pyarrow", "cli")
    codes = np.empty((table.num_rows, table.num_columns), np.int8)
    labels = []
    for j, kind in enumerate(table.schema.types):
        known, places = _encoded(table.column(j))
        if len(known) > MANY_STATES or not _is_category(pa.types, kind):
            return None
        order = sorted(range(len(known)), key=known.__getitem__)
        rank = np.full(len(known) + 1, -1, np.int8)  # the last place is that of missing cells
        rank[order] = np.arange(len(known))
        codes[:, j] = rank[places]
        labels.append(tuple(known[k] for k in order))
    return Table(codes, Schema(tuple(table.column_names), "discrete", tuple(labels)))


def _is_category(types: Any, kind: Any) -> bool:
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean)
    return types.is_null(kind) or any(test(kind) for test in tests)


def _encoded(column: Any) -> tuple[list[Any], NDArray[Any]]:
    """Distinct values of a column, and the place of every cell among them; missing cells last."""
    pa = import_extra("pyarrow", "cli")
    if pa.types.is_null(column.type):
        return [], np.zeros(len(column), np.int64)
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()  # a dictionary may hold values that do not occur
    coded = column.dictionary_encode()
    known = coded.dictionary.to_pylist()
    places = coded.indices.fill_null(len(known)) if coded.null_count else coded.indices
    return known, places.to_numpy(zero_copy_only=False)


# Matrices ---------------------------------------------------------------------------------------


def _read_npz(path: PathLike, wanted: Wanted, _: bool | None) -> RawTable:
    if Path(path).is_file() and not zipfile.is_zipfile(path):
        raise FileError("is no .npz file")
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if {"format", "shape"} <= set(arrays.files):
                return _select_matrix(_sparse_npz(path), None, wanted)
            matrix = _only_matrix({name: arrays[name] for name in arrays.files})
            names = arrays["names"] if "names" in arrays.files else None
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, AttributeError) as error:
        if isinstance(error, FileError):
            raise
        reason = str(error).partition(". ")[0]
        raise FileError(f"cannot be read as .npz of plain numbers or strings: {reason}") from None
    if names is not None and names.shape != (matrix.shape[1],):
        raise FileError(f"{names.size} names for {matrix.shape[1]} columns")
    return _select_matrix(matrix, None if names is None else tuple(map(str, names)), wanted)


def _sparse_npz(path: PathLike) -> Any:
    from scipy import sparse

    return sparse.csr_array(sparse.load_npz(path))


def _only_matrix(arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    for usual in ("data", "X"):
        if usual in matrices:
            return matrices[usual]
    if len(matrices) != 1:
        raise FileError(
            f"holds {len(matrices)} matrices ({', '.join(matrices) or 'none'}): "
            "call the one to read 'data'"
        )
    return next(iter(matrices.values()))


def _read_mtx(path: PathLike, wanted: Wanted, _: bool | None) -> RawTable:
    from scipy import io as scipy_io
    from scipy import sparse

    with _opened(path) as stream:
        if not stream.read(14).lower() == b"%%matrixmarket":
            raise FileError("is no Matrix Market file: it does not begin with %%MatrixMarket")
    try:
        matrix = scipy_io.mmread(path)  # not of the stream: errors in there end the process
    except (ValueError, OverflowError, StopIteration) as error:
        raise FileError(f"cannot be read as Matrix Market: {error}") from None
    return _select_matrix(
        sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix, None, wanted
    )


def _select_matrix(matrix: Any, names: tuple[str, ...] | None, wanted: Wanted) -> RawTable:
    if wanted == (None, ()):
        return RawTable(matrix, names)
    own = names or tuple(f"x{j}" for j in range(matrix.shape[1]))
    kept = wanted(own)
    place = {name: j for j, name in enumerate(own)}
    return RawTable(matrix[:, [place[name] for name in kept]], tuple(kept))


READERS: dict[str, Callable[..., RawTable]] = {
    ".csv": _read_text(","),
    ".tsv": _read_text("\t"),
    ".csv.gz": _read_text(","),
    ".tsv.gz": _read_text("\t"),
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".npz": _read_npz,
    ".mtx": _read_mtx,
    ".mtx.gz": _read_mtx,
}
"""The suffixes that :func:`read_table` knows."""

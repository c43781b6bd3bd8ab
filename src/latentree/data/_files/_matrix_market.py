"""Matrix Market, read with every number checked: damaged files are errors, whatever is in them.

scipy's reader is compiled, and ends the process on some damaged files.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentree import _memory as memory
from latentree._plain import shown
from latentree.data._files._delimited import open_unpacked
from latentree.errors import FileError
from latentree.typing import AnyArray, ArrayOrSparse, FloatArray, PathLike

if TYPE_CHECKING:
    from scipy import sparse

_CHUNK = 1 << 24
"""Bytes that are read before it is checked again whether the matrix fits into memory."""

_BYTES_A_CHARACTER = 6.0
"""Memory that a character of text takes: itself, and its share of the numbers and the matrix."""


BYTES_PER_COLUMN = 1_000
"""Name, labels and facts of a column, which a sparse matrix without entries has too."""


class _Header(NamedTuple):
    """What the first line says."""

    is_sparse: bool
    field: str
    """"pattern" (all entries are 1), "integer" or "real"."""
    is_symmetric: bool


def read_matrix_market(path: PathLike) -> ArrayOrSparse:
    """Read a file.

    Parameters
    ----------
    path : path of the file
        ``.mtx``, or packed ``.mtx.gz``.

    Returns
    -------
    scipy.sparse.csr_array or array
        As the file says: a list of entries, or all of them.

    Raises
    ------
    FileError
        With what is wrong.
    """
    first, _, rest = _text(path).partition(b"\n")
    header = _header(first)
    lines, body = [b"%"], rest
    while body and (not lines[0].strip() or lines[0].startswith(b"%")):
        lines[0], _, body = body.partition(b"\n")
    sizes = _numbers(lines[0], "sizes")
    if sizes.size != (3 if header.is_sparse else 2):
        raise FileError(f"the line of sizes is {shown(lines[0].decode(errors='replace'))}")
    _require_whole(sizes, 0.0, 2.0**53, "size")
    values = _numbers(body, "entries")
    return _sparse(header, sizes, values) if header.is_sparse else _dense(header, sizes, values)


def _text(path: PathLike) -> bytes:
    chunks: list[bytes] = []
    with open_unpacked(str(path)) as stream:
        while chunk := stream.read(_CHUNK):
            chunks.append(chunk)
            need = _BYTES_A_CHARACTER * sum(map(len, chunks))
            memory.require(need, f"the matrix in {path}", "read fewer rows at a time")
    return b"".join(chunks)


def _header(line: bytes) -> _Header:
    """Read the first line: format, field and symmetry."""
    words = line.decode(errors="replace").lower().split()
    if not words or words[0] != "%%matrixmarket":
        raise FileError("is not a Matrix Market file: it does not begin with %%MatrixMarket")
    known = (
        ("matrix",), ("coordinate", "array"), ("pattern", "integer", "real"),
        ("general", "symmetric"),
    )  # fmt: skip
    if len(words) != 5:
        raise FileError(f"the first line has {len(words)} words, not 5")
    for word, allowed in zip(words[1:], known, strict=True):
        if word not in allowed:
            raise FileError(f"the first line says {shown(word)}: use {' or '.join(allowed)}")
    if words[2:4] == ["array", "pattern"]:
        raise FileError("the first line says 'array' and 'pattern', which exclude each other")
    return _Header(words[2] == "coordinate", words[3], words[4] == "symmetric")


def _numbers(text: bytes, what: str) -> FloatArray:
    """Return the numbers of a text, which holds nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(text.decode("ascii"), np.float64, sep=" ")
        except (ValueError, DeprecationWarning):  # of text that is no number; bytes that are none
            raise FileError(f"the {what} are not all numbers") from None


def _require_whole(values: FloatArray, low: float, high: float, what: str) -> None:
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~((values >= low) & (values <= high) & (values == np.floor(values))))
    if bad.size:
        value = values[bad[0]]
        raise FileError(f"a {what} is {value:g}, but must be whole, from {low:.0f} to {high:.0f}")


def _sparse(header: _Header, sizes: FloatArray, values: FloatArray) -> sparse.csr_array:
    """Return the matrix of a list of entries; a symmetric one lists each pair once."""
    from scipy import sparse

    n, m, n_entries = map(int, sizes)
    width = 2 if header.field == "pattern" else 3
    if values.size != width * n_entries:
        raise FileError(f"{values.size} numbers, but {n_entries} entries have {width * n_entries}")
    require_room(0.0, (n, m))
    entries = values.reshape(n_entries, width)
    _require_whole(entries[:, 0], 1.0, n, "row")
    _require_whole(entries[:, 1], 1.0, m, "column")
    rows, columns = (entries[:, :2].T - 1).astype(np.int64)
    data = np.ones(n_entries) if width == 2 else entries[:, 2]
    if header.is_symmetric:
        apart = rows != columns
        rows, columns = np.append(rows, columns[apart]), np.append(columns, rows[apart])
        data = np.append(data, data[apart])
        n = m = max(n, m)
    return sparse.csr_array((_typed(header, data), (rows, columns)), shape=(n, m))


def require_room(n_bytes: float, shape: tuple[int, ...]) -> None:
    """Raise if cells, starts of rows, and names and facts of columns do not fit into memory."""
    n_rows, n_columns = shape
    need = n_bytes + 16.0 * n_rows + BYTES_PER_COLUMN * n_columns
    what = f"a matrix of {n_rows:,} × {n_columns:,}"
    memory.require(need, what, "read fewer rows at a time, if the file is not damaged")


def _dense(header: _Header, sizes: FloatArray, values: FloatArray) -> AnyArray:
    n, m = map(int, sizes)
    if header.is_symmetric:
        raise FileError("a dense symmetric matrix is not a table: write all of its entries")
    if values.size != n * m:
        raise FileError(f"{values.size} numbers, but {n} × {m} are {n * m}")
    return _typed(header, np.ascontiguousarray(values.reshape(m, n).T))


def _typed(header: _Header, values: FloatArray) -> AnyArray:
    if header.field == "integer":
        _require_whole(values.ravel(), -(2.0**53), 2.0**53, "value")
        return values.astype(np.int64)
    return values

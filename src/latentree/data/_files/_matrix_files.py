"""Matrices of numbers, read as a whole: ``.npz`` of numpy or scipy, and Matrix Market."""

from __future__ import annotations

import math
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from latentree import _memory as memory
from latentree._plain import reason_of, shown
from latentree.data._checks import default_names
from latentree.data._files._matrix_market import read_matrix_market, require_room
from latentree.data._files._paths import ALL_COLUMNS, ColumnChoice, chosen_format, naming
from latentree.errors import FileError, LatentTreeError
from latentree.typing import AnyArray, ArrayOrSparse, PathLike


class NamedMatrix(NamedTuple):
    """An array or a sparse matrix, and the names of its columns if it has any."""

    values: ArrayOrSparse
    names: tuple[str, ...] | None


def read_matrix(path: PathLike, wanted: ColumnChoice) -> NamedMatrix:
    """Read the matrix in a file; without names its columns are called ``x0``, ``x1``, …."""
    with naming(path):
        values, names = chosen_format(MATRICES, path)(path)
        if wanted == ALL_COLUMNS:
            return NamedMatrix(values, names)
        own = names or default_names(values.shape[1])
        kept = wanted.choose(own)
        place = {name: j for j, name in enumerate(own)}
        return NamedMatrix(values[:, [place[name] for name in kept]], tuple(kept))


def _read_npz(path: PathLike) -> NamedMatrix:
    """Read a sparse matrix that scipy saved, or the one matrix of an archive of numpy."""
    if Path(path).is_file() and not zipfile.is_zipfile(path):
        raise FileError("is no .npz file")
    try:
        with zipfile.ZipFile(path) as packed:
            members = _members(packed)
            is_sparse = {"format", "shape"} <= set(members)
            read = _sparse_matrix if is_sparse else _dense_matrix
            return read(packed, members)
    except (LatentTreeError, OSError, MemoryError):
        raise
    except Exception as error:  # damaged archives make zipfile and numpy raise nearly anything
        reason = reason_of(error).partition(". ")[0]
        raise FileError(f"cannot be read as .npz of plain numbers or strings: {reason}") from None


class _Member(NamedTuple):
    """An array in an archive, by its header: nothing is unpacked before it is wanted."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def read(self, packed: zipfile.ZipFile) -> AnyArray:
        """Unpack the array; a header must not declare more than the archive holds."""
        if self.size * self.dtype.itemsize > self.info.file_size:
            name = shown(self.info.filename)
            raise FileError(
                f"{name} declares {memory.format_size(self.size * self.dtype.itemsize)}, but holds "
                f"{memory.format_size(self.info.file_size)}"
            )
        with packed.open(self.info) as file:
            array: AnyArray = npy.read_array(file, allow_pickle=False)
        if array.dtype.kind == "U" and array.size and self.dtype.itemsize:
            codes = np.ascontiguousarray(array).astype(self.dtype.newbyteorder("=")).view(np.uint32)
            if codes.max() > sys.maxunicode:
                raise FileError(f"{shown(self.info.filename)} holds what is no text")
        return array


def _members(packed: zipfile.ZipFile) -> dict[str, _Member]:
    """Return the arrays of an archive by their names."""
    members = {}
    for info in packed.infolist():
        with packed.open(info) as file:
            if file.read(len(npy.MAGIC_PREFIX)) != npy.MAGIC_PREFIX:
                continue
            # Version 3 is of names of fields: no matrix has any.
            version = tuple(file.read(2))
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = header(file)
        members[info.filename.removesuffix(".npy")] = _Member(info, shape, dtype)
    return members


def _dense_matrix(packed: zipfile.ZipFile, members: dict[str, _Member]) -> NamedMatrix:
    """Read the matrix called 'data' or 'X', or else the only one, and the names of its columns."""
    matrices = {name: member for name, member in members.items() if len(member.shape) == 2}
    usual = [name for name in ("data", "X") if name in matrices]
    if not usual and len(matrices) != 1:
        raise FileError(
            f"holds {len(matrices)} matrices ({', '.join(matrices) or 'none'}): "
            "call the one to read 'data'"
        )
    matrix = matrices[usual[0]] if usual else next(iter(matrices.values()))
    named = members.get("names")
    if named is not None and named.shape != (matrix.shape[1],):
        raise FileError(f"{named.size} names for {matrix.shape[1]} columns")
    # As it is stored, and as numbers of 64 bits or as texts of Python.
    extra = 8 if matrix.dtype.kind in "biuf" else 56
    require_room((matrix.dtype.itemsize + extra) * matrix.size, matrix.shape)
    values = matrix.read(packed)
    return NamedMatrix(values, None if named is None else tuple(map(str, named.read(packed))))


_SPARSE = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "dia": ("data", "offsets"),
    "coo": ("data", "coords"),
}
"""The arrays of each format of scipy; older files of the last have row and col."""


def _sparse_matrix(packed: zipfile.ZipFile, members: dict[str, _Member]) -> NamedMatrix:
    """Read a sparse matrix that scipy saved."""
    from scipy import sparse

    if members["format"].size != 1 or members["shape"].size != 2:
        raise FileError("holds a sparse matrix without its format or its two sizes")
    name = members["format"].read(packed).item()
    name = name.decode("ascii") if isinstance(name, bytes) else str(name)
    shape = tuple(map(int, members["shape"].read(packed)))
    if name not in _SPARSE:
        raise FileError(f"holds a sparse matrix of the unknown format {shown(name)}")
    wanted = _SPARSE[name]
    if name == "coo" and "coords" not in members:
        wanted = ("data", "row", "col")
    stored = [members[part] for part in wanted]
    require_room(2.0 * sum(part.size * (part.dtype.itemsize + 8) for part in stored), shape)
    data, *places = (part.read(packed) for part in stored)
    if "indptr" in wanted and (np.diff(places[1].astype(np.int64)) < 0).any():
        raise ValueError("a row of the sparse matrix ends before it begins")
    where = tuple(places) if name == "coo" and len(places) > 1 else places[0]
    given = (data, where) if name in ("coo", "dia") else (data, *places)
    made = getattr(sparse, f"{name}_array")(given, shape=shape)
    if hasattr(made, "check_format"):
        made.check_format(full_check=True)
    return NamedMatrix(sparse.csr_array(made), None)


def _read_mtx(path: PathLike) -> NamedMatrix:
    return NamedMatrix(read_matrix_market(path), None)


MATRICES = {".npz": _read_npz, ".mtx": _read_mtx, ".mtx.gz": _read_mtx}
"""The suffixes that :func:`read_matrix` knows."""

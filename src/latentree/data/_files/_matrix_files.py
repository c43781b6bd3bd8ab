"""Matrices of numbers, read as a whole: ``.npz`` of numpy or scipy, and Matrix Market."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from latentree import _memory as memory
from latentree._plain import reason_of
from latentree.data._checks import default_names
from latentree.data._files._matrix_market import read_matrix_market
from latentree.data._files._paths import ALL_COLUMNS, ColumnChoice, chosen_format, naming
from latentree.errors import FileError
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
    from scipy import sparse

    if Path(path).is_file() and not zipfile.is_zipfile(path):
        raise FileError("is no .npz file")
    try:
        with zipfile.ZipFile(path) as packed:
            need = 2.0 * sum(info.file_size for info in packed.infolist())
        memory.require(need, f"the matrix in {path}", "read fewer rows at a time")
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if {"format", "shape"} <= set(arrays.files):
                return NamedMatrix(sparse.csr_array(sparse.load_npz(path)), None)
            values = _only_matrix({name: arrays[name] for name in arrays.files})
            names = arrays["names"] if "names" in arrays.files else None
    except (
        zipfile.BadZipFile,
        ValueError,
        RuntimeError,
        LookupError,
        EOFError,
        AttributeError,
    ) as error:
        if isinstance(error, FileError):
            raise
        reason = reason_of(error).partition(". ")[0]
        raise FileError(f"cannot be read as .npz of plain numbers or strings: {reason}") from None
    if names is not None and names.shape != (values.shape[1],):
        raise FileError(f"{names.size} names for {values.shape[1]} columns")
    return NamedMatrix(values, None if names is None else tuple(map(str, names)))


def _only_matrix(arrays: dict[str, AnyArray]) -> AnyArray:
    """Return the matrix called 'data' or 'X', or else the only one."""
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


def _read_mtx(path: PathLike) -> NamedMatrix:
    return NamedMatrix(read_matrix_market(path), None)


MATRICES = {".npz": _read_npz, ".mtx": _read_mtx, ".mtx.gz": _read_mtx}
"""The suffixes that :func:`read_matrix` knows."""

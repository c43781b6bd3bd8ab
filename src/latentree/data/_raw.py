"""Arrays, lists and frames as columns whose kind of storage is known."""

from __future__ import annotations

import contextlib
import datetime
import numbers
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType
from narwhals.exceptions import DuplicateError
from numpy.typing import ArrayLike

from latentree.data._checks import as_float, default_names
from latentree.errors import DataError
from latentree.typing import AnyArray, BoolArray, TableLike

StorageKind = Literal["real", "integer", "boolean", "label", "date", "empty"]
"""What a column holds; ``empty`` is a column without any value, which fits every family."""

Frame = nw.DataFrame[Any]
"""A frame of any library, as narwhals presents it."""

Series = nw.Series[Any]
"""A column of such a frame."""

_KIND_OF_DTYPE: dict[str, StorageKind] = {
    "f": "real",
    "i": "integer",
    "u": "integer",
    "b": "boolean",
}


@dataclass(frozen=True)
class Column:
    """One column as it is stored.

    Attributes
    ----------
    name : str
    kind : StorageKind
        How the values are stored.
    values : array
        The values, or their places in ``order`` if ``coded``; of dates numbers that sort them, or
        zeros where these are not known.
    missing : array of bool or None
        Which values are missing; None if none is.
    order : tuple or None
        Labels in an order.
    coded : bool
        Whether values are places in ``order`` instead of labels.
    declared : bool
        Whether the order comes with the data, as categories do.
    is_ordered : bool
        Whether the declared order has a meaning.
    """

    name: str
    kind: StorageKind
    values: AnyArray
    missing: BoolArray | None = None
    order: tuple[Hashable, ...] | None = None
    coded: bool = False
    declared: bool = False
    is_ordered: bool = False


@dataclass(frozen=True)
class RawTable:
    """A table as it came: either one numeric matrix or a list of columns."""

    names: tuple[str, ...]
    named: bool
    """Whether the names came with the data, so that columns can be found by name."""
    n_rows: int
    matrix: AnyArray | None
    columns: tuple[Column, ...] = ()
    decimal: str = "."
    """What separates fractions where texts do not show it."""
    is_dated: bool = False
    """Whether rows have an index of dates that never go back, or never forward."""

    def renamed(self, names: tuple[str, ...]) -> RawTable:
        """Return the same columns under other names."""
        columns = [
            replace(column, name=name)
            for column, name in zip(self.columns, names, strict=bool(self.columns))
        ]
        return replace(self, names=names, columns=tuple(columns))

    def as_columns(self) -> Iterator[Column]:
        """Every column by itself."""
        if self.matrix is None:
            yield from self.columns
            return
        kind = _KIND_OF_DTYPE[self.matrix.dtype.kind]
        # Transposed some at a time: reading a column of a wide matrix misses the cache every cell.
        for start in range(0, len(self.names), 64):
            block = np.ascontiguousarray(self.matrix[:, start : start + 64].T)
            for name, values in zip(self.names[start : start + 64], block, strict=True):
                yield Column(name, kind, values, _nan_mask(values, kind))


def read_raw(X: TableLike) -> RawTable:
    """Read anything but a sparse matrix; say what to do about what cannot be read."""
    if isinstance(X, RawTable):
        return X
    if isinstance(X, Mapping):
        return _from_dict(X)
    frame = as_frame(X)
    if frame is not None:
        return _from_frame(frame)
    if isinstance(X, (str, bytes)) or hasattr(X, "__fspath__"):
        raise DataError(f"got the path or text {X!r}: read the file first, e.g. pandas.read_csv")
    if X is None or isinstance(X, set) or np.isscalar(X):
        raise DataError(
            f"cannot read a table from {type(X).__name__}: pass a data frame, a two-dimensional "
            "array or a scipy.sparse matrix of 0 and 1"
        )
    return _from_array(_as_array(X))


# Frames -----------------------------------------------------------------------------------------


def name_text(name: Hashable) -> str:
    """Return the name of a column as text; a column without one has an empty name."""
    return "" if name is None else str(name)


def as_frame(X: TableLike) -> Frame | None:
    """Return what narwhals makes of a frame; None for anything else."""
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError as error:
        raise DataError(f"column names must differ. {error}") from None
    if isinstance(frame, nw.Series):
        raise DataError("got a single column, but a table has two dimensions: pass a data frame")
    if isinstance(frame, nw.LazyFrame) or callable(getattr(X, "compute", None)):
        raise DataError(
            f"{type(X).__name__} is lazy: collect it first (polars .collect(), dask .compute(), "
            "DuckDB .df())"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _from_frame(frame: Frame) -> RawTable:
    """Read a frame: as one matrix if all columns are numbers of one kind."""
    names = tuple(map(name_text, frame.columns))
    kinds = {_frame_kind(dtype) for dtype in frame.schema.dtypes()}
    n_rows = frame.shape[0]
    if len(kinds) == 1 and kinds <= {"real", "integer", "boolean"}:
        matrix = frame.to_numpy()
        # Nulls among integers or booleans give another dtype: those go column by column.
        if _KIND_OF_DTYPE.get(matrix.dtype.kind) in kinds:
            return RawTable(names, True, n_rows, matrix, is_dated=_is_dated(frame))
    columns = tuple(map(_frame_column, names, frame.iter_columns()))
    return RawTable(names, True, n_rows, None, columns, is_dated=_is_dated(frame))


def _is_dated(frame: Frame) -> bool:
    """Whether a frame of pandas has an index of dates in order."""
    index: Any = getattr(frame.to_native(), "index", None)
    kind = str(getattr(index, "dtype", ""))
    in_order = getattr(index, "is_monotonic_increasing", False) or getattr(
        index, "is_monotonic_decreasing", False
    )
    return kind.startswith(("datetime", "period", "timedelta")) and bool(in_order)


def _frame_kind(dtype: DType) -> StorageKind:
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_float() or dtype == nw.Decimal:
        return "real"
    if dtype.is_integer():  # numpy has none of 128 bits: those are looked at as objects
        return "label" if dtype in (nw.Int128, nw.UInt128) else "integer"
    return "date" if dtype.is_temporal() else "label"


def _frame_column(name: str, series: Series) -> Column:
    """Read one column of a frame."""
    kind = _frame_kind(series.dtype)
    missing = series.is_null().to_numpy() if series.null_count() else None
    if missing is not None and missing.all():
        return Column(name, "empty", np.zeros(len(series), np.int8), missing)
    if kind == "real":
        values = series.cast(nw.Float64).to_numpy()
        return Column(name, kind, values, _nan_mask(values, kind))
    if kind in ("integer", "boolean"):
        # Filled before it leaves the frame: with nulls, numpy would get floats or objects.
        filled = series if missing is None else series.fill_null(False if kind == "boolean" else 0)
        values = filled.to_numpy()
        if values.dtype.kind in "iub":
            return Column(name, kind, values, missing)
    if kind == "date":
        times = series.to_numpy()
        is_known = times.dtype.kind in "Mm"
        ranks = times.astype(np.int64) if is_known else date_ranks(series.to_list(), missing)
        return Column(name, kind, ranks, missing)
    if series.dtype in (nw.Categorical, nw.Enum):
        return _category_column(name, series, missing)
    if series.dtype == nw.String:
        return Column(name, "label", object_array(series.to_list()), missing)
    return object_column(name, series.to_list(), missing)


def _category_column(name: str, series: Series, missing: BoolArray | None) -> Column:
    """Read categories in the order declared; polars and arrow number them by appearance alone."""
    native: Any = getattr(series.to_native(), "cat", None)
    if hasattr(native, "codes") and hasattr(native, "categories"):  # pandas and its kin
        order = tuple(native.categories.tolist())
        codes, is_ordered = native.codes.to_numpy(), bool(getattr(native, "ordered", False))
        return Column(name, "label", codes, missing, order, True, True, is_ordered)
    declared = getattr(series.dtype, "categories", None) if series.dtype == nw.Enum else None
    values = object_array(series.to_list())
    if declared is None:
        return Column(name, "label", values, missing)
    return Column(name, "label", values, missing, tuple(declared), declared=True)


# Arrays and lists -------------------------------------------------------------------------------


def _as_array(X: TableLike) -> AnyArray:
    """Return an array of two dimensions; lists of mixed cells become objects."""
    try:
        array: AnyArray = np.asanyarray(X)
        if not isinstance(X, np.ndarray) and array.dtype.kind not in "fiub":
            # numpy would turn a list of words and numbers into words alone.
            array = np.array(X, dtype=object)
    except ValueError as error:
        raise DataError(f"the rows have different lengths, so they are no table: {error}") from None
    if array.ndim != 2:
        raise DataError(
            f"a table has two dimensions, rows and columns, but this has shape {array.shape}"
        )
    return array


def _from_array(array: AnyArray) -> RawTable:
    """Read an array: as one matrix if it holds numbers and nothing is masked."""
    n, m = array.shape
    names = default_names(m)
    mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    array = np.asarray(array)
    kind = array.dtype.kind
    if kind == "c" or array.dtype.names is not None:
        raise DataError(f"cannot use values of type {array.dtype}: pass real numbers or labels")
    if kind in _KIND_OF_DTYPE and (mask is None or not mask.any()):
        return RawTable(names, False, n, array)
    columns = tuple(
        _array_column(name, array[:, j], None if mask is None else mask[:, j])
        for j, name in enumerate(names)
    )
    return RawTable(names, False, n, None, columns)


def _from_dict(columns: Mapping[Hashable, ArrayLike]) -> RawTable:
    """Read columns by their names, each an array or a list."""
    names = tuple(map(name_text, columns))
    arrays = [_one_column(name, cells) for name, cells in zip(names, columns.values(), strict=True)]
    if len({len(array) for array in arrays}) > 1:
        raise DataError(
            "the columns have different lengths: "
            + ", ".join(f"{name!r} {len(a)}" for name, a in zip(names[:5], arrays, strict=False))
        )
    columns_ = tuple(
        _array_column(
            name,
            np.asarray(array),
            np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None,
        )
        for name, array in zip(names, arrays, strict=True)
    )
    return RawTable(names, True, len(arrays[0]) if arrays else 0, None, columns_)


def _one_column(name: str, cells: ArrayLike) -> AnyArray:
    if isinstance(cells, (str, bytes)) or not hasattr(cells, "__len__"):
        raise DataError(f"column {name!r} is {type(cells).__name__}, not a list of values")
    array: AnyArray = np.asanyarray(cells) if hasattr(cells, "dtype") else np.empty(0)
    if not hasattr(cells, "dtype") or array.dtype.kind not in "fiubMm":
        array = object_array(list(cells))  # type: ignore[arg-type]
    if array.ndim != 1:
        raise DataError(f"column {name!r} has {array.ndim} dimensions, but a column has one")
    return array


def _array_column(name: str, values: AnyArray, mask: BoolArray | None) -> Column:
    """Read one column of an array; masked cells are missing."""
    if values.dtype.kind in "Mm":
        return Column(name, "date", values.astype(np.int64), np.isnat(values))
    if values.dtype.kind not in _KIND_OF_DTYPE:
        return object_column(name, values.tolist(), mask)
    kind = _KIND_OF_DTYPE[values.dtype.kind]
    if mask is not None and mask.all():
        return Column(name, "empty", np.zeros(values.size, np.int8), mask)
    if kind == "real":
        values = values.astype(np.float64)
        if mask is not None:
            values[mask] = np.nan
        return Column(name, kind, values, _nan_mask(values, kind))
    return Column(name, kind, values, mask)


def _nan_mask(values: AnyArray, kind: StorageKind) -> BoolArray | None:
    if kind != "real":
        return None
    mask: BoolArray = np.isnan(values)
    return mask if mask.any() else None


# Python objects ---------------------------------------------------------------------------------


def object_array(values: Sequence[object]) -> AnyArray:
    """Return an array of objects, whatever they are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def object_column(name: str, values: Sequence[object], missing: BoolArray | None) -> Column:
    """Find out what a column of Python objects holds."""
    mask = np.fromiter(map(is_missing, values), bool, len(values))
    if missing is not None:
        mask |= missing
    present = [value for value, gone in zip(values, mask.tolist(), strict=True) if not gone]
    if not present:
        return Column(name, "empty", np.zeros(len(values), np.int8), mask)
    kind = _kind_of_objects(present)
    if kind == "label":
        _check_hashable(name, present)
        array = object_array(values)
    elif kind == "date":
        return Column(name, kind, date_ranks(values, mask), mask)
    else:
        dtype = {"real": np.float64, "boolean": np.bool_, "integer": None}[kind]
        if kind == "real":
            present = [as_float(value) for value in present]
        array = np.zeros(len(values), np.asarray(present, dtype).dtype)
        array[~mask] = present
        if kind == "real":
            array[mask] = np.nan
    return Column(name, kind, array, mask if mask.any() else None)


def date_ranks(values: Sequence[Any], missing: BoolArray | None) -> AnyArray:
    """Return the ranks of dates and times; zeros if some are missing or cannot be compared."""
    if missing is None or not missing.any():
        with contextlib.suppress(TypeError, ValueError):  # dates beside times, zones beside none
            return np.unique(object_array(values), return_inverse=True)[1]
    return np.zeros(len(values), np.int8)


def is_missing(value: object) -> bool:
    """Whether a cell of Python objects is missing."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, (float, np.floating, Decimal)):
        return bool(value != value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    # pandas is not imported for the sake of two constants.
    return type(value).__name__ in ("NAType", "NaTType")


def _kind_of_objects(present: Sequence[Any]) -> StorageKind:
    """Return the kind of present Python objects: one for all of them."""
    types = set(map(type, present))
    if all(issubclass(kind, (bool, np.bool_)) for kind in types):
        return "boolean"
    if any(issubclass(kind, (bool, np.bool_)) for kind in types):
        return "label"
    if all(issubclass(kind, numbers.Integral) for kind in types):
        return "integer" if all(-(2**63) <= value < 2**63 for value in present) else "label"
    if all(issubclass(kind, (numbers.Real, Decimal)) for kind in types):
        return "real"
    dates = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
    is_date = all(issubclass(kind, dates) or kind.__name__ == "Period" for kind in types)
    return "date" if is_date else "label"


def _check_hashable(name: str, present: Sequence[object]) -> None:
    for value in present:
        try:
            hash(value)
        except TypeError:
            raise DataError(
                f"column {name!r} holds {value!r} of type {type(value).__name__}, which cannot be "
                "a label: use numbers, strings or other hashable values"
            ) from None

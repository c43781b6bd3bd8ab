"""Tables given back as they came: whole, with their index, order, labels and types."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import narwhals as nw
import numpy as np

from latentree.data._raw import Series, as_frame, is_missing, name_text, object_array
from latentree.data._table import Schema
from latentree.typing import AnyArray, BoolArray, TableLike


class FrameType(NamedTuple):
    """The library of a frame and the names of its columns, as they are there."""

    backend: str
    names: tuple[Hashable, ...]


def column_names(X: TableLike) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame or a dict as text; None for arrays.

    Parameters
    ----------
    X : table

    Returns
    -------
    tuple of str or None

    Examples
    --------
    >>> column_names({"a": [1, 2]}), column_names([[1, 2]])
    (('a',), None)
    """
    if isinstance(X, dict):
        return tuple(map(name_text, X))
    frame = as_frame(X)
    return None if frame is None else tuple(map(name_text, frame.columns))


def frame_type(X: TableLike) -> FrameType | None:
    """Return the library and the column names of a frame; None for arrays.

    Parameters
    ----------
    X : table

    Returns
    -------
    FrameType or None

    Examples
    --------
    >>> import pandas as pd
    >>> frame_type(pd.DataFrame({"a": [1]}))
    FrameType(backend='pandas', names=('a',))
    """
    frame = as_frame(X)
    if frame is None:
        return None
    return FrameType(frame.implementation.value, tuple(frame.columns))


def whole_columns(schema: Schema, values: AnyArray) -> list[AnyArray]:
    """Return the columns of the whole table: those given, constants, and missing cells.

    Parameters
    ----------
    schema : Schema
        What the columns are.
    values : array of shape (n, m)
        Values or labels of the columns that are used.

    Returns
    -------
    list of arrays
        In the order of ``schema.whole_names``.
    """
    columns = [values[:, j] for j in range(schema.n_columns)]
    for column in schema.aside:
        cells = object_array([column.value] * len(values))
        if isinstance(column.value, int | float):
            cells = np.array(cells.tolist())
        columns.insert(column.place, cells)
    return columns


def frame_of(like: FrameType | None, schema: Schema, values: AnyArray) -> TableLike:
    """Return rows of a model as the kind of whole table that it was learned from.

    Parameters
    ----------
    like : FrameType or None
        The kind of frame; None for an array.
    schema : Schema
        What the columns are.
    values : array of shape (n, m)
        Values or labels of the columns that are used.

    Returns
    -------
    frame or array

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0.5, 1.5, 2.5], "b": [1.5, 0.5, 0.1]})
    >>> from latentree.data import as_table
    >>> frame_of(frame_type(frame), as_table(frame).schema, np.array([[0.25, 0.75]])).shape
    (1, 2)
    """
    if like is None and not schema.aside:
        return values
    columns = whole_columns(schema, values)
    if like is None:
        return _stacked(columns)
    native = tuple(map(name_text, like.names))
    place = dict(zip(schema.whole_names, columns, strict=True))
    chosen = {name: place[name].tolist() for name in native}
    frame = nw.from_dict(chosen, backend=like.backend).to_native()  # type: ignore[arg-type]
    if tuple(native) != like.names:  # pandas alone has names that are no strings
        frame.columns = list(like.names)
    return frame


def _stacked(columns: list[AnyArray]) -> AnyArray:
    """Return columns as one array: of numbers if all are, of objects otherwise."""
    numbers = all(column.dtype.kind in "fiub" for column in columns)
    if numbers:
        return np.column_stack(columns)
    if all(column.dtype.kind in "fiub" or all(map(is_missing, column)) for column in columns):
        # Of columns that were set aside only missing cells are left.
        gaps = np.full(len(columns[0]), np.nan)
        return np.column_stack([c if c.dtype.kind in "fiub" else gaps for c in columns])
    out = np.empty((len(columns[0]), len(columns)), object)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def filled_like(X: TableLike, filled: AnyArray, schema: Schema) -> TableLike:
    """Return a table with its missing cells filled in, and everything else as it is.

    Parameters
    ----------
    X : table
        Frame, dict of columns, or array.
    filled : array of shape (n, m)
        The columns that are used, without gaps.
    schema : Schema
        What the columns are.

    Returns
    -------
    table
        Of the kind of ``X``: frames keep index, order of columns and types; columns that they lack
        follow.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0.5, None], "b": [1.5, 0.5]}, index=[7, 3])
    >>> filled_like(frame, np.array([[0.5, 1.5], [0.25, 0.5]]), Schema.gaussian("ab"))
          a    b
    7  0.50  1.5
    3  0.25  0.5
    """
    columns = {name: filled[:, j].tolist() for j, name in enumerate(schema.names)}
    constants = {column.name: column.value for column in schema.aside if column.value is not None}
    columns |= {name: [value] * len(filled) for name, value in constants.items()}
    own = column_names(X) or schema.names
    lacking = {name: columns[name] for name in schema.names if name not in own}
    if isinstance(X, dict):
        return {name: columns.get(name_text(name), cells) for name, cells in X.items()} | lacking
    frame = as_frame(X)
    if frame is None:
        return _filled_array(X, columns, filled, schema)
    if frame.implementation.is_pandas():
        return _filled_pandas(X, columns, lacking)
    new = [
        _series(frame[name], columns[name_text(name)])
        for name in frame.columns
        if name_text(name) in columns and (frame[name].null_count() or frame[name].dtype.is_float())
    ]
    backend = frame.implementation
    new += [nw.new_series(name, cells, backend=backend) for name, cells in lacking.items()]
    return frame.with_columns(*new).to_native() if new else X


def missing_cells(X: TableLike) -> BoolArray:
    """Return where cells of a table are missing, columns that are set aside included.

    Parameters
    ----------
    X : table
        Frame, dict of columns, array or sparse matrix.

    Returns
    -------
    array of bool of shape (n, m)

    Examples
    --------
    >>> missing_cells({"a": [1.5, None], "b": ["u", "v"]}).tolist()
    [[False, False], [True, False]]
    """
    if hasattr(X, "tocsr"):
        X = X.toarray()
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        return np.asarray(np.isnan(X) | np.ma.getmaskarray(X), np.bool_)
    frame = None if isinstance(X, dict) else as_frame(X)
    columns: Iterable[Iterable[object]]
    if frame is not None:
        columns = [column.to_list() for column in frame.iter_columns()]
    else:
        columns = X.values() if isinstance(X, dict) else np.array(X, object).T
    return np.array([[is_missing(cell) for cell in cells] for cells in columns], np.bool_).T


def with_columns(
    X: TableLike, kept: BoolArray, zeros: BoolArray, added: Mapping[str, AnyArray]
) -> TableLike:
    """Return some columns of a table, some of them as zeros, and new ones after them.

    Parameters
    ----------
    X : table
        Frame, dict of columns, or array.
    kept, zeros : array of bool
        Which columns stay, and which of these become 0.
    added : mapping from names to arrays
        Columns that follow; an array takes them as numbers.

    Returns
    -------
    table of the same kind

    Examples
    --------
    >>> kept, zeros = np.array([True, False]), np.array([False, False])
    >>> with_columns({"a": [1.5], "b": [0]}, kept, zeros, {"c": np.array([True])})
    {'a': [1.5], 'c': [True]}
    """
    if isinstance(X, dict):
        columns = {
            name: [0] * len(cells) if zeros[j] else cells
            for j, (name, cells) in enumerate(X.items())
            if kept[j]
        }
        return columns | {name: cells.tolist() for name, cells in added.items()}
    frame = as_frame(X)
    if frame is None:
        array = np.where(zeros, 0, X)[:, kept]
        return np.column_stack([array, *added.values()]) if added else array
    names = [name for name, is_kept in zip(frame.columns, kept, strict=True) if is_kept]
    backend, n = frame.implementation, len(frame)
    new = {name: np.zeros(n) for name, is_zero in zip(frame.columns, zeros, strict=True) if is_zero}
    series = [
        nw.new_series(name, cells.tolist(), backend=backend)
        for name, cells in (new | dict(added)).items()
    ]
    return frame.select(names).with_columns(*series).to_native()


def _series(old: Series, cells: list[object]) -> Series:
    """Return cells as a series of the same type, or of their own if they do not fit."""
    backend = old.implementation
    try:
        return nw.new_series(old.name, cells, old.dtype, backend=backend)
    except Exception:  # every library has errors of its own for a cell of another type
        return nw.new_series(old.name, cells, backend=backend)


def _filled_pandas(
    X: TableLike, columns: dict[str, list[object]], lacking: dict[str, list[object]]
) -> TableLike:
    """Return a copy of a pandas frame with missing cells filled in; types stay if they can."""
    out = X.copy()
    for place, name in enumerate(X.columns):
        old = X.iloc[:, place]
        cells = columns.get(name_text(name))
        if cells is None or not old.isna().any():
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # pandas warns where it will refuse one day
                new = type(old)(cells, index=X.index, dtype=old.dtype)
        except (TypeError, ValueError, Warning):
            new = type(old)(cells, index=X.index)
        out.isetitem(place, new)
    for name, cells in lacking.items():
        out[name] = cells
    return out


def _filled_array(
    X: TableLike, columns: dict[str, list[object]], filled: AnyArray, schema: Schema
) -> AnyArray:
    """Return the filled columns among those of the whole table that are not used."""
    whole = schema.whole_names
    is_rows = isinstance(X, list | tuple)
    is_array = is_rows or hasattr(X, "shape")
    array = X if is_array else np.asarray(X)  # what only offers __array__
    width = len(array[0]) if is_rows else array.shape[1]
    if width == schema.n_columns:
        return filled
    kept = np.array(array, object) if is_rows else np.asarray(array)
    cells = [
        _plain_array(columns[name]) if name in columns else kept[:, j]
        for j, name in enumerate(whole)
    ]
    return _stacked(cells)


def _plain_array(cells: list[object]) -> AnyArray:
    """Return numbers as an array of numbers, and anything else as an array of objects."""
    is_number = all(isinstance(cell, int | float) for cell in cells)
    return np.array(cells) if is_number else object_array(cells)

"""What all estimators do with the tables that they are given: checks, weights, numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from latentree.data import FrameType, Schema, Table, as_table, column_names, frame_type
from latentree.typing import DataLike, FloatArray, Kind, TableLike


class ChecksTables:
    """An estimator that remembers the columns it has learned from, as scikit-learn does."""

    n_features_in_: int
    _learned_from: FrameType | None

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    def _note_columns(self, names: tuple[str, ...]) -> None:
        """Remember the columns as scikit-learn does."""
        self.n_features_in_ = len(names)
        self._learned_from = None
        self.__dict__.pop("feature_names_in_", None)
        if names != tuple(f"x{j}" for j in range(len(names))):
            self.feature_names_in_ = np.array(names, object)

    def _check(self, X: DataLike, reset: bool, schema: Schema | None = None) -> None:
        """Let scikit-learn check shapes and names; columns are looked at by the table itself."""
        if reset:
            self._learned_from = frame_type(X)
        elif schema is not None and (self._is_matched_by_name(X) or _fits(X, schema)):
            return
        if isinstance(X, dict):  # which scikit-learn does not know
            if reset:
                self._note_columns(tuple(map(str, X)))
        elif isinstance(X, np.ndarray | list | tuple) and not isinstance(X, np.ma.MaskedArray):
            # What it returns is not used: words and NaN would have become words alone. The table
            # refuses infinite values by the name of their column.
            cells = X if isinstance(X, np.ndarray) else _as_objects(X)
            validate_data(self, cells, reset=reset, dtype=None, ensure_all_finite=False)
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)

    def _is_matched_by_name(self, X: DataLike) -> bool:
        """Whether the table finds its columns itself, in any order; scikit-learn wants one."""
        return hasattr(self, "feature_names_in_") and column_names(X) is not None


def row_weights(sample_weight: ArrayLike | None, X: DataLike) -> FloatArray | None:
    """Return weights as an array; one number counts for every row."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    if isinstance(X, dict):
        X = next(iter(X.values()), ())
    return np.full(len(X), weights) if weights.ndim == 0 else weights


def as_real_numbers(X: TableLike) -> dict[str, Kind]:
    """Return kinds by which counts and ordered answers are real numbers."""
    schema = as_table(X).schema
    columns = zip(schema.names, schema.kinds, strict=True)
    return {name: "real" for name, kind in columns if kind in ("count", "ordered")}


def as_numbers(table: Table, drop_first: bool) -> FloatArray:
    """Return columns as numbers: categories of more than two labels as indicators.

    Without the indicator of the first label they are not a function of each other.
    """
    columns = []
    for j, (kind, labels) in enumerate(zip(table.schema.kinds, table.schema.labels, strict=True)):
        cells = table.column(j).astype(np.float64)
        values = np.where(cells < 0, np.nan, cells)[:, None] if labels else cells[:, None]
        if kind == "category" and len(labels) > 2:
            codes = np.arange(int(drop_first), len(labels))
            values = np.where(np.isnan(values), np.nan, values == codes)
        columns.append(values)
    return np.hstack(columns)


def _as_objects(rows: Sequence[object]) -> DataLike:
    """Return rows as an array of the cells themselves: NumPy would decode bytes beside text."""
    try:
        return np.array(rows, object)
    except ValueError:  # rows of different lengths, which scikit-learn refuses by itself
        return rows


def _fits(X: DataLike, schema: Schema) -> bool:
    """Whether data has the columns of a schema, with or without those that were set aside."""
    width = X.shape[1] if getattr(X, "ndim", 0) == 2 else -1
    return bool(schema.aside) and width == schema.n_columns

"""The table itself: values, names, family, labels and weights, frozen."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from latentree import _plain as plain
from latentree.data import _checks as checks
from latentree.errors import DataError, FileError
from latentree.typing import AnyArray, ArrayOrSparse, BoolArray, Family, FloatArray, IntArray, Kind

if TYPE_CHECKING:
    import pyarrow as pa

FAMILIES: tuple[str, ...] = get_args(Family)
KINDS: tuple[str, ...] = get_args(Kind)


class NumberFormat(NamedTuple):
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ","}
        What separates the fraction; the other one may separate thousands.
    unit : str
        What is written before or behind every number, such as ``%`` or ``EUR``.

    Examples
    --------
    >>> NumberFormat(".", "%").unit
    '%'
    """

    decimal: str
    unit: str = ""


class SetAside(NamedTuple):
    """A column that no model uses, but whole tables have.

    Parameters
    ----------
    name : str
        Its name.
    place : int
        Its place among all columns of the whole table.
    why : str
        Why it is set aside.
    value : hashable, optional
        The value of a constant column; None for others.

    Examples
    --------
    >>> SetAside("unit", 2, "always 'cm'", "cm").value
    'cm'
    """

    name: str
    place: int
    why: str
    value: Hashable | None = None


class ColumnKind(NamedTuple):
    """How a column is taken.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"real", "count", "ordered", "category", "ignore"}
        What it holds.
    why : str
        The reason.

    Examples
    --------
    >>> ColumnKind("age", "real", "whole numbers from 18 to 90").kind
    'real'
    """

    name: str
    kind: str
    why: str


@dataclass(frozen=True)
class Schema:
    """What a model remembers of the data it was learned from.

    Parameters
    ----------
    names : tuple of str
        One name per column.
    family : {"gaussian", "discrete", "symmetric", "mixed", "copula"}
        How the columns are modeled.
    labels : tuple of tuples
        For every column the label of code 0, 1, …; an empty tuple for reals and counts.
    kinds : tuple of {"real", "count", "ordered", "category"}, optional
        What every column holds. When left out, all columns are real in the Gaussian family and
        categories in the discrete ones; the mixed family and copulas need them.
    aside : tuple of SetAside
        Columns of the whole table that are not used, in the order of their places.
    reasons : tuple of str
        Why every column is of its kind, where that is known; schemas are compared without it.
    formats : tuple of NumberFormat or None
        How the numbers of every column are written, where they come as text such as "$7,440";
        empty if none does. Schemas are compared without it.

    Examples
    --------
    >>> schema = Schema(("rain", "clouds"), "discrete", (("no", "yes"), ("few", "some", "many")))
    >>> schema.cardinalities
    array([2, 3])
    >>> schema.select([1]).names
    ('clouds',)
    """

    names: tuple[str, ...]
    family: Family
    labels: tuple[tuple[Hashable, ...], ...]
    kinds: tuple[Kind, ...] = ()
    aside: tuple[SetAside, ...] = ()
    reasons: tuple[str, ...] = field(default=(), compare=False, repr=False)
    formats: tuple[NumberFormat | None, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise DataError(f"family is {self.family!r}, but must be one of {', '.join(FAMILIES)}")
        if len(self.labels) != len(self.names):
            raise DataError(f"{len(self.names)} names, but labels of {len(self.labels)} columns")
        checks.check_distinct((*self.names, *(column.name for column in self.aside)))
        if not self.kinds and not self.is_mixed:
            usual: Kind = "real" if self.family == "gaussian" else "category"
            object.__setattr__(self, "kinds", (usual,) * len(self.names))
        self._check_kinds()

    def _check_kinds(self) -> None:
        if len(self.kinds) != len(self.names):
            raise DataError(f"{len(self.names)} names, but kinds of {len(self.kinds)} columns")
        for name, kind, labels in zip(self.names, self.kinds, self.labels, strict=True):
            if kind not in KINDS:
                raise DataError(f"column {name!r} is {kind!r}, which is none of {', '.join(KINDS)}")
            if bool(labels) and kind in ("real", "count"):
                raise DataError(f"column {name!r} is {kind}, so it has no labels")

    def beside(self) -> dict[str, list[dict[str, object]]]:
        """Return plain values of what is known beside the columns: of others, and how they come.

        The value of a constant column that no file can hold is left out.
        """
        aside = [column._asdict() for column in self.aside]
        for column in aside:
            value = plain.plain_scalar(column.pop("value"))
            with contextlib.suppress(FileError):
                plain.check_scalars([value], "value")
                column |= {} if value is None else {"value": value}
        formats = [
            {"name": name, **written._asdict()}
            for name, written in zip(self.names, self.formats, strict=False)
            if written is not None
        ]
        return {key: found for key, found in (("aside", aside), ("formats", formats)) if found}

    @classmethod
    def gaussian(cls, names: Iterable[str]) -> Schema:
        """Return the schema of real columns.

        Parameters
        ----------
        names : iterable of str
            Names of the columns.

        Returns
        -------
        Schema
        """
        names = tuple(names)
        return cls(names, "gaussian", ((),) * len(names))

    @classmethod
    def discrete(
        cls,
        names: Iterable[str],
        cardinalities: int | Sequence[int] | NDArray[np.integer[Any]],
        family: Family = "discrete",
    ) -> Schema:
        """Return the schema of columns whose labels are the codes 0, 1, … themselves.

        Parameters
        ----------
        names : iterable of str
            Names of the columns.
        cardinalities : int or sequence of int
            Number of states of every column, or of each.
        family : {"discrete", "symmetric"}
            How the columns are modeled.

        Returns
        -------
        Schema
        """
        names = tuple(names)
        counts = np.broadcast_to(cardinalities, len(names)).tolist()
        return cls(names, family, tuple(tuple(range(count)) for count in counts))

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def select(self, columns: Iterable[int], names: tuple[str, ...] | None = None) -> Schema:
        """Return the schema of some columns.

        Parameters
        ----------
        columns : iterable of int
            Numbers of the columns, in the order wanted.
        names : tuple of str, optional
            New names of these columns; by default they keep theirs.

        Returns
        -------
        Schema
            Columns that were set aside stay if all others do.
        """
        chosen = [int(column) for column in columns]
        labels = tuple(self.labels[column] for column in chosen)
        kinds = tuple(self.kinds[column] for column in chosen)
        reasons = tuple(self.reasons[column] for column in chosen) if self.reasons else ()
        formats = tuple(self.formats[column] for column in chosen) if self.formats else ()
        names = names or tuple(self.names[c] for c in chosen)
        aside = self.aside if set(names) == set(self.names) else ()
        return Schema(names, self.family, labels, kinds, aside, reasons, formats)

    def same_columns(self, other: Schema) -> bool:
        """Return whether two schemas say the same of the columns that are used.

        Parameters
        ----------
        other : Schema
            The one to compare with.

        Returns
        -------
        bool
            Whatever the columns are that were set aside.
        """
        mine = (self.names, self.family, self.labels, self.kinds)
        return mine == (other.names, other.family, other.labels, other.kinds)

    @cached_property
    def whole_names(self) -> tuple[str, ...]:
        """Names of all columns of the whole table, those set aside too, in their order."""
        names = list(self.names)
        for column in self.aside:
            names.insert(column.place, column.name)
        return tuple(names)

    @property
    def columns(self) -> tuple[ColumnKind, ...]:
        """How every column of the whole table is taken, and why."""
        reasons = self.reasons or ("",) * self.n_columns
        found = list(map(ColumnKind, self.names, self.kinds, reasons))
        for column in self.aside:
            found.insert(column.place, ColumnKind(column.name, "ignore", column.why))
        return tuple(found)

    @cached_property
    def cardinalities(self) -> IntArray:
        """Number of states of every column; 0 for reals and counts."""
        return np.array([len(labels) for labels in self.labels], np.int64)

    @cached_property
    def is_coded(self) -> bool:
        """Whether values are integer codes, −1 where missing, instead of floats with NaN."""
        return self.family in ("discrete", "symmetric")

    @property
    def is_mixed(self) -> bool:
        """Whether columns may be of several kinds, as floats with NaN, labels as codes."""
        return self.family in ("mixed", "copula")


class WithSchema:
    """Properties of the columns of anything that has a schema."""

    schema: Schema

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.schema.names

    @property
    def family(self) -> Family:
        """How the columns are modeled."""
        return self.schema.family

    @property
    def cardinalities(self) -> IntArray:
        """Number of states of every column; 0 for reals and counts."""
        return self.schema.cardinalities

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.schema.n_columns


@dataclass(frozen=True, eq=False, repr=False)
class Table(WithSchema):
    """Validated data; make one with :func:`as_table`.

    Parameters
    ----------
    values : array of shape (n, m) or scipy.sparse.csr_array
        Gaussian and mixed tables: float64, NaN where missing; columns with labels hold the codes
        0, 1, …. Discrete tables: signed integer codes, −1 where missing; or, when all columns have
        two states and nothing is missing, a sparse 0/1 matrix.
    schema : Schema
        Names, family and labels of the columns.
    weights : array of shape (n,), optional
        How much each row counts; all 1 when left out.
    row_labels : pyarrow array, optional
        What a file calls the rows, for the results of each row.

    Examples
    --------
    >>> from latentree.data import as_table
    >>> table = as_table([["no", "yes"], ["yes", "yes"], [None, "no"]], names=["rain", "clouds"])
    >>> table
    Table(3 rows × 2 columns, discrete, 1 missing)
    >>> table.values
    array([[ 0,  1],
           [ 1,  1],
           [-1,  0]], dtype=int8)
    >>> table.schema.labels
    (('no', 'yes'), ('no', 'yes'))
    """

    values: ArrayOrSparse
    schema: Schema
    weights: FloatArray | None = None
    row_labels: pa.ChunkedArray | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != self.schema.n_columns:
            raise DataError(
                f"values of shape {self.values.shape} do not fit {self.schema.n_columns} names"
            )
        if self.weights is not None and self.weights.shape != (self.values.shape[0],):
            raise DataError(
                f"{self.values.shape[0]} rows need as many weights, got {self.weights.shape}"
            )
        if not self.is_sparse:
            object.__setattr__(self, "values", _read_only(self.values))
        if self.weights is not None:
            object.__setattr__(self, "weights", _read_only(self.weights))

    # What it holds --------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows, whatever their weights."""
        return int(self.values.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether the values are a sparse 0/1 matrix."""
        return not isinstance(self.values, np.ndarray)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights, or the number of rows."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    def weight_array(self) -> FloatArray:
        """Return the weights of the rows.

        Returns
        -------
        array of shape (n_rows,)
            All 1 when the table has no weights.
        """
        return np.ones(self.n_rows) if self.weights is None else self.weights

    # Missing cells --------------------------------------------------------------------------

    @cached_property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        if self.is_sparse:
            return False
        if self.schema.is_coded:
            return bool(self.values.min() < 0)
        return checks.has_nan(self.values)

    @cached_property
    def missing_counts(self) -> IntArray:
        """Number of missing cells of every column."""
        counts = np.zeros(self.n_columns, np.int64)
        if self.has_missing:
            for start, stop in checks.row_chunks(self.values):
                counts += self.rows(start, stop).missing_mask().sum(axis=0)
        return counts

    @property
    def column_has_missing(self) -> BoolArray:
        """Whether each column has a missing cell."""
        has: BoolArray = self.missing_counts > 0
        return has

    def missing_mask(self) -> BoolArray:
        """Find the missing cells.

        Returns
        -------
        array of bool of shape (n_rows, n_columns)
            True where a cell is missing; dense even if the values are sparse.
        """
        if self.is_sparse:
            return np.zeros(self.values.shape, bool)
        coded = self.schema.is_coded
        mask: BoolArray = self.values < 0 if coded else np.isnan(self.values)
        return mask

    def present(self, columns: IntArray) -> BoolArray:
        """Find the present cells of some columns.

        Parameters
        ----------
        columns : array of int
            Numbers of the columns.

        Returns
        -------
        array of bool of shape (n_rows, columns.size)
            True where a cell is present.
        """
        if self.is_sparse:
            return np.ones((self.n_rows, columns.size), bool)
        cells = self.values[:, columns]
        there: BoolArray = cells >= 0 if self.schema.is_coded else ~np.isnan(cells)
        return there

    # Parts ----------------------------------------------------------------------------------

    def column(self, j: int) -> AnyArray:
        """Return one column.

        Parameters
        ----------
        j : int
            Number of the column.

        Returns
        -------
        array of shape (n_rows,)
            Values or codes, dense.
        """
        if self.is_sparse:
            dense: AnyArray = self.values[:, [j]].toarray()[:, 0]
            return dense
        column: AnyArray = self.values[:, j]
        return column

    def select(self, columns: IntArray, names: tuple[str, ...] | None = None) -> Table:
        """Return some columns.

        Parameters
        ----------
        columns : array of int
            Numbers of the columns, in the order wanted.
        names : tuple of str, optional
            New names of these columns; by default they keep theirs.

        Returns
        -------
        Table
            With the same rows and weights. The values are not copied if all columns stay in place.
        """
        in_place = np.array_equal(columns, np.arange(self.n_columns))
        values = self.values if in_place else self.values[:, columns]
        return Table(values, self.schema.select(columns, names), self.weights)

    def take(self, rows: IntArray) -> Table:
        """Return some rows.

        Parameters
        ----------
        rows : array of int
            Numbers of the rows, in the order wanted.

        Returns
        -------
        Table
            With the weights of these rows.
        """
        weights = None if self.weights is None else self.weights[rows]
        return Table(self.values[rows], self.schema, weights)

    def counted(self) -> Table:
        """Return the rows that count: those whose weight is not 0.

        Returns
        -------
        Table
            The same one if all rows do.
        """
        if self.weights is None or self.weights.all():
            return self
        return self.take(np.flatnonzero(self.weights))

    def rows(self, start: int, stop: int) -> Table:
        """Return a range of rows.

        Parameters
        ----------
        start, stop : int
            The first row, and the one after the last.

        Returns
        -------
        Table
            A view where the values are dense.
        """
        weights = None if self.weights is None else self.weights[start:stop]
        labels = None if self.row_labels is None else self.row_labels[start:stop]
        return Table(self.values[start:stop], self.schema, weights, labels)

    def __repr__(self) -> str:
        extras: list[str] = [self.family]
        extras += ["sparse"] if self.is_sparse else []
        extras += ["weighted"] if self.weights is not None else []
        missing = int(self.missing_counts.sum())
        extras += [f"{missing} missing"] if missing else []
        return f"Table({self.n_rows} rows × {self.n_columns} columns, {', '.join(extras)})"


def _read_only(array: AnyArray) -> AnyArray:
    # A view, so that the caller's own array stays writable.
    view = array.view()
    view.flags.writeable = False
    return view


def stacked(first: Table, second: Table) -> Table:
    """Rows of two tables, one below the other."""
    tables = (first, second)
    weights = np.concatenate([table.weight_array() for table in tables])
    if first.is_sparse and second.is_sparse:
        import scipy.sparse

        values = scipy.sparse.vstack([table.values for table in tables], "csr")
    else:
        dense = [table.values.toarray() if table.is_sparse else table.values for table in tables]
        values = np.concatenate(dense)
    return Table(values, first.schema, weights)

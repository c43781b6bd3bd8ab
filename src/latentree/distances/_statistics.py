"""Sufficient statistics of data of any size: gathered part by part in one pass, and added up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from latentree import _memory as memory
from latentree.data import Parts, Schema, Table, WithSchema, refuse_columns
from latentree.distances._arrays import mirrored
from latentree.distances._distinct_rows import DistinctRows, has_few_distinct_rows
from latentree.distances._functions import Functions, Units, n_functions
from latentree.distances._outliers import without_outliers
from latentree.distances._reductions import correlations
from latentree.distances._sums import Sums, sums_of_correlations
from latentree.errors import DataError
from latentree.typing import FloatArray, IntArray

DENSE_SHARE = 0.25
"""Sums and distances of all pairs are held if they take at most this share of the memory left."""

SINGLE_PRECISION = 1e-5
"""How far from 1 rounding may leave |r| of a column and its copy, from sums in single precision."""

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Statistics(WithSchema):
    """Sufficient statistics of rows, which add up over parts of the rows (``+``).

    Parameters
    ----------
    schema : Schema
        Names, family and labels of the columns.
    n_rows : int
        Number of rows.
    n_counted : int
        Number of rows with positive weight.
    total_weight : float
        Sum of the weights of the rows.
    sums : Sums
        Of columns, and of pairs of columns where these fit into memory.
    rows : DistinctRows or None
        Discrete data: the distinct rows, where they are few.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree import as_table
    >>> X = np.random.default_rng(0).standard_normal((1_000, 3))
    >>> whole = Statistics.of(as_table(X))
    >>> both = Statistics.of(as_table(X[:400]), like=whole) + Statistics.of(as_table(X[400:]))
    >>> both
    Statistics(1000 rows × 3 columns, gaussian)
    """

    schema: Schema
    n_rows: int
    n_counted: int
    total_weight: float
    sums: Sums
    rows: DistinctRows | None = None

    @classmethod
    def of(cls, table: Table, like: Statistics | None = None) -> Statistics:
        """Take the statistics of a table, in the units of others if they are to be added.

        Parameters
        ----------
        table : Table
            The rows.
        like : Statistics, optional
            Statistics of other rows of the same columns.

        Returns
        -------
        Statistics
        """
        if table.total_weight > 0:
            table = table.counted()
        if like is None:
            return part_statistics(table, plan_of(table))
        _check_same(table.schema, like.schema)
        return part_statistics(table, like.plan)

    @property
    def plan(self) -> StatisticsPlan:
        """How the statistics were taken."""
        return StatisticsPlan(self.sums.functions, self.rows is not None, self.has_pairs)

    def __add__(self, other: Statistics) -> Statistics:
        _check_same(other.schema, self.schema)
        rows = self.rows + other.rows if self.rows is not None and other.rows is not None else None
        return Statistics(
            self.schema,
            self.n_rows + other.n_rows,
            self.n_counted + other.n_counted,
            self.total_weight + other.total_weight,
            self.sums + other.sums,
            rows,
        )

    @classmethod
    def of_correlations(cls, names: tuple[str, ...], r: FloatArray, n: float) -> Statistics:
        """Return the statistics of n rows of real columns with these correlations.

        Parameters
        ----------
        names : tuple of str
            Names of the columns.
        r : array of shape (n_columns, n_columns)
            Their correlations.
        n : float
            Weight of the rows.

        Returns
        -------
        Statistics
            Of columns with mean 0 and variance 1.
        """
        schema = Schema.gaussian(names)
        functions = Functions.of_schema(schema, Units.plain(len(names)))
        return cls(schema, round(n), round(n), n, sums_of_correlations(functions, r, n))

    def select(self, columns: IntArray, names: tuple[str, ...] | None = None) -> Statistics:
        """Return the statistics of some columns.

        Parameters
        ----------
        columns : array of int
            Numbers of the columns, in the order wanted.
        names : tuple of str, optional
            New names of these columns; by default they keep theirs.

        Returns
        -------
        Statistics
            Without distinct rows.
        """
        schema = self.schema.select(columns, names)
        return replace(self, schema=schema, sums=self.sums.select(columns), rows=None)

    # What it says ---------------------------------------------------------------------------

    @property
    def has_pairs(self) -> bool:
        """Whether the sums of all pairs of columns are held."""
        return self.sums.has_pairs

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return not self.sums.complete

    @property
    def rounding(self) -> float:
        """How far from 1 rounding may leave |r| of a column and its copy."""
        return SINGLE_PRECISION if self.family == "mixed" else rounding(self.n_rows)

    def column_weights(self) -> FloatArray:
        """Return the weight of the rows in which each column is present.

        Returns
        -------
        array of shape (n_columns,)
        """
        return self.sums.column_weights()

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of real columns, over their present cells."""
        return self.sums.moments()

    @cached_property
    def correlations(self) -> FloatArray:
        """Correlations of real columns."""
        assert self.sums.pairs is not None
        r = np.clip(mirrored(correlations(self.sums.pairs)), -1.0, 1.0)
        np.fill_diagonal(r, 1.0)
        return r

    @cached_property
    def correlation_root(self) -> FloatArray:
        """L with L·Lᵀ = R, the correlations of real columns without gaps: one row per column.

        By Cholesky's factorization with pivots, which ends at the rank of R.
        """
        factor, pivots, rank, _ = linalg.lapack.dpstrf(self.correlations, lower=1)
        root = np.empty((len(factor), rank))
        root[pivots - 1] = np.tril(factor)[:, :rank]
        return root

    @cached_property
    def mean_pair_weight(self) -> float:
        """Weight of the rows of a pair of columns; its mean where cells are missing."""
        if not self.has_missing or self.n_columns < 2:
            return self.total_weight
        if not self.has_pairs:  # as if cells were missing independently
            share = self.column_weights() / self.total_weight
            others = share.sum() - share
            return float(self.total_weight * (share * others).sum() / _n_pairs(share.size))
        weights = np.asarray(self.sums.pair_weights())
        return float((weights.sum() - np.trace(weights)) / _n_pairs(self.n_columns))

    def require_learnable(self, min_rows: int = 2) -> None:
        """Raise an error when nothing can be learned from the rows, or from some column.

        Parameters
        ----------
        min_rows : int
            Fewest rows to learn from.

        Raises
        ------
        latentree.errors.DataError
            If there are fewer rows, their weights sum to less, or a column is empty, constant or
            too large to be summed.
        """
        if self.n_counted < min_rows:
            of = "" if self.n_counted == self.n_rows else " with positive weight"
            raise DataError(
                f"the table has {self.n_counted} row(s){of}, but learning needs {min_rows}"
            )
        if self.total_weight < min_rows:
            raise DataError(
                f"the weights sum to {self.total_weight:g}, but a weight counts rows and learning "
                f"needs {min_rows}: scale them, for instance to sum to the {self.n_counted} rows"
            )
        empty = self.sums.is_empty()
        refuse_columns(self.names, empty, "has no value at all", "have no value at all")
        too_large = np.flatnonzero(~self.sums.is_finite())
        if too_large.size:
            name = self.names[int(too_large[0])]
            raise DataError(
                f"the values of column {name!r} are too large or too small for their variance to "
                "be a number: rescale it"
            )
        constant = ~empty & self.sums.is_constant()
        refuse_columns(self.names, constant, "is constant", "are constant")

    def __repr__(self) -> str:
        size = f"{self.n_rows} rows × {self.n_columns} columns"
        return f"Statistics({size}, {self.family})"


def _n_pairs(m: int) -> float:
    return m * (m - 1.0)


def rounding(n_rows: int) -> float:
    """Return how far from 1 rounding may leave |r| of a column and its copy."""
    return _EPS * max(64.0, n_rows / 8)


def _check_same(mine: Schema, wanted: Schema) -> None:
    if mine != wanted:
        raise DataError(
            "statistics add up only over the same columns, families and labels: read the parts "
            "with the schema of the first, as in as_table(part, schema=first.schema)"
        )


# Over parts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StatisticsPlan:
    """What every part must do alike.

    Parameters
    ----------
    functions : Functions
        The functions of columns that are summed.
    distinct : bool
        Whether distinct rows are kept.
    pairs : bool
        Whether pairs of columns are summed.
    """

    functions: Functions
    distinct: bool
    pairs: bool = True


def plan_of(table: Table, pairs: bool = True) -> StatisticsPlan:
    """Return how to take the statistics of data that begins with this table.

    Parameters
    ----------
    table : Table
        The first part of the rows.
    pairs : bool
        Whether to sum pairs of columns.

    Returns
    -------
    StatisticsPlan

    Examples
    --------
    >>> from latentree import as_table
    >>> plan_of(as_table([[0.5, 1.5], [1.5, 0.5]])).functions.units.shift
    array([1., 1.])
    """
    functions = Functions.of(table)
    if pairs and table.family == "copula":
        functions = without_outliers(functions, table)
    distinct = table.schema.is_coded and has_few_distinct_rows(table)
    return StatisticsPlan(functions, distinct, pairs)


def part_statistics(table: Table, plan: StatisticsPlan) -> Statistics:
    """Take the statistics of one part: the function that an engine runs on every part.

    Parameters
    ----------
    table : Table
        The rows of the part.
    plan : StatisticsPlan
        The same for all parts, from :func:`plan_of` of the first.

    Returns
    -------
    Statistics
        Of different parts they add up.

    Examples
    --------
    >>> from latentree import as_table
    >>> first = as_table([[0, 1], [1, 1], [0, 0]])
    >>> second = as_table([[1, 0]], schema=first.schema)
    >>> plan = plan_of(first)
    >>> part_statistics(first, plan) + part_statistics(second, plan)
    Statistics(4 rows × 2 columns, discrete)
    """
    weights = table.weights
    n_counted = table.n_rows if weights is None else int(np.count_nonzero(weights))
    sums = Sums.of(table, plan.functions, plan.pairs)
    rows = DistinctRows.of(table) if plan.distinct else None
    return Statistics(table.schema, table.n_rows, n_counted, table.total_weight, sums, rows)


def gather(parts: Parts, pairs: bool | None = None) -> Statistics:
    """Take the statistics of all parts, in one pass.

    Parameters
    ----------
    parts : Parts
        The rows.
    pairs : bool, optional
        Whether to sum pairs of columns; by default if they fit into memory.

    Returns
    -------
    Statistics

    Examples
    --------
    >>> import latentree as lt
    >>> gather(lt.as_parts([[0, 1], [1, 1], [0, 0]]))
    Statistics(3 rows × 2 columns, discrete)
    """
    if pairs is None:
        pairs = memory.fits(pair_bytes(parts.schema), DENSE_SHARE)
    plan = parts.tables.one(0, plan_of, pairs)
    if parts.whole is not None and parts.whole.is_sparse:  # it has few rows a part: m × m for each
        return part_statistics(parts.whole, plan)
    return parts.tables.total(part_statistics, plan)


def pair_bytes(schema: Schema) -> float:
    """Return about how many bytes the sums and distances of all pairs take."""
    width, held = float(np.mean(n_functions(schema))), 8.0
    if schema.family == "mixed":
        held = 16.0  # and those of one part more
    return (held * width**2 + (33.0 if schema.family == "copula" else 9.0)) * schema.n_columns**2

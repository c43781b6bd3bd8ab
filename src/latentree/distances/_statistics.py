"""Statistics of data of any size: taken part by part, added up, and used in place of the data."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from latentree.data import Parts, Schema, Table, listing, refuse_columns
from latentree.distances._dependence import Dependence
from latentree.distances._pairwise import common_cardinality, determinant_roots, information
from latentree.distances._real import RealSums, Units
from latentree.distances._states import DistinctRows, StateCounts, has_few_distinct_rows
from latentree.errors import DataError, DataWarning
from latentree.typing import FloatArray, Index, IntArray

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Statistics:
    """What learning needs to know of rows; adds up over parts (``+``).

    Attributes
    ----------
    schema : Schema
    n_rows : int
    total_weight : float
    sums : RealSums or StateCounts
        Of all pairs of columns.
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
    total_weight: float
    sums: RealSums | StateCounts
    rows: DistinctRows | None = None

    @classmethod
    def of(cls, table: Table, like: Statistics | None = None) -> Statistics:
        """Take the statistics of a table, in the units of others if they are to be added."""
        if like is not None:
            _check_same(table.schema, like.schema)
            return part_statistics(table, like.plan)
        return part_statistics(table, plan_of(table))

    @property
    def plan(self) -> Plan:
        """How the statistics were taken."""
        units = self.sums.units if isinstance(self.sums, RealSums) else None
        return Plan(units, self.rows is not None)

    def __add__(self, other: Statistics) -> Statistics:
        _check_same(other.schema, self.schema)
        rows = self.rows + other.rows if self.rows is not None and other.rows is not None else None
        return Statistics(
            self.schema,
            self.n_rows + other.n_rows,
            self.total_weight + other.total_weight,
            self.sums + other.sums,  # type: ignore[operator]
            rows,
        )

    # What it says ---------------------------------------------------------------------------

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.schema.n_columns

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.schema.names

    @property
    def family(self) -> Any:
        """How the columns are modelled."""
        return self.schema.family

    @property
    def cardinalities(self) -> Any:
        """Number of states of every column."""
        return self.schema.cardinalities

    @cached_property
    def has_missing(self) -> bool:
        """Whether any cell is missing in a row that counts."""
        if isinstance(self.sums, RealSums):
            return not self.sums.complete
        return bool((self.sums.column_weights() < (1 - 1e-12) * self.total_weight).any())

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of real columns."""
        assert isinstance(self.sums, RealSums)
        return self.sums.moments()

    def column_weights(self) -> FloatArray:
        """Weight of the rows in which each column is present."""
        return self.sums.column_weights()

    def dependence(self, centred: bool = True) -> Dependence:
        """Return the signed dependence r of all pairs, as for a table."""
        if isinstance(self.sums, RealSums):
            return _RealDependence(self, self.sums, centred)
        return _StateDependence(self, self.sums)

    def mutual_information(self) -> FloatArray:
        """Mutual information of all pairs of discrete columns, in nats."""
        assert isinstance(self.sums, StateCounts)
        return information(self.sums.counts, self.sums.starts[:-1], self.sums.starts[:-1])

    def equivalent_table(self) -> Table | None:
        """Return a small weighted table on which every model has the same likelihood.

        For real columns without gaps it has 2m rows with the means and covariances of all; for
        discrete ones it holds the distinct rows. None where statistics do not suffice.
        """
        if isinstance(self.sums, RealSums):
            if not self.sums.complete:
                return None
            return Table(*_split(self.sums.same_moments(), self.schema))
        if self.rows is None or self.rows.codes is None:
            return None
        return Table(self.rows.codes, self.schema, self.rows.weights)

    def require_learnable(self, min_rows: int = 2) -> None:
        """Raise when nothing can be learned from some column; warn of duplicate columns."""
        if self.n_rows < min_rows:
            raise DataError(f"there are {self.n_rows} row(s), but learning needs {min_rows}")
        if self.total_weight < min_rows:
            raise DataError(
                f"the weights sum to {self.total_weight:g}, but a weight counts rows and learning "
                f"needs {min_rows}: scale them"
            )
        if isinstance(self.sums, RealSums):
            empty = self.sums.column_weights() <= 0
            constant = self.sums.is_constant()
        else:
            empty = self.sums.column_weights() <= 0
            seen = (np.diagonal(self.sums.counts) > 0).astype(np.int64)
            constant = np.add.reduceat(seen, self.sums.starts[:-1]) < 2
        refuse_columns(self.names, empty, "has no value at all", "have no value at all")
        refuse_columns(self.names, ~empty & constant, "is constant", "are constant")
        if isinstance(self.sums, RealSums):
            self._check_size()

    def _check_size(self) -> None:
        assert isinstance(self.sums, RealSums)
        bad = np.flatnonzero(~np.isfinite(np.diagonal(self.sums.products)))
        if bad.size:
            name = self.names[int(bad[0])]
            raise DataError(f"the values of column {name!r} are too large to be summed: rescale it")

    def warn_of_duplicates(self, r: FloatArray, rounding: float) -> None:
        """Warn of columns that are copies of others, by the dependence r of all pairs."""
        same = np.argwhere(np.tril(r >= 1.0 - rounding, -1))
        if same.size:
            pairs = [f"{self.names[b]} = {self.names[a]}" for a, b in same.tolist()]
            warnings.warn(
                f"duplicate columns lie at distance 0 from each other: {listing(pairs)}",
                DataWarning,
                stacklevel=3,
            )

    def __repr__(self) -> str:
        size = f"{self.n_rows} rows × {self.n_columns} columns"
        return f"Statistics({size}, {self.family})"


def _split(rows: tuple[FloatArray, FloatArray], schema: Schema) -> tuple[Any, Schema, Any]:
    return rows[0], schema, rows[1]


def _check_same(mine: Schema, wanted: Schema) -> None:
    if mine != wanted:
        raise DataError(
            "statistics add up only over the same columns, families and labels: read the parts "
            "with the schema of the first, as in as_table(part, schema=first.schema)"
        )


# Over parts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What every part must do alike: units of real columns, and whether rows are told apart."""

    units: Units | None
    distinct: bool


def plan_of(table: Table) -> Plan:
    """Return how to take the statistics of data that begins with this table."""
    if table.family == "gaussian":
        return Plan(Units.of(table), False)
    return Plan(None, has_few_distinct_rows(table))


def part_statistics(table: Table, plan: Plan) -> Statistics:
    """Take the statistics of one part: the function that an engine runs on every part."""
    if plan.units is not None:
        sums: Any = RealSums.of(table, plan.units)
        return Statistics(table.schema, table.n_rows, table.total_weight, sums)
    rows = DistinctRows.of(table) if plan.distinct else None
    return Statistics(table.schema, table.n_rows, table.total_weight, StateCounts.of(table), rows)


def gather(parts: Parts) -> Statistics:
    """Take the statistics of all parts, in one pass; only once of the same parts."""
    if "statistics" not in parts.known:
        plan = parts.tables.one(0, plan_of)
        parts.known["statistics"] = parts.tables.total(part_statistics, plan)
    found: Statistics = parts.known["statistics"]
    return found


# Dependence -------------------------------------------------------------------------------------


class _Accumulated(Dependence):
    """The dependence of pairs, from statistics, which have m × m numbers anyway."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.n_variables = statistics.n_columns

    @property
    def rounding(self) -> float:
        """How far from 1 rounding may leave |r| of a column and its copy."""
        return _EPS * max(64.0, self.statistics.n_rows / 8)

    @abstractmethod
    def _all(self) -> FloatArray:
        """Return r of all pairs."""

    @cached_property
    def _r(self) -> FloatArray:
        r = self._all()
        self.statistics.warn_of_duplicates(r, self.rounding)
        return r

    def block(self, rows: Index, columns: Index) -> FloatArray:
        """Return r of ``rows`` × ``columns``, 0 where a pair tells nothing."""
        return self._r[rows][:, columns].copy()

    def pairs(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return r of pairs."""
        return self._r[first, second]

    def lower(self) -> FloatArray:
        """Return r of all pairs."""
        return self._r.copy()

    def counts(self, rows: Index, columns: Index) -> float | FloatArray:
        """Total weight of the rows that each pair is taken over: one number if all the same."""
        if not self.statistics.has_missing:
            return self.statistics.total_weight
        return self._pair_weights[rows][:, columns]

    def pair_counts(self, first: IntArray, second: IntArray) -> float | FloatArray:
        """Total weight of the rows of pairs: one number if all the same."""
        if not self.statistics.has_missing:
            return self.statistics.total_weight
        return self._pair_weights[first, second]

    @cached_property
    def _pair_weights(self) -> FloatArray:
        sums = self.statistics.sums
        if isinstance(sums, StateCounts):
            return sums.pair_weights()
        assert isinstance(sums.weight, np.ndarray)
        return sums.weight

    def typical_count(self) -> float:
        """Return the mean total weight of the rows of a pair."""
        m = self.n_variables
        if not self.statistics.has_missing or m < 2:
            return self.statistics.total_weight
        weights = self._pair_weights
        return float((weights.sum() - np.trace(weights)) / (m * (m - 1.0)))


class _RealDependence(_Accumulated):
    """Correlations of real columns."""

    def __init__(self, statistics: Statistics, sums: RealSums, centred: bool) -> None:
        super().__init__(statistics)
        self._sums = sums
        self._centred = centred

    def _all(self) -> FloatArray:
        return self._sums.correlations() if self._centred else self._sums.cosines()


class _StateDependence(_Accumulated):
    """Roots of determinants, or agreement in the symmetric family."""

    def __init__(self, statistics: Statistics, sums: StateCounts) -> None:
        super().__init__(statistics)
        k = common_cardinality(statistics)
        self.n_states = k
        self.exponent = k - 1.0
        self.precision = k - 1.0 if statistics.family == "symmetric" else 1.0
        self._sums = sums

    def _all(self) -> FloatArray:
        joint = self._sums.joint(self.n_states)
        if self.statistics.family != "symmetric":
            return determinant_roots(joint)
        k = self.n_states
        same = np.einsum("ikjk->ij", joint)
        n = joint.sum(axis=(1, 3))
        share = np.divide(same, n, out=np.full_like(same, 1.0 / k), where=n > 0)
        return np.asarray((k * share - 1.0) / (k - 1.0))

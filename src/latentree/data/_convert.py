"""From data of any kind to a checked and coded :class:`Table`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from latentree import _memory as memory
from latentree.data import _checks as checks
from latentree.data import _coding as coding
from latentree.data._by_schema import coded_by, match, select_columns, with_missing
from latentree.data._checks import default_names
from latentree.data._coding import CodedColumn
from latentree.data._column_facts import ColumnFacts, whole_number_facts
from latentree.data._raw import RawTable, read_raw
from latentree.data._schemas import (
    infer_schema,
    schema_of,
    warn_of_aside,
    warn_of_codes,
    warn_of_correlations,
)
from latentree.data._table import FAMILIES, Schema, Table
from latentree.data._time_order import warn_of_levels
from latentree.errors import DataError
from latentree.typing import AnyArray, Family, FloatArray, KindsByName, TableLike, Unseen

if TYPE_CHECKING:
    from scipy import sparse


def as_table(
    X: TableLike,
    family: str = "auto",
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    schema: Schema | None = None,
    kinds: KindsByName | None = None,
    unseen: Unseen = "error",
    may_lack: Sequence[str] = (),
) -> Table:
    """Check and code data.

    Parameters
    ----------
    X : Table, data frame, array, nested list or scipy.sparse matrix
        pandas, polars, pyarrow and other eager frames; numpy arrays of numbers, booleans, strings
        or objects; sparse matrices, of which those of 0 and 1 are never made dense. Missing cells
        are NaN, None, null or masked.
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed", "copula"}
        ``auto`` is Gaussian if all columns are real, discrete if all are categories, and mixed
        otherwise. ``gaussian`` takes all numbers as real, ``discrete`` takes whole numbers as
        codes, and ``symmetric`` gives all columns one common set of labels. ``copula`` takes any
        column as what is seen of a Gaussian variable behind it.
    names : sequence of str, optional
        Names of the columns, instead of the frame's own or ``x0``, ``x1``, ….
    weights : array-like of shape (n,), optional
        How much each row counts, ≥ 0; 2 is the same as the row twice.
    schema : Schema, optional
        Code the data as that of a model. Named columns are found by name, others by position.
        Columns that were set aside may be there or not.
    kinds : mapping from names to kinds, or str, optional
        What columns hold, where the rule takes them otherwise: ``real``, ``count``, ``ordered``,
        ``category``, or ``ignore`` for a column that is not to be used. Names may be patterns
        such as ``q_*``; one kind stands for all columns.
    unseen : {"error", "missing"}
        What becomes of labels that the schema does not have.
    may_lack : sequence of str
        Columns of the schema that are taken as missing where the data lacks them.

    Returns
    -------
    Table
        Labels are the values that occur, sorted or in the order that a categorical declares. A
        table passes through unchanged when nothing contradicts it. ``table.schema.columns`` lists
        how every column was taken, and why.

    Warns
    -----
    DataWarning
        Lists the columns that are set aside: constant ones, identifiers, dates, columns without
        any value. Also if a number looks like a code for missing cells, and if rows are in the
        order of time and columns are levels.

    Examples
    --------
    >>> table = as_table([[0, 1], [1, 1], [0, 0]], names=["rain", "clouds"])
    >>> table
    Table(3 rows × 2 columns, discrete)
    >>> people = {"age": [31, 45, 62, 27], "weight": [71.5, 80, 66.1, 58], "smokes": list("nyny")}
    >>> as_table(people).schema.kinds
    ('real', 'real', 'category')
    >>> as_table([["no", "yes"]], schema=as_table([["no", "no"], ["yes", "yes"]]).schema).values
    array([[0, 1]], dtype=int8)
    """
    if family not in ("auto", *FAMILIES):
        raise DataError(
            f"family is {family!r}, but must be one of {', '.join(('auto', *FAMILIES))}"
        )
    if schema is not None and family not in ("auto", schema.family):
        raise DataError(f"family {family!r} contradicts the model's {schema.family!r}")
    if unseen not in ("error", "missing"):
        raise DataError(f"unseen is {unseen!r}, but must be 'error' or 'missing'")
    if schema is not None and kinds:
        raise DataError("kinds are for data without a schema: the schema has kinds already")
    wanted = schema.family if schema is not None else family
    if hasattr(X, "tocsr"):
        X = _ones_or_dense(X, wanted, schema)
    if isinstance(X, Table):
        if kinds:
            raise DataError("the table is coded already: give the kinds to the data itself")
        table = _from_table(X, wanted, names, schema, unseen)
    elif hasattr(X, "tocsr"):
        table = _from_ones(X, wanted, names, schema, kinds)
    else:
        raw = _rename(read_raw(X), names)
        is_new = schema is None
        if schema is None:
            schema = infer_schema(raw, family, kinds)
        else:
            raw = with_missing(raw, [name for name in schema.names if name in may_lack])
        table = coded_by(schema, select_columns(raw, schema), unseen)
        if is_new:
            warn_of_codes(table)
            warn_of_correlations(table)
            warn_of_levels(raw, table)
    if weights is None:
        return table
    if table.weights is not None:
        raise DataError("the table already has weights: pass the data itself to weigh it anew")
    return Table(table.values, table.schema, checked_weights(weights, table.n_rows))


def _rename(raw: RawTable, names: Sequence[str] | None) -> RawTable:
    if names is not None:
        raw = replace(raw.renamed(_given_names(names, len(raw.names))), named=True)
    if raw.n_rows == 0 or not raw.names:
        raise DataError(f"the table is empty: {raw.n_rows} rows, {len(raw.names)} columns")
    checks.check_distinct(raw.names)
    return raw


def _given_names(names: Sequence[str], n_columns: int) -> tuple[str, ...]:
    given = tuple(str(name) for name in names)
    if len(given) != n_columns:
        raise DataError(f"{len(given)} names were given for {n_columns} columns")
    return given


def checked_weights(weights: ArrayLike, n_rows: int) -> FloatArray:
    """Return a finite weight ≥ 0 for every row, of which some is positive."""
    try:
        w = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise DataError("weights must be numbers, one per row") from None
    if w.shape != (n_rows,):
        raise DataError(f"{n_rows} rows need as many weights, got shape {w.shape}")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if bad.size:
        raise DataError(
            f"the weight of row {bad[0]} is {w[bad[0]]}, but weights must be finite and ≥ 0"
        )
    if not w.any():
        raise DataError("all weights are zero, so no row counts")
    return w


# Sparse matrices --------------------------------------------------------------------------------


def _ones_or_dense(
    X: sparse.spmatrix, wanted: str, schema: Schema | None
) -> sparse.csr_array | AnyArray:
    """Return a matrix of 0 and 1 as sparse bytes; of other numbers a dense array.

    Distances and messages have a sparse form for two states alone.
    """
    from scipy import sparse

    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"the table is empty or has no two dimensions: shape {X.shape}")
    matrix = sparse.csr_array(X)
    # Stored zeros and repeated entries would be counted as ones.
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.copy()  # the caller's matrix stays as it is
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    has_two_states = schema is None or all(labels == (0, 1) for labels in schema.labels)
    is_real = wanted in ("gaussian", "mixed", "copula")
    if is_real or not has_two_states or (matrix.data != 1).any():
        memory.require(
            float(np.prod(matrix.shape)) * matrix.dtype.itemsize,
            f"a sparse matrix of shape {matrix.shape} that holds more than 0 and 1, made dense,",
            "pass fewer columns, or whether each cell is 0",
        )
        return matrix.toarray()
    ones = np.ones(matrix.nnz, np.int8)
    values = sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)
    values.has_canonical_format = True
    return values


def _from_ones(
    values: sparse.csr_array,
    wanted: str,
    names: Sequence[str] | None,
    schema: Schema | None,
    kinds: KindsByName | None,
) -> Table:
    """Code a sparse matrix of 0 and 1; it is never made dense."""
    m = values.shape[1]
    given = default_names(m) if names is None else _given_names(names, m)
    own = Schema.discrete(given, 2, "symmetric" if wanted == "symmetric" else "discrete")
    if schema is not None:
        return match(Table(values, own), names, schema)
    facts = _sparse_facts(values)
    schema = schema_of(given, names is not None, facts, own.family, kinds)
    warn_of_aside(schema)
    # A single row shows one state of every column, but 0/1 data has two.
    schema = replace(schema, labels=((0, 1),) * schema.n_columns)
    return match(Table(values, own), given, schema)


def _sparse_facts(values: sparse.csr_array) -> list[ColumnFacts]:
    """Return the facts of 0/1 columns."""
    n = values.shape[0]
    ones = np.bincount(values.indices, minlength=values.shape[1]).tolist()
    both = (np.array([n - one, one]) for one in ones)
    return [
        whole_number_facts(n, np.flatnonzero(counts).astype(np.float64), counts[counts > 0])
        for counts in both
    ]


# Tables -----------------------------------------------------------------------------------------


def _from_table(
    table: Table, wanted: str, names: Sequence[str] | None, schema: Schema | None, unseen: Unseen
) -> Table:
    if names is not None:
        given = _given_names(names, table.n_columns)
        table = replace(table, schema=replace(table.schema, names=given))
    if wanted not in ("auto", table.family):
        table = _with_family(table, cast(Family, wanted))
    return table if schema is None else match(table, table.names, schema, unseen)


def _with_family(table: Table, family: Family) -> Table:
    if family in ("mixed", "copula"):
        return _as_mixed(table, family)
    if table.schema.is_mixed or "gaussian" in (family, table.family):
        raise DataError(f"the table is {table.family}, but family={family!r} was asked for")
    if table.is_sparse or family == "discrete":
        return replace(table, schema=replace(table.schema, family=family))
    coded = [CodedColumn(table.column(j), table.schema.labels[j]) for j in range(table.n_columns)]
    return replace(_assemble(table.names, family, coded), weights=table.weights)


def _assemble(names: tuple[str, ...], family: Family, coded: Sequence[CodedColumn]) -> Table:
    """Put coded columns together under one set of labels."""
    common = coding.union([column.labels for column in coded if column.labels])
    number = coding.numbering(common)
    codes = [coding.recode(column, name, number) for column, name in zip(coded, names, strict=True)]
    return Table(coding.stack(codes, len(common)), Schema(names, family, (common,) * len(names)))


def _as_mixed(table: Table, family: Family) -> Table:
    values = table.values.toarray() if table.is_sparse else table.values
    if table.schema.is_coded:
        values = np.where(values < 0, np.nan, values.astype(np.float64))
    return replace(table, values=values, schema=replace(table.schema, family=family))

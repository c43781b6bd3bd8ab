"""The door: from data of any shape to a :class:`Table`."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latentree.data import _checks as checks
from latentree.data import _coding as coding
from latentree.data import _sources as sources
from latentree.data._checks import listing
from latentree.data._coding import Coded, Labels
from latentree.data._sources import Column, Kind, Source
from latentree.data._table import FAMILIES, Schema, Table
from latentree.errors import DataError, DataWarning
from latentree.typing import Family

MANY_STATES = 100
"""More distinct values than this in an integer column are hardly categories."""

_FEW_WHOLE = 20
"""Whole-number floats within so small a range look like codes."""


def as_table(
    X: Any,
    family: str = "auto",
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    schema: Schema | None = None,
) -> Table:
    """Check and code data.

    Parameters
    ----------
    X : Table, data frame, array, nested list or scipy.sparse matrix
        pandas, polars, pyarrow and other eager frames; numpy arrays of numbers, booleans, strings
        or objects; sparse matrices of 0 and 1, which are never made dense. Missing cells are NaN,
        None, null or masked.
    family : {"auto", "gaussian", "discrete", "symmetric"}
        ``auto`` takes real columns as Gaussian and booleans, strings, categories and integers as
        discrete, and refuses a mixture. ``gaussian`` takes all numbers as real, ``discrete`` takes
        whole numbers as codes, and ``symmetric`` gives all columns one common set of labels.
    names : sequence of str, optional
        Names of the columns, instead of the frame's own or ``x0``, ``x1``, ….
    weights : array-like of shape (n,), optional
        How much each row counts, ≥ 0; 2 is the same as the row twice.
    schema : Schema, optional
        Code the data as that of a model. Named columns are found by name, others by position.

    Returns
    -------
    Table
        Labels are the values that occur, sorted or in the order that a categorical declares. A
        table passes through unchanged when nothing contradicts it.

    Examples
    --------
    >>> table = as_table([[0, 1], [1, 1], [0, 0]], names=["rain", "clouds"])
    >>> table
    Table(3 rows × 2 columns, discrete)
    >>> as_table([["no", "yes"]], schema=as_table([["no", "no"], ["yes", "yes"]]).schema).values
    array([[0, 1]], dtype=int8)
    """
    if family not in ("auto", *FAMILIES):
        raise DataError(
            f"family is {family!r}, but must be 'auto', 'gaussian', 'discrete' or 'symmetric'"
        )
    if schema is not None and family not in ("auto", schema.family):
        raise DataError(f"family {family!r} contradicts the model's {schema.family!r}")
    wanted = schema.family if schema is not None else family
    if isinstance(X, Table):
        table = _from_table(X, wanted, names, schema)
    elif hasattr(X, "tocsr"):
        table = _from_sparse(X, wanted, names, schema)
    else:
        table = _from_source(_rename(sources.read(X), names), wanted, schema)
    return table if weights is None else _with_weights(table, weights)


def _rename(source: Source, names: Sequence[str] | None) -> Source:
    if names is not None:
        source = replace(source.renamed(_given_names(names, len(source.names))), named=True)
    if source.n_rows == 0 or not source.names:
        raise DataError(f"the table is empty: {source.n_rows} rows, {len(source.names)} columns")
    checks.check_distinct(source.names)
    return source


def _given_names(names: Sequence[str], n_columns: int) -> tuple[str, ...]:
    given = tuple(str(name) for name in names)
    if len(given) != n_columns:
        raise DataError(f"{len(given)} names were given for {n_columns} columns")
    return given


def _with_weights(table: Table, weights: ArrayLike) -> Table:
    if table.weights is not None:
        raise DataError("the table already has weights: pass the data itself to weigh it anew")
    return Table(table.values, table.schema, checked_weights(weights, table.n_rows))


def checked_weights(weights: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Return a finite weight ≥ 0 for every row, of which some is positive."""
    try:
        w = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise DataError("weights must be numbers, one a row") from None
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


# From columns -----------------------------------------------------------------------------------


def _from_source(source: Source, wanted: str, schema: Schema | None) -> Table:
    if schema is not None:
        source = _select(source, schema)
    family = cast(Family, _choose_family(source) if wanted == "auto" else wanted)
    if family == "gaussian":
        values = _real_values(source)
        if wanted == "auto":
            _warn_of_codes(values)
        return Table(values, schema or Schema.gaussian(source.names))
    if schema is not None:
        return _coded_by(schema, source)
    # Integers from a short range are coded at once; the symmetric family needs equal labels.
    quick = None if source.matrix is None else coding.code_matrix(source.matrix)
    if quick is not None and (family == "discrete" or len(set(quick[1])) == 1):
        return Table(quick[0], Schema(source.names, family, quick[1]))
    coded = [coding.code(column) for column in source.as_columns()]
    if wanted == "auto":
        refuse_many_states(source.names, source.kinds, [len(each.labels) for each in coded])
    return _assemble(source.names, family, coded)


def _assemble(names: tuple[str, ...], family: Family, coded: Sequence[Coded]) -> Table:
    """Put coded columns together; in the symmetric family they share one set of labels."""
    codes = [column.codes for column in coded]
    labels = tuple(column.labels for column in coded)
    if family == "symmetric":
        common = coding.union([own for own in labels if own])
        number = coding.numbering(common)
        codes = [
            coding.recode(column, name, number) for column, name in zip(coded, names, strict=True)
        ]
        labels = (common,) * len(names)
    n_states = max(len(own) for own in labels)
    return Table(coding.stack(codes, n_states), Schema(names, family, labels))


def _coded_by(schema: Schema, source: Source) -> Table:
    quick = None if source.matrix is None else coding.code_matrix(source.matrix)
    if quick is not None:
        return _recoded(quick[0], quick[1], schema)
    codes = []
    for column, labels in zip(source.as_columns(), schema.labels, strict=True):
        coded = coding.code(column, whole=False)  # labels of the schema decide, not the type
        codes.append(coding.recode(coded, column.name, coding.numbering(labels)))
    return Table(coding.stack(codes, int(schema.cardinalities.max())), schema)


def _real_values(source: Source) -> NDArray[np.float64]:
    if source.matrix is not None:
        values = np.ascontiguousarray(source.matrix, np.float64)
    else:
        _refuse_labels(source)
        values = np.empty((source.n_rows, len(source.names)))
        for j, column in enumerate(source.columns):
            values[:, j] = column.values
            if column.missing is not None:
                values[column.missing, j] = np.nan
    infinite = checks.find_infinite(values)
    if infinite is not None:
        row, j = infinite
        raise DataError(
            f"column {source.names[j]!r} holds {values[row, j]} in row {row}: replace infinite "
            "values, or set them to NaN if they are missing"
        )
    return values


def _refuse_labels(source: Source) -> None:
    for column in source.columns:
        if column.kind == "date":
            raise coding.date_error(column.name)
        if column.kind == "label":
            odd = _odd_cell(column)
            if odd is not None:
                raise DataError(checks.odd_message(column.name, odd))
            raise DataError(
                f"column {column.name!r} holds labels, not numbers, so family='gaussian' cannot "
                "use it: drop it, convert it, or use family='discrete'"
            )


# Choosing the family ----------------------------------------------------------------------------


def _choose_family(source: Source) -> Family:
    return choose_family(source.names, _telling_kinds(source), lambda: _odd_columns(source))


def choose_family(
    names: Sequence[str], kinds: Sequence[Kind], odd: Callable[[], str] = lambda: ""
) -> Family:
    """Return the family of columns of these kinds, or raise when they do not go together.

    ``odd`` looks for single cells that make text of a column of numbers, and says so.
    """
    groups: dict[str, list[str]] = {}
    for name, kind in zip(names, kinds, strict=True):
        groups.setdefault(kind, []).append(name)
    if "date" in groups:
        raise coding.date_error(groups["date"][0])
    groups.pop("empty", None)
    if set(groups) == {"real"}:
        return "gaussian"
    if "real" not in groups:
        return "discrete"
    nouns = {"real": "real", "integer": "integer", "boolean": "boolean", "label": "categories"}
    what = "; ".join(f"{nouns[kind]}: {listing(names)}" for kind, names in groups.items())
    raise DataError(
        f"the table mixes kinds of columns ({what}): "
        + (
            (odd() if "label" in groups else "")
            or "choose family='gaussian' to treat all numbers as real, family='discrete' to treat "
            "whole numbers as codes, or select columns of one kind"
        )
    )


def _odd_columns(source: Source) -> str:
    """Say which cell makes text of a column of numbers, if one does."""
    for column in source.columns:
        odd = _odd_cell(column)
        if odd is not None:
            return checks.odd_message(column.name, odd)
    return ""


def _odd_cell(column: Column) -> tuple[int, Any] | None:
    if column.kind != "label" or column.order is not None:  # declared categories are meant so
        return None
    cells = column.values.copy()
    if column.missing is not None:
        cells[column.missing] = None
    return checks.odd_cell(cells.tolist())


def _telling_kinds(source: Source) -> list[Kind]:
    """Return the kinds of columns, where a float column without any value tells nothing."""
    kinds = source.kinds
    for j, column in enumerate(source.columns):
        if column.kind == "real" and column.missing is not None and column.missing.all():
            kinds[j] = "empty"
    return kinds


def refuse_many_states(
    names: Sequence[str], kinds: Sequence[Kind], cardinalities: Sequence[int]
) -> None:
    """Raise for a column with so many distinct values that it is hardly one of categories."""
    for name, kind, n_states in zip(names, kinds, cardinalities, strict=True):
        if n_states > MANY_STATES:
            advice = "drop it if it identifies rows" if kind == "label" else "use family='gaussian'"
            raise DataError(
                f"column {name!r} has {n_states} distinct values, which is a lot for categories: "
                f"{advice}, bin the values, or insist with family='discrete'"
            )


def _warn_of_codes(values: NDArray[np.float64]) -> None:
    # A single fraction or a wide range is enough: then the values are no codes.
    first = values[0]
    if (np.isfinite(first) & (first != np.rint(first))).any():  # settles the usual case
        return
    with np.errstate(over="ignore"):
        spread = np.fmax.reduce(values, axis=0) - np.fmin.reduce(values, axis=0)
    if (spread > _FEW_WHOLE).any():
        return
    for start, stop in checks.row_chunks(values):
        chunk = values[start:stop]
        if (np.isfinite(chunk) & (chunk != np.rint(chunk))).any():
            return
    warnings.warn(
        "all values are whole numbers in a small range, taken as real because of their type: "
        "choose family='discrete' if they are codes, or family='gaussian' to say so",
        DataWarning,
        stacklevel=4,
    )


# Against a schema -------------------------------------------------------------------------------


def _select(source: Source, schema: Schema) -> Source:
    index = _column_index(source.names, source.named, schema)
    if index is None:
        return source.renamed(schema.names)
    matrix = None if source.matrix is None else source.matrix[:, index]
    columns = tuple(source.columns[j] for j in index) if source.columns else ()
    return replace(source, names=schema.names, matrix=matrix, columns=columns)


def _column_index(names: Sequence[str], named: bool, schema: Schema) -> list[int] | None:
    """Where the schema's columns are; None when they are in place."""
    if tuple(names) == schema.names:
        return None
    if not named:
        if len(names) != schema.n_columns:
            raise DataError(
                f"the data has {len(names)} columns, but the model has {schema.n_columns}"
            )
        return None
    place = {name: j for j, name in enumerate(names)}
    lacking = [name for name in schema.names if name not in place]
    if lacking:
        raise DataError(f"the model's columns {listing(lacking)} are not in the data")
    known = set(schema.names)
    extra = [name for name in names if name not in known]
    if extra:
        raise DataError(f"columns {listing(extra)} are unknown to the model: drop them")
    return [place[name] for name in schema.names]


# From sparse matrices ---------------------------------------------------------------------------


def _from_sparse(X: Any, wanted: str, names: Sequence[str] | None, schema: Schema | None) -> Table:
    from scipy import sparse

    if wanted == "gaussian":
        raise DataError(
            "a sparse matrix is discrete 0/1 data: pass X.toarray() to treat it as real"
        )
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"the table is empty or has no two dimensions: shape {X.shape}")
    matrix = sparse.csr_array(X)
    # Stored zeros and repeated entries would be counted as ones.
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.copy()  # the caller's matrix stays as it is
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    bad = np.flatnonzero(matrix.data != 1)
    if bad.size:
        column = int(matrix.indices[bad[0]])
        raise DataError(
            f"a sparse matrix must hold 0 and 1 only, but column {column} holds "
            f"{matrix.data[bad[0]]}: pass a dense array of codes or real values"
        )
    ones = np.ones(matrix.nnz, np.int8)
    values = sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)
    values.has_canonical_format = True
    m = values.shape[1]
    given = tuple(f"x{j}" for j in range(m)) if names is None else _given_names(names, m)
    own = Schema.discrete(given, 2, "symmetric" if wanted == "symmetric" else "discrete")
    return Table(values, own) if schema is None else _match(Table(values, own), names, schema)


# From tables ------------------------------------------------------------------------------------


def _from_table(
    table: Table, wanted: str, names: Sequence[str] | None, schema: Schema | None
) -> Table:
    if names is not None:
        given = _given_names(names, table.n_columns)
        table = replace(table, schema=replace(table.schema, names=given))
    if wanted not in ("auto", table.family):
        table = _with_family(table, cast(Family, wanted))
    return table if schema is None else _match(table, table.names, schema)


def _with_family(table: Table, family: Family) -> Table:
    if "gaussian" in (family, table.family):
        raise DataError(f"the table is {table.family}, but family={family!r} was asked for")
    if table.is_sparse or family == "discrete":
        return replace(table, schema=replace(table.schema, family=family))
    coded = [Coded(table.column(j), table.schema.labels[j]) for j in range(table.n_columns)]
    return replace(_assemble(table.names, family, coded), weights=table.weights)


def _match(table: Table, names: Sequence[str] | None, schema: Schema) -> Table:
    """Bring a table into the columns and codes of a schema."""
    if table.schema == schema:
        return table
    index = _column_index(table.names, names is not None, schema)
    values = table.values if index is None else table.values[:, index]
    labels = table.schema.labels if index is None else tuple(table.schema.labels[j] for j in index)
    if table.is_sparse:
        _check_two_states(schema)
    elif table.family == "gaussian":
        values = np.ascontiguousarray(values)
    else:
        values = _recoded(values, labels, schema).values
    return Table(values, schema, table.weights)


def _check_two_states(schema: Schema) -> None:
    for name, labels in zip(schema.names, schema.labels, strict=True):
        if labels != (0, 1):
            raise DataError(
                f"column {name!r} has the labels {listing(labels)}, so sparse 0/1 data does not "
                "fit it: pass a dense array or a frame"
            )


def _recoded(codes: NDArray[Any], labels: Sequence[Labels], schema: Schema) -> Table:
    """Code by the schema's labels instead of each column's own."""
    dtype = coding.smallest_type(int(schema.cardinalities.max()))
    same = all(map(operator.eq, labels, schema.labels))  # then nothing is written below
    values = codes.astype(dtype, order="C", copy=not same)
    for j, (own, wanted) in enumerate(zip(labels, schema.labels, strict=True)):
        if own != wanted:
            coded = Coded(codes[:, j], own)
            values[:, j] = coding.recode(coded, schema.names[j], coding.numbering(wanted))
    return Table(values, schema)

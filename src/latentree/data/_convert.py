"""The door: from data of any shape to a :class:`Table`."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latentree.data import _checks as checks
from latentree.data import _coding as coding
from latentree.data import _kinds as rule
from latentree.data import _sources as sources
from latentree.data._checks import listing
from latentree.data._coding import Coded, Labels
from latentree.data._kinds import Decision, Facts
from latentree.data._sources import Column, Source
from latentree.data._table import FAMILIES, KINDS, Schema, SetAside, Table
from latentree.errors import DataError, DataWarning
from latentree.typing import Family, Kind


def as_table(
    X: Any,
    family: str = "auto",
    *,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    schema: Schema | None = None,
    kinds: Mapping[Any, str] | None = None,
    unseen: Literal["error", "missing"] = "error",
    may_lack: Sequence[str] = (),
) -> Table:
    """Check and code data.

    Parameters
    ----------
    X : Table, data frame, array, nested list or scipy.sparse matrix
        pandas, polars, pyarrow and other eager frames; numpy arrays of numbers, booleans, strings
        or objects; sparse matrices of 0 and 1, which are never made dense. Missing cells are NaN,
        None, null or masked.
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
    kinds : mapping from names to kinds, optional
        What columns hold, where the rule takes them otherwise: ``real``, ``count``, ``ordered``,
        ``category``, or ``ignore`` for a column that is not to be used.
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
        any value.

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
    if isinstance(X, Table):
        if kinds:
            raise DataError("the table is coded already: give the kinds to the data itself")
        table = _from_table(X, wanted, names, schema, unseen)
    elif hasattr(X, "tocsr"):
        table = _from_sparse(X, wanted, names, schema, kinds)
    else:
        source = _rename(sources.read(X), names)
        is_new = schema is None
        if schema is None:
            schema = _own_schema(source, family, kinds)
        else:
            source = _with_missing(source, [name for name in schema.names if name in may_lack])
        table = _coded_by(schema, _select(source, schema), unseen)
        if is_new:
            warn_of_codes(table)
    return table if weights is None else weighted(table, weights)


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


def weighted(table: Table, weights: ArrayLike, some_count: bool = True) -> Table:
    """Return a table with a weight for every row.

    Parameters
    ----------
    table : Table
        Without weights.
    weights : array-like of shape (n,)
        How much each row counts, ≥ 0.
    some_count : bool
        Whether to raise when all weights are zero; a part of the rows may have no other.

    Returns
    -------
    Table

    Examples
    --------
    >>> weighted(as_table([[0, 1], [1, 1], [0, 0]]), [1, 2, 0])
    Table(3 rows × 2 columns, discrete, weighted)
    """
    if table.weights is not None:
        raise DataError("the table already has weights: pass the data itself to weigh it anew")
    return Table(table.values, table.schema, checked_weights(weights, table.n_rows, some_count))


def checked_weights(
    weights: ArrayLike, n_rows: int, some_count: bool = True
) -> NDArray[np.float64]:
    """Return a finite weight ≥ 0 for every row, of which some is positive if ``some_count``."""
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
    if some_count and not w.any():
        raise DataError("all weights are zero, so no row counts")
    return w


# The schema of data -----------------------------------------------------------------------------


def _own_schema(source: Source, family: str, kinds: Mapping[Any, str] | None) -> Schema:
    schema = schema_of(
        source.names, source.named, rule.facts_of(source), family, kinds,
        lambda: _odd_columns(source),
    )  # fmt: skip
    warn_of_aside(schema)
    return schema


def schema_of(
    names: Sequence[str],
    named: bool,
    facts: Sequence[Facts],
    family: str,
    kinds: Mapping[Any, str] | None = None,
    odd: Callable[[], DataError | None] = lambda: None,
) -> Schema:
    """Decide how the columns of a table are taken.

    ``odd`` looks for single cells that make text of a column of numbers, and says so.
    """
    taken = list(rule.decisions(names, named, facts, family, kinds))
    kept = [j for j, decision in enumerate(taken) if decision.kind is not None]
    aside = tuple(
        SetAside(names[j], j, taken[j].why, facts[j].constant)
        for j in range(len(names))
        if taken[j].kind is None
    )
    if family == "gaussian":
        _refuse_labels(names, facts, taken, odd)
    elif family in ("discrete", "symmetric"):
        _refuse_fractions([(names[j], facts[j]) for j in kept])
    if not kept:
        raise DataError(f"no column is left, for all are set aside: {aside_listing(aside)}")
    found = tuple(cast(Kind, taken[j].kind) for j in kept)
    chosen = _family_of(family, [names[j] for j in kept], found)
    labels = tuple(
        rule.labels_of(facts[j]) if kind in ("category", "ordered") else ()
        for j, kind in zip(kept, found, strict=True)
    )
    if chosen == "symmetric":
        labels = (coding.union(labels),) * len(kept)
    reasons = tuple(taken[j].why for j in kept)
    return Schema(tuple(names[j] for j in kept), chosen, labels, found, aside, reasons)


def _family_of(family: str, names: Sequence[str], kinds: Sequence[Kind]) -> Family:
    fitting: dict[str, set[str]] = {
        "gaussian": {"real"}, "discrete": {"category"}, "symmetric": {"category"},
        "mixed": set(KINDS), "copula": set(KINDS),
    }  # fmt: skip
    if family == "auto":
        return cast(Family, next(own for own in FAMILIES if set(kinds) <= fitting[own]))
    for name, kind in zip(names, kinds, strict=True):
        if kind not in fitting[family]:
            raise DataError(f"column {name!r} is {kind}, which family={family!r} does not have")
    return cast(Family, family)


def _refuse_labels(
    names: Sequence[str],
    facts: Sequence[Facts],
    taken: Sequence[Decision],
    odd: Callable[[], DataError | None],
) -> None:
    meant = (rule.ROW_LABELS, rule.ASKED_FOR)
    labeled = [
        (name, own, decision.kind)
        for name, own, decision in zip(names, facts, taken, strict=True)
        if own.type == "label" and decision.why not in meant
    ]
    fault = odd() if labeled else None
    if fault is not None:
        raise fault
    used = {name: own.values for name, own, kind in labeled if kind is not None}
    if used:
        values = next(iter(used.values()))
        example = repr(min(values, key=str)) if values else "text"
        what, it = ("columns", "them") if len(used) > 1 else ("column", "it")
        raise DataError(
            f"{what} {listing(list(used))} hold{'s' * (len(used) == 1)} labels ({example}, …), "
            f"not numbers, so family='gaussian' cannot use {it}: drop {it}, convert {it}, or use "
            "family='mixed'",
            list(used),
        )


def _refuse_fractions(columns: Sequence[tuple[str, Facts]]) -> None:
    for name, facts in columns:
        if facts.fraction is not None:
            row, value = facts.fraction
            raise DataError(
                f"column {name!r} holds {value!r} in row {row}, which is no whole number: bin the "
                "values for a discrete table, or use family='gaussian'"
            )
        if facts.values is None:
            raise DataError(
                f"column {name!r} has more than {rule.TRACKED:,} different values, too many for "
                "categories: bin the values, or use family='gaussian'"
            )


def warn_of_aside(schema: Schema) -> None:
    """List the columns that are set aside, unless nobody wonders."""
    quiet = (rule.ROW_LABELS, rule.ASKED_FOR)
    told = [column for column in schema.aside if column.why not in quiet]
    if told:
        what = "column is" if len(told) == 1 else "columns are"
        warnings.warn(f"{len(told)} {what} set aside: {aside_listing(told)}", DataWarning, 5)


def warn_of_codes(table: Table) -> None:
    """Point out numbers such as −999 that look as if they stood for missing cells."""
    found: dict[float, list[str]] = {}
    for name, code in checks.missing_codes(table.names, table.values, table.schema.labels):
        found.setdefault(code, []).append(name)
    for code, columns in found.items():
        what = "column" if len(columns) == 1 else "columns"
        warnings.warn(
            f"{what} {listing(columns)} {'holds' if len(columns) == 1 else 'hold'} {code:g}, far "
            "from all other values: if it stands for a missing value, set it to NaN "
            f"(na=['{code:g}'] when a file is read)",
            DataWarning,
            5,
        )


def aside_listing(aside: Sequence[SetAside]) -> str:
    """List columns that are set aside, those with one reason together."""
    groups: dict[str, list[str]] = {}
    for column in aside:
        groups.setdefault(column.why, []).append(column.name)
    return "; ".join(f"{listing(names)} ({why})" for why, names in groups.items())


def _odd_columns(source: Source) -> DataError | None:
    """Return what is wrong with a cell that makes text of a column of numbers, if one does."""
    for column in source.columns:
        odd = _odd_cell(column)
        if odd is not None:
            return checks.odd_error(column.name, odd)
    return None


def _odd_cell(column: Column) -> tuple[int, Any] | None:
    if column.kind != "label" or column.declared:  # declared categories are meant so
        return None
    cells = column.values.astype(object)
    if column.coded:
        assert column.order is not None
        words = sources.object_array([*column.order, None])  # the last serves missing codes
        cells = words[column.values]
    if column.missing is not None:
        cells[column.missing] = None
    return checks.odd_cell(cells.tolist())


# Values by a schema -----------------------------------------------------------------------------


def _coded_by(schema: Schema, source: Source, unseen: str = "error") -> Table:
    if schema.family == "gaussian":
        return Table(_real_values(source), schema)
    if schema.is_mixed:
        columns = zip(source.as_columns(), schema.kinds, schema.labels, strict=True)
        values = np.empty((source.n_rows, schema.n_columns))
        for j, (column, kind, labels) in enumerate(columns):
            values[:, j] = _mixed_values(column, kind, labels, unseen)
        return Table(values, schema)
    quick = None if source.matrix is None else coding.code_matrix(source.matrix)
    if quick is not None:
        return _recoded(quick[0], quick[1], schema, unseen)
    codes = [
        _codes(column, labels, unseen)
        for column, labels in zip(source.as_columns(), schema.labels, strict=True)
    ]
    return Table(coding.stack(codes, int(schema.cardinalities.max())), schema)


def _codes(column: Column, labels: Labels, unseen: str) -> NDArray[Any]:
    coded = coding.code(column)
    return coding.recode(coded, column.name, coding.numbering(labels), unseen)


def _mixed_values(column: Column, kind: Kind, labels: Labels, unseen: str) -> NDArray[np.float64]:
    """Return a column of a mixed table: numbers, or codes as floats; NaN where missing."""
    if kind in ("category", "ordered"):
        codes = _codes(column, labels, unseen)
        return np.where(codes < 0, np.nan, codes)
    values = _real_column(column)
    _refuse_infinite((column.name,), values[:, None])
    if kind == "count":
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero((values < 0) | (values != np.rint(values)) & ~np.isnan(values))
        if bad.size:
            raise DataError(
                f"column {column.name!r} holds {values[bad[0]]:g} in row {bad[0]}, but counts are "
                "0, 1, 2, …"
            )
    return values


def _real_values(source: Source) -> NDArray[np.float64]:
    if source.matrix is not None:
        values = np.ascontiguousarray(source.matrix, np.float64)
    else:
        values = np.empty((source.n_rows, len(source.names)))
        for j, column in enumerate(source.columns):
            values[:, j] = _real_column(column)
    _refuse_infinite(source.names, values)
    return values


def _real_column(column: Column) -> NDArray[np.float64]:
    if column.kind == "date":
        raise coding.date_error(column.name)
    if column.kind == "label" and not _all_numbers(column):
        odd = _odd_cell(column)
        if odd is not None:
            raise checks.odd_error(column.name, odd)
        raise DataError(f"column {column.name!r} holds labels, but numbers are needed")
    values: NDArray[np.float64] = np.full(column.values.size, np.nan)
    there = slice(None) if column.missing is None else ~column.missing
    values[there] = column.values[there]
    return values


def _all_numbers(column: Column) -> bool:
    """Whether labels are Python numbers, as integers of more than 64 bits are."""
    present = column.values if column.missing is None else column.values[~column.missing]
    return not column.coded and all(isinstance(value, int) for value in present.tolist())


def _refuse_infinite(names: Sequence[str], values: NDArray[np.float64]) -> None:
    infinite = checks.find_infinite(values)
    if infinite is not None:
        row, j = infinite
        raise DataError(
            f"column {names[j]!r} holds {values[row, j]} in row {row}: replace infinite "
            "values, or set them to NaN if they are missing"
        )


# Against a schema -------------------------------------------------------------------------------


def _select(source: Source, schema: Schema) -> Source:
    index = _column_index(source.names, source.named, schema)
    if index is None:
        return source.renamed(schema.names)
    matrix = None if source.matrix is None else source.matrix[:, index]
    columns = tuple(source.columns[j] for j in index) if source.columns else ()
    return replace(source, names=schema.names, matrix=matrix, columns=columns)


def _with_missing(source: Source, names: Sequence[str]) -> Source:
    """Add columns that the data lacks, without any value."""
    lacking = [name for name in names if name not in source.names] if source.named else []
    if not lacking:
        return source
    empty, missing = np.zeros(source.n_rows, np.int8), np.ones(source.n_rows, bool)
    added = (Column(name, "empty", empty, missing) for name in lacking)
    columns = (*source.as_columns(), *added)
    return replace(source, names=(*source.names, *lacking), matrix=None, columns=columns)


def _column_index(names: Sequence[str], named: bool, schema: Schema) -> list[int] | None:
    """Where the schema's columns are; None when they are in place."""
    if tuple(names) == schema.names:
        return None
    whole = schema.whole_names
    if not named:
        if len(names) == len(whole) > schema.n_columns:
            names = whole
        elif len(names) != schema.n_columns:
            raise DataError(
                f"the data has {len(names)} columns, but the model has {schema.n_columns}"
            )
        else:
            return None
    place = {name: j for j, name in enumerate(names)}
    lacking = [name for name in schema.names if name not in place]
    if lacking:
        raise DataError(f"the model's columns {listing(lacking)} are not in the data")
    known, unnamed = set(whole), rule.unnamed_place(names)
    extra = [name for j, name in enumerate(names) if name not in known and j != unnamed]
    if extra:
        raise DataError(f"columns {listing(extra)} are unknown to the model: drop them", extra)
    return [place[name] for name in schema.names]


# From sparse matrices ---------------------------------------------------------------------------


def _from_sparse(
    X: Any,
    wanted: str,
    names: Sequence[str] | None,
    schema: Schema | None,
    kinds: Mapping[Any, str] | None,
) -> Table:
    from scipy import sparse

    if wanted in ("gaussian", "mixed", "copula"):
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
    if schema is not None:
        return _match(Table(values, own), names, schema)
    facts = _sparse_facts(values)
    schema = schema_of(given, names is not None, facts, own.family, kinds)
    warn_of_aside(schema)
    # A single row shows one state of every column, but 0/1 data has two.
    schema = replace(schema, labels=((0, 1),) * schema.n_columns)
    return _match(Table(values, own), given, schema)


def _sparse_facts(values: Any) -> list[Facts]:
    """Return the facts of 0/1 columns."""
    n = values.shape[0]
    ones = np.bincount(values.indices, minlength=values.shape[1]).tolist()
    both = (np.array([n - one, one]) for one in ones)
    return [
        rule.whole_facts(n, np.flatnonzero(counts).astype(np.float64), counts[counts > 0])
        for counts in both
    ]


# From tables ------------------------------------------------------------------------------------


def _from_table(
    table: Table, wanted: str, names: Sequence[str] | None, schema: Schema | None, unseen: str
) -> Table:
    if names is not None:
        given = _given_names(names, table.n_columns)
        table = replace(table, schema=replace(table.schema, names=given))
    if wanted not in ("auto", table.family):
        table = _with_family(table, cast(Family, wanted))
    return table if schema is None else _match(table, table.names, schema, unseen)


def _with_family(table: Table, family: Family) -> Table:
    if family in ("mixed", "copula"):
        return _as_mixed(table, family)
    if table.schema.is_mixed or "gaussian" in (family, table.family):
        raise DataError(f"the table is {table.family}, but family={family!r} was asked for")
    if table.is_sparse or family == "discrete":
        return replace(table, schema=replace(table.schema, family=family))
    coded = [Coded(table.column(j), table.schema.labels[j]) for j in range(table.n_columns)]
    return replace(_assemble(table.names, family, coded), weights=table.weights)


def _assemble(names: tuple[str, ...], family: Family, coded: Sequence[Coded]) -> Table:
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


def _match(
    table: Table, names: Sequence[str] | None, schema: Schema, unseen: str = "error"
) -> Table:
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
    elif table.schema.is_mixed:
        values = _remixed(values, labels, schema, unseen)
    else:
        values = _recoded(values, labels, schema, unseen).values
    return Table(values, schema, table.weights)


def _remixed(
    values: NDArray[np.float64], labels: Sequence[Labels], schema: Schema, unseen: str
) -> NDArray[np.float64]:
    values = np.array(values)
    for j, (own, wanted) in enumerate(zip(labels, schema.labels, strict=True)):
        if bool(own) != bool(wanted):
            raise DataError(f"column {schema.names[j]!r} is not {schema.kinds[j]} in the table")
        if own != wanted:
            codes = np.where(np.isnan(values[:, j]), -1, values[:, j]).astype(np.int64)
            number = coding.numbering(wanted)
            recoded = coding.recode(Coded(codes, own), schema.names[j], number, unseen)
            values[:, j] = np.where(recoded < 0, np.nan, recoded)
    return values


def _check_two_states(schema: Schema) -> None:
    for name, labels in zip(schema.names, schema.labels, strict=True):
        if labels != (0, 1):
            raise DataError(
                f"column {name!r} has the labels {listing(labels)}, so sparse 0/1 data does not "
                "fit it: pass a dense array or a frame"
            )


def _recoded(
    codes: NDArray[Any], labels: Sequence[Labels], schema: Schema, unseen: str = "error"
) -> Table:
    """Code by the schema's labels instead of each column's own."""
    dtype = coding.smallest_type(int(schema.cardinalities.max()))
    same = all(map(operator.eq, labels, schema.labels))  # then nothing is written below
    values = codes.astype(dtype, order="C", copy=not same)
    for j, (own, wanted) in enumerate(zip(labels, schema.labels, strict=True)):
        if own != wanted:
            coded = Coded(codes[:, j], own)
            number = coding.numbering(wanted)
            values[:, j] = coding.recode(coded, schema.names[j], number, unseen)
    return Table(values, schema)

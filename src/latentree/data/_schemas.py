"""From the facts of columns to a schema: kinds, family, labels, and what is set aside."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from latentree.data import _checks as checks
from latentree.data import _coding as coding
from latentree.data._checks import OddCell, listing
from latentree.data._column_facts import TRACKED, ColumnFacts, column_facts
from latentree.data._kinds import (
    ASKED_FOR,
    CORRECT,
    DATES,
    FEW_VALUES,
    IDENTIFIERS,
    NAMES,
    ODD,
    ROW_LABELS,
    KindDecision,
    check_wanted,
    chosen_readings,
    decisions,
    labels_of,
    read_facts,
    with_reading,
)
from latentree.data._raw import Column, RawTable, object_array
from latentree.data._scales import by_scale
from latentree.data._table import FAMILIES, KINDS, ColumnKind, Schema, SetAside, Table
from latentree.errors import DataError, DataWarning
from latentree.typing import Family, Kind, KindsByName


def infer_schema(raw: RawTable, family: str, kinds: KindsByName | None) -> Schema:
    """Decide how the columns of data in memory are taken, and warn of those set aside."""
    schema = schema_of(
        raw.names, raw.named, column_facts(raw), family, kinds,
        lambda: _odd_columns(raw), raw.decimal,
    )  # fmt: skip
    warn_of_aside(schema)
    return schema


def schema_of(
    names: Sequence[str],
    named: bool,
    facts: Sequence[ColumnFacts],
    family: str,
    kinds: KindsByName | None = None,
    odd: Callable[[], DataError | None] = lambda: None,
    decimal: str = ".",
) -> Schema:
    """Decide how the columns of a table are taken.

    ``odd`` looks for single cells that make text of a column of numbers, and says so; ``decimal``
    separates fractions in texts that do not show it.
    """
    wanted = check_wanted(kinds, names)
    readings = chosen_readings(names, facts, family, wanted, decimal)
    facts = list(map(read_facts, facts, readings))
    taken = decisions(names, named, facts, family, wanted)
    if family not in ("gaussian", "discrete", "symmetric"):
        taken = by_scale(facts, taken, [name not in wanted for name in names])
    taken = list(map(with_reading, taken, readings))
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
        labels_of(facts[j]) if kind in ("category", "ordered") else ()
        for j, kind in zip(kept, found, strict=True)
    )
    if chosen == "symmetric":
        labels = (coding.union(labels),) * len(kept)
    reasons = tuple(taken[j].why for j in kept)
    formats = tuple(None if own is None else own.format for own in (readings[j] for j in kept))
    return Schema(
        tuple(names[j] for j in kept), chosen, labels, found, aside, reasons,
        formats if any(formats) else (),
    )  # fmt: skip


def _family_of(family: str, names: Sequence[str], kinds: Sequence[Kind]) -> Family:
    """Return the family that was asked for, or the first one that fits all kinds."""
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
    facts: Sequence[ColumnFacts],
    taken: Sequence[KindDecision],
    odd: Callable[[], DataError | None],
) -> None:
    """Raise if family='gaussian' was asked for and a column that is used holds labels."""
    meant = (ROW_LABELS, ASKED_FOR)
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


def _refuse_fractions(columns: Sequence[tuple[str, ColumnFacts]]) -> None:
    """Raise if columns of a discrete table hold fractions or too many values."""
    for name, facts in columns:
        if facts.fraction is not None:
            row, value = facts.fraction
            raise DataError(
                f"column {name!r} holds {value!r} in row {row}, which is no whole number: bin the "
                "values for a discrete table, or use family='gaussian'"
            )
        if facts.values is None:
            raise DataError(
                f"column {name!r} has more than {TRACKED:,} different values, too "
                "many for categories: bin the values, or use family='gaussian'"
            )


def warn_of_aside(schema: Schema) -> None:
    """Warn of columns that are set aside, except row labels and those ignored on request.

    And of columns of numbers that single cells make categories of. With few labels these are meant:
    floors 1, 2 and "ground".
    """
    quiet = (ROW_LABELS, ASKED_FOR)
    told = [column for column in schema.aside if column.why not in quiet]
    if told:
        what = "column is" if len(told) == 1 else "columns are"
        text = f"{len(told)} {what} set aside: {aside_listing(told)}{_aside_hint(told)}"
        warnings.warn(text, DataWarning, 5)
    many = dict(zip(schema.names, schema.cardinalities > FEW_VALUES, strict=True))
    odd = [column for column in schema.columns if many.get(column.name) and ODD in column.why]
    if odd:
        what = "column is" if len(odd) == 1 else "columns are"
        warnings.warn(
            f"{len(odd)} {what} taken as text, not as numbers: {aside_listing(odd)}; {CORRECT}",
            DataWarning,
            5,
        )


def _aside_hint(aside: Sequence[SetAside]) -> str:
    """Say how columns that are set aside can be used all the same."""
    hints = []
    named = next((column for column in aside if IDENTIFIERS in column.why), None)
    if named is not None:
        kind, what = ("category", "labels") if NAMES in named.why else ("real", "numbers")
        hints.append(f"kinds={{{named.name!r}: {kind!r}}} takes identifiers as {what}")
    if any(column.why.startswith(DATES) for column in aside):
        hints.append("dates have to be turned into numbers or labels, such as the month")
    if any(ODD in column.why for column in aside):
        hints.append(CORRECT)
    them = "it" if len(aside) == 1 else "them"
    return f"; to use {them}, " * bool(hints) + ", and ".join(hints)


def warn_of_codes(table: Table) -> None:
    """Warn of numbers such as −999 that look like codes for missing cells."""
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


def warn_of_correlations(table: Table) -> None:
    """Warn of a square table that is symmetric with 1 on its diagonal: its rows are no samples."""
    values = table.values
    is_square = table.n_rows == table.n_columns > 2 and not table.schema.is_coded
    if not is_square or table.is_sparse or not (np.diagonal(values) == 1.0).all():
        return
    if np.allclose(values, values.T, rtol=0.0, atol=1e-9) and np.abs(values).max() <= 1.0:
        warnings.warn(
            f"the table looks like the correlations of {table.n_columns} columns, but its rows are "
            "taken as samples: give the rows that they were computed from, or learn from the "
            "distances -log|r|, as in lt.structure.neighbor_joining(-np.log(np.abs(r)))",
            DataWarning,
            5,
        )


def aside_listing(aside: Sequence[SetAside | ColumnKind]) -> str:
    """List columns that are set aside, those with one reason together."""
    groups: dict[str, list[str]] = {}
    for column in aside:
        groups.setdefault(column.why, []).append(column.name)
    return "; ".join(f"{listing(names)} ({why})" for why, names in groups.items())


def _odd_columns(raw: RawTable) -> DataError | None:
    """Return an error for the first cell that makes text of a column of numbers, if any does."""
    for column in raw.columns:
        odd = odd_cell_of(column)
        if odd is not None:
            return checks.odd_error(column.name, odd)
    return None


def odd_cell_of(column: Column) -> OddCell | None:
    """Return the cell that makes text of a column of numbers, if one does."""
    if column.kind != "label" or column.declared:  # declared categories are meant so
        return None
    cells = column.values.astype(object)
    if column.coded:
        assert column.order is not None
        words = object_array([*column.order, None])  # the last serves missing codes
        cells = words[column.values]
    if column.missing is not None:
        cells[column.missing] = None
    return checks.odd_cell(cells.tolist())

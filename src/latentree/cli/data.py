"""Tables from files, and what they hold in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from latentree.cli.screen import Screen
from latentree.errors import DataError, FileError
from latentree.files.tables import STANDARD, read_table
from latentree.table import Table, as_table

_MATRICES = (".npz", ".mtx", ".mtx.gz")


class Choice(NamedTuple):
    """What of a file is read, and how."""

    family: str = "auto"
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    header: bool | None = None


def read_data(screen: Screen, path: str, choice: Choice) -> Table:
    """Read a table to learn from, and say what it holds."""
    raw = read_table(path, columns=choice.columns, drop=choice.drop, header=choice.header)
    try:
        _refuse_words(raw.data, choice.family)
        table = as_table(raw.data, choice.family, names=raw.names)
    except DataError as error:
        raise FileError(f"{called(path)}: {error}") from error
    screen.tell(f"{called(path)}: {described(table)}")
    return table


def _refuse_words(data: Any, family: str) -> None:
    """Name the column that keeps a table from being real; words come coded from the file."""
    if isinstance(data, Table) and family == "gaussian":
        for name, labels in zip(data.names, data.schema.labels, strict=True):
            if any(isinstance(label, str) for label in labels):
                raise DataError(
                    f"column {name!r} holds words ({labels[0]!r}, …), so family='gaussian' cannot "
                    "use it: drop it, or use family='discrete'"
                )


def read_for(screen: Screen, model: Any, path: str, header: bool | None) -> Table:
    """Read the columns of a model; what else is in the file is left alone."""
    schema = model.schema
    by_place = header is False or path.lower().endswith(_MATRICES)
    raw = read_table(path, columns=None if by_place else schema.names, header=header)
    names = schema.names if header is False else raw.names
    try:
        table = as_table(raw.data, names=names, schema=schema)
    except DataError as error:
        raise FileError(f"{called(path)}: {error}") from error
    screen.tell(f"{called(path)}: {described(table)}")
    return table


def called(path: str) -> str:
    """Return how messages call a path."""
    return "standard input" if path == STANDARD else path


def described(table: Table) -> str:
    """Say in a line how large a table is, of which family and types, and what is missing."""
    missing = int(table.missing_counts.sum())
    gaps = "nothing missing"
    if missing:
        share = missing / (table.n_rows * table.n_columns)
        gaps = f"{missing:,} cells missing ({share:.2g} of all)"
    size = f"{table.n_rows:,} rows × {table.n_columns:,} columns"
    return f"{size}, {table.family}: {_types(table)}, {gaps}"


def _types(table: Table) -> str:
    if table.family == "gaussian":
        return "real numbers"
    low, high = int(table.cardinalities.min()), int(table.cardinalities.max())
    states = f"{low}" if low == high else f"{low} to {high}"
    return f"{states} states a column{', sparse' if table.is_sparse else ''}"


def facts(path: str, table: Table) -> dict[str, Any]:
    """What was read, for machines."""
    return {
        "source": called(path),
        "rows": table.n_rows,
        "columns": table.n_columns,
        "family": table.family,
        "missing": int(table.missing_counts.sum()),
    }


def split(table: Table, test_fraction: float, seed: int) -> tuple[Table, Table | None]:
    """Part the rows at random into those to learn from and those held out."""
    if test_fraction == 0.0:
        return table, None
    n_test = round(test_fraction * table.n_rows)
    if not 0 < n_test < table.n_rows:
        raise DataError(f"a test fraction of {test_fraction} leaves {n_test} rows to test on")
    order = np.random.default_rng(seed).permutation(table.n_rows)
    held_out, kept = np.sort(order[:n_test]), np.sort(order[n_test:])
    return Table(table.values[kept], table.schema), Table(table.values[held_out], table.schema)

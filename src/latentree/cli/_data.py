"""Tables from files, and what they hold in a line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latentree.cli._screen import Screen
from latentree.data import (
    STANDARD,
    SUFFIXES,
    Parts,
    Schema,
    Table,
    as_parts,
    as_table,
    cut_table,
    odd_cell,
    odd_message,
    read_table,
    suffix_of,
)
from latentree.errors import DataError, FileError, import_extra

LARGE_FILE = 1 << 28
"""Files of more bytes than this are read in parts."""

_MATRICES = (".npz", ".mtx", ".mtx.gz")


class Choice(NamedTuple):
    """What of a file is read, and how."""

    family: str = "auto"
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    header: bool | None = None


def is_large(paths: Sequence[str]) -> bool:
    """Whether data is better read part by part: several files, a folder, or a very large file."""
    first = Path(paths[0])
    if len(paths) > 1 or first.is_dir():
        return True
    return suffix_of(first) in SUFFIXES and first.is_file() and first.stat().st_size > LARGE_FILE


@contextlib.contextmanager
def connected(scheduler: str | None) -> Iterator[Any]:
    """Connect to a cluster, if one is named."""
    if scheduler is None:
        yield None
        return
    distributed = import_extra("distributed", "dask")
    try:
        client = distributed.Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise FileError(f"--scheduler {scheduler}: no dask scheduler answers there") from error
    with client:
        yield client


def open_data(
    screen: Screen, paths: Sequence[str], choice: Choice, client: Any = None
) -> Table | Parts:
    """Open data to learn from: as a table, or in parts if it is large."""
    if client is None and not is_large(paths):
        return read_data(screen, paths[0], choice)
    parts = as_parts(
        list(paths), choice.family, columns=choice.columns, drop=choice.drop,
        header=choice.header, client=client,
    )  # fmt: skip
    screen.tell(f"{parts.name}: {described(parts)}")
    return parts


def open_for(
    screen: Screen, model: Any, paths: Sequence[str], header: bool | None, client: Any = None
) -> Parts:
    """Open the columns of a model; what else is in the files is left alone."""
    if client is None and not is_large(paths):
        return cut_table(read_for(screen, model, paths[0], header), called(paths[0]))
    parts = as_parts(list(paths), schema=model.schema, header=header, client=client)
    screen.tell(f"{parts.name}: {described(parts)}")
    return parts


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
                codes = data.column(data.names.index(name)).tolist()
                odd = odd_cell((*labels, None)[code] for code in codes)  # −1 is missing
                if odd is not None:
                    raise DataError(odd_message(name, odd))
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


def described(table: Table | Parts) -> str:
    """Say in a line how large a table is, of which family and types, and what is missing."""
    size = f"{table.n_rows:,} rows × {table.n_columns:,} columns, {table.schema.family}"
    if isinstance(table, Parts):
        return f"{size}: {_types(table.schema)}, in {table.n_parts:,} parts"
    missing = int(table.missing_counts.sum())
    gaps = "nothing missing"
    if missing:
        share = missing / (table.n_rows * table.n_columns)
        gaps = f"{missing:,} cells missing ({share:.2g} of all)"
    sparse = ", sparse" if table.is_sparse else ""
    return f"{size}: {_types(table.schema)}{sparse}, {gaps}"


def _types(schema: Schema) -> str:
    if schema.family == "gaussian":
        return "real numbers"
    low, high = int(schema.cardinalities.min()), int(schema.cardinalities.max())
    states = f"{low}" if low == high else f"{low} to {high}"
    return f"{states} states a column"


def facts(paths: Sequence[str], table: Table | Parts) -> dict[str, Any]:
    """What was read, for machines; missing cells of data in parts are not counted."""
    names = list(map(called, paths))
    return {
        "source": names[0] if len(names) == 1 else names,
        "rows": table.n_rows,
        "columns": table.n_columns,
        "family": table.schema.family,
        "missing": None if isinstance(table, Parts) else int(table.missing_counts.sum()),
    }


def split(
    table: Table | Parts, test_fraction: float, seed: int
) -> tuple[Table | Parts, Table | None]:
    """Part the rows at random into those to learn from and those held out."""
    if test_fraction == 0.0:
        return table, None
    if isinstance(table, Parts):
        raise DataError(
            "no rows are held out of data that is read in parts: keep some in a file of their own "
            "and use latentree score"
        )
    n_test = round(test_fraction * table.n_rows)
    if not 0 < n_test < table.n_rows:
        raise DataError(f"a test fraction of {test_fraction} leaves {n_test} rows to test on")
    order = np.random.default_rng(seed).permutation(table.n_rows)
    held_out, kept = np.sort(order[:n_test]), np.sort(order[n_test:])
    return Table(table.values[kept], table.schema), Table(table.values[held_out], table.schema)

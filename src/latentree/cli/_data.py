"""Tables from files, and what they hold in a line."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import cast

import numpy as np

from latentree.cli._options import QueryOptions, ReadOptions
from latentree.cli._screen import Facts, Screen, plural
from latentree.data import KINDS, Client, Parts, Schema, Table, cut_table, open_table, path_name
from latentree.errors import DataError, FileError, import_extra
from latentree.models import TreeModel
from latentree.typing import Unseen


@contextlib.contextmanager
def connected(scheduler: str | None) -> Iterator[Client | None]:
    """Connect to a cluster, if one is named."""
    if scheduler is None:
        yield None
        return
    distributed = import_extra("distributed", "dask")
    lost = CancelledError, distributed.comm.CommClosedError, distributed.KilledWorker
    with _silent_logs():
        try:
            client = distributed.Client(scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise FileError(f"--scheduler {scheduler}: no dask scheduler answers there") from error
        with client:
            try:
                yield client
            except lost as error:
                reason = str(error).splitlines()[0]
                raise FileError(f"--scheduler {scheduler}: the cluster is lost: {reason}") from None


@contextlib.contextmanager
def _silent_logs() -> Iterator[None]:
    """Keep what dask logs of lost connections from the screen: one line of ours says it."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def open_data(
    screen: Screen, paths: Sequence[str], read: ReadOptions, client: Client | None = None
) -> Table | Parts:
    """Open data to learn from, and say what it holds: a table, or parts if it is large."""
    data = open_table(
        list(paths), read.family, columns=read.columns, drop=read.drop or (), header=read.header,
        client=client, kinds=read.kinds, na=read.na or (),
        encoding=read.encoding, sheet=read.sheet,
    )  # fmt: skip
    screen.tell(f"{path_name(paths)}: {described(data)}")
    return data


@contextlib.contextmanager
def opened_for(
    screen: Screen,
    model: TreeModel,
    paths: Sequence[str],
    query: QueryOptions,
    may_lack: Sequence[str] = (),
) -> Iterator[Parts]:
    """Open the columns of a model; what else is in the files is left alone."""
    with connected(query.scheduler) as client:
        data = open_table(
            list(paths), schema=model.schema, header=query.header, client=client,
            unseen=cast(Unseen, query.unseen), na=query.na or (), may_lack=may_lack,
            encoding=query.encoding, sheet=query.sheet,
        )  # fmt: skip
        screen.tell(f"{path_name(paths)}: {described(data)}")
        yield cut_table(data, path_name(paths)) if isinstance(data, Table) else data


def described(table: Table | Parts) -> str:
    """Say in a line how large a table is, of which family and types, and what is missing."""
    shape = f"{plural(table.n_rows, 'row')} × {plural(table.n_columns, 'column')}"
    size = f"{shape}, {table.schema.family}"
    if isinstance(table, Parts):
        return f"{size}: {_types(table.schema)}, in {table.n_parts:,} parts"
    missing = int(table.missing_counts.sum())
    gaps = "nothing missing"
    if missing:
        share = missing / (table.n_rows * table.n_columns)
        gaps = f"{plural(missing, 'cell')} missing ({share:.2g} of all)"
    sparse = ", sparse" if table.is_sparse else ""
    labeled = "" if table.row_labels is None else ", with row labels"
    return f"{size}: {_types(table.schema)}{sparse}, {gaps}{labeled}"


def _types(schema: Schema) -> str:
    if schema.family == "gaussian":
        return "real numbers"
    if schema.is_mixed:
        counts: Counter[str] = Counter(schema.kinds)
        return ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS if counts[kind])
    low, high = int(schema.cardinalities.min()), int(schema.cardinalities.max())
    states = f"{low}" if low == high else f"{low} to {high}"
    return f"{states} states per column"


def show_columns(screen: Screen, schema: Schema) -> None:
    """Print how the columns were taken, unless all are used and of one kind."""
    if schema.is_mixed or schema.aside:
        screen.table(["Columns", "Kind", "Names (why)"], column_rows(schema))
        screen.text()


def column_rows(schema: Schema) -> list[list[str]]:
    """Return a row for all columns of one kind that share a reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for column in schema.columns:
        groups.setdefault((column.kind, column.why), []).append(column.name)
    order = (*KINDS, "ignore")
    rows = sorted(groups.items(), key=lambda item: order.index(item[0][0]))
    return [
        [f"{len(names):,}", kind, f"{_span(names)}{f' ({why})' if why else ''}"]
        for (kind, why), names in rows
    ]


def _span(names: Sequence[str]) -> str:
    """Name columns: all of them if they are few, or else the first ones and the last."""
    if len(names) <= 4:
        return ", ".join(names)
    return f"{', '.join(names[:3])} … {names[-1]}"


def facts(paths: Sequence[str], table: Table | Parts) -> Facts:
    """What was read, for machines; missing cells of data in parts are not counted."""
    names = list(map(path_name, paths))
    return {
        "source": names[0] if len(names) == 1 else names,
        "rows": table.n_rows,
        "columns": table.n_columns,
        "family": table.schema.family,
        "kinds": [column._asdict() for column in table.schema.columns],
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

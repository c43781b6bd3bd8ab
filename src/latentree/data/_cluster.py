"""Pieces that the workers of a dask cluster hold and compute.

Every task runs one function on one piece, and groups of results are added up on the workers in the
order of the pieces; so results are those of one process. What a worker held when it died is made
again by others, which is dask's doing, not ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from latentree.data import _sources as sources
from latentree.data._coding import smallest_type
from latentree.data._convert import as_table
from latentree.data._parts import Parts, part_rows
from latentree.data._pieces import GROUP, LocalPieces, Pieces, add_up
from latentree.data._table import Schema, Table
from latentree.errors import DataError, import_extra

Piece = TypeVar("Piece")
Other = TypeVar("Other")
Result = TypeVar("Result")


class ClusterPieces(Pieces[Piece]):
    """Pieces as futures of a ``dask.distributed.Client``."""

    def __init__(self, client: Any, futures: Sequence[Any]) -> None:
        self.client = client
        self.futures = list(futures)

    def __len__(self) -> int:
        return len(self.futures)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [self.client.submit(function, f, *arguments, pure=False) for f in self.futures]

    def each(self, function: Callable[..., Result], *arguments: Any) -> Iterator[Result]:
        """Yield the results in order; each is forgotten by the cluster once it is here."""
        waiting = self._submit(function, *arguments)[::-1]
        while waiting:
            yield waiting.pop().result()

    def total(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return the sum of the results, groups of which are added up on the workers."""
        results = self._submit(function, *arguments)
        groups = [
            self.client.submit(add_up, results[start : start + GROUP], pure=False)
            for start in range(0, len(results), GROUP)
        ]
        del results
        groups.reverse()
        total: Result = add_up(groups.pop().result() for _ in range(len(groups)))
        return total

    def subtotal(
        self, numbers: Iterable[int], function: Callable[..., Result], *arguments: Any
    ) -> Result:
        """Return the sum of the results of some pieces."""
        futures = [self.futures[number] for number in numbers]
        chosen: ClusterPieces[Piece] = ClusterPieces(self.client, futures)
        return add_up(chosen.each(function, *arguments))

    def made(self, make: Callable[..., Other], *arguments: Any) -> Pieces[Other]:
        """Return what the workers make of the pieces, and keep."""
        return ClusterPieces(self.client, self._submit(make, *arguments))

    def paired(
        self, make: Callable[[Piece, Any], Other], items: Sequence[Any]
    ) -> ClusterPieces[Other]:
        """Return what the workers make of every piece and its item."""
        pairs = zip(self.futures, items, strict=True)
        submit = self.client.submit
        return ClusterPieces(self.client, [submit(make, f, x, pure=False) for f, x in pairs])

    def one(self, number: int, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of one piece."""
        future = self.client.submit(function, self.futures[number], *arguments, pure=False)
        result: Result = future.result()
        return result


class _Loaded(ClusterPieces[Piece]):
    """Pieces that the workers load anew for every pass, because they will hardly be asked again."""

    def __init__(self, client: Any, load: Callable[[int], Piece], n_pieces: int) -> None:
        super().__init__(client, range(n_pieces))
        self._load = load

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        submit = self.client.submit
        return [
            submit(_load_and_run, self._load, number, function, *arguments, pure=False)
            for number in self.futures
        ]

    def one(self, number: int, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of one piece."""
        task = (_load_and_run, self._load, number, function, *arguments)
        result: Result = self.client.submit(*task, pure=False).result()
        return result


def _load_and_run(
    load: Callable[[int], Any], number: int, function: Callable[..., Any], *arguments: Any
) -> Any:
    return function(load(number), *arguments)


def loaded(
    client: Any, load: Callable[[int], Piece], n_pieces: int, keep: bool = True
) -> ClusterPieces[Piece]:
    """Return pieces that workers load by their number; they hold them if ``keep``."""
    if not keep:
        return _Loaded(client, load, n_pieces)
    futures = [client.submit(load, number, pure=False) for number in range(n_pieces)]
    return ClusterPieces(client, futures)


def scattered(parts: Parts, client: Any) -> Parts:
    """Send the parts of data in memory to the workers, inside the tasks that need them."""
    futures = [client.submit(_same, table, pure=False) for table in parts.tables.each(_same)]
    return Parts(parts.schema, parts.n_rows, ClusterPieces(client, futures), parts.name)


def _same(table: Table) -> Table:
    return table


# Dask's own collections -------------------------------------------------------------------------


def is_dask(X: Any) -> bool:
    """Whether data is a dask array or dataframe; dask is not imported for the question."""
    return "dask" in sys.modules and hasattr(X, "__dask_graph__") and hasattr(X, "compute")


def from_dask(
    X: Any,
    schema: Schema | None,
    client: Any,
    find_schema: Callable[[Sequence[str], bool, Pieces[Any]], Schema],
    unseen: str = "error",
) -> Parts:
    """Cut a dask array or dataframe into parts of the fixed number of rows."""
    da, delayed = import_extra("dask.array", "dask"), import_extra("dask", "dask").delayed
    if client is not None:
        X = client.persist(X)  # it is read more than once
    partitions = _partitions(X)
    raw = _computed(partitions, client)
    sizes = list(raw.each(len))
    filled = [number for number, size in enumerate(sizes) if size]
    if schema is None:
        raw = _computed([partitions[number] for number in filled], client)
        schema = find_schema(*raw.one(0, _names), raw)
    dtype = smallest_type(max(schema.cardinalities)) if schema.is_coded else np.float64
    coded = [
        da.from_delayed(
            delayed(_codes)(partitions[number], schema, dtype, unseen),
            (sizes[number], schema.n_columns),
            dtype,
        )
        for number in filled
    ]
    blocks = da.concatenate(coded).rechunk((part_rows(schema), -1)).to_delayed().ravel()
    tables = [delayed(Table)(block, schema) for block in blocks]
    return Parts(schema, sum(sizes), _computed(tables, client))


def _partitions(X: Any) -> list[Any]:
    """Delayed pieces of a dask collection, in order: frames or arrays with all columns."""
    if hasattr(X, "columns"):
        return list(X.to_delayed())
    if getattr(X, "ndim", 0) != 2:
        raise DataError(f"a table has two dimensions, rows and columns, but this is {X!r}")
    return list(X.rechunk({1: -1}).to_delayed().ravel())


def _computed(delayed: Sequence[Any], client: Any) -> Pieces[Any]:
    if client is not None:
        return ClusterPieces(client, client.compute(list(delayed)))

    def read(first: int) -> Iterator[Any]:
        for each in delayed[first:]:
            yield each.compute()

    return LocalPieces(read, len(delayed))


def _names(partition: Any) -> tuple[tuple[str, ...], bool]:
    """Names of the columns of a partition, and whether they came with it."""
    source = sources.read(partition)
    return source.names, source.named


def _codes(partition: Any, schema: Schema, dtype: Any, unseen: Any) -> Any:
    return as_table(partition, schema=schema, unseen=unseen).values.astype(dtype, copy=False)

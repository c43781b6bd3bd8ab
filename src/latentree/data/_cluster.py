"""Pieces that the workers of a dask cluster hold and compute.

Every task runs one function on one piece. Workers add up groups of results in the order of the
pieces, so results equal those of one process. When a worker dies, dask computes its pieces again.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any, Protocol, TypeVar

import numpy as np

from latentree._plain import reason_of
from latentree.data._coding import smallest_type
from latentree.data._convert import as_table
from latentree.data._parts import Parts, part_rows
from latentree.data._pieces import GROUP, LocalPieces, Pieces, add_up, itself
from latentree.data._raw import read_raw
from latentree.data._table import Schema, Table
from latentree.errors import DataError, LatentTreeError, import_extra
from latentree.typing import AnyArray, DataLike, TableLike, Unseen

Piece = TypeVar("Piece")
Other = TypeVar("Other")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Future(Protocol):
    """A result of a cluster that may still be computed (``dask.distributed.Future``)."""

    def result(self) -> Any:
        """Wait for the result and return it."""


class Client(Protocol):
    """What is used of a ``dask.distributed.Client``."""

    def submit(self, function: Callable[..., object], *arguments: object, pure: bool) -> Future:
        """Run a function on a worker; futures among the arguments are replaced by their results."""

    def compute(self, collections: Sequence[Delayed]) -> Sequence[Future]:
        """Run the tasks of delayed objects on workers."""

    def persist(self, collection: DataLike) -> DataLike:
        """Compute a collection on the workers and keep it there."""


class Delayed(Protocol):
    """A task of dask that has not run yet (``dask.delayed``)."""

    def compute(self) -> Any:
        """Run the task here and return its result."""


@contextlib.contextmanager
def reaching(client: Client) -> Iterator[None]:
    """Say so if the cluster is gone: dask then cancels what was asked for, without a reason."""
    try:
        yield
    except LatentTreeError:  # of a task, which did run
        raise
    except Exception as error:
        is_running = getattr(client, "status", "running") == "running"
        if is_running and not isinstance(error, CancelledError):
            raise
        raise DataError(
            "the cluster cannot be reached any more: its scheduler or the client was closed "
            f"({reason_of(error)}); start it again, connect a new client, and repeat the call"
        ) from error


class ClusterPieces(Pieces[Piece]):
    """Pieces as futures of a ``dask.distributed.Client``."""

    def __init__(self, client: Client, futures: Sequence[Future]) -> None:
        self.client = client
        self.futures = list(futures)

    def __len__(self) -> int:
        return len(self.futures)

    def _task(self, number: int, function: Callable[..., object], *arguments: object) -> Future:
        """Start a function of one piece on a worker."""
        return self._submit(function, self.futures[number], *arguments)

    def _submit(self, function: Callable[..., object], *arguments: object) -> Future:
        with reaching(self.client):
            return self.client.submit(function, *arguments, pure=False)

    def _arrived(self, future: Future) -> Any:
        with reaching(self.client):
            return future.result()

    def _tasks(self, function: Callable[..., object], *arguments: object) -> list[Future]:
        return [self._task(number, function, *arguments) for number in range(len(self))]

    def each(self, function: Callable[..., Result], *arguments: object) -> Iterator[Result]:
        """Yield the results in order; the cluster drops each once it has arrived."""
        waiting = self._tasks(function, *arguments)[::-1]
        while waiting:
            yield self._arrived(waiting.pop())

    def total(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Return the sum of the results, groups of which are added up on the workers."""
        results = self._tasks(function, *arguments)
        groups = [
            self._submit(add_up, results[start : start + GROUP])
            for start in range(0, len(results), GROUP)
        ]
        del results
        groups.reverse()
        total: Result = add_up(self._arrived(groups.pop()) for _ in range(len(groups)))
        return total

    def made(self, make: Callable[..., Other], *arguments: object) -> Pieces[Other]:
        """Return the results of a function of every piece, which the workers keep."""
        return ClusterPieces(self.client, self._tasks(make, *arguments))

    def paired(
        self, make: Callable[[Piece, Item], Other], items: Sequence[Item]
    ) -> ClusterPieces[Other]:
        """Return the results of a function of every piece and its item."""
        tasks = [self._task(number, make, item) for number, item in enumerate(items)]
        return ClusterPieces(self.client, tasks)

    def joined(
        self, make: Callable[[list[Piece], Item], Other], groups: Sequence[tuple[range, Item]]
    ) -> ClusterPieces[Other]:
        """Return the results of a function of groups of pieces and their items."""
        tasks = [
            self._submit(make, [self._held(number) for number in numbers], item)
            for numbers, item in groups
        ]
        return ClusterPieces(self.client, tasks)

    def _held(self, number: int) -> Future:
        """Return a piece that a worker holds."""
        return self.futures[number]

    def one(self, number: int, function: Callable[..., Result], *arguments: object) -> Result:
        """Return the result of one piece."""
        result: Result = self._arrived(self._task(number, function, *arguments))
        return result


class _ReloadedPieces(ClusterPieces[Piece]):
    """Pieces that the workers load again in every pass, where few passes are expected."""

    def __init__(self, client: Client, load: Callable[[int], Piece], n_pieces: int) -> None:
        super().__init__(client, ())
        self._load = load
        self._n_pieces = n_pieces

    def __len__(self) -> int:
        return self._n_pieces

    def _task(self, number: int, function: Callable[..., object], *arguments: object) -> Future:
        return self._submit(_load_and_run, self._load, number, function, *arguments)

    def _held(self, number: int) -> Future:
        return self._task(number, itself)


def _load_and_run(
    load: Callable[[int], Piece], number: int, function: Callable[..., Result], *arguments: object
) -> Result:
    return function(load(number), *arguments)


def loaded(
    client: Client, load: Callable[[int], Piece], n_pieces: int, keep: bool = True
) -> ClusterPieces[Piece]:
    """Return pieces that workers load by their number; they hold them if ``keep``."""
    if not keep:
        return _ReloadedPieces(client, load, n_pieces)
    with reaching(client):
        futures = [client.submit(load, number, pure=False) for number in range(n_pieces)]
    return ClusterPieces(client, futures)


def scattered(parts: Parts, client: Client) -> Parts:
    """Send the parts of data in memory to the workers, inside the tasks that need them."""
    with reaching(client):
        futures = [client.submit(itself, table, pure=False) for table in parts.tables.each(itself)]
    weights = parts.weights if parts.whole is None else parts.whole.weights
    pieces: ClusterPieces[Table] = ClusterPieces(client, futures)
    return Parts(parts.schema, parts.n_rows, pieces, parts.name, weights=weights)


# Dask's own collections -------------------------------------------------------------------------


def is_dask(X: object) -> bool:
    """Whether data is a dask array or dataframe; dask is not imported to find out."""
    return "dask" in sys.modules and hasattr(X, "__dask_graph__") and hasattr(X, "compute")


def from_dask(
    X: DataLike,
    schema: Schema | None,
    client: Client | None,
    find_schema: Callable[[Sequence[str], bool, Pieces[TableLike]], Schema],
    unseen: Unseen = "error",
) -> Parts:
    """Cut a dask array or dataframe into parts of the fixed number of rows."""
    da, delayed = import_extra("dask.array", "dask"), import_extra("dask", "dask").delayed
    if client is not None:
        with reaching(client):
            X = client.persist(X)  # it is read more than once
    partitions = _partitions(X)
    sizes = list(_computed(partitions, client).each(len))
    filled = [number for number, size in enumerate(sizes) if size]
    if schema is None:
        pieces = _computed([partitions[number] for number in filled], client)
        schema = find_schema(*pieces.one(0, _names), pieces)
    dtype = smallest_type(max(schema.cardinalities)) if schema.is_coded else np.dtype(np.float64)
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


def _partitions(X: DataLike) -> list[Delayed]:
    """Delayed pieces of a dask collection, in order: frames or arrays with all columns."""
    if hasattr(X, "columns"):
        return list(X.to_delayed())
    if getattr(X, "ndim", 0) != 2:
        raise DataError(f"a table has two dimensions, rows and columns, but this is {X!r}")
    return list(X.rechunk({1: -1}).to_delayed().ravel())


def _computed(delayed: Sequence[Delayed], client: Client | None) -> Pieces[Any]:
    if client is not None:
        with reaching(client):
            return ClusterPieces(client, client.compute(list(delayed)))

    def read(first: int) -> Iterator[Any]:
        for each in delayed[first:]:
            yield each.compute()

    return LocalPieces(read, len(delayed))


def _names(partition: TableLike) -> tuple[tuple[str, ...], bool]:
    """Names of the columns of a partition, and whether they came with it."""
    raw = read_raw(partition)
    return raw.names, raw.named


def _codes(partition: TableLike, schema: Schema, dtype: np.dtype[Any], unseen: Unseen) -> AnyArray:
    codes: AnyArray = as_table(partition, schema=schema, unseen=unseen).values
    return codes.astype(dtype, copy=False)

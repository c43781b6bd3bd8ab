"""Sequences of pieces of data: a function is applied to each, and results are added up.

The pieces are read by this process or by a cluster (see ``_cluster``). Sums are taken over groups
of :data:`GROUP` pieces, then over the groups, always in order. So they are the same to the last
bit, whatever the number of workers and retries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Generic, TypeVar

from latentree import _memory as memory

Piece = TypeVar("Piece")
Other = TypeVar("Other")
Item = TypeVar("Item")
Result = TypeVar("Result")

GROUP = 8
"""Pieces whose sum is taken first. A cluster sends one result per group, not per piece; the
number is part of the result, because it sets the order in which floats are added."""

KEPT_SHARE = 0.4
"""Share of the available memory that results kept from pass to pass may take. The rest is for the
pieces that are read and for what is computed from them."""


class Pieces(ABC, Generic[Piece]):
    """A sequence of objects, one for each part of the data, that need not be in memory together."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def each(self, function: Callable[..., Result], *arguments: object) -> Iterator[Result]:
        """Yield ``function(piece, *arguments)`` of every piece, in order."""

    @abstractmethod
    def total(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Return the sum of ``function(piece, *arguments)`` over the pieces, by ``+``."""

    @abstractmethod
    def made(self, make: Callable[..., Other], *arguments: object) -> Pieces[Other]:
        """Return ``make(piece, *arguments)`` of every piece; kept as far as memory allows.

        What is made says by ``nbytes`` how much memory it takes.
        """

    @abstractmethod
    def paired(self, make: Callable[[Piece, Item], Other], items: Sequence[Item]) -> Pieces[Other]:
        """Return ``make(piece, item)`` of every piece and its item, made anew in every pass."""

    @abstractmethod
    def joined(
        self, make: Callable[[list[Piece], Item], Other], groups: Sequence[tuple[range, Item]]
    ) -> Pieces[Other]:
        """Return ``make(pieces, item)`` of groups of neighboring pieces, made anew in every pass.

        Groups are in the order of their pieces; two may share some.
        """

    @abstractmethod
    def one(self, number: int, function: Callable[..., Result], *arguments: object) -> Result:
        """Return ``function(piece, *arguments)`` of one piece."""


class LocalPieces(Pieces[Piece]):
    """Pieces that this process reads one after the other, one ahead of what is computed.

    Parameters
    ----------
    read : callable
        Given a number, yields the pieces from that one on.
    n_pieces : int
    """

    def __init__(self, read: Callable[[int], Iterator[Piece]], n_pieces: int) -> None:
        self._read = read
        self._n_pieces = n_pieces

    def __len__(self) -> int:
        return self._n_pieces

    def each(self, function: Callable[..., Result], *arguments: object) -> Iterator[Result]:
        """Yield the results in order."""
        for piece in self.pieces():
            yield function(piece, *arguments)

    def total(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Return the sum of the results."""
        return sum_in_groups(self.each(function, *arguments))

    def made(self, make: Callable[..., Other], *arguments: object) -> Pieces[Other]:
        """Return the results of a function of every piece, cached as far as memory allows."""
        return _CachedPieces(self, make, arguments)

    def paired(
        self, make: Callable[[Piece, Item], Other], items: Sequence[Item]
    ) -> LocalPieces[Other]:
        """Return pieces that are made when they are read."""

        def read(first: int) -> Iterator[Other]:
            yield from map(make, self._read(first), items[first:])

        return LocalPieces(read, len(self))

    def joined(
        self, make: Callable[[list[Piece], Item], Other], groups: Sequence[tuple[range, Item]]
    ) -> LocalPieces[Other]:
        """Return pieces that are made when the last of their group is read."""

        def read(first: int) -> Iterator[Other]:
            start = groups[first][0].start
            source = enumerate(self._read(start), start)
            held: dict[int, Piece] = {}
            for numbers, item in groups[first:]:
                while numbers[-1] not in held:
                    number, piece = next(source)
                    held[number] = piece
                held = {number: held[number] for number in held if number >= numbers.start}
                yield make([held[number] for number in numbers], item)

        return LocalPieces(read, len(groups))

    def one(self, number: int, function: Callable[..., Result], *arguments: object) -> Result:
        """Return the result of one piece."""
        return function(next(self._read(number)), *arguments)

    def pieces(self, first: int = 0) -> Iterator[Piece]:
        """Yield the pieces from the given one on."""
        items = self._read(first)
        return items if len(self) - first <= 1 else _ahead(items)  # nothing to read ahead


class _CachedPieces(LocalPieces[Other], Generic[Piece, Other]):
    """Results of a function of each piece: the first are kept, the others computed in every pass.

    Parameters
    ----------
    source : LocalPieces
        The pieces that the function is applied to.
    make : callable
        Called with a piece and ``arguments``.
    arguments : tuple
    """

    def __init__(
        self, source: LocalPieces[Piece], make: Callable[..., Other], arguments: tuple[object, ...]
    ) -> None:
        super().__init__(self._all, len(source))
        self._source = source
        self._make = make
        self._arguments = arguments
        self._kept: list[Other] = []
        self._room = KEPT_SHARE * memory.available()

    def pieces(self, first: int = 0) -> Iterator[Other]:
        """Yield the pieces from the given one on; those that are all kept need no reader."""
        if len(self._kept) == len(self):
            return iter(self._kept[first:])
        return super().pieces(first)

    def _all(self, first: int) -> Iterator[Other]:
        """Yield cached results, then others, which are cached while there is room."""
        yield from self._kept[first:]
        start = max(first, len(self._kept))
        if start == len(self):
            return
        for number, piece in enumerate(self._source.pieces(start), start):
            made = self._make(piece, *self._arguments)
            size = getattr(made, "nbytes", 0)
            if number == len(self._kept) and size <= self._room:
                self._kept.append(made)
                self._room -= size
            else:
                self._room = 0.0  # those kept stand at the beginning, without gaps
            yield made


def sum_in_groups(results: Iterable[Result]) -> Result:
    """Add up groups of :data:`GROUP` results, then the groups."""
    iterator = iter(results)
    # Added as they come: no more than two sums and a result are in memory.
    return add_up(add_up(chain([first], islice(iterator, GROUP - 1))) for first in iterator)


def add_up(results: Iterable[Result]) -> Result:
    """Add up results in order; there is at least one."""
    iterator = iter(results)
    total = next(iterator)
    for result in iterator:
        total = total + result  # type: ignore[operator]
    return total


def _ahead(items: Iterator[Piece]) -> Iterator[Piece]:
    """Yield items while a thread already reads the next one."""
    with ThreadPoolExecutor(1, thread_name_prefix="latentree-read") as reader:
        following: Future[list[Piece]] = reader.submit(_next_of, items)
        try:
            while item := following.result():
                following = reader.submit(_next_of, items)
                yield item[0]
        finally:
            following.cancel()


def _next_of(items: Iterator[Piece]) -> list[Piece]:
    """Return the next item in a list, which is empty at the end."""
    return list(islice(items, 1))


def itself(piece: Piece) -> Piece:
    """Return a piece as it is, for passes that need nothing else of the pieces."""
    return piece

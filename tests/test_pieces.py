"""Pieces of data: here or on a cluster, functions of them give the same results."""

from __future__ import annotations

import numpy as np
import pytest

from latentree.data import LocalPieces, _cluster
from latentree.data._pieces import GROUP, itself

N = 2 * GROUP + 3
PIECES = [np.random.default_rng(number).normal(size=4) for number in range(N)]


class Done:
    """A result of a cluster."""

    def __init__(self, value):
        self.value = value

    def result(self):
        return self.value


class Client:
    """A cluster that computes at once, in this process."""

    def submit(self, function, *arguments, pure):
        assert not pure  # equal arguments may still be other pieces
        return Done(function(*map(self._known, arguments)))

    def _known(self, argument):
        if isinstance(argument, list):
            return [self._known(each) for each in argument]
        return argument.value if isinstance(argument, Done) else argument


def local():
    return LocalPieces(lambda first: iter(PIECES[first:]), N)


KINDS = {
    "local": local,
    "cached": lambda: local().made(itself),
    "held": lambda: _cluster.loaded(Client(), PIECES.__getitem__, N),
    "reloaded": lambda: _cluster.loaded(Client(), PIECES.__getitem__, N, keep=False),
}


def scaled(piece, factor):
    return factor * piece


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_pieces_are_those_of_a_list(kind):
    pieces = KINDS[kind]()
    assert len(pieces) == N
    for _ in range(2):  # a second pass may find results that were kept
        found = list(pieces.each(scaled, 3.0))
        assert all(map(np.array_equal, found, [3.0 * piece for piece in PIECES]))
    assert np.array_equal(pieces.one(5, scaled, 2.0), 2.0 * PIECES[5])
    paired = pieces.paired(scaled, list(range(N)))
    assert all(map(np.array_equal, paired.each(itself), [k * p for k, p in enumerate(PIECES)]))
    made = pieces.made(scaled, 2.0)
    assert all(map(np.array_equal, made.each(itself), [2.0 * piece for piece in PIECES]))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_the_same_to_the_last_bit(kind):
    groups = [sum(PIECES[start + 1 : start + GROUP], PIECES[start]) for start in range(0, N, GROUP)]
    assert np.array_equal(KINDS[kind]().total(itself), sum(groups[1:], groups[0]))

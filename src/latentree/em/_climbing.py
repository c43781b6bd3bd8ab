"""EM that stops where held-out rows stop gaining, for given numbers of states.

A pass is one of stepwise EM: a step after every part of the training rows, from a running mean of
expected sums. A family of models supplies the E-step, the M-step and what held-out rows gain by
smoothing (:class:`Stage`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from latentree.data import Table, add_up
from latentree.distances import Sample
from latentree.models import Model
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

# Constants were chosen on nltcs, plants and 1,500 rows of plants (docs/evidence/prediction.md).
TOLERANCE = 1e-4
"""Gain, as a share of the held-out log-likelihood, below which passes or splits end."""
CALM_LOOKS = 2
"""Looks at the held-out rows in a row without a gain, after which passes end."""
QUICK_PASS, PATIENT_LOOKS = 1e8, 6
"""Products of a pass that is quick, and looks without a gain after which such passes end.

On few rows the held-out likelihood often falls a little and then rises far above where it was.
"""
WEAKEST, STRONGEST = 1e-4, 1e4
"""Limits of the strengths of a prior."""

_MEMORY = 3.0  # stepwise EM remembers about a third of a pass: η = 3/parts, 1 for up to 3 parts
_FACTORS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # by which a strength moves at a look


class RowsOfFit(Protocol):
    """What a stage knows of the fit that it belongs to."""

    tree: Tree
    sample: Sample
    parts: list[Table]
    """Parts of the training rows."""
    weight: float
    """Of all training rows."""
    held_out: Table
    rng: np.random.Generator

    def check_time(self) -> None:
        """Raise an exception if the time is up."""


class Patience:
    """Counts looks in a row at which held-out rows gain no more than a trace.

    Parameters
    ----------
    highest : float
        Mean log-likelihood of the held-out rows at the start.
    most_calm : int
        After so many such looks it is time to stop.

    Examples
    --------
    >>> patience = Patience(-10.0)
    >>> [patience.ends_at(score) for score in (-9.0, -9.0001, -8.9, -8.8999, -8.95)]
    [False, False, False, False, True]
    """

    def __init__(self, highest: float, most_calm: int = CALM_LOOKS) -> None:
        self.highest = highest
        self.most_calm = most_calm
        self._calm = 0

    def ends_at(self, score: float) -> bool:
        """Whether to stop after a look that showed this score."""
        is_calm = score - self.highest < TOLERANCE * abs(score)
        self._calm = self._calm + 1 if is_calm else 0
        self.highest = max(score, self.highest)
        return self._calm == self.most_calm


class Compiled(Protocol):
    """A part of the rows, compiled for a pass."""

    @property
    def work(self) -> float:
        """Products of a pass over these rows, up or down."""


class Sums(Protocol):
    """What an E-step gives: sums over rows."""

    @property
    def log_likelihood(self) -> float:
        """Of the rows."""

    def scaled(self, factor: float) -> Self:
        """Return the sums of rows that count so much more."""

    def __add__(self, other: Self) -> Self: ...


SumsOf = TypeVar("SumsOf", bound=Sums)
Part = TypeVar("Part", bound=Compiled)


class Stage(ABC, Generic[Part, SumsOf]):
    """Training and held-out rows, compiled for given numbers of states.

    A family of models supplies the E-step, the M-step and what held-out rows gain by smoothing.
    """

    fit: RowsOfFit
    hidden_states: IntArray
    parts: Sequence[Part]
    held_out: Sequence[Part]

    @abstractmethod
    def expected(self, part: Part, point: FloatArray) -> SumsOf:
        """Return the sums over a part of the rows that are expected at a point."""

    @abstractmethod
    def maximized(self, sums: SumsOf, point: FloatArray, strengths: FloatArray) -> FloatArray:
        """Return the point that sums give, expected at a point, with a prior."""

    @abstractmethod
    def gains(
        self, sums: SumsOf, seen: SumsOf, point: FloatArray, strengths: FloatArray
    ) -> FloatArray:
        """Return what the M-step with a prior would raise the held-out rows to.

        ``seen`` are the sums of these rows. A number for each of the strengths, of which only
        differences count.
        """

    @abstractmethod
    def first_sums(self, point: FloatArray) -> SumsOf | None:
        """Return the sums of a point before any pass, if they are known."""

    @abstractmethod
    def model(self, point: FloatArray) -> Model:
        """Return the model at a point."""

    @cached_property
    def work(self) -> float:
        """Products of a pass over the training rows, up and down."""
        return sum(part.work for part in self.parts)

    @property
    def patience(self) -> int:
        """Looks without a gain after which passes end: more where they are quick."""
        return PATIENT_LOOKS if self.work <= QUICK_PASS else CALM_LOOKS

    def all_sums(self, point: FloatArray) -> SumsOf:
        """Return the sums over all rows, the held-out ones included."""
        return add_up(self.expected(part, point) for part in (*self.parts, *self.held_out))

    def seen(self, point: FloatArray) -> list[SumsOf]:
        """Return the sums over every group of held-out rows."""
        return [self.expected(group, point) for group in self.held_out]

    def scores(self, seen: Sequence[SumsOf]) -> FloatArray:
        """Return the log-likelihood of every group, over the weight of all."""
        weight = self.fit.held_out.total_weight
        return np.array([group.log_likelihood for group in seen]) / weight


class Climb(Generic[Part, SumsOf]):
    """Stepwise EM under way: a point, and a running mean of expected sums."""

    def __init__(self, stage: Stage[Part, SumsOf], point: FloatArray) -> None:
        self.stage, self.point = stage, point
        self._sums = stage.first_sums(point)

    def run_pass(self, strengths: FloatArray) -> None:
        """Step after every part of the training rows."""
        stage, fit = self.stage, self.stage.fit
        share = min(1.0, _MEMORY / len(stage.parts))
        for number in fit.rng.permutation(len(stage.parts)).tolist():
            fit.check_time()
            found = stage.expected(stage.parts[number], self.point)
            scale = fit.weight / fit.parts[number].total_weight
            if self._sums is None:
                self._sums = found.scaled(scale)
            else:
                self._sums = self._sums.scaled(1.0 - share) + found.scaled(share * scale)
            self.point = stage.maximized(self._sums, self.point, strengths)

    def look(self) -> FloatArray:
        """Return the scores of the held-out rows."""
        self._seen = self.stage.seen(self.point)
        return self.stage.scores(self._seen)

    def stronger(self, strengths: FloatArray) -> FloatArray:
        """Return the strengths with which the held-out rows last seen gain most."""
        sums, seen, point = self._sums, add_up(self._seen), self.point
        assert sums is not None
        return moved(strengths, lambda each: self.stage.gains(sums, seen, point, each))


def moved(strengths: FloatArray, gains: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Move every strength, by a factor of at most 4, to where its gain is largest."""
    chosen = np.argmax([gains(factor * strengths) for factor in _FACTORS], axis=0)
    return np.asarray(np.clip(_FACTORS[chosen] * strengths, WEAKEST, STRONGEST))

"""Stepwise EM: many small steps in one pass over very many rows.

After every few parts of the rows the parameters move to where the sums lead that are
(1 − η)·(those of the model itself) + η·(those expected in these parts), with η = (t + 2)^(−α) in
step t. With 1/2 < α ≤ 1 the steps add up to infinity and their squares do not, so that the way ends
at a stationary point of the likelihood (Cappé and Moulines 2009; Liang and Klein 2009). As it ends
there in the limit only, full steps follow: the driver's, which never go down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from latentree.typing import FloatArray

ALPHA = 0.7
PASSES = 2
"""Passes over all parts that each start gets."""

_LEAST_STEPS = 32  # a step takes several parts at once if that leaves so many steps in a pass


class PartedProblem(Protocol):
    """A likelihood whose expected sums can be had of some parts of the rows alone."""

    @property
    def n_parts(self) -> int:
        """Number of parts of the rows."""

    def blended(self, numbers: Sequence[int], point: FloatArray, share: float) -> FloatArray:
        """Step from the sums of the model itself, blended with those of some parts."""

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Return a point that is a model, close to ``point``; ``near`` is one."""


def stepwise_starts(
    problem: PartedProblem, points: Sequence[FloatArray], rng: np.random.Generator
) -> list[FloatArray]:
    """Return where stepwise passes lead from each point, and the first point as it was.

    That one is kept as a guard: the driver continues whichever is best after some full steps.
    """
    return [*(_passes(problem, point, rng) for point in points), points[0]]


def _passes(problem: PartedProblem, point: FloatArray, rng: np.random.Generator) -> FloatArray:
    n_parts = problem.n_parts
    together = int(np.clip(n_parts // _LEAST_STEPS, 1, 8))
    step = 0
    for _ in range(PASSES):
        order = rng.permutation(n_parts)
        for start in range(0, n_parts, together):
            share = (step + 2.0) ** -ALPHA
            numbers = sorted(order[start : start + together].tolist())
            point = problem.admissible(problem.blended(numbers, point, share), point)
            step += 1
    return point

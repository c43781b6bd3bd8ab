"""One driver for every EM: starts, acceleration, stopping, progress.

A problem supplies the steps; the driver sees parameters as one vector. Steps are accelerated by
SQUAREM (Varadhan and Roland 2008): from three successive points θ₀, θ₁ = EM(θ₀), θ₂ = EM(θ₁), with
r = θ₁ − θ₀ and v = (θ₂ − θ₁) − r, it jumps to θ₀ + 2α·r + α²·v, α = ‖r‖/‖v‖, of which four binary
digits count: v is a difference of differences, and its rounding errors would grow from jump to
jump where the likelihood is flat, until equal data in another order end elsewhere. It is guarded:
if the objective there is below that at θ₁ (which EM's own θ₂ never is), θ₂ is taken. α is limited;
the limit grows when it is reached with success, and shrinks with every jump that failed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from latentree.em._report import FitReport, Fitted
from latentree.tree import Tree
from latentree.typing import FloatArray, Progress


class Step(NamedTuple):
    """What one expectation and maximization give."""

    log_likelihood: float
    """At the point stepped from."""
    objective: float
    """What EM raises: the log-likelihood plus the logarithm of the prior."""
    next_point: FloatArray


class Problem(Protocol):
    """A likelihood to maximize; points are vectors, in coordinates where jumps make sense."""

    tree: Tree
    total_weight: float
    """Weight of the rows."""
    is_closed_form: bool
    """Whether the first step ends at the maximum."""

    def step(self, point: FloatArray) -> Step:
        """Run one expectation and maximization."""

    def admissible(self, point: FloatArray, near: FloatArray) -> FloatArray:
        """Return a point that is a model, close to ``point``; ``near`` is one."""

    def point(self, model: Any) -> FloatArray:
        """Return the point of a model on the same tree."""

    def model(self, point: FloatArray) -> Any:
        """Return the model at a point."""


@dataclass(frozen=True)
class Budget:
    """When EM stops.

    Parameters
    ----------
    tolerance : float
        Converged when an accelerated cycle of three steps gains less than this share of the
        log-likelihood's magnitude, twice in a row.
    point_tolerance : float
        Converged as well when no coordinate moves by more than this in a step.
    max_steps : int
        Most expectation passes for the start that is continued.
    time_limit : float
        Seconds, all starts together.
    short_steps : int
        Passes that each start gets before the best one is chosen.
    accelerate : bool
        Whether steps are accelerated by SQUAREM.

    Examples
    --------
    >>> import latentree as lt
    >>> tree = lt.simulate.latent_class(4)
    >>> X = lt.simulate.random_gaussian_model(tree, 0).sample(1_000, 1)
    >>> model, report = lt.fit_parameters(tree, X, budget=Budget(max_steps=3, short_steps=1))
    >>> report.converged, report.notes
    (False, ('3 steps came before convergence',))
    """

    tolerance: float = 1e-8
    point_tolerance: float = 1e-7
    max_steps: int = 5_000
    time_limit: float = np.inf
    short_steps: int = 30
    accelerate: bool = True


@dataclass(eq=False)
class Run:
    """A run of EM from one start."""

    point: FloatArray
    trace: list[float] = field(default_factory=list)
    """Log-likelihood at each accepted point."""
    objective: float = -np.inf
    n_steps: int = 0
    converged: bool = False
    longest_jump: float = 4.0
    """Largest α of the next jump."""
    calm: int = 0
    """Cycles in a row that gained too little."""
    top: FloatArray | None = None
    """The point that ``objective`` belongs to."""


class Outcome(NamedTuple):
    """Where the driver ended."""

    best: Run
    starts: tuple[float, ...]
    n_steps: int
    interrupted: str
    """Why it stopped early, or an empty string."""


_HALVINGS = 3
"""So often a step that falls is halved: an eighth of a step that still falls leads nowhere."""


INTERRUPTED = "interrupted: the best parameters so far are kept"
"""Note of a report after Ctrl-C."""


def _gain_to_come(gain: float, last: float, n_left: int) -> float:
    """Return twice what cycles of EM to come are expected to gain after two that gained so much.

    Gains fall off geometrically near a maximum: those to come add up to g·q/(1 − q) with
    q = g/g₋₁ (Aitken). Where they still rise anything may come.
    """
    if n_left == 0:
        return 0.0
    if gain >= last:
        return np.inf
    return 2.0 * max(gain, 0.0) * min(n_left, gain / (last - gain))


class BudgetSpent(Exception):
    """The time, or another limit, came before the end."""


class Driver:
    """Runs short from every start, then on from the best, within a budget."""

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        progress: Progress | None = None,
        goal: float = -np.inf,
    ) -> None:
        self.problem = problem
        self.budget = budget
        self.progress = progress
        self.goal = goal
        self.deadline = time.monotonic() + budget.time_limit
        self.n_steps = 0

    def maximize(self, starts: Sequence[FloatArray]) -> Outcome:
        """Return the best run; an interrupt or the end of the time leaves the best so far."""
        runs = [Run(start) for start in starts]
        interrupted = ""
        try:
            self._climb_all(runs)
        except KeyboardInterrupt:
            interrupted = INTERRUPTED
        except BudgetSpent:
            interrupted = f"the time limit of {self.budget.time_limit:g} s came before convergence"
        best = _highest(runs)
        if not best.converged and not interrupted:
            interrupted = f"{self.budget.max_steps} steps came before convergence"
        short = tuple(
            run.trace[min(len(run.trace), self.budget.short_steps) - 1] for run in runs if run.trace
        )
        return Outcome(best, short, self.n_steps, interrupted)

    def _climb_all(self, runs: list[Run]) -> None:
        if len(runs) > 1:
            for run in runs:
                self._climb(run, self.budget.short_steps)
        best = _highest(runs)
        best.calm = 0
        self._climb(best, self.budget.max_steps)

    def _climb(self, run: Run, max_steps: int) -> None:
        """Step until convergence or the number of steps is reached."""
        last = np.inf
        while run.n_steps < max_steps and not run.converged:
            before = run.objective
            cycle_start = run.n_steps
            self._cycle(run)
            gain = run.objective - before
            limit = self.budget.tolerance * (1.0 + abs(run.objective))
            # The tolerance is that of a cycle of three steps; shorter ones get their share of it.
            run.calm = run.calm + 1 if gain <= limit * (run.n_steps - cycle_start) / 3 else 0
            if run.calm >= 2:  # a single small gain may be that of a jump that failed
                run.converged = True
            n_left = -(-(max_steps - run.n_steps) // (run.n_steps - cycle_start))
            if run.trace[-1] + _gain_to_come(gain, last, n_left) < self.goal:
                break
            last = gain

    def _cycle(self, run: Run) -> None:
        """Take two steps and a guarded jump, or one step if steps are not accelerated."""
        start = run.point
        first = self._step(run, start)
        if run.converged or not self.budget.accelerate:
            return
        second = self._step(run, first.next_point)
        alpha, jump = _squarem(start, first.next_point, second.next_point, run.longest_jump)
        if alpha <= 1.0:  # α = 1 leads to θ₂ itself, less falls behind it
            return
        third = self._try(run, self.problem.admissible(jump, second.next_point))
        if third is None:
            run.longest_jump = max(2.0, run.longest_jump / 2.0)
        elif alpha == run.longest_jump:
            run.longest_jump *= 4.0

    def _step(self, run: Run, point: FloatArray) -> Step:
        """Take a step of EM, which never lowers the objective.

        Where parameters are at a limit, as correlations of columns that are copies of each other,
        it may; then shorter steps are tried, and without one that does not the run has converged.
        """
        step = self._evaluate(run, point)
        noise = self.budget.tolerance * (1.0 + abs(step.objective))
        for _ in range(_HALVINGS):
            if run.top is None or not step.objective < run.objective - noise:
                break
            point = 0.5 * (run.top + point)
            step = self._evaluate(run, point)
        if run.top is not None and step.objective < run.objective - noise:
            run.point, run.converged = run.top, True
        else:
            self._accept(run, point, step)
        return step

    def _try(self, run: Run, point: FloatArray) -> Step | None:
        """Take a step from a guess; None if the guess is lower than what is known."""
        step = self._evaluate(run, point)
        if not np.isfinite(step.objective) or step.objective < run.objective:
            return None
        self._accept(run, point, step)
        return step

    def _evaluate(self, run: Run, point: FloatArray) -> Step:
        if time.monotonic() > self.deadline and run.trace:
            raise BudgetSpent
        run.n_steps += 1
        self.n_steps += 1
        return self.problem.step(point)

    def _accept(self, run: Run, point: FloatArray, step: Step) -> None:
        # The objective is that of the point stepped from: one step behind ``point``.
        run.trace.append(step.log_likelihood)
        run.objective = step.objective
        run.top = point
        run.point = step.next_point
        moved = float(np.abs(step.next_point - point).max(initial=0.0))
        run.converged = moved <= self.budget.point_tolerance
        if self.progress is not None:
            self.progress(self.n_steps, step.log_likelihood)


def _highest(runs: list[Run]) -> Run:
    return max(runs, key=lambda run: run.objective)


def _squarem(
    a: FloatArray, b: FloatArray, c: FloatArray, longest: float
) -> tuple[float, FloatArray]:
    """Extrapolate from three successive points of EM; α ≤ 1 where there is nothing to gain."""
    r = b - a
    v = (c - b) - r  # 0 where EM moves in a straight line at constant speed
    length = float(np.sqrt(v @ v))
    alpha = min(float(np.sqrt(r @ r)) / length, longest) if length > 0.0 else 1.0
    digits, power = math.frexp(alpha)
    alpha = math.ldexp(math.floor(16.0 * digits), power - 4)
    return alpha, a + 2.0 * alpha * r + alpha * alpha * v


def maximize(
    problem: Problem,
    points: Sequence[FloatArray],
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Run EM from the given points."""
    outcome = Driver(problem, budget or Budget(), progress).maximize(points)
    best, point = outcome.best, outcome.best.point
    last = problem.step(point)
    if best.top is not None and last.objective < best.objective:  # by rounding, or at a limit
        point, last = best.top, problem.step(best.top)
    model = problem.model(point)
    report = FitReport(
        method="closed form" if problem.is_closed_form else "em",
        log_likelihood=last.log_likelihood,
        n_parameters=model.n_parameters,
        n_samples=problem.total_weight,
        converged=best.converged,
        log_likelihoods=tuple(best.trace),
        n_steps=outcome.n_steps,
        starts=outcome.starts,
        notes=(outcome.interrupted,) if outcome.interrupted else (),
    )
    return Fitted(model, report)

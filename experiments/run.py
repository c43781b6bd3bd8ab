"""Measure what is not measured yet, on all cores, and write the page.

    python -m experiments [--runs 200] [--budget 20m] [--only stocks newsgroups] [--report]

Results are kept as they come: after an interrupt the same command goes on where it was, and when
nothing changed nothing is measured again.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.results import Store, Unit
from latentree._kernels.compiling import repeated
from latentree.errors import DataError, DataWarning, MissingExtraError

ROOT = Path(__file__).parent.parent
EXPERIMENTS = (
    "newsgroups", "stocks", "judge", "complexity", "consistency", "synthetic", "discrete",
)  # fmt: skip
"""In the order of measuring; those that a budget ends come last."""
BUDGET_SHARE = {"synthetic": 0.7, "discrete": 0.3}
"""Shares of the budget; other experiments are small and always done.

A budget is processor time a core, so that a busy machine takes longer but does no less.
"""
ONE_THREAD = ("LATENTREE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class Plan:
    """The units of every experiment, and why some have none."""

    units: dict[str, list[Unit]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def make_plan(names: tuple[str, ...], runs: int, small: bool) -> Plan:
    """List all units; experiments whose data is not there say what is missing."""
    plan = Plan()
    for name in names:
        module = importlib.import_module(f"experiments.{name}")
        try:
            plan.units[name] = list(module.units(runs, small))
        except (DataError, MissingExtraError) as error:
            plan.units[name] = []
            plan.missing[name] = str(error)
    return plan


def work(experiment: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure one unit, in whatever process this is."""
    start = time.process_time()
    module = importlib.import_module(f"experiments.{experiment}")
    # Small trees are learned so often that compiled code pays.
    with warnings.catch_warnings(), repeated():
        warnings.simplefilter("ignore", DataWarning)  # data that falls apart is a result here
        result = module.measure(**parameters)
    return {"result": result, "seconds": time.process_time() - start}


Work = Callable[[str, dict[str, Any]], dict[str, Any]]


class Runner:
    """Feeds units to processes until all are done or their budget is spent."""

    def __init__(
        self, store: Store, plan: Plan, budget: float, workers: int, work: Work = work
    ) -> None:
        self.store, self.plan, self.workers, self.work = store, plan, workers, work
        self.budget = {name: budget * share for name, share in BUDGET_SHARE.items()}
        self.spent = dict.fromkeys(plan.units, 0.0)
        self.screen = Screen(plan)

    def waiting(self) -> Iterator[Unit]:
        """Units to measure; results in the store count toward the budget that made them."""
        for name, units in self.plan.units.items():
            for unit in units:
                record = self.store.read(unit)
                if record is not None:
                    self._count(unit, record)
                elif self.spent[name] < self.budget.get(name, float("inf")):
                    yield unit

    def _count(self, unit: Unit, record: dict[str, Any]) -> None:
        self.spent[unit.experiment] += record["seconds"] / max(1, self.workers)
        self.screen.done(unit.experiment)

    def run(self) -> None:
        """Measure everything."""
        with self.screen:
            if self.workers > 0:
                self._run_parallel()
                return
            for unit in self.waiting():
                self._keep(unit, self.work(unit.experiment, unit.parameters))

    def _keep(self, unit: Unit, record: dict[str, Any]) -> None:
        self.store.write(unit, record)
        self._count(unit, record)

    def _run_parallel(self) -> None:
        for name in ONE_THREAD:  # read when the children import numpy and latentree
            os.environ[name] = "1"
        context = multiprocessing.get_context("spawn")
        # Children do not hear Ctrl-C: EM would return the best so far, and that would be kept.
        deaf = (signal.SIGINT, signal.SIG_IGN)
        pool = ProcessPoolExecutor(self.workers, context, signal.signal, deaf)
        running: dict[Future[dict[str, Any]], Unit] = {}
        try:
            for unit in self.waiting():
                running[pool.submit(self.work, unit.experiment, unit.parameters)] = unit
                while len(running) >= self.workers:
                    self._collect(running)
            while running:
                self._collect(running)
        finally:
            pool.shutdown(cancel_futures=True)
            for future, unit in running.items():  # after an interrupt: what was under way
                if future.done() and not future.cancelled():
                    self._keep(unit, future.result())

    def _collect(self, running: dict[Future[dict[str, Any]], Unit]) -> None:
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            self._keep(running.pop(future), future.result())


class Screen:
    """Progress on standard error: bars on a terminal, a line now and then elsewhere."""

    EVERY = 30.0

    def __init__(self, plan: Plan) -> None:
        console = Console(stderr=True)
        self.bars = Progress(
            TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self.tasks = {
            name: self.bars.add_task(name, total=len(units)) for name, units in plan.units.items()
        }
        self.counts = {name: [0, len(units)] for name, units in plan.units.items()}
        self.spoken = time.monotonic()

    def __enter__(self) -> Screen:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()
        self._say()

    def done(self, experiment: str) -> None:
        """Count one unit."""
        self.bars.advance(self.tasks[experiment])
        self.counts[experiment][0] += 1
        if time.monotonic() - self.spoken > self.EVERY:
            self._say()

    def _say(self) -> None:
        if self.bars.disable:
            parts = [f"{name} {done}/{total}" for name, (done, total) in self.counts.items()]
            print("experiments:", ", ".join(parts), file=sys.stderr, flush=True)
        self.spoken = time.monotonic()


def _hear_signals() -> None:
    """Let what ends a process end this one in order: started in the background, it is deaf."""
    if threading.current_thread() is threading.main_thread():
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.default_int_handler)


def seconds_of(text: str) -> float:
    """Read a duration such as 90, 90s, 20m or 1h, in seconds."""
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    try:
        value = float(text if factor is None else text[:-1])
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: try 90s, 20m or 1h") from None
    return value * (factor or 1.0)


def main(argv: list[str] | None = None, work: Work = work) -> int:
    """Parse arguments, measure, write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--runs", type=int, default=200, help="most runs a cell (the paper's: 200)")
    parser.add_argument("--budget", type=seconds_of, default="20m", help="for the synthetic part")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, help="measure only these")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes; 0: this one only"
    )
    parser.add_argument("--small", action="store_true", help="a miniature, to see that it works")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "paper")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "evidence" / "paper.md")
    options = parser.parse_args(argv)
    store = Store(options.results)
    plan = make_plan(EXPERIMENTS, options.runs, options.small)
    for name, reason in plan.missing.items():
        print(f"experiments: {name} is left out: {reason}", file=sys.stderr)
    if not options.report:
        chosen = {name: plan.units[name] for name in options.only or EXPERIMENTS}
        try:
            _hear_signals()
            Runner(store, Plan(chosen), options.budget, options.workers, work).run()
        except KeyboardInterrupt:
            print("experiments: interrupted; the same command goes on from here", file=sys.stderr)
            return 130
    report = importlib.import_module("experiments.report")
    report.write_page(store, plan, options.page)
    return 0

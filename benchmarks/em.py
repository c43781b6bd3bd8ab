"""Speed of EM: against the original program, NumPy, StepMix and pgmpy, and how it grows.

    LATENTREE_DATA=… python benchmarks/em.py [--quick]

StepMix and pgmpy are left out where they are not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import logging
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse

import latentree as lt
from common import newsgroups, show
from inference import best_time, distinct_rows, numpy_counts
from latentree._kernels.compiling import repeated
from latentree.distances import as_sample
from latentree.em import Budget, Driver, make_problem, start_points
from ratios import keep, write


def seconds_of(function: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def compiled_time(function: Callable[[], object]) -> float:
    """Time of tiny work that is done many times, as in a loop over fits: compiled."""
    with repeated():
        return best_time(function, 0.3)


def climb(problem, sample, **budget):
    """Run EM from the distances; the outcome and its time."""
    points = start_points(problem, sample, None, 1, np.random.default_rng(0))
    return seconds_of(lambda: Driver(problem, Budget(**budget)).maximize(points))


def fit_newsgroups(words: lt.Table) -> None:
    distances = lt.information_distances(words)
    lines = []
    for method, original in (("clnj", "68 … 165"), ("clrg", "29 … 185"), ("nj", "94 … 268")):
        tree = lt.structure.learn_structure(distances, method)
        lt.fit_parameters(tree, words, n_starts=1)
        whole, fitted = seconds_of(lambda: lt.fit_parameters(tree, words, n_starts=1))  # noqa: B023
        sample = as_sample(words)
        problem = make_problem(tree, sample)
        _, fast = climb(problem, sample)
        _, plain = climb(problem, sample, accelerate=False)
        point = fast.best.point
        step = best_time(lambda: problem.step(point), 0.3)  # noqa: B023
        rows, weights = distinct_rows(words.values)
        model = fitted.model
        dense = best_time(lambda: numpy_counts(model, rows, weights), 0.5)  # noqa: B023
        keep(f"EM step on the newsgroups, {method}: NumPy over distinct rows", dense, step)
        lines.append([
            method, f"{tree.n_hidden}", f"{whole:.2f}", original, f"{fast.n_steps}",
            f"{plain.n_steps}", f"{1e3 * step:.2f}", f"{dense / step:.0f}",
            f"{fitted.report.log_likelihood:,.1f}",
        ])  # fmt: skip
    header = ["newsgroups, whole fit", "hidden", "seconds", "original's", "steps", "plain steps",
              "ms a step", "× NumPy", "log-likelihood"]  # fmt: skip
    show(header, lines)


def against_stepmix(words: lt.Table, n_states: int) -> None:
    if importlib.util.find_spec("stepmix") is None:
        print("StepMix is not installed: left out\n")
        return
    from stepmix.stepmix import StepMix

    rival = StepMix(
        n_components=n_states, measurement="binary", n_init=1, random_state=0, max_iter=200,
        abs_tol=1e-3, rel_tol=0.0, progress_bar=0, verbose=0,
    )  # fmt: skip
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        theirs, _ = seconds_of(lambda: rival.fit(words.values))
        reached = rival.score(words.values) * words.n_rows
    tree = lt.simulate.latent_class(words.n_columns).renamed(words.names)
    sample = as_sample(words)
    problem = make_problem(tree, sample, n_states)

    class Reached(Exception):
        pass

    def stop(steps: int, log_likelihood: float) -> None:
        if log_likelihood >= reached:
            raise Reached

    def ours() -> None:
        points = start_points(problem, sample, None, 1, np.random.default_rng(0))
        with contextlib.suppress(Reached):
            Driver(problem, Budget(), stop).maximize(points)

    ours()
    mine, _ = seconds_of(ours)
    keep(f"latent classes, {n_states} states: StepMix", theirs, mine)
    show(
        [f"LCM, {n_states} states", "seconds", "StepMix", "× faster", "to log-likelihood"],
        [["newsgroups", f"{mine:.2f}", f"{theirs:.1f}", f"{theirs / mine:.0f}", f"{reached:,.0f}"]],
    )


def against_pgmpy() -> None:
    if importlib.util.find_spec("pgmpy") is None:
        print("pgmpy is not installed: left out\n")
        return
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore", FutureWarning)
    import pandas
    from pgmpy.estimators import ExpectationMaximization
    from pgmpy.models import DiscreteBayesianNetwork

    rng = np.random.default_rng(0)
    tree = lt.simulate.caterpillar(9, leaves=2)
    model = lt.simulate.random_discrete_model(tree, 2, rng)
    X = model.sample(2_000, rng)
    names, hidden = tree.names, set(tree.names[tree.n_observed :])
    network = DiscreteBayesianNetwork([(names[a], names[b]) for a, b in tree.edges], latents=hidden)
    frame = pandas.DataFrame(X, columns=names[:9])
    rival = ExpectationMaximization(network, frame)
    cards = dict.fromkeys(hidden, 2)

    def run(steps: int) -> None:
        rival.get_parameters(
            latent_card=cards, max_iter=steps, atol=0.0, n_jobs=1, seed=0, show_progress=False
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, _ = seconds_of(lambda: run(1))
        three, _ = seconds_of(lambda: run(3))
    theirs = max((three - one) / 2, 1e-9)
    problem = make_problem(tree, as_sample(X))
    point = problem.point(model)
    mine = compiled_time(lambda: problem.step(point))
    keep("EM step, 9 leaves and 4 hidden: pgmpy", theirs, mine)
    show(
        ["9 leaves, 4 hidden, 2,000 rows", "ms a step", "pgmpy", "× faster"],
        [["EM", f"{1e3 * mine:.3f}", f"{1e3 * theirs:,.0f}", f"{theirs / mine:,.0f}"]],
    )


def growth(quick: bool) -> None:
    rng = np.random.default_rng(1)
    tree = lt.simulate.random_latent_tree(100, rng)
    model = lt.simulate.random_discrete_model(tree, 2, rng, strength=(0.6, 0.9))
    sizes = (4_000, 8_000) if quick else (16_000, 32_000, 64_000, 128_000)
    lines = [
        _step_line(f"n = {n:,}, m = 100", tree, lt.as_table(model.sample(n, rng))) for n in sizes
    ]
    for m in (100, 300) if quick else (100, 1_000, 10_000):
        tree = lt.simulate.random_latent_tree(m, rng)
        sparse = scipy.sparse.random_array((20_000, m), density=10 / m, rng=rng, format="csr")
        sparse.data[:] = 1
        lines.append(
            _step_line(f"n = 20,000, m = {m:,}, 10 words a row", tree, lt.as_table(sparse))
        )
    show(["growth", "compile ms", "ms a step"], lines)


def _step_line(name: str, tree: lt.Tree, table: lt.Table) -> list[str]:
    sample = as_sample(table)
    compiled, problem = seconds_of(lambda: make_problem(tree, sample))
    point = start_points(problem, sample, None, 1, np.random.default_rng(0))[0]
    return [
        name,
        f"{1e3 * compiled:,.0f}",
        f"{1e3 * best_time(lambda: problem.step(point), 0.3):.2f}",
    ]


def gaussian(quick: bool) -> None:
    rng = np.random.default_rng(2)
    n, m = (500, 1_000) if quick else (1_000, 10_000)
    tree = lt.simulate.random_latent_tree(m, rng)
    model = lt.simulate.random_gaussian_model(tree, rng)
    X = model.sample(n, rng)
    sample = as_sample(X)
    problem = make_problem(tree, sample)
    point = problem.point(model)
    step = best_time(lambda: problem.step(point))
    read = best_time(X.sum)
    keep(f"Gaussian EM step, {n:,} × {m:,}: one sum of the table", read, step)
    show(
        [f"Gaussian, {n:,} × {m:,}", "ms a step", "one sum ms", "× one sum", "goal"],
        [["EM", f"{1e3 * step:.1f}", f"{1e3 * read:.2f}", f"{step / read:.1f}", "20"]],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few states")
    quick = parser.parse_args().quick
    data = newsgroups()
    if data is not None:
        words = lt.as_table(data, "discrete")
        fit_newsgroups(words)
        against_stepmix(words, 4 if quick else 16)
    against_pgmpy()
    growth(quick)
    gaussian(quick)
    write("em", quick)


if __name__ == "__main__":
    main()

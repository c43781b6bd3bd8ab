"""The same three trees with discrete models on them, to see whether they behave alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import latentree as lt
from experiments.results import LEARNERS, Unit
from experiments.samples import METHODS, PAPER_SIZE, STRENGTH, TREES, timed, warm_up
from latentree import metrics, simulate, structure
from latentree.em import Budget
from latentree.em._starts import edge_signs

PARTS = LEARNERS
FAMILIES = {
    "symmetric, K = 2": ("symmetric", 2),
    "symmetric, K = 4": ("symmetric", 4),
    "general, K = 3": ("discrete", 3),
}
SIZES = (1_000, 10_000, 100_000)
COLUMNS = ("n", "method", "error", "rf", "surplus", "kl", "kl_error", "seconds")
MOST_RUNS = 20
ENOUGH = Budget(max_steps=250)
"""Where EM creeps on after that, the divergence no longer changes in its first two digits."""


def units(runs: int = 200, small: bool = False) -> Iterator[Unit]:
    """List one unit for every tree, family and run, run by run."""
    for run in range(1 if small else min(runs, MOST_RUNS)):
        for family in FAMILIES:
            for tree, m in PAPER_SIZE.items():
                m = {80: 8, 81: 6}[m] if small else m
                sizes = (500, 2_000) if small else SIZES
                parameters = {"family": family, "tree": tree, "m": m, "run": run, "sizes": sizes}
                yield Unit("discrete", parameters)


def measure(family: str, tree: str, m: int, run: int, sizes: list[int]) -> dict[str, Any]:
    """Draw a model and samples of it; learn from the first n of them by every method."""
    warm_up()
    kind, n_states = FAMILIES[family]
    places = list(FAMILIES).index(family), list(TREES).index(tree)
    rng = np.random.default_rng([2, *places, run])
    draw = {
        "symmetric": simulate.random_symmetric_model,
        "discrete": simulate.random_discrete_model,
    }
    truth = draw[kind](TREES[tree](m), n_states, rng, STRENGTH)
    samples = truth.sample(max(sizes), rng)
    rows = []
    for n in sizes:
        table = lt.as_table(samples[:n], kind)
        rows += [[n, method, *_learn(truth, table, method)] for method in METHODS]
    return {"rows": rows}


def _learn(truth: lt.DiscreteTreeModel, table: lt.Table, method: str) -> list[float]:
    distances = lt.information_distances(table)
    learned, seconds = timed(lambda: structure.learn_structure(distances, method))
    model = _fit(learned, table, distances)
    divergence = metrics.kl_divergence(truth, model, n_samples=10_000, random_state=0)
    return [
        float(not metrics.same_structure(learned, truth.tree)),
        metrics.robinson_foulds(learned, truth.tree),
        metrics.hidden_difference(learned, truth.tree),
        float(divergence),
        divergence.standard_error,
        seconds,
    ]


def _fit(tree: lt.Tree, table: lt.Table, distances: lt.Distances) -> lt.DiscreteTreeModel:
    """Return parameters from distances if they follow from them, else by EM."""
    if table.family == "symmetric":
        # As fit_parameters(method="distances") does, without the likelihood of all rows.
        n_states, labels = int(table.cardinalities[0]), table.schema.labels
        signs = edge_signs(tree, distances)
        return lt.DiscreteTreeModel.from_distances(tree, n_states, signs, labels)
    # The prior keeps states that were never seen together from being impossible.
    return lt.fit_parameters(tree, table, n_starts=1, prior_weight=1.0, budget=ENOUGH).model

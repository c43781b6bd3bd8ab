"""How many samples exact recovery takes as trees grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import latentree as lt
from experiments.results import LEARNERS, Unit
from experiments.samples import METHODS, TREES, gaussian_tables, warm_up
from latentree import metrics, simulate, structure

PARTS = LEARNERS
STRENGTH = 0.6
"""Correlation of every edge: the theorems ask for distances that are bounded, whatever m is."""
VARIABLES = (10, 20, 40, 80, 160)
SIZES = {
    "double star": [round(25 * 2 ** (k / 2)) for k in range(18)],
    "HMM": [round(400 * 2 ** (k / 2)) for k in range(13)],
}
ENOUGH = 3
"""After so many sizes in a row with the right tree, larger ones are taken to be right."""
RUNS = 20


def units(runs: int = 200, small: bool = False) -> Iterator[Unit]:
    """List one unit for every run, tree and number of variables."""
    for run in range(2 if small else min(runs, RUNS)):
        for tree, sizes in SIZES.items():
            for m in (6, 12) if small else VARIABLES:
                parameters = {
                    "tree": tree,
                    "m": m,
                    "run": run,
                    "sizes": sizes[:6] if small else sizes,
                }
                yield Unit("consistency", parameters)


def measure(tree: str, m: int, run: int, sizes: list[int]) -> dict[str, Any]:
    """Tell for each method and size whether the tree is found, on nested samples."""
    warm_up()
    rng = np.random.default_rng([3, list(SIZES).index(tree), m, run])
    truth = simulate.random_gaussian_model(TREES[tree](m), rng, (STRENGTH, STRENGTH))
    found: dict[str, list[bool]] = {method: [] for method in METHODS}
    for table in gaussian_tables(truth, sizes, rng):
        distances = lt.information_distances(table)
        for method, right in found.items():
            if len(right) >= ENOUGH and all(right[-ENOUGH:]):
                right.append(True)
            else:
                learned = structure.learn_structure(distances, method)
                right.append(metrics.same_structure(learned, truth.tree))
    return {"found": found}

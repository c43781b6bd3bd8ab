"""The paper's three trees, learned from samples of Gaussian models on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import latentree as lt
from experiments.results import LEARNERS, Unit
from experiments.samples import (
    METHODS,
    PAPER_SIZE,
    STRENGTH,
    TREES,
    gaussian_tables,
    timed,
    warm_up,
)
from latentree import metrics, simulate, structure

PARTS = LEARNERS
SIZES = (1_000, 2_000, 10_000, 20_000, 100_000, 200_000)
COLUMNS = ("n", "method", "error", "rf", "surplus", "kl", "kl_reverse", "seconds")


def units(runs: int = 200, small: bool = False) -> Iterator[Unit]:
    """List one unit for every tree and run, run by run."""
    for run in range(2 if small else runs):
        for tree, m in PAPER_SIZE.items():
            m = {80: 12, 81: 21}[m] if small else m
            sizes = (1_000, 10_000) if small else SIZES
            yield Unit("synthetic", {"tree": tree, "m": m, "run": run, "sizes": sizes})


def measure(tree: str, m: int, run: int, sizes: list[int]) -> dict[str, Any]:
    """Draw a model and nested samples of it; learn it by every method from each."""
    warm_up()
    rng = np.random.default_rng([1, list(TREES).index(tree), run])
    truth = simulate.random_gaussian_model(TREES[tree](m), rng, STRENGTH)
    rows = []
    for n, table in zip(sizes, gaussian_tables(truth, sizes, rng), strict=True):
        rows += [[n, method, *_learn(truth, table, method)] for method in METHODS]
    return {"rows": rows}


def _learn(truth: lt.GaussianTreeModel, table: lt.Table, method: str) -> list[float]:
    """Return the remaining columns for one method."""
    distances = lt.information_distances(table)
    learned, seconds = timed(lambda: structure.learn_structure(distances, method))
    model = lt.fit_parameters(learned, table, method="distances").model
    return [
        float(not metrics.same_structure(learned, truth.tree)),
        metrics.robinson_foulds(learned, truth.tree),
        metrics.hidden_difference(learned, truth.tree),
        float(metrics.kl_divergence(truth, model)),
        float(metrics.kl_divergence(model, truth)),
        seconds,
    ]

"""How often the samples of a double star mislead a judge who knows everything but one leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import latentree as lt
from experiments.results import LEARNERS, Unit
from experiments.samples import PAPER_SIZE, STRENGTH, TREES, gaussian_tables
from latentree import metrics, simulate, structure

PARTS = LEARNERS
TREE, N_SAMPLES, BATCH = "double star", 1_000, 20


def units(runs: int = 200, small: bool = False) -> Iterator[Unit]:
    """List the runs of the double star in batches; samples are those of ``synthetic``."""
    m, runs = (12, 2) if small else (PAPER_SIZE[TREE], runs)
    for first in range(0, runs, BATCH):
        yield Unit("judge", {"m": m, "first": first, "last": min(first + BATCH, runs)})


def measure(m: int, first: int, last: int) -> dict[str, Any]:
    """Tell for each run whether the judge errs, and whether recursive grouping does."""
    rows = []
    for run in range(first, last):
        rng = np.random.default_rng([1, list(TREES).index(TREE), run])
        truth = simulate.random_gaussian_model(TREES[TREE](m), rng, STRENGTH)
        (table,) = gaussian_tables(truth, [N_SAMPLES], rng)
        learned = structure.recursive_grouping(lt.information_distances(table))
        wrong = not metrics.same_structure(learned, truth.tree)
        rows.append([run, errs(truth, table), wrong])
    return {"rows": rows}


def errs(truth: lt.GaussianTreeModel, table: lt.Table) -> bool:
    """Whether some leaf, moved to the other center, makes the samples more likely.

    All parameters are the true ones and stay as they are, so that nothing but the place of one
    leaf is in question.
    """
    best = truth.total_log_likelihood(table)
    m = truth.tree.n_observed
    for leaf in range(m):
        parent = truth.tree.parent.copy()
        parent[leaf] = 2 * m + 1 - parent[leaf]  # the centers are m and m + 1
        moved = lt.GaussianTreeModel(lt.Tree(parent, n_observed=m), truth.correlations)
        if moved.total_log_likelihood(table) > best:
            return True
    return False

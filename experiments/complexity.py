"""How the time of every algorithm grows with the number of variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import latentree as lt
from experiments.results import LEARNERS, Unit
from experiments.samples import TREES, gaussian_tables, learn_exactly, timed, warm_up
from latentree import metrics, simulate, structure

PARTS = LEARNERS
METHODS = ("chow_liu", "cl_blind", "nj", "rg", "clnj", "clrg")
VARIABLES = {
    "double star": (40, 80, 160, 320, 640, 1280),
    "HMM": (40, 80, 160, 320, 640, 1280),
    "5-complete": (21, 81, 321, 1281),
}
STRENGTH = (0.5, 0.8)
N_SAMPLES = 10_000
LONGEST = 8.0
"""Seconds: no size is tried that would take longer, if its time grew as m⁴."""


def units(runs: int = 200, small: bool = False) -> Iterator[Unit]:
    """List one unit for every algorithm, tree and kind of distances."""
    for distances in ("exact", "sampled"):
        for method in METHODS:
            for tree, variables in VARIABLES.items():
                sizes = (6, 21) if small else variables
                parameters = {"tree": tree, "method": method, "distances": distances}
                yield Unit("complexity", {**parameters, "variables": list(sizes)})


def measure(tree: str, method: str, distances: str, variables: list[int]) -> dict[str, Any]:
    """Time one algorithm on trees of growing size, with the quantities in the theorems."""
    warm_up()
    rows: list[list[float]] = []
    for m in variables:
        if rows and rows[-1][1] * (m / rows[-1][0]) ** 4 > LONGEST:
            break
        rng = np.random.default_rng([4, m])
        model = simulate.random_gaussian_model(TREES[tree](m), rng, STRENGTH)
        given = _distances(model, distances, rng)
        learn = learn_exactly if distances == "exact" else structure.learn_structure
        learned, seconds = _best_time(lambda learn=learn, given=given: learn(given, method))
        degrees = structure.chow_liu(given).degrees
        rf = metrics.robinson_foulds(learned, model.tree)
        shape = model.tree.diameter(), int((degrees > 1).sum()), int(degrees.max())
        rows.append([m, seconds, *shape, rf])
    return {"rows": rows}


def _distances(model: lt.GaussianTreeModel, kind: str, rng: np.random.Generator) -> lt.Distances:
    if kind == "exact":
        return lt.Distances.from_matrix(model.distance_tree().path_lengths())
    (table,) = gaussian_tables(model, [N_SAMPLES], rng)
    return lt.information_distances(table)


def _best_time(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the shortest of a few processor times, for what is over soon of many."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 0.05 and len(times) < 20):
        result, seconds = timed(function)
        times.append(seconds)
        if seconds > 1.0:
            break
    return result, min(times)

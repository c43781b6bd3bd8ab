"""The paper's algorithms as printed beside ours: what latentree adds to each, and what that brings.

Instances as in ``accuracy.py``: the paper's three Gaussian trees with edge correlations uniform on
[0.2, 0.8]. Mean Robinson-Foulds distance to the truth, and surplus of hidden variables. Both
versions see the same distances, by the public learners of ``latentree.structure``.

    python benchmarks/printed.py [--instances 20] [--seed 0] [--quick]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import latentree as lt
from accuracy import TREES, draw_instance
from common import show
from latentree.metrics import robinson_foulds

SIZES = (1_000, 10_000)
LEARNERS = {
    "RG": lambda d, **how: lt.structure.recursive_grouping(d, **how),
    "NJ": lambda d, **how: lt.structure.neighbor_joining(d, **how),
    "CLBlind": lambda d, **how: lt.structure.cl_blind(d, **how),
    "CLRG": lambda d, **how: lt.structure.cl_grouping(d, "rg", **how),
    "CLNJ": lambda d, **how: lt.structure.cl_grouping(d, "nj", **how),
}


def measure(shape: str, n_samples: int, instances: int, seed: int) -> dict[str, np.ndarray]:
    """Mean distance and surplus of hidden variables of each learner, as printed and ours."""
    results: dict[str, list] = {name: [] for name in LEARNERS}
    for instance in range(instances):
        rng = np.random.default_rng([seed, list(TREES).index(shape), n_samples, instance])
        truth, rows = draw_instance(TREES[shape], n_samples, rng)
        distances = lt.information_distances(rows)
        for name, learn in LEARNERS.items():
            trees = [learn(distances, as_printed=True), learn(distances)]
            results[name].append(
                [
                    [robinson_foulds(tree, truth.tree), tree.n_hidden - truth.tree.n_hidden]
                    for tree in trees
                ]
            )
    return {name: np.mean(rows, axis=0) for name, rows in results.items()}


def main() -> None:
    """Print a table for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    instances = 2 if given.quick else given.instances
    warnings.simplefilter("ignore")
    lines = []
    for shape in TREES:
        for n_samples in SIZES:
            cell = measure(shape, n_samples, instances, given.seed)
            lines += [
                [f"{shape}, {n_samples:,}", name, f"{printed[0]:.1f}", f"{ours[0]:.1f}",
                 f"{printed[1]:+.1f}", f"{ours[1]:+.1f}"]
                for name, (printed, ours) in cell.items()
            ]  # fmt: skip
    header = ["tree, rows", "algorithm", "RF as printed", "RF", "hidden as printed", "hidden"]
    show(header, lines, "structure-printed")


if __name__ == "__main__":
    main()

"""Whether one map from support to the probability that an edge is true holds across trees.

Monotone maps are learned on random trees (seeds from 100 on) from two numbers of every edge of the
trees of ``rg``, ``clnj`` and ``snj``: the share of the learner's own replicates, and the mean of
the share of all replicates and of the probability by where else its parts could hang. Then, on
other instances (seeds from 2100 on), the share of true edges among those with a given probability.

    python benchmarks/calibration.py [--trees 12] [--instances 3] [--replicates 60] [--quick]
"""

from __future__ import annotations

import argparse
import warnings
from itertools import pairwise

import numpy as np
from sklearn.isotonic import IsotonicRegression

import latentree as lt
from common import show
from latentree.distances import as_sample
from latentree.structure import split_certainty
from latentree.support import gather_trees, support_from

BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)
KINDS = {
    "random": (4, (300, 1_000, 3_000)),
    "5-complete": (2, (1_000, 10_000)),
    "HMM": (3, (1_000, 10_000)),
}
"""Number in the seed, and numbers of rows."""


def tree_of(kind, seed):
    if kind == "random":
        return lt.simulate.random_latent_tree(40, np.random.default_rng([seed, 9]))
    return (
        lt.simulate.complete_tree(5, 3) if kind == "5-complete" else lt.simulate.hidden_markov(80)
    )


def edges_of(kind, seed, n, n_replicates):
    """Two numbers of every edge of the learners' trees, and whether it is true."""
    rng = np.random.default_rng([seed, KINDS[kind][0], n])
    truth = tree_of(kind, seed)
    model = lt.simulate.random_gaussian_model(truth, rng, (0.2, 0.8))
    gathered = gather_trees(as_sample(model.sample(n, rng)), seed, n_replicates)
    found = []
    for place, own in enumerate(gathered.own):
        below = own.edges[:, 1]
        shares = [support_from(own, trees).edge_share[below] for trees in gathered.replicates]
        certain = split_certainty(own, gathered.distances)[below]
        both = (np.mean(shares, axis=0) + certain) / 2
        is_true = support_from(own, [truth]).edge_share[below] == 1.0
        counts = ~np.isnan(shares[place])
        found.append(np.column_stack([shares[place], both, is_true])[counts])
    return np.concatenate(found)


def edges_of_all(kind, first, count, n_replicates):
    return np.concatenate([
        edges_of(kind, seed, n, n_replicates)
        for seed in range(first, first + count) for n in KINDS[kind][1]
    ])  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=12)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--replicates", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="one instance each, 12 replicates")
    options = parser.parse_args()
    if options.quick:
        options.trees, options.instances, options.replicates = 1, 1, 12
    warnings.simplefilter("ignore")
    chosen_on = edges_of_all("random", 100, options.trees, options.replicates)
    reported = {
        kind: edges_of_all(
            kind, 2100, options.instances * (2 if kind == "random" else 1), options.replicates
        )
        for kind in KINDS
    }
    for column, title in enumerate(("share of its own replicates", "mean of shares and certainty")):
        fitted = IsotonicRegression(out_of_bounds="clip").fit(chosen_on[:, column], chosen_on[:, 2])
        lines = []
        for low, high in pairwise(BINS):
            line = [f"{100 * low:.0f} to {100 * min(high, 1):.0f} %"]
            for edges in reported.values():
                chance = fitted.predict(edges[:, column])
                true = edges[(chance >= low) & (chance < high), 2]
                line.append(f"{100 * true.mean():.0f} % of {true.size}" if true.size else "–")
            lines.append(line)
        print(f"\nProbability by the {title}:")
        show(["probability", *reported], lines)


if __name__ == "__main__":
    main()

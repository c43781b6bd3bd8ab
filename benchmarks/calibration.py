"""Whether the probability of a split is the share of true ones among those with that probability.

Trees are drawn from their posterior; every split with two variables or more on both sides that one
of them has gets the share of the trees with it. Beside it, the same for edges of the tree of
``clnj`` and the shares of its bootstrap replicates.

    python benchmarks/calibration.py [--instances 4] [--seed 4600] [--trees 200] [--quick]
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from itertools import pairwise

import numpy as np

import latentree as lt
from common import FAMILIES, learned, random_model, show
from latentree.distances import as_sample
from latentree.support import probable_trees

BINS = (0.05, 0.3, 0.5, 0.7, 0.9, 1.01)
KINDS = {
    "random trees": (300, 1_000, 3_000),
    "5-complete": (1_000, 10_000),
    "HMM": (1_000, 10_000),
}
"""Numbers of rows."""


def tree_of(kind, rng):
    """A tree of that kind."""
    if kind == "random trees":
        return lt.simulate.random_latent_tree(40, rng)
    return (
        lt.simulate.complete_tree(5, 3) if kind == "5-complete" else lt.simulate.hidden_markov(80)
    )


def claims(tree):
    """Splits with two variables or more on both sides."""
    return {split for split in tree.bipartitions() if min(map(len, split)) > 1}


def splits_of(kind, family, n, seed, n_trees):
    """Probability and whether true, for all splits by the posterior and for those of ``clnj``."""
    place = list(KINDS).index(kind), FAMILIES.index(family)
    rng = np.random.default_rng([seed, n, *place])
    model = random_model(tree_of(kind, rng), family, rng)
    sample = as_sample(lt.as_table(model.sample(n, rng), schema=model.schema))
    truth = claims(model.tree)
    trees = probable_trees(sample, seed, n_trees)
    counts = Counter(split for tree in trees for split in claims(tree))
    posterior = [(count / len(trees), split in truth) for split, count in counts.items()]
    own = learned(sample.parts.to_table(), "clnj", max_steps=0).tree_
    again = lt.bootstrap_support(own, sample, "clnj", 100, random_state=seed).replicates
    shares = Counter(split for tree in again for split in claims(tree))
    bootstrap = [(shares[split] / len(again), split in truth) for split in claims(own)]
    return posterior, bootstrap


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=4)
    parser.add_argument("--seed", type=int, default=4600)
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="one instance each, 12 trees")
    options = parser.parse_args()
    if options.quick:
        options.instances, options.trees = 1, 12
    warnings.simplefilter("ignore")
    found = {"posterior": {}, "bootstrap of clnj": {}}
    for kind, sizes in KINDS.items():
        for family in FAMILIES:
            for n in sizes:
                for seed in range(options.seed, options.seed + options.instances):
                    both = splits_of(kind, family, n, seed, options.trees)
                    for each, splits in zip(found.values(), both, strict=True):
                        each.setdefault(f"{kind}, {family}", []).extend(splits)
    for title, cells in found.items():
        lines = []
        for low, high in pairwise(BINS):
            line = [f"{100 * low:.0f} to {100 * min(high, 1):.0f} %"]
            for splits in cells.values():
                true = [is_true for p, is_true in splits if low <= p < high]
                line.append(f"{100 * np.mean(true):.0f} % of {len(true)}" if true else "–")
            lines.append(line)
        print(f"\nShare of true splits by the {title}:")
        show(["probability", *cells], lines)


if __name__ == "__main__":
    main()

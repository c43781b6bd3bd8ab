"""Consensus trees beside the learners that they are made of, and how well support is calibrated.

For every cell, a shape of tree and a number of rows, random instances are drawn. The trees of the
learners, the star (no structure at all), the majority tree of the bootstrap replicates of all
learners together, and what they agree on (the method consensus) are compared with the truth:
mean Robinson-Foulds distance with its standard error, and the KL divergence D(truth ‖ model) with
parameters by EM. A cell is met if the consensus is no worse than any learner and than the star
by more than one standard error of the difference.

Then, over all edges of the learners' trees: how many of those with a given support are true.

    python benchmarks/support.py [--instances 20] [--seed 3400] [--replicates 100] [--only hmm]
                                 [--kl] [--quick]

Every instance is printed as soon as it is done. Seeds below 3000 were used while the rule was made;
the documentation reports seeds from 3400 on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise

import numpy as np

import latentree as lt
from common import show
from latentree.distances import as_sample
from latentree.metrics import robinson_foulds
from latentree.support import QUICK, gather_trees, majority_tree, support_from

SHAPES = {
    "double star": lt.simulate.double_star(80),
    "HMM": lt.simulate.hidden_markov(80),
    "5-complete": lt.simulate.complete_tree(5, 3),
}
FAMILIES = ("gaussian", "K = 2", "K = 3")
SIZES = (1_000, 2_000, 10_000, 100_000)
ROUNDING = 1e-9  # one instance of n gives a mean and a standard error of 1/n both
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99, 1.01)


def draw(shape, family, n, seed):
    """A random model of that shape, edge correlations uniform on [0.2, 0.8], and rows of it."""
    rng = np.random.default_rng([seed, list(SHAPES).index(shape), FAMILIES.index(family)])
    tree = SHAPES[shape]
    if family == "gaussian":
        model = lt.simulate.random_gaussian_model(tree, rng, (0.2, 0.8))
    else:
        states = int(family[-1])
        # 1 − K·θ is the correlation of an edge in the symmetric family: (1 − ρ)/K off the diagonal.
        theta = (1.0 - rng.uniform(0.2, 0.8, tree.n_nodes)) / states
        model = lt.DiscreteTreeModel.symmetric(tree, states, theta)
    return model, model.sample(n, rng)


def divergence(truth, tree, sample):
    """D(truth ‖ the tree with parameters by EM)."""
    fitted = lt.fit_parameters(tree, sample, n_starts=1, random_state=0).model
    return float(lt.metrics.kl_divergence(truth, fitted, 5_000, 0))


def one_instance(shape, family, n, seed, n_replicates, with_kl):
    """Distances to the truth and divergences by name, and (support, whether true) of edges."""
    model, rows = draw(shape, family, n, seed)
    truth, sample = model.tree, as_sample(lt.as_table(rows, schema=model.schema))
    gathered = gather_trees(sample, seed, n_replicates)
    trees = dict(zip(QUICK, gathered.own, strict=True))
    trees["star"] = lt.simulate.latent_class(truth.n_observed)
    trees["majority"] = majority_tree([tree for each in gathered.replicates for tree in each])
    trees["consensus"] = gathered.agreed
    found = {
        name: (robinson_foulds(tree, truth), divergence(model, tree, sample) if with_kl else 0.0)
        for name, tree in trees.items()
    }
    edges = []
    for place, name in enumerate(QUICK):
        own = support_from(trees[name], gathered.replicates[place])
        # As in the support: observed ends of an edge count for either side.
        true = support_from(trees[name], [truth]).edge_share[trees[name].edges[:, 1]] == 1.0
        below = trees[name].edges[:, 1]
        for transfer, share, is_true in zip(
            own.edge_transfer[below], own.edge_share[below], true, strict=True
        ):
            if not np.isnan(share):
                edges.append((family, shape, share, transfer, is_true))
    return found, edges


def cell(shape, family, n, options):
    """Means over instances, and whether the consensus is no worse than the others."""
    results, edges = [], []
    for seed in range(options.seed, options.seed + options.instances):
        start = time.process_time()
        found, said = one_instance(shape, family, n, seed, options.replicates, options.kl)
        results.append([[found[name][i] for name in found] for i in range(2)])
        edges += said
        print(
            f"  seed {seed}:",
            *(f"{name} {distance}" for name, (distance, _) in found.items()),
            f"({time.process_time() - start:.1f} s)",
            flush=True,
        )
    rf, kl = np.array(results, float).transpose(1, 0, 2)
    names = list(found)
    own = rf[:, names.index("consensus")]
    verdicts = []
    for place, name in enumerate(names[:-2]):
        difference = own - rf[:, place]
        error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
        if difference.mean() > error + ROUNDING:
            verdicts.append(f"worse than {name} by {difference.mean():.2f} ± {error:.2f}")
    cells = [
        f"{rf[:, i].mean():.2f} ± {rf[:, i].std(ddof=1) / np.sqrt(len(rf)):.2f}"
        for i in range(len(names))
    ]
    if options.kl:
        cells += [f"{kl[:, i].mean():.3f}" for i in range(len(names))]
    return [f"{shape}, {family}", f"{n:,}", *cells, ", ".join(verdicts) or "met"], names, edges


def calibration(edges):
    """Share of the edges that are in the truth, by their support and by family of trees."""
    groups = sorted({(family, shape) for family, shape, *_ in edges})
    for column, title in ((2, "split share"), (3, "transfer support")):
        lines = []
        for low, high in pairwise(BINS):
            line = [f"{low:.2f} to {min(high, 1):.2f}"]
            for group in [None, *groups]:
                mine = [
                    edge[4]
                    for edge in edges
                    if low <= edge[column] < high and (group is None or edge[:2] == group)
                ]
                line.append(f"{100 * np.mean(mine):.0f} % of {len(mine)}" if mine else "–")
            lines.append(line)
        show([title, "all", *(f"{shape}, {family}" for family, shape in groups)], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--seed", type=int, default=3400)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--kl", action="store_true")
    parser.add_argument("--quick", action="store_true", help="two instances, 12 replicates")
    options = parser.parse_args()
    if options.quick:
        options.instances, options.replicates, options.sizes = 2, 12, "1000"
    warnings.simplefilter("ignore")
    lines, edges, names = [], [], []
    for family in options.families.split(","):
        for shape in SHAPES:
            for n in map(int, options.sizes.split(",")):
                if options.only.lower() not in shape.lower():
                    continue
                line, names, said = cell(shape, family, n, options)
                print(*line, sep=" | ", flush=True)
                lines.append(line)
                edges += said
    kl = [f"KL {name}" for name in names] if options.kl else []
    show(["tree", "n", *names, *kl, "verdict"], lines)
    calibration(edges)


if __name__ == "__main__":
    main()

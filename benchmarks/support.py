"""Consensus trees beside the learners that they begin with, and beside the star.

For every cell, a shape of tree and a number of rows, random instances are drawn. The trees of the
learners, the star (no structure at all) and the tree of what is probable (the method consensus)
are compared with the truth: mean Robinson-Foulds distance with its standard error, and the KL
divergence D(truth ‖ model) with parameters by EM. A cell is met if the consensus is no worse than
any learner and than the star by more than one standard error of the difference.

    python benchmarks/support.py [--instances 20] [--seed 4700] [--only hmm]
                                 [--families gaussian,"K = 2"] [--sizes 1000] [--variables 80]
                                 [--kl] [--quick]

All trees but the star come from ``LatentTree``. Every instance is printed as soon as it is done.
Seeds below 4700 were used while the rule was made, or reported for an earlier one; the
documentation reports seeds from 4700 on. Each consensus has its processor seconds and the notes of
its report beside it. ``--variables 500`` takes trees of about so many variables.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import latentree as lt
from common import FAMILIES, learned, random_model, show
from latentree.metrics import robinson_foulds

SHAPES = {
    "double star": lt.simulate.double_star,
    "HMM": lt.simulate.hidden_markov,
    "5-complete": lambda m: lt.simulate.complete_tree(5, round(np.log(m) / np.log(4.3))),
    "random": lambda m: lt.simulate.random_latent_tree(m, 0),
}
SIZES = (1_000, 2_000, 10_000, 100_000)
ROUNDING = 1e-9  # one instance of n gives a mean and a standard error of 1/n both
LEARNERS = ("rg", "clnj", "snj")


def draw(shape, m, family, n, seed):
    """A random model of that shape, and rows of it."""
    rng = np.random.default_rng([seed, list(SHAPES).index(shape), FAMILIES.index(family)])
    model = random_model(SHAPES[shape](m), family, rng)
    return model, model.sample(n, rng)


def one_instance(shape, m, family, n, seed, with_kl):
    """Distances to the truth, and divergences D(truth ‖ model), by name."""
    truth, rows = draw(shape, m, family, n, seed)
    known = truth.schema.family
    star = lt.simulate.latent_class(truth.tree.n_observed)
    models = {
        name: learned(rows, name, known, **({} if with_kl else {"max_steps": 0})).model_
        for name in LEARNERS
    }
    models["star"] = lt.fit_parameters(star, rows, known, n_starts=1, random_state=0).model
    start = time.process_time()
    consensus = learned(rows, "consensus", known)
    print(f"  consensus: {time.process_time() - start:.1f} s", *consensus.report_.notes)
    models["consensus"] = consensus.model_
    return {
        name: (
            robinson_foulds(model.tree, truth.tree),
            float(lt.metrics.kl_divergence(truth, model, 5_000, 0)) if with_kl else 0.0,
        )
        for name, model in models.items()
    }


def cell(shape, family, n, options):
    """Means over instances, and whether the consensus is no worse than the others."""
    results = []
    for seed in range(options.seed, options.seed + options.instances):
        start = time.process_time()
        found = one_instance(shape, options.variables, family, n, seed, options.kl)
        results.append([[found[name][i] for name in found] for i in range(2)])
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
    for place, name in enumerate(names[:-1]):
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
    return [f"{shape}, {family}", f"{n:,}", *cells, ", ".join(verdicts) or "met"], names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--seed", type=int, default=4700)
    parser.add_argument("--only", default="")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--variables", type=int, default=80)
    parser.add_argument("--kl", action="store_true")
    parser.add_argument("--quick", action="store_true", help="two instances of 1,000 rows")
    options = parser.parse_args()
    if options.quick:
        options.instances, options.sizes = 2, "1000"
    warnings.simplefilter("ignore")
    lines, names = [], []
    for family in options.families.split(","):
        for shape in SHAPES:
            for n in map(int, options.sizes.split(",")):
                if options.only.lower() not in shape.lower():
                    continue
                line, names = cell(shape, family, n, options)
                print(*line, sep=" | ", flush=True)
                lines.append(line)
    kl = [f"KL {name}" for name in names] if options.kl else []
    show(["tree", "n", *names, *kl, "verdict"], lines)


if __name__ == "__main__":
    main()

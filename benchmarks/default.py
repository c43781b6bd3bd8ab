"""What the default should be: methods side by side on all tables, and on simulated trees.

For every table the mean log-likelihood of a held-out row, the BIC score of the training rows per
row, the number of hidden variables and processor seconds of each method; 30 % of the rows are held
out, and at most ``--rows`` rows are used. Held-out and BIC are differences to independence. Last
comes the share of the tree's splits whose probability is over one half (of replicates of ``rg`` and
``clnj`` for more than 128 columns). Then Robinson-Foulds distances on simulated trees. Tables with
an even place in the alphabet were used to choose, the others (marked *) to report.

    python benchmarks/default.py [tables] [trees] [--rows 1000] [--methods auto,clrg,clnj]
                                 [--only wine iris]
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings

import numpy as np

from common import best_bold, data_folder, learned, newsgroups, show, stocks
from latentree import bootstrap_support, simulate
from latentree.data import as_table
from latentree.metrics import robinson_foulds

TREES = {
    "double star": simulate.double_star(80),
    "HMM": simulate.hidden_markov(80),
    "5-complete": simulate.complete_tree(5, 3),
}


def tables():
    """All tables that are found, by name: frames, arrays and 0/1 codes."""
    import pandas as pd
    from sklearn import datasets

    found = {}
    for name in ("iris", "wine", "breast_cancer", "diabetes"):
        found[name] = getattr(datasets, f"load_{name}")(as_frame=True).data
    folder = data_folder()
    if folder is not None:
        for path in (folder / "tables").glob("*.csv.gz"):
            found[path.name.removesuffix(".csv.gz")] = pd.read_csv(path)
        for path in (folder / "density").glob("*.train.txt.gz"):
            with gzip.open(path, "rt") as file:
                lines = [list(line.strip().replace(",", "")) for line in file]
                found[path.name.split(".")[0]] = np.array(lines).astype(np.int8)
        found["newsgroups"] = newsgroups()
        found["stocks"] = stocks()
    return dict(sorted(found.items()))


def frame_parts(X, n_rows):
    """Rows to learn from, and rows that are held out, without columns of one value."""
    import pandas as pd

    frame = pd.DataFrame(X).rename(columns=str)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(frame))[:n_rows]
    cut = int(0.7 * chosen.size)
    train = frame.iloc[chosen[:cut]]
    frame = frame.loc[:, train.nunique() > 1]
    whole = as_table(frame)
    return whole.take(chosen[:cut]), whole.take(chosen[cut:])


def sure_share(model, train):
    """How many of the splits of a tree are in most of the trees that consensus looks at."""
    found = bootstrap_support(model, train, "consensus", 100, random_state=0).edges["share"]
    return f"{sum(share > 0.5 for share in found)}/{len(found)}"


def line(place, name, X, n_rows, methods):
    train, test = frame_parts(X, n_rows)
    alone = learned(train, "independent")
    base = alone.score(test)
    cells = []
    for method in methods:
        clock = time.process_time()
        try:
            fit = learned(train, method)
        except Exception as error:  # a method that fails is a line of the table
            cells.append(type(error).__name__)
            continue
        seconds = time.process_time() - clock
        held_out = fit.score(test) - base
        bic = (fit.report_.bic_score - alone.report_.bic_score) / train.n_rows
        facts = f"{held_out:.3f} {bic:.3f} {fit.n_hidden_} {seconds:.1f}s"
        cells.append(f"{facts} {sure_share(fit.model_, train)}")
    size = f"{train.n_rows} × {train.n_columns}"
    return [name + "*" * (place % 2), train.family, size, *cells]


def compare_tables(n_rows, methods, only):
    header = ["held-out, BIC, hidden, time, sure splits", "family", "size", *methods]
    print(" | ".join(header))
    lines = []
    for place, (name, X) in enumerate(tables().items()):
        if only and name not in only:
            continue
        lines.append(line(place, name, X, n_rows, methods))
        print(" | ".join(lines[-1]), flush=True)
    show(
        ["table", "learned from", *methods, "hidden", "sure splits"],
        list(map(shown, lines)),
        "defaults",
    )


def shown(cells):
    """Held-out likelihoods of all methods, and what else there is to say of the first."""
    name, family, size, *found = cells
    _, _, hidden, _, sure = found[0].split()
    return [f"{name}, {family}", size, *best_bold([c.split()[0] for c in found]), hidden, sure]


def compare_trees(first, instances, methods):
    lines = []
    for shape, tree in TREES.items():
        for n in (1_000, 10_000):
            rows = []
            for seed in range(first, first + instances):
                model = simulate.random_gaussian_model(tree, seed, (0.2, 0.8))
                X = model.sample(n, seed)
                rows.append([robinson_foulds(learned(X, m).tree_, tree) for m in methods])
            lines.append([shape, f"{n:,}", *(f"{mean:.1f}" for mean in np.mean(rows, axis=0))])
            print(lines[-1], flush=True)
    show(["RF", "rows", *methods], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", default=["tables", "trees"])
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--instances", type=int, default=5)
    parser.add_argument("--first", type=int, default=3_000)
    parser.add_argument("--methods", default="auto,clnj,clrg,nj,rg,snj,refined")
    parser.add_argument("--only", nargs="+", help="names of tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = options.methods.split(",")
    if "tables" in options.parts:
        compare_tables(options.rows, methods, options.only)
    if "trees" in options.parts:
        compare_trees(options.first, options.instances, methods)


if __name__ == "__main__":
    main()

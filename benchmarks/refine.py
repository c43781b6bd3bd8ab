"""Refinement beside the paper, the authors' program and what is needed.

    python benchmarks/refine.py [stocks|trees|newsgroups|halves|growth|ablation|pieces …]
                                [--quick]
                                [--first 1120] [--instances 20]

stocks      BIC of the returns, from the best of the trees by distances
trees       the paper's synthetic Gaussian trees: Robinson-Foulds distance, score beside that of
            the true structure, seconds; also with the score "ebic" alone
newsgroups  BIC of all rows, hidden variables binary and free
halves      log-likelihood of the paper's test half, chosen on the training half alone
growth      seconds against the number of variables, simulated binary trees
ablation    what each number of RefineOptions brings: the search without it, or with another value.
            On instances from 1000 on, which were used for choosing; only if it is named
pieces      the same lines on pieces of real tables, 600 rows of up to 24 columns drawn at random:
            mean change of the score with its standard error; only if it is named

Instances are random seeds, from --first on: those from 1120 on had no part in choosing. What needs
the paper's data is left out, saying so, where it is not.
"""

from __future__ import annotations

import argparse
import gzip
import time
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import latentree as lt
from common import data_folder, learned, newsgroups, show, stocks

DECIMALS = {True: "yes", False: "NO"}


def refined(table, **options):
    """Learn by the door; caution is an option of the search alone."""
    clock = time.perf_counter()
    if "caution" in options:
        model, report = lt.search.refined(table, random_state=0, **options)
    else:
        fit = learned(table, "refined", **options)
        model, report = fit.model_, fit.report_
    return model, report, time.perf_counter() - clock


def line(name, value, needed, paper, model, report, seconds):
    moves = ", ".join(f"{kind} {count}" for kind, (count, _) in sorted(report.gains().items()))
    return [
        name, f"{value:,.0f}", f"{needed:,}", DECIMALS[value >= needed], paper,
        f"{model.tree.n_hidden}", f"{seconds:.1f}", moves,
    ]  # fmt: skip


HEADER = ["", "found", "needed", "met", "paper or original", "hidden", "seconds", "changes"]


def run_stocks(arguments) -> None:
    values = stocks(standardized=True)
    if values is None:
        return
    model, report, seconds = refined(lt.as_table(values))
    found = line("stocks, BIC", report.bic_score, -22_075, "−22,335", model, report, seconds)
    show(HEADER, [found])


def run_newsgroups(arguments) -> None:
    values = newsgroups()
    if values is None:
        return
    table = lt.as_table(values, "discrete")
    lines = []
    for name, most, needed, paper in (
        ("all rows, hidden binary, BIC", 2, -231_450, "−232,257"),
        ("all rows, states free, BIC", None, -228_400, "LCM −230,925"),
    ):
        model, report, seconds = refined(table, max_states=most)
        lines.append(line(name, report.bic_score, needed, paper, model, report, seconds))
    show(HEADER, lines)


def run_halves(arguments) -> None:
    values, folder = newsgroups(), data_folder()
    if values is None or folder is None:
        return
    train = np.zeros(len(values), bool)
    train[np.loadtxt(folder / "newsgroups_train_rows.txt", int)] = True
    table = lt.as_table(values[train], "discrete")
    test = lt.as_table(values[~train], schema=table.schema)
    lines = []
    for score in ("bic", "cv"):
        model, report, seconds = refined(table, criterion=score)
        found = model.total_log_likelihood(test)
        name = f"test half, score {score}"
        lines.append(line(name, found, -113_600, "−116,011", model, report, seconds))
    show(HEADER, lines)


# The paper's trees --------------------------------------------------------------------------------

DEFAULT = {"criterion": "bic"}
STRICT = {"criterion": "ebic", "caution": 0}
CELLS = (
    ("5-complete", lt.simulate.complete_tree(5, 3), 1_000, DEFAULT, "33", 20.0),
    ("5-complete", lt.simulate.complete_tree(5, 3), 2_000, DEFAULT, "21", 5.0),
    ("5-complete", lt.simulate.complete_tree(5, 3), 10_000, DEFAULT, "7.9", 0.5),
    ("5-complete", lt.simulate.complete_tree(5, 3), 2_000, STRICT, "21", 5.0),
    ("5-complete", lt.simulate.complete_tree(5, 3), 10_000, STRICT, "7.9", 0.5),
    ("double star", lt.simulate.double_star(80), 1_000, DEFAULT, "0.5", 1.0),
    ("double star", lt.simulate.double_star(80), 1_000, STRICT, "0.5", 1.0),
    ("HMM", lt.simulate.hidden_markov(80), 10_000, DEFAULT, "82", np.nan),
    ("HMM", lt.simulate.hidden_markov(80), 100_000, DEFAULT, "0.95", np.nan),
)
"""Tree, rows, settings, RF of the original, needed; NaN stands for that of our CLNJ."""


def run_trees(arguments) -> None:
    instances = 2 if arguments.quick else arguments.instances
    lines = []
    for name, tree, n, settings, original, needed in CELLS:
        if arguments.quick and n > 2_000:
            continue
        seeds = range(arguments.first, arguments.first + instances)
        runs = np.array([instance(tree, n, settings, seed) for seed in seeds])
        start, found, _, seconds = runs.mean(axis=0)
        limit = start if np.isnan(needed) else needed
        how = ", ".join(f"{key} {value}" for key, value in settings.items())
        lines.append([
            f"{name}, {how}", f"{n:,}", f"{start:.1f}", f"{found:.2f}", original,
            "CLNJ's" if np.isnan(needed) else f"{needed:g}", DECIMALS[found <= limit],
            f"{runs[:, 2].min():.1f}", f"{seconds:.2f}",
        ])  # fmt: skip
    header = ["mean RF", "n", "our CLNJ", "refined", "original", "needed", "met",
              "worst score − truth's", "seconds"]  # fmt: skip
    show(header, lines)


def instance(tree, n, settings, seed):
    """RF of CLNJ and refined, score less that of the true structure, seconds."""
    truth = lt.simulate.random_gaussian_model(tree, seed, (0.2, 0.8))
    table = lt.as_table(truth.sample(n, seed + 1_000))
    start = lt.structure.cl_grouping(lt.information_distances(table), subroutine="nj")
    model, report, seconds = refined(table, **settings)
    exact = lt.fit_parameters(truth.tree, table, start=truth).report
    inner = int((np.bincount(truth.tree.edges.ravel()) > 1).sum())
    is_extended = settings["criterion"] == "ebic"
    best = exact.bic_score - is_extended * inner * np.log(truth.tree.n_observed)
    distance = lt.metrics.robinson_foulds
    return (
        distance(start, truth.tree), distance(model.tree, truth.tree), report.score - best, seconds,
    )  # fmt: skip


# Growth -------------------------------------------------------------------------------------------


STRENGTHS = (0.5, 0.9)  # weaker edges are cut, and a forest's distance to a tree says nothing


def run_growth(arguments) -> None:
    lines, before = [], None
    grown(12, 0)  # loads the kernels
    for m in (50, 100) if arguments.quick else (100, 300, 1_000):
        runs = np.mean([grown(m, seed) for seed in range(1 if arguments.quick else 3)], axis=0)
        seconds, changes, start, found = runs
        exponent = (
            "" if before is None else f"{np.log(seconds / before[1]) / np.log(m / before[0]):.2f}"
        )
        lines.append([f"{m:,}", f"{seconds:.1f}", exponent, f"{changes:.0f}", f"{start:.0f}",
                      f"{found:.0f}"])  # fmt: skip
        before = m, seconds
    header = ["binary, n = 2,000, m", "seconds", "exponent", "changes", "CLNJ's RF", "refined"]
    show(header, lines)


def grown(m, seed):
    """Seconds, changes, RF of CLNJ and refined on binary variables from a random tree."""
    tree, table = grown_table(m, seed)
    start = lt.structure.cl_grouping(lt.information_distances(table), subroutine="nj")
    model, report, seconds = refined(table, start="clnj", max_states=2)
    distance = lt.metrics.robinson_foulds
    return seconds, len(report.moves), distance(start, tree), distance(model.tree, tree)


# Ablation -----------------------------------------------------------------------------------------

SEARCH = {
    "as it is": {},
    "caution 0: the score alone": {"caution": 0.0},
    "caution ½": {"caution": 0.5},
    "caution 2": {"caution": 2.0},
    "least_gain 0.1": {"least_gain": 0.1},
    "shares 1: one stage": {"gaussian_shares": (1.0,), "discrete_shares": (1.0,)},
    "effort 2": {"effort": 2},
    "slack 2": {"slack": 2.0},
    "softness 0.3": {"softness": 0.3},
}
GAUSSIAN = SEARCH | {
    "gaussian_settle_steps 12": {"gaussian_settle_steps": 12},
    "gaussian_steps 16": {"gaussian_steps": 16},
    "tolerance 0.1": {"tolerance": 0.1},
    "independent ∞: any edge": {"independent": np.inf},
}
DISCRETE = SEARCH | {
    "steps 6": {"steps": 6},
    "effort 8": {"effort": 8},
    "spread 0.2": {"spread": 0.2},
}


def run_ablation(arguments) -> None:
    few = max(arguments.instances // 2, 1)
    cells = [(CELLS[1], range(1_000, 1_000 + few)), (CELLS[5], range(1_000, 1_000 + few)),
             (CELLS[7], range(1_000, 1_000 + (few + 1) // 2))]  # fmt: skip
    tables = [
        (tree, lt.as_table(lt.simulate.random_gaussian_model(tree, s, (0.2, 0.8)).sample(n, s)))
        for (_, tree, n, *_), seeds in cells
        for s in seeds
    ]
    header = ["Gaussian, from CLNJ", *(f"{c[0]}, {c[2]:,}" for c, _ in cells), "score", "seconds"]
    ends = np.cumsum([0, *(len(seeds) for _, seeds in cells)])
    ablate(GAUSSIAN, tables, header, [slice(*pair) for pair in pairwise(ends)])
    tables = [grown_table(40, seed) for seed in range(1_000, 1_000 + (few + 1) // 2)]
    values = newsgroups()
    if values is not None:
        tables.append((None, lt.as_table(values[::8, :30], "discrete")))
    header = ["discrete, from CLNJ", "RF, m = 40", "score", "seconds"]
    ablate(DISCRETE, tables, header, [slice(0, (few + 1) // 2)])


def run_pieces(arguments) -> None:
    folder = data_folder()
    if folder is None:
        return
    frame = pd.read_csv(folder / "tables" / "bfi.csv.gz").iloc[:, :25].dropna()
    numbers = {
        "breast cancer": load_breast_cancer().data,
        "wine": load_wine().data,
        "stocks": stocks(),
        "bfi": frame.to_numpy(float),
        "digits": load_digits().data + 0.0,
    }
    codes = {"newsgroups": newsgroups()}
    for name in ("nltcs", "plants", "baudio", "accidents", "dna"):
        with gzip.open(folder / "density" / f"{name}.train.txt.gz", "rt") as file:
            codes[name] = np.array([list(line) for line in file.read().split()], dtype=np.int8)
    codes["epi"] = pd.read_csv(folder / "tables" / "epi.csv.gz").dropna().to_numpy(int)
    codes["bfi"] = frame.to_numpy(int)
    compare_pieces("Gaussian", numbers, GAUSSIAN, arguments)
    compare_pieces("discrete", codes, DISCRETE, arguments)


def compare_pieces(family, sources, options, arguments) -> None:
    """Print the mean change of the score by every line, with its standard error."""
    pieces = [
        lt.as_table(piece(values, np.random.default_rng((number, seed))), family.lower())
        for number, values in enumerate(sources.values())
        for seed in range(arguments.instances // 5)
    ]
    usual, lines = None, []
    for name, changed in options.items():
        found = np.array([refine_one(None, table, changed)[1:] for table in pieces])
        usual = found if usual is None else usual
        gain = found[:, 0] - usual[:, 0]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        counts = f"{(gain > 0.1).sum()} / {(gain < -0.1).sum()}"
        lines.append([name, f"{gain.mean():+.2f} ± {error:.2f}", counts,
                      f"{found[:, 1].mean():.2f}"])  # fmt: skip
        print(*lines[-1], sep=" | ", flush=True)
    title = f"{family}, {len(pieces)} pieces of {', '.join(sources)}"
    show([title, "score", "higher / lower", "seconds"], lines)


def piece(values, rng):
    """Return 600 rows of up to 24 columns that vary, drawn at random."""
    rows = values[rng.choice(len(values), min(600, len(values)), replace=False)]
    columns = np.flatnonzero(rows.std(axis=0) > 0)
    return rows[:, np.sort(rng.choice(columns, min(24, columns.size), replace=False))]


def ablate(options, tables, header, cells) -> None:
    """Print mean RF of the cells, mean score less that of the search as it is, and seconds."""
    lines, usual = [], None
    refine_one(*tables[0], {})  # loads the kernels
    for name, changed in options.items():
        found = np.array([refine_one(tree, table, changed) for tree, table in tables])
        usual = found if usual is None else usual
        gained = (found[:, 1] - usual[:, 1]).mean()
        lines.append([name, *(f"{found[cell, 0].mean():.2f}" for cell in cells), f"{gained:+.1f}",
                      f"{found[:, 2].mean():.1f}"])  # fmt: skip
        print(*lines[-1], sep=" | ", flush=True)
    show(header, lines)


def refine_one(truth, table, changed):
    """RF, score and processor seconds of one refinement of CLNJ's tree."""
    start = lt.structure.cl_grouping(lt.information_distances(table), subroutine="nj")
    options = lt.search.RefineOptions(**changed)
    clock = time.process_time()
    model, report = lt.search.refine(
        start, table, caution=options.caution, options=options, random_state=0
    )
    seconds = time.process_time() - clock
    error = np.nan if truth is None else lt.metrics.robinson_foulds(model.tree, truth)
    return error, report.score, seconds


def grown_table(m, seed):
    """Return a random tree and a table of binary variables from it."""
    tree = lt.simulate.random_latent_tree(m, seed)
    truth = lt.simulate.random_discrete_model(tree, 2, seed, STRENGTHS)
    return tree, lt.as_table(truth.sample(2_000, seed + 1), schema=truth.schema)


PARTS = {
    "stocks": run_stocks,
    "trees": run_trees,
    "newsgroups": run_newsgroups,
    "halves": run_halves,
    "growth": run_growth,
    "ablation": run_ablation,
    "pieces": run_pieces,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--first", type=int, default=1_120)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="stocks, few instances, small trees")
    arguments = parser.parse_args()
    quick = ["stocks", "trees", "growth"]
    every = [part for part in PARTS if part not in ("ablation", "pieces")]
    for part in arguments.parts or (quick if arguments.quick else every):
        PARTS[part](arguments)


if __name__ == "__main__":
    main()

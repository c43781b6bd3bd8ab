"""Likelihoods and BIC on the paper's data, beside the paper's and the original program's.

    LATENTREE_DATA=… python benchmarks/quality.py [--seeds 5] [--quick]

All with default settings. The spread is that of the BIC over several random states.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import latentree as lt
from common import data_folder, learned, newsgroups, show, stocks

# method: (options, BIC needed, the paper's BIC, the original program's best)
NEWSGROUPS = {
    "chow_liu": ({}, -239_677.4, -239_677, -239_677.3),
    "rg": ({}, -240_875, -240_875, -238_365.8),
    "nj": ({}, -232_280, -232_257, -232_295.2),
    "clnj": ({}, -232_540, -232_540, -232_569.5),
    "clrg": ({}, -232_700, -232_738, -232_610.1),
    "reg_clnj": ({"n_hidden": 37}, -236_000, -236_553, -235_997.9),
    "reg_clrg": ({"n_hidden": 30}, -235_000, -235_229, -235_023.5),
    "lcm": ({}, -230_925, -230_925, None),
    "bin": ({}, -233_952, -233_952, None),
}
# method: (test log-likelihood needed, the paper's, the original's best)
HALVES = {
    "chow_liu": (None, None, -120_107.4),
    "rg": (None, None, -118_885.8),
    "nj": (None, None, -115_943.8),
    "clnj": (None, None, -116_057.0),
    "clrg": (-116_200, None, -116_183.8),
    "reg_clnj": (None, None, -118_332.9),
    "reg_clrg": (None, None, -117_537.4),
    "lcm": (None, -116_884, None),
    "bin": (None, None, None),
}
# method: (BIC needed, the original's with parameters from distances)
STOCKS = {
    "chow_liu": (-22_656, -22_655.7),
    "rg": (None, -23_351.4),
    "nj": (None, -22_338.9),
    "clnj": (None, -22_752.3),
    "clrg": (-22_335, -22_335.1),
    "reg_clnj": (None, None),
    "reg_clrg": (None, None),
}


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def verdict(value: float, needed: float | None) -> str:
    if needed is None:
        return ""
    return "met" if value >= needed else f"missed by {needed - value:,.0f}"


def timed(X, method, **options):
    start = time.perf_counter()
    fit = learned(X, method, **options)
    return fit.model_, fit.report_, time.perf_counter() - start


def all_rows(words: lt.Table, seeds: int) -> None:
    lines = []
    best = -np.inf
    for method, (options, needed, paper, original) in NEWSGROUPS.items():
        runs = [timed(words, method, random_state=seed, **options) for seed in range(seeds)]
        model, report, seconds = runs[0]
        scores = [run[1].bic_score for run in runs]
        if method in ("rg", "nj", "clnj", "clrg"):
            best = max(best, report.bic_score)
        lines.append([
            method, f"{report.log_likelihood:,.1f}", f"{report.bic_score:,.1f}",
            f"{model.tree.n_hidden}", f"{model.n_parameters}", f"{seconds:.2f}",
            f"{min(scores):,.0f} … {max(scores):,.0f}", number(paper), number(original),
            verdict(report.bic_score, needed),
        ])  # fmt: skip
    header = ["newsgroups, all rows", "log-likelihood", "BIC", "hidden", "parameters", "seconds",
              f"spread of {seeds}", "paper", "original", "needed"]  # fmt: skip
    show(header, lines)
    print(f"best by distances: {best:,.1f} ({verdict(best, -232_257)}: −232,257)\n")


def halves(words: lt.Table, train_rows: np.ndarray, seeds: int) -> None:
    mask = np.zeros(words.n_rows, bool)
    mask[train_rows] = True
    train = lt.Table(words.values[mask], words.schema)
    test = lt.Table(words.values[~mask], words.schema)
    lines = []
    best = -np.inf
    for method, (needed, paper, original) in HALVES.items():
        options = NEWSGROUPS[method][0]
        values = []
        for seed in range(seeds):
            model, report, seconds = timed(train, method, random_state=seed, **options)
            values.append(model.total_log_likelihood(test))
            if seed == 0:
                first = model, report, seconds
        model, report, seconds = first
        best = max(best, values[0])
        lines.append([
            method, f"{report.log_likelihood:,.1f}", f"{values[0]:,.1f}", f"{model.tree.n_hidden}",
            f"{seconds:.2f}", f"{min(values):,.0f} … {max(values):,.0f}", number(paper),
            number(original), verdict(values[0], needed),
        ])  # fmt: skip
    header = ["newsgroups, halves", "train", "test", "hidden", "seconds", f"spread of {seeds}",
              "paper", "original", "needed"]  # fmt: skip
    show(header, lines)
    print(f"best on the test half: {best:,.1f} ({verdict(best, -116_000)}: −116,000)\n")


def returns(table: lt.Table, seeds: int) -> None:
    lines = []
    best = -np.inf
    for method, (needed, original) in STOCKS.items():
        runs = [timed(table, method, random_state=seed) for seed in range(seeds)]
        model, report, seconds = runs[0]
        scores = [run[1].bic_score for run in runs]
        best = max(best, report.bic_score)
        plain = lt.fit_parameters(model.distance_tree(), table, method="distances").report
        structure = _by_distances(table, method)
        lines.append([
            method, f"{report.log_likelihood:,.1f}", f"{report.bic_score:,.1f}",
            "–" if structure is None else f"{structure:,.1f}", f"{model.tree.n_hidden}",
            f"{seconds:.2f}", f"{min(scores):,.0f} … {max(scores):,.0f}", number(original),
            verdict(report.bic_score, needed),
        ])  # fmt: skip
        assert report.log_likelihood >= plain.log_likelihood - 1e-6
    header = ["stocks, 85 series", "log-likelihood", "BIC", "BIC from distances", "hidden",
              "seconds", f"spread of {seeds}", "original", "needed"]  # fmt: skip
    show(header, lines)
    print(f"best: {best:,.1f} ({verdict(best, -22_190)}: −22,190)\n")


def _by_distances(table: lt.Table, method: str) -> float | None:
    """BIC of the same structure with parameters straight from the distances."""
    if method not in lt.structure.METHODS:
        return None
    tree = lt.structure.learn_structure(lt.information_distances(table), method)
    return lt.fit_parameters(tree, table, method="distances").report.bic_score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one random state, stocks only")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        return
    seeds = 1 if arguments.quick else arguments.seeds
    returns(lt.as_table(stocks(standardized=True)), seeds)
    if arguments.quick:
        return
    words = lt.as_table(newsgroups(), "discrete")
    all_rows(words, seeds)
    halves(words, np.loadtxt(folder / "newsgroups_train_rows.txt", dtype=int), seeds)


if __name__ == "__main__":
    main()

"""Held-out likelihood: hidden Chow-Liu trees on binary data sets, mixtures of trees on real tables.

    LATENTREE_DATA=… python benchmarks/density.py [NAME …] [--seeds N] [--impute | --tables]

Every set NAME.train.txt.gz in the folder ``density`` is fitted by one and the same call, by
defaults: ``LatentTree(method="hclt").fit(train, X_valid=valid)``. Figures are mean
log-likelihoods a test row; a column that is constant in the training rows counts as a coin with
one more row on either side. Published figures are as quoted in the literature (HCLT: Liu and Van
den Broeck 2021; ID-SPN: Rooshenas and Lowd 2014; MT: mixtures of trees), not rerun here.
Seconds are of the processor. ``--impute`` fills 10 % of the test rows' cells instead, beside
neighbors and a flat mixture.

``--tables`` fits real tables instead: 70 % of the rows, in three random splits, standardized by the
training rows; ``LatentTree("chow_liu", n_trees="auto")`` beside one tree, factor analysis, Ledoit
and Wolf's covariance and a Gaussian mixture, whose sizes and kinds are chosen by cross-validation.
The answers of bfi are whole numbers, whose density has no upper limit: a mixture with a component
of variance 1e-6 on one answer wins. So each answer is spread evenly over its unit, for all models.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import time
import warnings
from pathlib import Path

import numpy as np

import latentree as lt
from common import data_folder, show

PUBLISHED = {  # MT, ID-SPN, HCLT
    "nltcs": (-6.01, -6.02, -6.00),
    "plants": (-12.95, -12.54, -14.26),
    "baudio": (-40.08, -39.79, -39.77),
    "accidents": (-29.63, -26.98, -26.74),
    "dna": (-85.14, -81.21, -79.06),
}


def rows_of(path: Path) -> np.ndarray:
    """Rows of 0 and 1, one a line."""
    with gzip.open(path, "rb") as file:
        lines = file.read().replace(b",", b"").replace(b" ", b"").split()
    return (np.frombuffer(b"".join(lines), np.uint8) - ord("0")).reshape(len(lines), -1)


def parts_of(folder: Path, name: str) -> list[np.ndarray]:
    return [rows_of(folder / f"{name}.{part}.txt.gz") for part in ("train", "valid", "test")]


def mean_score(learned: lt.LatentTree, train: np.ndarray, test: np.ndarray) -> float:
    """Mean log-likelihood of test rows; constant columns count as smoothed coins."""
    total = learned.score(test)
    for column in np.flatnonzero(train.min(axis=0) == train.max(axis=0)):
        same = np.mean(test[:, column] == train[0, column])
        n = len(train) + 2.0
        total += same * np.log((n - 1.0) / n) + (1.0 - same) * np.log(1.0 / n)
    return float(total)


def line_of(name: str, folder: Path, n_seeds: int) -> list[str]:
    train, valid, test = parts_of(folder, name)
    flat = lt.LatentTree("chow_liu", family="discrete", prior_weight=1.0).fit(train)
    scores, seconds, learned = [], 0.0, None
    for seed in range(n_seeds):
        start = time.process_time()
        learned = lt.LatentTree("hclt", family="discrete", random_state=seed)
        learned.fit(train, X_valid=valid)
        seconds += (time.process_time() - start) / n_seeds
        scores.append(mean_score(learned, train, test))
    spread = f" ± {np.std(scores, ddof=1):.3f}" if n_seeds > 1 else ""
    assert learned is not None
    published = [f"{value:.2f}" for value in PUBLISHED.get(name, ())] or ["–"] * 3
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    states = max(part.n_states.max() for part in learned.model_.components)
    return [
        name, f"{mean_score(flat, train, test):.2f}", *published, f"{np.mean(scores):.3f}{spread}",
        f"{states}", f"{learned.model_.n_parameters:,}", f"{seconds:.0f}", f"{memory:.1f}",
    ]  # fmt: skip


def impute_line(name: str, folder: Path) -> list[str]:
    """Share of hidden cells that are filled in rightly, and seconds, for three ways."""
    from sklearn.impute import KNNImputer

    train, valid, test = parts_of(folder, name)
    hidden = np.random.default_rng(0).random(test.shape) < 0.1
    holes = np.where(hidden, np.nan, test.astype(float))
    line = [
        name,
        f"{np.mean((train.mean(axis=0) > 0.5)[np.nonzero(hidden)[1]] == test[hidden]):.4f}",
    ]
    tree = lt.LatentTree("hclt", family="discrete", random_state=0).fit(train, X_valid=valid)
    classes = lt.LatentTree("lcm", family="discrete", random_state=0).fit(train)
    neighbors = KNNImputer(n_neighbors=10).fit(train[:3_000].astype(float))
    for fill in (tree.impute, classes.impute, neighbors.transform):
        start = time.process_time()
        filled = np.asarray(fill(holes), float)
        seconds = time.process_time() - start
        right = np.mean((filled[hidden] > 0.5) == (test[hidden] > 0))
        line += [f"{right:.4f}", f"{seconds:.2f}"]
    return line


def real_table(name: str, root: Path) -> np.ndarray:
    """Return a table of real columns by its name."""
    import pandas as pd
    from sklearn import datasets

    if name in ("breast_cancer", "wine"):
        return np.asarray(getattr(datasets, f"load_{name}")().data)
    if name == "bfi":
        answers = pd.read_csv(root / "tables" / "bfi.csv.gz")
        items = [name for name in answers if name[0] in "ACENO" and name[1:].isdigit()]
        values = answers[items].dropna().to_numpy(float)
        return values + np.random.default_rng(0).uniform(-0.5, 0.5, values.shape)
    import statsmodels.api as sm

    if name == "macro":
        table = sm.datasets.macrodata.load_pandas().data.drop(columns=["year", "quarter"])
        return np.diff(table.to_numpy(float), axis=0)
    return np.asarray(sm.datasets.star98.load_pandas().exog, float)


REAL_TABLES = ("breast_cancer", "wine", "bfi", "macro", "star98")


def halves(table: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 70 % of the rows and the others, standardized by the first."""
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = np.split(table[order], [round(0.7 * len(table))])
    center, scale = train.mean(axis=0), train.std(axis=0)
    return (train - center) / scale, (test - center) / scale


def others(train: np.ndarray, test: np.ndarray) -> list[float]:
    """Scores of factor analysis, Ledoit and Wolf's covariance and a Gaussian mixture."""
    from sklearn.covariance import LedoitWolf
    from sklearn.decomposition import FactorAnalysis
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import GridSearchCV

    factors = [k for k in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15) if k < train.shape[1]]
    factor = GridSearchCV(FactorAnalysis(), {"n_components": factors})
    kinds = {"n_components": [1, 2, 3, 4, 6, 8, 12], "covariance_type": ["full", "tied", "diag"]}
    mixture = GridSearchCV(GaussianMixture(random_state=0), kinds, error_score=-np.inf)
    return [each.fit(train).score(test) for each in (factor, LedoitWolf(), mixture)]


def table_lines(name: str, root: Path, n_splits: int) -> list[list[str]]:
    """Return a line for every split, and their means."""
    table = real_table(name, root)
    scores = []
    for seed in range(n_splits):
        train, test = halves(table, seed)
        one = lt.LatentTree("clrg", family="gaussian").fit(train)
        start = time.process_time()
        trees = lt.LatentTree("chow_liu", family="gaussian", n_trees="auto", random_state=0)
        trees.fit(train)
        seconds = time.process_time() - start
        row = [one.score(test), *others(train, test), trees.score(test)]
        scores.append([*row, trees.model_.n_trees, seconds])
        print(name, seed, [round(value, 2) for value in scores[-1]], flush=True)
    rows = [*scores, np.mean(scores, axis=0)]
    labels = [*map(str, range(n_splits)), "mean"]
    return [
        [name, label, *(f"{value:.2f}" for value in row[:5]), f"{row[5]:.0f}", f"{row[6]:.0f}"]
        for label, row in zip(labels, rows, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--impute", action="store_true")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    root = data_folder()
    if root is None:
        return
    warnings.simplefilter("ignore")  # constant columns are set aside, and what others warn of
    if options.tables:
        header = ["table", "split", "clrg", "FA", "Ledoit-Wolf", "GMM", "trees", "number", "s"]
        names = [name for name in REAL_TABLES if not options.names or name in options.names]
        show(header, [line for name in names for line in table_lines(name, root, 3)])
        return
    folder = root / "density"
    found = sorted(path.name.split(".")[0] for path in folder.glob("*.train.txt.gz"))
    names = [name for name in found if not options.names or name in options.names]
    if options.impute:
        header = ["set", "most common", "hclt", "s", "lcm", "s", "neighbors", "s"]
        show(header, [impute_line(name, folder) for name in names])
        return
    header = ["set", "Chow-Liu", "MT", "ID-SPN", "HCLT", "hclt", "states", "parameters", "s", "GB"]
    show(header, [line_of(name, folder, options.seeds) for name in names])


if __name__ == "__main__":
    main()

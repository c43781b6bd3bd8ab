"""Independent columns of every kind: how often a method finds something where nothing is.

For every kind of columns and size of table, the share of random tables in which the test of
independence, which all methods share, finds something; with ``--methods`` also how many of them
each method returns with an edge. Then tables in which ten of fifty real columns share a factor:
how many of the other forty are attached.

    python benchmarks/noise.py [--tables 100] [--first 0] [--methods clrg,refined]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from common import learned, show
from latentree.distances import as_sample
from latentree.structure import independent_groups

SIZES = ((100, 50), (1_000, 20), (50, 10), (200, 100))


def coded(k):
    return lambda n, m, rng: pd.DataFrame(rng.integers(0, k, (n, m)))


def mixed(n, m, rng):
    """Normal numbers, counts, and categories of two to five states."""
    columns = {}
    for j in range(m):
        kind = j % 3
        columns[f"x{j}"] = (
            rng.normal(size=n) if kind == 0
            else rng.poisson(3.0, n) if kind == 1
            else pd.Categorical([f"s{v}" for v in rng.integers(0, 2 + j % 4, n)])
        )  # fmt: skip
    return pd.DataFrame(columns)


def skewed_mixed(n, m, rng):
    """Columns as in :func:`mixed`, but numbers from a log-normal distribution."""
    frame = mixed(n, m, rng)
    for name in frame.columns[::3]:
        frame[name] = np.exp(frame[name])
    return frame


def contaminated(n, m, rng):
    """Normal numbers, of which one in twenty has six times the spread."""
    return rng.normal(size=(n, m)) * np.where(rng.random((n, m)) < 0.05, 6.0, 1.0)


def two_groups(n, m, rng):
    """Normal numbers, of which one in ten is eight standard deviations above the rest."""
    return rng.normal(size=(n, m)) + np.where(rng.random((n, m)) < 0.1, 8.0, 0.0)


def ordered(n, m, rng):
    """Answers from 1 to 5."""
    answers = rng.integers(1, 6, (n, m))
    return pd.DataFrame({
        f"x{j}": pd.Categorical(answers[:, j], categories=range(1, 6), ordered=True)
        for j in range(m)
    })  # fmt: skip


KINDS = {
    "normal": ("gaussian", lambda n, m, rng: rng.normal(size=(n, m))),
    "exponential": ("gaussian", lambda n, m, rng: rng.exponential(size=(n, m))),
    "log-normal": ("gaussian", lambda n, m, rng: np.exp(rng.normal(size=(n, m)))),
    "t(3)": ("gaussian", lambda n, m, rng: rng.standard_t(3, (n, m))),
    "contaminated": ("gaussian", contaminated),
    "two groups": ("gaussian", two_groups),
    "binary": ("discrete", coded(2)),
    "rare ones": (
        "discrete", lambda n, m, rng: pd.DataFrame((rng.random((n, m)) < 0.1).astype(int)),
    ),
    "K = 3": ("discrete", coded(3)),
    "K = 5": ("discrete", coded(5)),
    "ordered": ("auto", ordered),
    "counts": ("mixed", lambda n, m, rng: pd.DataFrame(rng.poisson(3.0, (n, m)))),
    "mixed": ("mixed", mixed),
    "mixed, skewed": ("mixed", skewed_mixed),
}  # fmt: skip


def constant_free(table):
    """Leave out columns of one value, which no learner takes."""
    frame = pd.DataFrame(table)
    return frame.loc[:, frame.nunique() > 1].rename(columns=str)


def cell(kind, n, m, tables, first, methods):
    family, draw = KINDS[kind]
    found = dict.fromkeys(("test", *methods), 0)
    for seed in range(first, first + tables):
        table = constant_free(draw(n, m, np.random.default_rng([seed, n, m])))
        sample = as_sample(table, family)
        groups = independent_groups(sample.distances)
        found["test"] += len(set(groups.tolist())) < sample.n_columns
        for method in methods:
            found[method] += learned(table, method, family).tree_.n_edges > 0
    return [kind, f"{n:,} x {m}", *(f"{count / tables:.2f}" for count in found.values())]


def strangers(n, tables, first):
    """How many of forty columns beside ten that share a factor are attached to them."""
    attached = []
    for seed in range(first, first + tables):
        rng = np.random.default_rng([seed, n])
        X = rng.normal(size=(n, 50))
        X[:, :10] += rng.normal(size=(n, 1))
        groups = independent_groups(as_sample(X).distances)
        attached.append(np.bincount(groups).max() - 10)
    return [f"{n:,}", f"{np.mean(attached):.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--methods", default="")
    options = parser.parse_args()
    methods = [name for name in options.methods.split(",") if name]
    warnings.simplefilter("ignore")
    lines = [
        cell(kind, n, m, options.tables, options.first, methods) for kind in KINDS for n, m in SIZES
    ]
    show(["independent columns", "size", "test", *methods], lines)
    print()
    lines = [strangers(n, options.tables, options.first) for n in (200, 1_000)]
    show(["rows", "strangers attached, of 40"], lines)


if __name__ == "__main__":
    main()

"""What the benchmarks share: the paper's data where it is, random models, and tables."""

from __future__ import annotations

import gzip
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import latentree as lt
import ratios

FAMILIES = ("gaussian", "K = 2", "K = 3")
"""Of random models: real variables, or K states each."""


def data_folder() -> Path | None:
    """Folder of the paper's data, or None with a note."""
    folder = os.environ.get("LATENTREE_DATA", "")
    if not folder or not Path(folder).is_dir():
        print("LATENTREE_DATA is not set: what needs the paper's data is left out")
        return None
    return Path(folder)


def newsgroups() -> np.ndarray | None:
    """Newsgroups as 0/1 codes, 16,242 × 100, or None."""
    folder = data_folder()
    if folder is None:
        return None
    with gzip.open(folder / "newsgroups.csv.gz", "rt") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int8)


def random_model(tree: lt.Tree, family: str, rng: np.random.Generator) -> lt.models.TreeModel:
    """A model of one of the FAMILIES, correlations of edges uniform on [0.2, 0.8]."""
    if family == "gaussian":
        return lt.simulate.random_gaussian_model(tree, rng, (0.2, 0.8))
    states = int(family[-1])
    # 1 − K·θ is the correlation of an edge in the symmetric family: (1 − ρ)/K off the diagonal.
    theta = (1.0 - rng.uniform(0.2, 0.8, tree.n_nodes)) / states
    return lt.DiscreteTreeModel.symmetric(tree, states, theta)


def learned(
    rows, method: str, family: str = "auto", random_state: int = 0, **options
) -> lt.LatentTree:
    """What a user gets, warnings left out: quality is measured behind the public door."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lt.LatentTree(method, family, random_state=random_state, **options).fit(rows)


def show(header: list[str], lines: list[list[str]], keep: str = "") -> None:
    """Print a table, first column to the left, the others to the right.

    With ``LATENTREE_KEEP=1`` it is kept for the pages of evidence, under a name.
    """
    if keep and os.environ.get("LATENTREE_KEEP"):
        arguments = [Path(sys.argv[0]).name, *sys.argv[1:]]
        ratios.write_table(keep, header, lines, f"python benchmarks/{' '.join(arguments)}")
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in [header, ["-" * width for width in widths], *lines]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells))
    print(flush=True)


def best_bold(cells: list[str], best=max) -> list[str]:
    """Write the best of some numbers in bold, and all that look the same."""
    top = best(float(cell) for cell in cells)
    shown = [cell.replace("-", "−") for cell in cells]
    return [
        f"**{text}**" if float(cell) == top else text
        for cell, text in zip(cells, shown, strict=True)
    ]


def stocks(standardized: bool = False) -> np.ndarray | None:
    """Monthly returns of 84 companies and the index, 216 × 85, or None."""
    folder = data_folder()
    if folder is None:
        return None
    with open(folder / "sp100_monthly_returns.csv") as file:
        width = len(file.readline().split(","))
        values = np.loadtxt(file, delimiter=",", usecols=range(1, width))
    return (values - values.mean(axis=0)) / values.std(axis=0) if standardized else values

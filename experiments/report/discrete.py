"""The section on discrete models."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from experiments.discrete import COLUMNS, FAMILIES
from experiments.report import published
from experiments.report.synthetic import Cell, cells_of
from experiments.report.writing import (
    COLORS,
    MARKERS,
    Figures,
    folded,
    number,
    significant,
    table,
)
from experiments.samples import METHODS
from experiments.synthetic import COLUMNS as GAUSSIAN_COLUMNS


def section(records: list[dict[str, Any]], gaussian: list[dict[str, Any]], figures: Figures) -> str:
    """Write it, beside what Gaussian models gave."""
    cells = cells_of(records, COLUMNS, "family", "tree")
    beside = cells_of(gaussian, GAUSSIAN_COLUMNS, "tree") if gaussian else {}
    sizes = sorted({key[2] for key in cells})
    all_cells = {
        ("Gaussian", *key): cell for key, cell in beside.items() if key[1] in sizes
    } | cells
    runs = next(iter(cells.values())).runs
    parts = [
        INTRODUCTION.format(
            runs="one random model each" if runs == 1 else f"means over {runs} random models",
            **_agreement(all_cells),
        ),
        _draw(all_cells, figures),
        "*Robinson-Foulds distance, mean ± one standard error.*",
        folded("All figures of the discrete models", _all(cells)),
    ]
    return "\n\n".join(parts)


INTRODUCTION = """\
## The same trees, discrete samples

The paper shows Gaussian models only, and says that discrete ones behave alike. Here are symmetric
models with two and four states (1 − K·θ uniform on [0.2, 0.8], where Gaussian models have the
correlation) and general ones with three states, {runs}. Parameters of symmetric models come from
the distances, those of general ones from EM. The order of the methods is much the same: between a
family and the Gaussian models, the rank correlation of RF over trees, sample sizes and methods is
{ranks}. General models need more samples, because a determinant is near zero as soon as one of
its singular values is."""


def _agreement(cells: dict[Any, Cell]) -> dict[str, str]:
    """Rank correlation of RF with the Gaussian models, family by family."""
    out = []
    for family in FAMILIES:
        pairs = [
            (cells["Gaussian", *key[1:]].mean["rf"], cell.mean["rf"])
            for key, cell in cells.items()
            if key[0] == family and ("Gaussian", *key[1:]) in cells
        ]
        if len(pairs) > 2:
            ranks = np.argsort(np.argsort(np.array(pairs), axis=0, kind="stable"), axis=0)
            out.append(f"{number(np.corrcoef(ranks.T)[0, 1], 2)} ({family})")
    return {"ranks": ", ".join(out) or "not known"}


def _draw(cells: dict[Any, Cell], figures: Figures) -> str:
    families = list(dict.fromkeys(key[0] for key in cells))
    trees = list(dict.fromkeys(key[1] for key in cells))
    figure, axes = figures.new(
        len(trees), len(families), figsize=(10, 7.2), sharex=True, sharey=True, squeeze=False
    )
    for row, tree in zip(axes, trees, strict=True):
        for ax, family in zip(row, families, strict=True):
            for place, method in enumerate(METHODS):
                chosen = sorted(
                    (key[2], cell)
                    for key, cell in cells.items()
                    if (key[0], key[1], key[3]) == (family, tree, method)
                )
                ax.errorbar(
                    [n * 1.05 ** (place - 1.5) for n, _ in chosen],
                    [cell.mean["rf"] for _, cell in chosen],
                    [cell.error("rf") for _, cell in chosen],
                    color=COLORS[method], marker=MARKERS[method], markersize=4, linewidth=1.4,
                    elinewidth=1.0, capsize=1.5,
                )  # fmt: skip
            ax.set_xscale("log")
            ax.set_yscale("symlog", linthresh=0.1, linscale=0.5)
            ax.set_yticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
            ax.set_yticks([], minor=True)
            ax.set_ylim(-0.015, 220)
        row[0].set_ylabel(f"{tree}: RF")
    for ax, family in zip(axes[0], families, strict=True):
        ax.set_title(family)
    for ax in axes[-1]:
        ax.set_xlabel("number of samples")
    handles = [
        Line2D([], [], color=COLORS[m], marker=MARKERS[m], markersize=5, label=published.NAMES[m])
        for m in METHODS
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figures.save(figure, "discrete", "Robinson-Foulds distance for four families of models")


def _all(cells: dict[Any, Cell]) -> str:
    header = ["family", "tree", "n", "method", "wrong", "RF", "hidden", "D(truth ‖ est.)"]
    rows = [
        [
            family, tree, number(n), published.NAMES[method],
            f"{number(100 * cell.mean['error'])} %",
            *(f"{number(cell.mean[c], 2, c == 'surplus')} ± {number(cell.error(c), 2)}"
              for c in ("rf", "surplus")),
            f"{significant(cell.mean['kl'], 3)} ± {significant(cell.error('kl'), 1)}",
        ]
        for (family, tree, n, method), cell in cells.items()
    ]  # fmt: skip
    return table(header, rows, left=4)

"""The section on running times."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.complexity import METHODS, N_SAMPLES, VARIABLES
from experiments.report import published
from experiments.report.writing import COLORS, MARKERS, Figures, listed, number, significant, table

BOUNDS = {
    "chow_liu": {"double star": "m²·log m", "HMM": "m²·log m", "5-complete": "m²·log m"},
    "cl_blind": {"double star": "m²·log m", "HMM": "m²·log m", "5-complete": "m²·log m"},
    "nj": {"double star": "m³", "HMM": "m³", "5-complete": "m³"},
    "rg": {"double star": "m³", "HMM": "m⁴", "5-complete": "m³·log m"},
    "clnj": {"double star": "m³", "HMM": "m²·log m", "5-complete": "m²·log m"},
    "clrg": {"double star": "m³", "HMM": "m²·log m", "5-complete": "m²·log m"},
}
"""The theorems' bounds on these trees: diam·m³ for RG, m²·log m + |J|·Δ³ for CLGrouping."""
POWER = {"m²·log m": 2.3, "m³": 3.0, "m³·log m": 3.3, "m⁴": 4.0}
"""Exponents that the bounds look like over these sizes: log m adds about 0.2 to 0.3."""


def section(records: list[dict[str, Any]], figures: Figures) -> str:
    """Write it."""
    rows = {}
    for record in records:
        p = record["parameters"]
        rows[p["distances"], p["tree"], p["method"]] = np.array(record["result"]["rows"], float)
    parts = [
        INTRODUCTION.format(n=number(N_SAMPLES)),
        _draw(rows, figures),
        "*Processor time of one thread against the number of observed variables; thin lines: m², "
        "m³ and m⁴.*",
        _table(rows),
        _words(rows),
    ]
    return "\n\n".join(parts)


INTRODUCTION = """\
## How running time grows

The theorems bound the time on exact distances: RG O(diam·m³), CLBlind O(m²·log m), CLRG O(m²·log
m + |J|·Δ³), where J are the inner nodes of the spanning tree and Δ is its largest degree. Here
are processor times on exact distances and on distances from {n} samples (edge correlations
uniform on [0.5, 0.8]), with exponents fitted to the last three sizes."""


def _exponent(rows: Any) -> float | None:
    """Slope of log time against log m over the last three sizes."""
    last = rows[-3:]
    if len(last) < 2 or last[-1, 1] <= 0 or last[0, 1] <= 0:
        return None
    return float(np.polyfit(np.log(last[:, 0]), np.log(last[:, 1]), 1)[0])


def _draw(rows: dict[Any, Any], figures: Figures) -> str:
    figure, axes = figures.new(2, 3, figsize=(10, 6.4), sharex=True, sharey=True)
    for line, kind in zip(axes, ("exact", "sampled"), strict=True):
        for ax, tree in zip(line, VARIABLES, strict=True):
            for power, anchor in ((2, 2e-7), (3, 2e-9), (4, 2e-11)):
                m = np.array([20.0, 1500.0])
                ax.plot(m, anchor * m**power, color="#B9C0C7", linewidth=0.7, zorder=1)
            for method in METHODS:
                found = rows.get((kind, tree, method))
                if found is not None:
                    ax.plot(found[:, 0], found[:, 1], color=COLORS[method], linewidth=1.4,
                            marker=MARKERS[method], markersize=4.5,
                            label=published.NAMES[method])  # fmt: skip
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xlim(17, 1600)
            ax.set_ylim(1e-4, 40)
            ax.set_xticks([20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1,000"])
            ax.set_xticks([], minor=True)
        what = "exact distances" if kind == "exact" else f"{number(N_SAMPLES)} samples"
        line[0].set_ylabel(f"{what}: seconds")
    for ax, tree in zip(axes[0], VARIABLES, strict=True):
        ax.set_title(tree)
    for ax in axes[1]:
        ax.set_xlabel("observed variables m")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figures.save(figure, "complexity", "Running time of six algorithms on three trees")


def _table(rows: dict[Any, Any]) -> str:
    lines = []
    for method in METHODS:
        for tree in VARIABLES:
            cells = []
            for kind in ("exact", "sampled"):
                found = rows.get((kind, tree, method))
                if found is None:
                    cells += ["–", "–"]
                    continue
                power = _exponent(found)
                cells.append("–" if power is None else f"m^{number(power, 1)}")
                cells.append(f"{significant(found[-1, 1])} s at {number(found[-1, 0])}")
            lines.append([published.NAMES[method], tree, f"O({BOUNDS[method][tree]})", *cells])
    header = ["", "tree", "bound", "exact", "largest", "samples", "largest"]
    return table(header, lines, left=3)


def _words(rows: dict[Any, Any]) -> str:
    """Which exponents are beyond the bound, and what Δ and |J| were."""
    beyond = {"exact": [], "sampled": []}
    for (kind, tree, method), found in rows.items():
        power = _exponent(found)
        if power is not None and power > POWER[BOUNDS[method][tree]] + 0.3:
            name = f"{published.NAMES[method]} on the {tree}"
            beyond[kind].append(f"{name} (m^{number(power, 1)})")
    text = [
        "Exact distances, exponents above the bound's by more than 0.3: "
        f"{listed(beyond['exact'])}. "
        f"From samples: {listed(beyond['sampled'])}."
    ]
    text.append(SMALL)
    degrees = [
        f"{tree} |J| = {number(found[-1, 3])} and Δ = {number(found[-1, 4])} "
        f"at m = {number(found[-1, 0])}"
        for tree in VARIABLES
        if (found := rows.get(("exact", tree, "clrg"))) is not None
    ]
    text.append(f"The spanning trees of the exact distances have: {'; '.join(degrees)}.")
    wrong = [
        f"{published.NAMES[method]} on the {tree}"
        for (kind, tree, method), found in rows.items()
        if kind == "exact" and method in ("nj", "rg", "clnj", "clrg") and found[:, 5].any()
    ]
    text.append(
        "From exact distances NJ, RG, CLNJ and CLRG give the true tree back at every size"
        + (f", except {listed(wrong)}." if wrong else ".")
    )
    return " ".join(text)


SMALL = """\
What takes milliseconds grows more slowly than its bound: a fixed cost of some hundred
microseconds is still seen, and a matrix that no longer fits into the cache makes the last step
steeper. Learning from samples has two terms of its own beside the theorems' (lengths are fitted
while edges are contracted one by one, which makes NJ and CLNJ slow on stars, where all of them
meet; with more than 128 variables CLGrouping does not look at weak links again, and with more
than 1,000 nodes lengths are fitted with less effort, which is why a larger tree may even take
less time)."""

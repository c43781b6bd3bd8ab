"""The section on sample complexity."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from experiments.consistency import STRENGTH
from experiments.report import published
from experiments.report.writing import COLORS, MARKERS, Figures, listed, number, table
from experiments.samples import METHODS

WANTED = 0.9


def section(records: list[dict[str, Any]], figures: Figures) -> str:
    """Write it."""
    shares, sizes, runs = _shares(records)
    needed = {key: _needed(share, sizes[key[0]]) for key, share in shares.items()}
    fits = {(tree, method): _fit(needed, tree, method) for tree in sizes for method in METHODS}
    parts = [
        INTRODUCTION.format(strength=STRENGTH, runs=runs),
        _draw(needed, fits, sizes, figures),
        CAPTION,
        _table(needed, fits, sizes),
        _words(needed, fits, sizes, shares),
    ]
    return "\n\n".join(parts)


INTRODUCTION = """\
## How many samples a tree takes

The theorems on relaxed RG and CLRG say that, for trees whose effective depth does not grow, n >
C·log m samples are enough for the right structure, where m is the number of observed variables;
for NJ on chains no power of m is. Here is the number of samples from which the exact tree is
found in 90 % of {runs} runs, for growing double stars and HMMs. Every edge has correlation
{strength}: the theorems ask for distances that stay within bounds as m grows, and weak edges
among more and more random ones would blur that. Sample sizes are half an octave apart and nested;
the share of right trees is made monotone, and the 90 % point is interpolated on the logarithm of
n."""

CAPTION = """\
*Samples needed for 90 % exact recovery; on this axis growth like log m is a straight line, and
dashed lines are least-squares fits a + b·log m. A triangle at the upper edge: not reached with
the most samples tried.*"""


def _shares(records: list[dict[str, Any]]) -> tuple[dict[Any, Any], dict[str, list[int]], int]:
    """Share of right trees by tree, m, method and size, over complete runs."""
    runs: dict[Any, dict[int, dict[str, list[bool]]]] = defaultdict(dict)
    sizes = {}
    for record in records:
        p = record["parameters"]
        runs[p["tree"], p["m"]][p["run"]] = record["result"]["found"]
        sizes[p["tree"]] = p["sizes"]
    complete = set.intersection(*(set(done) for done in runs.values()))
    shares = {
        (tree, m, method): np.mean([done[run][method] for run in complete], axis=0)
        for (tree, m), done in runs.items()
        for method in METHODS
    }
    return shares, sizes, len(complete)


def _needed(share: Any, sizes: list[int]) -> float | None:
    """Number of samples at which a share crosses 90 %, None if it does not."""
    monotone = isotonic_regression(share)
    above = np.flatnonzero(monotone >= WANTED)
    if above.size == 0:
        return None
    i = int(above[0])
    if i == 0:
        return float(sizes[0])
    low, high = monotone[i - 1], monotone[i]
    part = (WANTED - low) / (high - low)
    return float(np.exp(np.log(sizes[i - 1]) + part * np.log(sizes[i] / sizes[i - 1])))


def _fit(needed: dict[Any, float | None], tree: str, method: str) -> dict[str, float] | None:
    """Fit a + b·log m and c·m^p to what was reached for every m."""
    points = [(m, n) for (t, m, k), n in needed.items() if (t, k) == (tree, method)]
    if any(n is None for _, n in points) or len(points) < 3:
        return None
    m, n = np.array(points, float).T
    slope, start = np.polyfit(np.log(m), n, 1)
    power = np.polyfit(np.log(m), np.log(n), 1)[0]
    return {"slope": slope, "start": start, "power": power}


def _draw(
    needed: dict[Any, float | None],
    fits: dict[Any, Any],
    sizes: dict[str, list[int]],
    figures: Figures,
) -> str:
    figure, axes = figures.new(1, len(sizes), figsize=(10, 4.0), squeeze=False)
    for ax, (tree, tried) in zip(axes[0], sizes.items(), strict=True):
        reached = [n for (t, _, _), n in needed.items() if t == tree and n is not None]
        top = 1.12 * max(reached, default=tried[-1])
        for place, method in enumerate(METHODS):
            chosen = sorted((m, n) for (t, m, k), n in needed.items() if (t, k) == (tree, method))
            style = {"color": COLORS[method], "label": published.NAMES[method]}
            known = [(m, n) for m, n in chosen if n is not None]
            if known:
                ax.plot(*zip(*known, strict=True), marker=MARKERS[method], markersize=5,
                        linewidth=1.4, **style)  # fmt: skip
            else:
                ax.plot([], [], marker=MARKERS[method], **style)
            never = [m * 1.06 ** (place - 1.5) for m, n in chosen if n is None]
            ax.plot(never, [top] * len(never), linestyle="none", marker="^", markersize=7,
                    markerfacecolor="none", color=COLORS[method])  # fmt: skip
            fit = fits[tree, method]
            if fit is not None:
                m = np.array([chosen[0][0], chosen[-1][0]])
                ax.plot(m, fit["start"] + fit["slope"] * np.log(m), color=COLORS[method],
                        linestyle=(0, (4, 2)), linewidth=0.9)  # fmt: skip
        variables = sorted({m for t, m, _ in needed if t == tree})
        ax.set_xscale("log")
        ax.set_xticks(variables, [str(m) for m in variables])
        ax.set_xticks([], minor=True)
        ax.set_ylim(0, 1.04 * top)
        ax.yaxis.set_major_formatter(lambda value, _: number(value))
        ax.set_title(tree)
        ax.set_xlabel("observed variables m")
    axes[0][0].set_ylabel("samples for 90 % exact recovery")
    axes[0][0].legend(loc="upper left")
    return figures.save(figure, "consistency", "Samples needed against number of variables")


def _table(
    needed: dict[Any, float | None], fits: dict[Any, Any], sizes: dict[str, list[int]]
) -> str:
    variables = sorted({m for _, m, _ in needed})
    rows = []
    for tree, tried in sizes.items():
        for method in METHODS:
            cells = [
                f"> {number(tried[-1])}" if n is None else number(n)
                for n in (needed.get((tree, m, method)) for m in variables)
            ]
            fit = fits[tree, method]
            power = "–" if fit is None else number(fit["power"], 2)
            rows.append([tree, published.NAMES[method], *cells, power])
    header = ["samples for 90 %", "", *(f"m = {m}" for m in variables), "power of m"]
    return table(header, rows, left=2)


def _words(
    needed: dict[Any, float | None],
    fits: dict[Any, Any],
    sizes: dict[str, list[int]],
    shares: dict[Any, Any],
) -> str:
    powers = [
        f"{published.NAMES[method]} on the {tree} m^{number(fit['power'], 2)}"
        for (tree, method), fit in fits.items()
        if fit is not None
    ]
    text = (
        "*Power of m* is the exponent p of a fit c·m^p; growth like log m looks like a small and "
        f"falling power. It is: {listed(powers)}. "
    )
    fast = [key for key, fit in fits.items() if fit is not None and fit["power"] > 0.5]
    if fast:
        names = listed([f"{published.NAMES[method]} on the {tree}" for tree, method in fast])
        text += f"Faster than log m over these sizes: {names}. " + FAST + " "
    never = [m for (t, m, k), n in needed.items() if (t, k) == ("HMM", "nj") and n is None]
    if never:
        last = max(never)
        share = float(shares["HMM", last, "nj"][-1])
        text += (
            f"NJ needs more than {number(sizes['HMM'][-1])} samples for HMMs of "
            f"{listed([str(m) for m in sorted(never)])} variables; with so many it finds "
            f"{number(100 * share)} % of those with {last}."
        )
    return text


FAST = """\
All of these begin with pairs, and the more leaves a star has, the more pairs there are that look
closest by chance; the paper, too, remarks that the spanning tree is least accurate for stars and
most accurate for chains. RG compares whole families instead, and further leaves help it."""

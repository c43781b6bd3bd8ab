"""Gaussian variables behind answers as factor analysts read them."""

from __future__ import annotations

from typing import Any

from latentree.cli._screen import Screen
from latentree.models import CopulaTreeModel, Model

_MOST_FACTORS = 12  # whose correlations are printed side by side


def factor_facts(model: Model) -> dict[str, Any]:
    """Loadings, thresholds and factors for machines; nothing for other models."""
    if not isinstance(model, CopulaTreeModel) or not model.tree.n_hidden:
        return {}
    return {
        "loadings": model.loadings(),
        "thresholds": model.thresholds(),
        "factors": model.factors(),
    }


def show_factors(screen: Screen, model: Model) -> None:
    """Print loadings, thresholds, reliabilities and correlations of factors."""
    if not isinstance(model, CopulaTreeModel) or not model.tree.n_hidden:
        return
    screen.text()
    header = ["Variable", "Factor", "Loading", "Communality", "Thresholds"]
    screen.table(header, _loading_rows(model))
    factors = model.factors()
    names = factors["factor"][:_MOST_FACTORS]
    rows = [
        [name, f"{factors['reliability'][k]:.2f}", f"{factors['n_variables'][k]:,}"]
        + [f"{factors[other][k]:.2f}" if j < k else "" for j, other in enumerate(names[:-1])]
        for k, name in enumerate(names)
    ]
    screen.text()
    screen.table(["Factor", "Reliability", "Variables", *names[:-1]], rows)
    screen.text(
        "Loading: correlation of the normal variable behind a column with its factor; communality: "
        "its square.\nReliability: share of a factor's variance in the scores of complete rows; "
        "then correlations of factors."
    )
    if len(factors["factor"]) > len(names):
        screen.text(f"{len(factors['factor']) - len(names)} factors more: --json lists all.")


def _loading_rows(model: CopulaTreeModel) -> list[list[str]]:
    loadings, cuts = model.loadings(), model.thresholds()
    thresholds: dict[str, list[str]] = {}
    for name, cut in zip(cuts["variable"], cuts["threshold"], strict=True):
        thresholds.setdefault(name, []).append(f"{cut:.2f}")
    order = sorted(
        range(len(loadings["variable"])),
        key=lambda j: (model.tree.names.index(loadings["factor"][j] or loadings["variable"][j]),
                       -abs(loadings["loading"][j])),
    )  # fmt: skip
    return [
        [
            loadings["variable"][j],
            loadings["factor"][j] or "–",
            f"{loadings['loading'][j]:.2f}",
            f"{loadings['communality'][j]:.2f}",
            " ".join(thresholds.get(loadings["variable"][j], [])),
        ]
        for j in order
    ]

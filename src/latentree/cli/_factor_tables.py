"""Gaussian variables behind answers as factor analysts read them."""

from __future__ import annotations

from typing import Any

from latentree.cli._screen import Facts, Screen
from latentree.models import CopulaTreeModel, FactorReports, FitIndices, Model
from latentree.tree import Tree

_MOST_FACTORS = 8
"""Factors whose correlations fit side by side into 80 characters."""

FactorTable = dict[str, list[Any]]
"""Columns of a table, as ``model.factors()`` gives them."""


def factor_facts(model: Model) -> Facts:
    """Loadings, thresholds and factors for machines; nothing for other models."""
    if not isinstance(model, FactorReports) or not model.tree.n_hidden:
        return {}
    thresholds = model.thresholds() if isinstance(model, CopulaTreeModel) else {}
    return {"loadings": model.loadings(), "thresholds": thresholds, "factors": model.factors()}


def show_factors(screen: Screen, model: Model) -> None:
    """Print loadings, thresholds, reliabilities and correlations of factors."""
    if not isinstance(model, CopulaTreeModel) or not model.tree.n_hidden:
        return
    screen.text()
    header = ["Variable", "Factor", "Loading", "Communality", "Thresholds"]
    screen.table(header, _loading_rows(model))
    screen.text()
    facts = model.factors()
    if len(facts["factor"]) <= _MOST_FACTORS:
        last, rows = facts["factor"][:-1], _side_by_side(facts)
    else:
        last, rows = ["Correlations with its neighbors"], _along_the_tree(facts, model.tree)
    screen.table(["Factor", "Reliability", "ω", "Variables", *last], rows)
    screen.text(
        "Loading: correlation of the normal variable behind a column with its factor; communality: "
        "its square.\nReliability: share of a factor's variance in the scores of complete rows;\n"
        "ω: share of it in the sum of the variables next to it.\n"
        "Correlations of factors that are no neighbors in the tree multiply along it."
    )


def _side_by_side(facts: FactorTable) -> list[list[str]]:
    """Each factor with its correlations with those before it."""
    names = facts["factor"]
    return [
        _about(facts, k)
        + [f"{facts[other][k]:.2f}" if j < k else "" for j, other in enumerate(names[:-1])]
        for k in range(len(names))
    ]


def _along_the_tree(facts: FactorTable, tree: Tree) -> list[list[str]]:
    """Each factor with its correlations with the factors next to it."""
    rows = []
    for k, node in enumerate(tree.hidden.tolist()):
        near = [tree.names[v] for v in tree.neighbors(node).tolist() if v >= tree.n_observed]
        joined = ", ".join(f"{name} {facts[name][k]:.2f}" for name in near)
        rows.append([*_about(facts, k), joined or "–"])
    return rows


def _about(facts: FactorTable, k: int) -> list[str]:
    shares = [f"{facts[name][k]:.2f}" for name in ("reliability", "omega")]
    return [facts["factor"][k], *shares, f"{facts['n_variables'][k]:,}"]


def _loading_rows(model: CopulaTreeModel) -> list[list[str]]:
    """Return a row for every column, by factors, the largest loadings first."""
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


def show_fit(screen: Screen, found: FitIndices) -> None:
    """Print indices of fit."""
    p = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.3f}"
    screen.text(
        f"\nFit: χ² = {found.chi_square:.1f} with {found.degrees_of_freedom} degrees of freedom, "
        f"{p};\nCFI {found.cfi:.3f}, TLI {found.tli:.3f}, RMSEA {found.rmsea:.3f} (90 % interval "
        f"{found.rmsea_low:.3f} to {found.rmsea_high:.3f}), SRMR {found.srmr:.3f}."
    )

"""A model as plain values for the page: long arrays as base64, short ones as JSON."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, cast

import numpy as np

from latentree import _plain as plain
from latentree.data import as_table, is_number
from latentree.em import FitReport
from latentree.errors import ModelError
from latentree.explorer._packed import PageData, packed
from latentree.explorer._picture import picture
from latentree.explorer._summary import summary
from latentree.inference import (
    CountEmission,
    Emission,
    GaussianEmission,
    Margin,
    ZeroInflatedEmission,
)
from latentree.models import (
    POINTS,
    CopulaTreeModel,
    DiscreteTreeModel,
    GaussianTreeModel,
    MixedTreeModel,
    Model,
    Names,
    Normal,
    TreeMixture,
    captions,
    check_names,
    edge_strengths,
    fitted_tree,
    has_direction,
    orientation,
    turned_correlations,
)
from latentree.plot import VariableGroups, group_observed
from latentree.tree import GroupsLike, Tree, groups_by_node
from latentree.typing import FloatArray, TableLike

if TYPE_CHECKING:
    from latentree.support import Support

Report = FitReport | Mapping[str, object]
"""How a model was learned."""

PageModel = GaussianTreeModel | DiscreteTreeModel | MixedTreeModel

_FACTS = ("method", "n_samples", "date", "log_likelihood", "bic_score", "version")

_LISTED = ("mean", "spread", "zeros")  # parameters of emissions, one a state

CELLS = 32
"""Intervals of a number by which the page measures what it tells about others."""


def payload(
    model: Model,
    title: str,
    data: TableLike | None = None,
    groups: GroupsLike | None = None,
    names: Names | None = None,
    support: Support | None = None,
    report: Report | None = None,
    annotations: Mapping[str, GroupsLike] | None = None,
) -> PageData:
    """Return all that the page knows of a model.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel, MixedTreeModel or CopulaTreeModel
        Hidden Gaussian variables behind answers are on the grid of the model.
    title : str
    data : table, optional
        Summarized per variable, see :func:`latentree.explorer._summary.summary`.
    groups : mapping or sequence, optional
        As :func:`latentree.explorer.write_explorer` takes them.
    names : Names, optional
        What people call nodes and states.
    support : Support, optional
        Of edges, hidden variables and variables, NaN where there is none.
    report : FitReport or mapping, optional
        How the model was learned.
    annotations : mapping, optional
        What is known of variables, as :func:`latentree.explorer.write_explorer` takes it.
    """
    about, parameters = about_model(model, report or {}), _parameters(model)
    # By the normal variables of a copula, as everywhere else.
    called = _called(model, captions(model), names or Names())
    directed = has_direction(model)
    schema, model = model.schema, page_model(model)
    tree, grouping = model.tree, group_observed(model.tree, groups)
    strength, sign = edge_strengths(model), orientation(model)
    if isinstance(model, GaussianTreeModel):  # the page's numbers have the model's own signs
        strength, sign = strength * sign * sign[tree.parent], np.ones(tree.n_nodes)
    content: PageData = {
        "title": title,
        "family": schema.family,
        "observed": tree.n_observed,
        "names": list(tree.names),
        **called,
        "kinds": list(schema.kinds),
        "parent": packed(tree.parent, "<i4"),
        "length": packed(tree.length, "<f8"),
        "strengths": packed(strength, "<f8"),
        "signs": packed(sign, "i1"),
        "directed": packed(directed, "u1"),
        "groups": _groups(grouping),
        "picture": picture(tree, fitted_tree(model).length, grouping),
        "about": about,
        "beside": {key: json.dumps(found) for key, found in schema.beside().items()},
        "annotations": [_annotation(tree, *each) for each in (annotations or {}).items()],
        **parameters,
    }
    if support is not None:
        content["support"] = _support(support)
    if data is not None:
        content["data"] = {
            key: packed(value, "<f8") if isinstance(value, np.ndarray) else value
            for key, value in summary(as_table(data, schema=schema)).items()
        }
    return content


def page_model(model: Model) -> PageModel:
    """Return a model as the page has it: of copulas the grid, or a Gaussian model of their scores.

    Its means and scales are medians and half the distances of 16 % and 84 % quantiles.
    """
    if not isinstance(model, CopulaTreeModel):
        return model
    if not model.is_dense:
        return model.grid
    usual = [cast(Normal[float], model.marginal(node)) for node in range(model.tree.n_observed)]
    means, variances = np.array(usual).T
    return GaussianTreeModel(model.tree, model.correlations, means, np.sqrt(variances))


def _copula(model: CopulaTreeModel) -> PageData:
    """Margins and correlations: the page makes tables of them, but those of two answers."""
    page = page_model(model)
    content = {"margins": [_margin(each) for each in model.margins]}
    if isinstance(page, GaussianTreeModel):
        return _gaussian(page) | content
    tree = page.tree
    rho = turned_correlations(model.tree, model.correlations, tree)
    pairs = [v for v in range(tree.n_observed) if 0 <= tree.parent[v] < tree.n_observed]
    tables = {v: packed(page.layout.table(page.theta, v), "<f8") for v in pairs}
    grid = {"points": packed(POINTS, "<f8"), "rho": packed(rho, "<f8"), "pairs": tables}
    strength = {"strengths": grid["rho"], "signs": packed(np.ones(tree.n_nodes), "i1")}
    states = {"states": packed(page.n_states, "<i4"), "labels": _labels(page)}
    return {**states, **strength, **content, "grid": grid}


def _margin(margin: Margin) -> PageData:
    """A margin as ``readModel`` of ``page/model.js`` takes it: arrays, numbers and a flag."""
    found: PageData = {field.name: getattr(margin, field.name) for field in fields(margin)}
    found["isCount"] = found.pop("kind", "real") == "count"
    return {
        key: packed(value, "<f8") if isinstance(value, np.ndarray) else value
        for key, value in found.items()
    }


def _gaussian(model: GaussianTreeModel) -> PageData:
    return {
        "correlations": packed(model.correlations, "<f8"),
        "means": packed(model.means, "<f8"),
        "scales": packed(model.scales, "<f8"),
    }


def _discrete(model: DiscreteTreeModel | MixedTreeModel) -> PageData:
    return {
        "states": packed(model.n_states, "<i4"),
        "theta": packed(model.theta, "<f8"),
        "labels": _labels(model),
    }


def _mixed(model: MixedTreeModel) -> PageData:
    return {**_discrete(model), "emissions": _emissions(model)}


def _parameters(model: Model) -> PageData:
    """Return the parameters of a model, as ``readModel`` of ``page/model.js`` takes them."""
    if isinstance(model, GaussianTreeModel):
        return _gaussian(model)
    if isinstance(model, DiscreteTreeModel):
        return _discrete(model)
    return _mixed(model) if isinstance(model, MixedTreeModel) else _copula(model)


def about_model(model: Model | TreeMixture, report: Report) -> PageData:
    """What the page's card says of how a model was learned, as far as it is known."""
    report = report.as_dict() if isinstance(report, FitReport) else report
    known = {key: report[key] for key in _FACTS if report.get(key) not in (None, "")}
    return {key: plain.plain_scalar(value) for key, value in known.items()} | {
        "n_parameters": model.n_parameters
    }


def _annotation(tree: Tree, name: str, given: GroupsLike) -> PageData:
    """Numbers as they are, anything else as groups; variables that are left out have none."""
    values = [np.nan if value is None else value for value in groups_by_node(tree, given)]
    if all(is_number(value) for value in values):
        numbers = np.array(values, np.float64)
        numbers[~np.isfinite(numbers)] = np.nan
        return {"name": str(name), "values": packed(numbers, "<f8")}
    return {"name": str(name), **_groups(group_observed(tree, given))}


def _support(support: Support) -> PageData:
    """Shares for the page: of the edge above each node, of hidden variables and of variables."""
    return {
        "replicates": support.n_replicates,
        "origin": support.origin,
        "measure": support.measure,
        "edges": packed(support.edge_support, "<f4"),
        "splits": packed(support.edge_share, "<f4"),
        "hidden": packed(support.hidden_share, "<f4"),
        "variables": packed(support.variable_share, "<f4"),
    }


def _called(model: Model, automatic: Mapping[str, str], names: Names) -> PageData:
    """Automatic names and those that people gave, by the numbers of the nodes."""
    check_names(names, model)

    def by_number(given: Mapping[str, object]) -> dict[int, object]:
        return {model.tree.index(name): value for name, value in given.items()}

    return {
        "captions": by_number(automatic),
        "renamed": by_number(names.names),
        "stateNames": by_number({**model.state_names, **names.states}),
        "notes": by_number({**model.notes, **names.notes}),
    }


def _labels(model: DiscreteTreeModel | MixedTreeModel) -> PageData:
    """Labels of the states as JSON texts: each distinct set once, and which a variable has.

    As texts, because a browser would make 1.0 and 1 the same and round integers above 2⁵³.
    """
    sets: dict[tuple[str, ...], int] = {}
    which = []
    for states in model.schema.labels:
        texts = tuple(_literal(label) for label in states)
        which.append(sets.setdefault(texts, len(sets)))
    return {"sets": [list(texts) for texts in sets], "which": packed(which, "<i4")}


def _literal(label: Hashable) -> str:
    value = plain.plain_scalar(label)
    if not isinstance(value, str | int | float | bool | None):
        value = str(value)
    return json.dumps(value, ensure_ascii=False)


def _emissions(model: MixedTreeModel) -> dict[str, str]:
    """Reals and counts in the order of their nodes: parameters of all states, end to end.

    ``spread`` is the standard deviation of a real, the size of a count, ``zeros`` the probability
    that a count is 0 whatever its mean; ``resolution`` is 1 for counts, and their ``origin`` 0.
    ``cells`` are tables of P(interval | state) with 32 intervals, row by row.
    """
    found = [(node, each) for node, each in enumerate(model.emissions) if each is not None]
    parts = [_emission(each, model.tree.names[node]) for node, each in found]
    cells = [_few_cells(model, node, each).ravel() for node, each in found]
    ends = {key: [np.empty(0), *(each[key] for each in parts)] for key in _LISTED}
    steps = [1.0 if each.kind == "count" else each.resolution for _, each in found]
    return {
        **{key: packed(np.concatenate(each), "<f8") for key, each in ends.items()},
        "resolution": packed(steps, "<f8"),
        "origin": packed([getattr(each, "origin", 0.0) for _, each in found], "<f8"),
        "cells": packed(np.concatenate([np.empty(0), *cells]), "<f4"),
    }


def _emission(emission: Emission, name: str) -> dict[str, FloatArray]:
    """Return the parameters of an emission, one a state."""
    if isinstance(emission, ZeroInflatedEmission):
        return _emission(emission.counts, name) | {"zeros": emission.zeros}
    if not isinstance(emission, CountEmission | GaussianEmission):
        raise ModelError(
            f"the page has no form for {type(emission).__name__} ({name!r}): fit the column "
            "without it to see the tree there"
        )
    spread = emission.size if isinstance(emission, CountEmission) else emission.sd
    return {"mean": emission.mean, "spread": spread, "zeros": np.zeros(emission.n_states)}


def _few_cells(model: MixedTreeModel, node: int, emission: Emission) -> FloatArray:
    """Probabilities of 32 neighboring intervals, a row per state, about equally likely in all."""
    alone = model.tree.parent[node] < 0
    above, table = (np.ones(1), emission.cells()) if alone else model.edge_cells(node)
    # Quantile of the middle of each interval; intervals with neighboring quantiles are merged.
    middle = np.cumsum(above @ table) - 0.5 * (above @ table)
    place = np.minimum((CELLS * middle).astype(np.int64), CELLS - 1)
    return np.stack([np.bincount(place, row, minlength=CELLS) for row in table])


def _groups(grouping: VariableGroups) -> PageData:
    """The style of each group, and the number of every variable's group."""
    return {
        "styles": [style._asdict() for style in grouping.styles],
        "numbers": packed(grouping.numbers, "<i4"),
    }

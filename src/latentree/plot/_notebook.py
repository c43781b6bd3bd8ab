"""What a notebook shows of a tree, a model or a fitted estimator: a small picture and a table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, TypeAlias

from latentree.em import FitReport
from latentree.models import Scored, TreeMixture
from latentree.plot._svg import svg_picture

if TYPE_CHECKING:
    from latentree.estimator import LatentTree

    FittedEstimator: TypeAlias = LatentTree


def tree_html(model: Scored) -> str:
    """Return a picture of a tree or a model, and what it is."""
    return f"<div>{svg_picture(model)}<p>{escape(repr(model) + _which(model))}</p></div>"


def _which(model: Scored) -> str:
    """Say which tree of a mixture is in the picture."""
    if not isinstance(model, TreeMixture):
        return ""
    number = int(model.weights.argmax())
    return f": tree {number}, with weight {model.weights[number]:.2f}"


def fitted_html(fitted: FittedEstimator | FitReport) -> str:
    """Return a picture and a table of an estimator, or the table of what a fit did."""
    if isinstance(fitted, FitReport):
        notes = {f"note {number}": note for number, note in enumerate(fitted.notes, 1)}
        return f"<div>{_table(_said(fitted) | notes)}</div>"
    model = fitted.model_
    rows = {
        **({"trees": model.n_trees} if isinstance(model, TreeMixture) else {}),
        "variables": fitted.tree_.n_observed,
        "hidden": fitted.n_hidden_,
        **_said(fitted.report_),
        "page": "model_.explore()",
    }
    return f"<div>{svg_picture(fitted)}{_table(rows)}</div>"


def _said(report: FitReport) -> dict[str, object]:
    """Return what a report says, by its names."""
    return {
        "method": report.method,
        "parameters": report.n_parameters,
        "log-likelihood": f"{report.log_likelihood:,.1f}",
        "BIC score": f"{report.bic_score:,.1f}",
        "converged": "yes" if report.converged else "no",
        "seconds": f"{report.seconds:.2g}",
    }


def _table(rows: Mapping[str, object]) -> str:
    cells = "".join(
        f"<tr><th>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in rows.items()
    )
    return f"<table>{cells}</table>"

"""What a notebook shows of a fitted estimator: a small picture and a summary table."""

from __future__ import annotations

import importlib.util
import io
from html import escape
from typing import Any

_MOST_NODES = 400  # beyond that a small picture shows nothing


def fitted_html(estimator: Any) -> str:
    """Return a picture (where matplotlib is installed) and a table of an estimator."""
    return f"<div>{_picture(estimator)}{_table(estimator)}</div>"


def _table(estimator: Any) -> str:
    report = estimator.report_
    rows = {
        "method": estimator.method,
        "variables": estimator.tree_.n_observed,
        "hidden": estimator.n_hidden_,
        "parameters": report.n_parameters,
        "log-likelihood": f"{report.log_likelihood:,.1f}",
        "BIC score": f"{report.bic_score:,.1f}",
        "converged": "yes" if report.converged else "no",
    }
    cells = "".join(
        f"<tr><th>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in rows.items()
    )
    return f"<table>{cells}</table>"


def _picture(estimator: Any) -> str:
    if importlib.util.find_spec("matplotlib") is None or estimator.tree_.n_nodes > _MOST_NODES:
        return ""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    from latentree.plot._tree_plot import plot_tree

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasSVG(figure)
    plot_tree(estimator.model_, figure.subplots())
    out = io.StringIO()
    figure.savefig(out, format="svg")
    svg = out.getvalue()
    return svg[svg.index("<svg") :]

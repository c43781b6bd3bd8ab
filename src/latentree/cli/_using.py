"""What is done with a model file: infer, impute, score, sample, plot, export, show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentree.cli import _outputs as outputs
from latentree.cli._data import connected, facts, open_for
from latentree.cli._hidden import (
    HiddenSummary,
    StateSummary,
    hidden_summaries,
    measured,
    percent,
    state_summaries,
)
from latentree.cli._learning import hidden_facts, show_hidden
from latentree.cli._screen import Screen
from latentree.data import STANDARD, check_writable, write_table
from latentree.errors import FileError, ModelError
from latentree.formats import export as export_file
from latentree.inference import (
    Written,
    blocks_of,
    score_part,
    write_imputed,
    write_posteriors,
    write_scores,
)
from latentree.models import GaussianTreeModel, Model, load, load_report

_MOST_HIDDEN = 20
"""Hidden variables whose states ``show`` lists without ``--all``."""

_MOST_MEMBERS = 6
"""Variables that it lists of each."""


def infer(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    out: str,
    header: bool | None,
    unseen: str = "error",
    scheduler: str | None = None,
) -> None:
    """Write the hidden variables of each row: posterior means, or probabilities of the states."""
    _check_out(out)
    model = load(model_path)
    if model.tree.n_hidden == 0:
        raise ModelError(f"{model_path}: the model has no hidden variables, nothing to infer")
    with connected(scheduler) as client:
        parts = open_for(screen, model, data, header, unseen, client)
        _tell_written(screen, out, write_posteriors(model, parts, out))


def impute(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    out: str,
    header: bool | None,
    unseen: str = "error",
    scheduler: str | None = None,
) -> None:
    """Write the model's columns with missing cells filled in."""
    _check_out(out)
    model = load(model_path)
    with connected(scheduler) as client:
        parts = open_for(screen, model, data, header, unseen, client)
        written = write_imputed(model, parts, out)
    _tell_written(screen, out, written)
    screen.tell(f"filled in {int(written.total):,} cells")


def score(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    out: str,
    header: bool | None,
    unseen: str = "error",
    scheduler: str | None = None,
) -> None:
    """Write the log-likelihood of each row, and say what they come to."""
    _check_out(out)
    model = load(model_path)
    with connected(scheduler) as client:
        parts = open_for(screen, model, data, header, unseen, client)
        if screen.as_json and out == STANDARD:
            total = sum(part for _, part in blocks_of(parts, score_part, model))
        else:
            written = write_scores(model, parts, out)
            _tell_written(screen, out, written)
            total = written.total
    if screen.as_json:
        summary = {"log_likelihood": total, "mean_log_likelihood": total / parts.n_rows}
        screen.json({"data": facts(data, parts), **summary})
    screen.tell(f"log-likelihood {total:,.1f} in all, {total / parts.n_rows:,.3f} a row")


def sample(
    screen: Screen, model_path: str, n_rows: int, seed: int | None, hidden: bool, out: str
) -> None:
    """Write rows drawn from the model."""
    _check_out(out)
    model = load(model_path)
    names = model.tree.names if hidden else model.schema.names
    _write(screen, out, names, model.sample(n_rows, seed, hidden=hidden))


def _check_out(out: str) -> None:
    check_writable(out)
    if out != STANDARD:
        outputs.check_folder(out)


def _write(screen: Screen, out: str, names: Any, data: np.ndarray) -> None:
    write_table(out, names, data)
    _tell_written(screen, out, Written(len(data), len(names), 0.0))


def _tell_written(screen: Screen, out: str, written: Written) -> None:
    if out != STANDARD:
        screen.tell(f"wrote {out}: {written.n_rows:,} rows × {written.n_columns:,} columns")


# Looking ----------------------------------------------------------------------------------------


def plot(screen: Screen, model_path: str, out: str) -> None:
    """Draw a model into a picture."""
    outputs.check_folder(out)
    outputs.check_picture(out)
    outputs.write_picture(load(model_path), out)
    screen.tell(f"wrote {out}")


def export(screen: Screen, model_path: str, out: str) -> None:
    """Write a model, or its tree, for other programs.

    JSON is that of nodes and edges: a model file there is already.
    """
    outputs.check_folder(out)
    model = load(model_path)
    if out.lower().endswith(".json"):
        if _same_file(model_path, out):
            raise FileError(f"{out}: is the model file itself: export to another name")
        export_file(model.tree, out)
    else:
        export_file(model, out)
    screen.tell(f"wrote {out}")


def _same_file(first: str, second: str) -> bool:
    from pathlib import Path

    return Path(first).resolve() == Path(second).resolve()


def show(screen: Screen, model_path: str, all_nodes: bool) -> None:
    """Draw the tree in characters, and list what the hidden variables are tied to."""
    model, report = load(model_path), load_report(model_path)
    tree, what = measured(model)
    hidden = hidden_summaries(model)
    if screen.as_json:
        screen.json(
            {
                "family": model.schema.family,
                "n_observed": tree.n_observed,
                "n_hidden": tree.n_hidden,
                "n_parameters": model.n_parameters,
                "nodes": list(tree.names),
                "edges": [
                    {"from": tree.names[a], "to": tree.names[b], "length": float(tree.length[b])}
                    for a, b in tree.edges.tolist()
                ],
                "hidden": _hidden_states(model, hidden),
                "report": report,
            }
        )
        return
    kind = f"{model.schema.family} model: {tree.n_observed:,} observed, {tree.n_hidden:,} hidden"
    learned = f", learned by {report['method']}" if report and "method" in report else ""
    screen.text(f"{kind}, {model.n_parameters:,} parameters{learned}\n")
    screen.text(tree.draw(tree.n_nodes if all_nodes else 200))
    if tree.n_edges:
        screen.text(f"\nNumbers are {what} to the node above: 0 if equal, more if weaker.")
    show_hidden(screen, hidden, tree)
    most_hidden, most_members = (None, None) if all_nodes else (_MOST_HIDDEN, _MOST_MEMBERS)
    _show_states(screen, state_summaries(model, hidden[:most_hidden], most_members))
    if most_hidden is not None and len(hidden) > most_hidden and model.schema.family != "gaussian":
        screen.text(f"\n{len(hidden) - most_hidden} hidden variables more: --all shows all.")


def _show_states(screen: Screen, found: Sequence[StateSummary]) -> None:
    """Print a table for every hidden variable: its states and what its members are in each."""
    for summary in found:
        sizes = [f"{k}: {percent(size)}" for k, size in enumerate(summary.sizes)]
        screen.text()
        screen.table([f"States of {summary.name}", "", *sizes], summary.rows)


def _hidden_states(model: Model, hidden: list[HiddenSummary]) -> list[dict[str, Any]]:
    """Hidden variables for machines; those with states with the columns of ``model.states``."""
    facts = [hidden_facts(summary) for summary in hidden]
    if not isinstance(model, GaussianTreeModel):
        for fact, summary in zip(facts, hidden, strict=True):
            table = model.states(summary.name)
            keep = {summary.name, *summary.members}
            rows = [row for row, name in enumerate(table["variable"]) if name in keep]
            fact["states"] = {
                str(key): [cells[row] for row in rows] for key, cells in table.items()
            }
    return facts

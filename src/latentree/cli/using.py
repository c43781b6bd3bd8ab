"""What is done with a model file: infer, impute, score, sample, plot, export, show."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentree import files
from latentree.cli import outputs
from latentree.cli.data import facts, read_for
from latentree.cli.hidden import voices
from latentree.cli.learning import show_voices
from latentree.cli.screen import Screen
from latentree.errors import FileError, ModelError
from latentree.files.tables import STANDARD, check_writable, write_table
from latentree.models import GaussianTreeModel


def infer(screen: Screen, model_path: str, data: str, out: str, header: bool | None) -> None:
    """Write the hidden variables of each row: posterior means, or probabilities of the states."""
    _check_out(out)
    model = files.load(model_path)
    if model.tree.n_hidden == 0:
        raise ModelError(f"{model_path}: the model has no hidden variables, nothing to infer")
    table = read_for(screen, model, data, header)
    hidden = [model.tree.names[h] for h in model.tree.hidden]
    if isinstance(model, GaussianTreeModel):
        _write(screen, out, hidden, model.posterior(table).mean)
        return
    states = model.n_states[model.tree.hidden]
    names = [f"{h}={k}" for h, count in zip(hidden, states, strict=True) for k in range(count)]
    _write(screen, out, names, model.posterior(table).probabilities)


def impute(screen: Screen, model_path: str, data: str, out: str, header: bool | None) -> None:
    """Write the model's columns with missing cells filled in."""
    _check_out(out)
    model = files.load(model_path)
    table = read_for(screen, model, data, header)
    _write(screen, out, model.schema.names, model.impute(table))
    screen.tell(f"filled in {int(table.missing_counts.sum()):,} cells")


def score(screen: Screen, model_path: str, data: str, out: str, header: bool | None) -> None:
    """Write the log-likelihood of each row, and say what they come to."""
    _check_out(out)
    model = files.load(model_path)
    table = read_for(screen, model, data, header)
    each = model.log_likelihood(table)
    total = float(each.sum())
    if screen.as_json:
        summary = {"log_likelihood": total, "mean_log_likelihood": total / table.n_rows}
        screen.json({"data": facts(data, table), **summary})
    if not screen.as_json or out != STANDARD:
        _write(screen, out, ["log_likelihood"], each[:, None])
    screen.tell(f"log-likelihood {total:,.1f} in all, {total / table.n_rows:,.3f} a row")


def sample(
    screen: Screen, model_path: str, n_rows: int, seed: int | None, hidden: bool, out: str
) -> None:
    """Write rows drawn from the model."""
    _check_out(out)
    model = files.load(model_path)
    names = model.tree.names if hidden else model.schema.names
    _write(screen, out, names, model.sample(n_rows, seed, hidden=hidden))


def _check_out(out: str) -> None:
    check_writable(out)
    if out != STANDARD:
        outputs.check_folder(out)


def _write(screen: Screen, out: str, names: Any, data: np.ndarray) -> None:
    write_table(out, names, data)
    if out != STANDARD:
        screen.tell(f"wrote {out}: {len(data):,} rows × {len(names):,} columns")


# Looking ----------------------------------------------------------------------------------------


def plot(screen: Screen, model_path: str, out: str) -> None:
    """Draw a model into a picture."""
    outputs.check_folder(out)
    outputs.check_picture(out)
    outputs.write_picture(files.load(model_path), out)
    screen.tell(f"wrote {out}")


def export(screen: Screen, model_path: str, out: str) -> None:
    """Write a model, or its tree, for other programs.

    JSON is that of nodes and edges: a model file there is already.
    """
    outputs.check_folder(out)
    model = files.load(model_path)
    if out.lower().endswith(".json"):
        if _same_file(model_path, out):
            raise FileError(f"{out}: is the model file itself: export to another name")
        files.export(model.tree, out)
    else:
        files.export(model, out)
    screen.tell(f"wrote {out}")


def _same_file(first: str, second: str) -> bool:
    from pathlib import Path

    return Path(first).resolve() == Path(second).resolve()


def show(screen: Screen, model_path: str, all_nodes: bool) -> None:
    """Draw the tree in characters, and say what the hidden variables speak for."""
    model, report = files.load(model_path), files.load_report(model_path)
    tree = model.tree
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
                "report": report,
            }
        )
        return
    kind = f"{model.schema.family} model: {tree.n_observed:,} observed, {tree.n_hidden:,} hidden"
    learned = f", learned by {report['method']}" if report and "method" in report else ""
    screen.text(f"{kind}, {model.n_parameters:,} parameters{learned}\n")
    screen.text(tree.draw(tree.n_nodes if all_nodes else 200))
    show_voices(screen, voices(model))

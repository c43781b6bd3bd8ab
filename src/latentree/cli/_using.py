"""Commands that take a model file: infer, impute, predict, score, sample, plot, export, show."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

from latentree.cli import _outputs as outputs
from latentree.cli._data import facts, opened_for
from latentree.cli._drawing import MOST_NODES, cut_facts, show_cut, show_tree
from latentree.cli._factor_tables import factor_facts, show_factors, show_fit
from latentree.cli._hidden import hidden_summaries, state_summaries
from latentree.cli._options import QueryOptions
from latentree.cli._outputs import PlotOption
from latentree.cli._result_tables import hidden_states, show_hidden, show_states
from latentree.cli._screen import Facts, Screen, plural
from latentree.cli._support_command import support_facts
from latentree.data import (
    MATRICES,
    STANDARD,
    Parts,
    Table,
    check_writable,
    listing,
    open_table,
    open_whole,
    suffix_of,
    write_table,
)
from latentree.errors import FileError, ModelError
from latentree.formats import export as export_file
from latentree.inference import (
    Written,
    blocks_of,
    node_number,
    posterior_names,
    score_part,
    state_names,
    write_imputed,
    write_posteriors,
    write_predictions,
    write_scores,
)
from latentree.models import (
    CopulaTreeModel,
    FitIndices,
    GaussianTreeModel,
    Model,
    TreeMixture,
    as_names,
    captions,
    component_of,
    fitted_tree,
    load,
    load_report,
)
from latentree.support import load_support
from latentree.tree import GroupsLike
from latentree.typing import AnyArray

PageOptions = dict[str, object]
"""Arguments of :func:`latentree.write_explorer` by name."""

_MOST_HIDDEN = 20
"""Hidden variables whose states ``show`` lists without ``--all``."""

_MOST_MEMBERS = 6
"""Variables that it lists of each."""


def infer(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    query: QueryOptions,
    out: str,
    errors: bool = False,
) -> None:
    """Write the hidden variables of each row: posterior means, or probabilities of the states."""
    _check_out(out, model_path, *data)
    model = load(model_path)
    if model.tree.n_hidden == 0:
        raise ModelError(f"{model_path}: the model has no hidden variables, nothing to infer")
    posterior_names(model, errors)  # raises for states, better before the data is read
    with opened_for(screen, model, data, query) as parts:
        _tell_written(screen, out, write_posteriors(model, parts, out, errors=errors))


def impute(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    query: QueryOptions,
    out: str,
) -> None:
    """Write all columns with missing cells filled in, and columns that are lacking."""
    _check_out(out, model_path, *data)
    model = load(model_path)
    with (
        _read_twice(data) as paths,
        opened_for(screen, model, data, query, model.schema.names) as parts,
    ):
        _tell_lacking(screen, parts)
        whole = None
        if suffix_of(paths[0]) not in MATRICES:  # which have no other columns
            whole = open_whole(
                paths, model.schema, out, header=query.header, na=query.na or (),
                encoding=query.encoding, sheet=query.sheet,
            )  # fmt: skip
        written = write_imputed(model, parts, out, whole=whole)
    _tell_written(screen, out, written)
    screen.tell(f"filled in {plural(int(written.total), 'cell')}")


@contextlib.contextmanager
def _read_twice(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give paths that can be read beside those given; standard input is copied for that."""
    if list(paths) != [STANDARD]:
        yield paths
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "input.csv")
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        outside = sys.stdin
        with copy.open(encoding="utf-8") as sys.stdin:
            try:
                yield [str(copy)]
            finally:
                sys.stdin = outside


def _tell_lacking(screen: Screen, parts: Parts) -> None:
    """Say which columns have no value at all: a wrong name may be the reason."""
    if parts.whole is not None:
        empty = np.flatnonzero(parts.whole.missing_counts == parts.n_rows).tolist()
        if empty:
            screen.tell(f"no value to start from: {listing([parts.names[j] for j in empty])}")


def predict(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    query: QueryOptions,
    out: str,
    variable: str,
    probabilities: bool,
) -> None:
    """Write what a variable is predicted to be from the other cells of each row."""
    _check_out(out, model_path, *data)
    model = load(model_path)
    number = node_number(model.tree, variable)
    if probabilities:
        state_names(model, number)  # raises for numbers, better before the data is read
    with opened_for(screen, model, data, query, [variable]) as parts:
        written = write_predictions(model, parts, out, number, probabilities)
    _tell_written(screen, out, written)


def score(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    query: QueryOptions,
    out: str,
) -> None:
    """Write the log-likelihood of each row, and say what they come to."""
    _check_out(out, model_path, *data)
    model = load(model_path)
    with opened_for(screen, model, data, query) as parts:
        if screen.as_json and out == STANDARD:
            total = sum(part for _, part in blocks_of(parts, score_part, model))
        else:
            written = write_scores(model, parts, out)
            _tell_written(screen, out, written)
            total = written.total
    if screen.as_json:
        summary = {"log_likelihood": total, "mean_log_likelihood": total / parts.n_rows}
        screen.json({"data": facts(data, parts), **summary})
    screen.tell(f"log-likelihood {total:,.1f} in all, {total / parts.n_rows:,.3f} per row")


def sample(
    screen: Screen, model_path: str, n_rows: int, seed: int | None, hidden: bool, out: str
) -> None:
    """Write rows drawn from the model."""
    _check_out(out, model_path)
    model = load(model_path)
    names = model.tree.names if hidden else model.schema.names
    _write(screen, out, names, model.sample(n_rows, seed, hidden=hidden))


def _check_out(out: str, *read: str) -> None:
    check_writable(out)
    outputs.check_apart([out], read)
    if out != STANDARD:
        outputs.check_target(out)


def _write(screen: Screen, out: str, names: Sequence[str], data: AnyArray) -> None:
    write_table(out, names, data)
    _tell_written(screen, out, Written(len(data), len(names), 0.0))


def _tell_written(screen: Screen, out: str, written: Written) -> None:
    if out != STANDARD:
        shape = f"{plural(written.n_rows, 'row')} × {plural(written.n_columns, 'column')}"
        screen.tell(f"wrote {out}: {shape}")


# Looking ----------------------------------------------------------------------------------------


def plot(
    screen: Screen,
    model_path: str,
    out: str,
    groups: str | None = None,
    size: str | None = None,
    names: str | None = None,
    component: int | None = None,
    cut: int | None = None,
    **options: PlotOption,
) -> None:
    """Draw the tree of a model as a picture."""
    _check_cut(cut, groups)
    outputs.check_apart([out], [model_path])
    outputs.check_target(out)
    outputs.check_picture(out)
    model, called = component_of(load(model_path), component), as_names(names)
    if groups is not None:
        found = outputs.read_groups(groups, model)
        options["groups"] = {called.names.get(name, name): own for name, own in found.items()}
    options["support"] = load_support(model_path)
    model = model.rename(called)
    if cut is not None:
        options["groups"] = _cut_groups(model, cut)
    outputs.write_picture(model, out, outputs.read_size(size), **options)
    screen.tell(f"wrote {out}")


def _cut_groups(model: Model, n_groups: int) -> dict[str, str]:
    """Cut the tree into groups, called by what their representatives inform most about."""
    called = captions(model)
    cut = fitted_tree(model).cut(n_groups)
    return {name: called.get(speaker, speaker) for name, speaker in cut.items()}


def _check_cut(cut: int | None, groups: str | None) -> None:
    if cut is not None and groups is not None:
        raise typer.BadParameter(
            "--cut finds groups of variables, and --groups gives them: use one"
        )


class RowDisplay(NamedTuple):
    """Which rows a page shows: whether any, and the columns of their texts and of their groups."""

    rows: bool = False
    text: str | None = None
    groups: str | None = None

    def of(self, paths: Sequence[str], header: bool | None) -> PageOptions:
        """Return texts and groups of rows as the explorer takes them."""
        if not paths and (self.rows or self.groups):
            raise FileError("rows in the page come from a table: give --data too")
        texts, groups = (
            None if name is None else _texts(paths, name, header)
            for name in (self.text, self.groups)
        )
        return {"rows": self.rows if texts is None else texts, "row_groups": groups}


def _texts(paths: Sequence[str], name: str, header: bool | None) -> list[Hashable | None]:
    """Return one column of files as it is written; None where it is empty."""
    table = open_table(list(paths), columns=[name], kinds={name: "category"}, header=header)
    if not isinstance(table, Table):
        raise FileError("pages show tables that fit into memory: give fewer rows, or no --data")
    labels = table.schema.labels[0]
    return [labels[code] if code >= 0 else None for code in table.column(0).tolist()]


class PageTables(NamedTuple):
    """Paths of tables that a page shows: rows, groups of variables, and more about these."""

    data: Sequence[str]
    header: bool | None
    groups: str | None
    annotations: str | None
    cut: int | None = None
    """Groups that the tree is cut into, in place of those of a file."""

    def of(self, model: Model | TreeMixture) -> PageOptions:
        """Return what they hold as the explorer takes it."""
        rows = None
        if self.data:
            rows = open_table(list(self.data), schema=model.schema, header=self.header)
            if not isinstance(rows, Table):
                raise FileError(
                    "pages show tables that fit into memory: give fewer rows, or no --data"
                )
        notes = self.annotations
        groups: GroupsLike | None = None
        if self.groups is not None:
            groups = outputs.read_groups(self.groups, model)
        if self.cut is not None:
            groups = _cut_groups(component_of(model), self.cut)
        return {
            "data": rows,
            "groups": groups,
            "annotations": None if notes is None else outputs.read_annotations(notes, model),
        }


def explore(
    screen: Screen,
    model_path: str,
    out: str,
    tables: PageTables,
    names: str | None,
    title: str | None,
    shown: RowDisplay,
    component: int | None = None,
) -> None:
    """Write an explorer page of a model, one HTML file."""
    _check_cut(tables.cut, tables.groups)
    outputs.check_apart([out], [model_path, *tables.data])
    outputs.check_target(out)
    model = load(model_path) if component is None else component_of(load(model_path), component)
    known = {"support": load_support(model_path), "report": load_report(model_path)}
    given = tables.of(model) | shown.of(tables.data, tables.header)
    outputs.write_page(model, out, title=title, names=names, **known, **given)
    screen.tell(f"wrote {out}")


def export(screen: Screen, model_path: str, out: str, component: int | None = None) -> None:
    """Write a model, or its tree, for other programs.

    ``.json`` holds nodes and edges: the model file itself is JSON already.
    """
    outputs.check_apart([out], [model_path])
    outputs.check_target(out)
    model, support = component_of(load(model_path), component), load_support(model_path)
    sure = None if support is None else support.edge_support
    export_file(model.tree if out.lower().endswith(".json") else model, out, sure)
    screen.tell(f"wrote {out}")


def _mixture_text(model: TreeMixture, component: int | None) -> str:
    """Say what a mixture is, and which of its trees follows."""
    number = int(model.weights.argmax()) if component is None else component
    return (
        f"mixture of {plural(model.n_trees, 'tree')}, {model.n_parameters:,} parameters. "
        f"Tree {number} of 0 … {model.n_trees - 1}, with weight {model.weights[number]:.3f} "
        "(--component shows another):\n"
    )


def _tree_facts(model: Model) -> Facts:
    """Return the tree of a model for machines, with fitted lengths."""
    tree = fitted_tree(model)
    return {
        "family": model.schema.family,
        "n_observed": tree.n_observed,
        "n_hidden": tree.n_hidden,
        "n_parameters": model.n_parameters,
        "nodes": list(tree.names),
        "edges": [
            {"from": tree.names[a], "to": tree.names[b], "length": float(tree.length[b])}
            for a, b in tree.edges.tolist()
        ],
    }


def show(
    screen: Screen,
    model_path: str,
    all_nodes: bool,
    names: str | None = None,
    component: int | None = None,
    n_groups: int | None = None,
    fit: str | None = None,
) -> None:
    """Draw the tree in characters, and list what the hidden variables are tied to."""
    whole, report = load(model_path), load_report(model_path)
    called = as_names(names)
    model = component_of(whole, component).rename(called)
    hidden, support = hidden_summaries(model), load_support(model_path)
    indices = None if fit is None else _fit_indices(screen, model_path, model, fit)
    tree = fitted_tree(model)
    cut = None if n_groups is None else tree.cut(n_groups)
    if screen.as_json:
        weights = whole.weights.tolist() if isinstance(whole, TreeMixture) else None
        about = {"hidden": hidden_states(model, hidden), "weights": weights, "report": report}
        about["cut"] = cut_facts(cut)
        sure = None if support is None else support_facts(support)
        if indices is not None:
            about["fit"] = indices._asdict()
        screen.json({**_tree_facts(model), **about, "support": sure, **factor_facts(model)})
        return
    if isinstance(whole, TreeMixture):
        screen.text(_mixture_text(whole, component))
    kind = f"{model.schema.family} model: {tree.n_observed:,} observed, {tree.n_hidden:,} hidden"
    learned = f", learned by {report['method']}" if report and "method" in report else ""
    screen.text(f"{kind}, {model.n_parameters:,} parameters{learned}\n")
    show_tree(screen, model, support, cut, tree.n_nodes if all_nodes else MOST_NODES)
    if cut is not None:
        show_cut(screen, cut)
    show_hidden(screen, hidden, tree, support)
    show_factors(screen, model)
    if indices is not None:
        show_fit(screen, indices)
    most_hidden = None if all_nodes else _MOST_HIDDEN
    limits = (None, None) if all_nodes else (_MOST_MEMBERS,)
    found = state_summaries(model, hidden[:most_hidden], *limits)
    show_states(screen, found, model.state_names)
    has_states = model.schema.family not in ("gaussian", "copula")
    if most_hidden is not None and len(hidden) > most_hidden and has_states:
        screen.text(f"\n{len(hidden) - most_hidden} hidden variables more: --all shows all.")


def _fit_indices(screen: Screen, model_path: str, model: Model, data: str) -> FitIndices:
    """Return how well a model fits a table."""
    if not isinstance(model, GaussianTreeModel | CopulaTreeModel):
        raise ModelError(f"{model_path}: indices of fit are of models with Gaussian variables")
    with opened_for(screen, model, [data], QueryOptions()) as parts:
        return model.fit_indices(parts.to_table())

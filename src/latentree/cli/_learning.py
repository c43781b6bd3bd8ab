"""``learn`` and ``compare``: from a table to models, and to what they are worth."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import typer

from latentree.cli import _outputs as outputs
from latentree.cli._data import connected, facts, open_data, show_columns, split
from latentree.cli._drawing import show_tree
from latentree.cli._hidden import (
    hidden_summaries,
    state_summaries,
)
from latentree.cli._method_options import OptionValue, OptionValues, check_method, method_options
from latentree.cli._options import ReadOptions
from latentree.cli._result_tables import (
    MethodResult,
    hidden_states,
    show_changes,
    show_gain,
    show_hidden,
    show_results,
    show_states,
    tell_notes,
)
from latentree.cli._running import first_interrupt_keeps, raise_if_interrupted
from latentree.cli._screen import Screen, plural
from latentree.cli._support_command import (
    ResamplingOptions,
    measure,
    support_facts,
)
from latentree.data import Parts, Schema, Table
from latentree.distances import as_sample
from latentree.errors import LatentTreeError, ModelError
from latentree.methods import HIDDEN, METHODS, ProgressText, choose_method, learn_model
from latentree.metrics import held_out_score
from latentree.models import (
    TreeMixture,
    component_of,
)
from latentree.tree import GroupsLike
from latentree.typing import Kind

_STATES_OF = 3
"""Hidden variables up to which their states are listed: a table each."""


class LearnOutputs(NamedTuple):
    """Paths of the files that ``learn`` writes; None for those that were not asked for."""

    model: str | None = None
    page: str | None = None
    picture: str | None = None

    def check(self, data: Sequence[str]) -> None:
        """Raise for what could not or must not be written: better before learning than after."""
        outputs.check_apart(self, data)
        for path in filter(None, self):
            outputs.check_target(path)
        if self.picture is not None:
            outputs.check_picture(self.picture)

    def write(
        self,
        screen: Screen,
        result: MethodResult,
        table: Table | Parts,
        groups: GroupsLike | None = None,
    ) -> outputs.Written:
        """Write the files that were asked for."""
        assert result.fitted is not None
        model, report = result.fitted
        about = {**report.as_dict(), "method": result.method, "fitted_by": report.method}
        support = {} if result.support is None else {"support": result.support.as_dict()}
        rows = None if isinstance(table, Parts) else table

        def write_page(path: str) -> None:
            known = {"support": result.support, "report": about}
            outputs.write_page(model, path, rows, groups, **known)

        def draw(path: str) -> None:
            outputs.write_picture(component_of(model), path, groups=groups, support=result.support)

        return outputs.write_targets(
            screen,
            outputs.Target(self.model, lambda path: model.save(path, about | support)),
            outputs.Target(self.page, write_page),
            outputs.Target(self.picture, draw),
        )


def learn(
    screen: Screen,
    paths: Sequence[str],
    read: ReadOptions,
    method: str,
    targets: LearnOutputs,
    test_fraction: float,
    seed: int,
    scheduler: str | None = None,
    n_replicates: int = 0,
    **fitting: OptionValue,
) -> None:
    """Learn a model from files and show it."""
    check_method(method)
    fitting = method_options(method, fitting)
    targets.check(paths)
    with connected(scheduler) as client:
        table = open_data(screen, paths, read, client)
        kept, held_out = split(table, test_fraction, seed)
        result = learn_one(screen, method, kept, held_out, seed, read.family, **fitting)
    assert result.fitted is not None
    try:
        if n_replicates:
            resampling = ResamplingOptions(n_replicates, seed=seed)
            sure = measure(screen, result.fitted.model, kept, result.method, resampling, **fitting)
            result = result._replace(support=sure)
    finally:  # what was learned is kept if its support fails
        # Files first: whoever reads what is printed may not read to the end.
        written = targets.write(screen, result, kept)
        try:
            _show(screen, paths, table, kept, targets, result, written.paths)
        finally:
            written.raise_failures()


def _show(
    screen: Screen,
    paths: Sequence[str],
    table: Table | Parts,
    kept: Table | Parts,
    targets: LearnOutputs,
    result: MethodResult,
    written: Sequence[str],
) -> None:
    """Print what was learned from the rows that were kept for it."""
    assert result.fitted is not None
    if screen.as_json:
        shown = component_of(result.fitted.model)
        states = hidden_states(shown, hidden_summaries(shown))
        files = {kind: path for kind, path in targets._asdict().items() if path in written}
        about = {"data": facts(paths, table), **result.facts()}
        if result.support is not None:
            about["support"] = support_facts(result.support)
        screen.json({**about, "hidden": states, "files": files})
    else:
        show_columns(screen, table.schema)
        show_results(screen, [result])
        show_changes(screen, result.fitted.report)
        model = result.fitted.model
        shown = component_of(model)
        found = hidden_summaries(shown)
        screen.text()
        if isinstance(model, TreeMixture):
            screen.text(f"A mixture of {plural(model.n_trees, 'tree')}; the largest:\n")
        show_tree(screen, shown, result.support)
        show_hidden(screen, found, shown.tree, result.support)
        if not found and shown is model:
            show_gain(screen, result.fitted, kept)
        if len(found) <= _STATES_OF:
            show_states(screen, state_summaries(shown, found, None))
    tell_notes(screen, [result])


def compare(
    screen: Screen,
    path: str,
    read: ReadOptions,
    methods: Sequence[str],
    test_fraction: float,
    seed: int,
    hidden: Sequence[str] = (),
) -> None:
    """Learn by several methods and show the paper's table; a method that fails is a row of it."""
    chosen = list(methods or METHODS)
    for method in chosen:
        check_method(method)
    for what in hidden:
        if what not in BEHIND:
            raise typer.BadParameter(f"--hidden {what}: use {', '.join(BEHIND)}")
    table = open_data(screen, [path], read)
    if isinstance(table, Parts):
        table = table.to_table()  # methods that score models need all rows at once
    kept, held_out = split(table, test_fraction, seed)
    assert isinstance(kept, Table)
    results = [
        _try_one(screen, method, kept, held_out, seed, read.family, what)
        for what in hidden or (None,)
        for method in chosen
    ]
    if screen.as_json:
        screen.json(
            {"data": facts([path], table), "methods": [result.facts() for result in results]}
        )
    else:
        show_results(screen, results)
    tell_notes(screen, results)
    if all(result.fitted is None for result in results):
        raise ModelError("every method failed: see the messages of each")


def learn_one(
    screen: Screen,
    method: str,
    table: Table | Parts,
    held_out: Table | None,
    seed: int,
    family: str = "auto",
    **fitting: OptionValue,
) -> MethodResult:
    """Learn by one method, with progress; Ctrl-C ends a search with the best so far."""
    sample = as_sample(table)
    method = choose_method(method, sample, fitting)
    searching = method == "refined"
    text = ProgressText(method, *map(fitting.get, ("n_states", "n_trees", "criterion")))
    keeping = first_interrupt_keeps() if searching else nullcontext()
    with keeping, screen.progress(f"learning by {method}", text) as progress:
        fitted = learn_model(
            sample, method, family, random_state=seed, progress=progress, **fitting
        )
        score = None if held_out is None else held_out_score(fitted.model, held_out)
    raise_if_interrupted()
    return MethodResult(method, fitted, score)


BEHIND = (*HIDDEN, "raw")
"""What hidden variables can be in a comparison."""


def _try_one(
    screen: Screen,
    method: str,
    table: Table,
    held_out: Table | None,
    seed: int,
    family: str,
    hidden: str | None = None,
) -> MethodResult:
    """Learn by one method; a failure becomes a result too."""
    name = method if hidden is None else f"{method}, {hidden}"
    fitting: OptionValues = {} if hidden is None else {"hidden": hidden}
    try:
        if hidden == "raw":
            table, fitting = as_cells(table), {"hidden": "cells"}
            held_out = None if held_out is None else as_cells(held_out)
        result = learn_one(screen, method, table, held_out, seed, family, **fitting)
        return result._replace(method=name)
    except LatentTreeError as error:
        return MethodResult(name, None, failure=str(error))
    except Exception as error:  # one method's defect must not hide what the others found
        return MethodResult(name, None, failure=f"{type(error).__name__}: {error}")


def as_cells(table: Table) -> Table:
    """Take all columns as numbers, each of which stands for all that are recorded the same."""
    values = np.array(table.values.toarray() if table.is_sparse else table.values, np.float64)
    if table.schema.is_coded:
        values[values < 0] = np.nan
    for column, labels in enumerate(table.schema.labels):
        try:
            known = np.array([float(label) for label in labels])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            name = table.names[column]
            raise ModelError(f"column {name!r} has labels that are no numbers") from None
        there = ~np.isnan(values[:, column])
        if labels:
            values[there, column] = known[values[there, column].astype(np.int64)]
    nothing: tuple[Hashable, ...] = ()
    real: Kind = "real"
    schema = Schema(table.names, "copula", (nothing,) * table.n_columns, (real,) * table.n_columns)
    return Table(values, schema, table.weights)

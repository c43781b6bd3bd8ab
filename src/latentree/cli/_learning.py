"""``learn`` and ``compare``: from a table to models, and to what they are worth."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import typer

from latentree.cli import _outputs as outputs
from latentree.cli._data import ReadOptions, connected, facts, open_data, show_columns, split
from latentree.cli._hidden import (
    HiddenSummary,
    StateSummary,
    hidden_summaries,
    percent,
    state_summaries,
)
from latentree.cli._method_options import OptionValue, OptionValues, method_options
from latentree.cli._running import first_interrupt_keeps, raise_if_interrupted
from latentree.cli._screen import Facts, Screen, plural
from latentree.cli._support_command import ResamplingOptions, measure, share_text, support_facts
from latentree.data import Parts, Schema, Table
from latentree.distances import as_sample
from latentree.em import FitReport, Fitted, fit_parameters
from latentree.errors import LatentTreeError, ModelError
from latentree.methods import AUTO, METHODS, ProgressText, choose_method, learn_model
from latentree.metrics import held_out_score
from latentree.models import (
    CopulaTreeModel,
    GaussianTreeModel,
    Model,
    TreeMixture,
    component_of,
)
from latentree.support import DOUBTFUL, Support
from latentree.tree import GroupsLike, Tree
from latentree.typing import Kind

if TYPE_CHECKING:  # imported by the method that needs it
    from latentree.search import RefineReport

_LONGEST = 28
"""Characters of a name in a list, so that a line of 80 has room for two or three."""

_STATES_OF = 3
"""Hidden variables up to which their states are listed: a table each."""

_SHOWN = 6
"""Variables that are named for a hidden one; the others are counted."""


class MethodResult(NamedTuple):
    """How a method fared; ``failure`` says why there is no model."""

    method: str
    fitted: Fitted | None
    held_out: float | None = None
    failure: str = ""
    support: Support | None = None

    def facts(self) -> Facts:
        """Plain values, for machines."""
        if self.fitted is None:
            return {"method": self.method, "failure": self.failure}
        report = self.fitted.report
        return {
            "method": self.method,
            "log_likelihood": report.log_likelihood,
            "bic_score": report.bic_score,
            "held_out_score": self.held_out,
            "n_hidden": self.fitted.model.tree.n_hidden,
            "n_parameters": report.n_parameters,
            "seconds": report.seconds,
            "converged": report.converged,
            "notes": list(report.notes),
            **_change_facts(report),
        }


class LearnOutputs(NamedTuple):
    """Paths of the files that ``learn`` writes; None for those that were not asked for."""

    model: str | None = None
    page: str | None = None
    picture: str | None = None

    def check(self, data: Sequence[str], checkpoint: str | None = None) -> None:
        """Raise for what could not or must not be written: better before learning than after."""
        outputs.check_apart((*self, checkpoint), data)
        for path in filter(None, (*self, checkpoint)):
            outputs.check_folder(path)
        if self.page is not None:
            outputs.explorer()
        if self.picture is not None:
            outputs.check_picture(self.picture)

    def write(
        self,
        screen: Screen,
        result: MethodResult,
        table: Table | Parts,
        groups: GroupsLike | None = None,
    ) -> None:
        """Write the files that were asked for."""
        assert result.fitted is not None
        model, report = result.fitted
        about = {**report.as_dict(), "method": result.method, "fitted_by": report.method}
        if self.model is not None:
            if result.support is not None:
                about["support"] = result.support.as_dict()
            model.save(self.model, about)
        if self.page is not None:
            rows = None if isinstance(table, Parts) else table
            known = {"support": result.support, "report": about}
            outputs.explorer()(model, self.page, rows, groups, **known)
        if self.picture is not None:
            outputs.write_picture(
                component_of(model), self.picture, groups=groups, support=result.support
            )
        for path in filter(None, self):
            screen.tell(f"wrote {path}")


def learn(
    screen: Screen,
    paths: Sequence[str],
    choice: ReadOptions,
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
    targets.check(paths, fitting.get("checkpoint"))
    with connected(scheduler) as client:
        table = open_data(screen, paths, choice, client)
        kept, held_out = split(table, test_fraction, seed)
        result = learn_one(screen, method, kept, held_out, seed, **fitting)
    assert result.fitted is not None
    if n_replicates:
        resampling = ResamplingOptions(n_replicates, seed=seed)
        sure = measure(screen, result.fitted.model, kept, result.method, resampling, **fitting)
        result = result._replace(support=sure)
    try:  # files first: whoever reads what is printed may not read to the end
        targets.write(screen, result, kept)
    finally:
        _show(screen, paths, table, kept, targets, result)


def _show(
    screen: Screen,
    paths: Sequence[str],
    table: Table | Parts,
    kept: Table | Parts,
    targets: LearnOutputs,
    result: MethodResult,
) -> None:
    """Print what was learned from the rows that were kept for it."""
    assert result.fitted is not None
    if screen.as_json:
        shown = component_of(result.fitted.model)
        states = hidden_states(shown, hidden_summaries(shown))
        files = {kind: path for kind, path in targets._asdict().items() if path is not None}
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
        if isinstance(model, TreeMixture):
            screen.text(f"\nA mixture of {plural(model.n_trees, 'tree')}; the largest:")
        show_hidden(screen, found, shown.tree, result.support)
        if not found and shown is model:
            _show_gain(screen, result.fitted, kept)
        if len(found) <= _STATES_OF:
            show_states(screen, state_summaries(shown, found, None))
    _tell_notes(screen, [result])


def compare(
    screen: Screen,
    path: str,
    choice: ReadOptions,
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
    table = open_data(screen, [path], choice)
    if isinstance(table, Parts):
        table = table.to_table()  # methods that score models need all rows at once
    kept, held_out = split(table, test_fraction, seed)
    assert isinstance(kept, Table)
    results = [
        _try_one(screen, method, kept, held_out, seed, what)
        for what in hidden or (None,)
        for method in chosen
    ]
    if screen.as_json:
        screen.json(
            {"data": facts([path], table), "methods": [result.facts() for result in results]}
        )
    else:
        show_results(screen, results)
    _tell_notes(screen, results)
    if all(result.fitted is None for result in results):
        raise ModelError("every method failed: see the messages of each")


def check_method(method: str) -> None:
    """Raise for a name that is no method."""
    if method not in (AUTO, *METHODS):
        raise typer.BadParameter(f"there is no method {method!r}: use {AUTO}, {', '.join(METHODS)}")


def learn_one(
    screen: Screen,
    method: str,
    table: Table | Parts,
    held_out: Table | None,
    seed: int,
    **fitting: OptionValue,
) -> MethodResult:
    """Learn by one method, with progress; Ctrl-C ends a search with the best so far."""
    sample = as_sample(table)
    method = choose_method(method, sample, fitting)
    searching = method == "refined"
    is_held_out = fitting.get("criterion") == "cv" and not searching
    n_states = AUTO if is_held_out else fitting.get("n_states")
    text = ProgressText(method, n_states, fitting.get("n_trees"))
    keeping = first_interrupt_keeps() if searching else nullcontext()
    with keeping, screen.progress(f"learning by {method}", text) as progress:
        fitted = learn_model(sample, method, random_state=seed, progress=progress, **fitting)
        score = None if held_out is None else held_out_score(fitted.model, held_out)
    raise_if_interrupted()
    return MethodResult(method, fitted, score)


BEHIND = ("states", "gaussian", "raw")
"""What hidden variables can be in a comparison."""


def _try_one(
    screen: Screen,
    method: str,
    table: Table,
    held_out: Table | None,
    seed: int,
    hidden: str | None = None,
) -> MethodResult:
    """Learn by one method; a failure becomes a result too."""
    name = method if hidden is None else f"{method}, {hidden}"
    fitting: OptionValues = {} if hidden is None else {"hidden": hidden}
    try:
        if hidden == "raw":
            table, fitting = as_cells(table), {"marginals": "cells"}
            held_out = None if held_out is None else as_cells(held_out)
        return learn_one(screen, method, table, held_out, seed, **fitting)._replace(method=name)
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


# Showing ----------------------------------------------------------------------------------------


def show_results(screen: Screen, results: Sequence[MethodResult]) -> None:
    """Print a row for each method; the best of several is marked."""
    tested = any(result.held_out is not None for result in results)
    header = ["Method", "Log-likelihood", "BIC score", "Hidden", "Parameters", "Seconds"]
    rows = [_row(result) for result in results]
    best = _best([_bic(result) for result in results], 1)
    _mark(rows, 2, best)
    if tested:
        header.insert(3, "Held-out")
        for row, result in zip(rows, results, strict=True):
            row.insert(3, "–" if result.held_out is None else _number(result.held_out, 3))
        _mark(rows, 3, _best([_score(result) for result in results], 3))
    screen.table(header, rows, best if len(results) > 1 else ())
    if len(results) > 1:
        tail = "; held-out: mean log-likelihood of a row that was not learned from" * tested
        screen.text(f"* best{tail}")
    for result in results:
        if result.fitted is None:
            screen.text(f"{result.method} failed: {' '.join(result.failure.split())}")


def _row(result: MethodResult) -> list[str]:
    """Return the row of a method in the table."""
    if result.fitted is None:
        return [result.method, "failed", "–", "–", "–", "–"]
    model, report = result.fitted
    return [
        result.method,
        _number(report.log_likelihood, 1),
        _number(report.bic_score, 1),
        f"{model.tree.n_hidden:,}",
        f"{report.n_parameters:,}",
        f"{report.seconds:.2f}",
    ]


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else str(value).replace("inf", "∞")


def _bic(result: MethodResult) -> float:
    return -math.inf if result.fitted is None else result.fitted.report.bic_score


def _score(result: MethodResult) -> float:
    return -math.inf if result.held_out is None else result.held_out


def _best(scores: Sequence[float], digits: int) -> list[int]:
    """Places of the highest score as shown, ties included; none of a single one."""
    highest = max(scores)
    if len(scores) < 2 or not math.isfinite(highest):
        return []
    shown = _number(highest, digits)
    return [place for place, score in enumerate(scores) if _number(score, digits) == shown]


def _mark(rows: list[list[str]], column: int, best: Sequence[int]) -> None:
    """Put a star after the best numbers, and a blank after the others, so that digits align."""
    if best:
        for place, row in enumerate(rows):
            row[column] += "*" if place in best else " "


def show_changes(screen: Screen, report: FitReport) -> None:
    """Print what a refinement did, if the report is of one."""
    refined = _refinement(report)
    if refined is None:
        return
    gains = sorted(refined.gains().items(), key=lambda item: -item[1][1])
    done = ", ".join(f"{kind}\u00a0{count:,}\u00a0({gain:+,.1f})" for kind, (count, gain) in gains)
    screen.prose(
        f"\nRefined by {plural(len(refined.moves), 'change')}, by kind with their gains: {done}."
        if gains
        else "\nRefined: no change of the tree that it started from was better."
    )


def _refinement(report: FitReport) -> RefineReport | None:
    """Return the report of a refinement as what it is; None for that of any other method."""
    return cast("RefineReport", report) if report.method == "refined" else None


def _change_facts(report: FitReport) -> Facts:
    refined = _refinement(report)
    if refined is None:
        return {}
    gains = refined.gains().items()
    changes = {kind: {"count": count, "gain": gain} for kind, (count, gain) in gains}
    return {"score": refined.score, "changes": changes}


def show_hidden(
    screen: Screen, found: Sequence[HiddenSummary], tree: Tree, support: Support | None = None
) -> None:
    """Print for each hidden variable those that it is tied to, and how sure it is."""
    screen.text()
    if not found:
        screen.text(f"No hidden variable: {_without_hidden(tree)}.")
        return
    rows = [[summary.name, summary.about, _members(summary)] for summary in found]
    header = ["Hidden", "Informs most about", "Tied to (strength)"]
    if support is not None:
        header.insert(1, "Support")
        for row, share in zip(rows, support.hidden_share, strict=True):
            row.insert(1, share_text(share) + (" doubtful" if share < DOUBTFUL else ""))
    screen.table(header, rows)
    if support is not None:
        screen.prose(
            f"Support: share of {support.n_replicates:,} trees, learned again from resampled "
            "rows, that have a hidden variable for the same group."
        )


def _show_gain(screen: Screen, fitted: Fitted, table: Table | Parts) -> None:
    """Say how much better than independent variables a tree without hidden ones is."""
    model, report = fitted
    if model.tree.n_edges:
        apart = Tree([-1] * model.tree.n_nodes, names=model.tree.names)
        alone = fit_parameters(apart, table, random_state=0).report
        screen.prose(
            f"The data is explained without any: {plural(model.tree.n_edges, 'edge')} between "
            f"variables raise{'s' * (model.tree.n_edges == 1)} the log-likelihood by "
            f"{report.log_likelihood - alone.log_likelihood:,.1f} and the BIC score by "
            f"{report.bic_score - alone.bic_score:,.1f} over independent variables."
        )


def _without_hidden(tree: Tree) -> str:
    """Say how variables depend on each other where none is hidden."""
    groups = len(tree.roots)
    if tree.n_observed == 1:
        return "there is a single variable"
    if tree.n_edges == 0:
        return f"no dependence was found among the {groups:,} variables"
    directly = "the variables depend on each other directly"
    if groups == 1:
        return directly
    return f"{directly}, in {groups:,} groups without dependence between them"


def _members(summary: HiddenSummary) -> str:
    pairs = zip(summary.members[:_SHOWN], summary.strengths[:_SHOWN], strict=True)
    # Names do not break in two where a line is full.
    named = ", ".join(f"{_short(name)}\u00a0{strength:.2f}" for name, strength in pairs)
    more = len(summary.members) - _SHOWN
    from_afar = "" if summary.own else "between others; from afar "
    return f"{from_afar}{named}{f' and {more} more' if more > 0 else ''}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def show_states(
    screen: Screen,
    found: Sequence[StateSummary],
    labels: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> None:
    """Print a table for every hidden variable: its states and what its members are in each."""
    for summary in found:
        own = labels.get(summary.name) or range(len(summary.sizes))
        sizes = [f"{k}: {percent(size)}" for k, size in zip(own, summary.sizes, strict=True)]
        screen.text()
        screen.table([f"States of {summary.name}", "", *sizes], summary.rows)


def hidden_states(model: Model, hidden: list[HiddenSummary]) -> list[Facts]:
    """Hidden variables for machines; those with states with the columns of ``model.states``."""
    facts = [hidden_facts(summary) for summary in hidden]
    if not isinstance(model, GaussianTreeModel | CopulaTreeModel):
        for fact, summary in zip(facts, hidden, strict=True):
            table = model.states(summary.name)
            keep = {summary.name, *summary.members}
            rows = [row for row, name in enumerate(table["variable"]) if name in keep]
            fact["states"] = {
                str(key): [cells[row] for row in rows] for key, cells in table.items()
            }
    return facts


def hidden_facts(summary: HiddenSummary) -> Facts:
    """Return a summary for machines."""
    return {
        "name": summary.name,
        "about": summary.about,
        "own": summary.own,
        "tied_to": [
            {"name": name, "strength": strength}
            for name, strength in zip(summary.members, summary.strengths, strict=True)
        ],
    }


def _tell_notes(screen: Screen, results: Sequence[MethodResult]) -> None:
    for result in results:
        for note in result.fitted.report.notes if result.fitted is not None else ():
            screen.tell(f"note: {result.method}: {note}")

"""What was learned, as tables for people and as facts for machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from latentree.cli._hidden import HiddenSummary, StateSummary, percent
from latentree.cli._screen import Facts, Screen, plural
from latentree.cli._support_command import share_text
from latentree.data import Parts, Table
from latentree.em import FitReport, Fitted, fit_parameters
from latentree.models import CopulaTreeModel, GaussianTreeModel, Model
from latentree.support import DOUBTFUL, Support
from latentree.tree import Tree

if TYPE_CHECKING:  # imported by the method that needs it
    from latentree.search import RefineReport

_LONGEST = 28
"""Characters of a name in a list, so that a line of 80 has room for two or three."""

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
            f"Support: share of {support.origin} that have a hidden variable for the same group."
        )


def show_gain(screen: Screen, fitted: Fitted, table: Table | Parts) -> None:
    """Say how much better than independent variables a tree without hidden ones is."""
    model, report = fitted
    if model.tree.n_edges:
        apart = Tree([-1] * model.tree.n_nodes, names=model.tree.names)
        alone = fit_parameters(apart, table, random_state=0).report
        gain = report.log_likelihood - alone.log_likelihood
        by_bic = report.bic_score - alone.bic_score
        n_edges = model.tree.n_edges
        screen.prose(
            f"The data is explained without any: {plural(n_edges, 'edge')} between variables "
            f"raise{'s' * (n_edges == 1)} the log-likelihood by {gain:,.1f} and the BIC score by "
            f"{by_bic:,.1f} over independent variables."
            if by_bic >= 0.0
            else f"{plural(n_edges, 'edge')} between variables raise{'s' * (n_edges == 1)} the "
            f"log-likelihood by {gain:,.1f} over independent variables, but the BIC score falls by "
            f"{-by_bic:,.1f}: the test of independence has found what so few rows cannot pay for."
        )


def _without_hidden(tree: Tree) -> str:
    """Say how variables depend on each other where none is hidden."""
    if tree.n_observed == 1:
        return "there is a single variable"
    if tree.n_edges == 0:
        return f"no dependence was found among the {tree.n_observed:,} variables"
    alone = sum(not tree.neighbors(v).size for v in tree.roots.tolist())
    groups = len(tree.roots) - alone
    directly = "variables depend on each other directly"
    if len(tree.roots) == 1:
        return f"the {directly}"
    stand = (
        f"{alone:,} {'stands' if alone == 1 else 'stand'} on {'its' if alone == 1 else 'their'} own"
    )
    return f"{directly}, in {plural(groups, 'group')}" + f"; {stand}" * (alone > 0)


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
        titles = [f"States of {summary.name}", ""]
        rows = [(_short(row[0]), _short(row[1]), *row[2:]) for row in summary.rows]
        for states in _side_by_side([*titles, *sizes], rows, screen.width):
            screen.text()
            screen.table(
                [*titles, *(sizes[k] for k in states)],
                [(*row[:2], *(row[k + 2] for k in states)) for row in rows],
            )


def _side_by_side(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> list[list[int]]:
    """Return which states go into one table, so that its lines are no longer than the screen."""
    needed = [max(map(len, cells)) + 2 for cells in zip(header, *rows, strict=True)]
    tables: list[list[int]] = [[]]
    for state, own in enumerate(needed[2:]):
        taken = sum(needed[:2]) + sum(needed[k + 2] for k in tables[-1])
        if tables[-1] and taken + own > width:
            tables.append([])
        tables[-1].append(state)
    return tables


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


def tell_notes(screen: Screen, results: Sequence[MethodResult]) -> None:
    """Say what the reports note beside the results, each thing once."""
    methods: dict[str, list[str]] = {}
    for result in results:
        for note in result.fitted.report.notes if result.fitted is not None else ():
            methods.setdefault(note, []).append(result.method)
    for note, names in methods.items():
        screen.tell(f"note: {', '.join(names)}: {note}")

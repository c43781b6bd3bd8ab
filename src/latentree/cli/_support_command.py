"""``support``: how sure the tree of a model is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latentree.cli import _outputs as outputs
from latentree.cli._data import facts, opened_for
from latentree.cli._drawing import show_tree
from latentree.cli._method_options import OptionValue, check_method
from latentree.cli._options import QueryOptions
from latentree.cli._running import first_interrupt_keeps, raise_if_interrupted
from latentree.cli._screen import Facts, Screen
from latentree.distances import SampleLike
from latentree.errors import ModelError
from latentree.methods import METHODS, learned_support
from latentree.models import Model, TreeMixture, load, load_report
from latentree.support import POSTERIOR, Support

_MOST_VARIABLES = 5
"""Variables that are named as placed least surely."""

_UNSURE = 0.5
"""A variable that keeps less than this share of its neighbors is placed unsurely."""


class ResamplingOptions(NamedTuple):
    """How trees are learned again from resampled rows."""

    n_replicates: int
    method: str | None = None
    block_length: int | None = None
    time_limit: float | None = None
    seed: int = 0


def support(
    screen: Screen,
    model_path: str,
    data: Sequence[str],
    query: QueryOptions,
    resampling: ResamplingOptions,
    out: str | None,
) -> None:
    """Learn the tree of a model again and again, and show what stays the same."""
    model, report = load(model_path), load_report(model_path) or {}
    if isinstance(model, TreeMixture):
        raise ModelError(f"{model_path}: support is of one tree, and this is a mixture")
    if resampling.method not in (None, POSTERIOR):
        check_method(resampling.method)
    # By default that of the model, where the file says it.
    named = (resampling.method, str(report.get("method")), "clnj")
    method = next(name for name in named if name in (*METHODS, POSTERIOR))
    if out is not None:
        outputs.check_target(out)
    with opened_for(screen, model, data, query) as parts:
        found = measure(screen, model, parts, method, resampling)
    about = {**report, "support": found.as_dict()}
    target = outputs.Target(out, lambda path: model.save(path, about))
    written = outputs.write_targets(screen, target)
    try:
        if screen.as_json:
            screen.json({"data": facts(data, parts), **support_facts(found)})
        else:
            show_support(screen, model, found)
    finally:
        written.raise_failures()


def measure(
    screen: Screen,
    model: Model,
    data: SampleLike,
    method: str,
    resampling: ResamplingOptions,
    **options: OptionValue,
) -> Support:
    """Measure support, with progress; Ctrl-C ends it with the replicates so far."""
    doing = "sampling trees" if method == POSTERIOR else "resampling rows"
    with first_interrupt_keeps(), screen.counting(doing) as progress:
        found = learned_support(
            model,
            data,
            method,
            resampling.n_replicates,
            options,
            random_state=resampling.seed,
            block_length=resampling.block_length,
            time_limit=resampling.time_limit,
            progress=progress,
        )
    raise_if_interrupted()
    if found.note:
        screen.tell(found.note)
    return found


def support_facts(found: Support) -> Facts:
    """Return support for machines; NaN becomes null."""
    tables = {"edges": found.edges, "hidden": found.hidden, "variables": found.variables}
    rows = {
        name: [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
        for name, table in tables.items()
    }
    numbers = {str(number): share for number, share in found.n_hidden_distribution.items()}
    about = {"method": list(found.method), "n_replicates": found.n_replicates, "note": found.note}
    return {**about, **rows, "n_hidden": numbers}


def show_support(screen: Screen, model: Model, found: Support) -> None:
    """Print the tree with its support, and what is doubtful."""
    show_tree(screen, model, found)
    hidden = found.hidden
    if found.tree.n_hidden:
        screen.text()
        rows = [
            [name, share_text(share), share_text(edges), "doubtful" if share < 0.5 else ""]
            for name, edges, share in zip(*(hidden[key] for key in hidden), strict=True)
        ]
        screen.table(["Hidden", "Found again", "Its edges", ""], rows)
    screen.text(_numbers(found))
    unsure = np.argsort(found.variable_share)[:_MOST_VARIABLES]
    named = [
        f"{found.tree.names[v]} ({share_text(found.variable_share[v])})"
        for v in unsure
        if found.variable_share[v] < _UNSURE
    ]
    if named:
        screen.text(f"Placed least surely: {', '.join(named)}.")


def _numbers(found: Support) -> str:
    # By counts of trees: a file may claim any number of them.
    ranks = np.rint(np.array([0.05, 0.5, 0.95]) * (found.n_replicates - 1))
    places = np.searchsorted(np.cumsum(list(found.n_hidden.values())), ranks, "right")
    low, middle, high = (list(found.n_hidden)[place] for place in places)
    if low == high:
        return f"Number of hidden variables: {middle} in nine of ten trees."
    return f"Number of hidden variables: {low} to {high} in nine of ten trees, median {middle}."


def share_text(share: float) -> str:
    """Return a share in percent, a dash for none."""
    return "–" if np.isnan(share) else f"{100.0 * share:.0f} %"

"""Mixtures of trees and committees, whose trees a method learns."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from latentree.errors import DataWarning
from latentree.methods._families import Task, is_decided_by_held_out, learn_one_tree
from latentree.methods._registry import AUTO, Method, OptionValues

if TYPE_CHECKING:  # the help of the command line loads nothing heavy
    import numpy as np

    from latentree.data import Table
    from latentree.distances import Sample
    from latentree.em import Budget, Fitted, HeldOutFit

LEAST_ROWS_OF_A_COMMITTEE = 100
"""With fewer rows than that, hclt learns one tree: a fourth of them decides nothing."""

_STEPS_A_ROUND = 30
"""Steps of EM inside a component: rounds of the mixture follow."""

_OF_ONE_TREE = ("n_trees", "n_states")
"""Options that say how one tree is learned, or how many trees are."""


def is_committee(method: Method, sample: Sample, options: OptionValues) -> bool:
    """Whether hclt learns several trees: where nothing is said of trees, states or EM."""
    return bool(
        method.name == "hclt"
        and sample.family == "discrete"
        and sample.statistics.n_rows >= LEAST_ROWS_OF_A_COMMITTEE
        and not set(_OF_ONE_TREE) & set(options)
    )


def learn_trees(task: Task, n_trees: int | str) -> Fitted:
    """Learn a mixture of trees, each by the method from weighted rows."""
    import numpy as np

    from latentree.search import tree_mixture

    rng = np.random.default_rng(task.fitting["random_state"])
    if task.sample.family == "discrete" and is_decided_by_held_out(task.method, task.options):
        return _committee(task, n_trees, rng)
    scales = {name: value for name, value in task.fitting.items() if name == "marginals"}

    def learn(weighted: Sample) -> Fitted:
        with warnings.catch_warnings():  # what is said of a few rows' weights helps nobody
            warnings.simplefilter("ignore", DataWarning)
            return learn_component(task.method, weighted, task.options, random_state=rng, **scales)

    return tree_mixture(
        task.sample, learn, n_trees, held_out=task.held_out, budget=task.fitting["budget"],
        random_state=rng, progress=task.fitting["progress"],
    )  # fmt: skip


def _committee(task: Task, n_trees: int | str, rng: np.random.Generator) -> Fitted:
    """Learn trees of states, each of which has other rows held out."""
    from latentree.em import held_out_fits
    from latentree.search import fold_mixture
    from latentree.structure import learn_tree

    given = task.options.get("n_states")
    n_states = None if given == AUTO else given
    progress = task.fitting["progress"]

    def prepare(rows: Sample, fold: Table, budget: Budget, most_states: int | None) -> HeldOutFit:
        tree = learn_tree(rows, task.method.name)
        [fit] = held_out_fits(
            tree, rows, n_states, most_states=most_states, budget=budget, rng=rng,
            progress=progress, X_valid=fold,
        )  # fmt: skip
        return fit

    return fold_mixture(
        task.sample, prepare, n_trees, held_out=task.held_out,
        budget=task.fitting["budget"], random_state=rng,
    )  # fmt: skip


def learn_component(
    method: Method, sample: Sample, options: OptionValues, **fitting: Any
) -> Fitted:
    """Learn one component of a mixture, from weighted rows, in a few steps of EM."""
    from latentree.em import Budget

    of_component = {"n_starts": 1, **options}
    of_component.pop("n_trees", None)
    if sample.family == "discrete":
        of_component.setdefault("prior_weight", 1.0)  # what no row has stays possible
    if sample.family == "gaussian":
        of_component.pop("n_states", None)
    fitting = {"budget": Budget(max_steps=_STEPS_A_ROUND), **fitting}
    holds_out = is_decided_by_held_out(method, options)
    return learn_one_tree(Task(method, sample, of_component, fitting, holds_out))

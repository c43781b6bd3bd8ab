"""How a method learns one tree from each family of columns.

A method from distances learns the tree from the sample as it is, and the family says how the tree
gets its parameters. A method that scores models takes Gaussian, discrete and symmetric columns as
they are, ``refined`` mixed ones too; others see of mixed columns states, with numbers in bins, and
of columns with Gaussian variables behind them all see the correlations of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from latentree.errors import ModelError
from latentree.methods._registry import AUTO, BY_DISTANCES, OF_MIXED, Method, OptionValues

if TYPE_CHECKING:  # the help of the command line loads nothing heavy
    from collections.abc import Callable

    from latentree.data import Table
    from latentree.distances import Sample
    from latentree.em import Fitted
    from latentree.tree import Tree


class Task(NamedTuple):
    """What a method is asked to learn."""

    method: Method
    sample: Sample
    options: OptionValues
    """Options of the method that were given."""
    fitting: OptionValues
    """What every learner takes: budget, random_state, progress; of copulas also marginals."""
    holds_out: bool = False
    """Whether held-out rows decide on states, smoothing and stopping."""
    held_out: Table | None = None
    """These rows if they were given; otherwise a share of the sample's is held out."""


def is_decided_by_held_out(method: Method, options: OptionValues) -> bool:
    """Whether held-out rows decide on states, smoothing and stopping of a tree from distances."""
    by_rows = options.get("n_states") == AUTO or options.get("criterion") == "cv"
    return method.from_distances and (method.name == "hclt" or by_rows)


def has_no_steps(task: Task) -> bool:
    """Whether parameters follow from the distances, without EM."""
    return bool(task.fitting["budget"].max_steps == 0)


def learn_one_tree(task: Task) -> Fitted:
    """Learn a tree and its parameters."""
    from latentree.structure import learn_tree

    method, sample = task.method, task.sample
    if method.name == "lcm" and sample.n_columns < 3:
        # A hidden variable needs three neighbors: fewer columns show no more than their edge.
        return fit_tree(learn_tree(sample, "clnj"), task)
    if not method.from_distances:
        return _search(task)
    return fit_tree(learn_tree(sample, method.name), task)


def fit_tree(tree: Tree, task: Task) -> Fitted:
    """Fit the parameters of a tree, as the family and the options say."""
    from latentree.em import fit_parameters
    from latentree.search import fit_mixed

    sample, fitting = task.sample, task.fitting
    options = {name: value for name, value in task.options.items() if name != "n_trees"}
    if sample.family == "mixed":
        if task.holds_out:
            options |= {"criterion": "cv", "held_out": task.held_out}
        return fit_mixed(tree, sample, **options, **fitting)
    if options.get("n_states") == AUTO:  # held-out rows choose, or there are no states
        del options["n_states"]
    if has_no_steps(task):
        scales = {name: fitting[name] for name in ("marginals",) if name in fitting}
        return fit_parameters(tree, sample, method="distances", **scales)
    way = "ml"
    if task.holds_out and sample.family == "discrete":
        way = "held_out"
        options["X_valid"] = task.held_out
    return fit_parameters(tree, sample, method=way, **options, **fitting)


_OF_ANY_FAMILY = ("independent", "consensus")
"""Methods that score models and take samples of every family themselves."""


def _search(task: Task) -> Fitted:
    """Learn by a method that scores models."""
    from latentree.search import fit_copula_tree, learned_in_bins, star

    method, sample = task.method, task.sample
    learner = cast("Callable[..., Fitted]", method.function())
    given = {**task.options, **task.fitting}
    if sample.family not in ("mixed", "copula") or method.name in _OF_ANY_FAMILY:
        return learner(sample, **given)
    if method.name == "lcm":
        return fit_tree(star(sample), task)
    if sample.family == "copula":
        is_free = method.name == "refined" and "n_hidden" not in task.options
        return fit_copula_tree(learner, sample, simplify=is_free, **given)
    if method.name == "refined":
        return learner(sample, **given)
    return learned_in_bins(learner, sample, **given)


def refuse_impossible(task: Task) -> None:
    """Refuse families that a method does not take, and states where nothing chooses them."""
    method, sample, options = task.method, task.sample, task.options
    if has_no_steps(task) and method.name not in BY_DISTANCES:
        raise ModelError(
            f"max_steps=0 takes parameters from distances, but {method.name} fits them by EM: give "
            f"a step or more, or use {', '.join(BY_DISTANCES)}"
        )
    if sample.family not in method.families:
        what = (
            "puts states behind columns that are not all real, and no Gaussian variables: leave "
            "out hidden"
            if sample.family == "copula"
            else f"learns from {' and '.join(method.families)} data only"
        )
        raise ModelError(f"{method.name} {what}, or use another method")
    if sample.family in ("mixed", "copula") or method.name == "refined":
        return
    for name in set(OF_MIXED) & set(options):
        raise ModelError(
            f"{name}={options[name]!r} chooses numbers of states, of mixed data only: give "
            f"n_states, or use refined"
        )


def refuse_for_family(task: Task) -> None:
    """Refuse what a family cannot do; nothing is refused where nothing is to be learned."""
    if has_no_steps(task) and task.sample.family in ("discrete", "mixed"):
        raise ModelError(
            f"max_steps=0 is not for {task.sample.family} columns, whose parameters do not follow "
            "from distances: give a step or more"
        )
    if task.sample.family == "copula":
        _refuse_for_copulas(task)
    elif task.sample.family == "mixed":
        _refuse_for_mixed(task)


def _refuse_for_copulas(task: Task) -> None:
    """Refuse states, and what the grid of hidden Gaussian variables does not have."""
    for name in ("n_states", "max_states"):
        if name in task.options:
            raise ModelError(f'{name}={task.options[name]!r} is about states: use hidden="states"')
    is_dense = set(task.sample.schema.kinds) == {"real"}
    if task.method.name == "chow_liu" and not is_dense:
        raise ModelError("chow_liu is not for Gaussian variables behind columns: take another")


def _refuse_for_mixed(task: Task) -> None:
    """Refuse numbers that would hang from nothing."""
    if task.method.name == "chow_liu" and not task.sample.cardinalities.all():
        raise ModelError(
            "chow_liu has no hidden variables, but columns of numbers hang from states: use "
            "another method, or family='gaussian' or family='discrete'"
        )

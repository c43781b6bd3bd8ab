"""From a tree and data to a fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from latentree import _memory as memory
from latentree.data import Schema, Table, as_table, cut_table
from latentree.distances import Sample, as_sample, is_unordered
from latentree.em import _starts as starts
from latentree.em._copula import CopulaProblem, first_margins
from latentree.em._driver import Budget, maximize
from latentree.em._gaussian import LARGEST_Z, gaussian_problem
from latentree.em._held_out import HeldOutFit, run_rivals
from latentree.em._held_rows import GROUPS, held_out_splits
from latentree.em._report import FitReport, Fitted
from latentree.em._state_problem import Kinds, StateProblem, SymmetricProblem, as_leaves
from latentree.errors import DataError, ModelError
from latentree.inference import FreeEmission, node_number
from latentree.models import (
    CopulaTreeModel,
    DiscreteTreeModel,
    GaussianTreeModel,
    MixedTreeModel,
    Model,
    with_schema,
)
from latentree.tree import Tree, hung_as_leaves, tied_by_hidden
from latentree.typing import BoolArray, FloatArray, IntArray, Node, Progress

HiddenStates = int | Sequence[int] | IntArray | Mapping[Node, int] | None
AUTO = "auto"
"""As a number of states: held-out rows decide."""


def fit_parameters(
    tree: Tree,
    X: Any,
    family: str = "auto",
    *,
    method: str = "ml",
    n_states: HiddenStates | Literal["auto"] = None,
    marginals: str = "normal",
    emissions: Mapping[Node, type[FreeEmission]] | None = None,
    start: Model | None = None,
    n_starts: int = 3,
    prior_weight: float = 0.0,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    validation_fraction: float | None = None,
    X_valid: Any = None,
) -> Fitted:
    """Fit the parameters of a tree to data.

    Parameters
    ----------
    tree : Tree
        Its observed nodes are the columns of ``X``, matched by name if both have names.
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`);
        cells may be missing.
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed", "copula"}
        How to model the columns of a table; "auto" goes by their kinds.
    method : {"ml", "held_out", "distances"}
        "ml": maximum likelihood, by EM where something is hidden or missing. "held_out", for
        prediction: held-out rows decide on smoothing, on when EM stops, and on the number of
        states if it is left out (families "discrete" and "mixed"). "distances": computed from the
        lengths of the tree (Gaussian and symmetric families).
    n_states : int, sequence, mapping or "auto", optional
        Discrete and mixed families: numbers of states of the hidden nodes. By default the most
        common number among the variables, or those of ``start``. With "auto" the method is
        "held_out".
    marginals : {"normal", "ranks", "cells"}
        Family "copula": the scales of real columns, normal or estimated from their ranks. If all
        columns are real the likelihood is a density, but with "cells" that of normal numbers as
        they were recorded. Counts are always on a scale of their own.
    emissions : mapping, optional
        Family "mixed": distributions of columns that are not the usual ones, by name or number, as
        ``{"visits": latentree.inference.ZeroInflatedEmission}``. By default those of ``start``.
    start : model, optional
        Start from this model only, for instance to continue a fit. With "held_out" the result
        predicts held-out rows no worse than it does.
    n_starts : int
        One start from the distances, the others random; all run for a few steps, and the best one
        continues.
    prior_weight : float
        Weight of a uniform Dirichlet prior on discrete tables, as a number of rows.
    weights : array, optional
        How much each row counts.
    budget : Budget, optional
        When to stop.
    random_state : int or Generator, optional
        For random starts.
    progress : callable, optional
        Called with the number of steps so far and the log-likelihood.
    validation_fraction : float, optional
        For "held_out": the share of the rows that is held out, drawn at random; by default a tenth,
        of fewer than 5,000 rows up to a quarter. In the end the model learns from them too.
    X_valid : table, optional
        Rows to hold out in their place.

    Returns
    -------
    Fitted
        ``model, report``. An interrupt (Ctrl-C) returns the best so far, marked as not converged.

    References
    ----------
    Dempster, Laird and Rubin, *Maximum Likelihood from Incomplete Data via the EM Algorithm*,
    JRSS B 39, 1977. Varadhan and Roland, *Simple and Globally Convergent Methods for Accelerating
    the Convergence of Any EM Algorithm*, Scandinavian Journal of Statistics 35, 2008.

    Examples
    --------
    >>> import latentree as lt
    >>> tree = lt.simulate.latent_class(4)
    >>> X = lt.simulate.random_gaussian_model(tree, 0).sample(1_000, 1)
    >>> model, report = lt.fit_parameters(tree, X)
    >>> report.converged
    True
    """
    clock = time.perf_counter()
    if isinstance(n_states, str):
        if n_states != AUTO:
            raise ModelError(f'n_states is {n_states!r}, but must be numbers or "auto"')
        method, n_states = "held_out", None
    given = as_sample(X, family, weights, min_rows=1)
    sample = matched(tree, given)
    if sample.family == "mixed":
        tree = as_leaves(tree, sample.cardinalities == 0)
    if sample.family == "copula":
        if marginals not in MARGINALS:
            raise ModelError(f"marginals is {marginals!r}, but must be one of {MARGINALS}")
        if is_dense(sample, marginals):
            return _fit_scores(tree, sample, marginals, method, start, n_starts, budget,
                               random_state, progress)  # fmt: skip
        levels = (sample.cardinalities > 0) & ~is_unordered(sample.schema)
        tree = leaves_of_copula(tree, levels)
    if method == "distances":
        model = _from_distances(tree, sample, marginals)
        report = _report(model, sample)
    elif method == "held_out":
        fits = held_out_fits(
            tree, given, n_states, prior_weight=prior_weight, n_starts=n_starts, start=start,
            budget=budget, rng=np.random.default_rng(random_state), progress=progress,
            fraction=validation_fraction, X_valid=X_valid, emissions=emissions,
        )  # fmt: skip
        model, report = run_rivals([fits])
    elif method == "ml":
        model, report = _by_em(
            tree, sample, n_states, marginals, emissions, start, n_starts, prior_weight, budget,
            random_state, progress,
        )  # fmt: skip
    else:
        raise ModelError(f"method is {method!r}, but must be 'ml', 'held_out' or 'distances'")
    known = with_schema(model, sample.schema)
    if isinstance(known, CopulaTreeModel):
        known = known.oriented()
    if isinstance(model, GaussianTreeModel):
        report = replace(report, notes=report.notes + _limit_notes(model))
    return Fitted(known, report.timed(time.perf_counter() - clock))


def _by_em(
    tree: Tree,
    sample: Sample,
    n_states: HiddenStates,
    marginals: str,
    emissions: Mapping[Node, type[FreeEmission]] | None,
    start: Model | None,
    n_starts: int,
    prior_weight: float,
    budget: Budget | None,
    random_state: Any,
    progress: Progress | None,
) -> Fitted:
    """Maximize the likelihood."""
    if n_states is None and isinstance(start, DiscreteTreeModel | MixedTreeModel):
        n_states = start.n_states[tree.n_observed :]
    kinds = kinds_of(tree, emissions, start)
    problem = make_problem(tree, sample, n_states, prior_weight, marginals, kinds)
    rng = np.random.default_rng(random_state)
    points = start_points(problem, sample, start, n_starts, rng)
    return maximize(problem, points, budget, progress)


MARGINALS = ("normal", "ranks", "cells")
"""How the scales of real columns can be taken."""


def is_dense(sample: Sample, marginals: str) -> bool:
    """Whether all columns of a copula are numbers with densities."""
    return marginals != "cells" and all(kind == "real" for kind in sample.schema.kinds)


def leaves_of_copula(tree: Tree, levels: BoolArray) -> Tree:
    """Return a tree whose columns are leaves, and only two of ordered levels joined directly."""
    tree = hung_as_leaves(tree, np.arange(tree.n_observed))
    above = tree.parent[: tree.n_observed]
    direct = np.zeros(tree.n_observed, bool)
    pair = np.flatnonzero((above >= 0) & (above < tree.n_observed))
    pair = pair[~(levels[pair] & levels[above[pair]])]
    direct[pair] = direct[above[pair]] = True
    return tied_by_hidden(tree, np.flatnonzero(direct))


def _fit_scores(
    tree: Tree,
    sample: Sample,
    marginals: str,
    method: str,
    start: Model | None,
    n_starts: int,
    budget: Budget | None,
    random_state: Any,
    progress: Progress | None,
) -> Fitted:
    """Fit a Gaussian tree to the scores of real columns."""
    table, margins = sample.parts.to_table(), first_margins(sample, marginals)
    scores = np.stack(
        [margin.score(table.column(j)) for j, margin in enumerate(margins)],  # type: ignore[union-attr]
        axis=1,
    )
    schema = Schema.gaussian(sample.names)
    if isinstance(start, CopulaTreeModel):
        start = GaussianTreeModel(start.tree, start.correlations)
    model, report = fit_parameters(
        tree, Table(scores, schema, table.weights), method=method, start=start, n_starts=n_starts,
        budget=budget, random_state=random_state, progress=progress,
    )  # fmt: skip
    found = CopulaTreeModel(model.tree, model.correlations, margins)
    report = replace(
        report,
        log_likelihood=found.total_log_likelihood(Table(table.values, found.schema, table.weights)),
        n_parameters=found.n_parameters,
    )
    return Fitted(with_schema(found, sample.schema).oriented(), report)


def _limit_notes(model: GaussianTreeModel) -> tuple[str, ...]:
    """Say which correlations ended at the limit, if any did."""
    tree = model.tree
    child = np.flatnonzero(np.abs(model.correlations) >= (1.0 - 1e-12) * np.tanh(LARGEST_Z))
    if not child.size:
        return ()
    pairs = [f"{tree.names[v]!r} and {tree.names[tree.parent[v]]!r}" for v in child[:3].tolist()]
    more = f" and {child.size - 3} more" if child.size > 3 else ""
    return (
        f"correlations of {', '.join(pairs)}{more} are at the limit of 1 − 2e-7: these are nearly "
        "copies of each other, and the likelihood is highest beyond the limit",
    )


def held_out_fits(
    tree: Tree,
    given: Sample,
    n_states: HiddenStates = None,
    *,
    most_states: int | None = None,
    prior_weight: float = 0.0,
    n_starts: int = 3,
    start: Model | None = None,
    budget: Budget | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
    fraction: float | None = None,
    X_valid: Any = None,
    emissions: Mapping[Node, type[FreeEmission]] | None = None,
) -> list[HeldOutFit]:
    """Prepare fits for prediction, of which each holds out other rows.

    Parameters
    ----------
    tree : Tree
    given : Sample
        Of the family "discrete" or "mixed", with the columns as the data has them.
    n_states, prior_weight, n_starts, start, progress, fraction, X_valid, emissions
        As in :func:`fit_parameters`; the weight of the prior and the number of starts are for the
        family "mixed", where the weight is what held-out rows begin with.
    most_states : int, optional
        Most states that held-out rows may decide on.
    budget : Budget, optional
    rng : Generator

    Returns
    -------
    list of HeldOutFit
        One; of mixed tables of few rows four, so that every row is held out once.
    """
    if given.family not in ("discrete", "mixed"):
        raise ModelError(
            f"held-out rows decide for discrete and mixed columns, but these are {given.family}"
        )
    if n_states is not None and not isinstance(n_states, int | np.integer):
        raise ModelError("with held-out rows every hidden node has the same number of states")
    settings: dict[str, Any] = {
        "n_states": None if n_states is None else int(n_states), "budget": budget or Budget(),
        "rng": rng, "progress": progress, "start": start,
        "kinds": kinds_of(tree, emissions, start),
    }  # fmt: skip
    if most_states is not None:
        settings["most_states"] = most_states
    sample = matched(tree, given)
    hidden_states(tree, sample, n_states)  # raises for more than memory holds
    table, is_mixed = sample.parts.to_table(), given.family == "mixed"
    if X_valid is not None:
        held_out = as_table(X_valid, schema=given.schema, unseen="missing")
        columns = _matching(tree, given.names)
        if columns is not None:
            held_out = held_out.select(np.array(columns), sample.names)
        splits = [(sample, held_out)]
    else:
        rows = held_out_splits(table, fraction, rng, are_folds=is_mixed)
        splits = [(Sample(cut_table(kept)), held_out) for kept, held_out in rows]
    settings["n_groups"] = -(-GROUPS // len(splits))  # at least GROUPS in all fits together
    if is_mixed:
        settings |= {"prior_weight": prior_weight or 1.0, "n_starts": n_starts}
    return [HeldOutFit(tree, sample, *split, **settings) for split in splits]


def _report(model: Model, sample: Sample) -> FitReport:
    """Report of parameters that follow from distances."""
    if sample.is_summed:
        problem = gaussian_problem(model.tree, sample)
        log_likelihood = problem.step(problem.point(model)).log_likelihood  # type: ignore[arg-type]
    else:
        log_likelihood = sample.rows.tables.total(part_log_likelihood, model)
    return FitReport("distances", log_likelihood, model.n_parameters, sample.total_weight)


def part_log_likelihood(table: Table, model: Model) -> float:
    """Weighted log-likelihood of one part of the rows."""
    return model.total_log_likelihood(table)


# What goes in -----------------------------------------------------------------------------------


def matched(tree: Tree, sample: Sample) -> Sample:
    """Return a sample whose columns are the tree's observed nodes, in their order."""
    columns = _matching(tree, sample.names)
    if columns is None:
        return sample
    return sample.renamed(np.array(columns), tree.names[: tree.n_observed])


def _matching(tree: Tree, given: tuple[str, ...]) -> list[int] | None:
    """Return the columns of the tree's variables; None if they are in place under their names."""
    names = tree.names[: tree.n_observed]
    if len(given) != tree.n_observed:
        raise DataError(
            f"the tree has {tree.n_observed} variables, but the data has {len(given)} columns"
        )
    if given == names:
        return None
    unnamed = tuple(f"x{v}" for v in range(tree.n_observed))
    if unnamed in (given, names):  # one side has no names: columns are matched by position
        return list(range(tree.n_observed))
    place = {name: column for column, name in enumerate(given)}
    absent = [name for name in names if name not in place]
    if absent:
        raise DataError(f"the tree's variable {absent[0]!r} is not a column of the data")
    return [place[name] for name in names]


def make_problem(
    tree: Tree,
    sample: Sample,
    n_states: HiddenStates = None,
    prior_weight: float = 0.0,
    marginals: str = "normal",
    kinds: Kinds | None = None,
) -> Any:
    """Return the likelihood of a sample under a tree, as the EM driver sees it."""
    if sample.family == "gaussian":
        return gaussian_problem(tree, sample)
    if sample.family == "copula":
        return CopulaProblem(tree, sample, marginals)
    states = hidden_states(tree, sample, n_states)
    kind = SymmetricProblem if sample.family == "symmetric" else StateProblem
    return kind(tree, states, sample, prior_weight, kinds)


def kinds_of(
    tree: Tree, emissions: Mapping[Node, type[FreeEmission]] | None, start: Model | None
) -> Kinds:
    """Return the distributions of columns that are asked for, and those of a model."""
    known = enumerate(getattr(start, "emissions", ()))
    kinds = {column: type(emission) for column, emission in known if emission is not None}
    return kinds | {node_number(tree, node): kind for node, kind in (emissions or {}).items()}


def hidden_states(tree: Tree, sample: Sample, n_states: HiddenStates) -> IntArray:
    """Return the numbers of states of all nodes: those of the data, and the hidden ones'."""
    usual = usual_states(sample.cardinalities)
    hidden = np.full(tree.n_hidden, usual, np.int64)
    if isinstance(n_states, Mapping):
        for node, count in n_states.items():
            number = node_number(tree, node)
            if number < tree.n_observed:
                raise ModelError(f"{tree.names[number]!r} is observed: its states are its values")
            hidden[number - tree.n_observed] = count
    elif n_states is not None:
        if np.size(n_states) not in (1, tree.n_hidden):
            raise ModelError(f"{np.size(n_states)} numbers of states for {tree.n_hidden} nodes")
        hidden[:] = n_states
    if hidden.min(initial=1) < 1:
        raise ModelError(f"a hidden node cannot have {hidden.min()} states")
    if sample.family == "symmetric" and (hidden != usual).any():
        raise ModelError(f"in a symmetric model every node has the data's {usual} states")
    states = np.concatenate([sample.cardinalities, hidden])
    _require_tables(tree, states)
    return states


def _require_tables(tree: Tree, n_states: IntArray) -> None:
    """Raise if the tables of a tree with so many states do not fit into memory."""
    above, below = n_states.astype(np.float64)[tree.edges.T]
    cells = float(above @ below)
    memory.require(
        3 * 8 * cells,  # probabilities, expected counts, and the probabilities after a step
        f"hidden variables of up to {n_states[tree.n_observed :].max(initial=0)} states",
        "give fewer (n_states)",
    )


def usual_states(cardinalities: IntArray) -> int:
    """Return the most common number of states among columns that have states; 2 without any."""
    known = cardinalities[cardinalities > 0]
    return int(np.bincount(known).argmax()) if known.size else 2


# Where it starts --------------------------------------------------------------------------------


def _from_distances(tree: Tree, sample: Sample, marginals: str = "normal") -> Model:
    if sample.family == "copula":
        problem = CopulaProblem(tree, sample, marginals)
        signs = starts.edge_signs(tree, sample.distances)
        return problem.model(problem.from_distances(signs))
    if sample.family == "discrete":
        raise ModelError(
            "the parameters of general discrete models do not follow from distances: use 'ml'"
        )
    signs = starts.edge_signs(tree, sample.distances)
    if sample.family == "gaussian":
        return GaussianTreeModel.from_distances(tree, signs, *sample.statistics.moments)
    n_states = int(sample.cardinalities[0])
    return DiscreteTreeModel.from_distances(tree, n_states, signs, sample.schema.labels)


def start_points(
    problem: Any,
    sample: Sample,
    start: Model | None,
    n_starts: int,
    rng: np.random.Generator,
) -> list[FloatArray]:
    """Return where EM starts: at a model, or from the distances and at random."""
    if start is not None:
        return [problem.point(start)]
    if sample.family == "mixed":
        return starts.binned_starts(problem, n_starts, rng)
    if sample.family == "copula":  # correlations of pairs lead close to the maximum
        return [problem.from_distances(starts.edge_signs(problem.tree, sample.distances))]
    if sample.family == "discrete":
        first = starts.surrogate_start(problem, rng)
    else:
        first = problem.point(_from_distances(problem.tree, sample))
    draw = _RANDOM_STARTS[sample.family]
    return [first, *(draw(problem, rng) for _ in range(n_starts - 1))]


_RANDOM_STARTS: dict[str, Callable[[Any, np.random.Generator], FloatArray]] = {
    "gaussian": starts.random_gaussian_start,
    "discrete": starts.random_discrete_start,
    "symmetric": starts.random_symmetric_start,
}

"""Where EM starts: from the distances, or at random."""

from __future__ import annotations

import numpy as np

from latentree.data import cut_table
from latentree.distances import Distances, Sample
from latentree.em._binning import Binning
from latentree.em._driver import Budget, maximize
from latentree.em._gaussian import MomentProblem, RowProblem
from latentree.em._state_problem import StateProblem, SymmetricProblem
from latentree.inference import Layout, mixture_moments
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

SOFTNESS = 0.15
"""How much a hidden node differs at the start from the observed node that it is a copy of."""

NOISE = 1.0
"""Standard deviation of the logarithm by which entries of split states differ."""

_SHORT = Budget(tolerance=1e-4, max_steps=30)
"""When the fit of binned columns stops, from which that of mixed columns starts."""


def edge_signs(tree: Tree, distances: Distances) -> FloatArray:
    """Return the sign of the edge above every node; hidden nodes are positive themselves.

    On a tree the sign of every correlation is the product of the signs of the edges on the path; as
    a hidden variable's sign is free, that is one sign per observed variable. Those of the two
    surrogates of every edge say how they differ: the observed nodes nearest to its ends, whose
    correlations are the strongest across it. The nodes with the same surrogate are connected, so
    that these pairs make a tree over the observed nodes.
    """
    surrogate = tree.surrogates()
    below = tree.order[tree.parent[tree.order] >= 0]
    pairs = np.column_stack([surrogate[tree.parent[below]], surrogate[below]])
    across = pairs[:, 0] != pairs[:, 1]
    turned = dict(zip(below[across].tolist(), distances.signs_of_pairs(pairs[across]), strict=True))
    sign = np.ones(tree.n_nodes)
    for v in below.tolist():  # every node has the sign of its surrogate
        sign[v] = sign[tree.parent[v]] * turned.get(v, 1)
    sign[tree.n_observed :] = 1.0
    return np.where(tree.parent < 0, 1.0, sign * sign[tree.parent])


def random_gaussian_start(
    problem: MomentProblem | RowProblem, rng: np.random.Generator
) -> FloatArray:
    """Correlations of random sign and size; means and scales of the columns."""
    rho = rng.uniform(0.2, 0.8, problem.tree.n_nodes)
    rho *= rng.choice([-1.0, 1.0], rho.size)
    return problem.point(GaussianTreeModel(problem.tree, rho, problem.center, problem.spread))


def surrogate_start(
    problem: StateProblem, rng: np.random.Generator, softness: float = SOFTNESS
) -> FloatArray:
    """Take every hidden node for a noisy copy of its surrogate, the observed node nearest to it.

    The table of an edge is then that of the two surrogates in the data, blurred: the dependence
    has the right direction, and states of neighbors mean the same. Where the numbers of states
    differ, states of the surrogate are shared out at random.
    """
    tree, layout = problem.layout.tree, problem.layout
    surrogate = tree.surrogates()
    blur = [
        _blur(problem, node, int(surrogate[node]), rng, softness) for node in range(tree.n_nodes)
    ]
    weights = np.empty(layout.size)
    for node in range(tree.n_nodes):
        above = int(tree.parent[node])
        mine = int(surrogate[node])
        if above < 0:
            joint = single(problem.sample, mine) @ blur[node]
        else:
            pair = problem.sample.pair_table(int(surrogate[above]), mine)
            joint = blur[above].T @ pair @ blur[node]
        weights[layout.starts[node] : layout.starts[node + 1]] = joint.ravel()
    return layout.normalized(weights + 1e-3 * problem.total_weight**0.5)


def _blur(
    problem: StateProblem,
    node: int,
    surrogate: int,
    rng: np.random.Generator,
    softness: float,
) -> FloatArray:
    """P(state of the node | value of its surrogate)."""
    n_from, n_to = int(problem.n_states[surrogate]), int(problem.n_states[node])
    if node == surrogate:
        return np.eye(n_from)
    if n_from == n_to:
        return (1.0 - softness) * np.eye(n_from) + softness / n_to
    shares = rng.dirichlet(np.ones(n_to), n_from)
    return (1.0 - softness) * shares + softness / n_to


def single(sample: Sample, column: int) -> FloatArray:
    """Weight of the rows with each state of a column."""
    return sample.statistics.sums.of_column(column)


def random_discrete_start(problem: StateProblem, rng: np.random.Generator) -> FloatArray:
    """Tables near independence: rows of an observed child scatter around its own frequencies."""
    layout, tree = problem.layout, problem.layout.tree
    weights = np.empty(layout.size)
    for node in range(tree.n_nodes):
        shape = layout.parent_states[node], layout.n_states[node]
        if node < tree.n_observed:
            share = single(problem.sample, node) + 1.0
            rows = share / share.sum() * np.exp(rng.normal(0.0, 0.5, shape))
        else:
            rows = rng.dirichlet(np.full(shape[1], 2.0), shape[0])
        weights[layout.starts[node] : layout.starts[node + 1]] = rows.ravel()
    return layout.normalized(weights)


def random_symmetric_start(problem: SymmetricProblem, rng: np.random.Generator) -> FloatArray:
    """Crossovers of random size."""
    k = int(problem.n_states[0])
    # Independent of its neighbor is a node whose crossover is 1/K.
    return problem.layout.symmetric(rng.uniform(0.1, 0.9, problem.tree.n_nodes) / k)


def binned_start(problem: StateProblem, model: DiscreteTreeModel, binning: Binning) -> FloatArray:
    """Return the point of a mixed problem that a model of the binned columns leads to.

    Tables are taken over. A leaf of numbers gets the mean and the variance that P(bin | state) and
    the moments of the bins give.
    """
    table = problem.first_rows()
    target = Layout(problem.layout.tree, model.n_states)
    theta = model.layout.reoriented(model.theta, target)
    with_states = np.flatnonzero(~problem.layout.emits).tolist()
    tables = [np.empty(0), *(target.table(theta, node).ravel() for node in with_states)]
    emissions = []
    for leaf in problem.leaves:
        moments = binning.moments(table, leaf.column)
        mean, variance = mixture_moments(target.table(theta, leaf.column), *moments)
        emissions.append(leaf.kind.by_moments(mean, variance, leaf.unit))
    return problem.joined(problem.layout.normalized(np.concatenate(tables)), emissions)


def binned_sample(problem: StateProblem) -> tuple[Sample, Binning]:
    """Return the first rows of a mixed sample with numbers in bins, and the bins."""
    rows = problem.first_rows()
    binning = Binning.of(rows)
    return Sample(cut_table(binning.table(rows))), binning


def binned_starts(
    problem: StateProblem, n_starts: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Fit the binned columns a little from several starts, and return where each leads to."""
    sample, binning = binned_sample(problem)
    states = problem.n_states.copy()
    states[: problem.tree.n_observed] = sample.cardinalities
    discrete = StateProblem(problem.tree, states, sample, problem.weight)
    points = [surrogate_start(discrete, rng)]
    points += [random_discrete_start(discrete, rng) for _ in range(n_starts - 1)]
    models = [maximize(discrete, [point], _SHORT).model for point in points]
    return [binned_start(problem, model, binning) for model in models]


def split_states(
    before: StateProblem,
    point: FloatArray,
    target: StateProblem,
    rng: np.random.Generator,
    noise: float = NOISE,
) -> FloatArray:
    """Return a point with more states: the heaviest states become two, alike but for noise.

    The new states of a pair share the weight of the old one; without noise the distribution of the
    observed nodes would be the same. Means of numbers move by half a standard deviation times the
    noise: about as far as two normal distributions are apart that look like one.
    """
    size = before.layout.size
    theta, origin = split_tables(before.layout, point[:size], target.layout, rng, noise)
    emissions = []
    for leaf in before.leaves:
        above = int(before.layout.tree.parent[leaf.column])
        own = origin[above] if above >= 0 else np.zeros(1, np.int64)
        is_split = np.bincount(own)[own] > 1
        emissions.append(
            leaf.at(point).taken(own, 0.5 * rng.normal(0.0, noise, own.size) * is_split)
        )
    return target.joined(theta, emissions)


def split_tables(
    layout: Layout, theta: FloatArray, target: Layout, rng: np.random.Generator, noise: float
) -> tuple[FloatArray, list[IntArray]]:
    """Return tables for more states, and the state that each state of every node comes from."""
    weights = np.split(layout.marginals(theta), layout.state_starts[1:-1])
    origin = [_origins(own, n) for own, n in zip(weights, target.n_states.tolist(), strict=True)]
    out = np.empty(target.size)
    for node, parent in enumerate(layout.tree.parent.tolist()):
        own = origin[node]
        above = np.zeros(1, np.int64) if parent < 0 else origin[parent]
        shared = np.bincount(own)[own]
        table = layout.table(theta, node)[np.ix_(above, own)] / shared
        target.table(out, node)[:] = table * np.exp(rng.normal(0.0, noise, table.shape))
    return target.normalized(out), origin


def _origins(weights: FloatArray, n_states: int) -> IntArray:
    """Return the state that each of so many states comes from."""
    heaviest = np.argsort(-weights, kind="stable")[: n_states - weights.size]
    return np.concatenate([np.arange(weights.size), heaviest])

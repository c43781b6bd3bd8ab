"""Trees drawn from their posterior, given the correlations of all pairs of variables."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import gammaln

from latentree._kernels import threads
from latentree._kernels.compiling import tiny
from latentree._kernels.structure import links as binary
from latentree._kernels.structure import sampling, sides
from latentree._kernels.structure.messages import collect, make_messages
from latentree._kernels.structure.spanning import minimum_spanning_tree
from latentree._memory import require
from latentree.distances import Distances
from latentree.errors import DistanceError, TreeError
from latentree.structure._blocks import Progress, groups_of
from latentree.structure._contraction import contract_short
from latentree.tree import Tree, hung_as_leaves
from latentree.typing import FloatArray, IntArray, RandomState

N_SKIPPED = 50
"""Sweeps before trees count."""

_TINY = 12
"""Up to so many variables kernels run uncompiled: 100 trees take some seconds."""

_SHARE_INSIDE = 0.03
"""Prior probability that a variable is inside the tree. With a uniform number of such variables one
of 80 costs log 80 nats, more than 10,000 rows tell; with 0.2, leaves of which little is known come
out inside, with 0.01 some that are inside become leaves. Chosen on seeds 110 to 122 of two shapes
(docs/evidence/support.md)."""

_FEWEST = 3
"""Variables of a component that has more than one tree: one of three may be inside."""

_N_NEAR = 24
"""Mean number of links near to a link, where a move may take one end of another link."""

_N_MOVES = 32
"""Moves per call of a kernel: some milliseconds."""

_N_SPANNING = 2
"""How many of the strongest correlations across a cut say where its sides may belong together."""

_FAINTEST = 1e-3
"""Correlation of an edge of a start that is weaker."""

_SHORTEST = 1e-9
"""Length of edges that are not contracted: they have at least 1e-5."""


def sample_trees(
    starts: Sequence[Tree],
    distances: Distances,
    n_trees: int,
    random_state: RandomState = None,
    *,
    n_skipped: int = N_SKIPPED,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> list[Tree]:
    """Draw trees from their posterior, given the correlations of all pairs of variables.

    Variables are taken as Gaussian ones with these correlations. Every tree, with hidden variables
    of any number of neighbors and observed variables inside or at the ends, has a prior: the number
    of contracted edges of a binary tree and that of cherries (two leaves with a common neighbor)
    are uniform, and correlations of edges have the density ¾·(1 − ρ²); a variable is inside with
    probability 0.03. A chain of trees begins at each of ``starts``. A step cuts an edge, and draws
    where and how strongly the two parts are linked again, given all the rest (Gibbs sampling): near
    to where they were, or near to variables of both that correlate strongly. The share of the trees
    with a split is its probability.

    A sweep has a step for every edge, and takes O(m²), for chains of variables up to O(m³) with a
    small factor: 0.01 s for 80 variables, 0.2 s for 500. Memory is O(m²).

    Parameters
    ----------
    starts : sequence of Tree
        Over the variables of the distances, in their order. Components are those of each, and stay.
    distances : Distances
        Estimated ones.
    n_trees : int
        How many trees each chain gives, one a sweep.
    random_state : int or Generator, optional
        For the draws.
    n_skipped : int
        Sweeps before the first of these trees.
    time_limit : float, optional
        Seconds after which no sweep begins. Chains that have no tree by then give the present one.
    progress : callable, optional
        Called as ``progress(done, total, message)`` after every tree.

    Returns
    -------
    list of Tree
        Chain after chain; fewer after a keyboard interrupt or at the end of the time. Lengths are
        on the scale of the distances.

    References
    ----------
    Lewis, Holder and Holsinger, Polytomies and Bayesian phylogenetic inference, Systematic Biology
    54, 2005, for a prior that does not favor binary trees.

    Johnson and Rossell, On the use of non-local prior densities in Bayesian hypothesis tests,
    Journal of the Royal Statistical Society B 72, 2010, for one that is 0 where edges are
    contracted, so that fewer of them are false.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> distances = lt.information_distances(truth.sample(1_000, 1))
    >>> start = lt.structure.chow_liu(distances)
    >>> trees = lt.structure.sample_trees([start], distances, 50, random_state=0)
    >>> sum(tree.same_structure(truth.tree) for tree in trees) > 25
    True
    """
    _check(starts, distances, n_trees)
    require(
        50.0 * len(starts) * distances.n_variables**2,
        f"sampling trees of {distances.n_variables:,} variables",
        "learn a tree by clnj and measure it by bootstrap_support(model, X, 'clnj')",
    )
    generators = np.random.default_rng(random_state).spawn(len(starts))
    end = math.inf if time_limit is None else time.monotonic() + time_limit
    is_over = threading.Event()  # a keyboard interrupt ends the other threads, too
    done = itertools.count(1)

    found: list[list[Tree]] = [[] for _ in starts]

    def chain(number: int) -> None:
        trees = found[number]
        walk = _chain(starts[number], distances, n_skipped, generators[number])
        for sweeps, draw in enumerate(walk):
            if is_over.is_set():
                break
            is_late = time.monotonic() > end
            if sweeps >= n_skipped or is_late:
                trees.append(draw())
                if progress is not None:
                    progress(next(done), n_trees * len(starts), "sampling trees")
            if len(trees) >= n_trees or is_late:
                break

    try:
        with tiny(distances.n_variables <= _TINY):
            threads.run(chain, range(len(starts)))
    except KeyboardInterrupt:
        if not any(found):
            raise
    finally:
        is_over.set()
    return [tree for trees in found for tree in trees]


def _check(starts: Sequence[Tree], distances: Distances, n_trees: int) -> None:
    """Raise an error that says what cannot be sampled."""
    if distances.n_effective is None:
        raise DistanceError(
            "trees are sampled from estimated distances, but these have no number of samples"
        )
    if not isinstance(n_trees, int | np.integer) or n_trees < 1:
        raise DistanceError(f"n_trees is {n_trees!r}, but must be a whole number from 1 on")
    for start in starts:
        if start.names[: start.n_observed] != distances.names:
            raise TreeError("starts must have the variables of the distances, in the same order")


def _chain(
    start: Tree, distances: Distances, n_skipped: int, rng: np.random.Generator
) -> Iterator[Callable[[], Tree]]:
    """Sweep without end; yield a function that gives the present tree after every sweep."""
    # Two numbers alone are tied by a hidden node of two neighbors, which is an edge here.
    start = Tree.from_parents(start.parent, start.length, start.n_observed, start.names, True)
    forest = hung_as_leaves(start, np.arange(start.n_observed))
    along = forest.order[forest.order < forest.n_observed]
    groups = [along[group] for group in groups_of(forest.components[along])]
    parts = [_Component.of(forest, group, distances) for group in groups]
    names = start.names[: start.n_observed]
    for sweeps in itertools.count():
        if sweeps <= n_skipped:  # a radius that went on to change would change the posterior
            radii = [part.radius() for part in parts]
        for part, radius in zip(parts, radii, strict=True):
            part.sweep(radius, rng)
        yield partial(_as_tree, parts, distances.exponent, names)


@dataclass(frozen=True, eq=False)
class _Component:
    """A connected part of the present tree, numbered within it: observed nodes first."""

    variables: IntArray
    """Which of all variables are its observed nodes."""
    state: sampling.State
    data: sampling.Data
    prior: sampling.Prior

    @classmethod
    def of(cls, forest: Tree, variables: IntArray, distances: Distances) -> _Component:
        """Take the variables of one component of a forest whose observed nodes are leaves.

        In the order of the tree, so that those of a message are near to each other.
        """
        nodes = np.flatnonzero(forest.components == forest.components[variables[0]])
        below = nodes[forest.parent[nodes] >= 0]
        number = np.empty(forest.n_nodes, np.int64)
        number[nodes] = np.arange(nodes.size)  # observed nodes come first …
        number[variables] = np.arange(variables.size)  # … in this order
        ends = number[np.column_stack([forest.parent[below], below])]
        rho = np.exp(-forest.length[below] / distances.exponent)
        assert distances.n_effective is not None
        correlation = _correlations(distances.subset(variables))
        return cls(
            variables,
            _state(_binary_links(ends, rho, variables.size), correlation),
            sampling.Data(distances.n_effective, _n_states(distances)),
            log_prior(max(variables.size, _FEWEST)),
        )

    @property
    def links(self) -> binary.Links:
        """The present tree."""
        return self.state.links

    def radius(self) -> int:
        """Return the largest number of steps within which a link has few others on average."""
        n_links = len(self.links.neighbor) - 1
        if n_links <= _N_NEAR:
            return n_links
        radius = 1
        while sides.mean_reach(self.links, radius + 1, self.state.near) <= _N_NEAR:
            radius += 1
        return radius

    def sweep(self, radius: int, rng: np.random.Generator) -> None:
        """Go around the tree once: every link moves. Less than three variables have one tree."""
        m = self.variables.size
        if m < _FEWEST:
            return
        left = len(self.links.neighbor) - 1
        while left > 0:  # some moves per call, so that a keyboard interrupt is heard
            some = min(left, _N_MOVES)
            sampling.move(self.state, m, self.data, self.prior, radius, some, rng)
            left -= some


def _state(links: binary.Links, correlation: FloatArray) -> sampling.State:
    """Return the state of a walk that begins at the first variable."""
    m, n = len(correlation), len(links.neighbor)
    messages = make_messages(correlation, n)
    order = [0]
    for node in order:
        ahead = [v for v in links.neighbor[node] if v >= 0 and v != messages.toward[node]]
        messages.toward[ahead] = node
        order += ahead
    if n > 1:
        messages.toward[0] = order[1]
    for node in reversed(order):
        if node >= m:
            collect(links, messages, node)
    counts = (*binary.count_contracted(links, m), binary.count_cherries(links, m))
    near = sides.Near(np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64))
    strongest = _strongest_pairs(correlation)
    return sampling.State(links, messages, np.array(order[:2]), np.array(counts), near, strongest)


def _strongest_pairs(correlation: FloatArray) -> IntArray:
    """Return pairs of variables, with the strongest few of those that any cut parts.

    A spanning tree of the strongest correlations has the strongest one across every cut, one
    without its pairs the next.
    """
    weakness = 1.0 - np.abs(correlation)
    trees = []
    for _ in range(_N_SPANNING):
        pairs = np.column_stack(minimum_spanning_tree(weakness, np.zeros(len(weakness))))
        weakness[pairs, pairs[:, ::-1]] = 2.0
        trees.append(pairs)
    return np.concatenate(trees)


def _correlations(distances: Distances) -> FloatArray:
    """Return e^(−d) of all pairs, on the scale of correlations, with signs."""
    return np.asarray(np.exp(-distances.dense() / distances.exponent) * distances.signs())


def _n_states(distances: Distances) -> float:
    """Return K of columns with K states, 2 if they have any numbers of them, 1 for numbers."""
    if distances.family == "symmetric":
        return distances.exponent + 1.0
    return 2.0 if distances.family in ("discrete", "mixed") else 1.0


def _binary_links(ends: IntArray, rho: FloatArray, m: int) -> binary.Links:
    """Return a tree whose hidden nodes have three neighbors: one with d becomes d − 2.

    Contracted links join these, as near to each other as they can be: each is above two others. The
    first of them has the number of the node.
    """
    degree = np.bincount(ends.ravel(), minlength=m)
    owner = np.repeat(np.arange(degree.size), 1 + np.maximum(degree - 3, 0))
    first = np.searchsorted(owner, owner)
    new = np.flatnonzero(first < np.arange(owner.size))
    number = owner.copy()
    number[new] = degree.size + np.arange(new.size)
    above = first[new] + (new - first[new] - 1) // 2
    free = 3 - np.bincount(new, minlength=owner.size) - np.bincount(above, minlength=owner.size)
    begin = np.searchsorted(np.repeat(owner, free), ends)
    spread = np.repeat(number, free)[begin + _ranks(ends)]
    both = np.concatenate([spread, np.column_stack([number[above], number[new]])])
    strength = np.concatenate([np.minimum(rho, 1.0), np.ones(new.size)])
    inexact = strength < 1.0
    strength[inexact] = strength[inexact].clip(_FAINTEST, binary.LARGEST)
    n_nodes = max(2 * m - 2, m)  # a single variable is a node
    links = binary.Links(np.full((n_nodes, 3), -1), np.zeros((n_nodes, 3)))
    slot = _ranks(both)
    links.neighbor[both, slot] = both[:, ::-1]
    links.rho[both, slot] = strength[:, None]
    return links


def _ranks(ends: IntArray) -> IntArray:
    """Return for every end of a link how many links of the same node come before it."""
    flat = ends.ravel()
    order = np.argsort(flat, kind="stable")
    ranks = np.empty_like(flat)
    ranks[order] = np.arange(flat.size) - np.searchsorted(flat[order], flat[order])
    return ranks.reshape(ends.shape)


def log_prior(m: int) -> sampling.Prior:
    """Return −log of the prior of a tree of m ≥ 3 leaves, by its numbers.

    The numbers of cherries and of contracted links are uniform, and so are the trees with the same
    numbers: m!·(m − 4)! / ((m − 2c)!·c!·(c − 2)!·4^(c − 1)) have c cherries, and n! / (k!·(n − k)!)
    sets of k out of n links may be contracted. A variable is inside with a probability of its own.
    """
    c = np.arange(2, m // 2 + 1)
    trees = gammaln(m + 1) + gammaln(m - 3) - gammaln(m - 2 * c + 1)
    trees -= gammaln(c + 1) + gammaln(c - 1) + (c - 1) * np.log(4.0)
    of_one = 0.0 if m == _FEWEST else np.inf  # three leaves have a common neighbor
    by_cherries = np.concatenate([[np.inf, of_one], trees])
    odds = (1.0 - _SHARE_INSIDE) / _SHARE_INSIDE
    return sampling.Prior(by_cherries, _log_choices(m - 3), np.arange(m + 1) * np.log(odds))


def _log_choices(n: int) -> FloatArray:
    """Return log of the number of sets of k things out of n, for all k."""
    k = np.arange(n + 1)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _as_tree(parts: list[_Component], exponent: float, names: tuple[str, ...]) -> Tree:
    """Return the tree of the links of all components; contracted ones have length 0, and go."""
    ends, rho, n_nodes = [np.empty((0, 2), np.int64)], [np.empty(0)], len(names)
    for part in parts:
        m = part.variables.size
        neighbor = part.links.neighbor
        node, slot = np.nonzero(neighbor > np.arange(len(neighbor))[:, None])
        number = np.concatenate([part.variables, n_nodes + np.arange(len(neighbor) - m)])
        ends.append(number[np.column_stack([node, neighbor[node, slot]])])
        rho.append(np.abs(part.links.rho[node, slot]))
        n_nodes += len(neighbor) - m
    lengths = -exponent * np.log(np.concatenate(rho))
    tree = Tree.from_edges(np.concatenate(ends), len(names), lengths, names)
    return contract_short(tree, _SHORTEST)

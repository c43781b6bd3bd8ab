"""Trees of known shape and models with random parameters, to learn from and to test with.

Every function that draws takes a ``numpy.random.Generator`` (or an integer seed, from which one
is made). Trees come with edges of length 1; :func:`random_lengths` and
:meth:`latentree.Tree.with_lengths` set others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree.errors import ModelError, TreeError
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

Random = np.random.Generator | int
Range = tuple[float, float]


# Trees of one shape -----------------------------------------------------------------------------


def latent_class(m: int) -> Tree:
    """Return a star: one hidden node with ``m`` observed neighbors.

    Parameters
    ----------
    m : int
        Number of observed nodes, at least 3.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> lt.simulate.latent_class(5)
    Tree(5 observed, 1 hidden, 5 edges)
    """
    _at_least(m, 3, "latent_class")
    return _hidden_chain(np.array([m]))


def double_star(m: int) -> Tree:
    """Return two hidden neighbors that share ``m`` observed leaves in halves.

    The paper's double star has 80 observed nodes. With an odd ``m`` the first half is larger.

    Parameters
    ----------
    m : int
        Number of observed nodes, at least 4.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> lt.simulate.double_star(80)
    Tree(80 observed, 2 hidden, 81 edges)
    """
    _at_least(m, 4, "double_star")
    return _hidden_chain(np.array([m - m // 2, m // 2]))


def hidden_markov(m: int) -> Tree:
    """Return a chain of ``m`` − 2 hidden nodes, each with one of ``m`` observed leaves.

    The two ends of the chain have a second leaf, so that every hidden node has three neighbors
    (with m = 80 as in the paper: 78 hidden).

    Parameters
    ----------
    m : int
        Number of observed nodes, at least 3.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> lt.simulate.hidden_markov(80)
    Tree(80 observed, 78 hidden, 157 edges)
    """
    _at_least(m, 3, "hidden_markov")
    leaves = np.ones(m - 2, np.int64)
    leaves[0] += 1
    leaves[-1] += 1
    return _hidden_chain(leaves)


def caterpillar(m: int, leaves: int = 2) -> Tree:
    """Return a chain of hidden nodes with at least ``leaves`` observed leaves each, ``m`` in all.

    There are ``m // leaves`` hidden nodes, which share the leaves as evenly as possible.
    With one leaf per hidden node this would be :func:`hidden_markov`, with half of them
    :func:`double_star`, with all of them :func:`latent_class`.

    Parameters
    ----------
    m : int
        Number of observed nodes.
    leaves : int
        The least number of leaves a hidden node has, from 2 to ``m``.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> lt.simulate.caterpillar(12, leaves=3)
    Tree(12 observed, 4 hidden, 15 edges)
    """
    if leaves < 2:
        raise TreeError(f"caterpillar needs leaves ≥ 2, not {leaves}: see hidden_markov for 1")
    _at_least(m, max(3, leaves), "caterpillar")
    n_hidden = m // leaves
    return _hidden_chain(np.diff(np.arange(n_hidden + 1) * m // n_hidden))


def complete_tree(degree: int, depth: int) -> Tree:
    """Return the tree whose inner nodes all have ``degree`` neighbors, ``depth`` edges deep.

    The root (node 0) and the leaves are observed, the inner nodes between them hidden.

    Parameters
    ----------
    degree : int
        Number of neighbors of an inner node, at least 3.
    depth : int
        Number of edges from the root to a leaf, at least 1.

    Returns
    -------
    Tree

    Examples
    --------
    The paper's 5-complete tree:

    >>> import latentree as lt
    >>> lt.simulate.complete_tree(5, 3)
    Tree(81 observed, 25 hidden, 105 edges)
    """
    if degree < 3 or depth < 1:
        raise TreeError(f"complete_tree needs degree ≥ 3 and depth ≥ 1, not {degree} and {depth}")
    widths = [1] + [degree * (degree - 1) ** level for level in range(depth)]
    starts = np.cumsum([0, *widths])  # numbered level by level, then observed first
    parent = np.full(starts[-1], -1)
    for level in range(1, depth + 1):
        fan = widths[level] // widths[level - 1]
        parent[starts[level] : starts[level + 1]] = starts[level - 1] + (
            np.arange(widths[level]) // fan
        )
    observed = np.concatenate([[0], np.arange(starts[-2], starts[-1])])
    return _observed_first(parent, observed)


def _hidden_chain(leaves: IntArray) -> Tree:
    """Make a chain of hidden nodes with these numbers of observed leaves, rooted at its start."""
    m, n_hidden = int(leaves.sum()), leaves.size
    chain = m + np.arange(n_hidden)
    above = np.concatenate([[-1], chain[:-1]])
    return Tree(np.concatenate([np.repeat(chain, leaves), above]), n_observed=m)


def _observed_first(parent: IntArray, observed: IntArray) -> Tree:
    """Renumber a parent array so that the given nodes come first, in the given order."""
    is_hidden = np.ones(parent.size, bool)
    is_hidden[observed] = False
    old = np.concatenate([observed, np.flatnonzero(is_hidden)])
    new = np.full(parent.size + 1, -1)
    new[old] = np.arange(parent.size)
    return Tree(new[parent[old]], n_observed=observed.size)


def _at_least(m: int, least: int, shape: str) -> None:
    if m < least:
        raise TreeError(f"{shape} needs at least {least} observed nodes, not {m}")


# Random trees -----------------------------------------------------------------------------------


def random_latent_tree(
    m: int, rng: Random, inner_share: float = 0.2, merge_share: float = 0.3
) -> Tree:
    """Draw a minimal latent tree over ``m`` observed nodes.

    A uniformly random binary tree over the leaves comes first. Then each edge between two hidden
    nodes is contracted with probability ``merge_share`` (0 keeps all degrees at three; near 1
    makes hubs), and the share ``inner_share`` of the observed nodes is placed inside: each replaces
    a hidden node or, as often, splits an edge. Edges have length 1.

    Parameters
    ----------
    m : int
        Number of observed nodes, at least 1.
    rng : numpy.random.Generator or int
        The source of randomness, or a seed for one.
    inner_share : float
        Share of the observed nodes that are not leaves. At least two stay leaves.
    merge_share : float
        Probability that an edge between two hidden nodes is contracted.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> tree = lt.simulate.random_latent_tree(50, rng=0, inner_share=0.2)
    >>> tree.n_observed, len(tree.leaves)
    (50, 40)
    """
    _at_least(m, 1, "random_latent_tree")
    for name, share in (("inner_share", inner_share), ("merge_share", merge_share)):
        if not 0 <= share <= 1:
            raise TreeError(f"{name} is {share}, but must be from 0 to 1")
    rng = np.random.default_rng(rng)
    n_leaves = max(m - round(inner_share * m), min(m, 2))
    tree = _random_binary_tree(n_leaves, rng)
    between = tree.hidden[tree.parent[tree.hidden] >= n_leaves]
    tree = tree.contract_edges(between[rng.random(between.size) < merge_share])
    return _observe_inside(tree, m, rng)


def random_lengths(tree: Tree, rng: Random, low: float = 0.2, high: float = 1.6) -> Tree:
    """Return the tree with edge lengths drawn uniformly from ``low`` to ``high``.

    Parameters
    ----------
    tree : Tree
    rng : numpy.random.Generator or int
        The source of randomness, or a seed for one.
    low, high : float
        The default range is about that of −log|ρ| for correlations ρ from 0.8 down to 0.2.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> tree = lt.simulate.random_lengths(lt.Tree([-1, 0, 0]), rng=0, low=1, high=2)
    >>> bool(((tree.length[1:] >= 1) & (tree.length[1:] <= 2)).all())
    True
    """
    drawn = np.random.default_rng(rng).uniform(low, high, tree.n_nodes)
    return tree.with_lengths(np.where(tree.parent < 0, 0.0, drawn))


def _random_binary_tree(n_leaves: int, rng: np.random.Generator) -> Tree:
    """Draw a uniformly random binary tree: each new leaf splits a random edge."""
    if n_leaves < 3:
        return Tree([-1, 0][:n_leaves])
    parent = np.full(2 * n_leaves - 2, -1)
    parent[1] = 0
    # With k leaves there are 2k − 3 edges, named by their lower ends: leaf 1 … k − 1, k − 2 hidden.
    choices = rng.integers(0, 2 * np.arange(2, n_leaves) - 3)
    for leaf, choice in enumerate(choices, start=2):
        hidden = n_leaves + leaf - 2
        child = choice + 1 if choice < leaf - 1 else n_leaves + choice - (leaf - 1)
        parent[hidden] = parent[child]
        parent[child] = parent[leaf] = hidden
    return Tree(parent, n_observed=n_leaves)


def _observe_inside(tree: Tree, m: int, rng: np.random.Generator) -> Tree:
    """Add observed nodes inside the tree until there are ``m``, under shuffled numbers."""
    n_inside = m - tree.n_observed
    n_replacing = min(rng.binomial(n_inside, 0.5), tree.n_hidden)
    replaced = rng.permutation(tree.hidden)[:n_replacing]
    parent = list(tree.parent)
    on_edges = range(tree.n_nodes, tree.n_nodes + n_inside - n_replacing)
    for node, below in zip(on_edges, rng.choice(tree.edges[:, 1], len(on_edges)), strict=True):
        parent.append(parent[below])  # a second node on an edge goes below the first
        parent[below] = node
    observed = np.concatenate([np.arange(tree.n_observed), replaced, np.array(on_edges, np.int64)])
    return _observed_first(np.array(parent), rng.permutation(observed))


# Random parameters ------------------------------------------------------------------------------


def random_gaussian_model(
    tree: Tree, rng: Random, strength: Range = (0.2, 0.8), negative_share: float = 0.0
) -> GaussianTreeModel:
    """Draw a Gaussian model: a correlation for every edge, uniformly from a range.

    Means are 0 and scales 1.

    Parameters
    ----------
    tree : Tree
    rng : numpy.random.Generator or int
        The source of randomness, or a seed for one.
    strength : (float, float)
        Range of the absolute correlations; the default is the paper's.
    negative_share : float
        Probability that a correlation is negative.

    Returns
    -------
    GaussianTreeModel

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(3), rng=0)
    >>> model.sample(1_000, random_state=0).shape
    (1000, 3)
    """
    rng = np.random.default_rng(rng)
    rho = _draw_strengths(tree.n_nodes, rng, strength)
    return GaussianTreeModel(tree, rho * _draw_signs(tree.n_nodes, rng, negative_share))


def random_symmetric_model(
    tree: Tree,
    n_states: int,
    rng: Random,
    strength: Range = (0.2, 0.8),
    negative_share: float = 0.0,
) -> DiscreteTreeModel:
    """Draw a symmetric discrete model: 1 − K·θ of every edge is uniform in a range.

    Parameters
    ----------
    tree : Tree
    n_states : int
        K, the number of states of every node.
    rng : numpy.random.Generator or int
        The source of randomness, or a seed for one.
    strength : (float, float)
        Range of the absolute value of 1 − K·θ.
    negative_share : float
        Probability that 1 − K·θ is negative. It is then divided by K − 1, because θ ≤ 1/(K−1)
        bounds it by −1/(K−1).

    Returns
    -------
    DiscreteTreeModel
        Of the family "symmetric".

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_symmetric_model(lt.simulate.latent_class(3), 2, rng=0)
    >>> model.n_parameters
    3
    """
    rng = np.random.default_rng(rng)
    drawn = _draw_strengths(tree.n_nodes, rng, strength)
    signs = _draw_signs(tree.n_nodes, rng, negative_share)
    signed = np.where(signs < 0, -drawn / max(n_states - 1, 1), drawn)
    return DiscreteTreeModel.symmetric(tree, n_states, (1.0 - signed) / n_states)


def random_discrete_model(
    tree: Tree,
    n_states: int | Sequence[int] | IntArray,
    rng: Random,
    strength: Range = (0.2, 0.8),
) -> DiscreteTreeModel:
    """Draw a general discrete model.

    Given state i of the parent, a node takes the state π(i) of a random one-to-one map π (as near
    to one as the numbers of states allow) with probability s_i, uniform in the range ``strength``,
    and else a state from a random distribution of its own for every i. Square tables T have
    |det T| ≥ Π s_i, so no edge is nearly independent by accident. Root marginals are at least
    1/(2K).

    Parameters
    ----------
    tree : Tree
    n_states : int or sequence of int
        Number of states of all nodes, or of each.
    rng : numpy.random.Generator or int
        The source of randomness, or a seed for one.
    strength : (float, float)
        Range of the probabilities s_i.

    Returns
    -------
    DiscreteTreeModel

    Examples
    --------
    >>> import latentree as lt
    >>> lt.simulate.random_discrete_model(lt.simulate.latent_class(3), [2, 2, 3, 4], rng=0)
    DiscreteTreeModel(Tree(3 observed, 1 hidden, 3 edges), 2 to 4 states)
    """
    rng = np.random.default_rng(rng)
    states = np.broadcast_to(np.asarray(n_states, np.int64), tree.n_nodes)
    if states.min() < 1:
        raise ModelError(f"every node needs at least one state, got {states.min()}")
    tables = [
        _random_marginal(int(states[node]), rng)
        if above < 0
        else _random_table(int(states[above]), int(states[node]), rng, strength)
        for node, above in enumerate(tree.parent)
    ]
    return DiscreteTreeModel(tree, tables)


def _draw_strengths(count: int, rng: np.random.Generator, strength: Range) -> FloatArray:
    low, high = strength
    if not 0 <= low <= high <= 1:
        raise ModelError(f"strength is {strength}, but must be a range within 0 to 1")
    return rng.uniform(low, high, count)


def _draw_signs(count: int, rng: np.random.Generator, negative_share: float) -> FloatArray:
    if not 0 <= negative_share <= 1:
        raise ModelError(f"negative_share is {negative_share}, but must be from 0 to 1")
    return np.where(rng.random(count) < negative_share, -1.0, 1.0)


def _random_marginal(n_states: int, rng: np.random.Generator) -> FloatArray:
    return 0.5 / n_states + 0.5 * rng.dirichlet(np.ones(n_states))


def _random_table(
    n_above: int, n_states: int, rng: np.random.Generator, strength: Range
) -> FloatArray:
    """Draw T = diag(s)·Π + diag(1 − s)·N, where Π is a map between states and N noise."""
    s = _draw_strengths(n_above, rng, strength)
    mapped = np.eye(n_states)[_random_map(n_above, n_states, rng)]
    own = rng.dirichlet(np.ones(n_states), n_above)
    common = rng.dirichlet(np.ones(n_states))
    share = 1.0
    while True:
        noise = share * own + (1.0 - share) * common
        table: FloatArray = s[:, None] * mapped + (1.0 - s)[:, None] * noise
        # With noise common to all rows |det T| = Π s · (1 + Σ (1 − s_i)/s_i · common_π(i)), which
        # is more than asked for: halving the share of each row's own noise ends somewhere.
        if n_above != n_states or share < 1e-6 or abs(np.linalg.det(table)) >= s.prod():
            return table
        share /= 2.0


def _random_map(n_from: int, n_to: int, rng: np.random.Generator) -> IntArray:
    """Map states one to one as far as that goes: every target is used before any is used again."""
    rounds = -(-n_from // n_to)
    return np.concatenate([rng.permutation(n_to) for _ in range(rounds)])[:n_from]

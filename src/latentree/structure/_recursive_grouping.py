"""Recursive grouping: siblings are found by what they have in common with all others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from latentree._kernels.structure import grouping
from latentree._kernels.structure.ranges import FAR, max_difference
from latentree.distances import Distances, DistancesLike, as_distances
from latentree.structure._blocks import Block, Progress, learn_by_blocks, printed, report
from latentree.structure._contraction import finish_tree
from latentree.structure._neighbor_joining import STRONG
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

_CERTAINTY = 0.75
"""Half-width of the intervals of distances, in units of √(log n) standard errors: they widen with n
as BIC's penalty does, so that a false difference is ever rarer."""

_SMALL = 48
"""Active nodes up to which one compiled loop runs all further rounds, on one thread."""


@dataclass(frozen=True)
class GroupingRule:
    """How families are recognized.

    Attributes
    ----------
    noise : float
        1/√n, the standard error of a weak correlation; 0 for exact distances.
    z : float
        Half-width of the intervals of distances, in standard errors.
    tau : float
        Distances of τ and more do not count in Λ̂.
    tolerance : float
        Differences up to this are rounding errors; a member of a family that is so near to where
        its parent belongs is the parent.
    epsilon : float
        Threshold of the plain Λ̂; −1 if families are found by clustering.
    relaxed : bool
        Whether the distances are estimates.
    """

    noise: float
    z: float
    tau: float
    tolerance: float
    epsilon: float
    relaxed: bool

    @property
    def reach(self) -> float:
        """Distance up to which distances are weighted by their precision; 0 weighs all alike."""
        return 6.0 if self.noise > 0 else 0.0

    @property
    def additive(self) -> float:
        """How far from additive a parent's distances may be."""
        return math.inf if self.relaxed and self.noise > 0 else self.tolerance


def certainty(noise: float) -> float:
    """Return the half-width of the distances' intervals, in standard errors; 0 for no noise."""
    return _CERTAINTY * math.sqrt(-2.0 * math.log(noise)) if noise > 0 else 0.0


def recursive_grouping(
    distances: DistancesLike,
    exact: bool = False,
    threshold: float = STRONG,
    tau: float | None = None,
    epsilon: float | None = None,
    progress: Progress | None = None,
    as_printed: bool = False,
) -> Tree:
    """Learn a latent tree by recursive grouping (Section 4 of the paper, relaxed as in 6.1).

    In rounds, nodes are parted into families: siblings, with their parent if it is among them.
    i and j are in a family when Φ_ijk = d_ik − d_jk is the same for all k. Each family is replaced
    by its parent, a new hidden node if need be, whose distances are averages over its children.
    O(m³) for m variables a round, and as many rounds as the tree is deep; the m³ loop is a compiled
    kernel on all threads.

    On estimates, Λ̂_ij = max_k Φ̂_ijk − min_k Φ̂_ijk is far from 0 by noise alone, most of all where
    the distances are long, and one long distance among many spoils it; therefore the authors'
    program finds few of an HMM's hidden nodes. Here, when the number of samples n is known, each
    distance has an interval, 0.75·√(log n) standard errors wide to either side on the scale of
    correlations (so that a vanishing correlation still says "at least so far"), and Λ̂ counts what
    is left beyond the intervals. Families are the clusters of average linkage whose mean Λ̂ is at
    most 0. Nodes with a negative silhouette, by how far from proportional their correlations are,
    then move. Without n the cut with the largest mean silhouette is taken, unless
    there are families within rounding, as there are in exact distances.

    Parameters
    ----------
    distances : Distances or square array
        Information distances.
    exact : bool
        Whether the distances are those of a tree, up to rounding.
    threshold : float
        ε′: edges with a hidden end that are shorter than this, on the scale −log|ρ|, are contracted
        in the end.
    tau : float, optional
        Distances of τ and more, on that scale, do not count in Λ̂. By default all count: the
        intervals see to it that long ones have little to say.
    epsilon : float, optional
        Join when the mean plain Λ̂ is at most ε, in place of the clustering described above.
    progress : callable, optional
        Called as ``progress(done, total, message)`` in every round.
    as_printed : bool
        Whether to run the paper's relaxed algorithm (Section 6.1) and nothing else: Λ̂ over
        distances below τ, which is −log 0.05 + 0.1·log n by default, families by the mean
        silhouette or by ε, unweighted averages, contraction of edges shorter than ε′. Nothing is
        tested, and no length is fitted.

    Returns
    -------
    Tree
        A minimal latent tree: hidden nodes have three neighbors or more. With exact distances it
        is the true tree.

    References
    ----------
    Choi, Tan, Anandkumar and Willsky, Learning latent tree graphical models, Journal of Machine
    Learning Research 12, 2011, Section 4.

    Examples
    --------
    >>> print(recursive_grouping([[0, 3, 4], [3, 0, 3], [4, 3, 0]], exact=True).draw())
    x0
    └─ (h1)  2
       ├─ x1  1
       └─ x2  2
    """
    if as_printed:
        tau = printed_tau(as_distances(distances)) if tau is None else tau
        distances = printed(distances)

    def learn(block: Block) -> Tree:
        rule = grouping_of(block, exact, tau, epsilon)
        return finish_tree(grouped(block, rule, progress), block, exact, threshold)

    return learn_by_blocks(distances, learn, exact and tau is None and epsilon is None)


def printed_tau(distances: Distances) -> float | None:
    """Return the threshold of the authors' program, −log 0.05 + 0.1·log n; None without n.

    The paper says that τ grows with log n, and no more.
    """
    n = distances.n_samples
    return None if n is None else -math.log(0.05) + 0.1 * math.log(n)


def grouping_of(
    block: Block, exact: bool, tau: float | None = None, epsilon: float | None = None
) -> GroupingRule:
    """Choose how to recognize families, from what is known of the distances."""
    noise = 0.0 if exact else block.noise
    plain = noise == 0.0 or epsilon is not None
    return GroupingRule(
        noise=noise,
        z=0.0 if plain else certainty(noise),
        tau=FAR if tau is None else tau,
        tolerance=block.tolerance,
        epsilon=-1.0 if epsilon is None else epsilon,
        relaxed=not exact,
    )


def grouped(block: Block, rule: GroupingRule, progress: Progress | None = None) -> Tree:
    """Run all rounds; negative lengths become 0."""
    m = block.n_variables
    distance, depth, node = block.matrix, np.zeros(m), np.arange(m)
    next_hidden = m
    ends, lengths = np.empty((2 * m, 2), np.int64), np.empty(2 * m)
    n_edges = 0
    while node.size > _SMALL:
        report(progress, m - node.size, m, "grouping siblings")
        label = families(distance, depth, rule)
        distance, depth, node, next_hidden, n_edges = grouping.merge_families(
            distance,
            depth,
            node,
            label,
            rule.reach,
            rule.tau,
            rule.additive,
            rule.tolerance,
            next_hidden,
            ends,
            lengths,
            n_edges,
        )
    n_edges = grouping.finish_grouping(
        distance,
        depth,
        node,
        rule.noise,
        rule.z,
        rule.tau,
        rule.tolerance,
        rule.epsilon,
        rule.tolerance,
        rule.relaxed,
        next_hidden,
        ends,
        lengths,
        n_edges,
    )
    report(progress, m, m, "grouping siblings")
    return Tree.from_edges(ends[:n_edges], m, np.maximum(lengths[:n_edges], 0.0), minimal=True)


def families(distance: FloatArray, depth: FloatArray, rule: GroupingRule) -> IntArray:
    """Return the family of every active node, with the m³ kernel on all threads."""
    bounds = grouping.distance_bounds(distance, depth, rule.noise, rule.z, rule.tau)
    spread = grouping.spread_of(max_difference(*bounds))
    label: IntArray = grouping.family_labels(
        distance, depth, spread, rule.noise, rule.tolerance, rule.epsilon, rule.relaxed
    )
    return label

"""Which variables are connected, so far as the data can tell.

Independence is the null hypothesis, tested at one level in two steps. First pair by pair, with the
false discovery rate of Benjamini and Hochberg over all pairs: pairs that stand out make groups.
Then the groups against each other as a whole: the evidence of all pairs across groups is added up
and compared with what independent groups give. If it stands out, weak links tie the groups
together, whichever they are. So it is taken to be if the groups hold a third of the links of a
tree already: what cannot be told from noise in a table that hangs together is rather weak than
absent, and only spanning links of less than one standard error are cut then. Otherwise each group
is a block of its own. Of independent variables, both steps together find something with a
probability of at most twice the level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc

from latentree.distances import Distances, Evidence
from latentree.structure._spanning import spanning_edges
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray, IntArray

LEVEL = 0.01
"""Of the test of independence: the false discovery rate, and the error of the joint test."""

ENOUGH = 1 / 3
"""Share of the m − 1 links of a tree. Of hidden Markov chains with 80 variables and correlations on
[0.2, 0.8], 1,000 rows show a third at least, and no single one of the others."""

MOST = 1024
"""With more variables only the strongest pairs are tested, of at most so many: the evidence of all
takes m² numbers."""


def connected_groups(distances: Distances, spanning: IntArray) -> IntArray:
    """Return the group of every variable, so that groups look independent of each other.

    Exact distances fall apart only where they are infinite. Nothing is tested where it is known
    that the variables hang together.
    """
    m = distances.n_variables
    if m == 1 or distances.components is not None:
        return np.zeros(m, np.int64)
    tested = None if distances.n_samples is None else _significant_groups(distances, spanning)
    if tested is not None and not tested.hang_together:
        return tested.label
    # Across an edge between two variables that look independent, no pair looks dependent.
    kept = spanning[~distances.independent_pairs(spanning)]
    label = np.asarray(Tree.from_edges(kept, m).components)
    return label if tested is None else _joined(label, tested.label)


def _joined(first: IntArray, second: IntArray) -> IntArray:
    """Return groups that hold the groups of two partitions.

    A distance may be too uncertain to be told from infinity where a test finds dependence: that of
    two columns of many labels takes all of their correlations to be known.
    """
    m, n_groups = first.size, int(first.max()) + 1
    ends = np.concatenate([m + first, m + n_groups + second])
    nodes = m + n_groups + int(second.max()) + 1
    links = csr_array((np.ones(2 * m), (np.tile(np.arange(m), 2), ends)), (nodes, nodes))
    return np.asarray(connected_components(links, directed=False)[1][:m], np.int64)


def independent_groups(distances: Distances) -> IntArray:
    """Part variables into groups that look independent of each other.

    All learners do this first. Pairs are tested at the false discovery rate 0.01 (Benjamini and
    Hochberg 1995), then what is across groups as a whole, see the page "Which method when".

    Parameters
    ----------
    distances : Distances
        Information distances; exact ones fall apart only where they are infinite.

    Returns
    -------
    array of int
        The group of every variable.

    References
    ----------
    Benjamini and Hochberg, Controlling the false discovery rate, Journal of the Royal Statistical
    Society B 57, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree import information_distances
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> independent_groups(information_distances(X)).tolist()
    [0, 1, 2, 3, 4]
    >>> X[:, 1] += X[:, 0]
    >>> independent_groups(information_distances(X)).tolist()
    [0, 0, 1, 2, 3]
    """
    return connected_groups(distances, spanning_edges(distances))


class _Tested(NamedTuple):
    """Groups of variables that pairs which stand out connect, and whether these hang together."""

    label: IntArray
    hang_together: bool


def _significant_groups(distances: Distances, spanning: IntArray) -> _Tested:
    """Return the groups that the test finds."""
    m = distances.n_variables
    if m > MOST:
        return _Tested(np.arange(m), _has_significant_link(distances, spanning))
    evidence = distances.evidence()
    label = connected_components(csr_array(significant(evidence.p_values())))[1].astype(np.int64)
    found = 1.0 - label.max() / (m - 1)
    is_one = found >= ENOUGH or _stands_out(evidence, label, distances)
    return _Tested(np.asarray(label), is_one)


def significant(p: FloatArray) -> BoolArray:
    """Find the pairs that are not independent, by Benjamini and Hochberg's procedure.

    The largest p₍ₖ₎ of the M sorted p-values with p₍ₖ₎ ≤ level·k/M is the last that counts.
    """
    ordered = np.sort(p[np.triu_indices(len(p), 1)])
    below = np.flatnonzero(ordered <= LEVEL * np.arange(1, ordered.size + 1) / ordered.size)
    limit = ordered[below[-1]] if below.size else -1.0
    found: BoolArray = p <= limit
    np.fill_diagonal(found, False)
    return found


def _stands_out(evidence: Evidence, label: IntArray, distances: Distances) -> bool:
    """Test all groups for independence of each other, by the sum of the evidence across them.

    Under independence the sum of χ² of pairs (i, j) has the mean Σ f_ij of their degrees of
    freedom. Pairs of dependent variables are dependent: the covariance of (i, j) and (k, l) is
    2·ρ²_ik·ρ²_jl, so that the variance across groups A and B is 2·N_A·N_B for one degree of
    freedom each, with N_A = Σ ρ² over all pairs in A, i = k included; rare answers add to it. The
    sum is compared with the multiple of a χ² that has the same mean and variance.
    """
    groups = np.equal.outer(label, np.arange(label.max() + 1)).astype(np.float64)
    across = ~np.equal.outer(label, label)
    total, mean = (
        float(array[across].sum()) / 2.0 for array in (evidence.statistic, evidence.freedom)
    )
    sizes = groups.sum(axis=0)
    assert distances.n_effective is not None
    # ρ̂² is ρ² + 1/n on average.
    every = distances.block(slice(None), slice(None))  # of at most MOST variables, and not kept
    squares = np.exp(-2.0 * every / distances.exponent) - 1.0 / distances.n_effective
    np.fill_diagonal(squares, 1.0)
    within = np.maximum(np.einsum("ia,ij,ja->a", groups, squares, groups, optimize=True), sizes)
    # Σ_{A<B} x_A·x_B = ((Σ x)² − Σ x²)/2, of N and of the sizes, which count the pairs.
    both = (within.sum() ** 2 - (within**2).sum()) / (sizes.sum() ** 2 - (sizes**2).sum())
    excess = np.broadcast_to(evidence.excess, across.shape)[across].mean()
    unit = max(both, 1.0) + float(excess)  # variance / (2·mean)
    return bool(mean > 0.0 and chdtrc(mean / unit, total / unit) < LEVEL)


def _has_significant_link(distances: Distances, spanning: IntArray) -> bool:
    """Whether one of the strongest pairs stands out among all; they are in the spanning tree."""
    m = distances.n_variables
    p = distances.subset(_nearest(distances, spanning)).evidence().p_values()
    return bool(p.min() < LEVEL / (m * (m - 1) / 2))


class PairTest(NamedTuple):
    """The pair of variables that looks most dependent.

    Attributes
    ----------
    first, second : int
        The two variables.
    dependence : float
        Their signed correlation, or what stands for it.
    p_value : float
        Probability of a pair that looks as dependent, if the two are independent.
    """

    first: int
    second: int
    dependence: float
    p_value: float


def strongest_pair(distances: Distances) -> PairTest:
    """Find the pair that looks most dependent; of very many variables, among the nearest ones.

    Parameters
    ----------
    distances : Distances
        Estimated from data, of two variables or more.

    Returns
    -------
    PairTest

    Examples
    --------
    >>> import numpy as np
    >>> from latentree import information_distances
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> X[:, 1] += X[:, 0]
    >>> strongest_pair(information_distances(X))[:2]
    (0, 1)
    """
    among, own = np.arange(distances.n_variables), distances
    if among.size > MOST:
        among = _nearest(distances, spanning_edges(distances))
        own = distances.subset(among)
    p = own.evidence().p_values() + np.eye(among.size)
    # Where p-values are rounded to 0, the nearer pair is the more dependent one.
    order = np.lexsort((own.block(slice(None), slice(None)).ravel(), p.ravel()))
    first, second = sorted(divmod(int(order[0]), among.size))
    pair = np.array([[among[first], among[second]]])
    size = float(np.exp(-distances.of_pairs(pair)[0] / distances.exponent))
    signed = size * float(distances.signs_of_pairs(pair)[0])
    return PairTest(int(among[first]), int(among[second]), signed, float(p[first, second]))


def _nearest(distances: Distances, spanning: IntArray) -> IntArray:
    """Return the variables of the shortest links of the spanning tree."""
    near = np.argsort(distances.of_pairs(spanning), kind="stable")[: MOST // 2]
    return np.unique(spanning[near])


APART = NOTHING, BLOCKS = ("no dependence was found", "the variables fall apart")
"""How descriptions begin: of variables that all look independent, and of groups that do."""


def describe_parts(distances: Distances, group: IntArray, tested: IntArray | None = None) -> str:
    """Say that variables fall apart into groups, and why.

    Parameters
    ----------
    distances : Distances
    group : array of int
        The group of every variable.
    tested : array of int, optional
        The groups that look independent of each other (:func:`independent_groups`), if ``group``
        may have more: a search also leaves out links that are not worth their parameters.

    Returns
    -------
    str
        Empty where all are in one group.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree import information_distances
    >>> distances = information_distances(np.random.default_rng(0).normal(size=(100, 3)))
    >>> describe_parts(distances, np.array([0, 0, 0]))
    ''
    >>> describe_parts(distances, np.array([0, 0, 1]))[:39]
    'the variables fall apart into 2 blocks '
    """
    labels, sizes = np.unique(group, return_counts=True)
    if labels.size < 2:
        return ""
    is_tested = tested is None or labels.size <= np.unique(tested).size
    if is_tested and labels.size == distances.n_variables:
        return _describe_nothing(distances)
    smallest = np.flatnonzero(group == labels[sizes.argmin()])
    names = ", ".join(repr(distances.names[v]) for v in smallest[:3].tolist())
    blocks = f"{BLOCKS} into {labels.size} blocks"
    example = f"(the smallest: {names}{' …' * (smallest.size > 3)})"
    if is_tested:
        independent = "that look independent of each other"
        return f"{blocks} {independent} {example}; each block gets a tree of its own"
    reason = "no link between them was worth its parameters"
    return f"{blocks} {example}; each block gets a tree of its own, because {reason}"


def _describe_nothing(distances: Distances) -> str:
    """Say that all variables look independent, and how dependent the most dependent pair looks."""
    m = distances.n_variables
    said = f"{NOTHING} among the {m:,} variables, and the tree has no edges"
    if distances.n_samples is None:
        return said
    first, second, r, p = strongest_pair(distances)
    pair = f"{distances.names[first]!r} and {distances.names[second]!r}"
    if m == 2:
        return (
            f"{said}: {pair} have correlation {r:.2f}, and p = {p:.2g} in the test of independence"
        )
    return (
        f"{said}: the most dependent pair, {pair}, has correlation {r:.2f}, and p = {p:.2g} in the "
        f"test of independence, among {m * (m - 1) // 2:,} pairs"
    )

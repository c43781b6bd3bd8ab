"""The majority tree: splits that more than a given share of trees have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.support import heavy_paths
from latentree.errors import TreeError
from latentree.support._transfer import edge_claims
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray, IntArray

_ROUNDING = 1e-9  # of a sum of shares
_LARGEST_SHIFT = 16.0  # of log-odds: a share of 1 in 100 becomes one of 99,999 in 100,000
_HALVINGS = 60  # of the interval of shifts: to the last digit


class Splits(NamedTuple):
    """The distinct splits of many trees: one row each."""

    share: FloatArray
    """Share of the trees that have it."""
    length: FloatArray
    """Mean length of its edges."""
    tree: IntArray
    """The number of a tree that has it, and the lower node of its edge there."""
    node: IntArray
    of: IntArray
    """Which split each edge of all trees is, and the tree of each edge."""
    tree_of: IntArray

    def counts(self, start: int, stop: int) -> IntArray:
        """How many of the trees from one to another have each split."""
        among = (self.tree_of >= start) & (self.tree_of < stop)
        return np.bincount(self.of[among], minlength=len(self.share))


def majority_tree(trees: Sequence[Tree], threshold: float = 0.5) -> Tree:
    """Return the tree of the splits that more than a share of trees have, lengths averaged.

    With a threshold of 0.5 no tree has a smaller mean Robinson-Foulds distance to the given ones.
    Where a variable is inside most trees, it is inside this one: the edge of a leaf is a split
    like others. If that would put several variables onto one node, the others become its leaves.

    Parameters
    ----------
    trees : sequence of Tree
        Over the same variables, in the same order.
    threshold : float
        At least 0.5, so that any two splits are together in some tree, and agree.

    Returns
    -------
    Tree

    References
    ----------
    Margush and McMorris, Consensus n-trees, Bulletin of Mathematical Biology 43, 1981.

    Barthélemy and McMorris, The median procedure for n-trees, Journal of Classification 3, 1986.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
    >>> split = lt.Tree([4, 4, 5, 5, -1, 4], n_observed=4)
    >>> majority_tree([star, split, split])
    Tree(4 observed, 2 hidden, 5 edges)
    """
    if not 0.5 <= threshold < 1.0:
        raise TreeError(f"threshold is {threshold}, but a majority is from 0.5 to below 1")
    found = count_splits(trees)
    return _tree_of(trees, found, np.flatnonzero(found.share > threshold))


def agreed_tree(
    own: Sequence[Tree],
    certainty: Sequence[FloatArray],
    replicates: Sequence[Sequence[Tree]],
    weights: Sequence[float] | FloatArray,
) -> Tree:
    """Return the tree of the splits that several learners agree on, lengths averaged.

    For every learner a split has two numbers: how probable it is in the tree of the rows
    themselves, 0 if that does not have it, and the share of the replicates with it. Shares say
    which splits are surer than others, but not how many are true. So their log-odds are shifted,
    all by the same number, until the trees of the rows are expected to have as many true splits
    by shares as by probabilities (leaves aside, which all trees have). The mean of probability and
    shifted share, averaged over the learners by their weights, is above one half for the splits
    that are kept; of two that cannot be in one tree, the one with the larger mean. If these claims
    are not surely better than none, by one standard error, all variables are leaves of one node.

    Parameters
    ----------
    own : sequence of Tree
        The tree of every learner.
    certainty : sequence of array
        How probable the split above every node of these trees is.
    replicates : sequence of sequences of Tree
        Those of every learner.
    weights : array
        Of the learners, with sum 1.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
    >>> split = lt.Tree([4, 4, 5, 5, -1, 4], n_observed=4)
    >>> sure = [[1.0] * 6, [1.0] * 5]
    >>> agreed_tree([split, star], sure, [[split], [star]], [0.9, 0.1])
    Tree(4 observed, 2 hidden, 5 edges)
    >>> agreed_tree([split, star], sure, [[split], [star]], [0.6, 0.4])
    Tree(4 observed, 1 hidden, 4 edges)
    """
    trees = [*own, *(tree for each in replicates for tree in each)]
    found = count_splits(trees)
    sure, count = np.zeros((2, len(found.share), len(own)))
    is_claimed = np.zeros(sure.shape, bool)
    start = len(own)
    for number, (tree, chances, each) in enumerate(zip(own, certainty, replicates, strict=True)):
        there, below = found.of[found.tree_of == number], tree.edges[:, 1]
        is_claimed[there, number] = edge_claims(tree).is_made[below]
        sure[there, number] = np.asarray(chances)[below]
        count[:, number] = found.counts(start, start + len(each))
        start += len(each)
    share = shifted_shares(count, [len(each) for each in replicates], is_claimed, sure)
    agreement = 0.5 * (sure + share) @ np.asarray(weights)
    kept = np.zeros(agreement.size, bool)
    kept[_compatible(trees, found, agreement)] = True
    is_leaf = _leaf_splits(trees, found)
    claims = np.concatenate([agreement[kept & ~is_leaf], 1.0 - agreement[is_leaf & ~kept]])
    chosen = kept if _is_worth_claiming(claims) else is_leaf
    return _tree_of(trees, found, np.flatnonzero(chosen))


def _leaf_splits(trees: Sequence[Tree], found: Splits) -> BoolArray:
    """Whether each split parts one leaf from the rest."""
    at_leaf = [
        ((tree.degrees[tree.edges] == 1) & (tree.edges < tree.n_observed)).any(axis=1)
        for tree in trees
    ]
    return np.bincount(found.of, np.concatenate(at_leaf), len(found.share)) > 0


def _is_worth_claiming(p: FloatArray) -> bool:
    """Whether claims of probabilities p are surely better than none, by one standard error.

    A claim adds 2·p − 1 to the true ones less the false ones on average, with variance
    4·p·(1 − p).
    """
    return bool((2.0 * p - 1.0).sum() >= 2.0 * np.sqrt((p * (1.0 - p)).sum()))


def shifted_shares(
    count: FloatArray, n_replicates: Sequence[int], is_claimed: BoolArray, sure: FloatArray
) -> FloatArray:
    """Return shares whose log-odds are shifted so that they sum to Σ ``sure`` over what is claimed.

    The share of c of r replicates is (c + ½)/(r + 1), so that its log-odds are finite; a learner
    that never finds a split does not speak for it. All arrays have a column a learner.
    """
    r = np.asarray(n_replicates, np.float64)
    log_odds = np.log((count + 0.5) / (r - count + 0.5))

    def shifted(by: float) -> FloatArray:
        return np.asarray(np.where(count > 0, 1.0 / (1.0 + np.exp(-log_odds - by)), 0.0))

    low, high = -_LARGEST_SHIFT, _LARGEST_SHIFT
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if shifted(middle)[is_claimed].sum() < sure[is_claimed].sum():
            low = middle
        else:
            high = middle
    return shifted(0.5 * (low + high))


def _compatible(trees: Sequence[Tree], found: Splits, agreement: FloatArray) -> IntArray:
    """Return splits with more than half of the agreement, the most agreed first, that fit together.

    Two splits fit into one tree if of their clusters one holds the other, or they are apart.
    """
    wanted = np.flatnonzero(agreement > 0.5 + _ROUNDING)
    wanted = wanted[np.argsort(-agreement[wanted], kind="stable")]
    inside = np.zeros((wanted.size, trees[0].n_observed), np.float32)
    for row, cluster in enumerate(_clusters(trees, found, wanted)):
        inside[row, cluster.members] = 1.0
    shared = inside @ inside.T  # variables in both; on the diagonal, in one
    size = np.diag(shared)
    fits = (shared == 0.0) | (shared == size) | (shared == size[:, None])
    kept: list[int] = []
    for row in range(wanted.size):
        if fits[row, kept].all():
            kept.append(row)
    return wanted[kept]


def _tree_of(trees: Sequence[Tree], found: Splits, kept: IntArray) -> Tree:
    """Return the tree of some splits that agree."""
    clusters = _clusters(trees, found, kept[np.lexsort([kept, found.tree[kept]])])
    clusters.sort(key=lambda cluster: cluster.members.size)
    edges = _edges_of_nested(clusters, trees)
    first = trees[0]
    ends = [(a, b) for a, b, _ in edges]
    lengths = [length for *_, length in edges]
    names = first.names[: first.n_observed]
    return Tree.from_edges(ends, first.n_observed, lengths, names, minimal=True)


def count_splits(trees: Sequence[Tree]) -> Splits:
    """Count how many of the trees have each split."""
    keys = np.concatenate([tree.bipartition_keys() for tree in trees])
    number = np.repeat(np.arange(len(trees)), [tree.n_edges for tree in trees])
    node = np.concatenate([tree.edges[:, 1] for tree in trees])
    length = np.concatenate([tree.length[tree.edges[:, 1]] for tree in trees])
    if not len(keys):
        return Splits(length, length, number, node, node, number)
    _, first, group = np.unique(_as_words(keys), return_index=True, return_inverse=True)
    counts = np.bincount(group)
    return Splits(
        counts / len(trees),
        np.bincount(group, length) / counts,
        number[first],
        node[first],
        group,
        number,
    )


def _as_words(keys: NDArray[np.uint64]) -> NDArray[np.void]:
    """Return each row as one word."""
    rows = np.ascontiguousarray(keys)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


class Cluster(NamedTuple):
    """The side of a split that does not hold the first variable of its component."""

    members: IntArray
    component: IntArray
    length: float


def _clusters(trees: Sequence[Tree], found: Splits, kept: IntArray) -> list[Cluster]:
    """Return the clusters of some splits, in their order."""
    clusters: dict[int, Cluster] = {}
    for number in np.unique(found.tree[kept]):
        tree = trees[number]
        size, *_ = heavy_paths(tree.order, tree.parent)
        place = np.argsort(tree.order)
        component = tree.components[: tree.n_observed]
        for split in kept[found.tree[kept] == number]:
            node = found.node[split]
            below = tree.order[place[node] : place[node] + size[node]]
            inside = below[below < tree.n_observed]
            own = np.flatnonzero(component == tree.components[node])
            if (inside == own[0]).any():
                inside = np.setdiff1d(own, inside)
            clusters[split] = Cluster(inside, own, float(found.length[split]))
    return [clusters[split] for split in kept]


def _edges_of_nested(
    clusters: Sequence[Cluster], trees: Sequence[Tree]
) -> list[tuple[int, int, float]]:
    """Return the edges of the tree whose clusters these are, the small ones first.

    Every cluster is the edge between the node around it and its own node; every component has one
    node more, around all. A variable belongs to the node of the smallest cluster that holds it. A
    node with one variable is that variable, one with none is hidden. Of several variables the one
    that is a leaf in the fewest trees is the node, and the others are its leaves.
    """
    m, n = trees[0].n_observed, len(clusters)
    outside = np.full(n, -1)
    home, outermost = np.full(m, -1), np.full(m, -1)
    for number, cluster in enumerate(clusters):
        inner = outermost[cluster.members]
        home[cluster.members[inner < 0]] = number
        outside[np.unique(inner[inner >= 0])] = number
        outermost[cluster.members] = number
    for number, cluster in enumerate(clusters):
        around = n + int(cluster.component[0])  # the node around all of a component
        home[cluster.component[home[cluster.component] < 0]] = around
        if outside[number] < 0:
            outside[number] = around
    node = m + np.arange(n + m)  # hidden, unless a variable is there
    edges = []
    is_leaf = np.mean([tree.degrees[:m] == 1 for tree in trees], axis=0)
    for place in np.unique(home[home >= 0]):
        there = np.flatnonzero(home == place)
        chosen = there[np.argmin(is_leaf[there])]
        node[place] = chosen
        edges += [(chosen, v, _mean_leaf_length(int(v), trees)) for v in there if v != chosen]
    edges += [
        (node[outside[number]], node[number], cluster.length)
        for number, cluster in enumerate(clusters)
    ]
    return [(int(a), int(b), length) for a, b, length in edges]


def _mean_leaf_length(variable: int, trees: Sequence[Tree]) -> float:
    """Mean length of an edge of a variable."""
    return float(np.mean([_length_at(tree, variable) for tree in trees]))


def _length_at(tree: Tree, node: int) -> float:
    below = node if tree.parent[node] >= 0 else next(iter(tree.children(node)), node)
    return float(tree.length[below])

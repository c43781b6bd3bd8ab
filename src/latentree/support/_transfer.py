"""How far the splits of a tree are from those of another: transfer distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentree._kernels import support as kernels
from latentree.tree import Tree
from latentree.typing import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class EdgeClaims:
    """What every edge of a tree says about groups of variables; the edge above each node.

    An edge splits the variables of its component in two. Its own ends, where they are observed,
    lie on the cut and count for either side; unless fewer than two others were left on a side:
    then they count for their own. An edge with fewer than two variables on a side says nothing.
    """

    tree: Tree
    n_inside: IntArray
    """Variables below the edge that count; −1 if it says nothing."""
    n_outside: IntArray
    ends: IntArray
    """Lower and upper end of the edge if they count for either side, −1 if not."""

    @property
    def is_made(self) -> BoolArray:
        """Whether an edge says anything."""
        return self.n_inside >= 0

    @property
    def size(self) -> IntArray:
        """Variables of the smaller side, p."""
        return np.minimum(self.n_inside, self.n_outside)


def edge_claims(tree: Tree) -> EdgeClaims:
    """Return what the edges of a tree say."""
    m, parent = tree.n_observed, tree.parent
    inside = (np.arange(tree.n_nodes) < m).astype(np.int64)
    for v in tree.order[::-1]:
        if parent[v] >= 0:
            inside[parent[v]] += inside[v]
    outside = inside[tree.roots][tree.components] - inside
    nodes = np.arange(tree.n_nodes)
    ends = np.column_stack([np.where(nodes < m, nodes, -1), np.where(parent < m, parent, -1)])
    on_cut = ends >= 0
    without = inside - on_cut[:, 0], outside - on_cut[:, 1]
    is_free = np.minimum(*without) >= 2
    ends[~is_free] = -1
    inside, outside = np.where(is_free, without, (inside, outside))
    says_nothing = (parent < 0) | (np.minimum(inside, outside) < 2)
    inside[says_nothing] = -1
    return EdgeClaims(tree, inside, outside, ends)


def transfer_distances(claims: EdgeClaims, other: Tree) -> IntArray:
    """Return how many variables must move for the split above every node to be in another tree.

    Parameters
    ----------
    claims : EdgeClaims
        Of the first tree.
    other : Tree
        Over the same variables, in the same order.

    Returns
    -------
    array of int, one per node
        −1 where the edge says nothing; 0 where the other tree has the split; at most p − 1.

    References
    ----------
    Lemoine, Domelevo Entfellner, Wilkinson, Correia, Dávila Felipe, De Oliveira and Gascuel,
    Renewing Felsenstein's phylogenetic bootstrap in the era of big data, Nature 556, 2018.

    Truszkowski, Gascuel and Swenson, Rapidly computing the phylogenetic transfer index, WABI 2019:
    the same time by similar means.
    """
    tree = claims.tree
    found: IntArray = kernels.transfer_distances(
        tree.order,
        tree.parent,
        tree.n_observed,
        (claims.n_inside, claims.n_outside, claims.ends),
        other.order,
        other.parent,
    )
    return found

"""CLGrouping: a Chow-Liu tree first, hidden variables in each of its neighborhoods then."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from latentree._kernels.structure import grouping, neighborhoods
from latentree._kernels.structure.joining import join_neighbors
from latentree.distances import DistancesLike, as_distances
from latentree.errors import DistanceError
from latentree.structure._blocks import Block, Progress, learn_by_blocks, printed, report
from latentree.structure._contraction import finish_tree
from latentree.structure._neighbor_joining import STRONG
from latentree.structure._recursive_grouping import GroupingRule, grouping_of, printed_tau
from latentree.structure._regraft import LARGEST, regraft_weak_links
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

_REPRESENTATIVES = 4
"""Observed nodes through which a hidden one is seen: the mean over k has 1/√k of one's noise, but
each further one is farther away, and its distance noisier."""

_SEARCH = 64
"""Nodes that are visited in search of representatives; a bound on the work at large stars."""


def cl_grouping(
    distances: DistancesLike,
    subroutine: Literal["rg", "nj"] = "rg",
    exact: bool = False,
    threshold: float = STRONG,
    progress: Progress | None = None,
    as_printed: bool = False,
) -> Tree:
    """Learn a latent tree by CLGrouping: CLRG with ``subroutine="rg"``, CLNJ with ``"nj"``.

    The minimum spanning tree comes first. Then each of its inner nodes in turn, those with most
    neighbors first, gives its closed neighborhood to recursive grouping or neighbor joining,
    and the tree learned over it takes the place of the star. Hidden nodes that a neighborhood
    holds already are seen through up to four observed nodes behind them, the nearest ones. At
    last lengths are fitted and short edges contracted, as in :func:`neighbor_joining`. Among up to
    128 variables, links that the spanning tree took from a single weak pair are then moved to where
    the two sides as wholes correlate most.

    O(m²) for the spanning tree of m variables, and d³ for each neighborhood of d nodes: close to
    m² unless the tree is a star. From distances on demand: O(m) memory, for near pairs.

    Parameters
    ----------
    distances : Distances or square array
        Information distances, as a matrix or on demand: the tree is the same.
    subroutine : {"rg", "nj"}
        The learner of the neighborhoods.
    exact : bool
        Whether the distances are those of a tree, up to rounding.
    threshold : float
        ε′: edges with a hidden end that are shorter than this, on the scale −log|ρ|, are contracted
        in the end.
    progress : callable, optional
        Called as ``progress(done, total, message)`` after every 64 neighborhoods.
    as_printed : bool
        Whether to run the paper's relaxed algorithm (Section 6.3) and nothing else: every
        neighborhood by relaxed RG or NJ as printed, then contraction of the edges with a hidden end
        that are shorter than ε′. Nothing is tested or moved, and no length is fitted.

    Returns
    -------
    Tree
        A minimal latent tree: hidden nodes have three neighbors or more. With exact distances it
        is the true tree.

    References
    ----------
    Choi, Tan, Anandkumar and Willsky, Learning latent tree graphical models, Journal of Machine
    Learning Research 12, 2011, Section 5.3.

    Examples
    --------
    >>> print(cl_grouping([[0, 3, 4], [3, 0, 3], [4, 3, 0]], exact=True).draw())
    x0
    └─ (h1)  2
       ├─ x1  1
       └─ x2  2
    """
    if subroutine not in ("rg", "nj"):
        raise DistanceError(f"subroutine is {subroutine!r}, but must be 'rg' or 'nj'")
    tau = None
    if as_printed:
        tau, distances = printed_tau(as_distances(distances)), printed(distances)

    def learn(block: Block) -> Tree:
        builder = TreeBuilder(block, subroutine, exact, tau)
        for done, node in enumerate(builder.internal):
            if done % 64 == 0:
                report(progress, done, len(builder.internal), "adding hidden variables")
            builder.regroup(int(node))
        tree = finish_tree(builder.tree(), block, exact, threshold)
        if exact or block.n_variables > LARGEST:
            return tree
        return regraft_weak_links(tree, block, threshold)

    return learn_by_blocks(distances, learn, exact)


class _NeighborhoodBuffers(NamedTuple):
    """Arrays that kernels write a neighborhood to: members, and the nodes that represent them."""

    members: IntArray
    starts: IntArray
    seen: IntArray
    far: FloatArray
    node: IntArray
    shut: IntArray
    reach: FloatArray

    @classmethod
    def for_nodes(cls, n_nodes: int) -> _NeighborhoodBuffers:
        """Make room for neighborhoods in a tree."""
        seen = _REPRESENTATIVES * n_nodes
        sizes = (n_nodes, n_nodes + 1, seen, seen, _SEARCH, _SEARCH, _SEARCH)
        kinds = (int, int, int, float, int, int, float)
        return cls(*(np.empty(size, kind) for size, kind in zip(sizes, kinds, strict=True)))


class TreeBuilder:
    """A spanning tree that gains hidden nodes, one neighborhood at a time."""

    def __init__(
        self, block: Block, subroutine: str, exact: bool, tau: float | None = None
    ) -> None:
        m = block.n_variables
        self.block = block
        self.subroutine = subroutine
        self.rule = grouping_of(block, exact, tau)
        self.next_hidden = m
        degree = np.bincount(block.spanning.ravel(), minlength=m)
        lengths = block.pair_distances(block.spanning)
        around = np.bincount(block.spanning.ravel(), np.repeat(lengths, 2), minlength=m)
        inner = np.flatnonzero(degree > 1)
        self.internal = inner[np.lexsort([around[inner], -degree[inner]])]
        """Nodes with two neighbors or more, most neighbors first, then the nearest ones."""
        room = 4 * m
        self.head = np.full(room, -1)
        self.target, self.following, self.preceding = np.empty((3, 2 * room), np.int64)
        self.length = np.empty(2 * room)
        self.free = np.concatenate([[room], np.arange(2 * room - 2, -1, -2)])
        self._workspace = _NeighborhoodBuffers.for_nodes(room)
        self._link(-1, block.spanning, lengths)

    def _link(self, node: int, ends: IntArray, lengths: FloatArray) -> None:
        """Add edges, in place of those around a node unless it is −1."""
        neighborhoods.replace_star(
            node,
            ends,
            lengths,
            self.free,
            self.head,
            self.target,
            self.length,
            self.following,
            self.preceding,
        )

    def neighborhood(self, node: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the closed neighborhood of a node, with its distances and depths."""
        count = _REPRESENTATIVES if self.rule.noise > 0 else 1
        n = neighborhoods.representatives(
            node,
            self.block.n_variables,
            count,
            self.head,
            self.target,
            self.length,
            self.following,
            *self._workspace,
        )
        members, starts = self._workspace.members[:n].copy(), self._workspace.starts
        seen, far = self._workspace.seen[: starts[n]], self._workspace.far[: starts[n]]
        among = self.block.among(seen)
        distance, depth = np.zeros((n, n)), np.zeros(n)
        neighborhoods.member_distances(
            starts, far, among, self.rule.reach, np.empty(far.size), depth, distance
        )
        return members, distance, depth

    def proposal(self, node: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the latent tree over the closed neighborhood of a node.

        The neighborhood, and edges with their lengths: numbers below its size stand for its
        members, others for new hidden nodes.
        """
        members, distance, depth = self.neighborhood(node)
        if self.subroutine == "nj":
            return members, *_joined(distance, self.rule)
        return members, *_grouped(distance, depth, self.rule)

    def regroup(self, node: int) -> None:
        """Replace the star around a node by the latent tree over its closed neighborhood."""
        self.replace(*self.proposal(node))

    def replace(self, members: IntArray, ends: IntArray, lengths: FloatArray) -> None:
        """Replace the star around ``members[0]`` by a proposal."""
        n_new = max(int(ends.max()) + 1 - members.size, 0)
        number = np.concatenate([members, np.arange(self.next_hidden, self.next_hidden + n_new)])
        self.next_hidden += n_new
        self._link(int(members[0]), number[ends], lengths)

    def edges(self) -> tuple[IntArray, FloatArray]:
        """Return the edges as they are now, with their lengths."""
        used = np.ones(self.target.size, bool)
        used[self.free[1 : self.free[0] + 1]] = False
        slots = np.flatnonzero(used[::2]) * 2
        return np.sort(self.target[[slots, slots + 1]].T), self.length[slots]

    def tree(self) -> Tree:
        """Return the tree as it is now; negative lengths become 0."""
        ends, lengths = self.edges()
        return Tree.from_edges(ends, self.block.n_variables, np.maximum(lengths, 0.0), minimal=True)


def _joined(distance: FloatArray, rule: GroupingRule) -> tuple[IntArray, FloatArray]:
    """Return edges and lengths that neighbor joining finds in a neighborhood."""
    m = len(distance)
    ends, lengths = join_neighbors(distance)
    if rule.noise > 0:
        return ends, lengths
    ends, lengths, _ = neighborhoods.contract_local(ends, lengths, m, 2 * m - 2, rule.tolerance)
    return ends, lengths


def _grouped(
    distance: FloatArray, depth: FloatArray, rule: GroupingRule
) -> tuple[IntArray, FloatArray]:
    """Return edges and lengths that recursive grouping finds in a neighborhood."""
    m = len(distance)
    ends, lengths = np.empty((2 * m, 2), np.int64), np.empty(2 * m)
    n_edges = grouping.finish_grouping(
        distance,
        depth,
        np.arange(m),
        rule.noise,
        rule.z,
        rule.tau,
        rule.tolerance,
        rule.epsilon,
        rule.tolerance,
        rule.relaxed,
        m,
        ends,
        lengths,
        0,
    )
    return ends[:n_edges], lengths[:n_edges]

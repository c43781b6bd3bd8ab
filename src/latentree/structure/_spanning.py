"""Minimum spanning trees of distances, from a matrix or from blocks on demand.

All edges have one total order (see ``_kernels.structure.spanning``), so both ways find the same
tree. With additive distances and ties any of several spanning trees is minimal, but only those
that belong to a nearby tree metric have the properties of Lemma 8. Hanging an edge of distinct
small length on every variable picks one of those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from latentree._kernels.structure import nearest
from latentree._kernels.structure.spanning import (
    minimum_spanning_tree,
    prim_order,
    spanning_tree_of_rows,
)
from latentree.distances import WEAKEST, BlockDependence, Distances, in_parts
from latentree.typing import FloatArray, IntArray

_TIE = 1e-12
"""Step between the lengths that tell tied nodes apart, as a share of the longest distance: above
rounding (2⁻⁵³), below anything that is estimated."""

_CELLS = 1 << 24
"""Distances of a block that are held at the same time: 128 MB."""

_QUICK_PASSES = 2
"""Passes by quick estimates; later lists come from exact distances, which always settles some."""


class BlockSizes(NamedTuple):
    """Sizes of the blocks in which pairs are visited where there is no matrix.

    The result does not depend on them.

    Attributes
    ----------
    neighbors : int
        Nearest others that are kept for every variable: most joins are settled by these.
    tile : int
        Variables whose lists are made at the same time.
    span : int, optional
        Others that they are compared with at a time; by default what costs the distances least.
    """

    neighbors: int = 24
    tile: int = 2048
    span: int | None = None


def spanning_edges(distances: Distances, sizes: BlockSizes = BlockSizes()) -> IntArray:  # noqa: B008
    """Return the edges of the minimum spanning tree in the order in which Prim finds them."""
    m, longest = distances.n_variables, distances.longest
    if distances.is_dense:
        return np.column_stack(minimum_spanning_tree(distances.dense(), _shifts(m, longest)))
    near = distances.candidates
    if near is not None:
        shift = _shifts(m, longest)
        keys = distances.of_pairs(near) + (shift[near[:, 0]] + shift[near[:, 1]])
        return _in_prims_order(m, near, keys)
    edges, keys = _NeighborLists(distances, _shifts(m, longest), sizes).edges()
    return _in_prims_order(m, edges, keys)


def candidate_pairs(distances: Distances, n_nearest: int) -> IntArray:
    """Return the pairs among which the spanning tree of slightly other distances is to be found.

    Borůvka's algorithm joins every component to another by the shortest pair that leaves it, first
    variables, then what has been joined. In every round the shortest pairs that leave a component
    are near, k/s of each of its s variables, rounded up: other distances have a minimum
    spanning tree among these as long as they change the order of few pairs. A pass over all pairs
    for every round, of which there are log₂ m at most.

    Parameters
    ----------
    distances : Distances
        If components are known, pairs are within them.
    n_nearest : int
        k, about the number of pairs that leave each component.

    Returns
    -------
    array of int of shape (p, 2)
        The lower number first, without repetition. They contain the minimum spanning tree.

    References
    ----------
    Borůvka, O jistém problému minimálním, Práce moravské přírodovědecké společnosti 3, 1926.

    Examples
    --------
    >>> from latentree.distances import Distances
    >>> line = Distances.from_matrix([[0, 1, 3, 6], [1, 0, 2, 5], [3, 2, 0, 3], [6, 5, 3, 0]])
    >>> candidate_pairs(line, 1).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    m = distances.n_variables
    label = np.zeros(m, np.int64) if distances.components is None else distances.components
    found = [np.empty((0, 2), np.int64)]
    for c in np.unique(label):
        group = np.flatnonzero(label == c)
        part = distances.subset(group) if group.size < m else distances
        found.append(group[_near_among(part, n_nearest)])
    return np.concatenate(found)


def _near_among(distances: Distances, n_nearest: int) -> IntArray:
    """Return the candidate pairs of one component."""
    m = distances.n_variables
    shift, label = _shifts(m, distances.longest), np.arange(m)
    found = [np.empty(0, np.int64)]
    while label.max() > 0:
        own_share = -(-n_nearest // np.bincount(label)[label])
        lists = _NeighborLists(distances, shift, BlockSizes(int(own_share.max())), label)
        pairs, value = lists.leaving(own_share)
        found.append(np.unique(pairs[:, 0] * m + pairs[:, 1]))
        label = _joined(label, pairs, value)
    return np.column_stack(np.divmod(np.unique(np.concatenate(found)), m))


def _joined(label: IntArray, pairs: IntArray, value: FloatArray) -> IntArray:
    """Join each component to another by the shortest of the pairs that leave it."""
    own = label[pairs].T.ravel()  # a pair leaves the components of both its ends
    both = np.tile(np.arange(len(pairs)), 2)
    # By component, then by length, then by numbers: the first of each component is its shortest.
    order = np.lexsort([pairs[both, 1], pairs[both, 0], value[both], own])
    shortest = both[order[np.diff(own[order], prepend=-1) > 0]]
    ends = label[pairs[shortest]].T
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), (label.max() + 1,) * 2)
    return np.asarray(connected_components(graph)[1].astype(np.int64)[label])


def edges_of_rows(
    row_of: Callable[[int], FloatArray], m: int, longest: float
) -> tuple[IntArray, FloatArray]:
    """Return edges and lengths of the minimum spanning tree from rows, each asked for once."""
    shift = _shifts(m, longest)
    *ends, values = spanning_tree_of_rows(row_of, shift)
    return np.column_stack(ends), values - (shift[ends[0]] + shift[ends[1]])


def _shifts(m: int, longest: float) -> FloatArray:
    return np.asarray(np.arange(m) * (_TIE * longest))


def _in_prims_order(m: int, edges: IntArray, keys: FloatArray) -> IntArray:
    low, high = edges.min(axis=1), edges.max(axis=1)
    order = np.lexsort([high, low, keys])
    ends = np.ascontiguousarray(edges[order].T)
    return np.column_stack(prim_order(m, ends[0], ends[1]))


class _NeighborLists:
    """Each variable's nearest others outside its own component, and the components so far.

    Borůvka's algorithm joins every component to another by the shortest edge that leaves it. Lists
    of near neighbors settle most joins: an edge is known to be the shortest when it comes before
    all that are in no list. Where the lists end too early they are made anew, of neighbors outside
    the component only. About three passes over the pairs, each over fewer rows.
    """

    def __init__(
        self,
        distances: Distances,
        shift: FloatArray,
        sizes: BlockSizes,
        label: IntArray | None = None,
    ) -> None:
        m = distances.n_variables
        k = min(sizes.neighbors, max(m - 1, 1))
        self.sizes = sizes
        self.distances = distances
        self.shift = shift
        self.label = np.arange(m) if label is None else label
        self.value = np.full((m, k), np.inf)
        self.node = np.full((m, k), -1)
        self.cursor = np.zeros(m, np.int64)
        self.radius = np.full(m, np.inf)
        self.radius_node = np.full(m, -1)
        """An edge from i that is in no list comes after (radius, i, radius_node)."""

    def edges(self) -> tuple[IntArray, FloatArray]:
        """Return all edges and the values they are compared by."""
        m = self.label.size
        edges, values = np.empty((max(m - 1, 0), 2), np.int64), np.empty(max(m - 1, 0))
        lists = self.label, self.value, self.node, self.cursor, self.radius, self.radius_node
        count, n_passes = 0, 0
        rows = np.arange(m)
        while count < m - 1:
            # Lists are filled for rows whose component has no certain shortest edge left.
            self._fill(rows, self.distances.quick if n_passes < _QUICK_PASSES else None)
            n_passes += 1
            count, inside = nearest.join_components(*lists, edges, values, count)
            rows = nearest.unsettled(*lists, inside)
        return edges, values

    def leaving(self, counts: IntArray) -> tuple[IntArray, FloatArray]:
        """Return so many of the shortest pairs of each variable that leave its component.

        The lower number of each pair comes first; with the values they are compared by.
        """
        self._fill(np.arange(self.label.size), self.distances.quick)
        wanted = (np.arange(self.node.shape[1]) < counts[:, None]) & (self.node >= 0)
        own, place = np.nonzero(wanted)
        pairs = np.sort(np.column_stack([own, self.node[own, place]]), axis=1)
        return pairs, self.value[own, place]

    def _fill(self, rows: IntArray, quick: BlockDependence | None) -> None:
        """Make the lists of some rows anew, by quick estimates if there are any."""
        self.value[rows], self.node[rows], self.cursor[rows] = np.inf, -1, 0
        m, span = self.label.size, self.sizes.span or self.distances.span
        tile = max(1, min(self.sizes.tile, _CELLS // min(span, m)))
        for start in range(0, rows.size, tile):
            part = rows[start : start + tile]
            # When all rows are wanted, a block serves both its rows and its columns.
            stop = start + part.size if rows.size == m else m
            for first in range(0, stop, span):
                columns = np.arange(first, min(stop, first + span))
                self._offer(part, columns, quick, both=rows.size == m)
        last = self.value[rows, -1]
        self.radius_node[rows] = self.node[rows, -1]
        if quick is not None:
            last = np.where(np.isfinite(last), self._bound(-last, quick, rows), np.inf)
            self.radius_node[rows] = -1
            self._refine(rows)
        self.radius[rows] = last

    def _offer(
        self, rows: IntArray, columns: IntArray, quick: BlockDependence | None, both: bool
    ) -> None:
        """Offer a block of pairs to the lists of its rows, and of its columns if ``both``."""
        block = self._values(rows, columns, quick)
        lists = self.label, self.value, self.node
        in_parts(
            rows.size, lambda part: nearest.offer_to_rows(block[part], rows[part], columns, *lists)
        )
        if both:
            apart = columns[columns < rows[0]]  # a diagonal tile has served all its own already
            in_parts(
                apart.size,
                lambda part: nearest.offer_to_columns(
                    block, part.start, part.stop, rows, columns, *lists
                ),
            )

    def _values(
        self, rows: IntArray, columns: IntArray, quick: BlockDependence | None
    ) -> NDArray[np.floating]:
        """Return what edges are compared by, exactly or by −|r|."""
        across = slice(int(columns[0]), int(columns[-1]) + 1)
        block: NDArray[np.floating]
        if quick is None:
            block = self.distances.block(rows, across)

            def finish(part: slice) -> None:
                block[part] += np.add.outer(self.shift[rows[part]], self.shift[across])

        else:
            in_order = rows[-1] - rows[0] + 1 == rows.size
            down = slice(int(rows[0]), int(rows[-1]) + 1) if in_order else rows
            block = quick.quick_block(down, across)

            def finish(part: slice) -> None:
                np.abs(block[part], out=block[part])
                np.negative(block[part], out=block[part])

        in_parts(rows.size, finish)
        return block

    def _bound(self, strength: FloatArray, quick: BlockDependence, rows: IntArray) -> FloatArray:
        """Lower bound on the value of an edge whose estimated |r| is at most this."""
        most = np.clip(strength + quick.margin, WEAKEST, 1.0)
        most[most > 1.0 - quick.rounding] = 1.0
        return np.asarray(-quick.exponent * np.log(most) * (1.0 - 1e-12) + self.shift[rows])

    def _refine(self, rows: IntArray) -> None:
        """Replace estimates in the lists by exact values, and sort again."""
        node = self.node[rows]
        there = node >= 0
        pairs = np.column_stack([np.broadcast_to(rows[:, None], node.shape)[there], node[there]])
        value = np.full(node.shape, np.inf)
        shift = self.shift[pairs[:, 0]] + self.shift[pairs[:, 1]]
        value[there] = self.distances.of_pairs(pairs) + shift
        self.value[rows] = value
        in_parts(rows.size, lambda part: nearest.sort_lists(rows[part], self.value, self.node))

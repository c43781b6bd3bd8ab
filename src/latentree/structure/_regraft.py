"""Weak links of a tree, looked at again with all that lies on both sides of them.

CLGrouping never leaves the spanning tree's links, and each of those rests on a single pair: the
largest of all correlations between two parts. Where the true ones are weak, the largest of
many noisy ones is somewhere else, and a chain is then tied together at the wrong place. A hidden
node is the better end for a link: what is known of it combines all variables around it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.structure import branches
from latentree.structure._blocks import Block
from latentree.structure._contraction import contract_insignificant
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

LARGEST = 128
"""Blocks with more variables are left as they are: a move is m³ work and more."""

_WEAK = 8.0  # links that stand out from noise by more standard errors are not looked at
_GAIN = 2.0  # of log-likelihood that a move must bring
_MOVES = 12


class Part(NamedTuple):
    """One side of a link: its places, and how each is seen through the side's observed nodes."""

    places: IntArray
    """Nodes, and the middles of edges: n + v for the edge above node v in a tree of n nodes."""
    observed: IntArray
    weights: FloatArray
    """Regression weights on the observed nodes, one column a place, scaled to unit variance."""
    open: NDArray[np.bool_]
    """Whether a link may end there: on edges, at hidden and inner nodes, or at the only one."""


class Whole(NamedTuple):
    """The model's correlations of all nodes, and the regression of all on the observed ones."""

    model: FloatArray
    precision: FloatArray
    weights: FloatArray


class Move(NamedTuple):
    """A link to cut (by lower node) and the ends of the one that replaces it, as places."""

    gain: float
    cut: int
    ends: tuple[int, int]


def regraft_weak_links(tree: Tree, block: Block, threshold: float) -> Tree:
    """Move weak links to where the two sides correlate most, one after another.

    With the link cut, E[u | side] of every place u, a node or the middle of an edge, is a
    combination of the observed nodes on its side; the correlation of two such combinations, in
    standard errors 1/√n, is the evidence for a link between u and w. The largest gain z²/2 in
    log-likelihood over the present place is taken first; then lengths are fitted again. O(m³) for
    each move, and O(a·m²) for each link whose smaller side has a variables.
    """
    if block.n_samples is None:
        return tree
    correlation = _oriented_correlations(block)
    seen = {tree.canonical.parent.tobytes()}
    while len(seen) <= _MOVES:
        move = _best_move(tree, correlation, block.noise)
        if move.gain <= _GAIN:
            break
        tree = contract_insignificant(_moved(tree, move), block, threshold)
        structure = tree.canonical.parent.tobytes()
        if structure in seen:  # contraction has undone the move
            break
        seen.add(structure)
    return tree


def _oriented_correlations(block: Block) -> FloatArray:
    """Correlations with the signs of variables turned so that the spanning tree's are positive."""
    spanning = Tree.from_edges(block.spanning, block.n_variables)
    above = np.maximum(spanning.parent, 0)
    own = block.signs[np.arange(block.n_variables), above].astype(np.float64)
    turn = np.ones(block.n_variables)
    for v in spanning.order[1:]:
        turn[v] = turn[above[v]] * own[v]
    return np.asarray(np.exp(-block.matrix) * block.signs * np.outer(turn, turn))


def _best_move(tree: Tree, correlation: FloatArray, noise: float) -> Move:
    whole = _whole(tree)
    position, size = _subtrees(tree)
    best = Move(0.0, -1, (-1, -1))
    for v in _weak_links(tree, noise):
        first, last = position[v], position[v] + size[v]
        inside = tree.order[first:last]
        outside = np.concatenate([tree.order[:first], tree.order[last:]])
        ends = (int(v), int(tree.parent[v]))
        if inside.size > outside.size:
            inside, outside, ends = outside, inside, ends[::-1]
        small = _small_part(tree, inside, whole, ends[0])
        large = _large_part(tree, outside, whole, ends[1], small.observed)
        gain, link = _best_link(small, large, ends, correlation, noise)
        best = max(best, Move(gain, int(v), link))
    return best


def _whole(tree: Tree) -> Whole:
    nodes = np.arange(tree.n_nodes)
    model = np.exp(-tree.path_lengths(nodes, nodes))
    m = tree.n_observed
    model[np.arange(m), np.arange(m)] += 1e-6  # duplicate columns would be singular
    precision = np.linalg.inv(model[:m, :m])
    return Whole(model, precision, precision @ model[:m])


def _subtrees(tree: Tree) -> tuple[IntArray, IntArray]:
    """Where the subtree of each node starts in the traversal order, and its number of nodes."""
    position = np.empty(tree.n_nodes, np.int64)
    position[tree.order] = np.arange(tree.n_nodes)
    size = np.ones(tree.n_nodes, np.int64)
    for v in tree.order[:0:-1]:
        size[tree.parent[v]] += size[v]
    return position, size


def _weak_links(tree: Tree, noise: float) -> IntArray:
    """Edges (by lower node) whose two sides correlate by few standard errors, by the model."""
    down, up = branches.squared_sights(tree.order, tree.parent, tree.length, tree.n_observed)
    below = tree.edges[:, 1]
    # down = e^(−2·length)·R² of the lower side, up that of the upper: their link has
    # ρ² = e^(−2·length)·R²·R².
    squared = down[below] * up[below] * np.exp(2.0 * tree.length[below])
    weak: IntArray = below[squared < (_WEAK * noise) ** 2]
    return weak


def _small_part(tree: Tree, nodes: IntArray, whole: Whole, end: int) -> Part:
    """Regress the nodes of the smaller side on its observed nodes."""
    observed = nodes[nodes < tree.n_observed]
    shared = whole.model[np.ix_(observed, nodes)]
    among = whole.model[np.ix_(observed, observed)]
    weights = np.asarray(np.linalg.solve(among, shared), np.float64)
    return _scaled_part(tree, nodes, observed, weights, shared, end)


def _large_part(tree: Tree, nodes: IntArray, whole: Whole, end: int, without: IntArray) -> Part:
    """Regress the nodes of the larger side, from the regression on all observed nodes.

    With K the precision matrix of all and F = K·S the weights on all, those without the variables
    A are F_B − K_BA·K_AA⁻¹·F_A.
    """
    observed = nodes[nodes < tree.n_observed]
    inner = whole.precision[np.ix_(without, without)]
    carried = np.linalg.solve(inner, whole.weights[np.ix_(without, nodes)])
    weights = whole.weights[np.ix_(observed, nodes)]
    weights = weights - whole.precision[np.ix_(observed, without)] @ carried
    shared = whole.model[np.ix_(observed, nodes)]
    return _scaled_part(tree, nodes, observed, weights, shared, end)


def _scaled_part(
    tree: Tree,
    nodes: IntArray,
    observed: IntArray,
    weights: FloatArray,
    shared: FloatArray,
    end: int,
) -> Part:
    """Scale combinations to unit variance; ``end`` has lost one neighbor."""
    # E[middle | side] is that of both ends added up, but for its scale.
    row = np.full(tree.n_nodes, -1)
    row[nodes] = np.arange(nodes.size)
    above = np.where(tree.parent[nodes] >= 0, row[tree.parent[nodes]], -1)
    below = np.flatnonzero(above >= 0)
    weights = np.hstack([weights, weights[:, below] + weights[:, above[below]]])
    shared = np.hstack([shared, shared[:, below] + shared[:, above[below]]])
    seen = np.sqrt(np.maximum((weights * shared).sum(axis=0), 1e-12))
    inner = tree.degrees[nodes] - (nodes == end) > 1
    open_ends = (nodes >= tree.n_observed) | inner | (nodes.size == 1)
    places = np.concatenate([nodes, tree.n_nodes + nodes[below]])
    is_open = np.concatenate([open_ends, np.ones(below.size, bool)])
    return Part(places, observed, weights / seen, is_open)


def _best_link(
    small: Part, large: Part, ends: tuple[int, int], correlation: FloatArray, noise: float
) -> tuple[float, tuple[int, int]]:
    """Return the gain of the best link between two parts over the present one, and its ends."""
    cross = correlation[np.ix_(small.observed, large.observed)]
    z = np.abs(small.weights.T @ cross @ large.weights) / noise
    present = z[small.places == ends[0]][:, large.places == ends[1]].item()
    z[~small.open] = 0.0
    z[:, ~large.open] = 0.0
    u, w = divmod(int(z.argmax()), len(large.places))
    gain = float(0.5 * (z[u, w] ** 2 - present**2))
    return gain, (int(small.places[u]), int(large.places[w]))


def _moved(tree: Tree, move: Move) -> Tree:
    """Cut one link and add another; a place in the middle of an edge becomes a hidden node."""
    n = tree.n_nodes
    kept = np.setdiff1d(tree.edges[:, 1], [move.cut, *(end - n for end in move.ends)])
    edges = [*zip(tree.parent[kept], kept, strict=True), move.ends]
    lengths = [*tree.length[kept], tree.length[move.cut]]
    for end in move.ends:
        if end >= n:
            edges += [(tree.parent[end - n], end), (end, end - n)]
            lengths += [0.5 * tree.length[end - n]] * 2
    return Tree.from_edges(edges, tree.n_observed, lengths, minimal=True)

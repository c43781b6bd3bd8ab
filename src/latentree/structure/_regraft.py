"""Weak links of a tree, looked at again with all that lies on both sides of them.

CLGrouping never leaves the spanning tree's links, and each of those rests on a single pair: the
largest of all correlations between two parts. Where the true ones are weak, the largest of
many noisy ones is somewhere else, and a chain is then tied together at the wrong place. A hidden
node is the better end for a link: what is known of it combines all variables around it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentree._kernels.structure import regrafting
from latentree._kernels.tree import subtree_ranges
from latentree.structure._blocks import Block
from latentree.structure._contraction import contract_insignificant, squared_multiple_correlations
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

LARGEST = 128
"""Blocks with more variables are left as they are: what moves gain was measured up to here."""

_WEAK = 8.0
"""Links whose two sides correlate by more standard errors stay: noise does not bring about z = 8,
which is worth z²/2 = 32 nats, at another place."""

_GAIN = 2.0
"""Nats of log-likelihood that a move must bring: the best of many places gains some by chance."""

_MOVES = 12
"""Moves at most, a bound on the work."""


def describe_unmoved(block_sizes: IntArray) -> str:
    """Say that weak links were left where they are, in blocks with too many variables.

    Parameters
    ----------
    block_sizes : array of int
        Numbers of variables that hang together.

    Returns
    -------
    str
        Empty where no block is so large.

    Examples
    --------
    >>> describe_unmoved(np.array([100, 2])), describe_unmoved(np.array([200]))[:30]
    ('', 'weak links were not looked at ')
    """
    if block_sizes.max(initial=0) <= LARGEST:
        return ""
    return (
        f"weak links were not looked at again: blocks of more than {LARGEST} variables go without"
    )


class RegraftMove(NamedTuple):
    """A link to cut (by lower node) and the ends of the one that replaces it, as places.

    Places are nodes, and the middles of edges: n + v for the edge above node v, among n nodes.
    """

    gain: float
    cut: int
    ends: tuple[int, int]


def regraft_weak_links(tree: Tree, block: Block, threshold: float) -> Tree:
    """Move weak links to where the two sides correlate most, one after another.

    With the link cut, E[u | side] of every place u, a node or the middle of an edge, is a
    combination of the observed nodes on its side; the correlation of two such combinations, in
    standard errors 1/√n, is the evidence for a link between u and w. The largest gain z²/2 in
    log-likelihood over the present place is taken first; then lengths are fitted again. O(a·m) for
    each link whose smaller side has a variables.
    """
    if block.n_samples is None:
        return tree
    turn = spanning_signs(block)
    correlation = np.exp(-block.matrix) * block.signs * np.outer(turn, turn)
    seen = {_shape(tree)}
    while len(seen) <= _MOVES:
        move = _best_move(tree, correlation, block.noise)
        if move.gain <= _GAIN:
            break
        tree = contract_insignificant(_moved(tree, move), block, threshold)
        shape = _shape(tree)
        if shape in seen:  # contraction has undone the move
            break
        seen.add(shape)
    return tree


def _shape(tree: Tree) -> bytes:
    """Return a key that two trees share exactly if they have the same splits."""
    return np.sort(tree.bipartition_keys(), axis=0).tobytes()


def spanning_signs(block: Block) -> FloatArray:
    """Return the sign to turn each variable by so that the spanning tree's are positive."""
    spanning = Tree.from_edges(block.spanning, block.n_variables)
    above = np.maximum(spanning.parent, 0)
    own = block.signs[np.arange(block.n_variables), above].astype(np.float64)
    turn = np.ones(block.n_variables)
    for v in spanning.order[1:]:
        turn[v] = turn[above[v]] * own[v]
    return turn


def _best_move(tree: Tree, correlation: FloatArray, noise: float) -> RegraftMove:
    """Return the move with the largest gain: half of what z² rises by over the present place."""
    begin, end = subtree_ranges(tree.order, tree.parent)
    own = np.repeat([0.0, -1.0], [tree.n_observed, tree.n_hidden])
    rise, cut, *ends = regrafting.best_move(
        _weak_links(tree, noise), tree.order, begin, end, tree.parent, np.exp(-tree.length), own,
        tree.degrees, correlation,
    )  # fmt: skip
    return RegraftMove(0.5 * float(rise) / noise**2, int(cut), (int(ends[0]), int(ends[1])))


def _weak_links(tree: Tree, noise: float) -> IntArray:
    """Edges (by lower node) whose two sides correlate by few standard errors, by the model."""
    from_below, from_above = squared_multiple_correlations(tree)
    below = tree.edges[:, 1]
    # Both are e^(−2·length)·R², of the lower side and of the upper one: their link has
    # ρ² = e^(−2·length)·R²·R².
    squared = from_below[below] * from_above[below] * np.exp(2.0 * tree.length[below])
    weak: IntArray = below[squared < (_WEAK * noise) ** 2]
    return weak


def _moved(tree: Tree, move: RegraftMove) -> Tree:
    """Cut one link and add another; a place in the middle of an edge becomes a hidden node."""
    n = tree.n_nodes
    is_kept = tree.parent >= 0
    is_kept[[move.cut, *(end - n for end in move.ends if end >= n)]] = False
    kept = np.flatnonzero(is_kept)
    edges, lengths = [move.ends], [tree.length[move.cut]]
    for end in move.ends:
        if end >= n:
            edges += [(tree.parent[end - n], end), (end, end - n)]
            lengths += [0.5 * tree.length[end - n]] * 2
    ends = np.concatenate([np.column_stack([tree.parent[kept], kept]), edges])
    return Tree.from_edges(
        ends, tree.n_observed, np.concatenate([tree.length[kept], lengths]), minimal=True
    )

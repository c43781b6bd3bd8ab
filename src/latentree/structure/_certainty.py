"""How probable the splits of a tree are, by where else its parts could hang."""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import tiny
from latentree._kernels.structure import grafting
from latentree.distances import Distances
from latentree.structure._blocks import TINY, Block, groups_of
from latentree.structure._regraft import spanning_signs
from latentree.structure._spanning import spanning_edges
from latentree.tree import Tree
from latentree.typing import FloatArray


def split_certainty(tree: Tree, distances: Distances) -> FloatArray:
    """Return how probable the split of the edge above every node is, by single moves.

    Each edge is cut in turn, and its two sides may be linked at any other place, with the
    likelihood that the distances give it. The bootstrap cannot tell this: where one of many
    places is the best by chance, it is the best again in most of the rows drawn from the same ones.
    What several moves at once would change is not looked at, nor what is wrong elsewhere in the
    tree. O(m²) for m variables and each level of a balanced tree.

    Parameters
    ----------
    tree : Tree
        Over the variables of the distances, in the same order.
    distances : Distances
        Exact ones leave no doubt.

    Returns
    -------
    array of float
        One a node; 1 for roots.
    """
    found = np.zeros(tree.n_nodes)
    if distances.n_effective is None:
        return np.exp(found)
    with tiny(distances.n_variables <= TINY):
        turn = variable_signs(tree, distances)
        correlation = correlations(distances) * np.outer(turn, turn)
        for number in range(len(tree.roots)):
            found += grafting.split_chances(
                tree.order[tree.components[tree.order] == number],
                tree.parent,
                np.exp(-tree.length / distances.exponent),
                tree.degrees,
                tree.n_observed,
                correlation,
                distances.n_effective,
            )
    return np.exp(found)


def correlations(distances: Distances) -> FloatArray:
    """Return e^(−d) of all pairs, on the scale of correlations, with signs."""
    return np.asarray(np.exp(-distances.dense() / distances.exponent) * distances.signs())


def variable_signs(tree: Tree, distances: Distances) -> FloatArray:
    """Return the sign to turn each variable by so that those near each other agree.

    The spanning tree says how. But a weak variable hangs there on one pair, whose sign may be
    chance: then variables are turned, worst first, until each agrees with what the tree expects.
    """
    turn = np.ones(tree.n_observed)
    for group in groups_of(tree.components[: tree.n_observed]):
        if group.size > 1:
            part = distances.subset(group)
            among = correlations(part)
            among *= np.exp(-tree.path_lengths(group, group) / distances.exponent)
            np.fill_diagonal(among, 0.0)
            turn[group] = _agreeing(among, spanning_signs(Block(part, spanning_edges(part))))
    return turn


def _agreeing(among: FloatArray, turn: FloatArray) -> FloatArray:
    """Change signs until none raises Σ turn_i·turn_j·among_ij; each change does."""
    while True:
        agreement = turn * (among @ turn)
        worst = int(np.argmin(agreement))
        if agreement[worst] >= -1e-12:
            return turn
        turn[worst] *= -1.0

"""Learners of latent trees from information distances.

Every learner takes :class:`~latentree.distances.Distances`, or a square array, and returns a
minimal :class:`~latentree.tree.Tree`:

================================= ===============================================================
:func:`chow_liu`                  the spanning tree: no hidden variables, the baseline
:func:`neighbor_joining`          joins pair after pair; fast, best for short distances
:func:`spectral_neighbor_joining` joins by all correlations of two clusters with the rest: fewer
                                  mistakes where trees branch; up to some hundred variables
:func:`recursive_grouping`        finds whole families at once; the most accurate from samples when
                                  there are few hidden variables
:func:`cl_grouping`               a Chow-Liu tree, then neighbor joining or recursive grouping in
                                  each neighborhood: near m² for m variables, best for large and
                                  long trees
:func:`cl_blind`                  a Chow-Liu tree, then a hidden variable beside each inner node
:func:`hidden_chow_liu`           the same tree, made for prediction with many states
================================= ===============================================================

By default they are *relaxed*: made for estimated distances. With ``exact=True`` they expect the
distances of a tree, and give that tree back. :func:`learn_structure` calls them by name, and
:func:`node_relationships` is the test that recursive grouping rests on. :func:`sample_trees` draws
trees from their posterior, given estimated distances: what of them is sure, and what is not.

From samples, the relaxed learners share three ideas that the paper does not have. A distance
comes with an interval, z standard errors wide on the scale of correlations, and two nodes are
kept apart only by what their intervals cannot explain. An edge between two hidden nodes must be
told from 0 by the data, or it is contracted. And all lengths are fitted in the end, by weighted
least squares on the correlations of near pairs. :func:`cl_grouping` moreover looks again at weak
links of the spanning tree, with all that lies on both sides of them.
"""

from latentree.structure._blocks import Block, learn_by_blocks
from latentree.structure._by_name import METHODS, learn_structure, learn_tree
from latentree.structure._chow_liu import chow_liu, mutual_information_tree
from latentree.structure._cl_blind import cl_blind
from latentree.structure._cl_grouping import TreeBuilder, cl_grouping
from latentree.structure._contraction import contract_short
from latentree.structure._hidden_chow_liu import hidden_chow_liu, hidden_mutual_information_tree
from latentree.structure._independence import APART, describe_parts, independent_groups
from latentree.structure._neighbor_joining import STRONG, neighbor_joining
from latentree.structure._recursive_grouping import recursive_grouping
from latentree.structure._regraft import describe_unmoved
from latentree.structure._relationships import Relation, node_relationships
from latentree.structure._sampling import sample_trees
from latentree.structure._spanning import candidate_pairs
from latentree.structure._spectral import spectral_neighbor_joining

__all__ = [
    "APART",
    "METHODS",
    "STRONG",
    "Block",
    "Relation",
    "TreeBuilder",
    "candidate_pairs",
    "chow_liu",
    "cl_blind",
    "cl_grouping",
    "contract_short",
    "describe_parts",
    "describe_unmoved",
    "hidden_chow_liu",
    "hidden_mutual_information_tree",
    "independent_groups",
    "learn_by_blocks",
    "learn_structure",
    "learn_tree",
    "mutual_information_tree",
    "neighbor_joining",
    "node_relationships",
    "recursive_grouping",
    "sample_trees",
    "spectral_neighbor_joining",
]

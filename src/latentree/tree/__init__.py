"""Trees whose first nodes are observed and whose other nodes are hidden, as integer arrays."""

from latentree.tree._build import RootedForest, minimal_forest, root_edge_list, traversal
from latentree.tree._cut import TreeCut
from latentree.tree._groups import GroupsLike, groups_by_node
from latentree.tree._leaves import hung_as_leaves, leaf_edges, tied_by_hidden
from latentree.tree._tree import Tree

__all__ = [
    "GroupsLike",
    "RootedForest",
    "Tree",
    "TreeCut",
    "groups_by_node",
    "hung_as_leaves",
    "leaf_edges",
    "minimal_forest",
    "root_edge_list",
    "tied_by_hidden",
    "traversal",
]

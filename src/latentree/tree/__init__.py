"""Trees whose first nodes are observed and whose other nodes are hidden, as integer arrays."""

from latentree.tree.tree import Tree

__all__ = ["Tree"]

"""Formats of other programs, for trees and models.

:func:`export` writes a file in the format of its suffix, and :func:`read_tree` reads Newick and
GraphML; ``to_…`` and ``from_…`` do the same with text.
"""

from latentree.formats._bif import to_bif
from latentree.formats._graphml import from_graphml
from latentree.formats._graphs import to_cytoscape, to_dot, to_gexf, to_graphml, to_node_link
from latentree.formats._newick import from_newick, to_newick
from latentree.formats._pgmpy import to_pgmpy
from latentree.formats._suffixes import export, read_tree

__all__ = [
    "export",
    "from_graphml",
    "from_newick",
    "read_tree",
    "to_bif",
    "to_cytoscape",
    "to_dot",
    "to_gexf",
    "to_graphml",
    "to_newick",
    "to_node_link",
    "to_pgmpy",
]

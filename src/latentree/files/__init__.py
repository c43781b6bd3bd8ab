"""Files: models as JSON, trees and models in the formats of other programs.

:func:`save` and :func:`load` keep a model to the last bit (``docs/model-file.md``). :func:`export`
writes for other programs, choosing the format by the suffix, and :func:`read_tree` reads Newick and
GraphML; ``to_…`` and ``from_…`` do the same with text. :func:`write_scores`,
:func:`write_posteriors` and :func:`write_imputed` write what a model says of data of any size.
"""

from latentree.files.bif import to_bif
from latentree.files.graphml import from_graphml
from latentree.files.graphs import (
    to_cytoscape,
    to_dot,
    to_gexf,
    to_graphml,
    to_node_link,
)
from latentree.files.model import load, load_report, save
from latentree.files.newick import from_newick, to_newick
from latentree.files.pgmpy import to_pgmpy
from latentree.files.results import write_imputed, write_posteriors, write_scores
from latentree.files.suffixes import export, read_tree

__all__ = [
    "export",
    "from_graphml",
    "from_newick",
    "load",
    "load_report",
    "read_tree",
    "save",
    "to_bif",
    "to_cytoscape",
    "to_dot",
    "to_gexf",
    "to_graphml",
    "to_newick",
    "to_node_link",
    "to_pgmpy",
    "write_imputed",
    "write_posteriors",
    "write_scores",
]

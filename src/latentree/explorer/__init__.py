"""A page in which a person looks at a tree and asks it questions.

:func:`write_explorer` writes one HTML file that needs nothing else: no network, no server, no
other file. The page draws the tree, explains its nodes and edges, and infers in the browser what
evidence on some variables says about all others, exactly as the Python model does.

What does not depend on what a person does is computed here and goes into the page as data: the
model, the strengths of its edges, and both layouts with their curves and colors. The page itself
only infers, folds, zooms and draws. ``_payload.py`` writes that data, ``_bundle.py`` puts the page
together from the files in ``page/``.
"""

from latentree.explorer._topics_page import write_topics
from latentree.explorer._write import ExplorerPage, explorer_html, write_explorer

__all__ = ["ExplorerPage", "explorer_html", "write_explorer", "write_topics"]

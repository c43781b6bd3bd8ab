"""A page in which a person looks at a tree and asks it questions.

:func:`write_explorer` writes one HTML file that needs nothing else: no network, no server, no
other file. The page draws the tree, explains its nodes and edges, and infers in the browser what
evidence on some variables says about all others, exactly as the Python model does.

``payload.py`` puts a model into the page as data, ``bundle.py`` puts the page together from the
files in ``page/``.
"""

from latentree.explorer._write import write_explorer

__all__ = ["write_explorer"]

"""From documents to a tree of topics.

:class:`TopicTree` chooses words, learns a latent tree of them, and finds the topics in it: states
of hidden variables that a group of words is known by. ``_documents.py`` reads
files, ``_corpus.py`` turns texts into counts,
``_selection.py`` finds narrow topics and their words, ``_broad.py`` the broad ones above them.
"""

from latentree.topics._documents import Document, Documents, as_date, read_documents
from latentree.topics._topic_tree import TopicTree

__all__ = ["Document", "Documents", "TopicTree", "as_date", "read_documents"]

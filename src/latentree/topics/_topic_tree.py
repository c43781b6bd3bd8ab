"""The estimator: documents in, a tree of topics out."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from typing import Literal, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from latentree.data import listing
from latentree.errors import DataError, MissingExtraError, ModelError
from latentree.methods import numpy_seed
from latentree.models import DiscreteTreeModel, load, load_report, save
from latentree.topics._corpus import Analyzer, Corpus, choose_words, occurrence, read_corpus
from latentree.topics._learn_topics import Learned, Settings, Topic, learn_topics, topic_support
from latentree.topics._terms import DocumentsLike, as_terms
from latentree.topics._topic_file import decode_topics, encode_topics
from latentree.typing import Cells, FloatArray, PathLike, SklearnState, TableLike

LEAST = 1e-3
"""Probabilities below this are 0 in what :meth:`TopicTree.transform` returns."""

FRAMES: tuple[Literal["pandas", "polars"], ...] = ("pandas", "polars")
"""Libraries whose frames ``topics_`` is, the first that is installed."""

SURE = 0.5
"""A document is on a narrow topic if the probability is at least this."""

FEWEST_WORDS = 3
"""A hidden variable needs three neighbors."""


class TopicTree(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a tree of topics from documents.

    A latent tree of the words is learned from which words occur in which documents. States of its
    hidden variables are narrow topics; each has its own words, which occur together. Broad topics
    are classes of documents, found from groups of narrow ones. The same documents give the
    same topics.

    Parameters
    ----------
    n_words : int
        Number of words and phrases to learn from: those with the highest mean tf-idf.
    n_topics : int or sequence of int, optional
        Largest number of narrow topics; or the number of topics on every level, the broadest
        first. By default all narrow topics that are coherent.
    n_levels : int or "auto"
        Number of levels; by default 1 to 3, by the number of narrow topics.
    method : str
        How the tree of words is learned: one of ``latentree.methods.METHODS`` with hidden
        variables. They have two states.
    vectorizer : CountVectorizer, optional
        Turns a text into words: anything with ``build_analyzer``, so that languages without spaces
        can be cut into words by any function.
    stop_words : "english", list of str or None
        Words that are left out. If ``vectorizer`` has stop words, these are used.
    max_phrase : int
        Largest number of words in a phrase. Words that stand side by side much more often than by
        chance become one phrase ("prime minister"). 1 for no phrases.
    min_df, max_df : int or float
        Smallest and largest number of documents with a word; a float is a share.
    n_top_words : int
        Number of words of a topic.
    max_steps : int
        Largest number of steps of EM.
    time_limit : float, optional
        Limit in seconds for EM, and for the search if ``method`` is ``refined``.
    n_bootstrap : int
        Number of times that the topics are learned again from resampled documents, to say which
        are doubtful; 0 for none.
    random_state : int, RandomState or Generator, optional
        For resampled documents and ``refined``; nothing else is random.

    Attributes
    ----------
    topics_ : frame
        One row per topic, as a frame of pandas or, if that is not installed, of polars (else
        :meth:`to_dict`). Columns: "topic" (1, 1.2, 1.2.3), "level", "parent", "size" (share of the
        documents), "words", "probabilities" (of the words in documents on the topic), "coherence"
        (mean NPMI of pairs of its words over documents, −1 to 1) and "support" (share of the words
        that are together again in resampled documents; NaN without ``n_bootstrap``).
    model_ : DiscreteTreeModel
        The latent tree of the words.
    words_ : array of str
        The words and phrases.
    n_levels_ : int
        Number of levels.
    n_documents_ : int
        Number of documents, those without any of the words included.
    report_ : FitReport
        What learning the tree of words did.

    References
    ----------
    P. Chen, N. L. Zhang, T. Liu, L. K. M. Poon, Z. Chen and F. Khawar, "Latent tree models for
    hierarchical topic detection", Artificial Intelligence 250 (2017).

    Examples
    --------
    >>> import latentree as lt, numpy as np
    >>> about = ["ball goal team coach", "bank loan rate debt", "song band album chart"]
    >>> rng = np.random.default_rng(1)
    >>> numbers = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2] * 40
    >>> documents = [" ".join(rng.choice(about[i].split(), 3)) for i in numbers]
    >>> topics = lt.topics.TopicTree(max_phrase=1).fit(documents)
    >>> [" ".join(sorted(words)) for words in topics.topics_["words"]]
    ['ball coach goal team', 'bank debt loan rate', 'album band chart song']
    >>> topics.predict(["the coach of the team", "a rate of the bank"]).tolist()
    ['1', '2']
    """

    def __init__(
        self,
        n_words: int = 2_000,
        n_topics: int | Sequence[int] | None = None,
        n_levels: int | Literal["auto"] = "auto",
        *,
        method: str = "hclt",
        vectorizer: CountVectorizer | None = None,
        stop_words: str | list[str] | None = "english",
        max_phrase: int = 2,
        min_df: int | float = 3,
        max_df: int | float = 0.5,
        n_top_words: int = 10,
        max_steps: int = 30,
        time_limit: float | None = None,
        n_bootstrap: int = 0,
        random_state: SklearnState = 0,
    ) -> None:
        self.n_words = n_words
        self.n_topics = n_topics
        self.n_levels = n_levels
        self.method = method
        self.vectorizer = vectorizer
        self.stop_words = stop_words
        self.max_phrase = max_phrase
        self.min_df = min_df
        self.max_df = max_df
        self.n_top_words = n_top_words
        self.max_steps = max_steps
        self.time_limit = time_limit
        self.n_bootstrap = n_bootstrap
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False  # a list of texts
        return tags

    # Learning -------------------------------------------------------------------------------

    def fit(
        self, documents: DocumentsLike, y: object = None, *, words: Sequence[str] | None = None
    ) -> Self:
        """Learn the topics of documents.

        Parameters
        ----------
        documents : iterable of str, column of a frame, or document-term matrix
            Texts or :class:`Document`, which are read once and not kept, so that an iterator may
            yield more than fit into memory (four bytes per word are kept). Or how often each word
            occurs in each document: a frame, or a sparse or dense matrix with ``words``.
        y : ignored
            There for scikit-learn's sake.
        words : sequence of str, optional
            The words of the columns of a matrix.

        Returns
        -------
        TopicTree
            The estimator itself.

        Raises
        ------
        DataError
            If there are too few documents or words, or no words that occur together.
        """
        settings = self._settings()
        counts, vocabulary = self._counted(documents, words)
        chosen = choose_words(counts, self.n_words, self.min_df, self.max_df)
        self._check_words(counts, [vocabulary[word] for word in chosen])
        occurs, n_documents = occurrence(counts[:, chosen]), counts.shape[0]
        del counts  # with all words it is much larger
        known = np.flatnonzero(np.diff(occurs.indptr))
        if known.size < 2:
            raise DataError("fewer than two documents have any of the words: nothing to compare")
        occurs, names = occurs[known], tuple(vocabulary[word] for word in chosen)
        learned = learn_topics(occurs, names, settings)
        if self.n_bootstrap:
            learned = topic_support(learned, occurs, settings, self.n_bootstrap)
        self._keep(learned.renumbered(known, n_documents))
        return self

    def _settings(self) -> Settings:
        levels = self.n_topics
        sizes = None if levels is None else tuple(np.atleast_1d(levels).tolist())
        if sizes is not None and (min(sizes) < 1 or list(sizes) != sorted(sizes)):
            raise ModelError(f"n_topics is {levels}, but must be numbers of topics that grow")
        if self.n_levels != "auto" and self.n_levels < 1:
            raise ModelError(f"n_levels is {self.n_levels}, but must be at least 1")
        for name in ("n_words", "n_top_words", "max_phrase"):
            if getattr(self, name) < 1:
                raise ModelError(f"{name} is {getattr(self, name)}, but must be at least 1")
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = int(np.random.default_rng(numpy_seed(seed)).integers(2**31))
        return Settings(
            sizes, None if self.n_levels == "auto" else self.n_levels, self.n_top_words,
            self.method, self.max_steps, self.time_limit, int(seed),
        )  # fmt: skip

    def _counted(
        self, documents: DocumentsLike, words: Sequence[str] | None
    ) -> tuple[sparse.csr_array, tuple[str, ...]]:
        """Return how often each word and phrase occurs in each document."""
        terms = as_terms(documents, words)
        self.phrases_: list[list[tuple[str, str]]] = []
        self._analyzer, self._stop_words = self._reading()
        if terms is not None:
            return terms
        corpus = self._read(documents)
        for _ in range(self.max_phrase - 1):
            phrases = corpus.find_phrases()
            if not phrases:
                break
            self.phrases_.append(phrases)
            corpus = corpus.joined(phrases)
        return corpus.counts(), corpus.vocabulary

    def _reading(self) -> tuple[Analyzer, frozenset[str]]:
        """Return the function that cuts a text into words, and the words that are left out."""
        vectorizer = CountVectorizer() if self.vectorizer is None else self.vectorizer
        own = getattr(vectorizer, "stop_words", None)
        if own is not None:  # taken out after cutting, so that phrases do not reach across them
            vectorizer = clone(vectorizer).set_params(stop_words=None)
        wanted = CountVectorizer(stop_words=own if own is not None else self.stop_words)
        return vectorizer.build_analyzer(), frozenset(wanted.get_stop_words() or ())

    def _read(self, documents: DocumentsLike) -> Corpus:
        if isinstance(documents, str | bytes):
            raise DataError("documents must be a list of texts, but this is a single text")
        if not isinstance(documents, Iterable):
            raise DataError(f"documents must be texts, but this is a {type(documents).__name__}")
        return read_corpus(documents, self._analyzer, self._stop_words)

    def _check_words(self, counts: sparse.csr_array, chosen: list[str]) -> None:
        n = counts.shape[0]
        if n < 2:
            found = "is one document" if n else "are no documents"
            raise DataError(f"there {found}, but learning topics needs many: hundreds")
        if not counts.nnz:
            raise DataError(f"all {n} documents are empty, or hold nothing but stop words")
        if len(chosen) < FEWEST_WORDS:
            those = f" ({listing(chosen)})" if chosen else ""
            raise DataError(
                f"of {n:,} documents, {_limit(self.min_df)} to {_limit(self.max_df)} must have a "
                f"word: that leaves {len(chosen)} words{those}, but topics need at least "
                f"{FEWEST_WORDS}: lower min_df (--min-df), raise max_df (--max-df), or give more "
                "documents"
            )

    def _keep(self, learned: Learned) -> None:
        self._learned = learned
        self.model_: DiscreteTreeModel = learned.model
        self.words_ = np.array(learned.words, object)
        self.n_levels_ = max(topic.level for topic in learned.topics)
        self.n_documents_ = learned.n_documents
        self.report_ = learned.report

    def __sklearn_is_fitted__(self) -> bool:
        return "_learned" in self.__dict__

    # What was found -------------------------------------------------------------------------

    @property
    def topics_(self) -> TableLike:
        """The topics as a frame of a library that is installed."""
        for backend in FRAMES:
            if importlib.util.find_spec(backend) is not None:
                return self.to_frame(backend)
        return self.to_dict()

    def to_dict(self) -> dict[str, Cells]:
        """Return the topics as the columns of a table.

        Returns
        -------
        dict of lists
            By the names of the columns; see ``topics_``.
        """
        return self._fitted().table

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> TableLike:
        """Return the topics as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        frame of that library
            One row per topic; see ``topics_``.
        """
        if importlib.util.find_spec(backend) is None:
            raise MissingExtraError(f"this needs {backend}: pip install {backend}")
        return nw.from_dict(self.to_dict(), backend=backend).to_native()

    def get_topic_words(self, topic: str, n: int | None = None) -> list[tuple[str, float]]:
        """Return the words of a topic.

        Parameters
        ----------
        topic : str
            As in ``topics_["topic"]``.
        n : int, optional
            At most so many.

        Returns
        -------
        list of (str, float)
            Words, the most informative first, and their probabilities in documents on the topic.
        """
        found = self._topic(topic)
        return list(zip(found.words, found.probabilities, strict=True))[:n]

    def find_documents(self, topic: str, n: int = 10) -> list[tuple[int, float]]:
        """Return the most typical of the documents learned from.

        Parameters
        ----------
        topic : str
            As in ``topics_["topic"]``.
        n : int
            At most so many, up to 100.

        Returns
        -------
        list of (int, float)
            Places of documents and their probabilities to be on the topic. The first ones have the
            largest probability × information of the topic's words that occur.
        """
        found = self._topic(topic)
        return list(zip(found.documents, found.document_probabilities, strict=True))[:n]

    def _topic(self, name: str) -> Topic:
        topics = self._fitted().topics
        for topic in topics:
            if topic.name == str(name):
                return topic
        raise ModelError(
            f"there is no topic {name!r}: known are {listing([t.name for t in topics])}"
        )

    def _fitted(self) -> Learned:
        check_is_fitted(self)
        return self._learned

    # Using it -------------------------------------------------------------------------------

    def count(
        self, documents: DocumentsLike, words: Sequence[str] | None = None
    ) -> sparse.csr_array:
        """Return which of the model's words occur in documents.

        Parameters
        ----------
        documents, words
            As in :meth:`fit`.

        Returns
        -------
        sparse array of documents × words
            0 and 1.
        """
        learned = self._fitted()
        terms = as_terms(documents, words)
        if terms is None:
            corpus = self._read(documents)
            for phrases in self.phrases_:
                corpus = corpus.joined(phrases)
            counts, vocabulary = corpus.counts(), corpus.vocabulary
        else:
            counts, vocabulary = terms
        place = {word: column for column, word in enumerate(vocabulary)}
        known = [column for column, word in enumerate(learned.words) if word in place]
        inside = counts[:, [place[learned.words[column]] for column in known]].tocoo()
        shape = (counts.shape[0], len(learned.words))
        columns = np.array(known, np.int64)[inside.col]
        return occurrence(sparse.csr_array((inside.data, (inside.row, columns)), shape=shape))

    def transform(
        self, documents: DocumentsLike, *, words: Sequence[str] | None = None
    ) -> sparse.csr_array:
        """Return the probability that each document is on each topic.

        Parameters
        ----------
        documents, words
            As in :meth:`fit`.

        Returns
        -------
        sparse array of documents × topics
            In the order of ``topics_``; probabilities below 0.001 are 0. Those of the broadest of
            several levels add up to 1; a document may be on several narrow topics or on none.
        """
        learned = self._fitted()
        blocks = [_sparse(block) for block in learned.probabilities(self.count(documents, words))]
        empty = sparse.csr_array((0, len(learned.topics)))
        return sparse.csr_array(sparse.vstack([empty, *blocks]))

    def typicality(
        self,
        documents: DocumentsLike,
        *,
        words: Sequence[str] | None = None,
        probability: sparse.csr_array | None = None,
    ) -> sparse.csr_array:
        """Return how typical each document is of each topic.

        Parameters
        ----------
        documents, words
            As in :meth:`fit`.
        probability : sparse array, optional
            What :meth:`transform` returned, if that is known.

        Returns
        -------
        sparse array of documents × topics
            Probability × information of the topic's words that occur; 0 if none does.
        """
        occurs = self.count(documents, words)
        if probability is None:
            probability = self.transform(occurs, words=list(self._learned.words))
        return sparse.csr_array((occurs @ self._learned.word_weights).multiply(probability))

    def predict(
        self, documents: DocumentsLike, level: int = 1, *, words: Sequence[str] | None = None
    ) -> NDArray[np.object_]:
        """Return the most probable topic of each document on a level.

        Parameters
        ----------
        documents, words
            As in :meth:`fit`.
        level : int
            1 for the broadest topics.

        Returns
        -------
        array of str
            Topics as in ``topics_["topic"]``; empty if the document has none of the words, or no
            topic of the narrowest level has a probability of at least 0.5.
        """
        topics = self._fitted().topics
        places = [place for place, topic in enumerate(topics) if topic.level == level]
        if not places:
            raise ModelError(f"level is {level}, but must be 1 to {self.n_levels_}")
        occurs = self.count(documents, words)
        found = self.transform(occurs, words=list(self._learned.words))[:, places].toarray()
        names = np.array([topics[place].name for place in places] + [""], object)
        best = found.argmax(axis=1)
        if level == self.n_levels_:
            best[found.max(axis=1) < SURE] = -1
        best[np.diff(occurs.indptr) == 0] = -1
        predicted: NDArray[np.object_] = names[best]
        return predicted

    def score(
        self, documents: DocumentsLike, y: object = None, *, words: Sequence[str] | None = None
    ) -> float:
        """Return the mean log-likelihood of documents: of which words occur and which do not.

        Parameters
        ----------
        documents, words
            As in :meth:`fit`.
        y : ignored
            There for scikit-learn's sake.

        Returns
        -------
        float
        """
        occurs = self.count(documents, words)
        return float(self._fitted().log_likelihood(occurs).mean())

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn's sake.

        Returns
        -------
        array of str
        """
        return np.array([topic.name for topic in self._fitted().topics], object)

    # Files ----------------------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Write topics, words and model to one file, which appears complete or not at all.

        Parameters
        ----------
        path : path of the file
            A model file (JSON) that :func:`latentree.load` reads too. Functions and a
            ``token_pattern`` of your own vectorizer are not in it.
        """
        learned = self._fitted()
        content = encode_topics(self, learned)
        save(learned.model, path, {"topics": content, **learned.report.as_dict()})

    @classmethod
    def load(cls, path: PathLike, vectorizer: CountVectorizer | None = None) -> TopicTree:
        """Read topics that :meth:`save` wrote.

        Parameters
        ----------
        path : path of the file
        vectorizer : CountVectorizer, optional
            The one learned with, if it has functions or a pattern of its own.

        Returns
        -------
        TopicTree

        Raises
        ------
        FileError
            With the name of the file and of the part that is wrong.
        """
        settings, phrases, learned = decode_topics(path, load(path), load_report(path), vectorizer)
        topics = cls(**settings)
        topics.phrases_ = phrases
        topics._analyzer, topics._stop_words = topics._reading()
        topics._keep(learned)
        return topics


def _limit(documents: float) -> str:
    return f"{documents:.0%}" if isinstance(documents, float) else str(documents)


def _sparse(block: FloatArray) -> sparse.csr_array:
    return sparse.csr_array(np.where(block >= LEAST, block, 0.0))

"""Topics as plain values beside the model in its file, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from latentree import _plain as plain
from latentree._fields import (
    Choice,
    Field,
    Flag,
    ListOf,
    Number,
    Numbers,
    Or,
    Record,
    Text,
    Whole,
)
from latentree.em import FitReport
from latentree.errors import FileError
from latentree.methods import METHODS
from latentree.models import DiscreteTreeModel, TreeModel
from latentree.topics._broad import Classes
from latentree.topics._learn_topics import Learned, Topic
from latentree.typing import FloatArray, PathLike, PlainReport

if TYPE_CHECKING:
    from latentree.topics._topic_tree import TopicTree

VERSION = 1
"""Version of what a file holds beside the model."""

_FUNCTIONS = ("analyzer", "tokenizer", "preprocessor")
"""Parameters of a vectorizer that may be functions."""

PATTERN = CountVectorizer().token_pattern
"""The pattern of words that is built in. A file holds no other one: matching a pattern of somebody
else may never end."""

MOST_WORDS = 20
"""Most words, or characters, of an n-gram in a file: all n-grams of a long document fill memory."""


class DecodedTopics(NamedTuple):
    """The content of a file beside the model."""

    settings: PlainReport
    """Parameters of :class:`TopicTree`."""
    phrases: list[list[tuple[str, str]]]
    learned: Learned


def encode_topics(estimator: TopicTree, learned: Learned) -> PlainReport:
    """Return what a file holds beside the model."""
    content = {
        "version": VERSION,
        "settings": {name: _plain(getattr(estimator, name)) for name in _SETTINGS.required},
        "vectorizer": _vectorizer(estimator.vectorizer),
        "phrases": estimator.phrases_,
        "words": learned.words,
        "n_documents": learned.n_documents,
        "classes": learned.classes,
        "topics": learned.topics,
    }
    return _CONTENT.plain(content, "topics")


def _plain(value: object) -> object:
    """Return numbers and collections of NumPy and Python as JSON takes them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_plain(each) for each in value]
    return value


def _vectorizer(vectorizer: CountVectorizer | None) -> PlainReport | None:
    """Return the settings of a vectorizer; "own" if it has functions or a pattern of its own."""
    if vectorizer is None:
        return None
    given = vectorizer.get_params() if hasattr(vectorizer, "get_params") else {}
    functions = any(callable(given.get(name)) for name in _FUNCTIONS)
    if type(vectorizer) is not CountVectorizer or functions or given["token_pattern"] != PATTERN:
        return {"own": True}
    return {name: _plain(given[name]) for name in _VECTORIZER.required}


# From the file ----------------------------------------------------------------------------------


def decode_topics(
    path: PathLike,
    model: TreeModel,
    report: PlainReport | None,
    vectorizer: CountVectorizer | None,
) -> DecodedTopics:
    """Return what a file holds beside the model; raise with the name of the wrong part."""
    content = (report or {}).get("topics")
    if not isinstance(content, dict) or not isinstance(model, DiscreteTreeModel):
        raise FileError(f"{path}: is a model, but holds no topics: TopicTree.save writes them")
    if content.get("version") != VERSION:
        shown = plain.shown(content.get("version"))
        raise FileError(f"{path}: topics have version {shown}, not {VERSION}")
    try:
        return _decode(content, model, vectorizer)
    except FileError as error:
        raise FileError(f"{path}: topics: {error}") from error


def _decode(
    content: plain.Fields, model: DiscreteTreeModel, vectorizer: CountVectorizer | None
) -> DecodedTopics:
    fields = _CONTENT.read(content, "the file")
    settings, words, topics = fields["settings"], fields["words"], fields["topics"]
    if fields["vectorizer"] is not None and vectorizer is None:
        vectorizer = _as_vectorizer(fields["vectorizer"])
    m = model.tree.n_observed
    if sorted(words) != sorted(model.schema.names) or (model.n_states[:m] != 2).any():
        raise FileError("words are not those of the model, which occur or do not")
    for number, classes in enumerate(fields["classes"]):
        if classes.frequencies.shape != (classes.weights.size, m) or not classes.weights.size:
            raise FileError(f"classes[{number}] needs a frequency of each word in every class")
    sizes = [each.weights.size for each in fields["classes"]]
    sizes.append(int(model.n_states[model.tree.hidden].sum()))
    n_documents = fields["n_documents"]
    _check_topics(topics, sizes, frozenset(words), n_documents)
    made = FitReport("loaded", math.nan, model.n_parameters, float(n_documents))
    learned = Learned(words, topics, model, fields["classes"], made, n_documents)
    return DecodedTopics({**settings, "vectorizer": vectorizer}, fields["phrases"], learned)


def _as_vectorizer(value: object) -> CountVectorizer:
    given = plain.as_dict(value, "vectorizer")
    if "own" in given or given.get("token_pattern", PATTERN) != PATTERN:
        raise FileError(
            "were learned with functions of your own, or a pattern, which no file holds: give the "
            "vectorizer to load"
        )
    return CountVectorizer(**_VECTORIZER.read(given, "vectorizer"))


def _check_topics(
    topics: tuple[Topic, ...], sizes: Sequence[int], words: frozenset[str], n_documents: int
) -> None:
    """Check that topics are an outline of the levels: each below one of the level above it."""
    level_of = {"": 0}
    for number, topic in enumerate(topics):
        wrong = None
        if not len(topic.words) == len(topic.probabilities) == len(topic.information):
            wrong = "has other words than probabilities or information"
        elif len(topic.documents) != len(topic.document_probabilities):
            wrong = "has other documents than probabilities of them"
        elif not (topic.level <= len(sizes) and topic.column < sizes[topic.level - 1]):
            wrong = "has a wrong level or column"
        elif topic.name in level_of or level_of.get(topic.parent) != topic.level - 1:
            wrong = "has the name of another topic, or a parent that is not above it"
        elif not words.issuperset(topic.words) or len(set(topic.words)) < len(topic.words):
            wrong = "has words that the model does not know, or one twice"
        elif max(topic.documents, default=0) >= n_documents:
            wrong = f"has a document beyond the {n_documents} learned from"
        if wrong is not None:
            raise FileError(f"topics[{number}], {plain.shown(topic.name)}, {wrong}")
        level_of[topic.name] = topic.level
    if not any(topic.level == len(sizes) for topic in topics):
        raise FileError("topics has none of the narrowest level")


# The form of it, declared -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Share(Number):
    """A number of documents, or a share of them if it is a float."""

    def read(self, value: object, part: str) -> Any:
        super().read(value, part)
        return value


@dataclass(frozen=True, kw_only=True)
class _Sizes(Whole):
    """One number, or one per level."""

    def read(self, value: object, part: str) -> Any:
        many = ListOf(item=Whole(), make=tuple)
        return many.read(value, part) if type(value) is list else super().read(value, part)


@dataclass(frozen=True, kw_only=True)
class _Tuple(Numbers):
    """Numbers as a tuple."""

    def read(self, value: object, part: str) -> Any:
        return tuple(super().read(value, part).tolist())


def _range(lengths: list[int]) -> tuple[int, int]:
    low, high = lengths
    if low > high:
        raise FileError(f"vectorizer.ngram_range is {low} to {high}, but must not fall")
    return low, high


def _classes(weights: FloatArray, frequencies: list[FloatArray]) -> Classes:
    """Rows that differ in their number of words are left out, and missed when sizes are checked."""
    rows = [row for row in frequencies if row.size == frequencies[0].size]
    return Classes(weights, np.array(rows).reshape(len(rows), -1))


_POSITIVE, _TEXTS = Whole(least=1), ListOf(item=Text(), make=tuple)
_STOP_WORDS = Or(other=None, otherwise=Or(other="english", otherwise=ListOf(item=Text())))

_SETTINGS = Record(
    {
        "n_words": _POSITIVE,
        "n_topics": Or(other=None, otherwise=_Sizes(least=1)),
        "n_levels": Or(other="auto", otherwise=_POSITIVE),
        "method": Choice(among=tuple(METHODS)),
        "stop_words": _STOP_WORDS,
        "max_phrase": _POSITIVE,
        "min_df": _Share(),
        "max_df": _Share(),
        "n_top_words": _POSITIVE,
        "max_steps": Whole(),
        "time_limit": Or(other=None, otherwise=Number()),
        "n_bootstrap": Whole(),
    }
)
"""Parameters of :class:`TopicTree` that a file holds."""

_VECTORIZER = Record(
    {
        "strip_accents": Choice(among=(None, "ascii", "unicode")),
        "lowercase": Flag(),
        "token_pattern": Choice(among=(PATTERN,)),
        "analyzer": Choice(among=("word", "char", "char_wb")),
        "stop_words": _STOP_WORDS,
        "ngram_range": ListOf(item=Whole(least=1, most=MOST_WORDS), size=2, make=_range),
    }
)
"""Parameters of a vectorizer that a file holds; neither functions nor patterns can be in it."""

_TOPIC = Record(
    {
        "name": Text(),
        "level": _POSITIVE,
        "parent": Text(),
        "size": Number(),
        "words": _TEXTS,
        "probabilities": _Tuple(),
        "information": _Tuple(),
        "coherence": Number(),
        "column": Whole(),
        "documents": ListOf(item=Whole(), make=tuple),
        "document_probabilities": _Tuple(),
    },
    {"support": Number(null=math.nan)},
    Topic,
)

_CLASSES = Record(
    {"weights": Numbers(above=0.0), "frequencies": ListOf(item=Numbers(above=0.0))}, make=_classes
)

_CONTENT = Record(
    {
        "version": Choice(among=(VERSION,)),
        "settings": _SETTINGS,
        "vectorizer": Field(),
        "phrases": ListOf(item=ListOf(item=ListOf(item=Text(), size=2, make=tuple))),
        "words": _TEXTS,
        "n_documents": _POSITIVE,
        "classes": ListOf(item=_CLASSES, make=tuple),
        "topics": ListOf(item=_TOPIC, make=tuple),
    },
    is_top=True,
)

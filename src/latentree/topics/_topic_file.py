"""Topics as plain values beside the model in its file, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from latentree import _plain as plain
from latentree.em import FitReport
from latentree.errors import FileError
from latentree.methods import METHODS
from latentree.models import DiscreteTreeModel, TreeModel
from latentree.topics._broad import Classes
from latentree.topics._learn_topics import Learned, Topic
from latentree.typing import PathLike, PlainReport

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

Reader = Callable[[object, str], object]
"""Checks and returns one part of a file, given its name for errors."""


class DecodedTopics(NamedTuple):
    """The content of a file beside the model."""

    settings: PlainReport
    """Parameters of :class:`TopicTree`."""
    phrases: list[list[tuple[str, str]]]
    learned: Learned


def encode_topics(estimator: TopicTree, learned: Learned) -> PlainReport:
    """Return what a file holds beside the model."""
    settings = {name: _plain(getattr(estimator, name)) for name in _SETTINGS}
    return {
        "version": VERSION,
        "settings": settings,
        "vectorizer": _vectorizer(estimator.vectorizer),
        "phrases": [[list(pair) for pair in phrases] for phrases in estimator.phrases_],
        "words": list(learned.words),
        "n_documents": learned.n_documents,
        "classes": [
            {"weights": each.weights.tolist(), "frequencies": each.frequencies.tolist()}
            for each in learned.classes
        ],
        "topics": [_encode_topic(topic) for topic in learned.topics],
    }


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
    return {name: _plain(given[name]) for name in _VECTORIZER}


def _encode_topic(topic: Topic) -> PlainReport:
    fields = {name: _plain(value) for name, value in topic._asdict().items()}
    if math.isnan(topic.support):  # JSON has no NaN
        del fields["support"]
    return fields


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
    plain.check_keys(content, "the file", _PARTS)
    settings = _read_fields(content["settings"], "settings", _SETTINGS)
    if content["vectorizer"] is not None and vectorizer is None:
        vectorizer = _as_vectorizer(content["vectorizer"])
    phrases = [
        [
            _as_pair(pair, f"phrases[{i}][{j}]")
            for j, pair in enumerate(_list(some, f"phrases[{i}]"))
        ]
        for i, some in enumerate(_list(content["phrases"], "phrases"))
    ]
    words = _texts(content["words"], "words")
    m = model.tree.n_observed
    if sorted(words) != sorted(model.schema.names) or (model.n_states[:m] != 2).any():
        raise FileError("words are not those of the model, which occur or do not")
    classes = tuple(
        _as_classes(each, f"classes[{i}]", m)
        for i, each in enumerate(_list(content["classes"], "classes"))
    )
    n_documents = plain.as_integer(content["n_documents"], "n_documents", 1)
    topics = tuple(
        _as_topic(each, f"topics[{i}]") for i, each in enumerate(_list(content["topics"], "topics"))
    )
    sizes = [each.weights.size for each in classes]
    sizes.append(int(model.n_states[model.tree.hidden].sum()))
    _check_topics(topics, sizes, frozenset(words), n_documents)
    made = FitReport("loaded", math.nan, model.n_parameters, float(n_documents))
    learned = Learned(words, topics, model, classes, made, n_documents)
    return DecodedTopics({**settings, "vectorizer": vectorizer}, phrases, learned)


def _list(value: object, part: str) -> list[object]:
    return plain.as_list(value, part)


def _texts(value: object, part: str) -> tuple[str, ...]:
    return tuple(plain.as_texts(plain.as_list(value, part), part))


def _numbers(value: object, part: str) -> tuple[float, ...]:
    return tuple(plain.as_numbers(plain.as_list(value, part), part).tolist())


def _integers(value: object, part: str) -> tuple[int, ...]:
    given = enumerate(plain.as_list(value, part))
    return tuple(plain.as_integer(each, f"{part}[{index}]") for index, each in given)


def _flag(value: object, part: str) -> bool:
    if type(value) is not bool:
        raise FileError(f"{part} is {plain.shown(value)}, but must be true or false")
    return value


def _one_of(*known: object) -> Reader:
    def read(value: object, part: str) -> object:
        if value not in known:
            raise FileError(f"{part} is {plain.shown(value)}, but must be one of {known}")
        return value

    return read


def _or(other: object, reader: Reader) -> Reader:
    """Read one value that stands for itself, or what the reader reads."""
    return lambda value, part: value if value == other else reader(value, part)


def _read_fields(value: object, part: str, readers: Mapping[str, Reader]) -> plain.Fields:
    """Read the stated fields of a dict, each by its reader; there must be no others."""
    fields = plain.as_dict(value, part)
    plain.check_keys(fields, part, tuple(readers))
    return {name: read(fields[name], f"{part}.{name}") for name, read in readers.items()}


def _stop_words(value: object, part: str) -> str | list[str] | None:
    return value if value in (None, "english") else list(_texts(value, part))


def _range(value: object, part: str) -> tuple[int, ...]:
    low, high = _integers(plain.as_list(value, part, 2), part)
    if not 1 <= low <= high <= MOST_WORDS:
        raise FileError(f"{part} is {low} to {high}, but must be in 1 to {MOST_WORDS}")
    return low, high


def _positive(value: object, part: str) -> int:
    return plain.as_integer(value, part, 1)


def _share(value: object, part: str) -> int | float:
    """Read a number of documents, or a share of them if it is a float."""
    plain.as_number(value, part)
    return cast(int | float, value)


def _sizes(value: object, part: str) -> object:
    return _integers(value, part) if isinstance(value, list) else _positive(value, part)


_SETTINGS: dict[str, Reader] = {
    "n_words": _positive,
    "n_topics": _or(None, _sizes),
    "n_levels": _or("auto", _positive),
    "method": _one_of(*METHODS),
    "stop_words": _stop_words,
    "max_phrase": _positive,
    "min_df": _share,
    "max_df": _share,
    "n_top_words": _positive,
    "max_steps": plain.as_integer,
    "time_limit": _or(None, plain.as_number),
    "n_bootstrap": plain.as_integer,
}
"""Parameters of :class:`TopicTree` that a file holds."""

_VECTORIZER: dict[str, Reader] = {
    "strip_accents": _one_of(None, "ascii", "unicode"),
    "lowercase": _flag,
    "token_pattern": _one_of(PATTERN),
    "analyzer": _one_of("word", "char", "char_wb"),
    "stop_words": _stop_words,
    "ngram_range": _range,
}
"""Parameters of a vectorizer that a file holds; neither functions nor patterns can be in it."""

_TOPIC: dict[str, Reader] = {
    "name": plain.as_text,
    "level": _positive,
    "parent": plain.as_text,
    "size": plain.as_number,
    "words": _texts,
    "probabilities": _numbers,
    "information": _numbers,
    "coherence": plain.as_number,
    "column": plain.as_integer,
    "documents": _integers,
    "document_probabilities": _numbers,
    "support": _or(None, plain.as_number),
}
"""The fields of :class:`Topic`."""

_PARTS = (
    "version", "settings", "vectorizer", "phrases", "words", "n_documents", "classes", "topics",
)  # fmt: skip


def _as_vectorizer(value: object) -> CountVectorizer:
    given = plain.as_dict(value, "vectorizer")
    if "own" in given or given.get("token_pattern", PATTERN) != PATTERN:
        raise FileError(
            "were learned with functions of your own, or a pattern, which no file holds: give the "
            "vectorizer to load"
        )
    return CountVectorizer(**_read_fields(given, "vectorizer", _VECTORIZER))


def _as_pair(value: object, part: str) -> tuple[str, str]:
    first, second = plain.as_texts(plain.as_list(value, part, 2), part)
    return first, second


def _as_classes(value: object, part: str, n_words: int) -> Classes:
    given = plain.as_dict(value, part)
    plain.check_keys(given, part, ("weights", "frequencies"))
    weights = np.array(_numbers(given["weights"], f"{part}.weights"))
    rows = plain.as_list(given["frequencies"], f"{part}.frequencies", weights.size)
    names = [f"{part}.frequencies[{i}]" for i in range(weights.size)]
    frequencies = np.array(
        [
            plain.as_numbers(plain.as_list(row, name, n_words), name)
            for row, name in zip(rows, names, strict=True)
        ]
    )
    if not (weights.size and (weights > 0).all() and (frequencies > 0).all()):
        raise FileError(f"{part}: weights and frequencies must be positive")
    return Classes(weights, frequencies)


def _as_topic(value: object, part: str) -> Topic:
    given = _read_fields({"support": None, **plain.as_dict(value, part)}, part, _TOPIC)
    if given["support"] is None:  # JSON has no NaN
        given["support"] = math.nan
    topic = Topic(**given)  # type: ignore[arg-type]  # the readers check the types
    if not len(topic.words) == len(topic.probabilities) == len(topic.information):
        raise FileError(f"{part} has other words than probabilities or information")
    if len(topic.documents) != len(topic.document_probabilities):
        raise FileError(f"{part} has other documents than probabilities of them")
    return topic


def _check_topics(
    topics: tuple[Topic, ...], sizes: Sequence[int], words: frozenset[str], n_documents: int
) -> None:
    """Check that topics are an outline of the levels: each below one of the level above it."""
    level_of = {"": 0}
    for number, topic in enumerate(topics):
        wrong = None
        if not (topic.level <= len(sizes) and topic.column < sizes[topic.level - 1]):
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

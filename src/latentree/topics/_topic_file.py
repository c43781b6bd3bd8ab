"""Topics as plain values beside the model in its file, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from latentree.em import FitReport
from latentree.errors import FileError
from latentree.models import DiscreteTreeModel, TreeModel
from latentree.topics._broad import Classes
from latentree.topics._learn_topics import Learned, Topic
from latentree.typing import PathLike, PlainReport

if TYPE_CHECKING:
    from latentree.topics._topic_tree import TopicTree

VERSION = 1
"""Version of what a file holds beside the model."""

_PLAIN = ("strip_accents", "lowercase", "token_pattern", "analyzer", "stop_words")
"""Parameters of a vectorizer that a file holds; functions cannot be in it."""

_FUNCTIONS = ("analyzer", "tokenizer", "preprocessor")
"""Parameters of a vectorizer that may be functions."""

_SETTINGS = (
    "n_words", "n_topics", "n_levels", "method", "stop_words", "max_phrase", "min_df", "max_df",
    "n_top_words", "max_steps", "time_limit", "stepwise", "n_bootstrap",
)  # fmt: skip


Part = TypeVar("Part")


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
    """Return the settings of a vectorizer; "own" if it is more than settings."""
    if vectorizer is None:
        return None
    given = vectorizer.get_params() if hasattr(vectorizer, "get_params") else {}
    functions = any(callable(given.get(name)) for name in _FUNCTIONS)
    if type(vectorizer) is not CountVectorizer or functions:
        return {"own": True}
    settings = {name: _plain(given[name]) for name in _PLAIN}
    return {**settings, "ngram_range": list(given["ngram_range"])}


def _encode_topic(topic: Topic) -> PlainReport:
    plain = {name: _plain(value) for name, value in topic._asdict().items()}
    if math.isnan(topic.support):  # JSON has no NaN
        del plain["support"]
    return plain


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
        raise FileError(f"{path}: topics have version {content.get('version')!r}, not {VERSION}")

    def part(name: str, read: Callable[[Any], Part]) -> Part:
        try:
            return read(content[name])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise FileError(f'{path}: "topics": "{name}" is wrong: {error}') from error

    settings = part("settings", lambda given: {name: given[name] for name in _SETTINGS})
    if settings["n_topics"] is not None and np.ndim(settings["n_topics"]):
        settings["n_topics"] = tuple(settings["n_topics"])
    known = part("vectorizer", lambda given: given)
    if vectorizer is None and known is not None:
        if known.get("own"):
            raise FileError(
                f"{path}: was learned with functions of your own, which no file holds: give the "
                "vectorizer to load"
            )
        vectorizer = part("vectorizer", _as_vectorizer)
    phrases = part("phrases", lambda all_: [[(str(a), str(b)) for a, b in some] for some in all_])
    words = part("words", lambda given: tuple(map(str, given)))
    if sorted(words) != sorted(model.schema.names):
        raise FileError(f'{path}: "topics": "words" are not those of the model')
    classes = part("classes", lambda given: tuple(_as_classes(each, len(words)) for each in given))
    topics = part("topics", lambda given: tuple(_as_topic(each) for each in given))
    _check_columns(path, topics, classes, model)
    n_documents = part("n_documents", int)
    made = FitReport("loaded", math.nan, model.n_parameters, float(n_documents))
    learned = Learned(words, topics, model, classes, made, n_documents)
    return DecodedTopics({**settings, "vectorizer": vectorizer}, phrases, learned)


def _as_vectorizer(given: PlainReport) -> CountVectorizer:
    return CountVectorizer(**{**given, "ngram_range": tuple(given["ngram_range"])})


def _as_classes(given: PlainReport, n_words: int) -> Classes:
    weights = np.array(given["weights"], float)
    frequencies = np.array(given["frequencies"], float)
    if frequencies.shape != (weights.size, n_words) or not (frequencies > 0).all():
        raise ValueError("frequencies of words must be positive, one a word and class")
    if not ((weights > 0).all() and np.isfinite(weights).all() and np.isfinite(frequencies).all()):
        raise ValueError("weights and frequencies must be positive and finite")
    return Classes(weights, frequencies)


def _as_topic(given: PlainReport) -> Topic:
    plain = {"support": math.nan, **given}
    values = [plain[name] for name in Topic._fields]
    topic = Topic._make(tuple(each) if isinstance(each, list) else each for each in values)
    if len(topic.words) != len(topic.probabilities):
        raise ValueError(f"topic {topic.name!r} has other words than probabilities")
    return topic


def _check_columns(
    path: PathLike,
    topics: tuple[Topic, ...],
    classes: tuple[Classes, ...],
    model: DiscreteTreeModel,
) -> None:
    """Raise if a topic is none of its level."""
    sizes = [each.weights.size for each in classes]
    sizes.append(int(model.n_states[model.tree.hidden].sum()))
    for topic in topics:
        if not (1 <= topic.level <= len(sizes) and 0 <= topic.column < sizes[topic.level - 1]):
            raise FileError(f'{path}: "topics": topic {topic.name!r} has a wrong level or column')

"""From documents to topics: the tree of words, narrow topics in it, broad topics above them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from latentree.data import as_table
from latentree.distances import Sample, as_sample
from latentree.em import Budget, FitReport, Fitted, fit_parameters
from latentree.errors import DataError, DataWarning
from latentree.methods import OptionValues, learn_model, method_named
from latentree.models import DiscreteTreeModel
from latentree.structure import learn_tree
from latentree.topics._broad import Classes, fit_classes
from latentree.topics._selection import (
    LEAST_SIZE,
    MOST_SIZE,
    Association,
    Cooccurrence,
    associate,
    broad_words,
    choose_topics,
    mean_coherence,
)
from latentree.typing import Cells, FloatArray, IntArray

FLOOR = 0.1
"""Least coherence of a narrow topic where their number is not given."""

MOST_TOPICS = 200
"""Most narrow topics where their number is not given: more than a person reads."""

LEVELS = (7, 24)
"""Up to 7 narrow topics have one level, up to 24 two, more have three: a person takes in about
seven things at a glance."""

PRIOR = 1.0
"""Weight of a uniform prior on the tables of the tree, as a number of documents: words that never
occur off a topic stay possible."""

MEASURED = 50_000
"""Most documents by which words and coherence of topics are measured: shares of so many are known
to within half a percent, and a topic of the least size has 250 of them."""

N_TYPICAL = 100
"""Documents that are kept for each topic: more than a person reads."""

BLOCK = 20_000_000
"""Most numbers in a block of posteriors: 160 MB."""


class Settings(NamedTuple):
    """The settings of learning; see :class:`TopicTree`."""

    sizes: tuple[int, ...] | None
    n_levels: int | None
    n_top_words: int
    method: str
    max_steps: int
    time_limit: float | None
    seed: int
    n_measured: int = MEASURED


class Topic(NamedTuple):
    """A topic.

    ``column`` is its place among the probabilities of the states of all hidden variables, or among
    the classes of its level.
    """

    name: str
    level: int
    parent: str
    size: float
    words: tuple[str, ...]
    probabilities: tuple[float, ...]
    information: tuple[float, ...]
    coherence: float
    column: int
    documents: tuple[int, ...] = ()
    document_probabilities: tuple[float, ...] = ()
    support: float = float("nan")


class Typical(NamedTuple):
    """The documents that show a topic best, and their probabilities of being on it."""

    documents: tuple[int, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Learned:
    """All that was learned: topics in the order of the outline, the tree, and the classes."""

    words: tuple[str, ...]
    topics: tuple[Topic, ...]
    model: DiscreteTreeModel
    classes: tuple[Classes, ...]
    report: FitReport
    n_documents: int

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.classes) + 1

    @property
    def table(self) -> dict[str, Cells]:
        """Topics as the columns of a table."""
        shown = ("level", "parent", "size", "words", "probabilities", "coherence", "support")
        columns: dict[str, Cells] = {"topic": [topic.name for topic in self.topics]}
        for name in shown:
            cells = [getattr(topic, name) for topic in self.topics]
            columns[name] = [list(cell) if isinstance(cell, tuple) else cell for cell in cells]
        return columns

    def probabilities(self, occurs: sparse.csr_array) -> Iterator[FloatArray]:
        """Yield the probabilities of all topics, block by block of documents."""
        narrow = [topic.column for topic in self.topics if topic.level == self.n_levels]
        for part, posterior in posteriors(self.model, occurs, np.array(narrow)):
            levels = [each.posterior(part)[0] for each in self.classes]
            yield self._in_order([*levels, posterior])

    def _in_order(self, levels: Sequence[FloatArray]) -> FloatArray:
        """Put the probabilities of all levels into the order of the topics."""
        out = np.empty((len(levels[0]), len(self.topics)))
        seen = 0
        for place, topic in enumerate(self.topics):
            if topic.level == self.n_levels:
                out[:, place] = levels[-1][:, seen]
                seen += 1
            else:
                out[:, place] = levels[topic.level - 1][:, topic.column]
        return out

    @property
    def word_weights(self) -> sparse.csc_array:
        """Information of the words of each topic, as words × topics."""
        return weights_of(self.topics, self.words)

    def log_likelihood(self, occurs: sparse.csr_array) -> FloatArray:
        """Log-likelihood of each document under the tree."""
        return self.model.log_likelihood(as_table(occurs, schema=self.model.schema))

    def renumbered(self, documents: IntArray, n_documents: int) -> Learned:
        """Return the same with the places of the documents learned from among so many."""
        topics = [
            topic._replace(documents=tuple(documents[list(topic.documents)].tolist()))
            for topic in self.topics
        ]
        return replace(self, topics=tuple(topics), n_documents=n_documents)


def posteriors(
    model: DiscreteTreeModel, occurs: sparse.csr_array, columns: IntArray, block: int = BLOCK
) -> Iterator[tuple[sparse.csr_array, FloatArray]]:
    """Yield blocks of documents with the probabilities of some states of hidden variables.

    The states of all hidden variables are numbered one after the other; ``columns`` says which. A
    block holds at most so many probabilities.
    """
    first = int(model.layout.state_starts[model.tree.n_observed])
    node = np.searchsorted(model.layout.state_starts, first + columns, "right") - 1
    nodes, place = np.unique(node, return_inverse=True)
    state = first + columns - model.layout.state_starts[node]
    step = max(block // max(int(model.n_states[nodes].sum()), 1), 1)
    for start in range(0, occurs.shape[0], step):
        part = occurs[start : start + step]
        found = model.posterior(as_table(part, schema=model.schema), nodes)
        yield part, found.probabilities[:, found.starts[place] + state]


# Learning ---------------------------------------------------------------------------------------


def learn_topics(occurs: sparse.csr_array, words: tuple[str, ...], settings: Settings) -> Learned:
    """Learn topics from which words occur in which documents; every document has some."""
    model, report = _word_tree(occurs, words, settings)
    some, able = _measured(occurs, settings.n_measured), _able(model)
    together = Cooccurrence(as_table(some, schema=model.schema))
    association = associate(posteriors(model, some, able), len(words))
    most = settings.sizes[-1] if settings.sizes else MOST_TOPICS
    per_topic = _words_per_topic(len(words), settings)
    floor = FLOOR if settings.sizes is None else None
    chosen = choose_topics(association, together, most, per_topic, floor)
    if not chosen:
        raise DataError(
            "no words occur together more often than by chance, so that there are no topics: give "
            "more documents, or longer ones"
        )
    picked = able[[topic.column for topic in chosen]]
    narrow = np.concatenate([found for _, found in posteriors(model, occurs, picked)])
    own = association.of([topic.column for topic in chosen])
    nats = own.information()
    weight = np.array([nats[i, topic.words].sum() for i, topic in enumerate(chosen)])
    sizes = level_sizes(len(chosen), settings)
    classes = [fit_classes(occurs, narrow, weight, k) for k in sizes[:-1]]
    shares = [each.posterior(occurs)[0] for each in classes]
    drafts = []
    for level, share in enumerate(shares, 1):
        found = associate([(occurs, share)], len(words))
        their = broad_words(found, together, settings.n_top_words)
        drafts.append(_drafts(level, found, their, range(len(their)), together, words))
    their = [topic.words for topic in chosen]
    drafts.append(_drafts(len(sizes), own, their, picked.tolist(), together, words))
    topics = _outline(drafts, [*shares, narrow], occurs, words)
    return Learned(words, topics, model, tuple(classes), report, occurs.shape[0])


def _word_tree(
    occurs: sparse.csr_array, words: tuple[str, ...], settings: Settings
) -> tuple[DiscreteTreeModel, FitReport]:
    """Learn the latent tree of the words; hidden variables have two states: on topic, and off."""
    with warnings.catch_warnings():  # words that always occur together are no fault of a table
        warnings.simplefilter("ignore", DataWarning)
        sample = as_sample(as_table(occurs, "discrete", names=words), min_rows=1)
        if method_named(settings.method).from_distances:
            fitted = _from_distances(sample, settings)
        else:
            fitted = _by_search(sample, settings)
    model = fitted.model
    if not isinstance(model, DiscreteTreeModel) or not model.tree.n_hidden:
        raise DataError(
            f"{settings.method} finds no hidden variable behind the {len(words):,} words of "
            f"{occurs.shape[0]:,} documents, so that there are no topics: give more documents"
        )
    return model, fitted.report


def _from_distances(sample: Sample, settings: Settings) -> Fitted:
    """Fit by EM from one start, without any randomness."""
    limit = math.inf if settings.time_limit is None else settings.time_limit
    return fit_parameters(
        learn_tree(sample, settings.method), sample, n_states=2, n_starts=1, prior_weight=PRIOR,
        budget=Budget(max_steps=settings.max_steps, time_limit=limit),
        random_state=settings.seed,
    )  # fmt: skip


def _by_search(sample: Sample, settings: Settings) -> Fitted:
    taken = method_named(settings.method).options
    wanted: OptionValues = {
        "n_states": 2, "n_starts": 1, "prior_weight": PRIOR, "max_steps": settings.max_steps,
        "time_limit": settings.time_limit,
    }  # fmt: skip
    options = {name: value for name, value in wanted.items() if name in taken}
    return learn_model(sample, settings.method, random_state=settings.seed, **options)


def _words_per_topic(n_words: int, settings: Settings) -> int:
    """Return how many words a topic has at most; fewer where all would not have so many."""
    shares = 2 if settings.sizes is None else settings.sizes[-1]
    return min(max(n_words // shares, 2), settings.n_top_words)


def level_sizes(n_narrow: int, settings: Settings) -> tuple[int, ...]:
    """Return the number of topics on every level, the broadest first."""
    if settings.sizes is not None and len(settings.sizes) > 1:
        return (*(min(size, n_narrow) for size in settings.sizes[:-1]), n_narrow)
    n_levels = settings.n_levels
    if n_levels is None:
        n_levels = 1 + sum(n_narrow > limit for limit in LEVELS)
    # Numbers that grow by the same factor from level to level.
    sizes = [round(n_narrow ** (level / n_levels)) for level in range(1, n_levels)]
    return (*(min(max(size, 2), n_narrow) for size in sizes), n_narrow)


def _able(model: DiscreteTreeModel) -> IntArray:
    """Return the states that may be topics, by their probabilities in the model.

    Twice as many are let through as their sizes in the documents will: those decide.
    """
    layout = model.layout
    first = int(layout.state_starts[model.tree.n_observed])
    probability = layout.marginals(model.theta)[first:]
    return np.flatnonzero(
        (probability >= LEAST_SIZE / 2) & (1.0 - probability > (1.0 - MOST_SIZE) / 2)
    )


def _measured(occurs: sparse.csr_array, most: int) -> sparse.csr_array:
    """Return the documents by which words and coherence of topics are measured: at most so many."""
    n = occurs.shape[0]
    if n <= most:
        return occurs
    return occurs[np.sort(np.random.default_rng(0).choice(n, most, replace=False))]


def _drafts(
    level: int,
    association: Association,
    chosen: Sequence[IntArray],
    columns_of: Sequence[int],
    together: Cooccurrence,
    words: tuple[str, ...],
) -> list[Topic]:
    """Return the topics of a level, without names, parents, sizes and documents."""
    nats, given = association.information(), association.given
    drafts = []
    fit = map(mean_coherence, together.npmi(chosen, cautious=False))
    for number, (own, column, coherence) in enumerate(zip(chosen, columns_of, fit, strict=True)):
        own = own[np.argsort(-nats[number, own], kind="stable")]
        texts = tuple(words[word] for word in own.tolist())
        probabilities, information = given[number, own].tolist(), nats[number, own].tolist()
        drafts.append(
            Topic(
                "",
                level,
                "",
                0.0,
                texts,
                tuple(probabilities),
                tuple(information),
                coherence,
                int(column),
            )
        )
    return drafts


# The outline ------------------------------------------------------------------------------------


def _outline(
    drafts: Sequence[Sequence[Topic]],
    probabilities: Sequence[FloatArray],
    occurs: sparse.csr_array,
    words: tuple[str, ...],
) -> tuple[Topic, ...]:
    """Name topics by their place, with parents and typical documents, in the order of reading.

    The parent of a topic is the one of the level above that its documents are on.
    """
    parents = [
        np.asarray(above.T @ below).argmax(axis=0) for above, below in pairwise(probabilities)
    ]
    informed = [sparse.csc_array(occurs @ weights_of(level, words)) for level in drafts]
    out: list[Topic] = []

    def add(level: int, numbers: IntArray, parent: str) -> None:
        sizes = probabilities[level][:, numbers].mean(axis=0)
        ranked = numbers[np.argsort(-sizes, kind="stable")].tolist()
        if 0 < level < len(parents):  # a leftover of the documents has no narrower topics
            ranked = [number for number in ranked if (parents[level] == number).any()]
        for rank, number in enumerate(ranked, 1):
            draft = drafts[level][number]
            name = f"{parent}.{rank}" if parent else str(rank)
            probability = probabilities[level][:, number]
            typical = _typical(informed[level][:, [number]], probability)
            size = float(probability.mean())
            out.append(
                draft._replace(
                    name=name,
                    parent=parent,
                    size=size,
                    documents=typical.documents,
                    document_probabilities=typical.probabilities,
                )
            )
            if level < len(parents):
                add(level + 1, np.flatnonzero(parents[level] == number), name)

    add(0, np.arange(len(drafts[0])), "")
    return tuple(out)


def weights_of(topics: Sequence[Topic], words: tuple[str, ...]) -> sparse.csc_array:
    """Return the information of the words of each topic, as words × topics."""
    place = {word: row for row, word in enumerate(words)}
    rows = [place[word] for topic in topics for word in topic.words]
    columns = [column for column, topic in enumerate(topics) for _ in topic.words]
    nats = [each for topic in topics for each in topic.information]
    return sparse.csc_array((nats, (rows, columns)), shape=(len(words), len(topics)))


def _typical(informed: sparse.csc_array, probability: FloatArray) -> Typical:
    """Return the documents with the largest probability × information of the words in them."""
    documents = informed.indices
    value = informed.data * probability[documents]
    order = np.lexsort([documents, -value])[:N_TYPICAL]
    best = documents[order[value[order] > 0]]
    return Typical(tuple(best.tolist()), tuple(probability[best].tolist()))


# Support ----------------------------------------------------------------------------------------


def topic_support(
    learned: Learned, occurs: sparse.csr_array, settings: Settings, n_replicates: int
) -> Learned:
    """Learn the topics again from resampled documents; say how many words are together again."""
    rng = np.random.default_rng(settings.seed)
    sizes = tuple(
        sum(topic.level == level for topic in learned.topics)
        for level in range(1, learned.n_levels + 1)
    )
    total = np.zeros(len(learned.topics))
    for _ in range(n_replicates):
        rows = np.sort(rng.integers(occurs.shape[0], size=occurs.shape[0]))
        drawn = occurs[rows]
        df = np.bincount(drawn.indices, minlength=drawn.shape[1])
        there = np.flatnonzero((df > 0) & (df < len(rows)))
        names = tuple(learned.words[word] for word in there.tolist())
        again = learn_topics(drawn[:, there], names, settings._replace(sizes=sizes))
        total += [_found_again(topic, again) for topic in learned.topics]
    support = (total / n_replicates).tolist()
    topics = [
        topic._replace(support=share) for topic, share in zip(learned.topics, support, strict=True)
    ]
    return replace(learned, topics=tuple(topics))


def _found_again(topic: Topic, again: Learned) -> float:
    """Return the largest share of a topic's words in one topic of the same level."""
    own = set(topic.words)
    others = [other.words for other in again.topics if other.level == topic.level]
    return max((len(own & set(words)) / len(own) for words in others), default=0.0)

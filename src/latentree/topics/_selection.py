"""The choice of topics: states of hidden variables, each with the words that it informs about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from latentree.data import Table
from latentree.distances import BitLines, Functions
from latentree.typing import BoolArray, FloatArray, IntArray

POOL = 2
"""The words of a topic are the most coherent of twice as many that it informs most about. Chosen
on half of the BBC documents: pools of 10, 20 and 30 for 10 words gave about the same coherence of
10 and 30 topics, 20 the best of 50."""

DEPTH = 4
"""How many times the words of a topic are kept for it: others may take the first ones."""

MOST_TAKEN = 0.5
"""A topic that shares more of its first words with those chosen before is one of them again."""

LEAST_SIZE = 0.005
"""Share of the documents that a topic has at least. On half of the BBC documents 0.005, 0.01 and
0.015 did alike."""

MOST_SIZE = 0.5
"""Share that it has at most: what most documents are on says what others are not about. On half of
the BBC documents no topic had more, with 0.9 either."""

BY_INFORMATION = 0.5
"""Topics are ranked by coherence × information ** 0.5: by coherence alone the first ones are about
single events, by information alone they include mixtures of common words."""


CAUTION = 1.5
"""Standard errors that are taken off the count of a pair. Of 1, 1.5, 2 and 3 on half of the BBC
documents this gave the most coherent 10, 30 and 50 topics."""


FEWEST_WORDS = 3
"""Words of a topic that stay even if they fit badly: two always fit each other."""


class ChosenTopic(NamedTuple):
    """A topic: its column among the candidates, its words, and their mean coherence."""

    column: int
    words: IntArray
    coherence: float


@dataclass(frozen=True)
class Association:
    """How documents on a topic differ from others, word by word; an array of topics × words.

    Parameters
    ----------
    both : array
        Share of the documents that are on the topic and have the word.
    size : array, one a topic
        Share of the documents that are on the topic.
    df : array, one a word
        Share of the documents that have the word.
    """

    both: FloatArray
    size: FloatArray
    df: FloatArray

    def of(self, topics: Sequence[int]) -> Association:
        """Return the same of some topics."""
        some = list(topics)
        return Association(self.both[some], self.size[some], self.df)

    @property
    def given(self) -> FloatArray:
        """Probability of each word in documents on the topic."""
        return self.both / np.maximum(self.size, 1e-300)[:, None]

    def information(self) -> FloatArray:
        """Mutual information in nats, with the sign of the dependence: > 0 if words are usual."""
        p, q = self.size[:, None], self.df[None, :]
        cells = (self.both, p - self.both, q - self.both, 1 - p - q + self.both)
        nats = sum(_xlogx(np.clip(cell, 0.0, 1.0)) for cell in cells)
        nats = nats - _xlogx(p) - _xlogx(1 - p) - _xlogx(q) - _xlogx(1 - q)
        signed: FloatArray = np.where(self.both > p * q, 1.0, -1.0) * np.maximum(nats, 0.0)
        return signed


def _xlogx(x: FloatArray) -> FloatArray:
    found: FloatArray = x * np.log(np.where(x > 0, x, 1.0))
    return found


def associate(blocks: Iterable[tuple[sparse.csr_array, FloatArray]], n_words: int) -> Association:
    """Sum probabilities of topics over blocks of documents: their words, and the probabilities."""
    both, size, df, n = None, None, np.zeros(n_words), 0
    for occurs, probability in blocks:
        found = np.asarray((occurs.T.astype(np.float64) @ probability).T)
        both = found if both is None else np.add(both, found, out=both)
        total = probability.sum(axis=0)
        size = total if size is None else size + total
        df += np.bincount(occurs.indices, minlength=n_words)
        n += occurs.shape[0]
    assert both is not None
    assert size is not None
    both /= n
    return Association(both, size / n, df / n)


def coherences(together: FloatArray, alone: FloatArray, n: int, cautious: bool) -> FloatArray:
    """Return NPMI of pairs of words over documents, 0 on the diagonal.

    Parameters
    ----------
    together : array of words × words
        Number of documents with both.
    alone : array, one a word
        Number of documents with the word.
    n : int
        Number of documents.
    cautious : bool
        Take ``CAUTION`` standard errors (roots of a count) off each count first, so that pairs that
        met a few times by chance do not count.
    """
    counts = np.maximum(together - CAUTION * np.sqrt(together), 0.0) if cautious else together
    p = counts / n
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log(p * n * n / np.outer(alone, alone)) / -np.log(p)
    npmi = np.where(counts <= 0, -1.0, np.where(p >= 1, 1.0, npmi))
    np.fill_diagonal(npmi, 0.0)
    return npmi


class Cooccurrence:
    """In how many documents two words are together.

    Parameters
    ----------
    occurs : Table
        Documents × words, 0/1.
    """

    def __init__(self, occurs: Table) -> None:
        self._words, self.n_documents = BitLines(Functions.of(occurs), occurs), occurs.n_rows

    def npmi(self, groups: Sequence[IntArray], cautious: bool = True) -> Iterator[FloatArray]:
        """Yield the coherence of pairs of words, see :func:`coherences`, of one group each."""
        corners = [np.triu_indices(len(words)) for words in groups]
        pairs = [words[np.stack(corner)] for words, corner in zip(groups, corners, strict=True)]
        first, second = np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1)
        counts = self._words.multiply_pairs(first, second)
        start = 0
        for words, corner in zip(groups, corners, strict=True):
            together = np.empty((len(words), len(words)))
            together[corner] = together[corner[::-1]] = counts[start : start + corner[0].size]
            start += corner[0].size
            yield coherences(together, self._words.alone.first[words], self.n_documents, cautious)


class _TopicCandidate:
    """A state of a hidden variable with the words that it informs most about."""

    def __init__(self, words: IntArray, nats: FloatArray, npmi: FloatArray) -> None:
        self.words, self.nats, self.npmi = words, nats, npmi

    def best(self, taken: BoolArray, n_words: int, least: float) -> tuple[float, IntArray, float]:
        """Value, words and coherence with the words that nobody has taken; value −1 if too few."""
        nothing = -1.0, np.empty(0, np.int64), -1.0
        free = np.flatnonzero(~taken[self.words])[: POOL * n_words]
        if free.size < 2 or taken[self.words[:n_words]].mean() > MOST_TAKEN:
            return nothing
        kept = most_coherent(self.npmi[np.ix_(free, free)], n_words, least)
        free = free[kept]
        coherence = mean_coherence(self.npmi[np.ix_(free, free)])
        value = coherence * self.nats[free].sum() ** BY_INFORMATION
        return value, self.words[free], coherence


def most_coherent(npmi: FloatArray, n_words: int, least: float = -1.0) -> IntArray:
    """Leave out the word that fits the others least, again and again; return those that stay.

    Until there are ``n_words``, and further while its mean NPMI is below ``least``.
    """
    stays = np.ones(len(npmi), bool)
    while (count := int(stays.sum())) > FEWEST_WORDS or count > n_words:
        fit = npmi[:, stays].sum(axis=1)
        fit[~stays] = np.inf
        worst = int(np.argmin(fit))
        if count <= n_words and fit[worst] >= least * (count - 1):
            break
        stays[worst] = False
    return np.flatnonzero(stays)


def mean_coherence(npmi: FloatArray) -> float:
    """Mean over the pairs of a matrix whose diagonal is 0."""
    k = len(npmi)
    return float(npmi.sum() / (k * (k - 1))) if k > 1 else 0.0


def choose_topics(
    association: Association,
    together: Cooccurrence,
    n_topics: int,
    n_words: int,
    floor: float | None = None,
) -> list[ChosenTopic]:
    """Choose topics one by one, the most coherent and informative first, each with its own words.

    Parameters
    ----------
    association : Association
        Of the states of hidden variables.
    together : Cooccurrence
        Of the words.
    n_topics : int
        Most topics.
    n_words : int
        Most words of a topic.
    floor : float, optional
        Least coherence of a topic; words that do not occur with the others more often than by
        chance are left out then. Without it every topic has as many words as there are.
    """
    waiting = _candidates(association, together, n_words)
    taken = np.zeros(association.df.size, bool)
    least, floor = (-1.0, 0.0) if floor is None else (0.0, floor)
    values = {column: each.best(taken, n_words, least) for column, each in waiting.items()}
    chosen: list[ChosenTopic] = []
    while values and len(chosen) < n_topics:
        column = max(values, key=lambda c: values[c][0])
        value, words, coherence = waiting[column].best(taken, n_words, least)
        if value <= 0 or coherence < floor:
            del values[column]
        elif np.array_equal(words, values[column][1]):
            chosen.append(ChosenTopic(column, words, coherence))
            taken[words] = True
            del values[column]
        else:  # others have taken words since it was looked at
            values[column] = value, words, coherence
    return chosen


def _candidates(
    association: Association, together: Cooccurrence, n_words: int
) -> dict[int, _TopicCandidate]:
    able = (association.size >= LEAST_SIZE) & (association.size < MOST_SIZE)
    columns, groups, information = np.flatnonzero(able).tolist(), [], []
    for column in columns:
        nats = association.of([column]).information()[0]  # of all at once takes gigabytes
        groups.append(_largest(nats, DEPTH * n_words))
        information.append(nats[groups[-1]])
    found = map(_TopicCandidate, groups, information, together.npmi(groups))
    return dict(zip(columns, found, strict=True))


def _largest(nats: FloatArray, n: int) -> IntArray:
    """Return the places of the largest positive numbers, at most n, the largest first."""
    least = np.partition(nats, -n)[-n] if n < nats.size else -np.inf
    places = np.flatnonzero((nats >= least) & (nats > 0))
    return places[np.argsort(-nats[places], kind="stable")[:n]]


def broad_words(association: Association, together: Cooccurrence, n_words: int) -> list[IntArray]:
    """Return the words of topics that divide the documents: each word goes to one of them."""
    nats = association.information()
    owner = nats.argmax(axis=0)
    groups = [
        _largest(np.where(owner == topic, own, 0.0), POOL * n_words)
        for topic, own in enumerate(nats)
    ]
    return [
        words[most_coherent(npmi, n_words)]
        for words, npmi in zip(groups, together.npmi(groups), strict=True)
    ]

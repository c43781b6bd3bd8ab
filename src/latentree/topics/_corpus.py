"""Documents as numbers of tokens: counted, joined to phrases and selected by array operations."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latentree import _memory as memory
from latentree.errors import DataError
from latentree.topics._documents import Document
from latentree.typing import BoolArray, IntArray

Analyzer = Callable[[str], Iterable[str]]

STOP = -1
"""The number of a stop word: it is never counted, and phrases do not reach across it."""

JOINED_BY = " "
"""Between the words of a phrase."""

MEMORY_CHECKED = 2**24
"""Tokens up to which documents fit into any memory; beyond, it is checked whenever they double."""

BYTES_PER_TOKEN = 40
"""Numbers, keys of pairs of neighbors, and copies of both while phrases are joined."""

LEAST_NPMI = 0.5
"""Neighbors with at least this normalized pointwise mutual information are a phrase: they are more
than halfway from independence (0) to never being apart (1)."""

LEAST_PAIRS = 10
"""Occurrences that a phrase needs: NPMI of rarer pairs is mostly chance."""


@dataclass(frozen=True)
class Corpus:
    """Documents as the numbers of their tokens, end to end.

    Takes four bytes a token, whatever the length of the words.

    Parameters
    ----------
    tokens : array of int
        Places in the vocabulary, document after document; −1 for stop words.
    starts : array of int, one more than documents
        Where each document begins in ``tokens``.
    vocabulary : tuple of str
    """

    tokens: NDArray[np.int32]
    starts: IntArray
    vocabulary: tuple[str, ...]

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def counts(self) -> sparse.csr_array:
        """How often each word of the vocabulary occurs in each document."""
        kept = self.tokens != STOP
        ends = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        words = self.tokens[kept].astype(np.int32)
        shape = (self.n_documents, len(self.vocabulary))
        found = sparse.csr_array((np.ones(words.size, np.int32), words, ends), shape=shape)
        found.sum_duplicates()
        return found

    def find_phrases(self) -> list[tuple[str, str]]:
        """Return the pairs of words that stand side by side much more often than by chance."""
        keys, inside = self._neighbors()
        found, counts = np.unique(keys[inside], return_counts=True)
        n, size = max(self.tokens.size, 1), len(self.vocabulary)
        single = np.bincount(self.tokens[self.tokens != STOP], minlength=size)
        left, right = np.divmod(found, max(size, 1))
        # NPMI = log(p_ab / (p_a p_b)) / −log p_ab
        npmi = np.log(counts * n / (single[left] * single[right])) / -np.log(counts / (n + 1))
        belong = np.flatnonzero((counts >= LEAST_PAIRS) & (npmi >= LEAST_NPMI))
        return [(self.vocabulary[left[i]], self.vocabulary[right[i]]) for i in belong.tolist()]

    def joined(self, phrases: Sequence[tuple[str, str]]) -> Corpus:
        """Return the documents with each of these pairs of neighbors as one token."""
        number = {word: place for place, word in enumerate(self.vocabulary)}
        known = [pair for pair in phrases if pair[0] in number and pair[1] in number]
        pairs = np.array([[number[a], number[b]] for a, b in known], np.int64).reshape(-1, 2)
        wanted = pairs[:, 0] * len(number) + pairs[:, 1]
        keys, inside = self._neighbors()
        order = np.argsort(wanted)
        place = np.searchsorted(wanted[order], keys).clip(max=max(wanted.size - 1, 0))
        hit = inside & (wanted[order][place] == keys) if wanted.size else np.zeros_like(inside)
        where = np.flatnonzero(_every_other(hit))
        tokens, kept = self.tokens.copy(), np.ones(self.tokens.size, bool)
        tokens[where] = len(number) + order[place[where]] if wanted.size else 0
        kept[where + 1] = False
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        names = [JOINED_BY.join(pair) for pair in known]
        return Corpus(tokens[kept], starts, (*self.vocabulary, *names))

    def _neighbors(self) -> tuple[IntArray, BoolArray]:
        """Return a key of each pair of neighbors, and whether it is inside of a document."""
        left, right = self.tokens[:-1], self.tokens[1:]
        inside = (left != STOP) & (right != STOP)
        ends = self.starts[1:-1]
        inside[ends[(ends > 0) & (ends < self.tokens.size)] - 1] = False
        return left.astype(np.int64) * len(self.vocabulary) + right, inside


def _every_other(hit: BoolArray) -> BoolArray:
    """Of hits in a row, keep the first, the third, …: a token is in one pair only."""
    position = np.arange(hit.size)
    last_miss = np.maximum.accumulate(np.where(hit, -1, position))
    kept: BoolArray = hit & ((position - last_miss) % 2 == 1)
    return kept


def read_corpus(
    documents: Iterable[object], analyzer: Analyzer, stop_words: Iterable[str]
) -> Corpus:
    """Read documents one by one; nothing but the numbers of their tokens is kept."""
    numbers = dict.fromkeys(stop_words, STOP)
    vocabulary: list[str] = []
    tokens, starts = array("i"), array("q", [0])
    checked = MEMORY_CHECKED
    for text in _checked(documents):
        for token in analyzer(text):
            number = numbers.get(token)
            if number is None:
                number = numbers[token] = len(vocabulary)
                vocabulary.append(token)
            tokens.append(number)
        starts.append(len(tokens))
        if len(tokens) > checked:  # a small compressed file can hold more than memory can
            checked = 2 * len(tokens)
            need = BYTES_PER_TOKEN * checked
            memory.require(need, f"{len(starts) - 1:,} documents and more", "give fewer of them")
    numbered = np.frombuffer(tokens, np.int32) if tokens else np.empty(0, np.int32)
    return Corpus(numbered, np.frombuffer(starts, np.int64), tuple(vocabulary))


def _checked(documents: Iterable[object]) -> Iterator[str]:
    for place, each in enumerate(documents):
        text = each.text if isinstance(each, Document) else each
        if not isinstance(text, str):
            if not _is_missing(text):
                raise DataError(
                    f"document {place} must be a text, but is of type {type(text).__name__}: "
                    f"{text!r:.60}"
                )
            text = ""
        yield text


def _is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or what pandas and pyarrow have in their place."""
    return value is None or value != value or str(value) in ("<NA>", "NaT")


def choose_words(counts: sparse.csr_array, n_words: int, min_df: float, max_df: float) -> IntArray:
    """Return the columns of the words with the highest mean tf-idf, in ascending order.

    Among words in at least ``min_df`` and at most ``max_df`` documents, as a number or a share.
    """
    n = counts.shape[0]
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    least, most = _documents(min_df, n), _documents(max_df, n)
    able = np.flatnonzero((df >= max(least, 1)) & (df <= most) & (df < n))
    # ln((1 + n) / (1 + df)) + 1, as scikit-learn's TfidfTransformer
    weight = np.asarray(counts.sum(axis=0)).ravel() * (np.log((1 + n) / (1 + df)) + 1)
    best = able[np.argsort(-weight[able], kind="stable")[:n_words]]
    return np.sort(best)


def _documents(limit: float, n: int) -> float:
    return limit * n if isinstance(limit, float) else limit


def occurrence(counts: sparse.csr_array) -> sparse.csr_array:
    """Return 0/1: whether each word occurs in each document."""
    found = counts.tocsr().copy()
    found.eliminate_zeros()
    found.data = np.ones(found.nnz, np.int8)
    return sparse.csr_array(found)

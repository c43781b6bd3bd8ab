"""Words, phrases and their selection, against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from latentree.errors import DataError
from latentree.topics._corpus import (
    LEAST_NPMI,
    LEAST_PAIRS,
    choose_words,
    occurrence,
    read_corpus,
)

WORD = st.sampled_from(["a", "b", "c", "d", "the"])
DOCUMENTS = st.lists(st.lists(WORD, max_size=12).map(" ".join), min_size=1, max_size=12)


def joined_by_hand(tokens, pairs, stop):
    """Join from left to right; a pair of a run of pairs is every other one."""
    out, i = [], 0
    while i < len(tokens):
        if (
            i + 1 < len(tokens)
            and (tokens[i], tokens[i + 1]) in pairs
            and stop not in tokens[i : i + 2]
        ):
            out.append(f"{tokens[i]} {tokens[i + 1]}")
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return [token for token in out if token != stop]


@given(DOCUMENTS)
def test_counts_are_those_of_the_tokens(documents):
    corpus = read_corpus(documents, str.split, ["the"])
    counts = corpus.counts().toarray()
    for row, text in zip(counts, documents, strict=True):
        expected = Counter(token for token in text.split() if token != "the")
        assert {w: c for w, c in zip(corpus.vocabulary, row.tolist(), strict=True) if c} == expected


@given(DOCUMENTS, st.sets(st.tuples(WORD, WORD).filter(lambda p: "the" not in p), max_size=4))
def test_joining_is_that_of_a_walk_from_left_to_right(documents, pairs):
    corpus = read_corpus(documents, str.split, ["the"]).joined(sorted(pairs))
    counts = corpus.counts().toarray()
    for row, text in zip(counts, documents, strict=True):
        expected = Counter(joined_by_hand(text.split(), pairs, "the"))
        assert {w: c for w, c in zip(corpus.vocabulary, row.tolist(), strict=True) if c} == expected


def test_phrases_are_pairs_with_a_high_npmi():
    rng = np.random.default_rng(0)
    documents = [
        " ".join(rng.choice(["new york", "sea", "hill", "sun", "new"], 6)) for _ in range(60)
    ]
    corpus = read_corpus(documents, str.split, [])
    single = Counter(token for text in documents for token in text.split())
    pair = Counter(
        p for text in documents for p in zip(text.split(), text.split()[1:], strict=False)
    )
    n = sum(single.values())
    expected = {
        (a, b)
        for (a, b), c in pair.items()
        if c >= LEAST_PAIRS
        and np.log(c * n / (single[a] * single[b])) / -np.log(c / (n + 1)) >= LEAST_NPMI
    }
    assert set(corpus.find_phrases()) == expected == {("new", "york")}


def test_phrases_do_not_reach_across_stop_words_and_documents():
    corpus = read_corpus(["house of lords", "house", "lords"] * 30, str.split, ["of"])
    assert corpus.find_phrases() == []


def test_words_are_chosen_by_mean_tf_idf():
    rng = np.random.default_rng(1)
    documents = [" ".join(rng.choice(list("abcdefghij"), rng.integers(1, 9))) for _ in range(80)]
    vectorizer = CountVectorizer(token_pattern=r"\S+")
    counts = vectorizer.fit_transform(documents)
    mean = TfidfTransformer(norm=None).fit_transform(counts).mean(axis=0)
    expected = np.sort(np.argsort(-np.asarray(mean).ravel())[:4])
    from scipy.sparse import csr_array

    assert choose_words(csr_array(counts), 4, 1, 1.0).tolist() == expected.tolist()


@settings(max_examples=20)
@given(st.integers(1, 6), st.floats(0.1, 1.0))
def test_words_are_within_the_limits_of_document_frequency(least, most):
    counts = read_corpus(["a b", "a c", "a b d", "b", "e e e"], str.split, []).counts()
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    for word in choose_words(counts, 9, least, most):
        assert least <= df[word] <= most * 5


def test_occurrence_is_0_or_1():
    counts = read_corpus(["a a b", "", "b"], str.split, []).counts()
    assert occurrence(counts).toarray().tolist() == [[1, 1], [0, 0], [0, 1]]


def test_documents_that_are_no_texts_are_named():
    with pytest.raises(DataError, match="document 1 must be a text, but is of type int"):
        read_corpus(["a", 7], str.split, [])


def test_missing_documents_are_empty():
    assert read_corpus(["a", None, float("nan")], str.split, []).counts().toarray().sum() == 1

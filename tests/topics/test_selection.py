"""Information, coherence and the choice of topics, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from latentree.data import as_table
from latentree.topics import _broad as broad
from latentree.topics._selection import (
    CAUTION,
    Cooccurrence,
    associate,
    choose_topics,
    coherences,
    mean_coherence,
    most_coherent,
)


def draw(seed, n=60, topics=3, words=5):
    rng = np.random.default_rng(seed)
    return rng.random((n, topics)), csr_array((rng.random((n, words)) < 0.4).astype(np.int8))


@given(st.integers(0, 10_000))
def test_information_is_that_of_the_joint_table(seed):
    probability, occurs = draw(seed)
    association = associate([(occurs, probability)], 5)
    nats, dense = association.information(), occurs.toarray()
    for t in range(3):
        for w in range(5):
            p, x = probability[:, t], dense[:, w]
            joint = np.array([[np.mean(a * b) for b in (1 - x, x)] for a in (1 - p, p)])
            apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            with np.errstate(divide="ignore", invalid="ignore"):
                expected = np.nansum(joint * np.log(joint / apart))
            sign = 1 if joint[1, 1] > apart[1, 1] else -1
            assert nats[t, w] == pytest.approx(sign * expected, abs=1e-12)


def test_blocks_of_documents_add_up():
    probability, occurs = draw(1)
    whole = associate([(occurs, probability)], 5)
    parts = associate([(occurs[i : i + 7], probability[i : i + 7]) for i in range(0, 60, 7)], 5)
    np.testing.assert_allclose(parts.information(), whole.information(), atol=1e-12)


@given(st.integers(0, 10_000), st.booleans())
def test_coherence_is_npmi(seed, cautious):
    _, occurs = draw(seed)
    x = occurs.toarray().astype(float)
    together = x.T @ x
    found = coherences(together, np.diag(together), 60, cautious)
    counted = Cooccurrence(as_table(occurs, "discrete")).npmi(
        [np.array([1]), np.array([3, 0, 4])], cautious
    )
    for words, npmi in zip([[1], [3, 0, 4]], counted, strict=True):
        np.testing.assert_array_equal(npmi, found[np.ix_(words, words)])
    for i in range(5):
        for j in range(5):
            c = together[i, j] - CAUTION * np.sqrt(together[i, j]) * cautious
            if i == j:
                assert found[i, j] == 0
            elif c <= 0:
                assert found[i, j] == -1
            else:
                pi, pj = together[i, i] / 60, together[j, j] / 60
                expected = np.log(c / 60 / pi / pj) / -np.log(c / 60)
                assert found[i, j] == pytest.approx(expected, abs=1e-12)


def test_the_word_that_fits_least_is_left_out():
    npmi = np.array([[0, 0.9, 0.8, -0.5], [0.9, 0, 0.7, 0], [0.8, 0.7, 0, 0], [-0.5, 0, 0, 0]])
    assert most_coherent(npmi, 3).tolist() == [0, 1, 2]
    assert most_coherent(npmi, 4, -0.2).tolist() == [0, 1, 2, 3]
    assert most_coherent(npmi, 4, 0.0).tolist() == [0, 1, 2]
    assert mean_coherence(npmi[:2, :2]) == pytest.approx(0.9)


def planted(seed=0, n=600):
    """Three topics of six words each, and six words of none."""
    rng = np.random.default_rng(seed)
    on = rng.random((n, 3)) < 0.2
    p = np.full((n, 24), 0.05)
    for t in range(3):
        p[:, 6 * t : 6 * t + 6] += 0.6 * on[:, [t]]
    return on.astype(float), (rng.random((n, 24)) < p).astype(np.int8)


def together(x):
    return Cooccurrence(as_table(csr_array(x), "discrete"))


def test_planted_topics_are_chosen_once_each_with_their_words():
    on, x = planted()
    copies = np.hstack([on, on + 0.01 * (1 - on), np.full((600, 1), 0.3)])
    association = associate([(csr_array(x), copies)], 24)
    chosen = choose_topics(association, together(x), 10, 10, 0.1)  # others do not fit
    assert sorted(sorted(topic.words.tolist()) for topic in chosen) == [
        list(range(6)), list(range(6, 12)), list(range(12, 18)),
    ]  # fmt: skip


def test_topics_of_a_level_share_no_word():
    on, x = planted()
    mixed = np.clip(np.hstack([on, on[:, [0]] + 0.5 * on[:, [1]], on[:, [2]] * 0.5]), 0, 1)
    association = associate([(csr_array(x), mixed)], 24)
    chosen = choose_topics(association, together(x), 10, 4)
    words = np.concatenate([topic.words for topic in chosen])
    assert len(chosen) >= 3
    assert len(set(words.tolist())) == words.size


# Broad topics -----------------------------------------------------------------------------------


def test_posterior_of_classes_is_bayes_rule():
    rng = np.random.default_rng(0)
    frequencies = rng.dirichlet(np.ones(5), 3)
    classes = broad.Classes(np.array([0.2, 0.3, 0.5]), frequencies)
    _, occurs = draw(2)
    found, total = classes.posterior(occurs)
    joint = classes.weights * np.prod(frequencies[None] ** occurs.toarray()[:, None], axis=2)
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True))
    assert total == pytest.approx(np.log(joint.sum(axis=1)).sum())


def test_classes_find_planted_groups_of_documents():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=300)
    p = np.full((300, 18), 0.05)
    for t in range(3):
        p[group == t, 6 * t : 6 * t + 6] = 0.5
    occurs = csr_array((rng.random((300, 18)) < p).astype(np.int8))
    narrow = np.eye(3)[group] * 0.5 + 0.1 * rng.random((300, 3))
    fitted = broad.fit_classes(occurs, narrow, np.ones(3), 3)
    best = fitted.posterior(occurs)[0].argmax(axis=1)
    pairs = {(a, b) for a, b in zip(group.tolist(), best.tolist(), strict=True)}
    agree = sum(max(np.sum((group == t) & (best == b)) for b in range(3)) for t in range(3))
    assert len({b for _, b in pairs}) == 3
    assert agree > 280


def test_many_documents_compete_in_a_sample():
    probability, occurs = draw(5, n=300)
    fitted = broad.fit_classes(occurs, probability, np.ones(3), 2, n_sampled=100)
    assert fitted.weights.sum() == pytest.approx(1.0)

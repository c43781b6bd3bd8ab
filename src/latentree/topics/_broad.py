"""Broad topics: classes of documents, found by EM from groups of narrow topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from latentree.typing import FloatArray

LINKAGES = ("average", "complete", "ward")
"""Hierarchical clusterings of the narrow topics from which EM starts."""

N_RANDOM = 30
"""Starts from narrow topics drawn at random, beside the linkages. Of 43 starts on half of the BBC
documents those with the highest likelihood agreed best with the sections, and one in ten came
close to them. The draws are always the same: no seed changes the topics."""

PRIOR = 1.0
"""Weight of the prior of a class, as a number of documents: overall frequencies."""

TOLERANCE = 1e-4
"""EM stops when the log-likelihood a document gains less."""

MAX_STEPS = 100
"""EM stops after so many steps in any case; ``TOLERANCE`` stops it much earlier."""

SAMPLE = 5_000
"""Most documents on which the starts compete. The 33 starts then take as long as one run on 165,000
documents."""


class Classes(NamedTuple):
    """A mixture of multinomials: classes of documents, each with frequencies of words.

    Parameters
    ----------
    weights : array, one a class
        Probabilities.
    frequencies : array of classes × words
        Each row sums to 1.
    """

    weights: FloatArray
    frequencies: FloatArray

    def posterior(self, occurs: sparse.csr_array) -> tuple[FloatArray, float]:
        """Return the probability of each class for each document, and the log-likelihood."""
        score = occurs @ np.log(self.frequencies).T + np.log(self.weights)
        top = score.max(axis=1, keepdims=True)
        share = np.exp(score - top)
        total = share.sum(axis=1, keepdims=True)
        return share / total, float((top + np.log(total)).sum())


def fit_classes(
    occurs: sparse.csr_array,
    narrow: FloatArray,
    weight: FloatArray,
    k: int,
    n_sampled: int = SAMPLE,
) -> Classes:
    """Fit a mixture by EM from several starts; return the one with the highest likelihood.

    Parameters
    ----------
    occurs : sparse array of documents × words
    narrow : array of documents × narrow topics
        Probabilities; the classes start from groups of them.
    weight : array, one a narrow topic
        How much each counts.
    k : int
        Number of classes.
    n_sampled : int
        Most documents on which the starts compete; the best start then runs on all.

    Returns
    -------
    Classes
    """
    words, rng = occurs.astype(np.float64), np.random.default_rng(0)
    n = words.shape[0]
    some = np.arange(n) if n <= n_sampled else np.sort(rng.choice(n, n_sampled, replace=False))
    fits = [_maximize(words[some], start) for start in _starts(narrow[some] * weight, k, rng)]
    best = max(fits, key=lambda fit: fit[1])[0]
    return best if n <= n_sampled else _maximize(words, best.posterior(words)[0])[0]


def _starts(narrow: FloatArray, k: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield the shares of the classes in each document, one array a start."""
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = 1.0 - np.atleast_2d(np.nan_to_num(np.corrcoef(narrow.T)))
    np.fill_diagonal(distance, 0.0)
    close = squareform(np.maximum(distance, 0.0), checks=False)
    for method in LINKAGES:
        groups = fcluster(linkage(close, method), k, "maxclust") - 1
        yield _shares(narrow @ np.eye(k)[groups])
    for _ in range(N_RANDOM):
        yield _shares(narrow[:, rng.choice(narrow.shape[1], k, replace=False)])


def _shares(score: FloatArray) -> FloatArray:
    """Scale the rows to sum to 1."""
    score = score + 1e-3  # a document without any of the topics starts in all classes
    shares: FloatArray = score / score.sum(axis=1, keepdims=True)
    return shares


def _maximize(words: sparse.csr_array, shares: FloatArray) -> tuple[Classes, float]:
    """Run EM from shares of classes; return the classes and their log-likelihood."""
    overall = np.asarray(words.sum(axis=0)).ravel() / words.shape[0]
    last = -np.inf
    for _ in range(MAX_STEPS):
        counts = np.asarray((words.T @ shares).T) + PRIOR * overall
        weights = (shares.sum(axis=0) + 1.0) / (shares.shape[0] + shares.shape[1])
        classes = Classes(weights, counts / counts.sum(axis=1, keepdims=True))
        shares, reached = classes.posterior(words)
        if reached - last < TOLERANCE * words.shape[0]:
            break
        last = reached
    return classes, reached

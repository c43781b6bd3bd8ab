"""How strongly parts of a discrete tree interact, before anything is fitted.

Evidence on one side of a cut gives probabilities v of the states of x, evidence on the other side
probabilities u of the states of y. An edge between x and y with the joint table
P(y)·P(x) + M raises the log-likelihood by Σ w·log(1 + ũᵀMṽ), with ũ = u/P(y), ṽ = v/P(x). To
second order the best M gains n/2·Σ r², where r are the canonical correlations of u and v; as for
Gaussian variables −n/2·log(1 − Σ r²) is used, which is larger where they are strong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree.typing import FloatArray

_NEGLIGIBLE = 1e-7  # variance of a probability that says nothing
_KEPT = 0.05  # of independence, in every entry of a table to start from


def normalised(top: FloatArray, value: FloatArray) -> FloatArray:
    """Probabilities of states given what a message has seen."""
    joint = top[:, None] * value
    return np.asarray(joint / joint.sum(axis=0))


def estimated_gains(
    sources: Sequence[FloatArray], places: Sequence[FloatArray], weights: FloatArray
) -> FloatArray:
    """Estimate what an edge gains, for every pair of a source and a place (states × rows each)."""
    total = float(weights.sum())
    first, first_starts = _stacked(sources, weights)
    second, second_starts = _stacked(places, weights)
    squares = (first @ second.T).astype(np.float64) ** 2
    by_source = np.add.reduceat(squares, first_starts, axis=0)
    shared = np.add.reduceat(by_source, second_starts, axis=1)
    return -0.5 * total * np.log1p(-np.minimum(shared, 0.999))


def _stacked(
    parts: Sequence[FloatArray], weights: FloatArray
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float32]], list[int]]:
    """Whitened probabilities of many nodes below each other, K − 1 lines a node."""
    lines, starts, at = [], [], 0
    root = np.sqrt(weights / weights.sum())
    for part in parts:
        mean = part @ weights / weights.sum()
        apart = (part - mean[:, None]) * root
        values, vectors = np.linalg.eigh(apart @ apart.T)
        kept = np.maximum(values[1:], _NEGLIGIBLE)  # the first is that of Σ = 1
        lines.append(((vectors[:, 1:] / np.sqrt(kept)).T @ apart).astype(np.float32))
        starts.append(at)
        at += len(kept)
    return np.concatenate(lines), starts


class Side:
    """Probabilities of the states of a node, given what is seen on one side of a cut."""

    def __init__(self, top: FloatArray, value: FloatArray, weights: FloatArray) -> None:
        beliefs = normalised(top, value)
        self.top = top
        self.apart = beliefs - (beliefs @ weights / weights.sum())[:, None]
        self.weighted = self.apart * (weights / weights.sum())
        # Beliefs are a pale copy of the states that they speak of; this undoes it.
        self.pull = top[:, None] * _inverse(self.weighted @ self.apart.T)


def _inverse(covariance: FloatArray) -> FloatArray:
    """Inverse of a covariance of probabilities, which sum to 1; small directions are left out."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > max(1e-4 * values[-1], _NEGLIGIBLE)
    return np.asarray(vectors[:, kept] / values[kept] @ vectors[:, kept].T)


def joint_start(place: Side, source: Side) -> FloatArray:
    """Return a table P(x | y) to start from.

    cov(u, v) = B_u·M·B_vᵀ with B_u = cov(u)·diag(1/P(y)); solved for M, and kept from zero.
    """
    apart = np.outer(place.top, source.top)
    joint = apart + place.pull @ (place.weighted @ source.apart.T) @ source.pull.T
    joint = np.maximum(joint, _KEPT * apart)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))

"""What every part of a tree says about the node at which it hangs, kept while the tree changes.

All messages go toward one link, the root: that of a node is its estimate from everything that is
not in the direction of the root (:mod:`latentree._kernels.gaussian` has the formulas).
Both are linear in the variables, so a message is its weights w on them, and with the correlations S
of the data its covariances S·w with them: any two messages have the covariance w′·S·w″. If the root
moves on to the next link, one message turns, in O(m).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentree._kernels.compiling import kernel
from latentree._kernels.gaussian import add, combine, multiply, variance_beyond
from latentree.typing import FloatArray, IntArray


class Messages(NamedTuple):
    """The message of every node. Those of leaves are what they show."""

    toward: IntArray
    """The neighbor in the direction of the root."""
    variance: FloatArray
    """Posterior variance of the node in the model."""
    n_variables: IntArray
    """Number of the variables that it comes from."""
    span: IntArray
    """The first of these variables, and the one after the last: weights elsewhere are 0."""
    weight: FloatArray
    """Weights on the variables, within the span; what is beyond is not read."""
    shown: FloatArray
    """Covariances with all variables in the data."""


def make_messages(correlation: FloatArray, n: int) -> Messages:
    """Make room for the messages of a tree with n nodes; those of leaves are filled in."""
    m = len(correlation)
    variables = np.arange(m)
    weight, shown = np.empty((n, m)), np.empty((n, m))
    weight[variables, variables] = 1.0
    shown[:m] = correlation
    span = np.zeros((n, 2), np.int64)
    span[:m] = np.column_stack([variables, variables + 1])
    return Messages(
        np.full(n, -1), np.zeros(n), np.ones(n, np.int64), span, weight, shown
    )  # fmt: skip


@kernel(views=True)
def collect(links, messages, node):
    """Make the message of a hidden node from those of its two neighbors away from the root."""
    first, second, rho_first, rho_second = -1, -1, 0.0, 0.0
    for slot in range(3):
        other = links.neighbor[node, slot]
        if other >= 0 and other != messages.toward[node]:
            first, rho_first = second, rho_second
            second, rho_second = other, links.rho[node, slot]
    w_first = variance_beyond(rho_first, messages.variance[first])
    w_second = variance_beyond(rho_second, messages.variance[second])
    u = 1.0 / (1.0 / w_first + 1.0 / w_second - 1.0)
    a, b = u * rho_first / w_first, u * rho_second / w_second
    messages.variance[node] = u
    messages.n_variables[node] = messages.n_variables[first] + messages.n_variables[second]
    begin = min(messages.span[first, 0], messages.span[second, 0])
    end = max(messages.span[first, 1], messages.span[second, 1])
    messages.span[node, 0], messages.span[node, 1] = begin, end
    messages.weight[node, begin:end] = 0.0
    for factor, other in ((a, first), (b, second)):
        begin, end = messages.span[other, 0], messages.span[other, 1]
        add(messages.weight[node, begin:end], factor, messages.weight[other, begin:end])
    combine(messages.shown[node], a, messages.shown[first], b, messages.shown[second])


@kernel(views=True)
def covariance_of(messages, u, w):
    """Return the covariance of two messages in the data."""
    size_u = messages.span[u, 1] - messages.span[u, 0]
    size_w = messages.span[w, 1] - messages.span[w, 0]
    if size_w < size_u:
        u, w = w, u
    begin, end = messages.span[u, 0], messages.span[u, 1]
    return multiply(messages.weight[u, begin:end], messages.shown[w, begin:end])


@kernel(views=True)
def face(links, messages, a, b):
    """Turn the messages of a tree toward the link of two nodes.

    Only those on the way from the link that they went toward so far turn.
    """
    if messages.toward[a] != b:
        a, b = b, a
    if messages.toward[b] == a:
        return
    last, here, ahead = a, b, messages.toward[b]
    while messages.toward[ahead] != here:
        messages.toward[here] = last
        last, here, ahead = here, ahead, messages.toward[ahead]
    messages.toward[here] = last
    while here != a:
        collect(links, messages, here)
        here = messages.toward[here]

"""A pass over a tree as a list of slots, and the records that kernels share.

The work is a list of slots, each a small table of values over (states, patterns):

  EVIDENCE  the symbol seen at a node: 1 for the state seen (for every state if it is missing)
  EDGE      μ(i) = Σ_j T[i, j]·λ(j): what lies below a child, as a function of its parent's state
  JOIN      λ(k) = a(k)·b(k): two parts that hang at the same node; patterns are pairs of patterns
  EMISSION  λ(k) = P(value | k), the likelihood of a leaf's value for every state of its neighbor;
            given by the caller behind the tables, over (states, patterns)

A slot comes after the slots that it is made of. A component of slots ends in a root slot, closed by
a prior: z = Σ_k prior(k)·λ(k), and the log-likelihood is Σ w·log z over the root's patterns, of
weight w. Downward, every slot receives R(k), the summed posterior weight of state k over all rows
with the pattern: a join hands it to both parts, an edge turns it into the expected counts
R(i)·T[i, j]·λ(j)/μ(i).

Slots with nearly as many patterns as their component has rows are run row by row instead, in blocks
of rows whose values stay in the cache (``by_row``); there a join looks up the patterns of parts
that are not by row, and what it hands down to them is added up.

Values are plain products, scaled by a power of two when they get small (exact). Where a product
falls below ``TINY`` although no factor is zero, information may be lost: the kernels say so, and
the caller repeats the pass with logarithms (``inference._log_messages``). Likelihoods of emissions
differ by such
factors often; there a state so far behind the best one is taken as impossible (``tolerant``), and
only where no state is left the pass is repeated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.compiling import kernel

EVIDENCE, EDGE, JOIN, EMISSION = 0, 1, 2, 3
"""Kinds of slots."""

TINY = 2.0**-900
"""Products below this are taken as lost: numbers keep all their digits down to 2⁻¹⁰²², and further
factors follow."""

SMALL = 2.0**-256
"""Patterns whose values are all below this are scaled up: a product of three of them is still above
``TINY``."""

GROW = 2.0**256
"""The factor by which they are scaled: a power of two, which rounds nothing."""

LOG_GROW = 256 * np.log(2.0)
"""Its logarithm, which is taken off the log-likelihood again."""

SLOT = np.dtype(
    [
        ("kind", np.int64),
        ("by_row", np.bool_),
        ("node", np.int64),  # the node seen or joined at, or the lower end of the edge
        ("n_states", np.int64),
        ("n_patterns", np.int64),
        ("a", np.int64),  # the slots joined, or the one below an edge; itself if there is none
        ("b", np.int64),
        ("index_a", np.int64),  # where the patterns of a (or the symbols) start in `gather`
        ("index_b", np.int64),
        ("table", np.int64),  # where the edge's table starts in `theta`
        ("value", np.int64),  # where values start: a number, or a row of a block if by row
        ("received", np.int64),  # likewise what comes from above
        ("handed", np.int64),  # where the sums of what rows hand down start; −1: none do
    ],
    align=True,
)

COMPONENT = np.dtype(
    [
        ("node", np.int64),  # whose states the root slot has
        ("first", np.int64),  # the slots from first to root belong to the component
        ("root", np.int64),
        ("prior", np.int64),  # where the marginal starts in `theta`; −1: given, all ones
        ("weights", np.int64),  # where the weights of the root's patterns start
        ("posterior", np.int64),  # where their posteriors start
    ],
    align=True,
)


class PassInput(NamedTuple):
    """The arrays that all kernels of a pass read."""

    slots: NDArray[np.void]
    """Records of ``SLOT``."""
    gather: NDArray[np.int32]
    """Patterns of the parts of joins, and symbols of evidence, where the slots say."""
    theta: NDArray[np.float64]
    """The tables of all edges and the priors of roots, end to end."""
    tolerant: bool
    """Whether states far behind the best one are taken as impossible."""


class RowRange(NamedTuple):
    """A range of the rows of a component, and the slots that run by row in it."""

    component: int
    first: int
    last: int
    order: NDArray[np.int32]
    """Pattern of the root in every row."""
    listed: NDArray[np.int64]
    """Slots that run by row, in ascending order; none if all run on patterns."""
    n_values: int = 0
    """Numbers a row that these slots hold."""
    n_received: int = 0
    """Numbers a row that are handed down to them."""


@kernel()
def root_prior(component, n_states, theta, counts):
    """Return the prior of a root, and where its counts go; of a root that is given, nowhere."""
    if component["prior"] < 0:
        return np.ones(n_states), np.zeros(n_states)
    return theta[component["prior"] :], counts[component["prior"] :]


@kernel(fastmath=True, views=True)
def has_small(numbers, size):
    """Whether a number is so small that it may have to be scaled."""
    found = 0  # a sum, as the compiler makes vector instructions of it and not of a minimum
    for x in range(size):
        found += numbers[x] < SMALL
    return found > 0

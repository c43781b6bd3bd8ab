"""Numbers over (states, patterns) in quads: those of four states of a pattern side by side.

To look up a pattern in a table with a row a state takes a load a state, each from elsewhere in
memory; in quads it takes one for four states. Quad q of pattern p starts at 4·(q·width + p), and
holds the states from 4·q on. Numbers of states are filled up to multiples of four, in tables that
are copied from or to quads too, by numbers that nobody reads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.compiling import kernel
from latentree._kernels.vectors import add_four, copy_four, multiply_four, turn_four


class JoinPart(NamedTuple):
    """One of the two parts of a join: a table over (states, patterns), and the patterns joined.

    Entry (k, p) of a table is at k·stride + p; of quads, at 4·(k // 4)·stride + 4·p + k % 4.
    """

    values: NDArray[np.float64]
    stride: int
    at: NDArray[np.uint32]
    """The pattern of this part in every pattern of the join. Unsigned, so that compiled code need
    not look for negative indices, which would count from the end."""
    in_quads: bool


@kernel(views=True)
def fill_quads(source, stride, n_states, width, out, out_width):
    """Copy ``width`` patterns of a table, of which a state's row has ``stride``, into quads."""
    fours = width - width % 4
    for first in range(0, n_states, 4):
        for p in range(0, fours, 4):
            turn_four(out, first * out_width + 4 * p, 4, source, first * stride + p, stride)
        for p in range(fours, width):
            for k in range(4):
                out[first * out_width + 4 * p + k] = source[(first + k) * stride + p]


@kernel(views=True)
def read_quads(quads, quads_width, n_states, width, out, stride):
    """Copy quads into a table with a row a state."""
    fours = width - width % 4
    for first in range(0, n_states, 4):
        for p in range(0, fours, 4):
            turn_four(out, first * stride + p, stride, quads, first * quads_width + 4 * p, 4)
        for p in range(fours, width):
            for k in range(4):
                out[(first + k) * stride + p] = quads[first * quads_width + 4 * p + k]


@kernel(views=True)
def fetch_quads(quads, quads_width, at, n_states, width, out, out_width):
    """Copy the quads of the patterns ``at``."""
    for first in range(0, n_states, 4):
        source, target = quads[first * quads_width :], out[first * out_width :]
        for p in range(width):
            copy_four(target, 4 * p, source, 4 * np.uint64(at[p]))


@kernel(views=True)
def multiply_quads(a, b, n_states, width, out, out_width):
    """λ(k) = a(k)·b(k) of two parts in quads (:class:`JoinPart`), into quads."""
    at_a, at_b = a.at, b.at
    for first in range(0, n_states, 4):
        part_a, part_b = a.values[first * a.stride :], b.values[first * b.stride :]
        target = out[first * out_width :]
        for p in range(width):
            i, j = 4 * np.uint64(at_a[p]), 4 * np.uint64(at_b[p])
            multiply_four(target, 4 * p, part_a, i, part_b, j)


@kernel(views=True)
def scatter_quads(block, block_width, at, n_states, width, out, out_width):
    """Add the quads of a block to those of the patterns ``at``."""
    for first in range(0, n_states, 4):
        source, target = block[first * block_width :], out[first * out_width :]
        for p in range(width):
            add_four(target, 4 * np.uint64(at[p]), source, 4 * p)

"""Binary trees that change: the three neighbors of every node, and the correlations with them.

Observed nodes are leaves. Links of correlation ±1 are contracted: so a hidden node with many
neighbors is several that are one, and an observed node inside the tree is a leaf at distance 0.
"""

from __future__ import annotations

from typing import NamedTuple

from latentree._kernels.compiling import kernel
from latentree.typing import FloatArray, IntArray

LARGEST = 0.99999
"""Of correlations of links that are not contracted."""

WEAKEST = 1e-9
"""Of correlations of links, whose logarithm must be finite."""


class Links(NamedTuple):
    """Neighbors of every node, −1 where there is none, and the correlations with them."""

    neighbor: IntArray
    rho: FloatArray


@kernel()
def is_contracted(rho):
    """Whether a link of this correlation makes two nodes one."""
    return abs(rho) >= 1.0


@kernel()
def prior_of(rho):
    """Return the prior of the correlation of a link, relative to the uniform one."""
    return 1.5 * (1.0 - rho * rho)


@kernel()
def join(links, a, b, rho):
    """Link two nodes that have room for it."""
    for node, other in ((a, b), (b, a)):
        for slot in range(3):
            if links.neighbor[node, slot] < 0:
                links.neighbor[node, slot] = other
                links.rho[node, slot] = rho
                break


@kernel()
def part(links, a, b):
    """Remove the link of two nodes; return its correlation."""
    rho = 0.0
    for node, other in ((a, b), (b, a)):
        for slot in range(3):
            if links.neighbor[node, slot] == other:
                links.neighbor[node, slot] = -1
                rho = links.rho[node, slot]
                break
    return rho


@kernel()
def bypass(links, node):
    """Link the two neighbors of a node with each other; return them, and their correlations."""
    first, second = -1, -1
    for slot in range(3):
        if links.neighbor[node, slot] >= 0:
            if first < 0:
                first = links.neighbor[node, slot]
            else:
                second = links.neighbor[node, slot]
    rho_first, rho_second = part(links, node, first), part(links, node, second)
    rho = rho_first * rho_second
    join(links, first, second, rho if abs(rho) > WEAKEST else WEAKEST)
    return first, second, rho_first, rho_second


@kernel()
def count_contracted(links, m):
    """Count the contracted links between hidden nodes, and those of leaves."""
    of_hidden, of_leaves = 0, 0
    for node in range(links.neighbor.shape[0]):
        for slot in range(3):
            if links.neighbor[node, slot] > node and is_contracted(links.rho[node, slot]):
                if node < m:
                    of_leaves += 1
                else:
                    of_hidden += 1
    return of_hidden, of_leaves


@kernel()
def n_leaves_at(links, node, m):
    """Count the leaves among the neighbors of a node."""
    count = 0
    for slot in range(3):
        if 0 <= links.neighbor[node, slot] < m:
            count += 1
    return count


@kernel()
def draw_link(links, rng):
    """Draw a link: its two nodes."""
    while True:
        u, slot = rng.integers(0, links.neighbor.shape[0]), rng.integers(0, 3)
        if links.neighbor[u, slot] >= 0:
            return u, links.neighbor[u, slot]

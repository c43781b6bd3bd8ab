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


@kernel(views=True)
def is_contracted(rho):
    """Whether a link of this correlation makes two nodes one."""
    return abs(rho) >= 1.0


@kernel(views=True)
def prior_of(rho):
    """Return the prior of the correlation of a link, relative to the uniform one."""
    return 1.5 * (1.0 - rho * rho)


@kernel(views=True)
def join(links, a, b, rho):
    """Link two nodes that have room for it."""
    for node, other in ((a, b), (b, a)):
        for slot in range(3):
            if links.neighbor[node, slot] < 0:
                links.neighbor[node, slot] = other
                links.rho[node, slot] = rho
                break


@kernel(views=True)
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


@kernel(views=True)
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


@kernel(views=True)
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


@kernel(views=True)
def n_leaves_at(links, node, m):
    """Count the leaves among the neighbors of a node."""
    count = 0
    for slot in range(3):
        if 0 <= links.neighbor[node, slot] < m:
            count += 1
    return count


@kernel(views=True)
def is_cherry(links, node, m):
    """Return 1 for a hidden node with two leaves or more, 0 for others."""
    return 1 if node >= m and n_leaves_at(links, node, m) >= 2 else 0


@kernel(views=True)
def count_cherries_beside(links, node, m):
    """Count the cherries among the neighbors of a node."""
    count = 0
    for slot in range(3):
        if links.neighbor[node, slot] >= 0:
            count += is_cherry(links, links.neighbor[node, slot], m)
    return count


@kernel(views=True)
def count_cherries(links, m):
    """Count the hidden nodes with two leaves or more."""
    count = 0
    for node in range(m, links.neighbor.shape[0]):
        count += is_cherry(links, node, m)
    return count

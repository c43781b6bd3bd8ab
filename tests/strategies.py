"""Random small trees and forests for hypothesis, made without latentree's own generators."""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from latentree import Tree

# Quarters add up exactly, so that sums in any order may be compared with ==.
quarters = st.integers(0, 12).map(lambda k: k / 4)
positive_quarters = st.integers(1, 12).map(lambda k: k / 4)


class RawForest(NamedTuple):
    """A forest on integers whose hidden nodes may have any number of neighbors."""

    parent: list[int]
    length: list[float]
    n_observed: int

    def graph(self) -> nx.Graph:
        graph = nx.Graph()
        graph.add_nodes_from(range(len(self.parent)))
        for node, above in enumerate(self.parent):
            if above >= 0:
                graph.add_edge(node, above, length=self.length[node])
        return graph


@st.composite
def raw_forests(
    draw: st.DrawFn, max_nodes: int = 16, forest: bool = True, lengths=positive_quarters
) -> RawForest:
    """Any parent array in any order, any nodes observed, at least one of them."""
    parent, length = _shape(draw, max_nodes, forest, lengths)
    observed = draw(st.lists(st.booleans(), min_size=len(parent), max_size=len(parent)))
    observed[draw(st.integers(0, len(parent) - 1))] = True
    return _renumbered(draw, parent, length, observed)


@st.composite
def trees(
    draw: st.DrawFn, max_inner: int = 6, forest: bool = True, lengths=positive_quarters
) -> Tree:
    """Valid trees (or forests): any shape, hidden or observed at will, leaves added as needed."""
    parent, length = _shape(draw, max_inner, forest, lengths)
    hidden = [draw(st.sampled_from([True, True, False])) for _ in parent]
    degree = np.bincount([p for p in parent if p >= 0], minlength=len(parent))
    degree += np.array(parent) >= 0
    for node, is_hidden in enumerate(list(hidden)):
        least = max(0, 3 - int(degree[node])) if is_hidden else 0
        for _ in range(draw(st.integers(least, least + 1))):
            parent.append(node)
            length.append(draw(lengths))
            hidden.append(False)
    return Tree(*_renumbered(draw, parent, length, [not h for h in hidden]))


def _shape(draw, max_nodes, forest, lengths) -> tuple[list[int], list[float]]:
    n = draw(st.integers(1, max_nodes))
    lowest = -1 if forest and draw(st.booleans()) else 0
    parent = [-1] + [draw(st.integers(lowest, node - 1)) for node in range(1, n)]
    length = [0.0 if above < 0 else draw(lengths) for above in parent]
    return parent, length


def _renumbered(draw, parent, length, observed) -> RawForest:
    shuffled = draw(st.permutations(range(len(parent))))
    old = sorted(shuffled, key=lambda node: not observed[node])  # stable: observed ones first
    new = {node: position for position, node in enumerate(old)} | {-1: -1}
    return RawForest([new[parent[v]] for v in old], [length[v] for v in old], sum(observed))


@st.composite
def relabeled(draw: st.DrawFn, tree: Tree) -> Tree:
    """The same tree with its hidden nodes renumbered and its roots moved."""
    hidden = draw(st.permutations(list(tree.hidden)))
    old = np.array([*range(tree.n_observed), *hidden])
    new = np.append(np.argsort(old), -1)
    same = Tree(new[tree.parent[old]], tree.length[old], tree.n_observed)
    for node in draw(st.lists(st.integers(0, tree.n_nodes - 1), max_size=3)):
        same = same.rerooted(node)
    return same

"""A tree while it is being changed: nodes that come and go, with the tables of their edges.

Nodes ``0 … n_observed − 1`` are observed. Hidden ones have numbers from there on; a number is never
used again, so that what was learned about a node stays true of it. Tables are never changed in
place, only replaced: a copy of a draft shares them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from latentree.data import Schema
from latentree.inference import FreeEmission, Unit
from latentree.models import DiscreteTreeModel, GaussianTreeModel, MixedTreeModel, state_model
from latentree.search._refinement._tables import fits, mixed
from latentree.tree import Tree
from latentree.typing import FloatArray

Edge = tuple[int, int]


class Conflict(Exception):
    """A change does not fit to what others have made of the draft."""


class Draft(ABC):
    """A rooted forest in which subtrees are cut and hung elsewhere.

    Attributes
    ----------
    parent : dict
        The parent of every node, −1 for a root.
    above : dict
        The table of the edge above every node; at a root what the family needs there.
    n_states : dict
        States of every node; 1 for a Gaussian one. A column of numbers counts as one more than it
        has parameters per state of its neighbor: it costs as much as so many states.
    n_edges, n_inner : int
        Number of edges, and of nodes with two neighbors or more. These and the parameters of
        discrete drafts are counted while links change: every change is asked for its cost.
    """

    def __init__(self, n_observed: int) -> None:
        self.n_observed = n_observed
        self.parent: dict[int, int] = {}
        self.children: dict[int, tuple[int, ...]] = {}
        self.above: dict[int, Any] = {}
        self.n_states: dict[int, int] = {}
        self.next_number = n_observed
        self.n_edges = self.n_inner = 0
        self._free = 0  # Σ (K − 1) over nodes + Σ (K − 1)·(K' − 1) over edges

    # What a family adds -------------------------------------------------------------------------

    @abstractmethod
    def turned(self, top: Any, table: Any) -> tuple[Any, Any]:
        """From a root's entry and the table of an edge below it to those of the edge turned."""

    @abstractmethod
    def chained(self, upper: Any, lower: Any) -> Any:
        """Return the table of two edges, one below the other, as one."""

    @abstractmethod
    def marginalized(self, top: Any, table: Any) -> Any:
        """Return what the lower end of an edge below a root has as a root."""

    @abstractmethod
    def near_copy(self, n_states: int, softness: float) -> Any:
        """Return the table of a node that differs from its parent by ``softness``."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Free parameters."""

    # What it looks like -------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return a draft that can be changed by itself."""
        new = type(self)(self.n_observed)
        new.parent, new.children = self.parent.copy(), self.children.copy()
        new.above, new.n_states = self.above.copy(), self.n_states.copy()
        new.next_number = self.next_number
        new.n_edges, new.n_inner, new._free = self.n_edges, self.n_inner, self._free
        return new

    def neighbors(self, node: int) -> tuple[int, ...]:
        """Return the nodes next to a node."""
        above = self.parent[node]
        return self.children[node] if above < 0 else (above, *self.children[node])

    def is_hidden(self, node: int) -> bool:
        """Tell whether a node is hidden."""
        return node >= self.n_observed

    def is_number(self, node: int) -> bool:
        """Tell whether a node is a column of numbers beside nodes with states: always a leaf."""
        del node
        return False

    @property
    def hidden(self) -> list[int]:
        """Numbers of the hidden nodes."""
        return sorted(node for node in self.parent if node >= self.n_observed)

    @property
    def n_hidden(self) -> int:
        """Number of hidden nodes."""
        return len(self.parent) - self.n_observed

    @property
    def edges(self) -> list[Edge]:
        """Edges, (parent, child)."""
        return [(above, node) for node, above in self.parent.items() if above >= 0]

    def order(self) -> list[int]:
        """Return the nodes, every one after its parent."""
        stack = [node for node, above in self.parent.items() if above < 0]
        out = []
        while stack:
            node = stack.pop()
            out.append(node)
            stack.extend(self.children[node])
        return out

    def root_of(self, node: int) -> int:
        """Return the root of a node's component."""
        while self.parent[node] >= 0:
            node = self.parent[node]
        return node

    @property
    def roots(self) -> list[int]:
        """Roots of the components."""
        return sorted(node for node, above in self.parent.items() if above < 0)

    def component(self, node: int) -> set[int]:
        """Return all nodes that hang together with a node."""
        found, stack = set[int](), [self.root_of(node)]
        while stack:
            here = stack.pop()
            found.add(here)
            stack.extend(self.children[here])
        return found

    def distances(self, node: int, gate: int) -> dict[int, int]:
        """Return how many edges away nodes are, nearest first, without those behind ``gate``."""
        found, stack = {node: 0}, [node]
        for here in stack:  # which grows
            for other in self.neighbors(here):
                if other not in found and other != gate:
                    found[other] = found[here] + 1
                    stack.append(other)
        return found

    # Changes ------------------------------------------------------------------------------------

    def add(self, node: int, top: Any, n_states: int) -> None:
        """Add a node without neighbors."""
        self.parent[node], self.children[node] = -1, ()
        self.above[node], self.n_states[node] = top, n_states
        self.next_number = max(self.next_number, node + 1)
        self._free += n_states - 1

    def remove(self, node: int) -> None:
        """Remove a node without neighbors."""
        self._free -= self.n_states[node] - 1
        for entries in (self.parent, self.children, self.above, self.n_states):
            del entries[node]

    def reroot(self, node: int) -> None:
        """Make a node the root of its component; the distribution stays."""
        path = [node]
        while self.parent[path[-1]] >= 0:
            path.append(self.parent[path[-1]])
        for upper, lower in zip(path[::-1], path[-2::-1], strict=False):
            self.above[lower], self.above[upper] = self.turned(self.above[upper], self.above[lower])
            self.children[upper] = tuple(c for c in self.children[upper] if c != lower)
            self.children[lower] += (upper,)
            self.parent[lower], self.parent[upper] = -1, lower

    def cut(self, a: int, b: int) -> None:
        """Take an edge away: two components, each with its own marginals, rooted at the ends."""
        self.reroot(a)
        if self.parent[b] != a:
            raise Conflict
        self.above[b] = self.marginalized(self.above[a], self.above[b])
        self._unlink(b)

    def hang(self, node: int, target: int, table: Any) -> None:
        """Hang a component, by its node, at a node of another."""
        self.reroot(node)
        if self.root_of(target) == node:
            raise Conflict
        self.above[node] = table
        self._link(node, target)

    def tidy(self, node: int) -> tuple[int, ...]:
        """Suppress a hidden node with fewer than three neighbors, unless it ties two numbers.

        Returns the nodes at which something has changed: the node itself if it stays.
        """
        around = self.neighbors(node)
        if not self.is_hidden(node) or len(around) > 2:
            return (node,)
        if len(around) == 2:
            a, b = sorted(around, key=self.is_number)
            if self.is_number(a):
                return (node,)
            self.reroot(a)
            table = self.chained(self.above[node], self.above[b])
            self._unlink(b)
            self._unlink(node)
            self.above[b] = table
            self._link(b, a)
        elif around:
            self.cut(node, around[0])
        self.remove(node)
        return tuple(other for left in around for other in self.tidy(left))

    def absorb(self, keep: int, drop: int) -> None:
        """Contract the path from ``keep`` to the hidden node ``drop``, one or two edges long.

        What hangs at ``drop`` hangs at ``keep`` afterwards; a node between stays where it is.
        """
        self.reroot(keep)
        table, between = self.above[drop], self.parent[drop]
        if between != keep:
            table = self.chained(self.above[between], table)
        for node in self.children[drop]:
            self._unlink(node)
            self.above[node] = self.chained(table, self.above[node])
            self._link(node, keep)
        self._unlink(drop)
        self.remove(drop)

    def stand_in(self, node: int, softness: float) -> int:
        """Put a new hidden node in a node's place, nearly a copy of it, and hang the node there."""
        self.reroot(node)
        new, states = self.next_number, self.n_states[node]
        self.add(new, self.above[node], states)
        for other in self.children[node]:
            self._unlink(other)
            self._link(other, new)
        self.above[node] = self.near_copy(states, softness)
        self._link(node, new)
        return new

    def split(self, near: int, far: int, softness: float) -> int:
        """Put a new hidden node into an edge, nearly a copy of the end ``near``."""
        self.reroot(near)
        if self.parent.get(far) != near:
            raise Conflict
        new, states = self.next_number, self.n_states[near]
        self.add(new, None, states)
        self.above[new] = self.near_copy(states, softness)
        self._unlink(far)
        self._link(far, new)
        self._link(new, near)
        return new

    def part(self, node: int, moved: Sequence[int], softness: float) -> int:
        """Hang some neighbors of a node at a new one next to it, nearly a copy of it."""
        self.reroot(node)
        if any(self.parent.get(other) != node for other in moved):
            raise Conflict
        new, states = self.next_number, self.n_states[node]
        self.add(new, None, states)
        self.above[new] = self.near_copy(states, softness)
        for other in moved:
            self._unlink(other)
            self._link(other, new)
        self._link(new, node)
        return new

    def set_star(self, center: int, top: Any, tables: Mapping[int, Any]) -> None:
        """Make a node the root, and replace its entry and the tables of the edges around it.

        What no longer fits, because other changes were made, is left out.
        """
        self.reroot(center)
        if fits(top, self.above[center]):
            self.above[center] = top
        for node, table in tables.items():
            if self.parent.get(node) == center and fits(table, self.above[node]):
                self.above[node] = table

    def resize(self, node: int, top: Any, tables: Mapping[int, Any]) -> None:
        """Give a node as many states as ``top`` has, with the tables of the edges around it."""
        self.reroot(node)
        if set(self.children[node]) != set(tables):
            raise Conflict
        if any(
            not self.is_number(other) and np.shape(tables[other])[1] != self.n_states[other]
            for other in tables
        ):
            raise Conflict
        around = sum(self.n_states[other] - 1 for other in tables)
        self._free += (len(top) - self.n_states[node]) * (1 + around)
        self.n_states[node] = len(top)
        self.above[node] = top
        self.above.update(tables)

    def _link(self, node: int, above: int) -> None:
        self.parent[node] = above
        self.children[above] += (node,)
        self.n_edges += 1
        self.n_inner += (self._degree(node) == 2) + (self._degree(above) == 2)
        self._free += (self.n_states[node] - 1) * (self.n_states[above] - 1)

    def _unlink(self, node: int) -> None:
        above = self.parent[node]
        self.n_edges -= 1
        self.n_inner -= (self._degree(node) == 2) + (self._degree(above) == 2)
        self._free -= (self.n_states[node] - 1) * (self.n_states[above] - 1)
        self.children[above] = tuple(c for c in self.children[above] if c != node)
        self.parent[node] = -1

    def _degree(self, node: int) -> int:
        return len(self.children[node]) + (self.parent[node] >= 0)

    # From and to trees --------------------------------------------------------------------------

    def numbering(self) -> dict[int, int]:
        """Return gapless numbers: observed nodes keep theirs, hidden ones follow."""
        return {node: place for place, node in enumerate(sorted(self.parent))}

    def tree(self, names: tuple[str, ...]) -> Tree:
        """Return the tree, its lengths all 1."""
        number = self.numbering()
        parent = np.full(len(number), -1, np.int64)
        for above, node in self.edges:
            parent[number[node]] = number[above]
        return Tree(parent, n_observed=self.n_observed, names=names)

    def _take(
        self, tree: Tree, above: Sequence[Any], n_states: Sequence[int], numbers: Any
    ) -> None:
        """Add the nodes of a tree."""
        number = range(tree.n_nodes) if numbers is None else numbers
        for node in map(int, tree.order):
            self.add(number[node], above[node], n_states[node])
            if tree.parent[node] >= 0:
                self._link(number[node], number[tree.parent[node]])


class StateDraft(Draft):
    """Tables are P(node | parent), K_parent × K; a root has its marginal probabilities.

    A column of numbers has an emission in place of a table. Drafts that are copies share tables,
    and what was turned round of them.
    """

    def __init__(self, n_observed: int) -> None:
        super().__init__(n_observed)
        self._turned: dict[tuple[int, int], tuple[FloatArray, ...]] = {}

    def copy(self) -> Self:
        """Return a draft that can be changed by itself."""
        new = super().copy()
        new._turned = self._turned
        return new

    @classmethod
    def of(
        cls, model: DiscreteTreeModel | MixedTreeModel, numbers: Sequence[int] | None = None
    ) -> StateDraft:
        """Return the draft of a model, its nodes under other numbers if given."""
        draft, above = cls(model.tree.n_observed), list(model.parameters)
        n_states = [
            own or len(type(table).limits(Unit(0.0, 1.0, 1.0))) + 1
            for table, own in zip(above, model.n_states.tolist(), strict=True)
        ]
        draft._take(model.tree, above, n_states, numbers)
        return draft

    def model(self, schema: Schema) -> DiscreteTreeModel | MixedTreeModel:
        """Return the model; hidden nodes are numbered anew."""
        nodes = sorted(self.above)
        emissions = [self.above[v] if self.is_number(v) else None for v in nodes[: self.n_observed]]
        n_states = np.array([0 if self.is_number(v) else self.n_states[v] for v in nodes])
        tables = [np.ravel(self.above[v]) for v in nodes if not self.is_number(v)]
        theta = np.concatenate([np.empty(0), *tables])
        return state_model(self.tree(schema.names), n_states, theta, emissions, schema)

    def is_number(self, node: int) -> bool:
        """Tell whether a node is a column of numbers: always a leaf, or alone."""
        return isinstance(self.above[node], FreeEmission)

    def turned(self, top: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Turn a table round by Bayes' rule."""
        key = id(top), id(table)
        if key not in self._turned:  # kept alive with the entry, so that no other gets their ids
            self._turned[key] = (*_bayes(top, table), top, table)
        below, back, *_ = self._turned[key]
        return below, back

    def chained(self, upper: FloatArray, lower: Any) -> Any:
        """Sum the node between out."""
        return mixed(upper, lower)

    def marginalized(self, top: FloatArray, table: Any) -> Any:
        """Sum the root out."""
        return mixed(top, table)

    def near_copy(self, n_states: int, softness: float) -> FloatArray:
        """Keep the state, but for a share of rows that get any state."""
        return (1.0 - softness) * np.eye(n_states) + softness / n_states

    @property
    def n_parameters(self) -> int:
        """K − 1 at a root, K_parent·(K − 1) elsewhere; the same for every choice of roots."""
        return self._free


def _bayes(top: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    joint = top[:, None] * table
    below = joint.sum(axis=0)
    safe = np.where(below > 0, below, 1.0)
    back = np.where(below > 0, joint / safe, top[:, None]).T
    return below, np.ascontiguousarray(back)


class GaussianDraft(Draft):
    """Tables are correlations; a root has none.

    Attributes
    ----------
    moments : tuple of two arrays, optional
        Means and scales of the variables, where they differ from those of the columns.
    """

    def __init__(self, n_observed: int) -> None:
        super().__init__(n_observed)
        self.moments: tuple[FloatArray, FloatArray] | None = None

    def copy(self) -> Self:
        """Return a draft that can be changed by itself."""
        new = super().copy()
        new.moments = self.moments
        return new

    @classmethod
    def of(cls, model: GaussianTreeModel, numbers: Sequence[int] | None = None) -> GaussianDraft:
        """Return the draft of a model, its nodes under other numbers if given."""
        draft, parent = cls(model.tree.n_observed), model.tree.parent
        rho = [None if a < 0 else float(r) for a, r in zip(parent, model.correlations, strict=True)]
        draft._take(model.tree, rho, [1] * len(rho), numbers)
        return draft

    def model(self, names: tuple[str, ...], means: Any, scales: Any) -> GaussianTreeModel:
        """Return the model; hidden nodes are numbered anew."""
        rho = [0.0 if self.above[v] is None else self.above[v] for v in sorted(self.above)]
        return GaussianTreeModel(self.tree(names), np.array(rho), means, scales)

    def turned(self, top: None, table: float) -> tuple[None, float]:
        """Correlations are symmetric."""
        return None, table

    def chained(self, upper: float, lower: float) -> float:
        """Correlations along a path are multiplied."""
        return upper * lower

    def marginalized(self, top: None, table: float) -> None:
        """Roots have nothing."""

    def near_copy(self, n_states: int, softness: float) -> float:
        """Return a high correlation."""
        return 1.0 - softness

    @property
    def n_parameters(self) -> int:
        """One per edge and two per column, as in the model itself."""
        return self.n_edges + 2 * self.n_observed


# Edits: each changes a draft in place and returns the node in the middle of the change -----------


def absorb(draft: Draft, keep: int, drop: int, between: int | None = None) -> int:
    """Make one node of two hidden ones, next to each other or to the node ``between``."""
    draft.absorb(keep, drop)
    if between is not None:
        draft.tidy(between)
    return keep


def stand_in(draft: Draft, node: int, softness: float) -> int:
    """Let a hidden node take the place of an observed one, which becomes its leaf."""
    return draft.stand_in(node, softness)


def cut(draft: Draft, p: int, x: int) -> int:
    """Take an edge away."""
    draft.cut(p, x)
    draft.tidy(p)
    return draft.tidy(x)[0]


def link(draft: Draft, x: int, y: int, table: Any) -> int:
    """Hang a component at a node of another."""
    draft.hang(x, y, table)
    return y


def regraft(draft: Draft, x: int, p: int, y: int, table: Any) -> int:
    """Cut the subtree of x off p, and hang it at y."""
    draft.cut(p, x)
    draft.tidy(p)
    return link(draft, x, y, table)


def insert(draft: Draft, x: int, p: int, edge: Edge, table: Any, softness: float) -> int:
    """Cut the subtree of x off p, and hang it at a new node inside an edge."""
    draft.cut(p, x)
    draft.tidy(p)
    return link(draft, x, draft.split(*edge, softness), table)

"""How sure a tree is: the shares of replicates that agree with each of its parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from latentree import _plain as plain
from latentree._fields import Field, ListOf, Numbers, Record, Text, Whole
from latentree.errors import FileError, TreeError
from latentree.support._consensus import majority_tree
from latentree.support._transfer import EdgeClaims, edge_claims, transfer_distances
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray, IntArray

DOUBTFUL = 0.5
"""Hidden variables in fewer of the replicates than this are doubtful."""

POSTERIOR = "posterior"
"""The method of trees that are not learned: they are drawn from their posterior."""

_ARRAYS = ("edge_share", "edge_transfer", "hidden_share", "variable_share")
_NUMBER = re.compile("0|[1-9][0-9]{0,17}", re.ASCII)

ROUNDING = 1e-9
"""Means of shares may pass 0 and 1 by so much."""


@dataclass(frozen=True, eq=False, repr=False)
class Support:
    """How sure each edge, hidden variable and place of a variable is.

    Make it with :func:`latentree.bootstrap_support`. Shares are of the replicates: trees learned
    again from rows that were drawn with replacement. They say what other rows of the same source
    would change, not how probable it is that the model is true. Trees that were drawn from their
    posterior are replicates, too; their shares are probabilities, if the data comes from a tree.

    Parameters
    ----------
    tree : Tree
        The tree that the shares are about.
    method : tuple of str
        The learners of the replicates.
    n_replicates : int
    edge_share : array, one per node
        Share of the replicates that have the split of the edge above a node; NaN where an edge says
        nothing, because fewer than two variables are on a side.
    edge_transfer : array, one per node
        1 − mean transfer distance / (p − 1), with p the size of the smaller side: 1 if all have the
        split, 0 if they agree with it as little as random trees.
    hidden_share : array, one a hidden node
        Share of the replicates with a hidden node for the same group.
    variable_share : array, one per variable
        Share of the neighbors that a variable keeps.
    n_hidden : dict of int
        Number of replicates with each number of hidden variables.
    replicates : tuple of Tree
        The trees of the replicates; empty if the support was read from a file.
    note : str
        What is approximated.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.7, 0.8))
    >>> X = truth.sample(500, 1)
    >>> tree = lt.structure.recursive_grouping(lt.information_distances(X))
    >>> support = lt.bootstrap_support(tree, X, method="rg", n_replicates=20, random_state=0)
    >>> support
    Support(20 replicates of rg: 1 edge, 1 in most; 2 hidden, 0 doubtful)
    >>> support.edges
    {'from': ['h1'], 'to': ['h2'], 'share': [1.0], 'transfer': [1.0], 'size': [3]}
    """

    tree: Tree
    method: tuple[str, ...]
    n_replicates: int
    edge_share: FloatArray
    edge_transfer: FloatArray
    hidden_share: FloatArray
    variable_share: FloatArray
    n_hidden: Mapping[int, int] = field(default_factory=dict)
    replicates: tuple[Tree, ...] = field(default=(), repr=False)
    note: str = ""

    # What it says ---------------------------------------------------------------------------

    @property
    def edges(self) -> dict[str, list[Any]]:
        """Edges that say something, as the columns of a table."""
        claims = edge_claims(self.tree)
        below = np.flatnonzero(claims.is_made)
        names = self.tree.names
        return {
            "from": [names[v] for v in self.tree.parent[below]],
            "to": [names[v] for v in below],
            "share": self.edge_share[below].tolist(),
            "transfer": self.edge_transfer[below].tolist(),
            "size": claims.size[below].tolist(),
        }

    @property
    def hidden(self) -> dict[str, list[Any]]:
        """Hidden variables as the columns of a table: their edges' mean, and their own share."""
        return {
            "name": list(self.tree.names[self.tree.n_observed :]),
            "edges": self.hidden_edges.tolist(),
            "share": self.hidden_share.tolist(),
        }

    @property
    def variables(self) -> dict[str, list[Any]]:
        """Variables as the columns of a table: the share of their neighbors that they keep."""
        names = self.tree.names[: self.tree.n_observed]
        return {"name": list(names), "share": self.variable_share.tolist()}

    @property
    def hidden_edges(self) -> FloatArray:
        """Mean transfer support of the edges of every hidden node; NaN if none says anything."""
        ends, values = self.tree.edges, self.edge_transfer[self.tree.edges[:, 1]]
        said = ~np.isnan(values)
        at = ends[said].ravel()
        sums = np.bincount(at, np.repeat(values[said], 2), minlength=self.tree.n_nodes)
        counts = np.bincount(at, minlength=self.tree.n_nodes)
        with np.errstate(invalid="ignore"):
            mean: FloatArray = sums / counts
        return mean[self.tree.n_observed :]

    @property
    def are_probabilities(self) -> bool:
        """Whether shares are probabilities: trees were drawn from their posterior."""
        return self.method == (POSTERIOR,)

    @property
    def edge_support(self) -> FloatArray:
        """What pictures and tables show of every edge: its probability, or transfer support."""
        return self.edge_share if self.are_probabilities else self.edge_transfer

    @property
    def measure(self) -> str:
        """What :attr:`edge_support` is called."""
        return "probability" if self.are_probabilities else "transfer support"

    @property
    def origin(self) -> str:
        """Where the replicates come from, in words."""
        trees = f"{self.n_replicates:,} tree{'s' * (self.n_replicates != 1)}"
        if self.are_probabilities:
            return f"{trees} drawn from their posterior"
        return f"{trees} learned by {' and '.join(self.method)} from resampled rows"

    @property
    def doubtful(self) -> BoolArray:
        """Whether each hidden variable is in fewer than half of the replicates."""
        return self.hidden_share < DOUBTFUL

    @property
    def n_hidden_distribution(self) -> dict[int, float]:
        """Share of the replicates with each number of hidden variables."""
        return {number: self.n_hidden[number] / self.n_replicates for number in self.n_hidden}

    def consensus(self, threshold: float = 0.5) -> Tree:
        """Return the tree of the splits that most replicates have, with mean lengths.

        Parameters
        ----------
        threshold : float
            Share of the replicates that a split must exceed, at least 0.5.

        Returns
        -------
        Tree
            What the rows cannot tell is left open: hidden variables have more neighbors.

        References
        ----------
        Margush and McMorris, Consensus n-trees, Bulletin of Mathematical Biology 43, 1981.
        """
        return majority_tree(self._kept_replicates, threshold)

    def of(self, tree: Tree) -> Support:
        """Return what the same replicates say about another tree.

        Parameters
        ----------
        tree : Tree
            Over the same variables, in the same order.

        Returns
        -------
        Support
        """
        return support_from(tree, self._kept_replicates, self.method, self.note)

    @property
    def _kept_replicates(self) -> tuple[Tree, ...]:
        if not self.replicates:
            raise TreeError(
                "a support that was read from a file has no replicates: compute it anew"
            )
        return self.replicates

    def as_dict(self) -> dict[str, Any]:
        """Return the shares in plain values, as a model file keeps them; None stands for NaN.

        Returns
        -------
        dict
            Without the replicates.
        """
        return _FACTS.plain(self, "the support")

    @classmethod
    def from_dict(cls, tree: Tree, facts: object) -> Support:
        """Return the support of a tree that :meth:`as_dict` wrote.

        Parameters
        ----------
        tree : Tree
            The tree that it is about.
        facts : dict
            Of plain values; every part is checked.

        Returns
        -------
        Support
            Without the replicates.

        Raises
        ------
        FileError
            With the name of the part that is wrong or does not fit the tree.
        """
        n, m = tree.n_nodes, tree.n_observed
        fields = _FACTS.read(facts, "the support in the report")
        for name, size in zip(_ARRAYS, (n, n, n - m, m), strict=True):
            _check_shares(fields[name], name, size)
        if sum(fields["n_hidden"].values()) != fields["n_replicates"]:
            raise FileError("n_hidden must add up to n_replicates")
        return cls(tree, **fields)

    def __repr__(self) -> str:
        share = self.edge_share[~np.isnan(self.edge_share)]
        edges = f"{share.size} edge{'s' * (share.size != 1)}, {int((share > 0.5).sum())} in most"
        hidden = f"{self.tree.n_hidden} hidden, {int(self.doubtful.sum())} doubtful"
        whose = f"{self.n_replicates} replicates of {', '.join(self.method)}"
        return f"Support({whose}: {edges}; {hidden})"


def support_from(
    tree: Tree, replicates: Sequence[Tree], method: Sequence[str] = ("given",), note: str = ""
) -> Support:
    """Return what trees over the same variables say about a tree.

    Parameters
    ----------
    tree : Tree
        The tree in question.
    replicates : sequence of Tree
        At least one, over the same variables in the same order.
    method : sequence of str
        What to call the learners of the replicates.
    note : str
        What is approximated.

    Returns
    -------
    Support

    Examples
    --------
    >>> import latentree as lt
    >>> a, b = lt.simulate.double_star(6), lt.simulate.latent_class(6)
    >>> support_from(a, [a, a, b]).edges["share"]
    [0.6666666666666666]
    """
    names = tree.names[: tree.n_observed]
    if not replicates:
        raise TreeError("support needs at least one replicate")
    for other in replicates:
        if other.names[: other.n_observed] != names:
            raise TreeError("replicates must have the variables of the tree, in the same order")
    counter = _Counter(tree)
    for other in replicates:
        counter.add(other)
    return counter.support(tuple(replicates), tuple(method), note)


def _check_shares(shares: FloatArray, name: str, size: int) -> None:
    if shares.size != size:
        raise FileError(f"{name} has {shares.size} entries, but needs {size}")
    outside = np.flatnonzero((shares < -ROUNDING) | (shares > 1.0 + ROUNDING))
    if outside.size:
        raise FileError(f"{name}[{outside[0]}] is {shares[outside[0]]:g}, but must be from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class _Counts(Field):
    """How many replicates have each number of hidden variables."""

    def read(self, value: object, part: str) -> dict[int, int]:
        counts = {}
        for number, count in plain.as_dict(value, part).items():
            if not _NUMBER.fullmatch(number):
                raise FileError(f"{part} has the key {plain.shown(number)}, which is no number")
            counts[int(number)] = plain.as_integer(count, f"{part}.{number}", 1)
        return dict(sorted(counts.items()))

    def plain(self, value: Mapping[int, int], part: str) -> dict[str, int]:
        del part
        return {str(number): count for number, count in value.items()}


_FACTS = Record(
    {
        "method": ListOf(item=Text(), make=tuple),
        "n_replicates": Whole(least=1),
        **dict.fromkeys(_ARRAYS, Numbers(null=np.nan)),
        "n_hidden": _Counts(),
        "note": Text(),
    },
    is_top=True,
)
"""What a file holds of it; null stands for NaN."""


class _Counter:
    """Adds up what replicates have in common with a tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.claims: EdgeClaims = edge_claims(tree)
        m, n = tree.n_observed, tree.n_nodes
        self.members = hidden_members(tree)
        self.is_group = np.asarray(self.members.sum(axis=1)).ravel() >= 2
        self.pairs = _neighbor_pairs(tree)
        self.found, self.moves = np.zeros(n), np.zeros(n)
        self.hidden, self.kept = np.zeros(n - m), np.zeros(len(self.pairs))

    def add(self, other: Tree) -> None:
        """Count one replicate."""
        distance = transfer_distances(self.claims, other)
        self.found += distance == 0
        self.moves += np.maximum(distance, 0)
        match = _matches(self.members, hidden_members(other))
        is_there = np.where(self.is_group, match >= 0, self._whole_nodes(distance))
        self.hidden += is_there
        self.kept += self._kept_pairs(other, match, is_there)

    def _whole_nodes(self, distance: IntArray) -> BoolArray:
        """Whether all splits of a hidden node's edges are there; False if none says anything."""
        m = self.tree.n_observed
        ends = self.tree.edges
        of_edge = distance[ends[:, 1]]
        said = of_edge >= 0
        missing = np.bincount(ends[of_edge > 0].ravel(), minlength=self.tree.n_nodes)[m:]
        any_said = np.bincount(ends[said].ravel(), minlength=self.tree.n_nodes)[m:]
        whole: BoolArray = (missing == 0) & (any_said > 0)
        return whole

    def _kept_pairs(self, other: Tree, match: IntArray, is_there: BoolArray) -> BoolArray:
        """Whether a variable has the same neighbor in a replicate."""
        m = self.tree.n_observed
        variable, neighbor = self.pairs.T
        # What every node of the tree is in the other one; −2 where it is nowhere.
        same = np.concatenate([np.arange(m), np.where(match >= 0, m + match, -2)])[neighbor]
        adjacent: BoolArray = (other.parent[variable] == same) | (other.parent[same] == variable)
        adjacent &= same >= 0
        by_splits = np.concatenate([np.zeros(m, bool), ~self.is_group])[neighbor]
        whole = np.concatenate([np.zeros(m, bool), is_there])[neighbor]
        return np.where(by_splits, whole, adjacent)

    def support(self, replicates: tuple[Tree, ...], method: tuple[str, ...], note: str) -> Support:
        """Return the shares."""
        n, claims, m = len(replicates), self.claims, self.tree.n_observed
        made = claims.is_made
        share = np.where(made, self.found / n, np.nan)
        # p ≥ 2 wherever a claim is made
        transfer = np.where(made, 1.0 - self.moves / n / np.maximum(claims.size - 1, 1), np.nan)
        variable = self.pairs[:, 0]
        counts = np.bincount(variable, minlength=m)
        with np.errstate(invalid="ignore"):
            kept = np.bincount(variable, self.kept / n, minlength=m) / counts
        return Support(
            self.tree,
            method,
            n,
            share,
            transfer,
            self.hidden / n,
            kept,
            dict(sorted(Counter(other.n_hidden for other in replicates).items())),
            replicates,
            note,
        )


def hidden_members(tree: Tree) -> sparse.csr_array:
    """Return which variables are neighbors of each hidden node: a sparse matrix of 0 and 1."""
    m = tree.n_observed
    low, high = np.sort(tree.edges, axis=1).T
    mixed = (low < m) & (high >= m)
    ones = np.ones(int(mixed.sum()))
    return sparse.csr_array((ones, (high[mixed] - m, low[mixed])), shape=(tree.n_hidden, m))


def _matches(members: sparse.csr_array, others: sparse.csr_array) -> IntArray:
    """Return for every hidden node the one in another tree with the same group, or −1.

    The same group: more of the variables of both together are shared than not. So there is at
    most one, unless variables inside the tree have several hidden neighbors; then the nearest.
    """
    match = np.full(members.shape[0], -1)
    if not members.shape[0] or not others.shape[0]:
        return match
    shared = (members @ others.T).tocoo()
    sizes, other_sizes = (np.asarray(each.sum(axis=1)).ravel() for each in (members, others))
    rows, columns = shared.coords
    jaccard = shared.data / (sizes[rows] + other_sizes[columns] - shared.data)
    order = np.argsort(jaccard, kind="stable")
    order = order[jaccard[order] > 0.5]
    match[rows[order]] = columns[order]  # the last one written is the nearest
    return match


def _neighbor_pairs(tree: Tree) -> IntArray:
    """Return every observed node with each of its neighbors."""
    both = np.concatenate([tree.edges, tree.edges[:, ::-1]])
    return both[both[:, 0] < tree.n_observed]

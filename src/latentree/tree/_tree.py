"""The tree itself: frozen integer arrays, checked once, with a stored traversal order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latentree._display import displayed
from latentree._kernels import threads
from latentree._kernels import tree as kernels
from latentree._plain import suggestion
from latentree.errors import TreeError
from latentree.tree import _build as build
from latentree.tree._build import RootedForest
from latentree.tree._cut import TreeCut, cut_tree
from latentree.tree._text import draw
from latentree.typing import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A latent tree or forest: the first ``n_observed`` nodes are observed, the rest hidden.

    A node is an integer. Observed nodes may be anywhere in the tree; hidden nodes have at least
    three neighbors, or stand between two observed leaves that form a tree of their own. The root
    has no meaning for the model: two trees that differ only in their roots, or in the numbers and
    names of hidden nodes, are equal. ``docs/reference/data-model.md`` states all the rules.

    Parameters
    ----------
    parent : array of int
        The parent of every node, −1 for a root. Several roots make a forest.
    length : array of float, optional
        Length of the edge from every node to its parent, finite and ≥ 0; 0 at a root. All 1 when
        left out.
    n_observed : int, optional
        How many of the first nodes are observed; all of them when left out.
    names : sequence of str, optional
        Names of all nodes, or of the observed ones. Hidden nodes are called ``h1``, ``h2``, … when
        left out, observed ones ``x0``, ``x1``, ….

    Raises
    ------
    TreeError
        When the arrays break a rule; the message names the node at fault.

    References
    ----------
    M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky, "Learning latent tree graphical
    models", Journal of Machine Learning Research 12 (2011), Section 2.3 (minimal tree extensions).

    Examples
    --------
    Three variables around one hidden node:

    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
    >>> star
    Tree(3 observed, 1 hidden, 3 edges)
    >>> star.path_lengths()
    array([[0., 2., 2.],
           [2., 0., 2.],
           [2., 2., 0.]])
    """

    parent: IntArray
    length: FloatArray
    n_observed: int
    names: tuple[str, ...]
    order: IntArray
    """Every node after its parent, depth first; computed once."""

    def __init__(
        self,
        parent: ArrayLike,
        length: ArrayLike | None = None,
        n_observed: int | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        parents = _as_indices(parent)
        n = parents.size
        observed = n if n_observed is None else int(n_observed)
        _check_size(observed, n)
        _check_parents(parents)
        lengths = _as_lengths(length, parents)
        set_ = object.__setattr__
        set_(self, "parent", _frozen(parents))
        set_(self, "length", _frozen(lengths))
        set_(self, "n_observed", observed)
        set_(self, "names", _all_names(names, n, observed))
        set_(self, "order", _frozen(build.traversal(parents)))
        self._check_hidden()

    def _check_hidden(self) -> None:
        few = np.flatnonzero(self.degrees[self.n_observed :] < 3) + self.n_observed
        for node in few.tolist():
            if not self._ties_pair(node):
                raise TreeError(
                    f"hidden node {node} ({self.names[node]!r}) has {self.degrees[node]} "
                    "neighbors, but needs at least three: build with minimal=True to suppress "
                    "such nodes"
                )

    def _ties_pair(self, node: int) -> bool:
        """Whether a hidden node stands between two observed leaves and nothing else.

        Columns without states (numbers) cannot be neighbors of each other: what two of them share
        is a hidden variable between them.
        """
        ends = self.neighbors(node)
        return ends.size == 2 and bool(
            (ends < self.n_observed).all() and (self.degrees[ends] == 1).all()
        )

    # Making trees ---------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Sequence[int]] | IntArray,
        n_observed: int,
        lengths: Sequence[float] | FloatArray | None = None,
        names: Sequence[str] | None = None,
        minimal: bool = False,
    ) -> Tree:
        """Make a tree from undirected edges between integers.

        Each component is rooted at its lowest node.

        Parameters
        ----------
        edges : iterable of pairs of int, or array of shape (n_edges, 2)
            The two nodes of every edge, in any order.
        n_observed : int
            How many of the first nodes are observed.
        lengths : sequence of float, optional
            One length per edge, in the order of ``edges``; all 1 when left out.
        names : sequence of str, optional
            Names of all nodes, or of the observed ones.
        minimal : bool
            Suppress hidden nodes with fewer than three neighbors, see :meth:`from_parents`.

        Returns
        -------
        Tree

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree.from_edges([(0, 3), (1, 3), (2, 3)], n_observed=3, lengths=[0.5, 1.0, 2.0])
        Tree(3 observed, 1 hidden, 3 edges)
        """
        pairs = build._edge_array(edges)
        n = max(int(pairs.max(initial=-1)) + 1, n_observed)
        rooted = build.root_edge_list(pairs, n, lengths)
        if not minimal:
            return cls(*rooted, n_observed, names)
        _check_size(n_observed, n)
        _as_lengths(rooted.length, rooted.parent)
        return cls._of_kept(*build.pruned_forest(rooted, n_observed), n, n_observed, names)

    @classmethod
    def from_parents(
        cls,
        parent: ArrayLike,
        length: ArrayLike | None,
        n_observed: int,
        names: Sequence[str] | None = None,
        minimal: bool = False,
    ) -> Tree:
        """Make a tree from a parent array; with ``minimal=True`` suppress redundant hidden nodes.

        A hidden node is redundant when it has fewer than three neighbors. Hidden leaves are
        removed, hidden nodes with two neighbors are replaced by an edge of the summed length, and
        components without an observed node are removed. The remaining hidden nodes keep their
        order and names.

        Parameters
        ----------
        parent : array of int
            The parent of every node, −1 for a root.
        length : array of float or None
            Length of the edge above every node, 0 at roots; None for all 1.
        n_observed : int
            How many of the first nodes are observed.
        names : sequence of str, optional
            Names of all nodes, or of the observed ones.
        minimal : bool
            Whether to suppress redundant hidden nodes. Without it such a node is an error.

        Returns
        -------
        Tree

        Examples
        --------
        Hidden node 2 has two neighbors only, so an edge of length 1 + 1 replaces it:

        >>> import latentree as lt
        >>> tree = lt.Tree.from_parents([2, 2, -1], None, n_observed=2, minimal=True)
        >>> tree.n_hidden, tree.path_lengths([0], [1])
        (0, array([[2.]]))
        """
        if not minimal:
            return cls(parent, length, n_observed, names)
        parents = _as_indices(parent)
        _check_size(n_observed, parents.size)
        _check_parents(parents)
        rooted = RootedForest(parents, _as_lengths(length, parents))
        smaller, old = build.minimal_forest(rooted, n_observed)
        return cls._of_kept(smaller, old, parents.size, n_observed, names)

    @classmethod
    def _of_kept(
        cls,
        smaller: RootedForest,
        old: IntArray,
        n: int,
        n_observed: int,
        names: Sequence[str] | None,
    ) -> Tree:
        """Make a tree of the nodes that are kept of n; names are those of all, or of observed."""
        if names is not None:
            kept = _all_names(names, n, n_observed)
            names = [kept[node] for node in old[: min(len(names), old.size)]]
        return cls(*smaller, n_observed, names)

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        observed: Iterable[Hashable] | None = None,
        length: str = "length",
        minimal: bool = False,
    ) -> Tree:
        """Make a tree from an undirected networkx graph.

        Parameters
        ----------
        graph : networkx.Graph
            A forest. The names of the tree are its nodes as text.
        observed : iterable, optional
            The observed nodes in the order wanted. Without it the node attribute ``observed``
            decides.
        length : str
            The edge attribute that holds the length; edges without it have length 1.
        minimal : bool
            Suppress hidden nodes with fewer than three neighbors, see :meth:`from_parents`.

        Returns
        -------
        Tree

        Examples
        --------
        >>> import latentree as lt, networkx as nx
        >>> lt.Tree.from_networkx(nx.star_graph(3), observed=[1, 2, 3])
        Tree(3 observed, 1 hidden, 3 edges)
        """
        nodes, n_observed, edges, lengths = build.graph_edges(graph, observed, length)
        parent, lengths = build.root_edge_list(edges, len(nodes), lengths)
        names = [str(node) for node in nodes]
        return cls.from_parents(parent, lengths, n_observed, names, minimal=minimal)

    def to_networkx(self) -> networkx.Graph:
        """Return the tree as a graph of networkx whose nodes are the names.

        Returns
        -------
        networkx.Graph
            Nodes have the attribute ``observed``, edges the attribute ``length``.

        Examples
        --------
        >>> import latentree as lt
        >>> graph = lt.Tree([3, 3, 3, -1], n_observed=3).to_networkx()
        >>> graph.nodes["h1"], graph.edges["h1", "x0"]
        ({'observed': False}, {'length': 1.0})
        """
        import networkx

        graph = networkx.Graph()
        for node, name in enumerate(self.names):
            graph.add_node(name, observed=node < self.n_observed)
        for above, below in self.edges:
            length = float(self.length[below])
            graph.add_edge(self.names[above], self.names[below], length=length)
        return graph

    # What is in it --------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """Number of nodes, observed and hidden."""
        return int(self.parent.size)

    @property
    def n_hidden(self) -> int:
        """Number of hidden nodes.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.simulate.hidden_markov(80).n_hidden
        78
        """
        return self.n_nodes - self.n_observed

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.n_nodes - len(self.roots)

    @cached_property
    def roots(self) -> IntArray:
        """The root of each component."""
        return _frozen(np.flatnonzero(self.parent < 0))

    @cached_property
    def degrees(self) -> IntArray:
        """Number of neighbors of every node.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([3, 3, 3, -1], n_observed=3).degrees
        array([1, 1, 1, 3])
        """
        return _frozen(build.degrees(self.parent))

    @cached_property
    def child_lists(self) -> tuple[IntArray, IntArray]:
        """Children of all nodes end to end: those of v are ``items[starts[v]:starts[v + 1]]``.

        Examples
        --------
        >>> import latentree as lt
        >>> starts, items = lt.Tree([-1, 0, 1, 1]).child_lists
        >>> items[starts[1] : starts[2]]
        array([2, 3])
        """
        starts, items = build.child_lists(self.parent)
        return _frozen(starts), _frozen(items)

    @cached_property
    def edges(self) -> IntArray:
        """All edges as pairs (parent, child), in the order of the children.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0, 1, 1]).edges
        array([[0, 1],
               [1, 2],
               [1, 3]])
        """
        below = np.flatnonzero(self.parent >= 0)
        return _frozen(np.column_stack([self.parent[below], below]))

    @property
    def leaves(self) -> IntArray:
        """Nodes with one neighbor; all of them are observed."""
        return np.flatnonzero(self.degrees == 1)

    @property
    def hidden(self) -> IntArray:
        """The hidden nodes."""
        return np.arange(self.n_observed, self.n_nodes)

    @cached_property
    def components(self) -> IntArray:
        """The number of the component that each node is in.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0, -1]).components
        array([0, 0, 1])
        """
        return _frozen(kernels.component_numbers(self.order, self.parent))

    def children(self, node: int) -> IntArray:
        """Return the nodes whose parent is ``node``.

        Parameters
        ----------
        node : int

        Returns
        -------
        array of int
            In ascending order.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([3, 3, 3, -1], n_observed=3).children(3)
        array([0, 1, 2])
        """
        self._check_nodes(node)
        starts, items = self.child_lists
        return items[starts[node] : starts[node + 1]]

    def neighbors(self, node: int) -> IntArray:
        """Return the children of ``node``, and its parent if it has one.

        Parameters
        ----------
        node : int

        Returns
        -------
        array of int
            The children in ascending order, then the parent.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0, 1, 1]).neighbors(1)
        array([2, 3, 0])
        """
        children, above = self.children(node), self.parent[node]
        return np.append(children, above) if above >= 0 else children

    def index(self, name: str) -> int:
        """Return the number of the node called ``name``.

        Parameters
        ----------
        name : str

        Returns
        -------
        int

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0], names=["rain", "wet"]).index("wet")
        1
        """
        try:
            return self._numbers[name]
        except KeyError:
            raise TreeError(f"no node is called {name!r}{suggestion(name, self.names)}") from None

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: node for node, name in enumerate(self.names)}

    def _check_nodes(self, nodes: ArrayLike) -> IntArray:
        """Return node numbers as an array; raise if one is outside the tree."""
        # Kernels do not check bounds: a node outside the tree would read or write foreign memory.
        array = np.asarray(nodes)
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise TreeError(f"nodes must be integers, got {array.dtype}")
        array = array.astype(np.int64)
        outside = array[(array < 0) | (array >= self.n_nodes)]
        if outside.size:
            raise TreeError(f"node {outside[0]} is outside 0 … {self.n_nodes - 1}")
        return array

    # Distances ------------------------------------------------------------------------------

    def path_lengths_from(self, node: int) -> FloatArray:
        """Return the lengths of the paths from one node to all nodes.

        Parameters
        ----------
        node : int

        Returns
        -------
        array of float, one per node
            Infinite for nodes of other components.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0, 1], length=[0, 0.5, 2]).path_lengths_from(0)
        array([0. , 0.5, 2.5])
        """
        return self.path_lengths([node], np.arange(self.n_nodes)).ravel()

    def path_lengths(
        self, rows: ArrayLike | None = None, columns: ArrayLike | None = None
    ) -> FloatArray:
        """Return the lengths of the paths between two lists of nodes.

        Parameters
        ----------
        rows, columns : array of int, optional
            Nodes; all observed ones when left out.

        Returns
        -------
        array of float of shape (len(rows), len(columns))
            Infinite between components.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0, 1], length=[0, 0.5, 2]).path_lengths([0, 1], [2])
        array([[2.5],
               [2. ]])
        """
        return self._path_matrix(rows, columns, self.length)

    def hops(self, rows: ArrayLike | None = None, columns: ArrayLike | None = None) -> FloatArray:
        """Count the edges on the paths between two lists of nodes.

        Parameters
        ----------
        rows, columns : array of int, optional
            Nodes; all observed ones when left out.

        Returns
        -------
        array of float of shape (len(rows), len(columns))
            Infinite between components.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0, 1], length=[0, 0.5, 2]).hops([0, 1], [2])
        array([[2.],
               [1.]])
        """
        return self._path_matrix(rows, columns, np.ones(self.n_nodes))

    def _path_matrix(
        self, rows: ArrayLike | None, columns: ArrayLike | None, length: FloatArray
    ) -> FloatArray:
        """Return path lengths between two lists of nodes, in slices of rows on all threads."""
        observed = np.arange(self.n_observed)
        sources = observed if rows is None else self._check_nodes(rows)
        targets = observed if columns is None else self._check_nodes(columns)
        out = np.empty((sources.size, targets.size))

        def fill(part: tuple[int, int]) -> None:
            part_rows = slice(*part)
            kernels.path_length_rows(
                sources[part_rows],
                targets,
                self.order,
                self.parent,
                length,
                np.empty(self.n_nodes),
                out[part_rows],
            )

        threads.run(fill, threads.split(sources.size, 16))
        return out

    def diameter(self) -> int:
        """Count the edges of the longest path.

        Returns
        -------
        int

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([3, 3, 3, -1], n_observed=3).diameter()
        2
        """
        return int(kernels.diameter(self.order, self.parent, np.ones(self.n_nodes)))

    def effective_depth(self) -> int:
        """Return δ(T; V): the most edges between a hidden node and its nearest observed one.

        Returns
        -------
        int
            0 when no node is hidden.

        References
        ----------
        M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky, "Learning latent tree graphical
        models", Journal of Machine Learning Research 12 (2011), Section 2.1: the effective depth,
        on which the number of samples needed depends.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.simulate.hidden_markov(6).effective_depth()
        1
        >>> lt.simulate.complete_tree(3, 4).effective_depth()
        2
        """
        hops = np.ones(self.n_nodes)
        _, distance = kernels.nearest_observed(self.order, self.parent, hops, self.n_observed)
        return int(distance[self.n_observed :].max(initial=0))

    def surrogates(self) -> IntArray:
        """Return the surrogate Sg(i) of every node: the observed node at the smallest path length.

        Ties go to the lowest number, as in the minimum spanning tree. An observed node is its own
        surrogate, also where another observed node is at distance 0.

        Returns
        -------
        array of int, one per node

        References
        ----------
        M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky, "Learning latent tree graphical
        models", Journal of Machine Learning Research 12 (2011), Section 5.2.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([3, 3, 3, -1], length=[0.5, 0.2, 0.9, 0], n_observed=3).surrogates()
        array([0, 1, 2, 1])
        """
        nearest: IntArray
        nearest, _ = kernels.nearest_observed(self.order, self.parent, self.length, self.n_observed)
        return nearest

    def surrogate_sets(self) -> list[IntArray]:
        """Return for each observed node the nodes whose surrogate it is.

        Returns
        -------
        list of arrays of int, one per observed node

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([3, 3, 3, -1], length=[0.5, 0.2, 0.9, 0], n_observed=3).surrogate_sets()
        [array([0]), array([1, 3]), array([2])]
        """
        surrogates = self.surrogates()
        grouped = np.argsort(surrogates, kind="stable")
        cuts = np.searchsorted(surrogates[grouped], np.arange(1, self.n_observed))
        return np.split(grouped, cuts)

    def cut(self, k: int) -> TreeCut:
        """Cut the tree into the k tightest groups of observed variables.

        k − 1 edges are removed; each remaining component is a group, represented by one of its
        inner nodes. The path lengths of all pairs in a group, divided by its size and added up over
        the groups, are to be least. Path lengths on a tree are squared Euclidean distances, so this
        is the sum of squares that k means and Ward's method make least. Groups have at least two
        variables where that is possible. Every tree of a forest is a group or several.

        The edges are found by dividing one group, by joining many, and by exchanging single edges;
        there may be a tighter cut. (On random trees of 6 to 25 variables 98 % of the cuts into 2 to
        7 groups were the best of all, the others within 4 % of it.) It takes O(n²) steps for n
        nodes: tenths of a second for 2,000 variables.

        Parameters
        ----------
        k : int
            Number of groups, at least the number of trees of a forest.

        Returns
        -------
        TreeCut

        Raises
        ------
        TreeError
            When there are no k groups.

        References
        ----------
        J. H. Ward, "Hierarchical grouping to optimize an objective function", Journal of the
        American Statistical Association 58 (1963).

        Examples
        --------
        >>> import latentree as lt
        >>> cut = lt.simulate.double_star(6).cut(2)
        >>> dict(zip(cut.representatives, cut.groups))
        {'h1': ('x0', 'x1', 'x2'), 'h2': ('x3', 'x4', 'x5')}
        """
        return cut_tree(self, k)

    # Changing it (every operation returns a new tree) ---------------------------------------

    def rerooted(self, node: int) -> Tree:
        """Return the same tree with ``node`` as the root of its component.

        Parameters
        ----------
        node : int

        Returns
        -------
        Tree

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([3, 3, 3, -1], n_observed=3).rerooted(0).parent
        array([-1,  3,  3,  0])
        """
        self._check_nodes(node)
        parent, length = self.parent.copy(), self.length.copy()
        kernels.flip_path(parent, length, node)
        return Tree(parent, length, self.n_observed, self.names)

    def with_lengths(self, length: ArrayLike) -> Tree:
        """Return the same tree with other edge lengths.

        Parameters
        ----------
        length : array of float
            Length of the edge above every node, 0 at roots.

        Returns
        -------
        Tree

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0]).with_lengths([0, 0.25]).length
        array([0.  , 0.25])
        """
        tree = object.__new__(Tree)
        tree.__dict__.update(self.__dict__, length=_frozen(_as_lengths(length, self.parent)))
        tree.__dict__.pop("canonical", None)  # the only thing kept that depends on lengths
        return tree

    def _repr_html_(self) -> str:
        return str(displayed("tree", self))

    def renamed(self, names: Sequence[str]) -> Tree:
        """Return the same tree with other names.

        Parameters
        ----------
        names : sequence of str
            Names of all nodes, or of the observed ones.

        Returns
        -------
        Tree

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0]).renamed(["rain", "wet"]).names
        ('rain', 'wet')
        """
        return Tree(self.parent, self.length, self.n_observed, names)

    def contract(self, keep: int, drop: int) -> Tree:
        """Contract the edge between two neighbors: ``drop`` is merged into ``keep``.

        The neighbors of ``drop`` become neighbors of ``keep``. Their edges keep their lengths; the
        length of the contracted edge is lost.

        Parameters
        ----------
        keep : int
            The node that stays.
        drop : int
            A hidden neighbor of ``keep``.

        Returns
        -------
        Tree
            With one hidden node less, and without hidden nodes that became redundant.

        Examples
        --------
        >>> import latentree as lt
        >>> pair = lt.simulate.double_star(4)
        >>> pair.contract(4, 5)
        Tree(4 observed, 1 hidden, 4 edges)
        """
        self._check_nodes([keep, drop])
        if drop < self.n_observed:
            raise TreeError(f"cannot contract observed node {drop} ({self.names[drop]!r}) away")
        if self.parent[drop] == keep:
            child = drop
        elif self.parent[keep] == drop:
            child = keep
        else:
            raise TreeError(f"nodes {keep} and {drop} are not neighbors")
        tree = self.contract_edges([child])
        if keep > drop:  # two hidden nodes: the merged one has the lower number
            tree = tree.renamed([*tree.names[:drop], self.names[keep], *tree.names[drop + 1 :]])
        return tree

    def contract_edges(self, children: ArrayLike) -> Tree:
        """Contract the edges between the given nodes and their parents, all at once.

        Each merged group takes the place of its observed member, or of its lowest hidden node; a
        group may hold only one observed node. Other edges keep their lengths.

        Parameters
        ----------
        children : array of int
            The lower ends of the edges to contract.

        Returns
        -------
        Tree

        Examples
        --------
        >>> import latentree as lt
        >>> chain = lt.simulate.hidden_markov(6)
        >>> chain.contract_edges(chain.hidden)
        Tree(6 observed, 1 hidden, 6 edges)
        """
        contracted = np.zeros(self.n_nodes, bool)
        contracted[self._check_nodes(children)] = True
        group = build.merged_groups(self.parent, contracted)
        clashes = np.flatnonzero(group[: self.n_observed] != np.arange(self.n_observed))
        if clashes.size:
            clash = clashes[0]
            raise TreeError(
                f"contraction would merge observed node {clash} ({self.names[clash]!r}) "
                f"with {self.names[group[clash]]!r}"
            )
        edges, lengths = self.edges, self.length[self.edges[:, 1]]
        between = group[edges[:, 0]] != group[edges[:, 1]]
        rooted = build.root_edge_list(group[edges[between]], self.n_nodes, lengths[between])
        kept, old = build.renumber(rooted, group == np.arange(self.n_nodes))
        names = [self.names[node] for node in old]
        return Tree(*kept, self.n_observed, names)

    # Comparing ------------------------------------------------------------------------------

    @cached_property
    def canonical(self) -> Tree:
        """The same tree in one agreed form: equal trees have the same arrays.

        Every component is rooted at its lowest observed node; hidden nodes are numbered depth
        first, children in the order of the lowest observed node below them.
        """
        parent, length = build.root_at_lowest(RootedForest(self.parent, self.length))
        order = build.traversal(parent)
        lowest = kernels.subtree_minimum(order, parent, np.arange(self.n_nodes))
        order = build.traversal(parent, lowest)
        hidden = order[order >= self.n_observed]
        old = np.concatenate([np.arange(self.n_observed), hidden])
        new = np.empty(self.n_nodes + 1, np.int64)
        new[old], new[-1] = np.arange(self.n_nodes), -1
        return Tree(new[parent[old]], length[old], self.n_observed, self.names[: self.n_observed])

    def same_structure(self, other: Tree) -> bool:
        """Compare edges up to the root and the names and numbers of hidden nodes.

        Variables must have the same order in both trees;
        :func:`latentree.metrics.same_structure` matches them by name.

        Parameters
        ----------
        other : Tree

        Returns
        -------
        bool

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> star.same_structure(star.rerooted(1))
        True
        """
        return (
            self.names[: self.n_observed] == other.names[: other.n_observed]
            and self.n_nodes == other.n_nodes
            and np.array_equal(self.canonical.parent, other.canonical.parent)
        )

    def equals(self, other: Tree, tolerance: float = 0.0) -> bool:
        """Compare structures, and lengths up to a tolerance.

        Parameters
        ----------
        other : Tree
        tolerance : float
            The largest absolute difference of lengths that counts as equal.

        Returns
        -------
        bool

        Examples
        --------
        >>> import latentree as lt
        >>> lt.Tree([-1, 0], [0, 1.0]).equals(lt.Tree([-1, 0], [0, 1.001]), tolerance=0.01)
        True
        """
        return self.same_structure(other) and bool(
            np.all(np.abs(self.canonical.length - other.canonical.length) <= tolerance)
        )

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        form = self.canonical
        return hash((form.names[: form.n_observed], form.parent.tobytes(), form.length.tobytes()))

    def bipartitions(self) -> set[frozenset[frozenset[int]]]:
        """Return the splits: the two sets of observed nodes on either side of each edge.

        The sets take quadratic space; :func:`latentree.metrics.robinson_foulds` compares trees
        by :meth:`bipartition_keys` in linear time.

        Returns
        -------
        set of frozensets of two frozensets of int
            A split is of the observed nodes of the edge's component.

        Examples
        --------
        >>> import latentree as lt
        >>> splits = lt.simulate.double_star(4).bipartitions()
        >>> frozenset([frozenset([0, 1]), frozenset([2, 3])]) in splits
        True
        """
        below: list[set[int]] = [{v} if v < self.n_observed else set() for v in range(self.n_nodes)]
        for node in self.order[::-1]:
            if self.parent[node] >= 0:
                below[self.parent[node]] |= below[node]
        whole = [below[root] for root in self.roots]
        return {
            frozenset([frozenset(below[v]), frozenset(whole[self.components[v]] - below[v])])
            for v in self.edges[:, 1]
        }

    def split_keys(self) -> set[bytes]:
        """Return the keys of all splits as a set, to compare trees with.

        Returns
        -------
        set of bytes
            The rows of :meth:`bipartition_keys`.

        Examples
        --------
        >>> import latentree as lt
        >>> a, b = lt.simulate.double_star(6), lt.simulate.latent_class(6)
        >>> len(a.split_keys() - b.split_keys())
        1
        """
        return {key.tobytes() for key in self.bipartition_keys()}

    def bipartition_keys(self) -> NDArray[np.uint64]:
        """Return a 256-bit key for the split of each edge, in linear time.

        A side of an edge is named by the exclusive or of fixed pseudo-random 128-bit numbers of
        its observed nodes; a split by its two sides, the smaller first. Two different splits
        share a key with probability about 2⁻¹²⁸.

        Returns
        -------
        array of uint64 of shape (n_edges, 4)
            In the order of :attr:`edges`.

        Examples
        --------
        >>> import latentree as lt
        >>> lt.simulate.double_star(4).bipartition_keys().shape
        (5, 4)
        """
        keys = np.zeros((self.n_nodes, 2), np.uint64)
        keys[: self.n_observed] = _node_keys(self.n_observed)
        below = kernels.subtree_xor(self.order, self.parent, keys)
        child = self.edges[:, 1]
        inside = below[child]
        outside = inside ^ below[self.roots][self.components[child]]
        first = (inside[:, 0] < outside[:, 0])[:, None]
        return np.hstack([np.where(first, inside, outside), np.where(first, outside, inside)])

    def __reduce__(self) -> tuple[type[Tree], tuple[object, ...]]:
        # Through the constructor: numpy forgets on pickling that the arrays are read-only.
        return Tree, (self.parent, self.length, self.n_observed, self.names)

    # Showing --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        parts = [f"{self.n_observed} observed", f"{self.n_hidden} hidden", f"{self.n_edges} edges"]
        if len(self.roots) > 1:
            parts.append(f"{len(self.roots)} components")
        return f"Tree({', '.join(parts)})"

    def draw(self, max_nodes: int = 200, support: ArrayLike | None = None) -> str:
        """Draw the tree as text, with hidden nodes in parentheses and the lengths of edges.

        Parameters
        ----------
        max_nodes : int
            The most nodes drawn; a last line counts the others.
        support : array of float, one per node, optional
            How sure the edge above each node is, from 0 to 1, written in percent; NaN for nothing.
            See :attr:`latentree.support.Support.edge_support`.

        Returns
        -------
        str

        Examples
        --------
        >>> import latentree as lt
        >>> print(lt.Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"]).draw())
        (h1)
        ├─ a  1
        ├─ b  1
        └─ c  1
        """
        sure = None if support is None else np.asarray(support, np.float64)
        if sure is not None and sure.shape != self.parent.shape:
            raise TreeError(
                f"{self.n_nodes} nodes need as many values of support, got {sure.shape}"
            )
        return draw(
            self.parent, self.length, self.order, self.names, self.n_observed, max_nodes, sure
        )


def _as_indices(parent: ArrayLike) -> IntArray:
    array = np.asarray(parent)
    if array.ndim != 1 or array.size == 0:
        raise TreeError(f"parent must be a list of nodes, got shape {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise TreeError(f"parent must hold integers, got {array.dtype}")
    return array.astype(np.int64)


def _check_size(n_observed: int, n_nodes: int) -> None:
    if not 0 < n_observed <= n_nodes:
        raise TreeError(f"n_observed is {n_observed}, but must be from 1 to the {n_nodes} nodes")


def _check_parents(parent: IntArray) -> None:
    wrong = np.flatnonzero((parent < -1) | (parent >= parent.size))
    if wrong.size:
        node = wrong[0]
        raise TreeError(
            f"node {node} has parent {parent[node]}, but parents are −1 or 0 … {parent.size - 1}"
        )


def _as_lengths(length: ArrayLike | None, parent: IntArray) -> FloatArray:
    """Return checked lengths, one per node; all 1 below roots when left out."""
    if length is None:
        return (parent >= 0).astype(np.float64)
    array = np.array(length, np.float64) + 0.0  # −0 becomes 0: equal lengths hash equally
    if array.shape != parent.shape:
        raise TreeError(f"{parent.size} nodes need as many lengths, got shape {array.shape}")
    wrong = np.flatnonzero(~(array >= 0) | np.isinf(array))
    if wrong.size:
        node = wrong[0]
        raise TreeError(f"node {node} has length {array[node]}, but lengths are finite and ≥ 0")
    rooted = np.flatnonzero((parent < 0) & (array != 0))
    if rooted.size:
        node = rooted[0]
        raise TreeError(f"node {node} is a root, so its length must be 0, not {array[node]}")
    return array


def _all_names(names: Sequence[str] | None, n_nodes: int, n_observed: int) -> tuple[str, ...]:
    """Return distinct names of all nodes; hidden ones are numbered where they have none."""
    given = [f"x{v}" for v in range(n_observed)] if names is None else list(names)
    if len(given) not in (n_observed, n_nodes):
        raise TreeError(
            f"{len(given)} names for {n_observed} observed and {n_nodes - n_observed} hidden nodes"
        )
    if set(map(type, given)) != {str}:
        odd = next((name for name in given if not isinstance(name, str)), None)
        if odd is not None:
            raise TreeError(f"names must be strings, got {odd!r}")
    taken = set(given)
    if len(taken) < len(given):
        twice = next(name for name, count in Counter(given).items() if count > 1)
        raise TreeError(f"two nodes are called {twice!r}")
    number = 0
    while len(given) < n_nodes:
        number += 1
        if f"h{number}" not in taken:
            given.append(f"h{number}")
    return tuple(given)


def _node_keys(count: int) -> NDArray[np.uint64]:
    """Two independent 64-bit hashes of 0 … count − 1 (the finalizer of splitmix64)."""
    z = np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).reshape(count, 2)


def _frozen(array: AnyArray) -> AnyArray:
    array.flags.writeable = False
    return array

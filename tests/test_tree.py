"""Trees against their definitions, written naively with networkx."""

from __future__ import annotations

import copy
import pickle
import re
import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from latentree import Tree, simulate
from latentree.errors import TreeError
from strategies import RawForest, positive_quarters, quarters, raw_forests, relabeled, trees

STAR = {"parent": [3, 3, 3, -1], "n_observed": 3}


def graph_of(tree: Tree) -> nx.Graph:
    """The tree on its integers, with observed nodes labeled by themselves."""
    return RawForest(tree.parent.tolist(), tree.length.tolist(), tree.n_observed).graph()


def all_lengths(tree: Tree, weight: str | None = "length") -> np.ndarray:
    out = np.full((tree.n_nodes, tree.n_nodes), np.inf)
    for source, row in nx.all_pairs_dijkstra_path_length(graph_of(tree), weight=weight):
        for target, value in row.items():
            out[source, target] = value
    return out


def observed_part(nodes, tree: Tree) -> frozenset[int]:
    return frozenset(v for v in nodes if v < tree.n_observed)


def naive_bipartitions(tree: Tree) -> set[frozenset[frozenset[int]]]:
    graph = graph_of(tree)
    splits = set()
    for a, b in list(graph.edges):
        graph.remove_edge(a, b)
        sides = [observed_part(nx.node_connected_component(graph, end), tree) for end in (a, b)]
        splits.add(frozenset(sides))
        graph.add_edge(a, b)
    return splits


def naive_same(a: Tree, b: Tree) -> bool:
    """Isomorphic as graphs, with every observed node mapped to itself."""
    graphs = []
    for tree in (a, b):
        graph = graph_of(tree)
        for node in graph:
            graph.nodes[node]["label"] = node if node < tree.n_observed else None
        graphs.append(graph)
    return a.n_observed == b.n_observed and nx.is_isomorphic(
        *graphs, node_match=lambda x, y: x["label"] == y["label"]
    )


# What a tree is made of -------------------------------------------------------------------------


def test_defaults():
    tree = Tree(**STAR)
    assert tree.names == ("x0", "x1", "x2", "h1")
    assert tree.length.tolist() == [1, 1, 1, 0]
    assert tree.order.tolist() == [3, 0, 1, 2]
    assert (tree.n_nodes, tree.n_observed, tree.n_hidden, tree.n_edges) == (4, 3, 1, 3)
    assert repr(tree) == "Tree(3 observed, 1 hidden, 3 edges)"


def test_everything_is_observed_unless_said():
    assert Tree([-1, 0, 0]).n_hidden == 0


def test_hidden_names_avoid_the_observed_ones():
    tree = Tree([4, 4, 5, 5, -1, 4], n_observed=4, names=["h1", "a", "b", "h3"])
    assert tree.names == ("h1", "a", "b", "h3", "h2", "h4")


def test_a_tree_cannot_be_changed():
    given_parent, given_length = np.array([-1, 0, 0]), np.array([0.0, 1.0, 2.0])
    tree = Tree(given_parent, given_length)
    given_parent[1], given_length[1] = 2, 9.0
    assert tree.parent.tolist() == [-1, 0, 0]
    assert tree.length.tolist() == [0, 1, 2]
    with pytest.raises(AttributeError):
        tree.parent = np.array([-1, 0, 1])
    for array in (tree.parent, tree.length, tree.order, tree.degrees, tree.edges, tree.roots):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_are_equal_and_frozen(duplicate):
    tree = Tree([3, 3, 3, -1], [1, 2, 3, 0], n_observed=3, names=["a", "b", "c"])
    again = duplicate(tree)
    assert again == tree
    assert again.names == tree.names
    with pytest.raises(ValueError, match="read-only"):
        again.parent[0] = 0


RULES = [
    ({"parent": []}, "parent must be a list of nodes, got shape (0,)"),
    ({"parent": [[-1, 0]]}, "parent must be a list of nodes, got shape (1, 2)"),
    ({"parent": [-1.0, 0.0]}, "parent must hold integers, got float64"),
    ({"parent": [-1, 2]}, "node 1 has parent 2, but parents are −1 or 0 … 1"),
    ({"parent": [-1, 0, -2]}, "node 2 has parent -2, but parents are −1 or 0 … 2"),
    ({"parent": [-1, 2, 1]}, "node 1 lies on or below a cycle"),
    ({"parent": [-1, 1]}, "node 1 lies on or below a cycle"),
    ({"parent": [-1, 0], "n_observed": 0}, "n_observed is 0, but must be from 1 to the 2 nodes"),
    ({"parent": [-1, 0], "n_observed": 3}, "n_observed is 3, but must be from 1 to the 2 nodes"),
    ({"parent": [-1, 0], "length": [0]}, "2 nodes need as many lengths, got shape (1,)"),
    ({"parent": [-1, 0], "length": [0, -0.5]}, "node 1 has length -0.5, but lengths are finite"),
    ({"parent": [-1, 0], "length": [0, np.nan]}, "node 1 has length nan, but lengths are finite"),
    ({"parent": [-1, 0], "length": [0, np.inf]}, "node 1 has length inf, but lengths are finite"),
    ({"parent": [-1, 0], "length": [2, 1]}, "node 0 is a root, so its length must be 0, not 2.0"),
    ({"parent": [-1, 0, 1], "n_observed": 1}, "hidden node 1 ('h1') has 2 neighbors, but needs"),
    ({"parent": [1, -1], "n_observed": 1}, "hidden node 1 ('h1') has 1 neighbors, but needs"),
    ({"parent": [-1, -1], "n_observed": 1}, "hidden node 1 ('h1') has 0 neighbors, but needs"),
    (STAR | {"names": ["a", "b"]}, "2 names for 3 observed and 1 hidden nodes"),
    (STAR | {"names": list("abcde")}, "5 names for 3 observed and 1 hidden nodes"),
    (STAR | {"names": list("abb")}, "two nodes are called 'b'"),
    (STAR | {"names": ["a", "b", 3]}, "names must be strings, got 3"),
]


@pytest.mark.parametrize(("arguments", "message"), RULES, ids=[rule[1][:40] for rule in RULES])
def test_rules(arguments, message):
    with pytest.raises(TreeError, match=re.escape(message)):
        Tree(**arguments)


EDGE_RULES = [
    (([(0, 1), (1, 2), (2, 0)], 3), "closes a cycle, but a tree has none"),
    (([(0, 1), (1, 0)], 2), "closes a cycle"),
    (([(0, 1), (1, 1)], 2), "edge (1, 1) closes a cycle"),
    (([(0, -1)], 2), "edge (0, -1) names a node outside 0 … 1"),
    (([(0.0, 1.0)], 2), "edges must be pairs of integers, got float64"),
    (([(0, 1, 2)], 3), "edges must be pairs of nodes, got an array of shape (1, 3)"),
    (([(0, 1)], 2, [1.0, 2.0]), "1 edges need as many lengths, got shape (2,)"),
    (([(0, 1)], 0), "n_observed is 0"),
    (([(0, 1), (1, 2)], 2), "hidden node 2 ('h1') has 1 neighbors"),
]


@pytest.mark.parametrize(("arguments", "message"), EDGE_RULES)
def test_rules_of_edge_lists(arguments, message):
    with pytest.raises(TreeError, match=re.escape(message)):
        Tree.from_edges(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1, 0], None, 0), "n_observed is 0, but must be from 1 to the 2 nodes"),
        (([-1, 0], None, 5), "n_observed is 5, but must be from 1 to the 2 nodes"),
        (([-1, 0, 1, 2], None, 2, ["a", "b", "c"]), "3 names for 2 observed and 2 hidden nodes"),
        (([-1, 0], None, 1, ["a", "a"]), "two nodes are called 'a'"),
        (([-1, 7], None, 1), "node 1 has parent 7"),
        (([-1, 2, 1], None, 1), "node 1 lies on or below a cycle"),
    ],
)
def test_rules_hold_before_nodes_are_suppressed(arguments, message):
    with pytest.raises(TreeError, match=re.escape(message)):
        Tree.from_parents(*arguments, minimal=True)


@pytest.mark.parametrize("node", [-1, 4, 10**9])
@pytest.mark.parametrize(
    "operation",
    [
        Tree.path_lengths_from,
        Tree.rerooted,
        Tree.children,
        Tree.neighbors,
        lambda tree, node: tree.path_lengths([0, node]),
        lambda tree, node: tree.path_lengths([0], [node]),
        lambda tree, node: tree.hops([node]),
        lambda tree, node: tree.contract(node, 3),
        lambda tree, node: tree.contract(0, node),
        lambda tree, node: tree.contract_edges([node]),
    ],
)
def test_a_node_outside_the_tree_is_refused(operation, node):
    with pytest.raises(TreeError, match=f"node {node} is outside 0 … 3"):
        operation(Tree(**STAR), node)


def test_lists_of_nodes_hold_integers():
    with pytest.raises(TreeError, match="nodes must be integers, got float64"):
        Tree(**STAR).path_lengths([0.5])


def test_names_find_nodes():
    tree = Tree(**STAR, names=["a", "b", "c", "center"])
    assert tree.index("center") == 3
    with pytest.raises(TreeError, match="no node is called 'd'"):
        tree.index("d")


# Graphs -----------------------------------------------------------------------------------------


@given(trees())
def test_neighbors_degrees_leaves_components(tree):
    graph = graph_of(tree)
    for node in range(tree.n_nodes):
        assert sorted(tree.neighbors(node)) == sorted(graph[node])
        assert tree.degrees[node] == graph.degree[node]
        assert sorted(tree.children(node)) == [v for v in graph if tree.parent[v] == node]
    assert tree.leaves.tolist() == [v for v in graph if graph.degree[v] == 1]
    assert {tuple(sorted(edge)) for edge in tree.edges} == {tuple(sorted(e)) for e in graph.edges}
    assert tree.n_edges == graph.number_of_edges()
    groups = [set(np.flatnonzero(tree.components == c)) for c in range(len(tree.roots))]
    assert sorted(map(sorted, groups)) == sorted(map(sorted, nx.connected_components(graph)))


@given(trees())
def test_order_puts_parents_first(tree):
    position = np.argsort(tree.order)
    below = np.flatnonzero(tree.parent >= 0)
    assert sorted(tree.order) == list(range(tree.n_nodes))
    assert np.all(position[tree.parent[below]] < position[below])


@given(trees(), st.randoms())
def test_from_edges_in_any_order(tree, random):
    below = tree.edges[:, 1].tolist()
    random.shuffle(below)
    edges = [random.sample([v, tree.parent[v]], 2) for v in below]
    again = Tree.from_edges(edges, tree.n_observed, tree.length[below])
    assert again == tree
    assert again.roots.tolist() == sorted(map(min, nx.connected_components(graph_of(tree))))


@given(trees())
def test_to_networkx_and_back(tree):
    graph = tree.to_networkx()
    assert list(graph) == list(tree.names)
    numbered = nx.relabel_nodes(graph, tree.index)
    assert nx.utils.graphs_equal(nx.Graph(numbered.edges), nx.Graph(graph_of(tree).edges))
    assert Tree.from_networkx(graph) == tree
    assert Tree.from_networkx(graph, observed=tree.names[: tree.n_observed]) == tree


def test_from_networkx_takes_order_attributes_and_directions():
    graph = nx.DiGraph([("h", "a"), ("h", "b"), ("h", "c")], length=1.0)
    graph.edges["h", "b"]["weight"] = 2.5
    tree = Tree.from_networkx(graph, observed=["c", "a", "b"], length="weight")
    assert tree.names == ("c", "a", "b", "h")
    assert tree.path_lengths_from(tree.index("b")).tolist() == [3.5, 3.5, 0, 2.5]


def test_from_networkx_names_what_is_wrong():
    graph = nx.star_graph(["h", "a", "b", "c"])
    with pytest.raises(TreeError, match="node 'h' has no attribute 'observed'"):
        Tree.from_networkx(graph)
    with pytest.raises(TreeError, match="observed node 'd' is not in the graph"):
        Tree.from_networkx(graph, observed=["a", "d"])
    with pytest.raises(TreeError, match="'a' is listed twice"):
        Tree.from_networkx(graph, observed=["a", "b", "a"])
    with pytest.raises(TreeError, match="closes a cycle"):
        Tree.from_networkx(nx.MultiGraph([("a", "b"), ("a", "b")]), observed=["a", "b"])
    with pytest.raises(TreeError, match="two nodes are called '1'"):
        Tree.from_networkx(nx.Graph([(1, "1")]), observed=[1, "1"])


# Distances --------------------------------------------------------------------------------------


@given(trees(lengths=quarters), st.data())
def test_path_lengths(tree, data):
    expected = all_lengths(tree)
    observed = slice(tree.n_observed)
    np.testing.assert_array_equal(tree.path_lengths(), expected[observed, observed])
    nodes = st.lists(st.integers(0, tree.n_nodes - 1), max_size=5)
    rows, columns = data.draw(nodes), data.draw(nodes)
    block = tree.path_lengths(rows, columns)
    assert block.shape == (len(rows), len(columns))
    np.testing.assert_array_equal(block, expected[np.ix_(rows, columns)].reshape(block.shape))
    for node in rows:
        np.testing.assert_array_equal(tree.path_lengths_from(node), expected[node])


@given(trees())
def test_hops_diameter_effective_depth(tree):
    hops = all_lengths(tree, weight=None)
    np.testing.assert_array_equal(tree.hops(range(tree.n_nodes), range(tree.n_nodes)), hops)
    assert tree.diameter() == hops[np.isfinite(hops)].max()
    nearest = hops[tree.n_observed :, : tree.n_observed].min(axis=1, initial=np.inf)
    assert tree.effective_depth() == nearest.max(initial=0)


def test_figures_of_the_paper():
    assert simulate.hidden_markov(80).effective_depth() == 1
    assert simulate.hidden_markov(80).diameter() == 79
    assert simulate.complete_tree(5, 3).diameter() == 6
    assert simulate.complete_tree(3, 5).effective_depth() == 2
    assert simulate.double_star(80).diameter() == 3


# Surrogates -------------------------------------------------------------------------------------


@given(trees(lengths=positive_quarters))
def test_surrogates_are_nearest_with_ties_to_the_lowest(tree):
    lengths = all_lengths(tree)[:, : tree.n_observed]
    np.testing.assert_array_equal(tree.surrogates(), lengths.argmin(axis=1))


@given(trees(lengths=quarters))
def test_surrogates_with_edges_of_length_zero(tree):
    lengths = all_lengths(tree)[:, : tree.n_observed]
    surrogates = tree.surrogates()
    nodes = np.arange(tree.n_nodes)
    np.testing.assert_array_equal(lengths[nodes, surrogates], lengths.min(axis=1))
    observed = nodes[: tree.n_observed]
    np.testing.assert_array_equal(surrogates[observed], observed)


@given(trees())
def test_surrogate_sets_are_the_inverse(tree):
    sets = tree.surrogate_sets()
    assert len(sets) == tree.n_observed
    for observed, members in enumerate(sets):
        assert members.tolist() == np.flatnonzero(tree.surrogates() == observed).tolist()


generic_trees = st.builds(
    lambda tree, seed: simulate.random_lengths(tree, seed, 0.1, 2.0),
    trees(max_inner=8, forest=False),
    st.integers(0, 2**32),
)


@given(generic_trees)
def test_neighbors_have_neighboring_surrogates(tree):
    """Lemma "Properties of the MST", part i."""
    spanning = minimum_spanning_tree(tree.path_lengths()).toarray() > 0
    neighbors = spanning | spanning.T
    surrogates = tree.surrogates()
    for i, j in surrogates[tree.edges]:
        assert i == j or neighbors[i, j]


@given(generic_trees | trees(lengths=quarters))
def test_paths_to_surrogates_stay_in_the_inverse_set(tree):
    """Lemma "Properties of the MST", part ii; also with ties and edges of length zero."""
    graph, surrogates = graph_of(tree), tree.surrogates()
    for node in range(tree.n_nodes):
        path = nx.shortest_path(graph, node, surrogates[node])
        assert {surrogates[v] for v in path} == {surrogates[node]}


@given(generic_trees)
def test_contracting_to_surrogates_gives_the_spanning_tree(tree):
    """The remark after the lemma: the MST is the tree with every hidden node merged away."""
    surrogates = tree.surrogates()
    inside = [child for above, child in tree.edges if surrogates[above] == surrogates[child]]
    merged = tree.contract_edges(inside)
    rows, columns = minimum_spanning_tree(tree.path_lengths()).nonzero()
    assert {frozenset(map(int, edge)) for edge in merged.edges} == {
        frozenset(map(int, edge)) for edge in zip(rows, columns, strict=True)
    }


# Changing a tree --------------------------------------------------------------------------------


@given(trees(), st.data())
def test_rerooting_changes_nothing_else(tree, data):
    node = data.draw(st.integers(0, tree.n_nodes - 1))
    moved = tree.rerooted(node)
    assert moved.parent[node] == -1
    assert len(moved.roots) == len(tree.roots)
    assert nx.utils.graphs_equal(graph_of(moved), graph_of(tree))
    assert moved.names == tree.names
    assert moved == tree


@given(trees())
def test_lengths_and_names_are_replaced(tree):
    twice = tree.with_lengths(2 * tree.length).renamed([f"n{v}" for v in range(tree.n_nodes)])
    np.testing.assert_array_equal(twice.path_lengths(), 2 * tree.path_lengths())
    assert twice.names[-1] == f"n{tree.n_nodes - 1}"


@given(trees(), st.data())
def test_contraction(tree, data):
    pairs = [(a, b) for a, b in graph_of(tree).edges if max(a, b) >= tree.n_observed]
    assume(pairs)
    pair = data.draw(st.sampled_from(pairs))
    keep, drop = pair if pair[1] >= tree.n_observed else pair[::-1]
    if keep >= tree.n_observed and data.draw(st.booleans()):
        keep, drop = drop, keep
    expected = nx.contracted_nodes(graph_of(tree), keep, drop, self_loops=False, copy=True)
    smaller = tree.contract(keep, drop)
    number = {v: smaller.index(tree.names[v]) for v in expected}
    assert set(number.values()) == set(range(smaller.n_nodes))
    edges = {frozenset((number[a], number[b])): d["length"] for a, b, d in expected.edges.data()}
    assert edges == {frozenset(e): d["length"] for *e, d in graph_of(smaller).edges.data()}


@given(trees(), st.data())
def test_contraction_of_many_edges_at_once(tree, data):
    below = tree.edges[:, 1].tolist()
    children = data.draw(st.lists(st.sampled_from(below), unique=True)) if below else []
    merged = nx.Graph()
    merged.add_nodes_from(range(tree.n_nodes))
    merged.add_edges_from((v, tree.parent[v]) for v in children)
    groups = list(nx.connected_components(merged))
    if any(len(observed_part(group, tree)) > 1 for group in groups):
        with pytest.raises(TreeError, match="contraction would merge observed node"):
            tree.contract_edges(children)
        return
    group_of = {v: min(group) for group in groups for v in group}
    smaller = tree.contract_edges(children)
    number = {v: smaller.index(tree.names[v]) for v in map(min, groups)}
    kept = [v for v in tree.edges[:, 1] if v not in children]
    edges = {
        frozenset((number[group_of[v]], number[group_of[tree.parent[v]]])): tree.length[v]
        for v in kept
    }
    assert edges == {frozenset(e): d["length"] for *e, d in graph_of(smaller).edges.data()}
    assert smaller.n_nodes == len(groups)


def test_contraction_names_what_is_wrong():
    tree = Tree([4, 4, 4, -1, 3], n_observed=4, names=["a", "b", "c", "d"])
    with pytest.raises(TreeError, match="nodes 0 and 5 are not neighbors"):
        simulate.double_star(4).contract(0, 5)
    with pytest.raises(TreeError, match=r"cannot contract observed node 0 \('a'\) away"):
        tree.contract(4, 0)
    with pytest.raises(TreeError, match=r"would merge observed node 3 \('d'\) with 'a'"):
        tree.contract_edges([0, 4])


def naive_suppression(raw: RawForest) -> nx.Graph:
    graph = raw.graph()
    while True:
        hidden = [v for v in graph if v >= raw.n_observed]
        ends = [v for v in hidden if graph.degree[v] <= 1]
        inner = [v for v in hidden if graph.degree[v] == 2]
        if ends:
            graph.remove_node(ends[0])
        elif inner:
            a, b = graph[inner[0]]
            length = sum(graph.edges[inner[0], end]["length"] for end in (a, b))
            graph.remove_node(inner[0])
            graph.add_edge(a, b, length=length)
        else:
            return graph


@given(raw_forests())
def test_suppression(raw):
    expected = naive_suppression(raw)
    names = [f"n{v}" for v in range(len(raw.parent))]
    tree = Tree.from_parents(*raw, names, minimal=True)
    assert tree.names == tuple(f"n{v}" for v in sorted(expected))
    number = {v: tree.index(f"n{v}") for v in expected}
    edges = {frozenset((number[a], number[b])): d["length"] for a, b, d in expected.edges.data()}
    assert edges == {frozenset(e): d["length"] for *e, d in graph_of(tree).edges.data()}
    assert Tree.from_parents(*raw, minimal=True) == tree.renamed(
        Tree(range(-1, raw.n_observed - 1)).names
    )


@given(raw_forests())
def test_suppression_from_edges_and_graphs(raw):
    tree = Tree.from_parents(*raw, minimal=True)
    below = [v for v, above in enumerate(raw.parent) if above >= 0]
    edges = [(v, raw.parent[v]) for v in below]
    lengths = [raw.length[v] for v in below]
    assert Tree.from_edges(edges, raw.n_observed, lengths, minimal=True) == tree
    again = Tree.from_networkx(raw.graph(), range(raw.n_observed), minimal=True)
    assert again.renamed(tree.names[: tree.n_observed]) == tree


# Comparing --------------------------------------------------------------------------------------


@given(trees(), st.data())
def test_equality_forgets_roots_and_hidden_numbers(tree, data):
    same = data.draw(relabeled(tree))
    assert same == tree
    assert hash(same) == hash(tree)
    assert same.canonical.parent.tolist() == tree.canonical.parent.tolist()
    assert same.canonical.length.tolist() == tree.canonical.length.tolist()
    assert naive_same(tree, tree.canonical)


@given(trees(max_inner=3), trees(max_inner=3))
def test_same_structure_is_isomorphism_with_observed_nodes_fixed(a, b):
    assert a.same_structure(b) == naive_same(a, b)


@given(trees(), st.data())
def test_a_changed_tree_is_not_the_same(tree, data):
    between = [v for above, v in tree.edges if max(v, above) >= tree.n_observed]
    assume(between)
    smaller = tree.contract_edges([data.draw(st.sampled_from(between))])
    assert not smaller.same_structure(data.draw(relabeled(tree)))
    longer = np.array(tree.length)
    longer[data.draw(st.sampled_from(between))] += 0.5
    other = data.draw(relabeled(tree.with_lengths(longer)))
    assert other.same_structure(tree)
    assert other != tree
    assert other.equals(tree, tolerance=0.5)
    assert not other.equals(tree, tolerance=0.49)


def test_equality_looks_at_observed_names_only():
    assert Tree(**STAR, names=list("abcx")) == Tree(**STAR, names=list("abcy"))
    assert Tree(**STAR, names=list("abc")) != Tree(**STAR, names=list("abd"))
    assert Tree(**STAR) != "a tree"


def test_equal_trees_hash_equally_with_a_negative_zero():
    a, b = Tree([-1, 0], [0.0, 0.0]), Tree([-1, 0], [0.0, -0.0])
    assert a == b
    assert hash(a) == hash(b)


@given(trees())
def test_bipartitions(tree):
    assert tree.bipartitions() == naive_bipartitions(tree)
    assert len(tree.bipartitions()) == tree.n_edges  # minimality: every edge has its own


@given(trees(max_inner=4), trees(max_inner=4))
def test_keys_meet_where_bipartitions_do(a, b):
    keys = [set(map(tuple, tree.bipartition_keys().tolist())) for tree in (a, b)]
    splits = [tree.bipartitions() for tree in (a, b)]
    assert [len(k) for k in keys] == [len(s) for s in splits]
    assert len(keys[0] & keys[1]) == len(splits[0] & splits[1])


@given(trees(), st.data())
def test_keys_forget_roots_and_hidden_numbers(tree, data):
    same = data.draw(relabeled(tree))
    assert sorted(same.bipartition_keys().tolist()) == sorted(tree.bipartition_keys().tolist())


# Showing ----------------------------------------------------------------------------------------


def test_drawing():
    tree = Tree([4, 4, 5, 5, -1, 4], [1, 2, 0.5, 0.25, 0, 3], 4, list("abcd"))
    lines = [
        "(h1)",
        "├─ a  1",
        "├─ b  2",
        "└─ (h2)  3",
        "   ├─ c  0.5",
        "   └─ d  0.25",
    ]
    assert tree.draw().splitlines() == lines
    assert tree.draw(max_nodes=2).splitlines()[-1] == "… and 4 more nodes"
    assert tree.rerooted(1).draw().splitlines()[:4] == [
        "b",
        "└─ (h1)  2",
        "   ├─ a  1",
        "   └─ (h2)  3",
    ]


def test_drawing_a_forest():
    forest = Tree([-1, 0, 0, -1])
    assert forest.draw().splitlines() == ["x0", "├─ x1  1", "└─ x2  1", "x3"]
    assert repr(forest) == "Tree(4 observed, 0 hidden, 2 edges, 2 components)"


# Deep trees -------------------------------------------------------------------------------------

N_DEEP = 20_000


def observed_chain() -> Tree:
    return Tree(np.arange(-1, N_DEEP - 1))


def hidden_chain() -> Tree:
    return simulate.hidden_markov(N_DEEP // 2)


OPERATIONS = {
    "path_lengths_from": lambda tree: tree.path_lengths_from(tree.n_nodes - 1),
    "path_lengths": lambda tree: tree.path_lengths([0, 1], [2, tree.n_nodes - 1]),
    "hops": lambda tree: tree.hops([0], [tree.n_nodes - 1]),
    "diameter": Tree.diameter,
    "effective_depth": Tree.effective_depth,
    "surrogates": Tree.surrogates,
    "surrogate_sets": Tree.surrogate_sets,
    "rerooted": lambda tree: tree.rerooted(tree.n_nodes - 1),
    "with_lengths": lambda tree: tree.with_lengths(tree.length),
    "renamed": lambda tree: tree.renamed(tree.names),
    "contract_edges": lambda tree: tree.contract_edges(tree.hidden),
    "suppression": lambda tree: Tree.from_parents(
        np.arange(-1, tree.n_nodes - 1), None, 2, minimal=True
    ),
    "from_edges": lambda tree: Tree.from_edges(tree.edges, tree.n_observed),
    "networkx": lambda tree: Tree.from_networkx(tree.to_networkx()),
    "canonical": lambda tree: tree.canonical,
    "equality": lambda tree: tree == tree.rerooted(tree.n_nodes - 1),
    "hash": hash,
    "bipartition_keys": Tree.bipartition_keys,
    "components": lambda tree: tree.components,
    "draw": Tree.draw,
    "repr": repr,
    "pickle": lambda tree: pickle.loads(pickle.dumps(tree)),
}


@pytest.mark.parametrize("make", [observed_chain, hidden_chain])
def test_deep_chains_need_no_recursion_and_linear_memory(make):
    tree = make()
    peak = {}
    for name, operation in OPERATIONS.items():
        tracemalloc.start()
        operation(tree)
        peak[name] = tracemalloc.get_traced_memory()[1] / tree.n_nodes
        tracemalloc.stop()
    # Bytes a node. A graph of networkx takes 960; anything quadratic would take 8 · 20,000.
    assert max(peak.values()) < 3_000, peak


def test_deep_chains_give_the_right_answers():
    chain, hidden = observed_chain(), hidden_chain()
    assert chain.diameter() == N_DEEP - 1
    assert hidden.diameter() == N_DEEP // 2 - 1
    assert chain.path_lengths([0], [N_DEEP - 1]) == N_DEEP - 1
    assert hidden.effective_depth() == 1
    assert len(np.unique(chain.bipartition_keys(), axis=0)) == N_DEEP - 1
    assert hidden.contract_edges(hidden.hidden).n_nodes == N_DEEP // 2 + 1
    suppressed = Tree.from_parents(np.arange(-1, N_DEEP - 1), None, 1, minimal=True)
    assert suppressed.n_nodes == 1

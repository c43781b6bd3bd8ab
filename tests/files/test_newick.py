"""Newick: read back what is written, agree with dendropy and scikit-bio, refuse what is broken."""

import warnings

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from made import NASTY, named_trees, texts

from latentree import Tree
from latentree.errors import FileError
from latentree.formats import from_newick, to_newick


def observed(tree: Tree) -> list[str]:
    return list(tree.names[: tree.n_observed])


# Our own round trips ------------------------------------------------------------------------


@given(named_trees())
def test_round_trip(tree):
    assert from_newick(to_newick(tree), observed(tree)) == tree
    assert sorted(from_newick(to_newick(tree)).names[: tree.n_observed]) == sorted(observed(tree))


@given(named_trees())
def test_structure_without_lengths(tree):
    again = from_newick(to_newick(tree, lengths=False), observed(tree))
    assert again.same_structure(tree)
    assert set(again.length) <= {0.0, 1.0}


@given(named_trees())
def test_observed_inner_nodes_hung_as_leaves(tree):
    again = from_newick(to_newick(tree, inner_observed="leaf"), observed(tree))
    inner = tree.degrees[: tree.n_observed] > 1
    # Every variable is a leaf (or alone); those that were inside hang at length 0.
    assert (again.degrees[: tree.n_observed] <= 1).all()
    hung = [v for v in np.flatnonzero(inner) if again.degrees[v] == 1]
    for v in hung:
        edge = v if again.parent[v] >= 0 else again.children(v)[0]
        assert again.length[edge] == 0
    edges = [v if again.parent[v] >= 0 else again.children(v)[0] for v in hung]
    assert again.contract_edges(edges) == tree


def test_text_of_small_trees():
    star = Tree([3, 3, 3, -1], [1, 0.5, 2, 0], n_observed=3, names=["a", "b c", "it's"])
    assert to_newick(star) == "(a:1.0,'b c':0.5,'it''s':2.0);"
    assert to_newick(star, lengths=False) == "(a,'b c','it''s');"
    chain = Tree([-1, 0, 1], names=["a", "b", "c"])
    assert to_newick(chain) == "((c:1.0)b:1.0)a;"
    assert to_newick(chain, inner_observed="leaf") == "((c:1.0,b:0.0):1.0,a:0.0);"
    forest = Tree([-1, -1, 1], names=["_", "", "c"])
    assert to_newick(forest) == "'_';\n(c:1.0)'';"
    with pytest.raises(FileError, match="inner_observed is 'root'"):
        to_newick(star, inner_observed="root")
    with pytest.raises(FileError, match="Unicode"):
        to_newick(Tree([-1], names=["\ud800"]))


def test_deep_and_wide_trees():
    n = 50_000
    for parent in (np.arange(-1, n - 1), np.r_[-1, np.zeros(n - 1, int)]):
        tree = Tree(parent)
        assert from_newick(to_newick(tree), tree.names) == tree


# Reading ------------------------------------------------------------------------------------


def test_what_others_write():
    tree = from_newick(
        " [&R] ( ( Homo_sapiens :1e-1 , 'Pan ''t''' [a [nested] comment]:.2 )0.95:3E0 ,\n"
        "\tGorilla:4 , 'x_y':0 )root:7 ;\n",
        observed=["Homo sapiens", "Pan 't'", "Gorilla", "x_y"],
    )
    assert tree.names == (
        "Homo sapiens",
        "Pan 't'",
        "Gorilla",
        "x_y",
        "root",
        "h1",
    )  # 0.95 is support
    assert tree.path_lengths()[0].tolist() == pytest.approx([0, 0.3, 7.1, 3.1])


def test_rooted_binary_trees_lose_their_root():
    tree = from_newick("((a:1,b:1):0.5,(c:1,d:1):0.25);")
    assert (tree.n_observed, tree.n_hidden) == (4, 2)
    assert tree.path_lengths()[0, 2] == 2.75


def test_named_inner_nodes_are_variables_unless_told():
    assert from_newick("((a,b,c)d,e,f);").n_observed == 6
    told = from_newick("((a,b,c)d,e,f);", observed=["f", "e", "c", "b", "a"])
    assert told.names[:5] == ("f", "e", "c", "b", "a")
    assert "d" in told.names[5:]


def test_hidden_names_do_not_clash():
    tree = from_newick("((a,b,c),h1,h3,(d,e,f)x);", observed=["a", "b", "c", "d", "e", "f", "h1"])
    assert len(set(tree.names)) == tree.n_nodes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no tree"),
        (" [only a comment] ", "no tree"),
        ("(a,b)", "cut off"),
        ("(a,b", "cut off"),
        ("(a,b));", r"character 6: found '\)'"),
        ("a,b;", "character 2"),
        ("((a,b);", "character 7: found ';'"),
        ("(a b,c);", "character 4: found 'b'"),
        ("(a,b)(c,d);", "character 6"),
        ("(a,'b);", "quote that is not closed"),
        ("(a,[b);", "comment that is not closed"),
        ("(a,b]);", r"found '\]'"),
        ("(a:1:2,b:1);", "character 5"),
        ("(a:x,b:1);", "length 'x', which is no number"),
        ("(a:,b:1);", "no number"),
        ("(a:nan,b:1);", "finite"),
        ("(a:-1,b:1);", "length -1"),
        ("(a:1,b);", "1 of 2 nodes .* no length"),
        ("(a,a);", "two nodes .* called 'a'"),
        ("(a,,b);", "leaf .* no name"),
        ("(,);", "leaf .* no name"),
        (";", "leaf .* no name"),
        ("(a:1:", "character 5"),
        ("(a:", "no number"),
    ],
)
def test_broken_text(text, message):
    with pytest.raises(FileError, match=message):
        from_newick(text)


def test_observed_must_be_there():
    with pytest.raises(FileError, match=r"called 'a_b' \(an underscore"):
        from_newick("(a_b,c,d);", observed=["a_b"])
    with pytest.raises(FileError, match="twice"):
        from_newick("(a,b,c);", observed=["a", "a"])
    with pytest.raises(FileError, match="no valid tree"):
        from_newick("(a,b,c);", observed=[])


@given(st.text("()[],:;'ab_ 1.\n", max_size=30))
def test_any_text_is_a_tree_or_an_error(text):
    try:
        tree = from_newick(text)
    except FileError:
        return
    assert from_newick(to_newick(tree), observed(tree)) == tree


# Others -------------------------------------------------------------------------------------


def graph_of(edges: list[tuple], names: dict) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(names)
    for a, b, length in edges:
        graph.add_edge(a, b, length=length)
    return graph


def same_lengths(tree: Tree, graph: nx.Graph, named: dict) -> bool:
    """Whether the paths between variables are as long in another program's tree."""
    places = {name: node for node, name in named.items()}
    assert set(places) == set(observed(tree))
    for v, name in enumerate(observed(tree)):
        theirs = nx.single_source_dijkstra_path_length(graph, places[name], weight="length")
        ours = tree.path_lengths()[v]
        for other, place in places.items():
            w = tree.index(other)
            assert theirs.get(place, np.inf) == pytest.approx(ours[w])
    return True


# Both take a name that is one mark for the mark itself, in quotes too; scikit-bio misreads names of
# nothing but quotes, and turns carriage returns into line feeds.
for_dendropy = texts.filter(lambda text: text not in set("()[],:;"))
for_scikit_bio = for_dendropy.filter(lambda text: text.strip("'") and "\r" not in text)


def dendropy_tree(text: str):
    return pytest.importorskip("dendropy").Tree.get(
        data=text, schema="newick", suppress_leaf_node_taxa=True, suppress_internal_node_taxa=True
    )


@pytest.mark.parametrize("inner", ["name", "leaf"])
@settings(max_examples=40)
@given(tree=named_trees(for_dendropy, forest=False))
def test_dendropy_reads_the_same_tree(tree, inner):
    theirs = dendropy_tree(to_newick(tree, inner_observed=inner))
    named, edges, nodes = {}, [], {}
    for node in theirs.preorder_node_iter():
        nodes[id(node)] = None
        if node.label is not None:
            named[id(node)] = node.label
        if node.parent_node is not None:
            edges.append((id(node.parent_node), id(node), node.edge.length))
    assert same_lengths(tree, graph_of(edges, nodes), named)


@pytest.mark.parametrize("inner", ["name", "leaf"])
@settings(max_examples=40)
@given(tree=named_trees(for_scikit_bio, forest=False))
def test_scikit_bio_reads_the_same_tree(tree, inner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        skbio = pytest.importorskip("skbio")
    text = to_newick(tree, inner_observed=inner)
    theirs = skbio.TreeNode.read([text], format="newick", verify=False)  # it sniffs at odd names
    named, edges, nodes = {}, [], {}
    for node in theirs.preorder():
        nodes[id(node)] = None
        if node.name is not None:
            named[id(node)] = node.name
        if node.parent is not None:
            edges.append((id(node.parent), id(node), node.length))
    assert same_lengths(tree, graph_of(edges, nodes), named)


@settings(max_examples=40)
@given(named_trees(st.text("abc_ '()", min_size=2), forest=False))
def test_we_read_what_dendropy_writes(tree):
    theirs = dendropy_tree(to_newick(tree, inner_observed="leaf"))
    written = theirs.as_string(schema="newick", suppress_leaf_node_labels=False)
    again = from_newick(written, observed(tree))
    assert again == from_newick(to_newick(tree, inner_observed="leaf"), observed(tree))


@pytest.mark.parametrize("name", NASTY)
def test_every_awkward_name_survives(name):
    tree = Tree([-1, 0, 0, 0], names=[name, "p", "q", "r"])
    for inner in ("name", "leaf"):
        text = to_newick(tree, inner_observed=inner)
        assert name in from_newick(text).names
    assert from_newick(to_newick(tree), tree.names) == tree

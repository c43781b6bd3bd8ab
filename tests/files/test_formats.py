"""Formats of graphs and of Bayesian networks: other programs read what we write."""

import contextlib
import io
import itertools
import json
import re
import sys
import tracemalloc
import warnings
from pathlib import Path
from urllib.parse import unquote

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from made import NASTY, discrete_models, gaussian_models, identical, named_trees, texts, xml_texts

from latentree import (
    CountEmission,
    DiscreteTreeModel,
    GaussianEmission,
    GaussianTreeModel,
    MixedTreeModel,
    Tree,
    formats,
    models,
)
from latentree.errors import FileError, MissingExtraError
from latentree.formats import _suffixes as suffixes

STAR = Tree([3, 3, 3, -1], [0.5, 0.25, 2, 0], n_observed=3, names=["a", "b", "c", "h"])
NOISY = [[0.9, 0.1], [0.2, 0.8]]
DISCRETE = DiscreteTreeModel(STAR, [NOISY, NOISY, NOISY, [0.25, 0.75]], [["no", "yes"]] * 3)
GAUSSIAN = GaussianTreeModel(STAR, [0.8, 0.5, -0.5, 0], [1, 2, 3], [1, 0.5, 2])

MIXED = MixedTreeModel(
    STAR,
    [
        GaussianEmission([30.0, 60.0], [9.0, 9.0], resolution=1.0),
        CountEmission([1.0, 6.0]),
        NOISY,
        [0.25, 0.75],
    ],
)


def observed(tree: Tree) -> tuple[str, ...]:
    return tree.names[: tree.n_observed]


def tree_of_graph(graph: nx.Graph, name: str) -> Tree:
    """A tree from another program's graph, whose nodes carry their names."""
    first = [node for node, data in graph.nodes(data=True) if data["observed"]]
    tree = Tree.from_networkx(nx.Graph(graph), first)
    names = [graph.nodes[node][name] for node in first]
    return tree.renamed(names)


# GraphML and GEXF ---------------------------------------------------------------------------


@given(named_trees(xml_texts))
def test_graphml_round_trip(tree):
    again = formats.from_graphml(formats.to_graphml(tree))
    assert again == tree
    assert again.names == tree.names  # hidden ones too


@settings(max_examples=50)
@given(named_trees(xml_texts))
def test_networkx_reads_our_graphml(tree):
    assert tree_of_graph(nx.parse_graphml(formats.to_graphml(tree)), "name") == tree


@settings(max_examples=50)
@given(named_trees(xml_texts))
def test_networkx_reads_our_gexf(tree):
    graph = nx.read_gexf(io.BytesIO(formats.to_gexf(tree).encode()))
    assert tree_of_graph(graph, "label") == tree


def test_gexf_does_not_hold_the_date():
    assert "lastmodified" not in formats.to_gexf(STAR)
    assert formats.to_gexf(STAR) == formats.to_gexf(STAR)


@pytest.mark.parametrize("name", ["a\0", "\x01", "\x1f", "\ufffe", "\uffff", "\ud800"])
def test_xml_refuses_what_it_cannot_hold(name):
    tree = STAR.renamed([name, "b", "c"])
    for write in (formats.to_graphml, formats.to_gexf):
        with pytest.raises(FileError, match=r"which (GraphML|GEXF) cannot") as error:
            write(tree)
        assert repr(name) in str(error.value)


def test_models_add_what_they_know():
    graph = nx.parse_graphml(formats.to_graphml(GAUSSIAN))
    assert graph.edges["n3", "n2"]["correlation"] == -0.5
    graph = nx.parse_graphml(formats.to_graphml(DISCRETE))
    assert graph.nodes["n3"]["n_states"] == 2
    assert formats.from_graphml(formats.to_graphml(GAUSSIAN)) == STAR


def test_graphml_of_others():
    graph = nx.Graph()
    nx.add_path(graph, ["x", "center", "y", "z"], length=2)
    graph.add_edge("center", "w")
    text = "\n".join(nx.generate_graphml(graph))
    with pytest.raises(FileError, match=r"node 'x'.*pass observed"):
        formats.from_graphml(text)
    tree = formats.from_graphml(text, observed=["z", "w", "x"])
    # y is suppressed: two neighbors and no variable
    assert tree.path_lengths().tolist() == [[0, 5, 6], [5, 0, 3], [6, 3, 0]]
    assert tree.names == ("z", "w", "x", "center")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not XML"),
        ("hello", "not XML"),
        ("<graphml>", "not XML"),
        ("<html/>", "expected GraphML"),
        ("<graphml/>", "with 0"),
        ("<graphml><graph/><graph/></graphml>", "with 2"),
        ("<graphml><graph/></graphml>", "no valid tree"),
        ("<graphml><graph><node/></graph></graphml>", "no 'id'"),
        ('<graphml><graph><edge source="a"/></graph></graphml>', "no 'target'"),
        ('<graphml><graph><edge source="a" target="b"/></graph></graphml>', "absent node 'a'"),
        ('<graphml><key for="node"/><graph/></graphml>', "no 'id'"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><graphml/>", "DOCTYPE"),
        ("<a>" * 100_000, "not XML"),
        ("\ud800", "Unicode"),
    ],
)
def test_broken_graphml(text, message):
    with pytest.raises(FileError, match=message):
        formats.from_graphml(text)


def test_graphml_with_wrong_trees():
    text = formats.to_graphml(STAR)
    with pytest.raises(FileError, match="'x', not a finite number"):
        formats.from_graphml(text.replace(">0.25<", ">x<"))
    with pytest.raises(FileError, match="not a finite number"):
        formats.from_graphml(text.replace(">0.25<", ">nan<"))
    with pytest.raises(FileError, match=r"valid tree.*cycle"):
        formats.from_graphml(text.replace("</graph>", '<edge source="n0" target="n1"/></graph>'))
    with pytest.raises(FileError, match="called 'zz'"):
        formats.from_graphml(text, observed=["zz"])
    with pytest.raises(FileError, match="twice"):
        formats.from_graphml(text, observed=["a", "a"])


def test_graphml_defaults_are_those_of_the_keys():
    text = """<graphml><key id="k" for="node" attr.name="observed"><default>true</default></key>
    <key id="l" attr.name="length"><default>2.5</default></key>
    <graph><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>"""
    tree = formats.from_graphml(text)
    assert tree.names == ("a", "b")
    assert tree.length.tolist() == [0, 2.5]


def test_graphml_takes_memory_in_proportion():
    """Each default of each key, for each node, took gigabytes for a few megabytes."""
    keys = "".join(
        f'<key id="k{j}" for="node" attr.name="{j}"><default>x</default></key>'
        for j in range(3_000)
    )
    nodes = "".join(f'<node id="{j}"/>' for j in range(3_000))
    edges = "".join(f'<edge source="0" target="{j}"/>' for j in range(1, 3_000))
    text = f"<graphml>{keys}<graph>{nodes}{edges}</graph></graphml>"
    Tree([-1, *[0] * 2_999])  # what a tree of this size imports and compiles is not counted
    tracemalloc.start()
    try:
        tree = formats.from_graphml(text, observed=list(map(str, range(3_000))))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert tree.n_edges == 2_999
    assert peak < 50 * len(text)


@settings(max_examples=300)
@given(st.data())
def test_mutated_graphml_is_a_tree_or_an_error(data):
    text = formats.to_graphml(STAR)
    place = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(place, min(len(text), place + 30)))
    text = text[:place] + data.draw(st.text(max_size=5)) + text[end:]
    with contextlib.suppress(FileError):
        formats.from_graphml(text)


# JSON ---------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(named_trees())
def test_networkx_reads_our_cytoscape_json(tree):
    graph = nx.cytoscape_graph(json.loads(formats.to_cytoscape(tree)))
    assert tree_of_graph(graph, "name") == tree


@settings(max_examples=50)
@given(named_trees())
def test_networkx_reads_our_node_link_json(tree):
    graph = nx.node_link_graph(json.loads(formats.to_node_link(tree)), edges="edges")
    assert tree_of_graph(graph, "name") == tree


# DOT ----------------------------------------------------------------------------------------

# The grammar of quoted strings in DOT, and what Graphviz makes of a label.
_DOT_NODE = re.compile(r'  n(\d+) \[label="((?:[^"\\]|\\.)*)", shape=(box|ellipse)\];\n')
_DOT_EDGE = re.compile(r"  n(\d+) -- n(\d+) \[len=([^]]+)\];\n")
_ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\"}


def shown_by_graphviz(label: str) -> str:
    plain = re.sub(r"\\.", lambda match: _ESCAPES[match.group()], label)
    return re.sub("&amp;", "&", plain)


@given(named_trees(texts.filter(lambda text: "\0" not in text)))
def test_dot_says_the_same_tree(tree):
    text = formats.to_dot(tree)
    nodes, edges = list(_DOT_NODE.finditer(text)), list(_DOT_EDGE.finditer(text))
    # Nothing else stands in the text: no name breaks out of its quotes.
    inside = "".join(match.group() for match in nodes + edges)
    assert text == "graph latentree {\n" + inside + "}\n"
    names = [shown_by_graphviz(match[2]) for match in nodes]
    boxes = sum(match[3] == "box" for match in nodes)
    ends = [(int(match[1]), int(match[2])) for match in edges]
    again = Tree.from_edges(ends, boxes, [float(match[3]) for match in edges], names)
    assert again == tree
    for name, label in zip(tree.names, [match[2] for match in nodes], strict=True):
        assert not re.search(r"&(?!amp;)#?\w+;", label) or name != label


def test_dot_refuses_zero_characters():
    with pytest.raises(FileError, match="DOT cannot"):
        formats.to_dot(STAR.renamed(["a\0", "b", "c"]))


# BIF and pgmpy ------------------------------------------------------------------------------


def pgmpy(module: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of its own modules
        return pytest.importorskip(f"pgmpy.{module}")


def decoded(identifier: str) -> str:
    return "" if identifier == "%" else unquote(identifier)


def test_text_of_a_small_bif():
    assert formats.to_bif(DISCRETE).startswith(
        'network "latentree" {\n}\n'
        'variable "a" {\n  type discrete[2] { "no", "yes" };\n}\n'
    )  # fmt: skip
    assert formats.to_bif(DISCRETE).endswith(
        'probability ( "c" | "h" ) {\n  ( "s0" ) 0.9 0.1;\n  ( "s1" ) 0.2 0.8;\n}\n'
    )
    with pytest.raises(FileError, match="BIF holds discrete models, not a GaussianTreeModel"):
        formats.to_bif(GAUSSIAN)


@settings(max_examples=50)
@given(discrete_models(labels=texts))
def test_names_and_labels_survive_bif(model):
    text = formats.to_bif(model)
    assert '""' not in text
    variables = re.findall(
        r'^variable "([^"]+)" {\n  type discrete\[\d+\] { (.*) };\n}$', text, re.M
    )
    assert [decoded(name) for name, _ in variables] == list(model.tree.names)
    for (_, states), labels in zip(variables, model.schema.labels, strict=False):
        assert tuple(decoded(state[1:-1]) for state in states.split(", ")) == labels
    assert len({name.lower() for name, _ in variables}) == model.tree.n_nodes


def test_pgmpy_reads_our_bif():
    # All awkward names and labels in one model, because the reader takes a second to start.
    rng = np.random.default_rng(0)
    names = [*NASTY, "p", "q", "r", "hidden (1)"]
    tree = Tree([-1, *rng.integers(0, np.arange(1, len(NASTY))), *[len(names) - 1] * 3, 0],
                n_observed=len(names) - 1, names=names)  # fmt: skip
    n_states = rng.integers(1, 5, tree.n_nodes)
    tables = [
        rng.dirichlet(np.ones(n_states[v]), None if above < 0 else n_states[above])
        for v, above in enumerate(tree.parent.tolist())
    ]
    labels = [rng.choice(NASTY, k, replace=False).tolist() for k in n_states[: tree.n_observed]]
    model = DiscreteTreeModel(tree, tables, labels)
    reader = pgmpy("readwrite").BIFReader(string=formats.to_bif(model))
    assert [decoded(name) for name in reader.variable_names] == names
    for node, name in enumerate(reader.variable_names):
        states = [decoded(state) for state in reader.variable_states[name]]
        hidden = [f"s{state}" for state in range(n_states[node])]
        assert states == (labels[node] if node < tree.n_observed else hidden)
        above = tree.parent[node]
        expected = [] if above < 0 else [reader.variable_names[above]]
        assert reader.variable_parents[name] == expected
        np.testing.assert_array_equal(
            reader.variable_cpds[name], model.layout.table(model.theta, node).T
        )


def test_labels_that_look_alike_stay_apart():
    model = DiscreteTreeModel(STAR, [NOISY, NOISY, NOISY, [0.5, 0.5]], [[1, "1"]] * 3)
    assert '{ "1", "%271%27" }' in formats.to_bif(model)


def test_pgmpy_infers_as_we_do():
    infer = pgmpy("inference").VariableElimination
    network = formats.to_pgmpy(DISCRETE)
    assert network.check_model()
    assert network.latents == {"h"}
    for given_labels in itertools.product(["no", "yes"], repeat=2):
        evidence = dict(zip("ab", given_labels, strict=True))
        theirs = infer(network).query(["c"], evidence, show_progress=False)
        assert theirs.state_names["c"] == ["no", "yes"]
        np.testing.assert_allclose(theirs.values, DISCRETE.conditional("c", evidence))


def test_pgmpy_has_the_same_gaussian():
    pgmpy("models")
    network = formats.to_pgmpy(GAUSSIAN)
    assert network.check_model()
    assert network.latents == {"h"}
    mean, covariance = network.to_joint_gaussian()
    places = [list(nx.topological_sort(network)).index(name) for name in "abc"]
    np.testing.assert_allclose(mean[places], GAUSSIAN.means, atol=1e-6)
    np.testing.assert_allclose(covariance[np.ix_(places, places)], GAUSSIAN.covariance(), atol=1e-6)


def test_without_pgmpy_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgmpy", None)
    monkeypatch.setitem(sys.modules, "pgmpy.models", None)
    with pytest.raises(MissingExtraError, match="pip install pgmpy"):
        formats.to_pgmpy(DISCRETE)
    with pytest.raises(FileError, match="got a Tree"):
        formats.to_pgmpy(STAR)


# Export -------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [STAR, GAUSSIAN, DISCRETE], ids=["tree", "gaussian", "discrete"])
@pytest.mark.parametrize(
    "suffix", [".nwk", ".newick", ".graphml", ".gexf", ".dot", ".gv", ".cyjs", ".json", ".NWK"]
)
def test_export_by_suffix(tmp_path, item, suffix):
    path = tmp_path / f"out{suffix}"
    formats.export(item, path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    if suffix in (".nwk", ".newick", ".NWK", ".graphml"):
        assert formats.read_tree(path, observed=["a", "b", "c"]) == STAR
    if suffix == ".json" and item is not STAR:
        assert identical(models.load(path), item)


def test_export_of_bif(tmp_path):
    formats.export(DISCRETE, tmp_path / "m.bif")
    assert (tmp_path / "m.bif").read_text() == formats.to_bif(DISCRETE)
    for item in (GAUSSIAN, STAR):
        with pytest.raises(FileError, match=r"no\.bif: BIF holds discrete models"):
            formats.export(item, tmp_path / "no.bif")
    assert [each.name for each in tmp_path.iterdir()] == ["m.bif"]


def test_unknown_suffixes_are_refused_with_the_known_ones(tmp_path):
    for name in ("tree.pdf", "tree"):
        with pytest.raises(FileError, match=r"\.nwk, \.newick, \.graphml, .*\.bif, \.json"):
            formats.export(STAR, tmp_path / name)
    with pytest.raises(FileError, match=r"suffix '\.json' .* \.nwk, \.newick, \.graphml$"):
        formats.read_tree(tmp_path / "tree.json")
    with pytest.raises(FileError, match="expected a tree or a model, got a list"):
        formats.export([1], tmp_path / "x.nwk")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_trees(tmp_path):
    path = tmp_path / "x.nwk"
    path.write_bytes(b"(a,\xff);")
    with pytest.raises(FileError, match=r"x\.nwk: is not text in UTF-8: byte 3"):
        formats.read_tree(path)
    path.write_bytes(b"(a,")
    with pytest.raises(FileError, match=r"x\.nwk: .*cut off"):
        formats.read_tree(path)


@settings(max_examples=30)
@given(st.one_of(gaussian_models(xml_texts), discrete_models(xml_texts)))
def test_awkward_names_survive_the_disk(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("names")
    for suffix in (".nwk", ".graphml"):
        path = folder / f"tree{suffix}"
        formats.export(model, path)
        assert formats.read_tree(path, observed(model.tree)) == model.tree
    formats.export(model, folder / "model.json")
    assert identical(models.load(folder / "model.json"), model)


@pytest.mark.parametrize("name", NASTY)
def test_every_awkward_name_survives_every_format(name):
    tree = Tree([3, 3, 3, -1], n_observed=3, names=[name, "p", "q", "rest"])
    graphs = [
        nx.parse_graphml(formats.to_graphml(tree)),
        nx.read_gexf(io.BytesIO(formats.to_gexf(tree).encode())),
        nx.cytoscape_graph(json.loads(formats.to_cytoscape(tree))),
        nx.node_link_graph(json.loads(formats.to_node_link(tree)), edges="edges"),
    ]
    assert [graph.nodes["n0"]["name"] for graph in graphs] == [name] * 4
    label = _DOT_NODE.search(formats.to_dot(tree))[2]
    assert shown_by_graphviz(label) == name
    model = DiscreteTreeModel(tree, [NOISY, NOISY, NOISY, [0.5, 0.5]])
    assert decoded(re.search('variable "(.*?)"', formats.to_bif(model))[1]) == name


def test_large_trees_are_written_quickly(tmp_path):
    tree = Tree(np.arange(-1, 5_000 - 1))
    for suffix in (".nwk", ".graphml", ".gexf", ".dot", ".cyjs", ".json"):
        formats.export(tree, tmp_path / f"t{suffix}")
    assert formats.read_tree(tmp_path / "t.graphml") == tree


def test_the_page_about_files_is_true(tmp_path, monkeypatch):
    page = Path(__file__).parents[2].joinpath("docs", "reference", "model-file.md").read_text()
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    shown_file = re.search(r"```json\n(.*?)```", page, re.DOTALL)[1]
    assert Path("model.json").read_text() == shown_file
    assert identical(names["again"], names["model"])
    for suffix in suffixes.WRITERS:
        assert f"`{suffix}`" in page


# Models with numbers ----------------------------------------------------------------------------


def test_graphs_of_mixed_models_name_the_kinds():
    graph = nx.parse_graphml(formats.to_graphml(MIXED))
    assert [graph.nodes[f"n{v}"].get("kind") for v in range(4)] == [
        "real",
        "count",
        "category",
        None,
    ]
    assert [graph.nodes[f"n{v}"].get("n_states") for v in range(4)] == [None, None, 2, 2]
    assert formats.from_graphml(formats.to_graphml(MIXED)) == STAR
    assert nx.node_link_graph(json.loads(formats.to_node_link(MIXED)), edges="edges").order() == 4


def test_mixed_models_are_exported_as_trees(tmp_path):
    formats.export(MIXED, tmp_path / "m.nwk")
    assert formats.read_tree(tmp_path / "m.nwk", observed=["a", "b", "c"]) == STAR


def test_formats_of_states_refuse_numbers(tmp_path):
    with pytest.raises(
        FileError, match=r"m.bif: BIF holds states only, but 'a' is a number \(2 such"
    ):
        formats.export(MIXED, tmp_path / "m.bif")
    with pytest.raises(FileError, match="pgmpy holds states only"):
        formats.to_pgmpy(MIXED)
    categories = MixedTreeModel(STAR, [NOISY, NOISY, NOISY, [0.25, 0.75]], [["no", "yes"]] * 3)
    assert formats.to_bif(categories) == formats.to_bif(DISCRETE)

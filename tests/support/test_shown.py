"""Support wherever a tree is: estimator, method, text, files, pictures, command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import latentree as lt
from latentree.cli import _learning, main
from latentree.cli._screen import Screen
from latentree.cli._support_command import show_support
from latentree.errors import FileError, ModelError, TreeError
from latentree.explorer._payload import payload
from latentree.formats import from_newick, to_graphml, to_newick
from latentree.support import Support, load_support, support_from

TREE = lt.simulate.double_star(6)
MODEL = lt.simulate.random_gaussian_model(TREE, 0, (0.7, 0.8))
SUPPORT = support_from(TREE, [TREE, TREE, TREE, lt.simulate.latent_class(6)], ["nj"])


@pytest.fixture
def files(tmp_path):
    """A table, and a model file without support."""
    rows = np.asarray(MODEL.sample(300, 1))
    data = tmp_path / "rows.csv"
    np.savetxt(data, rows, delimiter=",", header="x0,x1,x2,x3,x4,x5", comments="")
    MODEL.save(tmp_path / "model.json", {"method": "rg"})
    return str(data), str(tmp_path / "model.json")


def test_estimator_keeps_support():
    rows = MODEL.sample(500, 1)
    fitted = lt.LatentTree("rg", n_bootstrap=8, random_state=0).fit(rows)
    again = lt.LatentTree("rg", n_bootstrap=8, random_state=0).fit(rows)
    assert fitted.support_.n_replicates == 8
    assert fitted.support_.edges == again.support_.edges
    fitted.set_params(n_bootstrap=0).fit(rows)
    assert not hasattr(fitted, "support_")


@pytest.mark.parametrize("family", ["gaussian", "discrete"])
def test_consensus_is_a_method(family):
    model = MODEL
    if family == "discrete":
        model = lt.DiscreteTreeModel.symmetric(TREE, 2, 0.1)
    rows = model.sample(2_000, 0)
    fitted = lt.LatentTree("consensus", random_state=0).fit(lt.as_table(rows, schema=model.schema))
    assert lt.metrics.same_structure(fitted.tree_, TREE)


def test_consensus_of_columns_without_hidden_variables():
    rows = np.random.default_rng(0).normal(size=(100, 2)) @ [[1.0, 0.9], [0.0, 0.5]]
    assert lt.LatentTree("consensus", random_state=0).fit(rows).n_hidden_ == 0


def test_text_has_percent():
    assert "(h2)  1  75 %" in TREE.draw(support=SUPPORT.edge_transfer)
    with pytest.raises(TreeError, match="as many values of support"):
        TREE.draw(support=[0.5])


def test_newick_labels_inner_nodes_and_reads_them():
    text = to_newick(TREE, support=SUPPORT.edge_transfer)
    assert ")75:1.0" in text
    assert from_newick(text).same_structure(TREE)


def test_newick_keeps_inner_variables_that_are_numbers_apart():
    chain = lt.Tree([-1, 0, 1], names=["a", "1998", "c"])
    text = to_newick(chain)
    assert text == "((c:1.0)'1998':1.0)a;"
    assert from_newick(text) == chain
    assert from_newick("((a:1,b:1)0.97:1,c:1,d:1);").n_observed == 4


def test_graphml_has_support_of_edges():
    import networkx as nx

    graph = nx.parse_graphml(to_graphml(MODEL, SUPPORT.edge_transfer))
    assert [edge[2] for edge in graph.edges(data="support") if edge[2] is not None] == [0.75]


def test_model_file_keeps_support(tmp_path):
    path = tmp_path / "model.json"
    MODEL.save(path, {"support": SUPPORT.as_dict()})
    found = load_support(path)
    assert found.as_dict() == SUPPORT.as_dict()
    assert found.n_hidden_distribution == SUPPORT.n_hidden_distribution
    with pytest.raises(TreeError, match="has no replicates"):
        found.consensus()
    MODEL.save(path)
    assert load_support(path) is None
    MODEL.save(path, {"support": {**SUPPORT.as_dict(), "edge_share": [0.5]}})
    with pytest.raises(FileError, match="does not fit the tree"):
        load_support(path)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("n_hidden", {"2": 10**10}),
        ("n_hidden", {"2": 4.0}),
        ("n_hidden", {"two": 4}),
        ("n_hidden", [4]),
        ("n_replicates", 10**10),
        ("n_replicates", "4"),
        ("n_replicates", True),
        ("method", "rg"),
        ("method", [1]),
        ("note", None),
        ("edge_share", ["0.5"] * 8),
        ("edge_share", [[0.5]] * 8),
        ("edge_transfer", [1e300] * 8),
        ("hidden_share", {"0": 1.0, "1": 1.0}),
        ("more", 1),
    ],
)
def test_support_of_other_types_and_sizes_is_refused(tmp_path, part, value):
    path = tmp_path / "model.json"
    MODEL.save(path, {"support": {**SUPPORT.as_dict(), part: value}})
    with pytest.raises(FileError, match=part):
        load_support(path)


def test_any_number_of_replicates_takes_no_memory(tmp_path, capsys):
    path, many = tmp_path / "model.json", 10**15
    facts = {**SUPPORT.as_dict(), "n_replicates": many, "n_hidden": {"2": many - 7, "3": 7}}
    MODEL.save(path, {"support": facts})
    found = load_support(path)
    assert found.n_hidden == {2: many - 7, 3: 7}
    for command in (["show"], ["export", str(tmp_path / "tree.nwk")]):
        assert main([command[0], str(path), *command[1:]]) == 0
    show_support(Screen(), MODEL, found)
    assert "variables: 2 in nine of ten trees" in capsys.readouterr().out


def test_picture_has_numbers_and_dotted_nodes():
    import matplotlib as mpl

    mpl.use("Agg")
    doubted = support_from(TREE, [TREE, *[lt.simulate.latent_class(6)] * 3])
    plot = lt.plot_tree(MODEL, support=doubted)
    assert "25" in {text.get_text() for text in plot.ax.texts}
    labels = {text.get_text() for text in plot.legend.get_texts()}
    assert labels == {"support, %", "hidden in under 50 %"}
    plot.ax.figure.canvas.draw()


def test_page_knows_support():
    content = payload(MODEL, "page", support=SUPPORT)
    assert content["support"]["replicates"] == 4
    assert content["support"]["origin"] == "4 trees learned by nj from resampled rows"
    assert content["support"]["measure"] == "transfer support"


def test_commands(files, capsys):
    data, model = files
    args = ["support", model, data, "-n", "6", "--out", model]
    assert main(args) == 0
    shown = capsys.readouterr().out
    assert "Found again" in shown
    assert load_support(model).n_replicates == 6
    assert main(["show", model]) == 0
    assert "%" in capsys.readouterr().out
    assert main([*args, "--json", "--method", "nj", "--block-length", "5"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["method"] == ["nj"]
    assert {edge["from"] for edge in facts["edges"]} <= {"h1", "h2"}
    assert main(["support", model, data, "--method", "up"]) == 2


def test_the_command_draws_from_the_posterior(files, capsys):
    data, model = files
    assert main(["support", model, data, "-m", "posterior", "-n", "6", "--out", model]) == 0
    shown = capsys.readouterr().out
    assert (
        "Percent: probability of the edge above, over 6 trees drawn from their posterior" in shown
    )
    assert load_support(model).are_probabilities
    assert main(["show", model]) == 0
    assert "Percent: probability of the edge above, over 6 trees" in capsys.readouterr().out


def test_what_was_learned_is_kept_if_support_fails(files, tmp_path, monkeypatch, capsys):
    def fail(*_: object, **__: object) -> None:
        raise ModelError("no support")

    monkeypatch.setattr(_learning, "measure", fail)
    out = tmp_path / "learned.json"
    assert main(["learn", files[0], "-m", "rg", "--support", "5", "--out", str(out)]) == 1
    assert "no support" in capsys.readouterr().err
    assert lt.load(out).tree.n_observed == 6


def test_independence_has_support(files, capsys):
    assert main(["learn", files[0], "-m", "independent", "--support", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["support"]["n_hidden"] == {"0": 1.0}


def test_learn_with_support(files, capsys, tmp_path):
    data, _ = files
    out = str(tmp_path / "learned.json")
    assert main(["learn", data, "-m", "rg", "--support", "5", "--out", out]) == 0
    shown = capsys.readouterr().out
    assert "Support" in shown
    assert "Percent: transfer support of the edge above, over 5 trees learned by rg" in shown
    assert isinstance(load_support(out), Support)
    assert main(["export", out, str(tmp_path / "tree.nwk")]) == 0
    assert main(["plot", out, str(tmp_path / "tree.png")]) == 0

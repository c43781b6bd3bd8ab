"""The tree in the terminal, its groups, and tables that fit the screen."""

from __future__ import annotations

import io
import json
import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import trees

import latentree as lt
from latentree import simulate
from latentree.cli._drawing import outline
from latentree.data import write_table
from latentree.models import edge_strengths
from latentree.tree import Tree

BOXES = str.maketrans("", "", "├└│─● ")


def edges_read_from(lines: list[str]) -> set[frozenset[str]]:
    """Edges as a reader sees them: an indented name hangs from the last ● or start of its line."""
    edges, starts = set(), {}
    for line in lines:
        name = line.translate(BOXES)
        indent = len(line) - len(line.lstrip("├└│─● "))
        if indent == 0:
            starts = {0: name}
            continue
        column = indent - 3
        edges.add(frozenset((starts[column], name)))
        is_trunk = line[column] == "●"
        starts = {place: node for place, node in starts.items() if place <= column}
        if is_trunk:
            starts[column] = name
        starts[indent] = name
    return edges


@given(trees(), st.randoms(use_true_random=False))
def test_a_drawing_says_the_tree(tree: Tree, random) -> None:
    strength = np.array([random.uniform(-1, 1) for _ in range(tree.n_nodes)])
    lines = outline(tree, strength)
    drawn = [f"{line.stem}{tree.names[line.node]}" for line in lines]
    expected = {frozenset((tree.names[a], tree.names[b])) for a, b in tree.edges.tolist()}
    assert edges_read_from(drawn) == expected
    joined = [v for v in range(tree.n_nodes) if tree.neighbors(v).size]
    assert sorted(line.node for line in lines) == joined
    ends = sorted(line.edge for line in lines if line.edge >= 0)
    assert ends == tree.edges[:, 1].tolist()  # every edge has its own number


@given(st.integers(3, 60), st.integers(0, 10**6))
def test_a_drawing_is_never_deep(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for tree in (simulate.random_latent_tree(m, rng), simulate.hidden_markov(m)):
        lines = outline(tree, np.ones(tree.n_nodes))
        assert max(len(line.stem) for line in lines) <= 3 * (math.log2(m) + 1)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """A model of a long chain of hidden variables."""
    path = tmp_path_factory.mktemp("chain") / "m.json"
    tree = simulate.hidden_markov(150)
    names = [f"a rather long name of variable {j}" for j in range(150)]
    model = simulate.random_gaussian_model(tree.renamed([*names, *tree.names[150:]]), 0, (0.7, 0.9))
    model.save(path)
    return path, model


def test_show_draws_a_long_chain_in_80_columns(run, chain):
    path, model = chain
    code, out, _ = run("show", path)
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    strength = edge_strengths(model)
    for node in range(150):
        name, edge = model.tree.names[node], strength[node]
        assert any(line.endswith(f" {name}  {edge:.2f}") for line in lines)
    assert "● continues its line" in out
    assert "Strength of an edge: correlation of its ends; along a path the product." in out


def test_learn_draws_what_show_draws(run, made, tmp_path):
    for kind in ("real", "words"):
        _, learned, _ = run("learn", made / f"{kind}.csv", "-o", tmp_path / "m.json")
        _, shown, _ = run("show", tmp_path / "m.json")
        drawing = re.search(r"\n\n((?:[^\n]+\n)*\nStrength of an edge.*)\n", shown)[1]
        assert drawing in learned
        assert ("Cramér's V" in drawing) == (kind == "words")


def test_variables_on_their_own_are_one_line(run, tmp_path):
    tree = Tree([-1, 0, -1, -1], names=["a", "b", "c", "d"])
    lt.GaussianTreeModel(tree, [0, 0.5, 0, 0]).save(tmp_path / "m.json")
    _, out, _ = run("show", tmp_path / "m.json")
    assert "\na\n└─ b  0.50\nOn their own: c, d\n" in out


def test_drawings_are_ascii_where_nothing_else_can_be_printed(run, chain, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    path, _ = chain
    code = lt.cli.main(["show", str(path)])
    stream.flush()
    out = stream.buffer.getvalue().decode("latin-1")
    assert code == 0
    tree = out.split("\n\n")[1]
    assert tree.isascii()
    assert re.search(r"^\|- a rather", tree, re.M)
    assert re.search(r"^\|  \*- \(h", tree, re.M)
    assert "?" not in tree


# Groups -----------------------------------------------------------------------------------------


def test_show_cuts_the_tree_into_groups(run, chain, monkeypatch):
    path, model = chain
    cut = lt.models.fitted_tree(model).cut(4)
    code, out, _ = run("show", path, "--cut", "4", "--json")
    assert code == 0
    found = json.loads(out)["cut"]
    assert [tuple(group["variables"]) for group in found] == list(cut.groups)
    assert [group["representative"] for group in found] == list(cut.representatives)
    code, out, _ = run("show", path, "--cut", "4")
    assert "4 groups, the tightest of the tree:" in out
    assert "\x1b[" not in out
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, colored, _ = run("show", path, "--cut", "4")
    for group in cut.groups:
        codes = {
            re.search(rf"\x1b\[(\d+)m\S* ?{re.escape(name)}\x1b", colored)[1] for name in group
        }
        assert len(codes) == 1
    _, _, err = run("show", path, "--cut", "0")
    assert "--cut" in err
    code, _, err = run("show", path, "--cut", "151")
    assert (code, err.startswith("error: --cut is 151, but the 150 variables")) == (1, True)


def test_pictures_and_pages_have_the_groups_of_a_cut(run, made, tmp_path):
    model = made / "real.json"
    (tmp_path / "g.csv").write_text("a,1\nb,1\n")
    for command, out in (("plot", "m.svg"), ("explore", "m.html")):
        code, _, err = run(command, model, tmp_path / out, "--cut", "2")
        assert code == 0, err
        assert (tmp_path / out).exists()
        code, _, err = run(
            command, model, tmp_path / out, "--cut", "2", "--groups", tmp_path / "g.csv"
        )
        assert (code, "--cut" in err) == (2, True)


def test_a_cut_is_a_set_of_groups():
    model = simulate.random_gaussian_model(simulate.double_star(6), 0)
    cut = model.tree.cut(2)
    assert dict(cut.items()) == {
        name: speaker
        for group, speaker in zip(cut.groups, cut.representatives, strict=True)
        for name in group
    }
    drawn = lt.plot_tree(model, groups=cut)
    texts = [text.get_text() for text in drawn.legend.get_texts()]
    assert set(cut.representatives) <= set(texts)


# Tables that fit --------------------------------------------------------------------------------


def test_many_states_fit_80_columns(run, tmp_path):
    tree = simulate.latent_class(4)
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.ones(3), 12) for _ in range(4)] + [np.full(12, 1 / 12)]
    labels = [("a very long label of an answer, longer than others", "b", "c")] * 4
    lt.DiscreteTreeModel(tree, tables, labels).save(tmp_path / "m.json")
    code, out, _ = run("show", tmp_path / "m.json")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for state in range(12):
        [line] = [line for line in out.splitlines() if re.search(rf"\b{state}: 8\.3 %", line)]
        assert line.startswith("States of h1")
    for cell in np.ravel(tables[0]):
        assert f"{100 * cell:.1f} %" in out


# Mistyped names ---------------------------------------------------------------------------------


def test_mistyped_names_get_a_suggestion(run, made, tmp_path):
    names = ["height", "weight", "Age", "income", "visits", "smokes"]
    rows = simulate.random_gaussian_model(simulate.double_star(6), 0).sample(100, 1)
    path = tmp_path / "people.csv"
    write_table(path, names, rows)
    meant = "(did you mean 'weight'?)"
    for option in (["--columns", "height,wieght"], ["--drop", "wieght"], ["--kind", "wieght=real"]):
        code, _, err = run("learn", path, *option)
        assert (code, meant in err) == (1, True), err
    assert run("learn", path, "-q", "-o", tmp_path / "m.json")[0] == 0
    code, _, err = run("predict", tmp_path / "m.json", path, "-c", "wieght")
    assert (code, meant in err) == (1, True)
    model = lt.load(tmp_path / "m.json")
    with pytest.raises(lt.errors.TreeError, match="did you mean 'Age'"):
        model.marginal("age")
    with pytest.raises(lt.errors.DataError, match="did you mean 'smokes'"):
        lt.plot_tree(model, groups={"smoke": 1})
    with pytest.raises(lt.errors.TreeError, match=r"no node is called 'shoe size'$"):
        model.marginal("shoe size")

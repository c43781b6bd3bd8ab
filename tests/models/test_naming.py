"""Automatic names by information, and names that people give."""

from __future__ import annotations

import json

import numpy as np
import pytest

import latentree as lt
from latentree import CountEmission, GaussianEmission, MixedTreeModel, Tree, simulate
from latentree.errors import DataError, FileError
from latentree.models import Names, captions, most_informed


def gaussian(seed: int) -> lt.GaussianTreeModel:
    tree = simulate.random_latent_tree(14, seed, inner_share=0.3)
    return simulate.random_gaussian_model(tree, seed, negative_share=0.3)


def discrete(seed: int) -> lt.DiscreteTreeModel:
    rng = np.random.default_rng(seed)
    tree = simulate.random_latent_tree(12, rng, inner_share=0.3)
    tree = tree.rerooted(int(rng.integers(tree.n_nodes)))
    return simulate.random_discrete_model(tree, rng.integers(2, 4, tree.n_nodes), rng)


def information(joint) -> float:
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float((joint * np.log(joint / outer)).sum())


def ranked(model, node: int, nats) -> list[tuple[int, float]]:
    found = [(v, nats(v)) for v in range(model.tree.n_observed) if v != node]
    return sorted(found, key=lambda pair: -pair[1])


@pytest.mark.parametrize("seed", range(6))
def test_most_informed_are_those_of_all_pairs(seed):
    model = gaussian(seed)
    for h in model.tree.hidden.tolist():
        rho = model.correlation([h], range(model.tree.n_nodes))[0]
        wanted = ranked(model, h, lambda v, rho=rho: -0.5 * np.log(1 - rho[v] ** 2))
        found = most_informed(model, h, 5)
        assert [one.variable for one in found] == [v for v, _ in wanted[:5]]
        assert [one.nats for one in found] == pytest.approx([x for _, x in wanted[:5]])


@pytest.mark.parametrize("seed", range(6))
def test_most_informed_of_states_are_those_of_all_pairs(seed):
    model = discrete(seed)
    for h in model.tree.hidden.tolist():
        wanted = ranked(model, h, lambda v, h=h: information(model.joint(h, v)))
        found = most_informed(model, model.tree.names[h], 4)
        assert [one.variable for one in found] == [v for v, _ in wanted[:4]]
        assert [one.nats for one in found] == pytest.approx([x for _, x in wanted[:4]])


def mixed() -> MixedTreeModel:
    star = Tree([4] * 4 + [-1], n_observed=4, names=["age", "visits", "health", "noise"])
    parameters = [
        GaussianEmission([30.0, 60.0], [10.0, 5.0], resolution=1.0),
        CountEmission([1.0, 2.0], [2.0, np.inf]),
        [[0.1, 0.4, 0.5], [0.5, 0.3, 0.2]],
        [[0.7, 0.3], [0.7, 0.3]],
        [0.7, 0.3],
    ]
    labels = [(), (), ("poor", "fair", "good"), (0, 1)]
    return MixedTreeModel(star, parameters, labels, ["real", "count", "ordered", "category"])


def test_numbers_inform_by_their_cells_and_noise_does_not_name():
    words = captions(mixed())["h1"].split(" · ")
    assert words[0] == "age"
    assert set(words) == {"age", "visits", "health"}


def test_names_reach_beyond_neighbors():
    """A hidden variable is called by what depends on it most, adjacent or not."""
    #  h1 -- x0 (weak), h1 == h2 == x1, x2 (strong), h1 - x3 (weak)
    tree = Tree([4, 5, 5, 4, -1, 4], n_observed=4)
    model = lt.GaussianTreeModel(tree, [0.1, 0.95, 0.9, 0.12, 0, 0.98])
    assert [one.variable for one in most_informed(model, "h1", 2)] == [1, 2]
    assert captions(model)["h1"] == "x1 · x2 (h1)"  # h2 is called so too


def test_captions_are_distinct_and_leave_given_names_alone():
    tree = Tree([4, 4, 5, 5, -1, 4], n_observed=4, names=["a", "b", "c", "d", "mood", "h2"])
    model = lt.GaussianTreeModel(tree, [0.9, 0.9, 0.8, 0.8, 0, 0.99])
    assert list(captions(model)) == ["h2"]
    many = simulate.random_gaussian_model(simulate.random_latent_tree(60, 1), 1)
    texts = list(captions(many).values())
    assert len(set(texts)) == len(texts) == many.tree.n_hidden
    renamed = many.rename()
    assert list(renamed.tree.names[60:]) == texts


@pytest.mark.parametrize("model", [gaussian(7), discrete(8), mixed()])
def test_renaming_changes_names_only(model, tmp_path):
    name, h = model.tree.names[0], model.tree.names[-1]
    other = model.rename({h: "mood", name: "first"})
    assert (other.tree.names[0], other.tree.names[-1]) == ("first", "mood")
    assert other.schema.names[0] == "first"
    assert model.tree.names[0] == name
    rows = model.sample(5, 0)
    given = dict(zip(other.schema.names, np.asarray(rows, object).T, strict=True))
    assert other.log_likelihood(given).tolist() == model.log_likelihood(rows).tolist()
    other.save(tmp_path / "model.json")
    assert lt.load(tmp_path / "model.json").tree.names == other.tree.names


def test_a_file_of_names_comes_back(tmp_path):
    names = Names({"h1": "état <d'esprit>"}, {"h1": ["bas", "haut"]}, {"h1": "a\nnote"})
    path = tmp_path / "names.json"
    names.save(path)
    assert Names.load(path) == names
    named = mixed().rename(path)
    assert named.tree.names[-1] == "état <d'esprit>"
    named.save(tmp_path / "model.json")
    loaded = lt.load(tmp_path / "model.json")
    for model in (named, loaded, loaded.rename({"age": "years"})):
        assert model.state_names == {"état <d'esprit>": ["bas", "haut"]}
        assert model.notes == {"état <d'esprit>": "a\nnote"}
    assert lt.models.encode(loaded) == lt.models.encode(named)
    again = loaded.rename(Names({"état <d'esprit>": "h1"}, notes={"age": "in years"}))
    assert again.notes == {"h1": "a\nnote", "age": "in years"}
    assert again.state_names == {"h1": ["bas", "haut"]}


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"states": {"h1": ["low"]}}, "2 states"),
        ({"states": {"h9": ["low", "high"]}}, "no node 'h9'"),
        ({"states": {"h1": [1, 2]}}, "must be a string"),
        ({"notes": {"h1": 3}}, "must be a string"),
        ({"notes": {"h9": "x"}}, "no node 'h9'"),
        ({"notes": []}, "notes"),
    ],
)
def test_names_of_a_model_file_are_checked(tmp_path, field, words):
    content = json.loads(lt.models.encode(mixed()))
    (tmp_path / "model.json").write_text(json.dumps(content | field), "utf-8")
    with pytest.raises(FileError, match=words):
        lt.load(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "no JSON"),
        ("[]", "is not a file of names"),
        ('{"format": "latentree names", "version": 2}', "version 2"),
        ('{"format": "latentree names", "version": 1, "names": {"h1": 3}}', '"names"'),
        ('{"format": "latentree names", "version": 1, "states": {"h1": "ab"}}', '"states"'),
    ],
)
def test_files_that_hold_no_names_are_refused(tmp_path, content, words):
    path = tmp_path / "names.json"
    path.write_text(content, "utf-8")
    with pytest.raises(FileError, match=words):
        Names.load(path)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"h9": "mood"}, "no node 'h9'"),
        ({"h1": "age"}, "'age' would be the name of 2 nodes"),
        ({"h1": " "}, "empty"),
        (Names(states={"h1": ["one"]}), "2 states"),
        (Names(states={"h1": ["one", "one"]}), "different"),
        (Names(states={"age": ["young", "old"]}), "no hidden variable"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, words):
    with pytest.raises(DataError, match=words):
        mixed().rename(names)


def test_the_file_is_as_documented(tmp_path):
    Names({"h1": "mood"}).save(tmp_path / "names.json")
    content = json.loads((tmp_path / "names.json").read_text("utf-8"))
    assert content["format"] == "latentree names"
    assert sorted(content) == ["format", "names", "notes", "states", "version"]

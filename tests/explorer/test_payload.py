"""The file itself: what is in it, how large it is, and how it is written."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from importlib import resources, util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from latentree import (
    DiscreteTreeModel,
    GaussianEmission,
    GaussianTreeModel,
    MixedTreeModel,
    Table,
    Tree,
    models,
    simulate,
)
from latentree.errors import DataError, ModelError
from latentree.explorer import _bundle, write_explorer
from latentree.explorer._bundle import as_json, joined
from latentree.explorer._payload import payload
from latentree.explorer._picture import picture
from latentree.inference import ZeroInflatedEmission
from latentree.plot import group_observed, layered_layout, radial_layout

STAR = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
GAUSSIAN = GaussianTreeModel(STAR, [0.8, 0.5, -0.5, 0], [1, 2, 3], [1, 0.5, 2])
ESBUILD = os.environ.get("LATENTREE_ESBUILD", "")
"""Path of esbuild, as npm install esbuild brings it."""

NOISY = [[0.9, 0.1], [0.2, 0.8]]


def numbers(text: str) -> list[float]:
    return np.frombuffer(base64.b64decode(text[2:]), f"<{text[:2]}").tolist()


def embedded(path) -> dict:
    page = path.read_text("utf-8")
    return json.loads(re.search(r'id="payload">(.*?)</script>', page, re.DOTALL)[1])


def test_a_gaussian_model_is_in_the_page_to_the_last_bit(tmp_path):
    write_explorer(GAUSSIAN, tmp_path / "tree.html", title="Three")
    found = embedded(tmp_path / "tree.html")
    assert found["title"] == "Three"
    assert found["names"] == ["a", "b", "c", "h1"]
    assert numbers(found["parent"]) == [3, 3, 3, -1]
    assert numbers(found["correlations"]) == GAUSSIAN.correlations.tolist()
    assert numbers(found["scales"]) == [1, 0.5, 2]


def test_labels_keep_their_types():
    labels = [[0, 1], [1.0, "1"], [True, None]]
    model = DiscreteTreeModel(STAR, [NOISY, NOISY, NOISY, [0.5, 0.5]], labels)
    found = payload(model, "t")["labels"]
    sets = [found["sets"][int(i)] for i in numbers(found["which"])]
    assert sets == [["0", "1"], ["1.0", '"1"'], ["true", "null"]]


def test_a_fitted_estimator_is_taken_for_its_model(tmp_path):
    class Fitted:
        model_ = GAUSSIAN

    write_explorer(Fitted(), tmp_path / "tree.html")
    assert embedded(tmp_path / "tree.html")["observed"] == 3


def test_a_tree_is_refused(tmp_path):
    with pytest.raises(ModelError, match="fit_parameters"):
        write_explorer(STAR, tmp_path / "tree.html")
    assert not list(tmp_path.iterdir())


# Groups and data --------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [{"c": "x", "a": "y"}, ["y", None, "x"]])
def test_groups_are_numbered_as_they_appear(groups):
    found = payload(GAUSSIAN, "t", groups=groups)["groups"]
    assert [style["label"] for style in found["styles"]] == ["y", "x", "no group"]
    assert numbers(found["numbers"]) == [0, 2, 1]
    for style in found["styles"]:
        assert re.fullmatch(r"#\w{6}", style["color"])
        assert re.fullmatch(r"#\w{6}", style["dark_color"])


def test_without_groups_all_variables_look_alike():
    found = payload(GAUSSIAN, "t")["groups"]
    assert [style["label"] for style in found["styles"]] == [None]
    assert numbers(found["numbers"]) == [0, 0, 0]


# The picture ------------------------------------------------------------------------------------


def test_strengths_of_numbers_have_the_signs_of_the_model():
    model = GaussianTreeModel(STAR, [-0.8, -0.5, 0.3, 0])
    found = payload(model, "t")
    assert numbers(found["strengths"]) == [-0.8, -0.5, 0.3, 0]
    assert numbers(found["signs"]) == [1, 1, 1, 1]


def test_two_hidden_states_are_turned_so_that_few_edges_are_negative():
    model = DiscreteTreeModel(STAR, [NOISY[::-1], NOISY[::-1], NOISY, [0.5, 0.5]])
    found = payload(model, "t")
    assert np.sign(numbers(found["strengths"])).tolist() == [1, 1, -1, 0]
    assert numbers(found["signs"]) == [1, 1, 1, -1]


SHAPES = {
    "star": simulate.latent_class(30),
    "two halves": simulate.double_star(40),
    "observed inside": simulate.random_latent_tree(80, 3, inner_share=0.6),
    "chain": Tree(np.arange(-1, 79)),
    "forest": Tree([-1, 0, 0, -1, 3, -1, -1, 8, -1, 8, 8]),
    "one": Tree([-1]),
}


def chains(found: dict, parent: list[int]) -> list[np.ndarray]:
    """For every node the points of its edge: a start, then control point and end of parabolas."""
    at = np.stack([numbers(found["x"]), numbers(found["y"])], axis=1)
    points = iter(np.reshape(numbers(found["points"]), (-1, 2)))
    sizes = np.diff(numbers(found["starts"]))
    return [
        np.array([at[above], *itertools.islice(points, size - 2), at[v]] if above >= 0 else [])
        for v, (above, size) in enumerate(zip(parent, sizes, strict=True))
    ]


def along(chain: np.ndarray, per_piece: int = 50) -> np.ndarray:
    t = np.linspace(0, 1, per_piece)[:, None]
    pieces = [chain[i : i + 3] for i in range(0, len(chain) - 1, 2)]
    return np.concatenate([(1 - t) ** 2 * a + 2 * t * (1 - t) * c + t**2 * b for a, c, b in pieces])


@pytest.mark.parametrize("kind", ["radial", "layered"])
@pytest.mark.parametrize("tree", SHAPES.values(), ids=SHAPES)
def test_the_picture_is_that_of_the_layouts(tree, kind):
    grouping = group_observed(tree, None)
    content = picture(tree, tree.length, grouping)
    found, parent = content[kind], numbers(content["parent"])
    placed = layered_layout(tree)
    if kind == "radial":
        reach = [0.6 * len(name) + 1 for name in tree.names[: tree.n_observed]]
        placed = radial_layout(tree, reach=reach, aspect=1.4)
    width = 1.0 if kind == "radial" else 1.4 * (np.ptp(placed.position[:, 1]) + 1)
    at = np.stack([numbers(found["x"]), numbers(found["y"])], axis=1)
    assert at == pytest.approx(placed.position * (1, -1), rel=1e-6, abs=1e-6)
    assert numbers(found["angle"]) == pytest.approx(-placed.angle, abs=1e-6)
    assert numbers(found["slot"]) == placed.has_slot.tolist()
    edges = {
        frozenset(edge): path for edge, path in zip(tree.edges.tolist(), placed.paths, strict=True)
    }
    for v, (above, chain) in enumerate(zip(parent, chains(found, parent), strict=True)):
        if above < 0:
            assert len(chain) == 0
            continue
        path = edges.pop(frozenset((v, above))) * (width, -1)
        drawn = along(chain) * (width, 1)
        apart = np.hypot(*(path[:, None] - drawn).transpose(2, 0, 1)).min(axis=1)
        assert apart.max() < 0.04 + np.hypot(*np.diff(drawn, axis=0).T).max()
    assert not edges


def test_the_middle_of_the_picture_is_the_middle_of_the_tree():
    tree = simulate.latent_class(9).rerooted(4)
    assert numbers(picture(tree, tree.length, group_observed(tree, None))["parent"]) == [9] * 9 + [
        -1
    ]
    halves = simulate.double_star(12).rerooted(3)
    parent = numbers(picture(halves, halves.length, group_observed(halves, None))["parent"])
    assert sorted(parent[12:]) == [-1, 12]


def test_unknown_names_in_groups_are_refused():
    with pytest.raises(DataError, match="'z'"):
        payload(GAUSSIAN, "t", groups={"z": 1})
    with pytest.raises(DataError, match="3 observed variables need as many groups, not 2"):
        payload(GAUSSIAN, "t", groups=["x", "y"])


def test_unknown_columns_in_data_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0], "b": [2.0], "zebra": [3.0]})
    with pytest.raises(DataError):
        payload(GAUSSIAN, "t", data=frame)


def test_gaussian_data_becomes_counts():
    data = np.array([[1.0, 5.0, np.nan], [2.0, 5.0, 0.0], [4.0, 5.0, 1.0]])
    found = payload(GAUSSIAN, "t", data=data)["data"]
    assert found["rows"] == 3
    assert numbers(found["missing"]) == [0, 0, 1]
    assert np.allclose(numbers(found["mean"]), [7 / 3, 5, 0.5])
    assert np.allclose(numbers(found["deviation"]), [np.std([1, 2, 4]), 0, 0.5])
    counts = np.reshape(numbers(found["counts"]), (3, found["bins"]))
    assert counts.sum(axis=1).tolist() == [3, 3, 2]
    assert counts[0].tolist() == np.histogram([1, 2, 4], found["bins"])[0].tolist()


def test_discrete_data_becomes_counts():
    model = DiscreteTreeModel(STAR, [NOISY, NOISY, NOISY, [0.5, 0.5]])
    data = np.array([[0, 1, 1], [1, 1, -1], [1, 1, 0]])
    found = payload(model, "t", data=np.where(data < 0, np.nan, data))["data"]
    assert numbers(found["counts"]) == [1, 2, 0, 3, 1, 1]


def mixed() -> MixedTreeModel:
    age = GaussianEmission([30.0, 60.0], [10.0, 5.0], resolution=1.0)
    visits = ZeroInflatedEmission([1.0, 6.0], [2.0, np.inf], [0.25, 0.0])
    labels = [(), (), ("no", "yes")]
    return MixedTreeModel(STAR, [age, visits, NOISY, [0.7, 0.3]], labels)


def test_emissions_are_in_the_page_to_the_last_bit():
    found = payload(mixed(), "t")
    assert found["kinds"] == ["real", "count", "category"]
    assert numbers(found["emissions"]["mean"]) == [30, 60, 1, 6]
    assert numbers(found["emissions"]["spread"]) == [10, 5, 2, np.inf]
    assert numbers(found["emissions"]["zeros"]) == [0, 0, 0.25, 0]
    assert numbers(found["emissions"]["resolution"]) == [1, 1]
    cells = np.reshape(numbers(found["emissions"]["cells"]), (4, -1))
    assert cells.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-6)


def test_mixed_data_becomes_counts_of_states_and_bins():
    model = mixed()
    cells = np.array([[20.0, 0, 0], [40.0, 3, 1], [np.nan, 4, 1]])
    found = payload(model, "t", data=Table(cells, model.schema))["data"]
    bins, counts = found["bins"], np.array(numbers(found["counts"]))
    assert numbers(found["missing"]) == [1, 0, 0]
    assert numbers(found["low"])[:2] == [20, -0.5]
    assert numbers(found["high"])[:2] == [40, bins - 0.5]  # a bar is one count wide
    assert counts[:bins].sum() == 2
    assert counts[bins : bins + 5].tolist() == [1, 0, 0, 1, 1]
    assert counts[2 * bins :].tolist() == [1, 2]


# Safety -----------------------------------------------------------------------------------------


def test_no_name_can_end_the_script(tmp_path):
    names = ["</script><script>alert(1)</script>", "<!--", "{{style}}"]
    model = GaussianTreeModel(STAR.renamed(names), [0.8, 0.5, -0.5, 0])
    write_explorer(model, tmp_path / "tree.html", title="</title><b>{{script}}", groups=names)
    page = (tmp_path / "tree.html").read_text("utf-8")
    assert embedded(tmp_path / "tree.html")["names"][:3] == names
    assert page.count("<script") == 2
    assert "<b>" not in page
    assert "&lt;/title&gt;&lt;b&gt;{{script}}" in page


def test_json_for_a_script_has_nothing_that_ends_it():
    text = as_json({"k": "<script>\u2028\ud800"})
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"k": "<script>\u2028\ud800"}
    text.encode()


def test_the_policy_allows_the_script_and_the_style_alone(tmp_path):
    write_explorer(GAUSSIAN, tmp_path / "tree.html")
    page = (tmp_path / "tree.html").read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


# Size -------------------------------------------------------------------------------------------


def test_pages_are_small(tmp_path):
    rng = np.random.default_rng(0)
    small = simulate.random_latent_tree(100, rng)
    model = simulate.random_discrete_model(small, 4, rng)
    write_explorer(model, tmp_path / "small.html", data=model.sample(500, 0))
    assert (
        tmp_path / "small.html"
    ).stat().st_size < 420_000  # of an install without node: see the bundled pages
    large = simulate.random_latent_tree(7000, rng)
    states = [2 + node % 5 for node in range(large.n_nodes)]
    write_explorer(simulate.random_discrete_model(large, states, rng), tmp_path / "large.html")
    assert large.n_nodes > 10_000
    assert (tmp_path / "large.html").stat().st_size < 5_000_000


# Scripts ----------------------------------------------------------------------------------------


ENTRIES = ("main.js", "topics_main.js")


def test_scripts_are_joined_without_imports_and_exports():
    for entry in ENTRIES:
        assert not re.search(r"^(import|export)\b", joined(entry), re.MULTILINE)


def test_every_script_is_in_a_page():
    folder = resources.files("latentree.explorer") / "page"
    scripts = {path.name for path in folder.iterdir() if path.name.endswith(".js")}
    found = set(re.findall(r'^modules\["([\w.]+)"\]', joined(*ENTRIES), re.MULTILINE))
    assert found == scripts


def test_no_script_writes_markup():
    forbidden = r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|DOMParser|setHTML"
    assert not re.search(forbidden, joined(*ENTRIES))


@pytest.mark.skipif(not ESBUILD, reason="LATENTREE_ESBUILD does not say where esbuild is")
def test_bundled_pages_are_small(tmp_path, monkeypatch):
    interface = "hatchling.builders.hooks.plugin.interface"  # which is there only to build a wheel
    monkeypatch.setitem(sys.modules, interface, SimpleNamespace(BuildHookInterface=object))
    spec = util.spec_from_file_location("hatch_build", Path(__file__).parents[2] / "hatch_build.py")
    hook = util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    hook.bundle(Path(str(resources.files("latentree.explorer") / "page")), tmp_path, [ESBUILD])
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == set(hook.ENTRIES)
    assert sum(sizes.values()) < 260_000
    monkeypatch.setattr(_bundle, "_bundled", lambda name: (tmp_path / name).read_text("utf-8"))
    page = _bundle.page({"title": "t"}, "t")
    assert (tmp_path / "main.js").read_text("utf-8") in page
    assert "modules[" not in page


# Notebooks --------------------------------------------------------------------------------------


def test_notebooks_show_light_pictures_that_follow_the_theme():
    tree = simulate.random_latent_tree(100, 0)
    model = simulate.random_gaussian_model(tree, 0, negative_share=0.2)
    for shown in (model, tree, simulate.double_star(6).renamed(["<b>", *"abcde"])):
        html = shown._repr_html_()
        assert len(html) < 60_000
        assert "currentColor" in html
        picture = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
        texts = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]
        own = shown if isinstance(shown, Tree) else shown.tree
        assert texts == list(own.names[: own.n_observed])
    assert "<svg" not in simulate.latent_class(500)._repr_html_()


def test_notebooks_show_a_tree_and_the_page_of_a_mixture():
    parts = [simulate.random_gaussian_model(simulate.double_star(6), seed) for seed in (0, 1)]
    mixture = models.TreeMixture(parts, [0.3, 0.7])
    html = mixture._repr_html_()
    assert html.count('r="3"') == 8  # of one tree, hidden ones too
    assert "tree 1, with weight 0.70" in html
    assert '"weights"' in mixture.explore().html


def test_notebooks_show_the_page_in_a_frame():
    model = simulate.random_gaussian_model(simulate.double_star(6), 0)
    shown = model.explore(title='A "pair" & more', height=500)
    found = {}
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.update({tag: dict(attributes)})
    parser.feed(shown._repr_html_())
    assert list(found) == ["iframe"]
    assert found["iframe"]["srcdoc"] == shown.html
    assert "height:500px" in found["iframe"]["style"]

"""The file itself: what is in it, how large it is, and how it is written."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from latentree import DiscreteTreeModel, GaussianTreeModel, Tree, simulate
from latentree.errors import DataError, ModelError
from latentree.explorer import write_explorer
from latentree.explorer._bundle import SCRIPTS, as_json, joined
from latentree.explorer._payload import payload

STAR = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
GAUSSIAN = GaussianTreeModel(STAR, [0.8, 0.5, -0.5, 0], [1, 2, 3], [1, 0.5, 2])
NOISY = [[0.9, 0.1], [0.2, 0.8]]


def numbers(text: str, kind: str = "<f8") -> list[float]:
    return np.frombuffer(base64.b64decode(text), kind).tolist()


def embedded(path) -> dict:
    page = path.read_text("utf-8")
    return json.loads(re.search(r'id="payload">(.*?)</script>', page, re.DOTALL)[1])


def test_a_gaussian_model_is_in_the_page_to_the_last_bit(tmp_path):
    write_explorer(GAUSSIAN, tmp_path / "tree.html", title="Three")
    found = embedded(tmp_path / "tree.html")
    assert found["title"] == "Three"
    assert found["names"] == ["a", "b", "c", "h1"]
    assert numbers(found["parent"], "<i4") == [3, 3, 3, -1]
    assert numbers(found["correlations"]) == GAUSSIAN.correlations.tolist()
    assert numbers(found["scales"]) == [1, 0.5, 2]


def test_labels_keep_their_types():
    labels = [[0, 1], [1.0, "1"], [True, None]]
    model = DiscreteTreeModel(STAR, [NOISY, NOISY, NOISY, [0.5, 0.5]], labels)
    found = payload(model, "t")["labels"]
    sets = [found["sets"][int(i)] for i in numbers(found["which"], "<i4")]
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
    assert found["names"] == ["y", "x"]
    assert numbers(found["numbers"], "<i4") == [0, -1, 1]


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
    assert (tmp_path / "small.html").stat().st_size < 300_000
    large = simulate.random_latent_tree(7000, rng)
    states = [2 + node % 5 for node in range(large.n_nodes)]
    write_explorer(simulate.random_discrete_model(large, states, rng), tmp_path / "large.html")
    assert large.n_nodes > 10_000
    assert (tmp_path / "large.html").stat().st_size < 5_000_000


# Scripts ----------------------------------------------------------------------------------------


def test_scripts_are_joined_without_imports_and_exports():
    text = joined(SCRIPTS)
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)


def test_no_name_is_declared_twice_in_the_scripts():
    declared = re.findall(
        r"^(?:async )?(?:function|const|let|class) (\w+)", joined(SCRIPTS), re.MULTILINE
    )
    assert len(set(declared)) == len(declared)


def test_no_script_writes_markup():
    forbidden = r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|DOMParser|setHTML"
    assert not re.search(forbidden, joined(SCRIPTS))

"""The bundled examples against published figures, and the paper's data where it is at hand."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from latentree.data import as_table
from latentree.datasets import load_holzinger, load_newsgroups, load_sp100, load_stocks
from latentree.distances import as_sample
from latentree.errors import DataError, MissingExtraError

BUNDLED = [load_holzinger, load_stocks]


def correlations(dataset):
    return np.corrcoef(dataset.data, rowvar=False)


@pytest.mark.parametrize("load", BUNDLED)
def test_a_dataset_makes_a_table(load):
    dataset = load()
    table = as_table(dataset.data, names=dataset.names)
    assert table.family == dataset.table.family == "gaussian"
    assert dataset.table.names == dataset.names == tuple(dataset.groups)
    assert table.n_rows == len(dataset.data)
    assert not table.has_missing
    assert all(len(column) == table.n_rows for column in dataset.rows.values())
    as_sample(dataset.table)  # something can be learned from every column


@pytest.mark.parametrize("load", BUNDLED)
def test_a_dataset_cannot_be_changed(load):
    dataset = load()
    with pytest.raises(ValueError, match="read-only"):
        dataset.data[0, 0] = 1.0
    with pytest.raises(TypeError):
        dataset.groups[dataset.names[0]] = "other"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(backend):
    dataset = load_stocks()
    again = as_table(dataset.to_frame(backend))
    assert again.names == dataset.names
    assert np.array_equal(again.values, dataset.data)


def test_frames_of_a_library_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install polars"):
        load_stocks().to_frame("polars")


def test_holzinger_is_that_of_lavaan():
    tests = load_holzinger()
    assert tests.data.shape == (301, 9)
    # Means that lavaan prints for HolzingerSwineford1939.
    means = [4.936, 6.088, 2.250, 3.061, 4.341, 2.186, 4.186, 5.527, 5.374]
    assert tests.data.mean(axis=0) == pytest.approx(means, abs=5e-4)
    schools, counts = np.unique(tests.rows["school"], return_counts=True)
    assert dict(zip(schools.tolist(), counts.tolist(), strict=True)) == {
        "Grant-White": 145,
        "Pasteur": 156,
    }


def test_holzinger_tests_of_one_ability_go_together():
    tests = load_holzinger()
    ability = np.array([tests.groups[name] for name in tests.names])
    same = (ability[:, None] == ability) & ~np.eye(9, dtype=bool)
    rho = correlations(tests)
    assert rho[same].mean() > rho[ability[:, None] != ability].mean() + 0.2


def test_stocks():
    stocks = load_stocks()
    assert stocks.data.shape == (394, 20)
    months = stocks.rows["month"]
    assert months[0] == "1990-02"
    assert months[-1] == "2022-11"
    last = np.datetime64(str(months[-1])) + np.timedelta64(1, "M")
    every = np.arange(np.datetime64(str(months[0])), last)
    assert every.astype(str).tolist() == months.tolist()  # no month is left out
    rho = dict(zip(stocks.names, correlations(stocks), strict=True))
    at = stocks.names.index
    assert rho["CVX"][at("XOM")] > 0.6 > rho["CVX"][at("PG")]
    assert rho["BAC"][at("JPM")] > 0.6


def test_bundled_files_are_small_and_told_of():
    folder = resources.files("latentree.datasets") / "data"
    files = {file.name: len(file.read_bytes()) for file in folder.iterdir()}
    assert sum(files.values()) < 300_000
    readme = (folder / "README.md").read_text("utf-8")
    assert all(f"`{name}`" in readme for name in files if name.endswith(".csv"))


# The paper's data -------------------------------------------------------------------------------


def test_without_a_folder_the_error_says_what_to_set(monkeypatch):
    monkeypatch.delenv("LATENTREE_DATA", raising=False)
    with pytest.raises(DataError, match=r"no public home .* set the environment variable LATENT"):
        load_sp100()


@pytest.mark.parametrize("load", [load_newsgroups, load_sp100])
def test_a_folder_without_the_file(load, monkeypatch, tmp_path):
    monkeypatch.setenv("LATENTREE_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"there is no file (newsgroups.csv.gz|sp100_monthly_ret)"):
        load()


def test_newsgroups(paper_data):
    words = load_newsgroups()
    assert words.data.shape == (16_242, 100)
    assert words.table.family == "discrete"
    assert set(np.unique(words.data)) == {0, 1}
    assert 0.45 < words.rows["train"].mean() < 0.55
    assert set(words.rows["group"]) == {"comp.*", "rec.*", "sci.*", "talk.*"}
    assert [words.groups[word] for word in ("windows", "hockey", "nasa", "jesus")] == [
        "comp.*", "rec.*", "sci.*", "talk.*",
    ]  # fmt: skip


def test_sp100(paper_data):
    stocks = load_sp100()
    assert stocks.data.shape == (216, 85)
    assert stocks.rows["month"][[0, -1]].tolist() == ["1990-01", "2007-12"]
    assert stocks.groups["SP100"] == "index"
    assert stocks.groups["XOM"] == "manufacturing"  # petroleum refining, 2911
    assert stocks.groups["C"] == "finance"

"""Commands on several files, folders and files that are read in parts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import latentree as lt
from conftest import NAMES
from latentree.data._files._writers import write_table


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("LATENTREE_PART_CELLS", str(64 * 6))


@pytest.fixture
def pieces(made, tmp_path):
    """Two files that hold the rows of ``real.csv``, some cells missing."""
    X = np.array(lt.as_parts(made / "real.csv").to_table().values)
    X[::7, 1] = np.nan
    write_table(tmp_path / "a.parquet", NAMES, X[:150])
    write_table(tmp_path / "b.parquet", NAMES, X[150:])
    write_table(tmp_path / "all.parquet", NAMES, X)
    return tmp_path


def test_learn_from_several_files(run, pieces):
    files = pieces / "a.parquet", pieces / "b.parquet"
    code, out, err = run("learn", *files, "--out", pieces / "ours.json", "--json")
    assert code == 0
    assert "400 rows × 6 columns, gaussian: real numbers, in 7 parts" in err
    ours = json.loads(out)
    assert ours["data"]["source"] == list(map(str, files))
    assert ours["data"]["rows"] == 400
    code, out, err = run("learn", pieces / "all.parquet", "--json")
    theirs = json.loads(out)
    assert ours["log_likelihood"] == pytest.approx(theirs["log_likelihood"], rel=1e-9)
    assert ours["hidden"][0]["tied_to"][0]["name"] == theirs["hidden"][0]["tied_to"][0]["name"]


def test_a_folder_and_a_large_file_are_the_same(run, pieces, tmp_path):
    (pieces / "folder").mkdir()
    for name in ("a", "b"):
        (pieces / f"{name}.parquet").rename(pieces / "folder" / f"{name}.parquet")
    code, folder, err = run("learn", pieces / "folder", "--json", "-q")
    assert (code, err) == (0, "")
    code, file, err = run("learn", pieces / "all.parquet", "--json", "-q")
    assert json.loads(folder)["log_likelihood"] == json.loads(file)["log_likelihood"]


def test_score_infer_and_impute_stream(run, made, pieces, monkeypatch):
    model = made / "real.json"
    files = pieces / "a.parquet", pieces / "b.parquet"
    for command in ("score", "infer", "impute"):
        code, _, err = run(command, model, *files, "--out", pieces / "ours.parquet")
        assert code == 0, err
        assert "in 7 parts" in err
        code, _, _ = run(command, model, pieces / "all.parquet", "--out", pieces / "theirs.parquet")
        assert code == 0
        ours, theirs = (
            lt.as_parts(pieces / f"{who}.parquet").to_table() for who in ("ours", "theirs")
        )
        assert ours.names == theirs.names
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-12)
    assert "filled in 58 cells" in err
    code, out, _ = run("score", model, *files, "--json")
    summary = json.loads(out)
    assert summary["mean_log_likelihood"] == pytest.approx(summary["log_likelihood"] / 400)


def test_rows_in_parts_are_not_held_out(run, pieces):
    files = pieces / "a.parquet", pieces / "b.parquet"
    code, _, err = run("learn", *files, "--test-fraction", "0.2")
    assert code == 1
    assert "held out" in err


def test_a_scheduler_that_does_not_answer(run, pieces, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(*arguments, **options):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    code, _, err = run("learn", pieces / "a.parquet", "--scheduler", "tcp://127.0.0.1:1")
    assert code == 1
    assert "no dask scheduler answers" in err

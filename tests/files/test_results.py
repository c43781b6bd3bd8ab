"""Scores, posteriors and imputed tables that are written part by part."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latentree as lt
from latentree import inference
from latentree.data import as_parts, as_table
from latentree.data._files._writers import WRITERS, table_writer
from latentree.errors import FileError, ModelError

NAMES = [f"v{j}" for j in range(6)]
LABELS = (("no", "yes"), (1, 2), (True, False), ("a", 7), (10, 20), ("x", "y"))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("LATENTREE_PART_CELLS", str(64 * 6))


def gaussian():
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(6).renamed(NAMES), 0)
    X = model.sample(400, 1)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return model, X


def discrete():
    tree = lt.simulate.double_star(6).renamed(NAMES)
    plain = lt.simulate.random_discrete_model(tree, 2, 0)
    model = lt.DiscreteTreeModel(tree, plain.tables, LABELS)
    X = model.sample(400, 1).astype(object)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = None
    return model, X


def values_of(path) -> np.ndarray:
    return as_parts(path, "gaussian").to_table().values


@pytest.mark.parametrize("make", [gaussian, discrete])
@pytest.mark.parametrize("suffix", WRITERS)
def test_files_hold_what_the_model_says_of_the_whole_table(make, suffix, tmp_path):
    model, X = make()
    table = as_table(X, schema=model.schema)
    path = tmp_path / f"out{suffix}"
    written = inference.write_scores(model, table, path)
    each = model.log_likelihood(table)
    assert written == (400, 1, pytest.approx(each.sum()))
    np.testing.assert_allclose(np.ravel(values_of(path)), each, rtol=1e-12)
    written = inference.write_posteriors(model, table, path)
    posterior = model.posterior(table)
    wanted = posterior.mean if make is gaussian else posterior.probabilities
    np.testing.assert_allclose(values_of(path), wanted, rtol=1e-12)
    assert inference.write_imputed(model, table, path).total == table.missing_counts.sum()
    filled = model.impute(table)
    if make is gaussian:
        np.testing.assert_allclose(values_of(path), filled, rtol=1e-12)
    elif suffix != ".npz":  # where everything becomes text
        back = as_parts(path, "discrete").to_table()
        for j in range(6):
            texts = [str(back.schema.labels[j][code]) for code in back.values[:, j]]
            assert [t.lower() for t in texts] == [str(cell).lower() for cell in filled[:, j]]


def test_types_do_not_depend_on_the_block(tmp_path):
    path = tmp_path / "out.parquet"
    with table_writer(path, ["mixed", "few"], [("a", 7), (1, 2)]) as write:
        write(np.array([[7, 1], [7, None]], object))
        write(np.array([["a", 2], [None, 1]], object))
    table = pq.read_table(path)
    assert table.schema.types == [pa.string(), pa.int64()]
    assert table.column("mixed").to_pylist() == ["7", "7", "a", None]


def test_a_file_in_a_file_out(tmp_path):
    model, X = gaussian()
    data = tmp_path / "in.parquet"
    columns = {name: pa.array(X[:, j], from_pandas=True) for j, name in enumerate(NAMES)}
    extra = {"id": pa.array([f"r{i}" for i in range(400)])}
    pq.write_table(pa.table(extra | columns), data, row_group_size=33)
    inference.write_imputed(model, data, tmp_path / "out.parquet")
    filled = pq.read_table(tmp_path / "out.parquet")
    assert filled.column_names == ["id", *NAMES]
    assert filled.column("id").equals(pa.chunked_array([extra["id"]]))
    np.testing.assert_allclose(np.column_stack(filled.columns[1:]), model.impute(X))


def test_what_fails_leaves_the_old_file_and_tells_the_rows(tmp_path):
    model, X = gaussian()
    path = tmp_path / "out.csv"
    path.write_text("old")
    X[333, 2] = np.inf
    data = tmp_path / "in.parquet"
    pq.write_table(pa.table({name: X[:, j] for j, name in enumerate(NAMES)}), data)
    with pytest.raises(FileError, match=r"in\.parquet: rows 320 to 383: column 'v2'"):
        inference.write_imputed(model, data, path)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.glob(".latentree*")] == []
    tree = lt.simulate.latent_class(3)
    sure = lt.DiscreteTreeModel(tree, [np.eye(2)] * 3 + [[0.5, 0.5]])
    codes = np.zeros((500, 3), int)
    codes[450] = [0, 1, -1]
    with pytest.raises(ModelError, match=r"rows 384 to 499: row 66 has probability zero"):
        inference.write_imputed(sure, lt.Table(codes.astype(np.int8), sure.schema), path)
    assert path.read_text() == "old"


IMPUTE = """
import os, sys
import latentree as lt
from latentree import inference

os.environ["LATENTREE_PART_CELLS"] = str(6 * 256)
print("ready", flush=True)
inference.write_imputed(lt.load(sys.argv[1]), sys.argv[2], sys.argv[3])
print("done", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_kill_in_the_middle_leaves_the_old_file_or_the_new(tmp_path):
    model, _ = gaussian()
    model.save(tmp_path / "model.json")
    X = model.sample(60_000, 1)
    X[::3, 0] = np.nan
    data, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({name: X[:, j] for j, name in enumerate(NAMES)}), data)
    out.write_bytes(b"old")
    arguments = [sys.executable, "-c", IMPUTE, str(tmp_path / "model.json"), str(data), str(out)]
    killed = 0
    for pause in (0.02, 0.1, 0.3):
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        begun = time.monotonic()
        while time.monotonic() < begun + 20 and process.poll() is None:
            if any(file.stat().st_size > 5_000 for file in tmp_path.glob(".latentree*")):
                time.sleep(pause)
                break
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        for file in tmp_path.glob(".latentree*"):
            killed += 1
            file.unlink()
        assert out.read_bytes() == b"old" or pq.read_metadata(out).num_rows == 60_000
        if out.read_bytes() != b"old":
            break
    assert killed > 0
    inference.write_imputed(model, data, out)
    np.testing.assert_allclose(values_of(out), model.impute(X))

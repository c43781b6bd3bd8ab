"""Tables as people have them learn with no option."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets as bundled

import latentree as lt
from latentree.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")

ROWS, COLUMNS = 40, 6
SKLEARN = ("iris", "wine", "breast_cancer", "diabetes", "linnerud")


def tables_of_data() -> list[Path]:
    folder = os.environ.get("LATENTREE_DATA", "")
    return sorted(Path(folder, "tables").glob("*.csv.gz")) if folder else []


def check(frame: pd.DataFrame, path: Path, capsys) -> None:
    """A table that pandas writes with its defaults is learned, and its rows keep their names."""
    frame.to_csv(path)
    table, read = lt.as_table(frame), lt.as_parts(path)
    assert read.schema.names == table.names
    assert read.schema.kinds == table.schema.kinds
    last = frame.columns[-COLUMNS:]  # labels, where there are some, are among the last columns
    frame = frame[last]
    frame.to_csv(path)
    learned = lt.LatentTree(max_steps=10, output="hidden+observed").fit(frame)
    assert learned.transform(frame).shape[0] == len(frame)
    model = path.with_suffix(".json")
    code = main(["learn", str(path), "--time-limit", "1", "-q", "--out", str(model)])
    assert (code, capsys.readouterr().err) == (0, "")
    scores = path.with_suffix(".scores.csv")
    assert main(["score", str(model), str(path), "-q", "--out", str(scores)]) == 0
    again = pd.read_csv(scores, index_col=0)
    assert again.index.tolist() == frame.index.tolist()
    assert np.isfinite(again["log_likelihood"]).all()


@pytest.mark.parametrize("name", SKLEARN)
def test_tables_of_scikit_learn(name, tmp_path, capsys):
    frame = getattr(bundled, f"load_{name}")(as_frame=True).frame
    frame = frame.sample(min(ROWS, len(frame)), random_state=0)  # so that labels are no 0, 1, …
    check(frame, tmp_path / f"{name}.csv", capsys)


@pytest.mark.parametrize("path", tables_of_data(), ids=lambda path: path.name)
def test_tables_of_psychology_and_economics(path, tmp_path, capsys):
    frame = pd.read_csv(path)
    frame = frame.sample(min(2 * ROWS, len(frame)), random_state=0)
    check(frame.dropna(axis="columns", how="all"), tmp_path / "table.csv", capsys)


def test_tables_of_statsmodels_are_read(tmp_path):
    found = pytest.importorskip("statsmodels.datasets")
    names = [module.name for module in pkgutil.iter_modules(found.__path__) if module.ispkg]
    n_read = 0
    for name in names:
        module = importlib.import_module(f"statsmodels.datasets.{name}")
        if not hasattr(module, "load_pandas"):
            continue
        frame = module.load_pandas().data
        frame = frame.reset_index() if frame.index.name else frame
        frame.to_csv(tmp_path / f"{name}.csv")
        read, held = lt.as_parts(tmp_path / f"{name}.csv"), lt.as_table(frame)
        assert read.schema.names == held.schema.names, name
        assert read.schema.kinds == held.schema.kinds, name
        n_read += 1
    assert n_read > 20

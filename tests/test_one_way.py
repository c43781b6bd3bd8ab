"""One way for the data: checked, summed and measured once, whatever the method and the source."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import latentree as lt
from latentree import estimator, search
from latentree.data import _convert, as_parts
from latentree.distances import _dependence, _sample, _statistics
from latentree.methods import METHODS

N = 400
MODULES = estimator, search  # they must know the functions by their names before any is watched


def gaussian() -> np.ndarray:
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 1, (0.5, 0.8))
    return model.sample(N, 2) * 3.0 + 1.0


def discrete() -> np.ndarray:
    model = lt.simulate.random_discrete_model(lt.simulate.double_star(8), 2, 1)
    return model.sample(N, 2)


WAYS = {
    "the table is made": (_convert, "as_table"),
    "columns are checked": (_statistics.Statistics, "require_learnable"),
    "rows are summed": (_statistics, "gather"),
    "sums become distances": (_sample, "distances_from_sums"),
    "sums become dependence": (_dependence, "dependence"),
}


@pytest.fixture
def calls(monkeypatch):
    """How often each step of the way is taken, by whatever name modules know it."""
    counted: Counter[str] = Counter()

    def watch(what, home, name):
        original = getattr(home, name)

        def watched(*arguments, **options):
            counted[what] += 1
            return original(*arguments, **options)

        homes = [home] if isinstance(home, type) else _modules_with(name, original)
        for each in homes:
            monkeypatch.setattr(each, name, watched)

    for what, (home, name) in WAYS.items():
        watch(what, home, name)
    return counted


def _modules_with(name, original):
    """Modules of ours that have imported a function under its name."""
    ours = [module for key, module in sys.modules.items() if key.startswith("latentree")]
    return [module for module in ours if vars(module).get(name) is original]


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("X", [gaussian(), discrete()], ids=["gaussian", "discrete"])
def test_every_step_is_taken_at_most_once_in_a_fit(X, method, calls):
    n_trees = 1 if method == "hclt" else None  # by default several trees, each of other rows
    lt.LatentTree(method, n_trees=n_trees, random_state=0).fit(X)
    assert calls["the table is made"] == 1
    assert calls["columns are checked"] == 1
    held_out = (
        method == "hclt" and X.dtype.kind != "f"
    )  # sums of all rows, and of those not held out
    assert calls["rows are summed"] == 1 + held_out
    assert calls["sums become distances"] <= 1, calls
    assert calls["sums become dependence"] <= 1, calls


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 160)
    label = [pd.Categorical(np.where(rng.random(160) < 0.2, 1 - z, z)) for _ in range(2)]
    real = [(2 * z + rng.normal(size=160)).round(1) for _ in range(2)]
    return pd.DataFrame(
        {"a": real[0], "b": rng.poisson(1 + 4 * z), "c": label[0], "d": label[1], "e": real[1]}
    )


@pytest.mark.parametrize(
    ("options", "n_sums"),
    [
        ({}, 5),
        ({"method": "clnj"}, 3),
        ({"method": "clnj", "n_states": "auto"}, 11),
        ({"method": "hclt", "n_trees": 1}, 10),
    ],
    ids=["auto", "clnj", "held out", "hclt"],
)
def test_mixed_rows_come_in_once_held_out_or_not(mixed, options, n_sums, calls):
    """Summed again are rows in bins, where each fit starts, and those that are not held out."""
    lt.LatentTree(random_state=0, **options).fit(mixed)
    assert calls["the table is made"] == 1
    assert calls["columns are checked"] == 1
    assert calls["sums become distances"] == 1
    assert calls["rows are summed"] == n_sums


def sources(X: np.ndarray, tmp_path) -> dict[str, object]:
    """The same rows as array, frame, file of each kind, and in parts."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_feather(tmp_path / "rows.feather")
    return {
        "array": X,
        "frame": frame,
        "csv": tmp_path / "rows.csv",
        "parquet": tmp_path / "rows.parquet",
        "feather": tmp_path / "rows.feather",
        "parts": as_parts(X),
    }


@pytest.mark.parametrize("method", ["clrg", "refined", "lcm"])
@pytest.mark.parametrize("kind", ["gaussian", "gaps", "discrete"])
def test_the_same_rows_give_the_same_model_to_the_last_bit(kind, method, tmp_path):
    X = discrete() if kind == "discrete" else gaussian()
    if kind == "gaps":
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    found = {}
    for name, source in sources(X, tmp_path).items():
        learned = lt.LatentTree(method, random_state=0).fit(source)
        learned.model_.save(tmp_path / "model.json")
        found[name] = (tmp_path / "model.json").read_bytes(), learned.report_.log_likelihood
    assert len(set(found.values())) == 1, {name: value[1] for name, value in found.items()}

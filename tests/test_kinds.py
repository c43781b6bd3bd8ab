"""The rule that gives every column a kind, what it sets aside, and whole tables through a model."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import latentree as lt
from latentree.data import as_parts, as_table, cut_table
from latentree.errors import DataError, DataWarning, ModelError

N = 60
RNG = np.random.default_rng(0)
SKEWED = np.resize([0] * 6 + [1] * 5 + [2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15], N)

COLUMNS = {
    "fractions": (RNG.normal(size=N), "real", "numbers with a fraction"),
    "money": (RNG.integers(10_000, 90_000, N), "real", "whole numbers from"),
    "years": (np.resize(np.arange(1980, 1988), N), "real", "whole numbers from 1980 to 1987"),
    "age": (np.resize(np.arange(18, 60), N), "real", "whole numbers from 18 to 59"),
    "visits": (SKEWED, "count", "whole numbers from 0, skewed as counts are"),
    "answers": (np.resize([1, 2, 3, 4, 5, 6], N), "ordered", "6 consecutive whole numbers"),
    "gaps": (np.resize([1.0, 2, 3, np.nan], N), "ordered", "3 consecutive whole numbers"),
    "school": (np.resize([8, 9, 11, 16], N), "ordered", "4 different whole numbers"),
    "sex": (np.resize([1, 2], N), "category", "2 different numbers"),
    "halves": (np.resize([0.5, 1.5], N), "category", "2 different numbers"),
    "flag": (np.resize([True, False], N), "category", "true or false"),
    "color": (np.resize(["red", "green", "blue"], N), "category", "3 labels"),
    "mood": (
        pd.Categorical(np.resize(["low", "high"], N), ["low", "mid", "high"], ordered=True),
        "ordered", "2 ordered categories",
    ),
    "constant": (np.full(N, 7), "ignore", "always 7"),
    "unit": (np.full(N, "cm"), "ignore", "always 'cm'"),
    "empty": (np.full(N, np.nan), "ignore", "no value at all"),
    "name": ([f"person {i}" for i in range(N)], "ignore", "text that differs in 100 % of rows"),
    "number": (np.arange(1000, 1000 + N), "ignore", "as identifiers have"),
    "long": (2**60 + np.arange(N), "ignore", "more than 15 digits"),
    "day": (pd.date_range("2024-01-01", periods=N), "ignore", "dates or times"),
    "written": ([f"2024-01-{1 + i % 28:02d}" for i in range(N)], "ignore", "dates or times as"),
}  # fmt: skip


def messy() -> pd.DataFrame:
    return pd.DataFrame({name: values for name, (values, _, _) in COLUMNS.items()})


def quiet(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return function(*args, **options)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_rule(name: str) -> None:
    values, kind, why = COLUMNS[name]
    frame = pd.DataFrame({"other": COLUMNS["fractions"][0], name: values})
    found = quiet(as_table, frame).schema.columns[1]
    assert found.kind == kind
    assert why in found.why


def test_frames_arrays_files_and_parts_agree(tmp_path) -> None:
    frame = messy().drop(columns=["mood", "long"])  # files know no declared order
    expected = quiet(as_table, frame).schema
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    for given in (pl.from_pandas(frame), tmp_path / "table.csv", tmp_path / "table.parquet"):
        is_path = not isinstance(given, pl.DataFrame)
        schema = quiet(as_parts if is_path else as_table, given).schema
        kinds = [(column.name, column.kind) for column in schema.columns]
        assert kinds == [(column.name, column.kind) for column in expected.columns]
    numbers = frame.select_dtypes("number")
    alone, array = (quiet(as_table, each).schema for each in (numbers, numbers.to_numpy(float)))
    assert [c.kind for c in alone.columns] == [c.kind for c in array.columns]


def test_one_warning_says_what_is_set_aside() -> None:
    with pytest.warns(DataWarning, match="8 columns are set aside: 'constant'") as found:
        as_table(messy())
    assert len(found) == 1


def test_kinds_can_be_given() -> None:
    kinds = {"years": "ordered", "answers": "real", "color": "ignore"}
    schema = quiet(as_table, messy(), kinds=kinds).schema
    given = {column.name: column for column in schema.columns}
    assert {name: given[name].kind for name in kinds} == kinds
    assert {given[name].why for name in kinds} == {"as asked for"}


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"color": "real"}, "'color' cannot be real: it holds 'blue', which is no number"),
        ({"fractions": "count"}, "'fractions' cannot be count: it holds"),
        ({"color": "ordered"}, "or declare their order in a frame"),
        ({"nobody": "real"}, "there is no column 'nobody'"),
        ({"sex": "number"}, "'sex' is to be 'number', but kinds are"),
        ({"day": "category"}, "convert it to numbers or labels"),
    ],
)
def test_kinds_that_cannot_be_are_refused(kinds: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        quiet(as_table, messy(), kinds=kinds)


def test_a_column_of_words_and_numbers_is_no_column_of_numbers():
    frame = {
        "x": np.array([1, "a", 2.5, 1, "a", 2.5] * 4, dtype=object),
        "y": np.linspace(0.1, 2.4, 24),
    }
    with pytest.raises(DataError, match="'x' cannot be real: it holds 'a', which is no number"):
        as_table(frame, kinds={"x": "real"})


# Whole tables through a model -------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned() -> lt.LatentTree:
    return quiet(lt.LatentTree(n_states=2, random_state=0).fit, messy())


def test_the_report_lists_every_column(learned: lt.LatentTree) -> None:
    found = {column.name: column.kind for column in learned.report_.columns}
    assert found == {name: kind for name, (_, kind, _) in COLUMNS.items()}
    assert learned.report_.as_dict()["columns"][0]["kind"] == "real"


def test_whole_tables_come_and_go(learned: lt.LatentTree) -> None:
    frame = messy()
    holes = frame.copy()
    holes.loc[3, ["fractions", "visits", "answers", "color", "unit", "constant"]] = None
    assert np.isfinite(learned.score(holes))
    assert learned.transform(holes).shape[0] == N
    filled = learned.impute(holes)
    assert list(filled.columns) == list(frame.columns)
    assert filled.loc[3, "unit"] == "cm"
    assert filled.loc[3, "constant"] == 7
    assert filled.loc[3, "color"] in ("red", "green", "blue")
    assert filled.drop(index=3)["name"].equals(frame.drop(index=3)["name"])
    used = frame[list(learned.model_.schema.names)]
    assert learned.score(used) == learned.score(frame)


def test_rows_without_a_value(learned: lt.LatentTree) -> None:
    empty = messy().head(1)
    empty = empty.mask(np.ones(empty.shape, bool))
    assert learned.score_samples(empty) == pytest.approx(0.0, abs=1e-9)
    filled = learned.impute(empty)
    assert filled["color"].notna().all()
    assert filled["fractions"].notna().all()


def test_labels_that_were_not_seen() -> None:
    frame = messy()
    learned = quiet(lt.LatentTree(n_states=2, random_state=0).fit, frame)
    odd = frame.assign(color="pink")
    with pytest.raises(DataError, match="column 'color' holds 'pink'"):
        learned.score(odd)
    learned.set_params(unseen="missing")
    assert learned.score(odd) == pytest.approx(learned.score(frame.assign(color=None)))


def test_constant_columns_do_not_stop_discrete_data() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((300, 1)) < 0.5) ^ (rng.random((300, 5)) < 0.2)
    X[:, 2] = False
    with pytest.warns(DataWarning, match="'x2'"):
        learned = lt.LatentTree(random_state=0).fit(X.astype(np.int8))
    assert learned.model_.schema.family == "discrete"
    assert learned.score(X.astype(np.int8)) < 0


def test_states_are_chosen_for_mixed_data_only() -> None:
    table = cut_table(as_table(np.random.default_rng(0).normal(size=(50, 3))))
    with pytest.raises(ModelError, match="criterion='cv' chooses numbers of states"):
        lt.methods.learn_model(table, "clrg", criterion="cv")


# One scale, one kind ----------------------------------------------------------------------------


def kinds_of(frame: pd.DataFrame, **options) -> list[str]:
    return [column.kind for column in quiet(as_table, frame, **options).schema.columns]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [20, 50, 1000])
def test_species_are_all_counts(n: int, seed: int) -> None:
    """Rare ones are 0/1 by chance, common ones have no 0."""
    rng = np.random.default_rng(seed)
    means = np.exp(rng.normal(0.0, 2.0, 80))
    X = rng.poisson(means * rng.gamma(0.8, 1 / 0.8, (n, 80)))
    X = X[:, X.max(axis=0) > 0]
    frame = pd.DataFrame(X, columns=[f"species {j}" for j in range(X.shape[1])])
    alone = {kinds_of(pd.DataFrame({"y": rng.normal(size=n), "x": x}))[1] for x in X.T}
    assert len(alone) > 2  # by itself every column would be of another kind
    assert set(kinds_of(frame)) - {"ignore"} == {"count"}
    place = frame.assign(height=rng.normal(size=n), wet=np.where(rng.random(n) < 0.5, "y", "n"))
    assert kinds_of(place)[-2:] == ["real", "category"]
    given = kinds_of(frame, kinds={"species 3": "real"})
    assert given[3] == "real"


def test_classes_of_cover_are_all_ordered() -> None:
    rng = np.random.default_rng(0)
    X = np.clip(rng.poisson(np.exp(rng.normal(0.0, 1.0, 30)), (20, 30)), 0, 9)
    frame = pd.DataFrame(X[:, X.max(axis=0) > 0]).rename(columns=str)
    assert set(kinds_of(frame)) == {"ordered"}


def test_columns_of_one_range_are_of_one_kind() -> None:
    """Sliders from 0 to 100, some of them skewed."""
    rng = np.random.default_rng(1)
    X = np.round(100 * rng.beta([0.4, 0.5, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 2.0, 1.0], (3000, 5)))
    X[:2] = [[0.0], [100.0]]
    assert {kinds_of(pd.DataFrame({"y": rng.normal(size=3000), "x": x}))[1] for x in X.T} == {
        "real",
        "count",
    }
    frame = pd.DataFrame(X).rename(columns=str).assign(age=rng.integers(18, 90, 3000))
    assert len(set(kinds_of(frame))) == 1


def test_unrelated_columns_keep_their_kinds() -> None:
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 90, n),
            "children": rng.poisson(1.2, n),
            "year": rng.integers(1980, 2000, n),
            "visits": rng.negative_binomial(1, 0.1, n),
            "member": rng.random(n) < 0.4,
            "smokes": (rng.random(n) < 0.3).astype(int),
            "rare": (rng.random(n) < 0.02).astype(int),
            "answer": rng.integers(0, 5, n),
        }
    )
    found = dict(zip(frame.columns, kinds_of(frame), strict=True))
    assert found == {
        "age": "real", "children": "ordered", "year": "real", "visits": "count",
        "member": "category", "smokes": "category", "rare": "category", "answer": "ordered",
    }  # fmt: skip


def test_yes_no_beside_answers_stays_yes_no() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 6, (300, 20))).rename(columns=str)
    frame["3"] = frame["3"].clip(upper=4)
    frame = frame.assign(sex=rng.integers(1, 3, 300), old=rng.integers(0, 2, 300))
    assert kinds_of(frame) == ["ordered"] * 20 + ["category"] * 2
    words = pd.DataFrame((rng.random((300, 40)) < 0.05).astype(int)).rename(columns=str)
    words = words.assign(length=rng.poisson(20, 300))
    assert kinds_of(words)[:40] == ["category"] * 40


def test_answers_from_0_to_10_are_ordered() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 11, (300, 6))).rename(columns=str)
    assert kinds_of(frame) == ["ordered"] * 6

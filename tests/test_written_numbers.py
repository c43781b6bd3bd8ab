"""Columns as people write them: numbers with units and separators, dates, identifiers."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree.data import as_table, open_table
from latentree.data._files._file_rows import open_files
from latentree.data._opening import of_files
from latentree.errors import DataError, DataWarning

N = 60
RNG = np.random.default_rng(0)
NUMBERS = (RNG.lognormal(8.0, 1.5, N)).round(2)


def quiet(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return function(*args, **options)


def german(x: float, digits: int = 2) -> str:
    return f"{x:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def indian(x: float) -> str:
    """Write groups of two digits before the last three: 12,34,567.00."""
    whole, fraction = f"{x:.2f}".split(".")
    groups = [whole[max(0, end - 2) : end] for end in range(len(whole) - 3, 0, -2)][::-1]
    return ",".join([*groups, whole[-3:]]) + "." + fraction


WRITTEN = {
    "percent": (lambda x: f"{x:.2f}%", "percent"),
    "thousands": (lambda x: f"{x:,.2f}", "thousands separated by ','"),
    "dollars": (lambda x: f"${x:,.2f}", "thousands separated by ',', in $"),
    "euro": (lambda x: f"\u20ac{x:,.2f}", "in \u20ac"),
    "code": (lambda x: f"{x:,.2f} USD", "in USD"),
    "code first": (lambda x: f"EUR {x:,.2f}", "in EUR"),
    "german": (lambda x: german(x), "thousands separated by '.', decimal commas"),
    "german euro": (lambda x: f"{german(x)} \u20ac", "decimal commas, in \u20ac"),
    "comma": (lambda x: f"{x:.2f}".replace(".", ","), "decimal commas"),
    "swiss": (lambda x: f"{x:,.2f}".replace(",", "\u2019"), 'thousands separated by "\'"'),
    "french": (lambda x: f"{x:,.2f}".translate(str.maketrans(",.", "\u202f,")), "by spaces"),
    "unit": (lambda x: f"{x:.2f} kg", "in kg"),
    "indian": (lambda x: indian(1_000 * x), "thousands separated by ','"),
}


@pytest.mark.parametrize("style", WRITTEN)
def test_written_numbers_are_numbers(style: str, tmp_path) -> None:
    write, why = WRITTEN[style]
    frame = pd.DataFrame({"y": RNG.normal(size=N), "x": list(map(write, NUMBERS))})
    frame.loc[3, "x"] = None
    frame.loc[4, "x"] = "-"  # missing, as in files
    expected = NUMBERS * (1_000 if style == "indian" else 1)
    expected[3:5] = np.nan
    for delimiter in ",;\t":
        frame.to_csv(tmp_path / f"{ord(delimiter)}.csv", sep=delimiter, index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for data in (frame, pl.from_pandas(frame), frame.to_numpy(object), *tmp_path.iterdir()):
        table = quiet(open_table, data)
        assert table.schema.kinds == ("real", "real")
        np.testing.assert_allclose(table.values[:, 1], expected)
    assert why in as_table(frame).schema.columns[1].why


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=12, unique=True),
    st.integers(0, 3),
    st.sampled_from(".,"),
    st.sampled_from(["", "%", "$", " USD", " kg"]),
)
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read(whole, digits, decimal, unit) -> None:
    """Formatted numbers come back, unless the other decimal mark reads them as well."""
    numbers = [value / 10**digits for value in whole]
    texts = [f"{x:,.{digits}f}" for x in numbers]
    if decimal == ",":
        texts = [text.translate(str.maketrans(",.", ".,")) for text in texts]
    texts = [f"{unit}{text}" if unit == "$" else f"{text}{unit}" for text in texts]
    facts = as_table({"y": np.arange(len(whole)) + 0.5, "x": texts}, kinds={"x": "real"})
    # A single mark with three digits behind it may be either: the point is a decimal mark then.
    marks = [sum(text.count(mark) for text in texts) for mark in ".,"]
    is_clear = all(marks) or any(text.count(m) > 1 for text in texts for m in ".,")
    if is_clear or decimal == "." or not any(marks):
        np.testing.assert_allclose(facts.values[:, 1], numbers, rtol=1e-12)


@pytest.mark.parametrize(
    "cells",
    [
        ["$5.50", "\u20ac6.50", "$7.10"],  # mixed currencies
        ["5.5%", "6.5", "7.5%"],
        ["1,5", "2.5", "3,5"],  # either mark, but not both
        ["1,23", "1,234,567", "2,5"],
        ["(1)", "(2)", "(3)"],  # notes
        ["1-2", "3-4", "5-6"],
        ["12A", "12B", "14C"],
        ["LH 123", "LH 456", "LH 789"],
        ["1", "2", "3"],  # in frames, text of digits is meant as labels
        ["007", "012", "099"],
        ["1,2,3", "2,3,4", "4,5,6"],
        ["10:30.5", "11:20.5", "12:10.5"],
    ],
)
def test_other_texts_stay_labels(cells) -> None:
    texts = np.resize(cells, N)
    table = quiet(as_table, pd.DataFrame({"y": RNG.normal(size=N), "x": texts}))
    assert [column.kind for column in table.schema.columns][1] in ("category", "ignore")


def test_ambiguous_marks_go_with_the_table() -> None:
    unclear = np.resize(["66,090", "1,271", "5,400", "7,123"], N).astype(object)
    alone = as_table(pd.DataFrame({"y": RNG.normal(size=N), "x": unclear}))
    assert alone.values[0, 1] == 66090
    clear = np.resize(["1,5", "2,25", "3,1", "0,2"], N)
    both = as_table(pd.DataFrame({"y": clear, "x": unclear}))
    np.testing.assert_allclose(both.values[:2], [[1.5, 66.09], [2.25, 1.271]])


def test_points_between_thousands_go_with_the_file(tmp_path) -> None:
    frame = {"when": ["01.02.2019"] * 4, "sales": ["1.234,50", "2,5", "3,75", "1,1"],
             "stock": ["50.123", "1.271", "66.090", "7.123"]}  # fmt: skip
    for delimiter in ";\t":
        pd.DataFrame(frame).to_csv(tmp_path / "t.csv", sep=delimiter, index=False)
        table = quiet(open_table, tmp_path / "t.csv")
        np.testing.assert_allclose(table.values[:2], [[1234.5, 50123], [2.5, 1271]])
    points = pd.DataFrame({"x": ["1.5", "2.25", "3.1"], "y": ["1,234", "66,090", "7,123"]})
    points.to_csv(tmp_path / "t.csv", sep=";", index=False)
    np.testing.assert_allclose(quiet(open_table, tmp_path / "t.csv").values[1], [2.25, 66090])


def test_one_odd_cell_is_named() -> None:
    cells = np.array([f"{x:,.1f}" for x in NUMBERS], object)
    cells[7] = "unknown"
    frame = pd.DataFrame({"y": RNG.normal(size=N), "x": cells})
    with pytest.warns(DataWarning, match="to use it, cells that are no numbers have to be corr"):
        assert as_table(frame).schema.columns[1].why.endswith("(text because of 'unknown')")
    frame["x"] = np.where(np.arange(N) == 7, "unknown", np.char.mod("%d", np.arange(N) % 14))
    with pytest.warns(DataWarning, match="1 column is taken as text, not as numbers: 'x' \\(15 la"):
        assert as_table(frame).schema.columns[1].kind == "category"
    floors = frame.assign(
        x=np.where(np.arange(N) == 7, "ground", np.char.mod("%d", RNG.integers(9)))
    )
    as_table(floors)  # a warning would be an error


def test_signs_that_stand_for_missing_cells(tmp_path) -> None:
    signs = ["..", "...", ":", "n.a.", "\u2013", "#DIV/0!", "-", "."]
    cells = [f"{x:,.1f}" for x in NUMBERS[: N - len(signs)]] + signs
    frame = pd.DataFrame({"y": RNG.normal(size=N), "x": cells})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (frame, tmp_path / "t.csv"):
        assert open_table(data).missing_counts.tolist() == [0, len(signs)]


def test_brackets_are_negative() -> None:
    cells = np.resize(["(1,200)", "300", "4,500", "($70)".replace("$", "")], N)
    table = as_table(pd.DataFrame({"y": RNG.normal(size=N), "x": cells}))
    assert table.values[:4, 1].tolist() == [-1200, 300, 4500, -70] or table.schema.labels[1] == (
        -1200, -70, 300, 4500,
    )  # fmt: skip


def test_large_files_are_read_alike(tmp_path) -> None:
    """Parts of a file show different marks; together they settle the reading."""
    texts = ["1,234", "5,678"] * 300 + ["0,5", "2,25"] * 300
    frame = pd.DataFrame({"x": texts, "y": RNG.normal(size=1200)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    whole = open_table(tmp_path / "t.csv")
    assert whole.values[0, 0] == pytest.approx(1.234)
    rows = open_files(tmp_path / "t.csv", block_bytes=200)
    parts = of_files(rows, "auto", None)
    np.testing.assert_array_equal(parts.values, whole.values)
    from latentree.data._opening import _find_schema
    from latentree.data._pieces import LocalPieces

    pieces = LocalPieces(lambda first=0: rows.pieces(100, first), rows.n_pieces(100))
    schema = _find_schema(rows.names, True, pieces, "auto", None)
    assert schema == whole.schema
    assert schema.formats == whole.schema.formats
    assert schema.reasons == whole.schema.reasons


def test_new_rows_are_read_as_those_learned_from(tmp_path) -> None:
    z = RNG.normal(size=N)
    numbers = {name: (1000 * np.exp(z + RNG.normal(size=N))).round(3) for name in "abcd"}
    frame = pd.DataFrame({name: [german(x, 3) for x in own] for name, own in numbers.items()})
    plain = lt.LatentTree(random_state=0).fit(pd.DataFrame(numbers))
    learned = lt.LatentTree(random_state=0).fit(frame)
    assert learned.score(frame) == pytest.approx(plain.score(pd.DataFrame(numbers)))
    one = pd.DataFrame({name: ["1,234"] for name in "abcd"})  # by itself 1234 or 1.234
    meant = learned.score(pd.DataFrame({name: [1.234] for name in "abcd"}))
    assert learned.score(one) == pytest.approx(meant)
    learned.model_.save(tmp_path / "m.json")
    loaded = lt.load(tmp_path / "m.json")
    assert loaded.schema.formats == learned.model_.schema.formats
    assert loaded.log_likelihood(one)[0] == pytest.approx(meant)
    with pytest.raises(DataError, match="column 'a' holds 'much', but numbers are needed"):
        learned.score(one.assign(a="much"))


# Dates ------------------------------------------------------------------------------------------

DAYS = pd.Series(pd.date_range("2016-11-05", periods=N, freq="5D"))


@pytest.mark.parametrize(
    "form",
    ["%m/%d/%Y", "%d.%m.%Y", "%B %d, %Y", "%d %b %Y", "%d-%b-%y", "%Y%m%d", "%Y/%m/%d", "%m/%d/%y",
     "%a, %d %b %Y %H:%M:%S", "%Y-%m-%d %H:%M", "%b %Y", "%m/%d/%Y %I:%M %p", "%Y-W%W", "%b-%y",
     "%m/%Y", "%YM%m", "%d-%b"],
)  # fmt: skip
def test_dates_are_set_aside(form: str, tmp_path) -> None:
    texts = DAYS.dt.strftime(form)
    frame = pd.DataFrame({"x": RNG.normal(size=N), "when": texts})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (frame, tmp_path / "t.csv"):
        found = quiet(open_table, data).schema.columns[1]
        assert found.kind == "ignore"
        assert found.why.startswith("dates or times")


def test_seasons_are_dates_and_parts_of_ten_are_none() -> None:
    for texts, kind in (
        ([f"{year}/{(year + 1) % 100:02d}" for year in range(1985, 2009)], "ignore"),
        (["1985/90", "1990/95", "1995/99"], "category"),
    ):
        frame = pd.DataFrame({"x": RNG.normal(size=N), "season": np.resize(texts, N)})
        assert quiet(as_table, frame).schema.columns[1].kind == kind


def test_numbers_that_tell_the_time() -> None:
    seconds = 1_480_000_000 + 86_400 * RNG.permutation(N)
    frame = pd.DataFrame({"x": RNG.normal(size=N), "created_time": seconds, "sales": seconds})
    with pytest.warns(DataWarning, match="created_time.*dates have to be turned into numbers"):
        kinds = [column.kind for column in as_table(frame).schema.columns]
    assert kinds == ["real", "ignore", "real"]
    months = DAYS.dt.strftime("%Y%m").astype(int)
    kinds = [c.kind for c in quiet(as_table, frame.assign(month=months, x=months)).schema.columns]
    assert kinds == ["real", "ignore", "real", "ignore"]
    days = DAYS.dt.strftime("%Y%m%d").astype(int)
    assert quiet(as_table, frame.assign(x=days)).schema.columns[0].kind == "ignore"


# Identifiers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("id", RNG.permutation(N) * 1000, "ignore"),
        ("PassengerId", RNG.permutation(N) * 1000, "ignore"),
        ("Kunden-Nr.", RNG.permutation(N) * 1000, "ignore"),
        ("zip code", np.r_[RNG.permutation(N - 8), np.arange(8)] + 70_000, "ignore"),
        ("school_id", np.arange(N) % 12 * 100, "category"),
        ("school_id", np.arange(N) % 20 * 100, "ignore"),
        ("treatment code", np.arange(N) % 4, "ordered"),
        ("participant", np.arange(N) // 3, "ignore"),
        ("participants", np.arange(N) // 3, "real"),
        ("invoice_number", RNG.permutation(N) * 1000, "ignore"),
        ("number of people", RNG.permutation(N) * 1000, "real"),
        ("plz", RNG.permutation(N) * 1000 + 12_345, "ignore"),
        ("paid", RNG.permutation(N) * 1000, "real"),
        ("price index", RNG.permutation(N) * 3 + 100, "real"),
        ("id", RNG.normal(size=N), "real"),
    ],
)
def test_identifiers_are_set_aside(name, values, kind) -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=N), name: values})
    assert quiet(as_table, frame).schema.columns[1].kind == kind
    assert as_table(frame, kinds={name: "real"}).schema.columns[1].kind == "real"


def test_text_that_is_named_as_an_identifier() -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=N), "ID": [f"X{j // 3:02d}" for j in range(N)]})
    with pytest.warns(DataWarning, match=r"to use it, kinds=\{'ID': 'category'\} takes"):
        assert as_table(frame).schema.columns[1].kind == "ignore"
    groups = frame.assign(ID=[f"X{j % 12:02d}" for j in range(N)])
    assert as_table(groups).schema.columns[1].kind == "category"


def test_the_hint_says_how_to_keep_an_identifier(tmp_path, capsys) -> None:
    frame = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("abc")).assign(nr=range(N))
    with pytest.warns(DataWarning, match=r"to use it, kinds=\{'nr': 'real'\}"):
        as_table(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    from latentree.cli import main

    assert main(["learn", str(tmp_path / "t.csv")]) == 0
    assert "--kind 'nr=real'" in capsys.readouterr().err.replace("\n", " ")


# What is asked for ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_many_kinds_at_once(tmp_path, capsys) -> None:
    counts = RNG.poisson(3.0, (N, 4))
    frame = pd.DataFrame(counts, columns=["q_1", "q_2", "other", "q_*"])
    assert as_table(frame, kinds="count").schema.kinds == ("count",) * 4
    assert as_table(frame, kinds={"*": "count", "other": "real"}).schema.kinds[2] == "real"
    by_pattern = as_table(frame, kinds={"q_[12]": "ordered", "other": "real", "q_*": "count"})
    assert by_pattern.schema.kinds == ("ordered", "ordered", "real", "count")
    learned = lt.LatentTree(kinds="count", random_state=0).fit(frame)
    assert {column.kind for column in learned.report_.columns} == {"count"}
    from latentree.cli import main

    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ["--kind", "*=count", "--kind", "other=real", "--json"]
    assert main(["learn", str(tmp_path / "t.csv"), *options]) == 0
    assert '"kind": "count"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ("counts", "all columns are to be 'counts', but kinds are real, count"),
        (["real"], r"kinds is \['real'\], but must be a kind for all columns or a mapping"),
        (3, "kinds is 3"),
        ({"a": ["real"]}, r"column 'a' is to be \['real'\]"),
        ({"z*": "real"}, r"there is no column 'z\*'"),
        ({"agee": "real"}, r"there is no column 'agee' \(did you mean 'age'\?\)"),
    ],
)
def test_wrong_kinds_are_our_error(kinds, message) -> None:
    frame = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "age"])
    with pytest.raises(DataError, match=message):
        as_table(frame, kinds=kinds)
    with pytest.raises(DataError, match=message):
        lt.LatentTree(kinds=kinds).fit(frame)


@pytest.mark.parametrize("kinds", [None, {"a": "category"}, {"a": "real"}])
@pytest.mark.parametrize("power", [25, 300, 400])
def test_long_integers_in_every_frame(power, kinds) -> None:
    for long in ([10**power + i for i in range(N)], [10**power * (i % 3) for i in range(N)]):
        other = RNG.normal(size=N)
        for data in (
            pd.DataFrame({"a": long, "b": other}),
            pl.DataFrame({"a": pl.Series("a", long, dtype=pl.Object), "b": other}),
            {"a": long, "b": other},
        ):
            if kinds == {"a": "real"}:  # of text only
                with contextlib.suppress(DataError):
                    quiet(as_table, data, kinds=kinds)
            else:
                assert quiet(as_table, data, kinds=kinds).n_rows == N


# Rows in the order of time ----------------------------------------------------------------------

TIMES = {
    "dates": lambda n: pd.date_range("2001-01-05", periods=n, freq="D"),
    "iso": lambda n: pd.date_range("2001-01-05", periods=n, freq="D").strftime("%Y-%m-%d"),
    "american": lambda n: pd.date_range("2001-01-05", periods=n, freq="D").strftime("%m/%d/%Y"),
    "german": lambda n: pd.date_range("2001-01-05", periods=n, freq="D").strftime("%d.%m.%Y"),
    "last first": lambda n: pd.date_range("2001-01-05", periods=n, freq="D")[::-1],
    "year": lambda n: 1500 + np.arange(n),
}


def walks(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(np.cumsum(rng.normal(size=(n, 6)), axis=0), columns=list("abcdef"))


def said_of_time(data, **options) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        open_table(data, **options)
    return [str(each.message) for each in found if "order of" in str(each.message)]


@pytest.mark.parametrize("times", TIMES)
def test_levels_in_time_get_a_warning(times, tmp_path) -> None:
    frame = walks(300, 1)
    name = "year" if times == "year" else "when"
    frame.insert(0, name, TIMES[times](300))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    whole = frame.to_dict("list")
    for data in (frame, pl.from_pandas(frame), whole, tmp_path / "t.csv", tmp_path / "t.parquet"):
        (message,) = said_of_time(data)
        assert f"rows are in the order of '{name}'" in message
        assert "300 such rows" in message
        assert "--block-length" in message
    assert said_of_time(frame.sample(frac=1.0, random_state=0)) == []
    changes = frame.drop(columns=name).diff().assign(**{name: frame[name]})[1:]
    assert said_of_time(changes) == []
    assert said_of_time(frame.drop(columns=name)) == []  # nothing says that it is time


def test_an_index_of_dates_tells_the_time() -> None:
    frame = walks(300, 2).set_index(pd.date_range("2001-01-05", periods=300))
    (message,) = said_of_time(frame)
    assert "rows are in the order of the index" in message
    assert said_of_time(frame.sample(frac=1.0, random_state=0)) == []


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_levels_of_any_size_get_a_warning(scale) -> None:
    frame = (walks(300, 3) * scale).set_index(pd.date_range("2001-01-05", periods=300))
    assert len(said_of_time(frame)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_sorted_tables_get_none(seed) -> None:
    """Rows sorted by a column, or by groups, are in no order of time."""
    rng = np.random.default_rng(seed)
    group = np.repeat([0.0, 5.0, 10.0], 100)
    frame = pd.DataFrame(group[:, None] + rng.normal(size=(300, 5)), columns=list("abcde"))
    day = pd.date_range("2001-01-05", periods=300)
    assert said_of_time(frame) == []
    assert said_of_time(frame.sort_values("a")) == []
    assert said_of_time(frame.assign(day=rng.permutation(day))) == []
    dependent = rng.normal(size=(300, 1)) + rng.normal(size=(300, 5))
    by_day = pd.DataFrame(dependent, columns=list("abcde")).sort_values("a").assign(day=day)
    assert said_of_time(by_day) == []  # one column drifts, the others follow it loosely

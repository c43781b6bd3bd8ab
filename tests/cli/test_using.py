"""What new users run into: row labels, missing values, formats, predictions, options."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import latentree as lt
from latentree import simulate
from latentree.cli import main
from latentree.errors import DataWarning

TREE = simulate.double_star(6)


@pytest.fixture(scope="module")
def frame():
    """Six real columns whose rows have names."""
    rows = simulate.random_gaussian_model(TREE, 0).sample(200, 1)
    frame = pd.DataFrame(rows, columns=list("abcdef"), index=[f"row {i}" for i in range(200)])
    frame.iloc[::9, 0] = np.nan
    return frame


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A model of words, and its table."""
    codes = simulate.random_discrete_model(TREE, 2, 0, strength=(0.6, 0.9)).sample(300, 1)
    frame = pd.DataFrame(np.array(["no", "yes"], object)[codes], columns=list("abcdef"))
    path = tmp_path_factory.mktemp("words") / "words.csv"
    frame.to_csv(path)
    assert main(["learn", str(path), "-q", "-o", str(path.with_suffix(".json"))]) == 0
    return path, frame


# Row labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".parquet", ".feather"])
def test_row_labels_are_set_aside_and_kept(run, frame, tmp_path, suffix):
    path, model = tmp_path / f"t{suffix}", tmp_path / "m.json"
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".feather":
        pa = pytest.importorskip("pyarrow")
        with pa.OSFile(str(path), "wb") as file:
            table = pa.Table.from_pandas(frame)
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    else:
        frame.to_csv(path, sep={".csv": ",", ".tsv": "\t", ".txt": " "}[suffix])
    code, out, _ = run("learn", path, "--out", model)
    assert code == 0
    assert "row labels: a column without a name" in " ".join(out.split())
    assert lt.load(model).schema.names == tuple("abcdef")
    for command in ("infer", "impute", "score"):
        code, _, err = run(command, model, path, "--out", tmp_path / "out.csv")
        assert code == 0
        assert "with row labels" in err
        again = pd.read_csv(tmp_path / "out.csv", index_col=0)
        assert again.index.tolist() == frame.index.tolist(), command
    code, *_ = run("impute", model, path, "--out", tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet").iloc[:, 0].tolist() == frame.index.tolist()


def test_dates_label_rows(tmp_path):
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(5, 2)),
        columns=["a", "b"],
        index=pd.date_range("2020-01-31", periods=5, freq="ME"),
    )
    frame.to_csv(tmp_path / "t.csv")
    assert lt.as_parts(tmp_path / "t.csv").schema.columns[0].why.startswith("row labels")


def test_a_column_without_a_name_that_repeats_values_is_data(tmp_path):
    (tmp_path / "t.csv").write_text(",b\n" + "1,2.5\n2,3.5\n1,0.5\n" * 3)
    assert lt.as_parts(tmp_path / "t.csv").schema.names == ("Unnamed: 0", "b")


def test_row_labels_pass_through_parts(run, frame, tmp_path, monkeypatch):
    frame.to_csv(tmp_path / "t.csv")
    run("learn", tmp_path / "t.csv", "-q", "--out", tmp_path / "m.json")
    monkeypatch.setenv("LATENTREE_PART_CELLS", "384")  # parts of 64 rows
    run("score", tmp_path / "m.json", tmp_path / "t.csv", "--out", tmp_path / "out.csv")
    again = pd.read_csv(tmp_path / "out.csv", index_col=0)
    assert again.index.tolist() == frame.index.tolist()


# Missing values and formats ---------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["", "NA", "N/A", ".", "?", "-", "nan"])
def test_usual_marks_of_missing_values(tmp_path, mark):
    (tmp_path / "t.csv").write_text(f"a,b\n1.5,x\n{mark},y\n2.5,{mark}\n0.5,x\n")
    table = lt.as_parts(tmp_path / "t.csv").to_table()
    assert table.missing_counts.tolist() == [1, 1]
    assert table.schema.kinds == ("real", "category")


def test_other_marks_are_given(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1.5,x\n-999,y\n2.5,none\n-999.0,x\n0.5,y\n")
    table = lt.as_parts(tmp_path / "t.csv", na=["-999", "none"]).to_table()
    assert table.missing_counts.tolist() == [2, 1]
    code, _, err = run("learn", tmp_path / "t.csv", "--na", "-999", "--na", "none")
    assert code == 0
    assert "3 cells missing" in err


def test_codes_for_missing_values_are_pointed_out(run, tmp_path):
    values = np.random.default_rng(0).normal(50, 20, (100, 4)).round(1)
    values[:, 3] -= 900
    values[3, 0], values[5:9, 1], values[0, 2], values[0, 3] = -999, 9999, 99, -999
    frame = pd.DataFrame(values, columns=list("abcd"))
    with pytest.warns(DataWarning) as found:
        lt.as_table(frame)
    said = [str(warning.message) for warning in found]
    expected = ["column 'a' holds -999", "column 'b' holds 9999"]
    assert [text.split(",")[0] for text in said] == expected
    frame.to_csv(tmp_path / "t.csv", index=False)
    _, _, err = run("learn", tmp_path / "t.csv", "-m", "chow_liu")
    assert "if it stands for a missing value, say --na -999\n" in err
    answers = pd.DataFrame({"q1": [1, 2, 3, 99, 5, 4] * 5, "q2": [1, 2, 3, 4, 5, 5] * 5})
    with pytest.warns(DataWarning, match="'q1' holds 99, far from"):
        lt.as_table(answers)


@pytest.mark.parametrize(
    "text",
    [
        "a\tb c\n1.5\t2.5\n3.5\t0.5\n9.5\t1.5\n",
        "a;b c\n1,5;2,5\n3,5;0,5\n9,5;1,5\n",
        "a|b c\n1.5|2.5\n3.5|0.5\n9.5|1.5\n",
        'a "b c"\n1.5 2.5\n3.5 0.5\n9.5 1.5\n',
        '   a  "b c"\n 1.5  2.5 \n 3.5  0.5\r\n 9.5 1.5\n',
        'a "b c"\n"r 1" 1.5 2.5\n"r 2" 3.5 0.5\n"r 3" 9.5 1.5\n',  # as R writes it
    ],
)
def test_text_shows_what_separates_cells(tmp_path, text):
    (tmp_path / "t.txt").write_text(text, newline="")
    with gzip.open(tmp_path / "t.txt.gz", "wb") as file:
        file.write(text.encode())
    for name in ("t.txt", "t.txt.gz"):
        table = lt.as_parts(tmp_path / name).to_table()
        assert table.names == ("a", "b c")
        assert table.values.tolist() == [[1.5, 2.5], [3.5, 0.5], [9.5, 1.5]]


def test_workbooks(tmp_path, frame, monkeypatch):
    pytest.importorskip("openpyxl")
    mixed = frame.assign(word=["x", "y"] * 100, day=pd.Timestamp(2020, 1, 1))
    mixed.iloc[3, 6] = "N/A"
    mixed.to_excel(tmp_path / "t.xlsx")
    with pytest.warns(DataWarning, match="'day'"):
        table = lt.as_parts(tmp_path / "t.xlsx").to_table()
    assert table.names == (*"abcdef", "word")
    assert np.allclose(table.values[:, :6], frame, equal_nan=True)  # Excel keeps 15 digits
    assert np.isnan(table.values[3, 6])
    (tmp_path / "bad.xlsx").write_bytes(b"PK no workbook")
    with pytest.raises(lt.errors.FileError, match="is not an Excel workbook"):
        lt.as_parts(tmp_path / "bad.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(lt.errors.MissingExtraError, match=r"latentree\[excel\]"):
        lt.as_parts(tmp_path / "t.xlsx")


# Predicting -------------------------------------------------------------------------------------


def test_predict_a_column_that_the_data_lacks(run, words, tmp_path):
    path, frame = words
    model = lt.load(path.with_suffix(".json"))
    lacking = tmp_path / "lacking.csv"
    frame.drop(columns="b").to_csv(lacking)
    code, out, _ = run("predict", path.with_suffix(".json"), lacking, "--column", "b")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == '"","b"' or lines[0] == ",b"
    empty = frame.assign(b=pd.Series([None] * len(frame), dtype=object))
    predicted = [line.split(",")[1].strip('"') for line in lines[1:]]
    assert predicted == model.impute(empty)[:, 1].tolist()
    code, out, _ = run("predict", path.with_suffix(".json"), path, "-c", "b", "--proba")
    shares = np.array([line.split(",")[1:] for line in out.splitlines()[1:]], float)
    assert out.splitlines()[0].endswith("b=no,b=yes")
    assert np.allclose(shares, model.posterior(empty, ["b"])["b"])
    code, out, err = run("impute", path.with_suffix(".json"), lacking)
    assert code == 0
    assert "no value to start from: 'b'" in err
    assert "filled in 300 cells" in err
    code, _, err = run("score", path.with_suffix(".json"), lacking)
    assert code == 1
    assert "there is no column 'b'" in err


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """A model, and a table with gaps in other columns than the model's too, in another order."""
    folder = tmp_path_factory.mktemp("patients")
    rng = np.random.default_rng(0)
    ill = rng.random(200) < 0.4
    frame = pd.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(200)],
            "unit": "kg",
            "weight": rng.normal(np.where(ill, 60.0, 80.0), 9.0).round(1),
            "smokes": np.where(rng.random(200) < np.where(ill, 0.8, 0.2), "yes", "no"),
            "pain": np.clip(rng.normal(np.where(ill, 4.0, 2.0), 1.0).round(), 1, 5),
        }
    )
    frame.to_csv(folder / "all.csv", index=False)
    kinds = ("--kind", "id=ignore")
    learn = ["learn", folder / "all.csv", "-q", *kinds, "--out", folder / "m.json"]
    assert main([str(word) for word in learn]) == 0
    holes = frame[["smokes", "id", "pain", "unit", "weight"]]
    holes = holes.assign(note=["-", "007", "a, b", ""] * 50, seen="1/2/2017")
    for j, name in enumerate(["smokes", "pain", "unit", "weight"]):
        holes.loc[j::9, name] = None
    holes.to_csv(folder / "holes.csv", index=False)
    return folder, frame, holes


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("cells", ["", "700"])
def test_impute_gives_all_columns_back_as_python_does(run, patients, monkeypatch, suffix, cells):
    folder, _, holes = patients
    monkeypatch.setenv("LATENTREE_PART_CELLS", cells)  # in one part, or in several
    out = folder / f"filled{suffix}"
    code, _, err = run("impute", folder / "m.json", folder / "holes.csv", "--out", out)
    assert code == 0, err
    assert f"wrote {out}: 200 rows × 7 columns" in err
    schema = lt.load(folder / "m.json").schema
    filled = lt.load(folder / "m.json").impute(holes[list(schema.names)])
    if suffix == ".parquet":
        theirs = pd.read_parquet(out)
    else:
        theirs = pd.read_csv(
            out, sep="," if suffix == ".csv" else "\t", dtype=str, keep_default_na=False,
        )  # fmt: skip
        assert theirs["id"].tolist() == holes["id"].tolist()
        assert theirs["note"].tolist() == holes["note"].tolist()
    assert theirs.columns.tolist() == holes.columns.tolist()
    assert theirs["unit"].tolist() == ["kg"] * 200
    assert theirs["seen"].tolist() == ["1/2/2017"] * 200
    for j, name in enumerate(schema.names):
        cells = theirs[name].tolist()
        if name != "smokes":  # numbers of text to the last bit, as Python reads them
            cells = list(map(float, cells))
        assert cells == filled[:, j].tolist()


def test_impute_reads_standard_input_and_adds_what_is_lacking(run, patients, monkeypatch):
    folder, _, holes = patients
    text = holes.drop(columns="weight").to_csv(index=False)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, err = run("impute", folder / "m.json", "-")
    assert code == 0, err
    assert err.startswith("standard input: 200 rows")
    filled = pd.read_csv(io.StringIO(out))
    assert filled.columns.tolist() == ["smokes", "id", "pain", "unit", "note", "seen", "weight"]
    assert filled["weight"].notna().all()


# Showing ----------------------------------------------------------------------------------------


def test_classes_are_shown_and_given_to_machines(run, words):
    path, frame = words
    options = ("learn", path, "-m", "lcm", "--states", "3")
    code, out, _ = run(*options)
    assert code == 0
    assert "States of h1" in out
    assert all(f"\n{name} " in out for name in frame)
    code, out, _ = run(*options, "--json")
    states = json.loads(out)["hidden"][0]["states"]
    assert states["variable"][:1] == ["h1"]
    assert len(states) == 2 + 3
    assert run("learn", path, "-m", "lcm", "--states", "auto")[0] == 0
    code, _, err = run("learn", path, "-m", "bin", "--states", "3")
    assert code == 2
    assert "--states is for --method" in err


def test_no_hidden_variable_is_explained(run, tmp_path):
    x = np.random.default_rng(0).standard_normal((300, 2))
    x[:, 1] += x[:, 0]
    pd.DataFrame(x, columns=["a", "b"]).to_csv(tmp_path / "t.csv")
    _, out, _ = run("learn", tmp_path / "t.csv")
    said = " ".join(out.split())
    gain = -0.5 * 300 * np.log(1 - np.corrcoef(x.T)[0, 1] ** 2)
    assert f"without any: 1 edge between variables raises the log-likelihood by {gain:.1f}" in said
    assert f"the BIC score by {gain - 0.5 * np.log(300):.1f} over independent variables" in said


def test_an_edge_has_one_number(run, words):
    model = lt.load(words[0].with_suffix(".json"))
    _, out, _ = run("show", words[0].with_suffix(".json"))
    for node, strength in enumerate(lt.models.edge_strengths(model)):
        if model.tree.parent[node] >= 0:
            assert f"  {strength:.2f}\n" in out
    assert "Strength of an edge: " in out
    assert np.allclose(model.tree.length, model.distance_tree().length)


def test_columns_to_drop_can_be_pasted(run, tmp_path):
    names = ['a, "b"', "it's", "c", "d", "e", "f", "g h"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 7)), columns=names)
    frame["k"], frame["l"] = frame["c"] + 0.5, 0.1
    path = tmp_path / "t.csv"
    frame[names] = frame[names].map("<{}>".format)
    frame.to_csv(path, index=False)
    command = ("learn", path, "-q", "--family", "gaussian", "-m", "chow_liu")
    code, _, err = run(*command)
    assert code == 1
    pasted = shlex.split(err[err.rindex("(--drop ") + 1 : err.rindex(")")])
    code, _, err = run(*command, *pasted)
    assert code == 0, err


def test_shells_complete_commands():
    asked = {"COMP_WORDS": "latentree pre", "COMP_CWORD": "1"}
    env = {**os.environ, **asked, "_LATENTREE_COMPLETE": "complete_bash"}
    command = [sys.executable, "-m", "latentree"]
    found = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["predict"]

"""Tables as other programs export them: encodings, titles, workbooks, damaged files."""

from __future__ import annotations

import gzip
import re
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latentree as lt
from latentree.cli import main
from latentree.data import as_parts, open_table
from latentree.data._files._file_rows import open_files
from latentree.errors import DataWarning, FileError, LatentTreeError

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "Größe": RNG.normal(size=40).round(3),
        "Stärke": RNG.normal(size=40).round(3),
        "Farbe": np.resize(["grün", "weiß", "blau"], 40),
    }
)


def quiet(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return open_table(path, **options)


def same(read) -> None:
    """A table was read as it is."""
    expected = lt.as_table(TABLE)
    assert read.schema == expected.schema
    np.testing.assert_allclose(read.values, expected.values)


# Encodings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_unicode_is_recognized(tmp_path, encoding, suffix):
    data = TABLE.to_csv(index=False).encode(encoding)
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    same(open_table(path))  # without a warning
    same(open_table(path, encoding="utf-8-sig" if encoding == "utf-8" else encoding))


def test_windows_text_is_read_with_a_warning(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TABLE.to_csv(index=False).encode("cp1252"))
    with pytest.warns(DataWarning, match="read as cp1252"):
        same(open_table(path))
    same(open_table(path, encoding="latin-1"))
    with pytest.raises(FileError, match="encoding 'klingon' is not known"):
        open_table(path, encoding="klingon")
    with pytest.raises(FileError, match="is not text in utf-16"):
        open_table(path, encoding="utf-16")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_other_encodings_are_read_in_blocks(tmp_path, encoding):
    """The first odd character is far down, and blocks are read again by their places."""
    lines = ["a,b", *(f"{i % 7}.25,grun{i % 3}" for i in range(2_000)), "1.5,grün"]
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(lines).encode(encoding))
    whole = quiet(path)
    assert "grün" in whole.schema.labels[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        rows = open_files(path, block_bytes=100)
    assert len(rows.files[0].n_rows) > 50
    later = rows.piece(500, 3)  # begins in the middle of the file
    assert later.column(1).to_pylist() == [f"grun{i % 3}" for i in range(1_500, 2_000)]
    again = rows.piece(500, 1)
    assert again.column(1).to_pylist() == [f"grun{i % 3}" for i in range(500, 1_000)]


def test_encoding_and_sheet_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes(TABLE.to_csv(index=False).encode("cp1250"))
    assert main(["learn", str(path), "-q", "--encoding", "cp1250"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["learn", str(path), "-q", "--encoding", "klingon"]) == 1
    assert main(["learn", str(path)]) == 0
    assert "as in --encoding latin-1" in capsys.readouterr().err


# Titles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "title",
    ["Farben der Welt\n", "Farben der Welt\n\n", '"Farben, 2024"\nQuelle: uns\n', "Farben,,\n,,\n"],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_title_above_the_names_is_noticed(tmp_path, title, delimiter):
    path = tmp_path / "t.csv"
    text = TABLE.to_csv(index=False, sep=delimiter)
    path.write_text(title.replace(",,", 2 * delimiter) + text, "utf-8")
    with pytest.warns(DataWarning, match=r"taken as a title: '\"?Farben"):
        same(open_table(path))


def test_lines_are_still_numbered_from_the_top(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("A title\n\na,b,c\n1,2,3\n4,5,6\n7,8\n")
    with pytest.raises(FileError, match="line 6: 2 cells, but"):
        quiet(path)
    path.write_text("sep=,\na,b,c\n1,2,3\n4,5,6\nSource: census\n")
    for header in (None, False):
        with pytest.raises(FileError, match="line 5: 1 cell, but there are 3 columns"):
            quiet(path, header=header)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_spreadsheets_say_what_separates_cells(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    path.write_text(f"sep={delimiter}\n" + TABLE.to_csv(index=False, sep=delimiter), "utf-8")
    same(open_table(path))


@pytest.mark.parametrize(
    "text",
    [
        "id,tags\n" + "1,a;b;c\n2,d;e;f\n3,g;h;i\n" * 3,  # lists within cells
        "x\n1.5\n2.5\n3.5\n",
        ",y\nann,red\nbob,blue\ncid,red\n",  # row labels
        "a,b,c\nx,,\ny,,\nz,q,r\n",
    ],
)
def test_names_are_no_title(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "(?s).*title", DataWarning)
        warnings.filterwarnings("ignore", "(?s).*set aside", DataWarning)
        names = open_table(path).schema.whole_names
    assert names[-1] == text.split("\n")[0].split(",")[-1]


def test_an_index_that_was_saved_twice(tmp_path):
    path = tmp_path / "t.csv"
    TABLE.to_csv(path)
    pd.read_csv(path).sample(frac=0.5, random_state=0).to_csv(path)
    read = quiet(path)
    assert read.names == tuple(TABLE.columns)
    assert read.schema.whole_names[:2] == ("Unnamed: 0.1", "Unnamed: 0")


# Workbooks --------------------------------------------------------------------------------------


def workbook(path, **sheets) -> None:
    with pd.ExcelWriter(path) as writer:
        for name, frame in sheets.items():
            frame.to_excel(writer, sheet_name=name, index=False)


def changed(path, change) -> None:
    """Change the XML of the first sheet of a workbook."""
    with zipfile.ZipFile(path) as book:
        members = {name: book.read(name) for name in book.namelist()}
    members["xl/worksheets/sheet1.xml"] = change(members["xl/worksheets/sheet1.xml"])
    with zipfile.ZipFile(path, "w") as book:
        for name, data in members.items():
            book.writestr(name, data)


@pytest.mark.parametrize("size", ["A1:C10", "A1:B41", "A1", "A1:AA999", "B7:B8"])
def test_the_size_that_a_workbook_states_is_not_believed(tmp_path, size):
    path = tmp_path / "t.xlsx"
    workbook(path, one=TABLE)
    pattern = rb'<dimension ref="[^"]*"'
    changed(path, lambda xml: re.sub(pattern, f'<dimension ref="{size}"'.encode(), xml))
    same(open_table(path))


@pytest.mark.parametrize("number", [b"8000000000", b"1e9"])
def test_numbers_of_rows_are_bounded(tmp_path, number):
    path = tmp_path / "t.xlsx"
    workbook(path, one=TABLE)
    changed(path, lambda xml: xml.replace(b'<row r="7"', b'<row r="%b"' % number))
    with pytest.raises(FileError, match="a sheet has 1,048,576 rows at most"):
        open_table(path)


def test_sheets_are_named_and_chosen(tmp_path, capsys):
    path = tmp_path / "t.xlsx"
    other = TABLE.iloc[:20]
    workbook(path, leer=pd.DataFrame(), daten=TABLE, mehr=other)
    with pytest.warns(DataWarning, match="sheet 'daten' was read; there are also 'leer', 'mehr'"):
        same(open_table(path))
    same(open_table(path, sheet="daten"))
    same(open_table(path, sheet="2"))
    assert open_table(path, sheet="mehr").n_rows == 20
    with pytest.raises(FileError, match="there is no sheet 'x': it has 'leer', 'daten', 'mehr'"):
        open_table(path, sheet="x")
    with pytest.raises(FileError, match="sheet 'leer' is empty"):
        open_table(path, sheet="leer")
    assert main(["learn", str(path), "--sheet", "mehr"]) == 0
    assert "20 rows" in capsys.readouterr().err
    assert main(["learn", str(path)]) == 0
    assert "which --sheet chooses" in capsys.readouterr().err


def test_a_title_in_a_workbook(tmp_path):
    path = tmp_path / "t.xlsx"
    TABLE.to_excel(path, startrow=3, index=False)
    with pytest.warns(DataWarning, match="taken as a title") as found:
        same(open_table(path))
    assert len(found) == 1


def test_damaged_workbooks_are_refused_by_name(tmp_path):
    path = tmp_path / "t.xlsx"
    workbook(path, one=TABLE)
    whole = path.read_bytes()
    n_refused = 0
    for change in (
        lambda xml: xml[: len(xml) // 2],
        lambda xml: xml.replace(b"<row", b"<raw"),
        lambda xml: xml.replace(b'r="A5"', b'r="5"'),
        lambda xml: xml.replace(b'r="B7"', b'r="ZZZZZ7"'),
        lambda xml: xml.replace(b't="s"><v>1<', b't="s"><v>99<'),
        lambda xml: b"",
    ):
        path.write_bytes(whole)
        changed(path, change)
        try:
            quiet(path)
        except LatentTreeError as error:
            assert "t.xlsx" in str(error)  # noqa: PT017
            n_refused += 1
    assert n_refused >= 3


# Other damage -----------------------------------------------------------------------------------


def test_parquet_that_states_more_rows_than_it_holds(tmp_path):
    class Short:
        """A reader of a file whose footer is wrong."""

        def __init__(self, file) -> None:
            self.file, self.path, self.kinds = file, file.path, file.kinds
            self.n_rows = (500,)

        def batches(self, first, columns):
            return self.file.batches(first, columns)

    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": RNG.normal(size=100)}), path)
    rows = open_files(path)
    rows = replace(rows, files=(Short(rows.files[0]),))
    with pytest.raises(FileError, match="states 500 rows, but holds 100"):
        rows.piece(500, 0)


def test_numbers_far_from_zero_have_a_resolution():
    z = RNG.normal(size=(200, 1))
    X = z + RNG.normal(size=(200, 4))
    X[:, 0] += 1e15
    X[:, 3] = X[:, 3] > 0.0
    learned = lt.LatentTree(random_state=0).fit(pd.DataFrame(X, columns=list("abcd")))
    assert np.isfinite(learned.score(pd.DataFrame(X, columns=list("abcd"))))
    assert as_parts(X).n_rows == 200

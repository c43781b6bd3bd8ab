"""Tables from and to files."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from made import NASTY
from numpy.lib import format as npy
from scipy import io as scipy_io
from scipy import sparse

from latentree.data import _parts as parts
from latentree.data import as_table, open_table
from latentree.data._files._file_rows import SUFFIXES, open_files
from latentree.data._files._matrix_files import MATRICES
from latentree.data._files._writers import WRITERS, write_table
from latentree.data._opening import of_files
from latentree.errors import DataWarning, FileError, LatentTreeError, MemoryBudgetError

READERS = (*SUFFIXES, *MATRICES)


def table_of(path, **options):
    return open_table(path, **options)


def by_blocks(path, family="auto", block_bytes=16):
    """Open text of which little is parsed at a time."""
    return of_files(open_files(path, block_bytes=block_bytes), family, None)


def written(folder: Path, text: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problem(path, **options) -> str:
    """The message of the error that reading ends in, which names the file."""
    with pytest.raises(FileError) as caught:
        open_table(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


# Types ------------------------------------------------------------------------------------------


def test_types_decide_the_family(tmp_path):
    real = table_of(written(tmp_path, "a,b\n1.5,2\n-1e3,0.25\n3,NaN\n"))
    assert real.family == "gaussian"
    assert real.names == ("a", "b")
    np.testing.assert_array_equal(real.values, [[1.5, 2], [-1000, 0.25], [3, np.nan]])
    codes = table_of(written(tmp_path, "a,b\n1,7\n2,7\n2,9\n"))
    assert codes.family == "discrete"
    assert codes.schema.labels == ((1, 2), (7, 9))


def test_integers_with_missing_cells_stay_integers(tmp_path):
    table = table_of(written(tmp_path, "a,b\n1,\nNA,9\n2,7\n,7\n"))
    assert table.family == "discrete"
    assert table.schema.labels == ((1, 2), (7, 9))
    assert all(type(label) is int for labels in table.schema.labels for label in labels)
    np.testing.assert_array_equal(table.values, [[0, -1], [-1, 1], [1, 0], [-1, 0]])


@pytest.mark.parametrize("top", [127, 128, -129, 40_000, 2**31, -(2**40), 2**63 - 1])
def test_integers_of_any_size(tmp_path, top):
    table = table_of(written(tmp_path, f"a,b\n0,1\n{top},0\n{top},1\n"))
    assert table.schema.labels == (tuple(sorted((0, top))), (0, 1))


def test_booleans_with_missing_cells_stay_booleans(tmp_path):
    table = table_of(written(tmp_path, "a,b\ntrue,false\n,true\nfalse,true\n"))
    assert table.schema.labels == ((False, True), (False, True))
    assert table.missing_counts.tolist() == [1, 0]


def test_words_are_sorted_labels_and_empty_cells_missing(tmp_path):
    with pytest.warns(DataWarning, match="'c' .no value at all"):
        table = table_of(written(tmp_path, "a,b,c\nyes,2,\nno,1,\n,2,\nmaybe,,\n"))
    assert table.schema.labels == (("maybe", "no", "yes"), (1, 2))
    np.testing.assert_array_equal(table.values.T, [[2, 1, -1, 0], [1, 0, 1, -1]])


def test_words_read_equal_to_what_the_frame_gives(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array(["low", "mid", "high", None], object)[rng.integers(0, 4, (50, 3))]
    path = tmp_path / "words.parquet"
    frame = pa.table({name: words[:, j] for j, name in enumerate("abc")})
    pyarrow.parquet.write_table(frame, path)
    ours, theirs = table_of(path), as_table(frame)
    assert ours.schema == theirs.schema
    np.testing.assert_array_equal(ours.values, theirs.values)


def test_categories_that_do_not_occur_have_no_code(tmp_path):
    codes = pa.array([0, 2, 2, None], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, ["b", "never", "a"])
    path = tmp_path / "c.feather"
    pyarrow.feather.write_feather(pa.table({"x": column}), path)
    table = table_of(path)
    assert table.schema.labels == (("a", "b"),)
    assert table.values[:, 0].tolist() == [1, 0, 0, -1]


def test_words_that_differ_in_every_row_are_set_aside(tmp_path):
    lines = "\n".join(f"name{j},{'xy'[j % 2]}" for j in range(150))
    path = written(tmp_path, f"id,b\n{lines}\n")
    with pytest.warns(DataWarning, match="'id' .text that differs in 100 % of rows"):
        assert table_of(path).names == ("b",)
    assert table_of(path, drop=["id"]).names == ("b",)


def test_dates_are_set_aside(tmp_path):
    path = written(tmp_path, "when,b\n2020-01-01,x\n2020-01-02,y\n")
    with pytest.warns(DataWarning, match="'when' .dates or times"):
        assert table_of(path).names == ("b",)


def mixed_file(folder: Path, n: int = 500) -> Path:
    """Integers with gaps, words, and a real column without a value."""
    lines = [f"{j % 3 if j % 7 else ''},{'xyz'[j % 3]}{j % 2},NaN\n" for j in range(n)]
    return written(folder, "count,word,nothing\n" + "".join(lines))


@pytest.mark.filterwarnings("ignore:1 column is set aside")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
@pytest.mark.parametrize("family", ["auto", "discrete", "symmetric", "mixed"])
def test_whole_and_in_pieces_are_the_same(tmp_path, monkeypatch, suffix, family):
    """Both ways into the library, and both sizes of files, give one table."""
    frame = pyarrow.csv.read_csv(mixed_file(tmp_path))
    frame = frame.set_column(2, "nothing", pa.array([np.nan] * frame.num_rows))
    path = mixed_file(tmp_path)
    if suffix != ".csv":
        path = tmp_path / f"data{suffix}"
        write = (
            pyarrow.parquet.write_table if suffix == ".parquet" else pyarrow.feather.write_feather
        )
        write(frame, path)
    if family == "symmetric":
        frame, columns = frame.select(["word"]), ["word"]
    else:
        columns = list(frame.column_names)
    whole = open_table(path, family, columns=columns)
    theirs = as_table(frame, family)
    monkeypatch.setenv("LATENTREE_PART_CELLS", "64")
    pieces = open_table(path, family, columns=columns)
    assert isinstance(pieces, parts.Parts)
    assert whole.schema == theirs.schema == pieces.schema
    np.testing.assert_array_equal(whole.values, theirs.values)
    np.testing.assert_array_equal(pieces.to_table().values, theirs.values)


# Text -------------------------------------------------------------------------------------------


def test_types_that_change_far_down_are_those_of_the_whole_column(tmp_path):
    body = "".join(f"{j % 3},{j % 2},00{j % 2},1\n" for j in range(60)) + "0.5,,A7,x\n"
    path = written(tmp_path, f"a,b,c,d\n{body}")
    rows = open_files(path, block_bytes=16)
    assert len(rows.files[0].n_rows) > 10
    assert rows.kinds == {"a": "real", "b": "integer", "c": "label", "d": "label"}
    table = table_of(path, family="discrete", drop=["a"])
    # 'c' is text, so its zeros belong to the labels although they came first
    assert table.schema.labels == ((0, 1), ("000", "001", "A7"), ("1", "x"))
    assert table.values[-1].tolist() == [-1, 2, 1]
    piece = rows.piece(100, 0)
    assert piece.column("a").to_pylist()[-1] == 0.5
    assert set(piece.column("c").to_pylist()) == {"000", "001", "A7"}
    assert piece.num_rows == 61


@pytest.mark.parametrize(
    "last", ["0.5,7,true,z\n", "9007199254740993,,x,\n", ",0.25,,007\n", "x,2020-01-01,1,1e3\n"]
)
def test_text_that_is_kept_is_what_reading_it_again_gives(tmp_path, last):
    body = "".join(f"{j},,{'true' if j % 2 else 'false'},00{j}\n" for j in range(20)) + last
    path = written(tmp_path, f"a,b,c,d\n{body}")
    again, kept = (open_files(path, block_bytes=16, held_cells=n) for n in (0, 1_000))
    assert again.kinds == kept.kinds
    assert again.piece(100, 0).to_pydict() == kept.piece(100, 0).to_pydict()
    assert again.piece(5, 2).to_pydict() == kept.piece(5, 2).to_pydict()
    assert not open_files(path, held_cells=80).files[0].held  # 84 cells


def test_cells_with_separators_and_line_ends(tmp_path):
    table = by_blocks(written(tmp_path, 'a,"b,\nc"\n"x\n""y""",1\n' + "z,2\n" * 20))
    assert table.names == ("a", "b,\nc")
    assert table.schema.labels == (('x\n"y"', "z"), (1, 2))
    assert table.n_rows == 21


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_blank_lines_and_marks(tmp_path, end, last):
    text = end.join(["", "a,b", "1,2", "", "3,4"]) + end * last
    table = table_of(written(tmp_path, b"\xef\xbb\xbf" + text.encode()))
    assert table.names == ("a", "b")
    assert table.schema.labels == ((1, 3), (2, 4))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.csv", "a;b\n1,5;2\n0,25;3,5\n"),
        ("data.csv", "a;b\n1.5;2\n0.25;3.5\n"),
        ("data.csv", "a\tb\n1.5\t2\n0.25\t3.5\n"),
        ("data.tsv", "a\tb\n1.5\t2\n0.25\t3.5\n"),
        ("DATA.CSV", "a,b\n1.5,2\n0.25,3.5\n"),
    ],
)
def test_separators(tmp_path, name, text):
    table = table_of(written(tmp_path, text, name))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1.5, 2], [0.25, 3.5]])


def test_packed_text(tmp_path):
    path = written(tmp_path, gzip.compress(b"a,b\n1,2\n3,4\n"), "data.csv.gz")
    assert table_of(path).n_rows == 2
    assert "damaged" in problem(written(tmp_path, gzip.compress(b"a,b\n" * 99)[:-9], "cut.csv.gz"))
    assert "damaged" in problem(written(tmp_path, "a,b\n1,2\n", "not.csv.gz"))


def test_standard_input(monkeypatch):
    text = b"a,b\n" + b"1,2\n" * 5 + b"x,3\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert table_of("-").schema.labels == (("1", "x"), (2, 3))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(FileError, match=r"^standard input: is empty"):
        open_table("-")


def test_selection(tmp_path):
    path = written(tmp_path, "id,a,b,c\nk1,1.5,2.5,3.5\nk2,2,3,4\n")
    assert table_of(path, columns=["c", "a"]).names == ("c", "a")
    assert table_of(path, drop=["id", "b"]).names == ("a", "c")
    np.testing.assert_array_equal(table_of(path, columns=["c", "a"]).values[0], [3.5, 1.5])
    assert "no column 'd' (did you mean 'id'?): it has 'id', 'a', 'b', 'c'" in problem(
        path, columns=["a", "d"]
    )
    assert "no column 'd'" in problem(path, drop=["d"])
    assert "no column is left" in problem(path, drop=["id", "a", "b", "c"])


def test_header_or_none(tmp_path):
    path = written(tmp_path, "1.5,2\n3.5,4.5\n5,6.5\n")
    message = problem(path)
    assert "the first line holds numbers (1.5, 2)" in message
    assert "header=False" in message
    assert table_of(path, header=False).names == ("x0", "x1")
    assert table_of(path, header=False).n_rows == 3
    assert table_of(path, header=True).names == ("1.5", "2")
    words = written(tmp_path, "yes,no\nno,no\nno,yes\n")
    assert table_of(words, header=False).n_rows == 3


# What is no table -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("\n\n\n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n\n", "no rows"),
        ("a,b\r1,2\r3,4\r", "save the file with line feeds"),
        ("a,b\n1,2\n3\n", "line 3: 1 cell, but there are 2 columns: '3'"),
        ("a,b\n1,2\n3,4,5\n", "line 3: 3 cells"),
        ("a,a\n1,2\n", "'a' occurs twice"),
        (b"\x89PNG\x00\x01\x02" * 99, "binary data"),
        ("größe,b\n1,2\n".encode() + b"gro\xdf,2", "byte 17 of the file is not text in UTF-8"),
        (b"a,b\ngro\x81,2\n", "nor is the file cp1252: say which encoding it is in"),
    ],
)
def test_texts_that_are_no_tables(tmp_path, text, expected):
    assert expected in problem(written(tmp_path, text))


def test_ragged_lines_have_their_number_however_far_down(tmp_path):
    path = written(tmp_path, "a,b\n" + "1,2\n" * 500 + "7\n" + "1,2\n" * 5)
    with pytest.raises(FileError, match="line 502: 1 cell"):
        by_blocks(path)
    assert "line 502: 1 cell" in problem(path)


def test_paths_that_are_no_files(tmp_path):
    assert "there is no such file" in problem(tmp_path / "no.csv")
    assert "there is no such file" in problem(tmp_path / "no.npz")
    assert "there is no such file" in problem(tmp_path / "no.mtx")
    assert "there is no such file" in problem(tmp_path / "no.parquet")
    (tmp_path / "folder.csv").mkdir()
    assert "the folder holds no file" in problem(tmp_path)
    assert "the folder holds no file" in problem(tmp_path / "folder.csv")
    message = problem(tmp_path / "data.xyz")
    assert "'.xyz' names no known format" in message
    assert all(suffix in message for suffix in READERS)


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("seed", range(5))
def test_junk_is_refused_in_every_format(tmp_path, suffix, seed):
    junk = np.random.default_rng(seed).bytes(3_000)
    problem(written(tmp_path, junk, f"junk{suffix}"))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npz", ".csv.gz"])
def test_truncated_files_are_refused(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    write_table(path, ["a", "b"], np.random.default_rng(0).normal(size=(500, 2)))
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        problem(path)


# Other formats ----------------------------------------------------------------------------------


def test_arrow_streams(tmp_path):
    path = tmp_path / "s.arrow"
    frame = pa.table({"a": [1, None, 2], "b": [True, False, None]})
    with pa.ipc.new_stream(path, frame.schema) as stream:
        stream.write_table(frame)
    table = table_of(path, columns=["b", "a"])
    assert table.schema.labels == ((False, True), (1, 2))


def test_npz_of_numpy(tmp_path):
    path = tmp_path / "d.npz"
    data = np.random.default_rng(0).normal(size=(4, 3))
    np.savez(path, data)
    assert table_of(path).names == ("x0", "x1", "x2")
    np.savez(path, data=data, other=data, names=np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(table_of(path, columns=["c", "a"]).values, data[:, [2, 0]])
    np.savez(path, one=data, two=data)
    assert "2 matrices (one, two)" in problem(path)
    np.savez(path, data=data, names=np.array(["a", "b"]))
    assert "2 names for 3 columns" in problem(path)
    np.savez(path, data=np.array([[{}, []]], object))
    assert "plain numbers or strings" in problem(path)


def zipped(path, **members):
    """Write an archive of arrays, or of bytes as they are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            file = io.BytesIO()
            if not isinstance(content, bytes):
                np.save(file, content)
            packed.writestr(
                f"{name}.npy", content if isinstance(content, bytes) else file.getvalue()
            )


def header_of(shape, kind="<f8"):
    """The bytes of an array without its content."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_unused_members_of_an_archive_are_not_unpacked(tmp_path):
    path, data = tmp_path / "d.npz", np.arange(12.0).reshape(4, 3)
    zipped(path, data=data, unused=np.zeros(10**7), text=b"no array", text2=b"")
    tracemalloc.start()
    values = table_of(path, family="gaussian").values
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(values, data)
    assert peak < 10**7


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        ((10**6, 10**6), "<f8", "would need"),
        ((10**3, 10**3), "<f8", "declares 8 MB, but holds"),
        ((10**9, 3), "<U0", "would need"),
        ((-3, 4), "<f8", "cannot be read"),
        ((3.0, 4), "<f8", "cannot be read"),
        ((2, 2), "|O", "cannot be read"),
        ((2, 2), "<U4", "holds what is no text"),
    ],
)
def test_headers_of_arrays_are_not_believed(tmp_path, monkeypatch, shape, kind, message):
    monkeypatch.setenv("LATENTREE_MEMORY", "4GB")
    zipped(tmp_path / "d.npz", data=header_of(shape, kind) + b"\xff" * 64)
    with pytest.raises(LatentTreeError, match=message):
        open_table(tmp_path / "d.npz")


def test_numbers_count_as_what_they_become(tmp_path, monkeypatch):
    zipped(tmp_path / "d.npz", data=np.zeros((10**4, 10**3), np.int8))  # 10 kB, and 10 MB
    monkeypatch.setenv("LATENTREE_MEMORY", "50MB")
    with pytest.raises(MemoryBudgetError, match="10,000 × 1,000 would need 91"):
        open_table(tmp_path / "d.npz")


@pytest.mark.parametrize("shape", [(3, 10**12), (10**12, 3)])
def test_sizes_of_sparse_matrices_are_not_believed(tmp_path, shape):
    entries = {"data": np.ones(1), "row": np.zeros(1, int), "col": np.zeros(1, int)}
    zipped(tmp_path / "d.npz", format=np.array(b"coo"), shape=np.array(shape), **entries)
    sizes = f"{shape[0]} {shape[1]} 1\n1 1 1\n"
    text = f"%%MatrixMarket matrix coordinate real general\n{sizes}"
    (tmp_path / "d.mtx").write_text(text)
    for name in ("d.npz", "d.mtx"):
        with pytest.raises(MemoryBudgetError, match="would need"):
            open_table(tmp_path / name)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "dia", "coo"])
def test_sparse_layouts_of_scipy(tmp_path, layout):
    dense = (np.random.default_rng(0).random((40, 6)) < 0.3).astype(np.int8)
    for kind in ("array", "matrix"):
        made = getattr(sparse, f"{layout}_{kind}")(dense)
        sparse.save_npz(tmp_path / "d.npz", made)
        np.testing.assert_array_equal(table_of(tmp_path / "d.npz").values.toarray(), dense)


def test_places_beyond_a_sparse_matrix_are_refused(tmp_path):
    parts = {"data": np.ones(1), "indices": np.array([7]), "indptr": np.array([0, 1, 1])}
    ends = [{"indptr": np.array([0, end, last])} for end, last in ((9, 1), (1, -5))]
    for odd in ({}, {"indices": np.array([-1])}, *ends):
        shape = {"format": np.array(b"csr"), "shape": np.array([2, 3])}
        zipped(tmp_path / "d.npz", **shape, **parts | odd)
        assert "cannot be read" in problem(tmp_path / "d.npz")


@pytest.mark.parametrize("name", ["d.npz", "d.mtx", "d.mtx.gz"])
def test_sparse_matrices_stay_sparse(tmp_path, name):
    dense = np.random.default_rng(0).random((40, 6)) < 0.3
    matrix = sparse.csr_array(dense.astype(np.int8))
    path = tmp_path / name
    if name == "d.npz":
        sparse.save_npz(path, matrix)
    else:
        buffer = io.BytesIO()
        scipy_io.mmwrite(buffer, matrix)
        text = buffer.getvalue()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    table = table_of(path)
    assert table.is_sparse
    np.testing.assert_array_equal(table.values.toarray(), dense)
    part = table_of(path, columns=["x4", "x0"])
    np.testing.assert_array_equal(part.values.toarray(), dense[:, [4, 0]])


def test_dense_matrix_market(tmp_path):
    data = np.random.default_rng(0).normal(size=(5, 3))
    scipy_io.mmwrite(tmp_path / "d.mtx", data, precision=17)
    np.testing.assert_allclose(table_of(tmp_path / "d.mtx").values, data, rtol=1e-15)


# Writing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITERS)
def test_numbers_survive_exactly(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    data = np.random.default_rng(0).normal(size=(25_000, 3)) * 10.0 ** np.arange(-150, 151, 150)
    data[3, 1] = np.nan
    write_table(path, ["a", "b", "c"], data)
    table = table_of(path)
    assert table.names == ("a", "b", "c")
    np.testing.assert_array_equal(table.values, data)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow"])
def test_labels_survive(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    labels = np.array([["a,b", 1], ['say "hi"', 2], ["line\nfeed", None], [None, 3]], object)
    write_table(path, ["x", "y"], labels)
    table = table_of(path)
    assert table.schema.labels == (tuple(sorted(["a,b", 'say "hi"', "line\nfeed"])), (1, 2, 3))
    assert table.missing_counts.tolist() == [1, 1]


def test_labels_of_mixed_types_are_written_as_text(tmp_path):
    write_table(tmp_path / "o.csv", ["x"], np.array([[1], ["b"], [True]], object))
    assert table_of(tmp_path / "o.csv").schema.labels == (("1", "True", "b"),)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".npz"])
def test_names_survive(tmp_path, suffix):
    names = [name for name in NASTY if name and name == name.strip()]
    if suffix in (".csv", ".tsv"):
        names = [name for name in names if "\r" not in name and name != "\ufeff"]
    path = tmp_path / f"out{suffix}"
    write_table(path, names, np.random.default_rng(0).normal(size=(3, len(names))))
    assert table_of(path, header=True).names == tuple(names)


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = written(tmp_path, "old", "out.csv")

    def fail(*_):
        raise MemoryError

    monkeypatch.setitem(WRITERS, ".csv", fail)
    with pytest.raises(MemoryError):
        write_table(path, ["a"], np.zeros((1, 1)))
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_unknown_suffixes_are_not_written(tmp_path):
    with pytest.raises(FileError, match=r"'\.mtx' names no known format"):
        write_table(tmp_path / "out.mtx", ["a"], np.zeros((1, 1)))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        write_table(tmp_path / "folder.csv", ["a"], np.zeros((1, 1)))


# Memory -----------------------------------------------------------------------------------------

PEAK = """
import json, sys, threading, resource
import numpy, pyarrow.csv, scipy.sparse
from latentree.data import open_table
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
table = open_table(sys.argv[1])
print(json.dumps([peak() - before, table.n_rows, table.n_columns, table.family]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
@pytest.mark.parametrize("kind", ["real", "integer", "word"])
def test_reading_takes_less_than_five_times_the_data(tmp_path, kind):
    """The data is eight bytes a cell; pyarrow's reader of whole files needs over six times."""
    n, m = 100_000, 100
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (10_000, m))
    words = np.array(["never", "seldom", "often", "always", "don't know"], object)
    part = {"real": rng.normal(size=codes.shape), "integer": codes, "word": words[codes]}[kind]
    one = tmp_path / "part.csv"
    write_table(one, [f"v{j}" for j in range(m)], part)
    header, body = one.read_bytes().split(b"\n", 1)
    path = tmp_path / "data.csv"
    path.write_bytes(header + b"\n" + body * (n // len(part)))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)],
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=True,
    )
    extra, n_rows, n_columns, family = json.loads(done.stdout)
    assert (n_rows, n_columns) == (n, m)
    assert family == {"real": "gaussian", "integer": "mixed", "word": "discrete"}[kind]
    assert extra < {"real": 4, "integer": 3, "word": 4}[kind] * 8 * n * m


def test_bytes_that_are_no_text_are_named(tmp_path):
    cells = pa.Array.from_buffers(
        pa.utf8(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xc3")]
    )
    path = tmp_path / "bytes.parquet"
    pa.parquet.write_table(pa.table({"word": cells, "x": ["u", "v"]}), path)
    with pytest.raises(
        LatentTreeError, match="column 'word' holds bytes that are no text in UTF-8"
    ):
        open_table(path)

"""Files read in parts: the same rows however they lie in files, and clear errors."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import latentree as lt
from latentree.data import as_table
from latentree.data._files._file_rows import open_files
from latentree.data._opening import of_files
from latentree.distances import gather
from latentree.errors import DataError, DataWarning, FileError

N, M = 1_000, 5
NAMES = [f"v{j}" for j in range(M)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Many parts from little data."""
    monkeypatch.setenv("LATENTREE_PART_CELLS", str(64 * M))


def opened(X, family="auto", batch_rows=11) -> lt.data.Parts:
    """Open files of which little is decoded at a time."""
    return of_files(open_files(X, batch_cells=batch_rows * M, block_bytes=3_000), family, None)


def real_data(dtype=np.float64, missing=True):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((N, 1)) + rng.standard_normal((N, M))).astype(dtype)
    if missing:
        x[rng.random(x.shape) < 0.05] = np.nan
    return x


def words():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, (N, M))
    codes[:, 1:] = np.where(rng.random((N, M - 1)) < 0.7, codes[:, :1], codes[:, 1:])
    return np.array(["no", "perhaps", "yes"], object)[codes]


def arrow(x, names=NAMES) -> pa.Table:
    return pa.table({name: pa.array(x[:, j], from_pandas=True) for j, name in enumerate(names)})


def write(table: pa.Table, path, **options):
    name = path.name
    if name.endswith(".parquet"):
        pq.write_table(table, path, **options)
    elif name.endswith(".feather"):
        pa.feather.write_feather(table, path, chunksize=options.get("row_group_size", 300))
    elif name.endswith(".arrow"):
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table, max_chunksize=options.get("row_group_size", 300))
    elif name.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            pa.csv.write_csv(table, file)
    else:
        pa.csv.write_csv(table, path)
    return path


def whole(parts: lt.data.Parts) -> np.ndarray:
    return np.concatenate(list(parts.tables.each(lambda table: np.array(table.values))))


# The same rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow", "csv", "csv.gz"])
@pytest.mark.parametrize("kind", ["real", "words"])
def test_parts_hold_the_rows_of_the_file(suffix, kind, tmp_path):
    x = real_data() if kind == "real" else words()
    table = as_table(x, names=NAMES)
    parts = opened(write(arrow(x), tmp_path / f"data.{suffix}", row_group_size=150))
    assert parts.schema == table.schema
    assert (parts.n_rows, parts.n_parts) == (N, -(-N // 64))
    np.testing.assert_array_equal(whole(parts), table.values)


def test_any_cut_into_files_and_groups_gives_the_same_sums_to_the_last_bit(tmp_path):
    x = real_data(np.float32)
    table = arrow(x)
    first = gather(lt.as_parts(write(table, tmp_path / "one.parquet")))
    for number, (cut, group, batch) in enumerate([(1, 7, 1000), (499, 100, 3), (64, 64, 64)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(table.slice(0, cut), folder / "a.parquet", row_group_size=group)
        write(table.slice(cut), folder / "b.parquet", row_group_size=group)
        (folder / "_SUCCESS").touch()
        other = gather(opened(folder, batch_rows=batch))
        for name in ("first", "squares"):
            ours, expected = getattr(other.sums.numbers, name), getattr(first.sums.numbers, name)
            np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(other.sums.pairs.cross, first.sums.pairs.cross)
        several = gather(lt.as_parts([folder / "a.parquet", folder / "b.parquet"]))
        np.testing.assert_array_equal(several.sums.pairs.cross, first.sums.pairs.cross)


def test_distances_are_those_of_the_table(tmp_path):
    x = real_data()
    parts = lt.as_parts(write(arrow(x), tmp_path / "data.parquet"))
    np.testing.assert_allclose(
        lt.information_distances(parts).dense(), lt.information_distances(x).dense(), atol=1e-12
    )


def test_parts_can_be_read_from_any_on_and_sent_elsewhere(tmp_path):
    x = real_data()
    write(arrow(x[:300]), tmp_path / "a.parquet", row_group_size=50)
    write(arrow(x[300:]), tmp_path / "b.parquet", row_group_size=111)
    files = pickle.loads(pickle.dumps(open_files(tmp_path, batch_cells=11 * M)))
    for number in (0, 3, 4, 5, 15):
        piece = files.piece(64, number)
        expected = x[64 * number : 64 * (number + 1)]
        np.testing.assert_array_equal(np.column_stack([c.to_numpy() for c in piece]), expected)


def test_types_of_text_are_those_of_the_whole_file(tmp_path):
    path = tmp_path / "data.csv"
    body = "".join(f"{i},{i % 3},\n" for i in range(900)) + "1.5,x,7\n"
    path.write_text("a,b,c\n" + body)
    kinds = open_files(path, block_bytes=3_000).kinds
    assert kinds == {"a": "real", "b": "label", "c": "integer"}
    parts = lt.as_parts(path, "gaussian", columns=["a"])
    np.testing.assert_array_equal(whole(parts)[-1], [1.5])
    with pytest.warns(DataWarning, match=r"set aside: 'c' \(always 7\)"):
        labels = lt.as_parts(path, "discrete", columns=["b", "c"]).schema.labels
    assert labels == (("0", "1", "2", "x"),)


def test_columns_in_another_order_are_mended_by_name(tmp_path):
    x = real_data()
    write(arrow(x[:500]), tmp_path / "a.parquet")
    write(arrow(x[500:]).select(NAMES[::-1]), tmp_path / "b.parquet")
    np.testing.assert_array_equal(whole(lt.as_parts(tmp_path)), x)


def test_columns_of_other_widths_and_dictionaries_go_together(tmp_path):
    codes = np.random.default_rng(0).integers(0, 3, (N, 2))
    a = pa.table({"a": codes[:500, 0].astype(np.int8), "b": pa.array(codes[:500, 1].astype(str))})
    b = pa.table(
        {"a": codes[500:, 0], "b": pa.array(codes[500:, 1].astype(str)).dictionary_encode()}
    )
    write(a, tmp_path / "a.parquet")
    write(b, tmp_path / "b.parquet")
    parts = lt.as_parts(tmp_path)
    assert parts.schema.labels == ((0, 1, 2), ("0", "1", "2"))
    np.testing.assert_array_equal(whole(parts), codes)


def test_weights_and_schemas(tmp_path):
    x = words()
    path = write(arrow(x), tmp_path / "data.parquet")
    table = as_table(x, names=NAMES)
    weights = np.random.default_rng(0).uniform(0, 2, N)
    ours = gather(lt.as_parts(path, weights=weights))
    theirs = gather(lt.as_parts(as_table(x, names=NAMES, weights=weights)))
    np.testing.assert_array_equal(ours.sums.pairs.cross, theirs.sums.pairs.cross)
    with pytest.raises(DataError, match="1000 rows need as many weights"):
        lt.as_parts(path, weights=weights[1:])
    parts = lt.as_parts(path, schema=table.schema)
    np.testing.assert_array_equal(whole(parts), table.values)
    symmetric = lt.as_parts(path, "symmetric").schema
    assert symmetric.family == "symmetric"
    assert set(symmetric.labels) == {("no", "perhaps", "yes")}


# What goes wrong --------------------------------------------------------------------------------


def problem(X, **options) -> str:
    with pytest.raises(FileError) as caught:
        whole(lt.as_parts(X, **options))
    message = str(caught.value)
    assert "\n" not in message
    return message


def two_files(folder, second: pa.Table):
    write(arrow(real_data()), folder / "a.parquet")
    return str(write(second, folder / "b.parquet"))


def test_a_missing_column_and_one_too_many_are_named_with_the_file(tmp_path):
    path = two_files(tmp_path, arrow(real_data()).drop_columns("v3"))
    message = problem(tmp_path)
    assert path in message
    assert "'v3'" in message
    two_files(tmp_path, arrow(real_data()).append_column("more", pa.array(np.zeros(N))))
    message = problem(tmp_path)
    assert path in message
    assert "'more'" in message
    lt.as_parts(tmp_path, columns=NAMES)  # asked for by name: others do not matter


def test_a_column_that_changes_its_type_is_named_with_the_file(tmp_path):
    table = arrow(real_data(missing=False))
    column = pa.array(range(N)).cast(pa.string())
    path = two_files(tmp_path, table.set_column(2, "v2", column))
    message = problem(tmp_path)
    assert path in message
    assert "'v2'" in message
    assert "real" in message


def test_whole_numbers_go_with_fractions_of_other_files(tmp_path):
    table = arrow(real_data(missing=False))
    two_files(tmp_path, table.set_column(2, "v2", pa.array(range(N))))
    parts = lt.as_parts(tmp_path)
    assert parts.family == "gaussian"
    np.testing.assert_array_equal(whole(parts)[N:, 2], np.arange(N))


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_damaged_files_are_named(suffix, tmp_path):
    write(arrow(real_data()), tmp_path / f"a.{suffix}")
    bad = write(arrow(real_data()), tmp_path / f"b.{suffix}")
    data = bad.read_bytes()
    for content in (b"", data[: len(data) // 2], data[: len(data) - 8], b"nonsense" * 100):
        bad.write_bytes(content)
        assert str(bad) in problem(tmp_path)


def test_damage_in_the_middle_is_found_when_it_is_read(tmp_path):
    bad = write(arrow(real_data()), tmp_path / "b.parquet", row_group_size=100)
    data = bytearray(bad.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 2_000] = b"\xff" * 2_000
    bad.write_bytes(data)
    assert str(bad) in problem(bad)


def test_text_that_is_ragged_or_changes_is_named_with_the_line(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "1,2\n" * 2_000 + "1,2,3\n")
    for block_bytes in (3_000, 1 << 20):
        with pytest.raises(FileError, match=r"data\.csv: line 2002: 3 cells"):
            open_files(path, block_bytes=block_bytes)
    path.write_text("a,b\n" + "1.5,2.5\n2.5,3.5\n3.5,1.5\n" * 2_000)
    parts = lt.as_parts(path)
    path.write_text("a,b\n" + "1.5,2.5\n" * 1_000)
    with pytest.raises(FileError, match=r"data\.csv: has changed"):
        whole(parts)
    changed = write(arrow(real_data()), tmp_path / "data.parquet")
    parts = lt.as_parts(changed)
    write(arrow(real_data() + 1), changed)
    with pytest.raises(FileError, match=r"data\.parquet: has changed"):
        whole(parts)


def test_no_rows_no_files_no_such_kind(tmp_path):
    empty = write(arrow(real_data()).slice(0, 0), tmp_path / "a.parquet")
    assert "has no rows" in problem(empty)
    write(arrow(real_data()), tmp_path / "b.parquet")
    assert lt.as_parts(tmp_path).n_rows == N  # an empty part beside others is just no rows
    assert "no such file" in problem(tmp_path / "c.parquet")
    (tmp_path / "sub").mkdir()
    assert "holds no file" in problem(tmp_path / "sub")
    assert ".xlsx" in problem([tmp_path / "b.parquet", tmp_path / "c.xlsx"])


def test_values_that_do_not_fit_are_named_with_file_and_rows(tmp_path):
    x = real_data()
    x[700, 2] = np.inf
    write(arrow(x[:300]), tmp_path / "a.parquet")
    path = str(write(arrow(x[300:]), tmp_path / "b.parquet"))
    message = problem(tmp_path)
    assert path in message
    assert "rows 640 to 703" in message
    assert "'v2'" in message
    schema = lt.Schema(tuple(NAMES), "discrete", (("no", "yes"),) * M)
    path = write(arrow(words()), tmp_path / "words.parquet")
    message = problem(path, schema=schema)
    assert "'perhaps'" in message
    assert str(path) in message


def test_the_family_is_chosen_and_refused_as_for_tables(tmp_path):
    mixed = arrow(real_data()).append_column("word", pa.array(["a", "b"] * (N // 2)))
    path = write(mixed, tmp_path / "mixed.parquet")
    assert lt.as_parts(path).family == "mixed"
    message = problem(path, family="gaussian")
    assert "'word'" in message
    assert str(path) in message
    ids = pa.table({"id": pa.array([f"r{i}" for i in range(N)]), "b": pa.array([0, 1] * (N // 2))})
    path = write(ids, tmp_path / "ids.parquet")
    with pytest.warns(DataWarning, match="'id' .text that differs in 100 % of rows"):
        assert lt.as_parts(path).names == ("b",)


def test_dask_frames_are_refused_with_the_odd_cell():
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    b = ["1", "2", "12 kg", "4"] * 20 + [None]
    frame = pandas.DataFrame({"a": np.linspace(0, 1, 81), "b": pandas.Series(b, dtype=object)})
    parted = frames.from_pandas(frame, npartitions=3)
    with pytest.raises(DataError, match="'b' holds numbers, but '12 kg'"):
        lt.as_parts(parted, "gaussian")
    assert lt.as_parts(parted).schema.reasons[1] == "4 labels (text because of '12 kg')"

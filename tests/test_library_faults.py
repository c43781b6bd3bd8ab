"""What an attack on the library found: every fault with the case that showed it."""

from __future__ import annotations

import os
import shutil
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.decomposition import FactorAnalysis

import latentree as lt
from latentree import DiscreteTreeModel, GaussianTreeModel, LatentTree, as_table
from latentree.data import as_parts, cut_table, open_table
from latentree.em import fit_parameters
from latentree.errors import DataError, DataWarning, FileError, ModelError
from latentree.metrics import kl_divergence

STAR = lt.simulate.latent_class(4)


@pytest.fixture(scope="module")
def real():
    return lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.6, 0.8)).sample(
        300, 0
    )


# One door for the estimator and for tables ------------------------------------------------------


def test_values_under_a_mask_are_never_seen(real):
    gaps = np.random.default_rng(0).random(real.shape) < 0.1
    masked = np.ma.array(np.where(gaps, 1e6, real), mask=gaps)
    missing = np.where(gaps, np.nan, real)
    one, other = (LatentTree(random_state=0).fit(X) for X in (masked, missing))
    np.testing.assert_array_equal(one.model_.means, other.model_.means)
    for method in ("transform", "score_samples", "impute"):
        np.testing.assert_array_equal(getattr(one, method)(masked), getattr(other, method)(missing))


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_nan_among_words_is_missing():
    rows = [["a", "x"], ["b", float("nan")], ["a", "y"], ["b", "x"], ["a", "x"]] * 4
    for X in (rows, np.array(rows, object)):
        learned = LatentTree().fit(X)
        assert learned.model_.schema.labels == (("a", "b"), ("x", "y"))
        assert learned.impute(X)[1][1] in ("x", "y")


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("make", [list, tuple])
def test_rows_of_words_are_a_table_and_no_paths(make):
    rows = make(make(row.split()) for row in ["rain wet", "sun dry", "sun wet", "rain wet"] * 5)
    learned = LatentTree().fit(rows)
    assert learned.model_.schema.labels == (("rain", "sun"), ("dry", "wet"))
    assert len(learned.impute(rows)) == 20
    with pytest.raises(DataError):
        LatentTree().fit([["nan"]])


def test_labels_of_types_that_cannot_be_compared():
    for other in (1e200, (1, 2)):
        column = [np.float32(0.5), other, np.float32(0.25), other]
        table = as_table(pd.DataFrame({"a": pd.Series(column, dtype=object), "b": [0, 1, 0, 1]}))
        assert table.n_columns == 2


@pytest.mark.parametrize("names", [list("abcdef"), list(range(6)), [("u", j) for j in range(6)]])
def test_imputed_frames_line_up_with_their_rows(real, names):
    frame = pd.DataFrame(real, index=np.arange(300) * 3)
    frame.columns = pd.Index(names, tupleize_cols=True)
    frame.iloc[::7, 1] = np.nan
    learned = LatentTree(random_state=0).fit(frame)
    shuffled = frame.sample(frac=1, random_state=0)
    filled = shuffled.fillna(learned.impute(shuffled)).sort_index()
    expected = learned.impute(frame)
    pd.testing.assert_frame_equal(filled, expected, rtol=1e-12)


@pytest.mark.parametrize("make", [pl.DataFrame, lambda columns: pa.table(columns)])
def test_imputed_frames_keep_order_and_types(real, make):
    columns = {name: list(real[:, j]) for j, name in enumerate("fbdcae")}
    columns["b"][3] = None
    filled = LatentTree(random_state=0).fit(make(columns)).impute(make(columns))
    assert type(filled) is type(make(columns))
    names = filled.columns if isinstance(filled, pl.DataFrame) else filled.column_names
    assert list(names) == list("fbdcae")
    np.testing.assert_array_equal(np.array(filled["f"]), columns["f"])
    assert np.isfinite(np.array(filled["b"], float)).all()


@pytest.mark.parametrize(
    "make", [pd.DataFrame, lambda rows: pa.table(list(zip(*rows, strict=True)), ["a", "a"])]
)
def test_duplicate_names_are_told_by_fit_too(make):
    frame = make([[0, 1], [1, 0], [1, 1]])
    if isinstance(frame, pd.DataFrame):
        frame.columns = ["a", "a"]
    with pytest.raises(DataError, match="column names must differ"):
        LatentTree().fit(frame)


def test_infinite_values_are_named_by_fit(real):
    X = real.copy()
    X[5, 1] = np.inf
    with pytest.raises(DataError, match="column 'x1' holds inf in row 5"):
        LatentTree().fit(X)


# Odd tables -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_labels_beyond_64_bits_stay_apart():
    big = np.array([[2**63, 2**63 + 1], [2**63 + 1, 2**63], [2**63, 2**63]] * 5, np.uint64)
    table = as_table(big, "discrete")
    assert table.schema.labels == ((2**63, 2**63 + 1),) * 2
    imputed = LatentTree(family="discrete").fit(big).impute(big)
    assert imputed.tolist() == big.tolist()


def test_integers_of_128_bits_are_integers():
    small = pl.DataFrame({"a": pl.Series([1, 2, None, 2], dtype=pl.Int128), "b": [0, 1, 0, 1]})
    assert as_table(small, "discrete").values.tolist() == [[0, 0], [1, 1], [-1, 0], [1, 1]]
    large = pl.DataFrame({"a": pl.Series([2**100, 1], dtype=pl.Int128), "b": [0, 1]})
    assert as_table(large, "discrete").schema.labels == ((1, 2**100), (0, 1))


def test_periods_are_dates():
    frame = pd.DataFrame({"p": pd.period_range("2020", "2023", freq="Y"), "b": [0, 1, 0, 1]})
    with pytest.warns(DataWarning, match=r"'p' \(dates or times\)"):
        assert as_table(frame).names == ("b",)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_lists_are_no_labels(make):
    with pytest.raises(DataError, match=r"column 'a' holds .* which cannot be a label"):
        as_table(make({"a": [[1, 2], [1], [1, 2]], "b": [0, 1, 1]}))


def test_one_row_with_a_gap_is_a_table_for_a_discrete_model():
    model = DiscreteTreeModel.symmetric(STAR, 3, 0.1)
    row = np.array([[0, 1, np.nan, 2]])
    listed = [[0, 1, None, 2]]
    np.testing.assert_array_equal(model.log_likelihood(row), model.log_likelihood(listed))
    assert not np.isnan(model.impute(row)).any()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_empty_line_of_a_single_column_is_a_row(tmp_path, end):
    path = tmp_path / "d.csv"
    path.write_bytes(end.join(["a", "1", "", "0", "1", ""]).encode())
    assert open_table(path).values.tolist() == [[1], [-1], [0], [1]]
    path.write_bytes(end.join(["a,b", "1,0", "", "0,1", ""]).encode())
    assert open_table(path).n_rows == 2


def test_text_with_carriage_returns_alone_says_what_to_do(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"a,b\r1,0\r0,1\r")
    with pytest.raises(FileError, match="line feeds as line ends"):
        open_table(tmp_path / "d.csv")


# Models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_states", [1, 0, -1, 2.5])
def test_symmetric_models_have_states(n_states):
    with pytest.raises(ModelError, match="at least 2 states"):
        DiscreteTreeModel.symmetric(STAR, n_states, 0.0)


def test_symmetric_data_of_many_states():
    truth = DiscreteTreeModel.symmetric(STAR, 25, 0.01)
    fitted = fit_parameters(STAR, as_table(truth.sample(400, 0), "symmetric"), random_state=0)
    assert fitted.report.converged


def test_divergence_is_never_zero_by_mistake():
    wide = GaussianTreeModel(STAR, [0.9, 0.8, 0.7, 0.6, 0], scales=np.full(4, 1e150))
    narrow = GaussianTreeModel(STAR, [0.9, 0.8, 0.7, 0.6, 0], scales=np.full(4, 1e-150))
    with np.errstate(all="ignore"):
        assert kl_divergence(wide, narrow) == np.inf
        assert kl_divergence(narrow, wide) > 1_000


@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_scales_whose_squares_are_no_numbers(real, scale):
    with pytest.raises(ModelError, match=r"scale of 'x0' is 1e[-+]160.*rescale"):
        GaussianTreeModel(STAR, [0.9, 0.8, 0.7, 0.6, 0], scales=np.full(4, scale))
    for family in ("gaussian", "mixed"):
        with pytest.raises(DataError, match=r"'x0' are too large or too small.*rescale"):
            LatentTree(family=family).fit(real * scale)


# Files that change or are damaged ---------------------------------------------------------------


def _parquet(path, values) -> None:
    table = pa.table({f"v{j}": column for j, column in enumerate(values.T)})
    pyarrow.parquet.write_table(table, path, row_group_size=100)


@pytest.mark.parametrize("change", ["replaced", "cut"])
def test_a_file_that_changes_between_two_parts_is_noticed(real, tmp_path, monkeypatch, change):
    monkeypatch.setenv("LATENTREE_PART_CELLS", "384")
    path, other = tmp_path / "d.parquet", tmp_path / "other"
    rows = np.tile(real, (3, 1))  # more parts than are held in memory
    _parquet(path, rows)
    parts = as_parts(path)
    assert parts.n_parts > 6
    tables = parts.tables._read(0)
    next(tables)
    if change == "replaced":  # by one of the same size and time
        _parquet(other, rows)
        shutil.copystat(path, other)
        os.replace(other, path)
    else:
        os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(FileError, match="has changed since it was opened"):
        list(tables)


def test_what_other_libraries_say_is_cut(tmp_path):
    path = tmp_path / "d.npz"
    np.savez(path, **{"a" * 1_000: np.zeros((3, 2))})
    packed = path.read_bytes()
    path.write_bytes(packed.replace(b"a" * 1_000, b"b" * 1_000, 1))
    with pytest.raises(FileError) as caught:
        as_parts(path)
    assert len(str(caught.value)) < 500


def test_a_matrix_that_says_it_is_encrypted(tmp_path):
    path = tmp_path / "d.npz"
    np.savez(path, data=np.zeros((3, 2)))
    packed = bytearray(path.read_bytes())
    packed[6] |= 1  # the flags of the file in the archive, there and in the directory
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(packed)
    with pytest.raises(FileError, match=r"d\.npz: cannot be read.*encrypted"):
        as_parts(path)


def test_damaged_matrices_are_told(tmp_path):
    head = "%%MatrixMarket matrix coordinate pattern general\n"
    cases = {
        "3 2 2\n1 1\n4 1\n": "a row is 4, but must be whole, from 1 to 3",
        "3 2 2\n1 1\n1 0\n": "a column is 0",
        "3 2 2\n1 1\n": "2 numbers, but 2 entries have 4",
        "3 2 2\n1 1\n1 x\n": "not all numbers",
        "3 2\n1 1\n": "the line of sizes",
        "-3 2 0\n": "a size is -3",
    }
    for body, message in cases.items():
        (tmp_path / "d.mtx").write_text(head + body)
        with pytest.raises(FileError, match=message):
            open_table(tmp_path / "d.mtx")
    (tmp_path / "d.mtx").write_text(head + "% a comment\n\n3 2 2\n1 1\n3 2\n")
    assert open_table(tmp_path / "d.mtx").values.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]
    symmetric = "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 1\n2 1 1\n"
    (tmp_path / "d.mtx").write_text(symmetric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert open_table(tmp_path / "d.mtx").values.toarray().tolist() == [[1], [0]]


# Weights ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "discrete", "mixed"])
def test_a_part_in_which_no_row_counts(real, family):
    X = real if family == "gaussian" else (real > 0) * 1
    X = np.column_stack([real[:, :3], X[:, 3:]]) if family == "mixed" else X
    tree = lt.simulate.double_star(6)
    weights = np.repeat([0.0, 1.0], [64, 236])
    parts = cut_table(as_table(X, family), rows=64).weighted(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = fit_parameters(tree, parts, random_state=0)
        rest = cut_table(as_table(X[64:], family), rows=64)
        counted = fit_parameters(tree, rest, random_state=0)
    assert fitted.report.log_likelihood == pytest.approx(counted.report.log_likelihood, abs=1e-3)


# EM ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:duplicate columns")
@pytest.mark.parametrize("seed", [2, 3, 11, 23])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_copies_of_columns_do_not_lower_the_likelihood(seed, missing):
    rng = np.random.default_rng(seed)
    tree = lt.simulate.double_star(6)
    X = lt.simulate.random_gaussian_model(tree, seed, (0.4, 0.95)).sample(100, seed)
    X[:, 1], X[:, 4] = X[:, 0], -X[:, 3]
    X[rng.random(X.shape) < missing] = np.nan
    report = fit_parameters(tree, X, random_state=seed, n_starts=2).report
    noise = 1e-8 * (1.0 + np.abs(report.log_likelihood))
    assert np.diff(report.log_likelihoods).min() >= -noise
    assert report.log_likelihood >= max(report.log_likelihoods) - noise
    assert any("at the limit of 1 − 2e-7" in note for note in report.notes)


def test_columns_that_are_apart_are_at_no_limit(real):
    report = fit_parameters(lt.simulate.double_star(6), real, random_state=0).report
    assert report.notes == ()


@pytest.mark.parametrize("seed", range(6))
def test_one_factor_ends_where_factor_analysis_does(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(3, 9)), int(rng.integers(30, 300))
    tree = lt.simulate.latent_class(m)
    X = lt.simulate.random_gaussian_model(tree, seed, (0.1, 0.9)).sample(n, seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = FactorAnalysis(1, tol=1e-8, max_iter=5_000, svd_method="lapack").fit(X)
    report = fit_parameters(tree, X, random_state=seed).report
    assert report.log_likelihood >= n * theirs.score(X) - 0.01

"""Every way in which data can be unfit, and the message that says so."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from latentree.data import Schema, as_table, open_table
from latentree.data._checks import duplicate_columns
from latentree.distances import as_sample, information_distances
from latentree.errors import DataError, DataWarning
from latentree.structure import neighbor_joining


class DaskLike:
    """Stands for a dask array, which must not be computed behind the user's back."""

    shape = (2, 2)

    def compute(self) -> Any:
        raise AssertionError("computed without being asked")


SCHEMA = Schema(("a", "b"), "discrete", (("u", "v"), (0, 1)))

BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "one dimension": (lambda: as_table(np.ones(3)), r"two dimensions.*shape \(3,\)"),
    "three dimensions": (lambda: as_table(np.ones((2, 2, 2))), "two dimensions"),
    "scalar": (lambda: as_table(3.5), "cannot read a table from float"),
    "none": (lambda: as_table(None), "cannot read a table from NoneType"),
    "set": (lambda: as_table({1, 2}), "cannot read a table from set"),
    "dict of text": (lambda: as_table({"a": "text"}), "column 'a' is str, not a list"),
    "dict, ragged": (lambda: as_table({"a": [1], "b": [1, 2]}), "different lengths: 'a' 1, 'b' 2"),
    "path string": (lambda: as_table("data.csv"), "'data.csv': read the file first"),
    "path": (lambda: as_table(pathlib.Path("data.csv")), "read the file first"),
    "pandas series": (lambda: as_table(pd.Series([1, 2])), "a single column"),
    "polars series": (lambda: as_table(pl.Series([1, 2])), "a single column"),
    "ragged": (lambda: as_table([[1, 2], [3]]), "different lengths"),
    "lazy": (lambda: as_table(pl.LazyFrame({"a": [1]})), r"LazyFrame is lazy.*\.collect\(\)"),
    "dask": (lambda: as_table(DaskLike()), r"DaskLike is lazy.*\.compute\(\)"),
    "no rows": (lambda: as_table(np.ones((0, 2))), "empty: 0 rows, 2 columns"),
    "no columns": (lambda: as_table(np.ones((2, 0))), "empty: 2 rows, 0 columns"),
    "empty frame": (lambda: as_table(pd.DataFrame()), "empty: 0 rows, 0 columns"),
    "empty sparse": (lambda: as_table(sparse.csr_array((0, 2))), "empty"),
    "complex": (lambda: as_table(np.array([[1j]])), "type complex128"),
    "structured": (lambda: as_table(np.zeros((2, 2), [("a", int)])), "cannot use values of type"),
    "twice pandas": (lambda: as_table(pd.DataFrame([[1, 2]], columns=["a", "a"])), "differ.*'a'"),
    "twice arrow": (lambda: as_table(pa.table([[1], [2]], names=["a", "a"])), "differ.*'a'"),
    "twice as text": (
        lambda: as_table(pd.DataFrame([[1, 2]], columns=[1, "1"])),
        "occur twice: '1'",
    ),
    "twice given": (lambda: as_table([[1, 2]], names=["b", "b"]), "occur twice: 'b'"),
    "names too few": (lambda: as_table([[1, 2]], names=["b"]), "1 names were given for 2 columns"),
    "infinite": (
        lambda: as_table(pd.DataFrame({"a": [0.5, 1.0], "b": [0.5, -np.inf]})),
        "column 'b' holds -inf in row 1",
    ),
    "infinite beside nan": (
        lambda: as_table(np.array([[np.nan, 1.0], [0.5, np.inf], [0.1, 0.2]])),
        "column 'x1' holds inf in row 1",
    ),
    "infinite, mixed frame": (
        lambda: as_table(pd.DataFrame({"a": [1, 2], "b": [0.5, np.inf]}), "gaussian"),
        "column 'b' holds inf in row 1",
    ),
    "odd cell, insisting": (
        lambda: as_table(pd.DataFrame({"a": [1, 2, 3], "b": ["1", "2", "?"]}), "gaussian"),
        r"column 'b' holds numbers, but '\?' in row 2 ",
    ),
    "fractions as codes": (
        lambda: as_table(pd.DataFrame({"a": [1.0, 0.25]}), "discrete"),
        "column 'a' holds 0.25 in row 1, which is no whole number",
    ),
    "infinite codes": (
        lambda: as_table(np.array([[np.inf], [1.0]]), "discrete"),
        "column 'x0' holds inf in row 0",
    ),
    "words as reals": (
        lambda: as_table(pd.DataFrame({"a": [0.5], "b": ["u"]}), "gaussian"),
        r"column 'b' holds labels \('u', …\), not numbers",
    ),
    "dates alone": (
        lambda: as_table(pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])})),
        r"no column is left.*'t' \(dates or times\)",
    ),
    "dates, wanted": (
        lambda: as_table({"t": np.array(["2020-01-01"], "M8[D]")}, kinds={"t": "real"}),
        "kinds: column 't' cannot be real: it holds dates or times",
    ),
    "kinds, name": (lambda: as_table([[1]], kinds={"a": "real"}), "there is no column 'a'"),
    "kinds, kind": (lambda: as_table([[1]], kinds={"x0": "int"}), "to be 'int', but kinds are"),
    "kinds, words": (
        lambda: as_table({"a": ["1", "u", "v"]}, kinds={"a": "real"}),
        "column 'a' cannot be real: it holds 'u', which is no number",
    ),
    "kinds, order": (
        lambda: as_table({"a": ["s", "m", "l"]}, kinds={"a": "ordered"}),
        "column 'a' cannot be ordered: .*or declare their order",
    ),
    "kinds, negative": (
        lambda: as_table({"a": [-3, 1, 2]}, kinds={"a": "count"}),
        "column 'a' cannot be count: it holds -3, which is less than 0",
    ),
    "kinds, fraction": (
        lambda: as_table({"a": [3, 1.5, 2]}, kinds={"a": "count"}),
        "column 'a' cannot be count: it holds 1.5 in row 1",
    ),
    "kinds, family": (
        lambda: as_table({"a": [3, 1, 2]}, "discrete", kinds={"a": "real"}),
        "column 'a' is real, which family='discrete' does not have",
    ),
    "kinds, schema": (
        lambda: as_table([["u", 0]], schema=SCHEMA, kinds={"a": "category"}),
        "the schema has kinds already",
    ),
    "unseen": (lambda: as_table([[1]], unseen="drop"), "unseen is 'drop'"),
    "unhashable": (
        lambda: as_table(pd.DataFrame({"a": [1, 2], "o": [[1], [2]]})),
        r"column 'o' holds \[1\] of type list",
    ),
    "structs": (lambda: as_table(pl.DataFrame({"o": [{"a": 1}]})), "column 'o' holds .* type dict"),
    "unknown family": (lambda: as_table([[1]], "poisson"), "family is 'poisson'"),
    "sparse infinity": (
        lambda: as_table(sparse.csr_array([[np.inf, 0.0], [1.5, 1.0]])),
        "column 'x0' holds inf in row 0",
    ),
    "weights, number": (lambda: as_table([[1], [2]], weights=[1]), r"2 rows.*shape \(1,\)"),
    "weights, negative": (lambda: as_table([[1], [2]], weights=[1, -1]), "row 1 is -1"),
    "weights, nan": (lambda: as_table([[1], [2]], weights=[np.nan, 1]), "row 0 is nan"),
    "weights, infinite": (lambda: as_table([[1], [2]], weights=[1, np.inf]), "row 1 is inf"),
    "weights, zero": (lambda: as_table([[1], [2]], weights=[0, 0]), "all weights are zero"),
    "weights, words": (lambda: as_table([[1]], weights=["a"]), "weights must be numbers"),
    "weights, twice": (
        lambda: as_table(as_table([[1]], weights=[1]), weights=[1]),
        "already has weights",
    ),
    "table of another family": (
        lambda: as_table(as_table([[0.5]]), "discrete"),
        "the table is gaussian, but family='discrete'",
    ),
    "schema, another family": (
        lambda: as_table([["u", 0]], "gaussian", schema=SCHEMA),
        "family 'gaussian' contradicts the model's 'discrete'",
    ),
    "schema, count": (
        lambda: as_table([["u", 0, 1]], schema=SCHEMA),
        "the data has 3 columns, but the model has 2",
    ),
    "schema, lacking": (
        lambda: as_table(pd.DataFrame({"a": ["u"]}), schema=SCHEMA),
        "the model's column 'b' is not in the data",
    ),
    "schema, extra": (
        lambda: as_table(pd.DataFrame({"a": ["u"], "b": [0], "c": [1]}), schema=SCHEMA),
        "column 'c' is unknown to the model",
    ),
    "schema, mistyped": (
        lambda: as_table(
            pd.DataFrame({"hieght": [1.5], "weight": [2.5]}),
            schema=Schema.gaussian(["height", "weight"]),
        ),
        "column 'height' is not in the data .did you mean 'hieght'..",
    ),
    "schema, label": (
        lambda: as_table(pd.DataFrame({"a": ["u", "w"], "b": [0, 1]}), schema=SCHEMA),
        "column 'a' holds 'w', but its known labels are 'u', 'v'",
    ),
    "schema, number": (
        lambda: as_table([["u", 0.5]], schema=SCHEMA),
        "column 'b' holds 0.5, but its known labels are 0, 1",
    ),
    "schema, sparse": (
        lambda: as_table(sparse.eye_array(2), schema=SCHEMA),
        "column 'a' holds 0.0, 1.0, but its known labels are 'u', 'v'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_is_refused_with_a_reason(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(DataError, match=f"(?s){message}"):
        make()


def test_many_states_can_be_insisted_on() -> None:
    assert as_table(np.arange(101)[:, None], "discrete").cardinalities.tolist() == [101]


# Learning ---------------------------------------------------------------------------------------


def reals(n: int = 6, m: int = 3) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, m))


def test_good_tables_are_learnable_without_a_word() -> None:
    as_sample(reals())
    as_sample(np.array([[0, 1], [1, 1], [1, 0]]))
    as_sample(sparse.csr_array([[0, 1], [1, 1], [1, 0]]))


def test_too_few_rows() -> None:
    with pytest.raises(DataError, match=r"1 row\(s\), but learning needs 2"):
        as_sample(reals(1))
    with pytest.raises(DataError, match=r"6 row\(s\), but learning needs 7"):
        as_sample(reals(), min_rows=7)
    with pytest.raises(DataError, match=r"1 row\(s\), but learning needs 2"):
        as_sample(reals(2), weights=[1, 0])
    with pytest.raises(DataError, match=r"weights sum to 1.*scale them"):
        as_sample(reals(), weights=np.full(6, 1 / 6))


def aside(data: Any, **options: Any) -> list[tuple[str, str]]:
    """What is set aside of data, which one warning tells."""
    with pytest.warns(DataWarning, match="set aside") as told:
        sample = as_sample(data, **options)
    assert len(told) == 1
    columns = sample.schema.aside
    assert all(f"'{column.name}'" in str(told[0].message) for column in columns)
    return [(column.name, column.why) for column in columns]


def test_columns_without_values() -> None:
    x = reals()
    x[:, 1] = np.nan
    assert aside(x) == [("x1", "no value at all")]
    codes = pl.DataFrame({"a": [None, None], "b": [1, 2], "c": [None, None]})
    assert aside(codes) == [("a", "no value at all"), ("c", "no value at all")]


def test_constant_columns() -> None:
    x = reals(6, 6)
    x[:, 1] = 0.1
    assert aside(x) == [("x1", "always 0.1")]
    x[:, 2:] = 0.1
    assert len(aside(x)) == 5
    noisy = reals()
    noisy[:, 0] = 1e9 * (1 + np.array([0, 1, 2, 0, 1, 2]) * 1e-16)
    assert aside(noisy) == [("x0", "always 1000000000")]
    for column in ([0.1, np.nan, np.nan], [np.nan, 0.1, 0.1]):
        assert aside(np.c_[reals(3, 1), column]) == [("x1", "always 0.1")]


def test_constant_codes() -> None:
    for column in ([5, 5, 5], [None, 5, 5]):
        frame = pl.DataFrame({"a": [0, 1, 0], "b": column})
        assert aside(frame) == [("b", "always 5")]
    for bit in (0, 1):
        x = sparse.csr_array([[0, bit], [1, bit], [0, bit]])
        assert aside(x) == [("x1", f"always {bit}")]


def test_rows_of_weight_zero_do_not_save_a_column() -> None:
    x = np.array([[0, 0], [1, 0], [0, 1]])
    for data in (x, sparse.csr_array(x), x + 0.5):
        as_sample(data)
        with pytest.raises(DataError, match="column 'x1' is constant"):
            as_sample(data, weights=[1, 1, 0])


def test_duplicate_columns_are_named() -> None:
    x = reals(6, 4)
    x[:, 3] = x[:, 1]
    x[2, [1, 3]] = np.nan
    for data in (x, (x > 0).astype(int), sparse.csr_array(x > 0)):
        for dense in (True, False):
            with pytest.warns(DataWarning, match="distance 0 from each other: 'x1 = x3'"):
                information_distances(data, dense=dense)


def test_columns_that_follow_from_each_other_are_no_duplicates() -> None:
    x = reals(50, 3)
    x[:, 2] = 2.0 * x[:, 0] + 1.0
    codes = (x > 0).astype(int)
    codes[:, 2] = 1 - codes[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (x, codes):
            assert information_distances(data).dense()[0, 2] == 0.0


def test_duplicates_are_found_exactly() -> None:
    rng = np.random.default_rng(3)
    for n_states in (2, 3):
        codes = rng.integers(0, n_states, (5, 60)).astype(np.int8)
        expected = []
        for j in range(60):
            twins = [i for i in range(j) if np.array_equal(codes[:, i], codes[:, j])]
            expected += [(twins[0], j)] if twins else []
        assert duplicate_columns(codes) == sorted(expected)
        assert duplicate_columns(codes.astype(float)) == sorted(expected)
        if n_states == 2:
            assert duplicate_columns(sparse.csr_array(codes)) == sorted(expected)
    signed = np.array([[0.0, -0.0], [1.0, 1.0]])
    assert duplicate_columns(signed) == [(0, 1)]


def test_only_columns_that_hash_alike_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    equal = np.array_equal

    def counted(a, b, **options):
        compared.append((a, b))
        return equal(a, b, **options)

    monkeypatch.setattr(np, "array_equal", counted)
    codes = np.random.default_rng(0).integers(0, 2, (1000, 400)).astype(np.int8)
    assert duplicate_columns(codes) == []
    assert compared == []
    codes[:, [7, 90]] = codes[:, [3]]
    assert duplicate_columns(codes) == [(3, 7), (3, 90)]
    assert len(compared) == 2


def test_a_matrix_of_correlations_is_no_sample(tmp_path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 6))
    r = pd.DataFrame(np.corrcoef(X, rowvar=False)).rename(columns="v{}".format)
    r.to_csv(tmp_path / "r.csv")
    for matrix in (r, r.to_numpy(), tmp_path / "r.csv"):
        with pytest.warns(DataWarning, match="looks like the correlations of 6 columns"):
            open_table(matrix)
    assert neighbor_joining(-np.log(np.abs(r.to_numpy()))).n_observed == 6
    as_table(r.to_numpy() + np.tri(6))  # a warning would be an error


def test_the_door_never_warns_of_good_data() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_sample(reals())
        as_table(reals(100, 4) * 1e200)

"""What the door for data accepts, how it codes it, and what the table then says of itself."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from latentree.data import Schema, Table, as_table
from latentree.errors import DataError, DataWarning


def decoded(table: Table) -> list[list[object]]:
    """The table as Python values, None where missing: the definition of a faithful coding."""
    if not table.schema.is_coded:
        labels = table.schema.labels
        return [
            [None if np.isnan(x) else labels[j][int(x)] if labels[j] else x for j, x in row]
            for row in map(enumerate, table.values.tolist())
        ]
    dense = table.values.toarray() if table.is_sparse else table.values
    return [
        [None if code < 0 else table.schema.labels[j][code] for j, code in enumerate(row)]
        for row in dense.tolist()
    ]


def whole(table: Table) -> list[list[object]]:
    """The whole table as Python values, with the constant columns that were set aside."""
    columns = [list(column) for column in zip(*decoded(table), strict=True)]
    for column in table.schema.aside:
        columns.insert(column.place, [column.value] * table.n_rows)
    return [list(row) for row in zip(*columns, strict=True)]


def same(a: Table, b: Table) -> bool:
    return (
        a.schema == b.schema
        and a.values.dtype == b.values.dtype
        and np.array_equal(a.values, b.values, equal_nan=not a.schema.is_coded)
    )


# Arrays -----------------------------------------------------------------------------------------


def test_floats_pass_without_a_copy() -> None:
    x = np.random.default_rng(0).standard_normal((5, 3))
    table = as_table(x)
    assert table.family == "gaussian"
    assert table.names == ("x0", "x1", "x2")
    assert np.shares_memory(table.values, x)
    assert not table.values.flags.writeable
    assert x.flags.writeable
    assert table.cardinalities.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble])
def test_other_floats_become_double_precision(dtype: type) -> None:
    x = np.array([[0.5, 1.5], [2.25, np.nan], [0.25, 3.5], [1.75, 0.5]], dtype)
    table = as_table(np.asfortranarray(x))
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert table.missing_counts.tolist() == [0, 1]


integer_types = st.sampled_from([np.int8, np.uint8, np.int16, np.int64, np.uint64])


@given(st.data(), integer_types, st.booleans())
@settings(max_examples=60, deadline=None)
def test_integer_coding_is_faithful(data: st.DataObject, dtype: type, narrow: bool) -> None:
    info = np.iinfo(dtype)
    low, high = (1, 3) if narrow else (int(info.min), int(info.max))
    shape = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 4)))
    x = data.draw(arrays(dtype, shape, elements=st.integers(low, high)))
    x = x[:, (x != x[0]).any(axis=0) | (len(x) == 1)]  # constant columns are set aside
    assume(x.size)
    table = as_table(x, "discrete")
    assert table.family == "discrete"
    assert decoded(table) == x.tolist()
    for j, labels in enumerate(table.schema.labels):
        assert list(labels) == sorted(set(x[:, j].tolist()))
        assert all(type(label) is int for label in labels)
    assert table.values.dtype == np.int8


@given(arrays(bool, st.tuples(st.integers(1, 10), st.integers(1, 4))))
@settings(max_examples=40, deadline=None)
def test_boolean_coding_is_faithful(x: np.ndarray) -> None:
    x = x[:, (x != x[0]).any(axis=0) | (len(x) == 1)]
    assume(x.size)
    table = as_table(x)
    assert decoded(table) == x.tolist()
    assert all(type(label) is bool for labels in table.schema.labels for label in labels)


cells = st.one_of(st.none(), st.integers(-3, 3), st.text("ab", max_size=2), st.booleans())


@given(
    st.integers(1, 4).flatmap(
        lambda m: st.lists(st.lists(cells, min_size=m, max_size=m), min_size=1, max_size=8)
    )
)
@settings(max_examples=80, deadline=None)
def test_lists_of_anything_are_coded_faithfully(rows: list[list[object]]) -> None:
    present = [{cell for cell in column if cell is not None} for column in zip(*rows, strict=True)]
    used = [len(cells) > (len(rows) > 1) for cells in present]
    assume(any(used))
    rows = [[cell for cell, there in zip(row, used, strict=True) if there] for row in rows]
    table = as_table(rows, "discrete")
    assert decoded(table) == rows
    assert table.missing_counts.sum() == sum(cell is None for row in rows for cell in row)


def test_the_code_type_grows_with_the_number_of_states() -> None:
    for n_states, dtype in [(2, np.int8), (128, np.int8), (129, np.int16), (40_000, np.int32)]:
        x = np.arange(n_states)[:, None]
        table = as_table(x, "discrete")
        assert table.values.dtype == dtype, n_states
        assert np.array_equal(table.values[:, 0], x[:, 0])


def test_missing_cells_of_every_kind_are_known() -> None:
    na = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "D")]
    x = np.array([["a", "b"], ["c", "d"], *([gone, "b"] for gone in na)], dtype=object)
    table = as_table(x)
    assert table.missing_counts.tolist() == [len(na), 0]
    assert table.column_has_missing.tolist() == [True, False]
    assert table.has_missing
    assert table.missing_mask()[:, 0].tolist() == [False] * 2 + [True] * len(na)


def test_masked_arrays() -> None:
    mask = [[False, True], [False, False], [False, False]]
    codes = as_table(np.ma.masked_array([[1, 2], [3, 4], [1, 5]], mask))
    assert decoded(codes) == [[1, None], [3, 4], [1, 5]]
    reals = as_table(np.ma.masked_array([[0.5, 2.5], [3.0, 1.5], [1.5, 0.5]], mask))
    assert decoded(reals) == [[0.5, None], [3.0, 1.5], [1.5, 0.5]]
    words = np.ma.masked_array(np.array([["a", "b"], ["c", "d"], ["a", "e"]], object), mask)
    assert decoded(as_table(words)) == [["a", None], ["c", "d"], ["a", "e"]]
    unmasked = np.ma.masked_array([[0.5], [1.5], [2.5]], mask=False)
    assert decoded(as_table(unmasked)) == [[0.5], [1.5], [2.5]]


def test_object_columns_of_numbers_are_numbers() -> None:
    numbers = np.array([[1, 0.5], [2.5, None], [0.5, 1.5], [2, 3]], object)
    assert as_table(numbers).family == "gaussian"
    flags = [[True], [None], [False]]
    assert decoded(as_table(np.array(flags, object))) == flags
    assert as_table(np.array([[1], [None], [2]], object)).schema.labels == ((1, 2),)
    huge = as_table(np.array([[2**70], [1], [2**70]], object))
    assert huge.schema.labels == ((1, 2**70),)


# Frames -----------------------------------------------------------------------------------------

FRAME = {
    "word": ["b", "a", None, "b"],
    "flag": [True, None, False, True],
    "code": [3, 1, None, 3],
    "full": [7, 8, 9, 7],
}


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(FRAME).astype({"flag": "boolean", "code": "Int64"})


@pytest.mark.parametrize(
    "frame",
    [
        pandas_frame(),
        pl.DataFrame(FRAME),
        pa.table(FRAME),
        pd.DataFrame(FRAME, dtype=object),
        pl.DataFrame(FRAME).with_columns(pl.col("word").cast(pl.Categorical)),
        pandas_frame().astype({"word": "category"}),
        pa.table({**FRAME, "word": pa.array(FRAME["word"]).dictionary_encode()}),
        pl.DataFrame(FRAME).to_pandas(types_mapper=pd.ArrowDtype),
    ],
    ids=[
        "pandas",
        "polars",
        "pyarrow",
        "objects",
        "polars-cat",
        "pandas-cat",
        "dictionary",
        "arrow",
    ],
)
def test_frames_agree(frame: object) -> None:
    table = as_table(frame)
    rows = [list(row) for row in zip(*FRAME.values(), strict=True)]
    assert table.names == tuple(FRAME)
    assert table.schema.kinds == ("category", "category", "category", "ordered")
    assert decoded(table) == rows
    assert table.schema.labels == (("a", "b"), (False, True), (1, 3), (7, 8, 9))


def test_real_frames_agree() -> None:
    x = np.random.default_rng(1).standard_normal((6, 3))
    x[2, 1] = np.nan
    columns = {name: x[:, j] for j, name in enumerate("abc")}
    expected = as_table(x, names=list("abc"))
    nulls = {name: [None if np.isnan(v) else v for v in col] for name, col in columns.items()}
    frames = [
        pd.DataFrame(columns),
        pd.DataFrame(columns).astype("Float64"),
        pl.DataFrame(columns),
        pl.DataFrame(nulls),
        pa.table(nulls),
    ]
    for frame in frames:
        assert same(as_table(frame), expected), frame


def test_decimals_are_real() -> None:
    frame = pl.DataFrame({"a": pl.Series(["1.5", "2.25"]).cast(pl.Decimal(10, 2))})
    assert decoded(as_table(frame)) == [[1.5], [2.25]]


def test_declared_order_is_kept_but_not_categories_that_never_occur() -> None:
    sizes = ["tiny", "small", "large"]
    column = pd.Categorical(["large", "small", None], categories=sizes)
    assert as_table(pd.DataFrame({"size": column})).schema.labels == (("small", "large"),)
    ordered = pd.Categorical([3, 1, 3], categories=[3, 2, 1], ordered=True)
    assert as_table(pd.DataFrame({"n": ordered})).schema.labels == ((3, 1),)
    enum = pl.DataFrame({"size": pl.Series(["large", "small"], dtype=pl.Enum(sizes))})
    assert as_table(enum).schema.labels == (("small", "large"),)
    # polars numbers a plain Categorical by appearance, which means nothing: sorted instead
    plain = pl.DataFrame({"size": pl.Series(["small", "large"], dtype=pl.Categorical)})
    assert as_table(plain).schema.labels == (("large", "small"),)


def test_names_that_are_no_strings_become_strings() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((3, 2)), columns=[10, 20])
    assert as_table(frame).names == ("10", "20")
    assert as_table(frame, names=["a", "b"]).names == ("a", "b")


@pytest.mark.filterwarnings("ignore:1 column is set aside")
def test_a_column_without_values_fits_any_family() -> None:
    empty = pl.DataFrame({"a": [None, None], "b": [0.5, 1.0]})
    assert as_table(empty).family == "gaussian"
    frame = pd.DataFrame({"a": [np.nan, np.nan], "b": ["u", "v"]})
    table = as_table(frame)
    assert table.family == "discrete"
    assert whole(table) == [[None, "u"], [None, "v"]]
    assert table.cardinalities.tolist() == [2]


# Families ---------------------------------------------------------------------------------------


def test_family_gaussian_casts_numbers_and_booleans() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": [0.5, None, 1]})
    table = as_table(frame, "gaussian")
    assert table.values.tolist()[0] == [1.0, 1.0, 0.5]
    assert np.isnan(table.values[1, 2])
    assert as_table(np.array([[1, 2], [3, 4]]), "gaussian").values.dtype == np.float64


def test_family_discrete_takes_whole_floats_as_codes() -> None:
    table = as_table(np.array([[1.0, 0.0], [np.nan, 2.0], [4.0, 0.0]]), "discrete")
    assert decoded(table) == [[1, 0], [None, 2], [4, 0]]
    assert all(type(label) is int for labels in table.schema.labels for label in labels)


def test_family_symmetric_shares_one_set_of_labels() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "x"], "b": ["z", "x", None]})
    table = as_table(frame, "symmetric")
    assert table.family == "symmetric"
    assert table.schema.labels == (("x", "y", "z"),) * 2
    assert decoded(table) == [["x", "z"], ["y", "x"], ["x", None]]
    quick = as_table(np.array([[0, 1], [1, 0]]), "symmetric")
    assert quick.schema == Schema.discrete(["x0", "x1"], 2, "symmetric")


def test_floats_and_integers_are_of_the_same_kind() -> None:
    x = np.array([[1.0, 2.0], [np.nan, 3.0], [2.0, 4.0], [3.0, 2.0]])
    table = as_table(x)
    assert table.schema.kinds == ("ordered", "ordered")
    assert table.schema.labels == ((1, 2, 3), (2, 3, 4))
    assert table.values.dtype == np.float64
    assert same(as_table(np.array(x, object)), table)
    assert as_table(x, "gaussian").family == "gaussian"
    assert as_table(x + np.array([0.0, 0.5])).schema.kinds == ("ordered", "real")


# Sparse -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float64, np.uint8])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_stays_sparse(dtype: type, kind: type) -> None:
    x = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 1]])
    table = as_table(kind(x.astype(dtype)))
    assert table.is_sparse
    assert table.values.dtype == np.int8
    assert table.values.has_canonical_format
    assert decoded(table) == x.tolist()
    assert table.schema == Schema.discrete(["x0", "x1", "x2"], 2)
    assert not table.has_missing
    assert not table.missing_mask().any()
    assert table.column(1).tolist() == [1, 1, 0]
    assert decoded(table.rows(1, 2)) == [[1, 1, 0]]


def test_sparse_zeros_and_repeated_cells_are_cleaned_in_a_copy() -> None:
    x = sparse.csr_array(([1, 0, 1], [2, 1, 0], [0, 3, 3]), shape=(2, 3))
    before = x.nnz
    schema = Schema.discrete(["x0", "x1", "x2"], 2)
    table = as_table(x, schema=schema)
    assert table.values.nnz == 2
    assert table.values.indices.tolist() == [0, 2]
    assert x.nnz == before
    halves = sparse.coo_array(([0.5, 0.5], ([0, 0], [1, 1])), shape=(2, 3))
    assert decoded(as_table(halves, schema=schema)) == [[0, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize("dtype", [np.int16, np.uint32, np.float32])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.dok_array])
def test_sparse_matrices_of_other_numbers_are_their_dense_form(dtype: type, kind: type) -> None:
    x = np.random.default_rng(0).poisson(0.8, (200, 3)).astype(dtype)
    for family in ("auto", "gaussian", "discrete"):
        found, expected = as_table(kind(x), family), as_table(x, family)
        assert found.schema == expected.schema
        np.testing.assert_array_equal(found.values, expected.values)
        few = as_table(kind(x[:1] > 0), schema=expected.schema)  # 0 and 1 alone
        np.testing.assert_array_equal(
            few.values, as_table((x[:1] > 0).astype(int), schema=expected.schema).values
        )


# Tables as input --------------------------------------------------------------------------------


def test_a_table_passes_through() -> None:
    table = as_table(np.array([[0, 1], [1, 0], [2, 1]]), "discrete", weights=[1, 2, 3])
    assert as_table(table) is table
    assert as_table(table, "discrete") is table
    assert as_table(table, schema=table.schema).schema == table.schema
    symmetric = as_table(table, "symmetric")
    assert symmetric.schema.labels == ((0, 1, 2),) * 2
    assert decoded(symmetric) == decoded(table)
    assert symmetric.weights is not None
    assert as_table(table, names=["a", "b"]).names == ("a", "b")


def test_rows_are_views() -> None:
    table = as_table(np.arange(12.0).reshape(4, 3) / 5, weights=[1, 2, 3, 4])
    part = table.rows(1, 3)
    assert np.shares_memory(part.values, table.values)
    assert part.weight_array().tolist() == [2, 3]
    assert part.total_weight == 5
    assert part.n_rows == 2


def test_weights() -> None:
    x = np.array([[0, 1], [1, 0]])
    assert as_table(x).total_weight == 2
    assert as_table(x).weight_array().tolist() == [1, 1]
    table = as_table(x, weights=np.array([3, 0]))
    assert table.weights is not None
    assert table.weights.dtype == np.float64
    assert table.total_weight == 3
    assert as_table(x, weights=pd.Series([0.5, 1.5])).total_weight == 2


def test_repr_tells_what_matters() -> None:
    assert (
        repr(as_table([[0.5, None], [1.0, 2.0], [2.0, 1.5]]))
        == "Table(3 rows × 2 columns, gaussian, 1 missing)"
    )
    matrix = sparse.eye_array(2)
    assert repr(as_table(matrix, weights=[1, 2])) == (
        "Table(2 rows × 2 columns, discrete, sparse, weighted)"
    )


# Schemas ----------------------------------------------------------------------------------------


def test_schema_finds_columns_by_name_and_codes_by_label() -> None:
    learned = as_table(pd.DataFrame({"a": ["u", "v", "w"], "b": [1, 0, 1]}))
    new = pl.DataFrame({"b": [True, None], "a": ["w", "w"]})
    table = as_table(new, schema=learned.schema)
    assert table.schema is learned.schema
    assert table.values.tolist() == [[2, 1], [2, -1]]
    floats = as_table([["u", 1.0], ["v", float("nan")]], schema=learned.schema)
    assert floats.values.tolist() == [[0, 1], [1, -1]]


def test_schema_of_real_columns() -> None:
    learned = as_table(pd.DataFrame({"a": [0.5, 1.5], "b": [0.1, 0.2]}))
    table = as_table(pd.DataFrame({"b": [1, 2], "a": [3, 4]}), schema=learned.schema)
    assert table.values.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert as_table(np.array([[3.0, 1.0]]), schema=learned.schema).names == ("a", "b")


def test_schema_does_not_mind_constant_or_missing_columns() -> None:
    learned = as_table(np.array([[0, 1], [1, 0], [2, 0]]), "discrete")
    table = as_table(np.array([[2, 0], [2, 0]]), schema=learned.schema)
    assert table.values.tolist() == [[2, 0], [2, 0]]
    table = as_table(pl.DataFrame({"x0": [None, None], "x1": [0, 1]}), schema=learned.schema)
    assert table.values.tolist() == [[-1, 0], [-1, 1]]


def test_schema_and_sparse_data() -> None:
    x = np.array([[0, 1], [1, 0], [1, 1]])
    learned = as_table(x)
    table = as_table(sparse.csr_array(x), schema=learned.schema)
    assert table.is_sparse
    assert table.schema == learned.schema
    swapped = as_table(sparse.csr_array(x), names=["x1", "x0"], schema=learned.schema)
    assert swapped.values.toarray().tolist() == x[:, ::-1].tolist()
    again = as_table(as_table(x, names=["x1", "x0"]), schema=learned.schema)
    assert again.values.tolist() == x[:, ::-1].tolist()
    assert again.values.flags.c_contiguous


@given(st.permutations(["a", "b", "c"]), st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1))
@settings(max_examples=30, deadline=None)
def test_column_order_does_not_matter_against_a_schema(
    order: list[str], rows: list[tuple[int, int, int]]
) -> None:
    schema = Schema.discrete(["a", "b", "c"], [3, 3, 3])
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    expected = as_table(frame, schema=schema)
    assert same(as_table(frame[order], schema=schema), expected)
    assert same(as_table(as_table(frame[order], schema=schema), schema=schema), expected)
    assert decoded(expected) == [list(row) for row in rows]


def test_schema_constructors() -> None:
    schema = Schema.discrete(["a", "b"], [2, 3])
    assert schema.labels == ((0, 1), (0, 1, 2))
    assert schema.cardinalities.tolist() == [2, 3]
    assert Schema.gaussian(["a"]).labels == ((),)
    with pytest.raises(DataError, match="family is 'poisson'"):
        Schema(("a",), "poisson", ((),))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="2 names, but labels of 1"):
        Schema(("a", "b"), "gaussian", ((),))
    with pytest.raises(DataError, match="occur twice: 'a'"):
        Schema.gaussian(["a", "a"])
    with pytest.raises(DataError, match="do not fit 1 names"):
        Table(np.zeros((2, 3)), Schema.gaussian(["a"]))
    with pytest.raises(DataError, match="2 rows need as many weights"):
        Table(np.zeros((2, 1)), Schema.gaussian(["a"]), np.ones(3))


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_found_by_name_in_any_order(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=40),
            "count": rng.poisson(20.0, 40),
            "label": np.resize(["u", "v", "w"], 40),
            "money": [f"${x:,.2f}" for x in rng.normal(5000.0, 900.0, 40)],
            "answer": np.resize([1, 2, 3, 4], 40),
            "constant": "c",
        }
    )
    with pytest.warns(DataWarning, match="set aside"):
        table = as_table(frame)
    order = rng.permutation(frame.columns)
    for data in (frame[order], {name: frame[name].tolist() for name in order}):
        np.testing.assert_array_equal(as_table(data, schema=table.schema).values, table.values)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_labels_that_cannot_be_compared_have_one_order(order):
    labels = [10**400, np.float32(0.5), 3, pd.Interval(0, 3)]
    rows = [[labels[i], i % 2] for i in order]
    assert as_table(rows).schema.labels[0] == (pd.Interval(0, 3), np.float32(0.5), 10**400, 3)

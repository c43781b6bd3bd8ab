"""Statistics over parts: they add up, whatever the cut, to what the whole table says."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from threadpoolctl import threadpool_limits

import latentree as lt
from latentree._kernels.distances.distinct import number_rows
from latentree.data import Table, as_table, cut_table
from latentree.distances import Functions, Sample, Statistics, Sums, Units, gather
from latentree.distances._dependence import dependence
from latentree.errors import DataError, DataWarning


def real_table(rng, n=300, m=5, missing=0.0, weighted=False, shift=0.0):
    x = rng.standard_normal((n, 1)) + rng.standard_normal((n, m)) * rng.uniform(0.1, 3.0, m)
    x += shift
    if missing:
        x[rng.random(x.shape) < missing] = np.nan
    return as_table(x, "gaussian", weights=rng.uniform(0, 2, n) if weighted else None)


def state_table(rng, n=300, m=4, k=2, missing=0.0, weighted=False, family="discrete"):
    h = rng.integers(0, k, (n, 1))
    x = np.where(rng.random((n, m)) < 0.6, h, rng.integers(0, k, (n, m))).astype(float)
    x[:k] = np.arange(k)[:, None]  # every state occurs
    if missing:
        x[rng.random(x.shape) < missing] = np.nan
    return as_table(x, family, weights=rng.uniform(0, 2, n) if weighted else None)


def all_tables():
    for missing in (0.0, 0.2):
        for weighted in (False, True):
            rng = np.random.default_rng(7)
            yield real_table(rng, missing=missing, weighted=weighted, shift=50.0)
            for k in (2, 3):
                yield state_table(rng, k=k, missing=missing, weighted=weighted)
                yield state_table(rng, k=k, missing=missing, weighted=weighted, family="symmetric")


def information(rows):
    sample = Sample(rows)
    return np.array([sample.information_with(column) for column in range(rows.n_columns)])


@pytest.mark.parametrize("table", list(all_tables()), ids=repr)
def test_distances_of_parts_are_those_of_the_table(table):
    parts = cut_table(table, rows=64)
    assert parts.n_parts > 3
    statistics = gather(parts)
    assert statistics.n_rows == table.n_rows
    assert statistics.total_weight == pytest.approx(table.total_weight, rel=1e-14)
    assert statistics.has_missing == table.has_missing
    ours, theirs = lt.information_distances(parts), lt.information_distances(table)
    np.testing.assert_allclose(ours.dense(), theirs.dense(), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(ours.signs(), theirs.signs())
    every = slice(None)
    np.testing.assert_allclose(
        ours.strength_block(every, every), theirs.strength_block(every, every), rtol=1e-9
    )
    assert ours.n_samples == pytest.approx(theirs.n_samples, rel=1e-12)
    if table.family == "gaussian":
        ours, theirs = (lt.information_distances(x, centered=False) for x in (parts, table))
        np.testing.assert_allclose(ours.dense(), theirs.dense(), rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(
            information(parts),
            information(cut_table(table)),
            rtol=1e-9,
            atol=1e-13,
        )


@settings(deadline=None, max_examples=40)
@given(
    cut=st.integers(1, 99),
    missing=st.booleans(),
    other_units=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_real_sums_add_up_in_any_units(cut, missing, other_units, seed):
    rng = np.random.default_rng(seed)
    table = real_table(rng, n=100, missing=0.3 * missing, weighted=True, shift=rng.normal() * 10)
    first, second = table.rows(0, cut), table.rows(cut, 100)
    functions = Functions.of(table)
    whole = Sums.of(table, functions)
    units = Units(rng.normal(size=5), rng.uniform(0.5, 2.0, 5))
    theirs = Functions.of_schema(table.schema, units) if other_units else functions
    both = Sums.of(first, functions) + Sums.of(second, theirs)
    close = {"rtol": 1e-8, "atol": 1e-8}
    np.testing.assert_allclose(both.weight, whole.weight, **close)
    for name in ("first", "squares", "low", "high"):
        ours, expected = getattr(both.numbers, name), getattr(whole.numbers, name)
        np.testing.assert_allclose(ours, expected, **close)
    np.testing.assert_allclose(both.pair_weights(), whole.pair_weights(), **close)
    lower = np.tril(whole.pairs.cross)
    np.testing.assert_allclose(np.tril(both.pairs.cross), lower, **close)


def test_digits_survive_a_large_mean():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2_000, 3)) @ rng.standard_normal((3, 3))
    near = dependence(gather(cut_table(as_table(x))))
    far = dependence(gather(cut_table(as_table(x + 1e8))))
    near, far = np.tril(near), np.tril(far)
    np.testing.assert_allclose(near, far, rtol=0, atol=1e-6)  # what is left of x + 1e8 itself
    large = dependence(gather(cut_table(as_table(x * 1e200))))
    np.testing.assert_allclose(near, np.tril(large), rtol=1e-12)


@pytest.mark.parametrize("n", [4, 300])
def test_moments_and_the_root_of_the_correlations(n):
    rng = np.random.default_rng(1)
    table = real_table(rng, n=n, weighted=True, shift=10.0)
    statistics = gather(cut_table(table, rows=64))
    mean = np.average(table.values, axis=0, weights=table.weights)
    np.testing.assert_allclose(statistics.moments[0], mean, rtol=1e-12)
    covariance = np.cov(table.values.T, aweights=table.weights, ddof=0)
    np.testing.assert_allclose(statistics.moments[1] ** 2, np.diag(covariance), rtol=1e-12)
    root = statistics.correlation_root
    assert root.shape[1] == min(n - 1, table.n_columns)
    spread = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(root @ root.T, covariance / np.outer(spread, spread), atol=1e-12)


def test_few_distinct_rows_take_the_place_of_all():
    table = state_table(np.random.default_rng(2), n=2_000, m=3, missing=0.1, weighted=True)
    sample = Sample(cut_table(table, rows=512))
    small = sample.table
    assert small.n_rows == len(np.unique(table.values, axis=0))
    assert sample.rows.to_table() is small
    for codes, weight in zip(small.values, small.weights, strict=True):
        mine = (table.values == codes).all(axis=1)
        assert weight == pytest.approx(table.weights[mine].sum())
    wide = state_table(np.random.default_rng(2), m=20)
    assert Sample(cut_table(wide)).table is wide  # nearly all rows differ


@pytest.mark.parametrize("table", list(all_tables()), ids=repr)
def test_statistics_of_some_columns_are_cut_out_of_all(table):
    columns = np.array([2, 0, 3])
    cut = Statistics.of(table).select(columns)
    again = Statistics.of(table.select(columns))
    np.testing.assert_allclose(
        np.tril(dependence(cut)), np.tril(dependence(again)), rtol=1e-9, atol=1e-12
    )
    assert cut.names == again.names == tuple(table.names[c] for c in columns)
    np.testing.assert_allclose(cut.column_weights(), again.column_weights())


@pytest.mark.parametrize("table", list(all_tables()), ids=repr)
def test_columns_are_summed_alike_with_and_without_pairs(table):
    whole, alone = gather(cut_table(table)), gather(cut_table(table, rows=64), pairs=False)
    assert whole.has_pairs
    assert not alone.has_pairs
    np.testing.assert_allclose(whole.column_weights(), alone.column_weights(), rtol=1e-12)
    assert whole.has_missing == alone.has_missing
    if table.family == "gaussian":
        np.testing.assert_allclose(whole.moments, alone.moments, rtol=1e-9)
    else:
        np.testing.assert_allclose(whole.sums.single, alone.sums.single, rtol=1e-12)


@given(
    codes=arrays(
        np.int8, st.tuples(st.integers(1, 40), st.integers(1, 6)), elements=st.integers(-1, 2)
    ),
    columns=st.lists(st.integers(0, 5), max_size=6),
    most=st.integers(1, 40),
)
def test_distinct_rows_are_numbered_as_they_appear(codes, columns, most):
    chosen = np.array([c for c in columns if c < codes.shape[1]], np.int64)
    keys = [tuple(row[chosen]) for row in codes]
    known = list(dict.fromkeys(keys))
    ids, first = number_rows(codes, chosen, most)
    if len(known) > most:
        assert ids.size == 0
        return
    assert [known[number] for number in ids] == keys
    assert [keys.index(key) for key in known] == first.tolist()


def test_many_distinct_rows_are_numbered():
    codes = np.random.default_rng(0).integers(0, 3, (20_000, 9)).astype(np.int8)
    ids, first = number_rows(codes, np.arange(9), 20_000)
    assert first.size == len(np.unique(codes, axis=0)) > 8_000
    np.testing.assert_array_equal(codes[first][ids], codes)


def test_nothing_to_learn_is_said_as_of_a_table():
    x = np.random.default_rng(0).standard_normal((50, 3))
    for column, what in ((np.full(50, 3.0), "constant"), (np.full(50, np.nan), "no value")):
        x[:, 1] = column
        with pytest.raises(DataError, match=f"'x1' .*{what}"):
            lt.information_distances(cut_table(Table(x, lt.Schema.gaussian(["x0", "x1", "x2"]))))
    codes = Table(np.array([[0, 1], [1, 1]] * 9, np.int8), lt.Schema.discrete("ab", 2))
    with pytest.raises(DataError, match=r"'b' is constant"):
        lt.information_distances(cut_table(codes))
    x = np.random.default_rng(0).standard_normal((50, 3))
    x[:, 2] = x[:, 0]
    with pytest.warns(DataWarning, match="x0 = x2"):
        distances = lt.information_distances(cut_table(as_table(x)))
    assert distances.dense()[0, 2] == 0.0


def test_statistics_of_other_columns_do_not_add_up():
    rng = np.random.default_rng(0)
    a, b = Statistics.of(real_table(rng)), Statistics.of(real_table(rng, m=4))
    with pytest.raises(DataError, match="same columns"):
        a + b


def test_correlations_of_no_common_row_are_zero():
    x = np.random.default_rng(0).standard_normal((40, 3))
    x[:20, 0] = np.nan
    x[20:, 1] = np.nan
    table = as_table(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = dependence(Statistics.of(table))
    assert ours[1, 0] == 0.0


def test_threads_of_linear_algebra_do_not_change_the_last_bits():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5_000, 1)) + rng.standard_normal((5_000, 130))
    x[rng.random(x.shape) < 0.1] = np.nan
    table = as_table(x, "gaussian")
    with threadpool_limits(1, "blas"):
        one = Statistics.of(table).sums
    with threadpool_limits(2, "blas"):
        two = Statistics.of(table).sums
    assert np.array_equal(one.pairs.weight, two.pairs.weight)
    assert np.array_equal(one.pairs.cross, two.pairs.cross)
    assert np.array_equal(one.pairs.x.first, two.pairs.x.first)
    assert np.array_equal(one.pairs.x.second, two.pairs.x.second)

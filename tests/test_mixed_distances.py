"""Columns of any kind: their dependence against the naive definition, and their sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import latentree as lt
from latentree._kernels.distances.canonical import largest_square
from latentree.data import Schema, Table, cut_table
from latentree.distances import Statistics, as_sample, gather, information_distances
from latentree.errors import DataError, DataWarning

KINDS = ("real", "count", "ordered", "category")
SEEDS = st.integers(0, 2**32 - 1)


def mixed_table(
    seed: int,
    kinds: tuple[str, ...] = ("real", "ordered", "category", "count", "category", "real"),
    n: int = 400,
    missing: float = 0.0,
    weighted: bool = False,
) -> Table:
    """Columns that follow one hidden number, cut and shuffled as their kinds want it."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal(n)
    columns, labels = [], []
    for kind in kinds:
        x = rng.uniform(-1, 1) * hidden + 0.7 * rng.standard_normal(n)
        k = int(rng.integers(2, 7))
        if kind == "real":
            columns.append(np.exp(x) if rng.random() < 0.5 else x)
        elif kind == "count":
            columns.append(rng.poisson(np.exp(x)).astype(float))
        else:
            codes = np.searchsorted(np.quantile(x, np.arange(1, k) / k), x)
            columns.append((codes if kind == "ordered" else rng.permutation(k)[codes]) * 1.0)
        labels.append(tuple(range(k)) if kind in ("ordered", "category") else ())
    values = np.column_stack(columns)
    values[rng.random(values.shape) < missing] = np.nan
    names = tuple(f"x{j}" for j in range(len(kinds)))
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    return Table(values, Schema(names, "mixed", tuple(labels), kinds), weights)


# The naive definition ---------------------------------------------------------------------------


def normal_scores(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Φ⁻¹ of the share of smaller values plus half of the equal ones, over the whole column."""
    out = np.full(x.size, np.nan)
    seen = ~np.isnan(x)
    for row in np.flatnonzero(seen):
        below, same = w[seen & (x < x[row])].sum(), w[seen & (x == x[row])].sum()
        out[row] = norm.ppf((below + same / 2) / w[seen].sum())
    return out


def naive_functions(table: Table, j: int) -> np.ndarray:
    """z and z², or indicators, of which the rare ones are one."""
    x, w = table.values[:, j], table.weight_array()
    if table.schema.kinds[j] in ("real", "count"):
        z = normal_scores(x, w)
        return np.column_stack([z, z**2])
    weight = {s: w[x == s].sum() for s in range(len(table.schema.labels[j]))}
    rare = [s for s in weight if weight[s] < np.sqrt(w.sum())]
    usual = [s for s in weight if s not in rare]
    if len(usual) > 1 and sum(weight[s] for s in rare) < np.sqrt(w.sum()):
        usual.remove(max(weight, key=weight.get))  # the base, with which the rare states go
        rare = []
    return np.column_stack([x == s for s in usual] + [np.isin(x, rare)] * bool(rare)) * 1.0


def naive_r(table: Table, i: int, j: int) -> float:
    """First singular value of the whitened covariance over the common rows, less its bias."""
    w = table.weight_array()
    both = table.present(np.array([i, j])).all(axis=1)
    root, n = np.sqrt(w[both]), w[both].sum()
    bases = []
    for column in (i, j):
        f = naive_functions(table, column)[both]
        f = (f - (w[both] @ f) / n) * root[:, None]
        u, s, _ = np.linalg.svd(f, full_matrices=False)
        bases.append(u[:, s > 1e-4 * s.max(initial=0.0)])
    square = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).max(initial=0.0) ** 2
    extra = bases[0].shape[1] + bases[1].shape[1] - 2
    if extra == 0:
        return float(max(np.sqrt(square), 1e-8))  # two binary columns; log 0 is no length
    b = extra / n
    return float(np.sqrt(max((square - b) / (1 - b), 0.25 / n)))


def dependence(table: Table, dense: bool = True) -> np.ndarray:
    return np.exp(-information_distances(table, dense=dense).dense())


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.2]), st.booleans())
def test_dependence_follows_the_naive_definition(seed: int, gaps: float, weighted: bool) -> None:
    table = mixed_table(seed, n=150, missing=gaps, weighted=weighted)
    naive = [[naive_r(table, i, j) if i != j else 1.0 for j in range(6)] for i in range(6)]
    assert np.allclose(dependence(table), naive, atol=2e-5)
    assert np.allclose(dependence(table, dense=False), naive, atol=2e-5)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.booleans())
@example(100343549, False)  # two binary columns without any dependence
def test_uneven_states_follow_the_naive_definition(seed: int, gaps: bool) -> None:
    kinds = ("category",) * 5
    table = mixed_table(seed, kinds, n=300, missing=0.1 * gaps)
    codes = np.where(np.isnan(table.values), -1, table.values).astype(np.int8)
    discrete = Table(codes, Schema(table.names, "discrete", table.schema.labels))
    if np.unique(discrete.cardinalities).size == 1:
        return
    naive = [[naive_r(table, i, j) if i != j else 1.0 for j in range(5)] for i in range(5)]
    for dense in (True, False):
        assert np.allclose(dependence(discrete, dense), naive, atol=1e-9)
    pairs = np.array([[3, 1], [0, 2], [4, 3]])
    on_demand = information_distances(discrete, dense=False)
    assert np.allclose(np.exp(-on_demand.of_pairs(pairs)), [naive[a][b] for a, b in pairs])
    assert information_distances(discrete).exponent == 1.0


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_singular_values_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.integers(1, 9, 2)
    block = rng.standard_normal((p, q)) * 10.0 ** rng.uniform(-5, 3)
    if rng.random() < 0.3:
        block[:, 0] = block[:, -1]  # rank below the size
    found = largest_square(np.pad(block, 2), p + 2, q + 2, np.empty((12, 12)))
    assert np.isclose(found, np.linalg.norm(block, 2) ** 2, rtol=1e-12)


# What must hold ---------------------------------------------------------------------------------


def test_two_binary_columns_correlate() -> None:
    table = mixed_table(3, ("category", "ordered"))
    values = np.minimum(table.values, 1.0)
    binary = Table(values, Schema(("a", "b"), "mixed", ((0, 1), (0, 1)), table.schema.kinds))
    d = information_distances(binary)
    r = np.corrcoef(values.T)[0, 1]
    assert np.isclose(d.dense()[0, 1], -np.log(abs(r)), atol=1e-5)
    assert d.signs()[0, 1] == np.sign(r)


@pytest.mark.parametrize("dense", [True, False])
def test_signs_are_those_of_ordered_columns(dense: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(500)
    cut = np.searchsorted([-1.0, 0.0, 1.0], -x) * 1.0
    values = np.column_stack([x, cut, rng.poisson(np.exp(x)), rng.permutation(4)[cut.astype(int)]])
    labels = ((), (0, 1, 2, 3), (), (0, 1, 2, 3))
    kinds = ("real", "ordered", "count", "category")
    table = Table(values, Schema(tuple("abcd"), "mixed", labels, kinds))
    signs = information_distances(table, dense=dense).signs()
    assert signs[:3, :3].tolist() == [[1, -1, 1], [-1, 1, -1], [1, -1, 1]]
    assert (signs[3] == 1).all()


def test_monotone_functions_and_labels_do_not_matter() -> None:
    table = mixed_table(1)
    changed = table.values.copy()
    changed[:, 0] = np.exp(3 * changed[:, 0])
    k = len(table.schema.labels[2])
    changed[:, 2] = np.roll(np.arange(k), 1)[changed[:, 2].astype(int)]
    assert np.allclose(dependence(Table(changed, table.schema)), dependence(table), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_lies_at_distance_zero(kind: str) -> None:
    table = mixed_table(2, (kind, "real"))
    labels = (table.schema.labels[0], *table.schema.labels)
    schema = Schema(("copy", *table.names), "mixed", labels, (kind, *table.schema.kinds))
    twice = Table(np.column_stack([table.values[:, 0], table.values]), schema)
    with pytest.warns(DataWarning, match="copy = x0"):
        d = information_distances(twice)
    assert d.dense()[0, 1] == 0.0


def test_pairs_that_tell_nothing_are_zero_and_finite() -> None:
    table = mixed_table(0, ("real", "category", "ordered"), n=60)
    values = table.values.copy()
    values[:30, 0] = np.nan  # no row has both
    values[30:, 1] = np.nan
    values[30:, 2] = 1.0  # constant where the first is present
    for dense in (True, False):
        d = information_distances(Table(values, table.schema), dense=dense)
        assert np.isfinite(d.dense()).all()
        assert d.independent()[0, 1]
        assert d.independent()[0, 2]


def test_coincidences_of_rare_states_are_no_dependence() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (10_000, 2)).astype(float)
    values[0] = 3, 3  # one row has the rare state of both
    labels = (tuple(range(4)),) * 2
    schema = Schema(("a", "b"), "mixed", labels, ("category", "category"))
    assert information_distances(Table(values, schema)).dense()[0, 1] > -np.log(0.05)


# Standard errors --------------------------------------------------------------------------------


def repeated_pair(values: np.ndarray, n_states: Sequence[int], n: int) -> tuple[np.ndarray, ...]:
    """Return r and the strength of the columns j and j + n, for j < n: pairs that are repeats."""
    names = [f"x{k}" for k in range(values.shape[1])]
    distances = information_distances(Table(values, Schema.discrete(names, n_states)), dense=False)
    places = np.arange(n)
    r = np.exp(-distances.of_pairs(np.column_stack([places, places + n])))
    strengths = [distances.strength_block([j], [j + n])[0, 0] for j in places]
    return r, np.array(strengths)


def test_bias_and_standard_error_of_weak_dependence() -> None:
    """Columns of 4 and 3 functions with ρ = 0.2, n = 2,000: E[r²] = ρ² + 1/n, sd about 1/√n."""
    rng = np.random.default_rng(0)
    n, strength, repeats = 2_000, 0.2, 400
    # P(x, y) = (1 + 20·ρ·u(x)·v(y)) / 20 with standardized u and v: one canonical correlation.
    u, v = np.linspace(-1, 1, 5), np.linspace(-1, 1, 4)
    u, v = u / u.std(), v / v.std()
    joint = ((1.0 + strength * np.outer(u, v)) / 20).ravel()
    cells = rng.choice(20, (n, repeats), p=joint)
    values = np.concatenate(np.divmod(cells, 4), axis=1).astype(np.int8)
    squares = np.square(repeated_pair(values, [5] * repeats + [4] * repeats, repeats)[0])
    r = np.sqrt(squares)
    assert abs(np.mean(squares) - (strength**2 + 1 / n)) < 0.03 * strength**2
    assert 0.85 < np.std(r) * np.sqrt(n) < 1.25


@pytest.mark.parametrize("states", [(2, 5), (3, 4), (6, 6, 5)])
def test_variance_of_independent_columns(states: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    n, repeats = 1_000, 300
    counts = np.repeat(states, repeats)
    values = rng.integers(0, counts, (n, counts.size)).astype(np.int8)
    _, strengths = repeated_pair(values, counts, repeats)
    assert 0.8 < np.mean(np.square(strengths)) < 1.2


# Sums -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_parts_add_up(missing: float) -> None:
    table = mixed_table(5, n=300, missing=missing)
    whole = gather(cut_table(table, rows=64))
    first = Statistics.of(table.rows(0, 64))
    rest = [Statistics.of(table.rows(k, k + 64), like=first) for k in range(64, 300, 64)]
    together = sum(rest, first)
    assert np.array_equal(as_sample(whole).distances.dense(), as_sample(together).distances.dense())
    assert whole.sums.complete == (missing == 0.0)


def test_gaps_in_one_part_only() -> None:
    table = mixed_table(6, n=200)
    values = table.values.copy()
    values[150:, :2] = np.nan
    gappy = Table(values, table.schema)
    parts = as_sample(gather(cut_table(gappy, rows=64))).distances.dense()
    # The scores of numbers come from the first part; those of states are the same.
    whole = as_sample(Statistics.of(gappy, like=Statistics.of(gappy.rows(0, 64)))).distances.dense()
    assert np.allclose(parts, whole, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.booleans())
def test_weight_two_is_the_row_twice(seed: int, gaps: bool) -> None:
    table = mixed_table(seed, n=120, missing=0.1 * gaps, weighted=True)
    twice = table.take(np.repeat(np.arange(120), table.weight_array().astype(int)))
    assert np.allclose(dependence(table), dependence(Table(twice.values, table.schema)), atol=1e-4)


def test_what_single_columns_say() -> None:
    table = mixed_table(7, n=200, missing=0.1, weighted=True)
    sums = Statistics.of(table).sums
    mean, spread = sums.moments()
    low, high = sums.extremes()
    w = table.weight_array()
    for j, kind in enumerate(table.schema.kinds):
        x = table.values[:, j]
        seen = ~np.isnan(x)
        assert np.isclose(sums.column_weights()[j], w[seen].sum())
        if kind in ("real", "count"):
            expected = np.average(x[seen], weights=w[seen])
            assert np.isclose(mean[j], expected)
            assert np.isclose(
                spread[j] ** 2, np.average((x[seen] - expected) ** 2, weights=w[seen])
            )
            assert np.allclose([low[j], high[j]], [x[seen].min(), x[seen].max()])
            assert sums.resolutions[j] == np.diff(np.unique(x[seen])).min()
        else:
            states = [w[x == s].sum() for s in range(len(table.schema.labels[j]))]
            assert np.allclose(sums.of_column(j), states)
            assert np.isnan([mean[j], low[j], sums.resolutions[j]]).all()


def test_rounding_is_no_step() -> None:
    x = np.repeat([0.1, 0.5, 0.9], 5)
    x[::2] += 1e-17 + 1e-16 * (x[::2] > 0.3)
    schema = Schema(("a", "b"), "mixed", ((), (0, 1)), ("real", "category"))
    table = Table(np.column_stack([x, np.arange(15) % 2]), schema)
    sums = Statistics.of(table).sums
    assert np.isclose(sums.resolutions[0], 0.4)


def test_columns_can_be_selected() -> None:
    for missing in (0.0, 0.2):
        sample = as_sample(mixed_table(8, missing=missing))
        some = np.array([4, 0, 3])
        selected = as_sample(sample.statistics.select(some))
        assert selected.names == ("x4", "x0", "x3")
        expected = sample.distances.dense()[np.ix_(some, some)]
        assert np.allclose(selected.distances.dense(), expected, atol=1e-12)
        alone = sample.statistics.select(np.array([0, 5]))
        assert alone.sums.single.size == 0


def test_mixed_tables_have_no_mutual_information() -> None:
    sample = as_sample(mixed_table(0))
    with pytest.raises(DataError, match="mutual information is known only"):
        _ = sample.information_with
    with pytest.raises(DataError, match="a joint table is known only"):
        sample.pair_table(1, 2)


def test_constant_columns_are_refused() -> None:
    table = mixed_table(0)
    values = table.values.copy()
    values[:, [0, 2]] = 1.0
    with pytest.raises(DataError, match="'x0', 'x2' are constant"):
        as_sample(Table(values, table.schema))


@pytest.mark.parametrize("method", ["clrg", "clnj", "rg", "nj", "cl_blind", "chow_liu", "hclt"])
def test_all_learners_find_a_star(method: str) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal(4_000)
    values = np.column_stack(
        [hidden + 0.5 * rng.standard_normal(4_000) for _ in range(4)]
        + [(hidden + 0.5 * rng.standard_normal(4_000) > 0) * 1.0]
    )
    values[:, 1] = np.searchsorted([-1, 0, 1], values[:, 1])
    values[:, 2] = np.array([2, 0, 1])[np.searchsorted([-0.5, 0.5], values[:, 2])]
    labels = ((), (0, 1, 2, 3), (0, 1, 2), (), (0, 1))
    kinds = ("real", "ordered", "category", "real", "category")
    table = Table(values, Schema(tuple("abcde"), "mixed", labels, kinds))
    for dense in (True, False):
        d = information_distances(table, dense=dense)
        tree = lt.structure.learn_structure(d, method)
        assert tree.n_hidden == {"chow_liu": 0, "cl_blind": 3, "hclt": 3}.get(method, 1)

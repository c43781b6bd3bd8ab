"""Pairwise statistics against their definitions, row by row."""

from __future__ import annotations

import pathlib
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from latentree.data import Schema, Table, as_table, cut_table
from latentree.distances import (
    BitLines,
    BlockDependence,
    Functions,
    Sample,
    Statistics,
    gather,
    information_distances,
)
from latentree.distances import _dependence as sums
from latentree.distances import _lines as lines
from latentree.distances._arrays import mirrored
from latentree.errors import DataError

ALL = slice(None)
seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None)


# Definitions ------------------------------------------------------------------------------------


def rows_of(table: Table, i: int, j: int) -> list[tuple[float, float, float]]:
    """(x_i, x_j, weight) of the rows in which both are present."""
    x = table.values.toarray() if table.is_sparse else table.values
    gone = table.missing_mask()
    w = table.weight_array()
    return [
        (x[t, i].item(), x[t, j].item(), w[t].item())
        for t in range(table.n_rows)
        if not gone[t, i] and not gone[t, j]
    ]


def correlation(table: Table, i: int, j: int, centered: bool = True) -> float:
    rows = rows_of(table, i, j)
    n = sum(w for _, _, w in rows)
    if n == 0:
        return 0.0
    a = sum(w * x for x, _, w in rows) / n if centered else 0.0
    b = sum(w * y for _, y, w in rows) / n if centered else 0.0
    xy = sum(w * (x - a) * (y - b) for x, y, w in rows)
    xx = sum(w * (x - a) ** 2 for x, _, w in rows)
    yy = sum(w * (y - b) ** 2 for _, y, w in rows)
    return 0.0 if min(xx, yy) < 1e-20 * n else xy / sqrt(xx * yy)


def joint(table: Table, i: int, j: int) -> np.ndarray:
    k = table.cardinalities
    counts = np.zeros((k[i], k[j]))
    for x, y, w in rows_of(table, i, j):
        counts[int(x), int(y)] += w
    return counts


def determinant_root(table: Table, i: int, j: int) -> float:
    counts = joint(table, i, j)
    p, q = counts.sum(1), counts.sum(0)
    if min(p.min(), q.min()) <= 0:
        return 0.0
    det = np.linalg.det(counts / counts.sum())
    ratio = det / sqrt(np.prod(p / counts.sum()) * np.prod(q / counts.sum()))
    return float(np.sign(ratio) * abs(ratio) ** (1 / (len(p) - 1)))


def disagreement(table: Table, i: int, j: int) -> float:
    rows = rows_of(table, i, j)
    n = sum(w for _, _, w in rows)
    k = table.cardinalities[i]
    return sum(w for x, y, w in rows if x != y) / n if n else (k - 1) / k


def information(table: Table, i: int, j: int) -> float:
    p = joint(table, i, j)
    if p.sum() == 0:
        return 0.0
    p = p / p.sum()
    a, b = p.sum(1), p.sum(0)
    cells = np.argwhere(p > 0).tolist()
    return sum(p[x, y] * log(p[x, y] / (a[x] * b[y])) for x, y in cells)


def of_all_pairs(function, table: Table, **options) -> np.ndarray:
    m = table.n_columns
    return np.array([[function(table, i, j, **options) for j in range(m)] for i in range(m)])


# Both providers ---------------------------------------------------------------------------------


def provider(table: Table, centered: bool = True) -> BlockDependence:
    """Blocks on demand, which know only the sums of the columns."""
    return BlockDependence(table, Statistics.of(table), centered)


def from_sums(table: Table, centered: bool = True) -> np.ndarray:
    """The dependence of all pairs from their sums."""
    return mirrored(sums.dependence(Statistics.of(table), centered))


def mutual_information(table: Table, pairs: bool = True) -> np.ndarray:
    """Row by row, from sums of pairs or counted when asked for."""
    parts = cut_table(table)
    sample = Sample(parts, gather(parts, pairs))
    return np.array([sample.information_with(column) for column in range(table.n_columns)])


# Data -------------------------------------------------------------------------------------------


def weights_of(rng: np.random.Generator, n: int, how: str) -> np.ndarray | None:
    return {
        "none": None,
        "whole": rng.integers(0, 3, n) + np.eye(n)[0],
        "real": rng.random(n) + 0.01,
    }[how]


weighting = st.sampled_from(["none", "whole", "real"])
missing_share = st.sampled_from([0.0, 0.2, 0.6])


def real_table(seed: int, how: str, missing: float) -> Table:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(3, 12), rng.integers(2, 6)
    x = rng.standard_normal((n, 1)) * rng.random(m) + rng.standard_normal((n, m))
    x = x * 10.0 ** rng.integers(-3, 4, m) + rng.integers(-5, 5, m)
    x[rng.random((n, m)) < missing] = np.nan
    schema = Schema.gaussian(f"x{j}" for j in range(m))  # constant columns too
    return Table(x, schema, weights_of(rng, n, how))


def coded_table(seed: int, k: int, how: str, missing: float, family: str = "discrete") -> Table:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2 * k, 30), rng.integers(2, 5)
    hidden = rng.integers(0, k, (n, 1))
    codes = np.where(rng.random((n, m)) < 0.5, hidden, rng.integers(0, k, (n, m))).astype(np.int8)
    codes[rng.random((n, m)) < missing] = -1
    schema = Schema.discrete([f"x{j}" for j in range(m)], k, family)  # type: ignore[arg-type]
    return Table(codes, schema, weights_of(rng, n, how))


def sparse_twin(table: Table) -> Table:
    return Table(sparse.csr_array(table.values), table.schema, table.weights)


# Against the definitions ------------------------------------------------------------------------


@given(seeds, weighting, missing_share, st.booleans())
@example(12803, "whole", 0.2, False)  # the only gap is in a row of weight 0
@quick
def test_correlations(seed: int, how: str, missing: float, centered: bool) -> None:
    table = real_table(seed, how, missing)
    expected = of_all_pairs(correlation, table, centered=centered)
    tolerance = 1e-7 if missing else 1e-12
    assert np.allclose(from_sums(table, centered), expected, atol=tolerance)
    blocks = provider(table, centered)
    rho = blocks.block(ALL, ALL)
    np.fill_diagonal(rho, np.diag(expected))  # of a constant column it is rounding
    assert np.allclose(rho, expected, atol=tolerance)
    n = of_all_pairs(lambda t, i, j: sum(w for _, _, w in rows_of(t, i, j)), table)
    for counts in (blocks.counts(ALL, ALL), Statistics.of(table).sums.pair_weights()):
        assert np.allclose(counts, n)
        assert isinstance(counts, np.ndarray) == table.counted().has_missing


@given(seeds, weighting, missing_share)
@quick
def test_two_states_correlate_by_their_determinant(seed: int, how: str, missing: float) -> None:
    table = coded_table(seed, 2, how, missing)
    expected = of_all_pairs(determinant_root, table)
    tables = [table] if table.has_missing else [table, sparse_twin(table)]
    for each in tables:
        assert np.allclose(provider(each).block(ALL, ALL), expected, atol=1e-10)
        assert np.allclose(from_sums(each), expected, atol=1e-10)


@given(seeds, st.integers(3, 5), weighting, missing_share)
@quick
def test_determinants(seed: int, k: int, how: str, missing: float) -> None:
    table = coded_table(seed, k, how, missing)
    expected = of_all_pairs(determinant_root, table)
    # The root of a determinant that is all rounding says nothing.
    clear = np.abs(expected) > 1e-3
    for got in (provider(table).block(ALL, ALL), from_sums(table)):
        assert np.allclose(got[clear], expected[clear], rtol=1e-6)
        assert (np.abs(got[~clear]) < 2e-3).all()


@given(seeds, st.integers(2, 4), weighting, missing_share)
@quick
def test_agreements(seed: int, k: int, how: str, missing: float) -> None:
    table = coded_table(seed, k, how, missing, "symmetric")
    expected = of_all_pairs(disagreement, table)
    is_sparse = k == 2 and not table.has_missing
    for each in [table, sparse_twin(table)] if is_sparse else [table]:
        for r in (provider(each).block(ALL, ALL), from_sums(each)):
            assert np.allclose(r, 1 - k * (expected / (k - 1)), atol=1e-12)


@given(seeds, st.integers(2, 4), weighting, missing_share, st.booleans())
@quick
def test_counts_of_pairs_of_states(
    seed: int, k: int, how: str, missing: float, in_two: bool
) -> None:
    table = coded_table(seed, k, how, missing)
    if k == 2 and not table.has_missing:
        table = sparse_twin(table)
    found = Statistics.of(table).sums
    if in_two:  # also where only one part has gaps
        cut = table.n_rows // 2
        first, second = table.rows(0, cut), table.rows(cut, table.n_rows)
        found = Statistics.of(first).sums + Statistics.of(second).sums
    m = table.n_columns
    whole = found.tables(np.arange(m))
    chosen = found.select(np.array([1, 0]))
    for i in range(m):
        own = [sum(w for x, _, w in rows_of(table, i, i) if x == state) for state in range(k)]
        assert np.allclose(found.of_column(i), own, atol=1e-12)
        for j in range(m):
            expected = joint(table, i, j)
            assert np.allclose(found.pair(i, j), expected, atol=1e-12)
            assert np.allclose(whole[k * i : k * i + k, k * j : k * j + k], expected, atol=1e-12)
    assert np.allclose(chosen.pair(0, 1), joint(table, 1, 0), atol=1e-12)


@given(seeds, weighting, missing_share)
@quick
def test_mutual_information(seed: int, how: str, missing: float) -> None:
    table = coded_table(seed, 2, how, missing)
    other = coded_table(seed + 1, 3, how, missing)
    n = min(table.n_rows, other.n_rows)
    names = [f"y{j}" for j in range(other.n_columns)]
    schema = Schema(
        (*table.names, *names), "discrete", (*table.schema.labels, *other.schema.labels)
    )
    both = Table(
        np.hstack([table.values[:n], other.values[:n]]),
        schema,
        weights_of(np.random.default_rng(seed), n, how),
    )
    expected = of_all_pairs(information, both)
    for pairs in (True, False):
        assert np.allclose(mutual_information(both, pairs), expected, atol=1e-12)
        if not table.has_missing:
            binary = mutual_information(table, pairs)
            assert np.allclose(binary, of_all_pairs(information, table), atol=1e-12)
            assert table.weights is not None or np.array_equal(binary, binary.T)
            twin = mutual_information(sparse_twin(table), pairs)
            assert np.allclose(twin, binary, atol=1e-12)


def test_mutual_information_of_a_column_without_values() -> None:
    table = Table(np.array([[0, -1], [1, -1]], np.int8), Schema.discrete(["a", "b"], 2))
    assert mutual_information(table) == pytest.approx(np.array([[log(2), 0], [0, 0]]))


# Blocks -----------------------------------------------------------------------------------------


KINDS = ["real", "missing", "two", "two missing", "two weighted", "sparse", "sparse symmetric"]
KINDS += ["three", "three weighted", "symmetric", "symmetric weighted"]


def table_of_kind(kind: str, seed: int) -> Table:
    table: Table = {
        "real": lambda: real_table(seed, "real", 0.0),
        "missing": lambda: real_table(seed, "real", 0.2),
        "two": lambda: coded_table(seed, 2, "none", 0.0),
        "two missing": lambda: coded_table(seed, 2, "none", 0.1),
        "two weighted": lambda: coded_table(seed, 2, "real", 0.1),
        "sparse": lambda: sparse_twin(coded_table(seed, 2, "real", 0.0)),
        "sparse symmetric": lambda: sparse_twin(coded_table(seed, 2, "none", 0.0, "symmetric")),
        "three": lambda: coded_table(seed, 3, "none", 0.1),
        "three weighted": lambda: coded_table(seed, 3, "real", 0.1),
        "symmetric": lambda: coded_table(seed, 3, "none", 0.1, "symmetric"),
        "symmetric weighted": lambda: coded_table(seed, 3, "real", 0.1, "symmetric"),
    }[kind]()
    return table


@given(seeds, st.sampled_from(KINDS))
@quick
def test_blocks_are_parts_of_the_whole(seed: int, kind: str) -> None:
    table = table_of_kind(kind, seed)
    statistic = provider(table)
    m = table.n_columns
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(m)[: m - 1], rng.permutation(m)[:2]
    whole = statistic.block(ALL, ALL)
    assert np.allclose(statistic.block(rows, columns), whole[np.ix_(rows, columns)], atol=1e-12)
    assert np.allclose(statistic.block(slice(0, 1), columns), whole[:1, columns], atol=1e-12)
    lower = statistic.lower()
    assert np.allclose(np.tril(lower), np.tril(whole), atol=1e-12)
    assert lower.flags.c_contiguous
    n = np.broadcast_to(statistic.counts(ALL, ALL), (m, m))
    part = np.broadcast_to(statistic.counts(rows, columns), (m - 1, 2))
    assert np.allclose(part, n[np.ix_(rows, columns)])
    off = ~np.eye(m, dtype=bool)
    assert Statistics.of(table).mean_pair_weight == pytest.approx(n[off].mean())
    if not kind.startswith("three"):  # roots magnify rounding
        assert np.allclose(np.tril(from_sums(table), -1), np.tril(whole, -1), atol=1e-9)


@given(seeds, st.sampled_from(KINDS))
@quick
def test_pairs_are_cells_of_the_whole(seed: int, kind: str) -> None:
    table = table_of_kind(kind, seed)
    statistic = provider(table)
    whole = statistic.block(ALL, ALL)
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, table.n_columns, (2, 30))
    if kind.startswith("three"):  # roots magnify rounding
        clear = np.abs(whole[first, second]) > 1e-3
        first, second = first[clear], second[clear]
    expected = whole[first, second]
    assert np.allclose(statistic.pairs(first, second), expected, atol=1e-9)
    counts = np.broadcast_to(statistic.counts(ALL, ALL), whole.shape)
    assert np.allclose(statistic.pair_counts(first, second), counts[first, second])
    gap = np.abs(statistic.quick_block(ALL, ALL) - whole).max()
    assert gap <= statistic.margin + 1e-15
    assert statistic.pairs(first[:0], second[:0]).shape == (0,)


@given(seeds, st.sampled_from(["two", "two missing", "three", "sparse symmetric"]))
@quick
def test_counts_give_the_same_bits_in_any_block(seed: int, kind: str) -> None:
    statistic = provider(table_of_kind(kind, seed))
    whole = statistic.block(ALL, ALL)
    m = len(whole)
    first, second = np.divmod(np.arange(m * m), m)
    assert np.array_equal(statistic.pairs(first, second), whole.ravel())
    assert np.array_equal(whole, whole.T)
    assert np.array_equal(statistic.block(np.array([m - 1]), ALL), whole[-1:])
    assert np.array_equal(np.tril(statistic.lower()), np.tril(whole))


@pytest.mark.parametrize("share", [0.01, 0.4])
def test_lists_and_bits_count_the_same(share: float) -> None:
    rng = np.random.default_rng(0)
    codes = (rng.random((300, 70)) < share * rng.random(70)).astype(np.int8)
    table = Table(sparse.csr_array(codes), Schema.discrete([f"x{j}" for j in range(70)], 2))
    functions = Functions.of(table)
    assert isinstance(lines.lines_of(table, functions)[0], BitLines) == (share > 0.1)
    expected = codes.T.astype(float) @ codes
    for ones in (lines.SparseLines(functions, table), BitLines(functions, table)):
        assert np.array_equal(ones.alone.first, np.diag(expected))
        for rows, columns in [(ALL, ALL), ([3, 3, 1], [5, 5]), (slice(2, 9), slice(40, 70))]:
            a, b = np.arange(70)[rows], np.arange(70)[columns]
            assert np.array_equal(ones.sums(a, b).cross, expected[np.ix_(a, b)])


def test_single_precision_is_summed_in_parts() -> None:
    table = as_table(np.random.default_rng(0).standard_normal((101, 5)))
    statistic = provider(table)
    statistic.float32_rows = 16
    quick_block = statistic.quick_block(ALL, np.array([4, 0]))
    assert quick_block.dtype == np.float32
    assert np.abs(quick_block - statistic.block(ALL, np.array([4, 0]))).max() < statistic.margin
    assert statistic.margin < 40 * 2.0**-24


def test_tiles_and_chunks_do_not_change_the_result() -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((50, 1)) + rng.standard_normal((50, 9))
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    codes = np.digitize(x, [-1, 1])
    tables = [as_table(x), as_table(holes), as_table(codes), as_table(codes, "symmetric")]
    tables.append(as_table(x, weights=rng.random(50)))
    for table in tables:
        statistic, small = provider(table), provider(table)
        small.chunk_cells, small.span = 64, 4
        assert np.allclose(np.tril(small.lower(tile=4)), np.tril(statistic.lower()))
        first, second = rng.integers(0, 9, (2, 40))
        assert np.allclose(small.pairs(first, second), statistic.pairs(first, second))


# What is special --------------------------------------------------------------------------------


def test_a_pair_that_is_constant_on_its_common_rows_gets_zero() -> None:
    x = np.array([[1.1, 0.3], [1.1, 0.9], [1.1, -2.0], [7.0, np.nan], [2.0, np.nan]])
    assert from_sums(as_table(x)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    rng = np.random.default_rng(0)
    for _ in range(30):
        x = rng.standard_normal((40, 2))
        x[:25, 0] = x[0, 0]
        x[25:, 1] = np.nan
        table = as_table(x, weights=rng.random(40))
        for rho in (from_sums(table), provider(table).block(ALL, ALL)):
            assert rho[0, 1] == rho[1, 0] == 0
    apart = np.array([[0.5, np.nan], [1.5, np.nan], [np.nan, 0.1], [np.nan, 0.7]])
    for centered in (True, False):
        table = as_table(apart)
        for rho in (from_sums(table, centered), provider(table, centered).block(ALL, ALL)):
            assert rho[0, 1] == 0


@pytest.mark.parametrize("scale", [1e-170, 1e-3, 1e170])
@pytest.mark.parametrize("missing", [False, True])
def test_units_do_not_matter(scale: float, missing: bool) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((20, 1)) + rng.standard_normal((20, 3))
    if missing:
        x[0, 0] = np.nan
    table, other = as_table(x), as_table(x * scale)
    assert np.allclose(from_sums(table), from_sums(other), atol=1e-12)
    lower = np.tril_indices(3, -1)
    blocks, others = provider(table).block(ALL, ALL), provider(other).block(ALL, ALL)
    assert np.allclose(blocks[lower], others[lower], atol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_values_too_large_to_be_summed_are_refused(missing: bool) -> None:
    x = np.array([[0.5, 1.7e308], [1.0, 1.6e308], [0.1, -1.7e308], [np.nan, 1.0]])
    with pytest.raises(DataError, match="column 'x1' are too large"):
        information_distances(x if missing else x[:3])


def test_a_large_mean_costs_no_digits() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-8, 8, (200, 4)) + rng.integers(-8, 8, (200, 1))
    far = x + 2.0**30
    holes = far.copy()
    holes[0] = np.nan
    rho = from_sums(as_table(x, "gaussian"))
    assert np.allclose(from_sums(as_table(far, "gaussian")), rho, atol=1e-9)
    short = from_sums(as_table(x[1:], "gaussian"))
    assert np.allclose(from_sums(as_table(holes, "gaussian")), short, atol=1e-9)


def test_mutual_information_tree_of_the_newsgroups(paper_data: pathlib.Path) -> None:
    """The paper's Chow-Liu tree: its published log-likelihood, to the digit."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    x = np.loadtxt(paper_data / "newsgroups.csv.gz", delimiter=",", skiprows=1, dtype=np.int8)
    table = as_table(sparse.csr_array(x))
    information_ = mutual_information(table)
    entropies = np.diag(information_)
    tree = minimum_spanning_tree(np.triu(2.0 - information_, 1)).tocoo()
    total = information_[tree.row, tree.col].sum() - entropies.sum()
    assert table.n_rows * total == pytest.approx(-238_712.6, abs=0.05)
    negative = np.tril(from_sums(table), -1) < 0
    assert negative.sum() == 2453

"""Information distances: values, signs, marks, both ways to hold them, and bad matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from latentree.data import Schema, as_table
from latentree.distances import WEAKEST, Distances, as_distances, information_distances
from latentree.errors import DataError, DataWarning, DistanceError

ALL = slice(None)
seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None)
LARGEST = -np.log(WEAKEST)


def factor_data(seed: int, n: int = 60, m: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    loading = rng.uniform(-2, 2, m)
    return rng.standard_normal((n, 1)) * loading + rng.standard_normal((n, m))


def dataset(kind: str, seed: int) -> tuple[Any, str]:
    x = factor_data(seed)
    rng = np.random.default_rng(seed)
    return {
        "gaussian": lambda: (x, "gaussian"),
        "missing": lambda: (np.where(rng.random(x.shape) < 0.1, np.nan, x), "gaussian"),
        "two": lambda: ((x > 0).astype(int), "discrete"),
        "sparse": lambda: (sparse.csr_array(x > 0), "discrete"),
        "three": lambda: (np.digitize(x, [-0.5, 0.5]), "discrete"),
        "symmetric": lambda: (np.digitize(x, [-0.5, 0.5]), "symmetric"),
    }[kind]()


KINDS = ["gaussian", "missing", "two", "sparse", "three", "symmetric"]
kinds = st.sampled_from(KINDS)


def assert_equal(a: Distances, b: Distances, exact: bool = False) -> None:
    d, e = a.dense(), b.dense()
    if exact:
        assert np.array_equal(d, e)
    # A rounding error of 1e-16 in r is one of 1e-16 / |r| in the distance.
    assert np.allclose(np.exp(-d), np.exp(-e), rtol=0, atol=1e-13)
    clear = (d < 5) & (e < 5)
    assert np.allclose(d[clear], e[clear], rtol=0, atol=1e-11)
    assert np.array_equal(a.signs()[clear], b.signs()[clear])


# Values -----------------------------------------------------------------------------------------


def test_gaussian_is_minus_log_correlation() -> None:
    x = factor_data(0, 500)
    d = information_distances(x)
    rho = np.corrcoef(x.T)
    assert np.allclose(d.dense(), -np.log(np.abs(rho)), atol=1e-10)
    assert np.array_equal(d.signs(), np.sign(rho))
    assert (d.signs() < 0).any()
    assert d.n_samples == 500
    assert d.family == "gaussian"
    raw = information_distances(x + 1, centered=False)
    y = (x + 1) / np.sqrt(((x + 1) ** 2).sum(0))
    assert np.allclose(raw.dense(), -np.log(np.abs(y.T @ y)), atol=1e-10)


def test_two_states_follow_the_determinant() -> None:
    x = (factor_data(1, 400) > 0).astype(int)
    d = information_distances(x)
    p1 = x.mean(0)
    for i in range(6):
        for j in range(6):
            joint = np.array(
                [[np.mean((x[:, i] == a) & (x[:, j] == b)) for b in (0, 1)] for a in (0, 1)]
            )
            det = np.linalg.det(joint) / np.sqrt(np.prod([p * (1 - p) for p in (p1[i], p1[j])]))
            assert d.dense()[i, j] == pytest.approx(-np.log(abs(det)), abs=1e-9)
            assert d.signs()[i, j] == np.sign(det)


@pytest.mark.parametrize("k", [3, 5])
def test_more_states_follow_the_determinant(k: int) -> None:
    cuts = np.quantile(factor_data(2, 2000), np.arange(1, k) / k)
    x = np.digitize(factor_data(2, 2000), cuts)
    d = information_distances(x, "discrete")
    marginal = [np.bincount(x[:, j], minlength=k) / len(x) for j in range(6)]
    for i in range(6):
        for j in range(6):
            joint = np.zeros((k, k))
            np.add.at(joint, (x[:, i], x[:, j]), 1 / len(x))
            det = np.linalg.det(joint) / np.sqrt(np.prod(marginal[i]) * np.prod(marginal[j]))
            assert d.dense()[i, j] == pytest.approx(-np.log(abs(det)), abs=1e-6)
            assert d.signs()[i, j] == np.sign(det)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_symmetric_follows_the_corrected_estimate(k: int) -> None:
    rng = np.random.default_rng(k)
    first = rng.integers(0, k, 3000)
    theta = 0.1
    wrong = rng.random(3000) < (k - 1) * theta
    second = np.where(wrong, (first + rng.integers(1, k, 3000)) % k, first)
    d = information_distances(np.c_[first, second], "symmetric")
    estimate = np.mean(first != second) / (k - 1)
    assert d.dense()[0, 1] == pytest.approx(-(k - 1) * np.log(abs(1 - k * estimate)))
    # and it finds the truth, which the uncorrected formula would miss for K > 2
    assert d.dense()[0, 1] == pytest.approx(-(k - 1) * np.log(1 - k * theta), abs=0.2)
    opposite = information_distances(np.c_[first, (first + 1) % k], "symmetric")
    assert opposite.signs()[0, 1] == -1


@given(seeds, kinds)
@quick
def test_every_matrix_is_a_matrix_of_distances(seed: int, kind: str) -> None:
    x, family = dataset(kind, seed)
    d = information_distances(x, family)
    dense = d.dense()
    assert np.isfinite(dense).all()
    assert (dense >= 0).all()
    assert not np.signbit(dense).any()
    assert np.array_equal(dense, dense.T)
    assert not np.diag(dense).any()
    assert set(np.unique(d.signs())) <= {-1, 1}
    assert np.array_equal(d.signs(), d.signs().T)
    assert (np.diag(d.signs()) == 1).all()
    assert not np.diag(d.independent()).any()
    assert not dense.flags.writeable
    assert as_distances(dense).dense() is not dense  # it passes the checks for matrices


# Both ways to hold them -------------------------------------------------------------------------


@given(seeds, kinds)
@quick
def test_on_demand_equals_dense(seed: int, kind: str) -> None:
    x, family = dataset(kind, seed)
    dense, lazy = (information_distances(x, family, dense=which) for which in (True, False))
    assert dense.is_dense
    assert not lazy.is_dense
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(6)[:4], rng.permutation(6)[:3]
    for a, b in [(rows, columns), (ALL, columns), (rows, slice(1, 4)), (slice(2), ALL), ([1], [2])]:
        r = np.exp(-dense.block(a, b))
        assert np.allclose(r, np.exp(-lazy.block(a, b)), rtol=0, atol=1e-12)
        clear = r > 0.01
        assert np.array_equal(dense.sign_block(a, b)[clear], lazy.sign_block(a, b)[clear])
        assert np.allclose(dense.strength_block(a, b), lazy.strength_block(a, b), atol=1e-5)
    assert not lazy.is_dense
    assert_equal(lazy, dense)
    assert lazy.is_dense
    assert lazy.dense() is lazy.dense()


def test_blocks_are_the_callers_own() -> None:
    d = information_distances(factor_data(0))
    block = d.block(ALL, ALL)
    block[:] = 7.0
    d.sign_block([0], [1])[:] = 7
    assert d.dense()[0, 1] != 7.0
    assert d.signs()[0, 1] != 7
    picked = d.block(np.arange(6) < 2, [3])
    assert np.array_equal(picked, d.dense()[:2, 3:4])
    assert d.block([], [1]).shape == (0, 1)


@given(seeds, kinds, st.booleans())
@quick
def test_subsets(seed: int, kind: str, dense: bool) -> None:
    x, family = dataset(kind, seed)
    d = information_distances(x, family, dense=dense)
    order = np.random.default_rng(seed).permutation(6)[:4]
    part = d.subset(order)
    assert part.names == tuple(f"x{j}" for j in order)
    assert part.is_dense == dense
    whole = information_distances(x, family)
    expected = whole.dense()[np.ix_(order, order)]
    block = part.subset([3, 1, 0]).block([2], slice(0, 2))
    assert np.allclose(np.exp(-block), np.exp(-expected[[0], [3, 1]]), atol=1e-12)
    assert part.is_dense == dense
    assert np.allclose(np.exp(-part.dense()), np.exp(-expected), atol=1e-12)
    assert np.array_equal(part.dense(), part.dense().T)
    inner = part.subset([2, 0])
    assert inner.names == (f"x{order[2]}", f"x{order[0]}")
    assert np.allclose(
        np.exp(-inner.dense()), np.exp(-expected[np.ix_([2, 0], [2, 0])]), atol=1e-12
    )
    assert np.array_equal(part.independent(), whole.independent()[np.ix_(order, order)])


@pytest.mark.parametrize("dense", [True, False])
def test_matrices_of_several_tiles(dense: bool) -> None:
    x = factor_data(3, 50, 1_100)
    d, r = information_distances(x, dense=dense), np.corrcoef(x.T)
    whole = d.block(ALL, ALL)
    assert np.allclose(np.exp(-whole), np.maximum(np.abs(r), WEAKEST), atol=1e-12)
    assert np.array_equal(whole, whole.T)
    assert not np.diagonal(whole).any()
    clear = np.abs(r) > 1e-9
    assert np.array_equal(d.sign_block(ALL, ALL)[clear], np.sign(r)[clear])


@given(seeds, kinds, st.booleans())
@quick
def test_pairs_are_cells_of_blocks(seed: int, kind: str, dense: bool) -> None:
    x, family = dataset(kind, seed)
    given_ = information_distances(x, family, dense=dense)
    for d in (given_, given_.subset([3, 1, 5]), Distances.from_matrix(given_.dense())):
        m = d.n_variables
        pairs = np.random.default_rng(seed).integers(0, m, (10, 2))
        cells = pairs[:, 0], pairs[:, 1]
        assert np.allclose(np.exp(-d.of_pairs(pairs)), np.exp(-d.block(ALL, ALL)[cells]))
        clear = d.of_pairs(pairs) < 10
        assert np.array_equal(d.signs_of_pairs(pairs)[clear], d.sign_block(ALL, ALL)[cells][clear])
        assert np.array_equal(d.independent_pairs(pairs), d.independent_block(ALL, ALL)[cells])
        assert (d.block(ALL, ALL) <= d.longest).all()


def test_pairs_of_independent_variables() -> None:
    d = Distances.from_matrix([[0, np.inf, 1], [np.inf, 0, np.inf], [1, np.inf, 0]])
    assert d.independent_pairs(np.array([[0, 1], [0, 2], [1, 1]])).tolist() == [True, False, False]
    assert d.independent_pairs(np.empty((0, 2), np.int64)).size == 0


def test_large_tables_are_left_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    assert information_distances(factor_data(0)).is_dense
    monkeypatch.setenv("LATENTREE_MEMORY", str(4 * 9 * 36 - 1))
    assert not information_distances(factor_data(0)).is_dense
    assert repr(information_distances(factor_data(0))) == (
        "Distances(6 variables, 60 samples, on demand)"
    )


# What must not matter ---------------------------------------------------------------------------


@given(seeds, kinds)
@quick
def test_relabeling_permutes(seed: int, kind: str) -> None:
    x, family = dataset(kind, seed)
    order = np.random.default_rng(seed).permutation(6)
    d, permuted = information_distances(x, family), information_distances(x[:, order], family)
    expected = Distances.from_matrix(
        d.dense()[np.ix_(order, order)], signs=d.signs()[np.ix_(order, order)]
    )
    assert_equal(permuted, expected)


@given(seeds, kinds)
@quick
def test_weight_two_is_the_row_twice(seed: int, kind: str) -> None:
    x, family = dataset(kind, seed)
    w = np.random.default_rng(seed).integers(1, 4, x.shape[0])
    weighted = information_distances(x, family, weights=w)
    repeated = information_distances(x[np.repeat(np.arange(x.shape[0]), w)], family)
    assert_equal(weighted, repeated)
    assert weighted.n_samples == pytest.approx(repeated.n_samples)
    strengths = (d.strength_block(ALL, ALL) for d in (weighted, repeated))
    assert np.allclose(*strengths, atol=1e-5)


def test_names_come_from_the_frame() -> None:
    frame = pd.DataFrame(factor_data(0), columns=list("abcdef"))
    d = information_distances(frame)
    assert d.names == tuple("abcdef")
    assert d.n_variables == 6
    assert_equal(d, information_distances(factor_data(0)), exact=True)
    assert_equal(d, information_distances(as_table(frame)), exact=True)


def test_missing_cells_take_the_complete_pairs() -> None:
    x = factor_data(4)
    x[:10, 0] = np.nan
    x[5:20, 1] = np.nan
    d = information_distances(x)
    both = np.corrcoef(x[20:, 0], x[20:, 1])[0, 1]
    assert d.dense()[0, 1] == pytest.approx(-np.log(abs(both)), abs=1e-9)
    one = np.corrcoef(x[10:, 0], x[10:, 2])[0, 1]
    assert d.dense()[0, 2] == pytest.approx(-np.log(abs(one)), abs=1e-9)
    # pairs: {0,1} 40 rows; 0 with the other four 50; 1 with them 45; six pairs of 60
    assert d.n_samples == pytest.approx((40 + 4 * 50 + 4 * 45 + 6 * 60) / 15)


# Extremes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_duplicates_lie_at_distance_zero(kind: str, n: int) -> None:
    x = factor_data(5, n, 3)
    x = x.round() if kind == "missing" else x
    x = {"two": x > 0, "sparse": x > 0, "three": np.sign(x * (np.abs(x) > 0.4))}.get(kind, x)
    x = np.sign(x * (np.abs(x) > 0.4)) if kind == "symmetric" else x
    if kind == "missing":
        x[::7, 0] = np.nan
    x = np.c_[x, x[:, 0]]
    family = {"gaussian": "gaussian", "missing": "gaussian", "symmetric": "symmetric"}.get(
        kind, "discrete"
    )
    data = sparse.csr_array(x) if kind == "sparse" else x
    for dense in (True, False):
        with pytest.warns(DataWarning, match="x0 = x3"):
            d = information_distances(data, family, dense=dense)
        assert d.block([0], [3])[0, 0] == 0.0
        assert d.sign_block([0], [3])[0, 0] == 1
    assert (d.dense()[0, 1:3] > 0).all()


def test_mirrored_columns_lie_at_distance_zero_with_a_sign() -> None:
    x = factor_data(6)
    d = information_distances(np.c_[x, -3 * x[:, 0] + 1])
    assert d.dense()[0, 6] == 0.0
    assert d.signs()[0, 6] == -1


def test_exact_independence_is_finite_and_marked() -> None:
    x = np.array([[a, b] for a in (-1.5, 1.5) for b in (-1.5, 1.5)] * 5)
    for data, family in [(x, "gaussian"), ((x > 0).astype(int), "discrete"), (x > 0, "symmetric")]:
        for dense in (True, False):
            d = information_distances(data, family, dense=dense)
            assert d.block([0], [1])[0, 0] == pytest.approx(LARGEST)
            assert d.independent_block([0], [1]).all()
            assert d.independent().tolist() == [[False, True], [True, False]]


def test_exact_independence_of_three_states() -> None:
    x = np.array([[a, b] for a in range(3) for b in range(3)] * 5)
    for family in ("discrete", "symmetric"):
        d = information_distances(x, family)
        assert d.dense()[0, 1] == pytest.approx(2 * LARGEST)
        assert d.independent()[0, 1]


def test_singular_but_dependent_tables_stay_finite() -> None:
    first = np.array([0, 1, 2] * 20)
    second = np.where(first == 2, np.tile([0, 0, 1, 0, 0, 2], 10), np.tile([0, 0, 0, 1, 1, 0], 10))
    d = information_distances(np.c_[first, second])
    assert np.isfinite(d.dense()).all()


def test_a_state_that_never_occurs_leaves_its_column_without_information() -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(rng.integers(0, 3, (50, 1)), 3, axis=1)
    x = np.where(rng.random(x.shape) < 0.3, rng.integers(0, 3, x.shape), x)
    x[:, 1] = np.minimum(x[:, 1], 1)
    table = as_table(x, schema=Schema.discrete("abc", 3))
    for dense in (True, False):
        d = information_distances(table, dense=dense)
        assert d.block([1], ALL).tolist() == [[2 * LARGEST, 0.0, 2 * LARGEST]]
        assert d.independent_block([1], ALL).tolist() == [[True, False, True]]
        assert d.block([0], [2])[0, 0] < 4


def test_pairs_without_common_rows_are_marked() -> None:
    x = factor_data(7, 40, 3)
    x[:20, 0] = np.nan
    x[20:, 1] = np.nan
    d = information_distances(x)
    assert d.dense()[0, 1] == pytest.approx(LARGEST)
    assert d.independent()[0, 1]
    assert not d.independent()[0, 2]
    assert np.isfinite(d.dense()).all()


def test_the_mark_is_one_standard_error() -> None:
    """Two of three independent pairs are marked, whatever the family, and no strong pair."""
    rng = np.random.default_rng(0)
    n, m = 400, 60
    codes = rng.integers(0, 3, (n, m))
    cases = [
        (rng.standard_normal((n, m)), "gaussian"),
        (rng.integers(0, 2, (n, m)), "discrete"),
        (codes, "symmetric"),
    ]
    upper = np.triu_indices(m, 1)
    for x, family in cases:
        share = information_distances(x, family).independent()[upper].mean()
        assert share == pytest.approx(0.683, abs=0.04), family
    # K > 2: canonical correlations come in sizes; their mean is what is tested
    share = information_distances(codes, "discrete").independent()[upper].mean()
    assert 0.4 < share < 0.95
    strong = rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, 10))
    assert not information_distances(strong).independent().any()


def test_strength_is_the_z_score_of_a_correlation() -> None:
    x = factor_data(8, 100)
    d = information_distances(x)
    assert np.allclose(d.strength_block(ALL, ALL), 10 * np.abs(np.corrcoef(x.T)))


def test_constant_columns_are_set_aside_and_single_rows_refused() -> None:
    x = factor_data(0)
    x[:, 2] = 1.0
    with pytest.warns(DataWarning, match=r"'x2' \(always 1\)"):
        assert information_distances(x).n_variables == 5
    with pytest.raises(DataError, match=r"1 row\(s\)"):
        information_distances(factor_data(0)[:1])


# Matrices ---------------------------------------------------------------------------------------


def matrix() -> np.ndarray:
    return np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])


def changed(i: int, j: int, value: float, both: bool = True) -> np.ndarray:
    d = matrix()
    d[i, j] = value
    if both:
        d[j, i] = value
    return d


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "not square": (lambda: as_distances(np.zeros((2, 3))), r"square matrix, got shape \(2, 3\)"),
    "one dimension": (lambda: as_distances([0.0, 1.0]), "square matrix"),
    "ragged": (lambda: as_distances([[0.0, 1.0], [1.0]]), "square matrix of numbers"),
    "empty": (lambda: as_distances(np.zeros((0, 0))), "no variables"),
    "words": (lambda: as_distances([["a"]]), "real numbers, got values of type <U1"),
    "complex": (lambda: as_distances(np.zeros((2, 2), complex)), "type complex128"),
    "objects": (lambda: as_distances(None), "type object"),
    "nan": (lambda: as_distances(changed(0, 2, np.nan)), r"entry \(0, 2\) is NaN"),
    "negative": (lambda: as_distances(changed(1, 2, -0.5)), r"entry \(1, 2\) is -0.5.*negative"),
    "diagonal": (lambda: as_distances(changed(1, 1, 0.25)), r"entry \(1, 1\) is 0.25.*diagonal"),
    "asymmetric": (
        lambda: as_distances(changed(0, 1, 1.5, both=False)),
        r"not symmetric: entry \(0, 1\) is 1.5, but \(1, 0\) is 1.0",
    ),
    "infinite on one side": (
        lambda: as_distances(changed(0, 1, np.inf, both=False)),
        r"entry \(0, 1\) is inf, but \(1, 0\) is 1.0",
    ),
    "names, number": (lambda: Distances.from_matrix(matrix(), ["a"]), "1 names were given for 3"),
    "names, twice": (lambda: Distances.from_matrix(matrix(), ["a", "b", "a"]), "twice: 'a'"),
    "signs, shape": (
        lambda: Distances.from_matrix(matrix(), signs=[1]),
        r"signs have shape \(1,\)",
    ),
    "signs, zero": (
        lambda: Distances.from_matrix(matrix(), signs=np.zeros((3, 3))),
        r"sign at \(0, 0\) is 0.0",
    ),
    "signs, asymmetric": (
        lambda: Distances.from_matrix(matrix(), signs=[[1, -1, 1], [1, 1, 1], [1, 1, 1]]),
        "signs must be symmetric",
    ),
    "signs, diagonal": (lambda: Distances.from_matrix([[0.0]], signs=[[-1]]), "on the diagonal"),
    "no samples": (lambda: Distances.from_matrix(matrix(), n_samples=0), "n_samples is 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_matrices_are_refused_with_a_reason(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(DistanceError, match=message):
        make()


def test_good_matrices() -> None:
    d = as_distances(matrix())
    assert as_distances(d) is d
    assert np.array_equal(d.dense(), matrix())
    assert d.names == ("x0", "x1", "x2")
    assert d.n_samples is None
    assert d.family is None
    assert (d.signs() == 1).all()
    assert not d.independent().any()
    assert np.isinf(d.strength_block(ALL, ALL)).all()
    assert repr(d) == "Distances(3 variables, exact, dense)"
    whole = as_distances([[0, 1], [1, 0]])
    assert whole.dense().dtype == np.float64
    assert as_distances([[0.0]]).n_variables == 1
    frame = pd.DataFrame(matrix())
    assert np.array_equal(as_distances(frame).dense(), matrix())


def test_the_callers_matrix_is_copied() -> None:
    given_ = matrix()
    d = as_distances(given_)
    given_[0, 1] = 9.0
    assert d.dense()[0, 1] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        d.dense()[0, 1] = 2.0


def flaw(m: int, i: int, j: int, value: float) -> Any:
    """Return a matrix of several tiles with one wrong entry."""
    x = np.random.default_rng(0).random((m, 2))
    d = np.abs(x[:, None] - x[None]).sum(axis=2)
    d[i, j] = value
    return d


@pytest.mark.parametrize("at", [(0, 299), (299, 0), (130, 127), (127, 130), (200, 140), (255, 256)])
def test_one_wrong_entry_of_a_large_matrix_is_found(at: tuple[int, int]) -> None:
    i, j = at
    for value, reason in ((np.nan, "NaN"), (-1.0, "negative"), (9.0, "not symmetric")):
        with pytest.raises(DistanceError, match=reason) as caught:
            as_distances(flaw(300, i, j, value))
        where = tuple(sorted(at)) if reason == "not symmetric" else at
        assert f"entry {where} is " in str(caught.value)
    with pytest.raises(DistanceError, match=rf"entry \({i}, {i}\) is 0.5: the diagonal"):
        as_distances(flaw(300, i, i, 0.5))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float64])
def test_large_matrices_of_any_type_and_order_are_copied_exactly(dtype: Any) -> None:
    d = flaw(300, 0, 0, 0.0)
    d = (100.0 * d).astype(dtype)
    for given_ in (d, np.asfortranarray(d), np.repeat(np.repeat(d, 2, 0), 2, 1)[::2, ::2]):
        assert np.array_equal(as_distances(given_).dense(), d.astype(np.float64))


def test_rounding_is_evened_out_over_tiles() -> None:
    d = flaw(300, 0, 0, 0.0)
    noisy = d * (1.0 + 1e-12 * np.random.default_rng(1).random(d.shape))
    dense = as_distances(noisy).dense()
    assert np.array_equal(dense, np.minimum(noisy, noisy.T))


def test_rounding_is_no_asymmetry() -> None:
    d = as_distances(changed(0, 1, 1.0 + 1e-12, both=False))
    assert np.array_equal(d.dense(), d.dense().T)


def test_infinite_means_independent() -> None:
    d = as_distances(changed(0, 2, np.inf))
    assert d.dense()[0, 2] == pytest.approx(LARGEST)
    assert d.independent().tolist() == [
        [False, False, True],
        [False, False, False],
        [True, False, False],
    ]
    assert d.strength_block([0], [1, 2]).tolist() == [[np.inf, 0.0]]
    assert d.subset([2, 0]).independent().tolist() == [[False, True], [True, False]]
    long = changed(0, 2, np.inf)
    long[0, 1] = long[1, 0] = 100.0
    assert as_distances(long).dense()[0, 2] == 200.0


def test_signs_and_names_are_kept() -> None:
    signs = [[1, -1, 1], [-1, 1, 1], [1, 1, 1]]
    d = Distances.from_matrix(matrix(), ["a", "b", "c"], signs=signs, n_samples=50)
    assert d.sign_block([0], [1, 2]).tolist() == [[-1, 1]]
    assert d.subset([1, 0]).signs().tolist() == [[1, -1], [-1, 1]]
    assert d.n_samples == 50
    assert d.names == ("a", "b", "c")

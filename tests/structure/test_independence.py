"""Independent variables: the test of their independence, and what every method makes of them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import latentree as lt
from latentree import simulate, structure
from latentree.data import cut_table
from latentree.distances import Distances, as_sample, information_distances
from latentree.distances._pair_tests import _trend_p_values
from latentree.distances._tails import FARTHEST
from latentree.errors import DataWarning
from latentree.methods import METHODS, learn_model
from latentree.structure._independence import LEVEL, significant


def _coded(k):
    return lambda n, m, rng: pd.DataFrame(rng.integers(0, k, (n, m))).rename(columns=str)


def _mixed(n, m, rng):
    frame = pd.DataFrame(rng.normal(size=(n, m))).rename(columns=str)
    for j in range(0, m, 2):
        frame[str(j)] = pd.Categorical([f"s{v}" for v in rng.integers(0, 2 + j % 4, n)])
    return frame


KINDS = {
    "gaussian": lambda n, m, rng: rng.normal(size=(n, m)),
    "log-normal": lambda n, m, rng: np.exp(rng.normal(size=(n, m))),
    "t(3)": lambda n, m, rng: rng.standard_t(3, (n, m)),
    "binary": _coded(2),
    "K = 4": _coded(4),
    "mixed": _mixed,
}


FAMILIES = {"gaussian": "gaussian", "log-normal": "gaussian", "t(3)": "gaussian", "mixed": "mixed"}


# The evidence of pairs --------------------------------------------------------------------------


@given(
    states=st.lists(st.integers(2, 4), min_size=2, max_size=4),
    gaps=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=30, deadline=None)
def test_evidence_of_tables_equals_its_definition(states, gaps, seed):
    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.permutation(np.arange(60) % k) for j, k in enumerate(states)}
    frame = pd.DataFrame(columns).astype(object)
    if gaps:
        frame = frame.mask(rng.random(frame.shape) < 0.1)
    found = information_distances(frame, "discrete").evidence()
    for i in range(len(states)):
        for j in range(i):
            table = pd.crosstab(frame[f"x{i}"], frame[f"x{j}"])
            pearson, _, freedom, _ = stats.chi2_contingency(table, correction=False)
            likelihood = stats.chi2_contingency(table, correction=False, lambda_=0)[0]
            n = table.to_numpy().sum()
            wanted = min(pearson * (n - 1) / n, likelihood)
            assert found.statistic[i, j] == pytest.approx(wanted, abs=1e-9)
            assert found.freedom[i, j] == freedom
    np.testing.assert_allclose(found.statistic, found.statistic.T, atol=1e-9)


@pytest.mark.parametrize("n", [20, 60, 400])
def test_evidence_of_correlations_is_students(n):
    X = np.random.default_rng(0).normal(size=(n, 6))
    X[:, :3] += np.random.default_rng(1).normal(size=(n, 1))
    found = Distances.from_matrix(information_distances(X).dense(), n_samples=n).evidence()
    for i in range(6):
        for j in range(i):
            wanted = stats.pearsonr(X[:, i], X[:, j]).pvalue
            assert found.p_values()[i, j] == pytest.approx(wanted, rel=0.1)


def _naive_evidence(X):
    """Statistic of every pair: of the ranks' normal scores where the columns are far from normal.

    Pitman's skewness and kurtosis of r, for an unweighted table without gaps and ties.
    """
    n, m = X.shape
    z = np.empty((m, m))
    scores = stats.norm.ppf((stats.rankdata(X, axis=0) - 0.5) / n)
    skewness, kurtosis = stats.skew(X), stats.kurtosis(X)
    extreme = np.abs(stats.zscore(X)).max(axis=0)
    skewness = np.maximum(np.abs(skewness), extreme**3 / n)
    kurtosis = np.maximum(np.abs(kurtosis), extreme**4 / n)
    for i in range(m):
        for j in range(m):
            far = skewness[i] * skewness[j] / np.sqrt(n) > FARTHEST
            far |= kurtosis[i] * kurtosis[j] / n > FARTHEST
            own = scores if far else X
            r, nu = np.corrcoef(own[:, i], own[:, j])[0, 1], n - 2
            z[i, j] = -nu * np.log(1 - r**2) * ((8 * nu + 1) / (8 * nu + 3)) ** 2 if i != j else 0
    return z


@given(
    draw=st.sampled_from(["normal", "exponential", "standard_cauchy", "uniform"]),
    n=st.integers(20, 300),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40, deadline=None)
def test_evidence_of_real_columns_equals_its_definition(draw, n, seed):
    rng = np.random.default_rng(seed)
    X = getattr(rng, draw)(size=(n, 5))
    X[:, 3:] = rng.normal(size=(n, 2))  # pairs of either kind
    found = information_distances(X).evidence()
    np.testing.assert_allclose(found.statistic, _naive_evidence(X), rtol=1e-6, atol=1e-9)


def _heavy_table(gaps):
    rng = np.random.default_rng(6)
    X = np.exp(rng.normal(size=(600, 5)))
    X[:, 1] *= X[:, 0]
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("gaps", [False, True])
def test_evidence_of_heavy_tails_is_the_same_however_rows_are_held(gaps, tmp_path):
    X = _heavy_table(gaps)
    wanted = information_distances(X).evidence().statistic
    on_demand = information_distances(X, dense=False)
    np.testing.assert_allclose(on_demand.evidence().statistic, wanted)
    order = np.array([3, 1, 0])
    for whole in (information_distances(X), on_demand):
        part = whole.subset(order).evidence().statistic
        np.testing.assert_allclose(part, wanted[np.ix_(order, order)])
    twice = information_distances(np.vstack([X, X])).evidence().statistic
    weighted = information_distances(X, weights=np.full(600, 2.0)).evidence().statistic
    np.testing.assert_allclose(weighted, twice, rtol=1e-6)
    pd.DataFrame(X, columns=list("abcde")).to_csv(tmp_path / "heavy.csv", index=False)
    read = information_distances(lt.as_parts(tmp_path / "heavy.csv")).evidence().statistic
    np.testing.assert_allclose(read, wanted)


def test_evidence_of_heavy_tails_adds_up_over_parts():
    table = lt.as_table(_heavy_table(False))
    whole = as_sample(cut_table(table)).distances.evidence()
    parts = as_sample(cut_table(table, rows=320)).distances.evidence()
    # The second part is ranked among the rows of the first.
    np.testing.assert_allclose(np.sqrt(parts.statistic), np.sqrt(whole.statistic), atol=0.4)
    assert parts.p_values()[0, 1] < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_is_the_same_on_demand_and_of_a_part(kind):
    table = KINDS[kind](200, 6, np.random.default_rng(1))
    family = FAMILIES.get(kind, "discrete")
    whole = information_distances(table, family).evidence()
    on_demand = information_distances(table, family, dense=False)
    order = np.array([4, 0, 2])
    part = on_demand.subset(order).evidence()
    for name in ("statistic", "freedom", "excess"):
        mine, other, cut = (
            np.broadcast_to(getattr(each, name), (size, size))
            for each, size in ((whole, 6), (on_demand.evidence(), 6), (part, 3))
        )
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other[np.ix_(order, order)], cut)
    found = whole.p_values()
    np.testing.assert_allclose(found, on_demand.evidence().p_values(), rtol=1e-5)
    np.testing.assert_allclose(found[np.ix_(order, order)], part.p_values(), rtol=1e-5)


def _answers(n, m, rng, load=0.0):
    """Ordered answers 1 … 5 with one factor behind them."""
    y = load * rng.normal(size=(n, 1)) + np.sqrt(1 - load**2) * rng.normal(size=(n, m))
    codes = 1 + np.digitize(y + rng.normal(0, 0.4, m), [-1.2, -0.4, 0.3, 1.1])
    return pd.DataFrame({f"q{j}": pd.Categorical(codes[:, j], ordered=True) for j in range(m)})


def _sparse_answers(n, m, rng):
    """Ordered answers that are 0 but in two to five rows."""
    frame = {}
    for j in range(m):
        codes = np.zeros(n, int)
        rows = rng.choice(n, rng.integers(2, 6), replace=False)
        codes[rows] = rng.integers(1, 4, rows.size)
        frame[f"q{j}"] = pd.Categorical(codes, ordered=True)
    return pd.DataFrame(frame)


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("draw", [_answers, _sparse_answers])
def test_trends_have_the_tails_of_permutations(draw, n):
    rng = np.random.default_rng(n)
    x, y = (
        stats.zscore(stats.norm.ppf((stats.rankdata(answers.astype(int)) - 0.5) / n))
        for _, answers in draw(n, 2, rng).items()
    )
    r = np.array([x @ rng.permutation(y) for _ in range(5_000)]) / n
    skewness = np.array([stats.skew(x), stats.skew(y)])
    for limit in np.quantile(np.abs(r), [0.9, 0.99, 0.999]):
        share = (np.abs(r) >= limit - 1e-12).mean()
        p = _trend_p_values(np.array([[1.0, limit], [limit, 1.0]]), float(n), skewness)[0, 1]
        assert 0.25 * share < p < 4.0 * share + 1e-3


@pytest.mark.parametrize("draw", [_answers, _sparse_answers])
def test_ordered_answers_of_noise_are_found_independent(draw):
    found = 0
    for seed in range(45):
        n, m = ((60, 20), (30, 25), (100, 12))[seed % 3]
        distances = as_sample(draw(n, m, np.random.default_rng([seed, 9]))).distances
        found += np.unique(structure.independent_groups(distances)).size < m
    assert found < 5  # twice the level is 0.9; 5 and more have a probability of 0.002


def test_few_rows_of_ordered_answers_are_found_dependent():
    for seed in range(4):
        table = _answers(60, 24, np.random.default_rng(seed), load=0.6)
        assert not structure.independent_groups(as_sample(table).distances).any()


def test_dependence_without_a_trend_is_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    frame = pd.DataFrame({"x": x, "square": x**2 + 0.3 * rng.normal(size=300)})
    frame["other"] = np.where(rng.random(300) < 0.5, "a", "b")
    label = structure.independent_groups(as_sample(frame).distances)
    assert label.tolist() == [0, 0, 1]


def test_pairs_that_stand_out_stay_together():
    labels = np.tile(np.arange(8), 3)
    frame = pd.DataFrame({"a": labels, "b": labels, "parity": np.resize([0, 1], 24)}).astype(str)
    frame.loc[0, "a"] = "7"
    distances = as_sample(frame).distances
    assert distances.evidence().p_values()[0, 1] < 1e-4
    assert distances.independent_pairs(np.array([[0, 1]])).all()  # 49 correlations of 24 rows
    assert not structure.independent_groups(distances).any()
    for method in ("clnj", "refined"):
        assert learn_model(frame, method, random_state=0).model.tree.n_edges > 0


def test_a_column_of_labels_does_not_hide_the_dependence_of_numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(38, 200)) + 1.5 * rng.normal(size=(38, 20))[:, np.arange(200) % 20]
    frame = pd.DataFrame(X).rename(columns="g{}".format)
    frame["kind"] = np.where(rng.random(38) < 0.6, "ALL", "AML")
    label = structure.independent_groups(as_sample(frame).distances)
    assert np.unique(label).size < 60


@given(m=st.integers(2, 12), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_significant_pairs_are_those_of_benjamini_and_hochberg(m, seed):
    rng = np.random.default_rng(seed)
    p = rng.random((m, m)) ** rng.choice([1, 4, 12])
    p = np.triu(p, 1) + np.triu(p, 1).T
    pairs = np.triu_indices(m, 1)
    adjusted = stats.false_discovery_control(p[pairs])
    assert np.array_equal(significant(p)[pairs], adjusted <= LEVEL)


# What learners make of it -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_independent_columns_are_found_independent(kind):
    # Twice the level is 2 in 100; 8 and more of them have a probability below 10⁻³.
    found = 0
    for seed in range(100):
        n, m = ((100, 20), (50, 10), (300, 8))[seed % 3]
        family = FAMILIES.get(kind, "discrete")
        sample = as_sample(KINDS[kind](n, m, np.random.default_rng([seed, 5])), family)
        found += np.unique(structure.independent_groups(sample.distances)).size < m
    assert found < 8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_method_finds_what_is_not_there(kind, method):
    table = KINDS[kind](100, 8, np.random.default_rng(7))
    family = FAMILIES.get(kind, "discrete")
    model, report = learn_model(table, method, family, random_state=0)
    assert model.tree.n_edges == 0
    said = [note for note in report.notes if note.startswith("no dependence was found")]
    assert len(said) == (method != "independent")


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("method", ["chow_liu", "nj", "snj", "rg", "clrg", "lcm", "bin", "refined"])
def test_no_bic_is_below_that_of_independence(method):
    for seed in range(3):  # three columns of ten are dependent, and weakly
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 10))
        X[:, :3] += 1.2 * rng.normal(size=(60, 1))
        alone = learn_model(X, "independent").report.bic_score
        assert learn_model(X, method, random_state=0).report.bic_score >= alone


def test_few_variables_among_many_strangers_are_found():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 40))
    X[:, :6] += rng.normal(size=(300, 1))
    with pytest.warns(DataWarning, match="fall apart"):
        tree = structure.recursive_grouping(information_distances(X))
    assert (tree.degrees[:6] > 0).all()
    assert (tree.degrees[6:40] > 0).sum() <= 2


def test_nothing_is_said_in_so_many_words():
    X = np.random.default_rng(2).normal(size=(80, 5))
    said = r"among the 5 variables.* pair, 'x1' and 'x4', has correlation -0\.23, and p = 0\.043"
    with pytest.warns(DataWarning, match=said):
        assert structure.neighbor_joining(information_distances(X)).n_edges == 0


@pytest.mark.parametrize("n", [1_000, 2_000])
def test_weak_links_keep_a_chain_together(n):
    tree = simulate.hidden_markov(80)
    for seed in range(3):
        X = simulate.random_gaussian_model(tree, seed, (0.2, 0.8)).sample(n, seed)
        assert not structure.independent_groups(information_distances(X)).any()


def test_many_weak_dependences_stand_out_together():
    # One factor behind 60 columns: correlations of 0.06 and 200 rows, less than a standard error.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 60)) + 0.25 * rng.normal(size=(200, 1))
    distances = information_distances(X)
    assert significant(distances.evidence().p_values()).sum() < 60
    assert not structure.independent_groups(distances).any()


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_many_columns_are_tested_by_their_strongest_pairs():
    rng = np.random.default_rng(5)
    X = np.exp(rng.normal(size=(60, 1_100)))
    for dense in (False, True):
        assert (
            np.unique(structure.independent_groups(information_distances(X, dense=dense))).size
            == 1_100
        )
    X[:, 7] = X[:, 300] + 0.1 * X[:, 7]
    assert np.unique(structure.independent_groups(information_distances(X))).size < 1_100


def test_exact_distances_are_not_tested():
    d = np.full((5, 5), 20.0)
    np.fill_diagonal(d, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert structure.neighbor_joining(d).roots.size == 1


def test_what_was_asked_for_by_number_is_given():
    X = np.random.default_rng(4).integers(0, 2, (100, 5))
    model, _ = learn_model(X, "lcm", "discrete", n_states=2, random_state=0)
    assert model.tree.n_hidden == 1

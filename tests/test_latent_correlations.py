"""Polychoric, polyserial and rank correlations: published values, definitions, simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

import latentree as lt
from latentree._kernels.compiling import tiny
from latentree._kernels.distances import latent as kernels
from latentree.distances import (
    estimated_correlations,
    gather,
    latent_correlations,
    polychoric,
    polyserial,
    rank_correlation,
)
from latentree.distances._latent import unbounded


def naive_bivariate_cdf(h, k, rho):
    """P(x ≤ h, y ≤ k) = ∫ φ(x)·Φ((k − ρx)/√(1 − ρ²)) dx up to h."""
    spread = np.sqrt(1.0 - rho**2)
    turn = [k / rho] if rho and -9 < k / rho < h else None
    return integrate.quad(
        lambda x: stats.norm.pdf(x) * stats.norm.cdf((k - rho * x) / spread),
        -10.0, h, points=turn, epsabs=1e-12, limit=200,
    )[0]  # fmt: skip


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-0.98, 0.98))
def test_the_bivariate_distribution_function_is_the_integral(h, k, rho):
    with tiny(True):
        assert kernels.bivariate_cdf(h, k, rho) == pytest.approx(
            naive_bivariate_cdf(h, k, rho), abs=1e-9
        )


@given(st.floats(1e-8, 1 - 1e-8))
def test_the_quantile_inverts_the_normal_distribution(p):
    with tiny(True):
        assert kernels._quantile(p) == pytest.approx(stats.norm.ppf(p), abs=1e-9)


def naive_polychoric(table):
    """Maximize the likelihood of the table over ρ, thresholds from its margins."""
    shares = table / table.sum()
    a, b = (np.append(stats.norm.ppf(np.cumsum(shares.sum(axis=x))[:-1]), 9.0) for x in (1, 0))

    def loss(rho):
        below = [[naive_bivariate_cdf(h, k, rho) for k in b] for h in a]
        cells = np.diff(np.diff(below, axis=0, prepend=0.0), axis=1, prepend=0.0)
        return -(table * np.log(np.maximum(cells, 1e-12))).sum()

    return optimize.minimize_scalar(loss, bounds=(-0.99, 0.99), method="bounded").x


def drawn(rho, n, seed):
    x, noise = np.random.default_rng(seed).standard_normal((2, n))
    return x, rho * x + np.sqrt(1 - rho**2) * noise


@pytest.mark.parametrize("rho", [-0.7, 0.2, 0.9])
def test_polychoric_is_the_two_step_maximum(rho):
    x, y = drawn(rho, 500, 1)
    a, b = np.digitize(x, [-1.0, 0.2, 0.9]), np.digitize(y, [-0.3, 1.1])
    table = np.zeros((4, 3))
    np.add.at(table, (a, b), 1)
    assert polychoric(table).r == pytest.approx(naive_polychoric(table), abs=1e-4)
    assert polychoric(a, b).r == polychoric(table).r


def test_published_values():
    # The table and r of statsample's documentation.
    table = np.array([[52, 58, 8], [18, 15, 7], [5, 11, 3]])
    assert polychoric(table).r == pytest.approx(0.1683, abs=5e-5)
    with tiny(True):
        assert kernels.thresholds_of(table.sum(axis=1) * 1.0) == pytest.approx(
            [0.4307, 1.2408], abs=5e-5
        )
    # Kirk (1973), as in the tests of psych: median splits whose upper quadrant has the share p.
    for p, rho in [(0.25, 0.0), (0.3154950, 0.4), (1 / 3, 0.5), (0.39758450, 0.8)]:
        quadrants = 1e4 * np.array([[p, 0.5 - p], [0.5 - p, p]])
        assert polychoric(quadrants).r == pytest.approx(rho, abs=1e-5)
    # Rare events, as in the documentation of psych, with what Mplus reports.
    assert polychoric([[61661, 1610], [85, 20]]).r == pytest.approx(0.35, abs=5e-3)
    assert polychoric([[44268, 193], [14, 0]]).r == pytest.approx(0.24, abs=1e-2)


def normals_of_r(seed, size):
    """The numbers of R's set.seed and rnorm: a Mersenne Twister, by inversion of 53 bits."""
    word, words = seed, []
    for _ in range(50 + 625):
        word = (69069 * word + 1) % 2**32
        words.append(word)
    bits = np.random.MT19937()
    bits.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(words[-624:], np.uint32), "pos": 624},
    }
    u = bits.random_raw(2 * size).reshape(-1, 2) / 2**32
    return stats.norm.ppf((np.floor(2**27 * u[:, 0]) + u[:, 1]) / 2**27)


def test_the_examples_of_polycor():
    """The data and results of polycor's documentation (Fox), set.seed(12345)."""
    values, vectors = np.linalg.eigh([[1.0, 0.5], [0.5, 1.0]])
    root = vectors * np.sqrt(values) @ vectors.T
    x, y = (normals_of_r(12345, 2_000).reshape(-1, 2) @ root).T
    assert np.corrcoef(x, y)[0, 1] == pytest.approx(0.5263698, abs=5e-8)
    answer, yes = np.digitize(y, [-1, 0.5, 1.5]), np.digitize(x, [0.75])
    both = polychoric(yes, answer)
    assert both.r == pytest.approx(0.5230474, abs=2e-5)
    assert both.error == pytest.approx(0.03819, abs=5e-5)
    # Maximum likelihood with x itself, where ours takes its ranks.
    assert polyserial(x, answer).r == pytest.approx(0.5083, abs=2e-3)


def test_a_median_split_has_sheppards_correlation():
    p = 0.4
    with_half = polychoric(1e4 * np.array([[p, 0.5 - p], [0.5 - p, p]]))
    assert with_half.r == pytest.approx(np.sin(2 * np.pi * (p - 0.25)))


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.85])
def test_standard_errors_are_those_of_many_samples(rho):
    found = {"polychoric": [], "polyserial": [], "rank": []}
    for seed in range(150):
        x, y = drawn(rho, 400, seed)
        a, b = np.digitize(x, [-1.0, 0.2, 0.9]), np.digitize(y, [-0.3, 1.1])
        found["polychoric"].append(polychoric(a, b))
        found["polyserial"].append(polyserial(np.exp(x), b))
        found["rank"].append(rank_correlation(np.exp(x), y**3))
    for name, each in found.items():
        r, error, _ = np.array(each).T
        sure = r.std() / np.sqrt(r.size)
        assert abs(r.mean() - rho) < 4 * sure + 0.004, name  # bias of order 1/n
        assert error.mean() == pytest.approx(r.std(), rel=0.2), name


def test_bounded_scores_tell_the_correlation():
    x = np.linspace(-6.0, 6.0, 1201)
    scores = np.clip(x, -2.0, 2.0)
    for rho in (0.2, 0.6, -0.9):
        joint = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).pdf(
            np.stack(np.meshgrid(x, x), axis=-1)
        )
        r = scores @ joint @ scores / (scores**2 @ joint.sum(axis=0))
        assert unbounded(np.array(r)) == pytest.approx(rho, abs=2e-4)


def test_some_outliers_cost_little():
    x, y = drawn(0.6, 20_000, 0)
    rng = np.random.default_rng(1)
    for column in (x, y):
        column[rng.random(x.size) < 0.01] = 20.0
    assert 0.56 < rank_correlation(x, y).r < 0.6  # 0.54 without a bound


def test_tables_on_the_limit():
    assert polychoric([[5, 0, 0], [0, 4, 0], [0, 0, 9]]) == (1.0, 0.0, 18.0)
    assert polychoric([[0, 5], [4, 0]]).r == -1.0
    assert -0.9 < polychoric([[900, 50], [50, 0]]).r < 0.0  # an empty cell is no proof
    assert polychoric([[3, 4]]).r == 0.0


def of_pairs(values, kinds):
    """Correlations of all pairs by the functions of two columns."""
    m = values.shape[1]
    out = np.eye(m)
    for i in range(m):
        for j in range(m):
            if i != j:
                a, b = values[:, i], values[:, j]
                if kinds[i] == kinds[j] == "ordered":
                    out[i, j] = polychoric(a, b).r
                elif kinds[i] == kinds[j]:
                    out[i, j] = rank_correlation(a, b).r
                else:
                    x, y = (a, b) if kinds[i] == "real" else (b, a)
                    out[i, j] = polyserial(x, y).r
    return out


KINDS = ("real", "ordered", "ordered", "real", "ordered")


def mixed_columns(n, seed):
    model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(5), seed, (0.6, 0.9))
    X = model.sample(n, seed + 1)
    X /= X.std(axis=0)
    cuts = {1: [0.1], 2: [-1, 0, 1], 4: [-0.5, 0.2, 0.5, 1.5]}
    for column, levels in cuts.items():
        X[:, column] = np.digitize(X[:, column], levels)
    return X, dict(zip(["x0", "x1", "x2", "x3", "x4"], KINDS, strict=True))


def test_a_table_has_the_correlations_of_its_pairs():
    X, kinds = mixed_columns(600, 3)
    found = latent_correlations(X, kinds=kinds)
    assert found.correlations == pytest.approx(of_pairs(X, KINDS), abs=2e-3)
    assert found.standard_errors[2, 4] == pytest.approx(polychoric(X[:, 2], X[:, 4]).error)
    assert found.standard_errors[0, 1] == pytest.approx(polyserial(X[:, 0], X[:, 1]).error, rel=0.1)


def test_gaps_weights_and_parts():
    X, kinds = mixed_columns(400, 5)
    table = lt.as_table(X, "copula", kinds=kinds)
    twice = lt.as_table(X, "copula", kinds=kinds, weights=np.full(400, 2.0))
    plain = lt.information_distances(table).dense()
    assert lt.information_distances(twice).dense() == pytest.approx(plain)
    whole = gather(lt.data.cut_table(table)).sums
    halves = [lt.distances.part_statistics(table.rows(*part), lt.distances.plan_of(table))
              for part in ((0, 150), (150, 400))]  # fmt: skip
    r = estimated_correlations(whole).r
    assert estimated_correlations((halves[0] + halves[1]).sums).r == pytest.approx(r)
    some = np.array([3, 0, 2])
    assert estimated_correlations(whole.select(some)).r == pytest.approx(r[np.ix_(some, some)])
    gaps = np.array(X)
    gaps[:100, 1] = np.nan
    gaps[50:150, 4] = np.nan
    found = latent_correlations(gaps, kinds=kinds).correlations
    assert found[1, 4] == pytest.approx(polychoric(gaps[:, 1], gaps[:, 4]).r, abs=1e-6)
    assert found[1, 2] == pytest.approx(polychoric(X[100:, 1], X[100:, 2]).r, abs=1e-6)


def test_distances_add_up_and_give_the_tree_back():
    tree = lt.simulate.double_star(8)
    truth = lt.simulate.random_gaussian_model(tree, 0, (0.7, 0.8))
    X = truth.sample(6_000, 1)
    answers = np.digitize(X / X.std(axis=0), [-1.0, 0.0, 0.8])
    distances = lt.information_distances(answers, "copula")
    wanted = truth.information_distances().dense()[:8, :8]
    assert distances.dense() == pytest.approx(wanted, abs=0.1)
    assert 4_000 < distances.n_effective < 5_400  # four answers tell less than numbers
    assert lt.metrics.same_structure(lt.structure.recursive_grouping(distances), tree)


def test_categories_without_order_depend_as_their_hidden_normal():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(20_000)
    noise = rng.standard_normal((2, 20_000))
    logits = np.outer(z, [2.0, -1.0, 0.0]) + np.array([0.0, 0.5, 0.2])
    labels = np.array(["b", "c", "a"])[(logits + rng.gumbel(size=logits.shape)).argmax(axis=1)]
    real, answer = 0.8 * z + 0.6 * noise[0], np.digitize(0.7 * z + 0.7141 * noise[1], [-1, 0, 1])
    table = {"label": labels, "real": real, "answer": answer}
    r = latent_correlations(table, kinds={"answer": "ordered"}).correlations
    shown = np.sqrt(sum((labels == c).mean() * z[labels == c].mean() ** 2 for c in "abc"))
    assert r[0, 1] == pytest.approx(0.8 * shown, abs=0.02)
    assert r[0, 2] == pytest.approx(0.7 * shown, abs=0.02)
    assert r[1, 2] == pytest.approx(0.56, abs=0.02)


def test_bad_input_is_refused():
    with pytest.raises(lt.errors.DataError, match="same length"):
        polychoric([1, 2, 3], [1, 2])
    with pytest.raises(lt.errors.DataError, match="negative"):
        polychoric([[1, -2], [3, 4]])
    with pytest.raises(lt.errors.DataError, match="fewer than two rows"):
        polyserial([1.0, np.nan], [np.nan, 1.0])

"""Outliers of ranked numbers: the definition, ordinary tails, parts, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import latentree as lt
from latentree.distances import (
    estimated_correlations,
    latent_correlations,
    part_statistics,
    plan_of,
)
from latentree.distances._functions import beyond


def related(n, seed, m=4, r=0.8):
    """Columns that share one normal factor."""
    rng = np.random.default_rng(seed)
    return r * rng.standard_normal((n, 1)) + np.sqrt(1 - r * r) * rng.standard_normal((n, m))


def spoiled(X, seed, share=0.01, size=20.0):
    """Replace a share of the cells by outliers; return which."""
    rng = np.random.default_rng(seed)
    bad = rng.random(X.shape) < share
    return np.where(bad, size * rng.choice([-1, 1], X.shape), X), bad


def limits_of(X, **options):
    functions = plan_of(lt.as_table(X, "copula", **options)).functions
    return functions.limits[functions.is_number]


def is_beyond(X, limits):
    return np.column_stack([beyond(x, *ends) for x, ends in zip(X.T, limits, strict=True)])


def naive_limits(X):
    """Compare the likelihoods of every tail, number by number from outside, column by column."""
    n, m = X.shape
    psi = np.clip(stats.norm.ppf((stats.rankdata(X, axis=0) - 0.5) / n), -2, 2)
    psi = (psi - psi.mean(axis=0)) / psi.std(axis=0)
    tails = {}
    for j in range(m):
        others = np.delete(psi, j, axis=1)
        r = np.corrcoef(others.T)
        slopes = np.linalg.solve(r + 1e-3 * np.eye(m - 1), others.T @ psi[:, j] / n)
        y = others @ slopes
        y /= y.std()
        R = np.corrcoef(y, psi[:, j])[0, 1]
        low, high = np.quantile(X[:, j], [0.25, 0.75])
        for side, fence in ((-1, low - 3 * (high - low)), (1, high + 3 * (high - low))):
            outer = [x for x in np.unique(X[:, j])[::-side] if side * (x - fence) >= 0]
            ratio, ratios = 1.0, []
            for x in outer:
                for i in np.flatnonzero(X[:, j] == x):
                    near = stats.norm.pdf(y[i], R * psi[i, j], np.sqrt(1 - R * R))
                    apart = stats.norm.pdf(y[i])
                    ratio *= apart / (0.8 * near + 0.2 * apart)
                ratios.append(ratio)
            if outer:
                tails[j, int(side > 0)] = np.mean(ratios), outer[int(np.argmax(ratios))]
    return chosen_limits(tails, m)


def chosen_limits(tails, m):
    """Cut off the tails with the highest posterior probabilities, in the mean 0.95."""
    odds = np.array([ratio for ratio, _ in tails.values()])

    def loss(share):
        return -np.log1p(-share) - np.log1p(share * (odds - 1)).sum()

    share = optimize.minimize_scalar(loss, bounds=(0, 1), method="bounded").x
    probability = dict(zip(tails, share * odds / (share * odds + 1 - share), strict=True))
    found, chosen = np.tile([-np.inf, np.inf], (m, 1)), []
    for tail in sorted(tails, key=probability.get, reverse=True):
        chosen.append(probability[tail])
        if np.mean(chosen) < 0.95:
            break
        found[tail] = tails[tail][1]
    return found


def test_limits_are_those_of_the_most_probable_outliers():
    counts = []
    for seed in range(8):
        # Outliers of many sizes, ordinary tails, and both in one column.
        X, _ = spoiled(related(500, seed), seed, 0.015, np.linspace(8, 20, 4))
        X[:, 1] = np.sign(X[:, 1]) * np.abs(X[:, 1]) ** 3
        X[::97, 2] *= 7
        found = limits_of(X)
        counts.append(np.isfinite(found).sum())
        assert found == pytest.approx(naive_limits(X))
    assert min(counts) < 4 < max(counts)


def test_outliers_are_found_and_nothing_else():
    X, bad = spoiled(related(5_000, 0), 1)
    assert np.array_equal(is_beyond(X, limits_of(X)), bad)
    clean = latent_correlations(np.where(bad, np.nan, X))
    found = latent_correlations(X)
    assert found.correlations == pytest.approx(clean.correlations)
    assert found.standard_errors == pytest.approx(clean.standard_errors)


def test_where_most_columns_have_outliers_weak_ones_need_little_evidence():
    X = np.hstack([related(5_000, 7, m=8), related(5_000, 8, m=2, r=0.3)])
    dirty, bad = spoiled(X, 9)
    assert np.array_equal(is_beyond(dirty, limits_of(dirty)), bad)
    alone, _ = spoiled(X[:, 8:], 9)
    assert not np.isfinite(limits_of(alone)).any()


def test_heavy_tails_that_columns_share_are_no_outliers():
    for seed in range(20):
        rows = np.random.default_rng(seed).chisquare(3, (2_000, 1))
        X = related(2_000, seed) / np.sqrt(rows)  # a multivariate t distribution
        assert not np.isfinite(limits_of(X)).any()
        assert not np.isfinite(limits_of(np.exp(4 * related(2_000, seed)))).any()


def test_unrelated_columns_tell_of_no_outliers():
    for seed in range(20):
        X = np.random.default_rng(seed).standard_cauchy((1_000, 5))
        assert not np.isfinite(limits_of(X)).any()


def test_answers_and_gaps_help_to_find_outliers():
    X, bad = spoiled(related(5_000, 3), 4)
    X[:, 0] = np.digitize(X[:, 0], [-1, 0, 1])
    X[:, 1] = np.digitize(X[:, 1], [0.3])
    X[::11, 2] = np.nan
    kinds = dict(zip(["x0", "x1", "x2", "x3"], ["ordered"] * 2 + ["real"] * 2, strict=True))
    found = is_beyond(X[:, 2:], limits_of(X, kinds=kinds))
    assert np.array_equal(found, bad[:, 2:] & ~np.isnan(X[:, 2:]))


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_order_and_units_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, _ = spoiled(related(400, seed), seed, 0.02)
    rows, columns = rng.permutation(400), rng.permutation(4)
    scale, shift = 2.0 ** rng.integers(-8, 8, 4), rng.integers(-50, 50, 4)
    found = limits_of(X)
    moved = limits_of((X * scale + shift)[rows][:, columns])
    assert moved == pytest.approx((found * scale[:, None] + shift[:, None])[columns])


def test_parts_weights_and_columns_agree_with_the_whole():
    X, _ = spoiled(related(3_000, 5), 6)
    table = lt.as_table(X, "copula")
    plan = plan_of(table)
    assert np.isfinite(plan.functions.limits).sum() >= 6
    whole = part_statistics(table, plan)
    halves = [part_statistics(table.rows(*rows), plan) for rows in ((0, 900), (900, 3_000))]
    both = (halves[0] + halves[1]).sums
    expected = estimated_correlations(whole.sums).r
    assert estimated_correlations(both).r == pytest.approx(expected)
    assert both.pair_weights() == pytest.approx(whole.sums.pair_weights())
    some = np.array([2, 0])
    assert np.array_equal(plan.functions.select(some).limits, plan.functions.limits[some])
    twice = lt.as_table(np.repeat(X, 2, axis=0), "copula")
    weighted = lt.as_table(X, "copula", weights=np.full(3_000, 2.0))
    assert lt.information_distances(weighted).dense() == pytest.approx(
        lt.information_distances(twice).dense(), abs=1e-3
    )


def test_a_tree_with_outliers_is_the_tree_without():
    tree = lt.simulate.double_star(12)
    X = lt.simulate.random_gaussian_model(tree, 0, (0.4, 0.8)).sample(3_000, 1)
    dirty, _ = spoiled(X / X.std(axis=0), 2)
    ranked = lt.LatentTree("nj", hidden="ranks", random_state=0).fit(dirty)
    assert lt.metrics.robinson_foulds(ranked.tree_, tree) == 0

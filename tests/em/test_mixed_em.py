"""EM for mixed columns: it rises, ends where others end, and does not depend on the parts."""

from __future__ import annotations

import time
import warnings
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats
from sklearn.mixture import GaussianMixture

import latentree as lt
from latentree._kernels.compiling import repeated
from latentree._kernels.inference import emissions as kernels
from latentree._kernels.inference.exponential import exp, log
from latentree.data import Schema, Table, cut_table
from latentree.distances import Sample, as_sample
from latentree.em import (
    Binning,
    Budget,
    StateProblem,
    as_leaves,
    held_out_fits,
    make_problem,
    run_rivals,
    start_points,
)
from latentree.em._held_out import Candidate, HeldOutFit
from latentree.em._starts import binned_starts, split_states
from latentree.inference import Expectation, compile_patterns
from latentree.inference._expectation import robust_counts
from latentree.search import fit_mixed


def mixed_rows(seed: int, n: int = 600) -> Table:
    """Six columns of all kinds that depend on one of three classes; some cells are missing."""
    rng = np.random.default_rng(seed)
    h = rng.integers(0, 3, n)
    values = np.column_stack([
        np.round(rng.normal(3.0 * h, 1.0), 1),
        np.round(rng.normal(-1.0 * h, 0.5), 2),
        rng.poisson(1.0 + 3.0 * h).astype(float),
        (rng.random(n) < 0.2 + 0.3 * h).astype(float),
        np.clip(rng.poisson(1.5 * h), 0, 4).astype(float),
        rng.normal(size=n),
    ])  # fmt: skip
    values[rng.random(values.shape) < 0.1] = np.nan
    labels = ((), (), (), ("no", "yes"), tuple(range(5)), ())
    kinds = ("real", "real", "count", "category", "ordered", "real")
    return Table(values, Schema(tuple("abcdef"), "mixed", labels, kinds))


def star(m: int) -> lt.Tree:
    return lt.Tree([m] * m + [-1], n_observed=m, names=tuple("abcdefghijkl"[:m]))


@settings(max_examples=6)
@given(seed=st.integers(0, 1000), states=st.integers(1, 4), prior=st.sampled_from([0.0, 2.0]))
def test_em_never_goes_down(seed, states, prior):
    sample = as_sample(mixed_rows(seed))
    problem = make_problem(star(6), sample, states, prior)
    assert isinstance(problem, StateProblem)
    point = start_points(problem, sample, None, 1, np.random.default_rng(seed))[0]
    objectives = []
    for _ in range(25):
        step = problem.step(point)
        objectives.append(step.objective)
        point = step.next_point
    assert np.diff(objectives).min() >= -1e-7 * abs(objectives[-1])


def naive_logs(emission, values):
    """Log-probability of values for every state (columns): of cells, and of counts."""
    if isinstance(emission, lt.CountEmission):
        size = np.minimum(emission.size, 1e9)
        return stats.nbinom.logpmf(values[:, None], size, size / (size + emission.mean))
    half, x = 0.5 * emission.resolution, values[:, None]
    upper, lower = ((x + s * half - emission.mean) / emission.sd for s in (1, -1))
    # On the side where both are small: no difference of two numbers near 1.
    low, high = np.where(lower > 0, -upper, lower), np.where(lower > 0, -lower, upper)
    return stats.norm.logcdf(high) + np.log1p(
        -np.exp(stats.norm.logcdf(low) - stats.norm.logcdf(high))
    )


@pytest.mark.parametrize(("seed", "states"), [(0, 1), (1, 2), (2, 3), (3, 4)])
def test_a_step_follows_its_definition(seed, states):
    table = mixed_rows(seed, 120)
    problem = make_problem(star(6), as_sample(table), states, 2.0)
    point = start_points(problem, problem.sample, None, 1, np.random.default_rng(seed))[0]
    model, step = problem.model(point), problem.step(point)
    joint = np.log(model.parameters[6]) + np.zeros((120, 1))
    for j, own in enumerate(model.parameters[:6]):
        seen = ~np.isnan(table.values[:, j])
        x = table.values[seen, j]
        if j in (3, 4):
            joint[seen] += np.log(own[:, x.astype(int)]).T
        else:
            joint[seen] += naive_logs(own, x)
    rows = special.logsumexp(joint, axis=1)
    # Cells narrower than 0.04 standard deviations are taken at their middle.
    assert step.log_likelihood == pytest.approx(rows.sum(), rel=1e-6)
    weights, following = np.exp(joint - rows[:, None]), problem.model(step.next_point)
    a = 2.0 / states  # the prior's weight of a state
    for j in (0, 1, 5):
        x = table.values[:, j]
        w, x, m, s = weights[~np.isnan(x)], x[~np.isnan(x)], np.nanmean(x), np.nanstd(x)
        own, new = model.parameters[j], following.parameters[j]
        inside = x[:, None, None] + own.resolution * (np.arange(200) / 200 - 0.4975)
        z = (inside - own.mean[:, None]) / own.sd[:, None]
        share = special.softmax(-0.5 * z**2, axis=2)
        first = (share * inside).sum(2)
        spread = (share * (inside - first[:, :, None]) ** 2).sum(2)
        mean = ((w * first).sum(0) + a * m) / (w.sum(0) + a)
        square = (w * (spread + (first - mean) ** 2)).sum(0) + a * ((mean - m) ** 2 + s**2)
        np.testing.assert_allclose(new.mean, mean, atol=1e-5 * s)
        np.testing.assert_allclose(new.sd, np.sqrt(square / (w.sum(0) + a)), rtol=1e-4)
    x = table.values[:, 2]
    w, x = weights[~np.isnan(x)], x[~np.isnan(x)]
    mean = (w.T @ x + a * x.mean()) / (w.sum(0) + a)
    np.testing.assert_allclose(following.parameters[2].mean, mean, rtol=1e-5)


def test_cells_far_from_the_mean_have_their_likelihood():
    emission = lt.GaussianEmission([0.0, 0.0, 5.0], [0.2, 1.0, 30.0], 1.0)
    values = np.array([0.0, 1.0, -3.0, 12.0, np.nan, 40.0])
    found = emission.log_likelihood(values)
    assert (found[:, 4] == 0.0).all()
    there = [0, 1, 2, 3, 5]
    # Quadrature by nine nodes: of a cell five standard deviations wide, sixty of them away, the
    # logarithm is exact to a thousandth.
    np.testing.assert_allclose(found[:, there].T, naive_logs(emission, values[there]), rtol=2e-3)


@pytest.mark.parametrize("compiled", [False, True])
def test_values_before_rounding_have_the_moments_of_their_cells(compiled):
    mean, sd, step = np.array([0.0, 2.0, -1.0]), np.array([0.6, 3.0, 20.0]), 1.0
    values = np.array([-3.0, 0.0, np.nan, 1.0, 4.0])
    logs, shift, spread = np.empty((3, 3, 5))
    function = kernels.normal_logs.compiled if compiled else kernels.normal_logs
    function(values, mean, sd, step, logs, shift, spread)
    seen = [0, 1, 3, 4]
    within = step * ((np.arange(4_000) + 0.5) / 4_000 - 0.5)
    z = (values[seen, None] + within - mean[:, None, None]) / sd[:, None, None]
    share = special.softmax(-0.5 * z**2, axis=2)
    np.testing.assert_allclose(shift[:, seen], share @ within, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(spread[:, seen], share @ within**2, rtol=1e-6)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), top=st.sampled_from([3, 40, 5_000]))
def test_sizes_of_counts_end_at_the_highest_likelihood(seed, top):
    rng = np.random.default_rng(seed)
    values = np.unique(rng.integers(0, top, 12)).astype(float)
    weights, extra, a = rng.gamma(0.7, 5.0, (2, values.size)), values.mean() + 0.3, 0.5
    low, high = np.log(1e-2), np.log(1e6)
    point = np.zeros((2, 2))
    for _ in range(60):
        point = kernels.fitted_counts(values, weights, extra, a, point[1], low, high)
    mean, u = np.exp(point[0]), point[1]
    for k in range(2):
        x, w = np.append(values, extra), np.append(weights[k], a)
        mu = w @ x / w.sum()
        assert mean[k] == pytest.approx(mu)

        def lost(u, x=x, w=w, mu=mu):
            r = np.exp(u)
            terms = special.gammaln(x + r) - special.gammaln(r) - r * np.log1p(mu / r)
            return -(w @ (terms - x * np.log(r + mu)))

        best = optimize.minimize_scalar(lost, bounds=(low, high), method="bounded")
        assert lost(u[k]) <= best.fun + 1e-6 * abs(best.fun)


def test_the_exponential_is_exact_to_rounding():
    x = np.concatenate([np.linspace(-699.0, 699.0, 1_001), [0.0, -1e-300]])
    np.testing.assert_allclose([exp(each) for each in x], np.exp(x), rtol=5e-14)
    assert exp(-1e6) < 1e-300


@pytest.mark.parametrize("compiled", [False, True])
def test_the_logarithm_is_exact_to_rounding(compiled):
    x = np.exp(np.concatenate([np.linspace(-700.0, 700.0, 501), np.linspace(-0.4, 0.4, 301)]))
    x = np.append(x, [2.0**-1022, 0.5, 1.0, 2.0])
    function = log.compiled if compiled else log
    np.testing.assert_allclose([function(each) for each in x], np.log(x), rtol=1e-15, atol=1e-17)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("top", [3, 50, 100_000])
def test_counts_have_their_likelihood(top, compiled):
    """Sums of logarithms for small counts, the gamma function for large ones and fractions."""
    rng = np.random.default_rng(top)
    emission = lt.CountEmission([0.2, 7.0, 0.4 * top, 3.0], [0.05, 2.0, 900.0, np.inf])
    whole = np.unique(rng.integers(0, top, 30)).astype(float)
    for values in (np.append(whole, np.nan), whole[:1], np.array([0.37 * top])):
        found = np.empty((4, values.size))
        function = kernels.count_logs.compiled if compiled else kernels.count_logs
        function(values, emission.mean, emission.size, found)
        x, mu, r = values[:, None], emission.mean[:3], emission.size[:3]
        naive = special.gammaln(x + r) - special.gammaln(r) - special.gammaln(x + 1)
        naive += x * np.log(mu / (r + mu)) - r * np.log1p(mu / r)
        poisson = values * np.log(3.0) - 3.0 - special.gammaln(values + 1)
        expected = np.where(np.isnan(values), 0.0, np.vstack([naive.T, poisson]))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_states", [2, 3, 5, 8, 14])
@pytest.mark.parametrize("steepness", [1.0, 30.0, 120.0])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_rows_of_small_likelihood_are_counted_as_by_logarithms(n_states, steepness, gaps):
    """Products of twelve likelihoods fall far below 2^-256 in some rows, or in all."""
    rng = np.random.default_rng(n_states)
    tree = lt.simulate.double_star(12)
    values = rng.integers(0, 40, (1_200, 12)) / 2.0
    values[rng.random(values.shape) < gaps] = np.nan
    states = np.array([0] * 12 + [n_states] * 2)
    with repeated():
        patterns = compile_patterns(tree, states, lt.as_table(values))
        logs = steepness * rng.normal(size=patterns.emissions.n_likelihoods)
        theta = patterns.layout.normalized(rng.random(patterns.layout.size))
        fast, slow = logs.copy(), logs.copy()
        found = Expectation(patterns).run(theta, fast)
        expected = robust_counts(patterns, theta, slow)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-8)


def test_the_report_has_the_likelihood_of_the_model():
    table = mixed_rows(1)
    model, report = lt.fit_parameters(star(6), table, n_states=3, random_state=0)
    assert report.converged
    assert report.log_likelihood == pytest.approx(model.total_log_likelihood(table), rel=1e-9)
    assert report.n_parameters == 2 + 3 * (2 + 2 + 1 + 1 + 4 + 2) + 3 * int(
        np.isfinite(model.parameters[2].size).any()
    )


def test_real_columns_end_where_a_gaussian_mixture_ends():
    rng = np.random.default_rng(0)
    h = rng.integers(0, 2, 800)
    X = np.column_stack([rng.normal(4.0 * h, 1.0), rng.normal(-3.0 * h, 0.7), rng.normal(h, 1.0)])
    labels, kinds = ((),) * 3, ("real",) * 3
    table = Table(X, Schema(("a", "b", "c"), "mixed", labels, kinds))
    budget = Budget(tolerance=1e-11)
    model, _ = lt.fit_parameters(star(3), table, n_states=2, random_state=0, budget=budget)
    peer = GaussianMixture(2, covariance_type="diag", random_state=0, tol=1e-9, reg_covar=0.0,
                           max_iter=1000).fit(X)  # fmt: skip
    # The probability of a cell is its density times its width.
    steps = sum(np.log(model.parameters[j].resolution) for j in range(3))
    found = model.total_log_likelihood(table) / len(X) - steps
    assert found == pytest.approx(peer.score(X), abs=1e-5)
    means = np.array([np.sort(model.parameters[j].mean) for j in range(3)])
    np.testing.assert_allclose(means, np.sort(peer.means_.T, axis=1), atol=1e-2)


def test_a_value_that_occurs_often_does_not_win_by_a_spike():
    rng = np.random.default_rng(1)
    x = np.where(rng.random(500) < 0.4, 0.0, np.round(rng.gamma(2.0, 10.0, 500)))
    table = Table(np.column_stack([x, rng.permutation(x), rng.permutation(x)]),
                  Schema(("a", "b", "c"), "mixed", ((),) * 3, ("real",) * 3))  # fmt: skip
    model, _ = lt.fit_parameters(star(3), table, n_states=4, random_state=0)
    assert (model.log_likelihood(table) <= 0).all()
    assert all(model.parameters[j].sd.min() >= 1.0 / 6.0 - 1e-12 for j in range(3))


def test_parts_give_the_model_of_the_whole():
    table = mixed_rows(2)
    whole, parts = as_sample(table), Sample(cut_table(table, rows=250))
    assert parts.parts.n_parts == 3
    problems = [make_problem(star(6), sample, 3, 1.0) for sample in (whole, parts)]
    point = start_points(problems[0], whole, None, 1, np.random.default_rng(0))[0]
    model = problems[0].model(point)
    # Resolutions are taken part by part, so that they may differ in rare cases; here they do not.
    for first, second in zip(problems[0].leaves[:2], problems[1].leaves[:2], strict=True):
        assert first.unit.resolution == second.unit.resolution
    problems[1].leaves, problems[1].units = problems[0].leaves, problems[0].units
    a, b = problems[0].step(point), problems[1].step(problems[1].point(model))
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-10)
    first, second = (
        problem.model(step.next_point).log_likelihood(table)
        for problem, step in zip(problems, (a, b), strict=True)
    )
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_weights_count_rows():
    table = mixed_rows(3, 200)
    weights = np.random.default_rng(0).integers(0, 4, 200)
    doubled = table.take(np.repeat(np.arange(200), weights))
    weighted = Table(table.values, table.schema, weights.astype(float))
    samples = [as_sample(doubled), as_sample(weighted)]
    problems = [make_problem(star(6), sample, 2, 1.0) for sample in samples]
    point = start_points(problems[0], samples[0], None, 1, np.random.default_rng(0))[0]
    model = problems[0].model(point)
    found = [problem.step(problem.point(model)).log_likelihood for problem in problems]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_numbers_become_leaves():
    chain = lt.Tree([-1, 0, 1, 2, 3], names=tuple("abcde"))
    emits = np.array([True, False, True, True, True])
    tree = as_leaves(chain, emits)
    assert tree.n_hidden == 2
    assert (tree.degrees[:5][emits] == 1).all()
    assert not emits[tree.roots[tree.roots < 5]].any()
    pair = as_leaves(lt.Tree([-1, 0]), np.array([True, True]))
    assert pair.parent.tolist() == [2, 2, -1]  # a hidden variable ties them
    same = as_leaves(chain, np.zeros(5, bool))
    assert same is chain


def test_bins_hold_about_as_many_rows_and_keep_equal_values_together():
    table = mixed_rows(4)
    binned = Binning.of(table, 4).table(table)
    assert binned.family == "discrete"
    assert (binned.values < 0).sum() == np.isnan(table.values).sum()
    counts = np.bincount(binned.values[binned.values[:, 5] >= 0, 5])
    assert counts.size == 4
    assert counts.min() > 0.8 * counts.max()
    for column in (0, 2):
        pairs = {tuple(p) for p in zip(table.values[:, column], binned.values[:, column],
                                       strict=True) if p[0] == p[0]}  # fmt: skip
        assert len(pairs) == len({p[0] for p in pairs})


@pytest.mark.parametrize("method", ["clrg", "nj", "lcm", "refined", "reg_clnj", "bin"])
def test_methods_learn_mixed_models(method):
    model, report = lt.methods.learn_model(mixed_rows(5, 400), method, random_state=0)
    assert isinstance(model, lt.MixedTreeModel)
    assert np.isfinite(report.log_likelihood)
    again, _ = lt.methods.learn_model(mixed_rows(5, 400), method, random_state=0)
    assert (again.theta == model.theta).all()
    assert again.tree == model.tree


def test_the_number_of_states_is_found():
    table = mixed_rows(6, 2000)
    model, report = lt.methods.learn_model(table, "lcm", random_state=0)
    assert model.n_states[-1] == 3
    assert "3 states per hidden variable, chosen by bic" in report.notes[0]


def test_hidden_variables_have_their_own_numbers_of_states():
    rng = np.random.default_rng(0)
    many, few = rng.integers(0, 6, 1500), rng.integers(0, 2, 1500)
    columns = [8.0 * many + rng.normal(size=1500) for _ in range(3)]
    columns += [6.0 * few + rng.normal(size=1500) for _ in range(3)]
    X = np.round(np.column_stack(columns), 1)
    model, report = lt.methods.learn_model(X, "nj", "mixed", random_state=0)
    assert sorted(model.n_states[6:])[-2:] != [2, 2]
    assert model.n_states[6:].max() >= 6
    assert model.n_states[6:].min() == 2
    assert "2 to" in report.notes[0]


def test_a_number_beside_a_category_may_have_more_distributions_than_it_has_labels():
    rng = np.random.default_rng(1)
    group, other = rng.integers(0, 2, (2, 1200))
    spike = rng.random(1200) < 0.5
    x = np.where(spike, 0.0, np.round(40.0 + 10.0 * group + rng.normal(0.0, 3.0, 1200)))
    y = np.where(rng.random(1200) < 0.9, group, other)
    labels, kinds = ((), ("a", "b"), ("c", "d")), ("real", "category", "category")
    table = Table(np.column_stack([x, group, y]), Schema(("x", "g", "y"), "mixed", labels, kinds))
    chain = lt.Tree([1, -1, 1], names=("x", "g", "y"))
    model, _ = fit_mixed(chain, as_sample(table), random_state=0)
    assert model.tree.n_hidden == 1
    assert model.n_states[3] >= 3
    plain, _ = fit_mixed(chain, as_sample(table), n_states=2, random_state=0)
    assert plain.tree.n_hidden == 0
    assert model.total_log_likelihood(table) > plain.total_log_likelihood(table) + 500


def split(model, n_states, sample, rng, noise=1.0):
    """Return a model with so many states of its hidden variable."""
    states = np.append(model.n_states[:-1], n_states)
    before, target = (StateProblem(model.tree, n, sample) for n in (model.n_states, states))
    return target.model(split_states(before, before.point(model), target, rng, noise))


def test_split_states_without_noise_are_the_same_model():
    table = mixed_rows(8, 200)
    model, _ = lt.fit_parameters(star(6), table, n_states=2, random_state=0)
    more = split(model, 4, as_sample(table), np.random.default_rng(0), noise=0.0)
    assert more.n_states[6] == 4
    np.testing.assert_allclose(more.log_likelihood(table), model.log_likelihood(table), rtol=1e-9)


def test_a_number_alone_keeps_its_distribution_where_states_grow():
    table = mixed_rows(8, 200)
    kinds = table.schema.kinds
    alone = kinds.index("real")
    parent = [6] * 6 + [-1]
    parent[alone] = -1
    forest = lt.Tree(parent, n_observed=6, names=table.names)
    model, _ = lt.fit_parameters(forest, table, n_states=2, random_state=0)
    more = split(model, 4, as_sample(table), np.random.default_rng(0), noise=0.0)
    np.testing.assert_allclose(more.log_likelihood(table), model.log_likelihood(table), rtol=1e-9)
    assert fit_mixed(forest, as_sample(table), random_state=0).model.emissions[alone].mean.size == 1


def test_gaps_far_smaller_than_the_range_give_no_warning():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    x[:2] = 0.0, 1e-310
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        learned = lt.LatentTree("clnj", "mixed").fit({"x": x, "y": (x > 0).astype(str), "z": 2 * x})
        assert np.isfinite(learned.score({"x": x, "y": (x > 0).astype(str), "z": 2 * x}))


def test_chow_liu_needs_states_everywhere():
    with pytest.raises(lt.errors.ModelError, match="columns of numbers"):
        lt.methods.learn_model(mixed_rows(7, 100), "chow_liu")


# Held-out rows ----------------------------------------------------------------------------------


def overfitted(seed: int) -> tuple[lt.models.MixedTreeModel, Sample, Table]:
    """A start with too many states for sixty rows, these rows, and others."""
    rows = mixed_rows(seed, 260)
    few, others = rows.take(np.arange(60)), rows.take(np.arange(60, 260))
    sample = Sample(cut_table(few))
    rng = np.random.default_rng(seed)
    two = lt.fit_parameters(star(6), sample, n_states=2, prior_weight=1.0, random_state=0).model
    return split(split(two, 4, sample, rng), 8, sample, rng), sample, others


@settings(max_examples=5)
@given(seed=st.integers(0, 1_000))
def test_em_stops_where_held_out_rows_do(seed):
    start, sample, others = overfitted(seed)
    fit = HeldOutFit(
        start.tree, sample, sample, others, n_states=8, n_groups=3, prior_weight=0.1,
        budget=Budget(), rng=np.random.default_rng(seed),
    )  # fmt: skip
    stage = fit.stage(np.array([8]))
    found = fit.run(Candidate(stage, stage.problem.point(start), np.ones(3)))
    model = stage.model(found.point)
    for group, score in zip(fit.groups_of_rows, found.scores, strict=True):
        assert 200 * score == pytest.approx(model.log_likelihood(group).sum(), rel=1e-9)
    to_the_end = lt.fit_parameters(start.tree, sample, start=start, prior_weight=0.1).model
    assert found.score > to_the_end.log_likelihood(others).mean()


@given(seed=st.integers(0, 1_000), strength=st.floats(0.01, 100.0))
def test_sums_of_scaled_rows_and_a_stronger_prior(seed, strength):
    """A prior that is k times as strong is the prior of k times the weight."""
    sample = as_sample(mixed_rows(seed, 40))
    n_states = np.append(sample.cardinalities, 3)
    problem, other = (StateProblem(star(6), n_states, sample, w) for w in (1.0, strength))
    point = binned_starts(problem, 1, np.random.default_rng(seed))[0]
    size = problem.layout.size
    sums = problem.counts.run(point[:size], problem.emissions(point), problem.units)
    following = other.step(point).next_point
    leaves = problem.maximized(sums, problem.emissions(point), strength)
    np.testing.assert_allclose(problem.placed(following[:size], leaves), following, rtol=1e-9)
    twice, both = sums.scaled(2.0), sums + sums
    assert twice.log_likelihood == pytest.approx(both.log_likelihood)
    for leaf, first, second in zip(problem.leaves, twice.leaves, both.leaves, strict=True):
        if leaf.kind is lt.CountEmission:
            np.testing.assert_allclose(first.weights, second.weights)
        else:
            np.testing.assert_allclose(first, second)


@pytest.mark.parametrize("stop", ["interrupt", "time"])
@pytest.mark.parametrize(
    ("criterion", "last"),
    [("bic", 1), ("bic", 20), ("bic", 40), ("cv", 1), ("cv", 20), ("cv", 300)],
)
def test_the_best_so_far_is_kept(criterion, stop, last, monkeypatch):
    """Whatever step an interrupt or the end of the time comes in, there is a model."""
    maximized, n_steps, late = StateProblem.maximized, 0, count(10**12)

    def counted(problem, *arguments):
        nonlocal n_steps
        n_steps += 1
        if n_steps == last and stop == "interrupt":
            raise KeyboardInterrupt
        if n_steps == last:
            monkeypatch.setattr(time, "monotonic", lambda: float(next(late)))
        return maximized(problem, *arguments)

    monkeypatch.setattr(StateProblem, "maximized", counted)
    model, report = fit_mixed(
        star(6), as_sample(mixed_rows(1, 120)), criterion=criterion, random_state=0,
        budget=Budget(time_limit=1e6),
    )  # fmt: skip
    assert np.isfinite(model.log_likelihood(mixed_rows(2, 50))).all()
    assert not report.converged
    assert report.notes[0].startswith({"interrupt": "inter", "time": "the time limit"}[stop])
    assert n_steps < last + 30  # what was begun is brought to an end, no more


def test_an_interrupt_between_fits_keeps_the_best_so_far(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("latentree._kernels.search.stars.expect", interrupted)
    model, report = fit_mixed(star(6), as_sample(mixed_rows(1, 120)), random_state=0)
    assert np.isfinite(model.log_likelihood(mixed_rows(2, 50))).all()
    assert report.notes[0].startswith("inter")


def test_progress_shows_held_out_rows_gain():
    seen = []
    sample = as_sample(mixed_rows(1, 120))
    _, report = fit_mixed(
        star(6), sample, criterion="cv", random_state=0, validation_fraction=0.3,
        progress=lambda steps, score: seen.append(score),
    )  # fmt: skip
    assert tuple(seen) == report.held_out_log_likelihoods
    assert max(seen) > seen[0]


def test_given_states_are_kept_while_held_out_rows_decide_on_the_rest():
    rows = mixed_rows(1, 120)
    model, report = fit_mixed(star(6), as_sample(rows), n_states=4, criterion="cv", random_state=0)
    assert model.n_states[6:].tolist() == [4]
    assert report.method == "em by held-out rows"
    direct, _ = lt.fit_parameters(star(6), rows, method="held_out", n_states=4, random_state=0)
    assert direct.n_states[6:].tolist() == [4]


def test_states_and_smoothing_by_held_out_rows_predict():
    rows, new = mixed_rows(1, 120), mixed_rows(2, 2_000)
    sample = as_sample(rows)
    chosen, report = fit_mixed(star(6), sample, criterion="cv", random_state=0)
    assert "held-out log-likelihood a row" in report.notes[0]
    assert report.n_samples == 120
    for states in (2, 8):
        plain, _ = fit_mixed(star(6), sample, n_states=states, random_state=0)
        assert chosen.log_likelihood(new).mean() > plain.log_likelihood(new).mean()


def test_rows_of_a_mixed_table_may_be_given_to_decide():
    rows, valid = mixed_rows(3, 150), mixed_rows(4, 50)
    fitted = lt.LatentTree("clrg", n_states="auto", random_state=0).fit(rows, X_valid=valid)
    assert fitted.report_.n_samples == 200
    assert "held-out log-likelihood a row" in fitted.report_.notes[0]
    share = lt.LatentTree("clrg", criterion="cv", random_state=0)
    assert share.fit(rows).report_.n_samples == 150


def test_a_held_out_fit_from_a_mixed_model_is_no_worse_than_it():
    rows = mixed_rows(1, 120)
    start, _ = lt.fit_parameters(star(6), rows, n_states=3, prior_weight=1.0, random_state=0)
    fits = held_out_fits(
        star(6), as_sample(rows), start=start, fraction=0.3, rng=np.random.default_rng(0)
    )
    fits[0].begin()
    before = fits[0].best.score
    assert np.isfinite(before)
    model, _ = run_rivals([fits])
    assert fits[0].decided.score >= before
    assert model.n_states[6] >= 3


def test_a_searched_tree_of_mixed_columns_by_held_out_rows():
    rows = mixed_rows(1, 150)
    fitted = lt.methods.learn_model(rows, "refined", criterion="cv", random_state=0)
    assert any("cross-validation chose" in note for note in fitted.report.notes)
    assert fitted.report.held_out_log_likelihoods


@pytest.mark.parametrize(
    "options",
    [{"hidden": "states"}, {"hidden": "gaussian"}, {"hidden": "ranks"}],
)
def test_samples_stay_on_the_grid_of_the_data(options, tmp_path):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(80)
    size = np.rint(4.0 * (z + rng.standard_normal(80))) + 0.5
    answers = [np.digitize(z + rng.standard_normal(80), [-0.7, 0.0, 0.7]) for _ in range(2)]
    learner = lt.LatentTree(method="nj", random_state=0, **options, kinds={"size": "real"})
    learner.fit({"size": size, "mood": answers[0], "sleep": answers[1]})
    learner.model_.save(tmp_path / "model.json")
    for model in (learner.model_, lt.load(tmp_path / "model.json")):
        drawn = model.sample(200, 0)[:, 0].astype(float)
        assert np.unique(drawn % 1.0).tolist() == [0.5]
        assert drawn.min() < -2.0 < 2.0 < drawn.max()

"""EM on the grid: it never falls, finds parameters again, and takes gaps, weights, any margin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize

import latentree as lt
from latentree.distances import as_copula, as_sample
from latentree.em import Budget, Driver
from latentree.em._coordinates import fitted_correlation, fitted_logit, fitted_probit
from latentree.em._copula import CopulaProblem
from latentree.inference import Odds, RankMargin, Thresholds
from latentree.models import POINTS, CopulaTreeModel

RNG = np.random.default_rng(0)


def answers(seed=0, n=1_500, m=6):
    tree = lt.simulate.double_star(m)
    rho = np.random.default_rng(seed).uniform(0.6, 0.9, tree.n_nodes)
    truth = CopulaTreeModel(tree, rho, [Thresholds([-0.8, 0.1, 1.0])] * m)
    return truth, as_sample(lt.as_table(truth.sample(n, seed + 1), schema=truth.schema))


def test_no_step_lowers_the_likelihood():
    truth, sample = answers()
    problem = CopulaProblem(truth.tree, sample)
    start = problem.from_distances(np.ones(truth.tree.n_nodes))
    run = Driver(problem, Budget(max_steps=25, accelerate=False)).maximize([start]).best
    assert (np.diff(run.trace) >= -1e-6 * abs(run.trace[0])).all()
    assert run.trace[-1] > sample.rows.tables.total(lambda t: truth.total_log_likelihood(t))


@pytest.mark.parametrize("marginals", ["normal", "ranks"])
@pytest.mark.parametrize("seed", range(4))
def test_no_step_lowers_the_likelihood_of_few_rows(seed, marginals):
    # Twelve rows carry slopes and correlations to their limits.
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((12, 1))
    noisy = 2.0 * z + 0.5 * rng.standard_normal((12, 8))
    columns = {
        "a": np.digitize(noisy[:, 0], [-1.0, 0.0, 1.0]),
        "b": np.array(["x", "y", "z"])[np.digitize(noisy[:, 1], [-0.7, 0.7])],
        "c": noisy[:, 2].round(2),
        "d": rng.poisson(np.exp(0.5 * noisy[:, 3])),
        "e": np.digitize(noisy[:, 4], [0.0, 1.0]),
        "f": noisy[:, 5].round(1),
        "g": np.digitize(rng.standard_normal(12), [-0.5, 0.5]),  # a pair of its own
        "h": np.digitize(noisy[:, 7], [-1.0, 1.0]),
    }
    kinds = ["ordered", "category", "real", "count", "ordered", "real", "ordered", "ordered"]
    tree = lt.Tree([8, 8, 8, 9, 9, 9, -1, 6, -1, 8], n_observed=8, names=list(columns))
    table = lt.as_table(columns, kinds=dict(zip(columns, kinds, strict=True)))
    problem = CopulaProblem(tree, as_copula(as_sample(table)), marginals)
    point, trace = problem.from_distances(np.ones(tree.n_nodes)), []
    for _ in range(20):
        step = problem.step(point)
        trace.append(step.log_likelihood)
        point = step.next_point
    assert np.diff(trace).min() > -1e-8


def test_the_maximum_is_flat():
    truth, sample = answers(n=600)
    model, report = lt.fit_parameters(truth.tree, sample)
    assert report.converged
    problem = CopulaProblem(truth.tree, sample)
    point = problem.point(model)
    best = problem.step(point).log_likelihood
    assert best == pytest.approx(report.log_likelihood)
    for coordinate in range(0, point.size, 3):
        for side in (-0.05, 0.05):
            moved = point.copy()
            moved[coordinate] += side
            assert problem.step(problem.admissible(moved, point)).log_likelihood < best


def test_parameters_are_found_again():
    truth, sample = answers(seed=3, n=6_000)
    model, _ = lt.fit_parameters(truth.tree, sample)
    assert np.abs(model.correlations) == pytest.approx(np.abs(truth.correlations), abs=0.05)
    for own, wanted in zip(model.margins, truth.margins, strict=True):
        assert own.thresholds == pytest.approx(wanted.thresholds, abs=0.06)


def test_gaps_weights_and_parts_count_as_they_should():
    truth, sample = answers(n=400)
    table = sample.parts.to_table()
    twice = lt.data.Table(table.values, table.schema, np.full(400, 2.0))
    both = lt.data.Table(np.concatenate([table.values] * 2), table.schema)
    fits = [lt.fit_parameters(truth.tree, each).report for each in (twice, both)]
    assert fits[0].log_likelihood == pytest.approx(fits[1].log_likelihood)
    gaps = np.array(table.values)
    gaps[RNG.random(gaps.shape) < 0.2] = np.nan
    model, report = lt.fit_parameters(truth.tree, lt.data.Table(gaps, table.schema))
    assert report.converged
    assert model.total_log_likelihood(lt.data.Table(gaps, table.schema)) == pytest.approx(
        report.log_likelihood
    )


def test_a_pair_and_a_column_alone_need_no_hidden_variable():
    truth = CopulaTreeModel(lt.Tree([-1, 0, -1]), [0, 0.7, 0], [Thresholds([0.0, 1.0])] * 3)
    X = lt.as_table(truth.sample(3_000, 0), schema=truth.schema)
    model, report = lt.fit_parameters(truth.tree, X)
    assert model.correlations[1] == pytest.approx(0.7, abs=0.05)
    assert model.correlations[1] == pytest.approx(
        lt.distances.polychoric(X.values[:, 0], X.values[:, 1]).r, abs=1e-3
    )
    assert model.margins[2].thresholds == pytest.approx([0.0, 1.0], abs=0.1)
    assert report.n_parameters == 7


def test_columns_of_all_kinds():
    margins = [
        Thresholds([-0.5, 0.5]),
        Thresholds([0.2]),
        Odds([0.0, 0.4, -0.3], [0.0, 2.0, -1.0]),
        RankMargin([0.5, 1.5, 3.5], [-0.3, 0.5, 1.3], ((0.0, 0.0), (1.0, 0.1)), 1.0, "count"),
    ]
    tree = lt.Tree([5] * 5 + [-1], n_observed=5, names=list("abcde"))
    number = lt.inference.NormalMargin(50.0, 10.0, 1.0)
    truth = CopulaTreeModel(tree, [0.8, 0.7, 0, 0.75, -0.6, 0], [*margins, number])
    rows = lt.as_table(truth.sample(5_000, 1), schema=truth.schema)
    for marginals in ("normal", "ranks"):
        model, report = lt.fit_parameters(tree, rows, marginals=marginals)
        assert report.converged
        sign = np.sign(model.correlations[0])
        rho = sign * model.correlations
        assert rho[[0, 1, 3, 4]] == pytest.approx([0.8, 0.7, 0.75, -0.6], abs=0.06)
        odds = model.margins[2]
        assert sign * (odds.slopes - odds.slopes[0]) == pytest.approx([0.0, 2.0, -1.0], abs=0.45)
        held_out = lt.as_table(truth.sample(2_000, 2), schema=truth.schema)
        lost = (truth.log_likelihood(held_out) - model.log_likelihood(held_out)).mean()
        assert lost < 0.03


@pytest.mark.parametrize("method", ["nj", "auto"])
def test_the_order_of_the_columns_does_not_matter(method):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(150)
    noisy = z[:, None] + 0.7 * rng.standard_normal((150, 3))
    columns = {
        "label": np.array(["a", "b", "c"])[np.digitize(noisy[:, 0], [-0.5, 0.5])],
        "mood": np.digitize(noisy[:, 1], [-0.8, 0.0, 0.8]),
        "size": (10.0 + 3.0 * noisy[:, 2]).round(1),
    }
    kinds = dict(zip(columns, ["category", "ordered", "real"], strict=True))
    found = []
    for order in itertools.permutations(columns):
        learner = lt.LatentTree(method=method, hidden="gaussian", kinds=kinds, random_state=0)
        learner.fit({name: columns[name] for name in order})
        loadings = learner.model_.loadings()
        loading = dict(zip(loadings["variable"], loadings["loading"], strict=True))
        drawn = learner.sample(1_000, random_state=0)
        label, size = (drawn[:, learner.tree_.names.index(name)] for name in ("label", "size"))
        size, is_high = size.astype(float), label == "c"
        gap = size[is_high].mean() - size[~is_high].mean()
        report = learner.report_
        found.append(
            [report.log_likelihood, report.n_parameters, *(loading[name] for name in columns)]
        )
        assert gap > 2.0  # of 4 in the data; 0 if draws ignore the labels
    assert np.array(found) == pytest.approx(np.tile(found[0], (len(found), 1)), abs=1e-4)
    assert min(found[0][2:]) > 0.5


# The steps, against their definitions ------------------------------------------------------------


def test_the_correlation_of_moments_is_the_most_likely_one():
    for seed in range(5):
        x, noise = np.random.default_rng(seed).standard_normal((2, 50))
        y = 0.7 * x + 0.5 * noise

        def loss(rho, x=x, y=y):
            rest = 1 - rho**2
            return 25 * np.log(rest) + 0.5 * (x @ x - 2 * rho * (x @ y) + rho**2 * (y @ y)) / rest

        best = optimize.minimize_scalar(loss, bounds=(-0.98, 0.98), method="bounded").x
        assert fitted_correlation(50, x @ x, x @ y, y @ y) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("fit", [fitted_probit, fitted_logit])
def test_regressions_on_the_grid_reach_their_maximum(fit):
    counts = RNG.gamma(1.0, 5.0, (POINTS.size, 4))
    counts += 20.0 * np.exp(-((POINTS[:, None] - np.array([-2, -0.5, 0.7, 2])) ** 2))
    start = np.array([-1.0, 0.0, 1.0, 0.5]) if fit is fitted_probit else np.zeros(6)

    def loss(own):
        if fit is fitted_probit:
            table = Thresholds(np.sort(own[:3]) / np.sqrt(1 + own[3] ** 2)).table(
                POINTS, own[3] / np.sqrt(1 + own[3] ** 2)
            )
        else:
            table = Odds(np.append(0, own[:3]), np.append(0, own[3:])).table(POINTS)
        return -(counts * np.log(np.maximum(table, 1e-12))).sum()

    own = start
    for _ in range(10):
        following = fit(counts, POINTS, own)
        assert loss(following) <= loss(own) + 1e-9
        own = following
    best = optimize.minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000})
    assert loss(own) <= best.fun + 1e-3


def test_numbers_with_densities_are_fitted_as_gaussian_scores():
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.7, 0.8))
    X = np.exp(truth.sample(3_000, 1))
    table = lt.as_table(X, "copula")
    model, report = lt.fit_parameters(truth.tree, table, marginals="ranks")
    plain, _ = lt.fit_parameters(truth.tree, lt.as_table(np.log(X)))
    assert model.correlations == pytest.approx(plain.correlations, abs=0.02)
    assert report.log_likelihood == pytest.approx(model.total_log_likelihood(table))
    held_out = np.exp(truth.sample(1_000, 2))
    gain = (
        model.log_likelihood(held_out).mean()
        - (plain.log_likelihood(np.log(held_out)) - np.log(held_out).sum(axis=1)).mean()
    )
    assert gain > -0.2  # the price of six unknown scales
    raw, _ = lt.fit_parameters(truth.tree, lt.as_table(X))
    assert model.log_likelihood(held_out).mean() > raw.log_likelihood(held_out).mean() + 1.0


# From the estimator and the command line ---------------------------------------------------------


@pytest.fixture(scope="module")
def questionnaire():
    _, sample = answers(seed=5, n=800)
    return 1 + sample.parts.to_table().values


def test_ordered_columns_have_gaussian_variables_behind_them(questionnaire):
    learned = lt.LatentTree(hidden="gaussian", random_state=0, output="hidden+errors")
    learned.fit(questionnaire)
    assert isinstance(learned.model_, CopulaTreeModel)
    found = learned.transform(questionnaire)
    names = learned.get_feature_names_out()
    assert found.shape == (800, 2 * learned.n_hidden_) == (800, names.size)
    assert names[-1].endswith(" error")
    assert (found[:, learned.n_hidden_ :] > 0).all()
    assert set(np.unique(learned.sample(200, 0))) <= {1.0, 2.0, 3.0, 4.0}
    assert learned.column_proba(questionnaire, "x0").shape == (800, 4)
    assert set(learned.predict_column(questionnaire, "x0")) <= {1, 2, 3, 4}
    assert learned.bic(questionnaire) < lt.LatentTree("independent", hidden="gaussian").fit(
        questionnaire
    ).bic(questionnaire)


def test_hidden_says_what_is_behind(questionnaire):
    for hidden in (None, "states"):
        states = lt.LatentTree(hidden=hidden, n_states=2, random_state=0).fit(questionnaire)
        assert isinstance(states.model_, lt.MixedTreeModel)
    yes = (questionnaire > 2).astype(int)
    assert isinstance(lt.LatentTree(random_state=0).fit(yes).model_, lt.DiscreteTreeModel)
    behind = lt.LatentTree(hidden="gaussian", random_state=0).fit(yes)
    assert isinstance(behind.model_, CopulaTreeModel)
    real = np.random.default_rng(0).standard_normal((200, 3)) @ RNG.standard_normal((3, 6))
    for hidden in (None, "gaussian"):
        model = lt.LatentTree(hidden=hidden).fit(real).model_
        assert isinstance(model, lt.GaussianTreeModel)
    ranks = lt.LatentTree(hidden="ranks").fit(np.exp(real))
    assert isinstance(ranks.model_, CopulaTreeModel)
    assert (ranks.sample(100, 0) > 0).all()


@pytest.mark.parametrize("method", ["nj", "lcm", "reg_clrg", "refined", "bin", "independent"])
def test_methods_learn_what_is_behind(questionnaire, method):
    learned = lt.LatentTree(method, hidden="gaussian", random_state=0).fit(questionnaire)
    assert isinstance(learned.model_, CopulaTreeModel)
    assert np.isfinite(learned.score(questionnaire))


def test_support_is_that_of_latent_correlations(questionnaire):
    learned = lt.LatentTree(hidden="gaussian", n_bootstrap=3, random_state=0).fit(questionnaire)
    assert learned.support_.n_replicates == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": "both"}, "states"),
        ({"family": "copula"}, 'hidden="gaussian", or hidden="ranks"'),
        ({"hidden": "gaussian", "n_states": 3}, "states"),
        ({"hidden": "gaussian", "method": "chow_liu"}, "chow_liu"),
        ({"hidden": "gaussian", "method": "hclt"}, "hclt"),
        ({"hidden": "states", "output": "hidden+errors", "n_states": 2}, "states"),
    ],
)
def test_what_does_not_go_together_is_refused(questionnaire, options, message):
    with pytest.raises(lt.errors.ModelError, match=message):
        lt.LatentTree(**options).fit(questionnaire).transform(questionnaire)


def test_scores_have_the_signs_of_the_loadings(questionnaire):
    turned = np.array(questionnaire)
    turned[:, ::2] = 5 - turned[:, ::2]
    learned = lt.LatentTree(hidden="gaussian", random_state=0).fit(turned)
    scores, loadings = learned.transform(turned), learned.model_.loadings()
    for column, (factor, loading) in enumerate(
        zip(loadings["factor"], loadings["loading"], strict=True)
    ):
        place = learned.tree_.names.index(factor) - learned.tree_.n_observed
        seen = np.corrcoef(scores[:, place], turned[:, column])[0, 1]
        assert np.sign(seen) == np.sign(loading)

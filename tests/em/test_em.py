"""EM against definitions: monotone, stationary, equal to counts where those are known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree import simulate
from latentree.data import Table
from latentree.distances import as_sample
from latentree.em import Budget, fit_parameters, make_problem
from latentree.em._driver import Driver
from latentree.em._starts import edge_signs
from latentree.errors import DataError, ModelError
from latentree.models import DiscreteTreeModel, GaussianTreeModel

seeds = st.integers(0, 2**32 - 1)
FAMILIES = ["gaussian", "discrete", "symmetric"]


def draw(family, tree, rng, n, missing=0.0):
    """Rows of a random model, weighted, with cells missing at random."""
    if family == "gaussian":
        model = simulate.random_gaussian_model(tree, rng, negative_share=0.4)
        values = model.sample(n, rng)
        values[rng.random(values.shape) < missing] = np.nan
    else:
        make = {
            "discrete": simulate.random_discrete_model,
            "symmetric": simulate.random_symmetric_model,
        }[family]
        model = make(tree, 3, rng)
        values = np.array(model.sample(n, rng))
        values[:3] = np.arange(3)[:, None]  # every label occurs
        values[rng.random(values.shape) < missing] = -1
    weights = rng.integers(1, 4, n).astype(float)
    return model, Table(values, model.schema, weights)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("accelerate", [True, False])
@given(seed=seeds, missing=st.sampled_from([0.0, 0.2]))
@settings(max_examples=12, deadline=None)
def test_em_never_goes_down(family, accelerate, seed, missing):
    rng = np.random.default_rng(seed)
    tree = simulate.random_latent_tree(6, rng)
    _, table = draw(family, tree, rng, 60, missing)
    _, report = fit_parameters(
        tree, table, family, n_starts=2, random_state=seed,
        budget=Budget(accelerate=accelerate, max_steps=60),
    )  # fmt: skip
    gains = np.diff(report.log_likelihoods)
    assert gains.min(initial=0.0) >= -1e-7 * abs(report.log_likelihood)
    assert report.log_likelihood >= max(report.log_likelihoods) - 1e-6


def test_the_guard_rejects_a_jump_that_goes_down():
    """A problem whose jumps always fail: every accepted point is still no lower."""

    class Stubborn:
        def step(self, point):
            from latentree.em._driver import Step

            value = -float(((point - 1.0) ** 2).sum())
            return Step(value, value, point + 0.05 * (1.0 - point))

        def admissible(self, point, near):
            return np.full_like(near, 50.0)  # a very bad place

    outcome = Driver(Stubborn(), Budget(max_steps=40)).maximize([np.zeros(3)])
    assert np.diff(outcome.best.trace).min() >= 0
    assert np.abs(outcome.best.point - 1.0).max() < 1.0


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_discrete_fixed_point_is_stationary(missing):
    rng = np.random.default_rng(0)
    tree = simulate.random_latent_tree(5, rng)
    _, table = draw("discrete", tree, rng, 200, missing)
    exact = Budget(tolerance=1e-14, point_tolerance=1e-11, max_steps=20_000)
    model, _ = fit_parameters(tree, table, n_states=2, budget=exact, random_state=0)
    theta, layout = model.theta, model.layout

    def value(logits):
        moved = DiscreteTreeModel.from_theta(
            tree, model.n_states, np.exp(logits), model.schema.labels
        )
        return moved.total_log_likelihood(table)

    point, step = np.log(np.maximum(theta, 1e-12)), 1e-4
    for entry in rng.choice(layout.size, 25, replace=False):
        if theta[entry] > 1e-4:  # elsewhere the tables end at their border
            shift = np.zeros(layout.size)
            shift[entry] = step
            slope = (value(point + shift) - value(point - shift)) / (2 * step)
            assert abs(slope) < 2e-2


def test_gaussian_fixed_point_is_stationary():
    rng = np.random.default_rng(1)
    tree = simulate.random_latent_tree(6, rng)
    _, table = draw("gaussian", tree, rng, 300, 0.1)
    exact = Budget(tolerance=1e-15, point_tolerance=1e-10, max_steps=20_000)
    model, _ = fit_parameters(tree, table, budget=exact, random_state=0)

    def value(rho, means, scales):
        return GaussianTreeModel(tree, rho, means, scales).total_log_likelihood(table)

    parameters = [model.correlations, model.means, model.scales]
    for which, vector in enumerate(parameters):
        for entry in range(vector.size):
            if which == 0 and tree.parent[entry] < 0:
                continue
            ends = []
            for sign in (1, -1):
                moved = [np.array(part) for part in parameters]
                moved[which][entry] += sign * 1e-5
                ends.append(value(*moved))
            assert abs(ends[0] - ends[1]) / 2e-5 < 0.05


def test_everything_observed_equals_counts():
    rng = np.random.default_rng(3)
    tree = lt.Tree([-1, 0, 0, 1], names=list("abcd"))
    _, table = draw("discrete", tree, rng, 500)
    model, report = fit_parameters(tree, table)
    assert report.method == "closed form"
    assert report.n_steps <= 9
    codes, weights = table.values, table.weights
    for node in range(1, 4):
        counts = np.zeros((3, 3))
        np.add.at(counts, (codes[:, tree.parent[node]], codes[:, node]), weights)
        np.testing.assert_allclose(
            model.tables[node], counts / counts.sum(axis=1, keepdims=True), atol=1e-6
        )
    _, table = draw("gaussian", tree, rng, 500)
    model, _ = fit_parameters(tree, table)
    covariance = np.cov(table.values.T, aweights=table.weights)
    rho = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    for node in range(1, 4):
        assert model.correlations[node] == pytest.approx(rho[node, tree.parent[node]])


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_of_two_equal_duplicated_rows(family):
    rng = np.random.default_rng(4)
    tree = simulate.random_latent_tree(6, rng)
    _, table = draw(family, tree, rng, 100, 0.1)
    options = {"family": family, "n_starts": 1, "random_state": 0}
    twice = Table(np.vstack([table.values, table.values]), table.schema)
    doubled = Table(table.values, table.schema, np.full(100, 2.0))
    _, ra = fit_parameters(tree, twice, **options)
    _, rb = fit_parameters(tree, doubled, **options)
    assert ra.log_likelihood == pytest.approx(rb.log_likelihood, rel=1e-8)
    assert ra.n_samples == rb.n_samples == 200
    assert ra.bic_score == pytest.approx(rb.bic_score, rel=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_are_recovered_within_statistical_error(family):
    rng = np.random.default_rng(6)
    tree = simulate.caterpillar(9, leaves=3)
    make = {
        "gaussian": lambda: simulate.random_gaussian_model(tree, rng, strength=(0.6, 0.8)),
        "discrete": lambda: simulate.random_discrete_model(tree, 2, rng, strength=(0.6, 0.8)),
        "symmetric": lambda: simulate.random_symmetric_model(tree, 3, rng, strength=(0.6, 0.8)),
    }[family]
    truth = make()
    X = truth.sample(60_000, rng)
    model, report = fit_parameters(tree, X, family, random_state=0)
    assert report.converged
    per_row = lt.metrics.kl_divergence(truth, model)
    # twice the log-likelihood ratio is χ² with κ degrees of freedom: its mean is κ
    assert 2 * 60_000 * float(per_row) < 3 * (truth.n_parameters + 2 * tree.n_observed)
    if family == "gaussian":
        np.testing.assert_allclose(
            np.abs(model.correlations), np.abs(truth.correlations), atol=0.03
        )


def test_missing_at_random_gives_consistent_estimates():
    """Whether x1 is seen depends on x0: plain averages of what is seen are biased, EM is not."""
    rng = np.random.default_rng(7)
    tree = simulate.latent_class(4)
    truth = GaussianTreeModel(tree, [0.9, 0.9, 0.8, 0.8, 0.0], means=[0, 1, 0, 0])
    X = truth.sample(40_000, rng)
    X[X[:, 0] > 0, 1] = np.nan
    model, _ = fit_parameters(tree, X, random_state=0)
    assert np.nanmean(X[:, 1]) < 0.6
    assert model.means[1] == pytest.approx(1.0, abs=0.03)
    assert model.scales[1] == pytest.approx(1.0, abs=0.03)


def test_latent_class_likelihood_equals_the_mixture_formula():
    rng = np.random.default_rng(8)
    tree = simulate.latent_class(7)
    X = (rng.random((400, 7)) < 0.3).astype(int)
    model, report = fit_parameters(tree, X, n_states=5, random_state=1)
    center = model.rerooted(7)
    log_p = np.log(np.stack(center.tables[:-1]))  # variable, class, value
    per_class = sum(log_p[j][:, X[:, j]].T for j in range(7)) + np.log(center.tables[-1])
    expected = scipy.special.logsumexp(per_class, axis=1).sum()
    assert report.log_likelihood == pytest.approx(expected, rel=1e-9)
    assert report.n_parameters == 4 + 5 * 7


@pytest.mark.filterwarnings("ignore")
def test_latent_class_likelihood_equals_stepmix():
    stepmix = pytest.importorskip("stepmix.stepmix")
    rng = np.random.default_rng(8)
    X = (rng.random((400, 7)) < 0.3).astype(int)
    rival = stepmix.StepMix(
        n_components=3, measurement="binary", random_state=0, verbose=0, progress_bar=0
    ).fit(X)
    parameters = rival.get_parameters()
    ones = parameters["measurement"]["pis"]  # P(value = 1 | class), classes × variables
    tables = [np.column_stack([1.0 - p, p]) for p in ones.T]
    model = DiscreteTreeModel(simulate.latent_class(7), [*tables, parameters["weights"]])
    assert model.total_log_likelihood(X) == pytest.approx(400 * rival.score(X), rel=1e-9)


def test_gaussian_likelihood_equals_dense_evaluation():
    rng = np.random.default_rng(9)
    tree = simulate.random_latent_tree(12, rng)
    X = simulate.random_gaussian_model(tree, rng).sample(300, rng)
    model, report = fit_parameters(tree, X, random_state=0)
    covariance, centered = model.covariance(), X - model.means
    dense = -0.5 * (
        300 * (12 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1])
        + np.einsum("ri,ij,rj->", centered, np.linalg.inv(covariance), centered)
    )
    assert report.log_likelihood == pytest.approx(dense, rel=1e-9)


# Signs ------------------------------------------------------------------------------------------


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_signs_of_exact_distances_are_restored(seed):
    rng = np.random.default_rng(seed)
    tree = simulate.random_latent_tree(9, rng)
    truth = simulate.random_gaussian_model(tree, rng, negative_share=0.5)
    rho = truth.correlation()
    distances = lt.Distances.from_matrix(
        np.abs(-np.log(np.abs(rho))) * (1 - np.eye(9)), signs=np.sign(rho)
    )
    model = GaussianTreeModel.from_distances(truth.distance_tree(), edge_signs(tree, distances))
    np.testing.assert_allclose(model.correlation(), rho, atol=1e-12)


def test_fits_from_distances_on_demand(monkeypatch):
    rng = np.random.default_rng(0)
    truth = simulate.random_gaussian_model(simulate.hidden_markov(12), rng, (0.6, 0.8), 0.5)
    X = truth.sample(2_000, rng)
    expected, _ = lt.fit_parameters(truth.distance_tree(), X, n_starts=1)
    monkeypatch.setenv("LATENTREE_MEMORY", "5 kB")
    model, _ = lt.fit_parameters(truth.distance_tree(), X, n_starts=1)
    np.testing.assert_allclose(model.correlation(), expected.correlation(), atol=1e-3)


def test_signs_are_those_of_the_nearest_pairs():
    rho = np.array([[1, -0.9, 0.1], [-0.9, 1, 0.8], [0.1, 0.8, 1]])  # no tree has these signs
    distances = lt.Distances.from_matrix(-np.log(np.abs(rho)), signs=np.sign(rho))
    assert edge_signs(lt.Tree([1, -1, 1], [0.1, 0.0, 0.2]), distances).tolist() == [-1, 1, 1]


def test_parameters_from_distances_keep_negative_correlations():
    rng = np.random.default_rng(2)
    tree = simulate.hidden_markov(6)
    truth = simulate.random_gaussian_model(tree, rng, strength=(0.7, 0.9), negative_share=0.5)
    X = truth.sample(20_000, rng)
    model, report = fit_parameters(truth.distance_tree(), X, method="distances")
    assert report.method == "distances"
    np.testing.assert_allclose(model.correlation(), truth.correlation(), atol=0.05)
    symmetric = simulate.random_symmetric_model(tree, 2, rng, negative_share=0.5)
    model, _ = fit_parameters(
        symmetric.distance_tree(), symmetric.sample(20_000, rng), "symmetric", method="distances"
    )
    np.testing.assert_allclose(model.joint(0, 5), symmetric.joint(0, 5), atol=0.05)


# Budgets, starts, input -------------------------------------------------------------------------


def test_limits_are_kept_and_noted():
    rng = np.random.default_rng(0)
    tree = simulate.latent_class(8)
    X = (rng.random((500, 8)) < 0.5).astype(int)
    _, report = fit_parameters(tree, X, n_starts=1, budget=Budget(max_steps=4))
    assert not report.converged
    assert "4 steps came before convergence" in report.notes[0]
    _, report = fit_parameters(tree, X, budget=Budget(time_limit=0.0))
    assert not report.converged
    assert "time limit of 0 s" in report.notes[0]


def test_an_interrupt_returns_the_best_so_far():
    rng = np.random.default_rng(0)
    tree = simulate.latent_class(8)
    X = (rng.random((500, 8)) < 0.5).astype(int)

    def interrupt(steps, log_likelihood):
        if steps == 20:
            raise KeyboardInterrupt

    model, report = fit_parameters(tree, X, progress=interrupt, random_state=0)
    assert not report.converged
    assert "interrupted" in report.notes[0]
    assert model.total_log_likelihood(X) >= max(report.log_likelihoods) - 1e-6


def test_the_same_seed_gives_the_same_model():
    rng = np.random.default_rng(0)
    tree = simulate.random_latent_tree(8, rng)
    X = (rng.random((300, 8)) < 0.4).astype(int)
    first, _ = fit_parameters(tree, X, random_state=5)
    second, _ = fit_parameters(tree, X, random_state=5)
    np.testing.assert_array_equal(first.theta, second.theta)


def test_a_fit_goes_on_from_a_model():
    rng = np.random.default_rng(0)
    tree = simulate.random_latent_tree(8, rng)
    X = simulate.random_discrete_model(tree, 2, rng).sample(400, rng)
    first, report = fit_parameters(tree, X, n_starts=1, budget=Budget(max_steps=6))
    _, later = fit_parameters(tree, X, start=first)
    assert later.log_likelihoods[0] == pytest.approx(report.log_likelihood, abs=1e-4)
    assert later.log_likelihood >= report.log_likelihood


GOING_ON = {
    "gaussian": {}, "missing": {}, "discrete": {}, "symmetric": {"family": "symmetric"},
    "mixed": {"prior_weight": 1.0}, "ordered": {"family": "copula"},
    "normal": {"family": "copula"}, "ranks": {"family": "copula", "marginals": "ranks"},
}  # fmt: skip


@pytest.mark.parametrize("kind", GOING_ON)
def test_em_stays_at_a_fitted_model_that_it_starts_from(kind):
    rng = np.random.default_rng(1)
    tree = simulate.double_star(6)
    X = simulate.random_gaussian_model(tree, 3, (0.5, 0.8)).sample(400, 4)
    if kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind in ("discrete", "symmetric"):
        X = (X > 0).astype(int)
    if kind == "mixed":
        X = {f"x{j}": X[:, j] if j % 2 else np.where(X[:, j] > 0, "a", "b") for j in range(6)}
    if kind == "ordered":
        X = np.digitize(X, [-1.0, 0.0, 1.0])
    options = GOING_ON[kind]
    model, report = fit_parameters(tree, X, random_state=0, **options)
    again, later = fit_parameters(tree, X, start=model, **options)
    assert later.converged
    assert later.n_steps <= 10 < report.n_steps
    assert later.log_likelihood == pytest.approx(report.log_likelihood, rel=1e-6)
    if kind == "gaussian":
        assert lt.metrics.kl_divergence(model, again) < 1e-4


def test_prior_pulls_tables_toward_the_middle():
    tree = lt.Tree([1, -1])
    X = np.array([[0, 0]] * 9 + [[1, 1]] * 2 + [[1, 0]])
    for rooted in (tree, tree.rerooted(0)):
        model, _ = fit_parameters(rooted, X, prior_weight=4.0)  # one more in each cell of the pair
        np.testing.assert_allclose(model.joint(0, 1), np.array([[10, 1], [2, 3]]) / 16)


def test_columns_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    tree = lt.Tree([1, -1, 1], names=["a", "b", "c"])
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(50, 3)), columns=["c", "a", "b"])
    model, _ = fit_parameters(tree, frame)
    assert model.means[0] == pytest.approx(frame["a"].mean())
    with pytest.raises(DataError, match="variable 'b' is not a column"):
        fit_parameters(tree, frame.rename(columns={"b": "z"}))
    with pytest.raises(DataError, match="3 variables, but the data has 2 columns"):
        fit_parameters(tree, frame[["a", "b"]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "method is 'guess'"),
        ({"method": "distances"}, "do not follow from distances"),
        ({"n_states": 0}, "cannot have 0 states"),
        ({"n_states": {"x0": 3}}, "'x0' is observed"),
        ({"n_states": [2, 2]}, "2 numbers of states for 1 nodes"),
    ],
)
def test_wrong_requests_are_refused(options, message):
    X = (np.random.default_rng(0).random((50, 4)) < 0.5).astype(int)
    with pytest.raises(ModelError, match=message):
        fit_parameters(simulate.latent_class(4), X, **options)


def test_hidden_nodes_may_have_any_number_of_states():
    rng = np.random.default_rng(0)
    tree = simulate.double_star(6)
    X = rng.integers(0, 3, (200, 6))
    model, _ = fit_parameters(tree, X, n_states={"h1": 2, "h2": 5}, random_state=0)
    assert model.n_states.tolist() == [3] * 6 + [2, 5]
    problem = make_problem(tree, as_sample(X), 4)
    assert problem.n_states.tolist() == [3] * 6 + [4, 4]

"""Fits for prediction: smoothing, splitting and choice by held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree import simulate
from latentree.data import as_table
from latentree.distances import as_sample
from latentree.em import (
    Budget,
    _held_out,
    _starts,
    _stepwise,
    fit_parameters,
    held_out_fits,
)
from latentree.errors import ModelError
from latentree.inference import Layout
from latentree.models import DiscreteTreeModel

seeds = st.integers(0, 2**32 - 1)


def random_layout(rng: np.random.Generator) -> tuple[Layout, np.ndarray]:
    tree = simulate.random_latent_tree(7, rng)
    n_states = rng.integers(2, 4, tree.n_nodes)
    model = simulate.random_discrete_model(tree, n_states, rng)
    return model.layout, model.theta


def draws(n_rows: int = 700, seed: int = 3) -> np.ndarray:
    """Rows of a tree whose three hidden nodes have four states: no binary tree predicts as well."""
    tree = lt.Tree([9, 9, 9, 10, 10, 10, 11, 11, 11, -1, 9, 9], n_observed=9)
    # The three leaves of a hidden node tell its four states apart together, but no two of them.
    shown = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]])
    leaves = [np.where(shown[leaf % 3][:, None] == [0, 1], 0.95, 0.05) for leaf in range(9)]
    edge = 0.8 * np.eye(4) + 0.05
    model = DiscreteTreeModel(tree, [*leaves, np.full(4, 0.25), edge, edge])
    return np.asarray(model.sample(n_rows, seed))


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_the_prior_is_the_marginal_of_the_child(seed):
    rng = np.random.default_rng(seed)
    layout, theta = random_layout(rng)
    strengths = rng.uniform(0.5, 8.0, 2)
    prior = _stepwise.Smoothing(layout).prior(theta, strengths)
    model = DiscreteTreeModel.from_theta(layout.tree, layout.n_states, theta)
    for node in range(layout.tree.n_nodes):
        strength = strengths[0 if node < layout.tree.n_observed else 1]
        for row in layout.table(prior, node):
            expected = strength / layout.parent_states[node] * model.marginal(node)
            np.testing.assert_allclose(row, expected, atol=1e-12)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_strengths_move_to_where_held_out_rows_gain_most(seed):
    rng = np.random.default_rng(seed)
    layout, theta = random_layout(rng)
    smoothing = _stepwise.Smoothing(layout)
    counts = rng.gamma(0.5, 4.0, layout.size)
    seen = rng.gamma(0.5, 2.0, layout.size)
    strengths = rng.uniform(0.5, 8.0, 2)
    moved = _stepwise.moved(strengths, lambda each: smoothing.gains(counts, seen, theta, each))

    def gain(a: float, b: float) -> float:
        return float(seen @ np.log(smoothing.tables(counts, theta, np.array([a, b]))))

    grid = [0.25, 0.5, 1.0, 2.0, 4.0]
    best = max(gain(a * strengths[0], b * strengths[1]) for a in grid for b in grid)
    assert gain(*moved) == pytest.approx(best, rel=1e-12)


@given(seeds, st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_split_states_without_noise_are_the_same_model(seed, more):
    rng = np.random.default_rng(seed)
    layout, theta = random_layout(rng)
    tree = layout.tree
    n_states = layout.n_states.copy()
    n_states[tree.n_observed :] = np.minimum(
        n_states[tree.n_observed :] + more, 2 * n_states[tree.n_observed :]
    )
    target = Layout(tree, n_states)
    split, _ = _starts.split_tables(layout, theta, target, rng, noise=0.0)
    before = DiscreteTreeModel.from_theta(tree, layout.n_states, theta)
    after = DiscreteTreeModel.from_theta(tree, n_states, split)
    rows = np.asarray(before.sample(20, 0))
    np.testing.assert_allclose(after.log_likelihood(rows), before.log_likelihood(rows), rtol=1e-10)
    noisy, _ = _starts.split_tables(layout, theta, target, rng, noise=1.0)
    assert not np.allclose(noisy, split) or tree.n_hidden == 0


def test_held_out_rows_choose_states_that_predict():
    X, new = draws(), draws(2_000, 4)
    learned = lt.LatentTree("hclt", n_trees=1, random_state=0).fit(X)
    flat = lt.LatentTree("chow_liu").fit(X)
    two = lt.LatentTree("hclt", n_states=2, random_state=0).fit(X)
    assert learned.model_.n_states[9:].min() >= 4
    assert learned.score(new) > max(two.score(new), flat.score(new))
    report = learned.report_
    assert report.converged
    assert f"{learned.model_.n_states[9]} states a hidden variable" in report.notes[0]
    assert report.log_likelihood == pytest.approx(learned.score(X) * len(X))
    assert len(report.held_out_log_likelihoods) * _held_out.PASSES_PER_SCORE == report.n_steps


def test_the_same_seed_gives_the_same_model(monkeypatch):
    X = draws(300)
    models = []
    for threads in ("1", "3"):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", threads)
        models.append(lt.LatentTree("hclt", n_states=3, random_state=1).fit(X).model_)
    assert (models[0].theta == models[1].theta).all()
    assert (models[0].n_states[9:] == 3).all()


def test_every_method_by_distances_takes_auto():
    learned = lt.LatentTree("clrg", n_states="auto", random_state=0).fit(draws(300))
    assert "states a hidden variable" in learned.report_.notes[0]


def test_rows_to_decide_by_may_be_given():
    X, valid = draws(300), draws(100, 5)
    fitted = lt.LatentTree("hclt", n_states=2, random_state=0).fit(X, X_valid=valid)
    assert fitted.report_.n_samples == 400
    with pytest.raises(ModelError, match="reg_clrg does not hold out rows"):
        lt.LatentTree("reg_clrg").fit(X, X_valid=valid)
    with pytest.raises(ModelError, match="X_valid is for hclt and n_states"):
        lt.LatentTree("clrg").fit(X, X_valid=valid)
    with pytest.raises(ModelError, match=r"validation_fraction is 1\.5"):
        lt.fit_parameters(
            lt.structure.hidden_mutual_information_tree(X), X, method="held_out",
            validation_fraction=1.5,
        )  # fmt: skip


@pytest.mark.parametrize("stop", ["interrupt", "steps"])
def test_what_is_best_so_far_is_kept(stop):
    X = draws(300)
    tree = lt.structure.hidden_mutual_information_tree(X)
    seen = []

    def progress(steps: int, score: float) -> None:
        seen.append(score)
        if stop == "interrupt" and len(seen) == 3:
            raise KeyboardInterrupt

    budget = Budget(max_steps=15 if stop == "steps" else 1_000)
    model, report = fit_parameters(
        tree, X, method="held_out", random_state=0, progress=progress, budget=budget
    )
    assert not report.converged
    assert report.notes[0].startswith({"interrupt": "inter", "steps": "the limit of 15"}[stop])
    assert report.held_out_log_likelihoods == tuple(seen)
    assert np.isfinite(model.log_likelihood(X)).all()


def test_other_families_are_refused_with_a_reason():
    tree = simulate.latent_class(4)
    X = simulate.random_gaussian_model(tree, 0).sample(100, 1)
    with pytest.raises(ModelError, match="for discrete and mixed columns, but these are gaussian"):
        fit_parameters(tree, X, method="held_out")


def test_the_search_begins_at_the_chow_liu_tree():
    training, held_out = (as_table(draws(n, n), "discrete") for n in (600, 200))
    sample = as_sample(training)
    tree = lt.structure.hidden_mutual_information_tree(sample)
    fit = _held_out.HeldOutFit(
        tree, sample, sample, held_out, budget=Budget(), rng=np.random.default_rng(0)
    )
    fit.begin()
    flat, _ = fit_parameters(lt.structure.mutual_information_tree(sample), sample)
    assert fit.best.score == pytest.approx(flat.log_likelihood(held_out).mean(), rel=2e-3)


def test_gains_within_chance_are_no_gains():
    def found(scores):
        return _held_out.Candidate(None, np.empty(0), np.ones(2), np.asarray(scores))

    base = found(np.full(10, -0.5))
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, 0.1, 10)
    noise -= noise.mean()
    assert _held_out.are_better(
        [found(-0.5 + noise + 0.05)], [base]
    )  # 0.5 in all, of standard error 0.3
    assert not _held_out.are_better([found(-0.5 + noise + 0.02)], [base])
    assert not _held_out.are_better([found(np.full(10, -0.49999))], [base])  # sure, but a trace


def test_a_run_is_replayed():
    """With the same rows it ends at the same tables, after the last full steps."""
    training, held_out = (as_table(draws(n, n), "discrete") for n in (400, 200))
    sample = as_sample(training)
    tree = lt.structure.hidden_mutual_information_tree(sample)
    nothing = training.take(np.empty(0, np.int64))
    fit, again = (
        _held_out.HeldOutFit(
            tree, sample, sample, rows, n_states=2, budget=Budget(), rng=np.random.default_rng(0)
        )
        for rows in (held_out, nothing)
    )
    found = fit.run(fit.begin())
    assert len(found.legs) == 1
    stage, theta = found.stage, found.point
    for _ in range(_held_out.LAST_STEPS):
        counts = sum(part.run(theta).counts for part in stage.parts)
        theta = stage.smoothing.tables(counts, theta, found.strengths)
    assert again.replay(found.legs).point == pytest.approx(theta, abs=1e-9)


def test_a_fit_learns_from_the_held_out_rows_in_the_end():
    training, held_out = (as_table(draws(n, n), "discrete") for n in (400, 200))
    sample = as_sample(training)
    tree = lt.structure.hidden_mutual_information_tree(sample)
    fit = _held_out.HeldOutFit(
        tree, sample, sample, held_out, budget=Budget(), rng=np.random.default_rng(0)
    )
    [(model, report)] = _held_out.run_together([fit])
    assert report.n_samples == 600
    both = model.total_log_likelihood(training) + model.total_log_likelihood(held_out)
    assert report.log_likelihood == pytest.approx(both)
    assert model.total_log_likelihood(held_out) > fit.held_out_densities().sum()


@pytest.mark.parametrize("method", ["lcm", "consensus", "nj"])
def test_methods_that_score_models_take_auto(method):
    truth = simulate.random_discrete_model(simulate.double_star(8), 2, 0)
    learned = lt.LatentTree(method, n_states="auto", random_state=0).fit(truth.sample(1_000, 1))
    assert "held-out log-likelihood a row" in learned.report_.notes[0]
    with pytest.raises(ModelError, match="n_states is 'many'"):
        fit_parameters(simulate.latent_class(9), draws(20), "discrete", n_states="many")


def test_a_fit_from_a_model_predicts_no_worse_than_it():
    """The model has seen the held-out rows; it is judged after a fit without them."""
    X = draws(300)
    tree = lt.structure.hidden_mutual_information_tree(X)
    start, _ = fit_parameters(tree, X, n_states=4, random_state=0)
    fits = held_out_fits(tree, as_sample(X, "discrete"), start=start, rng=np.random.default_rng(0))
    fits[0].begin()
    held_out, before = fits[0].held_out, fits[0].best
    assert before.score < start.log_likelihood(held_out).mean()
    alone, _ = fit_parameters(tree, fits[0].training, start=start, budget=_held_out.FIRST)
    assert before.score == pytest.approx(alone.log_likelihood(held_out).mean(), rel=1e-6)
    _, report = _held_out.run_rivals([fits])
    assert fits[0].decided.score >= before.score
    assert report.converged


def test_refined_by_cv_lets_held_out_rows_decide_on_states():
    X, new = draws(), draws(2_000, 4)
    learned, report = lt.search.refined(X, "discrete", criterion="cv", random_state=0)
    by_bic, _ = lt.search.refined(X, "discrete", random_state=0)
    assert any("held-out log-likelihood a row" in note for note in report.notes[1:])
    assert learned.log_likelihood(new).mean() > by_bic.log_likelihood(new).mean() - 0.02
    assert report.log_likelihood == pytest.approx(learned.total_log_likelihood(X))


def test_refined_by_cv_without_time_left_is_what_the_search_found():
    X = draws(200)
    _, report = lt.search.refined(X, "discrete", criterion="cv", time_limit=0.0, random_state=0)
    assert not report.converged
    assert any("the time limit of 0 s" in note for note in report.notes)
    assert not report.held_out_log_likelihoods

"""Mixtures of trees are learned by EM, as large and as smooth as held-out rows want them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import latentree as lt
from latentree.data import as_table
from latentree.distances import Sample
from latentree.errors import DataError, ModelError
from latentree.methods import METHODS
from latentree.methods._mixtures import learn_component
from latentree.models import TreeMixture
from latentree.search import _mixture as mixture


def two_trees() -> TreeMixture:
    """Two chains in other orders, far apart: one Gaussian tree fits neither."""
    chain = lt.Tree([-1, 0, 1, 2, 3])
    other = lt.Tree([4, 3, 4, -1, 3])
    parts = [
        lt.GaussianTreeModel(chain, [0, 0.9, -0.8, 0.9, 0.8], [-2.0] * 5),
        lt.GaussianTreeModel(other, [0.9, 0.8, -0.9, 0, 0.8], [2.0] * 5),
    ]
    return TreeMixture(parts, [0.4, 0.6])


TRUTH = two_trees()
X, NEW = TRUTH.sample(300, 0), TRUTH.sample(500, 1)


def learn(sample: Sample):
    return learn_component(METHODS["chow_liu"], sample, {})


def test_rounds_raise_the_likelihood_with_the_shared_rows():
    """EM of r and ν/n: Σ_k Σ_i ν/n·log p_k(x_i) belongs to what it raises."""
    table = as_table(X)
    share = mixture.first_share(table, 3, np.random.default_rng(0))
    values = []
    for model in mixture.run_rounds(table, share, learn, strength=2.0):
        joint = model.joint_log_likelihoods(table)
        own = np.column_stack([part.log_likelihood(table) for part in model.components])
        prior = 2.0 * own.mean(axis=0).sum() + np.log(model.weights).sum()
        values.append(logsumexp(joint, axis=1).sum() + prior)
    assert len(values) > 2
    assert (np.diff(values) > -1e-6 * abs(values[0])).all()


def test_components_are_found_again():
    learned = lt.LatentTree("chow_liu", n_trees=2, random_state=0).fit(X)
    model = learned.model_
    assert isinstance(model, TreeMixture)
    assert model.n_trees == 2
    order = np.argsort([part.means[0] for part in model.components])
    for number, wanted in zip(order, TRUTH.components, strict=True):
        assert lt.metrics.same_structure(model.components[number].tree, wanted.tree)
    assert model.weights[order] == pytest.approx(TRUTH.responsibilities(X).mean(axis=0), abs=0.02)
    one = lt.LatentTree("chow_liu").fit(X)
    assert learned.score(NEW) > one.score(NEW) + 1.0
    again = lt.LatentTree("chow_liu", n_trees=2, random_state=0).fit(X)
    assert np.array_equal(again.score_samples(NEW), learned.score_samples(NEW))
    assert learned.score(NEW) == pytest.approx(TRUTH.log_likelihood(NEW).mean(), abs=0.15)
    assert learned.bic(NEW) == pytest.approx(
        model.n_parameters * np.log(500) - 2 * 500 * learned.score(NEW)
    )


def test_held_out_rows_choose_a_committee():
    learned = lt.LatentTree("chow_liu", n_trees="auto", random_state=0).fit(X[:150])
    assert learned.model_.n_trees % mixture.MEMBERS == 0
    assert learned.score(NEW) == pytest.approx(TRUTH.log_likelihood(NEW).mean(), abs=0.3)
    assert max(learned.report_.held_out_log_likelihoods) > -8


def test_every_row_is_left_out_by_as_many_members():
    left_out = mixture._left_out(57, np.random.default_rng(0))
    assert left_out.shape == (mixture.MEMBERS, 57)
    assert (left_out.sum(axis=0) == mixture.LEFT_OUT).all()
    assert np.ptp(left_out.sum(axis=1)) <= 4
    assert len({tuple(row) for row in left_out}) == mixture.MEMBERS


def test_the_score_is_that_of_the_members_that_left_a_row_out():
    left_out = np.array([[True, False, True], [True, True, False]])
    search = mixture.MixtureSearch(
        as_table(X[:3]), left_out, learn, np.random.default_rng(0), np.inf, None
    )
    density = np.where(left_out, np.log([[0.2, 1.0, 0.3], [0.4, 0.5, 1.0]]), -np.inf)
    assert search._score(density) == pytest.approx(np.log([0.3, 0.5, 0.3]).mean())


def test_weights_count_rows():
    weights = np.where(np.arange(300) < 30, 2.0, 1.0)
    table = as_table(X, weights=weights)
    share = mixture.first_share(as_table(X), 2, np.random.default_rng(0))
    *_, weighted = mixture.run_rounds(table, share, learn, 1.0)
    rows = np.concatenate([np.arange(300), np.arange(30)])
    *_, repeated = mixture.run_rounds(as_table(X[rows]), share[rows], learn, 1.0)
    assert weighted.log_likelihood(NEW) == pytest.approx(repeated.log_likelihood(NEW))


@pytest.mark.parametrize("method", ["chow_liu", "clrg"])
def test_discrete_mixtures(method):
    rng = np.random.default_rng(3)
    trees = [lt.Tree([-1, 0, 1, 2, 3, 4]), lt.Tree([3, 4, 5, 4, -1, 4])]
    parts = [lt.simulate.random_discrete_model(tree, 2, rng) for tree in trees]
    truth = TreeMixture(parts, [0.5, 0.5])
    rows = truth.sample(500, 0)
    learned = lt.LatentTree(method, family="discrete", n_trees=2, random_state=0).fit(rows)
    assert np.isfinite(learned.score(truth.sample(500, 1)))
    assert learned.model_.n_trees == 2
    assert learned.predict_column(rows, "x1").shape == (500,)
    proba = learned.column_proba(rows, "x1")
    assert proba.sum(axis=1) == pytest.approx(1.0)
    assert learned.predict_proba(rows).shape == (500, 2)
    names = list(learned.get_feature_names_out())
    assert names[:2] == ["tree=0", "tree=1"]
    assert learned.transform(rows).shape == (500, len(names))
    holes = rows.astype(float)
    holes[0, 2] = np.nan
    assert np.isfinite(learned.impute(holes)).all()


def test_held_out_fits_of_folds_are_averaged():
    truth = lt.simulate.random_discrete_model(lt.simulate.double_star(6), 3, 0)
    rows, new = truth.sample(200, 0), truth.sample(200, 1)
    hclt = lt.LatentTree("hclt", family="discrete", n_trees=3, random_state=0)
    learned = hclt.fit(rows[:150], X_valid=rows[150:])
    model = learned.model_
    assert model.weights == pytest.approx(1 / 3)
    assert learned.report_.n_samples == 200
    each = [part.log_likelihood(new).mean() for part in model.components]
    assert learned.score(new) >= np.mean(each)
    assert any(note.startswith("tree 2: ") for note in learned.report_.notes)
    with pytest.raises(ModelError, match="n_trees is -1"):
        lt.LatentTree("hclt", family="discrete", n_trees=-1).fit(rows)


def test_mixed_tables_with_gaps():
    rng = np.random.default_rng(0)
    kind = rng.random(200) < 0.5
    table = {
        "age": np.where(kind, 30.0, 60.0) + rng.normal(0, 3.0, 200),
        "size": np.where(kind, 1.0, -1.0) + rng.normal(0, 0.5, 200),
        "color": [["red", "blue"][i] for i in (rng.random(200) < 0.3).astype(int)],
    }
    table["age"][:5] = np.nan
    learned = lt.LatentTree("clrg", family="mixed", n_states=2, n_trees=2, random_state=0)
    learned.fit(table)
    assert learned.model_.schema.family == "mixed"
    assert np.isfinite(learned.score(table))
    filled = learned.impute(table)
    assert np.isfinite(np.asarray(filled["age"], float)).all()


def test_people_who_use_a_scale_in_two_ways():
    """Some answer in extremes only: one Gaussian behind the answers cannot say that, two can."""
    rng = np.random.default_rng(0)
    x = 0.8 * rng.standard_normal((500, 1)) + 0.6 * rng.standard_normal((500, 4))
    narrow, wide = np.array([-0.3, 0.3]), np.array([-1.5, 1.5])
    extreme = rng.random(500) < 0.5
    answers = 1.0 + np.where(extreme[:, None], np.digitize(x, narrow), np.digitize(x, wide))
    answers[::9, 1] = np.nan
    fits = [
        lt.LatentTree("nj", hidden="gaussian", random_state=0, **more).fit(answers[:300])
        for more in ({}, {"n_trees": 2})
    ]
    assert fits[1].model_.schema.family == "copula"
    assert fits[1].score(answers[300:]) > fits[0].score(answers[300:]) + 0.1
    assert not np.isnan(np.asarray(fits[1].impute(answers), float)).any()


def test_limits_and_bad_options():
    with pytest.raises(ModelError, match="n_trees is 0"):
        lt.LatentTree("chow_liu", n_trees=0).fit(X)
    with pytest.raises(ModelError, match="does not take n_trees"):
        lt.LatentTree("refined", n_trees=2).fit(X)
    with pytest.raises(ModelError, match="support is of one tree"):
        lt.LatentTree("chow_liu", n_trees=2, n_bootstrap=5).fit(X)
    with pytest.raises(DataError, match="allow more time"):
        lt.LatentTree("chow_liu", n_trees=2, time_limit=1e-9).fit(X)


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")  # methods.py silences them
def test_an_interrupt_keeps_the_best():
    seen = []

    def stop_at_third(settings: int, value: float) -> None:
        seen.append(value)
        if settings == 3:
            raise KeyboardInterrupt

    fitted = mixture.tree_mixture(
        lt.distances.as_sample(X), learn, "auto", random_state=0, progress=stop_at_third
    )
    assert len(seen) == 3
    assert not fitted.report.converged
    assert "interrupted" in fitted.report.notes[0]


def test_given_rows_decide():
    learned = lt.LatentTree("chow_liu", n_trees=2, random_state=0).fit(X[:250], X_valid=X[250:])
    assert learned.report_.n_samples == 300

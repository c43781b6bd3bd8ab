"""The four thin estimators: scikit-learn's checks, and what people do with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import latentree as lt
from latentree import simulate


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        lt.LatentTreeImputer(random_state=0),
        lt.LatentTreeClassifier(max_steps=5, cv=2, random_state=0),
        lt.LatentTreeRegressor(random_state=0),
        lt.LatentTreeCovariance(random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def truth():
    return simulate.random_gaussian_model(simulate.double_star(8), 0, strength=(0.6, 0.8))


@pytest.fixture(scope="module")
def holes(truth):
    X = truth.sample(400, 1)
    return np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)


@pytest.fixture(scope="module")
def mixed():
    """A frame of every type, with gaps, an index of its own and an empty column."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 150)
    frame = pd.DataFrame(rng.normal(group[:, None] * 3.0, 1.0, (150, 2)), columns=["a", "b"])
    frame["count"] = pd.array(rng.poisson(2 + 6 * group), dtype="Int64")
    frame["word"] = pd.Categorical(np.where(rng.random(150) < 0.9, group, 1 - group).astype(str))
    frame["empty"] = np.nan
    frame.index += 7
    for j, name in enumerate(["a", "count", "word"]):
        frame.loc[frame.index[j::10], name] = None
    return frame


# Imputer ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_the_imputer_keeps_what_a_frame_is(mixed):
    imputer = lt.LatentTreeImputer(random_state=0).fit(mixed)
    filled = imputer.transform(mixed)
    assert list(filled.columns) == ["a", "b", "count", "word"]
    assert filled.dtypes.tolist() == mixed.dtypes.tolist()[:4]
    assert filled.index.equals(mixed.index)
    assert not filled.isna().any().any()
    assert filled["b"].equals(mixed["b"])
    whole = clone(imputer).set_params(add_indicator=True, keep_empty_features=True)
    filled = whole.fit_transform(mixed)
    assert (filled["empty"] == 0).all()
    assert filled["missingindicator_word"].tolist() == mixed["word"].isna().tolist()
    assert list(filled.columns) == whole.get_feature_names_out().tolist()
    named = whole.set_output(transform="polars").transform(mixed)
    assert named.columns == list(filled.columns)


def test_draws_have_the_spread_that_means_lack(truth, holes):
    missing = np.isnan(holes)
    imputer = lt.LatentTreeImputer(sample_posterior=True, random_state=0).fit(holes)
    drawn = imputer.transform(holes)
    mean = imputer.set_params(sample_posterior=False).transform(holes)
    np.testing.assert_array_equal(drawn[~missing], holes[~missing])
    spread = np.concatenate([drawn[rows, j] for j, rows in enumerate(missing.T)])
    shrunken = np.concatenate([mean[rows, j] for j, rows in enumerate(missing.T)])
    # 320 draws of variance 1: the standard error of their standard deviation is 0.04.
    assert abs(spread.std() - 1.0) < 0.16
    assert shrunken.std() < 0.84


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_draws_of_labels_and_counts_are_values_of_their_columns(mixed):
    imputer = lt.LatentTreeImputer(sample_posterior=True, random_state=0)
    drawn = imputer.fit_transform(mixed)
    assert not drawn.isna().any().any()
    assert set(drawn["word"]) == {"0", "1"}
    assert drawn["count"].dtype == "Int64"
    assert drawn.equals(clone(imputer).fit_transform(mixed))


def test_the_imputer_in_a_pipeline_a_search_and_with_weights(holes):
    y = np.nan_to_num(holes).sum(axis=1)
    pipeline = make_pipeline(lt.LatentTreeImputer(), LinearRegression())
    search = GridSearchCV(pipeline, {"latenttreeimputer__method": ["nj", "chow_liu"]}, cv=3)
    assert search.fit(holes, y).best_score_ > 0.5
    weights = np.repeat([1.0, 0.0], 200)
    with config_context(enable_metadata_routing=True):
        imputer = lt.LatentTreeImputer().set_fit_request(sample_weight=True)
        routed = make_pipeline(imputer, LinearRegression().set_fit_request(sample_weight=True)).fit(
            holes, y, sample_weight=weights
        )
    alone = lt.LatentTreeImputer().fit(holes[:200])
    np.testing.assert_allclose(routed[0].transform(holes), alone.transform(holes), atol=1e-4)


# Classifier and regressor -----------------------------------------------------------------------


def test_classes_are_predicted_better_than_by_naive_bayes():
    X, y = load_breast_cancer(return_X_y=True)
    learner = lt.LatentTreeClassifier(random_state=0)
    shares = cross_val_predict(learner, X, y, cv=3, method="predict_proba")
    naive = cross_val_predict(GaussianNB(), X, y, cv=3, method="predict_proba")
    loss, their_loss = (-np.log(p[np.arange(len(y)), y]).mean() for p in (shares, naive + 1e-9))
    assert (shares.argmax(axis=1) == y).mean() > (naive.argmax(axis=1) == y).mean()
    assert loss < 0.5 * their_loss  # calibrated, where naive Bayes is too sure
    sure = shares.max(axis=1) > 0.9
    assert abs((shares.argmax(axis=1) == y)[sure].mean() - shares.max(axis=1)[sure].mean()) < 0.03


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_words_gaps_and_rare_classes(mixed):
    X = mixed.drop(columns=["empty", "word"])
    y = mixed["word"].astype(object).fillna("rare").to_numpy(copy=True)
    y[y == "rare"] = "1"
    y[0] = "rare"  # a class of one row, which cannot be held out
    learned = lt.LatentTreeClassifier(random_state=0).fit(X, y)
    assert learned.classes_.tolist() == ["0", "1", "rare"]
    np.testing.assert_allclose(learned.predict_proba(X).sum(axis=1), 1.0)
    # The hidden group itself agrees with 79 % of the words, the most frequent word with 61 %.
    assert learned.score(X, y) > 0.72
    assert learned.score(X.assign(a=np.nan), y) > 0.7
    X["mark"] = (np.arange(150) == 3) * 1.0  # constant where its row is held out
    assert lt.LatentTreeClassifier(cv=2, random_state=0).fit(X, y > "0").score(X, y > "0") > 0.7


def test_classifier_in_a_pipeline_a_search_and_with_weights():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), lt.LatentTreeClassifier(cv=2))
    grid = {"latenttreeclassifier__prior_weight": [0.1, 200.0]}  # 200: hardly a class of its own
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["latenttreeclassifier__prior_weight"] == 0.1
    weights = np.where(y < 2, 1.0, 0.0)
    with config_context(enable_metadata_routing=True):
        learner = lt.LatentTreeClassifier("chow_liu", cv=2).set_fit_request(sample_weight=True)
        learner.set_score_request(sample_weight=True)
        found = cross_validate(
            learner, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True
        )
    assert all(one.classes_.tolist() == [0, 1] for one in found["estimator"])


def test_the_regressor_says_how_far_off_it_is():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    learned = lt.LatentTreeRegressor(random_state=0).fit(X[:300], y[:300])
    mean, error = learned.predict(X[300:], return_std=True)
    assert learned.score(X[300:], y[300:]) > 0.35
    assert 0.8 < ((y[300:] - mean) / error).std() < 1.2
    lost = X[300:].assign(bmi=np.nan)
    assert (learned.predict(lost, return_std=True)[1] > error).all()
    backward = X[300:][X.columns[::-1]]
    np.testing.assert_allclose(learned.predict(backward), mean)
    constant = lt.LatentTreeRegressor().fit(X[:50], np.full(50, 3.0))
    np.testing.assert_array_equal(constant.predict(X[:2]), [3.0, 3.0])


def test_the_regressor_takes_categories():
    rng = np.random.default_rng(0)
    color = rng.choice(["red", "green", "blue"], 300)
    frame = pd.DataFrame({"color": color, "size": rng.normal(size=300)})
    y = frame["size"] + 2.0 * (color == "red") + 0.1 * rng.normal(size=300)
    search = GridSearchCV(lt.LatentTreeRegressor(), {"method": ["nj", "refined"]}, cv=3)
    assert search.fit(frame, y).best_score_ > 0.7


# Covariance -------------------------------------------------------------------------------------


def test_the_covariance_is_that_of_the_tree(truth):
    X = truth.sample(2_000, 1)
    learned = lt.LatentTreeCovariance(n_folds=0).fit(X)
    model = learned.learned_.model_
    np.testing.assert_allclose(learned.covariance_, model.covariance())
    assert learned.shares_.tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_allclose(learned.precision_ @ learned.covariance_, np.eye(8), atol=1e-9)
    assert learned.score(X) == pytest.approx(model.log_likelihood(X).mean())
    assert learned.error_norm(truth.covariance()) < 0.1
    centered = X - learned.location_
    expected = np.einsum("ij,jk,ik->i", centered, learned.precision_, centered)
    np.testing.assert_allclose(learned.mahalanobis(X), expected)


def test_what_a_tree_leaves_over_is_kept_by_as_much_as_held_out_rows_say(truth):
    rng = np.random.default_rng(0)
    common = rng.normal(size=(3_000, 1)) * rng.normal(size=8)  # which no tree has beside its own
    rows = truth.sample(3_000, 1) + 0.6 * common
    kept = []
    for n in (100, 600):
        learned = lt.LatentTreeCovariance().fit(rows[:n])
        tree = learned.learned_.model_.covariance()
        own = np.cov(rows[:n].T, bias=True)
        shares = learned.shares_
        expected = shares[0] * own + shares[1] * tree + shares[2] * np.diag(np.diag(tree))
        np.testing.assert_allclose(learned.covariance_, expected)
        rivals = LedoitWolf(), lt.LatentTreeCovariance(n_folds=0)
        best = max(rival.fit(rows[:n]).score(rows[1_000:]) for rival in rivals)
        assert learned.score(rows[1_000:]) > best
        kept.append(shares[0])
    assert 0.2 < kept[0] < kept[1] < 1.0
    assert lt.LatentTreeCovariance().fit(truth.sample(100, 1)).shares_[1] > 0.8


def test_rows_are_held_out_wherever_they_stand(truth):
    X = truth.sample(60, 1)
    counts = np.random.default_rng(0).integers(0, 4, 60)
    repeated = lt.LatentTreeCovariance().fit(np.repeat(X, counts, axis=0)[::-1])
    weighted = lt.LatentTreeCovariance().fit(X, sample_weight=counts)
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_, atol=1e-5)
    np.testing.assert_array_equal(weighted.shares_, repeated.shares_)


def test_gaps_and_targets_are_filled_in_by_the_covariance(holes):
    learned = lt.LatentTreeCovariance(random_state=0).fit(holes)
    filled = lt.LatentTreeImputer(random_state=0).fit_transform(holes)
    for row, found in zip(holes[:50], filled, strict=False):
        there = ~np.isnan(row)
        covariance = learned.covariance_[:, there]
        away = np.linalg.solve(covariance[there], (row - learned.location_)[there])
        np.testing.assert_allclose(found, learned.location_ + covariance @ away, atol=1e-8)


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_a_constant_column_has_no_variance(truth):
    X = np.insert(truth.sample(200, 1), 2, 4.0, axis=1)
    learned = lt.LatentTreeCovariance().fit(X)
    assert learned.location_[2] == 4.0
    assert not learned.covariance_[2].any()
    assert learned.covariance_[3, 4] != 0.0


def test_few_rows_are_enough_for_a_tree(truth):
    search = GridSearchCV(lt.LatentTreeCovariance(), {"method": ["chow_liu", "clnj"]}, cv=3)
    assert search.fit(truth.sample(60, 2)).best_params_["method"] == "clnj"


def test_the_covariance_in_skfolio(truth):
    optimization = pytest.importorskip("skfolio.optimization", reason="skfolio is not installed")
    prior = pytest.importorskip("skfolio.prior", reason="skfolio is not installed")
    returns = pd.DataFrame(truth.sample(200, 1) / 100.0).add_prefix("asset ")
    estimator = prior.EmpiricalPrior(covariance_estimator=lt.LatentTreeCovariance())
    portfolio = optimization.MeanRisk(prior_estimator=estimator, min_weights=None)
    weights = portfolio.fit(returns).weights_
    precision = lt.LatentTreeCovariance().fit(returns).precision_
    expected = precision.sum(axis=1) / precision.sum()  # of the minimum variance
    np.testing.assert_allclose(weights, expected, atol=1e-3)

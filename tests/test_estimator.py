"""The estimator: scikit-learn's own checks, and what a user does with it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import latentree as lt
from latentree import simulate
from latentree.errors import DataError, ModelError

CODES = "integers are codes, and these columns differ in their number of states"
SPARSE = "sparse input is 0/1 data, and the check draws real numbers"
EXPECTED_FAILURES = {
    "check_estimators_dtypes": CODES,
    "check_sample_weights_shape": CODES,
    "check_estimator_sparse_tag": SPARSE,
    "check_estimator_sparse_array": SPARSE,
    "check_estimator_sparse_matrix": SPARSE,
}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [lt.LatentTree(random_state=0), lt.LatentTree(method="nj", refit=False)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def real():
    truth = simulate.random_gaussian_model(simulate.double_star(8), 0, strength=(0.6, 0.8))
    return truth.sample(1_000, 1)


@pytest.fixture(scope="module")
def coded():
    truth = simulate.random_discrete_model(simulate.double_star(8), 2, 0, strength=(0.6, 0.8))
    return truth.sample(1_000, 1)


def test_fit_gives_tree_model_and_report(real):
    learned = lt.LatentTree(method="rg").fit(real)
    assert learned.tree_.same_structure(simulate.double_star(8))
    assert learned.n_hidden_ == 2
    assert learned.report_.converged
    per_row = learned.score_samples(real)
    assert learned.score(real) == pytest.approx(per_row.mean())
    assert learned.bic(real) == pytest.approx(-2 * learned.report_.bic_score)
    assert learned.aic(real) == pytest.approx(-2 * learned.report_.aic_score)
    assert learned.sample(5, random_state=0).shape == (5, 8)
    np.testing.assert_allclose(learned.transform(real), learned.model_.posterior(real).mean)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_of_all_kinds(real, kind):
    columns = {f"test {i}": real[:, i] for i in range(8)}
    if kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(columns)
    else:
        frame = pytest.importorskip(kind).DataFrame(columns)
    learned = lt.LatentTree().fit(frame)
    assert learned.tree_.names[:8] == tuple(columns)
    assert learned.score(frame) == pytest.approx(lt.LatentTree().fit(real).score(real))
    if kind != "pyarrow":
        assert learned.feature_names_in_.tolist() == list(columns)
        named = learned.set_output(transform=kind).transform(frame)
        assert list(named.columns) == list(learned.get_feature_names_out())


def test_states_have_columns_of_their_own(coded):
    learned = lt.LatentTree(n_states=3, random_state=0).fit(coded)
    hidden = learned.transform(coded)
    names = learned.get_feature_names_out()
    assert hidden.shape == (1_000, 3 * learned.n_hidden_) == (1_000, len(names))
    assert names[:3].tolist() == ["h1=0", "h1=1", "h1=2"]
    np.testing.assert_allclose(hidden[:, :3].sum(axis=1), 1.0)


def test_probabilities_of_a_variable_ignore_its_own_cells(coded):
    learned = lt.LatentTree(random_state=0).fit(coded)
    probabilities = learned.predict_proba(coded, variable=0)
    turned = coded.copy()
    turned[:, 0] = 1 - turned[:, 0]
    np.testing.assert_allclose(learned.predict_proba(turned, variable=0), probabilities)
    right = probabilities.argmax(axis=1) == coded[:, 0]
    assert right.mean() > max(coded[:, 0].mean(), 1 - coded[:, 0].mean()) + 0.05
    sparse = scipy.sparse.csr_array(coded)
    np.testing.assert_allclose(learned.predict_proba(sparse, variable=0), probabilities)
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        lt.LatentTree().fit(coded.astype(float) + np.arange(1_000)[:, None] / 7).predict_proba(
            coded, variable=0
        )


def test_missing_cells_are_filled_in_the_same_kind_of_table(real):
    pandas = pytest.importorskip("pandas")
    holes = real.copy()
    rng = np.random.default_rng(0)
    missing = rng.random(real.shape) < 0.1
    holes[missing] = np.nan
    learned = lt.LatentTree(random_state=0).fit(holes)
    filled = learned.impute(holes)
    np.testing.assert_array_equal(filled[~missing], real[~missing])
    error = np.abs(filled[missing] - real[missing]).mean()
    assert error < 0.9 * np.abs(np.nanmean(holes, axis=0) - real)[missing].mean()
    names = [f"v{i}" for i in range(8)]
    learned = lt.LatentTree(random_state=0).fit(pandas.DataFrame(holes, columns=names))
    frame = learned.impute(pandas.DataFrame(holes, columns=names))
    assert list(frame.columns) == names
    np.testing.assert_allclose(frame.to_numpy(), filled)


def test_weights_clone_pipeline_and_search(real):
    weights = np.repeat([2.0, 0.0], 500)
    learned = lt.LatentTree(method="nj").fit(real, sample_weight=weights)
    alone = lt.LatentTree(method="nj").fit(real[:500], sample_weight=weights[:500])
    assert learned.score(real[:500]) == pytest.approx(alone.score(real[:500]))
    assert clone(learned).method == "nj"
    pipeline = make_pipeline(StandardScaler(), lt.LatentTree())
    assert pipeline.fit_transform(real).shape[0] == 1_000
    search = GridSearchCV(
        lt.LatentTree(random_state=0), {"method": ["chow_liu", "rg", "clnj"]}, cv=3
    ).fit(real)
    assert search.best_params_["method"] != "chow_liu"


@pytest.mark.parametrize("method", lt.search.METHODS)
def test_every_method(method, coded):
    learned = lt.LatentTree(method=method, random_state=0).fit(coded)
    assert np.isfinite(learned.score(coded))
    again = lt.LatentTree(method=method, random_state=0).fit(coded)
    assert again.tree_ == learned.tree_


def test_parameters_from_distances(real):
    plain = lt.LatentTree(refit=False).fit(real)
    fitted = lt.LatentTree().fit(real)
    assert plain.report_.method == "distances"
    assert fitted.score(real) > plain.score(real)


def test_progress_goes_to_standard_error_or_to_callbacks(coded, capsys):
    lt.LatentTree(verbose=1, n_starts=1).fit(coded)
    assert "log-likelihood" in capsys.readouterr().err
    pytest.importorskip("sklearn.callback")

    class Counter:
        steps = 0

        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context, *, metadata=None):
            if metadata and "log_likelihood" in metadata:
                self.steps += 1

    counter = Counter()
    lt.LatentTree(n_starts=1).set_callbacks(counter).fit(coded)
    assert counter.steps > 3


def test_a_notebook_shows_a_picture_and_a_table(real):
    learned = lt.LatentTree()
    assert "<svg" not in learned._repr_html_()
    html = learned.fit(real)._repr_html_()
    assert "log-likelihood" in html
    pytest.importorskip("matplotlib")
    assert "<svg" in html


def test_mistakes_are_named(real):
    with pytest.raises(ModelError, match="method is 'magic'"):
        lt.LatentTree(method="magic").fit(real)
    with pytest.raises(DataError, match="1 sample"):
        lt.LatentTree().fit(real[:1])
    learned = lt.LatentTree().fit(real)
    with pytest.raises(ValueError, match="expecting 8 features"):
        learned.score(real[:, :3])

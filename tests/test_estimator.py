"""The estimator: scikit-learn's own checks, and what a user does with it."""

from __future__ import annotations

import contextlib
import re
from unittest import SkipTest

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

import latentree as lt
from latentree import simulate
from latentree.distances import Statistics
from latentree.errors import DataError, DataWarning, ModelError
from latentree.models._encode import encode

LEARNERS = [
    *(lt.LatentTree(method) for method in lt.methods.METHODS if method != "refined"),  # the default
    lt.LatentTree("nj", hidden="gaussian", output="hidden+observed"),
]
CHECKED_ONCE = (  # they learn again what other checks learn, or nothing
    "transformer", "pipeline_consistency", "estimators_pickle", "positive_only_tag", "param",
    "attributes", "clone", "on_sparse_data", "f_contiguous", "readonly", "tags",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([lt.LatentTree(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: f"{one.method}-{one.hidden}")
def test_scikit_learn_checks_of_every_method(learner):
    whole = clone(learner).set_params(random_state=0)
    quick = clone(whole).set_params(max_steps=5)
    for estimator, check in estimator_checks_generator(quick):
        name = check.func.__name__
        # Weights are compared with repeated rows to seven digits, on 11 rows of 30 columns. With rg
        # one correlation goes to 1, where rounding is more than that: EM stops after five steps.
        if "weight_equivalence" in name and whole.method != "rg":
            estimator = clone(whole)
        if not any(part in name for part in CHECKED_ONCE):
            with contextlib.suppress(SkipTest):
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
    probabilities = learned.column_proba(coded, 0)
    turned = coded.copy()
    turned[:, 0] = 1 - turned[:, 0]
    np.testing.assert_allclose(learned.column_proba(turned, 0), probabilities)
    right = probabilities.argmax(axis=1) == coded[:, 0]
    assert right.mean() > max(coded[:, 0].mean(), 1 - coded[:, 0].mean()) + 0.05
    sparse = scipy.sparse.csr_array(coded)
    np.testing.assert_allclose(learned.column_proba(sparse, 0), probabilities)
    numbers = lt.LatentTree().fit(coded.astype(float) + np.arange(1_000)[:, None] / 7)
    with pytest.raises(AttributeError, match="no attribute 'column_proba'"):
        numbers.column_proba(coded, 0)


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


def uncounted(kind, odd, rows):
    """A table, and weights of which some are 0; the cells of these rows are odd."""
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=(80, 2)).repeat(3, axis=1)
    numbers = hidden + 0.6 * rng.normal(size=(80, 6))
    weights = rng.uniform(0.5, 2.0, 80)
    weights[rows] = 0.0
    if kind == "real":
        numbers[rows] = odd
        return pd.DataFrame(numbers).add_prefix("x"), weights
    states = np.clip(np.round(numbers + 1), 0, 3).astype(int)
    if kind == "states":
        states[rows] = [0, 1, 2, 3, 0, 1]
        return pd.DataFrame(states).astype(str).add_prefix("q"), weights
    numbers[rows] = odd
    states[rows] = [0, 1, 2, 3, 0, 1]
    frame = pd.DataFrame({f"x{j}": numbers[:, j] for j in range(3)})
    frame["label"] = np.array(list("abcd"))[states[:, 3]]
    frame["answer"], frame["other"] = states[:, 4], states[:, 5]
    return frame, weights


FAMILIES = [
    ("real", 1e9, {}),
    ("real", 1e15, {}),
    ("real", np.nan, {"method": "clrg", "max_steps": 0}),
    ("real", 1e15, {"family": "mixed", "method": "clrg"}),
    ("real", 1e15, {"hidden": "ranks", "method": "clrg"}),
    ("states", 0, {}),
    ("states", 0, {"method": "hclt"}),
    ("mixed", 1e15, {"method": "clrg"}),
    ("mixed", 1e300, {"method": "clrg", "hidden": "gaussian"}),
    ("mixed", 1e300, {"method": "clrg", "hidden": "ranks"}),
]


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize(("kind", "odd", "options"), FAMILIES)
def test_rows_of_weight_0_change_nothing(kind, odd, options):
    frame, weights = uncounted(kind, odd, [0, 17, 79])
    kinds = dict.fromkeys(["answer", "other"], "ordered") if kind == "mixed" else None
    options = {"max_steps": 3, "kinds": kinds, "random_state": 0, **options}
    known = weights > 0
    learned = lt.LatentTree(**options).fit(frame, sample_weight=weights)
    alone = lt.LatentTree(**options).fit(frame[known], sample_weight=weights[known])
    assert learned.tree_ == alone.tree_
    assert encode(learned.model_) == encode(alone.model_)
    score = learned.score(frame, sample_weight=weights)
    assert score == pytest.approx(alone.score(frame[known], sample_weight=weights[known]))


@pytest.fixture(scope="module")
def named(real, coded):
    """Tables with names, and with a gap in every column: numbers, labels, and both."""
    labels = pd.DataFrame(np.array(["no", "yes"], object)[coded[:200, :4]], columns=[*"abcd"])
    numbers = pd.DataFrame(real[:200, :4], columns=[*"efgh"])
    frames = {"numbers": numbers, "labels": labels, "both": pd.concat([labels, numbers], axis=1)}
    frames["aside"] = frames["both"].assign(unit="cm")  # a column that is set aside
    for frame in frames.values():
        for j in range(len(frame.columns)):
            frame.iloc[j, j] = None
    return frames


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "dict": lambda frame: {name: frame[name].tolist() for name in frame},
}


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("kind", ["numbers", "labels", "both", "aside"])
@pytest.mark.parametrize("make", FRAMES)
def test_columns_are_matched_by_name_in_any_order(named, kind, make, tmp_path):
    frame = named[kind]
    learned = lt.LatentTree("clnj", max_steps=50, random_state=0).fit(FRAMES[make](frame))
    backward = FRAMES[make](frame[list(frame.columns[::-1])])
    np.testing.assert_array_equal(learned.transform(backward), learned.transform(frame))
    np.testing.assert_array_equal(learned.score_samples(backward), learned.score_samples(frame))
    assert learned.score(backward) == learned.score(frame)
    assert learned.bic(backward) == learned.bic(frame)
    first = frame.columns[0]
    np.testing.assert_array_equal(
        learned.predict_column(backward, first), learned.predict_column(frame, first)
    )
    filled, expected = learned.impute(backward), learned.impute(frame)
    for name in frame:
        assert list(filled[name]) == expected[name].tolist()
    path = tmp_path / "backward.csv"
    frame[list(frame.columns[::-1])].to_csv(path, index=False)
    assert learned.score(path) == pytest.approx(learned.score(frame))


@pytest.mark.filterwarnings("ignore")
def test_impute_keeps_a_column_without_a_name():
    frame = pd.DataFrame({None: ["a", "b", None, "a", "b", "c"] * 3})
    filled = lt.LatentTree(random_state=0).fit(frame).impute(frame)
    assert filled.columns.equals(frame.columns)
    assert not filled.isna().any().any()


@pytest.mark.parametrize("make", FRAMES)
def test_columns_may_be_called_like_arguments(real, make):
    names = ["self", "cls", "name", "columns", "index", "data", "values", "mean"]
    frame = pd.DataFrame(real[:100], columns=names[: real.shape[1]])
    learned = lt.LatentTree("chow_liu").fit(FRAMES[make](frame))
    filled = learned.impute(FRAMES[make](frame.iloc[:, 4:]))
    assert list(filled if isinstance(filled, dict) else filled.columns) == names[4:] + names[:4]
    assert learned.sample(2, 0) is not None


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("kind", ["numbers", "labels", "both", "aside"])
@pytest.mark.parametrize("make", FRAMES)
def test_impute_fills_in_columns_that_are_lacking(named, kind, make, tmp_path):
    frame = named[kind]
    learned = lt.LatentTree("clnj", max_steps=50, random_state=0).fit(FRAMES[make](frame))
    lost = learned.model_.schema.names[1]
    lacking = frame.drop(columns=lost)
    empty = frame.assign(**{lost: pd.Series([None] * len(frame), dtype=frame[lost].dtype)})
    filled, expected = learned.impute(FRAMES[make](lacking)), learned.impute(empty)
    names = list(filled) if isinstance(filled, dict) else list(filled.columns)
    assert names == [*lacking.columns, lost]
    for name in names:
        assert list(filled[name]) == expected[name].tolist()
    path = tmp_path / "lacking.csv"
    lacking.to_csv(path, index=False)
    used = list(learned.model_.schema.names)
    assert learned.impute(path).tolist() == expected[used].to_numpy().tolist()


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


def test_parameters_from_distances(real):
    plain = lt.LatentTree(max_steps=0).fit(real)
    fitted = lt.LatentTree().fit(real)
    assert plain.report_.method == "distances"
    assert fitted.score(real) > plain.score(real)
    with pytest.raises(ModelError, match="max_steps=0 is not for discrete columns"):
        lt.LatentTree("clnj", max_steps=0).fit((real > 0).astype(int))
    with pytest.raises(ModelError, match="max_steps=0 takes parameters from distances, but lcm"):
        lt.LatentTree("lcm", max_steps=0).fit(real)


def test_progress_goes_to_standard_error_or_to_callbacks(coded, capsys):
    lt.LatentTree("clnj", verbose=1).fit(coded)
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
    lt.LatentTree().set_callbacks(counter).fit(coded)
    assert counter.steps > 3


def test_a_notebook_shows_a_picture_and_a_table(real):
    learned = lt.LatentTree()
    assert "<svg" not in learned._repr_html_()
    html = learned.fit(real)._repr_html_()
    assert "log-likelihood" in html
    assert "<td>model_.explore()</td>" in html
    said = learned.report_._repr_html_()
    assert said.startswith("<div><table>")
    assert f"{learned.report_.log_likelihood:,.1f}" in said
    assert "color:" not in said  # the notebook's own, dark or light
    pytest.importorskip("matplotlib")
    assert "<svg" in html


def test_mistakes_are_named(real):
    with pytest.raises(ModelError, match="method is 'magic'"):
        lt.LatentTree(method="magic").fit(real)
    with pytest.raises(ModelError, match=r"one of auto, gaussian, discrete, symmetric, mixed$"):
        lt.LatentTree(family="magic").fit(real)
    with pytest.raises(DataError, match="1 sample"):
        lt.LatentTree().fit(real[:1])
    learned = lt.LatentTree().fit(real)
    with pytest.raises(ValueError, match="expecting 8 features"):
        learned.score(real[:, :3])


# Files and parts --------------------------------------------------------------------------------


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setenv("LATENTREE_PART_CELLS", str(64 * 8))


def as_parquet(X, path, names=None):
    names = names or [f"v{j}" for j in range(X.shape[1])]
    pq.write_table(pa.table({name: X[:, j] for j, name in enumerate(names)}), path)
    return path


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", ["real", "missing", "coded"])
@pytest.mark.parametrize("method", ["clrg", "chow_liu"])
def test_a_path_is_fitted_like_the_table(kind, method, real, coded, tmp_path):
    X = {"real": real, "missing": real.copy(), "coded": coded}[kind]
    if kind == "missing":
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    path = as_parquet(X, tmp_path / "data.parquet")
    frame = pa.table({f"v{j}": X[:, j] for j in range(8)})
    ours = lt.LatentTree(method, random_state=0).fit(path)
    theirs = lt.LatentTree(method, random_state=0).fit(frame)
    assert ours.tree_.same_structure(theirs.tree_)
    assert list(ours.feature_names_in_) == list(theirs.feature_names_in_)
    assert ours.n_features_in_ == 8
    assert ours.report_.log_likelihood == pytest.approx(theirs.report_.log_likelihood, rel=1e-9)
    for each in (ours, theirs):
        for X_ in (path, str(path), frame):
            assert each.score(X_) == pytest.approx(theirs.score(frame), rel=1e-7)
    assert ours.bic(path) == pytest.approx(theirs.bic(frame))
    assert ours.aic(path) == pytest.approx(theirs.aic(frame))
    np.testing.assert_allclose(ours.score_samples(path), ours.score_samples(frame))
    if ours.n_hidden_:
        np.testing.assert_allclose(ours.transform(path), ours.transform(frame))
    np.testing.assert_allclose(ours.impute(path), ours.model_.impute(frame))


@pytest.mark.usefixtures("small_parts")
def test_methods_that_score_models_take_files_too(coded, tmp_path):
    path = as_parquet(coded, tmp_path / "data.parquet")
    learned = lt.LatentTree("lcm", n_states=2, random_state=0).fit(path)
    theirs = lt.LatentTree("lcm", n_states=2, random_state=0).fit(coded)
    assert learned.score(path) == pytest.approx(theirs.score(coded), rel=1e-6)


def summed(X: np.ndarray, step: int) -> Statistics:
    """Statistics of batches, added up."""
    first = Statistics.of(lt.as_table(X[:step]))
    later = [lt.as_table(X[start : start + step]) for start in range(step, len(X), step)]
    return sum((Statistics.of(batch, like=first) for batch in later), first)


def test_models_are_learned_from_statistics_that_add_up(real, coded):
    for X, step in ((real, 130), (coded[:, :4], 600)):
        model, report = lt.methods.learn_model(summed(X, step), random_state=0)
        whole = lt.LatentTree(random_state=0).fit(X)
        assert model.tree.same_structure(whole.tree_)
        assert report.n_samples == len(X)
        assert model.log_likelihood(X).mean() == pytest.approx(whole.score(X), rel=1e-5)


def test_statistics_say_what_they_cannot_tell(real):
    X = real.copy()
    X[0, 0] = np.nan
    statistics = summed(X, 500)
    with pytest.raises(DataError, match="statistics do not suffice"):
        lt.methods.learn_model(statistics, random_state=0)
    tree = lt.structure.cl_grouping(lt.information_distances(statistics))
    assert tree.same_structure(lt.LatentTree("clrg").fit(X).tree_)


# What new users run into ------------------------------------------------------------------------


def test_transform_always_gives_a_pipeline_features():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    frame["b"] += frame["a"]
    frame.iloc[0, 0] = np.nan
    frame["color"] = rng.choice(["red", "green", "blue"], 200)
    plain = lt.LatentTree("chow_liu", "gaussian").fit(frame[["a", "b"]])
    for output in ("hidden", "hidden+errors"):
        plain.set_params(output=output)
        with pytest.warns(DataWarning, match=r"without hidden.*output='hidden\+observed'"):
            assert plain.transform(frame[["a", "b"]]).shape == (200, 0)
        assert plain.get_feature_names_out().size == 0
    with (
        pytest.raises(ValueError, match="column 'b' is not in the data"),
        pytest.warns(DataWarning),
    ):
        plain.transform(frame[["a", "c"]])
    learned = lt.LatentTree("lcm", n_states=2, output="hidden+observed").fit(frame)
    out = learned.transform(frame)
    names = learned.get_feature_names_out().tolist()
    hidden = ["h1=0", "h1=1"]
    assert names == [*hidden, "a", "b", "c", "color=blue", "color=green", "color=red"]
    assert np.isfinite(out).all()
    assert np.array_equal(out[1:, 3], frame["b"][1:])
    assert np.array_equal(out[:, 7] == 1.0, frame["color"] == "red")
    with pytest.raises(ModelError, match="output is 'all'"):
        lt.LatentTree(output="all").fit(frame)
    with pytest.raises(ModelError, match="unseen is 'ignore', but must be"):
        lt.LatentTree(unseen="ignore").fit(frame)


@pytest.mark.filterwarnings("ignore:no dependence was found")
def test_every_fold_of_a_pipeline_has_features():
    rng = np.random.default_rng(0)
    blocks = rng.normal(size=(300, 1)) + rng.normal(size=(300, 6))
    blocks[150:] = rng.normal(size=(150, 6))  # where nothing is hidden
    folds = [(np.arange(0, 150), np.arange(150, 300)), (np.arange(150, 300), np.arange(0, 150))]
    pipeline = make_pipeline(lt.LatentTree(random_state=0), LinearRegression())
    with pytest.warns(DataWarning, match="transform returns the columns themselves"):
        scores = cross_val_score(pipeline, blocks, blocks[:, 0], cv=folds)
    assert np.isfinite(scores).all()
    both, alone = (clone(pipeline[0]).fit(blocks[rows]) for rows, _ in folds)
    assert both.n_hidden_ > 0
    features = both.transform(blocks)
    np.testing.assert_array_equal(features, both.set_params(output="hidden").transform(blocks))
    assert alone.n_hidden_ == 0
    with pytest.warns(DataWarning, match="the columns themselves"):
        np.testing.assert_array_equal(alone.transform(blocks), blocks)
    assert alone.get_feature_names_out().tolist() == [f"x{j}" for j in range(6)]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float32"])
def test_sparse_columns_of_any_type_beside_others(coded, dtype):
    learner = lt.LatentTree("lcm", n_states=2, max_steps=3, random_state=0)
    columns = ColumnTransformer([("hidden", learner, [0, 2, 4, 6]), ("kept", "passthrough", [7])])
    expected = columns.fit_transform(coded)
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix):
        found = columns.fit_transform(form(coded.astype(dtype)))
        found = found.toarray() if scipy.sparse.issparse(found) else found
        np.testing.assert_allclose(found, expected)
        assert columns.get_feature_names_out()[0] == "hidden__h1=0"


@pytest.fixture(scope="module")
def tables(real, coded):
    """A table of every family, as frames."""
    labels = np.array(["no", "yes"], object)[coded[:200]]
    frames = {
        "gaussian": pd.DataFrame(real[:200]),
        "discrete": pd.DataFrame(labels),
        "mixed": pd.DataFrame(labels).assign(height=real[:200, 0], weight=real[:200, 1]),
    }
    return {family: frame.rename(columns=str) for family, frame in frames.items()}


WRONG_VALUES = [
    ("n_states", "x"), ("n_states", 1.5), ("n_states", 1), ("n_states", True), ("n_states", [2]),
    ("max_steps", -1), ("max_steps", 2.5), ("max_steps", None),
    ("max_states", 0), ("max_states", 2.0),
    ("prior_weight", -1), ("prior_weight", "x"), ("prior_weight", np.nan), ("prior_weight", np.inf),
    ("time_limit", -1), ("time_limit", "x"), ("time_limit", np.nan),
    ("criterion", "best"), ("criterion", -1.0), ("criterion", np.nan), ("criterion", True),
    ("n_hidden", -1), ("n_hidden", 1.5),
    ("n_trees", 0), ("n_trees", "few"), ("n_trees", 2.0),
    ("start", 3), ("start", ["nj", 3]),
    ("hidden", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG_VALUES)
@pytest.mark.parametrize("family", ["gaussian", "discrete", "mixed"])
def test_values_of_options_are_checked_for_every_family(tables, family, name, value):
    method = lt.methods.taken_by(name)[0]
    learner = lt.LatentTree(method, **{name: value})
    with pytest.raises(ModelError, match=f"^{name} is {re.escape(repr(value))}, but must be "):
        learner.fit(tables[family])
    assert not hasattr(learner, "model_")


def test_every_option_is_checked_somewhere_above():
    assert {name for name, _ in WRONG_VALUES} == set(lt.methods.OPTIONS)


@pytest.mark.parametrize("name", lt.methods.OPTIONS)
def test_defaults_are_values_that_options_may_have(name):
    option = lt.methods.OPTIONS[name]
    assert option.allows(option.default)
    assert not option.allows(object())


def test_numbers_of_numpy_are_numbers(coded):
    given = {"max_steps": np.int64(9), "prior_weight": np.float32(0.5)}
    plain = {"max_steps": 9, "prior_weight": 0.5}
    theirs = lt.LatentTree("clnj", random_state=0, **given).fit(coded)
    ours = lt.LatentTree("clnj", random_state=0, **plain).fit(coded)
    assert theirs.score(coded) == ours.score(coded)


@pytest.mark.parametrize("n_trees", [201, 10**30])
def test_more_trees_than_rows_are_refused_before_learning(tables, n_trees):
    with pytest.raises(ModelError, match=f"n_trees is {n_trees}, but there are 200 rows"):
        lt.LatentTree("clrg", n_trees=n_trees).fit(tables["discrete"])


@pytest.mark.parametrize("method", ["clnj", "lcm", "hclt"])
@pytest.mark.parametrize("family", ["discrete", "mixed"])
def test_more_states_than_rows_are_refused_before_learning(tables, family, method):
    with pytest.raises(ModelError, match=r"n_states is 100000, but there are 200 rows"):
        lt.LatentTree(method, n_states=100_000).fit(tables[family])


@pytest.mark.parametrize("method", ["clrg", "nj", "lcm", "bin"])
def test_options_that_a_method_does_not_take_are_errors(method, real):
    with pytest.raises(ModelError, match="n_hidden"):
        lt.LatentTree(method, n_hidden=2).fit(real)


def test_predictions_leave_the_column_itself_aside(real):
    frame = pd.DataFrame(real, columns=[f"v{j}" for j in range(real.shape[1])])
    learned = lt.LatentTree("nj").fit(frame)
    masked = frame.assign(v2=np.nan)
    expected = learned.impute(masked)["v2"]
    for given in (frame, masked, frame.drop(columns="v2")):
        assert np.allclose(learned.predict_column(given, "v2"), expected)
    assert learned.predict(frame).shape == (len(frame), learned.n_hidden_)
    assert np.allclose(learned.predict_column(frame, "h1"), learned.predict(frame)[:, 0])
    with pytest.raises(AttributeError, match="predict_proba"):
        learned.predict_proba(frame)
    with pytest.raises(AttributeError, match="column_proba"):
        learned.column_proba(frame, "v2")


def test_rows_have_hidden_states_as_those_of_mixtures_have_classes(coded):
    classes = lt.LatentTree("lcm", n_states=2, random_state=0).fit(coded)
    shares = classes.predict_proba(coded)
    assert shares.shape == (1_000, 2)
    np.testing.assert_array_equal(shares, classes.transform(coded))
    np.testing.assert_array_equal(classes.predict(coded), shares.argmax(axis=1))
    several = lt.LatentTree("nj", max_steps=5).fit(coded)
    assert several.n_hidden_ > 1
    np.testing.assert_array_equal(several.predict_proba(coded), several.transform(coded))
    expected = several.transform(coded).reshape(1_000, -1, 2).argmax(axis=2)
    np.testing.assert_array_equal(several.predict(coded), expected)
    alone = lt.LatentTree("chow_liu").fit(coded)
    np.testing.assert_array_equal(alone.predict(coded), np.zeros(1_000))
    assert not hasattr(alone, "predict_proba")


def test_the_old_spelling_of_a_column_warns_and_works(coded):
    learned = lt.LatentTree("rg", max_steps=5).fit(coded)
    with pytest.warns(FutureWarning, match=r"write predict_column\(X, 'x0'\)"):
        old = learned.predict(coded, "x0")
    np.testing.assert_array_equal(old, learned.predict_column(coded, "x0"))
    with pytest.warns(FutureWarning, match=r"write column_proba\(X, 0\)"):
        shares = learned.predict_proba(coded, variable=0)
    np.testing.assert_array_equal(shares, learned.column_proba(coded, 0))


@pytest.mark.parametrize("n_columns", [1, 2])
def test_classes_of_fewer_than_three_columns_are_left_out(coded, n_columns):
    learned = lt.LatentTree("lcm", n_states=2).fit(coded[:, :n_columns])
    assert (learned.n_hidden_, learned.tree_.n_edges) == (0, n_columns - 1)


def test_predictions_of_mixed_tables():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 300)
    frame = pd.DataFrame(rng.normal(group[:, None] * 3.0, 1.0, (300, 3)), columns=list("abc"))
    frame["word"] = np.where(rng.random(300) < 0.9, group, 1 - group).astype(str)
    learned = lt.LatentTree("lcm", n_states=2).fit(frame)
    shares = learned.column_proba(frame.drop(columns="word"), "word")
    assert np.allclose(shares.sum(axis=1), 1.0)
    labels = np.array(learned.model_.schema.labels[3])
    predicted = learned.predict_column(frame.drop(columns="word"), "word")
    assert predicted.tolist() == labels[shares.argmax(axis=1)].tolist()
    assert (predicted == frame["word"]).mean() > 0.8
    with pytest.raises(ModelError, match="'a' holds numbers"):
        learned.column_proba(frame, "a")
    with pytest.raises(DataError, match="the model's column 'b' is not in the data"):
        learned.predict_column(frame.drop(columns="b"), "a")


def test_reports_are_one_line(real):
    for method in ("nj", "refined"):
        text = repr(lt.LatentTree(method).fit(real).report_)
        assert "\n" not in text
        assert len(text) < 200
        assert "log-likelihood" in text


def test_fit_keeps_its_signature():
    import typing

    assert typing.get_type_hints(lt.LatentTree.fit)["return"] is lt.LatentTree


def test_a_given_number_of_hidden_variables_is_no_gain(real):
    said = []
    found = lt.search.refined(
        real, start="nj", n_hidden=1, progress=lambda step, score: said.append(score)
    )
    assert found.model.tree.n_hidden == 1
    scale = abs(found.report.log_likelihood)
    assert all(abs(gain) < scale for _, gain in found.report.gains().values())
    assert all(score == -np.inf or abs(score) < 2 * scale for score in said)


def test_progress_never_falls(real, capsys):
    for method in ("refined", "clrg"):
        holes = np.where(np.random.default_rng(0).random(real.shape) < 0.1, np.nan, real)
        lt.LatentTree(method, verbose=1, random_state=0).fit(holes)
        said = capsys.readouterr().err.splitlines()
        values = [float(line.split()[-1].replace(",", "")) for line in said]
        assert values
        assert values == sorted(values)


def test_the_docstring_lists_every_parameter_once_in_plain_words():
    section = lt.LatentTree.__doc__.partition("Attributes\n")[0].partition("Parameters\n")[2]
    listed = [line.partition(" :")[0] for line in section.splitlines() if line[:1].isalpha()]
    assert sorted(listed) == sorted(lt.LatentTree().get_params())
    assert "command line" not in section
    assert "Largest number of steps of EM;" in section

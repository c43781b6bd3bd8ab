"""Gaussian trees behind margins: the grid against integrals, margins, queries, files."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

import latentree as lt
from latentree.errors import LatentTreeError, ModelError
from latentree.inference import NormalMargin, Odds, RankMargin, Thresholds
from latentree.models import CopulaTreeModel, turned_correlations

FINE = np.linspace(-8.0, 8.0, 1601)
WEIGHT = stats.norm.pdf(FINE) * (FINE[1] - FINE[0])


def shown(margin, cell, rho):
    """P(cell | z) at the points of a fine line."""
    if np.isnan(cell):
        return np.ones(FINE.size)
    if isinstance(margin, Odds):
        odds = np.exp(margin.intercepts + np.outer(FINE, margin.slopes))
        return odds[:, int(cell)] / odds.sum(axis=1)
    if isinstance(margin, Thresholds):
        ends = np.concatenate([[-np.inf], margin.thresholds, [np.inf]])
        low, high = ends[int(cell)], ends[int(cell) + 1]
    else:
        half = 0.5 * margin.resolution
        low, high = margin.score(np.array([cell - half, cell + half]))
    spread = np.sqrt(1 - rho**2)
    return ndtr((high - rho * FINE) / spread) - ndtr((low - rho * FINE) / spread)


def naive_log_likelihood(model, rows):
    """Integrate over one hidden variable, or over two."""
    tree, out = model.tree, []
    hidden = tree.hidden.tolist()
    for row in rows:
        at = {h: np.ones(FINE.size) for h in hidden}
        for column, cell in enumerate(row):
            at[int(tree.parent[column])] *= shown(
                model.margins[column], cell, model.correlations[column]
            )
        if len(hidden) == 1:
            out.append(np.log(WEIGHT @ at[hidden[0]]))
            continue
        top, below = (hidden[1], hidden[0]) if tree.parent[hidden[0]] >= 0 else hidden
        rho = model.correlations[below]
        spread = np.sqrt(1 - rho**2)
        step = stats.norm.pdf((FINE - rho * FINE[:, None]) / spread) / spread
        message = step @ at[below] * (FINE[1] - FINE[0])
        out.append(np.log(WEIGHT @ (at[top] * message)))
    return np.array(out)


def star(rho, margins, **options):
    m = len(margins)
    return CopulaTreeModel(lt.Tree([m] * m + [-1], n_observed=m), [*rho, 0.0], margins, **options)


@given(seed=st.integers(0, 10_000), highest=st.sampled_from([0.5, 0.9, 0.97]))
@example(seed=80, highest=0.5)  # a rare answer, behind which the hidden variable is large
@settings(max_examples=8)
def test_the_grid_is_as_good_as_numerical_integration(seed, highest):
    rng = np.random.default_rng(seed)
    margins = []
    for _ in range(5):
        k = int(rng.integers(2, 7))
        margins.append(Thresholds(np.sort(rng.normal(0.0, 1.0, k)) + 1e-3 * np.arange(k)))
    tree = lt.simulate.double_star(6)
    margins.append(Thresholds([0.3]))
    rho = rng.uniform(0.3, highest, tree.n_nodes) * rng.choice([-1, 1], tree.n_nodes)
    model = CopulaTreeModel(tree, rho, margins)
    rows = model.sample(6, rng)
    rows[0, 1] = np.nan
    table = lt.as_table(rows, schema=model.schema)
    off = model.log_likelihood(table) - naive_log_likelihood(model, table.values)
    assert np.abs(off).max() < 1e-4


MIXED = [
    Thresholds([-0.5, 0.4, 1.2]),
    NormalMargin(10.0, 2.0, 0.5),
    Odds([0.0, 0.3, -0.5], [0.0, 1.5, -1.0]),
    RankMargin([0.5, 1.5, 2.5, 4.5], [-0.4, 0.3, 0.8, 1.6], ((0.0, 0.0), (1.5, 0.2)), 1.0, "count"),
]


def mixed_model():
    return star(
        [0.8, -0.6, 0.0, 0.7], MIXED, labels=[["a", "b", "c", "d"], (), ["x", "y", "z"], ()]
    )


def test_margins_of_all_kinds_have_the_likelihood_of_the_integral():
    model = mixed_model()
    rows = [[0, 9.5, 1, 0], [3, 11.0, 2, 6], [1, np.nan, 0, np.nan], [np.nan, 14.0, np.nan, 2]]
    table = lt.data.Table(np.array(rows), model.schema)
    assert model.log_likelihood(table) == pytest.approx(
        naive_log_likelihood(model, table.values), abs=1e-3
    )
    assert model.log_likelihood(table)[0] == pytest.approx(
        model.log_likelihood([["a", 9.5, "y", 0]])[0]
    )


def test_nothing_depends_on_the_root():
    model = mixed_model()
    rows = lt.as_table(model.sample(5, 0), schema=model.schema)
    for root in range(model.tree.n_nodes):
        tree = model.tree.rerooted(root)
        rho = turned_correlations(model.tree, model.correlations, tree)
        rho[tree.parent == 2] = rho[2] = 0.0  # the labels' odds say it
        other = CopulaTreeModel(tree, rho, MIXED, model.schema.labels)
        assert other.log_likelihood(rows) == pytest.approx(model.log_likelihood(rows))
        assert other.n_parameters == model.n_parameters
        assert other.loadings() == model.loadings()
        turned = CopulaTreeModel(tree, -rho, [*MIXED[:2], Odds([0.0, 0.3, -0.5], [0.0, -1.5, 1.0]),
                                              MIXED[3]], model.schema.labels)  # fmt: skip
        assert turned.oriented().log_likelihood(rows) == pytest.approx(model.log_likelihood(rows))
        drawn = other.sample(10_000, 1, hidden=True)
        high = drawn[:, 2] == "y"
        weight = WEIGHT * shown(MIXED[2], 1, 0.0)
        expected = weight @ FINE / weight.sum()
        assert drawn[high, 4].astype(float).mean() == pytest.approx(expected, abs=0.05)


def test_labels_that_stand_alone_are_drawn_as_often_as_they_are_likely():
    odds = Odds([0.0, 0.3, -0.5], [0.0, 2.5, -3.0])
    model = CopulaTreeModel(lt.Tree([-1]), [0], [odds])
    share = np.bincount(model.sample(20_000, 0)[:, 0].astype(int)) / 20_000
    assert share == pytest.approx(model.marginal("x0"), abs=0.015)  # four standard errors
    assert np.exp(model.log_likelihood([[0], [1], [2]])) == pytest.approx(model.marginal("x0"))


def test_scores_are_posterior_means_with_their_standard_errors():
    model = mixed_model()
    row = [["b", 8.5, "z", 1]]
    cells = lt.as_table(row, schema=model.schema).values[0]
    weight = WEIGHT.copy()
    for column, margin in enumerate(model.margins):
        weight *= shown(margin, cells[column], model.correlations[column])
    weight /= weight.sum()
    mean, variance = model.posterior(row)
    assert mean[0, 0] == pytest.approx(weight @ FINE, abs=1e-3)
    assert variance[0, 0] == pytest.approx(weight @ FINE**2 - (weight @ FINE) ** 2, abs=1e-3)


def test_conditional_distributions():
    model = mixed_model()
    given_hidden = model.conditional("x0", {"h1": 0.77})
    assert given_hidden == pytest.approx(MIXED[0].table(np.array([0.77]), 0.8)[0], abs=1e-6)
    assert model.conditional("x1", {"h1": 0.77}).mean == pytest.approx(10 - 0.6 * 2 * 0.77)
    joint = [[np.exp(model.log_likelihood([[a, None, b, None]])[0]) for b in "xyz"] for a in "abcd"]
    assert np.sum(joint) == pytest.approx(1.0)
    assert model.conditional("x0", {"x2": "y"}) == pytest.approx(
        np.array(joint)[:, 1] / np.sum(joint, axis=0)[1]
    )
    assert model.conditional("h1", {"h1": 1.0}) == (1.0, 0.0)
    assert model.marginal("h1") == (0.0, 1.0)
    with pytest.raises(ModelError, match="must be from"):
        model.conditional("x0", {"h1": 9.0})


def test_numbers_beside_answers_have_medians_or_means():
    skewed = RankMargin([1.0, 2.0, 5.0, 30.0], [-1.0, 0.0, 0.7, 1.8], resolution=0.01)
    normal = NormalMargin(10.0, 2.0, 0.01)
    rho = [0.8, 0.7, 0.75, -0.6]
    model = star(rho, [skewed, normal, Thresholds([-0.5, 0.5]), MIXED[3]])
    row = [[None, None, 2, 4]]
    weight = WEIGHT * shown(model.margins[2], 2, 0.75) * shown(model.margins[3], 4, -0.6)
    weight /= weight.sum()
    for column, margin in enumerate((skewed, normal)):
        for evidence, given_row in (({}, WEIGHT), ({"x2": 2, "x3": 4}, weight)):
            # The distribution of y, and its quantiles, on a fine line.
            spread = np.sqrt(1 - rho[column] ** 2)
            y = stats.norm.pdf((FINE[:, None] - rho[column] * FINE) / spread) @ given_row
            below = np.cumsum(y) / y.sum()
            low, middle, high = margin.value(np.interp(ndtr([-1.0, 0.0, 1.0]), below, FINE))
            mean = margin.value(np.array([FINE @ y / y.sum()]))[0]
            found = model.conditional(column, evidence)
            assert found.mean == pytest.approx(mean if column else middle, rel=0.02)
            if not column:
                assert np.sqrt(found.variance) == pytest.approx(0.5 * (high - low), rel=0.02)
        assert model.marginal(column) == pytest.approx(model.conditional(column), rel=1e-3)
        filled, spread = model.imputed(row)
        assert (filled[0, column], spread[0, column] ** 2) == pytest.approx(found)
        posterior = model.posterior(row, [column])
        assert (posterior.mean[0, 0], posterior.variance[0, 0]) == pytest.approx(found)


@pytest.mark.parametrize("resolution", [0.0, 0.01])
def test_a_number_that_is_given_is_known(resolution):
    skewed = RankMargin([1.0, 2.0, 5.0], [-1.0, 0.0, 0.7], resolution=resolution)
    model = star([0.8, 0.7, -0.6], [skewed, NormalMargin(10.0, 2.0, resolution), skewed])
    mean, variance = model.posterior([[1.5, 11.0, None], [None, 9.0, 4.5]], [0, 1, 2, "h1"])
    assert mean[0, :2].tolist() == [1.5, 11.0]
    assert mean[1, 1:3].tolist() == [9.0, 4.5]
    assert (variance == 0).tolist() == [[True, True, False, False], [False, True, True, False]]
    found = model.conditional("x2", {"x0": 1.5, "x1": 11.0})
    assert (mean[0, 2], variance[0, 2]) == pytest.approx(found)
    assert mean[1, 0] == pytest.approx(model.impute([[None, 9.0, 4.5]])[0, 0])


def test_rows_that_are_drawn_have_the_margins():
    model = mixed_model()
    drawn = model.sample(20_000, 1, hidden=True)
    first = np.array([(drawn[:, 0] == label).mean() for label in "abcd"])
    assert first == pytest.approx(model.marginal("x0"), abs=0.015)
    third = np.array([(drawn[:, 2] == label).mean() for label in "xyz"])
    assert third == pytest.approx(model.marginal("x2"), abs=0.015)
    numbers = drawn[:, 1].astype(float)
    assert numbers.mean() == pytest.approx(10.0, abs=0.06)
    assert np.unique(numbers * 2 % 1).tolist() == [0.0]
    assert np.corrcoef(numbers, drawn[:, 4].astype(float))[0, 1] == pytest.approx(-0.6, abs=0.02)
    counts = drawn[:, 3].astype(float)
    assert (counts >= 0).all()
    assert (counts == np.rint(counts)).all()
    assert (counts == 0).mean() == pytest.approx(ndtr(-0.4), abs=0.015)


def test_missing_cells_are_filled_in_with_labels_and_numbers():
    model = mixed_model()
    filled = model.impute([["d", None, None, None], [None, 5.0, "y", None]])
    assert filled[0, 0] == "d"
    assert filled[0, 1] < 10.0
    assert filled[0, 2] in "xyz"
    assert filled[1, 0] == "d"
    assert filled[1, 3] == int(filled[1, 3])
    spread = model.imputed([["d", None, None, None]])[1][0]
    assert spread[0] == 0.0
    assert (spread[1:] > 0).all()
    complete = model.complete([["d", None, "y", None]])
    assert complete.shape == (1, 5)
    assert abs(complete[0, 4]) <= 5.3
    assert model.sample_hidden([["d", 9.0, "y", 1]] * 2000, 0).mean() == pytest.approx(
        model.posterior([["d", 9.0, "y", 1]]).mean[0, 0], abs=0.06
    )
    labels = model.posterior([["d", 9.0, "y", 1]], ["x0"])
    assert labels["x0"][0] == pytest.approx([0, 0, 0, 1])


def test_a_saved_model_loads_equal(tmp_path):
    models = [
        mixed_model(),
        CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.5], [Thresholds([0.0]), Thresholds([-1.0, 1.0])]),
        CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.5], [RankMargin([0, 1, 3], [-1, 0, 1])] * 2),
    ]
    for model in models:
        model.save(tmp_path / "model.json")
        again = lt.load(tmp_path / "model.json")
        assert again.schema == model.schema
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    text = (tmp_path / "model.json").read_text()
    for wrong, message in [
        (text.replace('"scores": [-1.0, 0.0, 1.0]', '"scores": [1.0, 0.0, 1.0]'), "ascend"),
        (text.replace('"resolution": 0.0', '"resolution": -1.0'), "resolution"),
        (text.replace('"tails": [[1.0, 0.0], [1.0, 0.0]]', '"tails": [[1.0, 0.0]]'), "tails"),
    ]:
        (tmp_path / "wrong.json").write_text(wrong)
        with pytest.raises(LatentTreeError, match=message):
            lt.load(tmp_path / "wrong.json")


def test_numbers_with_densities_are_exact():
    rng = np.random.default_rng(0)
    margins = [RankMargin.of(np.exp(rng.standard_normal(500))) for _ in range(3)]
    tree = lt.Tree([1, -1, 1], n_observed=3)  # columns may be inner nodes
    model = CopulaTreeModel(tree, [0.6, 0, -0.7], margins)
    x = model.sample(5, 0)
    z = np.column_stack([margin.score(x[:, j]) for j, margin in enumerate(margins)])
    covariance = np.array([[1, 0.6, -0.42], [0.6, 1, -0.7], [-0.42, -0.7, 1]])
    slopes = sum(margin.log_slope(x[:, j]) for j, margin in enumerate(margins))
    density = stats.multivariate_normal(np.zeros(3), covariance).logpdf(z) + slopes
    assert model.log_likelihood(x) == pytest.approx(density)
    x[0, 1] = np.nan
    filled = model.impute(x)
    assert filled[0, 1] > 0
    assert model.conditional("x0", {"x1": float(x[1, 1])}).mean == pytest.approx(
        margins[0].value(np.array([0.6 * z[1, 1]]))[0]
    )


@given(st.integers(0, 100), st.sampled_from([50, 300, 3_000]))
@settings(max_examples=20)
def test_a_rank_margin_is_a_distribution(seed, n):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(1.5, n)
    margin = RankMargin.of(x)
    y = np.linspace(-4.0, 4.0, 81)
    assert margin.score(margin.value(y)) == pytest.approx(y, abs=1e-6)
    assert (np.diff(margin.value(y)) > 0).all()
    # The slope is the derivative, so that the density integrates to 1.
    at = margin.value(np.array([-3.5, -1.1, 0.3, 2.6, 3.9]))
    h = 1e-6 * np.maximum(np.abs(at), 1e-3)
    slope = (margin.score(at + h) - margin.score(at - h)) / (2 * h)
    assert np.exp(margin.log_slope(at)) == pytest.approx(slope, rel=1e-3)


def test_a_rank_margin_does_not_mind_outliers():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2_000)
    clean = RankMargin.of(x).score(x)
    x[:20] = 20.0 * rng.choice([-1.0, 1.0], 20)
    dirty = RankMargin.of(x).score(x)
    assert np.abs(dirty).max() < 6.0
    assert np.abs(dirty[20:] - clean[20:]).max() < 1.5  # of the largest values, now in the middle
    inner = np.abs(clean[20:]) < 1.5
    assert np.abs(dirty[20:] - clean[20:])[inner].max() < 0.1


def test_counts_have_all_probability():
    counts = np.random.default_rng(0).negative_binomial(1, 0.3, 4_000).astype(float)
    model = CopulaTreeModel(
        lt.Tree([-1]), [0], [RankMargin.of(counts, resolution=1.0, kind="count")]
    )
    p = np.exp(model.log_likelihood(lt.data.Table(np.arange(400.0)[:, None], model.schema)))
    assert p.sum() == pytest.approx(1.0, abs=1e-3)
    assert p[0] == pytest.approx((counts == 0).mean(), abs=2e-3)


def test_what_factor_analysts_read():
    tree = lt.Tree([6, 6, 6, 7, 7, 7, 7, -1], n_observed=6)
    rho = [-0.8, -0.6, 0.5, 0.9, 0.7, 0.6, 0.4, 0]
    model = CopulaTreeModel(tree, rho, [Thresholds([-1.0, 0.0, 1.0])] * 6)
    loadings = model.loadings()
    assert loadings["loading"] == pytest.approx([0.8, 0.6, -0.5, 0.9, 0.7, 0.6])
    assert loadings["factor"] == ["h1"] * 3 + ["h2"] * 3
    assert loadings["communality"] == pytest.approx(np.square(loadings["loading"]))
    factors = model.factors()
    assert factors["h1"] == pytest.approx([1.0, -0.4])
    assert factors["n_variables"] == [3, 3]
    drawn = model.sample(4_000, 5, hidden=True)
    scores = model.posterior(drawn[:, :6]).mean
    true = [np.corrcoef(scores[:, k], drawn[:, 6 + k])[0, 1] ** 2 for k in range(2)]
    assert factors["reliability"] == pytest.approx(true, abs=0.03)
    assert model.thresholds()["from"][:3] == [0, 1, 2]
    named = model.rename({"h1": "calm"})
    assert named.loadings()["factor"][0] == "calm"


def test_what_is_no_model_is_refused():
    answers = [Thresholds([0.0])] * 3
    with pytest.raises(ModelError, match="leaves"):
        CopulaTreeModel(lt.Tree([1, -1, 1]), [0.5, 0, 0.5], answers)
    for other in (MIXED[2], MIXED[1], MIXED[3]):  # labels, a real, a count
        for pair in ([answers[0], other], [other, answers[0]], [other, other]):
            with pytest.raises(ModelError, match=r"'x[01]' has no ordered levels, so it cannot be"):
                CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.5], pair)
    with pytest.raises(ModelError, match="as many margins"):
        CopulaTreeModel(lt.Tree([-1]), [0], answers)
    with pytest.raises(ModelError, match="ascend"):
        Thresholds([1.0, 0.0])
    with pytest.raises(ModelError, match="strictly between"):
        star([1.5, 0.5, 0.5], answers)
    with pytest.raises(ModelError, match="labels"):
        star([0.5, 0.5, 0.5], answers, labels=[["a"], ["a", "b"], ["a", "b"]])


def test_a_value_far_off_the_scale_has_a_score_without_a_warning():
    rng = np.random.default_rng(0)
    X = (rng.lognormal(size=(200, 4)) * np.exp(rng.normal(size=(200, 1)))).round(2)
    X[:, 0] = np.digitize(X[:, 0], [0.5, 1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned = lt.LatentTree("clnj", hidden="normal", random_state=0, kinds={"x0": "ordered"})
        learned.fit(pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]))
        far = X[:2].copy()
        far[:, 1] = 1e300
        scores = learned.score_samples(pd.DataFrame(far, columns=["x0", "x1", "x2", "x3"]))
    assert (scores < -100.0).all()

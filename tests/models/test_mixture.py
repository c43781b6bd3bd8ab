"""Mixtures of trees against their definition: sums over components of weighted densities."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import latentree as lt
from latentree.errors import DataError, FileError, ModelError
from latentree.inference import NormalMargin, RankMargin, Thresholds
from latentree.models import CopulaTreeModel, TreeMixture, TreeModel, component_of

TREES = [lt.simulate.double_star(4), lt.simulate.latent_class(4), lt.Tree([-1, 0, 1, 2])]
WEIGHTS = np.array([0.5, 0.3, 0.2])


def gaussian(seed: int = 0) -> TreeMixture:
    rng = np.random.default_rng(seed)
    parts = []
    for tree in TREES:
        model = lt.simulate.random_gaussian_model(tree, rng)
        means, scales = rng.normal(size=4), rng.uniform(0.5, 2.0, 4)
        parts.append(lt.GaussianTreeModel(tree, model.correlations, means, scales))
    return TreeMixture(parts, WEIGHTS)


def discrete(seed: int = 0) -> TreeMixture:
    rng = np.random.default_rng(seed)
    parts = [lt.simulate.random_discrete_model(tree, 2, rng) for tree in TREES]
    return TreeMixture(parts, WEIGHTS)


def mixed() -> TreeMixture:
    star = lt.Tree([3, 3, 3, -1], n_observed=3, names=["age", "visits", "insured"])
    parts = [
        lt.MixedTreeModel(
            star,
            [
                lt.GaussianEmission([30.0 + shift, 60.0], [10.0, 10.0], resolution=1.0),
                lt.CountEmission([1.0, 6.0 + shift]),
                [[0.5, 0.5], [0.1, 0.9]],
                [0.7, 0.3],
            ],
        )
        for shift in (0.0, 5.0)
    ]
    return TreeMixture(parts, [0.4, 0.6])


def joint_table(model: TreeMixture) -> np.ndarray:
    """Probability of every row of 0 and 1, by the components."""
    rows = np.array(list(itertools.product([0, 1], repeat=4)))
    parts = [np.exp(part.log_likelihood(rows)) for part in model.components]
    return np.array(model.weights @ np.array(parts)).reshape((2,) * 4)


@pytest.mark.parametrize("model", [gaussian(), discrete(), mixed()], ids=["real", "states", "both"])
def test_a_mixture_is_a_tree_model(model):
    assert isinstance(model, TreeModel)
    for name in (name for name in vars(TreeModel) if inspect.isfunction(vars(TreeModel)[name])):
        if not name.startswith("_"):
            wanted = inspect.signature(getattr(TreeModel, name)).parameters.values()
            found = inspect.signature(getattr(TreeMixture, name)).parameters.values()
            assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in wanted]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1_000))
def test_densities_of_gaussians_are_those_of_dense_matrices(seed):
    model = gaussian(seed)
    X = np.random.default_rng(seed).normal(size=(5, 4))
    wanted = sum(
        w * stats.multivariate_normal(part.means, part.covariance()).pdf(X)
        for w, part in zip(model.weights, model.components, strict=True)
    )
    assert np.exp(model.log_likelihood(X)) == pytest.approx(wanted)
    assert model.responsibilities(X).sum(axis=1) == pytest.approx(1.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1_000), st.lists(st.sampled_from([0, 1, None]), min_size=4, max_size=4))
def test_states_are_those_of_the_joint_table(seed, row):
    model = discrete(seed)
    table = joint_table(model)
    assert table.sum() == pytest.approx(1.0)
    given_ = tuple(slice(None) if cell is None else slice(cell, cell + 1) for cell in row)
    kept = np.zeros_like(table)
    kept[given_] = table[given_]
    assert np.exp(model.log_likelihood([row])[0]) == pytest.approx(kept.sum())
    filled = model.impute([row])[0]
    for variable in range(4):
        others = tuple(v for v in range(4) if v != variable)
        wanted = kept.sum(axis=others) / kept.sum()
        assert model.posterior([row], [variable])[variable][0] == pytest.approx(wanted)
        evidence = {v: cell for v, cell in enumerate(row) if cell is not None and v != variable}
        if row[variable] is None:
            assert model.conditional(variable, evidence) == pytest.approx(wanted)
            assert wanted[filled[variable]] == pytest.approx(wanted.max())
        else:
            assert filled[variable] == row[variable]


def test_missing_numbers_get_the_mean_of_the_mixture():
    model = gaussian()
    row = np.array([[0.3, np.nan, -0.5, np.nan]])
    seen, hole = [0, 2], [1, 3]
    total, mean, second = 0.0, np.zeros(2), np.zeros(2)
    for w, part in zip(model.weights, model.components, strict=True):
        sigma = part.covariance()
        gain = sigma[np.ix_(hole, seen)] @ np.linalg.inv(sigma[np.ix_(seen, seen)])
        own = part.means[hole] + gain @ (row[0, seen] - part.means[seen])
        spread = np.diag(sigma[np.ix_(hole, hole)] - gain @ sigma[np.ix_(seen, hole)])
        density = stats.multivariate_normal(part.means[seen], sigma[np.ix_(seen, seen)])
        share = w * density.pdf(row[0, seen])
        total, mean, second = total + share, mean + share * own, second + share * (spread + own**2)
    mean, second = mean / total, second / total
    assert model.impute(row)[0, hole] == pytest.approx(mean)
    assert model.posterior(row, hole).variance[0] == pytest.approx(second - mean**2)
    found = model.conditional(1, {0: 0.3, 2: -0.5})
    assert found == pytest.approx((mean[0], second[0] - mean[0] ** 2))
    assert model.conditional("tree", {0: 0.3, 2: -0.5}) == pytest.approx(
        model.responsibilities(row)[0]
    )
    assert model.conditional(1, {"tree": 2}) == pytest.approx(model.components[2].marginal(1))


def test_mixed_columns_are_filled_in():
    model = mixed()
    rows = [[70.0, None, None], [None, 0, 1]]
    filled = model.impute(rows)
    share = model.responsibilities(rows)
    visits = [part.conditional("visits", {"age": 70}).mean for part in model.components]
    assert filled[0, 1] == np.rint(share[0] @ visits)
    ages = [part.conditional("age", {"visits": 0, "insured": 1}).mean for part in model.components]
    assert filled[1, 0] == pytest.approx(share[1] @ ages)
    assert model.impute(filled).tolist() == filled.tolist()
    assert filled[0, 2] == 1
    assert filled[1, 1] == 0
    assert model.conditional("insured", {"age": 70.0}).sum() == pytest.approx(1.0)
    assert isinstance(model.conditional("age", {"visits": 8}), lt.models.Normal)


def test_counts_are_rounded_once():
    parts = [
        lt.MixedTreeModel(lt.Tree([-1] * 3), [lt.CountEmission([mean])] + [[0.5, 0.5]] * 2)
        for mean in (12.4, 15.45)
    ]
    mixture = TreeMixture(parts, [0.6, 0.4])
    filled = mixture.impute([[None, 0, 1]])
    assert filled[0, 0] == 14  # 0.6·12.4 + 0.4·15.45 = 13.62; rounded before, 13.2
    assert mixture.conditional(0).mean == pytest.approx(13.62)
    mixture.log_likelihood(filled)  # takes what it fills in


def test_numbers_on_scales_of_their_own_get_the_median_of_the_mixture():
    rng = np.random.default_rng(0)
    for resolution, kind in ((0.0, "real"), (0.01, "real"), (1.0, "count")):
        columns = np.exp(rng.normal(size=(2, 500)))
        columns[1] += 3.0
        columns = np.rint(10 * columns) if kind == "count" else columns
        ranks = [RankMargin.of(column, None, resolution, kind) for column in columns]
        other = NormalMargin(0.0, 1.0, resolution)
        parts = [
            CopulaTreeModel(lt.Tree([-1] * 3), [0.0] * 3, [margin, other, other])
            for margin in ranks
        ]
        mixture = TreeMixture(parts, [0.3, 0.7])
        drawn = mixture.sample(40_000, 1)[:, 0].astype(float)
        low, middle, high = np.quantile(drawn, [0.1586553, 0.5, 0.8413447])
        found, near = mixture.marginal(0), 0.05 * drawn.std()
        assert found.mean == pytest.approx(middle, abs=near)
        assert np.sqrt(found.variance) == pytest.approx(0.5 * (high - low), abs=near)
        assert mixture.impute([[None, 0.0, 0.0]])[0, 0] == pytest.approx(found.mean)
        assert mixture.posterior([[None, 0.0, 0.0]], [0]).mean[0, 0] == pytest.approx(found.mean)
        one = TreeMixture(parts[:1], [1.0])
        assert one.marginal(0) == pytest.approx(parts[0].marginal(0))


STAR = lt.Tree([3, 3, 3, -1], n_observed=3)


def mixed_at(offset: float) -> lt.MixedTreeModel:
    number = lt.GaussianEmission(offset + np.array([0.0, 7.0]), [3.0, 4.0], 0.01)
    return lt.MixedTreeModel(STAR, [number, *[[[0.8, 0.2], [0.3, 0.7]]] * 2, [0.4, 0.6]])


def normal_at(offset: float) -> CopulaTreeModel:
    answers = [Thresholds([0.0])] * 2
    return CopulaTreeModel(STAR, [0.7, 0.8, 0.6, 0], [NormalMargin(offset, 5.0, 0.01), *answers])


def ranks_at(offset: float) -> CopulaTreeModel:
    values = offset + np.array([-9.0, -2.0, 0.0, 4.0, 15.0])
    margin = RankMargin(values, [-2.0, -0.5, 0.0, 1.0, 2.0], resolution=0.01)
    return CopulaTreeModel(STAR, [0.7, 0.8, 0.6, 0], [margin, *[Thresholds([0.0])] * 2])


def gaussian_at(offset: float) -> lt.GaussianTreeModel:
    return lt.GaussianTreeModel(STAR, [0.7, 0.8, 0.6, 0], [offset, 0.0, 0.0], [5.0, 1.0, 1.0])


@pytest.mark.parametrize("make", [gaussian_at, mixed_at, normal_at, ranks_at])
def test_spreads_do_not_depend_on_where_zero_is(make):
    def mixture_at(offset: float) -> TreeMixture:
        return TreeMixture([make(offset), make(offset + 6.0)], [0.3, 0.7])

    for model_at in (make, mixture_at):
        near, far = model_at(0.0), model_at(1.7e9)
        for evidence in ({}, {"x1": 1}, {"x1": 0, "x2": 1}):
            here, there = (model.conditional("x0", evidence) for model in (near, far))
            assert there.mean - 1.7e9 == pytest.approx(here.mean, abs=1e-5)
            assert there.variance == pytest.approx(here.variance, rel=1e-5)
        here, there = (model.marginal("x0") for model in (near, far))
        assert there.variance == pytest.approx(here.variance, rel=1e-5)
        if hasattr(near, "imputed"):
            here, there = (model.imputed([[None, 1, 0]]) for model in (near, far))
            assert there[1][0, 0] == pytest.approx(here[1][0, 0], rel=1e-5)
        if hasattr(near, "states"):
            here, there = (model.states("h1") for model in (near, far))
            assert there[0][2] == pytest.approx(here[0][2], rel=1e-5)


@pytest.mark.parametrize("model", [gaussian(), discrete()], ids=["real", "states"])
def test_samples_follow_the_weights(model):
    drawn = model.sample(4_000, 0, hidden=True)
    assert np.bincount(drawn[:, 4].astype(int)) / 4_000 == pytest.approx(WEIGHTS, abs=0.03)
    marginal = model.marginal(0)
    mean = marginal.mean if isinstance(marginal, lt.models.Normal) else marginal[1]
    assert drawn[:, 0].astype(float).mean() == pytest.approx(mean, abs=0.12)
    hidden = model.sample_hidden(drawn[:, :4], 1)
    assert hidden.shape == (4_000, 1)
    assert np.bincount(hidden[:, 0]) / 4_000 == pytest.approx(WEIGHTS, abs=0.04)
    completed = model.complete(drawn[:5, :4])
    assert completed.shape == (5, 5)
    assert completed[:, 4].tolist() == model.responsibilities(drawn[:5, :4]).argmax(1).tolist()


def test_distances_are_those_of_the_mixture():
    model = gaussian()
    X = model.sample(200_000, 0)
    found = np.exp(-model.information_distances().dense())
    assert found[:4, :4] == pytest.approx(np.abs(np.corrcoef(X.T)), abs=0.02)
    states = discrete()
    table = joint_table(states)
    pair = table.sum(axis=(2, 3))
    root = np.sqrt(np.outer(pair.sum(1), pair.sum(0)))
    phi = np.linalg.svd(pair / root, compute_uv=False)[1]
    assert np.exp(-states.information_distances().dense())[0, 1] == pytest.approx(phi)
    assert states.distance_tree().n_edges == 4
    assert lt.models.edge_strengths(states).shape == (5,)


def test_one_component_counts_as_the_model_itself():
    model = gaussian().components[0]
    assert TreeMixture([model], [2.0]).n_parameters == model.n_parameters
    both = TreeMixture([model, model], [1, 1])
    assert both.weights.tolist() == [0.5, 0.5]
    assert both.n_parameters == 2 * model.n_parameters + 1


@pytest.mark.parametrize("model", [gaussian(), discrete(), mixed()], ids=["real", "states", "both"])
def test_files_give_the_mixture_back(model, tmp_path):
    model.save(tmp_path / "mixture.json", {"seed": 1})
    again = lt.load(tmp_path / "mixture.json")
    X = model.sample(20, 0)
    assert np.array_equal(again.log_likelihood(X), model.log_likelihood(X))
    assert lt.models.load_report(tmp_path / "mixture.json") == {"seed": 1}
    text = (tmp_path / "mixture.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace('"n_observed": ', '"n_seen": ', 1))
    with pytest.raises(FileError, match=r"components\[0\]"):
        lt.load(tmp_path / "bad.json")


def test_names_change_in_all_components():
    model = gaussian().rename({"x0": "first", "h1": "mood"})
    assert model.schema.names[0] == "first"
    assert [part.tree.names[0] for part in model.components] == ["first"] * 3
    assert "mood" in model.components[0].tree.names
    assert model.rename().components[0].tree.names[5] != "h2"
    with pytest.raises(DataError, match="no node 'weather'"):
        model.rename({"weather": "sky"})


def test_a_column_may_be_named_like_the_class():
    chain = lt.Tree([-1, 0, 1], names=["tree", "x", "y"])
    model = TreeMixture([lt.GaussianTreeModel(chain, [0, 0.5, 0.5])], [1])
    assert model.tree.names == ("tree", "x", "y", "tree_")


def test_bad_components_are_refused():
    real, states = gaussian().components[0], discrete().components[0]
    pair = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
    for parts, weights in [
        ([], []),
        ([pair], [1]),
        ([real], [1, 2]),
        ([real], [-1]),
        ([real, states], [1, 1]),
    ]:
        with pytest.raises(ModelError):
            TreeMixture(parts, weights)
    with pytest.raises(ModelError, match="ask in two calls"):
        gaussian().posterior([[0.0] * 4], [0, "tree"])
    with pytest.raises(ModelError, match="no component 3"):
        component_of(gaussian(), 3)
    with pytest.raises(ModelError, match="one tree"):
        component_of(real, 0)
    assert component_of(gaussian()) is not None
    assert component_of(real) is real

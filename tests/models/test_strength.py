"""Strengths of edges and loadings against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from latentree import (
    CopulaTreeModel,
    CountEmission,
    DiscreteTreeModel,
    GaussianEmission,
    GaussianTreeModel,
    MixedTreeModel,
    Tree,
    plot,
    simulate,
)
from latentree.errors import ModelError
from latentree.inference import Odds, Thresholds
from latentree.models import edge_strengths, loadings, orientation, tree_of

STAR = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])


def test_strengths_of_a_tree():
    tree = STAR.with_lengths([0.0, 1.0, 2.0, 0.0])
    assert edge_strengths(tree) == pytest.approx([1.0, np.exp(-1), np.exp(-2), 0.0])


@pytest.mark.parametrize("seed", range(20))
def test_states_that_differ_by_rounding_have_no_negative_probabilities(seed):
    # Cumulative probabilities of nearly equal edges of cells fall by a digit here and there.
    center = np.random.default_rng(seed).normal(0.0, 3.0) * (1.0 + 2.2e-16 * np.arange(8))
    emission = GaussianEmission([*center, 4.0, -2.0], [*np.full(8, 1.3), 0.1, 5.0], 0.1)
    assert emission.cells().min() >= 0.0
    model = MixedTreeModel(STAR, [emission] * 3 + [np.full(10, 0.1)])
    assert np.isfinite(model.distance_tree().length).all()


def test_the_sign_of_a_hidden_variable_is_free():
    rng = np.random.default_rng(0)
    tree = simulate.random_latent_tree(9, 2)
    rho = simulate.random_gaussian_model(tree, rng, negative_share=0.5).correlations
    shown = edge_strengths(GaussianTreeModel(tree, rho))
    assert np.abs(shown) == pytest.approx(np.abs(rho))
    # By definition: the least weight on negative edges over all signs of the hidden nodes.
    least = np.inf
    for bits in range(2**tree.n_hidden):
        sign = np.ones(tree.n_nodes)
        sign[tree.n_observed :] = 1 - 2 * (bits >> np.arange(tree.n_hidden) & 1)
        flipped = rho * sign * np.where(tree.parent < 0, 1, sign[tree.parent])
        least = min(least, -flipped[flipped < 0].sum())
    assert -shown[shown < 0].sum() == pytest.approx(least)
    # The product of signs between observed nodes is what the data shows; it stays.
    before = GaussianTreeModel(tree, rho).correlation()
    assert GaussianTreeModel(tree, shown).correlation() == pytest.approx(before)


def test_signs_of_a_binary_model():
    same, other = [[0.9, 0.1], [0.1, 0.9]], [[0.2, 0.8], [0.8, 0.2]]
    model = DiscreteTreeModel(STAR, [same, same, other, [0.5, 0.5]])
    assert edge_strengths(model) == pytest.approx([0.8, 0.8, -0.6, 0.0])


def test_strengths_of_other_tables():
    # Two states determine three in part: V is the correlation ratio here.
    copy = np.eye(3)
    half = [[1, 0], [1, 0], [0, 1]]
    nothing = [[0.3, 0.7]] * 3
    model = DiscreteTreeModel(STAR, [copy, half, nothing, np.full(3, 1 / 3)])
    assert edge_strengths(model) == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-6)
    rng = np.random.default_rng(0)
    random = simulate.random_discrete_model(STAR, [2, 3, 4, 3], rng)
    joint = random.joint("h1", "b")
    expected = joint.sum(1)[:, None] * joint.sum(0)
    chi2 = ((joint - expected) ** 2 / expected).sum()  # Pearson's own form
    assert edge_strengths(random)[1] == pytest.approx(np.sqrt(chi2 / 2))


def test_a_number_has_its_correlation_ratio_with_its_neighbor():
    share = np.array([0.7, 0.3])
    age = GaussianEmission([30.0, 60.0], [10.0, 5.0], resolution=1.0)
    visits = CountEmission([6.0, 1.0], [2.0, np.inf])
    model = MixedTreeModel(STAR, [age, visits, [[0.5, 0.5], [0.1, 0.9]], share])
    sample = np.random.default_rng(0)
    state = sample.choice(2, 400_000, p=share)
    found = edge_strengths(model)
    for v, emission in enumerate([age, visits]):
        values = emission.sample(state, sample)
        assert found[v] == pytest.approx(np.corrcoef(state, values)[0, 1], abs=0.01)
    assert found[1] < 0
    assert orientation(model).tolist() == [1, 1, 1, 1]
    # More than two states have no sign; one state explains nothing.
    three = GaussianEmission([9.0, 5.0, 1.0], [1.0, 1.0, 1.0], resolution=0.1)
    tables = [three, np.eye(3), np.eye(3), [0.25, 0.5, 0.25]]
    between = 0.25 * 16 + 0.25 * 16
    assert edge_strengths(MixedTreeModel(STAR, tables))[0] == pytest.approx(
        np.sqrt(between / (between + 1))
    )


def random_mixed(seed: int) -> MixedTreeModel:
    """Hidden variables of two or three states, and below each of them columns of every kind."""
    rng = np.random.default_rng(seed)
    tree = Tree([10] * 5 + [11] * 5 + [11, -1], n_observed=10)
    states = rng.choice([2, 2, 2, 3], tree.n_hidden)
    kinds = ["real", "count", "ordered", "category", "category"] * 2
    parameters = []
    for v in range(tree.n_nodes):
        above = int(tree.parent[v])
        n = 1 if above < 0 else states[above - 10]
        own = states[v - 10] if v >= 10 else [0, 0, 4, 3, 2][v % 5]
        if v < 10 and v % 5 == 0:
            parameters.append(GaussianEmission(rng.normal(1e6, 3, n), rng.uniform(1, 2, n), 0.1))
        elif v < 10 and v % 5 == 1:
            parameters.append(CountEmission(rng.uniform(1, 9, n)))
        else:
            table = rng.dirichlet(np.ones(own), n)
            parameters.append(table[0] if above < 0 else table)
    return MixedTreeModel(tree, parameters, kinds=kinds)


def path(tree: Tree, a: int, b: int) -> list[int]:
    """Nodes between two nodes, and both."""
    above = [[a], [b]]
    for nodes in above:
        while tree.parent[nodes[-1]] >= 0:
            nodes.append(int(tree.parent[nodes[-1]]))
    shared = set(above[0]) & set(above[1])
    top = next(v for v in above[0] if v in shared)
    return [*above[0][: above[0].index(top) + 1], *reversed(above[1][: above[1].index(top)])]


def has_direction(model, v: int) -> bool:
    kind = model.schema.kinds[v] if v < model.tree.n_observed else "hidden"
    return kind in ("real", "count", "ordered") or model.n_states[v] == 2


def expected_values(model, v: int) -> np.ndarray:
    """E[value of a column | state of its neighbor], states counting as 0, 1, …."""
    if model.layout.emits[v]:
        return model.emissions[v].mean - 1e6
    table = model.layout.table(model.theta, v)
    return table @ np.arange(table.shape[1])


@pytest.mark.parametrize("seed", range(20))
def test_the_product_of_signs_is_the_sign_of_the_covariance(seed):
    model = random_mixed(seed)
    tree, strength = model.tree, edge_strengths(model)
    parent = tree.parent
    for v in range(tree.n_nodes):
        if parent[v] >= 0 and not (
            has_direction(model, v) and has_direction(model, int(parent[v]))
        ):
            assert strength[v] >= 0  # there is no sign
    n_pairs = 0
    for a in range(10):
        for b in range(a):
            nodes = path(tree, a, b)
            if not all(has_direction(model, v) for v in nodes):
                continue
            edges = [v for v in nodes if parent[v] in nodes]
            joint = model.joint(int(parent[a]), int(parent[b]))  # of the hidden variables above
            x, y = expected_values(model, a), expected_values(model, b)
            covariance = x @ joint @ y - (x @ joint.sum(axis=1)) * (joint.sum(axis=0) @ y)
            assert np.sign(np.prod(strength[edges])) == np.sign(covariance)
            n_pairs += 1
    assert n_pairs >= 6 or (model.n_states[10:] == 3).any()
    # The states themselves have the signs that are asked for without turning.
    for h in tree.hidden.tolist():
        for v in range(10):
            own = loadings(model, oriented=False)[h - 10, v]
            if all(has_direction(model, u) for u in path(tree, h, v)):
                given = model.joint(h, int(parent[v]))
                means = given @ expected_values(model, v) / given.sum(axis=1)
                assert np.sign(own) == np.sign(means[1] - means[0])
            else:
                assert own >= 0


def test_labels_without_an_order_have_no_sign_behind_gaussian_variables():
    odds, answers = Odds([0.0, 1.0, 2.0], [0.0, 1.0, -1.0]), Thresholds([0.0, 1.0])
    model = CopulaTreeModel(STAR, [0.0, -0.8, -0.7, 0], [odds, answers, answers])
    assert (edge_strengths(model)[:3] > 0).all()
    assert (loadings(model, oriented=False) > 0).tolist() == [[True, False, False]]
    two = Odds([0.0, 1.0], [0.0, -1.0])
    model = CopulaTreeModel(STAR, [0.0, 0.8, 0.7, 0], [two, answers, answers])
    assert (edge_strengths(model)[:3] > 0).tolist() == [False, True, True]


def test_orientation_leads_from_the_signs_of_the_model_to_those_shown():
    rng = np.random.default_rng(1)
    tree = simulate.random_latent_tree(15, 3)
    model = simulate.random_gaussian_model(tree, rng, negative_share=0.5)
    sign = orientation(model)
    assert set(sign[: tree.n_observed]) == {1.0}
    assert set(np.abs(sign)) == {1.0}
    above = np.where(tree.parent < 0, 1.0, sign[tree.parent])
    assert edge_strengths(model) * sign * above == pytest.approx(model.correlations)


def test_gaussian_loadings_are_correlations_up_to_the_sign_of_the_hidden_variable():
    rng = np.random.default_rng(2)
    tree = simulate.random_latent_tree(20, 4, inner_share=0.4).rerooted(7)
    model = simulate.random_gaussian_model(tree, rng, negative_share=0.4)
    wanted = model.correlation(tree.hidden, np.arange(20))
    signs = orientation(model)[tree.hidden]
    assert loadings(model) == pytest.approx(signs[:, None] * wanted)
    assert (loadings(model) < 0).any()


def test_loadings_multiply_along_paths():
    rng = np.random.default_rng(3)
    tree = simulate.random_latent_tree(12, 5)
    model = simulate.random_discrete_model(tree, rng.integers(2, 5, tree.n_nodes), rng)
    strength, found = edge_strengths(model), loadings(model)
    for i, h in enumerate(tree.hidden.tolist()):
        for v in range(tree.n_observed):
            product, nodes = 1.0, {h: 1.0}
            while tree.parent[h] >= 0:  # from h up, and from v up until the paths meet
                nodes[tree.parent[h]] = nodes[h] * strength[h]
                h = int(tree.parent[h])
            u = v
            while u not in nodes:
                product, u = product * strength[u], int(tree.parent[u])
            h = int(tree.hidden[i])
            assert found[i, v] == pytest.approx(product * nodes[u])


def test_loadings_across_components_and_without_dependence_are_zero():
    forest = Tree([6, 6, 6, 7, 7, 7, -1, -1], n_observed=6)
    found = loadings(GaussianTreeModel(forest, [0.5, 0.6, 0.0, 0.9, 0.9, 0.9, 0, 0]))
    assert found == pytest.approx(np.array([[0.5, 0.6, 0, 0, 0, 0], [0, 0, 0, 0.9, 0.9, 0.9]]))


def test_a_tree_without_hidden_variables_has_no_loadings():
    assert loadings(Tree([-1, 0, 0])).shape == (0, 3)


def test_a_fitted_estimator_is_taken_for_its_model():
    class Fitted:
        model_ = GaussianTreeModel(STAR, [0.8, 0.5, -0.5, 0])

    assert edge_strengths(Fitted()).tolist() == [0.8, 0.5, -0.5, 0]
    assert tree_of(Fitted()) == STAR
    with pytest.raises(ModelError, match="expected a tree or a tree model, got list"):
        edge_strengths([1.0])


def test_plot_has_the_same_function():
    assert plot.edge_strengths is edge_strengths

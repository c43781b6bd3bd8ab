"""What the states of a node mean: sizes, probabilities of labels, means and deviations."""

from __future__ import annotations

import numpy as np
import pytest

import latentree as lt
from latentree import (
    CountEmission,
    DiscreteTreeModel,
    GaussianEmission,
    MixedTreeModel,
    Tree,
    simulate,
)
from latentree.data import Schema
from latentree.errors import ModelError
from latentree.models import (
    TreeMixture,
    edge_strengths,
    orientation,
    with_schema,
    with_sorted_states,
)


def column(table, name: str, values, state: int) -> list[float]:
    rows = list(zip(table["variable"], table["value"], table[state], strict=True))
    return [cell for value in values for v, own, cell in rows if v == name and own == value]


def test_probabilities_are_those_of_conditionals():
    rng = np.random.default_rng(0)
    tree = simulate.random_latent_tree(9, rng, inner_share=0.4).rerooted(2)
    model = simulate.random_discrete_model(tree, rng.integers(2, 5, tree.n_nodes), rng)
    for node in (*tree.hidden.tolist(), 0):
        table = model.states(tree.names[node])
        lengths = {len(cells) for cells in table.values()}
        assert len(lengths) == 1
        for state in range(model.n_states[node]):
            assert table[state][0] == pytest.approx(model.marginal(node)[state])
            for v in set(range(9)) - {node}:
                found = column(table, tree.names[v], model.schema.labels[v], state)
                assert found == pytest.approx(model.conditional(v, {node: state}))


def mixed() -> MixedTreeModel:
    tree = Tree([5, 5, 6, 6, 6, 6, -1], n_observed=5, names=list("abcde"))
    parameters = [
        GaussianEmission([30.0, 60.0], [10.0, 5.0], resolution=1.0),
        [[0.5, 0.5], [0.1, 0.9]],
        CountEmission([1.0, 6.0, 2.0], [2.0, np.inf, 1.0]),
        [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]],
        GaussianEmission([0.0, 1.0, 2.0], [1.0, 1.0, 1.0], resolution=0.1),
        [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]],
        [0.5, 0.3, 0.2],
    ]
    return MixedTreeModel(tree, parameters, [(), ("no", "yes"), (), (0, 1), ()])


@pytest.mark.parametrize("node", ["h1", "h2", "b"])
def test_numbers_have_means_and_deviations(node):
    model = mixed()
    table = model.states(node)
    assert set(table["variable"]) == {node, *"abcde"}
    values = ["no", "yes"] if node == "b" else range(model.n_states[model.tree.index(node)])
    for state, value in enumerate(values):
        for name in set("ace") - {node}:
            mean, variance = model.conditional(name, {node: value})
            found = column(table, name, ["mean", "sd"], state)
            assert found == pytest.approx([mean, np.sqrt(variance)])


def test_other_components_are_left_out():
    forest = Tree([4, 4, 4, -1, -1], n_observed=4)
    noisy = [[0.9, 0.1], [0.2, 0.8]]
    model = DiscreteTreeModel(forest, [noisy, noisy, noisy, [0.5, 0.5], [0.5, 0.5]])
    assert model.states("h1")["variable"] == ["h1", "x0", "x0", "x1", "x1", "x2", "x2"]


def test_numbers_have_no_states():
    with pytest.raises(ModelError, match="'a' is a number"):
        mixed().states("a")


# In order -----------------------------------------------------------------------------------------


def shuffled(model: MixedTreeModel, rng) -> MixedTreeModel:
    """The same distribution with the states of hidden variables in random orders."""
    tree, parameters = model.tree, []
    order = {v: np.arange(k) for v, k in enumerate(model.n_states.tolist())}
    for h in tree.hidden.tolist():
        rng.shuffle(order[h])
    for v, own in enumerate(model.parameters):
        above = int(tree.parent[v])
        rows = order[above] if above >= 0 else None
        if isinstance(own, GaussianEmission):
            parameters.append(GaussianEmission(own.mean[rows], own.sd[rows], own.resolution))
        elif isinstance(own, CountEmission):
            parameters.append(CountEmission(own.mean[rows], own.size[rows]))
        else:
            parameters.append(own[order[v]] if above < 0 else own[rows][:, order[v]])
    return MixedTreeModel(tree, parameters, model.schema.labels, model.schema.kinds)


@pytest.mark.parametrize("seed", range(10))
def test_sorting_states_forgets_the_order_that_they_had(seed):
    rng = np.random.default_rng(seed)
    # Hidden variables of two, three and four states, and one of three that has no columns.
    tree = Tree([9, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 12, -1], n_observed=9)
    states, kinds = [2, 3, 4, 3], ["real", "count", "ordered"] * 3
    parameters = []
    for v in range(tree.n_nodes):
        above = int(tree.parent[v])
        n = 1 if above < 0 else states[above - 9]
        if v < 9 and v % 3 == 0:
            parameters.append(GaussianEmission(rng.normal(0, 5, n), np.full(n, 2.0), 0.1))
        elif v < 9 and v % 3 == 1:
            parameters.append(CountEmission(rng.uniform(1, 9, n)))
        else:
            table = rng.dirichlet(np.ones(4 if v < 9 else states[v - 9]), n)
            parameters.append(table[0] if above < 0 else table)
    model = MixedTreeModel(tree, parameters, kinds=kinds)
    rows = model.sample(20, 0)
    found = with_sorted_states(model)
    again = with_sorted_states(shuffled(model, rng))
    assert found.log_likelihood(rows) == pytest.approx(model.log_likelihood(rows))
    assert found.theta == pytest.approx(again.theta)
    assert with_sorted_states(found).theta.tolist() == found.theta.tolist()
    assert set(orientation(found)) == {1.0}
    assert np.abs(edge_strengths(found)) == pytest.approx(np.abs(edge_strengths(model)))
    both = with_sorted_states(TreeMixture([model, shuffled(model, rng)], [0.5, 0.5]))
    assert both.components[1].theta == pytest.approx(both.components[0].theta)


def test_states_rise_with_ordered_answers_and_numbers():
    star = Tree([3, 3, 3, -1], n_observed=3)
    falling = np.array([[0.1, 0.2, 0.7], [0.2, 0.6, 0.2], [0.8, 0.1, 0.1]])
    model = DiscreteTreeModel(star, [falling, falling, falling[::-1], [0.2, 0.3, 0.5]])
    assert with_sorted_states(model) is model  # labels without an order show none
    schema = Schema(star.names[:3], "discrete", model.schema.labels, ("ordered",) * 3)
    found = with_sorted_states(with_schema(model, schema))
    assert found.marginal("h1") == pytest.approx([0.5, 0.3, 0.2])
    assert found.joint("h1", "x0") == pytest.approx(model.joint("h1", "x0")[::-1])


@pytest.mark.parametrize("kind", ["ordered", "real", "count"])
def test_learned_states_are_in_order(kind, tmp_path):
    rng = np.random.default_rng(0)
    z = rng.choice([-1.5, 0.0, 1.5], 400)
    columns = z[:, None] + 0.8 * rng.standard_normal((400, 4))
    columns[:, 3] *= -1.0
    if kind == "ordered":
        columns = np.digitize(columns, [-1.0, 0.0, 1.0])
    elif kind == "count":
        columns = rng.poisson(np.exp(1.0 + columns))
    kinds = dict.fromkeys("abcd", kind)
    data = dict(zip("abcd", columns.T, strict=True))
    learner = lt.LatentTree(method="lcm", hidden="states", n_states=3, kinds=kinds, random_state=0)
    if kind == "real":  # beside an ordered column
        data["e"], kinds["e"] = np.digitize(columns[:, 0], [0.0]), "ordered"
    learner.fit(data).model_.save(tmp_path / "model.json")
    for model in (learner.model_, lt.load(tmp_path / "model.json")):
        means = [[model.conditional(name, {"h1": k}) for k in range(3)] for name in "abcd"]
        values = [
            [float(one @ np.arange(one.size)) if kind == "ordered" else one.mean for one in row]
            for row in means
        ]
        for row in values[:3]:
            assert row == sorted(row)
        assert values[3] == sorted(values[3], reverse=True)

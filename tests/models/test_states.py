"""What the states of a node mean: sizes, probabilities of labels, means and deviations."""

from __future__ import annotations

import numpy as np
import pytest

from latentree import (
    CountEmission,
    DiscreteTreeModel,
    GaussianEmission,
    MixedTreeModel,
    Tree,
    simulate,
)
from latentree.errors import ModelError


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

"""Both models have the methods of the protocol, with the same parameters."""

from __future__ import annotations

import inspect

import pytest

from latentree import DiscreteTreeModel, GaussianTreeModel, simulate
from latentree.models import TreeModel

TREE = simulate.double_star(4)
MODELS = [simulate.random_gaussian_model(TREE, 0), simulate.random_discrete_model(TREE, 2, 0)]
MEMBERS = sorted(name for name in vars(TreeModel) if not name.startswith("_"))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_satisfy_the_protocol(model):
    assert isinstance(model, TreeModel)
    assert {"log_likelihood", "posterior", "sample", "save", "schema", "tree"} <= set(MEMBERS)


@pytest.mark.parametrize("other", [TREE, simulate, 3])
def test_other_things_do_not(other):
    assert not isinstance(other, TreeModel)


@pytest.mark.parametrize("model", [GaussianTreeModel, DiscreteTreeModel])
@pytest.mark.parametrize(
    "name", [name for name in MEMBERS if inspect.isfunction(vars(TreeModel)[name])]
)
def test_parameters_are_those_of_the_protocol(model, name):
    wanted = inspect.signature(getattr(TreeModel, name)).parameters.values()
    found = inspect.signature(getattr(model, name)).parameters.values()
    assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in wanted]

"""The states of hidden variables in order: state 0 is low, the last one high."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from latentree.inference import Emission, FreeEmission, mixture_moments
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._mixed import MixedTreeModel
from latentree.models._mixture import Model, TreeMixture
from latentree.models._states import StateTreeModel
from latentree.models._strength import has_direction, orientation
from latentree.typing import FloatArray, IntArray

AnyModel = TypeVar("AnyModel", bound=Model | TreeMixture)


def with_sorted_states(model: AnyModel) -> AnyModel:
    """Return the same distribution with the states of hidden variables sorted from low to high.

    Numbers of states are a matter of convention. Two states are turned as in :func:`orientation`.
    Three or more are sorted along the direction in which the means of the neighbors differ most
    (their first principal component, each neighbor in units of its standard deviation); more
    neighbors rise along it than fall. Neighbors that count are numbers, ordered answers and
    variables with two states; of a hidden variable that has none of these, hidden neighbors whose
    states are sorted already. Where there is nothing to sort by, states stay as they are.

    Parameters
    ----------
    model : model of one tree, or TreeMixture
        Of a mixture every component.

    Returns
    -------
    model of the same type

    Examples
    --------
    >>> import latentree as lt
    >>> age = lt.GaussianEmission([60.0, 20.0, 40.0], [5.0, 5.0, 5.0], resolution=1.0)
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
    >>> model = with_sorted_states(lt.MixedTreeModel(star, [age, age, age, [0.5, 0.3, 0.2]]))
    >>> model.emissions[0].mean, model.marginal("h1")
    (array([20., 40., 60.]), array([0.3, 0.2, 0.5]))
    """
    if isinstance(model, TreeMixture):
        return model.with_components(map(with_sorted_states, model.components))  # type: ignore[return-value]
    if not isinstance(model, DiscreteTreeModel | MixedTreeModel):
        return model
    sign = orientation(model)
    turned = {int(h): np.array([1, 0]) for h in np.flatnonzero(sign < 0)}
    found = _permuted(model, turned)
    if model.schema.family == "symmetric":  # whose states are those of the data
        return found
    return _permuted(found, _orders(found))


def _orders(model: DiscreteTreeModel | MixedTreeModel) -> dict[int, IntArray]:
    """Return the order of the states of hidden variables with three or more."""
    tree, values = model.tree, _Values(model)
    is_known = has_direction(model)
    waiting = [h for h in tree.hidden.tolist() if model.n_states[h] > 2]
    orders: dict[int, IntArray] = {}
    reach = tree.n_observed  # first by columns alone, then by hidden variables too
    while waiting:
        found = {}
        for h in waiting:
            around = [v for v in tree.neighbors(h).tolist() if v < reach and is_known[v]]
            if around:
                means = np.array([values.given(v, h, orders.get(v)) for v in around])
                found[h] = np.argsort(_scores(means, values.marginals[h]), kind="stable")
        if not found and reach == tree.n_nodes:
            break
        reach = tree.n_nodes
        orders |= found
        is_known[list(found)] = True
        waiting = [h for h in waiting if h not in found]
    return orders


def _scores(means: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the place of every state on the first principal component of means (a row each)."""
    away = (means - means @ weights[:, None]) * np.sqrt(weights)
    direction = np.linalg.svd(away, full_matrices=False)[0][:, 0]
    rising = direction if direction.sum() >= 0 else -direction
    return np.asarray(rising @ means)


class _Values:
    """What the neighbors of hidden variables are on average, in units of their deviation."""

    def __init__(self, model: StateTreeModel) -> None:
        self.model, layout = model, model.layout
        self.marginals = np.split(layout.marginals(model.theta), layout.state_starts[1:-1])

    def given(self, node: int, h: int, order: IntArray | None) -> FloatArray:
        """E[value of a neighbor | state of h]; states count as 0, 1, … in their order."""
        model, p = self.model, self.marginals[h]
        if model.layout.emits[node]:
            emission = model._emission(node)
            means, variance = emission.mean, emission.variance
            mean, total = mixture_moments(p, means, variance)
            return np.asarray((means - mean) / np.sqrt(total))
        own = self.marginals[node]
        place = np.arange(own.size) if order is None else np.argsort(order)
        codes = place.astype(np.float64)
        mean, total = mixture_moments(own, codes, np.zeros(own.size))
        spread = np.sqrt(np.maximum(total, 1e-300))
        return np.asarray(self._table(h, node) @ (codes - mean) / spread)

    def _table(self, h: int, node: int) -> FloatArray:
        """P(node | h) of two neighbors with states."""
        model = self.model
        if model.tree.parent[node] == h:
            return model.layout.table(model.theta, node)
        joint = self.marginals[node][:, None] * model.layout.table(model.theta, h)
        return np.asarray((joint / np.maximum(self.marginals[h], 1e-300)).T)


def _permuted(model: AnyModel, orders: Mapping[int, IntArray]) -> AnyModel:
    """Return the same distribution with the states of some hidden variables in other orders."""
    if not orders:
        return model
    assert isinstance(model, StateTreeModel)
    theta = np.concatenate([table.ravel() for table in _tables(model, orders)])
    above = model.tree.parent
    emissions = tuple(
        each if each is None or above[v] not in orders else _reordered(each, orders[above[v]])
        for v, each in enumerate(model.emissions)
    )
    return model._with(theta=theta, emissions=emissions)  # type: ignore[return-value]


def _tables(model: StateTreeModel, orders: Mapping[int, IntArray]) -> Iterator[FloatArray]:
    """Yield the tables of all nodes, rows and columns in their new orders."""
    for node, above in enumerate(model.tree.parent.tolist()):
        table = model.layout.table(model.theta, node)
        if above in orders and table.size:
            table = table[orders[above]]
        yield table[:, orders[node]] if node in orders else table


def _reordered(emission: Emission, order: IntArray) -> Emission:
    """Return an emission with the states of its neighbor in another order."""
    assert isinstance(emission, FreeEmission)
    return emission.taken(order, np.zeros(order.size))

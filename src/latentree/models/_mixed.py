"""Mixed latent tree models: hidden states, and an emission for each leaf that holds numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.data import Schema
from latentree.errors import ModelError
from latentree.inference import Emission, Layout, set_fields
from latentree.models._discrete import DiscreteTreeModel, check_table
from latentree.models._states import StateTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray, Kind


@dataclass(frozen=True, eq=False, repr=False)
class MixedTreeModel(StateTreeModel):
    """A model of columns of several kinds whose dependence follows a tree.

    Hidden variables have states. Observed categories and ordered answers have tables, as in
    :class:`DiscreteTreeModel`, and may be anywhere in the tree; reals and counts are leaves with a
    distribution for every state of their neighbor. The likelihood of a row is the probability of
    its cells as they were recorded, so that it can be compared between kinds.

    Parameters
    ----------
    tree : Tree
        The structure, rooted at a node with states. Its lengths are not used.
    parameters : sequence, one per node
        A marginal at roots or a K_parent × K table elsewhere; for a real or count leaf a
        :class:`GaussianEmission` or :class:`CountEmission` with K_parent states (1 if the leaf
        stands alone).
    labels : sequence of sequences, optional
        What the states of each observed variable are called; empty for reals and counts.
    kinds : sequence of {"real", "count", "ordered", "category"}, optional
        Kinds of the observed variables; those with tables are categories when left out.

    References
    ----------
    C. Zhou, X. Wang and J. Guo, "Learning mixed latent tree models", Journal of Machine Learning
    Research 21 (2020).

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3, names=["age", "visits", "insured"])
    >>> age = lt.GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
    >>> visits = lt.CountEmission([1.0, 6.0])
    >>> model = lt.MixedTreeModel(star, [age, visits, [[0.5, 0.5], [0.1, 0.9]], [0.7, 0.3]])
    >>> model
    MixedTreeModel(Tree(3 observed, 1 hidden, 3 edges), 1 real, 1 count, 1 category)
    >>> model.conditional("h1", {"age": 65, "visits": 5}).round(2)
    array([0., 1.])
    """

    tree: Tree
    n_states: IntArray
    theta: FloatArray
    emissions: tuple[Any, ...]
    schema: Schema

    def __init__(
        self,
        tree: Tree,
        parameters: Sequence[ArrayLike | Emission],
        labels: Sequence[Sequence[Hashable]] | None = None,
        kinds: Sequence[Kind] | None = None,
    ) -> None:
        if len(parameters) != tree.n_nodes:
            raise ModelError(f"{tree.n_nodes} nodes need as many tables, got {len(parameters)}")
        emissions = tuple(each if isinstance(each, Emission) else None for each in parameters)
        tables = [
            np.empty(0) if emission is not None else np.asarray(each, np.float64)
            for each, emission in zip(parameters, emissions, strict=True)
        ]
        n_states = np.array([table.shape[-1] if table.ndim else 0 for table in tables], np.int64)
        layout = Layout(tree, n_states)
        schema = mixed_schema(layout, emissions, labels, kinds)
        for node, table in enumerate(tables):
            if emissions[node] is None:
                check_table(tree, layout, node, table)
        theta = layout.normalized(np.concatenate([table.ravel() for table in tables]))
        self._set(tree, n_states, theta, emissions[: tree.n_observed], schema)

    def _set(
        self,
        tree: Tree,
        n_states: IntArray,
        theta: FloatArray,
        emissions: tuple[Emission | None, ...],
        schema: Schema,
    ) -> None:
        n_states = np.array(n_states)
        set_fields(
            self, tree=tree, n_states=n_states, theta=theta, emissions=emissions, schema=schema
        )

    @classmethod
    def from_theta(
        cls,
        tree: Tree,
        n_states: IntArray,
        theta: FloatArray,
        emissions: Sequence[Emission | None],
        schema: Schema,
    ) -> MixedTreeModel:
        """Make a model from one vector of all tables and the emissions of the columns.

        Parameters
        ----------
        tree : Tree
            Rooted at nodes with states, or at leaves that stand alone.
        n_states : array of int, one per node
            0 for reals and counts.
        theta : array of float
            All tables in one vector, in the order of ``layout``.
        emissions : sequence, one an observed variable
            None for variables with tables.
        schema : Schema
            Of the family "mixed".

        Returns
        -------
        MixedTreeModel
        """
        model = cls.__new__(cls)
        theta = Layout(tree, n_states).normalized(np.array(theta, np.float64))
        model._set(tree, n_states, theta, tuple(emissions), schema)
        return model

    # What the model says --------------------------------------------------------------------

    # Private --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        kinds = self.schema.kinds
        counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
        return f"MixedTreeModel({self.tree!r}, {', '.join(counts)})"


def state_model(
    tree: Tree,
    n_states: IntArray,
    theta: FloatArray,
    emissions: Sequence[Emission | None],
    schema: Schema,
) -> DiscreteTreeModel | MixedTreeModel:
    """Return a model of columns that a schema knows, whatever their kinds."""
    if schema.is_mixed:
        return MixedTreeModel.from_theta(tree, n_states, theta, emissions, schema)
    return DiscreteTreeModel.from_theta(tree, n_states, theta, schema.labels, schema.family)


def _check_emission(tree: Tree, layout: Layout, node: int, emission: Emission) -> None:
    name = tree.names[node]
    if node >= tree.n_observed or tree.degrees[node] > 1:
        raise ModelError(f"{name!r} has an emission, but only observed leaves can have one")
    if tree.parent[node] < 0 and tree.degrees[node]:
        raise ModelError(f"{name!r} has no states, so the tree cannot be rooted there")
    if tree.parent[node] >= 0 and layout.emits[tree.parent[node]]:
        raise ModelError(f"{name!r} and its neighbor both have no states")
    wanted = int(layout.parent_states[node])
    if emission.n_states != wanted:
        raise ModelError(
            f"the emission of {name!r} has {emission.n_states} states, but its neighbor {wanted}"
        )


def mixed_schema(
    layout: Layout,
    emissions: Sequence[Emission | None],
    labels: Sequence[Sequence[Hashable]] | None,
    kinds: Sequence[Kind] | None,
) -> Schema:
    """Check the emissions of all nodes, and return the schema of the observed ones."""
    tree, n_states = layout.tree, layout.n_states
    for node, emission in enumerate(emissions):
        if emission is not None:
            _check_emission(tree, layout, node, emission)
    names = tree.names[: tree.n_observed]
    known = [range(states) for states in n_states[: tree.n_observed]] if labels is None else labels
    given: list[Kind] = ["category"] * tree.n_observed if kinds is None else list(kinds)
    found = [
        kind if emission is None else emission.kind
        for kind, emission in zip(given, emissions, strict=False)
    ]
    schema = Schema(names, "mixed", tuple(map(tuple, known)), tuple(found))
    wrong = np.flatnonzero(schema.cardinalities != n_states[: tree.n_observed])
    if wrong.size:
        node = wrong[0]
        raise ModelError(
            f"{names[node]!r} has {n_states[node]} states, but {len(schema.labels[node])} labels"
        )
    return schema

"""Models as the Bayesian networks of pgmpy."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Hashable
from types import ModuleType
from typing import Any

import numpy as np

from latentree.errors import FileError, MissingExtraError
from latentree.formats._bif import StateModel, refuse_numbers, state_names
from latentree.models import GaussianTreeModel, Model

Network = Any
"""A ``DiscreteBayesianNetwork`` or a ``LinearGaussianBayesianNetwork`` of pgmpy."""

Factor = Any
"""A ``TabularCPD`` or a ``LinearGaussianCPD`` of pgmpy."""


def to_pgmpy(model: Model) -> Network:
    """Return the model as a Bayesian network of pgmpy (which must be installed).

    A discrete model becomes a ``DiscreteBayesianNetwork`` with the labels as state names, a
    Gaussian one a ``LinearGaussianBayesianNetwork``. Hidden nodes are marked as latent.

    Parameters
    ----------
    model : GaussianTreeModel or DiscreteTreeModel, or MixedTreeModel without reals and counts

    Returns
    -------
    pgmpy.models.DiscreteBayesianNetwork or pgmpy.models.LinearGaussianBayesianNetwork

    References
    ----------
    A. Ankan and J. Textor: pgmpy: a Python toolkit for Bayesian networks. Journal of Machine
    Learning Research 25, 2024.

    Examples
    --------
    >>> from latentree import GaussianTreeModel, Tree
    >>> model = GaussianTreeModel(Tree([-1, 0], names=["a", "b"]), [0, 0.5])
    >>> sorted(to_pgmpy(model).edges())
    [('a', 'b')]
    """
    if not isinstance(model, StateModel | GaussianTreeModel):
        raise FileError(f"expected a model, got a {type(model).__name__}")
    if isinstance(model, StateModel):
        refuse_numbers(model, "a discrete network of pgmpy")
    tree, models = model.tree, _pgmpy("models")
    edges = [(tree.names[above], tree.names[below]) for above, below in tree.edges]
    latents = set(tree.names[tree.n_observed :])
    if isinstance(model, StateModel):
        network = models.DiscreteBayesianNetwork(edges, latents=latents)
        parts = _tables(model, _pgmpy("factors.discrete"))
    else:
        network = models.LinearGaussianBayesianNetwork(edges, latents=latents)
        parts = _regressions(model, _pgmpy("factors.continuous"))
    network.add_nodes_from(tree.names)  # those without an edge
    network.add_cpds(*parts)
    return network


def _pgmpy(module: str) -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of pgmpy's own dependencies
            return importlib.import_module(f"pgmpy.{module}")
    except ImportError as error:
        raise MissingExtraError(
            "this needs pgmpy, which is not installed: pip install pgmpy"
        ) from error


def _tables(model: StateModel, discrete: ModuleType) -> list[Factor]:
    """Return the conditional probability tables of all nodes."""
    tree, states = model.tree, state_names(model)
    out = []
    for node, name in enumerate(tree.names):
        table = model.layout.table(model.theta, node).T
        known: dict[str, list[Hashable]] = {name: states[node]}
        evidence = {}
        if tree.parent[node] >= 0:
            above = tree.names[tree.parent[node]]
            known[above] = states[tree.parent[node]]
            evidence = {"evidence": [above], "evidence_card": [table.shape[1]]}
        out.append(discrete.TabularCPD(name, len(table), table, state_names=known, **evidence))
    return out


def _regressions(model: GaussianTreeModel, continuous: ModuleType) -> list[Factor]:
    """Each node given its parent: mean β₀ + β₁·x and standard deviation, in units of the data."""
    tree, zeros = model.tree, np.zeros(model.tree.n_hidden)
    means = np.concatenate([model.means, zeros])
    scales = np.concatenate([model.scales, zeros + 1.0])
    out = []
    for node, name in enumerate(tree.names):
        above, rho = int(tree.parent[node]), model.correlations[node]
        if above < 0:
            out.append(continuous.LinearGaussianCPD(name, [means[node]], scales[node]))
            continue
        slope = rho * scales[node] / scales[above]
        spread = scales[node] * np.sqrt((1.0 - rho) * (1.0 + rho))
        beta = [means[node] - slope * means[above], slope]
        out.append(continuous.LinearGaussianCPD(name, beta, spread, [tree.names[above]]))
    return out

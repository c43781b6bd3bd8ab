"""How strongly, and with which sign, nodes of a model depend on each other."""

from __future__ import annotations

import copy
from typing import TypeVar

import numpy as np

from latentree.errors import ModelError
from latentree.inference import Emission, mixture_moments
from latentree.models._copula import CopulaTreeModel
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._mixed import MixedTreeModel
from latentree.models._mixture import Model, TreeMixture
from latentree.models._states import StateTreeModel
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray

Scored = Tree | Model | TreeMixture

AnyModel = TypeVar("AnyModel", bound=Model | TreeMixture)

_WEAKEST = 1e-300
"""Strengths below this count as this, so that their logarithms are finite."""


def tree_of(model: Scored) -> Tree:
    """Return the tree of a model, of a fitted estimator, or the tree itself.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree

    Returns
    -------
    Tree

    Examples
    --------
    >>> from latentree import simulate
    >>> tree_of(simulate.random_gaussian_model(simulate.double_star(6), 0)).n_observed
    6
    """
    model = getattr(model, "model_", model)
    if isinstance(model, Tree):
        return model
    if isinstance(model, Model | TreeMixture):
        return model.tree
    raise ModelError(f"expected a tree or a tree model, got {type(model).__name__}")


def edge_strengths(model: Scored) -> FloatArray:
    """Strength of the edge above every node, from −1 to 1.

    Trees: exp(−length). Gaussian models: the correlation ρ. Two nodes with states: Cramér's V. A
    real or count and its neighbor: the correlation ratio. A strength has a sign, that of the
    covariance, where both ends are numbers, ordered or have two states; others are positive, as
    there is nothing that rises. The sign of a hidden variable is a matter of convention: signs are
    those of :func:`orientation`. Along a path of hidden variables that are Gaussian or have two
    states the product of the signs is that of the covariance of its ends.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree

    Returns
    -------
    array of shape (n_nodes,)
        0 at roots.

    References
    ----------
    H. Cramér, "Mathematical Methods of Statistics", Princeton University Press (1946), pp. 280
    (correlation ratio) and 282.

    Examples
    --------
    >>> from latentree import GaussianTreeModel, Tree
    >>> star = Tree([3, 3, 3, -1], n_observed=3)
    >>> edge_strengths(GaussianTreeModel(star, [-0.9, -0.8, 0.5, 0])).tolist()
    [0.9, 0.8, -0.5, 0.0]
    """
    return _turned(model, orientation(model))


def _turned(model: Scored, sign: FloatArray) -> FloatArray:
    """Strengths of the edges where the nodes with a negative sign are turned."""
    tree, own = tree_of(model), _signed(model)
    return np.where(_signed_edges(model), own * sign * sign[tree.parent], own)


def orientation(model: Scored) -> FloatArray:
    """Signs of the nodes that leave the least weight, Σ |strength|, on negative edges.

    Only hidden variables whose sign is free are turned: those of Gaussian models, and hidden
    variables with two states. Multiplying the strength of an edge that has a sign by the signs of
    its two ends leads from the model's own signs to those of :func:`edge_strengths`, and back.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree

    Returns
    -------
    array of shape (n_nodes,)
        1, or −1 where a hidden variable is turned.

    Examples
    --------
    >>> from latentree import GaussianTreeModel, Tree
    >>> star = Tree([3, 3, 3, -1], n_observed=3)
    >>> orientation(GaussianTreeModel(star, [-0.9, -0.8, 0.5, 0])).tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    model = getattr(model, "model_", model)
    tree = tree_of(model)
    may_turn = has_direction(model) & (np.arange(tree.n_nodes) >= tree.n_observed)
    return _fewest_negative(tree, np.where(_signed_edges(model), _signed(model), 0.0), may_turn)


def fitted_tree(model: Model | TreeMixture) -> Tree:
    """Return the tree of a model with lengths that follow from its parameters.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel or MixedTreeModel

    Returns
    -------
    Tree
        Lengths are information distances; where these do not exist (an edge that carries nothing),
        −log of the absolute :func:`edge_strengths`.

    Examples
    --------
    >>> from latentree import GaussianTreeModel, Tree
    >>> fitted_tree(GaussianTreeModel(Tree([-1, 0]), [0, 0.5])).length.round(3).tolist()
    [0.0, 0.693]
    """
    try:
        return model.distance_tree()
    except ModelError:
        strength = np.clip(np.abs(edge_strengths(model)), _WEAKEST, 1.0)
        tree: Tree = model.tree
        return tree.with_lengths(np.where(tree.parent < 0, 0.0, -np.log(strength)))


def with_fitted_lengths(model: AnyModel) -> AnyModel:
    """Return a model whose tree has the lengths that follow from its parameters.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel, MixedTreeModel or TreeMixture
        Of a mixture every component.

    Returns
    -------
    model of the same type
        Its edges have the same numbers in drawings, files and pages; see :func:`fitted_tree`.

    Examples
    --------
    >>> import latentree as lt
    >>> model = with_fitted_lengths(lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5]))
    >>> model.tree.length.round(3).tolist()
    [0.0, 0.693]
    """
    if isinstance(model, TreeMixture):
        return model.with_components(map(with_fitted_lengths, model.components))  # type: ignore[return-value]
    fitted = copy.copy(model)
    object.__setattr__(fitted, "tree", fitted_tree(model))
    return fitted


def loadings(model: Scored, oriented: bool = True) -> FloatArray:
    """Strength of every hidden variable with every observed one, from −1 to 1.

    The product of :func:`edge_strengths` along the path between them: for Gaussian models their
    correlation, for others a product of Cramér's V and correlation ratios, positive if one of
    these has no sign.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree
    oriented : bool
        Whether the signs of hidden variables are those of :func:`orientation`, as in pictures; else
        the model's own, as its states, posteriors and samples have them.

    Returns
    -------
    array of shape (n_hidden, n_observed)
        0 for variables of different components.

    Examples
    --------
    >>> from latentree import GaussianTreeModel, Tree
    >>> star = Tree([3, 3, 3, -1], n_observed=3)
    >>> loadings(GaussianTreeModel(star, [0.9, 0.8, -0.5, 0])).round(3).tolist()
    [[0.9, 0.8, -0.5]]
    """
    tree = tree_of(model)
    strength = _turned(model, orientation(model) if oriented else np.ones(tree.n_nodes))
    size = np.clip(np.abs(strength), _WEAKEST, 1.0)
    # |product| = exp(−Σ −log |strength|); its sign is that of the ends' products from their root.
    length = tree.with_lengths(np.where(tree.parent < 0, 0.0, -np.log(size)))
    sign = np.ones(tree.n_nodes)
    for v in tree.order.tolist():
        if tree.parent[v] >= 0:
            sign[v] = sign[tree.parent[v]] * (-1.0 if strength[v] < 0 else 1.0)
    observed = np.arange(tree.n_observed)
    lengths = length.path_lengths(tree.hidden, observed)
    is_free = (tree.parent >= 0) & ~_signed_edges(model)
    without = tree.with_lengths(is_free.astype(np.float64)).path_lengths(tree.hidden, observed)
    product = np.where(without > 0, 1.0, sign[tree.hidden][:, None] * sign[observed])
    return np.asarray(product * np.exp(-lengths))


def has_direction(model: Scored) -> BoolArray:
    """Whether there is more and less of a node: of numbers, ordered answers, and of two states.

    Dependence has a sign only where both ends have a direction. Pictures, the page and
    :func:`edge_strengths` all ask this function.

    Parameters
    ----------
    model : Tree, model or fitted LatentTree

    Returns
    -------
    array of bool of shape (n_nodes,)
        Of bare trees and of mixtures, whose edges have no parameters of one model, all False.

    Examples
    --------
    >>> from latentree import simulate
    >>> star = simulate.latent_class(3)
    >>> has_direction(simulate.random_discrete_model(star, [2, 2, 3, 4], 0)).tolist()
    [True, True, False, False]
    """
    model = getattr(model, "model_", model)
    tree = tree_of(model)
    if isinstance(model, Tree | TreeMixture):
        return np.zeros(tree.n_nodes, bool)
    if isinstance(model, GaussianTreeModel):
        return np.ones(tree.n_nodes, bool)
    states = np.append(model.schema.cardinalities, np.zeros(tree.n_hidden))
    if isinstance(model, StateTreeModel):
        states = model.n_states
    known = (states == 0) | (states == 2)
    known[: tree.n_observed] |= [kind == "ordered" for kind in model.schema.kinds]
    return np.asarray(known)


def _signed_edges(model: Scored) -> BoolArray:
    """Whether the edge above each node has a sign."""
    known, parent = has_direction(model), tree_of(model).parent
    return np.asarray(known & (parent >= 0) & known[parent])


def _signed(model: Scored) -> FloatArray:
    """Strengths of the edges with the model's own signs; positive without a sign."""
    model = getattr(model, "model_", model)
    if isinstance(model, StateTreeModel):
        return _associations(model)
    if isinstance(model, GaussianTreeModel | CopulaTreeModel):
        return np.where(model.tree.parent < 0, 0.0, model.correlations)
    if isinstance(model, TreeMixture):
        return np.append(model.class_strengths(), 0.0)
    tree = tree_of(model)
    return np.where(tree.parent < 0, 0.0, np.exp(-tree.length))


def _associations(model: DiscreteTreeModel | MixedTreeModel) -> FloatArray:
    """Cramér's V, or the correlation ratio of a number, of every node and its parent.

    An edge that has a sign has that of the covariance, states counting as 0, 1, ….
    """
    layout, tree = model.layout, model.tree
    marginals = np.split(layout.marginals(model.theta), layout.state_starts[1:-1])
    out, is_signed = np.zeros(tree.n_nodes), _signed_edges(model)
    for node in np.flatnonzero(tree.parent >= 0).tolist():
        above = marginals[tree.parent[node]]
        emission = model.emissions[node] if node < tree.n_observed else None
        if emission is None:
            table = layout.table(model.theta, node)
            out[node], means = _cramer(above, table), table @ np.arange(table.shape[1])
        else:
            out[node], means = _correlation_ratio(above, emission), emission.mean
        if is_signed[node]:
            code = np.arange(above.size)
            covariance = float(above @ ((code - above @ code) * (means - means[0])))
            out[node] = -out[node] if covariance < 0 else out[node]
    return out


def _correlation_ratio(p: FloatArray, emission: Emission) -> float:
    """η = √(Var E[x | k] / Var x)."""
    means = emission.mean
    between = float(mixture_moments(p, means, np.zeros(p.size))[1])
    total = between + float(p @ emission.variance)
    return float(np.sqrt(between / total)) if total > 0 else 0.0


def _cramer(p: FloatArray, table: FloatArray) -> float:
    """V = √(χ²/n / (min(K, L) − 1)) with χ²/n = Σ P(i, j)² / (P(i)·P(j)) − 1."""
    fewest = min(table.shape)
    if fewest < 2:
        return 0.0
    joint = p[:, None] * table
    expected = p[:, None] * joint.sum(axis=0)
    chi2 = float((joint**2 / np.where(expected > 0, expected, 1.0)).sum()) - 1.0
    return float(np.sqrt(min(max(chi2, 0.0) / (fewest - 1), 1.0)))


def _fewest_negative(tree: Tree, signed: FloatArray, may_turn: np.ndarray) -> FloatArray:
    """Return signs of the nodes with the least Σ |strength| over negative edges.

    From the leaves up: ``cost[s][v]`` is the least weight below v when v is (1) or is not (0)
    turned; then from the root down the choices that gave it.
    """
    parent, weight = tree.parent.tolist(), signed.tolist()
    cost = [[0.0] * tree.n_nodes, [0.0 if turn else np.inf for turn in may_turn.tolist()]]
    order = tree.order.tolist()
    for v in reversed(order):
        if parent[v] >= 0:
            for side in (0, 1):
                cost[side][parent[v]] += min(
                    cost[own][v] + max(0.0, -weight[v] if own == side else weight[v])
                    for own in (0, 1)
                )
    chosen = [0] * tree.n_nodes
    for v in order:
        side = chosen[parent[v]] if parent[v] >= 0 else 0
        add = [max(0.0, -weight[v] if own == side else weight[v]) for own in (0, 1)]
        chosen[v] = int(cost[1][v] + add[1] < cost[0][v] + add[0])
    signs: FloatArray = 1.0 - 2.0 * np.array(chosen)
    return signs

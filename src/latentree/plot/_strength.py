"""How strongly, and with which sign, the two ends of every edge depend on each other."""

from __future__ import annotations

import numpy as np

from latentree.errors import ModelError
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray

Drawable = Tree | GaussianTreeModel | DiscreteTreeModel


def tree_of(model: Drawable) -> Tree:
    """Return the tree of a model, of a fitted estimator, or the tree itself."""
    model = getattr(model, "model_", model)
    if isinstance(model, Tree):
        return model
    if isinstance(model, GaussianTreeModel | DiscreteTreeModel):
        return model.tree
    raise ModelError(f"expected a tree or a tree model, got {type(model).__name__}")


def edge_strengths(model: Drawable) -> FloatArray:
    """Strength of the edge above every node, from −1 to 1; 0 at roots.

    Trees: exp(−length). Gaussian models: the correlation. Discrete ones: Cramér's V, negative for
    two-state ends whose table has a negative determinant. The sign of a hidden variable is a
    matter of convention: those are chosen that leave the least weight on negative edges.
    """
    model = getattr(model, "model_", model)
    if isinstance(model, GaussianTreeModel):
        return _fewest_negative(model.tree, model.correlations, np.ones(model.tree.n_nodes, bool))
    if isinstance(model, DiscreteTreeModel):
        return _fewest_negative(model.tree, _associations(model), model.n_states == 2)
    tree = tree_of(model)
    return np.where(tree.parent < 0, 0.0, np.exp(-tree.length))


def _associations(model: DiscreteTreeModel) -> FloatArray:
    """Cramér's V of every node and its parent, signed when both have two states."""
    layout, tree = model.layout, model.tree
    marginals = np.split(layout.marginals(model.theta), layout.state_starts[1:-1])
    return np.array(
        [
            0.0 if above < 0 else _cramer(marginals[above], layout.table(model.theta, node))
            for node, above in enumerate(tree.parent.tolist())
        ]
    )


def _cramer(p: FloatArray, table: FloatArray) -> float:
    """V = √(χ²/n / (min(K, L) − 1)) with χ²/n = Σ P(i, j)² / (P(i)·P(j)) − 1."""
    fewest = min(table.shape)
    if fewest < 2:
        return 0.0
    joint = p[:, None] * table
    expected = p[:, None] * joint.sum(axis=0)
    chi2 = float((joint**2 / np.where(expected > 0, expected, 1.0)).sum()) - 1.0
    v = float(np.sqrt(min(max(chi2, 0.0) / (fewest - 1), 1.0)))
    # The determinant of [[1 − a, a], [1 − b, b]] is b − a.
    return -v if table.shape == (2, 2) and table[1, 1] < table[0, 1] else v


def _fewest_negative(tree: Tree, signed: FloatArray, may_flip: np.ndarray) -> FloatArray:
    """Flip hidden variables so that the sum of |strength| over negative edges is least.

    From the leaves up: ``cost[s][v]`` is the least weight below v when v is (1) or is not (0)
    flipped; then from the root down the choices that gave it.
    """
    parent, weight = tree.parent.tolist(), signed.tolist()
    flips = (may_flip & (np.arange(tree.n_nodes) >= tree.n_observed)).tolist()
    cost = [[0.0] * tree.n_nodes, [0.0 if flip else np.inf for flip in flips]]
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
    sign = 1.0 - 2.0 * np.array(chosen)
    return signed * sign * np.where(tree.parent < 0, 1.0, sign[tree.parent])

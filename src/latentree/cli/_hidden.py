"""Which observed variables each hidden variable is tied to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentree.errors import ModelError
from latentree.models import Model, edge_strengths, loadings
from latentree.tree import Tree

_FROM_AFAR = 3
_WEAKEST = 1e-300


class HiddenSummary(NamedTuple):
    """A hidden variable and the observed ones that it is tied to, strongest first.

    Members whose nearest hidden variable it is are its own. A hidden variable among hidden ones
    may have none of its own (``own`` is False); members are then those tied most strongly.
    """

    name: str
    members: tuple[str, ...]
    strengths: tuple[float, ...]
    own: bool


def hidden_summaries(model: Model) -> list[HiddenSummary]:
    """Return for each hidden variable the observed ones whose nearest hidden variable it is.

    The strength of two variables is the product of the strengths of the edges between them.
    """
    tree: Tree = model.tree
    if not tree.n_hidden:
        return []
    strength = np.abs(loadings(model))
    nearest = strength.argmax(axis=0)
    found = []
    for k, h in enumerate(tree.hidden.tolist()):
        order = np.argsort(-strength[k], kind="stable")
        order = order[strength[k][order] > 0]  # of the same component
        members = order[nearest[order] == k]
        shown = members if members.size else order[:_FROM_AFAR]
        found.append(
            HiddenSummary(
                tree.names[h],
                tuple(tree.names[v] for v in shown.tolist()),
                tuple(strength[k][shown].tolist()),
                bool(members.size),
            )
        )
    return found


def measured(model: Model) -> tuple[Tree, str]:
    """Return the tree with lengths that follow from the model, and what these are.

    The lengths of a model's own tree are those that it was learned with, or 1 where none were.
    """
    try:
        return model.distance_tree(), "information distances"
    except ModelError:  # different numbers of states, or an edge without dependence
        return _by_strength(model), "−log strengths"


def _by_strength(model: Model) -> Tree:
    tree: Tree = model.tree
    strength = np.maximum(np.abs(edge_strengths(model)), _WEAKEST)
    return tree.with_lengths(np.where(tree.parent < 0, 0.0, -np.log(np.minimum(strength, 1.0))))

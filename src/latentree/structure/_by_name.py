"""Learners by the names of their methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from latentree.distances import DistancesLike, Sample
from latentree.errors import DistanceError
from latentree.structure._blocks import Progress, report
from latentree.structure._chow_liu import chow_liu, mutual_information_tree
from latentree.structure._cl_blind import cl_blind
from latentree.structure._cl_grouping import cl_grouping
from latentree.structure._hidden_chow_liu import hidden_chow_liu, hidden_mutual_information_tree
from latentree.structure._independence import independent_groups
from latentree.structure._neighbor_joining import neighbor_joining
from latentree.structure._recursive_grouping import recursive_grouping
from latentree.structure._spectral import spectral_neighbor_joining
from latentree.tree import Tree

METHODS: dict[str, Callable[..., Tree]] = {
    "chow_liu": chow_liu,
    "nj": neighbor_joining,
    "snj": spectral_neighbor_joining,
    "rg": recursive_grouping,
    "cl_blind": cl_blind,
    "clnj": partial(cl_grouping, subroutine="nj"),
    "clrg": partial(cl_grouping, subroutine="rg"),
    "hclt": hidden_chow_liu,
}
"""Learners that need nothing but distances, by the names of their methods."""

_BY_INFORMATION = {"chow_liu": mutual_information_tree, "hclt": hidden_mutual_information_tree}
_REPORTS_STEPS = ("rg", "clnj", "clrg")


def learn_structure(
    distances: DistancesLike, method: str = "clrg", progress: Progress | None = None, **options: Any
) -> Tree:
    """Learn a tree by the method of that name.

    Parameters
    ----------
    distances : Distances or square array
        Information distances.
    method : {"clrg", "clnj", "rg", "nj", "snj", "cl_blind", "chow_liu", "hclt"}
        The learner.
    progress : callable, optional
        Called as ``progress(done, total, message)`` from time to time, and with done = total at
        the end.
    **options
        Options of the learner.

    Returns
    -------
    Tree
        What the learner returns.

    Examples
    --------
    >>> learn_structure([[0, 2, 2], [2, 0, 2], [2, 2, 0]], "nj", exact=True)
    Tree(3 observed, 1 hidden, 3 edges)
    """
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise DistanceError(f"method is {method!r}, but must be one of {known}")
    if method in _REPORTS_STEPS:
        options["progress"] = progress
    report(progress, 0, 1, f"learning by {method}")
    tree = METHODS[method](distances, **options)
    report(progress, 1, 1, f"learned by {method}")
    return tree


def learn_tree(sample: Sample, method: str) -> Tree:
    """Learn the tree of a sample by one of the methods that need nothing but distances.

    The Chow-Liu tree of discrete columns is that of their mutual information, the most likely tree
    without hidden nodes; as a start for others the spanning tree of the distances is used.
    """
    if method == "chow_liu" and sample.family == "discrete":
        return _within_groups(mutual_information_tree(sample), sample)
    if method in _BY_INFORMATION and sample.family == "discrete":
        return _BY_INFORMATION[method](sample)
    return learn_structure(sample.distances, method)


def _within_groups(tree: Tree, sample: Sample) -> Tree:
    """Cut a tree without hidden nodes where variables look independent of each other."""
    group = independent_groups(sample.distances)
    above, below = tree.edges.T
    kept = group[above] == group[below]
    lengths = tree.length[below[kept]]
    return Tree.from_edges(tree.edges[kept], tree.n_observed, lengths, tree.names)

"""Posteriors of nodes given each row: normal distributions, or probabilities of states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from latentree.errors import ModelError
from latentree.inference._nodes import node_number
from latentree.tree import Tree
from latentree.typing import BoolArray, FloatArray, IntArray, Node

Number = TypeVar("Number", float, FloatArray)


class Normal(NamedTuple, Generic[Number]):
    """A normal distribution, or arrays of the means and variances of many.

    Parameters
    ----------
    mean : float or array of float
    variance : float or array of float

    Examples
    --------
    >>> from latentree.models import Normal
    >>> mean, variance = Normal(0.5, 2.0)
    >>> mean
    0.5
    """

    mean: Number
    variance: Number


class NormalPair(NamedTuple):
    """Joint normal distributions of the two ends of an edge, one per row.

    Parameters
    ----------
    parent, child : Normal
        The marginal distributions of the parent and of the child.
    covariance : array of float
        Between the two.

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
    >>> model.edge_posterior([[None, None]], 0, 1).covariance
    array([0.5])
    """

    parent: Normal[FloatArray]
    child: Normal[FloatArray]
    covariance: FloatArray


def refuse_rows(impossible: BoolArray, numbers: IntArray) -> None:
    """Raise an error that names the first row that is impossible."""
    if impossible.any():
        raise ModelError(
            f"row {numbers[impossible.argmax()]} has probability zero under the model, "
            "so nothing can be inferred from it"
        )


@dataclass(frozen=True, eq=False, repr=False)
class DiscretePosterior:
    """Probabilities of the states of some nodes, given each row.

    ``posterior[node]`` is an array with a row per row of the data and a column per state.

    Parameters
    ----------
    tree : Tree
        The tree of the model.
    nodes : array of int
        The nodes that were asked for.
    probabilities : array of float
        One row per row of the data; the states of all ``nodes`` end to end.
    starts : array of int
        Where the states of each node start, and the end of the last.

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_symmetric_model(lt.simulate.latent_class(3), 2, 0)
    >>> posterior = model.posterior([[0, 0, 1], [1, 1, 1]])
    >>> posterior, posterior["h1"].shape
    (DiscretePosterior(2 rows, 1 nodes), (2, 2))
    """

    tree: Tree
    nodes: IntArray
    probabilities: FloatArray
    starts: IntArray

    def __getitem__(self, node: Node) -> FloatArray:
        number = node_number(self.tree, node)
        places = np.flatnonzero(self.nodes == number)
        if not places.size:
            raise ModelError(f"node {self.tree.names[number]!r} was not asked for")
        place = places[0]
        return self.probabilities[:, self.starts[place] : self.starts[place + 1]]

    def __repr__(self) -> str:
        return f"DiscretePosterior({len(self.probabilities)} rows, {self.nodes.size} nodes)"

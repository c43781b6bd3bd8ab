"""The methods that all probability models on a tree share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from latentree.data import Schema
from latentree.distances import Distances
from latentree.inference import DiscretePosterior, Normal
from latentree.tree import Tree
from latentree.typing import AnyArray, FloatArray, Node, PathLike, RandomState, TableLike


@runtime_checkable
class TreeModel(Protocol):
    """A tree and its parameters: the methods that all models share.

    Functions that score, sample or draw a model of any family take a ``TreeModel``. A new family
    of models is a class with these methods; it need not inherit from anything.

    Examples
    --------
    >>> import latentree as lt
    >>> tree = lt.simulate.latent_class(3)
    >>> isinstance(lt.simulate.random_gaussian_model(tree, 0), lt.models.TreeModel)
    True
    >>> isinstance(tree, lt.models.TreeModel)
    False
    """

    @property
    def tree(self) -> Tree:
        """The tree; a model does not use its lengths."""
        ...

    @property
    def schema(self) -> Schema:
        """The columns that data for this model has: names, family and labels."""
        ...

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, as BIC and AIC count them."""
        ...

    def log_likelihood(self, X: TableLike) -> FloatArray:
        """Return the log-density or log-probability of every row; missing cells are summed out.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float, one per row
        """
        ...

    def total_log_likelihood(self, X: TableLike, weights: ArrayLike | None = None) -> float:
        """Return the weighted sum of the rows' log-likelihoods.

        Parameters
        ----------
        X : table of any kind
        weights : array of float, optional
            How much each row counts; 1 when left out.

        Returns
        -------
        float
        """
        ...

    def posterior(
        self, X: TableLike, nodes: Iterable[Node] | None = None
    ) -> Normal[FloatArray] | DiscretePosterior:
        """Return the distributions of nodes given each row.

        Parameters
        ----------
        X : table of any kind
        nodes : iterable of int or str, optional
            By number or name; all hidden nodes when left out.

        Returns
        -------
        Normal or DiscretePosterior
            Means and variances, or probabilities of states.
        """
        ...

    def impute(self, X: TableLike) -> AnyArray:
        """Return the observed columns with missing cells filled in.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of shape (n_rows, n_observed)
            Posterior means, or the most probable labels.
        """
        ...

    def complete(self, X: TableLike) -> AnyArray:
        """Return the most probable values of all nodes given each row.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of shape (n_rows, n_nodes)
        """
        ...

    def sample(
        self, n_samples: int, random_state: RandomState = None, hidden: bool = False
    ) -> AnyArray:
        """Draw rows of the observed variables, with ``hidden=True`` of all nodes.

        Parameters
        ----------
        n_samples : int
        random_state : int or numpy.random.Generator, optional
        hidden : bool

        Returns
        -------
        array, one row a draw
        """
        ...

    def sample_hidden(self, X: TableLike, random_state: RandomState = None) -> AnyArray:
        """Draw the values of the hidden nodes given each row.

        Parameters
        ----------
        X : table of any kind
        random_state : int or numpy.random.Generator, optional

        Returns
        -------
        array of shape (n_rows, n_hidden)
        """
        ...

    def marginal(self, node: Node) -> Normal[float] | FloatArray:
        """Return the distribution of one node.

        Parameters
        ----------
        node : int or str

        Returns
        -------
        Normal, or array of probabilities
        """
        ...

    def conditional(
        self, node: Node, given: Mapping[Node, Hashable] | None = None
    ) -> Normal[float] | FloatArray:
        """Return the distribution of one node given values of others.

        Parameters
        ----------
        node : int or str
        given : mapping of nodes to values, optional
            Of observed or hidden nodes.

        Returns
        -------
        Normal, or array of probabilities
        """
        ...

    def information_distances(self) -> Distances:
        """Return the exact information distances between all nodes.

        Returns
        -------
        Distances
        """
        ...

    def distance_tree(self) -> Tree:
        """Return the tree with the information distances of its edges as lengths.

        Returns
        -------
        Tree
        """
        ...

    def save(self, path: PathLike, report: Mapping[str, object] | None = None) -> None:
        """Write the model to a JSON file that :func:`latentree.load` reads.

        Parameters
        ----------
        path : str or path
        report : mapping, optional
            What to keep beside the model.
        """
        ...

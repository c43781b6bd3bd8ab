"""Gaussian copula trees: a Gaussian tree whose observed variables are seen through margins."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from latentree.data import Schema, Table, as_table
from latentree.distances import Distances
from latentree.errors import ModelError
from latentree.inference import (
    DiscretePosterior,
    Margin,
    Normal,
    NormalMargin,
    NumberMargin,
    Odds,
    RankMargin,
    ScoreEmission,
    ScoreMixture,
    Thresholds,
    given_number,
    mixture_moments,
    node_number,
    node_numbers,
    numbered_evidence,
    recorded,
    set_fields,
)
from latentree.models._base import BaseTreeModel
from latentree.models._factors import AnswerReports
from latentree.models._fit_indices import FitIndices, latent_fit_indices
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._grid import (
    END,
    N_POINTS,
    POINTS,
    STEP,
    grid_parameters,
    normal_weights,
    turned_correlations,
)
from latentree.models._mixed import MixedTreeModel
from latentree.models._states import decoded
from latentree.tree import Tree, leaf_edges
from latentree.typing import AnyArray, FloatArray, IntArray, Kind, Node, RandomState, TableLike

NOTHING = np.zeros(N_POINTS)
"""Variances of a hidden variable at the points of its grid."""

_LEAST_VARIANCE = 1e-20  # of a number that is known, to divide by


@dataclass(frozen=True, eq=False, repr=False)
class CopulaTreeModel(AnswerReports, BaseTreeModel):
    """A Gaussian tree whose observed variables are seen through margins of their own.

    Hidden variables are standard normal, and node v given its parent p is N(ρ_v·x_p, 1 − ρ_v²), as
    in :class:`GaussianTreeModel`. Of the observed ones a column shows what its margin says: ordered
    answers the interval between two thresholds, numbers their value on a scale of their own, labels
    without an order one of several odds that depend on the neighbor. Inference runs on a grid of 43
    points for every hidden variable; if all columns are numbers with densities, it is exact.

    Parameters
    ----------
    tree : Tree
        The structure; its lengths are not used. Unless all columns are numbers with densities,
        columns are leaves, and only two with ordered levels may be joined directly.
    correlations : array of float
        The correlation of every node with its parent, in (−1, 1); ignored at roots and of labels
        without an order, whose odds say it.
    margins : sequence, one an observed variable
        :class:`latentree.inference.Thresholds`, ``Odds``, ``NormalMargin`` or ``RankMargin``.
    labels : sequence of sequences, optional
        What the levels of each observed variable are called; empty for numbers.

    References
    ----------
    R. D. Bock and M. Aitkin, "Marginal maximum likelihood estimation of item parameters",
    Psychometrika 46 (1981). H. Liu, J. Lafferty and L. Wasserman, "The nonparanormal", Journal of
    Machine Learning Research 10 (2009).

    Examples
    --------
    >>> import latentree as lt
    >>> from latentree.inference import Thresholds
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
    >>> answers = [Thresholds([-1.0, 0.0, 1.0])] * 3
    >>> model = lt.CopulaTreeModel(star, [0.8, 0.7, -0.6, 0], answers)
    >>> model
    CopulaTreeModel(Tree(3 observed, 1 hidden, 3 edges), 3 ordered)
    >>> model.posterior([[3, 3, 0]]).mean.round(2)
    array([[1.81]])
    """

    tree: Tree
    correlations: FloatArray
    margins: tuple[Margin, ...]
    schema: Schema

    def __init__(
        self,
        tree: Tree,
        correlations: ArrayLike,
        margins: Sequence[Margin],
        labels: Sequence[Sequence[Hashable]] | None = None,
    ) -> None:
        if len(margins) != tree.n_observed:
            raise ModelError(f"{tree.n_observed} columns need as many margins, got {len(margins)}")
        rho = np.array(correlations, np.float64)
        if rho.shape == (tree.n_nodes,):
            for edge, margin in zip(leaf_edges(tree)[1].tolist(), margins, strict=True):
                if isinstance(margin, Odds) and edge >= 0:
                    # Of two labels the second is more likely above or below; of more no one is.
                    falls = margin.n_levels == 2 and margin.slopes[1] < 0
                    strength = margin.strength(POINTS, normal_weights(POINTS))
                    rho[edge] = -strength if falls else strength
        rho = np.array(GaussianTreeModel(tree, rho).correlations)
        schema = _schema(tree, margins, labels)
        if any(margin.resolution > 0 for margin in margins):
            _check_leaves(tree)
            _check_pairs(tree, margins)
        set_fields(self, tree=tree, correlations=rho, margins=tuple(margins), schema=schema)

    # What the model says --------------------------------------------------------------------

    @cached_property
    def latent(self) -> GaussianTreeModel:
        """The Gaussian tree behind the margins, observed variables as their normal scores."""
        return GaussianTreeModel(self.tree, self.correlations)

    @property
    def is_dense(self) -> bool:
        """Whether all columns are numbers with densities, so that inference is exact."""
        return all(margin.resolution == 0 for margin in self.margins)

    @cached_property
    def grid(self) -> MixedTreeModel:
        """The model with hidden variables on a grid of 43 states."""
        return self._grid(np.broadcast_to(POINTS, (self.tree.n_nodes, N_POINTS)))

    def oriented(self) -> CopulaTreeModel:
        """Return the same distribution with the signs of the hidden variables fixed.

        The sign of a hidden variable is free. Here they are those of
        :func:`latentree.models.orientation`, so that scores and loadings agree.

        Returns
        -------
        CopulaTreeModel

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.CopulaTreeModel(star, [-0.8, -0.7, 0.6, 0], [Thresholds([0.0])] * 3)
        >>> model.oriented().correlations
        array([ 0.8,  0.7, -0.6,  0. ])
        """
        from latentree.models._strength import orientation  # which knows the models

        sign = orientation(self)
        margins = [
            Odds(margin.intercepts, margin.slopes * sign[neighbor])
            if isinstance(margin, Odds) and neighbor >= 0
            else margin
            for neighbor, margin in zip(leaf_edges(self.tree)[0], self.margins, strict=True)
        ]
        rho = self.correlations * sign * sign[self.tree.parent]
        found = CopulaTreeModel(self.tree, rho, margins, self.schema.labels)
        object.__setattr__(found, "schema", self.schema)
        return found

    @property
    def n_parameters(self) -> int:
        """Free parameters: one an edge, and those of the margins."""
        total = sum(margin.n_parameters for margin in self.margins)
        odds = [isinstance(margin, Odds) for margin in self.margins]
        alone = self.tree.degrees[: self.tree.n_observed] == 0
        joined = sum(self.tree.parent >= 0) - sum(odds & ~alone)
        for margin, lonely in zip(self.margins, alone, strict=True):
            if isinstance(margin, Odds) and lonely:
                total -= margin.n_levels - 1
        return int(total + joined - self._n_free())

    def _n_free(self) -> int:
        """Number of correlations that others make up for.

        Of a hidden variable between two columns only the product of both is seen.
        """
        tree = self.tree
        pairs = [tree.neighbors(v) for v in tree.hidden.tolist() if tree.degrees[v] == 2]
        return sum(not any(isinstance(self.margins[v], Odds) for v in pair) for pair in pairs)

    def log_likelihood(self, X: TableLike) -> FloatArray:
        """Return the log-probability, or log-density, of every row; missing cells are summed out.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float, one per row

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> pair = lt.CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.5], [Thresholds([0.0])] * 2)
        >>> import numpy as np
        >>> np.exp(pair.log_likelihood([[0, 0], [0, 1], [0, None]])).round(4)
        array([0.3333, 0.1667, 0.5   ])
        """
        table = self._table(X)
        if not self.is_dense:
            return self.grid.log_likelihood(self._on_grid(table))
        slopes = np.zeros(table.n_rows)
        for column in range(table.n_columns):
            cells = table.column(column)
            there = ~np.isnan(cells)
            slopes[there] += self._number_margin(column).log_slope(cells[there])
        return self.latent.log_likelihood(self._scores(table)) + slopes

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
            Means and variances of hidden variables: scores, and the squares of their standard
            errors. Of observed numbers the same as :meth:`imputed` has, with the variance 0 where
            they are given. Probabilities of the labels of observed variables with labels.

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.CopulaTreeModel(star, [0.8, 0.8, 0.8, 0], [Thresholds([0.0])] * 3)
        >>> mean, variance = model.posterior([[1, 1, 1], [0, None, 1]])
        >>> abs(mean).round(2).tolist(), (variance**0.5).round(2).tolist()
        ([[1.03], [0.0]], [[0.65], [0.56]])
        """
        numbers, table = node_numbers(self.tree, nodes), self._table(X)
        labeled = numbers[numbers < self.tree.n_observed]
        labeled = labeled[self.schema.cardinalities[labeled] > 0]
        if labeled.size:
            if labeled.size < numbers.size:
                raise ModelError("ask for labels and for numbers one after the other")
            return self.grid.posterior(self._on_grid(table), numbers)
        if self.is_dense:
            mean, variance = map(np.array, self.latent.posterior(self._scores(table), numbers))
        else:
            mean, variance = np.empty((2, table.n_rows, numbers.size))
            for place, number in enumerate(numbers.tolist()):
                if number >= self.tree.n_observed:
                    share = self.grid.posterior(self._on_grid(table), [number])[number]
                    mean[:, place], variance[:, place] = mixture_moments(share, POINTS, NOTHING)
        observed = np.flatnonzero(numbers < self.tree.n_observed)
        predicted = self._predicted(table, numbers[observed].tolist())
        for place, found in zip(observed.tolist(), predicted, strict=True):
            cells = table.column(int(numbers[place]))
            is_given, (center, spread) = ~np.isnan(cells), found.moments()
            mean[:, place] = np.where(is_given, cells, center)
            variance[:, place] = np.where(is_given, 0.0, spread)
        return Normal(mean, variance)

    def _predicted(self, table: Table, columns: Sequence[int]) -> list[ScoreMixture]:
        """Return the distributions of observed numbers given each row."""
        if not columns:
            return []
        if self.is_dense:
            scores, variances = self.latent.posterior(self._scores(table), columns)
            one = np.ones((table.n_rows, 1))
            spreads = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
            return [
                ScoreMixture(self._number_margin(column), one, z[:, None], spread[:, None])
                for column, z, spread in zip(columns, scores.T, spreads.T, strict=True)
            ]
        weights = self.grid._neighbor_weights(self._on_grid(table), columns)
        emissions = [cast(ScoreEmission, self.grid.emissions[column]) for column in columns]
        return [emission.mixture(own) for emission, own in zip(emissions, weights, strict=True)]

    def impute(self, X: TableLike) -> AnyArray:
        """Return the observed columns with missing cells filled in.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of shape (n_rows, n_observed)
            Labels, the most probable ones where missing; numbers, means where missing, of rank
            margins medians. Of objects where some column has labels that are no numbers.

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> pair = lt.CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.9], [Thresholds([0.0])] * 2)
        >>> pair.impute([[1, None]])
        array([[1., 1.]])
        """
        return decoded(self.imputed(X)[0], self.schema)

    def imputed(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return filled columns as numbers, and how uncertain the filled cells are.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        values : array of shape (n_rows, n_observed)
            Codes of columns with labels.
        spread : array of shape (n_rows, n_observed)
            0 for known cells; the standard deviation of a missing number (of rank margins half the
            distance between its 16 % and 84 % quantiles), and the probability that a missing label
            is another one.
        """
        table = self._table(X)
        if not self.is_dense:
            values, spread = self.grid.imputed(self._on_grid(table))
            counts = [kind == "count" for kind in self.schema.kinds]
            values[:, counts] = np.rint(values[:, counts])
            return values, spread
        values, spread = np.array(table.values), np.zeros(table.values.shape)
        observed = range(self.tree.n_observed)
        scores, variances = self.latent.posterior(self._scores(table), observed)
        for column in observed:
            gaps = np.isnan(values[:, column])
            z, s = scores[gaps, column], np.sqrt(variances[gaps, column])
            margin = self._number_margin(column)
            low, middle, high = (margin.value(z + side * s) for side in (-1, 0, 1))
            values[gaps, column], spread[gaps, column] = middle, 0.5 * (high - low)
        return values, spread

    def complete(self, X: TableLike) -> FloatArray:
        """Return the most probable values of all nodes given each row (max-product).

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float of shape (n_rows, n_nodes)
            Codes of columns with labels; hidden variables on the grid.
        """
        table = self._table(X)
        if self.is_dense:
            found = np.array(self.latent.complete(self._scores(table)))
            for column in range(table.n_columns):
                found[:, column] = self._number_margin(column).value(found[:, column])
            known = ~np.isnan(table.values)
            found[:, : table.n_columns][known] = table.values[known]
            return found
        found = self.grid.complete(self._on_grid(table))
        hidden = self.tree.hidden
        found[:, hidden] = POINTS[found[:, hidden].astype(np.int64)]
        return found

    def sample(
        self, n_samples: int, random_state: RandomState = None, hidden: bool = False
    ) -> AnyArray:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int
        random_state : int or numpy.random.Generator, optional
        hidden : bool
            Whether columns for the hidden nodes follow.

        Returns
        -------
        array
            Observed variables as labels and numbers.

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> pair = lt.CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.9], [Thresholds([0.0])] * 2)
        >>> pair.sample(100, random_state=0).mean(axis=0).round(1)
        array([0.5, 0.5])
        """
        rng = np.random.default_rng(random_state)
        self._require_draws(n_samples, n_bytes=16.0)  # scores, and values
        scores = self.latent.sample(n_samples, rng, hidden=True)
        out = np.array(scores)
        neighbors = leaf_edges(self.tree)[0].tolist()
        for column, margin in enumerate(self.margins):
            if isinstance(margin, Odds):
                # Alone, a column has a normal variable of its own to depend on.
                z = scores[:, neighbors[column] if neighbors[column] >= 0 else column]
                out[:, column] = _drawn(margin.table(z), rng)
            else:
                found = margin.value(scores[:, column])
                if isinstance(margin, NormalMargin | RankMargin):
                    found = recorded(found, margin.resolution, margin.origin)
                out[:, column] = found
        observed = decoded(out[:, : self.tree.n_observed], self.schema)
        return np.hstack([observed, out[:, self.tree.n_observed :]]) if hidden else observed

    def sample_hidden(self, X: TableLike, random_state: RandomState = None) -> FloatArray:
        """Draw the hidden nodes given each row, one draw per row.

        Parameters
        ----------
        X : table of any kind
        random_state : int or numpy.random.Generator, optional

        Returns
        -------
        array of float of shape (n_rows, n_hidden)
        """
        rng = np.random.default_rng(random_state)
        table = self._table(X)
        if self.is_dense:
            return np.asarray(self.latent.sample_hidden(self._scores(table), rng))
        points = POINTS[self.grid.sample_hidden(self._on_grid(table), rng)]
        return np.asarray(points + STEP * rng.uniform(-0.5, 0.5, points.shape))

    def marginal(self, node: Node) -> Normal[float] | FloatArray:
        """Return the distribution of one node.

        Parameters
        ----------
        node : int or str

        Returns
        -------
        Normal, or array of float
            Probabilities of labels; of rank margins the median, and the square of half the distance
            between the 16 % and 84 % quantiles.

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> pair = lt.CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.9], [Thresholds([0.0])] * 2)
        >>> pair.marginal("x1")
        array([0.5, 0.5])
        """
        number = node_number(self.tree, node)
        if number >= self.tree.n_observed:
            return Normal(0.0, 1.0)
        margin = self.margins[number]
        if isinstance(margin, Thresholds):
            return margin.probabilities()
        if isinstance(margin, Odds):
            return np.asarray(normal_weights(POINTS) @ margin.table(POINTS))
        low, middle, high = margin.value(np.array([-1.0, 0.0, 1.0])).tolist()
        return Normal(middle, (0.5 * (high - low)) ** 2)

    def conditional(
        self, node: Node, given: Mapping[Node, Hashable] | None = None
    ) -> Normal[float] | FloatArray:
        """Return the distribution of a node given values of others.

        Parameters
        ----------
        node : int or str
        given : mapping of nodes to values, optional
            Labels or numbers of observed nodes, numbers from −5.3 to 5.3 of hidden ones.

        Returns
        -------
        Normal, or array of float
            Probabilities of labels; mean and variance of others, of rank margins as in
            :meth:`marginal`.

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.CopulaTreeModel(star, [0.8, 0.8, 0.8, 0], [Thresholds([0.0])] * 3)
        >>> model.conditional("x0", {"x1": 1}).round(2)
        array([0.28, 0.72])
        >>> model.conditional("x0", {"h1": 1.0}).round(2)
        array([0.09, 0.91])
        """
        number, evidence = node_number(self.tree, node), numbered_evidence(self.tree, given)
        if self.is_dense:
            return self._dense_conditional(number, evidence)
        points = np.tile(POINTS, (self.tree.n_nodes, 1))
        states: dict[Node, Hashable] = {}
        for other, value in evidence.items():
            if other < self.tree.n_observed:
                states[other] = value
                continue
            score = given_number(self.tree, other, value)
            if not abs(score) <= END:
                raise ModelError(
                    f"{self.tree.names[other]!r} is given as {value}, but must be from −5.3 to 5.3"
                )
            if other == number:
                return Normal(score, 0.0)
            # Its grid is moved so that one of the points is the score.
            state = int(np.abs(POINTS - score).argmin())
            states[other] = state
            points[other] += score - POINTS[state]
        answer: Normal[float] | FloatArray = self._grid(points).conditional(number, states)
        if number < self.tree.n_observed:
            return answer
        mean, variance = mixture_moments(np.asarray(answer), POINTS, NOTHING)
        return Normal(float(mean), float(variance))

    def _dense_conditional(self, number: int, evidence: Mapping[int, Hashable]) -> Normal[float]:
        scores: dict[Node, Hashable] = {}
        for other, value in evidence.items():
            x = given_number(self.tree, other, value)
            is_seen = other < self.tree.n_observed
            scores[other] = self._number_margin(other).score(np.array([x]))[0] if is_seen else x
        mean, variance = self.latent.conditional(number, scores)
        if number >= self.tree.n_observed:
            return Normal(mean, variance)
        z = mean + np.sqrt(variance) * np.array([-1.0, 0.0, 1.0])
        low, middle, high = self._number_margin(number).value(z).tolist()
        return Normal(middle, (0.5 * (high - low)) ** 2)

    def fit_indices(self, X: TableLike, weights: ArrayLike | None = None) -> FitIndices:
        """Return how well the model reproduces the correlations behind complete rows.

        As :meth:`latentree.GaussianTreeModel.fit_indices`, with polychoric and polyserial
        correlations in place of covariances. They are taken as if the variables behind the columns
        had been seen, so that χ² and its p-value are too strict for answers of few levels; CFI, TLI
        and SRMR describe the fit all the same.

        Parameters
        ----------
        X : table of any kind
            Usually the rows that the model was fitted to; more than there are columns.
        weights : array of float, optional
            How much each row counts; 1 when left out.

        Returns
        -------
        FitIndices

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
        >>> margins = [Thresholds([-1.0, 0.0, 1.0])] * 4
        >>> model = lt.CopulaTreeModel(star, [0.8, 0.7, 0.6, 0.7, 0], margins)
        >>> model.fit_indices(model.sample(1_000, 0)).srmr < 0.05
        True
        """
        if any(isinstance(margin, Odds) for margin in self.margins):
            raise ModelError("indices of fit need numbers and ordered answers, not odds of labels")
        table = as_table(X, schema=self.schema, weights=weights)
        return latent_fit_indices(
            table.counted(), self.latent.correlation(), self.latent.n_correlations
        )

    def information_distances(self) -> Distances:
        """Return the distances −log|ρ| between all nodes, with their signs.

        Returns
        -------
        Distances
            Of the normal variables behind the columns.
        """
        return self.latent.information_distances()

    def distance_tree(self) -> Tree:
        """Return the tree with −log|ρ| of every edge as its length.

        Returns
        -------
        Tree
        """
        return self.latent.distance_tree()

    # Private --------------------------------------------------------------------------------

    def _on_grid(self, table: Table) -> Table:
        return Table(table.values, self.grid.schema)

    def _number_margin(self, column: int) -> NumberMargin:
        """Return the margin of a column of numbers."""
        margin = self.margins[column]
        assert isinstance(margin, NormalMargin | RankMargin)
        return margin

    def _scores(self, table: Table) -> Table:
        """Return the normal scores of numbers with densities."""
        scores = np.empty(table.values.shape)
        for column in range(table.n_columns):
            scores[:, column] = self._number_margin(column).score(table.column(column))
        return Table(scores, self.latent.schema)

    def _grid(self, points: FloatArray) -> MixedTreeModel:
        """Put every hidden node on points of its own, a row of ``points`` each."""
        tree = _rooted_inside(self.tree)
        rho = turned_correlations(self.tree, self.correlations, tree)
        n_states = np.full(tree.n_nodes, points.shape[1])
        n_states[: tree.n_observed] = self.schema.cardinalities
        theta, emissions = grid_parameters(tree, rho, self.margins, points)
        kinds = tuple(self.schema.kinds)
        schema = Schema(self.schema.names, "mixed", self.schema.labels, kinds)
        return MixedTreeModel.from_theta(tree, n_states, theta, emissions, schema)

    def __repr__(self) -> str:
        kinds = self.schema.kinds
        counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
        return f"CopulaTreeModel({self.tree!r}, {', '.join(counts)})"


def _drawn(shares: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a label for every row of probabilities."""
    below = np.cumsum(shares, axis=1)
    return np.asarray((rng.random(len(shares))[:, None] > below[:, :-1]).sum(axis=1))


def _rooted_inside(tree: Tree) -> Tree:
    """Root components at hidden nodes, if they have any."""
    for root in tree.roots.tolist():
        if root < tree.n_observed and tree.degrees[root]:
            inner = int(tree.children(root)[0])
            if inner >= tree.n_observed:
                tree = tree.rerooted(inner)
    return tree


def _check_leaves(tree: Tree) -> None:
    inner = np.flatnonzero(tree.degrees[: tree.n_observed] > 1)
    if inner.size:
        raise ModelError(
            f"{tree.names[inner[0]]!r} has several neighbors, but columns must be leaves, unless "
            "all are numbers with densities"
        )


def _check_pairs(tree: Tree, margins: Sequence[Margin]) -> None:
    """Columns that are joined directly have a table of two levels each."""
    for column, above in enumerate(tree.parent[: tree.n_observed].tolist()):
        if not 0 <= above < tree.n_observed:
            continue
        for node in (column, above):
            if not isinstance(margins[node], Thresholds):
                other = above if node == column else column
                raise ModelError(
                    f"{tree.names[node]!r} has no ordered levels, so it cannot be joined to the "
                    f"column {tree.names[other]!r}: put a hidden variable between them"
                )


def _schema(
    tree: Tree, margins: Sequence[Margin], labels: Sequence[Sequence[Hashable]] | None
) -> Schema:
    """Return the schema of the observed columns."""
    kinds: list[Kind] = []
    known: list[tuple[Hashable, ...]] = []
    for column, margin in enumerate(margins):
        if isinstance(margin, NormalMargin | RankMargin):
            kinds.append(margin.kind)
            known.append(())
            continue
        own = range(margin.n_levels) if labels is None else labels[column]
        if len(own) != margin.n_levels:
            name = tree.names[column]
            raise ModelError(f"{name!r} has {margin.n_levels} levels, but {len(own)} labels")
        kinds.append("category" if isinstance(margin, Odds) else "ordered")
        known.append(tuple(own))
    return Schema(tree.names[: tree.n_observed], "copula", tuple(known), tuple(kinds))

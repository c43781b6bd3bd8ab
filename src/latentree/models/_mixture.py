"""Mixtures of trees: a class variable, and for each of its states a whole tree model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from latentree.data import Schema, Table
from latentree.distances import WEAKEST, Distances
from latentree.errors import ModelError
from latentree.inference import (
    MIDDLE,
    DiscretePosterior,
    Normal,
    RankMargin,
    ScoreMixture,
    chunks,
    mixed_quantiles,
    node_number,
    node_numbers,
    numbered_evidence,
    refuse_rows,
    set_fields,
)
from latentree.models._base import BaseTreeModel, with_schema
from latentree.models._copula import CopulaTreeModel
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._mixed import MixedTreeModel
from latentree.models._states import StateTreeModel, decoded, maximal_correlation
from latentree.tree import Tree
from latentree.typing import (
    AnyArray,
    FloatArray,
    IntArray,
    Node,
    PathLike,
    RandomState,
    TableLike,
)

if TYPE_CHECKING:
    from latentree.models import _naming  # which knows the models

Model = GaussianTreeModel | DiscreteTreeModel | MixedTreeModel | CopulaTreeModel
"""A model of one tree."""

CLASS = "tree"
"""Name of the class variable; underscores follow where a column has it."""


@dataclass(frozen=True, eq=False, repr=False)
class TreeMixture(BaseTreeModel):
    """A mixture of trees: every row comes from one of several tree models, drawn by weight.

    Each component has its own tree, with hidden variables of its own. Which component a row comes
    from is the class variable ``tree``, with the states 0, 1, … in the order of the components. All
    inference is exact: the density of a row is Σ w_k·p_k(x), and what is asked about a row is the
    mean of what the components say, weighted by the probability of each given the row.

    Parameters
    ----------
    components : sequence of models
        All of one family, with the same observed variables in the same order.
    weights : array of float
        Probabilities of the components; they are scaled to sum to 1.

    References
    ----------
    M. Meilă and M. I. Jordan, "Learning with mixtures of trees", Journal of Machine Learning
    Research 1 (2000).

    Examples
    --------
    >>> import latentree as lt
    >>> chain = lt.Tree([-1, 0, 1])
    >>> up, down = (lt.GaussianTreeModel(chain, [0, rho, rho]) for rho in (0.9, -0.9))
    >>> mixture = lt.models.TreeMixture([up, down], [0.5, 0.5])
    >>> mixture
    TreeMixture(2 trees, gaussian, 3 variables)
    >>> mixture.responsibilities([[2.0, 2.0, 2.0], [2.0, -2.0, 2.0]]).round(2)
    array([[1., 0.],
           [0., 1.]])
    """

    components: tuple[Model, ...]
    weights: FloatArray

    def __init__(self, components: Sequence[Model], weights: ArrayLike) -> None:
        parts, shares = tuple(components), np.array(weights, np.float64)
        if not parts or shares.shape != (len(parts),):
            raise ModelError(f"{len(parts)} components need as many weights, got {shares.shape}")
        if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
            raise ModelError(f"weights must be probabilities, got {shares.tolist()}")
        first = parts[0].schema
        if len(first.names) < 3:
            raise ModelError(f"a mixture is of three variables or more, not {len(first.names)}")
        for number, part in enumerate(parts):
            mine = part.schema
            if (mine.names, mine.family, mine.labels) != (first.names, first.family, first.labels):
                raise ModelError(f"component {number} has other variables than component 0")
        if abs(shares.sum() - 1.0) > 1e-12:  # else as they are, to the last bit
            shares = shares / shares.sum()
        set_fields(self, components=parts, weights=shares)

    # What the model says --------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The columns that data for this model has: names, family and labels."""
        return self.components[0].schema

    @cached_property
    def tree(self) -> Tree:
        """All observed variables below the class variable; ``components`` have the trees."""
        names = self.schema.names
        name = CLASS
        while name in names:
            name += "_"
        m = len(names)
        return Tree([m] * m + [-1], n_observed=m, names=[*names, name])

    @property
    def n_trees(self) -> int:
        """Number of components."""
        return len(self.components)

    @property
    def n_states(self) -> IntArray:
        """States of the observed variables, 0 for numbers, and those of the class variable."""
        return np.append(self.schema.cardinalities, self.n_trees)

    @property
    def n_parameters(self) -> int:
        """Free parameters of the components and their weights."""
        return sum(part.n_parameters for part in self.components) + self.n_trees - 1

    def with_components(self, components: Iterable[Model]) -> TreeMixture:
        """Return the mixture of other components with the same weights.

        Parameters
        ----------
        components : iterable of models

        Returns
        -------
        TreeMixture
        """
        return TreeMixture(tuple(components), self.weights)

    def _with_schema(self, schema: Schema) -> TreeMixture:
        """Return the mixture of components that know the columns; its own are theirs."""
        return self.with_components(with_schema(part, schema) for part in self.components)

    def rename(
        self, names: _naming.Names | Mapping[str, str] | PathLike | None = None
    ) -> TreeMixture:
        """Return the same mixture with other names, in every component that has the nodes.

        Parameters
        ----------
        names : mapping, Names or path, optional
            As one tree takes them; left out, hidden variables are named after what they inform
            about.

        Returns
        -------
        TreeMixture
        """
        from latentree.models import _naming  # which knows the models

        if names is None:
            return self.with_components(part.rename() for part in self.components)
        chosen = _naming.as_names(names).among(self.components)
        pairs = zip(self.components, chosen, strict=True)
        return self.with_components(part.rename(mine) for part, mine in pairs)

    # Inference ------------------------------------------------------------------------------

    def joint_log_likelihoods(self, X: TableLike) -> FloatArray:
        """Return the log-density of every row together with each component.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float of shape (n_rows, n_trees)

        Examples
        --------
        >>> import latentree as lt
        >>> part = lt.GaussianTreeModel(lt.Tree([-1, -1, -1]), [0, 0, 0])
        >>> mixture = lt.models.TreeMixture([part, part], [0.25, 0.75])
        >>> mixture.joint_log_likelihoods([[0.0, 0.0, 0.0]]).round(3)
        array([[-4.143, -3.044]])
        """
        table = self._table(X)
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights)
        columns = [part.log_likelihood(table) for part in self.components]
        return np.asarray(np.column_stack(columns) + log_weights)

    def responsibilities(self, X: TableLike) -> FloatArray:
        """Return the probability of each component given each row.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float of shape (n_rows, n_trees)
            NaN in impossible rows.
        """
        return _normalized(self.joint_log_likelihoods(X))

    def log_likelihood(self, X: TableLike) -> FloatArray:
        """Return the log-density or log-probability of every row; missing cells are summed out.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of float, one per row
        """
        return np.asarray(logsumexp(self.joint_log_likelihoods(X), axis=1))

    def posterior(
        self, X: TableLike, nodes: Iterable[Node] | None = None
    ) -> Normal[FloatArray] | DiscretePosterior:
        """Return the distributions of variables given each row.

        Parameters
        ----------
        X : table of any kind
        nodes : iterable of int or str, optional
            Observed variables, or the class variable; the class variable when left out. Hidden
            variables of a component are asked of ``components``.

        Returns
        -------
        Normal or DiscretePosterior
            Means and variances of numbers (of rank margins medians and squared spreads, as in
            :meth:`CopulaTreeModel.marginal`), else probabilities of states.
        """
        numbers = node_numbers(self.tree, nodes)
        table, m = self._table(X), self.tree.n_observed
        observed, has_states = numbers[numbers < m], self.n_states[numbers] > 0
        if not has_states.all():
            if has_states.any():
                name = self.tree.names[numbers[has_states.argmax()]]
                raise ModelError(f"{name!r} has states, and others numbers: ask in two calls")
            return self._moments(table, numbers, self.responsibilities(table))
        share, found = self._answers(table, observed)
        blocks = dict(zip(observed.tolist(), _split(found, self.n_states[observed]), strict=True))
        blocks[m] = share
        starts = np.concatenate([[0], np.cumsum(self.n_states[numbers])])
        chosen = [blocks[node] for node in numbers.tolist()]
        return DiscretePosterior(self.tree, numbers, np.hstack(chosen), starts)

    def _moments(self, table: Table, columns: IntArray, share: FloatArray) -> Normal[FloatArray]:
        """Mean and variance of numbers given each row; of ranks median and squared spread."""
        mean, variance = np.empty((2, table.n_rows, columns.size))
        parts = [_predicted(part, table, columns.tolist()) for part in self.components]
        for place, column in enumerate(columns.tolist()):
            center, spread = _mixed([part[place] for part in parts], share)
            cells = table.column(column)
            mean[:, place] = np.where(np.isnan(cells), center, cells)
            variance[:, place] = np.where(np.isnan(cells), spread, 0.0)
        return Normal(mean, variance)

    def _answers(self, table: Table, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities of the components given each row, and of the states of observed variables.

        Both are NaN in impossible rows.
        """
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights)
        joint = np.empty((table.n_rows, self.n_trees))
        out = np.zeros((table.n_rows, int(self.n_states[nodes].sum())))
        top = np.full(table.n_rows, -np.inf)
        # Σ_k e^(l_k − top)·P_k over the components so far, the largest l_k being top.
        for number, part in enumerate(self.components):
            log_likelihood, found = _part_answers(part, table, nodes)
            joint[:, number] = log_weights[number] + log_likelihood
            highest = np.maximum(top, joint[:, number])
            weight = _relative(joint[:, number], highest)[:, None]
            out *= _relative(top, highest)[:, None]
            out += np.where(weight > 0, weight * found, 0.0)  # NaN where impossible in the part
            top = highest
        total = _relative(joint, top[:, None]).sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return _normalized(joint), out / np.where(total > 0, total, np.nan)

    def impute(self, X: TableLike) -> AnyArray:
        """Return the observed columns with missing cells filled in.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of shape (n_rows, n_observed)
            Posterior means of numbers (those of counts rounded, of rank margins medians), and most
            probable labels.

        Examples
        --------
        >>> import latentree as lt
        >>> chain = lt.Tree([-1, 0, 1])
        >>> up, down = (lt.GaussianTreeModel(chain, [0, rho, rho]) for rho in (0.5, -0.5))
        >>> lt.models.TreeMixture([up, down], [0.75, 0.25]).impute([[1.0, None, None]]).round(3)
        array([[1.  , 0.25, 0.25]])
        """
        table = self._table(X)
        dtype = np.int64 if self.schema.is_coded else np.float64
        if table.is_sparse:
            return decoded(np.asarray(table.values.toarray(), dtype), self.schema)
        values, missing = np.array(table.values, dtype), table.missing_mask()
        columns = np.flatnonzero(missing.any(axis=0))
        has_states = self.schema.cardinalities[columns] > 0
        labeled, numbers = columns[has_states], columns[~has_states]
        sizes = self.schema.cardinalities[labeled]
        incomplete = np.flatnonzero(missing.any(axis=1))
        for start, stop in chunks(incomplete.size, int(sizes.sum()) + numbers.size):
            rows = incomplete[start:stop]
            part, gaps = table.take(rows), missing[rows]
            share, answers = self._answers(part, labeled)
            refuse_rows(np.isnan(share.sum(axis=1)), rows)
            filled = np.zeros(gaps.shape)
            for column, block in zip(labeled.tolist(), _split(answers, sizes), strict=True):
                filled[:, column] = block.argmax(axis=1)
            if numbers.size:
                filled[:, numbers] = self._moments(part, numbers, share).mean
            is_count = [kind == "count" for kind in self.schema.kinds]
            filled[:, is_count] = np.rint(filled[:, is_count])
            values[rows] = np.where(gaps, filled, values[rows])
        return decoded(values, self.schema)

    def complete(self, X: TableLike) -> AnyArray:
        """Return the most probable component of each row, and its most probable values.

        Parameters
        ----------
        X : table of any kind

        Returns
        -------
        array of shape (n_rows, n_observed + 1)
            Values of the observed variables as the component completes them, and its number.
        """
        table, m = self._table(X), self.tree.n_observed
        chosen = self.joint_log_likelihoods(table).argmax(axis=1)
        out: AnyArray | None = None
        for number in np.unique(chosen).tolist():
            rows = np.flatnonzero(chosen == number)
            found = self.components[number].complete(table.take(rows))[:, :m]
            if out is None:
                out = np.empty((table.n_rows, m + 1), found.dtype)
            out[rows, :m], out[rows, m] = found, number
        assert out is not None
        return out

    def sample(
        self, n_samples: int, random_state: RandomState = None, hidden: bool = False
    ) -> AnyArray:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int
        random_state : int or numpy.random.Generator, optional
        hidden : bool
            Whether a column with the number of the component follows.

        Returns
        -------
        array, one row a draw

        Examples
        --------
        >>> import latentree as lt
        >>> chain = lt.Tree([-1, 0, 1])
        >>> parts = [lt.GaussianTreeModel(chain, [0, rho, rho]) for rho in (0.5, -0.5)]
        >>> lt.models.TreeMixture(parts, [0.5, 0.5]).sample(10, 0, hidden=True).shape
        (10, 4)
        """
        rng = np.random.default_rng(random_state)
        drawn = rng.choice(self.n_trees, n_samples, p=self.weights)
        rows = [
            part.sample(int((drawn == number).sum()), rng)
            for number, part in enumerate(self.components)
        ]
        values = np.concatenate(rows)
        out = np.empty_like(values)
        out[np.argsort(drawn, kind="stable")] = values
        return np.hstack([out, drawn[:, None]]) if hidden else out

    def sample_hidden(self, X: TableLike, random_state: RandomState = None) -> IntArray:
        """Draw the component of each row.

        Parameters
        ----------
        X : table of any kind
        random_state : int or numpy.random.Generator, optional

        Returns
        -------
        array of int of shape (n_rows, 1)
        """
        share = self.responsibilities(X)
        refuse_rows(np.isnan(share.sum(axis=1)), np.arange(len(share)))
        upper = np.cumsum(share, axis=1)
        uniform = np.random.default_rng(random_state).random((len(upper), 1))
        drawn = np.minimum((uniform >= upper).sum(axis=1), self.n_trees - 1)
        return np.asarray(drawn[:, None], np.int64)

    def marginal(self, node: Node) -> Normal[float] | FloatArray:
        """Return the distribution of one variable.

        Parameters
        ----------
        node : int or str
            An observed variable, or the class variable.

        Returns
        -------
        Normal, or array of probabilities
        """
        return self.conditional(node)

    def conditional(
        self, node: Node, given: Mapping[Node, Hashable] | None = None
    ) -> Normal[float] | FloatArray:
        """Return the distribution of one variable given values of others.

        Parameters
        ----------
        node : int or str
            An observed variable, or the class variable.
        given : mapping of nodes to values, optional
            Of observed variables, and of the class variable (the number of a component).

        Returns
        -------
        Normal, or array of probabilities
            Of a number: mean and variance of the mixture, of rank margins as in
            :meth:`CopulaTreeModel.marginal`.

        Examples
        --------
        >>> import latentree as lt
        >>> chain = lt.Tree([-1, 0, 1])
        >>> up, down = (lt.GaussianTreeModel(chain, [0, rho, rho]) for rho in (0.5, -0.5))
        >>> mixture = lt.models.TreeMixture([up, down], [0.75, 0.25])
        >>> round(mixture.conditional("x1", {"x0": 1.0}).mean, 3)
        0.25
        >>> mixture.conditional("tree", {"x0": 1.0})
        array([0.75, 0.25])
        """
        number, m = node_number(self.tree, node), self.tree.n_observed
        evidence: dict[Node, Hashable] = dict(numbered_evidence(self.tree, given).items())
        share = self._share_given(evidence)
        evidence.pop(m, None)
        if number == m:
            return share
        if not self.schema.labels[number]:
            row = self._table(self._row(evidence))
            mean, variance = self._moments(row, np.array([number]), share[None])
            return Normal(float(mean[0, 0]), float(variance[0, 0]))
        # Components without a share need not know what is given.
        parts = [
            (weight, part.conditional(number, evidence))
            for weight, part in zip(share, self.components, strict=True)
            if weight > 0 or np.isnan(weight)
        ]
        return np.asarray(sum(weight * np.asarray(found) for weight, found in parts))

    def _share_given(self, evidence: Mapping[Node, Hashable]) -> FloatArray:
        """Probabilities of the components given values of some variables."""
        m = self.tree.n_observed
        if m in evidence:
            number = evidence[m]
            if number not in range(self.n_trees):
                raise ModelError(f"there is no component {number!r}: 0 … {self.n_trees - 1}")
            return np.asarray(np.eye(self.n_trees)[range(self.n_trees).index(cast(int, number))])
        if not evidence:
            return self.weights
        return np.asarray(self.responsibilities(self._row(evidence))[0])

    def _row(self, evidence: Mapping[Node, Hashable]) -> AnyArray:
        """Return a row with values of some observed variables."""
        row = np.full((1, self.tree.n_observed), None, object)
        for variable, value in evidence.items():
            row[0, cast(int, variable)] = value
        return row

    def information_distances(self) -> Distances:
        """Return −log of the correlations that the mixture has between all nodes.

        Of two real variables that is |ρ|, of two with states their maximal correlation, and of a
        real one and the class variable the correlation ratio. They are not additive on a tree.

        Returns
        -------
        Distances
        """
        ratio = self.class_strengths()
        strength = np.block([[self._strengths(), ratio[:, None]], [ratio, np.ones(1)]])
        matrix = -np.log(np.clip(strength, WEAKEST, 1.0))
        np.fill_diagonal(matrix, 0.0)
        return Distances.from_matrix(matrix, self.tree.names)

    @property
    def _is_gaussian(self) -> bool:
        return self.schema.family == "gaussian"

    def _strengths(self) -> FloatArray:
        """Correlations, or maximal correlations, of the observed variables."""
        if self._is_gaussian:
            total, _ = self._covariances()
            scale = np.sqrt(np.diag(total))
            return np.asarray(np.abs(total / np.outer(scale, scale)))
        m = self.tree.n_observed
        parts = [cast(DiscreteTreeModel, part) for part in self.components]
        out = np.eye(m)
        for a in range(m):
            for b in range(a):
                joints = [part.joint(a, b) for part in parts]
                out[a, b] = out[b, a] = maximal_correlation(
                    np.tensordot(self.weights, joints, axes=1)
                )
        return out

    def class_strengths(self) -> FloatArray:
        """Return how strongly each observed variable depends on the class variable.

        Returns
        -------
        array of float, one per variable
            Correlation ratios of real variables, else maximal correlations, from 0 to 1.
        """
        if self._is_gaussian:
            total, between = self._covariances()
            return np.asarray(np.sqrt(np.diag(between) / np.diag(total)))
        if not self.schema.cardinalities.all():
            raise ModelError("distances between numbers and labels are not defined in a mixture")
        tables = [
            [cast(DiscreteTreeModel, part).marginal(v) for part in self.components]
            for v in range(self.tree.n_observed)
        ]
        return np.array(
            [maximal_correlation(self.weights[:, None] * np.array(table)) for table in tables]
        )

    def _covariances(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of Gaussian variables: in all, and between the means of components."""
        parts = [cast(GaussianTreeModel, part) for part in self.components]
        means = np.array([part.means for part in parts])
        offset = means - self.weights @ means
        between = (self.weights[:, None] * offset).T @ offset
        within = np.tensordot(self.weights, [part.covariance() for part in parts], axes=1)
        return within + between, between

    def distance_tree(self) -> Tree:
        """Return the star of all variables around the class variable, with their distances to it.

        Returns
        -------
        Tree
        """
        lengths = -np.log(np.clip(self.class_strengths(), WEAKEST, 1.0))
        return self.tree.with_lengths(np.append(lengths, 0.0))

    def __repr__(self) -> str:
        variables = f"{len(self.schema.names)} variables"
        return f"TreeMixture({self.n_trees} trees, {self.schema.family}, {variables})"


def component_of(model: Model | TreeMixture, number: int | None = None) -> Model:
    """Return a component of a mixture, as pictures and pages show one tree; others as they are.

    Parameters
    ----------
    model : model of one tree, or TreeMixture
    number : int, optional
        Which component; by default that of the largest weight.

    Returns
    -------
    GaussianTreeModel, DiscreteTreeModel or MixedTreeModel

    Examples
    --------
    >>> import latentree as lt
    >>> chain = lt.Tree([-1, 0, 1])
    >>> parts = [lt.GaussianTreeModel(chain, [0, rho, rho]) for rho in (0.5, -0.5)]
    >>> lt.models.component_of(lt.models.TreeMixture(parts, [0.2, 0.8])).correlations
    array([ 0. , -0.5, -0.5])
    """
    if not isinstance(model, TreeMixture):
        if number is not None:
            raise ModelError("the model has one tree, and no components to choose from")
        return model
    chosen = int(model.weights.argmax()) if number is None else number
    if not 0 <= chosen < model.n_trees:
        raise ModelError(f"there is no component {chosen}: 0 … {model.n_trees - 1}")
    return model.components[chosen]


def _part_answers(part: Model, table: Table, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood of each row in a component, and the probabilities of the states of nodes."""
    if isinstance(part, StateTreeModel):
        return part._answers(table, nodes)
    if not nodes.size:
        return part.log_likelihood(table), np.empty((table.n_rows, 0))
    found = cast(DiscretePosterior, part.posterior(table, nodes.tolist()))
    return part.log_likelihood(table), found.probabilities


Predicted = Normal[FloatArray] | ScoreMixture
"""The distributions of a number given each row."""


def _predicted(part: Model, table: Table, columns: Sequence[int]) -> list[Predicted]:
    """Distributions of numbers given each row in a component."""
    if isinstance(part, CopulaTreeModel):
        return [*part._predicted(table, columns)]
    if isinstance(part, GaussianTreeModel):
        mean, variance = part.posterior(table, columns)
        return [Normal(*both) for both in zip(mean.T, variance.T, strict=True)]
    weights = part._neighbor_weights(table, columns)
    pairs = zip(columns, weights, strict=True)
    return [Normal(*part._emission(column).moments(own)) for column, own in pairs]


def _mixed(parts: Sequence[Predicted], share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of mixtures, a row each; of ranks median and squared spread."""
    scores = [part for part in parts if isinstance(part, ScoreMixture)]
    if any(isinstance(part.margin, RankMargin) for part in scores):
        low, middle, high = (mixed_quantiles(scores, share, below) for below in MIDDLE)
        return middle, (0.5 * (high - low)) ** 2
    moments = [part.moments() if isinstance(part, ScoreMixture) else part for part in parts]
    means, variances = (np.stack(each, axis=1) for each in zip(*moments, strict=True))
    # Components without a share may not know the row.
    mean = np.where(share == 0, 0.0, share * means).sum(axis=1)
    away = variances + (means - mean[:, None]) ** 2
    return mean, np.where(share == 0, 0.0, share * away).sum(axis=1)


def _relative(logs: FloatArray, top: FloatArray) -> FloatArray:
    """e^(logs − top); 0 where the top is 0 itself, −∞ as a logarithm."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(top > -np.inf, np.exp(logs - top), 0.0))


def _normalized(joint: FloatArray) -> FloatArray:
    """Probabilities from their logarithms, up to a factor per row; NaN where all are zero."""
    top = joint.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        out = np.exp(joint - top)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _split(found: FloatArray, sizes: IntArray) -> list[FloatArray]:
    """Cut columns into blocks of these sizes."""
    return np.split(found, np.cumsum(sizes), axis=1)[:-1]
